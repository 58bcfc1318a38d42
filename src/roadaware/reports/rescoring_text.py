"""Re-scorers of proposals, and what they did, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.reports import terminal

if TYPE_CHECKING:
    from roadaware.corner_cases.scorer_file import Fitted


def format_fitted(fitted: Fitted, out: Path) -> str:
    """A re-scorer, and what comes next.

    Args:
        fitted: the re-scorer.
        out: its file.
    """
    from roadaware.corner_cases.energy import EnergyModel

    model, about = fitted.model, fitted.about
    sets = ", ".join(name or "an unnamed set" for name in about["datasets"])
    lines = [f"fitted on {about['pictures']:,} images of {sets} (fit {fitted.digest})"]
    if isinstance(model, EnergyModel):
        rows = [
            (name, f"{about[name]:,}", f"{each.shape:.3g}", f"{each.scale:.3g}", f"{each.location:.3g}")
            for name, each in (("known", model.known), ("unknown", model.unknown))
        ]
        lines.append(terminal.format_table(["objects", "boxes", "shape", "scale", "location"], rows))
        more = "--detections DETECTIONS"
    else:
        crops = ", ".join(f"{about[name]:,} {name}" for name in ("common", "background", "proposals"))
        lines.append(f"crops: {crops}; the bank keeps {len(model.features):,} of {fitted.asked['features']}")
        lines += [f"{about['refused']:,} images could not be opened"] if about["refused"] else []
        more = "--dataset DATASET"
    lines.append(
        f"next: roadaware rescore apply PROPOSALS --fit {terminal.format_cell(str(out))} {more} --output OUT"
    )
    return "\n".join(lines)


def format_rescored(out: Path, told: Sequence[Mapping[str, Any]], count: int) -> str:
    """What re-scoring came to.

    Args:
        out: folder of the proposals.
        told: of each re-scorer, as the notes of the proposals have it, and more.
        count: of the proposals.
    """
    lines = []
    for each in told:
        what = "a detection" if each["by"] == "energy" else "an image to look at"
        lines.append(f"{each['by']} (fit {each['fit']}): {each['met']:,} of {count:,} proposals have {what}")
        if each["neutral"]:
            lines.append(f"  the other {each['neutral']:,} keep the neutral 0.5")
        lines += [
            f"  {n:,} images could not be opened: {terminal.format_cell(why)}"
            for why, n in each["refused"].items()
        ]
        if each["leaked"]:
            lines.append(f"  LEAK: it was fitted on {each['leaked']:,} of these {each['pictures']:,} images")
        if each["shared_videos"]:
            lines.append(f"  LEAK: it was fitted on images of {each['shared_videos']:,} of these videos")
        elif each["shared_videos"] is None:
            lines.append("  whether it was fitted on other images of these videos is not known")
    shown = terminal.format_cell(str(out))
    lines.append(f"next: roadaware evaluate corner-cases --truth TRUTH --predictions {shown} --agnostic")
    return "\n".join(lines)
