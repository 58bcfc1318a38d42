"""Rows of boxes of any annotation tool, checked one by one and made into Scenes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from roadaware.datasets import READERS
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.issues import Findings, select_first_reason
from roadaware.errors import InputError, UsageError
from roadaware.io.json import escape_surrogates, parse_int
from roadaware.io.sources import Source, decode_utf_text, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

KIND = "agent"
"""The kind of label that the classes of a tool become."""
LONGEST_PATH = 1000
"""Letters of the name of a file as tables have it."""
FACTS = "dataset.toml"
"""The file in a folder of annotations that says what the annotations do not."""
LARGEST_SIDE = 1 << 20
MOST_IN_ALL = 50_000_000
"""Frames of a whole set: nineteen days at thirty a second, some 3 GB as a table."""
_FAR = 1e9
_FACT_KEYS = ("fps", "size", "classes", "first_frame", "columns", "rename")
ROWS: dict[str, Any] = {
    "file": pl.String,
    "line": pl.Int64,
    "item": pl.String,
    "video": pl.String,
    "frame": pl.Int64,
    "track": pl.String,
    "label": pl.String,
    **dict.fromkeys(CORNERS, pl.Float64),
    "ignore": pl.Boolean,
    "occlusion": pl.String,
    "score": pl.Float64,
    "reason": pl.String,
}
"""Columns of the rows that `build_box_scenes` takes: `reason` is what a reader refuses a row for, else null; a part may lack
`occlusion` and, of ground truth, `score`."""


@dataclass(frozen=True)
class Facts:
    """What annotations do not say.

    Args:
        fps: frames a second of every video.
        size_px: width and height of every image.
        classes: names of classes in the order of their numbers.
        first_frame: number of a video's first frame.
        columns: what a row of csv holds to the name of its column.
        rename: class, as the files call it, to its other name.
    """

    fps: float | None = None
    size_px: tuple[int, int] | None = None
    classes: tuple[str, ...] | None = None
    first_frame: int | None = None
    columns: Mapping[str, str] | None = None
    rename: Mapping[str, str] | None = None


def list_facts(source: Source) -> list[str]:
    """The name of `dataset.toml` where it lies beside the annotations: a file that is read, too."""
    return [FACTS] if source.holds(FACTS) else []


def read_facts(source: Source, **given: Any) -> Facts:
    """What options say, else `dataset.toml` beside the annotations.

    Args:
        source: where the annotations lie.
        given: values of options; None where one was not named.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if the file is no TOML, or a value in it has no meaning.
    """
    chosen = _parse_facts({name: value for name, value in given.items() if value is not None}, UsageError, "")
    if not source.holds(FACTS):
        return chosen
    where = source.where(FACTS)
    text = decode_utf_text(source.read(FACTS), where, expected="TOML", hint="write it again as UTF-8")
    try:
        held = tomllib.loads(text)
    # Not only TOMLDecodeError: Python refuses whole numbers of more than 4,300 digits by itself.
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"expected TOML: {to_printable(str(error))}", where=where, hint="such as: fps = 25"
        ) from error
    facts = _parse_facts(held, InputError, where)
    return replace(facts, **{name: value for name, value in vars(chosen).items() if value is not None})


def _parse_facts(held: Mapping[str, Any], kind: Callable[..., Exception], where: str) -> Facts:
    def refuse(message: str) -> Exception:
        return kind(message, where=where) if where else kind(message)

    unknown = sorted(set(held) - set(_FACT_KEYS))
    if unknown:
        raise refuse(f"no key {to_printable(unknown[0], 40)!r}; there are {', '.join(_FACT_KEYS)}")
    found: dict[str, Any] = {}
    if "fps" in held:
        fps = held["fps"]
        if type(fps) not in (int, float) or not 0 < fps <= 1000:
            raise refuse(f"fps is more than 0 and up to 1000, not {_show(fps)}")
        found["fps"] = float(fps)
    if "size" in held:
        size = held["size"]
        sides = size.lower().split("x") if isinstance(size, str) else size
        sides = (
            [
                int(s) if isinstance(s, str) and s.isascii() and s.isdigit() and len(s) < 9 else s
                for s in sides
            ]
            if isinstance(sides, list)
            else []
        )
        if len(sides) != 2 or any(parse_int(side, 1, LARGEST_SIDE) is None for side in sides):
            raise refuse(f"size is such as 1920x1080 or [1920, 1080], not {_show(size)}")
        found["size_px"] = (sides[0], sides[1])
    if "classes" in held:
        names = held["classes"]
        names = names.split(",") if isinstance(names, str) else names
        if not isinstance(names, list) or not all(isinstance(n, str) and n.strip() for n in names):
            raise refuse('classes is a list of names such as ["person", "car"]')
        found["classes"] = check_classes([name.strip() for name in names], where or "classes")
    if "first_frame" in held:
        if held["first_frame"] not in (0, 1) or isinstance(held["first_frame"], bool):
            raise refuse(f"first_frame is 0 or 1, not {_show(held['first_frame'])}")
        found["first_frame"] = int(held["first_frame"])
    if "columns" in held:
        pairs = held["columns"]
        if not isinstance(pairs, dict) or not all(isinstance(each, str) and each for each in pairs.values()):
            raise refuse('columns names columns of csv, such as {frame = "image", id = "who"}')
        found["columns"] = pairs
    if "rename" in held:
        names = held["rename"]
        if isinstance(names, str):
            parts = [each.partition("=") for each in names.split(",")]
            names = {a.strip(): b.strip() for a, equals, b in parts if equals}
            names = names if len(names) == len(parts) else None
        # As long as any other name of a class, and so that files and tables can hold it.
        if not isinstance(names, dict) or not all(
            isinstance(each, str) and each.strip() and len(each.encode(errors="replace")) <= LONGEST_NAME
            for pair in names.items()
            for each in pair
        ):
            raise refuse('rename names classes otherwise, such as {person = "Ped", bus = "Bus"}')
        found["rename"] = {escape_surrogates(a): escape_surrogates(b) for a, b in names.items()}
    return Facts(**found)


def _show(value: Any) -> str:
    try:
        return to_printable(repr(value), 40)
    except ValueError:  # written in hexadecimal, a number may be longer than Python prints
        return "a number of thousands of digits"


def check_classes(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of classes, each of which stands once.

    Raises:
        InputError: if one stands twice.
    """
    if twice := [name for n, name in enumerate(names) if name in names[:n]]:
        raise InputError(f"the class {to_printable(twice[0], 60)!r} stands twice", where=where)
    return tuple(escape_surrogates(name) for name in names)


