"""Whether claims speak of the things that the truth names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from roadaware.analysis.doctor.diagnosis import Diagnosis, note, suspicious, wrong


def names(what: str, claimed: Sequence[str], true: Sequence[str]) -> list[Diagnosis]:
    """Names that only one side knows.

    Args:
        what: the things, in the plural: videos, sentences, sounds.
        claimed: their names in the claims.
        true: their names in the truth.
    """
    if not true:
        return wrong(
            "empty_truth", "The truth is empty.", f"it names no {what}", "Check the path of the truth."
        )
    if not claimed:
        return wrong(
            "empty_claims", "Nothing is claimed.", f"no {what} in the claims", "Check the claims' path."
        )
    foreign = sorted(set(claimed) - set(true))
    missing = sorted(set(true) - set(claimed))
    if len(foreign) == len(set(claimed)):
        near = difflib.get_close_matches(foreign[0], list(true), n=1, cutoff=0.5)
        evidence = f"claims name {_shown(foreign)}, the truth {_shown(sorted(set(true)))}"
        remedy = f"Name them alike: {foreign[0]!r} may be {near[0]!r}." if near else "Name them alike."
        return wrong("names", f"Claims and truth share no {what}.", evidence, remedy)
    found: list[Diagnosis] = []
    if foreign:
        says = f"{len(foreign)} of {len(set(claimed))} claimed {what} are not in the truth."
        found += note("foreign", says, _shown(foreign), "They are left out; a split may be judged alone.")
    if missing:
        says = f"{len(missing)} of {len(set(true))} true {what} have no claim."
        kind = suspicious if len(missing) > 0.5 * len(set(true)) else note
        found += kind("missing", says, _shown(missing), "Each counts as missed; claim something for all.")
    return found


def _shown(items: Sequence[str]) -> str:
    return ", ".join(repr(item[:40]) for item in items[:3]) + (", ..." if len(items) > 3 else "")
