"""Opening: captures of a set of scenes, by way of its tables of sensors, sweeps and poses, and warnings about odd ones
that are used all the same.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.corner_cases.captures import Camera, Capture, CommonObjects, SemanticMap
from roadaware.corner_cases.copg import Geometry
from roadaware.corner_cases.range_image import BEAMS, BINS
from roadaware.errors import InputError, UsageError
from roadaware.geometry.poses import find_pose_error, invert_pose
from roadaware.io.point_clouds import PointCloud
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.sensors import open_frame, open_sweep_points
from roadaware.scenes.tables import Scenes

Row = dict[str, Any]


@dataclass(frozen=True, order=True)
class Moment:
    """One image with the sweep of the same frame.

    Args:
        video: the image's.
        frame: of both.
        scene: the drive.
        camera: name of the sensor.
        lidar: name of the sensor.
    """

    video: str
    frame: int
    scene: str
    camera: str
    lidar: str


class Captures:
    """The images of a set that have a sweep and calibration, opened one by one.

    Args:
        scenes: with sensors and sweeps.
        root: the dataset's folder.
    """

    def __init__(self, scenes: Scenes, root: Path) -> None:
        self.scenes, self.root = scenes, Path(root)
        self.skipped: dict[str, int] = defaultdict(int)

    @cached_property
    def moments(self) -> list[Moment]:
        """The frames that can be opened, by video and frame; `skipped` then counts the others by reason."""
        sweeps: dict[tuple[str, int], list[str]] = defaultdict(list)
        for scene, sensor, frame in self.scenes.sweeps.select("scene", "sensor", "frame").iter_rows():
            sweeps[scene, frame].append(sensor)
        found: list[Moment] = []
        for video, row in self._videos.items():
            scene = row.get("scene") or video
            camera = self._camera_of(row, scene)
            for frame in self._frames[video]:
                lidars = sweeps.get((scene, frame), [])
                reason = self._lacks(scene, camera, lidars, frame)
                if reason:
                    self.skipped[reason] += 1
                else:
                    # min: of several LiDARs always the same one.
                    found.append(Moment(video, frame, scene, str(camera), min(lidars)))
        return sorted(found)

    def open(
        self, moment: Moment, *, semantics: SemanticMap | None = None, common: CommonObjects | None = None
    ) -> Capture:
        """Open the capture of a moment.

        Between image and sweep the vehicle moves: where both have a pose of the vehicle in the world, the
        way from LiDAR to camera leads through the world, else through the vehicle.

        Args:
            moment: one of `moments`.
            semantics: what each pixel shows.
            common: detected common objects.

        Raises:
            UsageError: if there is no such moment.
            InputError: if the sweep or the image cannot be read, a pose is none, or the camera matrix
                belongs to another image.
        """
        name = f"{to_printable(moment.video)}, frame {moment.frame}"
        lidar = self._sensor(moment.scene, moment.lidar, moment.frame)
        ego_lidar = self.vehicle_from_lidar(moment)
        seeing = self.camera(moment)
        points = self.points(moment)
        return Capture(
            points.xyz,
            seeing,
            ring=points.ring,
            layout=lidar.get("layout"),
            semantics=semantics,
            common=common,
            up=tuple(ego_lidar[2, :3].tolist()),
            name=name,
        )

    def points(self, moment: Moment) -> PointCloud:
        """Returns of the sweep of a moment.

        Args:
            moment: one of `moments`.

        Raises:
            UsageError: if there is no such moment.
            InputError: if the sweep cannot be read.
        """
        return open_sweep_points(self._sweep(moment), self.root)

    def camera(self, moment: Moment) -> Camera:
        """The camera of a moment, and where it sits as seen from the LiDAR; the sweep is not read.

        Args:
            moment: one of `moments`.

        Raises:
            UsageError: if there is no such moment.
            InputError: if a pose is none, or the camera matrix belongs to another image.
        """
        name = f"{to_printable(moment.video)}, frame {moment.frame}"
        camera = self._sensor(moment.scene, moment.camera, moment.frame)
        way = self._camera_from_lidar(moment, camera, self.vehicle_from_lidar(moment), name)
        lens = np.array(camera["intrinsics"], dtype=np.float64)
        found = Camera(lens.reshape(3, 3) if lens.size == 9 else lens, way, *self._size(moment))
        validate_principal_point(found)
        return found

    def world_from_lidar(self, moment: Moment) -> Floats | None:
        """(4, 4) pose of the LiDAR in the world; None where the set does not say where the vehicle is.

        Args:
            moment: one of `moments`.

        Raises:
            InputError: if a pose is none.
        """
        world_ego = self._sweep(moment).get("world_SE3_ego")
        if world_ego is None:
            return None
        name = f"{to_printable(moment.video)}, frame {moment.frame}: the vehicle in the world"
        found: Floats = _pose(world_ego, name) @ self.vehicle_from_lidar(moment)
        return found

    def time_s(self, moment: Moment) -> float | None:
        """When the sweep of a moment was taken, in seconds; by the frame rate where the sweep does not say.

        Args:
            moment: one of `moments`.
        """
        taken = self._sweep(moment).get("t_s")
        if taken is not None:
            return float(taken)
        rate = self._videos[moment.video].get("fps")
        return None if not rate else moment.frame / float(rate)

    def vehicle_from_lidar(self, moment: Moment) -> Floats:
        """(4, 4) pose of the LiDAR in the vehicle.

        Args:
            moment: one of `moments`.

        Raises:
            InputError: if it is no pose.
        """
        name = f"{to_printable(moment.video)}, frame {moment.frame}: {moment.lidar}"
        return _pose(self._sensor(moment.scene, moment.lidar, moment.frame)["ego_SE3_sensor"], name)

    def files(self, moment: Moment) -> list[Path]:
        """The files of sweep and image, be they there or not.

        Args:
            moment: one of `moments`.
        """
        video = self._videos[moment.video]
        names = (self._sweep(moment).get("path"), self._shot(moment).get("path") or video.get("path"))
        return [self.root / name for name in names if name and not is_outside(name)]

    @cached_property
    def _videos(self) -> dict[str, Row]:
        return {row["video"]: row for row in self.scenes.videos.iter_rows(named=True)}

    @cached_property
    def _frames(self) -> dict[str, list[int]]:
        """Frames of each video: those of the table, or as many as it has."""
        found: dict[str, list[int]] = defaultdict(list)
        for video, frame in self.scenes.frames.select("video", "frame").iter_rows():
            found[video].append(frame)
        for video, row in self._videos.items():
            if video not in found:
                found[video] = list(range(row.get("n_frames") or 0))
        return found

    @cached_property
    def _sensors(self) -> dict[tuple[str, str], list[Row]]:
        """Rows of each sensor, from the earliest."""
        found: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.scenes.sensors.sort("from_frame").iter_rows(named=True):
            found[row["scene"], row["sensor"]].append(row)
        return found

    def _camera_of(self, video: Row, scene: str) -> str | None:
        """The sensor that a video names, or the only camera of its scene."""
        if video.get("sensor") is not None:
            return str(video["sensor"])
        cameras = [
            sensor
            for (where, sensor), rows in self._sensors.items()
            if where == scene and any(row.get("intrinsics") is not None for row in rows)
        ]
        return cameras[0] if len(cameras) == 1 else None

    def _lacks(self, scene: str, camera: str | None, lidars: list[str], frame: int) -> str:
        """Why an image cannot be opened with a sweep; empty where it can."""
        if not lidars:
            return "no sweep"
        if camera is None:
            return "no camera is named"
        for sensor in (camera, min(lidars)):
            rows = [row for row in self._sensors.get((scene, sensor), []) if row["from_frame"] <= frame]
            if not rows or rows[-1].get("ego_SE3_sensor") is None:
                return "no calibration"
            if sensor == camera and rows[-1].get("intrinsics") is None:
                return "no calibration"
        return ""

    def _sensor(self, scene: str, sensor: str, frame: int) -> Row:
        rows = [row for row in self._sensors.get((scene, sensor), []) if row["from_frame"] <= frame]
        if not rows:
            raise UsageError(f"sensor {sensor!r} of scene {scene!r} has no calibration in frame {frame}")
        return rows[-1]

    def _camera_from_lidar(self, moment: Moment, camera: Row, ego_lidar: Floats, name: str) -> Floats:
        ego_camera = _pose(camera["ego_SE3_sensor"], f"{name}: {moment.camera}")
        shot, sweep = self._shot(moment), self._sweep(moment)
        world_then = sweep.get("world_SE3_ego")
        if world_then is None or (shot.get("world_SE3_ego") is None and shot.get("world_SE3_camera") is None):
            return invert_pose(ego_camera) @ ego_lidar
        if shot.get("world_SE3_camera") is not None:
            world_camera = _pose(shot["world_SE3_camera"], f"{name}: the camera in the world")
        else:
            world_camera = _pose(shot["world_SE3_ego"], f"{name}: the vehicle in the world") @ ego_camera
        return invert_pose(world_camera) @ _pose(world_then, f"{name}: the vehicle in the world") @ ego_lidar

    def _shot(self, moment: Moment) -> Row:
        """The image's row of `frames`, empty where there is none."""
        place = self._shots.get((moment.video, moment.frame))
        return {} if place is None else self.scenes.frames.row(place, named=True)

    def _sweep(self, moment: Moment) -> Row:
        place = self._sweeps.get((moment.scene, moment.lidar, moment.frame))
        if place is None:
            raise UsageError(
                f"there is no sweep of {moment.lidar!r} in frame {moment.frame} of {moment.scene!r}"
            )
        return self.scenes.sweeps.row(place, named=True)

    @cached_property
    def _shots(self) -> dict[tuple[str, int], int]:
        """Video and frame to the row of `frames`: looking through the table each time would take longer."""
        rows = self.scenes.frames.select("video", "frame").iter_rows()
        return {(video, frame): place for place, (video, frame) in enumerate(rows)}

    @cached_property
    def _sweeps(self) -> dict[tuple[str, str, int], int]:
        """Scene, sensor and frame to the row of `sweeps`."""
        rows = self.scenes.sweeps.select("scene", "sensor", "frame").iter_rows()
        return {(scene, sensor, frame): place for place, (scene, sensor, frame) in enumerate(rows)}

    def _size(self, moment: Moment) -> tuple[int, int]:
        """Width and height of the image; of the image itself where the table does not say."""
        row = self._videos[moment.video]
        if row.get("width_px") is not None and row.get("height_px") is not None:
            return row["width_px"], row["height_px"]
        height, width = open_frame(self.scenes, self.root, moment.video, moment.frame).shape[:2]
        return width, height


