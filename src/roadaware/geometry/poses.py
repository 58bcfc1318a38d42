"""Rigid poses as 4x4 matrices, named target_SE3_source, and the projection of boxes in space."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats

# Room for poses written in single precision or with few decimals; a mirrored axis is off by 2.
_RIGID, _UNIT = 1e-3, 1e-2
# Numbers of a camera matrix that are 0 or 1 in every file.
_LAST_ROW = 1e-6
# Shorter ones belong to no image, and what is divided by them may overflow.
_LEAST_FOCAL_PX = 1e-3
_SIGNS = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)], dtype=np.float64)
# The 12 of 28 pairs of corners that differ along one axis alone.
_EDGES = np.array([(a, b) for a, b in combinations(range(8), 2) if (_SIGNS[a] != _SIGNS[b]).sum() == 1])


def find_pose_error(pose: npt.ArrayLike) -> str:
    """The error of a pose in words; empty where it is a rotation and a translation.

    Args:
        pose: (4, 4).

    >>> find_pose_error(np.diag([1.0, 1.0, -1.0, 1.0]))
    'its rotation has the determinant -1'
    """
    found = np.asarray(pose, dtype=np.float64)
    if found.shape != (4, 4) or not np.isfinite(found).all():
        return f"expected (4, 4) finite numbers, found {found.shape}"
    if np.abs(found[3] - [0, 0, 0, 1]).max() > _RIGID:
        return f"its last row is {found[3].tolist()}, not 0 0 0 1"
    turn = found[:3, :3]
    with np.errstate(all="ignore"):  # numbers may be as large and as small as there are
        size = float(np.linalg.det(turn))
        off = float(np.abs(turn @ turn.T - np.eye(3)).max())
    # Not `>`: what has overflowed to NaN is refused as well.
    if not abs(size - 1) <= _RIGID:
        return f"its rotation has the determinant {size:.4g}"
    return "" if off <= _RIGID else f"its axes are off by {off:.2g} from right angles"


def find_camera_error(intrinsics: npt.ArrayLike) -> str:
    """The error of a camera matrix in words; empty where it is one.

    Args:
        intrinsics: (3, 3) pixels: focal lengths, skew and principal point, above the row 0 0 1.

    >>> find_camera_error([[50, 0, 0], [0, 50, 0], [32, 18, 1]])
    'its last row is [32.0, 18.0, 1.0], not 0 0 1'
    """
    lens = np.asarray(intrinsics, dtype=np.float64)
    if lens.shape != (3, 3):
        return f"expected (3, 3), found {lens.shape}"
    if not np.isfinite(lens).all():
        return f"not all of its numbers are finite: {lens.tolist()}"
    if min(lens[0, 0], lens[1, 1]) < _LEAST_FOCAL_PX:
        return f"its focal lengths are {lens[0, 0]:g} and {lens[1, 1]:g} pixels"
    if np.abs(lens[2] - [0, 0, 1]).max() > _LAST_ROW:
        return f"its last row is {lens[2].tolist()}, not 0 0 1"
    return "" if abs(lens[1, 0]) <= _LAST_ROW else f"its second row begins with {lens[1, 0]:g}, not 0"


def invert_pose(pose: npt.ArrayLike) -> Floats:
    """(4, 4) the way back.

    Args:
        pose: (4, 4) rigid.
    """
    there = np.asarray(pose, dtype=np.float64)
    found = np.eye(4)
    found[:3, :3] = there[:3, :3].T
    found[:3, 3] = -there[:3, :3].T @ there[:3, 3]
    return found


def from_quaternion(wxyz: npt.ArrayLike, translation: npt.ArrayLike) -> Floats | None:
    """(4, 4) of a quaternion and a translation; None where the quaternion has no unit length.

    Args:
        wxyz: (4,) the real part first.
        translation: (3,) metres.

    >>> from_quaternion([0, 0, 0, 1], [5, 0, 0])[:2].tolist()
    [[-1.0, 0.0, 0.0, 5.0], [0.0, -1.0, 0.0, 0.0]]
    """
    parts = np.asarray(wxyz, dtype=np.float64)
    size = float(np.sqrt((parts * parts).sum()))
    if not abs(size - 1) <= _UNIT:
        # Rescaled: a quaternion that is 1 % too long gives a matrix that is off by 2 %.
        return None
    w, x, y, z = parts / size
    found = np.eye(4)
    found[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    found[:3, 3] = translation
    return found


def to_quaternion(rotation: npt.ArrayLike) -> Floats:
    """(..., 4) quaternions of unit length, the real part first and not negative, of the rotations nearest to matrices.

    By the eigenvector of the largest eigenvalue, which needs no cases: Bar-Itzhack, "New method for extracting the quaternion
    from a rotation matrix", Journal of Guidance, Control, and Dynamics 23(6), 2000.

    Args:
        rotation: (..., 3, 3) rotation matrices, up to rounding.

    >>> to_quaternion([[-1, 0, 0], [0, -1, 0], [0, 0, 1]]).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    r = np.asarray(rotation, dtype=np.float64)
    k = np.zeros((*r.shape[:-2], 4, 4))
    k[..., 1:, 1:] = r + np.swapaxes(r, -1, -2)
    trace = np.trace(r, axis1=-2, axis2=-1)
    for n in (1, 2, 3):
        k[..., n, n] -= trace
    k[..., 0, 0] = trace
    for n, (a, b) in enumerate(((2, 1), (0, 2), (1, 0)), 1):
        k[..., 0, n] = k[..., n, 0] = r[..., a, b] - r[..., b, a]
    wxyz: Floats = np.linalg.eigh(k)[1][..., -1]
    return np.where(wxyz[..., :1] < 0, -wxyz, wxyz)


