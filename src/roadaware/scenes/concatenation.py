"""Several sets of tables as one, and boxes brought to images of another size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.scenes.advice import get_advice, merge_advice, set_advice
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.schema import CORNERS, TABLES, is_blank, list_index_columns
from roadaware.scenes.tables import Meta, Predictions, Scenes, TableSet

Tables = TypeVar("Tables", bound=TableSet)
Vocabularies = Mapping[str, tuple[str, ...]]
_NUMBERED = tuple(
    name
    for name, table in TABLES.items()
    if len(table.key) == 1 and table.columns[table.key[0]].kind == "int"
)
_SHARED = ("sensors", "sweeps", "rejected")
# Half of what 64 bits hold: a shifted number stays within them.
_LARGEST = 2**62


def concat(parts: Sequence[Tables]) -> Tables:
    """One set out of several with different videos: keys are renumbered, labels remapped by name.

    Of scenes as of predictions; dense scores stay as they are, so parts of these need the same labels.

    The first part keeps its numbers. Rows of sensors, sweeps and rejections that parts share (they were
    cut from one set) are taken once. Notes are kept where all parts agree; advice of detectors that disagree
    stands under `Advice.disputed`.

    Raises:
        UsageError: if there are no parts.
        InputError: if two parts hold the same video, contradict each other, have dense scores of other
            labels, or label without a vocabulary what another part has one for.
    """
    if not parts:
        raise UsageError("concat needs at least one set of tables")
    metas = [part.meta for part in parts]
    vocabularies = _union([meta.vocabularies for meta in metas], grow=True)
    # Nothing, where the columns of dense scores mean the same in all parts
    for table in ("boxes", "frames"):
        found = [list(get_score_layout(meta, table).kinds.items()) for meta in metas]
        if any(each != found[0] for each in found):
            raise InputError(
                f"table {table}: the parts have dense scores of other labels, or in another order",
                hint="take them from the same detector",
            )
    free = dict.fromkeys(_NUMBERED, 0)
    pieces: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for part in parts:
        shifts = {name: free[name] + _room_below(name, part) for name in _NUMBERED}
        for name, frame in part.tables().items():
            if not is_blank(name, frame):
                pieces[name].append(_renumber_rows(name, frame, shifts, part.meta.vocabularies, vocabularies))
        free = {name: _next(name, part, shifts[name], free[name]) for name in _NUMBERED}
    tables: dict[str, Any] = {name: _stack_tables(name, frames) for name, frames in pieces.items() if frames}
    return type(parts[0])(**tables, meta=_joined_meta(metas, vocabularies))


def _room_below(name: str, part: TableSet) -> int:
    """How far a part's negative numbers reach below 0."""
    smallest: Any = getattr(part, name)[TABLES[name].key[0]].min()
    return max(0, -(smallest or 0))


def _next(name: str, part: TableSet, shift: int, free: int) -> int:
    """The first number behind a part's shifted ones."""
    largest: Any = getattr(part, name)[TABLES[name].key[0]].max()
    following = free if largest is None else int(largest) + shift + 1
    if following > _LARGEST:
        raise InputError(
            f"table {name}: numbers up to {largest} leave no room for those of other parts",
            hint="number its rows from 0",
        )
    return following


def _renumber_rows(
    name: str, frame: pl.DataFrame, shifts: Mapping[str, int], old: Vocabularies, new: Vocabularies
) -> pl.DataFrame:
    """The rows with their own and foreign numbers shifted and their labels in the joint vocabularies."""
    table = TABLES[name]
    changes = []
    for c, column in table.columns.items():
        target = name if table.key == (c,) else column.to or ""
        if target in shifts and column.kind == "int" and c in frame.columns:
            changes.append(pl.col(c) + shifts[target])
    for c, of in list_index_columns(name, frame):
        kinds = set(frame.filter(pl.col(c).is_not_null()).select(of.alias("of"))["of"].unique().drop_nulls())
        nameless = sorted(kinds & set(new) - set(old))
        if nameless:
            raise InputError(
                f"table {name}: {c} of {nameless} has no vocabulary in one part, and one in another",
                hint="give the part's meta the vocabulary that its numbers are indices in",
            )
        changes.append(_remap_labels(c, of, old, new))
    return frame.with_columns(changes)


