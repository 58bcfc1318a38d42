"""Reader of corrected proposals by annotator, from Label Studio exports, COCO and Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.datasets.issues import Findings
from roadaware.datasets.label_studio_tasks import Region, convert_to_corners, parse_tasks
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError
from roadaware.formats.coco import build_coco_index, build_coco_scenes, read_json_document
from roadaware.formats.coda import KIND
from roadaware.formats.proposal_tasks import REGION, UNNAMED, format_task_name
from roadaware.io.files import read_regular
from roadaware.io.json import ensure_list, parse_int
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

DRAWN: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "annotator": pl.String,
    "proposal": pl.Int64,
    **dict.fromkeys(CORNERS, pl.Float64),
    "label": pl.String,
}
"""Columns of what was left or drawn: `proposal` is null where a box names none, `label` where it has none."""
LOOKED: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "annotator": pl.String,
    "skipped": pl.Boolean,
    "seconds": pl.Float64,
    "linked": pl.Boolean,
}
"""Columns of which annotator saw which image, whether it was skipped, the time where that is known, and whether
the boxes of the file name their proposals."""
REFUSED: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "annotator": pl.String,
    "proposal": pl.Int64,
}
"""Columns of boxes that came back and could not be taken: `proposal` is null where one names none that is
known, and may stand for any of its image."""
SOMEBODY = "somebody"
_NEW = -1
"""Stands for a refused box that names no proposal."""
_NO_BOX = "not a box on an image"
# Hundredths of the image are rounded by labelling tools: a box at the edge may lie a little outside.
_SLACK = 1e-3
_LIMIT = 1 << 31
_MOST_DIGITS = 15
"""Of the number of a proposal: such numbers are exact as floats, too, as which some tools give attributes back."""
Place = tuple[str, int]


@dataclass
class Answers:
    """Corrections of one or more annotators.

    Args:
        drawn: see `DRAWN`.
        looked: see `LOOKED`; once per image and annotator.
        findings: what was refused or odd.
        refused: see `REFUSED`; of these proposals nobody knows what became of them.
    """

    drawn: pl.DataFrame
    looked: pl.DataFrame
    findings: Findings
    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFUSED))


@dataclass
class _Rows:
    """Facts of the sent tasks, and the rows read so far."""

    sent: Predictions
    file: str
    findings: Findings = field(default_factory=Findings)
    drawn: dict[tuple[str, Place], list[tuple[Any, ...]]] = field(default_factory=dict)
    looked: dict[tuple[str, Place], tuple[bool, float | None]] = field(default_factory=dict)
    lost: dict[tuple[str, Place], set[int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.sent.frames.select("video", "frame", "picture", "width_px", "height_px").rows()
        if not all(type(size) is int and size > 0 for row in rows for size in row[3:]):
            raise InputError("the sent tasks have an image without its size", hint="export the tasks again")
        self.sizes: dict[Place, tuple[int, int]] = {row[:2]: row[3:] for row in rows}
        self.tasks = {format_video_name(format_task_name(*place)): place for place in self.sizes}
        self.files = {row[2]: row[:2] for row in rows}
        self.proposals: dict[int, Place] = {
            box: (video, frame)
            for box, video, frame in self.sent.boxes.select(
                "box", pl.col("video").cast(pl.String), "frame"
            ).iter_rows()
        }
        self.words = set(self.sent.meta.vocabularies[KIND])

    def lose(self, who: str, place: Place, proposal: int | None, *, named: bool = True) -> None:
        """Count a refused box.

        Args:
            who: left it.
            place: its image.
            proposal: that it names, if any.
            named: whether it could name one, so that it is a new box where others of its file do.
        """
        known = proposal is not None and self.proposals.get(proposal) == place
        self.lost.setdefault((who, place), set()).add(proposal if known else _NEW if named else None)

    def take(
        self, who: str, place: Place, proposal: int | None, corners: Iterable[float], word: str | None
    ) -> None:
        """Add a box."""
        name = f"{format_task_name(*place)}, {who}"
        if proposal is not None and self.proposals.get(proposal) != place:
            self.findings.warn("boxes that name a proposal of no or another image, taken as new", name)
            proposal = None
        if word is not None and word not in (*self.words, UNNAMED):
            self.findings.warn(f"boxes of a class that was not sent out: {to_printable(word, 60)}", name)
        self.drawn.setdefault((who, place), []).append(
            (*place, who, proposal, *corners, None if word == UNNAMED else word)
        )

    def answers(self) -> Answers:
        """All of it."""
        for (_, place), rows in self.drawn.items():
            self._once(place, rows)
        drawn = [row for rows in self.drawn.values() for row in rows]
        lost = [(*place, who, mark) for (who, place), held in self.lost.items() for mark in held]
        linked = any(row[3] not in (None, _NEW) for row in (*drawn, *lost))
        lost = [
            (*row[:3], None if row[3] == _NEW else row[3]) for row in lost if row[3] != _NEW or not linked
        ]
        looked = [(*place, who, *held, linked) for (who, place), held in self.looked.items()]
        return Answers(
            pl.DataFrame(drawn, schema=DRAWN, orient="row"),
            pl.DataFrame(looked, schema=LOOKED, orient="row"),
            self.findings,
            pl.DataFrame(lost, schema=REFUSED, orient="row"),
        )

    def _once(self, place: Place, rows: list[tuple[Any, ...]]) -> None:
        """Let one box at most stand for a proposal: the first."""
        seen: set[int] = set()
        for number, row in enumerate(rows):
            if row[3] in seen:
                self.findings.warn(
                    "boxes that name the proposal of another box, taken as new", format_task_name(*place)
                )
                rows[number] = (*row[:3], None, *row[4:])
            elif row[3] is not None:
                seen.add(row[3])


def read_corrections(path: Path, sent: Predictions) -> Answers:
    """Read the corrections in a file; the format is inferred from its content.

    Label Studio: a JSON export of tasks; annotators are distinguished by `completed_by`; who cancelled has
    skipped the image. COCO: an annotation file, of one annotator, who is called as the file; a number in
    `proposal`, of the annotation or of its attributes, links it. Parquet: rows with video, frame and
    corners, and `annotator`, `proposal` and `label` where they have such.

    Refused and counted: images that were not sent out, boxes that are turned, have no width or height, or
    lie outside their image. A later annotation of an image by the same person replaces an earlier one.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged, or none of these.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        return _parquet(path, sent)
    content = read_json_document(path)
    if isinstance(content, list):
        rows = _Rows(sent, path.name)
        for task in parse_tasks(content, to_printable(str(path)), path.name, "annotations", rows.findings):
            place = rows.tasks.get(task.video)
            if place is None:
                rows.findings.reject("frames", rows.file, task.video, "an image that was not sent out")
                continue
            for who, seconds in task.skipped:
                rows.looked.setdefault((who or SOMEBODY, place), (True, seconds))
            for annotation in task.annotations:
                # Take what one annotator says of one image
                who = annotation.author or SOMEBODY
                known = rows.looked.get((who, place))
                if known is not None and not known[0]:
                    rows.findings.left_out["earlier annotations of an image by the same person"] += 1
                rows.looked[who, place] = (False, annotation.seconds)
                rows.drawn[who, place], rows.lost[who, place] = [], set()
                for name in annotation.refused:
                    if name not in annotation.regions:
                        rows.lose(who, place, _proposal(name), named=name is not None)
                for name in annotation.foreign:
                    if _proposal(name) is not None and name not in annotation.regions:
                        item = f"{format_task_name(*place)}, {who}, region {name}"
                        rows.findings.reject("boxes", rows.file, item, _NO_BOX)
                        rows.lose(who, place, _proposal(name))
                for region in annotation.regions.values():
                    item = f"{format_task_name(*place)}, {who}, region {region.name}"
                    reason = _fault(region)
                    if reason:
                        rows.findings.reject("boxes", rows.file, item, reason)
                        rows.lose(who, place, _proposal(region.name))
                        continue
                    words = [word for words in region.kinds().values() for word in words]
                    rows.findings.warn(
                        "boxes with several classes, of which the first is taken", item, len(words) > 1
                    )
                    values = region.drawn.values
                    edges = convert_to_corners(values, rows.sizes[place])[0] if values is not None else ()
                    corners = _within(edges, rows.sizes[place])
                    rows.take(who, place, _proposal(region.name), corners, words[0] if words else None)
        return rows.answers()
    if isinstance(content, dict) and "images" in content:
        return _coco(content, path, sent)
    raise InputError(
        "expected corrected proposals: a Label Studio export (a list of tasks) or COCO annotations",
        where=to_printable(str(path)),
        hint="export as JSON (not JSON-MIN or CSV) or as COCO",
    )


