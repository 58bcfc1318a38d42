"""Checks of a folder of annotations: frame base, box scale, splits, empty tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, report_error, report_note, report_suspicion
from roadaware.analysis.doctor.predictions import (
    check_box_format,
    check_names,
    check_predictions,
    get_image_size,
    join_boxes,
    list_row_names,
)
from roadaware.arrays import Floats, Ints
from roadaware.datasets.tracker_csv import LARGEST_SHARE
from roadaware.errors import InputError
from roadaware.formats.road_detections import AGENTNESS
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes


def check_frame_base(first: Ints, last: Ints, n_frames: Ints) -> list[Diagnosis]:
    """Whether frames count from 0.

    Args:
        first: (videos,) lowest frame that has a box.
        last: (videos,) highest frame that has a box.
        n_frames: (videos,) number of frames.
    """
    if not len(first):
        return []
    beyond = last >= n_frames
    if first.min() >= 1 and beyond.any():
        evidence = f"no video has boxes in frame 0, {int(beyond.sum())} have some in frame n_frames"
        return report_error("frame_base", "Frames count from 1.", evidence, "Subtract 1 from every frame.")
    if first.min() == 1 and len(first) >= 5 and (first == 1).mean() > 0.3:
        evidence = f"{int((first == 1).sum())} of {len(first)} videos begin in frame 1, none in frame 0"
        return report_suspicion("frame_base", "Frames seem to count from 1.", evidence, "Subtract 1 if so.")
    return []


def check_box_scale(x2_px: Floats, y2_px: Floats, width_px: int, height_px: int) -> list[Diagnosis]:
    """Whether boxes are in pixels of the original image.

    Args:
        x2_px: (n,) right edges.
        y2_px: (n,) lower edges.
        width_px: width of the images.
        height_px: height of the images.
    """
    if not len(x2_px):
        return []
    right, low = float(x2_px.max()), float(y2_px.max())
    if width_px == height_px == 1:
        # Boxes that are shares of images whose size is not known
        if max(right, low) <= 1.5:
            return []
        evidence = f"boxes reach x {right:g}, y {low:g} where shares in [0, 1] are due"
        remedy = "Divide x by the width and y by the height of the image."
        return report_error("box_scale", "Boxes are in pixels, not shares of the image.", evidence, remedy)
    evidence = f"boxes reach x {right:g}, y {low:g} in images of {width_px} x {height_px}"
    if right <= 1.5 and low <= 1.5:
        remedy = f"Multiply x by {width_px} and y by {height_px}."
        return report_error("box_scale", "Boxes are shares of the image, not pixels.", evidence, remedy)
    if right <= 100 and low <= 100 and width_px > 400:
        remedy = "Multiply by the image size and divide by 100."
        return report_suspicion("box_percent", "Boxes look like percent of the image.", evidence, remedy)
    if right > width_px * 1.05 or low > height_px * 1.05:
        says = "Boxes reach well beyond the image: its size or the scale is wrong."
        return report_suspicion(
            "image_size", says, evidence, "Check the size of the images in the annotations."
        )
    if len(x2_px) >= 1000 and right < width_px * 0.55 and low < height_px * 0.55:
        says = "Boxes fill less than a quarter of the image: they may be of a smaller copy of it."
        return report_suspicion(
            "image_size", says, evidence, "Check the size of the images in the annotations."
        )
    return []


def split_sizes(sizes: Mapping[str, int]) -> list[Diagnosis]:
    """Whether every split has videos.

    Args:
        sizes: split to the number of its videos that were read.
    """
    empty = [name for name, count in sizes.items() if count == 0]
    found: list[Diagnosis] = []
    if not sizes:
        remedy = "Put the split_ids folder of the release beside the annotations."
        found += report_suspicion("no_splits", "No split lists were found.", "no video is in a split", remedy)
    if empty:
        says = f"Splits without a single video: {', '.join(empty)}."
        found += report_error(
            "empty_split", says, f"{len(empty)} of {len(sizes)} splits", "Check the split lists."
        )
    return found


def check_table_sizes(rows: Mapping[str, int], rejected: int, read: int) -> list[Diagnosis]:
    """Whether there is something to work with.

    Args:
        rows: table to its number of rows.
        rejected: rows and files that were refused.
        read: rows found in the source.
    """
    found: list[Diagnosis] = []
    if not rows.get("boxes"):
        says = "There are no boxes: every metric of them will be empty."
        evidence = ", ".join(f"{name} {count}" for name, count in rows.items()) or "all tables are empty"
        found += report_error("no_boxes", says, evidence, "`roadaware read` lists what was found.")
    if rejected:
        share = rejected / max(read, rejected)
        says = f"{rejected} rows or files were refused."
        kind = report_error if share > 0.01 else report_note
        found += kind(
            "rejected", says, f"{share:.2%} of what was found", "`roadaware read` lists the reasons."
        )
    return found


# Whether predictions and ground truth speak of the same things at all: if not, every number is 0 and means nothing.

_CALLED = {"relations": "videos", "queries": "sentences", "sounds": "sounds"}
_LABELLED = {"action", "agent", "location", "duplex", "event", "av_action", "predicate"}
_SHIFTS = (-1, 1, -2, 2)
_NAMED = 3
_FEW, _SEVERAL = 3, 20
_FITS, _FITS_WELL = 0.3, 0.75
"""Mean IoU that boxes read otherwise must reach before a 0 is refused: a bad model is no mistake.

