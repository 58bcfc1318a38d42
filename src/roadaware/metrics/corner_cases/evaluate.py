"""How well corner cases are detected, by group, size, slice and risk, beside trivial answers, from a state that merges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints, Ints32
from roadaware.errors import InputError, UsageError
from roadaware.io.parallel import HERE, Workers
from roadaware.metrics.corner_cases.matching import (
    AREAS,
    BLOCKS,
    NONE,
    CornerConfig,
    Detections,
    Group,
    Met,
    Objects,
    Recall,
    compute_precisions,
    compute_recalls,
    extract_objects,
    extract_proposals,
    list_group_classes,
    match_group,
)
from roadaware.metrics.corner_cases.matching import CONFIGS as CONFIGS
from roadaware.metrics.metric_state import (
    Judged,
    Measured,
    SceneResult,
    build_result,
    compute_values,
    split_slices,
)
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

AP_COLUMNS = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large")
TOTAL = "total"
_PARTS = ("common_ap", "all_ap", "all_ar", "corner_ar")
_ONE = ("corner", "novel", "all")
"""Groups of one class."""
_RARE = ("corner", "novel")
"""Groups of corner cases alone: what is right about anything else counts as false there."""
NO_TRUTH = "there is no such object"
ONLY_CORNERS = "right predictions of objects that are not asked for would count as false"


@dataclass(frozen=True, eq=False)
class JudgedCorners(Judged):
    """Images with their objects and predictions, group by group; the state of the metrics of corner cases.

    Args:
        items: one row per image.
        item: (m,) image of each object; an object that several groups ask for stands once for each.
        group: (m,) place of its group in `groups`.
        kind: (m,) its class within the group.
        above: (m,) its super-class, NONE where it has none.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which prediction met it, from 0; -1 where none did.
        prediction_item: (n,) image of each prediction of the groups whose average precision can be wanted.
        prediction_group: (n,) place of its group.
        prediction_kind: (n,) its class within the group.
        score: (n,) of each.
        hit: (n, A) bit t is set where it met an object.
        passed: (n, A) bit t is set where it does not count.
        groups: what was asked, with the classes of each.
        supers: the super-classes.
        unanswered: groups that the predictions have no answer to, each with the reason.
        complete: whether more than corner cases is annotated.
        config: how it was judged.
    """

    config_type: ClassVar[type] = CornerConfig

    item: Ints
    group: Ints
    kind: Ints
    above: Ints
    asked: Bools
    rank: npt.NDArray[np.int16]
    prediction_item: Ints
    prediction_group: Ints
    prediction_kind: Ints
    score: Floats
    hit: npt.NDArray[np.uint16]
    passed: npt.NDArray[np.uint16]
    groups: tuple[tuple[str, ...], ...]
    supers: tuple[str, ...]
    unanswered: tuple[tuple[str, str], ...]
    complete: tuple[bool, ...]
    config: CornerConfig

    def merge(self, other: Self) -> Self:
        """Both parts' images; see `Judged.merge`."""
        if self.config != other.config:
            raise InputError("the parts were judged by different configurations", hint="judge both by one")
        if [g[0] for g in self.groups] != [g[0] for g in other.groups] or self.unanswered != other.unanswered:
            raise InputError("the parts answer different groups", hint="judge both with the same predictions")
        shared = set(self.videos) & set(other.videos)
        if shared:
            raise InputError(f"both parts hold the videos {sorted(shared)[:5]}", hint="split by whole videos")
        groups = tuple(
            (a[0], *_merge_groups(a[1:], b[1:])) for a, b in zip(self.groups, other.groups, strict=True)
        )
        supers = _merge_groups(self.supers, other.supers)
        one, two = (part._renamed(groups, supers) for part in (self, other))
        n = len(one.items)
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(one, name), getattr(two, name)])
            for name in (
                "group",
                "kind",
                "above",
                "asked",
                "rank",
                "prediction_group",
                "prediction_kind",
                "score",
                "hit",
                "passed",
            )
        }
        return replace(
            one,
            **joined,
            items=pl.concat([one.items, two.items], how="diagonal_relaxed"),
            item=np.concatenate([one.item, two.item + n]),
            prediction_item=np.concatenate([one.prediction_item, two.prediction_item + n]),
            complete=(one.complete[0] or two.complete[0],),
        )

    def only(self, kept: Bools) -> Self:
        """Some of the images; see `Judged.only`."""
        place = np.cumsum(kept) - 1
        objects, predictions = kept[self.item], kept[self.prediction_item]
        names = ("group", "kind", "above", "asked", "rank")
        predicted = ("prediction_group", "prediction_kind", "score", "hit", "passed")
        cut: dict[str, Any] = {name: getattr(self, name)[objects] for name in names}
        cut |= {name: getattr(self, name)[predictions] for name in predicted}
        return replace(
            self,
            **cut,
            items=self.items.filter(pl.Series(kept)),
            item=place[self.item[objects]],
            prediction_item=place[self.prediction_item[predictions]],
        )

    def recall_alone(self) -> Self:
        """The same without average precision and total, and without the predictions that only they need."""
        names = ("prediction_item", "prediction_group", "prediction_kind", "score", "hit", "passed")
        cut: dict[str, Any] = {name: getattr(self, name)[:0] for name in names}
        return replace(self, **cut, config=replace(self.config, precision="never", total=False))

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """Every metric: of each group, then of the classes and super-classes; see `Judged.measured`.

        Source: Li et al., ECCV 2022 (CODA), section 5.1 and Table 2.
        """
        parts: dict[str, Floats] = {}
        classes: list[Measured] = []
        reasons = dict(self.unanswered)
        for place, (name, *words) in enumerate(self.groups):
            found = self._recalls[place].values(weights)
            reason = reasons.get(name)
            for each in self._group(name, words, place, found, weights, reason):
                if each.label is None:
                    parts[each.metric] = each.values
                    yield each
                else:
                    classes.append(each)
        if self.config.total:
            empty = np.full(len(weights), np.nan)
            total = np.sum([parts.get(part, empty) for part in _PARTS], axis=0)
            why = "one of its four parts is undefined"
            yield Measured(TOTAL, total, len(_PARTS), None, why, "positive")
        yield from classes

    def _group(
        self, name: str, words: Sequence[str], place: int, found: Any, weights: Ints32, reason: str | None
    ) -> Iterator[Measured]:
        """The metrics of one group: of the whole, of its classes, of super-classes."""
        recall = self._recalls[place]
        blank = np.full(len(weights), np.nan)
        for column, values in found.whole.items():
            values = blank if reason else values
            yield Measured(f"{name}_{column}", values, recall.counted(column), None, reason or NO_TRUTH)
        yield from self._precisions(name, place, weights, reason)
        if name not in _ONE:
            for kind, word in enumerate(words):
                for column, values in found.kinds[kind].items():
                    values = blank if reason else values
                    yield Measured(f"{name}_{column}", values, recall.of_kind(kind), word, reason or NO_TRUTH)
        elif name == "corner":
            for above, word in enumerate(self.supers):
                for column, values in found.above[above].items():
                    yield Measured(f"{name}_{column}", values, recall.of_super(above), word, NO_TRUTH)

    def _precisions(self, name: str, place: int, weights: Ints32, reason: str | None) -> Iterator[Measured]:
        """The average precision of a group, where it is wanted; undefined where it would say nothing."""
        how = self.config.precision
        if how == "never":
            return
        if reason is None and how == "complete" and (name in _RARE or not self.complete[0]):
            reason = ONLY_CORNERS
        recall = self._recalls[place]
        blank = np.full(len(weights), np.nan)
        found = dict.fromkeys(AP_COLUMNS, blank) if reason else self._areas_under(place, weights)
        for column, values in found.items():
            yield Measured(f"{name}_{column}", values, recall.counted(column), None, reason or NO_TRUTH)

    def _areas_under(self, place: int, weights: Ints32) -> dict[str, Floats]:
        rows = np.flatnonzero(self.prediction_group == place)
        objects = self.group == place
        n_kinds = max(1, len(self.groups[place]) - 1)
        return compute_precisions(
            *(self._video[self.prediction_item[rows]], self.prediction_kind[rows], self.score[rows]),
            *(self.hit[rows], self.passed[rows], n_kinds),
            *(self._video[self.item[objects]], self.kind[objects], self.asked[objects]),
            *(weights, self.rank.shape[2]),
        )

    @cached_property
    def _video(self) -> Ints:
        """(images,) the place of each image's video in `videos`."""
        videos = self.items["video"].cast(pl.String)
        places = list(range(len(self.videos)))
        found: Ints = videos.replace_strict(list(self.videos), places, return_dtype=pl.Int64).to_numpy()
        return found

    @cached_property
    def _recalls(self) -> tuple[Recall, ...]:
        """What was found by video and class, of each group."""
        found = []
        for place, (name, *words) in enumerate(self.groups):
            rows = np.flatnonzero(self.group == place)
            found.append(
                compute_recalls(
                    *(self._video[self.item[rows]], self.kind[rows], self.above[rows]),
                    *(self.asked[rows], self.rank[rows], len(self.videos)),
                    *(max(1, len(words)), len(self.supers) if name == "corner" else 0),
                    self.config.max_detections,
                )
            )
        return tuple(found)

    def _renamed(self, groups: tuple[tuple[str, ...], ...], supers: tuple[str, ...]) -> Self:
        """The same with classes and super-classes numbered as in larger lists."""
        kind, predicted = self.kind.copy(), self.prediction_kind.copy()
        for place, (old, new) in enumerate(zip(self.groups, groups, strict=True)):
            for numbers, group in ((kind, self.group), (predicted, self.prediction_group)):
                there = group == place
                table = np.array([new[1:].index(word) for word in old[1:]] or [0])
                numbers[there] = table[numbers[there]]
        table = np.array([*(supers.index(word) for word in self.supers), NONE])
        return replace(
            self, kind=kind, prediction_kind=predicted, above=table[self.above], groups=groups, supers=supers
        )


