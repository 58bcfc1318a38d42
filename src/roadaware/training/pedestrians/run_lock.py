"""Predicting: a folder is of one recipe, and of the samples that this was first run on."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from roadaware import config as configs
from roadaware.errors import DiskError, UsageError
from roadaware.io.files import write_atomically
from roadaware.training.pedestrians.recipe import PedestrianRecipe, SamplesRecipe

RECIPE, DATA = "recipe.json", "data.json"
_log = logging.getLogger("roadaware")


def refuse_other(recipe: PedestrianRecipe, out: Path) -> None:
    """Make a folder, unless it holds what was fitted by another recipe; nothing is written into it.

    Args:
        recipe: that is to be run.
        out: folder of the run.

    Raises:
        UsageError: if the folder holds a run of another recipe.
        DiskError: if it cannot be made.
    """
    path = out / RECIPE
    make_run_folder(out)
    if path.exists() and _fits(out) and not is_same_recipe(path.read_text(encoding="utf-8"), recipe):
        raise UsageError(f"{out} holds a run of another recipe; name another folder with --out")


def register_run(recipe: PedestrianRecipe, out: Path, data: str) -> None:
    """Write recipe and digest of the samples into a folder without fits, or find the same ones there.

    Args:
        recipe: that is run.
        out: folder of the run.
        data: digest of its samples, see `data_digest.digest_of`.

    Raises:
        UsageError: if the folder holds a run of another recipe, or on other samples.
        DiskError: if it cannot be written to.
    """
    refuse_other(recipe, out)
    text = json.dumps(configs.to_dict(recipe), indent=2) + "\n"
    if _fits(out):
        refuse_other_data(recipe, out, data)
    else:
        write_atomically(out / DATA, (json.dumps({"samples": data}) + "\n").encode())
    if not _fits(out) or not (out / RECIPE).exists():
        write_atomically(out / RECIPE, text.encode())


def refuse_other_data(recipe: PedestrianRecipe, out: Path, data: str) -> None:
    """Refuse a folder whose fits learnt from other samples; one that does not say so is taken as it is.

    Args:
        recipe: that is run.
        out: folder of the run.
        data: digest of the samples that the recipe names now.

    Raises:
        UsageError: if they are others.
    """
    try:
        held = json.loads((out / DATA).read_text(encoding="utf-8"))["samples"]
    except (OSError, ValueError, KeyError, TypeError):
        _log.warning("%s does not say which samples it was run on; it is taken as it is", out)
        return
    if held != data:
        raise UsageError(
            f"{out} holds a run on other samples than {recipe.samples.root} gives now: annotations, poses or "
            "the way they are read have changed since. Name another folder with --out to run on what is "
            f"there now, or remove {out}"
        )


def is_same_recipe(text: str, recipe: PedestrianRecipe) -> bool:
    """Whether a file says this recipe; a field that is younger than the file has its default.

    Args:
        text: of the file.
        recipe: which.
    """
    usual = configs.to_dict(PedestrianRecipe(samples=SamplesRecipe(root="any")))
    try:
        said = json.loads(text)
    except ValueError:
        return False
    return isinstance(said, dict) and _whole(usual, said) == configs.to_dict(recipe)


def make_run_folder(folder: Path) -> None:
    """Make a folder.

    Raises:
        DiskError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"{folder} could not be made: {error.strerror or error}") from error


def _fits(out: Path) -> bool:
    """Whether something was fitted, or begun to be."""
    return any(out.glob("seed-*/*"))


def _whole(usual: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What is said, and the usual value of what is not."""
    parts = {
        name: {**usual[name], **value}
        for name, value in said.items()
        if isinstance(value, dict) and isinstance(usual.get(name), dict)
    }
    return {**usual, **said, **parts}
