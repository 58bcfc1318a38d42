"""How well corner cases are detected, group by group, size by size and by slice, beside trivial answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.metrics.corner_cases.config import AREAS, CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import NONE, Claims, Objects, extract_objects, extract_proposals
from roadaware.metrics.corner_cases.matching import Met, match_group
from roadaware.metrics.corner_cases.state import JudgedCorners, build_corner_state
from roadaware.metrics.metric_state import SceneResult, build_result, compute_values, split_slices
from roadaware.scenes.tables import Predictions, Scenes

# The rows behind the metrics of corner cases: every object with the prediction that met it, and every class.

# Places of thresholds: 0.3 is the first, 0.5 the second.
_HALF, _FROM_HALF = 1, slice(1, None)
_CLASS_BLIND: tuple[Group, ...] = ("corner", "all")


def summarize_objects(truth: Objects, claims: Claims, met: Mapping[Group, Met]) -> pl.DataFrame:
    """One row per counted object, in each group: `best_iou` is the overlap of the nearest prediction.

    `rank` is the place of the prediction that met it at an overlap of 0.5, from 0 and null where none did;
    `met_share` the share of the ten thresholds at which one did.
    """
    frames = []
    for group, each in met.items():
        asked = each.asked[:, 0]
        rows, rank = each.rows[asked], each.rank[asked, 0]
        place = truth.items.select("video", "frame")[truth.item[rows]]
        size = np.argmax(each.asked[asked, 1:], axis=1)
        frames.append(
            place.with_columns(
                pl.Series("group", [group] * len(rows), dtype=pl.String),
                pl.Series("box", truth.box[rows]),
                pl.Series("label", _words(truth.label[rows], truth.labels), dtype=pl.String),
                pl.Series("super_class", _words(truth.above[rows], truth.supers), dtype=pl.String),
                pl.Series("corner_case", truth.corner[rows]),
                pl.Series("size", [AREAS[1 + n] for n in size], dtype=pl.String),
                pl.Series("best_iou", each.best[asked]),
                pl.Series("rank", rank[:, _HALF].astype(np.int64)),
                pl.Series("met_share", (rank[:, _FROM_HALF] >= 0).mean(axis=1)),
            )
        )
    table = pl.concat(frames)
    return table.with_columns(pl.when(pl.col("rank") >= 0).then(pl.col("rank")).alias("rank"))


def summarize_classes(
    truth: Objects, claims: Claims, met: Mapping[Group, Met], config: CornerConfig
) -> pl.DataFrame:
    """One row per class of the file: how many of its objects there are, and how many are met, whatever by.

    The groups `corner` and `all` match without classes: which prediction meets an object does not depend on what
    it is called. A file in which no class is known gives no row.
    """
    frames = []
    for group, each in met.items():
        if group not in _CLASS_BLIND:
            continue
        asked = each.asked[:, 0] & (truth.label[each.rows] != NONE)
        rank = each.rank[asked, 0]
        table = pl.DataFrame(
            {
                "label": pl.Series(_words(truth.label[each.rows[asked]], truth.labels), dtype=pl.String),
                "ar": (rank[:, _FROM_HALF] >= 0).mean(axis=1),
                "ar50": (rank[:, _HALF] >= 0).astype(np.float64),
            }
        )
        counted = table.group_by("label", maintain_order=True).agg(
            pl.len().alias("objects"), pl.col("ar").mean(), pl.col("ar50").mean()
        )
        frames.append(
            counted.sort("objects", descending=True, maintain_order=True).with_columns(group=pl.lit(group))
        )
    empty = {
        "label": pl.String,
        "objects": pl.UInt32,
        "ar": pl.Float64,
        "ar50": pl.Float64,
        "group": pl.String,
    }
    return pl.concat([pl.DataFrame(schema=empty), *frames], how="diagonal_relaxed").select(
        "group", "label", "objects", "ar", "ar50"
    )


def _words(numbers: npt.NDArray[np.int64], words: tuple[str, ...]) -> list[str | None]:
    known = [*words, None]
    return [known[n] for n in numbers.tolist()]


# What answers without a detector would predict: the whole image, and boxes drawn at random.

WHOLE, RANDOM = "whole image", "random boxes"


def propose_whole_images(truth: Objects) -> Claims:
    """One prediction in each image: all of it."""
    items = np.flatnonzero(~np.isnan(truth.sizes).any(axis=1))
    corners = np.column_stack([np.zeros((len(items), 2)), truth.sizes[items]])
    return _claims(items, corners, np.ones(len(items)))


def sample_random_boxes(truth: Objects, number: int, seed: int = 0) -> Claims:
    """So many boxes in each image, whose corners are two points drawn evenly.

    Args:
        truth: defines the images.
        number: of boxes in each.
        seed: of the boxes.
    """
    items = np.flatnonzero(~np.isnan(truth.sizes).any(axis=1))
    rng = np.random.default_rng(seed)
    points = np.sort(rng.random((len(items), number, 2, 2)), axis=2)
    corners = (points * truth.sizes[items][:, None, None]).reshape(-1, 4)
    score = np.tile(1 - np.arange(number) / number, len(items))
    return _claims(np.repeat(items, number), corners, score)


def _claims(items: npt.NDArray[np.int64], corners: Floats, score: Floats) -> Claims:
    nothing = np.full(len(items), NONE)
    sides = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    return Claims(items, corners, sides, nothing, np.ones(len(items), dtype=bool), nothing, score)


UNANSWERED = "unanswered groups"
"""The note of Predictions with the groups that they have no answer to, each with the reason."""
IN_SLICES = "trivial_answers_in_slices"


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: CornerConfig | None = None,
    *,
    by: Sequence[str] = (),
    draws: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Average recall of predicted boxes on the objects of each group, as COCO's evaluator has it.

    A metric is called by its group and its name: `corner_ar` is the recall of corner cases, averaged over the
    overlaps 0.5, 0.55, ... 0.95, with at most 100 predictions an image. All lie in [0, 1], higher is better. Rows
    with a label are of a class or super-class. Groups that predictions have no answer to (the note `UNANSWERED`
    of the predictions; of predictions that do not say what they are all but `corner` and `all`) are undefined.
    `baselines` holds what the whole image and random boxes would score, `facts` their recall in each slice.

    Args:
        predictions: boxes with `score`; `common`, `novel` and labels of the kind `corner` where they say so.
        scenes: boxes with, as far as known, what `extract_objects` names.
        config: how they are judged (default: `CornerConfig.default()`).
        by: columns to slice by: `period`, `weather`, `domain`, `density`, ...
        draws: resamples of videos for the intervals; a set of images has one image a video.
        seed: of the resamples and of the random boxes.

    Returns:
        whole, classes and slices; instances of `object` and `class`.

    Raises:
        InputError: if there is no ground-truth box in an annotated image, a prediction has no score, or none is about an
            image of the ground truth.
        UsageError: if `draws` is negative or there is no such column.

    Source: Li et al., ECCV 2022 (CODA), section 5.1; Lin et al., ECCV 2014 (COCO).
    """
    config = config or CornerConfig.default()
    truth = extract_objects(scenes, area=config.area, risk=config.risk)
    claims, foreign = extract_proposals(predictions, truth)
    # Groups that the predictions have no answer to, with the reason.
    said = predictions.meta.notes.get(UNANSWERED)
    if isinstance(said, Mapping):
        unanswered: dict[str, str] = {
            group: str(said.get(group) or "") for group in config.groups if said.get(group)
        }
    else:
        held = {"corner", "all", *({"common", "novel"} & set(predictions.boxes.columns))}
        held |= set() if predictions.labels.is_empty() else {"classes"}
        unanswered = {
            group: "the predictions do not say what they are" for group in config.groups if group not in held
        }
    met = {
        group: match_group(group, truth, _none(claims) if group in unanswered else claims, config)
        for group in config.groups
    }
    state = build_corner_state(truth, claims, met, unanswered, config)
    trivial = _trivial(truth, config, seed)
    # What had to be assumed, and what has no answer.
    told = (*truth.notes, *(f"{group}: {why}" for group, why in unanswered.items()))
    return build_result(
        state,
        config,
        by=by,
        draws=draws,
        seed=seed,
        notes=told if trivial else (*told, "images of unknown size have no trivial answers"),
        makers={
            "object": partial(summarize_objects, truth, claims, met),
            "class": partial(summarize_classes, truth, claims, met, config),
        },
        left_out=_left_out(truth, met, foreign, config),
        baselines={name: compute_values(answer) for name, answer in trivial.items()},
        facts=_facts(truth, claims, state, trivial, by),
    )


