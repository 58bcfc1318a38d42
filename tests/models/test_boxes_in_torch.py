"""Suppression and RoIAlign against plain loops, and against the project's own suppression of tables."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from roadaware.linking.kernels import suppress
from roadaware.models.roi import compute_box_iou, nms, roi_align

torch.set_num_threads(1)


def _boxes(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Boxes on a coarse grid with few different scores, so that ties and empty boxes are common."""
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(count, 4, generator=generator) * 12
    corners[:, 2:] += corners[:, :2]
    return corners.round(), (torch.rand(count, generator=generator) * 15).round() / 15


def _plain(boxes: list[list[float]], scores: list[float], limit: float) -> list[int]:
    kept: list[int] = []
    for place in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if not any(_overlap(boxes[place], boxes[better]) > limit for better in kept):
            kept.append(place)
    return kept


def _overlap(one: list[float], other: list[float]) -> float:
    wide = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    high = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)) - wide * high
    return wide * high / union if union else 0.0


@pytest.mark.parametrize("count", [0, 1, 40, 600])
@pytest.mark.parametrize("limit", [0.0, 0.3, 1.0])
def test_suppression_is_the_greedy_rule_with_stable_ties(count: int, limit: float) -> None:
    boxes, scores = _boxes(count, seed=count)
    assert nms(boxes, scores, limit).tolist() == _plain(boxes.tolist(), scores.tolist(), limit)


def test_suppression_agrees_with_the_one_of_tables() -> None:
    boxes, scores = (part.double() for part in _boxes(700, seed=5))
    order = torch.sort(scores, descending=True, stable=True).indices.numpy()
    group = torch.zeros(700, dtype=torch.int64).numpy()
    assert nms(boxes, scores, 0.4).tolist() == order[suppress(boxes.numpy(), order, group, 0.4)].tolist()


def test_suppression_stops_at_the_top_without_another_outcome() -> None:
    boxes, scores = _boxes(900, seed=2)
    whole = nms(boxes, scores, 0.3)
    for top in (1, 7, len(whole), len(whole) + 5):
        assert nms(boxes, scores, 0.3, top=top).tolist() == whole[:top].tolist()


def test_overlaps_of_boxes_worked_by_hand() -> None:
    boxes = torch.tensor([[0.0, 0, 4, 2], [2, 0, 6, 2], [5, 5, 6, 6], [3, 3, 3, 3]])
    found = compute_box_iou(boxes[:1], boxes)
    assert found[0, :3].tolist() == pytest.approx([1.0, 1 / 3, 0.0])
    assert math.isnan(compute_box_iou(boxes[3:], boxes[3:]).item())


def _pooled(
    level: torch.Tensor, box: list[float], size: tuple[int, int], scale: float, samples: int, half: bool
) -> torch.Tensor:
    """One box, sample by sample."""
    shift = 0.5 if half else 0.0
    x1, y1, x2, y2 = (value * scale - shift for value in box)
    wide, high = x2 - x1, y2 - y1
    if not half:
        wide, high = max(wide, 1.0), max(high, 1.0)
    out = torch.zeros(level.shape[0], *size, dtype=level.dtype)
    for row in range(size[0]):
        for column in range(size[1]):
            for i in range(samples):
                for j in range(samples):
                    y = y1 + (row + (i + 0.5) / samples) * high / size[0]
                    x = x1 + (column + (j + 0.5) / samples) * wide / size[1]
                    out[:, row, column] += _sample(level, y, x) / samples**2
    return out


def _sample(level: torch.Tensor, y: float, x: float) -> torch.Tensor:
    _, height, width = level.shape
    if y < -1 or y > height or x < -1 or x > width:
        return torch.zeros(level.shape[0], dtype=level.dtype)
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    total = torch.zeros(level.shape[0], dtype=level.dtype)
    for row, weight_y in ((top, 1 - (y - top)), (min(top + 1, height - 1), y - top)):
        for column, weight_x in ((left, 1 - (x - left)), (min(left + 1, width - 1), x - left)):
            total += level[:, row, column] * weight_y * weight_x
    return total


@pytest.mark.parametrize("half", [True, False])
def test_roi_align_is_the_mean_of_bilinear_samples(half: bool) -> None:
    """Boxes inside, across every border, outside, and without a size."""
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(2, 3, 7, 9, generator=generator, dtype=torch.float64)
    boxes = [
        [3.0, 5, 20, 17],
        [-9.0, -7, 12, 9],
        [30.0, 20, 90, 60],
        [-60.0, -60, -50, -50],
        [11.0, 11, 11, 11],
    ]
    picture = [0, 1, 1, 0, 1]
    found = roi_align(
        features,
        torch.tensor(boxes, dtype=torch.float64),
        torch.tensor(picture),
        size=(2, 3),
        scale=0.25,
        samples=2,
        half_pixel=half,
    )
    for place, (box, number) in enumerate(zip(boxes, picture, strict=True)):
        plain = _pooled(features[number], box, (2, 3), 0.25, 2, half)
        torch.testing.assert_close(found[place], plain, rtol=0, atol=1e-12)


def test_roi_align_learns_and_takes_no_box() -> None:
    features = torch.rand(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    box = torch.tensor([[1.0, 1, 4, 4]], dtype=torch.float64)
    where = torch.zeros(1, dtype=torch.int64)
    assert torch.autograd.gradcheck(lambda level: roi_align(level, box, where, size=(2, 2)), (features,))
    assert roi_align(features, box[:0], where[:0], size=(2, 2)).shape == (0, 2, 2, 2)
