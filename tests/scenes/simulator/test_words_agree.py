"""Every word of a vocabulary of the simulator is known wherever words of it are looked up."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import roadaware.simulator.chaos as chaos
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, find_canonical_name
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos import play, recording
from roadaware.simulator.config import DOMAINS, PRESETS, build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes
from roadaware.simulator.people import bodies as people
from roadaware.simulator.people.bodies import Item, build_carried_item
from roadaware.simulator.people.clothes import Bag, Hat, Top, sample_outfit
from roadaware.simulator.people.skeleton import build_stature


def words(literal: object, *without: str) -> set[str]:
    return set(get_args(literal)) - {"", "none", *without}


def said_in_chaos() -> set[str]:
    """Predicates of all bonds that scripts of crowds name."""
    found = set()
    for file in Path(chaos.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "bond":
                found |= {arg.value for arg in ast.walk(node) if isinstance(arg, ast.Constant) and arg.value}
    return {word for word in found if isinstance(word, str)}


def test_all_that_is_worn_or_held_has_a_name() -> None:
    assert people._ITEM_NAMES.keys() == words(Item)
    assert people._BAG_NAMES.keys() == words(Bag, "shopping")  # held in the hand
    assert people._HAT_NAMES.keys() == words(Hat)
    assert people._TOP_NAMES.keys() == words(Top)


@pytest.mark.parametrize("item", sorted(words(Item)))
@pytest.mark.parametrize("coarse", [False, True])
def test_all_that_is_held_can_be_drawn(item: Item, coarse: bool) -> None:
    assert build_carried_item(
        item, build_stature(1.7, "senior", 1.0), sample_outfit(3, "adult", "slim"), coarse
    )


def test_every_bond_can_be_told_and_is_an_interaction() -> None:
    bonds = said_in_chaos()
    assert len(bonds) > 10
    assert bonds <= recording._BONDS.keys()
    assert all(find_canonical_name(bond, "interaction") for bond in recording._BONDS)


def test_every_deed_is_an_official_action_that_its_poses_show() -> None:
    assert set(play.DEEDS) <= set(ACTIONS_OFFICIAL)
    assert set(recording._DEEDS) <= set(play.DEEDS)
    shown = {pose for poses in play.DEEDS.values() for pose in poses}
    assert shown <= set(Pose)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("preset", PRESETS)
def test_a_thousand_scenes_of_every_preset_are_made(preset: str, seed: int, tmp_path: Path) -> None:
    """250 from each of four seeds, short ones; in every domain, one after another, in each seed."""
    domains = [None, *DOMAINS]
    for part, domain in enumerate(domains[:5]):
        config = build_scene_config(preset, domain)
        camera = replace(config.camera, fps=4.0, width_px=96, height_px=64)
        seconds = 2.0 if preset.startswith("kerb") else 1.0  # people stand at the kerb for a while
        config = replace(config, seconds=seconds, camera=camera, lidar=None, sound=False)
        folder = tmp_path / str(part)
        assert generate_scenes(Order(config, 1000 * seed + part, 50, Kept.tables_alone()), folder) == 50
