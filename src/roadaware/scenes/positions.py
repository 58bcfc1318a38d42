"""Where a box stands in its tube: boxes grouped by tube in the order of frames, found by tube and frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Ints


@dataclass(frozen=True)
class Positions:
    """Boxes grouped by tube and ordered by frame; a position counts the boxes of a tube, gaps ignored.

    Args:
        tube: (t,) the tubes that own boxes, ascending.
        first: (t + 1,) where each tube's boxes begin in `frame`, and the end of the last.
        frame: (m,) the frame of each box.
        row: (m,) its row in the boxes table.
    """

    tube: Ints
    first: Ints
    frame: Ints
    row: Ints

    def place(self, tube: Ints) -> Ints:
        """(n,) index of each tube in `tube`, -1 for a tube without boxes."""
        if not len(self.tube):
            return np.full(len(tube), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tube, tube), len(self.tube) - 1)
        return np.where(self.tube[place] == tube, place, -1)

    def extent(self, tube: Ints) -> tuple[Ints, Ints]:
        """(n,) where each tube's boxes begin in `frame` and (n,) how many there are; 0, 0 without boxes."""
        place = self.place(tube)
        owns = place >= 0
        begin = np.where(owns, self.first[place], 0)
        return begin, np.where(owns, self.first[place + owns] - begin, 0)

    def from_frame(self, tube: Ints, frame: Ints) -> Ints:
        """(n,) index in `frame` of each tube's first box at or behind a frame; the end of its boxes if none.

        Args:
            tube: (n,) the tubes, each with boxes.
            frame: (n,) the frames, not negative.
        """
        stride = int(self.frame.max(initial=0)) + 1
        key = np.repeat(np.arange(len(self.tube)), np.diff(self.first)) * stride + self.frame
        return np.searchsorted(key, self.place(tube) * stride + np.minimum(frame, stride))

    def locate(self, tube: Ints, frame: Ints) -> Ints:
        """(n,) index in `frame` of each tube's box at that frame, -1 where there is none.

        Args:
            tube: (n,) the tubes.
            frame: (n,) the frames; a negative one is never found.
        """
        if not len(self.frame):
            return np.full(len(tube), -1, dtype=np.int64)
        found = self.from_frame(tube, np.maximum(frame, 0))
        begin, length = self.extent(tube)
        inside = (frame >= 0) & (found >= begin) & (found < begin + length)
        return np.where(inside & (self.frame[np.where(inside, found, 0)] == frame), found, -1)


def positions(boxes: pl.DataFrame) -> Positions:
    """The positions of all boxes that belong to a tube.

    Args:
        boxes: a boxes table, in any order.
    """
    if boxes.is_empty() or "tube" not in boxes.columns:
        return from_rows(*(np.empty(0, dtype=np.int64),) * 3)
    held = boxes.select("tube", "frame").with_row_index("row").drop_nulls("tube")
    tube, frame, row = (held[c].cast(pl.Int64).to_numpy() for c in ("tube", "frame", "row"))
    return from_rows(tube, frame, row)


def from_rows(tube: Ints, frame: Ints, row: Ints) -> Positions:
    """Positions of boxes given as arrays.

    Args:
        tube: (m,) owner of each box.
        frame: (m,) its frame.
        row: (m,) what to remember it by.
    """
    ordered = (tube[1:] > tube[:-1]) | ((tube[1:] == tube[:-1]) & (frame[1:] >= frame[:-1]))
    if not ordered.all():
        order = np.lexsort((frame, tube))
        tube, frame, row = tube[order], frame[order], row[order]
    owners, first = np.unique(tube, return_index=True)
    return Positions(owners, np.append(first, len(tube)), frame, row)
