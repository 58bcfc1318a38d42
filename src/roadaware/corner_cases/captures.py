"""Capture: one LiDAR sweep and one camera image of a moment, with calibration, semantic map and detections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.geometry.poses import find_camera_error, find_pose_error

CITYSCAPES = (
    "road",
    "sidewalk",
    "building",
    "wall",
    "fence",
    "pole",
    "traffic light",
    "traffic sign",
    "vegetation",
    "terrain",
    "sky",
    "person",
    "rider",
    "car",
    "truck",
    "bus",
    "train",
    "motorcycle",
    "bicycle",
)
"""Names of the training classes of Cityscapes, by number."""
_HINT = "check the calibration; rows and columns may be exchanged"


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera, and where it sits as seen from the LiDAR.

    Args:
        intrinsics: (3, 3) camera matrix, pixels.
        camera_SE3_lidar: (4, 4) takes points of the LiDAR to the camera: x right, y down, z ahead.
        width_px: of the image.
        height_px: of the image.

    Raises:
        InputError: if a matrix is none of these.
    """

    intrinsics: Floats
    camera_SE3_lidar: Floats  # noqa: N815, the project's way to name transforms
    width_px: int
    height_px: int

    def __post_init__(self) -> None:
        lens = np.asarray(self.intrinsics, dtype=np.float64)
        if fault := find_camera_error(lens):
            raise InputError(f"no camera matrix: {fault}", hint=_HINT)
        ensure_rigid_pose(np.asarray(self.camera_SE3_lidar, dtype=np.float64), "camera_SE3_lidar")
        if min(self.width_px, self.height_px) < 1:
            raise InputError(f"an image has pixels, not {self.width_px}x{self.height_px}")


def ensure_rigid_pose(pose: Floats, name: str) -> None:
    """Refuse a matrix that is no rotation and translation.

    Args:
        pose: (4, 4).
        name: in the message.

    Raises:
        InputError: if it has another shape, is not finite, mirrors, stretches or shears.
    """
    fault = find_pose_error(pose)
    if fault:
        raise InputError(f"{name} is no rigid pose: {fault}", hint=_HINT)


@dataclass(frozen=True, eq=False)
class SemanticMap:
    """Semantic class of each pixel.

    Args:
        classes: (H, W) whole numbers.
        names: of the classes, by number; numbers beyond them are unknown, and no background.
    """

    classes: npt.NDArray[np.integer]
    names: tuple[str, ...] = CITYSCAPES

    def __post_init__(self) -> None:
        if self.classes.ndim != 2 or self.classes.dtype.kind not in "iu":
            message = f"a semantic map is (H, W) whole numbers, not {self.classes.dtype} {self.classes.shape}"
            raise InputError(message)


@dataclass(frozen=True, eq=False)
class CommonObjects:
    """Detections of common classes.

    Args:
        boxes: (m, 4) x1, y1, x2, y2 in pixels.
        scores: (m,) from 0 to 1.
        has_predictions: whether the detector has predictions for the video; where not, it may never have processed it.
    """

    boxes: Floats
    scores: Floats
    has_predictions: bool = True

    def __post_init__(self) -> None:
        if np.shape(self.boxes)[1:] != (4,) or np.shape(self.scores) != np.shape(self.boxes)[:1]:
            message = (
                f"boxes are (m, 4) and scores (m,), not {np.shape(self.boxes)} and {np.shape(self.scores)}"
            )
            raise InputError(message)


@dataclass(frozen=True, eq=False)
class Capture:
    """One moment of one camera.

    Args:
        points: (n, 3 or more) x, y, z in metres in the LiDAR's frame, z up, in the order they were written.
        camera: that took the image.
        ring: (n,) number of each return's beam; None where the data does not say.
        layout: name of the LiDAR, or such as `64 rings x 900 columns`; None where it is not known.
        semantics: what each pixel shows; None to remove no background.
        common: detected common objects; None to suppress none.
        up: (3,) away from the ground, in the LiDAR's frame.
        name: in messages.
    """

    points: npt.NDArray[np.floating]
    camera: Camera
    ring: npt.NDArray[np.integer] | None = None
    layout: str | None = None
    semantics: SemanticMap | None = None
    common: CommonObjects | None = None
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    name: str = ""
