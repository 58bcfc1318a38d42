"""Ground: the returns of a LiDAR that are usable, and the plane of most below it by RANSAC, or the reason why there is
none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints32, allocate
from roadaware.corner_cases.kernels import (
    collect_judges,
    compute_heights,
    find_local_ground,
    fit_best_plane,
    label_points,
    measure_plane,
    subtract_local_ground,
)
from roadaware.errors import InputError, UsageError

# Farther than any LiDAR on a vehicle sees; such numbers mark missing returns, or another unit.
FARTHEST_M = 1e4
# Shares of fewer returns tell nothing about the unit.
_FEW = 100
# Half beyond 150 m are millimetres or centimetres; nearly all within 1 m are kilometres or shares.
_MOST_MEDIAN_M, _LEAST_FAR_M = 150.0, 1.0
# 1.2 is the tangent of 50 degrees; beams of the LiDARs in `LAYOUTS` lie within 31.
_STEEP, _MOST_STEEP = 1.2, 0.2
_MOST_FAR = 0.25
"""Share of returns that may be beyond all measure: float32 numbers that were widened to 8 bytes have 41 % of them."""
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
        usable: npt.NDArray[np.bool_] = np.equal(self.judged, 0, out=allocate(len(self.judged), np.bool_))
        return usable


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
    judged, tallied = allocate(len(points), np.uint8), np.zeros(len(_NAMES), dtype=np.int64)
    label_points(points, float(min_range_m), FARTHEST_M, judged, tallied)
    found = PointCheck(judged, {name: int(n) for name, n in zip(_NAMES, tallied, strict=True) if n})
    _refuse_other_units(points, found)
    if (far := found.counts.get(_NAMES[4], 0)) > _MOST_FAR * len(points):
        message = f"{far / len(points):.0%} of the returns lie {_NAMES[4]} away"
        raise InputError(
            message, hint="are these numbers of 8 bytes, read as float32? Write points.astype('float32')"
        )
    return found


def _refuse_other_units(points: Floats32, found: PointCheck) -> None:
    """Check from a few hundred returns whether coordinates are metres and the third axis is up.

    Raises:
        InputError: if they are not.
    """
    # Every so many returns first, and all of them where these are hardly any.
    for step in (max(1, len(points) // 2000), 1):
        judgements = found.judged[::step]
        # Too near and too far returns count, too: in another unit most are one of these.
        places = np.flatnonzero((judgements == 0) | (judgements == 3) | (judgements == 4))
        if len(places) >= _FEW:
            break
    else:
        return
    some = points[::step][places].astype(np.float64)
    flat = np.hypot(some[:, 0], some[:, 1])
    far = np.hypot(flat, some[:, 2])
    # Sorted by hand: np.quantile takes longer than everything else here.
    far.sort()
    middle, most = float(far[len(far) // 2]), float(far[int(0.99 * (len(far) - 1))])
    if middle > _MOST_MEDIAN_M or most < _LEAST_FAR_M:
        message = f"half of the returns lie within {middle:.3g}, nearly all within {most:.3g}: no metres"
        raise InputError(message, hint="give coordinates in metres; millimetres are divided by 1000")
    steep = float((np.abs(some[:, 2]) > _STEEP * flat).mean())
    if steep > _MOST_STEEP:
        message = f"{steep:.0%} of the returns lie more than 50 degrees above or below the LiDAR"
        hint = "give coordinates in the LiDAR's frame, x, y, z with z up, not in a camera's"
        raise InputError(message, hint=hint)


STANDS_M = (0.2, 6.0)
"""How high a LiDAR on a vehicle stands above the road."""
FIT_M, SHARE_M = 0.01, 0.1
"""The least reach about a plane at which it is fitted, and at which it has to explain the returns of a road:
noise and a road's own shape lie within the second, however little above the plane is taken for ground."""
# Each fit changes which returns lie on the plane; a few rounds follow that.
_ROUNDS = 3
UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Ground:
    """The plane of the ground.

    Args:
        plane: (4,) unit normal and offset: height = normal . point + offset; None where there is none.
        heights: (n,) float32 metres above it, 0 for returns that are not usable; None without a plane.
        removed: (n,) bool, returns that are ground.
        share: of the returns below the LiDAR that lie on the plane, within `within_m` and 0.1 m at least.
        reason: why there is no plane; empty where there is one.
    """

    plane: Floats | None
    heights: Floats32 | None
    removed: npt.NDArray[np.bool_]
    share: float
    reason: str = ""

    @property
    def tilt_deg(self) -> float:
        """Angle between the plane's normal and the LiDAR's axis; nan without a plane."""
        if self.plane is None:
            return float("nan")
        return float(np.degrees(np.arccos(np.clip(self.plane[2], -1.0, 1.0))))


