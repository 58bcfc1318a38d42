"""Pre-labels: class probabilities of proposals by CLIP, as columns of their tables."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, RoadawareError, UsageError
from roadaware.io.files import build_disk_error, read_regular, write_atomically
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import digest
from roadaware.models.crops import CropRule, crop
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions
from roadaware.tasks.prediction_runs import open_run_folder
from roadaware.tasks.videos import Film, VideoSet, iterate_shots

if TYPE_CHECKING:
    from roadaware.models.open_vocabulary import CropNamer

FORMAT, RECORD, PARTS = "roadaware-prelabels", "prelabels.json", "parts"
PREDICTIONS = "predictions"
"""The folder beside the parts in which everything is saved."""
KIND = "corner"
"""The kind of label of corner cases, as their evaluation knows it."""
SCHEMA: Mapping[str, pl.DataType] = {
    "box": pl.Int64(),
    "prelabel": pl.String(),
    "prelabel_score": pl.Float32(),
    "prelabels": pl.List(pl.String()),
    "prelabel_scores": pl.List(pl.Float32()),
}
"""Columns of `build_prelabels`: the best label and its score, and the best few of both, from the best."""
_TOGETHER = 256
_LIMIT = 1 << 28


def build_prelabels(
    box: Sequence[int], scores: npt.NDArray[np.floating], labels: Sequence[str], top: int
) -> pl.DataFrame:
    """Pre-labels of boxes.

    Args:
        box: (n,) their numbers.
        scores: (n, t) of all labels.
        labels: t of them.
        top: how many are kept.

    >>> build_prelabels([7], np.array([[0.25, 0.75]]), ["tyre", "dog"], 1)["prelabel"].to_list()
    ['dog']
    """
    # Stable: of equal scores the label that is named first, in every run.
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    names, values = np.array(labels, dtype=object)[best], np.take_along_axis(scores, best, axis=1)
    rows = {
        "box": list(box),
        "prelabel": [row[0] for row in names],
        "prelabel_score": [float(row[0]) for row in values],
        "prelabels": [list(row) for row in names],
        "prelabel_scores": [[float(value) for value in row] for row in values],
    }
    return pl.DataFrame(rows, schema=pl.Schema(SCHEMA))


def add_prelabels(
    predictions: Predictions, rows: pl.DataFrame, labels: Sequence[str], note: Any
) -> Predictions:
    """Predictions with the columns of `build_prelabels`; null where there are none.

    Boxes without labels of the kind `corner` get the pre-label as such, so that they can be judged by class.

    Args:
        predictions: proposals.
        rows: as of `build_prelabels`, of some of the boxes.
        labels: the vocabulary.
        note: JSON-ready; how it was done, for `meta.notes`.
    """
    kept = predictions.boxes.drop(
        *(name for name in SCHEMA if name != "box" and name in predictions.boxes.columns)
    )
    boxes = kept.join(rows, on="box", how="left", maintain_order="left")
    meta = replace(predictions.meta, notes={**predictions.meta.notes, "prelabels": note})
    tables: dict[str, Any] = {"boxes": boxes}
    if KIND not in meta.vocabularies:
        meta = replace(meta, vocabularies={**meta.vocabularies, KIND: tuple(labels)})
        place = {label: n for n, label in enumerate(labels)}
        found = boxes.filter(pl.col("prelabel").is_not_null()).select(
            "box",
            kind=pl.lit(KIND),
            label=pl.col("prelabel").replace_strict(place, return_dtype=pl.Int64),
        )
        if len(found):
            tables["labels"] = pl.concat(
                [predictions.labels.with_columns(pl.col("kind").cast(pl.String)), found],
                how="diagonal_relaxed",
            )
    return predictions.with_tables(meta=meta, **tables)


class PrelabelRun:
    """The folder of a run: `prelabels.json`, `parts/` with the boxes of some images each, `predictions/`.

    A part is written whole, with its digest; parts that stand are left as they are. `named` counts the boxes of
    those that are done.

    Args:
        folder: new, empty, or of the same run.
        settings: JSON-ready; what the pre-labels depend on.
        predictions: proposals.
        overwrite: begin anew where another run is.

    Raises:
        UsageError: if there are no boxes, or the folder holds other things or a run with other settings.
        DiskError: if it cannot be written to.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], predictions: Predictions, *, overwrite: bool = False
    ) -> None:
        if predictions.boxes.is_empty():
            raise UsageError("there are no proposals to name")
        self.folder, self.predictions = folder, predictions
        self._hold, goes_on = open_run_folder(folder, RECORD, FORMAT, settings, overwrite=overwrite)
        try:
            if not goes_on:
                shutil.rmtree(folder / PARTS, ignore_errors=True)
            (folder / PARTS).mkdir(exist_ok=True)
        except OSError as error:
            raise build_disk_error(folder, 0, error) from error
        boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String))
        self.parts = list(_parts(boxes.select("box", "video", "frame", *CORNERS)))
        self.named = 0

    def due(self) -> list[int]:
        """Numbers of the parts that are still to be done, or had images that could not be read."""
        records = {number: self._read_part(number) for number in range(len(self.parts))}
        return [number for number, found in records.items() if found is None or found[0].get("gone")]

    def name(
        self,
        namer: CropNamer,
        films: Mapping[str, Film],
        labels: Sequence[str],
        *,
        rule: CropRule,
        top: int,
        progress: Callable[[int, int, str], None] = lambda done, total, unit: None,
    ) -> None:
        """Do the parts that are still to be done.

        Args:
            namer: that looks.
            films: of the videos that are there, by name.
            labels: the vocabulary of the namer.
            rule: how boxes are cut out.
            top: labels that are kept of each box.
            progress: called with the boxes done and the total.

        Raises:
            DiskError: if the disk refuses.
        """
        due = self.due()
        self.named = sum(len(part) for number, part in enumerate(self.parts) if number not in due)
        for number in due:
            boxes, crops, gone = _cut_crops(self.parts[number], films, rule)
            self.keep(number, build_prelabels(boxes, namer.scores(crops), labels, top), gone)
            self.named += len(self.parts[number])
            progress(self.named, len(self.predictions.boxes), "boxes")

    def keep(self, number: int, rows: pl.DataFrame, gone: Mapping[str, int]) -> None:
        """Write a part.

        Args:
            number: of the part.
            rows: as of `build_prelabels`, of those of its boxes that could be processed.
            gone: why others could not, to how many.

        Raises:
            DiskError: if the disk refuses.
        """
        data = io.BytesIO()
        rows.write_parquet(data, compression="zstd")
        path = self.folder / PARTS / f"{number:06d}.parquet"
        write_atomically(path, data.getvalue())
        record = {"boxes": len(rows), "gone": dict(gone), "blake2b": digest(data.getvalue())}
        write_atomically(path.with_suffix(".json"), (json.dumps(record) + "\n").encode())

    def finish(self, labels: Sequence[str], note: Any) -> tuple[Predictions, dict[str, int]]:
        """The proposals with the pre-labels of all parts, and the number of boxes without, by reason.

        Args:
            labels: the vocabulary.
            note: as of `add_prelabels`.

        Raises:
            InputError: if no box could be processed.
        """
        rows, gone = [], dict[str, int]()
        for number in range(len(self.parts)):
            record, found = self._read_part(number) or ({}, pl.DataFrame(schema=pl.Schema(SCHEMA)))
            rows.append(found)
            for reason, count in record.get("gone", {}).items():
                gone[reason] = gone.get(reason, 0) + count
        whole = pl.concat(rows)
        if whole.is_empty():
            reason = next(iter(gone), "no part is done")
            raise InputError(
                f"none of {len(self.predictions.boxes)} proposals could be looked at; the first: {reason}"
            )
        return add_prelabels(self.predictions, whole, labels, note), gone

    def _read_part(self, number: int) -> tuple[dict[str, Any], pl.DataFrame] | None:
        """What a part that is done says; None of one that is not, or is damaged."""
        path = self.folder / PARTS / f"{number:06d}.json"
        try:
            record = json.loads(read_regular(path, limit=_LIMIT))
            data = read_regular(path.with_suffix(".parquet"), limit=_LIMIT)
            if digest(data) != record["blake2b"]:
                return None
            return record, read_parquet(data)
        except (RoadawareError, OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


def select_films(predictions: Predictions, videos: VideoSet) -> dict[str, Film]:
    """Video to its images.

    Raises:
        InputError: if none of the proposals' videos is there.
    """
    wanted = predictions.boxes["video"].cast(pl.String).unique(maintain_order=True).to_list()
    found = {film.video: film for film in videos.films}
    if wanted and not found.keys() & set(wanted):
        raise InputError(
            f"the proposals are about {len(wanted)} videos ({', '.join(wanted[:3])}, ...), none of which is "
            f"among the {len(videos.order)} that are given ({', '.join(videos.order[:3])}, ...)",
            hint="name the dataset that the proposals were made for",
        )
    return found


def _cut_crops(
    part: pl.DataFrame, films: Mapping[str, Film], rule: CropRule
) -> tuple[list[int], list[Any], dict[str, int]]:
    """Numbers of boxes with what they show, and how many others cannot be looked at, by reason."""
    boxes: list[int] = []
    crops: list[Any] = []
    gone: dict[str, int] = {}
    for video, rows in ((str(key[0]), rows) for key, rows in part.group_by("video", maintain_order=True)):
        if video not in films:
            reason = "its video is not among those that are given, or cannot be opened"
            gone[reason] = gone.get(reason, 0) + len(rows)
            continue
        held = {int(str(k[0])): each for k, each in rows.group_by("frame", maintain_order=True)}
        for shot in iterate_shots(films[video], held):
            some = held[shot.frame]
            if shot.picture is None:
                gone[shot.fault] = gone.get(shot.fault, 0) + len(some)
                continue
            boxes += some["box"].to_list()
            crops += [crop(shot.picture, box, rule) for box in some.select(CORNERS).to_numpy()]
    return boxes, crops, gone


def _parts(boxes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Boxes image by image, about as many in each part; an image is in one part."""
    order = boxes.sort("video", "frame", maintain_order=True)
    image = order.select(pl.struct("video", "frame").rle_id()).to_series().to_numpy().astype(np.int64)
    starts = [*np.flatnonzero(np.diff(image, prepend=-1)).tolist(), len(order)]
    first = 0
    for start in starts[1:]:
        if start - first >= _TOGETHER or start == len(order):
            yield order[first:start]
            first = start
