"""JAAD 2.0: pedestrians in front of a car, 346 videos, from the unpacked repository or its zip.

Rasouli, Kotseruba and Tsotsos, "Are they going to cross? A benchmark dataset and baseline for pedestrian
crosswalk behavior", ICCV Workshops 2017. Annotations under the MIT licence, github.com/ykotseruba/JAAD.

Needs `annotations/`; takes `annotations_attributes/`, `annotations_traffic/`, `annotations_vehicle/`,
`split_ids/` and, when asked, `annotations_appearance/` where they are. Videos themselves are not needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
from lxml import etree

from roadaware.datasets import READERS, Progress
from roadaware.datasets.cvat import (
    CORNERS,
    TRACK,
    Sheet,
    add_event_frame,
    check_frame_records,
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
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.io.xml import Record, Walker, Walkers, count_cores, find_elements, find_text
from roadaware.scenes.tables import Scenes

# The words and forms of JAAD's files: vocabularies in code order, and how records are written.

TRACK_LABEL = ("pedestrian", "ped", "people")
OCCLUSION = ("none", "part", "full")
CROSSING = ("not-crossing", "crossing", "irrelevant")
ROAD_TYPE = ("street", "parking_lot", "garage")

BOX_TAGS: dict[str, tuple[str, ...]] = {
    "action": ("standing", "walking"),
    "look": ("not-looking", "looking"),
    "cross": CROSSING,
    "hand_gesture": ("__undefined__", "greet", "yield", "rightofway", "other"),
    "reaction": ("__undefined__", "clear_path", "speed_up", "slow_down"),
    "nod": ("__undefined__", "nodding"),
}
TRAITS: dict[str, tuple[str, ...]] = {
    "age": ("child", "young", "adult", "senior"),
    "gender": ("n/a", "female", "male"),
    "intersection": ("no", "yes"),
    "designated": ("ND", "D"),
    "signalized": ("n/a", "NS", "S"),
    "traffic_direction": ("OW", "TW"),
    "motion_direction": ("n/a", "LAT", "LONG"),
}
TRAFFIC_LIGHT = ("n/a", "red", "green")
VEHICLE_ACTION = ("stopped", "moving_slow", "moving_fast", "decelerating", "accelerating")
APPEARANCE = (
    "baby",
    "backpack",
    "bag_elbow",
    "bag_hand",
    "bag_left_side",
    "bag_right_side",
    "bag_shoulder",
    "bicycle_motorcycle",
    "cap",
    "clothes_below_knee",
    "clothes_lower_dark",
    "clothes_lower_light",
    "clothes_upper_dark",
    "clothes_upper_light",
    "hood",
    "object",
    "phone",
    "pose_back",
    "pose_front",
    "pose_left",
    "pose_right",
    "stroller_cart",
    "sunglasses",
    "umbrella",
)

VOCABULARIES: dict[str, tuple[str, ...]] = {
    "track_label": TRACK_LABEL,
    "occlusion": OCCLUSION,
    "pedestrian_action": BOX_TAGS["action"],
    **{name: labels for name, labels in BOX_TAGS.items() if name != "action"},
    **TRAITS,
    "crossing": CROSSING,
    "road_type": ROAD_TYPE,
    "traffic_light": TRAFFIC_LIGHT,
    "vehicle_action": VEHICLE_ACTION,
}

BOX = Record(
    "box",
    "track",
    ("frame", "keyframe", "occluded", "outside", "xbr", "xtl", "ybr", "ytl"),
    (
        ("id", "old_id", "look", "reaction", "action", "cross", "hand_gesture", "occlusion", "nod"),
        ("id", "old_id", "occlusion"),
    ),
)
PEDESTRIAN = Record(
    "pedestrian",
    "ped_attributes",
    (
        "age",
        "crossing",
        "crossing_point",
        "decision_point",
        "designated",
        "gender",
        "group_size",
        "id",
        "intersection",
        "motion_direction",
        "num_lanes",
        "old_id",
        "signalized",
        "traffic_direction",
    ),
)
TRAFFIC = Record("frame", "traffic_scene", ("id", "ped_crossing", "ped_sign", "stop_sign", "traffic_light"))
VEHICLE = Record("frame", "vehicle_info", ("action", "id"))
APPEARANCE_BOX = Record("box", "track", tuple(sorted([*APPEARANCE, "frame"])))

SIDES: dict[str, tuple[Record, str]] = {
    "attributes": (PEDESTRIAN, "ped_attributes"),
    "traffic": (TRAFFIC, "traffic_scene"),
    "vehicle": (VEHICLE, "vehicle_info"),
    "appearance": (APPEARANCE_BOX, "pedestrian_appearance"),
}

# JAAD's tracks and boxes: joined, checked, with the attributes, tags and events of the pedestrians.

# The attributes write codes where the boxes write words.
_CROSSES = {"0": "not-crossing", "1": "crossing", "-1": "irrelevant"}


def build_tubes_and_boxes(
    sheet: Sheet, sides: dict[str, Sheet], videos: pl.DataFrame, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `tubes` (by video and name, numbered from 0) and `boxes` (by tube and frame) of a batch.

    Args:
        sheet: the annotations.
        sides: attributes, and appearance where wanted.
        videos: `document`, `video` and `n_frames` of those that were taken.
        findings: takes what is refused.
    """
    tracks = list_cvat_tracks(sheet, videos, ids=("id", "old_id"))
    sound = select_valid_boxes(sheet, tracks, videos, findings)
    tracks = _assign_track_ids(select_valid_tracks(sheet, tracks, sound, findings), sheet, findings)
    # The columns of a box: corners, occlusion and behaviour tags
    cells = Cells(sound, sheet.files, findings)
    tags = [cells.choice(name, labels) for name, labels in BOX_TAGS.items()]
    boxes = sound.select(
        *TRACK, pl.col("number").alias("frame"), *CORNERS, cells.choice("occlusion", OCCLUSION), *tags
    )
    boxes = boxes.join(tracks.select("tube", *TRACK), on=TRACK, how="inner").sort("tube", "frame")
    tubes = tracks.join(compute_tube_intervals(boxes), on="tube", how="left", maintain_order="left")
    # The tubes with what is known of the pedestrian, and with the event
    attributes = sides["attributes"]
    known = tubes.select("document", pl.col("name").alias("id"), pl.lit(value=True).alias("known"))
    rows = attributes.rows.join(known, on=["document", "id"], how="left", maintain_order="left")
    reason = select_first_reason(
        (pl.col("id").is_null(), "no id"),
        (pl.col("known").is_null(), "attributes of a pedestrian that has no track"),
    )
    good, bad = split_rejected(
        rows.with_columns(reason), ["document", "id"], "a second pedestrian with this id"
    )
    findings.read["tubes"] += len(bad)
    item = pl.format("attributes of '{}'", pl.col("id").fill_null("?"))
    attributes.refuse("tubes", bad.with_columns(item=item), findings)
    good = good.join(videos.select("document", "n_frames"), on="document", how="left", maintain_order="left")
    cells = Cells(good, attributes.files, findings)
    points = [
        cells.before(cells.whole(name, unknown="-1"), good["n_frames"])
        for name in ("crossing_point", "decision_point")
    ]
    traits = good.select(
        "document",
        pl.col("id").alias("name"),
        *(cells.choice(name, labels) for name, labels in TRAITS.items()),
        *(cells.whole(name, lowest=1) for name in ("group_size", "num_lanes")),
        cells.choice("crossing", CROSSING, _CROSSES),
        *points,
        pl.lit(value=True).alias("described"),
    )
    joined = tubes.join(traits, on=["document", "name"], how="left", maintain_order="left")
    lost = joined.filter(pl.col("behaviour") & pl.col("described").is_null())
    if len(lost):
        findings.warn("pedestrians with behaviour but without attributes", str(lost["name"][0]), len(lost))
    tubes = add_event_frame(joined.drop("described"))
    if "appearance" in sides:
        boxes = _with_appearance(boxes, tubes, sides["appearance"], videos, findings)
    names = videos.select("document", "video")
    boxes = boxes.join(names, on="document", how="left", maintain_order="left")
    tubes = tubes.join(names, on="document", how="left", maintain_order="left")
    return tubes.drop("document", "owner", "late_frame"), boxes.drop("document", "owner")


