"""`python -m benchmarks.triage make|tune|judge FOLDER`: are ten planted moments an hour among the first twenty listed?

`make` simulates scenes of 40 s (`road@1`, 5 frames a second, tables alone) and goes on where it was. `judge` plants a moment
in every ninth drive, which makes ten an hour, lets a simulated detector err, links what it finds, and ranks. With `--rounds`
each scene is driven several times, with other errors and plants; intervals are over scenes. Of the listed moments that
nobody planted it says how many the ground truth confirms. `tune` looks for weights on drives of another seed. What is
planted is written into the tables, on the way that the vehicle takes later:

- cut-in: a car overtakes, comes over within 1.6 s and is then 8 m ahead;
- child: 1.15 m high, first seen 1.9 s before the vehicle is there and 2 m beside the way, walks across at 1.4 m/s;
- object: 0.4 to 0.9 m, lies on the way; a finder of unknown things sees 60 % of its boxes, and false things beside them;
- red light: a light that is red while the vehicle goes past it;
- siren: is heard for 4 s, among false alarms of a listener.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis import drives, triage
from roadaware.analysis.drives import build_drives
from roadaware.analysis.triage import REASONS, TriageConfig, count_labels, find_peaks, rank_moments
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.io.files import write_atomically
from roadaware.io.folders import digest, make_folder
from roadaware.io.parquet import read_parquet
from roadaware.linking.link import link
from roadaware.online.config import WatchConfig
from roadaware.reports.runs import encode_parquet
from roadaware.scenes.store import is_saved, open_scenes, save
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.simulator.config import adapt_scene_config, build_scene_config
from roadaware.simulator.make import make_episode
from roadaware.simulator.truth import build_scene_tables, simulate_block_view
from roadaware.statistics.intervals import Units

Floats = npt.NDArray[np.float64]
SEEDS = {"judge": 51, "judge-2": 52, "tune": 50}
KINDS = ("cut_in", "child", "object", "red_light", "siren")
SECONDS, FPS, SIZE = 40.0, 5.0, (640, 480)
EVERY = 9
"""Drives of 40 s for one that has a planted moment: ten an hour."""
LISTED = 20
_SLACK_S = 1.5
_TRUE_VALUE, _TRUE_S = 0.3, 2.0
"""Where the ground truth has a reason at this value, so near in time, a moment that nobody planted is none of an error."""
_FALSE_THINGS, _FALSE_SOUNDS = 0.4, 0.12
"""Of the finder of unknown things and of the listener, in a drive on average: 36 and 11 an hour."""


@dataclass(frozen=True)
class Plant:
    """A planted moment: what, in which video, from when to when."""

    kind: str
    video: str
    start_s: float
    end_s: float


def make_drive(seed: int, number: int, name: str) -> Scenes:
    """The tables of one drive without anything planted."""
    config = adapt_scene_config(
        build_scene_config("road@1"), seconds=SECONDS, size=SIZE, fps=FPS, sound=False
    )
    episode = replace(make_episode(config, seed, number), name=name)
    return build_scene_tables(episode, simulate_block_view(episode, joints=False))


def make_set(folder: Path, name: str, drives: int) -> None:
    """Simulate the drives that the folder does not hold yet."""
    for number in range(drives):
        place = folder / name / f"{number:05d}"
        if not is_saved(place):
            save(make_drive(SEEDS[name], number, f"{name}-{number:05d}"), place, overwrite=True)


# Planting: actors beside the way that the vehicle will take, seen by the camera of each frame.


class Way:
    """The way of the own vehicle.

    Args:
        t_s: (F,) times of the frames.
        speed: (F,) in m/s.
        position: (F, 3) of the vehicle, in metres.
        heading: (F,) where its front points.
    """

    def __init__(self, t_s: Floats, speed: Floats, position: Floats, heading: Floats) -> None:
        self.t_s, self.speed, self.position, self.heading = t_s, speed, position, heading
        step = np.linalg.norm(np.diff(position[:, :2], axis=0), axis=1)
        self.gone = np.concatenate([[0.0], np.cumsum(step)])

    def place(self, gone: float, side: float) -> tuple[Floats, float]:
        """A point on the ground so many metres along the way, to its left, and the heading there."""
        frame = int(np.clip(np.searchsorted(self.gone, gone), 1, len(self.gone) - 1))
        heading = float(self.heading[frame])
        # The nearest frame behind; straight on from there, also beyond the end of the drive.
        base, ahead = self.position[frame - 1], gone - self.gone[frame - 1]
        forward = np.array([np.cos(heading), np.sin(heading), 0.0])
        left = np.array([-np.sin(heading), np.cos(heading), 0.0])
        return base + ahead * forward + side * left, heading


class SeenWay(Way):
    """The way of the own vehicle through the tables of a drive, and its camera."""

    def __init__(self, scenes: Scenes) -> None:
        frames = scenes.frames.sort("frame")
        ego = np.array(frames["world_SE3_ego"].to_list(), np.float64).reshape(-1, 4, 4)
        super().__init__(
            frames["t_s"].to_numpy().astype(np.float64),
            frames["ego_speed_kmh"].to_numpy().astype(np.float64) / 3.6,
            ego[:, :3, 3],
            np.arctan2(ego[:, 1, 0], ego[:, 0, 0]),
        )
        self.camera = np.array(frames["world_SE3_camera"].to_list(), np.float64).reshape(-1, 4, 4)
        self.lens = np.array(scenes.sensors["intrinsics"][0].to_list(), np.float64).reshape(3, 3)
        self.size = (int(scenes.videos["width_px"][0]), int(scenes.videos["height_px"][0]))

    def box(
        self, frame: int, gone: float, side: float, size_m: tuple[float, float, float], up_m: float = 0.0
    ) -> list[float] | None:
        """The box of a block (length, width, height) in a frame; None where it is out of sight or mostly cut."""
        middle, heading = self.place(gone, side)
        turn = np.array([[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]])
        corners = []
        for x in (-0.5, 0.5):
            for y in (-0.5, 0.5):
                flat = turn @ np.array([x * size_m[0], y * size_m[1]])
                corners += [[*(middle[:2] + flat), middle[2] + up_m + z, 1.0] for z in (0.0, size_m[2])]
        seen = (np.linalg.inv(self.camera[frame]) @ np.array(corners).T)[:3]
        if (seen[2] < 1.0).any():
            return None
        u, v = (self.lens @ (seen / seen[2]))[:2]
        whole = np.array([u.min(), v.min(), u.max(), v.max()])
        cut = np.clip(whole, 0, [*self.size, *self.size])
        area = np.prod(cut[2:] - cut[:2]) / max(np.prod(whole[2:] - whole[:2]), 1e-6)
        return cut.tolist() if area > 0.3 and (cut[2:] - cut[:2] >= 3).all() else None


def list_starts(way: Way) -> list[int]:
    """The frames from which on the vehicle drives for six seconds."""
    fast = way.speed > 4.0
    long = round(6 * FPS)
    return [k for k in range(round(4 * FPS), len(fast) - long) if fast[k : k + long].all()]


def choose_start(way: Way, rng: np.random.Generator) -> int | None:
    """A frame from which on the vehicle drives for six seconds; None where it never does."""
    able = list_starts(way)
    return int(rng.choice(able)) if able else None


@dataclass(frozen=True, eq=False)
class Planted:
    """A drive with what was planted in it.

    Args:
        scenes: with the boxes of a planted road user or light.
        plant: what; None where nothing was.
        things: frame and box of a planted object, which no detector of road users finds.
        heard: name, start and end of a planted sound.
    """

    scenes: Scenes
    plant: Plant | None = None
    things: tuple[tuple[int, list[float]], ...] = ()
    heard: tuple[tuple[str, float, float], ...] = ()


def plant_moment(scenes: Scenes, kind: str, rng: np.random.Generator) -> Planted:
    """A drive with a moment of a kind; without one where the vehicle never drives for long enough."""
    way = SeenWay(scenes)
    start = choose_start(way, rng)
    if start is None:
        return Planted(scenes)
    video, t0 = str(scenes.videos["video"][0]), float(way.t_s[start])
    hand = float(rng.choice([-1.0, 1.0]))
    frames = range(start, min(start + round(7 * FPS), len(way.t_s)))
    if kind == "siren":
        return Planted(scenes, Plant(kind, video, t0, t0 + 4.0), heard=(("siren (police)", t0, t0 + 4.0),))
    boxes: list[tuple[int, list[float]]] = []
    labels: tuple[str, str, str] = ("", "", "")
    end = t0
    if kind == "cut_in":
        labels = ("Car", "MovAway", "VehLane")
        ahead_at, side_at = (
            ([-3, 0, 1.6, 3, 6], [2.0, 11.0, 8.0, 9.0, 30.0]),
            ([-3, 0, 1.6], [3.3 * hand, 3.3 * hand, 0.0]),
        )
        for frame in range(max(0, start - round(3 * FPS)), frames.stop):
            since = way.t_s[frame] - t0
            ahead, side = float(np.interp(since, *ahead_at)), float(np.interp(since, *side_at))
            box = way.box(frame, way.gone[frame] + ahead + 2.2, side, (4.4, 1.8, 1.5))
            if box is not None:
                boxes.append((frame, box))
        end = t0 + 1.6
    elif kind == "child":
        labels = ("Ped", "XingFmLft" if hand > 0 else "XingFmRht", "VehLane")
        where = way.gone[start] + 1.9 * way.speed[start] + 1.7
        for frame in frames:
            side = hand * 2.0 - hand * 1.4 * (way.t_s[frame] - t0)
            box = way.box(frame, where, side, (0.4, 0.5, 1.15)) if abs(side) < 5 else None
            if box is None:
                break
            boxes.append((frame, box))
            end = float(way.t_s[frame])
    elif kind == "object":
        wide, high = rng.uniform(0.4, 0.9, 2)
        where, side = way.gone[start] + 35.0, float(rng.uniform(-0.8, 0.8))
        things = [(f, b) for f in frames if (b := way.box(f, where, side, (wide, wide, high))) is not None]
        if len(things) < 5:
            return Planted(scenes)
        return Planted(scenes, Plant(kind, video, t0, float(way.t_s[things[-1][0]])), tuple(things))
    else:
        labels = ("TL", "Red", "")
        where, side = way.gone[start] + 4.0 * way.speed[start], -hand * float(rng.uniform(2.8, 4.5))
        for frame in range(max(0, start - round(2 * FPS)), frames.stop):
            box = way.box(frame, where, side, (0.3, 0.35, 1.0), up_m=2.4)
            if box is not None and way.gone[frame] < where:
                boxes.append((frame, box))
                end = float(way.t_s[frame])
    if len(boxes) < 5:
        return Planted(scenes)
    plant = Plant(kind, video, t0, max(end, t0 + 1.0))
    return Planted(add_tube(scenes, boxes, labels), plant)


def add_tube(
    scenes: Scenes, boxes: Sequence[tuple[int, list[float]]], labels: tuple[str, str, str]
) -> Scenes:
    """The tables with one more path, its boxes and their labels of every kind that can be made of these."""
    video, words = str(scenes.videos["video"][0]), scenes.meta.vocabularies
    tube = int(scenes.tubes["tube"].max() or 0) + 1  # type: ignore[arg-type]
    first = int(scenes.boxes["box"].max() or 0) + 1  # type: ignore[arg-type]
    numbers = np.arange(first, first + len(boxes))
    corners = np.array([box for _, box in boxes])
    rows = pl.DataFrame(
        {
            "box": numbers,
            "video": [video] * len(boxes),
            "frame": [frame for frame, _ in boxes],
            "tube": [tube] * len(boxes),
            **{name: corners[:, k] for k, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
        }
    ).cast({name: scenes.boxes.schema[name] for name in ("x1_px", "y1_px", "x2_px", "y2_px")})
    agent, action, location = labels
    named = {"agentness": "agent_ness", "agent": agent, "action": action, "location": location}
    named |= {"duplex": f"{agent}-{action}", "event": f"{agent}-{action}-{location}"}
    held = [
        (kind, words[kind].index(name))
        for kind, name in named.items()
        if kind in words and name in words[kind]
    ]
    more = pl.DataFrame(
        [(int(box), kind, label) for box in numbers for kind, label in held],
        schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64},
        orient="row",
    )
    path = pl.DataFrame({"tube": [tube], "video": [video], "name": ["planted"]})
    return scenes.with_tables(
        boxes=pl.concat([scenes.boxes, rows], how="diagonal"),
        labels=pl.concat([scenes.labels, more.cast(pl.Schema(scenes.labels.schema))], how="diagonal"),
        tubes=pl.concat([scenes.tubes, path], how="diagonal"),
        meta=replace(scenes.meta, rows_read={}),
    )


# What a detector, a finder of unknown things and a listener make of it.


def see(planted: Planted, rng: np.random.Generator) -> Predictions:
    """The tables of a drive as erring models give them: detections, linked, with speed, unknown things and sounds."""
    scenes, seed = planted.scenes, int(rng.integers(1 << 31))
    video = str(scenes.videos["video"][0])
    found = simulate_detections(scenes, seed=seed, detector=Detector(size=None))
    frames = found.frames.join(
        scenes.frames.select("video", "frame", "t_s", "ego_speed_kmh", "ego_yaw_rate_radps"),
        on=["video", "frame"],
        how="left",
        maintain_order="left",
    )
    tubes = link(found.with_tables(frames=frames), WatchConfig().linker_at(FPS))
    boxes = tubes.boxes.with_columns(corner_case=pl.lit(value=False))
    first, tube = int(boxes["box"].max() or 0) + 1, int(tubes.tubes["tube"].max() or 0) + 1  # type: ignore[arg-type]
    things: list[tuple[int, int, list[float], float]] = []
    for frame, box in planted.things:
        if rng.random() < 0.6:
            things.append((tube, frame, jitter(box, rng), float(rng.beta(5, 3))))
    for number in range(rng.poisson(_FALSE_THINGS)):
        things += list(draw_false_thing(scenes, tube + 1 + number, rng))
    width = len(boxes["scores"][0]) if len(boxes) else 0
    extra = pl.DataFrame(
        [
            (first + k, video, frame, path, *box, score, True)
            for k, (path, frame, box, score) in enumerate(things)
        ],
        schema={name: boxes.schema[name] for name in _COLUMNS},
        orient="row",
    ).with_columns(scores=pl.Series([[0.0] * width] * len(things), dtype=boxes.schema["scores"]))
    paths = pl.DataFrame({"tube": sorted({row[0] for row in things})}, schema={"tube": pl.Int64})
    paths = paths.with_columns(video=pl.lit(video))
    sounds = [(name, start, end, float(rng.beta(6, 2))) for name, start, end in planted.heard]
    for _ in range(rng.poisson(_FALSE_SOUNDS)):
        at = float(rng.uniform(0, SECONDS - 4))
        sounds.append(
            (str(rng.choice(["siren (police)", "honking", "crashing"])), at, at + 2, float(rng.beta(2, 4)))
        )
    heard = pl.DataFrame(
        [(k, video, *row) for k, row in enumerate(sounds)],
        schema={
            "sound": pl.Int64,
            "video": pl.String,
            "name": pl.String,
            "t_s": pl.Float32,
            "end_s": pl.Float32,
            "score": pl.Float64,
        },
        orient="row",
    )
    return tubes.with_tables(
        boxes=pl.concat([boxes, extra], how="diagonal"),
        tubes=pl.concat([tubes.tubes, paths], how="diagonal"),
        frames=frames,
        sounds=heard,
        sensors=scenes.sensors,
    )


_COLUMNS = ("box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px", "score", "corner_case")


def jitter(box: Sequence[float], rng: np.random.Generator) -> list[float]:
    """A box whose sides are off by 6 % of its size, as those of the detector."""
    x1, y1, x2, y2 = box
    off = rng.normal(0, 0.06, 4) * [x2 - x1, y2 - y1, x2 - x1, y2 - y1]
    return [x1 + off[0], y1 + off[1], max(x2 + off[2], x1 + off[0] + 1), max(y2 + off[3], y1 + off[1] + 1)]


def draw_false_thing(
    scenes: Scenes, tube: int, rng: np.random.Generator
) -> Iterator[tuple[int, int, list[float], float]]:
    """A thing that is none, beside or on the way: a stain, a manhole, a plant, seen for up to two seconds."""
    way = SeenWay(scenes)
    start = int(rng.integers(0, len(way.t_s) - 12))
    gone, side = way.gone[start] + rng.uniform(10, 30), float(rng.normal(0, 4))
    for frame in range(start, start + int(rng.integers(3, 11))):
        box = way.box(frame, gone, side, (0.6, 0.6, 0.4))
        if box is not None and rng.random() < 0.6:
            yield tube, frame, jitter(box, rng), float(rng.beta(3, 5))


# Judging: recall within the first twenty an hour.


@dataclass(frozen=True, eq=False)
class Night:
    """All drives of a set, examined.

    Args:
        peaks, counts: of all drives.
        tubes: `video`, `t_s`, `score` of each path, at its highest score.
        plants: what is looked for.
        hours: of all drives.
        videos: names of the drives.
        truth: peaks of the ground truth of each scene, without what is planted; `video` is the scene.
    """

    peaks: pl.DataFrame
    counts: pl.DataFrame
    tubes: pl.DataFrame
    plants: tuple[Plant, ...]
    hours: float
    videos: tuple[str, ...]
    truth: pl.DataFrame


def examine_set(folder: Path, name: str, rounds: int, most: int | None = None) -> Night:
    """Plant, see and examine all scenes of a set, each so many times as another drive: the same ones for equal sets.

    What was examined is kept beside the set, by the code that did it, so that a run that was killed goes on.
    """
    parts: list[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]] = []
    plants: list[Plant] = []
    videos: list[str] = []
    waiting = 0
    places = sorted(path for path in (folder / name).iterdir() if is_saved(path))[:most]
    code = (
        b"".join(Path(str(module.__file__)).read_bytes() for module in (triage, drives))
        + Path(__file__).read_bytes()
    )
    kept = folder / f"{name}-examined-{digest(code)[:12]}"
    make_folder(kept)
    for number, (turn, place) in enumerate((turn, place) for turn in range(rounds) for place in places):
        scenes = open_scenes(place)
        rng = np.random.default_rng([SEEDS[name], int(place.name), turn, 5])
        planted = Planted(scenes)
        waiting += (number + turn) % EVERY == 0  # in other scenes each time
        kind = ""
        if waiting:  # in the next drive in which the vehicle drives for long enough
            kind = KINDS[len(plants) % len(KINDS)]
            planted = plant_moment(scenes, kind, rng)
            if planted.plant is not None:
                plants.append(replace(planted.plant, video=f"{planted.plant.video}.{turn}"))
                waiting -= 1
        videos.append(f"{scenes.videos['video'][0]}.{turn}")
        parts.append(_examine(planted, videos[-1], kept / f"{place.name}.{turn}.{kind}", rng))
    hours = len(videos) * SECONDS / 3600
    peaks, counts, paths = (pl.concat(each) for each in zip(*parts, strict=True))
    truth = pl.concat([find_peaks(drive) for place in places for drive in build_drives(open_scenes(place))])
    return Night(peaks, counts, paths, tuple(plants), hours, tuple(videos), truth)


def _examine(
    planted: Planted, video: str, kept: Path, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The peaks, label counts and surest moments of paths of one drive."""
    files = [kept.with_name(f"{kept.name}.{what}.parquet") for what in ("peaks", "counts", "paths")]
    if not files[-1].exists():
        (drive,) = build_drives(see(planted, rng))
        drive = replace(drive, video=video)
        best = drive.boxes.filter(pl.len().over("tube") >= 3, pl.col("tube") >= 0)
        best = best.sort("score", descending=True, maintain_order=True)
        best = best.unique("tube", keep="first", maintain_order=True)
        at = drive.t_s[np.searchsorted(drive.frame, best["frame"].to_numpy())]
        paths = pl.DataFrame({"video": [video] * len(best), "t_s": at, "score": best["score"]})
        for file, table in zip(files, (find_peaks(drive), count_labels(drive), paths), strict=True):
            write_atomically(file, encode_parquet(table))
    peaks, counts, paths = map(read_parquet, files)
    return peaks, counts, paths


