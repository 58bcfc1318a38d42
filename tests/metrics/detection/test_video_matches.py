"""Matches of tubes: merged, told row by row, and refused where they contradict themselves."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from plain_video import tube_overlap, tubes_of
from random_tubes import KINDS, tube_set
from tube_cases import CLASSES, CONFIGS, DEFAULT, REFERENCE, one_class, run

from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.metrics.detection.matches import (
    Matches,
    build_tube_table,
    compute_average_precisions,
    match_tubes,
)
from roadaware.metrics.detection.rows import extract_labelled_tubes, select_paths
from roadaware.scenes.tables import Meta, Predictions, Scenes


def test_nothing_predicted_is_nothing_found_and_nothing_true_is_all_wrong() -> None:
    scenes, predictions = tube_set(4)
    silent = match_tubes(
        Predictions(meta=predictions.meta), scenes, REFERENCE, (0.5,), kinds=["agent", "action"]
    )
    assert len(silent) == 0
    assert silent.n_truth.sum() > 0
    assert not compute_average_precisions(silent, REFERENCE).any()
    nothing = Scenes(videos=scenes.videos, meta=scenes.meta)
    found = match_tubes(predictions, nothing, REFERENCE, (0.5,), kinds=["agent", "action"])
    assert len(found) > 0
    assert not found.hit.any()
    assert np.isnan(compute_average_precisions(found, DEFAULT)).all()


def key(matches: Matches) -> list[tuple[object, ...]]:
    """Predictions without their place, and truth by name."""
    return sorted(
        (matches.classes[c], matches.videos[v], score, *hit)
        for c, v, score, hit in zip(
            matches.cls, matches.video, matches.score.tolist(), matches.hit.tolist(), strict=True
        )
    )


def test_parts_merge_to_the_whole() -> None:
    scenes, predictions = tube_set(5, videos=4, tied=True)
    names = scenes.videos["video"].to_list()
    whole = match_tubes(predictions, scenes, REFERENCE, (0.2, 0.5))
    kinds = tuple(KINDS)
    parts = [
        match_tubes(predictions, scenes.only(some), REFERENCE, (0.2, 0.5), kinds=kinds)
        for some in (names[:1], names[1:])
    ]
    merged = parts[0].merge(parts[1])
    assert key(merged) == key(whole)
    assert merged.n_truth.tolist() == whole.n_truth.tolist()
    assert np.array_equal(
        compute_average_precisions(merged, REFERENCE), compute_average_precisions(whole, REFERENCE)
    )


def test_the_order_of_rows_changes_nothing_where_no_two_are_equal() -> None:
    scenes, predictions = tube_set(6)
    shuffled = predictions.with_tables(
        boxes=predictions.boxes.sample(fraction=1.0, shuffle=True, seed=1),
        tubes=predictions.tubes.sample(fraction=1.0, shuffle=True, seed=2),
        tube_labels=predictions.tube_labels.sample(fraction=1.0, shuffle=True, seed=3),
    )
    turned = scenes.with_tables(boxes=scenes.boxes.reverse(), tubes=scenes.tubes.reverse())
    for config in CONFIGS.values():
        there = match_tubes(shuffled, turned, config, (0.2, 0.5))
        assert key(there) == key(match_tubes(predictions, scenes, config, (0.2, 0.5)))


def test_the_table_tells_the_best_truth_of_the_label_and_of_the_kind() -> None:
    scenes, predictions = tube_set(7, holes=0.0)
    table = build_tube_table(predictions, scenes, DEFAULT, threshold=0.3)
    assert len(table) == len(match_tubes(predictions, scenes, DEFAULT, (0.3,)))
    seen = 0
    for row in table.iter_rows(named=True):
        truth = tubes_of(scenes, scenes, None, row["kind"], row["label"])
        own = tubes_of(predictions, scenes, None, row["kind"], row["label"])
        tube = next(boxes for _, number, _, boxes in own if number == row["tube"])
        values = [tube_overlap(tube, t[3], "stiou", DEFAULT) for t in truth if t[0] == row["video"]]
        assert (row["overlap"] or 0.0) == pytest.approx(max(values, default=0.0))
        assert (row["near_overlap"] or 0.0) >= (row["overlap"] or 0.0)
        if row["truth"] is not None:
            seen += 1
            assert row["overlap"] == pytest.approx(row["temporal"] * row["spatial"])
    hits = match_tubes(predictions, scenes, DEFAULT, (0.3,)).hit[:, 0]
    assert seen > 10
    assert (table["matched"].is_not_null().to_numpy() == hits).all()


def test_labels_of_one_tube_are_judged_each_for_itself() -> None:
    scenes, predictions = one_class([run(range(5))], [(0.9, run(range(5)))], vocabulary=("Ped", "Car"))
    both = predictions.tube_labels.vstack(
        predictions.tube_labels.with_columns(label=pl.lit(1, dtype=pl.Int64))
    )
    found = match_tubes(predictions.with_tables(tube_labels=both), scenes, DEFAULT, (0.5,), kinds=["agent"])
    assert found.cls.tolist() == [0, 1]
    assert found.hit[:, 0].tolist() == [True, False]


def test_paths_are_the_predictions_of_agentness_and_labelled_tubes_never_are() -> None:
    scenes, predictions = one_class([run(range(5))], [(0.9, run(range(5)))])
    found = match_tubes(predictions, scenes, DEFAULT, (0.5,))
    assert found.kinds == ("agentness", "agent")
    assert found.hit.all()
    alone = predictions.with_tables(
        tubes=predictions.tubes.head(1).with_columns(kind=pl.lit("agent")),
        tube_labels=predictions.tube_labels.with_columns(tube=pl.lit(0, dtype=pl.Int64)),
    )
    found = match_tubes(alone, scenes, DEFAULT, (0.5,))
    assert found.kinds == ("agent",)
    assert [found.classes[c][0] for c in found.cls] == ["agent"]
    said = evaluate(alone, scenes, DEFAULT, frame_thresholds=()).notes
    assert said == ("tubes are not judged for agentness: nothing is predicted of that",)
    assert found.hit.all()


def test_predictions_in_unknown_videos_and_true_tubes_without_boxes_are_counted_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scenes, predictions = tube_set(8)
    beyond = pl.lit([[900, 910]], dtype=pl.List(pl.List(pl.Int64)))
    last = pl.col("tube") == scenes.tube_labels["tube"][-1]
    tubes = scenes.tubes.with_columns(spans=pl.when(last).then(beyond).otherwise("spans"))
    with caplog.at_level(logging.INFO, "roadaware"):
        match_tubes(predictions, scenes.with_tables(tubes=tubes), DEFAULT, (0.5,))
    assert "lie in videos that are not judged, such as ['unknown']" in caplog.text
    assert "true tubes without a box are left out" in caplog.text


def test_what_was_left_out_stands_in_the_notes_once() -> None:
    scenes, predictions = tube_set(8)
    result = evaluate(predictions, scenes, DEFAULT, frame_thresholds=(), overlaps=("stiou", "tiou"))
    unknown = predictions.tubes.filter(pl.col("video") == "unknown")
    n = len(unknown.filter(pl.col("parent").is_null())) + len(
        predictions.tube_labels.join(unknown, on="tube")
    )
    said = f"{n} labels of predicted tubes in videos that the truth does not have were left out"
    assert [note for note in result.notes if "predicted tubes" in note] == [said]


def test_a_prediction_without_boxes_is_wrong() -> None:
    scenes, predictions = one_class([run(range(5))], [(0.9, run(range(5)))])
    empty = pl.lit([], dtype=pl.List(pl.List(pl.Int64)))
    for spans in (empty, pl.lit([[3, 3]], dtype=pl.List(pl.List(pl.Int64)))):
        found = match_tubes(
            predictions.with_tables(tubes=predictions.tubes.with_columns(spans=spans)),
            scenes,
            REFERENCE,
            (0.5,),
            kinds=["agent"],
        )
        assert found.hit.tolist() == [[False]]


def changed(predictions: Predictions, what: str) -> Predictions:
    """Predictions that contradict themselves in one way."""
    tubes, labels = predictions.tubes, predictions.tube_labels
    if what == "frame twice":
        return predictions.with_tables(boxes=predictions.boxes.with_columns(frame=pl.lit(3, dtype=pl.Int64)))
    if what == "spans overlap":
        spans = pl.lit([[0, 4], [2, 9]], dtype=pl.List(pl.List(pl.Int64)))
        return predictions.with_tables(tubes=tubes.with_columns(spans=spans))
    if what == "parent has a parent":
        more = tubes.tail(1).with_columns(tube=pl.lit(9, dtype=pl.Int64), parent=pl.col("tube"))
        return predictions.with_tables(tubes=tubes.vstack(more))
    if what == "no score":
        return predictions.with_tables(tubes=tubes.drop("score"))
    if what == "unknown label":
        return predictions.with_tables(meta=replace(predictions.meta, vocabularies={"agent": ("Cow",)}))
    if what == "no vocabulary":
        return predictions.with_tables(meta=Meta())
    assert what == "no start"
    return predictions.with_tables(tubes=tubes.with_columns(consecutive=pl.lit(True)), tube_labels=labels)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("frame twice", r"have a frame twice, first \[\{'tube': 0, 'video': 'v', 'frame': 3"),
        ("spans overlap", "the spans of tube 1 overlap"),
        ("parent has a parent", r"cut from a tube that is cut itself, first \[9\]"),
        ("no score", r"1 predicted tubes have no score, first \[1\]"),
        ("unknown label", r"\['Cow'\], which the vocabulary of the truth does not know"),
        ("no vocabulary", "of which meta holds no vocabulary"),
        ("no start", "tube 1 is predicted for consecutive frames and has no start_frame"),
    ],
)
def test_predictions_that_contradict_themselves_are_refused(what: str, said: str) -> None:
    scenes, predictions = one_class([run(range(5))], [(0.9, run(range(5)))])
    with pytest.raises(InputError, match=said):
        match_tubes(changed(predictions, what), scenes, DEFAULT, (0.5,), kinds=["agent"])


def test_what_is_not_known_is_a_wrong_request() -> None:
    scenes, predictions = one_class([run(range(5))], [(0.9, run(range(5)))])
    with pytest.raises(UsageError, match="overlap should be one of stiou, siou, tiou"):
        match_tubes(predictions, scenes, DEFAULT, (0.5,), "iou")
    with pytest.raises(UsageError, match="no labels of kind mood"):
        match_tubes(predictions, scenes, DEFAULT, (0.5,), kinds=["mood"])
    for wrong in ((), (0.0,), (1.5,)):
        with pytest.raises(UsageError, match="thresholds of overlap lie in"):
            match_tubes(predictions, scenes, DEFAULT, wrong)


def test_tubes_of_many_classes_share_one_extent() -> None:
    scenes, predictions = tube_set(9, tracks=6)
    whole = [[0, 1000]]
    tubes = predictions.tubes.with_columns(
        spans=pl.when(pl.col("parent").is_null())
        .then(None)
        .otherwise(pl.lit(whole, dtype=pl.List(pl.List(pl.Int64))))
    )
    names = scenes.videos["video"].to_list()
    held = extract_labelled_tubes(
        predictions.with_tables(tubes=tubes), CLASSES, names, np.ones((len(names), 4))
    )
    paths = predictions.tubes.filter(pl.col("parent").is_null() & (pl.col("video") != "unknown"))
    assert len(held.tubes) == len(paths) < len(held)


@pytest.mark.parametrize("plain", [[0], []])
def test_paths_are_the_tubes_without_kind_or_all_of_the_truth_where_there_is_none(plain: list[int]) -> None:
    kind = pl.Series([None if tube in plain else "action" for tube in range(3)], dtype=pl.String)
    tubes = pl.DataFrame({"tube": [0, 1, 2], "video": "v", "parent": [None, None, 1]}).with_columns(kind=kind)
    videos = pl.DataFrame({"video": ["v"]})
    found = select_paths(Scenes(videos=videos, tubes=tubes.with_columns(start_frame=0, end_frame=1)))
    assert found["tube"].to_list() == (plain or [0, 1])
    found = select_paths(Predictions(videos=videos, tubes=tubes.with_columns(start_frame=0, end_frame=1)))
    assert found["tube"].to_list() == plain
