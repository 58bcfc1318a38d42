"""KITTI: the object detection set, one image with one LiDAR sweep each.

Geiger, Lenz and Urtasun, "Are we ready for autonomous driving?", CVPR 2012; cvlibs.net/datasets/kitti;
CC BY-NC-SA 3.0.

Takes the folder with `training/` and `testing/`, one of these, or a zip: `calib/` and, where boxes are known,
`label_2/`, or `label_2/` alone. Images (`image_2/`) and sweeps (`velodyne/`) lie beside them and are opened when they are
asked for; of an image that is there the size is read. Every image is a video of one frame, since sizes and
calibration differ from one to the next. The vehicle's frame is that of its inertial unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings
from roadaware.datasets.sensor_tables import KIND, RowError, Sensed, flatten_pose, read_picture_size
from roadaware.errors import InputError
from roadaware.geometry.poses import find_camera_error, find_pose_error, invert_pose
from roadaware.io.sources import Source, find_source
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

# KITTI's files: the calibration of one image, and one line of its labels.

CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc", "DontCare")
OWN: dict[str, Any] = dict.fromkeys(
    (
        "truncated_share",
        "alpha_rad",
        "height_m",
        "width_m",
        "length_m",
        "x_m",
        "y_m",
        "z_m",
        "rotation_y_rad",
    ),
    pl.Float32,
)
"""What a line of labels says besides the box: how far it leaves the image, and the box in space."""
SCORED: dict[str, Any] = {"score": pl.Float64}
"""What a line of results says besides."""
_NEEDED = {"P2": 12, "R0_rect": 9, "Tr_velo_to_cam": 12, "Tr_imu_to_velo": 12}
_OTHER_NAMES = {"R_rect": "R0_rect", "Tr_velo_cam": "Tr_velo_to_cam", "Tr_imu_velo": "Tr_imu_to_velo"}
_IN_SPACE = ("height_m", "width_m", "length_m", "x_m", "y_m", "z_m", "rotation_y_rad")
_FIELDS, _LARGEST = 15, 1e6
_OCCLUSION = {"0": "none", "1": "part", "2": "full", "3": None}
UNKNOWN = {
    "truncated_share": -1,
    "alpha_rad": -10,
    "height_m": -1,
    "width_m": -1,
    "length_m": -1,
    "x_m": -1000,
    "y_m": -1000,
    "z_m": -1000,
    "rotation_y_rad": -10,
}
"""What KITTI writes for "not known", above all in lines of DontCare."""
_NOWHERE = dict.fromkeys(_IN_SPACE)
_IN_IMAGE = [(name, UNKNOWN[name]) for name in ("truncated_share", "alpha_rad")]
_COLUMNS = (*CORNERS, "occlusion", "ignore", *OWN)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Poses of camera 2 and the LiDAR of one image in the vehicle.

    Args:
        intrinsics: (3, 3) camera matrix of the rectified image.
        ego_SE3_camera: (4, 4).
        ego_SE3_lidar: (4, 4).
    """

    intrinsics: Floats
    ego_SE3_camera: Floats  # noqa: N815, the project's way to name transforms
    ego_SE3_lidar: Floats  # noqa: N815


def parse_calibration(lines: Sequence[str], where: str) -> Calibration:
    """Parse a calibration file.

    Points of the LiDAR come to camera 2 by Tr_velo_to_cam, R0_rect and the shift that is in P2.

    Raises:
        InputError: if a matrix is missing, has another number of numbers, or is no pose.
    """
    held = dict(_matrix(line, number, where) for number, line in enumerate(lines, 1) if line.strip())
    missing = [name for name in _NEEDED if name not in held]
    if missing:
        message = f"expected {', '.join(_NEEDED)}; {', '.join(missing)} is missing"
        raise InputError(message, where=where, hint="fetch the file again")
    projection = held["P2"].reshape(3, 4)
    lens = projection[:, :3]
    if fault := find_camera_error(lens):
        raise InputError(f"P2 is no camera matrix: {fault}", where=where)
    shift, turn = np.eye(4), np.eye(4)
    # The fourth column of P2 is the camera matrix times the shift of camera 2 from the rectified camera 0.
    shift[:3, 3] = np.linalg.solve(lens, projection[:, 3])
    turn[:3, :3] = held["R0_rect"].reshape(3, 3)
    poses = {"the shift in P2": shift, "R0_rect": turn}
    for name in ("Tr_velo_to_cam", "Tr_imu_to_velo"):
        poses[name] = np.vstack([held[name].reshape(3, 4), [0, 0, 0, 1]])
    for name, pose in poses.items():
        if fault := find_pose_error(pose):
            raise InputError(f"{name} is no pose: {fault}", where=where)
    # The vehicle's frame is that of its IMU.
    ego_lidar = invert_pose(poses["Tr_imu_to_velo"])
    camera_lidar = shift @ poses["R0_rect"] @ poses["Tr_velo_to_cam"]
    return Calibration(lens, ego_lidar @ invert_pose(camera_lidar), ego_lidar)


