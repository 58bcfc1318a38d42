"""The run folder: one evaluation with its settings, its numbers and the rows behind them; tables are read back with care."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from roadaware import __version__
from roadaware.analysis.evaluation.runs import Run
from roadaware.config import digest as config_digest
from roadaware.config import from_dict
from roadaware.errors import DamagedError, InputError
from roadaware.io.files import read_regular
from roadaware.io.folders import FORMAT, MARKER, add_marker, digest, encode_json, list_result_files
from roadaware.io.parquet import read_parquet
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.reports.clips import build_clip_files, read_clips
from roadaware.reports.former_runs import is_former_run, rename_former_run
from roadaware.statistics.intervals import encode_resample_count, select_interval_method

T = TypeVar("T")
SCHEMA = 1
# A folder of a run may come from anybody: 1 GiB bounds what its files may take of memory.
_LIMIT = 1 << 30
_PAGE, _ROWS = "report.html", "per_sample.parquet"
_FACTS = ("config_name", "sampling", "clipped", "chosen")
_RUNS = "Name a whole folder that `evaluate -o RUN` or `baseline -o RUN` wrote."
EVENTS, EVENT_ROWS = "events", "per_class.parquet"
"""The task of runs of road events, and the file that tells them from runs of pedestrians."""
SCENE_STATE = "state.npz"
"""The file that tells runs of the tasks on scenes from the others: the state behind their numbers."""
AGAIN = "The file is not the one that was written; evaluate again, into a new folder."


def summarize_run(run: Run) -> dict[str, Any]:
    """What a machine wants to know of a run: metrics, intervals and what they rest on; undefined is None."""
    rows = list(run.result.of_group(None).iter_rows(named=True))
    names = run.state.pedestrian
    return {
        "schema": SCHEMA,
        "name": run.name,
        "task": run.config.task,
        "protocol": run.protocol or None,
        "metrics": {row["metric"]: row["value"] for row in rows},
        "intervals": {
            row["metric"]: {
                unit: None if row[f"low_{unit}"] is None else [row[f"low_{unit}"], row[f"high_{unit}"]]
                for unit in ("pedestrian", "video")
            }
            for row in rows
        }
        if run.resamples
        else {},
        "cautions": {
            row["metric"]: {unit: row[f"caution_{unit}"] for unit in ("pedestrian", "video")} for row in rows
        }
        if run.resamples
        else {},
        "undefined": {row["metric"]: row["reason"] for row in rows if not row["valid"]},
        "samples": len(run.state),
        "pedestrians": len(set(names.tolist())),
        "classes": [
            {"class": row["class"], "samples": row["samples"], "pedestrians": row["pedestrians"]}
            for row in run.result.counts.iter_rows(named=True)
            if row["group"] is None
        ],
        "config": run.result.config,
        "config_digest": config_digest(run.config),
        "data_digest": digest_scores(run.state),
        "resamples": run.resamples,
        "interval": get_interval_method(run.resamples),
        "seed": run.seed,
        "version": __version__,
        "notes": list(run.result.notes),
        **({"groups": _groups(run)} if run.groups is not None else {}),
        **run.facts,
    }


def digest_scores(state: SampleScores) -> str:
    """Sixteen hexadecimal digits over scores, truth, pedestrians and times to event, in extraction order."""
    total = hashlib.blake2b(digest_size=8)
    for array in (state.scores, state.truth, state.tte_frames):
        total.update(b"-" if array is None else array.tobytes())
    for names in (state.pedestrian, state.video):
        total.update(b"-" if names is None else "\0".join(names.tolist()).encode())
    return total.hexdigest()


def build_run_files(run: Run, page: str) -> dict[str, bytes]:
    """The files of a run by name.

    Args:
        run: what to write.
        page: the report, as HTML.
    """
    config = {"metric": run.result.config, "protocol": run.protocol or None}
    if "sampling" in run.facts:
        config["sampling"] = run.facts["sampling"]
    order = run.state.places.argsort()
    scores = run.state.scores[order]
    columns = [pl.Series("scores", scores, dtype=pl.Array(pl.Float64, scores.shape[1]))]
    if run.groups is not None:
        columns.append(pl.Series("group", [run.groups[k] for k in order], dtype=pl.String))
    files = {
        "config.json": encode_json(config).encode(),
        _ROWS: encode_parquet(run.result.instances("sample").with_columns(columns)),
        "per_pedestrian.parquet": encode_parquet(run.result.instances("pedestrian")),
        **build_clip_files(run.clips),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    return add_marker(files, summarize_run(run))


def load(folder: Path) -> Run:
    """The run in a folder, its numbers made again from its rows.

    Raises:
        InputError: if there is no run.
        DamagedError: if a file is not the one that was written.
    """
    results, held = read_contents(folder)
    try:
        config = from_dict(PedestrianConfig, results["config"])
        resamples, seed = get_resamples(results), int(results["seed"])
        name, protocol = str(results["name"]), str(results["protocol"] or "")
        rows = held[_ROWS]
        facts = {fact: results[fact] for fact in _FACTS if fact in results}
        if not isinstance(facts.get("sampling", {}), dict):
            raise TypeError("sampling")
        n_clipped = int(facts.get("clipped", 0))
        clips = read_clips(held)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=f"{folder}/{MARKER}", hint=AGAIN
        ) from error
    state, groups = _state(folder / _ROWS, rows)
    labels = None if groups is None else np.array(groups, dtype=object)
    result = evaluate_samples(
        state, config, resamples=resamples, seed=seed, groups=labels, n_clipped=n_clipped
    )
    return Run(name, state, config, result, resamples, seed, protocol, facts, groups, clips=clips)


def load_runs(load: Callable[[Path], T], *folders: Path) -> list[T]:
    """Runs, each read and judged anew: its files are as listed, yet may have been forged.

    What is done with runs that were opened is ours: an error there is no fault of the files.

    Args:
        load: of a run folder.
        folders: of runs of that kind.

    Raises:
        DamagedError: for whatever a table or field raises that is not as this version writes it.
    """
    wrong = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
    found = []
    for folder in folders:
        try:
            found.append(load(folder))
        except (*wrong, pl.exceptions.PolarsError) as error:
            raise DamagedError(
                f"expected a run as this version writes it, met {type(error).__name__}: {error}",
                where=str(folder),
                hint=f"{AGAIN} If that ends so too, it is a fault of roadaware: report what -vv prints.",
            ) from error
    return found


def read_contents(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a run's marker says, and the files it was made from, each checked; those of 0.8 under today's names.

    The page is made from the others, and made again by `report`: it may be missing or edited.

    Raises:
        InputError: if there is no run.
        DamagedError: if a file is not the one that was written.
    """
    results = _results(folder)
    try:
        # The files that a run is made from, with their digests.
        stated = {
            name: str(stated)
            for name, stated in results["files"].items()
            if name != _PAGE and name == Path(name).name
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=f"{folder}/{MARKER}", hint=AGAIN
        ) from error
    held = {file: _read_verified(folder / file, of) for file, of in stated.items()}
    return rename_former_run(results, held, folder, AGAIN) if is_former_run(results) else (results, held)


