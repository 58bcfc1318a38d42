"""Agreement beyond chance on nominal labels: Cohen's kappa of two annotators, Krippendorff's alpha of any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats


def cohen_kappa(
    first: npt.ArrayLike, second: npt.ArrayLike, times: npt.ArrayLike | None = None
) -> float | None:
    """How far two annotators agree beyond chance.

    kappa = (p_o - p_e) / (1 - p_e), in [-1, 1], higher is better; p_o is the share of equal labels, p_e
    the share expected if both drew from their own frequencies.

    Args:
        first: (n,) labels as whole numbers.
        second: (n,) labels of the same items.
        times: (n,) how many items each row stands for; one unless given.

    Returns:
        None where it is undefined: no items, or both always give one and the same label.

    Source: Cohen, Educational and Psychological Measurement 20, 1960.

    >>> cohen_kappa([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    weight = _weights(times, len(one))
    whole = int(weight.sum())
    if not whole:
        return None
    classes = int(max(one.max(), two.max())) + 1
    a, b = (np.bincount(labels, weight, minlength=classes) for labels in (one, two))
    # Whole numbers until the last step: a single answer everywhere is exactly undefined.
    expected = float(a @ b)
    if expected >= whole**2:
        return None
    equal = float(weight[one == two].sum())
    return (equal * whole - expected) / (whole**2 - expected)


def krippendorff_alpha(raters: Sequence[npt.ArrayLike], times: npt.ArrayLike | None = None) -> float | None:
    """How far any number of annotators agree beyond chance, on nominal labels, with gaps.

    alpha = 1 - D_o / D_e, at most 1, higher is better: observed over expected disagreement, each pair of
    labels within an item weighing 1 / (labels of the item - 1).

    Args:
        raters: (n,) labels of each annotator as whole numbers, -1 where he gave none.
        times: (n,) how many items each row stands for; one unless given.

    Returns:
        None where it is undefined: no item with two labels, or one and the same label everywhere.

    Source: Krippendorff, Content Analysis, 2004, chapter 11.

    >>> round(krippendorff_alpha([[0, 0, 1, 1], [0, 1, 1, 1]]), 4)
    0.5333
    """
    observed, counts = disagreements(raters)
    weight = _weights(times, len(observed))
    return alpha_of(float(weight @ observed), weight @ counts)


def disagreements(raters: Sequence[npt.ArrayLike]) -> tuple[Floats, Floats]:
    """(n,) observed disagreement and (n, c) counts of the labels of each item; zeros below two labels.

    They add up over items, so that alpha of any part or resample is `alpha_of` of sums.

    Args:
        raters: (n,) labels of each annotator as whole numbers, -1 where he gave none.
    """
    table = np.array([np.asarray(labels, dtype=np.int64) for labels in raters]).T
    if not table.size or table.max() < 0:
        return np.zeros(len(table)), np.zeros((len(table), 1))
    counts = np.stack([(table == label).sum(axis=1) for label in range(int(table.max()) + 1)], axis=1)
    given = counts.sum(axis=1).astype(np.float64)
    found = np.where((given >= 2)[:, None], counts, 0).astype(np.float64)
    observed = np.where(given >= 2, given**2 - (found**2).sum(axis=1), 0.0)
    shares: Floats = observed / np.maximum(given - 1.0, 1.0)
    return shares, found


def alpha_of(observed: float, frequencies: Floats) -> float | None:
    """Krippendorff's alpha of sums over items.

    Args:
        observed: disagreement.
        frequencies: (c,) of the labels.

    Returns:
        None where it is undefined: no labels, or one and the same everywhere.
    """
    whole = float(frequencies.sum())
    if whole <= 1.0:
        return None
    expected = (whole**2 - float((frequencies**2).sum())) / (whole - 1.0)
    return 1.0 - observed / expected if expected > 0 else None


def _weights(times: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64]:
    return np.ones(count) if times is None else np.asarray(times, dtype=np.float64)