def parse_label(line: str) -> tuple[str, dict[str, Any]]:
    """The class of a line of labels, and its columns of the table `boxes`.

    Raises:
        RowError: if it has another number of fields, an unknown class, or a box that is none.
    """
    words = line.split()
    if len(words) != _FIELDS:
        text = " (the 16th is a score: these are predictions)" if len(words) == _FIELDS + 1 else ""
        raise RowError(f"a label has {_FIELDS} fields and this line {len(words)}{text}")
    if words[0] not in CLASSES:
        raise RowError(f"the class '{words[0][:40]}' is none of {', '.join(CLASSES)}")
    if words[2] not in (*_OCCLUSION, "-1"):
        raise RowError(f"occlusion is 0 to 3, or -1, not '{words[2][:40]}'")
    try:
        numbers = list(map(float, words[1:]))
    except ValueError:
        numbers = []
    # All at once, since lines are many; a sum shows NaN, which a comparison may miss. One that is odd is named by itself.
    if not numbers or "_" in line or not (
        sum(numbers) == sum(numbers) and min(numbers) >= -_LARGEST and max(numbers) <= _LARGEST
    ):  # fmt: skip
        numbers = [_number(word) for word in words[1:]]
    x1, y1, x2, y2 = numbers[3:7]
    if x1 > x2 or y1 > y2:
        raise RowError(f"the box {numbers[3:7]} is upside down")
    said = (
        x1,
        y1,
        x2,
        y2,
        _OCCLUSION.get(words[2]),
        words[0] == "DontCare",
        numbers[0],
        numbers[2],
        *numbers[7:],
    )
    row: dict[str, Any] = dict(zip(_COLUMNS, said, strict=True))
    nowhere = row["x_m"] == UNKNOWN["x_m"]
    if nowhere:
        row.update(_NOWHERE)
    for name, unknown in _IN_IMAGE if nowhere else UNKNOWN.items():
        if row[name] == unknown:
            row[name] = None
    return words[0], row


def parse_usual_labels(lines: pl.Series, *, predicted: bool) -> pl.DataFrame:
    """The columns of `boxes` of lines as KITTI writes them, as `parse_label` gives them, with `label` and `place`.

    Lines are many, and nearly all are written alike: fields with one blank between them. The others are not in the table.

    Args:
        lines: of labels, or of results.
        predicted: whether a score from 0 to 1 stands behind the fields.
    """
    count = _FIELDS + predicted
    words = lines.str.split_exact(" ", count).struct.unnest()
    names = (
        "truncated_share",
        "occluded",
        "alpha_rad",
        *CORNERS,
        *_IN_SPACE,
        *(("score",) if predicted else ()),
    )
    numbers = {name: pl.col(f"field_{n}").cast(pl.Float64, strict=False) for n, name in enumerate(names, 1)}
    rows = words.select(
        pl.col("field_0").alias("label"),
        pl.col("field_2").replace_strict(_OCCLUSION, default=None, return_dtype=pl.String).alias("occlusion"),
        place=pl.int_range(pl.len()),
        ends=pl.col(f"field_{count}").is_null(),
        known=pl.col("field_2").is_in([*_OCCLUSION, "-1"]) & pl.col("field_0").is_in(CLASSES),
        **numbers,
    )
    # A word that is no number is null and one that is too large infinite, which no comparison takes.
    usual = (
        pl.col("ends")
        & pl.col("known")
        & (pl.col("x1_px") <= pl.col("x2_px"))
        & (pl.col("y1_px") <= pl.col("y2_px"))
    )
    usual &= pl.all_horizontal(pl.col(name).abs() <= _LARGEST for name in names)
    usual &= pl.all_horizontal(pl.col(name).is_not_nan() for name in names)
    if predicted:
        usual &= pl.col("score").is_between(0, 1)
    rows = rows.filter(usual.fill_null(value=False)).drop("ends", "known", "occluded")
    nowhere = pl.col("x_m") == UNKNOWN["x_m"]
    return rows.with_columns(
        *(
            pl.when((pl.col(name) != unknown) & (~nowhere | (name not in _NOWHERE)))
            .then(pl.col(name))
            .alias(name)
            for name, unknown in UNKNOWN.items()
        ),
        ignore=pl.col("label") == "DontCare",
    )


