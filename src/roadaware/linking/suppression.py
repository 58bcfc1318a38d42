"""Tube suppression: of tubes with the same label, those that overlap a better one are dropped."""

from __future__ import annotations

import numpy as np

from roadaware.linking.config import LinkerConfig
from roadaware.linking.paths import Detections, Paths
from roadaware.linking.trimming import Segments


def suppress(found: Segments, paths: Paths, detections: Detections, config: LinkerConfig) -> Segments:
    """The tubes of one kind that stay, in their order; of equal scores the later tube is the better one.

    Overlap is the mean IoU over the shared frames times the temporal IoU.

    Args:
        found: labelled tubes.
        paths: theirs.
        detections: theirs.
        config: `tube_nms`, `tube_nms_pixel_offset`, `gaps`.

    Source: written in the released code of 3D-RetinaNet (with 0.6) and switched off there.
    """
    if config.tube_nms is None or not len(found):
        return found
    from roadaware.linking.tube_kernels import suppress_tubes

    frames = detections.frame[paths.rows]
    if config.gaps == "squeeze":
        frames = np.arange(len(frames)) + np.repeat(frames[paths.ends[:-1]] - paths.ends[:-1], paths.lengths)
    video = detections.video[paths.firsts[found.path]]
    group = video * (int(found.label.max()) + 1) + found.label
    kept = suppress_tubes(
        detections.boxes,
        paths.rows,
        frames,
        paths.ends[found.path] + found.first,
        paths.ends[found.path] + found.last + 1,
        np.lexsort((-np.arange(len(found)), -found.score, group)),
        group,
        float(config.tube_nms),
        float(config.tube_nms_pixel_offset),
    )
    return found.only(kept)
