"""Tracks and boxes of CVAT's video format: joined and checked, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
from lxml import etree

from roadaware.datasets.issues import Findings, select_first_reason
from roadaware.errors import InputError
from roadaware.io.sources import Source, to_printable
from roadaware.io.xml import (
    Document,
    Record,
    Tables,
    Walker,
    add_line_numbers,
    decode,
    find_elements,
    find_text,
    scan_records,
)

# One kind of file over a batch of videos: read, scanned, and what is wrong with it reported.

Place = tuple[int, str]


@dataclass(frozen=True)
class Sheet:
    """The records of one kind of file.

    Args:
        rows: the records of all files that could be read, `document` being the place of their video.
        roots: place of a video to the root of its file, where that could be read.
        errors: place of a video to why its file could not be read.
    """

    rows: pl.DataFrame
    roots: dict[int, etree._Element]
    errors: dict[int, InputError]
    documents: list[Document]
    scanned: list[bool]
    record: Record
    root: str

    def refuse(self, table: str, bad: pl.DataFrame, findings: Findings) -> None:
        """Put rows (with `document`, `row`, `line`, `item`, `reason`) among the rejected ones, with lines."""
        if len(bad):
            found = add_line_numbers(bad, self.documents, self.scanned, self.record, root=self.root)
            findings.reject_rows(table, found)

    @property
    def files(self) -> list[str]:
        """The name of the file at every place."""
        return [document.name for document in self.documents]


def read_sheet(
    source: Source,
    names: Sequence[str | None],
    record: Record | Callable[[str], Record],
    root: str,
    findings: Findings,
    walker: Walker | None = None,
) -> Sheet:
    """Read one file for every video; a file that cannot be read is rejected whole and named.

    Args:
        source: where the files lie.
        names: the file of each video, None where there is none.
        record: what to look for, or what tells that from the text of the first file.
        root: the name every file's root must have.
        findings: counts the files, and takes those that cannot be read.
        walker: who reads what the scanner does not know.
    """
    errors: dict[int, InputError] = {}
    documents = [
        Document(name or "", source.where(name or ""), _text(source, place, name, errors))
        for place, name in enumerate(names)
    ]
    there = [place for place, name in enumerate(names) if name is not None and place not in errors]
    if not isinstance(record, Record):
        record = record(documents[there[0]].text if there else "")
    tables: Tables = scan_records([documents[place] for place in there], record, root=root, walker=walker)
    rows = tables.rows.with_columns(
        pl.col("document").replace_strict(dict(enumerate(there)), return_dtype=pl.UInt32)
        if len(there) != len(names)
        else pl.col("document")
    )
    roots: dict[int, etree._Element] = {}
    scanned = [False] * len(names)
    for place, tree, quick in zip(there, tables.roots, tables.scanned, strict=True):
        scanned[place] = quick
        if isinstance(tree, InputError):
            errors[place] = tree
        else:
            roots[place] = tree
    findings.read["files"] += len(roots)
    for place in sorted(errors):
        findings.reject_file(documents[place].name, errors[place])
    return Sheet(rows, roots, errors, documents, scanned, record, root)


def split_rejected(rows: pl.DataFrame, key: Sequence[str], second: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part rows with a `reason` into those to take and those to refuse; of rows with one key the first stays.

    Args:
        rows: in the order of the files, with `reason` null where nothing is wrong.
        key: columns that must not repeat among the rows to take.
        second: the reason for those that repeat one.
    """
    good = rows.filter(pl.col("reason").is_null())
    # Among the good rows alone: a refused row must not push out a good one of the same key.
    again = ~good.select(pl.struct(key).is_first_distinct()).to_series()
    bad = rows.filter(pl.col("reason").is_not_null())
    if again.any():
        bad = pl.concat([bad, good.filter(again).with_columns(reason=pl.lit(second))])
        good = good.filter(~again)
    return good.drop("reason"), bad.sort("document", "row")


def check_frame_records(raw: str, frame: str, record: str, owner: str) -> list[tuple[pl.Expr, str | pl.Expr]]:
    """Problems of a record's owner and frame number.

    Args:
        raw: column of the frame number as text.
        frame: column of the number.
        record: name of the record's element.
        owner: name of the element it belongs into.
    """
    number = pl.col(frame)
    return [
        (pl.col("owner").is_null(), f"<{record}> outside <{owner}>"),
        (pl.col(raw).is_null(), "no frame number"),
        (number.is_null(), pl.format("frame '{}' is no whole number", pl.col(raw).str.slice(0, 40))),
        (
            (number < 0) | (number >= pl.col("n_frames")),
            pl.format("frame {} is outside the video of {} frames", number, "n_frames"),
        ),
    ]


