"""Cuboids of proposals as files of other tools, and what people made of them there: labels of KITTI, a text per image,
detections of nuScenes, one JSON, results of Xtreme1 and labels of labelCloud, a JSON per image.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.formats.coco import read_json_document
from roadaware.geometry.poses import find_pose_error
from roadaware.io.files import read_regular, write_atomically
from roadaware.io.folders import make_folder
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import is_outside, resolve_inside, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions

CuboidForm = Literal["kitti", "nuscenes", "xtreme1", "labelcloud"]
KIND = "Misc"
"""What KITTI calls a thing of none of its classes."""
UNKNOWN = "unknown"
"""The class in nuScenes' files: its own have none for what nobody named."""
CUBOID = ("x_m", "y_m", "z_m", "length_m", "width_m", "height_m", "yaw_rad")
"""Columns of a cuboid in the LiDAR's frame (x ahead, y left, z up), as ONCE has them: its middle, sizes, and its turn."""
NUSCENES = "nuscenes.json"
SENT = "sent.json"
"""What was written, and how each image's LiDAR stands, beside the forms: so that edits can be told from it."""
NUMBER = "proposal-"
"""Begins the identifier of a proposal, before its number."""
FILES: Mapping[CuboidForm, str] = {
    "kitti": "{video}/{frame:06d}.txt",
    "xtreme1": "{video}/result/{frame:06d}.json",
    "labelcloud": "{video}/{frame:06d}.json",
}
"""Where the cuboids of an image stand within the folder of their form."""


def format_kitti_labels(boxes: pl.DataFrame, camera_SE3_lidar: Floats) -> str:  # noqa: N803
    """The lines of one image, the best first: sixteen fields, the last one the score.

    The place is the middle of the bottom in the camera's frame, the turn that about its axis down. How much is hidden
    or cut off is not known: both are -1.

    Args:
        boxes: rows of one image with their cuboids.
        camera_SE3_lidar: (4, 4) from the LiDAR to the camera of the image.
    """
    lines = []
    for row in boxes.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
        x, y, z, length, width, height, yaw = (float(row[name]) for name in CUBOID)
        bottom = camera_SE3_lidar[:3, :3] @ np.array([x, y, z - height / 2]) + camera_SE3_lidar[:3, 3]
        ahead = camera_SE3_lidar[:3, :3] @ np.array([np.cos(yaw), np.sin(yaw), 0.0])
        turn = float(np.arctan2(-ahead[2], ahead[0]))
        alpha = turn - float(np.arctan2(bottom[0], bottom[2]))
        # Into one turn: -pi to pi.
        alpha = float((alpha + np.pi) % (2 * np.pi) - np.pi)
        numbers = [alpha, *(row[name] for name in CORNERS), height, width, length, *bottom.tolist(), turn]
        lines.append(f"{KIND} -1 -1 {' '.join(f'{value:.2f}' for value in numbers)} {row['score']:.4f}")
    return "".join(f"{line}\n" for line in lines)


def build_nuscenes_results(boxes: pl.DataFrame, poses: Mapping[tuple[str, int], Floats]) -> dict[str, Any]:
    """The content of a file of detections as nuScenes' devkit reads it: boxes in the world, by image.

    A sample is called `VIDEO/000012`. Velocities are those of tracks where the boxes have `velocity_x_m_s`, else 0.

    Args:
        boxes: rows with their cuboids.
        poses: video and frame to the (4, 4) pose of the LiDAR in the world.
    """
    from scipy.spatial.transform import Rotation

    results: dict[str, list[dict[str, Any]]] = {f"{video}/{frame:06d}": [] for video, frame in sorted(poses)}
    moving = "velocity_x_m_s" in boxes.columns
    for row in boxes.sort("video", "frame", "score", descending=[False, False, True]).iter_rows(named=True):
        x, y, z, length, width, height, yaw = (float(row[name]) for name in CUBOID)
        pose = poses[row["video"], row["frame"]]
        turned = pose[:3, :3] @ Rotation.from_euler("z", yaw).as_matrix()
        quaternion = Rotation.from_matrix(turned).as_quat(scalar_first=True)
        velocity = [row["velocity_x_m_s"] or 0.0, row["velocity_y_m_s"] or 0.0] if moving else [0.0, 0.0]
        sample = f"{row['video']}/{row['frame']:06d}"
        results[sample].append(
            {
                "sample_token": sample,
                "translation": (pose[:3, :3] @ np.array([x, y, z]) + pose[:3, 3]).tolist(),
                "size": [width, length, height],
                "rotation": quaternion.tolist(),
                "velocity": velocity,
                "detection_name": UNKNOWN,
                "detection_score": float(row["score"]),
                "attribute_name": "",
            }
        )
    inputs = ("use_camera", "use_lidar", "use_radar", "use_map", "use_external")
    return {"meta": {name: name in ("use_camera", "use_lidar") for name in inputs}, "results": results}


