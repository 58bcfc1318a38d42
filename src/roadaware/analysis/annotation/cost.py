"""What became of proposals after annotation, and what annotating a list of images costs in seconds."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.formats.coda import KIND
from roadaware.formats.corrections import Answers
from roadaware.formats.proposal_tasks import UNNAMED, add_class_names
from roadaware.geometry.boxes import iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.statistics.cautions import ENOUGH, FEW
from roadaware.statistics.intervals import PercentileResamples, Units, compute_percentile_interval

LEAST_IOU = 0.5
"""Boxes that overlap less are of different things."""


def match_annotators(a: Floats, b: Floats, least: float = LEAST_IOU) -> list[tuple[int, int, float]]:
    """Match boxes of two annotators one to one; returns the pairs and their overlap.

    The pairs are those with the greatest sum of overlaps, none of which is below `least`.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (m, 4) the same.
        least: smallest overlap of a pair, above 0.

    Source: Kuhn, Naval Research Logistics 1955.

    >>> match_annotators(np.array([[0.0, 0, 4, 4]]), np.array([[9.0, 9, 11, 11], [0, 0, 4, 3]]))
    [(0, 1, 0.75)]
    """
    from scipy.optimize import linear_sum_assignment

    if not len(a) or not len(b):
        return []
    shares = iou(a, b)
    # Pairs below the bound gain nothing, and are dropped afterwards: the assignment always fills all it can.
    gains = np.where(shares >= least, shares, 0.0)
    rows, columns = linear_sum_assignment(gains, maximize=True)
    return [
        (int(row), int(column), float(shares[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if gains[row, column] > 0
    ]


def group_annotations(boxes: Sequence[Floats], least: float = LEAST_IOU) -> list[dict[int, int]]:
    """Group boxes of several annotators into objects: annotator to the number of its box, at most one of each.

    Every two annotators' boxes are paired; pairs are joined from the greatest overlap down, where that puts
    no two boxes of one annotator into one group. Each box is in exactly one group.

    Args:
        boxes: (n, 4) of each annotator.
        least: smallest overlap of a pair.
    """
    group: dict[tuple[int, int], dict[int, int]] = {
        (who, number): {who: number} for who, held in enumerate(boxes) for number in range(len(held))
    }
    joins = [
        (-share, one, row, other, column)
        for one in range(len(boxes))
        for other in range(one + 1, len(boxes))
        for row, column, share in match_annotators(boxes[one], boxes[other], least)
    ]
    for _, one, row, other, column in sorted(joins):
        first, second = group[one, row], group[other, column]
        if first is not second and not first.keys() & second.keys():
            first |= second
            for member in second.items():
                group[member] = first
    found = {id(each): each for each in group.values()}
    return [dict(sorted(each.items())) for each in found.values()]


FATES = ("kept", "moved", "deleted", "refused", "added")
FATE: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "annotator": pl.String,
    "proposal": pl.Int64,
    "box": pl.Int64,
    "fate": pl.String,
    "relabelled": pl.Boolean,
    "was": pl.String,
    "became": pl.String,
    "score": pl.Float64,
    "iou": pl.Float64,
    "max_edge_px": pl.Float64,
}
"""Columns of `compute_outcomes`: `box` counts the rows of what was drawn; `was` and `became` are classes."""
REFUSED_NOTE = "refused"
STILL_PX = 0.5


def compute_outcomes(sent: Predictions, answers: Answers, *, still_px: float = STILL_PX) -> pl.DataFrame:
    """One row for each annotator and proposal of an image that he did, and for each box that he added.

    A proposal is kept where no edge moved by more than `still_px`, else moved; deleted where no box is left
    of it, refused where what came back of it, or may have, could not be taken. `relabelled` says whether its
    class is another one. Boxes belong to the proposal that they name; where none of a file names any, to that
    which they overlap most, by at least half, one to one.

    Args:
        sent: what was sent out.
        answers: what came back.
        still_px: how far an edge may be away, in pixels.
    """
    proposals = add_class_names(sent).partition_by("video", "frame", as_dict=True, include_key=False)
    drawn = answers.drawn.with_row_index("row").partition_by(
        "video", "frame", "annotator", as_dict=True, include_key=False
    )
    rows: list[dict[str, Any]] = []
    refused: dict[tuple[Any, ...], set[int | None]] = {}
    for *place, proposal in answers.refused.iter_rows():
        refused.setdefault(tuple(place), set()).add(proposal)
    done = answers.looked.filter(~pl.col("skipped"))
    for video, frame, who, linked in done.select("video", "frame", "annotator", "linked").iter_rows():
        held, left = proposals.get((video, frame)), drawn.get((video, frame, who))
        unknown = refused.get((video, frame, who), set())
        outcomes = _iterate_outcomes(_dicts(held), _dicts(left), unknown, linked=linked, still_px=still_px)
        rows += [{"video": video, "frame": frame, "annotator": who, **row} for row in outcomes]
    return pl.DataFrame(rows, schema=FATE)


def summarize_outcomes(table: pl.DataFrame) -> pl.DataFrame:
    """Counts by class, `all` last: of proposals by their original class, of added boxes by their class.

    Args:
        table: what `compute_outcomes` gave.

    Returns:
        class, proposals, kept, moved, deleted, refused, relabelled, added, `precision` (share of the
        proposals that are left, of those whose fate is known), `mean_iou` (of the moved).
    """
    proposed = pl.col("proposal").is_not_null()
    of = pl.when(proposed).then(pl.col("was")).otherwise(pl.col("became")).fill_null(UNNAMED)
    counted = [
        proposed.sum().alias("proposals"),
        *((pl.col("fate") == fate).sum().alias(fate) for fate in FATES),
        pl.col("relabelled").sum().alias("relabelled"),
        pl.col("iou").filter(pl.col("fate") == "moved").mean().alias("mean_iou"),
    ]
    parts = table.group_by(of.alias("class")).agg(counted).sort("class")
    whole = table.select(pl.lit("all").alias("class"), *counted)
    known = pl.col("proposals") - pl.col("refused")
    left = pl.when(known > 0).then((pl.col("kept") + pl.col("moved")) / known)
    fates = ("kept", "moved", "deleted", "refused")
    order = ("class", "proposals", *fates, "relabelled", "added", "precision", "mean_iou")
    return pl.concat([parts, whole]).with_columns(precision=left).select(order)


def summarize_annotators(table: pl.DataFrame, looked: pl.DataFrame) -> pl.DataFrame:
    """Statistics of each annotator: images, seconds where known, and outcomes of boxes.

    Args:
        table: what `compute_outcomes` gave.
        looked: who looked at what.

    Returns:
        annotator, images, skipped, kept, moved, deleted, refused, added, relabelled, seconds (sum),
        `median_s`.
    """
    done = looked.group_by("annotator").agg(
        pictures=(~pl.col("skipped")).sum(),
        skipped=pl.col("skipped").sum(),
        seconds=pl.when(pl.col("seconds").count() > 0).then(pl.col("seconds").sum()),
        median_s=pl.col("seconds").median(),
    )
    counted = table.group_by("annotator").agg(
        *((pl.col("fate") == fate).sum().alias(fate) for fate in FATES),
        pl.col("relabelled").sum().alias("relabelled"),
    )
    found = done.join(counted, on="annotator", how="left").with_columns(
        pl.col(*FATES, "relabelled").fill_null(0)
    )
    order = ["annotator", "pictures", "skipped", *FATES, "relabelled", "seconds", "median_s"]
    return found.select(order).sort("annotator")


def build_labelled_scenes(sent: Predictions, answers: Answers, table: pl.DataFrame) -> Scenes:
    """The corrected annotations as Scenes: corner cases with their annotator, side by side if there are several.

    Boxes have `corner_case`, `annotator`, `proposal` and `fate`; labels are of the kind `corner`; frames have
    `annotators`, who looked, and `proposals`, what they were shown. `meta.notes["refused"]` holds annotator
    and proposal wherever nobody knows what became of it.

    Args:
        sent: what was sent out.
        answers: what came back.
        table: what `compute_outcomes` gave for them.
    """
    drawn = answers.drawn.with_row_index("box").with_columns(pl.col("box").cast(pl.Int64))
    rows = table.drop_nulls("box").select("box", "fate", pl.col("proposal").alias("linked"))
    boxes = drawn.join(rows, on="box", how="left", maintain_order="left")
    words = tuple(
        dict.fromkeys([*sent.meta.vocabularies[KIND], *drawn["label"].drop_nulls().unique().sort().to_list()])
    )
    place = {word: number for number, word in enumerate(words)}
    unknown = table.filter(pl.col("fate") == "refused").select("annotator", "proposal")
    labels = boxes.drop_nulls("label").select(
        "box", kind=pl.lit(KIND), label=pl.col("label").replace_strict(place, return_dtype=pl.Int64)
    )
    # The images that were sent out, with who looked and what was shown.
    who = (
        answers.looked.filter(~pl.col("skipped"))
        .group_by("video", "frame")
        .agg(annotators=pl.col("annotator").sort())
    )
    shown = (
        sent.boxes.with_columns(pl.col("video").cast(pl.String))
        .group_by("video", "frame")
        .agg(proposals=pl.col("box").sort())
    )
    frames = sent.frames.drop("annotators", "proposals", strict=False)
    for part in (who, shown):
        frames = frames.join(part, on=["video", "frame"], how="left", maintain_order="left")
    frames = frames.with_columns(pl.col("annotators", "proposals").fill_null([]))
    return Scenes(
        videos=sent.videos,
        frames=frames.with_columns(annotated=pl.col("annotators").list.len() > 0),
        boxes=boxes.drop("label", "proposal")
        .rename({"linked": "proposal"})
        .with_columns(corner_case=pl.lit(value=True)),
        labels=labels,
        rejected=answers.findings.table(),
        meta=Meta(
            dataset=sent.meta.dataset,
            vocabularies={KIND: words},
            notes={**answers.findings.notes(), REFUSED_NOTE: [list(row) for row in unknown.iter_rows()]},
        ),
    )


def _dicts(table: pl.DataFrame | None) -> list[dict[str, Any]]:
    return [] if table is None else table.to_dicts()


def _stack_corners(rows: Sequence[dict[str, Any]]) -> Floats:
    return np.array([[row[name] for name in CORNERS] for row in rows], dtype=np.float64).reshape(-1, 4)


def _iterate_outcomes(
    proposals: list[dict[str, Any]],
    left: list[dict[str, Any]],
    refused: set[int | None],
    *,
    linked: bool,
    still_px: float,
) -> Iterator[dict[str, Any]]:
    """The rows of one image and annotator; None in `refused` may stand for any proposal."""
    if linked:
        place = {row["proposal"]: number for number, row in enumerate(left) if row["proposal"] is not None}
        partner = {n: place[row["box"]] for n, row in enumerate(proposals) if row["box"] in place}
    else:
        partner = {
            a: b for a, b, _ in match_annotators(_stack_corners(proposals), _stack_corners(left), LEAST_IOU)
        }
    for number, row in enumerate(proposals):
        was = None if row["label"] == UNNAMED else row["label"]
        record = {"proposal": row["box"], "was": was, "score": row["score"], "relabelled": False}
        if number not in partner:
            yield {**record, "fate": "refused" if refused & {None, row["box"]} else "deleted"}
            continue
        box = left[partner[number]]
        before, after = _stack_corners([row]), _stack_corners([box])
        moved = float(np.abs(before - after).max())
        yield {
            **record,
            "box": box["row"],
            "fate": "kept" if moved <= still_px else "moved",
            "became": box["label"],
            "relabelled": box["label"] != was,
            "iou": float(iou(before, after)[0, 0]),
            "max_edge_px": moved,
        }
    for number in sorted(set(range(len(left))) - set(partner.values())):
        box = left[number]
        yield {"box": box["row"], "fate": "added", "became": box["label"], "relabelled": False}


_FEWEST, _DAY_S, _LEAST_LOOK_S = 20, 86_400, 1e-3


@dataclass(frozen=True)
class Labour:
    """Seconds of one person's work; assumptions, but for drawing, to be replaced by what one measures.

    Args:
        look_s: to look an image over for corner cases.
        judge_s: to keep or delete a proposal.
        correct_s: to bring a proposal's edges to the object.
        draw_s: to draw a box and name it: 35 s is what one box of ILSVRC took.

    Source: of `draw_s`, Papadopoulos et al., ICCV 2017 (abstract), after Su et al., 2012.
    """

    look_s: float = 10.0
    judge_s: float = 2.0
    correct_s: float = 10.0
    draw_s: float = 35.0

    def __post_init__(self) -> None:
        every = (self.look_s, self.judge_s, self.correct_s, self.draw_s)
        if not all(0 <= value <= _DAY_S for value in every) or self.look_s < _LEAST_LOOK_S:
            raise UsageError("seconds of work lie from 0 to a day, those of a look from a thousandth on")


@dataclass(frozen=True, eq=False)
class Worth:
    """Objects and proposals of each image, in the order of a list.

    Args:
        video: (n,) of each image.
        proposals: (n,) how many it has.
        hits: (n,) how many of them meet a corner case, one to one.
        cases: (n,) corner cases in view.
        objects: (n,) lists of the objects in view, numbered over all; a track is one object.
    """

    video: npt.NDArray[np.str_]
    proposals: Ints
    hits: Ints
    cases: Ints
    objects: list[list[int]]

    def __len__(self) -> int:
        return len(self.video)


def fit_cost(table: pl.DataFrame, looked: pl.DataFrame) -> tuple[Labour, int] | None:
    """The seconds that explain the times of annotators best, and how many images they rest on.

    Non-negative least squares on images with a time: a look each, and so much for every proposal, every one
    that was moved, and every box that was added. A time is what the tool says, breaks included.

    Args:
        table: what `fates.fates` gave.
        looked: who looked at what, with `seconds`.

    Returns:
        None with fewer than 20 such images, or where work of a kind never happened or is never apart.
    """
    from scipy.optimize import nnls

    key = ["video", "frame", "annotator"]
    timed = looked.filter(~pl.col("skipped") & pl.col("seconds").is_not_null())
    done = table.group_by(key).agg(
        proposals=pl.col("proposal").is_not_null().sum(),
        moved=(pl.col("fate") == "moved").sum(),
        added=(pl.col("fate") == "added").sum(),
    )
    rows = timed.join(done, on=key, how="left").with_columns(
        pl.col("proposals", "moved", "added").fill_null(0)
    )
    work = rows.select(pl.lit(1.0), "proposals", "moved", "added").to_numpy().astype(np.float64)
    # Below full rank no seconds can be told from each other: any split of them would fit as well.
    if len(work) < _FEWEST or np.linalg.matrix_rank(work) < work.shape[1]:
        return None
    # Without negative coefficients: no work takes less than no time, as plain least squares may find.
    look, judge, correct, draw = nnls(work, rows["seconds"].to_numpy().astype(np.float64))[0].tolist()
    return (Labour(look, judge, correct, draw), len(work)) if 0 < look < _DAY_S else None


def estimate_cost(listed: pl.DataFrame, labour: Labour, most: int | None = None) -> dict[str, float]:
    """Expected cost of a list where there is no ground truth: seconds of looking and judging alone.

    Args:
        listed: what `ranked` gave.
        labour: the seconds.
        most: how many images are considered (default: those with a proposal).
    """
    with_one = int((listed["proposals"] > 0).sum())
    count = min(len(listed), with_one if most is None else most)
    chosen = listed.head(count)
    seconds = count * labour.look_s + float(chosen["proposals"].sum()) * labour.judge_s
    everything = len(listed) * labour.look_s
    return {
        "pictures": len(listed),
        "listed": count,
        "proposals": int(chosen["proposals"].sum()),
        "seconds": seconds,
        "seconds_of_all": everything,
        "saved": 1.0 - seconds / everything,
    }


def measure_worth(listed: pl.DataFrame, predictions: Predictions, truth: Scenes) -> Worth:
    """Count objects and proposals of the images of a list.

    Args:
        listed: video and frame of each image, in the order of the list.
        predictions: proposals.
        truth: with `boxes.corner_case`; a box without a track is an object of its own.

    Raises:
        InputError: if the ground truth does not say what is a corner case, or has none in these images.
    """
    if "corner_case" not in truth.boxes.columns:
        raise InputError("the truth does not say which boxes are corner cases")
    true = truth.boxes.filter(pl.col("corner_case").fill_null(value=False))
    true = true.with_columns(pl.col("video").cast(pl.String))
    if "tube" not in true.columns:
        true = true.with_columns(tube=pl.lit(None, pl.Int64))
    true = true.with_columns(object=pl.coalesce(pl.col("tube"), -1 - pl.col("box")))
    held = true.partition_by("video", "frame", as_dict=True)
    proposed = predictions.boxes.with_columns(pl.col("video").cast(pl.String)).partition_by(
        "video", "frame", as_dict=True
    )
    numbers: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []
    objects: list[list[int]] = []
    for place in listed.select("video", "frame").iter_rows():
        here, predicted = held.get(place), proposed.get(place)
        hits = len(match_annotators(_corners(here), _corners(predicted), LEAST_IOU))
        rows.append(
            (0 if predicted is None else len(predicted), hits, 0 if here is None else len(here)),
        )
        seen = [] if here is None else here["object"].to_list()
        objects.append([numbers.setdefault(each, len(numbers)) for each in seen])
    if not numbers:
        raise InputError("no image of the list holds a corner case: nothing can be found in them")
    proposals, hits_of, cases = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Worth(listed["video"].to_numpy().astype(np.str_), proposals, hits_of, cases, objects)


def _corners(rows: pl.DataFrame | None) -> Floats:
    if rows is None:
        return np.zeros((0, 4))
    return rows.select(CORNERS).to_numpy().astype(np.float64)


Unit = Literal["objects", "pictures"]
SHARES = (0.5, 0.8, 0.9, 0.95, 1.0)
ORDERS = ("list", "random", "spread", "oracle")
"""A list, and what it is compared with; `compute_discovery_curve` says what they are."""
_BY_CHANCE = ("random", "spread")
_SCHEMA: dict[str, Any] = {
    "found": pl.Float64,
    "order": pl.String,
    "looked_share": pl.Float64,
    "looked_low": pl.Float64,
    "looked_high": pl.Float64,
    "seconds": pl.Float64,
    "saved": pl.Float64,
    "saved_low": pl.Float64,
    "saved_high": pl.Float64,
    "caution": pl.String,
}
_RANDOM_ORDERS = 64


@dataclass(frozen=True, eq=False)
class Curve:
    """Share of images considered against share of corner cases found.

    Args:
        looked: (k,) share of all images.
        found: order to (k,) share found; one of `ORDERS`.
        low: order to (k,) lower ends over videos, empty without resamples.
        high: the same, upper ends.
        table: for some shares found: what has to be looked at, by each order, the seconds that takes, and
            what is saved against looking at all images without proposals; ends of intervals over videos.
        unit: what is found: objects or images.
        totals: images, those with a corner case, objects, proposals, seconds of looking at all.
    """

    looked: Floats
    found: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    table: pl.DataFrame
    unit: Unit
    totals: dict[str, float]


def compute_discovery_curve(
    worth: Worth,
    labour: Labour | None = None,
    *,
    unit: Unit = "objects",
    resamples: int = 0,
    seed: int = 0,
    points: int = 101,
) -> Curve:
    """Compute the share of objects found over the images viewed, for a list, random order and the best order.

    An object is found if it is in view in an image that was looked at: a person who looks sees it, proposal
    or not. `random` is the mean of 64 orders; `spread` too, of orders that take one image of every video in
    turn; `oracle` takes the image with the most new objects each time.

    Args:
        worth: of the images, in the order of the list.
        labour: seconds of work.
        unit: `objects`, or `pictures` with a corner case.
        resamples: bootstrap resamples of videos; 0 gives no intervals.
        seed: of the resamples and of chance.
        points: of the curves.
    """
    labour = labour or Labour()
    rng = np.random.default_rng(seed)
    orders: dict[str, Sequence[Ints]] = {
        "list": [np.arange(len(worth))],
        "random": [rng.permutation(len(worth)) for _ in range(_RANDOM_ORDERS)],
        "spread": [_spread(worth, rng) for _ in range(_RANDOM_ORDERS)],
        "oracle": [_best_order(worth, unit)],
    }
    ways = {
        name: [_way(worth, order, unit, labour, shown=name not in _BY_CHANCE) for order in held]
        for name, held in orders.items()
    }
    looked = np.linspace(0, 1, points)
    one = np.ones((1, len(worth)))
    everything = labour.look_s + labour.draw_s * worth.cases.astype(np.float64)
    drawn = _resample_orders(
        {name: ways[name][0] for name in ("list", "oracle")}, worth, everything, looked, resamples, seed
    )
    found = {
        name: np.mean([way.found_at(one, looked)[0] for way in held], axis=0) for name, held in ways.items()
    }
    low, high = {}, {}
    for name, values in drawn.items():
        low[name], high[name] = np.nanpercentile(values.found, (2.5, 97.5), axis=0)
    totals = {
        "pictures": float(len(worth)),
        "with_a_case": float((worth.cases > 0).sum()),
        "objects": float(len({each for held in worth.objects for each in held})),
        "proposals": float(worth.proposals.sum()),
        "hits": float(worth.hits.sum()),
        "cases": float(worth.cases.sum()),
        "seconds_of_all": float(everything.sum()),
    }
    return Curve(looked, found, low, high, _table(ways, drawn, float(everything.sum()), worth), unit, totals)


@dataclass(frozen=True, eq=False)
class _Way:
    """One order of looking.

    Args:
        order: (n,) rows.
        gains: (n,) what each image adds, in the order.
        costs: (n,) the seconds of each, in the order.
    """

    order: Ints
    gains: Floats
    costs: Floats

    def found_at(self, weights: Floats, looked: Floats) -> Floats:
        """(resamples, k) share found after a share of the images.

        Args:
            weights: (resamples, n) how often each image is there.
            looked: (k,) shares.
        """
        counted = weights[:, self.order]
        spent, got = _running(counted), _running(counted * self.gains)
        rows = [
            np.interp(looked * one[-1], one, other) / other[-1] if other[-1] else looked * np.nan
            for one, other in zip(spent, got, strict=True)
        ]
        return np.array(rows)

    def reached(self, weights: Floats) -> tuple[Floats, Floats]:
        """(resamples, shares) of images considered until a share is found, and the seconds that it took.

        Args:
            weights: (resamples, n) how often each image is there.
        """
        counted = weights[:, self.order]
        got, spent = (np.cumsum(counted * values, axis=1) for values in (self.gains, self.costs))
        looked = np.cumsum(counted, axis=1)
        share = np.full((len(weights), len(SHARES)), np.nan)
        seconds = share.copy()
        for draw in range(len(weights)):
            whole = got[draw, -1]
            if whole:
                # A product that rounds to a hair above a whole number must not ask for one image more.
                places = np.searchsorted(got[draw], np.array(SHARES) * whole - 1e-9)
                share[draw] = looked[draw, places] / looked[draw, -1]
                seconds[draw] = spent[draw, places]
        return share, seconds


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Values of resamples: (resamples, k) share found, (resamples, shares) viewed, (resamples, shares) saved."""

    found: Floats
    looked: Floats
    saved: Floats


