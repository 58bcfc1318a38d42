"""Pages, JSON and the run folder of road events: settings, numbers, matches, violations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware import __version__
from roadaware.analysis.evaluation.runs import EventRun
from roadaware.analysis.event_results import (
    CALIBRATED_AT,
    Column,
    select_classes,
    select_headline,
    select_means,
)
from roadaware.analysis.worst_tubes import Strip
from roadaware.config import digest, from_dict, to_dict
from roadaware.errors import DamagedError, UsageError
from roadaware.io.folders import MARKER, add_marker, encode_json
from roadaware.io.json import escape_surrogates
from roadaware.io.parquet import read_parquet_columns
from roadaware.linking.config import LinkerConfig
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import (
    AV_ACTION,
    DETECTION_SUMMARY,
    FRAME,
    VIDEO,
    DetectionResult,
    as_json,
)
from roadaware.metrics.detection.matches import Matches, compute_pr_curve
from roadaware.metrics.tracking import is_fraction
from roadaware.protocols.tpami22 import SPLITS, match_printed
from roadaware.reports import runs, terminal
from roadaware.reports.bars import ClassCurve, Panel, plot_reliability
from roadaware.reports.clips import build_clip_files, read_clips
from roadaware.reports.event_tables import (
    build_calibration_block,
    build_printed_table,
    build_slice_calibration,
    build_streaming_table,
    build_tracking_table,
)
from roadaware.reports.page import Block, Mark, Pictures, Points, Table, TableCell, report
from roadaware.reports.runs import read_table
from roadaware.reports.text import capitalize_text, clip_label, format_count, format_interval, format_number

if TYPE_CHECKING:
    from roadaware.metrics.detection.matches import Matches
    from roadaware.reports.page import Section


Row = Mapping[str, Any]
_HEADLINE = 0.5
_MOST, _WIDTH = 15, 72
"""Requirements and classes that a terminal shows; page and JSON have all of them."""


def format_violations(found: Mapping[str, Any] | None, *, intervals: bool) -> str:
    """Violations by threshold, and by requirement and class at the headline threshold; nothing where none were judged.

    Args:
        found: as `RequirementResult.to_dict` has it.
        intervals: whether they were asked for.
    """
    if not found:
        return ""
    heading = f"requirements of {terminal.format_cell(found['file'])}: {found['judged']} judged"
    parts = ["\n".join([heading, *map(terminal.format_cell, found["notes"])])]
    for level in _list_levels(found):
        rows = []
        for threshold in _list_thresholds(found):
            of = {row["metric"]: row for row in _select(found, level, threshold) if row["name"] is None}
            share = _format_text_share(of["violating"], intervals)
            mean = of["violations"]["value"]
            broken = f"{of['requirements_violated']['count']} of {found['judged']}"
            items = format_count(of["violating"]["n"])
            rows.append([f"{threshold:g}", items, share, terminal.format_number(mean, 2), broken])
        head = [
            "threshold",
            level,
            "that violate, %",
            f"violations a {level[:-1] if level == 'tubes' else 'box'}",
        ]
        parts.append(terminal.format_table([*head, "requirements violated"], rows))
    at = get_headline_threshold(found)
    for level in _list_levels(found):
        for metric, name in (("clause", "requirement"), ("label", "predicted")):
            held = sorted(
                (row for row in _select(found, level, at) if row["metric"] == metric and row["count"]),
                key=lambda row: -row["count"],
            )
            rows = [
                [
                    clip_label(_name(found, row), _WIDTH),
                    format_count(row["count"]),
                    _format_text_share(row, intervals),
                ]
                for row in held[:_MOST]
            ]
            if rows:
                table = terminal.format_table([f"{name}, at {at:g}", level, "%"], rows)
                more = (
                    f"\n... and {len(held) - _MOST} more; --json lists all of them"
                    if len(held) > _MOST
                    else ""
                )
                parts.append(table + more)
    return "\n\n".join(parts)


def _format_text_share(row: Row, intervals: bool) -> str:
    if row["value"] is None:
        return "-"
    shown = terminal.format_number(100 * row["value"], 2)
    if not intervals or row["low"] is None or row["high"] is None:
        return shown
    return f"{shown} {terminal.format_interval(100 * row['low'], 100 * row['high'], 1, row['caution'])}"


def get_headline_threshold(found: Mapping[str, Any]) -> float:
    """The threshold whose requirements and classes are listed: 0.5, or the middle one where that was not judged."""
    thresholds = _list_thresholds(found)
    return _HEADLINE if _HEADLINE in thresholds else thresholds[len(thresholds) // 2]


def build_violation_blocks(found: Mapping[str, Any]) -> list[Block]:
    """Tables of violations: by threshold, then at the headline threshold by requirement and by class.

    Args:
        found: as `RequirementResult.to_dict` has it.
    """
    levels, at = _list_levels(found), get_headline_threshold(found)
    rows: list[tuple[TableCell, ...]] = []
    for threshold in _list_thresholds(found):
        cells: list[TableCell] = [f"{threshold:g}"]
        for level in levels:
            of = {row["metric"]: row for row in _select(found, level, threshold) if row["name"] is None}
            mean = of["violations"]["value"]
            cells += [format_count(of["violating"]["n"]), _share(of["violating"])]
            cells += [
                "–" if mean is None else format_number(mean, 2),
                str(of["requirements_violated"]["count"]),
            ]
        rows.append(tuple(cells))
    head = [
        title
        for level in levels
        for title in (level, f"{level} that violate, %", "violations each", "requirements violated")
    ]
    caption = (
        f"A label counts where its score is at least the threshold, a box where its own score is. {found['judged']} of "
        f"{found['requirements']} requirements of {found['file']} are judged."
    )
    title = "Violations of requirements"
    blocks: list[Block] = [
        Table(("threshold", *head), tuple(rows), "l" + "r" * len(head), title, caption),
    ]
    if found["notes"]:
        blocks.append(Points(tuple(found["notes"])))
    for level in levels:
        for metric, name in (("clause", "requirement"), ("label", "predicted")):
            held = [row for row in _select(found, level, at) if row["metric"] == metric and row["count"]]
            if held:
                blocks.append(
                    _build_table(found, level, name, at, sorted(held, key=lambda row: -row["count"]))
                )
    return blocks


def _build_table(found: Mapping[str, Any], level: str, name: str, at: float, held: Sequence[Row]) -> Table:
    """Violations of one level by requirement or by class."""
    rows = tuple((_name(found, row), format_count(row["count"]), _share(row)) for row in held)
    what = "requirement" if name == "requirement" else "class"
    caption = (
        f"Share of all {level} that violate it."
        if name == "requirement"
        else f"Share of the {level} with this label that violate some requirement."
    )
    title = f"Violations by {what}: {level} at {at:g}"
    return Table((name, level, "share, %"), rows, "lrr", title, caption)


def _share(row: Row) -> TableCell:
    if row["value"] is None:
        return Mark("undefined", "mute", "there are none")
    shown = format_number(100 * row["value"], 2)
    if row["low"] is None or row["high"] is None:
        return shown
    return Mark(shown, "", format_interval(100 * row["low"], 100 * row["high"], 1, row["caution"]))


def _name(found: Mapping[str, Any], row: Row) -> str:
    """A requirement in words with its place, or a label."""
    if row["metric"] != "clause":
        return str(row["name"])
    clause = found["clauses"][row["name"]]
    return f"line {clause['place'].rpartition(':')[2]}: {clause['words']}"


def _select(found: Mapping[str, Any], level: str, threshold: float) -> list[Row]:
    return [row for row in found["rows"] if row["level"] == level and row["threshold"] == threshold]


def _list_levels(found: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(row["level"] for row in found["rows"]))


def _list_thresholds(found: Mapping[str, Any]) -> list[float]:
    return sorted({row["threshold"] for row in found["rows"]})


_CLASSES, _INDEX, _STRIPS, _PAGE = runs.EVENT_ROWS, "matches.json", "tubes.json", "report.html"
_FAULTS = "faults.parquet"
_BESIDE = ("tracking", "streaming", "calibration", "requirements")
_MOST_TRUTH = 1 << 40
"""More true boxes than any video has."""
_FACTS = (
    *("split", "truth", "predictions", "dropped", "findings", "linker", "config_name"),
    *("tracking", "tracked", "streaming", "calibration", "requirements"),
)


def build_event_run_facts(run: EventRun) -> dict[str, Any]:
    """What a machine wants to know of a run besides its numbers."""
    return {
        "schema": runs.SCHEMA,
        "name": run.name,
        "task": runs.EVENTS,
        "dataset": run.dataset,
        "config": to_dict(run.config),
        "config_digest": digest(run.config),
        "data_digest": digest_matches(run.matches),
        "resamples": run.resamples,
        "interval": runs.get_interval_method(run.resamples),
        "seed": run.seed,
        "version": __version__,
        "notes": list(run.notes),
        **run.facts,
    }


def digest_matches(matches: Mapping[str, Matches]) -> str:
    """Sixteen hexadecimal digits over what was predicted and what is true, as far as it was judged."""
    total = hashlib.blake2b(digest_size=8)
    for level, held in sorted(matches.items()):
        ranked = held.ranked()
        names = [level, *map(str, held.thresholds), *("\0".join(c) for c in held.classes), *held.videos]
        total.update("\1".join(names).encode())
        for array in (ranked.cls, ranked.score, ranked.video, ranked.hit, ranked.n_truth):
            total.update(array.tobytes())
    return total.hexdigest()


def collect_metrics(summary: pl.DataFrame) -> dict[str, float | None]:
    """Every metric of the whole set by name, in [0, 1]; undefined is None."""
    rows = summary.filter(pl.col("group").is_null())
    return dict(zip(rows["metric"].to_list(), rows["value"].to_list(), strict=True))


def build_event_run_files(run: EventRun, page: str) -> dict[str, bytes]:
    """The files of a run by name.

    Args:
        run: what to write.
        page: the report, as HTML.
    """
    facts = build_event_run_facts(run)
    config = {"metric": facts["config"], "linker": run.facts.get("linker")}
    files = {
        "config.json": encode_json(config).encode(),
        _CLASSES: runs.encode_parquet(run.summary),
        _STRIPS: encode_json([strip.as_dict() for strip in run.strips]).encode(),
        **({_FAULTS: runs.encode_parquet(run.faults)} if run.faults is not None else {}),
        **_match_files(run.matches),
        **build_clip_files(run.clips),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    return add_marker(files, {**facts, "metrics": build_metrics_json(run)})


def load_event_run(folder: Path) -> EventRun:
    """The run in a folder.

    Raises:
        InputError: if there is no run.
        DamagedError: if a file is not the one that was written.
    """
    results, held = runs.read_contents(folder)
    try:
        strips = tuple(Strip.from_dict(item) for item in json.loads(held[_STRIPS]))
        return EventRun(
            str(results["name"]),
            str(results["dataset"]),
            from_dict(DetectionConfig, results["config"]),
            read_table(
                held[_CLASSES],
                DETECTION_SUMMARY,
                filled=("metric", "valid", "n", "kind"),
                among={"level": (FRAME, VIDEO, AV_ACTION)},
            ),
            dict(_each_match(held)),
            strips,
            runs.get_resamples(results),
            int(results["seed"]),
            _check_facts({fact: results[fact] for fact in _FACTS if fact in results}),
            tuple(map(str, results["notes"])),
            _read_faults(held[_FAULTS]) if _FAULTS in held else None,
            clips=read_clips(held),
        )
    except (AttributeError, KeyError, TypeError, ValueError, UsageError, pl.exceptions.PolarsError) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=f"{folder}/{MARKER}", hint=runs.AGAIN
        ) from error


def _check_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """What stands beside the numbers of a run, as it is shown.

    Raises:
        KeyError, TypeError, ValueError, UsageError: if something is missing or of a wrong kind.
    """
    truth = facts["truth"]
    right = [
        _are(str, truth["dataset"], *facts["predictions"], *truth.get("native_kinds", {}).values()),
        _are(int, truth["videos"], truth["boxes"], *facts["dropped"].values()),
        _are(str | None, facts["split"], facts["config_name"], facts.get("tracked")),
        _are(dict | None, *(facts.get(name) for name in ("linker", "findings", "tracking", "streaming"))),
    ]
    for row in facts.get("calibration") or []:
        right.append(_are(str, row["group"], row["kind"], row["of"]) and _are(int, row["predictions"]))
        right.append(_are(int | float | None, row["mean_score"], row["precision"], row["ece"]))
    for row in (facts.get("tracking") or {}).values():
        right.append(_are(int | float | None, row["value"], row["low"], row["high"]))
        right.append(_are(str | None, row.get("caution")))
    if streaming := facts.get("streaming"):
        means = [streaming["frame"], *streaming["video"].values()]
        kinds = [found for level in means for kinds in level.values() for found in kinds.values()]
        right.append(_are(int | float | None, *(found["mean"] for found in kinds)))
        right.append(_are(int | float, streaming["clock"]["latency_s"]))
        right.append(_are(str, streaming["clock"]["scheduler"]))
    if held := facts.get("requirements"):
        right.append(
            _are(str, held["file"], *held["notes"]) and _are(int, held["requirements"], held["judged"])
        )
        right.append(_are(str, *(text for each in held["clauses"].values() for text in each.values())))
        for row in held["rows"]:
            right.append(_are(str, row["level"], row["metric"]) and _are(int, row["n"], row["count"]))
            right.append(
                _are(int | float, row["threshold"]) and _are(str | None, row["name"], row["caution"])
            )
            right.append(_are(int | float | None, row["value"], row["low"], row["high"]))
            right.append(row["metric"] != "clause" or row["name"] in held["clauses"])
    if facts.get("linker"):
        from_dict(LinkerConfig, facts["linker"])
    if not all(right):
        raise ValueError("expected what was judged, as text and counts")
    return facts


def _are(kind: Any, *values: Any) -> bool:
    """Whether all values are of a kind; True and False are no numbers."""
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


def _match_files(matches: Mapping[str, Matches]) -> dict[str, bytes]:
    """Matches as Parquet, ranked, so that the order of equal scores need not be kept beside them."""
    files, index = {}, {}
    for level, held in matches.items():
        ranked = held.ranked()
        marks = {f"hit_{k}": ranked.hit[:, k] for k in range(len(held.thresholds))}
        if ranked.ignored is not None:
            marks |= {f"ignored_{k}": ranked.ignored[:, k] for k in range(len(held.thresholds))}
        rows = pl.DataFrame({"cls": ranked.cls, "score": ranked.score, "video": ranked.video, **marks})
        video, cls = np.nonzero(held.n_truth)
        truth = pl.DataFrame({"video": video, "cls": cls, "n": held.n_truth[video, cls]})
        name = level.replace(":", "_")
        files[f"matches_{name}.parquet"], files[f"truth_{name}.parquet"] = map(
            runs.encode_parquet, (rows, truth)
        )
        index[level] = {
            "thresholds": list(held.thresholds),
            "classes": [list(each) for each in held.classes],
            "videos": list(held.videos),
        }
    return {_INDEX: encode_json(index).encode(), **files}


def _read_faults(data: bytes) -> pl.DataFrame:
    """What mending each kind of fault would gain."""
    words = dict.fromkeys(("level", "kind", "fault", "meaning"), pl.String)
    numbers = dict.fromkeys(("map", "mended_map", "gain", "threshold"), pl.Float64)
    columns = {**words, "predictions": pl.Int64, **numbers}
    filled = (*words, "predictions", "threshold")
    table = read_table(data, columns, filled=filled, among={"level": ("frame", "video")})
    kinds, faults = (pl.col(name).n_unique() for name in ("kind", "fault"))
    cells = table.group_by("level").agg(due=kinds * faults, held=pl.struct("kind", "fault").n_unique())
    if len(table) != cells["due"].sum() or not cells["due"].equals(cells["held"]):
        raise ValueError("expected each fault once for each kind of a level, found others")
    return table


def _each_match(held: Mapping[str, bytes]) -> Iterator[tuple[str, Matches]]:
    for level, named in json.loads(held[_INDEX]).items():
        name = level.replace(":", "_")
        # Names that no text in UTF-8 can hold are in no run of ours, and no table takes them.
        classes = tuple(
            (escape_surrogates(str(kind)), escape_surrogates(str(label))) for kind, label in named["classes"]
        )
        videos = tuple(escape_surrogates(str(video)) for video in named["videos"])
        thresholds = tuple(map(float, named["thresholds"]))
        sizes = {"cls": len(classes), "video": len(videos)}
        data = held[f"matches_{name}.parquet"]
        kinds = ("hit", "ignored") if "ignored_0" in read_parquet_columns(data) else ("hit",)
        marks = {f"{kind}_{k}": pl.Boolean for kind in kinds for k in range(len(thresholds))}
        columns = {"cls": pl.Int32, "score": pl.Float64, "video": pl.Int32, **marks}
        rows = read_table(data, columns, filled=columns, below=sizes)
        truth = read_table(
            held[f"truth_{name}.parquet"],
            dict.fromkeys(("video", "cls", "n"), pl.Int64),
            below={**sizes, "n": _MOST_TRUTH},
        )
        n_truth = np.zeros((len(videos), len(classes)), dtype=np.int64)
        n_truth[truth["video"].to_numpy(), truth["cls"].to_numpy()] = truth["n"].to_numpy()
        ignored = _marks(rows, "ignored", len(thresholds)) if "ignored" in kinds else None
        yield (
            level,
            Matches(
                thresholds,
                classes,
                videos,
                rows["cls"].to_numpy(),
                rows["score"].to_numpy(),
                rows["video"].to_numpy(),
                np.arange(len(rows), dtype=np.int64),
                _marks(rows, "hit", len(thresholds)),
                n_truth,
                ignored,
            ),
        )


def _marks(rows: pl.DataFrame, name: str, count: int) -> Any:
    marks = [rows[f"{name}_{k}"].to_numpy() for k in range(count)]
    return np.stack(marks, axis=1) if marks else np.zeros((len(rows), 0), dtype=np.bool_)


def build_detection_result(run: EventRun) -> DetectionResult:
    """A run as the result that it came from, without its instances."""
    return DetectionResult(run.summary, pl.DataFrame(), to_dict(run.config), run.notes, matches=run.matches)


def build_metrics_json(run: EventRun) -> dict[str, Any]:
    """The metrics as JSON: level, threshold and kind to mean and classes, in per cent.

    A kind that the dataset's own files call otherwise stands there under both names.
    """
    return as_json(build_detection_result(run), run.facts.get("truth", {}).get("native_kinds", {}))


def build_event_run_json(run: EventRun) -> dict[str, Any]:
    """All of a run for machines: the metrics, what stands beside them in per cent, and under `run` the rest."""
    facts = build_event_run_facts(run)
    beside = {name: facts[name] for name in _BESIDE if facts.get(name) is not None}
    if "tracking" in beside:
        beside["tracking"] = {
            metric: row | {key: _times(row[key]) for key in ("value", "low", "high")}
            if is_fraction(metric)
            else row
            for metric, row in beside["tracking"].items()
        }
    if "requirements" in beside:
        held = beside["requirements"]
        beside["requirements"] = held | {"rows": [_in_per_cent(row) for row in held["rows"]]}
    groups = {}
    for name in run.summary["group"].drop_nulls().unique(maintain_order=True).to_list():
        whole = run.summary.filter(pl.col("group") == name).with_columns(group=pl.lit(None, pl.String))
        groups[str(name)] = build_metrics_json(replace(run, summary=whole))
    others = {name: value for name, value in facts.items() if name not in _BESIDE}
    return {**build_metrics_json(run), **beside, "run": {**others, "groups": groups}}


def _in_per_cent(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of violations with its share in per cent; a mean number of violations stays."""
    if row["metric"] == "violations":
        return dict(row)
    return {**row, **{key: _times(row[key]) for key in ("value", "low", "high")}}


