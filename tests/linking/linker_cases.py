"""Tiny sets of detections, one for each field of the linker, on which its values give different numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from detection_sets import Frame, predictions

from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.linking.linker import Linker
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import build_tube_table
from roadaware.scenes.tables import Meta, Predictions, Scenes

Edges = tuple[float, float, float, float]
Measure = Callable[[LinkerConfig], float]


@dataclass(frozen=True)
class Found:
    """A detection: where, how surely, and its scores of the classes `a-0`, `a-1`, ..."""

    edges: Edges
    agentness: float = 0.9
    scores: tuple[float, ...] = (0.9,)


@dataclass(frozen=True)
class Case:
    """What is measured, the fields that differ from the published builder's besides, and further values."""

    measure: Measure
    besides: dict[str, Any] = field(default_factory=dict)
    more: tuple[Any, ...] = ()


def at(x: float, agentness: float = 0.9, scores: tuple[float, ...] = (0.9,)) -> Found:
    """A box of 100 x 100 pixels, so far to the right."""
    return Found((x, 0, x + 100, 100), agentness, scores)


def arrays(frame: int, found: Sequence[Found], n_scores: int) -> Frame:
    edges = np.array([one.edges for one in found], np.float32).reshape(-1, 4)
    scores = np.array([one.scores for one in found], np.float32).reshape(-1, n_scores)
    return frame, edges, np.array([one.agentness for one in found], np.float32), scores


def detections(frames: dict[int, Sequence[Found]]) -> Predictions:
    """One video; frames from 0 to the last one all arrived."""
    (n_scores,) = {len(one.scores) for found in frames.values() for one in found}
    every = [arrays(frame, frames.get(frame, ()), n_scores) for frame in range(max(frames) + 1)]
    return predictions({"v": every}, {"a": n_scores})


