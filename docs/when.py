"""Write the tables of 'When' in docs/who_crosses.md and draw its figures: `docs/when.py JAAD-JAAD_2.0.zip runs/when`.

The folder is one of `roadaware reproduce when`: what was fitted there is asked again, and nothing is fitted anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from roadaware.datasets.loading import open_dataset
from roadaware.io.files import write_atomically
from roadaware.io.json import parse
from roadaware.models.crossing.ensemble import EnsemblePredictor
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.protocols.crossing_time import run_time_study
from roadaware.reports.crossing_time import (
    list_columns,
    list_differences,
    list_rows,
    plot_calibration,
    plot_strips,
    plot_warnings,
)

PAGE = Path(__file__).parent / "who_crosses.md"
BEGIN, END = "<!-- when: begin -->", "<!-- when: end -->"


def main(data: Path, folder: Path) -> None:
    """Put the tables of a run between the marks of the page, and its figures beside it."""
    seeds = tuple(parse((folder / "results.json").read_text("utf-8"), str(folder))["seeds"])
    classifier = EnsemblePredictor.open([WEIGHTS / PREDICTORS[0]])
    study = run_time_study(open_dataset("jaad", data), folder, classifier, seeds=seeds)
    columns = list_columns()
    rows = [columns, ["---"] * len(columns), *list_rows(study)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    pairs = list_differences(study)
    differences = "\n".join("| " + " | ".join(row) + " |" for row in [pairs[0], ["---"] * 4, *pairs[1:]])
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    write_atomically(PAGE, f"{head}{BEGIN}\n{table}\n\n{differences}\n{END}{tail}".encode())
    for name, picture in (
        ("when_warnings", plot_warnings(study)),
        ("when_calibration", plot_calibration(study)),
        ("when_strips", plot_strips(study)),
    ):
        write_atomically(PAGE.parent / "images" / f"{name}.svg", picture.svg(name).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
