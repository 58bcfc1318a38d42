"""Random sets in COCO's form, what pycocotools makes of them, and the same as Scenes and Predictions."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from roadaware.formats.coco import read_results
from roadaware.formats.coda import build_predictions_index, read_corner_cases
from roadaware.scenes.tables import Predictions, Scenes

NAMES = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large")
RECALLS = ("ar1", "ar10", "ar", "ar_small", "ar_medium", "ar_large")


def random_set(
    seed: int, *, pictures: int = 12, classes: int = 3, per_picture: int = 14, fine: bool = False
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Truth and results with ties of scores and overlaps, crowds, marks, areas of outlines, empty images.

    Args:
        seed: of everything.
        pictures: how many there are, in no order of their numbers.
        classes: how many there are; the last has no truth.
        per_picture: predictions in each, on average.
        fine: sides with decimals, instead of whole ones that make equal overlaps.
    """
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(pictures) + 1
    images = [{"id": int(n), "file_name": f"{n:03d}.jpg", "width": 320, "height": 240} for n in numbers]
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image in images:
        for _ in range(rng.integers(0, 7)):
            box = _box(rng, fine)
            area = float(box[2] * box[3]) * (1.0 if rng.random() < 0.6 else rng.uniform(0.4, 1.0))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": int(rng.integers(1, max(2, classes))),
                    "bbox": box,
                    "area": area,
                    "iscrowd": int(rng.random() < 0.15),
                    "ignore": int(rng.random() < 0.1),
                    "corner_case": bool(rng.random() < 0.5),
                }
            )
        near = [a["bbox"] for a in annotations if a["image_id"] == image["id"]]
        for _ in range(rng.poisson(per_picture)):
            box = _box(rng, fine)
            if near and rng.random() < 0.7:
                box = [max(0, v + rng.integers(-6, 7)) for v in near[rng.integers(0, len(near))]]
                box = [float(v) for v in box]
            results.append(
                {
                    "image_id": image["id"],
                    "category_id": int(rng.integers(1, classes + 1)),
                    "bbox": box,
                    "score": float(np.round(rng.random(), 1)),
                }
            )
    categories = [{"id": n, "name": f"class {n}"} for n in range(1, classes + 1)]
    return {"images": images, "categories": categories, "annotations": annotations}, results


def _box(rng: np.random.Generator, fine: bool) -> list[float]:
    scale = float(rng.choice([8, 32, 100]))
    found = [*rng.uniform(0, 120, 2), *rng.uniform(1, 2.4 * scale, 2)]
    return [float(np.round(v, 1)) if fine else float(np.ceil(v)) for v in found]


def official(
    truth: dict[str, Any], results: list[dict[str, Any]], *, loose: bool = False, use_cats: bool = True
) -> dict[str, float]:
    """What pycocotools says, by our names; -1 where it knows none."""
    with contextlib.redirect_stdout(io.StringIO()):
        held = COCO()
        held.dataset = json.loads(json.dumps({"info": {}, **truth}))
        held.createIndex()
        judge = COCOeval(held, held.loadRes(json.loads(json.dumps(results))), "bbox")
        judge.params.useCats = int(use_cats)
        if loose:
            judge.params.iouThrs = np.array([0.3])
        judge.evaluate()
        judge.accumulate()
        if loose:
            return {f"ar30{size}": _mean(judge.eval["recall"][:, :, n, -1]) for n, size in enumerate(SIZES)}
        judge.summarize()
    found = dict(zip((*NAMES, *RECALLS), map(float, judge.stats), strict=True))
    recall = judge.eval["recall"]
    found |= {f"ar50{size}": _mean(recall[0, :, n, -1]) for n, size in enumerate(SIZES)}
    return found | {"ar75": _mean(recall[5, :, 0, -1])}


SIZES = ("", "_small", "_medium", "_large")


def _mean(values: np.ndarray) -> float:
    known = values[values > -1]
    return float(known.mean()) if len(known) else -1.0


def read_back(
    truth: dict[str, Any], results: list[dict[str, Any]], folder: Path, **how: Any
) -> tuple[Scenes, Predictions]:
    """The same through files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    scenes = read_corner_cases(folder / "truth.json")
    categories = {row["id"]: row["name"] for row in truth["categories"]}
    return scenes, read_results(folder / "results.json", build_predictions_index(scenes, categories), **how)


def with_corners(scenes: Scenes, corner: list[bool] | None = None) -> Scenes:
    """The same, every box a corner case unless told."""
    column = pl.Series("corner_case", corner if corner is not None else [True] * len(scenes.boxes))
    return scenes.with_tables(boxes=scenes.boxes.with_columns(column))
