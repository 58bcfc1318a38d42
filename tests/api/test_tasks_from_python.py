"""`ra.evaluate` of every task gives the numbers of the command line; wrong requests are answered in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import roadaware as ra
from roadaware.analysis.scene_tasks import TASKS, read_predictions
from roadaware.cli import main
from roadaware.demo_data import write_demo
from roadaware.demo_data.chaos import write_chaos
from roadaware.demo_data.corner_files import write_corner_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats.coco import read_results
from roadaware.formats.coda import build_predictions_index, read_corner_cases
from roadaware.protocols.coda import load_training_set
from roadaware.scenes.store import open_predictions, save

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))

from street import street

Held = tuple[ra.Scenes, ra.Predictions]
FILES = {
    "actions": ("ava", "gt.csv", "pred.csv"),
    "relations": ("vidvrd", "truth", "pred.json"),
    "grounding": ("hcstvg", "test_proc.json", "pred.json"),
    "sound": ("vggss", "vggss.json", "maps.npz"),
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Held]:
    root = tmp_path_factory.mktemp("chaos")
    write_chaos(root, videos=4)
    found = {}
    for task, (reader, truth, predictions) in FILES.items():
        scenes = ra.read(reader, root / task / truth, cache=False)
        found[task] = (scenes, read_predictions(TASKS[task], root / task / predictions, scenes))
    return found


def _ask_command(held: Held, task: str, place: Path, *more: str) -> dict[str, object]:
    scenes, predictions = held
    save(scenes, place / "truth")
    save(predictions, place / "found")
    words = ["evaluate", task, "--truth", str(place / "truth"), "--predictions", str(place / "found")]
    assert main([*words, *more, "--resamples", "20", "--json", str(place / "out.json"), "-q"]) == 0
    found: dict[str, object] = json.loads((place / "out.json").read_text())
    return found


@pytest.mark.parametrize("task", FILES)
def test_every_task_gives_the_numbers_of_the_command_and_a_page(
    held: dict[str, Held], task: str, tmp_path: Path
) -> None:
    scenes, predictions = held[task]
    result = ra.evaluate(predictions, scenes, task, resamples=20, name="mine")  # type: ignore[arg-type]
    asked = _ask_command(held[task], task, tmp_path)
    summary, intervals = asked["summary"], asked["intervals"]
    assert isinstance(summary, dict)
    assert isinstance(intervals, dict)
    assert {name: result.value(name) for name in summary} == summary
    rows = {row["metric"]: row for row in result.summary.iter_rows(named=True) if row["group"] is None}
    for name, ends in intervals.items():
        assert [rows[name]["low_video"], rows[name]["high_video"]] == pytest.approx(ends)
    assert next(iter(summary)) in result._repr_html_()
    assert result.plot().axes
    assert "mine" in result.to_html(tmp_path / "page.html").read_text()


def test_two_results_of_a_task_are_compared_on_the_same_truth_alone(held: dict[str, Held]) -> None:
    scenes, predictions = held["grounding"]
    one = ra.evaluate(predictions, scenes, "grounding", resamples=0)
    none = ra.evaluate(ra.Predictions(), scenes, "grounding", resamples=0)
    table = ra.compare(one, none, resamples=20)
    row = table.filter(table["metric"] == "m_viou").row(0, named=True)
    assert row["difference"] == one.value("m_viou")
    assert row["b"] == 0
    other = ra.evaluate(predictions, scenes, "grounding", "tubedetr-hcstvg", resamples=0)
    with pytest.raises(UsageError, match="different configs"):
        ra.compare(one, other)
    part = scenes.only(scenes.videos["video"].to_list()[:2])
    with pytest.raises(InputError, match="different ground truth"):
        ra.compare(one, ra.evaluate(ra.Predictions(), part, "grounding", resamples=0))
    with pytest.raises(UsageError, match="of the task grounding, the other of sound"):
        one.compare(ra.evaluate(held["sound"][1], held["sound"][0], "sound", resamples=0))
    with pytest.raises(UsageError, match="takes two Results"):
        ra.compare(predictions, one)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", FILES)
def test_empty_predictions_score_nothing(held: dict[str, Held], task: str) -> None:
    result = ra.evaluate(ra.Predictions(), held[task][0], task, resamples=0)  # type: ignore[arg-type]
    assert {row["value"] for row in result.summary.iter_rows(named=True) if row["valid"]} == {0.0}
    assert "<table" in result._repr_html_()


@pytest.mark.parametrize(("name", "trained_on"), [("proposals", None), ("soda10m", "soda10m")])
def test_corner_cases_are_judged_with_classes_and_without(
    name: str, trained_on: str | None, tmp_path: Path
) -> None:
    write_corner_demo(tmp_path, pictures=12)
    truth, predictions, out = (tmp_path / f"{each}.json" for each in ("corner_case", name, "out"))
    scenes = read_corner_cases(truth, None)
    words = ["evaluate", "corner-cases", "--truth", str(truth), "--predictions", str(predictions), "-q"]
    more = ["--agnostic"] if trained_on is None else ["--trained-on", trained_on]
    assert main([*words, *more, "--json", str(out)]) == 0
    categories = {} if trained_on is None else load_training_set(trained_on).categories
    index = build_predictions_index(scenes, categories)
    found = read_results(predictions, index, agnostic=trained_on is None)
    options = {} if trained_on is None else {"trained_on": trained_on}
    result = ra.evaluate(found, scenes, "corner_cases", resamples=10, **options)
    summary = json.loads(out.read_text())["summary"]
    assert {metric: result.value(metric) for metric in summary} == summary
    assert any(summary.values())
    assert result.to_html(tmp_path / "page.html").exists()
    assert result.compare(result, resamples=5)["difference"].drop_nulls().unique().to_list() == [0.0]
    nothing = ra.evaluate(ra.Predictions(), scenes, "corner_cases", resamples=0)
    assert nothing.value("corner_ar") == 0
    with pytest.raises(UsageError, match="trained-on is one of"):
        ra.evaluate(found, scenes, "corner_cases", trained_on="kitti")
    with pytest.raises(UsageError, match="did you mean agnostic"):
        ra.evaluate(found, scenes, "corner_cases", agnostics=True)


@pytest.mark.parametrize("kind", ["corner", "agent", "object"])
@pytest.mark.parametrize("way", ["numpy", "coco"])
def test_classes_of_corner_cases_count_however_they_came_in(tmp_path: Path, kind: str, way: str) -> None:
    """A dog is novel and a car common: a detector that finds both by name has all of both."""
    boxes, frames, names = [[0, 0, 40, 40], [100, 100, 160, 160]], [0, 0], ["dog", "car"]
    scenes = ra.Scenes.from_numpy(
        *(boxes, frames, "drive"),
        **{"classes": names, "labels": [0, 1], "facts": {"drive": {"width_px": 640, "height_px": 480}}},
        kind=kind,
    )
    found = ra.Predictions.from_numpy(
        *(boxes, [0.5, 0.9], frames, "drive"), classes=names, labels=[0, 1], kind=kind
    )
    if way == "coco":
        truth, results = tmp_path / "truth.json", tmp_path / "results.json"
        scenes.to_coco(truth, kind=kind)
        found.to_coco(results, scenes, kind=kind)
        scenes = ra.Scenes.from_coco(truth, kind=kind)
        found = ra.Predictions.from_coco(results, truth, kind=kind)
    result = ra.evaluate(found, scenes, "corner_cases", trained_on="coda", resamples=0)
    assert [result.value(f"{group}_ar") for group in ("corner", "common", "novel")] == [1.0, 1.0, 1.0]
    with pytest.raises(UsageError, match="say what the detector's classes are"):
        ra.evaluate(found, scenes, "corner_cases", resamples=0)
    aside = ra.evaluate(found, scenes, "corner_cases", agnostic=True, resamples=0)
    assert aside.value("corner_ar") == 1.0
    assert not aside.summary.filter(metric="common_ar")["valid"].item()


def test_pedestrians_are_sampled_predicted_and_judged(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    write_demo(tmp_path / "jaad")
    scenes = ra.sample(ra.read("jaad", tmp_path / "jaad", cache=False), "jaad-action@iv2024")
    model = ra.load_model("crossing-jaad")
    scores = model.predict(scenes)
    result = ra.evaluate(scores, scenes, "pedestrians", resamples=20)
    assert result.state is not None
    assert len(scores.samples) == len(result.state)
    assert 0 <= result.value("auc") <= 1  # type: ignore[operator]
    assert result.plot().axes
    assert "auc" in result.to_html(tmp_path / "page.html").read_text().lower()
    table = result.compare(ra.evaluate(scores, scenes, "pedestrians", resamples=0), resamples=10)
    assert set(table["difference"].drop_nulls()) == {0.0}
    with pytest.raises(UsageError, match="is a predictor of action: give it as crossing="):
        ra.watch("film.mp4", model)
    with pytest.raises(UsageError, match=r"ra\.sample"):
        model.predict(ra.Scenes())
    with pytest.raises(InputError, match="no samples"):
        ra.evaluate(scores, ra.Scenes(), "pedestrians")


@pytest.fixture(scope="module")
def sampled() -> ra.Scenes:
    return ra.sample(ra.Scenes.from_tables(street(people=6)), "jaad-action@iv2024")


def own_scores(sampled: ra.Scenes) -> pl.DataFrame:
    """Scores of the test samples, with what says of which they are."""
    names = sampled.tubes.select("tube", pedestrian="name")
    asked = sampled.samples.filter(split="test").join(names, on="tube", maintain_order="left")
    return asked.with_columns(score=np.random.default_rng(0).random(len(asked)))


@pytest.mark.parametrize(
    "keys", [("sample",), ("pedestrian", "start_frame"), ("video", "pedestrian", "tte_frames")]
)
def test_scores_of_pedestrians_are_found_by_who_and_when(sampled: ra.Scenes, keys: tuple[str, ...]) -> None:
    own = own_scores(sampled)
    in_order = ra.Predictions.from_scores(own["score"].to_list(), sampled)
    assert in_order.samples.equals(
        ra.Predictions.from_scores(own["score"].to_numpy()[:, None], sampled).samples
    )
    shuffled = own.select(*keys, "score").sample(fraction=1.0, shuffle=True, seed=1)
    assert ra.Predictions.from_scores(shuffled, sampled).samples.equals(in_order.samples)
    several = own.select(*keys, score_0=1 - pl.col("score"), score_1="score")
    assert ra.Predictions.from_scores(several, sampled).samples["scores"].arr.get(1).equals(own["score"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda own: own[2:], "2 of [0-9]+ samples have no row of scores, 0 rows are of no sample"),
        (lambda own: own.with_columns(start_frame=pl.col("start_frame") + 100_000), "first of no sample: "),
        (lambda own: pl.concat([own, own[:1]]), "2 rows of scores have pedestrian, start_frame in common"),
        (lambda own: own.drop("start_frame"), "pedestrian and one of start_frame, end_frame, tte_frames"),
        (lambda own: own.drop("score"), "expected a column score"),
        (lambda own: own.rename({"score": "score_1"}), "score_0, score_1, ... of several classes"),
        (lambda own: own.rename({"score": "score_0"}).with_columns(score_7=0.5), "found .*score_0, score_7"),
        (lambda own: own.with_columns(score=pl.lit("high")), "score should be an array of numbers"),
        (lambda own: own.with_columns(start_frame=pl.lit(0.5)), "row 0 has 0.5"),
        (lambda own: own.with_columns(pedestrian=pl.lit(None, pl.String)), "pedestrian is missing in row 0"),
        (lambda own: own["score"].to_list()[1:], "rows of scores for"),
    ],
)
def test_scores_that_fit_no_samples_are_refused(
    sampled: ra.Scenes, change: Callable[[pl.DataFrame], object], says: str
) -> None:
    own = own_scores(sampled).select("pedestrian", "start_frame", "score")
    with pytest.raises(InputError, match=says):
        ra.Predictions.from_scores(change(own), sampled)


def test_videos_of_a_dictionary_are_found_by_their_names(sampled: ra.Scenes) -> None:
    names = pl.Enum(sampled.samples["video"].unique(maintain_order=True))
    held = sampled.with_tables(samples=sampled.samples.with_columns(pl.col("video").cast(names)))
    own = own_scores(sampled).select("video", "pedestrian", "tte_frames", "score")
    found = ra.Predictions.from_scores(own, held)
    assert found.samples.equals(ra.Predictions.from_scores(own, sampled).samples)
    with pytest.raises(InputError, match="42 rows are of no sample"):
        ra.Predictions.from_scores(own.with_columns(video=pl.lit("other")), held)


def test_scores_need_samples(sampled: ra.Scenes) -> None:
    with pytest.raises(InputError, match="no samples of split 'other'"):
        ra.Predictions.from_scores([0.5], sampled, split="other")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"task": "action"}, "did you mean 'actions'"),
        ({"task": "actions", "config": "reference"}, "config of actions is one of default, ava-official"),
        ({"task": "actions", "config": 3}, "config of actions is a name or a ActionConfig"),
        ({"task": "actions", "kinds": ("agent",)}, "there is no option 'kinds'"),
        ({"task": "actions", "by": "weather"}, "weather"),
        ({"task": "actions", "resamples": -1}, "resamples is a whole number"),
        ({"task": "actions", "resamples": 1.5}, "resamples is a whole number"),
        ({"task": "sound"}, "expected the truth of sound"),
    ],
)
def test_wrong_requests_are_instructions(held: dict[str, Held], words: dict[str, object], says: str) -> None:
    scenes, predictions = held["actions"]
    with pytest.raises((UsageError, InputError), match=says):
        ra.evaluate(predictions, scenes, **words)  # type: ignore[arg-type]


def test_what_is_no_table_is_refused_with_the_way_to_one(held: dict[str, Held], tmp_path: Path) -> None:
    scenes, predictions = held["actions"]
    with pytest.raises(UsageError, match="swap the two"):
        ra.evaluate(scenes, predictions)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="from_numpy"):
        ra.evaluate(predictions.boxes, scenes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"ra\.read"):
        ra.evaluate(predictions, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="from_pandas"):
        ra.link(predictions.boxes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="share no"):
        ra.evaluate(held["relations"][1].with_tables(boxes=predictions.boxes), held["sound"][0], "road")
    elsewhere = {
        name: rows.with_columns(video=pl.col("video").cast(pl.String) + " elsewhere")
        for name, rows in predictions.filled().items()
        if "video" in rows.columns
    }
    other = predictions.with_tables(**elsewhere)
    with pytest.raises(InputError, match="share no videos"):
        ra.evaluate(other, scenes, "actions")


@pytest.mark.slow
def test_proposals_are_those_of_the_command(tmp_path: Path) -> None:
    made = tmp_path / "made"
    scenes = ra.simulate(made, preset="corner-cases", seed=3, seconds=1.0, size=(160, 90), fps=2)
    found = ra.propose(made, semantics="truth", detections="truth", theta_deg=9, reach_m=[0.5, 1.0])
    words = ["propose", str(made), "--semantics", "truth", "--detections", "truth", "--knob", "theta_deg=9"]
    assert main([*words, "--out", str(tmp_path / "out"), "-q"]) == 0
    of_command = open_predictions(tmp_path / "out" / "proposals")
    assert len(found.boxes)
    assert found.boxes.equals(of_command.boxes)
    assert found.meta == of_command.meta
    kept = ra.propose(made, tmp_path / "mine", detections=_true_boxes(scenes), stage="initial")
    assert len(kept.boxes) >= len(found.boxes)
    assert open_predictions(tmp_path / "mine" / "proposals").boxes.equals(kept.boxes)
    assert ra.evaluate(found, scenes, "corner_cases", resamples=0).value("corner_ar") is not None
    with pytest.raises(UsageError, match="did you mean theta_deg"):
        ra.propose(made, theta=9)
    with pytest.raises(UsageError, match="stage is one of initial"):
        ra.propose(made, stage="last")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no such file or folder"):
        ra.propose(tmp_path / "nothing")


def _true_boxes(scenes: ra.Scenes) -> ra.Predictions:
    columns = ("box", "video", "frame", "x1_px", "y1_px", "x2_px", "y2_px")
    return ra.Predictions(boxes=scenes.boxes.select(columns).with_columns(score=1.0))
