"""Background: what share of each box shows the road, buildings, plants or sky."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.corner_cases.captures import SemanticMap
from roadaware.errors import InputError

Floats = npt.NDArray[np.float64]


def background_shares(
    edges: Floats, semantics: SemanticMap, background: Sequence[str], *, size: tuple[int, int]
) -> Floats:
    """(m,) share of each box's pixels that are background.

    A pixel belongs to a box where its middle does; a box without one is judged by the pixel it lies in.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels, within the picture.
        semantics: (H, W) what each pixel shows.
        background: names of classes.
        size: width and height of the picture.

    Raises:
        InputError: if the map has another size than the picture, or no class has any of the names.

    Source: CODA (ECCV 2022), section 4.2, background removal.
    """
    height, width = semantics.classes.shape
    if (width, height) != tuple(size):
        message = f"the semantic map has {width}x{height} pixels, the picture {size[0]}x{size[1]}"
        raise InputError(message, hint="map and calibration must belong to the same picture")
    codes = [code for code, name in enumerate(semantics.names) if name in set(background)]
    if not codes:
        raise InputError(
            f"no class of the map is background: it has {', '.join(semantics.names)}",
            hint=f"background is {', '.join(background)}",
        )
    low = np.clip(np.ceil(edges[:, :2] - 0.5), 0, [width - 1, height - 1]).astype(np.int64)
    high = np.clip(np.ceil(edges[:, 2:] - 0.5), low + 1, [width, height]).astype(np.int64)
    table = np.zeros(int(semantics.classes.max(initial=0)) + 1, dtype=np.float64)
    table[[code for code in codes if code < len(table)]] = 1.0
    found = [
        table[semantics.classes[y1:y2, x1:x2]].mean() for (x1, y1), (x2, y2) in zip(low, high, strict=True)
    ]
    return np.array(found, dtype=np.float64)
