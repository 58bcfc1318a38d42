"""Corner cases at the size of CODA 2022: average recall from opened tables, beside pycocotools."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from benchmarks.measure import python
from roadaware.metrics.corner_cases.evaluate import evaluate
from roadaware.metrics.corner_cases.matching import CornerConfig
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

_Row = tuple[str, str, str]
_PICTURES, _OBJECTS, _PREDICTIONS = 9_768, 80_180, 100
_PART = 20
_RESAMPLES = 1000


def corner_recall() -> _Row:
    """AR of corner cases, of the paper's three groups, and with intervals, in CPU seconds."""
    truth, predictions = _set()
    alone = CornerConfig(groups=("corner",), precision="never")
    evaluate(predictions, truth, alone)
    told = [
        ("corner", _spent(lambda: evaluate(predictions, truth, alone))),
        ("three groups", _spent(lambda: evaluate(predictions, truth, CornerConfig()))),
        (
            f"{_RESAMPLES:,} resamples",
            _spent(lambda: evaluate(predictions, truth, alone, resamples=_RESAMPLES)),
        ),
    ]
    what = "corner cases: 9,768 images, 80,180 objects, 100 predictions an image, with both trivial answers"
    return what, "–", ", ".join(f"{name} {seconds:.2f} s CPU" for name, seconds in told)


def corner_memory() -> _Row:
    """The same in a fresh process, tables made and judged."""
    code = """
from benchmarks.corner_cases import made_up
from roadaware.metrics.corner_cases.matching import CornerConfig
from roadaware.metrics.corner_cases.evaluate import evaluate
truth, predictions = made_up()
evaluate(predictions, truth, CornerConfig(groups=("corner",), precision="never"))
"""
    cost = python(code)
    return "corner cases, whole process", "–", f"{(cost.peak_mb or 0) / 1e3:.2f} GB, {cost.seconds:.1f} s"


def corner_pycocotools() -> _Row:
    """A twentieth of it, judged by both: the same recall, and how long each takes."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth, predictions = made_up(_PICTURES // _PART, _OBJECTS // _PART)
    held, results = _as_coco(truth), _as_results(predictions)

    def official() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            coco = COCO()
            coco.dataset = held
            coco.createIndex()
            judge = COCOeval(coco, coco.loadRes(results), "bbox")
            judge.evaluate()
            judge.accumulate()
            judge.summarize()
        return float(judge.stats[8])

    config = CornerConfig(groups=("all",), precision="always")
    ours = evaluate(predictions, truth, config).value("all_ar")
    theirs, started = official(), time.process_time()
    official()
    slow = time.process_time() - started
    fast = _spent(lambda: evaluate(predictions, truth, config))
    same = "equal" if ours is not None and abs(ours - theirs) < 1e-9 else f"{ours} and {theirs}"
    told = f"pycocotools {slow:.1f} s CPU, ours {fast:.2f} s with trivial answers; AR is {same}"
    return f"a {_PART}th of it, AR and AP, beside pycocotools", "equal to 1e-9", told


def made_up(pictures: int = _PICTURES, objects: int = _OBJECTS, seed: int = 0) -> tuple[Scenes, Predictions]:
    """Images with objects, and predictions of which a third are near one.

    Args:
        pictures: how many.
        objects: in all of them.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    names = np.array([f"{n:06d}.jpg" for n in range(pictures)])
    item = np.sort(rng.integers(0, pictures, objects))
    true = _boxes(objects, rng)
    predicted = np.repeat(np.arange(pictures), _PREDICTIONS)
    boxes = _boxes(len(predicted), rng)
    first = np.searchsorted(item, np.arange(pictures + 1))
    near = (rng.random(len(predicted)) < 1 / 3) & (first[predicted + 1] > first[predicted])
    span = np.maximum(first[predicted + 1] - first[predicted], 1)
    which = np.minimum(first[predicted] + (rng.random(len(predicted)) * span).astype(int), objects - 1)
    boxes[near] = true[which[near]] + rng.normal(0, 6, (int(near.sum()), 4))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    common = rng.random(objects) < 0.65
    kinds = pl.Series(rng.choice(["pedestrian", "cyclist", "vehicle"], objects))
    videos = pl.DataFrame({"video": names}).with_columns(width_px=1920, height_px=1020)
    frames = pl.DataFrame({"video": names}).with_columns(frame=pl.lit(0, dtype=pl.Int64), annotated=True)
    told = pl.Series(rng.choice(["pedestrian", "cyclist", "vehicle", "none"], len(predicted)))
    truth = Scenes(
        videos=videos,
        frames=frames.with_columns(image_id=np.arange(pictures)),
        boxes=_table(names[item], true).with_columns(
            corner_case=~common | (rng.random(objects) < 0.1),
            common=pl.when(pl.Series(common)).then(kinds),
            novel=~common,
        ),
    )
    predictions = _table(names[predicted], boxes).with_columns(
        score=rng.permutation(len(predicted)) / len(predicted),
        common=pl.when(told != "none").then(told),
        novel=told == "none",
    )
    return truth, Predictions(boxes=predictions)


@cache
def _set() -> tuple[Scenes, Predictions]:
    return made_up()


def _boxes(number: int, rng: np.random.Generator) -> np.ndarray:
    start = rng.uniform(0, (1500, 700), (number, 2))
    return np.column_stack([start, start + np.exp(rng.uniform(2, 5.7, (number, 2)))])


def _table(video: np.ndarray, boxes: np.ndarray) -> pl.DataFrame:
    corners = {name: boxes[:, n] for n, name in enumerate(CORNERS)}
    return pl.DataFrame({"box": np.arange(len(video)), "video": video, **corners}).with_columns(
        frame=pl.lit(0, dtype=pl.Int64)
    )


def _as_coco(truth: Scenes) -> dict[str, Any]:
    number = dict(truth.frames.select(pl.col("video").cast(pl.String), "image_id").rows())
    annotations = [
        {**row, "id": n, "image_id": number[video], "category_id": 1, "iscrowd": 0}
        for n, (video, row) in enumerate(_rows(truth.boxes), 1)
    ]
    images = [{"id": image} for image in number.values()]
    return {"info": {}, "images": images, "categories": [{"id": 1}], "annotations": annotations}


def _as_results(predictions: Predictions) -> list[dict[str, Any]]:
    numbers = predictions.boxes["video"].cast(pl.String).str.slice(0, 6).cast(pl.Int64).to_list()
    scores = predictions.boxes["score"].to_list()
    rows = (row for _, row in _rows(predictions.boxes))
    return [
        {**row, "image_id": image, "category_id": 1, "score": score}
        for row, image, score in zip(rows, numbers, scores, strict=True)
    ]


def _rows(boxes: pl.DataFrame) -> list[tuple[str, dict[str, Any]]]:
    held = []
    for video, x1, y1, x2, y2 in boxes.select(pl.col("video").cast(pl.String), *CORNERS).rows():
        held.append((video, {"bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1)}))
    return held


def _spent(function: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    function()
    return time.process_time() - started


BENCHMARKS = (corner_recall, corner_memory, corner_pycocotools)
