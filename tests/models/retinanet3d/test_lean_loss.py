"""The loss in one pass and where classes can count: the same as the plain one, value and gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from roadaware.models.retinanet3d.anchors import Targets
from roadaware.models.retinanet3d.config import RetinaNetConfig, compact
from roadaware.models.retinanet3d.loss import Trainee, focal_loss, select_hard_negatives, sum_focal_loss
from roadaware.models.retinanet3d.network import RetinaNet3D

ALPHA = 0.25


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("gamma", [2.0, 1.5])
@pytest.mark.parametrize("columns", [7, 1, 70_000])
def test_the_sum_in_one_pass_is_the_sum_of_the_focal_loss(gamma: float, columns: int) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(5, columns, generator=generator, dtype=torch.float64)
    counts = torch.tensor([True, False, True, False, True])
    rows = torch.tensor([3, 4])
    truth = (torch.rand(2, columns, generator=generator) < 0.4).double()
    whole = torch.zeros_like(logits)
    whole[rows] = truth
    plain, fast = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    counted = counts.clone()
    counted[rows] = True
    wanted = (focal_loss(plain, whole, ALPHA, gamma) * counted[:, None]).sum()
    found = sum_focal_loss(fast, counts, rows, truth, ALPHA, gamma)
    wanted.backward()
    (2 * found).backward()
    assert plain.grad is not None
    assert fast.grad is not None
    assert torch.allclose(found, wanted, rtol=1e-12)
    assert torch.allclose(fast.grad, 2 * plain.grad, atol=1e-12)


def test_the_sum_of_no_positive_row_and_of_extreme_logits_is_finite() -> None:
    logits = torch.tensor([[1e4, -1e4], [30.0, -30.0]]).requires_grad_()
    none = torch.zeros(0, dtype=torch.long)
    total = sum_focal_loss(logits, torch.tensor([False, True]), none, torch.zeros(0, 2), ALPHA, 2.0)
    total.backward()
    assert total.item() == pytest.approx(0.75 * 30, rel=1e-6)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[0] == 0).all()


def targets() -> Targets:
    box = torch.tensor([[4.0, 4, 30, 40], [20, 10, 50, 60]], dtype=torch.float64)
    boxes = [[box if (clip + t) % 3 else box[:0] for t in range(4)] for clip in range(2)]
    generator = torch.Generator().manual_seed(1)
    classes = [[(torch.rand(len(b), 12, generator=generator) < 0.3).double() for b in row] for row in boxes]
    for row in classes:
        for hot in row:
            hot[:, 0] = 1
    labelled = torch.ones(2, 4, dtype=torch.bool)
    labelled[1, 2] = False
    return Targets(boxes, classes, torch.tensor([[0, 1, 2, -1]] * 2), labelled)


def network(config: RetinaNetConfig) -> RetinaNet3D:
    torch.manual_seed(0)
    made = RetinaNet3D(config, 12, 3).double()
    for parameter in made.cls_heads.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return made


def step(trainee: Trainee, x: Tensor, truth: Targets) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    trainee.zero_grad()
    found = trainee(x, truth.boxes, truth.classes, truth.av, truth.labelled)
    found["total"].backward()
    grads = {n: p.grad.clone() for n, p in trainee.named_parameters() if p.grad is not None}
    return {name: value.detach() for name, value in found.items()}, grads


@pytest.mark.slow
@pytest.mark.parametrize("head_time", [1, 3])
@pytest.mark.parametrize("causal", [True, False])
def test_where_all_anchors_are_chosen_nothing_is_left_out(head_time: int, causal: bool) -> None:
    config = compact(
        stage_widths=(8, 8, 8, 8),
        stage_blocks=(1, 1, 1, 1),
        width=8,
        head_time=head_time,
        causal=causal,
    )
    made = network(config)
    x = torch.randn(2, 3, 4, 64, 64, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    plain, wanted = step(Trainee(made), x, targets())
    lean, found = step(Trainee(made, likeliest=10**6), x, targets())
    assert {name: value.item() for name, value in lean.items()} == pytest.approx(
        {name: value.item() for name, value in plain.items()}, rel=1e-9
    )
    assert found.keys() == wanted.keys()
    assert all(torch.allclose(found[name], wanted[name], rtol=1e-8, atol=1e-10) for name in wanted)


def test_every_weight_learns_where_few_anchors_are_chosen() -> None:
    made = network(compact(stage_widths=(8, 8, 8, 8), stage_blocks=(1, 1, 1, 1), width=8))
    x = torch.randn(2, 3, 4, 64, 64, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    plain, _ = step(Trainee(made), x, targets())
    lean, grads = step(Trainee(made, likeliest=4), x, targets())
    assert all(grad.abs().sum() > 0 for grad in grads.values())
    assert len(grads) == len(list(made.parameters()))
    assert lean["boxes"] == plain["boxes"]
    assert lean["classes"] < plain["classes"]


def test_the_chosen_are_the_likeliest_of_the_background() -> None:
    agentness = torch.tensor([[0.9, 0.1, 0.5, 0.7], [0.3, 0.2, 0.1, 0.4]])
    assigned = torch.tensor([[1, 0, 0, -1], [-1, -1, -1, 0]])
    frame, anchor = select_hard_negatives(agentness, assigned, 2)
    assert list(zip(frame.tolist(), anchor.tolist(), strict=True)) == [(0, 2), (0, 1), (1, 3)]
