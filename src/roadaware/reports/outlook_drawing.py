"""What is expected of pedestrians, drawn: a gauge beside each of them, and where they will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roadaware.online.outlook import Outlook

Area = tuple[float, float, float, float]
Colour = tuple[int, int, int]
_INK, _WHITE = (16, 16, 16), (255, 255, 255)
_SCALE: tuple[Colour, ...] = ((70, 190, 90), (255, 190, 0), (235, 50, 45))
"""Colours of the probabilities 0, 0.5 and 1."""
_LEAST_PX = 24
_WHERE: Colour = (255, 140, 0)


def colour_of(probability: float) -> Colour:
    """From green over amber to red.

    Args:
        probability: in [0, 1].

    >>> colour_of(0.0), colour_of(0.5), colour_of(1.0)
    ((70, 190, 90), (255, 190, 0), (235, 50, 45))
    """
    place = min(max(probability, 0.0), 1.0) * (len(_SCALE) - 1)
    first = min(int(place), len(_SCALE) - 2)
    low, high = _SCALE[first], _SCALE[first + 1]
    red, green, blue = (round(a + (place - first) * (b - a)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def words_of_outlook(outlook: Outlook | None) -> str | None:
    """What is written beside a pedestrian; None where nothing is known of crossing.

    Args:
        outlook: of the pedestrian.
    """
    if outlook is not None and outlook.unknown is not None:
        return f"crosses ? ({outlook.unknown})"
    if outlook is None or outlook.crossing is None:
        return None
    return f"crosses {100 * outlook.crossing:.0f} %"


def gauge(pen: Any, box: Area, outlook: Outlook, size: tuple[int, int]) -> Area | None:
    """Draw a bar beside a box, filled from below as far as crossing is probable, with its interval in white.

    It stands on the left of the box, or on the right where there is no room, and is never lower than 24
    pixels.

    Args:
        pen: that draws.
        box: x1, y1, x2, y2 in pixels of the drawing.
        outlook: of the pedestrian.
        size: width and height of the drawing.

    Returns:
        The room that it takes; None where nothing is known of crossing.
    """
    if outlook.crossing is None:
        return None
    wide = max(4, min(size) // 100)
    left = box[0] - wide - 3 if box[0] >= wide + 3 else box[2] + 3
    bottom = min(box[3], size[1] - 1.0)
    top = max(0.0, min(box[1], bottom - _LEAST_PX))
    area = (left, top, left + wide, bottom)
    pen.rectangle((left - 1, top - 1, left + wide + 1, bottom + 1), fill=_INK)

    def level(share: float) -> float:
        return bottom - share * (bottom - top)

    pen.rectangle((left, level(outlook.crossing), left + wide, bottom), fill=colour_of(outlook.crossing))
    if outlook.low is not None and outlook.high is not None:
        middle = left + wide / 2
        pen.line((middle, level(outlook.high), middle, level(outlook.low)), fill=_WHITE)
        for share in (outlook.low, outlook.high):
            pen.line((left, level(share), left + wide, level(share)), fill=_WHITE)
    return area


def strip(pen: Any, outlooks: Sequence[Outlook], bottom: float, size: tuple[int, int]) -> Area | None:
    """Draw a cell for each region of the picture, the brighter the likelier somebody will be in it.

    Args:
        pen: that draws.
        outlooks: of all pedestrians; each cell shows the largest of their probabilities.
        bottom: lower edge of the strip.
        size: width and height of the drawing.

    Returns:
        The room that it takes; None where nothing is known of regions.
    """
    known = [outlook for outlook in outlooks if outlook.regions]
    if not known:
        return None
    high, n = max(5, min(size) // 60), len(known[0].regions)
    for place in range(n):
        likely = max(outlook.regions[place] for outlook in known)
        shade = [round(a + likely * (b - a)) for a, b in zip(_INK, _WHERE, strict=True)]
        left, right = place * size[0] / n, (place + 1) * size[0] / n - 1
        told = any(outlook.region == place for outlook in known)
        pen.rectangle(
            (left, bottom - high, right, bottom), fill=tuple(shade), outline=_WHITE if told else _INK
        )
    return 0.0, bottom - high, float(size[0]), bottom
