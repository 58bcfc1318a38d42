"""Returns of a LiDAR before anything is made of them: which are usable, and whether they are metres, z up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32
from roadaware.errors import InputError

# Farther than any LiDAR on a vehicle sees; such numbers mark missing returns, or another unit.
FARTHEST_M = 1e4
# Shares of fewer returns tell nothing about the unit.
_FEW = 100
# Half beyond 150 m are millimetres or centimetres; nearly all within 1 m are kilometres or shares.
_MOST_MEDIAN_M, _LEAST_FAR_M = 150.0, 1.0
# 1.2 is the tangent of 50 degrees; beams of the LiDARs in `LAYOUTS` lie within 31.
_STEEP, _MOST_STEEP = 1.2, 0.2
_NAMES = ("usable", "not finite", "at the origin", "of the own vehicle", "beyond 10 km")


@dataclass(frozen=True, eq=False)
class PointCheck:
    """Usable returns of a sweep, and counts of the others.

    Args:
        judged: (n,) uint8, 0 where a return is usable.
        counts: how many are usable, not finite, ...; only what occurs.
    """

    judged: npt.NDArray[np.uint8]
    counts: dict[str, int]

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """(n,) which returns are used."""
        found: npt.NDArray[np.bool_] = self.judged == 0
        return found


def validate_lidar_points(points: npt.NDArray[np.floating]) -> Floats32:
    """(n, 3) float32 contiguous coordinates of what may hold more columns.

    Args:
        points: (n, 3 or more) x, y, z first; intensity may be there or not, it is not used.

    Raises:
        InputError: if there are no three columns of numbers.
    """
    found = np.asarray(points)
    if found.ndim != 2 or found.shape[1] < 3 or found.dtype.kind not in "fiu":
        message = f"points should be (n, 3 or more) numbers x, y, z, ..., not {found.dtype} {found.shape}"
        raise InputError(message)
    # Doubles beyond float32 become inf, which `check` counts as not finite.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(found[:, :3], dtype=np.float32)


def check(points: Floats32, *, min_range_m: float = 0.0) -> PointCheck:
    """Which returns can be used; the others are counted by what is wrong with them.

    Args:
        points: (n, 3) metres in the LiDAR's frame, z up.
        min_range_m: horizontal; what is nearer belongs to the own vehicle.

    Raises:
        InputError: if they cannot be metres, or z cannot point up.
    """
    from roadaware.corner_cases.point_kernels import label_points

    judged = np.empty(len(points), dtype=np.uint8)
    label_points(points, float(min_range_m), FARTHEST_M, judged)
    tallied = np.bincount(judged, minlength=len(_NAMES))
    found = PointCheck(judged, {name: int(n) for name, n in zip(_NAMES, tallied, strict=True) if n})
    _refuse_other_units(points, found)
    return found


def _refuse_other_units(points: Floats32, found: PointCheck) -> None:
    """Check from a few hundred returns whether coordinates are metres and the third axis is up.

    Raises:
        InputError: if they are not.
    """
    # Too near and too far returns count, too: in another unit most are one of these.
    places = np.flatnonzero((found.judged == 0) | (found.judged == 3) | (found.judged == 4))
    if len(places) < _FEW:
        return
    some = points[places[:: max(1, len(places) // 2000)]].astype(np.float64)
    flat = np.hypot(some[:, 0], some[:, 1])
    far = np.hypot(flat, some[:, 2])
    middle, most = float(np.median(far)), float(np.quantile(far, 0.99))
    if middle > _MOST_MEDIAN_M or most < _LEAST_FAR_M:
        message = f"half of the returns lie within {middle:.3g}, nearly all within {most:.3g}: no metres"
        raise InputError(message, hint="give coordinates in metres; millimetres are divided by 1000")
    steep = float((np.abs(some[:, 2]) > _STEEP * flat).mean())
    if steep > _MOST_STEEP:
        message = f"{steep:.0%} of the returns lie more than 50 degrees above or below the LiDAR"
        hint = "give coordinates in the LiDAR's frame, x, y, z with z up, not in a camera's"
        raise InputError(message, hint=hint)