def _remap_labels(c: str, of: pl.Expr, old: Vocabularies, new: Vocabularies) -> pl.Expr:
    """An index by its label's place in the new vocabularies; kinds without one keep their numbers."""
    result = pl.col(c)
    for kind, labels in old.items():
        places = [new[kind].index(label) for label in labels]
        if places != list(range(len(places))):
            moved = pl.col(c).replace_strict(
                list(range(len(places))), places, default=None, return_dtype=pl.Int64
            )
            result = pl.when(of == kind).then(moved).otherwise(result)
    return result.alias(c)


def _stack_tables(name: str, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all parts under each other, absent columns null."""
    # Dictionary columns with the union of their categories, in order; as text beside other text
    casts: dict[str, pl.DataType] = {}
    for c in dict.fromkeys(c for frame in frames for c in frame.columns):
        dtypes = [frame.schema[c] for frame in frames if c in frame.columns and frame.schema[c] != pl.Null]
        if all(isinstance(dtype, pl.Enum) for dtype in dtypes) and dtypes:
            categories = dict.fromkeys(text for dtype in dtypes for text in dtype.categories)  # type: ignore[attr-defined]
            casts[c] = pl.Enum(list(categories))
        elif len(set(dtypes)) > 1 and all(dtype in (pl.Enum, pl.Categorical, pl.String) for dtype in dtypes):
            casts[c] = pl.String()
    frames = [frame.cast({c: casts[c] for c in frame.columns if c in casts}) for frame in frames]
    if name in _SHARED:
        # Each part's rows without those that stand in an earlier part; repeats inside a part are kept
        seen = pl.Series([], dtype=pl.String)
        kept = []
        # In single precision where one part has it: poses of the vehicle in tables that older versions wrote
        single: dict[str, Any] = {
            c: pl.Float32 if dtype == pl.Float32 else pl.List(pl.Float32)
            for frame in frames
            for c, dtype in frame.schema.items()
            if getattr(dtype, "inner", dtype) == pl.Float32
        }
        for frame in frames:
            # Sorted: parts may have the same columns in another order.
            alike = frame.cast({c: kind for c, kind in single.items() if c in frame.columns})
            rows = alike.select(pl.struct(sorted(frame.columns)).struct.json_encode()).to_series()
            kept.append(frame.filter(~rows.is_in(seen.implode())))
            seen = seen.append(rows)
        frames = kept
    try:
        return pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"table {name}: the parts' columns do not fit each other: {str(error).splitlines()[0]}"
        ) from error


def _union(parts: Iterable[Vocabularies], *, grow: bool) -> dict[str, tuple[str, ...]]:
    """Every kind's labels in order of first appearance.

    Raises:
        InputError: if they may not `grow` and differ.
    """
    joined: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for kind, labels in part.items():
            known = joined.setdefault(kind, labels)
            if known != labels and not grow:
                raise InputError(f"the parts disagree on what {kind} is made of: {known} and {labels}")
            joined[kind] = tuple(dict.fromkeys((*known, *labels)))
    return joined


def _joined_meta(metas: Sequence[Meta], vocabularies: dict[str, tuple[str, ...]]) -> Meta:
    rows: dict[str, int] = {}
    sources: set[str] = set()
    for meta in metas:
        if meta.source_digest and meta.source_digest in sources:
            continue  # cut from a set whose rows are counted already
        sources.add(meta.source_digest)
        for name, count in meta.rows_read.items():
            rows[name] = rows.get(name, 0) + count
    first = metas[0].notes
    joined = Meta(
        dataset=_join_unique_texts((meta.dataset for meta in metas), " + "),
        licence=_join_unique_texts((meta.licence for meta in metas), "; "),
        vocabularies=vocabularies,
        composites=_union([meta.composites for meta in metas], grow=False),
        source_digest=_join_unique_texts((meta.source_digest for meta in metas), " "),
        rows_read=rows,
        notes={key: first[key] for key in first if all(meta.notes.get(key) == first[key] for meta in metas)},
    )
    return set_advice(joined, merge_advice([get_advice(meta) for meta in metas]))


def _join_unique_texts(texts: Iterable[str], separator: str) -> str:
    """The texts, each once, taken apart first where they were joined before."""
    return separator.join(dict.fromkeys(part for text in texts for part in text.split(separator) if part))


# Boxes in pixels of images of another size: predictions in those of the ground truth, one detector's in another's.

Sizes = Mapping[str, tuple[int, int]]
"""Width and height in pixels of the images of each video."""


def rescale_predictions(predictions: Predictions, scenes: Scenes) -> Predictions:
    """The predictions with their boxes in pixels of the scenes' images, and videos of that size.

    Boxes of videos whose size the predictions lack are in the scenes' pixels already.

    Args:
        predictions: boxes, and `videos` with the size of the images that they are pixels of.
        scenes: `videos` with the size of the original images.

    Raises:
        InputError: if the predictions state a video's size and the scenes do not.
    """
    own, asked = get_image_sizes(predictions), get_image_sizes(scenes)
    silent = [video for video in own if video not in asked]
    if silent:
        raise InputError(
            f"the truth does not say how large the images of {silent[:5]} are",
            hint="give its table `videos` width_px and height_px",
        )
    if not {"width_px", "height_px"} <= set(predictions.videos.columns):
        return predictions
    boxes = predictions.boxes
    scale = compute_scale_factors(boxes["video"], own, asked)
    # In double precision: single precision would move corners by their last bits twice.
    boxes = boxes.with_columns(
        (boxes[side].cast(pl.Float64) * pl.Series(scale[:, k])).cast(boxes.schema[side])
        for k, side in enumerate(CORNERS)
    )
    return predictions.with_tables(boxes=boxes, videos=set_image_sizes(predictions.videos, asked))


def get_image_sizes(tables: TableSet) -> dict[str, tuple[int, int]]:
    """Width and height in pixels of the images of each video, where both are known, as `videos` states."""
    if not {"width_px", "height_px"} <= set(tables.videos.columns):
        return {}
    known = tables.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px").drop_nulls()
    return {video: (width, height) for video, width, height in known.iter_rows() if width > 0 and height > 0}


def set_image_sizes(videos: pl.DataFrame, sizes: Sizes) -> pl.DataFrame:
    """The table of videos with these sizes, null for videos that have none."""
    names = videos["video"].cast(pl.String).to_list()
    sides = [[sizes[name][k] if name in sizes else None for name in names] for k in range(2)]
    return videos.with_columns(
        pl.Series(side, values, dtype=pl.Int64)
        for side, values in zip(("width_px", "height_px"), sides, strict=True)
    )


def compute_scale_factors(videos: pl.Series, own: Sizes, asked: Sizes) -> npt.NDArray[np.float64]:
    """(n, 4) factors of x1, y1, x2, y2 to pixels of images of the requested sizes.

    Args:
        videos: (n,) the video of each box.
        own: the sizes that boxes are in.
        asked: the others; boxes of a video that either leaves out stay as they are.
    """
    names = videos.cast(pl.String)
    different = names.unique(maintain_order=True).to_list()
    scale = np.ones((len(different), 4))
    for k, name in enumerate(different):
        if name in own and name in asked:
            scale[k] = np.tile(np.divide(asked[name], own[name]), 2)
    rows: npt.NDArray[np.float64] = scale[names.cast(pl.Enum(different)).to_physical().to_numpy()]
    return rows
