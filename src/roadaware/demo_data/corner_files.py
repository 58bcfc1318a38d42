"""Synthetic annotations of corner cases on disk, in the two forms of CODA, with predictions of synthetic detectors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.io.files import write_atomically

BASE = "corner_case.json"
COMMON, CORNER = "instance_val_common.json", "instance_val_agnostic_corner.json"
SODA10M, BDD100K, PROPOSALS, OWN = "soda10m.json", "bdd100k.json", "proposals.json", "challenge.json"

_DOMAINS = (("once", 1920, 1020, ".jpg"), ("once", 1920, 1020, ".jpg"), ("kitti", 1242, 375, ".png"))
_NUSCENES = ("nuscenes", 1600, 900, ".jpg")
# Name, id, super-class, how often, width and height in pixels of one at 10 m, id to detectors of SODA10M and
# BDD100K (0 where they have no such class).
_THINGS: tuple[tuple[str, int, str, float, int, int, int, int], ...] = (
    ("pedestrian", 1, "pedestrian", 0.14, 60, 160, 1, 1),
    ("cyclist", 2, "cyclist", 0.06, 90, 160, 2, 2),
    ("car", 3, "vehicle", 0.16, 260, 160, 3, 3),
    ("truck", 4, "vehicle", 0.05, 330, 260, 4, 4),
    ("bus", 7, "vehicle", 0.04, 380, 280, 0, 5),
    ("bicycle", 8, "vehicle", 0.05, 120, 90, 0, 8),
    ("stroller", 11, "vehicle", 0.03, 80, 110, 0, 0),
    ("dog", 17, "animal", 0.05, 90, 60, 0, 0),
    ("barrier", 19, "traffic facility", 0.14, 180, 90, 0, 0),
    ("traffic_cone", 24, "traffic facility", 0.18, 40, 70, 0, 0),
    ("debris", 28, "obstruction", 0.06, 120, 50, 0, 0),
    ("misc", 43, "misc", 0.04, 100, 100, 0, 0),
)
_COMMON_IDS = (1, 2, 3, 4, 7)


@dataclass(frozen=True)
class CornerFacts:
    """Facts of the written data, for comparison with findings.

    Args:
        pictures: how many.
        objects: annotated in all of them.
        corner_cases: how many of the objects are corner cases.
        predictions: of each file of predictions.
    """

    pictures: int
    objects: int
    corner_cases: int
    predictions: dict[str, int]


def write_corner_demo(root: Path, *, seed: int = 0, pictures: int = 36) -> CornerFacts:
    """Write annotations and predictions into a folder and say what is in it; the same seed, the same bytes.

    `corner_case.json` is in the form of CODA's base set: corner cases alone, with period and weather; the
    pair `instance_val_common.json` and `instance_val_agnostic_corner.json` in that of 2022, about the same
    images. Predictions are COCO results of detectors that learnt on SODA10M and BDD100K, of a region proposal
    network, and of a detector that knows CODA's classes.

    Args:
        root: the folder, made if need be.
        seed: where chance comes from.
        pictures: how many.

    Raises:
        DiskError: if a file cannot be written.
    """
    rng = np.random.default_rng(seed)
    images = [_image(number, rng) for number in range(1, pictures + 1)]
    objects = [thing for image in images for thing in _objects(image, rng)]
    for number, thing in enumerate(objects, 1):
        thing["id"] = number
    names = [{"id": n, "name": word, "supercategory": above} for word, n, above, *_ in _THINGS]
    common = [thing for thing in objects if thing["category_id"] in _COMMON_IDS]
    corner = [thing for thing in objects if thing["corner_case"]]
    agnostic = [{**thing, "category_id": 1} for thing in corner]
    plain = [{key: row[key] for key in ("id", "file_name", "width", "height")} for row in images]
    predictions = {
        SODA10M: _predictions(images, objects, 6, rng, every=0.75, novel=0.1, share=0.8),
        BDD100K: _predictions(images, objects, 7, rng, every=0.7, novel=0.25, share=0.7),
        PROPOSALS: _predictions(images, objects, -1, rng, every=0.6, novel=0.45, share=0.55, false=25),
        OWN: _predictions(images, objects, 1, rng, every=0.8, novel=0.5, share=0.8),
    }
    written: dict[str, Any] = {
        BASE: {"images": images, "categories": names, "annotations": corner},
        COMMON: {
            "images": plain,
            "categories": [row for row in names if row["id"] in _COMMON_IDS],
            "annotations": [_bare(thing) for thing in common],
        },
        CORNER: {
            "images": plain,
            "categories": [{"id": 1, "name": "agnostic"}],
            "annotations": [_bare(thing) for thing in agnostic],
        },
        **predictions,
    }
    root.mkdir(parents=True, exist_ok=True)
    for name, content in written.items():
        write_atomically(root / name, json.dumps(content, allow_nan=False).encode())
    return CornerFacts(
        pictures, len(objects), len(corner), {name: len(held) for name, held in predictions.items()}
    )


def _image(number: int, rng: np.random.Generator) -> dict[str, Any]:
    domain, width, height, ending = (*_DOMAINS, _NUSCENES)[number % 4]
    return {
        "id": number,
        "file_name": f"{domain}_{number:04d}{ending}",
        "width": width,
        "height": height,
        "period": "Night" if rng.random() < 0.2 else "Daytime",
        "weather": str(rng.choice(["Clear", "Overcast", "Rainy"], p=[0.6, 0.25, 0.15])),
    }


def _objects(image: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Objects in an image, at least one of them a corner case."""
    found: list[dict[str, Any]] = []
    often = np.array([row[3] for row in _THINGS])
    number = 3 + int(rng.poisson(2))
    for place in range(number):
        _, category, _, _, wide, high, *_ = _THINGS[rng.choice(len(_THINGS), p=often / often.sum())]
        if place == 0 and category in _COMMON_IDS:
            _, category, _, _, wide, high, *_ = _THINGS[9]
        scale = float(np.exp(rng.normal(-0.2, 0.6))) * image["height"] / 1020
        sides = [max(6.0, wide * scale), max(6.0, high * scale)]
        sides = [min(sides[0], image["width"] - 1), min(sides[1], image["height"] - 1)]
        start = rng.random(2) * (image["width"] - sides[0], image["height"] - sides[1])
        box = [round(float(v), 1) for v in (*start, *sides)]
        box[2], box[3] = min(box[2], image["width"] - box[0]), min(box[3], image["height"] - box[1])
        rare = category not in _COMMON_IDS or rng.random() < 0.15
        found.append(
            {
                "id": 0,
                "image_id": image["id"],
                "category_id": category,
                "bbox": [round(v, 1) for v in box],
                "area": round(box[2] * box[3], 2),
                "iscrowd": 0,
                "corner_case": bool(rare),
            }
        )
    return found


