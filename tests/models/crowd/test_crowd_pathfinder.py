"""The laws of the pathfinder: who runs, who learns, and what is left of it for one task."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crowd.config import DYNAMIC_LAYERS, TASKS, CrowdConfig
from roadaware.models.crowd.network import build_trunk
from roadaware.models.crowd.pathfinder import Dynamic, Pathfinder, anneal, count_switches, install

torch.set_num_threads(1)
LAYERS = DYNAMIC_LAYERS["compact"]


class Plain(nn.Module):
    """Two convolutions whose norms stand beside them, one in a row of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Conv2d(4, 5, 1), nn.BatchNorm2d(5))

    def forward(self, input: Tensor) -> Tensor:
        shown: Tensor = self.rest(functional.relu(self.bn1(self.conv1(input)), inplace=True))
        return shown


def _trunk(blocks: int, seed: int = 0) -> tuple[nn.Module, Pathfinder]:
    torch.manual_seed(seed)
    trunk = build_trunk(CrowdConfig.tiny())
    trunk.cut_before(LAYERS)
    return trunk, install(trunk, LAYERS, blocks, tasks=TASKS, width=8, noise=0.5)


def _images(seed: int = 1) -> Tensor:
    return torch.randn(1, 3, 3, 64, 64, generator=torch.Generator().manual_seed(seed))


def _decide(finder: Pathfinder, seed: int = 3) -> None:
    """Let scores differ so that tasks take different paths."""
    torch.manual_seed(seed)
    for layer in finder.layers.values():
        nn.init.normal_(layer.score.weight)


def test_draws_are_one_hot_rows_and_the_best_block_is_drawn_more_often() -> None:
    _, finder = _trunk(3)
    _decide(finder)
    layer = next(iter(finder.layers.values()))
    torch.manual_seed(0)
    rows = torch.stack([layer.draw(0) for _ in range(500)])
    assert torch.allclose(rows.sum(dim=1), torch.ones(500))
    assert set(rows.round(decimals=5).unique().tolist()) == {0.0, 1.0}
    assert int(rows.sum(dim=0).argmax()) == layer.choose(0)


def test_only_the_drawn_block_learns_and_the_scores_do() -> None:
    trunk, finder = _trunk(3)
    finder.set_task("sound")
    torch.manual_seed(5)
    chosen: dict[str, int] = {}
    for name, layer in finder.layers.items():
        layer.draw = _remembering(layer, chosen, name)  # type: ignore[method-assign]
    trunk.train()(_images()).square().mean().backward()
    assert len(chosen) == len(LAYERS)
    for name, layer in finder.layers.items():
        for block in range(3):
            own = [*layer.convs[block].parameters(), *layer.norms[block].parameters()]
            if block == chosen[name]:
                assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in own[:1])
            else:
                assert all(p.grad is None for p in own)
        gradient = layer.score.bias.grad
        assert gradient is not None
        assert bool((gradient != 0).any())
        assert layer.embedding.weight.grad is not None
        asked = TASKS.index("sound")
        others = [row for row in range(len(TASKS)) if row != asked]
        assert not bool(layer.embedding.weight.grad[others].any())


def _remembering(layer: Dynamic, chosen: dict[str, int], name: str):
    draw = layer.draw

    def remember(task: int) -> Tensor:
        found = draw(task)
        chosen[name] = int(found.argmax())
        return found

    return remember


def test_only_the_drawn_block_updates_its_statistics() -> None:
    trunk, finder = _trunk(2)
    finder.set_task("actions")
    before = {
        name: [copy.deepcopy(norm.state_dict()) for norm in layer.norms]
        for name, layer in finder.layers.items()
    }
    chosen: dict[str, int] = {}
    for name, layer in finder.layers.items():
        layer.draw = _remembering(layer, chosen, name)  # type: ignore[method-assign]
    trunk.train()(_images())
    for name, layer in finder.layers.items():
        for block, norm in enumerate(layer.norms):
            same = all(
                torch.equal(value, before[name][block][key]) for key, value in norm.state_dict().items()
            )
            assert same == (block != chosen[name])
            assert norm.track_running_stats


def test_five_convolutions_run_in_evaluation_and_all_in_training() -> None:
    trunk, finder = _trunk(4)
    finder.set_task("relations")
    runs: list[str] = []
    for name, layer in finder.layers.items():
        for block, conv in enumerate(layer.convs):
            conv.register_forward_hook(lambda *_, place=(name, block): runs.append(place))  # type: ignore[misc]
    with torch.no_grad():
        trunk.eval()(_images())
        assert sorted(runs) == sorted(zip(LAYERS, finder.paths()["relations"], strict=True))
        runs.clear()
        trunk.train()(_images())
        assert len(runs) == 4 * len(LAYERS)


@pytest.mark.parametrize("task", TASKS)
def test_the_pruned_network_is_the_full_one_bit_by_bit(task: str) -> None:
    trunk, finder = _trunk(3)
    _decide(finder)
    finder.set_task("sound")
    with torch.no_grad():
        for _ in range(3):
            trunk.train()(_images())
        finder.set_task(task)
        wanted = trunk.eval()(_images())
        pruned = finder.pruned(task).eval()
        assert torch.equal(pruned(_images()), wanted)
    assert not any(isinstance(part, Dynamic) for part in pruned.modules())
    plain = build_trunk(CrowdConfig.tiny())
    assert {n: v.shape for n, v in pruned.state_dict().items()} == {
        n: v.shape for n, v in plain.state_dict().items()
    }


