"""Solids are closed, face outwards and have the volume they should."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from roadaware.simulator.figures.form import (
    ball,
    box,
    cylinder,
    disc,
    loft,
    patch,
    pipe,
    prism,
    ring,
    volume,
    wedge,
    window,
)

SQUARE = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]


@pytest.mark.parametrize(
    ("solid", "size"),
    [
        (box((0, 0, 0), (1, 2, 3)), 6.0),
        (wedge((0, 1, 0, 1, 0), (0, 1, 0, 1, 2)), 2.0),
        (prism(SQUARE, 1.0, 4.0), 3.0),
        (prism(SQUARE[::-1], 1.0, 4.0), 3.0),
        (cylinder((0, 0, 0), (2, 0, 0), 1.0, 64), 2 * np.pi),
        (cylinder((0, 0, 0), (0, 0, 3), 1.0, 64, 0.001), np.pi),
        (ball((5, 5, 5), (1, 1, 1), 40, 40), 4 / 3 * np.pi),
        (ring((0, 0, 0), 1.0, 0.1, 0.1, sides=64), 2 * np.pi * 0.95 * 0.01),
        (ring((0, 0, 0), 1.0, 0.1, 0.1, sides=20, section=3), None),
        (pipe([(0, 0, 0), (1, 0, 0), (1, 1, 0.5), (0, 2, 1)], [0.2, 0.1, 0.2, 0.05]), None),
        (loft([[(x, y, z) for x, y in SQUARE] for z in (3.0, 2.0, 0.0)]), 3.0),
        (box((0, 1, 0), (1, 2, 1)).mirrored(), 1.0),
        (box((0, 1, 0), (1, 2, 1)).spun(40, 1, (3, 0, 0)), 1.0),
    ],
)
def test_solids_are_closed_and_face_outwards(solid, size):
    edges = Counter()
    for a, b, c in solid.triangles.tolist():
        edges.update([(a, b), (b, c), (c, a)])
    assert all(count == 1 and edges[b, a] == 1 for (a, b), count in edges.items())
    found = volume(solid.vertices, solid.triangles)
    assert found > 0
    if size is not None:
        assert found == pytest.approx(size, rel=0.03)


def test_faces_of_a_box_are_numbered_by_where_they_look():
    solid = box((-1, -1, -1), (1, 1, 1))
    a, b, c = solid.vertices[solid.triangles].transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    axis, sign = np.divmod(np.arange(6), 2)
    for part in range(6):
        assert (normal[solid.part == part][:, axis[part]] * (2 * sign[part] - 1) > 0).all()
    assert set(solid.without(4, 5).part.tolist()) == {0, 1, 2, 3}


def test_patches_and_discs_lie_above_what_they_are_put_on():
    quad = np.array([(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)], dtype=np.float64)
    piece = patch(quad, window(0.25, 0.75, 0.0, 0.5), lift=0.01)
    assert np.allclose(piece.vertices, [(0.5, 0, 0.01), (1.5, 0, 0.01), (1.5, 0.5, 0.01), (0.5, 0.5, 0.01)])
    a, b, c = piece.vertices[piece.triangles].transpose(1, 0, 2)
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()
    a, b, c = (flat := disc((0, 0, 1), 0.5, (0, -1, 0))).vertices[flat.triangles].transpose(1, 0, 2)
    assert (np.cross(b - a, c - a)[:, 1] < 0).all()


def test_a_turn_about_an_axis_is_counter_clockwise():
    point = box((1, 0, 0), (2, 1, 1))
    assert np.allclose(point.spun(90).vertices[0], [0, 1, 0])
    assert np.allclose(point.spun(90, 1).vertices[0], [0, 0, -1])
