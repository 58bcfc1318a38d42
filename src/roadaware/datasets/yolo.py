"""YOLO: a text file for each image with the boxes in it, as Ultralytics, Darknet and CVAT write it.

Layout: `labels/SPLIT/NAME.txt` (or `SPLIT/labels/NAME.txt`, as Roboflow has it, `obj_train_data/NAME.txt`, or one folder of
text files), with the names of the classes in `data.yaml`, `classes.txt` or `obj.names`; images lie in `images/SPLIT/NAME.jpg`
or `SPLIT/images/NAME.jpg`, or beside the text.
A line: `class cx cy w h`, the middle and the extent in shares of the image (edges, not middles, of pixels; the right
edge excluded), then optionally the number of a track, or a score and that number (`save_conf` of trackers).
Frames: `NAME` is `VIDEO_NUMBER` or `VIDEO/NUMBER`, numbered from 1, or from 0 where some video has a frame 0; an image
without a number is a video of one frame. Holds: class, box, track. Does not: rate, ignored boxes, occlusion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import LONGEST_PATH, BoxSource, build_box_predictions, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import FACTS, Facts, check_classes, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file, select_first_reason
from roadaware.datasets.relation_tables import format_video_name
from roadaware.datasets.sensor_tables import parse_picture_size
from roadaware.errors import InputError, UsageError
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import Source, decode_utf_text, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 2
NAMES = ("data.yaml", "dataset.yaml", "data.yml")
LISTS = ("classes.txt", "obj.names", "labels/classes.txt")
_PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
_NUMBERED = re.compile(r"(.+?)[_/](\d{1,9})", re.ASCII | re.DOTALL)
_NO_LABELS = {
    "classes.txt",
    "train.txt",
    "val.txt",
    "test.txt",
    "readme.txt",
    "notes.txt",
    "requirements.txt",
}
_SPLITS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_LABELS = (("labels",), ("obj_train_data",), tuple(f"{split}/labels" for split in _SPLITS), ("",))
_WANTED = (
    "YOLO needs its annotations, files '*.txt' in 'labels/' with 'data.yaml' or 'classes.txt' beside it,"
)
_HINT = "Point at the folder that holds 'labels/' and the names of the classes ('data.yaml', 'classes.txt')."
_FIELDS = 8
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$"
_MOST_LINE = 4096


def find(path: Path) -> Source:
    """The set at `path`: the folder, one inside it, or its zip.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(_list_labels(source)), _WANTED, _HINT)


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    named = [name for name in (*NAMES, *LISTS, FACTS) if source.holds(name)]
    return [*named, *_list_labels(source)]


def _list_labels(source: Source) -> list[str]:
    """Files of labels, of the first place that has some."""
    named = any(source.holds(name) for name in (*NAMES, *LISTS, FACTS))
    for places in _LABELS:
        found = [
            name
            for place in places
            if not place or source.has_folder(place)
            for name in _walk(source, place)
            if PurePosixPath(name).name.lower() not in _NO_LABELS
        ]
        if found and (named or places == ("labels",)):
            return found
    return []


