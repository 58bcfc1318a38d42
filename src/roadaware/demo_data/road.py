"""Synthetic road events on disk: annotations in the file of ROAD, detections as its detector writes them."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.errors import UsageError
from roadaware.formats.road_detections import write_detections
from roadaware.io.files import build_disk_error, write_atomically
from roadaware.scenes.factors import run_spans
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

# The labels of the demo's road events: the names of ROAD, and which parts a composite label is made of.

KINDS = ("agent", "action", "location", "duplex", "event")
NATIVE_KINDS = {
    "agentness": "agent_ness",
    "agent": "agent",
    "action": "action",
    "location": "loc",
    "duplex": "duplex",
    "event": "triplet",
    "av_action": "av_action",
}
COMPOSITES = {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}
NEVER_SEEN = {
    "agent": ("SmalVeh",),
    "action": ("Rev", "MovRht", "MovLft", "Black"),
    "location": ("OutgoBusLane", "IncomBusLane", "RhtParking"),
}
"""Labels that annotators could choose and that are not used: a box of one of them has no used label."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


AGENTNESS = ("agent_ness",)
AGENTS = ("Ped", "Car", "Cyc", "Mobike", "MedVeh", "LarVeh", "Bus", "EmVeh", "TL", "OthTL")
ACTIONS = _words(
    "Red Amber Green MovAway MovTow Mov Brake Stop IncatLft IncatRht HazLit TurLft TurRht Ovtak Wait2X "
    "XingFmLft XingFmRht Xing PushObj"
)
LOCATIONS = _words(
    "VehLane OutgoLane OutgoCycLane IncomLane IncomCycLane Pav LftPav RhtPav Jun xing BusStop parking"
)
DUPLEXES = _words(
    "Bus-MovAway Bus-MovTow Bus-Stop Bus-XingFmLft Car-Brake Car-IncatLft Car-IncatRht Car-MovAway "
    "Car-MovTow Car-Stop Car-TurLft Car-TurRht Car-XingFmLft Car-XingFmRht Cyc-MovAway Cyc-MovTow "
    "Cyc-Stop Cyc-TurLft Cyc-XingFmLft Cyc-XingFmRht LarVeh-Stop MedVeh-IncatLft MedVeh-MovTow "
    "MedVeh-Stop MedVeh-TurRht OthTL-Green OthTL-Red Ped-Mov Ped-MovAway Ped-MovTow Ped-PushObj "
    "Ped-Stop Ped-Wait2X Ped-Xing Ped-XingFmLft Ped-XingFmRht TL-Amber TL-Green TL-Red"
)
EVENTS = _words(
    "Bus-MovTow-IncomLane Bus-MovTow-Jun Bus-Stop-IncomLane Bus-Stop-VehLane Bus-XingFmLft-Jun Car-Brake-Jun "
    "Car-Brake-VehLane Car-IncatLft-Jun Car-IncatLft-VehLane Car-IncatRht-IncomLane Car-IncatRht-Jun "
    "Car-MovAway-Jun Car-MovAway-OutgoLane Car-MovAway-VehLane Car-MovTow-IncomLane Car-MovTow-Jun "
    "Car-Stop-IncomLane Car-Stop-Jun Car-Stop-VehLane Car-TurLft-Jun Car-TurLft-VehLane Car-TurRht-IncomLane "
    "Car-TurRht-Jun Car-XingFmLft-Jun Cyc-MovAway-Jun Cyc-MovAway-LftPav Cyc-MovAway-OutgoCycLane "
    "Cyc-MovAway-OutgoLane Cyc-MovAway-VehLane Cyc-MovTow-IncomCycLane Cyc-MovTow-IncomLane Cyc-MovTow-Jun "
    "Cyc-MovTow-LftPav Cyc-Stop-IncomCycLane Cyc-Stop-IncomLane Cyc-Stop-Jun Cyc-TurLft-Jun "
    "Cyc-XingFmLft-Jun MedVeh-MovTow-IncomLane MedVeh-MovTow-Jun MedVeh-Stop-IncomLane MedVeh-Stop-Jun "
    "MedVeh-TurRht-Jun Ped-Mov-Pav Ped-MovAway-LftPav Ped-MovAway-Pav Ped-MovAway-RhtPav "
    "Ped-MovTow-IncomLane Ped-MovTow-LftPav Ped-MovTow-RhtPav Ped-MovTow-VehLane Ped-PushObj-LftPav "
    "Ped-PushObj-RhtPav Ped-Stop-BusStop Ped-Stop-LftPav Ped-Stop-Pav Ped-Stop-RhtPav Ped-Stop-VehLane "
    "Ped-Wait2X-LftPav Ped-Wait2X-RhtPav Ped-XingFmLft-IncomLane Ped-XingFmLft-Jun Ped-XingFmLft-VehLane "
    "Ped-XingFmLft-xing Ped-XingFmRht-IncomLane Ped-XingFmRht-Jun Ped-XingFmRht-RhtPav "
    "Ped-XingFmRht-VehLane"
)
AV_ACTIONS = _words("AV-Stop AV-Mov AV-TurRht AV-TurLft AV-MovRht AV-MovLft AV-Ovtak")

