"""Which moments of many drives somebody should look at first: reasons, their combination, near duplicates, verdicts.

`find_peaks` of one drive and `rank_moments` of the peaks of all drives are pure functions of tables; `read_weights` and
`read_verdicts` read what people say. A reason is a number in [0, 1] at a box or a frame that rests on this frame and earlier
ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import check_range
from roadaware.errors import InputError, UsageError
from roadaware.io.csv import from_sheets, read_cells
from roadaware.io.sources import to_printable
from roadaware.models.event_head.features import CAMERA_M, FOCAL_SHARE

REASONS: Mapping[str, str] = {
    "collision": "time to contact, of somebody whose box grows and whose path meets the own vehicle",
    "crossing": "somebody is likely to cross in front of the moving vehicle",
    "appearance": "somebody appears close ahead, in the middle of the image, where nobody was a second ago",
    "cut_in": "a vehicle moves sideways into the way of the own vehicle, close ahead",
    "unknown": "something that is no common road user lies on the way",
    "red_light": "the vehicle goes on towards a red light that it can hardly stop at any more",
    "braking": "the own vehicle brakes hard",
    "alarm": "a siren, a horn, a crash or a call for help is heard",
    "rare": "a label that few tubes of these drives have",
    "unsure": "the models are unsure about somebody near the way",
    "disagreement": "another model sees nobody where this one does, near the way",
}
"""Name of each reason, and what it is."""

PEAKS: Mapping[str, Any] = {
    "video": pl.String,
    "reason": pl.String,
    "tube": pl.Int64,
    "frame": pl.Int64,
    "t_s": pl.Float64,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "value": pl.Float64,
    "label": pl.String,
    "kind": pl.String,
    "chance": pl.Float64,
    "seconds": pl.Float64,
    "metres": pl.Float64,
}
"""Columns of peaks: `label` is whom or what it is about, `chance`, `seconds` and `metres` what its sentence says."""

_HEIGHT_M = {
    "Ped": 1.7,
    "Cyc": 1.7,
    "Mobike": 1.6,
    "MedVeh": 2.2,
    "LarVeh": 3.2,
    "Bus": 3.2,
    "TL": 1.0,
    "OthTL": 1.0,
    "thing": 0.6,
}
"""Of agents, and of lights with their housing, to tell distances and offsets from heights of boxes; 1.5 m, a car, of all
others."""
_PEOPLE = frozenset({"Ped", "pedestrian", "person", "ped"})
BODIES = (*sorted(_PEOPLE), "Cyc", "Mobike", "cyclist")
"""Labels of agents whose boxes show a person, on foot or riding."""
_LIGHTS = frozenset({"TL", "OthTL", "traffic_light"})
_CROSSES = ("Xing", "XingFmLft", "XingFmRht")
ALARMS = (
    "siren",
    "honking",
    "airhorn",
    "crashing",
    "shattering",
    "explosion",
    "gunshot",
    "shouting for help",
)
"""First words of the sounds of alarm."""
_TREND_S = 1.0
"""Over which slopes are fitted, looking back: shorter ones follow the trembling of detected boxes."""
_TREMBLE = 0.05
"""Share of their size by which detected boxes tremble, at least."""
_EDGE = 0.15
"""A box whose side is nearer to the edge of the image than this share of its size may be cut, as far as detected sides
tremble: the middle of a cut box is nearer to the way than whom it shows."""
_ARC_CHANGES_M = (2.0, 0.7)
"""By how much the driven arc swings at somebody's distance within `_TREND_S`, where what moves sideways says nothing, and
where all of it."""
_SHARPEST_PER_M = 0.2
"""Curvature of the tightest turn of a car, 5 m: what a yaw rate says of one that hardly moves may be any."""
_SMOOTH_S = 0.6
"""Over which scores are averaged, looking back."""
_PASSED_S, _LOST_S = (2.0, 1.0), (1.2, 0.6)
"""A light that is seen no more is taken to be as it was for the second of these, and nothing is known of it from the first
on: one that was near, and has left the image, and one that was farther away."""
_STOPS_M = 3.0
"""Who stops so far behind a light has stopped: lights stand before and behind the line, and their place is known to 2 m."""
_TURN_RAD = (0.6, 0.3)
"""Turned by so much since a second before a light was seen last, the vehicle does not pass it; with less than the second it
may."""
_SIGHTS = 3.0
"""Scores of the boxes of a light, summed over a second, from which on its colour counts fully."""
_NEAR_M, _SAME_M, _JUNCTION_M = 12.0, 5.0, 40.0
"""A light is seen from the first of these distances before it is passed; lights nearer to each other along the way than the
second are one, and those farther apart than the third belong to two junctions."""
_USUAL_MPS = 8.0
"""Speed of a vehicle of which nobody knows it: about 30 km/h."""
_RUNS_MPS, _DRIVES_MPS = 4.0, 10.0
"""How fast people and others come towards the own vehicle, at most, in streets."""
_FOOT, _KIND_ERROR = 0.04, 0.3
"""Share of their height by which the feet of detected boxes tremble, at least, and by which agents are higher or lower than
others of their kind, a child or a tall van."""
_UNTOLD = 0.5
"""What a value is times where the speed is not known, but is at other times of the video."""
_HARDLY: tuple[Floats, Floats] = np.array([2.5, 1.5]), np.array([5.0, 4.0])
"""Braking in m/s^2 that it takes to stop before a light, and speed in m/s, where passing it is no matter, and where it is."""
_REMEMBERED_S, _FARTHER = 20.0, 0.35
"""For so long a light is known that is not seen any more; and by what share of its distance that may be wrong."""
_BRAKING_S = 0.8
"""Over which the own braking is measured, looking back."""
_USUAL_S, _LEAST_HEARD = 30.0, 5
"""What a listener scored before, and how often at least, tells what it scores where nothing is heard."""
_ABOVE: Mapping[str, tuple[float, float]] = {"siren": (0.03, 0.08)}
"""How far above what is usual the score of a listener is where an alarm has the values 0 and 1: where no siren is, it is
above the first in one second of 1,000 (2 of 1,835, and none of 4,458 in other films); of other sounds `_OTHERS_ABOVE`."""
_OTHERS_ABOVE = (0.05, 0.3)
_GOES_ON_S = 2.0
"""An alarm that is silent for less goes on."""
_LEAST = 0.08
"""Values below are no peaks."""
_APART_S = 4.0
_MOST_PEAKS = 5
"""Of one reason and tube."""
_PAD_S, _SHORTEST_S, _LONGEST_S = 1.0, 2.0, 6.0


@dataclass(frozen=True, eq=False)
class Drive:
    """What is known of one video.

    Args:
        video: its name.
        size_px: width and height of the image that boxes are in.
        frame: (F,) numbers of the frames, ascending.
        t_s: (F,) their times.
        speed_mps: (F,) of the own vehicle; NaN where nobody says it.
        standing: (F,) probability that it stands, by the images or what a detector says of it; NaN where nobody does.
        boxes: `frame`, `tube` (-1 without one), `x1`, `y1`, `x2`, `y2`, `score`, `agent` (a label, or empty).
        labels: (boxes, labels) scores of `names`, in the order of the boxes.
        names: (kind, label) of each column of `labels`.
        unknown: (boxes,) how surely a box is around something that is no common road user.
        crossing: `tube`, `frame`, `crossing`, `low`, `high`: what predictors said; without rows where none was asked.
        sounds: `t_s`, `end_s`, `name`, `score`.
        yaw_rps: (F,) how fast it turns, in radians a second; NaN where nobody says it, empty where nobody does at all.
        focal_px, horizon_px, camera_m: of the camera; usual ones where None.
        others: boxes of another model of the same video, as of `boxes`; None without one.
        listened: whether `sounds` are what a listener said all the time, and not what is true or was found.
        added: (boxes,) which boxes are of a finder of obstacles and not of the model; empty where none are.
        proven: (boxes,) which boxes are evidence, and not the past of a track alone that was not sure yet; empty for all.
        speed_told: whether the speed is known at any time of the video, so that elsewhere it is not known yet, or not for a
            while; default: whether `speed_mps` holds one.
    """

    video: str
    size_px: tuple[float, float]
    frame: Ints
    t_s: Floats
    speed_mps: Floats
    standing: Floats
    boxes: pl.DataFrame
    labels: npt.NDArray[np.float32]
    names: tuple[tuple[str, str], ...] = ()
    unknown: Floats = field(default_factory=lambda: np.zeros(0))
    crossing: pl.DataFrame = field(default_factory=pl.DataFrame)
    sounds: pl.DataFrame = field(default_factory=pl.DataFrame)
    yaw_rps: Floats = field(default_factory=lambda: np.zeros(0))
    focal_px: float | None = None
    horizon_px: float | None = None
    camera_m: float | None = None
    others: pl.DataFrame | None = None
    listened: bool = False
    added: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    proven: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    speed_told: bool | None = None


@dataclass(frozen=True)
class TriageConfig:
    """How reasons are weighed and moments told apart.

    Args:
        collision: how much somebody should look at a moment for this reason alone, if its value is 1; so of the others.
        crossing: see collision.
        appearance: see collision.
        cut_in: see collision.
        unknown: see collision.
        red_light: see collision.
        braking: see collision.
        alarm: see collision.
        rare: see collision.
        unsure: see collision.
        disagreement: see collision.
        repeat: a moment is worth so many times what it is for each higher one of its video with the same first reason
            within `repeat_s`, or of the same tube.
        repeat_s: seconds.
        usual_an_hour: a value of a reason that is reached more often than so many times an hour counts for less.
        join_s: peaks this near to that of a moment belong to it; no two moments of a video overlap by more.
    """

    collision: float = 0.7
    crossing: float = 0.6
    appearance: float = 0.6
    cut_in: float = 0.8
    unknown: float = 0.8
    red_light: float = 0.9
    braking: float = 0.6
    alarm: float = 0.8
    rare: float = 0.2
    unsure: float = 0.1
    disagreement: float = 0.1
    repeat: float = 0.5
    repeat_s: float = 30.0
    usual_an_hour: float = 2.0
    join_s: float = 2.0

    def __post_init__(self) -> None:
        for name in (*REASONS, "repeat"):
            check_range(name, getattr(self, name), 0, 1)
        check_range("repeat_s", self.repeat_s, 0, 86400)
        check_range("usual_an_hour", self.usual_an_hour, 0, 1e6)
        check_range("join_s", self.join_s, 0.1, 60)
        if not any(getattr(self, name) for name in REASONS):
            raise UsageError("every reason weighs 0: give one of them a weight, or nothing can be ranked")

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each reason."""
        return {name: float(getattr(self, name)) for name in REASONS}


