"""How well predicted paths follow the tracks of the ground truth: CLEAR, HOTA and identity metrics, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.evaluate import resample_videos
from roadaware.metrics.metric_state import SUMMARY, MetricResult, build_interval_columns
from roadaware.metrics.tracking_pairs import (
    EPSILON,
    TrackingConfig,
    TrackPairs,
    assign_pairs,
    solve_assignment,
    split_crowded_frames,
    track_pairs,
)
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.intervals import Scale, Units

# CLEAR: boxes that are missed, false, or handed from one path to another.

# TrackEval's value.
_KEPT = 1000.0
"""What a pair that goes on from the frame before is worth more than any other, in overlaps."""
# Of MOTChallenge: mostly tracked above 80 % of the boxes, mostly lost below 20 %.
_MOSTLY, _LOST = 0.8, 0.2


def clear_counts(pairs: TrackPairs, config: TrackingConfig) -> dict[str, Floats]:
    """Sums of CLEAR for each video.

    In each frame boxes are assigned that overlap by at least the threshold: first as many as go on from
    the frame before, then for the greatest sum of overlaps. A track's box whose path is another than that
    of its last assigned box is a switch; each time after the first that a track is found again is a
    fragmentation. Frames in which one side has no box are passed over, so that they break nothing.

    Returns:
        (V,) `clear_tp`, `overlap` (sum over them), `switches`, `fragmentations`, and how many tracks are
        `mostly_tracked` (found in more than 80 % of their boxes), `partly_tracked` and `mostly_lost`
        (in less than 20 %).

    Source: Bernardin and Stiefelhagen, EURASIP JIVP 2008; Wu and Nevatia, CVPR 2006 (tracked and lost);
    as counted by TrackEval (Luiten et al., IJCV 2021).
    """
    n = len(pairs.videos)
    matched = match_clear(pairs, config)
    video = pairs.video[matched]
    track, _, switched, found_again = track_events(pairs, matched)
    of_track = pairs.truth.video[track]
    held, found = pairs.truth.lengths, np.bincount(track, minlength=len(pairs.truth.number))
    share = np.where(held > 0, found / np.maximum(held, 1), np.nan)
    mostly, at_all = share > _MOSTLY, share >= _LOST
    groups = {
        "mostly_tracked": mostly,
        "partly_tracked": at_all & ~mostly,
        "mostly_lost": (held > 0) & ~at_all,
    }
    events = {"switches": switched, "fragmentations": found_again}
    sums = {
        "clear_tp": np.bincount(video, minlength=n),
        "overlap": np.bincount(video, weights=pairs.similarity[matched], minlength=n),
        **{name: np.bincount(of_track, weights=event, minlength=n) for name, event in events.items()},
        **{name: np.bincount(pairs.truth.video, weights=of, minlength=n) for name, of in groups.items()},
    }
    return {name: np.asarray(values, dtype=np.float64) for name, values in sums.items()}


def match_clear(pairs: TrackPairs, config: TrackingConfig) -> Ints:
    """The pairs that are assigned, by frame.

    Frames where nothing competes are assigned at once; the others one after the other, since each leans on
    the frame before.
    """
    alone, crowded = split_crowded_frames(
        pairs, np.flatnonzero(pairs.similarity >= config.threshold - EPSILON)
    )
    path = np.full(len(pairs.truth.track), -1, dtype=np.int64)
    path[pairs.true_box[alone]] = pairs.predictions.track[pairs.predicted_box[alone]]
    before = _frame_before(pairs)
    found = [alone]
    for rows in crowded:
        frame = int(before[pairs.frame[rows[0]]])
        last = slice(pairs.truth.start[frame], pairs.truth.start[frame + 1]) if frame >= 0 else slice(0)
        held = dict(zip(pairs.truth.track[last].tolist(), path[last].tolist(), strict=True))
        tracks = pairs.truth.track[pairs.true_box[rows]].tolist()
        goes_on = pairs.predictions.track[pairs.predicted_box[rows]] == [
            held.get(track, -1) for track in tracks
        ]
        chosen = solve_assignment(pairs, rows, _KEPT * goes_on + pairs.similarity[rows])
        path[pairs.true_box[chosen]] = pairs.predictions.track[pairs.predicted_box[chosen]]
        found.append(chosen)
    return np.sort(np.concatenate(found))


def track_events(pairs: TrackPairs, matched: Ints) -> tuple[Ints, Ints, Bools, Bools]:
    """Track and path of each assigned pair by track and time, and whether it is switched or found again."""
    order = matched[np.lexsort((pairs.frame[matched], pairs.truth.track[pairs.true_box[matched]]))]
    track = pairs.truth.track[pairs.true_box[order]]
    path = pairs.predictions.track[pairs.predicted_box[order]]
    both = _both(pairs)
    # Frames in which one side has no box are passed over, as in TrackEval, and so are no gap.
    place = np.cumsum(both)[pairs.frame[order]]
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = track[1:] == track[:-1]
    switched, again = same.copy(), same.copy()
    switched[1:] &= path[1:] != path[:-1]
    again[1:] &= place[1:] != place[:-1] + 1
    return track, path, switched, again


def _both(pairs: TrackPairs) -> Bools:
    """(F,) the frames in which both sides have boxes."""
    both: Bools = (np.diff(pairs.truth.start) > 0) & (np.diff(pairs.predictions.start) > 0)
    return both


def _frame_before(pairs: TrackPairs) -> Ints:
    """(F,) the last frame before each in which both sides have boxes; -1 where none is.

    At the beginning of a video that is a frame of another one, in which nobody has a track of this.
    """
    both = _both(pairs)
    last = np.maximum.accumulate(np.where(both, np.arange(len(both)), -1))
    return np.concatenate([[-1], last])[: len(both)].astype(np.int64)


def clear_rates(totals: Mapping[str, Floats], undefined: str) -> dict[str, Floats]:
    """MOTA and its kin.

    MOTA = 1 - (FN + FP + switches) / ground truth, at most 1 and without lower end; MODA leaves out the switches;
    MOTP is the mean overlap of true positives, in [0, 1]; recall, precision and F1 of boxes; the shares of
    tracks that are mostly tracked, partly tracked and mostly lost. Lower is better for the last and for the
    numbers of switches and fragmentations, which are given as they are.

    Args:
        totals: (...) the sums of `clear_counts`, `truth`, `predictions`, `tracks`.
        undefined: `null` gives NaN where there is nothing to divide by, `published` takes 1 for the divisor.

    Source: Bernardin and Stiefelhagen, EURASIP JIVP 2008, equations 1 and 2.
    """
    tp, truth, predictions, tracks = (totals[name] for name in ("clear_tp", "truth", "predictions", "tracks"))
    fp, switches = predictions - tp, totals["switches"]
    shares = {
        "mota": (tp - fp - switches, truth),
        "moda": (tp - fp, truth),
        "motp": (totals["overlap"], tp),
        "recall": (tp, truth),
        "precision": (tp, predictions),
        "f1": (tp, (truth + predictions) / 2),
        **{name: (totals[name], tracks) for name in ("mostly_tracked", "partly_tracked", "mostly_lost")},
    }
    rates: dict[str, Floats] = {}
    for name, (above, below) in shares.items():
        rate = above / np.where(below > 0, below, 1.0)
        rates[name] = np.where(below > 0, rate, np.nan) if undefined == "null" else rate
    return {**rates, "switches": switches, "fragmentations": totals["fragmentations"]}


# HOTA: how well boxes are found, and how well those of one track are kept together.


def hota_counts(pairs: TrackPairs, config: TrackingConfig) -> dict[str, Floats]:
    """Sums of HOTA for each video and alpha.

    In each frame boxes are assigned so that the sum of A(t, p) S is greatest, where S is the overlap of
    the boxes and A(t, p) how well track t and path p agree as wholes: with s the sum over frames of
    S / (sum of S of the ground-truth box + sum of S of the predicted box - S), A = s / (|t| + |p| - s). An assigned
    pair is a true positive at alpha where S >= alpha.

    Args:
        pairs: tracks and paths; P pairs of boxes in V videos.
        config: with A alphas.

    Returns:
        (V, A) `hota_tp`, and over true positives c the sums of `ass_a` (TPA / (TPA + FNA + FPA)), `ass_re`
        (TPA / (TPA + FNA)), `ass_pr` (TPA / (TPA + FPA)) and `loc` (S), where TPA(c) are the true positives
        between c's track and path, FNA(c) the other boxes of the track, FPA(c) those of the path.

    Source: Luiten et al., HOTA, IJCV 2021, sections 4 and 5, appendix on matching.
    """
    shape = (len(pairs.videos), len(config.alphas))
    sums = {name: np.zeros(shape) for name in ("hota_tp", "ass_a", "ass_re", "ass_pr", "loc")}
    if not len(pairs.similarity):
        return sums
    track, path, which = pairs.track_pairs
    of_track, of_path = pairs.truth.lengths[track], pairs.predictions.lengths[path]
    shared = np.bincount(which, weights=_normalize_similarity(pairs))
    agreement = shared / (of_track + of_path - shared)
    matched = assign_pairs(pairs, agreement[which] * pairs.similarity)
    similarity, video = pairs.similarity[matched], pairs.video[matched]
    pair_video = pairs.truth.video[track]
    for a, alpha in enumerate(config.alphas):
        right = similarity >= alpha - EPSILON
        together = np.bincount(which[matched[right]], minlength=len(track)).astype(np.float64)
        parts = {
            "hota_tp": together,
            "ass_a": together * together / np.maximum(1, of_track + of_path - together),
            "ass_re": together * together / of_track,
            "ass_pr": together * together / of_path,
        }
        for name, part in parts.items():
            sums[name][:, a] = np.bincount(pair_video, weights=part, minlength=shape[0])
        sums["loc"][:, a] = np.bincount(video[right], weights=similarity[right], minlength=shape[0])
    return sums


def _normalize_similarity(pairs: TrackPairs) -> Floats:
    """(P,) the overlap of each pair as a share of all overlap of its two boxes."""
    similarity = pairs.similarity
    of_true = np.bincount(pairs.true_box, weights=similarity)[pairs.true_box]
    of_predicted = np.bincount(pairs.predicted_box, weights=similarity)[pairs.predicted_box]
    total = of_true + of_predicted - similarity
    # Both boxes may overlap nothing but each other by next to nothing.
    shares: Floats = np.where(total > EPSILON, similarity / np.maximum(total, EPSILON), 0.0)
    return shares


def hota_rates(totals: Mapping[str, Floats], undefined: str) -> dict[str, Floats]:
    """HOTA and its parts as means over alpha, each in [0, 1]; higher is better.

    At each alpha DetA = TP / (TP + FN + FP), AssA the mean of TPA / (TPA + FNA + FPA) over true positives,
    HOTA = sqrt(DetA AssA), and LocA the mean overlap of true positives. DetRe, DetPr, AssRe and AssPr are
    the recall and precision of both; OWTA = sqrt(DetRe AssA) asks for no precision.

    Args:
        totals: `truth`, `predictions`: (...) boxes; the sums of `hota_counts`: (..., A).
        undefined: `null` gives NaN where there is neither ground truth nor prediction, and for LocA where an alpha has no
            true positive; `published` gives 0, and 1 for LocA.

    Source: Luiten et al., HOTA, IJCV 2021, equations 15 to 30.
    """
    tp = totals["hota_tp"]
    truth, predictions = (totals[name][..., None] for name in ("truth", "predictions"))
    found = np.maximum(1, tp)
    det = tp / np.maximum(1, truth + predictions - tp)
    recall = tp / np.maximum(1, truth)
    association = totals["ass_a"] / found
    rates = {
        "hota": np.sqrt(det * association),
        "det_a": det,
        "ass_a": association,
        "det_re": recall,
        "det_pr": tp / np.maximum(1, predictions),
        "ass_re": totals["ass_re"] / found,
        "ass_pr": totals["ass_pr"] / found,
        "owta": np.sqrt(recall * association),
        "loc_a": np.where(tp > 0, totals["loc"] / found, 1.0),
    }
    if undefined == "null":
        there = {"det_re": truth, "det_pr": predictions, "owta": truth, "loc_a": tp}
        for name, values in rates.items():
            rates[name] = np.where(there.get(name, truth + predictions) > 0, values, np.nan)
    return {name: values.mean(axis=-1) for name, values in rates.items()}


# Identity metrics: the share of boxes that a one-to-one pairing of tracks and paths explains.


def identity_counts(pairs: TrackPairs, config: TrackingConfig) -> dict[str, Floats]:
    """Identity counts (IDTP and the like) of each video.

    Tracks and paths are paired one to one so that the number of frames in which the boxes of a pair
    overlap by at least the threshold is greatest; that number is IDTP. The other ground-truth boxes are IDFN, the
    other predictions IDFP.

    Returns:
        (V,) `id_tp`.

    Source: Ristani et al., ECCV 2016 workshops, section 3. Pairing for the fewest IDFN + IDFP, as written
    there, pairs for the greatest IDTP, since IDFN + IDFP = ground truth + predictions - 2 IDTP.
    """
    from scipy.optimize import linear_sum_assignment

    totals = np.zeros(len(pairs.videos))
    track, path, which = pairs.track_pairs
    # Without the tolerance of CLEAR and HOTA: the published identity metrics compare plainly.
    together = np.bincount(which[pairs.similarity >= config.threshold], minlength=len(track))
    video = pairs.truth.video[track]
    # Others add nothing to the sum, so the matrix holds only tracks and paths that ever meet.
    for at in np.unique(video[together > 0]):
        rows = np.flatnonzero((video == at) & (together > 0))
        tracks, row = np.unique(track[rows], return_inverse=True)
        paths, column = np.unique(path[rows], return_inverse=True)
        matrix = np.zeros((len(tracks), len(paths)))
        matrix[row, column] = together[rows]
        totals[at] = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    return {"id_tp": totals}


def identity_rates(totals: Mapping[str, Floats], undefined: str) -> dict[str, Floats]:
    """IDF1 = IDTP / (IDTP + IDFN / 2 + IDFP / 2), IDR = IDTP / ground truth, IDP = IDTP / predictions, each in [0, 1].

    Args:
        totals: (...) `id_tp`, `truth`, `predictions`.
        undefined: `null` gives NaN where there is nothing to divide by, `published` 0.

    Source: Ristani et al., ECCV 2016 workshops, section 3.
    """
    tp, truth, predictions = totals["id_tp"], totals["truth"], totals["predictions"]
    nothing = np.nan if undefined == "null" else 0.0
    below = {"idf1": (truth + predictions) / 2, "id_re": truth, "id_pr": predictions}
    # Denominators are whole or halves, so that 0.5 stands in for 0 alone.
    return {name: np.where(n > 0, tp / np.maximum(n, 0.5), nothing) for name, n in below.items()}


# TrackCounts: what tracking metrics are made from, per video, as sums that merge.

Sums = dict[str, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class TrackCounts:
    """Sums of each video; every metric is a function of their totals.

    Args:
        config: what they were counted with.
        videos: (V,) the videos that were judged.
        table: name to (V,) numbers, or (V, A) of each alpha.
    """

    config: TrackingConfig
    videos: tuple[str, ...]
    table: Sums

    def __repr__(self) -> str:
        return f"TrackCounts({len(self.videos)} videos, {int(self.table['truth'].sum()):,} true boxes)"

    def merge(self, other: TrackCounts) -> TrackCounts:
        """The sums of the videos of both; the parts of a whole give the whole.

        Raises:
            UsageError: if a video lies in both, or the configs differ.
        """
        both = sorted(set(self.videos) & set(other.videos))
        if both:
            raise UsageError(
                f"{len(both)} videos lie in both parts, first {both[:5]}; identities need a video whole"
            )
        if self.config != other.config:
            raise UsageError("counts of different configs cannot be merged; count both with the same")
        table = {name: np.concatenate([held, other.table[name]]) for name, held in self.table.items()}
        return TrackCounts(self.config, (*self.videos, *other.videos), table)

    def totals(self, weights: npt.NDArray[Any] | None = None) -> Sums:
        """The sums over the videos.

        Args:
            weights: (V,) or (resamples, V) how often each video counts (default: once).

        Returns:
            name to a number or (A,), with the resamples in front where there are any.
        """
        once = np.ones(len(self.videos)) if weights is None else np.asarray(weights, dtype=np.float64)
        return {name: np.asarray(once @ held) for name, held in self.table.items()}


def track_counts(
    predictions: Predictions, scenes: Scenes, config: TrackingConfig | None = None
) -> TrackCounts:
    """Count the inputs of HOTA, CLEAR and identity metrics, video by video.

    Args:
        predictions: paths: tubes without parent and kind.
        scenes: tracks: tubes without parent.
        config: how they are judged (default: `TrackingConfig.default()`).

    Raises:
        InputError: if tracks contradict themselves, or sizes of images are not known.
    """
    config = config or TrackingConfig.default()
    return aggregate_counts(track_pairs(predictions, scenes, config), config)


def aggregate_counts(pairs: TrackPairs, config: TrackingConfig) -> TrackCounts:
    """The sums of tracks and paths that were brought together."""
    of_track = np.bincount(pairs.truth.video[pairs.truth.lengths > 0], minlength=len(pairs.videos))
    of_path = np.bincount(pairs.predictions.video[pairs.predictions.lengths > 0], minlength=len(pairs.videos))
    table = {
        "frames": pairs.n_frames,
        "truth": pairs.summed(pairs.truth),
        "predictions": pairs.summed(pairs.predictions),
        "tracks": of_track,
        "paths": of_path,
        **hota_counts(pairs, config),
        **clear_counts(pairs, config),
        **identity_counts(pairs, config),
    }
    return TrackCounts(config, pairs.videos, {name: np.asarray(v, np.float64) for name, v in table.items()})


_COUNTS = ("frames", "truth", "predictions", "tracks", "paths")
TOTALS = ("switches", "fragmentations")
"""Metrics that grow with the number of videos."""
SCALES: dict[str, Scale] = {"mota": "to_one", "moda": "to_one", **dict.fromkeys(TOTALS, "positive")}
"""What kind of number a metric is that is no share in [0, 1]; see `intervals.RANGES`."""
_OF_TRACKS = ("mostly_tracked", "partly_tracked", "mostly_lost", "switches", "fragmentations")


def evaluate_tracks(
    predictions: Predictions,
    scenes: Scenes,
    config: TrackingConfig | None = None,
    *,
    resamples: int = 0,
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
            marked `ignore` are left out, and with them the predicted boxes that lie on them; see
            `pairs.track_pairs`.
        config: how they are judged (default: `TrackingConfig.default()`).
        resamples: most weightings of whole videos for the intervals; 0 gives none.
        seed: of the weightings.
        groups: video to its group; each group is judged as a set of its own.

    Returns:
        summary with intervals over videos; `counts` of frames, boxes, tracks and paths; instances of
        `video` (every metric of each video) and `track` (how each ground-truth track was followed).

    Raises:
        UsageError: if `resamples` is negative.
        InputError: if tubes are predicted of which none is a path, tracks contradict themselves, or sizes of
            images are not known.

    Source: Luiten et al., IJCV 2021; Ristani et al., ECCV 2016 workshops; Bernardin and Stiefelhagen,
    EURASIP JIVP 2008.
    """
    if resamples < 0:
        raise UsageError(f"resamples should be 0 or more, not {resamples}")
    config = config or TrackingConfig.default()
    pairs = track_pairs(predictions, scenes, config)
    counts = aggregate_counts(pairs, config)
    parts: dict[str | None, npt.NDArray[Any]] = {None: np.ones(len(counts.videos), dtype=np.int64)}
    for name in sorted(set((groups or {}).values())):
        parts[name] = np.array([(groups or {}).get(video) == name for video in counts.videos], dtype=np.int64)
    rows = [row for group, weights in parts.items() for row in _rows(counts, group, weights, resamples, seed)]
    sizes = [
        {"group": group, **{name: int(counts.totals(weights)[name]) for name in _COUNTS}}
        for group, weights in parts.items()
    ]
    return MetricResult(
        summary=pl.DataFrame(rows, schema=SUMMARY),
        counts=pl.DataFrame(sizes, schema={"group": pl.String, **dict.fromkeys(_COUNTS, pl.Int64)}),
        config=to_dict(config),
        notes=_notes(pairs, predictions),
        makers={
            "video": partial(build_video_table, counts),
            "track": partial(build_track_table, pairs, config),
        },
    )


