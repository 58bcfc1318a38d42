"""Stepping: several `Steady` networks follow many pedestrians side by side, in numpy; imports no torch.

A step is a dozen products of small matrices. Calling each of them through torch takes longer than the
products themselves, and networks of one shape need not be called one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import erf, expit, softmax

from roadaware.models.crossing.entries.steady import LEAST, LOG_WIDTHS

if TYPE_CHECKING:
    from roadaware.models.crossing.networks.steady import Steady

Narrow = npt.NDArray[np.float32]
State = tuple[Narrow, ...]
"""What each convolution remembers: (M, B, (kernel - 1) dilation, width), oldest first."""

_EPSILON = np.float32(1e-5)
_HALF, _ROOT = np.float32(0.5), np.float32(math.sqrt(0.5))


class Stepper:
    """The embeddings of M networks of the same sizes and inputs, frame by frame.

    Args:
        networks: trained, with all that they standardise by; taken as they are now.
    """

    def __init__(self, networks: Sequence[Steady]) -> None:
        first = networks[0]
        held = [_arrays(network) for network in networks]
        self.names, self.width = tuple(first.sequences), int(first.last.in_features)
        self.kernel, self.dilations = first.config.kernel, first.config.dilations

        def weight(name: str) -> tuple[Narrow, Narrow]:
            """(M, into, out) and (M, 1, out)."""
            return _stacked([np.ascontiguousarray(each[f"{name}.weight"].T) for each in held]), _stacked(
                [each[f"{name}.bias"][None] for each in held]
            )

        def scale(name: str) -> tuple[Narrow, Narrow]:
            """(M, 1, width) each."""
            return _stacked([each[f"{name}.weight"][None] for each in held]), _stacked(
                [each[f"{name}.bias"][None] for each in held]
            )

        def moment(what: str) -> Narrow:
            """(M, 1, d) of all inputs side by side."""
            names = [f"{what}_{name.replace(':', '_')}" for name in self.names]
            return _stacked([np.concatenate([each[name] for name in names])[None] for each in held])

        self._mean, self._spread = moment("mean"), moment("spread")
        self._enter = weight("enter.0"), weight("enter.3")
        places = range(len(self.dilations))
        self._norms = [scale(f"back.{at}.norm") for at in places] + [scale("norm")]
        self._mixes = [weight(f"back.{at}.mix.0") for at in places]
        inner = first.config.width
        self._ones = np.full((inner, 1), 1 / inner, np.float32)
        self._inner, self._regions = inner, first.labels
        self._ahead = weight("ahead.tell") if first.config.places else None
        widths = [first.shapes[name][1] for name in self.names]
        self._place = sum(widths[: self.names.index("centre")]) if "centre" in self.names else -1

    def __len__(self) -> int:
        return len(self._mean)

    def start(self, pedestrians: int) -> State:
        """What is remembered of pedestrians of whom nothing has been seen."""
        shapes = [(len(self), pedestrians, (self.kernel - 1) * d, self._inner) for d in self.dilations]
        return tuple(np.zeros(shape, np.float32) for shape in shapes)

    def follow(self, state: State, frames: Narrow) -> tuple[State, Narrow]:
        """What to remember, and (M, B, width) the embeddings of the newest frame.

        Args:
            state: of `start` or of the call before.
            frames: (B, k, d) k more frames, all inputs side by side in the order of `names`; may hold NaN.
        """
        n, k = frames.shape[:2]
        x: Narrow = (frames.reshape(1, n * k, -1) - self._mean) / self._spread
        np.copyto(x, 0, where=np.isnan(x))
        (into, bias), (out, shift) = self._enter
        x = _gelu(x @ into + bias) @ out + shift
        after = []
        for norm, mix, dilation, before in zip(self._norms, self._mixes, self.dilations, state, strict=False):
            read = self._normal(x, norm).reshape(len(self), n, k, self._inner)
            seen = np.concatenate([before, read], axis=2)
            taps = [seen[:, :, tap * dilation : tap * dilation + k] for tap in range(self.kernel)]
            joined = np.concatenate(taps, axis=3).reshape(len(self), n * k, -1)
            x = x + _gelu(joined @ mix[0] + mix[1])
            after.append(seen[:, :, k:])
        newest = x.reshape(len(self), n, k, self._inner)[:, :, -1]
        seen = self._normal(newest, self._norms[-1])
        if self._ahead is not None:
            seen = np.concatenate([seen, self._whereabouts(seen, frames[:, -1, self._place])], axis=2)
        return tuple(after), seen

    def _whereabouts(self, seen: Narrow, place: Narrow) -> Narrow:
        """(M, B, regions) log shares of the regions, as `networks.whereabouts.Whereabouts` has them.

        Args:
            seen: (M, B, inner width).
            place: (B,) where the centre of each box is, in widths of the picture.
        """
        matrix, bias = cast("tuple[Narrow, Narrow]", self._ahead)
        told = (seen @ matrix + bias).reshape(*seen.shape[:2], 3, -1)
        centre = place[None, :, None] + told[:, :, 1]
        width = np.exp(np.clip(told[:, :, 2], *LOG_WIDTHS))
        edges = np.arange(1, self._regions, dtype=np.float32) / self._regions
        below = expit((edges[:, None] - centre[:, :, None]) / width[:, :, None])
        share = np.diff(below, axis=2, prepend=np.float32(0), append=np.float32(1))
        found: Narrow = np.log((share * softmax(told[:, :, 0], axis=2)[:, :, None]).sum(3) + LEAST)
        return found.astype(np.float32, copy=False)

    def _normal(self, x: Narrow, norm: tuple[Narrow, Narrow]) -> Narrow:
        """Layer norm over the last axis."""
        apart = x - x @ self._ones
        found: Narrow = apart / np.sqrt((apart * apart) @ self._ones + _EPSILON) * norm[0] + norm[1]
        return found


def _gelu(x: Narrow) -> Narrow:
    found: Narrow = x * (_HALF + _HALF * erf(x * _ROOT))
    return found


def _arrays(network: Steady) -> dict[str, npt.NDArray[Any]]:
    return {name: value.detach().cpu().float().numpy() for name, value in network.state_dict().items()}


def _stacked(arrays: Sequence[npt.NDArray[Any]]) -> Narrow:
    return np.stack(arrays).astype(np.float32)
