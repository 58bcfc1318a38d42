"""Sets of tables: what they hold, slices by video and split, equality, what they say of themselves."""

import copy
import math
from dataclasses import FrozenInstanceError
from multiprocessing.reduction import ForkingPickler

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_sets import scenes_sets, small_predictions, small_scenes

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import TABLES
from roadaware.scenes.tables import Meta, Predictions, Scenes


def test_an_empty_set_has_every_table_and_says_so():
    assert set(Scenes().tables()) == set(TABLES)
    assert Scenes().filled() == {}
    assert repr(Scenes()) == "Scenes(unnamed: empty)"
    assert Scenes() == Scenes()


def test_a_set_says_what_is_inside():
    assert repr(small_scenes(n_boxes=1200)) == "Scenes(small a: 2 videos, 1,200 boxes, 2 tubes)"
    assert repr(small_predictions()) == "Predictions(small a: 6 samples)"


def test_a_set_is_frozen():
    with pytest.raises(FrozenInstanceError):
        small_scenes().boxes = pl.DataFrame()  # type: ignore[misc]


def test_a_changed_copy_is_checked_again():
    scenes = small_scenes()
    assert len(scenes.with_tables(boxes=scenes.boxes.head(2)).boxes) == 2
    with pytest.raises(InputError, match="absent from tubes"):
        scenes.with_tables(tubes=scenes.tubes.head(1))


def changed_sets():
    scenes = small_scenes()
    b = scenes.boxes
    yield "a value", scenes.with_tables(boxes=b.with_columns(x1_px=pl.col("x1_px") - 0.5))
    yield "a null", scenes.with_tables(boxes=b.with_columns(look=pl.lit(None, dtype=b.schema["look"])))
    yield "order of rows", scenes.with_tables(boxes=b.reverse())
    yield "a type", scenes.with_tables(boxes=b.with_columns(pl.col("look").cast(pl.String)))
    yield (
        "categories",
        scenes.with_tables(
            boxes=b.with_columns(pl.col("look").cast(pl.String).cast(pl.Enum(["looking", "not-looking"])))
        ),
    )
    yield "a column less", scenes.with_tables(boxes=b.drop("look"))
    yield "a column more", scenes.with_tables(boxes=b.with_columns(mood=pl.lit("sad")))
    yield "a table", scenes.with_tables(frames=pl.DataFrame({"video": ["v1"], "frame": [0]}))
    yield "meta", scenes.with_tables(meta=Meta(dataset="other"))
    yield "no row, a column more", scenes.with_tables(frames=scenes.frames.with_columns(mood=pl.lit("sad")))


