"""Folders of detections as the published detector of ROAD writes them, one pickle a frame: read and
written.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Numbers
from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, InputError, UsageError
from roadaware.formats.detection_folders import FrameFile, find_detection_folder, list_frame_files
from roadaware.formats.known_scenes import Known, refuse_findings
from roadaware.io.files import build_disk_error, flush_folder, read_regular, remove_stale_files
from roadaware.io.folders import replace_folder
from roadaware.io.pickles import load
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout, set_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

# What the columns and labels of published detection and tube files stand for.

# The shorter side is scaled to 512 and the longer cut to whole pixels: 1280 x 960 and 320 x 240 alike.
NETWORK_SIZE = (682, 512)
"""Width and height in pixels of what the published network sees of images of 4:3."""

AGENTNESS = "agentness"
"""The kind that says whether there is anything; its tubes are those without label."""

CLASS_KINDS = ("agent", "action", "location", "duplex", "event")
"""The kinds of class scores in the order of the columns."""

HOUSE_NAMES = {"agent_ness": AGENTNESS, "action_ness": AGENTNESS, "loc": "location", "triplet": "event"}
"""The files' names of kinds where ours differ."""

# Used labels of ROAD 1.0, and of UCF101-24, whose frames have one more: Non_action.
_KNOWN_COUNTS: tuple[dict[str, int], ...] = (
    {"agent": 10, "action": 19, "location": 12, "duplex": 39, "event": 68, "av_action": 7},
    {"action": 24, "av_action": 25},
)


@dataclass(frozen=True)
class Kinds:
    """The labels of class scores, of the vehicle's action and of agentness.

    Args:
        vocabularies: kind to its labels in the order of the columns.
        meta: what else is known of the set, for the predictions' own meta.
    """

    vocabularies: Mapping[str, tuple[str, ...]]
    meta: Meta = field(default_factory=Meta)

    @property
    def classes(self) -> list[str]:
        """The kinds of class scores, in the order of the columns."""
        return [kind for kind in CLASS_KINDS if kind in self.vocabularies]

    @property
    def width(self) -> int:
        """The number of class scores of a box."""
        return sum(len(self.vocabularies[kind]) for kind in self.classes)

    @property
    def av_width(self) -> int:
        """The number of scores of a frame; 0 where the vehicle's actions are not named."""
        return len(self.vocabularies.get("av_action", ()))

    def describe(self) -> str:
        """The kinds with their numbers of labels, for messages."""
        return ", ".join(f"{len(self.vocabularies[kind])} {kind}" for kind in self.classes)

    def predictions_meta(self, *, boxes: bool = False, frames: bool = False, **changes: Any) -> Meta:
        """The meta of predictions under these names.

        Args:
            boxes: whether the boxes have dense class scores.
            frames: whether the frames have dense scores.
            changes: further fields of `Meta`.
        """
        notes = {key: self.meta.notes[key] for key in ("native_kinds", "children") if key in self.meta.notes}
        changes["notes"] = {**notes, **changes.get("notes", {})}
        composites = {
            kind: parts for kind, parts in self.meta.composites.items() if kind in self.vocabularies
        }
        meta = Meta(
            dataset=self.meta.dataset,
            vocabularies=dict(self.vocabularies),
            composites=composites,
            **changes,
        )
        meta = set_score_layout(meta, "boxes", self.classes) if boxes else meta
        return set_score_layout(meta, "frames", ["av_action"]) if frames else meta


def get_label_kinds(scenes: Scenes | None, vocabularies: Mapping[str, Sequence[str]] | None) -> Kinds | None:
    """The names that were given: those of `vocabularies`, else those of the scenes; None if neither.

    Raises:
        InputError: if what was given has no kind of class scores.
    """
    if vocabularies is not None:
        named = {kind: tuple(labels) for kind, labels in vocabularies.items()}
        kinds = Kinds(named, Meta(dataset=scenes.meta.dataset if scenes is not None else ""))
    elif scenes is not None:
        kinds = Kinds(scenes.meta.vocabularies, scenes.meta)
    else:
        return None
    if not kinds.classes:
        raise InputError(
            f"no vocabulary of {', '.join(CLASS_KINDS)}; there are {', '.join(kinds.vocabularies) or 'none'}",
            hint="give the scenes of the dataset that was detected in, or `vocabularies`",
        )
    return kinds


