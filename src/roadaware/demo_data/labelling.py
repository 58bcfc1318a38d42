"""A synthetic set to try the labelling of corner cases on: images, ground truth, proposals, corrected tasks."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from roadaware.arrays import Floats
from roadaware.demo_data.annotators import Annotator, label_studio_export
from roadaware.formats.coda import KIND
from roadaware.formats.proposal_tasks import PICTURES, select_task_proposals
from roadaware.io.files import build_disk_error, write_atomically
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes

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
    claimed: list[tuple[str, int, float, int, *tuple[float, ...]]] = []
    for number in range(videos):
        name = f"street-{number:02d}"
        things = [_thing(rng) for _ in range(int(rng.integers(1, 4)) if number % 3 == 0 else 0)]
        for frame in range(_FRAMES):
            for place, (label, edges) in enumerate(things):
                here = _extrapolate_box(edges, frame)
                true.append((name, frame, 10 * number + place, label, *here))
                if rng.random() < 0.75:
                    loose = rng.normal(0, 0.06 if rng.random() < 0.6 else 0.004, 4)
                    score = float(rng.beta(5, 2))
                    claimed.append((name, frame, score, label, *(here + loose * _spans(here))))
            for _ in range(int(rng.poisson(0.7))):
                label, edges = _thing(rng)
                claimed.append((name, frame, float(rng.beta(2, 4)), label, *edges))
    return _truth(true, videos), _proposals(claimed)


def write_labelling_demo(root: Path, *, seed: int = 0) -> LabellingFacts:
    """Write images, ground truth, proposals and what three annotators made of them; the same seed, the same bytes.

    The export is of tasks as they are when all images are sent out.

    Args:
        root: the folder, made if need be.
        seed: where chance comes from.

    Raises:
        DiskError: if a file cannot be written.
    """
    truth, claims = generate_labelling_sets(seed)
    careful = Annotator(edge_px=1.5, missed=0.05, wrong=0.05, spurious=0.02, seed=seed)
    people = {
        1: careful,
        2: replace(careful, edge_px=3.0, missed=0.1),
        3: replace(careful, edge_px=2.0, missed=0.25, wrong=0.2, spurious=0.15, skipped=0.05),
    }
    frames = truth.frames.rename({"path": "picture"}).with_columns(width_px=WIDTH, height_px=HEIGHT)
    sent, _ = select_task_proposals(claims, frames.select(list(PICTURES)), CLASSES)
    for name, data in _pictures(truth):
        _write(root / name, data)
    save(truth, root / SCENES, overwrite=True)
    save(claims, root / PROPOSALS, overwrite=True)
    _write(root / EXPORT, label_studio_export(truth, sent, people))
    places = truth.boxes.select("video", "frame").unique()
    facts = LabellingFacts(len(truth.frames), len(places), len(truth.boxes), len(claims.boxes), people)
    _write(root / PLANTED, (json.dumps(asdict(facts), indent=1, sort_keys=True) + "\n").encode())
    return facts


def _thing(rng: np.random.Generator) -> tuple[int, Floats]:
    """A class and where it is in the first image."""
    label = int(rng.integers(0, len(CLASSES)))
    wide, high = np.array(_SIDES[label]) * rng.uniform(0.6, 1.3)
    left, foot = rng.uniform(60, WIDTH - 180), rng.uniform(200, 300)
    return label, np.array([left, foot - high, left + wide, foot])


def _extrapolate_box(edges: Floats, frame: int) -> Floats:
    """Where it is some frames later, as one drives by: larger, and further out."""
    grown = 1.0 + 0.06 * frame
    middle = np.array([WIDTH / 2, 150.0] * 2)
    found: Floats = np.clip(
        middle + (edges - middle) * grown, 0, [WIDTH - 1, HEIGHT - 1, WIDTH - 1, HEIGHT - 1]
    )
    return found


def _spans(edges: Floats) -> Floats:
    wide, high = edges[2] - edges[0], edges[3] - edges[1]
    return np.array([wide, high, wide, high])


def _truth(rows: list[tuple[str, int, int, int, *tuple[float, ...]]], videos: int) -> Scenes:
    names = [f"street-{number:02d}" for number in range(videos)]
    boxes = pl.DataFrame(
        rows, schema=["video", "frame", "tube", "label", "x1_px", "y1_px", "x2_px", "y2_px"], orient="row"
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
    return Scenes(
        videos=pl.DataFrame(
            {"video": names, "width_px": WIDTH, "height_px": HEIGHT, "fps": 2.0, "n_frames": _FRAMES}
        ).cast({"width_px": pl.Int64, "height_px": pl.Int64, "n_frames": pl.Int64, "fps": pl.Float32}),
        frames=frames,
        boxes=boxes.drop("label"),
        tubes=boxes.select("tube", "video").unique("tube", maintain_order=True),
        labels=boxes.select("box", "label", kind=pl.lit(KIND)),
        meta=Meta(dataset="synthetic streets", vocabularies={KIND: CLASSES}),
    )


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


def _pictures(truth: Scenes) -> list[tuple[str, bytes]]:
    """Name and content of each image: a road under a sky, with its corner cases as plain shapes."""

    things = truth.boxes.join(truth.labels.select("box", "label"), on="box").partition_by(
        "video", "frame", as_dict=True
    )
    found = []
    for video, frame, path in truth.frames.select("video", "frame", "path").iter_rows():
        picture = np.full((HEIGHT, WIDTH, 3), (150, 180, 210), dtype=np.uint8)
        picture[150:] = (95, 95, 98)
        picture[150:, WIDTH // 2 - 3 : WIDTH // 2 + 3] = (225, 225, 225)
        held = things.get((video, frame))
        for label, *edges in (
            [] if held is None else held.select("label", "x1_px", "y1_px", "x2_px", "y2_px").iter_rows()
        ):
            left, top, right, bottom = (round(edge) for edge in edges)
            picture[top : bottom + 1, left : right + 1] = _COLOURS[label]
        stream = io.BytesIO()
        Image.fromarray(picture).save(stream, "PNG")
        found.append((path, stream.getvalue()))
    return found


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise build_disk_error(path, len(data), error) from error
    write_atomically(path, data)
