"""Requirements in the loss: truth by three logics, gradients, and a run whose boxes violate them less."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
from made_films import WORDS, made_folder, made_recipe

from roadaware.errors import InputError, UsageError
from roadaware.models.retinanet3d.loss import LogicLoss, compute_violation
from roadaware.tasks.road_events import AV_ACTION, Classes
from roadaware.training.build import build_learner, build_logic_loss
from roadaware.training.checkpoints import LOG
from roadaware.training.loop import train
from roadaware.training.recipe import LossRecipe

KINDS = {kind: words for kind, words in WORDS.items() if kind != AV_ACTION}
CLASSES = Classes(KINDS, WORDS[AV_ACTION])
LOGICS = ("product", "godel", "lukasiewicz")


def plain_truth(literals: list[float], logic: str) -> float:
    """The t-conorm of two truths after the other, from its definition."""
    total = 0.0
    for truth in literals:
        total = {
            "product": total + truth - total * truth,
            "godel": max(total, truth),
            "lukasiewicz": min(1.0, total + truth),
        }[logic]
    return total


@pytest.mark.parametrize("logic", LOGICS)
def test_violation_is_one_less_truth(logic) -> None:
    generator = torch.Generator().manual_seed(0)
    for count in (1, 2, 5, 15):
        literals = torch.rand(20, count, generator=generator, dtype=torch.float64)
        expected = [1 - plain_truth(row, logic) for row in literals.tolist()]
        assert compute_violation(literals, logic).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("logic", LOGICS)
def test_of_certain_labels_it_is_the_share_of_violated_clauses(logic) -> None:
    clauses = [(-1, -2), (3, 1), (-3, 2, 1), (2,)]
    loss = LogicLoss(clauses, logic)
    for there in itertools.product((False, True), repeat=3):
        logits = torch.tensor([[200.0 if each else -200.0 for each in there]])
        violated = sum(not any(there[abs(k) - 1] == (k > 0) for k in clause) for clause in clauses)
        assert float(loss(logits)) == pytest.approx(violated / len(clauses))


@pytest.mark.parametrize("logic", LOGICS)
def test_rows_are_summed_and_clauses_averaged(logic) -> None:
    clauses = [(-1, -2), (3, 1), (-3, 2, 1), (2,)]
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    p = torch.sigmoid(logits).tolist()
    expected = sum(
        1 - plain_truth([row[abs(k) - 1] if k > 0 else 1 - row[abs(k) - 1] for k in clause], logic)
        for row in p
        for clause in clauses
    ) / len(clauses)
    assert float(LogicLoss(clauses, logic)(logits)) == pytest.approx(expected)


@pytest.mark.parametrize("logic", LOGICS)
def test_gradients_are_those_of_finite_differences(logic) -> None:
    clauses = [(-1, -2), (3, 1), (-3, 2, 4), (-4, 1)]
    loss = LogicLoss(clauses, logic)
    # Away from ties and from the corner of Lukasiewicz, where there is no derivative.
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert torch.autograd.gradcheck(loss, (logits.requires_grad_(),))


@pytest.mark.parametrize("logic", LOGICS)
def test_descent_ends_where_every_clause_holds(logic) -> None:
    clauses = [(-1, -2), (1, 2), (-2, 3), (-1, 4), (-3, -4)]
    logits = torch.tensor([[0.4, 0.3, -0.5, 0.2], [-0.3, 0.4, 0.3, -0.1]], requires_grad=True)
    loss = LogicLoss(clauses, logic)
    optimizer = torch.optim.SGD([logits], lr=6.0)
    for _ in range(200):
        optimizer.zero_grad()
        loss(logits).backward()
        optimizer.step()
    there = (logits > 0).tolist()
    assert all(any(row[abs(k) - 1] == (k > 0) for k in clause) for row in there for clause in clauses)


def test_no_rows_cost_nothing_and_have_a_gradient() -> None:
    logits = torch.zeros(0, 3, requires_grad=True)
    value = LogicLoss([(1, 2)], "product")(logits)
    value.backward()
    assert float(value.detach()) == 0
    assert logits.grad is not None


class TestRecipe:
    def rules(self, folder: Path, text: str) -> LossRecipe:
        path = folder / "rules.txt"
        path.write_text(text, encoding="utf-8")
        return LossRecipe(str(path))

    def test_labels_are_columns_behind_agentness(self, tmp_path) -> None:
        first, second = (name for name in KINDS["agent"][:2])
        found = build_logic_loss(self.rules(tmp_path, f"agent:{first} not agent:{second}\n"), CLASSES)
        assert found is not None
        column = {label: place for place, (_, label) in enumerate(CLASSES.names)}
        logits = torch.full((1, CLASSES.n_classes), -50.0)
        logits[0, column[second]] = 50.0
        assert float(found(logits)) == pytest.approx(1)
        logits[0, column[first]] = 50.0
        assert float(found(logits)) == pytest.approx(0)

    def test_other_labels_and_objects_are_refused(self, tmp_path) -> None:
        with pytest.raises(InputError, match="does not have"):
            build_logic_loss(self.rules(tmp_path, "walks runs\n"), CLASSES)
        with pytest.raises(UsageError, match=r"loss\.weight"):
            made_recipe(tmp_path, loss={"weight": 0})
        with pytest.raises(InputError, match=r"none\.txt"):
            build_logic_loss(LossRecipe(str(tmp_path / "none.txt")), CLASSES)

    @pytest.mark.parametrize("likeliest", [0, 8])
    def test_it_is_a_part_of_the_loss_and_is_kept_out_without_requirements(self, tmp_path, likeliest) -> None:
        made = made_folder(tmp_path / "made")
        rules = self.rules(tmp_path, f"not agent:{KINDS['agent'][0]} not agent:{KINDS['agent'][1]}\n")
        plain = made_recipe(made, model={"likeliest": likeliest})
        assert build_learner(plain, CLASSES).parts == ("boxes", "classes", "av")
        recipe = made_recipe(
            made,
            model={"likeliest": likeliest},
            schedule={"steps": 2},
            loss={"requirements": rules.requirements, "logic": "godel", "weight": 4.0},
        )
        learner = build_learner(recipe, CLASSES)
        assert learner.parts == ("boxes", "classes", "av", "logic")
        assert learner.divisors["logic"] == pytest.approx(0.25)
        train(recipe, tmp_path / "run")
        rows = [
            json.loads(line) for line in (tmp_path / "run" / LOG).read_text(encoding="utf-8").splitlines()
        ]
        logic = [row["logic"] for row in rows if "loss" in row]
        assert len(logic) == 2
        assert all(0 < value < 1 for value in logic)
        for row in rows:
            if "loss" in row:
                parts = row["boxes"] + row["classes"] / learner.divisors["classes"]
                parts += row["av"] / learner.divisors["av"] + 4 * row["logic"]
                assert row["loss"] == pytest.approx(parts, rel=1e-4)
