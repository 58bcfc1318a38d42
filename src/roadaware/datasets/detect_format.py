"""Detection of the reader for a file or folder of annotations, from its content."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from roadaware.datasets import get_reader
from roadaware.datasets.tracker_csv import is_box_header
from roadaware.errors import DatasetNotFoundError, InputError, UsageError
from roadaware.io.sources import FolderSource, Source, open_source, resolve_inside, to_printable
from roadaware.io.storage import locate_content

# Keys that tell may stand behind megabytes of boxes: the end of a file is looked at, too.
_HEAD, _TAIL = 1 << 22, 1 << 20
_MOST_FILES, _DEEPEST, _SHOWN = 60, 4, 60
_SUFFIXES = (".json", ".csv", ".xml")
FILMS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi")
"""Endings of the videos that annotations are about."""
_ZIP = b"PK\x03\x04"
_AVA_COLUMNS = (7, 8)
_OFFICIAL = ("st_frame", "ed_frame", "bbox")
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_HEADER = re.compile(rb"[A-Za-z_]")

# VidSTG stands before VidVRD, whose keys its raw annotations have too. The ground truth and the predictions of HC-STVG's
# own evaluation have one form, so such a file is taken for annotations where these are asked for.
# Any of these groups of keys, all of them present, tells the reader; the first that fits counts.
_KEYS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("simulator", (("roadaware-simulation",),)),
    ("road", (("db", "agent_labels"), ("db", "all_agent_labels"))),
    ("label_studio", (("from_name", "result"), ("data", "annotations", "result"), ("data", "predictions"))),
    ("vidstg", (("used_segment",), ("temporal_gt",), ("videos", "trajectories"), ("qtype", "trajectories"))),
    ("vidvrd", (("relation_instances",), ("subject/objects",))),
    ("hcstvg", (("trajectory", "tube_start_frame"), ("st_time", "bbox"), ("img_num", "bbox"), _OFFICIAL)),
    ("vggss", (("file", "class", "bbox"),)),
    # Of a large file the lists between its two ends are not seen, and known by the rows at the ends.
    (
        "coco",
        (
            ("images", "categories", "annotations"),
            ("annotations", "image_id", "category_id", "bbox"),
            ("images", "file_name", "image_id", "category_id", "bbox"),
        ),
    ),
    ("vott", (("frames", "inputTags"), ("assets", "videoSettings"), ("asset", "regions"))),
    (
        "via",
        (
            ("_via_img_metadata",),
            ("shape_attributes", "region_attributes"),
            ("vid_list", "metadata", "attribute"),
        ),
    ),
    ("fiftyone", (("media_type", "default_classes"), ("samples", "filepath"))),
    ("activitynet", (("database", "segment"), ("database", "subset"), ("results", "external_data"))),
    ("openlabel", (("openlabel",), ("vcd", "schema_version"))),
    ("bdd100k", (("labels", "category", "box2d"), ("name", "labels", "videoName", "frameIndex"))),
    (
        "nuscenes",
        (
            ("sensor_token", "camera_intrinsic"),
            ("instance_token", "sample_token"),
            ("token", "images", "lidar_points"),
        ),
    ),
)
_PREDICTIONS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("predicted spans and boxes of sentences", (("video_predictions",),)),
    ("predicted relations", (("triplet", "score"),)),
)


_PLACES = re.compile(
    r"(?:^|/)annotations(?:_attributes|_vehicle|_appearance|_traffic)?/(?P<set>set\d\d/)?video_\d{4}(?:_\w+)?\.xml$",
    re.ASCII,
)
"""Where the files of JAAD and PIE lie, whose XML is that of CVAT."""


_HINT = (
    "ROAD, JAAD, PIE, UCF101-24, COCO, YOLO, MOT, CVAT, Pascal VOC, csv of boxes, BDD100K, OpenLABEL, VIA, VoTT, FiftyOne, "
    "ActivityNet, KITTI, ONCE, nuScenes, AVA and Chaotic World csv, VidVRD, VidOR, HC-STVG, VidSTG, VGG-SS and Label Studio "
    "JSON, Flickr-SoundNet XML and synthetic scenes are known by what is in them; `roadaware read NAME PATH` says which"
)


def detect_dataset_format(path: Path, hint: str = _HINT) -> str:
    """The name of the reader of what lies at a path.

    Args:
        path: a file of annotations, a folder of such files, or its zip archive.
        hint: what to do where it is none that we read.

    Raises:
        DatasetNotFoundError: if nothing is there.
        InputError: if it is none that we read; says what it looks like.
    """
    seen = ""
    for name, head, tail in _files(path):
        found = match_reader(head, tail)
        if found in (None, "cvat", "voc") and (place := _PLACES.search(name)) is not None:
            return "pie" if place["set"] else "jaad"
        if found is not None:
            return found
        seen = seen or f"{to_printable(name)} {_looks(head, tail)}"
    # Behind what says itself what it is: such folders may lie deep inside other sets.
    if (layout := _by_layout(path)) is not None:
        return layout
    raise InputError(
        f"expected annotations of a known format, found {seen or _describe_files(path)}",
        where=to_printable(str(path)),
        hint=hint,
    )


def _by_layout(path: Path) -> str | None:
    """UCF101-24, KITTI, ONCE, MOT and YOLO, whose files say nothing of themselves: known by their names and folders."""
    if path.name.lower().endswith(".pkl"):
        return "ucf24" if path.name.lower().startswith("pyannot") else None
    if not path.is_dir() and path.suffix.lower() != ".zip":
        return None
    # The files of KITTI's drives have no other sign than their names, which those of YOLO may have too.
    for name, fields in (
        ("ucf24", ()),
        ("kitti", ()),
        ("kitti_tracking", (17, 18)),
        ("once", ()),
        ("mot", ()),
        ("yolo", ()),
    ):
        if _opens(name, path) and (not fields or _count_fields(name, path) in fields):
            return name
    return None


def _count_fields(name: str, path: Path) -> int:
    """How many words the first line has of the files that a reader would read; 0 where none has any."""
    module = importlib.import_module(get_reader(name).module)
    with module.find(path) as source:
        for file in islice(module.inputs(source), _MOST_FILES):
            if words := source.read(file)[:4096].split(b"\n", 1)[0].split():
                return len(words)
    return 0


def match_reader(head: bytes, tail: bytes = b"") -> str | None:
    """The reader of a file, by its content; None where that is unclear.

    Args:
        head: how it begins.
        tail: how it ends, where `head` is not all of it.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] in (b"{", b"["):
        return _by_keys(head + tail, _KEYS) or _bare_relations(head + tail)
    if start[:1] == b"<":
        # CVAT says its version, Pascal VOC has objects with a <bndbox>; Flickr-SoundNet has blocks of
        # annotators
        if b"<annotation" not in start:
            return None
        if b"@text=old_id:" in start:
            return "jaad"
        if b"<annotations" in start and re.search(rb"<version>\s*1\.[01]\s*</version>", start):
            return "cvat"
        return (
            "voc"
            if b"<bndbox" in start or (b"<filename" in start and b"<size" in start)
            else "flickr_soundnet"
        )
    # AVA has seven or eight columns and no header; Chaotic World and csv of boxes have a header
    line = start.replace(b"\r", b"\n").split(b"\n", 1)[0].strip()
    cells = [cell.strip() for cell in _QUOTED.sub(b"quoted", line).split(b",")]
    if len(cells) < 2:
        return None
    if len(cells) in _AVA_COLUMNS and all(_is_number(cell) for cell in cells[1:6]):
        return "ava"
    words = [cell for cell in cells if _HEADER.match(cell)]
    if len(words) <= len(cells) // 2:
        return None
    names = [name.strip().strip('"').lower() for name in line.decode("utf-8", "replace").split(",")]
    if "region_shape_attributes" in names:
        return "via"
    # The actions of Chaotic World have a column of actions; its sounds have no boxes of tracks.
    return "chaotic_world" if any("action" in name for name in names) or not is_box_header(names) else "csv"


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _by_keys(data: bytes, known: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]) -> str | None:
    for name, groups in known:
        if any(all(f'"{key}"'.encode() in data for key in group) for group in groups):
            return name
    return None


