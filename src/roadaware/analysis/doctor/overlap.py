"""Whether claims and truth speak of the same things at all: if not, every number is 0 and means nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable

import polars as pl

from roadaware.analysis.doctor.claims.boxes import beside, examine_boxes
from roadaware.analysis.doctor.claims.examination import examine_claims, picture_size, things_named
from roadaware.analysis.doctor.claims.names import names
from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.errors import InputError
from roadaware.scenes.formats.kinds import AGENTNESS
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

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
    """Refuse claims that share nothing with the truth, and count what one side lacks where they share a part.

    Claims of nothing are fine: a model may find nothing. Claims of which every row was refused are not.

    Args:
        predictions: as read.
        scenes: the truth that is judged.
        where: names the claims in errors.
        table: of the truth that its things are named in: boxes, relations, queries or sounds.
        kinds: of labels whose names have to agree; those that both sides have where empty.

    Returns:
        What is missing on either side, in words.

    Raises:
        InputError: if every claim was refused, they are those of another task, or claims and truth share no
            video, sentence or sound, no frame, or no name of a class.
    """
    if _claims_nothing(predictions):
        if len(predictions.rejected):
            row = predictions.rejected.row(0, named=True)
            raise InputError(
                f"not one of its rows can be taken ({len(predictions.rejected):,} refused); the first: "
                f"{row['item']}: {row['reason']}",
                where=where,
                hint="claims are scored against the truth they were made on: is this the right truth?",
            )
        return ()
    if table in _CALLED and getattr(predictions, table).is_empty():
        raise _of_another_task(predictions, where, table)
    notes = _things(predictions, scenes, where, table)
    notes += _frames(predictions, scenes, where)
    _classes(predictions, scenes, where, set(kinds) or _LABELLED)
    return notes


def explain_zero(task: str | None, predictions: Predictions, scenes: Scenes, where: str) -> None:
    """Refuse a score of 0 that has a cause other than the model: it is no measurement.

    Args:
        task: one of `claims.TASKS`, whose own checks are asked as well; None for boxes alone.
        predictions: that scored 0 in everything.
        scenes: the truth.
        where: names the claims in errors.

    Raises:
        InputError: if a usual mistake explains the 0.
    """
    least = _least_fit(predictions.boxes, scenes)
    if task is not None:
        found = examine_claims(task, predictions, scenes, least_fit=least)
    else:
        boxes = beside(scenes.boxes, predictions.boxes)
        found = examine_boxes(boxes, picture_size(scenes), least_fit=least)
    serious = [each for each in found if each.severity == "wrong" and each.code != "empty_claims"]
    if serious:
        raise _refusal(serious[0], where, f"every score is 0, and that is why: {serious[0].says}")


def _least_fit(claimed: pl.DataFrame, scenes: Scenes) -> float:
    """The mean IoU that claims read otherwise must reach; beyond all where they are too few to tell."""
    several = min(_places(boxes, picture_size(scenes)) for boxes in (claimed, scenes.boxes))
    if several < _FEW:
        return math.inf
    return _FITS_WELL if several < _SEVERAL else _FITS


def _places(boxes: pl.DataFrame, size_px: tuple[float, float]) -> int:
    """How many different boxes there are; one that stands still for a hundred frames is one."""
    if boxes.is_empty():
        return 0
    steps = (
        (pl.col(name).cast(pl.Float64) * (_GRID / size_px[k % 2])).round() for k, name in enumerate(CORNERS)
    )
    return boxes.select("video", *steps).n_unique()


def _of_another_task(predictions: Predictions, where: str, table: str) -> InputError:
    """Claims that hold rows, and none of the table that is judged."""
    held = {name: len(rows) for name, rows in predictions.tables().items() if len(rows) and name != "videos"}
    found = ", ".join(f"{n:,} {name}" for name, n in held.items())
    return InputError(
        f"expected claims with {table}, found none, but {found}",
        where=where,
        hint="these are claims of another task or data set: every score would be 0 and mean nothing",
    )


def _claims_nothing(predictions: Predictions) -> bool:
    return all(
        getattr(predictions, name).is_empty()
        for name in ("boxes", "tubes", "frames", "relations", "queries", "sounds")
    )


def _things(predictions: Predictions, scenes: Scenes, where: str, table: str) -> tuple[str, ...]:
    """Videos, sentences or sounds that one side lacks."""
    if table in _CALLED:
        what, claimed, true = _CALLED[table], *(things_named(table, t, scenes) for t in (predictions, scenes))
    else:
        what, claimed = "videos", _videos(predictions)
        true = scenes.videos["video"].cast(pl.String).to_list() or _videos(scenes)
    notes = []
    for each in names(what, claimed, true):
        if each.code == "names":
            raise _refusal(each, where, each.says)
        if each.code in ("foreign", "missing"):
            notes.append(f"{each.says.removesuffix('.')} (first {each.evidence.partition(', ')[0]})")
    return tuple(notes)


def _frames(predictions: Predictions, scenes: Scenes, where: str) -> tuple[str, ...]:
    """Frames with claimed boxes that the truth does not judge."""
    claimed, frames = _pairs(predictions.boxes), scenes.frames
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=True))
    judged = pl.concat([_pairs(table) for table in (frames, scenes.boxes)]).unique()
    if "annotated" in scenes.frames.columns:
        judged = _pairs(frames)
    claimed = claimed.join(judged.select("video").unique(), on="video", how="semi")
    shared = claimed.join(judged, on=["video", "frame"], how="semi")
    if claimed.is_empty() or len(shared) == len(claimed):
        return ()
    if shared.is_empty():
        span = {"low": pl.col("frame").min(), "high": pl.col("frame").max()}
        ends = [table.select(**span).row(0) for table in (claimed, judged)]
        shift = next((n for n in _SHIFTS if _meets(claimed, judged, n)), None)
        remedy = f"add {shift} to every frame" if shift else "number frames as the truth does, from 0"
        raise InputError(
            f"claims and truth share no frame: claimed are frames {ends[0][0]} to {ends[0][1]} of "
            f"{claimed['video'].n_unique():,} videos, judged are frames {ends[1][0]} to {ends[1][1]}",
            where=where,
            hint=f"{remedy}; does the truth belong to these claims, and were other frames annotated?",
        )
    lost = len(claimed) - len(shared)
    return (f"{lost:,} of {len(claimed):,} frames with claimed boxes are not judged by the truth",)


def _meets(claimed: pl.DataFrame, judged: pl.DataFrame, shift: int) -> bool:
    """Whether most claimed frames are judged ones when they are moved."""
    moved = claimed.with_columns(pl.col("frame") + shift)
    return 2 * len(moved.join(judged, on=["video", "frame"], how="semi")) > len(moved)


def _classes(predictions: Predictions, scenes: Scenes, where: str, kinds: set[str]) -> None:
    """Names of classes of a kind, of which some have to be the truth's."""
    theirs, ours = predictions.meta.vocabularies, scenes.meta.vocabularies
    # Agentness has one class; what it is called tells nothing.
    shared = sorted((kinds & theirs.keys() & ours.keys()) - {AGENTNESS})
    strange = [kind for kind in shared if theirs[kind] and ours[kind] and not {*theirs[kind]} & {*ours[kind]}]
    if not strange or strange != shared:
        return
    kind = strange[0]
    here, there = (", ".join(map(repr, held[kind][:_NAMED])) for held in (theirs, ours))
    raise InputError(
        f"claims and truth share no class of the kind {kind}: claims have {here}, the truth {there}",
        where=where,
        hint="classes are compared by name: name them as the truth does, or take the truth of these claims",
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
        hint=f"{found.remedy} Claims are scored against the truth they were made on.",
    )
