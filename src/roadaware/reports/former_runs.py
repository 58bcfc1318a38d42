"""Run folders of version 0.8 under the names of today: keys, columns, arrays and values of configurations."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import DamagedError
from roadaware.io.folders import MARKER
from roadaware.io.npz import decode, encode
from roadaware.io.parquet import read_parquet, read_parquet_columns

_TODAY = {"claims": "predictions", "claimed": "predicted", "claim": "prediction"}
_FORMER = re.compile(r"(?<![a-z])(claims|claimed|claim)(?![a-z])")


def is_former_run(results: Mapping[str, Any]) -> bool:
    """Whether the record of a run is one of version 0.8, which said `draws` for resamples."""
    return "draws" in results


def rename_former_run(
    results: Mapping[str, Any], held: Mapping[str, bytes], folder: Path, hint: str
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The record and the files of a run of version 0.8 as they are written today.

    Args:
        results: the record.
        held: name of each file to its content.
        folder: of the run, for errors.
        hint: what to do where a file cannot be read.

    Raises:
        DamagedError: if a file is not of the kind that its name says.
    """
    files = {}
    where = folder / MARKER
    try:
        facts = dict(results)
        facts["resamples"] = facts.pop("draws")
        facts = rename_facts(facts)
        for name, data in held.items():
            where = folder / name
            files[rename(name)] = _rename_content(data, where, hint)
    except (ValueError, RecursionError, pl.exceptions.PolarsError) as error:
        raise DamagedError(f"cannot be read: {error}", where=str(where), hint=hint) from error
    return facts, files


def rename(name: str) -> str:
    """A name of version 0.8 as it is today; others stay.

    >>> rename("missing_claim"), rename("with_truth_and_claims"), rename("instances_claim.parquet"), rename("reclaimed")
    ('missing_prediction', 'with_truth_and_predictions', 'instances_prediction.parquet', 'reclaimed')
    """
    return _FORMER.sub(lambda found: _TODAY[found[0]], name)


def rename_facts(found: Any, *, texts: bool = False) -> Any:
    """The same with the keys of today; texts are renamed in configurations alone, as others are names of files and classes.

    >>> rename_facts({"name": "claims", "claims": 9, "config": {"frame_order": "claims"}})
    {'name': 'claims', 'predictions': 9, 'config': {'frame_order': 'predictions'}}
    """
    if isinstance(found, dict):
        return {
            rename(key): rename_facts(value, texts=texts or key == "config") for key, value in found.items()
        }
    if isinstance(found, list):
        return [rename_facts(value, texts=texts) for value in found]
    return rename(found) if texts and isinstance(found, str) else found


def _rename_content(data: bytes, where: Path, hint: str) -> bytes:
    """The content of a file with the names of today."""
    if where.suffix == ".json":
        return json.dumps(rename_facts(json.loads(data))).encode()
    if where.suffix == ".npz":
        arrays, facts = decode(data, str(where), "the state of a run", hint)
        return encode({rename(name): array for name, array in arrays.items()}, rename_facts(facts))
    if where.suffix == ".parquet":
        names = {name: rename(name) for name in read_parquet_columns(data) if rename(name) != name}
        if names:
            stream = io.BytesIO()
            read_parquet(data).rename(names).write_parquet(stream)
            return stream.getvalue()
    return data
