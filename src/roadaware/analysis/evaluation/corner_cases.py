"""Detectors on corner cases: ground truth and predictions opened, labelled as common or novel, and judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roadaware.analysis.evaluation.runs import SceneRun
from roadaware.analysis.evaluation.scenes import SceneRequest, check_inputs, evaluate_scene_inputs, name_files
from roadaware.analysis.scene_tasks import CORNER_CASES
from roadaware.datasets import loading
from roadaware.datasets.detect_format import detect_reader
from roadaware.datasets.simulator import is_simulation
from roadaware.errors import InputError, UsageError
from roadaware.formats.coco import build_coco_index, read_json_document, read_results
from roadaware.formats.coda import IDS, build_predictions_index, read_corner_cases
from roadaware.metrics.corner_cases.evaluate import add_blocking
from roadaware.protocols.coda import (
    OWN,
    TRAINING_SETS,
    infer_version,
    label_trained_predictions,
    label_truth,
    load_training_set,
    map_own_categories,
    select_printed,
)
from roadaware.scenes.store import is_saved
from roadaware.steps import log_step

if TYPE_CHECKING:
    from roadaware.metrics.corner_cases.matching import CornerConfig
    from roadaware.protocols.coda import Version
    from roadaware.scenes.tables import Predictions, Scenes

Classes = Literal["base", "2022"]


@dataclass(frozen=True)
class Routing:
    """What the predictions' classes mean, and which classes of the truth are common.

    Args:
        trained_on: a training set, `coda` for the truth's own classes, or a csv; None for none of them.
        agnostic: whether classes are left aside.
        categories: a COCO file whose categories tell what the numbers in results stand for.
        classes: which classes are common; as the config or the truth tells where None.
    """

    trained_on: str | None = None
    agnostic: bool = False
    categories: Path | None = None
    classes: Classes | None = None

    def check(self) -> None:
        """Know what the predictions mean.

        Raises:
            UsageError: if nothing or too much is said.
        """
        if self.agnostic and self.categories is not None:
            raise UsageError("--agnostic leaves classes aside; leave --categories away")
        if not self.agnostic and self.trained_on is None:
            raise UsageError(
                f"say what the detector learnt on, --trained-on {'|'.join(TRAINING_SETS)}, or {OWN} for the "
                "classes of the truth; or --agnostic for proposals without classes"
            )


def evaluate_corner_files(
    truth: Path, corner: Path | None, predictions: Path, routing: Routing, request: SceneRequest
) -> SceneRun:
    """Ground truth and predictions opened and judged.

    Args:
        truth: COCO annotations, tables that `read -o` saved, or synthetic scenes.
        corner: COCO annotations of the corner cases, where they are in a file of their own.
        predictions: COCO results, or saved Predictions.
        routing: what their classes mean.
        request: how they are judged.

    Raises:
        UsageError: if an option does not fit.
        InputError: if truth or predictions cannot be read, or are about something else.
    """
    config = request.build_config(CORNER_CASES)
    routing.check()
    with name_files(predictions, truth):
        scenes = open_truth(truth, corner)
        inputs = check_inputs(
            CORNER_CASES, scenes, _open_predictions(predictions, scenes, routing), predictions
        )
        if corner is not None and routing.classes is None:
            routing = replace(routing, classes="2022")
        # How predictions were routed, and the printed rows that may stand beside, JSON-ready.
        known = routing.trained_on if routing.trained_on in TRAINING_SETS else None
        domains = set(scenes.videos["domain"]) if "domain" in scenes.videos.columns else {None}
        text = "proposals without classes" if routing.agnostic else f"classes of {routing.trained_on}"
        classes = _select_version(scenes, config, routing)
        common = f"{classes}, {'each vehicle a class of its own' if config.total else 'vehicles merged'}"
        printed = []
        if not config.total:
            printed = select_printed(known, classes=not routing.agnostic, domains=domains)
        facts = {
            **inputs.facts,
            "routing": {"predictions are": text, "common classes as in": common},
            "printed": printed,
        }
        labelled, scenes = label_both(inputs.predictions, scenes, config, routing)
        inputs = replace(inputs, predictions=labelled, scenes=scenes, facts=facts)
        return evaluate_scene_inputs(CORNER_CASES, inputs, request)


def label_both(
    predictions: Predictions, scenes: Scenes, config: CornerConfig, routing: Routing
) -> tuple[Predictions, Scenes]:
    """Both with what is common and what is novel; predictions without classes are left without.

    Args:
        predictions: boxes, with labels of the kind `corner` where they have classes.
        scenes: the ground truth.
        config: how they are judged.
        routing: what the predictions' classes mean.

    Raises:
        UsageError, InputError: if the classes cannot be told.
    """
    classes, merged = _select_version(scenes, config, routing), not config.total
    answers = None if routing.agnostic else routing.trained_on
    labelled = label_trained_predictions(predictions, answers, classes, merged=merged)
    truth = label_truth(scenes, classes, merged=merged)
    return labelled, add_blocking(truth) if config.risk == "blocking" else truth


def _select_version(scenes: Scenes, config: CornerConfig, routing: Routing) -> Version:
    """Which classes are common: as asked for, or as the config or the truth tells."""
    return routing.classes or ("2022" if config.total else infer_version(scenes))


def open_truth(path: Path, corner: Path | None) -> Scenes:
    """Annotations about corner cases.

    Raises:
        UsageError: if a second file is given beside tables.
        InputError: if they cannot be read, or every annotation was refused.
    """
    for each in (path, corner):
        if each is not None:
            loading.require_path(each)
    if corner is not None and (is_saved(path) or is_simulation(path)):
        raise UsageError(f"--corner goes with a COCO file; {path} holds tables")
    if is_simulation(path):
        return loading.open_dataset(loading.SYNTHETIC, path)
    if is_saved(path):
        return loading.open_saved_scenes(path)
    with log_step(f"reading {path}"):
        scenes = read_corner_cases(path, corner)
    if scenes.boxes.is_empty() and len(scenes.rejected):
        row = scenes.rejected.row(0, named=True)
        raise InputError(
            f"not one of its annotations can be taken ({len(scenes.rejected):,} refused); the first: "
            f"{row['item']}: {row['reason']}",
            where=str(path),
        )
    return scenes


def _open_predictions(path: Path, scenes: Scenes, routing: Routing) -> Predictions:
    loading.require_path(path)
    if is_saved(path):
        return loading.open_saved_predictions(path)
    categories: dict[int, str] = {}
    if routing.categories is not None:
        content: Any = read_json_document(routing.categories)
        listed = content.get("categories") if isinstance(content, dict) else content
        index = build_coco_index({"images": [], "categories": listed}, str(routing.categories))
        categories = dict(index.categories)
    elif routing.trained_on == OWN and not routing.agnostic:
        categories = map_own_categories(scenes.meta.notes.get(IDS, {}))
    elif not routing.agnostic:
        categories = load_training_set(routing.trained_on or "").categories
    with log_step(f"reading {path}"):
        return read_results(path, build_predictions_index(scenes, categories), agnostic=routing.agnostic)


def open_labelled_truth(path: Path, classes: Version | None) -> Scenes:
    """A COCO file, saved tables or synthetic scenes, with what is common and what novel."""
    scenes = open_truth(path, None)
    return label_truth(scenes, classes or infer_version(scenes))


def open_labelled(path: Path, classes: Version | None = None) -> Scenes:
    """The same, or a release with sweeps; of which no image is needed."""
    if _is_annotated(path):
        return open_labelled_truth(path, classes)
    return label_truth(loading.open_dataset(detect_reader(path), path), classes or "base")


def open_image_set(path: Path, images: Path | None, classes: Version | None = None) -> tuple[Scenes, Path]:
    """The same with the folder that the paths of its images start at.

    Raises:
        UsageError: if the folder has to be told.
        InputError: if the set cannot be read, or there is no such folder.
    """
    from roadaware.tasks.unknown_memory import add_image_paths  # with SciPy, which a help need not wait for

    root = images or (path if path.is_dir() else path.parent)
    if not root.is_dir():
        raise InputError("there is no such folder of images", where=str(root))
    if is_saved(path) and images is None:
        raise UsageError(f"{path} holds tables alone: say where their images are with --media")
    scenes = open_labelled(path, classes)
    return (add_image_paths(scenes) if _is_annotated(path) else scenes), root


def _is_annotated(path: Path) -> bool:
    """Whether it is a file, saved tables or synthetic scenes, and no release with sweeps."""
    return path.is_file() or is_saved(path) or is_simulation(path)