# One drive: values of each reason at each box or frame, then their peaks.


def find_peaks(drive: Drive) -> pl.DataFrame:
    """The peaks of all reasons in one video, in the columns of `PEAKS`; those of `rare` still lack the prior of the set.

    A value at a frame follows from this frame and earlier ones alone; `start_s` and `end_s`, the stretch to show, do not.
    """
    scene = _Scene(drive)
    parts = []
    for reason, rows in _list_values(scene):
        parts.append(_pick(rows.filter(pl.col("value") >= _LEAST), reason))
    found = pl.concat([_conform(part) for part in parts]) if parts else pl.DataFrame(schema=PEAKS)
    last = float(drive.t_s[-1]) if len(drive.t_s) else 0.0
    return found.with_columns(
        video=pl.lit(drive.video), start_s=pl.col("start_s").clip(0.0), end_s=pl.col("end_s").clip(0.0, last)
    ).select(list(PEAKS))


def list_values(drive: Drive) -> dict[str, pl.DataFrame]:
    """What each reason says at each box or frame: `tube`, `frame`, `t_s`, `value` and what its sentence needs."""
    return dict(_list_values(_Scene(drive)))


def count_labels(drive: Drive) -> pl.DataFrame:
    """In how many tubes of a video each label is held with a mean score of a half: `kind`, `label`, `tubes`, `of`.

    Counts of several drives add up, and give the prior that `rank_moments` holds rare labels against.
    """
    scene = _Scene(drive)
    best = scene.tube_means()
    of = len(best)
    kinds, labels = zip(*drive.names, strict=True) if drive.names else ((), ())
    counts = (best >= 0.5).sum(axis=0) if of else np.zeros(len(drive.names), np.int64)
    return pl.DataFrame(
        {"kind": list(kinds), "label": list(labels), "tubes": counts, "of": np.full(len(drive.names), of)},
        schema={"kind": pl.String, "label": pl.String, "tubes": pl.Int64, "of": pl.Int64},
    )


def _ramp(value: Floats, none: float | Floats, full: float | Floats) -> Floats:
    """0 at `none` and beyond, 1 at `full` and beyond, straight between; 0 of what is not known."""
    found: Floats = np.nan_to_num(np.clip((value - none) / (full - none), 0.0, 1.0), nan=0.0)
    return found


