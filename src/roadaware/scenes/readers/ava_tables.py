"""From rows of actions to tables: one box for equal corners, its actions as labels, its person as a tube."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from roadaware.scenes.readers.ava_labels import LabelMap
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.schema import CORNERS

KIND = "action"
_REPEATED = "an action that a box has twice, kept as a further box"
_CROWDED = "boxes of a person that has another in that moment, kept without a tube"


@dataclass(frozen=True)
class Place:
    """Where rows come from, for messages.

    Args:
        file: name of the file.
        findings: takes what is refused.
        first_frame: number of a video's first frame in the file.
    """

    file: str
    findings: Findings
    first_frame: int = 0


def labelled(rows: pl.DataFrame, labels: LabelMap, place: Place) -> pl.DataFrame:
    """The rows with `label`, the place of their action in the map, null without one.

    Rows of an action outside the map are refused as rows of `labels`, as the published evaluators skip them.

    Args:
        rows: (n) with `line`, `video`, `frame`, `action`.
        labels: the map.
        place: for messages.
    """
    known = pl.DataFrame(
        {"action": labels.ids, "label": range(len(labels.ids))},
        schema={"action": pl.Int64, "label": pl.Int64},
    )
    rows = rows.join(known, on="action", how="left", maintain_order="left")
    lost = pl.col("action").is_not_null() & pl.col("label").is_null()
    foreign = rows.filter(lost)
    if foreign.is_empty():
        return rows
    place.findings.read["labels"] += len(foreign)
    reason = pl.format("the action {} is not in the label map", "action")
    item = pl.format("{}, {}", pl.col("video").cast(pl.String), pl.col("frame") + place.first_frame)
    place.findings.reject_rows(
        "labels", foreign.select("line", file=pl.lit(place.file), item=item, reason=reason)
    )
    _tell_of_shift(rows["action"], labels, place)
    return rows.filter(~lost)


def numbered_boxes(rows: pl.DataFrame, keys: Sequence[str], place: Place, start: int = 0) -> pl.DataFrame:
    """The rows with the `box` they belong to, numbered in the order of the file, and whether they `open` it.

    Rows with equal keys are one box; an action that it has once more makes a further one.

    Args:
        rows: (n) with `label` and the keys.
        keys: columns that a box is known by.
        place: for messages.
        start: number of the first box.
    """
    rows = rows.with_row_index("row").with_columns(_owners(rows.select(keys)).alias("owner"))
    pair = pl.col("owner").cast(pl.Int64) * (1 << 31) + pl.col("label").fill_null(-1)
    twice = rows.select(again=pair.is_duplicated())["again"]
    if twice.any():
        again = pl.int_range(pl.len()).over("owner", "label")
        rows = rows.with_columns(again=again)
        rows = rows.with_columns(owner=pl.col("row").min().over("owner", "again"))
        count = int(rows.select((pl.col("again") > 0).sum()).item())
        first = rows.filter(pl.col("again") > 0).row(0, named=True)
        place.findings.warn(_REPEATED, f"{place.file}:{first['line']}", count)
    else:
        rows = rows.with_columns(again=pl.lit(0, pl.Int64))
    opens = rows["owner"] == rows["row"]
    numbers = opens.cum_sum().cast(pl.Int64) - 1 + start
    return rows.drop("row", "owner").with_columns(
        numbers.gather(rows["owner"]).alias("box"), opens.alias("opens")
    )


def _owners(keys: pl.DataFrame) -> pl.Series:
    """(n) the number of the first row with equal keys; rows mostly come in runs, looked up once."""
    names = [pl.col(c).cast(pl.Categorical).to_physical() for c in keys.columns if keys[c].dtype == pl.String]
    keys = keys.with_columns(names)
    opens = keys.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1))).alias("opens"))["opens"]
    opens = opens.scatter(0, values=True) if len(opens) else opens
    first = keys.with_row_index("row").filter(opens)
    owners = first.select(owner=pl.col("row").min().over(keys.columns))["owner"]
    return owners.gather(opens.cum_sum() - 1)


def boxes_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of boxes, `tube` included where the rows have it."""
    extra = ["tube"] if "tube" in rows.columns else []
    return rows.filter("opens").select("box", "video", "frame", *extra, *CORNERS)


def labels_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of labels in the order of the rows, with their scores where the rows have them."""
    extra = ["score"] if "score" in rows.columns else []
    return rows.filter(pl.col("label").is_not_null()).select(
        "box", pl.lit(KIND).alias("kind"), "label", *extra
    )


def persons(rows: pl.DataFrame, place: Place, start: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with the `tube` of their person, and the table of tubes.

    A person's first box in a moment is in its tube, any other is in none.

    Args:
        rows: (n) see `numbered_boxes`, with `person`.
        place: for messages.
        start: number of the first tube.
    """
    named = rows.filter(pl.col("opens") & pl.col("person").is_not_null())
    key = ["video", "frame", "person"]
    owned = named.unique(subset=key, keep="first", maintain_order=True)
    if extra := len(named) - len(owned):
        again = named.join(owned.select("box"), on="box", how="anti", maintain_order="left").row(
            0, named=True
        )
        place.findings.warn(_CROWDED, f"{place.file}:{again['line']}", extra)
    tubes = owned.group_by("video", "person", maintain_order=True).agg(
        start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1
    )
    tubes = tubes.with_row_index("tube", offset=start).cast({"tube": pl.Int64})
    owners = owned.select("box", "video", "person").join(
        tubes.select("tube", "video", "person"), on=["video", "person"], how="left", maintain_order="left"
    )
    rows = rows.join(owners.select("box", "tube"), on="box", how="left", maintain_order="left")
    return rows, tubes.rename({"person": "name"}).select("tube", "video", "name", "start_frame", "end_frame")


def _tell_of_shift(actions: pl.Series, labels: LabelMap, place: Place) -> None:
    """Name the likely reason where numbers begin one below or end one above those of the map."""
    used = actions.drop_nulls()
    low, high = int(str(used.min())), int(str(used.max()))
    first, last = min(labels.ids), max(labels.ids)
    if (low == first - 1 and high < last) or (high == last + 1 and low > first):
        what = f"actions run from {low} to {high} where the label map has {first} to {last}: shifted by one?"
        place.findings.warn(what, place.file, len(used))