def _match(listed: pl.DataFrame, plants: Sequence[Plant]) -> npt.NDArray[np.bool_]:
    """(listed, plants) whether a moment lies in a plant, or within 1.5 s of it."""
    t_s = listed["t_s"].to_numpy()[:, None]
    start, end = np.array([p.start_s for p in plants]), np.array([p.end_s for p in plants])
    same = listed["video"].to_numpy()[:, None] == np.array([p.video for p in plants], object)
    found: npt.NDArray[np.bool_] = same & (t_s >= start - _SLACK_S) & (t_s <= end + _SLACK_S)
    return found


def mark_found(listed: pl.DataFrame, plants: Sequence[Plant]) -> npt.NDArray[np.bool_]:
    """(plants,) whether a listed moment lies in each, or within 1.5 s of it."""
    found: npt.NDArray[np.bool_] = _match(listed, plants).any(axis=0)
    return found


def mark_true(listed: pl.DataFrame, night: Night) -> npt.NDArray[np.bool_]:
    """(listed,) whether a moment that was not planted is in the scene: its first reason, by the ground truth."""
    near = pl.col("t_s").sub(pl.col("t_s_right")).abs() <= _TRUE_S
    true = night.truth.filter(pl.col("value") >= _TRUE_VALUE).select("video", "reason", "t_s")
    rows = listed.with_row_index().with_columns(video=pl.col("video").str.replace(r"\.\d+$", ""))
    held = rows.join(true, on=["video", "reason"]).filter(near)["index"]
    found: npt.NDArray[np.bool_] = np.isin(np.arange(len(listed)), held.to_numpy())
    return found & ~_match(listed, night.plants).any(axis=1)


