"""AVA: actions of persons in one frame a second, boxes in shares of the image, several actions for a box.

Gu and others, "AVA: A video dataset of spatio-temporally localized atomic visual actions", CVPR 2018;
annotations under CC BY 4.0, research.google.com/ava.

Takes a csv without header (`video,timestamp,x1,y1,x2,y2,action[,person]`), or a folder or zip with such files
and, found by their names, a label map (`*action_list*`, `*.pbtxt`) and excluded moments (`*excluded*.csv`).
Videos are not needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from roadaware.datasets import READERS, Progress
from roadaware.datasets.csv_boxes import (
    LONGEST_NAME,
    format_corners,
    format_either,
    list_corner_faults,
    list_place_faults,
    list_width_faults,
)
from roadaware.datasets.issues import (
    Findings,
    build_unreadable_error,
    find_common_reason,
    format_text_column,
    read_each_file,
    select_first_reason,
)
from roadaware.errors import InputError
from roadaware.io.csv import decode, is_blank, iterate_line_batches, parse_quoted_rows, split_cells
from roadaware.io.sources import FileSource, Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

# Label maps: which number stands for which action, as protocol text or csv, read line by line.

LABEL_MAP_MOST_BYTES = 1 << 20
_TOKEN = re.compile(r"\b(name)\s*:\s*(?:\"([^\"]*)\"|'([^']*)')|\b(?:label_id|id)\s*:\s*([^\s,}]+)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_LABEL_MAP_HINT = (
    'a label map has `item { name: "..." id: 1 }` for every action, `label_id` for `id`, or is a csv of '
    "id,name"
)
_COLON = re.compile(r"\s*[0-9]+\s*:", re.ASCII)
_IDS, _NAMES = ("id", "label_id", "action_id"), ("name", "label_name", "action_name", "label", "action")


@dataclass(frozen=True)
class LabelMap:
    """The actions of a set in the order of its map.

    Args:
        ids: their numbers in the files.
        names: what they are called, each differently.
    """

    ids: tuple[int, ...]
    names: tuple[str, ...]


def read_labels(data: bytes, where: str, findings: Findings) -> LabelMap:
    """The label map of a file.

    It is protocol text, lines of `id: name`, or rows of `id,name`, with or without a header for the columns.
    An action without a name of its own is called by its number; equal names are distinguished by it.

    Args:
        data: the file's bytes.
        where: names it in errors.
        findings: takes names that stand twice and numbers without one.

    Raises:
        InputError: if it is too large, no text, holds no number, or one number twice.
    """
    if len(data) > LABEL_MAP_MOST_BYTES:
        raise InputError(f"a label map of {len(data):,} bytes; at most {LABEL_MAP_MOST_BYTES:,}", where=where)
    ids: list[int] = []
    names: list[str] = []
    text = decode(data, where)
    for place, number, name in _items(text) if _TOKEN.search(text) else _label_rows(text, where):
        if not _NUMBER.fullmatch(number):
            message = f"an id should be a whole number from 0 and is '{to_printable(number, 40)}'"
            raise InputError(message, where=f"{where}:{place}", hint=_LABEL_MAP_HINT)
        if int(number) in ids:
            message = f"the id {int(number)} stands twice"
            raise InputError(message, where=f"{where}:{place}", hint=_LABEL_MAP_HINT)
        if name is None:
            findings.warn("actions of the label map without a name of their own", f"{where}:{place}")
        ids.append(int(number))
        names.append(to_printable(name, 255) if name else number)
    if not ids:
        raise InputError("no action in the label map", where=where, hint=_LABEL_MAP_HINT)
    return LabelMap(tuple(ids), _apart(ids, names, findings))


def _items(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, number and name of each item of protocol text; None where no name of its own stands before it."""
    name: str | None = None
    for place, line in enumerate(text.split("\n"), 1):
        for token in _TOKEN.finditer(line):
            if token[1]:
                name = token[2] if token[2] is not None else token[3]
                continue
            yield place, token[4], name
            name = None


