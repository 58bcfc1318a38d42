"""Who writes which folder of a tiny model, and images to show it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import tiny_hub

WRITERS = {
    "segformer": tiny_hub.write_segformer,
    "mask2former": tiny_hub.write_mask2former,
    "grounding-dino": tiny_hub.write_grounding,
    "owlv2": tiny_hub.write_owl,
    "clip": tiny_hub.write_clip,
}


def noise(*sizes: tuple[int, int], seed: int = 0) -> list[npt.NDArray[np.uint8]]:
    """Images (height, width, 3) of these sizes."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 255, (*size, 3), dtype=np.uint8) for size in sizes]
