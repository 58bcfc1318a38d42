"""Where people will be: windows of tracks as they were annotated, states for predictors, and forecasts in pixels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.metrics.trajectories import Forecast, Paths
from roadaware.models.trajectory.motion import StateForecast, States
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.distributions import PlaneMixture
from roadaware.tasks.crossing_tracks import PUBLISHED_FPS
from roadaware.tasks.poses import people_in

GROUND = ("x_m", "z_m")
"""Columns of boxes that say where somebody stands: to the right of the camera, and in front of it."""
_SIZES = {"kitti tracking": (1242.0, 375.0)}
"""Images whose size annotations do not state: KITTI's, which differ by a few pixels from drive to drive."""
_WHOLE = 0.02
"""Rates whose ratio is this near to a whole number have it."""
_FARTHEST_M = 500.0
"""KITTI writes -1000 where nobody measured."""


@dataclass(frozen=True)
class WindowProtocol:
    """How windows are cut.

    Args:
        observe_s, predict_s: seconds that are seen, and that are asked for: at 30 frames a second 15 and 45 of them.
        rate_fps: of the windows; the rate of a video is a whole multiple of it (default: that of the video).
        stride_s: from one window of a track to the next.
        ground: places on the ground in metres instead of boxes.

    Raises:
        UsageError: if a number has no meaning.
    """

    observe_s: float = 0.5
    predict_s: float = 1.5
    rate_fps: float | None = None
    stride_s: float = 0.5
    ground: bool = False

    def __post_init__(self) -> None:
        numbers = (self.observe_s, self.predict_s, self.stride_s, self.rate_fps or 1.0)
        if not all(np.isfinite(number) and number > 0 for number in numbers):
            raise UsageError(f"seconds and rates of windows are above 0; got {self}")


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of tracks, n of them.

    Args:
        past: (n, t, 4) corners in pixels, or (n, t, 2) metres to the right and ahead.
        future: (n, m, 4) or (n, m, 2).
        size_px: (n, 2) width and height of the image; NaN where unknown.
        step_s: seconds from one step to the next.
        name: (n,) of the track.
        video: (n,).
        frame: (n,) of the newest observed box.
        left_out: why tracks and boxes are not among them, with how many.
    """

    past: Floats
    future: Floats
    size_px: Floats
    step_s: float
    name: npt.NDArray[np.str_]
    video: npt.NDArray[np.str_]
    frame: Ints
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.past)

    @property
    def people(self) -> int:
        """How many tracks they are of."""
        return len(set(zip(self.video.tolist(), self.name.tolist(), strict=True)))

    def some(self, rows: Bools | Ints) -> Self:
        """Some of the windows."""
        return replace(
            self, past=self.past[rows], future=self.future[rows], size_px=self.size_px[rows], name=self.name[rows],
            video=self.video[rows], frame=self.frame[rows],
        )  # fmt: skip


def cut_windows(tables: Scenes | Predictions, protocol: WindowProtocol, fps: float | None = None) -> Windows:
    """All windows of the people of a set.

    Boxes are taken as they were annotated: a track is cut where a frame is missing, and nothing is filled in. Tracks that
    are groups of people (`track_label` people) are left out.

    Args:
        tables: with tubes.
        protocol: how.
        fps: of videos whose rate the tables do not state (default: 30 for JAAD and PIE).

    Raises:
        InputError: if nobody is there, no stretch is long enough, a rate is unknown or no multiple of the protocol's, or
            places on the ground are asked for and not known.
    """
    rows = _list_rows(tables, protocol)
    rates, sizes = _read_videos(tables, fps)
    left = {"groups of people": 0, "boxes without an extent or place": 0, "holes": 0, "tracks of one box": 0,
            "tracks of which no stretch is long enough": 0}  # fmt: skip
    if "track_label" in tables.tubes.columns and "name" in tables.tubes.columns:
        groups = tables.tubes.filter(pl.col("track_label").cast(pl.String) == "people").select(
            pl.col("video").cast(pl.String), pl.col("name").cast(pl.String)
        )
        before = rows.select("video", "name").n_unique()
        rows = rows.join(groups, on=["video", "name"], how="anti", maintain_order="left")
        left["groups of people"] = before - rows.select("video", "name").n_unique()
    kept: list[tuple[Floats, Floats, str, str, Ints]] = []
    steps_s = set()
    columns = list(GROUND) if protocol.ground else list(CORNERS)
    for (video, name), track in rows.group_by("video", "name", maintain_order=True):
        step, rate = _get_step(rates.get(str(video)), protocol, str(video))
        seen, ahead = round(protocol.observe_s * rate), round(protocol.predict_s * rate)
        if seen < 2 or ahead < 1:
            raise UsageError(
                f"at {rate:g} frames a second {protocol.observe_s:g} s are {seen} boxes and {protocol.predict_s:g} s are "
                f"{ahead}; two are observed and one is predicted at least"
            )
        steps_s.add(round(1 / rate, 6))
        track = track.sort("frame").unique("frame", keep="first", maintain_order=True)
        frames, values = track["frame"].to_numpy(), track.select(columns).to_numpy().astype(np.float64)
        sound = _is_sound(values, protocol.ground)
        left["boxes without an extent or place"] += int((~sound).sum())
        frames, values = frames[sound], values[sound]
        left["tracks of one box"] += len(frames) == 1
        breaks = np.flatnonzero(np.diff(frames) != 1) + 1
        left["holes"] += len(breaks)
        found = 0
        for at, box in zip(np.split(frames, breaks), np.split(values, breaks), strict=True):
            newest = np.arange(
                (seen - 1) * step, len(at) - ahead * step, max(1, round(protocol.stride_s * rate * step))
            )
            if not len(newest):
                continue
            found += len(newest)
            past = box[newest[:, None] + step * np.arange(1 - seen, 1)]
            future = box[newest[:, None] + step * np.arange(1, ahead + 1)]
            kept.append((past, future, str(video), str(name), at[newest]))
        left["tracks of which no stretch is long enough"] += not found
    if not kept:
        raise InputError(
            f"no track has {protocol.observe_s + protocol.predict_s:g} s without a hole: {left}",
            hint="observe or predict fewer seconds",
        )
    if len(steps_s) > 1:
        raise InputError(f"videos of several frame rates (steps of {sorted(steps_s)} s) are not asked together",
                         hint="give the protocol a rate that divides all of them")  # fmt: skip
    unknown = (np.nan, np.nan)
    return Windows(
        np.concatenate([each[0] for each in kept]), np.concatenate([each[1] for each in kept]),
        np.concatenate([np.tile(sizes.get(each[2], unknown), (len(each[0]), 1)) for each in kept]),
        steps_s.pop(),
        np.array([each[3] for each in kept for _ in range(len(each[0]))]),
        np.array([each[2] for each in kept for _ in range(len(each[0]))]),
        np.concatenate([each[4] for each in kept]), left,
    )  # fmt: skip


def _list_rows(tables: Scenes | Predictions, protocol: WindowProtocol) -> pl.DataFrame:
    rows = people_in(tables)
    if not protocol.ground:
        return rows
    if missing := [name for name in GROUND if name not in tables.boxes.columns]:
        raise InputError(
            f"places on the ground need the boxes' {', '.join(missing)}", hint="kitti_tracking has them"
        )
    names = tables.tubes.select("tube", name=pl.col("name").cast(pl.String))
    places = tables.boxes.join(names, on="tube").select(
        pl.col("video").cast(pl.String), "frame", "name", *GROUND
    )
    keys = ["video", "frame", "name"]
    return rows.join(places.unique(keys, keep="first"), on=keys, how="left", maintain_order="left")


def _read_videos(
    tables: Scenes | Predictions, fps: float | None
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Rates and image sizes by video, where they are known."""
    dataset = tables.meta.dataset.lower()
    usual, size = fps or PUBLISHED_FPS.get(dataset), _SIZES.get(dataset)
    rates: dict[str, float] = {}
    sizes: dict[str, tuple[float, float]] = {}
    for row in tables.videos.iter_rows(named=True):
        video = str(row["video"])
        if rate := row.get("fps") or usual:
            rates[video] = float(rate)
        if row.get("width_px") and row.get("height_px"):
            sizes[video] = (float(row["width_px"]), float(row["height_px"]))
        elif size:
            sizes[video] = size
    return rates, sizes


