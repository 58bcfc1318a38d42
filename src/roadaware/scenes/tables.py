"""Scenes: what is true of a set of videos, as tables that are checked when they are made and never change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.scenes.checks import check_references, checked, empty_table
from roadaware.scenes.schema import TABLES


@dataclass(frozen=True)
class Meta:
    """What holds for a whole set of tables.

    Args:
        dataset: its name.
        licence: the terms of the annotations.
        vocabularies: kind to its labels in order; `label` columns are indices into them.
        composites: composite kind to the kinds it is made of, in order.
        source_digest: what the source files hashed to when they were read.
        rows_read: table to the rows found in the source; what is not in the table is in `rejected`.
        notes: what else a reader or sampler has to say, as plain data.
    """

    dataset: str = ""
    licence: str = ""
    vocabularies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    composites: dict[str, tuple[str, ...]] = field(default_factory=dict)
    source_digest: str = ""
    rows_read: dict[str, int] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Bring everything to what a saved copy would hold, so that the copy is equal.

        Raises:
            InputError: if a field is not plain data.
        """
        try:
            plain = json.loads(json.dumps(asdict(self), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"meta holds what JSON cannot: {error}") from error
        texts, named = ("dataset", "licence", "source_digest"), ("vocabularies", "composites")
        wrong = [name for name in texts if not isinstance(plain[name], str)]
        wrong += [name for name in (*named, "rows_read", "notes") if not isinstance(plain[name], dict)]
        wrong += [name for name in named if name not in wrong and not _all_texts(plain[name])]
        if "rows_read" not in wrong and not all(type(n) is int for n in plain["rows_read"].values()):
            wrong.append("rows_read")
        if wrong:
            raise InputError(f"meta: {', '.join(wrong)} of the wrong kind; see `Meta` for what each holds")
        for name in named:
            plain[name] = {kind: tuple(labels) for kind, labels in plain[name].items()}
        for name, value in plain.items():
            object.__setattr__(self, name, value)


def _all_texts(lists: dict[str, Any]) -> bool:
    return all(isinstance(v, list) and all(isinstance(text, str) for text in v) for v in lists.values())


def _table(name: str) -> Any:
    return field(default_factory=lambda: empty_table(name))


@dataclass(frozen=True, eq=False, repr=False)
class TableSet:
    """Tables under the laws of `schema`; the common ground of Scenes and Predictions.

    Raises:
        InputError: on construction, if a table breaks a law; see `checks`.
    """

    claimed: ClassVar[bool] = False

    videos: pl.DataFrame = _table("videos")
    frames: pl.DataFrame = _table("frames")
    boxes: pl.DataFrame = _table("boxes")
    labels: pl.DataFrame = _table("labels")
    tubes: pl.DataFrame = _table("tubes")
    tube_labels: pl.DataFrame = _table("tube_labels")
    frame_labels: pl.DataFrame = _table("frame_labels")
    samples: pl.DataFrame = _table("samples")
    relations: pl.DataFrame = _table("relations")
    queries: pl.DataFrame = _table("queries")
    sounds: pl.DataFrame = _table("sounds")
    sensors: pl.DataFrame = _table("sensors")
    sweeps: pl.DataFrame = _table("sweeps")
    rejected: pl.DataFrame = _table("rejected")
    meta: Meta = field(default_factory=Meta)

    def __post_init__(self) -> None:
        for name in TABLES:
            object.__setattr__(self, name, checked(name, getattr(self, name), claimed=self.claimed))
        present = self.tables() if not self.claimed else self.filled()
        check_references(present)
        self._check_labels()

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by name, empty ones too."""
        return {name: getattr(self, name) for name in TABLES}

    def filled(self) -> dict[str, pl.DataFrame]:
        """The tables that have rows."""
        return {name: frame for name, frame in self.tables().items() if not frame.is_empty()}

    def with_tables(self, **changes: Any) -> Self:
        """A copy with some tables (or `meta`) replaced, checked again."""
        return replace(self, **changes)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, TableSet):
            return NotImplemented
        return self.meta == other.meta and all(
            _same(f, other.tables()[name]) for name, f in self.tables().items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(frame):,} {name}" for name, frame in self.filled().items())
        return f"{type(self).__name__}({self.meta.dataset or 'unnamed'}: {sizes or 'empty'})"

    def _check_labels(self) -> None:
        """Label indices lie inside their vocabulary, where the vocabulary is known."""
        for name in ("labels", "tube_labels", "frame_labels", "samples"):
            frame = getattr(self, name)
            if frame.is_empty() or not {"kind", "label"} <= set(frame.columns):
                continue
            spans = frame.group_by(pl.col("kind").cast(pl.String)).agg(
                pl.col("label").min().alias("low"), pl.col("label").max().alias("high")
            )
            for kind, low, high in spans.iter_rows():
                size = len(self.meta.vocabularies.get(kind, ()))
                if low is not None and size and not 0 <= low <= high < size:
                    raise InputError(
                        f"table {name}: labels of {kind} run {low}..{high}, its vocabulary has {size}"
                    )


@dataclass(frozen=True, eq=False, repr=False)
class Scenes(TableSet):
    """What is true: videos, frames, boxes, tubes and their labels, and the samples cut from them."""

    def only(self, videos: Iterable[str]) -> Scenes:
        """The part that belongs to the given videos, in the tables' order.

        Raises:
            UsageError: if a video is unknown.
        """
        wanted = list(dict.fromkeys(videos))
        known = set(self.videos["video"].cast(pl.String).to_list())
        unknown = [video for video in wanted if video not in known]
        if unknown:
            raise UsageError(
                f"no video {unknown[:5]} among the {len(known)} of {self.meta.dataset or 'this set'}"
            )
        return _restricted(self, wanted)

    def split(self, name: str) -> Scenes:
        """The part that belongs to a named split, such as `default/train`.

        Raises:
            UsageError: if no video is in that split.
        """
        return self.only(self.split_videos(name))

    def split_videos(self, name: str) -> list[str]:
        """The videos of a named split, sorted.

        Raises:
            UsageError: if no video is in that split.
        """
        if "splits" not in self.videos.columns:
            raise UsageError(f"{self.meta.dataset or 'this set'} names no splits; asked for '{name}'")
        held = (
            self.videos.filter(pl.col("splits").list.contains(name))["video"].cast(pl.String).sort().to_list()
        )
        if not held:
            names = self.videos["splits"].explode().drop_nulls().unique().sort().to_list()
            raise UsageError(f"no video is in split '{name}'; there are {names}")
        return held


def concat(parts: Sequence[Scenes]) -> Scenes:
    """One set out of several with different videos: keys are renumbered, labels remapped by name.

    Raises:
        UsageError: if there are no parts.
        InputError: if two parts hold the same video.
    """
    if not parts:
        raise UsageError("concat needs at least one set of scenes")
    vocabularies = _union([part.meta.vocabularies for part in parts])
    offsets = dict.fromkeys(_NUMBERED, 0)
    shifted = []
    for part in parts:
        shifted.append({n: _renumbered(n, f, part, offsets, vocabularies) for n, f in part.filled().items()})
        for name in offsets:
            frame = getattr(part, name)
            offsets[name] += 0 if frame.is_empty() else int(frame[TABLES[name].key[0]].max()) + 1
    tables = {
        name: pl.concat(
            [_loose(tables[name]) for tables in shifted if name in tables], how="diagonal_relaxed"
        )
        for name in TABLES
        if any(name in tables for tables in shifted)
    }
    return Scenes(**tables, meta=_joined_meta([part.meta for part in parts], vocabularies))


_NUMBERED = ("boxes", "tubes", "samples", "relations", "queries", "sounds")


def _restricted(scenes: Scenes, videos: list[str]) -> Scenes:
    """Filter every table to the videos, and tables without one through what they point to."""
    kept: dict[str, Any] = {}
    for name, frame in scenes.filled().items():
        if "video" in frame.columns:
            kept[name] = frame.filter(pl.col("video").cast(pl.String).is_in(videos))
    for name, key, owner in (("labels", "box", "boxes"), ("tube_labels", "tube", "tubes")):
        frame = getattr(scenes, name)
        if not frame.is_empty():
            kept[name] = frame.join(kept.get(owner, frame.clear()).select(key), on=key, how="semi")
    names = (
        kept["videos"]["scene"].cast(pl.String)
        if "scene" in scenes.videos.columns
        else pl.Series([], dtype=pl.String)
    )
    for name in ("sensors", "sweeps"):
        frame = getattr(scenes, name)
        if not frame.is_empty():
            kept[name] = frame.filter(pl.col("scene").cast(pl.String).is_in(names.implode()))
    return replace(scenes, **kept)


def _same(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    return (
        sorted(a.columns) == sorted(b.columns)
        and a.equals(b.select(a.columns))
        and a.schema == b.select(a.columns).schema
    )


def _union(vocabularies: Sequence[dict[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    joined: dict[str, dict[str, None]] = {}
    for vocabulary in vocabularies:
        for kind, labels in vocabulary.items():
            joined.setdefault(kind, {}).update(dict.fromkeys(labels))
    return {kind: tuple(labels) for kind, labels in joined.items()}


def _renumbered(
    name: str,
    frame: pl.DataFrame,
    part: Scenes,
    offsets: dict[str, int],
    vocabularies: dict[str, tuple[str, ...]],
) -> pl.DataFrame:
    """The rows with their own and foreign numbers shifted and their labels in the joint vocabularies."""
    columns = TABLES[name].columns
    shifts = [
        pl.col(c) + offsets[target]
        for c in frame.columns
        if c in columns and columns[c].kind == "int"
        for target in [columns[c].to or (name if TABLES[name].key == (c,) else None)]
        if target in offsets
    ]
    if {"kind", "label"} <= set(frame.columns):
        shifts.append(_relabelled(part.meta.vocabularies, vocabularies))
    return frame.with_columns(shifts)


def _relabelled(old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]) -> pl.Expr:
    """`label` by name in the new vocabularies; kinds without a vocabulary keep their numbers."""
    label = pl.col("label")
    kind = pl.col("kind").cast(pl.String)
    result = label
    for name, labels in old.items():
        places = [new[name].index(value) for value in labels]
        if places != list(range(len(places))):
            moved = label.replace_strict(list(range(len(places))), places, default=None)
            result = pl.when(kind == name).then(moved).otherwise(result)
    return result.alias("label")


def _loose(frame: pl.DataFrame) -> pl.DataFrame:
    """Dictionary columns as text, so that parts with different dictionaries can stand under each other."""
    return frame.with_columns(
        pl.col(c).cast(pl.String) for c, t in frame.schema.items() if t in (pl.Enum, pl.Categorical)
    )


def _joined_meta(metas: Sequence[Meta], vocabularies: dict[str, tuple[str, ...]]) -> Meta:
    rows: dict[str, int] = {}
    for meta in metas:
        for name, count in meta.rows_read.items():
            rows[name] = rows.get(name, 0) + count
    composites = {kind: parts for meta in metas for kind, parts in meta.composites.items()}
    return Meta(
        dataset=" + ".join(dict.fromkeys(meta.dataset for meta in metas)),
        licence="; ".join(dict.fromkeys(meta.licence for meta in metas)),
        vocabularies=vocabularies,
        composites=composites,
        source_digest=" ".join(dict.fromkeys(meta.source_digest for meta in metas)),
        rows_read=rows,
    )


TABLE_NAMES = tuple(f.name for f in fields(TableSet) if f.name in TABLES)
