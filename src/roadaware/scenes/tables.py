"""Scenes, the ground truth of a set of videos, and Predictions, the output of a model under the same keys
with scores: tables checked when made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import TABLES, check_labels, check_references, create_empty_table, validate_table


@dataclass(frozen=True)
class Meta:
    """Facts about a whole set of tables: vocabularies, dataset, notes.

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
        wrong += [name for name in named if name not in wrong and not _all_lists_of_names(plain[name])]
        if "rows_read" not in wrong and not all(type(n) is int for n in plain["rows_read"].values()):
            wrong.append("rows_read")
        if wrong:
            raise InputError(f"meta: {', '.join(wrong)} of the wrong kind or with a name twice; see `Meta`")
        for name in named:
            plain[name] = {kind: tuple(labels) for kind, labels in plain[name].items()}
        for name, value in plain.items():
            object.__setattr__(self, name, value)


def _all_lists_of_names(lists: dict[str, Any]) -> bool:
    """Whether each is a list of texts that differ."""
    return all(
        isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
        for names in lists.values()
    )


def _table(name: str) -> Any:
    return field(default_factory=lambda: create_empty_table(name))


@dataclass(frozen=True, eq=False, repr=False)
class TableSet:
    """Tables under the laws of `schema`; the common ground of Scenes and Predictions.

    Raises:
        InputError: on construction, if a table breaks a law; see `checks`.
    """

    predicted: ClassVar[bool] = False

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
            object.__setattr__(
                self, name, validate_table(name, getattr(self, name), predicted=self.predicted)
            )
        present = self.tables() if not self.predicted else self.filled()
        check_references(present)
        check_labels(present, self.meta.vocabularies)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by name, empty ones too."""
        return {name: getattr(self, name) for name in TABLES}

    def filled(self) -> dict[str, pl.DataFrame]:
        """The tables that have rows."""
        return {name: frame for name, frame in self.tables().items() if not frame.is_empty()}

    def with_tables(self, **changes: Any) -> Self:
        """A copy with some tables (or `meta`) replaced, checked again."""
        return replace(self, **changes)

    @classmethod
    def from_tables(cls, other: TableSet) -> Self:
        """The same tables as an object of this class, not checked again.

        Args:
            other: Scenes for Scenes, Predictions for Predictions.

        Raises:
            UsageError: if it is of the other kind.
        """
        if not isinstance(other, TableSet) or other.predicted != cls.predicted:
            raise UsageError(f"{cls.__name__} are not made of {type(other).__name__}")
        found = object.__new__(cls)
        for name in (*TABLES, "meta"):
            object.__setattr__(found, name, getattr(other, name))
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableSet) or self.predicted != other.predicted:
            return NotImplemented
        return self.meta == other.meta and all(
            _same(f, other.tables()[name]) for name, f in self.tables().items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(frame):,} {name}" for name, frame in self.filled().items())
        return f"{type(self).__name__}({self.meta.dataset or 'unnamed'}: {sizes or 'empty'})"


@dataclass(frozen=True, eq=False, repr=False)
class Scenes(TableSet):
    """Ground truth: videos, frames, boxes, tubes and their labels, and the samples cut from them."""

    def only(self, videos: Iterable[str]) -> Scenes:
        """The part that belongs to the given videos, in the tables' order.

        What was rejected, and `meta`, tell of the reading and stay whole. Samples that name neither a
        video nor a tube belong to no part.

        Raises:
            UsageError: if a video is unknown.
        """
        wanted = [videos] if isinstance(videos, str) else list(dict.fromkeys(videos))
        known = set(self.videos["video"].cast(pl.String).to_list())
        unknown = [video for video in wanted if video not in known]
        if unknown:
            raise UsageError(
                f"no video {unknown[:5]} among the {len(known)} of {self.meta.dataset or 'this set'}"
            )
        return filter_videos(self, wanted)

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
            rest = f"there are {names}" if names else "none of them names a split, so ask for no split"
            raise UsageError(f"no video is in split '{name}'; {rest}")
        return held


Tables = TypeVar("Tables", bound=TableSet)


def filter_videos(tables: Tables, videos: Sequence[str]) -> Tables:
    """The rows of every table that belong to some videos; of tables without a video, by what they point to."""
    kept: dict[str, Any] = {}
    for name, frame in tables.filled().items():
        if "video" in frame.columns:
            kept[name] = frame.filter(pl.col("video").cast(pl.String).is_in(videos))
    for name, key, owner in (("labels", "box", "boxes"), ("tube_labels", "tube", "tubes")):
        frame = getattr(tables, name)
        if not frame.is_empty() and owner in kept:
            kept[name] = frame.filter(pl.col(key).is_in(kept[owner][key].implode()))
    if not tables.samples.is_empty():
        tubes = kept.get("tubes", tables.tubes)["tube"].implode()
        named = {"video": pl.col("video").cast(pl.String).is_in(videos), "tube": pl.col("tube").is_in(tubes)}
        owned = [expression for c, expression in named.items() if c in tables.samples.columns]
        kept["samples"] = tables.samples.filter(pl.coalesce(*owned, pl.lit(False)))
    held = kept.get("videos", tables.videos)
    names = held["scene"].cast(pl.String) if "scene" in held.columns else pl.Series([], dtype=pl.String)
    for name in ("sensors", "sweeps"):
        frame = getattr(tables, name)
        if not frame.is_empty():
            kept[name] = frame.filter(pl.col("scene").cast(pl.String).is_in(names.implode()))
    return replace(tables, **kept)


def filter_boxes(tables: Tables, keep: pl.Expr) -> Tables:
    """The tables with those boxes for which an expression holds, and the labels of these; tubes stay."""
    boxes = tables.boxes.filter(keep)
    if len(boxes) == len(tables.boxes):
        return tables
    labels = tables.labels
    if not labels.is_empty():
        labels = labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    return replace(tables, boxes=boxes, labels=labels)


def label_tracks(boxes: pl.DataFrame, labels: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The table `tube_labels`: the class of each track all of whose boxes have one and the same.

    Args:
        boxes: with `box` and `tube`.
        labels: at most one for each box.
        kind: of the labels.
    """
    owned = boxes.select("box", "tube").drop_nulls("tube")
    owned = owned.join(labels.select("box", "label"), on="box", how="left", maintain_order="left")
    held = owned.group_by("tube", maintain_order=True).agg(
        pl.col("label").first(), one=(pl.col("label").n_unique() == 1) & (pl.col("label").null_count() == 0)
    )
    return held.filter("one").select("tube", kind=pl.lit(kind), label="label")


