"""How well sentences are grounded in time and space, as a whole, by kind of sentence and by slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.metrics.grounding.config import GroundingConfig
from roadaware.metrics.grounding.matching import Overlaps, compute_grounding_overlaps
from roadaware.metrics.grounding.sentences import Sentences, join_sentences
from roadaware.metrics.metric_state import ItemScores, SceneResult, build_result
from roadaware.scenes.tables import Predictions, Scenes

_ITEMS = ("video", "query", "name", "sentence_kind", "category", "density")


@dataclass(frozen=True, eq=False)
class GroundedSentences(ItemScores):
    """Sentences and their overlaps; the state of the grounding metrics."""

    config_type: ClassVar[type] = GroundingConfig
    class_column: ClassVar[str] = "sentence_kind"

    config: GroundingConfig

    @property
    def metrics(self) -> tuple[str, ...]:
        """m_tiou, m_viou, viou@tau, gt_viou, gt_viou@tau.

        Source: supplement of Chaotic World, ICCV 2023, section 3.3; `gt_viou`: Yang et al., CVPR 2022.
        """
        taus = [f"{tau:g}" for tau in self.config.thresholds]
        at = [[f"{name}@{tau}" for tau in taus] for name in ("viou", "gt_viou")]
        return ("m_tiou", "m_viou", *at[0], "gt_viou", *at[1])

    @property
    def reason(self) -> str:
        """Why a metric may be undefined."""
        if self.config.temporal != "claimed":
            return "the span is given, or no sentence has a true box in the frames that are looked at"
        return "no sentence has a true box in the frames that are looked at"


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: GroundingConfig | None = None,
    *,
    by: Sequence[str] = (),
    draws: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Overlaps of predicted and ground-truth spans and boxes of sentences, as means over sentences.

    `m_tiou` is the mean of tIoU, frames in both spans by frames in either; `m_viou` that of vIoU, the sum of
    the overlaps of boxes in the frames of both spans by the frames of either; `viou@tau` the share of
    sentences whose vIoU reaches tau; `gt_viou` and `gt_viou@tau` the same of the mean overlap of boxes over
    all ground-truth frames, whatever span is predicted. All lie in [0, 1], higher is better.

    Args:
        predictions: `queries` with the ground truth's numbers, a span and a tube that owns the predicted boxes.
        scenes: `queries` with a span and a tube that owns the ground-truth boxes.
        config: how they are judged (default: `GroundingConfig.default()`).
        by: columns to slice by: `category`, `density` (boxes in a ground-truth frame, on the mean), `sentence_kind`.
        draws: resamples of videos for the intervals.
        seed: of the resamples.

    Returns:
        whole and kinds of sentences; instances of `sentence`.

    Raises:
        InputError: if no sentence has a ground-truth span, no prediction is about one, frames cannot be sampled, or
            something is missing where that is an error.
        UsageError: if `draws` is negative or there is no such column.

    Source: Yang et al., CVPR 2022 (TubeDETR), and the supplement of Chaotic World, ICCV 2023, section 3.3.
    """
    config = config or GroundingConfig.default()
    given = join_sentences(predictions, scenes, config)
    found = compute_grounding_overlaps(given, config)
    state = GroundedSentences(given.table.select(_ITEMS), _values(found, config), config)
    return build_result(
        state,
        config,
        by=by,
        draws=draws,
        seed=seed,
        notes=_notes(given, found, config),
        makers={"sentence": partial(_by_sentence, given, found)},
        left_out=given.left_out,
        facts=_facts(given, found, scenes, config),
    )


def _values(found: Overlaps, config: GroundingConfig) -> Floats:
    """(sentences, metrics) in the order of `GroundedSentences.metrics`."""
    reaches = np.greater if config.threshold == "greater" else np.greater_equal
    columns = [found.tiou]
    for overlap in (found.viou, found.gt_viou):
        passed = (np.where(np.isnan(overlap), np.nan, reaches(overlap, tau)) for tau in config.thresholds)
        columns += [overlap, *passed]
    return np.column_stack(columns)


def _notes(given: Sentences, found: Overlaps, config: GroundingConfig) -> tuple[str, ...]:
    """What is missing, and what that did, in words."""
    notes = []
    silent = int((~given.claimed).sum())
    if silent:
        notes.append(f"{silent:,} of {len(given.claimed):,} sentences have no prediction and score 0")
    missing = int(found.unanswered[given.claimed].sum())
    asked = int(found.true_frames[given.claimed].sum())
    if missing:
        notes.append(f"{missing:,} of {asked:,} true frames have no predicted box and an overlap of 0")
    if config.frames == "dense" and 2 * missing > asked:
        notes.append(
            "most true frames have no predicted box: where boxes are predicted for sampled frames alone, look at "
            "those (frames='sampled', or a configuration of tubedetr)"
        )
    return tuple(notes)


def _facts(given: Sentences, found: Overlaps, scenes: Scenes, config: GroundingConfig) -> dict[str, Any]:
    """What belongs beside every number."""
    looked = "every frame"
    if config.frames == "sampled":
        looked = f"{config.sample_fps:g} frames per second"
        looked += f", at most {config.most_frames}" if config.most_frames is not None else ""
    return {
        "sentences": len(given.table),
        "claimed": int(given.claimed.sum()),
        "frames": looked,
        "true_frames": int(found.true_frames.sum()),
        "hull_frames": int(found.hull_frames.sum()),
        "true_frames_without_claimed_box": int(found.unanswered.sum()),
        "first_frame": scenes.meta.notes.get("first_frame", 0),
        "average": "over sentences",
    }


def _by_sentence(given: Sentences, found: Overlaps) -> pl.DataFrame:
    """One row per sentence: spans, overlaps, and the frames they were made from; null where undefined."""
    spans = ("start_frame", "end_frame", "claimed_start", "claimed_end")
    table = given.table.select(*_ITEMS, *spans).with_columns(
        pl.Series("claimed", given.claimed),
        pl.Series("tiou", found.tiou),
        pl.Series("viou", found.viou),
        pl.Series("gt_viou", found.gt_viou),
        pl.Series("true_frames", found.true_frames, dtype=pl.Int64),
        pl.Series("hull_frames", found.hull_frames, dtype=pl.Int64),
        pl.Series("true_frames_without_claimed_box", found.unanswered, dtype=pl.Int64),
    )
    return table.with_columns(pl.col("tiou", "viou", "gt_viou").fill_nan(None))
