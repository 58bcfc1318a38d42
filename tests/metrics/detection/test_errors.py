"""Hand-worked faults, and that mending each is worth what it should be."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import FAULTS, Evidence, diagnose, mended


def evidence(
    claims: list[tuple[int, float, int]],
    pairs: dict[int, list[tuple[int, float, float]]],
    objects: list[tuple[int, tuple[int, ...]]],
    thing_frames: list[int] | None = None,
    n_classes: int = 2,
    tracks: list[int] | None = None,
) -> Evidence:
    """Claims: class, score, thing; pairs of a thing: object, temporal, spatial; objects: frames, labels."""
    ranked = sorted(claims, key=lambda claim: (claim[0], -claim[1]))
    cls, score, thing = (np.array([claim[i] for claim in ranked]) for i in range(3))
    things = max((claim[2] for claim in claims), default=-1) + 1
    rows = [(t, *pair) for t in range(things) for pair in pairs.get(t, [])]
    parts = np.array([row[2:] for row in rows], dtype=np.float64).reshape(-1, 2)
    return Evidence(
        kind="agent",
        labels=tuple("AB"[:n_classes]),
        videos=("v",),
        cls=cls.astype(np.int64),
        score=score.astype(np.float64),
        video=np.zeros(len(ranked), dtype=np.int64),
        thing=thing.astype(np.int64),
        thing_frames=np.array(thing_frames or [1] * things, dtype=np.int64),
        pair_offsets=np.searchsorted([row[0] for row in rows], np.arange(things + 1)).astype(np.int64),
        pair_object=np.array([row[1] for row in rows], dtype=np.int64),
        overlap=parts.prod(axis=1),
        parts=parts,
        object_frames=np.array([frames for frames, _ in objects], dtype=np.int64),
        object_video=np.zeros(len(objects), dtype=np.int64),
        object_track=np.array(tracks or range(len(objects)), dtype=np.int64),
        instance_offsets=np.cumsum([0, *(len(labels) for _, labels in objects)]),
        instance_cls=np.array([label for _, labels in objects for label in labels], dtype=np.int64),
    )


def faults(found: Evidence, threshold: float = 0.5) -> list[str]:
    """The fault of each claim, by class and falling score."""
    return diagnose(found, threshold).claims()["fault"].to_list()


def gain(found: Evidence, fault: str, threshold: float = 0.5) -> float:
    table = mended(diagnose(found, threshold), DetectionConfig())
    return dict(table.select("fault", "gain").iter_rows())[fault]


def test_each_fault_of_boxes_has_its_name() -> None:
    found = evidence(
        [(0, 0.9, 0), (0, 0.8, 1), (0, 0.7, 2), (0, 0.6, 3), (0, 0.5, 4), (0, 0.4, 5), (0, 0.3, 6)],
        {
            0: [(0, 1, 0.9)],
            1: [(0, 1, 0.8)],
            2: [(0, 1, 0.3)],
            3: [(1, 1, 0.7)],
            4: [(1, 1, 0.2)],
            5: [(0, 1, 0.05)],
        },
        [(1, (0,)), (1, (1,))],
    )
    named = ["right", "duplicate", "space", "class", "class_and_place", "background", "background"]
    assert faults(found) == named


def test_boxes_that_share_their_frame_are_misplaced_in_space() -> None:
    found = evidence([(0, 0.9, 0)], {0: [(0, 1.0, 0.3)]}, [(1, (0,))])
    assert faults(found) == ["space"]


def test_an_object_with_two_labels_is_found_for_each() -> None:
    found = evidence([(0, 0.9, 0), (1, 0.9, 0)], {0: [(0, 1, 0.9)]}, [(1, (0, 1))])
    assert faults(found) == ["right", "right"]


def test_truth_that_a_misplaced_claim_was_meant_for_is_not_missed() -> None:
    objects = [(1, (0,)), (1, (0,)), (1, (0,))]
    found = evidence([(0, 0.9, 0), (0, 0.8, 1)], {0: [(0, 1, 0.9)], 1: [(1, 1, 0.3)]}, objects)
    assert diagnose(found, 0.5).missed.tolist() == [False, False, True]


def test_mending_the_class_moves_the_claim_to_its_class() -> None:
    # A has no truth of its own, so that the mean is over B alone: from nothing found to all.
    found = evidence([(0, 0.9, 0)], {0: [(0, 1, 0.9)]}, [(1, (1,))])
    assert gain(found, "class") == pytest.approx(1.0)


def test_mending_what_is_met_already_takes_the_claim_away() -> None:
    # B: the better claim is a duplicate-to-be of the wrong class; A: one right claim behind one of B's truth.
    found = evidence(
        [(0, 0.9, 0), (0, 0.5, 1), (1, 0.8, 2)],
        {0: [(1, 1, 0.9)], 1: [(0, 1, 0.9)], 2: [(1, 1, 0.9)]},
        [(1, (0,)), (1, (1,))],
    )
    assert faults(found) == ["class", "right", "right"]
    # A's average precision rises from 1/2 to 1, B's stays 1.
    assert gain(found, "class") == pytest.approx(0.25)


def test_mending_background_and_missed_and_place() -> None:
    found = evidence(
        [(0, 0.9, 0), (0, 0.8, 1), (0, 0.7, 2)],
        {1: [(0, 1, 0.9)], 2: [(1, 1, 0.3)]},
        [(1, (0,)), (1, (0,)), (1, (0,)), (1, (0,))],
        n_classes=1,
    )
    # One of four found at precision 1/2: 1/8.
    assert gain(found, "background") == pytest.approx(1 / 4 - 1 / 8)
    # Two of the four were meant by nobody: one of two found at precision 1/2.
    assert gain(found, "missed") == pytest.approx(1 / 4 - 1 / 8)
    # The third claim hits: precision 2/3 for two of four.
    assert gain(found, "space") == pytest.approx(2 / 4 * 2 / 3 - 1 / 8)


def test_pieces_that_would_together_be_right_are_broken() -> None:
    # Two tubes of 5 frames on the halves of one of 10.
    found = evidence(
        [(0, 0.9, 0), (0, 0.8, 1)], {0: [(0, 0.5, 0.9)], 1: [(0, 0.5, 0.9)]}, [(10, (0,))], [5, 5]
    )
    assert faults(found, 0.8) == ["broken", "broken"]
    assert gain(found, "broken", 0.8) == pytest.approx(1.0)


def test_one_short_piece_is_wrong_in_time() -> None:
    found = evidence([(0, 0.9, 0)], {0: [(0, 0.3, 0.9)]}, [(10, (0,))], [3])
    assert faults(found) == ["time"]


def test_a_tube_that_goes_on_with_another_object_is_switched() -> None:
    # 20 frames: the first 8 on one object, the others on the next.
    found = evidence([(0, 0.9, 0)], {0: [(0, 0.4, 0.9), (1, 0.3, 0.9)]}, [(8, (0,)), (6, (0,))], [20])
    assert faults(found) == ["switched"]


def test_parts_of_one_track_are_no_switch() -> None:
    found = evidence(
        [(0, 0.9, 0)], {0: [(0, 0.4, 0.9), (1, 0.3, 0.9)]}, [(8, (0,)), (6, (1,))], [20], tracks=[5, 5]
    )
    assert faults(found) == ["time"]


def test_a_tube_that_only_lasts_too_long_is_wrong_in_time() -> None:
    found = evidence([(0, 0.9, 0)], {0: [(0, 0.4, 0.9)]}, [(8, (0,))], [20])
    assert faults(found) == ["time"]


def test_nothing_claimed_and_nothing_asked() -> None:
    nothing = evidence([], {}, [])
    table = mended(diagnose(nothing, 0.5), DetectionConfig())
    assert table["claims"].sum() == 0
    assert table["gain"].null_count() == len(table)
    only_truth = evidence([], {}, [(1, (0,))])
    assert diagnose(only_truth, 0.5).missed.tolist() == [True]
    only_claims = evidence([(0, 0.9, 0)], {}, [])
    assert faults(only_claims) == ["background"]


@pytest.mark.parametrize("seed", range(20))
def test_every_claim_has_one_fault_and_mending_all_placed_ones_never_loses(seed: int) -> None:
    draw = np.random.default_rng(seed)
    objects = [
        (int(draw.integers(1, 9)), tuple(sorted(set(draw.integers(0, 2, 2).tolist())))) for _ in range(6)
    ]
    claims = [(int(draw.integers(2)), float(draw.integers(1, 9)) / 10, thing) for thing in range(12)]
    pairs = {
        thing: [(o, float(draw.random()), float(draw.random())) for o in range(6) if draw.random() < 0.4]
        for thing in range(12)
    }
    found = evidence(claims, pairs, objects, draw.integers(1, 9, 12).tolist())
    seen = diagnose(found, 0.4)
    assert set(seen.claims()["fault"]) <= set(FAULTS)
    right = seen.meant[seen.fault == 0]
    assert len(set(right.tolist())) == len(right)
    table = mended(seen, DetectionConfig())
    worth = dict(table.select("fault", "gain").iter_rows())
    assert min(worth[name] for name in ("duplicate", "background", "class_and_place", "missed")) >= -1e-12
