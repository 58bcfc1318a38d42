"""Networks of crowds learn from a tiny set: a killed run goes on to the same bits, and what they predict can be judged."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch.nn import functional

from roadaware.cli import main
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.video import VideoWriter
from roadaware.models.crowd.config import TASKS, Vocabulary
from roadaware.models.crowd.grounding import Matched
from roadaware.models.crowd.network import open_crowd, save_crowd
from roadaware.models.crowd.sound import cover_cells
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.tasks.crowd import (
    Cutting,
    RelationRule,
    build_crowd_set,
    clip_around,
    cut_samples,
    decode_relations,
    has_others,
    label_detections,
    list_used,
)
from roadaware.tasks.crowd_answers import Answerer, Footing, choose_span, fit_size, predict_crowd
from roadaware.tasks.videos import find_videos
from roadaware.training.checkpoints import LAST, read_log
from roadaware.training.crowd import run
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.crowd.run import (
    PREDICTIONS,
    CrowdLearner,
    build_vocabulary,
    judge_predictions,
    learn_crops,
    learn_motion,
    learn_sources,
)
from roadaware.training.crowd.run import train_crowd as train
from roadaware.training.crowd.samples import CrowdClips, jitter
from roadaware.training.recipe_files import RECIPES, build_dataclass, find_recipe, read_recipe

WIDTH, HEIGHT, FRAMES, FPS, RATE = 96, 64, 20, 10, 16_000
WORDS = {
    "agent": ("Ped", "Car"),
    "action": ("walking", "kneeling", "waving hands", "never seen"),
    "predicate": ("following after", "watching"),
    "sound": ("shouting", "gunshot/firing"),
}


def corners(person: int, frame: int) -> tuple[float, float, float, float]:
    """One walks to the right, one kneels, and a car stands."""
    x, y, w, h = ((4 + 2 * frame, 12, 16, 40), (60, 30, 18, 28), (70, 4, 24, 14))[person]
    return x, y, x + w, y + h


def made_scenes(videos: int = 2) -> Scenes:
    """Two people and a car: actions, a relation, two sentences and two sounds in each video, one of them off screen."""
    names = [f"film-{n}" for n in range(videos)]
    boxes, labels, relations, queries, sounds = [], [], [], [], []
    for v, name in enumerate(names):
        for frame in range(FRAMES):
            for person in range(3):
                box = len(boxes)
                sound = 2 * v if person == 0 and 4 <= frame < 12 else None
                boxes.append((box, name, frame, 3 * v + person, *corners(person, frame), sound))
                labels.append((box, "agent", int(person == 2)))
                if person < 2:
                    labels.append((box, "action", person))
                if person == 0 and frame >= 10:
                    labels.append((box, "action", 2))
        relations.append((v, name, 3 * v, 3 * v + 1, 0, 4, 16))
        for told in ("A man walks to the right.", "A woman kneels."):
            number = len(queries)
            who = 3 * v + number % 2
            queries.append((number, name, told, who, 5 if number % 2 == 0 else 0, 15))
        sounds += [
            (2 * v, name, f"{name}-0", 4, 0.4, 1.2, 0),
            (2 * v + 1, name, f"{name}-1", None, 0.2, 0.6, 1),
        ]
    tubes = [(3 * v + p, name) for v, name in enumerate(names) for p in range(3)]

    def table(rows: list[Any], *columns: str) -> pl.DataFrame:
        return pl.DataFrame(rows, schema=list(columns), orient="row", infer_schema_length=None)

    sides = ("x1_px", "y1_px", "x2_px", "y2_px")
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": names, "width_px": [WIDTH] * videos, "height_px": [HEIGHT] * videos,
                "fps": [float(FPS)] * videos, "n_frames": [FRAMES] * videos,
                "path": [f"{name}.mp4" for name in names],
            }
        ),
        boxes=table(boxes, "box", "video", "frame", "tube", *sides, "sound").with_columns(
            pl.col(side).cast(pl.Float32) for side in sides
        ),
        labels=table(labels, "box", "kind", "label"),
        tubes=table(tubes, "tube", "video"),
        relations=table(
            relations, "relation", "video", "subject", "object", "predicate", "start_frame", "end_frame"
        ),
        queries=table(queries, "query", "video", "text", "tube", "start_frame", "end_frame"),
        sounds=table(sounds, "sound", "video", "name", "frame", "t_s", "end_s", "label").with_columns(
            pl.col("t_s", "end_s").cast(pl.Float32)
        ),
        meta=Meta(dataset="made", vocabularies=WORDS),
    )  # fmt: skip


def write_films(folder: Path, scenes: Scenes, *, sound: bool = True) -> None:
    """Films of such scenes: boxes of one colour each, and noise on the left while somebody shouts."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name in scenes.videos["video"].to_list():
        path = folder / f"{name}.mp4"
        with VideoWriter(path, WIDTH, HEIGHT, FPS, sound_rate=RATE if sound else None) as film:
            for frame in range(FRAMES):
                picture = rng.integers(0, 50, (HEIGHT, WIDTH, 3), dtype=np.uint8)
                for person, colour in enumerate(((220, 40, 40), (40, 220, 40), (40, 40, 220))):
                    x1, y1, x2, y2 = (int(c) for c in corners(person, frame))
                    picture[y1:y2, x1:x2] = colour
                film.write(picture)
                if sound:
                    block = rng.normal(0, 0.01, (RATE // FPS, 2))
                    block[:, 0] += rng.normal(0, 0.3, RATE // FPS) * (4 <= frame < 12)
                    film.write_sound(block.clip(-1, 1).astype(np.float32))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd")
    scenes = made_scenes()
    save(scenes, folder / "tables")
    write_films(folder / "films", scenes)
    return folder


def a_recipe(folder: Path, **changes: Any) -> CrowdRecipe:
    """A tiny network that learns four tasks for six steps."""
    given: dict[str, Any] = {
        "model": {"base": "tiny", "trunk": "random", "fields": {"map_size": 8, "cycles": 1}},
        "data": {
            "reader": "saved", "roots": [str(folder / "tables")], "media": str(folder / "films"),
            "validation_roots": [str(folder / "tables")],
        },
        "clips": {"fps": 5, "size_px": [64, 96], "frames": 4, "batch": 2, "maps": str(folder / "maps"),
                  "motion_steps": 1, "walks": 2},
        "schedule": {"steps": 6, "optimizer": "adamw", "lr": 1e-3, "decay": "cosine", "ema": 0.9, "clip_norm": 5},
        "machine": {"accelerator": "cpu", "threads": 1, "tensorboard": False},
    }  # fmt: skip
    for part, fields in changes.items():
        given[part] = {**given[part], **fields} if isinstance(given.get(part), dict) else fields
    return build_dataclass(CrowdRecipe, given)


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train(a_recipe(made), out)
    return out


class Killed(BaseException):
    """What ends a run at once."""


def killed_at(step: int) -> Callable[[int, int, str], None]:
    def progress(done: int, total: int, unit: str) -> None:
        if done == step and unit.startswith("steps"):
            raise Killed

    return progress


@pytest.mark.slow
def test_a_run_logs_tasks_in_turn_and_the_paths_that_they_take(whole: Path) -> None:
    lines = read_log(whole)
    steps = [line for line in lines if "loss" in line]
    assert [next(task for task in TASKS if task in line) for line in steps] == [*TASKS, *TASKS[:2]]
    assert all(math.isfinite(line["loss"]) for line in steps)
    for line in steps:
        assert set(line["paths"]) == set(line["entropy"]) == set(line["switches"]) == set(TASKS)
        assert all(0 <= value <= math.log(2) + 1e-6 for value in line["entropy"].values())
    judged = lines[-1]["validation"]
    assert {"actions/map@0.5", "relations/map", "grounding/m_viou", "sound/ciou"} <= set(judged)
    assert "following after" not in "".join(judged)  # of everything, not of classes


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_losses_and_weights(whole: Path, made: Path, tmp_path: Path) -> None:
    often = a_recipe(made, machine={"checkpoint_minutes": 0})
    with pytest.raises(Killed):
        train(often, tmp_path / "run", progress=killed_at(4))
    train(often, tmp_path / "run", resume=True)
    assert read_log(tmp_path / "run") == read_log(whole)
    first, second = (torch.load(out / LAST, weights_only=True) for out in (whole, tmp_path / "run"))
    for part in ("network", "average"):
        assert all(torch.equal(value, second[part][name]) for name, value in first[part].items())
    models = [open_crowd(out / "model.safetensors")[0].state_dict() for out in (whole, tmp_path / "run")]
    assert all(torch.equal(value, models[1][name]) for name, value in models[0].items())


def test_predictions_are_judged_by_the_command(
    whole: Path, made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for task in TASKS:
        given = ["--truth", str(made / "tables"), "--predictions", str(whole / PREDICTIONS / task), "--json"]
        assert main(["evaluate", task, *given]) == 0
        assert json.loads(capsys.readouterr().out)
    boxes = open_predictions(whole / PREDICTIONS / "actions").boxes
    assert len(boxes) == 2 * 2 * FRAMES  # every box of a person, and no car
    found = open_predictions(whole / PREDICTIONS / "grounding")
    assert found.queries["query"].to_list() == [0, 1, 2, 3]
    assert (found.queries["end_frame"] > found.queries["start_frame"]).all()


def test_weights_are_one_file_with_its_facts_that_knows_its_vocabulary(whole: Path, tmp_path: Path) -> None:
    network, facts = open_crowd(whole / "model.safetensors")
    assert network.vocabulary.actions == ("walking", "kneeling", "waving hands")
    assert facts["notes"]["fps"] == 5
    assert "3 actions, 1 predicates, 2 sounds" in (whole / "model.md").read_text()
    other = replace(network.vocabulary, actions=("walking", "flying"))
    with pytest.raises(InputError, match="another vocabulary"):
        open_crowd(whole / "model.safetensors", other)
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes((whole / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(DamagedError):
        open_crowd(torn)


@pytest.mark.slow
def test_answers_do_not_depend_on_kept_maps(whole: Path, made: Path, tmp_path: Path) -> None:
    scenes = made_scenes()
    network, _ = open_crowd(whole / "model.safetensors")
    films, _ = find_videos(scenes, made / "films")
    clips = a_recipe(made).clips
    plain, kept = predict_crowd(network, scenes, films, clips), None
    for _ in range(2):  # the second time from the folder
        kept = predict_crowd(network, scenes, films, clips, folder=tmp_path / "maps")
    assert kept is not None
    for task in TASKS:
        assert plain[task] == kept[task]
    assert set(judge_predictions(plain, scenes)) == set(judge_predictions(kept, scenes))
    # A file that was cut off is made anew.
    path = next((tmp_path / "maps").glob("*.map.npy"))
    path.write_bytes(path.read_bytes()[:200])
    assert predict_crowd(network, scenes, films, clips, folder=tmp_path / "maps")["sound"] == plain["sound"]


def test_questions_are_cut_with_their_answers(made: Path) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = build_vocabulary(list_used(scenes), a_recipe(made).build_config())
    of = build_crowd_set(scenes, films, vocabulary, 5.0)
    video, rng = of.videos[0], np.random.default_rng(0)
    assert video.frames.tolist() == list(range(0, FRAMES, 2))
    doing = cut_samples(of, "actions", (0, 6), Cutting(), rng)[0]
    assert doing.boxes.tolist() == [list(corners(0, 12)), list(corners(1, 12))]
    assert doing.targets.tolist() == [[True, False, True], [False, True, False]]
    assert doing.slots[doing.frame] == 6
    pair = cut_samples(of, "relations", (0, 3), Cutting(frames=4), rng)[0]
    assert pair.targets[0, 1, 0]
    assert pair.targets.sum() == 1
    assert pair.boxes.shape == (2, 4, 4)
    assert pair.boxes[0, pair.frame].tolist() == list(corners(0, 6))
    told = cut_samples(of, "grounding", (0, 0), Cutting(crop=0.0), rng)[0]
    assert told.span == (3, 7)  # frames 6 to 14 of the span 5 to 15 are looked at
    assert np.isnan(told.boxes[:3]).all()
    assert told.boxes[3].tolist() == list(corners(0, 6))
    shout = cut_samples(of, "sound", (0, 0), Cutting(wrong=0.0), rng)[0]
    assert shout.heard
    assert shout.boxes.tolist() == [list(corners(0, int(video.frames[shout.slots[shout.frame]])))]
    assert shout.targets.tolist() == [[True], [False]]  # the two people; the car is none
    assert shout.tracks is not None
    assert shout.tracks[:, 20].tolist() == [
        list(corners(p, int(video.frames[shout.slots[shout.frame]]))) for p in (0, 1)
    ]
    hidden = cut_samples(of, "sound", (0, 1), Cutting(wrong=0.0), rng)[0]
    assert not hidden.heard
    assert hidden.asked == 1
    wrong = cut_samples(of, "sound", (0, 0), Cutting(wrong=0.999), np.random.default_rng(3))[0]
    # Both sounds are within 1.5 s of any moment of so short a film, so no class is wrong.
    assert wrong.asked == 0


def test_several_questions_are_asked_about_a_clip(made: Path) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = build_vocabulary(list_used(scenes), a_recipe(made).build_config())
    of = build_crowd_set(scenes, films, vocabulary, 5.0)
    video, rng = of.videos[0], np.random.default_rng(0)
    several = Cutting(frames=4, questions=3, crop=0.0, wrong=0.0)
    for task in ("actions", "relations"):
        asked = cut_samples(of, task, (0, 6), several, rng)
        moments = [int(each.slots[each.frame]) for each in asked]
        assert moments[0] == 6
        assert len(set(moments)) == 3
        assert set(moments) <= set(asked[0].slots.tolist())
        assert all((each.slots == asked[0].slots).all() for each in asked)
        alone = cut_samples(of, task, (0, moments[1]), Cutting(frames=4), rng)[0]
        assert (asked[1].boxes.shape, asked[1].targets.tolist()) == (
            alone.boxes.shape,
            alone.targets.tolist(),
        )
    sounds = cut_samples(of, "sound", (0, 0), several, rng)
    assert [each.asked for each in sounds] == [0, 1]
    assert len({each.at_s for each in sounds}) == 1
    assert [each.heard for each in sounds] == [True, False]
    # A sound that is far away in time is not heard at the moment of the other one.
    far = replace(
        video,
        sounds=[video.sounds[0], {**video.sounds[0], "sound": 7, "class": 1, "start_s": 60.0, "end_s": 61.0}],
    )
    other = replace(of, videos=[far, *of.videos[1:]])
    assert not cut_samples(other, "sound", (0, 0), several, rng)[1].heard


def test_sentences_that_last_to_the_end_are_asked_beside_others(made: Path) -> None:
    """Of ten frames four are looked at, the last of them the eighth: what lasts until the tenth happens in the clip, too."""
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = build_vocabulary(list_used(scenes), a_recipe(made).build_config())
    of = build_crowd_set(scenes, films, vocabulary, 5.0)
    of.videos[0].queries[1]["end_frame"] = FRAMES
    cutting = Cutting(most_frames=4, crop=0.0, questions=4)
    asked = cut_samples(of, "grounding", (0, 0), cutting, np.random.default_rng(0))
    assert asked[0].slots.tolist() == [0, 2, 5, 7]
    assert [each.sentence for each in asked] == [query["text"] for query in of.videos[0].queries]
    assert asked[1].span == (0, 3)


def test_parts_of_a_clip_hold_the_span_and_are_short(made: Path) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = build_vocabulary(list_used(scenes), a_recipe(made).build_config())
    of = build_crowd_set(scenes, films, vocabulary, 5.0)
    lengths = set()
    for seed in range(40):
        cutting = Cutting(crop=0.999, crop_frames=6)
        asked = cut_samples(of, "grounding", (0, 0), cutting, np.random.default_rng(seed))[0]
        assert asked.slots[asked.span[0]] == 3
        assert asked.slots[asked.span[1]] == 7
        lengths.add(len(asked.slots))
    assert lengths == {5, 6}
    shorter = cut_samples(
        of, "grounding", (0, 0), Cutting(crop=0.999, crop_frames=2), np.random.default_rng(0)
    )[0]
    assert len(shorter.slots) == 5  # no part is shorter than the span


def test_sentences_are_asked_beside_the_people_of_their_clip(made: Path) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = build_vocabulary(list_used(scenes), a_recipe(made).build_config())
    of = build_crowd_set(scenes, films, vocabulary, 5.0)
    rng = np.random.default_rng(0)
    asked = cut_samples(of, "grounding", (0, 0), Cutting(crop=0.0), rng)[0]
    assert asked.people is not None
    assert asked.people.shape == (2, len(asked.slots), 4)
    inside = slice(asked.span[0], asked.span[1] + 1)
    assert (asked.people[asked.who][inside] == asked.boxes[inside]).all()
    strange = cut_samples(of, "grounding", (0, 0), Cutting(crop=0.0, strange=0.999), np.random.default_rng(1))
    own = {query["text"] for query in of.videos[0].queries}
    for each in strange[1:]:
        assert each.sentence not in own
        assert (each.who, each.span) == (-1, (-1, -1))
        assert np.isnan(each.boxes).all()
        assert each.people is strange[0].people
    # One place for a person: who is spoken of takes it.
    alone = cut_samples(of, "grounding", (0, 0), Cutting(crop=0.0, most_people=1), rng)[0]
    assert (alone.people[alone.who][inside] == asked.boxes[inside]).all()


def test_sentences_about_the_only_person_are_learnt_in_cells(made: Path) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = build_vocabulary(list_used(scenes), a_recipe(made).build_config())
    of = build_crowd_set(scenes, films, vocabulary, 5.0)
    assert has_others(of)
    lonely = [
        replace(video, person=video.person & (video.tube == video.queries[0]["tube"])) for video in of.videos
    ]
    assert not has_others(replace(of, videos=lonely))


def test_tasks_come_in_proportion(made: Path) -> None:
    recipe = a_recipe(made, tasks={"actions": 2, "sound": 1})
    clips = CrowdClips.__new__(CrowdClips)
    clips.recipe, clips.tasks, clips._turns, clips._counts = recipe, recipe.ordered_tasks, [], [0, 0]
    drawn = [clips.turn(number) for number in range(30)]
    assert sum(task == "sound" for task, _ in drawn) == 10
    assert [before for task, before in drawn if task == "sound"] == list(range(10))
    assert clips.turn(4) == drawn[4]


def test_series_become_relations_that_last(made: Path) -> None:
    scenes = made_scenes(1)
    films, _ = find_videos(scenes, made / "films")
    video = build_crowd_set(
        scenes, films, Vocabulary(predicates=("following after", "watching")), 5.0
    ).videos[0]
    series = np.zeros((10, 2), dtype=np.float32)
    series[2:5, 0] = 0.8
    series[7, 0] = 0.5
    series[:, 1] = 0.0005
    found = decode_relations(video, {(0, 1): series}, RelationRule())
    assert [each[:5] for each in found] == [(0, 1, 0, 4, 10), (0, 1, 0, 14, 16)]
    assert [each[5] for each in found] == pytest.approx([0.8, 0.5])
    assert decode_relations(video, {(0, 1): series}, RelationRule(most=1)) == found[:1]


def test_cells_and_boxes(made: Path) -> None:
    half = cover_cells(np.array([[0, 0, 24, 64]], dtype=np.float32), (64, 96), (2, 2))
    assert half.tolist() == [[0.5, 0.0], [0.5, 0.0]]
    part = cover_cells(np.array([[32, 16, 64, 32], [0, 0, 8, 8]], dtype=np.float32), (64, 96), (2, 3))
    assert part.tolist() == [[0.0625, 0.5, 0.0], [0.0, 0.0, 0.0]]
    assert cover_cells(np.zeros((0, 4), dtype=np.float32), (64, 96), (4, 4)).sum() == 0
    boxes = np.array([[[0, 0, 10, 20], [10, 0, 20, 20]]], dtype=np.float32)
    moved = jitter(boxes, 0.1, np.random.default_rng(0))
    assert np.allclose(moved - boxes, (moved - boxes)[:, :1])  # alike in all frames
    assert (np.abs(moved - boxes) <= [1, 2, 1, 2]).all()
    assert (jitter(boxes, 0.0, np.random.default_rng(0)) == boxes).all()
    assert fit_size(720, 1280, (360, 640)) == (360, 640)
    assert fit_size(90, 160, (360, 640)) == (90, 160)
    scenes = made_scenes(1)
    films, _ = find_videos(scenes, made / "films")
    video = build_crowd_set(scenes, films, Vocabulary(), 5.0).videos[0]
    assert [clip_around(video, slot, 4)[0].tolist() for slot in (0, 5, 9)] == [
        [0, 1, 2, 3],
        [3, 4, 5, 6],
        [6, 7, 8, 9],
    ]
    assert clip_around(video, 9, 20)[0].tolist() == [*range(10), *[9] * 10]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tasks": {"dancing": 1}}, "tasks are some of actions, relations, grounding, sound"),
        ({"tasks": {"actions": 0}}, "of one at least above 0"),
        ({"tasks": {"actions": -1, "sound": 1}}, "a number of 0 or more"),
        ({"clips": {"size_px": [8, 8]}}, "clips.size_px"),
        ({"machine": {"devices": 2}}, "one process"),
        ({"model": {"weights": "nowhere.safetensors"}}, "there is no file"),
        ({"model": {"fields": {"tasks": ["sound"]}}}, "those of the recipe"),
        ({"model": {"fields": {"widht": 3}}}, "widht"),
    ],
)
def test_impossible_recipes_are_refused(
    made: Path, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        train(a_recipe(made, **changes), tmp_path / "run")


def test_processes_of_torchrun_are_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=r"torchrun started 2 processes, and .*: one process learns it"):
        train(a_recipe(made), tmp_path / "run")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(UsageError, match="3 processes, 2 of them here"):
        train(a_recipe(made), tmp_path / "run")


def test_a_task_of_which_everything_is_frozen_is_refused(made: Path, whole: Path, tmp_path: Path) -> None:
    kept = {"weights": str(whole / "model.safetensors"), "freeze": ["trunk.", "heads.sound."]}
    with pytest.raises(UsageError, match="nothing of the task sound can learn"):
        train(a_recipe(made, model=kept), tmp_path / "run")


def test_data_without_what_a_task_needs_are_refused(made: Path, tmp_path: Path) -> None:
    scenes = made_scenes()
    save(scenes.with_tables(queries=scenes.queries.clear()), tmp_path / "tables")
    data = {"roots": [str(tmp_path / "tables")], "validation_roots": []}
    with pytest.raises(UsageError, match=r"have no sentences.*grounding"):
        train(a_recipe(made, data=data), tmp_path / "run")
    with pytest.raises(InputError, match="none of 2 videos can be opened"):
        train(a_recipe(made, data={"media": str(tmp_path)}), tmp_path / "run")


def test_boxes_in_shares_of_the_image_and_films_at_another_rate_are_named(
    made: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    vocabulary = Vocabulary(WORDS["action"])
    shares = scenes.boxes.with_columns(pl.col("x1_px", "x2_px") / WIDTH, pl.col("y1_px", "y2_px") / HEIGHT)
    with pytest.raises(InputError, match="look like shares of it, where pixels are due"):
        build_crowd_set(scenes.with_tables(boxes=shares), films, vocabulary, 5.0)
    # As AVA has them, whose images count as 1 x 1.
    unit = scenes.videos.with_columns(width_px=pl.lit(1), height_px=pl.lit(1))
    build_crowd_set(scenes.with_tables(boxes=shares, videos=unit), films, vocabulary, 5.0)
    assert "far more frames" not in caplog.text
    few = scenes.videos.drop("fps").with_columns(n_frames=pl.lit(FRAMES // 2))
    boxes = scenes.boxes.filter(pl.col("frame") < FRAMES // 2)
    build_crowd_set(
        Scenes(videos=few, boxes=boxes, tubes=scenes.tubes, sounds=scenes.sounds), films, vocabulary, 5.0
    )
    assert "2 videos have far more frames than the annotations say" in caplog.text


def test_sentences_without_a_word_are_left_out(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    scenes = made_scenes()
    odd = scenes.with_tables(
        queries=scenes.queries.with_columns(text=pl.Series(["?!", "A man.", " ", "\u0301"]))
    )
    assert list_used(odd)["sentences"] == ("A man.",)
    films, _ = find_videos(odd, made / "films")
    found = build_crowd_set(odd, films, Vocabulary(WORDS["action"]), 5.0)
    assert [len(video.queries) for video in found.videos] == [1, 0]
    assert "3 sentences have no word and are not asked" in caplog.text


def test_films_without_sound_teach_no_sounds(made: Path, tmp_path: Path) -> None:
    write_films(tmp_path / "films", made_scenes(), sound=False)
    recipe = a_recipe(made, data={"media": str(tmp_path / "films")}, tasks={"sound": 1}, clips={"maps": ""})
    with pytest.raises(UsageError, match="nothing of the task sound can be learnt"):
        train(recipe, tmp_path / "run")


def test_recipes_come_along_by_name() -> None:
    for path in sorted((RECIPES / "crowd").glob("*.yaml")):
        recipe = read_recipe(path)
        assert find_recipe(Path(path.stem)).name == path.name
        if path.stem not in ("people", "refine"):  # of a detector of people in crowds
            assert isinstance(recipe, CrowdRecipe)
            recipe.build_config()
    with pytest.raises(UsageError, match="did you mean 'crop'"):
        read_recipe(RECIPES / "crowd" / "intellicare.yaml", ["clips.crp=0.5"])


@pytest.mark.slow
def test_a_run_that_grows_no_better_ends_and_keeps_its_best(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "mean_of_main", lambda metrics: 0.5)
    recipe = a_recipe(made, schedule={"steps": 40}, validation={"every_steps": 2, "patience": 2})
    came = train(recipe, tmp_path / "run")
    assert came.step == 6  # judged behind steps 2, 4 and 6, which all say the same
    assert open_crowd(tmp_path / "run" / "model.safetensors")[1]["notes"]["step"] == 2
    again = train(recipe, tmp_path / "run", resume=True)
    assert again.step == 6


@pytest.mark.slow
def test_the_whole_trunk_learns_and_the_others_go_on_with_it(made: Path, tmp_path: Path) -> None:
    first = a_recipe(
        made,
        tasks={"actions": 1},
        model={"train_trunk": True, "fields": {"map_size": 8, "cycles": 1, "blocks": 0}},
    )
    train(first, tmp_path / "trunk")
    weights = tmp_path / "trunk" / "model.safetensors"
    trunk = open_crowd(weights)[0].trunk.state_dict()
    train(a_recipe(made, model={"weights": str(weights)}), tmp_path / "run")
    found = open_crowd(tmp_path / "run" / "model.safetensors")[0]
    kept = [name for name in trunk if not name.startswith("stage4")]
    state = found.trunk.state_dict()
    assert kept
    assert all(torch.equal(trunk[name], state[name]) for name in kept)


@pytest.mark.slow
def test_simulated_crowds_teach_all_tasks(tmp_path: Path) -> None:
    made = [
        "--preset",
        "chaos@1",
        "--scenes",
        "4",
        "--seconds",
        "5",
        "--size",
        "160x90",
        "--fps",
        "10",
        "--no-masks",
    ]
    assert main(["simulate", *made, "--output", str(tmp_path / "crowds")]) == 0
    crowds = [str(tmp_path / "crowds")]
    data = {"reader": "simulator", "roots": crowds, "media": "", "validation_roots": crowds}
    clips = {"size_px": [96, 160], "maps": ""}
    recipe = a_recipe(tmp_path, data=data, clips=clips, schedule={"steps": 8}, sound_loss="sspl")
    train(recipe, tmp_path / "run")
    for task in TASKS:
        given = [
            "--truth",
            str(tmp_path / "crowds"),
            "--predictions",
            str(tmp_path / "run" / PREDICTIONS / task),
        ]
        assert main(["evaluate", task, *given]) == 0


def test_tracks_around_a_slot_hold_the_box_that_is_asked_about(made: Path) -> None:
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(
        scenes, films, build_vocabulary(list_used(scenes), a_recipe(made).build_config()), 5.0
    )
    video = of.videos[0]
    rows = video.people(2)
    moved = video.corners[rows] + 1
    found = video.track_around(np.array([*video.tube[rows][:1], -1]), moved[:2], 2, 7)
    assert found.shape == (2, 7, 4)
    # Slots -1 to 5: before the first slot its box stands, and in the middle the box that is given.
    tube = int(video.tube[rows[0]])
    wanted = video.track(tube, np.array([0, 0, 1, 2, 3, 4, 5]))
    wanted[3] = moved[0]
    assert np.array_equal(found[0], wanted)
    assert np.array_equal(found[1], np.repeat(moved[1:2], 7, axis=0))


@pytest.mark.parametrize(
    ("looked", "edges"), [([0], [0, 1]), ([0, 3], [0, 2, 7]), ([0, 2, 7, 9], [0, 1.5, 5, 8.5, 10])]
)
def test_spans_overlap_most_by_the_definition(looked: list[int], edges: list[float]) -> None:
    rng = np.random.default_rng(0)
    spans = [(a, b) for a in range(len(looked)) for b in range(a, len(looked))]
    for _ in range(20):
        chances = np.zeros((len(looked), len(looked)), dtype=np.float32)
        chances[tuple(np.array(spans).T)] = rng.dirichlet(np.full(len(spans), 0.3))

        def overlap(asked: tuple[int, int], chances: np.ndarray = chances) -> float:
            low, high, found = edges[asked[0]], edges[asked[1] + 1], 0.0
            for a, b in spans:
                shared = max(0.0, min(high, edges[b + 1]) - max(low, edges[a]))
                found += chances[a, b] * shared / (high - low + edges[b + 1] - edges[a] - shared)
            return found

        first, last = max(spans, key=overlap)
        start, end = choose_span(chances, np.array(looked), round(edges[-1]))
        assert (start, end) == (int(edges[first]), int(edges[last + 1]))


def test_of_very_many_spans_the_likeliest_are_compared() -> None:
    many = np.triu(np.random.default_rng(0).random((90, 90)).astype(np.float32) * 1e-6)
    many[20, 40] = 1.0
    assert choose_span(many, np.arange(90), 90) == (20, 41)


def test_spans_begin_between_frames_that_are_looked_at(made: Path, whole: Path) -> None:
    """Of ten frames four are looked at; what is expected of the others lies between, and behind the last is as there."""
    network, _ = open_crowd(whole / "model.safetensors")
    clips = replace(a_recipe(made).clips, most_frames=4)
    scenes = made_scenes(1)
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(scenes, films, network.vocabulary, clips.fps)
    answerer = Answerer(network, Footing(of, None, clips.size_px), clips)
    looked, inside = [0, 2, 5, 7], torch.tensor([0.1, 0.2, 0.9, 0.8])
    lasting = torch.tensor([[3.0] + [0.0] * 17])

    class Told(torch.nn.Module):
        """Says that the second person does it, with the chances above."""

        def forward(self, colours: torch.Tensor, ids: torch.Tensor, *others: Any) -> Matched:
            assert colours.shape[2] == len(looked)
            chances = inside.logit().expand(len(ids), 2, 4)
            who = torch.tensor([[-50.0, 50.0]]).expand(len(ids), 2)
            return Matched(who, chances, lasting.expand(len(ids), -1), torch.full((len(ids),), 2.0))

    network.heads["grounding"] = Told()
    first = answerer.ask(0).sentences[0]
    assert first.slots.tolist() == list(range(10))
    assert first.boxes.tolist() == [list(corners(1, 2 * slot)) for slot in range(10)]
    # Nearly sure from the third of the frames that are looked at on: from the middle between it and the second to the end.
    assert first.span == (4, 10)
    assert first.score == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-5)


def found_people(scenes: Scenes, *, moved: float = 2.0) -> Predictions:
    """What a detector finds: every true person 2 pixels to the right, one tube each, and a ghost."""
    people = scenes.boxes.filter(pl.col("tube") % 3 < 2).with_columns(pl.col("x1_px", "x2_px") + moved)
    ghosts = people.filter(pl.col("tube") % 3 == 0).with_columns(
        pl.col("tube") + 2, pl.col("y1_px") - 12, pl.col("y2_px") - 40, pl.col("box") + 10_000
    )
    boxes = pl.concat([people, ghosts]).drop("sound").with_columns(score=pl.lit(0.9, dtype=pl.Float32))
    tubes = boxes.select("tube", "video").unique(maintain_order=True)
    return Predictions(videos=scenes.videos, boxes=boxes, tubes=tubes, meta=Meta("a detector"))


def test_what_a_detector_finds_does_what_the_true_person_does() -> None:
    scenes = made_scenes()
    found = label_detections(found_people(scenes), scenes)
    assert len(found.boxes) == 3 * 2 * FRAMES
    assert len(found.tubes) == 6
    words = found.meta.vocabularies["action"]
    does = found.boxes.join(found.labels, on="box", how="left").sort("video", "frame", "x1_px", "label")
    late = does.filter(pl.col("video") == "film-1", pl.col("frame") == 12)
    walking = late.filter(pl.col("x1_px") == corners(0, 12)[0] + 2, pl.col("y1_px") == 12)
    assert [words[label] for label in walking["label"]] == ["walking", "waving hands"]
    # The ghost overlaps nobody by half, and is somebody who does nothing.
    assert late.filter(pl.col("y1_px") == 0)["label"].to_list() == [None]
    # A box that lies on two people is one of them alone, the nearer.
    twice = found_people(scenes, moved=0.0)
    again = twice.boxes.filter(pl.col("tube") % 3 == 0).with_columns(
        pl.col("tube") + 20, pl.col("box") + 20_000
    )
    again = again.with_columns(pl.col("x1_px") + 1)
    more = twice.with_tables(
        boxes=pl.concat([twice.boxes, again]),
        tubes=pl.concat([twice.tubes, again.select("tube", "video").unique(maintain_order=True)]),
    )
    met = label_detections(more, scenes)
    assert len(met.labels) == len(found.labels)
    doing = met.boxes.join(met.labels, on="box")
    walks = doing.filter(pl.col("video") == "film-0", pl.col("frame") == 0)["x1_px"]
    assert corners(0, 0)[0] + 1 not in walks.to_list()
    empty = twice.with_tables(boxes=twice.boxes.head(0))
    with pytest.raises(InputError, match="person"):
        label_detections(empty, scenes)
    tables = ("videos", "boxes", "tubes")
    renamed = {n: getattr(twice, n).with_columns(pl.col("video").cast(pl.String) + "-other") for n in tables}
    with pytest.raises(InputError, match="overlaps a true person"):
        label_detections(found_people(scenes, moved=500.0), scenes)
    with pytest.raises(InputError, match="no people in these videos"):
        label_detections(twice.with_tables(**renamed), scenes)


def test_layers_take_scaled_inputs_as_they_took_the_others() -> None:
    layer, x = torch.nn.Linear(5, 3), 4 * torch.randn(7, 5) + 2
    before, mean, spread = layer(x), x.mean(dim=0), x.std(dim=0)
    run.scale_inputs(layer, mean, spread)
    assert torch.allclose(layer((x - mean) / spread), before, atol=1e-4)
    run.scale_inputs(layer, -mean / spread, 1 / spread)
    assert torch.allclose(layer(x), before, atol=1e-4)


@pytest.mark.slow
def test_tracks_of_a_detector_are_learnt_alone_and_all_else_stays(
    whole: Path, made: Path, tmp_path: Path
) -> None:
    """No steps, so that no image is seen; wider layers than those of the weights; words of the weights."""
    scenes = made_scenes()
    save(found_people(scenes), tmp_path / "found")
    other = scenes.with_tables(queries=scenes.queries.with_columns(text=pl.lit("Somebody stands.")))
    save(other, tmp_path / "tables")
    recipe = a_recipe(
        made,
        tasks={"actions": 1, "relations": 0, "grounding": 0, "sound": 0},
        model={
            "weights": str(whole / "model.safetensors"), "freeze": ["heads.relations."],
            "fields": {"map_size": 8, "cycles": 1, "motion_width": 24},
        },
        data={"roots": [str(tmp_path / "tables")], "validation_roots": []},
        clips={"motion_steps": 120, "found": str(tmp_path / "found"), "maps": str(tmp_path / "maps"), "jitter": 0},
        schedule={"steps": 0, "epochs": 0},
    )  # fmt: skip
    done = train(recipe, tmp_path / "run")
    assert done.steps == 0
    assert not list(tmp_path.glob("maps/*"))
    before, after = (open_crowd(p / "model.safetensors")[0] for p in (whole, tmp_path / "run"))
    assert after.vocabulary == before.vocabulary
    old, new = before.state_dict(), after.state_dict()
    moved = {
        n for n in new if n not in old or old[n].shape != new[n].shape or not torch.equal(old[n], new[n])
    }
    assert moved
    assert {n.rsplit(".", 2)[0] for n in moved} <= {"heads.actions.motion", "heads.sound"}
    # A ghost does nothing, and whoever is found does what is true.
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(label_detections(found_people(scenes), scenes), films, after.vocabulary, 5.0)
    clips = CrowdClips(Footing(of, None, (64, 96)), recipe)
    given, targets = clips.describe_moments("actions", np.random.default_rng(0), 500, of)
    assert (~targets.any(dim=1)).any()
    with torch.no_grad():
        scores = after.heads["actions"].eval().motion(given).sigmoid()
    assert scores[targets].min() > scores[~targets].max()


@pytest.mark.slow
def test_tracks_are_learnt_before_anything_is_seen(made: Path) -> None:
    """What tracks say of actions and relations, by steps that open no film."""
    recipe = a_recipe(made, clips={"motion_steps": 150, "strange": 0.0})
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(scenes, films, build_vocabulary(list_used(scenes), recipe.build_config()), 5.0)
    learner = CrowdLearner(recipe, of)
    clips = CrowdClips(Footing(of, None, (64, 96)), recipe)
    before = copy.deepcopy(learner.crowd.state_dict())

    def judge() -> list[float]:
        found = []
        for task in ("actions", "relations"):
            head = learner.crowd.heads[task].eval()
            given, targets = clips.describe_moments(task, np.random.default_rng(0), 500)
            with torch.no_grad():
                logits = head.motion(given) + (head.prior if task == "relations" else 0)
            found.append(float(functional.binary_cross_entropy_with_logits(logits, targets.float())))
        return found

    first, state = judge(), torch.get_rng_state()
    assert learn_motion(learner.crowd, clips)
    assert all(after < 0.7 * loss for after, loss in zip(judge(), first, strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    changed = {n for n, v in learner.crowd.state_dict().items() if not torch.equal(v, before[n])}
    assert {".".join(n.split(".")[:3]) for n in changed} == {
        "heads.actions.motion", "heads.relations.motion",
    }  # fmt: skip
    assert not learn_motion(learner.crowd, clips, lambda: True)
    # Where all of it is frozen nothing is learnt, and the run goes on.
    assert learn_motion(learner.crowd.requires_grad_(requires_grad=False), clips)
    assert changed == {n for n, v in learner.crowd.state_dict().items() if not torch.equal(v, before[n])}


def crop_recipe(made: Path, maps: Path, **clips: Any) -> CrowdRecipe:
    fields = {"map_size": 8, "cycles": 1, "crop_width": 4, "crops_share": 2.0}
    return a_recipe(
        made, tasks={"actions": 1, "relations": 1}, model={"fields": fields},
        clips={"crop_steps": 30, "motion_steps": 1, "maps": str(maps), **clips},
    )  # fmt: skip


def crop_names(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {n: v for n, v in network.state_dict().items() if n.startswith("heads.actions.crops.")}


@pytest.mark.slow
def test_what_crops_show_is_learnt_and_added_to_what_tracks_say(made: Path, tmp_path: Path) -> None:
    """By colour: who is red walks, who is green kneels; crops are cut once, and nobody else's layers move."""
    scenes, recipe = made_scenes(), crop_recipe(made, tmp_path / "maps")
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(scenes, films, build_vocabulary(list_used(scenes), recipe.build_config()), 5.0)
    learner, footing = CrowdLearner(recipe, of), Footing(of, tmp_path / "maps", (64, 96))
    clips = CrowdClips(footing, recipe)
    # What a detector found counts, too; its ghost does nothing.
    found = label_detections(found_people(scenes), scenes)
    clips.found = build_crowd_set(found, films, of.vocabulary, 5.0)
    before, state = copy.deepcopy(learner.crowd.state_dict()), torch.get_rng_state()
    assert not learn_crops(learner.crowd, clips, lambda: True)
    assert learn_crops(learner.crowd, clips)
    assert torch.equal(torch.get_rng_state(), state)
    changed = {n for n, v in learner.crowd.state_dict().items() if not torch.equal(v, before[n])}
    assert {".".join(n.split(".")[:3]) for n in changed} == {"heads.actions.crops"}
    assert len(list((tmp_path / "maps").glob("*.crops.npy"))) == 4  # two videos, true people and found ones
    network = copy.deepcopy(learner.crowd).eval()
    # Where some is frozen that stays, norms too; films are not opened again.
    learner.crowd.heads["actions"].crops.fine.requires_grad_(requires_grad=False)
    footing.pictures = None
    assert not learn_crops(learner.crowd, clips, iter([False] * 10 + [True]).__next__)
    frozen = {
        n: v for n, v in crop_names(learner.crowd).items() if not torch.equal(v, crop_names(network)[n])
    }
    assert frozen
    assert not any(".crops.fine." in name for name in frozen)
    footing = Footing(of, tmp_path / "maps", (64, 96))
    video, rows = of.videos[0], np.flatnonzero(of.videos[0].person)
    answerer = Answerer(network, footing, recipe.clips, tasks=("actions",))
    with torch.no_grad():
        seen = answerer._score_crops(0, rows).numpy()
    walking, kneeling = (video.actions[rows, n] for n in (0, 1))
    assert seen[walking, 0].min() > 0 > seen[kneeling, 0].max()
    assert seen[kneeling, 1].min() > 0 > seen[walking, 1].max()
    # Boxes of other frames near a slot share the crop of the slot; somebody unknown is seen in each for itself.
    for slot in (0, 3):
        for tube in np.unique(video.tube[rows]).tolist():
            assert len(np.unique(seen[(video.slot[rows] == slot) & (video.tube[rows] == tube)], axis=0)) == 1
    strangers = replace(video, tube=np.full_like(video.tube, -1), _tracks={})
    alone = Answerer(
        network, Footing(replace(of, videos=[strangers, *of.videos[1:]]), None, (64, 96)), recipe.clips
    )
    with torch.no_grad():
        walker = alone._score_crops(0, rows).numpy()[video.tube[rows] == 0]
        assert len(np.unique(walker, axis=0)) == len(walker)
    own = predict_crowd(network, scenes, films, recipe.clips)["actions"].boxes
    network.heads["actions"].crops_share = 0.0
    assert not own.equals(predict_crowd(network, scenes, films, recipe.clips)["actions"].boxes)


def test_layers_of_crops_are_taken_left_or_begun(
    made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe, scenes = crop_recipe(made, tmp_path / "maps"), made_scenes()
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(scenes, films, build_vocabulary(list_used(scenes), recipe.build_config()), 5.0)
    first = CrowdLearner(recipe, of)
    assert first.crops_begin
    save_crowd(tmp_path / "with.safetensors", first.crowd)
    pruned = open_crowd(tmp_path / "with.safetensors")[0].pruned("actions")
    assert crop_names(pruned).keys() == crop_names(first.crowd).keys()

    def begun(weights: str, crop_width: int) -> CrowdLearner:
        fields = {"map_size": 8, "cycles": 1, "crop_width": crop_width}
        model = {"weights": str(tmp_path / f"{weights}.safetensors"), "fields": fields}
        return CrowdLearner(a_recipe(made, tasks={"actions": 1, "relations": 1}, model=model), of)

    same = begun("with", 4)
    assert not same.crops_begin
    assert all(torch.equal(v, crop_names(first.crowd)[n]) for n, v in crop_names(same.crowd).items())
    plain = begun("with", 0)
    assert not plain.crops_begin
    assert not crop_names(plain.crowd)
    assert "crop_width: 4 takes them" in caplog.text
    save_crowd(tmp_path / "without.safetensors", plain.crowd)
    assert begun("without", 4).crops_begin
    assert begun("with", 2).crops_begin


@pytest.mark.parametrize(
    ("clips", "fields", "says"),
    [
        ({"crop_steps": 0}, {"crop_width": 2}, "add random scores"),
        ({"crop_steps": 2}, {}, "no layers of crops"),
    ],
)
def test_layers_of_crops_that_learn_nothing_are_refused(
    made: Path, tmp_path: Path, clips: dict[str, int], fields: dict[str, int], says: str
) -> None:
    model = {"fields": {"map_size": 8, "cycles": 1, **fields}}
    recipe = a_recipe(
        made, tasks={"actions": 1}, model=model, clips={**clips, "motion_steps": 0, "maps": str(tmp_path)}
    )
    with pytest.raises(UsageError, match=says):
        train(recipe, tmp_path / "run")


def test_who_is_found_where_nobody_is_labelled_teaches_nothing(made: Path, tmp_path: Path) -> None:
    scenes, recipe = made_scenes(1), crop_recipe(made, tmp_path)
    films, _ = find_videos(scenes, made / "films")
    late = scenes.boxes.filter(pl.col("frame") >= 10)["box"]
    sparse = scenes.with_tables(labels=scenes.labels.filter(~pl.col("box").is_in(late.implode())))
    of = build_crowd_set(sparse, films, build_vocabulary(list_used(scenes), recipe.build_config()), 5.0)
    clips = CrowdClips(Footing(of, tmp_path, (64, 96)), recipe)
    clips.found = build_crowd_set(label_detections(found_people(sparse), sparse), films, of.vocabulary, 5.0)
    crops = run._collect_crops(clips, lambda: False, None)
    assert crops is not None
    slots = len(np.unique(of.videos[0].slot[of.videos[0].actions.any(axis=1)]))
    true, found = (len(each) for each in crops.pixels)
    assert true == 2 * slots
    assert found == 3 * slots  # two people and a ghost
    assert len(crops.shapes) == len(crops.actions) == true + found
    drawn = crops.draw(np.array([true + 1, 0]))
    assert np.array_equal(drawn[0].numpy(), crops.pixels[1][1])
    assert np.array_equal(drawn[1].numpy(), crops.pixels[0][0])


def test_crops_are_augmented_within_bounds() -> None:
    crops = torch.arange(6 * 3 * 80 * 48).reshape(6, 3, 80, 48).remainder(199).to(torch.uint8)
    torch.manual_seed(3)
    for _ in range(4):
        found = run._augment_crops(crops, mirrored=False)
        assert found.shape == crops.shape
        assert found.min() >= -0.08 * 255 - 1e-3
        assert found.max() <= max(1.25 * 198, 255) + 0.08 * 255 + 1e-3
    flat = torch.full((64, 3, 80, 48), 100, dtype=torch.uint8)
    flat[..., :24] = 20
    turned = [run._augment_crops(flat, mirrored=each)[:, 0, 40] for each in (False, True)]
    left = [(each[:, :10].mean(dim=1) < each[:, -10:].mean(dim=1)).float().mean() for each in turned]
    assert left[0] > 0.9
    assert 0.25 < left[1] < 0.75


def test_crops_of_a_video_are_kept_by_what_they_are_cut_from(made: Path, tmp_path: Path) -> None:
    scenes = made_scenes(1)
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(scenes, films, Vocabulary(actions=WORDS["action"]), 5.0)
    video, footing = of.videos[0], Footing(of, tmp_path, (64, 96))
    rows = np.flatnonzero(video.key & video.person)
    given = (0, video.slot[rows], video.corners[rows])
    crops, shape = footing.crops(*given), footing.shapes(0, video.corners[rows])
    # The middle of each is the colour of who is there.
    middle = crops[:, :, 36:44, 20:28].mean(axis=(2, 3))
    assert ((middle.argmax(axis=1) == 0) == (video.tube[rows] == 0)).all()
    size = video.corners[rows][:, 2:] - video.corners[rows][:, :2]
    assert np.allclose(shape[:, :2], np.log(size / 64), atol=1e-5)
    again = Footing(of, tmp_path, (64, 96))
    again.pictures = None
    assert np.array_equal(again.crops(*given), crops)
    # Rows in any order, boxes elsewhere, frames of another rate.
    turned = footing.crops(0, video.slot[rows][::-1], video.corners[rows][::-1])
    assert np.array_equal(turned, crops[::-1])
    assert not np.array_equal(footing.crops(0, video.slot[rows], video.corners[rows] + np.float32(2)), crops)
    later = replace(of, videos=[replace(video, frames=video.frames + 3 - 3 * (video.frames > 15))])
    assert not np.array_equal(Footing(later, tmp_path, (64, 96)).crops(*given), crops)
    assert footing.crops(0, rows[:0], video.corners[:0]).shape == (0, 3, 80, 48)
    for path in tmp_path.glob("*.crops.npy"):
        path.write_bytes(path.read_bytes()[:-50])
    assert np.array_equal(Footing(of, tmp_path, (64, 96)).crops(*given), crops)


def test_who_makes_a_sound_is_learnt_from_what_people_do(made: Path) -> None:
    """Who shouts is told from who kneels, and the map of a shout is the box of who shouts."""
    recipe = a_recipe(made, clips={"motion_steps": 100}, tasks={"actions": 1, "sound": 1})
    scenes = made_scenes()
    films, _ = find_videos(scenes, made / "films")
    of = build_crowd_set(scenes, films, build_vocabulary(list_used(scenes), recipe.build_config()), 5.0)
    network = CrowdLearner(recipe, of).crowd
    clips = CrowdClips(Footing(of, None, (64, 96)), recipe)
    assert learn_motion(network, clips)
    before, state = copy.deepcopy(network.state_dict()), torch.get_rng_state()
    assert not learn_sources(network, clips, lambda: True)
    assert learn_sources(network, clips)
    assert torch.equal(torch.get_rng_state(), state)
    changed = {n for n, v in network.state_dict().items() if not torch.equal(v, before[n])}
    assert changed == {"heads.sound.deeds.weight"}
    moment = clips.describe_sound((0, 0), np.random.default_rng(0))
    assert moment is not None
    assert moment.makes.tolist() == [True, False, False]
    assert clips.describe_sound((0, 1), np.random.default_rng(0)) is None  # its source is not seen

    shout = predict_crowd(network.eval(), scenes, films, recipe.clips)["sound"].sounds
    cells = np.array(shout["map"][0].to_list()).reshape(-1, shout["map_width"][0])
    # Of the box (12, 12, 28, 52) in cells of 8 pixels, half of each at its edges.
    rows, columns = [0, 0.5, 1, 1, 1, 1, 0.5, 0], [0, 0.5, 1, 0.5, *[0] * 8]
    assert cells.max() > 0
    assert np.allclose(cells / cells.max(), np.outer(rows, columns), atol=1e-6)
    # The gunshot, whose source is never seen, was learnt of nobody: its map is that of the cells.
    others = np.array(shout["map"][1].to_list())
    assert others.min() > 0


@pytest.mark.slow
def test_sentences_are_learnt_beside_heads_that_stay(made: Path, whole: Path, tmp_path: Path) -> None:
    """Of heads with a share of 0 what a file brings stays to the bit; no map is made, and no sound is heard."""
    write_films(tmp_path / "films", made_scenes(), sound=False)
    first, _ = open_crowd(whole / "model.safetensors")
    recipe = a_recipe(
        made,
        tasks={"actions": 0, "relations": 0, "grounding": 1, "sound": 0},
        model={"weights": str(whole / "model.safetensors"), "freeze": ["heads.actions.", "heads.relations.", "heads.sound."]},
        data={"media": str(tmp_path / "films")},
        clips={"maps": str(tmp_path / "maps"), "questions": 4, "crop": 0.0},
        schedule={"steps": 150, "lr": 5e-3, "ema": 0.0},
    )  # fmt: skip
    train(recipe, tmp_path / "run")
    found, _ = open_crowd(tmp_path / "run" / "model.safetensors")
    state, before = found.state_dict(), first.state_dict()
    changed = {".".join(name.split(".")[:2]) for name in state if not torch.equal(state[name], before[name])}
    assert changed == {"heads.grounding"}
    assert not list((tmp_path / "maps").glob("*.map.npy"))
    # One walks and one kneels, in coats of other colours.
    judged = read_log(tmp_path / "run")[-1]["validation"]
    assert set(judged) >= {"grounding/m_viou"}
    assert not {name for name in judged if name.startswith(("actions/", "sound/"))}
    assert judged["grounding/m_viou"] > 0.6


def test_a_recipe_without_steps_that_teaches_no_tracks_is_refused(made: Path, tmp_path: Path) -> None:
    recipe = a_recipe(made, tasks={"sound": 1}, schedule={"steps": 0, "epochs": 0})
    with pytest.raises(UsageError, match="nothing is learnt"):
        train(recipe, tmp_path / "run")
