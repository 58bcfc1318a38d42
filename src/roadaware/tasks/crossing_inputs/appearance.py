"""How a pedestrian looks to annotators: the 24 flags of JAAD."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roadaware.arrays import Floats
from roadaware.datasets.jaad import APPEARANCE as FLAGS
from roadaware.errors import InputError
from roadaware.tasks.crossing_inputs.observations import Observations

NEEDS = "the 24 appearance flags of the boxes (JAAD, read with its option appearance)"


def encode_appearance(seen: Observations) -> Floats:
    """(n, t, 24) 0 or 1 for each of `APPEARANCE` of JAAD's terms, NaN where unknown.

    Every pedestrian whom the protocols sample from JAAD has them, so that their presence tells nothing.

    Raises:
        InputError: if the boxes lack one of them.
    """
    lost = [flag for flag in FLAGS if flag not in seen.scenes.boxes.columns]
    if lost:
        message = f"appearance reads {NEEDS}; these boxes lack {', '.join(lost[:4])}"
        raise InputError(
            message,
            hint="no other dataset has them; samples.options: {appearance: true} in a recipe, "
            "read('jaad', root, appearance=True) in Python",
        )
    return np.stack([seen.at_boxes(flag) for flag in FLAGS], axis=-1)


FORMS: dict[str, tuple[Callable[[Observations], Floats], str]] = {"appearance": (encode_appearance, NEEDS)}
"""Name to what makes it and the tables it reads."""
