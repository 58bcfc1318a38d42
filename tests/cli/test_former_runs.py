"""Run folders of version 0.8, whose keys, columns, arrays and configurations had other names, are read as those of today."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from event_files import Events
from small_files import Command, write_files

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.fuzzing import _hostile

from roadaware.cli import main
from roadaware.demo_data.corner_files import write_corner_demo
from roadaware.errors import DamagedError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.reports import event_pages, runs, scene_runs

KINDS = ("pedestrians", "road", "actions", "relations", "grounding", "sound", "corner-cases")
FORMER = {"resamples": "draws", "predictions": "claims", "predicted": "claimed", "prediction": "claim"}
FIRST = re.compile(rf"(?<![a-z])({'|'.join(FORMER)})(?![a-z])")
SOME = {
    "road": {"tubes.json": "claim_px", "faults.parquet": "claims"},
    "actions": {"results.json": "zero_area_claims", "instances_truth.parquet": "claim"},
    "relations": {"pictures.json": "claimed", "results.json": "instances_claim.parquet"},
    "grounding": {"results.json": "missing_claim", "instances_sentence.parquet": "claimed_start"},
    "sound": {"pictures.json": "claims", "instances_sound.parquet": "claimed_cells"},
}
"""Of kind and file, a name that version 0.8 wrote."""


pytestmark = pytest.mark.slow  # a run of each kind is made first


@pytest.fixture(scope="module")
def todays(events: Events, chaos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind."""
    root = tmp_path_factory.mktemp("todays")
    small = write_files(root)
    write_corner_demo(root / "coda", pictures=24)
    pairs = {
        "road": (events.truth, events.saved),
        "actions": (chaos / "actions" / "gt.csv", chaos / "actions" / "pred.csv"),
        "relations": (chaos / "relations" / "truth", chaos / "relations" / "pred.json"),
        "grounding": (chaos / "grounding" / "test_proc.json", chaos / "grounding" / "pred.json"),
        "sound": (chaos / "sound" / "vggss.json", chaos / "sound" / "maps.npz"),
        "corner-cases": (root / "coda" / "corner_case.json", root / "coda" / "bdd100k.json"),
    }
    asked = {
        kind: ["--truth", str(truth), "--predictions", str(found)] for kind, (truth, found) in pairs.items()
    }
    asked["corner-cases"] += ["--trained-on", "bdd100k"]
    asked["pedestrians"] = [
        "--scores",
        str(small.scores),
        "--samples",
        str(small.samples),
        "--task",
        "action",
    ]
    for kind in KINDS:
        assert main(["evaluate", kind, *asked[kind], "--resamples", "5", "-o", str(root / kind)]) == 0
    return root


def name_as_before(name: str) -> str:
    return FIRST.sub(lambda found: FORMER[found[0]], name)


def write_as_before(found: Any, *, config: bool = False) -> Any:
    if isinstance(found, dict):
        return {
            name_as_before(k): write_as_before(v, config=config or k == "config") for k, v in found.items()
        }
    if isinstance(found, list):
        return [write_as_before(value, config=config) for value in found]
    return name_as_before(found) if config and isinstance(found, str) else found


def make_former(run: Path, folder: Path) -> Path:
    """A copy of a run as version 0.8 named what it holds."""
    shutil.copytree(run, folder)
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            path.write_text(json.dumps(write_as_before(json.loads(path.read_text()))))
        elif path.suffix == ".npz":
            arrays, facts = open_arrays(path)
            save_arrays(path, {name_as_before(k): v for k, v in arrays.items()}, write_as_before(facts))
        elif path.suffix == ".parquet":
            table = pl.read_parquet(path)
            table.rename({name: name_as_before(name) for name in table.columns}).write_parquet(path)
        path.rename(folder / name_as_before(path.name))
    _hostile.sign_again(folder)
    return folder


def read_files(kind: str, folder: Path) -> dict[str, bytes]:
    """The files that are written of a run that was read."""
    if kind == "pedestrians":
        return runs.build_run_files(runs.load(folder), "")
    if kind == "road":
        return event_pages.build_event_run_files(event_pages.load_event_run(folder), "")
    return scene_runs.build_scene_run_files(scene_runs.load_scene_run(folder), "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_version_0_8_is_read_as_one_of_today(todays: Path, tmp_path: Path, kind: str) -> None:
    former = make_former(todays / kind, tmp_path / "former")
    for file, name in {"results.json": "draws", **SOME.get(kind, {})}.items():
        held = (
            pl.read_parquet_schema(former / file) if file.endswith("parquet") else (former / file).read_text()
        )
        assert name in held
    assert read_files(kind, former) == read_files(kind, todays / kind)


@pytest.mark.parametrize("kind", ["road", "actions"])
def test_a_run_of_version_0_8_is_compared_with_one_of_today(
    roadaware: Command, todays: Path, tmp_path: Path, kind: str
) -> None:
    former = make_former(todays / kind, tmp_path / "former")
    done = roadaware("compare", former, todays / kind, "--resamples", "5", "--json")
    assert done.code == 0
    assert {row["difference"] for row in done.data["metrics"].values()} <= {0, None}
    assert roadaware("report", former, "-o", tmp_path / "page.html").code == 0


def test_a_field_that_version_0_8_had_not_stands_at_its_default(
    roadaware: Command, todays: Path, tmp_path: Path
) -> None:
    former = make_former(todays / "actions", tmp_path / "former")
    record = json.loads((former / "results.json").read_text())
    del record["metrics"]["config"]["subset"]
    (former / "results.json").write_text(json.dumps(record))
    assert roadaware("compare", former, todays / "actions", "--resamples", "5").code == 0


@pytest.mark.parametrize(
    ("file", "break_it"),
    [
        ("pictures.json", lambda data: b"{"),
        ("pictures.json", lambda data: b"[" * 100_000),
        ("instances_sentence.parquet", lambda data: data[:40]),
        ("state.npz", lambda data: data[:40]),
    ],
)
def test_a_file_of_version_0_8_that_is_damaged_is_said_to_be(
    todays: Path, tmp_path: Path, file: str, break_it: Callable[[bytes], bytes]
) -> None:
    former = make_former(todays / "grounding", tmp_path / "former")
    (former / file).write_bytes(break_it((former / file).read_bytes()))
    _hostile.sign_again(former)
    with pytest.raises(DamagedError) as caught:
        scene_runs.load_scene_run(former)
    assert caught.value.where == str(former / file)