def _label_rows(text: str, where: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, number and name of each row of csv, or of lines `id: name`.

    Raises:
        InputError: if the first row is neither a number and a name nor a header, or a quote is not closed.
    """
    if _COLON.match(text):
        for place, line in enumerate(text.split("\n"), 1):
            number, _, name = line.partition(":")
            if line.strip():
                yield place, number.strip(), name.strip() or None
        return
    at = (0, 1)
    for count, (place, cells) in enumerate(parse_quoted_rows(text, where)):
        if count == 0 and not _NUMBER.fullmatch(cells[0]):
            at = _columns(cells, f"{where}:{place}")
            continue
        number, name = (cells[column] if column < len(cells) else "" for column in at)
        yield place, number, name or None


def _columns(header: list[str], where: str) -> tuple[int, int]:
    """Where a header has the number and the name.

    Raises:
        InputError: if it lacks one.
    """
    names = [name.lower() for name in header]
    found = [next((names.index(each) for each in known if each in names), None) for known in (_IDS, _NAMES)]
    if found[0] is None or found[1] is None:
        raise InputError(
            f"no action in the label map: it begins with '{to_printable(','.join(header), 80)}'",
            where=where,
            hint=_LABEL_MAP_HINT,
        )
    return found[0], found[1]


def build_numeric_labels(ids: set[int]) -> LabelMap:
    """The actions of a set without a label map: called by their numbers."""
    ordered = sorted(ids)
    return LabelMap(tuple(ordered), tuple(str(number) for number in ordered))


def _apart(ids: list[int], names: list[str], findings: Findings) -> tuple[str, ...]:
    """The names, those that stand again with their number behind them."""
    seen: set[str] = set()
    apart = []
    for number, name in zip(ids, names, strict=True):
        own = name
        while own in seen:
            own = f"{own} ({number})"
        seen.add(own)
        apart.append(own)
    twice = [name for name, count in Counter(names).items() if count > 1]
    for name in twice:
        findings.warn("names of actions that the label map gives twice, told apart by their ids", name)
    return tuple(apart)


# Rows of AVA's csv files as numbers: video, moment, box and action, and what is wrong with the others.

OUT_OF_PICTURE = "boxes that reach out of the image (0 to 1), kept as they are"
# Shares of the image may reach over its edge; numbers beyond this are pixels.
_NEAR = (-1.0, 2.0)
_COLUMNS = "a row is video,timestamp,x1,y1,x2,y2,action[,person or score]"
_BOX = ("c2", "c3", "c4", "c5")
# AVA writes seconds as 0902; tools that go through floats write 902.0.
_FRAME = pl.col("c1").str.replace(r"\.0*$", "").cast(pl.Int64, strict=False).alias("frame")
_PLACE = list_place_faults("c0", "c1", called="timestamp")
_ITEM = pl.format("{}, {}", *[pl.col(c).fill_null("?").str.slice(0, 60) for c in ("c0", "c1")]).alias("item")


def read_rows(data: bytes, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The rows of a csv of AVA in the order of the file; those that cannot be taken are refused.

    Args:
        data: the file's bytes.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `boxes`) and counts it.

    Returns:
        See `parse_box_rows`.

    Raises:
        InputError: if the file is no text, empty, has a line too long or a quote not closed, most of its rows
            have neither 7 nor 8 cells, or as `parse_box_rows`.
    """
    pieces = (split_cells(lines, where, 8) for lines in iterate_line_batches(decode(data, where), where))
    return parse_box_rows(pieces, file, where, findings)


def parse_box_rows(
    pieces: Iterable[pl.DataFrame],
    file: str,
    where: str,
    findings: Findings,
    *,
    due: tuple[int, ...] = (7, 8),
) -> pl.DataFrame:
    """The rows whose place, box and action can be taken, in their order; others are refused.

    Args:
        pieces: `line`, `cells` (how many there are), `c0` to `c7` (as text).
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `boxes`) and counts it.
        due: how many cells a row may have.

    Returns:
        (n) `line`, `video` (text), `frame`, the four corners (null for a moment without a box), `action`
        (null for a box without one), `last` (the eighth cell, null where there is none or it is empty).

    Raises:
        InputError: if most rows have another number of cells, most boxes are in pixels, or no row can be
            taken.
    """
    held, refused, seen, known = [], [], _Seen(due), _Names()
    for piece in pieces:
        values = _values(piece, due)
        seen.add(values)
        bad = pl.col("reason").is_not_null()
        refused.append(values.filter(bad).select("line", "reason", "item"))
        good = values.filter(~bad)
        video = known.codes(good["c0"])
        held.append(good.select("line", video, "frame", *CORNERS, "action", last="c7"))
    seen.judge(where)
    bad_rows, rows = pl.concat(refused), pl.concat(held)
    findings.read["boxes"] += len(bad_rows)
    findings.reject_rows("boxes", bad_rows.with_columns(file=pl.lit(file)))
    if rows.is_empty() and len(bad_rows):
        reason, count = find_common_reason(bad_rows["reason"])
        message = (
            f"no row can be read; {count:,} of {len(bad_rows):,} because of this: {to_printable(reason)}"
        )
        raise InputError(message, where=f"{where}:{bad_rows['line'][0]}", hint=_COLUMNS)
    rows = rows.with_columns(known.names().gather(rows["video"]).alias("video"))
    out = rows.select(out=pl.any_horizontal(~pl.col(*CORNERS).is_between(0, 1)))["out"]
    if count := int(out.sum()):
        findings.warn(OUT_OF_PICTURE, f"{file}:{rows['line'][int(out.arg_true()[0])]}", count)
    return rows


@dataclass
class _Seen:
    """Statistics of the rows of a file.

    Args:
        due: how many cells a row may have.
        cells: number of cells to the rows that have as many.
        first: number of cells to the first line that has as many.
        boxed: rows with a box.
        far: rows with a box in pixels.
        example: the line and corners of the first of them.
    """

    due: tuple[int, ...]
    cells: Counter[int] = field(default_factory=Counter)
    first: dict[int, int] = field(default_factory=dict)
    boxed: int = 0
    far: int = 0
    example: tuple[int, str] = (0, "")

    def add(self, values: pl.DataFrame) -> None:
        """Count some more rows."""
        for cells, count, line in values.group_by("cells").agg(pl.len(), pl.col("line").min()).iter_rows():
            self.cells[cells] += count
            self.first[cells] = min(line, self.first.get(cells, line))
        boxed = values.filter(pl.all_horizontal(pl.col(*CORNERS).is_finite()))
        far = boxed.filter(pl.max_horizontal(CORNERS) > _NEAR[1])
        if len(far) and not self.far:
            self.example = far.select("line", format_corners(_BOX)).row(0)
        self.boxed += len(boxed)
        self.far += len(far)

    def judge(self, where: str) -> None:
        """Refuse a file most of whose rows have another number of cells, or are in pixels.

        Raises:
            InputError: saying which.
        """
        if not self.cells:
            return
        # The commonest number of cells; of equally common ones one that is due.
        usual = min(self.cells, key=lambda cells: (-self.cells[cells], cells not in self.due, cells))
        if usual not in self.due:
            what = "missing" if usual < self.due[0] else "too many"
            message = f"columns are {what}: expected {format_either(self.due)} in a row, found {usual}"
            hint = _COLUMNS if 8 in self.due else "a row has as many cells as the header names"
            raise InputError(message, where=f"{where}:{self.first[usual]}", hint=hint)
        # One odd row is refused by itself; where most are, the file is in pixels.
        if 2 * self.far > self.boxed:
            raise InputError(
                f"boxes in pixels where shares of the image (0 to 1) are due: {to_printable(self.example[1])}",
                where=f"{where}:{self.example[0]}",
                hint="divide x by the width and y by the height of the image",
            )


class _Names:
    """Names of videos as numbers: in the order in which they first appear."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def codes(self, names: pl.Series) -> pl.Series:
        """(n) the numbers of some names."""
        distinct = names.unique(maintain_order=True)
        for name in distinct:
            self._codes.setdefault(to_printable(name, LONGEST_NAME), len(self._codes))
        if distinct.is_empty():
            return pl.Series("video", [], dtype=pl.UInt32)
        numbers = [self._codes[to_printable(name, LONGEST_NAME)] for name in distinct]
        return names.replace_strict(distinct, numbers, return_dtype=pl.UInt32).alias("video")

    def names(self) -> pl.Series:
        """The names, fit for a message, in the order of their numbers."""
        return pl.Series("video", list(self._codes), dtype=pl.String)


def _values(table: pl.DataFrame, due: tuple[int, ...]) -> pl.DataFrame:
    """The cells as numbers, with the `reason` to refuse a row and the `item` that it is called."""
    cells = [f"c{n}" for n in range(8)]
    table = table.with_columns(pl.when(pl.col(*cells) != "").then(pl.col(*cells)))
    corners = {c: pl.col(raw).cast(pl.Float64, strict=False) for c, raw in zip(CORNERS, _BOX, strict=True)}
    values = table.with_columns(
        _FRAME,
        action=pl.col("c6").cast(pl.Int64, strict=False),
        bare=pl.all_horizontal(pl.col(*_BOX, "c6").is_null()),
        **corners,
    )
    return values.with_columns(_reason(due), _ITEM)


def parse_person_numbers(rows: pl.DataFrame, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The rows with the number of their `person` as text; -1 is nobody.

    Raises:
        InputError: if the eighth cells are scores.
    """
    number = rows["last"].cast(pl.Float64, strict=False)
    broken = (number != number.floor()) | ~number.is_finite()
    scores = broken.fill_null(value=False)
    if 2 * int(scores.sum()) > len(rows) - rows["last"].null_count():
        first = int(scores.arg_true()[0])
        raise InputError(
            f"the eighth column holds scores such as {to_printable(rows['last'][first], 40)}, where the number of a "
            "person is due: these are detections, no truth",
            where=f"{where}:{rows['line'][first]}",
            hint="give them as predictions (`--predictions`), and the annotations as truth",
        )
    long = (rows["last"].str.len_bytes() > LONGEST_NAME).fill_null(value=False)
    bad = scores | long
    if bad.any():
        refused = rows.filter(bad)
        findings.read["boxes"] += len(refused)
        reason = pl.format(
            "a person's number should be a whole number and is '{}'", pl.col("last").str.slice(0, 60)
        )
        item = pl.format("{}, {}", "video", "frame")
        findings.reject_rows("boxes", refused.select("line", file=pl.lit(file), item=item, reason=reason))
    kept = rows.filter(~bad)
    return kept.with_columns(person=pl.when(pl.col("last") != "-1").then("last")).drop("last")


def read_first_column(data: bytes, where: str) -> list[str]:
    """Distinct values of the first column below a header.

    Raises:
        InputError: if the file is no text, empty, has a line too long or a quote not closed.
    """
    table = pl.concat(
        [split_cells(lines, where, 1) for lines in iterate_line_batches(decode(data, where), where)]
    )
    return table["c0"][1:].drop_nulls().unique(maintain_order=True).to_list()


def parse_excluded_frames(
    data: bytes, file: str, where: str, findings: Findings, *, header: bool = False
) -> pl.DataFrame:
    """The moments that a file of exclusions names: `video` and `frame`, each once; an empty one names none.

    Args:
        data: the file's bytes.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `frames`) and counts it.
        header: a first row of words is no moment and not counted.

    Raises:
        InputError: if the file is no text, or no row of it can be taken.
    """
    if is_blank(data):
        return pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64})
    table = pl.concat(
        [split_cells(lines, where, 2) for lines in iterate_line_batches(decode(data, where), where)]
    )
    if header and table["c1"].head(1).str.contains("^[A-Za-z_]").any():
        table = table.slice(1)
    wide = (pl.col("cells") != 2, pl.format("{} cells where video,timestamp are due", "cells"))
    values = table.with_columns(_FRAME).with_columns(select_first_reason(wide, *_PLACE), _ITEM)
    bad = values.filter(pl.col("reason").is_not_null())
    findings.read["frames"] += len(bad)
    findings.reject_rows("frames", bad.select("line", "reason", "item", file=pl.lit(file)))
    if len(bad) and len(bad) == len(values):
        message = f"no row can be read; the first: {to_printable(bad['reason'][0])}"
        raise InputError(message, where=f"{where}:{bad['line'][0]}", hint="a row is video,timestamp")
    held, known = values.filter(pl.col("reason").is_null()), _Names()
    codes = known.codes(held["c0"])
    named = held.select(known.names().gather(codes).alias("video"), "frame")
    return named.unique(maintain_order=True)


