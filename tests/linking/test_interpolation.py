"""Gaps of paths are filled on a straight line, and what is too short goes, as a plain loop finds."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prediction_sets import SIDES, predictions

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.linking.postprocessing import InterpolationConfig, interpolate_tubes
from roadaware.scenes.dense_scores import convert_to_matrix


def path(number, frames, video="v"):
    """Detections of one path that moves a pixel a frame and grows less sure."""
    return [(video, f, (f, 0, f + 10, 10), 1 - f / 100, [f / 100, 1 - f / 100, 0.5], number) for f in frames]


def tubes(rows, derived=()):
    """A `tubes` table of the paths in rows; derived are (parent, spans)."""
    table = [(number, "v", None, None, None) for number in sorted({r[5] for r in rows if r[5] is not None})]
    table += [(100 + i, "v", parent, "agent", spans) for i, (parent, spans) in enumerate(derived)]
    return pl.DataFrame(
        table,
        schema={
            "tube": pl.Int64,
            "video": pl.String,
            "parent": pl.Int64,
            "kind": pl.String,
            "spans": pl.List(pl.List(pl.Int64)),
        },
        orient="row",
    )


def linked(rows, derived=()):
    made = predictions(rows, tubes=tubes(rows, derived))
    labels = pl.DataFrame(
        {"tube": [100 + i for i in range(len(derived))], "kind": "agent", "label": 0},
        schema={"tube": pl.Int64, "kind": pl.String, "label": pl.Int64},
    )
    return made.with_tables(tube_labels=labels)


def test_a_gap_by_hand() -> None:
    rows = path(0, [2, 3, 6])
    found = interpolate_tubes(linked(rows, [(0, [[2, 4], [6, 7]])]))
    assert found.boxes["frame"].to_list() == [2, 3, 6, 4, 5]
    assert found.boxes["interpolated"].to_list() == [False, False, False, True, True]
    assert found.boxes["box"].to_list() == [0, 1, 2, 3, 4]
    assert found.boxes["x1_px"].to_list() == [2, 3, 6, 4, 5]
    assert found.boxes["score"].to_list() == pytest.approx([0.98, 0.97, 0.94, 0.96, 0.95])
    assert convert_to_matrix(found.boxes["scores"], 3)[3] == pytest.approx([0.04, 0.96, 0.5])
    assert found.tubes["spans"].to_list() == [None, [[2, 7]]]
    assert found.meta.notes["after_detector"][0]["boxes_made"] == 2


def test_only_gaps_that_are_short_enough_are_filled() -> None:
    rows = path(0, [0, 2, 6])
    spans = [(0, [[0, 1], [2, 3], [6, 7]])]
    found = interpolate_tubes(linked(rows, spans), InterpolationConfig(max_gap=1))
    assert found.boxes["frame"].to_list() == [0, 2, 6, 1]
    assert found.tubes["spans"].to_list() == [None, [[0, 3], [6, 7]]]
    none = interpolate_tubes(linked(rows, spans), InterpolationConfig(max_gap=0))
    assert none.boxes["frame"].to_list() == [0, 2, 6]
    assert none.tubes["spans"].to_list() == [None, [[0, 1], [2, 3], [6, 7]]]


def test_what_trimming_cut_away_stays_away() -> None:
    found = interpolate_tubes(linked(path(0, [0, 1, 2, 3, 6]), [(0, [[0, 1], [2, 4], [6, 7]])]))
    assert found.tubes["spans"].to_list() == [None, [[0, 1], [2, 7]]]


def test_short_paths_and_tubes_go_and_their_detections_stay() -> None:
    rows = [*path(0, [0, 1, 2, 3]), *path(1, [0, 2])]
    derived = [(0, [[0, 4]]), (0, [[0, 2]]), (1, [[0, 1], [2, 3]])]
    found = interpolate_tubes(linked(rows, derived), InterpolationConfig(min_length=4))
    assert found.tubes["tube"].to_list() == [0, 100]
    assert found.tube_labels["tube"].to_list() == [100]
    assert found.boxes["tube"].to_list() == [0, 0, 0, 0, None, None]
    assert not found.boxes["interpolated"].any()
    just = interpolate_tubes(linked(rows, derived), InterpolationConfig(min_length=3))
    assert just.tubes["tube"].to_list() == [0, 1, 100, 102], "filled boxes count"


@tried(100)
@given(
    st.lists(st.sets(st.integers(0, 12), min_size=1), max_size=4),
    st.sampled_from([None, 0, 1, 3]),
    st.sampled_from([1, 2, 5]),
)
def test_filling_equals_a_loop(paths, max_gap, min_length) -> None:
    rows = [row for number, frames in enumerate(paths) for row in path(number, sorted(frames))]
    rng = np.random.default_rng(len(rows))
    rows = [rows[i] for i in rng.permutation(len(rows))]
    found = interpolate_tubes(linked(rows), InterpolationConfig(max_gap, min_length))
    expected = {}
    for number, frames in enumerate(paths):
        held = sorted(frames)
        for a, b in itertools.pairwise(sorted(frames)):
            if max_gap is None or b - a - 1 <= max_gap:
                held += range(a + 1, b)
        if len(held) >= min_length:
            expected[number] = sorted(held)
    got = found.boxes.filter(pl.col("tube").is_not_null()).sort("tube", "frame")
    assert {
        number: part["frame"].to_list()
        for (number,), part in got.partition_by("tube", as_dict=True, maintain_order=True).items()
    } == expected
    assert found.tubes["tube"].to_list() == list(expected)
    assert got["x1_px"].to_list() == pytest.approx(got["frame"].to_list())
    assert got["score"].to_list() == pytest.approx([1 - f / 100 for f in got["frame"]])
    seen = found.boxes.filter(~pl.col("interpolated"))
    assert seen.select("box", "video", "frame", *SIDES).equals(
        linked(rows).boxes.select("box", "video", "frame", *SIDES)
    )


def test_interpolating_twice_changes_nothing_more() -> None:
    once = interpolate_tubes(linked(path(0, [0, 3, 9]), [(0, [[0, 1], [3, 4], [9, 10]])]))
    again = interpolate_tubes(once)
    assert again.boxes.equals(once.boxes)
    assert again.tubes.equals(once.tubes)


def test_what_cannot_be_filled_is_refused() -> None:
    squeezed = linked(path(0, [0, 2]))
    squeezed = squeezed.with_tables(tubes=squeezed.tubes.with_columns(consecutive=pl.lit(value=True)))
    with pytest.raises(InputError, match="predicted for consecutive frames"):
        interpolate_tubes(squeezed)
    with pytest.raises(InputError, match="tube 0 has two boxes in frame 2"):
        interpolate_tubes(linked([*path(0, [0, 2]), *path(0, [2])]))
    for wrong in ({"max_gap": -1}, {"min_length": 0}):
        with pytest.raises(UsageError):
            InterpolationConfig(**wrong)
    assert interpolate_tubes(predictions([])).boxes.is_empty()