def build_corner_state(
    truth: Objects,
    predictions: Detections,
    met: dict[Group, Met],
    unanswered: dict[str, str],
    config: CornerConfig,
) -> JudgedCorners:
    """Build the state from the matches of each group.

    Args:
        truth: all objects.
        predictions: all predictions.
        met: by group.
        unanswered: groups without an answer to their reason.
        config: how it was judged.
    """
    parts = list(met.values())
    away = {"never": tuple(met), "complete": _RARE, "always": ()}[config.precision]
    kept = [(n, each) for n, (group, each) in enumerate(met.items()) if group not in away]
    n_areas, n_steps = len(AREAS), len(config.thresholds)

    def joined(pieces: list[Any], shape: tuple[int, ...], kind: type) -> Any:
        return np.concatenate([np.zeros((0, *shape), dtype=kind), *pieces]).astype(kind)

    return JudgedCorners(
        items=truth.items,
        item=joined([truth.item[each.rows] for each in parts], (), np.int64),
        group=joined([np.full(len(each.rows), n) for n, each in enumerate(parts)], (), np.int64),
        kind=joined([each.kind for each in parts], (), np.int64),
        above=joined([truth.above[each.rows] for each in parts], (), np.int64),
        asked=joined([each.asked for each in parts], (n_areas,), np.bool_),
        rank=joined([each.rank for each in parts], (n_areas, n_steps), np.int16),
        prediction_item=joined([predictions.item[each.predictions] for _, each in kept], (), np.int64),
        prediction_group=joined([np.full(len(each.predictions), n) for n, each in kept], (), np.int64),
        prediction_kind=joined([each.predicted for _, each in kept], (), np.int64),
        score=joined([predictions.score[each.predictions] for _, each in kept], (), np.float64),
        hit=joined([each.hit for _, each in kept], (n_areas,), np.uint16),
        passed=joined([each.passed for _, each in kept], (n_areas,), np.uint16),
        groups=tuple((group, *list_group_classes(group, truth)) for group in met),
        supers=truth.supers,
        unanswered=tuple(unanswered.items()),
        complete=(bool((~truth.corner & ~truth.marked).any()),),
        config=config,
    )