VOCABULARIES = {
    "agentness": AGENTNESS,
    "agent": AGENTS,
    "action": ACTIONS,
    "location": LOCATIONS,
    "duplex": DUPLEXES,
    "event": EVENTS,
    "av_action": AV_ACTIONS,
}


def list_composite_parts(kind: str) -> list[list[int]]:
    """For each label of a composite kind, in order, the indices of its parts in their vocabularies.

    >>> list_composite_parts("event")[0]  # Bus-MovTow-IncomLane
    [6, 4, 3]
    """
    parts = [VOCABULARIES[part] for part in COMPOSITES[kind]]
    return [
        [part.index(word) for part, word in zip(parts, name.split("-"), strict=True)]
        for name in VOCABULARIES[kind]
    ]


# Road events in the native file of ROAD: one JSON of videos, frames, boxes and tubes by name and number.

_Rows = dict[str, list[dict[str, Any]]]
_IDS = {"agent": "agent_ids", "action": "action_ids", "location": "loc_ids"} | {
    "duplex": "duplex_ids",
    "event": "triplet_ids",
}


def build_road_json(scenes: Scenes) -> dict[str, Any]:
    """The content of `road_trainval_v1.0.json` for a set made by `generate_road_scenes`.

    Ids point into the `all_*` lists, which hold labels that are never used, so ids and places in the used
    lists differ; frames count from 1; boxes are shares of the image; frames without boxes have no `annos`.

    Args:
        scenes: with the kinds of ROAD.
    """
    every = {kind: _with_unused(kind, labels) for kind, labels in scenes.meta.vocabularies.items()}
    numbers = {
        kind: [every[kind].index(label) for label in labels]
        for kind, labels in scenes.meta.vocabularies.items()
    }
    # The rows of each table by video, labels turned into the file's ids and folded into what they
    # label
    # Rows with one list of ids for each kind.
    rows = scenes.boxes
    labels = scenes.labels
    labels = labels.with_columns(_map_label_ids(numbers))
    for kind, column in _IDS.items():
        ids = labels.filter(pl.col("kind") == kind).group_by("box").agg(pl.col("label").sort().alias(column))
        rows = rows.join(ids, on="box", how="left", maintain_order="left")
    boxes = rows
    tubes = scenes.tubes.join(scenes.tube_labels.drop("kind"), on="tube", how="left", maintain_order="left")
    numbered = scenes.frame_labels.with_columns(_map_label_ids(numbers))
    by_frame = numbered.group_by("video", "frame", maintain_order=True).agg("label")
    frames = scenes.frames.join(by_frame, on=["video", "frame"], how="left", maintain_order="left")
    tables = {"boxes": boxes, "tubes": tubes.with_columns(_map_label_ids(numbers)), "frames": frames}
    parts = {name: _by_video(table) for name, table in tables.items()}
    content: dict[str, Any] = {"label_types": [NATIVE_KINDS[kind] for kind in KINDS]}
    for kind in (*KINDS, "av_action"):
        native = NATIVE_KINDS[kind]
        content[f"all_{native}_labels"] = every[kind]
        content[f"{native}_labels"] = list(scenes.meta.vocabularies[kind])
    content["all_input_labels"] = [label for kind in ("agent", "action", "location") for label in every[kind]]
    for kind in COMPOSITES:
        content[f"{NATIVE_KINDS[kind]}_childs"] = scenes.meta.notes["children"][kind]
    content["db"] = {row["video"]: _video(row, parts) for row in scenes.videos.iter_rows(named=True)}
    return content


