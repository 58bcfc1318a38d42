"""How well claimed paths follow the tracks of the truth, as a whole, by group, by video and by track."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.errors import UsageError
from roadaware.metrics.detection.summary import weightings
from roadaware.metrics.result import SUMMARY, MetricResult, interval_columns
from roadaware.metrics.tracking.clear import clear_matches, clear_rates, track_events
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.counts import TrackCounts, counted
from roadaware.metrics.tracking.hota import hota_rates
from roadaware.metrics.tracking.identity import identity_rates
from roadaware.metrics.tracking.pairs import TrackPairs, track_pairs
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes
from roadaware.statistics.intervals import Scale, Units

_COUNTS = ("frames", "truth", "claims", "tracks", "paths")
TOTALS = ("switches", "fragmentations")
"""Metrics that grow with the number of videos."""
_SCALES: dict[str, Scale] = {"mota": "to_one", "moda": "to_one", **dict.fromkeys(TOTALS, "positive")}
"""Of metrics that are no shares."""
_OF_TRACKS = ("mostly_tracked", "partly_tracked", "mostly_lost", "switches", "fragmentations")


def evaluate_tracks(
    predictions: Predictions,
    scenes: Scenes,
    config: TrackingConfig | None = None,
    *,
    draws: int = 0,
    seed: int = 0,
    groups: Mapping[str, str] | None = None,
) -> MetricResult:
    """HOTA, identity and CLEAR metrics of paths beside tracks, whatever their labels.

    Metrics are `hota`, `det_a`, `ass_a`, `loc_a`, `det_re`, `det_pr`, `ass_re`, `ass_pr`, `owta`; `idf1`,
    `id_re`, `id_pr`; `mota`, `moda`, `motp`, `recall`, `precision`, `f1`, `mostly_tracked`,
    `partly_tracked`, `mostly_lost`, `switches`, `fragmentations`. All but the last two are fractions.
    Several videos make one metric through the sums of what it is made from, as TrackEval combines them.

    Args:
        predictions: paths: tubes without parent and kind.
        scenes: tracks: tubes without parent; only annotated frames count, where frames say so. Boxes that are
            marked `ignore` are left out, and with them the claimed boxes that lie on them; see
            `pairs.track_pairs`.
        config: how they are judged; `TrackingConfig.default()` unless told.
        draws: most weightings of whole videos for the intervals; 0 gives none.
        seed: of the weightings.
        groups: video to its group; each group is judged as a set of its own.

    Returns:
        summary with intervals over videos; `counts` of frames, boxes, tracks and paths; instances of
        `video` (every metric of each video) and `track` (how each true track was followed).

    Raises:
        UsageError: if `draws` is negative.
        InputError: if tubes are claimed of which none is a path, tracks contradict themselves, or sizes of
            images are not known.

    Source: Luiten et al., IJCV 2021; Ristani et al., ECCV 2016 workshops; Bernardin and Stiefelhagen,
    EURASIP JIVP 2008.
    """
    if draws < 0:
        raise UsageError(f"draws should be 0 or more, not {draws}")
    config = config or TrackingConfig.default()
    pairs = track_pairs(predictions, scenes, config)
    counts = counted(pairs, config)
    parts: dict[str | None, npt.NDArray[Any]] = {None: np.ones(len(counts.videos), dtype=np.int64)}
    for name in sorted(set((groups or {}).values())):
        parts[name] = np.array([(groups or {}).get(video) == name for video in counts.videos], dtype=np.int64)
    rows = [row for group, weights in parts.items() for row in _rows(counts, group, weights, draws, seed)]
    sizes = [
        {"group": group, **{name: int(counts.totals(weights)[name]) for name in _COUNTS}}
        for group, weights in parts.items()
    ]
    return MetricResult(
        summary=pl.DataFrame(rows, schema=SUMMARY),
        counts=pl.DataFrame(sizes, schema={"group": pl.String, **dict.fromkeys(_COUNTS, pl.Int64)}),
        config=to_dict(config),
        notes=_notes(pairs, predictions),
        makers={"video": partial(by_video, counts), "track": partial(by_track, pairs, config)},
    )


def _notes(pairs: TrackPairs, predictions: Predictions) -> tuple[str, ...]:
    """What was not judged, and what is missing, in words."""
    said = [f"{n:,} {what} were left out" for what, n in pairs.left_out.items()]
    if predictions.tubes.is_empty() and not predictions.boxes.is_empty():
        said.append("the claimed boxes are not linked, so that no path follows a track")
    return tuple(said)


def track_rates(counts: TrackCounts, weights: npt.NDArray[Any] | None = None) -> dict[str, Floats]:
    """Every metric by name, NaN where undefined.

    Args:
        counts: of V videos.
        weights: (V,) or (draws, V) how often each video counts; once unless told.
    """
    totals, undefined = counts.totals(weights), counts.config.undefined
    return {
        **hota_rates(totals, undefined),
        **identity_rates(totals, undefined),
        **clear_rates(totals, undefined),
    }


def drawn_rates(counts: TrackCounts, weights: npt.NDArray[Any], units: Units) -> dict[str, Floats]:
    """(draws,) every metric under the weightings of some videos; totals as if of as many videos.

    Args:
        counts: of V videos.
        weights: (V,) 1 for each video that counts.
        units: these videos.
    """
    times = weightings(weights, units)
    rates, share = track_rates(counts, times), units.n / times.sum(axis=1)
    return {name: values * share if name in TOTALS else values for name, values in rates.items()}


def scale(metric: str) -> Scale:
    """What kind of number a metric is, for its interval."""
    return _SCALES.get(metric, "share")


def by_video(counts: TrackCounts) -> pl.DataFrame:
    """One row per video: its counts, and every metric as if it were alone; null where undefined."""
    each = np.eye(len(counts.videos), dtype=np.int64)
    rates = track_rates(counts, each)
    sizes = {name: counts.table[name].astype(np.int64) for name in _COUNTS}
    table = pl.DataFrame({"video": pl.Series(counts.videos, dtype=pl.String), **sizes, **rates})
    return table.with_columns(pl.col(name).fill_nan(None) for name in rates)


def by_track(pairs: TrackPairs, config: TrackingConfig) -> pl.DataFrame:
    """One row per true track: `tube`, `video`, `boxes`, how many were `found`, by how many `paths`, how often
    it was switched to another path or found again (`switches`, `fragmentations`), and the mean `overlap`."""
    matched = clear_matches(pairs, config)
    track, path, switched, again = track_events(pairs, matched)
    n, held = len(pairs.truth.number), pairs.truth.lengths
    found = np.bincount(track, minlength=n)
    true = pairs.truth.track[pairs.true_box[matched]]
    overlap = np.bincount(true, weights=pairs.similarity[matched], minlength=n)
    distinct = np.unique(np.column_stack([track, path]), axis=0)[:, 0]
    table = pl.DataFrame(
        {
            "tube": pairs.truth.number,
            "video": pl.Series([pairs.videos[v] for v in pairs.truth.video], dtype=pl.String),
            "boxes": held,
            "found": found,
            "paths": np.bincount(distinct, minlength=n),
            "switches": np.bincount(track[switched], minlength=n),
            "fragmentations": np.bincount(track[again], minlength=n),
            "overlap": np.where(found > 0, overlap / np.maximum(found, 1), np.nan),
        }
    )
    return table.filter(pl.col("boxes") > 0).with_columns(pl.col("overlap").fill_nan(None))


def _rows(
    counts: TrackCounts, group: str | None, weights: npt.NDArray[Any], draws: int, seed: int
) -> list[dict[str, Any]]:
    """The rows of the summary of one part of the videos."""
    rates, totals = track_rates(counts, weights), counts.totals(weights)
    units = Units(int(weights.sum()), draws, seed)
    drawn = drawn_rates(counts, weights, units) if draws and units.n > 1 else None
    rows = []
    for metric, value in rates.items():
        valid = not np.isnan(value)
        interval = None
        if drawn is not None and valid:
            interval = units.interval(float(value), drawn[metric], scale(metric))
        row = {
            **dict.fromkeys(SUMMARY),
            "group": group,
            "metric": metric,
            "value": float(value) if valid else None,
            "valid": valid,
            "n": int(totals["tracks" if metric in _OF_TRACKS else "truth"]),
            "reason": None if valid else "there is nothing to divide by",
            **interval_columns(interval, "video"),
        }
        rows.append(row)
    return rows
