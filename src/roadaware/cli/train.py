"""`roadaware train`: a recipe becomes a trained detector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs, text
from roadaware.cli.interrupts import Terminated
from roadaware.cli.options import USUAL, Common, Outcome, OutPlace, Several, Switch
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.training.loop import Trained
    from roadaware.training.pedestrians.recipe import PedestrianRecipe

_RECIPE = (
    "The recipe: a YAML file, or the name of one that comes along (those of configs/), such as objects-road; "
    "several where they are of predictors."
)
_WEIGHTS = (
    "What a detector begins with, instead of what its recipe says: a name of `models list`, a checkpoint, or "
    "the folder of an object detector."
)
_OUT = "Folder of the run, or of a folder for each of several; in runs/ unless told."
_RESUME = "Go on from the folder's last checkpoint."
_SET = "Fields of the recipe with other values, such as schedule.lr=0.001 data.roots=[a,b]."
_ON = "A file with samples that recipes of predictors learn from instead of their own."
_SIGTERM = 15
_LAST = "last.ckpt"


def train(
    recipe: Annotated[list[Path], Parameter(help=_RECIPE)],
    /,
    *,
    out: Annotated[Path | None, OutPlace, Parameter(help=_OUT), outputs.FOLDER] = None,
    resume: Annotated[bool, Parameter(help=_RESUME), Switch] = False,
    weights: Annotated[str | None, Parameter(help=_WEIGHTS)] = None,
    on: Annotated[Path | None, Parameter(help=_ON)] = None,
    changes: Annotated[list[str] | None, Parameter(name="--set", help=_SET), Several] = None,
    common: Common = USUAL,
) -> Outcome:
    """Train what a recipe names: a detector of road events, or a predictor of what pedestrians will do.

    A detector learns from films and annotations. Its folder holds checkpoints, a log of every step and, in
    the end, the detector as model.safetensors (an object detector of transformers as a folder, model/) with
    its card. Ctrl-C saves and ends; the same command with --resume goes on as if nothing had happened.

    A recipe with a `task` (action, intention or risk) makes a predictor for each of its seeds, keeps each as
    it was at its best on validation, and judges them and their mean on test. Ctrl-C saves and ends; the same
    command goes on. A seed that fails leaves the others, with exit code 1. Several such recipes give one
    table, beside the rows that were printed; one that fails leaves the others. Recipes may also name models
    on hand features, such as boosting. --on FILE gives all of them other samples to learn from and be judged
    on, such as those in configs/pedestrians/on/; --set replaces what both say.

    For example:

        roadaware train simulator --out runs/compact --set data.roots=made-up

        roadaware train simulator --out runs/compact --set data.roots=made-up --resume

        roadaware train objects-road --weights rtdetr-r18 --set data.roots=ROAD/road_trainval_v1.0.json \\
            data.media=ROAD

        roadaware train steady-jaad --set samples.root=JAAD-JAAD_2.0.zip

        roadaware train configs/pedestrians/*-jaad.yaml --out runs/jaad

        roadaware train crossing-jaad \\
            --on configs/pedestrians/on/pie.yaml --set samples.root=PIE
    """
    from roadaware.training.pedestrians.recipe import PedestrianRecipe
    from roadaware.training.recipe_files import find_recipe, read_recipe

    read = [read_recipe(find_recipe(path), changes or (), on=on, weights=weights) for path in recipe]
    predictors = [each for each in read if isinstance(each, PedestrianRecipe)]
    if predictors:
        return _predictors(predictors, out, len(read))
    if len(read) > 1:
        raise UsageError("several recipes at once are for predictors of pedestrians; these are of detectors")
    chosen = next(each for each in read if not isinstance(each, PedestrianRecipe))
    folder = out or Path("runs") / chosen.name
    outputs.FOLDER.check(folder)
    if (folder / _LAST).exists() and not resume:
        # Before the loop is loaded, which says the same and takes a while.
        raise UsageError(f"{folder} holds a run: go on with --resume, or name another folder with --out")
    if chosen.model.weights:
        chosen.model.weights_path()  # said at once, before the data are read
    from roadaware.training.loop import train as trained

    with console.progress("training") as progress:
        came = trained(chosen, folder, resume=resume, progress=progress)
    if came.stopped is not None:
        console.note(f"saved step {came.step:,} of {came.steps:,}; the same command with --resume goes on")
        raise Terminated if came.stopped == _SIGTERM else KeyboardInterrupt
    return Outcome(_text(came), _data(came)) if came.first else Outcome("")


def _predictors(recipes: list[PedestrianRecipe], out: Path | None, read: int) -> Outcome:
    """One recipe of a network by itself, or several side by side."""
    from roadaware.models import MODELS

    if len(recipes) < read:
        raise UsageError("recipes of detectors and of predictors are not trained by one command")
    if read == 1 and recipes[0].network.name not in MODELS:
        from roadaware.cli.train_pedestrians import train_predictors

        return train_predictors(recipes[0], out)
    from roadaware.cli.train_several import train_several

    return train_several(recipes, out)


def _text(came: Trained) -> str:
    lines = [f"{came.steps:,} steps; {text.cell(str(came.model))}"]
    if came.metrics:
        rows = [(name, f"{100 * value:.1f}") for name, value in came.metrics.items()]
        lines += ["", text.table(["", "per cent"], rows)]
    return "\n".join(lines)


def _data(came: Trained) -> dict[str, Any]:
    return {
        "folder": str(came.folder),
        "steps": came.steps,
        "model": str(came.model),
        "metrics": came.metrics,
    }