def _resample_orders(
    ways: dict[str, _Way], worth: Worth, everything: Floats, looked: Floats, resamples: int, seed: int
) -> dict[str, _Drawn]:
    """Each order on the same resamples of videos; nothing below two videos.

    Places in a list jump from image to image, which leaving one video out cannot show.
    """
    units = Units.of(worth.video, PercentileResamples(resamples), seed) if resamples else None
    parts: dict[str, list[_Drawn]] = {name: [] for name in ways}
    for block in units.weights() if units else ():
        weights = block.astype(np.float64)
        for name, way in ways.items():
            share, seconds = way.reached(weights)
            saved = 1.0 - seconds / (weights @ everything)[:, None]
            parts[name].append(_Drawn(way.found_at(weights, looked), share, saved))
    return {
        name: _Drawn(
            *(
                np.concatenate([getattr(part, field) for part in held])
                for field in ("found", "looked", "saved")
            )
        )
        for name, held in parts.items()
        if held
    }


def _way(worth: Worth, order: Ints, unit: Unit, labour: Labour, *, shown: bool) -> _Way:
    """An order with what each image adds and costs; without proposals shown all is drawn."""
    work = labour.look_s + labour.draw_s * worth.cases.astype(np.float64)
    if shown:
        # A box that is proposed need not be drawn, only corrected.
        work += labour.judge_s * worth.proposals + (labour.correct_s - labour.draw_s) * worth.hits
    return _Way(order, _gains(worth, order, unit), work[order])


