"""PIE: pedestrians and their intention in front of a car, 53 videos, unpacked or from its own zips.

Rasouli, Kotseruba, Kunic and Tsotsos, "PIE: a large-scale dataset and models for pedestrian intention
estimation and trajectory prediction", ICCV 2019. Annotations under the MIT licence, github.com/aras62/PIE.

Takes `annotations/`, `annotations_attributes/` and `annotations_vehicle/`, each unpacked or as the zip of
that name, or any one of them; of attributes alone come pedestrians without boxes, their `start_frame` and
`end_frame` null. Videos themselves are not needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from roadaware.datasets import READERS
from roadaware.datasets.cvat import (
    CORNERS,
    Sheet,
    add_event_frame,
    compute_tube_intervals,
    list_cvat_tracks,
    parse_frame_rows,
    read_frame_count,
    read_image_size,
    read_sheet,
    select_valid_boxes,
    select_valid_tracks,
    split_rejected,
)
from roadaware.datasets.issues import Cells, Findings, select_first_reason
from roadaware.errors import InputError
from roadaware.io.sources import (
    FolderSource,
    JoinedSource,
    Source,
    find_source,
    open_source,
    resolve_inside,
    to_printable,
)
from roadaware.io.xml import Document, Record, Walked, Walker, Walkers, count_cores
from roadaware.scenes.tables import Scenes

# The words and forms of PIE's files: vocabularies in the dataset's code order, how records are written.

PARTS = {
    "annotations": "_annt.xml",
    "annotations_attributes": "_attributes.xml",
    "annotations_vehicle": "_obd.xml",
}
# The split of PIE's own code, by set.
SPLIT = {
    "set01": "train",
    "set02": "train",
    "set03": "test",
    "set04": "train",
    "set05": "val",
    "set06": "val",
}
TRACK_LABEL = ("pedestrian", "vehicle", "traffic_light", "sign", "crosswalk", "transit_station")
OCCLUSION = ("none", "part", "full")
CROSSING = ("not-crossing", "crossing", "irrelevant")
# The attributes write codes, the boxes words.
NATIVE_CROSSING = {"0": "not-crossing", "1": "crossing", "-1": "irrelevant"}
NATIVE_CROSS = {"not-crossing": "not-crossing", "crossing": "crossing", "crossing-irrelevant": "irrelevant"}
BOX_TAGS = {
    "action": ("standing", "walking"),
    "look": ("not-looking", "looking"),
    "gesture": ("__undefined__", "hand_ack", "hand_yield", "hand_rightofway", "nod", "other"),
    "state": ("__undefined__", "red", "yellow", "green"),
}
TRAITS = {
    "age": ("child", "young", "adult", "senior"),
    "gender": ("n/a", "female", "male"),
    "intersection": ("midblock", "T", "T-left", "T-right", "four-way"),
    "signalized": ("n/a", "C", "S", "CS"),
    "traffic_direction": ("OW", "TW"),
}
TRAFFIC_LIGHT = ("n/a", "red", "yellow", "green")
OBJECT_TYPES = {
    "vehicle": ("car", "truck", "bus", "train", "bicycle", "bike"),
    "traffic_light": ("regular", "transit", "pedestrian"),
    "sign": (
        "ped_blue",
        "ped_yellow",
        "ped_white",
        "ped_text",
        "stop_sign",
        "bus_stop",
        "train_stop",
        "construction",
        "other",
    ),
}
OBJECT_TYPE = tuple(dict.fromkeys(kind for kinds in OBJECT_TYPES.values() for kind in kinds))
# Types 0 to 3 of the published code mean pedestrians.
PEDESTRIAN_SIGNS = OBJECT_TYPES["sign"][:4]
POINTS = ("crossing_point", "critical_point", "exp_start_point")
SENSORS = {
    "OBD_speed": "ego_speed_kmh",
    "GPS_speed": "gps_speed_kmh",
    "heading_angle": "heading_deg",
    "latitude": "latitude",
    "longitude": "longitude",
    "yaw": "yaw",
    "pitch": "pitch",
    "roll": "roll",
    "accX": "acc_x",
    "accY": "acc_y",
    "accZ": "acc_z",
    "gyroX": "gyro_x",
    "gyroY": "gyro_y",
    "gyroZ": "gyro_z",
}
VOCABULARIES: dict[str, tuple[str, ...]] = {
    "track_label": TRACK_LABEL,
    "occlusion": OCCLUSION,
    "pedestrian_action": BOX_TAGS["action"],
    **{name: labels for name, labels in BOX_TAGS.items() if name not in ("action", "state")},
    "cross": CROSSING,
    **TRAITS,
    "crossing": CROSSING,
    "object_type": OBJECT_TYPE,
    "traffic_light": TRAFFIC_LIGHT,
}

_BOX_ATTRIBUTES = ("frame", "keyframe", "occluded", "outside", "xbr", "xtl", "ybr", "ytl")
BOX_CHILDREN = ("id", "type", "state", "occlusion", "action", "look", "gesture", "cross")
_OPENING = re.compile(r'<box ((?:[a-z]{1,20}="[^"<>]{0,40}" ?){1,20})>')
_NAMED = re.compile(r'([a-z]{1,20})="')
_CHILD = re.compile(r'<attribute name="([a-z]{1,20})">')
# Every form is one more pattern that a box may be tried against.
_MOST_FORMS = 16

PEDESTRIAN = Record(
    "pedestrian",
    "ped_attributes",
    (
        "age",
        "critical_point",
        "crossing",
        "crossing_point",
        "exp_start_point",
        "gender",
        "id",
        "intention_prob",
        "intersection",
        "num_lanes",
        "signalized",
        "traffic_direction",
    ),
)
_OBD_OPENING = re.compile(r"<frame ([^<>]{1,1000}?) ?/>")
_OBD_NAMED = re.compile(r'([A-Za-z_]{1,20})="')


def get_box_record(text: str) -> Record:
    """Boxes in the order of attributes and children that this file uses.

    Only the order is taken from the text, and only from names that are known; a box that is written in
    another way is read by lxml and gives the same row.
    """
    opening = _OPENING.search(text)
    attributes = tuple(_NAMED.findall(opening[1])) if opening else ()
    if sorted(attributes) != sorted(_BOX_ATTRIBUTES):
        attributes = _BOX_ATTRIBUTES
    forms: dict[tuple[str, ...], None] = {}
    for track in text.split("<track ")[1:]:
        form = tuple(_CHILD.findall(track[: track.find("</box>")]))
        if len(set(form)) == len(form) and set(form) <= set(BOX_CHILDREN) and len(forms) < _MOST_FORMS:
            forms[form] = None
    return Record("box", "track", attributes, (*forms, BOX_CHILDREN))


def get_vehicle_record(text: str) -> Record:
    """Frames of the vehicle's sensors in the order of attributes that this file uses."""
    wanted = ("id", *SENSORS)
    opening = _OBD_OPENING.search(text)
    attributes = tuple(_OBD_NAMED.findall(opening[1])) if opening else ()
    return Record("frame", "vehicle_info", attributes if sorted(attributes) == sorted(wanted) else wanted)


