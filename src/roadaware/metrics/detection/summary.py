"""The rows of a summary: average precision of each class and its mean over each kind, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import Matches, average_precision_table
from roadaware.metrics.result import SUMMARY, interval_columns
from roadaware.statistics.intervals import Interval, Units

FRAME, VIDEO, AV_ACTION = "frame", "video", "av_action"
DETECTION_SUMMARY: dict[str, Any] = {
    **SUMMARY,
    "level": pl.String,
    "overlap": pl.String,
    "threshold": pl.String,
    "kind": pl.String,
    "label": pl.String,
}


@dataclass(frozen=True)
class Asked:
    """Where matches were made, and what is asked of them.

    Args:
        level: frame, video or av_action.
        columns: name of a threshold to the indices whose mean it is.
        overlap: of tubes.
    """

    level: str
    columns: Mapping[str, tuple[int, ...]]
    overlap: str | None = None

    def metric(self, what: str, threshold: str, kind: str, label: str | None = None) -> str:
        """The metric's name, such as `frame_ap@0.5:agent:Ped` or `video_map@0.2(siou):agent`."""
        of = "" if label is None else f":{label}"
        if self.level == AV_ACTION:
            return f"av_{what}{of}"
        overlap = f"({self.overlap})" if self.overlap not in (None, "stiou") else ""
        return f"{self.level}_{what}@{threshold}{overlap}:{kind}{of}"


@dataclass(frozen=True, eq=False)
class Measured:
    """One metric, in the set as it is and in each draw.

    Args:
        metric: its name.
        value: NaN where undefined.
        drawn: (draws,) NaN where undefined; None without draws.
        units: the videos that were drawn; None without draws.
        n: classes of a mean, true boxes, tubes or frames of a class.
        threshold: its name.
        kind: of the labels.
        label: of the class; None for a mean.
    """

    metric: str
    value: float
    drawn: Floats | None
    units: Units | None
    n: int
    threshold: str
    kind: str
    label: str | None

    @property
    def interval(self) -> Interval | None:
        """Over videos; None without draws."""
        if self.drawn is None or self.units is None or np.isnan(self.value):
            return None
        return self.units.interval(self.value, self.drawn)


def measured(
    matches: Matches,
    asked: Asked,
    config: DetectionConfig,
    *,
    videos: Sequence[str] | None = None,
    draws: int = 0,
    seed: int = 0,
) -> Iterator[Measured]:
    """Every metric of one level: for each kind and threshold the mean over classes, then each class.

    Args:
        matches: of the level.
        asked: what is asked of them.
        config: with the rule of average precision, and what holds for classes without truth.
        videos: those that count; all unless told.
        draws: most weightings of the videos; 0 gives none, as fewer than two videos do.
        seed: of the weightings: equal numbers of videos, draws and seeds give equal ones.
    """
    weights = video_weights(matches.videos, videos)
    rule = config.av_ap if asked.level == AV_ACTION else config.ap
    table = average_precision_table(matches, config, weights, rule=rule)
    n_truth = weights @ matches.n_truth
    drawn, units = None, None
    if draws and weights.sum() > 1:
        units = Units(int(weights.sum()), draws, seed)
        drawn = average_precision_table(matches, config, weightings(weights, units), rule=rule)
    for kind in matches.kinds:
        rows = [c for c, (of, _) in enumerate(matches.classes) if of == kind]
        for name, columns in asked.columns.items():
            at = list(columns)
            means = table[rows][:, at].mean(axis=1)
            in_draws = None if drawn is None else drawn[:, rows][:, :, at].mean(axis=2)
            whole = None if in_draws is None else defined_mean(in_draws)
            n = int((~np.isnan(means)).sum())
            mean = asked.metric("map", name, kind)
            yield Measured(mean, float(defined_mean(means)), whole, units, n, name, kind, None)
            for place, c in enumerate(rows):
                label = matches.classes[c][1]
                each = None if in_draws is None else in_draws[:, place]
                value, n = float(means[place]), int(n_truth[c])
                metric = asked.metric("ap", name, kind, label)
                yield Measured(metric, value, each, units, n, name, kind, label)


def summary_rows(group: str | None, asked: Asked, found: Iterator[Measured]) -> Iterator[dict[str, Any]]:
    """The rows of a summary, in the columns of DETECTION_SUMMARY."""
    for each in found:
        valid = not np.isnan(each.value)
        what = "no label of this kind has truth" if each.label is None else "there is no truth of this label"
        yield {
            **dict.fromkeys(DETECTION_SUMMARY),
            "group": group,
            "metric": each.metric,
            "value": each.value if valid else None,
            "valid": valid,
            "n": each.n,
            "reason": None if valid else what,
            **interval_columns(each.interval, "video"),
            "level": asked.level,
            "overlap": asked.overlap,
            "threshold": None if asked.level == AV_ACTION else each.threshold,
            "kind": each.kind,
            "label": each.label,
        }


def video_weights(videos: Sequence[str], kept: Sequence[str] | None) -> npt.NDArray[np.int32]:
    """(V,) 1 for each video that counts."""
    wanted = set(videos if kept is None else kept)
    return np.array([video in wanted for video in videos], dtype=np.int32)


def defined_mean(values: Floats) -> Floats:
    """Mean over the last axis of what is defined; NaN where nothing is."""
    defined = ~np.isnan(values)
    total = np.where(defined, values, 0.0).sum(axis=-1)
    count = np.asarray(defined.sum(axis=-1), dtype=np.float64)
    mean: Floats = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    return mean


def weightings(weights: npt.NDArray[Any], units: Units) -> npt.NDArray[np.int32]:
    """(draws, V) how often each video occurs in the weightings of those that count.

    Args:
        weights: (V,) 1 for each video that counts.
        units: these videos.
    """
    of_units = np.concatenate(list(units.weights()))
    drawn = np.zeros((len(of_units), len(weights)), dtype=np.int32)
    drawn[:, np.flatnonzero(weights)] = of_units
    return drawn
