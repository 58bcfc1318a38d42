"""What training came to, as text: a detector, predictors by seed, and a table of several recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.protocols.printed_iv2024 import iterate_printed
from roadaware.reports import terminal
from roadaware.training.pedestrians.failures import group_seed_errors

if TYPE_CHECKING:
    from roadaware.training.loop import TrainedDetector
    from roadaware.training.pedestrians.recipe import SamplesRecipe
    from roadaware.training.pedestrians.run import Judged, Trained
    from roadaware.training.pedestrians.several import Ran


_OF_SEEDS = ("auc", "average_precision", "balanced_accuracy", "accuracy", "f1", "soft_f1", "hard_f1")
_AHEAD = {
    "ade_px": "ADE px",
    "fde_px": "FDE px",
    "arb_px": "ARB px",
    "frb_px": "FRB px",
    "grid_accuracy": "cell",
}
_SHOWN = ("auc", "average_precision", "balanced_accuracy", "f1", "accuracy", "hard_f1")
_WITH_INTERVAL = _SHOWN[:3]
_MEAN = "mean"


def format_detector(came: TrainedDetector) -> str:
    """A trained detector.

    Args:
        came: what training gave.
    """
    lines = [f"{came.steps:,} steps; {terminal.format_cell(str(came.model))}"]
    if came.metrics:
        rows = [(name, f"{100 * value:.1f}") for name, value in came.metrics.items()]
        lines += ["", terminal.format_table(["", "per cent"], rows)]
    return "\n".join(lines)


def format_predictors(folder: Path, trained: Trained, judged: Judged) -> str:
    """Predictors of pedestrians by seed, judged on test.

    Args:
        folder: of the run.
        trained: what training gave.
        judged: what they are worth.
    """
    recipe = trained.recipe
    shown = [name for name in _OF_SEEDS if name in next(iter(judged.metrics.values())).values()]
    rows = [
        (name, *(_with_interval(metrics, metric) for metric in shown))
        for name, metrics in judged.metrics.items()
    ]
    best = ", ".join(f"{seed}: {value:.3f}" for seed, value in trained.validation.items())
    lines = [
        f"{recipe.network.name} on {recipe.samples.protocol} ({recipe.samples.config}), test: "
        f"{len(judged.scenes.samples):,} samples; 95 % intervals over pedestrians",
        terminal.format_table(["", *shown], rows, left=1),
        f"chosen on validation by {recipe.choose}; by seed {best}",
        *_ahead(judged),
        *judged.notes,
        *(f"{who} failed: {why}" for who, why in group_seed_errors(trained.failed).items()),
        f"wrote {folder}",
    ]
    return "\n".join(lines)


def _ahead(judged: Judged) -> list[str]:
    """What answers about the future are worth, as a table; nothing for networks that give none."""
    if not judged.ahead:
        return []
    shown = [name for name in _AHEAD if any(name in found for found in judged.ahead.values())]
    rows = [
        (
            name,
            *(
                terminal.format_number(found.get(metric), 1 if metric.endswith("px") else 3)
                for metric in shown
            ),
        )
        for name, found in judged.ahead.items()
    ]
    text = terminal.format_table(["boxes ahead", *(_AHEAD[metric] for metric in shown)], rows)
    return ["", text, "pixels are those of the original images; cell is the share of right final cells", ""]


def _with_interval(metrics: Any, name: str) -> str:
    row = next(row for row in metrics.of_group(None).iter_rows(named=True) if row["metric"] == name)
    if not row["valid"]:
        return "–"
    ends = terminal.format_row_interval(row, "pedestrian")
    text = terminal.format_number(row["value"])
    return text if ends == "-" else f"{text} {ends}"


def format_recipes(models: Sequence[Mapping[str, Any]], ran: Sequence[Ran], folder: Path) -> str:
    """A table for all recipes on the same samples, what failed, what is to be known, and where all is.

    Args:
        models: as `training.pedestrians.results.group_results` gives them.
        ran: what came of the recipes.
        folder: of all of them.
    """
    by_samples: dict[str, list[Ran]] = {}
    for each in ran:
        if each.rows is not None:
            wanted = ("reader", "root", "options", "protocol", "config", "fields")
            by_samples.setdefault(
                repr({name: getattr(each.recipe.samples, name) for name in wanted}), []
            ).append(each)
    blocks = []
    for held in by_samples.values():
        digests = {value for each in held if each.rows is not None for value in each.rows["digest"]}
        part = [model for model in models if model["digest"] in digests]
        blocks.append(_format_table(part, held[0].recipe.samples))
    for what, texts in (("failed", [each.failed for each in ran]), ("notes", [each.notes for each in ran])):
        lines = [
            f"{each.recipe.name}: {line}" for each, said in zip(ran, texts, strict=True) for line in said
        ]
        if lines:
            blocks.append(f"{what}\n" + terminal.format_bullets(lines))
    blocks.append(f"every metric, seed and interval: {folder}/results.csv, .parquet and .json")
    return "\n\n".join(blocks)


def _format_table(models: Sequence[Mapping[str, Any]], samples: SamplesRecipe) -> str:
    first = models[0]
    known = {name for model in models for run in model["runs"].values() for name in run["metrics"]}
    metrics = [name for name in _SHOWN if name in known]
    body = [_build_row(model, metrics) for model in models]
    for name, values in iterate_printed(samples, first["samples"]):
        cells = [terminal.format_number(values.get(metric), 2) for metric in metrics]
        body.append([f"{name} (printed)", *cells, "", "", ""])
    where = "" if samples.protocol.startswith(f"{samples.reader}-") else f" on {samples.root}"
    head = (
        f"{first['protocol']} ({first['config']}){where}, test: {first['samples']:,} samples of "
        f"{first['pedestrians']:,} pedestrians; means over seeds, 95 % intervals over pedestrians"
    )
    return f"{head}\n{terminal.format_table(['', *metrics, 'parameters', 'CPU s', 'inputs'], body)}"


def _build_row(model: Mapping[str, Any], metrics: Sequence[str]) -> list[str]:
    run = model["runs"][_MEAN]
    cells = []
    for metric in metrics:
        found = run["metrics"][metric]
        text = terminal.format_number(found["value"])
        low, high = found["pedestrian"]
        ends = terminal.format_interval(low, high, caution=found["cautions"]["pedestrian"])
        cells.append(f"{text} {ends}" if metric in _WITH_INTERVAL and ends != "-" else text)
    return [
        model["model"],
        *cells,
        f"{model['parameters']:,}",
        terminal.format_number(run["cpu_s"], 0),
        model["inputs"],
    ]
