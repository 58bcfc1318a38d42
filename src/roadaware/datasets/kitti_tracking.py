"""KITTI tracking: drives at ten images a second, with the track of everybody in two and three dimensions.

Geiger, Lenz and Urtasun, "Are we ready for autonomous driving?", CVPR 2012; cvlibs.net/datasets/kitti;
CC BY-NC-SA 3.0.

Takes the folder with `training/`, `label_02/` itself, or a zip: a file of labels for each drive. Images
(`image_02/0000/000000.png`) may lie beside them; of the first one of a drive the size is read. A track is named by
its number in its drive; boxes of DontCare have none, and are to be ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from roadaware.datasets import Progress
from roadaware.datasets.issues import Findings
from roadaware.datasets.kitti import (
    OWN,
    SCORED,
    build_kitti_tables,
    parse_label,
    read_text_lines,
    split_score,
)
from roadaware.datasets.sensor_tables import RowError, Sensed, read_picture_size
from roadaware.errors import InputError
from roadaware.io.sources import Source, find_source
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 1
FPS = 10.0
"""As the raw data were recorded; the labels do not say it."""
_OTHER_NAMES = {"Person": "Person_sitting"}
"""What the tracking labels call a class of the detection labels."""
_FIELDS, _SCORED = 17, 18
_WHOLE = re.compile(r"-?\d{1,7}", re.ASCII)
_FILE = re.compile(r"(^|/)\d{4}\.txt$", re.ASCII)
_PLACES = ("training/label_02", "label_02", "")
_WANTED = (
    "KITTI tracking needs its annotations, files such as 0000.txt in 'training/label_02/' or 'label_02/',"
)
_HINT = "Point at the folder that holds 'training/' or 'label_02/'."


def find(path: Path) -> Source:
    """The set at `path`: the folder, one inside it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(inputs(source)), _WANTED, _HINT)


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    for place in _PLACES:
        found = [name for name in source.files(place, ".txt") if _FILE.search(name)]
        # Six digits are KITTI's detection labels, whose folder may stand beside.
        if found and (place or not source.has_folder("calib")):
            return sorted(found)
    return []


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    predicted: bool = False,
) -> Scenes | Predictions:
    """All drives as Scenes; what was refused is in `rejected`.

    Boxes have what a line of labels says in space: `height_m`, `width_m`, `length_m`, `x_m`, `y_m`, `z_m` of the middle of
    the bottom in the camera's frame, and `rotation_y_rad`.

    Args:
        predicted: read results, whose lines have a score behind the 17 fields.

    Raises:
        InputError: if no drive can be read.
    """
    findings, names, errors = Findings(), inputs(source), []
    sensed = Sensed(findings, OWN | SCORED if predicted else OWN)
    for done, name in enumerate(names, 1):
        try:
            _take(source, name, sensed, predicted=predicted)
        except InputError as error:
            findings.reject_file(name, error)
            errors.append(error)
        if progress is not None:
            progress(done, len(names), "drives")
    if not sensed.videos:
        raise InputError(
            f"none of {len(names)} drives can be read: {errors[0].message}", where=errors[0].where, hint=_HINT
        )
    return build_kitti_tables("kitti_tracking", sensed, source.contents(names), predicted=predicted)


def _take(source: Source, name: str, sensed: Sensed, *, predicted: bool) -> None:
    """Add one drive.

    Raises:
        InputError: if its labels cannot be read.
    """
    lines = read_text_lines(source, name)
    sensed.findings.read["files"] += 1
    video, last = name[-8:-4], 0
    seen: set[tuple[int, str]] = set()
    for number, line in enumerate(lines, 1):
        try:
            plain, score = split_score(line, _FIELDS) if predicted else (line, None)
            frame, track, label, row = parse_track_label(plain)
            if score is not None:
                row["score"] = score
            if track is not None and (frame, track) in seen:
                raise RowError(f"a second box of track {track} in frame {frame}")
        except RowError as error:
            sensed.findings.reject("boxes", name, line, str(error), number)
            continue
        last = max(last, frame)
        if track is not None:
            seen.add((frame, track))
            row["tube"] = sensed.tube(video, track)
        sensed.add_box(label, video=video, frame=frame, **row)
    folder = f"{name[: -len('label_02/0000.txt')]}image_02/{video}/"
    size = read_picture_size(source, f"{folder}000000.png", sensed.findings) or (None, None)
    sensed.videos.append(
        {
            "video": video, "scene": video, "width_px": size[0], "height_px": size[1], "fps": FPS,
            "n_frames": last + 1, "sensor": "image_02", "splits": ["default/train"],
        }
    )  # fmt: skip
    sensed.frames.extend(_list_frames(video, last + 1, folder))


def _list_frames(video: str, count: int, folder: str) -> Iterator[dict[str, object]]:
    for frame in range(count):
        path = f"{folder}{frame:06d}.png"
        yield {"video": video, "frame": frame, "t_s": frame / FPS, "annotated": True, "path": path}


def parse_track_label(line: str) -> tuple[int, str | None, str, dict[str, object]]:
    """Frame, track (None for DontCare), class, and the columns of the table `boxes` of a line of labels.

    Raises:
        RowError: if it has another number of fields, no whole frame or track, an unknown class, or a box that is none.
    """
    words = line.split()
    if len(words) != _FIELDS:
        text = " (the 18th is a score: these are predictions)" if len(words) == _SCORED else ""
        raise RowError(f"a label has {_FIELDS} fields and this line {len(words)}{text}")
    if not _WHOLE.fullmatch(words[0]) or int(words[0]) < 0:
        raise RowError(f"the frame is a whole number from 0, not '{words[0][:40]}'")
    if not _WHOLE.fullmatch(words[1]) or int(words[1]) < -1:
        raise RowError(f"the track is a whole number from 0, or -1 for none, not '{words[1][:40]}'")
    label = _OTHER_NAMES.get(words[2], words[2])
    found, row = parse_label(" ".join([label, *words[3:]]))
    if found != "DontCare" and words[1] == "-1":
        raise RowError(f"a {found} has no track")
    track = None if found == "DontCare" else str(int(words[1]))
    return int(words[0]), track, found, row
