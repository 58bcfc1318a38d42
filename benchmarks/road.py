"""Road events: linking and evaluation at the size of the real sets, each beside its plain way."""

from __future__ import annotations

import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.measure import call, python
from roadaware.datasets import read
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.demo_data.road import ROAD_SHAPED, generate_road_scenes
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.linking.linker import Linker
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.metrics.detection.matches import compute_average_precisions, match_frames, match_tubes
from roadaware.scenes.tables import Predictions, Scenes

_REFERENCE = DetectionConfig.reference()
_TEN = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))


def road_frames() -> tuple[str, str, str]:
    """A ROAD-shaped set: frame-mAP of agentness and five kinds."""
    scenes, predictions = _road()
    found = call(lambda: _frame_ap(predictions, scenes, (0.5,)), times=3)
    got = f"{found.seconds:.2f} s ({_size(scenes, predictions)})"
    return "ROAD-shaped: frame-mAP of all kinds at 0.5", "2 s", got


def road_link() -> tuple[str, str, str]:
    """A ROAD-shaped set: paths and labelled tubes as the published builder makes them."""
    _, predictions = _road()
    link(predictions, LinkerConfig.reference())
    found = call(lambda: link(predictions, LinkerConfig.reference()), times=3)
    mended = call(lambda: link(predictions, LinkerConfig.default()), times=3)
    linked = link(predictions, LinkerConfig.reference())
    got = f"{found.seconds:.2f} s for {len(linked.tubes):,} tubes (default: {mended.seconds:.2f} s)"
    return "ROAD-shaped: link and label, reference", "1 s", got


def road_videos() -> tuple[str, str, str]:
    """A ROAD-shaped set: video-mAP of all kinds from 4 thresholds and the mean of ten."""
    scenes, predictions = _road()
    linked = link(predictions, LinkerConfig.reference())
    levels = (0.2, 0.5, 0.75, *_TEN)
    match_tubes(linked, scenes, _REFERENCE, levels)
    found = call(lambda: _video_ap(linked, scenes, levels), times=3)
    return "ROAD-shaped: video-mAP at .2, .5, .75, .5:.95", "–", f"{found.seconds:.2f} s"


def road_bootstrap() -> tuple[str, str, str]:
    """A ROAD-sized set: 1,000 resamples of videos for frame- and video-mAP of all kinds."""
    scenes = generate_road_scenes(videos=18, frames=950, boxes_per_frame=6.0, seed=0)
    predictions = link(simulate_detections(scenes, seed=0), LinkerConfig.default())
    once = call(lambda: evaluate(predictions, scenes, DetectionConfig.default()), times=2)
    drawn = call(lambda: evaluate(predictions, scenes, DetectionConfig.default(), resamples=1000), times=1)
    got = f"{drawn.seconds - once.seconds:.1f} s beside {once.seconds:.1f} s without ({_size(scenes, predictions)})"
    return "ROAD-sized: 1,000 resamples over videos, boxes and tubes", "20 s", got


def linker_speed() -> tuple[str, str, str]:
    """Ten detections a frame: frames per second of the batch, and of one update after another."""
    boxes, score = _moving(10, 20_000)
    predictions = _predictions(boxes, score)
    config = LinkerConfig.default()
    link(predictions, config)
    batch = call(lambda: link(predictions, config), times=3)
    frames = len(boxes)
    updates = _updates(boxes[:4000], score[:4000], config)
    got = f"{frames / batch.seconds:,.0f} frames/s (one update after another {1 / updates.mean():,.0f})"
    return "link 10 detections a frame", "20,000 frames/s", got


def linker_latency() -> tuple[str, str, str]:
    """A hundred detections on a hundred live tubes: the slowest of a hundred updates."""
    boxes, score = _moving(100, 3000)
    spent = _updates(boxes, score, LinkerConfig.default())[200:]
    got = f"{np.percentile(spent, 99) * 1e3:.2f} ms (median {np.median(spent) * 1e3:.2f} ms)"
    return "one update, 100 detections, 100 live tubes, p99", "1 ms", got


