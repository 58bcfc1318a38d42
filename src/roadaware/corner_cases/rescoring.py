"""Re-scoring: proposals with a new score beside the one they came with; no row is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.scenes.predictions import Predictions

Combine = Literal["product", "alone"]
BEFORE, NOTE = "score_before", "rescored"


def rescored(
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
    values = np.asarray(shares, dtype=np.float64)
    if values.shape != (len(boxes),) or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"each of {len(boxes)} proposals has one share from 0 to 1, not {values.shape}")
    column = f"unknown_{by}"
    if column in boxes.columns:
        raise UsageError(f"these proposals have been re-scored by {by} before; start from the proposals")
    old = boxes["score"].cast(pl.Float64)
    new = old * values if combine == "product" else pl.Series(values)
    before = boxes[BEFORE] if BEFORE in boxes.columns else boxes["score"]
    told = [*proposals.meta.notes.get(NOTE, []), {"by": by, "combine": combine, **(facts or {})}]
    meta = replace(proposals.meta, notes={**proposals.meta.notes, NOTE: told})
    boxes = boxes.with_columns(
        new.alias("score"), before.alias(BEFORE), pl.Series(column, values, dtype=pl.Float64)
    )
    return proposals.with_tables(boxes=boxes, meta=meta)
