"""What re-scoring is given: truth, pictures and detections, and one re-scorer after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roadaware.cli import console, datasets
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.corner_cases.fitted import Fitted
    from roadaware.protocols.coda import Version
    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes
    from roadaware.tasks.crops import Looker
    from roadaware.tasks.unknown_memory import Common as CommonSet


@dataclass(frozen=True)
class Asked:
    """What proposals are re-scored with.

    Args:
        detections: for energies.
        dataset: whose pictures memory banks look at.
        pictures: folder that their paths start at; that of the dataset where None.
        features: folder of the image model that a bank was made with, if it was.
        weights: image weights that it was made with, if it was.
        combine: how the new score is made.
        allow_leak: whether re-scorers may have been fitted on these pictures.
    """

    detections: Path | None
    dataset: Path | None
    pictures: Path | None
    features: str | None
    weights: Path | None
    combine: Literal["product", "alone"]
    allow_leak: bool

    def check(self, fitted: Fitted) -> None:
        """Fail early where a re-scorer lacks what it needs.

        Raises:
            UsageError: if it does.
        """
        if fitted.by == "energy" and self.detections is None:
            raise UsageError(
                "energies are those of detections: give --detections, by the detector of the fit"
            )
        if fitted.by == "memory" and self.dataset is None:
            raise UsageError("a memory bank looks at pictures: give --dataset, that of the proposals")


def saved(path: Path) -> Predictions:
    """Predictions that were saved.

    Raises:
        InputError: if there are none.
    """
    from roadaware.scenes.store import open_predictions

    with console.working(f"opening {path}"):
        return open_predictions(path)


def truth_of(path: Path, classes: Version | None) -> Scenes:
    """Annotations with what is common and what novel.

    Args:
        path: a COCO file, saved tables or made-up scenes.
        classes: which classes are common; told from the truth where None.

    Raises:
        InputError: if they cannot be read.
    """
    from roadaware.cli.corner_inputs import open_truth, version_of
    from roadaware.protocols.coda import separated

    scenes = open_truth(path, None)
    return separated(scenes, classes or version_of(scenes, None))


def pictured(path: Path, pictures: Path | None, classes: Version | None = None) -> tuple[Scenes, Path]:
    """A set with what is common and what novel, and the folder that the paths of its pictures start at.

    Args:
        path: a COCO file, saved tables, made-up scenes, or a release with sweeps.
        pictures: that folder; told from the path where None.
        classes: which classes are common; told from the truth where None.

    Raises:
        UsageError: if the folder has to be told.
        InputError: if the set cannot be read, or there is no such folder.
    """
    from roadaware.tasks.crops import with_paths

    root = pictures or (path if path.is_dir() else path.parent)
    if not root.is_dir():
        raise InputError("there is no such folder of pictures", where=str(root))
    if datasets.is_saved(path) and pictures is None:
        raise UsageError(f"{path} holds tables alone: say where their pictures are with --pictures")
    scenes = _scenes_at(path, classes)
    return (with_paths(scenes) if _is_annotated(path) else scenes), root


def _is_annotated(path: Path) -> bool:
    """Whether it is a file, saved tables or made-up scenes, and no release with sweeps."""
    return path.is_file() or datasets.is_saved(path) or datasets.is_made_up(path)


def _scenes_at(path: Path, classes: Version | None = None) -> Scenes:
    """A set with what is common and what novel, of which no picture is needed."""
    if _is_annotated(path):
        return truth_of(path, classes)
    from roadaware.cli.propose import kind_of
    from roadaware.protocols.coda import separated

    return separated(datasets.opened(kind_of(path), path), classes or "base")


def check_pairs(one: Sequence[Path], other: Sequence[Path] | None, name: str, other_name: str) -> None:
    """Refuse lists that do not go together.

    Raises:
        UsageError: if there are some of the second, but not as many as of the first.
    """
    if other is not None and len(one) != len(other):
        raise UsageError(f"{len(one)} of {name} and {len(other)} of {other_name}: give as many, in one order")


def common_sets(
    paths: Sequence[Path],
    pictures: Sequence[Path] | None,
    proposals: Sequence[Path] | None,
    semantics: str | None,
    classes: Version | None,
) -> list[CommonSet]:
    """The sets that a memory bank is made of.

    Args:
        paths: of each.
        pictures: folder of the pictures of each, told from the paths where None.
        proposals: of each, if any.
        semantics: what their pixels show, if known.
        classes: which classes are common; told from the truth where None.

    Raises:
        UsageError: if there are not as many of each.
        InputError: if a set cannot be read.
    """
    from roadaware.corner_cases.sources import SemanticSource
    from roadaware.tasks.unknown_memory import Common

    check_pairs(paths, pictures, "DATASET", "--pictures")
    check_pairs(paths, proposals, "DATASET", "--proposals")
    found = []
    for place, path in enumerate(paths):
        scenes, root = pictured(path, None if pictures is None else pictures[place], classes)
        shown = None if semantics is None else SemanticSource(semantics, scenes, root)
        found.append(Common(scenes, root, shown, None if proposals is None else saved(proposals[place])))
    return found


def apply_one(held: Predictions, fitted: Fitted, asked: Asked) -> tuple[Predictions, dict[str, Any]]:
    """Proposals re-scored once, and what belongs beside them.

    Args:
        held: the proposals.
        fitted: the re-scorer.
        asked: what it needs.

    Raises:
        UsageError: if it was fitted on these pictures, or others of their videos, and that is not allowed.
        InputError: if what it is given does not fit.
    """
    from roadaware.corner_cases.fitted import check_held_out
    from roadaware.corner_cases.known_boxes import ask_known
    from roadaware.corner_cases.rescoring import rescored

    asked.check(fitted)
    by_picture = fitted.by == "memory"
    scenes, root = _set_of(asked, pictures=by_picture)
    shared = None if scenes is None else _shared_videos(held, fitted, scenes, allowed=asked.allow_leak)
    refused: dict[str, int] = {}
    if scenes is None or not by_picture:
        with console.working("asking for energies"):
            shares, met, prints = ask_known(held, saved(asked.detections or Path()), fitted)
    else:
        from roadaware.tasks.unknown_memory import ask_crops

        with console.progress("looking at proposals") as seen:
            shares, met, prints, refused = ask_crops(
                held, scenes, root, _looker(fitted, asked), fitted, allow_leak=asked.allow_leak, progress=seen
            )
    leaked = check_held_out(fitted, prints, allowed=asked.allow_leak)
    facts = {
        "by": fitted.by,
        "fit": fitted.digest,
        "fitted_on": dict(fitted.about),
        "pictures": len(prints),
        "met": int(met.sum()),
        "neutral": int((met == 0).sum()),
        "leaked": leaked,
        "shared_videos": shared,
        "refused": refused,
    }
    noted = {name: facts[name] for name in ("fit", "fitted_on", "leaked", "shared_videos", "neutral")}
    return rescored(held, shares, fitted.by, combine=asked.combine, facts=noted), facts


def _set_of(asked: Asked, *, pictures: bool) -> tuple[Scenes | None, Path]:
    """The set of the proposals, if it is told, and the folder of its pictures, if they are wanted."""
    if asked.dataset is None:
        return None, Path()
    return pictured(asked.dataset, asked.pictures) if pictures else (_scenes_at(asked.dataset), Path())


def _shared_videos(held: Predictions, fitted: Fitted, scenes: Scenes, *, allowed: bool) -> int | None:
    """From how many videos of the proposals the re-scorer has pictures; None where that is not known.

    Raises:
        UsageError: if there are some and that is not allowed.
    """
    import polars as pl

    from roadaware.corner_cases.fitted import check_apart, video_prints

    prints = video_prints(scenes, held.boxes["video"].cast(pl.String).unique())
    if prints is None or (len(prints) and not len(fitted.videos)):
        return None
    return check_apart(fitted, prints, allowed=allowed)


def _looker(fitted: Fitted, asked: Asked) -> Looker:
    """What the bank was made with.

    Raises:
        UsageError: if a folder has to be told.
    """
    from roadaware.tasks.crops import PLAIN, TRUNKS, looker_of

    name = str(fitted.asked["features"])
    if name not in (PLAIN, *TRUNKS) and asked.features is None:
        raise UsageError(f"the bank was made with a model of type {name}: give its folder with --features")
    return looker_of(asked.features or name, asked.weights, seed=int(fitted.asked["seed"]))