def infer_label_kinds(width: int | None, av_width: int | None, where: str) -> Kinds:
    """The kinds of ROAD 1.0 or UCF101-24, their labels numbered, known by the numbers of scores.

    Args:
        width: class scores of a box, None where there is no box.
        av_width: scores of a frame, None where there are none.
        where: the folder, for messages.

    Raises:
        InputError: if neither fits.
    """
    for counts in _KNOWN_COUNTS:
        classes = sum(count for kind, count in counts.items() if kind != "av_action")
        if width == classes or (width is None and av_width == counts["av_action"]):
            named = {kind: tuple(f"{kind} {n}" for n in range(count)) for kind, count in counts.items()}
            return Kinds({AGENTNESS: (AGENTNESS,), **named})
    raise InputError(
        f"{width if width is not None else 'no'} class scores per box and "
        f"{av_width if av_width is not None else 'no'} scores per frame: neither those of ROAD 1.0 (148 "
        "and 7) nor of UCF101-24 (24 and 25)",
        where=where,
        hint="give the scenes of the dataset that was detected in, or `vocabularies` (kind to labels)",
    )


# From the arrays of detection files to the tables of predictions; what cannot be taken is refused by name.

_AGENTNESS = 4


@dataclass
class Read:
    """Rows read so far: video, number, boxes and scores of every frame."""

    video: list[str] = field(default_factory=list)
    frame: list[int] = field(default_factory=list)
    file: list[str] = field(default_factory=list)
    main: list[Numbers] = field(default_factory=list)
    ego: list[Numbers] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)

    def widths(self) -> tuple[int | None, int | None]:
        """The first number of class scores of a box, and of scores of a frame."""
        width = next((main.shape[1] - _AGENTNESS - 1 for main in self.main if len(main)), None)
        return width, next((len(ego) for ego in self.ego if len(ego)), None)


def drop_other_widths(read: Read, kinds: Kinds, findings: Findings) -> None:
    """Refuse the files whose boxes or frames have other numbers of scores than there are labels."""
    columns = _AGENTNESS + 1 + kinds.width
    kept = []
    for place, (main, ego) in enumerate(zip(read.main, read.ego, strict=True)):
        message = ""
        if len(main) and main.shape[1] != columns:
            message = (
                f"'main' has {main.shape[1]} columns; expected {columns}: four corners, agentness and "
                f"{kinds.width} class scores ({kinds.describe()})"
            )
        elif len(ego) and kinds.av_width and len(ego) != kinds.av_width:
            message = f"'ego' has {len(ego)} scores; expected {kinds.av_width}, one for each av_action"
        if message:
            hint = "give the scenes of the dataset that was detected in, or `vocabularies`"
            error = InputError(message, where=read.file[place], hint=hint)
            findings.reject("files", read.file[place], "", message, rows=0)
            read.errors.append(error)
        else:
            kept.append(place)
    if len(kept) < len(read.frame):
        for name in ("video", "frame", "file", "main", "ego"):
            held = getattr(read, name)
            setattr(read, name, [held[place] for place in kept])


def build_detection_tables(
    read: Read, kinds: Kinds, size: tuple[int, int], findings: Findings
) -> Predictions:
    """Build tables from the rows read."""
    boxes = _boxes(read, kinds, findings)
    frames, scored = _frames(read, kinds, findings)
    names = sorted(set(read.video))
    meta = kinds.predictions_meta(
        boxes=True, frames=scored, rows_read=dict(sorted(findings.read.items())), notes=findings.notes()
    )
    return Predictions(
        videos=pl.DataFrame(
            {"video": names, "width_px": [size[0]] * len(names), "height_px": [size[1]] * len(names)}
        ),
        frames=frames,
        boxes=boxes,
        rejected=findings.table(),
        meta=meta,
    )


