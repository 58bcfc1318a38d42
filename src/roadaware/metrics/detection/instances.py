"""The rows behind the summary: each claimed box and frame label, with the truth it met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from roadaware.metrics.detection.av_action import JudgedLabels
from roadaware.metrics.detection.frame import JudgedFrames
from roadaware.scenes.predictions import Predictions


def frame_rows(judged: JudgedFrames, predictions: Predictions, thresholds: Sequence[float]) -> pl.DataFrame:
    """One row per claimed box and class, by class and falling score.

    Args:
        judged: truth and claims.
        predictions: whose boxes were judged.
        thresholds: (T,) of the hits.

    Returns:
        `box`, `video`, `frame`, `kind`, `label`, `score`; `iou` with the true box of the class that it
        overlaps most, taken or not (0 where the frame has none); and for each threshold `hit@0.5` and
        `truth@0.5`, the true box it met, null where none.
    """
    boxes, videos = predictions.boxes, np.array(judged.frames.videos, dtype=object)
    numbers = pl.Series(judged.truth.box, dtype=pl.Int64)
    parts = [
        pl.DataFrame(
            {
                "box": boxes["box"].gather(judged.claims.row[ranked]),
                "video": pl.Series(
                    videos[judged.frames.judged_video[judged.claims.frame[ranked]]].tolist(), dtype=pl.String
                ),
                "frame": boxes["frame"].gather(judged.claims.row[ranked]),
                "kind": pl.Series([kind] * len(ranked), dtype=pl.String),
                "label": pl.Series([label] * len(ranked), dtype=pl.String),
                "score": score,
                "iou": judged.nearest(c, ranked),
                **{
                    name: values
                    for t, threshold in enumerate(thresholds)
                    for name, values in (
                        (f"hit@{threshold:g}", pl.Series(met[:, t] >= 0)),
                        (
                            f"truth@{threshold:g}",
                            numbers.gather(
                                pl.Series(np.where(met[:, t] >= 0, met[:, t], -1)).replace(-1, None)
                            ),
                        ),
                    )
                },
            }
        )
        for c, ((kind, label), (ranked, score, met)) in enumerate(
            zip(judged.classes, judged.met(thresholds), strict=True)
        )
    ]
    return pl.concat(parts)


def label_rows(judged: JudgedLabels) -> pl.DataFrame:
    """One row per frame and label: `video`, `frame`, `kind`, `label`, `score`, and whether it is right."""
    matches = judged.matches()
    key = judged.frames.judged[judged.frame[matches.order]]
    videos = np.array(judged.frames.videos, dtype=object)
    return pl.DataFrame(
        {
            "video": pl.Series(videos[matches.video].tolist(), dtype=pl.String),
            "frame": key % judged.frames.stride,
            "kind": pl.Series([matches.classes[c][0] for c in matches.cls], dtype=pl.String),
            "label": pl.Series([matches.classes[c][1] for c in matches.cls], dtype=pl.String),
            "score": matches.score,
            "hit": matches.hit[:, 0],
        }
    )
