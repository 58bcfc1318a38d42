"""A line through the whole past of a value, weighted by age: what the kernel follows in constant time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def weighted_line(
    times: npt.ArrayLike, values: npt.ArrayLike, tau_s: float, ridge_s2: float
) -> tuple[float, float]:
    """Value at the last time and slope of the line through all points, each weighing exp(-age / tau)."""
    t = np.asarray(times, np.float64) - np.asarray(times, np.float64)[-1]
    y, w = np.asarray(values, np.float64), np.exp(t / tau_s)
    w = w / w.sum()
    mean_t, mean_y = float(w @ t), float(w @ y)
    slope = float(w @ ((t - mean_t) * (y - mean_y))) / (float(w @ (t - mean_t) ** 2) + ridge_s2)
    return mean_y - slope * mean_t, slope
