"""Tube files of the published code of ROAD and its challenges: one pickle of all tubes, in and out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Numbers
from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.formats.known_scenes import Known, refuse_findings
from roadaware.formats.road_detections import (
    AGENTNESS,
    CLASS_KINDS,
    HOUSE_NAMES,
    NETWORK_SIZE,
    Kinds,
    encode_pickle,
    get_label_kinds,
)
from roadaware.io.files import read_regular, write_atomically
from roadaware.io.pickles import load
from roadaware.io.sources import to_printable
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

# From the tables of predicted tubes to the lists of dicts of a published tube file.

Lists = dict[str, dict[str, list[dict[str, Any]]]]
_OPTIONAL = {
    "start_frame": pl.Int64(),
    "end_frame": pl.Int64(),
    "parent": pl.Int64(),
    "kind": pl.String(),
    "spans": pl.List(pl.List(pl.Int64)),
    "consecutive": pl.Boolean(),
    "score": pl.Float64(),
}


def build_tube_lists(predictions: Predictions, *, native: bool, agentness: bool, first_frame: int) -> Lists:
    """Kind to video to tubes, each a dict with label_id, scores, boxes, score and frames.

    Args:
        predictions: tubes with labels, and boxes.
        native: name kinds as the dataset does, where `meta` has them.
        agentness: also take the tubes without label and parent.
        first_frame: number of the first frame of a video.

    Raises:
        InputError: if there is nothing to write, or a tube has no boxes or no score.
    """
    rows = _rows(predictions, agentness=agentness)
    if rows.is_empty():
        raise InputError(
            "there are no tubes with a label to write", hint="link and label the detections first"
        )
    held = _Boxes(predictions)
    names = predictions.meta.notes.get("native_kinds", {}) if native else {}
    videos = predictions.videos["video"].cast(pl.String).to_list()
    videos = list(dict.fromkeys([*videos, *rows["video"]]))
    lists: Lists = {
        names.get(kind, kind): {video: [] for video in videos} for kind in dict.fromkeys(rows["kind"])
    }
    for row in rows.iter_rows(named=True):
        lists[names.get(row["kind"], row["kind"])][row["video"]].append(held.tube(row, first_frame))
    return lists


def _rows(predictions: Predictions, *, agentness: bool) -> pl.DataFrame:
    """One row for each label of a tube: tube, video, its extent, kind, label and score."""
    tubes = predictions.tubes.with_columns(pl.col("video").cast(pl.String))
    missing = [pl.lit(None, dtype=d).alias(c) for c, d in _OPTIONAL.items() if c not in tubes.columns]
    tubes = tubes.with_columns(missing).with_columns(pl.col("kind").cast(pl.String))
    tubes = tubes.select("tube", "video", *_OPTIONAL).with_row_index("order")
    labels = predictions.tube_labels.with_columns(pl.col("kind").cast(pl.String))
    score = pl.col("score") if "score" in labels.columns else pl.lit(None, dtype=pl.Float64)
    labels = labels.select("tube", pl.col("kind").alias("of"), "label", score.alias("label_score"))
    if agentness:
        paths = tubes.filter(pl.col("parent").is_null() & pl.col("kind").is_null())
        own = pl.lit(None, dtype=labels.schema["label_score"]).alias("label_score")
        zero = pl.lit(0, dtype=pl.Int64).alias("label")
        labels = pl.concat([labels, paths.select("tube", pl.lit(AGENTNESS).alias("of"), zero, own)])
    rows = tubes.drop("kind").join(labels, on="tube", maintain_order="left")
    return rows.sort("order", maintain_order=True).select(
        "tube",
        "video",
        pl.col("of").alias("kind"),
        "label",
        "start_frame",
        "end_frame",
        "parent",
        "spans",
        "consecutive",
        score=pl.coalesce("label_score", "score"),
    )


class _Boxes:
    """The boxes of all tubes, by tube and frame.

    Args:
        predictions: with boxes that name their tubes.
    """

    def __init__(self, predictions: Predictions) -> None:
        boxes = predictions.boxes
        if "tube" not in boxes.columns:
            raise InputError("the boxes name no tubes", hint="link the detections first")
        boxes = boxes.filter(pl.col("tube").is_not_null()).sort("tube", "frame", maintain_order=True)
        self.frames = boxes["frame"].to_numpy()
        self.corners = boxes.select(*CORNERS).to_numpy().astype(np.float32)
        score = (
            boxes["score"] if "score" in boxes.columns else pl.Series([None] * len(boxes), dtype=pl.Float32)
        )
        self.score = score.fill_null(float("nan")).to_numpy()
        # Layout of the dense scores, and (n, classes) scores, where every box has them
        found = get_score_layout(predictions.meta, "boxes")
        if not found.width or "scores" not in boxes.columns or boxes["scores"].null_count():
            self.layout, self.scores = (found, None)
        else:
            self.layout, self.scores = (found, convert_to_matrix(boxes["scores"], found.width))
        owners, first = np.unique(boxes["tube"].to_numpy(), return_index=True)
        ends = np.append(first[1:], len(boxes))
        self.place = dict(zip(owners.tolist(), zip(first.tolist(), ends.tolist(), strict=True), strict=True))

    def tube(self, row: dict[str, Any], first_frame: int) -> dict[str, Any]:
        """One tube in the form of the file."""
        start, end = self.place.get(row["tube"] if row["parent"] is None else row["parent"], (0, 0))
        at = np.arange(start, end)[_mask_tube_frames(self.frames[start:end], row)]
        if not len(at) or row["score"] is None:
            lacks = "score" if len(at) else "boxes"
            raise InputError(f"tube {row['tube']} of {row['video']} has no {lacks} and cannot be written")
        frames = self.frames[at]
        if row["consecutive"]:
            frames = np.arange(len(at)) + (frames[0] if row["start_frame"] is None else row["start_frame"])
        return {
            "label_id": int(row["label"]),
            "scores": self._scores(at, row),
            "boxes": self.corners[at],
            "score": float(row["score"]),
            "frames": frames.astype(np.int64) + first_frame,
        }

    def _scores(self, at: Numbers, row: dict[str, Any]) -> Numbers:
        """The scores of a tube's frames: of its label, else agentness, else its own."""
        if self.scores is not None and row["kind"] in self.layout.kinds:
            column = self.layout.columns(row["kind"]).start + int(row["label"])
            return np.ascontiguousarray(self.scores[at, column])
        scores = self.score[at]
        return np.where(np.isnan(scores), row["score"], scores).astype(scores.dtype)


