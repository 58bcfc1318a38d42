"""JAAD and PIE written: XML of tracks, attributes, traffic and the vehicle, as `datasets.jaad` and `datasets.pie` read them.

JAAD: `annotations/VIDEO.xml` and its like in `annotations_attributes/`, `annotations_traffic/`, `annotations_vehicle/`, and
`split_ids/SUBSET/SPLIT.txt`. PIE: `annotations/SET/VIDEO_annt.xml`, `annotations_attributes/SET/VIDEO_attributes.xml`,
`annotations_vehicle/SET/VIDEO_obd.xml`; its splits are its sets. Frames count from 0, corners are pixels. Tracks of other
sets are written where their class is one of people (and, in PIE, of vehicles and lights).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from roadaware.datasets import jaad, pie
from roadaware.formats.boxes.comparison import (
    Adapted,
    name_tracks,
    prepare,
    rename_videos,
    select_tracked_boxes,
)
from roadaware.formats.boxes.flat import Files, choose_kind, find_classes
from roadaware.scenes.tables import Scenes

_CORNERS = {"xbr": "x2_px", "xtl": "x1_px", "ybr": "y2_px", "ytl": "y1_px"}
_NAME = r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]{0,98}[^\s\x00-\x1f\x7f])?$"
"""Of a track: no controls, which XML cannot hold, and no blanks at the ends."""
_VIDEO = r"^[\w-][\w.-]{0,99}$"
"""Of a video, which becomes the name of a file in several folders."""
_SET_VIDEO = r"^set\d+/[\w-][\w.-]{0,99}$"
_CODES = {word: code for code, word in pie.NATIVE_CROSSING.items()}
"""Attributes say of crossing 0, 1 and -1 where boxes have words."""
_PEOPLE = ("person", "people", "pedestrian", "ped", "walker")
_THINGS = {
    "car": ("vehicle", "car"), "truck": ("vehicle", "truck"), "bus": ("vehicle", "bus"), "train": ("vehicle", "train"),
    "bicycle": ("vehicle", "bicycle"), "cyc": ("vehicle", "bicycle"), "cyclist": ("vehicle", "bicycle"),
    "motorcycle": ("vehicle", "bike"), "motorbike": ("vehicle", "bike"), "mobike": ("vehicle", "bike"),
    "medveh": ("vehicle", "truck"), "larveh": ("vehicle", "truck"), "tl": ("traffic_light", "regular"),
    "traffic light": ("traffic_light", "regular"), "othtl": ("traffic_light", "regular"),
}  # fmt: skip
"""Classes of other sets to the label and type that PIE has for them; case does not matter."""


def adapt_jaad(scenes: Scenes, kind: str | None) -> tuple[Adapted, Counter[str]]:
    """A set as JAAD names it: videos by plain words, tracks of people.

    Args:
        scenes: with lengths and sizes of videos.
        kind: of label that says which tracks are people (default: `track_label` of tubes, else as of boxes).

    Raises:
        UsageError: if there is no such kind.
        InputError: if the length or size of a video is not known.
    """
    scenes, lost = prepare(scenes, "JAAD"), Counter[str]()
    names = scenes.videos["video"]
    if not names.str.contains(_VIDEO).all():
        lost["names of videos, numbered anew"] += len(names)
        scenes = rename_videos(scenes, {name: f"video_{n:04d}" for n, name in enumerate(names, 1)})
    seen = [name for name in jaad.APPEARANCE if name in scenes.boxes.columns]
    options = {"appearance": True} if seen and scenes.boxes[seen[0]].count() else {}
    return Adapted(_add_track_labels(scenes, kind, jaad.TRACK_LABEL, {}, lost), options=options), lost


def adapt_pie(scenes: Scenes, kind: str | None) -> tuple[Adapted, Counter[str]]:
    """A set as PIE names it: videos by set and word, tracks of people, vehicles, lights, signs and crosswalks.

    Videos of other names go into the set of their split: set01 for train, set03 for test, set05 for val, else set00.

    Args:
        scenes: with lengths and sizes of videos, but where nothing but attributes is known.
        kind: of label that says what tracks are (default: `track_label` of tubes, else as of boxes).

    Raises:
        UsageError: if there is no such kind.
        InputError: if the length or size of a video is not known, and it has boxes.
    """
    lost = Counter[str]()
    attributes_alone = scenes.boxes.is_empty() and "track_label" in scenes.tubes.columns
    scenes = prepare(scenes, "PIE", () if attributes_alone else ("n_frames", "width_px", "height_px"))
    names = scenes.videos["video"]
    if not names.str.contains(_SET_VIDEO).all():
        lost["names of videos, numbered anew by the set of their split"] += len(names)
        sets = {"train": "set01", "test": "set03", "val": "set05"}
        splits = scenes.videos["splits"] if "splits" in scenes.videos.columns else [None] * len(names)
        renamed = {
            name: f"{sets.get((held[0] if held is not None and len(held) else '').rpartition('/')[2], 'set00')}/video_{n:04d}"
            for n, (name, held) in enumerate(zip(names, splits, strict=True), 1)
        }
        scenes = rename_videos(scenes, renamed)
    return Adapted(_add_track_labels(scenes, kind, pie.TRACK_LABEL, _THINGS, lost)), lost


def _add_track_labels(
    scenes: Scenes,
    kind: str | None,
    known: Sequence[str],
    things: Mapping[str, tuple[str, str]],
    lost: Counter[str],
) -> Scenes:
    """The set with `track_label` (and `object_type`) of tubes: its own, else by the first class of a track's boxes."""
    tubes = scenes.tubes
    if "track_label" in tubes.columns and kind is None:
        label = pl.col("track_label").cast(pl.String)
        tubes = tubes.with_columns(track_label=pl.when(label.is_in(list(known))).then(label))
    else:
        given = scenes.boxes
        if "tube" not in given.columns:
            given = given.with_columns(tube=pl.lit(None, pl.Int64))
        boxes, classes = find_classes(given, scenes, choose_kind(scenes, kind), Counter())
        words = {
            n: ("pedestrian", None) if word.strip().lower() in _PEOPLE else things.get(word.strip().lower())
            for n, word in enumerate(classes)
        }
        first = boxes.drop_nulls(["tube", "label"]).unique("tube", keep="first", maintain_order=True)
        found = {tube: words[label] for tube, label in first.select("tube", "label").iter_rows()}
        pairs = [found.get(tube) or (None, None) for tube in tubes["tube"]]
        tubes = tubes.with_columns(
            pl.Series("track_label", [label for label, _ in pairs], dtype=pl.String),
            pl.Series("object_type", [thing for _, thing in pairs], dtype=pl.String),
        )
    labelled = name_tracks(tubes.drop_nulls("track_label"), lost, _NAME)
    others = tubes.filter(pl.col("track_label").is_null())
    return scenes.with_tables(tubes=pl.concat([labelled, others], how="diagonal_relaxed").sort("tube"))