def _assign_track_ids(tracks: pl.DataFrame, sheet: Sheet, findings: Findings) -> pl.DataFrame:
    """The tracks ordered by video and name and numbered, with attributes from their label and name."""
    label = Cells(tracks, sheet.files, findings).choice("track_label", TRACK_LABEL)
    return (
        tracks.select(*TRACK, pl.col("id").alias("name"), "old_id", label)
        .with_columns(behaviour=pl.col("name").str.ends_with("b"))
        .sort("document", "name")
        .with_row_index("tube")
        .with_columns(pl.col("tube").cast(pl.Int64))
    )


def _with_appearance(
    boxes: pl.DataFrame, tubes: pl.DataFrame, sheet: Sheet, videos: pl.DataFrame, findings: Findings
) -> pl.DataFrame:
    """The boxes with their appearance flags; flags without a box are refused."""
    keys = boxes.select("tube", pl.col("frame").alias("number"), pl.lit(value=True).alias("held"))
    rows = (
        sheet.rows.join(videos.select("document", "n_frames"), on="document", maintain_order="left")
        .join(_match_appearance_tubes(sheet, tubes), on=TRACK, how="left", maintain_order="left")
        .with_columns(pl.col("frame").cast(pl.Int64, strict=False).alias("number"))
        .join(keys, on=["tube", "number"], how="left", maintain_order="left")
    )
    reason = select_first_reason(
        *check_frame_records("frame", "number", sheet.record.element, sheet.record.owner),
        (pl.col("held").is_null(), "appearance of a pedestrian that has no box in this frame"),
    )
    good, bad = split_rejected(
        rows.with_columns(reason), ["tube", "number"], "a second appearance of this box"
    )
    findings.read["appearance"] += len(rows)
    item = pl.format("track '{}', frame '{}'", pl.col("name").fill_null("?"), pl.col("frame").fill_null("?"))
    sheet.refuse("appearance", bad.with_columns(item=item), findings)
    cells = Cells(good, sheet.files, findings)
    flags = good.select("tube", pl.col("number").alias("frame"), *(cells.flag(name) for name in APPEARANCE))
    return boxes.join(flags, on=["tube", "frame"], how="left", maintain_order="left")


