"""The run folder of road events: settings, numbers, and the matches that `compare` and `report` need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware import __version__
from roadaware.analysis.evaluation.runs import EventRun
from roadaware.analysis.worst_tubes import Strip
from roadaware.config import digest, from_dict, to_dict
from roadaware.errors import DamagedError, UsageError
from roadaware.io.folders import MARKER, add_marker, encode_json
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
from roadaware.metrics.detection.matches import Matches
from roadaware.reports import runs
from roadaware.reports.clips import build_clip_files, read_clips
from roadaware.reports.runs import read_table

_CLASSES, _INDEX, _STRIPS, _PAGE = runs.EVENT_ROWS, "matches.json", "tubes.json", "report.html"
_FAULTS = "faults.parquet"
_BESIDE = ("tracking", "streaming", "calibration", "requirements")
_COUNTS = ("switches", "fragmentations")
_MOST_TRUTH = 1 << 40
"""More true boxes than any video has."""
_FACTS = (
    *("split", "truth", "claims", "dropped", "findings", "linker", "config_name"),
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
        "draws": run.draws,
        "interval": runs.get_interval_method(run.draws),
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
        _are(str, truth["dataset"], *facts["claims"], *truth.get("native_kinds", {}).values()),
        _are(int, truth["videos"], truth["boxes"], *facts["dropped"].values()),
        _are(str | None, facts["split"], facts["config_name"], facts.get("tracked")),
        _are(dict | None, *(facts.get(name) for name in ("linker", "findings", "tracking", "streaming"))),
    ]
    for row in facts.get("calibration") or []:
        right.append(_are(str, row["group"], row["kind"], row["of"]) and _are(int, row["claims"]))
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
    columns = {**words, "claims": pl.Int64, **numbers}
    filled = (*words, "claims", "threshold")
    table = read_table(data, columns, filled=filled, among={"level": ("frame", "video")})
    kinds, faults = (pl.col(name).n_unique() for name in ("kind", "fault"))
    cells = table.group_by("level").agg(due=kinds * faults, held=pl.struct("kind", "fault").n_unique())
    if len(table) != cells["due"].sum() or not cells["due"].equals(cells["held"]):
        raise ValueError("expected each fault once for each kind of a level, found others")
    return table


def _each_match(held: Mapping[str, bytes]) -> Iterator[tuple[str, Matches]]:
    for level, named in json.loads(held[_INDEX]).items():
        name = level.replace(":", "_")
        classes = tuple((str(kind), str(label)) for kind, label in named["classes"])
        videos, thresholds = tuple(map(str, named["videos"])), tuple(map(float, named["thresholds"]))
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
            metric: row
            if metric in _COUNTS
            else row | {key: _times(row[key]) for key in ("value", "low", "high")}
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
