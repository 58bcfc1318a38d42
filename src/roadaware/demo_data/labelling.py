"""A synthetic set to try the labelling of corner cases on: images, ground truth, proposals, corrected tasks."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from roadaware.arrays import Floats
from roadaware.datasets.label_studio_tasks import VIDEO_NAME
from roadaware.errors import UsageError
from roadaware.formats.coda import KIND
from roadaware.formats.proposal_tasks import (
    CONTROL,
    IMAGE,
    PICTURES,
    REGION,
    UNNAMED,
    add_class_names,
    format_task_name,
    select_task_proposals,
)
from roadaware.geometry.boxes import iou
from roadaware.io.folders import write_bytes
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes

# Synthetic annotators who correct proposals and err by a stated model, as a Label Studio export has them.


_NEAR, _CLOSE = 0.5, 0.9
_LOOK_S, _JUDGE_S, _CORRECT_S, _DRAW_S = 8.0, 2.0, 10.0, 30.0


@dataclass(frozen=True)
class Annotator:
    """Error model of an annotator who corrects proposals.

    Each corner case is missed with a chance, each by itself; where one is seen, a proposal that overlaps it
    by nine tenths is kept as it is, one by half is brought to it, and without one a box is drawn. All other
    proposals are deleted. Edges that are drawn are off by a normal distance each. A wrong class is drawn from
    all others by chance. Boxes on nothing are added, a Poisson number to each image. A look takes 8 s, a
    proposal 2 more, one that is moved 10, a box that is drawn 30, give or take a quarter.

    Args:
        edge_px: spread of drawn edges.
        missed: chance to miss a corner case.
        wrong: chance of a wrong class.
        spurious: boxes on nothing per image, on average.
        skipped: chance to skip an image.
        seed: of what is drawn.
    """

    edge_px: float = 2.0
    missed: float = 0.1
    wrong: float = 0.1
    spurious: float = 0.05
    skipped: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        chances = (self.missed, self.wrong, self.skipped)
        if (
            not 0 <= self.edge_px <= 100
            or not 0 <= self.spurious <= 100
            or not all(0 <= value <= 1 for value in chances)
        ):
            raise UsageError("chances lie from 0 to 1, pixels and numbers of boxes from 0 to 100")


def label_studio_export(truth: Scenes, sent: Predictions, annotators: Mapping[int, Annotator]) -> bytes:
    """A Label Studio export of proposals corrected by simulated annotators.

    Args:
        truth: with `boxes.corner_case`, and labels of the kind `corner`.
        sent: what was sent out.
        annotators: by their number.
    """
    true, proposed = _true(truth), _group_proposals(sent)
    words = sent.meta.vocabularies[KIND]
    tasks: list[dict[str, Any]] = []
    for row in sent.frames.iter_rows(named=True):
        place = (row["video"], row["frame"])
        annotations: list[dict[str, Any]] = []
        for number, model in annotators.items():
            # By image and annotator, so that one more image changes no other; crc32, since
            # hash() of a text differs from process to process.
            rng = np.random.default_rng([model.seed, number, zlib.crc32(place[0].encode()), place[1]])
            here = (true.get(place, []), proposed.get(place, []))
            annotations.append(_annotation(*here, words, row, number, model, rng))
        data = {
            IMAGE: f"/data/local-files/?d={row['picture']}",
            VIDEO_NAME: format_task_name(*place),
            "width": row["width_px"],
            "height": row["height_px"],
        }
        tasks.append({"id": row["task"], "data": data, "annotations": annotations})
    return json.dumps(tasks, allow_nan=False).encode()


def _annotation(
    true: list[tuple[Floats, str]],
    proposed: list[tuple[int, Floats, str]],
    words: Sequence[str],
    row: Mapping[str, Any],
    number: int,
    model: Annotator,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """One annotator's work on one image."""
    size = np.array([row["width_px"], row["height_px"]] * 2, dtype=np.float64)
    skips = bool(rng.random() < model.skipped)
    result: list[dict[str, Any]] = []
    used: set[int] = set()
    seconds = _LOOK_S + _JUDGE_S * len(proposed)
    for edges, word in true if not skips else []:
        if rng.random() < model.missed:
            continue
        others = [each for each in words if each != word]
        named = str(rng.choice(others)) if others and rng.random() < model.wrong else word
        drawn = _clip_box(edges + rng.normal(0, model.edge_px, 4), size)
        # The place of the proposal that overlaps most, by half at least, and how much; None where none does.
        free = [place for place in range(len(proposed)) if place not in used]
        if not free:
            place, share = None, 0.0
        else:
            shares = iou(edges[None], np.array([proposed[place][1] for place in free]))[0]
            best = int(shares.argmax())
            place, share = (free[best], float(shares[best])) if shares[best] >= _NEAR else (None, 0.0)
        if place is None:
            name, seconds = f"new-{len(result)}", seconds + _DRAW_S
        else:
            used.add(place)
            name = f"{REGION}{proposed[place][0]}"
            if share >= _CLOSE:
                drawn = proposed[place][1]
            else:
                seconds += _CORRECT_S
        result.append(_region(name, drawn, named, size))
    for _ in range(0 if skips else int(rng.poisson(model.spurious))):
        start, sides = rng.random(2) * 0.8, rng.uniform(0.03, 0.15, 2)
        drawn, seconds = np.concatenate([start, start + sides]) * size, seconds + _DRAW_S
        result.append(_region(f"new-{len(result)}", drawn, str(rng.choice(list(words) or [UNNAMED])), size))
    return {
        "id": 1000 * number + int(row["task"]),
        "completed_by": number,
        "was_cancelled": skips,
        "lead_time": round(float(seconds * rng.uniform(0.8, 1.25)), 3),
        "result": result,
    }


