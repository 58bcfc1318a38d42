"""Scenes that differ in looks: the same ones every time, with a truth that their images agree with."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.io.video import VideoWriter
from roadaware.scenes.tables import Scenes
from roadaware.simulator.config import DOMAINS, PRESETS, Looks, SceneConfig, build_scene_config
from roadaware.simulator.episode import Episode, draw_look
from roadaware.simulator.generate import Order, generate_scenes
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import Semantic, build_camera
from roadaware.simulator.render import Picture, Stage, render
from roadaware.simulator.sensors import Lens
from roadaware.simulator.town.scenery import wire_spans
from roadaware.simulator.truth import SeenCollector, build_scene_tables


def config_with(seconds: float = 0.5, **looks: object) -> SceneConfig:
    base = build_scene_config("road@2")
    camera = replace(base.camera, width_px=192, height_px=144, fps=4.0)
    assert base.looks is not None
    return replace(base, seconds=seconds, camera=camera, sound=False, looks=replace(base.looks, **looks))


@cache
def shot(number: int, **looks: object) -> tuple[Episode, Picture, Picture, Scenes]:
    """An episode, its first image as rendered and as taken, and the tables of that frame."""
    episode = make_episode(config_with(**looks), 5, number)
    stage = Stage(episode)
    camera, soup = build_camera(episode.ego, episode.config, 0, episode.seed), stage.soup(0)
    plain = render(soup, camera, episode.conditions, seed=episode.seed, frame=0)
    assert episode.look is not None
    taken = Lens(episode, episode.look).taken(plain, camera, 0)
    collector = SeenCollector(episode)
    collector.add(0, camera, taken, soup)
    return episode, plain, taken, build_scene_tables(episode, collector.seen())


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_scenes_are_the_same_in_one_go_and_in_two(tmp_path: Path) -> None:
    config = config_with()
    generate_scenes(Order(config, seed=3, scenes=2), tmp_path / "once")
    generate_scenes(Order(config, seed=3, scenes=1), tmp_path / "twice")
    assert generate_scenes(Order(config, seed=3, scenes=2), tmp_path / "twice") == 1
    assert contents(tmp_path / "once") == contents(tmp_path / "twice")
    look = json.loads((tmp_path / "once/scenes/road-0001/scene.json").read_text())["look"]
    assert look["crf"] >= 18
    with pytest.raises(UsageError, match="another config"):
        generate_scenes(
            Order(replace(config, name="road@1", looks=None), seed=3, scenes=2), tmp_path / "once"
        )


@pytest.mark.slow
def test_a_frame_is_the_same_whatever_was_taken_before() -> None:
    episode, plain, taken, _ = shot(0)
    assert episode.look is not None
    lens, camera = Lens(episode, episode.look), build_camera(episode.ego, episode.config, 0, episode.seed)
    lens.taken(plain, camera, 1)
    assert np.array_equal(lens.taken(plain, camera, 0).rgb, taken.rgb)


@pytest.mark.slow
def test_looks_that_go_nowhere_change_nothing() -> None:
    episode, plain, taken, _ = shot(1, picture=0.0, windscreen=0.0, textures=0.0, wires=0.0)
    assert np.abs(plain.rgb.astype(int) - taken.rgb).max() <= 2
    assert np.array_equal(plain.instance, taken.instance)
    assert np.array_equal(plain.depth_m, taken.depth_m)
    assert episode.look is not None
    assert episode.look.crf == 18


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2])
def test_boxes_agree_with_the_masks_that_bonnet_and_mirror_leave(number: int) -> None:
    _, plain, taken, scenes = shot(number, windscreen=1.0)
    own = (taken.semantic == Semantic.VOID) & (plain.semantic != Semantic.VOID)
    assert 0.01 < own.mean() < 0.6
    assert not taken.instance[own].any()
    assert np.array_equal(taken.instance[~own], plain.instance[~own])
    assert (taken.depth_m[own] <= 1.0).all()
    rows = scenes.boxes.join(scenes.tubes.select("tube", "instance"), on="tube").to_dicts()
    assert rows
    for row in rows:
        y, x = np.nonzero(taken.instance == row["instance"])
        outline = [x.min(), y.min(), x.max() + 1, y.max() + 1]
        assert [row[f"visible_{k}"] for k in ("x1_px", "y1_px", "x2_px", "y2_px")] == outline
        assert row["x1_px"] <= outline[0] + 1
        assert row["y1_px"] <= outline[1] + 1
        assert row["x2_px"] >= outline[2] - 1
        assert row["y2_px"] >= outline[3] - 1


def test_the_bonnet_counts_as_what_hides() -> None:
    _, plain, taken, scenes = shot(2, windscreen=1.0)
    shares = scenes.boxes.join(scenes.tubes.select("tube", "instance"), on="tube")
    for row in shares.to_dicts():
        left = (taken.instance == row["instance"]).sum() / (plain.instance == row["instance"]).sum()
        assert row["visible_share"] <= left + 0.02


def test_parked_vehicles_have_boxes_where_that_is_asked() -> None:
    found = {}
    for parked in (False, True):
        episode = make_episode(config_with(parked=parked), 5, 3)
        found[parked] = sum(actor.active for actor in episode.actors)
    assert found[True] > found[False]


@pytest.mark.slow
def test_looks_differ_from_scene_to_scene_and_keep_their_bounds() -> None:
    looks = [draw_look(Looks(), np.random.default_rng([7, k])) for k in range(300)]
    assert all(18 <= look.crf <= 51 for look in looks)
    assert all(0.5 <= look.exposure <= 2.0 and 0.2 <= look.saturation <= 1.4 for look in looks)
    assert all(0 <= look.bonnet <= 0.2 and look.blur <= 0.004 and look.veil <= 0.25 for look in looks)
    assert 0.25 < np.mean([look.bonnet > 0 for look in looks]) < 0.55
    assert 0.25 < np.mean([look.wires for look in looks]) < 0.55
    assert len({look.seed for look in looks}) == 300
    assert {make_episode(config_with(), 5, k).config.surroundings.drive_on for k in range(6)} == {
        "left",
        "right",
    }


def test_a_domain_keeps_its_camera_and_town() -> None:
    for name in ("city-b", "night-rain"):
        config = replace(build_scene_config("road@2", name), seconds=0.5, sound=False)
        own = make_episode(config, 0, 0)
        assert own.config == config
        assert own.config.camera.fov_deg == DOMAINS[f"{name}@1"].camera.fov_deg
        assert own.look is not None


def test_a_preset_without_version_is_its_first_and_has_no_look() -> None:
    assert build_scene_config("road") == PRESETS["road@1"]
    for name, config in PRESETS.items():
        assert (config.looks is None) == (name != "road@2")
    assert make_episode(replace(build_scene_config("road"), seconds=0.5), 0, 0).look is None


def test_scenes_that_tell_a_story_have_no_looks() -> None:
    for name in ("chaos", "kerb"):
        with pytest.raises(UsageError, match="give them no looks"):
            replace(build_scene_config(name), looks=Looks())


FIRST: dict[str, tuple[int, int, float, tuple[float, ...]]] = {
    "road@1": (34, 266, 107.125, (61.49, 56.69, 51.39)),
    "crossing@1": (47, 246, 86.745, (95.69, 78.22, 64.1)),
    "corner-cases@1": (59, 248, 75.18, (52.98, 46.35, 41.24)),
    "chaos@1": (23, 193, 62.013, (75.28, 61.49, 49.6)),
    "kerb@1": (5, 223, 1.777, (107.5, 105.8, 99.29)),
}
"""What scenes of the first versions held before there were looks: actors, things beside the road, how far
everybody went together (metres), and the mean colour of the first image."""


def summary_of(name: str) -> tuple[int, int, float, tuple[float, ...]]:
    config = build_scene_config(name)
    small = replace(config.camera, width_px=96, height_px=64, fps=4.0)
    episode = make_episode(replace(config, seconds=2.0, camera=small), 4, 0)
    went = sum(np.abs(np.diff(actor.position, axis=0)).sum() for actor in episode.actors)
    soup = Stage(episode).soup(0)
    camera = build_camera(episode.ego, episode.config, 0, 4)
    seen = render(soup, camera, episode.conditions, seed=4, frame=0)
    mean = tuple(np.round(seen.rgb.mean((0, 1)), 2).tolist())
    return len(episode.actors), len(episode.layout.props), round(float(went), 3), mean


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_presets_of_a_first_version_are_what_they_were(name: str) -> None:
    actors, props, went, mean = summary_of(name)
    assert (actors, props) == FIRST[name][:2]
    assert went == pytest.approx(FIRST[name][2], abs=0.01)
    assert mean == pytest.approx(FIRST[name][3], abs=0.3)


@pytest.mark.slow
def test_older_folders_that_say_nothing_of_looks_go_on(tmp_path: Path) -> None:
    camera = replace(build_scene_config("road").camera, width_px=64, height_px=48, fps=2.0)
    config = replace(build_scene_config("road"), camera=camera, seconds=0.5, sound=False)
    generate_scenes(Order(config), tmp_path / "made")
    assert "looks" not in json.loads((tmp_path / "made/simulation.json").read_text())["config"]
    assert generate_scenes(Order(config, scenes=2), tmp_path / "made") == 1


def test_wires_hang_above_everybody() -> None:
    episode = make_episode(config_with(), 5, 0)
    spans = wire_spans(episode.layout)
    assert spans
    for middle, soup in spans:
        assert soup.corners[..., 2].min() > 4.0
        assert np.abs(soup.corners[..., :2].mean((0, 1)) - middle).max() < 0.5


def test_a_coarser_codec_writes_less(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    sizes = []
    for crf in (18, 37):
        with VideoWriter(tmp_path / f"{crf}.mp4", 64, 48, 5.0, crf=crf) as film:
            film.write(noise)
        sizes.append((tmp_path / f"{crf}.mp4").stat().st_size)
    assert sizes[1] < sizes[0]
    with pytest.raises(UsageError, match="crf"):
        VideoWriter(tmp_path / "x.mp4", 64, 48, 5.0, crf=60)
