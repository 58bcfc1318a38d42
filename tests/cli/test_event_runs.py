"""Run folders of road events: what they hold, and that reports and comparisons need nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from event_files import Events
from small_files import Command, Files

from roadaware.datasets import read
from roadaware.reports import event_pages, runs
from roadaware.scenes.store import save

pytestmark = pytest.mark.slow


FILES = {
    *("config.json", "results.json", "per_class.parquet", "matches.json", "tubes.json", "faults.parquet"),
    *(f"{what}_{level}.parquet" for what in ("matches", "truth") for level in ("frame", "video_stiou")),
    *("matches_av_action.parquet", "truth_av_action.parquet", "clips.json", "report.html"),
}


@pytest.fixture(scope="module")
def folders(events: Events, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs: tubes of the recommended linker, and of the published one, judged by the same metric."""
    from roadaware.cli import main

    root = tmp_path_factory.mktemp("runs")
    assert main(["link", str(events.saved), "--config", "reference", "--out", str(root / "linked")]) == 0
    for name, predictions in (("mended", events.saved), ("published", root / "linked")):
        words = ["evaluate", "road", "--truth", str(events.truth), "--predictions", str(predictions)]
        words += ["--resamples", "20", "--by", "weather", "-o", str(root / name)]
        assert main(words) == 0
    return root / "mended", root / "published"


def test_a_run_holds_settings_results_matches_and_report(folders: tuple[Path, Path]) -> None:
    mended, _ = folders
    assert {path.name for path in mended.iterdir()} == FILES
    results = json.loads((mended / "results.json").read_text())
    assert results["task"] == "events"
    assert set(results["metrics"]) == {"frame", "video", "av_action"}
    assert set(results["files"]) == FILES - {"results.json"}
    rows = pl.read_parquet(mended / "per_class.parquet")
    assert {"frame", "video", "av_action"} == set(rows["level"])
    assert rows["low_video"].is_not_null().any()
    assert str(mended.parent) not in (mended / "report.html").read_text(encoding="utf-8")


def test_a_run_comes_back_as_it_was(folders: tuple[Path, Path]) -> None:
    loaded = event_pages.load_event_run(folders[0])
    results = json.loads((folders[0] / "results.json").read_text())
    facts = event_pages.build_event_run_facts(loaded)
    assert {name: results[name] for name in facts} == json.loads(json.dumps(facts))
    assert loaded.strips
    assert loaded.matches["frame"].ignored is None


def test_a_run_against_itself_is_not_different(roadaware: Command, folders: tuple[Path, Path]) -> None:
    done = roadaware("compare", folders[0], folders[0], "--resamples", "20", "--json")
    assert done.code == 0
    rows = done.data["metrics"].values()
    assert {row["difference"] for row in rows} <= {0, None}
    assert not {row["verdict"] for row in rows} & {"better", "worse"}