@dataclass
class BoxSource:
    """What a reader found, before it is checked.

    Args:
        reader: its name in `READERS`.
        videos: a row for each: video, and where known width_px, height_px, fps, n_frames, path, splits.
        frames: video to the frames that somebody looked at, where the files list them.
        rows: columns `ROWS`.
        classes: the vocabulary in its order; labels that it lacks are added as they appear.
        findings: counts files, and takes what is refused.
        paths: (video, frame) to the file of its image.
        notes: of the reader.
        predicted: whether the rows are predictions, each of which needs a score.
    """

    reader: str
    findings: Findings
    predicted: bool = False
    videos: list[dict[str, Any]] = field(default_factory=list)
    frames: dict[str, Sequence[int]] = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    paths: dict[tuple[str, int], str] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)


def build_box_scenes(found: BoxSource, digest: str) -> Scenes:
    """Scenes of the rows that can be taken; each other one is in `rejected`, with its file, line and reason.

    A row is refused for what its reader says, a frame outside its video, corners that are no finite numbers or upside
    down, and a track that has a box in the frame already.

    Args:
        found: what a reader found.
        digest: of the source's files.
    """
    tables, meta = _build_tables(found, digest)
    boxes, labels = tables["boxes"].drop("score"), tables["labels"].drop("score")
    if not boxes["ignore"].any():
        boxes = boxes.drop("ignore")
    # A file none of whose boxes is hidden may as well not say so.
    if not boxes["occlusion"].is_in(["part", "full"]).any():
        boxes = boxes.drop("occlusion")
    own = ("video", "frame")
    frames = tables["frames"].select(*own, pl.lit(value=True).alias("annotated"), pl.exclude(own))
    of_tracks = label_tracks(boxes, labels)
    return Scenes(
        **{**tables, "boxes": boxes, "labels": labels, "frames": frames}, tube_labels=of_tracks, meta=meta
    )


