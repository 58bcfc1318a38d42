"""How well corner cases are detected, group by group, size by size and by slice, beside trivial answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from roadaware.metrics.corner_cases.config import CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import Claims, Objects, claims_of, objects_of
from roadaware.metrics.corner_cases.instances import by_class, by_object
from roadaware.metrics.corner_cases.matching import Met, matched
from roadaware.metrics.corner_cases.state import JudgedCorners, state_of
from roadaware.metrics.corner_cases.trivial import RANDOM, WHOLE, random_boxes, whole_pictures
from roadaware.metrics.judged import SceneResult, result, slices, values_of
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

UNANSWERED = "unanswered groups"
"""The note of Predictions that tells which groups they have no answer to, each with the reason."""
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
    """Average recall of claimed boxes on the objects of each group, as COCO's evaluator has it.

    A metric is called by its group and its name: `corner_ar` is the recall of corner cases, averaged over the
    overlaps 0.5, 0.55, ... 0.95, with at most 100 claims a picture. All lie in [0, 1], higher is better. Rows
    with a label are of a class or super-class. Groups that claims have no answer to (the note `UNANSWERED`
    of the predictions; of claims that do not say what they are all but `corner` and `all`) are undefined.
    `baselines` holds what the whole picture and random boxes would score, `facts` their recall in each slice.

    Args:
        predictions: boxes with `score`; `common`, `novel` and labels of the kind `corner` where they say so.
        scenes: boxes with, as far as known, what `objects_of` names.
        config: how they are judged; `CornerConfig.default()` unless told.
        by: columns to slice by: `period`, `weather`, `domain`, `density`, ...
        draws: resamples of videos for the intervals; a set of pictures has one picture a video.
        seed: of the resamples and of the random boxes.

    Returns:
        whole, classes and slices; instances of `object` and `class`.

    Raises:
        InputError: if there is no true box in an annotated picture, a claim has no score, or none is about a
            picture of the truth.
        UsageError: if `draws` is negative or there is no such column.

    Source: Li et al., ECCV 2022 (CODA), section 5.1; Lin et al., ECCV 2014 (COCO).
    """
    config = config or CornerConfig.default()
    truth = objects_of(scenes, area=config.area, risk=config.risk)
    claims, foreign = claims_of(predictions, truth)
    unanswered = _unanswered(predictions, config)
    met = {
        group: matched(group, truth, _none(claims) if group in unanswered else claims, config)
        for group in config.groups
    }
    state = state_of(truth, claims, met, unanswered, config)
    trivial = _trivial(truth, config, seed)
    return result(
        state,
        config,
        by=by,
        draws=draws,
        seed=seed,
        notes=_notes(truth, unanswered, trivial),
        makers={
            "object": partial(by_object, truth, claims, met),
            "class": partial(by_class, truth, claims, met, config),
        },
        left_out=_left_out(truth, met, foreign, config),
        baselines={name: values_of(answer) for name, answer in trivial.items()},
        facts=_facts(truth, claims, state, trivial, by),
    )


def _notes(
    truth: Objects, unanswered: Mapping[str, str], trivial: Mapping[str, JudgedCorners]
) -> tuple[str, ...]:
    """What had to be assumed, and what has no answer."""
    told = (*truth.notes, *(f"{group}: {why}" for group, why in unanswered.items()))
    return told if trivial else (*told, "pictures of unknown size have no trivial answers")


def _unanswered(predictions: Predictions, config: CornerConfig) -> dict[str, str]:
    """Groups that the claims have no answer to, with the reason."""
    said = predictions.meta.notes.get(UNANSWERED)
    if isinstance(said, Mapping):
        return {group: str(said.get(group) or "") for group in config.groups if said.get(group)}
    held = {"corner", "all", *({"common", "novel"} & set(predictions.boxes.columns))}
    held |= set() if predictions.labels.is_empty() else {"classes"}
    return {group: "the claims do not say what they are" for group in config.groups if group not in held}


def _none(claims: Claims) -> Claims:
    """No claim at all."""
    fields = ("item", "corners", "sides", "common", "novel", "label", "score")
    return Claims(**{name: getattr(claims, name)[:0] for name in fields})


def _trivial(truth: Objects, config: CornerConfig, seed: int) -> dict[str, JudgedCorners]:
    """The states of the answers without a detector; none where no picture's size is known."""
    if np.isnan(truth.sizes).all():
        return {}
    answers = {WHOLE: whole_pictures(truth), RANDOM: random_boxes(truth, config.max_detections[-1], seed)}
    found = {}
    for name, claims in answers.items():
        met = {group: matched(group, truth, claims, config, every=True) for group in config.groups}
        found[name] = state_of(truth, claims, met, {}, config)
    return found


def _left_out(truth: Objects, met: Mapping[Group, Met], foreign: int, config: CornerConfig) -> dict[str, int]:
    most = config.max_detections[-1]
    left = {
        "claims on pictures that the truth lacks": foreign,
        "objects that are marked as not asked for": int(
            (truth.marked if config.ignored == "marked" else truth.crowd).sum()
        ),
    }
    return left | {
        f"claims of {group} beyond the {most} best of their picture": each.beyond
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
        name: {which: values_of(answer.only(kept)) for which, answer in recalled.items()}
        for name, kept in slices(state, by).items()
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
