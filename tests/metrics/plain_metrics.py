"""A plain slow version of the pedestrian metrics: one pedestrian, one metric at a time, by scikit-learn."""

import math
import warnings
from collections import Counter

import numpy as np
from sklearn import metrics as sk

UNDEFINED = math.nan


def plain_metrics(scores, truth, people, tte, config, max_tte=None):
    """Every metric of the samples (in order of extraction) by name, NaN where undefined."""
    scores, truth = np.asarray(scores, float), np.asarray(truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _rates("", truth, _decide(scores), None, scores, config)
        weights = _weights(scores, truth, tte, config, max_tte)
        if config.task != "intention":
            if weights is None:
                found |= dict.fromkeys((f"weighted_{name}" for name in RATES), UNDEFINED)
            else:
                found |= _rates("weighted_", truth, _decide(scores), weights, scores, config)
        found |= _areas(scores, truth, config)
        found |= _instances(scores, truth, people, config)
    return found


RATES = ("accuracy", "balanced_accuracy", "precision", "recall", "f1")


def _decide(scores):
    return np.round(scores[:, 0]).astype(int) if scores.shape[1] == 1 else scores.argmax(1)


def _weights(scores, truth, tte, config, max_tte):
    if config.task == "risk":
        n = scores.shape[1]
        half = list(range(math.ceil(n / 2)))
        ranks = half[::-1] + (half[1:] if n % 2 else half)
        w = [math.exp(-0.5 * ((r / math.ceil(n / 2)) / config.risk_sigma) ** 2) for r in ranks]
        return np.array([w[t] for t in truth])
    if config.task == "intention" or tte is None or not len(tte):
        return None
    longest = max(tte) if max_tte is None else max_tte
    if longest <= 0:
        return None
    d = (longest - np.asarray(tte)) / longest
    w = np.exp(-0.5 * (d / config.tte_sigma) ** 2)
    return w / w.sum()


def _rates(prefix, truth, decided, weight, scores, config):
    k = max(2, scores.shape[1])
    if not len(truth):
        return {prefix + name: UNDEFINED for name in RATES}
    if config.zero_division is None:
        extra = {"labels": range(k), "zero_division": np.nan}
    else:
        extra = {"zero_division": config.zero_division}
    if scores.shape[1] == 1:
        shared = {"average": "binary", "zero_division": extra["zero_division"], "sample_weight": weight}
    else:
        shared = {"average": None, "sample_weight": weight, **extra}
    found = {
        "accuracy": sk.accuracy_score(truth, decided, sample_weight=weight),
        "precision": np.mean(sk.precision_score(truth, decided, **shared)),
        "recall": np.mean(sk.recall_score(truth, decided, **shared)),
        "f1": np.mean(sk.f1_score(truth, decided, **shared)),
    }
    all_classes = set(truth) == set(range(k))
    if config.zero_division is None and not all_classes:
        found["balanced_accuracy"] = UNDEFINED
    else:
        found["balanced_accuracy"] = sk.balanced_accuracy_score(truth, decided, sample_weight=weight)
    return {prefix + name: found[name] for name in RATES}


def _areas(scores, truth, config):
    k = scores.shape[1]
    both = len(set(truth)) == 2
    if k == 1:
        return {
            "average_precision": sk.average_precision_score(truth, scores[:, 0]) if 1 in truth else UNDEFINED,
            "auc": sk.roc_auc_score(truth, scores[:, 0]) if both else UNDEFINED,
            "auc_thresholded": sk.roc_auc_score(truth, _decide(scores)) if both else UNDEFINED,
        }
    full = set(truth) == set(range(k))
    normal = np.allclose(1, scores.sum(axis=1))
    found = {"auc_thresholded": UNDEFINED, "average_precision": UNDEFINED, "auc": UNDEFINED}
    if full:
        found["average_precision"] = np.mean([_ap(truth == c, scores[:, c]) for c in range(k)])
        found["auc"] = np.mean([sk.roc_auc_score(truth == c, scores[:, c]) for c in range(k)])
        if config.auc_needs_normalised_rows and not normal:
            found["auc"] = UNDEFINED
        elif normal and k > 2:
            found["auc"] = sk.roc_auc_score(truth, scores, multi_class="ovr")
        if k > 2:
            found["average_precision"] = sk.average_precision_score(truth, scores)
    word = "region" if config.task == "risk" else "class"
    for c in range(k):
        found[f"average_precision_{word}_{c}"] = _ap(truth == c, scores[:, c])
    if config.task == "risk":
        for r in range(math.ceil(k / 2)):
            pair = sorted({math.ceil(k / 2) - 1 - r, k // 2 + r})
            found[f"average_precision_risk_{r}"] = _ap(np.isin(truth, pair), scores[:, pair].sum(1))
    return found


def _ap(positive, score):
    return sk.average_precision_score(positive, score) if positive.any() else UNDEFINED


def _instances(scores, truth, people, config):
    actual, soft, hard, largest, mean = [], [], [], [], []
    for name in sorted(set(people)):
        rows = [i for i, who in enumerate(people) if who == name]
        s, t, votes = scores[rows], truth[rows].tolist(), _decide(scores[rows]).tolist()
        gt = t[0] if config.instance_truth == "first" else _mode(t)
        actual.append(gt)
        soft.append(_decide(s.mean(axis=0, keepdims=True))[0])
        hard.append(_hard(votes, s, gt, config))
        if len(rows) > 1:
            delta = np.abs(s[1:] - s[:-1])
            largest.append(delta.max())
            halved = config.delta_over_classes == "total_variation" and s.shape[1] > 1
            mean.append((delta.sum(axis=1) / 2).mean() if halved else delta.mean())
        elif config.single_sample_delta == "zero":
            largest.append(0.0)
            mean.append(0.0)
    actual = np.array(actual, dtype=int)
    found = _rates("soft_", actual, np.array(soft, dtype=int), None, scores, config)
    found |= _rates("hard_", actual, np.array(hard, dtype=int), None, scores, config)
    found["confidence_delta_max"] = np.mean(largest) if largest else UNDEFINED
    found["confidence_delta_mean"] = np.mean(mean) if mean else UNDEFINED
    return found


def _mode(values):
    counts = Counter(values)
    top = [v for v in counts if counts[v] == max(counts.values())]
    return max(top, key=lambda v: max(i for i, x in enumerate(values) if x == v))


def _hard(votes, scores, gt, config):
    agreed = np.mean(votes) == votes[0] if config.hard_vote == "mean" else len(set(votes)) == 1
    if agreed:
        return votes[0]
    if config.hard_wrong == "first_other" or scores.shape[1] == 1:
        return 1 if gt == 0 else 0
    counts = Counter(v for v in votes if v != gt)
    top = [v for v in sorted(counts) if counts[v] == max(counts.values())]
    return max(top, key=lambda v: scores[:, v].sum())
