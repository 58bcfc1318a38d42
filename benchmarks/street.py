"""Detectors on real images of streets: found, missed, false, and average precision, each with its interval.

    python -m benchmarks.street [--weights FILE] [--ours FILE ...] [--draw FOLDER]

Images are found below ROADAWARE_DATA_DIR; none of them is part of the project. `street_labels.json` says
what is in them and how that was found out. Weights default to `street-small`, where it is installed; with
`--ours`, files of the project's own network are judged, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.geometry.boxes import iou
from roadaware.reports.text import format_interval
from roadaware.statistics.average_precision import average_precision
from roadaware.statistics.intervals import Units

LABELS = Path(__file__).with_name("street_labels.json")
GROUPS = {"vehicles": "v", "people": "p"}
AGENTS = {"vehicles": ("Car", "MedVeh", "LarVeh", "Bus", "EmVeh"), "people": ("Ped",)}
SHOWN = 0.3
"""Score from which a box counts as found or false in the table."""
_IOU, _INSIDE = 0.5, 0.5
_MOST_WEIGHTINGS, _SEED = 1000, 0


@dataclass(frozen=True, eq=False)
class Judged:
    """What a detector found in one image, of one group.

    Args:
        score, hit: (n,) of each box that counts, by falling score.
        n_truth: how many there are.
    """

    score: npt.NDArray[np.float64]
    hit: npt.NDArray[np.bool_]
    n_truth: int


def read_picture(name: str, root: Path) -> npt.NDArray[np.uint8]:
    """(H, W, 3) of an image, or of a frame of a video or GIF (`NAME#FRAME`)."""
    from roadaware.io.images import read_still
    from roadaware.online.sources import open_source

    path, _, frame = name.partition("#")
    if not frame:
        return read_still(root / path)
    source = open_source(str(root / path))
    for place in range(int(frame) + 1):
        found = source.next(0.0, 60.0)
        if found is not None and place == int(frame):
            return found.picture
    raise ValueError(f"{name}: no such frame")


def judge(
    boxes: npt.ArrayLike,
    score: npt.ArrayLike,
    truth: Sequence[Sequence[float]],
    ignored: Sequence[Sequence[float]],
) -> Judged:
    """The boxes of one group that count, the best first: each true box is found once, at an overlap of .5.

    A box that finds nothing and half of which lies in a region that is passed over does not count.
    """
    found, value = np.asarray(boxes, np.float64).reshape(-1, 4), np.asarray(score, np.float64)
    order = np.argsort(-value, kind="stable")
    found, value = found[order], value[order]
    overlap = iou(found, np.asarray(truth, np.float64).reshape(-1, 4))
    free, hit, counts = (
        np.ones(len(truth), np.bool_),
        np.zeros(len(found), np.bool_),
        np.ones(len(found), np.bool_),
    )
    for row in range(len(found)):
        fit = np.where(free, overlap[row], 0)
        if len(truth) and fit.max() >= _IOU:
            free[fit.argmax()], hit[row] = False, True
        else:
            counts[row] = not _inside(found[row], ignored)
    return Judged(value[counts], hit[counts], len(truth))


def _inside(box: npt.NDArray[np.float64], regions: Sequence[Sequence[float]]) -> bool:
    area = max((box[2] - box[0]) * (box[3] - box[1]), 1e-9)
    for x1, y1, x2, y2 in regions:
        shared = max(min(box[2], x2) - max(box[0], x1), 0) * max(min(box[3], y2) - max(box[1], y1), 0)
        if shared / area >= _INSIDE:
            return True
    return False


def precision_of(parts: Sequence[Judged]) -> float:
    """Average precision of all images together, by the area under the envelope."""
    score = np.concatenate([part.score for part in parts])
    hit = np.concatenate([part.hit for part in parts])
    return average_precision(
        hit[np.argsort(-score, kind="stable")], sum(p.n_truth for p in parts), "envelope"
    )


def summary(parts: Sequence[Judged]) -> dict[str, Any]:
    """Counts at `SHOWN`, average precision, and its interval over images by the jackknife."""
    units = Units(len(parts), _MOST_WEIGHTINGS, _SEED)
    values = [precision_of(list(compress(parts, kept))) for kept in chain.from_iterable(units.weights())]
    ap = precision_of(parts)
    interval = units.interval(ap, np.array(values))
    shown = [part.score >= SHOWN for part in parts]
    hits = sum(int(part.hit[at].sum()) for part, at in zip(parts, shown, strict=True))
    return {
        "truth": sum(part.n_truth for part in parts),
        "found": hits,
        "false": sum(int(at.sum()) for at in shown) - hits,
        "ap": ap,
        "low": interval.low,
        "high": interval.high,
    }


def detectors(weights: Path) -> dict[str, Any]:
    """The detectors that are compared, by name."""
    from roadaware.models.graphs.street import open_street
    from roadaware.models.graphs.views import Views
    from roadaware.models.loading import open_stream
    from roadaware.online.setup import find_bundled_weights

    found: dict[str, Any] = {"bundled": open_stream([find_bundled_weights()])}
    for size, tiles in ((640, False), (1024, False), (1280, False), (640, True), (1024, True)):
        found[f"{size}{' and tiles' if tiles else ''}"] = open_street(weights, Views(size, tiles))
    return found


def open_own(files: Sequence[Path]) -> dict[str, Any]:
    """The project's own networks, by the name of their file."""
    from roadaware.models.loading import open_stream

    return {file.stem: open_stream([file]) for file in files}


