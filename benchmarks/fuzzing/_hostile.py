"""Hostile values for options and hostile changes of files: JSON, csv, Parquet, and bytes of any kind."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import polars as pl
from mutants import KINDS, mutated

from roadaware.io.parquet import read_parquet
from roadaware.scenes.store import compute_meta_digest

INTEGERS = ("0", "-1", "1", "2", "7", "-9223372036854775809", "1e3", "1.5", "nan", "", "\u0669", "0x10")
INTEGERS += ("1_0", "9" * 30, "true", "--", " 3")
FLOATS = ("nan", "inf", "-inf", "1e308", "-0.0", "1e-320", "0", "-1", "1e400", "", "0,5", "0.5", "1e-9")
TEXTS = ("", " ", "\x1b[31mred", "\u202eeno", "a" * 5000, "--", "-", "%s{}", "../..", "\udcff", "NaN")
TEXTS += ("{video}", "{0}", "{video.__class__}", "[", "*", "**", "a=b", "=", ",", "a,,b", "a=1,a=2", "=1")
TEXTS += ("None", "a=", "\n", "\t", "/", "0", "1", "test", "agent", "default", "train", "reference")
SCALARS: tuple[Any, ...] = (None, True, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1.5, 1e308, -1e-320, "")
SCALARS += ("a", "a" * 3000, "../x", "\x1b[2J", "\ud800", "nan", "1e400", [], {}, [[]], [1], {"a": 1})
SCALARS += ([None], "0")
ODD_FLOATS = (float("nan"), float("inf"), float("-inf"))


def value(hint: Any, rng: random.Random, places: Places) -> str:
    """A value for an option, mostly of the kind that it wants."""
    kinds = _kinds(hint)
    kind = rng.choice(kinds) if rng.random() < 0.85 else rng.choice((int, float, str, Path))
    if isinstance(kind, tuple):
        return str(rng.choice(kind))
    if kind is Path:
        return places.path(rng)
    return rng.choice({int: INTEGERS, float: FLOATS, bool: ("true", "no", "")}.get(kind, TEXTS))


def _kinds(hint: Any) -> list[Any]:
    """The plain types behind an annotation; the words of a Literal as a tuple."""
    if get_origin(hint) is Literal:
        return [get_args(hint)]
    if args := get_args(hint):
        found = [kind for each in args if each is not type(None) and each is not ... for kind in _kinds(each)]
        return found or [str]
    return [hint if hint in (int, float, bool, Path) else str]


class Places:
    """Paths of every kind that something may be.

    Args:
        root: where the odd ones are made.
        inputs: a folder of valid inputs, of which any may stand in the place of another.
    """

    def __init__(self, root: Path, inputs: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        (root / "empty-folder").mkdir()
        (root / "empty").touch()
        (root / "rubbish").write_bytes(random.Random(0).randbytes(5000))  # noqa: S311
        for suffix in (".json", ".csv", ".parquet", ".zip", ".pkl", ".npz", ".html"):
            (root / f"rubbish{suffix}").write_bytes(random.Random(1).randbytes(3000))  # noqa: S311
        (root / "deep.json").write_text("[" * 200_000)
        (root / "list.json").write_text("[]")
        (root / "null.json").write_text("null")
        os.mkfifo(root / "fifo")
        os.mkfifo(root / "fifo.json")
        (root / "loop").symlink_to(root / "loop")
        (root / "dangling").symlink_to(root / "gone")
        (root / "sparse.json").touch()
        os.truncate(root / "sparse.json", 50 << 30)
        odd = ["/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem", "/", ".", "..", "", "-", "--"]
        odd += ["/proc/1/root", "x" * 300, "a/" * 2000, "missing", "missing/below", "\udcff"]
        odd += ["new\nline", "\x1b[2J"]
        self.odd = [*map(str, sorted(root.iterdir())), *odd]
        near = [path for path in sorted(inputs.rglob("*")) if len(path.relative_to(inputs).parts) < 4]
        self.valid = [str(path) for path in near if not {"hub", ".home"} & set(path.parts)]

    def path(self, rng: random.Random) -> str:
        """One of them."""
        return rng.choice(self.odd if rng.random() < 0.5 else self.valid)


def change_file(path: Path, rng: random.Random) -> None:
    """Change a file so that it is still of its kind where that can be, else byte by byte."""
    data = path.read_bytes()
    change = {".json": _json, ".csv": _csv, ".parquet": _parquet}.get(path.suffix)
    if change is not None and rng.random() < 0.75:
        try:
            data = change(data, rng)
        except Exception:  # what cannot be parsed is changed byte by byte
            change = None
    if change is None or rng.random() < 0.15:
        kinds = rng.choices(sorted(KINDS), k=rng.randint(1, 3))
        data = mutated(data, [(kind, rng.random(), rng.random()) for kind in kinds])
    path.unlink()
    path.write_bytes(data)


def _json(data: bytes, rng: random.Random) -> bytes:
    held = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        held = _changed(held, rng)
    return json.dumps(held, ensure_ascii=True).encode()


def _changed(held: Any, rng: random.Random) -> Any:
    """The same with one node replaced, removed, doubled or renamed."""
    if not isinstance(held, dict | list) or not held or rng.random() < 0.12:
        return rng.choice((*SCALARS, *ODD_FLOATS))
    keys = list(held) if isinstance(held, dict) else range(len(held))
    key: Any = rng.choice(keys)
    how = rng.random()
    if how < 0.1:
        del held[key]
    elif how < 0.15 and isinstance(held, dict):
        held[str(rng.choice(TEXTS))] = held.pop(key)
    elif how < 0.2 and isinstance(held, list):
        held.insert(key, held[key])
    else:
        held[key] = _changed(held[key], rng)
    return held


def _csv(data: bytes, rng: random.Random) -> bytes:
    rows = list(csv.reader(io.StringIO(data.decode())))
    for _ in range(rng.randint(1, 4)):
        row = rng.choice(rows)
        place = rng.randrange(len(row))
        how = rng.random()
        if how < 0.7:
            row[place] = rng.choice((*INTEGERS, *FLOATS, *TEXTS)).replace("\udcff", "?")
        elif how < 0.85:
            del row[place]
            row = row or [""]
        else:
            rows.insert(rng.randrange(len(rows)), list(row))
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    return stream.getvalue().encode()


def _parquet(data: bytes, rng: random.Random) -> bytes:
    """The table with a column changed, of another type, gone or doubled, or with other rows."""
    table = read_parquet(data)
    name = rng.choice(table.columns)
    column = table[name]
    how = rng.randrange(9)
    if how == 0:
        table = table.drop(name)
    elif how == 1:
        table = table.rename({name: rng.choice(("x", "", "video", "score", "a" * 300))})
    elif how == 2:
        table = table.with_columns(pl.lit(None).alias(name))
    elif how == 3:
        table = table.with_columns(column.cast(pl.String, strict=False).alias(name))
    elif how == 4:
        table = table.head(rng.randrange(3))
    elif how == 5:
        table = pl.concat([table, table])
    elif how == 6:
        table = table.sample(fraction=1, shuffle=True, seed=rng.randrange(99))
    elif how == 7:
        table = table.with_columns(pl.Series(name, [rng.choice(SCALARS[:12])] * len(table), strict=False))
    else:
        odd = rng.choice((*ODD_FLOATS, -1, 2**62, 1e300))
        shown = pl.when(pl.int_range(pl.len()) == rng.randrange(max(1, len(table)))).then(pl.lit(odd))
        table = table.with_columns(shown.otherwise(pl.col(name)).cast(column.dtype, strict=False).alias(name))
    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


def sign_again(folder: Path) -> None:
    """Let the markers of saved tables and results list their files as they are now, as a forger would."""
    for marker in [*folder.rglob("results.json"), *folder.rglob("meta.json")]:
        with suppress(Exception):  # one that cannot be signed stays as it is
            held = json.loads(marker.read_bytes())
            if marker.name == "results.json":
                for name in held["files"]:
                    data = (marker.parent / name).read_bytes()
                    held["files"][name] = hashlib.blake2b(data, digest_size=16).hexdigest()
            else:
                held.pop("blake2b")
                for name, part in held["tables"].items():
                    _sign_table(marker.parent, name, part)
                held["blake2b"] = compute_meta_digest(held)
            marker.write_text(json.dumps(held))


def _sign_table(folder: Path, name: str, part: dict[str, Any]) -> None:
    data = (folder / part["file"]).read_bytes()
    digest = hashlib.blake2b(data, digest_size=32).hexdigest()
    file = f"{name}-{digest[:16]}.parquet"
    (folder / part["file"]).rename(folder / file)
    part |= {"file": file, "rows": len(read_parquet(data)), "bytes": len(data), "blake2b": digest}


def copy_tree(source: Path, target: Path) -> Path:
    """A copy of a file or folder that can be written to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy(source, target)
    return target