def _bare(thing: dict[str, Any]) -> dict[str, Any]:
    """An annotation as the files of 2022 have it, without the flag."""
    return {key: value for key, value in thing.items() if key != "corner_case"}


def _predictions(
    images: list[dict[str, Any]],
    objects: list[dict[str, Any]],
    column: int,
    rng: np.random.Generator,
    *,
    every: float,
    novel: float,
    share: float,
    false: int = 6,
) -> list[dict[str, Any]]:
    """Results of a detector.

    Args:
        images: all images.
        objects: all objects.
        column: of `_THINGS` with the detector's id of a class; -1 for a detector without classes.
        rng: chance.
        every: how often it sees what it has a class for.
        novel: how often it sees other objects, which it takes for something it knows.
        share: how closely its boxes fit; 1 is exactly.
        false: boxes on nothing in each image, on average.
    """
    number = {row[1]: row[column] if column >= 0 else 1 for row in _THINGS}
    known = sorted({n for n in number.values() if n})
    sizes = {image["id"]: (image["width"], image["height"]) for image in images}
    results = []
    for thing in objects:
        has = number[thing["category_id"]]
        if rng.random() > (every if has and column >= 0 else novel):
            continue
        x, y, wide, high = thing["bbox"]
        loose = (1 - share) * np.array([wide, high, wide, high]) * rng.normal(0, 0.5, 4)
        box = [x + loose[0], y + loose[1], max(2.0, wide + loose[2]), max(2.0, high + loose[3])]
        category = int(has or rng.choice(known))
        score = float(np.clip(rng.beta(5, 2) if has else rng.beta(2, 4), 0.01, 0.99))
        results.append(_result(thing["image_id"], category, box, score))
    for image in images:
        for _ in range(int(rng.poisson(false))):
            wide, high = (float(side) * rng.uniform(0.02, 0.3) for side in sizes[image["id"]])
            box = [rng.random() * image["width"] * 0.7, rng.random() * image["height"] * 0.7, wide, high]
            results.append(_result(image["id"], int(rng.choice(known)), box, float(rng.beta(1.5, 8))))
    return results


def _result(image: int, category: int, box: list[float], score: float) -> dict[str, Any]:
    return {
        "image_id": image,
        "category_id": int(category),
        "bbox": [round(float(max(0.0, value)), 1) for value in box],
        "score": round(min(1.0, max(0.0, score)), 4),
    }
