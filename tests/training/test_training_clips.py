"""Clips: in an order that seed and step decide, with the truth of their images, also in a mirror."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_films import FRAMES, WORDS, made_folder, made_recipe, made_scenes

from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.models.retinanet3d.detector import Fit
from roadaware.scenes.composites import find_compositions
from roadaware.scenes.store import save
from roadaware.tasks.road_events import build_video_truth, collect_classes
from roadaware.tasks.videos import Film, Footage, find_videos, resize_image
from roadaware.training.batches import (
    Batch,
    ClipSet,
    ClipTable,
    Draws,
    FramesOfClip,
    Mirror,
    Share,
    balance,
    build_colour_matrix,
    build_mirror,
    prepare_batch,
    replace_mirrored_words,
    sample_clips,
    transform_clip,
)
from roadaware.training.data import load_training_data
from roadaware.training.recipe import AugmentRecipe, Recipe

FIT = Fit(short_side_px=64, multiple_px=32)
PLAIN = {"flip": 0.0, "colour": 0.0, "zoom": [1.0, 1.0], "shift": 0.0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_folder(tmp_path_factory.mktemp("made"))


def clips_of(recipe: Recipe) -> ClipSet:
    return load_training_data(recipe).clips(recipe, FIT)


def mirror() -> Mirror:
    scenes = made_scenes()
    return build_mirror(collect_classes(scenes), find_compositions(scenes.meta), WORDS)


def table(weight: list[float]) -> ClipTable:
    n = len(weight)
    return ClipTable(np.zeros(n, int), np.arange(n), np.array(weight), (), ())


def test_a_run_that_goes_on_draws_what_it_would_have_drawn() -> None:
    whole = list(Draws(Share(3, accumulate=2), 0, 9))
    assert list(Draws(Share(3, accumulate=2), 4, 9)) == whole[8:]
    assert len(Draws(Share(3, accumulate=2), 4, 9)) == 10
    assert [draw for batch in whole for draw in batch] == list(range(9 * 6))


@pytest.mark.parametrize(("batch", "world"), [(4, 2), (4, 3), (5, 2), (3, 3), (7, 1)])
def test_processes_draw_together_what_one_draws(batch: int, world: int) -> None:
    one = list(Draws(Share(batch, accumulate=2), 1, 4))
    several = [list(Draws(Share(batch, accumulate=2, rank=r, world=world), 1, 4)) for r in range(world)]
    assert [[draw for part in parts for draw in part] for parts in zip(*several, strict=True)] == one
    sizes = [len(parts[0]) for parts in several]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    with pytest.raises(UsageError, match=r"share clips\.batch"):
        Share(batch, world=batch + 1)


def test_every_pass_takes_every_clip_once_in_another_order() -> None:
    passes = [sample_clips(table([1.0] * 50), 7, turn) for turn in range(3)]
    assert all(sorted(each) == list(range(50)) for each in passes)
    assert len({tuple(each) for each in passes}) == 3
    assert (sample_clips(table([1.0] * 50), 7, 1) == passes[1]).all()
    assert (sample_clips(table([1.0] * 50), 8, 1) != passes[1]).any()


@pytest.mark.filterwarnings("error")
def test_no_clips_have_no_weights() -> None:
    assert balance(np.zeros((0, 3), dtype=np.bool_), 0.1, 8.0).shape == (0,)


def test_balanced_passes_take_a_clip_as_often_as_its_weight_says() -> None:
    weight = [0.5, 0.5, 2.0, 1.0]
    taken = np.array([np.bincount(sample_clips(table(weight), 0, turn), minlength=4) for turn in range(400)])
    assert np.abs(taken.mean(axis=0) - weight).max() < 0.1
    assert (np.abs(taken - weight) < 1).all()


def test_clips_with_rare_labels_weigh_more(made: Path) -> None:
    scenes = made_scenes()
    rare = scenes.with_tables(labels=scenes.labels.filter(scenes.labels["box"] < 8))
    folder = made.parent / "rare"
    save(rare, folder)
    recipe = made_recipe(
        made,
        data={"roots": [str(folder)]},
        clips={"balance": "repeat", "balance_share": 0.5, "shift": False},
    )
    clips = clips_of(recipe)
    weight = clips.table.weight
    assert weight.mean() == pytest.approx(1)
    assert weight.argmax() == 0
    assert weight[0] > 1.2 * weight[1]
    by_agent = replace(recipe, clips=replace(recipe.clips, balance_kinds=("agent",)))
    by_duplex = replace(recipe, clips=replace(recipe.clips, balance_kinds=("duplex",)))
    bare = rare.with_tables(labels=rare.labels.filter(rare.labels["kind"].cast(str) != "duplex"))
    save(bare, made.parent / "bare")
    data = replace(recipe.data, roots=(str(made.parent / "bare"),))
    assert (clips_of(by_agent).table.weight == weight).all()
    assert (clips_of(replace(by_agent, data=data)).table.weight == weight).all()
    assert (clips_of(replace(by_duplex, data=data)).table.weight == 1).all()
    with pytest.raises(UsageError, match=r"balance_kinds: nothing of mood is learnt; there are agent"):
        clips_of(replace(recipe, clips=replace(recipe.clips, balance_kinds=("mood",))))


def test_a_clip_has_the_pictures_of_its_frames_and_their_boxes(made: Path) -> None:
    clips = clips_of(made_recipe(made, augment=PLAIN, clips={"shift": False}))
    sample = clips.clip(1, 0)
    assert sample.name == "film-0 from frame 4"
    with VideoReader(made / "films" / "film-0.mp4") as reader:
        assert (sample.pictures.numpy() == np.stack([reader.frame(t) for t in range(4, 8)])).all()
    assert sample.boxes[1].tolist() == [[19, 8, 39, 28], [30, 40, 46, 56]]
    names = collect_classes(made_scenes()).names
    assert [names[c][1] for c in sample.classes[1][0].nonzero().flatten()] == [
        "agentness",
        "Car",
        "TurLft",
        "Car-TurLft",
    ]
    assert sample.av.tolist() == [1] * 4


def test_boxes_are_in_pixels_of_the_picture_of_the_network(made: Path) -> None:
    recipe = made_recipe(made, augment=PLAIN, clips={"shift": False})
    sample = load_training_data(recipe).clips(recipe, Fit(short_side_px=32)).clip(1, 0)
    assert sample.pictures.shape == (4, 32, 32, 3)
    assert sample.boxes[1].tolist() == [[9.5, 4, 19.5, 14], [15, 20, 23, 28]]
    large = made_recipe(made, augment=PLAIN, clips={"shift": False}, data={"min_box_px": 9})
    assert len(load_training_data(large).clips(large, Fit(short_side_px=32)).clip(1, 0).boxes[1]) == 1


def test_frames_that_nobody_looked_at_teach_nothing(made: Path) -> None:
    clips = clips_of(made_recipe(made, augment=PLAIN, clips={"shift": False}))
    sample = clips.clip(2, 0)
    assert sample.labelled.tolist() == [True, True, False, False]
    assert [len(boxes) for boxes in sample.boxes] == [2, 2, 0, 0]
    assert sample.av.tolist() == [1, 1, -1, -1]


def test_videos_shorter_than_a_clip_repeat_their_last_picture(made: Path) -> None:
    recipe = made_recipe(made, augment=PLAIN, clips={"frames": 16, "shift": False})
    clips = clips_of(recipe)
    assert clips.table.short == ("film-0", "film-1")
    sample = clips.clip(0, 0)
    assert (sample.pictures[FRAMES:] == sample.pictures[FRAMES - 1]).all()
    assert sample.labelled.tolist() == [True] * 10 + [False] * 6


def test_every_frame_is_in_a_clip_and_a_clip_can_skip_frames(made: Path) -> None:
    clips = clips_of(made_recipe(made, clips={"frames": 5, "stride": 5, "shift": False}))
    assert clips.table.start[clips.table.film == 0].tolist() == [0, 5, 7]
    skipping = clips_of(
        made_recipe(made, clips={"frames": 3, "frame_step": 4, "shift": False}, augment=PLAIN)
    )
    assert skipping.clip(0, 0).boxes[2][0].tolist() == [28, 8, 48, 28]


def test_the_same_draw_gives_the_same_clip_in_any_process(made: Path) -> None:
    recipe = made_recipe(made)
    clips = clips_of(recipe)
    clips[3]
    other = pickle.loads(pickle.dumps(clips))  # noqa: S301, as a worker is given it
    first, second = other[5], clips[5]
    assert first.name == second.name
    assert (first.pictures == second.pictures).all()
    assert all((a == b).all() for a, b in zip(first.boxes, second.boxes, strict=True))
    draws = [clips[draw] for draw in range(6, 12)]
    assert len({float(each.boxes[0].sum()) for each in draws if len(each.boxes[0])}) > 3


def test_kept_pictures_are_those_that_are_decoded(made: Path) -> None:
    scenes = made_scenes()
    films, refused = find_videos(scenes, made / "films")
    assert not refused
    kept, bare = (Footage(films, [(32, 48)] * 2, room) for room in (10**6, 0))
    for frames in ([2, 3, 4], [3, 4, 5], [0, 1, 2]):
        pairs = zip(kept.pictures(1, frames), bare.pictures(1, frames), strict=True)
        assert all((a == b).all() and a.shape == (32, 48, 3) for a, b in pairs)


def test_pictures_in_files_are_footage_too(made: Path, tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "film-0").mkdir()
    with VideoReader(made / "films" / "film-0.mp4") as reader:
        shown = [reader.frame(t) for t in range(5)]
    for t, picture in enumerate(shown):
        Image.fromarray(picture).save(tmp_path / "film-0" / f"{t + 1:05d}.png")
    films, refused = find_videos(made_scenes(), tmp_path, "{video}/{number:05d}.png")
    assert films == [Film("film-0", str(tmp_path / "film-0" / "{number:05d}.png"), 5, 64, 64)]
    assert list(refused) == ["film-1"]
    assert (Footage(films, [(64, 64)]).pictures(0, [3])[0] == shown[3]).all()


def test_paths_that_cannot_be_filled_in_and_pictures_that_are_none_are_refused(tmp_path: Path) -> None:
    for pattern in ("{name}.mp4", "{video.mp4", "{video}/{number:x5}.png", "{}/{number}.png"):
        with pytest.raises(UsageError, match="in braces stand video, number or frame"):
            find_videos(made_scenes(), tmp_path, pattern)
    (tmp_path / "1.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"the first: .*1\.png.* no whole PNG"):
        find_videos(made_scenes(), tmp_path, "{number}.png")


def test_a_picture_is_resized_as_detectors_resize_it() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    fit = Fit(32, 1, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    wanted = fit.fit(picture)[0].mul(255).round().to(torch.uint8).permute(1, 2, 0)
    assert (torch.from_numpy(resize_image(picture, fit.size(50, 70))) == wanted).all()


def test_a_batch_is_what_the_detector_makes_of_the_same_pictures(made: Path) -> None:
    recipe = made_recipe(made, augment=PLAIN, clips={"shift": False})
    sample = clips_of(recipe).clip(0, 0)
    fit = Fit(64, 48)
    x, targets = prepare_batch(Batch([sample, sample]), fit, torch.device("cpu"), channels_last=True)
    assert x.shape == (2, 3, 4, 96, 96)
    assert torch.allclose(x[1], fit.fit_all(list(sample.pictures.numpy()))[0], atol=1e-6)
    assert targets.counts == [2] * 8


def test_without_films_nothing_can_be_learnt(tmp_path: Path) -> None:
    save(made_scenes(), tmp_path / "tables")
    recipe = made_recipe(tmp_path)
    with pytest.raises(InputError, match="none of 2 videos can be opened"):
        load_training_data(recipe)


def test_a_film_that_cannot_be_opened_is_left_out(
    made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "film-0.mp4").write_bytes((made / "films" / "film-0.mp4").read_bytes())
    (tmp_path / "film-1.mp4").write_bytes(b"")
    material = load_training_data(made_recipe(made, data={"media": str(tmp_path)}))
    assert [film.video for film in material.films] == ["film-0"]
    assert material.scenes.videos["video"].to_list() == ["film-0"]
    assert "1 videos cannot be opened (film-1)" in caplog.text


def test_roots_with_the_same_names_are_told_apart(made: Path) -> None:
    root = str(made / "tables")
    material = load_training_data(made_recipe(made, data={"roots": [root, root]}))
    assert [film.video for film in material.films] == [
        "film-0",
        "film-1",
        "tables-1/film-0",
        "tables-1/film-1",
    ]
    assert len(build_video_truth(material.scenes, material.classes)) == 4


def test_kinds_and_splits_that_are_not_there_are_refused(made: Path) -> None:
    with pytest.raises(UsageError, match="no labels of mood"):
        load_training_data(made_recipe(made, data={"kinds": ["agent", "mood"]}))
    with pytest.raises(UsageError, match="split"):
        load_training_data(made_recipe(made, data={"split": "train_9"}))


@pytest.mark.parametrize(
    ("label", "turned"),
    [
        ("TurLft", "TurRht"),
        ("RhtPav", "LftPav"),
        ("AV-TurRht", "AV-TurLft"),
        ("turning_left", "turning_right"),
    ],
)
def test_sides_in_names_change_in_a_mirror(label: str, turned: str) -> None:
    assert replace_mirrored_words(label) == turned
    assert replace_mirrored_words(turned) == label


def test_composites_follow_their_parts_in_a_mirror() -> None:
    names = [label for _, label in collect_classes(made_scenes()).names]
    hot = np.zeros((3, len(names)), dtype=bool)
    for row, labels in enumerate(
        (["Car", "TurLft", "Car-TurLft"], ["Car", "TurRht"], ["Ped", "Stop", "Ped-Stop"])
    ):
        hot[row, [0, *(names.index(label) for label in labels)]] = True
    turned = mirror().classes(hot)
    found = [{names[c] for c in np.flatnonzero(row)} - {"agentness"} for row in turned]
    assert found == [{"Car", "TurRht"}, {"Car", "TurLft", "Car-TurLft"}, {"Ped", "Stop", "Ped-Stop"}]
    assert (mirror().classes(turned) == hot).all()
    assert mirror().actions(np.array([0, 1, 2, -1])).tolist() == [0, 2, 1, -1]


def test_what_has_no_mirror_image_is_not_turned() -> None:
    words = {"location": ("LftPav", "RhtPav", "RhtParking")}
    scenes = made_scenes()
    meta = scenes.with_tables(labels=scenes.labels.clear()).meta
    kinds = collect_classes(
        scenes.with_tables(meta=type(meta)(vocabularies={**words, **WORDS})), ["location"]
    )
    turn = build_mirror(kinds, (), words)
    hot = np.array([[True, False, True, False], [True, False, False, True]])
    assert turn.turns(hot[:1], np.array([-1]))
    assert not turn.turns(hot, np.array([-1]))


def test_a_mirror_image_twice_is_the_picture() -> None:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (20, 30, 3), dtype=np.uint8) for _ in range(2)]
    boxes = [np.array([[1, 2, 11, 12]], dtype=np.float32), np.zeros((0, 4), np.float32)]
    names = collect_classes(made_scenes()).n_classes
    hot = [np.ones((1, names), dtype=bool), np.zeros((0, names), dtype=bool)]
    clip = FramesOfClip(list(pictures), list(boxes), list(hot), np.array([1, -1]))
    always = AugmentRecipe(flip=1.0)
    transform_clip(clip, always, mirror(), rng)
    assert clip.boxes[0].tolist() == [[19, 2, 29, 12]]
    assert (clip.pictures[0][2:12, 19:29] == pictures[0][2:12, 1:11][:, ::-1]).all()
    assert clip.av.tolist() == [2, -1]
    transform_clip(clip, always, mirror(), rng)
    assert (clip.pictures[1] == pictures[1]).all()
    assert (clip.boxes[0] == boxes[0]).all()


@pytest.mark.parametrize("seed", range(8))
def test_boxes_move_with_what_they_show(seed: int) -> None:
    picture = np.zeros((64, 96, 3), dtype=np.uint8)
    picture[16:48, 32:64] = 255
    boxes = np.array([[32, 16, 64, 48]], dtype=np.float32)
    clip = FramesOfClip([picture], [boxes], [np.ones((1, 3), dtype=bool)], np.array([-1]))
    how = AugmentRecipe(zoom=(0.6, 1.6), shift=0.3, min_visible=0.0)
    transform_clip(clip, how, mirror(), np.random.default_rng(seed))
    bright = np.argwhere(clip.pictures[0][..., 0] > 190)
    x1, y1, x2, y2 = clip.boxes[0][0]
    assert np.abs(bright.min(axis=0) - (y1, x1)).max() <= 1.5
    assert np.abs(bright.max(axis=0) + 1 - (y2, x2)).max() <= 1.5
    assert x1 >= 0
    assert y2 <= 64


def test_boxes_that_leave_the_picture_are_not_learnt() -> None:
    clip = FramesOfClip(
        [np.zeros((40, 40, 3), np.uint8)],
        [np.array([[0, 0, 8, 8], [16, 16, 24, 24]], np.float32)],
        [np.ones((2, 3), dtype=bool)],
        np.array([-1]),
    )
    transform_clip(clip, AugmentRecipe(zoom=(3.0, 3.0)), mirror(), np.random.default_rng(0))
    assert clip.boxes[0].tolist() == [[8, 8, 32, 32]]
    assert len(clip.hot[0]) == 1


def test_neutral_colours_change_nothing_and_greys_stay_grey() -> None:
    still = build_colour_matrix(brightness=1, contrast=1, saturation=1, hue=0)
    assert np.allclose(still, np.eye(3, 4), atol=1e-6)
    turned = build_colour_matrix(brightness=1, contrast=1, saturation=0.3, hue=0.2)
    assert np.allclose(turned @ [0.4, 0.4, 0.4, 1], 0.4, atol=1e-6)
    assert np.allclose(
        build_colour_matrix(brightness=1, contrast=0, saturation=1, hue=0) @ [0.9, 0.1, 0.3, 1], 0.5
    )