def _reason(due: tuple[int, ...]) -> pl.Expr:
    """Why a row of boxes is refused, null where it is not."""
    header = (pl.col("line") == 1) & pl.all_horizontal(
        pl.col("c1", *_BOX).str.contains("^[A-Za-z_]", strict=False)
    ).fill_null(value=False)
    boxed, box = ~pl.col("bare"), format_corners(_BOX)
    return select_first_reason(
        *list_width_faults(due),
        (header, "a header where none is due"),
        *_PLACE,
        *list_corner_faults(_BOX, boxed),
        (
            boxed & ~pl.all_horizontal(pl.col(*CORNERS).is_between(*_NEAR)),
            pl.format("a box far outside the image, in pixels where 0 to 1 is due? {}", box),
        ),
        (
            pl.col("c6").is_not_null() & pl.col("action").is_null(),
            pl.format("the action should be a whole number and is {}", format_text_column("c6")),
        ),
    )


# From rows of actions to tables: one box for equal corners, its actions as labels, its person as a tube.

KIND = "action"
_REPEATED = "an action that a box has twice, kept as a further box"
_CROWDED = "boxes of a person that has another in that moment, kept without a tube"


@dataclass(frozen=True)
class Place:
    """File and line of rows, for messages.

    Args:
        file: name of the file.
        findings: takes what is refused.
        first_frame: number of a video's first frame in the file.
    """

    file: str
    findings: Findings
    first_frame: int = 0


