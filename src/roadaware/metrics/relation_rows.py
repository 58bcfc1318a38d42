"""Relations as arrays: choices of published evaluators, both tubes with their boxes, counts that merge and resample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.config import check_flags, check_limits, check_not_negative, check_words, is_count
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import Judged, Measured
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import TableSet

Judgement = Literal["tubelets", "frames", "both"]
Setting = Literal["sgdet", "predcls"]
Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class RelationConfig:
    """How predicted relations are judged; the defaults are what `default` gives.

    Args:
        judges: relations as a whole (`tubelets`), as they stand in each frame (`frames`), or both.
        setting: boxes and categories are the predicted ones (`sgdet`), or those of the ground-truth tubes that the
            predictions are about (`predcls`); see `predcls.on_true_tubes`.
        recall_at: how many of the best predictions of a video or a frame recall looks at.
        precision_at: how many of the best distinct triplets of a video precision looks at.
        top_returns: how many of the best predictions of a video are judged as tubelets; None judges all.
        viou_threshold: least overlap in space and time, of subject and of object, of a hit.
        pixel_offset: pixels added to widths and heights where tubelets are compared.
        precision: what recall, precision and the points of average precision of tubelets are rounded to.
        predicates_per_pair: how many predicates of a pair of tubes are judged in a frame; None judges all.
        frame_top: how many predictions of a frame are judged; None judges all.
        frame_min_score: predictions that do not score higher are dropped from those of a frame; None drops none.
        iou_threshold: least overlap, of subject and of object, of a hit in a frame.
        frame_pixel_offset: pixels added to widths and heights where boxes of a frame are compared.
        frame_precision: what boxes of a frame and their overlap are rounded to.
        several_truths: whether one prediction finds every ground-truth triplet of a frame that it overlaps enough, or
            only the one it overlaps most.
        repeated_truth: whether ground-truth relations that say the same of the same tubes in a frame are asked for
            `each`, or `once`.
        empty_frames: a frame without a ground-truth relation has a recall of 0 (`zero`) or none (`skip`).
        silent_frames: a frame in which no prediction stands finds nothing (`empty`), or is judged by the predictions
            and boxes of the last frame before it that had some, of whatever video (`carried`), as the
            published code does by leaving a variable as it was. No named configuration carries.
        averaging: what the plain names of recall in frames hold: the mean over frames (`per_image`), or the
            share of all ground-truth triplets (`pooled`).
    """

    judges: Judgement = "both"
    setting: Setting = "sgdet"
    recall_at: tuple[int, ...] = (20, 50, 100)
    precision_at: tuple[int, ...] = (1, 5, 10)
    top_returns: int | None = None
    viou_threshold: float = 0.5
    pixel_offset: float = 0.0
    precision: Precision = "float64"
    predicates_per_pair: int | None = None
    frame_top: int | None = None
    frame_min_score: float | None = None
    iou_threshold: float = 0.5
    frame_pixel_offset: float = 0.0
    frame_precision: Precision = "float64"
    several_truths: bool = False
    repeated_truth: Literal["each", "once"] = "once"
    empty_frames: Literal["zero", "skip"] = "skip"
    silent_frames: Literal["empty", "carried"] = "empty"
    averaging: Literal["per_image", "pooled"] = "per_image"

    def __post_init__(self) -> None:
        check_words(self)
        check_flags(self)
        for name in ("recall_at", "precision_at"):
            counts = getattr(self, name)
            if not counts or not all(is_count(n) for n in counts) or len(set(counts)) != len(counts):
                raise UsageError(f"{name} should be different numbers from 1; got {counts!r}")
        check_limits(self, "top_returns", "predicates_per_pair", "frame_top")
        for name in ("viou_threshold", "iou_threshold"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} lies in (0, 1]; got {getattr(self, name)!r}")
        check_not_negative(self, "pixel_offset", "frame_pixel_offset")
        if self.frame_min_score is not None and not math.isfinite(self.frame_min_score):
            raise UsageError(f"frame_min_score should be a number or None; got {self.frame_min_score!r}")

    @property
    def tubelets(self) -> bool:
        """Whether relations are judged as a whole."""
        return self.judges != "frames"

    @property
    def frames(self) -> bool:
        """Whether relations are judged frame by frame."""
        return self.judges != "tubelets"

    @classmethod
    def default(cls) -> RelationConfig:
        """The choices we recommend: every prediction is judged as it stands, and finds one relation at most."""
        return cls()

    @classmethod
    def vidvrd(cls) -> RelationConfig:
        """The published evaluator of relations between tubelets.

        Source: the evaluation of VidVRD-helper (Shang et al., ACM Multimedia 2017, and the challenges
        after it).
        """
        return cls(judges="tubelets", top_returns=200, pixel_offset=1.0, precision="float32")

    @classmethod
    def frame_sg(cls, predicates_per_pair: int | None) -> RelationConfig:
        """The published evaluator of scene graphs in frames.

        Args:
            predicates_per_pair: 1 "with constraint", 6 "semi constraint", None "no constraint".

        Source: the evaluation of TRACE (Teng et al., ICCV 2021) on Action Genome.
        """
        return cls(
            judges="frames",
            predicates_per_pair=predicates_per_pair,
            frame_top=100,
            frame_min_score=1e-5,  # lower ones are dropped before ranking
            frame_pixel_offset=1.0,
            frame_precision="float32",
            several_truths=True,
            repeated_truth="each",
            empty_frames="zero",
            averaging="per_image",
        )


CONFIGS: dict[str, Callable[[], RelationConfig]] = {
    "default": RelationConfig.default,
    "vidvrd": RelationConfig.vidvrd,
    "frame-sg-with": lambda: RelationConfig.frame_sg(1),
    "frame-sg-semi": lambda: RelationConfig.frame_sg(6),
    "frame-sg-no": lambda: RelationConfig.frame_sg(None),
}
"""Name of a configuration to what makes it."""


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
        categories: common names, those of the ground truth first; none where a side has no category on any tube, so that
            predicates alone are compared.
    """

    videos: tuple[str, ...]
    predicates: tuple[str, ...]
    categories: tuple[str, ...]


