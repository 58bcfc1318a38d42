"""Statistics of a run of proposals over a set, summed over its parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadaware.corner_cases.loader import Moment
from roadaware.datasets.sensor_tables import DISTORTION
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import to_printable
from roadaware.scenes.tables import Scenes

STEPS = ("initial", "intermediate", "final")
_NUMBERS = re.compile(r"[\d.]+(e[+-]?\d+)?")


@dataclass(frozen=True)
class Tally:
    """Counts of a run.

    Args:
        pictures: that have a sweep and calibration.
        opened: of these, for which proposals were made, be it none.
        proposals: after each step.
        with_one: images that are left with a proposal.
        skipped: images without proposals because something is wrong or missing, by reason; reasons that
            differ in numbers alone are counted under the first.
        odd: images that were proposed for although something is strange, by what; as with `skipped`.
        wondered: what the reader found odd about the set, lenses that distort among it, and how often.
        refused: rows and files that the reader did not take.
        made: images done now, not before.
        seconds: of processors, spent on those.
    """

    pictures: int
    opened: int
    proposals: dict[str, int]
    with_one: int
    skipped: dict[str, int]
    odd: dict[str, int]
    wondered: dict[str, int]
    refused: int
    made: int
    seconds: float


def describe_skipped_image(moment: Moment, error: InputError | UsageError) -> dict[str, Any]:
    """An image that was left out, why, and which file it was about, if any; JSON-ready.

    Args:
        moment: the image's.
        error: that its opening or the proposing raised.
    """
    reason, where = (error.message, error.where) if isinstance(error, InputError) else (str(error), None)
    return {"video": moment.video, "frame": moment.frame, "reason": reason, "where": where}


def summarize_parts(
    told: Sequence[Mapping[str, Any]],
    scenes: Scenes,
    unopened: Mapping[str, int],
    pictures: int,
    *,
    made: int,
    seconds: float,
) -> Tally:
    """The tally of all parts.

    Args:
        told: notes of each part.
        scenes: the set.
        unopened: images without sweep or calibration, by reason.
        pictures: that have both.
        made: images done now, not before.
        seconds: spent on those.
    """
    left = [each for part in told for each in part.get("skipped", [])]
    skipped = Counter(unopened)
    skipped.update(_format_reasons(_merge_counts((each["reason"], 1) for each in left), left))
    odd = _merge_counts(each for part in told for each in part.get("odd", {}).items())
    return Tally(
        pictures=pictures,
        opened=pictures - len(left),
        proposals={step: sum(part.get(step, 0) for part in told) for step in STEPS},
        with_one=sum(part.get("with_one", 0) for part in told),
        skipped=dict(skipped.most_common()),
        odd=dict(odd.most_common()),
        wondered=_collect_warnings(scenes.meta.notes),
        refused=len(scenes.rejected),
        made=made,
        seconds=seconds,
    )


def _collect_warnings(notes: Mapping[str, Any]) -> dict[str, int]:
    """Warnings of a reader, and about lens distortion that is not applied."""
    found = {each["what"]: each["count"] for each in notes.get("warnings", [])}
    cameras = notes.get("left_out", {}).get(DISTORTION, 0)
    return {**found, f"not applied: {DISTORTION}": cameras} if cameras else found


def _merge_counts(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Counts by words; those that differ in numbers alone are counted under the first."""
    first: dict[str, str] = {}
    found: Counter[str] = Counter()
    for words, count in counts:
        found[first.setdefault(_NUMBERS.sub("", words), words)] += count
    return found


def _format_reasons(counts: Counter[str], left: list[dict[str, Any]]) -> dict[str, int]:
    """Counts by reason, each with the first image or file that it was reported for."""
    first: dict[str, str] = {}
    for each in left:
        picture = f"{to_printable(each['video'])}, frame {each['frame']}"
        first.setdefault(each["reason"], each.get("where") or picture)
    return {f"{reason}; first: {first[reason]}": count for reason, count in counts.items()}
