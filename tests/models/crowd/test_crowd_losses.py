"""Losses equal plain sums over frames, boxes and clips."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_crowd import plain_giou, plain_guided, plain_spans
from torch import Tensor

from example_counts import tried
from roadaware.errors import UsageError
from roadaware.models.crowd import losses
from roadaware.models.crowd.grounding import Grounded, Matched, score_spans

torch.set_num_threads(1)


def _draw(seed: int, batch: int, time: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of spans, spans and masks."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((batch, time), bool)
    span = np.zeros((batch, 2), np.int64)
    for b in range(batch):
        length = rng.integers(1, time + 1)
        mask[b, :length] = True
        span[b] = np.sort(rng.integers(0, length, 2))
    return (
        torch.from_numpy(rng.normal(0, 3, (batch, time, 2))),
        torch.from_numpy(span),
        torch.from_numpy(mask),
    )


@tried(30)
@given(seed=st.integers(0, 10_000), batch=st.integers(1, 4), time=st.integers(1, 12))
def test_spans_are_compared_as_published(seed: int, batch: int, time: int) -> None:
    logits, span, mask = _draw(seed, batch, time)
    for sigma in (1.0, 2.5):
        wanted = plain_spans(logits.numpy(), span.numpy(), mask.numpy(), sigma)
        assert float(losses.spans(logits, span, mask, sigma)) == pytest.approx(wanted, abs=1e-9)
        assert float(losses.spans(logits.float(), span, mask, sigma)) == pytest.approx(wanted, abs=1e-5)


@tried(30)
@given(seed=st.integers(0, 10_000), batch=st.integers(1, 4), time=st.integers(1, 12))
def test_attention_is_guided_as_published(seed: int, batch: int, time: int) -> None:
    _, span, mask = _draw(seed, batch, time)
    weights = torch.rand(batch, time, time, dtype=torch.float64).softmax(dim=2) * 0.9
    frames = torch.arange(time)[None]
    inside = (frames >= span[:, :1]) & (frames <= span[:, 1:])
    wanted = plain_guided(weights.numpy(), inside.numpy(), mask.numpy())
    assert float(losses.guided_attention(weights, inside, mask)) == pytest.approx(wanted, abs=1e-9)


@tried(30)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
def test_boxes_are_compared_as_published(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.uniform(0.05, 1, (2, n, 4))
    inside = rng.random(n) < 0.6
    l1, giou = losses.boxes(*(torch.from_numpy(each) for each in (one, other, inside)))
    rows = np.flatnonzero(inside)
    count = max(1, len(rows))
    assert float(l1) == pytest.approx(np.abs(one - other)[rows].sum() / count, abs=1e-9)
    wanted = sum(1 - plain_giou(one[r].tolist(), other[r].tolist()) for r in rows) / count
    assert float(giou) == pytest.approx(wanted, abs=1e-9)


def test_boxes_without_area_have_a_loss() -> None:
    flat = torch.zeros(1, 4)
    assert losses.generalized_iou(flat, flat).isfinite().all()


def test_grounding_weighs_the_parts_of_all_layers() -> None:
    torch.manual_seed(0)
    logits, span, mask = _draw(4, 3, 8)
    span[2] = -1
    found = Grounded(
        torch.rand(2, 3, 8, 4).double(),
        torch.stack([logits, logits * 0.3]),
        torch.rand(2, 3, 8, 8).double() * 0.9,
    )
    target = torch.rand(3, 8, 4).double()
    frames = torch.arange(8)[None]
    inside = (frames >= span[:, :1]) & (frames <= span[:, 1:]) & (span[:, :1] >= 0)
    total = 0.0
    for layer in range(2):
        l1, giou = losses.boxes(found.boxes[layer], target, inside)
        total += 5 * float(l1) + 2 * float(giou)
        total += 10 * float(losses.spans(found.spans[layer], span, mask))
        total += float(losses.guided_attention(found.attention[layer], inside, mask))
    given_ = losses.grounding(found, target, span, mask)
    assert float(given_.total) == pytest.approx(total, rel=1e-9)
    assert float(given_.span) == pytest.approx(float(losses.spans(found.spans[1], span, mask)))


def test_actions_count_those_who_have_a_label() -> None:
    logits = torch.tensor([[2.0, -1.0], [0.5, 0.5], [9.0, 9.0]], requires_grad=True)
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    each = [np.log1p(np.exp(-2.0)), np.log1p(np.exp(-1.0)), np.log1p(np.exp(0.5)), np.log1p(np.exp(-0.5))]
    assert float(losses.actions(logits, targets).detach()) == pytest.approx(np.mean(each), abs=1e-6)
    nobody = losses.actions(logits, torch.zeros(3, 2))
    nobody.backward()
    assert float(nobody.detach()) == 0
    assert logits.grad is not None


def test_relations_weigh_what_holds_and_count_what_was_sampled() -> None:
    logits, targets = torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 1.0]])
    holds = [3 * np.log1p(np.exp(-2.0)), 0.5 * np.log1p(np.exp(1.0))]
    weight = torch.tensor([3.0, 0.5])
    assert float(losses.relations(logits, targets, weight)) == pytest.approx(np.mean(holds), abs=1e-6)
    sampled = torch.tensor([[False, True]])
    assert float(losses.relations(logits, targets, weight, sampled)) == pytest.approx(holds[1], abs=1e-6)
    assert float(losses.relations(logits, targets, weight, ~sampled & sampled)) == 0


def test_views_are_compared_by_cosine_and_projections_have_no_gradient() -> None:
    torch.manual_seed(0)
    p1, p2, z1, z2 = (torch.randn(3, 5, requires_grad=True) for _ in range(4))
    found = losses.simsiam(p1, p2, z1, z2)
    wanted = 0.0
    for p, z in ((p1, z2), (p2, z1)):
        for a, b in zip(p.detach().numpy(), z.detach().numpy(), strict=True):
            wanted -= float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) / 6
    assert float(found.detach()) == pytest.approx(wanted, abs=1e-6)
    found.backward()
    assert p1.grad is not None
    assert z1.grad is None
    assert z2.grad is None


def test_a_small_source_counts_as_much_as_its_background() -> None:
    logits, target = torch.zeros(2, 4, 4), torch.zeros(2, 4, 4)
    logits[0, 0, 0] = -3.0
    target[0, 0, 0] = 1
    wanted = ((np.log1p(np.exp(3.0)) + np.log(2)) / 2 + np.log(2)) / 2
    assert float(losses.sound_map(logits, target)) == pytest.approx(wanted, abs=1e-6)


def test_a_batch_of_nothing_has_no_loss() -> None:
    rows = torch.zeros(0, 5, 2, requires_grad=True)
    mask = torch.zeros(0, 5, dtype=torch.bool)
    for loss in (
        losses.spans(rows, torch.zeros(0, 2, dtype=torch.long), mask),
        losses.guided_attention(torch.zeros(0, 5, 5, requires_grad=True), mask, mask),
        losses.simsiam(rows[:, 0], rows[:, 1], rows[:, 0], rows[:, 1]),
    ):
        assert loss.item() == 0
        loss.backward()


def test_shapes_that_differ_are_refused() -> None:
    for loss in (losses.actions, losses.relations, losses.boxes, losses.sound_map):
        with pytest.raises(UsageError, match="differ in shape"):
            loss(torch.zeros(2, 4), torch.zeros(3, 4))
    with pytest.raises(UsageError, match="should be"):
        losses.spans(torch.zeros(2, 4, 2), torch.zeros(3, 2), torch.ones(2, 4, dtype=torch.bool))


def test_the_loss_of_matching_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(3)
    who = torch.from_numpy(rng.normal(size=(3, 4))).double()
    who[0, 3] = -torch.inf
    found = Matched(
        who,
        torch.from_numpy(rng.normal(size=(3, 4, 6))),
        torch.from_numpy(rng.normal(size=(3, 18))),
        torch.tensor([2.0, -1.0, 0.5]).double(),
    )
    person, span = torch.tensor([1, -1, 3]), torch.tensor([[0, 2], [-1, -1], [4, 5]])
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[0, 5] = False
    got = losses.matching(found, person, span, mask)

    chances = [np.exp(row) / np.exp(row).sum() for row in who.numpy()]
    wanted_who = -np.mean([np.log(chances[0][1]), np.log(chances[2][3])])
    near, far, own = [], [], []
    for q in range(3):
        for p in range(4):
            for t in range(6):
                if np.isinf(float(who[q, p])) or not mask[q, t]:
                    continue
                logit = float(found.inside[q, p, t])
                held = p == person[q] and span[q, 0] <= t <= span[q, 1]
                loss = np.log1p(np.exp(-logit if held else logit))
                (near if held else far).append(loss)
                if p == person[q]:
                    own.append(loss)
    assert float(got.who) == pytest.approx(wanted_who)
    assert float(got.inside) == pytest.approx((np.mean(near) + np.mean(far)) / 2)
    assert len(own) == 5 + 6
    assert float(got.when) == pytest.approx(np.mean(own))
    # Of the first sentence five frames are of the clip, of the last one six.
    spans = [
        score_spans(found.inside[q, p, :t][None], found.lasting[q][None])[0, a, b]
        for q, p, t, a, b in ((0, 1, 5, 0, 2), (2, 3, 6, 4, 5))
    ]
    assert float(got.span) == pytest.approx(-float(sum(spans)) / 2)
    told = np.log1p(np.exp([-2.0, -1.0, -0.5]))
    assert float(got.somebody) == pytest.approx(((told[0] + told[2]) / 2 + told[1]) / 2)
    total = got.who + got.inside + got.when + 0.3 * got.span + 0.15 * got.somebody
    assert float(got.total) == pytest.approx(float(total))
    nobody = losses.matching(found, torch.full((3,), -1), torch.full((3, 2), -1), mask)
    assert float(nobody.who) == float(nobody.when) == float(nobody.span) == 0
    assert torch.isfinite(nobody.total)
