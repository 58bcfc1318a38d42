"""Audit: errors in a dataset and in the samples that a protocol cuts from it; all checks, made one after the other."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace

from roadaware.analysis.audit import findings
from roadaware.analysis.audit.checks import SEVERITIES, Audit, Context, Example, Finding, NotApplicableError
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.scenes.sampling import EventProtocol, list_filled_splits, sample
from roadaware.scenes.tables import Scenes

Check = Callable[[Context], Finding]

CHECKS: dict[str, Check] = {
    "empty-split": findings.check_empty_split,
    "label-unknown": findings.label_unknown,
    "crossing-without-event": findings.check_missing_event,
    "crossing-observed": findings.check_observed_crossing,
    "identifier-leak": findings.check_identifier_leak,
    "behaviour-tag-leak": findings.check_behaviour_leak,
    "attribute-leak": findings.check_attribute_leak,
    "region-off-screen": findings.check_region_off_screen,
    "past-critical-point": findings.check_critical_point,
    "sample-counts": findings.sample_counts,
    "class-balance": findings.check_class_balance,
    "tags-against-attribute": findings.check_tags_against_attribute,
    "attribute-against-tags": findings.check_attribute_against_tags,
    "event-far-from-tags": findings.check_event_distance,
    "event-outside-track": findings.check_event_outside_track,
    "crosser-without-event": findings.check_crosser_event,
    "event-without-crossing": findings.check_event_without_crossing,
    "track-gaps": findings.track_gaps,
    "boxes-outside-image": findings.check_boxes_outside,
    "boxes-without-area": findings.check_empty_boxes,
    "repeated-names": findings.check_repeated_names,
    "vehicle-action": findings.check_vehicle_action,
    "videos-in-two-splits": findings.check_split_overlap,
    "videos-in-no-split": findings.check_unassigned_videos,
    "rejected": findings.check_rejected,
}

_TUBES = ("name", "crossing", "start_frame", "end_frame", "event_frame", "event_source")


@dataclass(frozen=True)
class _Outcome:
    name: str
    finding: Finding | None = None
    skipped: str = ""


def audit(scenes: Scenes, protocol: EventProtocol) -> Audit:
    """Run all checks on the scenes and on the samples that the protocol cuts from them.

    Args:
        scenes: as a reader gives them; samples in them are ignored.
        protocol: how samples are cut; its `reference()` shows what published numbers rest on.

    Raises:
        UsageError: if the protocol is of another dataset.
        InputError: if the scenes lack what the protocol needs, or no split has samples.
    """
    # The samples of those splits that hold videos: an empty one is a finding, and no end of the audit.
    missing = [column for column in _TUBES if column not in scenes.tubes.columns]
    if missing:
        raise InputError(
            f"an audit needs the tubes' {missing}; they have {scenes.tubes.columns}",
            hint="audit what a reader gives",
        )
    filled = list_filled_splits(scenes, protocol)
    sampled = sample(scenes, replace(protocol, splits=filled or protocol.splits))
    notes = sampled.meta.notes["sampling"]
    used = tuple(split for split in filled if notes[split]["samples"])
    context = Context(scenes, sampled, replace(protocol, splits=used), protocol)
    outcomes = [_made(name, check, context) for name, check in CHECKS.items()]
    found = [outcome.finding for outcome in outcomes if outcome.finding is not None]
    return Audit(
        dataset=scenes.meta.dataset,
        protocol=to_dict(protocol),
        findings=tuple(
            sorted((f for f in found if f.count), key=lambda finding: SEVERITIES.index(finding.severity))
        ),
        passed=tuple(finding.name for finding in found if not finding.count),
        skipped={outcome.name: outcome.skipped for outcome in outcomes if outcome.skipped},
    )


def _made(name: str, check: Check, context: Context) -> _Outcome:
    try:
        finding = check(context)
    except NotApplicableError as reason:
        return _Outcome(name, skipped=str(reason))
    return _Outcome(name, finding)


# An audit as text for people.

_WIDTH = 100


def render(audit: Audit) -> str:
    """The audit as plain text; characters of the data that a terminal would obey are escaped."""
    protocol = audit.protocol
    counts = ", ".join(f"{len(audit.of_severity(s))} {s}" for s in ("serious", "warning", "note"))
    lines = [f"Audit of {_plain(audit.dataset)}, {protocol['task']} by {protocol['type']}: {counts}", ""]
    for finding in audit.findings:
        lines += [*_finding(finding), ""]
    if audit.passed:
        lines += _wrap_text(f"Nothing found by: {', '.join(audit.passed)}.", "")
    lines += [f"Not checked: {name} ({_plain(reason)})." for name, reason in audit.skipped.items()]
    return "\n".join(lines).rstrip() + "\n"


def _finding(finding: Finding) -> list[str]:
    lines = _wrap_text(f"[{finding.severity}] {finding.name}: {_plain(finding.sentence)}", "")
    lines += _wrap_text(f"why: {finding.why}", "    ") + _wrap_text(f"do:  {finding.advice}", "    ")
    if finding.table is not None:
        cells = [finding.table.columns, *finding.table.rows]
        text = [[_plain("" if cell is None else str(cell)) for cell in row] for row in cells]
        widths = [max(len(row[k]) for row in text) for k in range(len(finding.table.columns))]
        lines += [
            f"    {'  '.join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))}".rstrip()
            for row in text
        ]
    if finding.measures:
        numbers = ", ".join(f"{name} {_number(value)}" for name, value in finding.measures.items())
        lines += _wrap_text(f"numbers: {numbers}", "    ")
    if finding.examples:
        lines += _wrap_text("e.g. " + "; ".join(_place(example) for example in finding.examples), "    ")
    return lines


def _number(value: float | int | None) -> str:
    return "undefined" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _place(example: Example) -> str:
    parts = [example.video, example.pedestrian, None if example.frame is None else f"@{example.frame}"]
    where = " ".join(_plain(part) for part in parts if part is not None)
    return f"{where} ({_plain(example.note)})" if example.note else where


def _wrap_text(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False
    )


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


__all__ = ["Audit", "Example", "Finding", "Severity", "Table", "audit", "render"]