def _merge_groups(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


# The rows behind the metrics of corner cases: every object with the prediction that met it, and every class.

# Places of thresholds: 0.3 is the first, 0.5 the second.
_HALF, _FROM_HALF = 1, slice(1, None)
_CLASS_BLIND: tuple[Group, ...] = ("corner", "all")


def summarize_objects(truth: Objects, met: Mapping[Group, Met]) -> pl.DataFrame:
    """One row per counted object, in each group: `best_iou` is the overlap of the nearest prediction.

    `rank` is the place of the prediction that met it at an overlap of 0.5, from 0 and null where none did;
    `met_share` the share of the ten thresholds at which one did.
    """
    frames = []
    for group, each in met.items():
        asked = each.asked[:, 0]
        rows, rank = each.rows[asked], each.rank[asked, 0]
        place = truth.items.select("video", "frame")[truth.item[rows]]
        size = np.argmax(each.asked[asked, 1:], axis=1)
        frames.append(
            place.with_columns(
                pl.Series("group", [group] * len(rows), dtype=pl.String),
                pl.Series("box", truth.box[rows]),
                pl.Series("label", _words(truth.label[rows], truth.labels), dtype=pl.String),
                pl.Series("super_class", _words(truth.above[rows], truth.supers), dtype=pl.String),
                pl.Series("corner_case", truth.corner[rows]),
                pl.Series("size", [AREAS[1 + n] for n in size], dtype=pl.String),
                pl.Series("best_iou", each.best[asked]),
                pl.Series("rank", rank[:, _HALF].astype(np.int64)),
                pl.Series("met_share", (rank[:, _FROM_HALF] >= 0).mean(axis=1)),
            )
        )
    table = pl.concat(frames)
    return table.with_columns(pl.when(pl.col("rank") >= 0).then(pl.col("rank")).alias("rank"))


def summarize_classes(truth: Objects, met: Mapping[Group, Met]) -> pl.DataFrame:
    """One row per class of the file: how many of its objects there are, and how many are met, whatever by.

    The groups `corner` and `all` match without classes: which prediction meets an object does not depend on what
    it is called. A file in which no class is known gives no row.
    """
    frames = []
    for group, each in met.items():
        if group not in _CLASS_BLIND:
            continue
        asked = each.asked[:, 0] & (truth.label[each.rows] != NONE)
        rank = each.rank[asked, 0]
        table = pl.DataFrame(
            {
                "label": pl.Series(_words(truth.label[each.rows[asked]], truth.labels), dtype=pl.String),
                "ar": (rank[:, _FROM_HALF] >= 0).mean(axis=1),
                "ar50": (rank[:, _HALF] >= 0).astype(np.float64),
            }
        )
        counted = table.group_by("label", maintain_order=True).agg(
            pl.len().alias("objects"), pl.col("ar").mean(), pl.col("ar50").mean()
        )
        frames.append(
            counted.sort("objects", descending=True, maintain_order=True).with_columns(group=pl.lit(group))
        )
    empty = {
        "label": pl.String,
        "objects": pl.UInt32,
        "ar": pl.Float64,
        "ar50": pl.Float64,
        "group": pl.String,
    }
    return pl.concat([pl.DataFrame(schema=empty), *frames], how="diagonal_relaxed").select(
        "group", "label", "objects", "ar", "ar50"
    )


def _words(numbers: npt.NDArray[np.int64], words: tuple[str, ...]) -> list[str | None]:
    known = [*words, None]
    return [known[n] for n in numbers.tolist()]


# What answers without a detector would predict: the whole image, and boxes drawn at random.

WHOLE, RANDOM = "whole image", "random boxes"


def propose_whole_images(truth: Objects) -> Detections:
    """One prediction in each image: all of it."""
    items = np.flatnonzero(~np.isnan(truth.sizes).any(axis=1))
    corners = np.column_stack([np.zeros((len(items), 2)), truth.sizes[items]])
    return _predictions(items, corners, np.ones(len(items)))


def sample_random_boxes(truth: Objects, number: int, seed: int = 0) -> Detections:
    """So many boxes in each image, whose corners are two points drawn evenly.

    Args:
        truth: defines the images.
        number: of boxes in each.
        seed: of the boxes.
    """
    items = np.flatnonzero(~np.isnan(truth.sizes).any(axis=1))
    rng = np.random.default_rng(seed)
    points = np.sort(rng.random((len(items), number, 2, 2)), axis=2)
    corners = (points * truth.sizes[items][:, None, None]).reshape(-1, 4)
    score = np.tile(1 - np.arange(number) / number, len(items))
    return _predictions(np.repeat(items, number), corners, score)


def _predictions(items: npt.NDArray[np.int64], corners: Floats, score: Floats) -> Detections:
    nothing = np.full(len(items), NONE)
    sides = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    return Detections(items, corners, sides, nothing, np.ones(len(items), dtype=bool), nothing, score)


UNANSWERED = "unanswered groups"
"""The note of Predictions with the groups that they have no answer to, each with the reason."""
IN_SLICES = "trivial_answers_in_slices"


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: CornerConfig | None = None,
    *,
    by: Sequence[str] = (),
    resamples: int = 0,
    seed: int = 0,
    workers: Workers = HERE,
) -> SceneResult:
    """Average recall of predicted boxes on the objects of each group, as COCO's evaluator has it.

    A metric is called by its group and its name: `corner_ar` is the recall of corner cases, averaged over the
    overlaps 0.5, 0.55, ... 0.95, with at most 100 predictions an image. All lie in [0, 1], higher is better. Rows
    with a label are of a class or super-class. Groups that predictions have no answer to (the note `UNANSWERED`
    of the predictions; of predictions that do not say what they are all but `corner` and `all`) are undefined.
    `baselines` holds what the whole image and random boxes would score, `facts` their recall in each slice.

    Args:
        predictions: boxes with `score`; `common`, `novel` and labels of the kind `corner` where they say so.
        scenes: boxes with, as far as known, what `extract_objects` names.
        config: how they are judged (default: `CornerConfig.default()`).
        by: columns to slice by: `period`, `weather`, `domain`, `density`, ...
        resamples: resamples of videos for the intervals; a set of images has one image a video.
        seed: of the resamples and of the random boxes.
        workers: where resamples are worked on, and by how many at a time; values do not depend on it.

    Returns:
        whole, classes and slices; instances of `object` and `class`.

    Raises:
        InputError: if there is no ground-truth box in an annotated image, a prediction has no score, or none is about an
            image of the ground truth.
        UsageError: if `resamples` is negative or there is no such column.

    Source: Li et al., ECCV 2022 (CODA), section 5.1; Lin et al., ECCV 2014 (COCO).
    """
    config = config or CornerConfig.default()
    truth = extract_objects(scenes, area=config.area, risk=config.risk)
    predicted, foreign = extract_proposals(predictions, truth)
    # Groups that the predictions have no answer to, with the reason.
    said = predictions.meta.notes.get(UNANSWERED)
    if isinstance(said, Mapping):
        unanswered: dict[str, str] = {
            group: str(said.get(group) or "") for group in config.groups if said.get(group)
        }
    else:
        held = {"corner", "all", *({"common", "novel"} & set(predictions.boxes.columns))}
        held |= set() if predictions.labels.is_empty() else {"classes"}
        unanswered = {
            group: "the predictions do not say what they are" for group in config.groups if group not in held
        }
    met = {
        group: match_group(group, truth, _none(predicted) if group in unanswered else predicted, config)
        for group in config.groups
    }
    state = build_corner_state(truth, predicted, met, unanswered, config)
    trivial = _trivial(truth, config, seed)
    # What had to be assumed, and what has no answer.
    notes = (*truth.notes, *(f"{group}: {why}" for group, why in unanswered.items()))
    return build_result(
        state,
        config,
        by=by,
        resamples=resamples,
        seed=seed,
        notes=notes if trivial else (*notes, "images of unknown size have no trivial answers"),
        makers={
            "object": partial(summarize_objects, truth, met),
            "class": partial(summarize_classes, truth, met),
        },
        left_out=_left_out(truth, met, foreign, config),
        baselines={name: compute_values(answer) for name, answer in trivial.items()},
        facts=_facts(truth, predicted, state, trivial, by),
        workers=workers,
    )