def _list_tracks(scenes: Scenes) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tracks that are written, by name, and their boxes."""
    tubes = scenes.tubes.drop_nulls("track_label").sort("video", "name", maintain_order=True)
    boxes = select_tracked_boxes(scenes, tubes)
    return tubes.join(boxes.select("tube").unique(), on="tube", how="semi", maintain_order="left"), boxes


def _say(name: str, value: pl.Expr) -> pl.Expr:
    """` name="value"`, or nothing where the value is null. Values are numbers or words of a vocabulary."""
    return pl.when(value.is_not_null()).then(pl.format(f' {name}="{{}}"', value)).otherwise(pl.lit(""))


def _word(table: pl.DataFrame, name: str, words: Sequence[str]) -> pl.Expr:
    """A column's word where it is one of the form's; null where it is another, or there is no such column."""
    if name not in table.columns:
        return pl.lit(None, pl.String)
    value = pl.col(name).cast(pl.String)
    return pl.when(value.is_in(list(words))).then(value)


def _number(table: pl.DataFrame, name: str) -> pl.Expr:
    """A column's numbers as the shortest text that gives them back."""
    if name not in table.columns or not (table[name].dtype.is_numeric() or table[name].dtype == pl.Boolean):
        return pl.lit(None, pl.String)
    value = pl.col(name).cast(pl.Int64) if table[name].dtype == pl.Boolean else pl.col(name)
    return value.cast(pl.String)


