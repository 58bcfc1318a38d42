"""Plain versions of what the crowd networks compute, written from the papers, number by number."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np


def plain_tree(boxes: list[list[float]], height: int = 7) -> tuple[list[dict[int, list[int]]], float]:
    """Layers of the relation tree, where boxes of equal density keep their order, and the least gap of densities."""
    nodes = [list(box) for box in boxes]
    level = list(range(len(nodes)))
    layers: list[dict[int, list[int]]] = []
    gap = math.inf

    def apart(a: int, b: int) -> float:
        return sum((p - q) ** 2 for p, q in zip(nodes[a], nodes[b], strict=True))

    while level and (len(level) > 1 or not layers):
        centres_wanted = math.ceil(len(level) / 2) if len(layers) < height else 1
        density = {a: sum(math.exp(-apart(a, b)) for b in level) for a in level}
        dense = sorted(density.values())
        gaps = [b - a for a, b in pairwise(dense) if b > a]
        gap = min([gap, *gaps])
        ranked = sorted(level, key=lambda a: (-density[a], a))
        order = [a for r, a in enumerate(ranked) if r % 2 == 0] + [a for r, a in enumerate(ranked) if r % 2]
        centres, rest = order[:centres_wanted], order[centres_wanted:]
        members = {centre: [centre] for centre in centres}
        for a in rest:
            members[min(centres, key=lambda centre: apart(centre, a))].append(a)
        layer = {}
        for centre in centres:
            held = [nodes[a] for a in members[centre]]
            layer[len(nodes)] = members[centre]
            nodes.append(
                [
                    min(b[0] for b in held), min(b[1] for b in held),
                    max(b[2] for b in held), max(b[3] for b in held),
                ]
            )  # fmt: skip
        layers.append(layer)
        level = list(layer)
    return layers, gap


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def plain_tree_gru(
    state: dict[str, np.ndarray], x: np.ndarray, layers: list[dict[int, list[int]]]
) -> np.ndarray:
    """Messages of one tree, node by node: up by recursion, down from the root."""
    children = {node: held for layer in layers for node, held in layer.items()}
    root = len(x) - 1
    hidden = state["Wh.0.weight"].shape[0]
    up, down = np.zeros((len(x), hidden)), np.zeros((len(x), hidden))

    def linear(name: str, value: np.ndarray) -> np.ndarray:
        return state[f"{name}.0.weight"] @ value + state.get(f"{name}.0.bias", 0.0)

    def climb(node: int) -> np.ndarray:
        below = [climb(child) for child in children.get(node, [])]
        total, past = np.zeros(hidden), np.zeros(hidden)
        for h in below:
            total = total + h
            past = past + _sigmoid(linear("Wr", x[node]) + linear("Ur", h)) * h
        if below:
            z = _sigmoid(linear("Wz", x[node]) + linear("Uz", total))
            new = np.tanh(linear("Wh", x[node]) + linear("Uh", past))
        else:
            z, new = _sigmoid(linear("Wz", x[node])), np.tanh(linear("Wh", x[node]))
        up[node] = z * total + (1 - z) * new
        return up[node]

    def descend(node: int) -> None:
        for child in children.get(node, []):
            h = down[node]
            z = _sigmoid(linear("Wzd", x[child]) + linear("Uzd", h))
            r = _sigmoid(linear("Wrd", x[child]) + linear("Urd", h))
            new = np.tanh(linear("Whd", x[child]) + linear("Uhd", r * h))
            down[child] = z * h + (1 - z) * new
            descend(child)

    climb(root)
    down[root] = up[root]
    descend(root)
    return np.stack([linear("FFN1", up[n]) + linear("FFN2", down[n]) for n in range(len(x))])


def plain_logmel(wave: np.ndarray) -> np.ndarray:
    """(frames, 64) log-mel of one channel at 16 kHz, by a plain Fourier sum."""
    window = np.array([0.5 - 0.5 * math.cos(2 * math.pi * n / 400) for n in range(400)])
    kernel = np.exp(-2j * np.pi * np.outer(np.arange(257), np.arange(400)) / 512)

    def mel(f: float) -> float:
        return 1127 * math.log(1 + f / 700)

    edges = [mel(125) + (mel(7500) - mel(125)) * n / 65 for n in range(66)]
    bank = np.zeros((257, 64))
    for k in range(1, 257):
        here = mel(k * 8000 / 256)
        for band in range(64):
            rise = (here - edges[band]) / (edges[band + 1] - edges[band])
            fall = (edges[band + 2] - here) / (edges[band + 2] - edges[band + 1])
            bank[k, band] = max(0.0, min(rise, fall))
    starts = range(0, len(wave) - 399, 160)
    rows = [np.abs(kernel @ (wave[start : start + 400] * window)) @ bank for start in starts]
    return np.log(np.array(rows) + 0.01)


def plain_attend(visual: np.ndarray, audio: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pooled cells, cosines and scaled cosines of each image."""
    batch, channels, height, width = visual.shape
    cosines, weights = np.zeros((batch, height, width)), np.zeros((batch, height, width))
    pooled = np.zeros((batch, channels))
    for b in range(batch):
        for y in range(height):
            for x in range(width):
                cell = visual[b, :, y, x]
                cosines[b, y, x] = (cell * audio[b]).sum() / np.linalg.norm(cell) / np.linalg.norm(audio[b])
        low, high = cosines[b].min(), cosines[b].max()
        weights[b] = (cosines[b] - low) / (high - low + 1e-10)
        for y in range(height):
            for x in range(width):
                pooled[b] += weights[b, y, x] * visual[b, :, y, x]
    return pooled, cosines, weights


