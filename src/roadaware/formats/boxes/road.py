"""ROAD and ROAD-Waymo written: `road.json`, as `datasets.road` and the published code read it.

Boxes are shares of the image, frames and their names count from 1. Ids count all labels that annotators could choose; of sets
that name no others these are the labels there are. Kinds of labels of other sets stand in `label_types` under their names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from roadaware.datasets.road import AGENTNESS, AV_ACTION, HOUSE_KINDS
from roadaware.formats.boxes.comparison import Adapted, prepare
from roadaware.formats.boxes.flat import Files
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_NATIVE = {ours: native for native, ours in HOUSE_KINDS.items()}
_TAGS = ("weather", "time_of_day")


def adapt_road(scenes: Scenes, kind: str | None) -> tuple[Adapted, Counter[str]]:
    """A set as ROAD can name it: tubes of one kind in a video with names that differ.

    Args:
        scenes: with lengths and sizes of videos.
        kind: not used: every kind of label is written.

    Raises:
        InputError: if the length or size of a video is not known.
    """
    scenes, lost = prepare(scenes, "ROAD"), Counter[str]()
    tubes = scenes.tubes
    name = pl.col("name").cast(pl.String) if "name" in tubes.columns else pl.lit(None, pl.String)
    of = pl.col("kind").cast(pl.String).fill_null("") if "kind" in tubes.columns else pl.lit("")
    tubes = tubes.with_columns(given=name, of=of)
    again = ~pl.struct("video", "of", "given").is_first_distinct() | pl.col("given").is_null()
    tubes = tubes.with_columns(
        name=pl.when(again)
        .then(pl.format("{}-{}", pl.col("given").fill_null("tube"), "tube"))
        .otherwise("given")
    )
    lost["names of tubes that others of the video have too"] += tubes.select(
        (again & pl.col("given").is_not_null()).sum()
    ).item()
    return Adapted(scenes.with_tables(tubes=tubes.drop("given", "of"))), lost


def write_road(held: Adapted) -> Files:
    """Name and content of the file.

    Args:
        held: as `adapt_road` gives it.
    """
    scenes = held.scenes
    notes, words = scenes.meta.notes, scenes.meta.vocabularies
    met = [
        kind
        for table in (scenes.labels, scenes.tube_labels, scenes.frame_labels)
        for kind in table["kind"].cast(pl.String).unique(maintain_order=True)
    ]
    # Kinds of the set in its own order, else those of which there is a label.
    told = notes.get("native_kinds")
    kinds = [kind for kind in told if kind in words] if isinstance(told, dict) else []
    kinds = [
        kind
        for kind in dict.fromkeys((*kinds, *met))
        if kind not in (*AGENTNESS, AV_ACTION) and kind in words
    ]
    listed = notes.get("all_labels")
    every: dict[str, list[str]] = {}
    for kind in (*kinds, AV_ACTION):
        own = list(words.get(kind, ()))
        known = listed.get(kind) if isinstance(listed, dict) else None
        every[kind] = list(known) if isinstance(known, list) and set(own) <= set(known) else own
    ids = {kind: [every[kind].index(word) for word in words.get(kind, ())] for kind in (*kinds, AV_ACTION)}
    top: dict[str, Any] = {"label_types": [_NATIVE.get(kind, kind) for kind in kinds]}
    for kind in (*kinds, AV_ACTION):
        native = _NATIVE.get(kind, kind)
        top |= {f"all_{native}_labels": every[kind], f"{native}_labels": list(words.get(kind, ()))}
    children = notes.get("children")
    for kind, parts in children.items() if isinstance(children, dict) else ():
        if kind in kinds:
            top[f"{_NATIVE.get(kind, kind)}_childs"] = parts
    videos = ",\n".join(
        f"{json.dumps(row['video'])}: {json.dumps(_describe_video(row, part, kinds, ids))}"
        for row, part in _split_by_video(scenes)
    )
    waymo = scenes.meta.dataset == "ROAD-Waymo"
    text = f'{json.dumps(top)[:-1]}, "db": {{\n{videos}\n}}}}\n'
    yield "road_waymo.json" if waymo else "road.json", text.encode()


_Part = dict[str, pl.DataFrame]


def _split_by_video(scenes: Scenes) -> list[tuple[dict[str, Any], _Part]]:
    """Each video's row, and its rows of the other tables."""
    names = ("frames", "boxes", "tubes", "frame_labels")
    parts = {
        name: getattr(scenes, name).partition_by("video", as_dict=True, maintain_order=True) for name in names
    }
    labels = scenes.labels.join(
        scenes.boxes.select("box", "video"), on="box", how="left", maintain_order="left"
    )
    owned = scenes.tube_labels.join(
        scenes.tubes.select("tube", "video"), on="tube", how="left", maintain_order="left"
    )
    parts["labels"] = labels.partition_by("video", as_dict=True, maintain_order=True)
    parts["tube_labels"] = owned.partition_by("video", as_dict=True, maintain_order=True)
    none = {name: getattr(scenes, name).clear() for name in (*names, "labels", "tube_labels")}
    return [
        (row, {name: held.get((row["video"],), none[name]) for name, held in parts.items()})
        for row in scenes.videos.iter_rows(named=True)
    ]


