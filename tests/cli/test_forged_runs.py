"""Run folders whose tables were changed and listed anew: a damaged run in words, never an internal error."""

from __future__ import annotations

import copy
import io
import itertools
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from event_files import Events
from small_files import Command, Files

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.fuzzing import _hostile

from roadaware.cli import main
from roadaware.errors import DamagedError
from roadaware.metrics.metric_state import SCENE_COUNTS, SCENE_SUMMARY
from roadaware.reports.event_pages import build_event_run_json, load_event_run, render_event_runs
from roadaware.reports.event_text import format_event_run, format_event_runs
from roadaware.reports.runs import load, load_runs, read_table
from roadaware.reports.scene_runs import load_scene_run, render_scene_runs

Change = Callable[..., pl.DataFrame]
CHANGES: dict[str, Change] = {
    "dropped": lambda table, name: table.drop(name),
    "renamed": lambda table, name: table.rename({name: "other"}),
    "null": lambda table, name: table.with_columns(pl.lit(None).alias(name)),
    "other type": lambda table, name: table.with_columns(
        pl.lit(1.5 if table[name].dtype in (pl.String, pl.Boolean) else "x").alias(name)
    ),
}


@pytest.fixture(scope="module")
def run(events: Events, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "road"
    words = ["evaluate", "road", "--truth", str(events.truth), "--predictions", str(events.saved)]
    assert main([*words, "--resamples", "2", "-o", str(out)]) == 0
    return out


def forged(run: Path, folder: Path, file: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Path:
    """A copy of the run with another table, which its marker lists."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(run, folder)
    change(pl.read_parquet(folder / file)).write_parquet(folder / file)
    _hostile.sign_again(folder)
    return folder


@pytest.mark.slow
def test_every_column_of_every_table_is_looked_at(run: Path, tmp_path: Path) -> None:
    tables = sorted(path.name for path in run.glob("*.parquet"))
    columns = [(file, name) for file in tables for name in pl.read_parquet(run / file).columns]
    assert len(columns) >= 60
    for (file, name), change in zip(columns, itertools.cycle(CHANGES.values()), strict=False):
        if name.startswith("caution_") and change is CHANGES["dropped"]:
            change = CHANGES["other type"]
        made = forged(run, tmp_path / "forged", file, partial(change, name=name))
        with pytest.raises(DamagedError, match=f"expected.*'{name}'"):
            load_runs(load_event_run, made)


ODD: dict[str, tuple[str, pl.Expr]] = {
    "a class that is none": ("matches_frame", pl.lit(10**6, pl.Int32).alias("cls")),
    "a class below the first": ("matches_frame", pl.lit(-1, pl.Int32).alias("cls")),
    "a video that is none": ("truth_frame", pl.lit(10**6).alias("video")),
    "truth below nothing": ("truth_frame", pl.lit(-1).alias("n")),
    "more truth than any": ("truth_frame", pl.lit(1 << 62).alias("n")),
    "a score that is none": ("matches_frame", pl.lit(float("nan")).alias("score")),
    "a score without end": ("matches_video_stiou", pl.lit(float("inf")).alias("score")),
    "a value without end": ("per_class", pl.lit(float("inf")).alias("value")),
    "a gain out of all reason": ("faults", pl.lit(1e308).alias("gain")),
    "a level that is none": ("per_class", pl.lit("other").alias("level")),
    "a level of faults that is none": ("faults", pl.lit("other").alias("level")),
    "a fault that one kind alone has": (
        "faults",
        pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("x")).otherwise("fault").alias("fault"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ODD)
def test_a_value_that_no_run_has_is_damage(run: Path, tmp_path: Path, what: str) -> None:
    file, odd = ODD[what]
    made = forged(run, tmp_path / "forged", f"{file}.parquet", lambda table: table.with_columns(odd))
    with pytest.raises(DamagedError, match="expected"):
        load_runs(load_event_run, made)


FACTS = (
    "split",
    "truth",
    "predictions",
    "dropped",
    "findings",
    "linker",
    "config_name",
    "tracking",
    "tracked",
    "streaming",
    "calibration",
)


def _places(held: Any, *names: Any) -> Iterator[tuple[Any, ...]]:
    """Where values stand in a document, outer ones first."""
    yield names
    inner = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    for name, each in inner:
        yield from _places(each, *names, name)


@pytest.mark.slow
def test_whatever_a_run_says_of_itself_is_shown_or_refused(events: Events, tmp_path: Path) -> None:
    words = [
        "evaluate",
        "road",
        "--truth",
        str(events.truth),
        "--predictions",
        str(events.saved),
        "--resamples",
        "2",
    ]
    words += [
        "--tracking",
        "--fps",
        "10",
        "--latency",
        "0.05",
        "--frame-thresholds",
        "0.5",
        "--video-thresholds",
        "0.2",
        "--by",
        "weather",
    ]
    assert main([*words, "-o", str(tmp_path / "run")]) == 0
    whole = json.loads((tmp_path / "run" / "results.json").read_text())
    assert whole["tracking"]
    assert whole["streaming"]
    assert whole["calibration"]
    refused = 0
    odd = itertools.cycle([None, "x", [], {}, True, {"a": {}}, 1.5, "gone"])
    places = [(fact, *rest) for fact in FACTS for rest in _places(whole.get(fact))]
    # Of the many means of classes some; all of the rest.
    few = [place for place in places if "per_class" not in place or len(str(place[-1])) == 3]
    for path in few[:: max(1, len(few) // 60)]:
        held = copy.deepcopy(whole)
        at = held
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = next(odd)
        if at[path[-1]] == "gone":
            del at[path[-1]]
        (tmp_path / "run" / "results.json").write_text(json.dumps(held))
        try:
            found = load_runs(load_event_run, tmp_path / "run")
        except DamagedError:
            refused += 1
            continue
        assert format_event_run(found[0]), path
        assert format_event_runs(found)
        assert build_event_run_json(found[0])
        assert render_event_runs(found)
    assert refused > 20


# Every table that is read back of runs of pedestrians and of scenes, column by column.

PEDESTRIANS = ("scores", "truth", "order", "tte_frames", "pedestrian", "video")


@pytest.mark.slow
@pytest.mark.parametrize("name", PEDESTRIANS)
def test_every_column_of_a_run_of_pedestrians_is_looked_at(
    files: Files, roadaware: Command, tmp_path: Path, name: str
) -> None:
    words = ("evaluate", "pedestrians", "--scores", files.scores, "--samples", files.samples)
    assert roadaware(*words, "--task", "action", "--resamples", "2", "-o", tmp_path / "run").code == 0
    for change in (CHANGES["dropped"], CHANGES["other type"]):
        made = forged(tmp_path / "run", tmp_path / "forged", "per_sample.parquet", partial(change, name=name))
        with pytest.raises(DamagedError, match=f"expected.*'{name}'"):
            load_runs(load, made)


@pytest.mark.slow
def test_every_column_of_a_run_on_scenes_is_looked_at(chaos: Path, tmp_path: Path) -> None:
    truth, predictions = (str(chaos / "grounding" / name) for name in ("test_proc.json", "pred.json"))
    words = ["evaluate", "grounding", "--truth", truth, "--predictions", predictions, "--resamples", "2"]
    assert main([*words, "-o", str(tmp_path / "run")]) == 0
    for file, columns in {"summary": SCENE_SUMMARY, "counts": SCENE_COUNTS}.items():
        for name in columns:
            for what in ("dropped", "other type"):
                if what == "dropped" and name.startswith("caution_"):
                    continue
                change = partial(CHANGES[what], name=name)
                made = forged(tmp_path / "run", tmp_path / "forged", f"{file}.parquet", change)
                with pytest.raises(DamagedError, match=f"expected.*'{name}'"):
                    load_runs(load_scene_run, made)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("results.json", lambda held: held.update(findings="x")),
        ("results.json", lambda held: held["truth"].update(notes=[1])),
        ("results.json", lambda held: held.pop("truth")),
        ("pictures.json", lambda held: held.update(strips=3)),
        ("pictures.json", lambda held: held.update(confusion=[])),
        ("pictures.json", lambda held: held.update(success={"thresholds": "x"})),
    ],
)
def test_what_a_run_on_scenes_says_beside_its_numbers_is_looked_at(
    chaos: Path, tmp_path: Path, file: str, change: Callable[[Any], Any]
) -> None:
    truth, predictions = (str(chaos / "grounding" / name) for name in ("test_proc.json", "pred.json"))
    words = ["evaluate", "grounding", "--truth", truth, "--predictions", predictions, "--resamples", "2"]
    assert main([*words, "-o", str(tmp_path / "run")]) == 0
    held = json.loads((tmp_path / "run" / file).read_text())
    change(held)
    (tmp_path / "run" / file).write_text(json.dumps(held))
    _hostile.sign_again(tmp_path / "run")
    with pytest.raises(DamagedError):
        render_scene_runs(load_runs(load_scene_run, tmp_path / "run"))


def test_a_run_from_before_cautions_is_read(run: Path, tmp_path: Path) -> None:
    older = forged(run, tmp_path / "older", "per_class.parquet", lambda t: t.drop(cs.starts_with("caution_")))
    table = load_event_run(older).summary
    assert set(table["caution_video"]) == {None}
    assert table.drop(cs.starts_with("caution_")).equals(
        load_event_run(run).summary.drop(cs.starts_with("caution_"))
    )


@pytest.mark.parametrize(
    "words", [("compare", "{run}", "{forged}", "--resamples", "2"), ("report", "{forged}")]
)
def test_a_command_says_so_in_words(
    roadaware: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    column = pl.col("score").cast(pl.String)
    made = forged(run, tmp_path / "forged", "matches_video_stiou.parquet", lambda t: t.with_columns(column))
    done = roadaware(*(word.format(run=run, forged=made) for word in words))
    assert done.code == 3
    assert "expected a column 'score' of Float64, found String" in done.err


def test_half_a_character_in_a_name_of_a_run_is_shown(run: Path, tmp_path: Path) -> None:
    made = forged(run, tmp_path / "forged", "per_class.parquet", lambda table: table)
    index = json.loads((made / "matches.json").read_text())
    for held in index.values():
        held["videos"][0] += "\ud800"
    (made / "matches.json").write_text(json.dumps(index))
    _hostile.sign_again(made)
    assert main(["report", str(made), "-o", str(tmp_path / "report.html")]) == 0


def test_a_run_that_nobody_changed_is_read(run: Path) -> None:
    assert load_event_run(run).faults is not None


def test_whole_numbers_stand_for_each_other() -> None:
    stream = io.BytesIO()
    pl.DataFrame({"n": pl.Series([0, 3], dtype=pl.Int32)}).write_parquet(stream)
    assert read_table(stream.getvalue(), {"n": pl.Int64}, below={"n": 4})["n"].to_list() == [0, 3]
    with pytest.raises(ValueError, match="expected 0 to 2 in 'n', found 0 to 3"):
        read_table(stream.getvalue(), {"n": pl.Int64}, below={"n": 3})