def run(judged: dict[str, Any], root: Path, draw: Path | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """Detector to group to what came out."""
    said = json.loads(LABELS.read_text(encoding="utf-8"))["pictures"]
    pictures = {name: read_picture(name, root) for name in said}
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for name, detector in judged.items():
        agents = np.array(detector.kinds["agent"])
        parts: dict[str, list[Judged]] = {group: [] for group in GROUPS}
        for picture, pixels in pictures.items():
            detector.reset()
            answer = [*detector.step(pixels), *detector.finish()][0]
            columns = answer.scores[:, : len(agents)]
            best = agents[columns.argmax(axis=1)] if len(columns) else np.zeros(0, str)
            for group, key in GROUPS.items():
                mine = np.isin(best, AGENTS[group])
                of = said[picture]
                parts[group].append(judge(answer.boxes[mine], answer.agentness[mine], of[key], of["i"]))
            if draw is not None:
                _draw(draw / name.replace(" ", "-"), picture, pixels, answer, best, said[picture])
        result[name] = {group: summary(each) for group, each in parts.items()}
    return result


def _draw(folder: Path, name: str, pixels: Any, answer: Any, best: Any, truth: Any) -> None:
    from PIL import Image, ImageDraw

    folder.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    pen = ImageDraw.Draw(image)
    for box in truth["i"]:
        pen.rectangle(box, outline=(128, 128, 128))
    for box in (*truth["v"], *truth["p"]):
        pen.rectangle(box, outline=(255, 255, 255))
    for box, score, agent in zip(answer.boxes, answer.agentness, best, strict=True):
        if score >= SHOWN:
            pen.rectangle(box.tolist(), outline=(255, 60, 60) if agent == "Ped" else (60, 255, 60))
            pen.text((box[0] + 2, box[1] + 1), f"{agent} {score:.2f}", fill=(255, 255, 0))
    image.save(folder / f"{Path(name).stem[-40:]}{name.partition('#')[2]}.png")


def main() -> None:
    """Print the table."""
    from roadaware.models.catalogue.entries import find_entry, find_installed_path

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=None)
    parser.add_argument("--ours", type=Path, nargs="+", default=None)
    parser.add_argument("--draw", type=Path, default=None)
    asked = parser.parse_args()
    root = os.environ.get("ROADAWARE_DATA_DIR")
    if not root:
        raise SystemExit("set ROADAWARE_DATA_DIR to the folder of the images")
    weights = asked.weights or find_installed_path(find_entry("street-small"))
    if weights is None and asked.ours is None:
        raise SystemExit("`roadaware models get street-small` first, or name --weights or --ours")
    judged = open_own(asked.ours) if asked.ours else detectors(weights)
    for name, groups in run(judged, Path(root), asked.draw).items():
        for group, found in groups.items():
            print(
                f"{name:16} {group:9} found {found['found']:3} of {found['truth']:3}, "
                f"false {found['false']:3}, AP {found['ap']:.3f} ({format_interval(found['low'], found['high'])})"
            )


if __name__ == "__main__":
    main()
