"""What a calibration found, as JSON, as text and as the files of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roadaware import __version__
from roadaware.config import digest
from roadaware.io.csv import format_csv
from roadaware.io.folders import add_marker
from roadaware.reports.page import report
from roadaware.reports.run_text import get_sort_key
from roadaware.reports.runs import digest_scores
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)
from roadaware.reports.text import capitalize_text

if TYPE_CHECKING:
    from roadaware.metrics.calibration import CalibrationConfig
    from roadaware.metrics.result import MetricResult
    from roadaware.metrics.scores import SampleScores


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
            bins[row["binning"]].append(_bin(row))
    return {
        "samples": rows[0]["n"],
        **{row["metric"]: row["value"] for row in rows},
        "bins": bins["adaptive"],
        "uniform_bins": bins["uniform"],
        "intervals": {row["metric"]: {unit: _ends(row, unit) for unit in _UNITS} for row in rows},
        "cautions": {row["metric"]: {u: row[f"caution_{u}"] for u in _UNITS} for row in rows},
    }


def _bin(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("n", "pedestrians", "confidence", "accuracy", "low", "high")
    return {
        **{name: row[name] for name in kept},
        "gap": row["accuracy"] - row["confidence"],
        "interval": _ends(row, "pedestrian"),
        "interval_video": _ends(row, "video"),
        "cautions": {unit: row[f"caution_{unit}"] for unit in _UNITS},
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
