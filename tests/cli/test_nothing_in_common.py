"""Predictions on something else than the truth are an error that says why; of nothing, or of a part, are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.analysis.doctor.data import check_overlap, reject_zero_score
from roadaware.analysis.evaluation.events import explain_low_scores
from roadaware.errors import InputError
from roadaware.geometry.boxes import paired_iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes

TABLES = ("boxes", "tubes", "frames", "videos")


def renamed(predictions: Predictions, prefix: str, videos: int | None = None) -> Predictions:
    """The same predictions about videos of other names: all, or the first so many."""
    names = predictions.videos["video"].cast(pl.String).to_list()[:videos]
    new = {name: prefix + name for name in names}
    changed = {
        name: getattr(predictions, name).with_columns(pl.col("video").cast(pl.String).replace(new))
        for name in TABLES
        if len(getattr(predictions, name))
    }
    return predictions.with_tables(**changed)


def later(predictions: Predictions, frames: int) -> Predictions:
    return predictions.with_tables(
        videos=predictions.videos.drop("n_frames", strict=False),
        **{n: getattr(predictions, n).with_columns(pl.col("frame") + frames) for n in ("boxes", "frames")},
    )


def classes(predictions: Predictions) -> Predictions:
    held = {kind: tuple(f"other {label}" for label in v) for kind, v in predictions.meta.vocabularies.items()}
    return predictions.with_tables(meta=replace(predictions.meta, vocabularies=held))


WRONG: dict[str, tuple[Any, str]] = {
    "videos": (lambda predictions: renamed(predictions, "other-"), "share no videos"),
    "frames": (lambda predictions: later(predictions, 1000), "share no frame"),
    "classes": (classes, "share no class"),
}


@pytest.mark.parametrize("case", WRONG)
def test_events_of_another_set_are_refused(
    roadaware: Command, events: Events, tmp_path: Path, case: str
) -> None:
    change, says = WRONG[case]
    save(change(events.predictions), tmp_path / "predictions")
    done = roadaware("evaluate", "road", "--truth", events.truth, "--predictions", tmp_path / "predictions")
    assert done.code == 3, done.out
    assert says in done.err


def test_events_of_a_part_are_judged_and_both_sides_counted(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    save(renamed(events.predictions, "other-", 1), tmp_path / "predictions")
    done = roadaware("evaluate", "road", "--truth", events.truth, "--predictions", tmp_path / "predictions")
    assert done.code == 0, done.err
    assert "in videos that the truth lacks" in done.out
    assert "judged videos without any detection" in done.out


def test_a_detector_that_found_nothing_scores_0(roadaware: Command, events: Events, tmp_path: Path) -> None:
    nothing = events.predictions.with_tables(boxes=events.predictions.boxes.clear())
    save(nothing, tmp_path / "predictions")
    done = roadaware("evaluate", "road", "--truth", events.truth, "--predictions", tmp_path / "predictions")
    assert done.code == 0, done.err


def small() -> tuple[Scenes, Predictions]:
    """Two videos of ten frames with a box that moves, and predictions on every box."""
    frames = [(video, frame) for video in ("a", "b") for frame in range(10)]
    rows = {
        "video": [video for video, _ in frames],
        "frame": [frame for _, frame in frames],
        "x1_px": [40.0 * frame for _, frame in frames],
        "y1_px": [10.0] * 20,
        "x2_px": [40.0 * frame + 20 for _, frame in frames],
        "y2_px": [60.0] * 20,
    }
    boxes = pl.DataFrame(rows).with_row_index("box").cast({"box": pl.Int64})
    videos = pl.DataFrame({"video": ["a", "b"], "width_px": [640, 640], "height_px": [480, 480]})
    table = boxes.select("video", "frame", annotated=pl.lit(value=True))
    truth = Scenes(videos=videos, frames=table, boxes=boxes, meta=Meta(dataset="small"))
    return truth, Predictions(boxes=boxes.with_columns(score=pl.lit(0.5)))


def test_what_one_side_lacks_is_counted_on_both() -> None:
    truth, predictions = small()
    assert check_overlap(predictions, truth, where="predictions") == ()
    part = predictions.with_tables(
        boxes=predictions.boxes.with_columns(pl.col("video").replace({"b": "c"}), pl.col("frame") + 4)
    )
    told = check_overlap(part, truth, where="predictions")
    assert [word in " ".join(told) for word in ("not in the truth", "no prediction", "4 of 10 frames")] == [
        True
    ] * 3
    assert check_overlap(Predictions(), truth, where="predictions") == ()


def test_frames_of_another_set_are_refused_though_nothing_was_found_in_them() -> None:
    truth, _ = small()
    for video in ("a", "zz"):
        looked = Predictions(frames=pl.DataFrame({"video": [video], "frame": [0]}))
        if video == "zz":
            with pytest.raises(InputError, match="share no videos"):
                check_overlap(looked, truth, where="predictions")
        else:
            assert "no prediction" in " ".join(check_overlap(looked, truth, where="predictions"))
            assert check_overlap(looked, truth, where="predictions", table="relations") == ()


def test_frames_that_count_otherwise_are_explained() -> None:
    truth, predictions = small()
    even = truth.with_tables(
        frames=truth.frames.with_columns(annotated=pl.col("frame") % 2 == 0),
        boxes=truth.boxes.filter(pl.col("frame") % 2 == 0),
    )
    odd = predictions.with_tables(boxes=predictions.boxes.filter(pl.col("frame") % 2 == 1))
    with pytest.raises(InputError, match="share no frame") as raised:
        check_overlap(odd, even, where="predictions")
    assert "add -1 to every frame" in (raised.value.hint or "")


def test_a_bad_detector_is_not_told_to_scale_its_boxes_nor_a_late_one_to_hide_it() -> None:
    truth, predictions = small()
    low, late = pl.DataFrame({"metric": ["ap"], "value": [0.1]}), pl.col("frame") + 5
    short = {"x1_px": pl.col("x1_px") / 3, "x2_px": pl.col("x2_px") / 3}
    told = {
        name: " ".join(explain_low_scores(low, predictions.with_tables(boxes=boxes), truth, "predictions"))
        for name, boxes in {
            "aside": predictions.boxes.with_columns(
                pl.col("y1_px", "y2_px") * 1.09, pl.col("x1_px", "x2_px") + 14
            ),
            "small": predictions.boxes.with_columns(**short),
            "late": predictions.boxes.with_columns(late).filter(pl.col("frame") < 10),
        }.items()
    }
    assert not told["aside"]
    assert "of another size: about 0.33" in told["small"]
    assert "add -5 to every frame, or the detector lags: then leave them" in told["late"]


def test_a_zero_with_a_cause_is_refused_and_one_without_is_a_result() -> None:
    truth, predictions = small()
    late = predictions.with_tables(boxes=predictions.boxes.with_columns(pl.col("frame") + 1))
    with pytest.raises(InputError, match="1 frames late"):
        reject_zero_score(None, late, truth, "predictions")
    rng = predictions.boxes.with_columns(pl.col("y1_px", "y2_px") + 300.0)
    reject_zero_score(None, predictions.with_tables(boxes=rng), truth, "predictions")


@pytest.mark.slow
@pytest.mark.parametrize("n_predictions", [1, 2, 3, 8])
@pytest.mark.parametrize("n_truth", [1, 3, 20])
def test_a_bad_model_is_no_mistake_however_few_boxes_there_are(n_predictions: int, n_truth: int) -> None:
    """Among many readings one fits a handful by chance; small boxes off their place are a model's."""
    rng = np.random.default_rng(n_predictions)
    told = zeros = 0
    for _ in range(40):
        low, side = rng.uniform(0, 400, (n_truth, 2)), rng.uniform(20, 300, (n_truth, 2))
        frames, of = rng.integers(0, 5, n_truth), rng.integers(0, n_truth, n_predictions)
        at = low[of] + rng.normal(0, 0.2, (n_predictions, 2)) * side[of]
        predicted = boxes_at(
            np.hstack([at, at + side[of] * rng.uniform(0.3, 0.44, (n_predictions, 1))]), frames[of]
        )
        true_boxes = boxes_at(np.hstack([low, low + side]), frames)
        pairs = predicted.join(true_boxes, on="frame", suffix="_true")
        true_corners = [f"{name}_true" for name in CORNERS]
        if paired_iou(pairs.select(CORNERS).to_numpy(), pairs.select(true_corners).to_numpy()).max() >= 0.2:
            continue  # scores something
        zeros += 1
        truth, _ = small()
        true = truth.with_tables(frames=truth.frames.clear(), boxes=true_boxes)
        try:
            reject_zero_score(
                None, Predictions(boxes=predicted.with_columns(score=pl.lit(0.5))), true, "predictions"
            )
        except InputError:
            told += 1
    assert told == 0
    assert zeros >= 5