def _times(value: float | None) -> float | None:
    return None if value is None else 100 * value


# What stands beside the average precision of road events: tracks, streaming, scores by slice.


def build_streaming_rows(
    summary: pl.DataFrame, found: Mapping[str, Any]
) -> tuple[list[str], list[tuple[str, list[float | None]]]]:
    """The headline means, offline and streaming beside each other.

    Args:
        summary: the offline metrics.
        found: what `evaluate_streaming` gave.

    Returns:
        what the columns hold, and for each kind its values in per cent.
    """
    grid = select_means(summary)
    columns = select_headline(grid.columns)
    rows = []
    for kind in grid.rows:
        values: list[float | None] = []
        for column in columns:
            offline = grid.cells.get((kind, column))
            level = found["frame"] if column.level == FRAME else found["video"].get(column.overlap, {})
            then = level.get(column.threshold, {}).get(kind, {}).get("mean")
            values += [None if offline is None or offline.value is None else 100 * offline.value, then]
        rows.append((kind, values))
    return [name for column in columns for name in (column.words, "streaming")], rows


def describe_clock(found: Mapping[str, Any]) -> str:
    """The clock in words."""
    clock = found["clock"]
    return f"offline, and streaming at {clock['latency_s']:g} s a frame ({clock['scheduler']})"


