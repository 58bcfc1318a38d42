"""How many boxes and tubes each class has in each split, in the form of the ROAD paper's Tables 15 to 20."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import polars as pl

from roadaware.protocols.tpami22 import load_printed, normalize_name
from roadaware.scenes.tables import Scenes

ALL = "all"
COUNTS: dict[str, Any] = {
    "kind": pl.String,
    "label": pl.String,
    "split": pl.String,
    "boxes": pl.Int64,
    "frames": pl.Int64,
    "tubes": pl.Int64,
}
_COUNTED = ("boxes", "frames", "tubes")
_TOTALS = "7"
_OWN_TABLES = ("15", "16", "17", "18", "19", "20")
_REPEATED_IN = ("21", "22", "23")
_RECORDING = re.compile(r"201[45]-\d\d-\d\d-\d\d-\d\d-\d\d_")
_SETS = {
    "road": ((18, 22), _RECORDING),  # videos without the test set, and with it
    "ucf101-24": ((3194,), re.compile(r"\w+/v_\w+_g\d+_c\d+$")),
}
_AGENTNESS = "agentness"


def count(scenes: Scenes) -> pl.DataFrame:
    """Boxes or frames, and tubes, of each kind, class and split.

    Columns: `kind`; `label`, null for the kind's total; `split`, `all` first and then the splits by name;
    `boxes`, null for kinds that label frames; `frames`, null for kinds that label boxes; `tubes`. Kinds and
    classes come in the order of the vocabularies; a class that does not occur has zeros. A box or frame
    counts once for each of its labels. The boxes and tubes of agentness are all boxes and their tracks. Kinds
    that label nothing of these are left out.
    """
    found = [
        _boxes(scenes),
        _count_classes(scenes.frame_labels.with_columns(pl.col("video").cast(pl.String)), "frames"),
        _tubes(scenes),
    ]
    if _AGENTNESS in scenes.meta.vocabularies:
        found += _agents(scenes)
    # Each video under `all` and under each of its splits; one that is itself called `all` adds nothing.
    videos = scenes.videos.select(pl.col("video").cast(pl.String))
    everywhere = videos.with_columns(split=pl.lit(ALL))
    if "splits" not in scenes.videos.columns:
        videos = everywhere
    else:
        by_split = videos.with_columns(split=scenes.videos["splits"]).explode("split").drop_nulls()
        videos = pl.concat([everywhere, by_split.filter(pl.col("split") != ALL).unique(maintain_order=True)])
    tallies = pl.concat(found).join(videos, on="video")
    tallies = tallies.group_by("what", "kind", "label", "split").agg(pl.col("n").sum())
    # Every class of the kinds that occur, in every split; `index` is its place in the vocabulary.
    occurs = set(tallies["kind"])
    held = {kind: names for kind, names in scenes.meta.vocabularies.items() if kind in occurs}
    classes = [
        (k, kind, index, name)
        for k, (kind, names) in enumerate(held.items())
        for index, name in enumerate(names)
    ]
    schema = {"kind_place": pl.Int64, "kind": pl.String, "class_place": pl.Int64, "label": pl.String}
    splits = pl.DataFrame(
        {"split": [ALL, *sorted(set(videos["split"]) - {ALL})]}, schema={"split": pl.String}
    )
    rows = pl.DataFrame(classes, schema=schema, orient="row").join(
        splits.with_row_index("split_place"), how="cross"
    )
    for what in _COUNTED:
        rows = _with_count(rows, tallies.filter(pl.col("what") == what), what)
    # The sum over the classes of each kind and split; of kinds with one class too, for the table's sake.
    nothing = pl.lit(None, pl.Int64).alias("class_place"), pl.lit(None, pl.String).alias("label")
    sums = [pl.when(pl.col(c).is_not_null().any()).then(pl.col(c).sum()).alias(c) for c in _COUNTED]
    totals = rows.group_by("kind_place", "kind", "split", "split_place").agg(sums)
    rows = pl.concat([rows, totals.with_columns(nothing).select(rows.columns)]).sort(
        "kind_place", "class_place", "split_place", nulls_last=True
    )
    return rows.select(pl.col(name).cast(dtype) for name, dtype in COUNTS.items())


def compare_printed_counts(counts: pl.DataFrame, scenes: Scenes) -> pl.DataFrame | None:
    """The counts with the printed ones and what differs; None where the paper counts another set.

    Adds `printed_boxes`, `printed_frames` and `printed_tubes` (null where nothing is printed or the print is
    unreadable), `differs` (null where nothing is printed) and `note`. Totals are compared with Table 7,
    which counts the classes of the annotation file; those of Tables 16, 19 and 20 count unused ones too.
    Without the test set, counts over all videos are not compared.

    Args:
        counts: what `count` returned.
        scenes: what was counted; see `is_printed_set`.

    Source: Singh et al., TPAMI 2022, Tables 7 and 15 to 23.
    """
    videos = scenes.videos["video"].cast(pl.String).to_list()
    if scenes.meta.dataset.casefold() != "road" or not is_printed_set(scenes.meta.dataset, videos):
        return None
    # The printed counts by kind, split and plain name; what one leaves unreadable, another may print.
    rows = load_printed().filter(pl.col("level").is_in(_COUNTED))
    own, again = pl.col("table").is_in(_OWN_TABLES), pl.col("table").is_in(_REPEATED_IN)
    classes = (own | again) & pl.col("label").is_not_null()
    rows = rows.filter(classes | ((pl.col("table") == _TOTALS) & pl.col("label").is_null()))
    rows = rows.with_columns(_name(), first=own).sort("first", descending=True, maintain_order=True)
    values = [
        pl.col("value")
        .filter(pl.col("level") == what)
        .drop_nulls()
        .first()
        .cast(pl.Int64)
        .alias(f"printed_{what}")
        for what in _COUNTED
    ]
    has_value = pl.col("value").is_not_null() | ~pl.col("value").is_not_null().any()
    note = pl.col("note").filter(has_value).drop_nulls().first()
    theirs = rows.group_by("kind", "split", "name").agg(*values, note)
    if "test" not in counts["split"].to_list():
        theirs = theirs.filter(pl.col("split") != ALL)
    both = counts.with_columns(_name()).join(
        theirs, on=["kind", "split", "name"], how="left", nulls_equal=True, maintain_order="left"
    )
    apart = [pl.col(what) != pl.col(f"printed_{what}") for what in _COUNTED]
    both = both.with_columns(differs=pl.any_horizontal(apart))
    return both.select(*counts.columns, *(f"printed_{what}" for what in _COUNTED), "differs", "note")


def is_printed_set(dataset: str, videos: Collection[str]) -> bool:
    """Whether a set is one that the ROAD paper prints numbers of, by its size and the form of its names.

    Args:
        dataset: its name.
        videos: all of its videos: the 22 of ROAD, or the 18 for training and validation, are recordings of
            the Oxford RobotCar, each named by when it was made; UCF101-24 has 3,194, named by their classes.

    >>> is_printed_set("ROAD", [f"2014-07-14-14-49-50_stereo_centre_{k:02}" for k in range(18)])
    True
    >>> is_printed_set("ROAD", [f"made_up_{k}" for k in range(18)])
    False
    """
    sizes, name = _SETS.get(dataset.casefold(), ((), _RECORDING))
    return len(videos) in sizes and all(name.match(video) for video in videos)


def count_table(counts: pl.DataFrame, kind: str) -> pl.DataFrame:
    """One kind as in print: a row for each class and `total`, a column for each split, cells `boxes/tubes`.

    Kinds that label frames have their number in place of boxes; without tubes it stands alone.

    Args:
        counts: what `count` returned.
        kind: one of its kinds.
    """
    rows = counts.filter(pl.col("kind") == kind)
    cell = pl.concat_str(pl.coalesce("boxes", "frames"), "tubes", separator="/", ignore_nulls=True)
    rows = rows.select(pl.col("label").fill_null("total"), "split", cell=cell)
    return rows.pivot("split", index="label", values="cell")


def _boxes(scenes: Scenes) -> pl.DataFrame:
    owners = scenes.boxes.select("box", pl.col("video").cast(pl.String))
    return _count_classes(scenes.labels.join(owners, on="box"), "boxes")


def _tubes(scenes: Scenes) -> pl.DataFrame:
    owners = scenes.tubes.select("tube", pl.col("video").cast(pl.String))
    return _count_classes(scenes.tube_labels.join(owners, on="tube"), "tubes")


def _agents(scenes: Scenes) -> list[pl.DataFrame]:
    """All boxes, and the tubes that own them, as the one class of agentness."""
    one = (pl.lit(_AGENTNESS).alias("kind"), pl.lit(0, pl.Int64).alias("label"))
    boxes = scenes.boxes.select(pl.col("video").cast(pl.String), *one)
    found = [_count_classes(boxes, "boxes")]
    if "tube" in scenes.boxes.columns:
        owners = scenes.boxes.select(pl.col("video").cast(pl.String), "tube").drop_nulls("tube").unique()
        found.append(_count_classes(owners.select("video", *one), "tubes"))
    return found


def _count_classes(rows: pl.DataFrame, what: str) -> pl.DataFrame:
    """How often each class occurs in each video."""
    tallied = rows.group_by("video", pl.col("kind").cast(pl.String), "label").agg(n=pl.len().cast(pl.Int64))
    return tallied.select(pl.lit(what).alias("what"), "video", "kind", "label", "n")


def _with_count(rows: pl.DataFrame, tallies: pl.DataFrame, what: str) -> pl.DataFrame:
    """Add how often each class occurs as `what`: zero where others of its kind do, null where none does."""
    counted = tallies.select("kind", "split", "n", class_place="label")
    rows = rows.join(counted, on=["kind", "split", "class_place"], how="left", maintain_order="left")
    never = ~pl.col("kind").is_in(tallies["kind"].unique().implode())
    return rows.with_columns(pl.when(never).then(None).otherwise(pl.col("n").fill_null(0)).alias(what)).drop(
        "n"
    )


def _name() -> pl.Expr:
    return pl.col("label").map_elements(normalize_name, return_dtype=pl.String).alias("name")
