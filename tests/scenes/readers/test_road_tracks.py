"""ROAD: names, identifiers and tubes make tracks, however they disagree."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from road_files import HOUSE, Content, agree, head, make, native_tubes, read_content, read_from, read_tubes

from example_counts import tried


@pytest.fixture
def content() -> Content:
    """One video of twelve frames."""
    found = head()
    found["db"]["v"] = make.video_entry(12, ["train_1", "val_2"], 0)
    return found


def test_two_tubes_of_one_agent_and_one_uid_are_one_track(tmp_path: Path, content: Content) -> None:
    """An agent that goes away and comes back is one track where its boxes say so."""
    agent = content["db"]["v"]["agent_tubes"].pop("544e13cc-001-01")
    early = {frame: key for frame, key in agent["annos"].items() if int(frame) < 6}
    late = {frame: key for frame, key in agent["annos"].items() if int(frame) >= 6}
    content["db"]["v"]["agent_tubes"] |= {
        "first": {"label_id": 2, "annos": early},
        "second": {"label_id": 2, "annos": late},
    }
    scenes = read_from(tmp_path, content)
    agree(read_tubes(scenes, "agent"), native_tubes(content, "agent"))
    halves = (pl.col("name").is_in(["first", "second"])) & (pl.col("kind") == "agent")
    assert scenes.tubes.filter(halves)["parent"].n_unique() == 1
    for frame in content["db"]["v"]["frames"].values():
        for anno in frame.get("annos", {}).values():
            del anno["tube_uid"]
    assert read_from(tmp_path, content).tubes.filter(halves)["parent"].n_unique() == 2


def test_without_names_tubes_make_the_tracks(tmp_path: Path, content: Content) -> None:
    named = read_from(tmp_path, content)
    for frame in content["db"]["v"]["frames"].values():
        for anno in frame.get("annos", {}).values():
            del anno["tube_uid"]
    scenes = read_from(tmp_path, content)
    for kind in HOUSE:
        agree(read_tubes(scenes, HOUSE[kind]), native_tubes(content, kind))
    assert scenes.boxes.equals(named.boxes)
    assert scenes.tubes.equals(named.tubes)


def test_boxes_that_nothing_joins_have_no_track(tmp_path: Path, content: Content) -> None:
    entry = content["db"]["v"]
    entry["frames"]["5"]["annos"]["lone"] = {"box": [0.1, 0.1, 0.2, 0.2]}
    entry["frames"]["6"]["annos"]["named"] = {"box": [0.1, 0.1, 0.2, 0.2], "tube_uid": "once"}
    scenes = read_from(tmp_path, content)
    assert scenes.boxes["tube"].null_count() == 1
    once = scenes.tubes.filter(name="once")
    assert once.select("start_frame", "end_frame", "parent").rows() == [(5, 6, None)]


def test_a_tube_over_two_agents_of_one_frame_is_refused(tmp_path: Path, content: Content) -> None:
    """Its boxes are of two tracks that no track can hold, so that no parent can stand for it."""
    entry = content["db"]["v"]
    car = entry["agent_tubes"]["544e13cc-001-01"]["annos"]
    walker = entry["agent_tubes"]["10284a58-002-01"]["annos"]
    entry["duplex_tubes"]["mixed"] = {"label_id": 0, "annos": {"3": car["3"], "4": walker["4"]}}
    scenes = read_from(tmp_path, content)
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("tubes", "v, duplex_tubes, mixed")
    assert "seen in one frame" in row["reason"]
    del entry["duplex_tubes"]["mixed"]
    for kind in HOUSE:
        agree(read_tubes(scenes, HOUSE[kind]), native_tubes(content, kind))


def test_one_name_for_all_joins_what_it_can(tmp_path: Path, content: Content) -> None:
    for frame in content["db"]["v"]["frames"].values():
        for anno in frame.get("annos", {}).values():
            anno["tube_uid"] = "same"
    scenes = read_from(tmp_path, content)
    for kind in HOUSE:
        agree(read_tubes(scenes, HOUSE[kind]), native_tubes(content, kind))
    assert any("boxes of one frame share" in w["what"] for w in scenes.meta.notes["warnings"])


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@tried(120)
def test_tubes_are_exact_however_names_and_tubes_disagree(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> None:
    """Random tubes over random boxes: each is as the file has it, or refused because no track can hold it."""
    content = random_content(rng)
    scenes = read_content(tmp_path_factory.mktemp("random"), content)
    refused = {row["item"] for row in scenes.rejected.iter_rows(named=True)}
    for kind in HOUSE:
        wanted = [t for t in native_tubes(content, kind) if f"v, {kind}_tubes, {t[0]}" not in refused]
        agree(read_tubes(scenes, HOUSE[kind]), wanted)
    assert set(scenes.rejected["table"]) <= {"tubes"}
    assert doubled_agents(content) or not any("agent_tubes" in item for item in refused)


def random_content(rng: random.Random) -> Content:
    """Six frames with up to four boxes each, tubes that take any of them, names at random."""
    content = head()
    frames: dict[str, Any] = {}
    for frame in range(1, 7):
        annos = {
            f"b{frame}{n}": {"box": [0.1 * n, 0.1, 0.1 * n + 0.05, 0.1 + 0.01 * frame]}
            for n in range(rng.randrange(5))
        }
        for anno in annos.values():
            if rng.random() < 0.7:
                anno["tube_uid"] = rng.choice("xyz")
        frames[str(frame)] = {
            "annotated": 1,
            "width": 1280,
            "height": 960,
            "av_action_ids": [],
            "annos": annos,
        }
    entry: Content = {"split_ids": [], "numf": 6, "frames": frames, "av_action_tubes": {}}
    loose = rng.random() < 0.5
    for kind in HOUSE:
        tubes = entry[f"{kind}_tubes"] = {}
        for n in range(rng.randrange(4)):
            annos = {
                frame: rng.choice(list(held["annos"])) if loose else f"b{frame}{n}"
                for frame, held in frames.items()
                if rng.random() < 0.6 and (loose or f"b{frame}{n}" in held["annos"]) and held["annos"]
            }
            if annos:
                tubes[f"t{n}"] = {"label_id": make.EVERY[kind].index(make.USED[kind][n % 3]), "annos": annos}
    content["db"]["v"] = entry
    return content


def doubled_agents(content: Content) -> bool:
    """Whether agents' tubes alone join boxes of one frame."""
    groups = [set(tube["annos"].values()) for tube in content["db"]["v"]["agent_tubes"].values()]
    merged = True
    while merged:
        merged = False
        for a in range(len(groups)):
            for b in range(a):
                if groups[a] & groups[b]:
                    groups[b] |= groups.pop(a)
                    merged = True
                    break
            if merged:
                break
    return any(len({key[1] for key in group}) < len(group) for group in groups)


def test_agents_tubes_come_first(tmp_path: Path, content: Content) -> None:
    """A wrong tube of another kind costs itself, never an agent's tube, wherever the file has it."""
    entry = content["db"]["v"]
    agents = entry.pop("agent_tubes")
    car, walker = agents["544e13cc-001-01"]["annos"], agents["10284a58-002-01"]["annos"]
    entry["action_tubes"]["mixed"] = {"label_id": 0, "annos": {"3": car["3"], "4": walker["4"]}}
    entry["agent_tubes"] = agents
    scenes = read_from(tmp_path, content)
    assert scenes.rejected["item"].to_list() == ["v, action_tubes, mixed"]
