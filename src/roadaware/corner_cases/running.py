"""Proposals for all pictures of a set: part by part, resumable, by several processes, bad ones left out."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.config import digest, to_dict
from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.claims import SCHEMA, Stage, claimed, rows_of
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import Geometry, Proposals, geometry_of, propose
from roadaware.corner_cases.opening import Captures, Moment
from roadaware.corner_cases.sources import DetectionSource, SemanticSource
from roadaware.errors import InputError, UsageError
from roadaware.scenes.disk import atomic_write, disk_error, read_regular
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers import read, source
from roadaware.scenes.simulator.crew import side_by_side
from roadaware.scenes.tables import Meta, Scenes

FORMAT, FORMAT_VERSION, MAIN, PARTS = "roadaware-proposals", 1, "proposals.json", "parts"
PROPOSALS = "proposals"
"""The folder beside the parts in which all proposals are saved as Predictions."""
_LOG = logging.getLogger("roadaware")
_LIMIT = 1 << 28
STEPS = ("initial", "intermediate", "final")


@dataclass(frozen=True)
class Order:
    """What is proposed.

    Args:
        reader: of the dataset.
        root: the dataset's folder.
        config: the knobs.
        semantics: `truth` or `erring` for that of made-up scenes, a folder of masks, or None.
        detections: `truth` or `erring`, saved Predictions, or None.
        stage: after which step proposals are kept.
        videos: which; all unless told.
        part: pictures that are done together.
    """

    reader: str
    root: str
    config: CopgConfig = field(default_factory=CopgConfig)
    semantics: str | None = None
    detections: str | None = None
    stage: Stage = "final"
    videos: tuple[str, ...] | None = None
    part: int = 64


@dataclass(frozen=True)
class Tally:
    """What came of it.

    Args:
        pictures: that have a sweep and calibration.
        proposals: after each step.
        with_one: pictures that are left with a proposal.
        skipped: pictures without proposals because something is wrong or missing, by reason.
        made: pictures done now, not before.
        seconds: of one process, spent on those.
    """

    pictures: int
    proposals: dict[str, int]
    with_one: int
    skipped: dict[str, int]
    made: int
    seconds: float


def run(
    order: Order,
    folder: Path,
    *,
    processes: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Predictions, Tally]:
    """Propose for all pictures; parts that the folder has already are left as they are.

    Args:
        order: what is asked for.
        folder: where to: new, empty, or that of the same order.
        processes: how many parts at a time.
        progress: told how many pictures are done, of how many.

    Raises:
        UsageError: if the folder holds other things, or a process died.
        InputError: if the set cannot be read.
        DiskError: if the disk refuses; finished parts stay.
    """
    held = _held(order)
    parts = _parts(order, len(held.moments))
    _claim(order, folder, held)
    due = [number for number in range(len(parts)) if _finished(folder, number) is None]
    made = sum(len(parts[number]) for number in due)
    done = len(held.moments) - made
    if progress is not None:
        progress(done, len(held.moments))
    with closing(_made(order, folder, due, processes)) as finished:
        for number in finished:
            done += len(parts[number])
            if progress is not None:
                progress(done, len(held.moments))
    told = [_finished(folder, number) or {} for number in range(len(parts))]
    return _gathered(order, folder, told, held), _tally(told, held, made, due)


def _made(order: Order, folder: Path, due: list[int], processes: int) -> Generator[int]:
    if processes > 1 and len(due) > 1:
        yield from side_by_side(partial(make_part, order, folder), due, processes)
        return
    for number in due:
        make_part(order, folder, number)
        yield number


def make_part(order: Order, folder: Path, number: int) -> None:
    """Propose for the pictures of one part; one that cannot be opened is told and left out.

    Args:
        order: what is asked for.
        folder: where to.
        number: of the part.

    Raises:
        DiskError: if the disk refuses.
    """
    started = time.process_time()
    held = _held(order)
    rows: list[pl.DataFrame] = []
    counts = dict.fromkeys((*STEPS, "with_one"), 0)
    skipped: list[dict[str, Any]] = []

    def refused(moment: Moment, reason: str) -> None:
        skipped.append({"video": moment.video, "frame": moment.frame, "reason": reason})

    places = _parts(order, len(held.moments))[number]
    for moment, _, found, _ in proposed(order, places, refused):
        rows.append(rows_of(found, moment.video, moment.frame, order.stage))
        counts["initial"] += len(found.boxes)
        counts["intermediate"] += int(found.intermediate.sum())
        counts["final"] += len(found)
        counts["with_one"] += bool(len(found))
    table = pl.concat(rows) if rows else pl.DataFrame(schema=SCHEMA)
    data = io.BytesIO()
    table.write_parquet(data, compression="zstd")
    path = folder / PARTS / f"{number:06d}.parquet"
    atomic_write(path, data.getvalue())
    told = {**counts, "skipped": skipped, "blake2b": source.digest(data.getvalue())}
    told["seconds"] = round(time.process_time() - started, 3)
    atomic_write(path.with_suffix(".json"), (json.dumps(told) + "\n").encode())


def proposed(
    order: Order, places: range | None = None, refused: Callable[[Moment, str], None] | None = None
) -> Iterator[tuple[Moment, Capture, Proposals, Scenes]]:
    """Pictures with their proposals one by one, with all steps; those that cannot be opened are left out.

    Args:
        order: what is asked for.
        places: of the pictures; all unless told.
        refused: told of each that is left out, and why.
    """
    held = _held(order)
    sweep: tuple[tuple[str, int, str], Geometry] | None = None
    for place in range(len(held.moments)) if places is None else places:
        moment = held.moments[place]
        try:
            capture = held.captures.open(
                moment,
                semantics=held.semantics.of(moment.video, moment.frame),
                common=held.detections.of(moment.video, moment.frame),
            )
            key = (moment.scene, moment.frame, moment.lidar)
            if sweep is None or sweep[0] != key:
                sweep = (key, geometry_of(capture, order.config))
            found = propose(capture, order.config, sweep[1])
        except (InputError, UsageError) as error:
            if refused is not None:
                refused(moment, error.message if isinstance(error, InputError) else str(error))
            continue
        yield moment, capture, found, held.scenes


@dataclass
class _Held:
    """What a process keeps of an order: the set and what stands beside it."""

    scenes: Scenes
    captures: Captures
    moments: list[Moment]
    semantics: SemanticSource
    detections: DetectionSource


@lru_cache(maxsize=1)
def _held(order: Order) -> _Held:
    """Everything that is needed for any part.

    Cameras of one sweep stand beside each other, so that its geometry is found once.
    """
    root = Path(order.root)
    scenes = read(order.reader, root)
    if order.videos is not None:
        scenes = scenes.only(order.videos)
    captures = Captures(scenes, root)
    moments = sorted(captures.moments, key=lambda moment: (moment.scene, moment.frame, moment.video))
    return _Held(
        scenes,
        captures,
        moments,
        SemanticSource(order.semantics, scenes, root),
        DetectionSource(order.detections, scenes),
    )


def _parts(order: Order, count: int) -> list[range]:
    """Places of the pictures of each part."""
    return [range(first, min(first + order.part, count)) for first in range(0, count, order.part)]


def _claim(order: Order, folder: Path, held: _Held) -> None:
    """Write what is proposed into the folder, or see that it says the same already.

    Raises:
        UsageError: if it holds something else.
        DiskError: if it cannot be written.
    """
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "order": to_dict(order),
        "source_digest": held.scenes.meta.source_digest,
        "pictures": len(held.moments),
    }
    try:
        found = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    if found:
        known: Any = None
        if MAIN in found:
            known = _parsed(folder / MAIN)
        if not isinstance(known, dict) or known.get("format") != FORMAT:
            raise UsageError(
                f"{folder} holds other things ({', '.join(found[:5])}); name a new or empty folder with --out"
            )
        if known != head:
            raise UsageError(
                f"{folder} holds proposals of another order, or of a set that has changed; the same command "
                "goes on with them, another one needs another folder"
            )
    atomic_write(folder / MAIN, (json.dumps(head, indent=1, sort_keys=True) + "\n").encode())


def _finished(folder: Path, number: int) -> dict[str, Any] | None:
    """What a part that is done tells; None of one that is not, or is damaged."""
    path = folder / PARTS / f"{number:06d}.json"
    told = _parsed(path) if path.exists() else None
    if not isinstance(told, dict) or not isinstance(told.get("blake2b"), str):
        return None
    try:
        data = read_regular(path.with_suffix(".parquet"), limit=_LIMIT)
    except (InputError, OSError):
        return None
    if source.digest(data) != told["blake2b"]:
        _LOG.warning("%s is damaged and is made again", path.with_suffix(".parquet"))
        return None
    return told


def _parsed(path: Path) -> Any:
    try:
        return json.loads(read_regular(path, limit=_LIMIT))
    except (InputError, OSError, ValueError, RecursionError):
        return None


def _gathered(order: Order, folder: Path, told: list[dict[str, Any]], held: _Held) -> Predictions:
    """All proposals, in the order of the parts."""
    rows = [pl.read_parquet(folder / PARTS / f"{number:06d}.parquet") for number in range(len(told))]
    skipped = [each for part in told for each in part.get("skipped", [])]
    notes = {
        "proposals": {
            "config": to_dict(order.config),
            "config_digest": digest(order.config),
            "stage": order.stage,
            "semantics": order.semantics is not None,
            "detections": order.detections is not None,
            "pictures": len(held.moments),
            "skipped": skipped[:1000],
        }
    }
    return claimed(rows, Meta(dataset=held.scenes.meta.dataset, notes=notes))


def _tally(told: list[dict[str, Any]], held: _Held, made: int, due: list[int]) -> Tally:
    skipped: dict[str, int] = dict(held.captures.skipped)
    for each in (each for part in told for each in part.get("skipped", [])):
        skipped[each["reason"]] = skipped.get(each["reason"], 0) + 1
    return Tally(
        pictures=len(held.moments),
        proposals={step: sum(part.get(step, 0) for part in told) for step in STEPS},
        with_one=sum(part.get("with_one", 0) for part in told),
        skipped=dict(sorted(skipped.items(), key=lambda item: -item[1])),
        made=made,
        seconds=sum(told[number].get("seconds", 0.0) for number in due),
    )
