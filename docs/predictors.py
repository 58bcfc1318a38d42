"""Write the results of `roadaware train` into docs/predictors.md: `python docs/predictors.py [RUNS ...]`.

Each of RUNS is a folder with the results.parquet of several recipes; where a recipe has changed between
them, the last counts. What is kept of all of them is docs/predictors.csv, with the differences of our own
network to each other model in docs/predictors_pairs.csv; the page is made from these files: without RUNS,
as they stand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.analysis.compare import compare
from roadaware.io.files import write_atomically
from roadaware.protocols.printed_iv2024 import iterate_printed_cells
from roadaware.reports.runs import load
from roadaware.training.pedestrians.results import open_results

PAGE = Path(__file__).with_suffix(".md")
KEPT = Path(__file__).with_suffix(".csv")
PAIRS_KEPT = PAGE.with_name("predictors_pairs.csv")
OWN = "steady"
OURS = ("steady-jaad", "steady-jaad-risk")
"""Our recipes, the one for each task."""
BEGIN, END = "<!-- of the results: begin -->", "<!-- of the results: end -->"
FACTS = ["task", "config", "recipe", "digest", "model", "inputs", "samples", "pedestrians", "parameters"]
OF_RUN = ["run", "cpu_s", "epoch", "validation"]
ENDS = ["low_pedestrian", "high_pedestrian", "low_video", "high_video"]
FIRST = {
    "action": ("auc", "average_precision", "f1", "balanced_accuracy", "hard_f1", "accuracy"),
    "risk": ("average_precision", "balanced_accuracy", "auc", "f1", "hard_f1", "accuracy"),
}
BY = 5
"""Metrics of FIRST that get intervals."""
PAIRS = (
    *((f"{name}", f"weighted_{name}") for name in ("accuracy", "precision", "f1")),
    *((f"soft_{name}", f"hard_{name}") for name in ("balanced_accuracy", "accuracy", "precision", "f1")),
    ("confidence_delta_max", "confidence_delta_mean"),
)
SINGLE = ("average_precision", "balanced_accuracy", "auc")
KEEP = {*SINGLE, *(name for pair in PAIRS for name in pair)}
NAMES = {
    "auc": "AUC",
    "average_precision": "AP",
    "f1": "F1",
    "balanced_accuracy": "balanced accuracy",
    "hard_f1": "hard F1",
    "accuracy": "accuracy",
    "precision": "precision",
}
AIMS = {
    "action": {"auc": 0.92, "average_precision": 0.75, "f1": 0.68, "hard_f1": 0.45},
    "risk": {"average_precision": 0.50, "balanced_accuracy": 0.50},
}
TITLES = {
    ("action", "reference"): "Crossing, as published",
    ("risk", "reference"): "Risk, as published",
    ("action", "default"): "Crossing, with honest labels",
    ("risk", "default"): "Risk, with honest labels",
}
PAIR = ("metric", "difference", *ENDS, "verdict")
Row = dict[str, Any]


def kept(runs: list[Path]) -> pl.DataFrame:
    """What the page is made from: a row for each recipe and run, intervals of means over seeds alone."""
    parts = []
    for folder in runs:
        long = open_results(folder).filter(pl.col("metric").is_in(sorted(KEEP)))
        wide = long.pivot("metric", index=FACTS + OF_RUN, values=["value", *ENDS])
        wide = wide.rename({name: name.removeprefix("value_") for name in wide.columns})
        ends = [name for name in wide.columns if name.startswith(("low_", "high_"))]
        alone = pl.col("run") != "mean"
        parts.append(wide.with_columns(pl.when(alone).then(None).otherwise(pl.col(ends)).name.keep()))
    key, same = ["task", "config", "recipe", "digest", "run"], ["task", "config", "recipe", "inputs", "run"]
    joined = pl.concat(parts, how="diagonal_relaxed").unique(same, keep="last", maintain_order=True)
    if KEPT.exists():  # a model that was fitted before does not tell what it took
        before = pl.read_csv(KEPT).select(*key, pl.col("cpu_s").alias("before_s"))
        joined = joined.join(before, on=key, how="left").with_columns(pl.coalesce("cpu_s", "before_s"))
        joined = joined.drop("before_s")
    return joined.with_columns(pl.selectors.float().round(4)).sort(key)


def pairs(runs: list[Path], table: pl.DataFrame) -> pl.DataFrame:
    """Our own network less each other model on the same samples, both as ensembles over seeds."""
    tests = {path.parent.name.rsplit("-", 1)[1]: path for folder in runs for path in folder.glob("*/test")}
    parts = []
    for task, config in TITLES:
        held = [row for row in rows(table, task, config) if row["digest"] in tests]
        own = next((row for row in held if row["recipe"].startswith(OWN)), None)
        for row in held:
            if own is None or row is own:
                continue
            ours, theirs = (load(tests[each["digest"]]) for each in (own, row))
            found = compare(ours.state, theirs.state, ours.config).table
            facts = [pl.lit(row[name]).alias(name) for name in ("task", "config", "recipe", "digest")]
            parts.append(found.filter(pl.col("metric").is_in(FIRST[task][:BY])).select(*facts, *PAIR))
    floats = pl.selectors.float().round(4)
    return (
        pl.concat(parts).with_columns(floats)
        if parts
        else pl.DataFrame(schema=dict.fromkeys(PAIR, pl.String))
    )


def rows(table: pl.DataFrame, task: str, config: str, run: str = "mean") -> list[Row]:
    """The rows of one question, best first."""
    best = FIRST[task][0]
    part = table.filter((pl.col("task") == task) & (pl.col("config") == config) & (pl.col("run") == run))
    return list(part.sort(best, descending=True, nulls_last=True).iter_rows(named=True))


def printed(task: str) -> dict[str, dict[str, float]]:
    """Model to its printed numbers on JAAD."""
    found: dict[str, dict[str, float]] = {}
    for cell in iterate_printed_cells():
        if (cell.dataset, cell.task, cell.group) == ("jaad", task, None):
            found.setdefault(cell.model, {})[cell.metric] = cell.value
    return found


def number(value: float | None, digits: int = 3) -> str:
    """A cell."""
    return "–" if value is None else f"{value:.{digits}f}"


def with_ends(row: Row, metric: str) -> str:
    """A value with the ends of both intervals."""
    return number(row[metric]) + "".join(_ends(row, metric, unit) for unit in ("pedestrian", "video"))


def _ends(row: Row, metric: str, unit: str = "pedestrian") -> str:
    low, high = row[f"low_{unit}_{metric}"], row[f"high_{unit}_{metric}"]
    return "" if low is None else f" [{low:.3f}, {high:.3f}]"


def lines(header: list[str], body: list[list[str]]) -> str:
    """A table in Markdown."""
    told = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(told + ["| " + " | ".join(row) + " |" for row in body])


def main_table(table: pl.DataFrame, task: str, config: str) -> str:
    """Every model with intervals, beside print."""
    first = FIRST[task]
    seeds = _seeds(table, task, config)
    together = {row["digest"]: row for row in rows(table, task, config, "ensemble")}
    body = []
    for row in rows(table, task, config):
        cells = [with_ends(row, name) for name in first[:BY]] + [number(row[name]) for name in first[BY:]]
        ensemble = together.get(row["digest"])
        last = [seeds[row["digest"]], number(ensemble[first[0]] if ensemble else None)]
        cost = [f"{row['parameters']:,}", number(row["cpu_s"], 0)]
        body.append([_name(row), *cells, *last, *cost])
    if config == "reference":
        for name, found in printed(task).items():
            cells = [number(found.get(metric), 2) for metric in first]
            body.append([f"{name}, printed", *cells, "", "", "", ""])
    best = NAMES[first[0]]
    header = ["model", *(NAMES[name] for name in first)]
    return lines([*header, f"{best} by seed", f"{best} of the ensemble", "parameters", "CPU s"], body)


def _seeds(table: pl.DataFrame, task: str, config: str) -> dict[str, str]:
    """Digest of a recipe to the range of the first metric over seeds."""
    best = FIRST[task][0]
    asked = (pl.col("task") == task) & (pl.col("config") == config) & pl.col("run").str.starts_with("seed")
    found = table.filter(asked).group_by("digest").agg(pl.min(best).alias("low"), pl.max(best).alias("high"))
    return {
        name: "the same" if low == high else f"{low:.3f} to {high:.3f}"
        for name, low, high in found.select("digest", "low", "high").iter_rows()
    }


def _name(row: Row) -> str:
    inputs = row["inputs"].replace(" ", "`, `")
    return f"`{row['model']}` on `{inputs}`"


def print_table(table: pl.DataFrame, task: str) -> str:
    """The columns of the paper's table, first number / second number, beside print."""
    header = ["model", *(NAMES[name] for name in SINGLE)]
    header += [f"{NAMES[name]}, and weighted" for name in ("accuracy", "precision", "f1")]
    header += [f"soft / hard {NAMES[name]}" for name in ("balanced_accuracy", "accuracy", "precision", "f1")]
    header += ["confidence jumps, largest / mean"]
    ours = [(_name(row), row) for row in rows(table, task, "reference")]
    theirs = [(f"{name}, printed", found) for name, found in printed(task).items()]
    body = [
        [
            name,
            *(number(found.get(metric), 2) for metric in SINGLE),
            *(f"{number(found.get(a), 2)} / {number(found.get(b), 2)}" for a, b in PAIRS),
        ]
        for name, found in [*ours, *theirs]
    ]
    return lines(header, body)