def _clip_box(edges: Floats, size: Floats) -> Floats:
    """Edges in order and inside the image, at least a pixel apart."""
    low, high = np.minimum(edges[:2], edges[2:]), np.maximum(edges[:2], edges[2:])
    low = np.clip(low, 0, size[:2] - 1)
    return np.concatenate([low, np.clip(np.maximum(high, low + 1), 1, size[:2])])


def _region(name: str, edges: Floats, word: str, size: Floats) -> dict[str, Any]:
    left, top, right, bottom = (edges / (size / 100)).tolist()
    value = {"x": left, "y": top, "width": right - left, "height": bottom - top, "rotation": 0}
    return {
        "id": name,
        "from_name": CONTROL,
        "to_name": IMAGE,
        "type": "rectanglelabels",
        "original_width": int(size[0]),
        "original_height": int(size[1]),
        "image_rotation": 0,
        "value": {**value, "rectanglelabels": [word]},
    }


def _true(truth: Scenes) -> dict[tuple[str, int], list[tuple[Floats, str]]]:
    """Corner cases of each image with their class."""
    words = dict(enumerate(truth.meta.vocabularies.get(KIND, ())))
    kinds = truth.labels.filter(pl.col("kind").cast(pl.String) == KIND).unique("box", keep="first")
    named = kinds.select(
        "box", word=pl.col("label").replace_strict(words, default=None, return_dtype=pl.String)
    )
    boxes = truth.boxes.filter(pl.col("corner_case").fill_null(value=False))
    boxes = boxes.with_columns(pl.col("video").cast(pl.String))
    boxes = boxes.join(named, on="box", how="left", maintain_order="left")
    found: dict[tuple[str, int], list[tuple[Floats, str]]] = {}
    for video, frame, word, *edges in boxes.select("video", "frame", "word", *CORNERS).iter_rows():
        found.setdefault((video, frame), []).append((np.array(edges, dtype=np.float64), word or UNNAMED))
    return found


