"""Proposals of a grid of knobs for all pictures of a set: part by part, resumable, several at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.config import to_dict
from roadaware.corner_cases import parts
from roadaware.corner_cases.claims import SCHEMA, claimed, rows_of
from roadaware.corner_cases.opening import Moment
from roadaware.corner_cases.resuming import sources_head
from roadaware.corner_cases.reuse import Bench, Variant
from roadaware.corner_cases.running import Order, captures, due_parts, held_by, marks, places_of
from roadaware.errors import InputError, UsageError
from roadaware.scenes import holding
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Meta

FORMAT, FORMAT_VERSION, MAIN = "roadaware-ablation", 1, "ablation.json"
_VARIANT = "variant"


@dataclass(frozen=True)
class GridOrder:
    """What is proposed.

    Args:
        source: set, masks and detections; its own configuration and stage are not asked.
        variants: what is proposed by.
    """

    source: Order
    variants: tuple[Variant, ...]


@dataclass(frozen=True, eq=False)
class GridFound:
    """What came of it.

    Args:
        proposals: of each variant.
        counts: of each variant, final proposals.
        with_one: of each variant, pictures with a proposal.
        pictures: that have a sweep and calibration.
        skipped: pictures without proposals because something is wrong or missing, by reason.
        runs: how many times each step was run.
        made: pictures done now, not before.
        seconds: of one process, spent on those.
    """

    proposals: tuple[Predictions, ...]
    counts: tuple[int, ...]
    with_one: tuple[int, ...]
    pictures: int
    skipped: dict[str, int]
    runs: dict[str, int]
    made: int
    seconds: float


def run_grid(
    order: GridOrder,
    folder: Path,
    *,
    processes: int = 1,
    progress: Callable[[int, int], None] | None = None,
    overwrite: bool = False,
) -> GridFound:
    """Propose for all pictures by all variants; parts that the folder has already are left as they are.

    A picture that one variant cannot be proposed for is left out for all, so that all are judged on the same.

    Args:
        order: what is asked for.
        folder: where to: new, empty, or that of the same order.
        processes: how many parts at a time.
        progress: told how many pictures are done, of how many.
        overwrite: do all parts again, whatever order they were of.

    Raises:
        UsageError: if the folder holds other things, files have changed of what was proposed for, another
            process is at work in it, or one died.
        InputError: if the set cannot be read.
        DiskError: if the disk refuses; finished parts stay.
    """
    with holding.held(folder):
        return _run(order, folder, processes, progress, overwrite=overwrite)


def _run(
    order: GridOrder,
    folder: Path,
    processes: int,
    progress: Callable[[int, int], None] | None,
    *,
    overwrite: bool,
) -> GridFound:
    held = held_by(order.source)
    places = places_of(order.source)
    parts.claim(folder, MAIN, _head(order), "an ablation", overwrite=overwrite)
    due = due_parts(order.source, folder)
    done = len(held.moments) - sum(len(places[number]) for number in due)
    if progress is not None:
        progress(done, len(held.moments))
    started_s = parts.cpu_s()
    with closing(parts.made(partial(make_grid_part, order, folder), due, processes)) as finished:
        for number in finished:
            done += len(places[number])
            if progress is not None:
                progress(done, len(held.moments))
    return _gathered(order, folder, due, parts.cpu_s() - started_s if due else 0.0)


def make_grid_part(order: GridOrder, folder: Path, number: int) -> None:
    """Propose for the pictures of one part; one that cannot be opened is told and left out.

    Args:
        order: what is asked for.
        folder: where to.
        number: of the part.

    Raises:
        DiskError: if the disk refuses.
    """
    bench = Bench(order.variants)
    rows: list[pl.DataFrame] = []
    counts, with_one = ([0] * len(order.variants) for _ in range(2))
    skipped: Counter[str] = Counter()
    left: set[Moment] = set()
    for moment, opened in captures(order.source, places_of(order.source)[number]):
        try:
            found = bench.propose(opened(), (moment.scene, moment.frame, moment.lidar))
        except (InputError, UsageError) as error:
            skipped[error.message if isinstance(error, InputError) else str(error)] += 1
            left.add(moment)
            continue
        for place, each in enumerate(found):
            counts[place] += len(each)
            with_one[place] += bool(len(each))
            if len(each):
                held = rows_of(each, moment.video, moment.frame)
                rows.append(held.with_columns(pl.lit(place, dtype=pl.Int64).alias(_VARIANT)))
    table = pl.concat(rows) if rows else pl.DataFrame(schema={**SCHEMA, _VARIANT: pl.Int64()})
    told = {
        "counts": counts,
        "with_one": with_one,
        "skipped": dict(skipped),
        "runs": dict(bench.counts),
        **marks(order.source, number, left),
    }
    parts.put(folder, number, table, told)


def _head(order: GridOrder) -> dict[str, Any]:
    """What is asked for, for the folder."""
    held = held_by(order.source)
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "order": to_dict(order),
        "source_digest": held.scenes.meta.source_digest,
        "pictures": len(held.moments),
        **sources_head(held.semantics, held.detections),
    }


def _gathered(order: GridOrder, folder: Path, due: list[int], seconds: float) -> GridFound:
    """All parts as one."""
    held = held_by(order.source)
    numbers = range(len(places_of(order.source)))
    told = [parts.finished(folder, number) or {} for number in numbers]
    skipped, runs = Counter(held.captures.skipped), Counter[str]()
    for part in told:
        skipped.update(part.get("skipped", {}))
        runs.update(part.get("runs", {}))

    def summed(name: str) -> tuple[int, ...]:
        columns = [part.get(name, [0] * len(order.variants)) for part in told]
        return tuple(sum(column[place] for column in columns) for place in range(len(order.variants)))

    return GridFound(
        _predictions(order, [parts.table_of(folder, number) for number in numbers]),
        counts=summed("counts"),
        with_one=summed("with_one"),
        pictures=len(held.moments),
        skipped=dict(skipped.most_common()),
        runs=dict(runs),
        made=sum(len(places_of(order.source)[number]) for number in due),
        seconds=seconds,
    )


def _predictions(order: GridOrder, tables: list[pl.DataFrame]) -> tuple[Predictions, ...]:
    """The proposals of each variant, in the order of the parts."""
    meta = Meta(dataset=held_by(order.source).scenes.meta.dataset)
    rows = pl.concat([pl.DataFrame(schema={**SCHEMA, _VARIANT: pl.Int64()}), *tables])
    split = {
        int(str(key[0])): each.drop(_VARIANT) for key, each in rows.group_by(_VARIANT, maintain_order=True)
    }
    found = []
    for place, variant in enumerate(order.variants):
        notes = {"proposals": {"variant": to_dict(variant)}}
        held = [split[place]] if place in split else []
        found.append(claimed(held, replace(meta, notes=notes)))
    return tuple(found)
