"""The metrics of corner cases: by hand, laws of the state, slices, trivial answers, what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from coco_sets import random_set, read_back, with_corners

from roadaware.errors import InputError, UsageError
from roadaware.metrics.corner_cases.evaluate import IN_SLICES, UNANSWERED, JudgedCorners, evaluate
from roadaware.metrics.corner_cases.matching import CornerConfig
from roadaware.metrics.metric_state import as_json, compute_values
from roadaware.scenes.tables import Meta, Predictions, Scenes

EVERY = CornerConfig(groups=("corner", "common", "novel", "all"), precision="always")


def truth_of(boxes: list[dict[str, Any]], pictures: int = 2, **meta: Any) -> Scenes:
    """Images of 200 x 100 pixels with some boxes; corners are given as one list."""
    rows = [
        {
            "box": n,
            "video": "a",
            "frame": 0,
            "corner_case": True,
            "common": None,
            "novel": True,
            **dict(zip(("x1_px", "y1_px", "x2_px", "y2_px"), map(float, row.pop("at")), strict=True)),
            **row,
        }
        for n, row in enumerate(boxes)
    ]
    names = [chr(ord("a") + n) for n in range(pictures)]
    videos = {"video": names, "width_px": [200] * pictures, "height_px": [100] * pictures}
    weather = ["Clear" if n % 2 == 0 else "Rainy" for n in range(pictures)]
    schema = {"common": pl.String, "video": pl.String}
    return Scenes(
        videos=pl.DataFrame({**videos, "weather": weather}),
        frames=pl.DataFrame({"video": names, "frame": [0] * pictures, "annotated": [True] * pictures}),
        boxes=pl.DataFrame(rows, schema_overrides=schema),
        meta=Meta(**meta),
    )


def predictions_of(boxes: list[dict[str, Any]], **notes: Any) -> Predictions:
    """Predictions; corners are given as one list."""
    rows = [
        {
            "box": n,
            "video": "a",
            "frame": 0,
            "score": 0.5,
            "common": None,
            "novel": False,
            **dict(zip(("x1_px", "y1_px", "x2_px", "y2_px"), map(float, row.pop("at")), strict=True)),
            **row,
        }
        for n, row in enumerate(boxes)
    ]
    schema = {"common": pl.String, "video": pl.String}
    return Predictions(boxes=pl.DataFrame(rows, schema_overrides=schema), meta=Meta(notes=notes))


def worked() -> tuple[Scenes, Predictions]:
    """A dog met at IoU 0.6, a car met exactly, a pedestrian and a cone missed."""
    truth = truth_of(
        [
            {"at": (0, 0, 10, 10)},
            {"at": (100, 0, 200, 100), "common": "vehicle", "novel": False, "corner_case": False},
            {"at": (50, 50, 60, 70), "video": "b", "common": "pedestrian", "novel": False},
            {"at": (0, 50, 40, 90), "video": "b"},
        ]
    )
    predictions = predictions_of(
        [
            {"at": (0, 0, 10, 6), "novel": True, "score": 0.4},
            {"at": (100, 0, 200, 100), "common": "vehicle", "score": 0.9},
            {"at": (50, 50, 60, 70), "video": "b", "common": "vehicle", "score": 0.3},
        ]
    )
    return truth, predictions


def test_worked_by_hand() -> None:
    found = evaluate(worked()[1], worked()[0], EVERY).values()
    # Corner cases are the dog (IoU 0.6: met at 0.5, 0.55 and 0.6), the pedestrian (met exactly by a vehicle,
    # which does not matter here) and the cone, which is missed.
    assert found["corner_ar"] == pytest.approx((0.3 + 1 + 0) / 3)
    assert found["corner_ar50"] == pytest.approx(2 / 3)
    assert found["corner_ar75"] == pytest.approx(1 / 3)
    # The first prediction of image a is the vehicle, so that the dog is met from the second on.
    assert found["corner_ar1"] == pytest.approx(1 / 3)
    assert found["corner_ar_small"] == pytest.approx((0.3 + 1) / 2)
    assert found["corner_ar_medium"] == 0
    assert found["corner_ar_large"] is None
    # Of the two common classes vehicles are all met, pedestrians are called vehicles.
    assert found["common_ar"] == pytest.approx((1 + 0) / 2)
    assert found["novel_ar"] == pytest.approx((0.3 + 0) / 2)
    assert found["all_ar"] == pytest.approx((0.3 + 1 + 1 + 0) / 4)
    # Vehicles by falling score: right, wrong; the envelope is 1 up to a recall of 1. Pedestrians: nothing.
    assert found["common_ap50"] == pytest.approx((1 + 0) / 2)


def test_an_object_at_the_bound_of_two_sizes_belongs_to_both() -> None:
    truth = truth_of([{"at": (0, 0, 32, 32)}, {"at": (0, 0, 96, 96), "video": "b"}])
    found = evaluate(
        predictions_of([{"at": (0, 0, 32, 32), "novel": True, "score": 0.4}]), truth, EVERY
    ).values()
    assert found["corner_ar_small"] == 1
    assert found["corner_ar_medium"] == pytest.approx(1 / 2)
    assert found["corner_ar_large"] == 0


def test_corner_cases_alone_give_no_precision_unless_it_is_asked_for() -> None:
    truth, predictions = worked()
    usual = evaluate(predictions, truth)
    assert usual.value("corner_ap") is None
    assert "would count as false" in usual.row("corner_ap")["reason"]
    assert usual.value("common_ap") is not None, "a car that is no corner case is annotated"
    rare = truth.with_tables(boxes=truth.boxes.with_columns(corner_case=pl.lit(value=True)))
    assert evaluate(predictions, rare).value("common_ap") is None
    never = evaluate(predictions, truth, CornerConfig(precision="never"))
    assert not any("_ap" in metric for metric in never.values())


def test_common_corner_cases_alone() -> None:
    truth, predictions = worked()
    alone = evaluate(predictions, truth, CornerConfig(common_truth="corner"))
    assert alone.value("common_ar") == 0
    assert alone.row("common_ar")["n"] == 1


def test_what_predictions_cannot_answer_is_undefined_with_the_reason() -> None:
    truth, predictions = worked()
    plain = Predictions(boxes=predictions.boxes.drop("common", "novel"))
    found = evaluate(plain, truth)
    assert found.value("corner_ar") == pytest.approx(1.3 / 3)
    assert found.value("common_ar") is None
    assert found.row("novel_ar")["reason"] == "the predictions do not say what they are"
    told = predictions.with_tables(meta=Meta(notes={UNANSWERED: {"novel": "no class for it"}}))
    assert evaluate(told, truth).row("novel_ar")["reason"] == "no class for it"
    assert evaluate(told, truth).value("common_ar") == pytest.approx(0.5)


def test_no_predictions_find_nothing() -> None:
    truth, predictions = worked()
    none = predictions.with_tables(boxes=predictions.boxes.head(0))
    found = evaluate(none, truth, EVERY).values()
    assert found["corner_ar"] == found["common_ar"] == found["all_ap"] == 0


def test_the_truth_predicted_is_found_whole() -> None:
    truth, _ = worked()
    corners = ("x1_px", "y1_px", "x2_px", "y2_px")
    boxes = truth.boxes.select("box", "video", "frame", *corners, "common", "novel", score=pl.lit(0.5))
    found = evaluate(Predictions(boxes=boxes), truth, EVERY).values()
    few = {"corner_ar1", "common_ar1", "novel_ar1", "all_ar1"}
    precise = {metric for metric in found if "_ap" in metric and metric.startswith(("corner", "novel"))}
    assert {found[metric] for metric in set(found) - few - precise} == {1.0, None}
    assert found["corner_ap"] < 1, "predictions of what is no corner case are false among corner cases"


def test_the_order_of_rows_changes_nothing() -> None:
    truth, predictions = worked()
    turned = truth.with_tables(boxes=truth.boxes.reverse(), frames=truth.frames.reverse())
    back = predictions.with_tables(boxes=predictions.boxes.reverse())
    assert evaluate(back, turned, EVERY).values() == evaluate(predictions, truth, EVERY).values()


def test_trivial_answers_stand_beside_every_number() -> None:
    truth, predictions = worked()
    found = evaluate(predictions, truth, by=("weather",))
    # The whole image meets the car (IoU 0.5) and nothing else.
    assert found.baselines["whole image"]["common_ar50"] == pytest.approx(1 / 2)
    assert found.baselines["whole image"]["corner_ar50"] == 0
    within = found.facts[IN_SLICES]
    assert set(within) == set(found.groups) == {"weather: Clear", "weather: Rainy"}
    assert within["weather: Clear"]["whole image"]["common_ar50"] == 1
    recalled = {name for name in found.values() if "_ap" not in name and ":" not in name}
    assert set(within["weather: Clear"]["random boxes"]) == recalled
    assert evaluate(predictions, truth).baselines == found.baselines
    sizeless = truth.with_tables(videos=truth.videos.drop("width_px", "height_px"))
    bare = evaluate(predictions, sizeless)
    assert bare.baselines == {}
    assert any("unknown size" in note for note in bare.notes)


@pytest.mark.parametrize("config", [CornerConfig(), EVERY, CornerConfig.coda2022()])
def test_trivial_answers_are_judged_as_the_predictions_are(config: CornerConfig) -> None:
    truth, predictions = worked()
    found = evaluate(predictions, truth, config)
    for answer in found.baselines.values():
        assert set(answer) == {name for name in found.values() if ":" not in name}
    # One prediction an image and class, of which the vehicle's alone is right, at an overlap of 0.5; the
    # other image's comes after it at an equal score and is wrong, and no pedestrian is met.
    whole = found.baselines["whole image"]
    assert whole["common_ap50"] == pytest.approx(1 / 2)
    assert whole["common_ap75"] == 0
    if config.total:
        parts = ("common_ap", "all_ap", "all_ar", "corner_ar")
        assert whole["total"] == pytest.approx(sum(whole[part] or 0.0 for part in parts))


def test_slices_are_the_parts_alone() -> None:
    truth, predictions = worked()
    found = evaluate(predictions, truth, EVERY, by=("weather", "density"))
    alone = evaluate(
        predictions.with_tables(boxes=predictions.boxes.filter(pl.col("video") == "a")),
        truth.only(["a"]),
        EVERY,
    )
    there = {metric: value for metric, value in found.values("weather: Clear").items() if value is not None}
    assert there == {metric: value for metric, value in alone.values().items() if value is not None}
    with pytest.raises(UsageError, match="period"):
        evaluate(predictions, truth, by=("period",))


def test_a_slice_without_objects_is_undefined() -> None:
    truth, predictions = worked()
    wider = truth_of([{"at": (0, 0, 5, 5)}], pictures=3)
    both = wider.with_tables(boxes=truth.boxes)
    found = evaluate(predictions, both, by=("density",))
    assert found.groups == ("density: 0", "density: 2-4")
    assert set(found.values("density: 0").values()) == {None}
    assert found.row("corner_ar", "density: 0")["reason"] == "there is no such object"


def test_super_classes_and_classes() -> None:
    truth, predictions = worked()
    kinds = {
        "corner": ("dog", "car", "pedestrian", "cone"),
        "corner_super": ("animal", "vehicle", "facility"),
    }
    rows = [(0, "corner", 0), (3, "corner", 3), (0, "corner_super", 0), (3, "corner_super", 2)]
    labels = pl.DataFrame(rows, schema=["box", "kind", "label"], orient="row")
    named = truth.with_tables(labels=labels, meta=Meta(vocabularies=kinds))
    found = evaluate(predictions, named)
    classes = found.classes()
    assert classes["animal"]["corner_ar"]["value"] == pytest.approx(0.3)
    assert classes["facility"]["corner_ar50"]["value"] == 0
    assert not classes["vehicle"]["corner_ar"]["valid"]
    assert classes["pedestrian"]["common_ar"]["value"] == 0
    table = found.instances("class")
    assert table.filter(pl.col("label") == "dog").select("objects", "ar50").row(0) == (1, 1.0)
    objects = found.instances("object").filter(pl.col("group") == "corner")
    assert objects.sort("box").select("label", "size", "rank").rows() == [
        ("dog", "small", 1),
        (None, "small", 0),
        ("cone", "medium", None),
    ]
    assert objects.sort("box")["best_iou"].to_list() == pytest.approx([0.6, 1.0, 0.0])


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenes, Predictions, JudgedCorners]:
    truth, results = random_set(2, pictures=10)
    scenes, predictions = read_back(truth, results, tmp_path_factory.mktemp("set"))
    common = np.where(scenes.boxes["box"].to_numpy() % 2 == 0, "vehicle", None)
    scenes = with_corners(scenes, [n % 3 > 0 for n in range(len(scenes.boxes))])
    scenes = scenes.with_tables(
        boxes=scenes.boxes.with_columns(
            common=pl.Series(common, dtype=pl.String),
            novel=pl.Series(common == None),  # noqa: E711
        )
    )
    n = len(predictions.boxes)
    said = np.where(np.arange(n) % 3 == 0, "vehicle", None)
    predictions = predictions.with_tables(
        boxes=predictions.boxes.with_columns(
            common=pl.Series(said, dtype=pl.String),
            novel=pl.Series(np.arange(n) % 2 == 0),
            score=pl.Series(np.random.default_rng(1).permutation(n) / n),
        )
    )
    state = evaluate(predictions, scenes, replace(EVERY, groups=(*EVERY.groups, "classes"))).state
    assert isinstance(state, JudgedCorners)
    return scenes, predictions, state


def test_parts_merge_to_the_whole(judged: tuple[Scenes, Predictions, JudgedCorners]) -> None:
    scenes, predictions, whole = judged
    names = list(whole.videos)
    parts = []
    for part in (names[:4], names[4:]):
        boxes = predictions.boxes.filter(pl.col("video").cast(pl.String).is_in(part))
        one = evaluate(
            predictions.with_tables(
                boxes=boxes, labels=predictions.labels.filter(pl.col("box").is_in(boxes["box"].implode()))
            ),
            scenes.only(part),
            whole.config,
        )
        assert isinstance(one.state, JudgedCorners)
        parts.append(one.state)
    merged = parts[0].merge(parts[1])
    assert compute_values(merged) == compute_values(whole)
    assert compute_values(merged.only(np.arange(len(names)) < 4)) == compute_values(parts[0])
    with pytest.raises(InputError, match="both parts hold"):
        merged.merge(parts[0])
    with pytest.raises(InputError, match="different configurations"):
        parts[0].merge(replace(parts[1], config=CornerConfig()))


def test_a_picture_drawn_twice_is_two_equal_pictures(
    judged: tuple[Scenes, Predictions, JudgedCorners],
) -> None:
    *_, state = judged
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, (4, len(state.videos))).astype(np.int32)
    drawn = {(m.metric, m.label): m.values for m in state.measured(weights)}
    for draw, weight in enumerate(weights):
        copies = None
        for time in range(2):
            part = state.only(weight > time)
            names = part.items["video"] + f" {time}"
            part = replace(part, items=part.items.with_columns(video=names))
            copies = part if copies is None else copies.merge(part)
        assert copies is not None
        for metric, value in compute_values(copies).items():
            found = drawn[metric, None][draw]
            if value is None:
                assert np.isnan(found)
            else:
                assert found == pytest.approx(value, abs=1e-12), metric


def test_a_state_survives_its_file(judged: tuple[Scenes, Predictions, JudgedCorners]) -> None:
    *_, state = judged
    again = JudgedCorners.unpacked(*state.packed())
    assert compute_values(again) == compute_values(state)


def test_intervals_hold_the_value(judged: tuple[Scenes, Predictions, JudgedCorners]) -> None:
    scenes, predictions, _ = judged
    found = evaluate(predictions, scenes, resamples=60)
    row = found.row("corner_ar")
    assert row["low_video"] <= row["value"] <= row["high_video"]
    assert as_json(found)["intervals"]["corner_ar"] == [row["low_video"], row["high_video"]]
    assert evaluate(predictions, scenes, resamples=60).summary.equals(found.summary)


def test_what_is_left_out_is_counted() -> None:
    truth, predictions = worked()
    boxes = truth.boxes.with_columns(ignore=pl.col("box") == 3)
    extra = predictions.boxes.head(1).with_columns(box=pl.lit(9, dtype=pl.Int64), video=pl.lit("z"))
    foreign = predictions.with_tables(boxes=pl.concat([predictions.boxes, extra]))
    found = evaluate(foreign, truth.with_tables(boxes=boxes))
    assert found.left_out == {
        "predictions on images that the truth lacks": 1,
        "objects that are marked as not asked for": 1,
    }
    assert found.row("corner_ar")["n"] == 2
    nobody = evaluate(predictions, truth.with_tables(boxes=truth.boxes.drop("corner_case")))
    assert any("all are taken for corner cases" in note for note in nobody.notes)
    assert nobody.row("corner_ar")["n"] == 4


def test_refusals() -> None:
    truth, predictions = worked()
    with pytest.raises(InputError, match="score"):
        evaluate(predictions.with_tables(boxes=predictions.boxes.drop("score")), truth)
    lost = predictions.with_tables(boxes=predictions.boxes.with_columns(frame=pl.lit(7, dtype=pl.Int64)))
    with pytest.raises(InputError, match="none of 3 predictions is about one of the 2 images"):
        evaluate(lost, truth)
    blank = truth.with_tables(frames=truth.frames.with_columns(annotated=pl.lit(value=False)))
    with pytest.raises(InputError, match="no annotated frame"):
        evaluate(predictions, blank)
    with pytest.raises(InputError, match="none of 0 true boxes"):
        evaluate(predictions, truth.with_tables(boxes=truth.boxes.head(0)))
    with pytest.raises(UsageError, match="rise"):
        CornerConfig(max_detections=(10, 1, 100))
    with pytest.raises(UsageError, match="groups are some of"):
        CornerConfig(groups=())
    with pytest.raises(UsageError, match="marked, crowds"):
        CornerConfig(ignored="all")  # type: ignore[arg-type]
