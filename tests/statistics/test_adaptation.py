"""States that adapt keep their promises on synthetic streams, equal plain versions, and come back from plain data."""

from __future__ import annotations

import json
import math

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


def test_false_alarms_are_as_rare_as_stated_and_a_shift_is_heard() -> None:
    rng = np.random.default_rng(0)
    false = heard = 0
    for trial in range(120):
        learnt, held_out = rng.normal(size=(200, 3)), rng.normal(size=(60, 3))
        alarm = ShiftAlarm.calibrate(learnt, held_out, chance=0.1, bins=16, seed=trial)
        for row in rng.normal(size=(120, 3)).tolist():
            alarm = alarm.update(row)
        false += alarm.is_raised
        if trial < 20:
            alarm = ShiftAlarm.calibrate(learnt, held_out, chance=0.1, bins=16, seed=trial)
            for row in rng.normal([0, 1.5, 0], 1, size=(120, 3)).tolist():
                alarm = alarm.update(row)
            heard += alarm.is_raised
    # Of 120 at chance .1 more than 22 come with a probability below one in a hundred.
    assert false <= 22
    assert heard >= 18


def test_a_bet_equals_one_by_hand() -> None:
    alarm = ShiftAlarm(((0.0,),), ((3, 1),), jump=0.1, seed=4)
    tie = float(np.random.default_rng([4, 0]).random(1)[0])
    # Into the upper bin, which then holds two of five; none lies above it.
    p = tie * 2 / 5
    moved = alarm.update([1.0])
    wanted = [1 / 3 * (1 + way * (p - 0.5)) for way in (-1, 0, 1)]
    assert moved.capital[0] == pytest.approx(wanted)
    assert moved.counts == ((3, 2),)
    assert moved.evidence == pytest.approx(sum(wanted))


def test_states_come_back_from_plain_data_and_never_grow() -> None:
    said, came = stream(6, 400)
    one = AdaptivePredictor(OnlinePlatt(), AdaptiveConformal.calibrate(said, came), most=8)
    alarm = ShiftAlarm.calibrate(said[:100, None], said[100:150, None])
    sizes = set()
    for place, (p, y) in enumerate(zip(said.tolist(), came.tolist(), strict=True)):
        one.predict(str(place), p)
        if place >= 5:
            one.observe(str(place - 5), int(came[place - 5]))
        alarm = alarm.update([p])
        sizes.add((len(one.waiting), len(one.sets.scores), len(alarm.counts[0])))
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
    with pytest.raises(ValueError, match="n > 0"):
        AdaptiveConformal.calibrate([], [])
    with pytest.raises(ValueError, match="a bin more"):
        ShiftAlarm(((0.0,),), ((1,),))
    with pytest.raises(ValueError, match="2 finite numbers"):
        ShiftAlarm.calibrate(np.zeros((5, 2)), np.zeros((5, 2))).update([1.0])
    with pytest.raises(ValueError, match="finite"):
        ShiftAlarm.calibrate(np.full((5, 1), np.nan), np.zeros((5, 1)))
    with pytest.raises(ValueError, match="a state of OnlinePlatt has"):
        OnlinePlatt.from_dict({"slope": 1.0})
