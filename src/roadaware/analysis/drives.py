"""Drives as triage reads them, of the folder of a watch, of saved tables and of simulated scenes, one video at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.excerpts import Outline
from roadaware.analysis.triage import BODIES, Drive, count_labels, find_peaks
from roadaware.arrays import Floats, Ints
from roadaware.datasets import read
from roadaware.datasets.simulator import is_simulation
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import to_printable
from roadaware.models.object_labels import COCO_AGENTS
from roadaware.online.crowd import MOMENTS
from roadaware.online.events import CROSSING, CROWD, EVENTS, HEARD, OBSTACLES, SPEED, STANDING, SUMMARY
from roadaware.online.times import TABLES
from roadaware.scenes.advice import get_advice
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS, MOST_LISTED_FRAMES
from roadaware.scenes.store import is_saved, open_predictions, open_scenes, scan_tables
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.steps import show_progress

_KINDS = ("agent", "action", "event", "corner")
_LEAST_SCORE = 0.2
"""Of a detector that advises none, as `watch` has it."""
_USUAL_FPS = 25.0
_LONGEST_NAME = 183
"""Bytes of the name of a film, of the 255 that file systems take: files beside its folder have longer ones."""
_SURE = 0.8
"""Score of a box, of at most 1, that says what is in it."""
_BELIEVED, _OBSTACLE = 0.7, 0.6
"""Scores: a track of an obstacle counts as soon as it has had the first, with the boxes before as its past, and its boxes
count fully from the second on."""
_CLASSES = {
    **COCO_AGENTS,
    "pedestrian": "Ped",
    "cyclist": "Cyc",
    "van": "MedVeh",
    "truck": "LarVeh",
    "tram": "Bus",
    "person_sitting": "Ped",
}
"""Other names of agents, of COCO and KITTI, in lower case."""


def is_watch_folder(path: Path) -> bool:
    """Whether a folder holds a watch that ended."""
    return (path / EVENTS).is_file() and (path / SUMMARY).is_file()


def holds_drives(path: Path) -> bool:
    """Whether a folder is the run of a watch, saved tables or simulated scenes."""
    return is_watch_folder(path) or is_saved(path) or is_simulation(path)


def examine_drives(
    path: Path, others: Mapping[str, pl.DataFrame] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The peaks, label counts and lengths of all videos behind one path: the part of a triage that is done by itself.

    Args:
        path: the folder of a watch, of saved tables, or of simulated scenes.
        others: video to the boxes of another model, as of `collect_boxes`.

    Returns:
        `triage.find_peaks` and `triage.count_labels` of its videos, and `video`, `seconds`, `fps`, `width_px`, `height_px`.

    Raises:
        InputError: if it is none of these, or damaged, or has boxes, no tubes and no moment.
    """
    peaks, counts, lengths = [], [], []
    tables = _open_tables(path)
    watched = is_watch_folder(path)
    for drive in build_drives(tables, path if watched else None):
        if others and drive.video in others:
            drive = replace(drive, others=others[drive.video])
        peaks.append(find_peaks(drive))
        counts.append(count_labels(drive))
        seconds = float(drive.t_s[-1] - drive.t_s[0]) if len(drive.t_s) else 0.0
        step = float(np.median(np.diff(drive.t_s))) if len(drive.t_s) > 1 else 1.0
        lengths.append((drive.video, seconds + step, 1.0 / max(step, 1e-3), *drive.size_px))
    columns = {
        "video": pl.String,
        "seconds": pl.Float64,
        "fps": pl.Float64,
        "width_px": pl.Float64,
        "height_px": pl.Float64,
    }
    table = pl.DataFrame(lengths, schema=columns, orient="row")
    if not lengths:
        raise InputError("the tables list no video", where=str(path))
    found = pl.concat(peaks)
    if found.is_empty() and not watched and len(tables.boxes) and not len(tables.tubes):
        raise InputError(
            "the tables hold boxes and no tubes, whose motion makes moments",
            where=str(path),
            hint="`roadaware link` links boxes to tubes; name its result",
        )
    return found, pl.concat(counts), table


def collect_boxes(path: Path) -> dict[str, pl.DataFrame]:
    """Video to its boxes, as of `Drive.boxes`.

    Args:
        path: as of `open_drives`.

    Raises:
        InputError: as of `open_drives`.
    """
    return {
        drive.video: drive.boxes.filter(~pl.Series(drive.added)) if len(drive.added) else drive.boxes
        for drive in open_drives(path)
    }


