"""What the anticipation head learns from: the same boxes and labels as a plain search finds later, and a fit that helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_event_teaching import NO_ERRORS, a_truth

from roadaware.errors import UsageError
from roadaware.models.event_head.anticipation import (
    BOX,
    HORIZONS_S,
    PRESENT,
    decode_boxes,
    encode_boxes,
    join_inputs,
)
from roadaware.models.event_head.head import SmallNetwork, open_head
from roadaware.training.events.fit import (
    FutureRows,
    _select_shares,
    fit_anticipation,
    join_future_rows,
    make_future_rows,
)
from roadaware.training.events.rows import DetectorErrors


def rows_of(seed: int, number: int = 0, errors: DetectorErrors | None = NO_ERRORS) -> FutureRows:
    return make_future_rows(a_truth(60), number, seed, errors=errors, pixels=True)


def test_the_future_of_each_box_is_what_a_plain_search_finds() -> None:
    truth, rows = a_truth(60), rows_of(1)
    assert rows.real.all()
    found = 0
    for n in range(len(rows.frame)):
        overlaps = np.abs(encode_boxes(truth.box) - rows.now[n]).max(axis=1) + 1e6 * (
            truth.frame != rows.frame[n]
        )
        tube = truth.tube[int(overlaps.argmin())]
        for k, horizon_s in enumerate(HORIZONS_S):
            later = rows.frame[n] + round(horizon_s * truth.fps)
            assert rows.known[n, k] == (later < truth.n_frames)
            at = np.flatnonzero((truth.tube == tube) & (truth.frame == later))
            assert rows.present[n, k] == bool(len(at))
            if len(at):
                found += 1
                np.testing.assert_allclose(rows.box[n, k], encode_boxes(truth.box[at])[0])
                assert (rows.action[n, k] == truth.action[at[0]]).all()
                assert rows.location[n, k].argmax() == truth.location[at[0]]
    assert found > 100


def test_ghosts_have_no_future() -> None:
    rows = rows_of(2, errors=DetectorErrors(ghosts=3.0, parked=False))
    assert not rows.real.all()
    assert not rows.present[~rows.real].any()
    assert not rows.action[~rows.real].any()


def test_a_fit_meets_boxes_that_constant_velocity_misses() -> None:
    rows, kept_back = (join_future_rows([rows_of(seed + n, n) for n in range(2)]) for seed in (3, 9))
    head = fit_anticipation(rows, kept_back, open_head(), networks=1, epochs=40)
    expected = head.anticipate(
        rows.x.astype(np.float64), open_head().tubes.logits(rows.x), rows.now, rows.speed
    )
    untrained = fit_anticipation(rows, kept_back, open_head(), networks=1, epochs=0)
    before = untrained.anticipate(
        rows.x.astype(np.float64), open_head().tubes.logits(rows.x), rows.now, rows.speed
    )
    seen = rows.present & rows.known
    errors = [np.abs(each.boxes - decode_boxes(rows.box))[seen].mean() for each in (expected, before)]
    assert errors[0] < 0.8 * errors[1]


def test_each_label_is_trusted_as_far_as_scenes_kept_back_bear_it_out() -> None:
    head, rng = open_head(), np.random.default_rng(5)
    rows = join_future_rows([rows_of(seed, seed) for seed in range(2)])
    rows = replace(rows, x=rows.x.copy(), action=np.zeros_like(rows.action))
    n = len(rows.x)
    right, wrong, rare = 0, 1, 2
    rows.action[:, :, (right, wrong)] = rng.random((n, 1, 1)) < 0.5
    rows.action[0, :, rare] = True
    rows.x[:, 0] = np.where(rows.action[:, 0, right], 1, -1)
    outputs = PRESENT + len(head.actions) + len(head.locations) + BOX
    weight = np.zeros(
        (join_inputs(rows.x, head.tubes.logits(rows.x)).shape[1], len(HORIZONS_S) * outputs), np.float32
    )
    for k in range(len(HORIZONS_S)):
        weight[0, k * outputs + PRESENT + right] = weight[0, k * outputs + PRESENT + rare] = 8
        weight[0, k * outputs + PRESENT + wrong] = -8
    inputs, columns = (np.zeros(size, np.float32) for size in weight.shape)
    network = SmallNetwork(inputs, inputs + 1, (((weight, columns),),), columns + 1, columns)
    shares = _select_shares(network, rows, head)
    assert (shares[:2, PRESENT + right] == 1).all()
    assert (shares[:, PRESENT + wrong] == 0).all()
    assert (shares[:, PRESENT + rare] == 0).all()
    assert (shares[:, 0] == 1).all()
    assert (shares[:, -BOX:] == 1).all()


def test_without_scenes_kept_back_no_label_is_trusted_and_without_rows_nothing_is_learnt() -> None:
    rows = rows_of(3)
    none = FutureRows(**{name: held[:0] for name, held in vars(rows).items()})
    head = fit_anticipation(rows, none, open_head(), networks=1, epochs=1)
    labels = slice(PRESENT, -BOX)
    slope = head.network.slope.reshape(len(HORIZONS_S), -1)
    assert (slope[:, labels] == 0).all()
    assert (slope[:, -BOX:] > 0).all()
    with pytest.raises(UsageError, match="learn anticipation from"):
        fit_anticipation(none, rows, open_head(), networks=1, epochs=1)
