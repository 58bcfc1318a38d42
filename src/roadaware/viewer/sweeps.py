"""Sweeps behind the viewer: points, boxes in space, and what `propose` made of each cluster, moment by moment."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.spatial import cKDTree

from roadaware.analysis.corner_tables import LOSSES, assign_losses
from roadaware.arrays import Floats, Ints32
from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.config import CopgConfig, open_saved_config
from roadaware.corner_cases.copg import KEPT, REASONS, Geometry, Proposals, extract_geometry, project_clusters
from roadaware.corner_cases.loader import Captures, Moment
from roadaware.corner_cases.proposal_tables import BACKGROUND, COMMON, DROPPED_SCHEMA, UNSEEN
from roadaware.corner_cases.range_image import Boxes
from roadaware.corner_cases.runner import DROPPED, FORMAT, MAIN
from roadaware.errors import InputError, UsageError
from roadaware.geometry.poses import invert_pose
from roadaware.io.files import read_regular
from roadaware.io.parquet import scan_parquet
from roadaware.io.point_clouds import OURS, read_sweep
from roadaware.io.sources import resolve_inside
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.viewer.opening import Opened, TableSource, load_tables

MOST_POINTS = 100_000
"""Points of a sweep that are sent, at most, evenly of all; a HDL-64E has some 120,000."""
MOST_ROWS = 2_000
"""Clusters, boxes and dropped ones that are told at a time, at most."""
PROPOSED, EARLIER, GROUND, LOOSE = "proposed", "background or common object", "ground", "no cluster"
STEPS = (PROPOSED, COMMON, BACKGROUND, EARLIER, UNSEEN, *reversed(REASONS[1:]), GROUND, LOOSE)
"""What can become of a point, the last step first; numbers of `points` are places in it."""
UPRIGHT = ("x_m", "y_m", "z_m", "length_m", "width_m", "height_m", "rotation_y_rad")
"""Columns of a box in space as KITTI has it: the middle of its bottom in the camera's frame, turned about the axis down."""
LEVEL = (*UPRIGHT[:-1], "yaw_rad")
"""As ONCE has it: its middle in the LiDAR's frame, turned about the axis up."""
_MOMENTS = 4
_MOST_STEPS = 50
_FARTHEST_M = 1e5
_SAME_PX = 0.05
_HEAD = np.dtype([("mark", "<u4"), ("sent", "<u4"), ("total", "<u4"), ("left", "<u4")])
_MARK = 0x52415731
_SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
T = TypeVar("T")


def compute_box_corners(rows: pl.DataFrame, lidar_SE3_camera: Floats) -> tuple[pl.DataFrame, Floats]:  # noqa: N803
    """Rows of boxes that tell where they stand in space, and (n, 8, 3) their corners in the LiDAR's frame.

    Corners go from back to front, within these from right to left, within these from bottom to top.

    Args:
        rows: of `boxes`, of one image.
        lidar_SE3_camera: (4, 4) of the camera that took it.
    """
    names = next((names for names in (UPRIGHT, LEVEL) if set(names) <= set(rows.columns)), None)
    if names is None:
        return rows.clear(), np.zeros((0, 8, 3))
    table = rows.with_columns(pl.col(name).cast(pl.Float64) for name in names)
    fits = [pl.col(name).is_finite() & (pl.col(name).abs() < _FARTHEST_M) for name in names]
    table = table.filter(*fits, *(pl.col(name) > 0 for name in names[3:6]))
    x, y, z, length, width, height, turn = table.select(names).to_numpy().reshape(-1, 7).T
    cos, sin, none = np.cos(turn), np.sin(turn), np.zeros(len(table))
    if names is UPRIGHT:
        middle = np.stack([x, y - height / 2, z], axis=1)
        axes = [[cos, none, -sin], [sin, none, cos], [none, none - 1, none]]
    else:
        middle = np.stack([x, y, z], axis=1)
        axes = [[cos, sin, none], [-sin, cos, none], [none, none, none + 1]]
    ways = np.array(axes).transpose(2, 0, 1)  # (n, along length, width and height, x y z)
    half = np.stack([length, width, height], axis=1)[:, None] / 2 * _SIGNS
    corners: Floats = middle[:, None] + half @ ways
    if names is UPRIGHT:
        corners = corners @ lidar_SE3_camera[:3, :3].T + lidar_SE3_camera[:3, 3]
    return table, corners


