"""The study of minds on rows whose answers are known: what shows is found, and what does not show is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadaware.models.event_head.anticipation import join_inputs
from roadaware.models.event_head.head import open_head
from roadaware.models.event_head.layout import FEATURES
from roadaware.protocols.minds import (
    BASE,
    BEHAVIOUR,
    GAP,
    GOAL,
    MIND,
    NETWORK,
    NOTICED,
    STAYS,
    TRUE_MIND,
    TURN,
    MindStudy,
    judge_minds,
)
from roadaware.reports.minds import build_mind_section, format_mind_study, list_findings
from roadaware.reports.page import report
from roadaware.training.events import minds
from roadaware.training.events.minds import MindRows, fit_small_network

HEAD = open_head()


def make_rows(scenes: int, seed: int) -> MindRows:
    """Walkers whose goal shows and whose gap does not; who means to cross does so if the gap is short; turns show."""
    rng = np.random.default_rng(seed)
    n = 40 * scenes
    features = np.zeros((n, len(FEATURES)))
    features[:, 2:6] = rng.normal(size=(n, 4))
    walks = np.arange(n) % 2 == 0
    crosses = walks & (rng.random(n) < 0.4)
    features[:, 0] = 2.0 * crosses + rng.normal(0, 0.5, n)
    margin = np.where(walks, rng.uniform(0.5, 4, n), np.nan)
    turn = np.where(walks, -1, rng.integers(0, 3, n))
    features[:, 1] = 2.0 * turn
    steps = np.where(walks, (crosses & (np.nan_to_num(margin, nan=9) < 2)).astype(int), -1)
    moved = np.where(
        walks[:, None], np.column_stack([2.0 * crosses, np.zeros(n)]) + rng.normal(0, 0.1, (n, 2)), np.nan
    )
    logits = np.zeros((n, len(HEAD.actions) + len(HEAD.locations)), np.float32)
    return MindRows(
        join_inputs(features, logits), walks, crosses, walks & (rng.random(n) < 0.3), margin,
        np.zeros(n, np.bool_), steps, moved, turn, np.repeat(np.arange(scenes), 40),
    )  # fmt: skip


@pytest.fixture(scope="module")
def study() -> MindStudy:
    with pytest.MonkeyPatch.context() as patch:
        # Few rows are learnt from in small steps.
        patch.setattr(minds, "_BATCH", 32)
        found = judge_minds(make_rows(30, 0), make_rows(12, 1), HEAD, 1, 1000)
    counts = {"train": 30, "val": 6, "test": 12}
    return replace(found, scenes=counts, boxes=counts)


def test_what_shows_is_found_and_what_does_not_is_no_better_than_the_base_rate(study: MindStudy) -> None:
    rows = {(row.question, row.way): row for row in study.minds}
    base = rows[GOAL, BASE]
    assert base.value.value == pytest.approx(base.share)
    assert base.gain.value == 0
    for question in (GOAL, TURN):
        gain = rows[question, NETWORK].gain
        assert gain.value is not None
        assert gain.value > 0.3
        assert gain.excludes_zero
    for question in (NOTICED, GAP):
        gain = rows[question, NETWORK].gain
        assert gain.value is not None
        assert gain.value < 0.15
    assert 2.0 < study.gap_s < 2.5


def test_a_mind_that_nobody_sees_helps_and_one_that_shows_adds_nothing(study: MindStudy) -> None:
    rows = {row.way: row for row in study.forecasts}
    # The gap does not show in behaviour, and decides: only the true mind knows more.
    assert rows[TRUE_MIND].less_steps_out.value is not None
    assert rows[TRUE_MIND].less_steps_out.value < -0.1
    assert rows[TRUE_MIND].less_steps_out.excludes_zero
    assert (
        not rows[BEHAVIOUR].less_steps_out.excludes_zero
        or abs(rows[BEHAVIOUR].less_steps_out.value or 0) < 0.1
    )
    assert rows[MIND].less_steps_out.value == 0
    stays, network = rows[STAYS].error_m.value, rows[BEHAVIOUR].error_m.value
    assert stays is not None
    assert network is not None
    assert network < stays
    assert rows[STAYS].steps_out.value is None


def test_the_page_says_so(study: MindStudy) -> None:
    page = report([build_mind_section(study)], title="x")
    assert "minds are the simulator" in page
    assert "The mind as a help to foresee" in page
    assert "not told apart from" in " ".join(list_findings(study))
    assert GOAL in format_mind_study(study)
    assert study.as_dict()["seeds"] == 1


def test_what_is_not_known_teaches_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4)).astype(np.float32)
    due = np.column_stack([x[:, 0] > 0, 3 + 2 * x[:, 1]]).astype(float)
    known = rng.random((600, 2)) < 0.7
    wrong = np.where(known, due, 1e6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minds, "_BATCH", 32)
        one, other = (fit_small_network(x, each, known, 1, epochs=10)(x[:50]) for each in (due, wrong))
    np.testing.assert_array_equal(one, other)
    assert ((one[:, 0] > 0.5) == (x[:50, 0] > 0)).mean() > 0.85
    assert np.abs(one[:, 1] - due[:50, 1]).mean() < 0.9