def find_ground(
    points: Floats32,
    checked: PointCheck,
    *,
    up: npt.ArrayLike = UP,
    within_m: float = 0.2,
    range_m: float = 40.0,
    tilt_deg: float = 15.0,
    least_share: float = 0.15,
    draws: int = 200,
    returns: int = 3000,
    seed: int = 0,
) -> Ground:
    """The plane of the ground, and which returns are on or below it.

    Planes through three returns are drawn; the one with the least cut-off squared distances to a sample of
    the returns below the LiDAR wins, and is fitted to those it explains (MSAC, Torr and Zisserman, CVIU
    2000, of RANSAC, Fischler and Bolles, 1981). The same seed gives the same plane.

    Args:
        points: (n, 3) metres in the LiDAR's frame.
        checked: which of them are usable.
        up: (3,) away from the ground, in the LiDAR's frame.
        within_m: a return less than this above the plane is ground; with 0 only what lies below it.
        range_m: returns beyond it do not judge.
        tilt_deg: a plane that leans more from `up` is no road.
        least_share: of the judging returns that must lie on the plane.
        draws: planes that are tried.
        returns: how many judge, drawn by chance.
        seed: of the draws.

    Raises:
        UsageError: if `up` is no direction.
    """
    axis = np.asarray(up, dtype=np.float64)
    size = float(np.linalg.norm(axis)) if axis.shape == (3,) else 0.0
    if not (np.isfinite(size) and size > 0):
        raise UsageError(f"up should be three numbers that point somewhere, not {up!r}")
    axis = axis / size
    rng = np.random.default_rng(seed)
    # (m, 3) some usable returns that lie below the LiDAR and near.
    # Thrice as many, since those above the LiDAR or far away drop out; no shuffle of the whole sweep.
    drawn = rng.integers(0, len(points), 3 * returns) if len(points) > 3 * returns else np.arange(len(points))
    judges = np.empty((returns, 3))
    judges = judges[: collect_judges(points, checked.judged, drawn, axis, float(range_m), judges)]
    nothing = np.zeros(len(points), dtype=np.bool_)
    if len(judges) < 3:
        return Ground(None, None, nothing, 0.0, f"{len(judges)} returns lie below the LiDAR: no plane")
    plane, reason = _plane(judges, axis, within_m, tilt_deg, rng.integers(0, len(judges), (draws, 3)))
    if plane is None:
        return Ground(None, None, nothing, 0.0, reason)
    share = float((np.abs(judges @ plane[:3] + plane[3]) < max(within_m, SHARE_M)).mean())
    if share < least_share:
        reason = (
            f"the best plane explains {share:.0%} of the returns below the LiDAR, a road {least_share:.0%}"
        )
        return Ground(None, None, nothing, share, reason)

    heights = allocate(len(points), np.float32)
    compute_heights(points, checked.judged, plane, heights)
    return Ground(plane, heights, _find_below(heights, within_m, checked), share)


def _find_below(heights: Floats32, within_m: float, checked: PointCheck) -> npt.NDArray[np.bool_]:
    """(n,) usable returns less than so high."""
    found: npt.NDArray[np.bool_] = np.less(heights, within_m, out=allocate(len(heights), np.bool_))
    found &= checked.usable
    return found


def _plane(
    judges: Floats, up: Floats, within_m: float, tilt_deg: float, draws: npt.NDArray[np.int64]
) -> tuple[Floats | None, str]:
    """Normal and offset of the best plane, or why there is none."""
    plane = np.zeros(4)
    least = float(np.cos(np.radians(tilt_deg)))
    fit_best_plane(judges, draws, up, least, max(within_m, FIT_M), np.array(STANDS_M), plane)
    if not plane.any():
        return (
            None,
            f"no plane within {tilt_deg:g} degrees of level lies {STANDS_M[0]:g} to {STANDS_M[1]:g} m below",
        )
    middle, scatter = np.empty(3), np.empty((3, 3))
    for _ in range(_ROUNDS):
        if measure_plane(judges, plane, max(within_m, FIT_M), middle, scatter) < 3:
            break
        # The direction in which the returns spread least is the normal: eigenvalues rise.
        normal = np.linalg.eigh(scatter)[1][:, 0]
        # An eigenvector has no sign of its own.
        normal = normal if normal @ up > 0 else -normal
        # Returns of a wall or a slope can tip a fit; the plane before it stands.
        if normal @ up < least:
            break
        plane = np.array([*normal, -normal @ middle])
    return plane, ""


SECTORS, BIN_M, BINS = 72, 2.0, 40
"""Directions and lengths of the bins in which the ground is followed: 5 degrees, 2 m, up to 80 m."""
RISE, MOST_RISE_M, SLACK_M = 0.06, 0.05, 0.1
"""How the level may change from one bin to the next: by a slope of 6 %, and by no more than 5 cm and the 10 cm by which
returns of one stretch of road differ. A kerb is met by this, a low object is not."""


def follow_ground(
    ground: Ground, checked: PointCheck, column: Ints32, ranges: Floats32, columns: int, *, within_m: float
) -> Ground:
    """The ground where it rises and falls away from the plane: heights above the ground of the surroundings.

    From the LiDAR outwards, in bins of direction and range, the level follows the lowest return of a bin where the ground
    can have risen or fallen to it, and is carried on elsewhere. Without a plane the ground is given back as it is.

    Args:
        ground: the plane of `find_ground`.
        checked: which returns are usable.
        column: (n,) of the range image, -1 where a return is not usable.
        ranges: (n,) metres.
        columns: in a turn.
        within_m: a return less than this above the local ground is ground; with 0 only what lies below it.
    """
    if ground.heights is None:
        return ground
    levels, known = np.empty((SECTORS, BINS), np.float32), np.empty((SECTORS, BINS), np.int32)
    find_local_ground(
        column, ranges, ground.heights, columns, BIN_M, RISE, MOST_RISE_M, SLACK_M, levels, known
    )
    heights = allocate(len(ranges), np.float32)
    subtract_local_ground(column, ranges, ground.heights, columns, BIN_M, levels, heights)
    return replace(ground, heights=heights, removed=_find_below(heights, within_m, checked))
