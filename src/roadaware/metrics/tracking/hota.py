"""HOTA: how well boxes are found, and how well those of one track are kept together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roadaware.arrays import Floats
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.pairs import EPSILON, TrackPairs, assigned


def hota_counts(pairs: TrackPairs, config: TrackingConfig) -> dict[str, Floats]:
    """Sums of HOTA for each video and alpha.

    In each frame boxes are assigned so that the sum of A(t, p) S is greatest, where S is the overlap of
    the boxes and A(t, p) how well track t and path p agree as wholes: with s the sum over frames of
    S / (sum of S of the true box + sum of S of the claimed box - S), A = s / (|t| + |p| - s). An assigned
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
    of_track, of_path = pairs.truth.lengths[track], pairs.claims.lengths[path]
    shared = np.bincount(which, weights=_normalised(pairs))
    agreement = shared / (of_track + of_path - shared)
    matched = assigned(pairs, agreement[which] * pairs.similarity)
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


def _normalised(pairs: TrackPairs) -> Floats:
    """(P,) the overlap of each pair as a share of all overlap of its two boxes."""
    similarity = pairs.similarity
    of_true = np.bincount(pairs.true_box, weights=similarity)[pairs.true_box]
    of_claimed = np.bincount(pairs.claimed_box, weights=similarity)[pairs.claimed_box]
    total = of_true + of_claimed - similarity
    shares: Floats = np.where(total > EPSILON, similarity / np.maximum(total, EPSILON), 0.0)
    return shares


def hota_rates(totals: Mapping[str, Floats], undefined: str) -> dict[str, Floats]:
    """HOTA and its parts as means over alpha, each in [0, 1]; higher is better.

    At each alpha DetA = TP / (TP + FN + FP), AssA the mean of TPA / (TPA + FNA + FPA) over true positives,
    HOTA = sqrt(DetA AssA), and LocA the mean overlap of true positives. DetRe, DetPr, AssRe and AssPr are
    the recall and precision of both; OWTA = sqrt(DetRe AssA) asks for no precision.

    Args:
        totals: `truth`, `claims`: (...) boxes; the sums of `hota_counts`: (..., A).
        undefined: `null` gives NaN where there is neither truth nor claim, and for LocA where an alpha has no
            true positive; `published` gives 0, and 1 for LocA.

    Source: Luiten et al., HOTA, IJCV 2021, equations 15 to 30.
    """
    tp = totals["hota_tp"]
    truth, claims = (totals[name][..., None] for name in ("truth", "claims"))
    found = np.maximum(1, tp)
    det = tp / np.maximum(1, truth + claims - tp)
    recall = tp / np.maximum(1, truth)
    association = totals["ass_a"] / found
    rates = {
        "hota": np.sqrt(det * association),
        "det_a": det,
        "ass_a": association,
        "det_re": recall,
        "det_pr": tp / np.maximum(1, claims),
        "ass_re": totals["ass_re"] / found,
        "ass_pr": totals["ass_pr"] / found,
        "owta": np.sqrt(recall * association),
        "loc_a": np.where(tp > 0, totals["loc"] / found, 1.0),
    }
    if undefined == "null":
        there = {"det_re": truth, "det_pr": claims, "owta": truth, "loc_a": tp}
        for name, values in rates.items():
            rates[name] = np.where(there.get(name, truth + claims) > 0, values, np.nan)
    return {name: values.mean(axis=-1) for name, values in rates.items()}
