"""Audit of labels by logical requirements: which boxes and tracks of ground truth violate which, with examples."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.audit.checks import SHOWN, Audit, Example, Finding, Table
from roadaware.arrays import Bools, Ints
from roadaware.errors import InputError
from roadaware.metrics.requirements import build_label_rows
from roadaware.scenes.requirements import BoundRequirements, Requirements, bind_requirements, group_equal_rows
from roadaware.scenes.tables import Scenes, filter_boxes

REQUIREMENTS = "requirements"
"""The `task` in the facts of such an audit."""
_EXAMPLES = 3
_WHY = "labels that break a requirement are slips of annotators, or cases that nobody thought of when it was written"
_ADVICE = "look at the examples; correct the labels, or leave the requirement out"


def audit_requirements(scenes: Scenes, requirements: Requirements) -> Audit:
    """Hold the labels of ground truth against requirements, clause by clause.

    A track violates a requirement if one of its boxes does. Boxes that are marked as ignored are left out.

    Args:
        scenes: with labels of boxes.
        requirements: over labels by name.

    Returns:
        findings: `requirements-violated` with a row for each violated requirement (boxes, tracks, up to three
        examples), `violations-by-label`, `labels-outside-requirements`.

    Raises:
        InputError: if the labels are others than the requirements name, or there are no labelled boxes.
    """
    if scenes.labels.is_empty():
        raise InputError(
            "expected boxes with labels, found none: requirements have nothing to be held against"
        )
    kinds = set(scenes.labels["kind"].cast(pl.String).unique().to_list())
    held = {kind: labels for kind, labels in scenes.meta.vocabularies.items() if kind in kinds}
    bound = bind_requirements(requirements, held)
    judged = scenes
    if "ignore" in scenes.boxes.columns:
        judged = filter_boxes(scenes, ~pl.col("ignore").fill_null(value=False))
    there = build_label_rows(judged, bound)
    rows, which = group_equal_rows(there)
    broken_rows = bound.violations(rows)
    violating = np.any(broken_rows, axis=1, keepdims=True)[which, 0]
    findings = [
        _find_violations(judged, bound, there, broken_rows, which),
        _count_by_label(bound, there, violating),
        _find_unnamed_labels(judged, bound, violating),
    ]
    skipped = {f"{REQUIREMENTS}, {k + 1}" if k else REQUIREMENTS: note for k, note in enumerate(bound.notes)}
    return Audit(
        scenes.meta.dataset,
        {"task": REQUIREMENTS, "type": requirements.name, "requirements": len(requirements)},
        tuple(finding for finding in findings if finding.count),
        tuple(finding.name for finding in findings if not finding.count),
        skipped,
    )


def _find_violations(
    scenes: Scenes, bound: BoundRequirements, there: Bools, broken_rows: Bools, which: Ints
) -> Finding:
    """Each violated requirement with its boxes, tracks and examples."""
    rules, boxes = bound.requirements, scenes.boxes
    n_boxes = len(boxes)
    tracks = boxes["tube"] if "tube" in boxes.columns else pl.Series([None] * n_boxes, dtype=pl.Int64)
    track = tracks.fill_null(-1).to_numpy()
    times = np.bincount(which, minlength=len(broken_rows))
    counts = times @ broken_rows.astype(np.int64)
    violating = np.any(broken_rows, axis=1, keepdims=True)[which, 0]
    table: list[tuple[str | int | float | None, ...]] = []
    examples: list[Example] = []
    for column in np.argsort(-counts, kind="stable").tolist():
        if not counts[column]:
            break
        clause = bound.judged[column]
        at = np.flatnonzero(broken_rows[which, column])
        places = _list_examples(scenes, bound, there, at)
        examples += places[: 1 if examples else SHOWN]
        table.append(
            (
                rules.place(clause),
                rules.describe_clause(clause),
                int(counts[column]),
                _count_tracks(track[at]),
                "; ".join(f"{each.video} @{each.frame} {each.note}" for each in places),
            )
        )
    n_tracks, all_tracks = _count_tracks(track[violating]), _count_tracks(track)
    return Finding(
        "requirements-violated",
        "warning",
        int(violating.sum()),
        n_boxes,
        f"{int(violating.sum()):,} of {n_boxes:,} boxes, and {n_tracks:,} of {all_tracks:,} tracks, violate "
        f"{len(table)} of {len(bound.judged)} requirements",
        _WHY,
        _ADVICE,
        Table(("requirement", "in words", "boxes", "tracks", "examples"), tuple(table)),
        {
            "boxes": n_boxes,
            "violating_boxes": int(violating.sum()),
            "tracks": all_tracks,
            "violating_tracks": n_tracks,
            "judged_requirements": len(bound.judged),
            "violated_requirements": len(table),
        },
        tuple(examples[:SHOWN]),
    )


def _count_tracks(track: Ints) -> int:
    return len(np.unique(track[track >= 0]))


def _list_examples(scenes: Scenes, bound: BoundRequirements, there: Bools, at: Ints) -> list[Example]:
    """The first boxes of some tracks, one of each: neighbours in time are alike."""
    boxes = scenes.boxes[at.tolist()].with_row_index("row")
    if "tube" in boxes.columns:
        alone = pl.col("tube").is_null()
        boxes = pl.concat(
            [boxes.filter(alone), boxes.filter(~alone).unique("tube", keep="first", maintain_order=True)]
        ).sort("row")
    found = []
    for box in boxes.head(_EXAMPLES).iter_rows(named=True):
        labels = [name for name, held in zip(bound.labels, there[at[box["row"]]], strict=True) if held]
        note = f"box {box['box']}: {', '.join(labels) or 'no label that is named'}"
        found.append(Example(str(box["video"]), None, int(box["frame"]), note))
    return found


def _count_by_label(bound: BoundRequirements, there: Bools, violating: Bools) -> Finding:
    """For each label its boxes and those of them that violate something."""
    boxes, of_them = there.sum(axis=0), there[violating].sum(axis=0)
    rows = [
        (name, int(n), int(bad), round(100 * int(bad) / int(n), 2))
        for name, n, bad in zip(bound.labels, boxes, of_them, strict=True)
        if bad
    ]
    rows.sort(key=lambda row: (-row[2], row[0]))
    return Finding(
        "violations-by-label",
        "note",
        len(rows),
        int((boxes > 0).sum()),
        f"{len(rows)} of {int((boxes > 0).sum())} labels stand on boxes that violate some requirement",
        "a class whose boxes violate often is labelled by other rules than the requirements were written for",
        "begin with the first rows",
        Table(("label", "boxes", "violating", "share, %"), tuple(rows)),
    )


def _find_unnamed_labels(scenes: Scenes, bound: BoundRequirements, violating: Bools) -> Finding:
    """Labels of the same kinds that no requirement names: nothing is asked of them, and they satisfy nothing."""
    named = pl.DataFrame(
        [column for column in bound.columns if column is not None],
        schema={"kind": pl.String, "label": pl.Int64},
        orient="row",
    )
    at = scenes.boxes.select("box").with_columns(violating=pl.Series(violating))
    labels = scenes.labels.with_columns(pl.col("kind").cast(pl.String)).join(at, on="box")
    outside = labels.filter(pl.col("kind").is_in(list(bound.kinds))).join(
        named, on=["kind", "label"], how="anti"
    )
    counts = outside.group_by("kind", "label").agg(pl.col("box").n_unique(), pl.col("violating").sum())
    rows = [
        (kind, scenes.meta.vocabularies[kind][label], boxes, int(bad))
        for kind, label, boxes, bad in counts.iter_rows()
    ]
    rows.sort(key=lambda row: (-row[2], row[1]))
    count = outside["box"].n_unique()
    return Finding(
        "labels-outside-requirements",
        "note",
        count,
        len(scenes.boxes),
        f"{count:,} boxes carry labels that no requirement names: {', '.join(row[1] for row in rows[:SHOWN])}",
        "such a box may violate a requirement that asks for one of several labels, because its own is not among them",
        "judge these violations apart, or add the labels to the requirements",
        Table(("kind", "label", "boxes", "violating"), tuple(rows)),
    )
