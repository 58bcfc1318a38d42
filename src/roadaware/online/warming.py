"""Warming up: what is done once in a process is done before the first frame, so that no frame waits for it.

Kernels are compiled, or loaded where an earlier process kept them, and a network runs for the first time.
"""

from __future__ import annotations

import numpy as np

from roadaware.linking.closing import closed
from roadaware.linking.config import LinkerConfig
from roadaware.linking.linker import Linker
from roadaware.models.detector import Detector
from roadaware.scenes.dense import Layout

_PICTURE_PX = (240, 320, 3)


def warm_up_linker(config: LinkerConfig, kinds: Layout) -> None:
    """Link a box that is not there in two frames, and close its path.

    Args:
        config: of the linker.
        kinds: what the class scores of the stream stand for.
    """
    linker = Linker(config, kinds.width)
    scores = np.full((1, kinds.width), 0.5)
    for frame in range(2):
        linker.update(frame, [[0.0, 0.0, 9.0, 9.0]], [0.9], scores, t_s=float(frame))
    closed(linker.finish(), config, kinds)


def warm_up_detector(detector: Detector) -> None:
    """Show a detector a black picture, and have it answer even if it would wait for more.

    Args:
        detector: is reset before and after.
    """
    detector.reset()
    detector.step(np.zeros(_PICTURE_PX, np.uint8))
    detector.finish()
    detector.reset()
