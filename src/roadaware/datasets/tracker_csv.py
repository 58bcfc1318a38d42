"""Csv of boxes: a row for each box, with a header, as trackers, pandas and spreadsheets write it.

Layout: one or several csv files in a folder; a file without a column of videos is the video that it is called.
Columns: `PLACES` lists what a row may hold and the names by which it is guessed; `columns` names others. A file without a
header is read where `columns` gives the places of columns, from 1.
Boxes: corners (`x1, y1, x2, y2`), left, top, width and height, or the middle with width and height (`cx, cy`); `x, y` count
as left and top unless boxes then leave the image and those around the middle do not. Pixels from 0, the right edge excluded,
or shares of the image: numbers up to 1.5 are shares unless `units` says otherwise.
Frames: numbers from 0 where some frame is 0; else `first_frame` says whether they count from 0 or 1. A frame in which there
is nothing has a row with neither id, class nor box; frames without a row count as not looked at unless `frames` is `all`.
Holds: track (any name), class, boxes without either, ignored boxes, rate and size (in `dataset.toml`). Scores are read of
predictions alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import BoxSource, build_box_predictions, build_box_scenes
from roadaware.datasets.csv_boxes import (
    LONGEST_NAME,
    MOST_FRAMES,
    format_corners,
    list_corner_faults,
    list_place_faults,
    list_width_faults,
)
from roadaware.datasets.facts import FACTS, Facts, list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file, select_first_reason
from roadaware.errors import InputError, UsageError
from roadaware.io.csv import decode, from_sheets, iterate_line_batches, parse_quoted_rows, split_cells
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 2
PLACES: dict[str, tuple[str, ...]] = {
    "video": ("video", "video_id", "video_name", "sequence", "seq", "clip", "file", "filename", "camera"),
    "frame": ("frame", "frame_id", "frame_number", "frame_index", "frame_no", "image_id", "fn"),
    "t": ("t_s", "t", "time", "time_s", "timestamp", "timestamp_s", "seconds"),
    "id": ("id", "track_id", "tracker_id", "track", "tube", "obj_id", "object_id", "ped_id", "pid", "person_id", "name"),
    "label": ("label", "class", "class_name", "category", "type", "agent", "class_id", "category_id"),
    "x1": ("x1", "x1_px", "xmin", "x_min", "xtl"),
    "y1": ("y1", "y1_px", "ymin", "y_min", "ytl"),
    "x2": ("x2", "x2_px", "xmax", "x_max", "xbr"),
    "y2": ("y2", "y2_px", "ymax", "y_max", "ybr"),
    "left": ("left", "bb_left", "bbox_left", "x", "box_x"),
    "top": ("top", "bb_top", "bbox_top", "y", "box_y"),
    "cx": ("cx", "xc", "x_center", "center_x", "x_centre", "centre_x", "xcenter"),
    "cy": ("cy", "yc", "y_center", "center_y", "y_centre", "centre_y", "ycenter"),
    "width": ("width", "bb_width", "bbox_width", "w", "box_w"),
    "height": ("height", "bb_height", "bbox_height", "h", "box_h"),
    "ignore": ("ignore", "ignored"),
    "score": ("score", "confidence", "conf", "probability", "prob"),
}  # fmt: skip
"""What a table of boxes holds, and how trackers call it; compared in lower case."""
LAYOUTS: tuple[tuple[str, str, str, str], ...] = (
    ("x1", "y1", "x2", "y2"), ("left", "top", "width", "height"), ("cx", "cy", "width", "height"),
)  # fmt: skip
"""The ways in which four columns are a box; the first that a table has counts."""
UNITS = ("pixels", "shares")
NO_TRACK = ("", "-1", "-1.0", "nan", "NaN", "None")
"""What stands in the column of tracks where a box has none."""
LARGEST_SHARE = 1.5
"""Boxes none of whose corners lie beyond it are taken for shares of the image."""
# A row may be called `id` beside the track's own number, and a frame by the number of its image: which is meant is unclear.
_RIVALS = ("frame", "id")
_NOT_RIVALS = ("name",)
_MOST_COLUMNS = 1024
_WANTED = "A csv of boxes needs its annotations, a file such as 'tracks.csv' with a header,"
_HINT = "Point at the csv file or its folder; `--columns frame=f id=track left=x top=y width=w height=h` says which is which."
_EXAMPLE = "such as --columns frame=image id=who left=bx top=by width=bw height=bh"
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$"
_WORD = re.compile(r"[^\W\d]")


def find(path: Path) -> Source:
    """The tables at `path`: a csv file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".csv")), _WANTED, _HINT, suffix=".csv")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + source.files("", ".csv")


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    columns: str | Mapping[str, str] | None = None,
    units: str | None = None,
    fps: float | None = None,
    size: str | list[int] | None = None,
    classes: str | list[str] | None = None,
    first_frame: int | None = None,
    frames: str = "listed",
    predicted: bool = False,
) -> Scenes | Predictions:
    """All tables as Scenes; what was refused is in `rejected`, with its line.

    Args:
        columns: what a row holds (a key of `PLACES`) to its column, such as `frame=f,id=who`; default: by the names.
        units: `pixels` or `shares` of the image; default: by the numbers.
        fps: frames a second of every video.
        size: of every image, such as 1920x1080; shares without it stay shares of an image of 1 x 1.
        classes: names of classes 0, 1, ... where the column of classes has numbers.
        first_frame: number of a video's first frame: 0 or 1; needed where no frame is 0.
        frames: `listed`: frames without a row are not looked at; `all`: every frame up to the last is.
        predicted: read predictions, whose rows have scores.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read, or it is unclear what it holds.
    """
    if units not in (None, *UNITS):
        raise UsageError(f"units is {' or '.join(UNITS)}, not {to_printable(str(units), 40)}")
    if frames not in ("listed", "all"):
        raise UsageError(f"frames is listed or all, not {to_printable(str(frames), 40)}")
    findings = Findings()
    found = BoxSource("csv", findings, predicted=predicted)
    facts = read_facts(source, fps=fps, size=size, classes=classes, first_frame=first_frame)
    named = parse_columns(columns) or _check_named(facts.columns or {}, source)
    parts: list[pl.DataFrame] = []
    names = source.files("", ".csv")
    notes: dict[str, str] = {}

    def take(name: str, part: Findings) -> None:
        parts.append(_read_file(source, name, named, facts, notes, part, predicted=predicted))

    errors = read_each_file(names, take, findings, progress)
    if not parts:
        raise build_unreadable_error(errors)
    where = source.where(names[0]) if len(names) == 1 else to_printable(str(source.path))
    rows = _name_videos(pl.concat(parts))
    rows = _place_frames(rows, facts.first_frame, where)
    rows = _convert_labels(rows, facts, found)
    rows = _scale(rows, units, facts, where, found)
    _add_videos(rows, facts, frames, found)
    # A row of nothing but empty cells is bare too, and names no frame: it is refused, not passed over.
    found.rows.append(rows.filter(~pl.col("bare") | pl.col("reason").is_not_null()))
    found.notes |= notes
    digest = source.contents(inputs(source))
    return build_box_predictions(found, digest) if predicted else build_box_scenes(found, digest)


