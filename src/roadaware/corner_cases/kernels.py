"""Compiled steps of the proposals in their order: usable returns and their rings, the plane of the ground, labels of the
range image and sums over clusters, projection to the image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, kernel

USABLE, NOT_FINITE, AT_ORIGIN, OWN, BEYOND = range(5)
TINY = 1e-300
"""Added to what may be 0 below a division line; nothing that is measured in metres is changed by it."""
TAN_22_5 = float(np.sqrt(2.0) - 1.0)
"""Up to here the polynomial of `compute_polar` is the arc tangent."""
BLOCK = 512
"""Returns that are worked on at a time: their coordinates stay in the nearest cache."""
OUT_OF_ORDER = 0.03
"""By no more than this, in radians, do returns of one ring lie out of order."""


@kernel
def label_points(points: Any, near: float, far: float, found: Any, counts: Any) -> None:
    """Label each return: usable, or the reason why not.

    Args:
        points: (n, 3) f32 metres.
        near: horizontal range below which a return is of the own vehicle.
        far: coordinates beyond this are none.
        found: (n,) u8; becomes USABLE, NOT_FINITE, ...
        counts: (5,) i64 of zeros; become how many returns have each label.
    """
    # Squares are compared with squares: no root for each return.
    square = near * near
    x, y, z = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, len(points), BLOCK):
        here = found[first : first + BLOCK]
        _copy_coordinates(points[first : first + BLOCK], x, y, z)
        usable = 0
        for i in range(len(here)):
            # Comparisons with what is not a number are false.
            within = (abs(x[i]) <= far) & (abs(y[i]) <= far) & (abs(z[i]) <= far)
            somewhere = (x[i] != 0.0) | (y[i] != 0.0) | (z[i] != 0.0)
            right = within & somewhere & (x[i] * x[i] + y[i] * y[i] >= square)
            here[i] = USABLE if right else OWN
            usable += 1 if right else 0
        counts[USABLE] += usable
        if usable == len(here):
            continue
        for i in range(len(here)):
            if here[i] == USABLE:
                continue
            if not (np.isfinite(x[i]) and np.isfinite(y[i]) and np.isfinite(z[i])):
                here[i] = NOT_FINITE
            elif x[i] == 0.0 and y[i] == 0.0 and z[i] == 0.0:
                here[i] = AT_ORIGIN
            elif abs(x[i]) > far or abs(y[i]) > far or abs(z[i]) > far:
                here[i] = BEYOND
            counts[here[i]] += 1


@inline_kernel
def _copy_coordinates(points: Any, x: Any, y: Any, z: Any) -> None:
    """Coordinates of some returns side by side, so that the compiler works on several returns at a time."""
    for i in range(len(points)):
        x[i], y[i], z[i] = points[i, 0], points[i, 1], points[i, 2]


@kernel
def compute_polar(points: Any, judged: Any, ranges: Any, slopes: Any, azimuth: Any) -> None:
    """Range, tangent of the elevation, and azimuth of each usable return; 0 for the others.

    Every branch is a choice between two numbers, so that the compiler works on several returns at a time; a library's arc
    tangent would not let it. The polynomial is that of degree 17 which meets the arc tangent at the Chebyshev points of
    0 to tan(22.5 degrees); it is 1e-14 away from it at most, and an azimuth of 4 bytes is rounded to 1e-7.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8 of `label_points`.
        ranges: (n,) f32; becomes metres.
        slopes: (n,) f32; becomes z over horizontal range.
        azimuth: (n,) f32; becomes radians counter-clockwise from ahead, from -pi to pi.
    """
    xs, ys, zs = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, len(points), BLOCK):
        _copy_coordinates(points[first : first + BLOCK], xs, ys, zs)
        usable = judged[first : first + BLOCK]
        far, steep, turn = (ranges[first : first + BLOCK], slopes[first : first + BLOCK],
                            azimuth[first : first + BLOCK])  # fmt: skip
        for i in range(len(usable)):
            x, y, z = xs[i], ys[i], zs[i]
            flat = x * x + y * y
            far[i] = np.float32(np.sqrt(flat + z * z)) if usable[i] == USABLE else np.float32(0.0)
            # Slopes lie in the order of the elevations and need no arc tangent; straight up is finite, too.
            slope = min(max(z / np.sqrt(flat + TINY), -1e6), 1e6)
            steep[i] = np.float32(slope) if usable[i] == USABLE else np.float32(0.0)
            wide, narrow = abs(x), abs(y)
            most, least = (wide, narrow) if wide > narrow else (narrow, wide)
            # Beyond 22.5 degrees the angle is told from the diagonal: atan(a / b) = pi / 4 + atan((a - b) / (a + b)).
            diagonal = least > most * TAN_22_5
            above, below = (least - most, least + most) if diagonal else (least, most)
            t = above / (below + TINY)
            s = t * t
            series = 0.0756318096678370 + s * (-0.0587263986762078 + s * 0.0306352570229646)
            series = 0.1111037873825406 + s * (-0.0907831533957456 + s * series)
            series = 0.1999999959827201 + s * (-0.1428569013720852 + s * series)
            angle = t * (0.9999999999999718 + s * (-0.3333333333073974 + s * series))
            angle = angle + np.pi / 4 if diagonal else angle
            angle = np.pi / 2 - angle if narrow > wide else angle
            angle = np.pi - angle if x < 0.0 else angle
            angle = -angle if y < 0.0 else angle
            turn[i] = np.float32(angle) if usable[i] == USABLE else np.float32(0.0)


@kernel
def assign_columns(azimuth: Any, judged: Any, columns: int, phase: float, found: Any) -> None:
    """The column of each return, the nearest of those that divide a turn.

    Args:
        azimuth: (n,) f32 radians.
        judged: (n,) u8 of `label_points`.
        columns: of the image; 0 is ahead, they count counter-clockwise.
        phase: by how many columns the middle of column 0 lies counter-clockwise from ahead.
        found: (n,) i32; becomes the column, -1 for returns that are not usable.
    """
    for i in range(len(azimuth)):
        if judged[i] != USABLE:
            found[i] = -1
            continue
        # Rounded to the nearest column; what rounds up to a whole turn is column 0 again.
        at = int(np.floor(azimuth[i] * (columns / (2 * np.pi)) - phase + 0.5))
        at = at + columns if at < 0 else at
        found[i] = 0 if at >= columns else at


@kernel
def count_rotation_steps(azimuth: Any, judged: Any) -> int:
    """How many steps from one return to the next go counter-clockwise, less those that go clockwise.

    Args:
        azimuth: (n,) f32 radians.
        judged: (n,) u8 of `label_points`.
    """
    found, before = 0, -1
    for i in range(len(azimuth)):
        if judged[i] != USABLE:
            continue
        if before >= 0:
            step = azimuth[i] - azimuth[before]
            # The shorter way round: a step over the seam is a small one.
            step -= 2 * np.pi * np.floor((step + np.pi) / (2 * np.pi))
            found += 1 if step > 0.0 else -1
        before = i
    return found


@kernel
def assign_rings(azimuth: Any, judged: Any, slopes: Any, seam: float, clockwise: bool, ring: Any, sums: Any,
                 squares: Any, counts: Any) -> int:  # fmt: skip
    """Number rings by the turns that returns make around the LiDAR, in the order they are written.

    Args:
        azimuth: (n,) f32 radians.
        judged: (n,) u8 of `label_points`.
        slopes: (n,) f32.
        seam: radians; where turns end.
        clockwise: seen from above.
        ring: (n,) i32; becomes the number of the turn, -1 where a return is not usable.
        sums: (r,) f64 of zeros; becomes the sum of the slopes of each turn.
        squares: (r,) f64 of zeros; of their squares.
        counts: (r,) i64 of zeros; how many returns each has.

    Returns:
        The number of turns; r + 1 where there are more than r, of which nothing else is complete.
    """
    turn, before = 0, -1.0
    total, square, count = 0.0, 0.0, 0
    per_turn = 1.0 / (2 * np.pi)
    for i in range(len(azimuth)):
        ring[i] = -1
        if judged[i] != USABLE:
            continue
        here = seam - azimuth[i] if clockwise else azimuth[i] - seam
        here -= 2 * np.pi * np.floor(here * per_turn)
        # Just after the seam, a return from just before it belongs to the turn that has begun.
        trembles = 0.0 <= before < OUT_OF_ORDER and here > 2 * np.pi - OUT_OF_ORDER
        if here < before - OUT_OF_ORDER:
            # Sums of a turn are kept at hand and written when it ends.
            sums[turn], squares[turn], counts[turn] = total, square, count
            total, square, count = 0.0, 0.0, 0
            turn, before = turn + 1, here
            if turn == len(counts):
                return turn + 1
        # The greatest so far, or else many small steps back would never add up to the end of a turn.
        elif not trembles:
            before = max(before, here)
        ring[i] = turn
        slope = np.float64(slopes[i])
        total += slope
        square += slope * slope
        count += 1
    sums[turn], squares[turn], counts[turn] = total, square, count
    return turn + 1 if before >= 0.0 else 0


@kernel
def assign_ring_rows(ring: Any, rows: Any) -> None:
    """Replace the ring of each return by its row.

    Args:
        ring: (n,) i32, -1 for none; becomes the row, -1 for none.
        rows: (r,) i32 row of each ring.
    """
    for i in range(len(ring)):
        if ring[i] >= 0:
            ring[i] = rows[ring[i]]


@kernel
def accumulate_ring_slopes(ring: Any, slopes: Any, sums: Any, squares: Any, counts: Any) -> None:
    """Sums of the slopes of each ring, of their squares, and how many there are.

    Args:
        ring: (n,) i32, -1 for none.
        slopes: (n,) f32.
        sums: (r,) f64 of zeros.
        squares: (r,) f64 of zeros.
        counts: (r,) i64 of zeros.
    """
    for i in range(len(ring)):
        if ring[i] >= 0:
            slope = np.float64(slopes[i])
            sums[ring[i]] += slope
            squares[ring[i]] += slope * slope
            counts[ring[i]] += 1


@kernel
def assign_rows(slopes: Any, column: Any, edges: Any, row: Any) -> None:
    """The row of each return by its slope.

    Args:
        slopes: (n,) f32.
        column: (n,) i32, -1 where a return is not usable.
        edges: (r + 1,) f64 falling; row i lies between edges i and i + 1.
        row: (n,) i32; becomes the row, -1 above the first edge, below the last, or where not usable.
    """
    rows = len(edges) - 1
    for i in range(len(slopes)):
        slope = slopes[i]
        # Edges fall: a row holds its upper edge and not its lower one, so that no slope is in two rows.
        if column[i] < 0 or slope > edges[0] or slope <= edges[rows]:
            row[i] = -1
            continue
        first, end = 0, rows
        # Bisection: edges of a named LiDAR are not evenly spaced.
        while end - first > 1:
            middle = (first + end) // 2
            if slope > edges[middle]:
                end = middle
            else:
                first = middle
        row[i] = first


@kernel
def fill(row: Any, column: Any, ranges: Any, solid: Any, image: Any) -> None:
    """Write the nearest solid return of each pixel; where there is none, minus the nearest other one.

    Args:
        row: (n,) i32, -1 for returns that are in no pixel.
        column: (n,) i32.
        ranges: (n,) f32 metres.
        solid: (n,) bool; others are ground.
        image: (r, c) f32 of zeros.
    """
    # Places without a sign, in one row: numba then has no negative ones to turn round at each access.
    flat, columns = image.reshape(-1), np.uint32(image.shape[1])
    for i in range(len(row)):
        if row[i] < 0 or column[i] < 0:
            continue
        p = np.uint32(row[i]) * columns + np.uint32(column[i])
        there, here = flat[p], ranges[i]
        if solid[i]:
            # The nearest return stands for the pixel; the published C++ code keeps the farthest.
            if there <= 0.0 or here < there:
                flat[p] = here
        # Ground is written as minus its range: it blocks the search for neighbours, but is no return to join.
        elif there == 0.0 or (there < 0.0 and -here > there):
            flat[p] = -here


@kernel
def fit_best_plane(
    returns: Any, draws: Any, up: Any, least_cos: float, reach: float, heights: Any, plane: Any
) -> float:
    """Try planes through three returns; keep the one whose distances, cut off at `reach`, cost least.

    Args:
        returns: (m, 3) f64 metres that judge, and that planes go through.
        draws: (t, 3) i64 places of three returns.
        up: (3,) f64 unit vector.
        least_cos: of the angle between a plane's normal and `up`.
        reach: distance in metres from which a return does not belong to a plane.
        heights: (2,) f64 how high the LiDAR may stand above the ground.
        plane: (4,) f64; becomes normal and offset: height = normal . point + offset.

    Returns:
        The mean cost, 1 where no plane was possible.
    """
    count = len(returns)
    square = reach * reach
    # What a plane costs that explains nothing: only better ones are taken.
    best = square * count
    normal = np.empty(3)
    for t in range(len(draws)):
        a, b, c = returns[draws[t, 0]], returns[draws[t, 1]], returns[draws[t, 2]]
        ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        normal[0], normal[1], normal[2] = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        size = np.sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2])
        # Three returns in one line, or one drawn twice, span no plane.
        if size < 1e-9:
            continue
        leaning = normal[0] * up[0] + normal[1] * up[1] + normal[2] * up[2]
        # The order of three drawn returns is chance; all normals are made to point up.
        if leaning < 0.0:
            size, leaning = -size, -leaning
        if leaning < least_cos * abs(size):
            continue
        nx, ny, nz = normal[0] / size, normal[1] / size, normal[2] / size
        offset = -(nx * a[0] + ny * a[1] + nz * a[2])
        if offset < heights[0] or offset > heights[1]:
            continue
        cost = 0.0
        for i in range(count):
            height = nx * returns[i, 0] + ny * returns[i, 1] + nz * returns[i, 2] + offset
            cost += min(height * height, square)
            # Costs only grow: a worse plane is given up early.
            if cost >= best:
                break
        if cost < best:
            best = cost
            plane[0], plane[1], plane[2], plane[3] = nx, ny, nz, offset
    return best / (square * count) if count else 1.0


@kernel
def collect_judges(points: Any, judged: Any, drawn: Any, up: Any, range_m: float, found: Any) -> int:
    """The first of some drawn returns that are usable, lie below the LiDAR, and are near.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8, 0 where usable.
        drawn: (d,) i64 places of returns.
        up: (3,) f64 unit vector.
        range_m: how far a return lies from the LiDAR at most.
        found: (m, 3) f64; becomes metres.

    Returns:
        How many there are, m at most.
    """
    count = 0
    for i in drawn:
        x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
        below = x * up[0] + y * up[1] + z * up[2] < 0.0
        if judged[i] == USABLE and below and x * x + y * y + z * z < range_m * range_m:
            found[count, 0], found[count, 1], found[count, 2] = x, y, z
            count += 1
            if count == len(found):
                break
    return count


@kernel
def measure_plane(returns: Any, plane: Any, within: float, middle: Any, scatter: Any) -> int:
    """Middle and scatter of the returns on a plane.

    Args:
        returns: (m, 3) f64 metres.
        plane: (4,) f64 normal and offset.
        within: metres from the plane up to which a return is on it.
        middle: (3,) f64; becomes their mean.
        scatter: (3, 3) f64; becomes the sum of the products of their differences from it.

    Returns:
        How many returns are on the plane.
    """
    count = 0
    middle[:] = 0.0
    scatter[:] = 0.0
    on = np.empty(len(returns), np.bool_)
    for i in range(len(returns)):
        high = returns[i, 0] * plane[0] + returns[i, 1] * plane[1] + returns[i, 2] * plane[2] + plane[3]
        on[i] = abs(high) < within
        if on[i]:
            count += 1
            for k in range(3):
                middle[k] += returns[i, k]
    middle /= max(count, 1)
    for i in range(len(returns)):
        if on[i]:
            for k in range(3):
                for m in range(3):
                    scatter[k, m] += (returns[i, k] - middle[k]) * (returns[i, m] - middle[m])
    return count


@kernel
def compute_heights(points: Any, judged: Any, plane: Any, found: Any) -> None:
    """Height of each usable return above the plane; 0 for the others.

    Args:
        points: (n, 3) f32 metres.
        judged: (n,) u8, 0 where usable.
        plane: (4,) f64 normal and offset.
        found: (n,) f32; becomes metres.
    """
    a, b, c, d = plane[0], plane[1], plane[2], plane[3]
    for i in range(len(points)):
        if judged[i] == 0:
            found[i] = a * points[i, 0] + b * points[i, 1] + c * points[i, 2] + d
        else:
            found[i] = 0.0


@kernel
def label(image: Any, up: Any, left: Any, parent: Any, labels: Any) -> int:
    """Join each return with its neighbours above and to the left where they belong together.

    The neighbour in a direction is the first pixel with a return; two belong together where the nearer range
    exceeds a share of the farther one: the angle criterion without its arc tangent. Columns go round.

    Args:
        image: (r, c) f32 metres, 0 for nothing, negative for ground.
        up: (r, a) f32 the share for a neighbour 1 to a rows further up, of each row.
        left: (b,) f32 the share for a neighbour 1 to b columns to the left.
        parent: (r * c + 1,) i32 scratch.
        labels: (r, c) i32; becomes the cluster, counted from 1 in the order of first pixels; 0 for none.

    Returns:
        The number of clusters.
    """
    rows, columns = image.shape
    count = 0
    for i in range(rows):
        for j in range(columns):
            here = image[i, j]
            if here <= 0.0:
                labels[i, j] = 0
                continue
            mine = 0
            # Left and up alone: right and down are the same pairs, met from the other side.
            for step in range(1, min(len(left), j) + 1):
                there = image[i, j - step]
                if there != 0.0:
                    if there > 0.0 and min(here, there) > left[step - 1] * max(here, there):
                        mine = labels[i, j - step]
                    # The first return ends the search, ground too: nothing is joined across it.
                    break
            for step in range(1, min(up.shape[1], i) + 1):
                there = image[i - step, j]
                if there != 0.0:
                    if there > 0.0 and min(here, there) > up[i, step - 1] * max(here, there):
                        other = labels[i - step, j]
                        if mine == 0:
                            mine = other
                        elif mine != other:
                            _join(parent, mine, other)
                    break
            if mine == 0:
                count += 1
                mine = count
                parent[mine] = mine
            labels[i, j] = mine
        # The first columns of a row come before the last ones, which lie to their left. In a narrow image the way round
        # ends before the pixel itself.
        for j in range(min(len(left), columns)):
            here = image[i, j]
            for step in range(1, min(len(left), columns - 1) + 1):
                there = image[i, (j - step) % columns]
                if here <= 0.0 or (there != 0.0 and step <= j):
                    break
                if there != 0.0:
                    if there > 0.0 and min(here, there) > left[step - 1] * max(here, there):
                        _join(parent, labels[i, j], labels[i, (j - step) % columns])
                    break
    return _number_trees(parent, count, labels)


@kernel
def fill_spots(row: Any, column: Any, ranges: Any, points: Any, solid: Any, image: Any, spots: Any) -> None:
    """Write where in space the return of each pixel of a range image lies.

    Args:
        row: (n,) i32, -1 for returns that are in no pixel.
        column: (n,) i32.
        ranges: (n,) f32 metres.
        points: (n, 3) f32 metres.
        solid: (n,) bool; others are ground.
        image: (r, c) f32 metres of `fill`.
        spots: (r, c, 3) f32; becomes the return's place where the pixel has one.
    """
    flat, places, columns = image.reshape(-1), spots.reshape(-1), np.uint32(image.shape[1])
    for i in range(len(row)):
        if solid[i] and row[i] >= 0 and column[i] >= 0:
            p = np.uint32(row[i]) * columns + np.uint32(column[i])
            if flat[p] == ranges[i]:
                for k in range(3):
                    places[np.uint32(3) * p + np.uint32(k)] = points[i, k]


@kernel
def label_within_reach(
    image: Any, spots: Any, reach: Any, wide: int, tall: int, parent: Any, labels: Any
) -> int:
    """Join each return with its neighbours to the left and above that lie within some metres, in space.

    To the left the search goes on over `wide` columns up to the first neighbour within reach, upwards over `tall` rows,
    with one column to each side, up to a neighbour straight above: what lies behind it is that neighbour's to find. A
    return takes the number of the first neighbour within reach, so that most pairs are seen to belong together without a
    search for roots. Columns go round.

    Args:
        image: (r, c) f32 metres, 0 or less for nothing.
        spots: (r, c, 3) f32 metres, the place of each pixel's return.
        reach: metres, f32.
        wide: columns to the left.
        tall: rows upwards.
        parent: (r * c + 1,) i32 scratch.
        labels: (r, c) i32; become the cluster, counted from 1 in the order of first pixels; 0 for none.

    Returns:
        The number of clusters.
    """
    rows, columns = image.shape
    flat, places, numbers = image.reshape(-1), spots.reshape(-1), labels.reshape(-1)
    square = reach * reach
    count = 0
    for i in range(rows):
        for j in range(columns):
            p = np.uint64(i * columns + j)
            here = flat[p]
            if here <= 0.0:
                numbers[p] = 0
                continue
            x, y, z = places[3 * p], places[3 * p + np.uint64(1)], places[3 * p + np.uint64(2)]
            mine = 0
            for step in range(1, min(wide, j) + 1):
                q = p - np.uint64(step)
                # The difference of ranges is no more than the distance, and needs no place.
                if flat[q] > 0.0 and abs(flat[q] - here) < reach:
                    a, b = x - places[3 * q], y - places[3 * q + np.uint64(1)]
                    c = z - places[3 * q + np.uint64(2)]
                    if a * a + b * b + c * c < square:
                        mine = numbers[q]
                        break
            for up in range(1, min(tall, i) + 1):
                above = False
                for side in range(3):
                    k = j if side == 0 else (j - 1 if side == 1 else j + 1)
                    k = columns - 1 if k < 0 else (0 if k == columns else k)
                    q = np.uint64((i - up) * columns + k)
                    if flat[q] > 0.0 and abs(flat[q] - here) < reach:
                        a, b = x - places[3 * q], y - places[3 * q + np.uint64(1)]
                        c = z - places[3 * q + np.uint64(2)]
                        if a * a + b * b + c * c < square:
                            other = numbers[q]
                            if mine == 0:
                                mine = other
                            elif mine != other:
                                _join(parent, mine, other)
                            if side == 0:
                                above = True
                                break
                if above:
                    break
            if mine == 0:
                count += 1
                mine = count
                parent[mine] = mine
            numbers[p] = mine
        # The first columns of a row come before the last ones, which lie to their left.
        for j in range(min(wide, columns)):
            for step in range(j + 1, min(wide, columns - 1) + 1):
                k = columns + j - step
                if image[i, j] > 0.0 and image[i, k] > 0.0:
                    a, b, c = (spots[i, j, 0] - spots[i, k, 0], spots[i, j, 1] - spots[i, k, 1],
                               spots[i, j, 2] - spots[i, k, 2])  # fmt: skip
                    if a * a + b * b + c * c < square:
                        _join(parent, labels[i, j], labels[i, k])
                        break
    return _number_trees(parent, count, labels)


@inline_kernel
def _join(parent: Any, a: int, b: int) -> None:
    """Give two trees one root, the earlier one."""
    while parent[a] != a:
        # Path halving keeps the trees flat without a second walk.
        parent[a] = parent[parent[a]]
        a = parent[a]
    while parent[b] != b:
        parent[b] = parent[parent[b]]
        b = parent[b]
    # The earlier one becomes the root, which `_number_trees` relies on.
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@inline_kernel
def _number_trees(parent: Any, count: int, labels: Any) -> int:
    """Replace the number of each pixel by that of its tree, counted from 1, and count the trees."""
    made = 0
    # Roots are the earliest numbers of their trees: numbered in order, each tree's is there when it is asked for.
    for p in range(1, count + 1):
        if parent[p] == p:
            made += 1
            parent[p] = made
        else:
            parent[p] = parent[parent[p]]
    parent[0] = 0
    rows, columns = labels.shape
    for i in range(rows):
        for j in range(columns):
            labels[i, j] = parent[labels[i, j]]
    return made


@kernel
def assign_cluster_labels(row: Any, column: Any, solid: Any, labels: Any, found: Any) -> None:
    """The cluster of each return: that of its pixel, 0 for ground and for what lies in no pixel.

    Args:
        row: (n,) i32.
        column: (n,) i32.
        solid: (n,) bool.
        labels: (r, c) i32.
        found: (n,) i32; becomes the cluster.
    """
    for i in range(len(row)):
        inside = solid[i] and row[i] >= 0 and column[i] >= 0
        found[i] = labels[row[i], column[i]] if inside else 0


@kernel
def measure(points: Any, row: Any, ranges: Any, heights: Any, found: Any, counts: Any, extents: Any) -> None:
    """Number of returns of each cluster, and its bounds.

    Args:
        points: (n, 3) f32 metres.
        row: (n,) i32.
        ranges: (n,) f32 metres.
        heights: (n,) f32 metres above the ground, or empty where there is none.
        found: (n,) i32 cluster of each return, 0 for none.
        counts: (k,) i32 of zeros; cluster 1 comes first.
        extents: (k, 7) f32 of inf and -inf in turn; become least and greatest range, height and row, and the greatest
            horizontal distance from the cluster's middle.
    """
    # Double precision: the rounding of float32 sums grows with the number of returns.
    middles = np.zeros((len(counts), 2))
    high = len(heights) > 0
    # Returns of a ring are mostly of one cluster for a while: its numbers are held at hand until another comes.
    held, count, x, y = -1, 0, 0.0, 0.0
    near = far = feet = head = first = last = np.float32(0.0)
    for i in range(len(found) + 1):
        k = found[i] - 1 if i < len(found) else len(counts)
        if k < 0:
            continue
        if k != held:
            if held >= 0:
                counts[held], middles[held, 0], middles[held, 1] = count, x, y
                extents[held, 0], extents[held, 1], extents[held, 4], extents[held, 5] = (
                    near,
                    far,
                    first,
                    last,
                )
                extents[held, 2], extents[held, 3] = feet, head
            if k == len(counts):
                break
            held, count, x, y = k, counts[k], middles[k, 0], middles[k, 1]
            near, far, first, last = extents[k, 0], extents[k, 1], extents[k, 4], extents[k, 5]
            feet, head = extents[k, 2], extents[k, 3]
        count += 1
        x += points[i, 0]
        y += points[i, 1]
        near, far = min(near, ranges[i]), max(far, ranges[i])
        first, last = min(first, np.float32(row[i])), max(last, np.float32(row[i]))
        if high:
            feet, head = min(feet, heights[i]), max(head, heights[i])
    for k in range(len(counts)):
        middles[k, 0] /= counts[k]
        middles[k, 1] /= counts[k]
    # A second walk: distances from the middle need the middle first. Squares are compared, and a root is drawn of the
    # greatest alone.
    squares = np.zeros(len(counts))
    held, most = -1, 0.0
    for i in range(len(found)):
        k = found[i] - 1
        if k < 0:
            continue
        if k != held:
            if held >= 0:
                squares[held] = most
            held, most, x, y = k, squares[k], middles[k, 0], middles[k, 1]
        across, along = points[i, 0] - x, points[i, 1] - y
        most = max(most, across * across + along * along)
    if held >= 0:
        squares[held] = most
    for k in range(len(counts)):
        extents[k, 6] = np.sqrt(squares[k])


@kernel
def compute_bounds(points: Any, found: Any, slot: Any, heights: Any, plane: Any, standing: float, pose: Any,
           lens: Any, size: Any, near: float, edges: Any, counts: Any) -> None:  # fmt: skip
    """Bounds in pixels of the returns of each cluster.

    Args:
        points: (n, 3) f32 metres in the LiDAR's frame.
        found: (n,) i32 cluster of each return, 0 for none.
        slot: (k + 1,) i32 row of a cluster's box; -1 for clusters without.
        heights: (n,) f32 metres above the ground; empty where there is none.
        plane: (4,) f64 normal and offset of the ground.
        standing: returns lower than this above the ground stand on it.
        pose: (3, 4) f64 from the LiDAR to the camera.
        lens: (3, 3) f64 camera matrix.
        size: (2,) f64 width and height of the image in pixels.
        near: metres before the camera from which on something is seen.
        edges: (m, 4) f64 of inf, inf, -inf, -inf; become x1, y1, x2, y2 in pixels, inside the image.
        counts: (m, 2) i32 of zeros; become the returns in the image, and those behind the camera.
    """
    spot = np.empty(3)
    for i in range(len(found)):
        at = slot[found[i]]
        if at < 0:
            continue
        x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
        _seen(x, y, z, pose, lens, spot)
        if spot[2] < near:
            counts[at, 1] += 1
            continue
        if 0.0 <= spot[0] < size[0] and 0.0 <= spot[1] < size[1]:
            counts[at, 0] += 1
        _reach(edges, at, spot, size)
        # The foot of the return on the plane counts as well: removing the ground has cut it off.
        if len(heights) and 0.0 < heights[i] < standing:
            high = np.float64(heights[i])
            _seen(x - plane[0] * high, y - plane[1] * high, z - plane[2] * high, pose, lens, spot)
            if spot[2] >= near:
                _reach(edges, at, spot, size)


@kernel
def count_class_returns(points: Any, found: Any, slot: Any, pose: Any, lens: Any, near: float, classes: Any, wanted: Any,
           counts: Any) -> None:  # fmt: skip
    """Count the returns of each cluster that lie in the image, and on pixels of some classes.

    Args:
        points: (n, 3) f32 metres in the LiDAR's frame.
        found: (n,) i32 cluster of each return, 0 for none.
        slot: (k + 1,) i32 row of a cluster's box; -1 for clusters without.
        pose: (3, 4) f64 from the LiDAR to the camera.
        lens: (3, 3) f64 camera matrix.
        near: metres before the camera from which on something is seen.
        classes: (H, W) whole numbers.
        wanted: (c,) bool of the classes.
        counts: (m, 2) i64 of zeros; become the returns on such pixels, and all in the image.
    """
    spot = np.empty(3)
    height, width = classes.shape
    for i in range(len(found)):
        at = slot[found[i]]
        if at < 0:
            continue
        _seen(np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2]), pose, lens, spot)
        if spot[2] >= near and 0.0 <= spot[0] < width and 0.0 <= spot[1] < height:
            counts[at, 1] += 1
            code = classes[int(spot[1]), int(spot[0])]
            # Codes without a name may lie beyond the table, or below 0: they are no background.
            counts[at, 0] += 0 <= code < len(wanted) and wanted[code]


@inline_kernel
def _seen(x: float, y: float, z: float, pose: Any, lens: Any, spot: Any) -> None:
    """Pixel and depth of a place; the pixel means nothing behind the camera."""
    a = pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[0, 3]
    b = pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[1, 3]
    c = pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[2, 3]
    # lens[0, 1] is the skew; Camera has checked that the other places are 0 and 1.
    spot[0] = (lens[0, 0] * a + lens[0, 1] * b) / c + lens[0, 2]
    spot[1] = lens[1, 1] * b / c + lens[1, 2]
    spot[2] = c


@inline_kernel
def _reach(edges: Any, at: int, spot: Any, size: Any) -> None:
    """Stretch a box to a pixel; one beside the image stretches it to the border in that direction only."""
    across, down = 0.0 <= spot[0] < size[0], 0.0 <= spot[1] < size[1]
    if down:
        edges[at, 0] = min(edges[at, 0], max(spot[0], 0.0))
        edges[at, 2] = max(edges[at, 2], min(spot[0], size[0]))
    if across:
        edges[at, 1] = min(edges[at, 1], max(spot[1], 0.0))
        edges[at, 3] = max(edges[at, 3], min(spot[1], size[1]))


@kernel
def group_by_cluster(found: Any, slot: Any, starts: Any, members: Any) -> None:
    """Returns in the order of their clusters: a counting sort.

    Args:
        found: (n,) i32 cluster of each return, 0 for none.
        slot: (k + 1,) i32 place of a cluster in the order; -1 for clusters that are left out.
        starts: (m + 1,) i64 of zeros; becomes where the returns of each begin, and the end.
        members: (n,) i32; becomes the returns, those of each cluster in their own order; only the first ones are written.
    """
    for i in range(len(found)):
        if slot[found[i]] >= 0:
            starts[slot[found[i]] + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    filled = starts[:-1].copy()
    for i in range(len(found)):
        at = slot[found[i]]
        if at >= 0:
            members[filled[at]] = i
            filled[at] += 1


@kernel
def fit_rectangles(points: Any, members: Any, starts: Any, turns: Any, heights: Any, plane: Any, standing: float,
                   judges: int, stray: float, cuboids: Any) -> None:  # fmt: skip
    """The turned rectangle whose edges the returns of each cluster lie closest to, and how high they reach.

    Args:
        points: (n, 3) f32 metres.
        members: (n,) i32 returns in the order of their clusters.
        starts: (m + 1,) i64 where the returns of each begin, and the end.
        turns: (a, 2) f64 cosine and sine of the angles that are tried.
        heights: (n,) f32 metres above the ground; empty where there is none.
        plane: (4,) f64 normal and offset of the ground.
        standing: metres; a cluster whose lowest return is less than this above the ground reaches down to it.
        judges: returns of a cluster that the angle is chosen by, evenly drawn.
        stray: share of the returns that are left out at each end, along and across, where there are enough of them.
        cuboids: (m, 9) f64 of zeros; become centre, sizes along and across the angle and upwards, the angle, and the sizes
            along and across with every return in them.
    """
    nearest = 0.03  # nearer than a LiDAR's own noise is no closer
    for k in range(len(starts) - 1):
        first, end = starts[k], starts[k + 1]
        if end == first:
            continue
        step = max(1, (end - first) // judges)
        best, chosen = -1.0, 0
        for t in range(len(turns)):
            cos, sin = turns[t, 0], turns[t, 1]
            low1, high1, low2, high2 = np.inf, -np.inf, np.inf, -np.inf
            for m in range(first, end, step):
                x, y = points[members[m], 0], points[members[m], 1]
                along, across = cos * x + sin * y, cos * y - sin * x
                low1, high1 = min(low1, along), max(high1, along)
                low2, high2 = min(low2, across), max(high2, across)
            score = 0.0
            for m in range(first, end, step):
                x, y = points[members[m], 0], points[members[m], 1]
                along, across = cos * x + sin * y, cos * y - sin * x
                # Each return counts for the nearest of the four edges.
                apart = min(min(along - low1, high1 - along), min(across - low2, high2 - across))
                score += 1.0 / max(apart, nearest)
            if score > best:
                best, chosen = score, t
        cos, sin = turns[chosen, 0], turns[chosen, 1]
        low1, high1, low2, high2 = np.inf, -np.inf, np.inf, -np.inf
        bottom, top, lowest = np.inf, -np.inf, np.inf
        for m in range(first, end):
            i = members[m]
            x, y, z = np.float64(points[i, 0]), np.float64(points[i, 1]), np.float64(points[i, 2])
            along, across = cos * x + sin * y, cos * y - sin * x
            low1, high1 = min(low1, along), max(high1, along)
            low2, high2 = min(low2, across), max(high2, across)
            bottom, top = min(bottom, z), max(top, z)
            if len(heights):
                lowest = min(lowest, np.float64(heights[i]))
        cuboids[k, 7], cuboids[k, 8] = high1 - low1, high2 - low2
        count = (end - first + step - 1) // step
        left_out = int(stray * count)
        if left_out > 0:
            # A beam that slips past a thing ends far behind it, and would make it as deep as that.
            places = np.empty((2, count))
            for m in range(count):
                x, y = points[members[first + m * step], 0], points[members[first + m * step], 1]
                places[0, m], places[1, m] = cos * x + sin * y, cos * y - sin * x
            places[0].sort()
            places[1].sort()
            low1, high1 = places[0, left_out], places[0, count - 1 - left_out]
            low2, high2 = places[1, left_out], places[1, count - 1 - left_out]
        along, across = (low1 + high1) / 2, (low2 + high2) / 2
        x, y = cos * along - sin * across, sin * along + cos * across
        if len(heights) and lowest < standing and plane[2] > 0.0:
            # Where the plane lies under the middle: what stands on the ground begins there.
            bottom = min(bottom, -(plane[0] * x + plane[1] * y + plane[3]) / plane[2])
        cuboids[k, 0], cuboids[k, 1], cuboids[k, 2] = x, y, (bottom + top) / 2
        cuboids[k, 3], cuboids[k, 4], cuboids[k, 5] = high1 - low1, high2 - low2, top - bottom
        cuboids[k, 6] = np.arctan2(sin, cos)


@kernel
def find_local_ground(column: Any, ranges: Any, heights: Any, columns: int, bin_m: float, rise: float, most: float,
                      slack: float, levels: Any, known: Any) -> None:  # fmt: skip
    """How far the ground lies above the plane, in bins of direction and range, followed outwards from the LiDAR.

    The lowest return of a bin is ground where the ground may have risen or fallen to it since the last such bin; what
    stands higher hides the ground, what lies lower is a stray return, and both leave the level as it was.

    Args:
        column: (n,) i32, -1 where a return is not usable.
        ranges: (n,) f32 metres.
        heights: (n,) f32 metres above the plane.
        columns: in a turn.
        bin_m: length of a bin.
        rise: metres by which the ground rises or falls in a metre at most.
        most: metres by which it does so at most where nothing is seen for some way.
        slack: metres by which returns of one stretch of ground differ.
        levels: (s, b) f32; become metres.
        known: (s, b) i32; become the number of returns that each level is the mean of, 0 where it is carried on.
    """
    sectors, bins = levels.shape
    level_of, known_of = levels.reshape(-1), known.reshape(-1)
    level_of[:] = np.inf
    known_of[:] = 0
    per_bin = np.float32(1.0 / bin_m)
    # A table instead of a division for each return.
    sector = np.arange(columns) * sectors // columns * bins
    places = np.empty(len(column), np.int32)
    # Returns of a ring are mostly of one bin for a while: its values are held at hand until another comes.
    held, low = -1, np.float32(0.0)
    for i in range(len(column)):
        b = int(ranges[i] * per_bin)
        places[i] = -1 if column[i] < 0 or b >= bins else sector[column[i]] + b
        p = places[i]
        if p < 0:
            continue
        if p != held:
            if held >= 0:
                level_of[held] = low
            held, low = p, level_of[p]
        low = min(low, heights[i])
    if held >= 0:
        level_of[held] = low
    for s in range(sectors):
        # The plane was fitted to the road near the vehicle, so that the walk begins on it.
        level, since = np.float32(0.0), 0
        for b in range(bins):
            since += 1
            if abs(levels[s, b] - level) <= slack + min(rise * bin_m * since, most):
                level, since = levels[s, b], 0
                known[s, b] = 1
            levels[s, b] = level
    sums = np.zeros(sectors * bins, np.float32)
    counts = np.zeros(sectors * bins, np.int32)
    held, total, count, top = -1, np.float32(0.0), 0, -np.inf
    for i in range(len(column)):
        p = places[i]
        if p < 0:
            continue
        if p != held:
            if held >= 0:
                sums[held], counts[held] = total, count
            held, total, count = p, sums[p], counts[p]
            top = level_of[p] + slack if known_of[p] > 0 else -np.inf
        # The lowest of many returns lies below the ground by their noise: the mean of those near it does not.
        if heights[i] < top:
            total += heights[i]
            count += 1
    if held >= 0:
        sums[held], counts[held] = total, count
    for s in range(sectors):
        for b in range(bins):
            p = s * bins + b
            if counts[p] > 0:
                level_of[p] = sums[p] / counts[p]
            elif b > 0:
                level_of[p] = level_of[p - 1]
            known_of[p] = counts[p]


@kernel
def subtract_local_ground(column: Any, ranges: Any, heights: Any, columns: int, bin_m: float, levels: Any,
                          found: Any) -> None:  # fmt: skip
    """Heights above the ground of each return's bin, between the middles of bins in a line.

    Args:
        column: (n,) i32, -1 where a return is not usable.
        ranges: (n,) f32 metres.
        heights: (n,) f32 metres above the plane.
        columns: in a turn.
        bin_m: length of a bin.
        levels: (s, b) f32 of `find_local_ground`.
        found: (n,) f32; becomes metres; 0 where a return is not usable.
    """
    sectors, bins = levels.shape
    sector = np.arange(columns) * sectors // columns
    per_bin, half, last = np.float32(1.0 / bin_m), np.float32(0.5), np.float32(bins - 1)
    for i in range(len(column)):
        if column[i] < 0:
            found[i] = 0.0
            continue
        s = sector[column[i]]
        place = min(max(ranges[i] * per_bin - half, np.float32(0.0)), last)
        b = min(int(place), bins - 2)
        low = levels[s, b]
        found[i] = heights[i] - (low + (levels[s, b + 1] - low) * (place - np.float32(b)))
