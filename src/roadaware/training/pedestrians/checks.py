"""Checks of a recipe before its data are read: what its model could not do, or would not even look at."""

from __future__ import annotations

from roadaware import config as configs
from roadaware.errors import UsageError
from roadaware.models import CROSSING, entry_of
from roadaware.training.pedestrians.recipe import PedestrianRecipe, SamplesRecipe

_READ = ("type", "name", "task", "seeds", "network", "samples", "threads")
"""What a model on hand features takes from a recipe, of the seeds the first alone and of the network no size;
and threads, which change no result."""


def check_network(recipe: PedestrianRecipe) -> None:
    """Refuse a network that there is not, or losses of answers that it does not give.

    Args:
        recipe: of a network.

    Raises:
        UsageError: naming the networks that there are, or those that have what is asked for.
    """
    entry = entry_of(recipe.network.name)
    asked = [name for name in ("every_frame", "consistency") if getattr(recipe.loss, name)]
    if asked and not entry.each_frame:
        able = ", ".join(name for name in CROSSING if entry_of(name).each_frame)
        raise UsageError(
            f"loss.{' and loss.'.join(asked)}: {recipe.network.name} does not answer at every frame, so "
            f"that would do nothing; {able} does. Let it be 0, or take another network"
        )


def unread(recipe: PedestrianRecipe) -> tuple[str, ...]:
    """The fields that a recipe of a model on hand features sets and that its model does not look at.

    Args:
        recipe: of such a model.

    Returns:
        Names such as `schedule.lr`, of values other than the usual ones.
    """
    usual = PedestrianRecipe(samples=SamplesRecipe(root="any"))
    found = []
    if len(recipe.seeds) > 1 and recipe.seeds != usual.seeds:
        found.append("seeds beyond the first")
    if recipe.network.size != usual.network.size:
        found.append("network.size")
    base = configs.to_dict(usual)
    for name, value in configs.to_dict(recipe).items():
        if name in _READ or value == base[name]:
            continue
        inner = value if isinstance(value, dict) else None
        found += (
            [name] if inner is None else [f"{name}.{key}" for key in inner if inner[key] != base[name][key]]
        )
    return tuple(found)
