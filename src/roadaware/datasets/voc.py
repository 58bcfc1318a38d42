"""Pascal VOC: an XML file for each image with the boxes in it, as labelImg, CVAT, Roboflow and supervision write it.

Layout: `Annotations/NAME.xml` (or the files in one folder), `ImageSets/Main/SPLIT.txt` with the names of each
split; `labelmap.txt` with the order of the classes.
`<object>` has `<name>` and `<bndbox>` with `xmin, ymin, xmax, ymax`. Tools disagree about pixels: by default the numbers are
edges from 0 (labelImg, CVAT, Roboflow); `pixels=voc` takes them as the challenge wrote them, pixels from 1 with the last
one inside (Everingham et al., 2010): one is taken off xmin and ymin.
Frames: as for YOLO, `NAME` is `VIDEO_NUMBER`, numbered from 1 (from 0 where some is 0), else an image is a video of its own.
`difficult` boxes are to be ignored. Holds: class, box, size, difficult. Does not: tracks, rate, occlusion in words.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import polars as pl
from lxml import etree

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import LONGEST_PATH, ROWS, BoxSource, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import FACTS, LARGEST_SIDE, check_classes, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError, UsageError
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import Source, decode_utf_text, find_source, to_printable
from roadaware.io.xml import find_elements, find_text, get_local_name, parse
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

VERSION = 1
_PLACES = ("Annotations", "")
_SETS = "ImageSets/Main"
LABEL_MAP = "labelmap.txt"
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_NUMBERED = re.compile(r"(.+?)[_/](\d{1,9})", re.ASCII | re.DOTALL)
_WANTED = "Pascal VOC needs its annotations, files '*.xml' in 'Annotations/',"
_HINT = "Point at the folder that holds 'Annotations/', or at the XML files."
_BATCH = 256
_PLACE = {"image": pl.Int64, "file": pl.String, "video": pl.String, "frame": pl.Int64}
_READ = {
    "image": pl.Int64,
    **{name: ROWS[name] for name in ("line", "item", "label", *CORNERS, "ignore", "reason")},
}


def find(path: Path) -> Source:
    """The annotations at `path`: an XML file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(_list_files(source)), _WANTED, _HINT, suffix=".xml")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    beside = [name for name in (FACTS, LABEL_MAP) if source.holds(name)]
    return [*beside, *_list_files(source), *_list_sets(source)]


def _list_files(source: Source) -> list[str]:
    for place in _PLACES:
        if (not place or source.has_folder(place)) and (found := source.files(place, ".xml")):
            return found
    return []


