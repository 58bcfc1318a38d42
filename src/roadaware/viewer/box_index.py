"""Where the boxes of each video lie, and how many there are by class and score: gone through once, and kept."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Ints
from roadaware.errors import RoadawareError
from roadaware.io.files import flush_folder, read_regular, remove_stale_files, write_and_rename
from roadaware.io.folders import make_folder
from roadaware.io.parquet import read_parquet
from roadaware.places import get_cache_folder
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import create_empty_table
from roadaware.steps import log_step
from roadaware.viewer.opening import TableSource

FILE = "viewer.index"
HUNDREDTHS = 101
"""Counts are kept for the scores 0, 0.01 ... 1, the steps of the page's slider."""
_MAGIC = b"roadaware viewer index 1\n"
_LIMIT = 1 << 29
# A row group of Parquet as polars writes it: more at a time takes more memory. Boxes with dense scores are wide.
_CHUNK, _WIDE_CHUNK = 1 << 18, 1 << 16
# More runs of rows than that for each video, or in all, and the table is not sorted by video: it is filtered instead.
_MOST_RUNS, _MOST_RUNS_IN_ALL = 64, 200_000
# Kinds of labels by which things are called, the first that is there; `tubes.js` has the same order.
_NAMING = ("agent", "action", "location", "duplex", "event")
_RUNS = {"video": pl.String, "start": pl.Int64, "length": pl.Int64}
_SPANS = {"tube": pl.Int64, "first": pl.Int64, "last": pl.Int64}
_TALLIES = {"video": pl.String, "word": pl.String, "hundredth": pl.Int16, "n": pl.Int64}
_PARTS = (_RUNS, _SPANS, _TALLIES)


@dataclass(frozen=True, eq=False)
class BoxIndex:
    """What a pass over all boxes of a set found.

    Args:
        runs: rows of one video that follow each other: `video`, `start`, `length`; without rows where videos are
            scattered all over the table.
        spans: `tube`, and the frames of its boxes from `first` to behind the `last`.
        tallies: `video`, `word` (the class), `hundredth` (of the score, rounded down; -1 without one), `n` boxes.
    """

    runs: pl.DataFrame
    spans: pl.DataFrame
    tallies: pl.DataFrame

    @cached_property
    def rows(self) -> dict[str, list[tuple[int, int]]] | None:
        """Video to the runs of its rows, as start and length; None where they are scattered."""
        if self.runs.is_empty() and len(self.tallies):
            return None
        found: dict[str, list[tuple[int, int]]] = {}
        for video, start, length in self.runs.iter_rows():
            found.setdefault(video, []).append((start, length))
        return found

    @property
    def videos(self) -> list[str]:
        """The videos that have boxes, in alphabetical order."""
        return self.tallies["video"].unique().sort().to_list()

    @cached_property
    def _columns(self) -> tuple[list[str], Ints, list[str], Ints, Ints, Ints]:
        videos, words = (self.tallies[name].unique().sort() for name in ("video", "word"))
        codes = [
            self.tallies[name].cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64)
            for name, known in (("video", videos), ("word", words))
        ]
        numbers = [self.tallies[name].to_numpy().astype(np.int64) for name in ("hundredth", "n")]
        return videos.to_list(), codes[0], words.to_list(), codes[1], numbers[0], numbers[1]

    def count(self, hundredth: int, hidden: set[str]) -> tuple[dict[str, int], dict[str, int], int]:
        """How many boxes pass the filters.

        Args:
            hundredth: lowest score of a box that has one, in hundredths.
            hidden: classes that are not counted.

        Returns:
            video to boxes that pass; class to boxes whose score passes, hidden or not; boxes in all.
        """
        videos, video, words, word, score, n = self._columns
        scored = (score < 0) | (score >= hundredth)
        by_word = np.bincount(word[scored], n[scored], len(words))
        shown = np.array([each not in hidden for each in words], dtype=bool)
        passed = scored & shown[word] if len(words) else scored
        by_video = np.bincount(video[passed], n[passed], len(videos))
        return (
            dict(zip(videos, by_video.astype(np.int64).tolist(), strict=True)),
            dict(zip(words, by_word.astype(np.int64).tolist(), strict=True)),
            int(n.sum()),
        )