def parse_columns(given: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
    """What a row holds to the name of its column.

    Args:
        given: pairs such as `frame=f`, in a list or with commas between, or a mapping.

    Raises:
        UsageError: if something is no such pair, or no row holds it.

    >>> parse_columns("frame=f, id=who")
    {'frame': 'f', 'id': 'who'}
    """
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        texts = given.split(",") if isinstance(given, str) else list(given or ())
        pairs = [(what, column) for what, _, column in (str(text).partition("=") for text in texts)]
    found: dict[str, str] = {}
    for what, column in pairs:
        if not (what and isinstance(column, str) and column.strip()):
            raise UsageError(
                f"columns are named by pairs such as frame=image, not {to_printable(str(what), 60)}"
            )
        if what.strip() not in PLACES:
            raise UsageError(
                f"columns are named for {', '.join(PLACES)}; not for {to_printable(what.strip(), 60)}"
            )
        if what.strip() in found:
            raise UsageError(f"columns name {what.strip()} twice; each once")
        found[what.strip()] = column.strip()
    for layout in LAYOUTS:
        beside = next(
            (each for other in LAYOUTS for each in other if each in found and each not in layout), None
        )
        if beside is not None and all(each in found for each in layout):
            raise UsageError(
                f"columns name {', '.join(layout)}, and {beside}, which is of another way to write a box"
            )
    return found


def _check_named(columns: Mapping[str, str], source: Source) -> dict[str, str]:
    """The columns that `dataset.toml` names.

    Raises:
        InputError: if it names one for something that no row holds.
    """
    try:
        return parse_columns(columns)
    except UsageError as error:
        raise InputError(str(error), where=source.where(FACTS)) from error


def find_columns(
    header: Sequence[str], named: Mapping[str, str], where: str, *, tracked: bool = False
) -> dict[str, int]:
    """What a table holds to the place of its column, as named or as trackers call it.

    Args:
        header: names of columns.
        named: what it holds (a key of `PLACES`) to its column, or to the column's number from 1.
        where: names the file.
        tracked: whether every box must have the id of somebody.

    Raises:
        InputError: if a column is not there, or what is needed cannot be guessed; says how to name it.

    >>> find_columns(["Frame", "track_id", "x", "y", "w", "h"], {}, "tracks.csv")
    {'frame': 0, 'id': 1, 'left': 2, 'top': 3, 'width': 4, 'height': 5}
    """
    lower = [name.strip().lower() for name in header]
    found: dict[str, int] = {}
    for what, column in named.items():
        text = column.strip().lower()
        if text not in lower and not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= len(lower)):
            raise InputError(f"has no column {to_printable(column, 60)}; it has {_list(header)}", where=where)
        found[what] = lower.index(text) if text in lower else int(text) - 1
    taken = set(found.values())
    if len(taken) < len(found):
        places = list(found.values())
        what, other = [each for each, place in found.items() if places.count(place) > 1][:2]
        raise InputError(
            f"the column {to_printable(header[found[what]], 60)!r} is named for {what} and for {other}",
            where=where,
            hint="name each column for one of them",
        )
    # A box is one of the three layouts: columns that are named for another leave no room for guesses of the first.
    named_corners = {each for layout in LAYOUTS for each in layout if each in named}
    for what, names in PLACES.items():
        held = [name for name in names if name in lower and lower.index(name) not in taken]
        if what in found or not held:
            continue
        if named_corners and any(what in layout for layout in LAYOUTS) and not any(
            what in layout and named_corners <= set(layout) for layout in LAYOUTS
        ):  # fmt: skip
            continue
        rivals = [name for name in held if name not in _NOT_RIVALS]
        if what in _RIVALS and len(rivals) > 1:
            raise InputError(
                f"columns {' and '.join(map(repr, rivals))} may both be the {'track' if what == 'id' else what}",
                where=where,
                hint=f"say which: --columns {what}={rivals[1]}",
            )
        found[what] = lower.index(held[0])
        taken.add(found[what])
    layout = next((each for each in LAYOUTS if all(name in found for name in each)), None)
    mixed = ("x1", "y1", "width", "height")
    if layout is None and all(name in found for name in mixed):
        # x1, y1 with a width and a height.
        found |= {"left": found.pop("x1"), "top": found.pop("y1")}
        layout = LAYOUTS[1]
    missing = [what for what, held in (
        ("frame or t", "frame" in found or "t" in found), ("id", not tracked or "id" in found),
        ("x1, y1, x2, y2 or left, top, width, height or cx, cy, width, height", layout is not None),
    ) if not held]  # fmt: skip
    if missing or layout is None:
        raise InputError(
            f"no column is known for {'; '.join(missing)}, which are missing. It has {_list(header)}", where=where,
            hint=f"say which is which, {_EXAMPLE}; a file without a header by numbers, such as frame=1 id=2",
        )  # fmt: skip
    unused = {name for each in LAYOUTS for name in each} - set(layout)
    found = {what: found[what] for what in PLACES if what in found and what not in unused}
    for what, place in found.items():
        if lower.count(lower[place]) > 1:
            raise InputError(
                f"{lower.count(lower[place])} columns are called {to_printable(header[place], 60)!r}",
                where=where,
                hint=f"rename one, or take the header away and say --columns {what}={place + 1} and so on",
            )
    return found


