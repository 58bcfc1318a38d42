"""AnticipationHead: where a tube will be and what it will do some seconds ahead, from its features so far.

ROAD announces the task (Singh et al., TPAMI 2022, section 6): future tubes with boxes and labels. A small network reads
the features of the event head and says, for each horizon, whether the object will still be seen, its actions and
location then, and how far its box will lie from where constant velocity takes it. Labels begin with what the event
head says of the present: the network adds to its logits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.errors import DamagedError
from roadaware.io.sources import read_file, to_printable
from roadaware.models.event_head.head import (
    FEATURES,
    SmallNetwork,
    build_network,
    fits_layout,
    parse_networks,
    write_networks,
)

FORMAT = "roadaware-anticipation-1"
INSTALLED = "anticipation-simulated.safetensors"
_MOST_BYTES = 1 << 24
HORIZONS_S = (0.5, 1.0, 2.0, 3.0)
"""How far ahead, in seconds."""
_MEMORY_S = 0.35
"""Time constant of the line through a tube's past whose slope is its velocity."""
# A line through boxes of less than about a twentieth of a second says nothing of the speed.
_RIDGE_S2 = 0.05**2
_MOST_GROWTH = 1.5
"""Logarithm of the size by which constant velocity lets a box grow or shrink at most."""
_MOST_SHIFT = 4.0
"""Widths and heights that the network moves a box at most."""
PRESENT, BOX = 1, 4
"""Numbers of outputs for each horizon beside those of labels: whether it is seen, and where."""


