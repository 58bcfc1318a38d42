"""The second look at people: crops, sides, what it does to detections, and its place in a detector's file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from roadaware.errors import DamagedError, UsageError
from roadaware.models.detector import FACTS, FrameDetections
from roadaware.models.loading import open_videos
from roadaware.models.refine import (
    BoxRefiner,
    RefineConfig,
    SecondLook,
    cut_crops,
    find_windows,
    look_again,
    normalise_image,
    place_sides,
    refine_boxes,
)
from roadaware.models.retinanet3d import reference
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.roi import compute_box_iou
from roadaware.models.tensor_files import digest_tensors
from roadaware.models.weights import open_detector, open_network, open_parts, save_detector

torch.set_num_threads(1)
TINY = RefineConfig(size_px=(32, 16), widths=(4, 4, 4, 4))
KINDS = {"agent": ("Car", "Ped"), "action": ("stop",)}
IMAGE = np.random.default_rng(0).integers(0, 255, (60, 90, 3), dtype=np.uint8)
BOXES = torch.tensor([[10.0, 5, 30, 50], [40, 10, 60, 55], [70, 0, 89, 40], [-5, 20, 8, 58]])


def refiner(seed: int = 0, config: RefineConfig = TINY) -> BoxRefiner:
    torch.manual_seed(seed)
    return BoxRefiner(config).eval()


def found(boxes: Tensor, agentness: list[float], person: list[bool]) -> FrameDetections:
    scores = np.array([[0.1, 0.6, 0.3] if each else [0.7, 0.2, 0.3] for each in person], np.float32)
    return FrameDetections(
        3, boxes.numpy(), np.array(agentness, np.float32), scores.reshape(-1, 3), np.zeros(0, np.float32)
    )


def test_a_crop_shows_what_lies_around_its_box_and_nothing_beyond_the_image() -> None:
    ramp = torch.arange(90.0).expand(1, 3, 60, 90) + 1
    crops, shape = cut_crops(ramp, BOXES, TINY)
    assert crops.shape == (4, 3, 32, 16)
    # Columns of the first crop: their middles in pixels, whose values are pixel + 1 with middles at .5
    left, _, right, _ = find_windows(BOXES, TINY.context)[0].tolist()
    middles = left + (np.arange(16) + 0.5) / 16 * (right - left)
    assert np.allclose(crops[0, 0, 16].numpy(), middles - 0.5 + 1, atol=1e-4)
    assert (crops[3, :, :, 0] == 0).all()
    assert (crops[3, 0, 8, 12:] > 0).all()
    assert np.allclose(shape[0].numpy(), [np.log(20 / 60), np.log(45 / 60), np.log(45 / 20), 55 / 120])


def test_sides_are_means_of_distributions_over_the_bins() -> None:
    upright, across = torch.full((1, 2, 8), -50.0), torch.full((1, 2, 4), -50.0)
    upright[0, 0, 1], upright[0, 1, 6:] = 50, 50
    across[0, 0, 0], across[0, 1, 3] = 50, 50
    assert torch.allclose(place_sides(upright, across), torch.tensor([[0.125, 1.5 / 8, 0.875, 7 / 8]]))


def test_a_batch_is_answered_as_each_box_alone() -> None:
    network = refiner(config=replace(TINY, looks=1, nms_iou=1.0))
    boxes, fit, rows = refine_boxes(network, IMAGE, BOXES)
    assert len(boxes) == 4
    assert (fit[:-1] >= fit[1:]).all()
    for place, row in enumerate(rows.tolist()):
        alone, score, _ = refine_boxes(network, IMAGE, BOXES[row : row + 1])
        assert torch.allclose(alone[0], boxes[place], atol=1e-4)
        assert abs(float(score[0] - fit[place])) < 1e-5


def test_nobody_is_looked_at_where_nothing_was_found() -> None:
    assert [len(each) for each in refine_boxes(refiner(), IMAGE, torch.zeros(0, 4))] == [0, 0, 0]
    look = SecondLook(refiner(), KINDS)
    nothing = found(torch.zeros(0, 4), [], [])
    assert len(look.improve(IMAGE, nothing, DetectRule())) == 0
    assert look.improve(IMAGE, nothing, DetectRule()).frame == 3


def test_boxes_without_area_and_beyond_the_image_give_finite_ones() -> None:
    odd = torch.tensor(
        [[20.0, 20, 20, 20], [500, 500, 600, 700], [-9000, -9000, 9000, 9000], [30, 40, 10, 5]]
    )
    boxes, fit, _ = refine_boxes(refiner(config=replace(TINY, nms_iou=1.0)), IMAGE, odd)
    assert boxes.isfinite().all()
    assert fit.isfinite().all()
    assert (boxes >= 0).all()
    assert (boxes <= torch.tensor([90.0, 60, 90, 60])).all()


def test_people_get_new_boxes_and_scores_and_all_else_stays() -> None:
    given = found(BOXES, [0.9, 0.8, 0.7, 0.05], [True, False, True, True])
    before = given.scores.copy()
    look = SecondLook(refiner(config=replace(TINY, nms_iou=1.0)), KINDS)
    got = look.improve(IMAGE, given, DetectRule(min_agentness=0.0))
    assert np.array_equal(given.scores, before)  # what was given is left alone
    car = np.flatnonzero(got.scores[:, 0] > 0.5)
    assert np.array_equal(got.boxes[car], BOXES[1:2].numpy())
    assert got.agentness[car] == np.float32(0.8)
    people = np.flatnonzero(got.scores[:, 0] < 0.5)
    boxes, fit, _ = refine_boxes(look.network, IMAGE, BOXES[[0, 2]])
    assert np.allclose(got.boxes[people], boxes.numpy())
    assert np.allclose(got.agentness[people], fit.numpy())
    assert np.allclose(got.scores[people, 1], fit.numpy())
    assert (got.scores[people, 2] == np.float32(0.3)).all()
    assert (np.diff(got.agentness) <= 0).all()
    assert len(look.improve(IMAGE, given, DetectRule(min_agentness=0.0, top=1))) == 1
    assert len(look.improve(IMAGE, given, DetectRule(min_agentness=0.75))) == 1


def test_an_image_of_one_colour_shows_nobody() -> None:
    given = found(BOXES, [0.9, 0.8, 0.7, 0.6], [True, False, True, True])
    look = SecondLook(refiner(config=replace(TINY, nms_iou=1.0)), KINDS)
    assert len(look.improve(IMAGE, given, DetectRule(min_agentness=0.0))) == 4
    for colour in ((17, 17, 17), (0, 0, 200)):
        plain = np.full_like(IMAGE, colour)
        plain[::2, ::3] += 3  # as a codec leaves it
        seen = look.improve(plain, given, DetectRule(min_agentness=0.0))
        assert seen.agentness.tolist() == [np.float32(0.8)], colour


def test_more_is_looked_at_than_is_reported() -> None:
    look = SecondLook(refiner(), KINDS)
    wide = look.widen(DetectRule(min_agentness=0.5, nms_iou=0.4, top=7))
    assert (wide.min_agentness, wide.nms_iou, wide.top) == (TINY.candidate_score, TINY.candidate_nms_iou, 7)
    assert look.widen(DetectRule(nms_iou=None)).nms_iou is None


class Still(BoxRefiner):
    """Boxes stay about where they are: as high, and 1.2 times as wide."""

    def forward(self, crops: Tensor, shape: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        upright, across = torch.full((len(crops), 2, 8), -50.0), torch.full((len(crops), 2, 4), -50.0)
        upright[:, [0, 1], [1, 6]] = 50
        across[:, [0, 1], [0, 3]] = 50
        return upright, across, super().forward(crops, shape)[2]


def still(config: RefineConfig) -> BoxRefiner:
    torch.manual_seed(0)
    return Still(config).eval()


def many(count: int) -> Tensor:
    """(count, 4) boxes of which none meet."""
    at = torch.arange(count)
    corner = torch.stack([at % 10 * 9, at // 10 * 9], dim=1).float()
    return torch.cat([corner, corner + 4], dim=1)


def test_people_beyond_those_that_are_looked_at_stay_as_they_were_found() -> None:
    given = found(many(60), np.linspace(0.95, 0.6, 60).tolist(), [True] * 60)
    look = SecondLook(still(replace(TINY, looks=1, most=24)), KINDS)
    got = look.improve(IMAGE, given, DetectRule(min_agentness=0.0))
    boxes, _, _ = refine_boxes(look.network, IMAGE, torch.from_numpy(given.boxes[:24]))
    held = [row.tolist() for row in got.boxes]
    assert all(row in held for row in boxes.tolist())
    iou = compute_box_iou(boxes, torch.from_numpy(given.boxes[24:]))
    free = ~(iou > TINY.nms_iou).any(dim=0).numpy()
    assert free.any()
    for place in np.flatnonzero(free) + 24:
        row = held.index(given.boxes[place].tolist())
        assert got.agentness[row] == given.agentness[place]
        assert np.array_equal(got.scores[row], given.scores[place])
    assert len(got) == len(boxes) + free.sum()
    # One who lies on somebody reported is the same person
    again = np.concatenate([given.boxes[:24], boxes[:1].numpy()])
    twice = found(torch.from_numpy(again), np.linspace(0.95, 0.6, 25).tolist(), [True] * 25)
    assert len(look.improve(IMAGE, twice, DetectRule(min_agentness=0.0))) == len(boxes)
    assert len(look.improve(IMAGE, twice, DetectRule(min_agentness=0.0, nms_iou=None))) == len(boxes) + 1


def test_others_are_suppressed_by_the_rule_of_the_caller() -> None:
    boxes = torch.tensor([[10.0, 5, 50, 45], [10, 5, 50, 30], [60, 5, 80, 50], [60, 5, 80, 50]])
    given = found(boxes, [0.9, 0.8, 0.7, 0.6], [False, False, True, True])
    look = SecondLook(still(replace(TINY, looks=1)), KINDS)

    def count(nms_iou: float | None) -> tuple[int, int]:
        got = look.improve(IMAGE, given, DetectRule(min_agentness=0.0, nms_iou=nms_iou))
        people = int(look.find_people(got.scores).sum())
        return people, len(got) - people

    assert count(0.5) == (1, 1)
    assert count(0.65) == (1, 2)
    assert count(None) == (2, 2)


def test_a_low_fit_turns_nobody_into_a_vehicle() -> None:
    network = refiner(config=replace(TINY, looks=1))
    with torch.no_grad():
        network.score.weight.zero_()
        network.score.bias.fill_(-3.3)
    scores = np.array([[0.35, 0.4, 0.3]], np.float32)
    given = FrameDetections(
        0, BOXES[:1].numpy(), np.array([0.4], np.float32), scores, np.zeros(0, np.float32)
    )
    look = SecondLook(network, KINDS)
    got = look.improve(IMAGE, given, DetectRule(min_agentness=0.0))
    assert 0.03 < got.agentness[0] < 0.04
    assert look.find_people(got.scores).all()
    assert got.scores[0, 1] == got.agentness[0]
    assert got.scores[0, 2] == np.float32(0.3)


def test_many_crops_are_looked_at_in_parts() -> None:
    network, sizes = refiner(), []
    network.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    image = normalise_image(IMAGE)
    with torch.inference_mode():
        boxes, score = look_again(network, image, many(150))
        alone, logit = look_again(network, image, many(150)[140:141])
    assert sizes == [64, 64, 22, 1]
    assert boxes.shape == (150, 4)
    assert torch.allclose(boxes[140], alone[0], atol=1e-4)
    assert torch.allclose(score[140], logit[0], atol=1e-5)


def test_a_detector_without_people_has_no_second_look() -> None:
    with pytest.raises(UsageError, match="tells people"):
        SecondLook(refiner(), {"agent": ("Car",), "action": ("person",)})


@pytest.mark.parametrize(
    "fields",
    [
        {"size_px": (30, 16)},
        {"widths": (4, 4, 0, 4)},
        {"context": 1.0},
        {"looks": 0},
        {"looks": 5},
        {"most": 0},
        {"most": 501},
        {"size_px": (512, 512), "widths": (512, 1, 1, 1)},
    ],
)
def test_what_is_no_network_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        RefineConfig(**fields)


# Its place in a file.


def detector(seed: int = 1) -> RetinaNet3D:
    torch.manual_seed(seed)
    config = reference(
        backbone="compact",
        causal=True,
        base_width=8,
        blocks=(1, 2, 2, 1),
        width=8,
        head_layers=1,
        short_side_px=64,
    )
    return RetinaNet3D(config, 4, 0).eval()


def test_a_file_holds_both_and_both_ways_of_opening_look_again(tmp_path: Path) -> None:
    path, bare = tmp_path / "both.safetensors", tmp_path / "bare.safetensors"
    network, second = detector(), refiner(config=replace(TINY, candidate_score=0.0))
    save_detector(path, network, KINDS, refiner=second)
    save_detector(bare, network, KINDS)
    opened, held, _ = open_parts(path)
    assert held is not None
    assert held.config == second.config
    assert not held.training
    for one, other in ((opened, network), (held, second)):
        state = other.state_dict()
        assert all(torch.equal(tensor, state[name]) for name, tensor in one.state_dict().items())
    assert open_parts(bare)[1] is None
    assert open_network(path)[0].state_dict().keys() == network.state_dict().keys()
    rule = DetectRule(min_agentness=0.0, top=9)
    stream, plain = open_detector(path, rule), open_detector(bare, rule)
    stream.reset(), plain.reset()
    (one,), (other,) = stream.step(IMAGE), plain.step(IMAGE)
    (videos,) = open_videos([path], rule).detections([IMAGE], 1)
    assert len(one)
    assert not np.array_equal(one.boxes, other.boxes)
    assert np.allclose(one.boxes, videos.boxes, atol=1e-3)
    assert np.allclose(one.agentness, videos.agentness)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"lacks": "score.bias"}, "score.bias"),
        ({"raises": "score.bias"}, "not those that were saved"),
        ({"refiner": {"size_px": [31, 16]}}, "multiples of 16"),
        ({"refiner": {"widths": [4096, 4096, 4096, 4096]}}, "widths are four"),
        ({"refiner": {"size_px": "no"}}, "size_px"),
        ({"refiner": 7}, "config has fields, not 7"),
        ({"kinds": {"agent": ["Car", "Tram"], "action": ["stop"]}}, "tells people"),
        ({"refiner": None}, "Unexpected key"),
    ],
)
def test_a_file_whose_second_look_is_torn_is_refused(
    tmp_path: Path, facts: dict[str, Any], message: str
) -> None:
    path = tmp_path / "both.safetensors"
    save_detector(path, detector(), KINDS, refiner=refiner())
    tensors, said = tensors_and_facts(path)
    if "lacks" in facts:
        del tensors[f"refiner.{facts['lacks']}"]
    elif "raises" in facts:
        tensors[f"refiner.{facts['raises']}"] += 1
    save_file(tensors, path, {FACTS: json.dumps(said | facts)})
    with pytest.raises(DamagedError, match=message):
        open_parts(path)


def tensors_and_facts(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, "pt") as file:
        about = file.metadata()
    return load_file(path), json.loads(about[FACTS])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_second_look_of_any_precision_computes_in_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / "both.safetensors"
    save_detector(path, detector(), KINDS, refiner=refiner())
    tensors, said = tensors_and_facts(path)
    for name, tensor in tensors.items():
        if name.startswith("refiner.") and tensor.is_floating_point():
            tensors[name] = tensor.to(dtype)
    save_file(tensors, path, {FACTS: json.dumps(said | {"digest": digest_tensors(tensors)})})
    held = open_parts(path)[1]
    assert held is not None
    assert len(refine_boxes(held, IMAGE, BOXES)[0])
