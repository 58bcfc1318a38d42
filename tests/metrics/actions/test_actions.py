"""Frame mAP of actions: equal to the published evaluators restated row by row, on sets full of ties."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from plain_actions import IDS, Row, mmaction2, official, predictions_of, recommended, scenes_of

from roadaware.metrics.actions.config import CONFIGS
from roadaware.metrics.actions.evaluate import evaluate

Key = tuple[str, int]


def random_set(
    seed: int, *, tied: bool, crowd: int = 12, persons: bool = True, most: int = 8
) -> tuple[list[Row], list[Row], list[Key], list[Key]]:
    """Truth, claims, excluded frames, and annotated frames without truth, on a coarse grid of corners."""
    rng = np.random.default_rng(seed)
    keys = [(video, frame) for video in ("a", "b", "c") for frame in (900, 901, 902, 903)]
    truth, claims = [], []
    for at, (video, frame) in enumerate(keys):
        people = [_corners(rng) for _ in range(rng.integers(1, 5))] if at % 4 != 3 else []
        for person, corners in enumerate(people):
            for label in rng.choice(IDS[:3], rng.integers(1, 4)):
                truth.append(Row(video, frame, *corners, int(label), float(person) if persons else None))
        for _ in range(rng.integers(0, crowd)):
            near = people[rng.integers(len(people))] if people and rng.random() < 0.6 else _corners(rng)
            corners = near if rng.random() < 0.5 else _moved(near, rng)
            for label in rng.choice(IDS, rng.integers(1, most)):
                score = rng.integers(0, 6) / 5 if tied else rng.random()
                claims.append(Row(video, frame, *corners, int(label), float(score)))
    claims += [Row("b", 990, *_corners(rng), IDS[0], 0.55), Row("zz", 900, *_corners(rng), IDS[1], 0.45)]
    order = rng.permutation(len(claims)) if seed % 2 else range(len(claims))
    return truth, [claims[i] for i in order], [keys[1], keys[3], ("a", 999)], [keys[7]]


def _corners(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Corners on tenths; one box in eight has no area."""
    x1, y1 = rng.integers(0, 6, 2) / 10
    width, height = rng.integers(1, 5, 2) / 10
    if rng.random() < 0.125:
        width = 0.0
    return float(x1), float(y1), float(x1 + width), float(y1 + height)


def _moved(corners: tuple[float, ...], rng: np.random.Generator) -> tuple[float, ...]:
    x1, y1, x2, y2 = corners
    dx, dy = rng.integers(-1, 2, 2) / 10
    return x1 + dx, y1 + dy, x2 + dx, y2 + dy


def values(
    name_or_config: object, truth: list[Row], claims: list[Row], *frames: list[Key]
) -> dict[str, float | None]:
    config = CONFIGS[name_or_config]() if isinstance(name_or_config, str) else name_or_config
    return evaluate(predictions_of(claims), scenes_of(truth, *frames), config).values()


def expected(per_class: dict[int, float]) -> dict[str, float | None]:
    """The values as a result has them."""
    known = [v for v in per_class.values() if not math.isnan(v)]
    of_class = {f"ap@0.5:action{label}": per_class.get(label, math.nan) for label in IDS}
    mean = sum(known) / len(known) if known else math.nan
    return {"map@0.5": mean, **of_class}


def same(found: dict[str, float | None], wanted: dict[str, float]) -> bool:
    assert {n: math.nan if v is None else v for n, v in found.items()} == pytest.approx(
        wanted, abs=1e-12, nan_ok=True
    )
    return True


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_every_config_is_its_evaluator_to_the_digit(seed: int, tied: bool) -> None:
    truth, claims, excluded, bare = random_set(seed, tied=tied, persons=seed % 3 > 0)
    frames = {(row.video, row.frame) for row in truth} | set(excluded) | set(bare)
    plain: dict[str, Callable[[], dict[int, float]]] = {
        "ava-official": lambda: official(truth, claims, excluded),
        "mmaction2": lambda: mmaction2(truth, claims, excluded),
        "paper": lambda: official(truth, claims, excluded, cap=0, ap="raw"),
        "default": lambda: recommended(truth, claims, excluded, frames),
    }
    for name, make in plain.items():
        assert same(values(name, truth, claims, excluded, bare), expected(make())), name
