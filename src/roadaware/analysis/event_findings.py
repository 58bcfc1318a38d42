"""What of road events is not as it should be: rows refused, predictions elsewhere, sizes that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from roadaware.datasets.issues import Findings
from roadaware.errors import InputError
from roadaware.formats.detection_folders import find_detection_folder, list_frame_files
from roadaware.scenes.tables import filter_videos

if TYPE_CHECKING:
    from roadaware.scenes.tables import Predictions, Scenes, TableSet

NO_SCORE = "no number in [0, 1]"
PER_CENT = "If the scores are per cent, divide them by 100."
_CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")
_SMALL_SHARE = 0.6


@dataclass
class LeftOut:
    """What is not judged, by reason.

    Args:
        findings: what ought not to be: refused rows, predictions on what the truth does not know.
        elsewhere: what was not asked for, such as predictions in videos of another split.
    """

    findings: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, int] = field(default_factory=dict)

    @property
    def everything(self) -> dict[str, int]:
        """Both."""
        return {**self.findings, **self.elsewhere}


def count_refusals(tables: TableSet, of: str) -> dict[str, int]:
    """How many rows or files a reader refused, under the first reason; empty where it took all."""
    if not len(tables.rejected):
        return {}
    return {f"rows or files of {of} refused, first: {describe_refusal(tables)}": len(tables.rejected)}


def describe_refusal(tables: TableSet) -> str:
    """The first refusal in words."""
    row = tables.rejected.row(0, named=True)
    line = f"line {row['line']}" if row.get("line") else ""
    return ": ".join(str(part) for part in (row["file"], line, row["item"], row["reason"]) if part)


def describe_remedy(tables: TableSet) -> str | None:
    """What to do about the refusals, where they tell."""
    odd = tables.rejected["reason"].str.contains(NO_SCORE, literal=True).any()
    return PER_CENT if odd else None


def list_warnings(scenes: Scenes) -> tuple[str, ...]:
    """What the reader of the truth wondered at, in words."""
    found = scenes.meta.notes.get("warnings", [])
    return tuple(
        f"truth: {item['what']}: {item['count']:,}"
        + (f", first {item['example']}" if item["example"] else "")
        for item in found
    )


def check_truth(scenes: Scenes, split: str | None) -> None:
    """Make sure that there are true boxes to judge against.

    Raises:
        InputError: if no box lies in a frame that is judged.
    """
    boxes, frames = scenes.boxes, scenes.frames
    if not boxes.is_empty() and "annotated" in frames.columns:
        judged = frames.filter(pl.col("annotated").fill_null(value=False)).select("video", "frame")
        boxes = boxes.select("video", "frame").join(judged, on=["video", "frame"], how="semi")
    if boxes.is_empty():
        where = f"split {split}" if split else "the truth"
        lost = f"; {len(scenes.rejected):,} rows were refused" if len(scenes.rejected) else ""
        first = f", first: {describe_refusal(scenes)}" if lost else ""
        raise InputError(
            f"{where} holds no box in any frame that is judged (of {len(scenes.boxes):,} boxes){lost}{first}",
            hint="there is nothing to judge against; look into it with `roadaware read`",
        )


def select_known_videos(
    predictions: Predictions, videos: Iterable[str], known: Iterable[str], left: LeftOut
) -> Predictions:
    """The predictions in some videos; what lies elsewhere is counted, frames where they have neither box nor tube.

    Args:
        predictions: what was predicted.
        videos: those that are judged.
        known: all videos of the truth.
        left: takes the counts.
    """
    judged, known, reported = set(videos), set(known), set[str]()
    for name in ("boxes", "tubes", "frames"):
        column = getattr(predictions, name)["video"].cast(pl.String)
        for video, count in column.value_counts(sort=True).iter_rows():
            if video not in judged and (name != "frames" or video not in reported):
                reported.add(video)
                counts = left.elsewhere if video in known else left.findings
                where = "in videos outside the split" if video in known else "in videos that the truth lacks"
                what = f"predicted {name} {where}"
                counts[what] = counts.get(what, 0) + count
    return filter_videos(predictions, sorted(judged)) if reported else predictions


def find_unread(path: Path, videos: Sequence[str], known: Iterable[str]) -> LeftOut:
    """The videos of a folder of detections that are not read.

    Raises:
        InputError: if there are videos, and none of them is to be read.
    """
    held = set(list_frame_files(find_detection_folder(path), first_frame=1, findings=Findings()))
    elsewhere = sorted(held - set(videos))
    if held and len(elsewhere) == len(held):
        raise InputError(
            f"none of its {len(held):,} videos is among the {len(videos):,} that are judged",
            where=str(path),
            hint=f"the first is {elsewhere[0]}; is this the right split and the right truth?",
        )
    strange = sorted(set(elsewhere) - set(known))
    outside = len(elsewhere) - len(strange)
    left = LeftOut()
    if outside:
        left.elsewhere[f"videos of {path.name} outside the split"] = outside
    if strange:
        left.findings[f"videos of {path.name} that the truth lacks, first {strange[0]}"] = len(strange)
    return left


def count_empty_videos(predictions: Predictions, scenes: Scenes) -> dict[str, int]:
    """How many judged videos have neither a box, a tube nor a scored frame; empty where all have one."""
    spoken: set[str] = set()
    for frame in (predictions.boxes, predictions.tubes, predictions.frames):
        spoken |= set(frame["video"].cast(pl.String).unique().to_list())
    lost = [video for video in scenes.videos["video"].cast(pl.String).to_list() if video not in spoken]
    return {f"judged videos without any detection, first {lost[0]}": len(lost)} if lost else {}


def check_image_size(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """Whether the size of images that predictions are said to be in can be right, in words where it cannot.

    Args:
        predictions: boxes, and the size in `videos`; nothing is said where that is unknown.
        scenes: truth, with the sizes of its own.
    """
    if not {"width_px", "height_px"} <= set(predictions.videos.columns) or predictions.boxes.is_empty():
        return ()
    sizes = predictions.videos.select(
        pl.col("video").cast(pl.String), w="width_px", h="height_px"
    ).drop_nulls()
    boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String)).join(sizes, on="video")
    if boxes.is_empty() or len(sizes.unique(["w", "h"])) > 1:
        return ()
    width, height = sizes["w"][0], sizes["h"][0]
    size, asked = f"{width}x{height}", "is --size right?"
    beyond = int(
        boxes.select(((pl.col("x2_px") > _reach(width)) | (pl.col("y2_px") > _reach(height))).sum()).item()
    )
    if 2 * beyond > len(boxes):
        return (f"{beyond:,} of {len(boxes):,} predicted boxes lie outside {size}: {asked}",)
    right, lower = boxes.select(pl.col("x2_px").max(), pl.col("y2_px").max()).row(0)
    if right < _SMALL_SHARE * width and lower < _SMALL_SHARE * height:
        return (
            f"all predicted boxes lie within the first {right:.0f}x{lower:.0f} pixels of {size}: {asked}",
        )
    judged, missed = _best_that_miss(boxes, scenes)
    if 2 * missed > judged:
        text = f"in {missed:,} of {judged:,} frames the best predicted box meets no true one"
        return (f"{text}; boxes are read as pixels of {size}: {asked}",)
    return ()


def _reach(side: float) -> float:
    """The farthest that a corner may reach over the side of an image, in pixels."""
    return 1.02 * side + 1


def _best_that_miss(boxes: pl.DataFrame, scenes: Scenes) -> tuple[int, int]:
    """Frames with predictions and truth, and how many of them have a best prediction that overlaps no true box."""
    columns = set(scenes.videos.columns)
    if not {"width_px", "height_px"} <= columns or "score" not in boxes.columns:
        return 0, 0
    video = pl.col("video").cast(pl.String)
    sizes = scenes.videos.select(video, own_w="width_px", own_h="height_px").drop_nulls()
    best = boxes.sort("score", descending=True, maintain_order=True).unique(["video", "frame"], keep="first")
    best = best.join(sizes, on="video").select(
        "video",
        "frame",
        *(
            (pl.col(name) * pl.col(f"own_{side}") / pl.col(side)).alias(f"c_{name}")
            for name, side in zip(_CORNERS, "whwh", strict=True)
        ),
    )
    truth = scenes.boxes.select(video, "frame", *_CORNERS)
    both = best.join(truth.cast({"frame": best.schema["frame"]}), on=["video", "frame"])
    meets = pl.all_horizontal(
        pl.min_horizontal(f"c_{axis}2_px", f"{axis}2_px") > pl.max_horizontal(f"c_{axis}1_px", f"{axis}1_px")
        for axis in "xy"
    )
    frames = both.group_by("video", "frame").agg(meets.any().alias("met"))
    return len(frames), int((~frames["met"]).sum())
