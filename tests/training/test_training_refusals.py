"""What a run begins with and leaves: weights that do not belong here, or are none, are refused in words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from made_films import WORDS, made_folder, made_recipe

from roadaware.errors import UsageError
from roadaware.tasks.road_events import AV_ACTION, Classes
from roadaware.training import loop
from roadaware.training.build import build_learner
from roadaware.training.checkpoints import LAST, LOG, read_log
from roadaware.training.loop import DivergedError, build_optimizer, resume_optimizer, set_rate, train
from roadaware.training.recipe import ScheduleRecipe

KINDS = {kind: words for kind, words in WORDS.items() if kind != AV_ACTION}
CLASSES = Classes(KINDS, WORDS[AV_ACTION])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return made_folder(tmp_path_factory.mktemp("made"))


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [0, 9])
def test_weights_that_are_no_numbers_replace_nothing_that_was_good(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float
) -> None:
    one = loop.Run._one

    def broken(run: loop.Run, *given: Any) -> None:
        one(run, *given)
        if run.step == 3:
            with torch.no_grad():
                next(run.network.parameters()).fill_(math.inf)

    monkeypatch.setattr(loop.Run, "_one", broken)
    recipe = made_recipe(made, schedule={"steps": 3}, machine={"checkpoint_minutes": minutes})
    with pytest.raises(DivergedError, match=r"weights behind step 3 are no numbers.*\n.*last good state"):
        train(recipe, tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    assert (tmp_path / LAST).exists() == (minutes == 0)
    if not minutes:
        kept = torch.load(tmp_path / LAST, weights_only=True)
        assert kept["step"] == 2
        assert all(value.isfinite().all() for value in kept["network"].values())


def test_what_stays_as_it_is_without_weights_is_told(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    build_learner(made_recipe(made), CLASSES)
    assert not caplog.text
    build_learner(made_recipe(made, model={"freeze_batch_norm": True, "freeze": ["backbone.stem1"]}), CLASSES)
    assert "random ones (backbone.stem1, batch norms)" in caplog.text


@pytest.mark.parametrize(
    "machine", [{"precision": "17"}, {"accelerator": "abacus"}, {"accelerator": "gpu", "devices": 64}]
)
def test_a_machine_that_is_not_there_is_refused_in_words(
    made: Path, tmp_path: Path, machine: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=r"on this machine \(machine"):
        train(made_recipe(made, machine=machine), tmp_path)


def test_weights_of_other_anchors_or_labels_are_refused_though_all_shapes_fit(
    made: Path, tmp_path: Path
) -> None:
    recipe = made_recipe(made)
    first = build_learner(recipe, CLASSES)
    with torch.no_grad():
        next(first.network.parameters()).add_(1)
    model = str(first.save(tmp_path, first.network, {}))
    again = build_learner(made_recipe(made, model={"weights": model}), CLASSES)
    pairs = zip(first.network.parameters(), again.network.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    fields = {**recipe.model.fields, "anchor_sizes_px": [20, 40]}
    with pytest.raises(UsageError, match="other anchors than the recipe's"):
        build_learner(made_recipe(made, model={"weights": model, "fields": fields}), CLASSES)
    fewer = Classes({"agent": KINDS["agent"][:1]}, ())
    part = {"weights": model, "fields": fields, "take": ["backbone."]}
    begun = build_learner(made_recipe(made, model=part), fewer).network.state_dict()
    held = first.network.state_dict()
    assert all(torch.equal(begun[name], held[name]) for name in held if name.startswith("backbone."))
    for kinds in ({**KINDS, "agent": KINDS["agent"][::-1]}, dict(reversed(KINDS.items()))):
        with pytest.raises(UsageError, match="as many labels apart as are to be learnt, but others"):
            build_learner(made_recipe(made, model={"weights": model}), Classes(kinds, WORDS[AV_ACTION]))


def test_an_optimizer_goes_on_with_its_memory_and_with_the_decay_that_is_asked_for_now() -> None:
    network = torch.nn.Linear(2, 2)
    usual: dict[str, Any] = {"optimizer": "adamw", "lr": 0.1, "weight_decay": 0.1}
    first = build_optimizer(network, ScheduleRecipe(**usual))
    set_rate(first, 0.1)
    network(torch.ones(1, 2)).sum().backward()
    first.step()
    state = first.state_dict()
    second = build_optimizer(network, ScheduleRecipe(**{**usual, "weight_decay": 0.3, "betas": (0.8, 0.9)}))
    resume_optimizer(second, state)
    assert [(g["weight_decay"], g["betas"]) for g in second.param_groups] == [(0.3, (0.8, 0.9))] * 2
    rates = [group["lr"] for group in first.param_groups]
    assert len(set(rates)) == 2
    assert [group["lr"] for group in second.param_groups] == rates
    assert all(
        torch.equal(second.state[p]["exp_avg"], first.state[p]["exp_avg"]) for p in network.parameters()
    )
    for changed in ({"optimizer": "sgd"}, {"bias_lr": 0.5}, {"bias_lr": 1.0}, {"part_lr": {"weight": 3.0}}):
        other = build_optimizer(network, ScheduleRecipe(**{**usual, **changed}))
        with pytest.raises(UsageError, match="another optimizer or of other groups"):
            resume_optimizer(other, state)


def test_lines_of_a_log_that_say_no_step_are_left_out(tmp_path: Path) -> None:
    odd = (b"3", b"[]", b"{}", b'{"step": "1"}', b"\xff\xfe", b"[" * 100_000, b'{"step": 2', b"")
    (tmp_path / LOG).write_bytes(b"\n".join([b'{"step": 1, "loss": 0.5}', *odd, b'{"step": 2}', b'{"st']))
    assert read_log(tmp_path) == [{"step": 1, "loss": 0.5}, {"step": 2}]
