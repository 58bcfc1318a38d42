"""Domains that the event head or a detector's heads learn in and are tested in: simulated towns, or saved tables; and
accuracy there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints, Pixels
from roadaware.errors import InputError, UsageError
from roadaware.io.files import make_temporary_path
from roadaware.io.folders import make_folder, read_marker
from roadaware.models.event_head.head import open_head
from roadaware.scenes.tables import Scenes
from roadaware.simulator.config import SceneConfig, adapt_scene_config, build_scene_config
from roadaware.simulator.make import make_episode
from roadaware.statistics.classification import Ranking
from roadaware.statistics.intervals import Interval, Scale, Units
from roadaware.training.events.detector_heads import (
    SPREAD,
    DetectorHeads,
    SeenScene,
    list_annotated,
    render_images,
    see_scene,
)
from roadaware.training.events.online import Start
from roadaware.training.events.rows import (
    AV_LABELS,
    LABELS,
    DetectorErrors,
    MotionNoise,
    TubeRows,
    join_tube_rows,
    make_tube_rows,
    read_table_truths,
)
from roadaware.training.events.scenes import (
    SceneTruth,
    build_scene,
    draw_config,
    load_truth,
    read_truth,
    save_truth,
)

Progress = Callable[[int, int, str], None]

SCENE_S = 12.0
"""Length of a simulated scene."""
TRAIN_SEED, TEST_SEED = 211, 977
"""Of simulated scenes: towns of the test are none of those that are learnt."""
_TRAIN_ERRORS, _TEST_ERRORS = 1, 2
"""Of the errors of detectors."""
TEST_EVERY = 4
"""Every so many-th frame of a test scene is judged."""
DETECTOR_TRAIN_S, DETECTOR_TEST_S = 3.0, 2.0
"""Lengths of rendered scenes: an image costs a tenth of a second, a town little, and many short scenes differ more."""
RENDERED_PX = (320, 240)
"""Size of their images, as the bundled detector was trained on."""
FEWEST_SCENES = 2
"""Test scenes in which a label is true at least, or it is not judged: without one of them nothing would be left."""


@dataclass(frozen=True)
class Town:
    """A kind of simulated scenes.

    Args:
        name: in tables.
        about: what it is, in words.
        domain: of `simulator.config.DOMAINS`; None draws camera, town and behaviour for each scene.
        drive_on: side of the road; None for that of the domain.
        hidden: labels that nobody annotates here.
        errors: of the detector; None draws them for each scene.
        noise: of the estimate of the own motion.
    """

    name: str
    about: str
    domain: str | None = None
    drive_on: str | None = None
    hidden: tuple[str, ...] = ()
    errors: DetectorErrors | None = None
    noise: MotionNoise | None = None

    def build_config(self, seed: int, number: int) -> SceneConfig:
        """The configuration of a scene."""
        if self.domain is None:
            config = draw_config(seed, number, "usual")
        else:
            config = build_scene_config("road@1", self.domain)
        side: Any = self.drive_on or config.surroundings.drive_on
        surroundings = replace(config.surroundings, drive_on=side)
        return replace(config, seconds=SCENE_S, sound=False, surroundings=surroundings)


@dataclass(frozen=True, eq=False)
class Reading:
    """What a learner reads: scales of its features, and what it begins as.

    Args:
        mean, spread: (inputs,) of the features.
        start: the layer that it begins as; None for nothing learnt before.
    """

    mean: Floats32
    spread: Floats32
    start: Start | None = None


@dataclass(frozen=True, eq=False)
class EventDomain:
    """Scenes that are alike, to learn from and to be tested on.

    Args:
        name: in tables.
        about: what it is, in words.
        train, test: ground truth of their scenes; none is in both.
        labels: that are annotated, of `LABELS`.
        errors: of the detector; None draws them for each scene.
        noise: of the estimate of the own motion.
        pixels: whether there is such an estimate; None for three scenes of four.
        vehicle: whether the actions of the own vehicle are known.
        left_out: what was not taken of the tables, in words.
    """

    name: str
    about: str
    train: tuple[SceneTruth, ...]
    test: tuple[SceneTruth, ...]
    labels: tuple[str, ...]
    errors: DetectorErrors | None = None
    noise: MotionNoise | None = None
    pixels: bool | None = None
    vehicle: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Of all that is learnt from and tested on: states that learnt from other tables are not gone on from."""
        found = hashlib.blake2b(repr(self.labels).encode(), digest_size=8)
        for truth in (*self.train, *self.test):
            for each in fields(truth):
                value = getattr(truth, each.name)
                found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        return found.hexdigest()

    def read(self) -> tuple[Reading, Reading]:
        """Of boxes and of the own vehicle: scales of many simulated scenes, since a stream's own would move."""
        head = open_head()
        return Reading(head.tubes.mean, head.tubes.spread), Reading(head.drive.mean, head.drive.spread)

    def make_train_rows(
        self,
        first: int,
        *,
        every: int,
        rounds: int = 1,
        change: Callable[[SceneTruth], SceneTruth] | None = None,
    ) -> list[tuple[TubeRows, TubeRows]]:
        """The boxes of each training scene, and the own vehicle in its frames; see `make_tube_rows`.

        Args:
            first: number of the first scene in the stream.
            every: every so many-th frame.
            rounds: how often the scenes come, each time with other errors of the detector.
            change: what is done to each scene before, such as mirroring.
        """
        return self._make(self.train * rounds, first, _TRAIN_ERRORS, every, change)

    def make_test_rows(self, first: int = 0) -> tuple[TubeRows, TubeRows]:
        """The boxes that are judged, and the own vehicle in the frames that are, of all test scenes."""
        scenes = self._make(self.test, first, _TEST_ERRORS, TEST_EVERY, None)
        return (
            join_tube_rows([boxes for boxes, _ in scenes], self.labels),
            join_tube_rows([vehicle for _, vehicle in scenes], AV_LABELS),
        )

    def _make(
        self,
        scenes: Sequence[SceneTruth],
        first: int,
        seed: int,
        every: int,
        change: Callable[[SceneTruth], SceneTruth] | None,
    ) -> list[tuple[TubeRows, TubeRows]]:
        return [
            make_tube_rows(
                truth if change is None else change(truth), first + k, seed, self.labels,
                errors=self.errors, noise=self.noise, pixels=self.pixels, every=every,
            )
            for k, truth in enumerate(scenes)
        ]  # fmt: skip


