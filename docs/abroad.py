"""Write the table of 'Safe abroad' in docs/cross_dataset.md and draw its matrices: `docs/abroad.py runs/abroad`."""

from __future__ import annotations

import sys
from pathlib import Path

from roadaware.io.files import write_atomically
from roadaware.io.json import parse
from roadaware.protocols.abroad import AbroadCell, AbroadStudy, Adaptation
from roadaware.reports.abroad import COLUMNS, list_findings, list_rows, plot_abroad

PAGE = Path(__file__).parent / "cross_dataset.md"
BEGIN, END = "<!-- abroad: begin -->", "<!-- abroad: end -->"


def main(folder: Path) -> None:
    """Put the table of a run between the marks of the page, and its matrices beside it."""
    told = parse((folder / "results.json").read_text("utf-8"), str(folder))
    study = AbroadStudy(
        tuple(AbroadCell(**cell) for cell in told["cells"]), Adaptation(**told["adaptation"]), tuple(told["tried"]),
        told["orders"], tuple(told["domains"]),
    )  # fmt: skip
    rows = [list(COLUMNS), ["---"] * len(COLUMNS), *list_rows(study)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    found = "\n".join(f"- {line}" for line in list_findings(study))
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    write_atomically(PAGE, f"{head}{BEGIN}\n{found}\n\n{table}\n{END}{tail}".encode())
    for name, picture in zip(("abroad_coverage", "abroad_ece"), plot_abroad(study), strict=True):
        write_atomically(PAGE.parent / "images" / f"{name}.svg", picture.svg(name).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
