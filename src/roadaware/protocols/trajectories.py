"""Where pedestrians will be: networks of paths, straight lines and a Kalman filter on JAAD, KITTI and simulated streets."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.trajectories import (
    JudgedPaths,
    TrajectoryConfig,
    average_judged,
    compare_paths,
    judge_paths,
    summarise_paths,
)
from roadaware.models.trajectory.motion import Extrapolation, Kalman, Motion, StateForecast, States
from roadaware.scenes.sampling import get_protocol, list_split_videos
from roadaware.scenes.tables import Scenes
from roadaware.tasks.trajectories import (
    WindowProtocol,
    Windows,
    cut_windows,
    get_future,
    get_paths,
    get_states,
    place_forecast,
)

if TYPE_CHECKING:
    from roadaware.models.trajectory.mixture import PathPredictor

Progress = Callable[[int, int, str], None]

FORMAT = "roadaware-trajectory-study"
SPLITS_FROM = "jaad-action@iv2024"
"""Whose splits are taken, of JAAD and of simulated streets."""
TRAIN_STRIDE_S = 1 / 6
"""From one window of a track to the next where networks learn; validation and test take half a second."""
FOLDS = 5
VELOCITY, LINE, KALMAN, MIXTURE = "constant velocity", "linear fit", "Kalman filter", "mixture"
SINGLE, ABROAD = "mixture, one network", "mixture, learnt on JAAD alone"
FLOORS = (VELOCITY, LINE, KALMAN)
WINDOWS, RESULTS, MARKER = "windows.parquet", "results.json", "study.json"


@dataclass(frozen=True, eq=False)
class JudgedSet:
    """What the ways of predicting are worth on one set.

    Args:
        name: of it.
        ways: each with the numbers of its windows.
        summary: each with means and intervals.
        differences: of the mixture from each other way, paired.
        counts: tracks, videos and windows of train, validation and test.
        floors: lookbacks that were chosen on validation, and noise that was in training, in words.
        seeds_ade: ADE of each network by itself, in pixels or metres.
    """

    name: str
    ways: dict[str, JudgedPaths]
    summary: dict[str, MetricResult]
    differences: dict[str, MetricResult]
    counts: dict[str, Any]
    floors: dict[str, str]
    seeds_ade: tuple[float, ...]

    @property
    def unit(self) -> str:
        """Of `ade` and `fde`."""
        return "px" if "iou" in self.ways[MIXTURE].metrics else "m"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""

        def rows(result: MetricResult) -> dict[str, Any]:
            return {
                row["metric"]: {
                    "value": row["value"],
                    "by_pedestrian": (row["low_pedestrian"], row["high_pedestrian"]),
                    "by_video": (row["low_video"], row["high_video"]),
                }
                for row in result.summary.iter_rows(named=True)
            }

        return {
            "counts": self.counts, "floors": self.floors, "unit": self.unit, "ade_by_seed": list(self.seeds_ade),
            "ways": {name: rows(each) for name, each in self.summary.items()},
            "differences": {f"{MIXTURE} - {name}": rows(each) for name, each in self.differences.items()},
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrajectoryStudy:
    """Results of all sets, in the order in which they were asked."""

    sets: tuple[JudgedSet, ...]
    seeds: tuple[int, ...]
    recipe: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "seeds": list(self.seeds), "recipe": self.recipe, "sets": {each.name: each.as_dict() for each in self.sets}
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Part:
    """Windows of a split with what was seen and what came."""

    windows: Windows
    states: States
    future: Floats

    @classmethod
    def cut(cls, scenes: Scenes, protocol: WindowProtocol) -> _Part:
        return cls.of(cut_windows(scenes, protocol))

    @classmethod
    def of(cls, windows: Windows) -> _Part:
        return cls(windows, get_states(windows), get_future(windows))


def run_trajectory_study(
    out: Path,
    *,
    jaad: Scenes | None = None,
    kitti: Scenes | None = None,
    streets: tuple[Scenes, Scenes] | None = None,
    recipe: Any = None,
    onward: Any = None,
    ground: Any = None,
    seeds: tuple[int, ...] = (0, 1, 2),
    resamples: int = 1000,
    config: TrajectoryConfig | None = None,
    progress: Progress | None = None,
) -> TrajectoryStudy:
    """Fit networks of paths and judge them beside what needs no network.

    - `JAAD`: 15 boxes seen and 45 predicted at 30 a second, by the splits of the data set.
    - `JAAD at 10/s`: every third box, 5 seen and 15 predicted.
    - `KITTI`: 5 seen and 15 predicted at 10 a second; networks go on from those of JAAD at 10/s, in five folds over drives.
    - `KITTI, ground`: the same on the ground, in metres from the moving camera, from nothing.
    - `streets`: train and validation of one simulated town, all of another.

    A network that stands in the folder is not fitted again.

    Args:
        out: folder: `networks/`, `windows.parquet` with the numbers of every window, `results.json`.
        jaad, kitti: the sets; None leaves theirs out.
        streets: simulated towns: that which is learnt from, and that which is judged.
        recipe: a `training.pedestrians.trajectories.PathRecipe` (default: the usual one).
        onward: that of networks that go on from those of JAAD on KITTI, or learn there alone.
        ground: that of networks of places on the ground, of which there are few windows.
        seeds: of the networks; the mixture of all of them is judged, and each alone.
        resamples: most weightings for intervals; 0 for none.
        config: of the metrics.
        progress: called with what is done, how much there is, and in words.

    Raises:
        InputError: if there is no set, or a network in the folder is of another recipe.
    """
    from roadaware.training.pedestrians.trajectories import PathRecipe

    recipe = recipe or PathRecipe()
    onward = onward or PathRecipe(updates=300, lr=3e-4)
    ground = ground or PathRecipe(components=3, hidden=32, degree=2, dropout=0.2, updates=300, lr=3e-3)
    config = config or TrajectoryConfig()
    if jaad is None and kitti is None and streets is None:
        raise InputError("no set to predict on: neither JAAD, nor KITTI tracking, nor simulated streets")
    total = len(seeds) * (2 * (jaad is not None) + 2 * FOLDS * (kitti is not None) + (streets is not None))
    work = _Work(out, seeds, config, resamples, progress, total)
    with hold_folder(out):
        record = {
            "format": FORMAT,
            "recipe": to_dict(recipe),
            "onward": to_dict(onward),
            "ground": to_dict(ground),
        }
        write_atomically(out / MARKER, encode_json(record).encode())
        sets: list[JudgedSet] = []
        slow: list[PathPredictor] = []
        if jaad is not None:
            for name, rate in (("JAAD", None), ("JAAD at 10/s", 10.0)):
                parts = _cut_splits(jaad, rate)
                slow = work.fit(name, parts["train"], parts["val"], recipe)
                sets.append(work.judge(name, [(parts["train"], parts["val"], parts["test"], slow)]))
        if kitti is not None:
            sets.append(_judge_folds(work, "KITTI", kitti, False, slow, onward))
            sets.append(_judge_folds(work, "KITTI, ground", kitti, True, [], ground))
        if streets is not None:
            sets.append(_judge_streets(work, streets, recipe, bool(jaad)))
        study = TrajectoryStudy(tuple(sets), seeds, to_dict(recipe))
        table = pl.concat(
            [
                each.table.select(pl.lit(one.name).alias("set"), pl.lit(way).alias("way"), pl.all())
                for one in sets
                for way, each in one.ways.items()
            ],
            how="diagonal",
        )
        stream = io.BytesIO()
        table.write_parquet(stream)
        write_atomically(out / WINDOWS, stream.getvalue())
        write_atomically(out / RESULTS, (json.dumps(study.as_dict(), indent=2) + "\n").encode())
    return study


@dataclass(eq=False)
class _Work:
    """What all sets share: where networks lie, and how far the work is."""

    out: Path
    seeds: tuple[int, ...]
    config: TrajectoryConfig
    resamples: int
    progress: Progress | None
    total: int
    done: int = 0

    def fit(
        self, name: str, train: _Part, val: _Part, recipe: Any, start: list[PathPredictor] | None = None
    ) -> list[PathPredictor]:
        """A network of each seed, from the folder where it stands there."""
        from roadaware.models.trajectory.mixture import PathPredictor
        from roadaware.training.pedestrians.trajectories import fit_paths

        found = []
        for place, seed in enumerate(self.seeds):
            path = self.out / "networks" / _name_file(name) / f"seed-{seed}.safetensors"
            if not path.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)

                def report(done: int, whole: int, what: str) -> None:
                    if self.progress is not None:
                        self.progress(
                            self.done * 100 + 100 * done // whole, self.total * 100, f"{name}: {what}"
                        )

                fit_paths(
                    train.states, train.future, val.states, val.future, recipe, seed,
                    start=start[place] if start else None, facts={"set": name, "onward": bool(start)}, progress=report,
                ).save(path)  # fmt: skip
            held = PathPredictor.open(path)
            made = {"recipe": to_dict(recipe), "windows": len(train.windows), "onward": bool(start)}
            # Files of earlier versions say nothing of `onward`: they count as networks that began anew.
            if any(held.facts.get(fact, False) != value for fact, value in made.items()):
                raise InputError(
                    "this network was made by another recipe, from other windows, or with or without JAAD's to go on from",
                    where=str(path),
                    hint="name another folder",
                )
            found.append(held)
            self.done += 1
        return found

    def judge(
        self,
        name: str,
        folds: list[tuple[_Part, _Part, _Part, list[PathPredictor]]],
        abroad: list[PathPredictor] | None = None,
    ) -> JudgedSet:
        """The ways of predicting on the test parts of all folds together."""
        ways: dict[str, list[JudgedPaths]] = {}
        seeds: list[list[JudgedPaths]] = [[] for _ in self.seeds]
        chosen: dict[str, list[str]] = {}
        for train, val, test, networks in folds:
            for floor, model, words in fit_floors(train.states, train.future, val.states, val.future):
                ways.setdefault(floor, []).append(self._ask(test, [model]))
                chosen.setdefault(floor, []).append(words)
            ways.setdefault(MIXTURE, []).append(self._ask(test, list(networks)))
            for place, each in enumerate(networks):
                seeds[place].append(self._ask(test, [each]))
            if abroad:
                ways.setdefault(ABROAD, []).append(self._ask(test, list(abroad)))
        whole = {way: _concatenate(parts) for way, parts in ways.items()}
        single = [_concatenate(parts) for parts in seeds]
        whole[SINGLE] = average_judged(single)
        summary = {way: summarise_paths(each, resamples=self.resamples) for way, each in whole.items()}
        differences = {
            way: compare_paths(whole[MIXTURE], each, resamples=self.resamples)
            for way, each in whole.items()
            if way != MIXTURE
        }
        floors = {way: "; ".join(dict.fromkeys(each)) for way, each in chosen.items()}
        return JudgedSet(
            name, whole, summary, differences, _count(folds), floors,
            tuple(float(each.table["ade"].mean()) for each in single),  # type: ignore[arg-type]
        )  # fmt: skip

    def _ask(self, test: _Part, models: list[Motion]) -> JudgedPaths:
        steps = test.future.shape[1]
        joined = join_forecasts([model.forecast(test.states, steps) for model in models])
        return judge_paths(place_forecast(joined, test.windows), get_paths(test.windows), self.config)


def fit_floors(
    train: States, train_future: Floats, val: States, val_future: Floats
) -> list[tuple[str, Motion, str]]:
    """What needs no network, fitted: its name, the model, and what was chosen."""
    velocity = Extrapolation.fit("velocity", train, train_future, val, val_future)
    line = Extrapolation.fit("line", train, train_future, val, val_future)
    kalman = Kalman.fit(train, train_future)
    noise = f"noise {kalman.measurement:g}, acceleration {kalman.acceleration:g}"
    return [
        (VELOCITY, velocity, f"over {velocity.lookback} steps"), (LINE, line, f"through {line.lookback + 1} steps"),
        (KALMAN, kalman, noise),
    ]  # fmt: skip


def join_forecasts(parts: list[StateForecast]) -> StateForecast:
    """The mixture of several forecasts of the same people, each as likely as the others."""
    return StateForecast(
        np.concatenate([each.weight for each in parts], axis=1) / len(parts),
        *(
            np.concatenate([getattr(each, name) for each in parts], axis=1)
            for name in ("mean", "deviation", "correlation")
        ),
    )


def _name_file(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def _cut_splits(scenes: Scenes, rate: float | None) -> dict[str, _Part]:
    protocol = get_protocol(SPLITS_FROM, "default")
    return {
        split: _Part.cut(
            scenes.only(list_split_videos(scenes, protocol, split)),
            WindowProtocol(rate_fps=rate, stride_s=TRAIN_STRIDE_S if split == "train" else 0.5),
        )
        for split in ("train", "val", "test")
    }


def deal_folds(windows: Windows, folds: int = FOLDS) -> list[list[str]]:
    """Videos dealt to folds, the one with most windows first, each to the fold that has fewest.

    Raises:
        InputError: if there are fewer videos than folds.
    """
    videos, counts = np.unique(windows.video, return_counts=True)
    if len(videos) < folds:
        raise InputError(f"{folds} folds need as many videos with windows, and there are {len(videos)}")
    held: list[list[str]] = [[] for _ in range(folds)]
    sizes = [0] * folds
    for place in np.argsort(-counts, kind="stable"):
        least = int(np.argmin(sizes))
        held[least].append(str(videos[place]))
        sizes[least] += int(counts[place])
    return held


def _judge_folds(
    work: _Work, name: str, kitti: Scenes, ground: bool, start: list[PathPredictor], recipe: Any
) -> JudgedSet:
    judged = cut_windows(kitti, WindowProtocol(rate_fps=10.0, ground=ground))
    taught = cut_windows(kitti, WindowProtocol(rate_fps=10.0, stride_s=0.1, ground=ground))
    dealt = deal_folds(judged)
    folds = []
    for place, tested in enumerate(dealt):
        watched = dealt[(place + 1) % len(dealt)]
        train = _Part.of(taught.some(~np.isin(taught.video, tested + watched)))
        val = _Part.of(judged.some(np.isin(judged.video, watched)))
        test = _Part.of(judged.some(np.isin(judged.video, tested)))
        networks = work.fit(f"{name} fold {place}", train, val, recipe, start or None)
        folds.append((train, val, test, networks))
    return work.judge(name, folds, start or None)


def _judge_streets(work: _Work, streets: tuple[Scenes, Scenes], recipe: Any, known: bool) -> JudgedSet:
    from roadaware.models.trajectory.mixture import PathPredictor

    own, other = streets
    parts = {}
    protocol = get_protocol(SPLITS_FROM, "default")
    for split in ("train", "val"):
        held = own.only(list_split_videos(own, protocol, split))
        parts[split] = _Part.cut(
            held, WindowProtocol(rate_fps=None, stride_s=TRAIN_STRIDE_S if split == "train" else 0.5)
        )
    test = _Part.cut(other, WindowProtocol())
    networks = work.fit("streets", parts["train"], parts["val"], recipe)
    abroad = [
        PathPredictor.open(work.out / "networks" / _name_file("JAAD") / f"seed-{seed}.safetensors") for seed in work.seeds
    ] if known and test.states.past.shape[1] == 15 else None  # fmt: skip
    return work.judge("streets of another town", [(parts["train"], parts["val"], test, networks)], abroad)


def _concatenate(parts: list[JudgedPaths]) -> JudgedPaths:
    return JudgedPaths(pl.concat([each.table for each in parts]), parts[0].config)


def _count(folds: list[tuple[_Part, _Part, _Part, list[PathPredictor]]]) -> dict[str, Any]:
    def count(parts: list[Windows]) -> dict[str, Any]:
        return {
            "windows": sum(map(len, parts)), "tracks": sum(each.people for each in parts),
            "videos": sum(len(np.unique(each.video)) for each in parts),
        }  # fmt: skip

    found: dict[str, Any] = {"test": count([fold[2].windows for fold in folds])}
    if len(folds) == 1:
        found |= {"train": count([folds[0][0].windows]), "val": count([folds[0][1].windows])}
    return {**found, "folds": len(folds), "left_out": folds[0][2].windows.left_out}