def list_values(found: MetricResult) -> dict[str, dict[str, Any]]:
    """Metric of the whole set to its value, the ends of its interval over videos, how many there are, and the caution."""
    return {
        row["metric"]: {
            "value": row["value"],
            "low": row["low_video"],
            "high": row["high_video"],
            "units": row["units_video"],
            "caution": row["caution_video"],
        }
        for row in found.of_group().iter_rows(named=True)
    }


def _notes(pairs: TrackPairs, predictions: Predictions) -> tuple[str, ...]:
    """What was not judged, and what is missing, in words."""
    said = [f"{n:,} {what} were left out" for what, n in pairs.left_out.items()]
    if predictions.tubes.is_empty() and not predictions.boxes.is_empty():
        said.append("the predicted boxes are not linked, so that no path follows a track")
    return tuple(said)


def track_rates(counts: TrackCounts, weights: npt.NDArray[Any] | None = None) -> dict[str, Floats]:
    """Every metric by name, NaN where undefined.

    Args:
        counts: of V videos.
        weights: (V,) or (resamples, V) how often each video counts (default: once).
    """
    totals, undefined = counts.totals(weights), counts.config.undefined
    return {
        **hota_rates(totals, undefined),
        **identity_rates(totals, undefined),
        **clear_rates(totals, undefined),
    }


