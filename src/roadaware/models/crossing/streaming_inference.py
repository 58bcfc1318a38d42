"""Stepping: several `Steady` networks follow many pedestrians side by side, compiled; imports no torch.

A step is a dozen products of small matrices. Calling each of them through torch or numpy takes longer than
the products themselves, and a library of matrix products gives some of them to several threads, of which
most wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32, Ints
from roadaware.models.crossing import kernels
from roadaware.models.crossing.kernels import Weights

if TYPE_CHECKING:
    from roadaware.models.crossing.kernels import Weights
    from roadaware.models.crossing.networks.multitask import Steady

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(eq=False)
class State:
    """State of M networks for P pedestrians.

    Args:
        read: (M, P, sum of 1 + (kernel - 1) dilation, width) what each convolution has read, one convolution
            behind the other, oldest first.
        seen: (M, P, width) embeddings of the newest frame.
        place: (P,) where the centre of the newest box is, in widths of the image; 0 where none is read.
    """

    read: Floats32
    seen: Floats32
    place: Floats32

    def and_more(self, more: State) -> State:
        """Other pedestrians behind these."""
        return State(
            np.concatenate([self.read, more.read], axis=1),
            np.concatenate([self.seen, more.seen], axis=1),
            np.concatenate([self.place, more.place]),
        )

    def forget(self, rows: Ints) -> None:
        """Begin anew with some pedestrians."""
        self.read[:, rows] = 0


class Stepper:
    """The embeddings of M networks of the same width, convolutions and inputs, frame by frame.

    Args:
        networks: trained, with all that they standardise by; taken as they are now.
    """

    def __init__(self, networks: Sequence[Steady]) -> None:
        first, self._kernels = networks[0], kernels
        self.names, config = tuple(first.sequences), first.config
        self._frames = [1 + (config.kernel - 1) * each for each in config.dilations]
        self._width = config.width
        held = [
            {name: value.detach().cpu().float().numpy() for name, value in network.state_dict().items()}
            for network in networks
        ]
        self._weights = _weights(held, self.names, config.dilations, config.kernel)
        self._ahead = [
            (_transpose_weight(each["ahead.tell.weight"]), each["ahead.tell.bias"], network.labels)
            if network.config.places
            else None
            for each, network in zip(held, networks, strict=True)
        ]
        widths = [first.shapes[name][1] for name in self.names]
        self._place = sum(widths[: self.names.index("centre")]) if "centre" in self.names else -1

    def __len__(self) -> int:
        return len(self._weights.mean)

    def start(self, pedestrians: int) -> State:
        """Initial state of new pedestrians."""
        read = np.zeros((len(self), pedestrians, sum(self._frames), self._width), np.float32)
        return State(read, np.zeros_like(read[:, :, 0]), np.zeros(pedestrians, np.float32))

    def follow(self, state: State, rows: Ints, frames: Floats32) -> None:
        """Update the state.

        Args:
            state: of `start`; changed.
            rows: (B,) of the pedestrians, each once.
            frames: (B, k, d) one or more frames, all inputs side by side in the order of `names`; may hold
                NaN, which becomes the mean of training.
        """
        self._kernels.update_recurrent_state(self._weights, state.read, rows, frames, state.seen)
        if self._place >= 0:
            state.place[rows] = frames[:, -1, self._place]

    def embeddings(self, state: State, rows: Ints) -> list[Floats32]:
        """Inputs of the last layer of each network at the newest frame, (B, its inputs).

        Args:
            state: of `follow`.
            rows: (B,) of the pedestrians.
        """
        found = []
        for seen, ahead in zip(state.seen, self._ahead, strict=True):
            each = seen[rows]
            if ahead is not None:
                matrix, bias, regions = ahead
                log_probs = self._kernels.compute_region_log_probs(
                    each, matrix, bias, state.place[rows], regions
                )
                each = np.concatenate([each, log_probs], axis=1)
            found.append(each)
        return found


def _weights(held: Sequence[Arrays], names: Sequence[str], dilations: Sequence[int], taps: int) -> Weights:
    """What networks have learnt, side by side.

    Args:
        held: of each network.
        names: of the inputs, in order.
        dilations: of the convolutions.
        taps: frames that each of them joins.
    """
    layers = range(len(dilations))
    norms = [*(f"back.{at}.norm" for at in layers), "norm"]

    def every(name: str) -> list[npt.NDArray[Any]]:
        return [each[name] for each in held]

    def moment(what: str) -> Floats32:
        columns = [f"{what}_{name.replace(':', '_')}" for name in names]
        return _stack_arrays([np.concatenate([each[column] for column in columns]) for each in held])

    def norm(what: str) -> Floats32:
        return _stack_arrays([np.stack([each[f"{name}.{what}"] for name in norms]) for each in held])

    mixes = [[_transpose_weight(each[f"back.{at}.mix.0.weight"]) for at in layers] for each in held]
    biases = [[each[f"back.{at}.mix.0.bias"] for at in layers] for each in held]
    return Weights(
        mean=moment("mean"),
        spread=moment("spread"),
        into=_stack_arrays([_transpose_weight(each) for each in every("enter.0.weight")]),
        into_bias=_stack_arrays(every("enter.0.bias")),
        out=_stack_arrays([_transpose_weight(each) for each in every("enter.3.weight")]),
        out_bias=_stack_arrays(every("enter.3.bias")),
        gain=norm("weight"),
        shift=norm("bias"),
        mix=_stack_arrays(
            [np.stack([each.reshape(taps, -1, each.shape[1]) for each in some]) for some in mixes]
        ),
        mix_bias=_stack_arrays([np.stack(some) for some in biases]),
        dilations=np.array(dilations, np.int64),
    )


def _transpose_weight(weight: npt.NDArray[Any]) -> Floats32:
    """(into, out) of (out, into)."""
    return np.ascontiguousarray(weight.T)


def _stack_arrays(arrays: Sequence[npt.NDArray[Any]]) -> Floats32:
    return np.stack(arrays).astype(np.float32)