def linker_plain() -> tuple[str, str, str]:
    """The same builder in plain Python, which is the oracle of the tests."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "linking"))
    from plain_linker import PlainLinker  # type: ignore[import-not-found]

    boxes, score = _moving(10, 300)
    config = LinkerConfig.reference()

    def run() -> None:
        linker = PlainLinker(config)
        for frame in range(len(boxes)):
            linker.update(frame, boxes[frame], score[frame], np.zeros((10, 1)))
        linker.finish()

    plain = call(run, times=1)
    ours = call(lambda: link(_predictions(boxes, score), config), times=3)
    got = f"{len(boxes) / plain.seconds:,.0f} frames/s (ours on the same: {len(boxes) / ours.seconds:,.0f})"
    return "the same in plain Python", "–", got


def ucf24_frames(data: Path) -> tuple[str, str, str]:
    """UCF101-24 test: frame-mAP at one threshold and at ten, with actions of frames."""
    scenes, predictions = _ucf24(data)
    one = call(lambda: _frame_ap(predictions, scenes, (0.5,)), times=3)
    ten = call(lambda: _frame_ap(predictions, scenes, _TEN), times=2)
    got = f"{one.seconds:.2f} s, {ten.seconds:.2f} s ({_size(scenes, predictions)})"
    return "UCF101-24 test: frame-mAP at 0.5; at ten thresholds", "2 s; 5 s", got


def ucf24_videos(data: Path) -> tuple[str, str, str]:
    """UCF101-24 test: video-mAP at 0.2, 0.5, 0.75 and 0.5:0.95 together."""
    scenes, predictions = _ucf24(data)
    linked = link(predictions, LinkerConfig.reference("ucf24"))
    levels = (0.2, 0.5, 0.75, *_TEN)
    found = call(lambda: _video_ap(linked, scenes, levels), times=3)
    linking = call(lambda: link(predictions, LinkerConfig.reference("ucf24")), times=2)
    got = f"{found.seconds:.2f} s for {len(linked.tubes):,} tubes (linked in {linking.seconds:.1f} s)"
    return "UCF101-24 test: video-mAP at .2, .5, .75, .5:.95", "2 s", got


def ucf24_memory(data: Path) -> tuple[str, str, str]:
    """UCF101-24 test in a fresh process: reading, linking and everything evaluated."""
    code = """
import sys
from pathlib import Path
from benchmarks.road import _ucf24, _REFERENCE
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.evaluate import evaluate
scenes, predictions = _ucf24(Path(sys.argv[1]))
evaluate(link(predictions, LinkerConfig.reference("ucf24")), scenes, _REFERENCE)
"""
    cost = python(code, str(data))
    return (
        "UCF101-24 test, whole process: make detections, link, evaluate",
        "1.5 GB",
        f"{(cost.peak_mb or 0) / 1e3:.2f} GB, {cost.seconds:.1f} s",
    )


def ucf24_reading(data: Path) -> tuple[str, str, str]:
    """UCF101-24's annotations from their pickle, nothing kept."""
    found = call(lambda: read("ucf24", data / "ucf24", cache=False), times=2)
    return "read UCF101-24 (4,458 tubes)", "–", f"{found.seconds:.2f} s"


@cache
def _road() -> tuple[Scenes, Predictions]:
    scenes = generate_road_scenes(**ROAD_SHAPED)
    return scenes, simulate_detections(scenes, seed=0)


@cache
def _ucf24(data: Path) -> tuple[Scenes, Predictions]:
    scenes = read("ucf24", data / "ucf24", cache=False).split("test")
    return scenes, simulate_detections(scenes, seed=0, detector=Detector.ucf24())


def _frame_ap(predictions: Predictions, scenes: Scenes, levels: tuple[float, ...]) -> None:
    compute_average_precisions(match_frames(predictions, scenes, _REFERENCE, levels), _REFERENCE)


def _video_ap(predictions: Predictions, scenes: Scenes, levels: tuple[float, ...]) -> None:
    compute_average_precisions(match_tubes(predictions, scenes, _REFERENCE, levels), _REFERENCE)


def _size(scenes: Scenes, predictions: Predictions) -> str:
    return f"{len(scenes.frames):,} frames, {len(predictions.boxes):,} detections"


def _moving(detections: int, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """(frames, n, 4) boxes that move a little, none on another, and (frames, n) scores."""
    rng = np.random.default_rng(0)
    place = np.arange(detections)
    corner = np.stack([place % 10 * 60.0, place // 10 * 48.0], axis=1)
    corner = corner[None] + rng.normal(0, 1, (frames, detections, 2))
    boxes = np.concatenate([corner, corner + 40], axis=2)
    return boxes, rng.uniform(0.3, 0.9, (frames, detections))


def _predictions(boxes: np.ndarray, score: np.ndarray) -> Predictions:
    """The same as a table, without classes."""
    import polars as pl

    frames, n = score.shape
    corners = boxes.reshape(-1, 4)
    columns = {name: corners[:, i] for i, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))}
    table = pl.DataFrame(
        {
            "box": np.arange(frames * n),
            "video": pl.repeat("v", frames * n, eager=True),
            "frame": np.repeat(np.arange(frames), n),
            **columns,
            "score": score.ravel(),
        }
    )
    videos = pl.DataFrame({"video": ["v"], "width_px": [682], "height_px": [512]})
    return Predictions(videos=videos, boxes=table)


def _updates(boxes: np.ndarray, score: np.ndarray, config: LinkerConfig) -> np.ndarray:
    """Seconds of each update."""
    linker, classes = Linker(config, 24), np.zeros((boxes.shape[1], 24), dtype=np.float32)
    spent = np.empty(len(boxes))
    for frame in range(len(boxes)):
        began = time.perf_counter()
        linker.update(frame, boxes[frame], score[frame], classes)
        spent[frame] = time.perf_counter() - began
    return spent[10:]


BENCHMARKS = (
    road_frames,
    road_link,
    road_videos,
    road_bootstrap,
    linker_speed,
    linker_latency,
    linker_plain,
)
ON_DATA = (ucf24_frames, ucf24_videos, ucf24_memory, ucf24_reading)