_CURVES = (("frame", "frame", 0.5), ("video:stiou", "video", 0.2))
_RELIABLE = ("agentness", "agent", "action")


def render_event_runs(runs: Sequence[EventRun], comparisons: Sequence[Any] = (), title: str = "") -> str:
    """One page for one or several runs, and how they compare.

    Args:
        runs: in reading order.
        comparisons: pairs of them.
        title: heading; the names of the runs where empty.
    """
    from roadaware.reports.events import build_event_comparison_section

    sections = [build_event_run_section(run) for run in runs]
    sections += [build_event_comparison_section(found) for found in comparisons]
    heading = title or ", ".join(run.name for run in runs)
    about = sorted({f"{run.dataset} {run.facts.get('split') or ''}".strip() for run in runs})
    return report(sections, title=heading, subtitle=", ".join(["road events", *about]))


def build_event_run_section(run: EventRun, curves: Sequence[str] | None = None) -> Section:
    """One run as a section.

    Args:
        run: what to show.
        curves: kinds of labels with a curve for each class; all of them where None.
    """
    from roadaware.reports.events import build_error_blocks, build_event_section

    facts, more = run.facts, list[Block]()
    printed = SPLITS if run.dataset == "road" else ("test",)
    if facts.get("split") in printed and facts.get("truth", {}).get("printed"):
        rows = match_printed(build_detection_result(run), str(facts["split"]), dataset=run.dataset)
        more += [build_printed_table(rows)] if len(rows) else []
    if facts.get("tracking"):
        more.append(build_tracking_table(facts["tracking"], str(facts.get("tracked", ""))))
    if streaming := facts.get("streaming"):
        names, values = build_streaming_rows(run.summary, streaming)
        more.append(build_streaming_table(names, values, describe_clock(streaming)))
    if violations := facts.get("requirements"):
        more += build_violation_blocks(violations)
    more += [] if run.faults is None else build_error_blocks(run.faults)

    named = facts.get("config_name")
    title = f"{run.name}: {run.dataset}" + (f", config {named}" if named else "")
    # The kinds with more than one class at any level, in their order.
    matches = run.matches
    found = [kind for level, *_ in _CURVES if level in matches for kind in matches[level].kinds]
    drawn = [kind for kind in tuple(dict.fromkeys(found)) if curves is None or kind in curves]
    return build_event_section(
        run.summary,
        title=capitalize_text(title),
        model=run.name,
        config=to_dict(run.config),
        about=_about(run),
        linker=facts.get("linker"),
        panels={kind: list(_panels(run.matches, run.summary, kind)) for kind in drawn},
        strips=run.strips,
        clips=run.clips,
        more=[*more, *_reliability(run)],
        notes=run.notes,
    )