def simulate_domains(
    towns: Sequence[Town], folder: Path, train: int, test: int, progress: Progress | None = None
) -> list[EventDomain]:
    """Towns with their scenes; those that stand in the folder are read, the others simulated.

    Args:
        towns: which.
        folder: of the scenes, a file each.
        train, test: scenes of each town.
        progress: called with scenes done, their number, and in words.
    """
    counts = {"train": (train, TRAIN_SEED), "test": (test, TEST_SEED)}
    total, done = len(towns) * (train + test), 0
    found = []
    for town in towns:
        held: dict[str, list[SceneTruth]] = {}
        for split, (count, seed) in counts.items():
            held[split] = []
            for number in range(count):
                path = folder / town.name / f"{split}-{number:04d}.npz"
                held[split].append(_simulate_scene(town, seed, number, path))
                done += 1
                if progress is not None:
                    progress(done, total, f"scenes of {town.name}")
        labels = tuple(label for label in LABELS if label not in town.hidden)
        found.append(
            EventDomain(
                town.name, town.about, tuple(held["train"]), tuple(held["test"]), labels, town.errors, town.noise, True, True
            )
        )  # fmt: skip
    return found


def _simulate_scene(town: Town, seed: int, number: int, path: Path) -> SceneTruth:
    if path.is_file():
        return load_truth(path)
    episode = make_episode(town.build_config(seed, number), seed, number)
    truth = read_truth(episode, build_scene(episode))
    make_folder(path.parent)
    # numpy writes to the path that it is given; under its own name the file is there whole.
    part = make_temporary_path(path)
    save_truth(truth, part.with_name(f"{part.name}.npz"))
    part.with_name(f"{part.name}.npz").replace(path)
    return truth