def aims_table(table: pl.DataFrame) -> str:
    """What was aimed at as published, our recipe's answer, and the best of all rows."""
    body = []
    for task, aims in AIMS.items():
        ours, joined = rows(table, task, "reference"), rows(table, task, "reference", "ensemble")
        for metric, aim in aims.items():
            name, most = max(printed(task).items(), key=lambda item: item[1][metric])
            cells = [f"{task}: {NAMES[metric]}", f"{most[metric]:.2f} ({name})", f"{aim:.2f}"]
            own = [[row for row in held if row["recipe"] in OURS][:1] for held in (ours, joined)]
            best = max(ours, key=lambda row: float(row[metric] or 0), default=None)
            cells += [_against(row[0], metric, aim) if row else "–" for row in own]
            body.append([*cells, "–" if best is None else f"{_against(best, metric, aim)} ({_name(best)})"])
    header = ["", "best printed", "aim", "`steady`, mean of seeds", "`steady`, ensemble"]
    return lines([*header, "best mean of all rows, on test"], body)


def _against(row: Row, metric: str, aim: float) -> str:
    low = row[f"low_pedestrian_{metric}"]
    reached = "reached" if row[metric] >= aim else "not reached"
    sure = "" if low is None or low < aim else ", so is its interval"
    return f"{row[metric]:.3f}{_ends(row, metric)}, {reached}{sure}"


