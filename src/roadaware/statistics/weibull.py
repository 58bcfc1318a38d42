"""Weibull densities with a location, fitted by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from roadaware.arrays import Floats
from roadaware.errors import InputError

PARAMETERS = 3
_NEAREST, _FARTHEST, _STEPS = -6.0, 2.0, 49
"""Powers of ten: how far below the smallest value the location may lie, in ranges of the values."""
# Below 1 the likelihood has no greatest value; at 1e4 values spread by about 1e-4 of their distance.
_SHAPES = (1.0, 1e4)


@dataclass(frozen=True)
class Weibull:
    """A Weibull distribution of values above a location.

    Args:
        shape: at least 1 where it was fitted; 1 is the exponential distribution.
        scale: above 0, in the unit of the values.
        location: the smallest possible value.

    Source: Joseph et al., CVPR 2021 (ORE), section 3.4, for energies.
    """

    shape: float
    scale: float
    location: float

    def __post_init__(self) -> None:
        held = (self.shape, self.scale, self.location)
        if not all(isinstance(x, int | float) and np.isfinite(x) for x in held) or min(held[:2]) <= 0:
            raise InputError(f"shape and scale of a Weibull density are finite and above 0, not {held}")

    def log_density(self, values: npt.ArrayLike) -> Floats:
        """(n,) natural logarithm of the density at each value; -inf below the location.

        Args:
            values: (n,).
        """
        z = (np.asarray(values, dtype=np.float64) - self.location) / self.scale
        with np.errstate(divide="ignore"):
            log_z = np.log(np.maximum(z, 0.0))
        # At the location itself (shape - 1) * log z is 0 * -inf for the exponential distribution.
        rises = 0.0 if self.shape == 1 else (self.shape - 1) * log_z
        # Far above the scale exp gives inf, and the density is rightly 0 there.
        with np.errstate(over="ignore"):
            inside = np.log(self.shape / self.scale) + rises - np.exp(self.shape * log_z)
        found: Floats = np.where(z < 0, -np.inf, inside)
        return found


def fit_weibull(values: npt.ArrayLike) -> Weibull:
    """The Weibull density under which the values are likeliest, among those with a shape of at least 1.

    With a smaller shape the likelihood grows without bound as the location nears the smallest value, so that
    there is no best one. For a given location the best shape solves one equation; the location is looked for
    on 49 steps from a millionth of the range below the smallest value to 100 ranges below, then between.

    Args:
        values: (n,) with n above 3, not all equal.

    Raises:
        InputError: if there are fewer values than a fit needs, one is not finite, or all are equal.

    Source: Lawless, Statistical Models and Methods for Lifetime Data, section 5.2.
    """
    held = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if len(held) <= PARAMETERS:
        raise InputError(f"{len(held)} values are too few to fit a Weibull density: more than {PARAMETERS}")
    if not np.isfinite(held).all():
        raise InputError(f"{int((~np.isfinite(held)).sum())} of {len(held)} values are not finite")
    low, span = float(held[0]), float(held[-1] - held[0])
    # Relative to the values: rounding alone keeps large equal ones apart.
    if span <= 1e-9 * max(1.0, abs(low)):
        raise InputError(f"all {len(held)} values are {low:g}: a Weibull density needs some spread")
    grid = np.linspace(_NEAREST, _FARTHEST, _STEPS)
    found = [_given(held, low - span * 10.0**at)[1] for at in grid]
    best = int(np.argmax(found))
    ends = (grid[max(best - 1, 0)], grid[min(best + 1, _STEPS - 1)])
    refined = minimize_scalar(
        lambda at: -_given(held, low - span * 10.0**at)[1],
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-6},
    )
    # A bounded search may end above the grid's own best point.
    at = float(refined.x) if -float(refined.fun) >= found[best] else float(grid[best])
    return _given(held, low - span * 10.0**at)[0]


def _given(values: Floats, location: float) -> tuple[Weibull, float]:
    """The likeliest density with a location, and the logarithm of its likelihood."""
    above = values - location
    # Relative to the greatest value every power is at most 1, so that no shape overflows.
    unit = float(above.max())
    logs = np.log(above / unit)
    mean = float(logs.mean())

    def slope(shape: float) -> float:
        powers = np.exp(shape * logs)
        return float(powers @ logs / powers.sum()) - 1 / shape - mean

    low, high = _SHAPES
    shape = low if slope(low) >= 0 else high if slope(high) <= 0 else float(brentq(slope, low, high))
    scale = unit * float(np.mean(np.exp(shape * logs))) ** (1 / shape)
    found = Weibull(shape, scale, location)
    return found, float(found.log_density(values).sum())
