"""MOT text, read and written: tracks and detections as Predictions, folders of sequences as Scenes, in the
layout of TrackEval.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError, UsageError
from roadaware.formats.known_scenes import Known, build_absent_error, refuse_findings
from roadaware.formats.road_detections import write_folder
from roadaware.io.files import read_regular
from roadaware.io.folders import make_folder
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes, TableSet

FIRST_PIXEL = 1.0
"""MOT text counts pixels from 1, as it counts frames and tracks."""

_LIMIT = 1 << 31
_FAR = 1e9
# Trackers write frames and ids as 1.0, too.
_WHOLE = re.compile(r"-?\d{1,16}(?:\.0*)?")
# Python's float also takes nan, inf and 1_000, which are no numbers of a csv file.
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")
_FIELDS = ("frame", "id", "left", "top", "width", "height", "conf")
_MOST_FRAMES = 1 << 40
_LONGEST = 1_000_000


@dataclass
class _Rows:
    """The lines of one file that could be taken, by column, and the others."""

    frame: list[int] = field(default_factory=list)
    track: list[int] = field(default_factory=list)
    corners: list[tuple[float, float, float, float]] = field(default_factory=list)
    conf: list[float] = field(default_factory=list)
    klass: list[int | None] = field(default_factory=list)
    refused: list[tuple[int, str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True)
class _Rules:
    """How lines are understood.

    Args:
        known: which videos and frames there are.
        first_pixel: number of the first pixel.
        unknown_score: of lines with a conf of -1; None refuses them.
        truth: whether conf says if a box is asked for, and a class stands behind it.
    """

    known: Known
    first_pixel: float
    unknown_score: float | None
    truth: bool


class _LineError(Exception):
    """Why a line is refused."""


def read_tracks(
    files: Mapping[str, Path],
    scenes: Scenes | None = None,
    *,
    first_pixel: float = FIRST_PIXEL,
    unknown_score: float | None = None,
    strict: bool = False,
) -> Predictions:
    """Tracks or detections in MOT text as Predictions: a box for each line, tracks as tubes without parent.

    A line is `frame,id,left,top,width,height,conf` with anything behind it; frames and tracks count from 1,
    and a track of -1 is none: a detection. A tube is called by its number in the file; its score is the mean
    of its boxes'. Lines that cannot be taken are in `rejected` with their number and the reason: too few
    fields, no numbers, a frame below 1 or behind the end of its video, a width or height below 0, a conf
    outside [0, 1], or a second box of a track in a frame.

    Args:
        files: video to its file.
        scenes: give the videos and frames that there are; its videos' sizes are those of the predictions.
        first_pixel: the number of the first pixel: 1, or 0 for files that count from 0.
        unknown_score: the score of lines with a conf of -1; they are refused unless it is given.
        strict: anything rejected is an error.

    Raises:
        UsageError: if no file is named.
        DatasetNotFoundError: if a file is not there.
        InputError: if one is no text.
        FindingsError: under `strict`, if anything was rejected.
    """
    if not files:
        raise UsageError("reading MOT text needs at least one file")
    findings, rules = Findings(), _Rules(Known(scenes), first_pixel, unknown_score, truth=False)
    boxes, tubes, count = [], [], 0
    for video, path in files.items():
        rows = _read(Path(path), video, rules, findings)
        table, own = _tables(rows, video, count)
        boxes.append(table.with_columns(pl.Series("score", rows.conf, dtype=pl.Float64)))
        tubes.append(own)
        count += len(own)
    joined = _concat_boxes(boxes)
    score = joined.filter(pl.col("tube").is_not_null()).group_by("tube").agg(pl.col("score").mean())
    predictions = Predictions(
        videos=_add_video_sizes(scenes, list(files)),
        boxes=joined,
        tubes=pl.concat(tubes).join(score, on="tube", how="left", maintain_order="left"),
        rejected=findings.table(),
        meta=Meta(
            scenes.meta.dataset if scenes else "MOT",
            vocabularies={"agentness": ("agentness",)},
            rows_read=dict(findings.read),
            notes=findings.notes(),
        ),
    )
    if strict:
        refuse_findings("MOT text", predictions)
    return predictions


def read_sequences(
    folder: Path,
    *,
    names: Sequence[str] | None = None,
    classes: Mapping[int, str] | None = None,
    kind: str = "agent",
    first_pixel: float = FIRST_PIXEL,
    strict: bool = False,
) -> Scenes:
    """A folder of MOT sequences as Scenes: `<sequence>/gt/gt.txt` with `<sequence>/seqinfo.ini`.

    Lines are as in `read_tracks`, with a class behind `conf`; a `conf` of 0 marks a box to ignore. All frames
    of a sequence were annotated.

    Args:
        folder: holds the sequences.
        names: which sequences, as a seqmap lists them (default: all).
        classes: number of a class to its label, in class order; boxes of others are to be ignored. Without
            it boxes have no labels.
        kind: of those labels.
        first_pixel: see `read_tracks`.
        strict: anything rejected is an error.

    Raises:
        DatasetNotFoundError: if there is no sequence, or one that was named is not there.
        InputError: if a file cannot be read, or seqinfo.ini lacks a length.
        FindingsError: under `strict`, if anything was rejected.
    """
    folder = Path(folder)
    listed = list(names) if names is not None else _sequences(folder)
    wrong = [name for name in listed if is_outside(name) or not name]
    if wrong:
        raise InputError(
            f"the sequence '{to_printable(wrong[0])}' leads out of the folder",
            where=to_printable(str(folder)),
        )
    if not listed:
        raise DatasetNotFoundError(
            "expected folders with gt/gt.txt, found none",
            where=to_printable(str(folder)),
            hint="check the path",
        )
    findings = Findings()
    videos = pl.DataFrame([_info(folder / name, name) for name in listed])
    frames = videos.select("video", frame=pl.int_ranges(0, "n_frames")).explode("frame").drop_nulls()
    rules = _Rules(Known(Scenes(videos=videos)), first_pixel, None, truth=True)
    boxes, tubes, count = [], [], 0
    for name in listed:
        path = folder / name / "gt" / "gt.txt"
        rows = _read(path, name, rules, findings)
        table, own = _tables(rows, name, count)
        klass = pl.Series("class", rows.klass, dtype=pl.Int64)
        boxes.append(table.with_columns(klass, ignore=pl.Series(rows.conf, dtype=pl.Float64) == 0))
        tubes.append(own)
        count += len(own)
    scenes = _truth(videos, frames, _concat_boxes(boxes), pl.concat(tubes), classes, kind, findings)
    if strict and len(scenes.rejected):
        reasons = "; ".join(scenes.rejected["reason"].head(5).to_list())
        raise FindingsError(
            f"{to_printable(str(folder))}: {len(scenes.rejected)} lines were rejected: {reasons}"
        )
    return scenes


def _truth(
    videos: pl.DataFrame,
    frames: pl.DataFrame,
    boxes: pl.DataFrame,
    tubes: pl.DataFrame,
    classes: Mapping[int, str] | None,
    kind: str,
    findings: Findings,
) -> Scenes:
    labels = pl.DataFrame(schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64})
    vocabularies: dict[str, tuple[str, ...]] = {"agentness": ("agentness",)}
    if classes is not None:
        place = {number: index for index, number in enumerate(classes)}
        label = pl.col("class").replace_strict(place, default=None, return_dtype=pl.Int64)
        boxes = boxes.with_columns(label=label)
        boxes = boxes.with_columns(pl.col("ignore") | pl.col("label").is_null())
        labels = boxes.filter(pl.col("label").is_not_null()).select("box", kind=pl.lit(kind), label="label")
        boxes = boxes.drop("label")
        vocabularies[kind] = tuple(classes.values())
    return Scenes(
        videos=videos,
        frames=frames.with_columns(annotated=pl.lit(value=True)),
        boxes=boxes.drop("class"),
        labels=labels,
        tubes=tubes,
        rejected=findings.table(),
        meta=Meta("MOT", vocabularies=vocabularies, rows_read=dict(findings.read), notes=findings.notes()),
    )


def _read(path: Path, video: str, rules: _Rules, findings: Findings) -> _Rows:
    """The lines of a file; those that cannot be taken are refused."""
    rows, seen, number = _Rows(), set[tuple[int, int]](), 0
    for line_number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        number += 1
        try:
            # Add a line to the rows
            cells = [cell.strip() for cell in line.split(",")]
            if len(cells) < len(_FIELDS):
                raise _LineError(
                    f"{len(cells)} fields; expected at least {len(_FIELDS)}: {','.join(_FIELDS)}"
                )
            frame, track = _whole(cells[0], "frame"), _whole(cells[1], "id")
            left, top, width, height, conf = map(_number, cells[2:7], _FIELDS[2:])
            if frame < 1 or frame > _MOST_FRAMES:
                raise _LineError(f"frame {frame}; frames count from 1")
            reason = rules.known.reason(video, frame - 1, frame - 1)
            if reason:
                raise _LineError(reason)
            if width < 0 or height < 0:
                raise _LineError(f"a width of {width:g} and a height of {height:g}")
            if not rules.truth:
                conf = rules.unknown_score if conf == -1 and rules.unknown_score is not None else conf
                if not 0 <= conf <= 1:
                    raise _LineError(f"a conf of {conf:g} is no score in [0, 1]")
            if track < 0 and track != -1:
                raise _LineError(f"id {track}; tracks count from 1, and -1 is none")
            # Detections, of track -1, may be many in a frame.
            if track >= 0 and (frame, track) in seen:
                raise _LineError(f"track {track} has a box in frame {frame} already")
            klass = _whole(cells[7], "class") if rules.truth and len(cells) > 7 else None
            seen.add((frame, track))
            rows.frame.append(frame - 1)
            rows.track.append(track)
            x1, y1 = left - rules.first_pixel, top - rules.first_pixel
            rows.corners.append((x1, y1, x1 + width, y1 + height))
            rows.conf.append(conf)
            rows.klass.append(klass)
        except _LineError as error:
            rows.refused.append((line_number, to_printable(line, 60), str(error)))
    findings.read["boxes"] += number
    refused = pl.DataFrame(rows.refused, schema=["line", "item", "reason"], orient="row")
    findings.reject_rows("boxes", refused.with_columns(file=pl.lit(to_printable(path.name))))
    return rows


def _whole(cell: str, name: str) -> int:
    if not _WHOLE.fullmatch(cell):
        raise _LineError(f"{name} is no whole number")
    return int(cell.partition(".")[0])


def _number(cell: str, name: str) -> float:
    value = float(cell) if len(cell) < 64 and _NUMBER.fullmatch(cell) else float("inf")
    if not abs(value) <= _FAR:
        raise _LineError(f"{name} is no finite number")
    return value


def _text(path: Path) -> str:
    where = to_printable(str(path))
    try:
        return read_regular(path, limit=_LIMIT).decode("utf-8-sig")
    except FileNotFoundError:
        raise build_absent_error(path, "MOT text, found no file") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"expected text, found the byte {error.start} that is not UTF-8", where=where
        ) from error


def _tables(rows: _Rows, video: str, first: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The boxes of a video in the order of its file, and its tracks in the order in which they appear."""
    numbers = {track: first + i for i, track in enumerate(dict.fromkeys(t for t in rows.track if t >= 0))}
    corners = pl.DataFrame(rows.corners, schema=dict.fromkeys(CORNERS, pl.Float64), orient="row")
    boxes = corners.with_columns(
        pl.Series("frame", rows.frame, dtype=pl.Int64),
        pl.Series("tube", [numbers.get(track) for track in rows.track], dtype=pl.Int64),
        video=pl.lit(video),
    )
    spans = (
        boxes.drop_nulls("tube")
        .group_by("tube", maintain_order=True)
        .agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
    )
    names = pl.DataFrame(
        {"tube": list(numbers.values()), "name": [str(track) for track in numbers]},
        schema={"tube": pl.Int64, "name": pl.String},
    )
    return boxes, names.join(spans, on="tube", maintain_order="left").with_columns(video=pl.lit(video))


