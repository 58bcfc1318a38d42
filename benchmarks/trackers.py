"""`python -m benchmarks.trackers`: our linker beside public trackers, on real tracks.

Tracks are those of KITTI (`kitti_tracking/label_02` below ROADAWARE_DATA_DIR, 10 frames a second). Detections
are synthetic: every box is found with an error, missed at random or in bursts, and false boxes are added; see
`Noise`. The public trackers are those of the package `trackers`; without it they are left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.linking.postprocessing import interpolate_tubes
from roadaware.metrics.tracking import TrackCounts, track_counts, track_rates
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KINDS = ("Car", "Van", "Truck", "Pedestrian", "Person", "Cyclist", "Tram", "Misc")
WIDTH, HEIGHT, RATE = 1242, 375, 10.0
TUNING = tuple(f"{number:04d}" for number in range(9))
"""Drives that settings are chosen on; the others are judged."""


@dataclass(frozen=True)
class Noise:
    """How badly boxes are found.

    Args:
        missed: share of the boxes that are missed, each by chance.
        bursts: chance in each frame that a box is missed from there on for 2 to 7 frames.
        jitter: standard deviation of each side of a box, as a share of its width or height.
        false: boxes a frame where nothing is (Poisson), of the sizes of true ones.
        true_score: a and b of the beta distribution of the scores of true boxes: mean 0.75, 5 % below 0.48.
        false_score: the same of false boxes: mean 0.4, and 5 % above 0.71. (1, 0) is a score of 1 for both.
        confused: share of the boxes whose class scores are highest for another class.
        classes: whether boxes have class scores.
        rate: frames a second; tracks are interpolated or thinned out.
    """

    missed: float = 0.0
    bursts: float = 0.0
    jitter: float = 0.04
    false: float = 0.6
    true_score: tuple[float, float] = (6.0, 2.0)
    false_score: tuple[float, float] = (4.0, 6.0)
    confused: float = 0.1
    classes: bool = True
    rate: float = RATE


NOISES = {
    "A": Noise(missed=0.15),
    "B": Noise(bursts=0.04),
}
OTHERS = {
    "8 % jitter": Noise(missed=0.15, jitter=0.08),
    "no classes": Noise(missed=0.15, classes=False),
    "equal scores": Noise(missed=0.15, true_score=(1, 0), false_score=(1, 0)),
    "2 frames/s": Noise(missed=0.15, rate=2.0),
    "5 frames/s": Noise(missed=0.15, rate=5.0),
    "25 frames/s": Noise(bursts=0.04, rate=25.0),
    "3 false a frame": Noise(missed=0.15, false=3.0),
    "40 % missed": Noise(missed=0.4),
}


@dataclass(frozen=True, eq=False)
class Drive:
    """True boxes of a drive by frame: (n,) frame, track and class, (n, 4) boxes in pixels."""

    frames: int
    frame: Ints
    track: Ints
    kind: Ints
    boxes: Floats


@dataclass(frozen=True, eq=False)
class Found:
    """Detections of a drive by frame: (n,) frame and score, (n, 4) boxes, (n, classes) scores."""

    frames: int
    rate: float
    frame: Ints
    boxes: Floats
    score: Floats
    scores: npt.NDArray[np.float32]


def read_drives(folder: Path, rate: float = RATE) -> dict[str, Drive]:
    """The drives of a folder of KITTI's tracking labels at a rate of frames, without what nobody labelled."""
    drives = {}
    for file in sorted(folder.glob("*.txt")):
        rows = [line.split() for line in file.read_text().splitlines()]
        frames = 1 + max(int(row[0]) for row in rows)
        rows = [row for row in rows if row[2] in KINDS]
        drive = Drive(
            frames,
            np.array([int(row[0]) for row in rows]),
            np.array([int(row[1]) for row in rows]),
            np.array([KINDS.index(row[2]) for row in rows]),
            np.array([[float(value) for value in row[6:10]] for row in rows]),
        )
        drives[file.stem] = drive if rate == RATE else _resampled(drive, rate)
    return drives


