"""Files of predictions as they stand, unchecked: what readers would refuse is read, corrected and written again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets.issues import Findings
from roadaware.errors import InputError
from roadaware.formats.coco import CocoIndex, read_json_document
from roadaware.formats.detection_folders import find_detection_folder, list_frame_files
from roadaware.formats.road_detections import encode_pickle, read_frame_arrays, write_folder
from roadaware.io.csv import decode, format_csv, iterate_line_batches, split_cells
from roadaware.io.files import write_atomically
from roadaware.io.sources import is_outside, read_file, to_printable

# The four numbers before class scores in a row of a detection file.
_CORNERS = 4
_CSV_CELLS, _MOT_CELLS = 8, 7
_SMALL_PX = 200
_MOST_BYTES, _LARGEST_ID = 1 << 31, 1 << 53


@dataclass(frozen=True, eq=False)
class RawPredictions:
    """Rows of predictions, in the order of the file.

    Args:
        video: (n,) text.
        frame: (n,) as the ground truth counts, if the file were written as it should be; floats where it holds
            parts of seconds.
        corners: (n, 4) x1, y1, x2, y2, if it were.
        scores: (n, k) every score of a row: one, or agentness and class scores. NaN where there is none.
        label: (n,) the number of the row's class; None where each row scores all classes.
        unit_px: (n, 2) pixels of the ground truth's images to one unit of x and of y.
        image_px: (n, 2) width and height of the row's image.
        write: writes the file anew with other arrays in place of these.
        moments: what `frame` counts in this form, in the plural.
        holds_sides: whether the form has width and height in place of the second corner.
        changes: of scores, frames and names so far, for what a file holds beside its boxes.
        tracks: (n,) the number of the row's track, -1 for none; None where the form has no tracks.
        first_pixel: the number of the first pixel in the file, which is taken off `corners`.
    """

    video: pl.Series
    frame: Ints
    corners: Floats
    scores: Floats
    label: Ints | None
    unit_px: Floats
    image_px: Floats
    write: Callable[[RawPredictions, Path], None] = field(repr=False)
    moments: str = "Frames"
    holds_sides: bool = False
    changes: tuple[tuple[str, Callable[[Any], Any]], ...] = ()
    tracks: Ints | None = None
    first_pixel: float = 0.0

    def with_changes(self, **changes: Any) -> RawPredictions:
        """The same rows with other arrays."""
        return replace(self, **changes)

    def rescale(self, change: Callable[[Floats], Floats]) -> RawPredictions:
        """The same rows with all scores changed, those of frames too."""
        return replace(self, scores=change(self.scores), changes=(*self.changes, ("scores", change)))

    def move(self, change: Callable[[Ints], Ints]) -> RawPredictions:
        """The same rows in other frames, and frames without a row with them."""
        return replace(self, frame=change(self.frame), changes=(*self.changes, ("frames", change)))

    def rename(self, names: Mapping[str, str]) -> RawPredictions:
        """The same rows in videos of other names."""
        change = partial(_rename, names=names)
        return replace(self, video=self.video.replace(names), changes=(*self.changes, ("names", change)))

    def change(self, what: str, value: Any) -> Any:
        """A value that stands beside the boxes, changed as they were: `scores`, `frames` or `names`."""
        for kind, function in self.changes:
            value = function(value) if kind == what else value
        return value


def _rename(name: str, names: Mapping[str, str]) -> str:
    return names.get(name, name)


def load_detection_folder(
    folder: Path, sizes: Mapping[str, tuple[float, float]], size_px: tuple[int, int]
) -> RawPredictions:
    """The rows of per-frame pickles as 3D-RetinaNet writes them.

    Args:
        folder: holds `<video>/<frame from 1, five digits>.pkl`.
        sizes: video to width and height of the ground truth's images; the mean of them stands for other videos.
        size_px: width and height of the images that corners are pixels of.

    Raises:
        DatasetNotFoundError: if there are no such files.
        InputError: if a file is damaged, or rows have different numbers of scores.
    """
    folder = find_detection_folder(Path(folder))
    listed = list_frame_files(folder, first_frame=0, findings=Findings())
    places, mains, egos = [], [], []
    for name, files in listed.items():
        for file in files:
            main, ego = read_frame_arrays(file)
            places.append((name, file.frame - 1))
            mains.append(main)
            egos.append(ego)
    widths = {main.shape[1] for main in mains if len(main)}
    if len(widths) != 1:
        found = "no box at all" if not widths else f"rows of {', '.join(map(str, sorted(widths)))} numbers"
        raise InputError(f"{found}; each row should have as many", where=to_printable(str(folder)))
    if min(widths) <= _CORNERS:
        message = f"rows of {min(widths)} numbers; expected four corners, agentness and class scores"
        raise InputError(message, where=to_printable(str(folder)))
    counts = np.array([len(main) for main in mains])
    rows = np.concatenate([main for main in mains if len(main)])
    at = np.repeat(np.arange(len(places)), counts)
    video = pl.Series([name for name, _ in places], dtype=pl.String).gather(at)
    frame = np.array([number for _, number in places], dtype=np.int64)

    ends = np.cumsum(counts)

    def write(changed: RawPredictions, target: Path) -> None:
        lines = np.hstack([changed.corners, changed.scores]).astype(rows.dtype)

        def encode_files() -> Iterator[tuple[str, bytes]]:
            written = set()
            for place, (name, number) in enumerate(places):
                moved = int(changed.change("frames", np.array([number]))[0])
                path = f"{changed.change('names', name)}/{moved + 1:05d}.pkl"
                if is_outside(path) or moved < 0:
                    continue
                if path in written:
                    raise InputError(f"two frames would be {path}", where=to_printable(str(folder)))
                written.add(path)
                begin = int(ends[place] - counts[place])
                main = lines[begin : int(ends[place])] if counts[place] else mains[place]
                ego = np.asarray(changed.change("scores", egos[place].astype(np.float64)), egos[place].dtype)
                yield path, encode_pickle({"ego": ego, "main": main})

        write_folder(target, encode_files())

    image_px = _collect_image_sizes(video.to_list(), sizes)
    unit_px = image_px / np.array(size_px, dtype=np.float64)
    numbers = rows.astype(np.float64)
    corners, scores = numbers[:, :_CORNERS], numbers[:, _CORNERS:]
    return RawPredictions(video, frame[at], corners, scores, None, unit_px, image_px, write)


def load_coco_results(
    path: Path, index: CocoIndex, sizes: Mapping[str, tuple[float, float]], *, agnostic: bool
) -> RawPredictions:
    """The rows of a list of COCO results; `frame` is the number of the image, `video` is empty.

    Args:
        path: the file.
        index: what ids stand for, and the sizes of images that boxes are in.
        sizes: video to width and height of the ground truth's images.
        agnostic: whether categories are left aside.

    Raises:
        InputError: if it is no list of results with a whole image_id (and category_id), a bbox of four numbers and a score.
    """
    listed, where = read_json_document(path), to_printable(str(path))
    if not isinstance(listed, list) or not listed:
        raise InputError("expected a list of COCO results", where=where)
    for number, row in enumerate(listed):
        if (reason := _refuse_result(row, agnostic=agnostic)) is not None:
            raise InputError(f"entry {number}: {reason}", where=where)
    boxes = np.array([row["bbox"] for row in listed], dtype=np.float64)
    scores = np.array([[row["score"]] for row in listed], dtype=np.float64)
    images = np.array([row["image_id"] for row in listed], dtype=np.int64)
    named = None if agnostic else np.array([row["category_id"] for row in listed], dtype=np.int64)

    def write(changed: RawPredictions, target: Path) -> None:
        x1, y1, x2, y2 = changed.corners.T
        sides = np.stack([x1, y1, x2 - x1, y2 - y1], axis=1).tolist()
        labels = changed.label.tolist() if changed.label is not None else [None] * len(listed)
        rows = [
            {**row, "image_id": image, "bbox": box, "score": score}
            | ({} if label is None else {"category_id": label})
            for row, image, box, score, label in zip(
                listed, changed.frame.tolist(), sides, changed.scores[:, 0].tolist(), labels, strict=True
            )
        ]
        write_atomically(target, json.dumps(rows, allow_nan=False).encode())

    corners = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
    video = pl.Series([""] * len(listed), dtype=pl.String)
    due = {image: index.sizes[name] for image, (name, _) in index.images.items() if index.sizes.get(name)}
    true = {image: sizes[name] for image, (name, _) in index.images.items() if name in sizes} or due
    image_px = _collect_image_sizes(images.tolist(), true)
    unit_px = image_px / _collect_image_sizes(images.tolist(), due) if due else np.ones_like(image_px)
    return RawPredictions(
        video, images, corners, scores, named, unit_px, image_px, write, "Image numbers", holds_sides=True
    )


def _refuse_result(row: Any, *, agnostic: bool) -> str | None:
    """Why an entry is no COCO result; None where it is one, whatever its numbers say."""
    if not isinstance(row, dict):
        return "expected an object with image_id, bbox and score"
    for key in ("image_id",) if agnostic else ("image_id", "category_id"):
        if type(row.get(key)) is not int or abs(row[key]) > _LARGEST_ID:
            return f"{key} should be a whole number"
    box = row.get("bbox")
    if not isinstance(box, list) or len(box) != _CORNERS or not all(type(n) in (int, float) for n in box):
        return "bbox should be four numbers"
    return None if type(row.get("score")) in (int, float) else "score should be a number"


def load_action_csv(path: Path, sizes: Mapping[str, tuple[float, float]], first_frame: int) -> RawPredictions:
    """The rows of AVA's csv of detections: video, timestamp, corners in shares of the image, action, score.

    Args:
        path: the file.
        sizes: video to width and height of the ground truth's images.
        first_frame: the number that files give to frame 0.

    Raises:
        InputError: if a row has other than numbers in these cells.
    """
    where = to_printable(str(path))
    text = decode(read_file(Path(path), where, _MOST_BYTES), where)
    pieces = [split_cells(lines, where, _CSV_CELLS) for lines in iterate_line_batches(text, where)]
    cells = pl.concat(pieces)
    numbers = cells.select(*(pl.col(f"c{k}").cast(pl.Float64, strict=False) for k in range(1, _CSV_CELLS)))
    whole = [pl.col(f"c{k}") == pl.col(f"c{k}").round() for k in (1, 6)]
    scored = numbers["c7"].is_finite() | (cells["c7"].is_null() | (cells["c7"] == ""))
    good = (
        numbers.select(
            pl.all_horizontal(*(pl.col(f"c{k}").is_finite() for k in range(1, _CSV_CELLS - 1)), *whole)
        )
        .to_series()
        .fill_null(value=False)
    )
    good &= scored.fill_null(value=False) & (cells["cells"] <= _CSV_CELLS)
    if not len(good) or not good.all():
        line = cells["line"][int((~good).arg_true()[0])] if len(good) else 1
        message = "a row should be video,timestamp,x1,y1,x2,y2,action,score with whole timestamps and actions"
        raise InputError(message, where=f"{where}:{line}", hint="Leave a header out.")
    values = numbers.to_numpy()
    video = cells["c0"].cast(pl.String)

    def write(changed: RawPredictions, target: Path) -> None:
        corners = dict(zip(("x1", "y1", "x2", "y2"), changed.corners.T, strict=True))
        table = pl.DataFrame(
            {
                "video": changed.video,
                "timestamp": pl.Series(changed.frame + first_frame).cast(pl.String).str.zfill(4),
                **corners,
                "action": changed.label,
                "score": pl.Series(changed.scores[:, 0]).fill_nan(None),
            }
        )
        write_atomically(target, format_csv(table, header=False).encode())

    times = np.round(values[:, 0]).astype(np.int64) - first_frame
    label = np.round(values[:, 5]).astype(np.int64)
    image_px = _collect_image_sizes(video.to_list(), sizes)
    return RawPredictions(video, times, values[:, 1:5], values[:, 6:7], label, image_px, image_px, write)


def load_track_texts(
    files: Mapping[str, Path], sizes: Mapping[str, tuple[float, float]], *, folder: bool
) -> RawPredictions:
    """The rows of a tracker's MOT text: frame, id, left, top, width, height, conf; what stands behind it is not kept.

    Args:
        files: video to its file.
        sizes: video to width and height of the ground truth's images.
        folder: whether they are written anew as a folder of `VIDEO.txt`, or as one file.

    Raises:
        InputError: if a row has other than numbers in these cells, or an id that is no whole number; or there is no row.
    """
    parts = []
    for video, path in files.items():
        where = to_printable(str(path))
        text = decode(read_file(Path(path), where, _MOST_BYTES), where)
        for lines in iterate_line_batches(text, where):
            cells = split_cells(lines, where, _MOT_CELLS)
            numbers = cells.select(pl.col(f"c{k}").cast(pl.Float64, strict=False) for k in range(_MOT_CELLS))
            whole = pl.col("c1") == pl.col("c1").round()
            good = pl.all_horizontal(pl.all().is_finite() & (pl.all().abs() < _LARGEST_ID), whole)
            wrong = ~numbers.select(good.fill_null(value=False)).to_series()
            if wrong.any():
                message = "a row should be frame,id,left,top,width,height,conf in numbers, with a whole id"
                raise InputError(message, where=f"{where}:{cells['line'][int(wrong.arg_true()[0])]}")
            parts.append(numbers.with_columns(video=pl.lit(video, pl.String)))
    if not parts:
        raise InputError("no row at all", where=to_printable(", ".join(map(str, list(files.values())[:3]))))
    table = pl.concat(parts)
    values = table.drop("video").to_numpy()
    seconds = bool((values[:, 0] != np.round(values[:, 0])).any())
    frame: Any = values[:, 0] - 1 if seconds else np.round(values[:, 0]).astype(np.int64) - 1
    image_px = _collect_image_sizes(table["video"].to_list(), sizes)
    # Numbers that would fill a corner of 100 x 100 pixels are shares or per cent, which count from 0.
    first = 1.0 if np.quantile(values[:, 2], 0.95) > 100 or image_px.min() <= _SMALL_PX else 0.0
    left, size = values[:, 2:4] - first, values[:, 4:6]

    def write(changed: RawPredictions, target: Path) -> None:
        x1, y1, x2, y2 = changed.corners.T
        columns = {"frame": changed.frame + 1, "id": changed.tracks, "left": x1 + 1, "top": y1 + 1}
        rows = pl.DataFrame(
            {
                **columns,
                "width": x2 - x1,
                "height": y2 - y1,
                "conf": changed.scores[:, 0],
                "video": changed.video,
            }
        )
        rows = rows.filter(pl.col("frame") >= 1).with_columns(x=pl.lit(-1), y=pl.lit(-1), z=pl.lit(-1))
        names = [str(changed.change("names", name)) for name in files]
        texts = {
            name: format_csv(rows.filter(pl.col("video") == name).drop("video"), header=False).encode()
            for name in names
        }
        if folder:
            write_folder(target, ((f"{name}.txt", text) for name, text in texts.items()))
        else:
            write_atomically(target, b"".join(texts.values()))

    return RawPredictions(
        table["video"], frame, np.hstack([left, left + size]), values[:, 6:7], None, np.ones_like(image_px), image_px,
        write, holds_sides=True, tracks=values[:, 1].astype(np.int64), first_pixel=first,
    )  # fmt: skip


def _collect_image_sizes(names: Sequence[Any], sizes: Mapping[Any, Any]) -> Floats:
    """(n, 2) width and height of each row's image; the mean over those that are known for one that is not."""
    mean = np.mean([tuple(size) for size in sizes.values()], axis=0) if sizes else np.ones(2)
    return np.array([sizes.get(name, mean) for name in names], dtype=np.float64).reshape(-1, 2)
