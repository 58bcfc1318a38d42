"""`roadaware doctor`: why is it 0? The machine, a dataset's folder, or somebody's scores."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter

from roadaware.analysis.corrected_scores import (
    CORRECTED_TASKS,
    CorrectedScores,
    CorrectedTask,
    Source,
    correct_file,
    correct_sample_files,
)
from roadaware.analysis.doctor import Diagnosis, check_scene_folder, extract_samples
from roadaware.analysis.doctor.environment import describe_environment
from roadaware.analysis.doctor.predictions import check_predictions
from roadaware.analysis.doctor.run_folders import check_run_folder
from roadaware.analysis.doctor.videos import VideoFacts, check_video, list_videos
from roadaware.analysis.evaluation.event_inputs import NETWORK_SIZE, parse_size
from roadaware.analysis.evaluation.scenes import Reading, open_predictions, open_truth
from roadaware.analysis.scene_tasks import TASKS
from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Overwrite, Switch, TaskName
from roadaware.cli.results import Images, ImageSize
from roadaware.datasets import READERS
from roadaware.datasets.loading import open_dataset
from roadaware.errors import InputError, UsageError
from roadaware.formats.score_tables import read_raw_samples
from roadaware.io.folders import make_folder
from roadaware.reports.doctor_text import (
    format_corrections,
    format_diagnoses,
    format_environment,
    format_videos,
    list_remarks,
)
from roadaware.scenes.store import is_saved

_DATASETS = ("jaad", "pie")
_SUBJECT = (
    "environment, videos, run, pedestrians, road, ucf24, actions, relations, grounding, sound, corner-cases, tracking, or a "
    "dataset: jaad, pie, ..."
)
_PATH = "The dataset's folder or zip; of videos a video or their folder; of a run the folder that -o named."
_DATA = "DATASET=PATH, to compare names, order and truth with the dataset's own."
_TRUTH = "Of files of predictions: their ground truth, as `evaluate` takes it."
_OUT = "Write the corrected file, or folder of detections, here; for pedestrians the folder of scores.csv and samples.csv."
_STRICT = "Exit with 1 if anything is wrong or suspicious."


def doctor(
    subject: Annotated[str, Parameter(help=_SUBJECT)] = "environment",
    path: Annotated[Path | None, Parameter(help=_PATH)] = None,
    /,
    *,
    scores: Annotated[Path | None, Parameter(help="Your csv file of scores.")] = None,
    samples: Annotated[Path | None, Parameter(help="Your csv file of samples.")] = None,
    task: Annotated[TaskName, Parameter(help="What was asked of the model.")] = "action",
    data: Annotated[str | None, Parameter(help=_DATA)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    predictions: Annotated[Path | None, Parameter(help="For these: the predictions.")] = None,
    labels: Annotated[Path | None, Parameter(help="For actions: the label map.")] = None,
    images: Images = None,
    size: ImageSize = NETWORK_SIZE,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.CONVERTED] = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    overwrite: Overwrite = False,
) -> Outcome:
    """Find out why something does not work, or why a number is 0.

    Without arguments it looks at the machine: versions, whether torch, CUDA, onnxruntime, av and transformers
    work, installed models, cache, data, disk. With `videos` and a path it looks at a video or a folder of them: container,
    codec, rate (also where it varies), gaps, rotation, damaged frames, videos that are dark, white or still. With `run` and
    a folder it says whether the work in it is over and whole, and of the settings that it says. With a dataset and a path it
    looks for what is wrong with the folder: frame base, scale of boxes, splits, refused rows. With
    `pedestrians` it looks at your own scores and samples: names that do not exist, classes from 1,
    percent or logits, reversed columns, shuffled rows, seconds for frames, the wrong split or frame rate.
    With `road`, `ucf24`, `actions` or `corner-cases` it corrects a whole file of predictions and scores it before
    and after: videos named otherwise, boxes as sides, centres, y before x, shares, per cent or pixels of other
    images, frames that are late, early or seconds, scores that are logits, per cent or costs, classes that
    are numbered or ordered otherwise. --output keeps the corrected file.
    So it does with `relations` (words, durations, boxes, subject and object), `grounding` (names, spans, boxes),
    `sound` (names, maps that lie on their side, logits), `pedestrians` (AUC, or balanced accuracy, before and after) and
    `tracking` (MOT text: names or exchanged videos, frames, boxes, scores, ids that are reused or none; HOTA and MOTA).
    Where nothing is to be corrected it says what is odd beside the truth: names that differ, numbers of persons for
    scores, true persons that no box meets.

    For example:

        roadaware doctor

        roadaware doctor videos drive.mp4

        roadaware doctor run runs/road

        roadaware doctor jaad JAAD-JAAD_2.0.zip

        roadaware doctor pedestrians --scores model.csv \\
            --samples samples.csv --data jaad=JAAD-JAAD_2.0.zip

        roadaware doctor actions --truth gt.csv --labels action_list.pbtxt \\
            --predictions pred.csv

        roadaware doctor road --truth road_trainval_v1.0.json \\
            --predictions detections --output corrected

        roadaware doctor tracking --truth MOT17/train --predictions tracks.txt
    """
    if subject == "environment":
        facts = describe_environment()
        facts["remarks"] = list_remarks(facts)
        return Outcome(format_environment(facts), facts)
    if subject in ("videos", "run"):
        if path is None:
            raise UsageError(
                f"doctor {subject} needs a path: {'a video, or a folder of videos' if subject == 'videos' else 'the folder'}"
            )
        if out is not None or truth is not None or predictions is not None:
            raise UsageError(f"doctor {subject} takes a path alone: nothing is compared or corrected")
        if subject == "run":
            return _tell(check_run_folder(path), str(path), strict=strict)
        return _check_videos(path, strict=strict)
    if subject == "pedestrians":
        if out is not None and (out.is_file() or (out.is_dir() and any(out.iterdir()) and not overwrite)):
            raise UsageError(f"{out} is there already; name a new folder for corrected scores and samples")
        corrected = _correct_pedestrians(scores, samples, task, data, out)
        names = [path.name if path is not None else "" for path in (scores, samples)]
        return _report_corrections(corrected, " against ".join(names), out, strict=strict)
    if out is not None and subject not in CORRECTED_TASKS:
        raise UsageError(f"--output is for {', '.join(CORRECTED_TASKS)}: nothing is corrected of {subject!r}")
    if path is not None and (predictions is not None or truth is not None):
        raise UsageError("give the path of a dataset, or --truth and --predictions, not both")
    if path is None and subject in CORRECTED_TASKS and _is_corrected(subject, predictions):
        if truth is None or predictions is None:
            dataset = f", or the path of the dataset: doctor {subject} PATH" if subject in READERS else ""
            raise UsageError(f"doctor {subject} needs --truth TRUTH and --predictions PREDICTIONS{dataset}")
        task_name = cast(CorrectedTask, subject)
        source = Source(task_name, truth, predictions, images, labels, parse_size(size))
        _check_kind(predictions, out)
        if out is not None:
            make_folder(out.parent)
        try:
            scores_found = correct_file(source, out)
        except InputError:
            # What cannot be read row by row is told by the checks of its task, where it has any.
            if subject not in TASKS or out is not None:
                raise
        else:
            if subject in TASKS and not scores_found.corrected:
                odd = _check_predictions(subject, truth, predictions, labels)
                kept = [item for item in scores_found.findings if item.code != "unread"]
                scores_found = replace(scores_found, findings=(*kept, *odd))
            return _report_corrections(scores_found, predictions.name, out, strict=strict)
    if subject in TASKS:
        found = _check_predictions(subject, truth, predictions, labels)
        return _tell(found, predictions.name if predictions is not None else "", strict=strict)
    if subject not in READERS:
        first = ("environment", "videos", "run", "pedestrians")
        known = list(dict.fromkeys([*first, *CORRECTED_TASKS, *TASKS, *READERS]))
        near = difflib.get_close_matches(subject, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        if Path(subject).exists():
            guess = (
                " Say before the path what lies there, such as `doctor videos PATH` or `doctor jaad PATH`."
            )
        raise UsageError(f"doctor looks at {', '.join(known)}, not at {subject!r}.{guess}")
    if path is None:
        raise UsageError(f"doctor {subject} needs a path: the folder or zip of {subject.upper()}")
    return _tell(check_scene_folder(open_dataset(subject, path)), str(path), strict=strict)


def _check_videos(path: Path, *, strict: bool) -> Outcome:
    """What is the matter with each video."""
    paths = list_videos(path)
    videos: list[tuple[str, VideoFacts, list[Diagnosis]]] = []
    with console.show_progress("looking at videos") as progress:
        for done, each in enumerate(paths, 1):
            videos.append((each.name if each == path else str(each.relative_to(path)), *check_video(each)))
            progress(done, len(paths), "videos")
    lines = [
        {**asdict(facts), "path": name, "diagnoses": [asdict(item) for item in found]}
        for name, facts, found in videos
    ]
    failed = _describe_serious([item for _, _, found in videos for item in found], strict=strict)
    return Outcome(format_videos(videos), {"subject": str(path), "videos": lines}, failed)


def _is_corrected(subject: str, predictions: Path | None) -> bool:
    """Whether a whole file is corrected: of a task on scenes that is no saved table."""
    if subject not in TASKS or predictions is None:
        return subject not in TASKS
    return predictions.is_file() or (
        subject == "sound" and predictions.is_dir() and not is_saved(predictions)
    )


def _check_kind(predictions: Path, out: Path | None) -> None:
    """Refuse, before any work, an output of another kind than the predictions: a folder of detections, or a file.

    Raises:
        UsageError: naming what is due.
    """
    if out is None:
        return
    if predictions.is_dir() and (out.is_file() or (out.is_dir() and any(out.iterdir()))):
        raise UsageError(f"{out} is there already; name a new folder for the corrected detections")
    if predictions.is_file() and out.is_dir():
        raise UsageError(f"{out} is a folder; name the file to write in it")


def _describe_serious(found: Sequence[Diagnosis], *, strict: bool) -> str | None:
    serious = sum(item.severity != "note" for item in found)
    return f"--strict: {serious} findings" if strict and serious else None


def _tell(found: Sequence[Diagnosis], subject: str, *, strict: bool) -> Outcome:
    data = {"subject": subject, "diagnoses": [asdict(item) for item in found]}
    return Outcome(format_diagnoses(found, subject), data, _describe_serious(found, strict=strict))


def _report_corrections(found: CorrectedScores, subject: str, out: Path | None, *, strict: bool) -> Outcome:
    """The mistakes of a file, and what it scores with and without them."""
    verdict = _tell(found.findings, subject, strict=strict)
    score: dict[str, object] = {
        "metric": found.metric,
        "before": found.before,
        "after": found.after,
        "reason": found.reason,
    }
    if found.beside is not None:
        name, *values = found.beside
        score["beside"] = {"metric": name, "before": values[0], "after": values[1]}
    return Outcome(format_corrections(found, subject, out), {**verdict.data, "score": score}, verdict.failed)


def _correct_pedestrians(
    scores: Path | None, samples: Path | None, task: TaskName, data: str | None, out: Path | None
) -> CorrectedScores:
    if scores is None or samples is None:
        raise UsageError("doctor pedestrians needs --scores SCORES.csv and --samples SAMPLES.csv")
    extraction = None
    if data is not None:
        dataset, equals, path = data.partition("=")
        if not equals or not path or dataset not in _DATASETS:
            near = difflib.get_close_matches(dataset, _DATASETS, n=1, cutoff=0.5)
            guess = f" Did you mean {near[0]}={path}?" if near and equals else ""
            raise UsageError(
                f"--data needs DATASET=PATH, such as jaad=JAAD-JAAD_2.0.zip; got {data!r}.{guess}"
            )
        scenes = open_dataset(dataset, Path(path))
        extraction = extract_samples(scenes, dataset, task, len(read_raw_samples(samples).truth))
    return correct_sample_files(scores, samples, task, extraction, out)


def _check_predictions(
    subject: str, truth: Path | None, predictions: Path | None, labels: Path | None
) -> Sequence[Diagnosis]:
    """What is the matter with predictions on scenes; that they cannot be read at all is a finding too."""
    if truth is None or predictions is None:
        raise UsageError(f"doctor {subject} needs --truth TRUTH and --predictions PREDICTIONS")
    task = TASKS[subject]
    scenes = open_truth(task, truth, Reading(labels=labels))
    try:
        predicted = open_predictions(task, predictions, scenes)
    except InputError as error:
        where = error.where or str(predictions)
        return [Diagnosis("unread", "wrong", error.message, where, error.hint or "Correct the file.")]
    return check_predictions(subject, predicted, scenes)