def _resampled(drive: Drive, rate: float) -> Drive:
    """The drive at another rate; tracks are linear between two frames in which they are labelled."""
    parts = []
    for track in np.unique(drive.track):
        own = np.flatnonzero(drive.track == track)
        own = own[np.argsort(drive.frame[own])]
        at = drive.frame[own]
        new = np.arange(np.ceil(at[0] * rate / RATE), at[-1] * rate / RATE + 1e-9)
        when = new * RATE / rate
        after = np.searchsorted(at, when - 1e-9).clip(1 if len(at) > 1 else 0, len(at) - 1)
        before = np.maximum(after - 1, 0)
        held = (at[after] - at[before] <= 1) | (np.abs(at[after] - when) < 1e-9)
        sides = [np.interp(when, at, side) for side in drive.boxes[own].T]
        row = np.column_stack([new, np.full(len(new), track), np.full(len(new), drive.kind[own[0]]), *sides])
        parts.append(row[held])
    rows = np.concatenate(parts)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    frame, track, kind = rows[:, :3].astype(np.int64).T
    return Drive(int(np.ceil(drive.frames * rate / RATE)), frame, track, kind, rows[:, 3:])


def detect(drive: Drive, noise: Noise, rng: np.random.Generator) -> Found:
    """The drive as a detector with such errors sees it."""
    kept = rng.random(len(drive.frame)) >= noise.missed
    if noise.bursts:
        for track in np.unique(drive.track):
            own = np.flatnonzero(drive.track == track)
            begins = np.flatnonzero(rng.random(len(own)) < noise.bursts)
            for begin in begins:
                kept[own[begin : begin + rng.integers(2, 8)]] = False
    rows = np.flatnonzero(kept)
    n_false = rng.poisson(noise.false * drive.frames)
    false_frame = rng.integers(0, drive.frames, n_false)
    like = drive.boxes[rng.integers(0, len(drive.boxes), n_false)]
    size = (like[:, 2:] - like[:, :2]) * rng.uniform(0.7, 1.4, (n_false, 1))
    centre = np.column_stack(
        [rng.uniform(0, WIDTH, n_false), rng.uniform(0.3 * HEIGHT, 0.9 * HEIGHT, n_false)]
    )
    sides = np.tile(drive.boxes[rows, 2:] - drive.boxes[rows, :2], 2)
    true = drive.boxes[rows] + rng.normal(0, 1, (len(rows), 4)) * noise.jitter * sides
    boxes = np.concatenate([true, np.column_stack([centre - size / 2, centre + size / 2])])
    boxes = np.column_stack([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])])
    frame = np.concatenate([drive.frame[rows], false_frame])
    score = np.concatenate([_beta(rng, noise.true_score, len(rows)), _beta(rng, noise.false_score, n_false)])
    kind = np.concatenate([drive.kind[rows], rng.integers(0, len(KINDS), n_false)])
    wrong = rng.random(len(kind)) < noise.confused
    kind = np.where(wrong, rng.integers(0, len(KINDS), len(kind)), kind)
    scores = rng.uniform(0, 0.15, (len(kind), len(KINDS)))
    scores[np.arange(len(kind)), kind] = rng.uniform(0.5, 1.0, len(kind))
    scores *= score[:, None]
    order = np.lexsort((-score, frame))
    width = len(KINDS) if noise.classes else 0
    dense = scores[order, :width].astype(np.float32)
    return Found(drive.frames, noise.rate, frame[order], boxes[order], score[order], dense)


def _beta(rng: np.random.Generator, shape: tuple[float, float], n: int) -> Floats:
    return rng.beta(*shape, n) if shape[1] else np.ones(n)


Sets = dict[str, tuple[Drive, Found]]


def make_sets(folder: Path, noise: Noise, names: Sequence[str], seeds: Iterable[int]) -> Sets:
    """Drives and their detections, one video for each drive and seed."""
    drives = read_drives(folder, noise.rate)
    return {
        f"{name}.{seed}": (
            drives[name],
            detect(drives[name], noise, np.random.default_rng([seed, int(name)])),
        )
        for seed in seeds
        for name in names
        if name in drives
    }