def pairs_table(table: pl.DataFrame, found: pl.DataFrame, task: str, config: str) -> str:
    """Our own network less each other model."""
    held = {(r["digest"], r["metric"]): r for r in found.iter_rows(named=True) if "digest" in r}
    shown = FIRST[task][:BY]
    body = [
        [f"less {_name(row)}", *(_difference(held[row["digest"], metric]) for metric in shown)]
        for row in rows(table, task, config)
        if (row["digest"], shown[0]) in held
    ]
    return lines([f"`{OWN}`", *(NAMES[name] for name in shown)], body)


def _difference(row: Row) -> str:
    ends = [f"[{row[f'low_{unit}']:+.3f}, {row[f'high_{unit}']:+.3f}]" for unit in ("pedestrian", "video")]
    return f"{row['difference']:+.3f} {' '.join(ends)} {row['verdict']}"


def told(table: pl.DataFrame, found_pairs: pl.DataFrame) -> str:
    """All tables of the page."""
    parts = ["### What was aimed at", aims_table(table)]
    for (task, config), title in TITLES.items():
        found = rows(table, task, config)
        if not found:
            continue
        size = f"{found[0]['samples']:,} test samples of {found[0]['pedestrians']:,} pedestrians."
        parts += [f"### {title}", size, main_table(table, task, config)]
        differences = pairs_table(table, found_pairs, task, config)
        if differences.count("\n") > 1:
            parts += [f"`{OWN}` against each other model, ensembles on the same samples:", differences]
        if config == "reference":
            number_of = {"action": "III", "risk": "VI"}[task]
            parts += [f"The columns of the paper's Table {number_of}:", print_table(table, task)]
    return "\n\n".join(parts)


def whole(page: str, table: pl.DataFrame, found_pairs: pl.DataFrame) -> str:
    """The page with the results between its marks."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{told(table, found_pairs)}\n\n{END}{after}"


if __name__ == "__main__":
    folders = [Path(name) for name in sys.argv[1:]]
    if folders:
        results = kept(folders)
        write_atomically(KEPT, results.write_csv().encode())
        write_atomically(PAIRS_KEPT, pairs(folders, results).write_csv().encode())
    text = whole(PAGE.read_text("utf-8"), pl.read_csv(KEPT), pl.read_csv(PAIRS_KEPT))
    write_atomically(PAGE, text.encode())
