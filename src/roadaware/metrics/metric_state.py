"""States of metrics that merge, resample and are cut into slices, and the results with intervals that they give."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints32
from roadaware.config import from_dict, to_dict, to_tuples
from roadaware.errors import InputError, UsageError
from roadaware.io.parallel import HERE, WorkerPool, Workers
from roadaware.io.parquet import read_parquet
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import TableSet
from roadaware.statistics.intervals import Interval, Scale, Units

SUMMARY: dict[str, Any] = {
    "group": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "valid": pl.Boolean,
    "n": pl.Int64,
    "reason": pl.String,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "valid_draws_pedestrian": pl.Int64,
    "valid_draws_video": pl.Int64,
    "units_pedestrian": pl.Int64,
    "units_video": pl.Int64,
    "caution_pedestrian": pl.String,
    "caution_video": pl.String,
}


def build_interval_columns(found: Interval | None, unit: str) -> dict[str, Any]:
    """The columns of an interval over units of a kind: its ends, the number of units, and a caution.

    Args:
        found: None where nothing was drawn; all columns are null then.
        unit: `pedestrian`, `video`, ...
    """
    return {
        f"low_{unit}": found.low if found else None,
        f"high_{unit}": found.high if found else None,
        f"valid_draws_{unit}": found.n_valid if found else None,
        f"units_{unit}": found.n_units if found else None,
        f"caution_{unit}": found.caution if found else None,
    }


_SHOWN = 4


@dataclass(frozen=True, eq=False, repr=False)
class MetricResult:
    """The metrics of a set and of its groups.

    Args:
        summary: one row per group and metric: `group` (null for the whole set), `metric`, `value` (null
            where undefined), `valid`, `n` (samples or pedestrians it is made from), `reason` (why it is
            undefined), the ends of the 95 % intervals over pedestrians and over videos (null where none can
            be given), in how many draws the metric was defined, how many units there are, and why an
            interval is to be taken with caution (null where it is not).
        counts: one row per group and true class: `group`, `class`, `samples`, `pedestrians`.
        config: the configuration that the values were made with, as plain data.
        notes: what else happened, in words.
        makers: level of detail to what makes its rows.
    """

    summary: pl.DataFrame
    counts: pl.DataFrame
    config: dict[str, Any]
    notes: tuple[str, ...] = ()
    makers: dict[str, Callable[[], pl.DataFrame]] = field(default_factory=dict)

    def instances(self, level: str | None = None) -> pl.DataFrame:
        """The rows behind the summary, built on demand: predictions and scores of each item.

        Args:
            level: which rows, one of `levels` (default: the first of them).

        Raises:
            UsageError: if there is no such level.
        """
        if level is None and self.makers:
            level = self.levels[0]
        if level not in self.makers:
            raise UsageError(f"no instances of '{level}' here; there are {', '.join(self.levels) or 'none'}")
        return self.makers[level]()

    def __repr__(self) -> str:
        whole = self.summary.filter(pl.col("group").is_null())
        known = whole.filter("valid").select("metric", pl.col("value").round(4)).rows()
        shown = ", ".join(f"{metric} {value}" for metric, value in known[:_SHOWN])
        groups = f", {len(self.groups)} groups" if self.groups else ""
        return f"MetricResult({len(known)} of {len(whole)} metrics defined{groups}: {shown}, ...)"

    @property
    def levels(self) -> tuple[str, ...]:
        """The kinds of rows that `instances` makes."""
        return tuple(self.makers)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups with a summary of their own, in the order of the summary."""
        return tuple(self.summary["group"].drop_nulls().unique(maintain_order=True).to_list())

    def of_group(self, group: str | None = None) -> pl.DataFrame:
        """The summary of one group, None for the whole set.

        Raises:
            UsageError: if there is no such group.
        """
        rows = self.summary.filter(pl.col("group").eq_missing(pl.lit(group, dtype=pl.String)))
        if rows.is_empty():
            raise UsageError(f"no group '{group}'; there are {', '.join(self.groups) or 'none'}")
        return rows

    def row(self, metric: str, group: str | None = None) -> dict[str, Any]:
        """One row of the summary.

        Raises:
            UsageError: if the metric or the group is not there.
        """
        rows = self.of_group(group)
        found = rows.filter(pl.col("metric") == metric)
        if found.is_empty():
            raise UsageError(f"no metric '{metric}'; there are {', '.join(rows['metric'])}")
        return found.row(0, named=True)

    def value(self, metric: str, group: str | None = None) -> float | None:
        """The value of a metric, None where undefined.

        Raises:
            UsageError: if the metric or the group is not there.
        """
        value: float | None = self.row(metric, group)["value"]
        return value

    def values(self, group: str | None = None) -> dict[str, float | None]:
        """Every metric's value by name, None where undefined.

        Raises:
            UsageError: if there is no such group.
        """
        rows = self.of_group(group)
        return dict(zip(rows["metric"].to_list(), rows["value"].to_list(), strict=True))