def split_score(line: str, fields: int) -> tuple[str, float]:
    """A line of predictions as one of labels, and its score.

    Raises:
        RowError: if there is no score from 0 to 1 behind the fields.
    """
    words = line.split()
    if len(words) != fields + 1:
        raise RowError(
            f"a prediction has {fields + 1} fields, the last one its score, and this line {len(words)}"
        )
    score = _number(words[-1])
    if not 0 <= score <= 1:
        raise RowError(f"the score should be a number from 0 to 1 and is '{words[-1][:40]}'")
    return " ".join(words[:-1]), score


def build_kitti_tables(reader: str, sensed: Sensed, digest: str, *, predicted: bool) -> Scenes | Predictions:
    """What was read as Scenes, or as Predictions, whose boxes then have scores.

    Args:
        reader: kitti or kitti_tracking.
        sensed: the rows; of predictions with the columns of `SCORED`.
        digest: of the source's files.
        predicted: which of the two.
    """
    tables: dict[str, Any] = dict(sensed.tables(CLASSES))
    findings, entry = sensed.findings, READERS[reader]
    shared: dict[str, Any] = {
        "rejected": findings.table(),
        "meta": findings.build_meta(entry, {KIND: CLASSES}, digest),
    }
    if not predicted:
        return Scenes(**tables, **shared)
    tables["frames"] = tables["frames"].drop("annotated", strict=False)
    if len(boxes := tables["boxes"]):
        scores = boxes.select("box", "score")
        means = boxes.drop_nulls("tube").group_by("tube").agg(pl.col("score").mean())
        tables["boxes"] = boxes.drop("ignore")
        tables["labels"] = tables["labels"].join(scores, on="box", how="left", maintain_order="left")
        tables["tubes"] = tables["tubes"].join(means, on="tube", how="left", maintain_order="left")
    return Predictions(**tables, **shared)


def _matrix(line: str, number: int, where: str) -> tuple[str, Floats]:
    """Name and numbers of a line of calibration.

    Raises:
        InputError: if it has neither.
    """
    name, colon, rest = line.partition(":")
    if not colon:
        name, _, rest = line.strip().partition(" ")
    name = _OTHER_NAMES.get(name.strip(), name.strip())
    where = f"{where}, line {number}"
    try:
        found = np.array([_number(word) for word in rest.split()], dtype=np.float64)
    except RowError as error:
        raise InputError(f"'{name[:40]}': {error}", where=where) from error
    if name in _NEEDED and len(found) != _NEEDED[name]:
        raise InputError(f"{name} has {len(found)} numbers, expected {_NEEDED[name]}", where=where)
    return name, found


def _number(word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    # nan fails the comparison; Python's float takes 1_000, which no file of KITTI means.
    if not abs(found) <= _LARGEST or "_" in word:
        raise RowError(f"'{word[:40]}' is no finite number of a usual size")
    return found


VERSION = 5
CAMERA, LIDAR, LAYOUT, FIELDS = "image_2", "velodyne", "HDL-64E", "x y z intensity"
_PARTS = {"training": "train", "testing": "test"}
_CALIB, _LABELS = "calib", "label_2"
_WANTED = "KITTI needs its annotations, 'calib/' and 'label_2/' in 'training/' or 'testing/',"
_HINT = "Point at the folder that holds 'training/'."
_TOLD_EVERY = 200
_NUMBER = re.compile(r"(^|/)\d{6}\.txt$", re.ASCII)


@dataclass(frozen=True)
class _Shot:
    """One image: its folder with a slash at the end, part of the set, number, and whether it has labels."""

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
    return find_source(path, lambda source: bool(_folders(source)), _WANTED, _HINT)


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [
        name
        for folder, _ in _folders(source)
        for kind in (_CALIB, _LABELS)
        for name in _list_label_files(source, f"{folder}{kind}")
    ]


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    predicted: bool = False,
) -> Scenes | Predictions:
    """All images as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    An image whose labels cannot be read is refused; one whose calibration cannot be read has no sensors, one
    whose own file is damaged no size.

    Args:
        predicted: read results, whose lines have a score behind the 15 fields.

    Raises:
        InputError: if no image can be read.
    """
    findings = Findings()
    sensed = Sensed(findings, OWN | SCORED if predicted else OWN)
    errors: list[InputError] = []
    shots, listed = list(_shots(source)), []
    for done, shot in enumerate(shots, 1):
        try:
            listed.append((shot.name, shot.file(_LABELS, ".txt"), _take(source, shot, sensed)))
        except InputError as error:
            errors.append(error)
        if progress is not None and (done % _TOLD_EVERY == 0 or done == len(shots)):
            progress(done, len(shots), "pictures")
    if not sensed.videos:
        first = errors[0]
        raise InputError(
            f"none of {len(shots)} images can be read: {first.message}", where=first.where, hint=_HINT
        )
    _add_boxes(sensed, listed, predicted=predicted)
    return build_kitti_tables("kitti", sensed, source.contents(inputs(source)), predicted=predicted)


