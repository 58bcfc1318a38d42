"""`roadaware doctor`: why is it 0? The machine, a dataset's folder, or somebody's scores."""

from __future__ import annotations

import difflib
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware import __version__
from roadaware.analysis.doctor import Diagnosis, check_pedestrian_scores, check_scene_folder
from roadaware.analysis.doctor.predictions import check_predictions
from roadaware.analysis.evaluation.scenes import Reading, open_predictions, open_truth
from roadaware.analysis.scene_tasks import TASKS
from roadaware.cli import datasets
from roadaware.cli.options import USUAL, Common, Outcome, Switch, TaskName
from roadaware.datasets import READERS
from roadaware.errors import InputError, UsageError
from roadaware.formats.score_tables import read_numbers, read_raw_samples
from roadaware.models.catalogue.entries import find_installed_folder, read_catalogue
from roadaware.places import get_cache_folder
from roadaware.reports import terminal

_MARKS = {"wrong": "bad", "suspicious": "odd"}

_SUBJECT = "environment, pedestrians, actions, relations, grounding, sound, or a dataset: jaad, pie, ..."
_DATA = "DATASET=PATH, to compare names, order and truth with the dataset's own."
_TRUTH = "For actions, relations, grounding, sound: what is true, as `evaluate` takes it."
_CLAIMS = "For these: the predictions."
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
    With `actions`, `relations`, `grounding` or `sound` it looks at predictions beside the truth: names that
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
        return report_environment()
    if subject == "pedestrians":
        found = _pedestrians(scores, samples, task, data)
        return _outcome(found, f"{_name(scores)} against {_name(samples)}", strict=strict)

    if subject in TASKS:
        return _outcome(_claims(subject, truth, predictions, labels), _name(predictions), strict=strict)
    if subject not in READERS:
        known = ["environment", "pedestrians", *TASKS, *READERS]
        near = difflib.get_close_matches(subject, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"doctor looks at {', '.join(known)}, not at {subject!r}.{guess}")
    if path is None:
        raise UsageError(f"doctor {subject} needs a path: the folder or zip of {subject.upper()}")

    return _outcome(check_scene_folder(datasets.open_dataset(subject, path)), str(path), strict=strict)


def _pedestrians(
    scores: Path | None, samples: Path | None, task: TaskName, data: str | None
) -> Sequence[Diagnosis]:

    if scores is None or samples is None:
        raise UsageError("doctor pedestrians needs --scores SCORES.csv and --samples SAMPLES.csv")
    values, _ = read_numbers(scores)
    raw = read_raw_samples(samples)
    extraction = None
    if data is not None:
        from roadaware.cli.datasets import build_extraction

        extraction = build_extraction(data, task, len(raw.truth))
    return check_pedestrian_scores(values, raw.truth, raw.tte_frames, raw.pedestrian, task, extraction)


def _claims(
    subject: str, truth: Path | None, predictions: Path | None, labels: Path | None
) -> Sequence[Diagnosis]:
    """What is the matter with predictions about scenes; predictions that cannot be read at all are a finding too."""

    if truth is None or predictions is None:
        raise UsageError(f"doctor {subject} needs --truth TRUTH and --predictions PREDICTIONS")
    task = TASKS[subject]
    scenes = open_truth(task, truth, Reading(labels=labels))
    try:
        claims = open_predictions(task, predictions, scenes)
    except InputError as error:
        where = error.where or str(predictions)
        return [Diagnosis("unread", "wrong", error.message, where, error.hint or "Correct the file.")]
    return check_predictions(subject, claims, scenes)


def _outcome(found: Sequence[Diagnosis], what: str, *, strict: bool) -> Outcome:
    serious = [item for item in found if item.severity != "note"]
    head = f"{terminal.format_cell(what)}: "
    head += f"{len(found)} finding{'s' * (len(found) != 1)}" if found else "nothing found that looks wrong"
    blocks = [_block(item) for item in found]
    data = {"subject": what, "diagnoses": [asdict(item) for item in found]}
    failed = f"--strict: {len(serious)} findings" if strict and serious else None
    return Outcome("\n\n".join([head, *blocks]), data, failed)


def _block(item: Diagnosis) -> str:
    says = terminal.apply_style(
        f"{item.severity}: {terminal.format_cell(item.says)}", _MARKS.get(item.severity)
    )
    return f"{says}\n  seen:   {terminal.format_cell(item.evidence)}\n  remedy: {terminal.format_cell(item.remedy)}"