def _walk(source: Source, folder: str, depth: int = 3) -> Iterator[str]:
    files, folders = source.entries(folder)
    start = f"{folder}/" if folder else ""
    # A folder that is called as a file is one that cannot be read, and is said to be.
    yield from (start + name for name in sorted([*files, *folders]) if name.lower().endswith(".txt"))
    if depth and folder:
        for inner in folders:
            yield from _walk(source, start + inner, depth - 1)


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    size: str | list[int] | None = None,
    classes: str | list[str] | None = None,
    first_frame: int | None = None,
    predicted: bool = False,
) -> Scenes | Predictions:
    """All images as Scenes; what was refused is in `rejected`, with its line.

    Boxes become pixels where the size of an image is known: of the image itself, of the option or of `dataset.toml`. Where
    none is, images count as 1 x 1, and `--media` with the videos brings them to pixels.

    Args:
        fps: frames a second of every video.
        size: of every image, such as 1920x1080.
        classes: names in the order of their numbers, where no file has them.
        first_frame: number of a video's first frame: 1, or 0.
        predicted: read predictions, whose sixth column is a score.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read, or the names of the classes are broken.
    """
    findings = Findings()
    found = BoxSource("yolo", findings, predicted=predicted)
    facts = read_facts(source, fps=fps, size=size, classes=classes, first_frame=first_frame)
    found.classes = list(facts.classes or _read_classes(source))
    names = _list_labels(source)
    texts: list[tuple[str, str]] = []

    def take(name: str, part: Findings) -> None:
        texts.append((name, _decode(source, name)))

    errors = read_each_file(names, take, findings, progress)
    if not texts:
        raise build_unreadable_error(errors)
    places = _place_images(source, [name for name, _ in texts], facts)
    # Videos and frames of the images; `places` gets `frame`
    numbers = [number for number in places["number"] if number is not None]
    base = facts.first_frame if facts.first_frame is not None else int(0 not in numbers)
    places["frame"] = [0 if number is None else number - base for number in places["number"]]
    sized = all(width is not None for width in places["width"])
    if not sized:
        places["width"], places["height"] = ([1] * len(places["file"]) for _ in range(2))
        found.notes["unit_boxes"] = True
    videos: dict[str, dict[str, Any]] = {}
    frames: dict[str, set[int]] = {}
    for n, video in enumerate(places["video"]):
        frame, split = places["frame"][n], places["split"][n]
        row = videos.setdefault(
            video,
            {"video": video, "width_px": places["width"][n], "height_px": places["height"][n], "fps": facts.fps,
             "n_frames": 0, "splits": [f"default/{split}"] if split else None},
        )  # fmt: skip
        if frame < 0 or frame > MOST_FRAMES or len(video.encode()) > LONGEST_NAME:
            continue
        row["n_frames"] = max(row["n_frames"], frame + 1)
        frames.setdefault(video, set()).add(frame)
        if places["image"][n]:
            found.paths[video, frame] = places["image"][n]
    found.frames = {video: sorted(held) for video, held in frames.items()}
    found.videos = [row for row in videos.values() if len(row["video"].encode()) <= LONGEST_NAME]
    rows = _split_lines(texts)
    found.rows.append(_take(rows, pl.DataFrame(places), found))
    digest = source.contents(inputs(source))
    return build_box_predictions(found, digest) if predicted else build_box_scenes(found, digest)


def _decode(source: Source, name: str) -> str:
    data = source.read(name)
    if not data.strip():
        # An image in which there is nothing has an empty file.
        return ""
    return decode_utf_text(data, source.where(name), expected="rows of YOLO", hint="write it as UTF-8 text")


def _read_classes(source: Source) -> tuple[str, ...]:
    """Names of the classes in the order of their numbers; none where no file has them.

    Raises:
        InputError: if a file of them is broken.
    """
    for name in NAMES:
        if source.holds(name):
            held = _parse_yaml(source, name)
            listed = held.get("names") if isinstance(held, dict) else None
            where = source.where(name)
            if isinstance(listed, dict):
                numbers = list(listed)
                if sorted(map(str, numbers)) != sorted(str(n) for n in range(len(listed))):
                    raise InputError("'names' should number the classes from 0 on", where=where)
                listed = [{str(k): v for k, v in listed.items()}[str(n)] for n in range(len(listed))]
            if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
                raise InputError(
                    "'names' is missing, or no list of names of classes",
                    where=where,
                    hint="names: {0: person}",
                )
            return check_classes(listed, where)
    for name in LISTS:
        if source.holds(name):
            where = source.where(name)
            text = decode_utf_text(source.read(name), where, expected="names of classes", hint=_HINT)
            return check_classes([line.strip() for line in text.splitlines() if line.strip()], where)
    return ()


