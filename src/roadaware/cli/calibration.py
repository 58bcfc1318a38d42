"""`roadaware calibration`: do scores mean what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

from roadaware import __version__
from roadaware.analysis.evaluation.pedestrians import COLUMNS, assign_scenarios
from roadaware.cli import console, outputs
from roadaware.cli.evaluate import NO_SAMPLES, SampleOptions
from roadaware.cli.options import (
    USUAL,
    Common,
    ConfigName,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    validate_range,
)
from roadaware.cli.results import write_result
from roadaware.config import digest, to_dict
from roadaware.errors import InputError
from roadaware.formats.score_tables import read_labels
from roadaware.io.csv import format_csv
from roadaware.io.folders import add_marker
from roadaware.reports import runs
from roadaware.reports.page import report
from roadaware.reports.run_pages import get_sort_key
from roadaware.reports.runs import digest_scores
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)
from roadaware.reports.text import capitalize_text
from roadaware.scenes.factors import classify_by_edges

if TYPE_CHECKING:
    import numpy.typing as npt

    from roadaware.analysis.evaluation.pedestrians import MatchedScores
    from roadaware.metrics.calibration import CalibrationConfig
    from roadaware.metrics.metric_state import MetricResult
    from roadaware.metrics.scores import SampleScores

_BY = "Also by these: columns of SAMPLES, or scenarios of the protocol (scale, state, speed, signal ...)."
_CONFIG = "Adaptive bins as published (`reference`), or corrected (`default`)."
_FOLDER = "Write results, bins as a table and a report with the diagrams here."
_WIDTHS = "How many bins of equal width stand beside the adaptive ones."
_SETS = (
    "Also sets of labels that promise to hold the true one this often, such as 0.9, and how often they do."
)
MOST_LABELS = 24
TTE_EDGES_FRAMES = (15, 30, 45, 60, 75, 90)
# The rate of JAAD and PIE.
FRAMES_PER_SECOND = 30.0


def calibration(
    scores: Annotated[Path, Parameter(help="The model's output: probabilities, one row per sample.")],
    /,
    *,
    source: SampleOptions = NO_SAMPLES,
    config: Annotated[ConfigName, Parameter(help=_CONFIG)] = "default",
    by: Annotated[list[str] | None, Parameter(help=_BY), Several] = None,
    uniform_bins: Annotated[int, Parameter(help=_WIDTHS, validator=validate_range(1, 1000))] = 10,
    conformal: Annotated[float | None, Parameter(help=_SETS)] = None,
    draws: Resamples = 1000,
    seed: Seed = 0,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Ask whether a pedestrian model's probabilities mean what they say: is 0.9 right nine times of ten?

    Needs SCORES, a csv file without header with one row of probabilities per sample (1 number, the
    probability of crossing; or one per class, which sum to 1), and the samples: a csv file with a header
    and the columns truth, pedestrian and tte_frames (and video, for intervals over videos), or a protocol
    on a dataset. Rows are matched by their order. Either may be a Parquet file with the same columns.
    Without --task, 1 score a sample is action, 3 are intention, 12 are risk.

    A sample's confidence is its largest probability. Samples are put into bins by confidence, and in each
    bin the mean confidence is held against the share of right answers. ECE is the mean gap, weighted by
    the samples of a bin; MCE is the largest gap; both are best at 0. Adaptive bins hold more samples where
    confidences are dense. `ece_if_calibrated` is what a perfectly calibrated model would show on so few
    pedestrians: an ECE near it is no evidence of a fault. NLL and the Brier score need no bins and punish
    wrong answers too. Everything is given for all samples, by time to event, and --by more.

    For example:

        roadaware calibration model.csv --samples samples.csv --json out.json

        roadaware calibration model.csv --samples samples.csv \\
            --by weather --conformal 0.9 -o runs/calibration

        roadaware calibration pf_action_jaad.csv --protocol jaad-action@iv2024 \\
            --data JAAD-JAAD_2.0.zip --config reference --by scale state
    """
    from roadaware.metrics.calibration import CalibrationConfig, evaluate

    held, asked = source.match(scores, config, any_task=True)
    groupings = _groupings(held, source.samples, by or [], config)
    likely = {columns: task for task, columns in COLUMNS.items()}
    facts = {
        "name": scores.stem,
        "task": asked or likely.get(held.state.scores.shape[1]),
        "protocol": source.protocol,
        "config_name": config,
        "clipped": held.clipped,
        **{"draws": draws, "interval": runs.get_interval_method(draws), "seed": seed},
        "conformal": None if conformal is None else _sets(held, conformal, seed),
    }
    named = CalibrationConfig.reference() if config == "reference" else CalibrationConfig.default()
    chosen = replace(named, uniform_bins=uniform_bins)
    times, seconds = _times(held)
    try:
        with console.log_step("resampling" if draws else "binning"):
            result = evaluate(held.state, chosen, draws=draws, seed=seed, groupings=[*times, *groupings])
    except InputError as error:
        raise InputError(error.message, where=error.where or str(scores), hint=error.hint) from error
    found = as_json(held.state, result, chosen, facts)
    if folder is not None:
        write_result(folder, build_calibration_files(found, result, seconds), overwrite=overwrite)
    return Outcome(as_text(found), found)