def _bare_relations(data: bytes) -> str | None:
    """Relations by video, as VidVRD-helper takes ground truth; predictions have the same form and a score."""
    bare = _by_keys(data, (("vidvrd", (("triplet", "duration", "sub_traj"),)),))
    return bare if _by_keys(data, _PREDICTIONS) is None else None


def _looks(head: bytes, tail: bytes) -> str:
    """Description of a file that no reader knows."""
    predicted = _by_keys(head + tail, _PREDICTIONS)
    if predicted is not None:
        return f"which looks like {predicted}, not like annotations"
    start = head[:_SHOWN].decode("utf-8", errors="replace").strip()
    return f"which begins with {start!r}{_describe_break(head, tail)}" if start else "which is empty"


def _describe_break(head: bytes, tail: bytes) -> str:
    """That a JSON breaks off, where its end is not that of an object or a list."""
    begins, ends = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1], (tail or head).rstrip()[-1:]
    broken = begins in (b"{", b"[") and ends not in (b"}", b"]")
    return " and breaks off, as JSON that was copied or written in part" if broken else ""


def _describe_files(path: Path) -> str:
    """What lies in a folder without annotations that say themselves what they are, and what it may be meant for."""
    found = "no .json, .csv or .xml file"
    names = sorted(each.name for each in path.iterdir()) if path.is_dir() else []
    for suffixes, meaning in (
        ((".txt",), "boxes of YOLO are read where the folder that holds 'labels/' is named"),
        (FILMS, "videos without annotations are for `roadaware predict --videos`"),
    ):
        if first := next((name for name in names if name.lower().endswith(suffixes)), None):
            return f"{found} but such as {to_printable(first, 60)}: {meaning}"
    return found