def truth_tables(sets: Sets) -> Scenes:
    """The true tracks of all videos."""
    tubes, boxes = [], []
    for v, (video, (drive, _)) in enumerate(sets.items()):
        numbers = drive.track + 100_000 * v
        boxes.append(_boxes_table(video, drive.frame, drive.boxes, numbers))
        tubes.append(pl.DataFrame({"tube": np.unique(numbers)}).with_columns(video=pl.lit(video)))
    table = pl.concat(boxes).with_columns(box=pl.int_range(pl.len()))
    frames = pl.concat(
        pl.DataFrame({"frame": np.arange(drive.frames)}).with_columns(video=pl.lit(video))
        for video, (drive, _) in sets.items()
    )
    return Scenes(videos=_videos(sets), frames=frames, boxes=table, tubes=pl.concat(tubes))


def _videos(sets: Sets) -> pl.DataFrame:
    return pl.DataFrame({"video": list(sets)}).with_columns(
        width_px=pl.lit(WIDTH),
        height_px=pl.lit(HEIGHT),
        n_frames=pl.Series([d.frames for d, _ in sets.values()]),
    )


def _boxes_table(video: str, frame: Ints, corners: Floats, tube: Ints) -> pl.DataFrame:
    sides = {name: corners[:, i] for i, name in enumerate(CORNERS)}
    return pl.DataFrame({"frame": frame, **sides, "tube": tube}).with_columns(video=pl.lit(video))


def detections_table(sets: Sets) -> Predictions:
    """The detections of all videos, as `link` takes them."""
    parts, frames = [], []
    width = next(iter(sets.values()))[1].scores.shape[1]
    for video, (_, found) in sets.items():
        part = _boxes_table(video, found.frame, found.boxes, np.full(len(found.frame), -1)).drop("tube")
        part = part.with_columns(score=pl.Series(found.score))
        if width:
            part = part.with_columns(scores=pl.Series(found.scores, dtype=pl.Array(pl.Float32, width)))
        parts.append(part)
        at = np.arange(found.frames)
        frames.append(pl.DataFrame({"frame": at, "t_s": at / found.rate}).with_columns(video=pl.lit(video)))
    meta = Meta(vocabularies={"agent": KINDS} if width else {})
    meta = set_score_layout(meta, "boxes", ["agent"]) if width else meta
    table = pl.concat(parts).with_columns(box=pl.int_range(pl.len()))
    return Predictions(videos=_videos(sets), frames=pl.concat(frames), boxes=table, meta=meta)


def link_with_ours(sets: Sets, config: LinkerConfig) -> Predictions:
    """The paths that `link` makes of the detections."""
    return link(detections_table(sets), config)


def link_with_public(sets: Sets, make: Callable[[], Any]) -> Predictions:
    """The paths of a tracker of the package `trackers`; boxes that it gives no number are left out."""
    import supervision as sv

    parts, first = [], 0
    for video, (_, found) in sets.items():
        tracker, ids = make(), np.full(len(found.frame), -1)
        ends = np.searchsorted(found.frame, np.arange(found.frames + 1))
        for start, end in itertools.pairwise(ends.tolist()):
            confidence, kind = found.score[start:end], np.zeros(end - start, int)
            given = sv.Detections(
                xyxy=found.boxes[start:end],
                confidence=confidence,
                class_id=kind,
                data={"row": np.arange(start, end)},
            )
            out = tracker.update(given)
            ids[out.data["row"].astype(int) if len(out) else np.empty(0, int)] = out.tracker_id
        held = ids >= 0
        parts.append(_boxes_table(video, found.frame[held], found.boxes[held], ids[held] + first))
        first += int(ids.max(initial=0)) + 1
    boxes = pl.concat(parts).with_columns(box=pl.int_range(pl.len()))
    tubes = boxes.select("tube", "video").unique().sort("tube")
    return Predictions(videos=_videos(sets), boxes=boxes, tubes=tubes)


def _filled(sets: Sets, make: Callable[[], Any]) -> Predictions:
    """The same with boxes put into the gaps of their paths, as ours has them."""
    return interpolate_tubes(link_with_public(sets, make))