def resample_rates(counts: TrackCounts, weights: npt.NDArray[Any], units: Units) -> dict[str, Floats]:
    """(resamples,) every metric under the weightings of some videos; totals as if of as many videos.

    Args:
        counts: of V videos.
        weights: (V,) 1 for each video that counts.
        units: these videos.
    """
    times = np.concatenate(list(resample_videos(weights, units)))
    rates, share = track_rates(counts, times), units.n / times.sum(axis=1)
    return {name: values * share if name in TOTALS else values for name, values in rates.items()}


def get_tracking_scale(metric: str) -> Scale:
    """The scale of a metric (share or unbounded), for its interval."""
    return SCALES.get(metric, "share")


def is_fraction(metric: str) -> bool:
    """Whether tables give the metric in per cent; others are numbers in a unit of their own.

    >>> is_fraction("mota"), is_fraction("switches")
    (True, False)
    """
    return get_tracking_scale(metric) in ("share", "to_one")


def build_video_table(counts: TrackCounts) -> pl.DataFrame:
    """One row per video: its counts, and every metric as if it were alone; null where undefined."""
    each = np.eye(len(counts.videos), dtype=np.int64)
    rates = track_rates(counts, each)
    sizes = {name: counts.table[name].astype(np.int64) for name in _COUNTS}
    table = pl.DataFrame({"video": pl.Series(counts.videos, dtype=pl.String), **sizes, **rates})
    return table.with_columns(pl.col(name).fill_nan(None) for name in rates)