def plain_giou(one: list[float], other: list[float]) -> float:
    """Generalised IoU of two boxes given as centre and size."""
    (ax, ay, aw, ah), (bx, by, bw, bh) = one, other
    wide = max(0.0, min(ax + aw / 2, bx + bw / 2) - max(ax - aw / 2, bx - bw / 2))
    high = max(0.0, min(ay + ah / 2, by + bh / 2) - max(ay - ah / 2, by - bh / 2))
    union = aw * ah + bw * bh - wide * high
    hull = (max(ax + aw / 2, bx + bw / 2) - min(ax - aw / 2, bx - bw / 2)) * (
        max(ay + ah / 2, by + bh / 2) - min(ay - ah / 2, by - bh / 2)
    )
    return wide * high / union - (hull - union) / hull


def plain_spans(logits: np.ndarray, spans: np.ndarray, mask: np.ndarray, sigma: float) -> float:
    """Mean over all frames of the divergence of start and end from Gaussians."""
    batch, time, _ = logits.shape
    total = 0.0
    for b in range(batch):
        for end in (0, 1):
            bell = [math.exp(-((t - spans[b, end]) ** 2) / (2 * sigma**2)) + 1e-6 for t in range(time)]
            raised = [math.exp(logits[b, t, end]) if mask[b, t] else 0.0 for t in range(time)]
            for t in range(time):
                if mask[b, t]:
                    p = raised[t] / sum(raised)
                    total += p * math.log((p + 1e-6) / (bell[t] / sum(bell)))
    return total / (batch * time)


def plain_guided(weights: np.ndarray, inside: np.ndarray, mask: np.ndarray) -> float:
    """Mean over clips of what frames outside of the span pay."""
    found = []
    for b in range(len(weights)):
        rows = [t for t in range(len(mask[b])) if mask[b, t] and not inside[b, t]]
        paid = sum(-math.log(1 - w + 1e-6) for t in rows for w in weights[b, t])
        found.append(paid / (len(rows) + 1e-6))
    return sum(found) / len(found)


def plain_space_sines(height: int, width: int, numbers: int) -> np.ndarray:
    """(height * width, numbers) positions of cells, number by number."""
    half, rows = numbers // 2, []
    for y in range(1, height + 1):
        for x in range(1, width + 1):
            row = []
            for place, count in ((y, height), (x, width)):
                turn = place / (count + 1e-6) * 2 * math.pi
                for k in range(half):
                    angle = turn / 10_000 ** (2 * (k // 2) / half)
                    row.append(math.cos(angle) if k % 2 else math.sin(angle))
            rows.append(row)
    return np.array(rows)
