"""The learner of streams: bounded memory, the same bits after a restart, labels that come and go, fits."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_event_teaching import a_truth

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.npz import decode, encode, save_arrays
from roadaware.models.event_head.head import FEATURES, SCENE_FEATURES, open_head
from roadaware.protocols.continual import _load_run
from roadaware.protocols.event_domains import Reading
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.training.events.online import (
    ContinualLearner,
    FitConfig,
    LearnerConfig,
    TubeNetwork,
    fit_tubes,
)
from roadaware.training.events.rows import AV_LABELS, LABELS, TubeRows, join_tube_rows, make_tube_rows

LIGHT = LearnerConfig(hidden=(12,), batch=16, passes=2, memory_tubes=5, tube_rows=3, replay=8)
MEAN, SPREAD = np.zeros(len(FEATURES), np.float32), np.ones(len(FEATURES), np.float32)


def rows(
    n: int, seed: int = 0, labels: tuple[str, ...] = LABELS[:3], sign: float = 1.0, first: int = 0
) -> TubeRows:
    """Boxes of tubes of four, whose first features say their labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, len(FEATURES))).astype(np.float32)
    truth = sign * x[:, : len(labels)] > 0
    tube = first + np.arange(n) // 4
    return TubeRows(labels, x, truth, np.ones(n, np.float32), np.ones(n, bool), tube, tube // 8)


def cut(held: TubeRows, part: slice) -> TubeRows:
    names = ("x", "truth", "weight", "judged", "tube", "scene")
    return replace(held, **{name: getattr(held, name)[part] for name in names})


@pytest.mark.parametrize(
    "change", [{}, {"average": "steps"}, {"average": "experiences"}, {"distil": 3.0}], ids=str
)
def test_a_learner_goes_on_from_its_state_to_the_same_bits(change: dict[str, Any]) -> None:
    config = replace(LIGHT, **change)
    whole, first = (ContinualLearner(MEAN, SPREAD, config, seed=3) for _ in range(2))
    held = rows(100)
    for learner in (whole, first):
        learner.learn(cut(held, slice(0, 37)))
        learner.end_experience()
    second = ContinualLearner.load_state(first.dump_state())
    for learner in (whole, second):
        learner.learn(cut(held, slice(37, 100)))
        learner.end_experience()
    assert second.dump_state() == whole.dump_state()
    assert np.array_equal(second.logits(held.x), whole.logits(held.x))
    assert second.tubes_seen == 25


def test_a_stream_may_come_in_pieces_of_any_size() -> None:
    held = rows(90)
    whole, parts = (ContinualLearner(MEAN, SPREAD, replace(LIGHT, memory_tubes=0)) for _ in range(2))
    whole.learn(held)
    for at in range(0, 90, 7):
        parts.learn(cut(held, slice(at, at + 7)))
    assert parts.dump_state() == whole.dump_state()


def test_memory_does_not_grow_and_holds_tubes_of_the_whole_stream() -> None:
    learner = ContinualLearner(MEAN, SPREAD, replace(LIGHT, memory_tubes=40))
    learner.learn(rows(64))
    bytes_then = learner.memory_bytes
    for k in range(1, 30):
        learner.learn(rows(64, seed=k, first=16 * k))
    assert learner.memory_bytes == bytes_then
    assert learner.tubes_seen == 30 * 16
    kept = learner._memory_tube
    assert len(set(kept.tolist())) == 40
    # Of 480 tubes 40 are drawn: were only the newest kept, none would be of the first half.
    assert 8 <= int((kept < 240).sum()) <= 32
    assert (learner._memory_count >= 1).all()


def test_replay_remembers_what_fine_tuning_forgets() -> None:
    asked = rows(400, seed=99)
    found = {}
    for tubes in (0, 60):
        learner = ContinualLearner(MEAN, SPREAD, replace(LIGHT, memory_tubes=tubes, replay=32, lr=0.01))
        learner.learn(rows(800, seed=1))
        for k in range(4):
            # Another rule for other labels, while the first are not annotated.
            learner.learn(rows(400, seed=2 + k, labels=LABELS[3:6], sign=-1.0, first=1000 * (k + 1)))
        found[tubes] = np.mean((learner.scores(asked.x, LABELS[:3]) > 0.5) == asked.truth)
    assert found[60] > found[0] + 0.03
    assert found[60] > 0.7


def test_distillation_keeps_what_the_head_said_of_the_memory() -> None:
    """The memory has lost the labels, and what the head said of its boxes is all that is left of them."""
    held, later = rows(800, seed=1), rows(800, seed=2, labels=LABELS[3:6], sign=-1.0, first=1000)
    found = {}
    for distil in (0.0, 4.0):
        config = replace(LIGHT, lr=0.01, memory_tubes=60, replay=32, distil=distil)
        learner = ContinualLearner(MEAN, SPREAD, config)
        learner.learn(held)
        learner.end_experience()
        learner._memory_known[:] = False
        learner.learn(later)
        found[distil] = np.mean((learner.scores(held.x, held.labels) > 0.5) == held.truth)
        assert learner.labels == LABELS[:6]
    assert found[4.0] > found[0.0] + 0.03
    # Nothing was said of it yet before the first experience was over.
    one, other = (ContinualLearner(MEAN, SPREAD, replace(LIGHT, distil=d)) for d in (0.0, 4.0))
    for learner in (one, other):
        learner.learn(held)
    assert np.array_equal(one.logits(held.x), other.logits(held.x))


def test_a_memory_of_no_weight_teaches_nothing_and_one_of_more_teaches_more() -> None:
    # Another rule for other labels, while the first are not annotated.
    held, later = rows(400, seed=1), rows(400, seed=2, labels=LABELS[3:6], sign=-1.0, first=1000)
    found = {}
    for weight in (None, 0.0, 1.0, 4.0):
        tubes, share = (0, 1.0) if weight is None else (40, weight)
        config = replace(LIGHT, lr=0.01, replay=32, memory_tubes=tubes, replay_weight=share)
        learner = ContinualLearner(MEAN, SPREAD, config)
        learner.learn(held)
        learner.learn(later)
        found[weight] = np.mean((learner.scores(held.x, held.labels) > 0.5) == held.truth)
    assert found[0.0] == found[None]
    assert found[4.0] > found[0.0] + 0.03
    assert found[4.0] != found[1.0]
    with pytest.raises(UsageError, match="replay_weight"):
        LearnerConfig(replay_weight=-1.0)


def test_labels_come_by_name_and_one_never_met_scores_nothing() -> None:
    learner = ContinualLearner(MEAN, SPREAD, LIGHT)
    learner.learn(rows(32, labels=LABELS[:2]))
    before = learner.scores(rows(8).x, LABELS[:2])
    learner.add_labels((LABELS[1], LABELS[7]))
    assert learner.labels == (*LABELS[:2], LABELS[7])
    assert np.array_equal(learner.scores(rows(8).x, LABELS[:2]), before)
    assert (learner.scores(rows(8).x, (LABELS[9],)) == 0).all()
    # In another order, and with one label less.
    swapped = replace(rows(64, first=100), labels=(LABELS[7], LABELS[1], LABELS[9]))
    learner.learn(swapped)
    assert learner.labels == (*LABELS[:2], LABELS[7], LABELS[9])


def test_an_empty_experience_changes_nothing_and_foreign_features_are_refused() -> None:
    learner = ContinualLearner(MEAN, SPREAD, LIGHT)
    learner.learn(rows(40))
    state = learner.dump_state()
    learner.learn(join_tube_rows([], LABELS[:3]))
    assert learner.dump_state() == state
    with pytest.raises(InputError, match="features of each box"):
        learner.learn(replace(rows(4), x=np.zeros((4, 7), np.float32)))
    with pytest.raises(DamagedError, match="state of a learner"):
        ContinualLearner.load_state(b"PK nothing")
    with pytest.raises(DamagedError, match="state of a learner"):
        ContinualLearner.load_state(state[:-40])
    with pytest.raises(UsageError, match="memory_tubes"):
        LearnerConfig(memory_tubes=-1)
    with pytest.raises(UsageError, match="more than a state can hold; at most"):
        ContinualLearner(MEAN, SPREAD, LearnerConfig(memory_tubes=200_000))


def rewritten(state: bytes, **facts: Any) -> bytes:
    arrays, kept = decode(state, "state")
    config = kept["config"] | facts.pop("config", {})
    return encode(arrays, {**kept, **facts, "config": config})


def packed(facts: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("facts.json", facts)
    return stream.getvalue()


def spoilt(method: int) -> bytes:
    """An archive whose member is said to be packed by a method, and is not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("facts.json", b"\xff\x05\x05\x00" + b"\xff" * 60)
    found = bytearray(stream.getvalue())
    for place in (8, found.index(b"PK\x01\x02") + 10):
        found[place : place + 2] = method.to_bytes(2, "little")
    return bytes(found)


DAMAGED_FILES = {
    "empty": b"",
    "deflate": spoilt(8),
    "lzma": spoilt(14),
    "method 99": spoilt(99),
    "nested": packed("[" * 100_000),
    "bomb": packed(" " * 20_000_000),
}


@pytest.mark.parametrize("data", DAMAGED_FILES.values(), ids=DAMAGED_FILES)
def test_a_damaged_state_is_told_as_such(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DamagedError, match="state of a learner"):
        ContinualLearner.load_state(data)
    (tmp_path / "run.npz").write_bytes(data)
    with pytest.raises(DamagedError, match="state of a learner"):
        _load_run(tmp_path / "run.npz", Reading(MEAN, SPREAD), (2, 1))


@pytest.mark.parametrize("shape", [(), (2, 2), (4, 2, 1), (2, 2, 3), (0, 2, 1)], ids=str)
def test_accuracies_of_other_experiences_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    state = np.frombuffer(ContinualLearner(MEAN, SPREAD, LIGHT).dump_state(), np.uint8)
    save_arrays(tmp_path / "run.npz", {"state": state, "accuracy": np.zeros(shape)}, {})
    with pytest.raises(DamagedError, match="other experiences"):
        _load_run(tmp_path / "run.npz", Reading(MEAN, SPREAD), (2, 1))
    save_arrays(tmp_path / "run.npz", {"state": state, "accuracy": np.zeros((1, 2, 1))}, {})
    assert _load_run(tmp_path / "run.npz", Reading(MEAN, SPREAD), (2, 1))[1].shape == (1, 2, 1)


@pytest.mark.parametrize(
    "facts",
    [
        {"filled": -5}, {"filled": 16}, {"filled": 99}, {"steps": -1}, {"newest": -2},
        {"config": {"hidden": [2e9]}}, {"config": {"hidden": [2_000_000_000]}},
        {"config": {"hidden": [65_536] * 3}}, {"config": {"memory_tubes": 1_000_000}},
    ],
    ids=str,
)  # fmt: skip
def test_a_state_whose_numbers_cannot_be_is_refused(facts: dict[str, Any]) -> None:
    learner = ContinualLearner(MEAN, SPREAD, LIGHT)
    learner.learn(rows(21))
    state = learner.dump_state()
    assert ContinualLearner.load_state(rewritten(state)).dump_state() == state
    with pytest.raises(DamagedError, match="state of a learner"):
        ContinualLearner.load_state(rewritten(state, **facts))


@pytest.mark.parametrize("hidden", [(0,), (65_537,), (4,) * 9])
def test_hidden_layers_are_bounded(hidden: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="hidden should be"):
        LearnerConfig(hidden=hidden)
    assert LearnerConfig(hidden=(65_536,) * 8).hidden[0] == 65_536


def test_a_step_follows_the_slope_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    network = TubeNetwork(np.zeros(5, np.float32), np.ones(5, np.float32), (6,), 2, rng)
    weight, _ = network.layers[1]
    weight[:] = rng.standard_normal(weight.shape)
    x, y = rng.standard_normal((7, 5)).astype(np.float32), rng.random((7, 2)).astype(np.float32)
    share = rng.random((7, 2)).astype(np.float32)

    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in network.layers]

    def loss() -> float:
        held = np.maximum(x @ layers[0][0] + layers[0][1], 0)
        out = held @ layers[1][0] + layers[1][1]
        return float((share * (np.logaddexp(0, out) - y * out)).sum())

    slopes = []
    for layer in layers:
        for part in layer:
            slope = np.zeros_like(part)
            for at in np.ndindex(part.shape):
                old, ends = part[at], []
                for move in (1e-6, -1e-6):
                    part[at] = old + move
                    ends.append(loss())
                part[at] = old
                slope[at] = (ends[0] - ends[1]) / 2e-6
            slopes.append(slope)
    network.step(x, y, share, 1e-6)
    for first, slope in zip(network.first, slopes, strict=True):
        assert first / (1 - 0.9) == pytest.approx(slope, abs=1e-3)


def test_the_learnt_network_becomes_an_event_head() -> None:
    learner = ContinualLearner(MEAN, SPREAD, LIGHT)
    held = rows(64, labels=("location/Jun", "action/Stop", "location/Pav"))
    learner.learn(held)
    head = learner.build_head(open_head())
    assert (head.actions, head.locations) == (("Stop",), ("Jun", "Pav"))
    action, location = head.scores(held.x)
    told = learner.scores(held.x, ("action/Stop", "location/Jun", "location/Pav"))
    assert np.hstack([action, location]) == pytest.approx(told, abs=1e-6)
    assert head.av_actions == open_head().av_actions
    scales = np.zeros(len(SCENE_FEATURES), np.float32), np.ones(len(SCENE_FEATURES), np.float32)
    vehicle = ContinualLearner(*scales, LIGHT)
    frames = make_tube_rows(a_truth(), 0, 5, pixels=True)[1]
    vehicle.learn(frames)
    both = learner.build_head(open_head(), vehicle)
    assert both.av_actions == tuple(AV_ACTIONS)
    odds = np.exp(vehicle.logits(frames.x[:1])[0])
    assert both.av_scores(frames.x[0]) == pytest.approx(odds / odds.sum(), abs=1e-6)


def test_rows_of_a_scene_have_its_labels_by_name() -> None:
    labels = ("location/LftPav", "action/MovTow")
    made, vehicle = make_tube_rows(a_truth(), 2, 5, labels, pixels=False)
    assert made.labels == labels
    assert made.truth[made.judged].any(axis=0).all()
    assert (made.tube >= 2_000_000).all()
    assert vehicle.labels == AV_LABELS
    assert vehicle.x.shape == (40, len(SCENE_FEATURES))
    assert vehicle.truth.tolist() == [[k == 1 for k in range(len(AV_LABELS))]] * 40
    # Stretches of a second, at 12 frames a second.
    assert vehicle.tube.tolist() == [2_000_000 + k // 12 for k in range(40)]
    # A tube that begins later has a larger number.
    _, first = np.unique(made.tube, return_index=True)
    assert (np.diff(first) > 0).all() or len(first) == 1
    with pytest.raises(ValueError, match="different labels"):
        join_tube_rows([made, make_tube_rows(a_truth(), 3, 5)[0]])


def test_fits_of_several_sets_learn_each_label_where_it_is_annotated() -> None:
    one, two = rows(600, labels=LABELS[:1]), rows(600, seed=1, labels=LABELS[1:2])
    config = FitConfig(hidden=(16,), epochs=20, lr=0.01)
    fitted = fit_tubes([one, two], MEAN, SPREAD, config)
    assert fitted.labels == LABELS[:2]
    asked = rows(400, seed=7, labels=LABELS[:1])
    assert np.mean((fitted.scores(asked.x, LABELS[:1]) > 0.5) == asked.truth) > 0.7
    assert (fitted.scores(asked.x, ("action/none",)) == 0).all()
    with pytest.raises(UsageError, match="no box with labels"):
        fit_tubes([join_tube_rows([], LABELS[:1])], MEAN, SPREAD)


def test_a_mean_teacher_reads_no_label_of_the_other_set() -> None:
    one, other = rows(300), rows(300, seed=1)
    config = FitConfig(hidden=(8,), epochs=3)
    wrong = replace(other, truth=~other.truth)
    found = [
        fit_tubes([one], MEAN, SPREAD, config, unlabelled=[each]).scores(one.x, one.labels)
        for each in (other, wrong)
    ]
    assert np.array_equal(*found)
    alone = fit_tubes([one], MEAN, SPREAD, config).scores(one.x, one.labels)
    assert not np.allclose(found[0], alone)
    with pytest.raises(UsageError, match="set without labels"):
        fit_tubes([one], MEAN, SPREAD, config, unlabelled=[join_tube_rows([], LABELS[:3])])