def _gains(worth: Worth, order: Ints, unit: Unit) -> Floats:
    """(n,) what each image adds when they are considered in an order."""
    if unit == "pictures":
        found: Floats = (worth.cases[order] > 0).astype(np.float64)
        return found
    seen: set[int] = set()
    gains = np.zeros(len(order))
    for place, row in enumerate(order.tolist()):
        new = set(worth.objects[row]) - seen
        gains[place] = len(new)
        seen |= new
    return gains


def _spread(worth: Worth, rng: np.random.Generator) -> Ints:
    """One image of every video in turn, each by chance."""
    order = rng.permutation(len(worth))
    _, video = np.unique(worth.video[order], return_inverse=True)
    turn = np.zeros(len(order), dtype=np.int64)
    for number in range(int(video.max()) + 1):
        own = np.flatnonzero(video == number)
        turn[own] = np.arange(len(own))
    # Stable: within a turn, the videos keep the order that chance gave them.
    found: Ints = order[np.argsort(turn, kind="stable")]
    return found


def _best_order(worth: Worth, unit: Unit) -> Ints:
    """The order that takes the image with the most new objects each time, then that with the most boxes."""
    if unit == "pictures":
        # Ties as they come, so that the order is the same on every machine.
        return np.argsort(-(worth.cases > 0).astype(np.int64), kind="stable")
    seen: set[int] = set()
    heap = [(-len(set(held)), row) for row, held in enumerate(worth.objects)]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        before, row = heapq.heappop(heap)
        now = -len(set(worth.objects[row]) - seen)
        if now != before:
            heapq.heappush(heap, (now, row))
            continue
        order.append(row)
        seen |= set(worth.objects[row])
    return np.array(order, dtype=np.int64)


def _running(values: Floats) -> Floats:
    """(resamples, n + 1) sums up to each place."""
    found: Floats = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    return found


def _table(
    ways: dict[str, list[_Way]], drawn: dict[str, _Drawn], everything: float, worth: Worth
) -> pl.DataFrame:
    caution = FEW if drawn and len(np.unique(worth.video)) < ENOUGH else None
    one = np.ones((1, len(ways["list"][0].order)))
    rows: list[tuple[Any, ...]] = []
    record: dict[str, tuple[Floats, Floats]] = {}
    for name, held in ways.items():
        parts = [way.reached(one) for way in held]
        share, seconds = (np.mean([part[k][0] for part in parts], axis=0) for k in (0, 1))
        record[name] = (share, seconds)
    for number, share_found in enumerate(SHARES):
        for name in ORDERS:
            looks, saves = (
                (
                    compute_percentile_interval(values[:, number])
                    for values in (drawn[name].looked, drawn[name].saved)
                )
                if name in drawn
                else (None, None)
            )
            looked, spent = (float(values[number]) for values in record[name])
            saved = 1.0 - spent / everything
            nothing = (None, None)
            rows.append(
                (share_found, name, looked, *(looks or nothing), spent, saved, *(saves or nothing), caution)
            )
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")
