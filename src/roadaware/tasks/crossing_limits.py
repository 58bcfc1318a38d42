"""Limits of a predictor's training data: the smallest boxes and the strongest camera shake."""

from __future__ import annotations

import polars as pl

from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_SMALLEST = 0.01
"""Share of the boxes that may be smaller than the limit: a few are wrong, or cut off."""
_SHAKIEST = 0.999
"""Quantile of the shake: most frames are steady, and a predictor learnt from nearly all of the others too."""
_TOGETHER = 3
"""Pedestrians whose median says how the image moved; of fewer, their own steps decide."""
_SPAN_FRAMES = 15


def measure_limits(scenes: Scenes) -> dict[str, float]:
    """The limits of samples, as `online.steadiness` reads them; those that cannot be measured are left out.

    `height`: the 1st percentile of the heights of observed boxes, as a share of the image's. `shake`: how
    much the median step of three pedestrians and more changes from frame to frame, root mean square over 15
    frames, in heights of the image in 1/30 s; of it the 99.9th percentile.

    Args:
        scenes: with samples, boxes, and sizes of the videos.
    """
    videos, video = scenes.videos, pl.col("video").cast(pl.String)
    if not {"height_px"} <= set(videos.columns) or scenes.boxes.is_empty():
        return {}
    fps = pl.col("fps") if "fps" in videos.columns else pl.lit(None, pl.Float64)
    sizes = videos.select(video, high=pl.col("height_px"), rate=fps.fill_null(30.0))
    boxes = scenes.boxes.select(video, "frame", "tube", *CORNERS).join(sizes, on="video").drop_nulls("high")
    spans = scenes.samples.group_by("tube").agg(pl.col("start_frame").min(), pl.col("end_frame").max())
    seen = pl.col("frame").is_between("start_frame", "end_frame", closed="left")
    observed = boxes.join(spans, on="tube").filter(seen)
    found = {}
    heights = (observed["y2_px"] - observed["y1_px"]) / observed["high"]
    if len(heights):
        found["height"] = round(float(heights.quantile(_SMALLEST) or 0.0), 4)
    shake = round(_shake(boxes) or 0.0, 4)
    if shake:
        found["shake"] = shake
    return found


def _shake(boxes: pl.DataFrame) -> float | None:
    """See `measure_limits`; None where three pedestrians are nowhere together for long enough."""
    step = [
        (((pl.col(a) + pl.col(b)) / 2 / pl.col("high")).diff().over("tube") * pl.col("rate") / 30).alias(name)
        for name, a, b in (("dx", "x1_px", "x2_px"), ("dy", "y1_px", "y2_px"))
    ]
    # Only steps from one frame to the next: over a gap people move farther than the camera shakes.
    near = pl.col("frame").diff()
    steps = (
        boxes.sort("tube", "frame").with_columns(*step, past=near.over("tube")).filter(pl.col("past") == 1)
    )
    common = (
        steps.group_by("video", "frame")
        .agg(pl.col("dx").median(), pl.col("dy").median(), n=pl.len())
        .filter(pl.col("n") >= _TOGETHER)
        .sort("video", "frame")
    )
    changes = common.with_columns(
        square=sum(pl.col(name).diff().over("video") ** 2 for name in ("dx", "dy")),
        past=near.over("video"),
    ).filter(pl.col("past") == 1)
    shakes = changes.select(pl.col("square").rolling_mean(_SPAN_FRAMES).over("video").sqrt()).to_series()
    shakes = shakes.drop_nulls().drop_nans()
    return float(shakes.quantile(_SHAKIEST) or 0.0) if len(shakes) else None
