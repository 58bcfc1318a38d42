"""Boxes in arrays as tables, and tables as boxes with one class and one track each: what libraries in memory hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.flat import HELD, FlatBoxes, Form, flatten
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes, label_tracks

NO_TRACK = -1
"""The number of no track, and of no class, in arrays of whole numbers, which hold no null."""
_FACTS = {"width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32, "n_frames": pl.Int64}
_NAMES = (str, int, np.integer, os.PathLike)
_MEMORY = Form("memory", "", frozenset(HELD) - {"score"}, lambda _: iter(()), "")


@dataclass(frozen=True, eq=False)
class BoxArrays:
    """Boxes in arrays, checked.

    Args:
        boxes: (n, 4) Float32 or Float64 x1, y1, x2, y2 in pixels.
        frames: (n,) from 0.
        videos: (n) names.
        labels: (n,) places in `classes`, -1 for none.
        tracks: (n,) number of each box's track in its video, -1 for none.
        classes: names.
    """

    boxes: npt.NDArray[Any]
    frames: Ints
    videos: list[str]
    labels: Ints
    tracks: Ints
    classes: tuple[str, ...]


def parse_numbers(what: str, given: npt.ArrayLike, dtype: type[np.floating]) -> npt.NDArray[Any]:
    """Numbers as an array of their type.

    Raises:
        InputError: if they are no numbers, rows have different lengths, or a mask hides some.
    """
    try:
        return np.asarray(_detach(what, given), dtype=dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what} should be an array of numbers: {error}") from error


def _detach(what: str, given: Any) -> Any:
    """A tensor of torch as numpy takes it: without its gradient, on the CPU, of a type that numpy has.

    Raises:
        InputError: of a masked array in which some are hidden, which numpy would hand out all the same.
    """
    if np.ma.is_masked(given):
        raise InputError(f"some values of {what} are masked", hint="leave rows without a value away")
    if not hasattr(given, "detach"):
        return given
    held = given.detach().cpu()
    return held.float() if "bfloat16" in str(held.dtype) else held


def _parse_whole_numbers(what: str, given: Any) -> npt.NDArray[Any]:
    """Numbers as an array, of integers where all of them are whole: `np.loadtxt` gives frames and tracks as floats."""
    found = np.asarray(_detach(what, given))
    if found.dtype.kind == "f" and np.isfinite(found).all() and (found == np.rint(found)).all():
        return found.astype(np.int64)
    return found


def _parse_videos(given: Any, n: int) -> list[str]:
    """The video of each of n boxes.

    Raises:
        UsageError: if it is neither a name nor several.
        InputError: if there are not n names, or one is none.
    """
    if isinstance(given, str):
        return [given] * n
    try:
        named = [] if isinstance(given, bytes) else list(given)
    except TypeError:
        raise UsageError(f"videos is one name for all boxes, or the video of each, not {given!r}") from None
    if len(named) != n:
        raise InputError(f"expected {n} names of videos, found {len(named)}")
    # The text of what is missing in a data frame, of bytes and of tensors would be the name of a video, too.
    row = next((row for row, name in enumerate(named) if not isinstance(name, _NAMES)), None)
    if row is not None:
        raise InputError(f"videos are names, and that of box {row} is {named[row]!r}")
    return [str(name) for name in named]


def list_classes(classes: Sequence[str] | Mapping[int, str]) -> Sequence[str]:
    """Names in their order, also of a dictionary of places, as `model.names` of detectors is one."""
    if isinstance(classes, Mapping) and sorted(classes) == list(range(len(classes))):
        return [classes[place] for place in range(len(classes))]
    return list(classes) if isinstance(classes, Mapping) else classes  # type: ignore[arg-type]


def parse_box_arrays(
    boxes: npt.ArrayLike,
    frames: npt.ArrayLike,
    videos: str | Sequence[str],
    classes: Sequence[str] | Mapping[int, str],
    labels: npt.ArrayLike | None,
    tracks: npt.ArrayLike | None,
    *,
    dtype: type[np.floating] = np.float32,
    unlabelled: bool = False,
) -> BoxArrays:
    """Arrays of boxes, checked.

    Args:
        boxes: (n, 4) corners in pixels; (4,) for one box.
        frames: (n,) whole numbers from 0.
        videos: one name for all, or (n,).
        classes: (k,) names, or place to name.
        labels: (n,) places in `classes`; None for none.
        tracks: (n,) whole numbers from 0, or -1; None for none.
        dtype: of the corners.
        unlabelled: whether a label may be -1.

    Raises:
        UsageError: if `classes` are no names.
        InputError: if shapes differ, or a value has no meaning.
    """
    corners = parse_numbers("boxes", boxes, dtype)
    corners = corners.reshape(-1, 4) if corners.shape in ((0,), (4,)) else corners
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise InputError(f"boxes are (n, 4) x1, y1, x2, y2 in pixels, not {corners.shape}")
    if not np.isfinite(corners).all():
        raise InputError("boxes should be finite numbers of pixels", hint="leave boxes with NaN away")
    if (corners[:, 2:] < corners[:, :2]).any():
        row = int(np.flatnonzero((corners[:, 2:] < corners[:, :2]).any(axis=1))[0])
        hint = "are they x, y, width, height? Then add x to the width and y to the height"
        raise InputError(f"boxes are x1, y1, x2, y2; box {row} has {corners[row].tolist()}", hint=hint)
    given, classes = classes, list_classes(classes)
    # The order of a set is another in each process, and `labels` are places in it.
    fits = isinstance(classes, Iterable) and not isinstance(classes, str | Set)
    classes = list(classes) if fits else []
    if not fits or not all(isinstance(name, str) for name in classes):
        raise UsageError(f"classes is a list of names such as ['Ped', 'Car'], not {given!r}")
    n, k = len(corners), len(classes)
    places = np.full(n, NO_TRACK) if labels is None else _parse_whole_numbers("labels", labels)
    if places.shape != (n,):
        raise InputError(f"expected ({n},) labels, found {places.shape}")
    least = NO_TRACK if unlabelled or labels is None else 0
    if n and not (np.issubdtype(places.dtype, np.integer) and least <= places.min() <= places.max() < k):
        words = places.dtype.kind in "UO" and any(isinstance(label, str) for label in places.tolist())
        raise InputError(
            f"labels are whole numbers from {least} to {k - 1}, the places of {list(classes)}",
            hint="[classes.index(name) for name in labels] gives them, of names" if words else None,
        )
    at = _parse_whole_numbers("frames", frames)
    if at.shape != (n,) or (n and not np.issubdtype(at.dtype, np.integer)):
        raise InputError(f"expected ({n},) whole frame numbers, found {at.dtype} of shape {at.shape}")
    if n and at.min() < 0:
        raise InputError(f"frames count from 0, and one is {at.min()}")
    named = _parse_videos(videos, n)
    owners = np.full(n, NO_TRACK) if tracks is None else _parse_whole_numbers("tracks", tracks)
    if owners.shape != (n,) or (n and not np.issubdtype(owners.dtype, np.integer)):
        raise InputError(f"expected ({n},) whole numbers of tracks, found {owners.dtype} of {owners.shape}")
    if n and owners.min() < NO_TRACK:
        raise InputError(f"tracks are whole numbers from 0, or -1 for none, and one is {owners.min()}")
    found = BoxArrays(
        corners,
        at.astype(np.int64),
        named,
        places.astype(np.int64),
        owners.astype(np.int64),
        tuple(classes),
    )
    # Raise where a track has two boxes in a frame
    if not (found.tracks == NO_TRACK).all():
        rows = pl.DataFrame({"video": found.videos, "frame": found.frames, "track": found.tracks})
        again = rows.filter(pl.col("track") != NO_TRACK).filter(pl.struct(pl.all()).is_duplicated())
        if len(again):
            video, frame, track = again.row(0)
            raise InputError(f"track {track} has two boxes in frame {frame} of {video!r}")
    return found


def _list_places(
    found: BoxArrays, seen: Sequence[tuple[str, int]] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables of videos and of frames: those that are listed, and those with boxes."""
    keys = pl.DataFrame({"video": pl.Series(found.videos, dtype=pl.String), "frame": found.frames})
    if seen is not None:
        try:
            given = [(video, frame, int(frame)) for video, frame in seen]
            places = [(str(video), whole) for video, _, whole in given]
            if any(not isinstance(video, _NAMES) or float(frame) != whole for video, frame, whole in given):
                raise ValueError("a video without a name, or half a frame")
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(
                "seen is a list of (video, frame), such as [('drive', 0), ('drive', 1)]"
            ) from error
        more = pl.DataFrame(places, schema=keys.schema, orient="row")
        keys = pl.concat([more, keys])
    if len(keys) and int(keys["frame"].to_numpy().min()) < 0:
        raise InputError(f"frames count from 0, and one is {int(keys['frame'].to_numpy().min())}")
    frames = keys.unique(maintain_order=True).sort("video", "frame")
    return frames.select("video").unique(maintain_order=True), frames


