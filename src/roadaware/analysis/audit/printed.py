"""The sample counts that papers print, and whether the samples agree."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.audit.context import Context, NotApplicableError
from roadaware.analysis.audit.findings import Finding, Table
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.sampling import Iv2024

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
            rows.append((f"{where}, {name}", printed[label], _obtained(context, where, label)))
    differing = [row for row in rows if row[1] != row[2]]
    assumption = context.sampled.meta.notes.get("assumption")
    told = "; ".join(f"{name}: printed {printed}, obtained {found}" for name, printed, found in differing)
    return Finding(
        name="sample-counts",
        severity="note",
        count=len(differing),
        out_of=len(rows),
        sentence=f"{len(differing)} of {len(rows)} counts of Table I (IV 2024) differ from ours: {told}.",
        why="Counts that differ mean that other samples were scored, or that the table slipped. This table "
        "also prints the name JAAD beside the numbers of PIE."
        + (f" Here it is assumed that {assumption}." if assumption else ""),
        advice="Where all counts of samples agree, trust the samples, not the counts of pedestrians.",
        table=Table(("count", "printed", "obtained"), tuple(rows)),
    )


def _obtained(context: Context, where: str, label: int) -> int:
    rows = context.samples.filter(pl.col("label") == label)
    return rows["tube"].n_unique() if where == "pedestrians" else len(rows.filter(pl.col("split") == where))
