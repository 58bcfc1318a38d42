"""`roadaware read`: what is in a dataset, and what of it could not be taken."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, datasets, outputs
from roadaware.cli.options import (
    USUAL,
    Common,
    DatasetPath,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
)
from roadaware.datasets import READERS
from roadaware.reports import terminal

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes

_SHOWN = 20
_DATASET = f"Which dataset it is: {', '.join(READERS)}."
_FOLDER = "Save the tables here, as Parquet files with a meta.json."
_VERIFY = "Compare contents, not times and sizes, before the cache is believed."
_STRICT = "Exit with 1 if a row or file was refused, or something odd was met."


def read(
    dataset: Annotated[str, Parameter(help=_DATASET)],
    path: DatasetPath,
    /,
    *,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.TABLES] = None,
    overwrite: Overwrite = False,
    verify: Annotated[bool, Parameter(help=_VERIFY), Switch] = False,
    cache: Annotated[bool, Parameter(help="Use and fill the cache.", negative="--no-cache")] = True,
    appearance: Annotated[bool, Parameter(help="Read the appearance tags too (JAAD)."), Switch] = False,
    option: Annotated[tuple[str, ...], Parameter(help=datasets.OPTION), Several] = (),
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Read a dataset and say what is inside: videos, boxes, pedestrians, splits, and every refused row.

    Needs the unpacked repository of the dataset or its zip, as the authors give it. The result is cached,
    so that the second time takes a fraction of a second.

    For example:

        roadaware read jaad JAAD-JAAD_2.0.zip

        roadaware read jaad JAAD -o jaad-tables --strict
    """
    options: dict[str, Any] = {"cache": cache, "verify": verify}
    if option and not datasets.is_saved(path):
        options |= {**datasets.parse_reader_options(dataset, option), "cache": False}
    if appearance:
        options["appearance"] = True
    started_s = time.monotonic()
    scenes = datasets.open_dataset(dataset, path, **options)
    elapsed_s = time.monotonic() - started_s
    if folder is not None:
        from roadaware.scenes.store import save

        save(scenes, folder, overwrite=overwrite)
        console.print_note(f"wrote {folder}")
    refused, odd = len(scenes.rejected), len(_warnings(scenes))
    failed = f"--strict: {refused} rows or files were refused, {odd} kinds of oddities were met"
    shown, data = _text(scenes, elapsed_s), _data(scenes, elapsed_s)
    return Outcome(shown, data, failed if strict and refused + odd else None)


def _text(scenes: Scenes, elapsed_s: float) -> str:
    meta = scenes.meta
    lines = [f"{terminal.format_cell(meta.dataset)}, read in {terminal.format_duration(elapsed_s)}", ""]
    rows = [(name, f"{len(frame):,}") for name, frame in scenes.filled().items()]
    lines.append(terminal.format_table(["table", "rows"], rows))
    splits = _splits(scenes)
    if splits:
        rows = [(name, str(count)) for name, count in splits.items()]
        lines += ["", terminal.format_table(["split", "videos"], rows)]
    lines += ["", *_format_refused(scenes)]
    odd = _warnings(scenes)
    if odd:
        told = [f"{item['what']}: {item['count']}, first {item['example']}" for item in odd]
        lines += ["", "odd, but read:", terminal.format_bullets(told)]
    lines += ["", f"licence: {terminal.format_cell(meta.licence) or 'not stated'}"]
    return "\n".join(lines)


def _format_refused(scenes: Scenes) -> list[str]:
    rejected = scenes.rejected
    if rejected.is_empty():
        return ["nothing was refused"]
    rows = [
        (row["table"], row["file"], row["line"] or "", row["item"] or "", row["reason"])
        for row in rejected.head(_SHOWN).iter_rows(named=True)
    ]
    lines = [
        f"{len(rejected)} refused:",
        terminal.format_table(["table", "file", "line", "item", "reason"], rows, left=5),
    ]
    more = len(rejected) - _SHOWN
    return lines + ([f"... and {more} more; --json lists all of them"] if more > 0 else [])


def _warnings(scenes: Scenes) -> list[dict[str, Any]]:
    """What the reader wondered at: `what`, how often (`count`) and the first `example`."""
    found: list[dict[str, Any]] = scenes.meta.notes.get("warnings", [])
    return found


def _splits(scenes: Scenes) -> dict[str, int]:
    if "splits" not in scenes.videos.columns:
        return {}
    names = scenes.videos["splits"].explode().drop_nulls().to_list()
    return {str(name): names.count(name) for name in sorted(set(names))}


def _data(scenes: Scenes, elapsed_s: float) -> dict[str, Any]:
    return {
        "dataset": scenes.meta.dataset,
        "licence": scenes.meta.licence,
        "source_digest": scenes.meta.source_digest,
        "seconds": round(elapsed_s, 3),
        "rows": {name: len(frame) for name, frame in scenes.filled().items()},
        "rows_read": dict(scenes.meta.rows_read),
        "splits": _splits(scenes),
        "rejected": scenes.rejected.to_dicts(),
        "notes": {key: value for key, value in scenes.meta.notes.items() if _plain_data(value)},
    }


def _plain_data(value: Any) -> bool:
    """Whether a note can stand in JSON as it is."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _plain_data(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_plain_data(item) for item in value)
    return (
        value is None or isinstance(value, str | int | bool) or (isinstance(value, float) and value == value)
    )