def _check_facts(facts: Any) -> None:
    """Refuse what says something else of videos than their size, rate and length.

    Raises:
        UsageError: naming it.
    """
    said = "" if isinstance(facts, Mapping) else f"is {type(facts).__name__}"
    for video, row in facts.items() if not said else ():
        if not isinstance(row, Mapping):
            said = f"has {video!r}: {row!r}"
            break
        for name, value in row.items():
            if name not in _FACTS:
                said = f"has {name!r} of {video!r}"
            elif value is not None and not _is_fact(name, value):
                what = "number" if name == "fps" else "whole number"
                said = f"has {name}={value!r} of {video!r}, which is no {what} above 0"
    if said:
        example = "such as {'drive': {'fps': 25.0}}"
        raise UsageError(f"facts {said}; expected a video to its {', '.join(_FACTS)}, {example}")


def _is_fact(name: str, value: Any) -> bool:
    """Whether a value is a finite number above 0, and a whole one unless it is a rate; a video may have no frames."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    above = value >= 0 if name == "n_frames" else value > 0
    return bool(above and value < np.inf and (name == "fps" or float(value).is_integer()))


def _list_tracks(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with the number of their tube, and the table of tubes, by video and first box."""
    tubes = (
        rows.filter(pl.col("track") != NO_TRACK)
        .group_by("video", "track", maintain_order=True)
        .agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
        .with_columns(tube=pl.int_range(pl.len(), dtype=pl.Int64), name=pl.col("track").cast(pl.String))
    )
    owned = rows.join(
        tubes.select("video", "track", "tube"), on=["video", "track"], how="left", maintain_order="left"
    )
    return owned, tubes.select("tube", "video", "name", "start_frame", "end_frame")


