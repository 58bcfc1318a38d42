"""Poses: 18 joints in OpenPose's order as shares of the picture, from the tables or from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.tasks.crossing_inputs.media import Media
from roadaware.tasks.crossing_inputs.observations import Observations
from roadaware.tasks.crossing_inputs.pose_files import Poses, read_poses

NEEDS = "boxes.joints (the simulator), or a file of poses (media.poses)"
JOINTS = (
    "nose",
    "neck",
    "right_shoulder",
    "right_elbow",
    "right_wrist",
    "left_shoulder",
    "left_elbow",
    "left_wrist",
    "right_hip",
    "right_knee",
    "right_ankle",
    "left_hip",
    "left_knee",
    "left_ankle",
    "right_eye",
    "left_eye",
    "right_ear",
    "left_ear",
)
"""OpenPose's joints in its order, of the 18 that it finds after COCO."""
_NECK = 1
_SHOULDERS = (5, 6)
_OF_COCO = (0, 0, 6, 8, 10, 5, 7, 9, 12, 14, 16, 11, 13, 15, 2, 1, 4, 3)
"""For each of JOINTS its place among COCO's 17; the neck is put in afterwards."""
_LAYOUTS = {51: (17, 3), 34: (17, 2), 54: (18, 3), 36: (18, 2)}


def pose(seen: Observations, media: Media | None, form: str = "") -> Floats:
    """(n, t, 36) x and y of `JOINTS`, as shares of the picture or of the box (`pose:box`).

    A joint that is not seen, or stands at (0, 0) as OpenPose writes what it did not find, is NaN; so are all
    joints of a box without a pose.

    Args:
        seen: n observations.
        media: its `poses` is a file; the joints of the tables where it has none.
        form: empty or `box`.

    Raises:
        InputError: if there are no poses, or they have other joints.
    """
    path = media.poses if media is not None else None
    held = _of_tables(seen) if path is None else _of_file(seen, path)
    if form == "box":
        corners = seen.corners_px / np.tile(seen.size_px, 2)[:, None]
        sides = np.maximum(corners[..., 2:] - corners[..., :2], 1 / seen.size_px[:, None])
        held = (held - corners[..., None, :2]) / sides[..., None, :]
    return held.reshape(*seen.frame.shape, -1)


def _of_tables(seen: Observations) -> Floats:
    """(n, t, 18, 2) from the joints of the boxes."""
    boxes = seen.scenes.boxes
    if "joints" not in boxes.columns or boxes["joints"].null_count() == len(boxes):
        message = f"pose reads {NEEDS}; these boxes have no joints"
        raise InputError(
            message,
            hint="samples.poses of a recipe, Media(poses=...) in Python, names a pickle, npz or parquet file",
        )
    rows, place = np.unique(seen.box_row, return_inverse=True)
    column = boxes["joints"][rows]
    values = _flat(column)
    joints = openpose(values, "boxes.joints")
    joints /= seen.size_px[_first(place, len(rows), seen)][:, None]
    return np.asarray(joints[place.reshape(seen.box_row.shape)])


def _first(place: Ints, n: int, seen: Observations) -> Ints:
    """(n,) for each distinct box a sample that observes it."""
    sample = np.empty(n, dtype=np.int64)
    sample[place.reshape(-1)] = np.repeat(np.arange(len(seen)), seen.box_row.shape[1])
    return sample


def _flat(column: pl.Series) -> Floats:
    """(m, k) numbers of a column of lists, NaN rows where null."""
    lists = column.cast(pl.List(pl.Float64))
    lengths = lists.list.len().drop_nulls().unique().to_list()
    if len(lengths) > 1:
        raise InputError(f"boxes.joints has rows of {sorted(lengths)} numbers; expected as many in each")
    width = lengths[0] if lengths else 36
    values = np.full((len(lists), width), np.nan)
    known = lists.is_not_null().to_numpy()
    values[known] = lists.drop_nulls().explode().to_numpy().reshape(-1, width)
    return values