Among many readings one fits a handful of boxes by chance: fewer than `_SEVERAL` have to fit well, and fewer
than `_FEW` show nothing.
"""
_GRID = 50


def check_overlap(
    predictions: Predictions,
    scenes: Scenes,
    *,
    where: str,
    table: str = "boxes",
    kinds: Iterable[str] = (),
) -> tuple[str, ...]:
    """Refuse predictions that share nothing with the ground truth, and count what one side lacks where they share a part.

    Predictions of nothing are fine: a model may find nothing. Predictions of which every row was refused are not.

    Args:
        predictions: as read.
        scenes: the ground truth that is judged.
        where: names the predictions in errors.
        table: of the ground truth that its things are named in: boxes, relations, queries or sounds.
        kinds: of labels whose names have to agree; those that both sides have where empty.

    Returns:
        What is missing on either side, in words.

    Raises:
        InputError: if every prediction was refused, they are those of another task, or predictions and ground truth share no
            video, sentence or sound, no frame, or no name of a class.
    """
    nothing = all(
        getattr(predictions, name).is_empty() for name in ("boxes", "tubes", "relations", "queries", "sounds")
    )
    # Frames alone say what was looked at, unless they are scored themselves.
    if nothing and (predictions.frames.is_empty() or "scores" not in predictions.frames.columns):
        if len(predictions.rejected):
            row = predictions.rejected.row(0, named=True)
            raise InputError(
                f"not one of its rows can be taken ({len(predictions.rejected):,} refused); the first: "
                f"{row['item']}: {row['reason']}",
                where=where,
                hint="predictions are scored against the truth they were made on: is this the right truth?",
            )
        if predictions.frames.is_empty() or table in _CALLED:
            return ()
    elif table in _CALLED and getattr(predictions, table).is_empty():
        # Predictions that hold rows, and none of the table that is judged
        held = {
            name: len(rows) for name, rows in predictions.tables().items() if len(rows) and name != "videos"
        }
        found = ", ".join(f"{n:,} {name}" for name, n in held.items())
        raise InputError(
            f"expected predictions with {table}, found none, but {found}",
            where=where,
            hint="these are predictions of another task or dataset: every score would be 0 and mean nothing",
        )
    notes = _things(predictions, scenes, where, table)
    notes += _frames(predictions, scenes, where)
    _classes(predictions, scenes, where, set(kinds) or _LABELLED)
    return notes


def reject_zero_score(task: str | None, predictions: Predictions, scenes: Scenes, where: str) -> None:
    """Refuse a score of 0 that has a cause other than the model: it is no measurement.

    Args:
        task: one of `predictions.tasks.TASKS`, whose own checks are asked as well; None for boxes alone.
        predictions: that scored 0 in everything.
        scenes: the ground truth.
        where: names the predictions in errors.

    Raises:
        InputError: if a usual mistake explains the 0.
    """
    if task is not None:
        found = check_predictions(task, predictions, scenes, least_fit=_least_fit(predictions, scenes))
    else:
        found = suspect_box_format(predictions, scenes)
    serious = [each for each in found if each.severity == "wrong" and each.code != "empty_predictions"]
    if serious:
        raise _refusal(serious[0], where, f"every score is 0, and that is why: {serious[0].says}")


def suspect_box_format(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """The usual mistake in frames or boxes that would explain why predictions meet so few true boxes, if there is one."""
    boxes = join_boxes(scenes.boxes, predictions.boxes)
    return check_box_format(boxes, get_image_size(scenes), least_fit=_least_fit(predictions, scenes))


def _least_fit(predictions: Predictions, scenes: Scenes) -> float:
    """The mean IoU that predictions read otherwise must reach; beyond all where they are too few to decide."""
    several = min(_places(boxes, get_image_size(scenes)) for boxes in (predictions.boxes, scenes.boxes))
    if several < _FEW:
        return math.inf
    return _FITS_WELL if several < _SEVERAL else _FITS


def _places(boxes: pl.DataFrame, size_px: tuple[float, float]) -> int:
    """How many different boxes there are; one that stands still for a hundred frames is one.

    Args:
        boxes: with `video` and the corners.
        size_px: width and height of the image; boxes in shares of it are told by their corners.
    """
    if boxes.is_empty():
        return 0
    if boxes.select(pl.max_horizontal(pl.col(CORNERS).max())).item() <= LARGEST_SHARE:
        # On the grid of the image they would all be one box, too few to be judged.
        size_px = (1.0, 1.0)
    steps = (
        (pl.col(name).cast(pl.Float64) * (_GRID / size_px[k % 2])).round() for k, name in enumerate(CORNERS)
    )
    return boxes.select("video", *steps).n_unique()


def _things(predictions: Predictions, scenes: Scenes, where: str, table: str) -> tuple[str, ...]:
    """Videos, sentences or sounds that one side lacks."""
    if table in _CALLED:
        what, predicted, true = (
            _CALLED[table],
            *(list_row_names(table, t, scenes) for t in (predictions, scenes)),
        )
    else:
        what, predicted = "videos", _videos(predictions)
        true = scenes.videos["video"].cast(pl.String).to_list() or _videos(scenes)
    notes = []
    for each in check_names(what, predicted, true):
        if each.code == "names":
            raise _refusal(each, where, each.says)
        if each.code in ("foreign", "missing"):
            notes.append(f"{each.says.removesuffix('.')} (first {each.evidence.partition(', ')[0]})")
    return tuple(notes)


def _frames(predictions: Predictions, scenes: Scenes, where: str) -> tuple[str, ...]:
    """Frames with predicted boxes that the ground truth does not judge."""
    predicted, frames = _pairs(predictions.boxes), scenes.frames
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=True))
    judged = pl.concat([_pairs(table) for table in (frames, scenes.boxes)]).unique()
    if "annotated" in scenes.frames.columns:
        judged = _pairs(frames)
    predicted = predicted.join(judged.select("video").unique(), on="video", how="semi")
    shared = predicted.join(judged, on=["video", "frame"], how="semi")
    if predicted.is_empty() or len(shared) == len(predicted):
        return ()
    if shared.is_empty():
        span = {"low": pl.col("frame").min(), "high": pl.col("frame").max()}
        ends = [table.select(**span).row(0) for table in (predicted, judged)]
        shift = next((n for n in _SHIFTS if _meets(predicted, judged, n)), None)
        remedy = f"add {shift} to every frame" if shift else "number frames as the truth does, from 0"
        raise InputError(
            f"predictions and truth share no frame: predicted are frames {ends[0][0]} to {ends[0][1]} of "
            f"{predicted['video'].n_unique():,} videos, judged are frames {ends[1][0]} to {ends[1][1]}",
            where=where,
            hint=f"{remedy}; does the truth belong to these predictions, and were other frames annotated?",
        )
    lost = len(predicted) - len(shared)
    return (f"{lost:,} of {len(predicted):,} frames with predicted boxes are not judged by the truth",)


def _meets(predicted: pl.DataFrame, judged: pl.DataFrame, shift: int) -> bool:
    """Whether most predicted frames are judged ones when they are moved."""
    moved = predicted.with_columns(pl.col("frame") + shift)
    return 2 * len(moved.join(judged, on=["video", "frame"], how="semi")) > len(moved)


def _classes(predictions: Predictions, scenes: Scenes, where: str, kinds: set[str]) -> None:
    """Names of classes of a kind, of which some have to be the ground truth's."""
    theirs, ours = predictions.meta.vocabularies, scenes.meta.vocabularies
    # Agentness has one class; what it is called tells nothing.
    shared = sorted((kinds & theirs.keys() & ours.keys()) - {AGENTNESS})
    strange = [kind for kind in shared if theirs[kind] and ours[kind] and not {*theirs[kind]} & {*ours[kind]}]
    if not strange or strange != shared:
        return
    kind = strange[0]
    here, there = (", ".join(map(repr, held[kind][:_NAMED])) for held in (theirs, ours))
    raise InputError(
        f"predictions and truth share no class of the kind {kind}: predictions have {here}, the truth {there}",
        where=where,
        hint="classes are compared by name: name them as the truth does, or take the truth of these predictions",
    )


def _videos(held: Predictions | Scenes) -> list[str]:
    """Every video that a row speaks of."""
    tables = (getattr(held, name) for name in ("boxes", "tubes", "frames", "relations"))
    found = [table["video"].cast(pl.String).unique(maintain_order=True) for table in tables if len(table)]
    return list(dict.fromkeys(video for series in found for video in series.to_list()))


def _pairs(table: pl.DataFrame) -> pl.DataFrame:
    if table.is_empty():
        return pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64})
    return table.select(pl.col("video").cast(pl.String), pl.col("frame").cast(pl.Int64)).unique()


def _refusal(found: Diagnosis, where: str, says: str) -> InputError:
    return InputError(
        f"{says.removesuffix('.')}: {found.evidence}",
        where=where,
        hint=f"{found.remedy} Predictions are scored against the truth they were made on.",
    )
