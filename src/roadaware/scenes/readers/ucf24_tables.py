"""From the tubes of a UCF101-24 file to tables: boxes in pixels of 320 x 240, frames with their action."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats32, Ints
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.ucf24_raw import Raw, RawTube, refusals
from roadaware.scenes.schema import CORNERS

WIDTH_PX, HEIGHT_PX = 320, 240
BEYOND = 0.01
"""How far outside the image a corner may lie, in shares of it, and still be cut off at its edge."""

_NO_BOX = "not one box that can be taken"


def tables_of(raw: Raw, findings: Findings) -> dict[str, pl.DataFrame]:
    """The tables of all videos: tracks first, then for each the tube of its action, in the same order.

    Args:
        raw: what the file holds.
        findings: counts the boxes and takes those that cannot be taken.
    """
    names = pl.Series("video", raw.names, dtype=pl.String)
    lengths = np.array(raw.lengths, dtype=np.int64)
    tube, frame, corners = _boxes(raw, findings)
    kept = np.unique(tube)
    if len(kept) < len(raw.tubes):
        lost = np.setdiff1d(np.arange(len(raw.tubes)), kept)
        findings.reject_rows("tubes", refusals(raw.file, [(_item(raw, raw.tubes[n]), _NO_BOX) for n in lost]))
        tube = np.searchsorted(kept, tube)
    findings.read["tubes"] += len(raw.tubes) + len(kept)
    tubes = [raw.tubes[number] for number in kept]
    video = np.array([each.video for each in tubes], dtype=np.int64)[tube]
    label = np.array([each.label for each in tubes], dtype=np.int64)
    order = np.lexsort((tube, frame, video))
    boxes = pl.DataFrame(
        {
            "box": np.arange(len(order)),
            "video": names.gather(video[order]),
            "frame": frame[order],
            "tube": tube[order],
            **{name: np.ascontiguousarray(corners[order, at]) for at, name in enumerate(CORNERS)},
        }
    )
    findings.read["frames"] += int(lengths.sum())
    return {
        "videos": _videos(raw, names),
        "frames": _frames(names, lengths).with_columns(annotated=pl.lit(value=True)),
        "boxes": boxes,
        "labels": boxes.select("box", kind=pl.lit("action"), label=pl.Series(label[tube[order]])),
        **_tubes(raw, tubes, names, tube, frame),
        "frame_labels": _actions(names, lengths, tubes),
    }


def _boxes(raw: Raw, findings: Findings) -> tuple[Ints, Ints, Floats32]:
    """(n,) tube and frame of each box that can be taken, and (n, 4) its corners inside the image.

    The published loader takes 1 from all four of x, y, w, h, in single precision: x1 = x - 1 and
    x2 = x1 + w - 1. So a box of the file whose w is 1 is empty.
    """
    counts = np.array([len(each.boxes) for each in raw.tubes], dtype=np.int64)
    tube = np.repeat(np.arange(len(counts)), counts)
    first = np.array([each.start for each in raw.tubes], dtype=np.int64)
    frame = np.arange(len(tube)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    given = np.concatenate([np.zeros((0, 4), np.float32), *(_single(each.boxes) for each in raw.tubes)])
    corners = given - 1
    corners[:, 2:] += corners[:, :2]
    size = np.array([WIDTH_PX, HEIGHT_PX, WIDTH_PX, HEIGHT_PX], dtype=np.float32)
    inside = np.clip(corners, 0, size)
    with np.errstate(invalid="ignore"):
        within = (corners >= -BEYOND * size) & (corners <= (1 + BEYOND) * size)
        beyond = np.asarray(~within.all(axis=1))
        wrong = np.asarray(~((inside[:, 0] < inside[:, 2]) & (inside[:, 1] < inside[:, 3])))
    findings.read["boxes"] += len(tube)
    bad = np.flatnonzero(beyond | wrong)
    if len(bad):
        items = [f"{_item(raw, raw.tubes[tube[n]])}, frame {frame[n]}" for n in bad]
        told = ["lies outside the image" if beyond[n] else "is upside down or empty" for n in bad]
        reasons = [f"the box {given[n].tolist()} {why}" for n, why in zip(bad, told, strict=True)]
        findings.reject_rows("boxes", refusals(raw.file, list(zip(items, reasons, strict=True))))
    good = np.asarray(~(beyond | wrong))
    return tube[good], frame[good], inside[good]


def _single(boxes: npt.NDArray[Any]) -> Floats32:
    """Single precision, in which whole numbers of pixels are exact."""
    with np.errstate(over="ignore"):
        return boxes.astype(np.float32)


def _item(raw: Raw, tube: RawTube) -> str:
    return f"{raw.names[tube.video]}, tube {tube.place}"


def _videos(raw: Raw, names: pl.Series) -> pl.DataFrame:
    count = len(raw.names)
    splits = [["train"] if train else ["test"] for train in raw.train]
    return pl.DataFrame(
        {
            "video": names,
            "width_px": [WIDTH_PX] * count,
            "height_px": [HEIGHT_PX] * count,
            "n_frames": raw.lengths,
            "splits": splits,
        }
    )


def _frames(names: pl.Series, lengths: Ints) -> pl.DataFrame:
    """`video` and `frame` of every frame of every video."""
    video = np.repeat(np.arange(len(lengths)), lengths)
    frame = np.arange(len(video)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pl.DataFrame({"video": names.gather(video), "frame": frame})


def _actions(names: pl.Series, lengths: Ints, tubes: list[RawTube]) -> pl.DataFrame:
    """What happens in every frame: 0 for nothing, else 1 + the action of the last of its tubes.

    Args:
        names: of the videos.
        lengths: (videos,) in frames.
        tubes: those that were taken, with all their frames.
    """
    starts = np.cumsum(lengths) - lengths
    action = np.zeros(int(lengths.sum()), dtype=np.int64)
    for tube in tubes:
        first = int(starts[tube.video])
        action[first + tube.start : first + tube.end] = tube.label + 1
    return _frames(names, lengths).with_columns(kind=pl.lit("av_action"), label=pl.Series(action))


def _tubes(
    raw: Raw, tubes: list[RawTube], names: pl.Series, tube: Ints, frame: Ints
) -> dict[str, pl.DataFrame]:
    """`tubes` and `tube_labels`; spans leave out the frames whose box was refused.

    Args:
        raw: what the file holds.
        tubes: those that were taken.
        names: of the videos.
        tube: (n,) number of each box's tube; in order.
        frame: (n,) its frame; in order within a tube.
    """
    broken = (np.diff(tube, prepend=-1) != 0) | (np.diff(frame, prepend=-2) != 1)
    first = np.flatnonzero(broken)
    last = np.append(first, len(tube))[1:] - 1
    pieces = pl.DataFrame({"tube": tube[first], "low": frame[first], "high": frame[last] + 1})
    extents = pieces.group_by("tube", maintain_order=True).agg(
        start_frame=pl.col("low").min(),
        end_frame=pl.col("high").max(),
        spans=pl.concat_list("low", "high"),
    )
    places = pl.Series([str(each.place) for each in tubes], dtype=pl.String)
    tracks = extents.select(
        "tube",
        video=names.gather([each.video for each in tubes]),
        name=places,
        start_frame="start_frame",
        end_frame="end_frame",
    )
    actions = tracks.with_columns(
        pl.col("tube") + len(tubes),
        pl.format("{}-action", "name").alias("name"),
        parent=pl.col("tube"),
        kind=pl.lit("action"),
        spans=extents["spans"],
    )
    labels = pl.Series("label", [each.label for each in tubes], dtype=pl.Int64)
    return {
        "tubes": pl.concat([tracks, actions], how="diagonal"),
        "tube_labels": actions.select("tube", "kind", labels),
    }
