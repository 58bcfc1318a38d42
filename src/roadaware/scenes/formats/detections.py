"""Folders of detections as the published detector of ROAD writes them: one pickle per frame, in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from roadaware.arrays import Numbers
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.disk import read_regular
from roadaware.scenes.formats.detection_tables import Read, drop_other_widths, tables_of
from roadaware.scenes.formats.folders import FrameFile, detection_folder, frame_files
from roadaware.scenes.formats.kinds import NETWORK_SIZE, kinds_by_width, kinds_of
from roadaware.scenes.formats.knowledge import Known, refuse_findings
from roadaware.scenes.formats.writing import frame_pickles, write_folder
from roadaware.scenes.pickles import load
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.source import shown
from roadaware.scenes.tables import Scenes

Progress = Callable[[int, int, str], None]
_LIMIT = 1 << 26
_TOLD_EVERY = 500


def read_detections(
    folder: Path,
    scenes: Scenes | None = None,
    *,
    size: tuple[int, int] = NETWORK_SIZE,
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    videos: Iterable[str] | None = None,
    first_frame: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
) -> Predictions:
    """Detections of a folder as Predictions: every box with agentness and class scores, every frame with its.

    A file is `<video>/<frame, five digits>.pkl` and holds `{"ego": (k,), "main": (n, 5 + classes)}`: the
    scores of the vehicle's action; corners in pixels, agentness and class scores. Boxes come in the order of
    videos, frames and rows of the files. What cannot be taken is in `rejected` with the reason: files that
    are damaged, of another width, or of an unknown video or frame; boxes upside down or with a number that
    is not finite or a score outside [0, 1]. Files are read by `pickles.load`, which runs nothing.

    Args:
        folder: holds a folder for each video, or one folder called `detections-...` that does.
        scenes: what was detected in: gives names to scores, and tells which videos and frames there are.
        size: width and height of the images that the corners are pixels of.
        vocabularies: kind to labels, in place of those of the scenes. Without either, 148 class scores are
            those of ROAD 1.0 and 24 those of UCF101-24, their labels numbered.
        videos: only these; all unless told.
        first_frame: number of the first frame of a video in the files' names.
        strict: anything rejected is an error.
        progress: told how many files are done, of how many.

    Raises:
        DatasetNotFoundError: if there are no files of detections.
        InputError: if none can be taken, or the scores' names are not known.
        FindingsError: under `strict`, if anything was rejected.

    Source: the `detections-*` folders that 3D-RetinaNet writes when it is tested.
    """
    folder = detection_folder(Path(folder))
    findings = Findings()
    listed = frame_files(folder, first_frame=first_frame, findings=findings)
    if videos is not None:
        wanted = set(videos)
        listed = {video: files for video, files in listed.items() if video in wanted}
    if not listed:
        raise _nothing(folder, findings)
    known = Known(scenes)
    read = _read_all(known.sift(listed, findings), findings, progress)
    if read.frame:
        kinds = kinds_of(scenes, vocabularies) or kinds_by_width(*read.widths(), where=shown(str(folder)))
        drop_other_widths(read, kinds, findings)
    if not read.frame:
        raise _none_taken(read, findings)
    claims = tables_of(read, kinds, size, findings)
    if strict:
        refuse_findings(shown(str(folder)), claims)
    return claims


def write_detections(predictions: Predictions, folder: Path) -> None:
    """Detections as a folder of pickles that `read_detections` and the published code read; the inverse.

    What the format has no place for is left out: tubes, sizes of images, and whether a box was interpolated.
    Every frame of `frames` and of `boxes` gets a file. The folder appears whole or not at all.

    Args:
        predictions: boxes with `score` and dense `scores`; frames with dense `scores` where there are any.
        folder: where to; must not exist, or be empty.

    Raises:
        UsageError: if the folder exists and holds anything.
        InputError: if there are no scores, or the frames have none while others have.
        DiskError: if the disk refuses; nothing stands there then.
    """
    write_folder(Path(folder), frame_pickles(predictions))


def _read_all(
    listed: Mapping[str, Sequence[FrameFile]], findings: Findings, progress: Progress | None
) -> Read:
    """Every file's arrays; damaged files are refused."""
    read = Read()
    total, done = sum(map(len, listed.values())), 0
    for video, files in listed.items():
        for file in files:
            try:
                main, ego = _arrays(file)
            except InputError as error:
                findings.reject_file(file.name, error)
                read.errors.append(error)
            else:
                read.video.append(video)
                read.frame.append(file.frame)
                read.file.append(file.name)
                read.main.append(main)
                read.ego.append(ego)
            done += 1
            if progress is not None and (done % _TOLD_EVERY == 0 or done == total):
                progress(done, total, "files")
    findings.read["files"] += len(read.frame)
    return read


def _arrays(file: FrameFile) -> tuple[Numbers, Numbers]:
    """(n, 5 + classes) boxes with scores and (k,) scores of the frame.

    Raises:
        InputError: if the file is not what it should be.
    """
    try:
        held = load(read_regular(Path(file.path), limit=_LIMIT), shown(file.path))
    except FileNotFoundError as error:
        raise InputError("the file has gone", where=shown(file.path)) from error
    if type(held) is not dict or "main" not in held:
        what = (
            f"a dict of {', '.join(map(repr, list(held)[:5]))}" if type(held) is dict else type(held).__name__
        )
        raise InputError(
            f"expected a dict with 'main' and 'ego', found {shown(what)}", where=shown(file.path)
        )
    main, ego = held["main"], held.get("ego", np.zeros(0, np.float32))
    for name, array, dimensions in (("main", main, 2), ("ego", ego, 1)):
        if type(array) is not np.ndarray or array.ndim != dimensions or array.dtype.kind != "f":
            found = f"{array.dtype} {array.shape}" if type(array) is np.ndarray else type(array).__name__
            message = f"'{name}' should be a {dimensions}-dimensional array of floats, not {found}"
            raise InputError(message, where=shown(file.path))
    return main, ego


def _nothing(folder: Path, findings: Findings) -> DatasetNotFoundError:
    """Why there is not one file to read."""
    refused = findings.table().head(3).select("file", "reason").rows()
    told = "".join(f"\n  {file}: {reason}" for file, reason in refused)
    return DatasetNotFoundError(
        f"no detections in {shown(str(folder))}: expected <video>/<frame, five digits>.pkl{told}"
    )


def _none_taken(read: Read, findings: Findings) -> InputError:
    """Why not one file could be taken: the first reason."""
    if read.errors:
        first = read.errors[0]
        count = len(read.errors)
        message = (
            first.message if count == 1 else f"none of {count} files can be read; the first: {first.message}"
        )
        return InputError(message, where=first.where, hint=first.hint)
    reason = findings.table().row(0, named=True)
    hint = "give the scenes that were detected in, or none"
    return InputError(f"no file can be taken; the first: {reason['reason']}", where=reason["file"], hint=hint)