def list_outlines(path: Path, video: str, tube: int, span: tuple[int, int]) -> dict[int, list[Outline]]:
    """The boxes of one tube in some frames, to be drawn; none without a tube.

    Args:
        path: as of `open_drives`.
        video: whose it is.
        tube: its number; -1 for none.
        span: first frame and the one after the last.
    """
    found: dict[int, list[Outline]] = {}
    for drive in open_drives(path) if tube >= 0 else ():
        if drive.video != video:
            continue
        rows = drive.boxes.filter(pl.col("tube") == tube, pl.col("frame").is_between(span[0], span[1] - 1))
        for row in rows.iter_rows(named=True):
            corners = (row["x1"], row["y1"], row["x2"], row["y2"])
            found.setdefault(int(row["frame"]), []).append(Outline(corners, str(row["agent"]), False))
    return found


def open_videos(path: Path) -> Scenes:
    """The videos behind one path, with what the tables say of where their images lie.

    Args:
        path: as of `open_drives`.

    Raises:
        InputError: as of `open_drives`.
    """
    tables = _open_tables(path)
    held = [name for name in ("video", "frame", "path", "annotated") if name in tables.frames.columns]
    return Scenes(
        videos=tables.videos, frames=tables.frames.select(held), meta=replace(tables.meta, rows_read={})
    )


def open_drives(path: Path) -> Iterator[Drive]:
    """The drives behind one path, one after the other.

    Args:
        path: the folder of a watch, of saved tables, or of simulated scenes.

    Raises:
        InputError: if it is none of these, or damaged.
    """
    yield from build_drives(_open_tables(path), path if is_watch_folder(path) else None)


def _open_tables(path: Path) -> Scenes | Predictions:
    if is_watch_folder(path):
        return open_predictions(path / TABLES)
    if is_saved(path):
        kind, _, _ = scan_tables(path)
        return open_scenes(path) if kind == "Scenes" else open_predictions(path)
    if is_simulation(path):
        return read("simulator", path)
    raise InputError(
        "expected the folder of a watch, saved tables or simulated scenes",
        where=str(path),
        hint="`watch` makes the first of a film, `read -o` the second of a dataset",
    )


