"""Processor seconds to write and read boxes in the forms of tools: `python benchmarks/box_forms.py 1000000 mot yolo coco`.

`--beside PYTHON` has Datumaro and supervision read the same files right after us, each in a process of the venv of that
interpreter; `--write` has them write it too, for which Datumaro takes ten times as long as for reading. `--parts` reads COCO
in parts whatever its size. The peak is that of the process, so that a form stands alone where it is to count.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from roadaware.datasets import read
from roadaware.formats import coco_sets
from roadaware.formats.boxes.forms import FORMS, write_boxes
from roadaware.formats.truth_files import write_truth
from roadaware.scenes.tables import Meta, Scenes

BOXES_PER_IMAGE, VIDEOS = 200, 50
LABEL_STUDIO = "label_studio"
COCO = "annotations/instances_all.json"


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
        videos=pl.DataFrame(
            {"video": names, **sizes, "fps": pl.Series([10.0] * VIDEOS, dtype=pl.Float32),
             "splits": [["default/train"]] * VIDEOS}
        ),
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


def place_in_space(scenes: Scenes) -> Scenes:
    """The same boxes with a size and place in space, and a camera that saw them, as nuScenes needs them."""
    names = scenes.videos["video"].to_list()
    lens = pl.lit([1000.0, 0, 960, 0, 1000, 540, 0, 0, 1], pl.List(pl.Float64))
    solid = {"height_m": 1.5, "width_m": 1.6, "length_m": 4.0, "x_m": 2.0, "y_m": 1.0, "rotation_y_rad": 0.25}
    return scenes.with_tables(
        videos=scenes.videos.with_columns(scene=pl.col("video"), sensor=pl.lit("CAM_FRONT")),
        boxes=scenes.boxes.with_columns(
            *(pl.lit(value, pl.Float32).alias(name) for name, value in solid.items()),
            z_m=10 + (pl.col("tube") % BOXES_PER_IMAGE).cast(pl.Float32) / 8,
        ),
        sensors=pl.DataFrame({"scene": names, "sensor": "CAM_FRONT", "from_frame": 0}).with_columns(
            intrinsics=lens
        ),
    )


def put_images(folder: Path) -> None:
    """One grey image under the names of all, without which Datumaro and supervision find nothing."""
    grey = folder / "grey.jpg"
    Image.new("RGB", (1920, 1080)).save(grey)
    names = (
        [each["file_name"] for each in json.loads((folder / COCO).read_text())["images"]]
        if (folder / COCO).is_file()
        else []
    )
    targets = [folder / "images" / "all" / name for name in names]
    targets += [folder / "JPEGImages" / f"{each.stem}.jpg" for each in folder.glob("Annotations/*.xml")]
    targets += [
        folder / "images" / each.relative_to(folder / "labels").with_suffix(".jpg")
        for each in folder.glob("labels/*/*.txt")
    ]
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(grey)


def main() -> None:
    """Print a line for each form, and one for each library that reads it too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boxes", type=int)
    parser.add_argument("forms", nargs="+", choices=[*FORMS, LABEL_STUDIO])
    parser.add_argument("--beside", help="an interpreter that has datumaro and supervision")
    parser.add_argument("--write", action="store_true", help="time what the libraries write, too")
    parser.add_argument("--parts", action="store_true", help="read COCO in parts, as large files are")
    asked = parser.parse_args()
    if asked.parts:
        coco_sets.LARGEST_WHOLE = 0
    scenes = build_scenes(asked.boxes)
    for form in asked.forms:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "out"
            print(f"{form}:", flush=True)
            started = time.process_time()
            if form == LABEL_STUDIO:
                write_truth(form, scenes, place)
            else:
                write_boxes(place_in_space(scenes) if form == "nuscenes" else scenes, form, place, lossy=True)
            written = time.process_time()
            back = read(form if form == LABEL_STUDIO else FORMS[form].reader, place, cache=False)
            ended = time.process_time()
            assert len(back.boxes) == len(scenes.boxes)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"roadaware: {len(back.boxes):,} boxes of {len(scenes.frames):,} images read in {ended - written:.1f} s of "
                f"processor time, written in {written - started:.1f} s, peak {peak:.2f} GiB",
                flush=True,
            )
            if asked.beside:
                put_images(place)
                script = Path(__file__).with_name("box_form_peers.py")
                for library in ("Datumaro", "supervision"):
                    words = [script, library, form, place, *(["write"] if asked.write else [])]
                    subprocess.run([asked.beside, "-W", "ignore", *words], check=True)


if __name__ == "__main__":
    main()