@dataclass(frozen=True, eq=False)
class DetectorDomain:
    """Rendered scenes that are alike, as the last layers of a detector's heads see them.

    Args:
        name: in tables.
        about: what it is, in words.
        train, test: what was seen of their scenes; none is in both.
        labels: that are annotated, of those of the detector.
        known: labels that the detector is taken to know at first.
        heads: of the detector.
        town: whose scenes they are.
    """

    name: str
    about: str
    train: tuple[SeenScene, ...]
    test: tuple[SeenScene, ...]
    labels: tuple[str, ...]
    known: tuple[str, ...]
    heads: DetectorHeads
    town: Town
    vehicle: bool = True
    left_out: tuple[str, ...] = ()

    def read(self) -> tuple[Reading, Reading]:
        """Of boxes and of the own vehicle: the detector's own last layers, over what these see."""
        boxes, vehicle = (
            Reading(
                np.zeros(len(start.weight), np.float32), np.full(len(start.weight), SPREAD, np.float32), start
            )
            for start in self.heads.build_starts(self.known)
        )
        return boxes, vehicle

    def make_train_rows(self, first: int, *, every: int, rounds: int = 1) -> list[tuple[TubeRows, TubeRows]]:
        """As of `EventDomain`; a scene that comes again is the same."""
        return self._make(self.train * rounds, first, every)

    def make_test_rows(self, first: int = 0) -> tuple[TubeRows, TubeRows]:
        """As of `EventDomain`."""
        boxes, vehicle = zip(*self._make(self.test, first, TEST_EVERY), strict=True)
        return join_tube_rows(list(boxes)), join_tube_rows(list(vehicle))

    def _make(self, scenes: Sequence[SeenScene], first: int, every: int) -> list[tuple[TubeRows, TubeRows]]:
        columns = self.heads.choose_columns(self.known)
        return [
            scene.make_rows(first + k, every, self.labels, columns, self.heads.labels)
            for k, scene in enumerate(scenes)
        ]


def render_domains(
    towns: Sequence[Town], folder: Path, train: int, test: int, every: int, progress: Progress | None = None
) -> list[DetectorDomain]:
    """Towns with rendered scenes, as the bundled detector sees them; scenes that stand in the folder are read.

    What the first town does not annotate, the detector is not taken to know.

    Args:
        towns: which.
        folder: of what is seen of the scenes, a file each.
        train, test: scenes of each town.
        every: every so many-th frame of those that are learnt from is kept, and of the others those that are judged.
        progress: called with scenes done, their number, and in words.

    Raises:
        UsageError: if a file in the folder is of another detector.
    """
    heads = DetectorHeads()
    splits = {
        "train": (train, TRAIN_SEED, DETECTOR_TRAIN_S, every), "test": (test, TEST_SEED, DETECTOR_TEST_S, TEST_EVERY),
    }  # fmt: skip
    total, done = len(towns) * (train + test), 0
    known = list_annotated(heads.labels, towns[0].hidden)
    found = []
    for town in towns:
        held: dict[str, list[SeenScene]] = {"train": [], "test": []}
        for split, (count, seed, seconds, step) in splits.items():
            for number in range(count):
                path = folder / town.name / f"{split}-{number:04d}.npz"
                if not path.is_file():
                    images, scenes, av = render_town(town, seed, number, seconds)
                    make_folder(path.parent)
                    see_scene(heads, images, scenes, av, step).save(path)
                seen = SeenScene.load(path)
                if seen.digest != heads.digest:
                    raise UsageError(f"{path} was seen by another detector; name another folder")
                held[split].append(seen)
                done += 1
                if progress is not None:
                    progress(done, total, f"scenes of {town.name}")
        labels = list_annotated(heads.labels, town.hidden)
        found.append(
            DetectorDomain(
                town.name, town.about, tuple(held["train"]), tuple(held["test"]), labels, known, heads, town
            )
        )  # fmt: skip
    return found


