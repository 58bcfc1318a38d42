"""Anchors, box coding, matching and loss: each quirk worked by hand, and a plain oracle."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from roadaware.models.retinanet3d import RetinaNetConfig, default, reference
from roadaware.models.retinanet3d.anchors import (
    Anchors,
    Targets,
    compute_anchor_iou,
    decode,
    encode,
    match,
)
from roadaware.models.retinanet3d.loss import compute_losses, focal_loss
from roadaware.models.retinanet3d.network import Outputs

torch.set_num_threads(1)
SIZES = [(64, 88), (32, 44), (16, 22), (8, 11), (4, 6)]


def test_anchors_of_the_released_network_at_its_size() -> None:
    anchors = Anchors(reference())(SIZES)
    assert anchors.shape == (67536, 4)
    width, height = (anchors[:, 2:] - anchors[:, :2]).T
    # The first cell of P3: ratio 0.5 (wide) at three scales, then 1, then 2 (high).
    side = torch.tensor([32, 32 * 1.25992, 32 * 1.5874])
    torch.testing.assert_close(width[:9], torch.cat([side * 2**0.5, side, side / 2**0.5]))
    torch.testing.assert_close(height[:9], torch.cat([side / 2**0.5, side, side * 2**0.5]))
    torch.testing.assert_close(anchors[:, :2] + anchors[:, 2:], 2 * _centres(), atol=1e-3, rtol=0)


def _centres() -> Tensor:
    rows = []
    for level, (height, width) in enumerate(SIZES):
        stride = 8 * 2**level
        rows += [[(x + 0.5) * stride, (y + 0.5) * stride] for y in range(height) for x in range(width)]
    return torch.tensor(rows).repeat_interleave(9, 0)


def test_kmeans_anchors_are_clipped_shares_of_the_picture() -> None:
    config = reference(anchors="kmeans")
    anchors = Anchors(config)(SIZES)
    assert anchors.shape == (67536 // 3, 4)
    first = torch.tensor(
        [4 - 0.0141 * 704 / 2, 4 - 0.0365 * 512 / 2, 4 + 0.0141 * 704 / 2, 4 + 0.0365 * 512 / 2]
    )
    torch.testing.assert_close(anchors[0], first.clamp(min=0))
    assert anchors.min() == 0
    assert anchors[:, 2].max() == 704
    assert anchors[:, 3].max() == 512
    assert config.n_anchors == 3


ANCHOR = torch.tensor([[10.0, 20.0, 19.0, 39.0]])


def test_box_coding_with_a_pixel_added_by_hand() -> None:
    box = torch.tensor([[12.0, 20.0, 31.0, 59.0]])
    # Widths 20 over 10, heights 40 over 20; centres (22, 40) from (15, 30).
    expected = torch.tensor([[7 / 10 / 0.1, 10 / 20 / 0.1, math.log(2) / 0.2, math.log(2) / 0.2]])
    torch.testing.assert_close(encode(box, ANCHOR, reference()), expected)
    torch.testing.assert_close(decode(expected, ANCHOR, reference()), box)


def test_plain_box_coding_by_hand() -> None:
    box = torch.tensor([[10.0, 20.0, 28.0, 58.0]])
    expected = torch.tensor([[4.5 / 9 / 0.1, 9.5 / 19 / 0.1, math.log(2) / 0.2, math.log(2) / 0.2]])
    torch.testing.assert_close(encode(box, ANCHOR, default()), expected)
    torch.testing.assert_close(decode(expected, ANCHOR, default()), box)


@pytest.mark.parametrize("config", [default(), reference(), reference(anchors="kmeans")])
def test_decoding_undoes_encoding_and_stays_finite(config: RetinaNetConfig) -> None:
    draw = torch.Generator().manual_seed(0)
    corner = torch.rand(200, 2, generator=draw) * 300
    boxes = torch.cat([corner, corner + 2 + torch.rand(200, 2, generator=draw) * 200], 1)
    anchors = boxes.roll(7, 0)
    again = decode(encode(boxes, anchors, config), anchors, config)
    torch.testing.assert_close(again, boxes, atol=1e-2, rtol=1e-4)
    largest = decode(torch.full((1, 4), 1e9), ANCHOR, config)
    assert torch.isfinite(largest).all()
    empty = torch.tensor([[5.0, 5.0, 5.0, 5.0]])
    assert torch.isfinite(encode(empty, ANCHOR, config)).all()


def test_overlap_adds_no_pixel() -> None:
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
    anchors = torch.tensor([[5.0, 0.0, 15.0, 10.0], [10.0, 10.0, 20.0, 20.0]])
    torch.testing.assert_close(
        compute_anchor_iou(boxes, anchors), torch.tensor([[50 / 150, 0.0], [0.0, 0.0]])
    )


def test_matching_by_hand() -> None:
    # Overlaps with a box (0, 0, 10, 10): 1, 0.5, 0.45, 0.3.
    anchors = torch.tensor([[0, 0, 10.0, 10.0], [0, 0, 5.0, 10.0], [0, 0, 4.5, 10.0], [0, 0, 3.0, 10.0]])
    box = torch.tensor([[0.0, 0.0, 10.0, 10.0]])
    assert match([box], anchors, reference())[0].tolist() == [1, 1, -1, 0]
    far = torch.tensor([[0.0, 0.0, 100.0, 10.0]])
    assert match([far], anchors, reference())[0].tolist() == [1, 0, 0, 0]
    assert match([far], anchors, default(force_best=False))[0].tolist() == [0, 0, 0, 0]


def test_the_later_of_two_boxes_has_the_anchor_both_want() -> None:
    anchors = torch.tensor([[0.0, 0.0, 10.0, 10.0]])
    exact, loose = torch.tensor([0.0, 0.0, 10.0, 10.0]), torch.tensor([0.0, 0.0, 10.0, 6.0])
    assert match([torch.stack([exact, loose])], anchors, reference())[0].tolist() == [2]
    assert match([torch.stack([loose, exact])], anchors, reference())[0].tolist() == [2]
    assert match([torch.stack([exact, loose])], anchors, default(force_best=False))[0].tolist() == [1]


def _plain_match(boxes: Tensor, anchors: Tensor, config: RetinaNetConfig) -> list[int]:
    found = []
    predictions: dict[int, int] = {}
    table = [[_iou(box, anchor) for anchor in anchors.tolist()] for box in boxes.tolist()]
    for number, row in enumerate(table):
        predictions[row.index(max(row))] = number
    for anchor in range(len(anchors)):
        column = [row[anchor] for row in table]
        best = max(column, default=0.0)
        if anchor in predictions:
            found.append(predictions[anchor] + 1)
        elif best < config.ignore_iou:
            found.append(0)
        else:
            found.append(column.index(best) + 1 if best >= config.match_iou else -1)
    return found


def _iou(a: list[float], b: list[float]) -> float:
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / area


def drawn(seed: int, frames: int, *, most: int = 4, classes: int = 6) -> tuple[list[Tensor], list[Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    boxes, labels = [], []
    for _ in range(frames):
        count = int(torch.randint(0, most + 1, (1,), generator=draw))
        corner = torch.rand(count, 2, generator=draw) * 80
        boxes.append(torch.cat([corner, corner + 8 + torch.rand(count, 2, generator=draw) * 50], 1))
        labels.append((torch.rand(count, classes, generator=draw) < 0.4).float())
    return boxes, labels


def test_matching_equals_the_plain_loop() -> None:
    config = default(anchor_sizes_px=(16.0, 32.0, 64.0))
    anchors = Anchors(config)([(6, 8), (3, 4), (2, 2)])
    boxes, _ = drawn(0, 12)
    assert sorted({len(of_frame) for of_frame in boxes})[0] == 0
    expected = [_plain_match(of_frame, anchors, config) for of_frame in boxes]
    assert match(boxes, anchors, config).tolist() == expected


def test_matching_in_parts_equals_matching_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = default(anchor_sizes_px=(16.0, 32.0, 64.0))
    anchors = Anchors(config)([(6, 8), (3, 4), (2, 2)])
    boxes, _ = drawn(1, 9)
    whole = match(boxes, anchors, config)
    monkeypatch.setattr("roadaware.models.retinanet3d.anchors._CHUNK", 1)
    assert torch.equal(match(boxes, anchors, config), whole)


def test_focal_loss_by_hand() -> None:
    logits = torch.tensor([0.0, math.log(3)])
    one = focal_loss(logits, torch.ones(2), 0.25, 2.0)
    zero = focal_loss(logits, torch.zeros(2), 0.25, 2.0)
    torch.testing.assert_close(one, torch.tensor([0.25 * 0.25 * math.log(2), 0.25 / 16 * math.log(4 / 3)]))
    torch.testing.assert_close(zero, torch.tensor([0.75 * 0.25 * math.log(2), 0.75 * 9 / 16 * math.log(4)]))
    assert torch.isfinite(focal_loss(torch.tensor([1e4, -1e4]), torch.tensor([0.0, 1.0]), 0.25, 2.0)).all()


def outputs_of(config: RetinaNetConfig, clips: int, frames: int, classes: int, seed: int = 0) -> Outputs:
    draw = torch.Generator().manual_seed(seed)
    anchors = Anchors(config)([(6, 8), (3, 4), (2, 2)])
    shape = (clips, frames, len(anchors))
    offsets = torch.randn(*shape, 4, generator=draw)
    scores = torch.randn(*shape, classes, generator=draw) * 2
    av = torch.randn(clips, frames, 3, generator=draw)
    return Outputs(decode(offsets, anchors, config), scores, av, anchors, offsets)


def targets_of(seed: int, clips: int, frames: int, classes: int) -> Targets:
    boxes, labels = drawn(seed, clips * frames, classes=classes)
    rows = [slice(clip * frames, (clip + 1) * frames) for clip in range(clips)]
    draw = torch.Generator().manual_seed(seed)
    labelled = torch.rand(clips, frames, generator=draw) < 0.7
    for frame, known in enumerate(labelled.flatten().tolist()):
        if not known:
            boxes[frame], labels[frame] = boxes[frame][:0], labels[frame][:0]
    av = torch.where(labelled, torch.randint(0, 3, (clips, frames), generator=draw), -1)
    return Targets([boxes[row] for row in rows], [labels[row] for row in rows], av, labelled)


def _plain_losses(outputs: Outputs, targets: Targets, config: RetinaNetConfig) -> dict[str, float]:
    def focal_of(logit: float, truth: float) -> float:
        p = 1 / (1 + math.exp(-logit))
        p, weight = (p, 0.25) if truth else (1 - p, 0.75)
        return -weight * (1 - p) ** 2 * math.log(p)

    boxes = classes = av = 0.0
    positive = known = 0
    batch = {action for row in targets.av.tolist() for action in row if action >= 0}
    for clip, of_clip in enumerate(targets.boxes):
        for frame, truth in enumerate(of_clip):
            matched = _plain_match(truth, outputs.anchors, config)
            if not len(truth) and (config.empty_frames == "ignore" or not targets.labelled[clip, frame]):
                matched = [-1] * len(matched)
            for anchor, number in enumerate(matched):
                if number < 0:
                    continue
                labels = [0.0] * outputs.class_logits.shape[-1]
                if number:
                    positive += 1
                    labels = targets.classes[clip][frame][number - 1].tolist()
                    wanted = encode(truth[number - 1], outputs.anchors[anchor], config)
                    for gap in (outputs.offsets[clip, frame, anchor] - wanted).abs().tolist():
                        boxes += gap**2 / 2 * 9 if gap < 1 / 9 else gap - 1 / 18
                scores = outputs.class_logits[clip, frame, anchor].tolist()
                classes += sum(map(focal_of, scores, labels))
            action = int(targets.av[clip, frame])
            if action >= 0:
                known += 1
                wanted_actions = batch if config.av_targets == "batch" else {action}
                for label, logit in enumerate(outputs.av_logits[clip, frame].tolist()):
                    av += focal_of(logit, float(label in wanted_actions))
    boxes, classes = boxes / (4 * max(1, positive)), classes / max(1, positive)
    av /= max(1, known)
    total = boxes + classes / 8 + av / 4
    return {"total": total, "boxes": boxes, "classes": classes, "av": av, "matched": float(positive)}


@pytest.mark.parametrize("make", [default, reference])
def test_losses_equal_the_plain_loop(make: type[RetinaNetConfig]) -> None:
    config = make(anchor_sizes_px=(16.0, 32.0, 64.0))
    outputs, targets = outputs_of(config, 2, 4, 6), targets_of(3, 2, 4, 6)
    assert 0 in targets.counts
    found = {name: float(value) for name, value in compute_losses(outputs, targets, config).items()}
    expected = _plain_losses(outputs, targets, config)
    assert found == pytest.approx(expected, rel=1e-4)


def _empty(labelled: bool, av: int = -1) -> Targets:
    return Targets(
        [[torch.zeros(0, 4)]], [[torch.zeros(0, 6)]], torch.tensor([[av]]), torch.tensor([[labelled]])
    )


def test_frames_without_truth_teach_background_unless_told_otherwise() -> None:
    mended = default(anchor_sizes_px=(16.0, 32.0, 64.0))
    released = reference(anchor_sizes_px=(16.0, 32.0, 64.0))
    outputs = outputs_of(mended, 1, 1, 6)
    background = focal_loss(outputs.class_logits, torch.zeros_like(outputs.class_logits), 0.25, 2.0).sum()
    torch.testing.assert_close(compute_losses(outputs, _empty(True), mended)["classes"], background)
    assert compute_losses(outputs, _empty(True), released)["classes"] == 0
    assert compute_losses(outputs, _empty(False), mended)["classes"] == 0


def test_a_batch_without_truth_has_a_loss_that_can_be_differentiated() -> None:
    config = reference(anchor_sizes_px=(16.0, 32.0, 64.0))
    outputs = outputs_of(config, 1, 1, 6)
    leaves = [part.requires_grad_() for part in (outputs.class_logits, outputs.av_logits, outputs.offsets)]
    compute_losses(outputs, _empty(True), config)["total"].backward()
    assert all(leaf.grad is not None and not leaf.grad.any() for leaf in leaves)


def test_released_actions_of_the_own_vehicle_are_those_of_the_whole_batch() -> None:
    fields = {"anchor_sizes_px": (16.0, 32.0, 64.0)}
    outputs = outputs_of(default(**fields), 1, 2, 6)
    none = [torch.zeros(0, 4)] * 2
    targets = Targets(
        [none], [[torch.zeros(0, 6)] * 2], torch.tensor([[0, 2]]), torch.ones(1, 2, dtype=torch.bool)
    )
    own = focal_loss(outputs.av_logits, torch.tensor([[[1.0, 0, 0], [0, 0, 1]]]), 0.25, 2.0).sum() / 2
    all_of_them = focal_loss(outputs.av_logits, torch.tensor([[[1.0, 0, 1], [1, 0, 1]]]), 0.25, 2.0).sum() / 2
    torch.testing.assert_close(compute_losses(outputs, targets, default(**fields))["av"], own)
    torch.testing.assert_close(compute_losses(outputs, targets, reference(**fields))["av"], all_of_them)