def openpose(values: Floats, where: str) -> Floats:
    """(m, 18, 2) joints in OpenPose's order, NaN where not seen.

    The neck of COCO's 17 joints is the middle of the shoulders.

    Args:
        values: (m, k) flattened joints: 18 of OpenPose or 17 of COCO, with x and y, or x, y and how well each
            is seen, at most 0 where it is not.
        where: names them in messages.

    Raises:
        InputError: if there are others than 18 or 17 joints.
    """
    width = values.shape[1]
    if width not in _LAYOUTS:
        ways = [f"{width // each} joints of {each}" for each in (2, 3) if width % each == 0]
        told = f"{width} numbers" + (f", {' or '.join(ways)} each" if ways else "")
        raise InputError(
            f"expected 18 joints of OpenPose or 17 of COCO, found {told}",
            where=where,
            hint="joints of other bodies (BODY_25, 133 of the whole body) must be cut down to these first",
        )
    n_joints, each = _LAYOUTS[width]
    joints = values.reshape(-1, n_joints, each)
    lost = (joints[..., :2] == 0).all(axis=-1)
    if each == 3:
        lost |= joints[..., 2] <= 0
    found = np.where(lost[..., None], np.nan, joints[..., :2])
    if n_joints == len(JOINTS):
        return found
    ordered = found[:, _OF_COCO]
    ordered[:, _NECK] = found[:, _SHOULDERS].mean(axis=1)
    return np.asarray(ordered)


def _of_file(seen: Observations, path: Path) -> Floats:
    """(n, t, 18, 2) of the poses of a file, found by video, pedestrian and frame."""
    held = read_poses(path)
    joints = openpose(held.values, held.where)
    owner = _owners(held, seen)
    if (owner < 0).all():
        shown = f"'{held.name[0]}' in frame {held.frame[0]}" if len(held.name) else "nothing"
        message = (
            f"none of {len(held.name):,} poses is of a pedestrian of these scenes; the first is of {shown}"
        )
        raise InputError(message, where=held.where)
    stride = 1 + max(int(held.frame.max()), int(seen.frame.max(initial=0)))
    key = np.where(owner >= 0, owner * stride + held.frame, -1)
    order = np.argsort(key, kind="stable")
    asked = seen.samples["tube"].to_numpy()[:, None] * stride + seen.frame
    place = order[np.minimum(np.searchsorted(key, asked, sorter=order), len(key) - 1)]
    found = np.where((key[place] == asked)[..., None, None], joints[place], np.nan)
    if held.pixels:
        found = found / seen.size_px[:, None, None]
    return np.asarray(found)


def _owners(held: Poses, seen: Observations) -> Ints:
    """(m,) the tube of each pose, -1 where the scenes have no such pedestrian."""
    tubes = seen.scenes.tubes.filter(pl.col("tube").is_in(seen.samples["tube"].unique().to_list())).select(
        "tube", pl.col("video").cast(pl.String), pl.col("name").cast(pl.String)
    )
    if held.video is None:
        twice = sorted(tubes.filter(pl.col("name").is_duplicated())["name"].unique().to_list())
        if twice:
            message = f"the poses name no videos, and {twice[:3]} are pedestrians of several"
            raise InputError(message, where=held.where)
        poses = pl.DataFrame({"name": held.name}, schema={"name": pl.String})
        found = poses.join(tubes, on="name", how="left", maintain_order="left")
    else:
        # PIE's videos are called set05/video_0001; JAAD's video_0001, although its poses say set01.
        known = set(tubes["video"].to_list())
        video = [name if name in known else name.rpartition("/")[2] for name in held.video]
        poses = pl.DataFrame({"video": video, "name": held.name})
        found = poses.join(tubes, on=["video", "name"], how="left", maintain_order="left")
    return found["tube"].fill_null(-1).cast(pl.Int64).to_numpy()
