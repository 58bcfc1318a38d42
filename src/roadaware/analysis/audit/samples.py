"""Checks on the samples: whether answers are annotated, and hidden from the observation."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from roadaware.analysis.audit.context import Context, NotApplicableError, places
from roadaware.analysis.audit.findings import Finding, Severity, Table
from roadaware.scenes.sampling import Iv2024, left_out, sample


def empty_split(context: Context) -> Finding:
    """Splits without videos or without samples."""
    asked, notes = context.asked, context.sampled.meta.notes["sampling"]
    empty = [split for split in asked.splits if split not in context.protocol.splits]
    told = [f"{split} ({left_out(notes[split]) if split in notes else 'no videos'})" for split in empty]
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
        f"{', '.join(told)}.",
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
        examples=places(context.pedestrians.filter(asked & pl.col("crossing").is_null())),
    )


def crossing_without_event(context: Context) -> Finding:
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


def crossing_observed(context: Context) -> Finding:
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


def region_off_screen(context: Context) -> Finding:
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


def past_critical_point(context: Context) -> Finding:
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


def class_balance(context: Context) -> Finding:
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
    """A finding on samples: counted in the last split, which is the one that is judged, and told of all.

    Args:
        rows: the samples that could be wrong.
        wrong: which of them are.
        says: what is wrong with them; the sentence is `<count> of <out_of> <says>`.
        name, severity, why, advice, measures: see `Finding`.
        at: column of the frame at which examples are looked at, one of each pedestrian.
    """
    table, count, out_of = _by_split(context, rows, wrong)
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
        examples=places(hit.unique("tube", maintain_order=True), at),
    )


def _by_split(context: Context, rows: pl.DataFrame, wrong: pl.Expr) -> tuple[Table, int, int]:
    """Samples and pedestrians that are wrong in each split, and the last split's samples."""
    lines = []
    for split in context.protocol.splits:
        held = rows.filter(pl.col("split") == split)
        bad = held.filter(wrong)
        lines.append((split, len(bad), len(held), bad["tube"].n_unique(), held["tube"].n_unique()))
    columns = ("split", "samples", "of_samples", "pedestrians", "of_pedestrians")
    return Table(columns, tuple(lines)), int(lines[-1][1]), int(lines[-1][2])