def _folders(source: Source) -> list[tuple[str, str]]:
    """Folders (with a slash at the end) that hold images' files, with the part of the set they are."""
    # Labels alone, as tools write them, are a set too; with calibrations some images may have none.
    for kind in (_CALIB, _LABELS):
        found = [(f"{part}/", part) for part in _PARTS if _list_label_files(source, f"{part}/{kind}")]
        if found:
            return found
        if _list_label_files(source, kind):
            return [("", "training" if source.has_folder(_LABELS) else "testing")]
    return []


def _list_label_files(source: Source, folder: str) -> list[str]:
    """Files of images in a folder; others are foreign."""
    return [name for name in source.files(folder, ".txt") if _NUMBER.search(name)]


def _shots(source: Source) -> Iterator[_Shot]:
    for folder, part in _folders(source):
        kinds = (_CALIB, _LABELS)
        files = {name for kind in kinds for name in _list_label_files(source, f"{folder}{kind}")}
        for number in sorted({name[-10:-4] for name in files}):
            yield _Shot(folder, part, number, f"{folder}{_LABELS}/{number}.txt" in files)


def _take(source: Source, shot: _Shot, sensed: Sensed) -> list[str]:
    """Add one image but for its boxes, and give the lines of its labels.

    Raises:
        InputError: if its labels cannot be read; it is reported already.
    """
    findings = sensed.findings
    calib, labels = shot.file(_CALIB, ".txt"), shot.file(_LABELS, ".txt")
    lines: list[str] | None = None
    if shot.labelled:
        try:
            lines = read_text_lines(source, labels)
        except InputError as error:
            findings.reject_file(labels, error)
            raise
        findings.read["files"] += 1
    annotated = lines is not None
    path = shot.file(CAMERA, ".png")
    size = read_picture_size(source, path, sensed.findings) or (None, None)
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
    calibrated = source.has_folder(f"{shot.folder}{_CALIB}")
    if calibrated or source.has_folder(f"{shot.folder}{LIDAR}"):
        sweep = {"path": shot.file(LIDAR, ".bin"), "fields": FIELDS}
        sensed.sweeps.append({"scene": shot.name, "sensor": LIDAR, "frame": 0, **sweep})
    # Labels alone lack no calibration.
    if calibrated:
        try:
            found = parse_calibration(read_text_lines(source, calib), source.where(calib))
        except InputError as error:
            findings.reject_file(calib, error)
        else:
            findings.read["files"] += 1
            at = {"scene": shot.name, "from_frame": 0}
            lens = flatten_pose(found.intrinsics)
            sensed.sensors += [
                {
                    **at,
                    "sensor": CAMERA,
                    "intrinsics": lens,
                    "ego_SE3_sensor": flatten_pose(found.ego_SE3_camera),
                },
                {
                    **at,
                    "sensor": LIDAR,
                    "ego_SE3_sensor": flatten_pose(found.ego_SE3_lidar),
                    "layout": LAYOUT,
                },
            ]
    return lines or []


def _add_boxes(sensed: Sensed, listed: Sequence[tuple[str, str, list[str]]], *, predicted: bool) -> None:
    """Add the boxes of all images at once, in the order of their lines; a line that is none is refused.

    Args:
        sensed: takes them.
        listed: of each image its name, its file of labels and the lines of it.
        predicted: whether they are results.
    """
    counts = [len(lines) for _, _, lines in listed]
    owner = np.repeat(np.arange(len(listed)), counts)
    every = [line for _, _, lines in listed for line in lines]
    usual = parse_usual_labels(pl.Series("line", every, dtype=pl.String), predicted=predicted)
    starts = np.cumsum([0, *counts])
    odd: list[dict[str, Any]] = []
    for place in np.setdiff1d(np.arange(len(every)), usual["place"].to_numpy()).tolist():
        line, image = every[place], int(owner[place])
        try:
            plain, score = split_score(line, _FIELDS) if predicted else (line, None)
            label, row = parse_label(plain)
        except RowError as error:
            sensed.findings.reject(
                "boxes", listed[image][1], line, str(error), place - int(starts[image]) + 1
            )
        else:
            odd.append({"label": label, "place": place, **row, **({} if score is None else {"score": score})})
    if odd:
        usual = pl.concat([usual, pl.DataFrame(odd, schema=usual.schema)]).sort("place")
    names = pl.Series("video", [name for name, _, _ in listed], dtype=pl.String)
    video = names.gather(owner[usual["place"].to_numpy()])
    sensed.box_table = usual.drop("place").with_columns(video, frame=pl.lit(0, pl.Int64))
    sensed.findings.read["boxes"] += len(usual)


def read_text_lines(source: Source, name: str) -> list[str]:
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