def test_two_runs_are_compared_without_the_data(
    roadaware: Command, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "difference.html"
    done = roadaware("compare", *folders, "--resamples", "30", "--html", page)
    assert done.code == 0
    assert "video_map@0.2:agent" in done.out
    assert "30 resamples of videos" in done.out
    assert "intervals over videos" in page.read_text(encoding="utf-8")
    data = roadaware("compare", *folders, "--resamples", "30", "--json").data
    row = data["metrics"]["video_map@0.2:agent"]
    values = [
        json.loads((folder / "results.json").read_text())["metrics"]["video"]["stiou"]["0.2"]["agent"]["mean"]
        for folder in folders
    ]
    assert [100 * row["a"], 100 * row["b"]] == pytest.approx(values)
    assert data["metrics"]["frame_map@0.5:agent"]["difference"] == 0


def test_runs_on_corrected_annotations_are_not_compared(
    roadaware: Command, events: Events, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    scenes = read("road", events.truth, cache=False)
    moved = scenes.with_tables(boxes=scenes.boxes.with_columns(pl.col("x1_px") - 20))
    for name, truth in (("same", scenes), ("moved", moved)):
        save(truth, tmp_path / name)
        words = ["evaluate", "road", "--truth", tmp_path / name, "--predictions", events.saved]
        assert roadaware(*words, "--resamples", "20", "-o", tmp_path / f"on-{name}").code == 0
    assert roadaware("compare", folders[0], tmp_path / "on-same", "--resamples", "20").code == 0
    done = roadaware("compare", folders[0], tmp_path / "on-moved", "--resamples", "20")
    assert done.code != 0
    assert "judged on different truths" in done.err


def test_a_report_of_both_compares_them(
    roadaware: Command, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    done = roadaware("report", *folders, "-o", tmp_path / "both.html")
    assert done.code == 0
    assert "agent, tubes at 0.2" in done.out
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    for words in ("Mended against linked", "Precision over recall: agent", "Tubes that went wrong"):
        assert words in text or words.replace("Mended", "Predictions") in text
    assert "What mending would gain" in text
    assert "Reliability of scores" in text
    again = roadaware("report", folders[0].parent / "mended", "-o", tmp_path / "one.html")
    assert again.code == 0


def test_runs_of_one_name_are_told_apart_by_their_folders(
    roadaware: Command, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    for name in ("first", "second"):
        shutil.copytree(folders[0], tmp_path / name / "run")
    shutil.copytree(folders[0], tmp_path / "third")
    runs = [tmp_path / "first" / "run", tmp_path / "second" / "run", tmp_path / "third"]
    done = roadaware("report", *runs, "-o", tmp_path / "page.html")
    assert done.code == 0
    assert "first/run  " in done.out
    assert "second/run  " in done.out
    assert "third" in done.out.splitlines()[0]


def test_equal_runs_give_equal_bytes(
    roadaware: Command, events: Events, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["evaluate", "road", "--truth", events.truth, "--predictions", events.saved]
    assert roadaware(*words, "--resamples", "20", "--by", "weather", "-o", tmp_path / "run").code == 0
    for name in FILES:
        assert (tmp_path / "run" / name).read_bytes() == (folders[0] / name).read_bytes(), name


def test_a_run_of_pedestrians_is_not_compared_with_one_of_events(
    roadaware: Command, folders: tuple[Path, Path], files: Files, tmp_path: Path
) -> None:
    words = ["--scores", files.scores, "--samples", files.samples, "--task", "action", "-o", tmp_path / "p"]
    assert roadaware("evaluate", "pedestrians", *words).code == 0
    for command in (["compare"], ["report", "-o", tmp_path / "page.html"]):
        done = roadaware(command[0], folders[0], tmp_path / "p", *command[1:])
        assert done.code == 2
        assert "pedestrians" in done.err
    done = roadaware("compare", *folders, "--config", "reference")
    assert done.code == 2
    assert "leave it away" in done.err


def test_runs_of_other_configs_or_truths_are_not_compared(
    roadaware: Command, events: Events, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["evaluate", "road", "--truth", events.truth, "--predictions", events.saved, "-o"]
    assert roadaware(*words, tmp_path / "other", "--config", "reference").code == 0
    done = roadaware("compare", folders[0], tmp_path / "other")
    assert done.code == 2
    assert "different configs" in done.err
    assert roadaware(*words, tmp_path / "part", "--split", "val_2").code == 0
    done = roadaware("compare", folders[0], tmp_path / "part")
    assert done.code == 3


def test_runs_on_moved_boxes_or_other_spans_are_not_compared(
    roadaware: Command, events: Events, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    truth = read("road", events.truth, cache=False)
    moved = truth.boxes.with_columns(pl.col("x2_px") + 1)
    shorter = truth.tubes.with_columns(
        pl.when(pl.col("spans").list.len() > 0)
        .then(pl.lit([[0, 1]], dtype=truth.tubes.schema["spans"]))
        .otherwise("spans")
        .alias("spans")
    )
    for name, changed in (("moved", {"boxes": moved}), ("shorter", {"tubes": shorter}), ("same", {})):
        save(truth.with_tables(**changed), tmp_path / name)
        run = tmp_path / f"{name}-run"
        words = ["--truth", tmp_path / name, "--predictions", events.saved, "--only", "video", "-o", run]
        assert roadaware("evaluate", "road", *words).code == 0
        done = roadaware("compare", folders[0], run)
        assert done.code == (0 if name == "same" else 3), done.err
        assert ("different truths" in done.err) == (name != "same")


@pytest.mark.parametrize("name", ["per_class.parquet", "matches_frame.parquet", "tubes.json"])
def test_a_changed_file_is_noticed(
    roadaware: Command, folders: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    shutil.copytree(folders[0], tmp_path / "run")
    path = tmp_path / "run" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    done = roadaware("compare", tmp_path / "run", tmp_path / "run")
    assert done.code == 3
    assert name in done.err


def test_a_run_is_known_by_what_is_left_of_it(folders: tuple[Path, Path]) -> None:
    assert runs.is_event_run(folders[0])
    assert not runs.is_event_run(folders[0].parent)
    assert runs.list_runs(folders[0].parent) == sorted(folders)
