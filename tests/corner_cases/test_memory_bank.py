"""A memory of what is common: what is like it is near, and crops are described without a network."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roadaware.corner_cases.scorers import MemoryBank, MemoryConfig, fit_memory
from roadaware.errors import InputError, UsageError
from roadaware.tasks.unknown_memory import WIDTH, extract_plain_features

RNG = np.random.default_rng(0)
COMMON = np.concatenate([RNG.normal(centre, 0.1, (60, 4)) for centre in (0.0, 3.0)])
GROUPS = np.arange(120) % 10


def test_what_is_unlike_everything_in_the_bank_is_an_anomaly() -> None:
    bank = fit_memory(COMMON, GROUPS, MemoryConfig(size=40))
    usual, strange = bank.anomaly(COMMON), bank.anomaly([[9.0, 9, 9, 9], [1.5, 1.5, 1.5, 1.5]])
    assert len(bank.features) == 40
    assert np.median(usual) < 0.6
    assert usual.max() < strange.min()


def test_half_is_what_common_things_outside_the_bank_are() -> None:
    bank = MemoryBank(np.zeros((1, 2), dtype=np.float32), 5.0, 2.0, 1)
    found = bank.anomaly([[3.0, 4.0], [0.0, 5 + 2 * math.log(3)], [0.0, 5 - 2 * math.log(3)]])
    assert found.tolist() == pytest.approx([0.5, 0.75, 0.25])


def test_the_quartiles_of_what_is_usual_are_those_of_the_anomaly() -> None:
    features = np.random.default_rng(5).normal(size=(4000, 1)) ** 3
    bank = fit_memory(features, np.arange(4000), MemoryConfig(size=1, neighbours=1))
    shares = bank.anomaly(features)
    assert np.mean(shares < 0.5) == pytest.approx(0.5, abs=0.06)
    assert np.mean(shares > 0.9) > 0.1


def test_videos_that_say_what_is_usual_are_not_in_the_bank() -> None:
    features = np.arange(10.0)[:, None]
    bank = fit_memory(features, np.arange(10), MemoryConfig(size=100, neighbours=1))
    assert len(bank.features) == 8
    assert bank.typical in (1.0, 1.5), "the two that are left out lie beside those that are kept"


def test_what_no_bank_can_be_made_of_says_why() -> None:
    config = MemoryConfig()
    with pytest.raises(InputError, match="nothing to keep in the memory bank"):
        fit_memory(np.zeros((0, 4)), [], config)
    with pytest.raises(InputError, match="from one image or video"):
        fit_memory(COMMON, np.zeros(120), config)
    with pytest.raises(InputError, match="their features do not differ"):
        fit_memory(np.ones((20, 3)), np.arange(20), config)
    with pytest.raises(InputError, match="not finite"):
        fit_memory(np.full((20, 3), np.nan), np.arange(20), config)
    with pytest.raises(InputError, match="length 3 do not fit a bank of length 4"):
        fit_memory(COMMON, GROUPS, config).anomaly(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="size should lie in"):
        MemoryConfig(size=0)


def test_crops_are_described_by_three_blocks_of_unit_length() -> None:
    crops = RNG.integers(0, 256, (3, 64, 64, 3)).astype(np.uint8)
    found = extract_plain_features(crops)
    assert found.shape == (3, WIDTH) == (3, 256)
    np.testing.assert_allclose((found**2).sum(axis=1), 3, rtol=1e-5)
    assert extract_plain_features(crops[:0]).shape == (0, 256)


def test_edges_have_a_direction_and_colours_a_place() -> None:
    upright, flat = np.zeros((2, 64, 64, 3), dtype=np.uint8)
    upright[:, ::8] = 200
    flat[::8] = 200
    found = extract_plain_features(np.stack([upright, flat, np.roll(upright, 3, axis=1)]))
    edges, colours = found[:, :144], found[:, 144:208]
    across, down = edges[0].reshape(16, 9).sum(axis=0), edges[1].reshape(16, 9).sum(axis=0)
    assert across.argmax() == 0
    assert down.argmax() == 4
    np.testing.assert_allclose(colours[0], colours[1])
    assert np.linalg.norm(found[0] - found[2]) < np.linalg.norm(found[0] - found[1])


def test_a_crop_of_one_colour_has_no_edges_and_black_is_described_too() -> None:
    found = extract_plain_features(np.zeros((1, 64, 64, 3), dtype=np.uint8))
    assert np.isfinite(found).all()
    assert found[0, 144] == 1
    assert found[0, :144].sum() == 0
    with pytest.raises(InputError, match="crops are"):
        extract_plain_features(np.zeros((1, 32, 64, 3), dtype=np.uint8))


def test_two_pictures_are_enough_for_a_bank() -> None:
    bank = fit_memory(np.arange(4.0)[:, None], [0, 0, 1, 1], MemoryConfig(size=10, neighbours=1))
    assert len(bank.features) == 2