def is_run(path: Path) -> bool:
    """Whether the path is a folder with a run, or with what is left of one."""
    return _holds(path, _ROWS) or is_event_run(path) or is_scene_run(path)


def is_event_run(path: Path) -> bool:
    """Whether the path is a folder with a run of road events, or with what is left of one."""
    return _holds(path, EVENT_ROWS)


def is_scene_run(path: Path) -> bool:
    """Whether the path is a folder with a run of a task on scenes, or with what is left of one."""
    return _holds(path, SCENE_STATE)


def describe_kind(path: Path) -> str:
    """What the run in a folder is of, in words."""
    if is_scene_run(path):
        return "scenes"
    return "road events" if is_event_run(path) else "pedestrians"


def _holds(path: Path, name: str) -> bool:
    return (path / name).is_file() or name in (list_result_files(path) or ())


def list_runs(folder: Path) -> list[Path]:
    """The runs in a folder: itself, or those right inside it.

    Raises:
        InputError: if there is none.
    """
    if is_run(folder):
        return [folder]
    try:
        found = sorted(path for path in folder.iterdir() if is_run(path))
    except OSError as error:
        raise InputError(f"expected a run folder: {error.strerror}", where=str(folder), hint=_RUNS) from error
    if not found:
        instead = "one of something else" if (folder / MARKER).is_file() else "none"
        raise InputError(
            f"expected a run folder with the {MARKER} of an evaluation, found {instead}",
            where=str(folder),
            hint=_RUNS,
        )
    return found


