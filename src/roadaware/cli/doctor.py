"""`roadaware doctor`: why is it 0? The machine, a dataset's folder, or somebody's scores."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import datasets, text
from roadaware.cli.options import USUAL, Common, Outcome, Switch, TaskName
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    from roadaware.analysis.doctor import Diagnosis

_MARKS = {"wrong": "bad", "suspicious": "odd"}

_SUBJECT = "environment, pedestrians, actions, relations, grounding, sound, or a dataset: jaad, pie, ..."
_DATA = "DATASET=PATH, to compare names, order and truth with the dataset's own."
_TRUTH = "For actions, relations, grounding, sound: what is true, as `evaluate` takes it."
_CLAIMS = "For these: what a model claims."
_LABELS = "For actions: the label map."
_STRICT = "Exit with 1 if anything is wrong or suspicious."


def doctor(
    subject: Annotated[str, Parameter(help=_SUBJECT)] = "environment",
    path: Annotated[Path | None, Parameter(help="The dataset's folder or zip.")] = None,
    /,
    *,
    scores: Annotated[Path | None, Parameter(help="Your csv file of scores.")] = None,
    samples: Annotated[Path | None, Parameter(help="Your csv file of samples.")] = None,
    task: Annotated[TaskName, Parameter(help="What was asked of the model.")] = "action",
    data: Annotated[str | None, Parameter(help=_DATA)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    predictions: Annotated[Path | None, Parameter(help=_CLAIMS)] = None,
    labels: Annotated[Path | None, Parameter(help=_LABELS)] = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Find out why something does not work, or why a number is 0.

    Without arguments it looks at the machine: versions, whether torch, CUDA, onnxruntime, av and transformers
    work, installed models, cache, data, disk. With a dataset and a path it
    looks for what is wrong with the folder: frame base, scale of boxes, splits, refused rows. With
    `pedestrians` it looks at your own scores and samples: names that do not exist, classes from 1,
    percent or logits, reversed columns, shuffled rows, seconds for frames, the wrong split or frame rate.
    With `actions`, `relations`, `grounding` or `sound` it looks at claims beside the truth: names that
    differ, boxes of another size or written as sides, frames and labels shifted by one, numbers of persons
    for scores, subjects and objects exchanged, spans in seconds, maps that lie on their side.

    For example:

        roadaware doctor

        roadaware doctor jaad JAAD-JAAD_2.0.zip

        roadaware doctor pedestrians --scores model.csv \\
            --samples samples.csv --data jaad=JAAD-JAAD_2.0.zip

        roadaware doctor actions --truth gt.csv --labels action_list.pbtxt \\
            --predictions pred.csv
    """
    if subject == "environment":
        from roadaware.cli.environment import environment_outcome

        return environment_outcome()
    if subject == "pedestrians":
        found = _pedestrians(scores, samples, task, data)
        return _outcome(found, f"{_name(scores)} against {_name(samples)}", strict=strict)
    from roadaware.cli.scene_tasks import TASKS
    from roadaware.scenes.readers import READERS

    if subject in TASKS:
        return _outcome(_claims(subject, truth, predictions, labels), _name(predictions), strict=strict)
    if subject not in READERS:
        known = ["environment", "pedestrians", *TASKS, *READERS]
        near = difflib.get_close_matches(subject, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"doctor looks at {', '.join(known)}, not at {subject!r}.{guess}")
    if path is None:
        raise UsageError(f"doctor {subject} needs a path: the folder or zip of {subject.upper()}")
    from roadaware.analysis.doctor import examine_scenes

    return _outcome(examine_scenes(datasets.opened(subject, path)), str(path), strict=strict)


def _pedestrians(
    scores: Path | None, samples: Path | None, task: TaskName, data: str | None
) -> Sequence[Diagnosis]:
    from roadaware.analysis.doctor import examine_pedestrians
    from roadaware.scenes.scores import read_numbers, read_raw_samples

    if scores is None or samples is None:
        raise UsageError("doctor pedestrians needs --scores SCORES.csv and --samples SAMPLES.csv")
    values, _ = read_numbers(scores)
    raw = read_raw_samples(samples)
    extraction = None
    if data is not None:
        from roadaware.cli.extraction import extraction_of

        extraction = extraction_of(data, task, len(raw.truth))
    return examine_pedestrians(values, raw.truth, raw.tte_frames, raw.pedestrian, task, extraction)


def _claims(
    subject: str, truth: Path | None, predictions: Path | None, labels: Path | None
) -> Sequence[Diagnosis]:
    """What is the matter with claims about scenes; claims that cannot be read at all are a finding too."""
    from roadaware.analysis.doctor import Diagnosis
    from roadaware.analysis.doctor.claims import examine_claims
    from roadaware.cli.scene_inputs import Reading, open_claims, open_truth
    from roadaware.cli.scene_tasks import TASKS

    if truth is None or predictions is None:
        raise UsageError(f"doctor {subject} needs --truth TRUTH and --predictions CLAIMS")
    task = TASKS[subject]
    scenes = open_truth(task, truth, Reading(labels=labels))
    try:
        claims = open_claims(task, predictions, scenes)
    except InputError as error:
        where = error.where or str(predictions)
        return [Diagnosis("unread", "wrong", error.message, where, error.hint or "Mend the file.")]
    return examine_claims(subject, claims, scenes)


def _outcome(found: Sequence[Diagnosis], what: str, *, strict: bool) -> Outcome:
    serious = [item for item in found if item.severity != "note"]
    head = f"{text.cell(what)}: "
    head += f"{len(found)} finding{'s' * (len(found) != 1)}" if found else "nothing found that looks wrong"
    blocks = [_block(item) for item in found]
    data = {"subject": what, "diagnoses": [asdict(item) for item in found]}
    failed = f"--strict: {len(serious)} findings" if strict and serious else None
    return Outcome("\n\n".join([head, *blocks]), data, failed)


def _block(item: Diagnosis) -> str:
    says = text.styled(f"{item.severity}: {text.cell(item.says)}", _MARKS.get(item.severity))
    return f"{says}\n  seen:   {text.cell(item.evidence)}\n  remedy: {text.cell(item.remedy)}"


def _name(path: Path | None) -> str:
    return path.name if path is not None else ""