def render_event_comparison(found: Any) -> str:
    """A page for two runs of road events."""
    from roadaware.reports.events import build_event_comparison_section

    return report([build_event_comparison_section(found)], title=" against ".join(found.names))


def _about(run: EventRun) -> dict[str, str]:
    facts, truth = run.facts, run.facts.get("truth", {})
    about = {
        "predictions": ", ".join(facts.get("predictions", [])),
        "truth": f"{truth.get('dataset', run.dataset)}, split {facts.get('split') or 'all'}",
        "judged": f"{truth.get('videos', 0):,} videos, {truth.get('boxes', 0):,} true boxes",
        "data digest": build_event_run_facts(run)["data_digest"],
        "resamples": str(run.resamples),
        "seed": str(run.seed),
    }
    dropped = facts.get("dropped") or {}
    return about | (
        {"left out": "; ".join(f"{n:,} {what}" for what, n in dropped.items())} if dropped else {}
    )


def _panels(matches: Mapping[str, Matches], summary: pl.DataFrame, kind: str) -> Iterator[Panel]:
    """The curves of each class of a kind, boxes and tubes together."""
    values = select_classes(summary, kind).cells
    levels = [(level, matches[name], at) for name, level, at in _CURVES if name in matches]
    labels = dict.fromkeys(label for _, held, _ in levels for of, label in held.classes if of == kind)
    for label in labels:
        drawn, n_truth = [], 0
        for level, held, threshold in levels:
            if (kind, label) in held.classes and threshold in held.thresholds:
                points = compute_pr_curve(held, kind, label, threshold)
                n_truth = n_truth or points.n_truth
                column = Column(level, "stiou" if level == "video" else "", f"{threshold:g}")
                value = values.get((label, column))
                drawn.append(
                    ClassCurve(column.words, points.precision, points.recall, value.value if value else None)
                )
        yield Panel(label, n_truth, tuple(drawn))


def _reliability(run: EventRun) -> list[Block]:
    """Whether the scores of boxes and tubes mean what they say, for the kinds that have one box each."""
    from roadaware.metrics.detection.calibration import build_calibration_table, score_reliability

    images, tables = [], []
    for name, words, threshold in CALIBRATED_AT:
        held = run.matches.get(name)
        if held is None or threshold not in held.thresholds or not len(held):
            continue
        tables.append((words, build_calibration_table(held, threshold)))
        for kind in (kind for kind in _RELIABLE if kind in held.kinds):
            found = score_reliability(held, threshold, kind)
            if found is not None:
                image = plot_reliability(found.confidence, found.accuracy, found.count)
                title = f"Reliability of scores: {kind}, {words}"
                images.append(type(image)(title, image.caption, image.figure))
    blocks: list[Block] = [build_calibration_block(words, table) for words, table in tables]
    for _, of, _ in CALIBRATED_AT:
        rows = [row for row in run.facts.get("calibration") or [] if row["of"] == of]
        blocks += [build_slice_calibration(of, rows)] if rows else []
    return [*blocks, Pictures(tuple(images), "Are the scores right?")] if images else blocks