def _with_unused(kind: str, labels: tuple[str, ...]) -> list[str]:
    """The used labels with the unused ones put between them."""
    found = list(labels)
    for place, name in enumerate(NEVER_SEEN.get(kind, ()), 2):
        found.insert(min(2 * place, len(found)), name)
    return found


def _map_label_ids(numbers: dict[str, list[int]]) -> pl.Expr:
    """The label as the id that the file gives it."""
    value = pl.col("label")
    for kind, ids in numbers.items():
        if ids:
            there = pl.lit(pl.Series(ids, dtype=pl.Int64).implode()).list.get(
                pl.col("label"), null_on_oob=True
            )
            value = pl.when(pl.col("kind") == kind).then(there).otherwise(value)
    return value.alias("label")


def _by_video(table: pl.DataFrame) -> _Rows:
    found: _Rows = defaultdict(list)
    for row in table.iter_rows(named=True):
        found[row["video"]].append(row)
    return found


def _video(row: dict[str, Any], parts: dict[str, _Rows]) -> dict[str, Any]:
    name, size = row["video"], (row["width_px"], row["height_px"])
    tubes = parts["tubes"][name]
    uid = {tube["tube"]: tube["name"] for tube in tubes}
    annos: dict[int, dict[str, Any]] = defaultdict(dict)
    at: dict[tuple[int, int], str] = {}
    for box in parts["boxes"][name]:
        key = f"b{box['box']:06d}"
        at[box["tube"], box["frame"]] = key
        annos[box["frame"]][key] = {
            "box": [box[name] / size[k % 2] for k, name in enumerate(CORNERS)],
            "tube_uid": uid[box["tube"]],
            **_ids(box),
        }
    frames = {str(each["frame"] + 1): _frame(each, size, annos) for each in parts["frames"][name]}
    content: dict[str, Any] = {
        "split_ids": row["splits"],
        "numf": row["n_frames"],
        "weather": row["weather"],
        "frame_labels": [frame["av_action_ids"] for frame in frames.values()],
        "frames": frames,
    }
    for kind in (*KINDS, "av_action"):
        of_kind = [tube for tube in tubes if tube["kind"] == kind]
        content[f"{NATIVE_KINDS[kind]}_tubes"] = {tube["name"]: _tube(tube, at) for tube in of_kind}
    return content


def _ids(box: dict[str, Any]) -> dict[str, list[int]]:
    """The box's ids by kind; one without any used label is of an agent that is not used."""
    ids = {column: box[column] or [] for column in _IDS.values()}
    if not any(ids.values()):
        ids["agent_ids"] = [_with_unused("agent", AGENTS).index(NEVER_SEEN["agent"][0])]
    return ids


def _frame(row: dict[str, Any], size: tuple[int, int], annos: dict[int, dict[str, Any]]) -> dict[str, Any]:
    frame: dict[str, Any] = {
        "annotated": int(row["annotated"]),
        "rgb_image_id": row["frame"] + 1,
        "input_image_id": row["frame"] + 1,
        "width": size[0],
        "height": size[1],
        "av_action_ids": row["label"] or [],
    }
    if row["frame"] in annos:
        frame["annos"] = annos[row["frame"]]
    return frame


def _tube(tube: dict[str, Any], at: dict[tuple[int, int], str]) -> dict[str, Any]:
    """A derived tube: what it is, and its boxes by frame, or its frames where it has no boxes."""
    frames = [frame for low, high in tube["spans"] for frame in range(low, high)]
    if tube["parent"] is None:
        return {"label_id": tube["label"], "frames": {str(frame + 1): 1 for frame in frames}}
    return {
        "label_id": tube["label"],
        "annos": {str(frame + 1): at[tube["parent"], frame] for frame in frames},
    }


# From what each box of the synthetic road is to the tables of labels and of tubes derived from them.

_TUBES: dict[str, Any] = {
    "tube": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "parent": pl.Int64,
    "kind": pl.String,
    "spans": pl.List(pl.List(pl.Int64)),
}
_LABELS: dict[str, Any] = {"tube": pl.Int64, "kind": pl.String, "label": pl.Int64}