def merge_answers(parts: Sequence[Answers]) -> Answers:
    """Merge corrections of several files; where an annotator did an image twice, the later file counts.

    Args:
        parts: at least one.
    """
    findings, key = Findings(), ["video", "frame", "annotator"]
    drawn, looked, refused = parts[0].drawn, parts[0].looked, parts[0].refused
    for number, part in enumerate(parts):
        findings.merge(part.findings)
        if number:
            again = looked.join(part.looked, on=key, how="semi")
            if len(again):
                findings.left_out["earlier annotations of an image by the same person"] += len(again)
            drawn, looked, refused = (
                pl.concat([held.join(part.looked, on=key, how="anti", maintain_order="left"), new])
                for held, new in ((drawn, part.drawn), (looked, part.looked), (refused, part.refused))
            )
    return Answers(drawn, looked, findings, refused)


def _proposal(name: str | None) -> int | None:
    """The proposal that a region is called after, if it is."""
    number = (name or "").removeprefix(REGION)
    ours = number != name and number.isascii() and number.isdecimal() and len(number) < 20
    return int(number) if ours else None


def _fault(region: Region) -> str:
    """Why a region is no box; empty where it is one."""
    values = region.drawn.values
    if region.drawn.kind != "box" or values is None:
        return _NO_BOX
    left, top, width, height, degrees = values[0].tolist()
    if degrees % 360:
        return f"the box is turned by {degrees:g} degrees"
    if not (width > 0 and height > 0):
        return "the box has no width or no height"
    if min(left, top) < -_SLACK or max(left + width, top + height) > 100 + _SLACK:
        return f"the box lies outside 0 to 100 % of the image: {left:g}, {top:g}, {width:g} x {height:g}"
    return ""


