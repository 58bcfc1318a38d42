"""The run folder of a task on scenes: settings, numbers, the state behind them, what its images show."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware import __version__
from roadaware.analysis.compare import compare_scenes
from roadaware.analysis.evaluation.runs import SceneRun
from roadaware.analysis.scene_tasks import (
    CORNER_CASES,
    SceneTask,
    get_task,
    load_config_class,
    load_state_class,
)
from roadaware.config import digest, from_dict, to_dict
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.csv import format_csv
from roadaware.io.folders import MARKER, add_marker, encode_json
from roadaware.io.npz import decode, encode
from roadaware.io.parquet import read_parquet
from roadaware.metrics.metric_state import SCENE_COUNTS, SCENE_SUMMARY, SceneResult, as_json
from roadaware.reports import runs
from roadaware.reports.page import report
from roadaware.reports.runs import read_table
from roadaware.reports.text import capitalize_text

if TYPE_CHECKING:
    from roadaware.analysis.compare import SceneComparison
    from roadaware.reports.page import Section

_SUMMARY, _COUNTS, _PICTURES, _PAGE = "summary.parquet", "counts.parquet", "pictures.json", "report.html"
_LEVEL = "instances_"
_KEPT = ("truth", "predictions", "findings", "by", "routing", "printed")


def build_scene_run_facts(run: SceneRun) -> dict[str, Any]:
    """What a machine wants to know of a run besides its numbers."""
    whole = run.result.of_group(None)
    return {
        "schema": runs.SCHEMA,
        "name": run.name,
        "task": run.task.name,
        "config_name": run.config_name,
        "config_digest": digest(from_dict(load_config_class(run.task), run.config)),
        "resamples": run.resamples,
        "interval": runs.get_interval_method(run.resamples),
        "seed": run.seed,
        "version": __version__,
        "undefined": {
            row["metric"]: row["reason"] for row in whole.iter_rows(named=True) if not row["valid"]
        },
        "counts": run.result.counts.to_dicts(),
        "notes": list(run.result.notes),
        **run.facts,
    }


def build_scene_run_json(run: SceneRun) -> dict[str, Any]:
    """All of a run for machines: the metrics, and under `run` the rest."""
    return {**as_json(run.result), "run": build_scene_run_facts(run)}


def build_scene_run_files(run: SceneRun, page: str) -> dict[str, bytes]:
    """The files of a run by name.

    Args:
        run: what to write.
        page: the report, as HTML.
    """
    result = run.result
    if result.state is None:
        raise TypeError("a run needs the state behind its numbers")
    levels = {
        f"{_LEVEL}{level}.parquet": runs.encode_parquet(result.instances(level)) for level in result.levels
    }
    files = {
        "config.json": encode_json({"metric": run.config}).encode(),
        _SUMMARY: runs.encode_parquet(result.summary),
        "summary.csv": format_csv(result.summary).encode(),
        _COUNTS: runs.encode_parquet(result.counts),
        "classes.parquet": runs.encode_parquet(build_class_metrics(result)),
        runs.SCENE_STATE: encode(*result.state.packed()),
        _PICTURES: encode_json(run.pictures).encode(),
        **levels,
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    return add_marker(files, {**build_scene_run_facts(run), "metrics": as_json(result)})


def build_class_metrics(result: SceneResult) -> pl.DataFrame:
    """One row per class of the whole set: `label`, `n`, a column per metric, and the ends of its interval."""
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


def load_scene_run(folder: Path) -> SceneRun:
    """The run in a folder.

    Raises:
        InputError: if there is no run.
        DamagedError: if a file is not the one that was written.
    """
    results, held = runs.read_contents(folder)
    try:
        task = get_task(str(results["task"]))
        # What stands beside the numbers, as it is shown
        facts = {fact: results[fact] for fact in _KEPT if fact in results}
        truth, findings = facts["truth"], facts.get("findings", {})
        texts = [*truth.get("notes", []), *facts.get("predictions", []), *facts.get("lacking", []), *findings]
        counted = all(type(n) is int for n in findings.values())
        if not all(isinstance(text, str) for text in texts) or not counted:
            raise TypeError("expected what was judged and found, as text and counts")
        return SceneRun(
            str(results["name"]),
            task,
            str(results["config_name"]),
            _result(task, results, held, str(folder)),
            runs.get_resamples(results),
            int(results["seed"]),
            facts,
            dict(json.loads(held[_PICTURES])),
        )
    except (
        *(AttributeError, KeyError, TypeError, ValueError, RecursionError, UsageError),
        pl.exceptions.PolarsError,
    ) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=f"{folder}/{MARKER}", hint=runs.AGAIN
        ) from error


def compare_scene_runs(
    a: SceneRun, b: SceneRun, *, resamples: int, seed: int, names: tuple[str, str]
) -> SceneComparison:
    """How two runs of one task differ, metric by metric.

    Args:
        a: the first.
        b: the second.
        resamples: resamples of videos, at least 1.
        seed: of the resamples.
        names: what the two are called.

    Raises:
        InputError: if they were judged on different truths.
        UsageError: if they are of different tasks, or were judged by different configs.
    """
    if a.task is not b.task:
        raise UsageError(
            f"{names[0]} is a run of {a.task.name}, {names[1]} of {b.task.name}; compare two of a kind"
        )
    if a.config != b.config:
        differ = ", ".join(
            f"{field} ({a.config.get(field)} and {b.config.get(field)})"
            for field in {**a.config, **b.config}
            if a.config.get(field) != b.config.get(field)
        )
        raise UsageError(
            f"{names[0]} and {names[1]} were judged by different configs, {differ}; evaluate both with the "
            "same"
        )
    runs.check_same_truth(a.facts["truth"]["digest"], b.facts["truth"]["digest"], names)
    if a.result.state is None or b.result.state is None:
        raise TypeError("a run needs the state behind its numbers")
    return compare_scenes(
        *(a.result.state, b.result.state, a.config),
        resamples=resamples,
        seed=seed,
        names=names,
        baselines=a.result.baselines,
    )


def _result(
    task: SceneTask, results: Mapping[str, Any], held: Mapping[str, bytes], where: str
) -> SceneResult:
    arrays, facts = decode(
        held[runs.SCENE_STATE], f"{where}/{runs.SCENE_STATE}", "the state of a run", runs.AGAIN
    )
    numbers = results["metrics"]
    levels = {
        name.removeprefix(_LEVEL).removesuffix(".parquet"): name for name in held if name.startswith(_LEVEL)
    }
    try:
        state = load_state_class(task).unpacked(arrays, facts)
    except InputError as error:
        raise DamagedError(error.message, where=f"{where}/{runs.SCENE_STATE}", hint=runs.AGAIN) from error
    counts = read_table(held[_COUNTS], SCENE_COUNTS, filled=("items", "videos"))
    if counts["group"].head(1).to_list() != [None]:
        raise ValueError(f"expected a first row of the whole set in {_COUNTS}, found another")
    return SceneResult(
        summary=read_table(held[_SUMMARY], SCENE_SUMMARY, filled=("metric", "valid", "n")),
        counts=counts,
        # Fields that a version did not have yet stand at their defaults.
        config=to_dict(from_dict(load_config_class(task), dict(numbers["config"]))),
        notes=tuple(map(str, results["notes"])),
        makers={level: _reading(held[name]) for level, name in levels.items()},
        state=state,
        left_out={str(what): int(n) for what, n in numbers["left_out"].items()},
        baselines={str(name): dict(values) for name, values in numbers["baselines"].items()},
        facts=dict(numbers["facts"]),
    )


def _reading(data: bytes) -> Callable[[], pl.DataFrame]:
    return lambda: read_parquet(data)


# Pages of the tasks on scenes out of what a run holds.


def render_scene_runs(runs: Sequence[SceneRun], comparisons: Sequence[Any] = (), title: str = "") -> str:
    """One page for one or several runs, and how they compare.

    Args:
        runs: in reading order.
        comparisons: pairs of them.
        title: heading; the names of the runs where empty.
    """
    from roadaware.reports.scene_section import build_scene_comparison_section

    sections = [build_scene_run_section(run) for run in runs]
    sections += [build_scene_comparison_section(found) for found in comparisons]
    heading = title or ", ".join(dict.fromkeys(run.name for run in runs))
    about = dict.fromkeys(run.task.title for run in runs)
    return report(sections, title=heading, subtitle=", ".join(about))


def build_scene_run_section(run: SceneRun) -> Section:
    """One run as a section."""
    from roadaware.reports.corner_section import build_corner_section
    from roadaware.reports.scene_section import build_scene_section, check_scene_cases, plot_scene_cases

    try:
        check_scene_cases(run.pictures)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"the images of the run '{run.name}' cannot be drawn: {type(error).__name__} {error}"
        raise DamagedError(message, where=_PICTURES, hint=runs.AGAIN) from error

    if run.task is CORNER_CASES:
        title = capitalize_text(f"{run.name}: corner cases, config {run.config_name}")
        about = {**_about(run), **run.facts.get("routing", {})}
        printed = run.facts.get("printed", [])
        return build_corner_section(run.result, title=title, model=run.name, about=about, printed=printed)
    return build_scene_section(
        run.result,
        title=capitalize_text(f"{run.name}: {run.task.name}, config {run.config_name}"),
        model=run.name,
        items=run.task.items,
        labelled=run.task.labelled,
        about=_about(run),
        pictures=list(plot_scene_cases(run.pictures, run.name)),
    )


def render_scene_comparison(found: Any) -> str:
    """A page for two runs of one task."""
    from roadaware.reports.scene_section import build_scene_comparison_section

    return report([build_scene_comparison_section(found)], title=" against ".join(found.names))


def _about(run: SceneRun) -> dict[str, str]:
    row = run.result.counts.row(0, named=True)
    truth = run.facts.get("truth", {})
    about = {
        "predictions": ", ".join(run.facts.get("predictions", [])),
        "truth": f"{truth.get('dataset') or 'unnamed'} ({truth.get('digest', '')})",
        "judged": f"{row['videos']:,} videos, {row['items']:,} {run.task.items}",
        "resamples": f"{run.resamples:,}, seed {run.seed}",
    }
    found = {**run.facts.get("findings", {}), **{f"truth: {note}": 0 for note in truth.get("notes", [])}}
    found |= dict.fromkeys(run.facts.get("lacking", []), 0)
    if found:
        about["findings"] = "; ".join(f"{n:,} {what}" if n else what for what, n in found.items())
    return about