@dataclass(frozen=True)
class Tracks:
    """All boxes of all tracks, flat, in the order of tracks and frames.

    Args:
        track: (n,) the track of each box.
        video: (n,) index of its video.
        frame: (n,) its frame.
        share: (n,) how much of the track's life is over, in [0, 1).
        agents: (tracks,) index of each track's agent; -1 for one whose label is not used.
    """

    track: Ints
    video: Ints
    frame: Ints
    share: Floats
    agents: Ints


def build_labels_table(hot: Mapping[str, Bools]) -> pl.DataFrame:
    """The `labels` of boxes, ordered by their key.

    Args:
        hot: kind to (n, labels) which labels each box has.
    """
    kinds = sorted(hot)
    box, column = np.nonzero(np.concatenate([hot[kind] for kind in kinds], axis=1))
    widths = [hot[kind].shape[1] for kind in kinds]
    kind = np.repeat(kinds, widths)[column]
    label = np.concatenate([np.arange(width) for width in widths])[column]
    return pl.DataFrame({"box": box, "kind": kind, "label": label})


def build_tube_tables(
    tracks: Tracks, hot: Mapping[str, Bools], names: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`tubes` and `tube_labels`: the tracks, and for each kind the stretches in which a label holds.

    A stretch goes on over a hole of its track, which its spans leave out.

    Args:
        tracks: (n boxes) in the order of tracks and frames.
        hot: kind to (n, labels) which labels each box has.
        names: of the videos.
    """
    bases = (
        run_spans(tracks.track, tracks.frame)
        .sort("run")
        .with_columns(
            parent=pl.lit(None, pl.Int64),
            kind=pl.lit(None, pl.String),
            label=pl.lit(None, pl.Int64),
            spans=pl.lit(None, _TUBES["spans"]),
        )
    )
    bases = bases.with_columns(track=pl.col("run"))
    parts = [bases, *(_extract_label_tubes(tracks, kind, hot[kind]) for kind in KINDS)]
    video = np.zeros(len(tracks.agents), dtype=np.int64)
    video[tracks.track] = tracks.video
    rows = pl.concat([part.select(parts[0].columns) for part in parts])
    rows = rows.with_columns(
        tube=pl.int_range(pl.len()),
        video=pl.Series(np.asarray(names)[video[rows["track"].to_numpy()]]),
        name=pl.format("{}-{}", pl.col("kind").fill_null("track"), pl.int_range(pl.len())),
    )
    labels = rows.filter(pl.col("parent").is_not_null()).select("tube", "kind", "label")
    return rows.select(pl.col(c).cast(dtype) for c, dtype in _TUBES.items()), labels


def _extract_label_tubes(tracks: Tracks, kind: str, hot: Bools) -> pl.DataFrame:
    """The tubes of one kind, by track, label and time."""
    new_track = np.diff(tracks.track, prepend=-1) != 0
    before = np.zeros_like(hot)
    before[1:] = hot[:-1]
    begins = hot & (~before | new_track[:, None])
    label, box = np.nonzero(hot.T)
    run = np.cumsum(begins.T[label, box]) - 1
    tubes = run_spans(run, tracks.frame[box])
    first = np.flatnonzero(np.diff(run, prepend=-1))
    of = pl.DataFrame({"run": run[first], "track": tracks.track[box[first]], "label": label[first]})
    return (
        tubes.join(of, on="run")
        .sort("track", "label", "run")
        .with_columns(parent=pl.col("track"), kind=pl.lit(kind))
    )


def build_av_tables(
    rng: np.random.Generator, seen: Ints, names: Sequence[str], *, first: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Actions of the vehicle: `frame_labels`, and its `tubes` (without boxes) with their `tube_labels`.

    Now and then a frame has two labels; the first row is the one that was meant first.

    Args:
        rng: where chance comes from.
        seen: (videos,) annotated frames.
        names: of the videos.
        first: number of the first tube.
    """
    stretches = [
        (names[index], *each) for index, count in enumerate(seen) for each in _stretches(rng, int(count))
    ]
    video, low, high, label = (list(column) for column in zip(*stretches, strict=True))
    length = np.subtract(high, low)
    frame = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + np.repeat(low, length)
    rows = pl.DataFrame(
        {"video": np.repeat(video, length), "frame": frame, "label": np.repeat(label, length)}
    ).with_columns(kind=pl.lit("av_action"))
    rows = rows.sort("video", "frame", maintain_order=True)
    tube = np.arange(first, first + len(low))
    tubes = pl.DataFrame(
        {
            "tube": tube,
            "video": video,
            "name": [f"av_action-{number}" for number in tube],
            "start_frame": low,
            "end_frame": high,
            "parent": [None] * len(low),
            "kind": ["av_action"] * len(low),
            "spans": [[[a, b]] for a, b in zip(low, high, strict=True)],
        },
        schema=_TUBES,
    )
    labels = pl.DataFrame({"tube": tube, "kind": ["av_action"] * len(low), "label": label}, schema=_LABELS)
    return rows.select("video", "frame", "kind", "label"), tubes, labels


def _stretches(rng: np.random.Generator, count: int) -> list[tuple[int, int, int]]:
    """(start, end, label) of what the vehicle does one after the other, and of a second thing at times."""
    chances = np.array([0.28, 0.45, 0.08, 0.08, 0.03, 0.04, 0.04])
    found: list[tuple[int, int, int]] = []
    start, before = 0, -1
    while start < count:
        left = np.where(np.arange(len(chances)) == before, 0, chances)
        label = int(rng.choice(len(chances), p=left / left.sum()))
        end = min(count, start + int(rng.integers(15, 90)))
        found.append((start, end, label))
        if label > 1 and rng.random() < 0.3:
            found.append((start, min(end, start + 10), 1))
        start, before = end, label
    return found


# A seeded road with the shape of ROAD: who does what, where, in tubes that change and have holes.

ROAD_SHAPED = {"videos": 3, "frames": (1267, 1267, 1266), "boxes_per_frame": 6.8}
"""Arguments of `generate_road_scenes` for a set as large as a validation set thinned to 3,800 frames: 23,000 boxes."""

WEATHERS = ("overcast", "night", "sunny", "snow")
_MEAN_LENGTH, _SHORTEST = 60, 10
# How often an agent appears (flatter than in ROAD, so that small sets hold every common one), how wide it
# is for its height, and its least and greatest height as shares of the image's.
_AGENTS: dict[str, tuple[float, float, float, float]] = {
    "Ped": (30, 0.4, 0.08, 0.40),
    "Car": (16, 1.4, 0.06, 0.30),
    "Cyc": (9, 0.6, 0.08, 0.35),
    "Mobike": (1, 0.7, 0.08, 0.30),
    "MedVeh": (5, 1.2, 0.10, 0.35),
    "LarVeh": (2.5, 1.0, 0.15, 0.45),
    "Bus": (4, 1.1, 0.15, 0.50),
    "EmVeh": (0.2, 1.3, 0.10, 0.30),
    "TL": (5, 0.45, 0.04, 0.10),
    "OthTL": (3, 0.45, 0.03, 0.08),
}
_LIGHTS = ("TL", "OthTL")


def generate_road_scenes(
    *,
    videos: int = 4,
    frames: int | Sequence[int] = 150,
    boxes_per_frame: float = 6.0,
    seed: int = 0,
    size: tuple[int, int] = (1280, 960),
    fps: float = 12.0,
    holes: float = 0.05,
    unused: float = 0.01,
    unannotated: float = 0.03,
) -> Scenes:
    """Scenes with the kinds, composites, splits and oddities of ROAD; the same arguments make the same set.

    Args:
        videos: how many.
        frames: of each video, or one number for all; at least 24.
        boxes_per_frame: about, on the average of annotated frames.
        seed: where chance comes from.
        size: width and height of the images in pixels.
        fps: frames per second.
        holes: share of tracks that vanish for a few frames and come back.
        unused: share of tracks of an agent without used label: their boxes have no labels.
        unannotated: share of frames at the end of each video that nobody annotated.

    Raises:
        UsageError: if there is no video, or one is too short.
    """
    counts = np.full(videos, frames) if isinstance(frames, int) else np.asarray(frames, dtype=np.int64)
    if videos < 1 or len(counts) != videos or counts.min() < 24:
        raise UsageError(f"{videos} videos of {frames} frames: at least 1 video of at least 24 frames each")
    rng = np.random.default_rng(seed)
    seen = counts - np.floor(counts * unannotated).astype(np.int64)
    tracks = _tracks(rng, seen, boxes_per_frame, holes, unused)
    hot = _labels(rng, tracks)
    names = [f"drive-{seed:02d}-{index + 1:03d}" for index in range(videos)]
    boxes = _boxes(rng, tracks, size, names)
    tubes, tube_labels = build_tube_tables(tracks, hot, names)
    av_labels, av_tubes, av_tube_labels = build_av_tables(rng, seen, names, first=len(tubes))
    order = boxes["order"].to_numpy()
    return Scenes(
        videos=_videos(names, counts, size, fps),
        frames=_frames(names, counts, seen, fps),
        boxes=boxes.drop("order"),
        labels=build_labels_table({kind: each[order] for kind, each in hot.items()}),
        tubes=pl.concat([tubes, av_tubes]),
        tube_labels=pl.concat([tube_labels, av_tube_labels]),
        frame_labels=av_labels,
        meta=_meta(),
    )


def _meta() -> Meta:
    return Meta(
        dataset="ROAD",
        licence="made up by roadaware; free of terms",
        vocabularies=dict(VOCABULARIES),
        composites=COMPOSITES,
        notes={
            "native_kinds": NATIVE_KINDS,
            "children": {kind: list_composite_parts(kind) for kind in COMPOSITES},
            "made_up": True,
        },
    )


def _tracks(rng: np.random.Generator, seen: Ints, per_frame: float, holes: float, unused: float) -> Tracks:
    """When which agent is there."""
    count = max(len(seen), round(float(seen.sum()) * per_frame / _MEAN_LENGTH))
    of = np.sort(rng.choice(len(seen), size=count, p=seen / seen.sum()))
    # Every video has one track at least.
    of[: len(seen)] = np.arange(len(seen))
    of.sort()
    drawn = rng.gamma(2.0, _MEAN_LENGTH / 2, size=count).round().astype(np.int64)
    length = np.clip(drawn, _SHORTEST, seen[of])
    start = np.floor(rng.random(count) * (seen[of] - length + 1)).astype(np.int64)
    weights = np.array([each[0] for each in _AGENTS.values()])
    agents = rng.choice(len(weights), size=count, p=weights / weights.sum())
    agents[rng.random(count) < unused] = -1
    # Rows of all tracks at once: the age of a row is its number less where its track begins.
    track = np.repeat(np.arange(count), length)
    age = np.arange(len(track)) - np.repeat(np.cumsum(length) - length, length)
    gap = np.where((rng.random(count) < holes) & (length >= 2 * _SHORTEST), rng.integers(1, 7, count), 0)
    away = np.floor(length * rng.uniform(0.3, 0.6, count)).astype(np.int64)
    kept = (age < away[track]) | (age >= (away + gap)[track])
    track, age = track[kept], age[kept]
    return Tracks(track, of[track], start[track] + age, age / length[track], agents)


def _labels(rng: np.random.Generator, tracks: Tracks) -> dict[str, Bools]:
    """Kind to the (n, labels) ground truth of each box; composites follow from their parts."""
    known = tracks.agents >= 0
    agent = np.where(known, tracks.agents, 0)
    acts, where = _habits()
    hot = {"agent": _one_hot(agent[tracks.track], len(AGENTS))}
    first = _sample_columns(rng, acts[agent])
    actions = np.stack([first, _sample_columns(rng, acts[agent]), _sample_columns(rng, acts[agent])], axis=1)
    hot["action"] = _one_hot(_changing(rng, tracks, actions), len(ACTIONS))
    hot["action"] |= _passing(rng, tracks, _sample_columns(rng, acts[agent]), len(ACTIONS), 0.25)
    places = np.stack([_sample_columns(rng, where[agent, actions[:, k]]) for k in range(3)], axis=1)
    hot["location"] = _one_hot(_changing(rng, tracks, places), len(LOCATIONS))
    second = _sample_columns(rng, where[agent, actions[:, 0]])
    hot["location"] |= _passing(rng, tracks, second, len(LOCATIONS), 0.1)
    light = np.isin(agent, [AGENTS.index(name) for name in _LIGHTS])
    hot["location"][light[tracks.track]] = False
    for kind, parts in COMPOSITES.items():
        columns = np.array(list_composite_parts(kind)).T
        hot[kind] = np.logical_and.reduce(
            [hot[part][:, column] for part, column in zip(parts, columns, strict=True)]
        )
    return {kind: hot[kind] & known[tracks.track, None] for kind in KINDS}


def _habits() -> tuple[Floats, Floats]:
    """How likely each agent does what, (agents, actions), and where, (agents, actions, locations)."""
    acts = np.zeros((len(AGENTS), len(ACTIONS)))
    where = np.zeros((*acts.shape, len(LOCATIONS)))
    for rank, (agent, action) in enumerate(list_composite_parts("duplex")):
        acts[agent, action] = 1 / (1 + rank % 4)
    for rank, (agent, action, location) in enumerate(list_composite_parts("event")):
        where[agent, action, location] = 1 / (1 + rank % 3)
    for name in ("Mobike", "EmVeh", "LarVeh"):
        for does in ("MovAway", "MovTow", "Stop"):
            acts[AGENTS.index(name), ACTIONS.index(does)] = 1
    for name, does in (("Car", "HazLit"), ("MedVeh", "Brake"), ("Cyc", "Ovtak")):
        acts[AGENTS.index(name), ACTIONS.index(does)] = 0.3
    anywhere = where.sum(axis=1) + 0.05
    # Some chance for what no event of ROAD names: an evaluator must meet boxes without a composite label.
    where += 0.1 * anywhere[:, None] / anywhere.sum(axis=1)[:, None, None]
    return acts / acts.sum(axis=1, keepdims=True), where / where.sum(axis=2, keepdims=True)


def _sample_columns(rng: np.random.Generator, chances: Floats) -> Ints:
    """(n,) one column for each row of (n, k) chances that sum to 1."""
    over = np.cumsum(chances, axis=1) > rng.random((len(chances), 1))
    # Chances may sum to a hair below 1, where no column is over the draw.
    drawn: Ints = np.where(over.any(axis=1), over.argmax(axis=1), chances.argmax(axis=1))
    return drawn


def _one_hot(index: Ints, width: int) -> Bools:
    hot: Bools = index[:, None] == np.arange(width)
    return hot


def _changing(rng: np.random.Generator, tracks: Tracks, series: Ints) -> Ints:
    """(n,) each track's (tracks, 3) series, changing at two moments of which most never come."""
    turns = np.sort(rng.uniform(0.2, 1.8, (len(series), 2)), axis=1)
    phase = (tracks.share[:, None] >= turns[tracks.track]).sum(axis=1)
    changed: Ints = series[tracks.track, phase]
    return changed


def _passing(rng: np.random.Generator, tracks: Tracks, label: Ints, width: int, share: float) -> Bools:
    """(n, width) a label that some tracks have for a while on top of the others."""
    ends = np.sort(rng.random((len(label), 2)), axis=1)
    has = rng.random(len(label)) < share
    low, high = ends[tracks.track].T
    now = has[tracks.track] & (tracks.share >= low) & (tracks.share < high)
    passing: Bools = _one_hot(label[tracks.track], width) & now[:, None]
    return passing


def _boxes(rng: np.random.Generator, tracks: Tracks, size: tuple[int, int], names: list[str]) -> pl.DataFrame:
    """The boxes in the order of videos and frames, with their place in the order of tracks as `order`."""
    shapes = np.array(list(_AGENTS.values()))[np.maximum(tracks.agents, 0)]
    count, track = len(shapes), tracks.track
    low, high = np.sort(rng.uniform(shapes[:, 2], shapes[:, 3], (2, count)), axis=0)
    grown = np.where(rng.random(count)[track] < 0.5, tracks.share, 1 - tracks.share)
    height = size[1] * low[track] * (high / low)[track] ** grown
    ratio = (shapes[:, 1] * rng.uniform(0.85, 1.15, count))[track]
    width = np.minimum(height * ratio * (1 + 0.05 * np.sin(tracks.frame / 5 + track)), size[0] / 2)
    still = np.isin(tracks.agents, [AGENTS.index(name) for name in _LIGHTS])
    pace = np.where(still, 0.1, 1.0)[:, None] * rng.normal(0, (0.35, 0.08), (count, 2))
    at = rng.random((count, 2))[track] + pace[track] * tracks.share[:, None]
    at += 0.004 * np.sin(tracks.frame[:, None] / (7.0, 4.0) + rng.uniform(0, 6, (count, 2))[track])
    x, y = (2 * np.abs(at / 2 - np.round(at / 2))).T  # turned back at the edges of the image
    x1, y1 = x * (size[0] - width), (0.25 + 0.5 * y) * (size[1] - height)
    corners = np.round(np.stack([x1, y1, x1 + width, y1 + height], axis=1) * 4) / 4
    order = np.lexsort((track, tracks.frame, tracks.video))
    columns = zip(CORNERS, corners[order].T, strict=True)
    return pl.DataFrame(
        {
            "box": np.arange(len(order)),
            "video": np.array(names)[tracks.video[order]],
            "frame": tracks.frame[order],
            "tube": track[order],
            **{name: values.astype(np.float32) for name, values in columns},
            "order": order,
        }
    )


def _videos(names: list[str], counts: Ints, size: tuple[int, int], fps: float) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "video": names,
            "scene": names,
            "width_px": [size[0]] * len(names),
            "height_px": [size[1]] * len(names),
            "fps": [fps] * len(names),
            "n_frames": counts,
            "splits": [_splits(index, len(names)) for index in range(len(names))],
            "weather": [WEATHERS[index % len(WEATHERS)] for index in range(len(names))],
        },
        schema_overrides={"fps": pl.Float32},
    )