def build_box_predictions(found: BoxSource, digest: str) -> Predictions:
    """Predictions of the rows that can be taken, with scores of boxes and of their classes; else as `build_box_scenes`.

    A row is also refused where its score is missing or leaves [0, 1]; a track has the mean score of its boxes. What is to be
    ignored or hidden is not predicted, and not taken.

    Args:
        found: what a reader found, with `predicted`.
        digest: of the source's files.
    """
    tables, meta = _build_tables(found, digest)
    boxes = tables["boxes"].drop("ignore", "occlusion")
    scores = boxes.drop_nulls("tube").group_by("tube").agg(pl.col("score").mean())
    tubes = tables["tubes"].join(scores, on="tube", how="left", maintain_order="left")
    return Predictions(**{**tables, "boxes": boxes, "tubes": tubes}, meta=meta)


def _build_tables(found: BoxSource, digest: str) -> tuple[dict[str, pl.DataFrame], Meta]:
    """The tables of both kinds of sets: boxes and labels with their score."""
    findings = found.findings
    kinds = {
        "video": pl.String(), "width_px": pl.Int64(), "height_px": pl.Int64(), "fps": pl.Float32(), "n_frames": pl.Int64(),
        "path": pl.String(), "splits": pl.List(pl.String),
    }  # fmt: skip
    table = pl.DataFrame(
        [{name: row.get(name) for name in kinds} for row in found.videos], schema=pl.Schema(kinds)
    )
    empty = [name for name in ("path", "splits") if not table[name].count()]
    videos = table.drop(empty)
    rows = pl.concat([pl.DataFrame(schema=ROWS), *map(_select_columns, found.rows)])
    findings.read["boxes"] += len(rows)
    rows = _refuse_rows(rows, videos, findings, scored=found.predicted)
    order = pl.Enum(videos["video"].to_list())
    rows = rows.sort(pl.col("video").cast(order), "frame", maintain_order=True)
    rows = rows.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    tubes = (
        rows.drop_nulls("track")
        .group_by("video", "track", maintain_order=True)
        .agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
        .with_columns(tube=pl.int_range(pl.len(), dtype=pl.Int64))
    )
    rows = rows.join(
        tubes.select("video", "track", "tube"), on=["video", "track"], how="left", maintain_order="left"
    )
    words = list(
        dict.fromkeys([*found.classes, *rows["label"].drop_nulls().unique(maintain_order=True).to_list()])
    )
    labels = rows.drop_nulls("label").select(
        "box",
        kind=pl.lit(KIND),
        label=pl.col("label").replace_strict(dict(zip(words, range(len(words)), strict=True)), return_dtype=pl.Int64)
        if words
        else pl.lit(0, pl.Int64),
        score="score",
    )  # fmt: skip
    entry = READERS[found.reader]
    tables = {
        "videos": videos,
        "frames": _list_frames(found, videos),
        "boxes": rows.select("box", "video", "frame", "tube", *CORNERS, "occlusion", "ignore", "score"),
        "labels": labels,
        "tubes": tubes.select("tube", "video", "start_frame", "end_frame", name="track"),
        "rejected": findings.table(),
    }
    meta = Meta(
        dataset=entry.datasets[0],
        licence=entry.licence,
        vocabularies={KIND: tuple(words)},
        source_digest=digest,
        rows_read=dict(sorted(findings.read.items())),
        notes={**findings.notes(), **found.notes},
    )
    return tables, meta


def _select_columns(part: pl.DataFrame) -> pl.DataFrame:
    """A part of the rows with all `ROWS`."""
    lacking = [name for name in ("occlusion", "score") if name not in part.columns]
    return part.with_columns(pl.lit(None, ROWS[name]).alias(name) for name in lacking).select(list(ROWS))


