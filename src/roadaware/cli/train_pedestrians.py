"""`roadaware train` with a recipe for pedestrians: predictors by seed, judged on test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console, output, text
from roadaware.cli.options import Outcome

if TYPE_CHECKING:
    from roadaware.training.pedestrians.recipe import PedestrianRecipe
    from roadaware.training.pedestrians.run import Judged, Trained

_SHOWN = ("auc", "average_precision", "balanced_accuracy", "accuracy", "f1", "soft_f1", "hard_f1")
_AHEAD = {
    "ade_px": "ADE px",
    "fde_px": "FDE px",
    "arb_px": "ARB px",
    "frb_px": "FRB px",
    "grid_accuracy": "cell",
}
_RESULTS = "results.json"
_DRAWS = 1000


def train_predictors(recipe: PedestrianRecipe, out: Path | None) -> Outcome:
    """Train, judge on test, write the numbers into the folder and tell them.

    Args:
        recipe: of the predictors.
        out: folder of the run; named after the recipe and its digest unless told.
    """
    from roadaware.config import digest
    from roadaware.training.pedestrians.run import judge, train

    folder = out or Path("runs") / f"{recipe.name}-{digest(recipe)[:8]}"
    with console.progress("training") as progress:
        trained = train(recipe, folder, progress)
    with console.working("judging on test"):
        judged = judge(trained, draws=_DRAWS)
    data = _data(folder, trained, judged)
    output.write_text(folder / _RESULTS, output.json_text(data))
    return Outcome(_text(folder, trained, judged), data, _failed(trained))


def _failed(trained: Trained) -> str | None:
    """How many seeds failed, in words; None if all came to an end."""
    failed, seeds = len(trained.failed), len(trained.recipe.seeds)
    return f"{failed} of {seeds} seeds failed; the others stand in the results" if failed else None


def _text(folder: Path, trained: Trained, judged: Judged) -> str:
    from roadaware.training.pedestrians.failures import by_seeds

    recipe = trained.recipe
    shown = [name for name in _SHOWN if name in next(iter(judged.metrics.values())).values()]
    rows = [
        (name, *(_with_interval(metrics, metric) for metric in shown))
        for name, metrics in judged.metrics.items()
    ]
    best = ", ".join(f"{seed}: {value:.3f}" for seed, value in trained.validation.items())
    lines = [
        f"{recipe.network.name} on {recipe.samples.protocol} ({recipe.samples.config}), test: "
        f"{len(judged.scenes.samples):,} samples; 95 % intervals over pedestrians",
        text.table(["", *shown], rows, left=1),
        f"chosen on validation by {recipe.choose}; by seed {best}",
        *_ahead(judged),
        *judged.notes,
        *(f"{who} failed: {why}" for who, why in by_seeds(trained.failed).items()),
        f"wrote {folder}",
    ]
    return "\n".join(lines)


def _ahead(judged: Judged) -> list[str]:
    """What answers about the future are worth, as a table; nothing for networks that give none."""
    if not judged.ahead:
        return []
    shown = [name for name in _AHEAD if any(name in found for found in judged.ahead.values())]
    rows = [
        (name, *(text.number(found.get(metric), 1 if metric.endswith("px") else 3) for metric in shown))
        for name, found in judged.ahead.items()
    ]
    told = text.table(["boxes ahead", *(_AHEAD[metric] for metric in shown)], rows)
    return ["", told, "pixels are those of the original pictures; cell is the share of right final cells", ""]


def _with_interval(metrics: Any, name: str) -> str:
    row = next(row for row in metrics.of_group(None).iter_rows(named=True) if row["metric"] == name)
    if not row["valid"]:
        return "–"
    ends = text.row_interval(row, "pedestrian")
    told = text.number(row["value"])
    return told if ends == "-" else f"{told} {ends}"


def _data(folder: Path, trained: Trained, judged: Judged) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "protocol": trained.recipe.samples.protocol,
        "config": trained.recipe.samples.config,
        "network": trained.recipe.network.name,
        "validation": {str(seed): value for seed, value in trained.validation.items()},
        "failed": {str(seed): why for seed, why in trained.failed.items()},
        "test": {name: metrics.values() for name, metrics in judged.metrics.items()},
        "ahead": judged.ahead,
        "notes": list(judged.notes),
    }
