"""Small hand-made sets, one for each choice of a configuration that changes a number, and one of them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from random_relations import PREDICATES, Box, Fact, Tube, Video, still

from roadaware.metrics.relations import CONFIGS, RelationConfig

NEAR, FAR = (0.0, 0.0, 9.0, 9.0), (100.0, 100.0, 109.0, 109.0)


@dataclass(frozen=True)
class Case:
    """A set on which one field alone changes a number.

    Args:
        config: the named configuration that the field is changed in.
        changes: what else of it is changed on both sides.
        other: what the field is changed to.
        metric: the number.
        values: with the configuration's value of the field, and with the other.
    """

    config: str
    other: Any
    metric: str
    values: tuple[float, float]
    videos: tuple[Video, ...]
    changes: tuple[tuple[str, Any], ...] = ()

    def configs(self, field: str) -> tuple[RelationConfig, RelationConfig]:
        base = replace(CONFIGS[self.config](), **dict(self.changes))
        return base, replace(base, **{field: self.other})


def person(box: Box, end: int = 10, name: str | None = None) -> Tube:
    return Tube("person", still(box, 0, end), name)


def moved(box: Box, x: float = 0.0, y: float = 0.0) -> Box:
    return (box[0] + x, box[1] + y, box[2] + x, box[3] + y)


def _crowd_before_the_right_one(count: int, name: str) -> Video:
    """As many wrong predictions between others, and then the right one."""
    predicted = [person(NEAR), person(FAR)]
    predictions = []
    for i in range(count):
        predicted.append(person(moved(FAR, 20.0 * i)))
        predictions.append(Fact(0, "watch", len(predicted) - 1, 0, 10, 0.9))
    return Video(
        *(name, [person(NEAR), person(FAR)], [Fact(0, "follow", 1, 0, 10)]),
        *(predicted, [*predictions, Fact(0, "follow", 1, 0, 10, 0.8)]),
    )


def _one(name: str, predicted: Box, *, score: float = 0.9, end: int = 10) -> Video:
    """One follows another for `end` of 10 frames; the subject is predicted somewhere."""
    truth = [Fact(0, "follow", 1, 0, end)]
    predictions = [Fact(0, "follow", 1, 0, end, score)]
    named = [person(NEAR, name="1"), person(FAR, name="2")]
    return Video(name, named, truth, [person(predicted, name="1"), person(FAR, name="2")], predictions)


def _two_pairs() -> Video:
    """Two stand in nearly the same place, and each follows the other one; one prediction."""
    tubes = [person(NEAR), person(moved(NEAR, 2.0)), person(FAR)]
    truth = [Fact(0, "follow", 2, 0, 10), Fact(1, "follow", 2, 0, 10)]
    return Video("two_pairs", tubes, truth, [person(NEAR), person(FAR)], [Fact(0, "follow", 1, 0, 10, 0.9)])


def _two_predicates() -> Video:
    tubes, what = [person(NEAR), person(FAR)], ("follow", "watch")
    predictions = [Fact(0, predicate, 1, 0, 10, 0.9 - 0.1 * i) for i, predicate in enumerate(what)]
    truth = [Fact(0, predicate, 1, 0, 10) for predicate in what]
    return Video("two_predicates", tubes, truth, tubes, predictions)


def _said_twice() -> Video:
    """The relation of frames 0 to 5 stands again in 4 to 9; another one, of all frames, is not predicted."""
    tubes = [person(NEAR), person(FAR)]
    truth = [Fact(0, "follow", 1, 0, 6), Fact(0, "follow", 1, 4, 10), Fact(0, "watch", 1, 0, 10)]
    return Video("said_twice", tubes, truth, tubes, [Fact(0, "follow", 1, 0, 10, 0.9)])


def _uneven() -> Video:
    """One true relation in frame 0, found; three in frame 1, none found."""
    tubes = [person(NEAR, 2), person(FAR, 2)]
    truth = [Fact(0, "follow", 1, 0, 1), *(Fact(0, p, 1, 1, 2) for p in ("chase", "hold", "watch"))]
    return Video("uneven", tubes, truth, tubes, [Fact(0, "follow", 1, 0, 1, 0.9)])


def _third() -> Video:
    tubes = [person(NEAR), person(FAR)]
    truth = [Fact(0, p, 1, 0, 10) for p in ("chase", "follow", "hold")]
    return Video("third", tubes, truth, tubes, [Fact(0, "follow", 1, 0, 10, 0.9)])


def _seven() -> Video:
    """Of a pair, seven predicates are predicted; the least sure of them is true."""
    tubes = [person(NEAR), person(FAR)]
    predictions = [Fact(0, predicate, 1, 0, 10, 0.9 - 0.1 * i) for i, predicate in enumerate(PREDICATES[:7])]
    return Video("seven", tubes, [Fact(0, PREDICATES[6], 1, 0, 10)], tubes, predictions)


def _silent(name: str, predicted: int) -> Video:
    """A relation in ten frames that is predicted in the first ones; nobody moves."""
    tubes = [person(NEAR), person(FAR)]
    return Video(
        *(name, tubes, [Fact(0, "follow", 1, 0, 10)]),
        *(tubes, [Fact(0, "follow", 1, 0, predicted, 0.9)] if predicted else []),
    )


HALF = (0.0, 0.0, 9.0, 4.0)
CASES: dict[str, Case] = {
    "setting": Case("vidvrd", "predcls", "recall@20", (0.0, 1.0), (_one("named", FAR),)),
    "top_returns": Case(
        *("vidvrd", None, "map", (0.0, float(np.float32(1 / 201)))),
        (_crowd_before_the_right_one(200, "crowd_of_200"),),
    ),
    "pixel_offset": Case("vidvrd", 0.0, "recall@20", (1.0, 0.0), (_one("half", HALF),)),
    "precision": Case("vidvrd", "float64", "recall@20", (0.3333333433, 1 / 3), (_third(),)),
    "predicates_per_pair": Case("frame-sg-with", None, "frame_recall@20", (0.5, 1.0), (_two_predicates(),)),
    "frame_top": Case(
        *("frame-sg-no", None, "frame_recall@200", (0.0, 1.0)),
        (_crowd_before_the_right_one(100, "crowd_of_100"),),
        (("recall_at", (20, 50, 200)),),
    ),
    "frame_min_score": Case(
        "frame-sg-no", None, "frame_recall@20", (0.0, 1.0), (_one("faint", NEAR, score=1e-5),)
    ),
    "frame_pixel_offset": Case("frame-sg-no", 0.0, "frame_recall@20", (1.0, 0.0), (_one("half", HALF),)),
    "frame_precision": Case(
        *("frame-sg-no", "float64", "frame_recall@20", (1.0, 0.0)),
        (_one("nearly_half", (0.0, 0.0, 9.0, 4.0 - 1e-7)),),
    ),
    "several_truths": Case("frame-sg-no", False, "frame_recall@20", (1.0, 0.5), (_two_pairs(),)),
    "repeated_truth": Case("frame-sg-no", "once", "frame_recall@20", (8 / 15, 0.5), (_said_twice(),)),
    "empty_frames": Case("frame-sg-no", "skip", "frame_recall@20", (0.5, 1.0), (_one("brief", NEAR, end=5),)),
    "silent_frames": Case(
        "frame-sg-no", "carried", "frame_recall@20", (0.5, 1.0), (_silent("silent", predicted=5),)
    ),
    "averaging": Case("frame-sg-no", "pooled", "frame_recall@20", (0.5, 0.25), (_uneven(),)),
}

TOGETHER: list[Video] = [
    video
    for name in (
        *("pixel_offset", "precision", "predicates_per_pair", "several_truths", "repeated_truth"),
        *("empty_frames", "averaging"),
    )
    for video in CASES[name].videos
] + [_seven()]
"""The videos of several cases and one more as one set, on which the configurations are put side by side."""
