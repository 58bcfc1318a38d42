"""`roadaware rescore`: proposals ranked by how unlike known objects they are, fitted first, then applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.analysis.evaluation.corner_cases import open_image_set, open_labelled, open_labelled_truth
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
    add_commands,
    create_app,
    describe_strict,
    validate_range,
)
from roadaware.config import change_fields
from roadaware.corner_cases.sources import SemanticSource
from roadaware.datasets.loading import open_saved_predictions
from roadaware.errors import UsageError
from roadaware.io.folders import make_folder
from roadaware.reports.scene_text import format_fitted, format_rescored
from roadaware.scenes.store import save

if TYPE_CHECKING:
    from roadaware.corner_cases.scorers import Fitted
    from roadaware.scenes.tables import Scenes

Classes = Literal["base", "2022"]
_TRUTH = "The annotations: a COCO file, tables that `read -o` saved, or synthetic scenes."
_FIT_DETECTIONS = "Saved predictions with a score for each class, as `predict` writes them, of those images."
_OUT_FIT = "The file that the re-scorer is written to."
_ENERGY = (
    "FIELD=VALUE: form (softplus for a sigmoid for each class, the default; logsumexp for a softmax, as ORE), temperature "
    "(1.5) that logits are divided by."
)
_IOU = "Overlap from which on a detection is of an object, or of a proposal."
_CLASSES = "Which classes are common, as in `evaluate corner-cases`. [default: by the ground truth]"
_DATASET = "The images: synthetic scenes, KITTI, nuScenes, ONCE, saved tables, or a COCO file."
_PICTURES = "Folder that the paths of images start at. [default: that of the dataset]"
_FEATURES = "What describes crops: plain (no network), vgg16, resnet50, or a folder of an image model."
_WEIGHTS = "Image weights of vgg16 or resnet50; without them they are drawn from the seed."
_SEMANTICS = "What pixels show, as in `propose`: background is then cropped where a map says so."
_PROPOSALS = "Saved proposals of these images: those that lie on no object are kept as background."
_SIZE = "Features that the bank keeps at most."
_MEMORY = (
    "FIELD=VALUE: neighbours (3), the nearest features whose distances are averaged; background (4), crops of background "
    "from each image at most; min_side_px (8), below which boxes are not taken; and others of MemoryConfig."
)
_FIT = "Files that `rescore fit-energy` or `fit-memory` wrote; several are applied one after the other."
_APART = "For memory banks, and so that energies fitted on other images of the same videos are refused."
_DETECTIONS = "For energies: what the detector says of the images of the proposals."
_COMBINE = "The new score: the old one times what is found (product), or what is found (alone)."
_LEAK = "Go on although the re-scorer was fitted on some of these images or videos; the result says so."
_UNOPENED = "images could not be opened"
_STRICT = f"Exit with 1 if {_UNOPENED}."
_STRICT_ROWS = "Exit with 1 if rows or files of truth or detections were refused."
_OUT = "Where the re-scored proposals go: a new or empty folder."

rescore = create_app(
    "rescore",
    """
    Rank proposals of corner cases by how unlike known objects they are.

    `fit-energy` learns from a detector of known classes how sure it is of known and of unknown objects;
    `fit-memory` keeps what common objects and background look like. `apply` gives proposals a new score
    and keeps the old one beside it. Fit on other images than those that are judged: a re-scorer
    knows its images and refuses them.

    For example:

        roadaware rescore fit-energy --truth runs/home \\
            --detections runs/found/predictions --output energy.npz

        roadaware rescore apply runs/proposals/proposals --fit energy.npz \\
            --detections runs/away/predictions --output runs/rescored
    """,
)


def fit_energy(
    *,
    truth: Annotated[list[Path], Parameter(help=_TRUTH), Several],
    detections: Annotated[list[Path], Parameter(help=_FIT_DETECTIONS), Several],
    out: Annotated[Path, Output, Parameter(help=_OUT_FIT), outputs.MODEL],
    kind: Annotated[str, Parameter(help="The labels whose scores are taken.")] = "agent",
    iou: Annotated[float, Parameter(help=_IOU)] = 0.5,
    changes: Annotated[tuple[str, ...], Parameter(name="--set", help=_ENERGY), Several, Stated] = (),
    classes: Annotated[Classes | None, Parameter(help=_CLASSES)] = None,
    strict: Annotated[bool, Parameter(help=_STRICT_ROWS), Switch] = False,
) -> Outcome:
    """Fit two Weibull densities to a detector's energies, of known and of unknown objects.

    Objects of common classes are known, corner cases of other classes unknown. Each detection counts for the
    object that it overlaps most; what lies on no object is left out.

    For example:

        roadaware rescore fit-energy --truth runs/home \\
            --detections runs/found/predictions --output energy.npz
    """
    from roadaware.corner_cases.known_objects import Matching, fit_known
    from roadaware.corner_cases.scorers import EnergyConfig

    config, matching = change_fields(EnergyConfig(), changes, "the energy"), Matching(kind, iou)
    _check_pairs(truth, detections, "--truth", "--detections")
    sets = [
        (open_labelled_truth(one, classes), open_saved_predictions(other))
        for one, other in zip(truth, detections, strict=True)
    ]
    with console.log_step("fitting"):
        fitted = fit_known(sets, config, matching)
    refused = sum(len(each.rejected) for pair in sets for each in pair)
    return _save_fitted(fitted, out, describe_strict(strict, refused, "rows or files were refused"))


def fit_memory(
    dataset: Annotated[list[Path], Parameter(help=_DATASET)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help=_OUT_FIT), outputs.MODEL],
    features: Annotated[str, Parameter(help=_FEATURES)] = "plain",
    weights: Annotated[Path | None, Parameter(help=_WEIGHTS)] = None,
    semantics: Annotated[str | None, Parameter(help=_SEMANTICS)] = None,
    proposals: Annotated[list[Path] | None, Parameter(help=_PROPOSALS), Several] = None,
    images: Annotated[list[Path] | None, Parameter(name="--media", help=_PICTURES), Several, Stated] = None,
    size: Annotated[int, Parameter(help=_SIZE, validator=validate_range(1, 1_000_000))] = 1000,
    changes: Annotated[tuple[str, ...], Parameter(name="--set", help=_MEMORY), Several, Stated] = (),
    seed: Annotated[int, Parameter(help="Of what is drawn.", validator=validate_range(0, 2**32 - 1))] = 0,
    classes: Annotated[Classes | None, Parameter(help=_CLASSES)] = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
) -> Outcome:
    """Keep what common objects and background look like, as features of their crops.

    Crops are of objects that are no corner cases, and of background: where a semantic map says so, else where
    nothing is annotated. A greedy choice keeps those that lie farthest apart. A fifth of the videos stays out
    and tells how far common things usually lie from the bank.

    For example:

        roadaware rescore fit-memory runs/home --semantics erring --output memory.npz
    """
    from roadaware.corner_cases.scorers import MemoryConfig
    from roadaware.tasks.unknown_memory import CommonMemory, fit_crops, load_crop_encoder

    config = change_fields(MemoryConfig(size=size, seed=seed), changes, "the memory")
    looker = load_crop_encoder(features, weights, seed=seed)
    _check_pairs(dataset, images, "DATASET", "--media")
    _check_pairs(dataset, proposals, "DATASET", "--proposals")
    sets = []
    for place, path in enumerate(dataset):
        scenes, root = open_image_set(path, None if images is None else images[place], classes)
        shown = None if semantics is None else SemanticSource(semantics, scenes, root)
        held = None if proposals is None else open_saved_predictions(proposals[place])
        sets.append(CommonMemory(scenes, root, shown, held))
    with console.show_progress("looking at crops") as seen:
        fitted = fit_crops(sets, looker, config, progress=seen)
    return _save_fitted(fitted, out, describe_strict(strict, fitted.about["refused"], _UNOPENED))


def _save_fitted(fitted: Fitted, out: Path, failed: str | None) -> Outcome:
    from roadaware.corner_cases.scorers import save_fitted

    make_folder(out.absolute().parent)
    save_fitted(out, fitted)
    console.print_note(f"wrote {out}")
    return Outcome(format_fitted(fitted, out), {"file": str(out), **fitted.describe()}, failed)


def apply(
    proposals: Annotated[Path, Parameter(help="Saved proposals, as `propose` writes them.")],
    /,
    *,
    fit: Annotated[list[Path], Parameter(help=_FIT), Several],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.TABLES],
    detections: Annotated[Path | None, Parameter(help=_DETECTIONS)] = None,
    dataset: Annotated[Path | None, Parameter(help=f"{_APART} {_DATASET}")] = None,
    images: Annotated[Path | None, Parameter(name="--media", help=_PICTURES)] = None,
    features: Annotated[
        str | None, Parameter(help="Folder of the image model, where the bank has one.")
    ] = None,
    weights: Annotated[Path | None, Parameter(help=_WEIGHTS)] = None,
    combine: Annotated[Literal["product", "alone"], Parameter(help=_COMBINE)] = "product",
    allow_leak: Annotated[bool, Parameter(help=_LEAK), Switch] = False,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
) -> Outcome:
    """Give proposals a new score; `score_before`, `unknown_energy` and `unknown_memory` stand beside it.

    No row is lost: where no detection overlaps a proposal, or its image cannot be opened, what is found is
    0.5, which speaks for neither.

    For example:

        roadaware rescore apply runs/proposals/proposals --fit memory.npz energy.npz \\
            --dataset runs/away --detections runs/found-away/predictions --output runs/rescored
    """
    from roadaware.corner_cases.known_objects import score_energy_novelty
    from roadaware.corner_cases.scorers import (
        ENERGY,
        check_held_out,
        check_videos_apart,
        open_fitted,
        rescore_proposals,
    )
    from roadaware.tasks.unknown_memory import PLAIN, TRUNKS, load_crop_encoder, score_crop_novelty

    opened = [open_fitted(path) for path in fit]
    for fitted in opened:
        if fitted.by == ENERGY and detections is None:
            raise UsageError(
                "energies are those of detections: give --detections, by the detector of the fit"
            )
        if fitted.by != ENERGY and dataset is None:
            raise UsageError("a memory bank looks at images: give --dataset, that of the proposals")
    held, lines = open_saved_predictions(proposals), []
    for fitted in opened:
        scenes: Scenes | None = None
        shared: int | None = None
        root, refused = Path(), dict[str, int]()
        if dataset is not None and fitted.by == ENERGY:
            scenes = open_labelled(dataset)
        elif dataset is not None:
            scenes, root = open_image_set(dataset, images)
        if scenes is not None:
            shared = check_videos_apart(fitted, held, scenes, allowed=allow_leak)
        if scenes is None or fitted.by == ENERGY:
            with console.log_step("asking for energies"):
                found = open_saved_predictions(detections or Path())
                shares, met, prints = score_energy_novelty(held, found, fitted)
        else:
            name = str(fitted.asked["features"])
            if name not in (PLAIN, *TRUNKS) and features is None:
                raise UsageError(
                    f"the bank was made with a model of type {name}: give its folder with --features"
                )
            looker = load_crop_encoder(features or name, weights, seed=int(fitted.asked["seed"]))
            with console.show_progress("looking at proposals") as seen:
                shares, met, prints, refused = score_crop_novelty(
                    held, scenes, root, looker, fitted, allow_leak=allow_leak, progress=seen
                )
        facts: dict[str, Any] = {
            "by": fitted.by,
            "fit": fitted.digest,
            "fitted_on": dict(fitted.about),
            "pictures": len(prints),
            "met": int(met.sum()),
            "neutral": int((met == 0).sum()),
            "leaked": check_held_out(fitted, prints, allowed=allow_leak),
            "shared_videos": shared,
            "refused": refused,
        }
        noted = {name: facts[name] for name in ("fit", "fitted_on", "leaked", "shared_videos", "neutral")}
        held = rescore_proposals(held, shares, fitted.by, combine=combine, facts=noted)
        lines.append(facts)
    save(held, out, overwrite=overwrite)
    console.print_note(f"wrote {out}")
    data = {"folder": str(out), "proposals": len(held.boxes), "combine": combine, "rescored": lines}
    unopened = sum(sum(each["refused"].values()) for each in lines)
    failed = describe_strict(strict, unopened, _UNOPENED)
    return Outcome(format_rescored(out, lines, len(held.boxes)), data, failed)


add_commands(rescore, (fit_energy, fit_memory, apply))


def _check_pairs(one: Sequence[Path], other: Sequence[Path] | None, name: str, other_name: str) -> None:
    """Refuse lists that do not go together: some of the second, but not as many as of the first."""
    if other is not None and len(one) != len(other):
        raise UsageError(f"{len(one)} of {name} and {len(other)} of {other_name}: give as many, in one order")