def merge_names(truth: TableSet, predictions: TableSet) -> Names:
    """The names of both sides; where one side does not name its numbers, they are those of the other."""
    videos = tuple(truth.videos["video"].cast(pl.String).to_list())
    found = []
    for kind, numbers in ((PREDICATE, _predicates), (CATEGORY, _categories)):
        given = predictions.meta.vocabularies.get(kind, ())
        first = _vocabulary(truth, kind, int(numbers(truth).max(initial=-1)) + 1, given)
        second = _vocabulary(predictions, kind, int(numbers(predictions).max(initial=-1)) + 1, first)
        found.append(tuple(dict.fromkeys([*first, *second])))
    # A network that knows people alone names no category: nobody else can be meant
    compared = all(len(_categories(side)) for side in (truth, predictions))
    return Names(videos, found[0], found[1] if compared else ())


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
    side = "predicted" if tables.predicted else "true"
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
    if tables.predicted:
        score = _scores(rows)[order]
    # (n,) the scores of the tubes, 1 where they have none
    scores = np.ones(len(tracks.tube))
    if not tables.predicted or "score" not in tables.tubes.columns:
        weight = scores
    else:
        table = tables.tubes.select("tube", "score").drop_nulls()
        place = _places(_ints(table["tube"]), tracks.tube)
        scores[place[place >= 0]] = table["score"].to_numpy()[place >= 0]
        weight = scores
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
    """Tubes with a category, by number, and their categories as numbers that both sides have in common; none of them where
    categories are not compared.

    Raises:
        InputError: if a tube has two categories.
    """
    labels = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == CATEGORY)
    tubes = _ints(labels["tube"])
    if len(np.unique(tubes)) < len(tubes):
        twice = labels.filter(pl.col("tube").is_duplicated())["tube"].unique().sort().head(5).to_list()
        raise InputError(f"tubes have several labels of the kind '{CATEGORY}', first {twice}")
    if not names.categories:
        return tubes[:0], tubes[:0]
    common = _common(tables, CATEGORY, names.categories, _ints(labels["label"]))
    order = np.argsort(tubes, kind="stable")
    return tubes[order], common[order]


