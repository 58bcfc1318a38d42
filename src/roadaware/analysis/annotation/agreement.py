"""Agreement of annotators of boxes: boxes of one object brought together, agreement on existence, position and class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.annotation.cost import LEAST_IOU, REFUSED_NOTE, group_annotations, match_annotators
from roadaware.analysis.quality.agreement import compute_alpha, compute_disagreements
from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.formats.coda import KIND
from roadaware.geometry.boxes import iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes
from roadaware.statistics.intervals import Interval, Scale, Units

# Object groups: boxes of several annotators in one image, with who saw the image and their classes.

THING: dict[str, Any] = {
    "thing": pl.Int64,
    "picture": pl.Int64,
    "annotator": pl.String,
    "box": pl.Int64,
    "label": pl.Int64,
}
OVERLAP: dict[str, Any] = {"thing": pl.Int64, "n_pairs": pl.Int64, "iou_sum": pl.Float64}
PAIR: dict[str, Any] = {
    "picture": pl.Int64,
    "first": pl.String,
    "second": pl.String,
    "n_first": pl.Int64,
    "n_second": pl.Int64,
    "matched": pl.Int64,
    "iou_sum": pl.Float64,
    "named": pl.Int64,
    "same": pl.Int64,
}


@dataclass(frozen=True, eq=False)
class Things:
    """Objects and the boxes of each annotator.

    Args:
        pictures: video, frame, `annotators` who saw it, `proposals` that they were shown; those that two saw.
        alone: video, frame and annotator of the images that one alone saw.
        members: a row per box: the thing it is of, its image (a row of `pictures`), annotator, box, label.
        overlaps: of each thing that several drew: how many two of its boxes there are, the sum of overlaps.
        pairs: a row per image and two annotators who saw it: their boxes, how many are of one thing, the
            sum of overlaps, how many of those both have named, and how many alike.
        links: annotator and the proposals that his boxes name; None where boxes name none.
        unknown: annotator and the proposals of which nobody knows whether he left them.
        annotators: all of them, sorted.
        words: the classes.
    """

    pictures: pl.DataFrame
    alone: pl.DataFrame
    members: pl.DataFrame
    overlaps: pl.DataFrame
    pairs: pl.DataFrame
    links: pl.DataFrame | None
    unknown: pl.DataFrame
    annotators: tuple[str, ...]
    words: tuple[str, ...]


def group_objects(scenes: Scenes, *, kind: str = KIND, least: float = LEAST_IOU) -> Things:
    """Bring the boxes of all annotators together, image by image.

    Who saw an image stands in `frames.annotators`; where the tables do not have it, everybody who drew
    anything saw all annotated images.

    Args:
        scenes: with `boxes.annotator`.
        kind: of labels.
        least: boxes that overlap less are of different things.

    Raises:
        InputError: if there is one annotator alone, or no image that two of them saw.
    """
    # video, frame, annotators and proposals of the images that anybody saw.
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotator" not in scenes.boxes.columns:
        raise InputError("the boxes do not say who drew them: there is no column 'annotator'")
    if "annotators" not in frames.columns:
        everybody = scenes.boxes["annotator"].drop_nulls().cast(pl.String).unique().sort().to_list()
        if "annotated" in frames.columns:
            frames = frames.filter(pl.col("annotated").fill_null(value=False))
        frames = frames.with_columns(annotators=pl.lit(everybody, dtype=pl.List(pl.String)))
    if "proposals" not in frames.columns:
        frames = frames.with_columns(proposals=pl.lit(None, dtype=pl.List(pl.Int64)))
    held = frames.select("video", "frame", "annotators", "proposals")
    wanted = {"annotators": pl.List(pl.String), "proposals": pl.List(pl.Int64)}
    try:  # columns of ours alone, whose types no law of tables keeps
        held = held.with_columns(pl.col(name).cast(kind) for name, kind in wanted.items())
    except pl.exceptions.PolarsError as error:
        raise InputError(
            "annotators and proposals of the images are no lists of names and numbers"
        ) from error
    seen = held.filter(pl.col("annotators").list.len() > 0)
    names = tuple(sorted({name for row in seen["annotators"] for name in row}))
    if len(names) < 2:
        text = f"only {names[0]}" if names else "nobody"
        raise InputError(
            f"agreement needs two annotators, and {text} looked at these images",
            hint="import what several people left of the same tasks",
        )
    several = seen.filter(pl.col("annotators").list.len() >= 2)
    if several.is_empty():
        raise InputError(
            f"none of {len(seen)} images was seen by two of {len(names)} annotators",
            hint="give the same images to several people",
        )
    alone = seen.filter(pl.col("annotators").list.len() == 1).select(
        "video", "frame", annotator=pl.col("annotators").list.first()
    )
    members, overlaps, pairs = _brought_together(scenes, several, kind, least)
    words = scenes.meta.vocabularies.get(kind, ())
    links, unknown = _links(scenes), _list_refused(scenes)
    return Things(several, alone, members, overlaps, pairs, links, unknown, names, words)


def _links(scenes: Scenes) -> pl.DataFrame | None:
    """annotator and proposals: which proposals are left of whom."""
    if "proposal" not in scenes.boxes.columns:
        return None
    return scenes.boxes.select(pl.col("annotator").cast(pl.String), proposals="proposal").drop_nulls()


def _list_refused(scenes: Scenes) -> pl.DataFrame:
    """annotator and proposals: what came back of them was refused."""
    held = scenes.meta.notes.get(REFUSED_NOTE, [])
    return pl.DataFrame(held, schema={"annotator": pl.String, "proposals": pl.Int64}, orient="row")


def _labels(scenes: Scenes, kind: str) -> pl.DataFrame:
    """box and its first label of a kind."""
    held = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind)
    return held.sort("label").unique("box", keep="first").select("box", "label")


def _brought_together(
    scenes: Scenes, images: pl.DataFrame, kind: str, least: float
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    boxes = scenes.boxes.select(
        "box", pl.col("video").cast(pl.String), "frame", pl.col("annotator").cast(pl.String), *CORNERS
    ).join(_labels(scenes, kind), on="box", how="left", maintain_order="left")
    drawn: dict[tuple[str, int, str], list[tuple[Any, ...]]] = {}
    for video, frame, who, *rest in boxes.select(
        "video", "frame", "annotator", "box", "label", *CORNERS
    ).iter_rows():
        drawn.setdefault((video, frame, who), []).append(tuple(rest))
    members: list[tuple[Any, ...]] = []
    overlaps: list[tuple[Any, ...]] = []
    pairs: list[tuple[Any, ...]] = []
    count = 0
    for image, (video, frame, who) in enumerate(images.select("video", "frame", "annotators").iter_rows()):
        own = [drawn.get((video, frame, name), []) for name in who]
        corners = [np.array([row[2:] for row in rows], dtype=np.float64).reshape(-1, 4) for rows in own]
        numbers, labels = ([[row[k] for row in rows] for rows in own] for k in (0, 1))
        for group in group_annotations(corners, least):
            members += [(count, image, who[k], numbers[k][n], labels[k][n]) for k, n in group.items()]
            shares = iou(*[np.array([corners[k][n] for k, n in group.items()])] * 2)
            upper = shares[np.triu_indices(len(group), 1)]
            overlaps.append((count, len(upper), float(upper.sum())))
            count += 1
        for a, b in combinations(range(len(who)), 2):
            found = match_annotators(corners[a], corners[b], least)
            both = [(labels[a][i], labels[b][j]) for i, j, _ in found]
            named = [pair for pair in both if None not in pair]
            counts = (
                len(found),
                sum(share for *_, share in found),
                len(named),
                sum(x == y for x, y in named),
            )
            pairs.append((image, who[a], who[b], len(corners[a]), len(corners[b]), *counts))
    return (
        pl.DataFrame(members, schema=THING, orient="row"),
        pl.DataFrame(overlaps, schema=OVERLAP, orient="row").filter(pl.col("n_pairs") > 0),
        pl.DataFrame(pairs, schema=PAIR, orient="row"),
    )


MEASURES = {
    "found_by_all": "share of things that everybody who saw the image drew",
    "found_by_one": "share of things that one alone drew",
    "existence": "2 matched / (boxes of both), over every two annotators",
    "mean_iou": "mean overlap of matched boxes",
    "same_class": "share of matched boxes that both named alike",
    "class_alpha": "Krippendorff's alpha of the classes of things that two or more named",
    "kept_alpha": "Krippendorff's alpha of keeping or deleting each proposal",
}
"""What is measured, and what it is."""
_SCHEMA: dict[str, Any] = {
    "group": pl.String,
    "measure": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "low_picture": pl.Float64,
    "high_picture": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "caution_picture": pl.String,
    "caution_video": pl.String,
}


@dataclass(frozen=True, eq=False)
class BoxAgreement:
    """Agreement of annotators on boxes.

    Args:
        table: a row per group (null for all, two annotators as `a, b`, or a class as `class: name`) and
            measure: `value` (null where it is undefined), `n` that it rests on, the ends of 95 %
            intervals over images and over videos, and why these are to be taken with caution.
        counts: how many things were drawn by so many (`n_found`) of those who saw the image (`n_saw`).
    """

    table: pl.DataFrame
    counts: pl.DataFrame

    def value(self, measure: str, group: str | None = None) -> float | None:
        """One number; None where it is undefined or not there."""
        held = self.table.filter(
            (pl.col("measure") == measure) & pl.col("group").eq_missing(pl.lit(group, dtype=pl.String))
        )
        found: float | None = held["value"][0] if len(held) else None
        return found


@dataclass(frozen=True, eq=False)
class _Part:
    """One group's sums by image.

    Args:
        ratios: measure to (p,) numerators and (p,) denominators.
        alphas: measure to (p,) observed disagreement and (p, c) frequencies of labels.
    """

    ratios: dict[str, tuple[Floats, Floats]]
    alphas: dict[str, tuple[Floats, Floats]]


def measure_box_agreement(things: Things, *, resamples: int = 0, seed: int = 0) -> BoxAgreement:
    """Agreement over all, of every two annotators, and by class.

    A thing's class is what most of those who drew it called it, the first in the vocabulary among equals.
    Kept or deleted can be asked only where images tell what was proposed and boxes name their proposals.

    Args:
        things: what was drawn by whom.
        resamples: most weightings of images and of videos; 0 gives no intervals.
        seed: of the weightings.
    """
    table = build_annotation_table(things)
    count = len(things.pictures)
    ratios = _count_found(table, count) | _pair_ratios(things.pairs, count)
    alphas = {"class_alpha": _class_units(things, count, None)}
    kept = _kept_units(things, count)
    groups: dict[str | None, _Part] = {
        None: _Part(ratios, alphas | ({"kept_alpha": kept} if kept is not None else {}))
    }
    for pair, own in things.pairs.group_by("first", "second", maintain_order=True):
        groups[f"{pair[0]}, {pair[1]}"] = _Part(_pair_ratios(own, count), {})
    for label in table["label"].drop_nulls().unique().sort().to_list():
        groups[f"class: {things.words[label]}"] = _of_class(things, table, label, count)
    measures = [(group, *each) for group, part in groups.items() for each in _values(part)]
    videos = things.pictures["video"].to_numpy().astype(np.str_)
    one = np.ones((1, len(videos)))
    values = [float(measure[2](one)[0]) for measure in measures]
    units = (np.arange(len(videos)), videos)
    found = [_intervals(measures, values, unit, resamples, seed) for unit in units]
    rows: list[tuple[Any, ...]] = []
    for (group, measure, _, n), value, *held in zip(measures, values, *found, strict=True):
        ends = [end for each in held for end in ((each.low, each.high) if each else (None, None))]
        cautions = [each.caution if each else None for each in held]
        rows.append((group, measure, None if np.isnan(value) else value, n, *ends, *cautions))
    return BoxAgreement(
        pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
        table.group_by("n_saw", "n_found").agg(things=pl.len()).sort("n_saw", "n_found"),
    )


def build_annotation_table(things: Things) -> pl.DataFrame:
    """One row per thing: image, `n_saw`, `n_found`, `label` (of most), `votes` (for it) and `named`."""
    saw = things.pictures.select(n_saw=pl.col("annotators").list.len()).with_row_index("picture")
    saw = saw.with_columns(pl.col("picture", "n_saw").cast(pl.Int64))
    named = things.members.drop_nulls("label").group_by("thing", "label").agg(votes=pl.len())
    best = named.sort("thing", "votes", "label", descending=[False, True, False]).unique(
        "thing", keep="first", maintain_order=True
    )
    total = named.group_by("thing").agg(named=pl.col("votes").sum())
    table = things.members.group_by("thing", maintain_order=True).agg(
        picture=pl.col("picture").first(), n_found=pl.len()
    )
    table = table.join(saw, on="picture", how="left", maintain_order="left")
    for part in (best, total):
        table = table.join(part, on="thing", how="left", maintain_order="left")
    return table.with_columns(pl.col("n_found").cast(pl.Int64), pl.col("votes", "named").fill_null(0))


def _of_class(things: Things, table: pl.DataFrame, label: int, count: int) -> _Part:
    own = table.filter(pl.col("label") == label)
    drawn = own.join(things.overlaps, on="thing", how="inner")
    image = drawn["picture"].to_numpy()
    sums = [
        _sum_by_image(image, drawn[name].to_numpy().astype(np.float64), count)
        for name in ("iou_sum", "n_pairs")
    ]
    return _Part(
        _count_found(own, count) | {"mean_iou": (sums[0], sums[1])},
        {"class_alpha": _class_units(things, count, label)},
    )


def _count_found(table: pl.DataFrame, count: int) -> dict[str, tuple[Floats, Floats]]:
    image = table["picture"].to_numpy()
    found, saw = table["n_found"].to_numpy(), table["n_saw"].to_numpy()
    whole = _sum_by_image(image, np.ones(len(table)), count)
    everybody = _sum_by_image(image, (found == saw).astype(np.float64), count)
    one = _sum_by_image(image, (found == 1).astype(np.float64), count)
    return {"found_by_all": (everybody, whole), "found_by_one": (one, whole)}


def _pair_ratios(pairs: pl.DataFrame, count: int) -> dict[str, tuple[Floats, Floats]]:
    image = pairs["picture"].to_numpy()
    sums = {
        name: _sum_by_image(image, pairs[name].to_numpy().astype(np.float64), count)
        for name in ("n_first", "n_second", "matched", "iou_sum", "named", "same")
    }
    return {
        "existence": (2.0 * sums["matched"], sums["n_first"] + sums["n_second"]),
        "mean_iou": (sums["iou_sum"], sums["matched"]),
        "same_class": (sums["same"], sums["named"]),
    }


def _class_units(things: Things, count: int, label: int | None) -> tuple[Floats, Floats]:
    """Disagreement about the classes of things by image: about all, or one against the others."""
    members = things.members
    wide = members.drop_nulls("label").pivot("annotator", index=["thing", "picture"], values="label")
    if wide.is_empty():
        return np.zeros(count), np.zeros((count, 1))
    raters = []
    for name in wide.columns[2:]:
        given = wide[name]
        codes = given.fill_null(-1).to_numpy().astype(np.int64)
        raters.append(codes if label is None else np.where(codes < 0, -1, (codes == label).astype(np.int64)))
    return _by_picture(compute_disagreements(raters), wide["picture"].to_numpy(), count)


def _kept_units(things: Things, count: int) -> tuple[Floats, Floats] | None:
    """Disagreement about keeping proposals by image; None where nothing says what was proposed."""
    links = things.links
    images = things.pictures.with_row_index("picture").with_columns(pl.col("picture").cast(pl.Int64))
    asked = images.select("picture", "proposals").explode("proposals").drop_nulls()
    if links is None or asked.is_empty():
        return None
    raters = []
    for name in things.annotators:
        saw = images.select("picture", saw=pl.col("annotators").list.contains(name))
        kept = links.filter(pl.col("annotator") == name).select("proposals", kept=pl.lit(1, dtype=pl.Int64))
        unknown = things.unknown.filter(pl.col("annotator") == name).select("proposals", kept=pl.lit(-1))
        table = pl.concat([kept, unknown.cast(kept.schema)]).unique("proposals", keep="first")
        rows = asked.join(saw, on="picture", how="left", maintain_order="left").join(
            table, on="proposals", how="left", maintain_order="left"
        )
        raters.append(
            rows.select(pl.when("saw").then(pl.col("kept").fill_null(0)).otherwise(-1)).to_series().to_numpy()
        )
    return _by_picture(compute_disagreements(raters), asked["picture"].to_numpy(), count)


def _by_picture(units: tuple[Floats, Floats], image: Ints, count: int) -> tuple[Floats, Floats]:
    observed, counts = units
    frequencies = np.zeros((count, counts.shape[1]))
    np.add.at(frequencies, image, counts)
    return _sum_by_image(image, observed, count), frequencies


def _sum_by_image(image: Ints, values: Floats, count: int) -> Floats:
    found: Floats = np.bincount(image, values, minlength=count).astype(np.float64)
    return found


def _intervals(
    measures: Sequence[tuple[Any, str, Callable[[Floats], Floats], int]],
    values: Sequence[float],
    unit: npt.NDArray[Any],
    resamples: int,
    seed: int,
) -> list[Interval | None]:
    """The interval of each measure over units; None without resamples, or below two units."""
    units = Units.of(unit, resamples, seed) if resamples else None
    if units is None:
        return [None] * len(measures)
    drawn: list[list[Floats]] = [[] for _ in measures]
    for block in units.weights():
        weights = block.astype(np.float64)
        for held, (_, _, of, _) in zip(drawn, measures, strict=True):
            held.append(of(weights))
    scales: list[Scale] = ["to_one" if name.endswith("alpha") else "share" for _, name, _, _ in measures]
    parts = zip(values, drawn, scales, strict=True)
    return [units.interval(value, np.concatenate(held), scale) for value, held, scale in parts]


def _values(part: _Part) -> list[tuple[str, Callable[[Floats], Floats], int]]:
    """Each measure with what it is for (resamples, p) weights of images, and what it rests on."""
    found: list[tuple[str, Callable[[Floats], Floats], int]] = []
    for measure, (above, below) in part.ratios.items():
        found.append((measure, _Ratio(above, below), round(float(below.sum()))))
    for measure, (observed, frequencies) in part.alphas.items():
        found.append((measure, _Alpha(observed, frequencies), round(float(frequencies.sum()))))
    return found


@dataclass(frozen=True, eq=False)
class _Ratio:
    above: Floats
    below: Floats

    def __call__(self, weights: Floats) -> Floats:
        whole = weights @ self.below
        found: Floats = np.divide(
            weights @ self.above, whole, out=np.full(len(weights), np.nan), where=whole > 0
        )
        return found


@dataclass(frozen=True, eq=False)
class _Alpha:
    observed: Floats
    frequencies: Floats

    def __call__(self, weights: Floats) -> Floats:
        sums = zip(weights @ self.observed, weights @ self.frequencies, strict=True)
        values = (compute_alpha(float(observed), frequencies) for observed, frequencies in sums)
        return np.array([np.nan if value is None else value for value in values])


# Consensus: what most annotators drew, as ground truth, and what they do not agree on, for a further look.

DISPUTE: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "reason": pl.String,
    "found_by": pl.String,
    "said": pl.String,
    **dict.fromkeys(CORNERS, pl.Float64),
}
"""Columns of disputes: who drew the box, what each called it, and where it is."""


@dataclass(frozen=True, eq=False)
class Consensus:
    """Majority annotations, and the open disputes.

    Args:
        scenes: boxes that more than half of those who saw the image drew: each corner the median of theirs,
            the label that more than half of those who named it gave, with `n_found` and `n_saw`.
        disputes: see `DISPUTE`: boxes that half or fewer drew, classes without a majority, and images that
            one person alone saw.
    """

    scenes: Scenes
    disputes: pl.DataFrame


def build_consensus(things: Things, scenes: Scenes) -> Consensus:
    """Build ground truth by majority, and the list of open disputes.

    Images that one alone saw are in neither: they stand among the disputes, unverified.

    Args:
        things: what was drawn by whom.
        scenes: of all annotators, from which `things` were made.

    Source: Li et al., ECCV 2022, section 3.3: the output of each annotator is verified by two others.
    """
    table = _join_annotations(things, scenes)
    most = table.filter(2 * pl.col("n_found") > pl.col("n_saw"))
    named = 2 * pl.col("votes") > pl.col("named")
    boxes = most.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    labels = boxes.filter(named & pl.col("label").is_not_null()).select(
        "box", kind=pl.lit(KIND), label=pl.col("label")
    )
    images = things.pictures.select("video", "frame").with_columns(annotated=pl.lit(value=True))
    truth = Scenes(
        videos=scenes.videos,
        frames=images,
        boxes=boxes.select("box", "video", "frame", *CORNERS, "n_found", "n_saw").with_columns(
            corner_case=pl.lit(value=True)
        ),
        labels=labels,
        meta=Meta(dataset=scenes.meta.dataset, vocabularies={KIND: things.words}),
    )
    few = table.filter(2 * pl.col("n_found") <= pl.col("n_saw")).with_columns(
        reason=pl.format("drawn by {} of {}", "n_found", "n_saw")
    )
    open_class = most.filter(~named & (pl.col("named") > 0)).with_columns(
        reason=pl.lit("no class has a majority")
    )
    nameless = most.filter(pl.col("named") == 0).with_columns(reason=pl.lit("nobody named it"))
    alone = things.alone.with_columns(reason=pl.format("only {} saw the image", "annotator"))
    parts = [few, open_class, nameless] if len(things.words) else [few]
    # Rows as `DISPUTE` has them, null where a part does not say
    disputes = pl.concat(
        [
            part.select(
                pl.col(name).cast(dtype) if name in part.columns else pl.lit(None, dtype).alias(name)
                for name, dtype in DISPUTE.items()
            )
            for part in (*parts, alone)
        ]
    )
    return Consensus(truth, disputes.sort("video", "frame", "reason", maintain_order=True))


def _join_annotations(things: Things, scenes: Scenes) -> pl.DataFrame:
    """The things with their image, the median of their corners, who drew them and what each said."""
    corners = scenes.boxes.select("box", pl.col(*CORNERS).cast(pl.Float64))
    words = dict(enumerate(things.words))
    said = pl.col("label").replace_strict(words, default=None, return_dtype=pl.String).fill_null("-")
    members = things.members.join(corners, on="box", how="left", maintain_order="left")
    drawn = members.group_by("thing", maintain_order=True).agg(
        *(pl.col(name).median() for name in CORNERS),
        found_by=pl.col("annotator").str.join(", "),
        said=said.str.join(", "),
    )
    images = things.pictures.select("video", "frame").with_row_index("picture")
    images = images.with_columns(pl.col("picture").cast(pl.Int64))
    table = build_annotation_table(things).join(drawn, on="thing", how="left", maintain_order="left")
    return table.join(images, on="picture", how="left", maintain_order="left")