def _boxes(read: Read, kinds: Kinds, findings: Findings) -> pl.DataFrame:
    """The table of boxes; bad rows are refused."""
    counts = np.array([len(main) for main in read.main], dtype=np.int64)
    columns = _AGENTNESS + 1 + kinds.width
    filled = [main for main in read.main if len(main)]
    rows = np.concatenate(filled) if filled else np.zeros((0, columns), np.float32)
    # Half precision becomes single; double stays, since narrowed scores would tie.
    rows = rows.astype(np.float32, copy=False) if rows.dtype.itemsize < 4 else rows
    # Frees the arrays of single frames before the columns are made of the joint one.
    read.main.clear()
    place = np.repeat(np.arange(len(counts)), counts)
    good = _sound_rows(rows, place, counts, read, findings)
    if not good.all():
        rows, place = rows[good], place[good]
    corners = rows[:, :_AGENTNESS].astype(np.float32)
    return pl.DataFrame(
        {
            "box": np.arange(len(rows)),
            "video": pl.Series(read.video, dtype=pl.String).gather(place),
            "frame": np.array(read.frame, dtype=np.int64)[place],
            **{name: np.ascontiguousarray(corners[:, at]) for at, name in enumerate(CORNERS)},
            "score": np.ascontiguousarray(rows[:, _AGENTNESS]),
            "scores": pl.Series(
                np.ascontiguousarray(rows[:, _AGENTNESS + 1 :]),
                dtype=pl.Array(pl.Float64 if rows.dtype == np.float64 else pl.Float32, kinds.width),
            ),
        }
    )


def _sound_rows(rows: Numbers, place: Numbers, counts: Numbers, read: Read, findings: Findings) -> Bools:
    """(n,) which rows can be taken; the others are refused with their reason."""
    findings.read["boxes"] += len(rows)
    if not len(rows):
        return np.ones(0, dtype=np.bool_)
    scores = rows[:, _AGENTNESS:]
    with np.errstate(invalid="ignore", over="ignore"):
        finite: Bools = np.asarray(np.isfinite(rows[:, :_AGENTNESS].astype(np.float32)).all(axis=1))
        upside = (rows[:, 0] > rows[:, 2]) | (rows[:, 1] > rows[:, 3])
        within: Bools = np.asarray((scores.min(axis=1) >= 0) & (scores.max(axis=1) <= 1))
    bad: Bools = ~finite | upside | ~within
    if bad.any():
        row = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.flatnonzero(bad)
        reason = np.where(
            ~finite[at],
            "a corner that is not a finite number",
            np.where(
                upside[at], "a box upside down: x1 > x2 or y1 > y2", "a score that is no number in [0, 1]"
            ),
        )
        refused = {
            "file": [read.file[n] for n in place[at]],
            "line": [None] * len(at),
            "item": [f"frame {read.frame[place[n]]}, row {row[n]} of 'main'" for n in at],
            "reason": reason.tolist(),
        }
        findings.reject_rows("boxes", pl.DataFrame(refused))
    good: Bools = ~bad
    return good


def _frames(read: Read, kinds: Kinds, findings: Findings) -> tuple[pl.DataFrame, bool]:
    """The table of frames, and whether it has scores; a frame without sound scores is refused."""
    findings.read["frames"] += len(read.frame)
    table = pl.DataFrame(
        {"video": pl.Series(read.video, dtype=pl.String), "frame": pl.Series(read.frame, dtype=pl.Int64)}
    )
    if not kinds.av_width or not any(len(ego) for ego in read.ego):
        return table, False
    good = np.ones(len(read.frame), dtype=np.bool_)
    for place, ego in enumerate(read.ego):
        if len(ego) == 0 or not (ego.min() >= 0 and ego.max() <= 1):
            good[place] = False
            reason = "a score of 'ego' that is no number in [0, 1]" if len(ego) else "no scores in 'ego'"
            item = f"frame {read.frame[place]}"
            findings.reject("frames", read.file[place], item, reason, rows=0)
    held = [ego for ego, taken in zip(read.ego, good, strict=True) if taken]
    scores = np.stack(held) if held else np.zeros((0, kinds.av_width), np.float32)
    double = scores.dtype == np.float64
    column = pl.Series("scores", scores, dtype=pl.Array(pl.Float64 if double else pl.Float32, kinds.av_width))
    return table.filter(good).with_columns(column), True


# Predictions written as the pickles that the published code of ROAD reads.

_PROTOCOL = 4
_EMPTY_COLUMNS = 200


def encode_pickle(value: Any) -> bytes:
    """The value as a pickle that `io.pickles.load` and every Python from 3.4 on read."""
    return pickle.dumps(value, protocol=_PROTOCOL)