def build_drives(tables: Scenes | Predictions, watch: Path | None = None) -> Iterator[Drive]:
    """Each video of some tables as a drive.

    Boxes of predictions weaker than two thirds of the detector's threshold (0.2 where it advises none) are left out, and so
    are those that a linker put into gaps, which rest on later frames. Scores count fully from twice the threshold on. An
    agent is the label with the highest mean score of its tube until then.

    Args:
        tables: ground truth, or predictions with tubes.
        watch: the folder of the watch that made them, which has forecasts and sounds.

    Raises:
        DamagedError: if a file of the watch is none of a watch.
    """
    names, labels = _collect_labels(tables)
    boxes = _prepare_boxes(tables, names, labels)
    frames = tables.frames.with_columns(pl.col("video").cast(pl.String))
    standing = _find_standing(tables)
    try:
        forecasts, heard = _read_watch(watch, tables)
        seen = _read_motion(watch)
        ahead = _read_obstacles(watch)
    except (pl.exceptions.PolarsError, ValueError, IndexError) as error:
        raise DamagedError(
            "forecasts, sounds, own motion or obstacles lack a column, or hold another kind of value: "
            + str(error).splitlines()[0],
            where=str(watch),
            hint="watch the video again",
        ) from error
    sounds = heard if heard is not None else _list_sounds(tables)
    by_box = boxes.partition_by("video", as_dict=True)
    by_frame = frames.partition_by("video", as_dict=True)
    listed = tables.videos.with_columns(pl.col("video").cast(pl.String))
    # Proposals and boxes of others may list no videos.
    unlisted = (
        boxes.select("video")
        .unique(maintain_order=True)
        .join(listed, on="video", how="anti", maintain_order="left")
    )
    for row in pl.concat([listed, unlisted], how="diagonal").iter_rows(named=True):
        video = row["video"]
        mine = by_box.get((video,), boxes.clear())
        held = by_frame.get((video,), frames.clear()).sort("frame")
        number, t_s = _list_frames(held, mine, row)
        speed = _find_speed(held, number, t_s)
        stands = np.full(len(number), np.nan)
        if standing is not None and len(held):
            here = standing.filter(pl.col("video") == video)
            place = np.searchsorted(number, here["frame"].to_numpy())
            kept = place < len(number)
            stands[place[kept]] = here["standing"].to_numpy()[kept]
        turn = _find_turns(held, number, t_s)
        if len(seen):
            # What is measured is surer than what the images show, and that than what a detector says of standing.
            last = np.searchsorted(seen["t_s"].to_numpy(), t_s + 1e-6, side="right") - 1
            shown = {name: np.where(last >= 0, seen[name].to_numpy()[last], np.nan) for name in seen.columns}
            stands = np.where(np.isnan(shown["standing"]), stands, shown["standing"])
            speed = np.where(np.isnan(speed), shown["speed_mps"], speed)
            turn = np.where(np.isnan(turn), shown["yaw_rate_radps"], turn)
        mine = mine.filter(pl.col("frame").is_in(pl.Series(number).implode()))
        camera = _find_camera(tables, row)
        width, height = _find_size(row, mine)
        scores = labels[mine["row"].to_numpy()] if len(names) else np.zeros((len(mine), 0), np.float32)
        added, proven = np.zeros(len(mine), bool), np.ones(len(mine), bool)
        if ahead is not None and len(number):
            mine = _join_obstacles(mine, ahead, number, t_s)
            added = np.pad(added, (0, len(mine) - len(added)), constant_values=True)
            proven = mine["proven"].fill_null(True).to_numpy()
            scores = np.pad(scores, ((0, len(mine) - len(scores)), (0, 0)))
        yield Drive(
            video=video,
            size_px=(width, height),
            frame=number,
            t_s=t_s,
            speed_mps=speed,
            standing=stands,
            boxes=mine.select("frame", "tube", "x1", "y1", "x2", "y2", "score", "agent"),
            labels=scores,
            names=names,
            unknown=mine["unknown"].to_numpy().astype(np.float64),
            crossing=forecasts,
            yaw_rps=turn,
            sounds=sounds.filter(pl.col("video") == video).drop("video"),
            focal_px=camera.get("focal_px"),
            horizon_px=camera.get("horizon_px"),
            camera_m=camera.get("camera_m"),
            listened=heard is not None,
            added=added,
            proven=proven,
            speed_told=bool(np.isfinite(speed).any()),
        )


def _collect_labels(
    tables: Scenes | Predictions,
) -> tuple[tuple[tuple[str, str], ...], npt.NDArray[np.float32]]:
    """(kind, label) of each column, and (boxes, columns) scores: dense ones where there are some, else those of labels."""
    boxes, vocabularies = tables.boxes, tables.meta.vocabularies
    layout = get_score_layout(tables.meta, "boxes")
    if "scores" in boxes.columns and layout.width and boxes["scores"].null_count() == 0:
        dense = convert_to_matrix(boxes["scores"], layout.width)
        kept = [kind for kind in layout.kinds if kind in _KINDS]
        columns = [c for kind in kept for c in range(*layout.columns(kind).indices(layout.width))]
        listed = tuple((kind, label) for kind in kept for label in layout.kinds[kind])
        return listed, np.ascontiguousarray(dense[:, columns])
    kinds = [kind for kind in (*_KINDS, "object") if kind in vocabularies]
    first: dict[str, int] = {}
    names: list[tuple[str, str]] = []
    for kind in kinds:
        first[kind] = len(names)
        named = "agent" if kind == "object" else kind
        names += [
            (named, _CLASSES.get(str(w).lower(), str(w)) if named == "agent" else str(w))
            for w in vocabularies[kind]
        ]
    scores = np.zeros((len(boxes), len(names)), np.float32)
    held = tables.labels.with_columns(pl.col("kind").cast(pl.String)).filter(pl.col("kind").is_in(kinds))
    if len(held):
        held = held.join(boxes.select("box").with_row_index("row"), on="box")
        column = (
            held["kind"].replace_strict(first, return_dtype=pl.Int64).to_numpy() + held["label"].to_numpy()
        )
        worth = held["score"].fill_null(1.0).to_numpy() if "score" in held.columns else np.ones(len(held))
        scores[held["row"].to_numpy(), column] = worth
    return tuple(names), scores


