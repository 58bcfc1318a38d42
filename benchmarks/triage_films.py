"""`python -m benchmarks.triage_films make|judge FOLDER`: an hour of films with ten planted moments, watched end to end.

`make` simulates drives of 40 s with pictures and sound (`road@1`, 5 frames a second) and goes on where it was; of each nine
one has a planted moment. The moments are the simulator's own actors, lights and noises, added before anything is drawn, so
that they are hidden by what stands before them, and truth is what the camera sees:

- cut-in: a car comes from behind beside the vehicle, and over within 1.6 s until it is 8 m ahead;
- child: walks out from behind a parked van at 1.4 m/s, 1.9 s before the vehicle is there and 2 m beside the way;
- object: a tyre, a suitcase, a dustbin or debris lies on the way;
- red light: a light beside the way that is red while the vehicle goes past it;
- siren: an emergency vehicle sounds it for 4 s within 50 m, out of sight.

Nobody else is where they are; where there is no room, the next drive is tried. FOLDER/SET holds the films and nothing else,
so that the command is given what a user has; `judge` reads its watches:

    python -m benchmarks.triage_films make SETS --set films --drives 90
    roadaware triage SETS/films --listen siren --top 20 --watches SETS/films-watches --output SETS/films-night
    python -m benchmarks.triage_films judge SETS --set films
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.triage import EVERY, FPS, KINDS, SECONDS, Floats, Night, Plant, Way, judge, list_starts
from roadaware.analysis.drives import build_drives, examine_sources, open_drives
from roadaware.analysis.triage import ALARMS, Drive, TriageConfig, find_peaks
from roadaware.io.files import write_atomically
from roadaware.io.folders import hold_folder, is_held, make_folder
from roadaware.scenes.store import open_scenes
from roadaware.simulator.actors import Actor, Lamp, Light, Pose, Signal
from roadaware.simulator.config import SceneConfig, adapt_scene_config, build_scene_config
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.figures.models import MODELS
from roadaware.simulator.generate import TABLES, VIDEO, Kept, render_scene
from roadaware.simulator.make import Room, Thing, make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.people import stride_m
from roadaware.simulator.sound import SIRENS
from roadaware.simulator.town.regions import On, Regions
from roadaware.simulator.traffic.record import needs_head_lamps
from roadaware.simulator.walkers.persons import draw_person

SEEDS = {
    "films": (61, EVERY),
    "films-2": (62, EVERY),
    "films-3": (63, EVERY),
    "films-4": (64, EVERY),
    "films-tune": (60, 1),
}
"""Of the drives of a set, and how many drives there are for a planted moment; `films-tune` is to look at, not to judge."""
_WITHOUT_SIRENS = ("films-2", "films-3", "films-4")
"""Sets in which the emergency vehicles of the traffic sound no siren, so that a planted one is the only one, as in tables: in
`films` eleven of 90 drives have sirens that nobody planted."""
SIZE = (640, 360)
_LYING = ("tyre", "suitcase", "dustbin", "debris")
_AWAY = 1e6
"""Metres: where somebody is who is not in the scene yet, or no more."""
_SEEN_M = 60.0
_TRIES = 40
_LEAST_VIEWS = 5
"""As of tables: what is planted is before the camera in so many frames at least."""


def build_config() -> SceneConfig:
    """Of all films."""
    return adapt_scene_config(build_scene_config("road@1"), seconds=SECONDS, size=SIZE, fps=FPS)


@dataclass(frozen=True, eq=False)
class Ground:
    """A drive into which something is planted.

    Args:
        episode: of the drive.
        way: of the own vehicle.
        regions: of the town.
        room: what everybody but the own vehicle takes up, frame by frame.
        furniture: what stands about.
        kerb: 1 where the near kerb is to the left of the way, else -1.
    """

    episode: Episode
    way: Way
    regions: Regions
    room: Room
    furniture: Room
    kerb: float

    @classmethod
    def of(cls, episode: Episode) -> Ground:
        """That of a drive without anything planted."""
        ego = episode.ego
        way = Way(np.arange(episode.n_frames) / FPS, ego.speed, ego.position, ego.heading)
        # The vehicle meets what is planted: it alone takes up no room.
        gone = replace(ego, position=ego.position + _AWAY)
        kerb = 1.0 if episode.config.surroundings.drive_on == "left" else -1.0
        layout = episode.layout
        return cls(
            episode, way, Regions(layout), Room(layout, gone, episode.actors), Room(layout, gone, ()), kerb
        )

    def span(self, where: float) -> range:
        """The frames from 60 m before a place of the way until it is behind: what is there then is not seen to come."""
        first, end = np.searchsorted(self.way.gone, [where - _SEEN_M, where + 6.0]).tolist()
        return range(first, min(end, len(self.way.t_s)))

    def track(self, gone: Floats, side: Floats) -> tuple[Floats, Floats]:
        """(n, 2) places along the way and to its left, and (n,) its heading there."""
        places = [self.way.place(float(a), float(b)) for a, b in zip(gone, side, strict=True)]
        return np.array([place[:2] for place, _ in places]), np.array([heading for _, heading in places])

    def is_free(self, kind: str, frames: range, track: Floats, heading: Floats) -> bool:
        """Whether nobody else is where something of a size is, in frames, and what does not move stands in nothing."""
        n = self.episode.n_frames
        if np.ptp(track, axis=0).max() < 0.1 and not self.furniture.free(
            Thing(kind, np.tile(track[0], (n, 1)), np.full(n, heading[0]), np.zeros(n))
        ):
            return False
        places, turn = np.full((n, 2), _AWAY), np.zeros(n)
        places[frames.start : frames.stop], turn[frames.start : frames.stop] = track, heading
        return self.room.free(Thing(kind, places, turn, np.zeros(n)))

    def build_actor(
        self, kind: str, model: int, frames: range, track: Floats, heading: Floats, look: int
    ) -> Actor:
        """Something with wheels, or that lies, where it is in frames."""
        n, shape = len(frames), MODELS[kind][model]
        where = self.regions.at(track)
        step = np.hypot(*np.diff(track, axis=0, prepend=track[:1]).T)
        lit = kind in ("Car", "EmVeh") and needs_head_lamps(self.episode.conditions)
        return Actor(
            len(self.episode.actors), kind, shape.name, shape.size_m, look, frames.start,
            np.column_stack([track, where.height_m]), heading, step * FPS,
            np.full(n, int(Lamp.HEAD) if lit else 0, np.uint8), np.zeros(n, np.uint8), np.cumsum(step) / 0.32,
            np.zeros(n), where.lane,
        )  # fmt: skip


def plant(episode: Episode, kind: str, rng: np.random.Generator) -> tuple[Episode, Plant] | None:
    """A drive with a moment of a kind; None where the vehicle never drives for long enough, or nowhere is room.

    Args:
        episode: without anything planted.
        kind: one of `KINDS`.
        rng: draws where and when.
    """
    ground = Ground.of(episode)
    starts = list_starts(ground.way)
    for start in rng.permutation(starts)[:_TRIES].tolist():
        found = _PLANTERS[kind](ground, start, rng)
        if found is not None:
            changed, end_s = found
            start_s = float(ground.way.t_s[start])
            moment = Plant(kind, episode.name, start_s, max(end_s, start_s + 1.0))
            if kind == "siren" or count_views(changed, moment) >= _LEAST_VIEWS:
                return changed, moment
    return None


def count_views(changed: Episode, moment: Plant) -> int:
    """In how many frames of a moment the middle of what was planted last is before the camera, hidden or not."""
    new = changed.actors[-1] if moment.kind != "red_light" else None
    count = 0
    for frame in range(round(moment.start_s * FPS), round(moment.end_s * FPS) + 1):
        camera = build_camera(changed.ego, changed.config, frame, changed.seed)
        row = None if new is None else new.at(frame)
        if new is not None and row is None:
            continue
        place = (
            changed.signals[-1].position if new is None else new.position[row] + [0.0, 0.0, new.size_m[2] / 2]
        )
        pixels, depth = camera.project(np.asarray(place, np.float64)[None])
        count += bool(
            depth[0] > 1.0
            and (pixels[0] >= 0).all()
            and (pixels[0] < [camera.width_px, camera.height_px]).all()
        )
    return count


def _plant_cut_in(ground: Ground, start: int, rng: np.random.Generator) -> tuple[Episode, float] | None:
    way, t0 = ground.way, float(ground.way.t_s[start])
    frames = range(start - round(3 * FPS), min(start + round(7 * FPS), len(way.t_s)))
    since = way.t_s[frames.start : frames.stop] - t0
    hand = -ground.kerb if rng.random() < 0.7 else ground.kerb
    # From behind, where the camera does not look, to 8 m before the bumper; then it drives away.
    ahead = np.interp(since, [-3, -1.5, 0, 1.6, 3, 6], [-8.0, 2.0, 11.0, 8.0, 9.0, 30.0])
    side = np.interp(since, [-3, 0, 1.6], [3.3 * hand, 3.3 * hand, 0.0])
    track, along = ground.track(way.gone[frames.start : frames.stop] + ahead + 2.2, side)
    step = np.diff(track, axis=0, append=2 * track[-1:] - track[-2:-1])
    heading = np.where(np.hypot(*step.T) > 0.2, np.arctan2(step[:, 1], step[:, 0]), along)
    on = ground.regions.at(track).on
    if np.isin(on, (On.OFF, On.PAVEMENT, On.BUS_STOP)).any() or not ground.is_free(
        "Car", frames, track, heading
    ):
        return None
    car = ground.build_actor("Car", int(rng.integers(4)), frames, track, heading, int(rng.integers(2**31)))
    return _with_actors(ground.episode, car), t0 + 1.6


def _plant_child(ground: Ground, start: int, rng: np.random.Generator) -> tuple[Episode, float] | None:
    way, episode, t0 = ground.way, ground.episode, float(ground.way.t_s[start])
    where, hand = float(way.gone[start] + 1.9 * way.speed[start] + 1.7), ground.kerb
    whole = ground.span(where)
    frames = range(max(whole.start, start - round(3 * FPS)), whole.stop)
    # The van ends 0.6 m before the child's path, its inner side 2 m beside the way: it hides whoever is farther out.
    van_at, van_turn = ground.track(np.full(len(whole), where - 0.6 - 2.7), np.full(len(whole), 3.0 * hand))
    since = way.t_s[frames.start : frames.stop] - t0
    side = hand * (2.0 - 1.4 * np.clip(since, -1.0, 4.0))
    track, along = ground.track(np.full(len(frames), where), side)
    on = ground.regions.at(van_at[:1]).on
    if (
        np.isin(on, (On.OFF, On.JUNCTION, On.CROSSING)).any()
        or not ground.is_free("MedVeh", whole, van_at, van_turn)
        or not ground.is_free("suitcase", frames, track, along)
    ):
        return None
    van = replace(
        ground.build_actor("MedVeh", 0, whole, van_at, van_turn, int(rng.integers(2**31))), active=False
    )
    person = draw_person(rng, episode.config.behaviour, True, ("child",))
    moving = (since >= -1.0) & (since <= 4.0)
    ground_at = ground.regions.at(track)
    bare = Actor(
        van.number + 1, "Ped", person.model, person.size_m, person.look, frames.start,
        np.column_stack([track, ground_at.height_m]), along - hand * np.pi / 2, np.where(moving, 1.4, 0.0),
        np.zeros(len(frames), np.uint8), np.where(moving, int(Pose.WALK), int(Pose.STAND)).astype(np.uint8),
        np.zeros(len(frames)), np.zeros(len(frames)), ground_at.lane,
        facts={"crossing": (np.abs(side) < 2.5).astype(np.int8)},
    )  # fmt: skip
    child = replace(bare, gait=np.cumsum(bare.speed / FPS * 2.0 * np.pi / stride_m(bare)))
    return _with_actors(episode, van, child), float(way.t_s[frames.stop - 1])


def _plant_object(ground: Ground, start: int, rng: np.random.Generator) -> tuple[Episode, float] | None:
    way, kind = ground.way, str(rng.choice(_LYING))
    where = float(way.gone[start]) + 35.0
    if where > way.gone[-1]:
        return None
    frames = ground.span(where)
    track, heading = ground.track(
        np.full(len(frames), where), np.full(len(frames), float(rng.uniform(-0.8, 0.8)))
    )
    heading = heading + float(rng.uniform(-np.pi, np.pi))
    if not ground.is_free(kind, frames, track, heading):
        return None
    thing = ground.build_actor(kind, 0, frames, track, heading, int(rng.integers(2**31)))
    return _with_actors(ground.episode, thing), float(way.t_s[np.searchsorted(way.gone, where)])


def _plant_red_light(ground: Ground, start: int, rng: np.random.Generator) -> tuple[Episode, float] | None:
    way, episode = ground.way, ground.episode
    where = float(way.gone[start] + 4.0 * way.speed[start])
    if where > way.gone[-1]:
        return None
    n, side = len(way.t_s), ground.kerb * float(rng.uniform(2.8, 4.5))
    track, heading = ground.track(np.full(n, where), np.full(n, side))
    if not ground.is_free("traffic_cone", range(n), track, heading):
        return None
    light = Signal(
        len(episode.signals), np.array([*track[0], 2.9]), float(heading[0]) + np.pi,
        np.full(n, int(Light.RED), np.uint8), (episode.layout.route[0],), -1,
    )  # fmt: skip
    return replace(episode, signals=(*episode.signals, light)), float(
        way.t_s[np.searchsorted(way.gone, where)]
    )


def _plant_siren(ground: Ground, start: int, rng: np.random.Generator) -> tuple[Episode, float] | None:
    way, t0 = ground.way, float(ground.way.t_s[start])
    side = float(rng.choice([-1.0, 1.0]) * rng.uniform(12.0, 35.0))
    (x, y, _), _ = way.place(float(way.gone[start] + rng.uniform(0.0, 35.0)), side)
    noise = Noise(str(rng.choice(list(SIRENS.values()))), None, t0, t0 + 4.0, 3.0, (float(x), float(y)))
    return replace(ground.episode, noises=(*ground.episode.noises, noise)), t0 + 4.0


def _with_actors(episode: Episode, *more: Actor) -> Episode:
    return replace(episode, actors=(*episode.actors, *more))


_PLANTERS = dict(
    zip(KINDS, (_plant_cut_in, _plant_child, _plant_object, _plant_red_light, _plant_siren), strict=True)
)


def make_planted(name: str, number: int) -> tuple[Episode, Plant | None]:
    """A drive of a set, with its planted moment: in each `every` drives the first one that has room for it."""
    seed, every = SEEDS[name]
    for other in range(number - number % every, number + 1):
        found = plant(
            make_bare(name, other),
            KINDS[number // every % len(KINDS)],
            np.random.default_rng([seed, other, 7]),
        )
        if found is not None:
            return found if other == number else (make_bare(name, number), None)
    return make_bare(name, number), None


def make_bare(name: str, number: int) -> Episode:
    """A drive of a set without anything planted."""
    episode = make_episode(build_config(), SEEDS[name][0], number)
    noises = episode.noises
    if name in _WITHOUT_SIRENS:
        noises = tuple(each for each in noises if each.label not in SIRENS.values())
    return replace(episode, name=f"{name}-{number:04d}", noises=noises)


def make_film(folder: Path, name: str, number: int) -> None:
    """Draw a drive: its film among the films of the set, its tables and what was planted beside them.

    Nothing is done where the film is there, or another process draws it.
    """
    stem = f"{name}-{number:04d}"
    truth, film = folder / f"{name}-truth" / stem, folder / name / f"{stem}.mp4"
    if film.exists() or is_held(truth):
        return
    with hold_folder(truth):
        # The other process may have come to its end in between.
        if film.exists():
            return
        for left in truth.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()
        episode, planted = make_planted(name, number)
        make_folder(film.parent)
        render_scene(episode, truth, kept=Kept(masks=False))
        write_atomically(truth / "plant.json", json.dumps(planted and asdict(planted)).encode())
        # Last: a film is there once all of it is.
        (truth / VIDEO).rename(film)


def read_plants(folder: Path, name: str) -> Iterator[Plant]:
    """What was planted in the films that are there."""
    for film in sorted((folder / name).glob("*.mp4")):
        held = json.loads((folder / f"{name}-truth" / film.stem / "plant.json").read_bytes())
        if held is not None:
            yield Plant(**held)


def cut_seconds(sounds: pl.DataFrame) -> pl.DataFrame:
    """Each sound as one for each second that it lasts."""
    lasts = (pl.col("end_s") - pl.col("t_s")).ceil().clip(1, None).cast(pl.Int64)
    cut = sounds.with_columns(second=pl.int_ranges(0, lasts)).explode("second")
    return cut.with_columns(
        pl.col("t_s") + pl.col("second"), end_s=pl.col("t_s") + pl.col("second") + 1.0
    ).drop("second")


def list_alarms(drive: Drive) -> pl.DataFrame:
    """`video`, `reason`, `t_s` and `value`: an alarm, whose peak is at its start, is true in each of its seconds."""
    heard = cut_seconds(drive.sounds).filter(pl.col("name").str.contains(f"^({'|'.join(ALARMS)})"))
    return heard.select(
        video=pl.lit(drive.video), reason=pl.lit("alarm"), t_s=pl.col("t_s"), value=pl.lit(1.0)
    )


def examine_watches(folder: Path, name: str) -> Night:
    """What triage finds in the watches of a set, and what there was."""
    failed: dict[str, str] = {}
    films = sorted((folder / name).glob("*.mp4"))
    examined = examine_sources([folder / f"{name}-watches" / film.stem for film in films], (), failed)
    if examined is None or failed:
        raise SystemExit(f"not watched: {failed}")
    truth = [
        pl.concat([find_peaks(drive), list_alarms(drive)], how="diagonal")
        for film in films
        for drive in build_drives(open_scenes(folder / f"{name}-truth" / film.stem / TABLES))
    ]
    scores = []
    for film in films:
        for drive in open_drives(folder / f"{name}-watches" / film.stem):
            best = drive.boxes.filter(pl.len().over("tube") >= 3, pl.col("tube") >= 0)
            best = best.sort("score", descending=True, maintain_order=True).unique(
                "tube", keep="first", maintain_order=True
            )
            at = drive.t_s[np.searchsorted(drive.frame, best["frame"].to_numpy())]
            scores.append(
                pl.DataFrame({"video": [drive.video] * len(best), "t_s": at, "score": best["score"]})
            )
    hours = float(examined.lengths["seconds"].sum()) / 3600
    videos = tuple(film.stem for film in films)
    plants = tuple(read_plants(folder, name))
    return Night(examined.peaks, examined.counts, pl.concat(scores), plants, hours, videos, pl.concat(truth))


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("make", "judge"))
    parser.add_argument("folder", type=Path, help="of the films")
    parser.add_argument("--set", choices=tuple(SEEDS), default="films")
    parser.add_argument("--drives", type=int, default=90, help="films that are made; 90 are an hour")
    parser.add_argument("--backwards", action="store_true", help="a second process, from the other end")
    asked = parser.parse_args()
    started_s = time.process_time()
    if asked.part == "make":
        order = range(asked.drives)
        for number in reversed(order) if asked.backwards else order:
            make_film(asked.folder, asked.set, number)
    else:
        judge(examine_watches(asked.folder, asked.set), TriageConfig())
    print(f"{time.process_time() - started_s:.0f} CPU s")


if __name__ == "__main__":
    main()