def label_tracks(boxes: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The table `tube_labels`: the class of each track all of whose boxes have one and the same.

    Args:
        boxes: with `box` and `tube`.
        labels: at most one for each box.
    """
    owned = boxes.select("box", "tube").drop_nulls("tube")
    owned = owned.join(labels.select("box", "label"), on="box", how="left", maintain_order="left")
    held = owned.group_by("tube", maintain_order=True).agg(
        pl.col("label").first(), one=(pl.col("label").n_unique() == 1) & (pl.col("label").null_count() == 0)
    )
    return held.filter("one").select("tube", kind=pl.lit(KIND), label="label")


def _list_frames(found: BoxSource, videos: pl.DataFrame) -> pl.DataFrame:
    """`video`, `frame` and, where known, `path` of frames that were looked at: listed ones, else all of a known length.

    Raises:
        InputError: if they are so many that their table would not fit into memory.
    """
    parts = []
    spans = [
        (video, found.frames.get(video, range(count or 0)))
        for video, count in videos.select("video", "n_frames").iter_rows()
    ]
    # A file of a hundred lines may claim a thousand million frames.
    if (total := sum(len(listed) for _, listed in spans)) > MOST_IN_ALL:
        raise InputError(
            f"{total:,} frames in {len(spans):,} videos; at most {MOST_IN_ALL:,} are listed in one set",
            hint="is the number of a frame, or the length of a video, wrong? Else read the videos in parts",
        )
    for video, listed in spans:
        own = (
            pl.int_range(listed.start, listed.stop, eager=True, dtype=pl.Int64).alias("frame")
            if isinstance(listed, range)
            else pl.Series("frame", sorted(listed), dtype=pl.Int64)
        )
        parts.append(pl.DataFrame({"frame": own}).select(video=pl.lit(video), frame="frame"))
    schema = {"video": pl.String, "frame": pl.Int64}
    table = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
    if found.paths:
        named = pl.DataFrame(
            [(video, frame, path) for (video, frame), path in found.paths.items()],
            schema={**schema, "path": pl.String},
            orient="row",
        )
        table = table.join(named, on=["video", "frame"], how="left", maintain_order="left")
    return table


def _refuse_rows(
    rows: pl.DataFrame, videos: pl.DataFrame, findings: Findings, *, scored: bool
) -> pl.DataFrame:
    """The rows that can be taken; of predictions (`scored`) those with a score."""
    rows = rows.join(videos.select("video", "n_frames"), on="video", how="left", maintain_order="left")
    numbers = pl.all_horizontal(
        pl.col(c).is_finite().fill_null(value=False) & (pl.col(c).abs() <= _FAR).fill_null(value=False)
        for c in CORNERS
    )
    text = pl.concat_str([pl.col(c).cast(pl.String).fill_null("?") for c in CORNERS], separator=", ")
    late = (pl.col("frame") >= pl.col("n_frames")).fill_null(value=False)
    reason = select_first_reason(
        (pl.col("reason").is_not_null(), pl.col("reason")),
        (pl.col("video").is_null() | (pl.col("video") == ""), "no video is named"),
        (
            ~pl.col("frame").is_between(0, MOST_FRAMES).fill_null(value=False),
            f"the frame is no whole number from the first on, up to {MOST_FRAMES:,}",
        ),
        (late, pl.format("frame {} is behind the end of its video of {} frames", "frame", "n_frames")),
        (~numbers, "a corner is no finite number"),
        (pl.col("x2_px") < pl.col("x1_px"), pl.format("the box is upside down, x2 < x1: {}", text)),
        (pl.col("y2_px") < pl.col("y1_px"), pl.format("the box is upside down, y2 < y1: {}", text)),
        (pl.col("track").str.len_bytes() > LONGEST_NAME, "the track's name is too long"),
        (pl.col("label").str.len_bytes() > LONGEST_NAME, "the class's name is too long"),
        (pl.lit(scored) & pl.col("score").is_null(), "a prediction without a score"),
        (
            pl.lit(scored) & ~pl.col("score").is_between(0, 1).fill_null(value=True),
            pl.format("the score should be a number from 0 to 1 and is {}", "score"),
        ),
    )
    rows = rows.with_columns(reason)
    good = rows.filter(pl.col("reason").is_null())
    again = pl.col("track").is_not_null() & ~pl.struct("video", "frame", "track").is_first_distinct()
    second = good.filter(again).with_columns(
        reason=pl.format("a second box of track '{}' in this frame", "track")
    )
    kept = good.filter(~again)
    same = ~pl.struct("video", "frame", "track", "label", *CORNERS).is_first_distinct()
    findings.warn(
        "boxes that stand twice, kept",
        kept.filter(same)["item"].head(1).to_list()[0] if kept.select(same.any()).item() else "",
        int(kept.select(same.sum()).item() or 0),
    )
    bad = pl.concat([rows.filter(pl.col("reason").is_not_null()), second])
    findings.reject_rows("boxes", bad)
    return kept.drop("reason", "n_frames")