def _mask_tube_frames(frames: Numbers, row: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """(n,) which boxes of the owner belong to the tube."""
    spans = row["spans"]
    if spans is None and row["parent"] is not None and not row["consecutive"]:
        # A derived tube without spans covers its whole interval of the parent's boxes.
        spans = [[row["start_frame"] or 0, np.inf if row["end_frame"] is None else row["end_frame"]]]
    if spans is None:
        return np.ones(len(frames), dtype=np.bool_)
    covered = np.zeros(len(frames), dtype=np.bool_)
    for low, high in spans:
        covered |= (frames >= low) & (frames < high)
    return covered


Progress = Callable[[int, int, str], None]
_LIMIT = 1 << 31
_MOST_LABELS, _MOST_FRAMES = 1 << 16, 1 << 31
_HINT = "give the scenes that were detected in, and the number of the first frame in the file"
_TAKEN = (AGENTNESS, *CLASS_KINDS)


@dataclass
class _Read:
    """Rows read so far: columns of tubes, and the arrays of their boxes."""

    video: list[str] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    item: list[str] = field(default_factory=list)
    frames: list[Numbers] = field(default_factory=list)
    boxes: list[Numbers] = field(default_factory=list)
    scores: list[Numbers] = field(default_factory=list)
    videos: dict[str, None] = field(default_factory=dict)

    def renumbered(self, kept: npt.NDArray[np.bool_], file: str, findings: Findings) -> Numbers:
        """Refuse the tubes that have no box left; the new number of each.

        Args:
            kept: (tubes,) which have boxes.
            file: the file's name, for messages.
            findings: takes what is refused.
        """
        for place in np.flatnonzero(~kept):
            findings.reject("tubes", file, self.item[place], "not one box that can be taken", rows=0)
        for name in ("video", "kind", "label", "score", "item", "frames"):
            column = getattr(self, name)
            setattr(self, name, [value for value, stays in zip(column, kept, strict=True) if stays])
        numbers: Numbers = np.cumsum(kept) - 1
        return numbers


@dataclass(frozen=True)
class _Asked:
    """What tubes are judged by.

    Args:
        kinds: the names of labels, None where labels are numbered.
        known: the videos and their lengths.
        first_frame: number of the first frame of a video in the file.
    """

    kinds: Kinds | None
    known: Known
    first_frame: int


class _TubeError(Exception):
    """Why a tube is refused."""


def read_tubes(
    path: Path,
    scenes: Scenes | None = None,
    *,
    size: tuple[int, int] = NETWORK_SIZE,
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    first_frame: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
) -> Predictions:
    """Labelled tubes of a file as Predictions: each owns its boxes, has a kind, one label and a score.

    The file is a pickle `{kind: {video: [{"label_id", "scores": (n,), "boxes": (n, 4), "score", "frames":
    (n,)}]}}` with the published names of kinds (`loc`, `triplet`) or ours; arrays may be lists. Tubes come in
    the order of the file. What cannot be taken is in `rejected` with the reason: tubes of an unknown kind,
    video or label, with a frame twice or outside the video, or with a score that is no number in [0, 1];
    and single boxes that are upside down, not finite or without a score in [0, 1]: their tube goes on
    without them. A tube of agentness is one without kind and label, as an unlabelled path is.

    Args:
        path: the file.
        scenes: what was detected in: gives names to labels, and the videos and frames that there are.
        size: width and height of the images that the corners are pixels of.
        vocabularies: kind to labels, in place of those of the scenes; without either labels are numbered.
        first_frame: number of the first frame of a video in the file: 1 as the published code counts, which
            takes the numbers of its detection files; 0 for files that count from 0.
        strict: anything rejected is an error.
        progress: called with the number of tubes done and the total.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged, holds anything but tubes, or none can be taken.
        FindingsError: under `strict`, if anything was rejected.

    Source: what 3D-RetinaNet writes after it has built tubes, and the ROAD challenges score.
    """
    path = Path(path)
    held = _held(path)
    named = get_label_kinds(scenes, vocabularies)
    findings, known = Findings(), Known(scenes)
    total = sum(len(tubes) for videos in held.values() for tubes in videos.values())
    progress_of_tubes = None if progress is None else lambda done: progress(done, total, "tubes")
    # Every tube that can be taken; the others are refused
    asked = _Asked(named, known, first_frame)
    read, done = _Read(), 0
    lost: list[dict[str, Any]] = []
    native = asked.kinds.meta.notes.get("native_kinds", {}) if asked.kinds is not None else {}
    house = {**HOUSE_NAMES, **{theirs: ours for ours, theirs in native.items()}}
    for native, videos in held.items():
        for video, tubes in videos.items():
            read.videos.setdefault(video)
            for place, tube in enumerate(tubes):
                item = f"{native}, {video}, tube {place}"
                try:
                    _take(read, tube, house.get(native, native), video, item, asked)
                except _TubeError as error:
                    lost.append({"file": path.name, "line": None, "item": item, "reason": str(error)})
            done += len(tubes)
            if progress_of_tubes is not None and tubes:
                progress_of_tubes(done)
    findings.read["tubes"] += len(lost)
    if lost:
        findings.reject_rows("tubes", pl.DataFrame(lost))
    predictions = _tables(read, named or _build_numeric_kinds(read), size, known, path.name, findings)
    if total and predictions.tubes.is_empty():
        first = predictions.rejected.filter(table="tubes").row(0, named=True)
        message = f"none of {total} tubes can be taken; the first ({first['item']}): {first['reason']}"
        raise InputError(message, where=to_printable(str(path)), hint=_HINT)
    if strict:
        refuse_findings(to_printable(str(path)), predictions)
    return predictions


def write_tubes(
    predictions: Predictions,
    path: Path,
    *,
    native: bool = True,
    agentness: bool = False,
    first_frame: int = 1,
) -> None:
    """Labelled tubes as a file that `read_tubes` and the published code read.

    Every tube with a label is written with its boxes: its own, or those of its parent within its spans; of
    a tube with `consecutive` the frames are start_frame, start_frame + 1, ... The scores of its frames are
    the dense scores of its label where boxes have them, else agentness. Every kind has every video.

    Args:
        predictions: tubes with one label each, and boxes.
        path: where to; its folder must exist. What stands there is replaced, whole or not at all.
        native: write the dataset's own names of kinds, where `meta` has them.
        agentness: also write the tubes without label and parent, as those of agentness.
        first_frame: number of the first frame of a video in the file.

    Raises:
        InputError: if a tube has no boxes, or none has a label.
        DiskError: if the disk refuses.
    """
    lists = build_tube_lists(predictions, native=native, agentness=agentness, first_frame=first_frame)
    write_atomically(Path(path), encode_pickle(lists))


def _held(path: Path) -> dict[str, dict[str, list[Any]]]:
    """The file's content, its outer containers checked.

    Raises:
        DatasetNotFoundError: if there is no file.
        InputError: if it holds anything else.
    """
    where = to_printable(str(path))
    try:
        held = load(read_regular(Path(os.path.realpath(path)), limit=_LIMIT), where)
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"there is nothing at {where}; expected a file of tubes") from error
    form = "expected {kind: {video: [tubes]}}"
    if type(held) is not dict or not held:
        raise InputError(
            f"{form}, found {'an empty' if held == {} else 'a'} {type(held).__name__}", where=where
        )
    for kind, videos in held.items():
        if type(kind) is not str or type(videos) is not dict:
            found = type(videos).__name__
            raise InputError(f"{form}; '{to_printable(str(kind))}' holds a {found}", where=where)
        for video, tubes in videos.items():
            if type(video) is not str or type(tubes) is not list:
                found = (
                    f"'{to_printable(str(video))}' of '{to_printable(kind)}' holds a {type(tubes).__name__}"
                )
                raise InputError(f"{form}; {found}", where=where)
    return held