class _Scene:
    """A drive as arrays in the order of tubes and frames, with what several reasons need."""

    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        self._windows: dict[float, Ints] = {}
        boxes = drive.boxes.with_row_index("row").sort("tube", "frame", maintain_order=True)
        self.row = boxes["row"].to_numpy().astype(np.int64)
        self.tube, self.frame = boxes["tube"].to_numpy(), boxes["frame"].to_numpy()
        self.box = boxes.select("x1", "y1", "x2", "y2").to_numpy().astype(np.float64).reshape(-1, 4)
        self.score = boxes["score"].to_numpy().astype(np.float64)
        self.agent = np.array(boxes["agent"].to_list(), dtype=object)
        self.added = drive.added[self.row] if len(drive.added) else np.zeros(len(self.row), bool)
        self.proven = drive.proven[self.row] if len(drive.proven) else np.ones(len(self.row), bool)
        self.place = np.searchsorted(drive.frame, self.frame).clip(0, max(0, len(drive.frame) - 1))
        self.t_s = drive.t_s[self.place] if len(drive.t_s) else np.zeros(0)
        width, height = drive.size_px
        self.focal = drive.focal_px or FOCAL_SHARE * width
        self.horizon = height / 2 if drive.horizon_px is None else drive.horizon_px
        self.camera_m = drive.camera_m or CAMERA_M
        # Runs of one tube; boxes without a tube are runs of one box.
        new = np.ones(len(self.tube), bool)
        new[1:] = (self.tube[1:] != self.tube[:-1]) | (self.tube[1:] < 0)
        self.run = np.cumsum(new) - 1
        self.first = np.flatnonzero(new)
        self.high = np.maximum(self.box[:, 3] - self.box[:, 1], 1.0)
        self.middle = (self.box[:, 0] + self.box[:, 2]) / 2
        edge_x = np.maximum(0.01 * width, _EDGE * (self.box[:, 2] - self.box[:, 0]))
        edge_y = np.maximum(0.01 * height, _EDGE * self.high)
        self.cut_aside = (self.box[:, 0] < edge_x) | (self.box[:, 2] > width - edge_x)
        self.cut = self.cut_aside | (self.box[:, 1] < edge_y) | (self.box[:, 3] > height - edge_y)
        self.kind_m = np.array([_HEIGHT_M.get(str(name), 1.5) for name in self.agent])
        self.people = np.array([name in _PEOPLE for name in self.agent], bool)
        self.light = np.array([name in _LIGHTS for name in self.agent], bool)
        self.ahead_m = self.focal * self.kind_m / self.high
        known = ~np.isnan(drive.speed_mps)
        usual = _USUAL_MPS * (1 - np.nan_to_num(drive.standing, nan=0.0))
        self.frame_speed: Floats = np.where(known, np.nan_to_num(drive.speed_mps), usual)
        turn = np.nan_to_num(drive.yaw_rps) if len(drive.yaw_rps) else np.zeros(len(drive.frame))
        bend = np.clip(turn / np.maximum(self.frame_speed, 1.0), -_SHARPEST_PER_M, _SHARPEST_PER_M)
        # Slopes look back over a second, in which a turn that begins or ends moves everything sideways.
        since = np.searchsorted(drive.t_s, drive.t_s - _TREND_S - 1e-6)
        swing = np.array([np.ptp(bend[low : k + 1]) for k, low in enumerate(since.tolist())])
        # At a distance z along the axis an arc of curvature k is z^2 k / 2 beside it, to the left for k > 0; nobody is
        # taken to drive on along it by more than 0.8 rad.
        reach = (
            np.minimum(self.ahead_m, 0.8 / np.maximum(np.abs(bend[self.place]), 1e-9))
            if len(bend)
            else self.ahead_m
        )
        half = reach**2 / 2
        here = bend[self.place] if len(bend) else np.zeros(len(self.tube))
        # To the right of the arc that is driven now, in metres, as heights of the box have it without any focal length.
        self.aside_m = (self.middle - width / 2) / self.high * self.kind_m + here * half
        self.straight = (
            _ramp(swing[self.place] * half, *_ARC_CHANGES_M) if len(bend) else np.ones(len(self.tube))
        )
        self.speed = self.frame_speed[self.place] if len(self.frame_speed) else np.zeros(len(self.tube))
        # What a score says grows with the boxes that are there: a ghost of one frame is worth less than a path.
        age = np.arange(len(self.tube)) - self.first[self.run] + 1 if len(self.tube) else np.zeros(0)
        self.sure = self.mean(self.score) * _ramp(age, 0.0, 3.0)
        # While the images of a film do not say the speed yet, or for a while, what rests on it may be any.
        self.speed_told = known.any() if drive.speed_told is None else drive.speed_told
        frame_told = np.where(known, 1.0, _UNTOLD) if self.speed_told else np.ones(len(known))
        self.told = frame_told[self.place] if len(known) else np.ones(len(self.tube))
        if drive.horizon_px is not None and drive.camera_m is not None:
            # Who floats above the ground that is at the distance of such a height, or sinks into it, by more than half of the
            # own height is doubted, after a pitch or slope of 0.05 rad: a child of two thirds of the usual height is not.
            ground = self.horizon + self.camera_m * self.high / self.kind_m
            off = (np.abs(self.box[:, 3] - ground) - 0.05 * self.focal) / self.high
            self.sure = self.sure * np.where(self.light, 1.0, _ramp(self.mean(off), 1.0, 0.5))

    def mean(self, values: Floats, window_s: float = _SMOOTH_S) -> Floats:
        """(n,) mean of the newest values of each tube, looking back."""
        start = self._starts(window_s)
        total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
        here = np.arange(len(values))
        found: Floats = (total[here + 1] - total[start]) / np.maximum(here + 1 - start, 1)
        return found

    def slope(self, values: Floats, tremble: Floats | float) -> tuple[Floats, Floats]:
        """(n,) slope per second of a line through the newest second of values of each tube, and its standard error.

        NaN with fewer than three values, or where a value is not finite.

        Args:
            values: (n,) of each box.
            tremble: their spread, at least: residuals of a few values may be small by chance.
        """
        start = self._starts(_TREND_S)
        n = len(values)
        least = np.broadcast_to(np.asarray(tremble, np.float64), (n,))
        slope, error = np.full(n, np.nan), np.full(n, np.nan)
        counts = np.arange(n) - start + 1
        for count in np.unique(counts[counts >= 3]).tolist():
            at = np.flatnonzero(counts == count)
            window = at[:, None] - np.arange(count - 1, -1, -1)
            t, y = self.t_s[window], values[window]
            t = t - t.mean(axis=1, keepdims=True)
            y = y - y.mean(axis=1, keepdims=True)
            square = (t**2).sum(axis=1)
            whole = square > 0
            b = np.where(whole, (t * y).sum(axis=1) / np.where(whole, square, 1.0), np.nan)
            rest = np.maximum(((y - b[:, None] * t) ** 2).sum(axis=1) / (count - 2), least[at] ** 2)
            slope[at], error[at] = b, np.sqrt(rest / np.where(whole, square, np.nan))
        return slope, error

    def drift(self) -> Floats:
        """(n,) metres a second to the right of the way, less two standard errors towards 0; 0 where nothing is known."""
        drift, error = self.slope(self.aside_m, _TREMBLE * np.maximum(np.abs(self.aside_m), 1.0))
        found: Floats = np.nan_to_num(np.sign(drift) * np.maximum(np.abs(drift) - 2 * error, 0.0))
        return found

    def time_to_contact(self) -> tuple[Floats, Floats]:
        """(n,) seconds until something is reached, by how fast its nearness grows, and (n,) the fewest that it may be.

        1,000 where it does not grow.
        What comes nearer grows, and its foot sinks in the image by the growth times the height of the camera in the image.
        Both say the growth with an error, and are taken by the weight of theirs: a box that was too small before grows, but
        does not sink. The rate is that less two standard errors (or two more), and that of half a window ago, which shortens
        the time.
        """
        grow, grow_error = self.slope(np.log(self.high), _TREMBLE)
        scale = self.kind_m / (self.camera_m * self.high)
        sink, sink_error = self.slope(self.box[:, 3], _FOOT * self.high)
        sink, sink_error = sink * scale, np.hypot(sink_error * scale, _KIND_ERROR * sink * scale)
        weight, other = grow_error**-2, sink_error**-2
        rate, error = (grow * weight + sink * other) / (weight + other), 2 * (weight + other) ** -0.5
        lag_s = (self.t_s - self.t_s[self._starts(_TREND_S)]) / 2

        def reach(rate: Floats) -> Floats:
            rate = np.nan_to_num(rate, nan=0.0)
            found: Floats = np.where(rate > 1e-3, np.maximum(1.0 / np.maximum(rate, 1e-3) - lag_s, 0.05), 1e3)
            return found

        return reach(rate - error), reach(rate + error)

    def _starts(self, window_s: float) -> Ints:
        """(n,) the first box of the same tube that is no older than the window."""
        if window_s in self._windows:
            return self._windows[window_s]
        found = np.zeros(len(self.tube), np.int64)
        for begin, end in self.runs():
            times = self.t_s[begin:end]
            found[begin:end] = begin + np.searchsorted(times, times - window_s - 1e-6)
        self._windows[window_s] = found
        return found

    def runs(self) -> Iterator[tuple[int, int]]:
        """Begin and end of the boxes of each tube."""
        ends = [*self.first[1:].tolist(), len(self.tube)]
        yield from zip(self.first.tolist(), ends, strict=False)

    def column(self, kind: str, labels: Sequence[str]) -> Floats:
        """(n,) the highest score of some labels of a kind; 0 without them."""
        at = [k for k, (of, name) in enumerate(self.drive.names) if of == kind and name in labels]
        if not at or not len(self.row):
            return np.zeros(len(self.row))
        found: Floats = self.drive.labels[self.row][:, at].max(axis=1).astype(np.float64)
        return found

    def tube_means(self) -> npt.NDArray[np.float32]:
        """(tubes, labels) mean scores of each tube that has three boxes or more; a finder of obstacles gives no labels."""
        rows = [
            self.drive.labels[self.row[begin:end]].mean(axis=0)
            for begin, end in self.runs()
            if end - begin >= 3 and self.tube[begin] >= 0 and not self.added[begin]
        ]
        return np.stack(rows) if rows else np.zeros((0, len(self.drive.names)), np.float32)

    def rows(
        self, value: Floats, mask: Bools | None = None, *, single: bool = False, **more: Any
    ) -> pl.DataFrame:
        """Values at boxes as a table; those of boxes without a tube where `single` says so."""
        held = np.where(self.proven, np.nan_to_num(value, nan=0.0), 0.0)
        held = held if mask is None else np.where(mask, held, 0.0)
        table = pl.DataFrame(
            {
                "tube": self.tube,
                "frame": self.frame,
                "t_s": self.t_s,
                "value": held,
                "label": [str(name) for name in self.agent],
                **more,
            },
            schema_overrides={"tube": pl.Int64, "frame": pl.Int64, "label": pl.String},
        )
        return table if single else table.filter(pl.col("tube") >= 0)


def _list_values(scene: _Scene) -> Iterator[tuple[str, pl.DataFrame]]:
    for reason, find in _FINDERS.items():
        yield reason, find(scene)