def render_town(town: Town, seed: int, number: int, seconds: float) -> tuple[list[Pixels], Scenes, Ints]:
    """The images of a scene, its ground truth, and what the own vehicle does in each frame.

    Args:
        town: whose scene it is.
        seed: of the set.
        number: of the scene.
        seconds: length.
    """
    config = adapt_scene_config(town.build_config(seed, number), seconds=seconds, size=RENDERED_PX)
    episode = make_episode(config, seed, number)
    return *render_images(episode), episode.ego.action.astype(np.int64)


def build_table_domain(name: str, scenes: Scenes, *, hidden: Iterable[str] = ()) -> EventDomain:
    """A domain of tables, such as those of ROAD and ROAD-Waymo.

    What is learnt from are the videos of the splits whose names begin with `train`, tested are those of `val` and
    `test` that are in none of these (`train_1` and `val_1` of ROAD's three folds); where videos name no splits, every
    fourth video by name is tested.

    Args:
        name: in tables.
        scenes: with boxes, tubes and labels.
        hidden: labels that are taken as not annotated.

    Raises:
        InputError: if there is nothing to learn from, or nothing to test.
    """
    train, test = split_videos(scenes)
    for videos, what in ((train, "learn from"), (test, "test on")):
        if not videos:
            raise InputError(
                f"{name} has no videos to {what}: of {len(scenes.videos)} videos {len(train)} are of a split train, "
                f"{len(test)} others of val or test"
            )
    read = read_table_truths(scenes, [*train, *test], name)
    labels = tuple(label for label in read.labels if label not in set(hidden))
    parts = {"learn from": read.scenes[: len(train)], "test on": read.scenes[len(train) :]}
    for what, truths in parts.items():
        if not any(truth.action.any() or (truth.location >= 0).any() for truth in truths):
            raise InputError(
                f"{name} has no box with an action or location to {what}; leave it out, or name another folder"
            )
    left_out = [f"{count:,} boxes: {why}" for why, count in read.passed.items()]
    if read.unknown:
        left_out.append(f"labels that the head does not know: {', '.join(read.unknown)}")
    about = f"{scenes.meta.dataset or 'tables'}, {len(train)} and {len(test)} videos"
    return EventDomain(
        name, about, parts["learn from"], parts["test on"], labels, pixels=False, left_out=tuple(left_out)
    )


def split_videos(scenes: Scenes) -> tuple[list[str], list[str]]:
    """Videos to learn from, and to test on; see `build_table_domain`."""
    names = sorted(str(name) for name in scenes.videos["video"])
    splits: dict[str, list[str]] = {}
    if "splits" in scenes.videos.columns:
        splits = {
            str(video): [str(each).rpartition("/")[2] for each in held or ()]
            for video, held in scenes.videos.select("video", "splits").iter_rows()
        }
    if not any(splits.values()):
        return [n for k, n in enumerate(names) if k % 4 != 3], [n for k, n in enumerate(names) if k % 4 == 3]
    folds = any(each.startswith("train_") for held in splits.values() for each in held)
    wanted = ("train_1",) if folds else ("train",)
    train = [name for name in names if set(splits[name]) & set(wanted)]
    tested = {"val_1", "val", "test"}
    return train, [name for name in names if set(splits[name]) & tested and name not in set(train)]


def check_settings(path: Path, form: str, settings: Mapping[str, Any]) -> None:
    """Refuse a folder whose study has other settings.

    Args:
        path: of its marker.
        form: its format.
        settings: of the study that is asked for.

    Raises:
        UsageError: naming what differs.
    """
    found = read_marker(path, form)
    if found is None:
        return
    held = found.get("settings", {})
    for name, value in settings.items():
        if held.get(name) != value:
            raise UsageError(
                f"{path.parent} holds a study with {name.replace('_', ' ')} {held.get(name)}, and {value} is asked for; "
                "name another folder, or ask for what it holds"
            )