def build_track_table(pairs: TrackPairs, config: TrackingConfig) -> pl.DataFrame:
    """One row per ground-truth track: `tube`, `video`, `boxes`, how many were `found`, by how many `paths`, how often
    it was switched to another path or found again (`switches`, `fragmentations`), and the mean `overlap`."""
    matched = match_clear(pairs, config)
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
    counts: TrackCounts, group: str | None, weights: npt.NDArray[Any], resamples: int, seed: int
) -> list[dict[str, Any]]:
    """The rows of the summary of one part of the videos."""
    rates, totals = track_rates(counts, weights), counts.totals(weights)
    units = Units(int(weights.sum()), resamples, seed)
    drawn = resample_rates(counts, weights, units) if resamples and units.n > 1 else None
    rows = []
    for metric, value in rates.items():
        valid = not np.isnan(value)
        interval = None
        if drawn is not None and valid:
            interval = units.interval(float(value), drawn[metric], get_tracking_scale(metric))
        row = {
            **dict.fromkeys(SUMMARY),
            "group": group,
            "metric": metric,
            "value": float(value) if valid else None,
            "valid": valid,
            "n": int(totals["tracks" if metric in _OF_TRACKS else "truth"]),
            "reason": None if valid else "there is nothing to divide by",
            **build_interval_columns(interval, "video"),
        }
        rows.append(row)
    return rows