def _take(read: _Read, tube: Any, kind: str, video: str, item: str, asked: _Asked) -> None:
    """Add one tube to what was taken.

    Raises:
        _TubeError: if it cannot be.
    """
    if type(tube) is not dict or not {"label_id", "boxes", "score", "frames"} <= tube.keys():
        raise _TubeError("no dict with 'label_id', 'boxes', 'score' and 'frames'")
    # A label's index
    value = tube["label_id"]
    kinds = asked.kinds
    value = _plain(value)
    there = _TAKEN if kinds is None else (AGENTNESS, *kinds.classes)
    if kind not in there:
        raise _TubeError(f"the kind '{kind}' is unknown; there are {', '.join(there)}")
    size = len(kinds.vocabularies[kind]) if kinds is not None and kind != AGENTNESS else _MOST_LABELS
    size = 1 if kind == AGENTNESS else size
    if type(value) is not int or not 0 <= value < size:
        raise _TubeError(f"label_id {value!r:.20} of '{kind}', which has {size} labels")
    label = value
    value = tube["score"]
    value = _plain(value)
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise _TubeError(f"score {value!r:.20} is no number in [0, 1]")
    score = float(value)
    frames = _array(tube["frames"], "frames", "iu", 1)
    if frames.size and not -_MOST_FRAMES < int(frames.min()) <= int(frames.max()) < _MOST_FRAMES:
        raise _TubeError(f"frames {frames.min()}..{frames.max()}")
    frames = frames.astype(np.int64) - asked.first_frame
    boxes = _array(tube["boxes"], "boxes", "fiu", 2)
    if boxes.shape[1:] != (4,) or len(boxes) != len(frames) or not len(frames):
        raise _TubeError(f"{len(frames)} frames for boxes {boxes.shape}; expected as many boxes of 4 numbers")
    scores = _array(tube["scores"], "scores", "fiu", 1) if "scores" in tube else np.full(len(frames), score)
    if len(scores) != len(frames):
        raise _TubeError(f"{len(scores)} scores for {len(frames)} frames")
    steps = np.diff(frames)
    if not (steps > 0).all():
        order = np.argsort(frames, kind="stable")
        frames, boxes, scores = frames[order], boxes[order], scores[order]
        if (np.diff(frames) == 0).any():
            twice = frames[:-1][np.diff(frames) == 0][0]
            raise _TubeError(f"frame {twice}, counted from 0, stands in it twice")
    reason = asked.known.reason(video, int(frames[0]), int(frames[-1]))
    if reason:
        raise _TubeError(reason)
    read.video.append(video)
    read.kind.append(kind)
    read.label.append(label)
    read.score.append(score)
    read.item.append(item)
    read.frames.append(frames)
    read.boxes.append(boxes)
    read.scores.append(scores)


