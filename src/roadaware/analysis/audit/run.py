"""All checks, made one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from roadaware.analysis.audit import crossings, leaks, printed, samples, tables
from roadaware.analysis.audit.context import Context, NotApplicableError
from roadaware.analysis.audit.findings import SEVERITIES, Audit, Finding
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.scenes.sampling import EventProtocol, filled_splits, sample
from roadaware.scenes.tables import Scenes

Check = Callable[[Context], Finding]

CHECKS: dict[str, Check] = {
    "empty-split": samples.empty_split,
    "label-unknown": samples.label_unknown,
    "crossing-without-event": samples.crossing_without_event,
    "crossing-observed": samples.crossing_observed,
    "identifier-leak": leaks.identifier,
    "behaviour-tag-leak": leaks.behaviour_tags,
    "attribute-leak": leaks.attributes,
    "region-off-screen": samples.region_off_screen,
    "past-critical-point": samples.past_critical_point,
    "sample-counts": printed.sample_counts,
    "class-balance": samples.class_balance,
    "tags-against-attribute": crossings.tags_against_attribute,
    "attribute-against-tags": crossings.attribute_against_tags,
    "event-far-from-tags": crossings.event_far_from_tags,
    "event-outside-track": crossings.event_outside_track,
    "crosser-without-event": crossings.crosser_without_event,
    "event-without-crossing": crossings.event_without_crossing,
    "track-gaps": tables.track_gaps,
    "boxes-outside-image": tables.boxes_outside_image,
    "boxes-without-area": tables.boxes_without_area,
    "repeated-names": tables.repeated_names,
    "vehicle-action": tables.vehicle_action,
    "videos-in-two-splits": tables.videos_in_two_splits,
    "videos-in-no-split": tables.videos_in_no_split,
    "rejected": tables.rejected,
}

_TUBES = ("name", "crossing", "start_frame", "end_frame", "event_frame", "event_source")


@dataclass(frozen=True)
class _Outcome:
    name: str
    finding: Finding | None = None
    skipped: str = ""


def audit(scenes: Scenes, protocol: EventProtocol) -> Audit:
    """What is wrong with the scenes, and with the samples that the protocol cuts from them.

    Args:
        scenes: as a reader gives them; samples in them are ignored.
        protocol: how samples are cut; its `reference()` shows what published numbers rest on.

    Raises:
        UsageError: if the protocol is of another dataset.
        InputError: if the scenes lack what the protocol needs, or no split has samples.
    """
    context = _context(scenes, protocol)
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


def _context(scenes: Scenes, asked: EventProtocol) -> Context:
    """The samples of those splits that hold videos: an empty one is a finding, and no end of the audit."""
    missing = [column for column in _TUBES if column not in scenes.tubes.columns]
    if missing:
        raise InputError(
            f"an audit needs the tubes' {missing}; they have {scenes.tubes.columns}",
            hint="audit what a reader gives",
        )
    filled = filled_splits(scenes, asked)
    sampled = sample(scenes, replace(asked, splits=filled or asked.splits))
    notes = sampled.meta.notes["sampling"]
    used = tuple(split for split in filled if notes[split]["samples"])
    return Context(scenes, sampled, replace(asked, splits=used), asked)


def _made(name: str, check: Check, context: Context) -> _Outcome:
    try:
        finding = check(context)
    except NotApplicableError as reason:
        return _Outcome(name, skipped=str(reason))
    return _Outcome(name, finding)
