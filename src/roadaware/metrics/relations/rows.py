"""Relations as arrays: subject, predicate, object and time, with the boxes of both tubes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import TableSet

CATEGORY, PREDICATE = "category", "predicate"


@dataclass(frozen=True, eq=False)
class Tracks:
    """The boxes of tubes, by tube and frame.

    Args:
        tube: (n,) number of each tube, increasing.
        offsets: (n + 1,) where the boxes of each tube begin.
        frames: (m,) frame of each box, increasing in a tube.
        boxes: (m, 4) corners in pixels.
    """

    tube: Ints
    offsets: Ints
    frames: Ints
    boxes: Floats

    def index(self, tubes: Ints) -> Ints:
        """Place of each tube number that is here."""
        return np.searchsorted(self.tube, tubes).astype(np.int64)

    def arrays(self) -> tuple[Ints, Ints, Floats]:
        """What the kernels take."""
        return self.offsets, self.frames, self.boxes


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations by video and place in the table, of ground truth or predictions.

    Args:
        relation: (n,) number of each.
        row: (n,) place in the table.
        video: (n,) index of the video.
        predicate: (n,) index in the common predicates.
        subject: (n,) index of the tube in `tracks`, like the next.
        object: (n,) index of the tube.
        triplet: (n,) number that category, predicate and category have in common, on both sides.
        start: (n,) first frame.
        end: (n,) frame after the last.
        score: (n,) of predictions; ones of ground truth.
        pair_score: (n,) product of the scores of both tubes; ones where they have none.
        tracks: boxes of the tubes.
    """

    relation: Ints
    row: Ints
    video: Ints
    predicate: Ints
    subject: Ints
    object: Ints
    triplet: Ints
    start: Ints
    end: Ints
    score: Floats
    pair_score: Floats
    tracks: Tracks

    def __len__(self) -> int:
        return len(self.relation)

    def taken(self, rows: npt.NDArray[np.generic]) -> Relations:
        """Some of the relations, in the order of `rows`, which are places or marks."""
        names = [name for name in self.__dataclass_fields__ if name != "tracks"]
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def starts(self, n_videos: int) -> Ints:
        """(V + 1,) where the relations of each video begin; they must stand by video."""
        return np.searchsorted(self.video, np.arange(n_videos + 1)).astype(np.int64)


@dataclass(frozen=True)
class Names:
    """Map from the class numbers of one side to numbers that both sides share.

    Args:
        videos: the videos of the ground truth.
        predicates: common names, those of the ground truth first.
        categories: common names, those of the ground truth first.
    """

    videos: tuple[str, ...]
    predicates: tuple[str, ...]
    categories: tuple[str, ...]


def merge_names(truth: TableSet, claims: TableSet) -> Names:
    """The names of both sides; where one side does not name its numbers, they are those of the other."""
    videos = tuple(truth.videos["video"].cast(pl.String).to_list())
    found = []
    for kind, numbers in ((PREDICATE, _predicates), (CATEGORY, _categories)):
        given = claims.meta.vocabularies.get(kind, ())
        first = _vocabulary(truth, kind, int(numbers(truth).max(initial=-1)) + 1, given)
        second = _vocabulary(claims, kind, int(numbers(claims).max(initial=-1)) + 1, first)
        found.append(tuple(dict.fromkeys([*first, *second])))
    return Names(videos, *found)


def extract_relations(
    tables: TableSet,
    names: Names,
    *,
    tracks: Tracks | None = None,
    category: tuple[Ints, Ints] | None = None,
    relations: pl.DataFrame | None = None,
) -> Relations:
    """The relations of the videos of the ground truth as arrays; those of other videos are not taken.

    Args:
        tables: ground truth or predictions.
        names: of both.
        tracks: boxes of the tubes (default: those of `tables`).
        category: tubes, increasing, and their common categories (default: those of `tables`).
        relations: the rows (default: those of `tables`).

    Raises:
        InputError: if a relation has no time, a prediction no score, or a tube two categories or two boxes in
            a frame.
    """
    # The rows, each with first and last frame.
    rows = tables.relations if relations is None else relations
    side = "claimed" if tables.claimed else "true"
    for column in ("start_frame", "end_frame"):
        if not rows.is_empty() and (column not in rows.columns or rows[column].null_count()):
            raise InputError(f"{side} relations need {column} in every row")
    if rows.is_empty():
        rows = rows.with_columns(start_frame=pl.lit(None, pl.Int64), end_frame=pl.lit(None, pl.Int64))
    at = {name: i for i, name in enumerate(names.videos)}
    video = np.array([at.get(name, -1) for name in rows["video"].cast(pl.String)], dtype=np.int64)
    order = np.argsort(video, kind="stable")
    order = order[video[order] >= 0]
    subject, object_ = (_ints(rows[side])[order] for side in ("subject", "object"))
    tracks = tracks or extract_tracks(tables, np.unique(np.concatenate([subject, object_])))
    labelled, label = map_categories(tables, names) if category is None else category
    place = _places(tracks.tube, labelled)
    of = np.where(place >= 0, np.append(label, -1)[place], -1)
    subject, object_ = tracks.index(subject), tracks.index(object_)
    predicate = _common(tables, PREDICATE, names.predicates, _ints(rows["predicate"])[order])
    width = len(names.categories) + 1
    triplet = ((of[subject] + 1) * len(names.predicates) + predicate) * width + of[object_] + 1
    score = np.ones(len(order))
    if tables.claimed:
        score = _scores(rows)[order]
    weight = _tube_scores(tables, tracks)
    return Relations(
        _ints(rows["relation"])[order],
        order.astype(np.int64),
        video[order],
        predicate,
        subject,
        object_,
        triplet,
        _ints(rows["start_frame"])[order],
        _ints(rows["end_frame"])[order],
        score,
        weight[subject] * weight[object_],
        tracks,
    )