def _find_collisions(scene: _Scene) -> pl.DataFrame:
    """Time to contact by the growth of the box, 1 at 0.5 s and 0 at 4 s, times how near the paths come.

    Where the box will be at contact follows from its distance to the driven arc, which is constant of what is met.
    Source: Lee, Perception 1976 (time to contact).
    """
    left_s, least_s = scene.time_to_contact()
    # Nobody comes faster than people run or vehicles drive: a box that grows by more is another one's.
    fastest = scene.speed + np.where(scene.people, _RUNS_MPS, _DRIVES_MPS)
    left_s, least_s = np.maximum([left_s, least_s], scene.ahead_m / fastest)
    here_m, drift = scene.mean(scene.aside_m), scene.drift()
    # Who walks across is on the way for a moment, which may be that of contact.
    first_m, last_m = (here_m + drift * np.minimum(each, 4.0) for each in (least_s, left_s))
    meets_m = np.where(first_m * last_m < 0, 0.0, np.minimum(np.abs(first_m), np.abs(last_m)))
    side = _ramp(np.maximum(meets_m, 0.5 * np.abs(here_m)), 2.4, 1.2)
    # Who stands is not about to drive into anybody, and can be driven into.
    moving = 0.3 + 0.7 * _ramp(scene.speed, 0.5, 2.0)
    value = _ramp(left_s, 4.0, 0.5) * side * moving * scene.straight * scene.sure * scene.told
    return scene.rows(
        value,
        ~scene.cut_aside & ~scene.light & (scene.agent != "thing"),
        seconds=left_s,
        metres=scene.ahead_m,
    )


def _find_crossings(scene: _Scene) -> pl.DataFrame:
    """The probability that somebody crosses times how hard the vehicle has to brake before them, 1 at 3 m/s^2 and 0 at 0.5,
    and how near its way the person is."""
    said = scene.mean(scene.column("action", _CROSSES))
    asked = scene.drive.crossing
    if len(asked):
        rows = asked.select("tube", "frame", pl.col("crossing").fill_nan(None).fill_null(0.0))
        here = pl.DataFrame({"tube": scene.tube, "frame": scene.frame})
        held = here.join(rows, on=["tube", "frame"], how="left", maintain_order="left")["crossing"]
        # A predictor that was asked is believed; labels stand in where it could say nothing.
        said = np.where(held.is_not_null().to_numpy(), held.fill_null(0.0).to_numpy(), said)
    reach_s = scene.ahead_m / np.maximum(scene.speed, 0.1)
    hard = _ramp(scene.speed / (2 * np.maximum(reach_s, 0.1)), 0.5, 3.0) * _ramp(scene.speed, 0.5, 2.0)
    # Who walks away is past the way already; whoever comes nearer may be on it when the vehicle is there.
    drift, _ = scene.slope(scene.aside_m, 0.0)
    then_m = scene.aside_m + np.nan_to_num(drift) * np.minimum(reach_s, 3.0)
    meets = np.sign(then_m) != np.sign(scene.aside_m)
    nearest_m = np.where(meets, 0.0, np.abs(then_m))
    value = said * hard * _ramp(nearest_m, 5.0, 2.0) * scene.sure * scene.told
    return scene.rows(value, scene.people, chance=said, seconds=reach_s, metres=scene.ahead_m)


def _find_appearances(scene: _Scene) -> pl.DataFrame:
    """Who is first seen close ahead, in the half second after, away from the edge, where nobody was a second before."""
    drive, n = scene.drive, len(scene.tube)
    width = drive.size_px[0]
    fresh = np.zeros(n, bool)
    turn = np.nan_to_num(drive.yaw_rps)[scene.place] if len(drive.yaw_rps) else np.zeros(n)
    # What a turn brings in at the side was hidden by nothing; of what comes in the first boxes may be missed.
    swept = np.abs(turn) * scene.focal * _SMOOTH_S
    brought = np.where(turn > 0, scene.box[:, 0] < swept, scene.box[:, 2] > width - swept)
    for begin, end in scene.runs():
        if scene.tube[begin] < 0 or scene.cut[begin] or brought[begin]:
            continue
        at_s = scene.t_s[begin]
        # The first frames of a film show whom the film did not see come.
        if at_s < drive.t_s[0] + 1.0:
            continue
        # A track that was proven within a second of its begin is fresh from then on.
        proven_s = scene.t_s[begin + int(np.argmax(scene.proven[begin:end]))]
        fresh[begin:end] = scene.t_s[begin:end] <= min(proven_s, at_s + 1.0) + _SMOOTH_S
    near = fresh & (scene.ahead_m < 30.0) & ~scene.light & (scene.agent != "thing")
    by_frame = np.argsort(scene.t_s, kind="stable") if near.any() else np.zeros(0, np.int64)
    times = scene.t_s[by_frame]
    offset = scene.middle - width / 2
    for begin, end in scene.runs():
        if not near[begin:end].any():
            continue
        low = np.searchsorted(times, scene.t_s[begin] - 1.0 - 1e-6)
        before = by_frame[low : np.searchsorted(times, scene.t_s[begin] - 1e-6)]
        # A tube that was cut, and nobody new, was where this box is now, or where it was if the vehicle alone has moved, or
        # between the two: smaller, and nearer to the middle, by the way that was driven.
        gone_m = scene.speed[begin] * (scene.t_s[begin] - scene.t_s[before])
        smaller = scene.ahead_m[begin] / (scene.ahead_m[begin] + gone_m)
        ratio = np.log(scene.high[before] / scene.high[begin])
        alike = (ratio > np.log(smaller) - 0.4) & (ratio < 0.4)
        here, wide = offset[begin], max(scene.box[begin, 2] - scene.box[begin, 0], 0.03 * width)
        there = np.sort(np.stack([here * smaller, np.full(len(before), here)]), axis=0)
        close = (offset[before] > there[0] - wide) & (offset[before] < there[1] + wide)
        # A track that is not sure yet says nothing of others. The finder sees people whom vehicles hid until then: neither
        # these nor ghosts were that person.
        alike &= scene.proven[before]
        if scene.added[begin]:
            bodies = np.isin(scene.agent, BODIES)
            alike &= bodies[before] & (scene.score[before] >= 0.5)
        if (close & alike).any():
            near[begin:end] = False
    reach_s = scene.ahead_m / np.maximum(scene.speed, 0.1)
    value = _ramp(reach_s, 4.0, 2.0) * _ramp(np.abs(scene.aside_m), 5.0, 2.5) * scene.sure * scene.told
    value = value * _ramp(scene.speed, 1.0, 3.0)
    return scene.rows(value, near, seconds=reach_s, metres=scene.ahead_m)


def _find_cut_ins(scene: _Scene) -> pl.DataFrame:
    """A vehicle that drives at about the own speed and comes in from the side: how fast sideways, how close, how far in."""
    towards, error = scene.slope(np.abs(scene.aside_m), _TREMBLE * np.maximum(np.abs(scene.aside_m), 1.0))
    grow, _ = scene.slope(np.log(scene.high), _TREMBLE)
    came = -towards - np.nan_to_num(error, nan=np.inf)
    # Who stands, by the own speed and how its box grows, was there before: the own vehicle turns towards it.
    drives = scene.speed - scene.ahead_m * np.nan_to_num(grow)
    value = (
        _ramp(came, 0.2, 0.8)
        * _ramp(scene.ahead_m, 25.0, 10.0)
        * _ramp(np.abs(scene.aside_m), 2.6, 1.6)
        * _ramp(np.abs(grow), 0.8, 0.3)
        * _ramp(drives, 2.0, 4.0)
        * _ramp(scene.speed, 1.0, 3.0)
        * scene.straight
        * scene.sure
        * scene.told
    )
    vehicle = ~scene.people & ~scene.light & ~scene.cut_aside & ~np.isin(scene.agent, ("", "Cyc", "thing"))
    return scene.rows(value, vehicle, metres=scene.ahead_m)