def add_label_index(rows: pl.DataFrame, labels: LabelMap, place: Place) -> pl.DataFrame:
    """The rows with `label`, the place of their action in the map, null without one.

    Rows of an action outside the map are refused as rows of `labels`, as the published evaluators skip them.

    Args:
        rows: (n) with `line`, `video`, `frame`, `action`.
        labels: the map.
        place: for messages.
    """
    known = pl.DataFrame(
        {"action": labels.ids, "label": range(len(labels.ids))},
        schema={"action": pl.Int64, "label": pl.Int64},
    )
    rows = rows.join(known, on="action", how="left", maintain_order="left")
    lost = pl.col("action").is_not_null() & pl.col("label").is_null()
    foreign = rows.filter(lost)
    if foreign.is_empty():
        return rows
    place.findings.read["labels"] += len(foreign)
    reason = pl.format("the action {} is not in the label map", "action")
    item = pl.format("{}, {}", pl.col("video").cast(pl.String), pl.col("frame") + place.first_frame)
    place.findings.reject_rows(
        "labels", foreign.select("line", file=pl.lit(place.file), item=item, reason=reason)
    )
    # Name the likely reason where numbers begin one below or end one above those of the map
    actions = rows["action"]
    used = actions.drop_nulls()
    low, high = int(str(used.min())), int(str(used.max()))
    first, last = min(labels.ids), max(labels.ids)
    if (low == first - 1 and high < last) or (high == last + 1 and low > first):
        what = f"actions run from {low} to {high} where the label map has {first} to {last}: shifted by one?"
        place.findings.warn(what, place.file, len(used))
    return rows.filter(~lost)


