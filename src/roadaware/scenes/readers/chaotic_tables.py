"""From rows of actions and sounds of Chaotic World to tables: frames from 0, boxes in pixels of 320 x 180."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from roadaware.scenes.readers.ava_labels import LabelMap
from roadaware.scenes.readers.ava_tables import (
    KIND,
    Place,
    boxes_of,
    labelled,
    labels_of,
    numbered_boxes,
    persons,
)
from roadaware.scenes.readers.chaotic_sounds import Sound
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.vocabularies import ACTIONS_OFFICIAL, all_names, canonical

FPS, WIDTH, HEIGHT = 25, 320, 180
ACTIONS = LabelMap(tuple(range(len(ACTIONS_OFFICIAL))), ACTIONS_OFFICIAL)
_SCHEMAS = {
    "boxes": {
        "box": pl.Int64,
        "video": pl.String,
        "frame": pl.Int64,
        "tube": pl.Int64,
        **dict.fromkeys(CORNERS, pl.Float64),
        "sound": pl.Int64,
    },
    "sounds": {
        "sound": pl.Int64,
        "video": pl.String,
        "name": pl.String,
        "frame": pl.Int64,
        "t_s": pl.Float32,
        "label": pl.Int64,
    },
}


@dataclass
class Held:
    """What the files hold.

    Args:
        actions: name of a file to its rows, see `chaotic_actions.read_actions`.
        sounds: name of a file to its video and sounds.
        files: video to the file of its actions.
        excluded: `video` and `frame` of moments that are left aside.
        splits: video to the splits that name it.
        known: the actions that are read, with the numbers of the files.
    """

    actions: dict[str, pl.DataFrame] = field(default_factory=dict)
    sounds: dict[str, tuple[str, list[Sound]]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    excluded: list[pl.DataFrame] = field(default_factory=list)
    splits: dict[str, list[str]] = field(default_factory=dict)
    known: LabelMap = ACTIONS

    @property
    def lowest(self) -> int:
        """The smallest number of a frame, 1 where there is none."""
        low = [int(str(rows["frame"].min())) for rows in self.actions.values() if len(rows)]
        low += [sound.frame for _, sounds in self.sounds.values() for sound in sounds]
        return min(low, default=1)


def tables_of(
    held: Held, first_frame: int, findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables of all files, and the vocabularies.

    Args:
        held: what they hold; its actions are those of `held.known`.
        first_frame: the number of a video's first frame.
        findings: takes oddities, what is refused, and the count of rows.
    """
    actions = {name: _early_refused(rows, name, first_frame, findings) for name, rows in held.actions.items()}
    boxes, labels, tubes = _actions(actions, held.known, first_frame, findings)
    heard, places = _words(held, findings)
    sounds, sounding = _sounds(held, first_frame, len(boxes), places, findings)
    frames = _frames(list(actions.values()), held, first_frame)
    named = [rows["video"] for rows in actions.values()] + [each["video"] for each in (sounds, frames)]
    tables = {
        "videos": _videos(named, held.splits),
        "frames": frames,
        "boxes": pl.concat([boxes, sounding]),
        "labels": labels,
        "tubes": tubes,
        "sounds": sounds,
    }
    for video in sorted(held.splits.keys() - set(tables["videos"]["video"])):
        findings.warn("videos that a list names and no file has", video)
    for name in ("boxes", "labels", "tubes", "frames", "sounds"):
        findings.read[name] += len(tables[name])
    vocabularies = {KIND: held.known.names} | ({"sound": heard} if heard else {})
    return tables, vocabularies


def _early_refused(rows: pl.DataFrame, file: str, first: int, findings: Findings) -> pl.DataFrame:
    """The rows with frames from 0; those before the first frame are refused."""
    rows = rows.with_columns(pl.col("frame", "start", "end") - first)
    early = rows.filter(pl.col("frame") < 0)
    findings.read["boxes"] += len(early)
    item = pl.format("{}, {}", "video", pl.col("frame") + first)
    reason = pl.lit(f"a frame before the first, which is number {first}")
    findings.reject_rows("boxes", early.select("line", file=pl.lit(file), item=item, reason=reason))
    return rows.filter(pl.col("frame") >= 0)