def _concat_boxes(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The boxes of all videos by video and frame, numbered."""
    boxes = pl.concat([part.sort("frame", maintain_order=True) for part in parts])
    return boxes.with_columns(box=pl.int_range(pl.len()))


def _add_video_sizes(scenes: Scenes | None, videos: list[str]) -> pl.DataFrame:
    """The videos with the sizes of the scenes."""
    table = pl.DataFrame({"video": videos}, schema={"video": pl.String})
    if scenes is None or not {"width_px", "height_px"} <= set(scenes.videos.columns):
        return table
    known = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    return table.join(known, on="video", how="left", maintain_order="left")


def _sequences(folder: Path) -> list[str]:
    """The sequences of a folder, by name."""
    if not folder.is_dir():
        raise DatasetNotFoundError("expected a folder of sequences", where=to_printable(str(folder)))
    return sorted(path.name for path in folder.iterdir() if (path / "gt" / "gt.txt").is_file())


def _info(folder: Path, name: str) -> dict[str, object]:
    """The row of a sequence in the table of videos, from its seqinfo.ini."""
    path = folder / "seqinfo.ini"
    where = to_printable(str(path))
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(_text(path))
        record = dict(parser["Sequence"]) if parser.has_section("Sequence") else {}
    except configparser.Error as error:
        raise InputError(f"expected an ini file: {str(error).splitlines()[0]}", where=where) from error
    found: dict[str, object] = {"video": name}
    for key, column in (("seqlength", "n_frames"), ("imwidth", "width_px"), ("imheight", "height_px")):
        value = record.get(key, "")
        if value and not re.fullmatch(r"\d{1,9}", value.strip()):
            raise InputError(f"{key} is '{to_printable(value, 40)}', no whole number", where=where)
        found[column] = int(value) if value else None
    rate = record.get("framerate", "").strip()
    found["fps"] = float(rate) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", rate) and float(rate) > 0 else None
    length = found["n_frames"]
    if not isinstance(length, int) or length > _LONGEST:
        wrong = "is missing" if length is None else f"is {length}, more than {_LONGEST:,}"
        raise InputError(f"seqLength {wrong}", where=where, hint="say how many frames the sequence has")
    return found


# MOT text written, in the folders in which TrackEval looks for ground truth and for results.

_PEDESTRIAN = 1
_Class = tuple[str, str]


def write_sequences(
    scenes: Scenes,
    folder: Path,
    *,
    of: _Class | None = None,
    benchmark: str = "roadaware",
    split: str = "all",
    first_pixel: float = FIRST_PIXEL,
) -> None:
    """Write ground-truth tracks as MOT sequences (GT_FOLDER of TrackEval).

    The folder holds `<benchmark>-<split>/<video>/gt/gt.txt` and `seqinfo.ini`, and the seqmap
    `seqmaps/<benchmark>-<split>.txt`. Everything is of class 1, the one that TrackEval's MotChallenge2DBox
    judges. Boxes to ignore have a conf of 0.

    Args:
        scenes: ground truth; videos need n_frames.
        folder: must not exist, or be empty.
        of: (kind, label) of the tubes to write, with their parents' boxes (default: the tracks).
        benchmark: its name.
        split: its name.
        first_pixel: see `mot.read_tracks`.

    Raises:
        UsageError: if the folder holds anything, a video's length is not known, or there is no such label.
        DiskError: if the disk refuses.
    """
    lines = format_tube_lines(scenes, of, first_pixel=first_pixel)
    make_folder(Path(folder).absolute().parent)
    write_folder(Path(folder), _truth_files(scenes, lines, f"{benchmark}-{split}"))


def write_tracks(
    predictions: Predictions,
    folder: Path,
    *,
    of: _Class | None = None,
    tracker: str = "roadaware",
    benchmark: str = "roadaware",
    split: str = "all",
    first_pixel: float = FIRST_PIXEL,
) -> None:
    """Write predicted tracks as MOT text (TRACKERS_FOLDER of TrackEval).

    The folder holds `<benchmark>-<split>/<tracker>/data/<video>.txt`, a file for each video of the predictions.
    Boxes of tubes that are assigned to consecutive frames stand in the frames they are assigned to.

    Args:
        predictions: linked boxes with scores, in the ground truth's pixels (`scenes.concatenation` brings them there:
            TrackEval does not).
        folder: must not exist, or be empty.
        of: (kind, label) of the tubes to write (default: the paths themselves).
        tracker: its name.
        benchmark: as in `write_sequences`.
        split: as in `write_sequences`.
        first_pixel: see `mot.read_tracks`.

    Raises:
        UsageError: if the folder holds anything, or there is no such label.
        DiskError: if the disk refuses.
    """
    lines = format_tube_lines(predictions, of, first_pixel=first_pixel)
    names = [*_videos(predictions), *lines]
    base = f"{_safe(benchmark)}-{_safe(split)}/{_safe(tracker)}/data"
    files = ((f"{base}/{_safe(name)}.txt", lines.get(name, "").encode()) for name in dict.fromkeys(names))
    make_folder(Path(folder).absolute().parent)
    write_folder(Path(folder), files)


def format_tube_lines(
    tables: TableSet, of: _Class | None = None, *, first_pixel: float = FIRST_PIXEL
) -> dict[str, str]:
    """The lines of each video with tracks, by frame and track; tracks are numbered from 1 in each.

    Args:
        tables: Scenes or linked Predictions.
        of: (kind, label) of the tubes (default: the tracks themselves).
        first_pixel: see `mot.read_tracks`.

    Raises:
        UsageError: if there is no such label.
    """
    rows = collect_tube_boxes(tables, of).sort("frame", "track", maintain_order=True)
    left, top, right, bottom = (pl.col(side).cast(pl.Float64) for side in CORNERS)
    shifted = rows.with_columns(
        # MOT counts frames from 1.
        pl.col("frame") + 1,
        left=left + first_pixel,
        top=top + first_pixel,
        width=right - left,
        height=bottom - top,
    )
    fields = [*("frame", "track", "left", "top", "width", "height", "conf"), "klass", "seen"]
    texts = shifted.with_columns(klass=pl.lit(_PEDESTRIAN), seen=pl.lit(1)).select(
        "video", line=pl.concat_str(fields, separator=",")
    )
    grouped = texts.group_by("video", maintain_order=True).agg(pl.col("line").str.join("\n"))
    return {video: text + "\n" for video, text in grouped.iter_rows()}


def collect_tube_boxes(tables: TableSet, of: _Class | None = None) -> pl.DataFrame:
    """The boxes of tracks, or of tubes with a label: video, frame, track (from 1), corners and conf.

    Args:
        tables: Scenes or linked Predictions.
        of: (kind, label) of the tubes (default: the tracks themselves).

    Raises:
        UsageError: if there is no such label.
    """
    boxes = tables.boxes.with_columns(pl.col("video").cast(pl.String), conf=_conf(tables))
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    owned = boxes.filter(pl.col("tube").is_not_null())
    tubes = _whole_tubes(tables) if of is None else _select_labelled_spans(tables, of)
    pieces = owned.join(tubes, left_on="tube", right_on="owner", maintain_order="right_left")
    inside = pl.col("low").is_null() | pl.col("frame").is_between("low", "high", closed="left")
    pieces = pieces.filter(inside)
    # Boxes assigned to consecutive frames, whatever frames they were found in.
    place = pl.col("frame").rank("ordinal").over("own").cast(pl.Int64) - 1
    predicted = pl.when(pl.col("consecutive")).then(pl.col("start_frame") + place).otherwise("frame")
    track = pl.col("own").rank("dense").over("video").cast(pl.Int64)
    return pieces.with_columns(frame=predicted).select("video", "frame", *CORNERS, "conf", track=track)


def _conf(tables: TableSet) -> pl.Expr:
    """The last field that counts: the score of predictions, and of ground truth whether it is asked for."""
    if isinstance(tables, Predictions):
        return pl.col("score").cast(pl.Float64) if "score" in tables.boxes.columns else pl.lit(1.0)
    if "ignore" in tables.boxes.columns:
        return pl.when(pl.col("ignore").fill_null(value=False)).then(0).otherwise(1)
    return pl.lit(1)


def _columns(tables: TableSet) -> pl.DataFrame:
    """The tubes with every column that is looked at."""
    kinds = {
        "parent": pl.Int64(),
        "kind": pl.String(),
        "start_frame": pl.Int64(),
        "consecutive": pl.Boolean(),
    }
    kinds["spans"] = pl.List(pl.List(pl.Int64))
    missing = [
        pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in tables.tubes.columns
    ]
    return tables.tubes.with_columns(missing).with_columns(pl.col("consecutive").fill_null(value=False))


def _whole_tubes(tables: TableSet) -> pl.DataFrame:
    """The tracks: tubes without parent."""
    tubes = _columns(tables).filter(pl.col("parent").is_null())
    none = pl.lit(None, pl.Int64)
    return tubes.select("start_frame", "consecutive", owner="tube", own="tube", low=none, high=none)


def _select_labelled_spans(tables: TableSet, of: _Class) -> pl.DataFrame:
    """The pieces of the tubes with a label."""
    kind, label = of
    words = tables.meta.vocabularies.get(kind, ())
    if label not in words:
        raise UsageError(f"no label '{label}' of kind '{kind}'; there are {', '.join(words) or 'none'}")
    asked = (pl.col("kind").cast(pl.String) == kind) & (pl.col("label") == words.index(label))
    held = tables.tube_labels.filter(asked)["tube"]
    tubes = _columns(tables).filter(pl.col("tube").is_in(held.implode())).explode("spans")
    low, high = (pl.col("spans").list.get(i) for i in (0, 1))
    owner = pl.coalesce("parent", "tube")
    return tubes.select("start_frame", "consecutive", owner=owner, own="tube", low=low, high=high)


def _truth_files(scenes: Scenes, lines: dict[str, str], name: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a folder of sequences."""
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    for row in videos.iter_rows(named=True):
        video, length = row["video"], row.get("n_frames")
        if length is None:
            raise UsageError(f"it is not known how many frames video {to_printable(video)} has")
        record = {
            "name": video,
            "imDir": "img1",
            "frameRate": f"{row.get('fps') or 1:g}",
            "seqLength": length,
            "imWidth": row.get("width_px") or "",
            "imHeight": row.get("height_px") or "",
            "imExt": ".jpg",
        }
        info = "\n".join(["[Sequence]", *(f"{key}={value}" for key, value in record.items()), ""])
        base = f"{_safe(name)}/{_safe(video)}"
        yield f"{base}/seqinfo.ini", info.encode()
        yield f"{base}/gt/gt.txt", lines.get(video, "").encode()
    yield f"seqmaps/{_safe(name)}.txt", "\n".join(["name", *videos["video"].to_list(), ""]).encode()


def _videos(tables: TableSet) -> list[str]:
    names: list[str] = tables.videos["video"].cast(pl.String).to_list()
    return names


def _safe(name: str) -> str:
    """The name, which must be one of a file.

    Raises:
        UsageError: if it leads elsewhere.
    """
    if not name or "/" in name or "\n" in name or is_outside(name):
        raise UsageError(f"'{to_printable(name)}' is no name for a file")
    return name