class ConstantVelocity:
    """The velocities of a stream's tubes, by a line through their fading past; constant cost a frame."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        self._rows: dict[int, int] = {}
        self._free = list(range(16))[::-1]
        # Weight, sums of t, t^2, of the four coordinates and of t times these; t counts back from now.
        self._sums = np.zeros((16, 3 + 4 + 4))
        self._seen_s = np.zeros(16)

    def end(self, numbers: Iterable[int]) -> None:
        """Forget tubes that are over."""
        for number in numbers:
            row = self._rows.pop(number, None)
            if row is not None:
                self._free.append(row)

    def step(self, t_s: float, numbers: Ints, boxes: Floats) -> tuple[Floats, Floats]:
        """Where tubes are and how fast they move.

        Args:
            t_s: time of the frame, later than that of the frame before.
            numbers: (n,) of the tubes, each once.
            boxes: (n, 4) x1, y1, x2, y2 in pixels.

        Returns:
            (n, 4) x and y of the middle and logarithms of width and height, and (n, 4) their change a second.
        """
        rows = np.array([self._row(number, t_s) for number in numbers.tolist()], np.int64)
        now = encode_boxes(boxes)
        sums = self._sums[rows]
        dt = t_s - self._seen_s[rows]
        n, st, stt, sy, sty = sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3:7], sums[:, 7:]
        fade = np.exp(-dt / _MEMORY_S)
        # The past moves back by dt, fades, and the present joins it at t = 0; each from those that still hold the past.
        stt[:] = fade * (stt - 2 * dt * st + dt**2 * n)
        sty[:] = fade[:, None] * (sty - dt[:, None] * sy)
        st[:] = fade * (st - dt * n)
        n[:] = fade * n + 1
        sy[:] = fade[:, None] * sy + now
        self._sums[rows] = sums
        self._seen_s[rows] = t_s
        speed = (n[:, None] * sty - st[:, None] * sy) / (n * stt - st**2 + _RIDGE_S2 * n**2)[:, None]
        return now, speed

    def _row(self, number: int, t_s: float) -> int:
        row = self._rows.get(number)
        if row is None:
            if not self._free:
                room = len(self._sums)
                self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
                self._seen_s = np.concatenate([self._seen_s, np.zeros(room)])
                self._free = list(range(room, 2 * room))[::-1]
            row = self._rows[number] = self._free.pop()
            self._sums[row], self._seen_s[row] = 0.0, t_s
        return row


def encode_boxes(boxes: Floats) -> Floats:
    """(n, 4) x and y of the middle and logarithms of width and height of (n, 4) corners."""
    size = np.maximum(boxes[:, 2:] - boxes[:, :2], 1.0)
    return np.hstack([(boxes[:, :2] + boxes[:, 2:]) / 2, np.log(size)])


def decode_boxes(places: Floats) -> Floats:
    """(..., 4) corners of (..., 4) middles and logarithms of sizes."""
    half = np.exp(places[..., 2:]) / 2
    return np.concatenate([places[..., :2] - half, places[..., :2] + half], axis=-1)


def extrapolate(now: Floats, speed: Floats, horizons_s: Iterable[float] = HORIZONS_S) -> Floats:
    """(n, horizons, 4) places at constant velocity, as `encode_boxes` has them; growth is bounded.

    Args:
        now: (n, 4) of `ConstantVelocity.step`.
        speed: (n, 4) of it.
        horizons_s: seconds ahead.
    """
    ahead = np.asarray(tuple(horizons_s))[None, :, None] * speed[:, None]
    ahead[..., 2:] = np.clip(ahead[..., 2:], -_MOST_GROWTH, _MOST_GROWTH)
    return now[:, None] + ahead


@dataclass(frozen=True, eq=False)
class Anticipated:
    """What is expected of n tubes at each horizon.

    Args:
        present: (n, horizons) probability that the object is still seen.
        actions: (n, horizons, actions) probabilities.
        locations: (n, horizons, locations) probabilities.
        boxes: (n, horizons, 4) corners in pixels.
    """

    present: Floats32
    actions: Floats32
    locations: Floats32
    boxes: Floats


@dataclass(frozen=True, eq=False)
class AnticipationHead:
    """What tubes will do and where they will be.

    Args:
        actions, locations: labels, in the order of the scores.
        horizons_s: seconds ahead.
        network: from features and the present logits of labels, for each horizon: the logit of being seen, what is added
            to the logits of actions and locations, and shifts of the box.
        facts: what it learnt from, and how good it is.
    """

    actions: tuple[str, ...]
    locations: tuple[str, ...]
    horizons_s: tuple[float, ...]
    network: SmallNetwork
    facts: Mapping[str, Any]

    def select_horizon(self, horizon_s: float) -> AnticipationHead:
        """The head of that horizon alone: a stream that asks for one does not pay for all.

        Raises:
            ValueError: if it knows no such horizon.
        """
        outputs = PRESENT + len(self.actions) + len(self.locations) + BOX
        at = self.horizons_s.index(horizon_s) * outputs
        columns = slice(at, at + outputs)
        network = replace(
            self.network,
            layers=tuple(
                (*layers, (weight[:, columns], bias[columns]))
                for *layers, (weight, bias) in self.network.layers
            ),
            slope=self.network.slope[columns],
            offset=self.network.offset[columns],
        )
        return replace(self, horizons_s=(horizon_s,), network=network)

    def anticipate(self, features: Floats, logits: Floats32, now: Floats, speed: Floats) -> Anticipated:
        """What is expected of n tubes.

        Args:
            features: (n, features) of `TubeFeatures.step`.
            logits: (n, actions and locations) present ones, of `EventHead.tubes`.
            now: (n, 4) of `ConstantVelocity.step`.
            speed: (n, 4) of it.
        """
        n, horizons = len(features), len(self.horizons_s)
        out = self.network.logits(join_inputs(features, logits)).reshape(n, horizons, -1)
        labels = PRESENT + len(self.actions) + len(self.locations)
        out[..., PRESENT:labels] += logits[:, None]
        chances: Floats32 = np.reciprocal(np.float32(1) + np.exp(-out[..., :labels]))
        places = extrapolate(now, speed, self.horizons_s)
        places = apply_shifts(places, now, out[..., labels:].astype(np.float64))
        first = PRESENT + len(self.actions)
        return Anticipated(
            chances[..., 0], chances[..., PRESENT:first], chances[..., first:], decode_boxes(places)
        )


def join_inputs(features: Floats, logits: Floats32) -> Floats32:
    """(n, inputs) of the network: features, and present logits of labels within ten of 0."""
    found = np.empty((len(features), features.shape[1] + logits.shape[1]), np.float32)
    found[:, : features.shape[1]] = features
    np.clip(logits, -10, 10, out=found[:, features.shape[1] :])
    return found


def apply_shifts(places: Floats, now: Floats, shifts: Floats) -> Floats:
    """(n, horizons, 4) places moved by shifts in widths and heights of the present box, and logarithms of sizes.

    Args:
        places: (n, horizons, 4) at constant velocity.
        now: (n, 4) present places.
        shifts: (n, horizons, 4).
    """
    bounded = np.clip(shifts, -_MOST_SHIFT, _MOST_SHIFT)
    size = np.exp(now[:, None, 2:])
    return np.concatenate(
        [places[..., :2] + bounded[..., :2] * size, places[..., 2:] + bounded[..., 2:]], axis=-1
    )


def measure_shifts(places: Floats, now: Floats, true: Floats) -> Floats:
    """(n, horizons, 4) shifts that bring places to the true ones: the inverse of `apply_shifts`, bounded alike."""
    size = np.exp(now[:, None, 2:])
    shifts = np.concatenate(
        [(true[..., :2] - places[..., :2]) / size, true[..., 2:] - places[..., 2:]], axis=-1
    )
    bounded: Floats = np.clip(shifts, -_MOST_SHIFT, _MOST_SHIFT)
    return bounded


def save_anticipation(head: AnticipationHead, path: Path) -> None:
    """Write a head as a safetensors file.

    Raises:
        DiskError: if the disk refuses.
    """
    about = {
        "format": FORMAT,
        "actions": head.actions,
        "locations": head.locations,
        "horizons_s": head.horizons_s,
        "features": FEATURES,
        "facts": dict(head.facts),
    }
    write_networks(about, head.network.tensors("future"), path)


def open_anticipation(path: Path | None = None) -> AnticipationHead:
    """The head in a file; the one that came with roadaware where None.

    Raises:
        InputError: if it cannot be read.
        DamagedError: if it is no such head, or one of other features.
    """
    path = path or Path(__file__).resolve().parents[2] / "weights" / INSTALLED
    where = to_printable(str(path))
    raw = read_file(path, where, _MOST_BYTES)
    try:
        about, tensors = parse_networks(raw, FORMAT)
        head = AnticipationHead(
            tuple(about["actions"]),
            tuple(about["locations"]),
            tuple(float(each) for each in about["horizons_s"]),
            build_network(tensors, "future"),
            about["facts"],
        )
        outputs = PRESENT + len(head.actions) + len(head.locations) + BOX
        fits = about["features"] == list(FEATURES)
        fits = fits and fits_layout(
            head.network,
            len(FEATURES) + len(head.actions) + len(head.locations),
            len(head.horizons_s) * outputs,
        )
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise DamagedError(f"expected an anticipation head: {str(error)[:200]}", where=where) from error
    if not fits:
        raise DamagedError("this anticipation head reads other features than this version makes", where=where)
    return head