def _format_tracks(
    tubes: pl.DataFrame,
    boxes: pl.DataFrame,
    children: Callable[[pl.DataFrame], Sequence[tuple[str, pl.Expr]]],
) -> dict[str, str]:
    """Video to the `<track>` elements of its tracks, by name."""
    if tubes.is_empty():
        return {}
    own = [name for name in ("name", "old_id", "track_label", "object_type") if name in tubes.columns]
    place = {tube: n for n, tube in enumerate(tubes["tube"])}
    held = [name for name in own if name in boxes.columns]
    rows = boxes.drop(held).join(tubes.select("tube", *own), on="tube", how="left", maintain_order="left")
    rows = rows.with_columns(
        pl.col("name").map_elements(escape, return_dtype=pl.String),
        order=pl.col("tube").replace_strict(place, return_dtype=pl.Int64),
    ).sort("order", "frame")
    hidden = _word(rows, "occlusion", ("part", "full")).is_not_null()
    if "occluded" in rows.columns:
        hidden = pl.col("occluded").fill_null(hidden)
    corners = "".join(f' {name}="{{}}"' for name in _CORNERS)
    head = pl.format(
        f'<box frame="{{}}" keyframe="1" occluded="{{}}" outside="0"{corners}>',
        "frame",
        hidden.cast(pl.Int64),
        *(pl.col(column).cast(pl.String) for column in _CORNERS.values()),
    )
    inner = [
        pl.when(value.is_not_null())
        .then(pl.format(f'<attribute name="{name}">{{}}</attribute>', value))
        .otherwise(pl.lit(""))
        for name, value in children(rows)
    ]
    lines = rows.select("order", line=pl.concat_str(head, *inner, pl.lit("</box>")))
    texts = lines.group_by("order", maintain_order=True).agg(pl.col("line").str.join("\n"))
    found: dict[str, list[str]] = {}
    listed = list(zip(tubes["video"], tubes["track_label"], strict=True))
    for order, text in texts.iter_rows():
        video, label = listed[order]
        found.setdefault(video, []).append(f"<track label={quoteattr(label)}>\n{text}\n</track>\n")
    return {video: "".join(parts) for video, parts in found.items()}


def _format_head(row: Mapping[str, Any], further: str = "") -> str:
    """What a file of boxes says of its video."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version><meta><task>'
        f"<name>{escape(row['video'])}</name><size>{row['n_frames']}</size><mode>interpolation</mode>"
        f"<original_size><width>{row['width_px']}</width><height>{row['height_px']}</height></original_size>"
        f"{further}</task></meta>\n"
    )


def _format_rows(
    table: pl.DataFrame, root: str, line: pl.Expr, before: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Video and file of the rows of each video, one element a row, behind what comes `before`."""
    texts = dict(
        table.select("video", line=line)
        .group_by("video", maintain_order=True)
        .agg(pl.col("line").str.join("\n"))
        .iter_rows()
    )
    for video in dict.fromkeys((*texts, *before)):
        text = texts.get(video)
        yield video, f"<{root}>{before.get(video, '')}{'' if text is None else text}\n</{root}>\n".encode()


def _list_pedestrians(tubes: pl.DataFrame, traits: Mapping[str, Sequence[str]], wholes: Sequence[str], points: Sequence[str],
                      fields: Sequence[str]) -> tuple[pl.DataFrame, pl.Expr]:  # fmt: skip
    """The tracks of which anything is known beside boxes, and the line of each.

    Args:
        tubes: the tracks.
        traits: column to its words.
        wholes: columns of numbers.
        points: columns of frames, -1 where they are none.
        fields: all attributes of a line, in their order.
    """
    value: dict[str, pl.Expr] = {name: _word(tubes, name, words) for name, words in traits.items()}
    value |= {name: _number(tubes, name) for name in wholes}
    value |= {name: _number(tubes, name) for name in points}
    value["crossing"] = _word(tubes, "crossing", list(_CODES)).replace(_CODES)
    known = tubes.filter(pl.any_horizontal(each.is_not_null() for each in value.values()))
    value |= {name: value[name].fill_null("-1") for name in points}
    value["id"] = pl.col("name").map_elements(
        lambda text: escape(text, {'"': "&quot;"}), return_dtype=pl.String
    )
    if "old_id" in fields:
        value["old_id"] = (
            pl.col("old_id").map_elements(lambda text: escape(text, {'"': "&quot;"}), return_dtype=pl.String)
            if "old_id" in tubes.columns
            else pl.lit(None, pl.String)
        )
    said = (_say(name, value[name]) for name in fields)
    return known, pl.concat_str(pl.lit("\n<pedestrian"), *said, pl.lit(" />"))


