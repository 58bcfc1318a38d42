"""Small made inputs for the pages of road events."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.worst_tubes import Strip
from roadaware.metrics.detection.evaluate import DETECTION_SUMMARY
from roadaware.reports.bars import ClassCurve, Panel


def panel(name: str) -> Panel:
    """A class that is judged in boxes and in tubes."""
    points = np.array([1.0, 0.5, 0.67]), np.array([0.1, 0.1, 0.2])
    levels = ClassCurve(f"boxes at {name}", *points, 0.15), ClassCurve("tubes at 0.2", *points, None)
    return Panel(name, 10, levels)


def strip(name: str) -> Strip:
    """A tube that is predicted in one of two frames."""
    nothing = np.full((2, 4), np.nan)
    predicted = nothing.copy()
    predicted[0] = (10, 10, 40, 60)
    truth = np.array([[8.0, 8, 38, 58], [50, 8, 80, 58]])
    return Strip(name, (400, 300), np.array([3, 9]), truth, predicted, ((3, 10),), ((3, 5),))


def held(name: str) -> str:
    """The name as far as a table can hold it: without lone surrogates."""
    return name.encode("utf-8", errors="replace").decode()


def faults(name: str) -> pl.DataFrame:
    """Two kinds of faults of one kind of labels."""
    name = held(name)
    rows = [
        ("frame", name, "class", name, 12, 0.5, 0.6, 0.1),
        ("frame", name, name, name, 3, 0.5, None, None),
    ]
    names = ["level", "kind", "fault", "meaning", "predictions", "map", "mended_map", "gain"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(threshold=0.5)


def counts(name: str) -> pl.DataFrame:
    """Two classes and their total, in the whole set and in one split."""
    name = held(name)
    rows = [
        (name, label, split, number, None, number // 10)
        for label, number in ((name, 1200), ("b", 0), (None, 1200))
        for split in ("all", "val_1")
    ]
    return pl.DataFrame(
        rows, schema=["kind", "label", "split", "boxes", "frames", "tubes"], orient="row"
    ).cast({"frames": pl.Int64})


def beside(rows: pl.DataFrame) -> pl.DataFrame:
    """The same counts beside printed ones, of which one differs."""
    return rows.with_columns(
        printed_boxes=pl.when(pl.col("label") == "b").then(7).otherwise("boxes"),
        printed_frames=pl.lit(None, pl.Int64),
        printed_tubes=pl.col("tubes"),
        differs=(pl.col("label") == "b").fill_null(value=False),
        note=pl.lit("as in Table 15"),
    )


def summary(name: str = "agent") -> pl.DataFrame:
    """Two classes and their mean, in boxes and tubes, with one group; one class is undefined."""
    rows = []
    for group in (None, name):
        for level, overlap, threshold in (("frame", None, "0.5"), ("video", "stiou", "0.2")):
            for label, value, n in ((None, 0.25, 1), (name, 0.25, 40), ("b", None, 0)):
                what = "map" if label is None else "ap"
                row = dict.fromkeys(DETECTION_SUMMARY)
                row |= {"group": group, "metric": f"{level}_{what}@{threshold}:{name}", "kind": name}
                row |= {"label": label, "level": level, "overlap": overlap, "threshold": threshold, "n": n}
                row |= {"value": value, "valid": value is not None, "reason": None if value else f"no {name}"}
                rows.append(row | {"low_video": value and 0.2, "high_video": value and 0.3})
    av = dict.fromkeys(DETECTION_SUMMARY) | {"metric": "av_map", "level": "av_action", "kind": "av_action"}
    rows.append(av | {"value": 0.5, "valid": True, "n": 3})
    return pl.DataFrame(rows, schema=DETECTION_SUMMARY)
