"""Sets with relations, joints, sounds and forecasts beside the boxes, and videos in which something is heard."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import polars as pl
from numbered import FRAMES, HEIGHT, WIDTH, make_predictions, make_truth, numbered_image, variable_times

from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes

BEEP_S = (1.0, 1.3)
"""When something is heard, after the first image."""
PREDICATES, SOUNDS = ("watching", "chasing"), ("beep", "hum")
MAP = [0.0, 0.25, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0]
"""Two rows of four cells."""


def time_s(frame: int) -> float:
    """When a frame of the numbered video is shown."""
    return variable_times()[frame] / 1000


def make_overlaid_truth() -> Scenes:
    """The numbered truth with two relations of a person and a car, the person's joints, and two sounds."""
    truth = make_truth()
    relations = pl.DataFrame(
        {
            "relation": [0, 1],
            "video": "one",
            "subject": [0, 1],
            "object": [1, 0],
            "predicate": [0, 1],
            "start_frame": [20, 30],
            "end_frame": [40, 50],
        }
    )
    sounds = pl.DataFrame(
        {
            "sound": [0, 1],
            "video": "one",
            "name": ["one_0", "one_1"],
            "frame": [30, 70],
            "t_s": [time_s(30), None],
            "end_s": [time_s(36), None],
            "label": [0, 1],
        },
        schema_overrides={"t_s": pl.Float32, "end_s": pl.Float32},
    )
    joints = [place_joints(*row) for row in truth.boxes.select("tube", "x1_px", "y1_px").iter_rows()]
    heard = (pl.col("tube") == 0) & pl.col("frame").is_between(30, 35) & (pl.col("video") == "one")
    boxes = truth.boxes.with_columns(
        pl.Series("joints", joints, dtype=pl.List(pl.Float32)), sound=pl.when(heard).then(pl.lit(0, pl.Int64))
    )
    meta = Meta(
        vocabularies={**truth.meta.vocabularies, "predicate": PREDICATES, "sound": SOUNDS}, dataset="numbered"
    )
    return truth.with_tables(relations=relations, sounds=sounds, boxes=boxes, meta=meta)


def place_joints(tube: int, left: float, top: float) -> list[float] | None:
    """COCO's 17 joints down the box of the first person, the last of which is not seen; nobody else has any."""
    if tube != 0:
        return None
    points = [(left + 15, top + 2 * place, 1.0) for place in range(17)]
    points[16] = (0.0, 0.0, 0.0)
    return [number for point in points for number in point]


def make_overlaid_predictions() -> Predictions:
    """The numbered predictions with a relation between the person and the car, and maps of the true sounds."""
    found = make_predictions()
    relations = pl.DataFrame(
        {
            "relation": [0],
            "video": "one",
            "subject": [0],
            "object": [1],
            "predicate": [0],
            "start_frame": [25],
            "end_frame": [45],
            "score": [0.75],
        }
    )
    sounds = pl.DataFrame(
        {"sound": [0, 1], "video": "one", "map": [MAP, [1.0] * 8], "map_width": 4},
        schema_overrides={"map": pl.List(pl.Float32), "map_width": pl.Int64},
    )
    meta = Meta(vocabularies={**found.meta.vocabularies, "predicate": PREDICATES}, dataset="numbered")
    return found.with_tables(relations=relations, sounds=sounds, meta=meta)


def write_watch(folder: Path) -> None:
    """The folder of a watch of video `one` that forecast a pedestrian in frames 20 to 29, and was late in frame 50."""
    found = make_predictions()
    frames = pl.DataFrame(
        {"video": "one", "frame": range(FRAMES), "t_s": [frame / 20 for frame in range(FRAMES)]},
        schema_overrides={"t_s": pl.Float32},
    )
    # A watch calls tubes by their numbers.
    tubes = found.tubes.with_columns(name=(pl.col("tube") + 30).cast(pl.String))
    save(found.with_tables(frames=frames, tubes=tubes), folder / "predictions")
    summary = {"format": "roadaware-watch", "video": "one", "config": {}}
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "events.jsonl").write_text("")
    late = [frame / 20 + (2.0 if frame == 50 else 0.1) for frame in range(FRAMES)]
    pl.DataFrame({"frame": range(FRAMES), "ready_s": late}).write_parquet(folder / "timing.parquet")
    regions = [[0.1] * 3 + [0.7] if frame % 2 else None for frame in range(20, 30)]
    pl.DataFrame(
        {
            "tube": [30] * 10,
            "frame": range(20, 30),
            "t_s": [frame / 20 for frame in range(20, 30)],
            "crossing": [0.6] * 9 + [None],
            "low": [0.4] * 10,
            "high": [0.9] * 10,
            "regions": regions,
            "unknown": [None] * 10,
        },
        schema_overrides={"regions": pl.Array(pl.Float32, 4), "unknown": pl.String},
    ).write_parquet(folder / "crossing.parquet")


def write_sounding(
    path: Path,
    *,
    codec: str = "libx264",
    sound: str = "aac",
    rate: int = 44_100,
    begin_s: float = 0.0,
    sound_begin_s: float = 0.0,
    channels: str = "mono",
) -> None:
    """The numbered video, of variable rate, with a tone at `BEEP_S` after its first image.

    Args:
        path: where to.
        codec, sound: of images and sound.
        rate: samples a second.
        begin_s: of the first image, on the file's clock.
        sound_begin_s: of the first sample, after the first image.
        channels: of the sound.
    """
    times = variable_times()
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=1000)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = 30, 0
        heard: Any = file.add_stream(sound, rate=rate, layout=channels)
        shape = av.AudioResampler(format=heard.codec_context.format, layout=channels, rate=rate)
        when = sound_begin_s + np.arange(int(rate * (times[-1] / 1000 - sound_begin_s))) / rate
        tone = np.where((when >= BEEP_S[0]) & (when < BEEP_S[1]), 0.5 * np.sin(2 * np.pi * 880 * when), 0.0)
        both = np.repeat(tone[None], 2 if channels == "stereo" else 1, axis=0).astype(np.float32)
        for number, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(numbered_image(number), format="rgb24")
            frame.pts, frame.time_base = time + round(1000 * begin_s), Fraction(1, 1000)
            file.mux(stream.encode(frame))
        for place in range(0, both.shape[1], 1024):
            block = np.ascontiguousarray(both[:, place : place + 1024])
            piece = av.AudioFrame.from_ndarray(block, format="fltp", layout=channels)
            piece.sample_rate, piece.time_base = rate, Fraction(1, rate)
            piece.pts = place + round(rate * (begin_s + sound_begin_s))
            for plain in shape.resample(piece):
                file.mux(heard.encode(plain))
        file.mux(heard.encode(None))
        file.mux(stream.encode(None))
