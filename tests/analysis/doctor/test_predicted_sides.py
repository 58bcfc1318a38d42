"""Every usual mistake in predictions about scenes is named, and predictions without mistake are left in peace."""

from dataclasses import replace

import fitting_predictions as sets
import numpy as np
import polars as pl
import pytest

from roadaware.analysis.doctor.predictions import TASKS, check_predictions
from roadaware.errors import UsageError
from roadaware.scenes.tables import Meta, Predictions, Scenes

MAKERS = {
    "actions": sets.action_sets,
    "relations": sets.relation_sets,
    "grounding": sets.query_sets,
    "sound": sets.sound_sets,
}


def codes(found):
    return {item.code for item in found if item.severity != "note"}


@pytest.mark.parametrize("task", TASKS)
def test_predictions_that_fit_are_left_in_peace(task):
    truth, predictions = MAKERS[task]()
    assert codes(check_predictions(task, predictions, truth)) == set()


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_side_is_named(task):
    truth, predictions = MAKERS[task]()
    assert codes(check_predictions(task, predictions, Scenes())) == {"empty_truth"}
    assert codes(check_predictions(task, Predictions(), truth)) == {"empty_predictions"}


def test_names_that_differ_are_named_with_the_nearest():
    truth, predictions = sets.action_sets()
    predictions = predictions.with_tables(
        boxes=predictions.boxes.with_columns(video=pl.col("video") + ".mp4")
    )
    (found,) = check_predictions("actions", predictions, truth)
    assert found.code == "names"
    assert "'v0.mp4' may be 'v0'" in found.remedy


def test_an_unknown_task_is_refused():
    with pytest.raises(UsageError, match="no task 'smell'; there are actions"):
        check_predictions("smell", Predictions(), Scenes())


CHANGES = {
    "another resolution": ("images of another size", lambda boxes: _scaled(boxes, 0.5, 0.5)),
    "shares": ("Predicted boxes are shares", lambda boxes: _scaled(boxes, 1 / 640, 1 / 360)),
    "frames from 1": ("1 frames late", lambda boxes: boxes.with_columns(pl.col("frame") + 1)),
    "sides": (
        "x, y, width, height",
        lambda boxes: boxes.with_columns(
            x2_px=pl.max_horizontal("x1_px", pl.col("x2_px") - pl.col("x1_px")),
            y2_px=pl.max_horizontal("y1_px", pl.col("y2_px") - pl.col("y1_px")),
        ),
    ),
    "exchanged": (
        "x and y exchanged",
        lambda boxes: boxes.rename({"x1_px": "y1_px", "y1_px": "x1_px", "x2_px": "y2_px", "y2_px": "x2_px"}),
    ),
}


def _scaled(boxes, x, y):
    return boxes.with_columns(pl.col("x1_px", "x2_px") * x, pl.col("y1_px", "y2_px") * y)


@pytest.mark.parametrize("name", list(CHANGES))
def test_boxes_written_another_way_are_named(name):
    says, change = CHANGES[name]
    truth, predictions = sets.action_sets()
    if name == "sides":  # only boxes near the corner keep x2 above x1 when sides are written
        truth = truth.with_tables(boxes=_scaled(truth.boxes, 0.1, 0.1))
        predictions = predictions.with_tables(boxes=_near_corner(truth.boxes))
        truth = truth.with_tables(boxes=_near_corner(truth.boxes))
    found = check_predictions("actions", predictions.with_tables(boxes=change(predictions.boxes)), truth)
    (item,) = [item for item in found if item.code == "boxes"]
    assert says in item.says


def _near_corner(boxes):
    corners = {"x1_px": 1 + pl.col("frame") * 0.1, "y1_px": 2 + pl.col("frame") * 0.1}
    return boxes.with_columns(**corners).with_columns(
        x2_px=pl.col("x1_px") + 8.0, y2_px=pl.col("y1_px") + 9.0
    )


def test_pixels_where_shares_are_due_are_named():
    truth, predictions = sets.action_sets()
    truth = truth.with_tables(videos=sets.videos((1, 1)), boxes=_scaled(truth.boxes, 1 / 640, 1 / 360))
    found = check_predictions("actions", predictions, truth)
    assert "in pixels where shares" in next(item.says for item in found if item.code == "boxes")