def _pose(values: Any, name: str) -> Floats:
    """(4, 4) of a row's pose.

    Raises:
        InputError: if it is none.
    """
    found = np.array(values, dtype=np.float64)
    fault = find_pose_error(found.reshape(4, 4)) if found.shape == (16,) else "it has no 16 numbers"
    if fault:
        raise InputError(f"no pose: {fault}", where=name, hint="check the calibration")
    return found.reshape(4, 4)


NO_GROUND = "no ground was found, and none was removed"
NO_RETURNS = "no return of the sweep can be used"
LEFT_OUT = "some returns are not finite or beyond 10 km, and were left out"
NO_RINGS = "neither rings nor an order of returns that tells them: rows of the range image are guessed"
OFF_CENTRE = "the calibration's middle lies far from the image's: it may belong to another size of image"
NO_NAMES = (
    "more than a fifth of a mask's pixels have numbers without a name: check classes.json beside the masks"
)
NOT_TOLD = "the detections tell nothing of the video, so that nothing common is suppressed in it"
_STANDS_M = (1.0, 3.5)
"""How high LiDARs on cars and vans stand above the road; the search for the ground is more generous."""
# Some pixels may have no class, such as those of the own bonnet; with other classes' names most may.
_UNNAMED = 0.2
# The middle is near 1/2; a calibration of half the size puts it at 1/4, one of double the size at 1.
_USUAL = (0.3, 0.7)


