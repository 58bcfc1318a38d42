"""The last layers of a detector's heads: what they begin as, what is learnt, and the file that says the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models import create
from roadaware.models.loading import open_stream
from roadaware.models.retinanet3d.config import DetectRule, default
from roadaware.models.weights import save_detector
from roadaware.training.events.detector_heads import (
    SPREAD,
    DetectorHeads,
    SeenFrame,
    SeenScene,
    list_annotated,
    match_labels,
)
from roadaware.training.events.online import ContinualLearner, FitConfig, LearnerConfig, fit_tubes
from roadaware.training.events.rows import AV_LABELS, TubeRows

torch.set_num_threads(1)
KINDS = {"agent": ("Ped", "Car"), "action": ("Stop", "Mov"), "duplex": ("Car-Stop", "Ped-Mov")}
AV = ("AV-Stop", "AV-Mov")
SMALL = {"stage_widths": (8, 8, 8, 8), "stage_blocks": (1, 1, 1, 1), "width": 8, "head_layers": 1}
RULE = DetectRule(min_agentness=0.0, top=12)
CONFIG = LearnerConfig(
    hidden=(), lr=0.05, batch=16, passes=2, memory_tubes=6, tube_rows=2, replay=16, distil=1.0
)
HIDDEN = ("action/Mov",)
FRAMES = [np.random.default_rng(k).integers(0, 256, (64, 96, 3), np.uint8) for k in range(6)]


def write_tiny(path: Path, seed: int = 0, head_time: int = 1) -> Path:
    """A detector whose random heads say something different of each box."""
    torch.manual_seed(seed)
    config = default(
        backbone="compact", causal=True, short_side_px=64, prior=0.1, head_time=head_time, **SMALL
    )
    network = create("retinanet3d-compact", config=config, n_classes=7, n_av=2)
    with torch.no_grad():
        for layer in (network.cls_heads.end, network.ego_head):
            layer.weight.normal_(std=0.3)
            layer.bias.normal_(std=0.3)
    save_detector(path, network, KINDS, AV)
    return path


@pytest.fixture(scope="module", params=[1, 3], ids=["a head of frames", "a head of three frames"])
def heads(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DetectorHeads:
    path = write_tiny(tmp_path_factory.mktemp("tiny") / "d.safetensors", head_time=request.param)
    return DetectorHeads(path, RULE)


def watch(heads: DetectorHeads) -> list[SeenFrame]:
    heads.reset()
    return [heads.step(image) for image in FRAMES]


def build_learners(heads: DetectorHeads, known: tuple[str, ...]) -> tuple[ContinualLearner, ContinualLearner]:
    one, two = (
        ContinualLearner(
            np.zeros(len(start.weight), np.float32), np.full(len(start.weight), SPREAD, np.float32), CONFIG, start=start
        )
        for start in heads.build_starts(known)
    )  # fmt: skip
    return one, two


def build_rows(x: np.ndarray, labels: tuple[str, ...], seed: int = 0) -> TubeRows:
    """Boxes whose labels are drawn."""
    rng, n = np.random.default_rng(seed), len(x)
    truth = rng.random((n, len(labels))) < 0.4
    return TubeRows(
        labels, x, truth, np.ones(n, np.float32), np.ones(n, bool), np.arange(n) // 3, np.zeros(n, np.int64)
    )


def test_at_first_the_scores_are_those_of_the_detector(heads: DetectorHeads) -> None:
    seen = watch(heads)
    known = list_annotated(heads.labels, HIDDEN)
    assert known == ("agent/Ped", "agent/Car", "action/Stop", "duplex/Car-Stop")
    columns = heads.choose_columns(known)
    boxes, vehicle = build_learners(heads, known)
    plain = heads.detector
    plain.reset()
    for image, each in zip(FRAMES, seen, strict=True):
        alone = plain.step(image)[0]
        assert np.array_equal(alone.scores, each.found.scores)
        assert np.array_equal(alone.boxes, each.found.boxes)
        held = [heads.labels.index(name) for name in known]
        assert np.abs(boxes.scores(each.x[:, columns], known) - alone.scores[:, held]).max() < 1e-6
        assert not boxes.scores(each.x[:, columns], HIDDEN).any()
        assert np.abs(vehicle.scores(each.vehicle[None], heads.av_labels) - alone.av).max() < 1e-6
    assert np.ptp(np.concatenate([each.found.scores for each in seen]), axis=0).min() > 0.01


def test_the_file_says_what_was_learnt(heads: DetectorHeads, tmp_path: Path) -> None:
    seen = watch(heads)
    known = list_annotated(heads.labels, HIDDEN)
    columns = heads.choose_columns(known)
    x = np.concatenate([each.x for each in seen])[:, columns]
    boxes, vehicle = build_learners(heads, known)
    labels = (*known, "action/Mov", "location/Pav", "action/Xing")
    for seed in range(3):
        boxes.learn(build_rows(x, labels, seed))
    boxes.end_experience()
    own = np.concatenate([np.stack([each.vehicle for each in seen])] * 4)
    vehicle.learn(build_rows(own, AV_LABELS))
    path = tmp_path / "learnt.safetensors"
    heads.write(path, boxes, vehicle)
    learnt = open_stream([path], RULE)
    assert learnt.kinds == {
        **KINDS, "action": ("Stop", "Mov", "Xing"), "location": ("Pav",),
    }  # fmt: skip
    names = [f"{kind}/{name}" for kind, held in learnt.kinds.items() for name in held]
    for image, each in zip(FRAMES, seen, strict=True):
        found = learnt.step(image)[0]
        assert np.array_equal(found.boxes, each.found.boxes)
        assert np.array_equal(found.agentness, each.found.agentness)
        known_scores = boxes.scores(each.x[:, columns], labels)
        assert np.abs(found.scores[:, [names.index(name) for name in labels]] - known_scores).max() < 1e-5
        # Nobody annotated it: it is what the detector says.
        kept = each.found.scores[:, heads.labels.index("duplex/Ped-Mov")]
        assert np.abs(found.scores[:, names.index("duplex/Ped-Mov")] - kept).max() < 1e-6
        assert np.abs(found.av - vehicle.scores(each.vehicle[None], heads.av_labels)[0]).max() < 1e-5
        assert np.abs(known_scores[:, :3] - each.found.scores[:, :3]).max() > 0.05
    other = DetectorHeads(write_tiny(tmp_path / "other.safetensors", seed=1), RULE)
    with pytest.raises(UsageError, match="another detector"):
        other.write(path, boxes)


def test_a_learner_that_begins_as_a_layer_goes_on_to_the_same_bits(heads: DetectorHeads) -> None:
    columns = heads.choose_columns(heads.labels)
    rows = build_rows(np.concatenate([each.x for each in watch(heads)])[:, columns], heads.labels)
    (whole, _), (first, _) = (build_learners(heads, heads.labels) for _ in range(2))
    half = replace(
        rows, **{name: getattr(rows, name)[:29] for name in ("x", "truth", "weight", "tube", "scene")}
    )
    rest = replace(
        rows, **{name: getattr(rows, name)[29:] for name in ("x", "truth", "weight", "tube", "scene")}
    )
    for learner in (whole, first):
        learner.learn(half)
    second = ContinualLearner.load_state(first.dump_state(), features=first.features)
    for learner in (whole, second):
        learner.learn(rest)
        learner.end_experience()
    assert second.dump_state() == whole.dump_state()
    with pytest.raises(DamagedError, match="other features"):
        ContinualLearner.load_state(first.dump_state())
    with pytest.raises(DamagedError, match="other features"):
        ContinualLearner.load_state(first.dump_state(), features=("another", *first.features[1:]))


def test_what_begins_as_a_layer_has_no_layers_between(heads: DetectorHeads) -> None:
    start, _ = heads.build_starts(heads.labels)
    mean, spread = np.zeros(len(start.weight), np.float32), np.ones(len(start.weight), np.float32)
    with pytest.raises(UsageError, match="no hidden layers"):
        ContinualLearner(mean, spread, LearnerConfig(hidden=(4,)), start=start)
    with pytest.raises(UsageError, match="inputs"):
        ContinualLearner(mean[1:], spread[1:], CONFIG, start=start)
    with pytest.raises(UsageError, match="no linear layer"):
        ContinualLearner(mean, spread, LearnerConfig(hidden=(4,))).get_linear_layer()
    rows = build_rows(np.zeros((4, len(mean)), np.float32), heads.labels)
    with pytest.raises(UsageError, match="no hidden layers"):
        fit_tubes([rows], mean, spread, FitConfig(hidden=(4,)), start=start)
    # Fitted for no time worth the name, it is what it began as.
    x = np.concatenate([each.x for each in watch(heads)])
    spread *= SPREAD
    fitted = fit_tubes(
        [build_rows(x, heads.labels)], mean, spread, FitConfig(hidden=(), lr=1e-6, epochs=1), start=start
    )
    own = np.concatenate([each.found.scores for each in watch(heads)])
    assert np.abs(fitted.scores(x, heads.labels) - own).max() < 1e-4


def test_a_box_has_the_labels_of_what_it_overlaps_most() -> None:
    truth = np.array([[0.0, 0, 10, 10], [4, 0, 14, 10]])
    labels = np.array([[True, False], [False, True]])
    boxes = np.array([[0, 0, 10, 9], [3, 0, 13, 10], [20, 0, 30, 10]], np.float32)
    assert match_labels(boxes, truth, labels).tolist() == [[True, False], [False, True], [False, False]]
    assert match_labels(boxes, truth[:0], labels[:0]).tolist() == [[False, False]] * 3


def test_a_scene_survives_its_file_and_becomes_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    seen = SeenScene(
        n_frames=9, fps=4.0, frame=np.array([0, 0, 2, 8]), tube=np.array([0, 1, 0, 3]),
        x=rng.random((4, 5), np.float32), truth=rng.random((4, 3)) < 0.5, moment=np.array([0, 2, 4, 6, 8]),
        vehicle=rng.random((5, 4), np.float32), av=np.array([0, 0, 1, 1, 6]), digest="d",
    )  # fmt: skip
    seen.save(tmp_path / "s.npz")
    again = SeenScene.load(tmp_path / "s.npz")
    boxes, vehicle = again.make_rows(2, 4, ("b", "c"), np.array([0, 4]), ("a", "b", "c"))
    assert boxes.tube.tolist() == [2_000_000, 2_000_001, 2_000_003]
    assert np.array_equal(boxes.x, seen.x[[0, 1, 3]][:, [0, 4]])
    assert np.array_equal(boxes.truth, seen.truth[[0, 1, 3], 1:])
    assert vehicle.truth.argmax(axis=1).tolist() == [0, 1, 6]
    assert vehicle.tube.tolist() == [2_000_000, 2_000_001, 2_000_002]
    assert (again.n_frames, again.fps, again.digest) == (9, 4.0, "d")
    with pytest.raises(InputError, match="what a detector saw"):
        SeenScene.load(tmp_path / "none.npz")
    (tmp_path / "s.npz").write_bytes(b"PK")
    with pytest.raises(DamagedError, match="what a detector saw"):
        SeenScene.load(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fps": 0.0}, "fps"), ({"fps": -4.0}, "fps"), ({"fps": 1e-320}, "fps"), ({"fps": "4"}, "fps"),
        ({"n_frames": 2.5}, "n_frames"),
        ({"digest": 7}, "digest"), ({"tube": np.array([0, 1])}, "tube"), ({"x": np.zeros(4, np.float32)}, "x"),
        ({"truth": np.zeros((4, 3))}, "truth"), ({"truth": np.zeros((5, 3), bool)}, "truth"),
        ({"vehicle": np.zeros((1, 4), np.float32)}, "vehicle"), ({"av": np.array([0, 0, 99])}, "av"),
        ({"moment": np.array([0, 2, -4])}, "moment"), ({"frame": np.array([0, 0, 2, 9])}, "frame"),
        ({"frame": np.array(["a"] * 4)}, "frame"),
    ],
    ids=str,
)  # fmt: skip
def test_a_scene_whose_parts_do_not_belong_together_is_damaged(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    seen = SeenScene(
        n_frames=9, fps=4.0, frame=np.array([0, 0, 2, 8]), tube=np.array([0, 1, 0, 3]),
        x=np.zeros((4, 5), np.float32), truth=np.zeros((4, 3), bool), moment=np.array([0, 4, 8]),
        vehicle=np.zeros((3, 4), np.float32), av=np.array([0, 1, 6]), digest="d",
    )  # fmt: skip
    replace(seen, **change).save(tmp_path / "s.npz")  # type: ignore[arg-type]
    with pytest.raises(DamagedError, match=f"`{message}`"):
        SeenScene.load(tmp_path / "s.npz")
