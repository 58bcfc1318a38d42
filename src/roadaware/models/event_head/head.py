"""EventHead: its input columns and state, and scores of event labels by small networks in plain numpy."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32
from roadaware.errors import DamagedError
from roadaware.io.files import write_atomically
from roadaware.io.sources import read_file, to_printable
from roadaware.models.object_labels import ROAD_AGENTS

SCALES_S = (0.35, 1.2)
"""Time constants of the two lines through the past of each tube."""
MEMORY_S = (1.5, 5.0)
"""Time constants of what is remembered of its speed and place."""
HEIGHTS_M = (1.7, 1.5, 1.75, 1.6, 2.2, 3.2, 3.4, 2.0, 0.95, 0.95)
"""How high agents are, in the order of `ROAD_AGENTS`; of traffic lights the head alone."""
STANDARD = (1.0, 1.0, 0.6, 0.5, 0.3, 0.1, 0.1, 0.2, 0.0, 0.0)
"""How far each can be trusted to be that high and to stand on the ground, when the horizon is sought."""

# Quantities that lines are drawn through: place, size, and the turns of the camera so far.
U, FOOT, LOG_W, LOG_H, PAN, TILT = range(6)
N_QUANTITIES = 6

# A tube's row of memories.
LAST_S, FIRST_S, COUNT = range(3)
LINES = 3
LINE_WIDTH = 3 + 2 * N_QUANTITIES
MEMORIES = LINES + LINE_WIDTH * len(SCALES_S)
N_MEMORIES = 4 * len(MEMORY_S) + 1
CLASSES = MEMORIES + N_MEMORIES
NOW = CLASSES + len(ROAD_AGENTS)
# What holds now, of its line: place in metres, speeds, shape; read by neighbours too.
(NOW_X, NOW_Z, NOW_VF, NOW_VX, NOW_VF_SLOW, NOW_VX_SLOW, NOW_CLOSING, NOW_CLOSING_SLOW, NOW_U, NOW_BELOW) = (
    range(NOW, NOW + 10)
)
(NOW_LOG_W, NOW_LOG_H, NOW_SIZE_Z, NOW_GROUND_Z, NOW_GAP, NOW_TOUCH) = range(NOW + 10, NOW + 16)
NOW_SLOPES = NOW + 16
N_SLOPES = N_QUANTITIES * len(SCALES_S)
TUBE_WIDTH = NOW_SLOPES + N_SLOPES

# The scene's row of memories.
(TIME, BEGIN, PSI, THETA, A00, A01, A11, B0, B1, HORIZON, HEIGHT, KNOWN) = range(12)
(SPEED, SPEED_SLOW, YAW, YAW_SLOW, TURN, STOPPED, ANY_CLOSING, ANY_PAN) = range(12, 20)
(SPEED_GUESS, LIGHT_MEMORY, CROSS_MEMORY, LIGHT_CLOSING, LIGHT_KNOWN, SPREAD) = range(20, 26)
SCENE_WIDTH = 26

BINS, BIN_M = 15, 2.0
"""Strips of the road along the way of the camera, the middle one below it."""
FLOW, FLOW_WEIGHT, STILL, PEOPLE = range(4)
N_MAPS = 4


def _prefix_names(group: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{group}.{name}" for name in names)


PLACE = _prefix_names(
    "place", "u", "below_horizon", "log_width", "log_height", "aspect", "log_size_depth", "log_ground_depth",
    "x_size", "x_ground", "touch_left", "touch_right", "touch_top", "touch_bottom", "horizon", "height",
)  # fmt: skip
CLASS = _prefix_names(
    "class", *(f"now_{name}" for name in ROAD_AGENTS), *(f"mean_{name}" for name in ROAD_AGENTS)
)
MOTION = _prefix_names(
    "motion", "u_fast", "foot_fast", "width_fast", "height_fast", "u_slow", "foot_slow", "width_slow",
    "height_slow", "closing_fast", "closing_slow", "age", "count", "gap",
)  # fmt: skip
EGO = _prefix_names(
    "ego", "known", "speed", "speed_slow", "gain", "yaw", "yaw_slow", "turn", "stopped", "guess", "pan_fast",
    "pan_slow", "tilt_slow", "vf_fast", "vx_fast", "vf_slow", "vx_slow", "pace_slow", "along", "across",
    "vf_mean_1", "vx_mean_1", "x_mean_1", "pace_mean_1", "vf_mean_5", "vx_mean_5", "x_mean_5", "pace_mean_5",
    "pace_most",
)  # fmt: skip
_MAPS = ("flow", "weight", "still", "people")
_ONE = ("dx", "dz", "dvf", "dvx", "vehicle", "person", "light")
NEAR = _prefix_names(
    "near", *(f"{name}_{k}" for k in (1, 2) for name in _ONE), "corridor_vf", "corridor",
    "left_vf", "right_vf",
    "people", "vehicles", "lights", "light_u", "light_below", "light_height", "light_dz", "crossing",
    "light_memory", "cross_memory", "any_closing", "any_pan", "light_closing",
    *(f"{what}_{where}" for what in _MAPS for where in ("inner", "own", "outer")),
    "flow_left", "flow_right", "still_inside", "still_outside",
)  # fmt: skip
FEATURES = (*PLACE, *CLASS, *MOTION, *EGO, *NEAR)
"""Columns of what is known of a tube in a frame; the word before the dot is the group."""
SCENE_FEATURES = _prefix_names(
    "scene", "known", "speed", "speed_slow", "gain", "yaw", "yaw_slow", "turn", "stopped", "guess",
    "any_closing", "any_pan", "spread", "light_closing", "light_known", "vehicles", "people", "lights",
    "light_u", "light_below", "light_height", "left_vf", "right_vf", "flow_left", "flow_right",
    "corridor_vf", "corridor", "light_memory", "cross_memory", "horizon", "height", "still_left",
    "still_right", "nearest_ahead",
)  # fmt: skip
"""Columns of what is known of the own vehicle in a frame."""


FORMAT = "roadaware-event-head-1"
INSTALLED = "events-simulated.safetensors"
# A file that is larger is no head, and is not read to its end.
_MOST_BYTES = 1 << 24
_FARTHEST = 6.0
"""Spreads that a feature may lie from its mean; what is farther is taken to lie there."""
# exp(30) is far from the end of 32 bits, and what a head scores below 1e-13 is nothing.
_LEAST_LOGIT = -30.0


@dataclass(frozen=True, eq=False)
class SmallNetwork:
    """Networks of one shape, each a row of layers with rectified units, whose logits are averaged.

    Args:
        mean, spread: (inputs,) of the features in teaching.
        layers: of each network its layers, (inputs, outputs) and (outputs,).
        slope, offset: (labels,) of the logits, which calibrate them.
    """

    mean: Floats32
    spread: Floats32
    layers: tuple[tuple[tuple[Floats32, Floats32], ...], ...]
    slope: Floats32
    offset: Floats32

    def logits(self, x: npt.ArrayLike) -> Floats32:
        """(n, labels) calibrated logits of (n, inputs) features."""
        standard = np.asarray(x, np.float32) - self.mean
        standard /= self.spread
        np.clip(standard, -_FARTHEST, _FARTHEST, out=standard)
        held = standard[None]
        for weight, bias in self._stacked[:-1]:
            held = held @ weight
            held += bias
            np.maximum(held, np.float32(0), out=held)
        total = (held @ self._stacked[-1][0] + self._stacked[-1][1]).sum(axis=0)
        found: Floats32 = np.maximum(total / len(self.layers) * self.slope + self.offset, _LEAST_LOGIT)
        return found

    @cached_property
    def _stacked(self) -> list[tuple[Floats32, Floats32]]:
        """Each layer of all networks at once: a frame with few tubes costs calls rather than sums."""
        return [
            (np.stack([weight for weight, _ in layer]), np.stack([bias for _, bias in layer])[:, None])
            for layer in zip(*self.layers, strict=True)
        ]

    def tensors(self, prefix: str) -> dict[str, Floats32]:
        """Everything by name, as a file holds it."""
        found = {f"{prefix}.{name}": getattr(self, name) for name in ("mean", "spread", "slope", "offset")}
        for n, layers in enumerate(self.layers):
            for k, (weight, bias) in enumerate(layers):
                found |= {f"{prefix}.{n}.{k}.weight": weight, f"{prefix}.{n}.{k}.bias": bias}
        return found


@dataclass(frozen=True, eq=False)
class EventHead:
    """The event head: predicts labels of tubes.

    Args:
        actions, locations, av_actions: labels, in the order of the scores.
        tubes: network of tubes: actions, then locations, each label by itself.
        drive: network of the own vehicle: one of its actions.
        facts: what it was taught on, and how good it is.
    """

    actions: tuple[str, ...]
    locations: tuple[str, ...]
    av_actions: tuple[str, ...]
    tubes: SmallNetwork
    drive: SmallNetwork
    facts: Mapping[str, Any]

    def scores(self, features: npt.ArrayLike) -> tuple[Floats32, Floats32]:
        """(n, actions) and (n, locations) probabilities of (n, features) of tubes."""
        return self.convert_logits(self.tubes.logits(features))

    def convert_logits(self, logits: Floats32) -> tuple[Floats32, Floats32]:
        """(n, actions) and (n, locations) probabilities of (n, labels) logits of `tubes`."""
        found: Floats32 = np.reciprocal(np.float32(1.0) + np.exp(-logits))
        return found[:, : len(self.actions)], found[:, len(self.actions) :]

    def av_scores(self, features: npt.ArrayLike) -> Floats32:
        """(av_actions,) probabilities, which sum to 1, of (columns,) features of the own vehicle."""
        logits = self.drive.logits(np.asarray(features)[None])[0]
        # Less the largest, so that nothing overflows.
        raised = np.exp(logits - logits.max())
        return np.asarray(raised / raised.sum(), np.float32)


def save_head(head: EventHead, path: Path) -> None:
    """Write a head as a safetensors file.

    Raises:
        DiskError: if the disk refuses.
    """
    about = {
        "format": FORMAT,
        "actions": head.actions,
        "locations": head.locations,
        "av_actions": head.av_actions,
        "features": FEATURES,
        "scene_features": SCENE_FEATURES,
        "facts": dict(head.facts),
    }
    write_networks(about, {**head.tubes.tensors("tubes"), **head.drive.tensors("drive")}, path)


def write_networks(about: Mapping[str, Any], tensors: Mapping[str, Floats32], path: Path) -> None:
    """Write networks as a safetensors file.

    Args:
        about: what it says of itself, with its `format`.
        tensors: by name.
        path: where to.

    Raises:
        DiskError: if the disk refuses.
    """
    header: dict[str, Any] = {"__metadata__": {"roadaware": json.dumps(about, sort_keys=True)}}
    parts, at = [], 0
    for name, tensor in sorted(tensors.items()):
        data = np.ascontiguousarray(tensor, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    # Filled up with spaces: safetensors files begin their numbers at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    write_atomically(path, struct.pack("<Q", len(text)) + text + b"".join(parts))


def open_head(path: Path | None = None) -> EventHead:
    """The head in a file; the one that came with roadaware where None.

    Raises:
        InputError: if it cannot be read.
        DamagedError: if it is no event head, or one of other features.
    """
    path = path or Path(__file__).resolve().parents[2] / "weights" / INSTALLED
    where = to_printable(str(path))
    raw = read_file(path, where, _MOST_BYTES)
    try:
        about, tensors = parse_networks(raw, FORMAT)
        head = EventHead(
            tuple(about["actions"]),
            tuple(about["locations"]),
            tuple(about["av_actions"]),
            build_network(tensors, "tubes"),
            build_network(tensors, "drive"),
            about["facts"],
        )
        alike = about["features"] == list(FEATURES) and about["scene_features"] == list(SCENE_FEATURES)
        shapes = fits_layout(head.tubes, len(FEATURES), len(head.actions) + len(head.locations))
        shapes = shapes and fits_layout(head.drive, len(SCENE_FEATURES), len(head.av_actions))
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise DamagedError(f"expected an event head: {str(error)[:200]}", where=where) from error
    if not (alike and shapes):
        raise DamagedError("this event head reads other features than this version makes", where=where)
    return head


def parse_networks(raw: bytes, form: str) -> tuple[dict[str, Any], dict[str, Floats32]]:
    """What a file of `write_networks` says of itself, and its tensors.

    Raises:
        ValueError, KeyError, TypeError, struct.error: if it is no such file, or of another format.
    """
    (length,) = struct.unpack("<Q", raw[:8])
    # The length is whatever the file says; a slice beyond its end would be shortened in silence.
    if length > len(raw) - 8:
        raise ValueError("it is cut off")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    about = json.loads(header.pop("__metadata__")["roadaware"])
    if about["format"] != form:
        raise ValueError(f"its format is {str(about['format'])[:40]}")
    tensors = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        if entry["dtype"] != "F32" or not 0 <= start <= stop <= len(data):
            raise ValueError(f"{name[:40]} is cut off, or of another type")
        tensors[name] = np.frombuffer(data[start:stop], "<f4").astype(np.float32).reshape(entry["shape"])
        if not np.isfinite(tensors[name]).all():
            raise ValueError(f"{name[:40]} has numbers that are not finite")
    return about, tensors


def build_network(tensors: Mapping[str, Floats32], prefix: str) -> SmallNetwork:
    """The networks whose tensors have a prefix.

    Raises:
        ValueError, KeyError: if there is none, or a part is missing.
    """
    networks: list[tuple[tuple[Floats32, Floats32], ...]] = []
    while f"{prefix}.{len(networks)}.0.weight" in tensors:
        n = len(networks)
        layers: list[tuple[Floats32, Floats32]] = []
        while f"{prefix}.{n}.{len(layers)}.weight" in tensors:
            at = f"{prefix}.{n}.{len(layers)}"
            layers.append((tensors[f"{at}.weight"], tensors[f"{at}.bias"]))
        networks.append(tuple(layers))
    if not networks:
        raise ValueError(f"there is no network of the {prefix}")
    one = {name: tensors[f"{prefix}.{name}"] for name in ("mean", "spread", "slope", "offset")}
    return SmallNetwork(layers=tuple(networks), **one)


def fits_layout(network: SmallNetwork, inputs: int, labels: int) -> bool:
    """Whether the layers fit each other, and what goes in and comes out."""
    for layers in network.layers:
        width = inputs
        for weight, bias in layers:
            if weight.ndim != 2 or weight.shape != (width, len(bias)) or bias.ndim != 1:
                return False
            width = len(bias)
        if width != labels:
            return False
    sides = (network.mean, network.spread, network.slope, network.offset)
    wanted = ((inputs,), (inputs,), (labels,), (labels,))
    return all(each.shape == shape for each, shape in zip(sides, wanted, strict=True)) and bool(
        (network.spread > 0).all()
    )


def has_installed_head() -> bool:
    """Whether a head came with this installation."""
    return (Path(__file__).resolve().parents[2] / "weights" / INSTALLED).is_file()


def read_installed_digest() -> str:
    """Of the file of the head that came with this installation: 24 hexadecimal digits.

    Raises:
        InputError: if there is none.
    """
    path = Path(__file__).resolve().parents[2] / "weights" / INSTALLED
    return hashlib.blake2b(read_file(path, to_printable(str(path)), _MOST_BYTES), digest_size=12).hexdigest()