def encode_frame_pickles(predictions: Predictions) -> Iterator[tuple[str, bytes]]:
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
        if is_outside(name):
            raise InputError(f"the video '{to_printable(video)}' is no name for a folder")
        rows_of = main[held] if held is not None else np.zeros((0, _EMPTY_COLUMNS), np.float32)
        yield name, encode_pickle({"ego": none if ego is None else ego[scored], "main": rows_of})


def write_folder(
    folder: Path,
    files: Iterator[tuple[str, bytes]],
    *,
    finish: Callable[[Path], None] | None = None,
    replace: bool = False,
) -> None:
    """Write files into a folder that appears whole or not at all.

    Args:
        folder: must not exist, or be empty, unless `replace`; its parent must be there.
        files: names with `/` between their parts, and contents.
        finish: puts what else belongs into the folder, before it appears; called with where it is until then.
        replace: take the place of whatever folder stands there, which the caller has looked at.

    Raises:
        UsageError: if the folder holds anything.
        DiskError: if the disk refuses; what stood there still stands.
    """
    if folder.is_symlink() or (
        folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not replace))
    ):
        raise UsageError(f"{to_printable(str(folder))} exists and is no empty folder; name one that does not")
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
        if finish is not None:
            finish(temporary)
        for inner in made:
            flush_folder(inner)
        replace_folder(temporary, folder)
        remove_stale_files(folder.parent)
    except OSError as error:
        raise build_disk_error(folder, written, error) from error
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
    width = get_score_layout(predictions.meta, "boxes").width
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
    width = get_score_layout(predictions.meta, "frames").width
    return frames.select("video", "frame"), _numbers(frames["scores"], width, kind)


def _numbers(scores: pl.Series, width: int, kind: Any) -> npt.NDArray[Any]:
    """A dense column as (n, width) numbers, in double precision where it has that."""
    if kind is np.float32 or _inner(scores) != pl.Float64:
        return convert_to_matrix(scores, width).astype(kind)
    convert_to_matrix(scores, width)  # checks that every row has its scores
    return scores.explode().to_numpy().reshape(len(scores), width)


def _inner(scores: pl.Series) -> Any:
    return scores.dtype.inner if isinstance(scores.dtype, pl.List | pl.Array) else scores.dtype


Progress = Callable[[int, int, str], None]
_LIMIT = 1 << 26
_TOLD_EVERY = 500


def read_detections(
    folder: Path,
    scenes: Scenes | None = None,
    *,
    size: tuple[int, int] = NETWORK_SIZE,
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    videos: Iterable[str] | None = None,
    first_frame: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
) -> Predictions:
    """Detections of a folder as Predictions: every box with agentness and class scores, every frame with its.

    A file is `<video>/<frame, five digits>.pkl` and holds `{"ego": (k,), "main": (n, 5 + classes)}`: the
    scores of the vehicle's action; corners in pixels, agentness and class scores. Boxes come in the order of
    videos, frames and rows of the files. What cannot be taken is in `rejected` with the reason: files that
    are damaged, of another width, or of an unknown video or frame; boxes upside down or with a number that
    is not finite or a score outside [0, 1]. Files are read by `pickles.load`, which runs nothing.

    Args:
        folder: holds a folder for each video, or one folder called `detections-...` that does.
        scenes: what was detected in: gives names to scores, and the videos and frames that there are.
        size: width and height of the images that the corners are pixels of.
        vocabularies: kind to labels, in place of those of the scenes. Without either, 148 class scores are
            those of ROAD 1.0 and 24 those of UCF101-24, their labels numbered.
        videos: only these (default: all).
        first_frame: number of the first frame of a video in the files' names.
        strict: anything rejected is an error.
        progress: called with the number of files done and the total.

    Raises:
        DatasetNotFoundError: if there are no files of detections.
        InputError: if none can be taken, or the scores' names are not known.
        FindingsError: under `strict`, if anything was rejected.

    Source: the `detections-*` folders that 3D-RetinaNet writes when it is tested.
    """
    folder = find_detection_folder(Path(folder))
    findings = Findings()
    listed = list_frame_files(folder, first_frame=first_frame, findings=findings)
    if videos is not None:
        wanted = set(videos)
        listed = {video: files for video, files in listed.items() if video in wanted}
    if not listed:
        # Why there is not one file to read
        refused = findings.table().head(3).select("file", "reason").rows()
        text = "".join(f"\n  {file}: {reason}" for file, reason in refused)
        raise DatasetNotFoundError(
            f"no detections in {to_printable(str(folder))}: expected <video>/<frame, five digits>.pkl{text}"
        )
    known = Known(scenes)
    read = _read_all(known.sift(listed, findings), findings, progress)
    if read.frame:
        kinds = get_label_kinds(scenes, vocabularies) or infer_label_kinds(
            *read.widths(), where=to_printable(str(folder))
        )
        drop_other_widths(read, kinds, findings)
    if not read.frame:
        raise _none_taken(read, findings)
    predictions = build_detection_tables(read, kinds, size, findings)
    if strict:
        refuse_findings(to_printable(str(folder)), predictions)
    return predictions