def rank(night: Night, config: TriageConfig, an_hour: float = LISTED) -> pl.DataFrame:
    """The moments that are listed."""
    return rank_moments(night.peaks, night.counts, night.hours, config).head(round(an_hour * night.hours))


def rank_by_scores(night: Night, an_hour: float = LISTED) -> pl.DataFrame:
    """The times at which the surest paths are surest, no two of a drive within four seconds."""
    rows: list[tuple[str, float]] = []
    for video, t_s, _ in night.tubes.sort(
        "score", "video", "t_s", descending=[True, False, False]
    ).iter_rows():
        if all(other != video or abs(at - t_s) >= 4.0 for other, at in rows):
            rows.append((video, t_s))
        if len(rows) == round(an_hour * night.hours):
            break
    return pl.DataFrame(rows, schema={"video": pl.String, "t_s": pl.Float64}, orient="row")


def rank_by_chance(night: Night, rng: np.random.Generator, an_hour: float = LISTED) -> pl.DataFrame:
    """As many times, drawn."""
    count = round(an_hour * night.hours)
    return pl.DataFrame({"video": rng.choice(night.videos, count), "t_s": rng.uniform(0, SECONDS, count)})


def format_recall(found: Floats, plants: Sequence[Plant]) -> str:
    """The share of plants that was found, with its 95 % interval over simulated scenes."""
    units = Units.of(np.array([plant.video.partition(".")[0] for plant in plants]), 1000, 0)
    value = float(found.mean()) if len(found) else float("nan")
    if units is None:
        return f"{value:.3f}"
    values = np.concatenate([(w @ found) / np.maximum(w.sum(axis=1), 1e-9) for w in units.weights()])
    ends = units.interval(value, values)
    return f"{value:.3f}" if ends.low is None else f"{value:.3f} [{ends.low:.3f}, {ends.high:.3f}]"


