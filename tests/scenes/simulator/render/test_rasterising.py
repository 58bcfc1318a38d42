"""What the renderer sees: coverage, depth, occlusion, masks and boxes of triangles whose place is known."""

import numpy as np
import pytest
from synthetic_street import box, camera, mesh, sheet, street

from roadaware.simulator.config import Conditions
from roadaware.simulator.mesh import Material, Semantic, Soup, merge_soups, transform_mesh
from roadaware.simulator.render import instance_boxes, render

DAY = Conditions("day", "clear")
LEVEL = camera(200, 150, place=(0, 0, 1.5), pitch_deg=0.0)


def seen(soup: Soup, eye=LEVEL):
    return render(soup, eye, DAY, seed=3, frame=0)


def upright(corners_px, depth_m, instance=1, eye=LEVEL) -> Soup:
    """A triangle across the view whose corners fall on given pixels."""
    focal, (cx, cy) = eye.intrinsics[0, 0], eye.intrinsics[:2, 2]
    x, y, z = eye.world_SE3_camera[:3, 3]
    places = [
        (x + depth_m, y - (u - cx) * depth_m / focal, z - (v - cy) * depth_m / focal) for u, v in corners_px
    ]
    # Counter-clockwise from the camera, whose rows count downwards.
    (u0, v0), (u1, v1), (u2, v2) = corners_px
    order = [0, 1, 2] if (u1 - u0) * (v2 - v0) - (v1 - v0) * (u2 - u0) < 0 else [0, 2, 1]
    flat = mesh(places, [order], np.zeros((1, 3, 2)), (0.5, 0.5, 0.5), Material.MATT, Semantic.CAR)
    return transform_mesh(flat, (0, 0, 0), 0.0, instance)


def rays(eye):
    """(h, w, 3) directions in the world whose component along the optical axis is 1."""
    rows, columns = np.mgrid[: eye.height_px, : eye.width_px] + 0.5
    a = (columns - eye.intrinsics[0, 2]) / eye.intrinsics[0, 0]
    b = (rows - eye.intrinsics[1, 2]) / eye.intrinsics[1, 1]
    return np.stack([a, b, np.ones_like(a)], axis=2) @ eye.world_SE3_camera[:3, :3].T


@pytest.mark.parametrize("seed", range(8))
def test_a_triangle_covers_exactly_the_pixels_whose_middle_lies_in_it(seed):
    corners = np.random.default_rng(seed).uniform((-60, -60), (260, 210), (3, 2))
    picture = seen(upright(corners, 9.0))
    columns, rows = np.meshgrid(np.arange(200) + 0.5, np.arange(150) + 0.5)
    sides = []
    for k in range(3):
        (ax, ay), (bx, by) = corners[k], corners[(k + 1) % 3]
        sides.append((bx - ax) * (rows - ay) - (by - ay) * (columns - ax))
    inside = np.all(np.array(sides) > 0, axis=0) | np.all(np.array(sides) < 0, axis=0)
    near = np.min(np.abs(sides), axis=0) < 1e-2
    assert np.array_equal((picture.instance == 1)[~near], inside[~near])
    np.testing.assert_allclose(picture.depth_m[inside & ~near], 9.0, rtol=1e-5)


def test_the_area_of_a_triangle_in_pixels_is_half_base_times_height():
    picture = seen(upright([(20.2, 130.3), (180.6, 130.3), (90.1, 10.4)], 5.0))
    assert (picture.instance == 1).sum() == pytest.approx(160.4 * 119.9 / 2, rel=0.005)


def test_triangles_that_share_edges_leave_no_gap_and_backs_are_not_seen():
    ground = transform_mesh(
        sheet(-30, 90, -40, 40, 0, (0.2, 0.2, 0.2), Material.ASPHALT, Semantic.ROAD), (0, 0, 0), 0.3, 7
    )
    picture = seen(ground)
    below = rays(LEVEL)[:, :, 2] < -1.5 / 35
    assert np.all(picture.instance[below] == 7)
    turned = Soup(ground.corners[:, ::-1], *(getattr(ground, n) for n in list(vars(ground))[1:]))
    assert not seen(turned).instance.any()