def _none(predictions: Detections) -> Detections:
    """No prediction at all."""
    fields = ("item", "corners", "sides", "common", "novel", "label", "score")
    return Detections(**{name: getattr(predictions, name)[:0] for name in fields})


def _trivial(truth: Objects, config: CornerConfig, seed: int) -> dict[str, JudgedCorners]:
    """The states of the answers without a detector; none where no image's size is known."""
    if np.isnan(truth.sizes).all():
        return {}
    answers = {
        WHOLE: propose_whole_images(truth),
        RANDOM: sample_random_boxes(truth, config.max_detections[-1], seed),
    }
    found = {}
    for name, predictions in answers.items():
        met = {group: match_group(group, truth, predictions, config, every=True) for group in config.groups}
        found[name] = build_corner_state(truth, predictions, met, {}, config)
    return found


def _left_out(truth: Objects, met: Mapping[Group, Met], foreign: int, config: CornerConfig) -> dict[str, int]:
    most = config.max_detections[-1]
    left = {
        "predictions on images that the truth lacks": foreign,
        "objects that are marked as not asked for": int(
            (truth.marked if config.ignored == "marked" else truth.crowd).sum()
        ),
    }
    return left | {
        f"predictions of {group} beyond the {most} best of their image": each.beyond
        for group, each in met.items()
    }


