"""Tubes as text: what was linked, corrected by requirements, and written for the server of a challenge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roadaware.formats.submission import FILE, THRESHOLDS, Remark
from roadaware.linking.enforcement import EnforcementConfig, EnforcementCounts
from roadaware.reports import terminal
from roadaware.reports.terminal import apply_style, format_bullets, format_bytes, format_cell, format_table


def describe_step(step: dict[str, Any]) -> str:
    """A step on either side of the linker, in words."""
    config = step["config"]
    if step["step"] == "suppressed" and "kept" in step:
        kept = f"{step['kept']:,} of {step['boxes']:,} boxes stay"
        return f"suppressed by agentness at IoU {config['iou']:g}: {kept}"
    if step["step"] == "suppressed":
        zeroed = f"{step['scores_zeroed']:,} scores of {step['boxes']:,} boxes become 0"
        return f"suppressed by class at IoU {config['iou']:g}: {zeroed}"
    if step["step"] == "fused":
        weights = ", ".join(f"{weight:g}" for weight in config["weights"] or ()) or "1 each"
        became = f"{step['boxes']:,} boxes of {step['models']} sets become {step['fused']:,}"
        return f"fused at IoU {config['iou']:g}, weights {weights}: {became}"
    if step["step"] == "enforced":
        changed = f"{step['raised']:,} scores raised, {step['lowered']:,} lowered"
        held = f"{step['violating']:,} of {step['boxes']:,} boxes violated some of {step['requirements']}"
        return f"requirements enforced at {config['threshold']:g}: {held}; {changed}"
    if step["step"] == "interpolated":
        kept = f"{step['tubes_kept']:,} of {step['tubes']:,} paths and tubes stay"
        return f"shorter than {config['min_length']} left out: {kept}"
    return ""


def format_tubes(counts: Mapping[str, Any]) -> str:
    """Counts of tubes, and of the labelled ones by kind.

    Args:
        counts: as `linking.link.count_linked` gives them.
    """
    rows = [(name, f"{count:,}") for name, count in counts.items() if not isinstance(count, dict)]
    text = terminal.format_table(["", "count"], rows)
    kinds = [
        (kind, f"{held['tubes']:,}", held["labels"], held["length"])
        for kind, held in counts["labelled tubes"].items()
    ]
    if not kinds:
        return text
    return f"{text}\n\n{terminal.format_table(['kind', 'tubes', 'labels used', 'median frames'], kinds)}"


def format_enforcement(counts: EnforcementCounts, config: EnforcementConfig) -> str:
    """Counts of boxes that violated requirements, and of scores that changed.

    Args:
        counts: of `linking.enforcement.enforce_requirements`.
        config: how it was done.
    """
    rows = [
        ("boxes", f"{counts.boxes:,}"),
        (
            f"predicted at {config.threshold:g}" if config.boxes == "predicted" else "held to it",
            f"{counts.considered:,}",
        ),
        ("that violated a requirement", f"{counts.violating:,}"),
        ("scores raised", f"{counts.raised:,}"),
        ("scores lowered", f"{counts.lowered:,}"),
    ]
    lines = [terminal.format_table(["", "count"], rows)]
    if counts.unproven:
        lines.append(f"{counts.unproven:,} boxes satisfy all requirements, perhaps not by the least change")
    return "\n".join(lines)


def format_submission(data: dict[str, Any], remarks: list[Remark]) -> str:
    """The submission: what it holds, what costs score, and scores where the split is annotated.

    Args:
        data: of the command, as its JSON has it.
        remarks: of the submission.
    """
    tubes = ", ".join(f"{count:,} of {kind}" for kind, count in data["tubes"].items())
    lines = [
        f"{data['challenge']}, split {data['split']}: {data['videos']} videos; tubes: {tubes}",
        f"{format_cell(data['file'])}, {format_bytes(data['bytes'])}, holds {FILE}",
    ]
    costly = [remark.says for remark in remarks if remark.costs]
    if costly:
        lines += ["", apply_style("costs score:", "bad"), format_bullets(costly)]
    if others := [remark.says for remark in remarks if not remark.costs]:
        lines += ["", "also:", format_bullets(others)]
    if data["video_map"]:
        rows = [
            (kind, *(f"{100 * held[at]:.2f}" if at in held else "" for at in THRESHOLDS))
            for kind, held in data["video_map"].items()
        ]
        lines += ["", format_table(["video-mAP, as published", *THRESHOLDS], rows, left=1)]
    else:
        lines += ["", "The split is not annotated here: nothing can be said of the score."]
    return "\n".join(lines)
