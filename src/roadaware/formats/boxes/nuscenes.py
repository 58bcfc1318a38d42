"""nuScenes written: the JSON tables of a version, `v1.0-SPLIT/*.json`, as `datasets.nuscenes` and nuscenes-devkit read them.

What is annotated are boxes in space, in the world; boxes in images are what cameras see of them. A box is written upright in
its camera, as tables have it, where the camera stood. Of a thing that several cameras see in one keyframe the box of the
first counts. Times count from the first of a scene; where the vehicle was, where nothing is said of it, is the origin.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets.nuscenes import FPS, SOLID, TABLES
from roadaware.errors import InputError
from roadaware.formats.boxes.comparison import Adapted, prepare, rename_videos
from roadaware.formats.boxes.flat import Files, choose_kind, find_classes
from roadaware.geometry.poses import to_quaternion
from roadaware.io.sources import is_outside
from roadaware.scenes.tables import Scenes

_CAMERA = "CAM_FRONT"
"""What the camera of a video is called that does not say it."""
_FURTHER = ("attribute", "log", "map", "visibility")
"""Tables that the development kit opens and our reader does not."""


Tables = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class AnnotatedSpace(Adapted):
    """A set with the boxes in space that are written.

    Args:
        scenes: what is written.
        boxes: those with a class (`label`, place in `classes`) and a place in space.
        classes: names of the categories.
    """

    boxes: pl.DataFrame
    classes: tuple[str, ...]


def adapt_nuscenes(scenes: Scenes, kind: str | None) -> tuple[AnnotatedSpace, Counter[str]]:
    """A set as nuScenes names it: videos by scene and camera, every box of a track that is named in one scene alone.

    Args:
        scenes: with boxes in space, cameras with their matrices, and sizes of videos.
        kind: of label that becomes the category (default: as of boxes).

    Raises:
        UsageError: if there is no such kind.
        InputError: if there are no boxes in space, no camera with a matrix, or the size of a video is not known.
    """
    scenes, lost = prepare(scenes, "nuScenes", ("width_px", "height_px")), Counter[str]()
    missing = [name for name in SOLID if name not in scenes.boxes.columns or not scenes.boxes[name].count()]
    if missing or "intrinsics" not in scenes.sensors.columns or not scenes.sensors["intrinsics"].count():
        raise InputError(
            "nuScenes holds boxes in space as cameras with known matrices see them, and this set has "
            + (f"no {', '.join(missing)}" if missing else "no camera with a matrix"),
            hint="sets of KITTI and nuScenes have them; boxes in images alone go to coco, mot or cvat",
        )
    videos = scenes.videos
    for name, usual in (("scene", pl.col("video")), ("sensor", pl.lit(_CAMERA))):
        own = pl.col(name).cast(pl.String) if name in videos.columns else pl.lit(None, pl.String)
        videos = videos.with_columns(pl.coalesce(own, usual).alias(name))
    names = dict(videos.select("video", name=pl.format("{}/{}", "scene", "sensor")).iter_rows())
    if len(set(names.values())) < len(names):
        raise InputError(
            "two videos are of one camera of one scene, and nuScenes has a file of frames for each",
            hint="write coco, mot or cvat, or convert videos one by one (--videos)",
        )
    lost["names of videos, which are scene and camera"] += sum(old != new for old, new in names.items())
    # Sensors and sweeps are of scenes, which keep their names where a video was called as its scene, too.
    scenes = rename_videos(scenes, names).with_tables(
        videos=videos.with_columns(pl.col("video").replace(names))
    )
    tubes, boxes = scenes.tubes, scenes.boxes
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    loose = boxes.filter(pl.col("tube").is_null())
    if len(loose):
        lost["boxes without a track, each an instance of its own"] += len(loose)
        first = max(tubes["tube"], default=-1) + 1
        numbers = loose.select("box", own=pl.int_range(pl.len()) + first)
        boxes = boxes.join(numbers, on="box", how="left", maintain_order="left")
        boxes = boxes.with_columns(tube=pl.coalesce("tube", "own")).drop("own")
        more = loose.select("video", "box").join(numbers, on="box")
        more = more.select("video", tube="own", name=pl.format("box-{}", "box"))
        tubes = pl.concat([tubes, more], how="diagonal_relaxed")
    given = pl.col("name").cast(pl.String) if "name" in tubes.columns else pl.lit(None, pl.String)
    tubes = tubes.with_columns(given=given).join(
        scenes.videos.select("video", "scene"), on="video", how="left", maintain_order="left"
    )
    # An instance is a thing in one scene, which several of its cameras may see.
    alone = (pl.col("scene").n_unique().over("given") == 1) & ~pl.struct("video", "given").is_duplicated()
    alone &= pl.col("given").is_not_null() & (pl.col("given") != "")
    own = pl.format("{}-{}-{}", "scene", pl.coalesce("given", pl.lit("track")), "tube")
    tubes = tubes.with_columns(name=pl.when(alone).then("given").otherwise(own))
    lost["names of tracks that are written with their scene, since others have them too"] += tubes.select(
        (pl.col("given").is_not_null() & (pl.col("given") != pl.col("name"))).sum()
    ).item()
    scenes = scenes.with_tables(tubes=tubes.drop("given", "scene"), boxes=boxes)
    named, classes = find_classes(scenes.boxes, scenes, choose_kind(scenes, kind), Counter())
    return AnnotatedSpace(scenes, named.drop_nulls(["label", *SOLID]), classes), lost


def write_nuscenes(held: AnnotatedSpace) -> Files:
    """Names and contents of the files: a version of tables for each split.

    Args:
        held: as `adapt_nuscenes` gives it.
    """
    videos = held.scenes.videos
    for name, kind in (("splits", pl.List(pl.String)), ("fps", pl.Float32), ("n_frames", pl.Int64)):
        if name not in videos.columns:
            videos = videos.with_columns(pl.lit(None, kind).alias(name))
    version = pl.col("splits").list.first().str.split("/").list.last()
    good = pl.when(version.str.contains(r"^[\w.-]{1,40}$")).then(version)
    for (split,), part in videos.with_columns(split=good.fill_null("trainval")).group_by(
        "split", maintain_order=True
    ):
        tables: Tables = {name: [] for name in (*TABLES, *_FURTHER)}
        tables["map"].append({"token": "map", "category": "", "filename": "", "log_tokens": []})
        instances: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        for (scene,), cameras in part.group_by("scene", maintain_order=True):
            _add_scene(held, str(scene), cameras, tables, instances)
        for token, (category, listed) in instances.items():
            for each, link in zip(listed, _link([each["token"] for each in listed]), strict=True):
                each |= link
            ends = {
                "first_annotation_token": listed[0]["token"],
                "last_annotation_token": listed[-1]["token"],
            }
            tables["instance"].append(
                {"token": token, "category_token": category, "nbr_annotations": len(listed), **ends}
            )
        met = {category for category, _ in instances.values()}
        tables["category"] = [
            {"token": name, "name": name, "description": ""} for name in held.classes if name in met
        ]
        for name, rows in tables.items():
            yield f"v1.0-{split}/{name}.json", json.dumps(rows).encode()


def _link(tokens: list[str]) -> list[dict[str, str]]:
    """What stands before and behind each row of a sequence."""
    around = ["", *tokens, ""]
    return [{"prev": a, "next": b} for a, b in zip(around[:-2], around[2:], strict=True)]


def _describe_pose(pose: Floats) -> dict[str, list[float]]:
    return {"translation": pose[:3, 3].tolist(), "rotation": to_quaternion(pose[:3, :3]).tolist()}


def _read_pose(numbers: list[float] | None) -> Floats:
    """(4, 4) as tables hold it; the origin where they hold none."""
    return np.eye(4) if numbers is None else np.array(numbers, dtype=np.float64).reshape(4, 4)


def _list_shots(scenes: Scenes, scene: str, cameras: pl.DataFrame) -> list[dict[str, Any]]:
    """The images and sweeps of a scene that a known sensor took: channel, frame, time in microseconds, poses and file."""
    mounts: dict[str, list[dict[str, Any]]] = {}
    of_scene = scenes.sensors.filter(pl.col("scene").cast(pl.String) == scene)
    for row in of_scene.sort("from_frame", maintain_order=True).iter_rows(named=True):
        mounts.setdefault(row["sensor"], []).append(row)
    frames = scenes.frames.join(
        cameras.select("video", "sensor", "fps", "width_px", "height_px"), on="video", maintain_order="left"
    )
    sweeps = scenes.sweeps.filter(pl.col("scene").cast(pl.String) == scene)
    shots = []
    for row in (*frames.iter_rows(named=True), *sweeps.iter_rows(named=True)):
        channel, frame, camera = row["sensor"], row["frame"], "video" in row
        known = [each for each in mounts.get(channel, ()) if each["from_frame"] <= frame]
        if not known or (camera and known[-1].get("intrinsics") is None):
            continue
        second = row.get("t_s")
        second = frame / (row.get("fps") or FPS) if second is None else second
        path = row.get("path")
        if not path or is_outside(path):
            path = f"samples/{channel}/{scene}-{frame}.{'jpg' if camera else 'pcd.bin'}"
        shots.append({
            "channel": channel, "frame": frame, "camera": camera, "time": round(second * 1e6), "path": path,
            "mount": known[-1]["from_frame"], "ego_SE3_sensor": _read_pose(known[-1].get("ego_SE3_sensor")),
            "lens": np.reshape(known[-1]["intrinsics"], (3, 3)).astype(float).tolist() if camera else [],
            "world_SE3_ego": _read_pose(row.get("world_SE3_ego")), "width": row.get("width_px") or 0,
            "height": row.get("height_px") or 0,
        })  # fmt: skip
    return shots


def _add_scene(
    held: AnnotatedSpace,
    scene: str,
    cameras: pl.DataFrame,
    tables: Tables,
    instances: dict[str, tuple[str, list[dict[str, Any]]]],
) -> None:
    """Add the rows of a scene to the tables, and its annotations to those of their instances."""
    shots = _list_shots(held.scenes, scene, cameras)
    ends = [shot["frame"] + 1 for shot in shots] + cameras["n_frames"].drop_nulls().to_list()
    times: list[int | None] = [None] * max(ends, default=0)
    for shot in shots:
        before = times[shot["frame"]]
        times[shot["frame"]] = shot["time"] if before is None else min(before, shot["time"])
    samples = [f"{scene}-{frame}" for frame in range(len(times))]
    ordered, latest = [], 0
    for time in times:
        # Samples are put in order by their times, so that one of which nothing is known has that of the one before.
        latest = latest if time is None else max(latest, time)
        ordered.append(latest)
    tables["log"].append(
        {"token": f"log-{scene}", "logfile": "", "vehicle": "", "date_captured": "", "location": ""}
    )
    tables["map"][0]["log_tokens"].append(f"log-{scene}")
    tables["scene"].append({
        "token": scene, "name": scene, "description": "", "log_token": f"log-{scene}", "nbr_samples": len(samples),
        "first_sample_token": samples[0] if samples else "", "last_sample_token": samples[-1] if samples else "",
    })  # fmt: skip
    tables["sample"] += [
        {"token": token, "timestamp": time, "scene_token": scene, **link}
        for token, time, link in zip(samples, ordered, _link(samples), strict=True)
    ]
    known = {row["token"] for name in ("sensor", "calibrated_sensor") for row in tables[name]}
    for shot in shots:
        channel, frame = shot["channel"], shot["frame"]
        mount, token = f"{scene}-{channel}-from-{shot['mount']}", f"{scene}-{channel}-{frame}"
        if channel not in known:
            modality = "camera" if shot["camera"] else "lidar"
            tables["sensor"].append({"token": channel, "channel": channel, "modality": modality})
        if mount not in known:
            calibrated = {"token": mount, "sensor_token": channel, "camera_intrinsic": shot["lens"]}
            tables["calibrated_sensor"].append({**calibrated, **_describe_pose(shot["ego_SE3_sensor"])})
        known |= {channel, mount}
        moment = {"timestamp": shot["time"]}
        tables["ego_pose"].append({"token": token, **moment, **_describe_pose(shot["world_SE3_ego"])})
        tables["sample_data"].append({
            "token": token, "sample_token": samples[frame], "ego_pose_token": token, "calibrated_sensor_token": mount,
            "is_key_frame": True, "fileformat": shot["path"].rpartition(".")[2], "filename": shot["path"], **moment,
            "width": shot["width"], "height": shot["height"], "prev": "", "next": "",
        })  # fmt: skip
    seen = {(shot["channel"], shot["frame"]): shot for shot in shots if shot["camera"]}
    names = held.scenes.tubes.select("tube", instance="name")
    boxes = held.boxes.join(cameras.select("video", "sensor"), on="video", maintain_order="left")
    boxes = boxes.join(names, on="tube", how="left", maintain_order="left")
    boxes = boxes.unique(["frame", "instance"], keep="first", maintain_order=True)
    boxes = boxes.filter([pair in seen for pair in boxes.select("sensor", "frame").iter_rows()])
    if boxes.is_empty():
        return
    height, width, length, x, y, z, turn = (boxes[name].cast(pl.Float64).to_numpy() for name in SOLID)
    cos, sin, none, one = np.cos(turn), np.sin(turn), np.zeros(len(turn)), np.ones(len(turn))
    # Ahead, left and up of the box, and its middle, in the frame of the camera: x to the right, y down.
    camera_SE3_box = np.stack([cos, sin, none, x, none, none, -one, y - height / 2, -sin, cos, none, z,  # noqa: N806
                               none, none, none, one], axis=1).reshape(-1, 4, 4)  # fmt: skip
    there = [seen[pair] for pair in boxes.select("sensor", "frame").iter_rows()]
    world_SE3_camera = np.stack([shot["world_SE3_ego"] @ shot["ego_SE3_sensor"] for shot in there])  # noqa: N806
    world_SE3_box = world_SE3_camera @ camera_SE3_box  # noqa: N806
    turns = to_quaternion(world_SE3_box[:, :3, :3]).tolist()
    sizes, places = np.stack([width, length, height], axis=1).tolist(), world_SE3_box[:, :3, 3].tolist()
    points = (
        boxes["n_lidar_points"].fill_null(0).to_list()
        if "n_lidar_points" in boxes.columns
        else [0] * len(boxes)
    )
    for n, (frame, instance, label) in enumerate(boxes.select("frame", "instance", "label").iter_rows()):
        row = {
            "token": f"{instance}-{frame}", "sample_token": samples[frame], "instance_token": instance,
            "visibility_token": "", "attribute_tokens": [], "translation": places[n], "size": sizes[n],
            "rotation": turns[n], "num_lidar_pts": points[n], "num_radar_pts": 0,
        }  # fmt: skip
        tables["sample_annotation"].append(row)
        instances.setdefault(instance, (held.classes[label], []))[1].append(row)