def _prepare_boxes(
    tables: Scenes | Predictions, names: tuple[tuple[str, str], ...], labels: npt.NDArray[np.float32]
) -> pl.DataFrame:
    """The boxes that count, by video, tube and frame, with the row of their labels."""
    boxes = tables.boxes
    tube = pl.col("tube").fill_null(-1) if "tube" in boxes.columns else pl.lit(-1, dtype=pl.Int64)
    score = pl.col("score").cast(pl.Float64).fill_null(1.0) if "score" in boxes.columns else pl.lit(1.0)
    unknown = (
        pl.col("corner_case").fill_null(value=False)
        if "corner_case" in boxes.columns
        else pl.lit(value=False)
    )
    ignored = pl.col("ignore").fill_null(value=False) if "ignore" in boxes.columns else pl.lit(value=False)
    filled = (
        pl.col("interpolated").fill_null(value=False)
        if "interpolated" in boxes.columns
        else pl.lit(value=False)
    )
    found = boxes.select(
        pl.col("video").cast(pl.String),
        "frame",
        tube.alias("tube"),
        *(pl.col(name).cast(pl.Float64).alias(name.removesuffix("_px")) for name in CORNERS),
        score.alias("score"),
        (unknown.cast(pl.Float64) * score).alias("unknown"),
        ignored.alias("ignored"),
        filled.alias("filled"),
    ).with_row_index("row")
    if isinstance(tables, Predictions):
        least = get_advice(tables.meta).min_score or _LEAST_SCORE
        # A proposal has a scale of its own, on which no detector advises.
        found = found.filter((pl.col("score") >= least * 2 / 3) | (pl.col("unknown") > 0), ~pl.col("filled"))
        found = found.with_columns(score=(pl.col("score") / (2 * least)).clip(0.0, 1.0))
    found = found.filter(~pl.col("ignored")).sort("video", "tube", "frame", maintain_order=True)
    return found.with_columns(agent=pl.Series(_name_agents(found, names, labels, tables), dtype=pl.String))


def _name_agents(
    boxes: pl.DataFrame,
    names: tuple[tuple[str, str], ...],
    labels: npt.NDArray[np.float32],
    tables: Scenes | Predictions,
) -> list[str]:
    """The agent of each box, by the scores of its tube so far."""
    at = [k for k, (kind, _) in enumerate(names) if kind == "agent"]
    if not at:
        # Sets that do not tell agents, such as JAAD and PIE, hold people alone.
        people = set(tables.meta.vocabularies) & {"action", "intention", "crossing", "risk"}
        return ["Ped" if people else ""] * len(boxes)
    scores = labels[boxes["row"].to_numpy()][:, at].astype(np.float64)
    tube = boxes["tube"].to_numpy()
    video = boxes["video"].rle_id().to_numpy()
    new = np.ones(len(tube), bool)
    new[1:] = (tube[1:] != tube[:-1]) | (video[1:] != video[:-1]) | (tube[1:] < 0)
    first = np.flatnonzero(new)[np.cumsum(new) - 1] if len(tube) else np.zeros(0, np.int64)
    total = np.vstack([np.zeros((1, len(at))), np.cumsum(scores, axis=0)])
    means = total[1:] - total[first]
    best = means.argmax(axis=1) if len(means) else np.zeros(0, np.int64)
    words = [names[k][1] for k in at]
    return [
        words[k] if mean > 0 else ""
        for k, mean in zip(best.tolist(), means.max(axis=1, initial=0).tolist(), strict=True)
    ]


def _list_frames(held: pl.DataFrame, boxes: pl.DataFrame, row: dict[str, Any]) -> tuple[Ints, Floats]:
    """Numbers and times of the frames of a video.

    Raises:
        InputError: if more are said to be there than could be gone through, and none is listed.
    """
    fps = float(row.get("fps") or _USUAL_FPS)
    if len(held):
        number = held["frame"].to_numpy().astype(np.int64)
    else:
        last = int(boxes["frame"].max() or 0) if len(boxes) else -1  # type: ignore[arg-type]
        count = max(last + 1, int(row.get("n_frames") or 0))
        if count > MOST_LISTED_FRAMES:
            raise InputError(
                f"{count:,} frames are said of it and none is listed; up to {MOST_LISTED_FRAMES:,} are gone through",
                where=to_printable(row["video"]),
            )
        number = np.arange(count, dtype=np.int64)
    t_s = number / fps
    if "t_s" in held.columns and held["t_s"].null_count() == 0:
        t_s = held["t_s"].to_numpy().astype(np.float64)
        # Times that run back are those of stills, or of nobody's clock.
        t_s = t_s - t_s[0] if np.all(np.diff(t_s) > 0) else number / fps
    return number, np.asarray(t_s, np.float64)


