"""The synthetic road: the shape, the laws and the oddities of ROAD, from a seed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.demo_data import road as terms
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import UsageError
from roadaware.scenes.tables import Scenes


@pytest.fixture(scope="module")
def world() -> Scenes:
    return generate_road_scenes(
        videos=6, frames=[200, 150, 150, 150, 100, 100], seed=1, holes=0.3, unused=0.1
    )


def labels_of(scenes: Scenes, kind: str) -> dict[int, set[int]]:
    rows = scenes.labels.filter(pl.col("kind") == kind).group_by("box").agg("label")
    return {box: set(labels) for box, labels in rows.iter_rows()}


def test_the_vocabularies_have_the_counts_of_road() -> None:
    counts = {kind: len(labels) for kind, labels in terms.VOCABULARIES.items()}
    assert counts == {
        "agentness": 1,
        "agent": 10,
        "action": 19,
        "location": 12,
        "duplex": 39,
        "event": 68,
        "av_action": 7,
    }
    assert all(len(set(labels)) == len(labels) for labels in terms.VOCABULARIES.values())


def test_equal_seeds_make_equal_sets_and_others_do_not() -> None:
    assert generate_road_scenes(seed=4) == generate_road_scenes(seed=4)
    assert generate_road_scenes(seed=4) != generate_road_scenes(seed=5)


def test_boxes_lie_within_their_images_and_have_an_extent(world: Scenes) -> None:
    boxes = world.boxes.join(world.videos, on="video")
    inside = (pl.col("x1_px") >= 0) & (pl.col("x2_px") <= pl.col("width_px"))
    inside &= (pl.col("y1_px") >= 0) & (pl.col("y2_px") <= pl.col("height_px"))
    assert boxes.select((inside & (pl.col("x2_px") - pl.col("x1_px") > 4)).all()).item()


def test_only_annotated_frames_have_boxes_and_labels(world: Scenes) -> None:
    seen = world.frames.filter("annotated").select("video", "frame")
    assert 0 < len(seen) < len(world.frames)
    assert world.boxes.join(seen, on=["video", "frame"], how="anti").is_empty()
    assert (
        world.frame_labels.select("video", "frame")
        .unique()
        .sort("video", "frame")
        .equals(seen.sort("video", "frame"))
    )


def test_composite_labels_are_those_whose_parts_a_box_has(world: Scenes) -> None:
    agent, action, location = (labels_of(world, kind) for kind in ("agent", "action", "location"))
    duplex, event = labels_of(world, "duplex"), labels_of(world, "event")
    children = world.meta.notes["children"]
    for box in world.boxes["box"].to_list():
        has = [each.get(box, set()) for each in (agent, action, location)]
        expected = {k for k, (a, b) in enumerate(children["duplex"]) if a in has[0] and b in has[1]}
        assert duplex.get(box, set()) == expected
        triples = {
            k
            for k, parts in enumerate(children["event"])
            if all(p in h for p, h in zip(parts, has, strict=True))
        }
        assert event.get(box, set()) == triples


def test_tubes_hold_exactly_where_their_label_does(world: Scenes) -> None:
    """Rebuilt by loops: every maximal run of a track's boxes with a label, over holes, split into spans."""
    frames: dict[int, list[tuple[int, int]]] = {}
    for box, tube, frame in world.boxes.select("box", "tube", "frame").sort("tube", "frame").iter_rows():
        frames.setdefault(tube, []).append((frame, box))
    expected = set()
    for kind in terms.KINDS:
        labels = labels_of(world, kind)
        for track, boxes in frames.items():
            for label in set().union(*(labels.get(box, set()) for _, box in boxes)):
                run: list[int] = []
                for frame, box in [*boxes, (-1, -1)]:
                    if label in labels.get(box, set()):
                        run.append(frame)
                    elif run:
                        expected.add((track, kind, label, tuple(run)))
                        run = []
    derived = world.tubes.filter(pl.col("parent").is_not_null()).join(
        world.tube_labels.drop("kind"), on="tube"
    )
    found = set()
    for row in derived.iter_rows(named=True):
        covered = [f for low, high in row["spans"] for f in range(low, high)]
        assert (row["start_frame"], row["end_frame"]) == (covered[0], covered[-1] + 1)
        found.add((row["parent"], row["kind"], row["label"], tuple(covered)))
    assert found == expected
    assert len(found) == len(derived)


