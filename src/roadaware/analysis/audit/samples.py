"""Checks on the samples: whether answers are annotated, and hidden from the observation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from roadaware.analysis.audit.checks import (
    Context,
    Finding,
    NotApplicableError,
    Severity,
    Table,
    list_examples,
)
from roadaware.arrays import Bools
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.sampling import Iv2024, describe_exclusions, sample
from roadaware.scenes.tracks import extract_windows
from roadaware.statistics import classification
from roadaware.statistics.classification import roc_auc


def check_empty_split(context: Context) -> Finding:
    """Splits without videos or without samples."""
    asked, notes = context.asked, context.sampled.meta.notes["sampling"]
    empty = [split for split in asked.splits if split not in context.protocol.splits]
    messages = [
        f"{split} ({describe_exclusions(notes[split]) if split in notes else 'no videos'})" for split in empty
    ]
    lines = [
        (split, *(notes.get(split, {}).get(key, 0) for key in ("pedestrians", "sampled", "samples")))
        for split in asked.splits
    ]
    return Finding(
        name="empty-split",
        severity="serious",
        count=len(empty),
        out_of=len(asked.splits),
        sentence=f"{len(empty)} of {len(asked.splits)} splits of {asked.subset} have no samples: "
        f"{', '.join(messages)}.",
        why="Nothing can be fitted, chosen or tested on a split without samples; the checks on samples below "
        "are made on the other splits.",
        advice="Complete the list of the split and the annotations of the videos that it names.",
        table=Table(("split", "pedestrians", "sampled", "samples"), tuple(lines)),
    )


def label_unknown(context: Context) -> Finding:
    """Pedestrians who should have a label and have none, so that nothing can be asked about them."""
    if context.protocol.task == "intention":
        raise NotApplicableError("intention does not ask whether somebody crosses")
    notes = [context.sampled.meta.notes["sampling"][split] for split in context.protocol.splits]
    count = sum(note["pedestrians_without_label"] for note in notes)
    out_of = sum(note["pedestrians"] for note in notes)
    name = pl.col("name")
    asked = name.str.ends_with("b") if context.protocol.dataset == "jaad" else name.is_not_null()
    return Finding(
        name="label-unknown",
        severity="serious",
        count=count,
        out_of=out_of,
        sentence=f"Of {count} of {out_of} pedestrians nothing says whether they cross, though it should.",
        why="They are left out of the samples: taken for pedestrians who do not cross, they would turn "
        "crossings into the opposite. Numbers on what is left are not those of the whole split.",
        advice="Read the dataset with all files of its annotations_attributes, undamaged.",
        examples=list_examples(context.pedestrians.filter(asked & pl.col("crossing").is_null())),
    )


def check_missing_event(context: Context) -> Finding:
    """Crossing samples of pedestrians whose start of crossing nobody annotated."""
    rows = context.samples.filter(pl.col("crosser"))
    return _of_last_split(
        context,
        rows,
        pl.col("event_source") != "annotated",
        f"crossing {context.protocol.splits[-1]} samples come from pedestrians "
        "without an annotated event; the protocol puts one at the third-last box of the track.",
        name="crossing-without-event",
        severity="serious",
        why="Most of these pedestrians are crossing already when first seen, so the model is asked to "
        "detect, not to predict, and the time to event counts down to the end of the track.",
        advice="Leave them out: the protocol's default() does, reference() keeps them for parity.",
        at="event_frame",
    )


def check_observed_crossing(context: Context) -> Finding:
    """Crossing samples that show the crossing inside the observation."""
    samples = context.samples.with_columns(pl.Series("seen", context.observed_crossing))
    rows = samples.filter(pl.col("crosser"))
    last = context.protocol.splits[-1]
    others = samples.filter(~pl.col("crosser") & pl.col("seen") & (pl.col("split") == last))
    return _of_last_split(
        context,
        rows,
        pl.col("seen"),
        f"crossing {last} samples show the crossing inside the observation.",
        name="crossing-observed",
        severity="serious",
        why="The answer is in sight: a model that recognises crossing scores as one that predicts it.",
        advice="Leave these samples out: the protocol's default() does.",
        measures={"not_crossing_samples_tagged_as_crossing": len(others)},
    )


def check_region_off_screen(context: Context) -> Finding:
    """Risk samples whose region changes when boxes left of the image go to the first region."""
    protocol = context.protocol
    if not isinstance(protocol, Iv2024) or protocol.task != "risk":
        raise NotApplicableError("only risk asks for a region")
    repaired = sample(context.scenes, replace(protocol, risk_off_left="first_region")).samples
    rows = context.samples.with_columns(repaired["label"].alias("repaired"))
    return _of_last_split(
        context,
        rows,
        pl.col("label") != pl.col("repaired"),
        f"{protocol.splits[-1]} samples end left of the image and carry the "
        "label of the last region, on the right.",
        name="region-off-screen",
        severity="warning",
        why="No interval of the published code holds a negative centre; its search ends at the last region.",
        advice="Use default(), which gives them the first region.",
    )


def check_critical_point(context: Context) -> Finding:
    """Intention samples that show more than the people saw whose answers are the label."""
    protocol = context.protocol
    if not isinstance(protocol, Iv2024) or protocol.task != "intention":
        raise NotApplicableError("only intention has a critical point")
    kept = sample(context.scenes, replace(protocol, intention_past_critical="drop")).samples
    keys = ["tube", "start_frame", "end_frame"]
    inside = context.samples.join(kept.select(keys), on=keys, how="semi")
    return _of_last_split(
        context,
        context.samples,
        ~pl.col("sample").is_in(inside["sample"].implode()),
        f"{protocol.splits[-1]} samples observe frames behind the critical "
        "point, up to which the annotators watched.",
        name="past-critical-point",
        severity="warning",
        why="The model sees more than the people whose answers it is asked to give.",
        advice="Leave these samples out: the protocol's default() does.",
    )


def check_class_balance(context: Context) -> Finding:
    """How the answers are spread; always a note."""
    task, last = context.protocol.task, context.protocol.splits[-1]
    labels = context.sampled.meta.vocabularies[task]
    counts = {
        split: [held.filter(pl.col("label") == label).height for label in range(len(labels))]
        for split in context.protocol.splits
        for held in [context.samples.filter(pl.col("split") == split)]
    }
    test = counts[last]
    common, total = max(range(len(labels)), key=lambda label: test[label]), max(sum(test), 1)
    share = test[common] / total
    return Finding(
        name="class-balance",
        severity="note",
        count=test[common],
        out_of=sum(test),
        sentence=f"{test[common]} of {sum(test)} {last} samples ({share:.1%}) are {labels[common]}.",
        why=f"Always answering {labels[common]} gives an accuracy of {share:.3f} and a balanced accuracy of "
        f"{1 / len(labels):.3f}.",
        advice="Read balanced accuracy and ranking metrics beside the accuracy.",
        table=Table(
            ("label", *counts),
            tuple((name, *(held[label] for held in counts.values())) for label, name in enumerate(labels)),
        ),
        measures={"accuracy_of_the_most_frequent_label": share},
    )


def _of_last_split(
    context: Context,
    rows: pl.DataFrame,
    wrong: pl.Expr,
    says: str,
    *,
    name: str,
    severity: Severity,
    why: str,
    advice: str,
    at: str = "start_frame",
    measures: dict[str, float | int | None] | None = None,
) -> Finding:
    """A finding on samples: counted in the last split, which is the one that is judged, and described for all.

    Args:
        rows: the samples that could be wrong.
        wrong: which of them are.
        says: what is wrong with them; the sentence is `<count> of <out_of> <says>`.
        name, severity, why, advice, measures: see `Finding`.
        at: column of the frame at which examples are considered, one of each pedestrian.
    """
    # Samples and pedestrians that are wrong in each split, and the last split's samples.
    lines = []
    for split in context.protocol.splits:
        held = rows.filter(pl.col("split") == split)
        bad = held.filter(wrong)
        lines.append((split, len(bad), len(held), bad["tube"].n_unique(), held["tube"].n_unique()))
    columns = ("split", "samples", "of_samples", "pedestrians", "of_pedestrians")
    table, count, out_of = Table(columns, tuple(lines)), int(lines[-1][1]), int(lines[-1][2])
    hit = rows.filter(wrong & (pl.col("split") == context.protocol.splits[-1]))
    return Finding(
        name=name,
        severity=severity,
        count=count,
        out_of=out_of,
        sentence=f"{count} of {out_of} {says}",
        why=why,
        advice=advice,
        table=table,
        measures=measures or {},
        examples=list_examples(hit.unique("tube", maintain_order=True), at),
    )


# Checks for what gives the answer away: facts that were only recorded because the answer was known.

_TELLING_AUC = 0.65
_TAGS = ("action", "look", "cross")
_ATTRIBUTES = ("age", "gender", "group_size", "num_lanes", "intersection")


def check_identifier_leak(context: Context) -> Finding:
    """The last letter of the pedestrian's identifier as a predictor."""
    samples = _select_crossing_samples(context)
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