def _match_appearance_tubes(sheet: Sheet, tubes: pl.DataFrame) -> pl.DataFrame:
    """The tube that each track of the appearance files means: by old id where one tube has it, else by id.

    In the published files 1,827 bystanders carry another id here than in `annotations/`, mostly that of
    somebody else; the old ids agree for every box.
    """
    listed = [
        (place, owner, element.get("id"), element.get("old_id"))
        for place, root in sorted(sheet.roots.items())
        for owner, element in enumerate(find_elements(root, sheet.record.owner))
    ]
    schema = {"document": pl.UInt32, "owner": pl.UInt32, "name": pl.String, "old_id": pl.String}
    tracks = pl.DataFrame(listed, schema=schema, orient="row")
    # Old ids that two tubes share name neither of them.
    alone = tubes.filter(~pl.struct("document", "old_id").is_duplicated() & pl.col("old_id").is_not_null())
    by_old = alone.select("document", "old_id", pl.col("tube").alias("by_old"))
    by_id = tubes.select("document", "name", pl.col("tube").alias("by_id"))
    return (
        tracks.join(by_old, on=["document", "old_id"], how="left", maintain_order="left")
        .join(by_id, on=["document", "name"], how="left", maintain_order="left")
        .with_columns(tube=pl.coalesce("by_old", "by_id"))
        .select(*TRACK, "name", "tube")
    )


# A batch of JAAD videos read into its share of the tables, every row taken or refused with its reason.