def judge(night: Night, config: TriageConfig) -> None:
    """Print the table."""
    print(
        f"{night.hours:.2f} hours, {len(night.videos)} drives, {len(night.plants)} planted moments",
        flush=True,
    )
    kinds = [plant.kind for plant in night.plants]
    print(
        f"| order | recall in the first {LISTED} an hour | {' | '.join(KINDS)} |\n|---|---|{'---|' * len(KINDS)}"
    )

    def show(name: str, found: Floats) -> None:
        each = [f"{found[[k == kind for k in kinds]].mean():.2f}" if kind in kinds else "-" for kind in KINDS]
        print(f"| {name} | {format_recall(found, night.plants)} | {' | '.join(each)} |", flush=True)

    show("triage", mark_found(rank(night, config), night.plants).astype(np.float64))
    ranked = rank_moments(night.peaks, night.counts, night.hours, config)
    others = ranked.filter(~pl.Series(mark_true(ranked, night))).head(round(LISTED * night.hours))
    show("triage, true moments take no place", mark_found(others, night.plants).astype(np.float64))
    none = dict.fromkeys(REASONS, 0.0)
    for reason in REASONS:
        if reason in night.peaks["reason"].unique().to_list():
            alone = replace(config, **(none | {reason: 1.0}))
            show(f"{reason} alone", mark_found(rank(night, alone), night.plants).astype(np.float64))
    show("scores alone", mark_found(rank_by_scores(night), night.plants).astype(np.float64))
    rng = np.random.default_rng(0)
    draws = [mark_found(rank_by_chance(night, rng), night.plants) for _ in range(200)]
    show("chance, mean of 200", np.mean(draws, axis=0))
    print("\n| listed an hour | recall |\n|---|---|")
    for an_hour in (5, 10, 15, 20, 30, 40):
        found = mark_found(rank(night, config, an_hour), night.plants).astype(np.float64)
        print(f"| {an_hour} | {format_recall(found, night.plants)} |", flush=True)
    listed = rank(night, config)
    kinds_of = pl.Series(np.where(mark_true(listed, night), "true", "wrong"))
    kinds_of = kinds_of.zip_with(pl.Series(~_match(listed, night.plants).any(axis=1)), pl.Series(["planted"]))
    counts = listed.group_by("reason", what=kinds_of).len().sort("what", "reason")
    print(counts.pivot("what", index="reason", values="len").sort("reason").fill_null(0))


