"""Re-scorers of proposals: energy scores and the memory bank of common objects, fitted and kept in one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import expit, logsumexp

from roadaware.arrays import Floats, Floats32
from roadaware.config import from_dict, to_dict
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.coverage import check_point_array, compute_nearest_distances, select_k_centers
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


FORMAT, VERSION = "roadaware-rescorer", 1
ENERGY, MEMORY = "energy", "memory"
_WHAT, _AGAIN = "a fitted re-scorer", "fit it again with `roadaware rescore fit-energy` or `fit-memory`"
_BANK = ("typical", "spread", "neighbours")
Prints = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted re-scorer, its required inputs, and fingerprints of its training images.

    Args:
        model: of energies, or a bank of features.
        seen: fingerprints of the images that it was fitted on.
        asked: how boxes or crops were made of images, plain data.
        about: what it was fitted on, in words and counts, plain data.
        videos: fingerprints of the videos that these images are from, as far as `hash_videos` tells them.
    """

    model: EnergyModel | MemoryBank
    seen: Prints
    asked: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    videos: Prints = field(default_factory=lambda: sort_fingerprints(()))

    @property
    def by(self) -> str:
        """`energy` or `memory`."""
        return ENERGY if isinstance(self.model, EnergyModel) else MEMORY

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of the images that it was fitted on, whatever their order."""
        return hashlib.blake2b(np.unique(self.seen).tobytes(), digest_size=8).hexdigest()

    def describe(self) -> dict[str, Any]:
        """What is known of it, JSON-ready."""
        found = {
            "by": self.by,
            "digest": self.digest,
            "asked": dict(self.asked),
            "fitted_on": dict(self.about),
        }
        if isinstance(self.model, EnergyModel):
            return found | {
                name: to_dict(getattr(self.model, name)) for name in ("config", "known", "unknown")
            }
        count, length = self.model.features.shape
        bank = {"features": count, "length": length}
        return found | {"bank": {**bank, "typical": self.model.typical, "spread": self.model.spread}}


def hash_arrays(*parts: npt.NDArray[Any]) -> int:
    """64 bits of the bytes of some arrays."""
    whole = hashlib.blake2b(digest_size=8)
    for each in parts:
        # Type and shape too: equal bytes in another shape are another array.
        whole.update(f"{each.dtype.str}{each.shape}".encode())
        whole.update(np.ascontiguousarray(each).tobytes())
    return int.from_bytes(whole.digest(), "little")


def sort_fingerprints(numbers: Iterable[int]) -> Prints:
    """(n,) fingerprints, each once, in order."""
    return np.unique(np.array(sorted(numbers), dtype=np.uint64))


def hash_videos(scenes: Scenes, videos: Iterable[str]) -> Prints | None:
    """Fingerprints of videos: of the digest of what they were read from, and their names.

    A name alone tells no video: synthetic scenes of two seeds share theirs.

    Returns:
        None where the set says nothing of its source; none at all where its videos are single images, which
        are recognised by their own fingerprints.
    """
    source = scenes.meta.source_digest
    if source:
        texts = (f"{source}\0{video}".encode() for video in videos)
        return sort_fingerprints(hash_arrays(np.frombuffer(text, dtype=np.uint8)) for text in texts)
    frames = scenes.frames if len(scenes.frames) else scenes.boxes
    single = frames.select("video", "frame").unique()["video"].is_unique().all()
    return sort_fingerprints(()) if single else None


def check_apart(fitted: Fitted, videos: Prints, *, allowed: bool = False) -> int:
    """Number of videos that occur both in the fit of a re-scorer and in the images to score.

    Images of one video show the same objects, so that none of them is new.

    Args:
        fitted: the re-scorer.
        videos: fingerprints of those that it is asked about.
        allowed: whether there may be any.

    Raises:
        UsageError: if there are some and that is not allowed.
    """
    shared = int(np.isin(videos, fitted.videos).sum())
    if shared and not allowed:
        _refuse(
            fitted,
            f"images of {shared:,} of these {len(videos):,} videos",
            "which show the same objects; fit it on other videos",
        )
    return shared


def check_videos_apart(
    fitted: Fitted, proposals: Predictions, scenes: Scenes, *, allowed: bool = False
) -> int | None:
    """The same for the videos of proposals; None where it is not known.

    Args:
        fitted: the re-scorer.
        proposals: that it is asked about.
        scenes: the set that they are of.
        allowed: whether there may be any.

    Raises:
        UsageError: if there are some and that is not allowed.
    """
    prints = hash_videos(scenes, proposals.boxes["video"].cast(pl.String).unique())
    if prints is None or (len(prints) and not len(fitted.videos)):
        return None
    return check_apart(fitted, prints, allowed=allowed)


def check_held_out(fitted: Fitted, images: Prints, *, allowed: bool = False) -> int:
    """Number of images that occur both in the fit of a re-scorer and in the images to score.

    Args:
        fitted: the re-scorer.
        images: fingerprints of those that it is asked about.
        allowed: whether there may be any.

    Raises:
        UsageError: if there are some and that is not allowed.
    """
    shared = int(np.isin(images, fitted.seen).sum())
    if shared and not allowed:
        _refuse(
            fitted,
            f"{shared:,} of these {len(images):,} images",
            "so its scores there say nothing of new ones; fit it on others",
        )
    return shared


def _refuse(fitted: Fitted, what: str, why: str) -> NoReturn:
    raise UsageError(
        f"the {fitted.by} re-scorer was fitted on {what} (fit {fitted.digest}), {why}, "
        "or say --allow-leak and report it"
    )


def save_fitted(path: Path, fitted: Fitted) -> None:
    """Write a re-scorer as one file of arrays and facts.

    Raises:
        DiskError: if it cannot be written.
    """
    facts: dict[str, Any] = {"format": FORMAT, "version": VERSION, "by": fitted.by, "digest": fitted.digest}
    facts |= {"asked": dict(fitted.asked), "about": dict(fitted.about)}
    arrays: dict[str, npt.NDArray[Any]] = {"seen": fitted.seen, "videos": fitted.videos}
    if isinstance(fitted.model, EnergyModel):
        facts |= {name: to_dict(getattr(fitted.model, name)) for name in ("config", "known", "unknown")}
    else:
        arrays["features"] = fitted.model.features
        facts |= {name: getattr(fitted.model, name) for name in _BANK}
    save_arrays(path, arrays, facts)


def open_fitted(path: Path) -> Fitted:
    """The re-scorer that `save_fitted` wrote.

    Raises:
        InputError: if there is no such file.
        DamagedError: if it is not whole, or none of ours.
    """
    arrays, facts = open_arrays(path, _WHAT, _AGAIN)
    if facts.get("format") != FORMAT or facts.get("version") != VERSION:
        raise DamagedError(f"not {_WHAT} of this version", where=str(path), hint=_AGAIN)
    try:
        found = Fitted(_model(arrays, facts), arrays["seen"], facts["asked"], facts["about"])
        # Files without videos are older than these; their images are still reported.
        found = replace(found, videos=arrays.get("videos", found.videos))
    except (KeyError, TypeError, ValueError, RoadawareError) as error:
        raise DamagedError(f"{_WHAT} that is not whole: {error}", where=str(path), hint=_AGAIN) from error
    whole = all(each.dtype == np.uint64 for each in (found.seen, found.videos))
    if not whole or found.digest != facts.get("digest") or found.by != facts.get("by"):
        raise DamagedError("it is not what was written", where=str(path), hint=_AGAIN)
    return found


def _model(arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> EnergyModel | MemoryBank:
    if facts["by"] == ENERGY:
        known, unknown = (from_dict(Weibull, facts[name]) for name in ("known", "unknown"))
        return EnergyModel(known, unknown, from_dict(EnergyConfig, facts["config"]))
    typical, spread, neighbours = (facts[name] for name in _BANK)
    return MemoryBank(arrays["features"], float(typical), float(spread), int(neighbours))


# Re-scoring: proposals with a new score beside the one they came with; no row is lost.

Combine = Literal["product", "alone"]
BEFORE, NOTE = "score_before", "rescored"


def rescore_proposals(
    proposals: Predictions,
    shares: Floats,
    by: str,
    *,
    combine: Combine = "product",
    facts: Mapping[str, Any] | None = None,
) -> Predictions:
    """The proposals with `score` made anew, the first score as `score_before` and the shares as `unknown_BY`.

    Args:
        proposals: boxes with `score`.
        shares: (n,) in [0, 1]: how much each is like an unknown object.
        by: name of the re-scorer.
        combine: the new score is the old one times the share (`product`), or the share (`alone`).
        facts: what belongs beside the numbers, plain data; kept in the notes.

    Raises:
        InputError: if proposals have no score, or shares are none.
        UsageError: if the same re-scorer has been there already.
    """
    boxes = proposals.boxes
    if "score" not in boxes.columns or boxes["score"].null_count():
        raise InputError(
            "proposals without a score cannot be re-scored", hint="give each box a score from 0 to 1"
        )
    # The comparison below is false for nan, which is refused so.
    values = np.asarray(shares, dtype=np.float64)
    if values.shape != (len(boxes),) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"each of {len(boxes)} proposals has one share from 0 to 1, not {values.shape}")
    column = f"unknown_{by}"
    if column in boxes.columns:
        raise UsageError(f"these proposals have been re-scored by {by} before; start from the proposals")
    old = boxes["score"].cast(pl.Float64)
    new = old * values if combine == "product" else pl.Series(values)
    before = boxes[BEFORE] if BEFORE in boxes.columns else boxes["score"]
    notes = [*proposals.meta.notes.get(NOTE, []), {"by": by, "combine": combine, **(facts or {})}]
    meta = replace(proposals.meta, notes={**proposals.meta.notes, NOTE: notes})
    boxes = boxes.with_columns(
        new.alias("score"), before.alias(BEFORE), pl.Series(column, values, dtype=pl.Float64)
    )
    return proposals.with_tables(boxes=boxes, meta=meta)