def public_trackers() -> dict[str, Callable[..., Any]]:
    """The trackers of the package `trackers` by name; without images BoT-SORT compensates no camera."""
    from trackers import BoTSORTTracker, ByteTrackTracker, OCSORTTracker, SORTTracker

    def botsort(**settings: Any) -> Any:
        return BoTSORTTracker(enable_cmc=False, **settings)

    return {"SORT": SORTTracker, "ByteTrack": ByteTrackTracker, "OC-SORT": OCSORTTracker, "BoT-SORT": botsort}


TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "A": {
        "SORT": {
            "lost_track_buffer": 10,
            "track_activation_threshold": 0.25,
            "minimum_consecutive_frames": 1,
            "minimum_iou_threshold": 0.2,
        },
        "ByteTrack": {
            "lost_track_buffer": 30,
            "track_activation_threshold": 0.2,
            "minimum_consecutive_frames": 1,
            "minimum_iou_threshold": 0.2,
            "high_conf_det_threshold": 0.2,
        },
        "OC-SORT": {
            "lost_track_buffer": 30,
            "minimum_iou_threshold": 0.3,
            "minimum_consecutive_frames": 1,
            "high_conf_det_threshold": 0.2,
            "direction_consistency_weight": 0.2,
        },
        "BoT-SORT": {
            "lost_track_buffer": 30,
            "track_activation_threshold": 0.2,
            "minimum_consecutive_frames": 1,
            "minimum_iou_threshold_first_assoc": 0.1,
            "minimum_iou_threshold_second_assoc": 0.3,
            "high_conf_det_threshold": 0.4,
        },
    },
    "B": {
        "SORT": {
            "lost_track_buffer": 30,
            "track_activation_threshold": 0.25,
            "minimum_consecutive_frames": 2,
            "minimum_iou_threshold": 0.2,
        },
        "ByteTrack": {
            "lost_track_buffer": 30,
            "track_activation_threshold": 0.2,
            "minimum_consecutive_frames": 2,
            "minimum_iou_threshold": 0.2,
            "high_conf_det_threshold": 0.2,
        },
        "OC-SORT": {
            "lost_track_buffer": 30,
            "minimum_iou_threshold": 0.3,
            "minimum_consecutive_frames": 1,
            "high_conf_det_threshold": 0.2,
            "direction_consistency_weight": 0.0,
        },
        "BoT-SORT": {
            "lost_track_buffer": 30,
            "track_activation_threshold": 0.2,
            "minimum_consecutive_frames": 2,
            "minimum_iou_threshold_first_assoc": 0.1,
            "minimum_iou_threshold_second_assoc": 0.3,
            "high_conf_det_threshold": 0.2,
        },
    },
}
"""The best of a grid for each noise, on drives 0 to 6 with a seed that is not judged; see `GRID`."""
GRID: dict[str, tuple[Any, ...]] = {
    "lost_track_buffer": (10, 30, 60),
    "track_activation_threshold": (0.1, 0.2, 0.25, 0.5),
    "minimum_consecutive_frames": (1, 2, 3),
    "minimum_iou_threshold": (0.1, 0.2, 0.3),
    "minimum_iou_threshold_first_assoc": (0.1, 0.2),
    "minimum_iou_threshold_second_assoc": (0.3, 0.5),
    "high_conf_det_threshold": (0.2, 0.4),
    "direction_consistency_weight": (0.0, 0.2),
}
FORMER = LinkerConfig(
    begin_score=0.0,
    begin_iou=1.0,
    min_iou=0.5,
    jump_gap_s=0.0,
    cost="score",
    assignment="greedy",
    motion="time",
    min_path_len=6,
    min_path_score=0.1,
)
"""The former default: the published method with its faults corrected."""
ABLATION = {
    "speed of the last five detections, no filter": {"motion": "time", "assignment": "hungarian"},
    "no motion": {"motion": "none", "assignment": "hungarian"},
    "no second turn": {"assignment": "hungarian"},
    "in turn, not all at once": {"assignment": "greedy"},
    "overlap alone": {"cost": "iou"},
    "0.4 s instead of 1.5 s": {"jump_gap_s": 0.0},
    "short paths kept": {"min_path_len": 6, "min_path_score": 0.1},
    "doubles begin paths": {"begin_iou": 1.0},
    "gaps kept": {"gaps": "keep"},
}