def name_columns(first: Sequence[str], named: Mapping[str, str], where: str) -> tuple[list[str], bool]:
    """The names of columns, and whether the first row holds them; without a header they are numbers from 1.

    Args:
        first: cells of the first row.
        named: as of `find_columns`; a file without a header needs it.
        where: names the file.

    Raises:
        InputError: if cells are not separated by commas, or there is no header and no numbers of columns.

    >>> name_columns(["0", "4", "300"], {"frame": "1", "id": "2"}, "tracks.csv")
    (['1', '2', '3'], False)
    """
    if len(first) == 1 and re.search(r"[;\t]", first[0]):
        raise InputError(
            f"expected commas between cells, found {first[0][:60]!r}",
            where=where,
            hint="write it again with commas",
        )
    if any(_WORD.search(cell) for cell in first):
        return list(first), True
    if not all(column.isdigit() for column in named.values()) or not named:
        raise InputError(
            f"the names of columns are missing: the first row is {to_printable(', '.join(first), 120)}",
            where=where,
            hint="add a header, or give the numbers of columns: --columns frame=1 id=2 left=3 top=4 width=5 height=6",
        )
    return [str(n) for n in range(1, len(first) + 1)], False


def is_box_header(names: Sequence[str]) -> bool:
    """Whether names of columns, in lower case, are those of boxes of a tracker: a frame or time and a corner among them.

    >>> is_box_header(["frame", "id", "x", "y", "w", "h"]), is_box_header(["name", "age"])
    (True, False)
    """
    held = {what for what, known in PLACES.items() if set(known) & {name.strip() for name in names}}
    return bool(held & {"frame", "t"}) and bool(held & {"x1", "left", "cx"})


