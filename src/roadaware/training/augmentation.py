"""Augmentation: mirror images, zoom, shift and colours, drawn once for all frames of a clip."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats32, Ints, Pixels
from roadaware.tasks.road_events import Hot
from roadaware.training.footage import resize_image
from roadaware.training.mirroring import Mirror
from roadaware.training.recipe import AugmentRecipe

_LIKELY = 0.5
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(eq=False)
class FramesOfClip:
    """The images of a clip and the ground truth of them, in pixels of these images.

    Args:
        pictures: T of (h, w, 3) uint8.
        boxes: T of (n, 4).
        hot: T of (n, c), which classes boxes have, or how likely.
        av: (T) action of the own vehicle, -1 for unknown.
        colour: (3, 4) what red, green and blue in [0, 1] and 1 are multiplied by; None for as they are.
    """

    pictures: list[Pixels]
    boxes: list[Floats32]
    hot: list[Hot]
    av: Ints
    colour: Floats32 | None = None


def transform_clip(
    clip: FramesOfClip, how: AugmentRecipe, mirror: Mirror, rng: np.random.Generator
) -> FramesOfClip:
    """Apply random augmentation to a clip; always draws the same number of random numbers.

    Args:
        clip: is changed.
        how: what may happen.
        mirror: what becomes of labels.
        rng: of this clip.
    """
    turn, tint, zoom, right, down = rng.random(5)
    shades = rng.uniform(-1, 1, 4)
    likely = np.concatenate([hot > _LIKELY for hot in clip.hot])
    if turn < how.flip and mirror.turns(likely, clip.av):
        _flip(clip, mirror)
    if how.zoom != (1.0, 1.0) or how.shift:
        low, high = (math.log(factor) for factor in how.zoom)
        factor = math.exp(low + zoom * (high - low))
        _move(clip, factor, (2 * right - 1) * how.shift, (2 * down - 1) * how.shift, how.min_visible)
    if tint < how.colour:
        clip.colour = build_colour_matrix(
            brightness=1 + how.brightness * shades[0],
            contrast=1 + how.contrast * shades[1],
            saturation=1 + how.saturation * shades[2],
            hue=how.hue * shades[3],
        )
    return clip


def _flip(clip: FramesOfClip, mirror: Mirror) -> None:
    width = clip.pictures[0].shape[1]
    clip.pictures = [picture[:, ::-1] for picture in clip.pictures]
    clip.boxes = [np.stack([width - b[:, 2], b[:, 1], width - b[:, 0], b[:, 3]], axis=1) for b in clip.boxes]
    clip.hot = [mirror.classes(hot) for hot in clip.hot]
    clip.av = mirror.actions(clip.av)


def _move(clip: FramesOfClip, factor: float, right: float, down: float, min_visible: float) -> None:
    """Zoom about the middle and shift by shares of the image; what comes in is grey."""
    height, width = clip.pictures[0].shape[:2]
    new = (max(1, round(height * factor)), max(1, round(width * factor)))
    x, y = round((width - new[1]) / 2 + right * width), round((height - new[0]) / 2 + down * height)
    clip.pictures = [_pad_image(resize_image(p, new), (height, width), x, y) for p in clip.pictures]
    scale = np.array([new[1] / width, new[0] / height] * 2, dtype=np.float32)
    limits = np.array([width, height] * 2, dtype=np.float32)
    for t, boxes in enumerate(clip.boxes):
        moved = boxes * scale + np.array([x, y, x, y], dtype=np.float32)
        inside = np.clip(moved, 0, limits)
        kept = _area(inside) > min_visible * np.maximum(_area(moved), 1e-6)
        clip.boxes[t], clip.hot[t] = inside[kept], clip.hot[t][kept]


def _area(boxes: Floats32) -> Floats32:
    area: Floats32 = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return area


def _pad_image(picture: Pixels, size: tuple[int, int], x: int, y: int) -> Pixels:
    """The image with its corner at (x, y) of a grey one."""
    canvas = np.full((*size, 3), 114, dtype=np.uint8)
    height, width = picture.shape[:2]
    top, left = max(0, y), max(0, x)
    bottom, right = min(size[0], y + height), min(size[1], x + width)
    if bottom > top and right > left:
        canvas[top:bottom, left:right] = picture[top - y : bottom - y, left - x : right - x]
    return canvas


def build_colour_matrix(*, brightness: float, contrast: float, saturation: float, hue: float) -> Floats32:
    """(3, 4) matrix that changes colours (red, green, blue, 1) in [0, 1], before they are cut off there.

    Args:
        brightness: factor of everything.
        contrast: factor of the distance from middle grey.
        saturation: factor of the distance from the grey of the same lightness.
        hue: turn about the axis of greys, in shares of a circle.
    """
    grey = np.tile(_LUMA, (3, 1))
    saturated = grey + saturation * (np.eye(3) - grey)
    axis = np.full((3, 3), 1 / 3)
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    angle = 2 * math.pi * hue
    turned = axis + math.cos(angle) * (np.eye(3) - axis) + math.sin(angle) * cross
    linear = brightness * contrast * saturated @ turned
    offset = np.full((3, 1), 0.5 * brightness * (1 - contrast))
    return np.concatenate([linear, offset], axis=1).astype(np.float32)
