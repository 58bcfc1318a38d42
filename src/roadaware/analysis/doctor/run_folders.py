"""Checks of folders that commands wrote: whether the work is over, whole, and of the settings that are meant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware.analysis.doctor.diagnosis import Diagnosis, report_error, report_note, report_suspicion
from roadaware.errors import InputError, RoadawareError
from roadaware.io.files import is_temporary, read_regular
from roadaware.io.folders import MARKER, digest, list_result_files
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.store import is_saved, open_predictions, open_scenes, scan_tables
from roadaware.scenes.tables import Predictions, Scenes

_LIMIT, _LARGEST = 1 << 26, 1 << 30
"""Bytes of a record, and of a file of a run, that are read at most."""
_CHECKPOINT = "last.ckpt"
_WEIGHTS = ("*.safetensors", "model.npz")
_PREDICTOR = "PedestrianRecipe"
_RESULTS = {MARKER, "results.parquet"}
"""What stands in the end of a study, and of the training of a predictor."""
_RECORDS = ("run.json", "masks.json", "watch.json", "study.json", "recipe.json", "meta.json", MARKER)
_AGAIN = (
    "Give the same command again: it goes on from what is whole, and ends in the bytes of an undisturbed run."
)
_ANEW = "The file is not the one that was written: give the command again with --overwrite, or fetch the folder again."


def check_run_folder(folder: Path) -> list[Diagnosis]:
    """What is the matter with a folder that `evaluate`, `predict`, `train`, `read -o` or another command wrote.

    Raises:
        InputError: if it is no folder, or holds nothing that a command wrote.
    """
    if not folder.is_dir():
        raise InputError(
            "expected the folder of a run", where=to_printable(str(folder)), hint="Name what -o named."
        )
    held = sorted(each.name for each in folder.iterdir())
    left = [name for name in held if is_temporary(name) is not None]
    found: list[Diagnosis] = []
    if is_saved(folder):
        found += _check_tables(folder)
    elif list_result_files(folder) is not None:
        found += _check_results(folder)
    elif "run.json" in held:
        found += _check_parts(folder)
    elif known := [name for name in _RECORDS if name in held]:
        found += _check_record(folder, known[0], held)
    elif any(name.endswith(".parquet") for name in held):
        evidence = f"{sum(name.endswith('.parquet') for name in held)} tables and no meta.json"
        found += report_error(
            "unfinished", "Tables were being written when the command was stopped.", evidence, _AGAIN
        )
    else:
        raise InputError(
            f"expected a record such as {', '.join(_RECORDS[:3])}, found {', '.join(held[:5]) or 'nothing'}",
            where=to_printable(str(folder)),
            hint="Name the folder that -o of a command named.",
        )
    if left:
        says = "Files of a command that was stopped lie in it."
        found += report_note(
            "left_over", says, ", ".join(left[:5]), "The next run of the command removes them."
        )
    return found


def _read_record(path: Path) -> dict[str, Any] | None:
    with suppress(RoadawareError, OSError, ValueError, RecursionError):
        found = json.loads(read_regular(path, limit=_LIMIT))
        return found if isinstance(found, dict) else None
    return None


def _check_version(record: Mapping[str, Any], where: str) -> list[Diagnosis]:
    version = record.get("version")
    if not isinstance(version, str) or version == __version__:
        return []
    says = "Another version wrote it: numbers may differ from those of today."
    evidence = f"{where} says {version[:40]}, this is {__version__}"
    return report_note(
        "version",
        says,
        evidence,
        "Compare only runs of one version; write it again with this one if in doubt.",
    )


def _check_tables(folder: Path) -> list[Diagnosis]:
    """Saved tables: whether they open, and what they hold."""
    try:
        predicted = scan_tables(folder)[0] == Predictions.__name__
        tables: Scenes | Predictions = open_predictions(folder) if predicted else open_scenes(folder)
    except RoadawareError as error:
        return report_error("damaged", "Tables are damaged or missing.", str(error)[:300], _ANEW)
    if not any(len(frame) for name, frame in tables.tables().items() if name != "rejected"):
        return report_suspicion(
            "empty",
            "There is nothing in the tables.",
            "no table has a row",
            "Check what was read: `roadaware stats`.",
        )
    if len(tables.boxes) == 0 and len(tables.videos):
        evidence = f"{len(tables.videos):,} videos and no box"
        return report_note(
            "no_boxes",
            "There are no boxes in it.",
            evidence,
            "Right for sets of sounds and segments; else check the reading.",
        )
    return []


def _check_results(folder: Path) -> list[Diagnosis]:
    """A folder of results: every file that the record lists, with its digest, and the settings they were made by."""
    record = _read_record(folder / MARKER)
    stated = record.get("files") if record is not None else None
    if record is None or not isinstance(stated, dict):
        return report_error("record", "The record of the run is damaged.", f"{MARKER} lists no files", _ANEW)
    missing, changed = [], []
    for name, due in stated.items():
        if is_outside(name):
            changed.append(to_printable(name, 60))
            continue
        try:
            data = read_regular(folder / name, limit=_LARGEST)
        except FileNotFoundError:
            missing.append(name)
            continue
        except (RoadawareError, OSError):
            changed.append(name)
            continue
        # The page may be edited: it is made again from the others.
        if not name.endswith(".html") and digest(data) != due:
            changed.append(name)
    found: list[Diagnosis] = []
    if missing:
        remedy = "`roadaware report` makes the page again." if missing == ["report.html"] else _ANEW
        found += report_error(
            "missing", "Files of the run are missing.", ", ".join(map(to_printable, missing[:5])), remedy
        )
    if changed:
        evidence = ", ".join(map(to_printable, changed[:5]))
        found += report_error("changed", "Files of the run were changed since.", evidence, _ANEW)
    config = _read_record(folder / "config.json") if "config.json" in stated else None
    metric, judged = config.get("metric") if config is not None else None, record.get("config")
    if isinstance(metric, dict) and isinstance(judged, dict) and metric != judged:
        differ = sorted(key for key in {*metric, *judged} if metric.get(key) != judged.get(key))
        says = "config.json and the record of the numbers disagree about the settings."
        found += report_error(
            "config", says, ", ".join(differ[:5]) or "they differ", "Evaluate again, into a new folder."
        )
    metrics = record.get("metrics")
    if isinstance(metrics, dict) and metrics and all(value in (None, 0, 0.0) for value in metrics.values()):
        says = "Every number of the run is 0 or undefined."
        remedy = "Look at the predictions: roadaware doctor TASK --truth TRUTH --predictions PREDICTIONS"
        found += report_suspicion("all_zero", says, ", ".join(list(map(str, metrics))[:5]), remedy)
    return found + _check_version(record, MARKER)


def _check_parts(folder: Path) -> list[Diagnosis]:
    """The folder of `predict`, `segment` or `poses`: parts by video while it is not over, tables once it is."""
    record = _read_record(folder / "run.json")
    if record is None:
        return report_error(
            "record", "The record of the run is damaged.", "run.json is no JSON object", _ANEW
        )
    videos = record.get("videos")
    listed = videos if isinstance(videos, dict) else {}
    found: list[Diagnosis] = []
    if record.get("finished") is not True:
        evidence = f"{len(listed):,} videos are done, and run.json does not say that it is finished"
        found += report_error("unfinished", "The work is not over.", evidence, _AGAIN)
        parts = {name: part.get("part") if isinstance(part, dict) else None for name, part in listed.items()}
        absent = [
            name
            for name, part in parts.items()
            if not isinstance(part, str) or not (folder / "parts" / part).is_dir()
        ]
        if absent:
            evidence = f"{len(absent)} of {len(listed)}, such as {to_printable(absent[0], 60)}"
            found += report_error("missing", "Parts that are listed as done are not there.", evidence, _AGAIN)
    elif not is_saved(folder / "predictions"):
        evidence = "run.json says finished, and there are no tables in predictions"
        found += report_error("missing", "The tables of a finished run are missing.", evidence, _ANEW)
    else:
        found += _check_tables(folder / "predictions")
    failed = record.get("failed")
    if isinstance(failed, dict) and failed:
        name, why = next(iter(failed.items()))
        evidence = f"{len(failed)}, such as {to_printable(str(name), 60)}: {to_printable(str(why), 120)}"
        found += report_suspicion(
            "failed", "Videos could not be looked at.", evidence, "Look at them: roadaware doctor videos PATH"
        )
    return found + _check_version(record, "run.json")


def _check_record(folder: Path, name: str, held: list[str]) -> list[Diagnosis]:
    """Any other folder with a record: of masks, a watch, a study or a training."""
    record = _read_record(folder / name)
    if record is None:
        return report_error("record", "The record of the run is damaged.", f"{name} is no JSON object", _ANEW)
    found: list[Diagnosis] = []
    if name == "meta.json":
        return report_error(
            "damaged", "The record of saved tables is damaged.", "meta.json is none that `save` wrote", _ANEW
        )
    if name == "study.json" and not _RESULTS & {*held}:
        found += report_error("unfinished", "The study is not over.", f"there is no {MARKER}", _AGAIN)
    elif name == "study.json" and isinstance(left := record.get("unfinished"), int) and left:
        found += report_error("unfinished", "The study is not over.", f"{left:,} cells are left", _AGAIN)
    if name == "recipe.json":
        # Object detectors of transformers are a folder; a predictor of pedestrians has a model for each seed.
        places = (".", "model", "seed-*")
        models = [each for place in places for end in _WEIGHTS for each in folder.glob(f"{place}/{end}")]
        predictor = record.get("type") == _PREDICTOR
        if not models or (predictor and not _RESULTS & {*held}):
            evidence = f"a recipe, and no {'results' if models else 'weights'}" + (
                ", but a checkpoint" if [*folder.glob(f"**/{_CHECKPOINT}")] else " nor a checkpoint"
            )
            found += report_error(
                "unfinished", "The training is not over.", evidence, f"{_AGAIN} `train` with --resume."
            )
    return found + _check_version(record, name)
