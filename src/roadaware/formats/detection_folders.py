"""The files of a folder of detections: which video and frame each is, and which are refused by their name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.sources import build_read_error, to_printable

_NAME = re.compile(r"(\d{5,9})\.pkl", re.ASCII)
_DEEPEST = 8


@dataclass(frozen=True)
class FrameFile:
    """One file of detections.

    Args:
        path: where it lies.
        name: its path from the folder, with `/` between its parts.
        frame: counts from 0.
    """

    path: str
    name: str
    frame: int


def find_detection_folder(folder: Path) -> Path:
    """The folder itself, or the one called `detections-...` right inside it.

    Raises:
        DatasetNotFoundError: if nothing is there, or several are called so.
        InputError: if it is no folder or cannot be listed.
    """
    where = to_printable(str(folder))
    if not folder.exists():
        raise DatasetNotFoundError(f"there is nothing at {where}; expected a folder of detections")
    if not folder.is_dir():
        raise InputError("expected a folder of detections, found a file", where=where)
    try:
        held = sorted(
            entry.name
            for entry in os.scandir(folder)
            if (entry.name.startswith("detections-") and entry.is_dir())
        )
    except OSError as error:
        raise build_read_error(error, where) from error
    if len(held) > 1:
        raise DatasetNotFoundError(
            f"{where} holds several folders of detections: {', '.join(held)}; name one"
        )
    return folder / held[0] if held else folder


def list_frame_files(folder: Path, *, first_frame: int, findings: Findings) -> dict[str, list[FrameFile]]:
    """Video to its files in the order of frames; videos are folders at any depth, in the order of names.

    Files whose name is no frame number, and links, are refused; hidden ones and empty folders are passed by.

    Args:
        folder: holds `<video>/<frame, five digits>.pkl`.
        first_frame: number of the first frame of a video in the files' names.
        findings: takes what is refused.

    Raises:
        InputError: if the folder cannot be listed.
    """
    found: dict[str, list[FrameFile]] = {}
    for video, entries in _walk(str(folder), "", 0, findings):
        files = []
        for entry in entries:
            name = f"{video}/{entry.name}" if video else entry.name
            reason, frame = _parse_frame_number(entry, first_frame)
            if not video and not reason:
                reason = "a file of detections that lies in no video's folder"
            if reason:
                findings.reject("files", name, "", reason)
            else:
                files.append(FrameFile(entry.path, name, frame))
        if files:
            found[video] = sorted(files, key=lambda file: file.frame)
    return dict(sorted(found.items()))


def _parse_frame_number(entry: os.DirEntry[str], first_frame: int) -> tuple[str, int]:
    """Why a file is no frame's, or its frame."""
    match = _NAME.fullmatch(entry.name)
    if match is None or entry.name != f"{int(match[1]):05d}.pkl":
        return "the name is no frame number of five digits and .pkl", 0
    if entry.is_symlink():
        return "a link; only regular files are read", 0
    if int(match[1]) < first_frame:
        return f"the number lies before the first frame, which is {first_frame:05d}", 0
    return "", int(match[1]) - first_frame


def _walk(
    path: str, video: str, depth: int, findings: Findings
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Every folder with what lies in it that is no folder, sorted."""
    files: list[os.DirEntry[str]] = []
    folders: list[os.DirEntry[str]] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(entry)
    except OSError as error:
        raise build_read_error(error, to_printable(path)) from error
    yield video, sorted(files, key=lambda entry: entry.name)
    for folder in sorted(folders, key=lambda entry: entry.name):
        inner = f"{video}/{folder.name}" if video else folder.name
        if depth == _DEEPEST:
            findings.reject("files", inner, "", f"a folder more than {_DEEPEST} deep")
        else:
            yield from _walk(folder.path, inner, depth + 1, findings)
