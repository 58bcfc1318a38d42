"""CLEAR: boxes that are missed, made up, or handed from one path to another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.pairs import EPSILON, TrackPairs, crowded_frames, solved

_KEPT = 1000.0
"""What a pair that goes on from the frame before is worth more than any other, in overlaps."""
_MOSTLY, _LOST = 0.8, 0.2


def clear_counts(pairs: TrackPairs, config: TrackingConfig) -> dict[str, Floats]:
    """Sums of CLEAR for each video.

    In each frame boxes are assigned that overlap by at least the threshold: first as many as go on from
    the frame before, then for the greatest sum of overlaps. A track's box whose path is another than that
    of its last assigned box is a switch; each time after the first that a track is found again is a
    fragmentation. Frames in which one side has no box are passed over, so that they break nothing.

    Args:
        pairs: tracks and paths.
        config: with the threshold.

    Returns:
        (V,) `clear_tp`, `overlap` (sum over them), `switches`, `fragmentations`, and how many tracks are
        `mostly_tracked` (found in more than 80 % of their boxes), `partly_tracked` and `mostly_lost`
        (in less than 20 %).

    Source: Bernardin and Stiefelhagen, EURASIP JIVP 2008; Wu and Nevatia, CVPR 2006 (tracked and lost);
    as counted by TrackEval (Luiten et al., IJCV 2021).
    """
    n = len(pairs.videos)
    matched = clear_matches(pairs, config)
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


def clear_matches(pairs: TrackPairs, config: TrackingConfig) -> Ints:
    """The pairs that are assigned, by frame.

    Frames where nothing competes are assigned at once; the others one after the other, since each leans on
    the frame before.
    """
    alone, crowded = crowded_frames(pairs, np.flatnonzero(pairs.similarity >= config.threshold - EPSILON))
    path = np.full(len(pairs.truth.track), -1, dtype=np.int64)
    path[pairs.true_box[alone]] = pairs.claims.track[pairs.claimed_box[alone]]
    before = _frame_before(pairs)
    found = [alone]
    for rows in crowded:
        frame = int(before[pairs.frame[rows[0]]])
        last = slice(pairs.truth.start[frame], pairs.truth.start[frame + 1]) if frame >= 0 else slice(0)
        held = dict(zip(pairs.truth.track[last].tolist(), path[last].tolist(), strict=True))
        tracks = pairs.truth.track[pairs.true_box[rows]].tolist()
        goes_on = pairs.claims.track[pairs.claimed_box[rows]] == [held.get(track, -1) for track in tracks]
        chosen = solved(pairs, rows, _KEPT * goes_on + pairs.similarity[rows])
        path[pairs.true_box[chosen]] = pairs.claims.track[pairs.claimed_box[chosen]]
        found.append(chosen)
    return np.sort(np.concatenate(found))


def track_events(pairs: TrackPairs, matched: Ints) -> tuple[Ints, Ints, Bools, Bools]:
    """Track and path of each assigned pair by track and time, and whether it is switched or found again."""
    order = matched[np.lexsort((pairs.frame[matched], pairs.truth.track[pairs.true_box[matched]]))]
    track = pairs.truth.track[pairs.true_box[order]]
    path = pairs.claims.track[pairs.claimed_box[order]]
    both = _both(pairs)
    place = np.cumsum(both)[pairs.frame[order]]
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = track[1:] == track[:-1]
    switched, again = same.copy(), same.copy()
    switched[1:] &= path[1:] != path[:-1]
    again[1:] &= place[1:] != place[:-1] + 1
    return track, path, switched, again


def _both(pairs: TrackPairs) -> Bools:
    """(F,) the frames in which both sides have boxes."""
    both: Bools = (np.diff(pairs.truth.start) > 0) & (np.diff(pairs.claims.start) > 0)
    return both


def _frame_before(pairs: TrackPairs) -> Ints:
    """(F,) the last frame before each, in its video, in which both sides have boxes; -1 where none is."""
    both = _both(pairs)
    last = np.maximum.accumulate(np.where(both, np.arange(len(both)), -1))
    before = np.concatenate([[-1], last])[: len(both)].astype(np.int64)
    elsewhere = (before >= 0) & (pairs.frame_video[before] != pairs.frame_video)
    before[elsewhere] = -1
    return before


def clear_rates(totals: Mapping[str, Floats], undefined: str) -> dict[str, Floats]:
    """MOTA and its kin.

    MOTA = 1 - (FN + FP + switches) / truth, at most 1 and without lower end; MODA leaves out the switches;
    MOTP is the mean overlap of true positives, in [0, 1]; recall, precision and F1 of boxes; the shares of
    tracks that are mostly tracked, partly tracked and mostly lost. Lower is better for the last and for the
    numbers of switches and fragmentations, which are given as they are.

    Args:
        totals: (...) the sums of `clear_counts`, `truth`, `claims`, `tracks`.
        undefined: `null` gives NaN where there is nothing to divide by, `published` takes 1 for the divisor.

    Source: Bernardin and Stiefelhagen, EURASIP JIVP 2008, equations 1 and 2.
    """
    tp, truth, claims, tracks = (totals[name] for name in ("clear_tp", "truth", "claims", "tracks"))
    fp, switches = claims - tp, totals["switches"]
    shares = {
        "mota": (tp - fp - switches, truth),
        "moda": (tp - fp, truth),
        "motp": (totals["overlap"], tp),
        "recall": (tp, truth),
        "precision": (tp, claims),
        "f1": (tp, (truth + claims) / 2),
        **{name: (totals[name], tracks) for name in ("mostly_tracked", "partly_tracked", "mostly_lost")},
    }
    rates: dict[str, Floats] = {}
    for name, (above, below) in shares.items():
        rate = above / np.where(below > 0, below, 1.0)
        rates[name] = np.where(below > 0, rate, np.nan) if undefined == "null" else rate
    return {**rates, "switches": switches, "fragmentations": totals["fragmentations"]}
