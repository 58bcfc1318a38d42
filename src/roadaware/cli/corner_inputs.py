"""Truth and claims about corner cases as the commands take them: COCO files, saved tables, made-up scenes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roadaware.cli import console, datasets
from roadaware.cli.event_findings import oddities, refused
from roadaware.cli.scene_inputs import Given, odd
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.protocols.coda import TrainingSet, Version
    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes

Classes = Literal["base", "2022"]


@dataclass(frozen=True)
class Routing:
    """What the claims' classes mean, and which classes of the truth are common.

    Args:
        trained_on: a training set, `coda` for the truth's own classes, or a csv; None for none of them.
        agnostic: whether classes are left aside.
        categories: a COCO file whose categories tell what the numbers in results stand for.
        classes: which classes are common; told from the truth where None.
        merged: whether all common vehicles are one class.
        risk: whether it matters which objects block a path of the vehicle.
    """

    trained_on: str | None
    agnostic: bool
    categories: Path | None
    classes: Classes | None
    merged: bool
    risk: bool = False

    def check(self) -> None:
        """Know what the claims mean.

        Raises:
            UsageError: if nothing or too much is said.
        """
        if self.agnostic and self.categories is not None:
            raise UsageError("--agnostic leaves classes aside; leave --categories away")
        if not self.agnostic and self.trained_on is None:
            from roadaware.protocols.coda import OWN, TRAINING_SETS

            raise UsageError(
                f"say what the detector learnt on, --trained-on {'|'.join(TRAINING_SETS)}, or {OWN} for the "
                "classes of the truth; or --agnostic for proposals without classes"
            )


def opened(truth: Path, corner: Path | None, predictions: Path, routing: Routing) -> tuple[Given, Version]:
    """Truth and claims with what is common and what novel, and the version of the separation.

    Args:
        truth: COCO annotations, tables that `read -o` saved, or made-up scenes.
        corner: COCO annotations of the corner cases, where they are in a file of their own.
        predictions: COCO results, or saved Predictions.
        routing: what their classes mean.

    Raises:
        UsageError: if an option does not fit.
        InputError: if truth or claims cannot be read, or are about something else.
    """
    from roadaware.analysis.doctor.overlap import check_overlap
    from roadaware.protocols.coda import separated

    scenes = open_truth(truth, corner)
    claims = _claims(predictions, scenes, routing)
    version = routing.classes or version_of(scenes, corner)
    findings = {**refused(scenes, "the truth"), **refused(claims, predictions.name), **odd(claims)}
    lacking = check_overlap(claims, scenes, where=str(predictions))
    claims = _routed(claims, routing, version)
    scenes = separated(scenes, version, merged=routing.merged)
    if routing.risk:
        from roadaware.metrics.corner_cases.risk import with_blocking

        scenes = with_blocking(scenes)
    return Given(scenes, claims, findings, oddities(scenes), lacking), version


def open_truth(path: Path, corner: Path | None) -> Scenes:
    """Annotations about corner cases.

    Raises:
        UsageError: if a second file is given beside tables.
        InputError: if they cannot be read.
    """
    from roadaware.scenes.formats.coda import read_corner_cases

    for each in (path, corner):
        if each is not None and not each.exists():
            raise InputError("there is no such file or folder", where=str(each), hint="Check the path.")
    tables = datasets.is_saved(path) or datasets.is_made_up(path)
    if corner is not None and tables:
        raise UsageError(f"--corner goes with a COCO file; {path} holds tables")
    if tables:
        return datasets.opened(datasets.MADE_UP, path) if datasets.is_made_up(path) else _saved(path)
    with console.working(f"reading {path}"):
        return read_corner_cases(path, corner)


def version_of(scenes: Scenes, corner: Path | None) -> Version:
    """Which classes are common: those of 2022 where the truth holds more than corner cases."""
    if corner is not None:
        return "2022"
    boxes = scenes.boxes
    more = "corner_case" in boxes.columns and not boxes["corner_case"].fill_null(value=True).all()
    return "2022" if more else "base"


def _saved(path: Path) -> Scenes:
    from roadaware.scenes.store import open_scenes

    with console.working(f"opening {path}"):
        return open_scenes(path)


def _claims(path: Path, scenes: Scenes, routing: Routing) -> Predictions:
    from roadaware.scenes.formats.coco import read_results
    from roadaware.scenes.formats.coda import claims_index

    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    if datasets.is_saved(path):
        from roadaware.scenes.store import open_predictions

        with console.working(f"opening {path}"):
            return open_predictions(path)
    categories = {} if routing.agnostic else _categories(scenes, routing)
    with console.working(f"reading {path}"):
        return read_results(path, claims_index(scenes, categories), agnostic=routing.agnostic)


def _categories(scenes: Scenes, routing: Routing) -> dict[int, str]:
    """What the numbers in results stand for."""
    from roadaware.protocols.coda import OWN, own_categories
    from roadaware.scenes.formats.coco_index import document, index_of
    from roadaware.scenes.formats.coda import IDS

    if routing.categories is not None:
        where = str(routing.categories)
        content: Any = document(routing.categories)
        listed = content.get("categories") if isinstance(content, dict) else content
        return dict(index_of({"images": [], "categories": listed}, where).categories)
    if routing.trained_on == OWN:
        return own_categories(scenes.meta.notes.get(IDS, {}))
    return _training(routing).categories


def _training(routing: Routing) -> TrainingSet:
    from roadaware.protocols.coda import training_set

    return training_set(routing.trained_on or "")


def _routed(claims: Predictions, routing: Routing, version: Version) -> Predictions:
    from roadaware.protocols.coda import OWN, own_classes, routed, without_classes

    if routing.agnostic:
        return without_classes(claims)
    if routing.trained_on == OWN:
        return own_classes(claims, version, merged=routing.merged)
    return routed(claims, _training(routing))
