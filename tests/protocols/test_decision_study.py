"""The study of decisions on frames whose answer is known: learnt, judged, and explained by who is taken away."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.models.event_head.decisions import list_token_columns
from roadaware.models.event_head.head import SCENE_FEATURES, open_head
from roadaware.protocols.decisions import (
    FORMAT,
    MARKER,
    MOTION,
    PIXELS,
    PRIOR,
    RULES,
    SEVERAL,
    TAUGHT,
    TUBES,
    DecisionRow,
    DecisionStudy,
    RemovalRow,
    ask_modules,
    ask_networks,
    count_scenes,
    count_stops,
    judge_decisions,
    judge_removals,
    number_stops,
    run_decision_study,
)
from roadaware.reports.decisions import build_decision_section, format_decision_study, list_decision_findings
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
    fit_pixel_baseline,
    select_rows,
    stack_images,
)
from roadaware.training.events.scenes import CAUSE_KINDS, MindedScene

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
        np.where(stands, CAUSE_KINDS.index("zebra"), 0), stands, stands.astype(np.int64) * 2, np.zeros(n, np.bool_),
        np.repeat(np.arange(scenes), 20),
    )  # fmt: skip


NAMES = (TUBES, PRIOR, RULES, MOTION, PIXELS, TAUGHT, "tubes and own motion", "event head, own motion")
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
    assert [row.kind for row in removals] == ["all", SEVERAL, "zebra"] * 2
    assert count_stops(test) == {
        "all": stops, "judged": stops, "culprit not detected": 0, "culprit out of the image": 0, "would not go on": 0,
    }  # fmt: skip


def test_causes_for_which_it_never_decides_to_stand_are_said() -> None:
    test = make_rows(4, 2)
    stops = np.flatnonzero(test.action[:, 0] == STOP)
    lights = np.isin(np.arange(len(test)), stops[stops < 40])
    test = replace(test, kind=np.where(lights, CAUSE_KINDS.index("lights"), test.kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_BATCH", 16)
        network = fit_decisions(make_rows(4, 0), make_rows(4, 1), HEAD, epochs=1)
    scores = np.zeros((len(test), 2, len(AV_ACTIONS)))
    scores[:, :, MOVE] = 1
    nowhere = judge_removals(TUBES, [network], scores, test, 0)
    scores[~lights, :, STOP] = 2
    found = judge_removals(TUBES, [network], scores, test, 0)
    number = number_stops(test, test.goes)
    counts = {"lights": len(np.unique(number[lights])), "zebra": len(np.unique(number[test.goes & ~lights]))}
    assert min(counts.values()) > 0
    assert {row.kind: (row.stops, row.missed) for row in found if row.kind in counts} == {
        "lights": (0, counts["lights"]), "zebra": (counts["zebra"], 0),
    }  # fmt: skip
    assert {row.kind: row.missed for row in nowhere} == {
        "all": sum(counts.values()),
        SEVERAL: sum(counts.values()),
    } | counts


def test_each_stop_is_counted_once_and_says_why_it_is_not_judged() -> None:
    rows = make_rows(1, 0)
    # Five stops of two frames, two frames apart.
    stands = np.isin(np.arange(20), [0, 1, 4, 5, 8, 9, 12, 13, 16, 17])
    action = np.where(stands, STOP, MOVE)
    culprit = np.zeros_like(rows.culprit)
    culprit[[0, 4], 3] = True
    goes, unseen = np.zeros(20, np.bool_), np.zeros(20, np.bool_)
    goes[[0, 4, 9]], unseen[[4, 12]] = True, True
    made = replace(rows, action=np.stack([action, action], axis=1), culprit=culprit, goes=goes, unseen=unseen)
    assert count_stops(made) == {
        "all": 5, "judged": 2, "culprit not detected": 1, "culprit out of the image": 1, "would not go on": 1,
    }  # fmt: skip


def test_stops_are_runs_of_frames_of_one_scene() -> None:
    rows = make_rows(1, 0)
    action = np.array([STOP, STOP, MOVE, STOP, STOP, STOP] + [MOVE] * 14)
    scene = np.array([0, 0, 0, 0, 1, 1] + [1] * 14)
    made = replace(rows, action=np.stack([action, action], axis=1), scene=scene)
    caused = np.array([True, False, True, True, True, True] + [False] * 14)
    assert number_stops(made, caused)[:6].tolist() == [0, -1, 0, 1, 2, 2]


def test_counterfactuals_are_stops_without_their_culprits_and_drives_with_them() -> None:
    rows = make_rows(4, 3)
    more = add_counterfactuals(rows)
    n = int(rows.goes.sum())
    assert len(more) == len(rows) + n + decisions._TRANSPLANTS * n
    gone = select_rows(more, np.arange(len(rows), len(rows) + n))
    assert (gone.action == MOVE).all()
    assert not (gone.filled & gone.culprit).any()
    assert (gone.filled.sum(axis=1) == 3).all()
    put = select_rows(more, np.arange(len(rows) + n, len(more)))
    assert (put.action[:, 0] == STOP).all()
    assert (put.filled.sum(axis=1) == 4).all()
    # Three tubes of a frame in which it drives, and the fourth of a stop, of the same scene where it drives in that one.
    owner = {tokens[3].tobytes(): int(scene) for scene, tokens in zip(rows.scene, rows.tokens, strict=True)}
    drives_in = set(rows.scene[~rows.goes].tolist())
    for scene, tokens in zip(put.scene.tolist(), put.tokens, strict=True):
        donor = owner[tokens[3].tobytes()]
        assert donor == scene or donor not in drives_in
    drives = {tokens[:3].tobytes() for tokens in rows.tokens[~rows.goes]}
    assert {tokens[:3].tobytes() for tokens in put.tokens} <= drives
    held = add_counterfactuals(replace(rows, goes=np.zeros(len(rows), np.bool_)))
    assert len(held) == len(rows)


def test_a_frame_that_is_full_makes_room_for_the_culprit() -> None:
    rows = make_rows(2, 3)
    filled = rows.filled.copy()
    filled[~rows.goes] = True
    more = add_counterfactuals(replace(rows, filled=filled))
    put = select_rows(more, np.arange(len(rows) + int(rows.goes.sum()), len(more)))
    assert put.culprit[:, -1].all()
    assert (put.culprit.sum(axis=1) == 1).all()
    assert (put.filled.sum(axis=1) == MOST_TOKENS).all()


@pytest.mark.parametrize("counterfactual", [False, True])
def test_what_only_moves_along_with_stops_is_left_alone_where_culprits_are_taught(
    counterfactual: bool,
) -> None:
    """All tubes rest while the vehicle stands: a network may read that instead of the culprit."""
    rows, val = make_rows(24, 6), make_rows(6, 7)
    resting = COLUMNS.index("motion.x")
    for part in (rows, val):
        part.tokens[:, :4, resting] = np.where(part.goes, 0.0, 3.0)[:, None]
        # The culprit itself is hard to tell: it is there in every second frame of driving, farther away.
        part.filled[::2, 3] = True
    taught = add_counterfactuals(rows) if counterfactual else rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_BATCH", 16)
        network = fit_decisions(taught, val, HEAD, epochs=3, counterfactual=counterfactual)
    stops = select_rows(val, val.goes)
    whole = ask_networks([network], stops)[:, 0, STOP].mean()
    gone = ask_networks([network], stops, stops.culprit)[:, 0, STOP].mean()
    assert whole > 0.5
    assert (gone < 0.5) == counterfactual


def test_pixels_that_stand_still_are_learnt_and_mirrored() -> None:
    rng = np.random.default_rng(0)
    rows = make_rows(8, 8)
    image = np.repeat(rng.integers(0, 255, (len(rows), 1, 16, 24), np.uint8), 6, axis=1)
    moved = rng.integers(0, 255, (len(rows), 3, 16, 24), np.uint8)
    # Where it stands the past looks as the present does.
    image[~rows.goes, 3:] = moved[~rows.goes]
    half = len(rows) // 2
    taught, kept = np.arange(half), np.arange(half, len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_BATCH", 16)
        module = fit_pixel_baseline(
            image[taught], select_rows(rows, taught), image[kept], select_rows(rows, kept), epochs=6
        )
    said = ask_modules([module], image[kept])
    assert said.shape == (half, 2, len(AV_ACTIONS))
    assert said.sum(axis=-1) == pytest.approx(1)
    assert (said[:, 0].argmax(axis=1) == rows.action[kept, 0]).mean() > 0.9


def test_images_of_a_moment_are_its_own_and_grey_ones_of_before() -> None:
    image = np.zeros((5, 2, 3, 3), np.uint8)
    image[..., 0], image[..., 1] = np.arange(5)[:, None, None] * 40, 100
    found = stack_images(cast(MindedScene, SimpleNamespace(image=image)))
    assert found.shape == (5, 6, 2, 3)
    assert found[3, :3, 0, 0].tolist() == [120, 100, 0]
    # Luma of red 0.299 and green 0.587, of 0.25, 0.5 and 1 s before: of the first where there was none.
    grey = [int(0.299 * 40 * k + 0.587 * 100) for k in range(5)]
    assert np.abs(found[4, 3:, 0, 0].astype(int) - [grey[3], grey[2], grey[0]]).max() <= 1
    assert np.abs(found[0, 3:, 0, 0].astype(int) - grey[0]).max() <= 1


def test_the_own_motion_is_learnt_where_it_tells() -> None:
    train, val = make_rows(20, 4), make_rows(5, 5)
    for rows in (train, val):
        rows.past[:, :, 0] += 6 * (rows.action[:, 0] == STOP)[:, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_BATCH", 16)
        module = fit_motion_baseline(train, val, epochs=6)
    said = ask_modules([module], val.past)[:, 0].argmax(axis=1)
    assert (said == val.action[:, 0]).mean() > 0.9


def test_the_page_says_how_far_it_came(judged_frames: Judged) -> None:
    found = judged_frames[1:]
    study = DecisionStudy(
        *found, {"train": 30, "val": 6, "test": 8}, {"train": 600, "val": 120, "test": 160}, {"zebra": 9},
        count_stops(judged_frames[0]), 1,
    )  # fmt: skip
    said = " ".join(list_decision_findings(study))
    assert "aim 0.7: reached" in said
    page = report([build_decision_section(study)], title="x")
    assert "Stops whose culprit is taken away" in page
    assert "pixels over a second" in page
    assert "class prior" in format_decision_study(study)
    assert study.as_dict()["rows"][0]["name"] == TUBES


def test_a_study_of_other_towns_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    begun = json.dumps({"format": FORMAT, "towns": 5, "seeds": 1})
    (tmp_path / MARKER).write_text(begun)
    with pytest.raises(UsageError, match="learns from 5 towns, and 4 are asked for; name another folder"):
        run_decision_study(tmp_path, towns=4)
    assert [path.name for path in tmp_path.iterdir()] == [MARKER]
    assert (tmp_path / MARKER).read_text() == begun


def test_too_few_towns_are_refused() -> None:
    assert count_scenes(120) == {"train": 120, "val": 18, "test": 240}
    with pytest.raises(UsageError, match="at least 4"):
        count_scenes(3)