def _find_unknown(scene: _Scene) -> pl.DataFrame:
    """How surely something is no common road user, times how near the way it lies; its place is where it meets the ground."""
    unknown = scene.drive.unknown[scene.row] if len(scene.drive.unknown) else np.zeros(len(scene.row))
    below = np.maximum(scene.box[:, 3] - scene.horizon, 1.0)
    ahead_m = scene.camera_m * scene.focal / below
    aside_m = (scene.middle - scene.drive.size_px[0] / 2) * ahead_m / scene.focal
    age = np.arange(len(scene.tube)) - scene.first[scene.run] + 1 if len(scene.tube) else np.zeros(0)
    # Proposals of single images have no path that could prove them.
    sure = scene.mean(unknown) * np.where(scene.tube < 0, 1.0, _ramp(age, 0.0, 3.0))
    value = sure * _ramp(np.abs(aside_m), 2.8, 1.4) * _ramp(ahead_m, 40.0, 12.0)
    value = value * (0.3 + 0.7 * _ramp(scene.speed, 0.5, 2.0))
    return scene.rows(value, unknown > 0, single=True, metres=ahead_m)


def _find_red_lights(scene: _Scene) -> pl.DataFrame:
    """A light of the own way that is red, times the braking that it would take to stop 3 m behind it, beyond what the vehicle
    brakes already: 1 at 5 m/s^2, 0 at 2.5.

    How far it is follows from its height and, after it has left the image at the side, from the way driven since. How surely
    it is red is its share of the colours over the boxes of the last second in which it was seen, by their scores, which count
    fully from `_SIGHTS` on in all, or less where the newest ones, of `_SMOOTH_S`, say less. They need not be of one tube, see
    `_note_lights`. Nothing is said until the speed has been known for `_BRAKING_S`, in a video that says it. A light that
    repeats another one is none.
    """
    drive = scene.drive
    red = scene.column("action", ("Red",))
    # A light is of one colour at a time: red counts by its share of what the colours are scored.
    red = red / np.maximum(red + scene.column("action", ("Green",)) + scene.column("action", ("Amber",)), 0.7)
    own, other = scene.column("agent", ("TL", "traffic_light")), scene.column("agent", ("OthTL",))
    ahead_m = scene.focal * _HEIGHT_M["TL"] / scene.high
    aside_m = np.abs(scene.middle - drive.size_px[0] / 2) / scene.high * _HEIGHT_M["TL"]
    above = (scene.box[:, 1] + scene.box[:, 3]) / 2 < scene.horizon
    # Red is an action of lights alone, and speaks for one. A light that is seen as green counts as one that is not red.
    light = above & ~scene.cut & (other <= own) & ((own >= 0.5) | ((own >= 0.2) & (red >= 0.5)))
    surely = red * scene.score * _ramp(aside_m, 8.0, 6.0)
    here: dict[int, list[int]] = {}
    for row in np.flatnonzero(light).tolist():
        here.setdefault(int(scene.place[row]), []).append(row)
    brakes = _measure_braking(drive)
    # Where the speed is known at other times alone, it may stop at the light: drives begin while somebody brakes.
    known = np.isfinite(drive.speed_mps)
    start = np.searchsorted(drive.t_s, drive.t_s - _BRAKING_S - 1e-6).tolist()
    untold = [scene.speed_told and not known[low : k + 1].all() for k, low in enumerate(start)]
    heading, gone_m = np.zeros(len(drive.t_s)), np.zeros(len(drive.t_s))
    if len(drive.t_s):
        gone_m[1:] = np.cumsum(scene.frame_speed[1:] * np.diff(drive.t_s))
    if len(drive.yaw_rps) and len(drive.t_s):
        heading[1:] = np.cumsum(np.nan_to_num(drive.yaw_rps[1:]) * np.diff(drive.t_s))
    rows: list[tuple[Any, ...]] = []
    seen: list[_Light] = []
    for now, t_s in enumerate(drive.t_s.tolist()):
        seen = [each for each in seen if t_s - drive.t_s[each.sights[-1][0]] <= _REMEMBERED_S]
        _note_lights(seen, now, here.get(now, []), scene, red, surely, ahead_m, gone_m)
        best: tuple[Any, ...] | None = None
        for each in seen:
            last, row = each.sights[-1]
            unseen_s = t_s - drive.t_s[last]
            # A light leaves the image some 5 m before it is passed; of one that was lost farther away less is known.
            lasts = _PASSED_S if ahead_m[row] < _NEAR_M else _LOST_S
            if unseen_s > lasts[0] or untold[now] or _repeats(each, seen):
                continue
            # Of what was seen in the last second, and not less in its newest part, or the light has turned.
            whole = [held for _, held in each.sights]
            newest = [
                held for place, held in each.sights if drive.t_s[place] >= drive.t_s[last] - _SMOOTH_S - 1e-6
            ]
            sure = min(
                float(surely[held].sum() / max(float(scene.score[held].sum()), least))
                for held, least in ((whole, _SIGHTS), (newest, 1e-9))
            )
            left_m = each.at_m - gone_m[now]
            speed = float(scene.frame_speed[now])
            needed = speed**2 / (2 * (max(left_m, 0.0) + _STOPS_M))
            needed -= max(0.0, float(np.nan_to_num(brakes[now])))
            urgent = _ramp(np.array([needed, speed]), *_HARDLY)
            # A turn sweeps the lights of other ways past the middle of the image, and those of the own one out of it.
            turned = (
                heading[now] - heading[int(np.searchsorted(drive.t_s, drive.t_s[last] - _TREND_S - 1e-6))]
            )
            straight = float(_ramp(np.abs(np.array([turned])), *_TURN_RAD)[0])
            value = sure * straight * float(urgent.prod()) * float(_ramp(np.array([unseen_s]), *lasts)[0])
            if best is None or value > best[3]:
                left_s = max(left_m, 0.0) / max(speed, 0.1)
                best = (int(scene.tube[row]), int(drive.frame[now]), t_s, value, "TL", sure, left_s)
        rows += [best] if best else []
    names = {"tube": pl.Int64, "frame": pl.Int64, "t_s": pl.Float64, "value": pl.Float64, "label": pl.String}
    return pl.DataFrame(rows, schema=names | {"chance": pl.Float64, "seconds": pl.Float64}, orient="row")


@dataclass(eq=False)
class _Light:
    """Lights at one place along the way.

    Args:
        sights: (place of the frame, row of the box) of the one that was red most surely in each frame in which one was seen,
            of the last second of these.
        at_m: where it stands along the way that is driven, by these.
        entered: whether it was near, and not red, when it was seen last: who then goes past is right to leave.
    """

    sights: list[tuple[int, int]]
    at_m: float
    entered: bool = False


def _note_lights(
    seen: list[_Light],
    now: int,
    boxes: Sequence[int],
    scene: _Scene,
    red: Floats,
    surely: Floats,
    ahead_m: Floats,
    gone_m: Floats,
) -> None:
    """Put the boxes of lights in a frame to the lights that were seen, by where along the way they stand, not by tubes: small
    things at the edge move by more than their width from frame to frame, and their paths break.

    Args:
        seen: is changed.
        now: place of the frame.
        boxes: rows of the lights in it.
        scene: whose they are.
        red: (n,) share of red among the colours of each box.
        surely: (n,) how surely it is red, times its score.
        ahead_m: (n,) how far ahead it is.
        gone_m: (F,) metres driven until each frame.
    """
    taken: dict[int, int] = {}
    for row in sorted(boxes, key=lambda row: float(-surely[row])):
        left_m, tube = ahead_m[row], scene.tube[row]
        same = [tube >= 0 and scene.tube[each.sights[-1][1]] == tube for each in seen]
        apart = np.where(same, 0.0, [abs(each.at_m - gone_m[now] - left_m) for each in seen])
        k = int(np.argmin(apart)) if seen else -1
        if k < 0 or apart[k] > max(_SAME_M, _FARTHER * left_m):
            seen.append(_Light([(now, row)], float(gone_m[now] + left_m)))
            k = len(seen) - 1
        # Of several at one place that which is red most surely.
        taken.setdefault(k, row)
    for k, row in taken.items():
        light, t_s = seen[k], scene.drive.t_s
        if light.sights[-1][0] < now:
            light.sights.append((now, row))
        light.sights = [(p, r) for p, r in light.sights if t_s[p] >= t_s[now] - _TREND_S - 1e-6]
        light.at_m = float(np.mean([ahead_m[r] + gone_m[p] for p, r in light.sights]))
        light.entered = bool(ahead_m[row] < _NEAR_M and red[row] < 0.5)