def _splits(index: int, count: int) -> list[str]:
    """Three ways to train and validate, every fourth video for test; a smaller set has all of them."""
    if count < 4:
        return [*(f"{part}_{n}" for part in ("train", "val") for n in (1, 2, 3)), "test"]
    if index % 4 == 3:
        return ["test"]
    return [f"{'val' if index % 4 == n - 1 else 'train'}_{n}" for n in (1, 2, 3)]


def _frames(names: list[str], counts: Ints, seen: Ints, fps: float) -> pl.DataFrame:
    frame = np.concatenate([np.arange(count) for count in counts])
    return pl.DataFrame(
        {
            "video": np.repeat(names, counts),
            "frame": frame,
            "t_s": (frame / fps).astype(np.float32),
            "annotated": frame < np.repeat(seen, counts),
        }
    )


ANNOTATIONS, DETECTIONS, FACTS = "road_trainval_v1.0.json", "detections", "facts.json"


@dataclass(frozen=True)
class RoadFacts:
    """Facts of the written data, for comparison with findings.

    Args:
        videos: how many.
        frames: in all of them.
        boxes: ground-truth boxes.
        tracks: road users.
        detections: boxes that the synthetic detector found.
    """

    videos: int
    frames: int
    boxes: int
    tracks: int
    detections: int


