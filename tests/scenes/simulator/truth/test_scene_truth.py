"""The tables of a scene: tubes and spans, pedestrians, corner cases, crowds, and what others make of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "data"))

from small_street import BUS, FPS, FRAMES, PAVEMENT, VEHICLE, assumed, mover, own, situation, small_layout

from roadaware.demo_data.detector import simulate_detections
from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate as evaluate_tubes
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate
from roadaware.scenes.concatenation import concat
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.tables import Scenes, build_sample_predictions
from roadaware.simulator.actors import Mind, Pose
from roadaware.simulator.episode import Bond, Noise, Sentence
from roadaware.simulator.truth import build_scene_tables, count_labels


def tubes_of(scenes: Scenes, kind: str, word: str) -> list[list[list[int]]]:
    """The spans of the derived tubes with a label."""
    label = scenes.meta.vocabularies[kind].index(word)
    held = scenes.tube_labels.filter(kind=kind, label=label)
    return scenes.tubes.join(held, on="tube").sort("start_frame")["spans"].to_list()


def test_tubes_begin_and_end_where_labels_do_and_leave_out_frames_without_box() -> None:
    speed = np.where(np.arange(FRAMES) < 12, 0.0, 5.0)
    episode = situation(mover(0, "Car", (25, VEHICLE), 0, speed))
    seen = assumed(episode)
    scenes = build_scene_tables(episode, seen.rows((seen.frame < 15) | (seen.frame >= 18)))
    assert tubes_of(scenes, "action", "Stop") == [[[0, 12]]]
    assert tubes_of(scenes, "action", "MovAway") == [[[12, 15], [18, 24]]]
    assert tubes_of(scenes, "location", "VehLane") == [[[0, 15], [18, 24]]]
    assert tubes_of(scenes, "duplex", "Car-Stop") == [[[0, 12]]]
    assert tubes_of(scenes, "event", "Car-MovAway-VehLane") == [[[12, 15], [18, 24]]]
    assert tubes_of(scenes, "av_action", "AV-Mov") == [[[0, 24]]]


def test_the_own_vehicle_s_actions_are_labels_of_frames_and_tubes() -> None:
    layout = small_layout()
    ego = own(layout)
    ego = replace(ego, action=np.where(np.arange(FRAMES) % 12 < 8, 1, 0))
    episode = situation(mover(0, "Car", (25, VEHICLE)), ego=ego)
    scenes = build_scene_tables(episode, assumed(episode))
    assert tubes_of(scenes, "av_action", "AV-Mov") == [[[0, 8]], [[12, 20]]]
    assert tubes_of(scenes, "av_action", "AV-Stop") == [[[8, 12]], [[20, 24]]]
    assert scenes.frame_labels["label"].to_list() == ego.action.tolist()
    pose = scenes.frames["world_SE3_ego"].to_numpy().reshape(-1, 4, 4)
    assert np.allclose(pose[:, :3, 3], ego.position)
    sensor = scenes.sensors["ego_SE3_sensor"].to_list()[0]
    camera = scenes.frames["world_SE3_camera"].to_numpy().reshape(-1, 4, 4)
    assert np.allclose(pose @ np.reshape(sensor, (4, 4)), camera, atol=1e-4)


def crossers(name: str, frames: int = 150) -> Scenes:
    """One who crosses, one who does not, one who steps out where nobody sees it, one of unknown mind."""
    steps = np.arange(frames) >= 110
    minds = (
        Mind(0.9, True, 20, 80, True, 110, "adult", "CS"),
        Mind(0.2, False, 0, 140, False, None, "senior", "n/a"),
        Mind(0.8, True, 200, 300, True, 400, "child", "C"),
        None,
    )
    facts = ({"crossing": steps}, {"crossing": 0}, {"crossing": 0}, {"crossing": 0})
    people = [
        mover(n, "Ped", (40 + n, PAVEMENT), -90, 0.1, frames=frames, mind=mind, facts=told)
        for n, (mind, told) in enumerate(zip(minds, facts, strict=True))
    ]
    ego = own(small_layout(), x=-10.0, speed=1.0, frames=frames)
    episode = situation(*people, name=name, ego=ego, seconds=frames / FPS)
    return build_scene_tables(episode, assumed(episode))


@pytest.fixture(scope="module")
def asked() -> Scenes:
    return concat([crossers(f"crossing-{number:04d}") for number in (0, 1, 3)])


def test_pedestrians_have_the_attributes_of_pie(asked: Scenes) -> None:
    people = asked.only(["crossing-0000"]).tubes.filter(track_label="pedestrian").sort("name")
    columns = ("name", "crossing", "event_frame", "event_source", "exp_start_point", "critical_point", "age")
    assert people.select(columns).rows() == [
        ("ped-0000b", "crossing", 110, "annotated", 20, 80, "adult"),
        ("ped-0001b", "not-crossing", None, "none", 0, 140, "senior"),
        ("ped-0002b", "crossing", 147, "fallback", None, None, "child"),
        ("ped-0003", None, None, None, None, None, None),
    ]
    first = asked.boxes.filter(cross="crossing")["frame"].min()
    assert first == 110
    splits = [f"default/{name}" for name in ("train", "test", "val")]
    assert asked.videos["splits"].explode().to_list() == splits


@pytest.mark.parametrize(
    "name",
    ["pie-action@iv2024", "pie-intention@iv2024", "jaad-risk@iv2024", "jaad-behaviour-action@wacv2021"],
)
def test_published_protocols_cut_samples_that_the_metrics_judge(asked: Scenes, name: str) -> None:
    protocol = get_protocol(name, "default")
    sampled = sample(asked, protocol)
    assert set(sampled.samples["split"]) == {"train", "val", "test"}
    if name == "pie-action@iv2024":
        assert sampled.samples["label"].unique().to_list() == [0, 1]
        crossing = sampled.samples.filter(label=1)
        assert (crossing["event_frame"] == 110).all()
        assert (crossing["end_frame"] - 1 + crossing["tte_frames"] == 110).all()
    width = 1 if protocol.task == "action" else len(sampled.meta.vocabularies[protocol.task])
    scores = np.full((len(sampled.samples), width), 1 / width)
    result = evaluate(
        build_sample_predictions(sampled.samples, scores), sampled, PedestrianConfig.default(protocol.task)
    )
    assert result.summary.height > 0


def test_the_tube_evaluators_run_on_it(asked: Scenes) -> None:
    result = evaluate_tubes(
        simulate_detections(asked, seed=1), asked, DetectionConfig.default(), kinds=["agent", "action"]
    )
    assert result.summary.height > 0


def test_things_that_do_not_belong_on_roads_are_corner_cases() -> None:
    actors = (
        mover(0, "dog", (20, 0)),
        mover(1, "Car", (25, VEHICLE), 0, 4.0),
        mover(2, "Ped", (30, -PAVEMENT), with_object=3, pose=Pose.PUSH_OBJECT),
        mover(3, "stroller", (30.8, -PAVEMENT)),
    )
    episode = situation(*actors, preset="corner-cases")
    scenes = build_scene_tables(episode, assumed(episode))
    flagged = scenes.boxes.filter("corner_case")["tube"].unique().sort()
    assert scenes.tubes.filter(pl.col("tube").is_in(flagged.implode()))["name"].to_list() == [
        "dog-0000",
        "stroller-0003",
    ]
    counts = count_labels(scenes).filter(pl.col("boxes") > 0)
    told = dict(counts.filter(pl.col("kind").str.starts_with("corner")).select("label", "tubes").rows())
    assert told == {"dog": 1, "stroller": 1, "animal": 1, "pedestrian": 1}
    assert counts.filter(kind="agent").select("label", "boxes", "frames").rows() == [
        ("Ped", 24, 24),
        ("Car", 24, 24),
    ]
    road = situation(*actors)
    assert len(build_scene_tables(road, assumed(road)).tubes["instance"].drop_nulls()) == 2


def brawl() -> Scenes:
    waving = {"waving flag": np.arange(18) > 9}
    actors = (
        mover(0, "Ped", (20, 0), 0, 0.0, pose=Pose.SHOVE, first=2, frames=20),
        mover(1, "Ped", (21, 0.5), 180, 0.0, pose=Pose.FILM, frames=18, facts=waving),
        mover(2, "Ped", (22, 2.5), 0, 0.0),
        mover(3, "Ped", (-30, 0), 0, 0.0),
    )
    bonds = (
        Bond(0, "pushing", 1, 0, 24),
        Bond(1, "recording", 0, 20, 24),
        Bond(3, "watching", 0, 0, 24),
    )
    noises = (Noise("shouting", 0, 0.5, 1.0), Noise("honking", None, 0.0, 1.0), Noise("thunder", 1, 0.0, 0.2))
    sentences = (Sentence("a man pushes somebody", 0, 0, 30), Sentence("nobody sees him", 3, 0, 24))
    episode = situation(
        *actors, preset="chaos", name="chaos-0000", bonds=bonds, noises=noises, sentences=sentences,
        category="fight",
    )  # fmt: skip
    return build_scene_tables(episode, assumed(episode))


def test_relations_and_sentences_lie_inside_of_tracks() -> None:
    scenes = brawl()
    predicates = scenes.meta.vocabularies["predicate"]
    found = scenes.relations.select("subject", "predicate", "object", "start_frame", "end_frame").rows()
    assert [(s, predicates[p], o, a, b) for s, p, o, a, b in found] == [(0, "pushing", 1, 2, 18)]
    said = scenes.queries.select("text", "tube", "start_frame", "end_frame", "segment_end_frame").rows()
    assert said == [("a man pushes somebody", 0, 2, 22, FRAMES)]
    assert scenes.videos["category"].to_list() == ["fight"]


def test_people_in_a_crowd_do_what_their_pose_shows() -> None:
    scenes = brawl()
    owned = scenes.labels.filter(kind="action").join(scenes.boxes.select("box", "tube"), on="box")
    words = scenes.meta.vocabularies["action"]
    counts = owned.group_by("tube", "label").len().sort("tube", "label").rows()
    assert [(tube, words[label], n) for tube, label, n in counts] == [
        (0, "pushing", 20),
        (1, "recording", 18),
        (1, "waving flag", 8),
    ]


def test_sounds_have_the_boxes_of_who_makes_them() -> None:
    scenes = brawl()
    words = scenes.meta.vocabularies["sound"]
    heard = scenes.sounds.select("label", "frame", "t_s").rows()
    assert [(words[label], frame, t) for label, frame, t in heard] == [
        ("shouting", 6, 0.5),
        ("honking", None, 0.0),
        ("thunder", 0, 0.0),
    ]
    boxes = scenes.boxes.drop_nulls("sound").group_by("sound", "tube").agg(pl.col("frame").sort())
    assert sorted(boxes.rows()) == [(0, 0, [6, 7, 8, 9, 10, 11]), (2, 1, [0, 1, 2])]


def test_a_bond_that_the_vocabulary_lacks_is_refused() -> None:
    episode = situation(
        mover(0, "Ped", (20, 0)),
        mover(1, "Ped", (21, 0)),
        preset="chaos",
        bonds=(Bond(0, "juggling", 1, 0, 9),),
    )
    with pytest.raises(InputError, match="juggling"):
        build_scene_tables(episode, assumed(episode))


def test_scenes_of_different_presets_join_by_name() -> None:
    crowd = brawl()
    road = situation(mover(0, "Bus", (25, BUS), 0, 4.0), name="road-0002")
    whole = concat([crowd, build_scene_tables(road, assumed(road))])
    counts = count_labels(whole).filter(pl.col("boxes") > 0)
    assert {"pushing", "MovAway"} <= set(counts.filter(kind="action")["label"])
