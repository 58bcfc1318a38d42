"""What the seam of long work costs: `python -m benchmarks.scale [--on local ray://local] [--parts 100 1000 10000]`.

With `--evaluate 100` instead: `evaluate` of so many videos of road events with 1,000 resamples, by one process and by two.
With `--memory 1000 10000` instead: the most memory that `evaluate` of so many videos of one frame takes besides their tables.
With `--store s3://bucket/name` instead: what a file costs the process that writes to the store, and how long all take.

Tiny parts show the cost of handing one out, sleeping ones how well two workers share: sleep takes no processor, so that
the second figure does not depend on what else the machine does. The first is given by the clock and by the seconds of
processor that the driver took; the clock counts what others took, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.io.files import write_atomically
from roadaware.io.parallel import HERE, WorkerPool, Workers
from roadaware.io.storage import publish
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.statistics.intervals import PercentileResamples

_SLEEP_S = 1.0
_AT = ("0.2", "0.5", "0.75", "0.5:0.95")
FILES = 17
"""Of a simulated scene."""


def return_part(part: int) -> int:
    """A part that takes no time."""
    return part


def sleep_part(part: int) -> int:
    """A part that takes a second, and no processor."""
    time.sleep(_SLEEP_S)
    return part


def measure_overhead(on: str, counts: list[int]) -> list[dict[str, float | str]]:
    """For each number of tiny parts on two workers: seconds a part by the clock and of the driver's processor, memory.

    Args:
        on: where the work is done.
        counts: numbers of parts.
    """
    rows: list[dict[str, float | str]] = []
    with closing(WorkerPool(Workers(on, 2))) as pool:
        list(pool.map(return_part, range(4)))  # the start of workers is not the cost of a part
        for count in counts:
            clock_s, cpu_s = time.perf_counter(), time.process_time()
            done = sum(result.value == result.place for result in pool.map(return_part, range(count)))
            clock_s, cpu_s = time.perf_counter() - clock_s, time.process_time() - cpu_s
            assert done == count
            memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            rows.append({"on": on, "parts": count, "clock_ms": 1e3 * clock_s / count,
                         "driver_cpu_ms": 1e3 * cpu_s / count, "driver_mb": memory_mb})  # fmt: skip
    return rows


def measure_speedup(on: str, count: int = 20) -> dict[str, float | str]:
    """How much sooner two workers are done than one, with parts that sleep a second.

    Args:
        on: where the work is done.
        count: of parts.
    """
    took = {}
    for workers in (1, 2):
        # The limit keeps a single worker out of this process, so that both are measured alike.
        with closing(WorkerPool(Workers(on, workers, limit_s=600))) as pool:
            list(pool.map(return_part, range(2 * workers)))
            began_s = time.perf_counter()
            list(pool.map(sleep_part, range(count)))
            took[workers] = time.perf_counter() - began_s
    return {"on": on, "parts": count, "one_s": took[1], "two_s": took[2], "ratio": took[1] / took[2]}


def measure_evaluation(on: str, videos: int) -> Iterator[dict[str, float | str]]:
    """Seconds that road events of 200 frames a video take with 1,000 resamples, by one process and by two workers.

    Args:
        on: where the two workers are.
        videos: how many.
    """
    scenes = generate_road_scenes(videos=videos, frames=200, boxes_per_frame=6.0, seed=0)
    found = link(simulate_detections(scenes, seed=0), LinkerConfig.default())
    alone = None
    for name, resamples, workers in (
        ("no resamples", 0, HERE), ("this process", 1000, HERE), (f"{on}, two workers", 1000, Workers(on, 2))
    ):  # fmt: skip
        began_s, here_s = time.perf_counter(), time.process_time()
        there = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = evaluate(
            found, scenes, DetectionConfig.default(), frame_thresholds=_AT, video_thresholds=_AT,
            resamples=PercentileResamples(resamples), workers=workers,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert alone is None or not resamples or alone.equals(result.summary)
        alone = result.summary if resamples else None
        yield {"by": name, "videos": videos, "boxes": len(found.boxes), "clock_s": time.perf_counter() - began_s,
               "driver_cpu_s": time.process_time() - here_s,
               "workers_cpu_s": after.ru_utime + after.ru_stime - there.ru_utime - there.ru_stime,
               "driver_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}  # fmt: skip


def measure_memory(videos: int) -> Iterator[dict[str, float]]:
    """MB that evaluating boxes of many videos of one frame takes at most besides their tables, and of it the matches.

    Args:
        videos: how many: copies of 100.
    """
    scenes = generate_road_scenes(videos=100, frames=24, boxes_per_frame=1.0, seed=0)
    many = [_copy_frame(each, videos // 100) for each in (scenes, simulate_detections(scenes, seed=0))]
    gc.collect()
    before_mb = _read_memory("VmRSS")
    for resamples in (0, 1000):
        Path("/proc/self/clear_refs").write_text("5")  # the most memory counts from here on
        result = evaluate(
            many[1], many[0], DetectionConfig.default(), frame_thresholds=("0.2", "0.5"), video_thresholds=(),
            resamples=PercentileResamples(resamples),
        )  # fmt: skip
        arrays = [value for each in result.matches.values() for value in vars(each).values()]
        held = sum(value.nbytes for value in arrays if isinstance(value, np.ndarray))
        yield {
            "videos": videos,
            "resamples": resamples,
            "most_mb": _read_memory("VmHWM") - before_mb,
            "matches_mb": held / 2**20,
        }
        del result, arrays


def _copy_frame(tables: Any, times: int) -> Any:
    """Copies of one frame of each video, under names of their own, without tubes."""
    boxes = tables.boxes.filter(pl.col("frame") == 5)
    step = int(boxes["box"].max()) + 1

    def copy(table: pl.DataFrame) -> pl.DataFrame:
        if "frame" in table.columns:
            table = table.filter(pl.col("frame") == 5)
        elif "box" in table.columns:
            table = table.filter(pl.col("box").is_in(boxes["box"].implode()))
        named = [
            [pl.col("video").cast(pl.String) + f"-{k}"] * ("video" in table.columns)
            + [pl.col("box") + k * step] * ("box" in table.columns)
            for k in range(times)
        ]
        return pl.concat([table.with_columns(columns) for columns in named])

    kept = ("videos", "frames", "boxes", "labels", "frame_labels")
    found = {name: copy(table) for name, table in tables.tables().items() if name in kept}
    found["boxes"] = found["boxes"].drop("tube", strict=False)
    return type(tables)(**found, meta=tables.meta)


def _read_memory(name: str) -> float:
    """MB that the system says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def write_part(folder: Path, part: int) -> None:
    """A part of as many small files as a simulated scene has."""
    for number in range(FILES):
        write_atomically(folder / f"{part:05d}-{number:02d}.bin", f"{part} {number}".encode() * 200)


