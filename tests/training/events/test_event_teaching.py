"""The teaching set: the same by seed, errors as asked for, mirrors, and a calibrated fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from roadaware.models.event_head.head import FEATURES, SCENE_FEATURES, SmallNetwork
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.fit import calibrate, fit_head
from roadaware.training.events.rows import (
    DetectorErrors,
    MotionNoise,
    Rows,
    apply_detector_errors,
    estimate_motion,
    flip_scene,
    join_rows,
    make_rows,
)
from roadaware.training.events.scenes import SceneTruth, draw_config, load_truth, save_truth

NO_ERRORS = DetectorErrors(jitter=0.0, miss=0.0, ghosts=0.0, confusion=0.0)


def a_truth(frames: int = 40) -> SceneTruth:
    """A car that comes near on the left, and a parked one."""
    k = np.arange(frames)
    near = np.stack([200 - 3 * k, 150 - k, 240 - 2 * k, 180 + k], axis=1)
    still = np.tile([400, 160, 430, 180], (frames, 1))
    frame, tube = np.tile(k, 2), np.repeat([0, 1], frames)
    order = np.argsort(frame, kind="stable")
    action = np.zeros((2 * frames, len(ACTIONS)), np.bool_)
    action[:frames, ACTIONS.index("MovTow")] = action[frames:, ACTIONS.index("Stop")] = True
    place = np.repeat([LOCATIONS.index("LftPav"), LOCATIONS.index("RhtParking")], frames)
    rates = {"yaw_rps": np.linspace(0, 0.2, frames), "pitch_rps": np.zeros(frames)}
    return SceneTruth(
        "made", (480, 360), 400.0, 12.0, 1.5, True, frame[order], tube[order],
        np.concatenate([near, still]).astype(np.float64)[order], np.zeros(2 * frames, np.int64),
        (tube == 1)[order],
        np.ones(2 * frames, np.int64), action[order], place[order], **rates,
        speed_mps=np.full(frames, 6.0), av=np.ones(frames, np.int64),
    )  # fmt: skip


def test_configs_are_drawn_by_seed_and_unusual_cameras_lie_beyond() -> None:
    drawn = [draw_config(1, k, "usual").camera for k in range(40)]
    assert drawn == [draw_config(1, k, "usual").camera for k in range(40)]
    assert min(c.fps for c in drawn) == 8
    assert max(c.fps for c in drawn) == 30
    for k in range(40):
        camera = draw_config(2, k, "unusual").camera
        usual = 45 <= camera.fov_deg <= 95, 1.15 <= camera.height_m <= 2.2, -7 <= camera.pitch_deg <= 2
        assert not all(usual)
    assert draw_config(0, 0, "road").name == "road@1"


def test_without_errors_every_box_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    truth = a_truth()
    found = apply_detector_errors(truth, NO_ERRORS, np.random.default_rng(0))
    assert sorted(found.source.tolist()) == list(range(len(truth.box)))
    assert np.abs(found.box - truth.box[found.source]).max() <= 0.5
    path = tmp_path_factory.mktemp("truth") / "a.npz"
    save_truth(truth, path)
    assert np.array_equal(load_truth(path).box, truth.box)


def test_errors_are_as_many_as_asked_for() -> None:
    truth = a_truth(400)
    # A wall of one size, so that smallness adds no misses.
    truth = replace(truth, box=np.tile([100.0, 100, 200, 200], (800, 1)))
    errors = DetectorErrors(jitter=0.05, miss=0.2, ghosts=1.0, confusion=0.3, parked=False)
    runs = [apply_detector_errors(truth, errors, np.random.default_rng(k)) for k in range(12)]
    seen = np.mean([(run.source >= 0).sum() / 400 for run in runs])
    assert seen == pytest.approx(0.8, abs=0.06)
    ghosts = np.mean([(run.source < 0).sum() / 400 for run in runs])
    assert 0.4 < ghosts < 1.2
    real = [run.box[run.source >= 0] for run in runs]
    assert np.std(np.concatenate(real)[:, 0]) == pytest.approx(5 * 0.75, rel=0.2)
    assert all((np.diff(run.frame) >= 0).all() for run in runs)


def test_rows_say_what_is_true_of_whom() -> None:
    rows = make_rows(a_truth(), 3, 0, errors=NO_ERRORS, pixels=True)
    assert rows.x.shape == (80, len(FEATURES))
    assert rows.drive.shape == (40, len(SCENE_FEATURES))
    assert rows.parked.sum() == 40
    assert (rows.action[rows.parked].argmax(axis=1) == ACTIONS.index("Stop")).all()
    same = make_rows(a_truth(), 3, 0, errors=NO_ERRORS, pixels=True)
    assert np.array_equal(rows.x, same.x)
    assert len(join_rows([rows, same]).x) == 160


def test_a_mirror_changes_left_and_right_and_back() -> None:
    truth = a_truth()
    turned = flip_scene(truth)
    assert LOCATIONS[int(turned.location[0])] == "RhtPav"
    assert turned.yaw_rps[-1] == -truth.yaw_rps[-1]
    assert not turned.left_hand
    again = flip_scene(turned)
    assert np.allclose(again.box, truth.box)
    assert np.array_equal(again.location, truth.location)


def test_the_own_motion_errs_as_it_is_said_to() -> None:
    truth = a_truth(2000)
    noise = MotionNoise(scenes=0.0, speed_share=0.0, dark=0.0, lost=0.1)
    told = estimate_motion(truth, noise, np.random.default_rng(0), truth.focal_px)
    assert np.mean([each is None for each in told]) == pytest.approx(0.1, abs=0.03)
    yaw = [each.yaw_rps - true for each, true in zip(told, truth.yaw_rps, strict=True) if each]
    assert np.std(yaw) == pytest.approx(noise.yaw_rps, rel=0.1)
    other = estimate_motion(truth, replace(noise, yaw_rps=0.0), np.random.default_rng(0), 2 * truth.focal_px)
    assert other[-1] is None or other[-1].yaw_rps == pytest.approx(0.1, abs=1e-6)


def some_rows(seed: int, n: int = 3000) -> Rows:
    """Rows whose first column decides one action, and another one by half."""
    rng = np.random.default_rng(seed)
    x, drive = rng.standard_normal((n, len(FEATURES))), rng.standard_normal((n, len(SCENE_FEATURES)))
    action, location = np.zeros((n, len(ACTIONS)), np.bool_), np.zeros((n, len(LOCATIONS)), np.bool_)
    action[:, 0] = x[:, 0] > 0
    action[:, 1] = rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 1]))
    location[np.arange(n), np.where(x[:, 2] > 0, 1, 2)] = True
    zeros = np.zeros(n, np.int64)
    av = (drive[:, 0] > 0).astype(np.int64)
    return Rows(
        x.astype(np.float32), action, location, zeros, zeros, zeros, zeros > 0, zeros.astype(np.float32),
        drive.astype(np.float32), av, zeros,
    )  # fmt: skip


@pytest.mark.slow
def test_a_fit_learns_is_the_same_by_seed_and_reads_only_what_it_may() -> None:
    rows, others = some_rows(0, 12_000), some_rows(1)
    head = fit_head(rows, others, networks=1, epochs=10)
    action, location = head.scores(others.x)
    assert ((action[:, 0] > 0.5) == others.action[:, 0]).mean() > 0.9
    assert ((location[:, 1] > 0.5) == others.location[:, 1]).mean() > 0.9
    first, again = (fit_head(others, others, networks=1, epochs=1) for _ in range(2))
    assert np.array_equal(first.tubes.logits(others.x), again.tubes.logits(others.x))
    blind = fit_head(others, others, networks=1, epochs=1, columns=[5, 6])
    moved = others.x.copy()
    moved[:, 0] += 1
    assert np.array_equal(blind.scores(others.x)[0], blind.scores(moved)[0])


def test_what_is_added_to_the_loss_is_learnt() -> None:
    """A requirement that no label of the truth keeps: whoever does the third action does the fourth."""
    rows, others = some_rows(0, 3_000), some_rows(1, 500)
    rows.action[:, 2] = rows.x[:, 3] > 0
    agents = len(ROAD_AGENTS)

    class Implies(torch.nn.Module):
        def forward(self, logits: torch.Tensor) -> torch.Tensor:
            assert logits.shape[1] == agents + len(ACTIONS) + len(LOCATIONS)
            # The agent that is told, and no other.
            assert (logits[:, 0] > 5).all()
            assert (logits[:, 1:agents] < -5).all()
            third, fourth = logits[:, agents + 2].sigmoid(), logits[:, agents + 3].sigmoid()
            return 20 * (third * (1 - fourth)).sum()

    # Of so few true ones the calibration is left at 1 and 0.
    plain, bound = (
        fit_head(rows, others, networks=1, epochs=4, logic=logic).scores(others.x)[0]
        for logic in (None, Implies())
    )
    third = plain[:, 2] > 0.5
    assert 0.3 < third.mean() < 0.7
    assert plain[third, 3].mean() < 0.2
    assert (bound[:, 2] * (1 - bound[:, 3])).mean() < 0.3 * (plain[:, 2] * (1 - plain[:, 3])).mean()


def test_calibration_undoes_a_wrong_slope() -> None:
    rng = np.random.default_rng(0)
    logit = rng.standard_normal((20_000, 1)).astype(np.float32)
    truth = rng.random((20_000, 1)) < 1 / (1 + np.exp(-(0.5 * logit + 1)))
    eye = np.ones((1, 1), np.float32), np.zeros(1, np.float32)
    one, none = np.ones(1, np.float32), np.zeros(1, np.float32)
    told = calibrate(SmallNetwork(none, one, ((eye,),), one, none), logit, truth)
    assert told.slope[0] == pytest.approx(0.5, abs=0.05)
    assert told.offset[0] == pytest.approx(1.0, abs=0.05)