def _find_speed(held: pl.DataFrame, number: Ints, t_s: Floats) -> Floats:
    """(F,) speed in m/s: as it was measured, else by the poses of the vehicle, looking back; NaN where neither is there."""
    speed = np.full(len(number), np.nan)
    if "ego_speed_kmh" in held.columns and held["ego_speed_kmh"].null_count() < len(held):
        return held["ego_speed_kmh"].cast(pl.Float64).fill_null(np.nan).to_numpy() / 3.6
    if "world_SE3_ego" in held.columns and len(held) > 1 and held["world_SE3_ego"].null_count() == 0:
        pose = np.array(held["world_SE3_ego"].to_list(), np.float64).reshape(-1, 4, 4)
        step = np.linalg.norm(np.diff(pose[:, :3, 3], axis=0), axis=1)
        past = np.diff(t_s)
        speed[1:] = np.where(past > 0, step / np.maximum(past, 1e-6), np.nan)
    return speed


def _find_turns(held: pl.DataFrame, number: Ints, t_s: Floats) -> Floats:
    """(F,) turn of the vehicle in radians a second, measured or by its poses, looking back; NaN where neither is there."""
    turn = np.full(len(number), np.nan)
    if "ego_yaw_rate_radps" in held.columns and held["ego_yaw_rate_radps"].null_count() < len(held):
        return held["ego_yaw_rate_radps"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    if "world_SE3_ego" in held.columns and len(held) > 1 and held["world_SE3_ego"].null_count() == 0:
        pose = np.array(held["world_SE3_ego"].to_list(), np.float64).reshape(-1, 4, 4)
        # Between two frames the angle that turns one forward axis into the other, seen from above.
        before, after = pose[:-1, :2, 0], pose[1:, :2, 0]
        angle = np.arctan2(
            before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0], (before * after).sum(axis=1)
        )
        turn[1:] = angle / np.maximum(np.diff(t_s), 1e-6)
    return turn


def _find_standing(tables: Scenes | Predictions) -> pl.DataFrame | None:
    """`video`, `frame` and how surely the own vehicle stands there, as labels or a detector say it; None without any."""
    words = tables.meta.vocabularies.get("av_action", ())
    if "AV-Stop" not in words:
        return None
    layout = get_score_layout(tables.meta, "frames")
    frames = tables.frames
    if "scores" in frames.columns and "av_action" in layout.kinds and frames["scores"].null_count() == 0:
        dense = convert_to_matrix(frames["scores"], layout.width)[:, layout.columns("av_action")]
        total = np.maximum(dense.sum(axis=1), 1e-6)
        share = dense[:, words.index("AV-Stop")] / total
        return frames.select(pl.col("video").cast(pl.String), "frame").with_columns(
            standing=pl.Series(share.astype(np.float64))
        )
    stops = tables.frame_labels.filter(
        pl.col("kind").cast(pl.String) == "av_action", pl.col("label") == words.index("AV-Stop")
    )
    if not len(tables.frame_labels):
        return None
    return stops.select(pl.col("video").cast(pl.String), "frame").unique().with_columns(standing=pl.lit(1.0))


def _list_sounds(tables: Scenes | Predictions) -> pl.DataFrame:
    """What is heard: `video`, `t_s`, `end_s`, `name`, `score` (1 where nobody scores it)."""
    columns = {
        "video": pl.String,
        "t_s": pl.Float64,
        "end_s": pl.Float64,
        "name": pl.String,
        "score": pl.Float64,
    }
    held = tables.sounds
    if held.is_empty() or "t_s" not in held.columns:
        return pl.DataFrame(schema=columns)
    words = tables.meta.vocabularies.get("sound", ())
    name = pl.col("name").cast(pl.String) if "name" in held.columns else pl.lit(None, dtype=pl.String)
    if words and "label" in held.columns:
        named = pl.col("label").replace_strict(dict(enumerate(words)), default=None, return_dtype=pl.String)
        name = pl.coalesce(named, name)
    end = pl.col("end_s") if "end_s" in held.columns else pl.col("t_s")
    score = pl.col("score") if "score" in held.columns else pl.lit(1.0)
    picked = (
        pl.col("video").cast(pl.String),
        pl.col("t_s"),
        end.alias("end_s"),
        name.alias("name"),
        score.alias("score"),
    )
    return (
        held.select(picked)
        .drop_nulls("t_s")
        .cast(pl.Schema(columns))
        .with_columns(pl.col("name").fill_null(""), pl.col("score").fill_null(1.0).clip(0.0, 1.0))
    )


