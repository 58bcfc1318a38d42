"""Frame-level matches against plain loops, hand-worked cases and laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_frame import frame_ap
from random_events import KINDS, event_set

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.kernels import compute_frame_overlaps, keep_top_per_frame
from roadaware.metrics.detection.matches import compute_average_precisions, match_frames, sort_descending
from roadaware.metrics.detection.rows import collect_frames, extract_predicted_boxes

CONFIGS = {
    "reference": DetectionConfig.reference(),
    "default": DetectionConfig.default(),
    "crowded": DetectionConfig(max_per_class=2, min_score=0.1, ap="interp101", empty_classes="zero"),
    "raw": DetectionConfig(ap="raw"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_fast_path_equals_plain_loops(name: str, tied: bool, seed: int) -> None:
    config = CONFIGS[name]
    scenes, predictions = event_set(seed, tied=tied, predicted_size=(682, 512))
    matches = match_frames(predictions, scenes, config, (0.3, 0.5))
    assert matches.classes == tuple((kind, label) for kind, labels in KINDS.items() for label in labels)
    table = compute_average_precisions(matches, config)
    for c, (kind, label) in enumerate(matches.classes):
        for t, threshold in enumerate(matches.thresholds):
            expected = frame_ap(predictions, scenes, config, kind, label, threshold)
            assert table[c, t] == pytest.approx(expected, abs=1e-6, nan_ok=True), (kind, label, threshold)
    assert np.nanmax(table) > 0.2


@tried(60)
@given(
    st.lists(st.sampled_from([0.0, -0.0, 0.25, 1.0, -3.5, 1e-300, 0.1, float(np.float32(0.1))]), max_size=30)
)
def test_the_fast_ranking_is_a_stable_sort(scores: list[float]) -> None:
    values = np.array(scores)
    np.testing.assert_array_equal(sort_descending(values), np.argsort(-values, kind="stable"))


def test_overlaps_are_those_of_boxes_that_are_larger_by_the_pixel_offset() -> None:
    rng = np.random.default_rng(0)
    boxes, truth = (np.sort(rng.integers(0, 9, (n, 2, 2)), axis=1).reshape(n, 4) * 1.0 for n in (40, 9))
    frame, frame_start = np.sort(rng.integers(0, 3, 40)), np.array([0, 4, 4, 9])
    larger = [0.0, 0.0, 1.0, 1.0]
    start, found = compute_frame_overlaps(boxes, frame, truth, frame_start, 1.0, False)
    again, plain = compute_frame_overlaps(boxes + larger, frame, truth + larger, frame_start, 0.0, False)
    np.testing.assert_array_equal(start, again)
    np.testing.assert_allclose(found, plain)
    np.testing.assert_allclose(
        compute_frame_overlaps(boxes, frame, truth, frame_start, 1.0, True)[1], found, rtol=1e-6
    )
    expected = iou(boxes, truth, pixel_offset=1.0)
    for d in range(40):
        own = expected[d, frame_start[frame[d]] : frame_start[frame[d] + 1]]
        np.testing.assert_allclose(found[start[d] : start[d + 1]], own)
    nothing = np.zeros((1, 4))
    assert (
        compute_frame_overlaps(nothing, frame[:1], truth * 0, frame_start, 0.0, False)[1].tolist()
        == [0.0] * 4
    )


def test_the_first_predictions_of_each_frame_are_kept() -> None:
    ranked, frame = np.array([4, 0, 3, 1, 2, 5]), np.array([0, 0, 1, 0, 1, 1])
    # By rank the frames are 1, 0, 0, 0, 1, 1.
    for most, kept in ((1, [0, 1]), (2, [0, 1, 2, 4]), (3, [0, 1, 2, 3, 4, 5])):
        assert keep_top_per_frame(ranked, frame, 2, most).tolist() == kept


def test_scores_up_to_the_floor_predict_nothing() -> None:
    scenes, predictions = event_set(0, videos=1)

    def judged_scores(floor: float | None) -> list[float]:
        config = replace(DetectionConfig.default(), min_score=floor)
        return match_frames(predictions, scenes, config, (0.5,), ["agentness"]).ranked().score.tolist()

    annotated = scenes.frames.filter("annotated").select("frame")
    held = predictions.boxes.join(annotated, on="frame", how="semi")["score"].sort(descending=True).to_list()
    floor = held[len(held) // 2]
    assert judged_scores(None) == held
    assert judged_scores(floor) == [score for score in held if score > floor]


def test_boxes_of_unknown_videos_and_frames_are_told_apart() -> None:
    scenes, predictions = event_set(2, videos=1)
    at = pl.int_range(pl.len())
    boxes = predictions.boxes.with_columns(
        video=pl.when(at == 0).then(pl.lit("other")).otherwise(pl.col("video").cast(pl.String)),
        frame=pl.when(at.is_in([1, 2])).then(99).otherwise("frame"),
    )
    annotated = set(scenes.frames.filter("annotated")["frame"])
    found = extract_predicted_boxes(
        predictions.with_tables(
            videos=pl.DataFrame({"video": ["v0", "other"], "width_px": 640, "height_px": 480}), boxes=boxes
        ),
        [("agentness", "agent")],
        collect_frames(scenes),
        np.ones((1, 4)),
        interpolated=True,
    )
    elsewhere = sum(frame not in annotated for frame in boxes["frame"][3:])
    assert elsewhere > 2
    assert found.left_out == {
        "in videos that the truth does not have": 1,
        "in frames that the truth does not have": 2,
        "in frames that were not annotated": elsewhere,
    }


def test_predictions_are_brought_to_the_size_of_the_truth() -> None:
    scenes, predictions = event_set(0, predicted_size=(320, 240))
    same, same_predictions = event_set(0)
    config = DetectionConfig.default()
    one, two = (
        compute_average_precisions(match_frames(p, s, config, (0.5,)), config)
        for s, p in ((scenes, predictions), (same, same_predictions))
    )
    np.testing.assert_allclose(one, two)
    silent = predictions.with_tables(videos=predictions.videos.clear())
    other = compute_average_precisions(match_frames(silent, scenes, config, (0.5,)), config)
    assert np.nansum(other) < np.nansum(one)  # taken for pixels of the truth


def test_a_size_that_is_needed_and_not_known_is_an_error() -> None:
    scenes, predictions = event_set(0)
    unknown = scenes.with_tables(videos=scenes.videos.select("video"))
    with pytest.raises(InputError, match="image size of 3 videos"):
        match_frames(predictions, unknown, DetectionConfig.default(), (0.5,))
    silent = predictions.with_tables(videos=predictions.videos.clear())
    assert len(match_frames(silent, unknown, DetectionConfig.default(), (0.5,)))
    with pytest.raises(InputError, match="image size of 3 videos"):
        match_frames(silent, unknown, DetectionConfig.reference(), (0.5,))


def test_products_of_parts_by_the_lists_of_either_side() -> None:
    scenes, predictions = event_set(0)
    duplex = {"duplex": ("Ped-Stop", "Car-Mov")}
    listed = {
        "vocabularies": {**scenes.meta.vocabularies, **duplex},
        "composites": {"duplex": ("agent", "action")},
        "notes": {**scenes.meta.notes, "children": {"duplex": [[0, 0], [1, 1]]}},
    }
    truth = scenes.with_tables(meta=replace(scenes.meta, **listed))
    vocabularies = replace(predictions.meta, vocabularies=listed["vocabularies"])
    detections = predictions.with_tables(meta=vocabularies)
    product = replace(DetectionConfig.default(), composite_scores="product")
    found = match_frames(detections, truth, product, (0.5,), ["agent", "action", "duplex"])
    rows = {
        named: found.take(found.cls == c).score[np.argsort(found.take(found.cls == c).order)]
        for c, named in enumerate(found.classes)
    }
    expected = rows["agent", "Car"].astype(np.float32) * rows["action", "Mov"].astype(np.float32)
    np.testing.assert_array_equal(rows["duplex", "Car-Mov"], expected)
    turned = {**listed["vocabularies"], "agent": ("Car", "Ped", "Bus")}
    other = predictions.with_tables(meta=replace(predictions.meta, vocabularies=turned))
    with pytest.raises(InputError, match="labels of agent are others"):
        match_frames(other, truth, product, (0.5,), ["agent"])
    with pytest.raises(InputError, match="lists of children"):
        match_frames(predictions, scenes, product, (0.5,), ["agent"])


@pytest.mark.parametrize("wrong", [(), (0.0,), (1.5,), (float("nan"),)])
def test_thresholds_outside_are_refused(wrong: tuple[float, ...]) -> None:
    scenes, predictions = event_set(0, videos=1)
    with pytest.raises(UsageError, match="thresholds of overlap"):
        match_frames(predictions, scenes, DetectionConfig.default(), wrong)


def test_boxes_without_a_label_count_for_agentness_alone() -> None:
    scenes, predictions = event_set(0)
    found = match_frames(predictions, scenes, DetectionConfig.default(), (0.5,))
    judged = scenes.frames.filter("annotated")
    boxes = scenes.boxes.join(judged, on=["video", "frame"], how="semi")
    agents = scenes.labels.filter(pl.col("kind") == "agent").join(boxes, on="box", how="semi")
    totals = dict(zip(found.classes, found.n_truth.sum(axis=0).tolist(), strict=True))
    assert totals["agentness", "agent"] == len(boxes)
    assert sum(n for (kind, _), n in totals.items() if kind == "agent") == len(agents) < len(boxes)
