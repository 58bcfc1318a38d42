"""MOT text written, in the folders in which TrackEval looks for truth and for results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from roadaware.errors import UsageError
from roadaware.scenes.formats.mot import FIRST_PIXEL
from roadaware.scenes.formats.writing import write_folder
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.source import leads_out, shown
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes, TableSet

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
    """Write true tracks as MOT sequences: what TrackEval calls GT_FOLDER.

    The folder holds `<benchmark>-<split>/<video>/gt/gt.txt` and `seqinfo.ini`, and the seqmap
    `seqmaps/<benchmark>-<split>.txt`. Everything is of class 1, the one that TrackEval's MotChallenge2DBox
    judges. Boxes to ignore have a conf of 0.

    Args:
        scenes: truth; videos need n_frames.
        folder: must not exist, or be empty.
        of: (kind, label) of the tubes to write, with their parents' boxes; the tracks unless given.
        benchmark: its name.
        split: its name.
        first_pixel: see `mot.read_tracks`.

    Raises:
        UsageError: if the folder holds anything, a video's length is not known, or there is no such label.
        DiskError: if the disk refuses.
    """
    lines = tube_lines(scenes, of, first_pixel=first_pixel)
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
    """Write claimed tracks as MOT text: what TrackEval calls TRACKERS_FOLDER.

    The folder holds `<benchmark>-<split>/<tracker>/data/<video>.txt`, a file for each video of the claims.
    Boxes of tubes that are claimed for consecutive frames stand in the frames they are claimed for.

    Args:
        predictions: linked boxes with scores, in the truth's pixels (`scenes.rescaling` brings them there:
            TrackEval does not).
        folder: must not exist, or be empty.
        of: (kind, label) of the tubes to write; the paths themselves unless given.
        tracker: its name.
        benchmark: as in `write_sequences`.
        split: as in `write_sequences`.
        first_pixel: see `mot.read_tracks`.

    Raises:
        UsageError: if the folder holds anything, or there is no such label.
        DiskError: if the disk refuses.
    """
    lines = tube_lines(predictions, of, first_pixel=first_pixel)
    names = [*_videos(predictions), *lines]
    base = f"{_safe(benchmark)}-{_safe(split)}/{_safe(tracker)}/data"
    files = ((f"{base}/{_safe(name)}.txt", lines.get(name, "").encode()) for name in dict.fromkeys(names))
    write_folder(Path(folder), files)


def tube_lines(
    tables: TableSet, of: _Class | None = None, *, first_pixel: float = FIRST_PIXEL
) -> dict[str, str]:
    """The lines of each video with tracks, by frame and track; tracks are numbered from 1 in each.

    Args:
        tables: Scenes or linked Predictions.
        of: (kind, label) of the tubes; the tracks themselves unless given.
        first_pixel: see `mot.read_tracks`.

    Raises:
        UsageError: if there is no such label.
    """
    rows = tube_boxes(tables, of).sort("frame", "track", maintain_order=True)
    left, top, right, bottom = (pl.col(side).cast(pl.Float64) for side in CORNERS)
    shifted = rows.with_columns(
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


def tube_boxes(tables: TableSet, of: _Class | None = None) -> pl.DataFrame:
    """The boxes of tracks, or of tubes with a label: video, frame, track (from 1), corners and conf.

    Args:
        tables: Scenes or linked Predictions.
        of: (kind, label) of the tubes; the tracks themselves unless given.

    Raises:
        UsageError: if there is no such label.
    """
    boxes = tables.boxes.with_columns(pl.col("video").cast(pl.String), conf=_conf(tables))
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    owned = boxes.filter(pl.col("tube").is_not_null())
    tubes = _whole_tubes(tables) if of is None else _labelled(tables, of)
    pieces = owned.join(tubes, left_on="tube", right_on="owner", maintain_order="right_left")
    inside = pl.col("low").is_null() | pl.col("frame").is_between("low", "high", closed="left")
    pieces = pieces.filter(inside)
    # Boxes claimed for consecutive frames, whatever frames they were found in.
    place = pl.col("frame").rank("ordinal").over("own").cast(pl.Int64) - 1
    claimed = pl.when(pl.col("consecutive")).then(pl.col("start_frame") + place).otherwise("frame")
    track = pl.col("own").rank("dense").over("video").cast(pl.Int64)
    return pieces.with_columns(frame=claimed).select("video", "frame", *CORNERS, "conf", track=track)


def _conf(tables: TableSet) -> pl.Expr:
    """The last field that counts: the score of claims, and of truth whether it is asked for."""
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


def _labelled(tables: TableSet, of: _Class) -> pl.DataFrame:
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
            raise UsageError(f"it is not known how many frames video {shown(video)} has")
        told = {
            "name": video,
            "imDir": "img1",
            "frameRate": f"{row.get('fps') or 1:g}",
            "seqLength": length,
            "imWidth": row.get("width_px") or "",
            "imHeight": row.get("height_px") or "",
            "imExt": ".jpg",
        }
        info = "\n".join(["[Sequence]", *(f"{key}={value}" for key, value in told.items()), ""])
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
    if not name or "/" in name or "\n" in name or leads_out(name):
        raise UsageError(f"'{shown(name)}' is no name for a file")
    return name
