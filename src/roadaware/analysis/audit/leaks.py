"""Checks for what gives the answer away: facts that were only recorded because the answer was known."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.audit.context import Context, NotApplicableError, places
from roadaware.analysis.audit.findings import Finding, Severity
from roadaware.arrays import Bools
from roadaware.scenes.windows import windows
from roadaware.statistics import rates
from roadaware.statistics.ranking import roc_auc

_TELLING_AUC = 0.65
_TAGS = ("action", "look", "cross")
_ATTRIBUTES = ("age", "gender", "group_size", "num_lanes", "intersection")


def identifier(context: Context) -> Finding:
    """The last letter of the pedestrian's identifier as a predictor."""
    samples = _asked(context)
    letters = samples["name"].str.extract(r"([A-Za-z])$")
    flags = {
        letter: (letters == letter).fill_null(False).to_numpy() for letter in sorted(set(letters) - {None})
    }
    if not flags:
        flags = {"": np.zeros(len(samples), bool)}
    letter = max(flags, key=lambda key: _auc(samples, flags[key]) or 0.0)
    return _leak(
        samples,
        flags[letter],
        name="identifier-leak",
        what=f"the identifier ends with '{letter}'",
        why="The letter marks pedestrians whose behaviour was annotated, and all who cross are among "
        "them: whoever reads the name, or anything recorded for them alone, reads the answer.",
        advice="Never feed identifiers, or what depends on them, to a model.",
    )


def behaviour_tags(context: Context) -> Finding:
    """Whether a box carries behaviour tags as a predictor."""
    tags = [tag for tag in _TAGS if tag in context.scenes.boxes.columns]
    if not tags:
        raise NotApplicableError("boxes have no behaviour tags")
    samples = _asked(context)
    has = pl.any_horizontal(pl.col(tag).is_not_null() for tag in tags).cast(pl.Float64)
    plain = context.scenes.with_tables(boxes=context.scenes.boxes.with_columns(has.alias("has_tags")))
    flag = windows(plain, samples, ("has_tags",))[:, -1, 0] == 1
    return _leak(
        samples,
        flag,
        name="behaviour-tag-leak",
        what=f"the last observed box carries behaviour tags ({', '.join(tags)})",
        why="Tags exist for some pedestrians only, and all who cross are among them; a placeholder "
        "for the others tells the model who they are.",
        advice="Do not feed behaviour tags to a model when all pedestrians are sampled; or sample only those "
        "who have tags.",
    )


def attributes(context: Context) -> Finding:
    """Whether attributes of the pedestrian are known as a predictor."""
    known = [column for column in _ATTRIBUTES if column in context.scenes.tubes.columns]
    if not known:
        raise NotApplicableError("tubes have no attributes")
    samples = _asked(context)
    has = pl.any_horizontal(pl.col(column).is_not_null() for column in known)
    facts = context.scenes.tubes.select("tube", has.alias("has"))
    flag = samples.join(facts, on="tube", how="left", maintain_order="left")["has"].to_numpy()
    return _leak(
        samples,
        flag,
        name="attribute-leak",
        what=f"attributes ({', '.join(known)}) are known",
        why="Attributes were recorded for some pedestrians only, and all who cross are among them.",
        advice="Do not feed attributes to a model when all pedestrians are sampled.",
    )


def _asked(context: Context) -> pl.DataFrame:
    """The samples of the last split, if they ask whether somebody crosses and some do and some do not."""
    if context.protocol.task != "action":
        raise NotApplicableError(f"{context.protocol.task} does not ask whether somebody crosses")
    samples = context.samples.filter(pl.col("split") == context.protocol.splits[-1])
    if samples["label"].n_unique() < 2:
        raise NotApplicableError(f"all {context.protocol.splits[-1]} samples have the same answer")
    return samples


def _auc(samples: pl.DataFrame, flag: Bools) -> float | None:
    return roc_auc(samples["label"].to_numpy() == 1, flag.astype(np.float64))


def _leak(samples: pl.DataFrame, flag: Bools, *, name: str, what: str, why: str, advice: str) -> Finding:
    """A finding if the flag alone tells crossing from not crossing, else one that counts nothing."""
    truth = samples["label"].to_numpy()
    area = _auc(samples, flag)
    f1 = float(np.max(rates.f1(rates.confusion(truth, flag.astype(np.int64), 2), "binary")))
    crossing, others = int((flag & (truth == 1)).sum()), int((flag & (truth != 1)).sum())
    telling = area is not None and area >= _TELLING_AUC
    severity: Severity = "serious"
    split = samples["split"][0]
    return Finding(
        name=name,
        severity=severity,
        count=crossing if telling else 0,
        out_of=int((truth == 1).sum()),
        sentence=f"That {what} holds for {crossing} of {(truth == 1).sum()} crossing {split} samples and for "
        f"{others} of {(truth != 1).sum()} others: alone it reaches an AUC of {area or 0:.3f} and an F1 of "
        f"{f1:.3f}.",
        why=why,
        advice=advice,
        measures={"auc": area, "f1": f1, "not_crossing_samples": others},
        examples=places(samples.filter(pl.Series(flag)).unique("tube", maintain_order=True))
        if telling
        else (),
    )