def test_paths_differ_between_tasks_and_are_constant() -> None:
    trunk, finder = _trunk(4)
    _decide(finder)
    table = finder.paths()
    assert set(table) == set(TASKS)
    assert len(set(table.values())) > 1
    assert all(0 <= block < 4 for path in table.values() for block in path)
    finder.set_task("actions")
    with torch.no_grad():
        trunk.train()(_images())
    assert finder.paths() == table
    assert count_switches(table, table) == dict.fromkeys(TASKS, 0)


@pytest.mark.parametrize("training", [True, False])
def test_one_block_is_the_plain_network(training: bool) -> None:
    torch.manual_seed(0)
    plain = Plain()
    dynamic = copy.deepcopy(plain)
    finder = install(dynamic, ["conv1", ("rest.1", "rest.2")], 1, tasks=["one", "two"])
    finder.set_task("two")
    image = torch.randn(2, 3, 8, 8)
    shown = [network.train(training)(image) for network in (plain, dynamic)]
    assert torch.equal(*shown)
    for out in shown:
        out.square().mean().backward()
    pruned = finder.pruned("one")
    for (name, own), (other, left) in zip(plain.named_parameters(), pruned.named_parameters(), strict=True):
        assert name == other
        assert torch.equal(own, left)
    gradients = [p.grad for name, p in dynamic.named_parameters() if p.grad is not None]
    assert all(
        any(torch.equal(p.grad, each) for each in gradients) for p in plain.parameters() if p.grad is not None
    )
    assert all(torch.equal(a, b) for a, b in zip(plain.buffers(), pruned.buffers(), strict=True))


def test_fixed_paths_are_taken_in_training_too_and_can_be_freed() -> None:
    trunk, finder = _trunk(3)
    path = (2, 0, 1, 2, 0)
    finder.fix({"sound": path})
    assert finder.paths()["sound"] == path
    finder.set_task("sound")
    with torch.no_grad():
        first, again = (trunk.train()(_images()) for _ in range(2))
    assert torch.equal(first, again)
    loaded, other = _trunk(3, seed=9)
    loaded.load_state_dict(trunk.state_dict())
    assert other.paths() == finder.paths()
    finder.fix(None)
    free = finder.paths()["sound"]
    assert free == tuple(int(layer.logits()[3].argmax()) for layer in finder.layers.values())


def test_draws_follow_the_seed() -> None:
    def run(seed: int) -> Tensor:
        trunk, finder = _trunk(4)
        finder.set_task("grounding")
        torch.manual_seed(seed)
        with torch.no_grad():
            return trunk.train()(_images())

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_entropy_goes_from_undecided_to_none() -> None:
    _, finder = _trunk(4)
    for layer in finder.layers.values():
        nn.init.zeros_(layer.score.weight)
    even = finder.entropy()
    assert all(abs(each - 1.386294) < 1e-5 for row in even.values() for each in row)
    for layer in finder.layers.values():
        with torch.no_grad():
            layer.score.bias[1] = 100.0
    assert all(0 <= each < 1e-5 for row in finder.entropy().values() for each in row)


def test_temperatures_fall_from_five_to_a_half() -> None:
    found = [anneal(step, 100) for step in range(100)]
    assert found[0] == 5.0
    assert abs(found[-1] - 0.5) < 1e-12
    assert found == sorted(found, reverse=True)
    assert anneal(0, 1) == 5.0
    _, finder = _trunk(2)
    finder.set_temperature(0.7)
    assert {layer.temperature for layer in finder.layers.values()} == {0.7}


def test_all_blocks_begin_with_plain_weights() -> None:
    trunk, finder = _trunk(2)
    torch.manual_seed(8)
    plain = build_trunk(CrowdConfig.tiny())
    plain.cut_before(LAYERS)
    finder.load_plain(plain.state_dict(), noise=0)
    for task in TASKS:
        finder.set_task(task)
        with torch.no_grad():
            assert torch.equal(trunk.eval()(_images()), plain.eval()(_images()))
    with pytest.raises(UsageError, match="another network"):
        finder.load_plain({"stem1.weight": torch.zeros(1)})


@pytest.mark.parametrize(
    ("layers", "blocks", "tasks", "says"),
    [
        (["conv9"], 2, ["a"], "is no convolution"),
        (["bn1"], 2, ["a"], "is no convolution"),
        ([("conv1", "bn9")], 2, ["a"], "a convolution and its norm"),
        (["conv1"], 0, ["a"], "at least 1 block"),
        (["conv1"], 2, [], "tasks"),
        (["conv1"], 2, ["a", "a"], "different names"),
    ],
)
def test_bad_layers_are_refused(layers: list, blocks: int, tasks: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        install(Plain(), layers, blocks, tasks=tasks)


def test_bad_questions_are_refused() -> None:
    network = Plain()
    network.bn1 = nn.Identity()  # type: ignore[assignment]
    del network.bn1
    with pytest.raises(UsageError, match="no norm beside it"):
        install(network, ["conv1"], 2, tasks=["a"])
    with pytest.raises(UsageError, match="no dynamic layers"):
        Pathfinder(Plain())
    trunk, finder = _trunk(2)
    with pytest.raises(UsageError, match="needs to know the task"):
        trunk(_images())
    for bad in (lambda: finder.set_task("dance"), lambda: finder.pruned("dance")):
        with pytest.raises(UsageError, match="there are actions"):
            bad()
    for path in ((0, 0), (0, 0, 0, 0, 2)):
        with pytest.raises(UsageError, match="a block of each layer"):
            finder.fix({"sound": path})
    with pytest.raises(UsageError, match="above 0"):
        finder.set_temperature(0.0)