def extract_tracks(tables: TableSet, tubes: Ints) -> Tracks:
    """The boxes of some tubes, by tube and frame.

    Args:
        tables: with `boxes`.
        tubes: (n,) their numbers, increasing.

    Raises:
        InputError: if a tube has two boxes in one frame.
    """
    table = tables.boxes
    if "tube" not in table.columns or not len(tubes):
        return Tracks(tubes, np.zeros(len(tubes) + 1, np.int64), np.zeros(0, np.int64), np.zeros((0, 4)))
    if table["tube"].null_count():
        table = table.filter(pl.col("tube").is_not_null())
    owner = _places(_ints(table["tube"]), tubes)
    frames = _ints(table["frame"])
    boxes = np.empty((len(table), 4))
    for i, corner in enumerate(CORNERS):
        boxes[:, i] = table[corner].to_numpy()
    if (owner < 0).any():
        kept = owner >= 0
        owner, frames, boxes = owner[kept], frames[kept], boxes[kept]
    step = np.diff(owner)
    if not ((step > 0) | ((step == 0) & (np.diff(frames) > 0))).all():
        order = np.lexsort((frames, owner))
        owner, frames, boxes = owner[order], frames[order], boxes[order]
        twice = np.flatnonzero((owner[1:] == owner[:-1]) & (frames[1:] == frames[:-1]))
        if len(twice):
            raise InputError(
                f"tube {tubes[owner[twice[0]]]} has two boxes in frame {frames[twice[0]]}",
                hint="a tube of a relation has one box a frame",
            )
    return Tracks(tubes, np.searchsorted(owner, np.arange(len(tubes) + 1)).astype(np.int64), frames, boxes)


def map_categories(tables: TableSet, names: Names) -> tuple[Ints, Ints]:
    """Tubes with a category, by number, and their categories as numbers that both sides have in common.

    Raises:
        InputError: if a tube has two categories.
    """
    labels = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == CATEGORY)
    tubes = _ints(labels["tube"])
    if len(np.unique(tubes)) < len(tubes):
        twice = labels.filter(pl.col("tube").is_duplicated())["tube"].unique().sort().head(5).to_list()
        raise InputError(f"tubes have several labels of the kind '{CATEGORY}', first {twice}")
    common = _common(tables, CATEGORY, names.categories, _ints(labels["label"]))
    order = np.argsort(tubes, kind="stable")
    return tubes[order], common[order]


def _scores(rows: pl.DataFrame) -> Floats:
    """The scores of predictions; a file's own numbers where it had others than those in [0, 1]."""
    if rows.is_empty():
        return np.zeros(0)
    if "score" not in rows.columns or rows["score"].null_count():
        raise InputError("predicted relations need a score in every row")
    own = "claimed_score" if "claimed_score" in rows.columns else "score"
    return np.array(rows[own].to_numpy(), dtype=np.float64)


def _tube_scores(tables: TableSet, tracks: Tracks) -> Floats:
    """(n,) the scores of the tubes, 1 where they have none."""
    scores = np.ones(len(tracks.tube))
    if not tables.claimed or "score" not in tables.tubes.columns:
        return scores
    table = tables.tubes.select("tube", "score").drop_nulls()
    place = _places(_ints(table["tube"]), tracks.tube)
    scores[place[place >= 0]] = table["score"].to_numpy()[place >= 0]
    return scores


def _predicates(tables: TableSet) -> Ints:
    return _ints(tables.relations["predicate"])


def _categories(tables: TableSet) -> Ints:
    return _ints(tables.tube_labels.filter(pl.col("kind").cast(pl.String) == CATEGORY)["label"])


def _vocabulary(tables: TableSet, kind: str, size: int, other: Sequence[str]) -> tuple[str, ...]:
    """The names of a kind; of unnamed numbers the other side's, and their digits beyond those."""
    named = tables.meta.vocabularies.get(kind) or other
    return (*named, *(str(i) for i in range(len(named), size)))


def _common(tables: TableSet, kind: str, common: Sequence[str], numbers: Ints) -> Ints:
    """Numbers of one side as common ones."""
    place = {name: i for i, name in enumerate(common)}
    names = _vocabulary(tables, kind, int(numbers.max(initial=-1)) + 1, common)
    return np.array([place[name] for name in names], dtype=np.int64)[numbers]


def _places(values: Ints, keys: Ints) -> Ints:
    """Where each value stands among increasing keys, -1 where nowhere; values come in runs."""
    if not len(values) or not len(keys):
        return np.full(len(values), -1, dtype=np.int64)
    begins = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    place = np.searchsorted(keys, values[begins])
    place[place == len(keys)] = 0
    place = np.where(keys[place] == values[begins], place, -1)
    return np.repeat(place, np.diff(np.append(begins, len(values)))).astype(np.int64)


def _ints(values: pl.Series) -> Ints:
    """A copy that may be written to: kernels compile once more for arrays that may not."""
    return np.array(values.to_numpy(), dtype=np.int64)