def build_scenes(
    found: BoxArrays,
    *,
    kind: str,
    seen: Sequence[tuple[str, int]] | None = None,
    ignore: npt.ArrayLike | None = None,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    dataset: str = "",
) -> Scenes:
    """Ground truth of boxes in arrays.

    Args:
        found: the boxes.
        kind: of label that the classes are.
        seen: (video, frame) of what somebody looked at (default: frames with boxes).
        ignore: (n,) whether a box is neither asked for nor counted as false.
        facts: video to its width_px, height_px, fps and n_frames, where they are known.
        dataset: its name.

    Raises:
        InputError: if a frame lies behind the end of its video, or `ignore` has another shape.
    """
    flags = np.zeros(len(found.boxes), np.bool_) if ignore is None else np.asarray(_detach("ignore", ignore))
    if flags.shape != (len(found.boxes),) or flags.dtype != np.bool_:
        raise InputError(
            f"expected ({len(found.boxes)},) true or false in ignore, found {flags.dtype} of {flags.shape}"
        )
    _check_facts({} if facts is None else facts)
    videos, frames = _list_places(found, seen)
    rows = pl.DataFrame(
        {
            "video": pl.Series(found.videos, dtype=pl.String),
            "frame": found.frames,
            **{name: found.boxes[:, j] for j, name in enumerate(CORNERS)},
            "track": found.tracks,
            "label": found.labels,
            "ignore": flags,
        }
    ).sort("video", "frame", maintain_order=True)
    rows, tubes = _list_tracks(rows.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64)))
    labels = rows.filter(pl.col("label") != NO_TRACK).select("box", "label", kind=pl.lit(kind))
    boxes = rows.select("box", "video", "frame", "tube", *CORNERS, "ignore")
    of_tracks = label_tracks(boxes, labels, kind)
    known = pl.DataFrame(
        [{"video": video, **dict(row)} for video, row in (facts or {}).items()],
        schema={"video": pl.String, **_FACTS},
    )
    return Scenes(
        videos=videos.join(known, on="video", how="left", maintain_order="left"),
        frames=frames.with_columns(annotated=pl.lit(value=True)),
        boxes=boxes if flags.any() else boxes.drop("ignore"),
        labels=labels,
        tubes=tubes,
        tube_labels=of_tracks,
        meta=Meta(dataset, vocabularies={kind: found.classes}),
    )