def _within(corners: Iterable[float], size: tuple[int, int]) -> list[float]:
    """Corners brought to the image where rounding put them a little outside."""
    edges = zip(corners, (*size, *size), strict=True)
    return [min(max(float(corner), 0.0), float(side)) for corner, side in edges]


def _coco(content: Mapping[str, Any], path: Path, sent: Predictions) -> Answers:
    where, rows = to_printable(str(path)), _Rows(sent, path.name)
    index = build_coco_index(content, where, kind=KIND, by="pictures", name=path.stem)
    listed = ensure_list(content.get("annotations"), where, "'annotations'")
    scenes = build_coco_scenes(listed, index, path.name, unnamed=True)
    places = {image: _find_image(place[0], rows) for image, place in index.images.items()}
    for image, found in places.items():
        if found is None:
            name = index.images[image][0]
            rows.findings.reject("frames", rows.file, name, "an image that was not sent out")
        else:
            rows.looked[path.stem, found] = (False, None)
            rows.drawn[path.stem, found] = []
    refused: set[str] = set()
    if len(scenes.rejected):
        rows.findings.rejected.append(scenes.rejected)
        refused = set(scenes.rejected["item"].to_list())
    for number, row in enumerate(listed):
        # What is no object is among the refused already.
        image_id = row.get("image_id") if isinstance(row, dict) else None
        place = places.get(image_id) if type(image_id) is int else None
        if place is None:
            continue
        if f"entry {number}" in refused:
            rows.lose(path.stem, place, _get_proposal_id(row))
        else:
            word = index.categories.get(row.get("category_id"))
            left, top, width, height = map(float, row["bbox"])
            _plain_box(
                (left, top, left + width, top + height), place, path.stem, _get_proposal_id(row), word, rows
            )
    return rows.answers()


