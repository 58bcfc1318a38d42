"""Hand-worked faults, and that mending each is worth what it should be."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import FAULTS, Evidence, compute_error_gains, find_errors
from roadaware.metrics.detection.kernels import count_shared_frames

Prediction = tuple[int, float, tuple[int, int]]
Object = tuple[tuple[int, int], tuple[int, ...]]
NOW = (0, 1)


def evidence(
    predictions: list[Prediction],
    spatial: dict[tuple[int, int], float],
    objects: list[Object],
    n_classes: int = 2,
    tracks: list[int] | None = None,
) -> Evidence:
    """Predictions (class, score, frames) and objects (frames, labels); how well a prediction lies on an object."""
    rank = sorted(range(len(predictions)), key=lambda i: (predictions[i][0], -predictions[i][1]))
    pairs, shared, parts = [], [], []
    for prediction, (_, _, span) in enumerate(predictions):
        for other, (frames, _) in enumerate(objects):
            first, end = max(span[0], frames[0]), min(span[1], frames[1])
            if (prediction, other) in spatial and end > first:
                union = max(span[1], frames[1]) - min(span[0], frames[0])
                pairs.append((prediction, other))
                shared.append((first, end - 1, end - first))
                parts.append(((end - first) / union, spatial[prediction, other]))
    part = np.array(parts, dtype=np.float64).reshape(-1, 2)
    return Evidence(
        kind="agent",
        labels=tuple("AB"[:n_classes]),
        videos=("v",),
        cls=np.array([predictions[i][0] for i in rank], dtype=np.int64),
        score=np.array([predictions[i][1] for i in rank], dtype=np.float64),
        video=np.zeros(len(rank), dtype=np.int64),
        thing=np.array(rank, dtype=np.int64),
        thing_frames=np.array([span[1] - span[0] for _, _, span in predictions], dtype=np.int64),
        pair_offsets=np.searchsorted(
            [prediction for prediction, _ in pairs], np.arange(len(predictions) + 1)
        ),
        pair_object=np.array([other for _, other in pairs], dtype=np.int64),
        overlap=part.prod(axis=1),
        parts=part,
        shared=np.array(shared, dtype=np.int64).reshape(-1, 3),
        object_frames=np.array([frames[1] - frames[0] for frames, _ in objects], dtype=np.int64),
        object_video=np.zeros(len(objects), dtype=np.int64),
        object_track=np.array(tracks or range(len(objects)), dtype=np.int64),
        instance_offsets=np.cumsum([0, *(len(labels) for _, labels in objects)]),
        instance_cls=np.array([label for _, labels in objects for label in labels], dtype=np.int64),
    )


def faults(found: Evidence, threshold: float = 0.5) -> list[str]:
    """The fault of each prediction, by class and falling score."""
    return find_errors(found, threshold).predictions()["fault"].to_list()


def gain(found: Evidence, fault: str, threshold: float = 0.5) -> float:
    table = compute_error_gains(find_errors(found, threshold), DetectionConfig())
    return dict(table.select("fault", "gain").iter_rows())[fault]


@pytest.mark.parametrize("seed", range(3))
def test_shared_frames_are_those_of_both(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sides = [[np.sort(rng.permutation(12)[: rng.integers(0, 9)]) for _ in range(6)] for _ in range(2)]
    flat = [(np.concatenate(side), np.cumsum([0, *map(len, side)])) for side in sides]
    first, second = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    found = count_shared_frames(first, second, *flat[0], *flat[1])
    for i, j, row in zip(first, second, found.tolist(), strict=True):
        both = sorted(set(sides[0][i].tolist()) & set(sides[1][j].tolist()))
        assert row == ([both[0], both[-1], len(both)] if both else [-1, -1, 0])


def test_each_fault_of_boxes_has_its_name() -> None:
    scores = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
    overlaps = {(0, 0): 0.9, (1, 0): 0.8, (2, 0): 0.3, (3, 1): 0.7, (4, 1): 0.2, (5, 0): 0.05}
    found = evidence([(0, score, NOW) for score in scores], overlaps, [(NOW, (0,)), (NOW, (1,))])
    named = ["right", "duplicate", "space", "class", "class_and_place", "background", "background"]
    assert faults(found) == named


def test_an_overlap_of_exactly_the_threshold_or_the_floor_is_enough() -> None:
    """The threshold is 1/2, and a prediction is meant for what it overlaps by 1/10."""
    scores = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
    overlaps = {(0, 0): 0.5, (1, 0): 0.5, (2, 0): 0.1, (3, 1): 0.5, (4, 1): 0.1, (5, 0): 0.099, (6, 1): 0.099}
    found = evidence([(0, score, NOW) for score in scores], overlaps, [(NOW, (0,)), (NOW, (1,))])
    named = ["right", "duplicate", "space", "class", "class_and_place", "background", "background"]
    assert faults(found) == named


@pytest.mark.parametrize(
    ("span", "spatial", "fault"),
    [
        ((0, 10), 0.4, "space"),
        ((0, 5), 0.4, "space"),  # half of the frames is in time
        ((0, 4), 0.5, "time"),  # half of the area is in place
        ((0, 4), 0.4, "space_time"),
    ],
)
def test_half_is_in_time_and_in_place(span: tuple[int, int], spatial: float, fault: str) -> None:
    assert faults(evidence([(0, 0.9, span)], {(0, 0): spatial}, [((0, 10), (0,))])) == [fault]


def test_of_equal_overlaps_the_first_is_met() -> None:
    objects: list[Object] = [(NOW, (0,)), (NOW, (0,)), (NOW, (1,)), (NOW, (1,))]
    both = {
        (0, 0): 0.9,
        (0, 1): 0.9,
        (1, 0): 0.9,
        (1, 1): 0.9,
        (2, 2): 0.8,
        (2, 3): 0.8,
        (3, 0): 0.3,
        (3, 1): 0.3,
    }
    seen = find_errors(
        evidence([(0, 0.9, NOW), (0, 0.8, NOW), (0, 0.7, NOW), (0, 0.6, NOW)], both, objects), 0.5
    )
    assert seen.meant.tolist() == [0, 1, 2, 0]
    assert seen.predictions()["fault"].to_list() == ["right", "right", "class", "space"]


def test_an_object_without_a_label_is_nothing_to_be_meant_for() -> None:
    seen = find_errors(evidence([(0, 0.9, NOW)], {(0, 0): 0.9}, [(NOW, ()), (NOW, (1,))]), 0.5)
    assert seen.predictions()["fault"].to_list() == ["background"]


def test_an_object_with_two_labels_is_found_for_each() -> None:
    found = evidence([(0, 0.9, NOW), (1, 0.9, NOW)], {(0, 0): 0.9, (1, 0): 0.9}, [(NOW, (0, 1))])
    assert faults(found) == ["right", "right"]


def test_truth_that_a_misplaced_prediction_was_meant_for_is_not_missed() -> None:
    found = evidence([(0, 0.9, NOW), (0, 0.8, NOW)], {(0, 0): 0.9, (1, 1): 0.3}, [(NOW, (0,))] * 3)
    assert find_errors(found, 0.5).missed.tolist() == [False, False, True]


def test_mending_the_class_moves_the_prediction_to_its_class() -> None:
    # A has no truth of its own, so that the mean is over B alone: from nothing found to all.
    found = evidence([(0, 0.9, NOW)], {(0, 0): 0.9}, [(NOW, (1,))])
    assert gain(found, "class") == pytest.approx(1.0)


def test_a_prediction_of_the_wrong_class_is_meant_for_a_label_that_nobody_met() -> None:
    # The object is A and B, and A is met: the prediction of C stands for B.
    found = evidence([(0, 0.9, NOW), (2, 0.8, NOW)], {(0, 0): 0.9, (1, 0): 0.9}, [(NOW, (0, 1))], n_classes=2)
    found = type(found)(**{**vars(found), "labels": ("A", "B", "C")})
    seen = find_errors(found, 0.5)
    assert seen.predictions()["meant_for"].to_list() == ["A", "B"]
    assert not seen.missed.any()
    assert gain(found, "class") == pytest.approx(0.5)
    assert gain(found, "missed") == pytest.approx(0.0)


def test_mending_what_is_met_already_takes_the_prediction_away() -> None:
    found = evidence(
        [(0, 0.9, NOW), (0, 0.5, NOW), (1, 0.8, NOW)],
        {(0, 1): 0.9, (1, 0): 0.9, (2, 1): 0.9},
        [(NOW, (0,)), (NOW, (1,))],
    )
    assert faults(found) == ["class", "right", "right"]
    # A's average precision rises from 1/2 to 1, B's stays 1.
    assert gain(found, "class") == pytest.approx(0.25)


def test_mending_background_and_missed_and_place() -> None:
    found = evidence(
        [(0, 0.9, NOW), (0, 0.8, NOW), (0, 0.7, NOW)],
        {(1, 0): 0.9, (2, 1): 0.3},
        [(NOW, (0,))] * 4,
        n_classes=1,
    )
    # One of four found at precision 1/2: 1/8.
    assert gain(found, "background") == pytest.approx(1 / 4 - 1 / 8)
    # Two of the four were meant by nobody: one of two found at precision 1/2.
    assert gain(found, "missed") == pytest.approx(1 / 4 - 1 / 8)
    # The third prediction hits: precision 2/3 for two of four.
    assert gain(found, "space") == pytest.approx(2 / 4 * 2 / 3 - 1 / 8)


def test_pieces_that_would_together_be_right_are_broken() -> None:
    found = evidence(
        [(0, 0.9, (0, 5)), (0, 0.8, (5, 10))], {(0, 0): 0.9, (1, 0): 0.9}, [((0, 10), (0,))], n_classes=1
    )
    assert faults(found, 0.8) == ["broken", "broken"]
    assert gain(found, "broken", 0.8) == pytest.approx(1.0)


def test_two_predictions_of_the_same_part_are_no_pieces() -> None:
    found = evidence([(0, 0.9, (0, 40)), (0, 0.8, (0, 40))], {(0, 0): 0.9, (1, 0): 0.9}, [((0, 100), (0,))])
    assert faults(found) == ["time", "time"]


def test_a_piece_within_another_adds_nothing() -> None:
    found = evidence(
        [(0, 0.9, (0, 45)), (0, 0.8, (10, 30)), (0, 0.7, (50, 95))],
        {(0, 0): 0.9, (1, 0): 0.9, (2, 0): 0.9},
        [((0, 100), (0,))],
    )
    assert faults(found) == ["broken", "time", "broken"]


def test_one_short_piece_is_wrong_in_time() -> None:
    found = evidence([(0, 0.9, (0, 3))], {(0, 0): 0.9}, [((0, 10), (0,))])
    assert faults(found) == ["time"]


def test_a_tube_that_goes_on_with_another_object_is_switched() -> None:
    found = evidence(
        [(0, 0.9, (0, 20))], {(0, 0): 0.9, (0, 1): 0.9}, [((0, 8), (0,)), ((10, 18), (0,))], n_classes=1
    )
    assert faults(found) == ["switched"]
    # It is right for one of the two, once it ends with it.
    assert gain(found, "switched") == pytest.approx(0.5)


def test_somebody_beside_the_object_at_the_same_time_is_no_switch() -> None:
    objects = [((0, 80), (0,)), ((0, 10), (1,))]
    found = evidence([(0, 0.9, (0, 200))], {(0, 0): 0.9, (0, 1): 0.9}, objects)
    assert faults(found) == ["time"]


def test_parts_of_one_track_are_no_switch() -> None:
    objects = [((0, 8), (0,)), ((10, 18), (1,))]
    found = evidence([(0, 0.9, (0, 20))], {(0, 0): 0.9, (0, 1): 0.9}, objects, tracks=[5, 5])
    assert faults(found) == ["time"]


def test_a_tube_that_only_lasts_too_long_is_wrong_in_time() -> None:
    found = evidence([(0, 0.9, (0, 20))], {(0, 0): 0.9}, [((0, 8), (0,))])
    assert faults(found) == ["time"]


def test_nothing_predicted_and_nothing_asked() -> None:
    nothing = evidence([], {}, [])
    table = compute_error_gains(find_errors(nothing, 0.5), DetectionConfig())
    assert table["predictions"].sum() == 0
    assert table["gain"].null_count() == len(table)
    only_truth = evidence([], {}, [(NOW, (0,))])
    assert find_errors(only_truth, 0.5).missed.tolist() == [True]
    only_predictions = evidence([(0, 0.9, NOW)], {}, [])
    assert faults(only_predictions) == ["background"]


@pytest.mark.parametrize("seed", range(20))
def test_every_prediction_has_one_fault_and_taking_faults_away_never_loses(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def span() -> tuple[int, int]:
        first = int(draw.integers(0, 20))
        return first, first + int(draw.integers(1, 15))

    objects = [(span(), tuple(sorted(set(draw.integers(0, 2, 2).tolist())))) for _ in range(6)]
    predictions = [(int(draw.integers(2)), float(draw.integers(1, 9)) / 10, span()) for _ in range(12)]
    spatial = {(c, o): float(draw.random()) for c in range(12) for o in range(6) if draw.random() < 0.4}
    seen = find_errors(evidence(predictions, spatial, objects), 0.4)
    assert set(seen.predictions()["fault"]) <= set(FAULTS)
    right = seen.meant[seen.fault == 0]
    assert len(set(right.tolist())) == len(right)
    worth = dict(compute_error_gains(seen, DetectionConfig()).select("fault", "gain").iter_rows())
    assert min(worth[name] for name in ("duplicate", "background", "class_and_place", "missed")) >= -1e-12
    # One prediction takes the place of what it was meant for, so precision only grows with its own class.
    assert min(worth[name] for name in ("space", "time", "space_time", "broken", "switched")) >= -1e-12
