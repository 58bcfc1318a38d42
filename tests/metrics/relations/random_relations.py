"""Random videos of relations with predictions on them, as plain facts and as the tables made of these."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Predictions, Scenes

Box = tuple[float, float, float, float]
CATEGORIES = ("car", "dog", "person")
PREDICATES = ("chase", "follow", "greet", "hold", "lead", "lift", "push", "watch")


@dataclass
class Tube:
    category: str | None
    boxes: dict[int, Box]
    name: str | None = None
    score: float | None = None


@dataclass
class Fact:
    """A relation between tubes by their place in the video; `score` of a prediction."""

    subject: int
    predicate: str
    object: int
    start: int
    end: int
    score: float = 1.0


@dataclass
class Video:
    name: str
    tubes: list[Tube] = field(default_factory=list)
    truth: list[Fact] = field(default_factory=list)
    predicted_tubes: list[Tube] = field(default_factory=list)
    predictions: list[Fact] = field(default_factory=list)
    annotated: list[int] | None = None
    category: str | None = None


def still(box: Box, start: int, end: int) -> dict[int, Box]:
    return dict.fromkeys(range(start, end), box)


def copied(videos: list[Video]) -> list[Video]:
    """The same videos with the truth as predictions."""
    return [Video(v.name, v.tubes, v.truth, v.tubes, v.truth, v.annotated, v.category) for v in videos]


def scenes_of(videos: list[Video]) -> Scenes:
    tables = _tables(videos, "tubes", "truth")
    frames = [(v.name, f, True) for v in videos for f in v.annotated or []]
    schema = {"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean}
    return Scenes(
        videos=pl.DataFrame(
            {"video": [v.name for v in videos], "category": [v.category for v in videos]},
            schema={"video": pl.String, "category": pl.String},
        ),
        frames=pl.DataFrame(frames, schema=schema, orient="row"),
        **tables,
        meta=_META,
    )


def predictions_of(videos: list[Video]) -> Predictions:
    return Predictions(**_tables(videos, "predicted_tubes", "predictions"), meta=_META)


def random_videos(seed: int, n_videos: int = 6, predictions: int = 40) -> list[Video]:
    """Videos with ties of scores, partial overlaps, holes in tubes, and some without truth or predictions."""
    draw = np.random.default_rng(seed)
    return [_video(draw, f"v{i}", predictions) for i in range(n_videos)]


_META = Meta(vocabularies={"category": CATEGORIES, "predicate": PREDICATES})


def _video(draw: np.random.Generator, name: str, n_predictions: int) -> Video:
    video = Video(name, category=("flood", "fight")[int(name[1:]) % 2])
    for _ in range(int(draw.integers(2, 5))):
        start = int(draw.integers(0, 6))
        corner = draw.integers(0, 12, 2)
        boxes = {}
        for frame in range(start, start + int(draw.integers(4, 14))):
            corner = corner + draw.integers(-1, 2, 2)
            size = draw.integers(4, 12, 2)
            if draw.random() > 0.1:
                x, y = (float(c) for c in corner)
                boxes[frame] = (x, y, x + float(size[0]), y + float(size[1]))
        video.tubes.append(Tube(str(draw.choice(CATEGORIES[1:])), boxes, str(len(video.tubes))))
    if draw.random() > 0.15:
        video.truth = [_fact(draw, video.tubes) for _ in range(int(draw.integers(1, 7)))]
        if draw.random() > 0.5:
            again = video.truth[0]
            later = again.start + int(draw.integers(0, 3))
            video.truth.append(Fact(again.subject, again.predicate, again.object, later, again.end + 2))
    if draw.random() > 0.5:
        video.annotated = sorted({int(f) for f in draw.integers(0, 16, 14)})
    copies: list[list[int]] = []
    for tube in video.tubes:
        copies.append([])
        for _ in range(int(draw.integers(1, 4))):
            copies[-1].append(len(video.predicted_tubes))
            video.predicted_tubes.append(_predicted(draw, tube))
    if draw.random() > 0.1:
        video.predictions = [_prediction(draw, video, copies) for _ in range(n_predictions)]
    return video


def _fact(draw: np.random.Generator, tubes: list[Tube]) -> Fact:
    """A relation of two tubes, mostly within their common life."""
    a, b = (int(i) for i in draw.choice(len(tubes), 2, replace=False))
    common = sorted(tubes[a].boxes.keys() & tubes[b].boxes.keys()) or [3]
    start = common[int(draw.integers(len(common)))]
    end = start + int(draw.integers(1, 9))
    return Fact(a, str(draw.choice(PREDICATES[:3])), b, start, end)


def _predicted(draw: np.random.Generator, true: Tube) -> Tube:
    """A tube near a true one, or its equal, here and there of another category."""
    spread = float(draw.choice([0.0, 0.5, 1.5]))
    boxes = {}
    for frame, box in true.boxes.items():
        x1, y1, x2, y2 = (v + float(d) for v, d in zip(box, draw.normal(0, spread, 4), strict=True))
        if spread == 0 or draw.random() > 0.1:
            boxes[frame] = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    category = true.category if draw.random() > 0.1 else str(draw.choice(CATEGORIES))
    score = None if draw.random() > 0.5 else float(draw.choice([0.25, 0.5, 1.0]))
    return Tube(category, boxes, None, score)


def _prediction(draw: np.random.Generator, video: Video, copies: list[list[int]]) -> Fact:
    """A prediction near a true relation, or about anybody."""
    score = float(draw.choice([0.0, 1e-5, 2e-5, 0.2, 0.4, 0.5, 0.8, 0.9]))
    if video.truth and draw.random() > 0.3:
        like = video.truth[int(draw.integers(len(video.truth)))]
        a, b = (int(draw.choice(copies[tube])) for tube in (like.subject, like.object))
        predicate = like.predicate if draw.random() > 0.3 else str(draw.choice(PREDICATES))
        start = max(0, like.start + int(draw.integers(-1, 2)))
        return Fact(a, predicate, b, start, max(start + 1, like.end + int(draw.integers(-1, 2))), score)
    a, b = (int(i) for i in draw.integers(0, len(video.predicted_tubes), 2))
    start = int(draw.integers(0, 10))
    return Fact(a, str(draw.choice(PREDICATES)), b, start, start + int(draw.integers(1, 9)), score)


def _tables(videos: list[Video], tubes: str, facts: str) -> dict[str, pl.DataFrame]:
    predicted = tubes == "predicted_tubes"
    tube_rows, labels, boxes, relations = [], [], [], []
    for video in videos:
        first = len(tube_rows)
        for tube in getattr(video, tubes):
            number = len(tube_rows)
            tube_rows.append((number, video.name, tube.name, tube.score))
            if tube.category is not None:
                labels.append((number, "category", CATEGORIES.index(tube.category)))
            boxes += [
                (len(boxes) + i, video.name, f, number, *b) for i, (f, b) in enumerate(tube.boxes.items())
            ]
        for fact in getattr(video, facts):
            ends = (first + fact.subject, first + fact.object, PREDICATES.index(fact.predicate))
            relations.append((len(relations), video.name, *ends, fact.start, fact.end, fact.score))
    found = {
        "tubes": _frame(tube_rows, tube=int, video=str, name=str, score=float),
        "tube_labels": _frame(labels, tube=int, kind=str, label=int),
        "boxes": _frame(
            *(boxes,),
            box=int,
            video=str,
            frame=int,
            tube=int,
            x1_px=float,
            y1_px=float,
            x2_px=float,
            y2_px=float,
        ),
        "relations": _frame(
            *(relations,),
            **dict.fromkeys(("relation",), int),
            video=str,
            **dict.fromkeys(("subject", "object", "predicate", "start_frame", "end_frame"), int),
            score=float,
        ),
    }
    if not predicted:
        found = {name: table.drop("score", strict=False) for name, table in found.items()}
    return found


def _frame(rows: list[tuple[object, ...]], **columns: type) -> pl.DataFrame:
    kinds = {int: pl.Int64, str: pl.String, float: pl.Float64}
    return pl.DataFrame(rows, schema={name: kinds[kind] for name, kind in columns.items()}, orient="row")