def project_3d_boxes(
    camera_SE3_box: npt.ArrayLike,  # noqa: N803, the project's way to name transforms
    sizes: npt.ArrayLike,
    lens: npt.ArrayLike,
    image: tuple[int, int],
    *,
    near_m: float = 0.1,
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n, 4) x1, y1, x2, y2 around boxes in space, cut to the image, and (n,) whether there is anything.

    Edges that pass the plane before the camera are cut there, so that a box beside the camera has bounds too.

    Args:
        camera_SE3_box: (n, 4, 4) poses of the boxes' middles in the camera's frame, z ahead.
        sizes: (n, 3) lengths along the boxes' own axes, in metres.
        lens: (3, 3) camera matrix.
        image: its width and height in pixels.
        near_m: what is less than this before the camera is not seen.
    """
    poses = np.asarray(camera_SE3_box, dtype=np.float64).reshape(-1, 4, 4)
    half = np.asarray(sizes, dtype=np.float64).reshape(-1, 1, 3) / 2 * _SIGNS
    corners = np.einsum("nij,nkj->nki", poses[:, :3, :3], half) + poses[:, None, :3, 3]
    first, last = corners[:, _EDGES[:, 0]], corners[:, _EDGES[:, 1]]
    fall = last[..., 2] - first[..., 2]
    # Edges parallel to the image have a fall of 0; they cross nothing, so their NaN is never read.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((near_m - first[..., 2]) / fall, 0, 1)
        cut = first + share[..., None] * (last - first)
    crosses = (first[..., 2] < near_m) != (last[..., 2] < near_m)
    places = np.concatenate([corners, cut], axis=1)
    held = np.concatenate([corners[..., 2] >= near_m, crosses], axis=1)
    matrix = np.asarray(lens, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = (places @ matrix.T)[..., :2] / places[..., 2:]
    # A box wholly behind the camera keeps infinite ends, which clipping turns into an empty box.
    low = np.where(held[..., None], pixels, np.inf).min(axis=1, initial=np.inf)
    high = np.where(held[..., None], pixels, -np.inf).max(axis=1, initial=-np.inf)
    edges = np.concatenate([np.clip(low, 0, image), np.clip(high, 0, image)], axis=1)
    there = held.any(axis=1) & (edges[:, 2] > edges[:, 0]) & (edges[:, 3] > edges[:, 1])
    return np.where(there[:, None], edges, 0.0), there