def rename_labels(tables: Tables, names: Mapping[str, str]) -> Tables:
    """The tables with labels called otherwise; of labels that come to one name the best scored one of a box or tube stays.

    Args:
        tables: whose scores are of single labels, not dense.
        names: label to its other name; labels that are not named keep theirs.
    """
    vocabularies, rows = {}, []
    for kind, labels in tables.meta.vocabularies.items():
        called = [names.get(label, label) for label in labels]
        vocabularies[kind] = tuple(dict.fromkeys(called))
        rows += [(kind, n, vocabularies[kind].index(name)) for n, name in enumerate(called)]
    places = pl.DataFrame(rows, schema={"kind": pl.String, "label": pl.Int64, "new": pl.Int64}, orient="row")
    changed: dict[str, Any] = {}
    for table, key in (("labels", ["box"]), ("tube_labels", ["tube"]), ("frame_labels", ["video", "frame"])):
        frame: pl.DataFrame = getattr(tables, table)
        if frame.is_empty():
            continue
        named = frame.with_columns(pl.col("kind").cast(pl.String), pl.col("label").cast(pl.Int64))
        named = named.join(places, on=["kind", "label"], how="left", maintain_order="left").with_columns(
            label="new"
        )
        named = named.drop("new").with_row_index("_row")
        if "score" in named.columns:
            named = named.sort("score", descending=True, nulls_last=True, maintain_order=True)
        named = (
            named.unique([*key, "kind", "label"], keep="first", maintain_order=True).sort("_row").drop("_row")
        )
        changed[table] = named.cast({"kind": frame.schema["kind"], "label": frame.schema["label"]})
    return replace(
        tables, **changed, meta=replace(tables.meta, vocabularies=tables.meta.vocabularies | vocabularies)
    )