def find_points_inside(points: npt.NDArray[np.floating], corners: Floats) -> npt.NDArray[np.bool_]:
    """(n,) which points lie in a box.

    Args:
        points: (n, 3).
        corners: (8, 3) as `compute_box_corners` gives them.
    """
    origin = corners[0]
    axes = corners[[4, 2, 1]] - origin
    lengths = (axes * axes).sum(axis=1)
    with np.errstate(all="ignore"):  # points that are not finite are in no box
        along = (points - origin) @ axes.T
        inside: npt.NDArray[np.bool_] = ((along >= 0) & (along <= lengths)).all(axis=1)
    return inside


@dataclass(frozen=True, eq=False)
class Turn:
    """One sweep with its image.

    Args:
        capture: points and camera, in the LiDAR's frame.
        ego_SE3_lidar: (4, 4) pose of the LiDAR in the vehicle.
        finite: places of points that are finite and near enough to be drawn.
    """

    capture: Capture
    ego_SE3_lidar: Floats  # noqa: N815, the project's way to name transforms
    finite: npt.NDArray[np.int64]

    @cached_property
    def sent(self) -> npt.NDArray[np.int64]:
        """Places of the points that are drawn: all, or evenly chosen ones."""
        count = len(self.finite)
        if count <= MOST_POINTS:
            return self.finite
        return self.finite[np.linspace(0, count - 1, MOST_POINTS).astype(np.int64)]

    @property
    def lidar_SE3_camera(self) -> Floats:  # noqa: N802
        """(4, 4) pose of the camera in the LiDAR's frame."""
        return invert_pose(self.capture.camera.camera_SE3_lidar)

    def move(self, places: npt.NDArray[np.floating]) -> Floats:
        """Points of the LiDAR's frame (..., 3) in the vehicle's: x ahead, y left, z up."""
        with np.errstate(all="ignore"):  # points that are not finite stay so
            found: Floats = places @ self.ego_SE3_lidar[:3, :3].T + self.ego_SE3_lidar[:3, 3]
        return found


@dataclass(frozen=True, eq=False)
class _Steps:
    """What a run of `propose` made of a sweep: clusters, boxes, and the place in `STEPS` of each cluster from 1."""

    geometry: Geometry
    boxes: Boxes
    predicted: npt.NDArray[np.int64]
    step: npt.NDArray[np.uint8]