def _facts(
    truth: Objects,
    predictions: Detections,
    state: JudgedCorners,
    trivial: Mapping[str, JudgedCorners],
    by: Sequence[str],
) -> dict[str, Any]:
    """What belongs beside every number; slices have the recall of trivial answers alone, which is cheap."""
    recalled = {name: answer.recall_alone() for name, answer in trivial.items()}
    within = {
        name: {which: compute_values(answer.only(kept)) for which, answer in recalled.items()}
        for name, kept in split_slices(state, by).items()
    }
    return {
        "pictures": len(truth.items),
        "objects": len(truth.item),
        "corner_cases": int(truth.corner.sum()),
        "common_classes": list(truth.commons),
        "predictions_per_picture": float(len(predictions.item) / len(truth.items)),
        "average": "over thresholds and classes",
        IN_SLICES: within,
    }


_ALONG = 9
"""Points of an object's foot that are considered."""
_KMH = 3.6


@dataclass(frozen=True)
class Paths:
    """The paths that a vehicle may take: arcs from where it is, as curved as comfort and steering let it.

    Args:
        width_m: of the vehicle, with what it keeps clear on both sides.
        horizon_s: how far ahead in time a path reaches.
        least_m: how far it reaches at least, also of a vehicle that stands.
        lateral_mps2: the largest acceleration to the side.
        radius_m: of the tightest turn.
        ground_m: height of the ground in the vehicle's frame: 0 where that frame stands on the road, about
            -0.93 for KITTI, whose frame is that of its inertial unit.
    """

    width_m: float = 2.5
    horizon_s: float = 3.0
    least_m: float = 10.0
    lateral_mps2: float = 3.0
    radius_m: float = 6.0
    ground_m: float = 0.0

    def __post_init__(self) -> None:
        for name in ("width_m", "horizon_s", "least_m", "lateral_mps2", "radius_m"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} should be a number above 0; got {getattr(self, name)!r}")


