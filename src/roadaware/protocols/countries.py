"""Two countries as domains of one protocol: the event head learns in one and is tested in the other."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder
from roadaware.models.event_head.head import open_head
from roadaware.protocols.event_domains import (
    EventDomain,
    JudgedBoxes,
    Measured,
    Progress,
    Town,
    build_weights,
    check_settings,
    simulate_domains,
)
from roadaware.training.events.online import FitConfig, fit_tubes
from roadaware.training.events.rows import TubeRows, flip_scene, join_tube_rows

FORMAT = "roadaware-countries"
MARKER, RESULTS, CELLS, SCENES = "study.json", "results.json", "cells.parquet", "scenes"
TRAIN_EVERY = 2
"""Every so many-th frame is learnt from."""
TRAIN_SCENES, TEST_SCENES = 16, 12
"""Simulated scenes of each country."""
TOWNS = (
    Town("left-hand", "towns and cameras drawn for each scene, traffic on the left", None, "left"),
    Town("right-hand", "towns and cameras drawn for each scene, traffic on the right", None, "right"),
)

SOURCE, MIRRORED, BOTH_WAYS = "source-only", "source, mirrored", "source and its mirror"
SCALES, TEACHER, JOINT, TARGET = "scales of each country", "mean teacher", "joint", "target-only"
METHODS = (SOURCE, MIRRORED, BOTH_WAYS, SCALES, TEACHER, JOINT, TARGET)
"""
source-only: labels of the source alone. source, mirrored: the same with left and right exchanged in boxes and
labels, which needs no look at the target. source and its mirror: both. scales of each country: labels of the source;
features of either country in spreads from its own means, which needs boxes of the target, and no labels. mean teacher:
labels of the source, and boxes of the target without labels. joint: labels of both. target-only: labels of the target alone.
"""


@dataclass(frozen=True)
class Direction:
    """From one country to the other.

    Args:
        source, target: names.
        methods: row to its mean average precision on the test of the target, and on that of the source.
        differences: row to its value on the target less that of `source-only`, paired.
        judged: labels that both annotate and that are true in enough test scenes of the target.
        passed: labels that both annotate, and that are true in too few of them.
        scenes: of the target that intervals are over.
    """

    source: str
    target: str
    methods: dict[str, tuple[Measured, Measured]]
    differences: dict[str, Measured]
    judged: tuple[str, ...]
    passed: tuple[str, ...]
    scenes: int


@dataclass(frozen=True, eq=False)
class CountriesStudy:
    """Results of both directions.

    Args:
        names, about: of the two domains.
        scenes: of each how many are learnt from and tested.
        boxes: of each how many are learnt from.
        directions: both.
        only: of each domain the labels that it alone annotates; they are learnt there and not judged.
        left_out: of each domain what was not taken of its tables.
        seeds: how many.
    """

    names: tuple[str, str]
    about: tuple[str, str]
    scenes: tuple[tuple[int, int], tuple[int, int]]
    boxes: tuple[int, int]
    directions: tuple[Direction, Direction]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    left_out: tuple[tuple[str, ...], tuple[str, ...]]
    seeds: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "domains": [
                {"name": n, "about": a, "scenes": list(s), "boxes": b, "only_there": list(o), "left_out": list(x)}
                for n, a, s, b, o, x in zip(
                    self.names, self.about, self.scenes, self.boxes, self.only, self.left_out, strict=True
                )
            ],
            "seeds": self.seeds,
            "directions": [
                {
                    "source": each.source, "target": each.target, "judged": list(each.judged),
                    "passed": list(each.passed), "scenes": each.scenes,
                    "methods": {
                        name: {"on_target": asdict(target), "on_source": asdict(source)}
                        for name, (target, source) in each.methods.items()
                    },
                    "less_source_only": {name: asdict(held) for name, held in each.differences.items()},
                }
                for each in self.directions
            ],
        }  # fmt: skip


def run_countries_study(
    out: Path,
    *,
    domains: Sequence[EventDomain] | None = None,
    seeds: int = 3,
    resamples: int = 1000,
    train_scenes: int = TRAIN_SCENES,
    test_scenes: int = TEST_SCENES,
    config: FitConfig | None = None,
    progress: Progress | None = None,
) -> CountriesStudy:
    """Learn in one country and be tested in the other, in both directions; labels are matched by name.

    Args:
        out: folder: `scenes/`, `results.json`, `cells.parquet`.
        domains: two, such as ROAD and ROAD-Waymo; simulated towns with traffic on the left and on the right where None.
        seeds: of networks: 0, 1, ...
        resamples: most weightings of test scenes for intervals; 0 for none.
        train_scenes, test_scenes: of each simulated country.
        config: of the fits.
        progress: called with what is done, how much there is, and in words.

    Raises:
        UsageError: if there are not two domains with names of their own, or the folder holds a study of other settings.
        InputError: if both have no label in common that can be judged.
    """
    how = config or FitConfig()
    if domains is not None and (len(domains) != 2 or domains[0].name == domains[1].name):
        raise UsageError(
            f"two countries are compared, with a name each; got {', '.join(d.name for d in domains) or 'none'}"
        )
    settings = {
        "domains": [town.name for town in TOWNS] if domains is None else [d.name for d in domains],
        "scenes_to_learn_from": train_scenes if domains is None else [len(d.train) for d in domains],
        "scenes_to_test_on": test_scenes if domains is None else [len(d.test) for d in domains],
        "fit": to_dict(how), "seeds": seeds, "resamples": resamples,
    }  # fmt: skip
    check_settings(out / MARKER, FORMAT, settings)
    with hold_folder(out):
        write_atomically(out / MARKER, encode_json({"format": FORMAT, "settings": settings}).encode())
        pair = (
            simulate_domains(TOWNS, out / SCENES, train_scenes, test_scenes, progress)
            if domains is None
            else list(domains)
        )
        rows, mirrors = (
            [
                join_tube_rows(
                    [boxes for boxes, _ in each.make_train_rows(0, every=TRAIN_EVERY, change=change)],
                    each.labels,
                )
                for each in pair
            ]
            for change in (None, flip_scene)
        )
        common = tuple(label for label in pair[0].labels if label in pair[1].labels)
        tests = [_build_test(each, common) for each in pair]
        directions = []
        total = 2 * len(METHODS) * seeds
        for source, target in ((0, 1), (1, 0)):
            given: dict[str, tuple[list[TubeRows], list[TubeRows]]] = {
                SOURCE: ([rows[source]], []), MIRRORED: ([mirrors[source]], []),
                BOTH_WAYS: ([rows[source], mirrors[source]], []),
                SCALES: ([rows[source]], []), TEACHER: ([rows[source]], [rows[target]]),
                JOINT: ([rows[source], rows[target]], []), TARGET: ([rows[target]], []),
            }  # fmt: skip
            done = source * len(METHODS) * seeds
            directions.append(
                _judge_direction(
                    pair, tests, rows, (source, target), given, how, seeds, resamples, (done, total, progress)
                )
            )
        study = CountriesStudy(
            (pair[0].name, pair[1].name), (pair[0].about, pair[1].about),
            ((len(pair[0].train), len(pair[0].test)), (len(pair[1].train), len(pair[1].test))),
            (len(rows[0]), len(rows[1])), (directions[0], directions[1]),
            (
                tuple(name for name in pair[0].labels if name not in common),
                tuple(name for name in pair[1].labels if name not in common),
            ),
            (pair[0].left_out, pair[1].left_out), seeds,
        )  # fmt: skip
        table = io.BytesIO()
        pl.DataFrame(_list_cells(study)).write_parquet(table)
        write_atomically(out / CELLS, table.getvalue())
        write_atomically(out / RESULTS, encode_json(study.as_dict()).encode())
    return study


def _build_test(domain: EventDomain, common: tuple[str, ...]) -> JudgedBoxes:
    rows, _ = domain.make_test_rows()
    columns = [rows.labels.index(name) for name in common]
    kept = TubeRows(common, rows.x, rows.truth[:, columns], rows.weight, rows.judged, rows.tube, rows.scene)
    test = JudgedBoxes.build(kept, 0)
    if not test.judged:
        raise InputError(
            f"{domain.name} cannot be judged: no label that both domains annotate is true in two of its test scenes"
        )
    return test


def _judge_direction(
    pair: Sequence[EventDomain],
    tests: Sequence[JudgedBoxes],
    rows: Sequence[TubeRows],
    way: tuple[int, int],
    given: dict[str, tuple[list[TubeRows], list[TubeRows]]],
    how: FitConfig,
    seeds: int,
    resamples: int,
    shown: tuple[int, int, Progress | None],
) -> Direction:
    scales = open_head().tubes
    source, target = way
    weights = {k: build_weights(len(pair[k].test), resamples) for k in way}
    # A feature that never changes in a country has no spread there: the floor of the event head's own fit.
    own = {k: (rows[k].x.mean(axis=0), rows[k].x.std(axis=0) + np.float32(1e-3)) for k in way}
    values: dict[str, dict[int, Floats]] = {}
    done, total, progress = shown
    for name, (labelled, unlabelled) in given.items():
        held: dict[int, list[Floats]] = {k: [] for k in way}
        mean, spread = own[source] if name == SCALES else (scales.mean, scales.spread)
        for seed in range(seeds):
            fitted = fit_tubes(labelled, mean, spread, how, seed=seed, unlabelled=unlabelled)
            for k in way:
                test = tests[k]
                if name == SCALES:
                    network = replace(fitted.network, mean=own[k][0], spread=own[k][1])
                    fitted = replace(fitted, network=network)
                held[k].append(test.measure(fitted.scores(test.rows.x, test.judged), weights[k][0], 0))
            done += 1
            if progress is not None:
                progress(done, total, f"{pair[source].name} to {pair[target].name}: {name}")
        values[name] = {k: np.stack(each) for k, each in held.items()}
    methods = {
        name: (
            Measured.of(held[target], weights[target][1], "share"),
            Measured.of(held[source], weights[source][1], "share"),
        )
        for name, held in values.items()
    }
    differences = {
        name: Measured.of(held[target] - values[SOURCE][target], weights[target][1], "difference")
        for name, held in values.items()
        if name != SOURCE
    }
    return Direction(
        pair[source].name, pair[target].name, methods, differences, tests[target].judged, tests[target].passed,
        len(pair[target].test),
    )  # fmt: skip


def _list_cells(study: CountriesStudy) -> list[dict[str, Any]]:
    """A row for each way of learning, direction and test."""
    return [
        {
            "source": each.source, "target": each.target, "method": name, "test": test, "map": held.value,
            "low": held.low, "high": held.high,
        }
        for each in study.directions
        for name, measured in each.methods.items()
        for test, held in zip((each.target, each.source), measured, strict=True)
    ]  # fmt: skip