_HEAD_SCHEMA = {
    "document": pl.UInt32,
    "video": pl.String,
    "scene": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
    "fps": pl.Float32,
    "n_frames": pl.Int64,
    "path": pl.String,
    "weather": pl.String,
    "time_of_day": pl.String,
    "location": pl.String,
}


@dataclass(frozen=True)
class Part:
    """Rows of a batch, tubes numbered from 0; issues; reasons why videos could not be read."""

    videos: pl.DataFrame
    frames: pl.DataFrame
    boxes: pl.DataFrame
    tubes: pl.DataFrame
    findings: Findings
    errors: list[InputError]


def read_part(
    source: Source,
    batch: Sequence[tuple[str, str]],
    present: Collection[str],
    walker: Walker,
    *,
    appearance: bool,
) -> Part:
    """Read all files of some videos.

    Args:
        source: the repository.
        batch: videos with the names of their annotation files, in order.
        present: names of all files there are.
        walker: who reads what the scanner does not know.
        appearance: whether to read the appearance flags.
    """
    findings = Findings()
    sheet = read_sheet(source, [name for _, name in batch], BOX, "annotations", findings, walker)
    heads, sheet = _heads(batch, sheet, findings)
    sides = {
        kind: _side(source, kind, batch, heads, present, findings, walker)
        for kind in SIDES
        if kind != "appearance" or appearance
    }
    frames = _frames(heads, sides, findings)
    tubes, boxes = build_tubes_and_boxes(
        sheet, sides, heads.select("document", "video", "n_frames"), findings
    )
    videos = heads.with_columns(_road_types(heads, sides["traffic"], findings)).drop("document")
    findings.read["videos"] += len(videos)
    return Part(
        videos, frames, boxes, tubes, findings, [sheet.errors[place] for place in sorted(sheet.errors)]
    )


def _heads(batch: Sequence[tuple[str, str]], sheet: Sheet, findings: Findings) -> tuple[pl.DataFrame, Sheet]:
    """One row for each video that says how long it is; the others are refused as files."""
    rows: list[dict[str, Any]] = []
    errors = dict(sheet.errors)
    for place, tree in sorted(sheet.roots.items()):
        video, name = batch[place]
        try:
            rows.append({"document": place, **_head(tree, video, sheet.documents[place].where, findings)})
        except InputError as error:
            errors[place] = error
            findings.read["files"] -= 1
            findings.reject_file(name, error)
    heads = pl.DataFrame(rows, schema=_HEAD_SCHEMA)
    kept = sheet.rows.join(heads.select("document"), on="document", how="semi", maintain_order="left")
    return heads, replace(sheet, rows=kept, errors=errors)


def _head(tree: etree._Element, video: str, where: str, findings: Findings) -> dict[str, Any]:
    length = read_frame_count(tree, where)
    width, height = read_image_size(tree, where, findings)
    words = {
        name: find_text(tree, f"meta/task/video_attributes/{name}")
        for name in ("weather", "time_of_day", "location")
    }
    return {
        "video": to_printable(video, 255),
        "scene": to_printable(video, 255),
        "width_px": width,
        "height_px": height,
        "fps": None,
        "n_frames": length,
        "path": f"JAAD_clips/{to_printable(video, 255)}.mp4",
        **{name: None if word in (None, "n/a") else word for name, word in words.items()},
    }


def _side(
    source: Source,
    kind: str,
    batch: Sequence[tuple[str, str]],
    heads: pl.DataFrame,
    present: Collection[str],
    findings: Findings,
    walker: Walker,
) -> Sheet:
    """The records of one further kind of file, of the videos whose annotations were taken."""
    record, root = SIDES[kind]
    taken = set(heads["document"])
    names: list[str | None] = []
    for place, (video, _) in enumerate(batch):
        name = f"annotations_{kind}/{video}_{kind}.xml"
        names.append(name if place in taken and name in present else None)
        if place in taken and name not in present:
            findings.warn(f"videos without a file in annotations_{kind}/", video)
    return read_sheet(source, names, record, root, findings, walker)