@pytest.mark.parametrize("step", [-1, 1])
def test_labels_shifted_by_one_are_named(step):
    truth, predictions = sets.action_sets()
    predictions = predictions.with_tables(labels=predictions.labels.with_columns(pl.col("label") + step))
    (found,) = [
        item for item in check_predictions("actions", predictions, truth) if item.code == "label_shift"
    ]
    assert f"Add {-step:+d}" in found.remedy


def test_scores_that_cannot_rank_are_named():
    truth, predictions = sets.action_sets()
    same = predictions.with_tables(labels=predictions.labels.with_columns(score=0.7))
    assert codes(check_predictions("actions", same, truth)) == {"constant"}
    persons = predictions.with_tables(
        labels=predictions.labels.with_columns(score=(pl.col("box") % 2).cast(pl.Float64))
    )
    assert codes(check_predictions("actions", persons, truth)) == {"decisions"}


def test_exchanged_subjects_and_objects_are_named():
    truth, predictions = sets.relation_sets()
    turned = predictions.relations.rename({"subject": "object", "object": "subject"})
    assert "exchanged" in codes(
        check_predictions("relations", predictions.with_tables(relations=turned), truth)
    )


def test_persons_who_are_their_own_objects_are_named():
    truth, predictions = sets.relation_sets()
    own = predictions.relations.with_columns(object="subject")
    assert "own_object" in codes(
        check_predictions("relations", predictions.with_tables(relations=own), truth)
    )


def test_words_that_are_spelt_otherwise_are_named_with_those_meant():
    truth, predictions = sets.relation_sets()
    loud = {
        kind: tuple(word.upper() for word in known) for kind, known in predictions.meta.vocabularies.items()
    }
    found = check_predictions("relations", predictions.with_tables(meta=Meta(vocabularies=loud)), truth)
    (item,) = [item for item in found if item.code == "words"]
    assert "'DOG' for 'dog'" in item.remedy


def test_relations_that_are_late_or_beyond_the_video_are_named():
    truth, predictions = sets.relation_sets()
    late = predictions.with_tables(
        relations=predictions.relations.with_columns(pl.col("start_frame", "end_frame") + 1)
    )
    (item,) = [item for item in check_predictions("relations", late, truth) if item.code == "shift"]
    assert "1 frames late" in item.says
    truth = truth.with_tables(videos=truth.videos.with_columns(n_frames=30))
    far = predictions.relations.with_columns(pl.col("start_frame", "end_frame") + 1000)
    far_predictions = predictions.with_tables(relations=far)
    assert "beyond_video" in codes(check_predictions("relations", far_predictions, truth))


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.5])
def test_relations_in_pictures_of_another_size_are_named(factor):
    truth, predictions = sets.relation_sets()
    predictions = predictions.with_tables(boxes=_scaled(predictions.boxes, factor, factor))
    assert "boxes" in codes(check_predictions("relations", predictions, truth))


def test_spans_without_frames_or_beyond_the_video_are_named():
    truth, predictions = sets.query_sets()
    truth = truth.with_tables(videos=truth.videos.with_columns(n_frames=30))
    odd = predictions.queries.with_columns(
        start_frame=pl.when(pl.col("query") == 0).then(pl.col("end_frame")).otherwise("start_frame"),
        end_frame=pl.when(pl.col("query") == 1).then(5000).otherwise("end_frame"),
    )
    found = codes(check_predictions("grounding", predictions.with_tables(queries=odd), truth))
    assert {"empty_span", "beyond_video"} <= found


def test_spans_in_the_numbers_of_the_file_are_no_mistake():
    truth, predictions = sets.query_sets()
    truth = truth.with_tables(meta=Meta(notes={"first_frame": 1}))
    late = predictions.with_tables(
        queries=predictions.queries.with_columns(pl.col("start_frame", "end_frame") + 1)
    )
    assert codes(check_predictions("grounding", late, truth)) == set()


def test_relations_in_seconds_are_named():
    truth, predictions = sets.relation_sets()
    short = predictions.relations.with_columns(end_frame=pl.col("start_frame") + 1)
    found = check_predictions("relations", predictions.with_tables(relations=short), truth)
    assert codes(found) == {"durations"}