def parse_frame_rows(sheet: Sheet, lengths: pl.DataFrame, findings: Findings) -> pl.DataFrame:
    """The rows of a file with one record per frame, `frame` being their number; the others are refused.

    Args:
        sheet: its records carry the frame number in the column `id`.
        lengths: `document` and `n_frames` of every video.
        findings: takes what is refused, as rows of `frames`.
    """
    rows = sheet.rows.join(lengths, on="document", how="inner", maintain_order="left")
    rows = rows.with_columns(pl.col("id").cast(pl.Int64, strict=False).alias("frame"))
    reasons = check_frame_records("id", "frame", sheet.record.element, sheet.record.owner)
    rows = rows.with_columns(select_first_reason(*reasons))
    good, bad = split_rejected(rows, ["document", "frame"], "a second record for this frame")
    findings.read["frames"] += len(bad)
    item = pl.format("frame {}", pl.col("id").fill_null("?"))
    sheet.refuse("frames", bad.with_columns(item=item), findings)
    return good


def _text(source: Source, place: int, name: str | None, errors: dict[int, InputError]) -> str:
    if name is None:
        return ""
    try:
        return decode(source.read(name), source.where(name))
    except InputError as error:
        errors[place] = error
        return ""


MOST_FRAMES = 100_000
MOST_PIXELS = 65_535
TRACK = ("document", "owner")
CORNERS = {"x1_px": "xtl", "y1_px": "ytl", "x2_px": "xbr", "y2_px": "ybr"}
EVENT_SOURCE = ("annotated", "fallback", "none")


def read_frame_count(tree: etree._Element, where: str) -> int:
    """How many frames the video has, as the file's head says.

    Raises:
        InputError: if that is missing, no number, or out of reason.
    """
    size = find_text(tree, "meta/task/size")
    frames = _count(size)
    if frames is None or frames > MOST_FRAMES:
        message = f"meta/task/size should be the number of frames, 1 to {MOST_FRAMES}, and is {format_raw_text(size)}"
        raise InputError(message, where=where)
    return frames


def read_image_size(tree: etree._Element, where: str, findings: Findings) -> tuple[int | None, int | None]:
    """Width and height of the original image in pixels, null (with a warning) where the head has none."""
    pixels: list[int | None] = []
    for side in ("width", "height"):
        text = find_text(tree, f"meta/task/original_size/{side}")
        count = _count(text)
        pixels.append(count if count is not None and count <= MOST_PIXELS else None)
        if pixels[-1] is None:
            what = "image sizes that are no number of pixels, kept as null"
            findings.warn(what, f"{where}: {format_raw_text(text)}")
    return pixels[0], pixels[1]


def list_cvat_tracks(sheet: Sheet, videos: pl.DataFrame, ids: Sequence[str] = ("id",)) -> pl.DataFrame:
    """Every track, with its label, the first ids its boxes name, and what is wrong with it.

    Args:
        sheet: the annotations.
        videos: `document` of those that were taken.
        ids: columns of the boxes that belong to the track; `id` must be among them.
    """
    taken = set(videos["document"])
    listed = [
        (place, owner, element.get("label"), element.sourceline)
        for place, root in sorted(sheet.roots.items())
        if place in taken
        for owner, element in enumerate(find_elements(root, sheet.record.owner))
    ]
    schema = {"document": pl.UInt32, "owner": pl.UInt32, "track_label": pl.String, "line": pl.Int64}
    tracks = pl.DataFrame(listed, schema=schema, orient="row")
    first = sheet.rows.group_by(TRACK, maintain_order=True).agg(pl.col(*ids).drop_nulls().first())
    tracks = tracks.join(first, on=TRACK, how="left", maintain_order="left")
    named = pl.col("id").is_not_null() & (pl.col("id") != "")
    return tracks.with_columns(
        select_first_reason(
            (~named, "no box of the track names its id"),
            (
                ~pl.struct("document", "id").is_first_distinct(),
                "a second track with an id that this video already has",
            ),
        ).alias("track_reason")
    )