def _repeats(light: _Light, seen: Sequence[_Light]) -> bool:
    """Whether a light repeats one that was passed while it was not red, on the far side of the junction.

    Who entered on green or amber is right to leave, whatever other lights of the junction show: those of the crossing way are
    red then, and a detector takes them for the own ones.
    """
    return any(each.entered and _SAME_M < light.at_m - each.at_m < _JUNCTION_M for each in seen)


def _measure_braking(drive: Drive) -> Floats:
    """(F,) how fast the own vehicle slows down over `_BRAKING_S`, in m/s^2; NaN where its speed is not known."""
    n = len(drive.frame)
    brake = np.full(n, np.nan)
    start = np.searchsorted(drive.t_s, drive.t_s - _BRAKING_S - 1e-6)
    for k in range(n):
        t, v = drive.t_s[start[k] : k + 1], drive.speed_mps[start[k] : k + 1]
        if len(t) >= 3 and np.isfinite(v).all() and t[-1] > t[0]:
            t = t - t.mean()
            brake[k] = -float((t * v).sum() / (t**2).sum())
    return brake


def _find_braking(scene: _Scene) -> pl.DataFrame:
    """Braking of the own vehicle by its speed over 0.8 s: 1 at 6 m/s^2, 0 at 2.5."""
    drive = scene.drive
    n = len(drive.frame)
    brake = _measure_braking(drive)
    return pl.DataFrame(
        {
            "tube": np.full(n, -1),
            "frame": drive.frame,
            "t_s": drive.t_s,
            "value": _ramp(brake, 2.5, 6.0),
            "label": ["own vehicle"] * n,
            "metres": brake,
        },
        schema_overrides={"tube": pl.Int64, "frame": pl.Int64, "label": pl.String},
    )


def _find_alarms(scene: _Scene) -> pl.DataFrame:
    """How surely a sound of alarm is heard, kinds of sirens together; where it is listened for all the time, how far that is
    above the median of the `_USUAL_S` before, by `_ABOVE`: what goes on is no news."""
    drive, rows = scene.drive, []
    heard: dict[str, dict[float, list[tuple[float, str]]]] = {}
    for row in drive.sounds.iter_rows(named=True):
        name = str(row["name"])
        word = next((each for each in ALARMS if name.startswith(each)), None)
        if word is not None and len(drive.frame):
            heard.setdefault(word, {}).setdefault(float(row["t_s"]), []).append((float(row["score"]), name))
    for word, moments in heard.items():
        times = np.array(sorted(moments))
        # One sound is of one kind: of a siren that may be an ambulance's or the police's the scores add up.
        score = np.array([min(1.0, sum(each for each, _ in moments[t_s])) for t_s in times.tolist()])
        since = np.searchsorted(times, times - _USUAL_S - 1e-6)
        for k, t_s in enumerate(times.tolist()):
            before = score[since[k] : k]
            value = float(score[k])
            if drive.listened and len(before) >= _LEAST_HEARD:
                value = float(_ramp(score[k] - np.median(before), *_ABOVE.get(word, _OTHERS_ABOVE)))
            place = min(int(np.searchsorted(drive.t_s, t_s)), len(drive.frame) - 1)
            name = max(moments[t_s])[1]
            rows.append((-1, int(drive.frame[place]), t_s, value, name, float(score[k]), word))
    names = {
        "tube": pl.Int64,
        "frame": pl.Int64,
        "t_s": pl.Float64,
        "value": pl.Float64,
        "label": pl.String,
        "chance": pl.Float64,
        "word": pl.String,
    }
    return pl.DataFrame(rows, schema=names, orient="row").sort("t_s", maintain_order=True)


def _find_rare(scene: _Scene) -> pl.DataFrame:
    """The highest mean score of each label of each tube; `rank_moments` weighs it by how rare the label is."""
    drive, parts = scene.drive, []
    chosen = [k for k, (kind, _) in enumerate(drive.names) if kind in ("agent", "action", "event", "corner")]
    if chosen and len(scene.row):
        scores = drive.labels[scene.row][:, chosen].astype(np.float64)
        strong = np.flatnonzero(scores.max(axis=0) >= 0.4)
        size = _ramp(scene.high, 0.03 * drive.size_px[1], 0.12 * drive.size_px[1])
        for k in strong.tolist():
            kind, label = drive.names[chosen[k]]
            value = scene.mean(scores[:, k], 1.0) * size * scene.sure
            rows = scene.rows(np.where(value >= 0.25, value, 0.0), kind=pl.Series([kind] * len(value)))
            parts.append(rows.with_columns(label=pl.lit(label)).filter(pl.col("value") > 0))
    return pl.concat(parts) if parts else scene.rows(np.zeros(len(scene.tube)))


def _find_unsure(scene: _Scene) -> pl.DataFrame:
    """How far the passes of a predictor differ about somebody, or how close the second agent comes to the first."""
    drive = scene.drive
    uncertainty = np.zeros(len(scene.tube))
    at = [k for k, (kind, _) in enumerate(drive.names) if kind == "agent"]
    if len(at) > 1 and len(scene.row):
        ranked = np.sort(drive.labels[scene.row][:, at], axis=1).astype(np.float64)
        uncertainty = scene.mean(ranked[:, -2]) / np.maximum(scene.mean(ranked[:, -1]), 1e-6)
        uncertainty = _ramp(uncertainty, 0.5, 1.0)
    if len(drive.crossing) and {"low", "high"} <= set(drive.crossing.columns):
        width = drive.crossing.select(
            "tube", "frame", width=pl.col("high").fill_nan(None) - pl.col("low").fill_nan(None)
        )
        here = pl.DataFrame({"tube": scene.tube, "frame": scene.frame})
        held = here.join(width, on=["tube", "frame"], how="left", maintain_order="left")["width"].fill_null(
            0.0
        )
        uncertainty = np.maximum(uncertainty, _ramp(held.to_numpy(), 0.2, 0.8))
    near = _ramp(scene.ahead_m, 30.0, 10.0) * _ramp(np.abs(scene.aside_m), 6.0, 2.0)
    return scene.rows(uncertainty * near * scene.sure, ~scene.light, chance=uncertainty, metres=scene.ahead_m)