def _sets(held: MatchedScores, level: float, seed: int) -> dict[str, Any]:
    """How sets of both rules did, JSON-ready."""
    from roadaware.metrics.calibration import HALVINGS, evaluate_coverage

    found = evaluate_coverage(held.state, level, seed=seed)
    return {
        "level": level,
        "halvings": HALVINGS,
        "rules": {name: to_dict(one) for name, one in found.items()},
    }


def _times(held: MatchedScores) -> tuple[list[npt.NDArray[np.object_]], dict[str, float]]:
    """The band of time to event of each sample, where there are two, and the mean seconds of each band."""
    tte = held.state.tte_frames
    if tte is None or not len(tte):
        return [], {}
    labels = np.array(
        [f"tte={name}" for name in classify_by_edges(tte.astype(float), TTE_EDGES_FRAMES)], dtype=object
    )
    names = sorted(set(labels.tolist()))
    if len(names) < 2:
        return [], {}
    return [labels], {name: float(tte[labels == name].mean()) / FRAMES_PER_SECOND for name in names}


def _groupings(
    held: MatchedScores, samples: Path | None, by: list[str], config: ConfigName
) -> list[npt.NDArray[np.object_]]:
    """The scenario of each sample, factor by factor."""
    if held.scenes is not None:
        return [np.array(assign_scenarios(held.scenes, [factor], config), dtype=object) for factor in by]
    found = []
    for column in by if samples is not None else []:
        values = read_labels(Path(samples or ""), column, MOST_LABELS)
        found.append(np.array([f"{column}={value}" for value in values], dtype=object))
    return found


SCHEMA = 1
_UNITS = ("pedestrian", "video")