def _parse_yaml(source: Source, name: str) -> Any:
    if find_spec("yaml") is None:
        raise UsageError(
            f"{name} needs PyYAML: pip install 'roadaware[models]', or name the classes in classes.txt, one a line"
        )
    from roadaware.io.yaml import parse  # of the extra `models`

    where = source.where(name)
    text = decode_utf_text(source.read(name), where, expected="YAML", hint="write it as UTF-8")
    try:
        return parse(text, number_keys=True)
    except ValueError as error:
        raise InputError(f"is no YAML: {error}", where=where, hint="mend that place") from error


def _place_images(source: Source, names: list[str], facts: Facts) -> dict[str, list[Any]]:
    """Of every file of labels its video, frame, split, image and size."""
    table: dict[str, list[Any]] = {
        key: [] for key in ("file", "video", "number", "split", "image", "width", "height")
    }
    shown: dict[str, dict[str, str]] = {}
    for name in names:
        inner = re.sub(r"^((?:\w+/)?)(labels|obj_train_data)/", r"\1", name)
        first, _, rest = inner.partition("/")
        split = _SPLITS.get(first.lower()) if rest else None
        stem = (rest if split else inner).removesuffix(PurePosixPath(name).suffix)
        numbered = _NUMBERED.fullmatch(stem)
        folder = str(PurePosixPath(name).parent)
        image = _find_image(source, folder, PurePosixPath(name).stem, shown)
        size = facts.size_px
        if size is None and image is not None:
            seen = parse_picture_size(source, image)
            size = None if isinstance(seen, str) else seen
        table["file"].append(to_printable(name, LONGEST_PATH))
        table["video"].append(format_video_name(numbered[1] if numbered else stem))
        table["number"].append(int(numbered[2]) if numbered else None)
        table["split"].append(split)
        table["image"].append(image and escape_surrogates(image))
        table["width"].append(size[0] if size else None)
        table["height"].append(size[1] if size else None)
    return table


def _find_image(source: Source, folder: str, stem: str, shown: dict[str, dict[str, str]]) -> str | None:
    """The image of a file of labels: in the folder called `images` in the place of `labels`, or beside it."""
    folder = "" if folder == "." else folder
    for place in dict.fromkeys((re.sub(r"(^|/)labels(?=/|$)", r"\1images", folder, count=1), folder)):
        if place not in shown:
            held = source.entries(place)[0] if not place or source.has_folder(place) else []
            shown[place] = {
                PurePosixPath(each).stem: each
                for each in held
                if PurePosixPath(each).suffix.lower() in _PICTURES
            }
        if stem in shown[place]:
            return f"{place}/{shown[place][stem]}" if place else shown[place][stem]
    return None


def _split_lines(texts: list[tuple[str, str]]) -> pl.DataFrame:
    """The lines that hold anything of all files, with their numbers from 1, as text cells `c0` to `c7`."""
    lines = (
        pl.DataFrame({"text": [text for _, text in texts]}, schema={"text": pl.String})
        .with_row_index("place")
        .with_columns(pl.col("text").str.replace_all("\r\n?", "\n").str.split("\n"))
        .with_columns(line=pl.int_ranges(1, pl.col("text").list.len() + 1))
        .explode("text", "line")
        .with_columns(pl.col("text").str.strip_chars())
        .filter(pl.col("text") != "")
        .with_columns(long=pl.col("text").str.len_bytes() > _MOST_LINE)
        .with_columns(pl.col("text").str.slice(0, _MOST_LINE).str.replace_all(r"[ \t]+", " "))
    )
    parts = lines["text"].str.split_exact(" ", _FIELDS - 1).struct.unnest()
    parts.columns = [f"c{n}" for n in range(_FIELDS)]
    cells = lines.select(count=pl.col("text").str.count_matches(" ", literal=True).cast(pl.Int64) + 1)
    return pl.concat([lines, parts, cells], how="horizontal")