def _find_disagreements(scene: _Scene) -> pl.DataFrame:
    """Where no box of the other model overlaps one of this by .3, over half a second, near the way."""
    others = scene.drive.others
    if others is None or not len(scene.tube):
        return scene.rows(np.zeros(len(scene.tube)))
    alone = np.ones(len(scene.tube))
    held = {int(key[0]): rows for key, rows in others.partition_by("frame", as_dict=True).items()}
    for frame in np.unique(scene.frame).tolist():
        if frame not in held:
            continue
        at = np.flatnonzero(scene.frame == frame)
        theirs = held[frame].select("x1", "y1", "x2", "y2").to_numpy().astype(np.float64)
        mine = scene.box[at]
        low = np.maximum(mine[:, None, :2], theirs[None, :, :2])
        high = np.minimum(mine[:, None, 2:], theirs[None, :, 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=2)
        area = np.prod(mine[:, 2:] - mine[:, :2], axis=1)[:, None] + np.prod(
            theirs[:, 2:] - theirs[:, :2], axis=1
        )
        alone[at] = ~((shared / np.maximum(area - shared, 1e-9)) >= 0.3).any(axis=1)
    near = _ramp(scene.ahead_m, 30.0, 10.0) * _ramp(np.abs(scene.aside_m), 6.0, 2.0)
    return scene.rows(
        _ramp(scene.mean(alone), 0.5, 1.0) * near * scene.sure * ~scene.added, metres=scene.ahead_m
    )


_FINDERS: Mapping[str, Callable[[_Scene], pl.DataFrame]] = {
    "collision": _find_collisions,
    "crossing": _find_crossings,
    "appearance": _find_appearances,
    "cut_in": _find_cut_ins,
    "unknown": _find_unknown,
    "red_light": _find_red_lights,
    "braking": _find_braking,
    "alarm": _find_alarms,
    "rare": _find_rare,
    "unsure": _find_unsure,
    "disagreement": _find_disagreements,
}


def _pick(rows: pl.DataFrame, reason: str) -> pl.DataFrame:
    """The highest values of each tube that are 4 s apart, with the stretch in which the value is half of it."""
    picked: list[dict[str, Any]] = []
    # Red lights are told apart by time alone: several tubes may be pieces of one light.
    by = (
        ["label"]
        if reason == "red_light"
        else {"rare": ["tube", "label"], "alarm": ["tube", "word"]}.get(reason, ["tube"])
    )
    for group in rows.partition_by(*by, maintain_order=True):
        times, values = group["t_s"].to_numpy(), group["value"].to_numpy()
        free = np.ones(len(times), bool)
        single = "tube" not in by or group["tube"][0] < 0
        for _ in range(1 if reason == "rare" else len(times) if single else _MOST_PEAKS):
            if not free.any():
                break
            # Of equal values the first.
            peak = int(np.flatnonzero(free)[np.argmax(values[free])])
            near = np.abs(times - times[peak]) < _APART_S
            if reason == "alarm":
                pieces = np.cumsum(np.diff(times, prepend=times[0]) > _GOES_ON_S)
                near |= pieces == pieces[peak]
            high = times[near & (values >= 0.5 * values[peak])]
            begin, end = float(high.min()) - _PAD_S, float(high.max()) + _PAD_S
            middle = float(times[peak])
            begin, end = max(begin, middle - _LONGEST_S / 2), min(end, middle + _LONGEST_S / 2)
            pad = max(0.0, _SHORTEST_S - (end - begin)) / 2
            picked.append(
                group.row(peak, named=True) | {"reason": reason, "start_s": begin - pad, "end_s": end + pad}
            )
            free &= ~near
    return pl.DataFrame(picked, infer_schema_length=None) if picked else pl.DataFrame()


def _conform(part: pl.DataFrame) -> pl.DataFrame:
    """A table with the columns of `PEAKS`, in their types."""
    if part.is_empty():
        return pl.DataFrame(schema=PEAKS)
    columns = [
        pl.col(name).cast(kind) if name in part.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in PEAKS.items()
    ]
    return part.select(columns)


# All drives: the prior of the set, moments, near duplicates, and the order.


def rank_moments(
    peaks: pl.DataFrame,
    counts: pl.DataFrame,
    hours: float,
    config: TriageConfig | None = None,
    learnt: Verdicts | None = None,
) -> pl.DataFrame:
    """The moments of all drives, the one that is most worth a look first.

    The highest peak of a video takes those within `join_s` with it, then the highest that is left, and so on. A moment is
    worth 1 - prod(1 - weight * sqrt(value * rarity)) over its reasons, as if each were a chance of its own that it should be
    seen; with verdicts, what the model learnt of them says. Rarity is (1 + usual_an_hour * hours) / n, at most 1, where n
    peaks of the reason in all drives are as high: what happens at every corner is not worth a look. Value and rarity grade
    the same peak, on the scale of the reason and among these drives, hence their geometric mean. A moment is worth less for
    each higher one that is like it.

    Args:
        peaks: of all videos, as of `find_peaks`.
        counts: of their labels, as of `count_labels`.
        hours: of all videos.
        config: default: `TriageConfig()`.
        learnt: of verdicts of people; None for the weights.

    Returns:
        `moment` (its video and frame), `video`, `frame`, `t_s`, `start_s`, `end_s`, `rank` from 1, `worth` in [0, 1],
        `reason` (the first), `tube` (of it, -1 without one), `sentence`, and each of `REASONS` in [0, 1].
    """
    config = config or TriageConfig()
    weighted = apply_rarity(apply_prior(peaks, counts), hours, config.usual_an_hour)
    rows: list[dict[str, Any]] = []
    for group in weighted.sort("video").partition_by("video", maintain_order=True):
        # The moments of one video
        weights = config.weights
        strength = (pl.col("value") * pl.col("rarity")).sqrt() * pl.col("reason").replace_strict(
            weights, return_dtype=pl.Float64
        )
        held = group.with_columns(strength=strength).filter(pl.col("strength") > 0, pl.col("value") >= _LEAST)
        ordered = held.sort(
            "strength", "t_s", "reason", "tube", descending=[True, False, False, False]
        ).to_dicts()
        times = np.array([row["t_s"] for row in ordered])
        free = np.ones(len(ordered), bool)
        found = []
        for k, lead in enumerate(ordered):
            if not free[k]:
                continue
            with_it = np.flatnonzero(free & (np.abs(times - times[k]) <= config.join_s))
            free[with_it] = False
            best: dict[str, dict[str, Any]] = {}
            for place in with_it.tolist():
                best.setdefault(ordered[place]["reason"], ordered[place])
            values = {name: float(best[name]["value"]) if name in best else 0.0 for name in REASONS}
            worth = 1.0 - float(np.prod([1.0 - row["strength"] for row in best.values()]))
            found.append(
                {
                    "moment": f"{lead['video']}:{lead['frame']}",
                    "video": lead["video"],
                    "frame": lead["frame"],
                    "t_s": lead["t_s"],
                    "start_s": lead["start_s"],
                    "end_s": lead["end_s"],
                    "rank": 0,
                    "worth": worth,
                    "reason": lead["reason"],
                    "tube": lead["tube"],
                    "sentence": "; ".join(describe_peak(row) for row in list(best.values())[:3]),
                    **values,
                }
            )
        rows += found
    table = pl.DataFrame(rows, schema=_MOMENTS, infer_schema_length=None)
    if learnt is not None:
        table = table.with_columns(worth=pl.Series(learnt.score(table), dtype=pl.Float64))
    return _order(table, config)


_MOMENTS: dict[str, Any] = {
    "moment": pl.String,
    "video": pl.String,
    "frame": pl.Int64,
    "t_s": pl.Float64,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "rank": pl.Int64,
    "worth": pl.Float64,
    "reason": pl.String,
    "tube": pl.Int64,
    "sentence": pl.String,
    **dict.fromkeys(REASONS, pl.Float64),
}


def apply_prior(peaks: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
    """The peaks, those of `rare` times how rare their label is: 0 of what every tube has, 1 of what one in a thousand has.

    The share of a label is (tubes + 1/2) / (all tubes + 1), so that a small set holds nothing for very rare.

    Args:
        peaks: as of `find_peaks`.
        counts: as of `count_labels`, of all videos.
    """
    shares = counts.group_by("kind", "label").agg(
        share=(pl.col("tubes").sum() + 0.5) / (pl.col("of").sum() + 1.0)
    )
    held = peaks.join(shares, on=["kind", "label"], how="left", maintain_order="left")
    surprise = (-pl.col("share").log10() / 3).clip(0.0, 1.0).fill_null(0.0)
    rare = pl.col("reason") == "rare"
    return held.with_columns(
        value=pl.when(rare).then(pl.col("value") * surprise).otherwise(pl.col("value")).clip(0.0, 1.0),
        chance=pl.when(rare).then(pl.col("share")).otherwise(pl.col("chance")),
    ).drop("share")


def apply_rarity(peaks: pl.DataFrame, hours: float, usual_an_hour: float) -> pl.DataFrame:
    """The peaks with `rarity` in [0, 1], see `rank_moments`.

    Args:
        peaks: of all videos.
        hours: of all videos.
        usual_an_hour: how often a value may be reached without being worth less.
    """
    # Of equal values each counts all of them.
    reached = pl.col("value").rank("max", descending=True).over("reason")
    return peaks.with_columns(rarity=((1.0 + usual_an_hour * hours) / reached).clip(0.0, 1.0))


def _order(table: pl.DataFrame, config: TriageConfig) -> pl.DataFrame:
    """The moments in their order: each time the one that is worth most, less for what is like higher ones."""
    rows = table.sort("worth", "video", "frame", descending=[True, False, False]).to_dicts()
    by_video: dict[str, list[int]] = {}
    for k, row in enumerate(rows):
        by_video.setdefault(row["video"], []).append(k)
    left = np.array([row["worth"] for row in rows])
    order: list[int] = []
    taken = np.zeros(len(rows), bool)
    for _ in rows:
        k = int(np.argmax(np.where(taken, -1.0, left)))
        taken[k] = True
        order.append(k)
        for other in by_video[rows[k]["video"]]:
            same = rows[other]["reason"] == rows[k]["reason"]
            near = abs(rows[other]["t_s"] - rows[k]["t_s"]) <= config.repeat_s
            tube = rows[k]["tube"] >= 0 and rows[other]["tube"] == rows[k]["tube"]
            if not taken[other] and ((same and near) or tube):
                left[other] *= config.repeat
    columns: dict[str, list[Any]] = {name: [rows[k][name] for k in order] for name in _MOMENTS}
    columns["worth"] = [float(left[k]) for k in order]
    columns["rank"] = list(range(1, len(order) + 1))
    return pl.DataFrame(columns, schema=_MOMENTS)


_WHO = {
    "Ped": "a pedestrian",
    "Car": "a car",
    "Cyc": "a cyclist",
    "Mobike": "a motorbike",
    "MedVeh": "a van",
    "LarVeh": "a lorry",
    "Bus": "a bus",
    "EmVeh": "an emergency vehicle",
    "thing": "something",
    "": "somebody",
}


def describe_peak(row: Mapping[str, Any]) -> str:
    """The sentence of a peak, without its full stop.

    Args:
        row: in the columns of `PEAKS`.
    """
    label, seconds, metres, chance = (row.get(name) for name in ("label", "seconds", "metres", "chance"))
    who = _WHO.get(str(label), f"{label}")
    away = "" if seconds is None or not seconds < 60 else f", {seconds:.1f} s away"
    there = "" if metres is None or not metres < 200 else f", about {metres:.0f} m ahead"
    share = "" if chance is None else f" ({100 * chance:.0f} %)"
    match row["reason"]:
        case "collision":
            return f"{who} comes closer on the own path{'' if not away else f', contact in {seconds:.1f} s'}"
        case "crossing":
            return f"{who} is likely to cross{share} in front of the vehicle{away}"
        case "appearance":
            return f"{who} appears close ahead{away or there}"
        case "cut_in":
            return f"{who} cuts in{there}"
        case "unknown":
            return f"something unknown lies on the way{there}"
        case "red_light":
            return f"the vehicle goes on towards a red light{share}{'' if not away else f', passed in {seconds:.1f} s'}"
        case "braking":
            return f"the own vehicle brakes hard ({metres or 0:.1f} m/s²)"
        case "alarm":
            return f"{label} is heard{share}"
        case "rare":
            return f"rare here: {label} (about {1 / max(chance or 1.0, 1e-9):.0f} tubes for one)"
        case "unsure":
            return f"the models are unsure about {who}{there}"
        case _:
            return f"one model alone sees {who}{there}"


# Verdicts of people: a small model of the reasons.

LEAST_VERDICTS = 10
"""Of yes, and of no, that a model is learnt from."""
_RIDGE = 1.0


@dataclass(frozen=True)
class Verdicts:
    """What was learnt of verdicts: the log odds that a moment is worth a look are a line in its reasons.

    Args:
        weights: of each reason, per unit of its value.
        offset: log odds of a moment without any reason.
        yes, no: verdicts that it was learnt from.
    """

    weights: Mapping[str, float]
    offset: float
    yes: int
    no: int

    def score(self, moments: pl.DataFrame) -> Floats:
        """(n,) the probability that each moment is worth a look.

        Args:
            moments: as of `rank_moments`.
        """
        x = moments.select(list(REASONS)).to_numpy().astype(np.float64)
        line = self.offset + x @ np.array([self.weights[name] for name in REASONS])
        found: Floats = 1.0 / (1.0 + np.exp(-line))
        return found


def learn_verdicts(moments: pl.DataFrame, verdicts: Mapping[str, bool]) -> Verdicts:
    """Learn from people which moments are worth a look: a logistic model with a ridge, fitted by Newton's steps.

    Args:
        moments: as of `rank_moments`.
        verdicts: moment to whether it was worth the look; each is one of `moments`.

    Raises:
        UsageError: if a moment is unknown, or fewer than 10 verdicts are yes, or no.
    """
    known = set(moments["moment"].to_list())
    strange = [name for name in verdicts if name not in known]
    if strange:
        raise UsageError(
            f"{len(strange)} of {len(verdicts)} verdicts are of no moment of these drives, such as {strange[0]!r}; "
            "name the drives that they were given on, with the same --weights"
        )
    yes, no = sum(verdicts.values()), len(verdicts) - sum(verdicts.values())
    if min(yes, no) < LEAST_VERDICTS:
        raise UsageError(
            f"{yes} verdicts are yes and {no} no: a model is learnt from {LEAST_VERDICTS} of each at least; "
            "judge more moments, or leave --verdicts out"
        )
    rows = moments.filter(pl.col("moment").is_in(list(verdicts)))
    x = rows.select(list(REASONS)).to_numpy().astype(np.float64)
    x = np.hstack([x, np.ones((len(x), 1))])
    y = np.array([verdicts[name] for name in rows["moment"].to_list()], np.float64)
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[-1] = 1e-6  # how many moments are worth it is not drawn to a half
    w = np.zeros(x.shape[1])

    def loss(at: Floats) -> float:
        line = x @ at
        return float((np.logaddexp(0, line) - y * line).sum() + 0.5 * (ridge * at**2).sum())

    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        slope = x.T @ (p - y) + ridge * w
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(ridge), slope)
        size = 1.0
        while loss(w - size * step) > loss(w) and size > 1e-6:
            size /= 2
        w = w - size * step
        if np.abs(step).max() < 1e-10:
            break
    return Verdicts(dict(zip(REASONS, w[:-1].tolist(), strict=True)), float(w[-1]), yes, no)


def count_hours(lengths: pl.DataFrame) -> float:
    """Hours of all videos.

    Args:
        lengths: with `seconds`.
    """
    return float(lengths["seconds"].sum()) / 3600


def get_weight_names() -> tuple[str, ...]:
    """Names of the fields of `TriageConfig`, in their order."""
    return tuple(each.name for each in fields(TriageConfig))


def read_weights(path: Path | None) -> TriageConfig:
    """The weights in a YAML file; those that come along where it is None.

    Raises:
        InputError: if the file cannot be read, or is no YAML.
        UsageError: if it names something unknown, or a value is out of range.
    """
    if path is None:
        return TriageConfig()
    from roadaware.io.yaml import read_yaml  # of the extra `models`

    given = read_yaml(path)
    if not isinstance(given, dict):
        raise InputError(
            "expected names of reasons with their weights, such as `crossing: 0.9`", where=str(path)
        )
    known = get_weight_names()
    for name, value in given.items():
        if name not in known:
            raise UsageError(
                f"{path}: there is no {to_printable(str(name), 40)!r}; there are {', '.join(known)}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{path}: {name} is a number, not {to_printable(str(value), 40)!r}")
    try:
        return replace(TriageConfig(), **{name: float(value) for name, value in given.items()})
    except (OverflowError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from error


_YES, _NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


def read_verdicts(path: Path) -> dict[str, bool]:
    """Moment to whether somebody found it worth the look; rows without a verdict are passed over.

    Raises:
        InputError: if the file cannot be read, lacks the columns moment and verdict, or says something else than yes or no.
    """
    rows = read_cells(path, header=True)
    _, head = next(rows, (1, []))
    if not {"moment", "verdict"} <= set(head):
        raise InputError(
            f"expected the columns moment and verdict, found {', '.join(map(repr, head))[:200] or 'none'}",
            where=str(path),
            hint="fill in the column verdict of a moments.csv",
        )
    places = head.index("moment"), head.index("verdict")
    held: list[tuple[int, str, str]] = []
    for line, cells in rows:
        padded = [*cells, *[""] * (len(head) - len(cells))]
        held.append((line, padded[places[0]].strip(), padded[places[1]].strip().lower()))
    names = pl.DataFrame({"moment": [name for _, name, _ in held]}, schema={"moment": pl.String})
    plain = names.select(from_sheets(pl.col("moment")))["moment"].to_list()
    found: dict[str, bool] = {}
    for (line, _, said), name in zip(held, plain, strict=True):
        if not said:
            continue
        if said not in (*_YES, *_NO):
            raise InputError(
                f"a verdict is yes or no, not {to_printable(said, 40)!r}", where=f"{path}, line {line}"
            )
        if name in found and found[name] != (said in _YES):
            raise InputError(f"{to_printable(name, 80)} has both verdicts", where=f"{path}, line {line}")
        found[name] = said in _YES
    return found
