"""Images: the same in any order, different in every weather, dark at night, lit by lamps."""

import numpy as np
import pytest
from synthetic_street import box, camera, sheet, street

from roadaware.errors import UsageError
from roadaware.simulator.actors import Ego
from roadaware.simulator.config import CameraConfig, Conditions, SceneConfig
from roadaware.simulator.mesh import Material, Semantic, build_camera, merge_soups, transform_mesh
from roadaware.simulator.render import collect_lamps, compute_sun_direction, render

TIMES, WEATHERS = ("day", "dusk", "night"), ("clear", "overcast", "rain", "snow", "low-sun")
STREET = street(triangles=1_200)
EYE = camera(160, 120, grain=3.0)


def grey(conditions, soup=STREET, eye=EYE, frame=0, lights=()):
    return render(soup, eye, conditions, seed=5, frame=frame, lights=lights).rgb.mean(2)


def test_a_frame_is_the_same_whatever_was_drawn_before():
    condition = Conditions("night", "rain")
    frames = {k: render(STREET, EYE, condition, seed=5, frame=k).rgb for k in (0, 1, 2)}
    for k in (2, 0, 1):
        assert np.array_equal(render(STREET, EYE, condition, seed=5, frame=k).rgb, frames[k])
    assert not np.array_equal(frames[0], frames[1])


def test_conditions_change_the_picture_and_never_the_masks():
    pictures = {
        (time, weather): render(STREET, EYE, Conditions(time, weather), seed=5, frame=0)
        for time in TIMES
        for weather in WEATHERS
    }
    first = pictures["day", "clear"]
    means = [picture.rgb.reshape(12, 10, 16, 10, 3).mean((1, 3)) for picture in pictures.values()]
    for i, one in enumerate(means):
        assert all(np.abs(one - other).mean() > 0.5 for other in means[:i])
    for picture in pictures.values():
        assert np.array_equal(picture.instance, first.instance)
        assert np.array_equal(picture.depth_m, first.depth_m)
    for weather in WEATHERS:
        light = [pictures[time, weather].rgb.mean() for time in TIMES]
        assert light[0] > light[1] > light[2] + 5 > 15


def test_snow_whitens_the_ground_and_rain_darkens_it():
    pavement = render(STREET, EYE, Conditions(), seed=5, frame=0).semantic == Semantic.PAVEMENT
    clouded, wet, white = (grey(Conditions("day", w))[pavement].mean() for w in ("overcast", "rain", "snow"))
    assert white > clouded + 15
    assert wet < clouded - 10


def test_a_thing_casts_its_shadow_away_from_the_sun():
    eye = camera(200, 150, place=(-14, 0, 8), pitch_deg=-28.0)
    ground = transform_mesh(
        sheet(-90, 90, -90, 90, 0, (0.3, 0.3, 0.3), Material.MATT, Semantic.ROAD), (0, 0, 0), 0
    )
    post = transform_mesh(box((1, 1, 2.5), (0.3, 0.3, 0.3), Material.MATT, Semantic.OBJECT), (0, 0, 0), 0, 1)
    x, y, z = compute_sun_direction(Conditions(), 5)
    shaded, lit = (np.array([[-k * x / z, -k * y / z, 0.0]]) for k in (1.7, -1.7))
    picture = grey(Conditions(), merge_soups([ground, post]), eye)
    dark, bright = (picture[int(v), int(u)] for u, v in (eye.project(p)[0][0] for p in (shaded, lit)))
    assert dark < bright - 40


def test_lamps_light_the_road_below_them_at_night_and_shine_by_day():
    dark = grey(Conditions("night", "clear"))
    lit = grey(Conditions("night", "clear"), lights=[(9.0, -1.7, 4.0, 3.0)])
    assert lit[80:110, 60:100].mean() > dark[80:110, 60:100].mean() + 8
    for glow, time in ((0.0, "day"), (1.0, "day"), (0.0, "night"), (1.0, "night")):
        lamp = transform_mesh(
            box((0.1, 0.5, 0.5), (0.9, 0.05, 0.05), Material.LAMP, Semantic.CAR, glow, 1.0),
            (6, -1.7, 0),
            0,
            1,
        )
        picture = render(lamp, EYE, Conditions(time, "clear"), seed=5, frame=0)
        red, green, _ = picture.rgb[picture.instance == 1].mean(0)
        strong = red > 180 and red > green + 80
        assert strong == (glow > 0)
    with pytest.raises(UsageError, match="lights are rows"):
        grey(Conditions(), lights=[(1.0, 2.0)])


def test_a_traffic_light_colours_the_road_less_than_a_head_lamp_of_the_same_glow():
    def on_the_road(semantic, colour):
        lamp = transform_mesh(
            box((0.1, 0.4, 0.4), colour, Material.LAMP, semantic, 2.0, 3.2), (9, -1.7, 0), 0, 1
        )
        found = collect_lamps(lamp, (), np.zeros(3))
        return (found[:, 3:4] * found[:, 4:]).sum(0).max()

    signal = on_the_road(Semantic.TRAFFIC_LIGHT, (1.0, 0.03, 0.02))
    assert signal < 0.3 * on_the_road(Semantic.CAR, (1.0, 0.96, 0.86))


def test_empty_soups_show_the_sky():
    nothing = merge_soups(
        [transform_mesh(sheet(0, 1, 0, 1, 0, (1, 1, 1), Material.MATT, Semantic.ROAD), (-50, 0, 0), 0)]
    )
    picture = render(nothing, EYE, Conditions("dusk", "clear"), seed=5, frame=0)
    assert np.all(picture.semantic == Semantic.SKY)
    assert np.all(np.isinf(picture.depth_m))


def test_the_camera_sits_behind_the_windscreen_and_trembles_the_same_in_any_order():
    n = 4
    flat = np.zeros(n)
    ego = Ego(
        np.full((n, 3), 2.0) * [1, 2, 0],
        flat + np.pi / 2,
        flat + 8,
        flat,
        flat,
        flat.astype(int),
        flat.astype(int),
    )
    still = SceneConfig(camera=CameraConfig(shake_px=0.0, pitch_deg=-4.0, height_m=1.4))
    eye = build_camera(ego, still, 1, seed=3)
    np.testing.assert_allclose(eye.world_SE3_camera[:3, 3], [2.0, 5.2, 1.4])
    forward = eye.world_SE3_camera[:3, 2]
    np.testing.assert_allclose(forward, [0, np.cos(np.radians(4)), -np.sin(np.radians(4))], atol=1e-12)
    pixel, depth = eye.project(eye.world_SE3_camera[:3, 3] + 7 * forward)
    np.testing.assert_allclose([*pixel[0], depth[0]], [320, 240, 7])
    assert eye.project([[1.0, 30.0, 1.0]])[0][0, 0] < 320 < eye.project([[3.0, 30.0, 1.0]])[0][0, 0]
    rough = SceneConfig(camera=CameraConfig(shake_px=2.0))
    poses = [build_camera(ego, rough, frame, seed=3).world_SE3_camera for frame in range(n)]
    assert np.array_equal(build_camera(ego, rough, 2, seed=3).world_SE3_camera, poses[2])
    assert not np.allclose(poses[0][:3, :3], poses[1][:3, :3])
    np.testing.assert_allclose(poses[2][:3, :3] @ poses[2][:3, :3].T, np.eye(3), atol=1e-12)
