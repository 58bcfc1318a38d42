"""The study of decisions on frames whose answer is known: learnt, judged, and explained by who is taken away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.models.event_head.decisions import list_token_columns
from roadaware.models.event_head.head import open_head
from roadaware.models.event_head.layout import SCENE_FEATURES
from roadaware.protocols.decisions import (
    MOTION,
    PRIOR,
    RULES,
    TAUGHT,
    TUBES,
    DecisionRow,
    DecisionStudy,
    RemovalRow,
    ask_networks,
    count_scenes,
    judge_decisions,
    number_stops,
)
from roadaware.reports.decisions import build_decision_section, format_decision_study, list_findings
from roadaware.reports.page import report
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.training.events import decisions
from roadaware.training.events.decisions import (
    MOST_TOKENS,
    PAST_S,
    DecisionRows,
    add_counterfactuals,
    fit_decisions,
    fit_motion_baseline,
)
from roadaware.training.events.minded_scenes import KINDS

HEAD = open_head()
COLUMNS = list_token_columns(HEAD.actions, HEAD.locations)
STOP, MOVE = AV_ACTIONS.index("AV-Stop"), AV_ACTIONS.index("AV-Mov")


def make_rows(scenes: int, seed: int) -> DecisionRows:
    """20 frames a scene with three tubes and, in runs of five, a fourth, for which the vehicle stands."""
    rng = np.random.default_rng(seed)
    n = 20 * scenes
    tokens = np.zeros((n, MOST_TOKENS, len(COLUMNS)), np.float32)
    tokens[:, :4, :6] = rng.normal(0, 1, (n, 4, 6))
    stands = np.repeat(rng.random(n // 5) < 0.5, 5)
    tokens[:, 3, COLUMNS.index("action.Xing")] += 2
    filled = np.zeros((n, MOST_TOKENS), np.bool_)
    filled[:, :3], filled[:, 3] = True, stands
    culprit = np.zeros_like(filled)
    culprit[:, 3] = stands
    action = np.where(stands, STOP, MOVE)
    motion = rng.normal(size=(n, len(SCENE_FEATURES))).astype(np.float32)
    prior = np.full((n, len(AV_ACTIONS)), 1 / len(AV_ACTIONS), np.float32)
    return DecisionRows(
        tokens, filled, culprit, motion, np.repeat(motion[:, None], len(PAST_S), axis=1), prior,
        np.stack([action, np.where(np.arange(n) % 20 < 16, action, -1)], axis=1),
        np.where(stands, KINDS.index("zebra"), 0), stands, np.repeat(np.arange(scenes), 20),
    )  # fmt: skip


NAMES = (TUBES, PRIOR, RULES, MOTION, TAUGHT, "tubes and own motion", "event head, own motion")
Judged = tuple[
    DecisionRows, tuple[DecisionRow, ...], tuple[RemovalRow, ...], dict[str, float], tuple[str, ...]
]


@pytest.fixture(scope="module")
def judged_frames() -> Judged:
    with pytest.MonkeyPatch.context() as patch:
        # Few rows are learnt from in small steps.
        patch.setattr(decisions, "_BATCH", 16)
        network = fit_decisions(make_rows(16, 0), make_rows(4, 1), HEAD, epochs=4)
    test = make_rows(8, 2)
    scores = {name: np.full((len(test), 2, len(AV_ACTIONS)), 0.1) for name in NAMES}
    scores[TUBES] = scores[TAUGHT] = ask_networks([network], test)
    return test, *judge_decisions(test, scores, {TUBES: [network], TAUGHT: [network]}, 1000)


def test_who_is_taken_away_flips_the_decision_and_others_do_not(judged_frames: Judged) -> None:
    test, rows, removals, judged, left_out = judged_frames
    tubes, prior = rows[:2]
    assert tubes.now.value is not None
    assert tubes.now.value > 0.95
    # What says the same of all frames is as good as the share of each action.
    known = test.action[:, 0]
    assert prior.now.value == pytest.approx(np.mean([(known == STOP).mean(), (known == MOVE).mean()]))
    assert prior.less_now.value == pytest.approx(tubes.now.value - prior.now.value)
    assert set(judged) == {"AV-Stop", "AV-Mov"}
    assert len(left_out) == 5
    whole = next(row for row in removals if row.kind == "all")
    assert whole.flipped.value is not None
    assert whole.flipped.value > 0.9
    assert whole.others.value is not None
    assert whole.others.value < 0.2
    assert whole.fall.value is not None
    assert whole.fall.value > 0.9
    assert whole.chance == pytest.approx(0.25)
    stops = len(np.unique(number_stops(test, test.goes)[test.goes]))
    assert whole.stops + whole.missed == stops
    assert [row.kind for row in removals] == ["all", "zebra"] * 2


def test_stops_are_runs_of_frames_of_one_scene() -> None:
    rows = make_rows(1, 0)
    action = np.array([STOP, STOP, MOVE, STOP, STOP, STOP] + [MOVE] * 14)
    scene = np.array([0, 0, 0, 0, 1, 1] + [1] * 14)
    made = replace(rows, action=np.stack([action, action], axis=1), scene=scene)
    caused = np.array([True, False, True, True, True, True] + [False] * 14)
    assert number_stops(made, caused)[:6].tolist() == [0, -1, 0, 1, 2, 2]


def test_counterfactuals_are_stops_without_their_culprits() -> None:
    rows = make_rows(4, 3)
    more = add_counterfactuals(rows)
    added = np.arange(len(more)) >= len(rows)
    assert added.sum() == rows.goes.sum() > 0
    assert (more.action[added] == MOVE).all()
    assert not (more.filled[added] & more.culprit[added]).any()
    assert (more.filled[added].sum(axis=1) == 3).all()
    held = add_counterfactuals(replace(rows, goes=np.zeros(len(rows), np.bool_)))
    assert len(held) == len(rows)


def test_the_own_motion_is_learnt_where_it_tells() -> None:
    train, val = make_rows(20, 4), make_rows(5, 5)
    for rows in (train, val):
        rows.past[:, :, 0] += 6 * (rows.action[:, 0] == STOP)[:, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_BATCH", 16)
        module = fit_motion_baseline(train, val, epochs=6)
    import torch

    with torch.no_grad():
        said = module(torch.from_numpy(val.past)).argmax(dim=-1).numpy()[:, 0]
    assert (said == val.action[:, 0]).mean() > 0.9


def test_the_page_says_how_far_it_came(judged_frames: Judged) -> None:
    found = judged_frames[1:]
    study = DecisionStudy(
        *found, {"train": 30, "val": 6, "test": 8}, {"train": 600, "val": 120, "test": 160}, {"zebra": 9}, 1
    )
    said = " ".join(list_findings(study))
    assert "aim 0.7: reached" in said
    page = report([build_decision_section(study)], title="x")
    assert "Stops whose culprit is taken away" in page
    assert "pixels is missing" in page
    assert "class prior" in format_decision_study(study)
    assert study.as_dict()["rows"][0]["name"] == TUBES


def test_too_few_towns_are_refused() -> None:
    assert count_scenes(110) == {"train": 110, "val": 16, "test": 40}
    with pytest.raises(UsageError, match="at least 4"):
        count_scenes(3)