def _list_sets(source: Source) -> list[str]:
    found = source.files(_SETS, ".txt") if source.has_folder(_SETS) else []
    return [name for name in found if PurePosixPath(name).stem in ("train", "val", "test")]


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    first_frame: int | None = None,
    pixels: str = "edges",
) -> Scenes:
    """All images as Scenes; what was refused is in `rejected`.

    Args:
        fps: frames a second of every video.
        first_frame: number of a video's first frame: 1, or 0.
        pixels: `edges`, or `voc` where pixels count from 1 and the last one is inside.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    if pixels not in ("edges", "voc"):
        raise UsageError(f"pixels is edges or voc, not {pixels!r}")
    findings = Findings()
    found = BoxSource("voc", findings)
    facts = read_facts(source, fps=fps, first_frame=first_frame)
    found.classes = list(facts.classes or _read_label_map(source))
    images: dict[str, _Image] = {}
    parts: list[pl.DataFrame] = []
    columns: dict[str, list[Any]] = {column: [] for column in _READ}

    def take(name: str, part: Findings) -> None:
        stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
        if len(stem.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
            raise InputError(f"its name has more than {LONGEST_NAME} bytes", where=source.where(name))
        if escape_surrogates(stem) in images:
            raise InputError("its name shows as that of another file does", where=source.where(name))
        root = parse(source.read(name), source.where(name), root="annotation")
        # The trees of all files at once would be some thirty times their size.
        image = _read_image(root, name, len(images), columns, 1.0 if pixels == "voc" else 0.0)
        images[escape_surrogates(stem)] = image
        if len(images) % _BATCH == 0:
            parts.append(pl.DataFrame(columns, schema=_READ))
            for column in columns.values():
                column.clear()

    errors = read_each_file(_list_files(source), take, findings, progress)
    parts.append(pl.DataFrame(columns, schema=_READ))
    if not images:
        raise build_unreadable_error(errors)
    splits = _read_splits(source, findings)
    numbers = {stem: _NUMBERED.fullmatch(stem) for stem in images}
    zero = any(match and int(match[2]) == 0 for match in numbers.values())
    base = facts.first_frame if facts.first_frame is not None else int(not zero)
    videos: dict[str, dict[str, Any]] = {}
    frames: dict[str, set[int]] = {}
    places: list[tuple[int, str, str, int]] = []
    for stem, image in images.items():
        match = numbers[stem]
        video, frame = (match[1], int(match[2]) - base) if match else (stem, 0)
        video = format_video_name(video)
        size: tuple[int | None, int | None] = (image.width, image.height)
        if None in size:
            size = facts.size_px or (None, None)
            findings.warn(
                "images whose size is missing or no number of pixels, kept as null",
                image.file,
                int(size[0] is None),
            )
        split = splits.get(stem)
        row = videos.setdefault(video, {"video": video, "width_px": size[0], "height_px": size[1], "fps": facts.fps,
                                        "n_frames": 0, "splits": [f"default/{split}"] if split else None})  # fmt: skip
        if (row["width_px"], row["height_px"]) != size:
            findings.warn("videos with images of several sizes, size kept as null", image.file)
            row["width_px"] = row["height_px"] = None
        if 0 <= frame <= MOST_FRAMES:
            row["n_frames"] = max(row["n_frames"], frame + 1)
            frames.setdefault(video, set()).add(frame)
            if image.path:
                found.paths[video, frame] = escape_surrogates(image.path)
        places.append((image.number, to_printable(image.file, LONGEST_PATH), video, frame))
    found.frames = {video: sorted(held) for video, held in frames.items()}
    found.videos = list(videos.values())
    where = pl.DataFrame(places, schema=_PLACE, orient="row")
    rows = pl.concat(parts).join(where, on="image", maintain_order="left")
    found.rows.append(rows.with_columns(pl.lit(None, pl.String).alias("track")))
    return build_box_scenes(found, source.contents(inputs(source)))


def _read_label_map(source: Source) -> tuple[str, ...]:
    """The classes in the order of `labelmap.txt`, as CVAT and Datumaro write it; none where it is not there.

    Raises:
        InputError: if it is no text, or names a class twice.
    """
    if not source.holds(LABEL_MAP):
        return ()
    where = source.where(LABEL_MAP)
    text = decode_utf_text(source.read(LABEL_MAP), where, expected="names of classes", hint=_HINT)
    lines = [line.strip() for line in text.splitlines()]
    names = [line.rsplit(":", 3)[0].strip() for line in lines if line and not line.startswith("#")]
    return check_classes([name for name in names if name != "background"], where)


def _read_splits(source: Source, findings: Findings) -> dict[str, str]:
    """Name of an image to its split."""
    found: dict[str, str] = {}
    for name in _list_sets(source):
        try:
            text = decode_utf_text(
                source.read(name), source.where(name), expected="names of images", hint=_HINT
            )
        except InputError as error:
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
            found |= dict.fromkeys((line.strip() for line in text.splitlines()), PurePosixPath(name).stem)
    return found


class _Image(NamedTuple):
    """What one file says of its image: its number in the rows of boxes, its own name, size and file of the image."""

    number: int
    file: str
    width: int | None
    height: int | None
    path: str | None


def _read_image(
    root: etree._Element, file: str, number: int, columns: dict[str, list[Any]], off: float
) -> _Image:
    """What a tree says of its image; its boxes are added to the columns, `off` taken off their left and upper edges."""
    for element in find_elements(root, "object"):
        fields = _collect_texts(element)
        label = fields.get("name")
        texts = [fields.get(f"bndbox/{edge}") for edge in _EDGES]
        corners = [_parse_number(text) for text in texts]
        reason = None
        if not label:
            reason = "no <name> says what it is"
        elif None in corners:
            shown = ", ".join(to_printable(text or "missing", 24) for text in texts)
            reason = f"a corner is missing or no number: {shown}"
        elif off:
            corners = [
                corner - off if n < 2 and corner is not None else corner for n, corner in enumerate(corners)
            ]
        row = (number, element.sourceline, _describe_box(label, texts), escape_surrogates(label) if label else None,
               *corners, fields.get("difficult") in ("1", "true", "True"), reason)  # fmt: skip
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    width, height = (_parse_side(find_text(root, f"size/{side}")) for side in ("width", "height"))
    return _Image(number, file, width, height, find_text(root, "filename"))


def _collect_texts(element: etree._Element) -> dict[str, str | None]:
    """The texts of the children of an object and, as `bndbox/xmin`, of those of its box; of one name the first counts.

    Each child is looked at once, where a search for every text would begin at the first child again.
    """
    found: dict[str, str | None] = {}
    for child in element:
        name = get_local_name(child)
        if name == "bndbox" and name not in found:
            for edge in child:
                found.setdefault(f"bndbox/{get_local_name(edge)}", (edge.text or "").strip() or None)
        found.setdefault(name, (child.text or "").strip() or None)
    return found


def _describe_box(label: str | None, texts: list[str | None]) -> str:
    """A box as a refusal names it."""
    shown = [text or "missing" for text in texts]
    if max(map(len, shown)) > 24:
        shown = [to_printable(text, 24) for text in shown]
    return to_printable(f"{(label or '?')[:60]} {', '.join(shown)}", 120)


def _parse_side(text: str | None) -> int | None:
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if text is not None and plain and 1 <= int(text) <= LARGEST_SIDE else None


def _parse_number(text: str | None) -> float | None:
    try:
        return (
            float(text)
            if text is not None and len(text) < 40 and text.isascii() and "_" not in text
            else None
        )
    except ValueError:
        return None