def _get_step(source: float | None, protocol: WindowProtocol, video: str) -> tuple[int, float]:
    """Frames of the video from one step to the next, and steps a second."""
    if source is None:
        raise InputError(
            f"the frame rate of {video} is unknown, and windows are in seconds",
            hint="name it where the tracks are opened (fps)",
        )
    if protocol.rate_fps is None:
        return 1, source
    ratio = source / protocol.rate_fps
    if ratio < 1 - _WHOLE or abs(ratio - round(ratio)) > _WHOLE:
        raise InputError(
            f"{video} has {source:g} frames a second, which is no multiple of {protocol.rate_fps:g}: boxes would have to be "
            "filled in, and what is filled in is easy to predict",
            hint="take a rate that divides that of the video, or none",
        )
    return round(ratio), source / round(ratio)


def _is_sound(values: Floats, ground: bool) -> Bools:
    """(n,) boxes with an extent, or places that somebody measured."""
    finite = np.isfinite(values).all(axis=1)
    if ground:
        return np.asarray(finite & (np.abs(values) < _FARTHEST_M).all(axis=1))
    return np.asarray(finite & (values[:, 2] > values[:, 0]) & (values[:, 3] > values[:, 1]))


def describe_boxes(corners: Floats) -> Floats:
    """(..., 4) x and y of the centre, width and height of corners (..., 4), in pixels."""
    low, high = corners[..., :2], corners[..., 2:]
    return np.concatenate([(low + high) / 2, high - low], axis=-1)