def write_jaad(held: Adapted) -> Files:
    """Names and contents of the files of JAAD.

    Args:
        held: as `adapt_jaad` gives it.
    """
    scenes = held.scenes
    tubes, boxes = _list_tracks(scenes)

    def list_children(rows: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
        old = (
            pl.col("old_id").map_elements(escape, return_dtype=pl.String)
            if "old_id" in rows.columns
            else pl.lit(None, pl.String)
        )
        values = {"id": pl.col("name"), "old_id": old, "occlusion": _word(rows, "occlusion", jaad.OCCLUSION)}
        values |= {name: _word(rows, name, words) for name, words in jaad.BOX_TAGS.items()}
        # The order of the published files, which the scanner of boxes knows.
        return [(name, values[name]) for name in jaad.BOX.children[0]]

    tracks = _format_tracks(tubes, boxes, list_children)
    for row in scenes.videos.iter_rows(named=True):
        tags = "".join(
            f"<{name}>{escape(row.get(name) or 'n/a')}</{name}>"
            for name in ("time_of_day", "weather", "location")
        )
        text = _format_head(row, f"<video_attributes>{tags}</video_attributes>")
        yield (
            f"annotations/{row['video']}.xml",
            f"{text}{tracks.get(row['video'], '')}</annotations>\n".encode(),
        )
    if held.options.get("appearance"):
        yield from _format_appearance(tubes, boxes)
    known, line = _list_pedestrians(
        tubes,
        jaad.TRAITS,
        ("group_size", "num_lanes"),
        ("crossing_point", "decision_point"),
        jaad.PEDESTRIAN.attributes,
    )
    for video, data in _format_rows(known, "ped_attributes", line, {}):
        yield f"annotations_attributes/{video}_attributes.xml", data
    frames, frame = scenes.frames, pl.col("frame").cast(pl.String)
    values = {"id": frame} | {n: _number(frames, n) for n in ("ped_crossing", "ped_sign", "stop_sign")}
    values["traffic_light"] = _word(frames, "traffic_light", jaad.TRAFFIC_LIGHT)
    seen = frames.filter(pl.any_horizontal(each.is_not_null() for n, each in values.items() if n != "id"))
    line = pl.concat_str(
        pl.lit("\n<frame"), *(_say(n, values[n]) for n in jaad.TRAFFIC.attributes), pl.lit(" />")
    )
    roads = scenes.videos.select("video", road=_word(scenes.videos, "road_type", jaad.ROAD_TYPE)).drop_nulls()
    types = {video: f"<road_type>{road}</road_type>" for video, road in roads.iter_rows()}
    for video, data in _format_rows(seen, "traffic_scene", line, types):
        yield f"annotations_traffic/{video}_traffic.xml", data
    action = _word(frames, "vehicle_action", jaad.VEHICLE_ACTION)
    line = pl.format('\n<frame action="{}" id="{}" />', action, frame)
    for video, data in _format_rows(frames.filter(action.is_not_null()), "vehicle_info", line, {}):
        yield f"annotations_vehicle/{video}_vehicle.xml", data
    lists: dict[str, list[str]] = {}
    if "splits" in scenes.videos.columns:
        for video, splits in scenes.videos.select("video", "splits").iter_rows():
            for split in splits or ():
                lists.setdefault(split, []).append(video)
    for split in (f"{subset}/{name}" for subset in jaad.SUBSETS for name in ("train", "val", "test")):
        if split in lists:
            yield f"split_ids/{split}.txt", ("\n".join(lists[split]) + "\n").encode()


def _format_appearance(tubes: pl.DataFrame, boxes: pl.DataFrame) -> Files:
    """Names and contents of the files of what people wear and carry, of boxes of which that is known."""
    flags = {name: _number(boxes, name) for name in jaad.APPEARANCE}
    known = boxes.filter(pl.any_horizontal(each.is_not_null() for each in flags.values()))
    values = flags | {"frame": pl.col("frame").cast(pl.String)}
    line = pl.concat_str(
        pl.lit("<box"), *(_say(n, values[n]) for n in jaad.APPEARANCE_BOX.attributes), pl.lit(" />")
    )
    texts = dict(known.group_by("tube", maintain_order=True).agg(line.str.join("\n")).iter_rows())
    parts: dict[str, list[str]] = {}
    for each in tubes.iter_rows(named=True):
        if each["tube"] in texts:
            old = "" if each.get("old_id") is None else f" old_id={quoteattr(each['old_id'])}"
            head = f"<track id={quoteattr(each['name'])} label={quoteattr(each['track_label'])}{old}>"
            parts.setdefault(each["video"], []).append(f"{head}\n{texts[each['tube']]}\n</track>\n")
    for video, listed in parts.items():
        text = f"<pedestrian_appearance>{''.join(listed)}</pedestrian_appearance>\n"
        yield f"annotations_appearance/{video}_appearance.xml", text.encode()


def write_pie(held: Adapted) -> Files:
    """Names and contents of the files of PIE.

    Args:
        held: as `adapt_pie` gives it.
    """
    scenes = held.scenes
    tubes, boxes = _list_tracks(scenes)

    def list_children(rows: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
        walks, label = pl.col("track_label") == "pedestrian", pl.col("track_label")
        kinds = [f"{owner} {kind}" for owner, held in pie.OBJECT_TYPES.items() for kind in held]
        cross = _word(rows, "cross", pie.CROSSING).replace(
            {word: native for native, word in pie.NATIVE_CROSS.items()}
        )
        typed = pl.lit(None, pl.String)
        if "object_type" in rows.columns:
            kind = pl.col("object_type").cast(pl.String)
            typed = pl.when(pl.concat_str(label, kind, separator=" ").is_in(kinds)).then(kind)
        values = {
            "id": pl.col("name"),
            "type": typed,
            "occlusion": pl.when(walks).then(_word(rows, "occlusion", pie.OCCLUSION)),
            "cross": cross,
        } | {name: _word(rows, name, words) for name, words in pie.BOX_TAGS.items()}
        return [(name, values[name]) for name in pie.BOX_CHILDREN]

    tracks = _format_tracks(tubes, boxes, list_children)
    for row in scenes.videos.iter_rows(named=True):
        if row["n_frames"] is not None:
            text = f"{_format_head(row)}{tracks.get(row['video'], '')}</annotations>\n"
            yield f"annotations/{row['video']}{pie.PARTS['annotations']}", text.encode()
    # Of videos without a file of boxes every pedestrian that has attributes is a tube.
    bare = scenes.videos.filter(pl.col("n_frames").is_null()).select("video")
    alone = scenes.tubes.drop_nulls("track_label").join(bare, on="video", how="semi", maintain_order="left")
    known, line = _list_pedestrians(
        pl.concat([tubes, alone]).filter(pl.col("track_label").cast(pl.String) == "pedestrian"),
        pie.TRAITS,
        ("num_lanes", "intention_prob"),
        pie.POINTS,
        pie.PEDESTRIAN.attributes,
    )
    for video, data in _format_rows(known, "ped_attributes", line, {}):
        yield f"annotations_attributes/{video}{pie.PARTS['annotations_attributes']}", data
    frames = scenes.frames
    values = {"id": pl.col("frame").cast(pl.String)}
    values |= {native: _number(frames, name) for native, name in pie.SENSORS.items()}
    sensed = frames.filter(pl.any_horizontal(each.is_not_null() for n, each in values.items() if n != "id"))
    line = pl.concat_str(pl.lit("\n<frame"), *(_say(n, each) for n, each in values.items()), pl.lit(" />"))
    for video, data in _format_rows(sensed, "vehicle_info", line, {}):
        yield f"annotations_vehicle/{video}{pie.PARTS['annotations_vehicle']}", data
