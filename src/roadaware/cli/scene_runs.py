"""The run folder of a task on scenes: settings, numbers, the state behind them, what its pictures show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware import __version__
from roadaware.cli import runs
from roadaware.cli.folders import MARKER, with_marker
from roadaware.cli.output import json_text
from roadaware.cli.scene_tasks import SceneTask, config_class, state_class, task_named
from roadaware.errors import DamagedError, InputError, UsageError

if TYPE_CHECKING:
    import polars as pl

    from roadaware.analysis.compare_scenes import SceneComparison
    from roadaware.metrics.judged import SceneResult
    from roadaware.scenes.tables import Scenes

_SUMMARY, _COUNTS, _PICTURES, _PAGE = "summary.parquet", "counts.parquet", "pictures.json", "report.html"
_LEVEL = "instances_"
_TABLES = ("videos", "frames", "boxes", "labels", "tubes", "tube_labels", "relations", "queries", "sounds")
_KEPT = ("truth", "claims", "findings", "by", "routing", "printed")
_WORDS = ("text", "path", "splits")
"""Columns that change no metric."""


@dataclass(frozen=True, eq=False)
class SceneRun:
    """One evaluation of a task on scenes.

    Args:
        name: of the model, for tables and pictures.
        task: what was asked.
        config_name: how it was judged, by name.
        result: what came out.
        draws: bootstrap resamples.
        seed: of the resamples.
        facts: what else belongs to it, JSON-ready: truth, its digest, claims, findings.
        pictures: what the pictures of its report show, JSON-ready.
    """

    name: str
    task: SceneTask
    config_name: str
    result: SceneResult
    draws: int = 0
    seed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, Any]:
        """How it was judged, as plain data."""
        return self.result.config


def facts_of(run: SceneRun) -> dict[str, Any]:
    """What a machine wants to know of a run besides its numbers."""
    from roadaware.config import digest, from_dict

    whole = run.result.of_group(None)
    return {
        "schema": runs.SCHEMA,
        "name": run.name,
        "task": run.task.name,
        "config_name": run.config_name,
        "config_digest": digest(from_dict(config_class(run.task), run.config)),
        "draws": run.draws,
        "interval": runs.interval_name(run.draws),
        "seed": run.seed,
        "version": __version__,
        "undefined": {
            row["metric"]: row["reason"] for row in whole.iter_rows(named=True) if not row["valid"]
        },
        "counts": run.result.counts.to_dicts(),
        "notes": list(run.result.notes),
        **run.facts,
    }


def truth_digest(scenes: Scenes) -> str:
    """Sixteen hexadecimal digits over all of the truth that a metric can see, row by row."""
    import polars as pl

    total = hashlib.blake2b(digest_size=8)
    for name in _TABLES:
        frame = getattr(scenes, name)
        for column in sorted(set(frame.columns) - set(_WORDS)):
            held = frame[column]
            total.update(f"{name}.{column}:{len(held)}".encode())
            if held.dtype.is_numeric() or held.dtype == pl.Boolean:
                total.update(held.cast(pl.Float64).fill_null(float("nan")).to_numpy().tobytes())
            elif held.dtype in (pl.String, pl.Categorical, pl.Enum):
                total.update("\0".join(held.cast(pl.String).fill_null("\1").to_list()).encode())
    total.update(json.dumps(scenes.meta.vocabularies, sort_keys=True).encode())
    return total.hexdigest()


def files_of(run: SceneRun, page: str) -> dict[str, bytes]:
    """The files of a run by name.

    Args:
        run: what to write.
        page: the report, as HTML.
    """
    from roadaware.metrics.judged import as_json
    from roadaware.scenes.arrays import encode
    from roadaware.scenes.csv_text import csv_text

    result = run.result
    if result.state is None:
        raise TypeError("a run needs the state behind its numbers")
    levels = {f"{_LEVEL}{level}.parquet": runs.parquet(result.instances(level)) for level in result.levels}
    files = {
        "config.json": json_text({"metric": run.config}).encode(),
        _SUMMARY: runs.parquet(result.summary),
        "summary.csv": csv_text(result.summary).encode(),
        _COUNTS: runs.parquet(result.counts),
        "classes.parquet": runs.parquet(classes_of(result)),
        runs.SCENE_STATE: encode(*result.state.packed()),
        _PICTURES: json_text(run.pictures).encode(),
        **levels,
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    return with_marker(files, {**facts_of(run), "metrics": as_json(result)})


def classes_of(result: SceneResult) -> pl.DataFrame:
    """One row per class of the whole set: `label`, `n`, a column per metric, and the ends of its interval."""
    import polars as pl

    found: dict[str, dict[str, Any]] = {}
    columns: dict[str, Any] = {"label": pl.String, "n": pl.Int64}
    ends = {"": "value", "_low": "low_video", "_high": "high_video", "_caution": "caution_video"}
    for label, rows in result.classes().items():
        found[label] = {"label": label, "n": next(iter(rows.values()))["n"]}
        for metric, row in rows.items():
            for end, value in ends.items():
                found[label][f"{metric}{end}"] = row.get(value)
                columns[f"{metric}{end}"] = pl.String if end == "_caution" else pl.Float64
    return pl.DataFrame(list(found.values()), schema=columns)


def load(folder: Path) -> SceneRun:
    """The run in a folder.

    Raises:
        InputError: if there is no run.
        DamagedError: if a file is not the one that was written.
    """
    import polars as pl

    results, held = runs.contents(folder)
    try:
        task = task_named(str(results["task"]))
        return SceneRun(
            str(results["name"]),
            task,
            str(results["config_name"]),
            _result(task, results, held, str(folder)),
            runs.draws_in(results),
            int(results["seed"]),
            {fact: results[fact] for fact in _KEPT if fact in results},
            dict(json.loads(held[_PICTURES])),
        )
    except (
        *(AttributeError, KeyError, TypeError, ValueError, RecursionError),
        pl.exceptions.PolarsError,
    ) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=f"{folder}/{MARKER}", hint=runs.AGAIN
        ) from error


def compared(a: SceneRun, b: SceneRun, *, draws: int, seed: int, names: tuple[str, str]) -> SceneComparison:
    """How two runs of one task differ, metric by metric.

    Args:
        a: the first.
        b: the second.
        draws: resamples of videos, at least 1.
        seed: of the resamples.
        names: what the two are called.

    Raises:
        InputError: if they were judged on different truths.
        UsageError: if they are of different tasks, or were judged by different configs.
    """
    from roadaware.analysis.compare_scenes import compare

    if a.task is not b.task:
        raise UsageError(
            f"{names[0]} is a run of {a.task.name}, {names[1]} of {b.task.name}; compare two of a kind"
        )
    if a.config != b.config:
        differ = ", ".join(
            f"{field} ({a.config[field]} and {b.config[field]})"
            for field in a.config
            if a.config[field] != b.config[field]
        )
        raise UsageError(
            f"{names[0]} and {names[1]} were judged by different configs, {differ}; evaluate both with the "
            "same"
        )
    truths = [run.facts["truth"]["digest"] for run in (a, b)]
    if truths[0] != truths[1]:
        raise InputError(
            f"{names[0]} and {names[1]} were judged on different truths ({' and '.join(truths)})",
            hint="evaluate both on the same annotations, read in the same way",
        )
    if a.result.state is None or b.result.state is None:
        raise TypeError("a run needs the state behind its numbers")
    return compare(
        *(a.result.state, b.result.state, a.config),
        draws=draws,
        seed=seed,
        names=names,
        baselines=a.result.baselines,
    )


def _result(
    task: SceneTask, results: Mapping[str, Any], held: Mapping[str, bytes], where: str
) -> SceneResult:
    import polars as pl

    from roadaware.metrics.judged import SceneResult
    from roadaware.scenes.arrays import decode

    arrays, facts = decode(
        held[runs.SCENE_STATE], f"{where}/{runs.SCENE_STATE}", "the state of a run", runs.AGAIN
    )
    numbers = results["metrics"]
    levels = {
        name.removeprefix(_LEVEL).removesuffix(".parquet"): name for name in held if name.startswith(_LEVEL)
    }
    try:
        state = state_class(task).unpacked(arrays, facts)
    except InputError as error:
        raise DamagedError(error.message, where=f"{where}/{runs.SCENE_STATE}", hint=runs.AGAIN) from error
    return SceneResult(
        summary=pl.read_parquet(held[_SUMMARY]),
        counts=pl.read_parquet(held[_COUNTS]),
        config=dict(numbers["config"]),
        notes=tuple(map(str, results["notes"])),
        makers={level: _reading(held[name]) for level, name in levels.items()},
        state=state,
        left_out={str(what): int(n) for what, n in numbers["left_out"].items()},
        baselines={str(name): dict(values) for name, values in numbers["baselines"].items()},
        facts=dict(numbers["facts"]),
    )


def _reading(data: bytes) -> Callable[[], pl.DataFrame]:
    import polars as pl

    return lambda: pl.read_parquet(data)
