"""Two videos, three pedestrians, hand-made samples: one track has a gap, one ends inside an observation."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Scenes

SIZES = {"a": (64, 48), "b": (96, 64)}
FRAMES = 10
T = 5
TRACKS: dict[int, tuple[str, str, tuple[int, ...]]] = {
    0: ("a", "0_1_1b", (0, 1, 2, 3, 5, 6, 7, 8, 9)),
    1: ("b", "0_2_1", (6, 7, 8)),
    2: ("b", "0_2_2b", tuple(range(10))),
}
OBSERVED = {
    10: (0, (0, 1, 2, 3, 5)),
    11: (2, (0, 1, 2, 3, 4)),
    12: (1, (6, 7, 8, 8, 8)),
    13: (0, (5, 6, 7, 8, 9)),
}
"""Sample to its pedestrian and the frames that it observes; the track of sample 12 ends inside."""
LABELS = {10: 1, 11: 1, 12: 0, 13: 0}


def box_of(tube: int, frame: int) -> tuple[float, float, float, float]:
    """Corners in whole pixels; the pedestrian walks to the right and grows."""
    x, y = 10 + 2 * frame + 5 * tube, 6 + frame
    return float(x), float(y), float(x + 8 + frame % 3), float(y + 20 + 2 * frame)


def walks(
    boxes: dict[str, Any] | None = None,
    frames: dict[str, Any] | None = None,
    videos: dict[str, Any] | None = None,
) -> Scenes:
    """The scenes, with further columns for boxes (22 rows), frames (20 rows) and videos (2 rows)."""
    rows = [(tube, v, f) for tube, (v, _, on) in TRACKS.items() for f in on]
    corners = np.array([box_of(tube, frame) for tube, _, frame in rows])
    samples = [
        (sample, TRACKS[tube][0], tube, on[0], on[0] + T if tube != 0 else on[-1] + 1, LABELS[sample])
        for sample, (tube, on) in OBSERVED.items()
    ]
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": list(SIZES),
                "width_px": [size[0] for size in SIZES.values()],
                "height_px": [size[1] for size in SIZES.values()],
                "fps": pl.Series([10.0, 20.0], dtype=pl.Float32),
                "path": [f"films/{name}/video.mp4" for name in SIZES],
                **(videos or {}),
            }
        ),
        frames=pl.DataFrame(
            {
                "video": [v for v in SIZES for _ in range(FRAMES)],
                "frame": list(range(FRAMES)) * 2,
                **(frames or {}),
            }
        ),
        tubes=pl.DataFrame(
            {
                "tube": list(TRACKS),
                "video": [track[0] for track in TRACKS.values()],
                "name": [track[1] for track in TRACKS.values()],
            }
        ),
        boxes=pl.DataFrame(
            {
                "box": range(len(rows)),
                "video": [row[1] for row in rows],
                "frame": [row[2] for row in rows],
                "tube": [row[0] for row in rows],
                **{
                    c: corners[:, k].astype(np.float32)
                    for k, c in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))
                },
                **(boxes or {}),
            }
        ),
        samples=pl.DataFrame(
            samples,
            schema=["sample", "video", "tube", "start_frame", "end_frame", "label"],
            orient="row",
        ).with_columns(kind=pl.lit("action"), split=pl.lit("train"), tte_frames=pl.lit(30)),
        meta=Meta(dataset="walks", vocabularies={"action": ("not-crossing", "crossing")}),
    )


BOX_ROWS = [(tube, frame) for tube, (_, _, on) in TRACKS.items() for frame in on]
"""Pedestrian and frame of each row of the boxes table."""
