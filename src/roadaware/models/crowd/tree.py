"""The hierarchical relation tree over people in an image, and the Tree-GRU that passes messages along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from roadaware.arrays import Ints
from roadaware.errors import InputError, UsageError

Ties = Literal["reference", "stable"]


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree whose leaves are people and whose inner nodes are regions that hold them.

    Nodes are numbered layer by layer, leaves first and the root last; all leaves are equally deep.

    Args:
        boxes: (nodes, 4) x1, y1, x2, y2; of a region the smallest box around its children.
        layers: of each layer above the leaves its nodes and their children, the centre of the cluster first.
    """

    boxes: npt.NDArray[np.floating[Any]]
    layers: tuple[dict[int, list[int]], ...]

    @property
    def leaves(self) -> int:
        """How many people there are."""
        return len(self.boxes) - sum(len(layer) for layer in self.layers)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first node of each layer, leaves first, and the number of nodes."""
        counts = [self.leaves, *(len(layer) for layer in self.layers)]
        return (0, *(int(end) for end in np.cumsum(counts)))

    @cached_property
    def parent(self) -> Ints:
        """(nodes,) the parent of each node; -1 for the root."""
        found = np.full(len(self.boxes), -1, dtype=np.int64)
        for layer in self.layers:
            for node, children in layer.items():
                found[children] = node
        return found

    @cached_property
    def link(self) -> Ints:
        """(nodes, layers + 1) the ancestor of each node in each layer, itself in its own, -1 below it."""
        found = np.full((len(self.boxes), len(self.layers) + 1), -1, dtype=np.int64)
        for height in range(len(self.layers), -1, -1):
            nodes = np.arange(self.starts[height], self.starts[height + 1])
            if height < len(self.layers):
                found[nodes] = found[self.parent[nodes]]
            found[nodes, height] = nodes
        return found

    def lca(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Ints:
        """(m,) the lowest node that holds both leaves of each pair; of a leaf with itself, its parent.

        Args:
            first, second: (m,) leaves.
        """
        one, other = self.parent[np.asarray(first, np.int64)], self.parent[np.asarray(second, np.int64)]
        # All leaves are equally deep, so both ways up meet after the same number of steps.
        for _ in self.layers:
            apart = one != other
            one, other = np.where(apart, self.parent[one], one), np.where(apart, self.parent[other], other)
        return np.asarray(one, np.int64)


def build(boxes: npt.ArrayLike, *, height: int = 7, ties: Ties = "reference") -> Tree:
    """The hierarchical relation tree of the people in an image.

    A layer of n nodes becomes one of ceil(n / 2): nodes are ranked by the sum of exp(-d) over all nodes, where
    d is the squared distance of their four corner coordinates, densest first; those of even rank are centres,
    every other node joins the nearest centre (the first of equally near ones), and a region's box is the union
    of its children's. This goes on until one node is left; what `height` layers have not joined, a root joins.
    A single person has a region, too.

    In pixels exp(-d) underflows to 0 for nearly all pairs, so that nearly all nodes tie and keep the order that
    sorting gives; with corners in parts of the image the ranks mean what they say.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 of people; computed in their own precision, float64 if they are whole.
        height: layers before the root joins what is left.
        ties: `reference` sorts as published, by numpy's default, whose order of equal scores may differ from
            machine to machine; `stable` keeps the order of the boxes.

    Returns:
        The tree; without nodes if there are no people.

    Raises:
        InputError: if boxes are not (n, 4), or a coordinate is not finite.
        UsageError: if `ties` is another word, or `height` is below 1.

    Source: Teng et al., ICCV 2021 (TRACE), section 3.2, and its released code, `cluster_tree.py`.

    >>> build([[0, 0, 1, 1], [0, 0, 1, 1.5], [5, 5, 6, 6]]).layers
    ({3: [0, 1], 4: [2]}, {5: [3, 4]})
    """
    if ties not in ("reference", "stable"):
        raise UsageError(f"ties should be reference or stable; got {ties!r}")
    if height < 1:
        raise UsageError(f"a tree has at least 1 layer, not {height}")
    found = np.asarray(boxes)
    found = found if np.issubdtype(found.dtype, np.floating) else found.astype(np.float64)
    found = found.reshape(0, 4) if not found.size else found
    if found.ndim != 2 or found.shape[1] != 4:
        raise InputError(f"boxes of people should be (n, 4), not {found.shape}")
    if not np.isfinite(found).all():
        raise InputError("a box of a person has a coordinate that is not finite")
    layers: list[dict[int, list[int]]] = []
    first, end = 0, len(found)
    while end and (not layers or end - first > 1):
        count = -(-(end - first) // 2) if len(layers) < height else 1
        clusters = _cluster(found[first:end], count, ties)
        layer = {end + number: [first + each for each in held] for number, held in enumerate(clusters)}
        regions = [_union(found[children]) for children in layer.values()]
        found = np.concatenate([found, np.stack(regions)])
        layers.append(layer)
        first, end = end, end + count
    return Tree(found, tuple(layers))


def _cluster(boxes: npt.NDArray[np.floating[Any]], count: int, ties: Ties) -> list[list[int]]:
    """The nodes of each of `count` clusters, its centre first."""
    score = -np.exp(-_distances(boxes, boxes)).sum(axis=1)
    order = np.argsort(score, kind="stable" if ties == "stable" else None)
    ranked = np.concatenate([order[0::2], order[1::2]])
    centres, rest = ranked[:count], ranked[count:]
    clusters = [[int(centre)] for centre in centres]
    for node, nearest in zip(rest, _distances(boxes[centres], boxes[rest]).argmin(axis=0), strict=True):
        clusters[nearest].append(int(node))
    return clusters


def _distances(
    one: npt.NDArray[np.floating[Any]], other: npt.NDArray[np.floating[Any]]
) -> npt.NDArray[np.floating[Any]]:
    """(n, m) squared distances of corners."""
    found: npt.NDArray[np.floating[Any]] = ((one[:, None] - other[None]) ** 2).sum(axis=-1)
    return found


def _union(boxes: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])


class Forest(NamedTuple):
    """Several trees as one, numbered layer by layer, so that all of them are gone through at once.

    Args:
        parent: (nodes,) int64, the parent of each node; -1 for roots.
        starts: the first node of each layer, leaves first, and the number of nodes.
        place: of each tree (its nodes,) int64, the numbers that its nodes have here.
    """

    parent: Tensor
    starts: tuple[int, ...]
    place: list[Tensor]

    def layer(self, height: int) -> slice:
        """The nodes of a layer; the leaves are layer 0."""
        return slice(self.starts[height], self.starts[height + 1])


def join(trees: Sequence[Tree], device: torch.device | None = None) -> Forest:
    """Several trees as one forest; those without nodes take no place in it."""
    tallest = max((len(tree.layers) for tree in trees), default=-1)
    place = [np.full(len(tree.boxes), -1, dtype=np.int64) for tree in trees]
    starts = [0]
    for height in range(tallest + 1):
        count = starts[-1]
        for tree, own in zip(trees, place, strict=True):
            if height <= len(tree.layers) and len(tree.boxes):
                first, end = tree.starts[height], tree.starts[height + 1]
                own[first:end] = np.arange(count, count + end - first)
                count += end - first
        starts.append(count)
    parent = np.full(starts[-1], -1, dtype=np.int64)
    for tree, own in zip(trees, place, strict=True):
        inner = tree.parent >= 0
        parent[own[inner]] = own[tree.parent[inner]]
    return Forest(
        torch.from_numpy(parent).to(device),
        tuple(starts),
        [torch.from_numpy(own).to(device) for own in place],
    )


def spread_boxes(boxes: Tensor, forest: Forest) -> Tensor:
    """(nodes, T, 4) boxes of all nodes over time: of a region the smallest box around its children, frame by frame.

    Args:
        boxes: (leaves, T, 4) x1, y1, x2, y2 in the order of the forest's leaves.
        forest: of these leaves.
    """
    layers = [boxes]
    for height in range(len(forest.starts) - 2):
        below, owner = layers[-1], forest.parent[forest.layer(height)] - forest.starts[height + 1]
        inner = owner >= 0
        count = forest.starts[height + 2] - forest.starts[height + 1]
        place = owner[inner][:, None, None].expand(-1, boxes.shape[1], 2)
        corners = below.new_zeros(count, boxes.shape[1], 2)
        low = corners.scatter_reduce(0, place, below[inner][..., :2], "amin", include_self=False)
        high = corners.scatter_reduce(0, place, below[inner][..., 2:], "amax", include_self=False)
        layers.append(torch.cat([low, high], dim=-1))
    return torch.cat(layers)


class TreeGru(nn.Module):
    """Messages along trees, from the leaves to the root and back: a gated unit whose past are its children.

    Up, with h the sum of the children's states h_k: z = s(Wz x + Uz h), r_k = s(Wr x + Ur h_k),
    h' = z h + (1 - z) tanh(Wh x + Uh sum r_k h_k); leaves have no past. Down, the past of a child is its
    parent's state, and the root keeps what came up. Both states, each through a layer, are added.

    Parameters are named as released (`Wz.0.weight`, `Uzd.0.bias`, `FFN1.0.weight`), so that a released state
    dict loads. In a batch the released code starts the roots of all but the tallest trees with zeros on the
    way down; here every root keeps its state. On one tree both are the same.

    Args:
        width: numbers of a node.
        hidden: numbers of a state (default: `width`).

    Source: Teng et al., ICCV 2021 (TRACE), section 3.2, and its released code, `tree_message_passing2D`.
    """

    def __init__(self, width: int, hidden: int | None = None) -> None:
        super().__init__()
        self.width, hidden = width, hidden or width
        for way in ("", "d"):
            for gate in "hzr":
                self.add_module(f"W{gate}{way}", nn.Sequential(nn.Linear(width, hidden, bias=False)))
            for gate in "hzr":
                layer = nn.Linear(hidden, hidden, bias=gate != "h")
                self.add_module(f"U{gate}{way}", nn.Sequential(layer))
        self.FFN1 = nn.Sequential(nn.Linear(hidden, width))
        self.FFN2 = nn.Sequential(nn.Linear(hidden, width))
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                nn.init.zeros_(parameter)
            elif name.startswith("FFN"):
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.orthogonal_(parameter)

    def forward(self, nodes: Tensor, trees: Tree | Forest) -> Tensor:
        """(n, width) of the nodes, each informed by its subtree and by its ancestors.

        Args:
            nodes: (n, width) features, in the order of the tree or forest.
            trees: one tree, or several that were joined.

        Raises:
            UsageError: if there is not one row of `width` for each node.
        """
        forest = join([trees], nodes.device) if isinstance(trees, Tree) else trees
        if len(nodes) != forest.starts[-1]:
            raise UsageError(f"{len(nodes)} rows for the {forest.starts[-1]} nodes of the trees")
        if nodes.shape[1:] != (self.width,):
            raise UsageError(f"rows of {tuple(nodes.shape[1:])} numbers, and the unit reads {self.width}")
        if not len(nodes):
            return nodes
        up = self._up(nodes, forest)
        down = self._down(nodes, up, forest)
        mixed: Tensor = self.FFN1(torch.cat(up)) + self.FFN2(torch.cat(down))
        return mixed

    def _gate(self, name: str, input: Tensor) -> Tensor:
        gated: Tensor = self.get_submodule(name)(input)
        return gated

    def _up(self, nodes: Tensor, forest: Forest) -> list[Tensor]:
        """Of each layer the states (nodes of it, hidden) that come from below."""
        leaves = nodes[forest.layer(0)]
        states = [(1 - self._gate("Wz", leaves).sigmoid()) * self._gate("Wh", leaves).tanh()]
        for height in range(len(forest.starts) - 2):
            x = nodes[forest.layer(height + 1)]
            owner = forest.parent[forest.layer(height)] - forest.starts[height + 1]
            inner = owner >= 0
            owner, below = owner[inner], states[-1][inner]
            empty = below.new_zeros(len(x), below.shape[1])
            total = empty.index_add(0, owner, below)
            reset = (self._gate("Wr", x)[owner] + self._gate("Ur", below)).sigmoid()
            past = empty.index_add(0, owner, reset * below)
            keep = (self._gate("Wz", x) + self._gate("Uz", total)).sigmoid()
            new = (self._gate("Wh", x) + self._gate("Uh", past)).tanh()
            states.append(keep * total + (1 - keep) * new)
        return states

    def _down(self, nodes: Tensor, up: list[Tensor], forest: Forest) -> list[Tensor]:
        """Of each layer the states (nodes of it, hidden) that come from above."""
        states = [up[-1]]
        for height in range(len(up) - 2, -1, -1):
            x = nodes[forest.layer(height)]
            owner = forest.parent[forest.layer(height)] - forest.starts[height + 1]
            past = states[0][owner.clamp(min=0)]
            reset = (self._gate("Wrd", x) + self._gate("Urd", past)).sigmoid()
            keep = (self._gate("Wzd", x) + self._gate("Uzd", past)).sigmoid()
            new = (self._gate("Whd", x) + self._gate("Uhd", reset * past)).tanh()
            state = keep * past + (1 - keep) * new
            states.insert(0, torch.where((owner >= 0)[:, None], state, up[height]))
        return states