def _files(path: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """Files with how they begin and end: the file itself, or some of those in a folder or archive."""
    try:
        if path.is_file():
            head, tail = _read_ends(path)
            if not head.startswith(_ZIP):
                yield path.name, head, tail
                return
    except OSError as error:
        raise InputError(
            f"expected a readable file: {error.strerror}", where=to_printable(str(path))
        ) from error
    if not path.exists():
        raise DatasetNotFoundError(f"there is nothing at {to_printable(str(path))}; check the path")
    with open_source(path) as source:
        for name in islice(_names(source), _MOST_FILES):
            if isinstance(source, FolderSource) and source.measure(name) > _HEAD + _TAIL:
                yield name, *_read_ends(resolve_inside(source.path, name))
            else:
                yield name, source.read(name), b""


def _read_ends(path: Path) -> tuple[bytes, bytes]:
    """How a file begins and ends."""
    with locate_content(path).open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(len(head), path.stat().st_size - _TAIL))
        return head, file.read(_TAIL)


def _names(source: Source) -> Iterator[str]:
    """Files that may hold annotations, the nearest first."""
    level = [""]
    for _ in range(_DEEPEST):
        inner: list[str] = []
        for folder in level:
            files, folders = source.entries(folder)
            start = f"{folder}/" if folder else ""
            yield from (f"{start}{name}" for name in files if name.lower().endswith(_SUFFIXES))
            inner += [f"{start}{name}" for name in folders]
        level = inner


# Datasets with LiDAR sweeps, which are told from their folders.

SWEEP_READERS = ("kitti", "nuscenes", "once", "simulator")


def detect_reader(path: Path) -> str:
    """The reader of the dataset with LiDAR sweeps that lies at a path.

    Raises:
        DatasetNotFoundError: if it is none that has sweeps.
    """
    if not path.exists():
        raise DatasetNotFoundError("there is no such file or folder", where=str(path))
    found = [name for name in SWEEP_READERS if _opens(name, path)]
    if len(found) == 1:
        return found[0]
    what = f"{' and '.join(found)} lie there; say which with --reader" if found else "none of them is there"
    hint = None if found else "--reader with one of them says what it misses"
    raise DatasetNotFoundError(
        f"expected a dataset with sweeps ({', '.join(SWEEP_READERS)}); {what}",
        where=str(path),
        hint=hint,
    )


def _opens(name: str, path: Path) -> bool:
    try:
        importlib.import_module(get_reader(name).module).find(path).close()
    except DatasetNotFoundError:
        return False
    return True


def find_root(name: str, path: Path) -> Path:
    """The folder that paths in the tables start at.

    Raises:
        UsageError: if it is an archive.
    """
    with importlib.import_module(get_reader(name).module).find(path) as source:
        found: Path = source.path / source.prefix if source.prefix else source.path
    if not found.is_dir():
        raise UsageError(f"{path} is an archive: unpack it, sweeps and images are opened one by one")
    return found
