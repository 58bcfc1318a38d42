"""The relation tree equals a plain one, node by node, and the Tree-GRU a recursion over it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_crowd import plain_tree, plain_tree_gru

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.models.crowd import tree

torch.set_num_threads(1)


def _boxes(n: int, seed: int, size: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 1, (n, 2))
    return np.concatenate([corner, corner + rng.uniform(0.02, 0.3, (n, 2))], axis=1) * size


@tried(60)
@given(n=st.integers(1, 40), seed=st.integers(0, 10_000), size=st.sampled_from([0.5, 1.0, 3.0, 200.0]))
def test_a_tree_is_the_plain_one(n: int, seed: int, size: float) -> None:
    boxes = _boxes(n, seed, size)
    built = tree.build(boxes, ties="stable")
    layers, gap = plain_tree(boxes.tolist())
    # Below that, the order of sums decides who is denser.
    assert list(built.layers) == layers or gap < 1e-13
    assert built.leaves == n
    assert np.array_equal(built.boxes[:n], boxes)
    root = built.boxes[-1]
    assert np.array_equal(root, [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)])


def test_more_people_than_seven_layers_join_are_joined_by_a_root() -> None:
    boxes = _boxes(300, 5)
    built = tree.build(boxes)
    assert list(built.layers) == plain_tree(boxes.tolist())[0]
    assert len(built.layers) == 8
    assert len(built.layers[-2]) == 3


def test_published_precision_is_kept() -> None:
    """float32 boxes in pixels: the exponential underflows, and the order is that of numpy's sorting."""
    boxes = (_boxes(12, 3) * 300).astype(np.float32)
    built = tree.build(boxes)
    assert built.boxes.dtype == np.float32
    order = np.argsort(np.full(12, -1, np.float32))
    assert [held[0] for held in built.layers[0].values()] == order[0::2].tolist()


def test_one_person_has_a_region_and_nobody_has_no_tree() -> None:
    alone = tree.build([[0, 0, 2, 3]])
    assert alone.layers == ({1: [0]},)
    assert alone.lca([0], [0]).tolist() == [1]
    nobody = tree.build(np.zeros((0, 4)))
    assert nobody.layers == ()
    assert nobody.leaves == 0


@pytest.mark.parametrize(
    ("boxes", "fields", "error"),
    [
        ([[0, 0, 1]], {}, InputError),
        ([[0, 0, 1, float("nan")]], {}, InputError),
        ([[0, 0, 1, 1]], {"ties": "random"}, UsageError),
        ([[0, 0, 1, 1]], {"height": 0}, UsageError),
    ],
)
def test_bad_boxes_are_refused(boxes: list, fields: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        tree.build(boxes, **fields)


@tried(30)
@given(n=st.integers(1, 30), seed=st.integers(0, 1000))
def test_links_and_ancestors_are_those_of_a_walk_to_the_root(n: int, seed: int) -> None:
    built = tree.build(_boxes(n, seed))

    def ways(node: int) -> list[int]:
        way = [node]
        while built.parent[way[-1]] >= 0:
            way.append(int(built.parent[way[-1]]))
        return way

    for node in range(len(built.boxes)):
        known = built.link[node]
        assert known[known >= 0].tolist() == ways(node)
    first, second = np.meshgrid(np.arange(n), np.arange(n))
    for a, b, found in zip(
        first.ravel(), second.ravel(), built.lca(first.ravel(), second.ravel()), strict=True
    ):
        common = [node for node in ways(int(a))[1:] if node in ways(int(b))[1:]]
        assert found == common[0]


@tried(20)
@given(n=st.integers(1, 20), seed=st.integers(0, 1000))
def test_messages_are_those_of_a_recursion(n: int, seed: int) -> None:
    torch.manual_seed(seed)
    gru = tree.TreeGru(6, 5).double()
    for parameter in gru.parameters():
        torch.nn.init.normal_(parameter)
    built = tree.build(_boxes(n, seed))
    x = torch.randn(len(built.boxes), 6, dtype=torch.float64)
    state = {name: value.numpy() for name, value in gru.state_dict().items()}
    wanted = plain_tree_gru(state, x.numpy(), list(built.layers))
    with torch.no_grad():
        assert np.abs(gru(x, built).numpy() - wanted).max() < 1e-10
        fresh = tree.TreeGru(6, 5)
        state = {name: value.double().numpy() for name, value in fresh.state_dict().items()}
        wanted = plain_tree_gru(state, x.numpy(), list(built.layers))
        assert np.abs(fresh(x.float(), built).numpy() - wanted).max() < 1e-5


def test_parameters_are_named_as_released() -> None:
    names = set(tree.TreeGru(4).state_dict())
    gates = {f"W{g}{way}.0.weight" for g in "hzr" for way in ("", "d")}
    past = {f"U{g}{way}.0.weight" for g in "hzr" for way in ("", "d")}
    biases = {f"U{g}{way}.0.bias" for g in "zr" for way in ("", "d")}
    ends = {f"FFN{n}.0.{kind}" for n in (1, 2) for kind in ("weight", "bias")}
    assert names == gates | past | biases | ends


def test_a_forest_gives_each_tree_what_it_gets_alone() -> None:
    torch.manual_seed(0)
    gru = tree.TreeGru(8).double()
    trees = [tree.build(_boxes(n, n).reshape(-1, 4)) for n in (5, 1, 0, 17, 2)]
    forest = tree.join(trees)
    x = torch.randn(forest.starts[-1], 8, dtype=torch.float64)
    together = gru(x, forest)
    for alone, place in zip(trees, forest.place, strict=True):
        assert torch.allclose(together[place], gru(x[place], alone), atol=1e-12)
    leaves = torch.cat([place[: t.leaves] for t, place in zip(trees, forest.place, strict=True)])
    assert leaves.tolist() == list(range(25))
    with pytest.raises(UsageError, match="rows for the"):
        gru(x[:-1], forest)
    with pytest.raises(UsageError, match=r"rows of \(7,\) numbers, and the unit reads 8"):
        gru(x[:, :7], forest)


def test_regions_hold_their_people_in_every_frame() -> None:
    torch.manual_seed(1)
    trees = [tree.build(_boxes(n, n)) for n in (4, 9)]
    forest = tree.join(trees)
    boxes = torch.rand(13, 3, 4)
    spread = tree.spread_boxes(boxes, forest)
    assert torch.equal(spread[:13], boxes)
    first = 0
    for built, place in zip(trees, forest.place, strict=True):
        own = boxes[first : first + built.leaves]
        first += built.leaves
        for node in range(built.leaves, len(built.boxes)):
            leaves = [n for n in range(built.leaves) if node in built.link[n]]
            low, high = own[leaves][..., :2].amin(dim=0), own[leaves][..., 2:].amax(dim=0)
            assert torch.equal(spread[place[node]], torch.cat([low, high], dim=1))
