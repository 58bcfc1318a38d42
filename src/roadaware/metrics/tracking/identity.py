"""Identity metrics: the share of boxes that a one-to-one pairing of tracks and paths explains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roadaware.arrays import Floats
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.pairs import TrackPairs


def identity_counts(pairs: TrackPairs, config: TrackingConfig) -> dict[str, Floats]:
    """Boxes that lie on the path of their track, for each video.

    Tracks and paths are paired one to one so that the number of frames in which the boxes of a pair
    overlap by at least the threshold is greatest; that number is IDTP. The other true boxes are IDFN, the
    other claims IDFP.

    Args:
        pairs: tracks and paths.
        config: with the threshold.

    Returns:
        (V,) `id_tp`.

    Source: Ristani et al., ECCV 2016 workshops, section 3. Pairing for the fewest IDFN + IDFP, as written
    there, pairs for the greatest IDTP, since IDFN + IDFP = truth + claims - 2 IDTP.
    """
    from scipy.optimize import linear_sum_assignment

    totals = np.zeros(len(pairs.videos))
    track, path, which = pairs.track_pairs
    together = np.bincount(which[pairs.similarity >= config.threshold], minlength=len(track))
    video = pairs.truth.video[track]
    for at in np.unique(video[together > 0]):
        rows = np.flatnonzero((video == at) & (together > 0))
        tracks, row = np.unique(track[rows], return_inverse=True)
        paths, column = np.unique(path[rows], return_inverse=True)
        matrix = np.zeros((len(tracks), len(paths)))
        matrix[row, column] = together[rows]
        totals[at] = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    return {"id_tp": totals}


def identity_rates(totals: Mapping[str, Floats], undefined: str) -> dict[str, Floats]:
    """IDF1 = IDTP / (IDTP + IDFN / 2 + IDFP / 2), IDR = IDTP / truth, IDP = IDTP / claims, each in [0, 1].

    Args:
        totals: (...) `id_tp`, `truth`, `claims`.
        undefined: `null` gives NaN where there is nothing to divide by, `published` 0.

    Source: Ristani et al., ECCV 2016 workshops, section 3.
    """
    tp, truth, claims = totals["id_tp"], totals["truth"], totals["claims"]
    nothing = np.nan if undefined == "null" else 0.0
    below = {"idf1": (truth + claims) / 2, "id_re": truth, "id_pr": claims}
    return {name: np.where(n > 0, tp / np.maximum(n, 0.5), nothing) for name, n in below.items()}
