"""Tubes are cut where the labels of a track's boxes change, as a plain loop over frames finds."""

import polars as pl
import pytest
from event_sets import plain_stretches, road_set, tracks, tubes_of
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import InputError
from roadaware.scenes.factors import split_tubes_by_label


def moving(*labels, start=0):
    """A car whose actions in consecutive frames are given; None is a frame without it."""
    return {
        start + i: {"agent": [1], "action": list(each)} for i, each in enumerate(labels) if each is not None
    }


def test_a_car_that_stops_gives_two_contiguous_action_tubes() -> None:
    scenes = split_tubes_by_label(road_set([("v", moving([0], [0], [1], [1], [1]))]), ["action"])
    assert tubes_of(scenes, "action") == {0: [(0, [[0, 2]]), (1, [[2, 5]])]}
    assert scenes.tubes["tube"].to_list() == [0, 1, 2]
    assert scenes.tubes["video"].to_list() == ["v", "v", "v"]


def test_each_of_several_actions_at_once_has_its_own_tubes() -> None:
    scenes = split_tubes_by_label(road_set([("v", moving([0], [0, 2], [2], [0]))]), ["action"])
    assert tubes_of(scenes, "action") == {0: [(0, [[0, 2]]), (0, [[3, 4]]), (2, [[1, 3]])]}


def test_a_hole_does_not_end_a_tube_and_its_spans_leave_it_out() -> None:
    track = moving([0], [0], None, None, [0], [1])
    scenes = split_tubes_by_label(road_set([("v", track)]), ["action"])
    assert tubes_of(scenes, "action") == {0: [(0, [[0, 2], [4, 5]]), (1, [[5, 6]])]}


@pytest.mark.parametrize(
    ("longest", "spans"), [(1, [[[0, 2]], [[4, 5]]]), (2, [[[0, 2], [4, 5]]]), (None, [[[0, 2], [4, 5]]])]
)
def test_a_hole_longer_than_the_longest_ends_it(longest, spans) -> None:
    track = moving([0], [0], None, None, [0])
    scenes = split_tubes_by_label(road_set([("v", track)]), ["action"], max_hole=longest)
    assert tubes_of(scenes, "action") == {0: [(0, each) for each in spans]}


def test_a_box_without_the_label_ends_it_even_inside_a_hole_that_is_short_enough() -> None:
    scenes = split_tubes_by_label(road_set([("v", moving([0], [], [0]))]), ["action"], max_hole=5)
    assert tubes_of(scenes, "action") == {0: [(0, [[0, 1]]), (0, [[2, 3]])]}


def test_tubes_of_other_kinds_stay_and_those_of_the_kind_are_replaced() -> None:
    scenes = road_set([("v", moving([0], [1]))])
    both = split_tubes_by_label(split_tubes_by_label(scenes, ["agent"]), ["action"])
    again = split_tubes_by_label(both, ["action"])
    assert again.tubes["kind"].to_list() == [None, "agent", "action", "action"]
    assert tubes_of(again, "action") == tubes_of(both, "action")
    assert again.tube_labels["tube"].is_in(again.tubes["tube"].implode()).all()


def test_boxes_of_no_track_have_no_tubes() -> None:
    scenes = road_set([("v", moving([0], [0]))])
    loose = scenes.with_tables(boxes=scenes.boxes.with_columns(tube=pl.lit(None, pl.Int64)))
    assert tubes_of(split_tubes_by_label(loose, ["action"]), "action") == {}
    without = scenes.with_tables(boxes=scenes.boxes.drop("tube"))
    assert tubes_of(split_tubes_by_label(without, ["action"]), "action") == {}


def test_a_negative_hole_is_refused() -> None:
    with pytest.raises(InputError, match="from 0 on, not -1"):
        split_tubes_by_label(road_set([]), ["action"], max_hole=-1)


@pytest.mark.slow
@tried(80)
@given(tracks, st.sampled_from([None, 0, 1, 3]))
def test_stretches_equal_those_of_a_loop_over_frames(found, max_hole) -> None:
    scenes = split_tubes_by_label(road_set(found), ["action", "location"], max_hole=max_hole)
    for kind in ("action", "location"):
        plain = {t: plain_stretches(track, kind, max_hole) for t, (_, track) in enumerate(found)}
        assert tubes_of(scenes, kind) == {t: tubes for t, tubes in plain.items() if tubes}


@pytest.mark.slow
@tried(50)
@given(tracks)
def test_the_order_of_boxes_and_labels_changes_no_tube(found) -> None:
    scenes = road_set(found)
    turned = scenes.with_tables(boxes=scenes.boxes.reverse(), labels=scenes.labels.reverse())
    one, other = split_tubes_by_label(scenes, ["action"]), split_tubes_by_label(turned, ["action"])
    assert one.tubes.equals(other.tubes)
    assert one.tube_labels.equals(other.tube_labels)


def test_a_made_up_road_is_cut_as_it_was_made() -> None:
    world = generate_road_scenes(videos=2, frames=200, seed=3)
    kinds = ["agent", "action", "location", "duplex", "event"]
    cut = split_tubes_by_label(world, kinds)
    assert any(len(spans) > 1 for tubes in tubes_of(cut, "action").values() for _, spans in tubes)
    for kind in kinds:
        assert tubes_of(cut, kind) == tubes_of(world, kind)
