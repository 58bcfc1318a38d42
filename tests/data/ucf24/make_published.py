"""Write `published.json`: boxes of a UCF101-24 pickle, and what the published loader makes of them.

    python tests/data/ucf24/make_published.py

Arithmetic in fractions, rounded to single precision where numpy rounds; no code of the library.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

SIDES = (320, 240, 320, 240)
BOXES = {
    "as usual": [21, 31, 40, 60],
    "from the first pixel": [1, 1, 8, 8],
    "the whole image": [1, 1, 321, 241],
    "to the last pixel": [281, 181, 40, 60],
    "one pixel over the edge, cut off": [283, 183, 40, 60],
    "as far over as is taken": [283, 182, 41, 61],
    "two pixels wide: one is left": [50, 60, 2, 30],
    "two pixels high: one is left": [50, 60, 30, 2],
    "one pixel wide: nothing is left": [50, 60, 1, 30],
    "one pixel high: nothing is left": [50, 60, 30, 1],
    "in sixteen bits": [300, 100, 19, 138],
    "thirds that single precision rounds": [108, 81, 107, 80],
}


def single(number: Fraction) -> Fraction:
    """The nearest number in single precision."""
    return Fraction(float(np.float32(number.numerator / number.denominator)))


def published(box: list[int]) -> list[float]:
    """Corners in shares of the image: 1 off all four, the sizes added, divided, cut to [0, 1]."""
    x, y, w, h = (Fraction(number - 1) for number in box)
    corners = (x, y, w + x, h + y)
    shares = [single(corner / side) for corner, side in zip(corners, SIDES, strict=True)]
    return [float(min(Fraction(1), max(Fraction(0), share))) for share in shares]


def main() -> None:
    held = [{"case": case, "box": box, "corners": published(box)} for case, box in BOXES.items()]
    path = Path(__file__).with_name("published.json")
    path.write_text(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main()