def test_a_person_who_stands_still_is_one_box() -> None:
    truth, predictions = small()
    still = np.tile([500.0, 100.0, 600.0, 400.0], (100, 1))
    halves = np.tile([500.0, 100.0, 550.0, 250.0], (100, 1))
    true = truth.with_tables(frames=truth.frames.clear(), boxes=boxes_at(still, np.arange(100)))
    reject_zero_score(
        None, predictions.with_tables(boxes=boxes_at(halves, np.arange(100))), true, "predictions"
    )


def boxes_at(corners: np.ndarray, frames: np.ndarray) -> pl.DataFrame:
    """Boxes of video a."""
    sides = {name: corners[:, k] for k, name in enumerate(CORNERS)}
    return pl.DataFrame({"box": np.arange(len(frames)), "video": "a", "frame": frames, **sides}).cast(
        dict.fromkeys(CORNERS, pl.Float32)
    )


@pytest.mark.parametrize("table", ["relations", "queries", "sounds"])
def test_predictions_of_another_task_are_refused(events: Events, table: str) -> None:
    with pytest.raises(InputError, match=f"expected predictions with {table}, found none, but .* boxes"):
        check_overlap(events.predictions, events.scenes, where="predictions", table=table)
    nothing = events.predictions.with_tables(
        **{name: getattr(events.predictions, name).clear() for name in TABLES}
    )
    assert check_overlap(nothing, events.scenes, where="predictions", table=table) == ()