def _actions(
    files: Mapping[str, pl.DataFrame], known: LabelMap, first_frame: int, findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Boxes, labels and tubes of all files, with the actions that are known."""
    boxes = [pl.DataFrame(schema=_SCHEMAS["boxes"])]
    labels = [pl.DataFrame(schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64})]
    texts, numbers = ("video", "name"), ("start_frame", "end_frame")
    schema = {"tube": pl.Int64, **dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Int64)}
    tubes = [pl.DataFrame(schema=schema)]
    for file, rows in files.items():
        place = Place(file, findings, first_frame)
        boxed = labelled(rows.filter(pl.col(CORNERS[0]).is_not_null()), known, place)
        keys = ["video", "frame", *CORNERS, "person"]
        boxed = numbered_boxes(boxed, keys, place, sum(len(each) for each in boxes))
        boxed, own = persons(boxed, place, sum(len(each) for each in tubes))
        table = boxes_of(boxed).with_columns(
            pl.col("x1_px", "x2_px") * WIDTH, pl.col("y1_px", "y2_px") * HEIGHT, sound=pl.lit(None, pl.Int64)
        )
        boxes.append(table)
        labels.append(labels_of(boxed))
        tubes.append(own)
    return pl.concat(boxes), pl.concat(labels), pl.concat(tubes)


def _words(held: Held, findings: Findings) -> tuple[tuple[str, ...], dict[str, int]]:
    """The classes of sounds, those of the paper first, and the place of each name as the files spell it."""
    if not held.sounds:
        return (), {}
    known = all_names("sound")
    used = {sound.name for _, sounds in held.sounds.values() for sound in sounds}
    spelled = {name: canonical(name, "sound") for name in sorted(used)}
    foreign = [name for name, official in spelled.items() if official is None]
    for name in foreign:
        findings.warn("classes of sound that the paper does not name, kept", name)
    words = (*known, *foreign)
    return words, {name: words.index(official or name) for name, official in spelled.items()}


def _sounds(
    held: Held, first: int, start: int, places: Mapping[str, int], findings: Findings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table of sounds, and their boxes, numbered from `start`."""
    sounds: list[tuple[object, ...]] = []
    boxes: list[tuple[object, ...]] = []
    for file, (video, found) in held.sounds.items():
        for each in found:
            frame = each.frame - first
            if frame < 0:
                reason = f"a frame before the first, which is number {first}"
                findings.reject("sounds", file, f"{video}, {each.frame}", reason, each.line)
                continue
            if each.time is None:
                findings.warn("times of sounds that are no seconds, kept as null", f"{file}:{each.line}")
            label = places[each.name]
            number = len(sounds)
            sounds.append((number, video, f"{video}_{each.frame:06d}", frame, each.time, label))
            for x1, y1, x2, y2 in each.boxes:
                corners = (x1 * WIDTH, y1 * HEIGHT, x2 * WIDTH, y2 * HEIGHT)
                boxes.append((start + len(boxes), video, frame, None, *corners, number))
    return (
        pl.DataFrame(sounds, schema=_SCHEMAS["sounds"], orient="row"),
        pl.DataFrame(boxes, schema=_SCHEMAS["boxes"], orient="row"),
    )


def _frames(rows: Sequence[pl.DataFrame], held: Held, first: int) -> pl.DataFrame:
    """Every moment that was looked at for actions, or left aside, with its time and its clip."""
    schema = {"video": pl.String, "frame": pl.Int64, "time": pl.Float64, "start": pl.Int64, "end": pl.Int64}
    seen = [pl.DataFrame(schema=schema), *(each.select(list(schema)) for each in rows)]
    table = pl.concat(seen).with_columns(annotated=pl.lit(value=True))
    aside = [
        each.with_columns(pl.col("frame") - first, annotated=pl.lit(value=False)) for each in held.excluded
    ]
    table = pl.concat([table, *aside], how="diagonal").filter(pl.col("frame") >= 0)
    order = table.select(pl.col("video").unique(maintain_order=True)).with_row_index("order")
    table = table.group_by("video", "frame").agg(
        pl.col("time", "start", "end").drop_nulls().first(), pl.col("annotated").all()
    )
    table = table.join(order, on="video", how="left").sort("order", "frame")
    return table.select(
        "video",
        "frame",
        pl.col("time").cast(pl.Float32).alias("t_s"),
        "annotated",
        clip_start_frame="start",
        clip_end_frame="end",
    )


def _videos(named: Sequence[pl.Series], splits: Mapping[str, list[str]]) -> pl.DataFrame:
    """Every video once, in the order in which they appear."""
    names = pl.concat([each.rename("video") for each in named]).unique(maintain_order=True)
    held = pl.Series("splits", [splits.get(name, []) for name in names], dtype=pl.List(pl.String))
    return pl.DataFrame([names, held]).with_columns(
        width_px=pl.lit(WIDTH, pl.Int64), height_px=pl.lit(HEIGHT, pl.Int64), fps=pl.lit(FPS, pl.Float32)
    )
