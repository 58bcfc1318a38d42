"""The network as a Detector: frame by frame where it is causal, else in windows with a delay."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.models.retinanet3d.decode import LazyNetwork, RawDetections, detect
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.retinanet3d.pictures import Fit, checked
from roadaware.models.retinanet3d.rule import DetectRule


class _NetworkDetector:
    """What both have: the vocabulary, the size of the stream, the way from and to original pixels."""

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...],
        rule: DetectRule | None,
    ) -> None:
        labels = sum(len(names) for names in kinds.values())
        if labels + 1 != network.n_classes or len(av_labels) != network.n_av:
            raise UsageError(
                f"the network tells {network.n_classes - 1} labels and {network.n_av} actions of the own "
                f"vehicle; named are {labels} and {len(av_labels)}"
            )
        self.kinds, self.av_labels = {kind: tuple(names) for kind, names in kinds.items()}, tuple(av_labels)
        self.rule = rule or DetectRule()
        self.fit = Fit.of(network.config)
        self._place = next(network.parameters())
        self._shape: tuple[int, ...] | None = None
        self._frame = 0

    def _fitted(self, picture: Pixels) -> Tensor:
        """(3, 1, h, w), where and as the network wants it."""
        checked(picture, self._shape)
        self._shape = picture.shape
        return self.fit.fit(picture)[0][:, None].to(self._place)

    def _answer(self, raw: RawDetections) -> FrameDetections:
        """The next frame, in pixels of the picture as it was given."""
        if self._shape is None:
            raise UsageError("no picture was given yet")
        boxes = self.fit.back(raw.boxes, self._shape[0], self._shape[1])
        parts = (part.float().cpu().numpy() for part in (boxes, raw.agentness, raw.scores, raw.av))
        self._frame += 1
        return FrameDetections(self._frame - 1, *(np.ascontiguousarray(part) for part in parts))


class StreamDetector(_NetworkDetector):
    """A causal network on a stream: each picture goes through it once, and is answered at once.

    Every layer keeps what it must know of earlier frames, so that the answers are those of a causal clip
    from the first picture on, however long the stream is, and no later picture changes them.

    Args:
        network: causal, with its weights, which are taken as they are when this is made.
        kinds: the labels that the columns of the scores stand for, in order, of each kind.
        av_labels: the actions of the own vehicle.
        rule: which boxes are kept.

    Raises:
        UsageError: if the network is not causal or tells other numbers of labels.
    """

    delay = 0

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
    ) -> None:
        if not network.config.causal:
            raise UsageError("this network looks ahead: a WindowDetector answers with its delay")
        super().__init__(network, kinds, av_labels, rule)
        self.network = LazyNetwork(network, streaming=True)

    def reset(self) -> None:
        """Forget the stream."""
        self.network.forget()
        self._shape, self._frame = None, 0

    def step(self, picture: Pixels) -> list[FrameDetections]:
        """The frame of this picture.

        Raises:
            InputError: if it is no picture, or of another size than the one before.
        """
        return [self._answer(self.network.detect(self._fitted(picture)[None], self.rule)[0][0])]

    def finish(self) -> list[FrameDetections]:
        """Nothing is owed; forgets the stream."""
        self.reset()
        return []


class WindowDetector(_NetworkDetector):
    """A network that looks ahead, on a stream: clips of `window` frames, each frame answered once.

    A clip answers the positions of `keep`; the next one begins so much later that its kept positions follow
    on. A frame is answered when its clip is full: at most `delay` = window - 1 - keep.start pictures later.
    Where `keep` does not begin with 0, the first picture stands in for the frames before it. When the stream
    ends, the frames still owed are answered by a clip of the last `window` frames. A video shorter than a
    clip is filled up at its end with copies of its last picture (the release leaves it out).

    Args:
        network: with its weights.
        kinds, av_labels, rule: as of `StreamDetector`.
        window: frames of a clip, as in training.
        keep: consecutive positions of a clip that are answered; all but the last `rule.dropped` by default.

    Raises:
        UsageError: if the network tells other numbers of labels, or `keep` is no part of the window.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        keep: range | None = None,
    ) -> None:
        super().__init__(network, kinds, av_labels, rule)
        keep = range(window - self.rule.dropped) if keep is None else keep
        if keep.step != 1 or not 0 <= keep.start < keep.stop <= window:
            raise UsageError(f"{keep} are no consecutive positions of a clip of {window} frames")
        self.network = network.eval()
        self.window, self.keep, self.delay = window, keep, window - 1 - keep.start
        self._clip: deque[Tensor] = deque(maxlen=window)
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        self._clip.clear()
        self._shape, self._frame, self._given = None, 0, 0

    def step(self, picture: Pixels) -> list[FrameDetections]:
        """The frames whose clip this picture completes.

        Raises:
            InputError: if it is no picture, or of another size than the one before.
        """
        fitted = self._fitted(picture)
        if not self._given:
            self._clip.extend([fitted] * self.keep.start)
        self._clip.append(fitted)
        self._given += 1
        if self._given < self._frame + self.window - self.keep.start:
            return []
        return self._answered(self.keep)

    def finish(self) -> list[FrameDetections]:
        """The frames still owed; forgets the stream."""
        owed = self._given - self._frame
        if not owed:
            self.reset()
            return []
        missing = self.window - len(self._clip)
        if missing:
            self._clip.extend([self._clip[-1]] * missing)
        last = self.window - missing
        answers = self._answered(range(last - owed, last))
        self.reset()
        return answers

    def _answered(self, positions: range) -> list[FrameDetections]:
        raw = detect(self.network, torch.cat(list(self._clip), dim=1)[None], self.rule)[0]
        return [self._answer(raw[position]) for position in positions]
