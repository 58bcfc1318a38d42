"""`roadaware label import`: what people made of proposals, read back as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, folders, outputs, text
from roadaware.cli.event_findings import oddities, refused
from roadaware.cli.label_inputs import LABELS, saved_files, sent_from
from roadaware.cli.options import USUAL, Common, Outcome, OutputFolder, Overwrite, Switch
from roadaware.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from roadaware.scenes.tables import Scenes

_TASKS = "The folder that `label export` wrote."
_CORRECTED = "What people left: a Label Studio export (JSON), or COCO or Parquet, a file per annotator."
_STILL = "An edge that moved by no more counts as kept, in pixels."
_FOLDER = "Write the labels, what became of each proposal, and a page into this folder."
_STRICT = "Exit with 1 if anything was refused."
_PAGE = "report.html"


def import_labels(
    tasks: Annotated[Path, Parameter(help=_TASKS)],
    corrected: Annotated[tuple[Path, ...], Parameter(help=_CORRECTED)],
    /,
    *,
    still_px: Annotated[float, Parameter(help=_STILL)] = 0.5,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Read corrected proposals back, and say which were kept, moved, renamed or deleted, and what was added.

    Boxes that keep the number of their proposal are compared with it; where a file has lost all numbers,
    with the proposal that they overlap most. Several annotators stand side by side, told apart by name.
    Turned boxes, boxes outside their picture, and pictures that were not sent out are refused and counted.

    For example:

        roadaware label import runs/tasks runs/streets/corrected.json -o runs/labels

        roadaware label import tasks ann.coco.json ben.coco.json -o labels --strict
    """
    from roadaware.analysis.labelling.fates import by_annotator, fates, labelled_scenes, summary
    from roadaware.scenes.formats.corrections import joined, read_corrections

    if not corrected:
        raise UsageError("name at least one file that people corrected, behind the folder of the tasks")
    if not 0 <= still_px <= 1000:
        raise UsageError(f"--still-px is a number of pixels from 0 to 1000, not {still_px}")
    sent = sent_from(tasks)
    with console.working("reading"):
        answers = joined([read_corrections(path, sent) for path in corrected])
    table = fates(sent, answers, still_px=still_px)
    classes, people = summary(table), by_annotator(table, answers.looked)
    scenes = labelled_scenes(sent, answers, table)
    found = refused(scenes, "the corrections")
    data = {
        "classes": classes.to_dicts(),
        "annotators": people.to_dicts(),
        "labour": _labour(table, answers.looked),
        "pictures": {"sent": len(sent.frames), "done": int(scenes.frames["annotated"].sum())},
        "refused": found,
        "notes": list(oddities(scenes)),
    }
    if folder is not None:
        _save(folder, scenes, table, classes, people, data, overwrite=overwrite)
    failed = f"--strict: {sum(found.values())} items were refused" if strict and found else None
    return Outcome(_text(scenes, classes, people, data, folder), data, failed)


def _labour(table: pl.DataFrame, looked: pl.DataFrame) -> dict[str, float] | None:
    """What work took, where times tell."""
    from dataclasses import asdict

    from roadaware.analysis.labelling.labour import fitted_labour

    found = fitted_labour(table, looked)
    return None if found is None else {**asdict(found[0]), "pictures": found[1]}


def _save(
    folder: Path,
    scenes: Scenes,
    table: pl.DataFrame,
    classes: pl.DataFrame,
    people: pl.DataFrame,
    data: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    from roadaware.cli.runs import parquet
    from roadaware.reports.labelling import corrections_section
    from roadaware.reports.page import report
    from roadaware.scenes.csv_text import csv_text

    page = report([corrections_section(classes, people)], title="Corrected proposals")
    files = {
        **saved_files(scenes, LABELS),
        "fates.parquet": parquet(table),
        "fates.csv": csv_text(table).encode(),
        "classes.csv": csv_text(classes).encode(),
        "annotators.csv": csv_text(people).encode(),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    folders.put_folder(folder, folders.with_marker(files, data), overwrite=overwrite)
    console.note(f"wrote {folder} (labels: {folder / LABELS}, report: {folder / _PAGE})")


def _text(
    scenes: Scenes, classes: pl.DataFrame, people: pl.DataFrame, data: dict[str, Any], folder: Path | None
) -> str:
    pictures = data["pictures"]
    lines = [
        f"{pictures['done']:,} of {pictures['sent']:,} pictures done, {len(scenes.boxes):,} boxes by "
        f"{len(people)} annotators",
        _table(classes, digits=2),
        "",
        _table(people, digits=1),
    ]
    labour = data["labour"]
    if labour is not None:
        names = {"look_s": "look", "judge_s": "judge", "correct_s": "correct", "draw_s": "draw"}
        told = " ".join(f"--{name}-s {labour[key]:.1f}" for key, name in names.items())
        lines += ["", f"fitted to the times of {labour['pictures']:,} pictures, for `label select`: {told}"]
    lines += [f"refused: {count:,} {text.cell(what)}" for what, count in data["refused"].items()]
    lines += [f"note: {text.cell(note)}" for note in data["notes"]]
    if folder is not None and len(people) > 1:
        lines.append(f"next: roadaware label agree {text.cell(str(folder))} -o CONSENSUS")
    return "\n".join(lines)


def _table(held: pl.DataFrame, digits: int) -> str:
    rows = [
        [text.number(value, digits) if isinstance(value, float) or value is None else value for value in row]
        for row in held.iter_rows()
    ]
    return text.table([name.replace("_", " ") for name in held.columns], rows)