def _take(rows: pl.DataFrame, places: pl.DataFrame, found: BoxSource) -> pl.DataFrame:
    """The rows as `box_rows.ROWS`."""
    rows = rows.join(
        places.select("file", "video", "frame", "width", "height").with_row_index("place"),
        on="place",
        how="left",
        maintain_order="left",
    )
    numbers = [
        pl.when(pl.col(c).str.contains(_NUMBER)).then(pl.col(c)).cast(pl.Float64, strict=False)
        for c in ("c1", "c2", "c3", "c4")
    ]
    rows = rows.with_columns(number.alias(f"n{n}") for n, number in enumerate(numbers))
    last = pl.when(pl.col("count") == 7).then("c6")
    track: pl.Expr = last if found.predicted else last.when(pl.col("count") == 6).then("c5")
    whole = r"^\d{1,16}(\.0+)?$"
    score = pl.when((pl.col("count") > 5) & pl.col("c5").str.contains(_NUMBER)).then("c5")
    rows = rows.with_columns(
        track=track.str.replace(r"\.0+$", ""), score=score.cast(pl.Float64, strict=False)
    )
    known = dict(enumerate(found.classes))
    number = pl.when(pl.col("c0").str.contains(r"^\d{1,6}(\.0+)?$")).then(
        pl.col("c0").str.replace(r"\.0+$", "").cast(pl.Int64, strict=False)
    )
    label = (
        number.replace_strict(known, default=None, return_dtype=pl.String)
        if known
        else number.cast(pl.String)
    )
    rows = rows.with_columns(label=label)
    wide, high = pl.col("width"), pl.col("height")
    half_x, half_y = pl.col("n2") / 2, pl.col("n3") / 2
    corners = ((pl.col("n0") - half_x) * wide, (pl.col("n1") - half_y) * high,
               (pl.col("n0") + half_x) * wide, (pl.col("n1") + half_y) * high)  # fmt: skip
    # What the sums and differences above lose.
    places_after = 13 if found.notes.get("unit_boxes") else 10
    rows = rows.with_columns(
        corner.round(places_after).alias(name) for corner, name in zip(corners, CORNERS, strict=True)
    )
    shown = pl.format("'{}'", pl.col("c0").str.slice(0, 40))
    listed = f"there are {len(known)} classes, from 0" if known else "a class is a whole number from 0"
    box = pl.concat_str([pl.col(f"c{n}").fill_null("").str.slice(0, 24) for n in range(1, 5)], separator=" ")
    reason = select_first_reason(
        (pl.col("long"), f"a line of more than {_MOST_LINE} bytes"),
        (
            ~pl.col("count").is_in([5, 6, 7]),
            pl.format(
                "{} fields where 5 are due (class cx cy w h), 6 with a track, 7 with a score and a track; outlines and "
                "key points are not read", "count",
            ),
        ),
        (pl.col("label").is_null(), pl.format(f"no class {{}}: {listed}", shown)),
        (
            (pl.col("count") > (6 if found.predicted else 5))
            & ~pl.coalesce(pl.when(pl.col("count") == 7).then("c6"), "c5").str.contains(whole),
            "the track is no whole number from 0 (a score without a track makes it no ground truth)",
        ),
        ((pl.col("n2") < 0) | (pl.col("n3") < 0), pl.format("the box is upside down, w or h < 0: {}", box)),
        (
            pl.any_horizontal(pl.col(f"n{n}").abs() > 10 for n in range(4)).fill_null(value=False),
            pl.format("the box is in pixels or broken: boxes should be shares of the image, 0..1: {}", box),
        ),
    )  # fmt: skip
    rows = rows.with_columns(
        reason,
        item=pl.col("text").str.slice(0, 60),
        ignore=pl.lit(None, pl.Boolean),
    )
    beyond = pl.any_horizontal(pl.col("x1_px") < -1e-6, pl.col("y1_px") < -1e-6, pl.col("x2_px") > wide + 1e-6,
                               pl.col("y2_px") > high + 1e-6) & pl.col("reason").is_null()  # fmt: skip
    outside = rows.filter(beyond.fill_null(value=False))
    found.findings.warn(
        "boxes that reach out of their image, kept as they are",
        outside["file"][0] if len(outside) else "",
        len(outside),
    )
    return rows.with_columns(pl.col("track").cast(pl.String), pl.col("frame").cast(pl.Int64))