def _plain(value: Any) -> Any:
    """A number that was written as an array of one."""
    return value.item() if type(value) is np.ndarray and value.size == 1 else value


def _array(value: Any, name: str, kinds: str, dimensions: int) -> Numbers:
    """An array, or the array of a list."""
    if type(value) is list or type(value) is tuple:
        try:
            value = np.array([np.asarray(row) for row in value])
        except (ValueError, TypeError, OverflowError) as error:
            raise _TubeError(f"'{name}' is a list of things that make no array") from error
    if type(value) is np.ndarray and not value.size and name != "boxes":
        return np.zeros(0, np.int64)
    if type(value) is not np.ndarray or value.dtype.kind not in kinds or value.ndim != dimensions:
        found = f"{value.dtype} {value.shape}" if type(value) is np.ndarray else type(value).__name__
        raise _TubeError(f"'{name}' should be a {dimensions}-dimensional array of numbers, not {found}")
    return value


def _build_numeric_kinds(read: _Read) -> Kinds:
    """Names for labels where none were given: the number of each."""
    highest: dict[str, int] = {}
    for kind, label in zip(read.kind, read.label, strict=True):
        highest[kind] = max(label, highest.get(kind, -1))
    named = {kind: tuple(f"{kind} {n}" for n in range(count + 1)) for kind, count in highest.items()}
    return Kinds({AGENTNESS: (AGENTNESS,), **named})