def _frames(heads: pl.DataFrame, sides: dict[str, Sheet], findings: Findings) -> pl.DataFrame:
    """Every frame of every video, with traffic and the vehicle's action where they are known."""
    grid = (
        heads.select("document", "video", pl.int_ranges("n_frames").alias("frame"))
        .explode("frame")
        .with_columns(annotated=pl.lit(value=True))
    )
    findings.read["frames"] += len(grid)
    lengths = heads.select("document", "n_frames")
    vehicle = parse_frame_rows(sides["vehicle"], lengths, findings)
    cells = Cells(vehicle, sides["vehicle"].files, findings)
    actions = vehicle.select(
        "document", "frame", cells.choice("action", VEHICLE_ACTION).alias("vehicle_action")
    )
    traffic = parse_frame_rows(sides["traffic"], lengths, findings)
    cells = Cells(traffic, sides["traffic"].files, findings)
    flags = [cells.flag(name) for name in ("ped_crossing", "ped_sign", "stop_sign")]
    state = traffic.select("document", "frame", *flags, cells.choice("traffic_light", TRAFFIC_LIGHT))
    for columns in (actions, state):
        grid = grid.join(columns, on=["document", "frame"], how="left", maintain_order="left")
    return grid.drop("document")


def _road_types(heads: pl.DataFrame, traffic: Sheet, findings: Findings) -> pl.Series:
    words = [
        find_text(traffic.roots[place], "road_type") if place in traffic.roots else None
        for place in heads["document"]
    ]
    rows = pl.DataFrame({"document": heads["document"], "road_type": pl.Series(words, dtype=pl.String)})
    return Cells(rows, traffic.files, findings).choice("road_type", ROAD_TYPE)


VERSION = 1
_BATCH = 24
SUBSETS = ("all_videos", "default", "high_visibility")


def find(path: Path) -> Source:
    """The JAAD repository at `path`, in it, or in a zip there.

    Raises:
        DatasetNotFoundError: if `annotations/` with XML files is not to be found.
        InputError: if the path cannot be read.
    """
    return find_source(
        path,
        lambda source: bool(source.files("annotations", ".xml")),
        "JAAD needs 'annotations/'",
        "Point at the unpacked repository or its zip.",
    )


def inputs(source: Source, *, appearance: bool = False) -> list[str]:
    """Names of the files that `read` would read."""
    kinds = [kind for kind in SIDES if kind != "appearance" or appearance]
    names = source.files("annotations", ".xml")
    for kind in kinds:
        names += source.files(f"annotations_{kind}", f"_{kind}.xml")
    for subset in SUBSETS:
        names += source.files(f"split_ids/{subset}", ".txt")
    return names


