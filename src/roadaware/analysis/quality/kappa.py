"""Agreement beyond chance on nominal labels: Cohen's kappa of two annotators, Krippendorff's alpha of any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def cohen_kappa(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """How far two annotators agree beyond chance.

    kappa = (p_o - p_e) / (1 - p_e), in [-1, 1], higher is better; p_o is the share of equal labels, p_e
    the share expected if both drew from their own frequencies.

    Args:
        first: (n,) labels as whole numbers.
        second: (n,) labels of the same items.

    Returns:
        None where it is undefined: no items, or both always give one and the same label.

    Source: Cohen, Educational and Psychological Measurement 20, 1960.

    >>> cohen_kappa([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if not len(one):
        return None
    classes = int(max(one.max(), two.max())) + 1
    shares = [np.bincount(labels, minlength=classes) / len(one) for labels in (one, two)]
    expected = float(shares[0] @ shares[1])
    if expected >= 1.0:
        return None
    return (float(np.mean(one == two)) - expected) / (1.0 - expected)


def krippendorff_alpha(raters: Sequence[npt.ArrayLike]) -> float | None:
    """How far any number of annotators agree beyond chance, on nominal labels, with gaps.

    alpha = 1 - D_o / D_e, at most 1, higher is better: observed over expected disagreement, each pair of
    labels within an item weighing 1 / (labels of the item - 1).

    Args:
        raters: (n,) labels of each annotator as whole numbers, -1 where he gave none.

    Returns:
        None where it is undefined: no item with two labels, or one and the same label everywhere.

    Source: Krippendorff, Content Analysis, 2004, chapter 11.

    >>> round(krippendorff_alpha([[0, 0, 1, 1], [0, 1, 1, 1]]), 4)
    0.5333
    """
    table = np.array([np.asarray(labels, dtype=np.int64) for labels in raters]).T
    if not table.size or table.max() < 0:
        return None
    counts = np.stack([(table == label).sum(axis=1) for label in range(int(table.max()) + 1)], axis=1)
    given = counts.sum(axis=1)
    counts, given = counts[given >= 2].astype(np.float64), given[given >= 2].astype(np.float64)
    whole = float(given.sum())
    if whole == 0:
        return None
    frequencies = counts.sum(axis=0)
    expected = (whole**2 - float((frequencies**2).sum())) / (whole - 1.0)
    if expected <= 0:
        return None
    observed = float(((given**2 - (counts**2).sum(axis=1)) / (given - 1.0)).sum())
    return 1.0 - observed / expected
