"""Sensors: open the frame, sound, masks, depth or LiDAR sweep that a row of the tables names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.io.images import MaskReader, read_still
from roadaware.io.point_clouds import OURS, PointCloud, Sweep, read_points, read_sweep
from roadaware.io.sources import is_outside, resolve_inside, to_printable
from roadaware.io.video import ENDINGS, VideoReader, read_sound
from roadaware.scenes.tables import Scenes

MEDIA = MappingProxyType(
    {
        "video": "video.mp4",
        "instances": "instances.zip",
        "semantics": "semantics.zip",
        "depth": "depth.zip",
        "sweep": "lidar/{frame:06d}.bin",
    }
)
"""What a scene's files are called, beside each other in the folder of `videos.path`."""


def open_frame(scenes: Scenes, root: Path, video: str, frame: int) -> npt.NDArray[np.uint8]:
    """(H, W, 3) uint8 image of one frame; for many frames in a row, `VideoReader` is faster.

    Args:
        scenes: whose `videos.path`, or `frames.path` of a set of images, says where it lies.
        root: the dataset's folder.
        video: its name.
        frame: counts from 0.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if its path is unknown, leads out of the folder, or the file cannot be read.
    """
    still = _still(scenes, video, frame)
    if still is not None:
        return read_still(resolve_inside(_root(root), still))
    with VideoReader(find_video_path(scenes, root, video)) as reader:
        return reader.frame(frame)


def open_sound(
    scenes: Scenes, root: Path, video: str, start_s: float, end_s: float
) -> tuple[npt.NDArray[np.float32], int]:
    """(n, 2) float32 samples between two times of a video, left and right, and how many make a second.

    Args:
        scenes: whose `videos.path` says where the video lies.
        root: the dataset's folder.
        video: its name.
        start_s: at least 0.
        end_s: later than `start_s`; where the sound ends earlier, so do the samples.

    Raises:
        UsageError: if there is no such video, or the times are not in order.
        InputError: if its path is unknown, leads out of the folder, or the file cannot be read or is silent.
    """
    return read_sound(find_video_path(scenes, root, video), start_s, end_s)


