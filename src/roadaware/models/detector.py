"""Interface of detectors of road events, of single images or of whole videos, each frame once; torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from roadaware.arrays import Bools, Floats, Floats32, Pixels
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models.retinanet3d.config import Clip, DetectRule, split_into_clips
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
    """The notes that `save_detector` was given; empty for a file or folder that is none of ours."""
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


class VideoDetector:
    """Base of detectors that look at some frames together; it is a `Detector` as well.

    A subclass answers images in the order in which they come (`follow`, where `causal`), or clips
    (`look`). As a `Detector` a causal one answers each image at once; another one waits for a whole clip,
    whose last `rule.dropped` frames are left to the next one, and at the end of the stream looks at the last
    `window` frames; a stream has no end to lay clips from, so `rule.backwards` means nothing there.

    Args:
        kinds: the labels that the columns of the scores stand for, in order, of each kind.
        av_labels: the actions of the own vehicle.
        rule: which boxes are kept, and how clips are laid.
        causal: no frame needs later ones.
        window: frames of a clip; without meaning for a causal detector.
        batch: frames, or clips, that are processed together: more need more memory and are faster on a GPU.

    Raises:
        UsageError: if `window` or `batch` is below 1, or the rule drops all of a clip.
    """

    single = False
    """Whether it looks at each image by itself, so that these need not follow each other."""

    def __init__(
        self,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        causal: bool,
        window: int = 8,
        batch: int = 1,
    ) -> None:
        if window < 1 or batch < 1:
            raise UsageError(f"a clip and a batch hold 1 or more, not {window} and {batch}")
        self.kinds = {kind: tuple(names) for kind, names in kinds.items()}
        self.av_labels, self.rule = tuple(av_labels), rule or DetectRule()
        self.causal, self.window, self.batch = causal, window, batch
        if not causal:
            split_into_clips(0, window, self.rule)
        self.delay = 0 if causal else window - 1
        self._held: list[Pixels] = []
        self._given = self._answered = 0

    def follow(self, images: Sequence[Pixels]) -> Sequence[FrameDetections]:
        """Detections in the next images of a stream; `frame` is set by the caller.

        Args:
            images: of (H, W, 3) uint8, all of one size.
        """
        raise NotImplementedError

    def look(self, images: Sequence[Sequence[Pixels]]) -> Sequence[Sequence[FrameDetections]]:
        """Detections in every frame of some clips; `frame` is set by the caller.

        Args:
            images: of each clip `window` of (H, W, 3) uint8, all of one size.
        """
        raise NotImplementedError

    def forget(self) -> None:
        """Reset the state of `follow` for a new stream."""

    def reset(self) -> None:
        """Forget the stream: the next image is frame 0 of another video."""
        self.forget()
        self._held, self._given, self._answered = [], 0, 0

    def step(self, image: Pixels) -> list[FrameDetections]:
        """The frames completed by one more image.

        Raises:
            InputError: if it is no image, or of another size than the one before.
        """
        if self._held and image.shape != self._held[-1].shape:
            raise InputError(
                f"an image of {image.shape} follows one of {self._held[-1].shape}",
                hint="all images of a stream have one size: resize them, or begin another stream",
            )
        self._held = [*self._held, image][-self.window :]
        self._given += 1
        if self.causal:
            self._held = [image]
            return self._counted(self.follow([image]))
        if self._given < self._answered + self.window:
            return []
        return self._counted(self.look([self._held])[0][: self.window - self.rule.dropped])

    def finish(self) -> list[FrameDetections]:
        """The frames still owed; forgets the stream."""
        owed = self._given - self._answered
        found: list[FrameDetections] = []
        if owed and not self.causal:
            shown = len(self._held)
            filled = [*self._held, *[self._held[-1]] * (self.window - shown)]
            found = self._counted(self.look([filled])[0][shown - owed : shown])
        self.reset()
        return found

    def detections(self, images: Iterable[Pixels], n_frames: int) -> Iterator[FrameDetections]:
        """Detections in all frames of a video, in order.

        Raises:
            InputError: if images differ in size, or are fewer than `n_frames`.
        """
        self.reset()
        alike = _of_one_size(images)
        if self.causal:
            yield from self._followed(alike, n_frames)
        else:
            yield from self._in_clips(alike, split_into_clips(n_frames, self.window, self.rule))
        self.reset()

    def _followed(self, images: Iterator[Pixels], n_frames: int) -> Iterator[FrameDetections]:
        for start in range(0, n_frames, self.batch):
            yield from self._counted(self.follow(_taken(images, min(self.batch, n_frames - start))))

    def _in_clips(self, images: Iterator[Pixels], asked: Sequence[Clip]) -> Iterator[FrameDetections]:
        """The answers of clips that begin ever later; only frames that clips to come need are held."""
        held: list[Pixels] = []
        first = 0  # the frame that `held` begins with
        for place in range(0, len(asked), self.batch):
            together = asked[place : place + self.batch]
            held, first = held[together[0].start - first :], together[0].start
            end = max(max(clip.start + self.window for clip in together), 0)
            last = asked[-1].answers.stop
            held += _taken(images, min(end, last) - first - len(held))
            shown = [held[clip.start - first : clip.start - first + self.window] for clip in together]
            filled = [[*clip, *[clip[-1]] * (self.window - len(clip))] for clip in shown]
            for clip, found in zip(together, self.look(filled), strict=True):
                inside = slice(clip.answers.start - clip.start, clip.answers.stop - clip.start)
                yield from self._counted(found[inside])

    def _counted(self, found: Sequence[FrameDetections]) -> list[FrameDetections]:
        """With the numbers of the frames."""
        begin = self._answered
        self._answered += len(found)
        return [replace(each, frame=begin + place) for place, each in enumerate(found)]


class Stepwise:
    """Any `Detector` on whole videos, one image after another.

    Args:
        detector: is reset before each video.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector, self.kinds, self.av_labels = detector, detector.kinds, detector.av_labels

    def detections(self, images: Iterable[Pixels], n_frames: int) -> Iterator[FrameDetections]:
        """As of `VideoDetector`."""
        self.detector.reset()
        source = iter(images)
        for _ in range(n_frames):
            yield from self.detector.step(_taken(source, 1)[0])
        yield from self.detector.finish()


def _of_one_size(images: Iterable[Pixels]) -> Iterator[Pixels]:
    """The images, as long as they have the size of the first, whichever are processed together.

    Raises:
        InputError: if one has another.
    """
    first: tuple[int, ...] | None = None
    for image in images:
        first = first or image.shape
        if image.shape[:2] != first[:2]:
            was, now = ("x".join(map(str, shape[1::-1])) for shape in (first, image.shape))
            raise InputError(
                f"images of {was} are followed by one of {now}",
                hint="all images of a video have one size",
            )
        yield image


def _taken(images: Iterator[Pixels], count: int) -> list[Pixels]:
    """The next images.

    Raises:
        InputError: if there are fewer.
    """
    found = [image for _, image in zip(range(count), images, strict=False)]
    if len(found) < count:
        raise InputError(f"a video ends {count - len(found)} or more frames early")
    return found