# PIE's frames: the vehicle's sensors, and the traffic state that follows from the boxes.

_EXACT = ("latitude", "longitude")


def build_frames(
    head: pl.DataFrame, tubes: pl.DataFrame, boxes: pl.DataFrame, sensed: Sheet | None, findings: Findings
) -> pl.DataFrame:
    """Every frame of one video: all of its length, or, where no file tells that, those with sensor data.

    `annotated` is true where there is a box and null elsewhere: nothing tells whether somebody looked.

    Args:
        head: the video's row.
        tubes: its tubes, with `owner`.
        boxes: its boxes.
        sensed: the vehicle's sensors, one record per frame.
        findings: counts the frames, and takes what is refused.
    """
    # One row for each frame of the file; position keeps double precision, a single one errs by metres
    kinds = {name: pl.Float64 if name in _EXACT else pl.Float32 for name in SENSORS.values()}
    if sensed is None:
        sensors = pl.DataFrame(schema={"frame": pl.Int64, **kinds})
    else:
        lengths = head.select(pl.lit(0, pl.UInt32).alias("document"), "n_frames")
        rows = parse_frame_rows(sensed, lengths, findings)
        cells = Cells(rows, sensed.files, findings)
        columns = pl.DataFrame(cells.numbers(list(SENSORS))).rename(SENSORS).cast(pl.Schema(kinds))
        sensors = rows.select("frame", *columns)
    length = head["n_frames"][0]
    grid = sensors.select("frame") if length is None else pl.DataFrame({"frame": range(length)})
    grid = grid.select(pl.lit(head["video"][0]).alias("video"), pl.col("frame").cast(pl.Int64)).sort("frame")
    findings.read["frames"] += len(grid)
    seen = boxes.select("frame", pl.lit(value=True).alias("annotated")).unique()
    traffic = _traffic(tubes, boxes)
    for columns in (seen, sensors, traffic):
        grid = grid.join(columns, on="frame", how="left", maintain_order="left")
    if length is None:
        return grid
    flags = [pl.col(name).fill_null(value=False) for name in ("ped_crossing", "ped_sign", "stop_sign")]
    return grid.with_columns(*flags, pl.col("traffic_light").fill_null(pl.lit("n/a")))


