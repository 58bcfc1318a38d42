"""A contact sheet as a picture of a report: frames of films side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.reports.drawing import contact_sheet
from roadaware.reports.picture import FULL, Picture, canvas, styled


def sheet_picture(
    frames: Sequence[npt.NDArray[np.uint8]], columns: int, *, title: str, caption: str
) -> Picture:
    """Frames side by side, row by row, over the full width of a page.

    Args:
        frames: (n) of (H, W, 3), all of one size, at least one.
        columns: of the sheet.
        title: one line.
        caption: what is seen.
    """
    sheet = contact_sheet(frames, columns)
    height, width = sheet.shape[:2]
    with styled():
        figure, axes = canvas(FULL, FULL * height / width)
        axes.set_position((0, 0, 1, 1))
        axes.imshow(sheet, interpolation="lanczos", aspect="auto")
        axes.set_axis_off()
    return Picture(title, caption, figure)
