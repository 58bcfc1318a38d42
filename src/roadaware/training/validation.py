"""Validation: videos through the detector that `predict` uses, judged by our evaluators."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import Detector, FrameDetections
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.tasks.footage import Footage
from roadaware.tasks.road_events import build_predictions, evaluate_predictions
from roadaware.tasks.videos import Film
from roadaware.training.build import Learner
from roadaware.training.data import Material
from roadaware.training.recipe import Recipe


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