def assign_box_ids(rows: pl.DataFrame, keys: Sequence[str], place: Place, start: int = 0) -> pl.DataFrame:
    """The rows with the `box` they belong to, numbered in the order of the file, and whether they `open` it.

    Rows with equal keys are one box; an action that it has once more makes a further one.

    Args:
        rows: (n) with `label` and the keys.
        keys: columns that a box is known by.
        place: for messages.
        start: number of the first box.
    """
    rows = rows.with_row_index("row").with_columns(_owners(rows.select(keys)).alias("owner"))
    pair = pl.col("owner").cast(pl.Int64) * (1 << 31) + pl.col("label").fill_null(-1)
    twice = rows.select(again=pair.is_duplicated())["again"]
    if twice.any():
        again = pl.int_range(pl.len()).over("owner", "label")
        rows = rows.with_columns(again=again)
        rows = rows.with_columns(owner=pl.col("row").min().over("owner", "again"))
        count = int(rows.select((pl.col("again") > 0).sum()).item())
        first = rows.filter(pl.col("again") > 0).row(0, named=True)
        place.findings.warn(_REPEATED, f"{place.file}:{first['line']}", count)
    else:
        rows = rows.with_columns(again=pl.lit(0, pl.Int64))
    opens = rows["owner"] == rows["row"]
    numbers = opens.cum_sum().cast(pl.Int64) - 1 + start
    return rows.drop("row", "owner").with_columns(
        numbers.gather(rows["owner"]).alias("box"), opens.alias("opens")
    )