def add_blocking(scenes: Scenes) -> Scenes:
    """The ground truth with the column `blocks_path`: whether an object stands where a path leads.

    An object stands where the lower edge of its box meets the ground, which is taken for flat. It blocks a
    path if an arc that the vehicle may take leads over a part of that edge within the horizon. Null where
    it is not known: no calibration, no speed, an edge at or above the horizon of the image.

    Args:
        scenes: boxes, `sensors` with intrinsics and `ego_SE3_sensor` of a camera (x right, y down, z ahead),
            frames with `ego_speed_kmh`, and the scene of each video.

    Raises:
        InputError: if no box has a camera of known geometry and a known speed.

    Source: Li et al., ECCV 2022 (CODA), section 4, the criterion of risk, which has no numbers there.
    """
    paths = Paths()
    cameras = _cameras(scenes)
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String))
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    speed = pl.col("ego_speed_kmh") if "ego_speed_kmh" in frames.columns else pl.lit(None, dtype=pl.Float64)
    speeds = frames.select("video", "frame", speed=speed.cast(pl.Float64))
    table = boxes.select("video", "frame", *CORNERS).join(
        speeds, on=["video", "frame"], how="left", maintain_order="left"
    )
    found: list[bool | None] = [None] * len(table)
    for video in table["video"].unique(maintain_order=True):
        if video not in cameras:
            continue
        rows = table.with_row_index("row").filter((pl.col("video") == video) & pl.col("speed").is_not_null())
        foot, seen = project_to_ground(
            rows.select(CORNERS).to_numpy().astype(np.float64), *cameras[video], paths
        )
        blocked = find_blocking(foot, rows["speed"].to_numpy().astype(np.float64) / _KMH, paths)
        for row, known, block in zip(rows["row"].to_list(), seen.tolist(), blocked.tolist(), strict=True):
            found[row] = block if known else None
    if not any(each is not None for each in found):
        raise InputError(
            "of no object it is known where it stands: there is no camera with intrinsics and a pose in the "
            "vehicle, or no speed of the vehicle",
            hint="sets of images alone have no geometry; leave the criterion of risk away",
        )
    return scenes.with_tables(boxes=scenes.boxes.with_columns(pl.Series(BLOCKS, found, dtype=pl.Boolean)))


