"""Processor seconds to write and read boxes in the forms of tools: `python benchmarks/box_forms.py 1000000 mot yolo coco`."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.datasets import read
from roadaware.formats.boxes.forms import FORMS, write_boxes
from roadaware.scenes.tables import Meta, Scenes

BOXES_PER_IMAGE, VIDEOS = 200, 50


def build_scenes(count: int) -> Scenes:
    """Videos of 200 boxes an image with as many tracks each, about `count` boxes in all."""
    rng = np.random.default_rng(0)
    frames = max(1, count // BOXES_PER_IMAGE // VIDEOS)
    count = frames * BOXES_PER_IMAGE * VIDEOS
    names = [f"drive{v:03d}" for v in range(VIDEOS)]
    video = np.repeat(np.arange(VIDEOS), frames * BOXES_PER_IMAGE)
    frame = np.tile(np.repeat(np.arange(frames), BOXES_PER_IMAGE), VIDEOS)
    tube = np.tile(np.arange(BOXES_PER_IMAGE), VIDEOS * frames) + BOXES_PER_IMAGE * video
    left, top = rng.uniform(0, 1800, count).astype(np.float32), rng.uniform(0, 1000, count).astype(np.float32)
    wide, high = rng.uniform(1, 100, count).astype(np.float32), rng.uniform(1, 80, count).astype(np.float32)
    sizes = {"width_px": [1920] * VIDEOS, "height_px": [1080] * VIDEOS, "n_frames": [frames] * VIDEOS}
    return Scenes(
        videos=pl.DataFrame({"video": names, **sizes, "fps": pl.Series([10.0] * VIDEOS, dtype=pl.Float32)}),
        frames=pl.DataFrame(
            {"video": np.repeat(names, frames), "frame": np.tile(np.arange(frames), VIDEOS)}
        ).with_columns(annotated=pl.lit(value=True)),
        boxes=pl.DataFrame(
            {"box": np.arange(count), "video": np.array(names)[video], "frame": frame, "tube": tube,
             "x1_px": left, "y1_px": top, "x2_px": left + wide, "y2_px": top + high}
        ),
        labels=pl.DataFrame({"box": np.arange(count), "kind": ["agent"] * count, "label": tube % 3}),
        tubes=pl.DataFrame(
            {"tube": np.arange(VIDEOS * BOXES_PER_IMAGE), "video": np.repeat(names, BOXES_PER_IMAGE),
             "name": [str(1 + n % BOXES_PER_IMAGE) for n in range(VIDEOS * BOXES_PER_IMAGE)]}
        ),
        meta=Meta("made up", vocabularies={"agent": ("person", "car", "bus")}),
    )  # fmt: skip


def main() -> None:
    """Print a line for each form."""
    scenes = build_scenes(int(sys.argv[1]))
    for form in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "out"
            started = time.process_time()
            write_boxes(scenes, form, place, lossy=True)
            written = time.process_time()
            back = read(FORMS[form].reader, place, cache=False)
            ended = time.process_time()
        assert len(back.boxes) == len(scenes.boxes)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{form}: {len(back.boxes):,} boxes, {len(scenes.frames):,} images; "
            f"written in {written - started:.1f} s, read in {ended - written:.1f} s of processor time, peak {peak:.2f} GiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
