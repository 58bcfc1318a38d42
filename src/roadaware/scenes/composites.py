"""Composite labels: their scores as a product of marginals, and their labels from those they are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
import polars as pl

from roadaware.arrays import Ints, Numbers
from roadaware.errors import InputError, UsageError
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout, set_score_layout
from roadaware.scenes.factors import extract_segments, split_tubes_by_label
from roadaware.scenes.tables import Meta, Predictions, Scenes

# Which labels a composite label is made of: a duplex of agent and action, an event, or any other.

Children = Mapping[str, Sequence[Sequence[int]]]
Composites = Mapping[str, Sequence[str]]

NOTE = "children"
ROAD: dict[str, tuple[str, ...]] = {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}
"""The composites of the ROAD paper."""


@dataclass(frozen=True)
class Composition:
    """One kind of composite label.

    Args:
        kind: its name, such as `event`.
        of: the kinds it is made of, in order.
        children: (labels, kinds) for each composite label the index of its label of each kind.
    """

    kind: str
    of: tuple[str, ...]
    children: Ints


def find_compositions(
    meta: Meta, children: Children | None = None, composites: Composites | None = None
) -> tuple[Composition, ...]:
    """The composites of a set, with the labels each of their labels is made of.

    Args:
        meta: its `composites` and `notes["children"]` hold unless others are given; its vocabularies are
            what the numbers are indices in.
        children: composite kind to (labels, kinds) indices, in the order of its vocabulary.
        composites: composite kind to the kinds it is made of; those of `meta`, else those of ROAD.

    Returns:
        One composition for each kind that `children` names, in its order.

    Raises:
        InputError: if a composite has no kinds, or an index leaves its vocabulary.
    """
    listed = children if children is not None else meta.notes.get(NOTE, {})
    kinds = composites if composites is not None else {**ROAD, **meta.composites}
    if not isinstance(listed, Mapping):
        raise InputError(f"the lists of children should go by composite kind, not be {type(listed).__name__}")
    return tuple(_composition(kind, rows, kinds, meta.vocabularies) for kind, rows in listed.items())


def set_compositions(meta: Meta, found: Sequence[Composition]) -> Meta:
    """The meta with the parts of the composite labels."""
    children = {each.kind: each.children.tolist() for each in found}
    return replace(
        meta,
        composites={**meta.composites, **{each.kind: each.of for each in found}},
        notes={**meta.notes, NOTE: {**meta.notes.get(NOTE, {}), **children}},
    )


def _composition(
    kind: str, rows: Any, composites: Composites, vocabularies: Mapping[str, tuple[str, ...]]
) -> Composition:
    if kind not in composites:
        raise InputError(
            f"it is not known what kinds '{kind}' is made of",
            hint=f"name them in `composites`; there are {', '.join(composites) or 'none'}",
        )
    of = tuple(composites[kind])
    if len(of) < 1 or len(set(of)) < len(of) or kind in of:
        raise InputError(f"'{kind}' should be made of different kinds other than itself, not of {of}")
    # The rows as whole numbers, one of each kind
    if isinstance(rows, Sequence | np.ndarray) and not len(rows):
        children = np.zeros((0, len(of)), dtype=np.int64)
    else:
        try:
            found = np.asarray(rows)
        except ValueError as error:
            raise InputError(f"the rows of children of '{kind}' differ in length: {error}") from error
        if found.ndim != 2 or found.shape[1] != len(of) or found.dtype.kind not in "iu":
            raise InputError(
                f"the children of '{kind}' should be rows of {len(of)} indices ({', '.join(of)}), "
                f"not {found.dtype} of shape {found.shape}"
            )
        children = found.astype(np.int64)
    if kind in vocabularies and len(vocabularies[kind]) != len(children):
        raise InputError(
            f"{len(children)} rows of children for the {len(vocabularies[kind])} labels of '{kind}'",
            hint="one row for each label, in the order of the vocabulary",
        )
    for column, child in enumerate(of):
        size = len(vocabularies.get(child, ()))
        used = children[:, column]
        if child in vocabularies and len(used) and not 0 <= used.min() <= used.max() < size:
            raise InputError(
                f"the children of '{kind}' name {child} {used.min()}..{used.max()}; there are {size} labels"
            )
    return Composition(kind, of, children)


@overload
def product_of_marginals(
    predictions: Numbers, columns: Layout, children: Children, composites: Composites | None = None
) -> Numbers: ...


@overload
def product_of_marginals(
    predictions: Predictions,
    columns: None = None,
    children: Children | None = None,
    composites: Composites | None = None,
) -> Predictions: ...


def product_of_marginals(
    predictions: Numbers | Predictions,
    columns: Layout | None = None,
    children: Children | None = None,
    composites: Composites | None = None,
) -> Numbers | Predictions:
    """The predictions with the score of each composite label replaced by the product of its children's scores.

    Products are taken from left to right in the numbers' own precision, as the published code does. A
    composite of composites finds those before it replaced already. Predictions whose layout lacks a
    composite kind get its columns behind the others, in the order of `children`.

    Args:
        predictions: (n, width) scores, or Predictions with dense scores of boxes.
        columns: what the scores stand for; Predictions say so themselves.
        children: composite kind to (labels, kinds) indices; of Predictions `meta.notes["children"]`.
        composites: composite kind to the kinds it is made of; of Predictions `meta.composites`, else those of
            ROAD: a duplex of agent and action, an event of agent, action and location.

    Raises:
        InputError: if a kind has no column, an index leaves its vocabulary, or Predictions hold no scores
            or lists of children.

    Source: the ROAD paper, section 5.3.4; `JOINT_4M_MARGINALS` of the published code, for any composition.

    >>> columns = Layout({"agent": ("Ped", "Car"), "action": ("Stop",), "duplex": ("Car-Stop",)})
    >>> product_of_marginals(np.array([[0.5, 0.8, 0.5, 0.9]]), columns, {"duplex": [[1, 0]]})
    array([[0.5, 0.8, 0.5, 0.4]])
    """
    if isinstance(predictions, Predictions):
        found = find_compositions(predictions.meta, children, composites)
        old = get_score_layout(predictions.meta, "boxes")
        if not found or "scores" not in predictions.boxes.columns or not old.width:
            raise InputError(
                "a product of marginals needs dense scores of boxes and lists of children",
                hint=f"the scores are of {', '.join(old.kinds) or 'no kind'}; `meta.notes['{NOTE}']` or "
                "`children` says what each composite label is made of",
            )
        added = [each.kind for each in found if each.kind not in old.kinds]
        meta = set_compositions(predictions.meta, found)
        meta = replace(meta, notes={**meta.notes, "products_of_marginals": [each.kind for each in found]})
        meta = set_score_layout(meta, "boxes", [*old.kinds, *added])
        new = get_score_layout(meta, "boxes")
        scores = convert_to_matrix(predictions.boxes["scores"], old.width)
        wider = np.concatenate([scores, np.zeros((len(scores), new.width - old.width), np.float32)], axis=1)
        values = _products(wider, new, found)
        column = pl.Series("scores", values, dtype=pl.Array(pl.Float32, new.width))
        return predictions.with_tables(boxes=predictions.boxes.with_columns(column), meta=meta)
    if columns is None or children is None:
        raise UsageError("scores need a layout, which says what they stand for, and the lists of children")
    if predictions.ndim != 2 or predictions.shape[1] != columns.width:
        raise InputError(f"the layout has {columns.width} columns, the scores are {predictions.shape}")
    meta = Meta(vocabularies=dict(columns.kinds))
    return _products(predictions, columns, find_compositions(meta, children, composites))


def _products(scores: Numbers, columns: Layout, found: Iterable[Composition]) -> Numbers:
    # A copy, in which composites of composites find the products made before.
    result = scores.copy()
    for each in found:
        into = result[:, columns.columns(each.kind)]
        firsts = [columns.columns(child).start for child in each.of]
        # Indexing by a list makes a new array: the children's own scores stay.
        product = result[:, firsts[0] + each.children[:, 0]]
        for first, child in zip(firsts[1:], each.children.T[1:], strict=True):
            product *= result[:, first + child]
        into[:] = product
    return result


def derive_composites(
    scenes: Scenes,
    by: Literal["children", "occurrence"] = "children",
    *,
    min_tubes: int = 1,
    folds: Sequence[str] | None = None,
    composites: Composites | None = None,
    max_hole: int | None = None,
) -> Scenes:
    """The scenes with the composite labels of boxes and tubes made anew from the labels of boxes.

    A box has a composite label if it has all the labels that make it up; a box with several labels of a kind
    has every combination. A tube is a stretch of a track over which its boxes keep the composite label. What
    the scenes held of these kinds before is replaced.

    Args:
        scenes: with box labels of the kinds that the composites are made of.
        by: `children`, the combinations that the dataset lists (`meta.notes["children"]`); `occurrence`,
            those that have at least `min_tubes` tubes in each fold, in the order of the indices of their
            labels, named like "Ped-MovAway".
        min_tubes: tubes that a combination needs in each fold; at least 1.
        folds: names of splits; every split that videos name, or the whole set where they name none.
        composites: composite kind to its kinds; for location-invariant events {"event": ("agent", "action")}.
            Unless given, those of the scenes, else those of ROAD. By `children` they may name fewer kinds
            than the dataset lists: combinations that then are equal become one.
        max_hole: frames without a box that a tube lasts over, see `split_tubes_by_label`.

    Raises:
        InputError: if the scenes list no children, or a kind has no vocabulary.
        UsageError: if a fold is unknown, `by` is another word, or `min_tubes` is below 1.

    Source: the ROAD paper, section 3.3 (event labels, agent-action tubes) and A.4 (by occurrence).
    """
    if by not in ("children", "occurrence") or min_tubes < 1:
        raise UsageError(f"composites come by 'children' or 'occurrence' (with min_tubes from 1), not '{by}'")
    if by == "children":
        # The combinations that the dataset lists, for some or all of its composites
        known = {each.kind: each for each in find_compositions(scenes.meta)}
        kinds = {kind: each.of for kind, each in known.items()} if composites is None else composites
        unlisted = [kind for kind, of in kinds.items() if kind not in known or set(of) - set(known[kind].of)]
        if not kinds or unlisted:
            raise InputError(
                f"no list of children for {', '.join(unlisted) or 'any composite'}; there are {sorted(known)}",
                hint="a dataset that lists none has composites by occurrence",
            )
        found = tuple(_project_composition(known[kind], tuple(of)) for kind, of in kinds.items())
    else:
        kinds = composites or scenes.meta.composites or ROAD
        # (video, fold) pairs of the folds that a combination must occur in
        if folds is None and (
            "splits" not in scenes.videos.columns or not scenes.videos["splits"].list.len().sum()
        ):
            held = scenes.tubes.select(pl.col("video").cast(pl.String), fold=pl.lit("whole")).unique()
        else:
            if folds is not None:
                for name in folds:
                    scenes.split_videos(name)
            pairs = (
                scenes.videos.select(pl.col("video").cast(pl.String), fold="splits")
                .explode("fold")
                .drop_nulls()
            )
            held = pairs if folds is None else pairs.filter(pl.col("fold").is_in(list(folds)))
        found = tuple(
            _occurring(scenes, kind, tuple(of), held, min_tubes, max_hole) for kind, of in kinds.items()
        )
    meta = _add_composite_names(scenes.meta, found)
    kinds_made = [each.kind for each in found]
    old = scenes.labels.filter(~pl.col("kind").cast(pl.String).is_in(kinds_made))
    kind_type = old.schema["kind"]
    made = [_labels(scenes.labels, each).cast({"kind": kind_type}) for each in found]
    # The tubes of these kinds go first: their labels are indices in vocabularies that may be replaced.
    empty = scenes.labels.clear()
    bare = split_tubes_by_label(scenes.with_tables(labels=empty), kinds_made)
    whole = bare.with_tables(labels=pl.concat([old, *made], how="diagonal_relaxed"), meta=meta)
    return split_tubes_by_label(whole, kinds_made, max_hole=max_hole)


def _project_composition(each: Composition, of: tuple[str, ...]) -> Composition:
    """The combinations of some of the kinds, each once, in the order of their first."""
    columns = [each.of.index(kind) for kind in of]
    rows = dict.fromkeys(map(tuple, each.children[:, columns].tolist()))
    if columns == list(range(len(each.of))):
        return each
    return Composition(each.kind, of, np.array(list(rows), dtype=np.int64).reshape(len(rows), len(of)))


def _add_composite_names(meta: Meta, found: Sequence[Composition]) -> Meta:
    """The meta with the names of the composite labels; those that are listed already keep theirs."""
    kept = find_compositions(meta) if meta.notes.get(NOTE) else ()
    vocabularies = dict(meta.vocabularies)
    for each in found:
        if not any(
            old.kind == each.kind and old.of == each.of and np.array_equal(old.children, each.children)
            for old in kept
        ):
            words = [meta.vocabularies[kind] for kind in each.of]
            vocabularies[each.kind] = tuple(
                "-".join(words[k][i] for k, i in enumerate(row)) for row in each.children
            )
    return set_compositions(replace(meta, vocabularies=vocabularies), found)


def _combinations(labels: pl.DataFrame, of: Sequence[str]) -> pl.LazyFrame:
    """One row per box and combination of its labels of some kinds: box and one column per kind."""
    lazy = labels.lazy().with_columns(pl.col("kind").cast(pl.String))
    parts = [lazy.filter(pl.col("kind") == kind).select("box", pl.col("label").alias(kind)) for kind in of]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part, on="box")
    return joined


def _labels(labels: pl.DataFrame, each: Composition) -> pl.DataFrame:
    """The `labels` rows of one composite kind, by box and label."""
    columns = {kind: each.children[:, k] for k, kind in enumerate(each.of)}
    lists = pl.DataFrame(columns, schema=dict.fromkeys(each.of, pl.Int64)).lazy().with_row_index("label")
    rows = _combinations(labels, each.of).join(lists, on=list(each.of))
    return (
        rows.select("box", pl.lit(each.kind).alias("kind"), pl.col("label").cast(pl.Int64))
        .sort("box", "label")
        .collect()
    )


def _occurring(
    scenes: Scenes,
    kind: str,
    of: tuple[str, ...],
    folds: pl.DataFrame,
    min_tubes: int,
    max_hole: int | None,
) -> Composition:
    """The combinations with enough tubes in each fold, in the order of their indices."""
    missing = [child for child in of if child not in scenes.meta.vocabularies]
    if missing or kind in of:
        raise InputError(f"'{kind}' cannot be made of {', '.join(of)}: no vocabulary of {missing or kind}")
    rows = _combinations(scenes.labels, of).select("box", *of)
    seen = rows.select(of).unique().sort(of).collect()
    candidates = Composition(kind, of, seen.to_numpy().reshape(len(seen), len(of)))
    tubes = extract_segments(scenes.boxes, _labels(scenes.labels, candidates), [kind], max_hole=max_hole)
    videos = scenes.tubes.select(parent="tube", video=pl.col("video").cast(pl.String))
    counts = tubes.join(videos, on="parent").join(folds, on="video").group_by("label", "fold").len()
    enough = counts.filter(pl.col("len") >= min_tubes).group_by("label").len()
    kept = enough.filter(pl.col("len") == folds["fold"].n_unique())["label"].sort().to_numpy()
    return Composition(kind, of, candidates.children[kept])
