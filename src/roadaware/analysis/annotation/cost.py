"""Annotation cost: seconds of looking, judging, correcting and drawing for a list of images; and the share of images
viewed until a share of objects is found, for a list, random order and the best order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.annotation.proposal_outcomes import LEAST_IOU, match_annotators
from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.cautions import ENOUGH, FEW
from roadaware.statistics.intervals import PercentileDraws, Units, compute_percentile_interval

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
    draws: int = 0,
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
        draws: bootstrap resamples of videos; 0 gives no intervals.
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
        {name: ways[name][0] for name in ("list", "oracle")}, worth, everything, looked, draws, seed
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
        """(draws, k) share found after a share of the images.

        Args:
            weights: (draws, n) how often each image is there.
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
        """(draws, shares) of images considered until a share is found, and the seconds that it took.

        Args:
            weights: (draws, n) how often each image is there.
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
    """Values of resamples: (draws, k) share found, (draws, shares) viewed, (draws, shares) saved."""

    found: Floats
    looked: Floats
    saved: Floats


def _resample_orders(
    ways: dict[str, _Way], worth: Worth, everything: Floats, looked: Floats, draws: int, seed: int
) -> dict[str, _Drawn]:
    """Each order on the same resamples of videos; nothing below two videos.

    Places in a list jump from image to image, which leaving one video out cannot show.
    """
    units = Units.of(worth.video, PercentileDraws(draws), seed) if draws else None
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
    """(draws, n + 1) sums up to each place."""
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
