"""Where somebody will be: displacement, overlap of boxes, the best of k, likelihood and coverage of regions, by horizon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.geometry.boxes import paired_iou
from roadaware.metrics.metric_state import SUMMARY, MetricResult, build_interval_columns
from roadaware.statistics.distributions import PlaneMixture, compute_region_levels
from roadaware.statistics.intervals import Interval, Scale, Units

REGIONS = (0.5, 0.9)
"""What regions of highest density promise to hold."""
SCALES: dict[str, Scale] = {
    "ade": "positive", "fde": "positive", "ade_heights": "positive", "fde_heights": "positive", "min_ade": "positive",
    "min_fde": "positive", "iou": "share", "nll": "plain", "nll_final": "plain", "covered_50": "share", "covered_90": "share",
    "covered_90_final": "share", "area_90_final": "positive",
}  # fmt: skip
"""The metrics, and what kind of number each is."""
HIGHER_IS_BETTER = ("iou",)


@dataclass(frozen=True, eq=False)
class Paths:
    """What came, n windows at m steps.

    Args:
        places: (n, m, 2) centres of boxes in pixels, or places on the ground in metres.
        scale: (n,) what errors are also counted in: the height of the newest observed box in pixels; 1 for metres.
        boxes: (n, m, 4) corners in pixels; None where places are on the ground.
        t_s: (m,) seconds after the newest observed box.
        pedestrian: (n,) whose window it is.
        video: (n,) of it.
        frame: (n,) of the newest observed box.

    Raises:
        InputError: if shapes differ, or a number is not finite.
    """

    places: Floats
    scale: Floats
    boxes: Floats | None
    t_s: Floats
    pedestrian: npt.NDArray[np.generic]
    video: npt.NDArray[np.generic]
    frame: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        n, m = self.places.shape[:2]
        lengths = {len(self.scale), len(self.pedestrian), len(self.video), len(self.frame)}
        if self.places.shape != (n, m, 2) or lengths != {n} or len(self.t_s) != m or not n or not m:
            raise InputError(
                f"places {self.places.shape} should be (windows, steps, 2), with a scale, pedestrian, video and frame for "
                f"each window ({sorted(lengths)} found) and a time for each step ({len(self.t_s)} found)"
            )
        if self.boxes is not None:
            _check_boxes(self.boxes, (n, m, 4))
        if not (np.isfinite(self.t_s).all() and (np.diff(self.t_s, prepend=0.0) > 0).all()):
            raise InputError("times of the steps should be seconds above 0, each later than the one before")
        if not (np.isfinite(self.places).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise InputError("places should be finite, and scales finite and above 0")

    def __len__(self) -> int:
        return len(self.places)


def _check_boxes(boxes: Floats, shape: tuple[int, ...]) -> None:
    if boxes.shape != shape or not np.isfinite(boxes).all() or (boxes[..., 2:] < boxes[..., :2]).any():
        raise InputError(
            f"boxes {boxes.shape} should be {shape}: finite corners x1, y1, x2, y2 of each window and step"
        )


@dataclass(frozen=True, eq=False)
class Forecast:
    """What was predicted of the windows.

    Args:
        places: the distribution over places at each step, in the unit of the truth.
        boxes: (n, m, 4) the predicted box; None where places are on the ground.
    """

    places: PlaneMixture
    boxes: Floats | None = None


@dataclass(frozen=True)
class TrajectoryConfig:
    """How windows are judged.

    Args:
        k: of the paths of the components, so many likeliest are the best of k; of one component there is one.
        draws: from each distribution for the regions.
        seed: of these.
        horizons_s: steps that are also told apart, and at which regions are drawn; the nearest step is taken.
    """

    k: int = 5
    draws: int = 100
    seed: int = 0
    horizons_s: tuple[float, ...] = (0.5, 1.0, 1.5)

    def __post_init__(self) -> None:
        if self.k < 1 or self.draws < 20 or not self.horizons_s:
            raise InputError(f"k is 1 or more, draws 20 or more, and there is a horizon; got {self}")


@dataclass(frozen=True, eq=False)
class JudgedPaths:
    """The numbers of each window, from which means, intervals and paired differences are made.

    Args:
        table: `video`, `pedestrian`, `frame`, the metrics of `SCALES` that are defined, and for each horizon such as
            `@1s`: `error@1s`, `error_heights@1s`, `iou@1s`, `nll@1s`, `covered_90@1s`.
        config: how they were judged.
    """

    table: pl.DataFrame
    config: TrajectoryConfig = field(default_factory=TrajectoryConfig)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the columns that hold numbers."""
        return tuple(self.table.columns[3:])


