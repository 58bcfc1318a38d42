"""`roadaware train` with several recipes for pedestrians: one table of all, beside the printed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console, folders, output, runs, text
from roadaware.cli.options import Outcome

if TYPE_CHECKING:
    import polars as pl

    from roadaware.training.pedestrians.recipe import PedestrianRecipe, SamplesRecipe
    from roadaware.training.pedestrians.several import Ran

SHOWN = ("auc", "average_precision", "balanced_accuracy", "f1", "accuracy", "hard_f1")
TEST = "test"
"""The run folder inside that of a recipe, of the mean of its seeds' probabilities."""
_WITH_INTERVAL = SHOWN[:3]
_MEAN = "mean"
_ENDS = {unit: (f"low_{unit}", f"high_{unit}") for unit in ("pedestrian", "video")}
_OF_RECIPE = (
    "recipe",
    "digest",
    "model",
    "inputs",
    "task",
    "protocol",
    "config",
    "samples",
    "pedestrians",
    "parameters",
    "criterion",
)
_OF_RUN = ("cpu_s", "epoch", "validation")
_DRAWS = 1000


def train_several(recipes: Sequence[PedestrianRecipe], out: Path | None) -> Outcome:
    """Train each, judge on test, and put all numbers into one table.

    Args:
        recipes: of predictors of pedestrians.
        out: folder of the runs, `runs` unless told; each gets a folder in it.

    Raises:
        UsageError: if two recipes are the same.
        FailedSeedsError: if nothing came of any of several.
        RoadawareError: whatever is wrong with a single one.
    """
    import polars as pl

    from roadaware.training.pedestrians.failures import FailedSeedsError, together
    from roadaware.training.pedestrians.several import run_several

    folder = out or Path("runs")
    ran = []
    with console.progress("training") as progress:
        for each in run_several(recipes, folder, draws=_DRAWS, progress=_among(len(recipes), progress)):
            _keep_test(each)
            ran.append(each)
    failed = {each.recipe.name: list(each.failed) for each in ran if each.failed}
    held = [each.rows for each in ran if each.rows is not None]
    if not held:
        alike = together({name: why[0] for name, why in failed.items()})
        told = "; ".join(f"{names}: {why}" for names, why in alike.items())
        raise FailedSeedsError(f"nothing came of any recipe. {told}")
    rows = pl.concat(held)
    notes = {each.recipe.name: list(each.notes) for each in ran if each.notes}
    data = {"folder": str(folder), "models": nested(rows), "failed": failed, "notes": notes}
    _write(folder, rows, data)
    return Outcome(_text(rows, ran, folder), data, _why(failed, len(recipes)))


