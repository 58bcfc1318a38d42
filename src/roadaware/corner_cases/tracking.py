"""Proposals over time: what stands in several sweeps, what moves, how it looks best; cuboids as files of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.corner_cases.captures import Camera
from roadaware.corner_cases.cuboids import compute_cuboid_corners, select_best_boxes
from roadaware.corner_cases.ground import check, find_ground, validate_lidar_points
from roadaware.corner_cases.loader import Captures, Moment
from roadaware.corner_cases.runner import Order, load_run_inputs
from roadaware.errors import InputError, UsageError
from roadaware.formats.cuboid_labels import CUBOID, CuboidForm, write_cuboids
from roadaware.geometry.boxes import iou
from roadaware.geometry.poses import find_pose_error, invert_pose
from roadaware.io.json import parse
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions

STILL_M, SPEED_M_S = 1.0, 3.0
"""How far the middle of a thing moves from sweep to sweep at most: by what is seen of it, and by itself."""
GAP = 2
"""Frames without a thing after which it is another one."""
MOVES_M_S, MOVES_M = 0.7, 0.8
"""A thing moves where it is this fast over its track and has come this far: middles of standing ones tremble by as much as
what is seen of them changes."""
ALIKE = 1.0
"""Things whose sizes differ by more than this factor, as a natural logarithm, are two."""
CARRIED = 0.5
"""What a carried box is worth beside one that was seen."""
_NEAR_M = 0.5
_SAME_PLACE = 0.3


@dataclass
class _Track:
    """Rows of one thing, in the order of their frames."""

    rows: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    centres: list[Floats] = field(default_factory=list)
    size: Floats = field(default_factory=lambda: np.zeros(3))

    def predict(self, time_s: float) -> Floats:
        """(3,) where it should be at a time: as fast as between the last two sweeps, if it was seen to move."""
        if len(self.rows) < 2:
            return self.centres[-1]
        step = self.times[-1] - self.times[-2]
        velocity = (self.centres[-1] - self.centres[-2]) / max(step, 1e-3)
        if np.linalg.norm(velocity[:2]) < MOVES_M_S:
            return self.centres[-1]
        found: Floats = self.centres[-1] + velocity * (time_s - self.times[-1])
        return found

    def add(self, row: int, frame: int, time_s: float, centre: Floats, size: Floats) -> None:
        """One more sweep that saw it."""
        self.rows.append(row)
        self.frames.append(frame)
        self.times.append(time_s)
        self.centres.append(centre)
        self.size = np.maximum(self.size, size)

    @property
    def velocity(self) -> Floats:
        """(2,) metres a second over the whole track, along the ground."""
        if len(self.rows) < 2:
            return np.zeros(2)
        found: Floats = (self.centres[-1] - self.centres[0])[:2] / max(self.times[-1] - self.times[0], 1e-3)
        return found

    @property
    def moves(self) -> bool:
        """Whether it moves, and is not only seen from elsewhere."""
        if len(self.rows) < 2:
            return False
        come = float(np.linalg.norm((self.centres[-1] - self.centres[0])[:2]))
        return come >= MOVES_M and float(np.linalg.norm(self.velocity)) >= MOVES_M_S


def track_proposals(
    proposals: Predictions,
    captures: Captures,
    *,
    most: int | None = None,
    carry: bool = True,
    poses: Mapping[Moment, Floats] | None = None,
) -> Predictions:
    """The proposals with the track of each, its persistence and whether it moves, and what standing things lend to others.

    Middles of cuboids are compared in the world, from frame to frame of each video. The score of a box becomes
    `score * (1 + persistence) / 2`, where persistence is the share of the sweeps, of those in which its place is in the
    image, that saw it. Where a standing thing was not proposed although its place is in the image, its best cuboid gives a
    box (`carried`, with half of its track's best score times its persistence). All sweeps of a video are used, later ones
    too.

    Args:
        proposals: of `runner.propose_set`, with cuboids.
        captures: the set that they are of.
        most: boxes of an image that are kept; None for all.
        carry: whether boxes are carried to sweeps that did not see a thing.
        poses: (4, 4) of the LiDAR in the world, of images where the set's own are not used, as of `estimate_set_poses`;
            default: none.

    Returns:
        Proposals whose boxes have a `tube`, `persistence`, `speed_m_s`, `moving`, `carried` and `chance` (that the thing is
        a corner case, see `estimate_chances`), and the table `tubes`:
        of each thing the sweeps that saw it, where it is in the world, its velocity and best score.

    Raises:
        UsageError: if the proposals have no cuboids, or the set does not say where the vehicle was.
        InputError: if a pose is none.
    """
    missing = [name for name in CUBOID if name not in proposals.boxes.columns]
    if missing:
        raise UsageError(
            f"these proposals have no cuboids ({', '.join(missing)}); propose again with this version"
        )
    # Cameras and poses of all images of the proposals' videos.
    videos = set(proposals.boxes["video"].cast(pl.String))
    views = {}
    for moment in captures.moments:
        if moment.video in videos:
            world, time_s = _find_pose(captures, moment, poses or {}), captures.time_s(moment)
            if world is None or time_s is None:
                raise UsageError(
                    f"{moment.video}: the set does not say where the vehicle was, or when; tracks need "
                    "poses of sweeps (nuScenes and synthetic scenes have them)"
                )
            try:
                views[moment.video, moment.frame] = _View(captures.camera(moment), world, time_s)
            except InputError:
                # Its image was left out of the proposals, too.
                continue
    boxes = proposals.boxes.with_columns(pl.col("video").cast(pl.String)).sort("video", "frame", "box")
    made: list[dict[str, Any]] = []
    tubes: list[dict[str, Any]] = []
    for key, part in boxes.partition_by("video", as_dict=True, maintain_order=True).items():
        video = str(key[0])
        own = {frame: view for (name, frame), view in views.items() if name == video}
        _track_video(video, part, own, made, tubes, carry=carry)
    table = pl.DataFrame(
        made,
        schema={**{name: kind for name, kind in boxes.schema.items() if name not in _ADDED}, **_ADDED},
        strict=False,
    )
    # The best boxes of each image; a carried one only where no box was seen.
    best = np.zeros(len(table), dtype=np.bool_)
    corners = table.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    scores, carried = table["score"].to_numpy(), table["carried"].to_numpy()
    groups = table.with_row_index("row").group_by("video", "frame", maintain_order=True).agg("row")
    for rows in groups["row"].to_list():
        places = np.array(rows, dtype=np.int64)
        allowed = np.ones(len(places), dtype=np.bool_)
        mine = carried[places]
        if mine.any() and not mine.all():
            overlaps = iou(corners[places], corners[places][~mine]).max(axis=1)
            allowed = ~mine | (overlaps < _SAME_PLACE)
        # Carried boxes may be copies of each other; those that were seen have been compared already.
        found = select_best_boxes(corners[places], scores[places], allowed, duplicate_iou=0.6, most=most)
        best[places] = found
    kept = table.filter(pl.Series(best))
    kept = kept.sort("video", "frame", "score", descending=[False, False, True], maintain_order=True)
    kept = estimate_chances(kept.drop("box").with_row_index("box").cast({"box": pl.Int64}))
    known = pl.DataFrame(tubes, schema=_TUBES).filter(pl.col("tube").is_in(kept["tube"].unique().implode()))
    return Predictions(boxes=kept, tubes=known, meta=proposals.meta)


def _find_pose(captures: Captures, moment: Moment, poses: Mapping[Moment, Floats]) -> Floats | None:
    return poses[moment] if moment in poses else captures.world_from_lidar(moment)


_TUBES: dict[str, Any] = {
    "tube": pl.Int64,
    "video": pl.String,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "score": pl.Float64,
    "sweeps": pl.Int64,
    "persistence": pl.Float64,
    "moving": pl.Boolean,
    "speed_m_s": pl.Float64,
    **{f"world_{name}_m": pl.Float64 for name in "xyz"},
    "velocity_x_m_s": pl.Float64,
    "velocity_y_m_s": pl.Float64,
}
_ADDED: dict[str, Any] = {
    "tube": pl.Int64,
    "persistence": pl.Float32,
    "speed_m_s": pl.Float32,
    "moving": pl.Boolean,
    "carried": pl.Boolean,
}


CHANCE = "chance"
CHANCES = "track_chances.json"
"""What `docs/corner_annotation.py` fitted: of each of `TRACK_FEATURES` the mean and the spread, and the weight of a logistic
regression of whether a thing is a corner case."""


def describe_tracks(boxes: pl.DataFrame) -> pl.DataFrame:
    """What the boxes of each thing say of it over all sweeps, one row a `tube`; 0 where it is not known.

    Args:
        boxes: of tracks; carried ones are left out.
    """
    seen = boxes.filter(~pl.col("carried"))
    found = seen.group_by("tube").agg(
        score=pl.col("score").max().log1p(),
        scores=pl.col("score").sum().log1p(),
        persistence=pl.col("persistence").max(),
        sweeps=pl.len().log1p(),
        returns=pl.col("n_returns").max().log1p(),
        distance_m=pl.col("distance_m").min().log1p(),
        height_m=pl.col("height_m").median().log1p(),
        length_m=pl.col("length_m").max().log1p(),
        feet_m=(pl.col("z_m") - pl.col("height_m") / 2).median(),
        moving=pl.col("moving").first(),
        speed_m_s=pl.col("speed_m_s").first(),
        background=pl.col("background_share").mean() if "background_share" in boxes.columns else pl.lit(0.0),
        common=pl.col("common_iou").max() if "common_iou" in boxes.columns else pl.lit(0.0),
    )
    numbers = pl.col(TRACK_FEATURES).cast(pl.Float64).fill_null(0.0).fill_nan(0.0)
    return found.with_columns(numbers).sort("tube")


TRACK_FEATURES = (
    "score",
    "scores",
    "persistence",
    "sweeps",
    "returns",
    "distance_m",
    "height_m",
    "length_m",
    "feet_m",
    "moving",
    "speed_m_s",
    "background",
    "common",
)
"""Columns of `describe_tracks`: greatest and summed score, persistence, sweeps, most returns, least distance, size, feet
above the LiDAR, movement, mean share of background, and greatest overlap with a common object."""


def estimate_chances(boxes: pl.DataFrame) -> pl.DataFrame:
    """The boxes with the column `chance`: that their thing is a corner case; 0 for things that are carried alone.

    A second judgement of whole tracks, where `score` is of a box in one sweep and of how well it fits anything.

    Args:
        boxes: of tracks.
    """
    held, table = _load_chances(), describe_tracks(boxes)
    rows = (table.select(TRACK_FEATURES).to_numpy() - held["mean"]) / held["spread"]
    chance = 1 / (1 + np.exp(-(rows @ held["weight"] + held["bias"])))
    found = table.select("tube").with_columns(pl.Series(CHANCE, chance, dtype=pl.Float32))
    joined = boxes.drop(CHANCE, strict=False).join(found, on="tube", how="left", maintain_order="left")
    return joined.with_columns(pl.col(CHANCE).fill_null(0.0))


@cache
def _load_chances() -> dict[str, Any]:
    held = parse(files(__package__).joinpath(CHANCES).read_text(encoding="utf-8"), CHANCES)
    return {name: np.array(held[name]) for name in ("mean", "spread", "weight", "bias")}


@dataclass(frozen=True)
class _View:
    """A sweep with its camera.

    Args:
        camera: that took the image.
        world_lidar: (4, 4) pose of the LiDAR in the world.
        time_s: when.
    """

    camera: Camera
    world_lidar: Floats
    time_s: float


def _track_video(
    video: str,
    part: pl.DataFrame,
    views: dict[int, _View],
    made: list[dict[str, Any]],
    tubes: list[dict[str, Any]],
    *,
    carry: bool,
) -> None:
    """Tracks of one video: its boxes and things are added to the lists."""
    rows = part.to_dicts()
    solid = part.select(CUBOID).to_numpy().astype(np.float64).reshape(-1, 7)
    by_frame: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row["frame"] in views and np.isfinite(solid[place]).all():
            by_frame[row["frame"]].append(place)
    centres = np.zeros((len(rows), 3))
    for frame, places in by_frame.items():
        pose = views[frame].world_lidar
        centres[places] = solid[places, :3] @ pose[:3, :3].T + pose[:3, 3]
    tracks = _link(by_frame, views, centres, solid)
    single = [place for place in range(len(rows)) if all(place not in track.rows for track in tracks)]
    for place in single:
        # A box without a cuboid, or without a pose, is a thing of its own.
        track = _Track()
        track.add(place, rows[place]["frame"], 0.0, centres[place], solid[place, 3:6])
        tracks.append(track)
    for track in tracks:
        number = len(tubes)
        best = max(track.rows, key=lambda place: rows[place]["n_returns"])
        seen, missed = set(track.frames), []
        moves, speed = track.moves, float(np.linalg.norm(track.velocity))
        carried: dict[int, tuple[Floats, float]] = {}
        if track.frames[0] in views and not moves and np.isfinite(solid[best]).all():
            carried = _project_elsewhere(solid[best], rows[best]["frame"], views)
            missed = [frame for frame in carried if frame not in seen]
        persistence = len(seen) / (len(seen) + len(missed)) if not moves else len(seen) / _span(track, views)
        top = max(float(rows[place]["score"]) for place in track.rows)
        facts = {"tube": number, "persistence": persistence, "speed_m_s": speed, "moving": moves}
        for place in track.rows:
            score = float(rows[place]["score"]) * (1 + persistence) / 2
            made.append({**rows[place], **facts, "score": score, "carried": False})
        if carry and len(track.rows) > 1:
            for frame in missed:
                edges, away = carried[frame]
                base = dict.fromkeys(rows[best])
                base |= {"video": video, "frame": frame, "box": -1, "n_returns": 0, "distance_m": away}
                base |= {"corner_case": True, "score": CARRIED * top * persistence, "carried": True, **facts}
                base |= dict(zip(CORNERS, edges.tolist(), strict=True))
                base |= dict(
                    zip(CUBOID, _move_cuboid(solid[best], rows[best]["frame"], frame, views), strict=True)
                )
                made.append(base)
        velocity = track.velocity if moves else np.zeros(2)
        frames = [*track.frames, *(missed if carry and len(track.rows) > 1 else [])]
        tubes.append(
            {
                "tube": number,
                "video": video,
                "start_frame": min(frames),
                "end_frame": max(frames) + 1,
                "score": top,
                "sweeps": len(seen),
                "persistence": persistence,
                "moving": moves,
                "speed_m_s": speed,
                **{f"world_{name}_m": float(value) for name, value in zip("xyz", centres[best], strict=True)},
                "velocity_x_m_s": float(velocity[0]),
                "velocity_y_m_s": float(velocity[1]),
            }
        )


def _link(
    by_frame: dict[int, list[int]], views: dict[int, _View], centres: Floats, solid: Floats
) -> list[_Track]:
    """Tracks of the boxes of a video: frame by frame, each thing takes the nearest box that it could have become."""
    from scipy.optimize import linear_sum_assignment

    tracks: list[_Track] = []
    for frame in sorted(by_frame):
        places, time_s = by_frame[frame], views[frame].time_s
        open_tracks = [track for track in tracks if frame - track.frames[-1] <= GAP]
        taken: dict[int, _Track] = {}
        if open_tracks and places:
            expected = np.stack([track.predict(time_s) for track in open_tracks])
            apart = np.linalg.norm((expected[:, None] - centres[places][None])[..., :2], axis=2)
            waited = np.array([time_s - track.times[-1] for track in open_tracks])[:, None]
            sizes = np.log(np.stack([track.size for track in open_tracks]))[:, None]
            unlike = np.abs(sizes - np.log(solid[places, 3:6])[None]).max(axis=2)
            # Deeper sides come and go with the angle of view; metres count, sizes decide between near ones.
            cost = apart + 0.5 * unlike
            barred = (apart > STILL_M + SPEED_M_S * waited) | (unlike > 2 * ALIKE)
            # A bar far above all costs: an assignment takes as few of them as it can.
            chosen = linear_sum_assignment(np.where(barred, 1e6, cost))
            for row, column in zip(*chosen, strict=True):
                if not barred[row, column]:
                    taken[places[column]] = open_tracks[row]
        for place in places:
            track = taken.get(place)
            if track is None:
                track = _Track()
                tracks.append(track)
            track.add(place, frame, time_s, centres[place], solid[place, 3:6])
    return tracks


def _span(track: _Track, views: dict[int, _View]) -> int:
    """Sweeps from the first to the last that saw a thing."""
    return sum(track.frames[0] <= frame <= track.frames[-1] for frame in views)


def _move_cuboid(cuboid: Floats, frame: int, other: int, views: dict[int, _View]) -> Floats:
    """(7,) a cuboid of one sweep in the LiDAR's frame of another, where it stands at the same place of the world."""
    way = invert_pose(views[other].world_lidar) @ views[frame].world_lidar
    ahead = way[:3, :3] @ np.array([np.cos(cuboid[6]), np.sin(cuboid[6]), 0.0])
    return np.array([*(way[:3, :3] @ cuboid[:3] + way[:3, 3]), *cuboid[3:6], np.arctan2(ahead[1], ahead[0])])


def project_cuboid(cuboid: Floats, camera: Camera) -> Floats | None:
    """(4,) the box around a cuboid in the image, cut to it; None where it is not before the camera, or not in the image.

    Args:
        cuboid: (7,) in the LiDAR's frame.
        camera: where to.
    """
    way = camera.camera_SE3_lidar
    places = compute_cuboid_corners(cuboid) @ way[:3, :3].T + way[:3, 3]
    if (places[:, 2] < _NEAR_M).any():
        return None
    pixels = (places @ camera.intrinsics.T)[:, :2] / places[:, 2:]
    size = np.array([camera.width_px, camera.height_px], dtype=np.float64)
    low, high = np.clip(pixels.min(axis=0), 0, size), np.clip(pixels.max(axis=0), 0, size)
    return None if (high - low < 1).any() else np.concatenate([low, high])


def _project_elsewhere(
    cuboid: Floats, frame: int, views: dict[int, _View]
) -> dict[int, tuple[Floats, float]]:
    """Frame to the box of a standing cuboid and how far it is, where its middle is in the image; its own frame too."""
    found = {}
    for other, view in views.items():
        moved = _move_cuboid(cuboid, frame, other, views)
        middle = view.camera.camera_SE3_lidar[:3, :3] @ moved[:3] + view.camera.camera_SE3_lidar[:3, 3]
        if middle[2] < _NEAR_M:
            continue
        pixel = (view.camera.intrinsics @ middle)[:2] / middle[2]
        if not (0 <= pixel[0] < view.camera.width_px and 0 <= pixel[1] < view.camera.height_px):
            continue
        edges = project_cuboid(moved, view.camera)
        if edges is not None:
            found[other] = edges, float(np.linalg.norm(moved[:3]))
    return found


TRACKS, CUBOIDS = "tracks", "cuboids"
"""Folders beside the proposals: saved Predictions with tracks, and files of other tools."""


def require_poses(order: Order, *, odometry: bool = False) -> None:
    """Refuse, before any work, what needs to know where the vehicle was.

    Args:
        order: what is proposed.
        odometry: whether poses that are missing are to be estimated; then kiss-icp and times of all sweeps are needed.

    Raises:
        UsageError: if the set does not say where the vehicle was, or what odometry needs is missing.
        InputError: if the set cannot be read, or times of sweeps do not rise, or a drive has sweeps of several LiDARs.
    """
    held = load_run_inputs(order)
    without = [moment for moment in held.moments if held.captures.world_from_lidar(moment) is None]
    if without and not odometry:
        raise UsageError(
            f"tracks and boxes in the world need poses of the vehicle, which {len(without):,} of "
            f"{len(held.moments):,} images lack, {without[0].video} first; nuScenes and synthetic scenes have them, "
            "--odometry estimates them from sweeps in order"
        )
    if without:
        _create_odometry()
        for scene, moments in _list_drives_without_poses(held.captures, held.moments).items():
            times = dict(sorted((moment.frame, held.captures.time_s(moment)) for moment in moments)).values()
            if None in times:
                raise UsageError(f"odometry needs the times of sweeps, which {to_printable(scene)} lacks")
            if not all(one < other for one, other in pairwise(cast("list[float]", list(times)))):
                raise InputError("times of sweeps should rise", where=to_printable(scene), hint=_HINT)
            if (lidars := len({moment.lidar for moment in moments})) > 1:
                raise InputError(
                    f"odometry follows one LiDAR, and these images have sweeps of {lidars}",
                    where=to_printable(scene),
                    hint=_HINT,
                )


def _list_drives_without_poses(captures: Captures, moments: Sequence[Moment]) -> dict[str, list[Moment]]:
    """All images of each drive in which a sweep lacks a pose."""
    lacking = {moment.scene for moment in moments if captures.world_from_lidar(moment) is None}
    drives: dict[str, list[Moment]] = defaultdict(list)
    for moment in moments:
        if moment.scene in lacking:
            drives[moment.scene].append(moment)
    return drives


# Odometry: poses of sweeps in order, where a set has none.

BRIDGED_S = 2.0
"""How long a drive may have no sweep that can be matched: so long it is taken to go on as before."""
STANDS_OUT_M = 0.5
"""Returns lower than this above the ground are not matched: rings on a flat road look the same from everywhere, and hold
the estimate where it was."""
FASTEST_M_S = 40.0
"""The first motion is looked for up to this speed: from no motion the match of sweeps far apart ends where rings and columns
of the two meet, at no motion."""
_FEWEST = 100
_HINT = "leave the drive out by --split, or write its poses into the set"


def estimate_poses(
    sweeps: Iterable[npt.NDArray[np.floating]],
    times_s: Sequence[float],
    *,
    vehicle_from_lidar: Floats | None = None,
    min_range_m: float = 0.0,
) -> Floats:
    """(T, 4, 4) poses of a LiDAR in the frame of its first sweep, by KISS-ICP on what stands on the ground.

    Each sweep is matched with a map of those before it, from where it would be at unchanged speed; the second from every
    metre ahead and two behind, of which the best is kept. A sweep with fewer than 100 usable returns within 100 m that stand
    out of the ground is not matched: it is taken to be where it would be. Points are not corrected for motion within a
    sweep. One thread: the same sweeps give the same bytes. Library: kiss-icp. Source: Vizzo et al., IEEE RA-L 2023.

    Args:
        sweeps: T of (n, 3) metres in the LiDAR's frame; n may be 0, and numbers that are not finite are left out.
        times_s: (T,) seconds, rising.
        vehicle_from_lidar: (4, 4) pose of the LiDAR in the vehicle, x ahead, z up; default: that of one that stands straight.
        min_range_m: horizontal; what is nearer belongs to the own vehicle.

    Raises:
        UsageError: if kiss-icp is not installed.
        InputError: if times do not rise, no sweep could be matched for longer than `BRIDGED_S`, or the estimate is no pose.
    """
    odometry = _create_odometry()
    turn = np.eye(3) if vehicle_from_lidar is None else np.asarray(vehicle_from_lidar)[:3, :3]
    poses: list[Floats] = []
    # Returns and time of the last sweep that was matched (else the first), and how long after the one before it.
    matched, matched_s, step_s = np.zeros((0, 3)), float(times_s[0]) if len(times_s) else 0.0, 0.0
    for points, time_s in zip(sweeps, times_s, strict=True):
        since = float(time_s) - matched_s
        if poses and not times_s[len(poses)] > times_s[len(poses) - 1]:
            raise InputError(f"times of sweeps should rise; sweep {len(poses)} is not after the one before")
        if since > BRIDGED_S:
            raise InputError(
                f"{since:.1f} s up to sweep {len(poses)} have no sweep that can be matched; odometry bridges {BRIDGED_S:g}"
            )
        moved = _scale_motion(odometry.last_delta, since / step_s) if step_s else np.eye(4)
        standing = _select_standing(points, turn[2], min_range_m)
        if len(standing) < _FEWEST:
            poses.append(odometry.last_pose @ moved)
            continue
        if len(matched) and not step_s:
            moved = _search_first_motion(odometry, matched, standing, turn[0], FASTEST_M_S * since)
        odometry.last_delta = moved
        odometry.register_frame(standing, np.zeros(0))
        pose = np.array(odometry.last_pose, dtype=np.float64)
        if fault := find_pose_error(pose):
            raise InputError(f"the estimated pose of sweep {len(poses)} is none: {fault}")
        poses.append(pose)
        matched, matched_s, step_s = standing, float(time_s), since if len(matched) else 0.0
    return np.stack(poses) if poses else np.zeros((0, 4, 4))


def _search_first_motion(
    odometry: Any, matched: Floats, standing: Floats, ahead: Floats, farthest_m: float
) -> Floats:
    """(4, 4) how the LiDAR moved from the first matched sweep to the second: the match that leaves returns nearest.

    Args:
        odometry: KISS-ICP, which knows the first sweep alone.
        matched: (m, 3) returns of the first.
        standing: (n, 3) returns of the second.
        ahead: (3,) of the vehicle, in the LiDAR's frame.
        farthest_m: how far ahead it is looked for.
    """
    from scipy.spatial import KDTree

    tree, (source, _) = KDTree(matched), odometry.voxelize(standing)
    best, least = np.eye(4), np.inf
    # From no motion outwards, so that of equal ones the least is kept.
    for metres in sorted(range(-2, int(farthest_m) + 2), key=abs):
        guess = odometry.last_pose.copy()
        guess[:3, 3] += metres * ahead
        # Near returns alone, so that each match stays about where it began.
        pose = odometry.registration.align_points_to_map(source, odometry.local_map, guess, 1.5, 0.5)
        apart = tree.query(source @ pose[:3, :3].T + pose[:3, 3], distance_upper_bound=1.0)[0]
        far = float(np.minimum(apart, 1.0).mean())
        if far < least:
            best, least = invert_pose(odometry.last_pose) @ pose, far
    return best


def _select_standing(points: npt.NDArray[np.floating], up: Floats, min_range_m: float) -> Floats:
    """(m, 3) usable returns within reach that stand out of the ground; all usable ones where no ground is found."""
    places = validate_lidar_points(points)
    try:
        checked = check(places, min_range_m=min_range_m)
    except InputError:
        # In another unit or frame: its image was left out of the proposals, too.
        return np.zeros((0, 3))
    ground = find_ground(places, checked, up=up)
    kept = checked.usable & (np.einsum("ij,ij->i", places, places, dtype=np.float64) < _MAP_M**2)
    if ground.heights is not None:
        kept &= ground.heights > STANDS_OUT_M
    found: Floats = places[kept].astype(np.float64)
    return found


def _scale_motion(motion: Floats, share: float) -> Floats:
    """(4, 4) the motion at the same speed in another time."""
    from scipy.spatial.transform import Rotation

    found = np.eye(4)
    found[:3, :3] = Rotation.from_rotvec(Rotation.from_matrix(motion[:3, :3]).as_rotvec() * share).as_matrix()
    found[:3, 3] = motion[:3, 3] * share
    return found


_MAP_M = 100.0
"""Reach of the map; its voxels are a hundredth of it, as kiss-icp has them."""


def _create_odometry() -> Any:
    """KISS-ICP in its own settings, without correction of motion and with one thread.

    Raises:
        UsageError: if it is not installed.
    """
    try:
        from kiss_icp.config import KISSConfig
        from kiss_icp.config.config import DataConfig, MappingConfig, RegistrationConfig
        from kiss_icp.kiss_icp import KissICP
    except ImportError as error:
        # What is installed may lack a library of its own.
        why = "" if (error.name or "").startswith("kiss_icp") else f" ({error})"
        raise UsageError(f"odometry needs kiss-icp{why}: pip install 'roadaware[odometry]'") from error
    # model_construct: the plain constructor takes settings from the environment as well.
    config = KISSConfig.model_construct(
        data=DataConfig(max_range=_MAP_M, deskew=False),
        registration=RegistrationConfig(max_num_threads=1),
        mapping=MappingConfig(voxel_size=_MAP_M / 100),
    )
    return KissICP(config)


def estimate_set_poses(
    order: Order, progress: Callable[[int, int], None] | None = None
) -> dict[Moment, Floats]:
    """(4, 4) poses of the LiDAR in the world by `estimate_poses`, of the images of each drive in which a sweep lacks one.

    The world of a drive is the vehicle's frame at its first sweep. A sweep that cannot be read counts as one without returns.

    Args:
        order: what is proposed.
        progress: called with the drives that are done and all of them.

    Raises:
        UsageError: if kiss-icp is not installed.
        InputError: as `estimate_poses`, or if the set cannot be read; what tables tell, `require_poses` has refused.
    """
    held = load_run_inputs(order)
    captures = held.captures
    drives = _list_drives_without_poses(captures, held.moments)
    found: dict[Moment, Floats] = {}
    for done, (scene, moments) in enumerate(drives.items()):
        if progress is not None:
            progress(done, len(drives))
        # One image of each sweep; several cameras share it.
        sweeps = {moment.frame: moment for moment in moments}
        times = {frame: captures.time_s(moment) for frame, moment in sorted(sweeps.items())}
        first = captures.vehicle_from_lidar(sweeps[min(sweeps)])
        try:
            poses = estimate_poses(
                _read_sweeps(captures, [sweeps[frame] for frame in times]),
                [np.nan if time_s is None else time_s for time_s in times.values()],
                vehicle_from_lidar=first,
                min_range_m=order.config.min_range_m,
            )
        except InputError as error:
            raise InputError(error.message, where=to_printable(scene), hint=_HINT) from error
        by_frame = dict(zip(times, first @ poses, strict=True))
        found |= {moment: by_frame[moment.frame] for moment in moments}
    if progress is not None and drives:
        progress(len(drives), len(drives))
    return found


def _read_sweeps(captures: Captures, moments: Sequence[Moment]) -> Iterator[npt.NDArray[np.floating]]:
    """(n, 3) returns of each sweep; none of what cannot be read, whose images were left out of the proposals, too."""
    for moment in moments:
        try:
            yield captures.points(moment).xyz
        except InputError:
            yield np.zeros((0, 3), dtype=np.float32)


def save_tracks(
    order: Order, found: Predictions, folder: Path, poses: Mapping[Moment, Floats] | None = None
) -> tuple[Predictions, dict[str, int]]:
    """Follow proposals over the sweeps of each video, and save them; with counts of things and boxes.

    Args:
        order: what was proposed.
        found: its proposals.
        folder: where to; an earlier one is replaced.
        poses: as of `track_proposals`.

    Raises:
        UsageError: if the set does not say where the vehicle was.
        DiskError: if the disk refuses.
    """
    tracked = track_proposals(found, load_run_inputs(order).captures, most=order.config.most, poses=poses)
    save(tracked, folder, overwrite=True)
    tubes = tracked.tubes
    return tracked, {
        "things": len(tubes),
        "boxes": len(tracked.boxes),
        "moving": int(tubes["moving"].sum()),
        "seen_again": int((tubes["sweeps"] > 1).sum()),
        "carried": int(tracked.boxes["carried"].sum()),
    }


def save_cuboids(
    order: Order,
    found: Predictions,
    folder: Path,
    forms: tuple[CuboidForm, ...],
    poses: Mapping[Moment, Floats] | None = None,
) -> dict[str, int]:
    """Write the cuboids of proposals for other tools; how many of each form.

    Args:
        order: what was proposed.
        found: its proposals.
        folder: where to.
        forms: which.
        poses: as of `track_proposals`.

    Raises:
        UsageError: if nuScenes' form is asked for and the set does not say where the vehicle was.
        DiskError: if the disk refuses.
    """
    held = load_run_inputs(order)
    cameras: dict[tuple[str, int], Floats] = {}
    worlds: dict[tuple[str, int], Floats] = {}
    for moment in held.moments:
        try:
            camera = held.captures.camera(moment)
        except InputError:
            # Left out of the proposals, too, where the reason stands.
            continue
        cameras[moment.video, moment.frame] = camera.camera_SE3_lidar
        world = _find_pose(held.captures, moment, poses or {})
        if world is not None:
            worlds[moment.video, moment.frame] = world
    return write_cuboids(found, folder, forms, cameras=cameras, poses=worlds)
