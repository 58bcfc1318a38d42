"""What stands beside the average precision of road events: tracks, streaming, scores by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roadaware.cli.event_runs import EventRun
    from roadaware.cli.event_scoring import Scored
    from roadaware.reports.page import Block

CALIBRATED_AT = (("frame", "boxes", 0.5), ("video:stiou", "tubes", 0.2))
_BESIDE = ("tracking", "streaming", "calibration")
_COUNTS = ("switches", "fragmentations")


def json_of(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts of a run as they stand in the JSON: those beside the metrics, in per cent, and the others."""
    beside = {name: facts[name] for name in _BESIDE if facts.get(name) is not None}
    if "tracking" in beside:
        beside["tracking"] = {
            metric: row if metric in _COUNTS else {key: _times(value) for key, value in row.items()}
            for metric, row in beside["tracking"].items()
        }
    return beside, {name: value for name, value in facts.items() if name not in _BESIDE}


def calibration_by_slice(came: Scored, by: Sequence[str]) -> list[dict[str, Any]] | None:
    """How far scores can be believed in each slice of videos, kind by kind; None without such slices.

    Slices that tell boxes of one frame apart, such as by height, are left out: a box that nobody asks about
    there is neither right nor wrong.

    Args:
        came: what was judged.
        by: names of slices, as `--by` has them.

    Returns:
        rows with `of` (boxes or tubes), `group`, `kind`, `claims`, `mean_score`, `precision` and `ece`.
    """
    import polars as pl

    from roadaware.analysis.event_slices import slices_by
    from roadaware.metrics.detection.calibration import calibration_table

    rows: list[dict[str, Any]] = []
    for name, part in slices_by(came.scenes, by).items():
        if part.of_boxes or part.videos is None:
            continue
        groups = dict.fromkeys(part.videos, name)
        for level, of, threshold in CALIBRATED_AT:
            held = came.matches.get(level)
            if held is None or threshold not in held.thresholds:
                continue
            table = calibration_table(held, threshold, groups=groups)
            table = table.filter(pl.col("group") == name, pl.col("label").is_null())
            rows += table.drop("label", "valid").with_columns(of=pl.lit(of)).to_dicts()
    return rows or None


def beside_blocks(run: EventRun) -> list[Block]:
    """Tracking and streaming, where they were asked for, as blocks of a report."""
    from roadaware.cli.event_streaming import clock_words, streaming_rows
    from roadaware.reports.event_beside import streaming_table
    from roadaware.reports.event_tables import tracking_table

    blocks: list[Block] = []
    if run.facts.get("tracking"):
        blocks.append(tracking_table(run.facts["tracking"], str(run.facts.get("tracked", ""))))
    found = run.facts.get("streaming")
    if found:
        names, rows = streaming_rows(run.summary, found)
        blocks.append(streaming_table(names, rows, clock_words(found)))
    return blocks


def calibration_blocks(run: EventRun) -> list[Block]:
    """How far scores can be believed in each slice, where slices were asked for, as blocks of a report."""
    from roadaware.reports.event_beside import slice_calibration

    rows = run.facts.get("calibration") or []
    parts = {of: [row for row in rows if row["of"] == of] for _, of, _ in CALIBRATED_AT}
    return [slice_calibration(of, held) for of, held in parts.items() if held]


def _times(value: float | None) -> float | None:
    return None if value is None else 100 * value
