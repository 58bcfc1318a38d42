"""Findings of audits, doctors, checks and readers as a list, with the video, frame and track that each names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import DamagedError, InputError
from roadaware.io.files import read_regular
from roadaware.io.folders import FORMAT, MARKER, digest, read_marker
from roadaware.io.json import decode, parse
from roadaware.io.parquet import read_parquet

_ITEMS = "items.parquet"
_LIMIT = 1 << 28
_MOST = 2_000
_MOST_TEXT = 2_000
_FRAME = re.compile(r"\bframes?:? *['\"]?([0-9]{1,9})\b", re.ASCII)
_WORD = re.compile(r"[^\s,;:'\"()\[\]{}<>|=]+")


def hold_findings(path: Path) -> bool:
    """Whether a path is what `audit --json` or `doctor --json` printed, or the folder of a `check`."""
    if path.is_file():
        return path.suffix.lower() == ".json" and _tells_findings(path)
    found = read_marker(path / MARKER, FORMAT)
    return found is not None and isinstance(found.get("files"), dict) and _ITEMS in found["files"]


def _tells_findings(path: Path) -> bool:
    """Whether a file of JSON begins as those of an audit or a doctor."""
    try:
        with path.open("rb") as file:
            start = file.read(1 << 16)
    except OSError:
        return False
    return b'"diagnoses"' in start or (b'"findings"' in start and b'"protocol"' in start)


def read_findings(path: Path) -> list[dict[str, Any]]:
    """Findings in a file or a folder, up to 2,000.

    Returns:
        each with `title` (what it is an instance of), `rank` (how grave it is, in a word), `words`, and as far as
        it says so `video`, `track`, `frame` and `corners` (of a box).

    Raises:
        InputError: if it is something else.
        DamagedError: if a file is not the one that was written.
    """
    if path.is_dir():
        return list(_read_check(path))
    data = parse(decode(read_regular(path, limit=_LIMIT), str(path)), str(path))
    try:
        if "findings" in data:
            rows = (row for finding in data["findings"] for row in _read_finding(finding))
            return list(itertools.islice(rows, _MOST))
        return [
            {
                "title": _text(each["code"]),
                "rank": _text(each["severity"]),
                "words": _join(each["says"], each["evidence"], each["remedy"]),
            }
            for each in itertools.islice(data["diagnoses"], _MOST)
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"expected what `audit --json` or `doctor --json` writes, found another form ({error})",
            where=str(path),
        ) from error


def _read_finding(finding: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    title, rank = _text(finding["name"]), _text(finding["severity"])
    yield {"title": title, "rank": rank, "words": _join(finding["sentence"], finding["advice"])}
    for example in finding["examples"]:
        frame = example["frame"]
        yield {
            "title": title,
            "rank": rank,
            "words": _text(example["note"] or ""),
            "video": None if example["video"] is None else _text(example["video"]),
            "track": None if example["pedestrian"] is None else _text(example["pedestrian"]),
            "frame": frame if type(frame) is int and 0 <= frame < 1 << 40 else None,
        }


def _read_check(folder: Path) -> Iterator[dict[str, Any]]:
    """The items that did not pass, those in dispute first."""
    marker = read_marker(folder / MARKER, FORMAT) or {}
    data = read_regular(folder / _ITEMS, limit=_LIMIT)
    if digest(data) != marker["files"][_ITEMS]:
        raise DamagedError(
            "this is not the file that was written", where=str(folder / _ITEMS), hint="Check again."
        )
    try:
        table = read_parquet(data).filter(pl.col("status") != "pass")
        rows = table.sort(pl.col("status") != "disputed", maintain_order=True).head(_MOST)
        held = rows.columns
        edges = [
            pl.coalesce(
                f"{file}_{edge}" for file in ("round2", "round1", "original") if f"{file}_{edge}" in held
            )
            for edge in ("x1", "y1", "x2", "y2")
        ]
        start = pl.coalesce(
            f"{file}_start" for file in ("round2", "round1", "original") if f"{file}_start" in held
        )
        columns = rows.select(
            "what",
            "video",
            "name",
            "status",
            pl.coalesce(pl.col("frame"), start.cast(pl.Int64, strict=False)).alias("frame"),
            pl.col("reasons").list.join("; ").alias("words"),
            pl.concat_list(edges).alias("corners"),
        )
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise DamagedError(
            f"expected the items of a check, found: {error}", where=str(folder / _ITEMS)
        ) from error
    for row in columns.iter_rows(named=True):
        corners = row["corners"]
        yield {
            "title": row["what"],
            "rank": row["status"],
            "words": _text(row["words"]),
            "video": row["video"],
            "track": row["name"],
            "frame": row["frame"],
            "corners": None if corners is None or None in corners else corners,
        }


def find_place(text: str, videos: Mapping[str, int]) -> tuple[int | None, int | None]:
    """The number of the video that a text names, and the frame; None where it names none.

    A video is named by its name alone, or by a file that is called so: `video_0003_attributes.xml` names
    `video_0003` where no longer name fits.

    Args:
        text: of a person, a reader or a file.
        videos: name to number.
    """
    frame = _FRAME.search(text)
    number = int(frame[1]) if frame else None
    for word in _WORD.findall(text[:_MOST_TEXT]):
        for part in (word.rstrip("."), *reversed(word.rstrip(".").split("/"))):
            stem = part.rpartition(".")[0] or part
            while stem:
                if part in videos or stem in videos:
                    return videos[part if part in videos else stem], number
                stem = stem.rpartition("_")[0]
    return None, number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, found {type(value).__name__}")
    return value[:_MOST_TEXT]


def _join(*parts: Any) -> str:
    return " ".join(_text(part) for part in parts if part)