def _same(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    return (
        sorted(a.columns) == sorted(b.columns)
        and a.equals(b.select(a.columns))
        and a.schema == b.select(a.columns).schema
    )


# Predictions: what a model predicts, under the same keys as the ground truth, plus scores.


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(TableSet):
    """Predictions: the tables of Scenes with `score`, `scores` and `ready_s`."""

    predicted: ClassVar[bool] = True


def build_sample_predictions(
    samples: pl.DataFrame, scores: npt.NDArray[np.floating], meta: Meta | None = None
) -> Predictions:
    """Predictions for the rows of a `samples` table, in their order.

    Args:
        samples: (n rows) with the column `sample`.
        scores: (n, k) or (n,) the scores of each sample.
        meta: what holds for all of them.

    Raises:
        InputError: if the numbers of rows differ, or a score is not finite.
    """
    scores = np.asarray(scores, dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2 or scores.shape[1] < 1:
        raise InputError(f"scores should be (n, k) with k at least 1, not {scores.shape}")
    if len(scores) != len(samples):
        raise InputError(
            f"{len(scores)} rows of scores for {len(samples)} samples",
            hint="scores without keys are joined by row: one row per sample, in extraction order",
        )
    column = pl.Series("scores", scores, dtype=pl.Array(pl.Float64, scores.shape[1]))
    return Predictions(samples=samples.select("sample").with_columns(column), meta=meta or Meta())


def sample_scores(
    predictions: Predictions, scenes: Scenes, asked: pl.DataFrame | None = None
) -> npt.NDArray[np.float64]:
    """The (n, k) scores in the row order of `scenes.samples`, or of some of them.

    Args:
        predictions: at least of the samples that are asked for, and of none but those of the scenes.
        scenes: with `samples`.
        asked: (n rows) some of the scenes' samples (default: all).

    Raises:
        InputError: if samples that are asked for are missing from the predictions, others are foreign to
            the scenes, or rows of scores have different lengths or gaps.
    """
    asked = scenes.samples if asked is None else asked
    predicted = predictions.samples
    if "scores" not in predicted.columns:
        raise InputError(f"the predictions' samples have no scores; their columns are {predicted.columns}")
    joined = asked.select("sample").join(
        predicted.select("sample", "scores"), on="sample", how="left", maintain_order="left"
    )
    missing = joined.filter(pl.col("scores").is_null())
    foreign = predicted.join(scenes.samples, on="sample", how="anti")
    if len(missing) or len(foreign):
        raise InputError(
            f"predictions and samples differ: {len(missing)} samples without scores, "
            f"{len(foreign)} scores of unknown samples",
            hint=f"first samples without scores: {missing['sample'].head(5).to_list()}; "
            f"first unknown samples: {foreign['sample'].head(5).to_list()}",
        )
    # A column of lists or arrays as (n, k) numbers
    scores = joined["scores"]
    scores = scores.arr.to_list() if isinstance(scores.dtype, pl.Array) else scores
    widths = scores.list.len().unique().sort().to_list()
    if len(widths) > 1:
        raise InputError(f"every sample needs the same number of scores; found {widths}")
    values = scores.explode()
    if widths and values.null_count():
        raise InputError(f"{values.null_count()} scores are null")
    return values.to_numpy().astype(np.float64).reshape(len(scores), widths[0] if widths else 0)
