"""Proposals for all images of a set: part by part, resumable, by several workers, bad ones left out, with statistics
of the run.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.config import digest, to_dict
from roadaware.corner_cases import checkpointed_parts
from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.checkpointed_parts import (
    MARKS,
    describe_sources,
    digest_part_files,
    format_moment,
    is_part_current,
)
from roadaware.corner_cases.config import CopgConfig, complete_saved_config
from roadaware.corner_cases.copg import Geometry, Proposals, extract_geometry, propose
from roadaware.corner_cases.loader import Captures, Moment, collect_warnings
from roadaware.corner_cases.proposal_tables import (
    DROPPED_SCHEMA,
    SCHEMA,
    Stage,
    build_dropped_rows,
    build_proposal_rows,
    merge_proposal_rows,
)
from roadaware.corner_cases.sources import DetectionSource, SemanticSource
from roadaware.datasets import read
from roadaware.datasets.detect_format import detect_reader, find_root
from roadaware.datasets.sensor_tables import DISTORTION
from roadaware.errors import InputError, UsageError
from roadaware.io import folders, sources
from roadaware.io.files import write_atomically
from roadaware.io.parallel import HERE, Workers, run_parts
from roadaware.io.sources import to_printable
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes

FORMAT, FORMAT_VERSION, MAIN = "roadaware-proposals", 1, "proposals.json"
PROPOSALS = "proposals"
"""The folder beside the parts in which all proposals are saved as Predictions."""
_REQUEST = "order"
"""The note of a part on what it was made for."""
_LOG = logging.getLogger("roadaware")
DROPPED = "dropped.parquet"
"""The table beside it: each cluster that is no proposal, and the step that dropped it."""


@dataclass(frozen=True)
class Order:
    """A request for proposals: set, configuration and sources.

    Args:
        reader: of the dataset.
        root: the dataset's folder.
        config: the parameters.
        semantics: `truth` or `erring` for that of synthetic scenes, a folder of masks, or None.
        detections: `truth` or `erring`, saved Predictions, or None.
        stage: after which step proposals are kept.
        videos: which (default: all).
        part: images that are done together.
    """

    reader: str
    root: str
    config: CopgConfig = field(default_factory=CopgConfig)
    semantics: str | None = None
    detections: str | None = None
    stage: Stage = "final"
    videos: tuple[str, ...] | None = None
    part: int = 64


def build_order(
    dataset: Path,
    *,
    reader: str | None = None,
    split: str | None = None,
    semantics: str | None = None,
    detections: str | None = None,
    stage: Stage = "final",
    config: CopgConfig | None = None,
) -> Order:
    """What is proposed, of a dataset as it lies on the disk.

    Args:
        dataset: its folder.
        reader: its kind; default: seen from its files.
        split: only its videos; default: all.
        semantics, detections, stage: as of `Order`; folders may be relative.
        config: the parameters; default: those we recommend.

    Raises:
        UsageError: if there is no such split, or the dataset is an archive.
        InputError: if the set cannot be read.
    """
    name = reader or detect_reader(dataset)
    root = find_root(name, dataset)
    videos = None if split is None else tuple(read(name, root).split_videos(split))
    return Order(
        reader=name,
        root=str(root),
        config=config or CopgConfig(),
        semantics=_absolute(semantics),
        detections=_absolute(detections),
        stage=stage,
        videos=videos,
    )


def _absolute(given: str | None) -> str | None:
    return given if given in (None, "truth", "erring") else os.path.realpath(str(given))


def propose_set(
    order: Order,
    folder: Path,
    *,
    workers: Workers = HERE,
    progress: Callable[[int, int], None] | None = None,
    overwrite: bool = False,
) -> tuple[Predictions, Tally]:
    """Propose for all images as `run` does, and save all proposals beside the parts.

    Args:
        order, folder, workers, progress, overwrite: as of `run`.

    Raises:
        UsageError: as `run`.
        InputError: if the set cannot be read, or no image of it has a sweep that can be used.
        DiskError: if the disk refuses; finished parts stay.
    """
    found, tally = run(order, folder, workers=workers, progress=progress, overwrite=overwrite)
    if not tally.opened:
        reasons = [f"{to_printable(reason)} ({count:,} times)" for reason, count in tally.skipped.items()]
        again = f"roadaware read {order.reader} {to_printable(order.root)} says what the reader refused"
        raise InputError(
            f"no image can be proposed for: {reasons[0] if reasons else 'there are none'}",
            where=to_printable(order.root),
            hint=again if tally.refused else "check which folder and which sensors these are",
        )
    save(found, folder / PROPOSALS, overwrite=True)
    _save_dropped(folder, len(split_parts(order)))
    return found, tally


def _save_dropped(folder: Path, count: int) -> None:
    """Save what the parts dropped as one table; none where a part was made before they kept it.

    Raises:
        DiskError: if the disk refuses.
    """
    parts = []
    for number in range(count):
        record = checkpointed_parts.read_finished_part(folder, number) or {}
        table = checkpointed_parts.read_beside(folder, number, DROPPED, record)
        if table is None:
            (folder / DROPPED).unlink(missing_ok=True)
            return
        parts.append(table)
    data = io.BytesIO()
    whole = pl.concat([pl.DataFrame(schema=DROPPED_SCHEMA), *parts], how="diagonal")
    # Parts of versions up to 0.9 knew one way to cluster.
    whole = whole.with_columns(pl.col("hypothesis").fill_null(0))
    whole.write_parquet(data, compression="zstd")
    write_atomically(folder / DROPPED, data.getvalue())


def run(
    order: Order,
    folder: Path,
    *,
    workers: Workers = HERE,
    progress: Callable[[int, int], None] | None = None,
    overwrite: bool = False,
) -> tuple[Predictions, Tally]:
    """Propose for all images; parts that the folder has already are left as they are.

    A part is done again where a file has changed of an image that was left out.

    Args:
        order: what is asked for.
        folder: where to: new, empty, or that of the same order.
        workers: where parts are done, and how many at a time.
        progress: called with the number of images done and the total.
        overwrite: do all parts again, whatever order they were of.

    Raises:
        UsageError: if the folder holds other things, files have changed of what was proposed for, or a
            process died.
        InputError: if the set cannot be read.
        DiskError: if the disk refuses; finished parts stay.
    """
    with folders.hold_folder(folder):
        # Files may have changed since an earlier run in the same process.
        load_run_inputs.cache_clear()
        held = load_run_inputs(order)
        places = split_parts(order)
        checkpointed_parts.prepare_result_folder(
            folder,
            MAIN,
            build_head(FORMAT, FORMAT_VERSION, order, held),
            "proposals",
            overwrite=overwrite,
            complete=_complete_head,
        )
        work = partial(make_part, order, folder)
        due, seconds = run_due_parts(order, order, folder, work, workers, progress)
        made = sum(len(places[number]) for number in due)
        records = [
            checkpointed_parts.read_finished_part(folder, number) or {} for number in range(len(places))
        ]
        tally = summarize_parts(
            records, held.scenes, held.captures.skipped, len(held.moments), made=made, seconds=seconds
        )
        # All proposals, in the order of the parts.
        rows = [checkpointed_parts.read_part_table(folder, number) for number in range(len(records))]
        skipped = [each for part in records for each in part.get("skipped", [])]
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
        return merge_proposal_rows(rows, Meta(dataset=held.scenes.meta.dataset, notes=notes)), tally


def find_due_parts(request: Any, order: Order, folder: Path) -> list[int]:
    """Numbers of the parts that are not done, are damaged or of another request, or left out images whose files have
    changed.

    Args:
        request: what the folder is of, a dataclass.
        order: the set, masks and detections that it is about.
        folder: of the parts.

    Raises:
        UsageError: if the file of an image that was proposed for has changed.
    """
    held = load_run_inputs(order)
    due, asked = [], _digest_request(request, held)
    for number, places in enumerate(split_parts(order)):
        record = checkpointed_parts.read_finished_part(folder, number)
        moments = held.moments[places.start : places.stop]
        # Parts of earlier versions do not say what they were made for.
        if record is not None and record.get(_REQUEST, asked) != asked:
            _LOG.warning("part %d of %s was made for another order and is made again", number, folder)
            record = None
        if record is None or not is_part_current(record, held.captures, held.semantics, moments):
            due.append(number)
    return due


def run_due_parts(
    request: Any,
    order: Order,
    folder: Path,
    work: Callable[[int], None],
    workers: Workers,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[int], float]:
    """Do the parts of a folder that are due; their numbers, and the seconds it took.

    Args:
        request, order, folder: as of `find_due_parts`.
        work: does the part of a number.
        workers: where, and how many at a time.
        progress: called with the number of images done and the total.

    Raises:
        UsageError: if the file of an image that was proposed for has changed, or a process died.
        DiskError: if the disk refuses; finished parts stay.
    """
    moments, places = load_run_inputs(order).moments, split_parts(order)
    due = find_due_parts(request, order, folder)
    done = len(moments) - sum(len(places[number]) for number in due)
    if progress is not None:
        progress(done, len(moments))

    def count(number: int, _: object) -> None:
        nonlocal done
        done += len(places[number])
        if progress is not None:
            progress(done, len(moments))

    def name(number: int) -> str:
        return f"part {number}, from {format_moment(moments[places[number].start])} on"

    before = len(places) - len(due)
    seconds = run_parts(work, due, workers, what="parts", name=name, done=count, folder=folder, before=before)
    return due, seconds


def build_part_digests(request: Any, order: Order, number: int, left: Collection[Moment]) -> dict[str, Any]:
    """Digests of what a part is made for, and of the files of its images, to be kept with the part.

    Args:
        request, order: as of `find_due_parts`.
        number: of the part.
        left: images that were left out.
    """
    held, places = load_run_inputs(order), split_parts(order)[number]
    moments = held.moments[places.start : places.stop]
    missed = {place for place, each in enumerate(moments) if each in left}
    return {
        _REQUEST: _digest_request(request, held),
        MARKS: digest_part_files(held.captures, held.semantics, moments, missed),
    }


def _digest_request(request: Any, held: Held) -> str:
    """Digest of a request and of the set, classes and detections that it is about.

    Parameters with their values of earlier versions are left out: one that is added changes no digest.
    """
    earlier = complete_saved_config({})

    def shorten(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: {n: v for n, v in each.items() if earlier.get(n) != v}
                if name == "config"
                else shorten(each)
                for name, each in value.items()
            }
        return [shorten(each) for each in value] if isinstance(value, list) else value

    head = shorten(build_head("", 0, request, held))
    return sources.digest(json.dumps(head, sort_keys=True).encode())


def make_part(order: Order, folder: Path, number: int) -> None:
    """Propose for the images of one part; one that cannot be opened is reported and left out.

    Raises:
        DiskError: if the disk refuses.
    """
    rows: list[pl.DataFrame] = []
    dropped: list[pl.DataFrame] = []
    counts = dict.fromkeys((*STEPS, "with_one"), 0)
    skipped: dict[Moment, dict[str, Any]] = {}
    odd: Counter[str] = Counter()

    def refused(moment: Moment, error: InputError | UsageError) -> None:
        skipped[moment] = describe_skipped_image(moment, error)

    for moment, capture, found, _ in iterate_proposals(order, split_parts(order)[number], refused):
        odd.update(collect_warnings(capture, found.geometry))
        rows.append(build_proposal_rows(found, moment.video, moment.frame, order.stage))
        dropped.append(build_dropped_rows(found, moment.video, moment.frame))
        counts["initial"] += int(found.initial.sum())
        counts["intermediate"] += int(found.intermediate.sum())
        counts["final"] += len(found)
        counts["with_one"] += bool(len(found))
    table = pl.concat(rows) if rows else pl.DataFrame(schema=SCHEMA)
    record = {
        **counts,
        "skipped": list(skipped.values()),
        "odd": dict(odd),
        **build_part_digests(order, order, number, skipped),
    }
    beside = {DROPPED: pl.concat(dropped) if dropped else pl.DataFrame(schema=DROPPED_SCHEMA)}
    checkpointed_parts.write_part(folder, number, table, record, beside)


def iterate_proposals(
    order: Order,
    places: range | None = None,
    refused: Callable[[Moment, InputError | UsageError], None] | None = None,
) -> Iterator[tuple[Moment, Capture, Proposals, Scenes]]:
    """Images with their proposals one by one, with all steps; those that cannot be opened are left out.

    Args:
        order: what is asked for.
        places: of the images (default: all).
        refused: called with each that is left out, and why.
    """
    sweep: tuple[tuple[str, int, str], Geometry] | None = None
    for moment, opened in iterate_captures(order, places):
        try:
            capture = opened()
            key = (moment.scene, moment.frame, moment.lidar)
            if sweep is None or sweep[0] != key:
                sweep = (key, extract_geometry(capture, order.config))
            found = propose(capture, order.config, sweep[1])
        except (InputError, UsageError) as error:
            if refused is not None:
                refused(moment, error)
            continue
        yield moment, capture, found, load_run_inputs(order).scenes


def iterate_captures(
    order: Order, places: range | None = None
) -> Iterator[tuple[Moment, Callable[[], Capture]]]:
    """Images, each with what opens it with its semantic map and detections, and may raise.

    Args:
        order: what is asked for.
        places: of the images (default: all).
    """
    held = load_run_inputs(order)

    def opened(moment: Moment) -> Capture:
        return held.captures.open(
            moment,
            semantics=held.semantics.of(moment.video, moment.frame),
            common=held.detections.of(moment.video, moment.frame),
        )

    for place in range(len(held.moments)) if places is None else places:
        yield held.moments[place], partial(opened, held.moments[place])


@dataclass
class Held:
    """State of a worker process: the set and its sources.

    Args:
        scenes: the set.
        captures: opens its images.
        moments: those that have a sweep and calibration.
        semantics: maps of images.
        detections: common objects of images.
    """

    scenes: Scenes
    captures: Captures
    moments: list[Moment]
    semantics: SemanticSource
    detections: DetectionSource


@lru_cache(maxsize=1)
def load_run_inputs(order: Order) -> Held:
    """Everything that is needed for any part.

    Cameras of one sweep stand beside each other, so that its geometry is found once.

    Raises:
        InputError: if the set cannot be read.
    """
    root = Path(order.root)
    scenes = read(order.reader, root)
    if order.videos is not None:
        scenes = scenes.only(order.videos)
    captures = Captures(scenes, root)
    # By scene and frame: the cameras of one sweep follow each other and share its geometry.
    moments = sorted(captures.moments, key=lambda moment: (moment.scene, moment.frame, moment.video))
    return Held(
        scenes,
        captures,
        moments,
        SemanticSource(order.semantics, scenes, root),
        DetectionSource(order.detections, scenes),
    )


def split_parts(order: Order) -> list[range]:
    """Places of the images of each part."""
    count = len(load_run_inputs(order).moments)
    return [range(first, min(first + order.part, count)) for first in range(0, count, order.part)]


def build_head(form: str, version: int, order: Any, held: Held) -> dict[str, Any]:
    """A request as kept in its folder.

    Args:
        form, version: of the folder.
        order: the request, a dataclass.
        held: what it is about.
    """
    return {
        "format": form,
        "version": version,
        "order": to_dict(order),
        "source_digest": held.scenes.meta.source_digest,
        "pictures": len(held.moments),
        **describe_sources(held.semantics, held.detections),
    }


def _complete_head(known: Any) -> Any:
    """The request of an earlier version, whose configuration had fewer parameters."""
    saved = known.get("order") if isinstance(known, dict) else None
    if not isinstance(saved, dict) or not isinstance(saved.get("config"), dict):
        return known
    return {**known, "order": {**saved, "config": complete_saved_config(saved["config"])}}


STEPS = ("initial", "intermediate", "final")
_NUMBERS = re.compile(r"[\d.]+(e[+-]?\d+)?")


@dataclass(frozen=True)
class Tally:
    """Counts of a run.

    Args:
        pictures: that have a sweep and calibration.
        opened: of these, for which proposals were made, be it none.
        proposals: after each step.
        with_one: images that are left with a proposal.
        skipped: images without proposals because something is wrong or missing, by reason; reasons that
            differ in numbers alone are counted under the first.
        odd: images that were proposed for although something is strange, by what; as with `skipped`.
        wondered: what the reader found odd about the set, lenses that distort among it, and how often.
        refused: rows and files that the reader did not take.
        made: images done now, not before.
        seconds: of processors, spent on those.
    """

    pictures: int
    opened: int
    proposals: dict[str, int]
    with_one: int
    skipped: dict[str, int]
    odd: dict[str, int]
    wondered: dict[str, int]
    refused: int
    made: int
    seconds: float


def describe_skipped_image(moment: Moment, error: InputError | UsageError) -> dict[str, Any]:
    """An image that was left out, why, and which file it was about, if any; JSON-ready.

    Args:
        moment: the image's.
        error: that its opening or the proposing raised.
    """
    reason, where = (error.message, error.where) if isinstance(error, InputError) else (str(error), None)
    return {"video": moment.video, "frame": moment.frame, "reason": reason, "where": where}


def summarize_parts(
    records: Sequence[Mapping[str, Any]],
    scenes: Scenes,
    unopened: Mapping[str, int],
    images: int,
    *,
    made: int,
    seconds: float,
) -> Tally:
    """The tally of all parts.

    Args:
        records: notes of each part.
        scenes: the set.
        unopened: images without sweep or calibration, by reason.
        images: that have both.
        made: images done now, not before.
        seconds: spent on those.
    """
    left = [each for part in records for each in part.get("skipped", [])]
    skipped = Counter(unopened)
    # Counts by reason, each with the first image or file that it was reported for
    counts = _merge_counts((each["reason"], 1) for each in left)
    first: dict[str, str] = {}
    for each in left:
        image = f"{to_printable(each['video'])}, frame {each['frame']}"
        first.setdefault(each["reason"], each.get("where") or image)
    skipped.update({f"{reason}; first: {first[reason]}": count for reason, count in counts.items()})
    odd = _merge_counts(each for part in records for each in part.get("odd", {}).items())
    return Tally(
        pictures=images,
        opened=images - len(left),
        proposals={step: sum(part.get(step, 0) for part in records) for step in STEPS},
        with_one=sum(part.get("with_one", 0) for part in records),
        skipped=dict(skipped.most_common()),
        odd=dict(odd.most_common()),
        wondered=_collect_warnings(scenes.meta.notes),
        refused=len(scenes.rejected),
        made=made,
        seconds=seconds,
    )


def _collect_warnings(notes: Mapping[str, Any]) -> dict[str, int]:
    """Warnings of a reader, and about lens distortion that is not applied."""
    found = {each["what"]: each["count"] for each in notes.get("warnings", [])}
    cameras = notes.get("left_out", {}).get(DISTORTION, 0)
    return {**found, f"not applied: {DISTORTION}": cameras} if cameras else found


def _merge_counts(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Counts by words; those that differ in numbers alone are counted under the first."""
    first: dict[str, str] = {}
    found: Counter[str] = Counter()
    for words, count in counts:
        found[first.setdefault(_NUMBERS.sub("", words), words)] += count
    return found
