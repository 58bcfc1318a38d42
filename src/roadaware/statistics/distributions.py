"""Weibull densities with a location, fitted by maximum likelihood, and mixtures of normal distributions over a plane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp

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


_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class PlaneMixture:
    """What is predicted of n items at m steps: K components over points (x, y), whose weights hold for all steps.

    Args:
        weight: (n, k) summing to 1.
        mean: (n, k, m, 2).
        deviation: (n, k, m, 2) along x and y, above 0.
        correlation: (n, k, m) of x and y, in (-1, 1).

    Raises:
        ValueError: if shapes do not go together, a number is not finite, or one leaves its range.
    """

    weight: Floats
    mean: Floats
    deviation: Floats
    correlation: Floats

    def __post_init__(self) -> None:
        n, k = self.weight.shape
        m = self.mean.shape[2] if self.mean.ndim == 4 else -1
        whole = (n, k, m, 2)
        if self.mean.shape != whole or self.deviation.shape != whole or self.correlation.shape != whole[:3]:
            raise ValueError(
                f"weights {self.weight.shape}, means {self.mean.shape}, deviations {self.deviation.shape} and correlations "
                f"{self.correlation.shape} should be (n, k), (n, k, m, 2) twice and (n, k, m)"
            )
        for name in ("weight", "mean", "deviation", "correlation"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"every {name} should be finite")
        if (self.weight < 0).any() or not np.allclose(self.weight.sum(axis=1), 1, atol=1e-5):
            raise ValueError("weights of an item should be 0 or more and sum to 1")
        if (self.deviation <= 0).any() or (np.abs(self.correlation) >= 1).any():
            raise ValueError("deviations should be above 0, and correlations lie in (-1, 1)")

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def centre(self) -> Floats:
        """(n, m, 2) the mean of the whole mixture."""
        return np.asarray(np.einsum("nk,nkmd->nmd", self.weight, self.mean))

    def some(self, rows: slice) -> Self:
        """The mixture of some items."""
        return replace(
            self, weight=self.weight[rows], mean=self.mean[rows], deviation=self.deviation[rows],
            correlation=self.correlation[rows],
        )  # fmt: skip

    def at_steps(self, steps: list[int]) -> Self:
        """The mixture at some steps."""
        return replace(
            self, mean=self.mean[:, :, steps], deviation=self.deviation[:, :, steps],
            correlation=self.correlation[:, :, steps],
        )  # fmt: skip

    def log_density(self, points: Floats) -> Floats:
        """(..., n, m) the logarithm of the density at points (..., n, m, 2)."""
        away = (np.asarray(points, dtype=np.float64)[..., :, None, :, :] - self.mean) / self.deviation
        x, y, rho = away[..., 0], away[..., 1], self.correlation
        rest = 1 - rho**2
        square = (x**2 - 2 * rho * x * y + y**2) / rest
        volume = np.log(self.deviation).sum(axis=-1) + 0.5 * np.log(rest) + _LOG_2PI
        with np.errstate(divide="ignore"):
            parts = np.log(self.weight)[:, :, None] - volume - 0.5 * square
        return np.asarray(logsumexp(parts, axis=-2))

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """(draws, n, m, 2) points; steps are drawn independently."""
        n, _, m, _ = self.mean.shape
        # The component of a draw by inversion of the cumulative weights.
        cuts = np.cumsum(self.weight, axis=1)[:, :-1]
        which = (rng.random((draws, n, m))[..., None] > cuts[:, None, :]).sum(axis=-1)
        rows, steps = np.arange(n)[:, None], np.arange(m)
        mean, spread = self.mean[rows, which, steps], self.deviation[rows, which, steps]
        rho = self.correlation[rows, which, steps]
        first, second = rng.standard_normal((2, draws, n, m))
        turned = rho * first + np.sqrt(1 - rho**2) * second
        return np.asarray(mean + spread * np.stack([first, turned], axis=-1))


def compute_region_levels(
    mixture: PlaneMixture, points: Floats, *, draws: int = 200, seed: int = 0, at_once: int = 256
) -> tuple[Floats, Floats]:
    """Which region of highest density a point lies at the edge of, and how large the region of 90 % is.

    The level of a point is the probability of all places that are likelier than it, by draws: it lies in the region of
    90 % where its level is 0.9 at most. Were the mixture right, levels would be uniform in [0, 1].

    Args:
        mixture: of n items at m steps.
        points: (n, m, 2) what came.
        draws: for each item and step.
        seed: of numpy's generator.
        at_once: items, which bounds memory.

    Returns:
        levels: (n, m) in [0, 1].
        areas: (n, m) of the regions that hold 90 %, in the square of the unit of the mixture.

    Source: Hyndman, The American Statistician 1996.
    """
    n, m = len(mixture), mixture.mean.shape[2]
    levels, areas = np.empty((n, m)), np.empty((n, m))
    rng = np.random.default_rng(seed)
    for start in range(0, n, at_once):
        rows = slice(start, start + at_once)
        some = mixture.some(rows)
        drawn = some.log_density(some.sample(draws, rng))
        at = some.log_density(points[rows])
        # A rank among the draws and the point itself, so that the level of an exchangeable point is uniform.
        levels[rows] = ((drawn > at).sum(axis=0) + rng.random(at.shape)) / (draws + 1)
        edge = np.quantile(drawn, 0.1, axis=0)
        # The integral of 1 over the region is the mean of 1 / density over draws that fall into it.
        areas[rows] = np.where(drawn >= edge, np.exp(-drawn), 0.0).mean(axis=0)
    return levels, areas
