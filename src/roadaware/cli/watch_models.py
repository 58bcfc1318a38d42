"""Which models a watch asked: what each tells, what it learnt from, and its licence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roadaware.online.crossing import CrossingAnnotator

_WEIGHTS = Path(__file__).resolve().parent.parent / "weights"
_OURS = "Apache-2.0"
_UNSTATED = "not stated in its file"


def describe_models(
    files: Sequence[Path],
    annotator: CrossingAnnotator | None = None,
    views: object = None,
    detector: object = None,
) -> list[dict[str, str]]:
    """A row for each model: `task`, `name`, `trained_on`, `licence`, `digest` and `settings`, JSON-ready.

    Args:
        files: of the detector.
        annotator: with the predictors that are asked.
        views: how pictures are shown to the detector; None where it has its own way.
        detector: as it is asked, with the event head or without.
    """
    from roadaware.models.detector import read_notes
    from roadaware.online.setup import HEAD
    from roadaware.tasks.events import EventDetector

    rows = []
    for path in files:
        notes = read_notes(path)
        row = _row("agents", path, notes, str(notes.get("trained_on") or ""))
        rows.append(row | _in_catalogue(path) | ({} if views is None else {"settings": str(views)}))
    if isinstance(detector, EventDetector):
        rows.append(_row("events", _WEIGHTS / HEAD, {}, "simulated tubes"))
    for task, file, facts in annotator.foresight.members() if annotator is not None else ():
        rows.append(_row(task, file, facts, str(facts.get("data") or facts.get("protocol") or "")))
    return rows


def _in_catalogue(path: Path) -> dict[str, str]:
    """What the catalogue says of a model that it installed; nothing of others."""
    from roadaware.models.catalogue.entries import find_installed_path, read_catalogue, read_record

    for entry in read_catalogue().values():
        if find_installed_path(entry) == path:
            record = read_record(path if path.is_dir() else path.parent) or {}
            licence = str(record.get("licence") or entry.licence)
            return {"name": entry.name, "trained_on": entry.about, "licence": licence}
    return {}


def _row(task: str, path: Path | None, facts: dict[str, Any], trained_on: str) -> dict[str, str]:
    from roadaware.models.loading import digest_model_files

    bundled = path is not None and path.resolve().parent == _WEIGHTS
    licence = f"{_OURS}, comes with roadaware" if bundled else str(facts.get("licence") or _UNSTATED)
    return {
        "task": task,
        "name": "?" if path is None else path.name,
        "trained_on": trained_on or _UNSTATED,
        "licence": licence,
        "digest": "" if path is None or not path.is_file() else digest_model_files(path),
        "settings": "",
    }