SCENE_SUMMARY: dict[str, Any] = {**SUMMARY, "label": pl.String}
SCENE_COUNTS: dict[str, Any] = {"group": pl.String, "items": pl.Int64, "videos": pl.Int64}
VARIANTS = ("_per_image", "_pooled")
"""Ends of metrics that are a second reading of another."""
# Weightings at a time: states hold a number for each of them and each item.
_AT_ONCE = 64
_TABLE = "table:"
_DENSITIES = ((0.5, "0"), (1.5, "1"), (4.5, "2-4"), (9.5, "5-9"))


@dataclass(frozen=True, eq=False)
class Measured:
    """One metric of a set under several weightings of its videos.

    Args:
        metric: its name, such as `map@0.5`.
        values: (resamples,) NaN where undefined.
        n: what it is made from: classes, relations, sentences, sounds.
        label: the class or kind it is of; None for the whole.
        reason: why it may be undefined.
        scale: what kind of number it is, for its interval.
        holding: videos that hold anything of `label`; None where they are not counted, at most `n`.
    """

    metric: str
    values: Floats
    n: int
    label: str | None = None
    reason: str = "there is no truth"
    scale: Scale = "share"
    holding: int | None = None


@dataclass(frozen=True, eq=False)
class Judged(ABC):
    """Mergeable metric state as arrays: two parts merge to the state of the whole, and any part can be selected.

    A subclass is a frozen dataclass whose fields are arrays, tables, tuples of text or numbers, and one
    `config` of the class `config_type`.

    Args:
        items: one row per unit that slices are made of (a frame, a video, a sentence, a sound), with `video`
            and the columns it can be sliced by.
    """

    config_type: ClassVar[type]

    items: pl.DataFrame

    @property
    def videos(self) -> tuple[str, ...]:
        """The videos that have items, in order of first appearance: the columns of `measured`'s weights."""
        return tuple(self.items["video"].cast(pl.String).unique(maintain_order=True).to_list())

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """The state of both parts together.

        Raises:
            InputError: if they were judged by different configurations or share a video.
        """

    @abstractmethod
    def only(self, kept: Bools) -> Self:
        """The state of some of the items.

        Args:
            kept: (items,) which stay.
        """

    @abstractmethod
    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """Every metric: first those of the whole, then those of each class.

        Args:
            weights: (resamples, V) how often each of `videos` counts.
        """

    def packed(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        """The state as named arrays and plain facts, for a file."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        facts: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                arrays[each.name] = value
            elif isinstance(value, pl.DataFrame):
                stream = io.BytesIO()
                value.write_parquet(stream)
                arrays[f"{_TABLE}{each.name}"] = np.frombuffer(stream.getvalue(), dtype=np.uint8)
            else:
                facts[each.name] = to_dict(value) if isinstance(value, self.config_type) else list(value)
        return arrays, facts

    @classmethod
    def unpacked(cls, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """The state that was packed.

        Raises:
            InputError: if a part is missing or foreign.
        """
        values: dict[str, Any] = {}
        for name, array in arrays.items():
            if name.startswith(_TABLE):
                values[name.removeprefix(_TABLE)] = read_parquet(array.tobytes())
            else:
                values[name] = array
        for name, value in facts.items():
            values[name] = from_dict(cls.config_type, value) if isinstance(value, dict) else to_tuples(value)
        asked = {each.name for each in fields(cls)}
        if set(values) != asked:
            raise InputError(f"{cls.__name__} holds {sorted(asked)}, the file {sorted(values)}")
        return cls(**values)


State = TypeVar("State", bound=Judged)


@dataclass(frozen=True, eq=False, repr=False)
class SceneResult(MetricResult):
    """The metrics of a task on scenes; rows of `summary` with a `label` are of one class: `metric:label`.

    Args:
        state: what they are made from.
        left_out: what of predictions and ground truth was not judged, in words, to how often.
        baselines: name of a trivial answer (whole image, centre, ...) to its metrics.
        facts: what belongs beside every number, JSON-ready: frames judged, capacity, ...
    """

    state: Judged | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    baselines: dict[str, dict[str, float | None]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def whole(self) -> list[dict[str, Any]]:
        """The rows of the summary that are of the whole set and of no class."""
        return [row for row in self.of_group().iter_rows(named=True) if row["label"] is None]

    def classes(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Class to its metrics to their rows of the summary, of the whole set."""
        held: dict[str, dict[str, dict[str, Any]]] = {}
        for row in self.of_group().iter_rows(named=True):
            if row["label"] is not None:
                metric = row["metric"].removesuffix(f":{row['label']}")
                held.setdefault(row["label"], {})[metric] = row
        return held


def build_result(
    state: Judged,
    config: Any,
    *,
    by: Sequence[str] = (),
    resamples: int = 0,
    seed: int = 0,
    notes: tuple[str, ...] = (),
    makers: Mapping[str, Callable[[], pl.DataFrame]] | None = None,
    left_out: Mapping[str, int] | None = None,
    baselines: Mapping[str, Mapping[str, float | None]] | None = None,
    facts: Mapping[str, Any] | None = None,
    workers: Workers = HERE,
) -> SceneResult:
    """The result of a state: its metrics and those of every slice, with intervals over videos.

    Args:
        state: what was judged.
        config: how.
        by: columns of `state.items`; each of their values is a group, named `column: value`. A column
            without any value makes a note.
        resamples: most weightings of videos for the intervals; 0 gives none, as fewer than two videos do.
        seed: of the weightings.
        notes: what else happened, in words.
        makers: level of detail to what makes its rows.
        left_out: what was not judged, in words, to how often.
        baselines: name of a trivial answer to its metrics.
        facts: what belongs beside every number.
        workers: where the weightings are worked on, and by how many at a time; values do not depend on it.

    Raises:
        UsageError: if `resamples` is negative, the items have no column to slice by, or workers cannot be started.
    """
    if resamples < 0:
        raise UsageError(f"resamples should be 0 or more, not {resamples}")
    left = {what: int(n) for what, n in (left_out or {}).items() if n}
    groups = split_slices(state, by)
    unknown = [c for c in by if not state.items[c].count()]
    notes = (*notes, *(f"nothing is known of {c}: there are no slices by it" for c in unknown))
    with closing(WorkerPool(workers)) as crew:
        pool = None if workers == HERE else crew
        rows = list(_rows(None, state, resamples, seed, pool))
        for name, kept in groups.items():
            rows += _rows(name, state.only(kept), resamples, seed, pool)
    counts: list[dict[str, Any]] = [{"group": None, "items": len(state.items), "videos": len(state.videos)}]
    for name, kept in groups.items():
        part = state.items.filter(pl.Series(kept))
        counts.append({"group": name, "items": len(part), "videos": part["video"].n_unique()})
    return SceneResult(
        summary=pl.DataFrame(rows, schema=SCENE_SUMMARY),
        counts=pl.DataFrame(counts, schema=SCENE_COUNTS),
        config=to_dict(config),
        notes=(*(f"{n:,} {what} were left out" for what, n in left.items()), *notes),
        makers=dict(makers or {}),
        state=state,
        left_out=left,
        baselines={name: dict(values) for name, values in (baselines or {}).items()},
        facts=dict(facts or {}),
    )


def split_slices(state: Judged, by: Sequence[str]) -> dict[str, Bools]:
    """Name of every slice, `column: value`, to the (items,) that are in it; unknown values are in none.

    Values stand in the order of the numbers that they begin with, the others after them as text.

    Raises:
        UsageError: if the items have no such column.
    """
    groups: dict[str, Bools] = {}
    known = [c for c in state.items.columns if c != "video"]
    for column in by:
        if column not in known:
            raise UsageError(
                f"nothing to slice by in '{column}'; there are {', '.join(known) or 'no columns'}"
            )
        values = state.items[column].cast(pl.String)
        for value in sorted(values.drop_nulls().unique().to_list(), key=_in_order):
            groups[f"{column}: {value}"] = (values == value).fill_null(False).to_numpy()
    return groups


def resample_metrics(
    state: State, resamples: int, seed: int, pool: WorkerPool | None = None
) -> dict[tuple[str, str | None], Floats]:
    """Metric and label to its (resamples,) values under the weightings of the videos that intervals are made of.

    Equal numbers of videos, resamples and seeds give equal weightings: two models can be compared on them.

    Args:
        state: with at least two videos.
        resamples: most weightings; see `statistics.intervals.Units`.
        seed: of the weightings.
        pool: who works on them; this process where None.
    """
    return resample_over_videos(state, state.videos, Units(len(state.videos), resamples, seed), pool)


def resample_over_videos(
    state: Judged, videos: tuple[str, ...], units: Units, pool: WorkerPool | None = None
) -> dict[tuple[str, str | None], Floats]:
    """The same under weightings of more videos than the state has.

    Args:
        state: what was judged.
        videos: the units; all of the state's are among them.
        units: their weightings.
        pool: who works on them; this process where None.
    """
    place = {video: k for k, video in enumerate(videos)}
    columns = [place[video] for video in state.videos]
    parts: dict[tuple[str, str | None], list[Floats]] = {}
    blocks = (np.ascontiguousarray(weights[:, columns]) for weights in units.weights(_AT_ONCE))
    work = partial(_measure, state)
    if pool is None:
        found = [work(block) for block in blocks]
    else:
        with closing(pool.map(work, list(blocks), in_order=True)) as results:
            found = [each.require("resamples") for each in results]
    for measured in found:
        for key, values in measured:
            parts.setdefault(key, []).append(values)
    return {key: np.concatenate(values) for key, values in parts.items()}


def _measure(state: Judged, weights: Ints32) -> list[tuple[tuple[str, str | None], Floats]]:
    return [((each.metric, each.label), each.values) for each in state.measured(weights)]


def compute_values(state: Judged) -> dict[str, float | None]:
    """The metrics of the whole by name, None where undefined."""
    ones = np.ones((1, len(state.videos)), dtype=np.int32)
    return {
        each.metric: None if np.isnan(each.values[0]) else float(each.values[0])
        for each in state.measured(ones)
        if each.label is None
    }


def crowd_density(boxes: pl.Expr) -> pl.Expr:
    """Density of the images: `0`, `1`, `2-4`, `5-9` or `10+`; null where it is not known.

    Args:
        boxes: ground-truth boxes in an image, or their mean over images, which is rounded up from the half on.
    """
    density = pl.lit("10+")
    for end, name in reversed(_DENSITIES):
        density = pl.when(boxes < end).then(pl.lit(name)).otherwise(density)
    return pl.when(boxes.is_not_null()).then(density)


_SHARES, _LEAST_IMAGE_PX = 2.0, 32
"""Corners up to it may be shares of an image, beyond its edge, too; no image with boxes of its own is so small."""


def refuse_other_units(predictions: TableSet, scenes: TableSet) -> None:
    """Refuse predicted boxes in pixels where those of the ground truth are shares of the image, and the other way round.

    Args:
        predictions: with `boxes`.
        scenes: the ground truth, whose notes say `unit_pictures`, or whose videos have a size.

    Raises:
        InputError: if they are; says how to bring both to one unit.
    """
    farthest = predictions.boxes.select(pl.max_horizontal(*CORNERS)).to_series()
    if farthest.is_empty():
        return
    if scenes.meta.notes.get("unit_pictures"):
        corners = farthest.to_numpy()
        if float(np.median(corners)) > _SHARES:
            raise InputError(
                f"predicted boxes are in pixels (up to {float(np.max(corners)):g}), and those of the truth are shares of "
                "the image",
                hint="bring the truth to pixels and frames of its films, and judge by that: "
                "roadaware read TRUTH --media FILMS -o TABLES",
            )
        return
    sizes = scenes.videos.select(pl.col("^(width|height)_px$")).min()
    small = [side for side in sizes.row(0) if side is not None] if sizes.width else []
    if small and min(small) >= _LEAST_IMAGE_PX and float(np.max(farthest.to_numpy())) <= _SHARES:
        raise InputError(
            "predicted boxes look like shares of the image (none reaches beyond 2), and those of the truth are in pixels",
            hint="multiply x by the width and y by the height of the image",
        )


def as_json(result: SceneResult) -> dict[str, Any]:
    """The metrics as fractions in [0, 1], None where undefined.

    Returns:
        {"summary": {metric: value}, "per_class": {label: {metric: value}}, "intervals": {metric: [low,
        high]}, "cautions": {metric: why its interval may not hold}, "groups": {group: {metric: value}},
        "baselines": {name: {metric: value}}, "left_out": {what: n}, "facts": {...}, "config": {...}}.
    """
    found: dict[str, Any] = {"summary": {}, "intervals": {}, "cautions": {}, "groups": {}}
    found["per_class"] = {
        label: {metric: row["value"] for metric, row in rows.items()}
        for label, rows in result.classes().items()
    }
    for row in result.whole():
        found["summary"][row["metric"]] = row["value"]
        if row["low_video"] is not None:
            found["intervals"][row["metric"]] = [row["low_video"], row["high_video"]]
            if row["caution_video"] is not None:
                found["cautions"][row["metric"]] = row["caution_video"]
    for group in result.groups:
        rows = result.of_group(group).filter(pl.col("label").is_null())
        found["groups"][group] = dict(zip(rows["metric"], rows["value"], strict=True))
    return {
        **found,
        "baselines": result.baselines,
        "left_out": result.left_out,
        "facts": result.facts,
        "config": result.config,
    }


def _rows(
    group: str | None, state: Judged, resamples: int, seed: int, pool: WorkerPool | None
) -> Iterator[dict[str, Any]]:
    """The rows of a summary, in the columns of SCENE_SUMMARY."""
    n_videos = len(state.videos)
    units = Units(n_videos, resamples, seed)
    in_resamples = resample_metrics(state, resamples, seed, pool) if resamples and n_videos > 1 else {}
    for each in state.measured(np.ones((1, n_videos), dtype=np.int32)):
        value = float(each.values[0])
        valid = not np.isnan(value)
        values = in_resamples.get((each.metric, each.label)) if valid else None
        interval = None
        if values is not None:
            # Videos without anything of a class say nothing of it.
            holding = each.n if each.holding is None and each.label is not None else each.holding
            interval = units.interval(value, values, each.scale, holding=holding)
        yield {
            **dict.fromkeys(SCENE_SUMMARY),
            "group": group,
            "metric": each.metric if each.label is None else f"{each.metric}:{each.label}",
            "label": each.label,
            "value": value if valid else None,
            "valid": valid,
            "n": each.n,
            "reason": None if valid else each.reason,
            **build_interval_columns(interval, "video"),
        }


def _in_order(value: str) -> tuple[bool, float, str]:
    """What sorts values by the number that they begin with."""
    number = re.match(r"\d+(?:\.\d+)?", value)
    return number is None, float(number[0]) if number else 0.0, value


# A state of one row of numbers per item: every metric is a mean over items, so that a draw is a product.


@dataclass(frozen=True, eq=False)
class ItemScores(Judged):
    """Items and the scores of each.

    Args:
        items: one row each, with `video` and the column that `class_column` names.
        values: (items, metrics) NaN where undefined; such items are left out of that mean.
        config: how they were judged.
    """

    class_column: ClassVar[str]

    items: pl.DataFrame
    values: Floats
    config: Any

    @property
    @abstractmethod
    def metrics(self) -> tuple[str, ...]:
        """The names of the columns of `values`."""

    @property
    def reason(self) -> str:
        """Why a metric may be undefined."""
        return "no item defines it"

    def merge(self, other: Self) -> Self:
        """Both parts' items; see `Judged.merge`."""
        if self.config != other.config:
            raise InputError("the parts were judged by different configurations", hint="judge both by one")
        shared = set(self.videos) & set(other.videos)
        if shared:
            raise InputError(f"both parts hold the videos {sorted(shared)[:5]}", hint="split by whole videos")
        items = pl.concat([self.items, other.items], how="vertical_relaxed")
        return replace(self, items=items, values=np.concatenate([self.values, other.values]))

    def only(self, kept: Bools) -> Self:
        """Some of the items; see `Judged.only`."""
        return replace(self, items=self.items.filter(pl.Series(kept)), values=self.values[kept])

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """Every metric: the weighted mean over items, then the same over those of each class."""
        classes = self.items[self.class_column].cast(pl.String)
        names = sorted(classes.drop_nulls().unique().to_list())
        number = classes.replace_strict(names, range(len(names)), default=len(names), return_dtype=pl.Int64)
        order = np.argsort(number.to_numpy(), kind="stable")
        videos = self._video_numbers()[order]
        counted = weights[:, videos].astype(np.float64)
        values = self.values[order]
        yield from self._means(counted, values, videos, None)
        ends = np.searchsorted(number.to_numpy()[order], np.arange(len(names) + 1))
        for name, start, end in zip(names, ends[:-1], ends[1:], strict=True):
            yield from self._means(counted[:, start:end], values[start:end], videos[start:end], name)

    def _means(
        self, counted: Floats, values: Floats, videos: npt.NDArray[np.int64], label: str | None
    ) -> Iterator[Measured]:
        """The metrics of some items.

        Args:
            counted: (resamples, n) how often each item counts.
            values: (n, metrics) what each scored.
            videos: (n,) the place of the video of each.
            label: their class.
        """
        known = ~np.isnan(values)
        # 0 times NaN is NaN: what is undefined is summed as 0, and counted apart.
        sums = counted @ np.where(known, values, 0.0)
        totals = counted @ known.astype(np.float64)
        means = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
        for column, metric in enumerate(self.metrics):
            has = known[:, column]
            holding = len(np.unique(videos[has]))
            yield Measured(metric, means[:, column], int(has.sum()), label, self.reason, holding=holding)

    def _video_numbers(self) -> npt.NDArray[np.int64]:
        """(items,) the place of each item's video in `videos`."""
        videos = self.items["video"].cast(pl.String)
        places = list(range(len(self.videos)))
        numbers: npt.NDArray[np.int64] = videos.replace_strict(
            list(self.videos), places, return_dtype=pl.Int64
        ).to_numpy()
        return numbers