def judge_paths(forecast: Forecast, truth: Paths, config: TrajectoryConfig | None = None) -> JudgedPaths:
    """The numbers of each window.

    - `ade`, `fde`: distance of the predicted mean from the place, mean over steps and at the last one; `_heights` in the
      window's scale.
    - `min_ade`, `min_fde`: the same of the best of the k likeliest components, in scales.
    - `iou`: of the predicted with the true box at the last step.
    - `nll`, `nll_final`: minus the logarithm of the predicted density, in nats, of places in scales: mean over steps, and at
      the last one.
    - `covered_50`, `covered_90`: share of the horizons at which the place lies in the region of highest density that promises
      so much; `covered_90_final` at the last step; `area_90_final` the area of that region in squared scales.

    Raises:
        InputError: if forecast and truth do not go together.

    Source: ADE and FDE: Alahi et al., CVPR 2016; the best of k: Gupta et al., CVPR 2018.
    """
    config = config or TrajectoryConfig()
    mixture = forecast.places
    n, m = truth.places.shape[:2]
    if mixture.mean.shape[0] != n or mixture.mean.shape[2] != m:
        raise InputError(
            f"the forecast is of {mixture.mean.shape[0]} windows at {mixture.mean.shape[2]} steps, the truth of {n} at {m}"
        )
    if (forecast.boxes is None) != (truth.boxes is None):
        raise InputError("boxes are predicted and known, or neither")
    if forecast.boxes is not None:
        _check_boxes(forecast.boxes, (n, m, 4))
    if max(config.horizons_s) > truth.t_s[-1] + np.diff(truth.t_s, prepend=0.0).max():
        raise InputError(
            f"horizons {config.horizons_s} s lie beyond the last step, {truth.t_s[-1]:g} s",
            hint="ask for earlier ones: TrajectoryConfig(horizons_s=...)",
        )
    scale = truth.scale[:, None]
    error = np.linalg.norm(mixture.centre - truth.places, axis=-1)
    each = np.linalg.norm(mixture.mean - truth.places[:, None], axis=-1)
    likely = np.argsort(-mixture.weight, axis=1, kind="stable")[:, : config.k]
    best = np.take_along_axis(each, likely[..., None], axis=1) / truth.scale[:, None, None]
    # Density of places in scales: that in pixels times the pixels of a squared scale.
    nll = -(mixture.log_density(truth.places) + 2 * np.log(scale))
    steps = [int(np.abs(truth.t_s - horizon).argmin()) for horizon in config.horizons_s]
    # Regions take draws, and neighbouring steps are alike: they are asked at the horizons and at the end alone.
    asked = [*steps, m - 1]
    levels, areas = compute_region_levels(
        mixture.at_steps(asked), truth.places[:, asked], draws=config.draws, seed=config.seed
    )
    columns: dict[str, Any] = {
        "video": truth.video.astype(str), "pedestrian": truth.pedestrian.astype(str), "frame": truth.frame,
        "ade": error.mean(axis=1), "fde": error[:, -1],
        "ade_heights": (error / scale).mean(axis=1), "fde_heights": (error / scale)[:, -1],
        "min_ade": best.mean(axis=2).min(axis=1), "min_fde": best[:, :, -1].min(axis=1),
    }  # fmt: skip
    overlap: Floats | None = None
    if forecast.boxes is not None and truth.boxes is not None:
        overlap = paired_iou(forecast.boxes.reshape(-1, 4), truth.boxes.reshape(-1, 4)).reshape(n, m)
        columns["iou"] = overlap[:, -1]
    columns |= {
        "nll": nll.mean(axis=1), "nll_final": nll[:, -1],
        "covered_50": (levels[:, :-1] <= REGIONS[0]).mean(axis=1),
        "covered_90": (levels[:, :-1] <= REGIONS[1]).mean(axis=1),
        "covered_90_final": (levels[:, -1] <= REGIONS[1]).astype(np.float64),
        "area_90_final": areas[:, -1] / truth.scale**2,
    }  # fmt: skip
    for place, (horizon, step) in enumerate(zip(config.horizons_s, steps, strict=True)):
        at = f"@{horizon:g}s"
        columns |= {f"error{at}": error[:, step], f"error_heights{at}": (error / scale)[:, step]}
        if overlap is not None:
            columns[f"iou{at}"] = overlap[:, step]
        columns |= {
            f"nll{at}": nll[:, step],
            f"covered_90{at}": (levels[:, place] <= REGIONS[1]).astype(np.float64),
        }
    return JudgedPaths(pl.DataFrame(columns), config)