def get_states(windows: Windows) -> States:
    """What predictors see of windows."""
    if windows.past.shape[2] == 2:
        newest = windows.past[:, -1:]
        return States(windows.past - newest, np.zeros((len(windows), 3)), windows.step_s)
    boxes = describe_boxes(windows.past)
    newest = boxes[:, -1]
    size = np.where(np.isfinite(windows.size_px), windows.size_px, np.inf)
    position = np.column_stack([newest[:, :2] / size, newest[:, 3] / size[:, 1]])
    # Of an image whose size is unknown the middle is assumed, so that nothing stands at its edge by mistake.
    position[np.isinf(size).any(axis=1)] = (0.5, 0.5, 0.0)
    return States(_relate(boxes, newest), position, windows.step_s)


def get_future(windows: Windows) -> Floats:
    """(n, m, d) the states that came, relative to the newest observed one as those of `get_states`."""
    if windows.past.shape[2] == 2:
        return np.asarray(windows.future - windows.past[:, -1:])
    return _relate(describe_boxes(windows.future), describe_boxes(windows.past[:, -1]))


def _relate(boxes: Floats, newest: Floats) -> Floats:
    place = (boxes[..., :2] - newest[:, None, :2]) / newest[:, None, 3:]
    return np.concatenate([place, np.log(boxes[..., 2:] / newest[:, None, 2:])], axis=-1)


def get_paths(windows: Windows) -> Paths:
    """What came, as metrics take it."""
    steps = windows.future.shape[1]
    ground = windows.past.shape[2] == 2
    places = windows.future if ground else describe_boxes(windows.future)[..., :2]
    scale = np.ones(len(windows)) if ground else describe_boxes(windows.past[:, -1])[:, 3]
    return Paths(
        places, scale, None if ground else windows.future, windows.step_s * np.arange(1, steps + 1), windows.name,
        windows.video, windows.frame,
    )  # fmt: skip


def place_forecast(forecast: StateForecast, windows: Windows) -> Forecast:
    """A forecast of states in pixels, or metres, of the windows."""
    mean, deviation = forecast.mean[..., :2], forecast.deviation[..., :2]
    if windows.past.shape[2] == 2:
        origin = windows.past[:, -1][:, None, None]
        return Forecast(PlaneMixture(forecast.weight, mean + origin, deviation, forecast.correlation))
    newest = describe_boxes(windows.past[:, -1])
    scale = newest[:, None, None, 3:]
    places = PlaneMixture(
        forecast.weight, newest[:, None, None, :2] + mean * scale, deviation * scale, forecast.correlation
    )
    centre = places.centre
    logs = np.einsum("nk,nkmd->nmd", forecast.weight, forecast.mean[..., 2:])
    half = newest[:, None, 2:] * np.exp(np.clip(logs, -3.0, 3.0)) / 2
    return Forecast(places, np.concatenate([centre - half, centre + half], axis=-1))
