"""Factors of a sample's scene: size and state of the pedestrian, ego motion, signal and road."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import UsageError
from roadaware.scenes.tables import Scenes
from roadaware.scenes.tracks import encode_as_enum, extract_windows, get_frame_values

Labels = npt.NDArray[np.object_]

UNKNOWN = "unknown"
LIGHTS = ("undefined", "red", "yellow", "green")
"""States of a traffic light in the order of the published codes; another state is as good as undefined."""


@dataclass(frozen=True)
class FactorConfig:
    """How samples are sorted into scenarios.

    Args:
        window: averages run over the `observation` (what the paper says), or over the `sequence` of
            observation and prediction (what the published code does).
        prediction_frames: length of the prediction in a `sequence`.
        scale_edges_px: upper ends of the classes of mean box height, each inclusive.
        speed_edges_kmh: upper ends of the classes of mean ego speed, each inclusive.
        untagged_state: a pedestrian without action tags is `unknown`, or `standing` as published (the
            missing tag is the code -1, which lowers the mean). JAAD tags those alone who interact.
        light: a signal `forbid`s where the mean of the light's codes (undefined 0, red 1, yellow 2,
            green 3) is below 2 (`mean_code`), or where red is its most frequent known state, also beside an
            equal (`majority`).
        narrow_lanes: roads with fewer lanes than this are narrow.
    """

    window: Literal["observation", "sequence"] = "observation"
    prediction_frames: int = 30
    scale_edges_px: tuple[float, ...] = (80, 100, 150, 200, 300)
    speed_edges_kmh: tuple[float, ...] = (0, 5, 10, 20, 30)
    untagged_state: Literal["unknown", "standing"] = "unknown"
    light: Literal["majority", "mean_code"] = "majority"
    narrow_lanes: int = 3

    @classmethod
    def reference(cls) -> FactorConfig:
        """The published code's choices."""
        return cls(window="sequence", untagged_state="standing", light="mean_code")

    @classmethod
    def default(cls) -> FactorConfig:
        """The paper's words, and nothing guessed."""
        return cls()


def build_scenario_labels(
    scenes: Scenes, factors: Sequence[str], config: FactorConfig, samples: pl.DataFrame | None = None
) -> Labels:
    """(n,) the scenario of each sample, such as `state=walking; road=one-way`.

    Args:
        scenes: boxes, frames and tubes.
        factors: names of `FACTORS`; several make a product.
        config: how samples are sorted.
        samples: (n rows) the samples (default: those of the scenes).

    Raises:
        UsageError: if a factor is unknown or none is given.

    Source: Rasouli and Kotseruba, IV 2024, section IV-C.
    """
    unknown = [name for name in factors if name not in FACTORS]
    if unknown or not factors:
        raise UsageError(f"no factor {unknown or 'is named'}; there are {', '.join(FACTORS)}")
    held = scenes.samples if samples is None else samples
    columns = [FACTORS[name](scenes, held, config) for name in factors]
    parts = [[f"{name}={label}" for label in column] for name, column in zip(factors, columns, strict=True)]
    return np.array(["; ".join(labels) for labels in zip(*parts, strict=True)], dtype=object)


