"""Ground: the plane of most returns below the LiDAR by RANSAC, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32
from roadaware.corner_cases.points import PointCheck
from roadaware.errors import UsageError

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
    judges = _judges(points, checked, axis, range_m, returns, rng)
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
    from roadaware.corner_cases.ground_kernels import compute_heights

    heights = np.empty(len(points), dtype=np.float32)
    compute_heights(points, checked.judged, plane, heights)
    return Ground(plane, heights, (heights < within_m) & checked.usable, share)


def _judges(
    points: Floats32,
    checked: PointCheck,
    up: Floats,
    range_m: float,
    returns: int,
    rng: np.random.Generator,
) -> Floats:
    """(m, 3) some usable returns that lie below the LiDAR and near."""
    # Thrice as many, since those above the LiDAR or far away drop out; no shuffle of the whole sweep.
    drawn = rng.integers(0, len(points), 3 * returns) if len(points) > 3 * returns else np.arange(len(points))
    some = points[drawn[checked.usable[drawn]]].astype(np.float64)
    near = (some @ up < 0) & ((some * some).sum(1) < range_m * range_m)
    return np.ascontiguousarray(some[near][:returns])


def _plane(
    judges: Floats, up: Floats, within_m: float, tilt_deg: float, draws: npt.NDArray[np.int64]
) -> tuple[Floats | None, str]:
    """Normal and offset of the best plane, or why there is none."""
    from roadaware.corner_cases.ground_kernels import fit_best_plane

    plane = np.zeros(4)
    least = float(np.cos(np.radians(tilt_deg)))
    fit_best_plane(judges, draws, up, least, max(within_m, FIT_M), np.array(STANDS_M), plane)
    if not plane.any():
        return (
            None,
            f"no plane within {tilt_deg:g} degrees of level lies {STANDS_M[0]:g} to {STANDS_M[1]:g} m below",
        )
    for _ in range(_ROUNDS):
        on = np.abs(judges @ plane[:3] + plane[3]) < max(within_m, FIT_M)
        if on.sum() < 3:
            break
        middle = judges[on].mean(0)
        # The last right singular vector is the direction in which the returns spread least: the normal.
        normal = np.linalg.svd(judges[on] - middle, full_matrices=False)[2][2]
        # A singular vector has no sign of its own.
        normal = normal if normal @ up > 0 else -normal
        # Returns of a wall or a slope can tip a fit; the plane before it stands.
        if normal @ up < least:
            break
        plane = np.array([*normal, -normal @ middle])
    return plane, ""
