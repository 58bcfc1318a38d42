"""Fitted: a re-scorer of proposals in one file, with fingerprints of its images and videos."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.config import from_dict, to_dict
from roadaware.corner_cases.energy import EnergyConfig, EnergyModel
from roadaware.corner_cases.memory import MemoryBank
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.distributions import Weibull

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
    """64 bits of the bytes of some arrays.

    Args:
        parts: of any shape.
    """
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

    Args:
        scenes: the set that they are of.
        videos: their names.

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

    Args:
        path: where to.
        fitted: the re-scorer.

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

    Args:
        path: of the file.

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