def build_xtreme1_result(boxes: pl.DataFrame) -> list[dict[str, Any]]:
    """The content of a result of Xtreme1, of one image: cuboids in the LiDAR's frame, known by their proposal's number.

    Args:
        boxes: rows of one image with their cuboids.
    """
    objects = []
    for row in boxes.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
        x, y, z, length, width, height, yaw = (float(row[name]) for name in CUBOID)
        thing = row.get("tube")
        objects.append(
            {
                "id": f"{NUMBER}{row['box']}",
                "type": "3D_BOX",
                "className": UNKNOWN,
                "trackId": f"{NUMBER}{row['box']}" if thing is None else f"track-{thing}",
                "trackName": str(row["box"] if thing is None else thing),
                "classValues": [],
                "contour": {
                    "pointN": int(row.get("n_returns") or 0),
                    "points": [],
                    "size3D": {"x": length, "y": width, "z": height},
                    "center3D": {"x": x, "y": y, "z": z},
                    "rotation3D": {"x": 0.0, "y": 0.0, "z": yaw},
                },
                "modelConfidence": float(row["score"]),
                "modelClass": UNKNOWN,
            }
        )
    return [{"version": "1.0", "classificationValues": [], "objects": objects}]


def build_labelcloud_labels(boxes: pl.DataFrame, name: str) -> dict[str, Any]:
    """The content of a label of labelCloud, of one image: its form `centroid_abs`, with turns in degrees from 0 to 360.

    labelCloud drops what it does not know, so that a cuboid has no number there.

    Args:
        boxes: rows of one image with their cuboids.
        name: of the file without its ending, which has to be that of the point cloud.
    """
    objects = []
    for row in boxes.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
        x, y, z, length, width, height, yaw = (float(row[name]) for name in CUBOID)
        objects.append(
            {
                "name": UNKNOWN,
                "centroid": {"x": x, "y": y, "z": z},
                "dimensions": {"length": length, "width": width, "height": height},
                "rotations": {"x": 0.0, "y": 0.0, "z": float(np.degrees(yaw) % 360)},
            }
        )
    return {"folder": "", "filename": name, "path": name, "objects": objects}