def write_road_demo(
    root: Path,
    *,
    seed: int = 0,
    videos: int = 4,
    frames: int = 150,
    detector: Detector | None = None,
) -> RoadFacts:
    """Write annotations and detections into a folder and say what is in it; the same seed, the same bytes.

    Args:
        root: the folder, made if need be; what an earlier demo wrote there is replaced.
        seed: where chance comes from.
        videos: how many.
        frames: of each.
        detector: how badly it sees.

    Raises:
        DiskError: if a file cannot be written.
        UsageError: if a folder of detections stands there that no demo wrote.
    """
    scenes = generate_road_scenes(videos=videos, frames=frames, seed=seed)
    predictions = simulate_detections(scenes, seed=seed, detector=detector)
    tracks = scenes.boxes["tube"].n_unique()
    facts = RoadFacts(videos, len(scenes.frames), len(scenes.boxes), tracks, len(predictions.boxes))
    # The folder, without the detections of an earlier demo.
    try:
        root.mkdir(parents=True, exist_ok=True)
        if (root / FACTS).is_file() and (root / DETECTIONS).is_dir():
            shutil.rmtree(root / DETECTIONS)
    except OSError as error:
        raise build_disk_error(root, 0, error) from error
    write_atomically(root / FACTS, (json.dumps(asdict(facts), indent=2) + "\n").encode())
    write_atomically(root / ANNOTATIONS, json.dumps(build_road_json(scenes)).encode())
    write_detections(predictions, root / DETECTIONS)
    return facts
