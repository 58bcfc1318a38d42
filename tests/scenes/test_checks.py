"""Each law of the tables: a table that keeps it passes, one that breaks it is refused by name."""

import math
import re

import numpy as np
import polars as pl
import pytest
from table_sets import LOOK, small_scenes

from roadaware.errors import InputError
from roadaware.scenes import schema
from roadaware.scenes.schema import TABLES, create_empty_table, is_blank, validate_table
from roadaware.scenes.tables import Meta, Predictions, Scenes


@pytest.fixture(autouse=True, params=["few rows", "many rows"])
def _size(request, monkeypatch):
    """Tables of few rows are checked on a way of their own, to the same end."""
    if request.param == "many rows":
        monkeypatch.setattr(schema, "_FEW", 0)


def with_box(**changes):
    """Six good boxes of which the fourth is changed."""
    boxes = small_scenes().boxes
    wrong = pl.int_range(pl.len()) == 3
    return boxes.with_columns(
        pl.when(wrong).then(pl.lit(value, dtype=boxes.schema[c])).otherwise(c).alias(c)
        for c, value in changes.items()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"box": None}, "box is null in 1 rows, first [{'row': 3, 'box': None}]"),
        ({"box": 1}, "the key box is repeated in 2 rows, first [{'row': 1, 'box': 1}, {'row': 3, 'box': 1}]"),
        ({"video": None}, "video is null in 1 rows, first [{'row': 3, 'box': 3}]"),
        ({"x1_px": 900.0}, "x1_px > x2_px in 1 rows, first [{'row': 3, 'box': 3}]"),
        ({"y2_px": -5.0}, "y1_px > y2_px in 1 rows"),
        ({"x2_px": math.nan}, "x2_px is not finite in 1 rows"),
        ({"x1_px": -math.inf}, "x1_px is not finite in 1 rows"),
        ({"frame": -1}, "frame < 0 in 1 rows"),
        ({"frame": 500_000}, "frames behind the end of 1 videos, first [{'video': 'v2', 'n_frames': 500000"),
        ({"video": "v9"}, "video points to 1 rows absent from videos: ['v9']"),
        ({"tube": 7}, "tube points to 1 rows absent from tubes: [7]"),
        ({"tube": 0}, "tube points into another video, first [{'video': 'v2', 'tube': 0, 'of': 'v1'}]"),
    ],
)
def test_a_box_that_breaks_a_law_is_named(changes, told):
    with pytest.raises(InputError, match=re.escape(f"table boxes: {told}")):
        small_scenes(boxes=with_box(**changes))


def test_only_the_first_five_of_many_wrong_rows_are_shown():
    boxes = small_scenes(n_boxes=60).boxes.with_columns(frame=-1 - pl.col("frame"))
    with pytest.raises(InputError, match=re.escape("frame < 0 in 60 rows")) as caught:
        small_scenes(boxes=boxes)
    assert str(caught.value).count("'row'") == 5


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["v2", "v1"])])
def test_videos_may_be_named_by_text_or_dictionary(dtype):
    plain = small_scenes()
    named = small_scenes(boxes=plain.boxes.with_columns(pl.col("video").cast(dtype)))
    assert named.boxes["video"].dtype == dtype
    with pytest.raises(InputError, match="absent from videos: \\['v9'\\]"):
        small_scenes(boxes=with_box(video="v9").with_columns(pl.col("video").cast(pl.Categorical)))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4]])