def collect_warnings(capture: Capture, geometry: Geometry) -> list[str]:
    """Warnings about a capture; equal texts but for numbers for the same problem."""
    counts = geometry.checked.counts
    found = []
    if not counts.get("usable"):
        found.append(NO_RETURNS)
    elif geometry.ground.plane is None:
        found.append(NO_GROUND)
    elif not _STANDS_M[0] <= geometry.ground.plane[3] <= _STANDS_M[1]:
        found.append(format_lidar_height(float(geometry.ground.plane[3])))
    if counts.get("not finite") or counts.get("beyond 10 km"):
        found.append(LEFT_OUT)
    if counts.get("usable") and geometry.grid.how in (BEAMS, BINS):
        found.append(NO_RINGS)
    if not all(_USUAL[0] <= share <= _USUAL[1] for share in get_principal_point(capture.camera)):
        found.append(OFF_CENTRE)
    if capture.semantics is not None and compute_unnamed_fraction(capture.semantics) > _UNNAMED:
        found.append(NO_NAMES)
    if capture.common is not None and not capture.common.has_predictions:
        found.append(NOT_TOLD)
    return found


def format_lidar_height(height_m: float) -> str:
    """The warning that a LiDAR stands at a height that no car has.

    Args:
        height_m: above the ground that was found.
    """
    usual = f"{_STANDS_M[0]} to {_STANDS_M[1]} m are usual"
    return f"the LiDAR stands {height_m:.1f} m above the ground found, {usual}: check unit and axes of sweeps"


def compute_unnamed_fraction(shown: SemanticMap) -> float:
    """Share of the pixels of a semantic map whose number has no name."""
    codes = shown.classes
    outside = np.count_nonzero(codes >= len(shown.names)) + np.count_nonzero(codes < 0)
    return float(outside) / max(codes.size, 1)


def get_principal_point(camera: Camera) -> tuple[float, float]:
    """The principal point as shares of the image's width and height.

    Args:
        camera: whose matrix may belong to an image of another size.
    """
    lens = camera.intrinsics
    return float(lens[0, 2]) / camera.width_px, float(lens[1, 2]) / camera.height_px


def validate_principal_point(camera: Camera) -> None:
    """Refuse a camera matrix that cannot belong to the image.

    Raises:
        InputError: if the middle of the calibration lies outside the image.
    """
    across, down = get_principal_point(camera)
    if not (0 <= across <= 1 and 0 <= down <= 1):
        size = f"{camera.width_px}x{camera.height_px}"
        message = f"the middle of the calibration lies outside the image of {size} pixels"
        raise InputError(message, hint="scale the camera matrix with the image, or take the original one")