def build_predictions(
    found: BoxArrays, dense: npt.NDArray[Any], *, kind: str, seen: Sequence[tuple[str, int]] | None = None
) -> Predictions:
    """Predictions of boxes in arrays.

    Args:
        found: the boxes.
        dense: (n, k) score of each class.
        kind: of label that the classes are.
        seen: (video, frame) of what was processed (default: frames with boxes).
    """
    videos, frames = _list_places(found, seen)
    table = pl.DataFrame(
        {
            "box": np.arange(len(found.boxes)),
            "video": pl.Series(found.videos, dtype=pl.String),
            "frame": found.frames,
            **{name: found.boxes[:, j] for j, name in enumerate(CORNERS)},
            "score": dense.max(axis=1, initial=0.0),
            "scores": pl.Series(dense, dtype=pl.Array(pl.Float32, len(found.classes))),
        }
    )
    # Stable, so that boxes of a frame stay in the order in which they were given; then numbered anew.
    held = table.with_columns(track=pl.Series(found.tracks)).sort("video", "frame", maintain_order=True)
    held, tubes = _list_tracks(held.with_columns(box=pl.int_range(pl.len())))
    meta = set_score_layout(Meta(vocabularies={kind: found.classes}), "boxes", (kind,))
    if tubes.is_empty():
        return Predictions(videos=videos, frames=frames, boxes=held.select(table.columns), meta=meta)
    score = held.drop_nulls("tube").group_by("tube").agg(pl.col("score").mean())
    return Predictions(
        videos=videos,
        frames=frames,
        boxes=held.drop("track"),
        tubes=tubes.join(score, on="tube", how="left", maintain_order="left"),
        meta=meta,
    )


def list_boxes(tables: Scenes | Predictions, kind: str | None = None) -> FlatBoxes:
    """Each box with one class and one track; of predictions with dense scores the class that scores highest.

    Args:
        tables: with boxes.
        kind: of label that becomes the class (default: agent, object, category or action, else the first).

    Raises:
        UsageError: if there is no such kind of label.
    """
    held, _ = flatten(tables, _MEMORY, kind)
    return held


def get_columns(held: FlatBoxes) -> tuple[Floats, Ints, Ints, Floats]:
    """(n, 4) corners, (n,) places in the classes and (n,) tracks, -1 for none, and (n,) scores, NaN for none."""
    boxes = held.boxes
    corners = boxes.select(CORNERS).to_numpy().astype(np.float64)
    label, track = (
        boxes[name].fill_null(NO_TRACK).to_numpy().astype(np.int64) for name in ("label", "track")
    )
    return corners, label, track, boxes["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