def open_masks(
    scenes: Scenes, root: Path, video: str, frame: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """(H, W) int32 instances and (H, W) uint8 classes of the pixels of one frame.

    Args:
        scenes: whose `videos.path` says in which folder the archives lie.
        root: the dataset's folder.
        video: its name.
        frame: counts from 0.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if its path is unknown, leads out of the folder, or an archive cannot be read.
    """
    with MaskReader(find_sidecar_file(scenes, root, video, MEDIA["instances"])) as reader:
        instance = reader.frame(frame)
    with MaskReader(find_sidecar_file(scenes, root, video, MEDIA["semantics"])) as reader:
        semantic = reader.frame(frame)
    if instance.shape != semantic.shape or semantic.dtype != np.uint8:
        message = f"instances {instance.shape} and classes {semantic.shape} of frame {frame} do not fit"
        raise InputError(message, where=f"{to_printable(str(root))}: {to_printable(video)}")
    return instance.astype(np.int32), semantic


def open_depth(scenes: Scenes, root: Path, video: str, frame: int) -> npt.NDArray[np.float32]:
    """(H, W) float32 depth of the pixels of one frame in metres, inf where there is nothing.

    Args:
        scenes: whose `videos.path` says in which folder the archive lies.
        root: the dataset's folder.
        video: its name.
        frame: counts from 0.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if its path is unknown, leads out of the folder, or the archive cannot be read.
    """
    with MaskReader(find_sidecar_file(scenes, root, video, MEDIA["depth"])) as reader:
        return reader.depth_m(frame)


def open_sweep(scenes: Scenes, root: Path, scene: str, frame: int, sensor: str = "lidar") -> Sweep:
    """Points of one LiDAR sweep that the simulator made, in the LiDAR's frame; of any other, `open_points`.

    Args:
        scenes: whose `sweeps.path` says where the sweep lies.
        root: the dataset's folder.
        scene: the drive.
        frame: counts from 0.
        sensor: its name.

    Raises:
        UsageError: if there is no such sweep.
        InputError: if its path is unknown, leads out of the folder, the file cannot be read, or it holds
            another number of points than the table says.
    """
    row = _sweep_row(scenes, scene, frame, sensor)
    found = read_sweep(_sweep_path(row, root))
    _require_count(len(found), row, root)
    return found


def open_points(scenes: Scenes, root: Path, scene: str, frame: int, sensor: str = "lidar") -> PointCloud:
    """Points of one LiDAR sweep of any dataset in the LiDAR's frame, in the order of the file.

    Args:
        scenes: whose `sweeps.path` says where the sweep lies, and `sweeps.fields` what its numbers are.
        root: the dataset's folder.
        scene: the drive.
        frame: counts from 0.
        sensor: its name.

    Raises:
        UsageError: if there is no such sweep.
        InputError: if its path is unknown, leads out of the folder, the file cannot be read, or it holds
            another number of points than the table says.
    """
    return open_sweep_points(_sweep_row(scenes, scene, frame, sensor), root)


def open_sweep_points(row: Mapping[str, Any], root: Path) -> PointCloud:
    """Points of the LiDAR sweep of a row.

    Args:
        row: of the table `sweeps`.
        root: the dataset's folder.

    Raises:
        InputError: as for `open_points`.
    """
    found = read_points(_sweep_path(row, root), row.get("fields") or OURS)
    _require_count(len(found), row, root)
    return found


def find_video_path(scenes: Scenes, root: Path, video: str) -> Path:
    """Path of a video.

    Args:
        scenes: whose `videos.path` says it; where it does not, a file of the video's name in `root` is taken.
        root: the dataset's folder.
        video: its name.

    Raises:
        UsageError: if there is no such video.
        InputError: if its path is unknown, leads out of the folder, or nothing is there.
    """
    folder, name = _root(root), _find_path(scenes, video)
    if name is None:
        # Cameras write capitals: film.MP4
        called = [f"{video}{each}" for ending in ENDINGS for each in (ending, ending.upper())]
        name = next(
            (each for each in called if not is_outside(each) and os.path.lexists(folder / each)), None
        )
    if name is None and not folder.is_dir():
        raise InputError("there is no such folder of videos", where=to_printable(str(root)))
    if name is None:
        raise InputError(
            f"the table does not say where the video lies, and no file of its name ({', '.join(ENDINGS)}) is in "
            f"{to_printable(str(root))}",
            where=to_printable(video),
        )
    return resolve_inside(folder, name)


def list_still_paths(scenes: Scenes) -> dict[str, dict[int, str]]:
    """Video to frame to path, of videos that are still images."""
    if "path" not in scenes.frames.columns:
        return {}
    rows = scenes.frames.select(pl.col("video", "path").cast(pl.String), "frame").drop_nulls("path")
    found: dict[str, dict[int, str]] = {}
    for video, path, frame in rows.iter_rows():
        found.setdefault(video, {})[frame] = path
    return found


def find_sidecar_file(scenes: Scenes, root: Path, video: str, name: str) -> Path:
    """A file in the folder in which a video lies.

    Args:
        scenes: whose `videos.path` says where the video lies.
        root: the dataset's folder.
        video: its name.
        name: of the file, one of `MEDIA`.

    Raises:
        UsageError: if there is no such video.
        InputError: if its path is unknown, leads out of the folder, or nothing is there.
    """
    path = _find_path(scenes, video)
    if path is None:
        raise InputError("the table does not say where the video lies", where=to_printable(video))
    folder = path.rpartition("/")[0]
    return resolve_inside(_root(root), f"{folder}/{name}" if folder else name)


def _sweep_row(scenes: Scenes, scene: str, frame: int, sensor: str) -> dict[str, Any]:
    rows = scenes.sweeps.filter(
        (pl.col("scene") == scene) & (pl.col("sensor") == sensor) & (pl.col("frame") == frame)
    )
    if rows.is_empty():
        raise UsageError(f"there is no sweep of sensor {sensor!r} in frame {frame} of scene {scene!r}")
    return rows.row(0, named=True)


def _sweep_path(row: Mapping[str, Any], root: Path) -> Path:
    """Where the sweep of a row lies."""
    if row.get("path") is None:
        where = to_printable(str(row["scene"]))
        raise InputError(f"the table does not say where the sweep of frame {row['frame']} lies", where=where)
    return resolve_inside(_root(root), row["path"])


def _require_count(count: int, row: Mapping[str, Any], root: Path) -> None:
    """Refuse a sweep with another number of points than its row says."""
    expected = row.get("n_points")
    if expected is not None and expected != count:
        message = f"the table promises {expected} points, the file holds {count}"
        raise InputError(message, where=f"{to_printable(str(root))}: {to_printable(row['path'])}")


def _still(scenes: Scenes, video: str, frame: int) -> str | None:
    """Where the image of a frame lies, in a set of images; None of other videos."""
    if "path" not in scenes.frames.columns:
        return None
    rows = scenes.frames.filter((pl.col("video") == video) & (pl.col("frame") == frame))
    if not rows.is_empty():
        found: str | None = rows["path"][0]
        return found
    stills = scenes.frames.filter((pl.col("video") == video) & pl.col("path").is_not_null())
    if not stills.is_empty():
        raise UsageError(f"there is no frame {frame} of video {video!r}, which has {len(stills)} images")
    return None


def _find_path(scenes: Scenes, video: str) -> str | None:
    """Where the table says that a video lies."""
    rows = scenes.videos.filter(pl.col("video") == video)
    if rows.is_empty():
        raise UsageError(f"there is no video {video!r}; there are {len(scenes.videos)} others")
    name = rows.row(0, named=True).get("path")
    return str(name) if name else None


def _root(root: Path) -> Path:
    return Path(os.path.realpath(root))
