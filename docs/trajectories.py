"""Write the tables of docs/trajectories.md from a run: `docs/trajectories.py runs/trajectories`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from roadaware.io.files import write_atomically
from roadaware.io.json import parse

PAGE = Path(__file__).parent / "trajectories.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
SHOWN = (
    ("ade", "ADE"), ("fde", "FDE"), ("min_fde", "FDE, best of 5 (heights or m)"), ("iou", "IoU at the end"), ("nll", "NLL"),
    ("covered_90", "in the 90 % region"), ("area_90_final", "its area at the end"),
)  # fmt: skip
ENDS = ("ade", "fde", "nll")


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def _cell(row: dict[str, Any] | None, *, ends: bool) -> str:
    if row is None:
        return ""
    low, high = row["by_video"]
    return _number(row["value"]) + (f" [{_number(low)}, {_number(high)}]" if ends and low is not None else "")


def build_tables(told: dict[str, Any]) -> str:
    """A table of ways and one of differences for each set, as Markdown."""
    lines = []
    for name, held in told["sets"].items():
        test = held["counts"]["test"]
        many = f"{test['windows']:,} windows of {test['tracks']:,} tracks in {test['videos']:,} videos"
        lines += [f"### {name}", f"{many}; ADE and FDE in {held['unit']}.", ""]
        lines += ["| | " + " | ".join(label for _, label in SHOWN) + " |", "|---" * (len(SHOWN) + 1) + "|"]
        for way, rows in held["ways"].items():
            if "one network" in way and len(told["seeds"]) == 1:
                continue
            cells = [_cell(rows.get(metric), ends=metric in ENDS) for metric, _ in SHOWN]
            lines.append(f"| {way} | " + " | ".join(cells) + " |")
        columns = (
            "difference",
            "ADE, over videos",
            "over pedestrians",
            "FDE, over videos",
            "NLL, over videos",
            "over pedestrians",
        )
        lines += ["", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        for pair, rows in held["differences"].items():
            if "one network" in pair:
                continue
            over = {
                metric: _cell(
                    {"value": rows[metric]["value"], "by_video": rows[metric]["by_pedestrian"]}, ends=True
                )
                for metric in ENDS
            }
            video = {metric: _cell(rows[metric], ends=True) for metric in ENDS}
            lines.append(
                f"| {pair} | {video['ade']} | {over['ade']} | {video['fde']} | {video['nll']} | {over['nll']} |"
            )
        lines.append("")
    return "\n".join(lines)


def main(folder: Path) -> None:
    """Put the tables of a run between the marks of the page."""
    told = parse((folder / "results.json").read_text("utf-8"), str(folder))
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    write_atomically(PAGE, f"{head}{BEGIN}\n{build_tables(told)}{END}{tail}".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
