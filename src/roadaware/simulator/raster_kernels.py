"""Kernels that find the nearest triangle of pixels and of LiDAR's rays, boxes, what is hidden, and shadows."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel
from roadaware.simulator.shading_kernels import FOLIAGE, MARKING, sample_smooth_noise

# Before the image's plane: 1 / depth must stay finite, and nothing of a street is nearer to the lens.
NEAR_M = 0.2
# A triangle in the image is a row of floats: its three edges as (x, y, 1) functions of a pixel that are
# positive inside (9), the first and last row it may touch (2), and what turns edges into shares over depth.
ROWS, _SCALE, WORK = 9, 11, 12


@inner_kernel
def prepare_triangle(corners: Any, pose: Any, lens: Any, size: Any, work: Any) -> int:
    """Edges of a triangle in the image; 1 where its front is seen, -1 its back, 0 where it is out of view.

    Edges are planes through two corners and the camera, so that corners behind the camera need no
    clipping: where all three are positive, the ray meets the triangle in front (Olano and Greer, 1997).
    """
    ax, ay, az = _transform_point(corners[0], pose)
    bx, by, bz = _transform_point(corners[1], pose)
    cx, cy, cz = _transform_point(corners[2], pose)
    if az < NEAR_M and bz < NEAR_M and cz < NEAR_M:
        return 0
    if _beside(ax, ay, az, bx, by, bz, cx, cy, cz, lens, size):
        return 0
    ux, uy, uz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    volume = ax * ux + ay * uy + az * uz
    # Seen edge on it covers no middle of a pixel, and 1 / volume would be infinite.
    if volume == 0.0 or not _compute_row_bounds(ay, az, by, bz, cy, cz, lens, size, work):
        return 0
    side = -1.0 if volume < 0.0 else 1.0
    # Edges in homogeneous coordinates (Olano and Greer, 1997): what
    # reaches behind the camera needs no clipping.
    at = 0
    for x, y, one in (
        (ux, uy, uz),
        (cy * az - cz * ay, cz * ax - cx * az, cx * ay - cy * ax),
        (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx),
    ):
        # As a function of pixels instead of directions.
        work[at] = side * x / lens[0]
        work[at + 1] = side * y / lens[1]
        work[at + 2] = side * (one - x * lens[2] / lens[0] - y * lens[3] / lens[1])
        at += 3
    work[_SCALE] = 1.0 / abs(volume)
    return 1 if volume < 0.0 else -1


@inner_kernel
def _transform_point(point: Any, pose: Any) -> tuple[float, float, float]:
    x, y, z = np.float64(point[0]), np.float64(point[1]), np.float64(point[2])
    return (
        pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[0, 3],
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[1, 3],
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[2, 3],
    )


@inline_kernel
def _beside(ax: float, ay: float, az: float, bx: float, by: float, bz: float,
            cx: float, cy: float, cz: float, lens: Any, size: Any) -> bool:  # fmt: skip
    """Whether a triangle lies beyond a plane through the eye and an edge of the image."""
    left, above = -lens[2] / lens[0], -lens[3] / lens[1]
    right, below = (size[1] - lens[2]) / lens[0], (size[0] - lens[3]) / lens[1]
    return bool(
        (ax < left * az and bx < left * bz and cx < left * cz)
        or (ax > right * az and bx > right * bz and cx > right * cz)
        or (ay < above * az and by < above * bz and cy < above * cz)
        or (ay > below * az and by > below * bz and cy > below * cz)
    )


@inline_kernel
def _compute_row_bounds(ay: float, az: float, by: float, bz: float, cy: float, cz: float, lens: Any, size: Any,
             work: Any) -> bool:  # fmt: skip
    """Rows between which a triangle lies; False if there are none.

    The edges decide, these are only bounds: for a triangle that is partly behind the camera, all rows.
    """
    work[ROWS], work[ROWS + 1] = 0.0, size[0] - 1.0
    # A corner behind the camera projects to the wrong side; then
    # every row stays possible and the edges decide.
    if az >= NEAR_M and bz >= NEAR_M and cz >= NEAR_M:
        a, b, c = ay / az, by / bz, cy / cz
        top, bottom = lens[1] * min(a, b, c) + lens[3] - 0.5, lens[1] * max(a, b, c) + lens[3] - 0.5
        # A row too many costs a test; one lost by rounding would be a slit.
        work[ROWS] = max(work[ROWS], np.ceil(top - 1e-6))
        work[ROWS + 1] = min(work[ROWS + 1], np.floor(bottom + 1e-6))
    return bool(work[ROWS] <= work[ROWS + 1])


@inner_kernel
def compute_row_span(work: Any, y: int, width: int) -> tuple[int, int]:
    """First pixel and end of a triangle in a row."""
    low, high = 0.0, width - 1.0
    for at in (0, 3, 6):
        slope = work[at]
        rest = work[at + 1] * (y + 0.5) + work[at + 2]
        if slope > 0.0:
            low = max(low, -rest / slope - 0.5)
        elif slope < 0.0:
            high = min(high, -rest / slope - 0.5)
        elif rest < 0.0:
            return 0, 0
    if low > high:
        return 0, 0
    return int(np.ceil(low)), int(np.floor(high)) + 1


@kernel
def collect_edges(corners: Any, pose: Any, lens: Any, size: Any, backs: bool, edges: Any, which: Any) -> int:
    """Edges of the triangles that are in view, one after the other; returns how many there are.

    Args:
        corners: (t, 3, 3) f32 in the world.
        pose: (3, 4) f64 from the world to the camera.
        lens: (4,) f64 focal lengths and the middle, pixels.
        size: (2,) i64 height and width of the image.
        backs: whether triangles seen from behind count.
        edges: (t, 12) f64 whose first rows are filled.
        which: (t,) i32 whose first rows become the triangles.
    """
    n = 0
    for t in range(len(corners)):
        side = prepare_triangle(corners[t], pose, lens, size, edges[n])
        if side > 0 or (backs and side < 0):
            which[n] = t
            n += 1
    return n


@kernel
def rasterise(edges: Any, which: Any, corners: Any, material: Any, uv: Any, noise: Any,
              inverse: Any, face: Any, planes: Any) -> None:  # fmt: skip
    """Write for every pixel which triangle in view is nearest, and how near.

    Args:
        edges: (k, 12) f64 of `collect_edges`, fronts only.
        which: (k,) i32 triangles that they are of.
        corners: (t, 3, 3) f32 in the world.
        material: (t,) u8.
        uv: (t, 3, 2) f32.
        noise: (256, 256) f32 from 0 to 1.
        inverse: (h, w) f32 of zeros; becomes 1 / depth.
        face: (h, w) i32 of -1; becomes the row of `edges`.
        planes: (k, 12) f64; becomes 1 / depth, u / depth and v / depth as functions of (x, y, 1) pixels, and
            the unit normal.
    """
    width = inverse.shape[1]
    for n in range(len(edges)):
        work, plane, t = edges[n], planes[n], which[n]
        _attributes(work, uv[t], plane)
        _normal(corners[t], plane)
        # Paint lies on the road, so that rounding alone would decide which of them is nearer.
        lift = 1.00002 if material[t] == MARKING else 1.0
        step = plane[0] * lift
        leafy = material[t] == FOLIAGE
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, width)
            row = (plane[1] * (y + 0.5) + plane[2]) * lift
            for x in range(start, end):
                near = step * (x + 0.5) + row
                # The near plane, pixel by pixel.
                if inverse[y, x] < near < 1.0 / NEAR_M and not (
                    leafy and _has_leaf_hole(plane, x, y, near, noise)
                ):
                    inverse[y, x] = near
                    face[y, x] = n


@inline_kernel
def _attributes(work: Any, uv: Any, plane: Any) -> None:
    """Planes of 1 / depth, u / depth and v / depth from the edges."""
    scale = work[_SCALE]
    for k in range(3):
        a, b, c = work[k] * scale, work[3 + k] * scale, work[6 + k] * scale
        plane[k] = a + b + c
        plane[3 + k] = a * uv[0, 0] + b * uv[1, 0] + c * uv[2, 0]
        plane[6 + k] = a * uv[0, 1] + b * uv[1, 1] + c * uv[2, 1]


@inline_kernel
def _normal(corners: Any, plane: Any) -> None:
    ux, uy, uz = corners[1, 0] - corners[0, 0], corners[1, 1] - corners[0, 1], corners[1, 2] - corners[0, 2]
    vx, vy, vz = corners[2, 0] - corners[0, 0], corners[2, 1] - corners[0, 1], corners[2, 2] - corners[0, 2]
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    # Triangles without an area have no normal; they cover no pixel either.
    length = max(np.sqrt(x * x + y * y + z * z), 1e-12)
    plane[9], plane[10], plane[11] = x / length, y / length, z / length


@inline_kernel
def _has_leaf_hole(plane: Any, x: int, y: int, near: float, noise: Any) -> bool:
    """Whether a pixel looks through leaves; far ones are closed, where holes would only flicker."""
    # 1 / depth: beyond 50 m.
    if near < 0.02:
        return False
    u = (plane[3] * (x + 0.5) + plane[4] * (y + 0.5) + plane[5]) / near
    v = (plane[6] * (x + 0.5) + plane[7] * (y + 0.5) + plane[8]) / near
    return sample_smooth_noise(noise, u * 6.5, v * 6.5) < 0.24


@kernel
def find_instance_boxes(instance: Any, found: Any) -> None:
    """Boxes and pixels of instances.

    Args:
        instance: (h, w) i32, from 1.
        found: (n, 5) i64 of zeros; row i becomes x1, y1, x2, y2 and pixels of the value i + 1.
    """
    for y in range(instance.shape[0]):
        for x in range(instance.shape[1]):
            i = instance[y, x] - 1
            if 0 <= i < len(found):
                # Rows come from above, so that the first pixel has the top of the box.
                if found[i, 4] == 0:
                    found[i, 0], found[i, 1], found[i, 2] = x, y, x + 1
                found[i, 0] = min(found[i, 0], x)
                found[i, 2] = max(found[i, 2], x + 1)
                found[i, 3] = y + 1
                found[i, 4] += 1


# Kernels for shadows on the ground: those that the sun casts, and soft ones below whatever stands there.


@kernel
def project_shadows(corners: Any, casts: Any, sun: Any, flat: Any) -> int:
    """Triangles along the sun's rays on the ground, one after the other; returns how many there are.

    Of closed things the side that is turned to the sun casts the whole shadow, so the other is left out.

    Args:
        corners: (t, 3, 3) f32 in the world.
        casts: (t,) bool which cast shadows.
        sun: unit vector towards the sun.
        flat: (t, 3, 3) f32 whose first rows are filled.
    """
    # The sun stands at least 4 degrees high, so that no shadow is infinitely long.
    n, east, north = 0, sun[0] / sun[2], sun[1] / sun[2]
    for t in range(len(corners)):
        if not casts[t]:
            continue
        for k in range(3):
            height = max(corners[t, k, 2], 0.0)
            flat[n, k, 0] = corners[t, k, 0] - height * east
            flat[n, k, 1] = corners[t, k, 1] - height * north
            flat[n, k, 2] = 0.0
        # What is turned to the sun stays counter-clockwise seen from above.
        across = (flat[n, 1, 0] - flat[n, 0, 0]) * (flat[n, 2, 1] - flat[n, 0, 1])
        if across > (flat[n, 1, 1] - flat[n, 0, 1]) * (flat[n, 2, 0] - flat[n, 0, 0]):
            n += 1
    return n


@kernel
def mask_shadow_pixels(edges: Any, mask: Any) -> None:
    """Mark pixels that would lie in shadow if they showed the ground.

    Args:
        edges: (k, 12) f64 of triangles on the ground.
        mask: (h, w) u8 of zeros; becomes 1 in shadow.
    """
    for n in range(len(edges)):
        # By its number: a row of an array that is walked has another type, for which all would be compiled again.
        work = edges[n]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, mask.shape[1])
            for x in range(start, end):
                mask[y, x] = 1


@kernel
def apply_contact_shadows(found: Any, edges: Any, which: Any, depth_of: Any, dark: float, view: Any,
                 contact: Any) -> None:  # fmt: skip
    """Darken the ground below things.

    Args:
        found: (n, 7) f64 of `footprints`.
        edges: (k, 12) f64 of triangles, two of each rectangle, that are a little larger than it.
        which: (k,) i32 numbers of the triangles.
        depth_of: (h, w) f32 1 / depth of what is seen.
        dark: how much, 0 to 1.
        view: turn (3, 3), eye (3,), lens (4,).
        contact: (h, w) f32 of ones; becomes the share of light that is left.
    """
    turn, lens, eye = view.turn, view.lens, view.eye
    for n in range(len(edges)):
        blob, work = found[which[n] // 2], edges[n]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, contact.shape[1])
            for x in range(start, end):
                # The darkest counts: shadows of two things that stand together do not add up to a black hole.
                left = 1.0 - dark * _shade(blob, x, y, depth_of[y, x], turn, lens, eye)
                contact[y, x] = min(contact[y, x], left)


@inline_kernel
def _shade(blob: Any, j: int, i: int, inverse: float, turn: Any, lens: Any, eye: Any) -> float:
    """How deep in the soft shadow of a thing the surface at a pixel lies."""
    if inverse <= 0.0:
        return 0.0
    a, b = (j + 0.5 - lens[2]) / lens[0], (i + 0.5 - lens[3]) / lens[1]
    x = eye[0] + (turn[0, 0] * a + turn[0, 1] * b + turn[0, 2]) / inverse - blob[0]
    y = eye[1] + (turn[1, 0] * a + turn[1, 1] * b + turn[1, 2]) / inverse - blob[1]
    along, aside = abs(x * blob[2] + y * blob[3]), abs(y * blob[2] - x * blob[3])
    away = np.hypot(max(0.0, along - blob[4] + 0.15), max(0.0, aside - blob[5] + 0.15))
    return float(max(0.0, 1.0 - away / 0.55) ** 2)


@kernel
def measure(corners: Any, group: Any, pose: Any, lens: Any, found: Any) -> None:
    """The box of each group of triangles in the image's plane.

    Args:
        corners: (t, 3, 3) f32 in the world.
        group: (t,) i64 from 0.
        pose: (3, 4) f64 from the world to the camera.
        lens: (4,) f64 focal lengths and the middle, pixels.
        found: (n, 9) f64; row i becomes x1, y1, x2, y2 of the part before the camera, which may reach out of
            the image. Rows come as inf, inf, -inf, -inf, inf, inf, -inf, -inf, 0.
    """
    local = np.empty((3, 3))
    for t in range(len(corners)):
        row = found[group[t]]
        for k in range(3):
            for axis in range(3):
                local[k, axis] = pose[axis, 3]
                for other in range(3):
                    local[k, axis] += pose[axis, other] * corners[t, k, other]
        for k in range(3):
            a, b = local[k], local[(k + 1) % 3]
            if a[2] >= NEAR_M:
                _take(a[0], a[1], a[2], lens, row)
            if (a[2] >= NEAR_M) != (b[2] >= NEAR_M):
                # An edge through the near plane is cut there; its far end alone would make the box too small.
                share = (NEAR_M - a[2]) / (b[2] - a[2])
                _take(a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), NEAR_M, lens, row)


@kernel
def count(edges: Any, group: Any, mark: Any, found: Any) -> None:
    """How many pixels each group of triangles covers, and their box.

    Args:
        edges: (k, 12) f64 of `edges_of`: fronts alone are drawn, so fronts alone are counted.
        group: (k,) i64 from 0, ascending.
        mark: (h, w) i32 of -1; room to note what was counted.
        found: (n, 9) f64 of `measure`, of which the rest becomes x1, y1, x2, y2 of pixels and their number.
    """
    for n in range(len(edges)):
        work, row = edges[n], found[group[n]]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, mark.shape[1])
            if start < end:
                row[4], row[5] = min(row[4], start), min(row[5], y)
                row[6], row[7] = max(row[6], end), max(row[7], y + 1)
            for x in range(start, end):
                if mark[y, x] != group[n]:
                    mark[y, x] = group[n]
                    row[8] += 1


@inner_kernel
def _take(x: float, y: float, z: float, lens: Any, row: Any) -> None:
    """Widen a box by a point."""
    across, down = lens[0] * x / z + lens[2], lens[1] * y / z + lens[3]
    row[0], row[1] = min(row[0], across), min(row[1], down)
    row[2], row[3] = max(row[2], across), max(row[3], down)


@kernel
def stack(corners: Any, instance: Any, pose: Any, lens: Any, inverse: Any, mask: Any) -> None:
    """Write for every pixel whose triangle is nearest.

    Args:
        corners: (t, 3, 3) f32 in the world.
        instance: (t,) i32.
        pose: (3, 4) f64 from the world to the camera.
        lens: (4,) f64.
        inverse: (h, w) f32 of zeros; becomes 1 / depth.
        mask: (h, w) i32 of zeros; becomes the instance.
    """
    work = np.empty(WORK)
    size = np.array(mask.shape)
    for t in range(len(corners)):
        if prepare_triangle(corners[t], pose, lens, size, work) <= 0:
            continue
        a, b = (work[0] + work[3] + work[6]) * work[_SCALE], (work[1] + work[4] + work[7]) * work[_SCALE]
        c = (work[2] + work[5] + work[8]) * work[_SCALE]
        for y in range(int(work[ROWS]), int(work[ROWS + 1]) + 1):
            start, end = compute_row_span(work, y, size[1])
            for x in range(start, end):
                near = a * (x + 0.5) + b * (y + 0.5) + c
                # 1 / depth is linear in the image, depth is not.
                if inverse[y, x] < near < 1.0 / NEAR_M:
                    inverse[y, x] = near
                    mask[y, x] = instance[t]


FRONTS, PAINT = 9, 8
"""Floats that describe a triangle to the rays, and the material that lies flat on the road."""
# Paint lies in the plane of the road, and rounding alone would decide which of them a ray meets. This is
# 2 mm at 100 m, far less than the noise along a ray, and it changes what is compared, not what is measured.
LIFT = 1.00002


@kernel
def cast(corners: Any, material: Any, pose: Any, columns: Any, slopes: Any, stretch: Any, range_m: float,
         nearest: Any, ranges: Any, facing: Any, face: Any) -> None:  # fmt: skip
    """Write for every ray which triangle it meets first, and how.

    A ray of column (c, s) and slope t has the direction (c, s, t). It meets a triangle where it lies on the
    same side of the three planes through the origin and an edge. In one column these are three bounds of t,
    so only rays between them are tested. Triangles seen from behind are not there, as in the image.

    Args:
        corners: (t, 3, 3) f32 in the world.
        material: (t,) u8.
        pose: (3, 4) f64 from the world to the LiDAR.
        columns: (c, 2) f64 cosine and sine of azimuths, evenly around the circle from 0.
        slopes: (r,) f64 tangents of elevations, rising.
        stretch: (r,) f64 length of a ray's direction.
        range_m: farthest hit.
        nearest: (r, c) f64 of inf; what hits are compared by, in which paint lies above the road.
        ranges: (r, c) f64 of inf; becomes metres.
        facing: (r, c) f64 of zeros; becomes the cosine between ray and normal.
        face: (r, c) i32 of -1; becomes the triangle.
    """
    work, planes = np.empty(9), np.empty(FRONTS)
    count = len(columns)
    for t in range(len(corners)):
        _transform_triangle(corners[t], pose, work)
        if not _fronts(work, planes) or _out_of_range(work, range_m):
            continue
        volume = work[0] * planes[0] + work[1] * planes[1] + work[2] * planes[2]
        normal_x = planes[0] + planes[3] + planes[6]
        normal_y = planes[1] + planes[4] + planes[7]
        normal_z = planes[2] + planes[5] + planes[8]
        size = np.sqrt(normal_x * normal_x + normal_y * normal_y + normal_z * normal_z)
        lift = LIFT if material[t] == PAINT else 1.0
        first, end = _window(work, count)
        for step in range(first, end):
            j = step % count
            c, s = columns[j, 0], columns[j, 1]
            e0, e1, e2 = (
                planes[0] * c + planes[1] * s,
                planes[3] * c + planes[4] * s,
                planes[6] * c + planes[7] * s,
            )
            low, high = _slopes_between(e0, e1, e2, planes, slopes)
            for i in range(low, high):
                tangent = slopes[i]
                d0, d1, d2 = e0 + planes[2] * tangent, e1 + planes[5] * tangent, e2 + planes[8] * tangent
                # 0 counts as inside: a ray on the edge of two neighbours
                # meets both, and none slips through the seam.
                if d0 < 0.0 or d1 < 0.0 or d2 < 0.0:
                    continue
                across = d0 + d1 + d2
                metres = volume / across * stretch[i]
                if metres / lift < nearest[i, j] and metres <= range_m:
                    nearest[i, j] = metres / lift
                    ranges[i, j] = metres
                    facing[i, j] = across / (size * stretch[i])
                    face[i, j] = t


@inline_kernel
def _transform_triangle(corners: Any, pose: Any, work: Any) -> None:
    for k in range(3):
        x, y, z = np.float64(corners[k, 0]), np.float64(corners[k, 1]), np.float64(corners[k, 2])
        for row in range(3):
            work[3 * k + row] = pose[row, 0] * x + pose[row, 1] * y + pose[row, 2] * z + pose[row, 3]


@inline_kernel
def _fronts(work: Any, planes: Any) -> bool:
    """Planes through the origin and each edge, towards the inside; False where only the back is seen."""
    for k in range(3):
        p, q = 3 * ((k + 1) % 3), 3 * ((k + 2) % 3)
        # The triangle turns the other way round when it is seen from its front, hence q before p.
        planes[3 * k] = work[q + 1] * work[p + 2] - work[q + 2] * work[p + 1]
        planes[3 * k + 1] = work[q + 2] * work[p] - work[q] * work[p + 2]
        planes[3 * k + 2] = work[q] * work[p + 1] - work[q + 1] * work[p]
    return bool(work[0] * planes[0] + work[1] * planes[1] + work[2] * planes[2] > 0.0)


@inline_kernel
def _out_of_range(work: Any, range_m: float) -> bool:
    """Whether the ball around the triangle's middle lies beyond the range."""
    x, y, z = (
        (work[0] + work[3] + work[6]) / 3,
        (work[1] + work[4] + work[7]) / 3,
        (work[2] + work[5] + work[8]) / 3,
    )
    reach = 0.0
    for k in (0, 3, 6):
        reach = max(reach, (work[k] - x) ** 2 + (work[k + 1] - y) ** 2 + (work[k + 2] - z) ** 2)
    return bool(np.sqrt(x * x + y * y + z * z) - np.sqrt(reach) > range_m)