class Sweeps:
    """Sweeps of the ground truth's drives, read when they are looked at; a few are kept.

    Args:
        opened: sets and folders; nothing outside them is read, whatever a run says of where its dataset lay.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._turns: OrderedDict[tuple[str, int], Turn] = OrderedDict()
        self._steps: OrderedDict[tuple[str, int, str], _Steps] = OrderedDict()
        self._runs: dict[str, _Run | None] = {}

    @property
    def known(self) -> bool:
        """Whether a set has sweeps."""
        truth = self._opened.truth
        return truth is not None and "sweeps" in truth.tables

    def describe_runs(self) -> dict[str, bool]:
        """The sides that are runs of `propose`, and whether each kept a table of what it dropped."""
        runs = {}
        for side in self._opened.predicted:
            with suppress(InputError, UsageError):  # a damaged one is no reason to show nothing
                run = self._run(side)
                if run is not None:
                    runs[side] = run.dropped is not None
        return runs

    def describe(self, video: str) -> dict[str, Any]:
        """How many sweeps a video has, why none, and what steps and losses are called."""
        frames = self.frames(video)
        why = ""
        if not frames:
            why = "no set with sweeps was named: name the dataset too, as in `roadaware view RUN KITTI`"
            if self.known:
                reasons = sorted(self._captures.skipped.items(), key=lambda each: -each[1])
                names = ", ".join(reason for reason, _ in reasons[:3]) or "no sweep"
                why = f"this video has none that can be shown ({names})"
        return {"sweeps": len(frames), "why": why, "steps": STEPS, "losses": LOSSES}

    def frames(self, video: str) -> list[int]:
        """Frames of a video that have a sweep."""
        return self._frames.get(video, [])

    def open(self, video: str, frame: int) -> Turn:
        """The sweep of a frame.

        Raises:
            UsageError, InputError: as `scene`.
        """
        with self._lock:
            return self._turn(video, frame)

    def code_points(self, video: str, frame: int, side: str) -> npt.NDArray[np.uint8]:
        """(n,) the place in `STEPS` of each point that is drawn.

        Args:
            video, frame, side: as of `scene`.

        Raises:
            UsageError, InputError: as `scene`.
        """
        turn, steps = self._prepare(video, frame, side)
        codes = np.full(len(turn.sent), STEPS.index(LOOSE), dtype=np.uint8)
        if steps is not None:
            clusters = steps.geometry.clusters.of_return[turn.sent]
            codes[steps.geometry.ground.removed[turn.sent]] = STEPS.index(GROUND)
            codes[clusters > 0] = steps.step[clusters[clusters > 0] - 1]
        return codes

    def scene(self, video: str, frame: int, side: str) -> dict[str, Any]:
        """Camera, boxes in space, clusters and objects of a frame; lengths in metres in the vehicle's frame.

        Args:
            video: its name.
            frame: counts from 0.
            side: whose steps are told; none where empty.

        Raises:
            UsageError: if there is no sweep, or no such run of `propose`.
            InputError: if a file cannot be read, or is none.
        """
        turn, steps = self._prepare(video, frame, side)
        camera, points = turn.capture.camera, turn.move(turn.capture.points[turn.sent])
        low, high = np.percentile(points[:, 2], [2, 98]).round(2).tolist() if len(points) else (0.0, 1.0)
        boxes: dict[str, Any] = {}
        for each, source in self._opened.sides.items():
            rows, corners = compute_box_corners(self._boxes(source, video, frame), turn.lidar_SE3_camera)
            if len(rows):
                boxes[each] = {
                    "box": rows["box"].to_list(),
                    "corners": turn.move(corners).round(3).reshape(-1, 24).tolist(),
                }
        record: dict[str, Any] = {
            "total": len(turn.capture.points),
            "sent": len(turn.sent),
            "low": low,
            "high": high,
            "camera": {
                "pose": (turn.ego_SE3_lidar @ turn.lidar_SE3_camera).round(6).ravel().tolist(),
                "lens": np.asarray(camera.intrinsics, dtype=np.float64).round(4).ravel().tolist(),
                "size": [camera.width_px, camera.height_px],
            },
            "boxes": boxes,
        }
        if steps is not None:
            record["clusters"] = self._tell_clusters(turn, steps)
            record["objects"] = self._tell_objects(turn, steps, video, frame, side)
        return record

    def points(self, video: str, frame: int, side: str) -> bytes:
        """The points of a frame: a head of four numbers, x y z, cluster and step of each.

        Four uint32 (a mark, how many follow, how many the sweep has, how many of these are not finite), then of all
        points three float32 (metres in the vehicle's frame), a uint32 (cluster, 0 for none) and a uint8 (place in
        `STEPS`); little-endian. Without a run clusters are 0 and steps those of no cluster.

        Args:
            video, frame, side: as of `scene`.

        Raises:
            UsageError, InputError: as `scene`.
        """
        turn, steps = self._prepare(video, frame, side)
        count, total = len(turn.sent), len(turn.capture.points)
        head = np.array([(_MARK, count, total, total - len(turn.finite))], dtype=_HEAD)
        clusters: npt.NDArray[Any] = np.zeros(count, dtype="<u4")
        if steps is not None:
            clusters = steps.geometry.clusters.of_return[turn.sent].astype("<u4")
        codes = self.code_points(video, frame, side)
        xyz = turn.move(turn.capture.points[turn.sent]).astype("<f4")
        return head.tobytes() + xyz.tobytes() + clusters.tobytes() + codes.tobytes()

    def dropped(self, side: str) -> dict[str, Any]:
        """What a run of `propose` dropped: counts by step over all of it, and the first rows, nearest first.

        Raises:
            UsageError: if it is none, or kept no table of it.
            InputError: if the table is none.
        """
        run = self._run(side)
        if run is None or run.dropped is None:
            raise UsageError("this run kept no table of what it dropped; `propose --overwrite` makes it anew")
        table = _scan_dropped(run.dropped)
        counts = dict(
            table.group_by("step").len().sort("len", descending=True).head(_MOST_STEPS).collect().rows()
        )
        # Of each step as many: the most frequent one would hide the others.
        share = max(1, MOST_ROWS // max(1, len(counts)))
        rows = (
            table.filter(pl.col("step").is_in(list(counts)))
            .sort("distance_m", "frame", "cluster")
            .group_by("step", maintain_order=True)
            .head(share)
            .collect()
        )
        # Columns that JSON can say.
        floats = pl.col(pl.Float32)
        return {
            "counts": counts,
            "rows": (
                rows.with_columns(pl.when(floats.is_finite()).then(floats.cast(pl.Float64).round(3))).to_dict(
                    as_series=False
                )
            ),
        }

    @cached_property
    def _captures(self) -> Captures:
        """The drives of the ground truth; without rows where there are none."""
        source = self._opened.truth
        if source is None or not self.known:
            return Captures(Scenes(), Path())
        scenes = load_tables(source, ("videos", "frames", "sensors", "sweeps"), Scenes)
        return Captures(scenes, self._find_root(source, scenes))

    def _find_root(self, source: TableSource, scenes: Scenes) -> Path:
        """The folder, of those that were named, in which sweeps lie."""
        roots = [Path(os.path.realpath(root)) for root in (*self._opened.media, source.root) if root.is_dir()]
        names = (
            scenes.sweeps.head(20)["path"].drop_nulls().to_list() if "path" in scenes.sweeps.columns else []
        )
        for root in roots:
            for name in names:
                with suppress(InputError):
                    resolve_inside(root, name)
                    return root
        return roots[-1] if roots else Path(os.path.realpath(source.root))

    @cached_property
    def _moments(self) -> dict[tuple[str, int], Moment]:
        """Video and frame to the image with its sweep, in their order."""
        return {(moment.video, moment.frame): moment for moment in self._captures.moments}

    @cached_property
    def _frames(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for video, frame in self._moments:
            found.setdefault(video, []).append(frame)
        return found

    def _run(self, side: str) -> _Run | None:
        source = self._opened.predicted.get(side)
        if source is None:
            return None
        if side not in self._runs:
            self._runs[side] = _open_run(source)
        return self._runs[side]

    def _prepare(self, video: str, frame: int, side: str) -> tuple[Turn, _Steps | None]:
        """The sweep of a frame, and the steps of a run on it; read once where several ask."""
        with self._lock:
            turn = self._turn(video, frame)
            return turn, self._make_steps(turn, video, frame, side)

    def _turn(self, video: str, frame: int) -> Turn:
        """A sweep, read if it is not kept."""

        def read() -> Turn:
            moment = self._moments.get((video, frame))
            if moment is None:
                raise UsageError(f"frame {frame} has no sweep")
            capture = self._captures.open(moment)
            with np.errstate(invalid="ignore"):
                near = (np.abs(capture.points) < _FARTHEST_M).all(axis=1)
            return Turn(capture, self._captures.vehicle_from_lidar(moment), np.flatnonzero(near))

        return _keep(self._turns, (video, frame), read)

    def _make_steps(self, turn: Turn, video: str, frame: int, side: str) -> _Steps | None:
        if not side:
            return None
        run = self._run(side)
        if run is None:
            raise UsageError("this side is no run of `propose`")

        def make() -> _Steps:
            geometry = extract_geometry(turn.capture, run.config)
            boxes = project_clusters(geometry, turn.capture, run.config, geometry.limited == KEPT)
            predicted = _match_boxes(boxes, self._boxes(self._opened.predicted[side], video, frame))
            return _Steps(
                geometry, boxes, predicted, _assign_steps(geometry, boxes, predicted, run.steps(video, frame))
            )

        return _keep(self._steps, (video, frame, side), make)

    def _boxes(self, source: TableSource, video: str, frame: int) -> pl.DataFrame:
        rows = source.scan("boxes").filter(
            (pl.col("video").cast(pl.String) == video) & (pl.col("frame") == frame)
        )
        return rows.head(MOST_ROWS).collect()

    def _tell_clusters(self, turn: Turn, steps: _Steps) -> dict[str, Any]:
        """Clusters with a step, the largest first, as columns; `box` is the prediction's, -1 for none."""
        clusters = steps.geometry.clusters
        large = np.flatnonzero(steps.step < STEPS.index(REASONS[1]))
        large = large[np.argsort(-clusters.counts[large], kind="stable")][:MOST_ROWS]
        # (k, 6) smallest x, y, z and largest of the points of each cluster.
        points = turn.move(turn.capture.points)
        of_return = clusters.of_return
        count = len(clusters)
        low, high = np.full((count + 1, 3), np.inf), np.full((count + 1, 3), -np.inf)
        mine = of_return > 0
        np.minimum.at(low, of_return[mine], points[mine])
        np.maximum.at(high, of_return[mine], points[mine])
        ends = np.concatenate([low, high], axis=1)[1:]
        box = np.full(len(clusters), -1, dtype=np.int64)
        box[steps.boxes.cluster - 1] = steps.predicted
        edges = np.full((len(clusters), 4), np.nan)
        edges[steps.boxes.cluster - 1] = steps.boxes.edges
        return {
            "cluster": (large + 1).tolist(),
            "step": steps.step[large].tolist(),
            "returns": clusters.counts[large].tolist(),
            "nearest": clusters.nearest_m[large].round(2).tolist(),
            "box": box[large].tolist(),
            "ends": ends[large].round(3).tolist(),
            "edges": [None if np.isnan(each).any() else each.round(1).tolist() for each in edges[large]],
            "more": max(0, int((steps.step < STEPS.index(REASONS[1])).sum()) - len(large)),
        }

    def _tell_objects(self, turn: Turn, steps: _Steps, video: str, frame: int, side: str) -> list[list[Any]]:
        """[box, step that lost it, returns, their ends] of each object of the ground truth whose returns are known."""
        truth = self._opened.truth
        run = self._run(side)
        if truth is None or run is None:
            return []
        rows = self._boxes(truth, video, frame)
        named, of_return = self._find_instances(turn, rows, video, frame)
        if named.is_empty():
            return []
        boxes = steps.boxes
        final = steps.predicted >= 0
        removed = steps.step[boxes.cluster - 1]
        kept = final | (removed == STEPS.index(COMMON))
        found = Proposals(steps.geometry, boxes, None, None, np.zeros(len(boxes)), kept, final)
        corners = named.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
        numbers = named["instance"].to_list()
        losses = assign_losses(found, corners, numbers, of_return, run.config)
        places = turn.move(turn.capture.points)
        rows_of = [np.flatnonzero(of_return == number) for number in numbers]
        ends = [
            [*places[mine].min(axis=0).round(3).tolist(), *places[mine].max(axis=0).round(3).tolist()]
            if len(mine)
            else None
            for mine in (np.intersect1d(mine, turn.finite) for mine in rows_of)
        ]
        return [
            list(each) for each in zip(named["box"].to_list(), losses, map(len, rows_of), ends, strict=True)
        ]

    def _find_instances(
        self, turn: Turn, rows: pl.DataFrame, video: str, frame: int
    ) -> tuple[pl.DataFrame, Ints32]:
        """Boxes with the number of their `instance`, and (n,) the instance of each return, 0 for none.

        Synthetic scenes tell it of each return; of others it is the box in space that a return lies in.
        """
        points = turn.capture.points
        cuboids, corners = compute_box_corners(rows, turn.lidar_SE3_camera)
        if len(cuboids):
            of_return = np.zeros(len(points), dtype=np.int32)
            for place in np.argsort(
                [-float(np.prod(np.linalg.norm(each[[4, 2, 1]] - each[0], axis=1))) for each in corners],
                kind="stable",
            ).tolist():
                of_return[find_points_inside(points, corners[place])] = place + 1
            return cuboids.with_columns(instance=pl.int_range(1, len(cuboids) + 1)), of_return
        truth, moment = self._opened.truth, self._moments[video, frame]
        tubes = None if truth is None else truth.scan("tubes")
        if tubes is None or "instance" not in tubes.collect_schema().names() or "tube" not in rows.columns:
            return rows.clear(), np.zeros(0, dtype=np.int32)
        row = self._captures.scenes.sweeps.filter(scene=moment.scene, sensor=moment.lidar, frame=frame).row(
            0, named=True
        )
        if (row.get("fields") or OURS) != OURS:
            return rows.clear(), np.zeros(0, dtype=np.int32)
        sweep = read_sweep(resolve_inside(self._captures.root, str(row["path"])))
        if sweep.instance is None or len(sweep) != len(points):
            return rows.clear(), np.zeros(0, dtype=np.int32)
        named = rows.join(
            tubes.select("tube", "instance").collect(), on="tube", how="inner", maintain_order="left"
        )
        return named.drop_nulls("instance"), sweep.instance


