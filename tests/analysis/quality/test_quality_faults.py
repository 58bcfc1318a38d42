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


def test_tables_without_the_columns_that_may_lack_are_checked() -> None:
    """A relation without its start, a rejected row without its line and its name."""
    original = generate_annotation_rounds(seed=0).original
    rejected = pl.DataFrame({"table": ["boxes"], "file": ["a.csv"], "reason": ["x1 lies right of x2"]})
    bare = original.with_tables(relations=original.relations.drop("start_frame"), rejected=rejected)
    quality = check(bare, original)
    assert (
        quality.items["reasons"].list.eval(pl.element().is_null()).list.any().fill_null(value=False).sum()
        == 0
    )
    assert quality.findings["says"].null_count() == 0
    assert "refused" in set(quality.findings["rule"])
