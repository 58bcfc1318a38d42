"""Shapes that are painted on roads: words, arrows, cycles and teeth; x is the direction of travel, y left."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import Turn

_FONT = {
    "0": ("###", "#.#", "#.#", "#.#", "###"),
    "2": ("###", "..#", "###", "#..", "###"),
    "3": ("###", "..#", "###", "..#", "###"),
    "5": ("###", "#..", "###", "..#", "###"),
    "A": (".#.", "#.#", "###", "#.#", "#.#"),
    "B": ("##.", "#.#", "##.", "#.#", "##."),
    "E": ("###", "#..", "##.", "#..", "###"),
    "L": ("#..", "#..", "#..", "#..", "###"),
    "N": ("#.#", "###", "###", "###", "#.#"),
    "O": ("###", "#.#", "#.#", "#.#", "###"),
    "P": ("###", "#.#", "###", "#..", "#.."),
    "S": ("###", "#..", "###", "..#", "###"),
    "T": ("###", ".#.", ".#.", ".#.", ".#."),
    "U": ("#.#", "#.#", "#.#", "#.#", "###"),
    "W": ("#.#", "#.#", "###", "###", "#.#"),
}


def bar(along: float, across: float, at: float = 0.0, left: float = 0.0) -> Floats:
    """(1, 4, 2) a rectangle.

    Args:
        along: its length in the direction of travel.
        across: its width.
        at: of its middle, along.
        left: of its middle.
    """
    x, y = along / 2, across / 2
    return np.array([[[at - x, left - y], [at + x, left - y], [at + x, left + y], [at - x, left + y]]])


def stroke(start: tuple[float, float], end: tuple[float, float], width: float) -> Floats:
    """(1, 4, 2) a line between two points.

    Args:
        start: along and left.
        end: along and left.
        width: of it.
    """
    a, b = np.array(start), np.array(end)
    go = (b - a) / np.hypot(*(b - a))
    aside = width / 2 * np.array([-go[1], go[0]])
    return np.stack([a - aside, b - aside, b + aside, a + aside])[None]


@cache
def word(text: str, wide: float, high: float) -> Floats:
    """(n, 4, 2) a word that drivers read.

    Args:
        text: of the letters that roads need.
        wide: of the word, metres across the lane.
        high: of its letters, metres along the lane.
    """
    cell = wide / (4 * len(text) - 1)
    row_m = high / 5
    quads = []
    for place, letter in enumerate(text):
        for column in range(3):
            filled = [_FONT[letter][row][column] == "#" for row in range(5)]
            left = wide / 2 - (4 * place + column + 0.5) * cell
            for first, last in _runs(filled):
                top, bottom = high / 2 - first * row_m, high / 2 - last * row_m
                quads.append(bar(top - bottom, cell, (top + bottom) / 2, left))
    return np.concatenate(quads)


def _runs(filled: list[bool]) -> list[tuple[int, int]]:
    """(start, end) of runs of True."""
    steps = np.flatnonzero(np.diff([False, *filled, False]))
    return [(int(a), int(b)) for a, b in steps.reshape(-1, 2)]


def _tooth(tip: tuple[float, float], base: tuple[float, float], width: float) -> Floats:
    """(1, 4, 2) a triangle from the middle of its base to its tip."""
    a, b = np.array(base), np.array(tip)
    go = (b - a) / np.hypot(*(b - a))
    aside = width / 2 * np.array([-go[1], go[0]])
    return np.stack([a - aside, b, b, a + aside])[None]


@cache
def arrow(turn: Turn) -> Floats:
    """(n, 4, 2) an arrow, 4 m long.

    Args:
        turn: where it leads.
    """
    if turn == "straight":
        return np.concatenate([bar(2.6, 0.16, -0.7), _tooth((2.0, 0.0), (0.6, 0.0), 0.7)])
    side = 1.0 if turn == "left" else -1.0
    bent = [
        bar(1.7, 0.16, -1.15),
        stroke((-0.4, -0.02 * side), (0.35, 0.35 * side), 0.2),
        _tooth((0.75, 1.0 * side), (0.3, 0.3 * side), 0.8),
    ]
    return np.concatenate(bent)


@cache
def cycle() -> Floats:
    """(n, 4, 2) a bicycle, 1.9 m long and 1.1 m wide."""
    angle = np.linspace(0.0, 2 * np.pi, 9)
    quads = []
    for hub in (-0.32, 0.32):
        rim = [(-0.5 + 0.38 * np.cos(a), hub + 0.22 * np.sin(a)) for a in angle]
        quads += [stroke(a, b, 0.07) for a, b in pairwise(rim)]
    frame = [
        ((-0.5, 0.32), (0.1, 0.2)),
        ((-0.5, 0.32), (-0.45, 0.02)),
        ((-0.45, 0.02), (0.15, 0.16)),
        ((-0.45, 0.02), (0.2, -0.18)),
        ((0.1, 0.2), (0.1, -0.17)),
        ((-0.5, -0.32), (0.5, -0.14)),
        ((0.5, -0.24), (0.5, -0.02)),
        ((0.28, 0.28), (0.28, 0.1)),
    ]
    quads += [stroke(a, b, 0.07) for a, b in frame]
    return np.concatenate(quads)


@cache
def dashes_across(width: float, mark: float, gap: float, thick: float) -> Floats:
    """(n, 4, 2) a broken line across a lane.

    Args:
        width: of the lane.
        mark: length of a dash.
        gap: between dashes.
        thick: of the dashes, along the lane.
    """
    n = max(1, int((width + gap) / (mark + gap)))
    lefts = (np.arange(n) - (n - 1) / 2) * (mark + gap)
    return np.concatenate([bar(thick, mark, 0.0, float(left)) for left in lefts])


@cache
def teeth_across(width: float) -> Floats:
    """(n, 4, 2) triangles across a lane that point at those who give way.

    Args:
        width: of the lane.
    """
    n = max(1, int(width / 0.75))
    lefts = (np.arange(n) - (n - 1) / 2) * 0.75
    return np.concatenate([_tooth((-0.35, float(left)), (0.35, float(left)), 0.5) for left in lefts])
