"""What every detector of road events answers: pictures in, detections of frames out, in order, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from roadaware.arrays import Floats32, Pixels


@dataclass(frozen=True, eq=False)
class FrameDetections:
    """What a detector claims of one frame.

    Args:
        frame: counts from 0 in the order in which pictures were given.
        boxes: (n, 4) x1, y1, x2, y2 in pixels of the picture as it was given, by falling agentness.
        agentness: (n,) in [0, 1].
        scores: (n, c) in [0, 1], all labels of the first kind, then of the second, ...
        av: (v,) in [0, 1] of the actions of the own vehicle; empty where the detector has none.
    """

    frame: int
    boxes: Floats32
    agentness: Floats32
    scores: Floats32
    av: Floats32

    def __len__(self) -> int:
        return len(self.boxes)


class Detector(Protocol):
    """A detector that is given pictures one after another.

    `kinds` says which labels the columns of `scores` stand for, in order (agent, action, location, duplex,
    event; agent alone for a plain object detector), `av_labels` those of `av`. `delay` is how many later
    pictures it needs before it answers: 0 for a causal one.
    """

    kinds: Mapping[str, tuple[str, ...]]
    av_labels: tuple[str, ...]
    delay: int

    def reset(self) -> None:
        """Forget the stream: the next picture is frame 0 of another video."""

    def step(self, picture: Pixels) -> Sequence[FrameDetections]:
        """The frames that became known by one more picture, oldest first; none while it must wait.

        Args:
            picture: (H, W, 3) uint8, red first; all of a stream have the same size.

        Raises:
            InputError: if the picture has another size than the one before.
        """

    def finish(self) -> Sequence[FrameDetections]:
        """The frames still owed when no more pictures come; forgets the stream."""


@runtime_checkable
class TimedDetector(Protocol):
    """A detector for which it matters when a picture was taken."""

    def tell_moment(self, number: int, t_s: float) -> None:
        """Number and time of the picture that is given next.

        Args:
            number: counts frames, also those that did not arrive.
            t_s: in seconds, later than that of the picture before.
        """