def _tables(
    read: _Read, kinds: Kinds, size: tuple[int, int], known: Known, file: str, findings: Findings
) -> Predictions:
    """The tables of what was taken."""
    findings.read["tubes"] += len(read.label)
    findings.read["boxes"] += sum(map(len, read.frames))
    boxes = _boxes(read, file, findings)
    names = [video for video in read.videos if not known.reason(video, 0, 0)]
    tubes = pl.DataFrame(
        {
            "tube": np.arange(len(read.label)),
            "video": pl.Series(read.video, dtype=pl.String),
            "start_frame": pl.Series([int(frames[0]) for frames in read.frames], dtype=pl.Int64),
            "end_frame": pl.Series([int(frames[-1]) + 1 for frames in read.frames], dtype=pl.Int64),
            "kind": pl.Series(read.kind, dtype=pl.String).replace(AGENTNESS, None),
            "label": pl.Series(read.label, dtype=pl.Int64),
            "score": pl.Series(read.score, dtype=pl.Float64),
        }
    )
    return Predictions(
        videos=pl.DataFrame(
            {"video": names, "width_px": [size[0]] * len(names), "height_px": [size[1]] * len(names)},
            schema={"video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64},
        ),
        boxes=boxes,
        tubes=tubes.drop("label"),
        tube_labels=tubes.filter(pl.col("kind").is_not_null()).select("tube", "kind", "label", "score"),
        rejected=findings.table(),
        meta=kinds.predictions_meta(rows_read=dict(sorted(findings.read.items())), notes=findings.notes()),
    )


def _boxes(read: _Read, file: str, findings: Findings) -> pl.DataFrame:
    """The table of boxes; bad ones are refused, and tubes that have no other."""
    counts = np.array([len(frames) for frames in read.frames], dtype=np.int64)
    tube = np.repeat(np.arange(len(counts)), counts)
    frame = np.concatenate([np.zeros(0, np.int64), *read.frames])
    with np.errstate(over="ignore"):
        rows = np.concatenate([np.zeros((0, 4), np.float32), *read.boxes]).astype(np.float32)
    scores = np.concatenate([np.zeros(0, np.float32), *read.scores])
    # (n,) why a box cannot be taken; empty where it can
    with np.errstate(invalid="ignore"):
        upside = (rows[:, 0] > rows[:, 2]) | (rows[:, 1] > rows[:, 3])
        within = (scores >= 0) & (scores <= 1)
    finite = np.isfinite(rows).all(axis=1)
    reason = np.select(
        [~finite, upside, ~within],
        [
            "a corner that is not a finite number",
            "a box upside down: x1 > x2 or y1 > y2",
            "a score that is no number in [0, 1]",
        ],
        "",
    )
    good = reason == ""
    if not good.all():
        at = np.flatnonzero(~good)
        refused = {
            "file": [file] * len(at),
            "line": [None] * len(at),
            "item": [f"{read.item[tube[n]]}, frame {frame[n]}" for n in at],
            "reason": reason[at].tolist(),
        }
        findings.reject_rows("boxes", pl.DataFrame(refused))
        tube = read.renumbered(np.bincount(tube[good], minlength=len(counts)) > 0, file, findings)[tube[good]]
        frame, rows, scores = frame[good], rows[good], scores[good]
    return pl.DataFrame(
        {
            "box": np.arange(len(rows)),
            "video": pl.Series(read.video, dtype=pl.String).gather(tube),
            "frame": frame,
            "tube": tube,
            **{name: np.ascontiguousarray(rows[:, at]) for at, name in enumerate(CORNERS)},
            "score": scores,
        }
    )