def as_json(
    state: SampleScores, result: MetricResult, config: CalibrationConfig, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Errors, bins and slices, JSON-ready; what is undefined is None.

    Args:
        state: the samples.
        result: what was found.
        config: how.
        facts: what else belongs to it.
    """
    return {
        "schema": SCHEMA,
        **facts,
        **_of_group(result, None),
        "undefined": {
            row["metric"]: row["reason"]
            for row in result.of_group(None).iter_rows(named=True)
            if not row["valid"]
        },
        "pedestrians": len(set(state.pedestrian.tolist())),
        "classes": [
            {"class": row["class"], "samples": row["samples"], "pedestrians": row["pedestrians"]}
            for row in result.counts.iter_rows(named=True)
            if row["group"] is None
        ],
        "groups": {group: _of_group(result, group) for group in result.groups},
        "config": result.config,
        "config_digest": digest(config),
        "data_digest": digest_scores(state),
        "version": __version__,
        "notes": list(result.notes),
    }


def _of_group(result: MetricResult, group: str | None) -> dict[str, Any]:
    """Metrics, intervals and bins of one group."""
    rows = list(result.of_group(group).iter_rows(named=True))
    bins: dict[str, list[dict[str, Any]]] = {"adaptive": [], "uniform": []}
    for row in result.instances("bin").iter_rows(named=True):
        if row["group"] == group:
            kept = ("n", "pedestrians", "confidence", "accuracy", "low", "high")
            bins[row["binning"]].append(
                {
                    **{name: row[name] for name in kept},
                    "gap": row["accuracy"] - row["confidence"],
                    "interval": _ends(row, "pedestrian"),
                    "interval_video": _ends(row, "video"),
                    "cautions": {unit: row[f"caution_{unit}"] for unit in _UNITS},
                }
            )
    return {
        "samples": rows[0]["n"],
        **{row["metric"]: row["value"] for row in rows},
        "bins": bins["adaptive"],
        "uniform_bins": bins["uniform"],
        "intervals": {row["metric"]: {unit: _ends(row, unit) for unit in _UNITS} for row in rows},
        "cautions": {row["metric"]: {u: row[f"caution_{u}"] for u in _UNITS} for row in rows},
    }


def _ends(row: Mapping[str, Any], unit: str) -> list[float] | None:
    return None if row[f"low_{unit}"] is None else [row[f"low_{unit}"], row[f"high_{unit}"]]


def as_text(found: Mapping[str, Any]) -> str:
    """Errors with intervals, adaptive bins and slices as tables."""
    head = (
        f"{format_cell(found['name'])}: {found['task'] or 'classes'}, {found['samples']} samples of "
        f"{found['pedestrians']} pedestrians, config {found['config_name']}"
    )
    notes = [f"note: {format_cell(note)}" for note in found["notes"]]
    names = list(found["intervals"])
    rows = [
        [name, format_number(found[name], 4), *(_format_interval(found, name, u) for u in _UNITS)]
        for name in names
    ]
    parts = [
        "\n".join([head, *notes]),
        format_table(["metric", "value", "95 % by pedestrian", "95 % by video"], rows),
    ]
    if found["undefined"]:
        parts.append(
            "undefined:\n" + format_bullets(f"{name}: {why}" for name, why in found["undefined"].items())
        )
    if found["bins"]:
        parts.append(_bins(found))
    if found["conformal"]:
        parts.append(_format_conformal_sets(found["conformal"]))
    if found["groups"]:
        parts.append(_slices(found["groups"]))
    return "\n\n".join(parts)


def _bins(found: Mapping[str, Any]) -> str:
    ends = [one["interval"] or (None, None) for one in found["bins"]]
    rows = [
        [
            f"{one['low']:.3f} to {one['high']:.3f}",
            one["n"],
            format_number(one["confidence"]),
            format_number(one["accuracy"]),
            f"{one['gap']:+.3f}",
            format_interval(low, high, caution=one["cautions"]["pedestrian"]),
        ]
        for one, (low, high) in zip(found["bins"], ends, strict=True)
    ]
    return format_table(
        ["adaptive bin", "samples", "confidence", "accuracy", "gap", "95 % of accuracy"], rows
    )


def _format_conformal_sets(found: Mapping[str, Any]) -> str:
    head = (
        f"conformal sets that promise {found['level']:g}, thresholds from one half of the pedestrians "
        f"and sets of the other, {found['halvings']} times"
    )
    rows = [
        [
            rule,
            format_number(one["coverage"]),
            f"[{one['low']:.3f}, {one['high']:.3f}]",
            format_number(one["size"]),
            format_number(one["empty"]),
            format_number(one["single"]),
        ]
        for rule, one in found["rules"].items()
    ]
    return (
        head + "\n" + format_table(["rule", "coverage", "95 % of halves", "labels", "empty", "single"], rows)
    )


def _slices(groups: Mapping[str, Any]) -> str:
    rows = [
        [
            group,
            held["samples"],
            format_number(held["ece"]),
            _format_interval(held, "ece", "pedestrian"),
            format_number(held["ece_if_calibrated"]),
            format_number(held["overconfidence"]),
            _format_interval(held, "overconfidence", "pedestrian"),
        ]
        for group, held in sorted(groups.items(), key=lambda item: get_sort_key(item[0]))
    ]
    head = ["slice", "samples", "ece", "95 % by pedestrian", "if calibrated", "overconfidence"]
    return format_table([*head, "95 % by pedestrian"], rows)


def _format_interval(held: Mapping[str, Any], metric: str, unit: str) -> str:
    low, high = held["intervals"][metric][unit] or (None, None)
    return format_interval(low, high, 3, held["cautions"][metric][unit])


def build_calibration_files(
    found: Mapping[str, Any], result: MetricResult, seconds: Mapping[str, float]
) -> dict[str, bytes]:
    """The files of a folder by name: results, bins as csv, report.

    Args:
        found: what `as_json` gave.
        result: what was found.
        seconds: group to its mean time to event, for the groups of time.
    """
    from roadaware.reports.calibration import build_calibration_section

    about = {
        "samples": f"{found['samples']:,} of {found['pedestrians']:,} pedestrians",
        "data digest": found["data_digest"],
        "resamples": str(found["draws"]),
        "seed": str(found["seed"]),
    }
    title = capitalize_text(f"{found['name']}: calibration, config {found['config_name']}")
    section = build_calibration_section(
        result, title=title, model=found["name"], about=about, seconds=seconds
    )
    page = report([section], title=f"Calibration of {found['name']}", subtitle="pedestrians")
    return add_marker(
        {
            "bins.csv": format_csv(result.instances("bin")).encode(),
            "report.html": page.encode("utf-8", errors="backslashreplace"),
        },
        found,
    )