@dataclass(frozen=True, eq=False)
class _Run:
    """A run of `propose`: its parameters, and the table of what it dropped, if it kept one."""

    config: CopgConfig
    dropped: Path | None

    def steps(self, video: str, frame: int) -> dict[int, str]:
        """Cluster to the step that dropped it, of a frame, as far as it was kept."""
        if self.dropped is None:
            return {}
        here = (pl.col("video") == video) & (pl.col("frame") == frame) & (pl.col("hypothesis") == 0)
        rows = _scan_dropped(self.dropped).filter(here)
        return dict(rows.select("cluster", "step").collect().rows())


def _open_run(source: TableSource) -> _Run | None:
    """The run of `propose` in whose folder a set lies; None where it is of another command."""
    folder = source.folder
    if folder is None or not (folder / MAIN).is_file():
        return None
    where = str(folder / MAIN)
    try:
        held = json.loads(read_regular(folder / MAIN, limit=1 << 22))
    except (ValueError, RecursionError) as error:
        raise InputError("expected JSON", where=where) from error
    order = held.get("order") if isinstance(held, dict) and held.get("format") == FORMAT else None
    if not isinstance(order, dict) or not isinstance(order.get("config"), dict):
        raise InputError("expected what `propose` writes", where=where)
    config = open_saved_config(order["config"])
    kept = folder / DROPPED
    return _Run(config, kept if kept.is_file() else None)


