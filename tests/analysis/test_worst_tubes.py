"""Worst tubes: hand-made cases of what is missed and what is false, and strips that survive JSON."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.worst_tubes import Strip, select_worst_tubes
from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.scenes.tables import Meta, Predictions, Scenes

META = Meta(dataset="x", vocabularies={"agentness": ("agentness",), "agent": ("Ped", "Car")})


def tables(
    tracks: list[dict[str, object]], size: tuple[int, int], *, predicted: bool
) -> dict[str, pl.DataFrame]:
    """Tracks with `frames`, `box`, `label` and `score` as tables."""
    boxes, tubes, labels = [], [], []
    for number, track in enumerate(tracks):
        frames, box = list(track["frames"]), track["box"]  # type: ignore[call-overload]
        score = {"score": track["score"]} if predicted else {}
        for frame in frames:
            edges = dict(zip(("x1_px", "y1_px", "x2_px", "y2_px"), map(float, box), strict=True))  # type: ignore[arg-type]
            boxes.append({"box": len(boxes), "video": "v", "frame": frame, "tube": number, **edges, **score})
        tube = {"video": "v", "start_frame": frames[0], "end_frame": frames[-1] + 1, **score}
        tubes.append({"tube": number, "parent": None, "kind": None, "spans": None, **tube})
        span = [[frames[0], frames[-1] + 1]]
        tubes.append({"tube": 100 + number, "parent": number, "kind": "agent", "spans": span, **tube})
        labels.append({"tube": 100 + number, "kind": "agent", "label": track["label"], **score})
    videos = pl.DataFrame({"video": ["v"], "width_px": [size[0]], "height_px": [size[1]], "n_frames": [40]})
    frames_table = pl.DataFrame({"video": ["v"] * 40, "frame": range(40), "annotated": [True] * 40})
    found = {
        "videos": videos,
        "boxes": pl.DataFrame(boxes),
        "tubes": pl.DataFrame(tubes, schema_overrides={"parent": pl.Int64, "kind": pl.String}),
        "tube_labels": pl.DataFrame(labels),
    }
    return found if predicted else {**found, "frames": frames_table}


TRUTH = Scenes(
    meta=META,
    **tables(
        [
            {"frames": range(30), "box": (10, 10, 50, 90), "label": 0},
            {"frames": range(20), "box": (200, 10, 260, 90), "label": 1},
        ],
        (400, 200),
        predicted=False,
    ),
)
PREDICTIONS = Predictions(
    meta=META,
    **tables(
        [
            {"frames": range(10), "box": (5, 5, 25, 45), "label": 0, "score": 0.6},
            {"frames": range(20), "box": (100, 5, 130, 45), "label": 1, "score": 0.9},
            {"frames": range(30, 36), "box": (5, 60, 25, 90), "label": 1, "score": 0.8},
        ],
        (200, 100),
        predicted=True,
    ),
)


def test_the_long_missed_tube_and_the_confident_false_one_are_shown() -> None:
    missed, *false = select_worst_tubes(PREDICTIONS, TRUTH, DetectionConfig.default(), kind="agent", most=4)
    assert missed.says == "missed: Ped in v, frames 0 to 29; nearest is Ped, score 0.60, overlap 0.33"
    assert missed.truth_spans == ((0, 30),)
    assert missed.prediction_spans == ((0, 10),)
    assert missed.frames.tolist() == [0, 4, 8, 12, 17, 21, 25, 29]
    assert missed.truth_px[0].tolist() == [10, 10, 50, 90]
    assert missed.prediction_px[0].tolist() == [10, 10, 50, 90]  # predictions are in images of half the size
    assert np.isnan(missed.prediction_px[3]).all()
    assert [strip.says for strip in false] == [
        "false: Car in v, score 0.80",
        "false: Ped in v, score 0.60; nearest is Ped, overlap 0.33",
    ]
    assert false[0].truth_spans == ()


def test_without_tubes_there_is_nothing_to_show() -> None:
    assert select_worst_tubes(Predictions(meta=META), TRUTH, DetectionConfig.default()) == []


def test_boxes_of_consecutive_tubes_stand_where_they_are_predicted() -> None:
    late = (pl.col("tube") == 2) & (pl.col("frame") >= 33)
    spread = pl.when(late).then(pl.col("frame") + 3).otherwise("frame")
    spans = PREDICTIONS.tubes["spans"].to_list()
    spans[PREDICTIONS.tubes["tube"].to_list().index(102)] = [[30, 39]]
    predictions = PREDICTIONS.with_tables(
        boxes=PREDICTIONS.boxes.with_columns(frame=spread),
        tubes=PREDICTIONS.tubes.with_columns(pl.Series("spans", spans), consecutive=pl.lit(True)),
    )
    strips = select_worst_tubes(predictions, TRUTH, DetectionConfig.default(), kind="agent", most=4)
    assert next(strip for strip in strips if "0.80" in strip.says).prediction_spans == ((30, 36),)


def test_a_strip_survives_json() -> None:
    for strip in select_worst_tubes(PREDICTIONS, TRUTH, DetectionConfig.default(), kind="agent"):
        again = Strip.from_dict(json.loads(json.dumps(strip.as_dict(), allow_nan=False)))
        assert again.as_dict() == strip.as_dict()
        assert np.array_equal(again.prediction_px, strip.prediction_px, equal_nan=True)


@pytest.mark.parametrize(
    "change", [{"frames": None}, {"truth_px": [[1, 2, 3]]}, {"frames": []}, {"says": ...}]
)
def test_an_incomplete_strip_is_an_error(change: dict[str, object]) -> None:
    data = select_worst_tubes(PREDICTIONS, TRUTH, DetectionConfig.default(), kind="agent")[0].as_dict()
    data = {name: value for name, value in {**data, **change}.items() if value is not ...}
    with pytest.raises(InputError, match="incomplete"):
        Strip.from_dict(data)


def test_what_rests_is_not_missed_and_predictions_on_it_are_not_false() -> None:
    ped = pl.when(pl.col("tube") == 101).then(0).otherwise("label").cast(pl.Int64).alias("label")
    confused = PREDICTIONS.with_tables(tube_labels=PREDICTIONS.tube_labels.with_columns(ped))

    def said(resting: list[int]) -> set[str]:
        boxes = TRUTH.boxes.with_columns(ignore=pl.col("tube").is_in(resting))
        strips = select_worst_tubes(confused, TRUTH.with_tables(boxes=boxes), DetectionConfig.default())
        return {strip.says.split(",")[0] + "," + strip.says.split(",")[1].split(";")[0] for strip in strips}

    missed = {"missed: Ped in v, frames 0 to 29", "missed: Car in v, frames 0 to 19"}
    false = {"false: Ped in v, score 0.90", "false: Car in v, score 0.80", "false: Ped in v, score 0.60"}
    assert said([]) == missed | false
    assert said([0]) == {"missed: Car in v, frames 0 to 19"} | false  # .60 overlaps it too little to rest
    assert said([1]) == {"missed: Ped in v, frames 0 to 29"} | false - {"false: Ped in v, score 0.90"}