def check_behaviour_leak(context: Context) -> Finding:
    """Whether a box carries behaviour tags as a predictor."""
    tags = [tag for tag in _TAGS if tag in context.scenes.boxes.columns]
    if not tags:
        raise NotApplicableError("boxes have no behaviour tags")
    samples = _select_crossing_samples(context)
    has = pl.any_horizontal(pl.col(tag).is_not_null() for tag in tags).cast(pl.Float64)
    plain = context.scenes.with_tables(boxes=context.scenes.boxes.with_columns(has.alias("has_tags")))
    flag = extract_windows(plain, samples, ("has_tags",))[:, -1, 0] == 1
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


def check_attribute_leak(context: Context) -> Finding:
    """Whether attributes of the pedestrian are known as a predictor."""
    known = [column for column in _ATTRIBUTES if column in context.scenes.tubes.columns]
    if not known:
        raise NotApplicableError("tubes have no attributes")
    samples = _select_crossing_samples(context)
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


def _select_crossing_samples(context: Context) -> pl.DataFrame:
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
    """A finding if the flag alone separates crossing from not crossing, else one that counts nothing."""
    truth = samples["label"].to_numpy()
    area = _auc(samples, flag)
    f1 = float(
        np.max(classification.f1(classification.confusion_matrix(truth, flag.astype(np.int64), 2), "binary"))
    )
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
        examples=list_examples(samples.filter(pl.Series(flag)).unique("tube", maintain_order=True))
        if telling
        else (),
    )


