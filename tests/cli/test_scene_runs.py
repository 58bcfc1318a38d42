"""Run folders of the tasks on scenes: what they hold, and that reports and comparisons need nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.analysis.scene_tasks import TASKS
from roadaware.cli import main
from roadaware.reports import runs, scene_runs

FILES = {
    *("config.json", "results.json", "summary.parquet", "summary.csv", "counts.parquet"),
    *("classes.parquet", "state.npz", "pictures.json", "report.html"),
}
LEVELS = {
    "actions": {"prediction", "truth", "confusion"},
    "relations": {"prediction", "truth", "frame"},
    "grounding": {"sentence"},
    "sound": {"sound"},
}
TRUTH = {"actions": "gt.csv", "relations": "truth", "grounding": "test_proc.json", "sound": "vggss.json"}
PREDICTIONS = {"actions": "pred.csv", "relations": "pred.json", "grounding": "pred.json", "sound": "maps.npz"}
PICTURES = {
    "actions": "Confusion of actions",
    "relations": "Who does what to whom: crowd-",
    "grounding": "Sentences, the worst and the best",
    "sound": "Sounds that were localised worst",
}


def ask(chaos: Path, task: str, predictions: Path | None = None) -> list[str]:
    found = predictions or chaos / task / PREDICTIONS[task]
    words = ["evaluate", task, "--truth", str(chaos / task / TRUTH[task]), "--predictions", str(found)]
    return [*words, "--resamples", "20", "--by", "category" if task == "actions" else "density"]


@pytest.fixture(scope="module")
def folders(chaos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each task, and a second one of relations whose predictions are fewer."""
    root = tmp_path_factory.mktemp("scene-runs")
    for task in TASKS:
        words = ask(chaos, task)
        words = words[: words.index("--by")] if task == "sound" else words
        assert main([*words, "-o", str(root / task)]) == 0
    found = json.loads((chaos / "relations" / "pred.json").read_text())
    found["results"] = {video: held[:1] for video, held in found["results"].items()}
    fewer = root / "fewer.json"
    fewer.write_text(json.dumps(found))
    assert main([*ask(chaos, "relations", fewer), "-o", str(root / "fewer")]) == 0
    return root