def write_cuboids(
    proposals: Predictions,
    folder: Path,
    forms: tuple[CuboidForm, ...],
    *,
    cameras: Mapping[tuple[str, int], Floats],
    poses: Mapping[tuple[str, int], Floats],
) -> dict[str, int]:
    """Write the cuboids of proposals for other tools; how many of each form, and how many boxes have none.

    Args:
        proposals: with cuboids in the LiDAR's frame.
        folder: where to: `kitti/VIDEO/000012.txt`, `nuscenes.json`, `xtreme1/VIDEO/result/000012.json`,
            `labelcloud/VIDEO/000012.json`, and `sent.json`, from which `read_edited_cuboids` tells edits.
        forms: which.
        cameras: video and frame to the (4, 4) way from the LiDAR to the camera.
        poses: the same to the pose of the LiDAR in the world; those of no image where the set does not say.

    Raises:
        UsageError: if the proposals have no cuboids, or nuScenes' form is asked for without poses.
        InputError: if the name of a video leads out of the folder; nothing is written then.
        DiskError: if the disk refuses.
    """
    for video in dict.fromkeys(video for video, _ in cameras):
        # As part of a path: an empty name makes an absolute one.
        if is_outside(f"{video}/0"):
            raise InputError("the name of the video leads out of the folder", where=to_printable(video))
    boxes = proposals.boxes.with_columns(pl.col("video").cast(pl.String))
    missing = [name for name in CUBOID if name not in boxes.columns]
    if missing:
        raise UsageError(
            f"these proposals have no cuboids ({', '.join(missing)}); propose again with this version"
        )
    if "tube" in boxes.columns and "velocity_x_m_s" in proposals.tubes.columns:
        speeds = proposals.tubes.select("tube", "velocity_x_m_s", "velocity_y_m_s")
        boxes = boxes.join(speeds, on="tube", how="left", maintain_order="left")
    known = boxes.drop_nulls(list(CUBOID))
    record = {"without a cuboid": len(boxes) - len(known)} if len(known) < len(boxes) else {}
    if "nuscenes" in forms:
        if len(poses) < len(cameras):
            raise UsageError(
                "nuScenes' form places boxes in the world, and the set does not say where the vehicle was in "
                f"{len(cameras) - len(poses):,} of {len(cameras):,} images; ask for kitti"
            )
        make_folder(folder)
        content = build_nuscenes_results(known, poses)
        write_atomically(folder / NUSCENES, json.dumps(content, allow_nan=False).encode())
        record["nuscenes"] = len(known)
    parts = known.partition_by("video", "frame", as_dict=True)
    for form, pattern in FILES.items():
        if form not in forms:
            continue
        for (video, frame), way in cameras.items():
            held = parts.get((video, frame), known.clear())
            path = folder / form / pattern.format(video=video, frame=frame)
            make_folder(path.parent)
            if form == "kitti":
                text = format_kitti_labels(held, way)
            elif form == "xtreme1":
                text = json.dumps(build_xtreme1_result(held), allow_nan=False)
            else:
                text = json.dumps(build_labelcloud_labels(held, path.stem), allow_nan=False)
            write_atomically(path, text.encode())
        record[form] = len(known)
    images = [
        {
            "video": video,
            "frame": frame,
            "camera_SE3_lidar": np.asarray(way).tolist(),
            "world_SE3_lidar": np.asarray(poses[video, frame]).tolist() if (video, frame) in poses else None,
        }
        for (video, frame), way in cameras.items()
    ]
    rows = known.select("video", "frame", pl.col("box").alias("proposal"), *CUBOID).to_dicts()
    make_folder(folder)
    write_atomically(folder / SENT, json.dumps({"images": images, "cuboids": rows}, allow_nan=False).encode())
    return record


# What came back.

STILL_M, STILL_RAD = 0.011, 0.011
"""A cuboid whose middle, sizes and turn differ by no more was not touched: KITTI's labels have two digits."""
NEAR_M = 2.0
"""Without numbers, a cuboid that came back is that of a proposal whose middle is no farther away."""
EDITED = {
    "video": pl.String,
    "frame": pl.Int64,
    "proposal": pl.Int64,
    "name": pl.String,
    **dict.fromkeys(CUBOID, pl.Float64),
}
MOST_M = 1e4
"""Farther than any LiDAR sees."""
MOST_BYTES = 1 << 26
"""Of a text of labels; that of an image has some kilobytes."""
EDIT_FATES = ("kept", "changed", "deleted", "added")


@dataclass(frozen=True, eq=False)
class SentCuboids:
    """What was written for annotators.

    Args:
        cuboids: rows of video, frame, proposal and `CUBOID`, in the LiDAR's frame.
        cameras: video and frame to the (4, 4) way from the LiDAR to the camera.
        poses: the same to the pose of the LiDAR in the world, where the set says it.
    """

    cuboids: pl.DataFrame
    cameras: Mapping[tuple[str, int], Floats]
    poses: Mapping[tuple[str, int], Floats]


