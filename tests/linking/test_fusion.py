"""Weighted boxes fusion equals a plain loop over the published rule, and its laws hold."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prediction_sets import SIDES, plain_iou, predictions, rows, rows_of

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.linking.postprocessing import FusionConfig, fuse_detections
from roadaware.scenes.dense_scores import convert_to_matrix

A, NEAR_A, FAR = (0, 0, 10, 10), (0, 0, 10, 8), (50, 50, 60, 60)


def plain_fusion(models, weights, iou):
    """{(video, frame): [(corners, score, class scores)]} by falling score; `models` are lists of rows."""
    frames = {}
    for index, model in enumerate(models):
        for video, frame, corners, score, scores in model:
            entry = (np.float32(corners).astype(float), score * weights[index], weights[index], score)
            frames.setdefault((video, frame), []).append((*entry, np.float32(scores).astype(float)))
    fusions = {}
    for key, boxes in frames.items():
        clusters, means = [], []
        for box in sorted(boxes, key=lambda box: -box[1]):
            overlaps = [plain_iou(box[0], mean) for mean in means]
            best = int(np.argmax(overlaps)) if overlaps else -1
            if best >= 0 and overlaps[best] > iou:
                clusters[best].append(box)
                total = sum(member[1] for member in clusters[best])
                if total > 0:
                    means[best] = sum(member[1] * member[0] for member in clusters[best]) / total
            else:
                clusters.append([box])
                means.append(box[0])
        made = []
        for members, mean in zip(clusters, means, strict=True):
            share = min(len(members), len(models)) / len(members) / sum(weights)
            score = min(1.0, sum(w * s for _, _, w, s, _ in members) * share)
            scores = np.minimum(1.0, sum(w * dense for _, _, w, _, dense in members) * share)
            made.append((mean, score, scores))
        fusions[key] = sorted(made, key=lambda each: -each[1])
    return fusions


def test_two_detectors_that_agree_by_hand() -> None:
    one = predictions([("v", 4, A, 0.9, [0.8, 0.2, 0.4])])
    two = predictions([("v", 4, NEAR_A, 0.6, [0.4, 0.0, 0.8])])
    found = fuse_detections([one, two])
    ((video, frame, corners, score),) = rows_of(found)
    assert (video, frame) == ("v", 4)
    assert corners == pytest.approx((0, 0, 10, (0.9 * 10 + 0.6 * 8) / 1.5))
    assert score == pytest.approx(0.75)
    assert convert_to_matrix(found.boxes["scores"], 3)[0] == pytest.approx([0.6, 0.1, 0.6])
    assert found.meta.notes["after_detector"][0] == {
        "step": "fused",
        "config": {"type": "FusionConfig", "weights": None, "iou": 0.55, "min_score": 0.0},
        "models": 2,
        "boxes": 2,
        "fused": 1,
    }


def test_what_one_of_two_detectors_sees_counts_half() -> None:
    found = fuse_detections(
        [predictions([("v", 0, A, 0.8, [0.4, 0, 0])]), predictions([("v", 0, FAR, 0.6, [0, 0, 1])])]
    )
    assert rows_of(found) == [("v", 0, A, 0.4), ("v", 0, FAR, 0.3)]
    assert convert_to_matrix(found.boxes["scores"], 3).tolist() == [[np.float32(0.2), 0, 0], [0, 0, 0.5]]


def test_weights_shift_boxes_and_scores() -> None:
    pair = [predictions([("v", 0, A, 0.5, [1, 0, 0])]), predictions([("v", 0, NEAR_A, 0.5, [0, 0, 0])])]
    found = fuse_detections(pair, FusionConfig(weights=(3, 1)))
    ((_, _, corners, score),) = rows_of(found)
    assert corners == pytest.approx((0, 0, 10, 9.5))
    assert score == pytest.approx(0.5)
    assert convert_to_matrix(found.boxes["scores"], 3)[0, 0] == pytest.approx(0.75)


def test_a_score_stays_below_1_where_a_heavy_detector_sees_double() -> None:
    double = predictions([("v", 0, A, 1.0, [1, 0, 0]), ("v", 0, A, 1.0, [1, 0, 0])])
    found = fuse_detections([double, predictions([])], FusionConfig(weights=(3, 1)))
    assert found.boxes["score"].to_list() == [1.0]
    assert convert_to_matrix(found.boxes["scores"], 3)[0, 0] == 1.0


def test_boxes_are_brought_to_the_images_of_the_first() -> None:
    small = predictions([("v", 0, (10, 10, 20, 20), 0.5, [0, 0, 0])], size=(100, 50))
    large = predictions([("v", 0, (20, 40, 40, 80), 0.5, [0, 0, 0])], size=(200, 200))
    assert rows_of(fuse_detections([small, large])) == [("v", 0, (10, 10, 20, 20), 0.5)]
    assert fuse_detections([small, large]).videos.rows() == [("v", 100, 50)]
    with pytest.raises(InputError, match="how large its images"):
        fuse_detections([small, predictions([("v", 0, A, 0.5, [0, 0, 0])])])


def test_labels_in_another_order_are_joined_by_name() -> None:
    other = {"action": ("Stop",), "agent": ("Car", "Ped")}
    one = predictions([("v", 0, A, 1.0, [0.8, 0.2, 0.4])])
    two = predictions([("v", 0, A, 1.0, [0.4, 0.2, 0.8])], kinds=other)
    assert convert_to_matrix(fuse_detections([one, two]).boxes["scores"], 3)[0] == pytest.approx(
        [0.8, 0.2, 0.4]
    )
    with pytest.raises(InputError, match="do not score the same labels"):
        fuse_detections([one, predictions([("v", 0, A, 1.0, [0, 0])], kinds={"agent": ("Ped", "Car")})])


def test_frame_scores_are_the_mean_over_those_that_have_the_frame() -> None:
    one = predictions(
        [("v", 0, A, 1.0, [0, 0, 0])], frame_scores={("v", 0): [1.0, 0.0], ("v", 1): [0.5, 0.5]}
    )
    two = predictions([("v", 0, A, 1.0, [0, 0, 0])], frame_scores={("v", 0): [0.0, 0.5]})
    found = fuse_detections([one, two], FusionConfig(weights=(1, 3)))
    assert found.frames["frame"].to_list() == [0, 1]
    assert found.frames["scores"].to_list() == [[0.25, 0.375], [0.5, 0.5]]


@pytest.mark.slow
@tried(120)
@given(
    st.lists(rows, min_size=1, max_size=3),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=3, max_size=3),
    st.sampled_from([0.0, 0.3, 0.55]),
)
def test_fusion_equals_a_loop(models, weights, iou) -> None:
    weights = weights[: len(models)]
    found = fuse_detections(
        [predictions(model) for model in models], FusionConfig(weights=tuple(weights), iou=iou)
    )
    expected = plain_fusion(models, weights, iou)
    got = {}
    dense = convert_to_matrix(found.boxes["scores"], 3)
    for (video, frame, corners, score), scores in zip(rows_of(found), dense, strict=True):
        got.setdefault((video, frame), []).append((corners, score, scores))
    assert got.keys() == expected.keys()
    for key, boxes in expected.items():
        assert [b[1] for b in got[key]] == pytest.approx([b[1] for b in boxes], abs=1e-12)
        by = sorted(got[key], key=lambda b: (round(b[1], 9), *np.round(b[0], 3)))
        wanted = sorted(boxes, key=lambda b: (round(b[1], 9), *np.round(b[0], 3)))
        for mine, plain in zip(by, wanted, strict=True):
            assert mine[0] == pytest.approx(plain[0], abs=1e-4)
            assert mine[2] == pytest.approx(plain[2], abs=1e-6)


@tried(50)
@given(rows)
def test_a_detector_fused_with_itself_is_suppressed_and_no_more(found) -> None:
    apart = [
        (video, frame, (20.0 * i, 0.0, 20.0 * i + 9, 9.0), score, scores)
        for i, (video, frame, _, score, scores) in enumerate(found)
    ]
    alone, twice = fuse_detections([predictions(apart)]), fuse_detections([predictions(apart)] * 2)
    assert alone.boxes.select("frame", *SIDES).equals(twice.boxes.select("frame", *SIDES))
    assert sorted(alone.boxes["score"]) == pytest.approx(sorted(r[3] for r in apart), abs=1e-12)
    assert twice.boxes["score"].to_list() == pytest.approx(alone.boxes["score"].to_list(), abs=1e-12)


@tried(50)
@given(st.lists(rows, min_size=2, max_size=3))
def test_the_order_of_frames_in_the_tables_does_not_matter(models) -> None:
    sets = [predictions(model) for model in models]
    turned = [s.with_tables(boxes=s.boxes.sort("frame", maintain_order=True)) for s in sets]
    key = ["video", "frame", "score", *SIDES]
    assert (
        fuse_detections(sets)
        .boxes.select(key)
        .sort(key)
        .equals(fuse_detections(turned).boxes.select(key).sort(key))
    )


def test_empty_and_wrong_requests() -> None:
    assert fuse_detections([predictions([]), predictions([])]).boxes.is_empty()
    with pytest.raises(UsageError, match="at least one detector"):
        fuse_detections([])
    with pytest.raises(UsageError, match="2 weights for 1 detectors"):
        fuse_detections([predictions([])], FusionConfig(weights=(1, 1)))
    for wrong in ({"iou": 2.0}, {"weights": (0.0,)}, {"min_score": -1.0}):
        with pytest.raises(UsageError):
            FusionConfig(**wrong)
    linked = predictions([("v", 0, A, 0.5, [0, 0, 0])])
    linked = linked.with_tables(boxes=linked.boxes.with_columns(tube=pl.lit(0)))
    with pytest.raises(InputError, match="linked to tubes already"):
        fuse_detections([linked])
    weak = predictions([("v", 0, A, 0.1, [0, 0, 0]), ("v", 0, FAR, 0.2, [0, 0, 0])])
    assert rows_of(fuse_detections([weak], FusionConfig(min_score=0.2))) == [("v", 0, FAR, 0.2)]