def measure_store(on: str, url: str, count: int) -> dict[str, float | str]:
    """Seconds of the driver's processor and by the clock for each file that two workers make.

    Args:
        on: where the work is done.
        url: below which the files are stored.
        count: of parts.
    """
    with publish(f"{url}/{os.getpid()}-{count}") as folder, closing(WorkerPool(Workers(on, 2))) as pool:
        folder.mkdir(exist_ok=True)
        list(pool.map(return_part, range(4)))
        clock_s, cpu_s = time.perf_counter(), time.process_time()
        done = sum(result.failure is None for result in pool.map(partial(write_part, folder), range(count)))
        worked_s = time.perf_counter() - clock_s
    clock_s, cpu_s = time.perf_counter() - clock_s, time.process_time() - cpu_s
    assert done == count
    files = count * FILES
    return {"on": on, "parts": count, "files": files, "driver_cpu_ms_a_file": 1e3 * cpu_s / files,
            "clock_ms_a_file": 1e3 * clock_s / files, "of_it_parts_ms": 1e3 * worked_s / files}  # fmt: skip


def main() -> None:
    """Measure, and print a line of JSON for each row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", nargs="+", default=["local"])
    parser.add_argument("--evaluate", type=int, help="evaluate road events of so many videos")
    parser.add_argument("--memory", nargs="+", type=int, help="evaluate so many small videos")
    parser.add_argument("--store", help="an address below which results are written")
    parser.add_argument("--parts", nargs="+", type=int, default=[100, 1000, 10_000])
    given = parser.parse_args()
    print(json.dumps({"load_average": os.getloadavg(), "processors": os.cpu_count()}), flush=True)
    for count in given.memory or ():
        for row in measure_memory(count):
            print(json.dumps(row), flush=True)
    for on in () if given.memory else given.on:
        if given.evaluate:
            for row in measure_evaluation(on, given.evaluate):
                print(json.dumps(row), flush=True)
            continue
        if given.store:
            for count in given.parts:
                print(json.dumps(measure_store(on, given.store, count)), flush=True)
            continue
        for row in (*measure_overhead(on, given.parts), measure_speedup(on)):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
