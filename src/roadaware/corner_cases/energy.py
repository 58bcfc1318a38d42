"""Energy scores: how unlike the known classes of a detector an object is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logsumexp

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.statistics.distributions import PARAMETERS, Weibull, fit_weibull

Form = Literal["softplus", "logsumexp"]
NEUTRAL = 0.5
"""The share of the unknown where nothing has been asked."""
_SURE = 1e-7
"""Scores are kept this far from 0 and 1, where logits have no end."""


@dataclass(frozen=True)
class EnergyConfig:
    """Definition of the energy score.

    Args:
        form: `logsumexp` over the classes, as ORE, for heads that end in a softmax; `softplus` summed over
            the classes for heads with one sigmoid for each: each class is then a two-way choice with an
            energy of its own, and those of independent choices add up.
        temperature: that logits are divided by and energies multiplied with.

    Source: Joseph et al., CVPR 2021 (ORE), section 3.4; Wang et al., NeurIPS 2021 (JointEnergy).
    """

    form: Form = "softplus"
    # The temperature of ORE's published code.
    temperature: float = 1.5

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise UsageError(f"an energy is of the form {' or '.join(get_args(Form))}, not {self.form!r}")
        if not (isinstance(self.temperature, int | float) and 0.01 <= self.temperature <= 100):
            raise UsageError(f"a temperature lies in 0.01 to 100, not {self.temperature!r}")

    @classmethod
    def reference(cls) -> EnergyConfig:
        """As ORE has it."""
        return cls(form="logsumexp")


def compute_energy(logits: npt.ArrayLike, config: EnergyConfig | None = None) -> Floats:
    """(n,) energies; lower means a more confident known class.

    Args:
        logits: (n, c) of the known classes, before softmax or sigmoid.
        config: what an energy is.

    Raises:
        InputError: if a logit is not finite, or there is one class alone and `logsumexp` is asked for.

    Source: Joseph et al., CVPR 2021 (ORE), equation 4: -T log sum exp(logit / T).
    """
    config = config or EnergyConfig()
    held = np.asarray(logits, dtype=np.float64)
    if held.ndim != 2 or held.shape[1] < 1:
        raise InputError(f"logits are (n, classes) with at least one class, not {held.shape}")
    wrong = int((~np.isfinite(held)).any(axis=1).sum())
    if wrong:
        raise InputError(
            f"{wrong} of {len(held)} boxes have a logit that is not finite",
            hint="look at the detector: it has divided by zero, or its weights are broken",
        )
    if held.shape[1] == 1 and config.form == "logsumexp":
        raise InputError(
            "one class alone has no sum over classes, and a softmax over it is always 1",
            hint="give the logits of all known classes, or say the form softplus for a single sigmoid",
        )
    scaled = held / config.temperature
    # logsumexp and logaddexp(0, x), which is softplus: exp of large logits would overflow.
    sums = logsumexp(scaled, axis=1) if config.form == "logsumexp" else np.logaddexp(0, scaled).sum(axis=1)
    found: Floats = -config.temperature * sums
    return found


def convert_to_logits(scores: npt.ArrayLike) -> Floats:
    """(n, c) logits of the scores of a sigmoid for each class.

    Scores nearer than 1e-7 to 0 or 1 count as that far.

    Args:
        scores: (n, c) in [0, 1].

    Raises:
        InputError: if a score is none, or those of each box sum to 1, as after a softmax, which has taken
            away what the energy is made of.
    """
    held = np.asarray(scores, dtype=np.float64)
    if held.size and not (held.min() >= 0 and held.max() <= 1):  # false for NaN, too
        raise InputError(
            f"class scores lie in 0 to 1; found are {held.min():g} to {held.max():g}",
            hint="raw logits belong in the column `logits` of the boxes",
        )
    # 1e-3 allows for scores in half precision, whose steps below 1 are 0.0005.
    if held.ndim == 2 and held.shape[1] > 1 and len(held) and np.abs(held.sum(axis=1) - 1).max() < 1e-3:
        raise InputError(
            "the scores of every box sum to 1, as after a softmax: their energies are all alike",
            hint="save the raw logits as the column `logits` of the boxes",
        )
    held = np.clip(held, _SURE, 1 - _SURE)
    # log1p keeps the digits of small scores, which 1 - score would round away.
    found: Floats = np.log(held) - np.log1p(-held)
    return found


@dataclass(frozen=True)
class EnergyModel:
    """Densities of the negative energies of known and of unknown objects.

    Args:
        known: of objects of known classes.
        unknown: of the others.
        config: what an energy is.
    """

    known: Weibull
    unknown: Weibull
    config: EnergyConfig

    def unknown_share(self, values: npt.ArrayLike) -> Floats:
        """(n,) density of the unknown over that of both, in [0, 1].

        Where both are 0, the detector is less sure than of any object that was fitted on: the share is then
        what it is just above the lower of the two locations, so 1 where that is the unknown's.

        Args:
            values: (n,) energies.

        Source: Joseph et al., CVPR 2021 (ORE), section 3.4, which compares the two densities.
        """
        heights = -np.asarray(values, dtype=np.float64)
        known, unknown = self.known.log_density(heights), self.unknown.log_density(heights)
        # Far from both fits each log density is -inf, and their difference nan: settled by hand.
        lost = np.isneginf(known) & np.isneginf(unknown)
        below = np.sign(self.known.location - self.unknown.location)
        with np.errstate(invalid="ignore"):
            found: Floats = np.where(lost, (1 + below) / 2, expit(unknown - known))
        return found


def fit_energies(known: npt.ArrayLike, unknown: npt.ArrayLike, config: EnergyConfig) -> EnergyModel:
    """The densities of the energies of both kinds of object.

    Args:
        known: (n,) energies of objects of known classes.
        unknown: (m,) energies of others.
        config: what an energy is.

    Raises:
        InputError: if there are too few of a kind, or their energies are all equal.
    """
    fitted = []
    for name, values in (("known", known), ("unknown", unknown)):
        held = np.asarray(values, dtype=np.float64)
        if len(held) <= PARAMETERS:
            raise InputError(
                f"{len(held)} {name} objects have a detection, too few to fit their energies: more than "
                f"{PARAMETERS} are needed, and some dozens to trust them",
                hint="give more images, detections with a lower threshold, or a smaller overlap",
            )
        try:
            fitted.append(fit_weibull(-held))
        except InputError as error:
            raise InputError(
                f"energies of {name} objects: {error.message}",
                hint="a detector whose scores are all alike tells nothing of unknown objects",
            ) from error
    return EnergyModel(fitted[0], fitted[1], config)
