"""What a set of corner cases is made of: scenes, classes, weather and period, beside print."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.metrics.corner_cases.inputs import KIND, SUPER
from roadaware.protocols.coda import TRAINING_SETS, Version, named_by, separated
from roadaware.protocols.printed_coda import composition as printed_composition
from roadaware.protocols.printed_coda import scene_shares
from roadaware.scenes.tables import Scenes

ALL, UNNAMED = "all", "no class"
_TOP = 4
_TAGS = ("weather", "period")
_PRINTED = {"kitti": "CODA-KITTI", "nuscenes": "CODA-nuScenes", "once": "CODA-ONCE", ALL: "CODA"}
_ALSO = {"overcast": "cloudy", "sunny": "clear", "rain": "rainy"}


@dataclass(frozen=True, eq=False)
class Composition:
    """What a set is made of.

    Args:
        parts: one row per domain and for all: `part`, `scenes`, `classes`, `instances`, `weather`, `period`
            (how many values), and `printed_scenes`, `printed_classes`, `printed_instances` (Table 1).
        classes: one row per class, the most frequent first: `label`, `super_class`, `objects`,
            `corner_cases`, `share`, `common` (null for novel classes), and whether each training set names it
            (Fig. 3).
        top: the four most frequent classes of each domain: `part`, `rank`, `label`, `objects`, `share`
            (Fig. 4).
        tags: `tag`, `value`, `scenes`, `share` and `printed_share` of weather and period (section 3).
        facts: `novel_share` of objects, `objects_per_scene`, and `zipf_slope`, how the logarithm of frequency
            falls with that of rank (about -1 by Zipf's law; null below three classes).
    """

    parts: pl.DataFrame
    classes: pl.DataFrame
    top: pl.DataFrame
    tags: pl.DataFrame
    facts: dict[str, float | None]


def composition(scenes: Scenes, version: Version = "base") -> Composition:
    """The composition of a set; where boxes say whether they are corner cases, `instances` are those alone.

    Args:
        scenes: boxes with labels of the kind `corner`, videos or frames with period, weather and domain as
            far as known.
        version: which classes are common.

    Source: Li et al., ECCV 2022 (CODA), section 3, Table 1, Figures 3 and 4.
    """
    pictures, objects = _pictures(scenes), _objects(separated(scenes, version))
    placed = objects.join(pictures, on=["video", "frame"], how="inner", maintain_order="left")
    named = placed.filter(pl.col("label").is_not_null())
    corner = placed.filter("corner_case")
    domains = pictures["domain"].drop_nulls().unique().sort().to_list()
    return Composition(
        parts=_parts(pictures, corner, domains),
        classes=_classes(named),
        top=_top(named.filter("corner_case"), domains),
        tags=pl.concat([_tag(pictures, tag) for tag in _TAGS]),
        facts={
            "novel_share": _share(placed["common"].is_null()),
            "objects_per_scene": len(placed) / len(pictures) if len(pictures) else None,
            "zipf_slope": _slope(named["label"].value_counts()["count"].to_numpy()),
        },
    )


def _pictures(scenes: Scenes) -> pl.DataFrame:
    """One row per annotated picture with weather, period and domain."""
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=False))
    wanted = (*_TAGS, "domain")
    held = [name for name in wanted if name in frames.columns]
    told = [name for name in wanted if name in scenes.videos.columns and name not in held]
    videos = scenes.videos.select(pl.col("video").cast(pl.String), *told)
    table = frames.select("video", "frame", *held).join(videos, on="video", how="left", maintain_order="left")
    blank = [pl.lit(None, dtype=pl.String).alias(name) for name in wanted if name not in (*held, *told)]
    return table.with_columns(*blank).with_columns(pl.col(*wanted).cast(pl.String))


def _objects(scenes: Scenes) -> pl.DataFrame:
    """One row per box with its class, super-class, and whether it is common and a corner case."""
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String))
    if "corner_case" not in boxes.columns:
        boxes = boxes.with_columns(corner_case=pl.lit(value=True))
    table = boxes.select("box", "video", "frame", "common", pl.col("corner_case").fill_null(value=False))
    for name, kind in (("label", KIND), ("super_class", SUPER)):
        words = dict(enumerate(scenes.meta.vocabularies.get(kind, ())))
        rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind).unique("box", keep="first")
        said = pl.col("label").cast(pl.Int64).replace_strict(words, default=None, return_dtype=pl.String)
        table = table.join(rows.select("box", said.alias(name)), on="box", how="left", maintain_order="left")
    return table


def _parts(pictures: pl.DataFrame, corner: pl.DataFrame, domains: list[str]) -> pl.DataFrame:
    """Table 1."""
    print_of = {row["row"]: row for row in printed_composition().iter_rows(named=True)}
    rows = []
    for part in (*domains, ALL):
        of = pl.lit(value=True) if part == ALL else pl.col("domain") == part
        seen, held = pictures.filter(of), corner.filter(of)
        theirs = print_of.get(_PRINTED.get(part, ""), {})
        rows.append(
            {
                "part": part,
                "scenes": len(seen),
                "classes": held["label"].drop_nulls().n_unique(),
                "instances": len(held),
                **{tag: seen[tag].drop_nulls().n_unique() for tag in _TAGS},
                **{f"printed_{name}": theirs.get(name) for name in ("scenes", "classes", "instances")},
            }
        )
    numbers = dict.fromkeys(list(rows[0])[1:], pl.Int64)
    return pl.DataFrame(rows, schema={"part": pl.String, **numbers})


def _classes(named: pl.DataFrame) -> pl.DataFrame:
    """Figure 3."""
    counted = named.group_by("label", maintain_order=True).agg(
        pl.col("super_class").first(),
        pl.len().cast(pl.Int64).alias("objects"),
        pl.col("corner_case").sum().cast(pl.Int64).alias("corner_cases"),
        (pl.len() / max(1, len(named))).alias("share"),
        pl.col("common").first(),
    )
    counted = counted.sort("objects", "label", descending=[True, False])
    coverage = [named_by(label) for label in counted["label"]]
    sets = [pl.Series(name, [each[name] for each in coverage], dtype=pl.Boolean) for name in TRAINING_SETS]
    return counted.with_columns(*sets)


def _top(named: pl.DataFrame, domains: list[str]) -> pl.DataFrame:
    """Figure 4."""
    schema = {
        "part": pl.String,
        "rank": pl.Int64,
        "label": pl.String,
        "objects": pl.Int64,
        "share": pl.Float64,
    }
    rows = []
    for part in (*domains, ALL):
        held = named if part == ALL else named.filter(pl.col("domain") == part)
        counted = held.group_by("label").len("objects").sort("objects", "label", descending=[True, False])
        for rank, (label, objects) in enumerate(counted.head(_TOP).iter_rows(), 1):
            rows.append((part, rank, label, objects, objects / len(held)))
    return pl.DataFrame(rows, schema=schema, orient="row")


def _tag(pictures: pl.DataFrame, tag: str) -> pl.DataFrame:
    """How many scenes have each weather or period."""
    shares = scene_shares()[tag]
    known = pictures.filter(pl.col(tag).is_not_null())
    counted = known.group_by(pl.col(tag).alias("value")).len("scenes").sort("scenes", descending=True)
    theirs = [shares.get(_ALSO.get(value.lower(), value.lower())) for value in counted["value"]]
    return counted.select(
        tag=pl.lit(tag),
        value="value",
        scenes=pl.col("scenes").cast(pl.Int64),
        share=pl.col("scenes") / max(1, len(known)),
        printed_share=pl.Series(theirs, dtype=pl.Float64),
    )


def _share(marks: pl.Series) -> float | None:
    return float(marks.sum()) / len(marks) if len(marks) else None


def _slope(counts: np.ndarray) -> float | None:
    """How log frequency falls with log rank, by least squares."""
    if len(counts) < 3:
        return None
    falling = np.sort(counts.astype(np.float64))[::-1]
    return float(np.polyfit(np.log(np.arange(1, len(falling) + 1)), np.log(falling), 1)[0])