def read(
    source: Source,
    *,
    appearance: bool = False,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All of JAAD as Scenes; what could not be taken is in `rejected`, oddities in `meta.notes["warnings"]`.

    Args:
        source: the repository, see `find`.
        appearance: also read the 24 appearance flags of every box.
        processes: workers for files that need the slow way (default: as many as there are cores).

    Raises:
        InputError: if no video can be read.
    """
    present = inputs(source, appearance=appearance)
    names = [name for name in present if name.startswith("annotations/")]
    videos = sorted(((_stem(name), name) for name in names), key=lambda video: to_printable(video[0]))
    findings = Findings()
    parts: list[Part] = []
    with Walkers(source, processes) as walkers:
        for done, part in enumerate(_parts(source, videos, present, walkers, appearance=appearance), 1):
            parts.append(part)
            findings.merge(part.findings)
            if progress is not None:
                progress(min(done * _BATCH, len(videos)), len(videos), "videos")
    if not any(len(part.videos) for part in parts):
        raise _nothing(parts, len(videos))
    # Files of attributes, traffic, ... that belong to no annotated video.
    known = {video for video, _ in videos}
    for name in present:
        folder, _, kind = PurePosixPath(name).parts[0].partition("_")
        if folder == "annotations" and kind in SIDES and _stem(name).removesuffix(f"_{kind}") not in known:
            findings.reject("files", name, "", "no file in annotations/ belongs to it")
    tables = _concat_parts(parts)
    tables["videos"] = _with_splits(tables["videos"], _splits(source, present, findings), findings)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(READERS["jaad"], VOCABULARIES, source.contents(present)),
    )


def _parts(
    source: Source,
    videos: Sequence[tuple[str, str]],
    present: Sequence[str],
    walkers: Walkers,
    *,
    appearance: bool,
) -> Iterator[Part]:
    """Batches of videos in order, two at work at a time."""
    batches = [videos[start : start + _BATCH] for start in range(0, len(videos), _BATCH)]
    known = frozenset(present)
    with ThreadPoolExecutor(min(2, count_cores())) as threads:
        try:
            yield from threads.map(
                lambda batch: read_part(source, batch, known, walkers, appearance=appearance), batches
            )
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _nothing(parts: Sequence[Part], total: int) -> InputError:
    """Why not one video could be read: the first reason, with how many there were."""
    first = next(error for part in parts for error in part.errors)
    if total == 1:
        return first
    message = f"none of {total} annotation files can be read; the first: {first.message}"
    return InputError(message, where=first.where, hint=first.hint)


def _concat_parts(parts: Sequence[Part]) -> dict[str, pl.DataFrame]:
    """The parts under each other, tubes and boxes numbered in their order."""
    held = [part for part in parts if len(part.videos)]
    videos = pl.concat([part.videos for part in held])
    frames = pl.concat([part.frames for part in held])
    counts = [len(part.tubes) for part in held]
    offsets = [sum(counts[:place]) for place in range(len(held))]
    tubes = pl.concat(
        [part.tubes.with_columns(pl.col("tube") + n) for n, part in zip(offsets, held, strict=True)]
    )
    boxes = pl.concat(
        [part.boxes.with_columns(pl.col("tube") + n) for n, part in zip(offsets, held, strict=True)]
    )
    boxes = boxes.with_columns(box=pl.int_range(len(boxes), dtype=pl.Int64))
    first = ["box", "video", "frame", "tube"]
    return {
        "videos": videos,
        "frames": frames,
        "boxes": boxes.select(*first, pl.exclude(first)),
        "tubes": tubes.select("tube", "video", pl.exclude("tube", "video")),
    }


def _splits(source: Source, present: Sequence[str], findings: Findings) -> dict[str, list[str]]:
    """Video to the names of the splits that hold it, as the lists in `split_ids/` say."""
    held: dict[str, list[str]] = {}
    for subset in SUBSETS:
        for split in ("train", "val", "test"):
            name = f"split_ids/{subset}/{split}.txt"
            if name not in present:
                findings.warn("split lists that are missing", name)
                continue
            try:
                lines = _lines(source, name)
            except InputError as error:
                findings.reject_file(name, error)
                continue
            findings.read["files"] += 1
            if not lines:
                findings.warn("split lists that are empty", name)
            for video in lines:
                held.setdefault(video, []).append(f"{subset}/{split}")
    return held


def _lines(source: Source, name: str) -> list[str]:
    """The distinct words of a text file, in order."""
    try:
        return list(dict.fromkeys(source.read(name).decode("utf-8-sig").split()))
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8: {error.reason}"
        raise InputError(message, where=source.where(name)) from error


def _with_splits(videos: pl.DataFrame, held: dict[str, list[str]], findings: Findings) -> pl.DataFrame:
    """The videos with their splits; a video in two of one subset, or a split without its video, is odd."""
    names = set(videos["video"])
    for video, splits in held.items():
        if video not in names:
            findings.warn("videos of a split list that have no annotations", f"{video} in {splits[0]}")
        if len({split.partition("/")[0] for split in splits}) < len(splits):
            findings.warn("videos that stand in two splits of one subset", f"{video} in {', '.join(splits)}")
    lists = [held.get(video, []) for video in videos["video"]]
    return videos.with_columns(pl.Series("splits", lists, dtype=pl.List(pl.String)))


def _stem(name: str) -> str:
    return PurePosixPath(name).name.removesuffix(".xml")
