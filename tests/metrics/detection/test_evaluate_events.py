"""The whole evaluation of road events: laws, groups and slices, JSON, and input that does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from random_events import META, event_set

from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import DetectionResult, Slice, as_json, evaluate
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.intervals import PercentileResamples

CONFIGS = {"reference": DetectionConfig.reference(), "default": DetectionConfig.default()}
both = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
DEFAULT = CONFIGS["default"]


def judged(
    scenes: Scenes, predictions: Predictions, config: DetectionConfig = DEFAULT, **more: Any
) -> DetectionResult:
    return evaluate(predictions, scenes, config, frame_thresholds=(0.5, "0.5:0.95"), **more)


def perfect(scenes: Scenes) -> Predictions:
    """The truth as predictions, each with a score of 1."""
    width = {"agent": 3, "action": 4}
    dense = np.zeros((len(scenes.boxes), 7), dtype=np.float32)
    offset = {"agent": 0, "action": width["agent"]}
    place = dict(zip(scenes.boxes["box"], range(len(scenes.boxes)), strict=True))
    for row in scenes.labels.iter_rows(named=True):
        dense[place[row["box"]], offset[row["kind"]] + row["label"]] = 1.0
    ego = np.zeros((len(scenes.frames), 3), dtype=np.float32)
    at = {key: k for k, key in enumerate(scenes.frames.select("video", "frame").iter_rows())}
    for row in scenes.frame_labels.iter_rows(named=True):
        ego[at[row["video"], row["frame"]], row["label"]] = 1.0
    return Predictions(
        videos=scenes.videos,
        boxes=scenes.boxes.with_columns(
            pl.Series("scores", dense, dtype=pl.Array(pl.Float32, 7)), score=pl.lit(1.0)
        ),
        frames=scenes.frames.select("video", "frame").with_columns(
            pl.Series("scores", ego, dtype=pl.Array(pl.Float32, 3))
        ),
        meta=set_score_layout(set_score_layout(META, "boxes", ["agent", "action"]), "frames", ["av_action"]),
    )


def test_truth_against_itself_is_one() -> None:
    scenes, _ = event_set(2)
    scenes = scenes.with_tables(frame_labels=scenes.frame_labels.unique(["video", "frame"], keep="first"))
    result = judged(scenes, perfect(scenes))
    defined = result.summary.filter("valid")
    assert defined["value"].to_list() == pytest.approx([1.0] * len(defined), abs=1e-6)
    assert set(defined["level"]) == {"frame", "av_action"}
    reference = judged(scenes, perfect(scenes), CONFIGS["reference"]).summary.filter(pl.col("n") > 0)
    classes = reference.filter(pl.col("label").is_not_null())
    assert classes["value"].to_list() == pytest.approx([1.0] * len(classes), abs=1e-6)


@both
def test_nothing_predicted_is_zero(config: DetectionConfig) -> None:
    scenes, _ = event_set(2)
    result = judged(scenes, Predictions(), config)
    assert set(result.summary["kind"]) == {"agentness", "agent", "action", "av_action"}
    assert set(result.summary.filter("valid")["value"]) == {0.0}
    assert result.value("frame_map@0.5:agent") == 0.0


@both
def test_the_order_of_rows_changes_nothing(config: DetectionConfig) -> None:
    scenes, predictions = event_set(4)
    shuffled = predictions.with_tables(
        boxes=predictions.boxes.sample(fraction=1.0, shuffle=True, seed=1),
        frames=predictions.frames.sample(fraction=1.0, shuffle=True, seed=2),
    )
    truth = scenes.with_tables(
        boxes=scenes.boxes.sample(fraction=1.0, shuffle=True, seed=3),
        labels=scenes.labels.sample(fraction=1.0, shuffle=True, seed=4),
        frames=scenes.frames.sample(fraction=1.0, shuffle=True, seed=5),
    )
    assert judged(truth, shuffled, config).summary.equals(judged(scenes, predictions, config).summary)


@both
def test_what_holds_of_classes_without_truth(config: DetectionConfig) -> None:
    scenes, predictions = event_set(4)
    result = judged(scenes, predictions, config)
    never = result.row("frame_ap@0.5:action:Never")
    classes = [result.value(f"frame_ap@0.5:action:{label}") for label in META.vocabularies["action"]]
    assert never["n"] == 0
    if config.empty_classes == "zero":
        assert (never["value"], never["valid"]) == (0.0, True)
        assert result.value("frame_map@0.5:action") == pytest.approx(np.mean(classes))
        assert result.row("frame_map@0.5:action")["n"] == 4
    else:
        assert (never["value"], never["valid"]) == (None, False)
        assert "no truth" in never["reason"]
        assert result.value("frame_map@0.5:action") == pytest.approx(np.mean(classes[:3]))
        assert result.row("frame_map@0.5:action")["n"] == 3


def test_the_range_of_thresholds_is_the_mean_over_ten() -> None:
    scenes, predictions = event_set(4)
    ten = [k / 100 for k in range(50, 100, 5)]
    result = evaluate(predictions, scenes, DEFAULT, frame_thresholds=(*ten, "0.5:0.95"))
    each = [result.value(f"frame_ap@{value:g}:agent:Car") for value in ten]
    assert result.value("frame_ap@0.5:0.95:agent:Car") == pytest.approx(np.mean(each))
    with pytest.raises(UsageError, match=r"0\.5:0\.95"):
        evaluate(predictions, scenes, DEFAULT, frame_thresholds=("0.5:0.9",))


def test_intervals_hold_the_value_and_repeat() -> None:
    scenes, predictions = event_set(4, videos=8)
    one = judged(scenes, predictions, resamples=100, seed=3)
    row = one.row("frame_map@0.5:agent")
    assert row["low_video"] < row["value"] < row["high_video"]
    assert (row["valid_draws_video"], row["units_video"], row["caution_video"]) == (8, 8, "few units")
    assert one.summary.equals(judged(scenes, predictions, resamples=100, seed=3).summary)
    drawn = [
        judged(scenes, predictions, resamples=PercentileResamples(100), seed=s).summary for s in (3, 3, 4)
    ]
    assert drawn[0].equals(drawn[1])
    assert not drawn[0].equals(drawn[2])
    assert drawn[0]["valid_draws_video"].max() == 100
    with pytest.raises(UsageError, match="resamples"):
        judged(scenes, predictions, resamples=-1)


def test_one_video_has_no_interval() -> None:
    scenes, predictions = event_set(4, videos=1)
    assert judged(scenes, predictions, resamples=10).row("frame_map@0.5:agent")["low_video"] is None


@both
def test_a_group_is_as_good_as_a_set_of_its_own(config: DetectionConfig) -> None:
    scenes, predictions = event_set(4, videos=5)
    groups = {"v0": "day", "v1": "night", "v2": "night", "v3": "night"}
    slices = {"first": Slice(videos=["v0"])}
    result = judged(scenes, predictions, config, groups=groups, slices=slices, resamples=20)
    alone = judged(scenes.only(["v1", "v2", "v3"]), predictions, config, resamples=20)
    assert result.groups == ("day", "night", "first")
    assert result.of_group("night").drop("group").equals(alone.summary.drop("group"))
    assert result.values("first") == result.values("day")


def test_a_slice_of_boxes_asks_for_some_and_forgives_the_others() -> None:
    scenes, _ = event_set(6)
    predictions = perfect(scenes)
    small = Slice(size=pl.col("height_px") < 100)
    tagged = scenes.with_tables(boxes=scenes.boxes.with_columns(occluded=pl.col("box") % 2 == 0))
    hidden = Slice(truth=pl.col("occluded"))
    result = evaluate(predictions, tagged, DEFAULT, slices={"small": small, "hidden": hidden})
    whole, part = (
        result.row("frame_ap@0.5:agentness:agent"),
        result.row("frame_ap@0.5:agentness:agent", "hidden"),
    )
    assert 0 < part["n"] < whole["n"]
    assert part["value"] == 1.0
    assert result.value("frame_ap@0.5:agentness:agent", "small") == 1.0
    assert not result.of_group("hidden")["metric"].str.starts_with("av").any()
    with pytest.raises(UsageError, match="cannot be taken"):
        evaluate(predictions, scenes, DEFAULT, slices={"x": hidden})
    with pytest.raises(UsageError, match="true or false"):
        evaluate(predictions, scenes, DEFAULT, slices={"x": Slice(size=pl.col("height_px"))})


def test_predictions_outside_a_slice_are_wrong_nowhere() -> None:
    scenes, predictions = event_set(6, extra=3.0)
    keep = pl.col("height_px") < 100
    sized = pl.col("y2_px") - pl.col("y1_px") < 100
    result = evaluate(predictions, scenes, DEFAULT, slices={"small": Slice(size=keep)})
    rows = judged(scenes, predictions).instances("frame")
    small_truth = scenes.boxes.filter(sized)["box"].implode()
    counted = (
        rows.filter(pl.col("kind") == "agentness")
        .join(predictions.boxes.select("box", small=sized), on="box")
        .with_columns(right=pl.col("truth@0.5").is_in(small_truth))
    )
    assert counted.filter(~pl.col("small") & ~pl.col("right")).height > 0
    alone = result.counts.filter(pl.col("group") == "small", pl.col("kind") == "agentness")
    frames = scenes.frames.filter("annotated")
    asked = scenes.boxes.join(frames, on=["video", "frame"], how="semi").filter(sized)
    assert alone["truth"].to_list() == [len(asked)]


def test_ignored_truth_counts_neither_way() -> None:
    scenes, _ = event_set(6)
    predictions = perfect(scenes)
    ignore = scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=pl.col("box") % 2 == 0))
    result = judged(ignore, predictions)
    assert result.value("frame_ap@0.5:agentness:agent") == 1.0
    assert (
        result.row("frame_ap@0.5:agentness:agent")["n"]
        < judged(scenes, predictions).row("frame_ap@0.5:agentness:agent")["n"]
    )


def test_the_json_is_in_per_cent_by_level_threshold_and_kind() -> None:
    scenes, predictions = event_set(4)
    result = judged(scenes, predictions)
    found = as_json(result, {"agentness": "agent_ness"})
    assert list(found["frame"]) == ["0.5", "0.5:0.95"]
    assert found["frame"]["0.5"]["agent_ness"] == found["frame"]["0.5"]["agentness"]
    car = found["frame"]["0.5"]["agent"]["per_class"]["Car"]
    assert car == pytest.approx(100 * result.value("frame_ap@0.5:agent:Car"))
    assert found["frame"]["0.5"]["action"]["per_class"]["Never"] is None
    assert found["av_action"]["mean"] == pytest.approx(100 * result.value("av_map"))
    assert found["video"] == {}


def test_instances_hold_what_the_matches_hold() -> None:
    scenes, predictions = event_set(4)
    result = judged(scenes, predictions)
    rows, matches = result.instances("frame"), result.matches["frame"]
    assert len(rows) == len(matches)
    assert rows["hit@0.5"].to_list() == matches.hit[:, 0].tolist()
    hits = rows.filter("hit@0.5")
    assert (hits["truth@0.5"].null_count(), rows.filter(~pl.col("hit@0.5"))["truth@0.5"].count()) == (0, 0)
    assert (hits["iou"] >= 0.5).all()
    assert hits.group_by("kind", "label", "truth@0.5").len()["len"].max() == 1
    met = hits.join(scenes.boxes, left_on="truth@0.5", right_on="box")
    assert (met["video"] == met["video_right"]).all()
    labels = result.instances("av_action")
    assert labels["hit"].sum() == result.matches["av_action"].hit.sum()


def test_predictions_elsewhere_are_left_out_and_counted() -> None:
    scenes, predictions = event_set(4)
    result = judged(scenes.only(["v0", "v2"]), predictions)
    assert any("in videos that the truth does not have were left out" in note for note in result.notes)
    late = predictions.boxes.with_columns(frame=pl.when(pl.col("box") < 3).then(900).otherwise("frame"))
    found = judged(scenes, predictions.with_tables(boxes=late))
    assert "3 predicted boxes in frames that the truth does not have were left out" in found.notes
    made_up = predictions.boxes.with_columns(interpolated=pl.col("box") < 5)
    found = judged(scenes, predictions.with_tables(boxes=made_up))
    assert "5 interpolated boxes are no predictions of frames" in found.notes
    assert not any("interpolated" in what for what in found.left_out)
    kept = judged(scenes, predictions.with_tables(boxes=made_up), replace(DEFAULT, interpolated_boxes=True))
    assert kept.values() == judged(scenes, predictions).values()


def test_no_truth_at_all_is_an_error() -> None:
    scenes, predictions = event_set(4)
    empty = Scenes(videos=scenes.videos, frames=scenes.frames, meta=scenes.meta)
    with pytest.raises(InputError, match="there is no truth"):
        judged(empty, predictions)
    unknown = scenes.with_tables(frames=scenes.frames.drop("annotated"))
    with pytest.raises(InputError, match="which frames were annotated"):
        judged(unknown, predictions)


def test_labels_that_the_truth_does_not_know_are_an_error() -> None:
    scenes, predictions = event_set(4)
    vocabularies = {**predictions.meta.vocabularies, "agent": ("Ped", "Car", "Tram")}
    other = predictions.with_tables(meta=replace(predictions.meta, vocabularies=vocabularies))
    with pytest.raises(InputError, match="agent 'Tram'"):
        judged(scenes, other)


def test_kinds_can_be_chosen_and_unknown_ones_are_refused() -> None:
    scenes, predictions = event_set(4)
    assert set(judged(scenes, predictions, kinds=["agent"]).summary["kind"]) == {"agent"}
    assert set(judged(scenes, predictions, kinds=["av_action"]).summary["kind"]) == {"av_action"}
    with pytest.raises(UsageError, match="event"):
        judged(scenes, predictions, kinds=["event"])


def test_scores_of_labels_rows_are_as_good_as_dense_ones() -> None:
    scenes, predictions = event_set(4)
    dense = np.stack(predictions.boxes["scores"].to_list())
    names = [(kind, k) for kind in ("agent", "action") for k in range(len(META.vocabularies[kind]))]
    rows = [(box, *name, float(dense[box, c])) for box in range(len(dense)) for c, name in enumerate(names)]
    labels = pl.DataFrame(rows, schema=["box", "kind", "label", "score"], orient="row")
    sparse = Predictions(
        videos=predictions.videos,
        boxes=predictions.boxes.drop("scores"),
        labels=labels,
        frames=predictions.frames,
        meta=set_score_layout(META, "frames", ["av_action"]),
    )
    assert judged(scenes, sparse).values() == pytest.approx(judged(scenes, predictions).values())


def test_missing_scores_are_an_error() -> None:
    scenes, predictions = event_set(4)
    gaps = predictions.boxes.with_columns(score=pl.when(pl.col("box") < 60).then(None).otherwise("score"))
    with pytest.raises(InputError, match=r"\d+ rows of the predictions' boxes have no score"):
        judged(scenes, predictions.with_tables(boxes=gaps))
