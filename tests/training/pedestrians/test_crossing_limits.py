"""How small the boxes were that a predictor learnt from, and how much its cameras shook."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from roadaware.training.pedestrians.samples import measure_limits


def _scenes(shake_px: float, heights: tuple[int, ...] = (40, 50, 60)) -> Any:
    """Pedestrians of one video of 30 frames a second and 1,000 px, whom the image carries to and fro."""
    frames = np.arange(60)
    at = 100 + 2.0 * frames + shake_px * (frames % 2)
    rows = [
        {
            "video": "v",
            "frame": n,
            "tube": tube,
            "x1_px": x,
            "y1_px": 100.0,
            "x2_px": x + 20,
            "y2_px": 100.0 + high,
        }
        for tube, high in enumerate(heights)
        for n, x in zip(frames.tolist(), (at + 50 * tube).tolist(), strict=True)
    ]
    spans = [{"tube": tube, "start_frame": 10, "end_frame": 25} for tube in range(len(heights))]
    videos = pl.DataFrame({"video": ["v"], "height_px": [1000], "fps": [30.0]})
    return SimpleNamespace(videos=videos, boxes=pl.DataFrame(rows), samples=pl.DataFrame(spans))


def test_limits_are_those_of_the_samples() -> None:
    steady, shaky = (measure_limits(cast("Any", _scenes(shake))) for shake in (0.0, 3.0))
    assert steady["height"] == pytest.approx(0.04)
    assert shaky["shake"] == pytest.approx(
        0.006
    )  # 3 px there and 3 px back are a change of 6 px in each frame
    assert "shake" not in steady  # a limit of none would refuse every video


def test_what_cannot_be_measured_is_left_out() -> None:
    assert set(measure_limits(cast("Any", _scenes(3.0, (40, 50))))) == {"height"}
    unknown = _scenes(3.0)
    unknown.videos = unknown.videos.drop("height_px")
    assert measure_limits(cast("Any", unknown)) == {}
