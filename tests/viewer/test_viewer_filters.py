"""Filters keep the boxes that meet them and no others, and two predictions differ where one has what the other lacks."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
from numbered import FRAMES, Open, make_predictions, make_truth
from test_viewer_items import as_source

from roadaware.errors import UsageError
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes
from roadaware.viewer import filters
from roadaware.viewer.filters import MOST_CONDITIONS, BoxMasks, count_boxes, parse_conditions
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths


def make_set() -> Scenes:
    """Boxes with an occlusion, videos with a split and a time of day, frames with a speed."""
    truth = make_truth()
    words = pl.Series(["none", "part", "full"], dtype=pl.String)
    frames = [
        pl.DataFrame({"video": video, "frame": range(FRAMES), "speed": [float(k) for k in range(FRAMES)]})
        for video in ("one", "two")
    ]
    return truth.with_tables(
        boxes=truth.boxes.with_columns(
            occlusion=words.gather(truth.boxes["frame"] % 3),
            truncated=pl.col("frame") < 5,
            weight=pl.when(pl.col("frame") == 7).then(float("nan")).otherwise(pl.col("frame") / 10),
        ),
        videos=truth.videos.with_columns(
            splits=pl.Series([["train", "all"], ["val", "all"]]),
            time_of_day=pl.Series(["day", None], dtype=pl.String),
        ),
        tubes=truth.tubes.with_columns(group_size=pl.Series([1, 2, None, 4])),
        frames=pl.concat(frames),
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = tmp_path_factory.mktemp("filtered")
    save(make_set(), root / "truth")
    save(make_predictions(), root / "found")
    return Index(open_paths([root / "truth", root / "found"]))


CASES: list[tuple[list[Any], pl.Expr]] = [
    (["boxes.occlusion", "=", "part"], pl.col("occlusion") == "part"),
    (["boxes.occlusion", "!=", "part"], pl.col("occlusion") != "part"),
    (["boxes.occlusion", "has", "AR"], pl.col("occlusion") == "part"),
    (["boxes.truncated", "=", True], pl.col("truncated")),
    (["boxes.weight", "<", 2], pl.col("weight") < 2),
    (["boxes.weight", ">", 8], (pl.col("weight") > 8) & pl.col("weight").is_finite()),
    (["boxes.weight", "!=", 3], pl.col("weight") != 3),
    (["boxes.area", ">=", 1200], pl.lit(value=True)),
    (["boxes.width", ">", 30], pl.lit(value=False)),
    (["videos.time_of_day", "=", "day"], pl.col("video") == "one"),
    (["videos.time_of_day", "!=", "day"], pl.col("video") == "two"),
    (["videos.splits", "=", "val"], pl.col("video") == "two"),
    (["videos.splits", "has", "tra"], pl.col("video") == "one"),
    (["videos.splits", "=", "al"], pl.lit(value=False)),
    (["tubes.group_size", ">=", 2], pl.col("tube").is_in([1, 3])),
    (["tubes.group_size", "!=", 2], pl.col("tube") != 1),
    (["frames.speed", ">", 80], pl.col("frame") > 80),
    (["boxes.frame", "<=", 12], pl.col("frame") <= 12),
]


@pytest.mark.parametrize(("condition", "kept"), CASES, ids=lambda each: str(each)[:40])
def test_a_filter_keeps_what_meets_it(index: Index, condition: list[Any], kept: pl.Expr) -> None:
    conditions = parse_conditions(json.dumps([condition]))
    boxes = make_set().boxes
    wanted = boxes.filter(kept)
    told = index.count(conditions)["truth"]
    assert (told["boxes"], told["of"]) == (len(wanted), len(boxes))
    videos = wanted.group_by("video").len().sort("video").rows()
    assert told["videos"] == [(["one", "two"].index(video), count) for video, count in videos]
    found = [
        box for name in ("one", "two") for box in index.boxes(name, 0, FRAMES, conditions)["truth"]["box"]
    ]
    assert sorted(found) == sorted(wanted["box"])


def test_several_filters_hold_together_and_narrow_only_sets_that_have_the_column(index: Index) -> None:
    conditions = parse_conditions(
        '[["boxes.occlusion", "=", "none"], ["boxes.frame", "<", 30], ["videos.splits", "=", "train"]]'
    )
    boxes = make_set().boxes.filter(
        (pl.col("occlusion") == "none") & (pl.col("frame") < 30) & (pl.col("video") == "one")
    )
    told = index.count(conditions)
    assert told["truth"]["boxes"] == len(boxes)
    assert told["a"]["boxes"] == told["a"]["of"]
    assert "no column boxes.occlusion" in told["a"]["without"]
    assert len(index.boxes("one", 0, 30, conditions)["a"]["box"]) == len(
        index.boxes("one", 0, 30)["a"]["box"]
    )
    with pytest.raises(UsageError, match="no column"):
        index.count(parse_conditions('[["boxes.nothing", "=", "x"]]'))


@pytest.mark.slow
def test_what_is_kept_counts_as_going_through_all_boxes_does(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = index.sets["truth"]
    monkeypatch.setattr(filters, "_MOST_MASKS", 5)  # so that some are worked out again
    masks = BoxMasks(held.source, held.box_index.rows)
    conditions = [parse_conditions(json.dumps([condition]))[0] for condition, _ in CASES]
    assert masks.count([]) == count_boxes(held.source, []) == {"one": 160, "two": 30}
    for one, other in itertools.product(conditions, conditions):
        assert masks.count([one, other]) == count_boxes(held.source, [one, other]), (one, other)
        assert len(masks._masks) <= 5
    # Boxes without a tube, and numbers of tubes that nobody has or that lie far apart.
    truth = make_set()
    for far in (1, 100_000_000):
        tubes = truth.tubes.with_columns(pl.col("tube") * far)
        owner = pl.when(pl.col("frame") % 5 == 0).then(None).otherwise(pl.col("tube") * far)
        loose = truth.with_tables(
            boxes=truth.boxes.with_columns(tube=owner), tubes=tubes,
            tube_labels=truth.tube_labels.with_columns(pl.col("tube") * far),
        )  # fmt: skip
        source = as_source(loose)
        runs = {"one": [(0, 160)], "two": [(160, 30)]}
        for text in (
            '[["tubes.group_size", ">=", 2]]',
            '[["tubes.group_size", "!=", 9]]',
            '[["tubes.name", "has", "t"]]',
        ):
            asked = parse_conditions(text)
            assert BoxMasks(source, runs).count(asked) == count_boxes(source, asked), text
            assert BoxMasks(source, None).count(asked) == count_boxes(source, asked), text
            owned = source.tables["boxes"].with_columns(tube=pl.lit(77 * far))
            strange = replace(source, tables=source.tables | {"boxes": owned})
            assert BoxMasks(strange, runs).count(asked) == count_boxes(strange, asked) == {}, text


def test_what_is_kept_of_a_truth_value_does_not_answer_for_a_number(index: Index) -> None:
    (truth,) = parse_conditions('[["boxes.truncated", "=", true]]')
    (number,) = parse_conditions('[["boxes.truncated", "=", 1]]')
    assert truth == number
    masks = index.sets["truth"].masks
    assert masks.count([truth])
    with pytest.raises(UsageError):
        masks.count([number])


def test_columns_are_told_with_their_types_and_few_values(index: Index) -> None:
    told = {each["name"]: each for each in index.columns("truth")}
    assert told["boxes.height"]["type"] == told["boxes.weight"]["type"] == "number"
    assert told["boxes.truncated"]["type"] == "truth"
    assert told["videos.time_of_day"]["values"] == ["day"]
    assert told["videos.splits"]["values"] == ["all", "train", "val"]
    assert not {"boxes.video", "boxes.box", "boxes.x1_px"} & told.keys()
    with pytest.raises(UsageError):
        index.columns("z")


WRONG = (
    "x", "{}", "[1]", '["a"]', "[[]]", '[["boxes.height", ">="]]', '[["boxes.height", "~", 1]]', '[["height", ">", 1]]',
    '[["secrets.key", "=", "x"]]', '[["boxes.", "=", "x"]]', '[["boxes.height", ">", NaN]]', '[["boxes.height", ">", 1e999]]',
    '[["boxes.height", ">", [1]]]', '[["boxes.height", ">", null]]', '[[1, "=", 1]]', "[" * 4000,
    json.dumps([["boxes.occlusion", "=", "x" * 300]]),
    json.dumps([["boxes.height", ">", 1]] * (MOST_CONDITIONS + 1)), f'[["boxes.height", ">", {10**400}]]',
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:24])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_conditions(text)


MISFITS = (
    ["boxes.height", "has", 3], ["boxes.height", "=", "tall"], ["boxes.occlusion", ">", "part"], ["boxes.occlusion", "=", 1],
    ["boxes.truncated", "=", 1], ["boxes.truncated", ">", True], ["boxes.scores", "=", 1], ["boxes.video') | (1=1", "=", "x"],
    ["boxes.__import__('os').system('x')", "=", "x"], ["tubes.nothing", "=", 1], ["frames.\0", "=", 1],
)  # fmt: skip


@pytest.mark.parametrize("condition", MISFITS, ids=lambda each: str(each)[:40])
def test_a_filter_that_no_column_fits_is_an_answer(index: Index, condition: list[Any]) -> None:
    with pytest.raises(UsageError):
        index.count(parse_conditions(json.dumps([condition])))


def test_filters_and_lists_by_address_answer_and_never_fail(tmp_path: Path, viewed: Open) -> None:
    evil = "<img src=x onerror=alert(1)>'; --"
    truth = make_set()
    truth = truth.with_tables(
        boxes=truth.boxes.with_columns(pl.col("occlusion").replace({"part": evil}), **{evil: pl.lit(evil)})
    )
    save(truth, tmp_path / "truth")
    save(make_predictions(), tmp_path / "found")
    save(make_predictions(shift=30.0), tmp_path / "other")
    client = viewed(tmp_path / "truth", tmp_path / "found", tmp_path / "other")
    for column in ("boxes.occlusion", f"boxes.{evil}"):
        where = quote(json.dumps([[column, "=", evil]]))
        assert client.json(f"/api/count?where={where}")["truth"]["boxes"] > 0
        assert client.ask(f"/api/boxes?video=0&first=0&end=9&where={where}")[0] == 200
    for text in (*WRONG, json.dumps([["boxes.nothing", "=", "x"]])):
        for path in ("/api/count?where=", "/api/boxes?video=0&first=0&end=9&where="):
            status, _, body = client.ask(path + quote(text))
            assert status in (200, 414, 422), (path, text)
            assert b"Traceback" not in body
            assert (status == 200) == (path.startswith("/api/boxes") and "nothing" in text)
    paths = (
        "/api/items?evaluation=0&metric=x", "/api/items", "/api/columns?side=z", "/api/columns",
        "/api/differences?one=a&other=a&overlap=0.5&first=0", "/api/differences?one=a&other=truth&overlap=0.5&first=0",
        "/api/differences?one=a&other=b&overlap=0&first=0", "/api/differences?one=a&other=b&overlap=nan&first=0",
        "/api/differences?one=a&other=b&overlap=0.5&first=-1", "/api/differences?one=a&other=b&overlap=0.5&video=99",
        "/api/errors?side=a&kind=agent&threshold=0.5&level=../x",
    )  # fmt: skip
    for path in paths:
        assert client.ask(path)[0] == 422, path
        assert client.ask(path, known=False)[0] == 403
        assert client.ask(path, origin="http://evil.example")[0] == 403
    assert client.ask("/api/findings")[0] == 200
    assert client.ask("/api/findings", known=False)[0] == 403
    assert client.json("/api/differences?one=a&other=b&overlap=0.5&first=999")["next"] is None


def test_two_predictions_differ_where_one_has_what_the_other_lacks(tmp_path: Path) -> None:
    one, other = make_predictions(), make_predictions()
    # The other lacks the car's last frames, and has the person half a box aside.
    boxes = other.boxes.filter(~((pl.col("tube") == 1) & (pl.col("frame") >= 80)))
    aside = pl.when(pl.col("tube") == 3).then(20.0).otherwise(0.0)
    boxes = boxes.with_columns(pl.col("x1_px") + aside, pl.col("x2_px") + aside)
    save(one, tmp_path / "one")
    save(other.with_tables(boxes=boxes), tmp_path / "other")
    index = Index(open_paths([tmp_path / "one", tmp_path / "other"]))
    total = len(one.boxes) + len(boxes)
    assert index.differences("a", "b", 0.5, 0) == {"videos": [[0, 30, 20, total], [1, 0, 0, 0]], "next": None}
    assert index.differences("b", "a", 0.5, 0)["videos"][0] == [0, 20, 30, total]
    assert index.differences("a", "b", 0.1, 0)["videos"][0] == [0, 10, 0, total]
    rows = index.list_differences("one", "a", "b", 0.5)
    assert [(row["side"], row["path"], row["boxes"], row["span"]) for row in rows] == [
        ("a", 3, 20, [20, 40]), ("b", 3, 20, [20, 40]), ("a", 1, 10, [80, 90]),
    ]  # fmt: skip
    assert 80 <= rows[2]["frame"] < 90


def test_boxes_without_tubes_differ_frame_by_frame_at_any_size_of_image(tmp_path: Path) -> None:
    one = make_predictions()
    bare = one.with_tables(
        boxes=one.boxes.drop("tube"), tubes=one.tubes.clear(), tube_labels=one.tube_labels.clear()
    )
    half = [(pl.col(name) / 2) for name in ("x1_px", "y1_px", "x2_px", "y2_px")]
    videos = bare.videos.with_columns(pl.col("width_px", "height_px") // 2)
    small = bare.with_tables(videos=videos, boxes=bare.boxes.with_columns(half).filter(pl.col("frame") != 3))
    save(bare, tmp_path / "one")
    save(small, tmp_path / "small")
    index = Index(open_paths([tmp_path / "one", tmp_path / "small"]))
    assert index.differences("a", "b", 0.9, 0)["videos"][0][1:3] == [1, 0]
    row = index.list_differences("one", "a", "b", 0.9)[0]
    assert (row["path"], row["frame"], row["boxes"]) == (None, 3, 1)
