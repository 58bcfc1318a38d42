"""Whether claimed actions mean what the true ones do: labels shifted, scores that are no scores."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, suspicious, wrong
from roadaware.geometry.boxes import paired_iou
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_MET, _CLEARLY = 0.5, 1.5
"""Claims are looked at that meet a true box by half; another reading must explain half as many again."""


def label_shift(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether labels claimed one higher or lower would be right far more often.

    Args:
        predictions: with `boxes` and `labels` of the kind action.
        scenes: the same.
    """
    pairs = _met(predictions, scenes)
    if len(pairs) < 10:
        return []
    ids = _ids(scenes)
    claimed = [ids.get(label, -10) for label in pairs["label"]]
    true = [{ids.get(label, -99) for label in labels} for labels in pairs["labels"]]
    right = {
        n: float(np.mean([c + n in of for c, of in zip(claimed, true, strict=True)])) for n in (-1, 0, 1)
    }
    best = max((-1, 1), key=lambda n: right[n])
    if right[best] < 0.2 or right[best] < _CLEARLY * right[0]:
        return []
    says = f"Claimed labels are {'higher' if best < 0 else 'lower'} by one than the true ones."
    evidence = f"{right[0]:.0%} of claims on true boxes are right as written, {right[best]:.0%} if {best:+d}"
    return wrong("label_shift", says, evidence, f"Add {best:+d} to every claimed id.")


def score_values(predictions: Predictions) -> list[Diagnosis]:
    """Whether the scores of labels can rank anything.

    Args:
        predictions: with `labels`.
    """
    if predictions.labels.is_empty() or "score" not in predictions.labels.columns:
        return []
    scores = predictions.labels["score"].drop_nulls()
    if len(scores) < 10:
        return []
    if scores.n_unique() == 1:
        says = "Every claim has the same score: they cannot be ranked."
        return wrong(
            "constant", says, f"all are {scores[0]:g}", "Write the model's probabilities in column 8."
        )
    if set(scores.unique().to_list()) <= {0.0, 1.0}:
        says = "Scores are 0 and 1 only: decisions, or the number of a person, instead of probabilities."
        evidence = f"{int((scores == 1).sum())} ones among {len(scores)}"
        return suspicious("decisions", says, evidence, "Write the model's probabilities in column 8.")
    return []


def _met(predictions: Predictions, scenes: Scenes) -> pl.DataFrame:
    """`label` of each claim and `labels` of the true box that it meets best, by at least half."""
    tables = []
    for held in (scenes, predictions):
        boxes = held.boxes.select("box", pl.col("video").cast(pl.String), "frame", *CORNERS)
        tables.append(boxes)
    named = scenes.labels.group_by("box").agg(pl.col("label").alias("labels"))
    pairs = tables[1].join(tables[0].join(named, on="box"), on=["video", "frame"], suffix="_true")
    one = pairs.select(CORNERS).cast(pl.Float64).to_numpy()
    other = pairs.select([f"{c}_true" for c in CORNERS]).cast(pl.Float64).to_numpy()
    pairs = pairs.with_columns(iou=paired_iou(one, other)).filter(pl.col("iou") >= _MET)
    best = pairs.sort("iou", descending=True).unique("box", keep="first", maintain_order=True)
    return best.select("box", "labels").join(predictions.labels.select("box", "label"), on="box")


def _ids(scenes: Scenes) -> dict[int, int]:
    """Index in the vocabulary to the number that the file had."""
    native = scenes.meta.notes.get("label_ids", {}).get("action")
    names = scenes.meta.vocabularies.get("action", ())
    return dict(enumerate(native)) if native else {n: n for n in range(len(names))}
