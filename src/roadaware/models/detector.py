"""Interface of detectors of road events: images in, detections of frames out, in order, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from roadaware.arrays import Bools, Floats, Floats32, Pixels
from roadaware.errors import DamagedError, InputError
from roadaware.scenes.advice import Advice, merge_advice, parse_advice


@dataclass(frozen=True, eq=False)
class Expected:
    """What is expected of the detections of a frame some seconds ahead; rows are those of the detections.

    Args:
        ahead_s: how far ahead, in seconds.
        known: (n,) whether anything is expected of a detection: of those that are linked.
        present: (n,) probability that the object is still seen then.
        boxes: (n, 4) where it is expected, x1, y1, x2, y2 in pixels; beyond the image where it leaves.
        velocity: (n, 4) where constant velocity would take it.
        labels: kind to its labels, and (n, labels) their probabilities then.
        now: kind to (n, labels) their probabilities now, by the same head.
    """

    ahead_s: float
    known: Bools
    present: Floats32
    boxes: Floats
    velocity: Floats
    labels: Mapping[str, tuple[tuple[str, ...], Floats32]]
    now: Mapping[str, Floats32]


@dataclass(frozen=True, eq=False)
class FrameDetections:
    """Detections of one frame.

    Args:
        frame: counts from 0 in the order in which images were given.
        boxes: (n, 4) x1, y1, x2, y2 in pixels of the image as it was given, by falling agentness.
        agentness: (n,) in [0, 1].
        scores: (n, c) in [0, 1], all labels of the first kind, then of the second, ...
        av: (v,) in [0, 1] of the actions of the own vehicle; empty where the detector has none.
        expected: what is expected of them; None where nobody was asked.
    """

    frame: int
    boxes: Floats32
    agentness: Floats32
    scores: Floats32
    av: Floats32
    expected: Expected | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.boxes)


class Detector(Protocol):
    """A detector that is given images one after another.

    `kinds` says which labels the columns of `scores` stand for, in order (agent, action, location, duplex,
    event; agent alone for a plain object detector), `av_labels` those of `av`. `delay` is how many later
    images it needs before it answers: 0 for a causal one.
    """

    kinds: Mapping[str, tuple[str, ...]]
    av_labels: tuple[str, ...]
    delay: int

    def reset(self) -> None:
        """Forget the stream: the next image is frame 0 of another video."""

    def step(self, image: Pixels) -> Sequence[FrameDetections]:
        """The frames completed by one more image, oldest first; empty while the detector looks ahead.

        Args:
            image: (H, W, 3) uint8, red first; all of a stream have the same size.

        Raises:
            InputError: if the image has another size than the one before.
        """

    def finish(self) -> Sequence[FrameDetections]:
        """The remaining frames at the end of the stream; resets the state."""


@runtime_checkable
class TimedDetector(Protocol):
    """A detector for which it matters when an image was taken."""

    def tell_moment(self, number: int, t_s: float) -> None:
        """Number and time of the image that is given next.

        Args:
            number: counts frames, also those that did not arrive.
            t_s: in seconds, later than that of the image before.
        """


# What a detector's file says of itself besides its network: advice, and what it learnt from.

FACTS = "roadaware"
"""The key of a safetensors file's metadata under which ours stand."""
_SIMULATOR = "simulator"
_UNKNOWN_START = "synthetic scenes; not validated on real roads"
_LONGEST = 120


def read_notes(path: Path | str) -> dict[str, Any]:
    """The notes that `save_detector` was given; empty for a file or folder that is none of ours.

    Args:
        path: of a detector.
    """
    from roadaware.models.tensor_files import parse_facts, read_about

    if not Path(path).is_file():
        return {}
    try:
        notes = parse_facts(read_about(Path(path)), FACTS, str(path)).get("notes")
    except InputError:  # whoever opens the network says what is wrong
        return {}
    return notes if isinstance(notes, dict) else {}


def read_advice(paths: Sequence[Path]) -> Advice:
    """How the detector that some files make together wants its predictions used.

    Args:
        paths: of the networks of a mean, or of one detector; those of others advise nothing.

    Raises:
        DamagedError: if a file's advice is none.
    """
    return merge_advice([parse_advice(read_notes(path), str(path)) for path in paths])


def read_training_data(paths: Sequence[Path]) -> str:
    """Training data of a detector in words, where it is synthetic alone; else empty.

    Args:
        paths: as of `read_advice`; one that learnt from real videos makes it empty.

    Raises:
        DamagedError: if a file says it in no words.
    """
    said = [_training_words(read_notes(path), path) for path in paths]
    return "; ".join(dict.fromkeys(said)) if all(said) else ""


def _training_words(notes: dict[str, Any], path: Path) -> str:
    words = notes.get("trained_on")
    if words is None:
        return _UNKNOWN_START if notes.get("data") == _SIMULATOR else ""
    if not isinstance(words, str) or not words.isprintable() or len(words) > _LONGEST:
        expected = f"expected what the detector was trained on in up to {_LONGEST} letters"
        raise DamagedError(f"{expected}, found {str(words)[:40]!r}", where=str(path))
    return words
