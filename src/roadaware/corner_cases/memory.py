"""Memory bank: features of common objects, and the distance of other objects to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from roadaware.arrays import Floats, Floats32
from roadaware.errors import InputError, UsageError
from roadaware.statistics.coverage import check_point_array, compute_nearest_distances, select_k_centers

_HELD_OUT = 5
"""Every fifth group of crops says how far common things usually lie from the bank."""
_LEAST_SPREAD = 0.02
"""Of the typical distance, so that a few crops that are alike do not make a step of the anomaly."""


@dataclass(frozen=True)
class MemoryConfig:
    """How a memory bank is built and queried.

    Args:
        size: features that the bank keeps at most.
        neighbours: of a crop in the bank, whose distances are averaged.
        background: crops of background from each image, at most.
        background_share: of the pixels of a crop that a semantic map must call background.
        apart_iou: overlap with a ground-truth object below which a proposal counts as background.
        min_side_px: smaller boxes are not taken.
        seed: of crops of background and of the choice.
    """

    size: int = 1000
    neighbours: int = 3
    background: int = 4
    background_share: float = 0.9
    apart_iou: float = 0.1
    min_side_px: float = 8.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise UsageError(f"{name} should lie in {low:g} to {high:g}, not {value!r}")


_RANGES = (
    ("size", 1, 1e6),
    ("neighbours", 1, 1000),
    ("background", 0, 1000),
    ("background_share", 0.01, 1),
    ("apart_iou", 0, 1),
    ("min_side_px", 1, 10_000),
    ("seed", 0, 2**63 - 1),
)


@dataclass(frozen=True, eq=False)
class MemoryBank:
    """Features of common objects and background.

    Args:
        features: (m, d) of the chosen crops.
        typical: the median distance of common things that are not in the bank.
        spread: the scale of a logistic distribution with the same quartiles as those distances.
        neighbours: whose distances are averaged.
    """

    features: Floats32
    typical: float
    spread: float
    neighbours: int

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not self.features.size:
            raise InputError("a memory bank without features knows nothing; fit it on more images")
        if not (np.isfinite([self.typical, self.spread]).all() and min(self.typical, self.spread) > 0):
            raise InputError(
                f"common things lie {self.typical:g} from the bank: their features do not differ",
                hint="these features tell nothing apart; choose others",
            )

    def anomaly(self, features: npt.ArrayLike) -> Floats:
        """(n,) in [0, 1]: share of common objects that lie nearer to the bank; 1/2 for a typical one.

        The distances of common things count as logistic, so that those beyond all of them still differ.

        Args:
            features: (n, d).

        Raises:
            InputError: if they are of another length than those of the bank, or not finite.
        """
        held = np.asarray(features, dtype=np.float32)
        if held.ndim != 2 or held.shape[1] != self.features.shape[1]:
            raise InputError(
                f"features of length {held.shape[-1] if held.ndim else 0} do not fit a bank of length "
                f"{self.features.shape[1]}",
                hint="ask with the features that the bank was made of",
            )
        far = compute_nearest_distances(held, self.features, neighbours=self.neighbours)
        found: Floats = expit((far - self.typical) / self.spread)
        return found


def fit_memory(features: npt.ArrayLike, groups: npt.ArrayLike, config: MemoryConfig) -> MemoryBank:
    """Fit a bank that covers the features of common objects, and their usual distance to it.

    Every fifth group, drawn, is kept out of the bank and says what is usual.

    Args:
        features: (n, d) of crops.
        groups: (n,) whole numbers: the video, or image, that each is from.
        config: how it is made.

    Raises:
        InputError: if there are no features, one is not finite, they are of one group, or do not differ.

    Source: Roth et al., CVPR 2022 (PatchCore), section 3.2, of whole crops instead of patches.
    """
    if not np.asarray(features).size:
        raise InputError(
            "there is nothing to keep in the memory bank: no common object and no background was found",
            hint="fit it on images with annotated common objects, or with --semantics",
        )
    held, where = check_point_array(features), np.asarray(groups, dtype=np.int64)
    if where.shape != held.shape[:1]:
        raise InputError(f"each of {len(held)} features is of one group, not {where.shape}")
    names = np.unique(where)
    if len(names) < 2:
        raise InputError(
            "all crops are from one image or video, so that nothing says how far common things lie apart",
            hint="fit it on two or more",
        )
    # Whole groups are held out: crops of one video are alike, and their distances would be too small.
    drawn = np.random.default_rng(config.seed).permutation(names)
    out = np.isin(where, drawn[: max(1, len(names) // _HELD_OUT)])
    within = held[~out]
    bank = within[select_k_centers(within, config.size, seed=config.seed)]
    far = compute_nearest_distances(held[out], bank, neighbours=config.neighbours)
    low, typical, high = np.quantile(far, [0.25, 0.5, 0.75])
    # A logistic distribution has its quartiles ln 3 scales from the median.
    spread = max((high - low) / (2 * np.log(3)), _LEAST_SPREAD * typical)
    return MemoryBank(bank, float(typical), float(spread), config.neighbours)
