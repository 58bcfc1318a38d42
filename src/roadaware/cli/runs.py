"""The run folder: one evaluation with its settings, its numbers and the rows behind them."""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware import __version__
from roadaware.cli.output import check_folder, json_text, make_folder
from roadaware.errors import DamagedError, InputError

if TYPE_CHECKING:
    from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores
    from roadaware.metrics.result import MetricResult

SCHEMA = 1
MARKER = "results.json"
_LIMIT = 1 << 30
_TEMPORARY = re.compile(r"\.roadaware-run-(\d{1,10})-[0-9a-f]{8}\.tmp")


@dataclass(frozen=True)
class Run:
    """One evaluation.

    Args:
        name: of the model, for tables and pictures.
        state: the scores beside their truth.
        config: how they were judged.
        result: what came out.
        draws: bootstrap resamples.
        seed: of the resamples.
        protocol: what the samples are, such as `jaad-action@iv2024`; empty for samples of one's own.
        facts: what else belongs to it, JSON-ready.
        groups: (n,) scenario of each sample, where they were asked for.
    """

    name: str
    state: SampleScores
    config: PedestrianConfig
    result: MetricResult
    draws: int
    seed: int
    protocol: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    groups: Sequence[str | None] | None = None


def summary(run: Run) -> dict[str, Any]:
    """What a machine wants to know of a run: metrics, intervals and what they rest on; undefined is None."""
    from roadaware.config import digest

    rows = list(run.result.of_group(None).iter_rows(named=True))
    names = run.state.pedestrian
    return {
        "schema": SCHEMA,
        "name": run.name,
        "task": run.config.task,
        "protocol": run.protocol or None,
        "metrics": {row["metric"]: row["value"] for row in rows},
        "intervals": {row["metric"]: _ends(row) for row in rows} if run.draws else {},
        "undefined": {row["metric"]: row["reason"] for row in rows if not row["valid"]},
        "samples": len(run.state),
        "pedestrians": len(set(names.tolist())),
        "classes": [
            {"class": row["class"], "samples": row["samples"], "pedestrians": row["pedestrians"]}
            for row in run.result.counts.iter_rows(named=True)
            if row["group"] is None
        ],
        "config": run.result.config,
        "config_digest": digest(run.config),
        "data_digest": data_digest(run.state),
        "draws": run.draws,
        "seed": run.seed,
        "version": __version__,
        "notes": list(run.result.notes),
        **({"groups": _groups(run)} if run.groups is not None else {}),
        **run.facts,
    }


def data_digest(state: SampleScores) -> str:
    """Sixteen hexadecimal digits over scores, truth, pedestrians and times to event, in extraction order."""
    total = hashlib.blake2b(digest_size=8)
    for array in (state.scores, state.truth, state.tte_frames):
        total.update(b"-" if array is None else array.tobytes())
    for names in (state.pedestrian, state.video):
        total.update(b"-" if names is None else "\0".join(names.tolist()).encode())
    return total.hexdigest()


def check(folder: Path | None, *, overwrite: bool) -> None:
    """Fail early if a run cannot be written there.

    Raises:
        DiskError, UsageError: as `output.check_folder`.
    """
    check_folder(folder, overwrite=overwrite, marker=MARKER)


def files_of(run: Run, page: str) -> dict[str, bytes]:
    """The files of a run by name.

    Args:
        run: what to write.
        page: the report, as HTML.
    """
    files = {
        "config.json": json_text({"metric": run.result.config, "protocol": run.protocol or None}).encode(),
        "per_sample.parquet": _parquet(_sample_rows(run)),
        "per_pedestrian.parquet": _parquet(run.result.instances("pedestrian")),
        "report.html": page.encode("utf-8", errors="backslashreplace"),
    }
    listed = {name: _digest(data) for name, data in files.items()}
    return {**files, MARKER: json_text({**summary(run), "files": listed}).encode()}


def put_folder(folder: Path, files: dict[str, bytes], *, overwrite: bool) -> None:
    """Write files into a new folder beside the target, then swap the two.

    Args:
        folder: the target.
        files: name to content; a name may lie in a folder inside.
        overwrite: replace what stands there.

    Raises:
        DiskError: if it cannot be written; what stood there still stands.
        UsageError: if something stands there that may not be replaced.
    """
    from roadaware.scenes.disk import disk_error, put, sync_folder

    check(folder, overwrite=overwrite)
    target = folder.absolute()
    make_folder(target.parent)
    _sweep(target.parent)
    building = target.parent / f".roadaware-run-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        for name, data in files.items():
            (building / name).parent.mkdir(parents=True, exist_ok=True)
            put(building / name, data)
        sync_folder(building)
        _swap(building, target)
        sync_folder(target.parent)
    except OSError as error:
        raise disk_error(folder, sum(map(len, files.values())), error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def load(folder: Path) -> Run:
    """The run in a folder, its numbers made again from its rows.

    Raises:
        InputError: if there is no run.
        DamagedError: if a file is not the one that was written.
    """
    import numpy as np

    from roadaware.config import from_dict
    from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples

    results = _results(folder)
    try:
        config = from_dict(PedestrianConfig, results["config"])
        draws, seed = int(results["draws"]), int(results["seed"])
        name, protocol = str(results["name"]), str(results["protocol"] or "")
        digest = results["files"]["per_sample.parquet"]
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=f"{folder}/{MARKER}"
        ) from error
    state, groups = _state(folder / "per_sample.parquet", digest)
    labels = None if groups is None else np.array(groups, dtype=object)
    result = evaluate_samples(state, config, draws=draws, seed=seed, groups=labels)
    return Run(name, state, config, result, draws, seed, protocol, groups=groups)