def _none(claims: Claims) -> Claims:
    """No prediction at all."""
    fields = ("item", "corners", "sides", "common", "novel", "label", "score")
    return Claims(**{name: getattr(claims, name)[:0] for name in fields})


def _trivial(truth: Objects, config: CornerConfig, seed: int) -> dict[str, JudgedCorners]:
    """The states of the answers without a detector; none where no image's size is known."""
    if np.isnan(truth.sizes).all():
        return {}
    answers = {
        WHOLE: propose_whole_images(truth),
        RANDOM: sample_random_boxes(truth, config.max_detections[-1], seed),
    }
    found = {}
    for name, claims in answers.items():
        met = {group: match_group(group, truth, claims, config, every=True) for group in config.groups}
        found[name] = build_corner_state(truth, claims, met, {}, config)
    return found


def _left_out(truth: Objects, met: Mapping[Group, Met], foreign: int, config: CornerConfig) -> dict[str, int]:
    most = config.max_detections[-1]
    left = {
        "predictions on images that the truth lacks": foreign,
        "objects that are marked as not asked for": int(
            (truth.marked if config.ignored == "marked" else truth.crowd).sum()
        ),
    }
    return left | {
        f"predictions of {group} beyond the {most} best of their image": each.beyond
        for group, each in met.items()
    }


def _facts(
    truth: Objects,
    claims: Claims,
    state: JudgedCorners,
    trivial: Mapping[str, JudgedCorners],
    by: Sequence[str],
) -> dict[str, Any]:
    """What belongs beside every number; slices have the recall of trivial answers alone, which is cheap."""
    recalled = {name: answer.recall_alone() for name, answer in trivial.items()}
    within = {
        name: {which: compute_values(answer.only(kept)) for which, answer in recalled.items()}
        for name, kept in split_slices(state, by).items()
    }
    return {
        "pictures": len(truth.items),
        "objects": len(truth.item),
        "corner_cases": int(truth.corner.sum()),
        "common_classes": list(truth.commons),
        "claims_per_picture": float(len(claims.item) / len(truth.items)),
        "average": "over thresholds and classes",
        IN_SLICES: within,
    }