def _traffic(tubes: pl.DataFrame, boxes: pl.DataFrame) -> pl.DataFrame:
    """Traffic objects in sight, for the frames that show some.

    Of several lights in one frame the one whose track stands last in the file counts, whichever way it
    faces and even where its state is undefined: the published rule. `boxes.state` has them all.
    """
    things = boxes.join(tubes.select("tube", "owner", "track_label", "object_type"), on="tube", how="left")
    label, kind = pl.col("track_label"), pl.col("object_type").cast(pl.String)
    lit = label == "traffic_light"
    state = pl.col("state").cast(pl.String).filter(lit).sort_by(pl.col("owner").filter(lit)).last()
    known = pl.when(state.is_in(TRAFFIC_LIGHT)).then(state).otherwise(pl.lit("n/a"))
    return (
        things.group_by("frame")
        .agg(
            (label == "crosswalk").any().alias("ped_crossing"),
            ((label == "sign") & kind.is_in(PEDESTRIAN_SIGNS)).any().alias("ped_sign"),
            ((label == "sign") & (kind == "stop_sign")).any().alias("stop_sign"),
            known.alias("traffic_light"),
        )
        .with_columns(pl.col("traffic_light").cast(pl.Enum(TRAFFIC_LIGHT)))
    )


# PIE's tracks and boxes: joined, checked, with the attributes, tags and events of the pedestrians.

_TRACKS: dict[str, type[pl.DataType] | pl.DataType] = {
    "owner": pl.UInt32,
    "name": pl.String,
    "track_label": pl.Enum(TRACK_LABEL),
    "object_type": pl.Enum(OBJECT_TYPE),
}
_BOXES: dict[str, type[pl.DataType] | pl.DataType] = {
    "owner": pl.UInt32,
    "frame": pl.Int64,
    **dict.fromkeys(CORNERS, pl.Float32),
    "occlusion": pl.Enum(OCCLUSION),
    "occluded": pl.Boolean,
    **{name: pl.Enum(labels) for name, labels in BOX_TAGS.items()},
    "cross": pl.Enum(CROSSING),
}


