"""Crops of images around boxes, with what surrounds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.errors import UsageError


@dataclass(frozen=True)
class CropRule:
    """The crop of an image for a box.

    Args:
        margin: of the longer side, added on every side.
        square: whether the shorter side is widened to the longer one, so that nothing is cut off or stretched
            when the crop is brought to the square that a network sees.

    Raises:
        UsageError: if the margin is negative, or above 10.
    """

    margin: float = 0.1
    square: bool = True

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if not 0 <= self.margin <= 10:
            raise UsageError(f"a margin lies from 0 to 10, not {self.margin!r}")


def crop(
    image: npt.NDArray[np.uint8], box: npt.NDArray[np.floating], rule: CropRule | None = None
) -> npt.NDArray[np.uint8]:
    """(h, w, 3) of an image around a box; at least one pixel, moved or cut where it would leave the image.

    Args:
        image: (H, W, 3).
        box: (4,) x1, y1, x2, y2 in pixels.
        rule: how much.

    >>> crop(np.zeros((20, 30, 3), np.uint8), np.array([10, 5, 14, 7]), CropRule(0.25)).shape
    (6, 6, 3)
    """
    rule = rule or CropRule()
    x1, y1, x2, y2 = (float(side) for side in box)
    wide, high = max(x2 - x1, 1.0), max(y2 - y1, 1.0)
    room = 2 * rule.margin * max(wide, high)
    across, down = wide + room, high + room
    if rule.square:
        across = down = max(across, down)
    left, right = _span((x1 + x2) / 2, across, image.shape[1])
    top, bottom = _span((y1 + y2) / 2, down, image.shape[0])
    return image[top:bottom, left:right]


def _span(middle: float, length: float, limit: int) -> tuple[int, int]:
    """Begin and end of a stretch around a point, inside 0 to a limit."""
    count = min(max(round(length), 1), limit)
    begin = min(max(round(middle - count / 2), 0), limit - count)
    return begin, begin + count


# Lists of texts that models are asked for: each once, none empty.

MOST_TEXTS = 2000


def validate_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts without spaces around them, in their order.

    Raises:
        UsageError: if there is none, one is empty, or two are the same but for case and spaces.

    >>> validate_texts(["tyre ", "traffic  cone"])
    ('tyre', 'traffic cone')
    """
    found = tuple(" ".join(str(text).split()) for text in texts)
    if not found or not all(found):
        raise UsageError("texts name what is looked for, such as tyre,dog: give at least one, and none empty")
    if len(found) > MOST_TEXTS:
        raise UsageError(f"{len(found)} texts; up to {MOST_TEXTS} are asked for at once")
    plain = [text.casefold() for text in found]
    twice = sorted({text for text in found if plain.count(text.casefold()) > 1})
    if twice:
        raise UsageError(f"texts stand twice: {', '.join(twice[:5])}; name each once")
    return found