@pytest.mark.parametrize("task", TASKS)
def test_a_run_holds_settings_numbers_state_instances_and_report(folders: Path, task: str) -> None:
    folder = folders / task
    levels = {f"instances_{level}.parquet" for level in LEVELS[task]}
    assert {path.name for path in folder.iterdir()} == FILES | levels
    results = json.loads((folder / "results.json").read_text())
    assert results["task"] == task
    assert set(results["files"]) == (FILES | levels) - {"results.json"}
    assert results["metrics"]["summary"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert PICTURES[task] in page
    assert str(folders) not in page
    summary = pl.read_parquet(folder / "summary.parquet")
    assert pl.read_csv(folder / "summary.csv").height == summary.height
    classes = pl.read_parquet(folder / "classes.parquet")
    assert set(classes["label"]) == set(results["metrics"]["per_class"])


@pytest.mark.parametrize("task", TASKS)
def test_a_run_comes_back_as_it_was(folders: Path, task: str) -> None:
    loaded = scene_runs.load_scene_run(folders / task)
    results = json.loads((folders / task / "results.json").read_text())
    facts = scene_runs.build_scene_run_facts(loaded)
    assert {name: results[name] for name in facts} == json.loads(json.dumps(facts))
    assert set(loaded.result.levels) == LEVELS[task]
    assert loaded.result.state is not None
    assert (
        scene_runs.build_scene_run_files(loaded, "")["state.npz"]
        == (folders / task / "state.npz").read_bytes()
    )
    assert runs.describe_kind(folders / task) == "scenes"


@pytest.mark.parametrize("task", TASKS)
def test_a_run_against_itself_is_not_different(roadaware: Command, folders: Path, task: str) -> None:
    done = roadaware("compare", folders / task, folders / task, "--resamples", "20", "--json")
    assert done.code == 0
    rows = done.data["metrics"].values()
    assert {row["difference"] for row in rows} <= {0, None}
    assert not {row["verdict"] for row in rows} & {"better", "worse"}


def test_two_runs_are_compared_without_the_data(roadaware: Command, folders: Path, tmp_path: Path) -> None:
    page = tmp_path / "difference.html"
    pair = (folders / "relations", folders / "fewer")
    done = roadaware("compare", *pair, "--resamples", "40", "--html", page)
    assert done.code == 0
    assert "40 resamples of videos, seed 0" in done.out
    assert "intervals over videos" in page.read_text(encoding="utf-8")
    row = roadaware("compare", *pair, "--resamples", "40", "--json").data["metrics"]["recall@50"]
    values = [
        json.loads((folder / "results.json").read_text())["metrics"]["summary"]["recall@50"]
        for folder in pair
    ]
    assert [row["a"], row["b"]] == values
    assert row["difference"] == pytest.approx(values[0] - values[1])
    assert row["low_video"] <= row["difference"] <= row["high_video"]


@pytest.mark.slow
def test_capacity_and_trivial_answers_stand_beside_runs_side_by_side(
    roadaware: Command, folders: Path, tmp_path: Path
) -> None:
    """A number of actions is nothing without the capacity, one of sounds nothing without the whole image."""
    shown = roadaware("report", folders, "-o", tmp_path / "all.html").out
    assert "per frame capacity" in shown
    assert "ciou, whole image" in shown
    assert "success_auc, centre" in shown
    pairs = {task: roadaware("compare", folders / task, folders / task, "--resamples", "5") for task in TASKS}
    assert "per frame capacity: none" in pairs["actions"].out
    assert "capacity" not in pairs["relations"].out
    head, first = (line for line in pairs["sound"].out.splitlines() if line.startswith(("metric", "ciou")))
    assert "whole image" in head
    trivial = json.loads((folders / "sound" / "results.json").read_text())["metrics"]["baselines"]
    assert f"{trivial['centre']['ciou']:.4f}" in first


@pytest.mark.slow
def test_a_report_of_several_compares_those_of_one_task(
    roadaware: Command, folders: Path, tmp_path: Path
) -> None:
    page = tmp_path / "all.html"
    done = roadaware("report", folders, "-o", page)
    assert done.code == 0, done.err
    text = page.read_text(encoding="utf-8")
    assert all(words in text for words in PICTURES.values())
    assert "Fewer against pred" in text
    assert "fewer (default)" in done.out


@pytest.mark.slow
def test_runs_that_do_not_fit_are_not_compared(
    roadaware: Command, chaos: Path, folders: Path, events: Events, tmp_path: Path
) -> None:
    done = roadaware("compare", folders / "relations", folders / "grounding")
    assert done.code == 2
    assert "a run of relations" in done.err
    assert roadaware(*ask(chaos, "relations"), "--config", "vidvrd", "-o", tmp_path / "vidvrd").code == 0
    done = roadaware("compare", folders / "relations", tmp_path / "vidvrd")
    assert done.code == 2
    assert "different configs" in done.err
    assert "pixel_offset" in done.err
    part = tmp_path / "part"
    part.mkdir()
    for file in sorted((chaos / "relations" / "truth").iterdir())[:3]:
        (part / file.name).write_bytes(file.read_bytes())
    words = ["evaluate", "relations", "--truth", part, "--predictions", chaos / "relations" / "pred.json"]
    assert roadaware(*words, "-o", tmp_path / "other").code == 0
    done = roadaware("compare", folders / "relations", tmp_path / "other")
    assert done.code == 3
    assert "different truths" in done.err
    done = roadaware("compare", folders / "relations", folders / "fewer", "--config", "default")
    assert done.code == 2
    road = ["evaluate", "road", "--truth", events.truth, "--predictions", events.saved, "--kinds", "agent"]
    assert roadaware(*road, "--only", "frame", "-o", tmp_path / "road").code == 0
    for command in (["compare"], ["report", "-o", tmp_path / "page.html"]):
        done = roadaware(command[0], folders / "relations", tmp_path / "road", *command[1:])
        assert done.code == 2
        assert "road events" in done.err


@pytest.mark.parametrize("name", ["state.npz", "summary.parquet", "pictures.json"])
def test_a_changed_file_is_noticed(roadaware: Command, folders: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(folders / "grounding", tmp_path / "run")
    path = tmp_path / "run" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    done = roadaware("report", tmp_path / "run", "-o", tmp_path / "page.html")
    assert done.code == 3
    assert name in done.err


@pytest.mark.slow
def test_a_run_is_replaced_only_when_asked(
    roadaware: Command, chaos: Path, folders: Path, tmp_path: Path
) -> None:
    words = [*ask(chaos, "grounding"), "-o", str(tmp_path / "run")]
    shutil.copytree(folders / "grounding", tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert roadaware(*words).code == 2
    assert roadaware(*words, "--overwrite").code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


@pytest.mark.slow
def test_runs_of_one_name_are_told_apart_by_their_folders(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        words = ["--truth", chaos / "sound" / "vggss.json", "--predictions", chaos / "sound" / "maps.npz"]
        assert roadaware("evaluate", "sound", *words, "-o", tmp_path / name).code == 0
    page = tmp_path / "page.html"
    assert roadaware("report", tmp_path / "first", tmp_path / "second", "-o", page).code == 0
    assert "First against second" in page.read_text(encoding="utf-8")