def test_keys_are_whole_in_any_order_of_rows(order):
    boxes = small_scenes().boxes[order]
    assert small_scenes(boxes=boxes).boxes.equals(boxes)
    with pytest.raises(InputError, match="the key box is repeated"):
        small_scenes(boxes=boxes.with_columns(box=pl.col("box") // 2))


@pytest.mark.parametrize("video", [pl.String, pl.Categorical, pl.Enum(["v1", "v2"])])
def test_a_key_of_two_columns_is_unique_as_a_pair(video):
    rows = [("v2", 0), ("v1", 0), ("v1", 1), ("v2", 1)]
    frames = pl.DataFrame(rows, {"video": video, "frame": pl.Int64}, orient="row")
    assert len(small_scenes(frames=frames).frames) == 4
    with pytest.raises(InputError, match=r"the key video \+ frame is repeated in 2 rows"):
        small_scenes(frames=pl.concat([frames, frames.head(1)]))


def test_pointers_to_scattered_keys_are_followed():
    tubes = pl.DataFrame({"tube": [10, 0, 99], "video": ["v2", "v1", "v2"]})
    boxes = small_scenes().boxes.with_columns(tube=pl.Series([0, 0, 0, 10, 99, None]))
    assert small_scenes(tubes=tubes, boxes=boxes).boxes["tube"].null_count() == 1
    with pytest.raises(InputError, match=re.escape("tube points to 1 rows absent from tubes: [5]")):
        small_scenes(tubes=tubes, boxes=boxes.with_columns(pl.col("tube").replace(99, 5)))


def test_a_column_of_nulls_points_nowhere():
    boxes = small_scenes().boxes.with_columns(tube=None)
    held = small_scenes(boxes=boxes).boxes["tube"]
    assert held.dtype == pl.Int64
    assert held.null_count() == 6


@pytest.mark.parametrize(
    ("c", "values"),
    [
        ("box", ["a"] * 6),
        ("frame", [0.5] * 6),
        ("x1_px", ["1"] * 6),
        ("video", [1] * 6),
        ("ignore", [1] * 6),
        ("tube", [True] * 6),
        ("annotator", [b"x"] * 6),
    ],
)
def test_a_column_of_another_type_is_refused(c, values):
    with pytest.raises(InputError, match=f"table boxes: {c} should be"):
        small_scenes(boxes=small_scenes().boxes.with_columns(pl.Series(c, values)))


def test_numbers_are_brought_to_their_types():
    boxes = small_scenes().boxes.with_columns(
        pl.col("frame").cast(pl.UInt8),
        pl.col("y1_px").cast(pl.Int16),
        ignore=None,
    )
    held = small_scenes(boxes=boxes).boxes
    assert held.schema["frame"] == pl.Int64
    assert held.schema["y1_px"] == pl.Float32
    assert held.schema["ignore"] == pl.Boolean


def test_corners_in_double_precision_stay_so():
    boxes = small_scenes().boxes.with_columns(pl.col("x1_px").cast(pl.Float64) / 3)
    assert small_scenes(boxes=boxes).boxes["x1_px"].equals(boxes["x1_px"])


@pytest.mark.parametrize(
    ("c", "value", "told"),
    [
        ("frame", pl.Series([2**63 + 5] * 6, dtype=pl.UInt64), "conversion"),
        ("x1_px", pl.Series([1e300] * 6), "x1_px > x2_px|not finite"),
    ],
)
def test_a_number_too_large_for_its_type_is_refused(c, value, told):
    with pytest.raises(InputError, match=told):
        small_scenes(boxes=small_scenes().boxes.with_columns(value.alias(c)))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_a_required_column_is_refused(name):
    whole = create_empty_table(name)
    assert is_blank(name, whole)
    assert validate_table(name, whole, predicted=False).schema == whole.schema
    for c in whole.columns:
        with pytest.raises(InputError, match=rf"table {name} needs the columns \['{c}'\]"):
            validate_table(name, whole.drop(c), predicted=False)


@pytest.mark.parametrize("name", TABLES)
def test_predictions_belong_to_predictions(name):
    for c, column in TABLES[name].columns.items():
        if column.predicted:
            prediction = create_empty_table(name).with_columns(pl.lit(None).alias(c))
            assert c in validate_table(name, prediction, predicted=True).columns
            with pytest.raises(InputError, match=f"table {name}: {c} is a prediction"):
                validate_table(name, prediction, predicted=False)


def test_what_is_no_polars_table_is_refused():
    with pytest.raises(InputError, match="table videos should be a polars DataFrame, not LazyFrame"):
        Scenes(videos=pl.LazyFrame({"video": ["a"]}))


@pytest.mark.parametrize("score", [-0.001, 1.001, math.nan])
def test_a_score_that_is_no_confidence_is_refused(score):
    tubes = pl.DataFrame({"tube": [0], "video": ["a"], "score": [score]})
    with pytest.raises(InputError, match="table tubes: score"):
        Predictions(tubes=tubes)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", [pl.List(pl.Float64), pl.Array(pl.Float64, 2), pl.Array(pl.Float32, 2)])
def test_a_row_of_scores_is_finite(bad, dtype):
    good = pl.DataFrame({"sample": [0, 1], "scores": pl.Series([[0.5, 1], None], dtype=dtype)})
    assert Predictions(samples=good).samples["scores"].to_list() == [[0.5, 1.0], None]
    wrong = pl.DataFrame({"sample": [0, 1], "scores": pl.Series([[0.5, 1], [bad, 0]], dtype=dtype)})
    told = re.escape("scores holds a number that is not finite in 1 rows, first [{'row': 1, 'sample': 1}]")
    with pytest.raises(InputError, match=told):
        Predictions(samples=wrong)


@pytest.mark.parametrize("inner", [pl.Float32, pl.Float64])
@pytest.mark.parametrize("shape", [pl.List, lambda inner: pl.Array(inner, 2)], ids=["list", "array"])
def test_predictions_keep_the_precision_and_the_shape_they_come_in(inner, shape):
    scores = pl.Series([[0.5, 1], [0, 0.25]], dtype=shape(inner))
    held = Predictions(samples=pl.DataFrame({"sample": [0, 1], "scores": scores})).samples
    assert held.schema["scores"] == shape(inner)
    tubes = pl.DataFrame({"tube": [0], "video": ["a"], "score": pl.Series([0.1], dtype=inner)})
    assert Predictions(tubes=tubes).tubes.schema["score"] == inner


def test_predictions_in_whole_numbers_become_single_precision():
    scores = pl.Series([[0, 1]], dtype=pl.Array(pl.Int64, 2))
    held = Predictions(samples=pl.DataFrame({"sample": [0], "scores": scores})).samples
    assert held.schema["scores"] == pl.Array(pl.Float32, 2)


@pytest.mark.parametrize(
    "dtype", [pl.List(pl.String), pl.List(pl.List(pl.Float32)), pl.Array(pl.Float32, (1, 2)), pl.Float32]
)
def test_scores_of_another_shape_are_refused(dtype):
    samples = pl.DataFrame({"sample": [0], "scores": pl.Series([None], dtype=dtype)})
    with pytest.raises(InputError, match="table samples: scores should be floats"):
        Predictions(samples=samples)


@pytest.mark.parametrize(
    "spans", [[[3, 2]], [[1]], [[1, 2, 3]], [[1, None]], [None], [[]], [[0, 1], [5, 4]]], ids=str
)
def test_a_span_is_a_pair_in_order(spans):
    dtype = pl.List(pl.List(pl.Int64))
    good = pl.Series([[[0, 3], [5, 5]], None, []], dtype=dtype)
    tubes = pl.DataFrame({"tube": [0, 1, 2], "video": ["v1"] * 3, "spans": good})
    plain = small_scenes()
    assert small_scenes(tubes=tubes, boxes=plain.boxes.clear()).tubes["spans"].to_list() == good.to_list()
    with pytest.raises(InputError, match=re.escape("spans is not a list of pairs [start, end) in 1 rows")):
        small_scenes(
            tubes=tubes.with_columns(spans=pl.Series([None, spans, None], dtype=dtype)),
            boxes=plain.boxes.clear(),
        )


@pytest.mark.parametrize("dtype", [pl.List(pl.List(pl.Float64)), pl.List(pl.Int64), pl.String])
def test_spans_of_another_type_are_refused(dtype):
    with pytest.raises(InputError, match="table tubes: spans should be spans"):
        Scenes(tubes=create_empty_table("tubes").with_columns(spans=pl.Series([], dtype=dtype)))


@pytest.mark.parametrize("values", [[[1, 2]], [["a"], [None]]])
def test_names_of_splits_are_texts(values):
    videos = pl.DataFrame({"video": [str(n) for n in range(len(values))], "splits": values})
    if values[0] == [1, 2]:
        with pytest.raises(InputError, match="table videos: splits should be texts"):
            Scenes(videos=videos)
    else:
        assert Scenes(videos=videos).videos["splits"].to_list() == values


def test_an_interval_ends_after_it_starts_where_both_are_known():
    tubes = small_scenes().tubes
    assert small_scenes(
        tubes=tubes.with_columns(start_frame=pl.Series([5, None]), end_frame=pl.Series([5, 1]))
    )
    with pytest.raises(InputError, match="table tubes: end_frame < start_frame in 1 rows"):
        small_scenes(tubes=tubes.with_columns(start_frame=pl.Series([5, 6]), end_frame=pl.Series([6, 5])))


@pytest.mark.parametrize(
    ("name", "table", "kind"),
    [
        ("labels", {"box": [0, 1], "kind": ["colour"] * 2, "label": [0, 2]}, "colour"),
        ("tube_labels", {"tube": [0, 1], "kind": ["colour"] * 2, "label": [-1, 0]}, "colour"),
        ("samples", {"sample": [0, 1], "kind": ["colour"] * 2, "label": [None, 2]}, "colour"),
        (
            "relations",
            {"relation": [0], "video": ["v1"], "subject": [0], "object": [0], "predicate": [2]},
            "predicate",
        ),
        ("sounds", {"sound": [0], "video": ["v1"], "label": [1]}, "sound"),
    ],
)
def test_an_index_lies_inside_its_vocabulary_where_that_is_known(name, table, kind):
    frame = pl.DataFrame(table)
    assert small_scenes(**{name: frame}, meta=Meta(vocabularies={"other": ()})).filled()[name].height
    sizes = {"predicate": ("a", "b"), "sound": ("a",), "colour": ("a", "b")}
    with pytest.raises(InputError, match=f"table {name}: .* of {kind} runs .* its vocabulary has"):
        small_scenes(**{name: frame}, meta=Meta(vocabularies=sizes))


def test_a_relation_between_videos_is_refused():
    relations = {"relation": [0], "video": ["v1"], "subject": [0], "object": [1], "predicate": [0]}
    with pytest.raises(InputError, match="table relations: object points into another video"):
        small_scenes(relations=pl.DataFrame(relations))


def test_predictions_may_lack_the_tables_they_point_to():
    boxes = small_scenes().boxes.with_columns(score=pl.lit(0.5))
    assert len(Predictions(boxes=boxes).boxes) == 6
    with pytest.raises(InputError, match="tube points to 1 rows absent from tubes"):
        Predictions(boxes=boxes, tubes=small_scenes().tubes.head(1))


def test_frames_behind_the_end_are_found_between_good_ones():
    n = 300
    videos = pl.DataFrame({"video": ["a", "b", "c"], "n_frames": [10, None, 10]})
    frames = pl.DataFrame({"video": np.repeat(["c", "b", "a"], n // 3), "frame": np.arange(n) % 100})
    assert Scenes(videos=videos, frames=frames.filter((pl.col("frame") < 10) | (pl.col("video") == "b")))
    late = [{"video": video, "n_frames": 10, "frame": 99} for video in ("a", "c")]
    told = f"2 videos, first {late}"
    with pytest.raises(InputError, match=re.escape(told)):
        Scenes(videos=videos, frames=frames)


def test_columns_of_the_datasets_own_are_kept_as_they_are():
    own = pl.Series("mood", ["sad", None] * 3, dtype=pl.Enum(["sad", "glad"]))
    held = small_scenes(boxes=small_scenes().boxes.with_columns(own)).boxes
    assert held["mood"].dtype == own.dtype
    assert held["look"].dtype == LOOK