def test_depth_of_the_ground_is_that_of_the_ray_even_where_it_passes_below_the_camera():
    eye = camera(200, 150, place=(3, -2, 1.7), pitch_deg=-12.0)
    picture = seen(
        transform_mesh(
            sheet(-60, 300, -90, 90, 0, (0.2, 0.2, 0.2), Material.ASPHALT, Semantic.ROAD), (0, 0, 0), 0
        ),
        eye,
    )
    drop = rays(eye)[:, :, 2]
    shown = picture.semantic == Semantic.ROAD
    assert shown[-1].all()
    np.testing.assert_allclose(picture.depth_m[shown], -1.7 / drop[shown], rtol=1e-5)
    assert np.all(np.isinf(picture.depth_m[drop > 0]))
    assert np.all(picture.semantic[drop > 0] == Semantic.SKY)


def test_the_nearer_thing_is_seen_in_any_order():
    near, far = (
        upright([(40, 120), (120, 120), (80, 30)], 4.0, 1),
        upright([(10, 140), (190, 140), (90, 5)], 8.0, 2),
    )
    one, other = seen(merge_soups([near, far])), seen(merge_soups([far, near]))
    assert np.array_equal(one.instance, other.instance)
    assert np.array_equal(one.rgb, other.rgb)
    assert np.array_equal(one.instance == 1, seen(near).instance == 1)
    assert (one.instance == 2).sum() < (seen(far).instance == 2).sum()


def test_masks_depth_and_projection_agree_in_a_street():
    eye = camera(240, 180)
    soup = street(triangles=1_200)
    picture = seen(soup, eye)
    sky = picture.semantic == Semantic.SKY
    assert np.array_equal(sky, np.isinf(picture.depth_m))
    assert not picture.instance[sky].any()
    people = (picture.instance > 20) & (picture.instance <= 33)
    assert np.array_equal(people, picture.semantic == Semantic.PERSON)
    assert set(picture.semantic[(picture.instance > 0) & ~people]) == {Semantic.CAR}
    # What a pixel shows lies within its thing, at the pixel's depth, and projects back on the pixel.
    places = eye.world_SE3_camera[:3, 3] + rays(eye) * np.where(sky, 0, picture.depth_m)[:, :, None]
    for number in np.unique(picture.instance)[1:]:
        corners = soup.corners[soup.instance == number].reshape(-1, 3)
        shown = places[picture.instance == number]
        assert np.all(shown > corners.min(0) - 0.02)
        assert np.all(shown < corners.max(0) + 0.02)
    pixels, depth = eye.project(places[~sky])
    np.testing.assert_allclose(pixels, np.argwhere(~sky)[:, ::-1] + 0.5, atol=1e-3)
    np.testing.assert_allclose(depth, picture.depth_m[~sky], rtol=1e-6)
    assert np.isnan(eye.project([[-5.0, 0, 0]])[0]).all()


def test_boxes_of_instances_are_those_of_their_masks():
    picture = seen(street(triangles=1_200))
    found = instance_boxes(picture.instance, 40)
    for i, (x1, y1, x2, y2, pixels) in enumerate(found):
        rows, columns = np.nonzero(picture.instance == i + 1)
        assert pixels == len(rows)
        if pixels:
            assert (x1, y1, x2, y2) == (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert found[:, 4].sum() == (picture.instance > 0).sum()
    assert (found[:, 4] > 0).sum() > 8


def test_a_box_is_as_high_in_the_picture_as_its_corners_say():
    car = transform_mesh(
        box((4, 1.8, 1.5), (0.5, 0.1, 0.1), Material.GLOSSY, Semantic.CAR), (14, 1, 0), 0.4, 5
    )
    x1, y1, x2, y2, _ = instance_boxes(seen(car).instance, 5)[4]
    pixels, _ = LEVEL.project(car.corners.reshape(-1, 3))
    np.testing.assert_allclose([x1, y1, x2, y2], [*pixels.min(0), *pixels.max(0)], atol=1.0)
