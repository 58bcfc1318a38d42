"""`roadaware evaluate corner-cases`: truth and predictions, the evaluation, and its tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.analysis.doctor.data import check_overlap
from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.analysis.scene_tasks import CORNER_CASES, get_config, set_fields
from roadaware.cli import console, datasets, results
from roadaware.cli.options import USUAL, Common, Outcome, Switch
from roadaware.cli.results import AS_USUAL, NOWHERE, FieldScoring, Kept
from roadaware.cli.scenes import Given, count_warnings, run_scene_task, write_scene_run
from roadaware.errors import InputError, UsageError
from roadaware.formats.coco import build_coco_index, read_json_document, read_results
from roadaware.formats.coda import IDS, build_predictions_index, read_corner_cases
from roadaware.protocols.coda import (
    OWN,
    TRAINING_SETS,
    infer_version,
    label_claims,
    label_truth,
    load_training_set,
    map_own_categories,
)
from roadaware.protocols.printed_coda import select_printed
from roadaware.reports.corner_text import format_corner_run
from roadaware.scenes.store import open_scenes

if TYPE_CHECKING:
    from roadaware.protocols.coda import TrainingSet, Version
    from roadaware.scenes.tables import Predictions, Scenes

# Truth and predictions about corner cases as the commands take them: COCO files, saved tables, synthetic scenes.

Classes = Literal["base", "2022"]


@dataclass(frozen=True)
class Routing:
    """What the predictions' classes mean, and which classes of the truth are common.

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

    @property
    def answers(self) -> str | None:
        """What the predictions' classes are those of; None where they are left aside."""
        return None if self.agnostic else self.trained_on

    def check(self) -> None:
        """Know what the predictions mean.

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


def open_corner_inputs(
    truth: Path, corner: Path | None, predictions: Path, routing: Routing
) -> tuple[Given, Version]:
    """Truth and predictions with what is common and what novel, and the version of the separation.

    Args:
        truth: COCO annotations, tables that `read -o` saved, or synthetic scenes.
        corner: COCO annotations of the corner cases, where they are in a file of their own.
        predictions: COCO results, or saved Predictions.
        routing: what their classes mean.

    Raises:
        UsageError: if an option does not fit.
        InputError: if truth or predictions cannot be read, or are about something else.
    """

    scenes = open_truth(truth, corner)
    claims = _claims(predictions, scenes, routing)
    version = routing.classes or ("2022" if corner is not None else infer_version(scenes))
    findings = {
        **count_refusals(scenes, "the truth"),
        **count_refusals(claims, predictions.name),
        **count_warnings(claims),
    }
    lacking = check_overlap(claims, scenes, where=str(predictions))
    claims = label_claims(claims, routing.answers, version, merged=routing.merged)
    scenes = label_truth(scenes, version, merged=routing.merged)
    if routing.risk:
        from roadaware.metrics.corner_cases.risk import add_blocking

        scenes = add_blocking(scenes)
    return Given(scenes, claims, findings, list_warnings(scenes), lacking), version


def open_truth(path: Path, corner: Path | None) -> Scenes:
    """Annotations about corner cases.

    Raises:
        UsageError: if a second file is given beside tables.
        InputError: if they cannot be read.
    """

    for each in (path, corner):
        if each is not None and not each.exists():
            raise InputError("there is no such file or folder", where=str(each), hint="Check the path.")
    tables = datasets.is_saved(path) or datasets.is_made_up(path)
    if corner is not None and tables:
        raise UsageError(f"--corner goes with a COCO file; {path} holds tables")
    if tables:
        return (
            datasets.open_dataset(datasets.MADE_UP, path) if datasets.is_made_up(path) else _open_saved(path)
        )
    with console.log_step(f"reading {path}"):
        return read_corner_cases(path, corner)


def _open_saved(path: Path) -> Scenes:

    with console.log_step(f"opening {path}"):
        return open_scenes(path)


def _claims(path: Path, scenes: Scenes, routing: Routing) -> Predictions:

    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    if datasets.is_saved(path):
        from roadaware.scenes.store import open_predictions

        with console.log_step(f"opening {path}"):
            return open_predictions(path)
    categories = {} if routing.agnostic else _categories(scenes, routing)
    with console.log_step(f"reading {path}"):
        return read_results(path, build_predictions_index(scenes, categories), agnostic=routing.agnostic)


def _categories(scenes: Scenes, routing: Routing) -> dict[int, str]:
    """What the numbers in results stand for."""

    if routing.categories is not None:
        where = str(routing.categories)
        content: Any = read_json_document(routing.categories)
        listed = content.get("categories") if isinstance(content, dict) else content
        return dict(build_coco_index({"images": [], "categories": listed}, where).categories)
    if routing.trained_on == OWN:
        return map_own_categories(scenes.meta.notes.get(IDS, {}))
    return _training(routing).categories


def _training(routing: Routing) -> TrainingSet:

    return load_training_set(routing.trained_on or "")


_TRUTH = "The annotations: a COCO file, tables that `read -o` saved, or synthetic scenes."
_CORNER = "COCO annotations of the corner cases, where they are in a file of their own (CODA 2022)."
_PREDICTIONS = "The predictions: COCO results (.json), or saved Predictions."
_TRAINED_ON = (
    "What the detector learnt on, which tells what its classes answer: soda10m, bdd100k, waymo, coda (the "
    "classes of the truth), or a csv with id, label, common and novel."
)
_AGNOSTIC = "The predictions are proposals without classes."
_CATEGORIES = "A COCO file whose categories tell what the numbers in the results stand for."
_CLASSES = (
    "Which classes are common: base (buses are novel) or 2022 (buses are common). [default: by the ground "
    "truth]"
)

Truth = Annotated[Path, Parameter(help=_TRUTH)]
Predicted = Annotated[Path, Parameter(help=_PREDICTIONS)]


@Parameter(name="*")
@dataclass(frozen=True)
class Claimed:
    """What the predictions' classes mean."""

    trained_on: Annotated[str | None, Parameter(help=_TRAINED_ON)] = None
    agnostic: Annotated[bool, Parameter(help=_AGNOSTIC), Switch] = False
    categories: Annotated[Path | None, Parameter(help=_CATEGORIES)] = None
    classes: Annotated[Classes | None, Parameter(help=_CLASSES)] = None


