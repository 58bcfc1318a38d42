"""Every planted fault is found, as what it is, and nothing else."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from roadaware.analysis.quality import ForbiddenWords, Quality, check
from roadaware.demo_data.annotations import FORBIDDEN, generate_annotation_rounds


def found(quality: Quality) -> Counter[tuple[object, ...]]:
    rows = quality.items.filter(pl.col("status") != "pass")
    return Counter(
        (rule, row["what"], row["video"], row["name"], row["frame"], row["status"])
        for row in rows.iter_rows(named=True)
        for rule in row["rules"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_that_was_planted_is_found_and_nothing_else(seed: int) -> None:
    rounds = generate_annotation_rounds(seed=seed)
    quality = check(rounds.original, rounds.round1, rounds.round2, words=ForbiddenWords(FORBIDDEN))
    planted = Counter(
        (fault.rule, fault.what, fault.video, fault.name, fault.frame, fault.status)
        for fault in rounds.planted
        if fault.status != "pass"
    )
    assert found(quality) == planted
