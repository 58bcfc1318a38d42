"""A seeded road with the shape of ROAD: who does what, where, in tubes that change and have holes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import UsageError
from roadaware.scenes.demo import road_terms as terms
from roadaware.scenes.demo.road_tubes import Tracks, av_tables, labels_table, tube_tables
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

ROAD_SHAPED = {"videos": 3, "frames": (1267, 1267, 1266), "boxes_per_frame": 6.8}
"""Arguments of `road_world` for a set as large as a validation set thinned to 3,800 frames: 23,000 boxes."""

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


def road_world(
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
        unannotated: share of frames at the end of each video that nobody looked at.

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
    tubes, tube_labels = tube_tables(tracks, hot, names)
    av_labels, av_tubes, av_tube_labels = av_tables(rng, seen, names, first=len(tubes))
    order = boxes["order"].to_numpy()
    return Scenes(
        videos=_videos(names, counts, size, fps),
        frames=_frames(names, counts, seen, fps),
        boxes=boxes.drop("order"),
        labels=labels_table({kind: each[order] for kind, each in hot.items()}),
        tubes=pl.concat([tubes, av_tubes]),
        tube_labels=pl.concat([tube_labels, av_tube_labels]),
        frame_labels=av_labels,
        meta=_meta(),
    )


def _meta() -> Meta:
    return Meta(
        dataset="ROAD",
        licence="made up by roadaware; free of terms",
        vocabularies=dict(terms.VOCABULARIES),
        composites=terms.COMPOSITES,
        notes={
            "native_kinds": terms.NATIVE_KINDS,
            "children": {kind: terms.children(kind) for kind in terms.COMPOSITES},
            "made_up": True,
        },
    )


def _tracks(rng: np.random.Generator, seen: Ints, per_frame: float, holes: float, unused: float) -> Tracks:
    """When which agent is there."""
    count = max(len(seen), round(float(seen.sum()) * per_frame / _MEAN_LENGTH))
    of = np.sort(rng.choice(len(seen), size=count, p=seen / seen.sum()))
    of[: len(seen)] = np.arange(len(seen))
    of.sort()
    drawn = rng.gamma(2.0, _MEAN_LENGTH / 2, size=count).round().astype(np.int64)
    length = np.clip(drawn, _SHORTEST, seen[of])
    start = np.floor(rng.random(count) * (seen[of] - length + 1)).astype(np.int64)
    weights = np.array([each[0] for each in _AGENTS.values()])
    agents = rng.choice(len(weights), size=count, p=weights / weights.sum())
    agents[rng.random(count) < unused] = -1
    track = np.repeat(np.arange(count), length)
    age = np.arange(len(track)) - np.repeat(np.cumsum(length) - length, length)
    gap = np.where((rng.random(count) < holes) & (length >= 2 * _SHORTEST), rng.integers(1, 7, count), 0)
    away = np.floor(length * rng.uniform(0.3, 0.6, count)).astype(np.int64)
    kept = (age < away[track]) | (age >= (away + gap)[track])
    track, age = track[kept], age[kept]
    return Tracks(track, of[track], start[track] + age, age / length[track], agents)


def _labels(rng: np.random.Generator, tracks: Tracks) -> dict[str, Bools]:
    """Kind to the (n, labels) truth of each box; composites follow from their parts."""
    known = tracks.agents >= 0
    agent = np.where(known, tracks.agents, 0)
    acts, where = _habits()
    hot = {"agent": _one_hot(agent[tracks.track], len(terms.AGENTS))}
    first = _drawn(rng, acts[agent])
    actions = np.stack([first, _drawn(rng, acts[agent]), _drawn(rng, acts[agent])], axis=1)
    hot["action"] = _one_hot(_changing(rng, tracks, actions), len(terms.ACTIONS))
    hot["action"] |= _passing(rng, tracks, _drawn(rng, acts[agent]), len(terms.ACTIONS), 0.25)
    places = np.stack([_drawn(rng, where[agent, actions[:, k]]) for k in range(3)], axis=1)
    hot["location"] = _one_hot(_changing(rng, tracks, places), len(terms.LOCATIONS))
    second = _drawn(rng, where[agent, actions[:, 0]])
    hot["location"] |= _passing(rng, tracks, second, len(terms.LOCATIONS), 0.1)
    light = np.isin(agent, [terms.AGENTS.index(name) for name in _LIGHTS])
    hot["location"][light[tracks.track]] = False
    for kind, parts in terms.COMPOSITES.items():
        columns = np.array(terms.children(kind)).T
        hot[kind] = np.logical_and.reduce(
            [hot[part][:, column] for part, column in zip(parts, columns, strict=True)]
        )
    return {kind: hot[kind] & known[tracks.track, None] for kind in terms.KINDS}


def _habits() -> tuple[Floats, Floats]:
    """How likely each agent does what, (agents, actions), and where, (agents, actions, locations)."""
    acts = np.zeros((len(terms.AGENTS), len(terms.ACTIONS)))
    where = np.zeros((*acts.shape, len(terms.LOCATIONS)))
    for rank, (agent, action) in enumerate(terms.children("duplex")):
        acts[agent, action] = 1 / (1 + rank % 4)
    for rank, (agent, action, location) in enumerate(terms.children("event")):
        where[agent, action, location] = 1 / (1 + rank % 3)
    for name in ("Mobike", "EmVeh", "LarVeh"):
        for does in ("MovAway", "MovTow", "Stop"):
            acts[terms.AGENTS.index(name), terms.ACTIONS.index(does)] = 1
    for name, does in (("Car", "HazLit"), ("MedVeh", "Brake"), ("Cyc", "Ovtak")):
        acts[terms.AGENTS.index(name), terms.ACTIONS.index(does)] = 0.3
    anywhere = where.sum(axis=1) + 0.05
    where += 0.1 * anywhere[:, None] / anywhere.sum(axis=1)[:, None, None]
    return acts / acts.sum(axis=1, keepdims=True), where / where.sum(axis=2, keepdims=True)


def _drawn(rng: np.random.Generator, chances: Floats) -> Ints:
    """(n,) one column for each row of (n, k) chances that sum to 1."""
    over = np.cumsum(chances, axis=1) > rng.random((len(chances), 1))
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
    still = np.isin(tracks.agents, [terms.AGENTS.index(name) for name in _LIGHTS])
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