def tune(night: Night, config: TriageConfig) -> TriageConfig:
    """Weights that find most, one reason after the other, twice over; of equal ones those that are nearest to before."""

    def worth(tried: TriageConfig) -> float:
        ranked = rank_moments(night.peaks, night.counts, night.hours, tried)
        return float(
            np.mean(
                [
                    mark_found(ranked.head(round(n * night.hours)), night.plants).mean()
                    for n in (8, 12, 16, 20, 26)
                ]
            )
        )

    best = worth(config)
    print(f"before: {best:.3f}", flush=True)
    for _ in range(2):
        for reason in REASONS:
            for value in (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0):
                tried = replace(config, **{reason: value})
                if (found := worth(tried)) > best + 1e-9:
                    best, config = found, tried
        print(f"{best:.3f}: {config.weights}", flush=True)
    return config


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("make", "tune", "judge"))
    parser.add_argument("folder", type=Path, help="of the simulated drives")
    parser.add_argument("--set", choices=tuple(SEEDS), default="judge")
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often each scene is driven, with other errors and plants"
    )
    parser.add_argument(
        "--drives", type=int, default=1800, help="scenes that are made, or used; 90 are an hour"
    )
    asked = parser.parse_args()
    started_s = time.process_time()
    if asked.part == "make":
        make_set(asked.folder, asked.set, asked.drives)
    elif asked.part == "tune":
        tune(examine_set(asked.folder, "tune", asked.rounds, asked.drives), TriageConfig())
    else:
        judge(examine_set(asked.folder, asked.set, asked.rounds, asked.drives), TriageConfig())
    print(f"{time.process_time() - started_s:.0f} CPU s")


if __name__ == "__main__":
    main()