def nested(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The table as plain data: recipe by recipe, run by run, metric by metric.

    Args:
        rows: columns `training.pedestrians.results.RESULTS`, and `cpu_s` where it is to be there.
    """
    found = []
    for _, part in rows.group_by(("recipe", "digest"), maintain_order=True):
        first = part.row(0, named=True)
        by_run = {}
        for (name,), run in part.group_by(("run",), maintain_order=True):
            metrics = {
                row["metric"]: {
                    "value": row["value"],
                    **{unit: [row[low], row[high]] for unit, (low, high) in _ENDS.items()},
                    "cautions": {unit: row[f"caution_{unit}"] for unit in _ENDS},
                }
                for row in run.iter_rows(named=True)
            }
            facts = run.row(0, named=True)
            by_run[str(name)] = {**{key: facts[key] for key in _OF_RUN if key in facts}, "metrics": metrics}
        found.append({**{key: first[key] for key in _OF_RECIPE}, "runs": by_run})
    return found


def _keep_test(each: Ran) -> None:
    """Write what was judged now as a run folder, which `compare` and `report` take."""
    from roadaware.cli.pages import run_page
    from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples

    if each.said is None:
        return
    recipe = each.recipe
    named = PedestrianConfig.reference if recipe.samples.config == "reference" else PedestrianConfig.default
    config = named(recipe.task)
    result = evaluate_samples(each.said, config)
    facts = {"config_name": recipe.samples.config}
    run = runs.Run(recipe.name, each.said, config, result, 0, 0, recipe.samples.protocol, facts)
    folders.put_folder(each.folder / TEST, runs.files_of(run, run_page([run])), overwrite=True)


def _write(folder: Path, rows: pl.DataFrame, data: dict[str, Any]) -> None:
    import polars as pl

    from roadaware.scenes.csv_text import csv_text
    from roadaware.training.pedestrians.results import RESULTS, keep

    same = rows.select(*RESULTS)
    output.write_text(folder / "results.json", output.json_text({**data, "models": nested(same)}))
    output.write_text(folder / "results.csv", csv_text(same.with_columns(pl.selectors.float().round(6))))
    keep(folder, rows)


def _among(n: int, shown: console.Progress) -> Callable[[PedestrianRecipe], Callable[[int, int, str], None]]:
    """Who is to be told how far each of n recipes is: the bar is of all of them."""
    places = iter(range(n))

    def asked(recipe: PedestrianRecipe) -> Callable[[int, int, str], None]:
        place = next(places)

        def told(done: int, total: int, unit: str) -> None:
            share = round(100 * (place + done / total) / n)
            shown(share, 100, f"%, recipe {place + 1} of {n}: {recipe.name}, {unit}")

        return told

    return asked


def _why(failed: dict[str, list[str]], n: int) -> str | None:
    if not failed:
        return None
    return f"{len(failed)} of {n} recipes failed, or a seed of them did; the others stand in the results"


def _text(rows: pl.DataFrame, ran: Sequence[Ran], folder: Path) -> str:
    """A table for all recipes on the same samples, what failed, what is to be known, and where all is."""
    import polars as pl

    by_samples: dict[str, list[Ran]] = {}
    for each in ran:
        if each.rows is not None:
            by_samples.setdefault(_cut(each.recipe.samples), []).append(each)
    blocks = []
    for held in by_samples.values():
        digests = {value for each in held if each.rows is not None for value in each.rows["digest"]}
        blocks.append(_table(rows.filter(pl.col("digest").is_in(digests)), held[0].recipe.samples))
    for what, told in (("failed", [each.failed for each in ran]), ("notes", [each.notes for each in ran])):
        lines = [f"{each.recipe.name}: {line}" for each, said in zip(ran, told, strict=True) for line in said]
        if lines:
            blocks.append(f"{what}\n" + text.bullets(lines))
    blocks.append(f"every metric, seed and interval: {folder}/results.csv, .parquet and .json")
    return "\n\n".join(blocks)


def _cut(samples: SamplesRecipe) -> str:
    """What decides which samples are judged, as one text."""
    wanted = ("reader", "root", "options", "protocol", "config", "fields")
    return repr({name: getattr(samples, name) for name in wanted})


def _table(part: pl.DataFrame, samples: SamplesRecipe) -> str:
    first = part.row(0, named=True)
    metrics = [name for name in SHOWN if name in set(part["metric"])]
    body = [_row(model, metrics) for model in nested(part)]
    for name, values in printed(samples, first["samples"]):
        cells = [text.number(values.get(metric), 2) for metric in metrics]
        body.append([f"{name} (printed)", *cells, "", "", ""])
    where = "" if samples.protocol.startswith(f"{samples.reader}-") else f" on {samples.root}"
    head = (
        f"{first['protocol']} ({first['config']}){where}, test: {first['samples']:,} samples of "
        f"{first['pedestrians']:,} pedestrians; means over seeds, 95 % intervals over pedestrians"
    )
    return f"{head}\n{text.table(['', *metrics, 'parameters', 'CPU s', 'inputs'], body)}"


def _row(model: dict[str, Any], metrics: Sequence[str]) -> list[str]:
    run = model["runs"][_MEAN]
    cells = []
    for metric in metrics:
        found = run["metrics"][metric]
        told = text.number(found["value"])
        low, high = found["pedestrian"]
        ends = text.interval(low, high, caution=found["cautions"]["pedestrian"])
        cells.append(f"{told} {ends}" if metric in _WITH_INTERVAL and ends != "-" else told)
    return [
        model["model"],
        *cells,
        f"{model['parameters']:,}",
        text.number(run["cpu_s"], 0),
        model["inputs"],
    ]


def printed(samples: SamplesRecipe, judged: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Models and what is printed of them on such samples; nothing unless these are the published ones, all.

    Args:
        samples: of the recipes that are shown beside.
        judged: how many samples of test there were.
    """
    from roadaware.protocols.printed_iv2024 import TABLE_I, printed_cells

    what, _, paper = samples.protocol.partition("@")
    published = samples.reader == what.partition("-")[0] and not samples.options and not samples.fields
    if paper != "iv2024" or samples.config != "reference" or not published:
        return
    counts = {f"{dataset}-{task}": sum(rows["test"]) for (dataset, task), rows in TABLE_I.items()}
    # Risk is asked of the samples of action, and the counts of it are not printed.
    if judged < counts[what.replace("-risk", "-action")]:
        return
    held: dict[str, dict[str, float]] = {}
    for cell in printed_cells():
        if f"{cell.dataset}-{cell.task}" == what and cell.group is None and cell.table != "V":
            held.setdefault(cell.model, {})[cell.metric] = cell.value
    yield from held.items()