def _groups(run: Run) -> dict[str, dict[str, Any]]:
    """Each scenario's samples and metrics."""
    held = run.result.counts.group_by("group", maintain_order=True).agg("samples")
    sizes = {group: sum(samples) for group, samples in held.iter_rows()}
    return {
        group: {"samples": sizes[group], "metrics": run.result.values(group)} for group in run.result.groups
    }


def _results(folder: Path) -> dict[str, Any]:
    path = folder / MARKER
    try:
        found: Any = json.loads(_bytes(path))
    except ValueError as error:
        raise DamagedError(f"expected JSON, found: {error}", where=str(path), hint=AGAIN) from error
    stated = [found.get(key) if isinstance(found, dict) else None for key in ("format", "schema")]
    if stated != [FORMAT, SCHEMA]:
        raise InputError(
            f"expected a {FORMAT} of schema {SCHEMA}, found {stated[0]!r} of schema {stated[1]!r}",
            where=str(path),
            hint="Write the run again with this version: `evaluate -o RUN`, `baseline -o RUN`.",
        )
    results: dict[str, Any] = found
    return results


def _read_verified(path: Path, stated: str) -> bytes:
    """The content of a file of a run.

    Raises:
        InputError: if there is none.
        DamagedError: if it is not the one that was written.
    """
    data = _bytes(path)
    if digest(data) != stated:
        raise DamagedError(f"expected blake2b {stated}, found {digest(data)}", where=str(path), hint=AGAIN)
    return data


def _state(path: Path, data: bytes) -> tuple[SampleScores, list[str | None] | None]:
    """The samples of a run, and their scenarios where it has some."""
    integers = dict.fromkeys(("truth", "order", "tte_frames"), pl.Int64)
    texts = dict.fromkeys(("pedestrian", "video"), pl.String)
    try:
        rows = read_table(data, {**integers, **texts}, filled=("truth", "order", "pedestrian"))
        kind = rows.schema.get("scores")
        if not isinstance(kind, pl.Array) or kind.inner != pl.Float64:
            raise ValueError(f"expected a column 'scores' of arrays of numbers, found {kind or 'none'}")
        if rows.schema.get("group", pl.String) != pl.String:
            raise ValueError(f"expected a column 'group' of texts, found {rows.schema['group']}")
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise DamagedError(f"a column is not as written: {error}", where=str(path), hint=AGAIN) from error
    scores = rows["scores"].to_numpy()
    video = None if rows["video"].null_count() else rows["video"].to_numpy()
    tte = None if rows["tte_frames"].null_count() else rows["tte_frames"].to_numpy()
    truth, names, order = (rows[name].to_numpy() for name in ("truth", "pedestrian", "order"))
    groups = rows["group"].to_list() if "group" in rows.columns else None
    return SampleScores(scores.reshape(len(rows), -1), truth, names, video, tte, order), groups


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path, limit=_LIMIT)
    except FileNotFoundError as error:
        raise InputError("expected a file of a run, found nothing", where=str(path), hint=_RUNS) from error