@pytest.mark.parametrize(
    ("what", "other"), list(changed_sets()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_sets_that_differ_are_not_equal(what, other):
    assert other != small_scenes(), what
    assert other == other.with_tables()


def test_equality_knows_kinds_and_ignores_the_order_of_columns():
    scenes = small_scenes()
    assert scenes == small_scenes(boxes=scenes.boxes.select(reversed(scenes.boxes.columns)))
    assert Predictions() != Scenes()
    assert (scenes == 1) is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(scenes)


def test_equality_takes_undefined_numbers_for_equal():
    own = pl.Series("own", [math.nan] * 6)
    first, second = (small_scenes(boxes=small_scenes().boxes.with_columns(own)) for _ in range(2))
    assert first == second


@tried(15)
@given(scenes_sets())
def test_a_copy_is_equal(scenes):
    assert ForkingPickler.loads(ForkingPickler.dumps(scenes)) == scenes  # how workers hand it over
    assert copy.deepcopy(scenes) == scenes


@tried(15)
@given(scenes_sets(), st.data())
def test_a_slice_has_the_rows_of_its_videos_and_no_others(scenes, data):
    names = scenes.videos["video"].to_list()
    wanted = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    part = scenes.only(wanted)
    for name, frame in scenes.tables().items():
        if "video" in frame.columns:
            rows = [row for row in frame.rows(named=True) if row["video"] in wanted]
            assert getattr(part, name).rows(named=True) == rows
            assert getattr(part, name).schema == frame.schema
    owned = set(part.boxes["box"])
    assert part.labels.rows() == [row for row in scenes.labels.rows() if row[0] in owned]
    drives = set(part.videos["scene"])
    assert part.sensors.rows() == [row for row in scenes.sensors.rows() if row[0] in drives]
    assert part.rejected.equals(scenes.rejected)
    assert part.meta == scenes.meta
    assert part.only(wanted) == part


def test_a_slice_of_one_video_takes_its_name():
    assert small_scenes().only("v2").videos["video"].to_list() == ["v2"]
    assert small_scenes().only(["v2", "v2"]) == small_scenes().only("v2")


def test_samples_follow_their_tube_where_they_name_no_video():
    samples = pl.DataFrame({"sample": [0, 1, 2], "tube": [1, 0, None]})
    assert small_scenes(samples=samples).only("v1").samples["sample"].to_list() == [1]
    named = samples.with_columns(video=pl.Series([None, "v1", "v2"]))
    assert small_scenes(samples=named).only("v2").samples["sample"].to_list() == [0, 2]
    nowhere = small_scenes(samples=samples.select("sample"))
    assert nowhere.only(["v1", "v2"]).samples.is_empty()


def test_tubes_labels_and_sweeps_follow_too():
    videos = small_scenes().videos.with_columns(scene=pl.Series(["d1", None]))
    scenes = small_scenes(
        videos=videos,
        tube_labels=pl.DataFrame({"tube": [0, 1], "kind": ["colour"] * 2, "label": [0, 1]}),
        sweeps=pl.DataFrame({"scene": ["d1", "d2"], "sensor": ["top"] * 2, "frame": [0, 0]}),
    )
    assert scenes.only("v1").tube_labels.rows() == [(0, "colour", 0)]
    assert scenes.only("v1").sweeps["scene"].to_list() == ["d1"]
    assert scenes.only("v2").sweeps.is_empty()


def test_a_video_that_is_not_there_is_named():
    with pytest.raises(UsageError, match=r"no video \['v9'\] among the 2 of small a"):
        small_scenes().only(["v1", "v9"])


def test_a_split_is_the_slice_of_its_videos():
    scenes = small_scenes()
    assert scenes.split_videos("s/test") == ["v2"]
    assert scenes.split("s/test") == scenes.only(["v2"])


def test_a_split_that_is_not_there_tells_which_are():
    with pytest.raises(
        UsageError, match=r"no video is in split 's/val'; there are \['s/test', 's/train', 's/x'\]"
    ):
        small_scenes().split("s/val")
    bare = small_scenes().videos.with_columns(splits=pl.lit([], dtype=pl.List(pl.String)))
    with pytest.raises(UsageError, match="none of them names a split, so ask for no split"):
        small_scenes(videos=bare).split("s/val")
    with pytest.raises(UsageError, match="small a names no splits; asked for 's/val'"):
        small_scenes(videos=small_scenes().videos.drop("splits")).split("s/val")


def test_meta_is_what_a_saved_copy_would_hold():
    notes = {"pair": (1, 2)}
    meta = Meta(vocabularies={"k": ["a", "b"]}, notes=notes)  # type: ignore[dict-item]
    notes["later"] = (0, 0)
    assert meta == Meta(vocabularies={"k": ("a", "b")}, notes={"pair": [1, 2]})


@pytest.mark.parametrize(
    "fields",
    [
        {"notes": {"x": math.nan}},
        {"notes": {"x": {1, 2}}},
        {"notes": [1]},
        {"dataset": 5},
        {"vocabularies": {"k": "abc"}},
        {"vocabularies": {"k": ["a", 1]}},
        {"vocabularies": {"k": ["a", "a"]}},
        {"composites": ["a"]},
        {"rows_read": {"boxes": "many"}},
    ],
    ids=str,
)
def test_meta_that_is_no_plain_data_is_refused(fields):
    with pytest.raises(InputError, match="meta"):
        Meta(**fields)
