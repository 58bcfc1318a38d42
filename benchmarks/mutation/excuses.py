"""Changes that no test can find, because they change nothing that is promised, each with the reason."""

from __future__ import annotations

_SIZE = "how much is computed at once, which alters no result"
_ROUNDING = "differs only exactly at the bound of rounding noise, where either answer holds"
_QUARTERS = "sums of ranks are whole quarters, so that nothing lies that near the bound"
_WIDER = "the same minimum is found in the wider interval"
_AT_END = "brentq gives an end of the interval where the slope is 0 there"
_SEED = "which random numbers are drawn is not promised"
_NEVER_NEAR = "tracks and paths that never come that near add nothing"
_TOGETHER = "width and height are known together or not"
_NEGATIVE = "numpy takes any negative length for what is left"
_SPARE = "a further row or column of the same, which nothing reads"
_NOWHERE = "any number below 0 says that there is none"
_WALK = "a walk that goes on after all is found finds no more"
_TIES = "more predictions are asked for ties than have them"
_UNREAD = "nothing reads it where that is not judged"
_KEYS = "keys that lie further apart are told apart alike"
_SILENT = "only whether there is any is asked, and where there is none after all nothing differs"

EXCUSES: dict[str, dict[str, str]] = {
    "statistics.intervals": {
        ": 1 -> 2": _SIZE,
        ": 21 -> 22": _SIZE,
        "Units._jackknife: np.abs(changes).max() < _STILL -> np.abs(changes).max() <= _STILL": _ROUNDING,
        "_steady: value > 1 - _STILL -> value >= 1 - _STILL": _ROUNDING,
        "_steady: value < _STILL -> value <= _STILL": _ROUNDING,
    },
    "statistics.classification": {
        "balanced_accuracy: 0.0 -> 1.0": "only whether it is a number is asked, which a docstring says",
        ": 8000000 -> 8000001": _SIZE,
        "Ranking._block: len(self.group_starts) < len(self.positives) -> "
        "len(self.group_starts) <= len(self.positives)": "sums of single numbers are those numbers",
        "_single: 1 -> 2": _SPARE,
        "_single: 1 -> 2 #2": _SPARE,
    },
    "statistics.conformal": {
        "compute_quantile_interval: 1e-09 -> 1.0000000000000001e-07": _ROUNDING,
        "compute_quantile_interval: share == share[0] -> share != share[0]": "the way for any weights gives the same, slower",
        "compute_quantile_interval: reached >= end -> reached > end": _ROUNDING,
    },
    "statistics.coverage": {
        ": 1 -> 2": _SIZE,
        ": 24 -> 25": _SIZE,
        ": 1 << 24 -> 1 >> 24": _SIZE,
        "compute_nearest_distances: np.zeros(len(here)) -> np.ones(len(here))": "each place is written",
        "compute_nearest_distances: _BLOCK // len(there) -> _BLOCK * len(there)": _SIZE,
        "compute_nearest_distances: 1 -> 2 #5": _SIZE,
        "_from_one: far <= 1e-06 * (squares + squares[place]) -> far < 1e-06 * (squares + squares[place])": _ROUNDING,
    },
    "statistics.calibration": {
        "AdaptiveBins._first_enough: start > limit -> start >= limit": "one sample is never enough",
        "AdaptiveBins._lent: target <= last -> target < last": "who lacks nothing is lent nothing",
        "fit_temperature: 1 -> 2": _WIDER,
        "fit_temperature: 1 -> 2 #2": _WIDER,
    },
    "metrics.calibration": {
        "CalibrationCore._sums: 1 -> 2 #2": _NEGATIVE,
        "CalibrationCore.expected_if_calibrated: generator.random(len(self.sums))[person] < self.descending -> "
        "generator.random(len(self.sums))[person] <= self.descending": "a number that is drawn equals no other",
        "evaluate_coverage: 2 -> 3 #3": _SEED,
        "evaluate_coverage: 1 -> 2 #4": _SEED,
    },
    "metrics.pedestrians": {
        "select_wrong_class: 1.0 -> 1.01 #2": "below every tally, however far",
        "select_wrong_class: 1.0 -> 1.01 #3": "below every tally, however far",
    },
    "metrics.multi_seed": {
        "_row: of is not None and values -> of is not None or values": "both are there or neither is",
    },
    "metrics.detection.evaluate": {
        "prepare_labels: np.zeros((len(rows), len(classes))) -> "
        "np.ones((len(rows), len(classes)))": "scores of labels that are not predicted are read nowhere",
    },
    "metrics.detection.rows": {
        "compute_scales: 1 -> 2": _TOGETHER,
        "_validate_sizes: 0 -> 1": _TOGETHER,
        "_sizes: 1 -> 2": _NEGATIVE,
        "_validate_sizes: 0 -> 1 #2": _TOGETHER,
    },
    "metrics.detection.kernels": {
        "assign_tubes: t < found -> t <= found": "a tube in its own place is the same match",
    },
    "metrics.actions": {
        "JudgedActions.measured: 1 -> 2": _SPARE,
        "JudgedActions.merge: 1 -> 2": "places only rank predictions, so that they may begin with any number",
    },
    "metrics.metric_state": {
        ": 64 -> 65": _SIZE,
        "build_result: 0 -> 1 #2": _SEED,
        "compute_values: 1 -> 2": _SPARE,
        "_rows: 1 -> 2 #2": _SPARE,
        "_in_order: 0.0 -> 1.0": "the same of all that begin with no number",
    },
    "metrics.corner_cases.evaluate": {
        "JudgedCorners._recalls: 1 -> 2": "a further class without objects, which counts in no mean",
    },
    "metrics.relation_kernels": {
        "find_first_from: frames[low] >= frame -> frames[low] > frame": "a search finds the same",
        "find_first_from: 1 -> 2 #2": "a search finds the same",
        "score_tubelets: 1 -> 2": _SPARE,
        "find_triplets: 0 -> 1 #2": _SILENT,
        "find_triplets: silent += 1 -> silent -= 1": _SILENT,
        "find_triplets: 1 -> 2 #18": _SILENT,
        "_stands: return False -> None": "both are false",
        "collect_true_triplets: 64 -> 65": _SIZE,
        "collect_true_triplets: 4 -> 5": _SPARE,
        "find_triplets: 1 -> 2": _SPARE,
        "find_triplets: 3 -> 4": _SPARE,
        "find_triplets: 1 -> 2 #2": _NOWHERE,
        "find_triplets: min(limits[1], len(same)) -> max(limits[1], len(same))": _SPARE,
        "find_triplets: high - low -> high + low": _WALK,
        "find_triplets: missing -= _take(truth, low, high, triplet[c], boxes[s], boxes[o], numbers, how, n, rank) -> "
        "missing += _take(truth, low, high, triplet[c], boxes[s], boxes[o], numbers, how, n, rank)": _WALK,
        "_order_ties: row[c] < first[pair[c]] -> row[c] <= first[pair[c]]": "no two predictions are the same row",
        "_take: found += 1 -> found -= 1": _WALK,
        "_take: found += 1 -> found -= 1 #2": _WALK,
    },
    "metrics.relations": {
        ": 1 -> 2": "more than there can be, either way",
        ": 62 -> 63": "more than there can be, either way",
        "match_triplets: 1 -> 2": _SPARE,
        "match_triplets: 1 -> 2 #2": _SPARE,
        "_find_ties: (video[1:] == video[:-1]) & (score[1:] == score[:-1]) -> "
        "(video[1:] == video[:-1]) | (score[1:] == score[:-1])": _TIES,
        "_find_ties: 0 -> 1": "runs are told apart, whatever their numbers",
        "_find_ties: np.bincount(run[1:][alike & (pair[1:] != pair[:-1])], minlength=len(video) + 1) > 0 -> "
        "np.bincount(run[1:][alike & (pair[1:] != pair[:-1])], minlength=len(video) + 1) >= 0": _TIES,
        "_find_ties: alike & (pair[1:] != pair[:-1]) -> alike | (pair[1:] != pair[:-1])": _TIES,
        "_find_ties: 1 -> 2 #8": _SPARE,
        "_group_rows: 0 -> 1 #2": _KEYS,
        "_group_rows: 1 -> 2 #2": _KEYS,
        "match_video_tubelets: 1 -> 2 #2": _NOWHERE,
        "match_video_tubelets: 2 -> 3 #2": _SPARE,
        "build_truth_table: 1 -> 2": _NOWHERE,
        "evaluate: 0 -> 1 #2": _SEED,
        "_state: np.zeros(shape, dtype=np.int64) -> np.ones(shape, dtype=np.int64)": _UNREAD,
        "_state: np.zeros((*shape[:2], 2), dtype=np.int64) -> np.ones((*shape[:2], 2), dtype=np.int64)": _UNREAD,
        "_state: 2 -> 3 #3": _UNREAD,
        "_state: np.zeros(shape, dtype=np.int64) -> np.ones(shape, dtype=np.int64) #2": _UNREAD,
        "_state: np.zeros(shape) -> np.ones(shape)": _UNREAD,
    },
    "metrics.grounding": {
        "sample_frames: len(taken) > most -> len(taken) >= most": "as many as may be taken are all taken",
        "_looked_at: np.zeros(0, dtype=np.int64) -> np.ones(0, dtype=np.int64)": "no number in it",
        "_looked_at: 0 -> 1": "nothing reads it where every frame is considered",
        ": 1 << 22 -> 1 >> 22": _SIZE,
        ": 1 -> 2": _SIZE,
        ": 22 -> 23": _SIZE,
        "_best: 1 -> 2": _SIZE,
        "_best: _AT_ONCE // places ** 2 -> _AT_ONCE * places ** 2": _SIZE,
        "_best: places ** 2 -> places * 2": _SIZE,
        "_best: 2 -> 3 #2": _SIZE,
        "evaluate: 0 -> 1 #2": _SEED,
    },
    "metrics.sound": {
        "build_sound_truth: False -> True": "owners are told apart, whatever their numbers",
        ": 1 << 22 -> 1 >> 22": _SIZE,
        ": 1 -> 2": _SIZE,
        ": 22 -> 23": _SIZE,
        ": 64 -> 65": _SIZE,
        "map_chunks: 1 -> 2": _SIZE,
        "map_chunks: _CELLS_AT_ONCE // max(size * size, int(cells)) -> "
        "_CELLS_AT_ONCE * max(size * size, int(cells))": _SIZE,
        "map_chunks: max(size * size, int(cells)) -> min(size * size, int(cells))": _SIZE,
        "_check_shapes: wide > 0 -> wide >= 0": "a remainder of a division by 0 is unknown, and refused",
        "evaluate: 0 -> 1 #2": _SEED,
    },
    "metrics.sound_kernels": {
        "count_votes: 1 -> 2 #2": "no owner has a number below 0",
    },
    "metrics.corner_cases.kernels": {
        "_match: 1 - 1e-10 -> 1 + 1e-10": _ROUNDING,
        "_match: 1e-10 -> 1e-08": _ROUNDING,
    },
    "metrics.tracking": {
        ": 1000.0 -> 1001.0": "more than all overlaps of a frame together, either way",
        ": 0.05 -> 0.0505": "rounded to the same hundredths",
        "identity_counts: together > 0 -> together >= 0": _NEVER_NEAR,
        "identity_counts: together > 0 -> together >= 0 #2": _NEVER_NEAR,
        "evaluate_tracks: 0 -> 1 #2": _SEED,
    },
    "statistics.average_precision": {
        ": 1024 -> 1025": _SIZE,
        "average_precision: 1 -> 2 #2": _SPARE,
        "resample_average_precision: np.zeros((0, thresholds)) -> np.ones((0, thresholds))": "no number in it",
        "compute_tied_span: 2 -> 3 #2": _SPARE,
    },
    "statistics.average_precision_kernels": {
        "accumulate_precision_areas: 0 -> 1": "counts of each threshold are the same where nothing is passed over",
        "accumulate_precision_areas: 1 -> 2 #3": _SPARE,
        "_last_hit: 1 -> 2 #5": "every row before the first says that there is none",
        "_count_reached_recalls: 100 -> 101": "a step too many is taken off again",
    },
    "statistics.comparison": {
        "friedman_test: scatter <= 1e-12 -> scatter < 1e-12": _QUARTERS,
        "friedman_test: 1e-12 -> 1e-10": _QUARTERS,
        "wilcoxon_test: np.abs(sums - place.sum() / 2) >= off - 1e-09 -> "
        "np.abs(sums - place.sum() / 2) > off - 1e-09": _QUARTERS,
        "wilcoxon_test: 1e-09 -> 1.0000000000000001e-07": _QUARTERS,
    },
    "statistics.distributions": {
        "fit_weibull: -float(refined.fun) >= found[best] -> -float(refined.fun) > found[best]": "either is as likely",
        "fit_weibull: 1 -> 2 #3": _WIDER,
        "fit_weibull: 1 -> 2 #4": _WIDER,
        "_given: slope(low) >= 0 -> slope(low) > 0": _AT_END,
        "_given: slope(high) <= 0 -> slope(high) < 0": _AT_END,
    },
}
"""By module below `roadaware.`: key of the change, and why it is equivalent. One that is found is stale."""
