"""Counts of boxes and tubes by kind, class and split, and beside the printed ones."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from roadaware.analysis.road_counts import COUNTS, compare_printed_counts, count, count_table
from roadaware.demo_data.road import generate_road_scenes
from roadaware.protocols.tpami22 import load_printed
from roadaware.scenes.tables import Meta, Scenes


@pytest.fixture(scope="module")
def world() -> Scenes:
    return generate_road_scenes(videos=5, frames=40, seed=3)


def plain_counts(scenes: Scenes) -> Counter[tuple[str, str, int, str]]:
    """(what, kind, label, split) by loops over the rows."""
    splits = {row["video"]: ["all", *row["splits"]] for row in scenes.videos.iter_rows(named=True)}
    video_of_box = dict(scenes.boxes.select("box", "video").iter_rows())
    video_of_tube = dict(scenes.tubes.select("tube", "video").iter_rows())
    found: Counter[tuple[str, str, int, str]] = Counter()
    for what, rows, video in (
        ("boxes", scenes.labels, lambda row: video_of_box[row["box"]]),
        ("tubes", scenes.tube_labels, lambda row: video_of_tube[row["tube"]]),
        ("frames", scenes.frame_labels, lambda row: row["video"]),
    ):
        for row in rows.iter_rows(named=True):
            found.update((what, row["kind"], row["label"], split) for split in splits[video(row)])
    return found


def test_every_count_is_that_of_a_loop_over_rows(world: Scenes) -> None:
    plain = plain_counts(world)
    rows = count(world).filter(pl.col("label").is_not_null(), pl.col("kind") != "agentness")
    seen = 0
    for row in rows.iter_rows(named=True):
        label = world.meta.vocabularies[row["kind"]].index(row["label"])
        for what in ("boxes", "frames", "tubes"):
            expected = plain[what, row["kind"], label, row["split"]]
            assert (row[what] or 0) == expected, row
            seen += expected
    assert seen == sum(plain.values())


def test_kinds_and_classes_keep_the_order_of_the_vocabularies_with_the_total_last(world: Scenes) -> None:
    counts = count(world)
    assert counts.schema == pl.Schema(COUNTS)
    assert counts["kind"].unique(maintain_order=True).to_list() == list(world.meta.vocabularies)
    agents = counts.filter(pl.col("kind") == "agent", pl.col("split") == "all")
    assert agents["label"].to_list() == [*world.meta.vocabularies["agent"], None]
    assert agents["boxes"].to_list()[-1] == sum(agents["boxes"].to_list()[:-1])


def test_a_class_that_does_not_occur_has_zeros_and_a_kind_that_labels_no_frame_has_none_there(
    world: Scenes,
) -> None:
    counts = count(world)
    assert counts.filter(pl.col("kind") == "agent", pl.col("label") == "EmVeh")["boxes"].sum() == 0
    assert counts.filter(pl.col("kind") == "agent")["frames"].null_count() == len(
        counts.filter(pl.col("kind") == "agent")
    )
    assert counts.filter(pl.col("kind") == "av_action")["boxes"].is_null().all()
    assert counts.filter(pl.col("kind") == "av_action")["frames"].null_count() == 0


def test_agentness_counts_all_boxes_and_the_tracks_that_own_them(world: Scenes) -> None:
    whole = count(world).filter(pl.col("kind") == "agentness", pl.col("split") == "all")
    tracks = world.tubes.filter(pl.col("parent").is_null(), pl.col("kind").is_null())
    assert whole.select("boxes", "tubes").rows() == [(len(world.boxes), len(tracks))] * 2


def test_splits_partition_all_videos(world: Scenes) -> None:
    wide = count(world).pivot("split", index=["kind", "label"], values="tubes")
    for n in (1, 2, 3):
        assert (wide["test"] + wide[f"train_{n}"] + wide[f"val_{n}"]).to_list() == wide["all"].to_list()


def test_a_set_without_splits_or_tubes_is_counted_too() -> None:
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["a"]}),
        frame_labels=pl.DataFrame(
            {"video": ["a"] * 3, "frame": [0, 1, 2], "kind": ["rain"] * 3, "label": [0, 1, 1]}
        ),
        meta=Meta(vocabularies={"rain": ("no", "yes"), "unasked": ("x",)}),
    )
    assert count(scenes).rows() == [
        ("rain", "no", "all", None, 1, None),
        ("rain", "yes", "all", None, 2, None),
        ("rain", None, "all", None, 3, None),
    ]
    assert count_table(count(scenes), "rain")["all"].to_list() == ["1", "2", "3"]


def test_an_empty_set_has_no_counts() -> None:
    assert count(Scenes()).is_empty()


def test_the_table_of_a_kind_has_the_form_of_the_print(world: Scenes) -> None:
    shown = count_table(count(world), "agent")
    assert shown.columns[:3] == ["label", "all", "test"]
    assert shown["label"].to_list()[-1] == "total"
    row = count(world).filter(pl.col("label") == "Ped", pl.col("split") == "val_1").row(0, named=True)
    assert shown.filter(pl.col("label") == "Ped")["val_1"].item() == f"{row['boxes']}/{row['tubes']}"


def as_printed(videos: int, test: bool = True) -> tuple[pl.DataFrame, Scenes]:
    """Counts that agree with the print wherever that can be read, and a set of so many videos."""
    rows = []
    for number, kind in (("15", "agent"), ("18", "av_action")):
        printed_rows = load_printed(number).filter(pl.col("label").is_not_null())
        wide = printed_rows.pivot("level", index=["kind", "label", "split"], values="value")
        first = "frames" if kind == "av_action" else "boxes"
        for row in wide.iter_rows(named=True):
            if test or row["split"] != "test":
                count_of = {first: row[first], "tubes": row["tubes"]}
                rows.append({"kind": kind, "label": row["label"], "split": row["split"], **count_of})
    counts = pl.DataFrame(rows, schema=COUNTS)
    names = [f"2014-07-14-14-49-50_stereo_centre_{k:02}" for k in range(videos)]
    return counts, Scenes(videos=pl.DataFrame({"video": names}), meta=Meta(dataset="ROAD"))


def test_counts_as_printed_do_not_differ_and_others_are_flagged() -> None:
    counts, scenes = as_printed(22)
    both = compare_printed_counts(counts, scenes)
    assert both is not None
    assert both["differs"].sum() == 0
    changed = counts.with_columns(pl.col("tubes") + pl.when(pl.col("label") == "Bus").then(1).otherwise(0))
    both = compare_printed_counts(changed, scenes)
    assert both is not None
    assert set(both.filter(pl.col("differs"))["label"]) == {"Bus"}
    assert both.filter(pl.col("differs")).height == 8


def test_what_one_table_leaves_unreadable_is_taken_from_another_that_prints_it() -> None:
    """Table 18's total of AV-Stop cannot be read; Table 21 prints 31,801 frames in 108 tubes."""
    counts, scenes = as_printed(22)
    both = compare_printed_counts(counts, scenes)
    assert both is not None
    stop = both.filter(pl.col("label") == "AV-Stop", pl.col("split") == "all").row(0, named=True)
    assert (stop["printed_frames"], stop["printed_tubes"], stop["note"]) == (31801, 108, None)
    lost = both.filter(pl.col("label") == "AV-TurRht", pl.col("split") == "test").row(0, named=True)
    assert (lost["printed_frames"], lost["differs"]) == (None, None)
    assert "unreadable" in lost["note"]


def test_without_the_test_set_counts_over_all_videos_are_not_compared() -> None:
    counts, scenes = as_printed(18, test=False)
    both = compare_printed_counts(counts, scenes)
    assert both is not None
    assert both.filter(pl.col("split") == "all")["printed_tubes"].is_null().all()
    assert both.filter(pl.col("split") == "val_1")["printed_tubes"].null_count() == 0


def test_another_set_is_not_compared(world: Scenes) -> None:
    assert compare_printed_counts(count(world), world) is None
    counts, scenes = as_printed(22)
    made_up = scenes.with_tables(videos=pl.DataFrame({"video": [f"v{k}" for k in range(22)]}))
    assert compare_printed_counts(counts, made_up) is None


def test_a_split_that_is_called_all_counts_nothing_twice(world: Scenes) -> None:
    splits = pl.col("splits").list.concat(pl.lit(["all"]))
    named = world.with_tables(videos=world.videos.with_columns(splits))
    assert_frame_equal(count(named), count(world))
    other = generate_road_scenes(videos=22, frames=24, boxes_per_frame=1)
    assert compare_printed_counts(count(other), other.with_tables(meta=Meta(dataset="ROAD-Waymo"))) is None