def test_some_tracks_have_holes_and_some_labels_change_and_some_boxes_have_several(world: Scenes) -> None:
    spans = world.tubes.filter(pl.col("kind") == "agent")["spans"].list.len()
    assert (spans > 1).sum() >= 3
    actions = world.tubes.filter(pl.col("kind") == "action").group_by("parent").len()["len"]
    assert (actions > 1).sum() >= 10
    several = world.labels.filter(pl.col("kind") == "action").group_by("box").len()["len"]
    assert (several > 1).sum() >= 50


def test_some_boxes_have_no_used_label(world: Scenes) -> None:
    bare = world.boxes.join(world.labels, on="box", how="anti")
    assert 0 < bare["tube"].n_unique() < world.boxes["tube"].n_unique() / 4
    assert set(bare["tube"]).isdisjoint(world.tubes["parent"].drop_nulls())


def test_what_the_vehicle_does_has_tubes_without_boxes_and_now_and_then_two_labels(world: Scenes) -> None:
    tubes = world.tubes.filter(pl.col("kind") == "av_action").join(world.tube_labels.drop("kind"), on="tube")
    assert tubes["parent"].is_null().all()
    spread = tubes.select("video", "label", frame=pl.int_ranges("start_frame", "end_frame")).explode("frame")
    key = ["video", "frame", "label"]
    assert spread.select(key).sort(key).equals(world.frame_labels.select(key).sort(key))
    rows = world.frame_labels.group_by("video", "frame", maintain_order=True).agg("label")
    both = [labels for labels in rows["label"].to_list() if len(labels) == 2]
    assert any(first > second for first, second in both)  # the first is the one meant first, not the smaller


def test_every_fourth_video_is_for_test_and_the_others_validate_in_turn(world: Scenes) -> None:
    splits = world.videos["splits"].to_list()
    assert splits[:4] == [
        ["val_1", "train_2", "train_3"],
        ["train_1", "val_2", "train_3"],
        ["train_1", "train_2", "val_3"],
        ["test"],
    ]
    assert set(generate_road_scenes(videos=1).videos["splits"][0]) == {
        *(f"{part}_{n}" for part in ("train", "val") for n in (1, 2, 3)),
        "test",
    }


def test_the_number_of_boxes_is_about_what_was_asked_for() -> None:
    for per_frame in (2.0, 8.0):
        scenes = generate_road_scenes(videos=3, frames=1000, boxes_per_frame=per_frame)
        found = len(scenes.boxes) / scenes.frames["annotated"].sum()
        assert found == pytest.approx(per_frame, rel=0.15)


def test_road_users_move_little_from_frame_to_frame(world: Scenes) -> None:
    """So that boxes of one overlap in consecutive frames, as a linker needs."""
    rows = world.boxes.sort("tube", "frame").with_columns(
        pl.col("frame", "tube", "x1_px", "x2_px").shift(1).name.prefix("before_")
    )
    rows = rows.filter(pl.col("tube") == pl.col("before_tube"), pl.col("frame") == pl.col("before_frame") + 1)
    shared = np.minimum(rows["x2_px"], rows["before_x2_px"]) - np.maximum(rows["x1_px"], rows["before_x1_px"])
    share = shared / (rows["x2_px"] - rows["x1_px"]).to_numpy()
    assert np.quantile(share, 0.05) > 0.6


@pytest.mark.parametrize("wrong", [{"videos": 0}, {"frames": 10}, {"videos": 2, "frames": [30, 30, 30]}])
def test_a_set_too_small_is_refused(wrong: dict) -> None:
    with pytest.raises(UsageError, match="at least 1 video of at least 24 frames"):
        generate_road_scenes(**wrong)