def project_to_ground(boxes: Floats, camera: Floats, pose: Floats, paths: Paths) -> tuple[Floats, Bools]:
    """(n, 9, 2) points of the ground under the lower edge of each box, x ahead and y to the left, in metres.

    Args:
        boxes: (n, 4) corners in pixels.
        camera: (3, 3) intrinsics.
        pose: (4, 4) of the camera in the vehicle.
        paths: states the height of the ground.

    Returns:
        the points, and (n,) whether the edge meets the ground before the vehicle.
    """
    share = np.linspace(0, 1, _ALONG)
    u = boxes[:, :1] + (boxes[:, 2:3] - boxes[:, :1]) * share
    v = np.broadcast_to(boxes[:, 3:4], u.shape)
    rays = np.stack([u, v, np.ones_like(u)], axis=-1) @ np.linalg.inv(camera).T @ pose[:3, :3].T
    down = paths.ground_m - pose[2, 3]
    # A ray that is level or leads upwards meets no ground.
    seen = (rays[..., 2] * np.sign(down) > 1e-9).all(axis=1)
    scale = down / np.where(np.abs(rays[..., 2]) > 1e-9, rays[..., 2], 1.0)
    points: Floats = pose[:2, 3] + scale[..., None] * rays[..., :2]
    return points, seen & (points[..., 0] > 0).all(axis=1)


def find_blocking(points: Floats, speed_mps: Floats, paths: Paths) -> Bools:
    """(n,) whether a path leads over one of the points of an object.

    Through each point ahead leads one arc that begins along the vehicle, of curvature 2 y / (x² + y²). A
    point is in the way if a possible arc passes it within half the vehicle's width before the path ends.

    Args:
        points: (n, k, 2) x ahead and y to the left, in metres.
        speed_mps: (n,) of the vehicle.
        paths: that it may take.
    """
    reach = np.maximum(speed_mps * paths.horizon_s, paths.least_m)[:, None]
    # Of a vehicle that hardly moves the steering alone bounds the curvature; a / v^2 would be infinite.
    tight = np.minimum(paths.lateral_mps2 / np.maximum(speed_mps, 0.1) ** 2, 1 / paths.radius_m)[:, None]
    x, y = points[..., 0], points[..., 1]
    away = np.maximum(x**2 + y**2, 1e-9)
    bend = np.clip(2 * y / away, -tight, tight)
    # The nearest possible arc: where the exact one is possible, the point lies on it.
    # The arc of a line has no radius.
    straight = np.abs(bend) < 1e-6
    radius = 1 / np.where(straight, 1.0, bend)
    beside = np.where(straight, np.abs(y), np.abs(np.hypot(x, y - radius) - np.abs(radius)))
    angle = np.arctan2(x, np.where(bend > 0, radius - y, y - radius))
    along = np.where(straight, x, angle * np.abs(radius))
    near: Bools = (beside <= paths.width_m / 2) & (along >= 0) & (along <= reach) & (x > 0)
    return np.asarray(near.any(axis=1))


def _cameras(scenes: Scenes) -> dict[str, tuple[Floats, Floats]]:
    """Video to the intrinsics and the pose of its camera; the first pose, where it changes."""
    held: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    for row in scenes.sensors.iter_rows(named=True):
        if row.get("intrinsics") is None or row.get("ego_SE3_sensor") is None:
            continue
        camera = np.array(row["intrinsics"], dtype=np.float64).reshape(3, 3)
        pose = np.array(row["ego_SE3_sensor"], dtype=np.float64).reshape(4, 4)
        held.setdefault((str(row["scene"]), str(row["sensor"])), (camera, pose))
    found = {}
    for row in scenes.videos.iter_rows(named=True):
        scene = str(row.get("scene") or "")
        own = [key for key in held if key[0] == scene and row.get("sensor") in (None, key[1])]
        if len(own) == 1:
            found[str(row["video"])] = held[own[0]]
    return found