# Accuracy: mean average precision of labels over boxes, under many weightings of test scenes at once.


@dataclass(frozen=True, eq=False)
class JudgedBoxes:
    """The boxes of a domain that are judged.

    Args:
        rows: without parked vehicles.
        scene: (n,) place of each among all scenes that intervals are over.
        judged: labels that are true in `FEWEST_SCENES` scenes or more.
        passed: the others that are annotated.
    """

    rows: TubeRows
    scene: Ints
    judged: tuple[str, ...]
    passed: tuple[str, ...]

    @classmethod
    def build(cls, rows: TubeRows, first: int) -> JudgedBoxes:
        """The test set of the rows of a domain.

        Args:
            rows: of all its test scenes.
            first: number of its first scene; scenes are numbered on from there.
        """
        names = ("x", "truth", "weight", "judged", "tube", "scene")
        kept = TubeRows(rows.labels, **{name: getattr(rows, name)[rows.judged] for name in names})
        judged: list[str] = []
        passed: list[str] = []
        for k, label in enumerate(kept.labels):
            held = len(np.unique(kept.scene[kept.truth[:, k]]))
            (judged if held >= FEWEST_SCENES else passed).append(label)
        return cls(kept, kept.scene - first, tuple(judged), tuple(passed))

    def measure(self, scores: Floats32, weights: Ints, first: int) -> Floats:
        """(weightings,) mean over the judged labels of the average precision of scores; NaN where there is none.

        Args:
            scores: (n, judged) of the labels that are judged.
            weights: (weightings, all scenes) how often each counts.
            first: place of the domain's first scene among all scenes.
        """
        count = int(self.scene.max()) + 1 if len(self.scene) else 0
        own, back = np.unique(weights[:, first : first + count], axis=0, return_inverse=True)
        values = [
            Ranking.of(
                self.rows.truth[:, self.rows.labels.index(label)], scores[:, k].astype(np.float64)
            ).areas(own.astype(np.int32), self.scene)[0]
            for k, label in enumerate(self.judged)
        ]
        if not values:
            return np.full(len(weights), np.nan)
        return np.asarray(np.mean(values, axis=0)[back.reshape(-1)])


@dataclass(frozen=True)
class Measured:
    """A number, the mean over seeds, with its 95 % interval over test scenes.

    Args:
        value: None where it is not defined.
        low, high: ends; None where there is no interval.
        caution: why the interval is to be taken with caution.
        seeds: the number of each seed.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    caution: str | None = None
    seeds: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Floats, units: Units | None, scale: Scale) -> Measured:
        """Measured of what came out under each weighting.

        Args:
            values: (seeds, 1 + weightings) the number of all scenes first.
            units: whose weightings they are; None for no interval.
            scale: what kind of number it is.
        """
        mean = values.mean(axis=0)
        whole = float(mean[0])
        if np.isnan(whole):
            return cls(None)
        found = Interval(None, None, 0, 0) if units is None else units.interval(whole, mean[1:], scale)
        return cls(whole, found.low, found.high, found.caution, tuple(float(each) for each in values[:, 0]))

    @property
    def is_above_zero(self) -> bool:
        """Whether its whole interval is."""
        return self.low is not None and self.low > 0

    @property
    def is_below_zero(self) -> bool:
        """Whether its whole interval is."""
        return self.high is not None and self.high < 0


def build_weights(scenes: int, resamples: int) -> tuple[Ints, Units | None]:
    """(1 + weightings, scenes) how often each scene counts, all once first, and their units; None without `resamples`."""
    units = Units(scenes, resamples, 0) if resamples and scenes > 1 else None
    ones = np.ones((1, scenes), np.int64)
    if units is None:
        return ones, None
    return np.concatenate([ones, *(each.astype(np.int64) for each in units.weights())]), units