def _name(path: Path | None) -> str:
    return path.name if path is not None else ""


# What `roadaware doctor` says of the machine.

_PACKAGES = ("polars", "numpy", "scipy", "scikit-learn", "lxml", "matplotlib", "jinja2", "cyclopts", "rich")
_LIBRARIES = ("torch", "transformers", "onnxruntime", "onnx", "av", "huggingface_hub")
"""What models need; they are imported, since an installed library may still not work."""
_VARIABLES = ("ROADAWARE_HOME", "ROADAWARE_DATA_DIR", "XDG_CACHE_HOME", "NO_COLOR", "CI", "SOURCE_DATE_EPOCH")
_LOW_BYTES = 500_000_000


def report_environment() -> Outcome:
    """Versions, folders, disk and the environment variables that count."""
    facts = _facts()
    rows = [(name.replace("_", " "), value) for name, value in _format_facts(facts)]
    lines = [terminal.format_table(["what", "found"], rows, left=2)]
    if facts["remarks"]:
        lines += ["", terminal.format_bullets(facts["remarks"])]
    return Outcome("\n".join(lines), facts)


def _facts() -> dict[str, Any]:
    folder = _cache_folder()
    remarks = []
    if folder is None:
        remarks.append("no place for a cache: set ROADAWARE_HOME to a folder you can write to")
    elif not _writable(folder):
        remarks.append(f"the cache folder {folder} cannot be written: every reading starts anew")
    data = os.environ.get("ROADAWARE_DATA_DIR")
    if data and not Path(data).is_dir():
        remarks.append(f"ROADAWARE_DATA_DIR is {data}, and there is no such folder")
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    if free < _LOW_BYTES:
        remarks.append(f"only {terminal.format_bytes(free)} are free in {here}")
    libraries = {name: _state(name) for name in _LIBRARIES}
    remarks += [f"{name} does not work: {state}" for name, state in libraries.items() if "Error" in state]
    return {
        "roadaware": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "libraries": libraries,
        "cuda": _cuda(),
        "models": _models(),
        "cache_folder": str(folder) if folder else None,
        "cache_bytes": _bytes_in(folder) if folder else 0,
        "data_folder": data,
        "data_found": _datasets(Path(data)) if data else [],
        "free_bytes_here": free,
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "remarks": remarks,
    }


def _format_facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    variables = ", ".join(f"{name}={value}" for name, value in facts["variables"].items())
    return [
        ("roadaware", facts["roadaware"]),
        ("python", facts["python"]),
        ("platform", facts["platform"]),
        ("processors", str(facts["processors"])),
        ("packages", packages),
        ("libraries", ", ".join(f"{name} {state}" for name, state in facts["libraries"].items())),
        ("CUDA", facts["cuda"]),
        ("models", ", ".join(facts["models"]) or "none is installed (`roadaware models list`)"),
        (
            "cache folder",
            f"{facts['cache_folder'] or 'none'} ({terminal.format_bytes(facts['cache_bytes'])})",
        ),
        ("data folder", facts["data_folder"] or "not set (ROADAWARE_DATA_DIR)"),
        ("data found", ", ".join(facts["data_found"]) or "nothing"),
        ("free disk here", terminal.format_bytes(facts["free_bytes_here"])),
        ("variables", variables or "none that count"),
    ]


def _cache_folder() -> Path | None:

    try:
        return get_cache_folder()
    except (OSError, RuntimeError):
        return None


def _writable(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total


def _datasets(folder: Path) -> list[str]:
    with suppress(OSError):
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    return []


def _state(name: str) -> str:
    """The version of a library that could be imported, `missing`, or the error that it raised."""
    try:
        if name == "onnxruntime":
            from roadaware.models.offline import import_onnxruntime

            found = import_onnxruntime()
        else:
            found = import_module(name)
    except ModuleNotFoundError as error:
        return "missing" if error.name == name else f"ModuleNotFoundError: {error}"
    except Exception as error:  # a broken library raises whatever it does
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"
    return str(getattr(found, "__version__", "?"))


def _cuda() -> str:
    """The devices of CUDA that torch can use, in words."""
    try:
        torch = import_module("torch")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return ", ".join(torch.cuda.get_device_name(n) for n in range(count)) or "none"
    except Exception as error:  # as above
        return "none" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {error}"[:100]


def _models() -> list[str]:
    """The names of the models of the catalogue that are installed."""

    with suppress(OSError, RuntimeError):
        return [entry.name for entry in read_catalogue().values() if find_installed_folder(entry) is not None]
    return []


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