def read_sent_cuboids(folder: Path) -> SentCuboids:
    """What `write_cuboids` wrote into a folder.

    Raises:
        DatasetNotFoundError: if it has no `sent.json`.
        InputError: if that is damaged: numbers of a cuboid that are none or beyond `MOST_M`, ways and poses that are none,
            or a video whose name leads out of the folder.
    """
    where = str(folder / SENT)
    content = read_json_document(folder / SENT)
    columns = {name: kind for name, kind in EDITED.items() if name != "name"}
    cameras, poses = {}, {}
    try:
        cuboids = pl.DataFrame(
            [{name: row[name] for name in columns} for row in content["cuboids"]], schema=columns
        )
        for number, image in enumerate(content["images"]):
            at = f"{where}: images[{number}]"
            place = str(image["video"]), int(image["frame"])
            if is_outside(f"{place[0]}/0"):
                raise InputError("the name of the video leads out of the folder", where=f"{at}.video")
            cameras[place] = _read_pose(image["camera_SE3_lidar"], f"{at}.camera_SE3_lidar")
            if image["world_SE3_lidar"] is not None:
                poses[place] = _read_pose(image["world_SE3_lidar"], f"{at}.world_SE3_lidar")
    except (KeyError, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(f"expected what propose --as wrote, found: {error}", where=where) from error
    for name in columns:
        held = cuboids[name]
        fine = (held.abs() < MOST_M if name in CUBOID else held.is_not_null()).fill_null(False).to_list()
        if not all(fine):
            number = fine.index(False)
            expected = f"a number below {MOST_M:,.0f}" if name in CUBOID else "a value"
            raise InputError(
                f"expected {expected}, found {held[number]}", where=f"{where}: cuboids[{number}].{name}"
            )
    return SentCuboids(cuboids, cameras, poses)


def _read_pose(found: Any, where: str) -> Floats:
    """(4, 4) a pose.

    Raises:
        InputError: if it is none.
    """
    try:
        pose = np.array(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("expected (4, 4) numbers", where=where) from error
    if wrong := find_pose_error(pose):
        raise InputError(f"expected a rotation and a translation: {wrong}", where=where)
    return pose


@dataclass(frozen=True, eq=False)
class EditedCuboids:
    """Cuboids that came back, in the LiDAR's frame.

    Args:
        form: of the files.
        cuboids: rows of `EDITED`; `proposal` is null where the form keeps no number, or a person drew it.
        done: video and frame of each image that came back.
        refused: reason to how many objects, or files of an unknown image.
        unclear: files of labelCloud whose turns may be degrees or radians, with what they were taken for.
    """

    form: CuboidForm
    cuboids: pl.DataFrame
    done: tuple[tuple[str, int], ...]
    refused: Mapping[str, int]
    unclear: tuple[str, ...] = ()


def read_edited_cuboids(path: Path, sent: SentCuboids) -> EditedCuboids:
    """What annotators made of cuboids: a file of nuScenes' form, or a folder of any other form as it was written.

    An image without a file was not done; one whose file has no object has lost all. labelCloud's vertices and its
    `centroid_rel` are read, too. Of two objects with one number the first has it, and the other is refused.

    Args:
        path: the file, or the folder `kitti`, `xtreme1` or `labelcloud`.
        sent: what was written.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it holds no file of an image that was written, or one is damaged or a link out of the folder.
    """
    refused: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    done: list[tuple[str, int]] = []
    unclear: list[str] = []
    if not path.is_dir():
        content = read_json_document(path)
        results = content.get("results") if isinstance(content, dict) else None
        if not isinstance(results, dict):
            raise InputError("expected nuScenes' detections with `results`, found none", where=str(path))
        names = {f"{video}/{frame:06d}": (video, frame) for video, frame in sent.cameras}
        for sample, objects in results.items():
            place = names.get(sample)
            if place is None or place not in sent.poses or not isinstance(objects, list):
                refused["an image that was not written"] += 1
                continue
            done.append(place)
            _take(rows, refused, place, (_parse_nuscenes(each, sent.poses[place]) for each in objects))
        return EditedCuboids("nuscenes", pl.DataFrame(rows, schema=EDITED), tuple(done), dict(refused))
    root = path.resolve()
    for form, pattern in FILES.items():
        for place, way in sent.cameras.items():
            name = pattern.format(video=place[0], frame=place[1])
            if not os.path.lexists(root / name):
                continue
            file = resolve_inside(root, name)
            done.append(place)
            if form == "kitti":
                lines = read_regular(file, limit=MOST_BYTES).decode("utf-8", errors="replace").splitlines()
                _take(rows, refused, place, (_parse_kitti(line, way) for line in lines if line.strip()))
                continue
            content = read_json_document(file)
            if form == "xtreme1":
                results = content if isinstance(content, list) else [content]
                objects = [one for each in results for one in _list(each, "objects", file)]
                _take(rows, refused, place, map(_parse_xtreme1, objects), name)
            else:
                objects = _list(content, "objects", file)
                here = sent.cuboids.filter(video=place[0], frame=place[1])
                relative, sure = _are_turns_relative(objects, here)
                if not sure:
                    unclear.append(f"{name}: turns taken for {'radians' if relative else 'degrees'}")
                _take(rows, refused, place, (_parse_labelcloud(each, relative) for each in objects))
        if done:
            edited = pl.DataFrame(rows, schema=EDITED)
            return EditedCuboids(form, edited, tuple(done), dict(refused), tuple(unclear))
    raise InputError(
        "expected a file of an image that was written, found none: VIDEO/000012.txt (kitti), VIDEO/000012.json "
        "(labelcloud) or VIDEO/result/000012.json (xtreme1)",
        where=str(path),
        hint="name the folder of the form, or nuscenes.json",
    )


def _list(content: Any, name: str, where: Path) -> list[Any]:
    """The list of a document under a name.

    Raises:
        InputError: if there is none.
    """
    found = content.get(name) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise InputError(f"expected a list `{name}`, found none", where=str(where))
    return found


_Parsed = tuple[str, int | None, list[float]] | str | None
"""Name, proposal and cuboid of an object; or why it is refused; None for what is no cuboid."""


def _take(
    rows: list[dict[str, Any]],
    refused: Counter[str],
    place: tuple[str, int],
    parsed: Iterator[_Parsed],
    file: str = "",
) -> None:
    """Add the objects of an image to the rows, or count why not; `file` is where they stand, if they have numbers."""
    numbers: set[int] = set()
    # Absurd numbers overflow on their way and are refused after it.
    with np.errstate(over="ignore", invalid="ignore"):
        for each in parsed:
            if each is None:
                continue
            if isinstance(each, str):
                refused[each] += 1
                continue
            name, proposal, cuboid = each
            if not _is_possible(cuboid):
                refused[f"a cuboid without positive sizes, or with numbers beyond {MOST_M:,.0f}"] += 1
                continue
            if proposal is not None:
                if proposal in numbers:
                    refused[f"{to_printable(file)}: {NUMBER}{proposal} stands again; the first counts"] += 1
                    continue
                numbers.add(proposal)
            known = dict(zip(CUBOID, map(float, cuboid), strict=True))
            row = {
                "video": place[0],
                "frame": place[1],
                "proposal": proposal,
                "name": escape_surrogates(name),
            }
            rows.append({**row, **known})


def _is_possible(cuboid: list[float]) -> bool:
    """Whether the numbers of a cuboid are within bounds, and its sizes above 0."""
    return bool(np.abs(cuboid).max() < MOST_M and min(cuboid[3:6]) > 0)


_UNREADABLE = "an object without the fields of its form"
_NO_FIELDS = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


def _parse_kitti(line: str, camera_SE3_lidar: Floats) -> _Parsed:  # noqa: N803
    """One line of a label; `DontCare` is no cuboid."""
    words = line.split()
    if words[0] == "DontCare":
        return None
    try:
        height, width, length, x, y, z, turn = map(float, words[8:15])
    except ValueError:
        return _UNREADABLE
    rotation, shift = camera_SE3_lidar[:3, :3], camera_SE3_lidar[:3, 3]
    middle = rotation.T @ (np.array([x, y, z]) - shift) + [0.0, 0.0, height / 2]
    # The direction on the ground whose place in the camera's level is turned so.
    try:
        ahead = np.linalg.solve(rotation[np.ix_((0, 2), (0, 1))], [np.cos(turn), -np.sin(turn)])
    except np.linalg.LinAlgError:
        return "a turn of a camera that looks along no ground"
    return words[0], None, [*middle, length, width, height, float(np.arctan2(ahead[1], ahead[0]))]


def _parse_nuscenes(each: Any, world_SE3_lidar: Floats) -> _Parsed:  # noqa: N803
    """One detection, in the world."""
    from scipy.spatial.transform import Rotation

    try:
        width, length, height = map(float, each["size"])
        turned = Rotation.from_quat([float(value) for value in each["rotation"]], scalar_first=True)
        place = np.array([float(value) for value in each["translation"]])
        middle = world_SE3_lidar[:3, :3].T @ (place - world_SE3_lidar[:3, 3])
        own = world_SE3_lidar[:3, :3].T @ turned.as_matrix()
        name = str(each["detection_name"])
    except _NO_FIELDS:
        return _UNREADABLE
    return name, None, [*middle, length, width, height, float(np.arctan2(own[1, 0], own[0, 0]))]


def _parse_xtreme1(each: Any) -> _Parsed:
    """One object of a result; what is not in space, such as a box in an image, is no cuboid."""
    try:
        if each["type"] != "3D_BOX":
            return None
        contour = each["contour"]
        values = [float(contour[part][axis]) for part in ("center3D", "size3D") for axis in "xyz"]
        values.append(float(contour["rotation3D"]["z"]))
        name, number = str(each.get("className") or UNKNOWN), str(each.get("id") or "")
    except _NO_FIELDS:
        return _UNREADABLE
    digits = number.removeprefix(NUMBER)
    own = number.startswith(NUMBER) and digits.isascii() and digits.isdecimal() and len(digits) < 19
    return name, int(digits) if own else None, values


def _are_turns_relative(objects: list[Any], sent: pl.DataFrame) -> tuple[bool, bool]:
    """Whether a label is of labelCloud's form `centroid_rel`, which looks as `centroid_abs` does but has turns in radians,
    and whether that is sure.

    What was sent decides: the reading that leaves more turns as they were, else nearer, in the median, to those of the
    cuboids they are near to. Where none is near to one that was sent, or both readings leave them as near, the range does:
    radians go from -pi to pi and degrees from 0 to 360, so it is radians where most lie within pi and one of these below
    zero. Objects that would be refused have no say, and a turn of 0 has none, either: it is the same in both. It is sure
    where a turn is too large for radians, or one is still as it was sent.
    """
    read = [
        parsed[2]
        for each in objects
        if isinstance(each, dict) and "vertices" not in each
        if isinstance(parsed := _parse_labelcloud(each, True), tuple) and _is_possible(parsed[2])
    ]
    cuboids = np.array([cuboid for cuboid in read if cuboid[6] != 0], np.float64).reshape(-1, len(CUBOID))
    turns = cuboids[:, 6]
    # As many digits as labelCloud may be told to round to.
    within = np.abs(turns) < np.pi + 0.01
    sure = not within.all() or not len(turns)
    if len(turns) and len(sent):
        known = sent.select(CUBOID).to_numpy()
        apart = np.linalg.norm(cuboids[:, None, :3] - known[None, :, :3], axis=-1)
        near = apart.min(axis=1) <= NEAR_M
        ways = known[apart.argmin(axis=1), 6]
        degrees, radians = (
            np.abs((turns * unit - ways + np.pi / 2) % np.pi - np.pi / 2) for unit in (np.pi / 180, 1.0)
        )
        # No turn in radians is so large: it lies as far as any can.
        radians = np.where(within, radians, np.pi / 2)
        if near.any():
            # Of what was sent straight ahead any small number is as it was, read as degrees.
            telling = near & (np.abs(np.sin(ways)) > 2 * STILL_RAD)
            still, also = (int((turned[telling] <= STILL_RAD).sum()) for turned in (radians, degrees))
            if still != also:
                return still > also, True
            one, other = float(np.median(radians[near])), float(np.median(degrees[near]))
            if one != other:
                return one < other, sure
    return bool(within.sum() * 2 > len(turns) and (turns[within] < 0).any()), sure


def _parse_labelcloud(each: Any, relative: bool) -> _Parsed:
    """One object of a label, in one of labelCloud's forms for JSON: eight vertices, or a centroid with its turn in degrees,
    or in radians where it is `relative`.
    """
    try:
        name = str(each["name"])
        if "vertices" in each:
            corners = np.array(each["vertices"], dtype=np.float64).reshape(8, 3)
            # The first four are the bottom, from the rear right round; the fifth stands above the first.
            along, across = corners[3] - corners[0], corners[1] - corners[0]
            sizes = [float(np.linalg.norm(side)) for side in (along, across, corners[4] - corners[0])]
            return name, None, [*corners.mean(axis=0), *sizes, float(np.arctan2(along[1], along[0]))]
        values = [float(each["centroid"][axis]) for axis in "xyz"]
        values += [float(each["dimensions"][side]) for side in ("length", "width", "height")]
        turn = float(each["rotations"]["z"])
        values.append(turn if relative else float(np.radians(turn)))
    except _NO_FIELDS:
        return _UNREADABLE
    return name, None, values


def compare_cuboids(sent: SentCuboids, edited: EditedCuboids) -> pl.DataFrame:
    """One row for each proposal of an image that came back, and for each cuboid that was added.

    Cuboids belong to the proposal whose number they have; where a file has lost all numbers, proposals and cuboids are
    paired so that middles, sizes and turns differ least, with middles no farther than 2 m apart.

    Returns:
        video, frame, proposal (null: added), fate (of `EDIT_FATES`), name, `moved_m`, `resized_m` (the most of a size),
        `turned_rad` (within half a turn: which end is the front is not known), and the cuboid that came back.
    """
    from scipy.optimize import linear_sum_assignment

    held = sent.cuboids.partition_by("video", "frame", as_dict=True)
    back = edited.cuboids.partition_by("video", "frame", as_dict=True)
    rows: list[dict[str, Any]] = []
    for place in edited.done:
        ours = held.get(place, sent.cuboids.clear())
        theirs = back.get(place, edited.cuboids.clear())
        differences = _differ(ours.select(CUBOID).to_numpy(), theirs.select(CUBOID).to_numpy())
        numbers = ours["proposal"].to_list()
        named = [numbers.index(n) if n in numbers else -1 for n in theirs["proposal"].to_list()]
        if any(each >= 0 for each in named):
            pairs = {ours_at: at for at, ours_at in enumerate(named) if ours_at >= 0}
        else:
            far = differences[..., 0] > NEAR_M
            # A pair that is too far costs more than all others together, and is taken apart again.
            first, second = linear_sum_assignment(np.where(far, 1e6, differences.sum(axis=2)))
            pairs = {int(a): int(b) for a, b in zip(first, second, strict=True) if not far[a, b]}
        cuboids = theirs.rows(named=True)
        for at, number in enumerate(numbers):
            row = {"video": place[0], "frame": place[1], "proposal": number, "fate": "deleted"}
            if at in pairs:
                moved, resized, turned = differences[at, pairs[at]].tolist()
                still = moved <= STILL_M and resized <= STILL_M and turned <= STILL_RAD
                row = {**cuboids[pairs[at]], **row, "fate": "kept" if still else "changed",
                       "moved_m": moved, "resized_m": resized, "turned_rad": turned}  # fmt: skip
            rows.append(row)
        taken = set(pairs.values())
        rows += [
            {**row, "proposal": None, "fate": "added"} for at, row in enumerate(cuboids) if at not in taken
        ]
    schema = {"video": pl.String, "frame": pl.Int64, "proposal": pl.Int64, "fate": pl.String, "name": pl.String,
              **dict.fromkeys(("moved_m", "resized_m", "turned_rad", *CUBOID), pl.Float64)}  # fmt: skip
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def _differ(ours: Floats, theirs: Floats) -> Floats:
    """(m, k, 3) how far middles lie apart, the most by which a size differs, and the turn between two ways along."""
    apart = ours[:, None] - theirs[None]
    turned = np.abs((apart[..., 6] + np.pi / 2) % np.pi - np.pi / 2)
    found: Floats = np.stack(
        [np.linalg.norm(apart[..., :3], axis=-1), np.abs(apart[..., 3:6]).max(axis=-1), turned], axis=-1
    )
    return found