def is_run(path: Path) -> bool:
    """Whether the path is a folder with a run."""
    return (path / MARKER).is_file()


def members(folder: Path) -> list[Path]:
    """The runs in a folder: itself, or those right inside it.

    Raises:
        InputError: if there is none.
    """
    if (folder / "per_sample.parquet").is_file():
        return [folder]
    try:
        found = sorted(path for path in folder.iterdir() if (path / "per_sample.parquet").is_file())
    except OSError as error:
        raise InputError(f"expected a run folder: {error.strerror}", where=str(folder)) from error
    if not found:
        raise InputError(
            f"expected a run folder with {MARKER}, found none",
            where=str(folder),
            hint="Run folders are what `evaluate -o RUN` and `baseline -o RUN` write.",
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
        found = json.loads(_bytes(path))
    except ValueError as error:
        raise DamagedError(f"expected JSON, found: {error}", where=str(path)) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        schema = found.get("schema") if isinstance(found, dict) else None
        raise InputError(
            f"expected a run of schema {SCHEMA}, found {schema!r}",
            where=str(path),
            hint="Write the run again with this version.",
        )
    return found


def _state(path: Path, digest: str) -> tuple[SampleScores, list[str | None] | None]:
    """The samples of a run, and their scenarios where it has some."""
    import polars as pl

    from roadaware.metrics.pedestrians import SampleScores

    data = _bytes(path)
    if _digest(data) != digest:
        raise DamagedError(
            f"expected blake2b {digest}, found {_digest(data)}",
            where=str(path),
            hint="The file is not the one that was written; evaluate again.",
        )
    try:
        rows = pl.read_parquet(data)
        scores = rows["scores"].to_numpy()
        video = None if rows["video"].null_count() else rows["video"].to_numpy()
        tte = None if rows["tte_frames"].null_count() else rows["tte_frames"].to_numpy()
        truth, names, order = (rows[name].to_numpy() for name in ("truth", "pedestrian", "order"))
    except pl.exceptions.PolarsError as error:
        raise DamagedError(f"a column is missing: {error}", where=str(path)) from error
    groups = rows["group"].to_list() if "group" in rows.columns else None
    return SampleScores(scores.reshape(len(rows), -1), truth, names, video, tte, order), groups


def _bytes(path: Path) -> bytes:
    from roadaware.scenes.disk import read_regular

    try:
        return read_regular(path, limit=_LIMIT)
    except FileNotFoundError as error:
        raise InputError("expected a file of a run, found nothing", where=str(path)) from error


def _sample_rows(run: Run) -> Any:
    import polars as pl

    rows = run.result.instances("sample")
    order = run.state.places.argsort()
    scores = run.state.scores[order]
    columns = [pl.Series("scores", scores, dtype=pl.Array(pl.Float64, scores.shape[1]))]
    if run.groups is not None:
        columns.append(pl.Series("group", [run.groups[k] for k in order], dtype=pl.String))
    return rows.with_columns(columns)


def _parquet(frame: Any) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _ends(row: dict[str, Any]) -> dict[str, list[float] | None]:
    return {
        unit: None if row[f"low_{unit}"] is None else [row[f"low_{unit}"], row[f"high_{unit}"]]
        for unit in ("pedestrian", "video")
    }


def _swap(new: Path, target: Path) -> None:
    """Put the new folder in the place of the old in one step, the old under the new one's name.

    Raises:
        OSError: whatever the system says.
    """
    if not target.exists() or not any(target.iterdir()):
        new.replace(target)
        return
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    at_cwd, flag_exchange = -100, 2
    if exchange is not None and exchange(at_cwd, bytes(new), at_cwd, bytes(target), flag_exchange) == 0:
        return
    # File systems without an exchange: two renames; between them only the old name is missing.
    aside = new.with_name(f".roadaware-run-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    target.replace(aside)
    new.replace(target)
    shutil.rmtree(aside, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what killed processes left half-built."""
    with suppress(OSError):
        for path in folder.iterdir():
            match = _TEMPORARY.fullmatch(path.name)
            if match and not Path(f"/proc/{match[1]}").exists() and Path("/proc/self").exists():
                shutil.rmtree(path, ignore_errors=True)
