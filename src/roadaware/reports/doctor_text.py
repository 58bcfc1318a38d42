"""What the doctor found, as text: diagnoses, an environment, videos, and corrected predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadaware.analysis.corrected_scores import CorrectedScores
from roadaware.analysis.doctor import Diagnosis
from roadaware.analysis.doctor.environment import EXTRA_BY_LIBRARY, LARGE_CACHE_BYTES, LOW_BYTES, is_writable
from roadaware.analysis.doctor.videos import VideoFacts
from roadaware.reports.terminal import apply_style, format_bullets, format_bytes, format_cell, format_table

_STYLES = {"wrong": "bad", "suspicious": "odd"}


def format_diagnoses(found: Sequence[Diagnosis], subject: str) -> str:
    """All findings on a subject: what is the matter, what was seen, what to do."""
    count = f"{len(found)} finding{'s' * (len(found) != 1)}" if found else "nothing found that looks wrong"
    blocks = [f"{format_cell(subject)}: {count}"]
    for each in found:
        says = apply_style(f"{each.severity}: {format_cell(each.says)}", _STYLES.get(each.severity))
        seen = f"  seen:   {format_cell(each.evidence)}\n  remedy: {format_cell(each.remedy)}"
        blocks.append(f"{says}\n{seen}")
    return "\n\n".join(blocks)


def list_remarks(facts: dict[str, Any]) -> list[str]:
    """What of an environment, as `describe_environment` has it, is in the way, each with what to do."""
    cache, data, here = facts["cache_folder"], facts["data_folder"], Path.cwd()
    remarks = []
    if cache is None:
        remarks.append("no place for a cache: set ROADAWARE_HOME to a folder you can write to")
    elif not is_writable(Path(cache)):
        remarks.append(
            f"the cache folder {cache} cannot be written, every reading starts anew: set ROADAWARE_HOME to one that can"
        )
    if data and not Path(data).is_dir():
        remarks.append(
            f"ROADAWARE_DATA_DIR is {data}, and there is no such folder: name the folder that holds your datasets"
        )
    if facts["free_bytes_here"] < LOW_BYTES:
        remarks.append(
            f"only {format_bytes(facts['free_bytes_here'])} are free in {here}: free some, or work on another disk"
        )
    if facts["cache_bytes"] > LARGE_CACHE_BYTES:
        size = format_bytes(facts["cache_bytes"])
        remarks.append(f"the cache holds {size}: {cache} can be removed whole; what is needed is read anew")
    for name, state in facts["libraries"].items():
        extra = EXTRA_BY_LIBRARY.get(name)
        install = f"pip install 'roadaware[{extra[0]}]'" if extra else f"pip install {name}"
        if state == "missing" and extra:
            remarks.append(f"{name} is not installed, which {extra[1]} needs: {install}")
        elif "Error" in state:
            remarks.append(
                f"{name} does not work: {state}: install it again in an environment of its own, {install}"
            )
    torch = facts["libraries"].get("torch", "missing")
    if facts["gpu_driver"] and facts["cuda"] == "none" and torch != "missing":
        remarks.append(
            f"there is {facts['gpu_driver']}, and torch {torch} does not see it: install torch for CUDA, as pytorch.org says "
            "for your driver"
        )
    return remarks


def format_environment(facts: dict[str, Any]) -> str:
    """An environment, with remarks on it, as a table."""
    packages, libraries, variables = (
        [f"{name}{sign}{value}" for name, value in facts[what].items()]
        for what, sign in (("packages", " "), ("libraries", " "), ("variables", "="))
    )
    cache = f"{facts['cache_folder'] or 'none'} ({format_bytes(facts['cache_bytes'])})"
    rows = [
        ("roadaware", facts["roadaware"]),
        ("python", facts["python"]),
        ("platform", facts["platform"]),
        ("processors", str(facts["processors"])),
        ("packages", ", ".join(packages)),
        ("libraries", ", ".join(libraries)),
        ("CUDA", facts["cuda"]),
        ("models", ", ".join(facts["models"]) or "none is installed (`roadaware models list`)"),
        ("cache folder", cache),
        ("data folder", facts["data_folder"] or "not set (ROADAWARE_DATA_DIR)"),
        ("data found", ", ".join(facts["data_found"]) or "nothing"),
        ("free disk here", format_bytes(facts["free_bytes_here"])),
        ("variables", ", ".join(variables) or "none that count"),
    ]
    lines = [format_table(["what", "found"], rows, left=2)]
    return "\n".join([*lines, "", format_bullets(facts["remarks"])] if facts["remarks"] else lines)


def format_corrections(found: CorrectedScores, subject: str, out: Path | None) -> str:
    """The mistakes of a file, and what it scores with and without them.

    Args:
        found: what was corrected.
        subject: what it is about, in words.
        out: where the corrected file goes; None for nowhere.
    """
    before, after = ("none" if value is None else f"{value:.4f}" for value in (found.before, found.after))
    lines = [f"{found.metric or 'score'} as written: {before}"]
    if found.corrected:
        lines.append(f"{found.metric} corrected:  {after}")
    if found.beside is not None:
        name, *values = found.beside
        before, after = ("none" if value is None else f"{value:.4f}" for value in values)
        lines.append(f"{name} as written: {before}, corrected: {after}")
    if found.reason:
        lines.append(f"why there is no score: {format_cell(found.reason)}")
    if out is not None:
        lines.append(f"wrote {out}" if found.corrected else "nothing was corrected, and nothing written")
    return "\n\n".join([format_diagnoses(found.findings, subject), "\n".join(lines)])


def format_videos(videos: Sequence[tuple[str, VideoFacts, Sequence[Diagnosis]]]) -> str:
    """A table of videos, and what is the matter with each.

    Args:
        videos: name, facts and findings of each.
    """
    rows = []
    for name, facts, found in videos:
        size = f"{facts.width_px}x{facts.height_px}" if facts.width_px else "?"
        rate = f"{facts.fps:.4g}" if facts.fps else "?"
        counts = f"{facts.frames:,}", f"{facts.seconds:.1f}", str(len(found))
        rows.append((format_cell(name), facts.container or "?", facts.codec or "?", size, rate, *counts))
    blocks = [format_diagnoses(found, name) for name, _, found in videos if found]
    heads = ["video", "container", "codec", "size", "frames/s", "frames", "seconds", "findings"]
    return "\n\n".join([format_table(heads, rows, left=4), *(blocks or ["nothing found that looks wrong"])])
