"""KITTI: the object detection set, one picture with one LiDAR sweep each.

Geiger, Lenz and Urtasun, "Are we ready for autonomous driving?", CVPR 2012; cvlibs.net/datasets/kitti;
CC BY-NC-SA 3.0.

Takes the folder with `training/` and `testing/`, one of these, or a zip: `calib/` and, where boxes are known,
`label_2/`. Pictures (`image_2/`) and sweeps (`velodyne/`) lie beside them and are opened when they are asked
for; of a picture that is there the size is read. Every picture is a video of one frame, since sizes and
calibration differ from one to the next. The vehicle's frame is that of its inertial unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roadaware.errors import InputError
from roadaware.scenes.readers import Progress
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.kitti_files import CLASSES, OWN, Calibration, calibration_of, label_of
from roadaware.scenes.readers.locate import locate
from roadaware.scenes.readers.pictures import picture_size
from roadaware.scenes.readers.sensed import KIND, RowError, Sensed, flat
from roadaware.scenes.readers.source import Source
from roadaware.scenes.tables import Meta, Scenes

VERSION = 3
LICENCE = "CC BY-NC-SA 3.0"
CAMERA, LIDAR, LAYOUT, FIELDS = "image_2", "velodyne", "HDL-64E", "x y z intensity"
_PARTS = {"training": "train", "testing": "test"}
_CALIB, _LABELS = "calib", "label_2"
_WANTED = "KITTI needs its annotations, 'calib/' and 'label_2/' in 'training/' or 'testing/',"
_HINT = "Point at the folder that holds 'training/'."
_TOLD_EVERY = 200
_NUMBER = re.compile(r"(^|/)\d{6}\.txt$", re.ASCII)


@dataclass(frozen=True)
class _Shot:
    """One picture: its folder with a slash at the end, part of the set, number, and whether it has labels."""

    folder: str
    part: str
    number: str
    labelled: bool

    @property
    def name(self) -> str:
        return f"{self.part}/{self.number}"

    def file(self, kind: str, suffix: str) -> str:
        return f"{self.folder}{kind}/{self.number}{suffix}"


def find(path: Path) -> Source:
    """The set at `path`: the folder, one inside it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return locate(path, lambda source: bool(_folders(source)), _WANTED, _HINT)


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [
        name
        for folder, _ in _folders(source)
        for kind in (_CALIB, _LABELS)
        for name in _numbered(source, f"{folder}{kind}")
    ]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All pictures as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    A picture whose labels cannot be read is refused; one whose calibration cannot be read has no sensors, one
    whose own file is damaged no size.

    Args:
        source: see `find`.
        processes: not used: files are small.
        progress: told how many pictures are done, of how many.

    Raises:
        InputError: if no picture can be read.
    """
    findings = Findings()
    sensed = Sensed(findings, OWN)
    errors: list[InputError] = []
    shots = list(_shots(source))
    for done, shot in enumerate(shots, 1):
        try:
            _take(source, shot, sensed)
        except InputError as error:
            errors.append(error)
        if progress is not None and (done % _TOLD_EVERY == 0 or done == len(shots)):
            progress(done, len(shots), "pictures")
    if not sensed.videos:
        first = errors[0]
        raise InputError(
            f"none of {len(shots)} pictures can be read: {first.message}", where=first.where, hint=_HINT
        )
    tables = sensed.tables(CLASSES)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset="KITTI",
            licence=LICENCE,
            vocabularies={KIND: CLASSES},
            source_digest=source.contents(inputs(source)),
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _folders(source: Source) -> list[tuple[str, str]]:
    """Folders (with a slash at the end) that hold pictures' files, with the part of the set they are."""
    found = [(f"{part}/", part) for part in _PARTS if _numbered(source, f"{part}/{_CALIB}")]
    if found or not _numbered(source, _CALIB):
        return found
    return [("", "training" if source.has_folder(_LABELS) else "testing")]


def _numbered(source: Source, folder: str) -> list[str]:
    """Files of pictures in a folder; others are foreign."""
    return [name for name in source.files(folder, ".txt") if _NUMBER.search(name)]


def _shots(source: Source) -> Iterator[_Shot]:
    for folder, part in _folders(source):
        kinds = (_CALIB, _LABELS)
        files = {name for kind in kinds for name in _numbered(source, f"{folder}{kind}")}
        for number in sorted({name[-10:-4] for name in files}):
            yield _Shot(folder, part, number, f"{folder}{_LABELS}/{number}.txt" in files)


def _take(source: Source, shot: _Shot, sensed: Sensed) -> None:
    """Add one picture.

    Raises:
        InputError: if its labels cannot be read; it is told already.
    """
    findings = sensed.findings
    calib, labels = shot.file(_CALIB, ".txt"), shot.file(_LABELS, ".txt")
    lines: list[str] | None = None
    if shot.labelled:
        try:
            lines = _text(source, labels)
        except InputError as error:
            findings.reject_file(labels, error)
            raise
        findings.read["files"] += 1
    _take_picture(source, shot, sensed, annotated=lines is not None)
    try:
        found = calibration_of(_text(source, calib), source.where(calib))
    except InputError as error:
        findings.reject_file(calib, error)
    else:
        findings.read["files"] += 1
        _take_sensors(shot, found, sensed)
    for number, line in enumerate(lines or (), 1):
        try:
            label, row = label_of(line)
        except RowError as error:
            findings.reject("boxes", labels, line, str(error), number)
        else:
            sensed.add_box(label, video=shot.name, frame=0, **row)


def _text(source: Source, name: str) -> list[str]:
    """The lines of a file of plain text.

    Raises:
        InputError: if it cannot be read, is empty, or holds other characters.
    """
    data = source.read(name)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is no plain text"
        raise InputError(message, where=source.where(name), hint="fetch the file again") from error
    lines = text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError("the file is empty", where=source.where(name), hint="fetch the file again")
    return lines


def _take_picture(source: Source, shot: _Shot, sensed: Sensed, *, annotated: bool) -> None:
    path = shot.file(CAMERA, ".png")
    size = picture_size(source, path, sensed.findings) or (None, None)
    sensed.videos.append(
        {
            "video": shot.name,
            "scene": shot.name,
            "width_px": size[0],
            "height_px": size[1],
            "n_frames": 1,
            "sensor": CAMERA,
            "splits": [f"default/{_PARTS[shot.part]}"],
        }
    )
    sensed.frames.append({"video": shot.name, "frame": 0, "annotated": annotated, "path": path})
    sweep = {"path": shot.file(LIDAR, ".bin"), "fields": FIELDS}
    sensed.sweeps.append({"scene": shot.name, "sensor": LIDAR, "frame": 0, **sweep})


def _take_sensors(shot: _Shot, found: Calibration, sensed: Sensed) -> None:
    at = {"scene": shot.name, "from_frame": 0}
    lens = flat(found.intrinsics)
    sensed.sensors += [
        {**at, "sensor": CAMERA, "intrinsics": lens, "ego_SE3_sensor": flat(found.ego_SE3_camera)},
        {**at, "sensor": LIDAR, "ego_SE3_sensor": flat(found.ego_SE3_lidar), "layout": LAYOUT},
    ]