def _list(header: Sequence[str]) -> str:
    return to_printable(", ".join(header[:30]), 400)


def describe_columns(header: Sequence[str], found: Mapping[str, int]) -> str:
    """Which column was taken for what, for people."""
    return ", ".join(f"{what} is '{to_printable(header[place], 40)}'" for what, place in found.items())


def list_unread(header: Sequence[str], found: Mapping[str, int]) -> str:
    """Names of the columns that were not taken for anything."""
    return to_printable(", ".join(name for n, name in enumerate(header[:60]) if n not in found.values()), 200)


def parse_boxes(text: pl.DataFrame, fps: float | None = None) -> pl.DataFrame:
    """Rows of text with `frame`, `track` and corners as numbers, and `reason` where a row cannot be taken.

    Args:
        text: (n) columns of text by keys of `PLACES`; of the four columns of a box those of one of `LAYOUTS`; `video`.
        fps: frames a second, by which times become frames where there is no column of frames.

    Returns:
        the table with `frame` (Int64), `track` (null where there is none), `CORNERS` in Float64, `bare` (whether the row
        holds no box, and says only that its frame was looked at), and `reason` (null where there is none).
    """
    layout = next(each for each in LAYOUTS if all(name in text.columns for name in each))
    numbers = [_parse_number(name).alias(f"n_{name}") for name in layout]
    place = "frame" if "frame" in text.columns else "t"
    raw = pl.col(place)
    number = (
        pl.when(raw.str.contains(r"^\d{1,9}(\.0*)?$"))
        .then(raw.str.replace(r"\.0*$", ""))
        .cast(pl.Int64, strict=False)
        if place == "frame"
        else (_parse_number("t") * (fps or 1.0)).round().cast(pl.Int64, strict=False)
    )
    table = text.with_columns(raw.alias("place"), *numbers).with_columns(number.alias("frame"))
    for name in ("id", "label", "ignore"):
        if name not in table.columns:
            table = table.with_columns(pl.lit("").alias(name))
    table = table.with_columns(_list_corners(layout)).with_columns(
        track=pl.when(~pl.col("id").is_in(NO_TRACK)).then(pl.col("id").str.replace(r"^(\d+)\.0+$", "$1")),
        bare=pl.all_horizontal(pl.col(name) == "" for name in layout)
        & pl.col("id").is_in(NO_TRACK)
        & (pl.col("label") == ""),
        item=pl.format("{} frame {} id {} box {}", "video", "place", "id", format_corners(layout)).str.slice(
            0, 120
        ),
    )
    boxed = ~pl.col("bare")
    faults = list_corner_faults(layout, boxed)
    return table.with_columns(
        select_first_reason(
            *list_place_faults("video", "place", called="frame" if place == "frame" else "time"), *faults
        )
    )