def encode_parquet(frame: Any) -> bytes:
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def get_interval_method(resamples: int) -> str:
    """Which interval method a number of resamples asks for, by name."""
    return select_interval_method(resamples)


def get_resamples(results: Mapping[str, Any]) -> int:
    """The number of resamples in the facts of a run; of a run that names no method, percentiles.

    Args:
        results: facts of the run.
    """
    return encode_resample_count(int(results["resamples"]), results.get("interval", "percentile"))


# Numbers of a file that somebody else wrote reach axes and sums.
_LARGEST = 1e9
"""Far beyond any score, threshold or metric, and far from where arithmetic with them ends."""


def read_table(
    data: bytes,
    columns: Mapping[str, Any],
    *,
    filled: Collection[str] = (),
    below: Mapping[str, int] | None = None,
    among: Mapping[str, Collection[str]] | None = None,
) -> pl.DataFrame:
    """A table whose columns are as due; the digest of a file says who wrote it last, not that it is right.

    Runs that were written before version 0.9 have no columns of cautions; they get empty ones.

    Args:
        data: the content of a Parquet file.
        columns: name to type of those that are due, where any whole numbers stand for each other; further
            columns may stand beside them.
        filled: those without null.
        below: filled columns of whole numbers from 0, and what each is less than.
        among: filled columns of text, and the words of each.

    Raises:
        ValueError: saying which column is not as it is due.
        PolarsError: if the file is no table.
    """
    table = read_parquet(data)
    below, among = below or {}, among or {}
    for name, kind in columns.items():
        if name not in table.columns and name.startswith("caution_"):
            table = table.with_columns(pl.lit(None, pl.String).alias(name))
        found = table.schema.get(name)
        if found is None or (found != kind and not (found.is_integer() and kind.is_integer())):
            raise ValueError(f"expected a column {name!r} of {kind}, found {found or 'none'}")
        column = table[name]
        if (name in filled or name in below or name in among) and column.null_count():
            raise ValueError(f"expected a value in each row of {name!r}, found {column.null_count()} without")
        if column.dtype == pl.Float64 and not column.drop_nulls().is_between(-_LARGEST, _LARGEST).all():
            raise ValueError(f"expected numbers within {_LARGEST:g} in {name!r}, found others")
        if name in below and not column.is_between(0, below[name], closed="left").all():
            raise ValueError(f"expected 0 to {below[name] - 1} in {name!r}, found {_span(column)}")
        if name in among and (other := set(column) - set(among[name])):
            raise ValueError(f"expected {', '.join(among[name])} in {name!r}, found {min(other)[:60]!r}")
    return table


def _span(column: pl.Series) -> str:
    """The least and the greatest value."""
    return f"{column.min()!r} to {column.max()!r}"


def check_same_truth(a: str, b: str, names: tuple[str, str]) -> None:
    """Make sure that two runs were judged on the same truth.

    Args:
        a: digest of the truth of the first.
        b: of the second.
        names: of both.

    Raises:
        InputError: if they differ.
    """
    if a != b:
        raise InputError(
            f"{names[0]} and {names[1]} were judged on different truths ({a} and {b})",
            hint="evaluate both on the same annotations, read in the same way",
        )


def build_comparison_json(comparison: Any) -> dict[str, Any]:
    """The comparison, JSON-ready."""
    return {
        "names": list(comparison.names),
        "resamples": comparison.resamples,
        "interval": get_interval_method(comparison.resamples),
        "seed": comparison.seed,
        "config": comparison.config,
        **({"differs": held} if (held := getattr(comparison, "differs", None)) else {}),
        **({"baselines": held} if (held := getattr(comparison, "baselines", None)) else {}),
        "metrics": {row["metric"]: row for row in comparison.table.iter_rows(named=True)},
    }