def select_valid_boxes(
    sheet: Sheet, tracks: pl.DataFrame, videos: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """The boxes that are whole, inside their video, and alone in their track and frame.

    Args:
        sheet: the annotations.
        tracks: see `list_cvat_tracks`.
        videos: `document` and `n_frames` of those that were taken.
        findings: counts the boxes, and takes what is refused.

    Returns:
        The raw columns, and `number` (the frame), the corners and `track_label`.
    """
    # CVAT marks with it that a track is not in view; the published loaders leave such boxes out.
    outside = sheet.rows["outside"] == "1"
    findings.left_out["boxes outside the image (outside=1)"] += int(outside.sum())
    rows = sheet.rows.filter(~outside.fill_null(value=False))
    findings.read["boxes"] += len(rows)
    known = tracks.select(*TRACK, pl.col("id").alias("track_id"), "track_label", "track_reason")
    rows = rows.join(videos.select("document", "n_frames"), on="document", how="left", maintain_order="left")
    rows = rows.join(known, on=TRACK, how="left", maintain_order="left").with_columns(
        pl.col("frame").cast(pl.Int64, strict=False).alias("number"),
        *(pl.col(raw).cast(pl.Float32, strict=False).alias(name) for name, raw in CORNERS.items()),
    )
    rows = rows.with_columns(_box_reason(sheet))
    good, bad = split_rejected(rows, [*TRACK, "number"], "a second box of this track in this frame")
    item = pl.format("track '{}', frame '{}'", pl.col("id").fill_null("?"), pl.col("frame").fill_null("?"))
    sheet.refuse("boxes", bad.with_columns(item=item), findings)
    return good


def select_valid_tracks(
    sheet: Sheet, tracks: pl.DataFrame, boxes: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """The tracks that have boxes; the others are refused.

    Args:
        sheet: the annotations.
        tracks: see `list_cvat_tracks`.
        boxes: see `select_valid_boxes`.
        findings: counts the tracks, and takes what is refused.
    """
    findings.read["tubes"] += len(tracks)
    held = boxes.select(*TRACK, pl.lit(value=True).alias("held")).unique()
    empty = pl.when(pl.col("held").is_null()).then(pl.lit("none of its boxes could be taken"))
    tracks = tracks.join(held, on=TRACK, how="left", maintain_order="left").with_columns(
        reason=pl.coalesce("track_reason", empty)
    )
    bad = tracks.filter(pl.col("reason").is_not_null())
    files = pl.Series("file", [sheet.files[place] for place in bad["document"]], dtype=pl.String)
    item = pl.format("track '{}'", pl.col("id").fill_null("?"))
    findings.reject_rows("tubes", bad.with_columns(files, item=item))
    return tracks.filter(pl.col("reason").is_null()).drop("reason", "track_reason", "held", "line")


def compute_tube_intervals(boxes: pl.DataFrame) -> pl.DataFrame:
    """For each tube the interval of its boxes, and `late_frame`, its third box from the end.

    Args:
        boxes: `tube` and `frame`, sorted by both.
    """
    return boxes.group_by("tube", maintain_order=True).agg(
        pl.col("frame").first().alias("start_frame"),
        (pl.col("frame").last() + 1).alias("end_frame"),
        # The published `frames[-3]`, or the last one of tracks that are too short for it.
        pl.when(pl.len() > 3)
        .then(pl.col("frame").get(-3, null_on_oob=True))
        .otherwise(pl.col("frame").last())
        .alias("late_frame"),
    )


def add_event_frame(tubes: pl.DataFrame) -> pl.DataFrame:
    """The frame of the event and where it comes from.

    Where the crossing point is annotated, that is the event. A pedestrian that crosses without one gets the
    third frame from the track's end (the last of a track of at most three boxes): the published fallback.
    """
    annotated = pl.col("crossing_point").is_not_null()
    crosses = (pl.col("crossing") == "crossing").fill_null(value=False)
    fallback = crosses & pl.col("late_frame").is_not_null()
    source = pl.when(annotated).then(pl.lit("annotated")).when(fallback).then(pl.lit("fallback"))
    return tubes.with_columns(
        pl.when(annotated).then("crossing_point").when(fallback).then("late_frame").alias("event_frame"),
        source.otherwise(pl.lit("none")).cast(pl.Enum(EVENT_SOURCE)).alias("event_source"),
    )


def format_raw_text(text: str | None) -> str:
    """A raw text between quotes for messages, or that it is missing."""
    return "missing" if text is None else f"'{to_printable(text, 40)}'"


def _count(text: str | None) -> int | None:
    """A plain whole number from 1, of at most nine digits."""
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return (int(text) or None) if text is not None and plain else None


def _box_reason(sheet: Sheet) -> pl.Expr:
    corners = [pl.col(raw) for raw in CORNERS.values()]
    text = pl.format("(xtl, ytl, xbr, ybr = {}, {}, {}, {})", *corners)
    return select_first_reason(
        *check_frame_records("frame", "number", sheet.record.element, sheet.record.owner),
        (pl.any_horizontal(corner.is_null() for corner in corners), "a coordinate is missing"),
        (
            ~pl.all_horizontal(pl.col(name).is_finite().fill_null(value=False) for name in CORNERS),
            pl.format("a coordinate is no finite number {}", text),
        ),
        (
            (pl.col("x1_px") > pl.col("x2_px")) | (pl.col("y1_px") > pl.col("y2_px")),
            pl.format("upside down {}", text),
        ),
        (pl.col("track_reason").is_not_null(), pl.format("its track is refused: {}", "track_reason")),
        (
            pl.col("id").is_null() | (pl.col("id") != pl.col("track_id")),
            pl.format("the id differs from '{}', the first of its track", "track_id"),
        ),
    )