def _read_watch(watch: Path | None, tables: Scenes | Predictions) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The forecasts of a watch by tube of its tables, and what it heard; None where it did not listen."""
    if watch is None:
        return pl.DataFrame(), None
    forecasts, heard = pl.DataFrame(), None
    if (watch / CROSSING).is_file():
        found = read_parquet(watch / CROSSING)
        if "crossing" in found.columns and "name" in tables.tubes.columns:
            names = tables.tubes.filter(pl.col("name").is_not_null())
            names = names.select(number=pl.col("name").cast(pl.String), path=pl.col("tube")).unique(
                "number", keep="first"
            )
            found = found.with_columns(number=pl.col("tube").cast(pl.String)).join(names, on="number")
            forecasts = found.select(
                pl.col("path").alias("tube"), "frame", pl.col("crossing", "low", "high").cast(pl.Float64)
            ).unique(["tube", "frame"], keep="first", maintain_order=True)
    # Of sounds that were listened for with images, too, the score says that their source is seen.
    listened = next((path for path in (watch / HEARD, watch / CROWD / MOMENTS) if path.is_file()), None)
    if listened is not None:
        found = read_parquet(listened)
        video = str(tables.videos["video"][0])
        heard = found.select(
            video=pl.lit(video),
            t_s=pl.col("t_s").cast(pl.Float64),
            end_s=pl.col("t_s").cast(pl.Float64) + 1.0,
            name=pl.col("name").cast(pl.String),
            score=pl.col("score").cast(pl.Float64).fill_null(0.0).fill_nan(0.0).clip(0.0, 1.0),
        )
    return forecasts, heard


def _read_motion(watch: Path | None) -> pl.DataFrame:
    """`t_s`, `standing`, `speed_mps` and `yaw_rate_radps` by the images of a watched film, NaN where they do not tell."""
    columns = {STANDING: ("standing",), SPEED: ("speed_mps", "yaw_rate_radps")}
    found = pl.DataFrame(schema={"t_s": pl.Float64})
    for file, names in columns.items():
        part = pl.DataFrame(schema=dict.fromkeys(("t_s", *names), pl.Float64))
        if watch is not None and (watch / file).is_file():
            part = read_parquet(watch / file).select(pl.col("t_s", *names).cast(pl.Float64))
        found = found.join(part, on="t_s", how="full", coalesce=True)
    known = (
        pl.col("speed_mps").is_finite() & (pl.col("speed_mps") >= 0) & pl.col("yaw_rate_radps").is_finite()
    )
    found = found.fill_null(np.nan).with_columns(
        pl.when(known).then(pl.col(name)).otherwise(np.nan).alias(name)
        for name in ("speed_mps", "yaw_rate_radps")
    )
    return found.sort("t_s")


def _read_obstacles(watch: Path | None) -> pl.DataFrame | None:
    """What `online.obstacles.ObstacleFinder` saw of a watched film; None where nobody looked."""
    if watch is None or not (watch / OBSTACLES).is_file():
        return None
    places = pl.col("t_s", "x1", "y1", "x2", "y2", "score").cast(pl.Float64)
    found = read_parquet(watch / OBSTACLES)
    found = found.select(places, pl.col("track").cast(pl.Int64), pl.col("name").cast(pl.String)).drop_nulls()
    found = found.filter(pl.all_horizontal(places.is_finite()), pl.col("t_s") >= 0)
    found = found.with_columns(pl.col("score").clip(0.0, 1.0))
    proven = pl.col("score").cum_max().over("track") >= _BELIEVED
    return found.sort("t_s").with_columns(proven=proven).filter(pl.col("proven").any().over("track"))


def _join_obstacles(boxes: pl.DataFrame, obstacles: pl.DataFrame, number: Ints, t_s: Floats) -> pl.DataFrame:
    """The boxes of a video, then those of obstacles, each at the first frame that is not earlier than its image.

    Their tubes follow the others; a thing is unknown as surely as it is scored, a person a pedestrian without other labels.
    """
    place = np.searchsorted(t_s, obstacles["t_s"].to_numpy() - 1e-6)
    kept = place < len(number)
    thing = pl.col("name") == "thing"
    beyond = max(int(boxes["tube"].max() or 0) if len(boxes) else 0, -1) + 1  # type: ignore[arg-type]
    more = obstacles.filter(pl.Series(kept)).select(
        pl.Series("frame", number[place[kept]]).cast(boxes.schema["frame"]),
        (pl.col("track") + beyond).cast(boxes.schema["tube"]).alias("tube"),
        "x1", "y1", "x2", "y2",
        (pl.col("score") / _OBSTACLE).clip(0.0, 1.0).alias("score"),
        pl.when(thing).then(pl.lit("thing")).otherwise(pl.lit("Ped")).alias("agent"),
        pl.when(thing).then("score").otherwise(0.0).alias("unknown"),
        "proven",
    )  # fmt: skip
    more = more.filter(~_find_covered(more, boxes))
    # Of a watch with fewer frames a second, several may come to one frame: the newest holds.
    more = more.unique(["tube", "frame"], keep="last", maintain_order=True)
    return pl.concat([boxes, more], how="diagonal")


def _find_covered(obstacles: pl.DataFrame, boxes: pl.DataFrame) -> pl.Series:
    """(n,) whether most of an obstacle lies in a sure box of the detector, and it is a part of what that is around: a thing
    of anybody, a person of a person or rider, since children step out before vehicles."""
    here = obstacles.with_row_index("row").join(
        boxes.filter(pl.col("score") >= _SURE, pl.col("agent") != ""), on="frame", suffix="_b"
    )
    here = here.filter((pl.col("agent") == "thing") | pl.col("agent_b").is_in(BODIES))
    wide = pl.min_horizontal("x2", "x2_b") - pl.max_horizontal("x1", "x1_b")
    high = pl.min_horizontal("y2", "y2_b") - pl.max_horizontal("y1", "y1_b")
    area = (pl.col("x2") - pl.col("x1")) * (pl.col("y2") - pl.col("y1"))
    inside = here.filter(wide > 0, high > 0, wide * high > 0.6 * area)["row"].unique()
    return pl.Series(np.isin(np.arange(len(obstacles)), inside.to_numpy()))


def _find_camera(tables: Scenes | Predictions, row: dict[str, Any]) -> dict[str, float]:
    """Focal length, horizon and height of the camera of a video, as far as its sensors say them."""
    sensors = tables.sensors
    if sensors.is_empty() or row.get("scene") is None or "intrinsics" not in sensors.columns:
        return {}
    held = sensors.filter(
        pl.col("scene").cast(pl.String) == str(row["scene"]), pl.col("intrinsics").is_not_null()
    )
    if row.get("sensor") is not None:
        held = held.filter(pl.col("sensor").cast(pl.String) == str(row["sensor"]))
    if held.is_empty():
        return {}
    lens = np.array(held["intrinsics"][0].to_list(), np.float64).reshape(3, 3)
    found = {"focal_px": float(lens[0, 0])}
    if "ego_SE3_sensor" in held.columns and held["ego_SE3_sensor"][0] is not None:
        pose = np.array(held["ego_SE3_sensor"][0].to_list(), np.float64).reshape(4, 4)
        # The third axis of a camera looks ahead; of the vehicle z is up.
        rise = float(np.clip(pose[2, 2], -0.99, 0.99))
        found["horizon_px"] = float(lens[1, 2] + lens[1, 1] * rise / np.sqrt(1 - rise**2))
        if 0.5 <= pose[2, 3] <= 5.0:
            found["camera_m"] = float(pose[2, 3])
    return found


def _find_size(row: dict[str, Any], boxes: pl.DataFrame) -> tuple[float, float]:
    """Width and height of the image; where nobody says them, what the boxes span."""
    if row.get("width_px") and row.get("height_px"):
        return float(row["width_px"]), float(row["height_px"])
    if boxes.is_empty():
        return 1280.0, 720.0
    return max(1.0, float(boxes["x2"].max())), max(1.0, float(boxes["y2"].max()))  # type: ignore[arg-type]


FILMS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".gif")
_DEEPEST = 3


def find_drives(paths: Sequence[Path], without: Sequence[Path] = ()) -> tuple[dict[str, Path], list[Path]]:
    """The films by the names of their watches, and the runs and tables, behind some paths.

    Args:
        paths: as they were given; folders are looked into three deep.
        without: folders that are left out where they lie below a path, such as what an earlier run has made there.

    Raises:
        UsageError: if two films would have one name.
        InputError: if a path is not there, or holds no drive.
    """
    films: dict[str, Path] = {}
    sources: list[Path] = []
    taken: set[Path] = set()
    passed = {os.path.realpath(each) for each in without}
    # In whatever order they are named, the result is one; of several ways to a file, as by links, the shortest is its own.
    for path in sorted(paths, key=_measure_path):
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
        held = False
        for found in sorted(_walk(path, passed), key=_measure_path):
            held, real = True, Path(os.path.realpath(found))
            if real in taken:
                continue
            taken.add(real)
            if found.is_dir():
                sources.append(found)
                continue
            below = found.relative_to(path) if path.is_dir() else Path(found.name)
            name = _name_film("-".join(below.with_suffix("").parts))
            if name in films and films[name] != found:
                raise UsageError(f"{films[name]} and {found} would have one name, {name}; rename one of them")
            films[name] = found
        if not held:
            raise InputError(
                "no video, run of `watch`, saved tables or simulated scenes are there",
                where=str(path),
                hint=f"videos end with {', '.join(FILMS)}",
            )
    return dict(sorted(films.items())), sorted(sources)


def _measure_path(path: Path) -> tuple[int, Path]:
    return len(path.parts), path


def _name_film(text: str) -> str:
    """The name of a film as a folder that any file system takes, and that is none of the files beside it.

    >>> _name_film("day-1"), _name_film(".."), _name_film("watches.json"), len(_name_film("\u96e8" * 100).encode())
    ('day-1', 'video-..', 'video-watches.json', 183)
    """
    name = to_printable(text, 120)
    if len(name.encode()) > _LONGEST_NAME:
        name = name.encode()[: _LONGEST_NAME - 3].decode(errors="ignore") + "\u2026"
    if not name.strip(" .") or name.endswith((".json", ".txt")):
        name = f"video-{name}"
    return name


def _walk(path: Path, passed: set[str], depth: int = 0) -> Iterator[Path]:
    """The films and folders of drives below a path, in the order of their names."""
    if path.is_file():
        if depth == 0 or path.suffix.lower() in FILMS:
            yield path
    elif holds_drives(path):
        yield path
    elif depth < _DEEPEST and path.is_dir():
        for inner in sorted(path.iterdir()):
            if not inner.name.startswith(".") and os.path.realpath(inner) not in passed:
                yield from _walk(inner, passed, depth + 1)


@dataclass(frozen=True, eq=False)
class Examined:
    """What was found in all drives.

    Args:
        peaks, counts, lengths: see `examine_drives`.
        source: video to the run or tables that hold it.
    """

    peaks: pl.DataFrame
    counts: pl.DataFrame
    lengths: pl.DataFrame
    source: Mapping[str, Path]


def examine_sources(
    sources: Sequence[Path], second: Sequence[Path], failed: dict[str, str]
) -> Examined | None:
    """What is found in all drives; None where none can be taken.

    Args:
        sources: runs and tables.
        second: those of another model on the same videos.
        failed: path to the reason, of what cannot be taken; what fails is added.

    Raises:
        UsageError: if two of them hold one video.
    """
    others: dict[str, pl.DataFrame] = {}
    for path in second:
        others |= collect_boxes(path)
    parts: list[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]] = []
    source: dict[str, Path] = {}
    with show_progress("drives examined") as progress:
        for number, path in enumerate(sources):
            progress(number, len(sources))
            try:
                part = examine_drives(path, others)
            except InputError as error:
                failed[str(path)] = error.message
                continue
            videos = part[2]["video"].to_list()
            twice = next((video for video in videos if video in source), None)
            if twice is not None:
                raise UsageError(
                    f"{source[twice]} and {path} both hold the video {to_printable(twice)}; name one of them with "
                    "--second if it is of another model"
                )
            source |= dict.fromkeys(videos, path)
            parts.append(part)
        progress(len(sources), len(sources))
    if not parts:
        return None
    peaks, counts, lengths = (pl.concat(each) for each in zip(*parts, strict=True))
    return Examined(peaks, counts, lengths, source)