def average_judged(parts: list[JudgedPaths]) -> JudgedPaths:
    """The mean of each number of each window over several predictors of the same windows, such as seeds.

    Raises:
        InputError: if there are none, or they are of different windows.
    """
    keys = ["video", "pedestrian", "frame"]
    if not parts or any(not one.table.select(keys).equals(parts[0].table.select(keys)) for one in parts):
        raise InputError("predictors to average are one or more, of the same windows in the same order")
    mean = np.mean([one.table.select(parts[0].metrics).to_numpy() for one in parts], axis=0)
    table = (
        parts[0]
        .table.select(keys)
        .with_columns(pl.Series(name, mean[:, place]) for place, name in enumerate(parts[0].metrics))
    )
    return JudgedPaths(table, parts[0].config)


def get_scale(metric: str) -> Scale:
    """What kind of number a metric is: `error@1s` is one of `SCALES` too.

    Raises:
        InputError: if there is no such metric.
    """
    name = metric.partition("@")[0]
    if metric != name and name in ("error", "error_heights"):
        return "positive"
    if name not in SCALES:
        raise InputError(f"no metric '{metric}'; there are {', '.join(SCALES)}")
    return SCALES[name]


def summarise_paths(judged: JudgedPaths, *, resamples: int = 0, seed: int = 0) -> MetricResult:
    """Means over windows with 95 % intervals over pedestrians and over videos.

    Args:
        judged: of `judge_paths`.
        resamples: most weightings for the intervals (default: no intervals).
        seed: of their groups.
    """
    return _summarise(
        judged, judged.table, {name: get_scale(name) for name in judged.metrics}, resamples, seed
    )


def compare_paths(one: JudgedPaths, other: JudgedPaths, *, resamples: int = 0, seed: int = 0) -> MetricResult:
    """Paired differences of one forecast from another, with intervals over pedestrians and over videos.

    Raises:
        InputError: if they are of different windows.
    """
    keys = ["video", "pedestrian", "frame"]
    if not one.table.select(keys).equals(other.table.select(keys)):
        raise InputError("forecasts to compare are of the same windows in the same order")
    shared = [name for name in one.metrics if name in other.metrics]
    table = one.table.select(*keys, *(one.table[name] - other.table[name] for name in shared))
    return _summarise(one, table, dict.fromkeys(shared, "plain"), resamples, seed)


def _summarise(
    judged: JudgedPaths, table: pl.DataFrame, scales: dict[str, Scale], resamples: int, seed: int
) -> MetricResult:
    values = table.select(list(scales)).to_numpy().astype(np.float64)
    mean = values.mean(axis=0)
    found: dict[str, list[Interval | None]] = {}
    units = {
        "pedestrian": table.select(pl.concat_str("video", "pedestrian", separator=" "))
        .to_series()
        .to_numpy(),
        "video": table["video"].to_numpy(),
    }
    for unit, names in units.items():
        known, which = np.unique(names, return_inverse=True)
        held = Units.of(known, resamples, seed) if resamples else None
        if held is None:
            found[unit] = [None] * len(scales)
            continue
        # Sums by unit, which every weighting of units turns into means.
        sums = np.stack(
            [np.bincount(which, weights=column, minlength=len(known)) for column in values.T], axis=1
        )
        count = np.bincount(which, minlength=len(known)).astype(np.float64)
        weights = np.concatenate([each.astype(np.float64) for each in held.weights()])
        drawn = (weights @ sums) / (weights @ count)[:, None]
        found[unit] = [
            held.interval(float(mean[place]), drawn[:, place], scale)
            for place, scale in enumerate(scales.values())
        ]
    rows = [
        {
            "group": None, "metric": name, "value": float(mean[place]), "valid": True, "n": len(table), "reason": None,
            **build_interval_columns(found["pedestrian"][place], "pedestrian"),
            **build_interval_columns(found["video"][place], "video"),
        }
        for place, name in enumerate(scales)
    ]  # fmt: skip
    counts = pl.DataFrame(
        {
            "group": [None],
            "class": ["window"],
            "samples": [len(table)],
            "pedestrians": [len(np.unique(units["pedestrian"]))],
        },
        schema={"group": pl.String, "class": pl.String, "samples": pl.Int64, "pedestrians": pl.Int64},
    )
    return MetricResult(
        pl.DataFrame(rows, schema=SUMMARY), counts, to_dict(judged.config), makers={"window": lambda: table}
    )