def linked(frames: dict[int, Sequence[Found]], config: LinkerConfig) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Paths with their `count` of detections, and labelled tubes with their `label`."""
    made = link(detections(frames), config)
    counts = made.boxes.drop_nulls("tube").group_by("tube").len("count")
    tubes = made.tubes.join(made.tube_labels.select("tube", "label"), on="tube", how="left")
    tubes = tubes.with_columns(n=pl.col("end_frame") - pl.col("start_frame"))
    # Without a label to give there is no labelled tube, and no column that names parents.
    parent = pl.col("parent") if "parent" in tubes.columns else pl.lit(None)
    return tubes.filter(parent.is_null()).join(counts, on="tube", how="left"), tubes.filter(
        parent.is_not_null()
    )


def paths(frames: dict[int, Sequence[Found]]) -> Measure:
    """How many paths there are."""
    return lambda config: len(linked(frames, config)[0])


def length(frames: dict[int, Sequence[Found]]) -> Measure:
    """How many detections are on the path that the first row of frame 0 begins."""

    def measured(config: LinkerConfig) -> float:
        made = link(detections(frames), config).boxes
        return int((made["tube"] == made["tube"][0]).sum())

    return measured


def goes_on(frames: dict[int, Sequence[Found]]) -> Measure:
    """The agentness of the detection of frame 1 that is on the first path."""

    def measured(config: LinkerConfig) -> float:
        made = link(detections(frames), config).boxes
        (score,) = made.filter((pl.col("tube") == made["tube"][0]) & (pl.col("frame") == 1))["score"]
        return float(score)

    return measured


def owner_of_last(frames: dict[int, Sequence[Found]]) -> Measure:
    """The x at which the path began that the last detection is on."""

    def measured(config: LinkerConfig) -> float:
        made = link(detections(frames), config).boxes
        return float(made.filter(pl.col("tube") == made["tube"][-1])["x1_px"][0])

    return measured


def live(frames: dict[int, Sequence[Found]], n_frames: int) -> Measure:
    """How many paths live after so many frames."""

    def measured(config: LinkerConfig) -> float:
        linker = Linker(config, n_scores=1)
        for frame in range(n_frames):
            linker.update(*arrays(frame, frames.get(frame, ()), 1))
        return linker.n_live

    return measured


def tubes(frames: dict[int, Sequence[Found]]) -> Measure:
    """How many labelled tubes there are."""
    return lambda config: len(linked(frames, config)[1])


def best_score(frames: dict[int, Sequence[Found]]) -> Measure:
    """The score of the best labelled tube."""
    return lambda config: round(float(np.max(linked(frames, config)[1]["score"].to_numpy())), 6)


def frames_of(frames: dict[int, Sequence[Found]]) -> Measure:
    """The frames of the best tube labelled with the first class."""

    def measured(config: LinkerConfig) -> float:
        labelled = linked(frames, config)[1].filter(pl.col("label") == 0)
        return int(labelled.sort("score", descending=True, maintain_order=True)["n"][0])

    return measured


def overlap(frames: dict[int, Sequence[Found]], truth: dict[int, Found]) -> Measure:
    """The overlap in space and time of the labelled tube with the true one."""
    scenes = _truth(truth)

    def measured(config: LinkerConfig) -> float:
        table = build_tube_table(
            link(detections(frames), config), scenes, DetectionConfig.default(), kinds=["a"]
        )
        (found,) = table["overlap"]
        return float(found)

    return measured


def _truth(truth: dict[int, Found]) -> Scenes:
    """One tube of class `a-0`."""
    n = len(truth)
    edges = np.array([one.edges for one in truth.values()])
    sides = {name: edges[:, i] for i, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))}
    boxes = {"box": range(n), "video": "v", "frame": list(truth), **sides, "tube": 0}
    spans = [[min(truth), max(truth) + 1]]
    return Scenes(
        videos=pl.DataFrame({"video": ["v"], "width_px": [1280], "height_px": [960]}),
        frames=pl.DataFrame({"video": "v", "frame": range(max(truth) + 1), "annotated": True}),
        boxes=pl.DataFrame(boxes, schema_overrides={"tube": pl.Int64}),
        labels=pl.DataFrame({"box": range(n), "kind": "a", "label": 0}),
        tubes=pl.DataFrame(
            {
                "tube": [0, 1],
                "video": "v",
                "start_frame": min(truth),
                "end_frame": max(truth) + 1,
                "parent": [None, 0],
                "kind": [None, "a"],
                "spans": [None, spans],
            }
        ),
        tube_labels=pl.DataFrame({"tube": [1], "kind": ["a"], "label": [0]}),
        meta=Meta(vocabularies={"a": ("a-0",)}),
    )


def still(n: int, *found: Found) -> dict[int, Sequence[Found]]:
    """The same detections in so many frames."""
    return dict.fromkeys(range(n), found)


def scored(columns: Sequence[Sequence[float]], agentness: Sequence[float] = ()) -> dict[int, Sequence[Found]]:
    """One box that stays, with the scores of each class over time."""
    sure = agentness or [0.9] * len(columns[0])
    return {i: [at(0, sure[i], tuple(column[i] for column in columns))] for i in range(len(columns[0]))}


def seen(*runs: tuple[float, int]) -> list[float]:
    """Values, each as often as it says."""
    return [value for value, times in runs for _ in range(times)]


NOTHING_AFTER = {0: [at(0)]}
APART: Edges = (20, 20, 30, 30)
CORNER = {0: [Found((0, 0, 10, 10))], 1: [Found(APART)]}
LONG = [0.9] * 5 + [0.5] * 5
RIVALS: dict[int, Sequence[Found]] = {
    **{i: [at(0, score), at(60, 0.8)] for i, score in enumerate(LONG)},
    10: [at(30, 0.9)],
}
WHOLE = {i: at(10 * i) for i in range(12)}
HOLED: dict[int, Sequence[Found]] = {i: [one] for i, one in WHOLE.items() if i not in (6, 7)}
SHORT: dict[int, Sequence[Found]] = {i: [at(0)] for i in (0, 2, 3)}
WEAK = {**SHORT, 9: [at(500, 0.08)]}
DOUBLE = still(6, at(0), at(10, 0.8, (0.8,)))
NEAR = still(6, Found((0, 0, 10, 10)), Found((2.6, 0, 12.6, 10), 0.8, (0.8,)))
HALF = scored([seen((0.9, 10), (0.1, 10)), seen((0.1, 10), (0.9, 10))])
DIPPED = scored([seen((0.9, 9), (0.1, 2), (0.9, 9)), [0.01] * 20])
INDIV = {"trim": "indiv", "max_labels": 1}
MANY = scored(
    [[0.9] * 32, [0.0] * 32, [0.8] * 32, *([[0.0] * 32] * 21)], seen((0.9, 12), (0.1, 8), (0.9, 12))
)

CASES: dict[str, Case] = {
    "top_rows": Case(paths(still(1, *(at(200 * i) for i in range(12))))),
    "min_score": Case(paths(still(1, at(0), at(200, 0.03))), more=(0.05,)),
    "age_empty_frames": Case(live(NOTHING_AFTER, 10)),
    "begin_score": Case(paths(still(1, at(0), at(200, 0.08)))),
    "begin_iou": Case(paths(still(1, at(0), at(10, 0.8)))),
    "min_iou": Case(paths({0: [at(0)], 1: [at(40)]}), more=(0.25,)),
    "jump_gap": Case(paths({0: [at(0)], 5: [at(0)]}), more=(5,)),
    "jump_gap_s": Case(paths({0: [at(0)], 5: [at(0)]})),
    "cost": Case(
        goes_on({0: [at(0, 0.88, (0.0,))], 1: [at(20, 0.9, (0.0,)), at(0, 0.8, (0.0,))]}),
        more=("iou", "scoreiou", "ioul2"),
    ),
    "edge_rule": Case(length({0: [at(0)], 1: [at(0, 0.06), at(10, 0.05)]})),
    "min_edge": Case(length({0: [at(0)], 1: [at(0, 0.08)]}), more=(0.05,)),
    "assignment": Case(
        paths({0: [at(0), at(60, 0.8)], 1: [at(30), at(-20, 0.85)]}),
        more=("hungarian",),
    ),
    "clamped_iou": Case(paths(CORNER)),
    "motion": Case(paths({0: [at(0)], 1: [at(20)], 4: [at(80)]}), more=("time", "none")),
    "order_key": Case(length(RIVALS), more=("mean",)),
    "order_ties": Case(owner_of_last({0: [at(0), at(60)], 1: [at(0), at(60)], 2: [at(30)]})),
    "sort_new_paths": Case(owner_of_last({0: [at(0, 0.5)], 1: [at(60), at(0, 0.5)], 2: [at(30)]})),
    "single_precision": Case(paths(still(1, at(0, float(np.float32(0.025)))))),
    "gaps": Case(overlap(HOLED, WHOLE), more=("keep",)),
    "drop_weak": Case(paths(WEAK)),
    "min_path_len": Case(paths({i: [at(0)] for i in (0, 2, 3, 4)}), {"drop_weak": True}),
    "min_path_score": Case(paths(still(1, at(0, 0.3))), {"drop_weak": True}, more=(0.05,)),
    "max_labels": Case(tubes(still(6, at(0, scores=(0.5,) * 12))), more=(4,)),
    "min_tube_len": Case(tubes(still(5, at(0))), more=(4,)),
    "min_label_score": Case(tubes(still(6, at(0, scores=(0.9, 0.0))))),
    "class_score": Case(
        best_score(scored([seen((0.9, 2), (0.3, 10)), *([[0.1] * 12] * 7)])), more=("quarter_of_length",)
    ),
    "trim": Case(frames_of(HALF), {"viterbi_lag": False}, more=("indiv", "dpscores", "dpscorestopn")),
    "trim_by": Case(
        frames_of(scored([seen((0.9, 15), (0.1, 5))], seen((0.9, 10), (0.1, 10)))),
        {**INDIV, "viterbi_lag": False},
        more=("class",),
    ),
    "trim_alpha": Case(tubes(DIPPED), INDIV, more=(1.0,)),
    "trim_alphas": Case(tubes(MANY), {**INDIV, "max_labels": 2}, more=((),)),
    "viterbi_lag": Case(frames_of(HALF), INDIV),
    "tube_nms": Case(tubes(DOUBLE), more=(0.6,)),
    "tube_nms_pixel_offset": Case(tubes(NEAR), {"tube_nms": 0.6}),
}


def worked(name: str, chosen: Any) -> float:
    """The number of a field's case with one of its values."""
    case = CASES[name]
    return case.measure(replace(LinkerConfig.reference(), **{**case.besides, name: chosen}))


def values(name: str) -> list[Any]:
    """What a field may be on the page: the published value, ours, and others."""
    own = [getattr(make(), name) for make in (LinkerConfig.reference, LinkerConfig.default)]
    return [*own, *CASES[name].more]