@inline_kernel
def _window(work: Any, count: int) -> tuple[int, int]:
    """First column and end that a triangle may touch; the end may lie a turn further on."""
    start = np.arctan2(work[1], work[0])
    low, high = 0.0, 0.0
    for k in (3, 6):
        # Against the first corner, so that a triangle across the cut of arctan2 stays in one piece.
        turn = np.arctan2(work[k + 1], work[k]) - start
        turn -= 2 * np.pi * np.floor((turn + np.pi) / (2 * np.pi))
        low, high = min(low, turn), max(high, turn)
    # Whoever surrounds the axis spans half a turn or more, and its corners then bound no window.
    if high - low > np.pi - 1e-6:  # above or below the sensor
        return 0, count
    width = 2 * np.pi / count
    # A column too many is harmless, since the planes decide; one too few would leave a slit.
    first = int(np.ceil((start + low) / width - 1e-6))
    end = int(np.floor((start + high) / width + 1e-6)) + 1
    turns = count if first < 0 else 0
    # At most one turn, or a column would be cast twice.
    return first + turns, min(end, first + count) + turns


@inline_kernel
def _slopes_between(e0: float, e1: float, e2: float, planes: Any, slopes: Any) -> tuple[int, int]:
    """First ray of a column and end that may meet a triangle, a hair too many rather than one too few."""
    low, high = slopes[0], slopes[-1]
    for e, rise in ((e0, planes[2]), (e1, planes[5]), (e2, planes[8])):
        if rise > 0.0:
            low = max(low, -e / rise - 1e-9)
        elif rise < 0.0:
            high = min(high, -e / rise + 1e-9)
        elif e < 0.0:
            return 0, 0
    if low > high:
        return 0, 0
    return _steeper(slopes, low, False), _steeper(slopes, high, True)


@inner_kernel
def _steeper(slopes: Any, least: float, over: bool) -> int:
    """The first of rising slopes that is at least so steep, or steeper."""
    # numpy's own search also knows of complex numbers and NaN, which takes most of a second to compile.
    first, end = 0, len(slopes)
    while first < end:
        middle = (first + end) // 2
        if slopes[middle] < least or (over and slopes[middle] == least):
            first = middle + 1
        else:
            end = middle
    return first