# The sample counts that papers print, and whether the samples agree.

_VIDEOS = {"jaad": 346, "pie": 53}


def sample_counts(context: Context) -> Finding:
    """The published extraction's counts against print."""
    protocol = context.protocol
    key = (protocol.dataset, protocol.task)
    if key not in TABLE_I or protocol != Iv2024.reference(protocol.task, protocol.dataset):
        raise NotApplicableError("no paper prints counts for this protocol")
    if len(context.scenes.videos) != _VIDEOS[protocol.dataset]:
        raise NotApplicableError(
            f"{protocol.dataset} has {_VIDEOS[protocol.dataset]} videos, not {len(context.scenes.videos)}"
        )
    labels = context.sampled.meta.vocabularies[protocol.task]
    rows = []
    for where, printed in TABLE_I[key].items():
        for label, name in enumerate(labels):
            rows.append((f"{where}, {name}", printed[label], _count_samples(context, where, label)))
    differing = [row for row in rows if row[1] != row[2]]
    assumption = context.sampled.meta.notes.get("assumption")
    text = "; ".join(f"{name}: printed {printed}, obtained {found}" for name, printed, found in differing)
    return Finding(
        name="sample-counts",
        severity="note",
        count=len(differing),
        out_of=len(rows),
        sentence=f"{len(differing)} of {len(rows)} counts of Table I (IV 2024) differ from ours: {text}.",
        why="Counts that differ mean that other samples were scored, or that the table slipped. This table "
        "also prints the name JAAD beside the numbers of PIE."
        + (f" Here it is assumed that {assumption}." if assumption else ""),
        advice="Where all counts of samples agree, trust the samples, not the counts of pedestrians.",
        table=Table(("count", "printed", "obtained"), tuple(rows)),
    )


def _count_samples(context: Context, where: str, label: int) -> int:
    rows = context.samples.filter(pl.col("label") == label)
    return rows["tube"].n_unique() if where == "pedestrians" else len(rows.filter(pl.col("split") == where))