def _get_proposal_id(row: Mapping[str, Any]) -> int | None:
    """The proposal that an annotation names, itself or, as tools give it back, among its attributes."""
    attributes = row.get("attributes")
    held = (row, attributes if isinstance(attributes, dict) else {})
    named: Any = next((each["proposal"] for each in held if each.get("proposal") is not None), None)
    written = isinstance(named, str) and named.isascii() and named.isdecimal() and len(named) < _MOST_DIGITS
    if written or (type(named) is float and named.is_integer()):
        named = int(named)
    return parse_int(named, 0, 10**_MOST_DIGITS)


def _plain_box(
    corners: tuple[float, ...], place: Place, who: str, proposal: int | None, word: str | None, rows: _Rows
) -> None:
    """Take a box in pixels, cut to its image."""
    x1, y1, x2, y2 = _within(corners, rows.sizes[place])
    if x1 >= x2 or y1 >= y2:
        reason = "the box has no width or no height in the image"
        rows.findings.reject("boxes", rows.file, f"{format_task_name(*place)}, {who}", reason)
        rows.lose(who, place, proposal)
        return
    reaches_out = max(abs(a - b) for a, b in zip(corners, (x1, y1, x2, y2), strict=True)) > 0.5
    rows.findings.warn(
        "boxes that reach out of their image, cut to it", format_task_name(*place), int(reaches_out)
    )
    rows.take(who, place, proposal, (x1, y1, x2, y2), word)


def _find_image(name: str, rows: _Rows) -> Place | None:
    """The image of a file name, with or without the folders before it where that is enough."""
    parts = name.replace("\\", "/").split("/")
    for start in range(len(parts)):
        if (inner := "/".join(parts[start:])) in rows.files:
            return rows.files[inner]
    near = [place for file, place in rows.files.items() if file.rpartition("/")[2] == parts[-1]]
    return near[0] if len(near) == 1 else None


def _parquet(path: Path, sent: Predictions) -> Answers:
    where, rows = to_printable(str(path)), _Rows(sent, path.name)
    table = _table(path, where)
    for row in table.iter_rows(named=True):
        place, who = (row["video"], row["frame"]), row["annotator"] or path.stem
        if place not in rows.sizes:
            name = format_task_name(str(place[0]), place[1] or 0)
            rows.findings.reject("frames", rows.file, name, "an image that was not sent out")
            continue
        rows.looked[who, place] = (False, None)
        rows.drawn.setdefault((who, place), [])
        corners = tuple(row[name] for name in CORNERS)
        if all(corner is not None for corner in corners):
            _plain_box(corners, place, who, row["proposal"], row["label"], rows)
    return rows.answers()


def _table(path: Path, where: str) -> pl.DataFrame:
    """The rows of a Parquet file with the columns of `DRAWN`; null where it does not have one.

    Raises:
        InputError: if it is none, or lacks a column.
    """
    try:
        found = read_parquet(read_regular(path, limit=_LIMIT))
        lacks = [name for name in ("video", "frame", *CORNERS) if name not in found.columns]
        if lacks:
            raise InputError(f"the table has no column {', '.join(lacks)}", where=where)
        given = [
            pl.col(name).cast(dtype) if name in found.columns else pl.lit(None, dtype).alias(name)
            for name, dtype in DRAWN.items()
        ]
        found = found.select(given)
    except FileNotFoundError as error:
        raise InputError("there is no such file", where=where) from error
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InputError(
            f"no table of corrected proposals: {to_printable(str(error))}", where=where
        ) from error
    finite = pl.all_horizontal(pl.col(*CORNERS).is_finite().fill_null(value=True))
    if not found.select(finite.all()).item():
        raise InputError("a corner is no finite number", where=where, hint="mend or remove that row")
    return found