def _describe_video(
    row: Mapping[str, Any], part: _Part, kinds: list[str], ids: Mapping[str, list[int]]
) -> dict[str, Any]:
    """The entry of a video: its frames with their boxes, and the tubes of each kind."""
    width, height, length = row["width_px"], row["height_px"], row["n_frames"]
    frames: dict[int, dict[str, Any]] = {}
    for each in part["frames"].iter_rows(named=True):
        said = {} if each.get("annotated") is None else {"annotated": int(each["annotated"])}
        said |= {
            name: each[name] for name in ("rgb_image_id", "input_image_id") if each.get(name) is not None
        }
        frames[each["frame"]] = said
    for frame, kind, label in part["frame_labels"].select("frame", "kind", "label").iter_rows():
        if kind == AV_ACTION:
            frames.setdefault(frame, {}).setdefault("av_action_ids", []).append(ids[AV_ACTION][label])
    names = dict(part["tubes"].select("tube", "name").iter_rows())
    labels: dict[int, dict[str, list[int]]] = {}
    for box, kind, label in part["labels"].select("box", "kind", "label").iter_rows():
        if kind in kinds:
            labels.setdefault(box, {}).setdefault(kind, []).append(ids[kind][label])
    keys: dict[int, dict[int, str]] = {}
    boxes = part["boxes"]
    tubes = boxes["tube"] if "tube" in boxes.columns else [None] * len(boxes)
    shares = boxes.select(
        "box",
        "frame",
        *(
            (pl.col(name).cast(pl.Float64) / (width if name.startswith("x") else height)).clip(0, 1)
            for name in CORNERS
        ),
    )
    for n, ((box, frame, *corners), tube) in enumerate(zip(shares.iter_rows(), tubes, strict=True)):
        # What has no area or lies behind the end is no box of the file.
        if not (corners[0] < corners[2] and corners[1] < corners[3]) or frame >= length:
            continue
        key, held = f"b{n:06d}", labels.get(box, {})
        anno: dict[str, Any] = {"box": corners}
        if tube is not None:
            anno["tube_uid"] = names[tube]
            keys.setdefault(tube, {})[frame] = key
        anno |= {f"{_NATIVE.get(kind, kind)}_ids": held.get(kind, []) for kind in kinds}
        frames.setdefault(frame, {}).setdefault("annos", {})[key] = anno
    entry: dict[str, Any] = {"numf": length, "split_ids": list(row.get("splits") or ())}
    entry |= {name: row[name] for name in _TAGS if row.get(name) is not None}
    entry["frames"] = {
        str(frame + 1): {"width": width, "height": height, "av_action_ids": [], **frames[frame]}
        for frame in sorted(frames)
        if frame < length
    }
    return entry | _describe_tubes(part, kinds, ids, keys)


def _describe_tubes(
    part: _Part, kinds: list[str], ids: Mapping[str, list[int]], keys: Mapping[int, Mapping[int, str]]
) -> dict[str, dict[str, Any]]:
    """The tubes of each kind: the boxes of their track, or frames alone where they have none."""
    found: dict[str, dict[str, Any]] = {
        f"{_NATIVE.get(kind, kind)}_tubes": {} for kind in (*kinds, AV_ACTION)
    }
    label = {
        (tube, kind): label
        for tube, kind, label in part["tube_labels"].select("tube", "kind", "label").iter_rows()
    }
    for each in part["tubes"].iter_rows(named=True):
        kind = each.get("kind") or ""
        if (each["tube"], kind) not in label or kind not in ids:
            continue
        ends = each.get("start_frame"), each.get("end_frame")
        spans = each.get("spans") or ([] if None in ends else [ends])
        frames = [frame for low, high in spans for frame in range(low, high)]
        tube: dict[str, Any] = {"label_id": ids[kind][label[each["tube"], kind]]}
        owner = each.get("parent")
        if not frames:
            continue
        if owner is None:
            tube["frames"] = [frame + 1 for frame in frames]
        else:
            boxes = keys.get(owner, {})
            tube["annos"] = {str(frame + 1): boxes[frame] for frame in frames if frame in boxes}
            if not tube["annos"]:
                continue
        found[f"{_NATIVE.get(kind, kind)}_tubes"][each["name"]] = tube
    return found
