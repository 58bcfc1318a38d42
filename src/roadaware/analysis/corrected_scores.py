"""What a file of predictions scores as it is, and with the mistakes undone that the whole file makes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from roadaware.analysis.doctor.corrections import TrueBoxes, collect_true_boxes, find_corrections
from roadaware.analysis.doctor.diagnosis import Diagnosis, report_suspicion
from roadaware.analysis.evaluation import corner_cases, event_inputs, events, scenes
from roadaware.analysis.evaluation.scenes import Reading, SceneRequest
from roadaware.analysis.scene_tasks import TASKS
from roadaware.errors import InputError, UsageError
from roadaware.formats.actions import label_map
from roadaware.formats.coco import CocoIndex, read_index
from roadaware.formats.coda import build_predictions_index
from roadaware.formats.raw_predictions import (
    RawPredictions,
    load_action_csv,
    load_coco_results,
    load_detection_folder,
)
from roadaware.formats.road_detections import AGENTNESS, get_label_kinds
from roadaware.scenes.tables import Scenes

CorrectedTask = Literal["road", "ucf24", "actions", "corner-cases"]
CORRECTED_TASKS: tuple[str, ...] = get_args(CorrectedTask)


@dataclass(frozen=True)
class Source:
    """A file of predictions and what it is judged against.

    Args:
        task: what is asked.
        truth: the annotations.
        predictions: per-frame pickles or COCO results of road events, AVA's csv of actions, COCO results of corner
            cases.
        images: for COCO results of road events, the annotations that list images and categories.
        labels: for actions, the label map.
        size_px: width and height of the images that corners in detection files are pixels of.
    """

    task: CorrectedTask
    truth: Path
    predictions: Path
    images: Path | None = None
    labels: Path | None = None
    size_px: tuple[int, int] = (682, 512)


@dataclass(frozen=True)
class CorrectedScores:
    """What was found.

    Args:
        findings: what is odd, then the mistakes in the order in which they are undone.
        metric: the name of the score.
        before: of the file as it is, from 0 to 1; None where it cannot be judged.
        after: of the corrected file; None where nothing was corrected, or it cannot be judged either.
        reason: why a file cannot be judged.
        corrected: whether mistakes of the whole file were undone.
    """

    findings: tuple[Diagnosis, ...] = ()
    metric: str = ""
    before: float | None = None
    after: float | None = None
    reason: str = ""
    corrected: bool = False


def correct_file(source: Source, output: Path | None = None) -> CorrectedScores:
    """Find the mistakes that a whole file makes, and judge it with and without them.

    Args:
        source: the file, and its ground truth.
        output: where the corrected file (or folder) goes; a temporary place where None.

    Raises:
        UsageError: if the predictions are in a form that is not corrected.
        InputError: if ground truth or predictions cannot be read at all.
        DiskError: if `output` cannot be written.
    """
    raw, truth, odd = _open(source)
    metric, before, reason = _score(source, source.predictions)
    with tempfile.TemporaryDirectory(prefix="roadaware-") as folder:
        trials = count()
        best: list[tuple[float, str, float | None, str]] = [(_rank(before), metric, before, reason)]

        def accept(rows: RawPredictions) -> bool:
            """Whether rows score no less than before."""
            place = Path(folder) / str(next(trials)) / source.predictions.name
            place.parent.mkdir()
            rows.write(rows, place)
            named, value, failed = _score(source, place)
            if _rank(value) < best[-1][0]:
                return False
            best.append((_rank(value), named or metric, value, failed))
            return True

        corrections, corrected = find_corrections(raw, truth, accept)
    rank, named, after, failed = best[-1]
    findings = [*odd]
    if before is None:
        findings.append(
            Diagnosis(
                "unread", "wrong", "The file cannot be judged as it is.", reason, "Correct what it names."
            )
        )
    if not corrections or (rank <= max(_rank(before), 0.0) and metric != "corner_ar"):
        return CorrectedScores(tuple(findings), metric, before, None, reason)
    if output is not None:
        corrected.write(corrected, output)
    findings = [*odd, *(each.finding for each in corrections)]
    return CorrectedScores(tuple(findings), named, before, after, failed or reason, corrected=True)


def _rank(value: float | None) -> float:
    """A score by which files are ordered: one that cannot be judged comes last."""
    return -1.0 if value is None else value


def _open(source: Source) -> tuple[RawPredictions, TrueBoxes, list[Diagnosis]]:
    """The rows of a file as they stand, the true boxes in its words, and what is odd before anything is compared."""
    path = source.predictions
    if source.task == "actions":
        known = scenes.open_truth(TASKS["actions"], source.truth, Reading(labels=source.labels))
        if path.is_dir():
            raise UsageError(f"{path} is a folder; rows of a csv of actions are corrected, not tables")
        first = int(known.meta.notes.get("first_frame") or 0)
        ids = dict(enumerate(label_map(known).ids))
        sizes = {} if known.meta.notes.get("unit_pictures") else _collect_sizes(known)
        return load_action_csv(path, sizes, first), collect_true_boxes(known, numbers=("action", ids)), []
    if source.task == "corner-cases":
        known = corner_cases.open_truth(source.truth, None)
        if path.is_dir():
            raise UsageError(f"{path} is a folder; COCO results are corrected, not tables")
        index = build_predictions_index(known, {})
        raw = load_coco_results(path, index, _collect_sizes(known), agnostic=True)
        return raw, collect_true_boxes(known, images=index.ids), _find_strange_images(raw, index)
    known = event_inputs.open_truth(source.truth, source.task)
    form = event_inputs.detect_form(path)
    if form == "detections":
        kinds = get_label_kinds(known, None)
        columns = [kind for kind in kinds.classes if kind != AGENTNESS] if kinds is not None else []
        raw = load_detection_folder(path, _collect_sizes(known), source.size_px)
        return raw, collect_true_boxes(known, columns=columns), []
    if form != "coco":
        raise UsageError(
            f"{path} holds {form}; detections in per-frame pickles and COCO results are corrected. Judge others "
            f"with `evaluate {source.task}`"
        )
    if source.images is None:
        raise UsageError(
            f"{path} has numbers for images and categories: say --images FILE, the COCO annotations"
        )
    index = read_index(source.images)
    if not {str(v) for v in known.videos["video"].to_list()} & {video for video, _ in index.images.values()}:
        index = read_index(source.images, by="folders")
    vocabularies = known.meta.vocabularies
    kind = next((kind for kind, labels in vocabularies.items() if set(index.labels) <= set(labels)), "agent")
    raw = load_coco_results(path, index, _collect_sizes(known), agnostic=False)
    odd = _find_strange_images(raw, index)
    if kind not in vocabularies:
        return raw, collect_true_boxes(known, images=index.ids), odd
    by_name = {name: number for number, name in index.categories.items()}
    numbers = {n: by_name[name] for n, name in enumerate(vocabularies[kind]) if name in by_name}
    return raw, collect_true_boxes(known, images=index.ids, numbers=(kind, numbers)), odd


def _find_strange_images(raw: RawPredictions, index: CocoIndex) -> list[Diagnosis]:
    """Rows about images that nobody lists, which no score sees."""
    strange = [image for image in raw.frame.tolist() if image not in index.images]
    if not strange:
        return []
    says = f"{len(strange):,} of {len(raw.frame):,} results are of images that are not listed; they are left out."
    return report_suspicion(
        "strange_images", says, f"image_id {strange[0]}", "Number images as their list does."
    )


def _collect_sizes(known: Scenes) -> Mapping[str, tuple[float, float]]:
    """Video to width and height, of those that say."""
    if not {"width_px", "height_px"} <= set(known.videos.columns):
        return {}
    table = known.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px").drop_nulls()
    return {video: (float(width), float(height)) for video, width, height in table.iter_rows()}


def _score(source: Source, path: Path) -> tuple[str, float | None, str]:
    """Name and value of the main score of a file, and why there is none."""
    try:
        if source.task == "actions":
            run = scenes.evaluate_scene_files(
                TASKS["actions"], source.truth, path, SceneRequest(), Reading(labels=source.labels)
            )
            return _pick(run.result.summary, "map@0.5")
        if source.task == "corner-cases":
            routing = corner_cases.Routing(agnostic=True)
            return _pick(
                corner_cases.evaluate_corner_files(
                    source.truth, None, path, routing, SceneRequest()
                ).result.summary,
                "corner_ar",
            )
        request = events.EventRequest(
            source.task, frame_thresholds=("0.5",), only="frame", images=source.images, size_px=source.size_px
        )
        return _average_kinds(events.evaluate_event_files(source.truth, [path], request).summary)
    except InputError as error:
        return "", None, error.message


def _pick(summary: pl.DataFrame, metric: str) -> tuple[str, float | None, str]:
    row = summary.filter(pl.col("metric") == metric)
    value: Any = row["value"][0] if len(row) else None
    return (
        metric,
        None if value is None else float(value),
        "" if value is not None else f"there is no {metric}",
    )


def _average_kinds(summary: pl.DataFrame) -> tuple[str, float | None, str]:
    """Frame-mAP at 0.5, the mean over kinds of classes; of agentness where there are no classes."""
    rows = summary.filter(pl.col("metric").str.starts_with("frame_map@0.5:"), pl.col("group").is_null())
    rows = rows.drop_nulls("value")
    classes = rows.filter(~pl.col("kind").cast(pl.String).is_in([AGENTNESS, "av_action"]))
    value: Any = (classes if len(classes) else rows)["value"].mean()
    metric = "frame_map@0.5" if len(classes) else f"frame_map@0.5:{AGENTNESS}"
    return metric, None if value is None else float(value), "" if value is not None else "nothing is judged"
