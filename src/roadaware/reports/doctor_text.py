"""What `doctor` found out, as the text that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.analysis.doctor.environment import LOW_BYTES, is_writable
from roadaware.reports.terminal import apply_style, format_bullets, format_bytes, format_cell, format_table

if TYPE_CHECKING:
    from roadaware.analysis.doctor import Diagnosis

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
    """What of an environment, as `describe_environment` has it, is in the way, in words."""
    cache, data, here = facts["cache_folder"], facts["data_folder"], Path.cwd()
    remarks = []
    if cache is None:
        remarks.append("no place for a cache: set ROADAWARE_HOME to a folder you can write to")
    elif not is_writable(Path(cache)):
        remarks.append(f"the cache folder {cache} cannot be written: every reading starts anew")
    if data and not Path(data).is_dir():
        remarks.append(f"ROADAWARE_DATA_DIR is {data}, and there is no such folder")
    if facts["free_bytes_here"] < LOW_BYTES:
        remarks.append(f"only {format_bytes(facts['free_bytes_here'])} are free in {here}")
    states = facts["libraries"].items()
    return remarks + [f"{name} does not work: {state}" for name, state in states if "Error" in state]


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