def _scores(rows: pl.DataFrame) -> Floats:
    """The scores of predictions; a file's own numbers where it had others than those in [0, 1]."""
    if rows.is_empty():
        return np.zeros(0)
    if "score" not in rows.columns or rows["score"].null_count():
        raise InputError("predicted relations need a score in every row")
    own = "predicted_score" if "predicted_score" in rows.columns else "score"
    return np.array(rows[own].to_numpy(), dtype=np.float64)


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


_NO_TRUTH = "there is no true relation"


@dataclass(frozen=True, eq=False)
class JudgedRelations(Judged):
    """The counts of V videos, C predicates and K numbers of predictions; 0 for what the config does not judge.

    Args:
        items: (V rows) the videos, with `category`, `density` and `split`.
        config: how they were judged.
        classes: (C,) the predicates of the ground truth.
        truth: (V, C) ground-truth relations.
        hits: (V, C, K) those that the best predictions of the video find.
        ap: (V,) average precision; NaN where there is no ground-truth relation.
        tagged: (V, P) precision of the best distinct triplets; NaN where there is no ground-truth relation.
        images: (V, 2) frames that are judged, and those of them with a ground-truth triplet.
        image_sums: (V, K) sum over frames of the share of ground-truth triplets that is found.
        class_images: (V, C, 2) frames with a ground-truth triplet of the predicate, and such triplets.
        class_hits: (V, C, K) triplets that the best predictions of the frame find.
        class_sums: (V, C, K) sum over frames of the share of those of the predicate.
    """

    config_type: ClassVar[type] = RelationConfig

    config: RelationConfig
    classes: tuple[str, ...]
    truth: Ints
    hits: Ints
    ap: Floats
    tagged: Floats
    images: Ints
    image_sums: Floats
    class_images: Ints
    class_hits: Ints
    class_sums: Floats

    def merge(self, other: Self) -> Self:
        """The state of both parts together; predicates are joined by name.

        Raises:
            InputError: if they were judged by different configurations or share a video.
        """
        if self.config != other.config:
            raise InputError("the two parts were judged by different configurations")
        shared = sorted(set(self.videos) & set(other.videos))
        if shared:
            raise InputError(f"{len(shared)} videos are in both parts, first {shared[:5]}")
        classes = tuple(dict.fromkeys([*self.classes, *other.classes]))
        a, b = self._of(classes), other._of(classes)
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _arrays(self)
        }
        return replace(a, items=pl.concat([a.items, b.items], how="diagonal"), **parts)

    def only(self, kept: Bools) -> Self:
        """The state of some of the videos."""
        parts = {name: getattr(self, name)[kept] for name in _arrays(self)}
        return replace(self, items=self.items.filter(pl.Series(kept)), **parts)

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """The metrics that the config judges: of the whole, then of each predicate with ground truth.

        Source: supplement of Chaotic World, ICCV 2023, section 3.2; VidVRD-helper (tubelets); TRACE (frames).
        """
        drawn = weights.astype(np.float64)
        if self.config.tubelets:
            yield from self._tubelets(drawn)
        if self.config.frames:
            yield from self._frames(drawn)
        totals = self.truth.sum(axis=0)
        shown = np.flatnonzero(totals)
        columns = {name: _aggregate_resamples(drawn, getattr(self, name)[:, shown]) for name in _CLASS_ARRAYS}
        for place, cls in enumerate(shown):
            of_class = {name: values[:, place] for name, values in columns.items()}
            holding = int((self.truth[:, cls] > 0).sum())
            yield from self._of_class(self.classes[cls], int(totals[cls]), holding, of_class)

    def _tubelets(self, drawn: Floats) -> Iterator[Measured]:
        """Recall, average precision and precision of tags."""
        asked, n = drawn @ self.truth.sum(axis=1), int(self.truth.sum())
        found = _aggregate_resamples(drawn, self.hits.sum(axis=1))
        for k, at in enumerate(self.config.recall_at):
            yield Measured(f"recall@{at}", self._ratio(found[:, k], asked), n, reason=_NO_TRUTH)
        judged = ~np.isnan(self.ap)
        n_judged = drawn @ judged
        means = {"map": self.ap, **dict(zip(self._tags(), self.tagged.T, strict=True))}
        for name, values in means.items():
            total = drawn @ np.where(judged, values, 0.0)
            yield Measured(name, _ratio(total, n_judged), int(judged.sum()), reason=_NO_TRUTH)

    def _frames(self, drawn: Floats) -> Iterator[Measured]:
        """Recall in frames, both averages and the plain name."""
        column = 0 if self.config.empty_frames == "zero" else 1
        n_images, asked = drawn @ self.images[:, column], drawn @ self.class_images[:, :, 1].sum(axis=1)
        sums, found = drawn @ self.image_sums, _aggregate_resamples(drawn, self.class_hits.sum(axis=1))
        n = {"per_image": int(self.images[:, column].sum()), "pooled": int(self.class_images[:, :, 1].sum())}
        values = [
            {"per_image": _ratio(sums[:, k], n_images), "pooled": _ratio(found[:, k], asked)}
            for k in range(len(self.config.recall_at))
        ]
        for suffix, averaging in (("", self.config.averaging), ("_per_image",) * 2, ("_pooled",) * 2):
            which = averaging.removeprefix("_")
            for k, at in enumerate(self.config.recall_at):
                name = f"frame_recall@{at}{suffix}"
                yield Measured(name, values[k][which], n[which], reason=_NO_TRUTH)

    def _of_class(self, label: str, n: int, holding: int, totals: dict[str, Floats]) -> Iterator[Measured]:
        """Recall of one predicate; in frames, over those with a ground-truth triplet of it."""
        for k, at in enumerate(self.config.recall_at):
            if self.config.tubelets:
                value = self._ratio(totals["hits"][:, k], totals["truth"])
                yield Measured(f"recall@{at}", value, n, label, _NO_TRUTH, holding=holding)
        for k, at in enumerate(self.config.recall_at):
            if self.config.frames:
                found, which = (
                    ("class_sums", 0) if self.config.averaging == "per_image" else ("class_hits", 1)
                )
                value = _ratio(totals[found][:, k], totals["class_images"][:, which])
                yield Measured(f"frame_recall@{at}", value, n, label, _NO_TRUTH, holding=holding)

    def _tags(self) -> list[str]:
        return [f"precision@{n}" for n in self.config.precision_at]

    def _ratio(self, part: Floats, whole: Floats) -> Floats:
        """Shares, rounded as the config says; NaN where there is nothing."""
        return _ratio(part, whole, np.float32 if self.config.precision == "float32" else np.float64)

    def _of(self, classes: tuple[str, ...]) -> Self:
        """The same with other classes; those it lacks have nothing."""
        place = {name: i for i, name in enumerate(classes)}
        columns = [place[name] for name in self.classes]
        changed: dict[str, Any] = {}
        for name in _CLASS_ARRAYS:
            array = getattr(self, name)
            changed[name] = np.zeros((len(array), len(classes), *array.shape[2:]), dtype=array.dtype)
            changed[name][:, columns] = array
        return replace(self, classes=classes, **changed)


_CLASS_ARRAYS = ("truth", "hits", "class_images", "class_hits", "class_sums")


def _arrays(state: JudgedRelations) -> list[str]:
    """The names of the fields that have a row per video."""
    return [each.name for each in fields(state) if isinstance(getattr(state, each.name), np.ndarray)]


def _aggregate_resamples(drawn: Floats, values: npt.NDArray[Any]) -> Floats:
    """(resamples, ...) sums over the videos of each draw.

    Args:
        drawn: (resamples, V).
        values: (V, ...).
    """
    flat = values.reshape(len(values), int(np.prod(values.shape[1:]))).astype(np.float64)
    return (drawn @ flat).reshape(len(drawn), *values.shape[1:])


def _ratio(part: Floats, whole: Floats, precision: type[np.floating[Any]] = np.float64) -> Floats:
    """(resamples,) shares, NaN where there is nothing."""
    a, b = part.astype(precision), whole.astype(precision)
    shares = np.divide(a, b, out=np.full(a.shape, np.nan, dtype=precision), where=b > 0)
    return shares.astype(np.float64)
