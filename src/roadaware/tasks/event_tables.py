"""Event labels of saved detections: the same head over tables, without pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import FrameDetections
from roadaware.models.event_head.head import EventHead
from roadaware.scenes.advice import advice_in
from roadaware.scenes.dense import layout, matrix
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.tasks.event_labels import EventLabeller, Scene
from roadaware.tasks.road_events import AV_ACTION, Classes, claims_of

_USUAL_FPS = 12.0


def add_events(predictions: Predictions, head: EventHead, linker: LinkerConfig) -> Predictions:
    """Detections of agents with scores of actions, locations, duplexes, events and the own vehicle's action.

    Tables hold no pictures, so the own motion is only what boxes tell of it, and lights have no colours.

    Args:
        predictions: detections with `score` and dense `scores`, not linked.
        head: that scores.
        linker: what they will be linked with.

    Raises:
        UsageError: if they tell no agents, or the size of a video is not known.
    """
    kinds = dict(layout(predictions.meta, "boxes").kinds)
    labeller = EventLabeller(head, kinds, linker)
    facts = {str(row["video"]): row for row in predictions.videos.to_dicts()}
    names = [*facts, *predictions.boxes["video"].cast(pl.String).unique(maintain_order=True).to_list()]
    found = {}
    for name in dict.fromkeys(names):
        row = facts.get(name, {})
        size = int(row.get("width_px") or 0), int(row.get("height_px") or 0)
        if not all(size):
            raise UsageError(
                f"the size of video {name} is not known, which events need; give --truth with its annotations"
            )
        labeller.reset()
        found[name] = _label(predictions, name, labeller, size, row.get("fps"))
    own = layout(predictions.meta, "frames").kinds.get(AV_ACTION, ())
    classes = Classes(labeller.kinds, own or labeller.av_labels, advice_in(predictions.meta))
    return claims_of(found, classes, videos=predictions.videos, meta=predictions.meta)


def _label(
    predictions: Predictions, video: str, labeller: EventLabeller, size_px: tuple[int, int], fps: float | None
) -> list[FrameDetections]:
    """The detections of one video, in the order of its frames."""
    chosen = pl.col("video").cast(pl.String) == video
    boxes = predictions.boxes.filter(chosen).sort("frame", maintain_order=True)
    frames = np.unique(boxes["frame"].to_numpy())
    times: dict[int, float] = {}
    width = layout(predictions.meta, "frames").width
    drive: dict[int, npt.NDArray[np.float32]] = {}
    if not predictions.frames.is_empty():
        held = predictions.frames.filter(chosen)
        if width:
            drive = dict(zip(held["frame"].to_list(), matrix(held["scores"], width), strict=True))
        frames = np.union1d(frames, held["frame"].to_numpy())
        if "t_s" in held.columns and not held["t_s"].null_count():
            times = dict(zip(held["frame"].to_list(), held["t_s"].to_list(), strict=True))
    sides = boxes.select(CORNERS).to_numpy().astype(np.float32)
    score = boxes["score"].to_numpy().astype(np.float32)
    scores = matrix(boxes["scores"], layout(predictions.meta, "boxes").width)
    bounds = np.searchsorted(boxes["frame"].to_numpy(), [*frames.tolist(), np.iinfo(np.int64).max])
    told = []
    for k, frame in enumerate(frames.tolist()):
        part = slice(int(bounds[k]), int(bounds[k + 1]))
        said = drive.get(frame, np.zeros(width, np.float32))
        detections = FrameDetections(frame, sides[part], score[part], scores[part], said)
        scene = Scene(frame, times.get(frame, frame / (fps or _USUAL_FPS)), size_px)
        told.append(replace(labeller.step(detections, scene), frame=frame))
    return told
