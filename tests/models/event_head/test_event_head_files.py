"""The head's file: as it was written, refused where damaged; its networks as by hand; colours of lights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.errors import DamagedError, InputError
from roadaware.models.event_head.features import compute_light_colours
from roadaware.models.event_head.head import (
    FEATURES,
    SCENE_FEATURES,
    EventHead,
    SmallNetwork,
    open_head,
    save_head,
)


def small(inputs: int, labels: int, seed: int) -> SmallNetwork:
    rng = np.random.default_rng(seed)

    def layer(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal((a, b)).astype(np.float32) / 4, rng.standard_normal(b).astype(
            np.float32
        ) / 4

    layers = tuple((layer(inputs, 5), layer(5, labels)) for _ in range(2))
    mean, spread = rng.standard_normal(inputs), rng.uniform(0.5, 2, inputs)
    slope, offset = rng.uniform(0.5, 2, labels), rng.standard_normal(labels)
    return SmallNetwork(
        *(a.astype(np.float32) for a in (mean, spread)),
        layers,
        *(a.astype(np.float32) for a in (slope, offset)),
    )


def a_head() -> EventHead:
    labels = (("Stop", "Mov"), ("Jun",), ("AV-Stop", "AV-Mov"))
    return EventHead(*labels, small(len(FEATURES), 3, 0), small(len(SCENE_FEATURES), 2, 1), {"rows": 3})


def test_networks_compute_what_stands_in_their_layers() -> None:
    network, x = small(7, 3, 4), np.random.default_rng(0).normal(0, 5, (6, 7))
    for row, told in zip(x, network.logits(x), strict=True):
        held = [
            min(max((v - m) / s, -6.0), 6.0)
            for v, m, s in zip(row, network.mean, network.spread, strict=True)
        ]
        logits = np.zeros(3)
        for (weight, bias), (last, end) in network.layers:
            hidden = [
                max(0.0, sum(h * w for h, w in zip(held, weight[:, k], strict=True)) + bias[k])
                for k in range(5)
            ]
            logits += [sum(h * w for h, w in zip(hidden, last[:, k], strict=True)) + end[k] for k in range(3)]
        assert np.abs(told - (logits / 2 * network.slope + network.offset)).max() < 1e-4


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    head = a_head()
    save_head(head, tmp_path / "head.safetensors")
    again = open_head(tmp_path / "head.safetensors")
    x = np.random.default_rng(1).normal(size=(4, len(FEATURES)))
    assert all(np.array_equal(a, b) for a, b in zip(head.scores(x), again.scores(x), strict=True))
    assert (again.actions, again.locations, again.facts) == (head.actions, head.locations, {"rows": 3})
    assert again.av_scores(np.zeros(len(SCENE_FEATURES))).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("damage", ["cut", "short", "format", "nan", "features", "shape", "empty"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    head, path = a_head(), tmp_path / "head.safetensors"
    if damage == "nan":
        broken = head.tubes.mean.copy()
        broken[0] = np.nan
        head = replace(head, tubes=replace(head.tubes, mean=broken))
    if damage == "shape":
        head = replace(head, tubes=small(len(FEATURES) - 1, 3, 0))
    save_head(head, path)
    raw = path.read_bytes()
    if damage == "features":
        raw = raw.replace(b"place.u", b"place.w")
    raw = {
        "cut": raw[:-40],
        "short": raw[:5],
        "empty": b"",
        "format": raw.replace(b"event-head-1", b"event-head-9"),
    }.get(damage, raw)
    path.write_bytes(raw)
    with pytest.raises(DamagedError):
        open_head(path)


def test_a_missing_file_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        open_head(tmp_path / "none")


def test_the_head_that_comes_along_opens() -> None:
    head = open_head()
    assert (len(head.actions), len(head.locations), len(head.av_actions)) == (23, 15, 7)
    path = Path(__file__).parents[3] / "src" / "roadaware" / "weights" / "events-simulated.safetensors"
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("lamp", "row", "best"),
    [((255, 40, 30), 4, 0), ((255, 180, 20), 12, 1), ((40, 240, 170), 20, 2), ((30, 30, 30), 20, 3)],
)
def test_colours_of_lights(lamp: tuple[int, int, int], row: int, best: int) -> None:
    picture = np.full((60, 60, 3), 150, np.uint8)
    picture[10:40, 20:32] = 25
    picture[10 + row : 14 + row, 23:29] = lamp
    found = compute_light_colours(picture, [[20, 10, 32, 40], [3, 3, 5, 6], [-9, -9, -2, -2]])
    assert found[0].argmax() == best
    assert found[0].sum() == pytest.approx(1, abs=1e-5)
    assert not found[1:].any()
