"""Claims written as the pickles that the published code of ROAD reads."""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.scenes.dense import layout, matrix
from roadaware.scenes.disk import disk_error, sweep, sync_folder
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.source import leads_out, shown
from roadaware.scenes.schema import CORNERS

_PROTOCOL = 4
_EMPTY_COLUMNS = 200


def pickled(value: Any) -> bytes:
    """The value as a pickle that `scenes.pickles.load` and every Python from 3.4 on read."""
    return pickle.dumps(value, protocol=_PROTOCOL)


def frame_pickles(predictions: Predictions) -> Iterator[tuple[str, bytes]]:
    """Name and content of the file of each frame, in the order of videos and frames.

    Raises:
        InputError: if boxes have no scores, or only some frames have.
    """
    boxes, main = _main(predictions)
    frames, ego = _ego(predictions)
    places = (
        pl.concat([frames.select("video", "frame"), boxes.select("video", "frame")])
        .unique()
        .sort("video", "frame")
    )
    rows = boxes.with_row_index("row").group_by("video", "frame").agg("row")
    at = frames.with_row_index("ego").select("video", "frame", "ego")
    table = places.join(rows, on=["video", "frame"], how="left", maintain_order="left")
    table = table.join(at, on=["video", "frame"], how="left", maintain_order="left")
    if ego is not None and table["ego"].null_count():
        raise InputError(
            f"{table['ego'].null_count()} frames with boxes have no scores of their own, and others have",
            hint="give every frame a row of `frames` with scores, or none",
        )
    none = np.zeros(0, np.float32)
    for video, frame, held, scored in table.iter_rows():
        name = f"{video}/{frame + 1:05d}.pkl"
        if leads_out(name):
            raise InputError(f"the video '{shown(video)}' is no name for a folder")
        rows_of = main[held] if held is not None else np.zeros((0, _EMPTY_COLUMNS), np.float32)
        yield name, pickled({"ego": none if ego is None else ego[scored], "main": rows_of})


def write_folder(folder: Path, files: Iterator[tuple[str, bytes]]) -> None:
    """Write files into a folder that appears whole or not at all.

    Args:
        folder: must not exist, or be empty; its parent must be there.
        files: names with `/` between their parts, and contents.

    Raises:
        UsageError: if the folder holds anything.
        DiskError: if the disk refuses.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{shown(str(folder))} exists and is no empty folder; name one that does not")
    temporary = folder.parent / f".roadaware-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    written = 0
    try:
        temporary.mkdir()
        made: set[Path] = {temporary}
        for name, data in files:
            path = temporary / name
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            path.write_bytes(data)
            written += len(data)
        for inner in made:
            sync_folder(inner)
        temporary.replace(folder)
        sync_folder(folder.parent)
        sweep(folder.parent)
    except OSError as error:
        raise disk_error(folder, written, error) from error
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary)


def _main(predictions: Predictions) -> tuple[pl.DataFrame, npt.NDArray[Any]]:
    """The boxes in the order of videos and frames, and (n, 5 + classes) their numbers."""
    boxes = predictions.boxes
    if boxes.is_empty():
        return boxes.select(pl.col("video").cast(pl.String), "frame"), np.zeros((0, 5), np.float32)
    missing = [name for name in ("score", "scores") if name not in boxes.columns or boxes[name].null_count()]
    if missing:
        raise InputError(
            f"boxes without {' and '.join(missing)} cannot be written as files of detections",
            hint="every box needs agentness in `score` and its class scores in `scores`",
        )
    boxes = boxes.with_columns(pl.col("video").cast(pl.String)).sort("video", "frame", maintain_order=True)
    width = layout(predictions.meta, "boxes").width
    double = boxes.schema["score"] == pl.Float64 or _inner(boxes["scores"]) == pl.Float64
    kind = np.float64 if double else np.float32
    corners = boxes.select(*CORNERS, "score").to_numpy().astype(kind)
    return boxes.select("video", "frame"), np.hstack([corners, _numbers(boxes["scores"], width, kind)])


def _ego(predictions: Predictions) -> tuple[pl.DataFrame, npt.NDArray[Any] | None]:
    """The frames, and (n, k) their scores where they have any."""
    frames = predictions.frames.with_columns(pl.col("video").cast(pl.String))
    if "scores" not in frames.columns or frames.is_empty():
        return frames.select("video", "frame"), None
    kind = np.float64 if _inner(frames["scores"]) == pl.Float64 else np.float32
    width = layout(predictions.meta, "frames").width
    return frames.select("video", "frame"), _numbers(frames["scores"], width, kind)


def _numbers(scores: pl.Series, width: int, kind: Any) -> npt.NDArray[Any]:
    """A dense column as (n, width) numbers, in double precision where it has that."""
    if kind is np.float32 or _inner(scores) != pl.Float64:
        return matrix(scores, width).astype(kind)
    matrix(scores, width)  # checks that every row has its scores
    return scores.explode().to_numpy().reshape(len(scores), width)


def _inner(scores: pl.Series) -> Any:
    return scores.dtype.inner if isinstance(scores.dtype, pl.List | pl.Array) else scores.dtype