def write_detections(predictions: Predictions, folder: Path) -> None:
    """Detections as a folder of pickles that `read_detections` and the published code read; the inverse.

    What the format has no place for is left out: tubes, sizes of images, and whether a box was interpolated.
    Every frame of `frames` and of `boxes` gets a file. The folder appears whole or not at all.

    Args:
        predictions: boxes with `score` and dense `scores`; frames with dense `scores` where there are any.
        folder: where to; must not exist, or be empty.

    Raises:
        UsageError: if the folder exists and holds anything.
        InputError: if there are no scores, or the frames have none while others have.
        DiskError: if the disk refuses; nothing stands there then.
    """
    write_folder(Path(folder), encode_frame_pickles(predictions))


def _read_all(
    listed: Mapping[str, Sequence[FrameFile]], findings: Findings, progress: Progress | None
) -> Read:
    """Every file's arrays; damaged files are refused."""
    read = Read()
    total, done = sum(map(len, listed.values())), 0
    for video, files in listed.items():
        for file in files:
            try:
                main, ego = read_frame_arrays(file)
            except InputError as error:
                findings.reject_file(file.name, error)
                read.errors.append(error)
            else:
                read.video.append(video)
                read.frame.append(file.frame)
                read.file.append(file.name)
                read.main.append(main)
                read.ego.append(ego)
            done += 1
            if progress is not None and (done % _TOLD_EVERY == 0 or done == total):
                progress(done, total, "files")
    findings.read["files"] += len(read.frame)
    return read


def read_frame_arrays(file: FrameFile) -> tuple[Numbers, Numbers]:
    """(n, 5 + classes) boxes with scores and (k,) scores of the frame.

    Raises:
        InputError: if the file is not what it should be.
    """
    try:
        held = load(read_regular(Path(file.path), limit=_LIMIT), to_printable(file.path))
    except FileNotFoundError as error:
        raise InputError("the file has gone", where=to_printable(file.path)) from error
    if type(held) is not dict or "main" not in held:
        what = (
            f"a dict of {', '.join(map(repr, list(held)[:5]))}" if type(held) is dict else type(held).__name__
        )
        raise InputError(
            f"expected a dict with 'main' and 'ego', found {to_printable(what)}",
            where=to_printable(file.path),
        )
    main, ego = held["main"], held.get("ego", np.zeros(0, np.float32))
    for name, array, dimensions in (("main", main, 2), ("ego", ego, 1)):
        if type(array) is not np.ndarray or array.ndim != dimensions or array.dtype.kind != "f":
            found = f"{array.dtype} {array.shape}" if type(array) is np.ndarray else type(array).__name__
            message = f"'{name}' should be a {dimensions}-dimensional array of floats, not {found}"
            raise InputError(message, where=to_printable(file.path))
    return main, ego


def _none_taken(read: Read, findings: Findings) -> InputError:
    """Why not one file could be taken: the first reason."""
    if read.errors:
        first = read.errors[0]
        count = len(read.errors)
        message = (
            first.message if count == 1 else f"none of {count} files can be read; the first: {first.message}"
        )
        return InputError(message, where=first.where, hint=first.hint)
    reason = findings.table().row(0, named=True)
    hint = "give the scenes that were detected in, or none"
    return InputError(f"no file can be taken; the first: {reason['reason']}", where=reason["file"], hint=hint)
