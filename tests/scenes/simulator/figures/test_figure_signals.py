"""Traffic lights show the lens of their state, and nothing but their heads is an instance."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.simulator.actors import Light, Signal
from roadaware.simulator.figures import build_signal_mesh, build_signal_soup
from roadaware.simulator.mesh import Material, Semantic


def a_signal(state, *, for_walkers=False, height=3.0, heading=0.0) -> Signal:
    return Signal(
        0, np.array([2.0, 1.0, height]), heading, np.array(state, dtype=np.uint8), (1,), 0, for_walkers
    )


@pytest.mark.parametrize("for_walkers", [False, True])
def test_one_lens_glows_and_the_others_are_dark(for_walkers):
    signal = a_signal(list(Light), for_walkers=for_walkers)
    heights = {}
    for light in Light:
        mesh = build_signal_mesh(signal, int(light))
        shines = mesh.glow > 0
        assert (mesh.material[shines] == Material.LAMP).all()
        if light is Light.BLACK or (for_walkers and light is Light.AMBER):
            assert not shines.any()
            continue
        corners = mesh.vertices[mesh.triangles[shines]]
        heights[light] = float(corners[..., 2].mean())
        a, b, c = corners.transpose(1, 0, 2)
        assert (np.cross(b - a, c - a)[:, 0] > 0).all()
    assert list(heights.values()) == sorted(heights.values(), reverse=True)
    assert len({round(height, 3) for height in heights.values()}) == len(heights)


def test_the_head_is_around_the_origin_and_the_pole_reaches_the_ground():
    mesh = build_signal_mesh(a_signal([0], height=3.4), 0)
    pole = np.unique(mesh.triangles[mesh.semantic == Semantic.POLE])
    head = np.unique(mesh.triangles[mesh.semantic == Semantic.TRAFFIC_LIGHT])
    assert mesh.vertices[pole, 2].min() == pytest.approx(-3.4)
    assert mesh.vertices[head, 2].min() == pytest.approx(-mesh.vertices[head, 2].max(), abs=0.01)
    assert np.array_equal(mesh.colour, build_signal_mesh(a_signal([0], height=3.4), 9).colour)


def test_poles_are_no_part_of_the_instance():
    soup = build_signal_soup(a_signal([2], heading=np.pi / 2), 0, 7)
    assert set(soup.instance[soup.semantic == Semantic.POLE].tolist()) == {0}
    assert set(soup.instance[soup.semantic == Semantic.TRAFFIC_LIGHT].tolist()) == {7}
    lens = soup.corners[soup.glow > 0].reshape(-1, 3)
    assert np.allclose(lens[:, 1], 1.0 + 0.012, atol=1e-3)
    assert lens[:, 2].max() < 3.0
