"""The network as a Detector: frame by frame where it is causal, else in windows with a delay."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import InputError, UsageError
from roadaware.models.detector import FrameDetections
from roadaware.models.retinanet3d.config import DetectRule, RetinaNetConfig
from roadaware.models.retinanet3d.decode import LazyNetwork, RawDetections, detect
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.videos import VideoDetector

# Images as the network wants them, and boxes back to pixels of the original image.

_WANTED = "images are (H, W, 3) arrays of uint8, red first"


@dataclass(frozen=True)
class Fit:
    """Resizes an image so that its short side has a length, normalises it and pads it with zeros.

    Args:
        short_side_px: of the resized image; its long side is cut down to a whole pixel.
        multiple_px: right and bottom are padded up to a multiple.
        mean, std: of the channels, red first, of images in [0, 1].

    Source: the released code of 3D-RetinaNet: bilinear, with antialiasing.
    """

    short_side_px: int = 512
    multiple_px: int = 32
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    @classmethod
    def of(cls, config: RetinaNetConfig) -> Fit:
        """As a network was made for."""
        return cls(config.short_side_px, config.multiple_px, config.mean, config.std)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of an image once it is resized, not yet padded."""
        short = self.short_side_px
        # Cut, not rounded, as released: 1280 x 960 becomes 682 x 512.
        if width < height:
            return int(short * height / width), short
        return short, int(short * width / height)

    def fit(self, image: Pixels) -> tuple[Tensor, float, float]:
        """One image.

        Args:
            image: (H, W, 3) uint8, red first.

        Returns:
            (3, h, w) float32, and by how much its width and its height were scaled.

        Raises:
            InputError: if it is no such array or has no pixels.
        """
        batch, scale_x, scale_y = self.fit_all([image])
        return batch[:, 0], scale_x, scale_y

    def fit_all(self, images: Sequence[Pixels]) -> tuple[Tensor, float, float]:
        """Frames of one video.

        Args:
            images: of (H, W, 3) uint8, all of the same size.

        Returns:
            (3, T, h, w) float32, as a clip of the network, and by how much width and height were scaled.

        Raises:
            InputError: if one is no such array, none is given, or their sizes differ.
        """
        if not len(images):
            raise InputError("at least one image is needed", hint=_WANTED)
        for image in images:
            check_frame(image, images[0].shape)
        height, width = images[0].shape[:2]
        new = self.size(height, width)
        wide = [-(-n // self.multiple_px) * self.multiple_px for n in new]
        clip = torch.zeros(3, len(images), *wide)
        # (x / 255 - mean) / std on bytes, as one difference and one product.
        mean = torch.tensor(self.mean).mul(255).view(3, 1, 1)
        factor = torch.tensor(self.std).mul(255).reciprocal().view(3, 1, 1)
        for frame, image in enumerate(images):
            inside = clip[:, frame, : new[0], : new[1]]
            inside.copy_(_resize_frame(image, new)).sub_(mean).mul_(factor)
        return clip, new[1] / width, new[0] / height

    def back(self, boxes: Tensor, height: int, width: int) -> Tensor:
        """Boxes of the network in pixels of the original image, clipped to it.

        Args:
            boxes: (..., 4) x1, y1, x2, y2 in pixels of what `fit` gave.
            height, width: of the original image.

        Returns:
            (..., 4).
        """
        new = self.size(height, width)
        x, y = width / new[1], height / new[0]
        limits = boxes.new_tensor([width, height, width, height])
        scaled = boxes * boxes.new_tensor([x, y, x, y])
        return torch.minimum(scaled.clamp(min=0), limits)


def check_frame(image: Pixels, like: tuple[int, ...] | None = None) -> Pixels:
    """The same image, if it is one, and if it has the size of the others.

    Args:
        image: (H, W, 3) uint8.
        like: the shape of the images before it.

    Raises:
        InputError: if it is none, or of another size.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise InputError(f"got an array of {image.dtype} with shape {image.shape}", hint=_WANTED)
    if like is not None and image.shape != like:
        was, now = (f"{shape[1]}x{shape[0]}" for shape in (like, image.shape))
        raise InputError(
            f"images of {was} are followed by one of {now}",
            hint="all images of a stream have one size: resize them, or begin another stream",
        )
    return image


def _resize_frame(image: Pixels, size: tuple[int, int]) -> Tensor:
    """(3, h, w) uint8."""
    # torch warns of arrays that cannot be written to, and takes no negative strides.
    owned = image if image.flags.writeable and image.flags.c_contiguous else image.copy()
    tensor = torch.from_numpy(owned).permute(2, 0, 1)
    if tuple(tensor.shape[1:]) == size:
        return tensor
    return functional.interpolate(tensor[None], size=size, mode="bilinear", antialias=True)[0]


class _NetworkDetector:
    """Base of both detectors: vocabulary, size of the stream, scaling from and to original pixels."""

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

    def _fitted(self, image: Pixels) -> Tensor:
        """(3, 1, h, w), where and as the network wants it."""
        check_frame(image, self._shape)
        self._shape = image.shape
        return self.fit.fit(image)[0][:, None].to(self._place)

    def _answer(self, raw: RawDetections) -> FrameDetections:
        """The next frame, in pixels of the image as it was given."""
        if self._shape is None:
            raise UsageError("no image was given yet")
        boxes = self.fit.back(raw.boxes, self._shape[0], self._shape[1])
        parts = (part.float().cpu().numpy() for part in (boxes, raw.agentness, raw.scores, raw.av))
        self._frame += 1
        return FrameDetections(self._frame - 1, *(np.ascontiguousarray(part) for part in parts))


class StreamDetector(_NetworkDetector):
    """A causal network on a stream: each image goes through it once, and is answered at once.

    Every layer keeps what it must know of earlier frames, so that the answers are those of a causal clip
    from the first image on, however long the stream is, and no later image changes them.

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

    def step(self, image: Pixels) -> list[FrameDetections]:
        """The frame of this image.

        Raises:
            InputError: if it is no image, or of another size than the one before.
        """
        return [self._answer(self.network.detect(self._fitted(image)[None], self.rule)[0][0])]

    def finish(self) -> list[FrameDetections]:
        """Nothing is owed; forgets the stream."""
        self.reset()
        return []


class WindowDetector(_NetworkDetector):
    """A network that looks ahead, on a stream: clips of `window` frames, each frame answered once.

    A clip answers the positions of `keep`; the next one begins so much later that its kept positions follow
    on. A frame is answered when its clip is full: at most `delay` = window - 1 - keep.start images later.
    Where `keep` does not begin with 0, the first image stands in for the frames before it. When the stream
    ends, the frames still owed are answered by a clip of the last `window` frames. A video shorter than a
    clip is filled up at its end with copies of its last image (the release leaves it out).

    Args:
        network: with its weights.
        kinds, av_labels, rule: as of `StreamDetector`.
        window: frames of a clip, as in training.
        keep: consecutive positions of a clip that are answered; all but the last `rule.dropped` by default.

    Raises:
        UsageError: if the network has other numbers of labels, or `keep` is no part of the window.
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

    def step(self, image: Pixels) -> list[FrameDetections]:
        """The frames whose clip this image completes.

        Raises:
            InputError: if it is no image, or of another size than the one before.
        """
        fitted = self._fitted(image)
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


# The network on whole videos: streams of many frames at a time, or batches of clips; imports torch.


class NetworkVideos(VideoDetector):
    """A network as a detector of whole videos: on a stream if it is causal, else by clips.

    Args:
        network: with its weights, which are taken as they are when this is made.
        kinds, av_labels, rule, window, batch: as of `VideoDetector`.

    Raises:
        UsageError: if the network has other numbers of labels than are named.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        batch: int = 1,
    ) -> None:
        check_label_counts(network.n_classes, network.n_av, kinds, av_labels)
        causal = network.config.causal
        super().__init__(kinds, av_labels, rule, causal=causal, window=window, batch=batch)
        self.network, self.fit = network.eval(), Fit.of(network.config)
        self.lazy = LazyNetwork(network, streaming=True) if causal else None

    def forget(self) -> None:
        """Begin a new stream."""
        if self.lazy is not None:
            self.lazy.forget()

    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        if self.lazy is None:
            raise UsageError("this network looks ahead: it is asked about clips")
        raw = self.lazy.detect(prepare_clips(self.fit, [images], self.network), self.rule)[0]
        return [build_frame_detections(each, self.fit, images[0]) for each in raw]

    def look(self, images: Sequence[Sequence[Pixels]]) -> list[list[FrameDetections]]:
        """As of `VideoDetector`."""
        raw = detect(self.network, prepare_clips(self.fit, images, self.network), self.rule)
        return [[build_frame_detections(each, self.fit, images[0][0]) for each in clip] for clip in raw]


def check_label_counts(
    n_classes: int, n_av: int, kinds: Mapping[str, tuple[str, ...]], av_labels: Sequence[str]
) -> None:
    """Nothing, where labels are as many as a network has.

    Raises:
        UsageError: if they are not.
    """
    labels = sum(len(names) for names in kinds.values())
    if labels + 1 != n_classes or len(av_labels) != n_av:
        raise UsageError(
            f"the network tells {n_classes - 1} labels and {n_av} actions of the own vehicle; named are "
            f"{labels} and {len(av_labels)}"
        )


def prepare_clips(fit: Fit, clips: Sequence[Sequence[Pixels]], network: torch.nn.Module) -> Tensor:
    """(B, 3, T, h, w) of clips of images of one size, where and as the network wants them."""
    return torch.stack([fit.fit_all(clip)[0] for clip in clips]).to(next(network.parameters()))


def build_frame_detections(raw: RawDetections, fit: Fit, image: Pixels) -> FrameDetections:
    """Detections of a frame in pixels of its image; the caller sets the frame number."""
    boxes = fit.back(raw.boxes, image.shape[0], image.shape[1])
    parts = (part.float().cpu().numpy() for part in (boxes, raw.agentness, raw.scores, raw.av))
    return FrameDetections(0, *(np.ascontiguousarray(part) for part in parts))