def _parse_number(name: str) -> pl.Expr:
    # Polars also reads inf and nan, which are refused with their text.
    return pl.when(pl.col(name).str.contains(_NUMBER)).then(pl.col(name)).cast(pl.Float64, strict=False)


def _list_corners(layout: Sequence[str]) -> list[pl.Expr]:
    """Corners of boxes as columns, of columns of text that were read as numbers."""
    first, second, third, fourth = (pl.col(f"n_{name}") for name in layout)
    if layout == LAYOUTS[0]:
        parts = (first, second, third, fourth)
    elif layout == LAYOUTS[1]:
        parts = (first, second, first + third, second + fourth)
    else:
        parts = (first - third / 2, second - fourth / 2, first + third / 2, second + fourth / 2)
    # What sums and halves lose.
    return [part.round(12).alias(corner) for part, corner in zip(parts, CORNERS, strict=True)]


def _read_file(
    source: Source,
    name: str,
    named: Mapping[str, str],
    facts: Facts,
    notes: dict[str, str],
    findings: Findings,
    *,
    predicted: bool,
) -> pl.DataFrame:
    """The rows of a file as text and numbers; see `parse_boxes`. Of predictions with their score.

    Raises:
        InputError: if it cannot be read, or it is unclear what it holds.
    """
    where = source.where(name)
    lines = list(iterate_line_batches(decode(source.read(name), where), where))
    if not lines:
        raise InputError("expected a header and rows of boxes, found nothing", where=where, hint=_HINT)
    _, header = next(parse_quoted_rows(lines[0]["text"][0], where))
    width = len(header)
    if width > _MOST_COLUMNS:
        raise InputError(f"a header of {width:,} columns; at most {_MOST_COLUMNS:,} are read", where=where)
    cells = pl.concat([split_cells(part, where, width) for part in lines])
    header, has_names = name_columns(header, named, where)
    cells = cells.slice(int(has_names))
    findings.warn("files without a row behind their header", name, int(cells.is_empty()))
    found = find_columns(header, named, where)
    # What is not read is not said to be taken for anything: times beside frames, scores of ground truth.
    if "frame" in found:
        found.pop("t", None)
    if not predicted:
        found.pop("score", None)
    elif "score" not in found:
        hint = "name it: --columns score=c" if named or found else _HINT
        raise InputError(
            f"no column is known for score, which is missing. It has {_list(header)}", where=where, hint=hint
        )
    if "frame" not in found and facts.fps is None:
        raise InputError(
            "has times and no frames", where=where, hint=f"--option fps=25, or the line `fps = 25` in {FACTS}"
        )
    notes["columns"] = describe_columns(header, found)
    if unread := list_unread(header, found):
        notes["columns_not_read"] = unread
    text = cells.select(
        "line", "cells", *(pl.col(f"c{place}").fill_null("").alias(what) for what, place in found.items())
    )
    stem = escape_surrogates(PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix))
    if "video" not in found:
        text = text.with_columns(video=pl.lit(stem))
    text = text.with_columns(from_sheets(pl.col(c)) for c in ("video", "id", "label") if c in text.columns)
    rows = parse_boxes(text, facts.fps)
    wide = select_first_reason(*list_width_faults((width,)))
    rows = rows.with_columns(reason=pl.coalesce(wide, "reason"), file=pl.lit(escape_surrogates(name)))
    bare_xy = (
        (header[found["left"]].strip().lower(), "left" in named) == ("x", False) if "left" in found else False
    )
    return rows.select(
        "file", "line", "item", "video", "frame", "place", "track", "label", *CORNERS, "bare", "reason",
        ignore=_parse_flag("ignore"), unclear=pl.lit(bare_xy),
        score=_parse_number("score") if predicted else pl.lit(None, pl.Float64),
    )  # fmt: skip


