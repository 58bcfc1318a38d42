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
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.analysis.doctor import Diagnosis

_MARKS = {"wrong": "bad", "suspicious": "odd"}

_SUBJECT = "environment, pedestrians, or a dataset: jaad, pie."
_DATA = "DATASET=PATH, to compare names, order and truth with the dataset's own."
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
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Find out why something does not work, or why a number is 0.

    Without arguments it looks at the machine: versions, cache, data, disk. With a dataset and a path it
    looks for what is wrong with the folder: frame base, scale of boxes, splits, refused rows. With
    `pedestrians` it looks at your own scores and samples: names that do not exist, classes from 1,
    percent or logits, reversed columns, shuffled rows, seconds for frames, the wrong split or frame rate.

    For example:

        roadaware doctor

        roadaware doctor jaad JAAD-JAAD_2.0.zip

        roadaware doctor pedestrians --scores model.csv \\
            --samples samples.csv --data jaad=JAAD-JAAD_2.0.zip
    """
    if subject == "environment":
        from roadaware.cli.environment import environment_outcome

        return environment_outcome()
    if subject == "pedestrians":
        found = _pedestrians(scores, samples, task, data)
        return _outcome(found, f"{_name(scores)} against {_name(samples)}", strict=strict)
    from roadaware.scenes.readers import READERS

    if subject not in READERS:
        known = ["environment", "pedestrians", *READERS]
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
