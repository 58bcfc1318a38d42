"""KITTI labels written: a file for each image (object detection) or drive (tracking), as KITTI's development kits read them.

Of an image `training/label_2/000000.txt`, of a drive `training/label_02/0000.txt`, as `datasets.kitti` and
`datasets.kitti_tracking` read them. Corners are pixels from 0; frames count from 0. Boxes to ignore are DontCare. What KITTI
says in space is written where the tables have it (of KITTI itself), else as unknown: -1, -10 and -1000.
Boxes of a set that says nothing of occlusion are fully visible.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import polars as pl

from roadaware.datasets.kitti import CLASSES, OWN, UNKNOWN
from roadaware.datasets.kitti_tracking import FPS
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_corner
from roadaware.scenes.schema import CORNERS

OBJECT_COLUMNS = TRACKING_COLUMNS = tuple(OWN)
_IGNORED, _OTHER = "DontCare", "Misc"
_ALIASES = {"person": "Pedestrian", "bicycle": "Cyclist", "rider": "Cyclist", "lorry": "Truck"}
"""Names of other sets that mean a class of KITTI; case does not matter."""
_KNOWN = {name.lower(): name for name in CLASSES} | _ALIASES
_OCCLUSION = {"none": "0", "part": "1", "full": "2"}
_IMAGE, _DRIVE = r"^training/\d{6}$", r"^\d{4}$"


def adapt_shots(held: FlatBoxes, lost: Counter[str]) -> FlatBoxes:
    """Every frame a video of its own, called by six digits; what that loses is counted."""
    held = _adapt_classes(held, lost)
    named = held.videos["video"].str.contains(_IMAGE)
    frames = held.frames.filter(pl.col("v").is_in(held.boxes["v"].implode()))
    frames = frames.join(held.boxes.select("v", "frame").unique(), on=["v", "frame"], how="semi")
    lost["images in which there is nothing, left out: KITTI has no empty file"] += len(held.frames) - len(
        frames
    )
    if not (named.all() and len(frames) == frames["v"].n_unique() and (frames["frame"] == 0).all()):
        lost["frames of videos, written as images that are numbered anew"] += len(frames)
        frames = frames.with_columns(
            video=pl.format("training/{}", pl.int_range(pl.len()).cast(pl.String).str.zfill(6))
        )
    alone = held.videos.join(frames.group_by("v").agg(count=pl.len()), on="v").filter(
        pl.col("n_frames").fill_null(0) != pl.col("count")
    )
    lost["lengths of videos"] += len(alone)
    _count_splits(held, lost)
    boxes = held.boxes.drop("video").join(
        frames.select("v", "frame", "video"), on=["v", "frame"], maintain_order="left"
    )
    return replace(held, frames=frames, boxes=boxes)


def adapt_drives(held: FlatBoxes, lost: Counter[str]) -> FlatBoxes:
    """Videos called by four digits, and boxes with tracks or without a class; what that loses is counted."""
    held = _adapt_classes(held, lost)
    loose = pl.col("track").is_null() & (pl.col("class") != _IGNORED)
    lost["boxes without a track, left out"] += held.boxes.select(loose.sum()).item()
    tracked = (pl.col("class") == _IGNORED) & pl.col("track").is_not_null()
    lost["tracks of boxes to ignore"] += held.boxes.select(tracked.sum()).item()
    boxes = held.boxes.filter(~loose)
    ends = boxes.group_by("v").agg(last=pl.col("frame").max() + 1)
    videos = held.videos.join(ends, on="v", how="left", maintain_order="left")
    lost["videos without boxes, left out: KITTI has no empty file"] += videos["last"].null_count()
    late = (pl.col("n_frames") != pl.col("last")).fill_null(value=False)
    lost["lengths of videos, which end with their last box"] += videos.select(late.sum()).item()
    lost["rates of videos other than 10"] += videos.select((pl.col("fps") != FPS).sum()).item()
    _count_splits(held, lost)
    if not videos["video"].str.contains(_DRIVE).all():
        lost["names of videos, numbered anew"] += len(videos)
        videos = videos.with_columns(video=pl.int_range(pl.len()).cast(pl.String).str.zfill(4))
    boxes = boxes.drop("video").join(videos.select("v", "video"), on="v", how="left", maintain_order="left")
    return replace(held, videos=videos, boxes=boxes)


def _adapt_classes(held: FlatBoxes, lost: Counter[str]) -> FlatBoxes:
    """The boxes with `class`, one of `CLASSES`: by the name, else Misc; DontCare where they are to ignore."""
    names = {n: _KNOWN.get(name.strip().lower(), _OTHER) for n, name in enumerate(held.classes)}
    known = (
        pl.col("label").replace_strict(names, return_dtype=pl.String) if names else pl.lit(None, pl.String)
    )
    ignored = pl.col("ignore").fill_null(value=False)
    boxes = held.boxes.with_columns(pl.when(ignored).then(pl.lit(_IGNORED)).otherwise(known).alias("class"))
    other = {n for n, name in enumerate(held.classes) if names[n] != name}
    lost["classes under other names of KITTI, such as Pedestrian or Misc"] += boxes.select(
        (pl.col("label").is_in(list(other)) & (pl.col("class") != _IGNORED)).sum()
    ).item()
    own = (
        pl.col("label").replace_strict(dict(enumerate(held.classes)), return_dtype=pl.String)
        if names
        else pl.lit("")
    )
    lost["classes of boxes to ignore"] += boxes.select(
        (ignored & (own != _IGNORED).fill_null(value=False)).sum()
    ).item()
    if not held.scored and "truncated_share" not in boxes.columns and not boxes["occlusion"].count():
        # 3, the unknown, is what KITTI's own evaluations and TrackEval leave out: other sets would count for nothing.
        boxes = boxes.with_columns(occlusion=pl.when(pl.col("class") != _IGNORED).then(pl.lit("none")))
        lost["boxes of which nothing is said of occlusion, written as fully visible"] += boxes[
            "occlusion"
        ].count()
    return replace(held, boxes=boxes)


def _count_splits(held: FlatBoxes, lost: Counter[str]) -> None:
    lost["splits of videos other than train"] += held.videos.select((pl.col("split") != "train").sum()).item()


def write_kitti(held: FlatBoxes) -> Files:
    """Names and contents of the files of object labels.

    Args:
        held: boxes as `adapt_shots` gives them.
    """
    lines = held.boxes.select("video", line=_format_label(held))
    for video, text in (
        lines.group_by("video", maintain_order=True).agg(pl.col("line").str.join("\n")).iter_rows()
    ):
        yield f"training/label_2/{video.rpartition('/')[2]}.txt", f"{text}\n".encode()


def write_kitti_tracking(held: FlatBoxes) -> Files:
    """Names and contents of the files of tracking labels.

    Args:
        held: boxes as `adapt_drives` gives them.
    """
    track = pl.when(pl.col("class") == _IGNORED).then(-1).otherwise(pl.col("track")).cast(pl.String)
    line = pl.concat_str(pl.col("frame").cast(pl.String), track, _format_label(held), separator=" ")
    lines = held.boxes.select("video", line=line)
    for video, text in (
        lines.group_by("video", maintain_order=True).agg(pl.col("line").str.join("\n")).iter_rows()
    ):
        yield f"training/label_02/{video}.txt", f"{text}\n".encode()


def _format_label(held: FlatBoxes) -> pl.Expr:
    """The 15 fields of a line from the class on, and the score of predictions."""

    def say(name: str) -> pl.Expr:
        unknown = pl.lit(str(UNKNOWN.get(name, -1)))
        return format_corner(pl.col(name)).fill_null(unknown) if name in held.boxes.columns else unknown

    ignored = pl.col("class") == _IGNORED
    hidden = pl.col("occlusion").replace_strict(_OCCLUSION, default=None, return_dtype=pl.String)
    hidden = hidden.fill_null(pl.when(ignored).then(pl.lit("-1")).otherwise(pl.lit("3")))
    space = ("height_m", "width_m", "length_m", "x_m", "y_m", "z_m", "rotation_y_rad")
    return pl.concat_str(
        pl.col("class"), say("truncated_share"), hidden, say("alpha_rad"), *(format_corner(pl.col(c)) for c in CORNERS),
        *map(say, space), *((pl.col("score").cast(pl.String),) if held.scored else ()), separator=" ",
    )  # fmt: skip