def name_tubes(tubes: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """What each path is called: `tube`, `word`; of its labels and those of its parts, of the first kind, the weightiest.

    Args:
        tubes: with `tube`, `parent`, `start_frame`, `end_frame`, `score` and `spans`.
        labels: of tubes: `tube`, `kind`, `word`, `score`.
    """
    inside = pl.col("spans").list.eval(pl.element().list.last() - pl.element().list.first()).list.sum()
    whole = (pl.col("end_frame") - pl.col("start_frame")).clip(1).fill_null(1)
    lasts = tubes.select(owner="tube", lasts=whole)
    is_path = pl.col("parent").is_null()
    facts = tubes.select(
        "tube",
        owner=pl.coalesce("parent", "tube"),
        inside=pl.when(~is_path & (pl.col("spans").list.len() > 0)).then(inside),
        own=pl.when(is_path).then(1.0).otherwise(pl.col("score").fill_null(1.0)),
    ).join(lasts, on="owner", how="left")
    frames = pl.coalesce("inside", "lasts", 1)
    rank = pl.col("kind").replace_strict(
        list(_NAMING), list(range(len(_NAMING))), default=9, return_dtype=pl.Int64
    )
    said = labels.join(facts, on="tube").select(
        "owner", "word", rank=rank, weight=pl.coalesce("score", "own") * frames
    )
    weighed = said.group_by("owner", "rank", "word").agg(pl.col("weight").sum())
    best = weighed.sort("rank", "weight", "word", descending=[False, True, False])
    return best.group_by("owner", maintain_order=True).first().select(tube="owner", word="word")


def open_box_index(source: TableSource, tubes: pl.DataFrame, labels: pl.DataFrame) -> BoxIndex:
    """The index of a set: the one that is kept, if it is of these tables and whole; else made now, and kept.

    It is kept in the folder of the tables, and in the cache where that cannot be written to.

    Args:
        source: the set.
        tubes: as of `name_tubes`; `start_frame` and `end_frame` may lack.
        labels: of tubes, as of `name_tubes`.
    """
    rows = int(source.scan("boxes").select(pl.len()).collect().item())
    # Where the index of a set is looked for and kept; nowhere for tables that are not kept themselves.
    if source.tables_folder is None or not source.digest:
        places: list[Path] = []
    else:
        # The cache is not named by the digest alone: of two copies of a set each has an index of its own.
        name = f"{os.path.realpath(source.tables_folder)}\0{source.digest}"
        key = hashlib.blake2b(os.fsencode(name), digest_size=12).hexdigest()
        places = [source.tables_folder / FILE]
        with suppress(RuntimeError):  # no home folder
            places.append(get_cache_folder() / "viewer" / f"{key}.index")
    for place in places:
        found = _read(place, source.digest, rows)
        if found is not None:
            return found
    with log_step(f"going through {rows:,} boxes of {source.name}"):
        index = _build(source, tubes, labels, rows)
    parts = []
    for table in (index.runs, index.spans, index.tallies):
        buffer = io.BytesIO()
        table.write_parquet(buffer, compression="zstd")
        parts.append(buffer.getvalue())
    body = b"".join(parts)
    facts = {
        "set": source.digest,
        "rows": rows,
        "sizes": [len(part) for part in parts],
        "blake2b": hashlib.blake2b(body, digest_size=32).hexdigest(),
    }
    data = _MAGIC + json.dumps(facts).encode() + b"\n" + body
    for place in places:
        if _keep(place, data):
            break
    return index


def _read(path: Path, digest: str, rows: int) -> BoxIndex | None:
    """The index in a file; None where it is of other tables, damaged, or says what cannot be."""
    try:
        data = read_regular(path, limit=_LIMIT)
    except (OSError, RoadawareError, ValueError):
        return None
    if not data.startswith(_MAGIC):
        return None
    line, _, body = data[len(_MAGIC) :].partition(b"\n")
    try:
        facts = json.loads(line)
        if (facts["set"], facts["rows"]) != (digest, rows):
            return None
        if facts["blake2b"] != hashlib.blake2b(body, digest_size=32).hexdigest():
            return None
        ends = np.cumsum([0, *map(int, facts["sizes"])]).tolist()
        parts = [body[first:end] for first, end in itertools.pairwise(ends)]
        tables = [read_parquet(part) for part in parts]
    except (ValueError, TypeError, LookupError, RecursionError, pl.exceptions.PolarsError):
        return None
    if [dict(table.schema) for table in tables] != [dict(schema) for schema in _PARTS]:
        return None
    index = BoxIndex(*tables)
    return index if _is_possible(index, rows) else None


def _is_possible(index: BoxIndex, rows: int) -> bool:
    """Whether an index can be of a table of so many rows: runs that cover it, counts that add up to it."""
    if any(table.null_count().sum_horizontal().sum() for table in (index.runs, index.spans, index.tallies)):
        return False
    ends = (index.runs["start"] + index.runs["length"]).to_list()
    joined = index.runs["start"].to_list() == [0, *ends[:-1]] if ends else True
    whole = not ends or ends[-1] == rows
    positive = bool((index.runs["length"] > 0).all() and (index.tallies["n"] > 0).all())
    bounded = bool(index.tallies["hundredth"].is_between(-1, HUNDREDTHS - 1).all())
    return joined and whole and positive and bounded and int(index.tallies["n"].sum()) == rows


def _keep(path: Path, data: bytes) -> bool:
    """Write an index; whether it stands. What is not an index of ours is never replaced."""
    try:
        if path.parent.name == "viewer":
            make_folder(path.parent)
        with suppress(FileNotFoundError):
            if path.is_symlink() or not read_regular(path, limit=_LIMIT).startswith(_MAGIC):
                return False
        write_and_rename(path, data)
        flush_folder(path.parent)
        remove_stale_files(path.parent)
    except (OSError, RoadawareError, ValueError):
        return False
    return True


# The pass over all boxes, some rows at a time, so that memory does not grow with them.


def _build(source: TableSource, tubes: pl.DataFrame, labels: pl.DataFrame, rows: int) -> BoxIndex:
    table = source.scan("boxes")
    held = table.collect_schema().names()
    linked = "tube" in held
    wide = not linked and "scores" in held
    wanted = ["box", "frame", *(name for name in ("tube", "score", *(["scores"] * wide)) if name in held)]
    scored = pl.col("score") if "score" in held and source.predicted else pl.lit(None, pl.Float64)
    rated = (tubes.filter(pl.col("score").is_not_null()) if source.predicted else tubes.clear())[
        "tube"
    ].implode()
    runs: list[tuple[str, int, int]] = []
    owned, loose, votes = [_nothing("tube", "hundredth")], [_nothing("word", "hundredth")], []
    for start in range(0, rows, _WIDE_CHUNK if wide else _CHUNK):
        chunk = table.slice(start, _WIDE_CHUNK if wide else _CHUNK)
        part = chunk.select(pl.col("video").cast(pl.String), *wanted).collect()
        if len(runs) <= _MOST_RUNS_IN_ALL:
            # Add the runs of equal names, the first to the last one where that goes on.
            videos = part["video"]
            starts = videos.ne_missing(videos.shift(1)).arg_true().to_list()
            starts = starts if starts[:1] == [0] else [0, *starts]
            for first, end in zip(starts, [*starts[1:], len(videos)], strict=True):
                name = str(videos[first])
                if runs and runs[-1][0] == name:
                    runs[-1] = (name, runs[-1][1], runs[-1][2] + end - first)
                else:
                    runs.append((name, start + first, end - first))
        part = part.with_columns(tube=pl.col("tube") if linked else pl.lit(None, pl.Int64))
        # Where the tube has a score that of the box says nothing, and would make many rows of one.
        part = part.with_columns(
            hundredth=pl.when(~pl.col("tube").is_in(rated).fill_null(False)).then(_floor(scored))
        )
        mine = part.filter(pl.col("tube").is_not_null())
        ends = {"first": pl.col("frame").min(), "last": pl.col("frame").max() + 1}
        owned.append(mine.group_by("video", "tube", "hundredth").agg(n=pl.len().cast(pl.Int64), **ends))
        words = _name_boxes(source, part, wide=wide)
        free = part.with_columns(word=words).filter(pl.col("tube").is_null())
        loose.append(free.group_by("video", "word", "hundredth").agg(n=pl.len().cast(pl.Int64)))
        if linked and "labels" in source.tables:
            votes.append(_collect_votes(source, mine))
    paths = pl.concat([each.select(owned[0].columns) for each in owned], how="vertical_relaxed")
    spans = paths.group_by("tube").agg(pl.col("first").min(), pl.col("last").max()).sort("tube")
    named = _name_paths(tubes, labels, spans, votes)
    own = tubes.select("tube", own=pl.col("score") if source.predicted else pl.lit(None, pl.Float64))
    selected = paths.join(named, on="tube", how="left").join(own, on="tube", how="left")
    selected = selected.with_columns(
        word=pl.col("word").fill_null("object"), hundredth=pl.coalesce(_floor(pl.col("own")), "hundredth")
    )
    free = pl.concat([each.select(loose[0].columns[:4]) for each in loose], how="vertical_relaxed")
    tallies = pl.concat([selected.select(*_TALLIES), free.select(*_TALLIES)], how="vertical_relaxed")
    keys = ("video", "word", "hundredth")
    sums = (
        tallies.with_columns(pl.col("hundredth").fill_null(-1))
        .group_by(keys)
        .agg(pl.col("n").sum())
        .sort(keys)
    )
    sorted_enough = len(runs) <= min(_MOST_RUNS_IN_ALL, _MOST_RUNS * sums["video"].n_unique())
    kept = runs if sorted_enough else []
    return BoxIndex(
        pl.DataFrame(kept, schema=_RUNS, orient="row"),
        spans.select(pl.col(name).cast(kind) for name, kind in _SPANS.items()),
        sums.select(pl.col(name).cast(kind) for name, kind in _TALLIES.items()),
    )


def _nothing(key: str, score: str) -> pl.DataFrame:
    kinds = {"video": pl.String, key: pl.String if key == "word" else pl.Int64, score: pl.Int16}
    return pl.DataFrame(schema=kinds | {"n": pl.Int64, "first": pl.Int64, "last": pl.Int64})


def _floor(score: pl.Expr) -> pl.Expr:
    """A score in hundredths, rounded down; to thousandths first, as the page is told it."""
    thousandths = (score.cast(pl.Float64).fill_nan(None).clip(0, 1) * 1000).round(0)
    return (thousandths // 10).cast(pl.Int16)


def name_labels(source: TableSource, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with `word`, what their `label` of `kind` is called."""
    words = [
        (kind, place, word)
        for kind, labels in source.meta.vocabularies.items()
        for place, word in enumerate(labels)
    ]
    schema = {"kind": pl.String, "label": pl.Int64, "word": pl.String}
    named = pl.DataFrame(words, schema=schema, orient="row")
    rows = rows.with_columns(pl.col("kind").cast(pl.String), pl.col("label").cast(pl.Int64))
    return rows.join(named, on=["kind", "label"], how="left", maintain_order="left").with_columns(
        pl.coalesce("word", pl.col("label").cast(pl.String)).alias("word")
    )


def scan_labels(source: TableSource, boxes: pl.Series) -> pl.DataFrame:
    """The labels of some boxes, named; boxes that are near each other are found by the statistics of the file."""
    if "labels" not in source.tables or boxes.is_empty():
        return name_labels(source, create_empty_table("labels"))
    near = pl.col("box").is_between(boxes.min(), boxes.max()) & pl.col("box").is_in(boxes.implode())
    return name_labels(source, source.scan("labels").filter(near).collect())


def _name_boxes(source: TableSource, part: pl.DataFrame, *, wide: bool) -> pl.Series:
    """What boxes without a tube are called: by labels of their own, else by the best of their dense scores."""
    free = part.filter(pl.col("tube").is_null())
    words = pl.Series("word", ["object"] * 0, dtype=pl.String).extend_constant("object", len(part))
    if free.is_empty():
        return words
    found = name_boxes(source, free, loose=wide)
    if found is None:
        return words
    rows = pl.DataFrame({"box": free["box"], "word": pl.Series(found, dtype=pl.String)})
    joined = part.select("box").join(rows, on="box", how="left", maintain_order="left")
    return joined["word"].fill_null("object")


def name_boxes(source: TableSource, found: pl.DataFrame, *, loose: bool) -> list[str | None] | None:
    """What each box is by its own labels, else by the best of its dense scores; None where boxes say nothing.

    Args:
        source: the set.
        found: boxes, with `scores` if `loose`.
        loose: whether the boxes of the set have dense scores and no tubes.
    """
    rows = scan_labels(source, found["box"])
    if len(rows):
        joined = rows.group_by("box").agg(pl.col("word").unique(maintain_order=True))
        table = found.select("box").join(joined, on="box", how="left", maintain_order="left")
        return table["word"].list.join(" · ").to_list()
    if loose and len(found):
        layout = get_score_layout(source.meta, "boxes")
        kind = next(iter(layout.kinds), None)
        if kind is not None:
            best = convert_to_matrix(found["scores"], layout.width)[:, layout.columns(kind)].argmax(axis=1)
            return [layout.kinds[kind][place] for place in best.tolist()]
    return None


def _collect_votes(source: TableSource, boxes: pl.DataFrame) -> pl.DataFrame:
    """How many boxes of each tube carry a label of their own."""
    rows = scan_labels(source, boxes["box"]).join(boxes.select("box", "tube"), on="box")
    return rows.group_by("tube", "kind", "word").agg(n=pl.len().cast(pl.Int64))


def _name_paths(
    tubes: pl.DataFrame,
    labels: pl.DataFrame,
    spans: pl.DataFrame,
    votes: list[pl.DataFrame],
) -> pl.DataFrame:
    """What paths are called: by their labels, and of kinds that they have none of, by most of their boxes."""
    known = tubes.join(spans, on="tube", how="left", maintain_order="left").with_columns(
        pl.coalesce("start_frame", "first").alias("start_frame"),
        pl.coalesce("end_frame", "last").alias("end_frame"),
    )
    if votes:
        most = pl.concat(votes).group_by("tube", "kind", "word").agg(pl.col("n").sum())
        best = most.sort("n", "word", descending=[True, False]).unique(
            ["tube", "kind"], keep="first", maintain_order=True
        )
        lacking = best.join(labels, on=["tube", "kind"], how="anti")
        more = lacking.select("tube", "kind", "word", score=pl.lit(None, pl.Float64))
        labels = pl.concat([labels, more], how="vertical_relaxed")
    return name_tubes(known, labels)


def describe_counts(index: BoxIndex, videos: list[str], hundredth: int, hidden: set[str]) -> dict[str, Any]:
    """Boxes that pass the filters, by video and class.

    Args:
        index: of a set.
        videos: all of them; those without boxes have none.
        hundredth, hidden: as of `BoxIndex.count`.
    """
    by_video, by_word, total = index.count(hundredth, hidden)
    return {
        "videos": [by_video.get(name, 0) for name in videos],
        "classes": by_word,
        "passed": sum(by_video.values()),
        "total": total,
    }
