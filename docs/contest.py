"""Write the tables of 'A fair contest' in docs/crossing_models.md: `docs/contest.py JAAD-JAAD_2.0.zip runs/contest`.

The folder is one of `roadaware reproduce contest`: what was tried there is read, and nothing is fitted or asked anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from roadaware.io.files import write_atomically
from roadaware.io.json import parse
from roadaware.protocols.contest import TEST, run_contest
from roadaware.reports.contest import describe, list_choices, list_differences, list_results

PAGE = Path(__file__).parent / "crossing_models.md"
BEGIN, END = "<!-- contest: begin -->", "<!-- contest: end -->"
RESAMPLES = 1000
"""Most weightings for intervals, as of the command."""


def main(data: Path, folder: Path) -> None:
    """Put the tables of a contest between the marks of the page."""
    if not (folder / TEST).is_file():
        raise SystemExit(
            f"{folder} holds no contest that has asked test: run `roadaware reproduce contest` to its end"
        )
    study = parse((folder / "study.json").read_text("utf-8"), str(folder))
    found = run_contest(
        "jaad",
        data,
        folder,
        names=study["contestants"],
        budget=study["budget"],
        seeds=tuple(study["seeds"]),
        resamples=RESAMPLES,
    )
    spent = sum(trial.cpu_s for tried in found.trials.values() for trial in tried)
    parts = [f"{describe(found)} Trying took {spent:,.0f} s of CPU time."]
    for head, *body in (list_results(found), list_differences(found, RESAMPLES), list_choices(found)):
        rows = [head, ["---"] * len(head), *body]
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    write_atomically(PAGE, (before + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + after).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
