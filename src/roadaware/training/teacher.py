"""Videos through the detector that `predict` uses, for validation and for pseudo-labels."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
import torch
from torch import Tensor

from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.io.video import ENDINGS, VideoReader
from roadaware.linking.config import LinkerConfig
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.models.detector import Detector, FrameDetections
from roadaware.models.graphs.views import Views
from roadaware.models.loading import digest_model_files, open_videos
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Predictions
from roadaware.tasks.prediction_runs import TABLES, PredictionRun
from roadaware.tasks.road_events import (
    Classes,
    VideoTruth,
    build_predictions,
    build_video_truth,
    evaluate_predictions,
)
from roadaware.tasks.videos import Film, Footage, VideoFacts
from roadaware.training.build import Learner
from roadaware.training.data import Material
from roadaware.training.recipe import Recipe, TeacherRecipe


def select_videos(films: Sequence[Film], wanted: int) -> list[Film]:
    """Some of the videos, evenly spread; all where 0 are wanted."""
    if not wanted or wanted >= len(films):
        return list(films)
    return [films[place * len(films) // wanted] for place in range(wanted)]


def evaluate_learner(
    learner: Learner, weights: Mapping[str, Tensor] | None, material: Material, recipe: Recipe
) -> dict[str, float]:
    """Metric to its value, of the videos that are judged; nothing where there are none.

    Args:
        learner: as it is trained; it is left alone.
        weights: a running mean of its network's weights, which then is judged.
        material: scenes to be judged on.
        recipe: how many, and which boxes count.
    """
    if material.judged is None:
        return {}
    judged = copy.deepcopy(learner.network).eval()
    if weights is not None:
        judged.load_state_dict(dict(weights))
    asked, classes = recipe.validation, material.classes
    rule = DetectRule(min_agentness=asked.min_agentness, nms_iou=asked.nms_iou, top=asked.top)
    detector = learner.detector(judged, rule)
    films = select_videos(material.judged_films, asked.videos)
    footage = Footage(films, [(film.height, film.width) for film in films])
    with torch.no_grad():
        found = {
            film.video: detect_video(detector, footage, number, recipe.clips.frame_step)
            for number, film in enumerate(films)
        }
    footage.close()
    scenes = material.judged.only(list(found))
    predictions = build_predictions(
        found, classes, videos=scenes.videos, meta=scenes.meta, frame_step=recipe.clips.frame_step
    )
    linker = LinkerConfig.default("ucf24" if recipe.data.reader == "ucf24" else "road")
    return evaluate_predictions(predictions, scenes, replace(linker, **recipe.validation.linker_fields()))


def detect_video(detector: Detector, footage: Footage, film: int, step: int) -> list[FrameDetections]:
    """Run a detector on a video; returns its detections.

    Args:
        detector: begins anew.
        footage: images at their own size.
        film: its number.
        step: it is given every so manieth frame.
    """
    detector.reset()
    found: list[FrameDetections] = []
    for frame in range(0, footage.films[film].n_frames, step):
        found += detector.step(footage.pictures(film, [frame])[0])
    return [*found, *detector.finish()]


FOLDER = "teacher"
_NAMED = "teacher/"
_SURE = 0.5
_log = logging.getLogger("roadaware")


def with_teacher(material: Material, recipe: Recipe, out: Path, device: torch.device | str) -> Material:
    """The training data with a teacher's pseudo-labels; unchanged where the recipe names no teacher.

    What the teacher finds is kept video by video in `teacher/` of the run, and not looked for again.

    Args:
        material: with labels.
        recipe: names the teacher.
        out: folder of the run.
        device: where the teacher runs.

    Raises:
        UsageError: if it lacks the labels to be learnt, or there are no videos for it.
        InputError: if its weights or a video cannot be read.
        DiskError: if what it finds cannot be kept.
    """
    asked = recipe.teacher
    if not asked.weights:
        return material
    truth = build_video_truth(material.scenes, material.classes)
    open_ends = [film for film in material.films if not truth[film.video].labelled.all()]
    more = [replace(film, video=f"{_NAMED}{film.video}") for film in films_at(asked.films)]
    films = [*open_ends, *more]
    if not films:
        raise UsageError("every frame of the data is labelled: name teacher.films for the teacher to look at")
    labels = _label_frames(asked, films, material.classes, out / FOLDER, device)
    _log.info("%s has looked at %d videos: %d boxes", asked.weights, len(films), len(labels.boxes))
    of_video = {str(key[0]): part for key, part in labels.boxes.group_by("video", maintain_order=True)}
    lessons = {}
    for film in films:
        boxes = of_video.get(film.video, labels.boxes.clear())
        # Scores of a teacher on a video, in the classes that are learnt; 0 for labels that it lacks.
        classes = material.classes
        n_frames = film.n_frames
        columns = get_score_layout(labels.meta, "boxes")
        boxes = boxes.filter(pl.col("frame") < n_frames).sort("frame", maintain_order=True)
        soft = np.zeros((len(boxes), classes.n_classes), np.float16)
        if len(boxes):
            scores = convert_to_matrix(boxes["scores"], columns.width)
            soft[:, 0] = boxes["score"].to_numpy()
            for place, (kind, label) in enumerate(classes.names[1:], 1):
                if label in columns.kinds[kind]:
                    soft[:, place] = scores[:, columns.columns(kind)][:, columns.kinds[kind].index(label)]
            if not asked.soft:
                soft = (soft >= _SURE).astype(np.float16)
                soft[:, 0] = 1
        starts = np.searchsorted(boxes["frame"].to_numpy(), np.arange(n_frames + 1))
        corners = boxes.select(CORNERS).to_numpy().astype(np.float32).reshape(-1, 4)
        nobody = np.full(n_frames, -1, np.int64)
        seen = np.ones(n_frames, np.bool_)
        packed = np.zeros((len(boxes), 0), np.uint8)
        said = VideoTruth(corners, packed, classes.n_classes, starts, nobody, seen, soft)
        lessons[film.video] = _joined(truth[film.video], said) if film.video in truth else said
    return replace(material, films=[*material.films, *more], taught=lessons)


def films_at(paths: Sequence[str]) -> list[Film]:
    """Videos, and those in folders, in order.

    Raises:
        InputError: if one is not there, cannot be opened, or a folder holds none.
        UsageError: if two have the same name.
    """
    found: dict[str, Film] = {}
    for given in map(Path, paths):
        if not given.exists():
            raise InputError("teacher.films: there is no such file or folder", where=str(given))
        held = [given]
        if given.is_dir():
            held = sorted(path for path in given.rglob("*") if path.suffix.lower() in ENDINGS)
        if not held:
            raise InputError(
                f"no video is in this folder; they end in {', '.join(ENDINGS)}", where=str(given)
            )
        for path in held:
            name = str(path.relative_to(given).with_suffix("")) if given.is_dir() else path.stem
            if name in found:
                raise UsageError(f"teacher.films: {path} and {found[name].path} have the same name")
            with VideoReader(path) as reader:
                found[name] = Film(name, str(path), len(reader), reader.height_px, reader.width_px)
    return list(found.values())


def _label_frames(
    asked: TeacherRecipe, films: Sequence[Film], classes: Classes, folder: Path, device: torch.device | str
) -> Predictions:
    """Pseudo-labels of the teacher, read from the folder where they exist."""
    path = resolve_weights(Path(asked.weights), ("objects",))
    rule = DetectRule(min_agentness=asked.min_score)
    views = Views(asked.size_px) if asked.size_px else None
    teacher = open_videos([path], rule, views=views, device=device)
    lacking = [kind for kind in classes.kinds if kind not in teacher.kinds]
    if lacking:
        known = ",".join(kind for kind in classes.kinds if kind in teacher.kinds)
        raise UsageError(
            f"{asked.weights} tells {', '.join(teacher.kinds)}, and to be learnt is {', '.join(lacking)}, "
            f"too: set data.kinds=[{known}]"
        )
    settings = {"weights": digest_model_files(path), "rule": to_dict(rule), "size_px": asked.size_px}
    run = PredictionRun(folder, settings, Classes(teacher.kinds, teacher.av_labels))
    facts = {film.video: VideoFacts(film.video, _stamp(film), {"video": film.video}) for film in films}
    due = {each.video for each in run.wanted(list(facts.values()))}
    footage = Footage(films, [(film.height, film.width) for film in films])
    with torch.no_grad():
        for place, film in enumerate(films):
            if film.video in due:
                run.keep(facts[film.video], detect_video(cast("Detector", teacher), footage, place, 1))
                _log.info("teacher: %s, %d of %d videos", film.video, place + 1, len(films))
    footage.close()
    run.finish(list(facts))
    return open_predictions(folder / TABLES)


def _stamp(film: Film) -> str:
    """Changes when the video does, or its first image."""
    found = (film.picture(film.frames[0]) if film.is_pictures else Path(film.path)).stat()
    return f"{film.n_frames}-{found.st_size}-{found.st_mtime_ns}"


def _joined(labels: VideoTruth, said: VideoTruth) -> VideoTruth:
    """Labels of annotated frames, and the teacher's elsewhere."""
    parts: list[tuple[VideoTruth, slice]] = []
    for frame in range(min(len(labels), len(said))):
        source = labels if labels.labelled[frame] else said
        parts.append((source, slice(int(source.starts[frame]), int(source.starts[frame + 1]))))
    n = len(parts)
    counts = [rows.stop - rows.start for _, rows in parts]
    corners = np.concatenate([np.zeros((0, 4), np.float32), *(truth.boxes[rows] for truth, rows in parts)])
    none = np.zeros((0, labels.n_classes), np.float16)
    soft = np.concatenate([none, *(truth.hot(rows).astype(np.float16) for truth, rows in parts)])
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    packed = np.zeros((len(corners), 0), np.uint8)
    seen = np.ones(n, np.bool_)
    return VideoTruth(corners, packed, labels.n_classes, starts, labels.av[:n], seen, soft)


def teacher_row(recipe: Recipe, lessons: Mapping[str, VideoTruth]) -> list[tuple[str, str]]:
    """The entry on the teacher in a detector's card.

    Args:
        recipe: of the run.
        lessons: video to what was learnt of it.
    """
    if not recipe.teacher.weights:
        return []
    boxes = sum(len(each.boxes) for each in lessons.values())
    name = Path(recipe.teacher.weights).name
    return [("teacher", f"{name}: {boxes:,} boxes in {len(lessons)} videos without labels")]
