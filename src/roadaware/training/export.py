"""Export of a run: the detector and its model card."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from roadaware import __version__
from roadaware.config import digest
from roadaware.io.files import write_atomically
from roadaware.training.data import Material
from roadaware.training.learners import Learner
from roadaware.training.recipe import Recipe
from roadaware.training.teacher import teacher_row
from roadaware.training.validation import get_linker_fields

CARD = "model.md"


def save_product(
    folder: Path,
    learner: Learner,
    average: Mapping[str, Tensor] | None,
    material: Material,
    recipe: Recipe,
    facts: Mapping[str, Any],
) -> Path:
    """Write the detector and its card, and answer where the detector is.

    Args:
        folder: of the run.
        learner: as it is trained; it is left alone.
        average: a running mean of its network's weights, which then is written.
        material: what it learnt from.
        recipe: how.
        facts: steps and metrics.

    Raises:
        DiskError: if the disk refuses.
    """
    kept = copy.deepcopy(learner.network).cpu().eval()
    if average is not None:
        kept.load_state_dict(dict(average))
    notes = {
        "name": recipe.name,
        "recipe": digest(recipe),
        "data": material.scenes.meta.dataset,
        "licence": material.scenes.meta.licence,
        "videos": len(material.films),
        "seed": recipe.seed,
        **({"linking": get_linker_fields(recipe)} if get_linker_fields(recipe) else {}),
        **facts,
    }
    path = learner.save(folder, kept, notes)
    write_atomically(folder / CARD, _card(kept, material, recipe, facts).encode())
    return path


def _card(network: nn.Module, material: Material, recipe: Recipe, facts: Mapping[str, Any]) -> str:
    """What the detector is, for people."""
    classes, meta = material.classes, material.scenes.meta
    labels = ", ".join(f"{len(held)} of {kind}" for kind, held in classes.kinds.items())
    rows = [
        ("model", f"{recipe.model.name}, {sum(p.numel() for p in network.parameters()):,} parameters"),
        ("labels", f"{labels}; {len(classes.av_labels)} actions of the own vehicle"),
        ("learnt from", f"{meta.dataset or 'scenes'}: {len(material.films)} videos, from {_roots(recipe)}"),
        *teacher_row(recipe, material.taught),
        ("terms of the annotations", meta.licence or "unknown"),
        ("steps", f"{facts['step']:,} of {facts['steps']:,}"),
        ("recipe", f"recipe.json, digest {digest(recipe)}, seed {recipe.seed}"),
        ("program", f"roadaware {__version__}"),
    ]
    lines = [f"# {recipe.name}", "", "| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows)]
    if facts["metrics"]:
        judged = recipe.validation.videos or len(material.judged_films)
        lines += ["", f"Judged on {judged} videos:", "", "| metric | per cent |", "|---|---|"]
        lines += [f"| {name} | {100 * value:.1f} |" for name, value in facts["metrics"].items()]
    return "\n".join(lines) + "\n"


def _roots(recipe: Recipe) -> str:
    split = f", split {recipe.data.split}" if recipe.data.split else ""
    return ", ".join(Path(root).name for root in recipe.data.roots) + split