def _scan_dropped(path: Path) -> pl.LazyFrame:
    """The table of what was dropped.

    Raises:
        InputError: if it is another.
    """
    try:
        table = scan_parquet(path)
        schema = table.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"expected what was dropped, found: {str(error).splitlines()[0]}", where=str(path)
        ) from error
    earlier = {name: kind for name, kind in DROPPED_SCHEMA.items() if name != "hypothesis"}
    if dict(schema) == earlier:
        # Versions up to 0.9 knew one way to cluster.
        return table.with_columns(hypothesis=pl.lit(0, dtype=pl.Int64))
    if dict(schema) != DROPPED_SCHEMA:
        raise InputError(f"expected the columns {', '.join(DROPPED_SCHEMA)}", where=str(path))
    return table


def _match_boxes(boxes: Boxes, rows: pl.DataFrame) -> npt.NDArray[np.int64]:
    """(m,) the prediction that each box is, by where it lies; -1 for none."""
    found = np.full(len(boxes), -1, dtype=np.int64)
    if not len(boxes) or rows.is_empty():
        return found
    corners = rows.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    apart, place = cKDTree(corners).query(boxes.edges, distance_upper_bound=_SAME_PX)
    near = np.isfinite(apart)
    found[near] = rows["box"].to_numpy()[np.asarray(place)[near]]
    return found


def _assign_steps(
    geometry: Geometry, boxes: Boxes, predicted: npt.NDArray[np.int64], kept: dict[int, str]
) -> npt.NDArray[np.uint8]:
    """(k,) place in `STEPS` of each cluster: by its limits, then by its box, then by what the run kept of it."""
    codes = np.array([STEPS.index(UNSEEN), *(STEPS.index(reason) for reason in REASONS[1:])], dtype=np.uint8)
    step = codes[geometry.limited]
    for cluster, box in zip(boxes.cluster.tolist(), predicted.tolist(), strict=True):
        earlier = kept.get(cluster, EARLIER)
        step[cluster - 1] = STEPS.index(
            PROPOSED if box >= 0 else earlier if earlier in (BACKGROUND, COMMON) else EARLIER
        )
    return step


def _keep(kept: OrderedDict[Any, T], key: Any, make: Callable[[], T]) -> T:
    """What is kept under a key, made if it is not; the last few are kept."""
    if key not in kept:
        kept[key] = make()
        while len(kept) > _MOMENTS:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]
