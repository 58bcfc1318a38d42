"""Watching: a hundred thousand frames with a stub detector, and a video with the one that comes along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "online"))

from unsteady_camera import Unhurried, unsteady_camera

from roadaware.models.detector import FrameDetections
from roadaware.online.config import WatchConfig
from roadaware.online.frames import Ending, Outcomes, Source, SourceFrame, SystemClock
from roadaware.online.run_folder import RunFolder
from roadaware.online.watch import Progress, watch
from roadaware.scenes.store import open_predictions

_FRAMES, _WARM, _AGENTS = 100_000, 10_000, 10
_KINDS = {
    "agent": tuple(f"agent{n}" for n in range(10)),
    "action": tuple(f"action{n}" for n in range(19)),
    "location": tuple(f"location{n}" for n in range(12)),
}
_Row = tuple[str, str, str]


class _Stub:
    """Ten agents that come and go: each lives 20 to 200 frames and is overlooked in one of twenty."""

    kinds, av_labels, delay = _KINDS, ("AV-Stop", "AV-Mov"), 0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._rng = np.random.default_rng(0)
        self._frame = 0
        self._life = np.zeros(_AGENTS, np.int64)
        self._at, self._by = np.zeros((_AGENTS, 2)), np.zeros((_AGENTS, 2))
        self._scores = np.zeros((_AGENTS, 41), np.float32)

    def step(self, picture: object) -> Sequence[FrameDetections]:
        rng, over = self._rng, self._life == 0
        n = int(over.sum())
        self._at[over], self._by[over] = rng.uniform(0, 1000, (n, 2)), rng.uniform(-3, 3, (n, 2))
        self._life[over], self._scores[over] = rng.integers(20, 200, n), rng.random((n, 41))
        self._life, self._at = self._life - 1, self._at + self._by
        seen = rng.random(_AGENTS) < 0.95
        corners = self._at[seen]
        boxes = np.concatenate([corners, corners + 60], axis=1).astype(np.float32)
        agentness = np.sort(rng.uniform(0.3, 1.0, len(boxes)).astype(np.float32))[::-1]
        noise = rng.normal(0, 0.05, (len(boxes), 41))
        scores = np.clip(self._scores[seen] + noise, 0, 1).astype(np.float32)
        self._frame += 1
        av = np.array([0.2, 0.8], np.float32)
        return [FrameDetections(self._frame - 1, boxes, np.ascontiguousarray(agentness), scores, av)]

    def finish(self) -> Sequence[FrameDetections]:
        return ()


class _Blank:
    """A source of one image over and over, 12 a second."""

    name, live, fps, path, start_s = "soak", False, 12.0, None, 0.0

    def __init__(self, frames: int) -> None:
        self.n_frames, self.outcomes, self._at = frames, Outcomes(), 0
        self._picture = np.zeros((8, 8, 3), np.uint8)

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        if self._at == self.n_frames:
            return None
        self._at += 1
        return SourceFrame(self._at - 1, (self._at - 1) / 12, self._picture, time.monotonic())

    @property
    def ending(self) -> Ending | None:
        return Ending("end") if self._at == self.n_frames else None

    def close(self) -> None:
        pass


def online_soak() -> _Row:
    """100,000 frames with ten agents into a folder, without video: memory, and the time of the last frames."""
    found = soak(_FRAMES, _WARM)
    got = (
        f"{found['ratio']:.2f}x ({found['first_us']:.0f} and {found['last_us']:.0f} us CPU a frame), memory "
        f"{found['grown_mb']:+.1f} MB after warm-up, {found['end_mb']:+.1f} MB more to join the tables; "
        f"{found['live']} live tubes of {found['begun']:,}; {found['files']:+d} open files, "
        f"{found['threads']:+d} threads"
    )
    return "watch 100,000 frames: last tenth by first; memory", "1.2x; +5 MB", got


def online_camera() -> _Row:
    """100,000 frames of a camera over HTTP that stalls, hangs up, answers 503 and changes its rate."""
    with unsteady_camera() as url:
        found = soak(_FRAMES, _WARM, Unhurried(url))
    counts = found["outcomes"]
    told = ", ".join(
        f"{counts.get(what, 0):,} {what}" for what in ("reconnected", "lost", "doubtful", "clock")
    )
    got = (
        f"{found['ratio']:.2f}x ({found['first_us']:.0f} and {found['last_us']:.0f} us CPU a frame), memory "
        f"{found['grown_mb']:+.1f} MB after warm-up, {found['end_mb']:+.1f} MB more to join the tables; "
        f"{told}; {found['files']:+d} open files, {found['threads']:+d} threads"
    )
    return "watch 100,000 frames of an unsteady camera: last tenth by first; memory", "1.2x; +5 MB", got


def online_shipped() -> _Row:
    """The command on a synthetic video of 12 s, pinned to one core: video, tables and drawing included."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        command = [sys.executable, "-m", "roadaware"]
        made = [
            "simulate",
            "--scenes",
            "1",
            "--seconds",
            "12",
            "--seed",
            "9002",
            "--size",
            "320x240",
            "--no-sound",
        ]
        subprocess.run(
            [*command, *made, "-o", str(root / "made"), "--quiet"], check=True, capture_output=True
        )
        film = next((root / "made" / "scenes").glob("*/video.mp4"))
        subprocess.run(
            [*command, "watch", str(film), "-o", str(root / "seen"), "--quiet"],
            check=True,
            capture_output=True,
            preexec_fn=partial(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))}),
        )
        said = json.loads((root / "seen" / "summary.json").read_text())
    got = f"{said['fps']:.1f} frames/s over {said['frames']} frames"
    return "watch 320x240 with the weights that come along, one core", "12 frames/s", got


def soak(frames: int, warm: int, given: Source | None = None) -> dict[str, Any]:
    """Watch a stub; CPU seconds of its parts, and what grew.

    Args:
        frames: in all.
        warm: after so many, memory is first measured.
        given: the source; one of the same image over and over where None.
    """
    process, marks = psutil.Process(), {}
    reached = Progress()

    def tick(progress: Progress) -> None:
        reached.frames = progress.frames
        if progress.frames in {0, warm, 2 * warm, frames - warm, frames} - marks.keys():
            held = process.memory_info().rss / 1e6
            marks[progress.frames] = (time.process_time(), held, process.num_fds(), process.num_threads())

    with tempfile.TemporaryDirectory() as scratch:
        folder, clock = Path(scratch), SystemClock()
        source, detector, config = given or _Blank(frames), _Stub(), WatchConfig()
        kept = RunFolder(folder, source, detector, config, clock)
        more = {"tick": tick, "stopped": lambda: given is not None and reached.frames >= frames}
        progress = watch(source, detector, config, kept, clock=clock, **more)
        source.close()
        end_mb = process.memory_info().rss / 1e6
        assert len(open_predictions(folder / "predictions").frames) == frames
    first = (marks[2 * warm][0] - marks[warm][0]) / warm
    last = (marks[frames][0] - marks[frames - warm][0]) / warm
    return {
        "ratio": last / first,
        "first_us": first * 1e6,
        "last_us": last * 1e6,
        "grown_mb": marks[frames][1] - marks[warm][1],
        "end_mb": end_mb - marks[frames][1],
        "files": marks[frames][2] - marks[warm][2],
        "threads": marks[frames][3] - marks[warm][3],
        "live": progress.tubes,
        "begun": progress.begun,
        "outcomes": source.outcomes.counts(),
    }


BENCHMARKS = (online_soak, online_camera, online_shipped)
