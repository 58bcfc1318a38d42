"""Folders of long work on videos: resumed where it stopped, a part per video, joined in the end."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware import __version__
from roadaware.errors import NOTE, DiskError, InputError, RoadawareError, Terminated, UsageError
from roadaware.io.files import (
    build_disk_error,
    list_folder_names,
    make_temporary_path,
    read_regular,
    write_atomically,
)
from roadaware.io.folders import Hold, write_bytes
from roadaware.io.images import encode_png
from roadaware.io.parallel import HERE, Ledger, OpenedPerWorker, Workers, map_parts, run_parts
from roadaware.io.parquet import scan_parquet
from roadaware.io.sources import is_outside, to_printable
from roadaware.models.detector import FrameDetections
from roadaware.scenes.store import open_predictions, register_table_files, save
from roadaware.scenes.tables import Meta
from roadaware.tasks.road_events import Classes, add_top_label, build_predictions
from roadaware.tasks.videos import Film, VideoFacts, VideoSet, iterate_batches, iterate_images

if TYPE_CHECKING:
    from roadaware.models.detector import VideoDetector
    from roadaware.models.object_detectors import Segmenter


_RECORD_LIMIT = 1 << 26


def open_run_folder(
    folder: Path, record: str, kind: str, settings: Mapping[str, Any], *, overwrite: bool = False
) -> tuple[Hold, bool]:
    """Make a run folder, or check that it holds the same request; the hold on it, and whether it continues.

    Args:
        folder: new, empty, or of the same work.
        record: name of its file in the folder.
        kind: of work, in the record.
        settings: JSON-ready; what the outcome depends on.
        overwrite: begin anew where other settings were.

    Raises:
        UsageError: if it is a file, holds other things or work with other settings, or another process is at
            work in it.
        DiskError: if it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to write into")
    # As it will be read back: tuples have become lists.
    asked = json.loads(json.dumps(dict(settings)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        hold, held = Hold(folder), list_folder_names(folder)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    found = _read(folder / record) if record in held else {}
    if held and found.get("format") != kind:
        what = f"{folder} holds other things ({', '.join(held[:5])})"
        raise UsageError(f"{what}; name a new or empty folder")
    recorded = found.get("settings")
    before: dict[str, Any] = recorded if isinstance(recorded, dict) else {}
    differ = sorted(name for name in {*before, *asked} if before.get(name) != asked.get(name))
    if held and differ and not overwrite:
        raise UsageError(
            f"{folder} holds work with other settings ({', '.join(differ)}); name another folder, or say "
            "--overwrite to begin anew"
        )
    written = {"format": kind, "version": __version__, "settings": asked}
    write_atomically(folder / record, (json.dumps(written, indent=1) + "\n").encode())
    return hold, bool(held) and not differ and not overwrite


def _read(path: Path) -> dict[str, Any]:
    with suppress(RoadawareError, OSError, ValueError, RecursionError):
        found = json.loads(read_regular(path, limit=_RECORD_LIMIT))
        if isinstance(found, dict):
            return found
    return {}


# Masks of many images in a folder, one PNG each, in the form that proposals of corner cases read.

MASK_FORMAT, MASK_RECORD, CLASSES = "roadaware-masks", "masks.json", "classes.json"
_MOST_LABELS = 1 << 16
_MaskPart = tuple[Film, tuple[int, ...]]
"""A video, and which of its images are to have masks."""


class MaskRun:
    """The folder of a run: `VIDEO/000000.png`, ..., `classes.json` (names by number) and `masks.json`.

    A mask that is there and not older than its image stands; each is written whole or not at all. What was
    done so far: masks `written`, those that were there `before`, images that are `gone` with the reason, and
    the `pixels` of each class that were written.

    Args:
        folder: new, empty, or of the same run.
        settings: JSON-ready; what the masks depend on.
        labels: names of the classes, by number.
        overwrite: begin anew where another run is.

    Raises:
        UsageError: if the folder holds other things, or a run with other settings.
        InputError: if there are no labels, or more than 16 bits can number.
        DiskError: if it cannot be written to.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], labels: Sequence[str], *, overwrite: bool = False
    ) -> None:
        if not 0 < len(labels) <= _MOST_LABELS:
            raise InputError(f"a mask tells 1 to {_MOST_LABELS} classes apart, not {len(labels)}")
        self.folder, self.labels = folder, tuple(labels)
        self.bits = _mask_bits(len(labels))
        self.written = self.before = 0
        self.gone: list[str] = []
        self.pixels = np.zeros(len(labels), dtype=np.int64)
        settings = {**settings, "labels": list(labels)}
        self._hold, goes_on = open_run_folder(folder, MASK_RECORD, MASK_FORMAT, settings, overwrite=overwrite)
        if not goes_on:
            self._clear()
        write_atomically(folder / CLASSES, (json.dumps(list(labels)) + "\n").encode())

    def _clear(self) -> None:
        """Take away masks of other settings."""
        try:
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
        except OSError as error:
            raise build_disk_error(self.folder, 0, error) from error

    def segment(
        self,
        segmenter: Segmenter,
        films: Sequence[Film],
        *,
        batch: int = 1,
        open_segmenter: Callable[[], Segmenter] | None = None,
        workers: Workers = HERE,
        progress: Callable[[int, int, str], None] = lambda done, total, unit: None,
    ) -> None:
        """Write the masks that are not there yet.

        Args:
            segmenter: that looks.
            films: whose images are to have masks.
            batch: images that are looked at together.
            open_segmenter: by which other processes open the same segmenter.
            workers: where videos are looked at, and how many at a time.
            progress: called with the images done and the total.

        Raises:
            FindingsError: if videos could not be looked at, once the others are.
            InputError: if the name of a video leads out of the folder.
            DiskError: if the disk refuses.
        """
        total = sum(len(film.frames) for film in films)
        parts: list[_MaskPart] = []
        for film in films:
            whole = None if film.is_pictures else Path(film.path)
            due = [n for n in film.frames if not self.stands(film.video, n, whole or film.picture(n))]
            self.before += len(film.frames) - len(due)
            if due:
                parts.append((film, tuple(due)))
        faults: dict[str, list[str]] = {}
        done = self.before

        def tell(kept: int, gone: int) -> None:
            nonlocal done
            self.written += kept
            done += kept + gone
            progress(done, total, "pictures")

        def note(part: _MaskPart, found: tuple[npt.NDArray[np.int64], list[str]]) -> None:
            film, due = part
            pixels, faults[film.video] = found
            self.pixels += pixels
            if moved is None:
                tell(len(due) - len(found[1]), len(found[1]))

        # Of a video that another process looks at nothing is heard until it is over.
        moved = tell if workers.is_inline(len(parts)) else None
        act = partial(_segment_film, self.folder, len(self.labels), batch, moved)
        work = OpenedPerWorker(act, open_segmenter or (lambda: segmenter), segmenter)
        run_parts(
            work, parts, workers, what="videos", name=lambda part: part[0].video, done=note, folder=self.folder,
            before=len(films) - len(parts),
        )  # fmt: skip
        # In the order of the videos, whichever was done first.
        self.gone += [fault for film, _ in parts for fault in faults[film.video]]

    def stands(self, video: str, frame: int, image: Path) -> bool:
        """Whether the mask of an image is there and not older than it.

        Args:
            video: its name.
            frame: counts from 0.
            image: the file that the image lies in.

        Raises:
            InputError: if the name leads out of the folder.
        """
        path = locate_mask(self.folder, video, frame)
        try:
            found = path.stat()
            return found.st_size > 0 and found.st_mtime_ns >= image.stat().st_mtime_ns
        except OSError:
            return False


def locate_mask(folder: Path, video: str, frame: int) -> Path:
    """Path of the mask of an image.

    Args:
        folder: of all masks.
        video: its name.
        frame: counts from 0.

    Raises:
        InputError: if the name leads out of the folder.
    """
    if is_outside(f"{video}/0"):
        raise InputError("the name of the video leads out of the folder", where=to_printable(video))
    return folder / video / f"{frame:06d}.png"


def write_mask(path: Path, mask: npt.NDArray[np.integer[Any]], classes: int) -> None:
    """Write a mask, with 16 bits a pixel where there are more than 256 classes.

    Args:
        path: of the PNG.
        mask: (H, W) number of the class of each pixel.
        classes: how many there are.

    Raises:
        UsageError: if it holds a number of no class.
        DiskError: if the disk refuses.
    """
    if int(mask.max(initial=0)) >= classes:
        raise UsageError(f"class {int(mask.max())} has no name: there are {classes}")
    write_bytes(path, encode_png(mask, _mask_bits(classes)))


def _mask_bits(classes: int) -> int:
    return 8 if classes <= 256 else 16


def _segment_film(
    folder: Path,
    classes: int,
    batch: int,
    moved: Callable[[int, int], None] | None,
    segmenter: Segmenter,
    part: _MaskPart,
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Write the masks of images of a video: (classes,) how many pixels each has, and why images cannot be read."""
    film, due = part
    pixels, faults = np.zeros(classes, dtype=np.int64), list[str]()
    for frames, images in iterate_batches(film, due, batch, lambda shot: faults.append(shot.fault)):
        for frame, mask in zip(frames, segmenter.segment(images), strict=True):
            write_mask(locate_mask(folder, film.video, frame), mask, classes)
            pixels += np.bincount(mask.ravel(), minlength=classes)
        if moved is not None:
            moved(len(frames), 0)
    if moved is not None:
        moved(0, len(faults))
    return pixels, faults


FORMAT = "roadaware-predictions"
TABLES, PARTS, RECORD = "predictions", "parts", "run.json"
CORNER = "corner"
"""The kind of label of corner cases: boxes of a detector that predicts it are labelled, each by its best one."""
_LIMIT = 1 << 28
_log = logging.getLogger("roadaware")
_TOGETHER = 64
"""So many files are joined at once; the time that it takes grows with the square."""
_RARER = 20
"""The record is written again when so many times the time that it took has passed."""


class PredictionRun:
    """The folder of a run: `run.json`, `parts/` while it is not over, and `predictions/` once it is.

    A part is a saved set of one video, written at once, then listed in `run.json`. The same settings go on
    from the parts that are there.

    Args:
        folder: new, empty, or of an earlier run.
        settings: JSON-ready; what the detections depend on.
        classes: of the detector.
        meta: of the data, as of `build_predictions`.
        overwrite: begin anew where an earlier run is.

    Raises:
        UsageError: if the folder holds other things, or a run with other settings, or another process is at
            work in it.
        DiskError: if it cannot be written to.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        classes: Classes,
        meta: Meta | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        check_folder(folder, overwrite=overwrite)
        self.folder, self.classes, self.meta = folder, classes, meta or Meta()
        self.settings = json.loads(json.dumps(dict(settings)))
        self.done: dict[str, dict[str, Any]] = {}
        self.failed: dict[str, str] = {}
        self._finished = False
        self._written_s = self._cost_s = 0.0
        self._taken: dict[str, str] | None = None
        self._hold = Hold(folder)
        found = None if overwrite else _record(folder)
        if found is not None:
            self._resume(found)
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._hold = Hold(folder)
            for name in (TABLES, PARTS):
                shutil.rmtree(folder / name, ignore_errors=True)
        except OSError as error:
            raise build_disk_error(folder, 1, error) from error
        self._write()

    def _resume(self, found: Mapping[str, Any]) -> None:
        before = found["settings"]
        differ = sorted(
            name for name in {*before, *self.settings} if before.get(name) != self.settings.get(name)
        )
        if differ:
            raise UsageError(
                f"{self.folder} holds detections of a run with other settings ({', '.join(differ)}); name "
                "another folder, or say --overwrite to begin anew"
            )
        self.done, self._finished = dict(found["videos"]), bool(found["finished"])

    def wanted(self, videos: Sequence[VideoFacts]) -> list[VideoFacts]:
        """The videos that are still to be processed; parts of files that have changed no longer count."""
        if self._finished and {v.video: v.stamp for v in videos} == {
            name: part["stamp"] for name, part in self.done.items()
        }:
            return []
        return [each for each in videos if not self._stands(each)]

    def _stands(self, facts: VideoFacts) -> bool:
        part = self.done.get(facts.video)
        if part is None or part["stamp"] != facts.stamp:
            return False
        try:
            frames = open_predictions(self.folder / PARTS / part["part"]).frames
            return len(frames) == int(part["frames"])
        except RoadawareError:
            return False

    def detect(
        self,
        detector: VideoDetector,
        videos: VideoSet,
        *,
        open_detector: Callable[[], VideoDetector] | None = None,
        workers: Workers = HERE,
        refused: Callable[[str, str], None] = lambda video, reason: None,
        progress: Callable[[int, int, str], None] = lambda done, total, unit: None,
    ) -> int:
        """Look at the videos that are still to be looked at, and finish the run; how many were kept.

        Args:
            detector: that looks.
            videos: all of the run.
            open_detector: by which other processes open the same one.
            workers: where videos are looked at, and how many at a time.
            refused: called with each video that cannot be taken, and why.
            progress: called with the frames done and the total.

        Raises:
            UsageError: if they are still images, and the detector does not look at each by itself.
            InputError: if no video was taken.
            KeyboardInterrupt, Terminated: if it was stopped; what is whole is kept.
            DiskError: if the disk refuses; what is whole is kept.
        """
        if videos.still and not detector.single:
            raise UsageError(
                "these are still images: name the folder of an object detector of transformers, which looks at "
                "each by itself; a network of ours needs videos"
            )
        wanted = {each.video: each for each in self.wanted(videos.facts)}
        whole = len(videos.facts) + len(videos.refused)
        ledger = Ledger(self.folder, "videos", whole, len(videos.facts) - len(wanted))
        for video, reason in videos.refused.items():
            refused(video, reason)
            self.refuse(video, reason)
            ledger.note(video, reason)
        if len(wanted) < len(videos.facts):
            there = len(videos.facts) - len(wanted)
            _log.log(NOTE, "%d of %d videos are there already", there, len(videos.facts))
        films = {film.video: film for film in videos.films}
        parts = [
            (films[video], wanted[video], self._number(place, video))
            for place, video in enumerate(videos.order)
            if video in wanted
        ]
        total, before, kept = sum(films[video].n_frames for video in wanted), 0, 0

        def tell(done: int) -> None:
            progress(before + done, total, "frames")

        # Of a video that another process looks at nothing is heard until it is over.
        moved = tell if workers.is_inline(len(parts)) else None
        act = partial(_detect_part, self.folder / PARTS, self.classes, self.meta, moved)
        work = OpenedPerWorker(act, open_detector or (lambda: detector), detector)
        try:
            with ledger, closing(map_parts(work, parts, workers)) as results:
                for each in results:
                    film, facts, _ = parts[each.place]
                    if each.unforeseen:
                        raise RuntimeError(f"{film.video}: {each.failure}")
                    row, fault = each.value or (None, each.failure or "")
                    if row is not None:
                        self._list(facts, row)
                        kept += 1
                        ledger.note(film.video)
                    else:
                        refused(film.video, fault)
                        self.refuse(film.video, fault)
                        ledger.note(film.video, fault)
                    before += film.n_frames
                    tell(0)
        except (KeyboardInterrupt, Terminated):
            self.flush()
            raise
        self.finish(videos.order)
        return kept

    def keep(self, facts: VideoFacts, found: Sequence[FrameDetections], missing: int = 0) -> None:
        """Write the part of a video and list it; of very many videos the list follows a little later.

        Args:
            facts: of the video.
            found: of all its frames that could be processed.
            missing: frames whose images cannot be read.

        Raises:
            DiskError: if the disk refuses; the other parts are kept.
        """
        part = self._number(len(self.done), facts.video)
        self._list(
            facts, _save_part(self.folder / PARTS / part, self.classes, self.meta, facts, found, missing)
        )

    def _list(self, facts: VideoFacts, row: dict[str, Any]) -> None:
        """Note that the part of a video is there."""
        self.done[facts.video] = row
        self.failed.pop(facts.video, None)
        self._finished = False
        self._write_soon()

    def _number(self, place: int, video: str) -> str:
        """The name of a video's part: its place among all, so that who comes back gives the same, unless another has it."""
        if self._taken is None:
            self._taken = {part["part"]: name for name, part in self.done.items()}
        name = self.done[video]["part"] if video in self.done else f"{place:05d}"
        while self._taken.setdefault(name, video) != video:
            place = max(place, len(self._taken)) + 1
            name = f"{place:05d}"
        return str(name)

    def refuse(self, video: str, reason: str) -> None:
        """Note that a video cannot be taken.

        Raises:
            DiskError: if the disk refuses.
        """
        self.failed[video] = reason
        self.done.pop(video, None)
        self._finished = False
        self._write_soon()

    def finish(self, videos: Sequence[str]) -> None:
        """Join the parts to one saved set, and remove them where every video was taken.

        Args:
            videos: their order in the set; those that were refused are passed over.

        Raises:
            InputError: if no video was taken.
            DiskError: if the disk refuses; the parts are still there.
        """
        if self._finished:
            self._remove_parts()  # who was killed in the midst of that left some
            return
        names = [name for name in videos if name in self.done]
        self.done = {name: self.done[name] for name in names}
        if not names:
            first = next(iter(self.failed.values()), "there is no video")
            raise InputError(f"none of {len(videos)} videos could be taken; the first: {first}")
        self._join([self.done[name] for name in names])
        self._finished = not self.failed
        self._write()
        if self._finished:
            self._remove_parts()

    def _remove_parts(self) -> None:
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)

    def _join(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """One set of all parts, in little memory: tables are streamed from file to file."""
        target = self.folder / TABLES
        meta = build_predictions({}, self.classes, meta=self.meta).meta
        path = target
        try:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            files = {}
            for table in ("videos", "frames", "boxes", "labels"):
                rows, count = _rows(self.folder / PARTS, parts, table)
                if count:
                    path = _write_merged(rows, target / table)
                    files[table] = (path, count)
        except (OSError, pl.exceptions.ComputeError) as error:
            shutil.rmtree(target, ignore_errors=True)
            if not isinstance(error, OSError) and "os error" not in str(error):
                raise
            raise build_disk_error(path, 1, error) from error
        register_table_files(target, meta, files)

    def _write_soon(self) -> None:
        """Write the record, unless that has just been done and takes long, as that of thousands of videos."""
        if time.monotonic() - self._written_s >= _RARER * self._cost_s:
            self._write()

    def flush(self) -> None:
        """Write the record as it is now.

        Raises:
            DiskError: if the disk refuses.
        """
        self._write()

    def _write(self) -> None:
        started_s = time.monotonic()
        record = {
            "format": FORMAT,
            "version": __version__,
            "settings": self.settings,
            "videos": self.done,
            "failed": self.failed,
            "finished": self._finished,
        }
        write_atomically(self.folder / RECORD, (json.dumps(record, indent=1) + "\n").encode())
        self._written_s = time.monotonic()
        self._cost_s = self._written_s - started_s


def _detect_part(
    folder: Path,
    classes: Classes,
    meta: Meta,
    moved: Callable[[int], None] | None,
    detector: VideoDetector,
    part: tuple[Film, VideoFacts, str],
) -> tuple[dict[str, Any] | None, str]:
    """Look at a video, and save what is detected: its entry of the record, or why it cannot be taken."""
    film, facts, name = part
    found, faults = _look(detector, film, facts, moved or (lambda done: None))
    if faults and not found:
        return None, faults[0]
    return _save_part(folder / name, classes, meta, facts, found, len(faults)), ""


def _save_part(
    folder: Path,
    classes: Classes,
    meta: Meta,
    facts: VideoFacts,
    found: Sequence[FrameDetections],
    missing: int,
) -> dict[str, Any]:
    """Save what is detected in a video; its entry of the record."""
    row = pl.DataFrame({name: [value] for name, value in facts.row.items() if value is not None})
    predictions = build_predictions({facts.video: found}, classes, videos=row, meta=meta)
    if CORNER in classes.kinds:
        predictions = add_top_label(predictions, CORNER)
    shutil.rmtree(folder, ignore_errors=True)
    save(predictions, folder)
    return {
        "part": folder.name,
        "stamp": facts.stamp,
        "frames": len(predictions.frames),
        "boxes": len(predictions.boxes),
        **({"labels": len(predictions.labels)} if len(predictions.labels) else {}),
        **({"missing": missing} if missing else {}),
    }


def _look(
    detector: VideoDetector, film: Film, facts: VideoFacts, moved: Callable[[int], None]
) -> tuple[list[FrameDetections], list[str]]:
    """What is detected in a video, and why images cannot be read; a fault in a video leaves nothing of it."""
    found: list[FrameDetections] = []
    faults: list[str] = []
    if film.stills:
        batches = iterate_batches(film, None, detector.batch, lambda shot: faults.append(shot.fault))
        for frames, images in batches:
            detections = detector.follow(images)
            found += [replace(each, frame=frame) for each, frame in zip(detections, frames, strict=True)]
            moved(len(found) + len(faults))
        return found, faults
    if hasattr(detector, "set_rate"):
        detector.set_rate(facts.row.get("fps"))
    try:
        for each in detector.detections(iterate_images(film), film.n_frames):
            found.append(each)
            moved(len(found))
    except InputError as error:
        return [], [str(error)]
    return found, faults


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Fail early where a run cannot be written.

    Raises:
        UsageError: if the folder is a file, or holds other things than a run of ours.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder to write into")
    if not folder.is_dir() or _record(folder) is not None:
        return
    try:
        others = list_folder_names(folder)
    except OSError as error:
        raise DiskError(f"{folder} cannot be looked into: {error.strerror}; name another folder") from error
    if others:
        what = f"{folder} holds other things ({', '.join(others[:5])})"
        raise UsageError(f"{what}; name a new or empty folder")


def _record(folder: Path) -> dict[str, Any] | None:
    """What the record of a run says; None where there is none of ours."""
    with suppress(RoadawareError, OSError, ValueError, RecursionError):
        found = json.loads(read_regular(folder / RECORD, limit=_LIMIT))
        if isinstance(found, dict) and found.get("format") == FORMAT:
            whole = isinstance(found.get("settings"), dict) and isinstance(found.get("videos"), dict)
            return found if whole else {**found, "settings": {}, "videos": {}, "finished": False}
    return None


def _rows(folder: Path, parts: Sequence[Mapping[str, Any]], table: str) -> tuple[list[pl.LazyFrame], int]:
    """The rows of a table in each part, boxes numbered through, and how many there are."""
    frames, begin, count = [], 0, 0
    for part in parts:
        rows = 1 if table == "videos" else part.get(table, 0)
        if rows:
            paths = sorted((folder / part["part"]).glob(f"{table}-*.parquet"))
            frame = scan_parquet(paths)
            if table in ("boxes", "labels"):
                frame = frame.with_columns(pl.col("box") + begin)
            frames.append(frame)
        begin += part["boxes"]
        count += rows
    return frames, count


def _write_merged(frames: Sequence[pl.LazyFrame], beside: Path) -> Path:
    """A file with the rows of all frames, under a new name; of very many frames by way of larger files."""
    between: list[Path] = []
    while len(frames) > _TOGETHER:
        groups = [frames[first : first + _TOGETHER] for first in range(0, len(frames), _TOGETHER)]
        made = [_sunk(group, beside) for group in groups]
        between += made
        frames = [scan_parquet(path) for path in made]
    found = _sunk(frames, beside)
    for path in between:
        path.unlink()
    return found


def _sunk(frames: Sequence[pl.LazyFrame], beside: Path) -> Path:
    path = make_temporary_path(beside)
    pl.concat(frames, how="diagonal_relaxed").sink_parquet(path, compression="zstd", maintain_order=True)
    return path
