"""Several sets as one: numbers, labels and dictionaries after joining, and the laws of joining."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_sets import LOOK, scenes_sets, small_scenes

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.scenes.concatenation import concat
from roadaware.scenes.dense_scores import get_score_layout, set_score_layout
from roadaware.scenes.schema import TABLES
from roadaware.scenes.tables import Meta, Predictions, Scenes


def other_scenes(**changes):
    """`small_scenes` of two other videos."""
    plain = small_scenes("b")
    renamed = {
        name: getattr(plain, name).with_columns(pl.col("video").str.replace("v", "w"))
        for name in ("videos", "tubes", "boxes")
    }
    return plain.with_tables(**{**renamed, **changes})


def renumbered(scenes):
    """The tables with numbers by order of appearance, so that sets can be compared up to numbering."""
    tables = {}
    for name, frame in scenes.tables().items():
        for c, column in TABLES[name].columns.items():
            owner = name if TABLES[name].key == (c,) and column.kind == "int" else column.to
            if owner and c in frame.columns and column.kind == "int":
                keys = getattr(scenes, owner)[TABLES[owner].key[0]].to_list()
                frame = frame.with_columns(
                    pl.col(c).replace_strict(keys, range(len(keys)), return_dtype=pl.Int64)
                )
        tables[name] = frame
    return Scenes(**tables, meta=scenes.meta)


def by_drive(scenes):
    """Sensors in the order of drives, which follow the parts they came with."""
    return scenes.with_tables(sensors=scenes.sensors.sort("scene"))


def test_numbers_of_the_second_part_follow_those_of_the_first():
    joined = concat([small_scenes(), other_scenes()])
    assert joined.boxes["box"].to_list() == list(range(12))
    assert joined.boxes["tube"].to_list() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert joined.tubes.select("tube", "name").rows() == [(0, "a-0"), (1, "a-1"), (2, "b-0"), (3, "b-1")]
    assert joined.boxes["look"].dtype == LOOK
    assert joined.meta.dataset == "small a + small b"


def test_the_parts_come_out_again():
    first, second = small_scenes(), other_scenes()
    joined = concat([first, second])
    for part in (first, second):
        held = renumbered(joined.only(part.videos["video"].to_list()))
        assert held.with_tables(meta=part.meta) == part


def test_labels_are_joined_by_name():
    labels = pl.DataFrame({"box": [0, 1], "kind": ["colour"] * 2, "label": [0, 1]})
    relations = pl.DataFrame(
        {"relation": [0], "video": ["w1"], "subject": [0], "object": [0], "predicate": [1]}
    )
    sounds = pl.DataFrame({"sound": [0], "video": ["w1"], "label": [0]})
    first = small_scenes(
        labels=labels,
        meta=Meta(vocabularies={"colour": ("red", "green"), "predicate": ("near",), "sound": ("horn",)}),
    )
    meta = Meta(vocabularies={"colour": ("blue", "red"), "predicate": ("far", "near"), "sound": ("bell",)})
    joined = concat([first, other_scenes(labels=labels, relations=relations, sounds=sounds, meta=meta)])
    assert joined.meta.vocabularies == {
        "colour": ("red", "green", "blue"),
        "predicate": ("near", "far"),
        "sound": ("horn", "bell"),
    }
    assert joined.labels.rows() == [(0, "colour", 0), (1, "colour", 1), (6, "colour", 2), (7, "colour", 0)]
    assert joined.relations.row(0, named=True)["predicate"] == 0
    assert joined.relations.row(0, named=True)["subject"] == 2
    assert joined.sounds["label"].to_list() == [1]


def test_a_label_without_a_name_is_refused_where_another_part_has_names():
    labels = pl.DataFrame({"box": [0], "kind": ["colour"], "label": [0]})
    nameless = other_scenes(labels=labels, meta=Meta())
    with pytest.raises(InputError, match=r"label of \['colour'\] has no vocabulary in one part"):
        concat([small_scenes(labels=labels), nameless])
    assert len(concat([small_scenes(meta=Meta()), nameless]).labels) == 1


def test_dictionaries_are_joined_in_order_and_text_stays_text():
    wider = pl.Enum(["looking", "away", "not-looking"])
    second = other_scenes()
    second = second.with_tables(boxes=second.boxes.with_columns(pl.col("look").cast(pl.String).cast(wider)))
    look = concat([small_scenes(), second]).boxes["look"]
    assert look.dtype == pl.Enum(["not-looking", "looking", "away"])
    assert look.to_list() == small_scenes().boxes["look"].to_list() * 2
    plain = second.with_tables(boxes=second.boxes.with_columns(pl.col("look").cast(pl.String)))
    assert concat([small_scenes(), plain]).boxes["look"].dtype == pl.String
    without = second.with_tables(boxes=second.boxes.drop("look"))
    assert concat([small_scenes(), without]).boxes["look"].dtype == LOOK


def test_negative_and_scattered_numbers_stay_apart():
    def numbered(scenes, keys):
        return scenes.with_tables(boxes=scenes.boxes.with_columns(box=pl.Series(keys)))

    keys = [-7, 40, -1, 0, 3, 9]
    joined = concat([numbered(small_scenes(), keys), numbered(other_scenes(), keys)])
    assert joined.boxes["box"].n_unique() == 12
    with pytest.raises(InputError, match="leave no room"):
        concat([numbered(small_scenes(), [2**62, 0, 1, 2, 3, 4]), other_scenes()])


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="at least one"):
        concat([])
    with pytest.raises(InputError, match="table videos: the key video is repeated in 4 rows"):
        concat([small_scenes(), small_scenes()])
    own = other_scenes()
    own = own.with_tables(boxes=own.boxes.with_columns(look=pl.lit(1)))
    with pytest.raises(InputError, match="table boxes: the parts' columns do not fit each other"):
        concat([small_scenes(), own])
    composites = [Meta(composites={"duplex": parts}) for parts in (("agent",), ("agent", "action"))]
    with pytest.raises(InputError, match="disagree on what duplex is made of"):
        concat([small_scenes(meta=composites[0]), other_scenes(meta=composites[1])])


def test_what_was_read_is_counted_once_for_each_source():
    first, second = (
        Meta(dataset="x", licence="MIT", source_digest=d, rows_read={"boxes": 5}, notes={"p": 1, "q": d})
        for d in ("d1", "d2")
    )
    joined = concat([small_scenes(meta=first), other_scenes(meta=second)]).meta
    assert joined == Meta("x", "MIT", source_digest="d1 d2", rows_read={"boxes": 10}, notes={"p": 1})
    again = concat([small_scenes(meta=first), other_scenes(meta=first)]).meta
    assert again == first


def test_rejections_that_parts_share_are_taken_once_and_repeats_in_one_part_kept():
    row = {"table": "boxes", "file": "f", "line": 3, "reason": "no frame"}
    first = small_scenes(rejected=pl.DataFrame([row, row]))
    second = other_scenes(rejected=pl.DataFrame([row, {**row, "line": 4}]))
    assert concat([first, second]).rejected["line"].to_list() == [3, 3, 4]


@pytest.mark.parametrize("kind", [pl.List(pl.Float32), pl.Array(pl.Float32, 16)])
@pytest.mark.parametrize("turned", [False, True])
def test_sweeps_with_poses_of_older_tables_are_those_of_newer_ones(kind, turned):
    # Versions up to 0.8 wrote poses in single precision; both parts were cut from one drive.
    pose = [1, 0, 0, 691_000.123, 0, 1, 0, 5_336_000.456, 0, 0, 1, 0.1, 0, 0, 0, 1]

    def part(video, dtype):
        held = pl.Series([pose], dtype=pl.List(pl.Float64)).cast(dtype)
        return Scenes(
            videos=pl.DataFrame({"video": [video], "scene": ["drive"]}),
            frames=pl.DataFrame({"video": [video], "frame": [0], "world_SE3_ego": held}),
            sweeps=pl.DataFrame(
                {"scene": ["drive"], "sensor": ["top"], "frame": [0], "path": ["0"], "world_SE3_ego": held}
            ),
        )

    parts = [part("old", kind), part("new", pl.List(pl.Float64))]
    joined = concat(parts[::-1] if turned else parts)
    assert len(joined.sweeps) == 1
    assert joined.frames.filter(video="new")["world_SE3_ego"].to_list() == [pose]
    assert joined.frames.filter(video="old")["world_SE3_ego"].to_list() == [np.float32(pose).tolist()]


@tried(15)
@given(scenes_sets())
def test_one_part_is_the_whole(scenes):
    assert concat([scenes]) == scenes


@tried(15)
@given(scenes_sets(), st.data())
def test_slices_joined_in_order_are_the_whole_up_to_numbering(scenes, data):
    names = scenes.videos["video"].to_list()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(names)), max_size=3)))
    slices = [scenes.only(names[a:b]) for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True)]
    joined, whole = renumbered(concat(slices)), renumbered(scenes)
    whole = whole.only(names)  # sensors of drives without a video belong to no slice
    assert by_drive(joined) == by_drive(whole)


@tried(15)
@given(scenes_sets(), st.data())
def test_joining_does_not_depend_on_grouping(scenes, data):
    names = scenes.videos["video"].to_list()
    order = data.draw(st.permutations(names))
    cuts = sorted(data.draw(st.integers(0, len(names))) for _ in range(2))
    a, b, c = (scenes.only(order[m:n]) for m, n in zip([0, *cuts], [*cuts, len(names)], strict=True))
    assert concat([concat([a, b]), c]) == concat([a, concat([b, c])]) == concat([a, b, c])


@pytest.mark.slow
@tried(15)
@given(scenes_sets(), st.data())
def test_the_order_of_parts_is_the_order_of_rows_only(scenes, data):
    names = scenes.videos["video"].to_list()
    cut = data.draw(st.integers(0, len(names)))
    first, second = scenes.only(names[:cut]), scenes.only(names[cut:])
    forth, back = concat([first, second]), concat([second, first])
    for videos in (names[:cut], names[cut:]):
        assert by_drive(renumbered(forth.only(videos))) == by_drive(renumbered(back.only(videos)))


def predictions(video, kinds, labels):
    """One box with dense scores of some kinds, its tube, and the video."""
    meta = set_score_layout(Meta(vocabularies=labels, notes={"linker": {"jump_gap": 4}}), "boxes", kinds)
    width = sum(len(labels[kind]) for kind in kinds)
    edges = {"x1_px": [1.0], "y1_px": [2.0], "x2_px": [3.0], "y2_px": [4.0]}
    scores = pl.Series("scores", [[0.5] * width], dtype=pl.Array(pl.Float32, width))
    boxes = pl.DataFrame({"box": [0], "video": [video], "frame": [0], **edges, "score": [0.9], "tube": [0]})
    tubes = pl.DataFrame(
        {"tube": [0], "video": [video], "start_frame": [0], "end_frame": [1], "score": [0.9]}
    )
    videos = pl.DataFrame({"video": [video]})
    return Predictions(videos=videos, boxes=boxes.with_columns(scores), tubes=tubes, meta=meta)


def test_predictions_are_joined_like_scenes_where_their_dense_scores_mean_the_same():
    labels = {"agent": ("Ped", "Car"), "action": ("Stop",)}
    joined = concat([predictions(video, ["agent", "action"], labels) for video in "ab"])
    assert isinstance(joined, Predictions)
    assert joined.boxes.select("box", "video", "tube").rows() == [(0, "a", 0), (1, "b", 1)]
    assert get_score_layout(joined.meta, "boxes").kinds == labels
    assert joined.meta.notes["linker"] == {"jump_gap": 4}
    for kinds, words in ((["action", "agent"], labels), (["agent"], {"agent": ("Car", "Ped")})):
        with pytest.raises(InputError, match="dense scores of other labels"):
            concat([predictions("a", ["agent", "action"], labels), predictions("b", kinds, words)])