def build_video_tables(
    sheet: Sheet | None, attributes: Sheet | None, head: pl.DataFrame, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `tubes` (by name, numbered from 0) and `boxes` (by tube and frame) of one video.

    `owner` is where a tube's track stands in the file, null for tubes without a track.

    Args:
        sheet: the annotations; without them every pedestrian of the attributes is a tube without boxes.
        attributes: what is known of the pedestrians.
        head: the video's row.
        findings: takes what is refused.
    """
    tracks, boxes = pl.DataFrame(schema=_TRACKS), pl.DataFrame(schema=_BOXES)
    walkers: pl.Series | None = None
    if sheet is not None:
        tracks, boxes = _tracks_and_boxes(sheet, head, findings)
        walkers = tracks.filter(pl.col("track_label").eq("pedestrian").fill_null(value=True))["name"]
    known = _pedestrians(attributes, walkers, head, findings)
    if sheet is None:
        findings.read["tubes"] += len(known)
        alone = known.select("name", pl.lit("pedestrian").cast(pl.Enum(TRACK_LABEL)).alias("track_label"))
        tracks = pl.concat([tracks, alone], how="diagonal")
    tracks = tracks.sort("name").select(pl.int_range(pl.len(), dtype=pl.Int64).alias("tube"), pl.all())
    boxes = boxes.join(tracks.select("owner", "tube"), on="owner", how="inner").sort("tube", "frame")
    tubes = tracks.join(compute_tube_intervals(boxes), on="tube", how="left", maintain_order="left")
    tubes = tubes.join(known, on="name", how="left", maintain_order="left")
    if walkers is not None and attributes is not None:
        lost = walkers.filter(~walkers.is_in(known["name"].implode()))
        example = f"{head['video'][0]}: {lost[0]}" if len(lost) else ""
        findings.warn("pedestrians without attributes", example, len(lost))
    video = pl.lit(head["video"][0]).alias("video")
    return add_event_frame(tubes).drop("late_frame").with_columns(video), boxes.drop("owner").with_columns(
        video
    )


def _tracks_and_boxes(
    sheet: Sheet, head: pl.DataFrame, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    videos = head.select(pl.lit(0, pl.UInt32).alias("document"), "n_frames")
    tracks = list_cvat_tracks(sheet, videos, ids=("id", "type"))
    boxes = select_valid_boxes(sheet, tracks, videos, findings)
    tracks = select_valid_tracks(sheet, tracks, boxes, findings).rename({"type": "object_type"})
    cells = Cells(tracks, sheet.files, findings)
    label = cells.choice("track_label", TRACK_LABEL)
    tracks = tracks.with_columns(pl.format("{} {}", "track_label", "object_type").alias("object_type"))
    kinds = {f"{owner} {kind}": kind for owner, held in OBJECT_TYPES.items() for kind in held}
    kind = Cells(tracks, sheet.files, findings).choice("object_type", OBJECT_TYPE, kinds)
    return tracks.select("owner", pl.col("id").alias("name"), label, kind), _parse_box_tags(
        boxes, sheet, findings
    )


def _parse_box_tags(boxes: pl.DataFrame, sheet: Sheet, findings: Findings) -> pl.DataFrame:
    """The columns of a box.

    `occluded` is the file's own flag. Of pedestrians it is known how much is hidden; of other objects only
    whether something is, so `occlusion` is `none` or null there.
    """
    clear = pl.when(pl.col("occluded") == "0").then(pl.lit("none"))
    walks = (pl.col("track_label") == "pedestrian").fill_null(value=False)
    boxes = boxes.with_columns(occlusion=pl.when(walks).then("occlusion").otherwise(clear))
    cells = Cells(boxes, sheet.files, findings)
    return boxes.select(
        "owner",
        pl.col("number").alias("frame"),
        *CORNERS,
        cells.choice("occlusion", OCCLUSION),
        cells.flag("occluded"),
        *(cells.choice(name, labels) for name, labels in BOX_TAGS.items()),
        cells.choice("cross", CROSSING, NATIVE_CROSS),
    )


def _pedestrians(
    sheet: Sheet | None, walkers: pl.Series | None, head: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """One row for each pedestrian with what is known of it; the others are refused.

    Args:
        sheet: the attributes.
        walkers: names of tracks that are pedestrians or of unknown kind; None where there are no annotations.
        head: the video's row.
        findings: takes what is refused.
    """
    raw = pl.DataFrame(schema=PEDESTRIAN.schema) if sheet is None else sheet.rows
    lost = pl.lit(value=False) if walkers is None else ~pl.col("id").is_in(walkers.implode())
    reason = select_first_reason(
        (pl.col("owner").is_null(), f"<{PEDESTRIAN.element}> outside <{PEDESTRIAN.owner}>"),
        (pl.col("id").is_null() | (pl.col("id") == ""), "no id"),
        (lost, "attributes of a pedestrian that has no track"),
    )
    good, bad = split_rejected(raw.with_columns(reason), ["id"], "a second pedestrian with this id")
    findings.read["tubes"] += len(bad)
    if sheet is not None:
        item = pl.format("attributes of '{}'", pl.col("id").fill_null("?"))
        sheet.refuse("tubes", bad.with_columns(item=item), findings)
    cells = Cells(good, [] if sheet is None else sheet.files, findings)
    ends = pl.repeat(head["n_frames"][0], len(good), dtype=pl.Int64, eager=True)
    return good.select(
        pl.col("id").alias("name"),
        *(cells.choice(name, labels) for name, labels in TRAITS.items()),
        cells.whole("num_lanes", lowest=1),
        cells.choice("crossing", CROSSING, NATIVE_CROSSING),
        *(cells.before(cells.whole(name, unknown="-1"), ends) for name in POINTS),
        *cells.numbers(["intention_prob"], within=(0, 1)),
    )


# One PIE video read into its share of the tables, every row taken or refused with its reason.

_HEAD_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "video": pl.String,
    "scene": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
    "fps": pl.Float32,
    "n_frames": pl.Int64,
    "path": pl.String,
    "splits": pl.List(pl.String),
}


_FORMS: dict[str, tuple[Record | Callable[[str], Record], str]] = {
    "annotations": (get_box_record, "annotations"),
    "annotations_attributes": (PEDESTRIAN, "ped_attributes"),
    "annotations_vehicle": (get_vehicle_record, "vehicle_info"),
}


@dataclass(frozen=True)
class Part:
    """One video's tables, tubes numbered from 0; none and the reason where it cannot be read."""

    tables: dict[str, pl.DataFrame]
    findings: Findings
    error: InputError | None = None


def read_part(source: Source, video: str, files: Mapping[str, str], walker: Walker | None) -> Part:
    """Read all files of one video.

    A video whose boxes cannot be read is refused whole. Without a file of boxes its pedestrians come from
    the attributes alone, as tubes without boxes and without interval.

    Args:
        source: the parts of PIE, see `pie.find`.
        video: such as `set01/video_0001`.
        files: folder to the name of the video's file in it.
        walker: who reads boxes that the scanner does not know.
    """
    findings = Findings()
    boxes = _sheet(source, files, "annotations", findings, walker)
    if boxes is not None and boxes.errors:
        return Part({}, findings, boxes.errors[0])
    try:
        # The video's row of the table; size and length are null where no file of boxes states them
        width, height, length = None, None, None
        if boxes is not None:
            where = boxes.documents[0].where
            length = read_frame_count(boxes.roots[0], where)
            width, height = read_image_size(boxes.roots[0], where, findings)
        name, scene = to_printable(video, 255), video.partition("/")[0]
        row = {
            "video": name,
            "scene": to_printable(scene, 255),
            "width_px": width,
            "height_px": height,
            "fps": None,
            "n_frames": length,
            "path": f"PIE_clips/{name}.mp4",
            "splits": [f"default/{SPLIT[scene]}"] if scene in SPLIT else [],
        }
        head = pl.DataFrame([row], schema=_HEAD_SCHEMA)
    except InputError as error:
        findings.read["files"] -= 1
        findings.reject_file(files["annotations"], error)
        return Part({}, findings, error)
    known = _sheet(source, files, "annotations_attributes", findings)
    sensed = _sheet(source, files, "annotations_vehicle", findings)
    sheets = [sheet for sheet in (boxes, known, sensed) if sheet is not None]
    if all(sheet.errors for sheet in sheets):
        return Part({}, findings, sheets[0].errors[0])
    tubes, rows = build_video_tables(boxes, known, head, findings)
    frames = build_frames(head, tubes, rows, sensed, findings)
    findings.read["videos"] += 1
    tables = {"videos": head, "frames": frames, "tubes": tubes.drop("owner"), "boxes": rows}
    return Part(tables, findings)


def _sheet(
    source: Source,
    files: Mapping[str, str],
    folder: str,
    findings: Findings,
    walker: Walker | None = None,
) -> Sheet | None:
    """The records of one of the video's files, None where there is none."""
    if folder not in files:
        return None
    record, root = _FORMS[folder]
    return read_sheet(source, [files[folder]], record, root, findings, walker)


VERSION = 1
Progress = Callable[[int, int, str], None]
_SET = re.compile(r"set\d+")


def find(path: Path) -> Source:
    """PIE at `path` or in it; where parts of it are zips, a source that shows them as folders.

    Raises:
        DatasetNotFoundError: if none of the three parts is to be found.
        InputError: if the path, or an archive of that name, cannot be read.
    """
    wanted = f"PIE needs one of {', '.join(PARTS)} (a folder with set01, ... in it, or its zip)"
    source = find_source(
        path, lambda found: bool(_places(found)), wanted, "Point at the folder that holds it."
    )
    places = _places(source)
    if all(place == part for part, place in places.items()):
        return source
    return JoinedSource(
        source.path, {part: _open_part(source, place, part) for part, place in places.items()}
    )


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return [
        name
        for part, suffix in PARTS.items()
        if source.has_folder(part)
        for folder in source.entries(part)[1]
        if _SET.fullmatch(folder)
        for name in source.files(f"{part}/{folder}", suffix)
    ]


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All of PIE as Scenes; what could not be taken is in `rejected`, oddities in `meta.notes["warnings"]`.

    Args:
        processes: workers for files that need the slow way (default: as many as there are cores).

    Raises:
        InputError: if no video can be read.
    """
    present = inputs(source)
    videos = _videos(present)
    findings = Findings()
    # Videos that lack a kind of file which others have
    for kind in PARTS:
        lacking = [video for video, files in videos.items() if kind not in files]
        if len(lacking) < len(videos):
            findings.warn(f"videos without a file in {kind}/", lacking[0] if lacking else "", len(lacking))
    parts: list[Part] = []
    with Walkers(_boxes(source), processes) as walkers:
        for part in _parts(source, videos, walkers):
            parts.append(part)
            findings.merge(part.findings)
            if progress is not None:
                progress(len(parts), len(videos), "videos")
    if not any(part.tables for part in parts):
        raise _nothing(source, parts)
    return Scenes(
        **_concat_video_tables([part.tables for part in parts if part.tables]),
        rejected=findings.table(),
        meta=findings.build_meta(READERS["pie"], VOCABULARIES, source.contents(present)),
    )


def _places(source: Source) -> dict[str, str]:
    """Part to where it lies in the source: a folder with sets in it, or else an archive of its name."""
    files, folders = source.entries()
    places: dict[str, str] = {}
    for part in PARTS:
        if part in folders and any(_SET.fullmatch(name) for name in source.entries(part)[1]):
            places[part] = part
        elif isinstance(source, FolderSource) and f"{part}.zip" in files:
            places[part] = f"{part}.zip"
        elif isinstance(source, FolderSource) and f"annotations/{part}.zip" in source.files(
            "annotations", ".zip"
        ):
            places[part] = f"annotations/{part}.zip"
    return places


def _open_part(source: Source, place: str, part: str) -> Source:
    """One part; inside an archive its sets lie in a folder of its name, or right at the top.

    Raises:
        InputError: if the archive cannot be read or holds no sets.
    """
    if not place.endswith(".zip"):
        return source.at(place)
    archive = open_source(resolve_inside(source.path, place))
    layers = [archive.at(part)] if archive.has_folder(part) else []
    for inner in [*layers, archive]:
        if any(_SET.fullmatch(name) for name in inner.entries()[1]):
            return inner
    archive.close()
    message = f"expected folders set01, set02, ... inside and found none in {to_printable(place)}"
    raise InputError(message, where=to_printable(str(source.path)), hint=f"fetch PIE's own {part}.zip")


def _boxes(source: Source) -> Source:
    """Where a worker process finds the annotations."""
    return source.parts.get("annotations", source) if isinstance(source, JoinedSource) else source


def _videos(present: Sequence[str]) -> dict[str, dict[str, str]]:
    """Video, such as `set01/video_0001`, to its files by folder; videos in order."""
    videos: dict[str, dict[str, str]] = {}
    for name in present:
        part, _, rest = name.partition("/")
        videos.setdefault(rest.removesuffix(PARTS[part]), {})[part] = name
    return dict(sorted(videos.items()))


def _parts(source: Source, videos: dict[str, dict[str, str]], walkers: Walkers) -> Iterator[Part]:
    """Videos in order, two at work at a time."""

    def walk_there(documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
        if walkers.source is source:
            return walkers(documents, record, root)
        inner = [replace(document, name=document.name.partition("/")[2]) for document in documents]
        return walkers(inner, record, root)

    with ThreadPoolExecutor(min(2, count_cores())) as threads:
        try:
            yield from threads.map(
                lambda item: read_part(source, item[0], item[1], walk_there), videos.items()
            )
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _nothing(source: Source, parts: Sequence[Part]) -> InputError:
    """Why not one video could be read: the first reason, with how many there were."""
    first = next((part.error for part in parts if part.error is not None), None)
    if first is None:
        message = f"the sets hold no files named video_*{{{', '.join(PARTS.values())}}}"
        return InputError(message, where=to_printable(str(source.path)), hint="unpack PIE's archives again")
    if len(parts) == 1:
        return first
    message = f"none of {len(parts)} videos can be read; the first: {first.message}"
    return InputError(message, where=first.where, hint=first.hint)


def _concat_video_tables(parts: Sequence[dict[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """The videos' tables under each other, tubes and boxes numbered in their order."""
    tables = {name: [part[name] for part in parts] for name in ("videos", "frames", "tubes", "boxes")}
    start = 0
    for place, tubes in enumerate(tables["tubes"]):
        for name in ("tubes", "boxes"):
            tables[name][place] = tables[name][place].with_columns(pl.col("tube") + start)
        start += len(tubes)
    whole = {name: pl.concat(held) for name, held in tables.items()}
    boxes = whole["boxes"].with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    first = ["box", "video", "frame", "tube"]
    return {
        **whole,
        "boxes": boxes.select(*first, pl.exclude(first)),
        "tubes": whole["tubes"].select("tube", "video", pl.exclude("tube", "video")),
    }
