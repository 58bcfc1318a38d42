"""Which of two models is better on the same samples, videos or scenes, beyond chance; joint correctness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.config import from_dict, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import RANGE, DetectionConfig, build_thresholds
from roadaware.metrics.detection.evaluate import AV_ACTION, Asked, compute_metrics
from roadaware.metrics.detection.matches import Matches
from roadaware.metrics.metric_state import Judged, build_interval_columns, resample_over_videos
from roadaware.metrics.pedestrians import (
    UNITS,
    PedestrianConfig,
    PedestrianCore,
    build_core,
    collect_sample_scores,
    is_lower_better,
)
from roadaware.metrics.scores import SampleScores, predict_labels
from roadaware.scenes.sampling import split_samples
from roadaware.statistics.intervals import Interval, Units, get_difference_scale

if TYPE_CHECKING:
    from roadaware.protocols.iv2024 import Reproduction


Verdict = Literal["better", "worse", "not different", "undefined", "no interval"]
BY_VIDEO: dict[str, Any] = {
    "a": pl.Float64,
    "b": pl.Float64,
    "difference": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "verdict": pl.String,
    "caution_video": pl.String,
}
"""The columns that `build_difference_row` fills."""
_NAMED = 20


@dataclass(frozen=True, eq=False)
class Paired:
    """The paired difference of two models in every metric.

    Args:
        table: one row per metric, among its columns `metric` and `verdict`.
        names: what A and B are called.
        config: the configuration that both were judged with, as plain data.
        resamples: resamples made.
        seed: of the resamples.
    """

    table: pl.DataFrame
    names: tuple[str, str]
    config: dict[str, Any]
    resamples: int
    seed: int

    def verdict(self, metric: str) -> Verdict:
        """Verdict on A from all intervals of this metric.

        Raises:
            UsageError: if there is no such metric.
        """
        found = self.table.filter(pl.col("metric") == metric)
        if found.is_empty():
            known = [*self.table["metric"].head(_NAMED), *(["..."] if len(self.table) > _NAMED else [])]
            raise UsageError(f"no metric '{metric}'; there are {', '.join(known)}")
        verdict: Verdict = found["verdict"][0]
        return verdict


def check_resamples(resamples: int) -> None:
    """Refuse to compare without resamples.

    Raises:
        UsageError: if there are none.
    """
    if resamples < 1:
        raise UsageError(f"a comparison needs at least 1 resample, not {resamples}")


def build_difference_row(a: float, b: float, interval: Interval | None) -> dict[str, Any]:
    """The columns of `BY_VIDEO` for a metric in which higher is better.

    Args:
        a: the metric of the first model, NaN where it is undefined.
        b: that of the second.
        interval: of a - b over videos; unused where a value is undefined.
    """
    difference = a - b
    defined = not np.isnan(difference)
    held = interval if defined else None
    return {
        "a": None if np.isnan(a) else a,
        "b": None if np.isnan(b) else b,
        "difference": difference if defined else None,
        "low_video": held.low if held else None,
        "high_video": held.high if held else None,
        "verdict": assign_verdict(held) if defined else "undefined",
        "caution_video": held.caution if held else None,
    }


def assign_verdict(interval: Interval | None, *, lower_is_better: bool = False) -> Verdict:
    """Verdict on A from one interval of A - B.

    Args:
        interval: None, or one without ends, where there was nothing to resample.
        lower_is_better: whether less of the metric is better.
    """
    if interval is None or interval.low is None:
        return "no interval"
    if not interval.excludes_zero:
        return "not different"
    return "better" if (interval.low > 0) != lower_is_better else "worse"


# Which of two models is better on the same samples, metric by metric, and whether it may be chance.

_COLUMNS: dict[str, Any] = {
    "metric": pl.String,
    "lower_is_better": pl.Boolean,
    "a": pl.Float64,
    "b": pl.Float64,
    "difference": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "verdict_pedestrian": pl.String,
    "verdict_video": pl.String,
    "verdict": pl.String,
    "caution_pedestrian": pl.String,
    "caution_video": pl.String,
}


@dataclass(frozen=True, eq=False)
class Comparison(Paired):
    """The paired difference of two models in every metric.

    Args:
        table: one row per metric: `metric`, `lower_is_better`, the values `a` and `b`, `difference` (a - b),
            the ends of its 95 % intervals over pedestrians and over videos, and in words what each says of
            A (`verdict_pedestrian`, `verdict_video`) and what both say (`verdict`): `better`, `worse`,
            `not different` (0 is inside), `undefined` (a value is missing), `no interval`; and why an
            interval is to be taken with caution.
        names, config, resamples, seed: see `Paired`.
    """

    def lines(self) -> list[str]:
        """One sentence per metric."""
        return [_sentence(row, self.names) for row in self.table.iter_rows(named=True)]


def compare(
    a: SampleScores,
    b: SampleScores,
    config: PedestrianConfig,
    *,
    resamples: int = 1000,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """The difference A - B in every metric, with intervals from resamples that both models share.

    Each weighting of pedestrians, or of videos, is applied to both models, so what is hard for both cancels.
    A is called better or worse only where the intervals over pedestrians and over videos (where videos
    are known) both exclude 0 on the same side. Intervals are not widened for the number of metrics that
    are considered.

    Args:
        a: scores of the first model.
        b: scores of the second model for the same samples.
        config: how both are judged.
        resamples: most weightings of units, at least 1.
        seed: of the weightings.
        names: what A and B are called.

    Raises:
        InputError: if the two are not about the same samples, or do not fit the task.
        UsageError: if `resamples` is below 1.

    >>> truth, people = np.arange(40) % 2, [str(k) for k in range(40)]
    >>> right = SampleScores(0.1 + 0.8 * truth, truth, people)
    >>> wrong = SampleScores(0.9 - 0.8 * truth, truth, people)
    >>> found = compare(right, wrong, PedestrianConfig.default("action"), resamples=200)
    >>> found.lines()[0].split("difference ")[1]
    '+1.000 [+1.000, +1.000] by pedestrian (at its end)'
    """
    check_resamples(resamples)
    # Pairs need the same samples: equal order, ground truth, pedestrian and video.
    if len(a) != len(b):
        raise InputError(
            f"A has {len(a)} samples and B has {len(b)}; a paired comparison needs the same ones"
        )
    rows_a, rows_b = np.argsort(a.places), np.argsort(b.places)
    for name in ("order", "truth", "pedestrian", "video", "tte_frames"):
        of_a, of_b = getattr(a, name), getattr(b, name)
        if of_a is None and of_b is None:
            continue
        if of_a is None or of_b is None:
            raise InputError(f"only one of A and B knows {name}; a paired comparison needs the same samples")
        differ = np.flatnonzero(of_a[rows_a] != of_b[rows_b])
        if len(differ):
            k = differ[0]
            raise InputError(
                f"A and B differ in {name} in {len(differ)} of {len(a)} samples, "
                f"first at place {k}: {of_a[rows_a][k]} and {of_b[rows_b][k]}",
                hint="both must be predictions for the same samples, in the same order of extraction",
            )
    one, two = build_core(a, config), build_core(b, config)
    value_a, value_b = one.values(one.once()), two.values(two.once())
    intervals = {unit: _intervals(one, two, unit, resamples, seed) for unit in UNITS}
    rows = [
        _row(
            m,
            float(value_a[m][0]),
            float(value_b[m][0]),
            {u: i[m] if i else None for u, i in intervals.items()},
        )
        for m in one.names
    ]
    return Comparison(pl.DataFrame(rows, schema=_COLUMNS), names, to_dict(config), resamples, seed)


def compare_released(found: Reproduction, *, resamples: int, seed: int = 0) -> list[tuple[str, Comparison]]:
    """Each baseline of a reproduction against the released scores, by protocol."""
    pairs = []
    for name, question in found.questions.items():
        config = from_dict(PedestrianConfig, question.metrics.config)
        held = split_samples(question.scenes, "test")
        released, _ = collect_sample_scores(question.predictions, held, config.task)
        for other, item in question.baselines.items():
            state, _ = collect_sample_scores(item.predictions, item.scenes, config.task)
            names = (other, "PedFormer")
            pairs.append(
                (name, compare(state, released, config, resamples=resamples, seed=seed, names=names))
            )
    return pairs


def _intervals(
    one: PedestrianCore, two: PedestrianCore, unit: str, resamples: int, seed: int
) -> dict[str, Interval] | None:
    """Of every difference over units; None where there are none."""
    # Both are of the same pedestrians, so equal seeds give both the same weightings.
    units, a, b = (
        one.units(unit, resamples, seed),
        one.drawn(unit, resamples, seed),
        two.drawn(unit, resamples, seed),
    )
    if units is None or a is None or b is None:
        return None
    points = one.values(one.once()), two.values(two.once())
    return {
        m: units.interval(
            float(points[0][m][0] - points[1][m][0]), a[m] - b[m], get_difference_scale("share")
        )
        for m in one.names
    }


def _row(metric: str, a: float, b: float, intervals: dict[str, Interval | None]) -> dict[str, Any]:
    lower = is_lower_better(metric)
    row: dict[str, Any] = {
        "metric": metric,
        "lower_is_better": lower,
        "a": _replace_nan(a),
        "b": _replace_nan(b),
    }
    row["difference"] = _replace_nan(a - b)
    verdicts: list[Verdict] = []
    for unit, interval in intervals.items():
        given = interval if row["difference"] is not None else None
        row[f"low_{unit}"] = given.low if given else None
        row[f"high_{unit}"] = given.high if given else None
        row[f"caution_{unit}"] = given.caution if given else None
        row[f"verdict_{unit}"] = None
        if interval is not None:
            verdicts.append(
                assign_verdict(given, lower_is_better=lower) if given is not None else "undefined"
            )
            row[f"verdict_{unit}"] = verdicts[-1]
    row["verdict"] = _joint(verdicts)
    return row


def _joint(verdicts: list[Verdict]) -> Verdict:
    """`better` or `worse` when all say so; otherwise what holds it back."""
    if not verdicts:
        return "no interval"
    for weaker in ("undefined", "no interval", "not different"):
        if weaker in verdicts:
            return weaker
    return verdicts[0] if len(set(verdicts)) == 1 else "not different"


def _sentence(row: dict[str, Any], names: tuple[str, str]) -> str:
    first, second = names
    words = {
        "better": f"{first} is better than {second}",
        "worse": f"{first} is worse than {second}",
        "not different": f"{first} and {second} are not different",
        "undefined": "undefined",
        "no interval": "no interval can be given",
    }
    text = f"{row['metric']}: {words[row['verdict']]}"
    if row["difference"] is None:
        return text
    ends = [
        f"[{row[f'low_{unit}']:+.3f}, {row[f'high_{unit}']:+.3f}] by {unit}"
        + (f" ({row[f'caution_{unit}']})" if row[f"caution_{unit}"] else "")
        for unit in UNITS
        if row[f"low_{unit}"] is not None
    ]
    values = f"{row['a']:.3f} against {row['b']:.3f}"
    return ", ".join([text, values, " ".join([f"difference {row['difference']:+.3f}", *ends])])


def _replace_nan(value: float) -> float | None:
    return None if np.isnan(value) else value


# Which of two models of road events is better on the same videos, metric by metric.

_DETECTION_COLUMNS: dict[str, Any] = {
    "metric": pl.String,
    "level": pl.String,
    "overlap": pl.String,
    "threshold": pl.String,
    "kind": pl.String,
    "label": pl.String,
    **BY_VIDEO,
}
_KEPT_OF_RANGE = (0.5, 0.75)
"""Of the ten thresholds of the range, those that are looked at by themselves as well."""


@dataclass(frozen=True, eq=False)
class DetectionComparison(Paired):
    """The paired difference of two models in every metric of road events.

    Args:
        table: one row per metric: `metric`, `level`, `overlap`, `threshold`, `kind`, `label` (null for
            means), the values `a` and `b`, `difference` (a - b), the ends of its 95 % interval over videos,
            and what that says of A (`verdict`): `better`, `worse`, `not different` (0 is inside),
            `undefined` (a value is missing), `no interval`.
        names, resamples, seed: see `Paired`.
        config: the configuration that A was judged with, as plain data; B was judged with the same but for
            `differs`.
        differs: field of the configuration to its values for A and B, where they differ.
    """

    differs: dict[str, tuple[Any, Any]] = field(default_factory=dict)


def compare_detections(
    a: Mapping[str, Matches],
    b: Mapping[str, Matches],
    config: DetectionConfig,
    *,
    resamples: int = 1000,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
    config_b: DetectionConfig | None = None,
) -> DetectionComparison:
    """The difference A - B in every metric that both have, with intervals from resamples that they share.

    Each weighting of videos is applied to both models, so what is hard for both cancels. Intervals are not
    widened for the number of metrics that are considered.

    Args:
        a: level (`frame`, `video:stiou`, `av_action`) to the matches of the first model.
        b: those of the second, on the same ground truth.
        config: how both are judged.
        resamples: most weightings of videos, at least 1.
        seed: of the weightings.
        names: what A and B are called.
        config_b: how the second was judged, where that differs: in `composite_scores` alone, so that joint
            scores can be held against products.

    Raises:
        InputError: if the two were not judged on the same ground truth, or share no level and threshold.
        UsageError: if `resamples` is below 1, or the configs differ in more than composite scores.
    """
    check_resamples(resamples)
    one, two = to_dict(config), to_dict(config_b or config)
    differs = {name: (one[name], two[name]) for name in one if one[name] != two[name]}
    # These only state which scores were predicted.
    others = [f"{name} ({x} and {y})" for name, (x, y) in differs.items() if name != "composite_scores"]
    if others:
        raise UsageError(
            f"{names[0]} and {names[1]} were judged by different configs, {', '.join(others)}; evaluate both "
            "with the same"
        )
    rows = [
        row for level in a if level in b for row in _level(level, a[level], b[level], config, resamples, seed)
    ]
    if not rows:
        raise InputError(
            f"{names[0]} was judged at {', '.join(a) or 'no level'}, {names[1]} at {', '.join(b) or 'none'}; "
            "they share no threshold",
            hint="evaluate both with the same thresholds and kinds",
        )
    table = pl.DataFrame(rows, schema=_DETECTION_COLUMNS)
    return DetectionComparison(table, names, to_dict(config), resamples, seed, differs)


def _level(
    level: str, a: Matches, b: Matches, config: DetectionConfig, resamples: int, seed: int
) -> Iterator[dict[str, Any]]:
    """The rows of one level."""
    for what in ("videos", "classes"):
        if getattr(a, what) != getattr(b, what):
            differ = set(getattr(a, what)) ^ set(getattr(b, what))
            shown = ", ".join(sorted(map(str, differ))[:5]) or "their order"
            raise InputError(f"A and B were judged on different {what} at level {level}: {shown}")
    if not np.array_equal(a.n_truth, b.n_truth):
        raise InputError(
            f"A and B were judged on different truth at level {level}: {int(a.n_truth.sum()):,} and "
            f"{int(b.n_truth.sum()):,} true items",
            hint="evaluate both on the same annotations and split",
        )
    name, _, overlap = level.partition(":")
    shared = [value for value in a.thresholds if value in b.thresholds]
    columns = {"": shared} if name == AV_ACTION else _columns(shared)
    pairs = zip(
        *(
            compute_metrics(
                held, _build_request(held, name, overlap, columns), config, resamples=resamples, seed=seed
            )
            for held in (a, b)
        ),
        strict=True,
    )
    for one, two in pairs:
        interval = None
        apart = one.value - two.value
        if one.drawn is not None and two.drawn is not None and one.units is not None and not np.isnan(apart):
            interval = one.units.interval(apart, one.drawn - two.drawn, "difference")
        yield {
            "metric": one.metric,
            "threshold": one.threshold or None,
            "kind": one.kind,
            "label": one.label,
            **build_difference_row(one.value, two.value, interval),
            "level": name,
            "overlap": overlap or None,
        }


def _build_request(held: Matches, name: str, overlap: str, columns: Mapping[str, list[float]]) -> Asked:
    at = {column: tuple(map(held.thresholds.index, values)) for column, values in columns.items()}
    return Asked(name, at, overlap or None)


def _columns(shared: list[float]) -> dict[str, list[float]]:
    """Names of thresholds to those whose mean they are; the ten of the range stand together."""
    ten = build_thresholds([RANGE]).values
    if not set(ten) <= set(shared):
        return {f"{value:g}": [value] for value in shared}
    single = [value for value in shared if value not in ten or value in _KEPT_OF_RANGE]
    return {**{f"{value:g}": [value] for value in single}, RANGE: list(ten)}


# Which of two models is better on the same scenes, metric by metric, for any of the four tasks.

_BESIDE = ("per_frame_capacity",)
_SCENE_COLUMNS: dict[str, Any] = {
    "metric": pl.String,
    "label": pl.String,
    **BY_VIDEO,
}


@dataclass(frozen=True, eq=False)
class SceneComparison(Paired):
    """The paired difference of two models in every metric of a task.

    Args:
        table: one row per metric: `metric` (`metric:label` for those of a class), `label` (null for the
            whole), the values `a` and `b`, `difference` (a - b), the ends of its 95 % interval over videos,
            and what that says of A (`verdict`): `better`, `worse`, `not different` (0 is inside),
            `undefined` (a value is missing), `no interval`.
        names, config, resamples, seed: see `Paired`.
        baselines: name of a trivial answer to its metrics; the same for both, whose ground truth is one.
    """

    baselines: dict[str, dict[str, float | None]] = field(default_factory=dict)

    @property
    def beside(self) -> dict[str, Any]:
        """The field of the configuration to show beside every number: the capacity of a frame."""
        return {name: self.config[name] for name in _BESIDE if name in self.config}


def compare_scenes(
    a: Judged,
    b: Judged,
    config: dict[str, Any],
    *,
    resamples: int = 1000,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
    baselines: Mapping[str, Mapping[str, float | None]] | None = None,
) -> SceneComparison:
    """The difference A - B in every metric that both have, with intervals from resamples that they share.

    Each weighting of videos is applied to both models, so what is hard for both cancels. Intervals are not
    widened for the number of metrics that are considered.

    Args:
        a: what was judged of the first model.
        b: the same of the second, on the same ground truth.
        config: how both were judged, as plain data.
        resamples: most weightings of videos, at least 1.
        seed: of the weightings.
        names: what A and B are called.
        baselines: name of a trivial answer to its metrics.

    Raises:
        InputError: if the two were judged on different videos.
        UsageError: if `resamples` is below 1, or the two are of different tasks.
    """
    check_resamples(resamples)
    if type(a) is not type(b):
        raise UsageError(f"{names[0]} and {names[1]} are runs of different tasks; compare two of a kind")
    # The videos of either; one that only predictions name is in the state of who predicted there.
    shared = set(a.videos) & set(b.videos)
    if not shared:
        raise InputError(
            f"{names[0]} and {names[1]} were judged on different videos: {len(a.videos):,} and "
            f"{len(b.videos):,}, none in both",
            hint="evaluate both on the same truth",
        )
    videos = tuple(dict.fromkeys((*a.videos, *b.videos)))
    table = pl.DataFrame(list(_rows(a, b, videos, resamples, seed)), schema=_SCENE_COLUMNS)
    trivial = {name: dict(values) for name, values in (baselines or {}).items()}
    return SceneComparison(table, names, dict(config), resamples, seed, trivial)


def _rows(
    a: Judged, b: Judged, videos: tuple[str, ...], resamples: int, seed: int
) -> Iterator[dict[str, Any]]:
    """One row per metric that both have, in the order of the first."""
    theirs = {
        (each.metric, each.label): each for each in b.measured(np.ones((1, len(b.videos)), dtype=np.int32))
    }
    units = Units(len(videos), resamples, seed)
    drawn_a, drawn_b = (resample_over_videos(state, videos, units) if units.n > 1 else {} for state in (a, b))
    for one in a.measured(np.ones((1, len(a.videos)), dtype=np.int32)):
        key = (one.metric, one.label)
        if key not in theirs:
            continue
        interval = None
        if key in drawn_a and key in drawn_b:
            apart = float(one.values[0] - theirs[key].values[0])
            scale = get_difference_scale(one.scale)
            interval = units.interval(apart, drawn_a[key] - drawn_b[key], scale)
        yield {
            "metric": one.metric if one.label is None else f"{one.metric}:{one.label}",
            "label": one.label,
            **build_difference_row(float(one.values[0]), float(theirs[key].values[0]), interval),
        }


OUTCOMES = ("both", "only_first", "only_second", "none")

_AGREEMENT_COLUMNS: dict[str, Any] = {
    "first": pl.String,
    "second": pl.String,
    "outcome": pl.String,
    "count": pl.Int64,
    "n": pl.Int64,
    "percent": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "caution_pedestrian": pl.String,
    "caution_video": pl.String,
}


@dataclass(frozen=True, eq=False)
class Agreement:
    """Joint correctness of two tasks on the same samples.

    Args:
        table: one row per combination of true classes and outcome, and the rows over all samples with
            null in `first` and `second`. `outcome` is `both`, `only_first`, `only_second` or `none`;
            `count` of the `n` samples of the combination end so, `percent` of them (null where n is 0),
            with the ends of the 95 % intervals over pedestrians and over videos, and why these are to be
            taken with caution.
    """

    table: pl.DataFrame

    def wide(self) -> pl.DataFrame:
        """One row per combination: `first`, `second`, `n`, and the percentage of each outcome."""
        return self.table.pivot("outcome", index=["first", "second", "n"], values="percent")

    def percent(self, outcome: str, first: str | None = None, second: str | None = None) -> float | None:
        """One percentage, over all samples unless a combination is named; None where it has no samples.

        Raises:
            UsageError: if there is no such combination or outcome.
        """
        held = (
            pl.col("first").eq_missing(pl.lit(first, dtype=pl.String))
            & pl.col("second").eq_missing(pl.lit(second, dtype=pl.String))
            & (pl.col("outcome") == outcome)
        )
        found = self.table.filter(held)
        if found.is_empty():
            raise UsageError(
                f"no outcome '{outcome}' of {first} and {second}; outcomes are {', '.join(OUTCOMES)}"
            )
        value: float | None = found["percent"][0]
        return value


def compute_agreement(
    first: SampleScores,
    second: SampleScores,
    *,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> Agreement:
    """How often two tasks are decided rightly together, alone, or not at all.

    Args:
        first: scores and ground truth of one task, such as intention.
        second: scores and ground truth of the other for the same samples, such as action.
        labels: names of the classes of both; their numbers where not given.
        resamples: most weightings of pedestrians and of videos; 0 gives no intervals.
        seed: of the weightings.

    Raises:
        InputError: if the two are not about the same samples, or names are too few.

    Source: Rasouli and Kotseruba, IV 2024, section IV.D and Table V.

    >>> intention = SampleScores(np.eye(3), np.array([0, 1, 1]), ["a", "b", "c"])
    >>> action = SampleScores(np.array([0.1, 0.2, 0.3]), np.array([0, 1, 0]), ["a", "b", "c"])
    >>> found = compute_agreement(intention, action)
    >>> [round(found.percent(outcome)) for outcome in ("both", "only_first", "only_second", "none")]
    [33, 33, 33, 0]
    """
    one, two = first.take(np.argsort(first.places)), second.take(np.argsort(second.places))
    same = len(one) == len(two) and bool((one.places == two.places).all())
    if not same or (one.pedestrian != two.pedestrian).any():
        raise InputError(
            f"agreement needs both tasks on the same samples; got {len(one)} and {len(two)} samples "
            "that differ in number, order or pedestrian",
            hint="predict both tasks for one set of samples, in the same order of extraction",
        )
    names = [_names(state, given) for state, given in zip((one, two), labels or (None, None), strict=True)]
    counts, video = _counts(one, two)
    total = counts.sum(axis=0)
    people = {"pedestrian": np.arange(len(counts)), "video": video}
    units = {
        u: None if of is None or not resamples else Units.of(of, resamples, seed) for u, of in people.items()
    }
    drawn = {
        u: np.concatenate([_shares(counts, times) for times in of.weights()])
        for u, of in units.items()
        if of is not None
    }
    rows: list[dict[str, Any]] = []
    keys: list[tuple[str | None, str | None]] = [(a, b) for a in names[0] for b in names[1]]
    for k, key in enumerate([*keys, (None, None)]):
        n = int(total[k].sum())
        for o, outcome in enumerate(OUTCOMES):
            share = float(total[k, o]) / n if n else None
            row: dict[str, Any] = {
                "first": key[0],
                "second": key[1],
                "outcome": outcome,
                "count": int(total[k, o]),
                "n": n,
            }
            row["percent"] = None if share is None else 100.0 * share
            for u, of in units.items():
                found = None if of is None or share is None else of.interval(share, drawn[u][:, k, o])
                # The columns of an interval, its ends as percentages.
                columns = {
                    name: value
                    for name, value in build_interval_columns(found, u).items()
                    if name in _AGREEMENT_COLUMNS
                }
                row |= {name: 100.0 * v if isinstance(v, float) else v for name, v in columns.items()}
            rows.append(row)
    return Agreement(pl.DataFrame(rows, schema=_AGREEMENT_COLUMNS))


def _names(state: SampleScores, given: Sequence[str] | None) -> Sequence[str]:
    if given is None:
        return [str(k) for k in range(state.n_classes)]
    if len(given) != state.n_classes:
        raise InputError(f"{state.n_classes} classes need {state.n_classes} names; got {list(given)}")
    return given


def _counts(
    one: SampleScores, two: SampleScores
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_] | None]:
    """Samples of each pedestrian by combination and outcome, and each pedestrian's video.

    Returns:
        (p, combinations + 1, 4) counts, the last combination being all; (p,) video, or None.
    """
    names, start, person = np.unique(one.pedestrian, return_index=True, return_inverse=True)
    right_one, right_two = predict_labels(one.scores) == one.truth, predict_labels(two.scores) == two.truth
    outcome = 2 * (~right_one).astype(np.int64) + ~right_two
    combination = one.truth * two.n_classes + two.truth
    size = one.n_classes * two.n_classes
    counts = np.zeros((len(names), size + 1, len(OUTCOMES)))
    np.add.at(counts, (person, combination, outcome), 1.0)
    counts[:, size] = counts[:, :size].sum(axis=1)
    return counts, None if one.video is None else one.video[start]


def _shares(counts: npt.NDArray[np.float64], times: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """(resamples, combinations + 1, 4) shares where each pedestrian counts so many times, NaN without samples."""
    # One product of matrices for all resamples, instead of a gather of rows for each.
    sums = (times.astype(np.float64) @ counts.reshape(len(counts), -1)).reshape(-1, *counts.shape[1:])
    whole = sums.sum(axis=2, keepdims=True)
    shares: npt.NDArray[np.float64] = np.divide(sums, whole, out=np.full(sums.shape, np.nan), where=whole > 0)
    return shares
