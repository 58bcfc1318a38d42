"""What is said of two seconds of boxes is what a plain walk over them says, and never looks ahead."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.scenes.tables import Meta, Scenes
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.history import FEATURES
from roadaware.tasks.crossing_tracks import SPLIT, Moments, cut_moments

WIDTH, HEIGHT, FPS = 1920, 1080, 30.0


def walk(seed: int = 0, frames: int = 100) -> tuple[Scenes, dict[str, Floats]]:
    """Three people in one video, the third from frame 40 on."""
    rng = np.random.default_rng(seed)
    rows, tracks = [], {}
    for tube, name in enumerate(("a", "b", "c")):
        begin = 40 if name == "c" else 0
        n = frames - begin
        centre = np.cumsum(rng.normal(3 - 2 * tube, 2, (n, 2)), axis=0) + np.array([300 + 500 * tube, 500])
        size = np.stack(
            [40 + np.cumsum(rng.normal(0, 0.3, n)), 120 + np.cumsum(rng.normal(0.2, 0.5, n))], axis=1
        )
        boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
        tracks[name] = np.concatenate([np.full((begin, 4), np.nan), boxes])
        rows += [(tube, "v", begin + k, *boxes[k].tolist()) for k in range(n)]
    table = pl.DataFrame(
        rows, schema=["tube", "video", "frame", "x1_px", "y1_px", "x2_px", "y2_px"], orient="row"
    )
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "fps": [FPS], "width_px": [WIDTH], "height_px": [HEIGHT]}),
        boxes=table.with_row_index("box").with_columns(pl.col("box").cast(pl.Int64)),
        tubes=pl.DataFrame({"tube": [0, 1, 2], "video": ["v"] * 3, "name": ["a", "b", "c"]}),
        meta=Meta("JAAD"),
    )
    return scenes, tracks


def ask(scenes: Scenes) -> dict[tuple[str, int], dict[str, float]]:
    """Columns by person and frame."""
    asked = cut_moments(scenes, Moments())
    values = np.asarray(build_inputs(asked.scenes, SPLIT, ["history"]).columns["history"].take(
        np.arange(len(asked.scenes.samples))))  # fmt: skip
    assert values.shape[1:] == (1, len(FEATURES))
    keys = asked.scenes.samples.select("tube", frame=pl.col("end_frame") - 1).iter_rows()
    return {
        (asked.owner[tube][1], frame): dict(zip(FEATURES, row[0].tolist(), strict=True))
        for (tube, frame), row in zip(keys, values, strict=True)
    }


def plain(tracks: dict[str, Floats], who: str, frame: int) -> dict[str, float]:
    """Some columns, from their definitions."""
    boxes = tracks[who]
    begin = int(np.flatnonzero(np.isfinite(boxes[:, 0]))[0])

    def x(track: Floats, t: int) -> float:
        return float(track[t, 0] + track[t, 2]) / 2 / WIDTH

    def log_height(track: Floats, t: int) -> float:
        return float(np.log((track[t, 3] - track[t, 1]) / HEIGHT))

    inwards = -1.0 if x(boxes, frame) > 0.5 else 1.0
    heights = WIDTH / float(boxes[frame, 3] - boxes[frame, 1])
    found = {
        "x": x(boxes, frame), "foot": float(boxes[frame, 3]) / HEIGHT, "log_height": log_height(boxes, frame),
        "from_middle_heights": abs(x(boxes, frame) - 0.5) * heights, "watched_s": (frame - begin) / FPS,
    }  # fmt: skip
    for name, steps in (("0.17s", 5), ("0.5s", 15), ("1s", 30), ("2s", 60)):
        past = frame - steps
        known = past >= begin
        speed = (x(boxes, frame) - x(boxes, past)) * FPS / steps if known else np.nan
        grown = (log_height(boxes, frame) - log_height(boxes, past)) * FPS / steps if known else np.nan
        found |= {f"inwards_{name}": speed * inwards, f"growth_{name}": grown,
                  f"inwards_heights_{name}": speed * inwards * heights}  # fmt: skip
    widths = [(boxes[t, 2] - boxes[t, 0]) / (boxes[t, 3] - boxes[t, 1]) for t in range(begin, frame + 1)]
    found["aspect_spread_1s"] = float(np.std(widths[-31:]))
    steps_heights = [0.0] + [
        (x(boxes, t) - x(boxes, t - 1)) * WIDTH / (boxes[t, 3] - boxes[t, 1])
        for t in range(begin + 1, frame + 1)
    ]
    found["way_inwards"] = float(np.sum(steps_heights)) * inwards
    found["speed_spread_2s"] = float(np.std(steps_heights[-61:]))
    others = [
        other for name, other in tracks.items() if name != who and np.isfinite(other[max(frame - 15, 0), 0])
    ]
    present = sum(np.isfinite(other[frame, 0]) for name, other in tracks.items() if name != who)
    shift = np.mean([(x(other, frame) - x(other, frame - 15)) * FPS / 15 for other in others])
    found |= {"others": float(present), "others_inwards": float(shift) * inwards}
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_columns_are_those_of_a_plain_walk(seed: int) -> None:
    scenes, tracks = walk(seed)
    found = ask(scenes)
    for who, frame in (("a", 20), ("a", 99), ("b", 50), ("b", 70), ("c", 58), ("c", 99)):
        wanted = plain(tracks, who, frame)
        got = {name: found[who, frame][name] for name in wanted}
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-4, nan_ok=True)


def test_nothing_behind_the_newest_box_is_read() -> None:
    scenes, _ = walk()
    early = scenes.with_tables(boxes=scenes.boxes.filter(pl.col("frame") <= 70))
    whole, cut = ask(scenes), ask(early)
    for key, columns in cut.items():
        assert columns == pytest.approx(whole[key], rel=1e-5, abs=1e-6, nan_ok=True), key


def test_a_mirror_image_differs_in_x_alone() -> None:
    scenes, _ = walk()
    turned = scenes.boxes.with_columns(x1_px=WIDTH - pl.col("x2_px"), x2_px=WIDTH - pl.col("x1_px"))
    here, there = ask(scenes), ask(scenes.with_tables(boxes=turned))
    for key, columns in here.items():
        wanted = columns | {"x": 1 - columns["x"]}
        assert there[key] == pytest.approx(wanted, rel=1e-3, abs=2e-4, nan_ok=True), key


def test_videos_of_several_rates_are_refused() -> None:
    scenes, _ = walk()
    asked = cut_moments(scenes, Moments()).scenes
    unknown = asked.with_tables(videos=asked.videos.with_columns(fps=pl.lit(None, pl.Float64)))
    with pytest.raises(InputError, match="frame rate"):
        build_inputs(unknown, SPLIT, ["history"])