def _owners(keys: pl.DataFrame) -> pl.Series:
    """(n) the number of the first row with equal keys; rows mostly come in runs, looked up once."""
    names = [pl.col(c).cast(pl.Categorical).to_physical() for c in keys.columns if keys[c].dtype == pl.String]
    keys = keys.with_columns(names)
    opens = keys.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1))).alias("opens"))["opens"]
    opens = opens.scatter(0, values=True) if len(opens) else opens
    first = keys.with_row_index("row").filter(opens)
    owners = first.select(owner=pl.col("row").min().over(keys.columns))["owner"]
    return owners.gather(opens.cum_sum() - 1)


def select_boxes(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of boxes, `tube` included where the rows have it."""
    extra = ["tube"] if "tube" in rows.columns else []
    return rows.filter("opens").select("box", "video", "frame", *extra, *CORNERS)


def select_action_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of labels in the order of the rows, with their scores where the rows have them."""
    extra = ["score"] if "score" in rows.columns else []
    return rows.filter(pl.col("label").is_not_null()).select(
        "box", pl.lit(KIND).alias("kind"), "label", *extra
    )


def build_person_tubes(rows: pl.DataFrame, place: Place, start: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with the `tube` of their person, and the table of tubes.

    A person's first box in a moment is in its tube, any other is in none.

    Args:
        rows: (n) see `assign_box_ids`, with `person`.
        place: for messages.
        start: number of the first tube.
    """
    named = rows.filter(pl.col("opens") & pl.col("person").is_not_null())
    key = ["video", "frame", "person"]
    owned = named.unique(subset=key, keep="first", maintain_order=True)
    if extra := len(named) - len(owned):
        again = named.join(owned.select("box"), on="box", how="anti", maintain_order="left").row(
            0, named=True
        )
        place.findings.warn(_CROWDED, f"{place.file}:{again['line']}", extra)
    tubes = owned.group_by("video", "person", maintain_order=True).agg(
        start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1
    )
    tubes = tubes.with_row_index("tube", offset=start).cast({"tube": pl.Int64})
    owners = owned.select("box", "video", "person").join(
        tubes.select("tube", "video", "person"), on=["video", "person"], how="left", maintain_order="left"
    )
    rows = rows.join(owners.select("box", "tube"), on="box", how="left", maintain_order="left")
    return rows, tubes.rename({"person": "name"}).select("tube", "video", "name", "start_frame", "end_frame")


VERSION = 1
MOST_BYTES = 1 << 31
_WANTED = "AVA needs its annotations, a file such as 'ava_val_v2.2.csv',"
_HINT = "Point at the csv, or the folder or zip that holds it."
_EXCLUDED = re.compile(r"exclu", re.IGNORECASE)
_MAP = re.compile(r".*\.pbtxt(\.txt)?|.*action_list.*\.txt", re.IGNORECASE)
_SPLITS = {"train": "train", "val": "val", "test": "test"}


@dataclass(frozen=True)
class _Parts:
    """Names of the files of a set, by what they are."""

    truth: list[str]
    labels: list[str]
    excluded: list[str]


def find(path: Path) -> Source:
    """The annotations at `path`: a csv, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there are none.
        InputError: if the path cannot be read.
    """
    source = find_source(path, lambda found: bool(_parts(found).truth), _WANTED, _HINT, suffix=".csv")
    source.most_bytes = MOST_BYTES
    return source


def inputs(source: Source, labels: str | Path | None = None, excluded: str | Path | None = None) -> list[str]:
    """Names of the files that `read` would read."""
    parts = _parts(source, labels, excluded)
    return [*parts.truth, *parts.labels, *parts.excluded]


def read(
    source: Source,
    *,
    labels: str | Path | None = None,
    excluded: str | Path | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    A video is one pixel wide and high, so that its boxes are the numbers of the file; a frame is a second.
    Labels stand in the order of the files. Boxes in excluded moments are kept; `frames.annotated` is false.

    Args:
        labels: a label map that lies elsewhere.
        excluded: excluded moments that lie elsewhere.

    Raises:
        InputError: if there are several label maps, one cannot be read, or no file of annotations can.
    """
    parts, findings = _parts(source, labels, excluded), Findings()
    known = _label_map(source, parts.labels, findings)
    files: list[tuple[str, pl.DataFrame]] = []
    left_aside = [_moments(source, name, findings) for name in parts.excluded]
    taken: dict[str, str] = {}

    def take(name: str, found: Findings) -> None:
        files.append((name, _rows(source, name, taken, found)))

    errors = read_each_file(parts.truth, take, findings, progress)
    if not files:
        raise build_unreadable_error(errors)
    known = known or build_numeric_labels(
        {action for _, rows in files for action in rows["action"].drop_nulls().unique()}
    )
    tables = _tables(files, left_aside, known, findings)
    for name in ("boxes", "labels", "tubes", "frames"):
        findings.read[name] += len(tables[name])
    names = [*parts.truth, *parts.labels, *parts.excluded]
    notes = {"unit_pictures": True, "label_ids": {KIND: list(known.ids)}}
    meta = findings.build_meta(READERS["ava"], {KIND: known.names}, source.contents(names), **notes)
    return Scenes(**tables, rejected=findings.table(), meta=meta)


def _parts(source: Source, labels: str | Path | None = None, excluded: str | Path | None = None) -> _Parts:
    """The files of a set: what lies there, and what the user names elsewhere in its place."""
    if isinstance(source, FileSource):
        truth, maps, aside = [source.name], [], []
    else:
        tables = source.files("", ".csv")
        aside = [name for name in tables if _EXCLUDED.search(name)]
        truth = [name for name in tables if name not in aside]
        maps = [name for name in source.entries()[0] if _MAP.fullmatch(name)]
    maps = maps if labels is None else [source.lend(Path(labels))]
    aside = aside if excluded is None else [source.lend(Path(excluded))]
    return _Parts(truth, maps, aside)


def _label_map(source: Source, names: Sequence[str], findings: Findings) -> LabelMap | None:
    """The label map, if there is one.

    Raises:
        InputError: if there are several, or it cannot be read.
    """
    if not names:
        return None
    if len(names) > 1:
        held = ", ".join(to_printable(name) for name in names)
        hint = "name the one to read by the option 'labels'"
        raise InputError(f"several label maps: {held}", where=to_printable(str(source.path)), hint=hint)
    return read_labels(source.read(names[0]), source.where(names[0]), findings)


def _moments(source: Source, name: str, findings: Findings) -> pl.DataFrame:
    """The excluded moments of a file."""
    held = parse_excluded_frames(source.read(name), name, source.where(name), findings)
    findings.read["files"] += 1
    return held


def _rows(source: Source, name: str, taken: dict[str, str], findings: Findings) -> pl.DataFrame:
    """The rows of a file with `person`.

    Raises:
        InputError: if it cannot be read, holds scores, or a video that an earlier file has.
    """
    where = source.where(name)
    rows = read_rows(source.read(name), name, where, findings)
    rows = parse_person_numbers(rows, name, where, findings)
    for video in rows["video"].unique(maintain_order=True):
        if video in taken:
            message = (
                f"it has the video '{to_printable(video, 60)}', and so has '{to_printable(taken[video], 80)}'"
            )
            raise InputError(message, where=where, hint="read the files one by one")
    taken.update(dict.fromkeys(rows["video"].unique(maintain_order=True), name))
    return rows


def _tables(
    files: Sequence[tuple[str, pl.DataFrame]],
    left_aside: Sequence[pl.DataFrame],
    known: LabelMap,
    findings: Findings,
) -> dict[str, pl.DataFrame]:
    """The tables of all files; videos in the order in which they first appear."""
    boxes: list[pl.DataFrame] = []
    labels: list[pl.DataFrame] = []
    tubes: list[pl.DataFrame] = []
    for name, rows in files:
        place = Place(name, findings)
        boxed = add_label_index(rows.filter(pl.col(CORNERS[0]).is_not_null()), known, place)
        boxed = assign_box_ids(
            boxed, ["video", "frame", *CORNERS, "person"], place, sum(len(each) for each in boxes)
        )
        boxed, own = build_person_tubes(boxed, place, sum(len(each) for each in tubes))
        boxes.append(select_boxes(boxed))
        labels.append(select_action_labels(boxed))
        tubes.append(own)
    named = [(name, rows.select("video", "frame")) for name, rows in files]
    videos = pl.concat(
        [
            rows.select("video").unique(maintain_order=True).with_columns(splits=_splits(name))
            for name, rows in named
        ]
        + [rows.select("video").with_columns(splits=_splits("")) for rows in left_aside]
    ).unique(subset="video", keep="first", maintain_order=True)
    return {
        "videos": videos.with_columns(
            width_px=pl.lit(1, pl.Int64), height_px=pl.lit(1, pl.Int64), fps=pl.lit(1, pl.Float32)
        ),
        "frames": _frames([rows for _, rows in named], left_aside, videos),
        "boxes": pl.concat(boxes),
        "labels": pl.concat(labels),
        "tubes": pl.concat(tubes),
    }


def _splits(name: str) -> pl.Expr:
    """The split in a file's name, as a list."""
    words = re.split(r"[^a-z]+", name.lower())
    held = [f"default/{split}" for word, split in _SPLITS.items() if word in words]
    return pl.lit(pl.Series([held], dtype=pl.List(pl.String))).first()


def _frames(
    named: Sequence[pl.DataFrame], left_aside: Sequence[pl.DataFrame], videos: pl.DataFrame
) -> pl.DataFrame:
    """Every moment that a file names, in the order of videos and time."""
    out = [rows.with_columns(annotated=pl.lit(value=False)) for rows in left_aside]
    frames = pl.concat([*out, *[rows.unique().with_columns(annotated=pl.lit(value=True)) for rows in named]])
    frames = frames.group_by("video", "frame").agg(pl.col("annotated").all())
    order = videos.select("video").with_row_index("order")
    frames = frames.join(order, on="video", how="left").sort("order", "frame")
    return frames.select("video", "frame", pl.col("frame").cast(pl.Float32).alias("t_s"), "annotated")