def _parse_flag(name: str) -> pl.Expr:
    return pl.col(name).str.to_lowercase().str.replace(r"\.0*$", "").is_in(["1", "true", "yes"])


def _name_videos(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with names of videos that can be printed; names with other signs in them are escaped."""
    names = rows["video"].unique().drop_nulls().to_list()
    other = {name: shown for name in names if (shown := to_printable(name, LONGEST_NAME + 1)) != name}
    return rows.with_columns(pl.col("video").replace(other)) if other else rows


def _place_frames(rows: pl.DataFrame, first: int | None, where: str) -> pl.DataFrame:
    """The rows with frames from 0.

    Raises:
        InputError: if it is unclear whether frames count from 0 or from 1.
    """
    # Of the rows that are refused for something else, too: a broken box in frame 0 is one in frame 0.
    lowest = rows["frame"].min()
    if first is None and isinstance(lowest, int) and lowest > 0:
        raise InputError(
            f"the lowest frame is {lowest}: it is unclear whether frames count from 0 or from 1",
            where=where,
            hint=f"--option first_frame=1 (or 0), or the line `first_frame = 1` in {FACTS}",
        )
    early = pl.format("the frame should be a whole number from {} and is '{}'", pl.lit(first or 0), "place")
    return rows.with_columns(pl.col("frame") - (first or 0)).with_columns(
        reason=pl.when(pl.col("reason").is_null() & (pl.col("frame") < 0)).then(early).otherwise("reason")
    )


def _convert_labels(rows: pl.DataFrame, facts: Facts, found: BoxSource) -> pl.DataFrame:
    """The rows with names of classes; numbers are places in the list of classes where there is one."""
    label = pl.when(pl.col("label") != "").then(pl.col("label"))
    rows = rows.with_columns(label=label)
    if not facts.classes:
        return rows
    found.classes = list(facts.classes)
    known = {str(n): name for n, name in enumerate(facts.classes)} | {name: name for name in facts.classes}
    named = (
        pl.col("label")
        .str.replace(r"^(\d+)\.0+$", "$1")
        .replace_strict(known, default=None, return_dtype=pl.String)
    )
    other = pl.col("label").is_not_null() & named.is_null() & pl.col("reason").is_null()
    why = pl.format(
        f"class '{{}}' is none of the {len(facts.classes)} classes", pl.col("label").str.slice(0, 60)
    )
    return rows.with_columns(reason=pl.when(other).then(why).otherwise("reason"), label=named)


def _scale(rows: pl.DataFrame, units: str | None, facts: Facts, where: str, found: BoxSource) -> pl.DataFrame:
    """The rows with corners in pixels, or in shares of images of 1 x 1 whose size nobody knows.

    Raises:
        InputError: if it is unclear whether numbers are pixels, or what x and y are.
    """
    good = rows.filter(pl.col("reason").is_null() & ~pl.col("bare"))
    largest = good.select(pl.max_horizontal(pl.col(*CORNERS).abs()).max()).item()
    if units is None and largest is not None and largest <= LARGEST_SHARE:
        if good.select(pl.all_horizontal((pl.col(c) == pl.col(c).round()).all() for c in CORNERS)).item():
            raise InputError(
                f"all numbers of boxes are whole and none is beyond {LARGEST_SHARE}: it is unclear whether they are pixels",
                where=where,
                hint="--option units=pixels, or units=shares where they are shares of the image",
            )
        units = "shares"
    size = (1, 1) if units == "shares" else facts.size_px
    if size is not None and good["unclear"].any():
        _check_middle(good.filter("unclear"), size, where)
    found.notes["units"] = units or "pixels"
    if units != "shares":
        return rows
    if facts.size_px is None:
        found.notes["unit_boxes"] = True
        return rows
    sides = (*facts.size_px, *facts.size_px)
    return rows.with_columns((pl.col(c) * side).round(9) for c, side in zip(CORNERS, sides, strict=True))


def _check_middle(rows: pl.DataFrame, size: tuple[int, int], where: str) -> None:
    """Refuse `x, y, w, h` whose boxes leave the image as left and top, and do not around the middle.

    Raises:
        InputError: if that is so.
    """
    wide, high = (pl.col(b) - pl.col(a) for a, b in (("x1_px", "x2_px"), ("y1_px", "y2_px")))
    room_x, room_y = (max(1e-3, 0.002) * side for side in size)
    beyond = (pl.col("x2_px") > size[0] + room_x) | (pl.col("y2_px") > size[1] + room_y)
    around = (
        (pl.col("x1_px") - wide / 2 < -room_x)
        | (pl.col("x1_px") + wide / 2 > size[0] + room_x)
        | (pl.col("y1_px") - high / 2 < -room_y)
        | (pl.col("y1_px") + high / 2 > size[1] + room_y)
    )
    out, out_around = rows.select(beyond.sum(), around.sum().alias("around")).row(0)
    if out and not out_around:
        raise InputError(
            f"it is unclear what x and y are: as left and top {out:,} boxes reach out of the image, as the middle none",
            where=where,
            hint="--columns cx=x cy=y for the middle, or left=x top=y",
        )


def _add_videos(rows: pl.DataFrame, facts: Facts, frames: str, found: BoxSource) -> None:
    """The videos in the order of the files, and the frames that somebody looked at."""
    size = facts.size_px or ((1, 1) if found.notes.get("unit_boxes") else (None, None))
    seen = rows.filter(pl.col("reason").is_null() & pl.col("frame").is_between(0, MOST_FRAMES))
    held = seen.group_by("video", maintain_order=True).agg(pl.col("frame").unique())
    for video, listed in held.iter_rows():
        count = max(listed) + 1
        found.videos.append(
            {"video": video, "width_px": size[0], "height_px": size[1], "fps": facts.fps, "n_frames": count}
        )
        found.frames[video] = range(count) if frames == "all" else listed
    named = {row["video"] for row in found.videos}
    # A video all of whose rows are refused is there all the same.
    for video in rows["video"].unique(maintain_order=True):
        if video and len(video.encode()) <= LONGEST_NAME and video not in named:
            found.videos.append(
                {"video": video, "width_px": size[0], "height_px": size[1], "fps": facts.fps, "n_frames": 0}
            )
            found.frames[video] = []