def _group_proposals(sent: Predictions) -> dict[tuple[str, int], list[tuple[int, Floats, str]]]:
    """Proposals of each image with their numbers."""
    found: dict[tuple[str, int], list[tuple[int, Floats, str]]] = {}
    rows = add_class_names(sent).select("video", "frame", "box", "label", *CORNERS)
    for video, frame, box, word, *edges in rows.iter_rows():
        found.setdefault((video, frame), []).append((box, np.array(edges, dtype=np.float64), word))
    return found


CLASSES = ("traffic_cone", "dog", "debris", "barrier")
SCENES, PROPOSALS, EXPORT, PLANTED = "scenes", "proposals", "corrected.json", "planted.json"
"""Names in the folder: ground truth, proposals, what three annotators left, and what was planted."""
WIDTH, HEIGHT = 640, 360
_VIDEOS, _FRAMES = 18, 4
_COLOURS = ((235, 120, 20), (120, 80, 50), (90, 90, 100), (220, 220, 230))
_SIDES = ((24, 40), (50, 34), (46, 22), (80, 38))


@dataclass(frozen=True)
class LabellingFacts:
    """Facts of the written data.

    Args:
        pictures: how many.
        with_a_case: of them have a corner case.
        cases: corner cases in them.
        proposals: how many.
        annotators: by number, how each errs.
    """

    pictures: int
    with_a_case: int
    cases: int
    proposals: int
    annotators: dict[int, Annotator]


def generate_labelling_sets(seed: int = 0, videos: int = _VIDEOS) -> tuple[Scenes, Predictions]:
    """Ground truth and proposals: every third scene has corner cases, proposals are on things and on nothing.

    Args:
        seed: where chance comes from.
        videos: how many scenes, of four images each.
    """
    rng = np.random.default_rng(seed)
    true: list[tuple[str, int, int, int, *tuple[float, ...]]] = []
    predicted: list[tuple[str, int, float, int, *tuple[float, ...]]] = []
    for number in range(videos):
        name = f"street-{number:02d}"
        things = [_thing(rng) for _ in range(int(rng.integers(1, 4)) if number % 3 == 0 else 0)]
        for frame in range(_FRAMES):
            for place, (label, edges) in enumerate(things):
                # Where it is some frames later, as one drives by: larger, and further out.
                grown = 1.0 + 0.06 * frame
                middle = np.array([WIDTH / 2, 150.0] * 2)
                here: Floats = np.clip(
                    middle + (edges - middle) * grown, 0, [WIDTH - 1, HEIGHT - 1, WIDTH - 1, HEIGHT - 1]
                )
                true.append((name, frame, 10 * number + place, label, *here))
                if rng.random() < 0.75:
                    loose = rng.normal(0, 0.06 if rng.random() < 0.6 else 0.004, 4)
                    score = float(rng.beta(5, 2))
                    wide, high = here[2] - here[0], here[3] - here[1]
                    predicted.append(
                        (name, frame, score, label, *(here + loose * np.array([wide, high, wide, high])))
                    )
            for _ in range(int(rng.poisson(0.7))):
                label, edges = _thing(rng)
                predicted.append((name, frame, float(rng.beta(2, 4)), label, *edges))
    names = [f"street-{number:02d}" for number in range(videos)]
    boxes = pl.DataFrame(
        true, schema=["video", "frame", "tube", "label", "x1_px", "y1_px", "x2_px", "y2_px"], orient="row"
    ).with_row_index("box")
    boxes = boxes.with_columns(pl.col("box").cast(pl.Int64), corner_case=pl.lit(value=True))
    frames = pl.DataFrame(
        [
            (name, frame, f"pictures/{name}/{frame:06d}.png", True)
            for name in names
            for frame in range(_FRAMES)
        ],
        schema=["video", "frame", "path", "annotated"],
        orient="row",
    )
    truth = Scenes(
        videos=pl.DataFrame(
            {"video": names, "width_px": WIDTH, "height_px": HEIGHT, "fps": 2.0, "n_frames": _FRAMES}
        ).cast({"width_px": pl.Int64, "height_px": pl.Int64, "n_frames": pl.Int64, "fps": pl.Float32}),
        frames=frames,
        boxes=boxes.drop("label"),
        tubes=boxes.select("tube", "video").unique("tube", maintain_order=True),
        labels=boxes.select("box", "label", kind=pl.lit(KIND)),
        meta=Meta(dataset="synthetic streets", vocabularies={KIND: CLASSES}),
    )
    return truth, _proposals(predicted)