# Which score a detector's boxes need where each of them counts in full: the one that tracks best.

METRICS = ("precision", "recall", "f1", "mota", "hota")
STEPS = tuple(round(0.05 + 0.01 * step, 2) for step in range(76))
"""Floors that are tried: every hundredth from 0.05 to 0.8."""


def score_floors(
    tubes: Predictions,
    scenes: Scenes,
    config: TrackingConfig | None = None,
    floors: Sequence[float] = STEPS,
) -> pl.DataFrame:
    """Tracking metrics of the boxes of paths from each score on.

    Args:
        tubes: linked detections with all their weak boxes.
        scenes: ground truth that the detector neither learnt from nor is judged on.
        config: how paths are judged (default: `TrackingConfig.default()`). Its floor has no meaning here.
        floors: scores to try.

    Returns:
        A row for each floor, rising: `min_score` and `METRICS`, fractions, null where undefined.

    Raises:
        InputError: as `evaluate_tracks`.
    """
    config = config or TrackingConfig.default()
    rows = []
    for floor in sorted(floors):
        found = evaluate_tracks(tubes, scenes, replace(config, min_score=floor)).of_group()
        values = dict(zip(found["metric"].to_list(), found["value"].to_list(), strict=True))
        rows.append({"min_score": floor, **{name: values[name] for name in METRICS}})
    return pl.DataFrame(rows, schema=dict.fromkeys(("min_score", *METRICS), pl.Float64))


def select_best_threshold(table: pl.DataFrame) -> float:
    """The floor with the greatest F1 of boxes; the lowest of equals.

    Args:
        table: as `score_floors` gave it.

    Raises:
        InputError: if F1 is nowhere defined, or 0 everywhere.

    >>> select_best_threshold(pl.DataFrame({"min_score": [0.1, 0.2, 0.3], "f1": [0.4, 0.6, 0.6]}))
    0.2
    """
    best = table.filter(pl.col("f1") == pl.col("f1").max())
    if best.is_empty() or not best["f1"][0]:
        raise InputError("no floor tells boxes from weak ones: none meets the truth, or there is none")
    return float(best["min_score"].min())  # type: ignore[arg-type]
