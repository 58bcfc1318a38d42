"""What is counted as seen and hidden is what the masks show."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "data"))

from small_street import BUS, VEHICLE, light, mover, own, situation, small_layout

from roadaware.simulator.episode import Episode
from roadaware.simulator.mesh import Soup, build_camera
from roadaware.simulator.truth import SeenCollector, build_scene_tables, simulate_block_view
from roadaware.simulator.truth.seen import build_block_soup, render_triangle_ids
from roadaware.simulator.truth.terms import ACTIONS


def crowded(**more: object) -> Episode:
    """A bus, a car half behind it, one all behind it, somebody on foot, a light, a car beside us."""
    actors = (
        mover(0, "Bus", (22, BUS), 0, 4.0),
        mover(1, "Car", (36, 4.6), 0, 4.0),
        mover(2, "Car", (33, 6.4), 0, 4.0),
        mover(3, "Ped", (30, -8.0), 0, 1.2, pose=1),
        mover(4, "Car", (5.5, -VEHICLE), 180, 0.0),
    )
    return situation(*actors, signals=(light(0, (20, 0, 4.0), 180, 0, [0]),), **more)


def only(soup: Soup, instance: int) -> Soup:
    rows = soup.instance == instance
    return Soup(*(getattr(soup, each.name)[rows] for each in fields(soup)))


def test_pixels_without_others_are_those_of_a_picture_of_one_alone() -> None:
    episode = crowded()
    camera = build_camera(episode.ego, episode.config, 3, episode.seed)
    soup = build_block_soup(episode, 3)
    together = render_triangle_ids(camera, soup)
    part = SeenCollector(episode).add(3, camera, together, soup)
    assert len(part) == 6
    for row, instance in enumerate(part.instance.tolist()):
        alone = only(soup, instance + 1)
        whole = render_triangle_ids(camera, alone) > 0
        shown = together == instance + 1
        assert part.expected_px[row] == whole.sum()
        assert part.visible_px[row] == shown.sum()
        y, x = np.nonzero(whole)
        outline = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
        assert np.abs(part.full[row] - outline).max() <= 1.0
        if shown.any():
            y, x = np.nonzero(shown)
            assert part.visible[row].tolist() == [x.min(), y.min(), x.max() + 1, y.max() + 1]


def test_who_is_hidden_has_no_box_and_who_is_half_hidden_says_so() -> None:
    scenes = build_scene_tables(crowded(), simulate_block_view(crowded()))
    first = scenes.boxes.filter(frame=0).join(scenes.tubes.select("tube", "name"), on="tube")
    told = first.select("name", "occlusion", "visible_share").rows()
    held = {name: (occlusion, share) for name, occlusion, share in told}
    assert set(held) == {"bus-0000", "car-0001", "ped-0003", "car-0004", "light-000"}
    assert held["ped-0003"] == ("none", 1.0)
    assert held["car-0001"][0] == ("part" if held["car-0001"][1] > 0.25 else "full")
    assert 0.08 <= held["car-0001"][1] < 0.75


def test_boxes_are_cut_to_the_picture_where_somebody_is_partly_behind_the_camera() -> None:
    scenes = build_scene_tables(crowded(), simulate_block_view(crowded()))
    beside = scenes.boxes.join(scenes.tubes.filter(name="car-0004").select("tube"), on="tube")
    assert len(beside)
    assert beside["x2_px"].max() == 320
    assert beside["x1_px"].min() > 160
    assert scenes.boxes.select((scenes.boxes["y2_px"] <= 240).all()).item()


def test_joints_are_those_of_people_and_lie_around_their_box() -> None:
    scenes = build_scene_tables(crowded(), simulate_block_view(crowded()))
    boxes = scenes.boxes.join(scenes.tubes.select("tube", "name"), on="tube")
    walker = boxes.filter(name="ped-0003")
    assert boxes.filter(boxes["joints"].is_not_null())["name"].unique().to_list() == ["ped-0003"]
    joints = walker["joints"].to_numpy().reshape(-1, 17, 3)
    corners = walker.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()[:, None]
    slack = 0.25 * (corners[..., 3] - corners[..., 1])
    assert (joints[..., 0] >= corners[..., 0] - slack).all()
    assert (joints[..., 1] <= corners[..., 3] + slack).all()
    assert joints[..., 2].mean() > 0.8


def test_lights_are_told_apart_by_whom_they_are_for_and_count_only_from_ahead() -> None:
    layout = small_layout()
    lights = (
        light(0, (25, 4, 2.6), 180, 0, [layout.route[0]]),
        light(1, (25, -4, 2.6), 180, 2, [1]),
        light(2, (25, 6, 2.6), 180, 1, []),
        light(3, (25, 2, 2.6), 0, 0, [layout.route[0]]),
        light(4, (28, 0, 2.6), 180, 3, [layout.route[1]]),
    )
    episode = situation(mover(0, "Car", (40, VEHICLE)), signals=lights, ego=own(layout, speed=0.0))
    scenes = build_scene_tables(episode, simulate_block_view(episode))
    held = scenes.tube_labels.join(scenes.tubes.select("tube", "parent"), on="tube")
    names = dict(scenes.tubes.select("tube", "name").rows())
    words = {"agent": scenes.meta.vocabularies["agent"], "action": ACTIONS}
    rows = held.filter(held["kind"].is_in(["agent", "action"])).select("kind", "label", "parent").rows()
    told = {(names[parent], words[kind][label]) for kind, label, parent in rows if "light" in names[parent]}
    assert told == {
        ("light-000", "TL"), ("light-000", "Red"),
        ("light-001", "OthTL"), ("light-001", "Green"),
        ("light-002", "OthTL"), ("light-002", "Amber"),
        ("light-004", "TL"), ("light-004", "Black"),
    }  # fmt: skip
    assert scenes.frames["traffic_light"].unique().to_list() == ["red"]


def test_the_same_rows_come_in_pieces_and_nothing_is_seen_of_nothing() -> None:
    episode = crowded()
    whole = simulate_block_view(episode)
    assert (np.diff(whole.frame) >= 0).all()
    assert len(SeenCollector(episode).seen()) == 0
    empty = situation(mover(0, "Car", (30, VEHICLE)))
    scenes = build_scene_tables(empty, SeenCollector(empty).seen())
    assert scenes.boxes.is_empty()
    assert len(scenes.frames) == episode.n_frames