# Corrections as rounds of checking: what an annotator left of the boxes of the images that he looked at.


def build_rounds(path: Path, original: Scenes) -> tuple[Scenes, tuple[Scenes, ...]]:
    """Annotations on the images that a file of corrections is about, and what each annotator left of them.

    A box that the file names stays with what is known of it, one that it does not name is gone, and so is a tube
    without any box left. Relations, sentences and sounds are left out of all: nobody was asked about them.

    Args:
        path: Parquet with the columns of `DRAWN`, as the viewer saves verdicts on annotations.
        original: the annotations, whose numbers of boxes it names.

    Returns:
        the original on the images that all annotators looked at, and one set for each annotator, by name.

    Raises:
        InputError: if it is no such file, names a box that is not there, or has more than two annotators.
    """
    where = to_printable(str(path))
    table = _table(path, where).with_columns(pl.col("annotator").fill_null(path.stem))
    names = table["annotator"].unique().sort().to_list()
    if not 1 <= len(names) <= 2:
        raise InputError(
            f"expected the corrections of one or two annotators, found those of {len(names)}",
            where=where,
            hint="keep the rows of two, whose names stand in the column `annotator`",
        )
    place = ["video", "frame"]
    boxes = original.boxes.with_columns(pl.col("video").cast(pl.String))
    asked = (
        table.group_by(place).agg(pl.col("annotator").n_unique()).filter(pl.col("annotator") == len(names))
    )
    given = table.drop_nulls("x1_px")
    unknown = given.join(boxes, left_on=["proposal", *place], right_on=["box", *place], how="anti")
    if len(unknown):
        raise InputError(
            f"{len(unknown)} of {len(given)} boxes are none of the original's, first {unknown.row(0)[:4]}",
            where=where,
            hint="name the annotations that were judged as the original",
        )
    looked = boxes.join(asked, on=place, how="semi")
    if looked.is_empty():
        raise InputError("no image with a box was looked at by all annotators", where=where)
    rounds = []
    for name in names:
        kept = given.filter(pl.col("annotator") == name)["proposal"]
        left = looked.filter(pl.col("box").is_in(kept.implode()))
        rounds.append(_keep_boxes(original, left["box"], name))
    return _keep_boxes(original, looked["box"], None), tuple(rounds)


def _keep_boxes(scenes: Scenes, boxes: pl.Series, annotator: str | None) -> Scenes:
    """The scenes with these boxes alone, and what belongs to them."""
    held = scenes.boxes.filter(pl.col("box").is_in(boxes.implode()))
    changed: dict[str, Any] = {"boxes": held, "labels": scenes.labels.join(held, on="box", how="semi")}
    if "tube" in held.columns:
        owner = pl.coalesce("parent", "tube") if "parent" in scenes.tubes.columns else pl.col("tube")
        there = held["tube"].drop_nulls().unique()
        tubes = scenes.tubes.filter(owner.is_in(there.implode()))
        changed |= {"tubes": tubes, "tube_labels": scenes.tube_labels.join(tubes, on="tube", how="semi")}
    for name in ("relations", "queries", "sounds", "samples"):
        changed[name] = getattr(scenes, name).clear()
    if "sound" in held.columns:
        changed["boxes"] = held.drop("sound")
    notes = scenes.meta.notes if annotator is None else {**scenes.meta.notes, "annotator": annotator}
    return scenes.with_tables(**changed, meta=replace(scenes.meta, notes=notes))