def write_labelling_demo(root: Path, *, seed: int = 0) -> LabellingFacts:
    """Write images, ground truth, proposals and what three annotators made of them; the same seed, the same bytes.

    The export is of tasks as they are when all images are sent out.

    Args:
        root: the folder, made if need be.
        seed: where chance comes from.

    Raises:
        DiskError: if a file cannot be written.
    """
    truth, predictions = generate_labelling_sets(seed)
    careful = Annotator(edge_px=1.5, missed=0.05, wrong=0.05, spurious=0.02, seed=seed)
    people = {
        1: careful,
        2: replace(careful, edge_px=3.0, missed=0.1),
        3: replace(careful, edge_px=2.0, missed=0.25, wrong=0.2, spurious=0.15, skipped=0.05),
    }
    frames = truth.frames.rename({"path": "picture"}).with_columns(width_px=WIDTH, height_px=HEIGHT)
    sent, _ = select_task_proposals(predictions, frames.select(list(PICTURES)), CLASSES)
    # Name and content of each image: a road under a sky, with its corner cases as plain shapes.
    things = truth.boxes.join(truth.labels.select("box", "label"), on="box").partition_by(
        "video", "frame", as_dict=True
    )
    found = []
    for video, frame, path in truth.frames.select("video", "frame", "path").iter_rows():
        image = np.full((HEIGHT, WIDTH, 3), (150, 180, 210), dtype=np.uint8)
        image[150:] = (95, 95, 98)
        image[150:, WIDTH // 2 - 3 : WIDTH // 2 + 3] = (225, 225, 225)
        held = things.get((video, frame))
        for label, *edges in (
            [] if held is None else held.select("label", "x1_px", "y1_px", "x2_px", "y2_px").iter_rows()
        ):
            left, top, right, bottom = (round(edge) for edge in edges)
            image[top : bottom + 1, left : right + 1] = _COLOURS[label]
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "PNG")
        found.append((path, stream.getvalue()))
    for name, data in found:
        write_bytes(root / name, data)
    save(truth, root / SCENES, overwrite=True)
    save(predictions, root / PROPOSALS, overwrite=True)
    write_bytes(root / EXPORT, label_studio_export(truth, sent, people))
    places = truth.boxes.select("video", "frame").unique()
    facts = LabellingFacts(len(truth.frames), len(places), len(truth.boxes), len(predictions.boxes), people)
    write_bytes(root / PLANTED, (json.dumps(asdict(facts), indent=1, sort_keys=True) + "\n").encode())
    return facts


def _thing(rng: np.random.Generator) -> tuple[int, Floats]:
    """A class and where it is in the first image."""
    label = int(rng.integers(0, len(CLASSES)))
    wide, high = np.array(_SIDES[label]) * rng.uniform(0.6, 1.3)
    left, foot = rng.uniform(60, WIDTH - 180), rng.uniform(200, 300)
    return label, np.array([left, foot - high, left + wide, foot])


def _proposals(rows: list[tuple[str, int, float, int, *tuple[float, ...]]]) -> Predictions:
    boxes = pl.DataFrame(
        rows, schema=["video", "frame", "score", "label", "x1_px", "y1_px", "x2_px", "y2_px"], orient="row"
    ).with_row_index("box")
    boxes = boxes.with_columns(pl.col("box").cast(pl.Int64), corner_case=pl.lit(value=True))
    named = boxes.filter(pl.col("box") % 3 != 0)
    return Predictions(
        boxes=boxes.drop("label"),
        labels=named.select("box", "label", "score", kind=pl.lit(KIND)),
        meta=Meta(dataset="synthetic streets", vocabularies={KIND: CLASSES}),
    )
