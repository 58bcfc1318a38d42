"""Readers of pickles on mutants of what they hold: valid tables, every row accounted for, or an error."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import prediction_files as files
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from sets import SETS, rows_add_up
from value_mutants import mutant

from roadaware.datasets import read
from roadaware.errors import InputError
from roadaware.formats.road_detections import read_detections
from roadaware.formats.road_tubes import read_tubes
from roadaware.scenes.store import encode
from roadaware.scenes.tables import Predictions, Scenes

FAST, SLOW = 60, 2000
SCENES = files.scenes()
ENDS = {"typed error", "rejected", "read"}


def predictions_add_up(predictions: Predictions) -> None:
    refused = dict(predictions.rejected.group_by("table").len().iter_rows())
    for table, count in predictions.meta.rows_read.items():
        if table != "files":
            assert len(predictions.tables()[table]) + refused.get(table, 0) == count, table


def ucf24(folder: Path, chance: random.Random) -> str:
    maker = SETS["ucf24"].maker
    (folder / maker.MAIN).write_bytes(maker.written(mutant(maker.content(6), chance)))
    return _ended(lambda: read("ucf24", folder, cache=False), rows_add_up)


def detections(folder: Path, chance: random.Random) -> str:
    held = {"ego": files.ego(), "main": files.main(chance.randrange(4), 3)}
    files.put(folder, "two/00001.pkl", mutant(held, chance))
    if chance.random() < 0.5:
        files.put(folder, "two/00002.pkl", held)
    named = SCENES if chance.random() < 0.8 else None
    return _ended(lambda: read_detections(folder, named), predictions_add_up)


def tubes(folder: Path, chance: random.Random) -> str:
    path = files.put(folder, "tubes.pkl", mutant(files.tubes(), chance))
    named = SCENES if chance.random() < 0.8 else None
    return _ended(lambda: read_tubes(path, named), predictions_add_up)


def _ended(reading: Callable[[], Scenes | Predictions], law: Callable[..., None]) -> str:
    try:
        tables = reading()
    except InputError as error:
        return "typed error" if len(str(error)) < 3000 else "an endless message"
    law(tables)
    encode(tables)
    return "read" if tables.rejected.is_empty() else "rejected"


@pytest.mark.slow
@pytest.mark.parametrize("one", [ucf24, detections, tubes])
def test_mutants_end_well(one: Callable[[Path, random.Random], str], tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - chance here keeps no secret
    ended = Counter(one(tmp_path, chance) for _ in range(FAST))
    assert set(ended) == ENDS


@pytest.mark.slow
@pytest.mark.parametrize("one", [ucf24, detections, tubes])
def test_two_thousand_mutants_end_well(
    one: Callable[[Path, random.Random], str],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    chance = random.Random(0)  # noqa: S311 - chance here keeps no secret
    ended = Counter(one(tmp_path, chance) for _ in range(SLOW))
    record_property(f"mutants of {one.__name__}", dict(ended))
    assert set(ended) == ENDS
