"""States that adapt keep their promises on synthetic streams, equal plain versions, and come back from plain data."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from roadaware.statistics.adaptation import AdaptiveConformal, AdaptivePredictor, OnlinePlatt, ShiftAlarm
from roadaware.statistics.conformal import calibrate_conformal

HELD = tuple(np.linspace(0, 1, 101).tolist())


def stream(seed: int, n: int, slope: float = 1.0, bias: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and outcomes whose log odds are slope * theirs + bias."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    return 1 / (1 + np.exp(-z)), (rng.random(n) < 1 / (1 + np.exp(-(slope * z + bias)))).astype(int)


def test_calibration_finds_what_changed_and_forgets_it_again() -> None:
    state = OnlinePlatt(keep=0.995)
    for said, came in zip(*stream(0, 4000, bias=-2.0), strict=True):
        state = state.update(said, came)
    assert state.bias == pytest.approx(-2.0, abs=0.4)
    assert state.slope == pytest.approx(1.0, abs=0.25)
    for said, came in zip(*stream(1, 2000, bias=1.0), strict=True):
        state = state.update(said, came)
    assert state.bias == pytest.approx(1.0, abs=0.4)


def test_without_forgetting_it_is_nearly_the_fit_by_all_outcomes_at_once() -> None:
    from scipy.optimize import minimize

    said, came = stream(2, 3000, slope=0.6, bias=-1.0)
    state = OnlinePlatt(keep=1.0)
    for p, y in zip(said, came, strict=True):
        state = state.update(p, y)
    z = np.log(said / (1 - said))

    def loss(w: np.ndarray) -> float:
        odds = w[0] * z + w[1]
        prior = (w[0] - 1) ** 2 / (2 * 0.3**2) + w[1] ** 2 / (2 * 2.0**2)
        return float(np.logaddexp(0, odds).sum() - (came * odds).sum() + prior)

    wanted = minimize(loss, [1.0, 0.0]).x
    assert (state.slope, state.bias) == pytest.approx(tuple(wanted), abs=0.03)


@pytest.mark.parametrize("delay", [0, 40])
@pytest.mark.parametrize("kind", ["shifted", "adversary", "drift"])
def test_sets_miss_as_often_as_promised_whatever_comes(kind: str, delay: int) -> None:
    n, rate, alpha = 3000, 0.05, 0.1
    said, came = stream(3, n, bias=-3.0)
    if kind == "drift":
        came = np.concatenate([stream(4, n // 2)[1], 1 - came[n // 2 :]])
    state, held, missed, pending = AdaptiveConformal(HELD, alpha, rate), 0, 0, []
    for p, y in zip(said, came, strict=True):
        labels = state.predict(p)
        # The adversary says the label that is left out, wherever there is one.
        truth = y if kind != "adversary" else (0 if not labels[0] else 1)
        missed += not labels[truth]
        pending.append(labels[truth])
        if len(pending) > delay:
            state = state.update(pending.pop(0))
            held += 1
    bound = (max(alpha, 1 - alpha) + rate * (1 + delay)) / (rate * held) + delay / n
    assert abs(missed / n - alpha) <= bound + 0.002
    assert state.outcomes == held


def test_sets_begin_as_those_of_split_conformal_prediction() -> None:
    said, came = stream(5, 500)
    state = AdaptiveConformal.calibrate(said, came, kept=501)
    assert state.threshold == pytest.approx(calibrate_conformal(said[:, None], came).threshold, abs=0.01)
    frozen = AdaptiveConformal.calibrate(said, came, rate=0.0)
    for _ in range(5):
        frozen = frozen.update(False)
    assert frozen.threshold == AdaptiveConformal.calibrate(said, came).threshold
    assert AdaptiveConformal(HELD, level=-0.1).predict(0.5) == (True, True)
    assert AdaptiveConformal(HELD, level=1.0).predict(0.0) == (False, False)


def listen(rows: np.ndarray, alarm: ShiftAlarm) -> ShiftAlarm:
    for row in rows.tolist():
        alarm = alarm.update(row)
    return alarm


def test_false_alarms_are_as_rare_as_stated_and_a_shift_is_heard() -> None:
    rng = np.random.default_rng(0)
    false = heard = 0
    for trial in range(100):
        # Counts among the numbers: ties must not sound like a shift.
        held, same = (np.column_stack([rng.normal(size=(n, 3)), rng.poisson(1, n)]) for n in (40, 40))
        alarm = ShiftAlarm(tuple(map(tuple, held)), chance=0.1, looks=(5, 20, 40), exchanges=199, seed=trial)
        false += listen(same, alarm).is_raised
        if trial < 20:
            found = listen(same + np.array([0, 1.5, 0, 0]), alarm)
            heard += found.number == 1
    # Of 100 at chance .1 more than 18 come with a probability below one in a hundred.
    assert false <= 18
    assert heard >= 18


def test_the_share_of_exchanges_is_that_of_all_of_them() -> None:
    held, seen = ((0.0, 1.0), (1.0, 1.0), (2.0, 5.0), (3.0, 2.0)), ((9.0, 1.0), (8.0, 1.0))
    alarm = ShiftAlarm(held, 0.5, looks=(2,), exchanges=4000, seen=seen)
    table = np.array([*held, *seen])
    ranks = np.array(
        [[np.mean([(a < b) + 0.5 * (a == b) for a in column]) for b in column] for column in table.T]
    ).T
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    every = [np.abs(ranks[list(pair)].mean(axis=0)).max() for pair in combinations(range(6), 2)]
    own = np.abs(ranks[4:].mean(axis=0))
    p, number = alarm.compare()
    assert number == int(own.argmax())
    assert p == pytest.approx(np.mean(np.array(every) >= own.max() - 1e-9), abs=0.03)


def test_nothing_is_heard_behind_the_last_comparison() -> None:
    alarm = ShiftAlarm(((0.0,),) * 9, looks=(2, 3), exchanges=99)
    quiet = listen(np.zeros((5, 1)), alarm)
    assert (len(quiet.seen), quiet.raised_at) == (3, None)
    loud = listen(
        np.array([[1.0], [2.0], [3.0]]), replace(alarm, held=tuple((-float(n),) for n in range(30)))
    )
    assert (loud.raised_at, loud.number, len(loud.seen)) == (2, 0, 2)


def test_states_come_back_from_plain_data_and_never_grow() -> None:
    said, came = stream(6, 400)
    one = AdaptivePredictor(OnlinePlatt(), AdaptiveConformal.calibrate(said, came), most=8)
    alarm = ShiftAlarm(tuple(map(tuple, said[:100, None].tolist())), exchanges=99)
    sizes = set()
    for place, (p, y) in enumerate(zip(said.tolist(), came.tolist(), strict=True)):
        one.predict(str(place), p)
        if place >= 5:
            one.observe(str(place - 5), int(came[place - 5]))
        alarm = alarm.update([p])
        sizes.add((len(one.waiting), len(one.sets.scores), len(alarm.held)))
        assert y in (0, 1)
    assert len({size for size in sizes if size[0] == 5}) == 1
    assert max(size[0] for size in sizes) <= 6
    back = AdaptivePredictor.from_dict(json.loads(json.dumps(one.as_dict())))
    assert back == one
    assert ShiftAlarm.from_dict(json.loads(json.dumps(alarm.as_dict()))) == alarm
    # Nine wait where eight may: the oldest is given up, and its outcome changes nothing.
    full = AdaptivePredictor(OnlinePlatt(), AdaptiveConformal(HELD), most=8)
    for place in range(9):
        full.predict(str(place), 0.4)
    assert (full.given_up, len(full.waiting)) == (1, 8)
    before = full.as_dict()
    full.observe("0", 1)
    assert full.as_dict() == before


def test_an_outcome_that_is_none_changes_nothing_and_numbers_may_be_of_any_type() -> None:
    one, other = (AdaptivePredictor(OnlinePlatt(), AdaptiveConformal(HELD)) for _ in range(2))
    one.predict("7", 0.25)
    other.predict(7, np.float32(0.25))  # type: ignore[arg-type]
    other = AdaptivePredictor.from_dict(json.loads(json.dumps(other.as_dict())))
    before = one.as_dict()
    for truth in (2, 0.5, math.nan):
        with pytest.raises(ValueError, match="0 or 1"):
            one.observe("7", truth)  # type: ignore[arg-type]
        assert one.as_dict() == before
    one.observe("7", 1)
    other.observe(7, np.float64(1.0))  # type: ignore[arg-type]
    assert one == other != AdaptivePredictor.from_dict(before)


def test_what_is_no_probability_outcome_or_state_is_refused() -> None:
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            OnlinePlatt().predict(value)
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            AdaptiveConformal(HELD).predict(value)
    with pytest.raises(ValueError, match="0 or 1"):
        OnlinePlatt().update(0.5, 2)
    with pytest.raises(ValueError, match="keep"):
        OnlinePlatt(keep=0.0)
    with pytest.raises(ValueError, match="rising"):
        AdaptiveConformal((0.5, 0.1))
    with pytest.raises(ValueError, match="alpha"):
        AdaptiveConformal(HELD, alpha=1.0)
    for said, labels in (
        ([0.2, np.nan], [0, 1]),
        ([20, 80], [0, 1]),
        ([0.2, 0.8], [0, 2]),
        ([0.2, 0.8], [0, 0.5]),
    ):
        with pytest.raises(ValueError, match=r"lie in \[0, 1\], and every label be 0 or 1"):
            AdaptivePredictor.calibrate(said, labels)
    with pytest.raises(ValueError, match="rising"):
        AdaptiveConformal((0.1, math.nan))
    with pytest.raises(ValueError, match="n > 0"):
        AdaptiveConformal.calibrate([], [])
    with pytest.raises(ValueError, match="rising"):
        AdaptiveConformal((0.1, math.nan))
    for said in ([0.2, math.nan], [0.2, 90.0], [-0.1, 0.5]):
        with pytest.raises(ValueError, match="every probability"):
            AdaptivePredictor.calibrate(said, [0, 1])
    for came in ([0.2, 0.9], [1, 2], [0, math.nan]):
        with pytest.raises(ValueError, match="every label"):
            AdaptivePredictor.calibrate([0.2, 0.9], came)
    with pytest.raises(ValueError, match="1 or more"):
        AdaptivePredictor.calibrate([0.2, 0.9], [0, 1], most=0)
    for held in ((), ((),), ((1.0,), (1.0, 2.0)), ((math.nan,),)):
        with pytest.raises(ValueError, match="a video at least"):
            ShiftAlarm(held)
    with pytest.raises(ValueError, match="2 finite numbers"):
        ShiftAlarm(((0.0, 1.0),)).update([1.0])
    with pytest.raises(ValueError, match="rising"):
        ShiftAlarm(((0.0,),), looks=(5, 5))
    with pytest.raises(ValueError, match="cannot show"):
        ShiftAlarm(((0.0,),), exchanges=9)
    with pytest.raises(ValueError, match="a state of OnlinePlatt has"):
        OnlinePlatt.from_dict({"slope": 1.0})
