"""What a file of predictions scores as it is, and with the mistakes undone that the whole file makes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from roadaware.analysis.doctor import Extraction
from roadaware.analysis.doctor.corrections import TrueBoxes, collect_true_boxes, find_corrections
from roadaware.analysis.doctor.diagnosis import Diagnosis, report_suspicion
from roadaware.analysis.doctor.documents import FORMS, correct_content
from roadaware.analysis.doctor.pedestrian_files import ScoredSamples, correct_samples
from roadaware.analysis.evaluation import corner_cases, event_inputs, events, pedestrians, scenes
from roadaware.analysis.evaluation.scenes import Reading, SceneRequest
from roadaware.analysis.scene_tasks import TASKS, SceneTask
from roadaware.datasets import loading
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.errors import InputError, UsageError
from roadaware.formats.actions import label_map
from roadaware.formats.coco import CocoIndex
from roadaware.formats.coda import build_predictions_index
from roadaware.formats.mot import read_tracks
from roadaware.formats.raw_predictions import (
    RawPredictions,
    load_action_csv,
    load_coco_results,
    load_detection_folder,
    load_track_texts,
)
from roadaware.formats.road_detections import AGENTNESS, get_label_kinds
from roadaware.formats.score_tables import read_numbers, read_raw_samples
from roadaware.io.csv import format_csv, read_cells
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.metrics.pedestrians import Task, evaluate_samples
from roadaware.metrics.tracking import evaluate_tracks
from roadaware.scenes.store import is_saved
from roadaware.scenes.tables import Scenes

CorrectedTask = Literal[
    "road", "ucf24", "actions", "corner-cases", "relations", "grounding", "sound", "tracking"
]
CORRECTED_TASKS: tuple[str, ...] = get_args(CorrectedTask)
_METRICS = {"actions": "map@0.5", "relations": "map", "grounding": "m_viou", "sound": "ciou"}
"""The score by which files of a task are compared."""


@dataclass(frozen=True)
class Source:
    """A file of predictions and what it is judged against.

    Args:
        task: what is asked.
        truth: the annotations.
        predictions: per-frame pickles or COCO results of road events, AVA's csv of actions, COCO results of corner
            cases, VidVRD's results of relations, JSON of sentences as TubeDETR or HC-STVG's evaluation
            have it, maps of sounds, MOT text of trackers (a file, or a folder of `VIDEO.txt`).
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
        beside: another score, with its values before and after.
    """

    findings: tuple[Diagnosis, ...] = ()
    metric: str = ""
    before: float | None = None
    after: float | None = None
    reason: str = ""
    corrected: bool = False
    beside: tuple[str, float | None, float | None] | None = None


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
    if source.task in FORMS:
        return _correct_document(source, output)
    beside: dict[str, float] = {}
    if source.task == "tracking":
        known = _open_tracked(source.truth)
        raw = load_track_texts(
            _list_track_files(source.predictions, known),
            _collect_sizes(known),
            folder=source.predictions.is_dir(),
        )
        truth, odd = collect_true_boxes(known), list[Diagnosis]()
        score = partial(_score_tracks, known, beside)
    else:
        raw, truth, odd = _open(source)
        score = partial(_score, source)
    metric, before, reason = score(source.predictions)
    with tempfile.TemporaryDirectory(prefix="roadaware-") as folder:
        trials = count()
        best: list[tuple[float, str, float | None, str]] = [(_rank(before), metric, before, reason)]
        motas = [beside.get("mota")]

        def accept(rows: RawPredictions) -> bool:
            """Whether rows score no less than before."""
            place = Path(folder) / str(next(trials)) / source.predictions.name
            place.parent.mkdir()
            rows.write(rows, place)
            named, value, failed = score(place)
            if _rank(value) < best[-1][0]:
                return False
            motas.append(beside.get("mota"))
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
    more = ("mota", motas[0], motas[-1]) if source.task == "tracking" else None
    return CorrectedScores(
        tuple(findings), named, before, after, failed or reason, corrected=True, beside=more
    )


def _open_tracked(path: Path) -> Scenes:
    """Ground truth with tracks: saved tables, or a dataset that is known by its content."""
    loading.require_path(path)
    known = (
        loading.open_saved_scenes(path)
        if is_saved(path)
        else loading.read_release(detect_dataset_format(path), path)
    )
    if known.tubes.is_empty():
        raise InputError(
            "the ground truth has no tracks", where=str(path), hint="Tracks are judged by tracks."
        )
    return known


def _list_track_files(path: Path, known: Scenes) -> dict[str, Path]:
    """Video to its MOT text, by the file's name.

    Raises:
        UsageError: if it is no text of MOT.
    """
    loading.require_path(path)
    files = {file.stem: file for file in sorted(path.glob("*.txt"))} if path.is_dir() else {path.stem: path}
    if not files or (path.is_file() and path.suffix.lower() != ".txt"):
        raise UsageError(
            f"{path} is no MOT text of a tracker: a file, or a folder of VIDEO.txt, is corrected"
        )
    # A single file is of a single video, whatever it is called.
    if len(files) == len(known.videos) == 1:
        files = {str(known.videos["video"][0]): next(iter(files.values()))}
    return files


def _score_tracks(known: Scenes, beside: dict[str, float], path: Path) -> tuple[str, float | None, str]:
    """HOTA of MOT text, and MOTA into `beside`; or why there is none."""
    beside.clear()
    try:
        found = read_tracks(_list_track_files(path, known), known)
        if found.boxes.is_empty():
            reasons = found.rejected["reason"].head(1).to_list()
            return "hota", None, f"no row can be taken: {reasons[0] if reasons else 'there is none'}"
        strangers = sorted(
            set(found.videos["video"].to_list()) - set(known.videos["video"].cast(pl.String).to_list())
        )
        if len(strangers) == len(found.videos):
            return "hota", None, f"no video is in the ground truth, such as {strangers[0]!r}"
        summary = evaluate_tracks(found, known).summary
    except InputError as error:
        return "hota", None, error.message
    mota = _pick(summary, "mota")[1]
    if mota is not None:
        beside["mota"] = mota
    return _pick(summary, "hota")


def _correct_document(source: Source, output: Path | None) -> CorrectedScores:
    """The same of a file that is no list of boxes: relations, sentences, maps of sounds."""
    form, task = FORMS[source.task], TASKS[source.task]
    known = scenes.open_truth(task, source.truth, Reading(labels=source.labels))
    content = form.load(source.predictions)
    with tempfile.TemporaryDirectory(prefix="roadaware-") as folder:
        # Judged against tables that are read once, and not anew in every trial.
        trials = count()
        rated: dict[int, tuple[str, float | None, str]] = {}

        def judge(held: Any) -> float:
            place = Path(folder) / str(next(trials)) / source.predictions.name
            place.parent.mkdir()
            form.write(held, place)
            rated[id(held)] = _judge_document(task, known, place)
            return _rank(rated[id(held)][1])

        metric, before, reason = _judge_document(task, known, source.predictions)
        findings, corrected = correct_content(form, content, known, judge, _rank(before))
        named, after, failed = rated[id(corrected)] if findings else (metric, before, reason)
    if not findings or _rank(after) <= max(_rank(before), 0.0):
        odd = [
            Diagnosis(
                "unread", "wrong", "The file cannot be judged as it is.", reason, "Correct what it names."
            )
        ]
        return CorrectedScores(tuple(odd if before is None else []), metric, before, None, reason)
    if output is not None:
        form.write(corrected, output)
    return CorrectedScores(tuple(findings), named, before, after, failed or reason, corrected=True)


def _judge_document(task: SceneTask, known: Scenes, path: Path) -> tuple[str, float | None, str]:
    metric = _METRICS[task.name]
    try:
        predictions = scenes.open_predictions(task, path, known)
        inputs = scenes.check_inputs(task, known, predictions, path)
        return _pick(scenes.evaluate_scene_inputs(task, inputs, SceneRequest()).result.summary, metric)
    except InputError as error:
        return metric, None, error.message


def correct_sample_files(
    scores: Path,
    samples: Path,
    task: Task,
    extraction: Extraction | None = None,
    output: Path | None = None,
) -> CorrectedScores:
    """Find the mistakes of pedestrian scores and their samples, and judge both with and without them.

    Args:
        scores: csv or Parquet, a row of numbers for each sample.
        samples: their samples.
        task: what was asked.
        extraction: the dataset's own samples, if at hand.
        output: the folder in which corrected `scores.csv` and `samples.csv` go; nowhere where None.

    Raises:
        InputError: if a file cannot be read at all.
        DiskError: if `output` cannot be written.
    """
    values, _ = read_numbers(scores)
    held = ScoredSamples(values, read_raw_samples(samples))
    metric = "auc" if task == "action" else "balanced_accuracy"
    found: dict[int, tuple[float | None, str]] = {}
    with tempfile.TemporaryDirectory(prefix="roadaware-") as folder:

        def judge(rows: ScoredSamples) -> float:
            _write_samples(rows, samples, Path(folder))
            try:
                matched = pedestrians.match_file(
                    Path(folder) / "scores.csv", Path(folder) / "samples.csv", task
                )
                config = pedestrians.get_config("default", task)
                result = evaluate_samples(matched.state, config, n_clipped=matched.clipped)
                found[id(rows)] = _pick(result.summary, metric)[1:]
            except InputError as error:
                found[id(rows)] = (None, error.message)
            return _rank(found[id(rows)][0])

        undone, odd, corrected = correct_samples(held, task, extraction, judge)
        (before, reason), (after, failed) = found[id(held)], found[id(corrected)]
        if not undone or _rank(after) <= max(_rank(before), 0.0):
            return CorrectedScores((*undone, *odd), metric, before, None, reason)
        if output is not None:
            make_folder(output)
            _write_samples(corrected, samples, output)
    return CorrectedScores((*undone, *odd), metric, before, after, failed or reason, corrected=True)


def _write_samples(held: ScoredSamples, samples: Path, folder: Path) -> None:
    """`scores.csv` and `samples.csv`, the latter with every column of the file that was given."""
    columns = {f"c{k}": held.values[:, k] for k in range(held.values.shape[1])}
    write_atomically(folder / "scores.csv", format_csv(pl.DataFrame(columns), header=False).encode())
    rows = [cells for _, cells in read_cells(samples, header=True)]
    table = pl.DataFrame(rows[1:], schema=[*rows[0]], orient="row")
    changed = {"truth": held.samples.truth, "tte_frames": held.samples.tte_frames}
    texts = {
        name: pl.Series([f"{value:.10g}" for value in values.tolist()])
        for name, values in changed.items()
        if name in table.columns
    }
    write_atomically(folder / "samples.csv", format_csv(table.with_columns(**texts)).encode())


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
    task = _check_event_task(source.task)
    known = event_inputs.open_truth(source.truth, task)
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
    index = event_inputs.read_image_index(source.images, known)
    vocabularies = known.meta.vocabularies
    kind = next((kind for kind, labels in vocabularies.items() if set(index.labels) <= set(labels)), "agent")
    raw = load_coco_results(path, index, _collect_sizes(known), agnostic=False)
    odd = _find_strange_images(raw, index)
    if kind not in vocabularies:
        return raw, collect_true_boxes(known, images=index.ids), odd
    by_name = {name: number for number, name in index.categories.items()}
    numbers = {n: by_name[name] for n, name in enumerate(vocabularies[kind]) if name in by_name}
    return raw, collect_true_boxes(known, images=index.ids, numbers=(kind, numbers)), odd


def _check_event_task(task: CorrectedTask) -> Literal["road", "ucf24"]:
    """A task of road events."""
    if task not in ("road", "ucf24"):
        raise ValueError(f"{task} is no task of road events")
    return task


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
            _check_event_task(source.task),
            frame_thresholds=("0.5",),
            only="frame",
            images=source.images,
            size_px=source.size_px,
        )
        # Frame-mAP at 0.5, the mean over kinds of classes; of agentness where there are no classes
        summary = events.evaluate_event_files(source.truth, [path], request).summary
        rows = summary.filter(pl.col("metric").str.starts_with("frame_map@0.5:"), pl.col("group").is_null())
        rows = rows.drop_nulls("value")
        classes = rows.filter(~pl.col("kind").cast(pl.String).is_in([AGENTNESS, "av_action"]))
        value: Any = (classes if len(classes) else rows)["value"].mean()
        metric = "frame_map@0.5" if len(classes) else f"frame_map@0.5:{AGENTNESS}"
        return (
            metric,
            None if value is None else float(value),
            "" if value is not None else "nothing is judged",
        )
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