def tune(sets: Sets, name: str, make: Callable[..., Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the highest HOTA: one after the other is moved along `GRID`, twice."""
    truth, best = truth_tables(sets), dict(start)

    def value(settings: Mapping[str, Any]) -> float:
        made = link_with_public(sets, lambda: make(frame_rate=RATE, **settings))
        return float(track_rates(track_counts(made, truth))["hota"])

    most = value(best)
    for field in [*start, *start]:
        for choice in GRID[field]:
            found = value({**best, field: choice})
            if found > most:
                most, best = found, {**best, field: choice}
    print(f"{name}: {100 * most:.1f} with {best}", flush=True)
    return best


def score(counts: TrackCounts, drives: Sequence[str], seeds: int) -> str:
    """HOTA, IDF1 and switches (in one pass over the drives) as cells of a table."""
    weights = np.array([float(video.split(".")[0] in drives) for video in counts.videos])
    rates = {name: float(value) for name, value in track_rates(counts, weights).items()}
    return f"{100 * rates['hota']:.1f} / {100 * rates['idf1']:.1f} / {rates['switches'] / seeds:.0f}"


def main() -> int:
    """Print HOTA / IDF1 / switches of ours and of the public trackers, on held-out and on all drives."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trackers", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("ROADAWARE_DATA_DIR"))
    parser.add_argument("--seeds", type=int, default=2, help="detections are made so often")
    parser.add_argument("--noise", nargs="+", default=["A", "B"], choices=[*NOISES, *OTHERS])
    parser.add_argument("--ablation", action="store_true", help="ours without one part at a time")
    parser.add_argument(
        "--tune", action="store_true", help="search the settings of the public trackers again"
    )
    options = parser.parse_args()
    folder = Path(options.data or ".") / "kitti_tracking" / "label_02"
    names = sorted(file.stem for file in folder.glob("*.txt"))
    if not names:
        print(
            f"expected KITTI's tracking labels in {folder}; set ROADAWARE_DATA_DIR or --data", file=sys.stderr
        )
        return 2
    try:
        public = public_trackers()
    except ImportError as error:
        print(f"public trackers are left out: {error}; pip install trackers", file=sys.stderr)
        public = {}
    held = [name for name in names if name not in TUNING]
    print("| noise | tracker | held-out drives: HOTA / IDF1 / switches | all drives |\n|---|---|---|---|")
    for noise in options.noise:
        sets = make_sets(folder, {**NOISES, **OTHERS}[noise], names, range(options.seeds))
        truth, near = truth_tables(sets), "B" if "burst" in noise or noise == "B" else "A"
        tuned = TUNED[near]
        if options.tune:
            own = make_sets(folder, {**NOISES, **OTHERS}[noise], TUNING[:7], [101])
            tuned = {name: tune(own, name, make, tuned[name]) for name, make in public.items()}
        made: dict[str, Callable[[Sets], Predictions]] = {}
        for name, config in _ours(ablation=options.ablation).items():
            made[name] = partial(link_with_ours, config=config)
        for name, make in {} if options.ablation else public.items():
            made[f"{name}, defaults"] = partial(link_with_public, make=make)
            best = partial(make, frame_rate=RATE, **tuned[name])
            made[f"{name}, tuned"] = partial(link_with_public, make=best)
            made[f"{name}, tuned, gaps filled"] = partial(_filled, make=best)
        for name, run in made.items():
            counts = track_counts(run(sets), truth)
            cells = [score(counts, drives, options.seeds) for drives in (held, names)]
            print(f"| {noise} | {name} | {cells[0]} | {cells[1]} |", flush=True)
    return 0


def _ours(*, ablation: bool) -> dict[str, LinkerConfig]:
    """The configs of the linker that are judged, by name."""
    default = LinkerConfig.default()
    if ablation:
        parts = {name: replace(default, **fields) for name, fields in ABLATION.items()}  # type: ignore[arg-type]
        return {"`default()`": default, **parts}
    return {"`default()`": default, "former default": FORMER, "`reference()`": LinkerConfig.reference()}


if __name__ == "__main__":
    sys.exit(main())