ANYTHING = Claimed()


def corner_cases(
    *,
    truth: Truth,
    corner: Annotated[Path | None, Parameter(help=_CORNER)] = None,
    predictions: Predicted,
    claimed: Claimed = ANYTHING,
    judging: FieldScoring = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score detectors on corner cases, as on CODA: average recall of corner, common and novel objects.

    Needs COCO annotations and COCO results. --trained-on says what the detector's classes answer, --agnostic
    that it has none, as a region proposal network. --config is `default`, `reference` (crowds alone are
    ignored, as pycocotools does), `coda2022` (the four numbers of the challenge) or `coco` (all classes, AP
    too). What the whole image and random boxes would score stands beside every number. --by slices by period,
    weather, domain, density, or another column of the images.

    For example:

        roadaware evaluate corner-cases --truth corner_case.json --predictions results.json \\
            --trained-on soda10m --resamples 1000 --by weather domain -o runs/mine

        roadaware evaluate corner-cases --truth instance_val_common.json \\
            --corner instance_val_agnostic_corner.json --predictions results.json \\
            --trained-on coda --config coda2022 --json result.json
    """

    lowest = results.parse_bars(judging.fail_under, results.FRACTIONS)
    config = set_fields(CORNER_CASES, get_config(CORNER_CASES, judging.config), judging.fields)
    routing = Routing(
        claimed.trained_on,
        claimed.agnostic,
        claimed.categories,
        claimed.classes or ("2022" if config.total else None),
        merged=not config.total,
        risk=config.risk == "blocking",
    )
    routing.check()
    given, version = open_corner_inputs(truth, corner, predictions, routing)
    run = run_scene_task(CORNER_CASES, given, config, judging, predictions, details=False)
    run = replace(run, facts={**run.facts, **_beside(given.scenes, routing, version)})
    return write_scene_run(run, kept, lowest, strict=judging.strict, text=format_corner_run, odd=given.notes)


def _beside(scenes: Scenes, routing: Routing, version: str) -> dict[str, Any]:
    """How predictions were routed, and the printed rows that may stand beside, JSON-ready."""

    known = routing.trained_on if routing.trained_on in TRAINING_SETS else None
    domains = set(scenes.videos["domain"]) if "domain" in scenes.videos.columns else {None}
    told = "proposals without classes" if routing.agnostic else f"classes of {routing.trained_on}"
    common = f"{version}, {'vehicles merged' if routing.merged else 'each vehicle a class of its own'}"
    return {
        "routing": {"predictions are": told, "common classes as in": common},
        "printed": select_printed(known, classes=not routing.agnostic, domains=domains)
        if routing.merged
        else [],
    }