def test_spans_that_are_shifted_or_in_seconds_are_named():
    truth, predictions = sets.query_sets()
    late = predictions.with_tables(
        queries=predictions.queries.with_columns(pl.col("start_frame", "end_frame") + 1)
    )
    (found,) = [item for item in check_predictions("grounding", late, truth) if item.code == "span_shift"]
    assert "1 frames late" in found.says
    seconds = predictions.queries.with_columns((pl.col("start_frame", "end_frame") / 25).cast(pl.Int64))
    assert "span_unit" in codes(
        check_predictions("grounding", predictions.with_tables(queries=seconds), truth)
    )


@pytest.mark.parametrize(
    ("name", "turn"),
    [
        ("transposed", np.transpose),
        ("upside down", lambda m: m[::-1]),
        ("mirrored", lambda m: m[:, ::-1]),
        ("inverted", lambda m: 1 - m),
    ],
)
def test_maps_that_lie_another_way_are_named(name, turn):
    truth, predictions = sets.sound_sets()
    held = [turn(np.array(row).reshape(14, 14)) for row in predictions.sounds["map"].to_list()]
    found = check_predictions("sound", sets.with_maps(truth, held), truth)
    (item,) = [item for item in found if item.code == "map_turned"]
    assert name in item.says


def test_constant_maps_are_named():
    truth, _ = sets.sound_sets()
    flat = sets.with_maps(truth, [np.full((3, 5), 0.2)] * len(truth.sounds))
    assert codes(check_predictions("sound", flat, truth)) == {"constant_map"}


def test_what_was_refused_or_odd_is_told():
    truth, predictions = sets.action_sets()
    row = {"table": "boxes", "file": "pred.csv", "line": 3, "item": "", "reason": "x2 < x1"}
    rejected = pl.DataFrame([row] * 3, schema_overrides={"line": pl.Int64})
    told = {"warnings": [{"what": "predictions on unknown videos", "count": 4, "example": "v9"}]}
    meta = Meta(vocabularies=predictions.meta.vocabularies, notes=told, rows_read={"boxes": 123})
    found = check_predictions("actions", predictions.with_tables(rejected=rejected, meta=meta), truth)
    notes = [item.code for item in found if item.severity == "note"]
    assert notes == ["refused_predictions", "odd_predictions", "person_recall"]
    assert "3: x2 < x1" in found[0].evidence


def test_the_recall_of_persons_is_told_and_too_few_are_suspicious():
    truth, predictions = sets.action_sets()
    (told,) = [
        each for each in check_predictions("actions", predictions, truth) if each.code == "person_recall"
    ]
    assert (told.severity, told.says[:33]) == ("note", "Predicted boxes meet 100% of the ")
    kept = predictions.boxes.filter(pl.col("box") % 3 == 0)
    # Another person of the frame is still predicted, so that the frame counts.
    moved = predictions.boxes.filter(pl.col("box") % 3 != 0).with_columns(
        x1_px=pl.col("x1_px") + 5000.0, x2_px=pl.col("x2_px") + 5000.0
    )
    few = predictions.with_tables(boxes=pl.concat([kept, moved]).sort("box"))
    (told,) = [each for each in check_predictions("actions", few, truth) if each.code == "person_recall"]
    assert told.severity == "suspicious"
    assert "33%" in told.says or "34%" in told.says


def test_boxes_in_other_units_are_told_before_anything_of_persons():
    truth, predictions = sets.action_sets()
    sides = ["x1_px", "y1_px", "x2_px", "y2_px"]
    unit = truth.with_tables(
        boxes=truth.boxes.with_columns(pl.col(sides) / 2000),
        meta=replace(truth.meta, notes={"unit_pictures": True}),
    )
    # They meet in no frame, so that no other reading of the boxes fits.
    late = predictions.with_tables(boxes=predictions.boxes.with_columns(pl.col("frame") + 500))
    found = check_predictions("actions", late, unit)
    assert "units" in codes(found)
    assert "person_recall" not in codes(found)
    assert "in pixels" in next(item.evidence for item in found if item.code == "units")
