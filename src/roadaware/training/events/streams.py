"""Streams of labelled tubes that the event head's network learns from, of simulated scenes and of saved tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats32, Ints
from roadaware.errors import InputError
from roadaware.models.event_head.features import FOCAL_SHARE
from roadaware.models.event_head.layout import FEATURES
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.rows import (
    DetectorErrors,
    MotionNoise,
    iterate_linked_frames,
    simulate_inputs,
)
from roadaware.training.events.scenes import SceneTruth

LABELS = (*(f"action/{name}" for name in ACTIONS), *(f"location/{name}" for name in LOCATIONS))
"""Labels of ROAD that the event head knows, each with its kind."""
PARKED_WEIGHT = 0.3
"""Weight of a parked vehicle: there are many, and ROAD does not label them."""
_USUAL_FPS = 12.0
_OCCLUDED = {"none": 0, "part": 1, "full": 2}
_MOST_TUBES = 1_000_000
"""Of a scene: numbers of tubes are those of the linker, from so many times the number of the scene on."""


@dataclass(frozen=True, eq=False)
class TubeRows:
    """Boxes of linked tubes in the order of a stream, with features and labels.

    Args:
        labels: that somebody annotated, as `kind/label`; others are not known of these boxes.
        x: (n, features).
        truth: (n, labels) which are true.
        weight: (n,) of each box in learning.
        judged: (n,) whether it counts in a test: parked vehicles do not, false detections do.
        tube: (n,) numbers; a tube that begins later has a larger one.
        scene: (n,) number of the scene.
    """

    labels: tuple[str, ...]
    x: Floats32
    truth: Bools
    weight: Floats32
    judged: Bools
    tube: Ints
    scene: Ints

    def __len__(self) -> int:
        return len(self.x)


def make_tube_rows(
    truth: SceneTruth,
    number: int,
    seed: int,
    labels: tuple[str, ...] = LABELS,
    *,
    errors: DetectorErrors | None = None,
    noise: MotionNoise | None = None,
    pixels: bool | None = None,
    every: int = 1,
) -> TubeRows:
    """The boxes of one scene, as a detector that errs and the project's linker find them.

    Args:
        truth: of the scene.
        number: of the scene in the stream.
        seed: of chance.
        labels: of `LABELS` that are annotated.
        errors: of the detector; drawn where None.
        noise: of the estimate of the own motion; the measured one where None.
        pixels: whether the own motion is estimated from images; three times of four where None.
        every: only every so many-th frame becomes rows.
    """
    found, motions, focal = simulate_inputs(truth, number, seed, errors=errors, noise=noise, pixels=pixels)
    held, tubes, xs = [], [], []
    for frame, rows, linked, x, _ in iterate_linked_frames(truth, found, motions, focal):
        if frame % every == 0 and len(rows):
            held.append(rows)
            tubes.append(linked)
            xs.append(x)
    rows = np.concatenate(held) if held else np.zeros(0, np.int64)
    source = found.source[rows]
    real = source >= 0
    place = np.where(real, truth.location[source] if len(truth.location) else -1, -1)
    action = (
        truth.action[source] & real[:, None]
        if len(truth.action)
        else np.zeros((len(rows), len(ACTIONS)), bool)
    )
    whole = np.hstack([action, place[:, None] == np.arange(len(LOCATIONS))])
    parked = truth.parked[source] & real if len(truth.parked) else np.zeros(len(rows), bool)
    columns = [LABELS.index(name) for name in labels]
    tube = np.concatenate(tubes).astype(np.int64) if tubes else np.zeros(0, np.int64)
    return TubeRows(
        labels,
        np.concatenate(xs).astype(np.float32) if xs else np.zeros((0, len(FEATURES)), np.float32),
        whole[:, columns],
        np.where(parked, PARKED_WEIGHT, 1.0).astype(np.float32),
        ~parked,
        number * _MOST_TUBES + tube,
        np.full(len(rows), number),
    )  # fmt: skip


def join_tube_rows(parts: list[TubeRows], labels: tuple[str, ...] | None = None) -> TubeRows:
    """The boxes of several scenes one after another.

    Args:
        parts: with equal labels.
        labels: theirs; needed where there is no part.

    Raises:
        ValueError: if their labels differ.
    """
    known = labels if labels is not None else parts[0].labels
    if any(part.labels != known for part in parts):
        raise ValueError("scenes with different labels are learnt from one after another, not joined")
    empty = TubeRows(
        known, np.zeros((0, len(FEATURES)), np.float32), np.zeros((0, len(known)), bool), np.zeros(0, np.float32),
        np.zeros(0, bool), np.zeros(0, np.int64), np.zeros(0, np.int64),
    )  # fmt: skip
    names = ("x", "truth", "weight", "judged", "tube", "scene")
    return TubeRows(
        known, **{name: np.concatenate([getattr(part, name) for part in (empty, *parts)]) for name in names}
    )


@dataclass(frozen=True, eq=False)
class TableTruths:
    """What saved tables hold for the event head.

    Args:
        scenes: of each video its ground truth; own motion and parked vehicles are not known of tables.
        labels: of `LABELS` that the tables have words for.
        unknown: labels of actions and locations that the head does not know, which are left out.
        passed: what else was left out: reason to number of boxes.
    """

    scenes: tuple[SceneTruth, ...]
    labels: tuple[str, ...]
    unknown: tuple[str, ...]
    passed: dict[str, int]


def read_table_truths(scenes: Scenes, videos: list[str]) -> TableTruths:
    """The ground truth of videos as the event head's training has it; labels are found by name.

    A box needs an agent of ROAD and a tube; where it has several agents or locations, the first counts. Frame rates that
    are not known are taken to be 12, the focal length that of a usual camera.

    Args:
        scenes: tables with boxes, tubes and labels of the kinds agent, action and location.
        videos: which of them, in the order of the stream.

    Raises:
        InputError: if a video is not there or its size is not known, or the tables have no agents, or neither actions
            nor locations of ROAD.
    """
    words = scenes.meta.vocabularies
    name = scenes.meta.dataset or "this set"
    if not set(words.get("agent", ())) & set(ROAD_AGENTS):
        raise InputError(f"{name} has no agents of ROAD ({', '.join(ROAD_AGENTS)}), of which events are")
    labels = tuple(
        label for label in LABELS if label.partition("/")[2] in words.get(label.partition("/")[0], ())
    )
    if not labels:
        raise InputError(f"{name} has neither actions nor locations of ROAD")
    unknown = tuple(
        f"{kind}/{word}"
        for kind in ("action", "location")
        for word in words.get(kind, ())
        if f"{kind}/{word}" not in LABELS
    )
    passed: Counter[str] = Counter()
    hot = _collect_labels(scenes, passed)
    facts = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    boxes = scenes.boxes
    if "ignore" in boxes.columns:
        passed["marked to be ignored"] += int(boxes["ignore"].fill_null(False).sum())
        boxes = boxes.filter(~pl.col("ignore").fill_null(False))
    found = []
    for video in videos:
        row = facts.get(video)
        if row is None:
            raise InputError(f"{name} has no video {video}")
        size = int(row.get("width_px") or 0), int(row.get("height_px") or 0)
        if not all(size):
            raise InputError(f"the size of video {video} of {name} is not known, which the event head needs")
        part = boxes.filter(pl.col("video").cast(pl.String) == video).sort("frame", maintain_order=True)
        found.append(_build_truth(video, row, size, part, hot, passed))
    return TableTruths(tuple(found), labels, unknown, {why: n for why, n in passed.items() if n})


def _collect_labels(scenes: Scenes, passed: Counter[str]) -> dict[str, tuple[Ints, Ints]]:
    """Of each kind the boxes and the place of their labels among ROAD's, in the order of the tables."""
    found = {}
    for kind, names in (("agent", ROAD_AGENTS), ("action", ACTIONS), ("location", LOCATIONS)):
        words = scenes.meta.vocabularies.get(kind, ())
        place = np.array([names.index(word) if word in names else -1 for word in words] or [-1], np.int64)
        rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind).select("box", "label")
        index = place[rows["label"].to_numpy()] if len(rows) else np.zeros(0, np.int64)
        box = rows["box"].to_numpy().astype(np.int64)
        box, index = box[index >= 0], index[index >= 0]
        if kind != "action":
            _, first = np.unique(box, return_index=True)
            passed[f"second {kind}s"] += len(box) - len(first)
            box, index = box[first], index[first]
        found[kind] = (box, index)
    return found