def _scale(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Mean height of the box in pixels."""
    tops = _over(scenes, samples, config, ("y1_px", "y2_px"))
    if tops is None:
        return _nothing(samples)
    return classify_by_edges(np.abs(tops[..., 1] - tops[..., 0]).mean(axis=1), config.scale_edges_px)


def _state(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Walking or standing, by the larger part of the time."""
    tags = _over(scenes, samples, config, ("action",))
    if tags is None:
        return _nothing(samples)
    codes = _categories(scenes.boxes["action"])
    walking = tags[..., 0] == (codes.index("walking") if "walking" in codes else -1)
    tagged = ~np.isnan(tags[..., 0])
    # The published code averages the codes, where a missing tag is -1.
    if config.untagged_state == "standing":
        share = np.where(tagged, walking, -1).mean(axis=1)
        return np.where(share > 0.5, "walking", "standing").astype(object)
    share = walking.sum(axis=1) / np.maximum(tagged.sum(axis=1), 1)
    named = np.where(share > 0.5, "walking", "standing").astype(object)
    return np.where(tagged.any(axis=1), named, UNKNOWN)


def _classify_ego_speed(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Mean speed of the ego vehicle in km/h."""
    speeds = _frames_over(scenes, samples, config, "ego_speed_kmh")
    if speeds is None:
        return _nothing(samples)
    known = ~np.isnan(speeds)
    mean = np.where(known, speeds, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(known.any(axis=1), classify_by_edges(mean, config.speed_edges_kmh), UNKNOWN)


def _ego_action(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """What the ego vehicle does most of the time, where a category stands for its speed."""
    if "vehicle_action" not in scenes.frames.columns:
        return _nothing(samples)
    names = _categories(scenes.frames["vehicle_action"])
    codes = _frames_over(scenes, samples, config, "vehicle_action", names)
    return _nothing(samples) if codes is None or not names else _most_frequent(codes, names)


def _signal(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """The traffic light for the ego vehicle: forbid, allow, or none where no light is there."""
    kinds = _of_tubes(scenes, samples, "signalized")
    lights = _frames_over(scenes, samples, config, "traffic_light", LIGHTS)
    if kinds is None:
        return _nothing(samples)
    lit = np.isin(kinds, ("S", "CS"))
    state = _nothing(samples) if lights is None else _light(lights, config)
    return np.where(kinds == UNKNOWN, UNKNOWN, np.where(lit, state, "none"))


def _road(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """One-way or two-way traffic."""
    names = {"OW": "one-way", "TW": "two-way"}
    values = _of_tubes(scenes, samples, "traffic_direction")
    if values is None:
        return _nothing(samples)
    return np.array([names.get(value, UNKNOWN) for value in values], dtype=object)


def _lanes(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Narrow or wide, by the number of lanes."""
    lanes = _of_tubes(scenes, samples, "num_lanes")
    if lanes is None:
        return _nothing(samples)
    named = [UNKNOWN if n == UNKNOWN else "narrow" if int(n) < config.narrow_lanes else "wide" for n in lanes]
    return np.array(named, dtype=object)


def _flag(column: str) -> Callable[[Scenes, pl.DataFrame, FactorConfig], Labels]:
    """A factor that says whether a frame flag holds at the first observed frame."""

    def label(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
        values = _frames_over(scenes, samples, config, column)
        if values is None:
            return _nothing(samples)
        first = values[:, 0]
        return np.where(np.isnan(first), UNKNOWN, np.where(first > 0, "yes", "no")).astype(object)

    return label


FACTORS: dict[str, Callable[[Scenes, pl.DataFrame, FactorConfig], Labels]] = {
    "scale": _scale,
    "state": _state,
    "speed": _classify_ego_speed,
    "ego_action": _ego_action,
    "signal": _signal,
    "road": _road,
    "lanes": _lanes,
    "crosswalk": _flag("ped_crossing"),
    "pedestrian_sign": _flag("ped_sign"),
    "stop_sign": _flag("stop_sign"),
}


def _nothing(samples: pl.DataFrame) -> Labels:
    return np.full(len(samples), UNKNOWN, dtype=object)


def _over(
    scenes: Scenes, samples: pl.DataFrame, config: FactorConfig, columns: Sequence[str]
) -> npt.NDArray[np.float64] | None:
    """(n, t, c) box columns over the window, None where the dataset lacks them."""
    if scenes.boxes.is_empty() or any(c not in scenes.boxes.columns for c in columns):
        return None
    after = config.prediction_frames if config.window == "sequence" else 0
    return extract_windows(scenes, samples, columns, after=after)


def _frames_over(
    scenes: Scenes,
    samples: pl.DataFrame,
    config: FactorConfig,
    column: str,
    names: Sequence[str] | None = None,
) -> npt.NDArray[np.float64] | None:
    """(n, t) a column of the frames over the window, NaN where unknown; None where there is none."""
    frames = _over(scenes, samples, config, ("frame",))
    if frames is None or column not in scenes.frames.columns:
        return None
    return get_frame_values(scenes, column, samples["video"], frames[..., 0], names)


def _of_tubes(scenes: Scenes, samples: pl.DataFrame, column: str) -> Labels | None:
    """(n,) an attribute of each sample's pedestrian as text; None where the dataset has no such column."""
    if column not in scenes.tubes.columns:
        return None
    known = scenes.tubes.select("tube", pl.col(column).cast(pl.String).fill_null(UNKNOWN))
    found = samples.select("tube").join(known, on="tube", how="left", maintain_order="left")[column]
    return np.array(found.to_list(), dtype=object)


def classify_by_edges(values: npt.NDArray[np.float64], edges: Sequence[float]) -> Labels:
    """The class of each value: up to the first edge, (low, high] between two, above the last."""
    ends = [f"{edge:g}" for edge in edges]
    names = [f"{low}-{high}" for low, high in zip(["0", *ends[:-1]], ends, strict=True)] + [f"{ends[-1]}+"]
    # side="left" puts a value at an edge into the class that ends there, as published.
    return np.array(names, dtype=object)[np.searchsorted(np.asarray(edges), values, side="left")]


def _most_frequent(codes: npt.NDArray[np.float64], names: Sequence[str]) -> Labels:
    """The most frequent known code of each row by name, the first of equals."""
    counts = np.stack([(codes == code).sum(axis=1) for code in range(len(names))], axis=1)
    named = np.array(names, dtype=object)[counts.argmax(axis=1)]
    return np.where(counts.any(axis=1), named, UNKNOWN)


def _light(codes: npt.NDArray[np.float64], config: FactorConfig) -> Labels:
    """Whether the light, a place in LIGHTS, forbids or allows the ego vehicle to go on."""
    if config.light == "mean_code":
        return np.where(np.nan_to_num(codes).mean(axis=1) < 2, "forbid", "allow").astype(object)
    red, yellow, green = ((codes == code).sum(axis=1) for code in (1, 2, 3))
    # As many frames of red as of another state forbid.
    named = np.where(red >= np.maximum(yellow, green), "forbid", "allow").astype(object)
    return np.where(red + yellow + green > 0, named, UNKNOWN)


def _categories(column: pl.Series) -> list[str]:
    """The names behind a column's codes, in the order of the codes."""
    dtype = encode_as_enum(column).dtype
    return [str(name) for name in dtype.categories] if isinstance(dtype, pl.Enum) else []