def _build_truth(
    video: str,
    row: dict[str, object],
    size_px: tuple[int, int],
    boxes: pl.DataFrame,
    hot: dict[str, tuple[Ints, Ints]],
    passed: Counter[str],
) -> SceneTruth:
    number = boxes["box"].to_numpy().astype(np.int64)
    order = np.argsort(number)

    def find(box: Ints) -> tuple[Ints, Bools]:
        """Rows of boxes by number, and which of them are of this video."""
        if not len(number):
            return np.zeros(0, np.int64), np.zeros(len(box), np.bool_)
        at = np.searchsorted(number[order], box)
        at = order[np.minimum(at, len(number) - 1)]
        here = number[at] == box
        return at[here], here

    one = {}
    for kind in ("agent", "location"):
        box, index = hot[kind]
        at, here = find(box)
        one[kind] = np.full(len(number), -1, np.int64)
        one[kind][at] = index[here]
    action = np.zeros((len(number), len(ACTIONS)), np.bool_)
    at, here = find(hot["action"][0])
    action[at, hot["action"][1][here]] = True
    tracked = boxes["tube"].is_not_null().to_numpy()
    kept = tracked & (one["agent"] >= 0)
    passed["without a tube"] += int((~tracked).sum())
    passed["without an agent of ROAD"] += int((tracked & (one["agent"] < 0)).sum())
    hidden = np.zeros(len(number), np.int64)
    if "occlusion" in boxes.columns:
        words = boxes["occlusion"].cast(pl.String)
        hidden = words.replace_strict(_OCCLUDED, default=0, return_dtype=pl.Int64).to_numpy()
    frame = boxes["frame"].to_numpy().astype(np.int64)
    stated = row.get("n_frames")
    n_frames = max(int(stated) if isinstance(stated, int) else 0, int(frame.max(initial=-1)) + 1)
    still = np.zeros(n_frames)
    fps = row.get("fps")
    return SceneTruth(
        name=video, size_px=size_px, focal_px=FOCAL_SHARE * size_px[0],
        fps=float(fps) if isinstance(fps, int | float) and fps > 0 else _USUAL_FPS, height_m=1.5,
        left_hand=row.get("drive_on") == "left", frame=frame[kept],
        tube=boxes["tube"].fill_null(-1).to_numpy().astype(np.int64)[kept],
        box=boxes.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)[kept],
        occlusion=hidden[kept], parked=np.zeros(int(kept.sum()), np.bool_), agent=one["agent"][kept],
        action=action[kept], location=one["location"][kept],
        yaw_rps=still, pitch_rps=still.copy(), speed_mps=still.copy(), av=np.zeros(n_frames, np.int64),
    )  # fmt: skip
