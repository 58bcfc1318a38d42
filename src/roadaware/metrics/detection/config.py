"""DetectionConfig: which of the published road-event evaluator's choices hold, each a named field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from roadaware.config import check_flags, check_limits, check_not_negative, check_words, is_count
from roadaware.errors import UsageError
from roadaware.metrics.detection.rows import AGENTNESS, OF_FRAMES, select_paths
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.tables import Predictions, Scenes, TableSet

Rule = Literal["trapezoid", "envelope", "interp101", "raw"]


@dataclass(frozen=True)
class DetectionConfig:
    """How predicted boxes, tubes and frame labels are judged; the defaults are what `default` gives.

    Args:
        ap: how average precision is read off the precision-recall points of boxes and tubes; see
            `roadaware.statistics.average_precision`.
        av_ap: the same for labels of whole frames.
        empty_classes: a class without ground truth has an AP of 0 that counts in the mean (`zero`), or none and
            is left out of the mean (`skip`).
        frame_size_px: (width, height) that the boxes of ground truth and predictions are brought to before they are
            compared; None compares in the ground truth's own pixels.
        numbers: boxes are brought to one size and compared in 64 bits (`double`); or every step is rounded
            to 32 bits (`single`), where overlaps that lie exactly on a threshold may fall on its other side.
        frame_pixel_offset: pixels added to widths and heights where boxes of frames are compared.
        video_pixel_offset: the same where boxes of tubes are compared.
        max_per_class: of a frame with more predictions than this, those with the highest scores of a class
            are judged for that class; None judges all.
        min_score: predicted boxes that do not score higher are left out; None leaves out none. A score of 0
            predicts nothing.
        min_tube_score: the same for labels of predicted tubes.
        min_av_score: the same for labels of frames.
        floor_when_product: whether `min_score` also holds when composites are products.
        tube_time: frames of a tube are all from its first to its last (`endpoints`), or those it has
            (`frames`).
        composite_scores: scores of composite labels (duplex, event) are the predicted ones (`joint`), or
            products of the scores of their parts (`product`).
        av_label: a frame with several labels has the first one (`first`) or all of them (`all`).
        interpolated_boxes: whether boxes that were interpolated between two detections are judged in frames.
    """

    ap: Rule = "envelope"
    av_ap: Rule = "envelope"
    empty_classes: Literal["zero", "skip"] = "skip"
    frame_size_px: tuple[int, int] | None = None
    numbers: Literal["double", "single"] = "double"
    frame_pixel_offset: float = 0.0
    video_pixel_offset: float = 0.0
    max_per_class: int | None = None
    min_score: float | None = 0.0
    min_tube_score: float | None = 0.0
    min_av_score: float | None = 0.0
    floor_when_product: bool = True
    tube_time: Literal["endpoints", "frames"] = "frames"
    composite_scores: Literal["joint", "product"] = "joint"
    av_label: Literal["first", "all"] = "all"
    interpolated_boxes: bool = False

    def __post_init__(self) -> None:
        check_words(self)
        check_flags(self)
        size = self.frame_size_px
        if size is not None and not (len(size) == 2 and all(is_count(side) for side in size)):
            raise UsageError(f"frame_size_px should be (width, height) in whole pixels; got {size!r}")
        check_not_negative(self, "frame_pixel_offset", "video_pixel_offset")
        check_limits(self, "max_per_class")
        for name in ("min_score", "min_tube_score", "min_av_score"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise UsageError(f"{name} should be a number, or None for none; got {value!r}")

    @classmethod
    def reference(cls) -> DetectionConfig:
        """The published evaluator's choices.

        Source: 3D-RetinaNet, the code released with Singh et al., TPAMI 2022.
        """
        return cls(
            ap="trapezoid",
            av_ap="envelope",
            empty_classes="zero",  # it divides by all classes
            frame_size_px=(682, 512),  # the size its network sees, which its evaluator has in the code
            numbers="single",
            frame_pixel_offset=0.0,
            video_pixel_offset=1.0,  # areas of tubes count both end pixels, those of frames do not
            max_per_class=25,  # its TOPK of 10 and 15 more
            min_score=0.025,  # CONF_THRESH; not applied where composites are products
            min_tube_score=None,
            min_av_score=None,
            floor_when_product=False,
            tube_time="endpoints",
            av_label="first",
        )

    @classmethod
    def default(cls) -> DetectionConfig:
        """The choices we recommend: every prediction is judged as it stands, and what is undefined stays so."""
        return cls()


# Thresholds of overlap by name: a number, or the mean over ten from 0.5 to 0.95.

RANGE = "0.5:0.95"
# k / 100 is the closest double to each; 0.05 added up is not.
_OF_RANGE = tuple(k / 100 for k in range(50, 100, 5))


@dataclass(frozen=True)
class Thresholds:
    """Thresholds that were asked for.

    Args:
        values: (T,) the numbers that are matched at, rising.
        columns: name (`0.5`, `0.5:0.95`) to the indices in `values` whose mean it is, as asked.
    """

    values: tuple[float, ...]
    columns: dict[str, tuple[int, ...]]


def build_thresholds(asked: Sequence[float | str]) -> Thresholds:
    """Thresholds out of numbers and names.

    Args:
        asked: numbers in (0, 1], as such or as text, and `0.5:0.95`.

    Raises:
        UsageError: if one is neither.

    >>> build_thresholds([0.75, "0.5:0.95"]).columns["0.75"]
    (5,)
    """
    numbers = {
        (RANGE if item == RANGE else f"{_number(item):g}"): (_OF_RANGE if item == RANGE else (_number(item),))
        for item in asked
    }
    values = tuple(sorted({value for held in numbers.values() for value in held}))
    columns = {name: tuple(values.index(value) for value in held) for name, held in numbers.items()}
    return Thresholds(values, columns)


def _number(item: float | str) -> float:
    try:
        value = float(item)
    except ValueError:
        value = float("nan")
    if not 0 < value <= 1:
        raise UsageError(f"a threshold of overlap is a number in (0, 1], or {RANGE}; got {item!r}")
    return value


# Which kinds of labels are judged: all that ground truth and predictions both know, whether of boxes or of tubes.

_LINKED = "linker"


def list_box_kinds(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """The kinds of boxes that both know, agentness first, then in the order of the ground truth's vocabularies.

    Predictions know the kinds of their dense scores and of their labels, and agentness where `boxes.score` is
    one (see `is_agentness_scored`); where there is no box, those that they have vocabularies of. Where
    nothing tells what would be predicted, all kinds of the ground truth are judged, which were missed.
    """
    predicted = _predicted_of_boxes(predictions)
    return _in_order(_true_of_boxes(scenes) if predicted is None else predicted, scenes)


def list_tube_kinds(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """The kinds of tubes that both know, in the same order.

    Predictions know the kinds of their tubes' labels, those of the dense scores that they were linked from, and
    agentness where there are paths: tubes without parent and kind. Ground truth knows agentness where its boxes
    belong to tubes. Where there is no tube, what holds of boxes holds of tubes.
    """
    # The kinds that tubes are predicted for; None where unknown.
    if not is_linked(predictions):
        predicted = _predicted_of_boxes(predictions)
    else:
        found = _list_label_kinds(predictions.tube_labels)
        if _from_linker(predictions):
            found |= {AGENTNESS, *get_score_layout(predictions.meta, "boxes").kinds}
        if not select_paths(predictions).is_empty():
            found.add(AGENTNESS)
        predicted = found - {AGENTNESS} if _scores_labels(predictions) else found
    if predicted is None:
        predicted = _true_of_tubes(scenes)
    return _in_order(predicted if _has_tubes(scenes) else predicted - {AGENTNESS}, scenes)


def is_agentness_scored(predictions: Predictions) -> bool:
    """Whether `boxes.score` is agentness: the confidence that there is an agent of any class.

    It is the score of a label where boxes have labels and no vocabulary names agentness, as in COCO results,
    and where boxes belong to tubes that have a kind themselves, as in files of tubes.
    """
    return not (_scores_labels(predictions) or _of_kinds(predictions))


def is_linked(predictions: Predictions) -> bool:
    """Whether there are tubes, or the linker found none."""
    return not predictions.tubes.is_empty() or _from_linker(predictions)


def is_silent(predictions: Predictions) -> bool:
    """Whether nothing is predicted at all, which is wrong everywhere."""
    return predictions.boxes.is_empty() and predictions.tubes.is_empty() and predictions.frames.is_empty()


def describe_box_kinds(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """Which kinds of boxes only one side knows, in words."""
    return _one_sided(
        "boxes", list_box_kinds(predictions, scenes), _true_of_boxes(scenes), predictions, scenes
    )


def describe_tube_kinds(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """Which kinds of tubes only one side knows, in words."""
    return _one_sided(
        "tubes", list_tube_kinds(predictions, scenes), _true_of_tubes(scenes), predictions, scenes
    )


def _predicted_of_boxes(predictions: Predictions) -> set[str] | None:
    """The kinds that boxes are predicted for; None where unknown."""
    boxes, vocabularies = predictions.boxes, set(predictions.meta.vocabularies)
    dense = set(get_score_layout(predictions.meta, "boxes").kinds)
    if boxes.is_empty():
        found = dense | vocabularies | ({AGENTNESS} if dense else set())
        return found or None
    found = (dense if "scores" in boxes.columns else set()) | _list_label_kinds(predictions.labels)
    if "score" in boxes.columns and is_agentness_scored(predictions):
        found.add(AGENTNESS)
    return found


def _true_of_boxes(scenes: Scenes) -> set[str]:
    return _list_label_kinds(scenes.labels) | (set() if scenes.boxes.is_empty() else {AGENTNESS})


def _true_of_tubes(scenes: Scenes) -> set[str]:
    return _list_label_kinds(scenes.tube_labels) | ({AGENTNESS} if _has_tubes(scenes) else set())


def _has_tubes(scenes: Scenes) -> bool:
    """Whether any ground-truth box belongs to a tube."""
    return "tube" in scenes.boxes.columns and scenes.boxes["tube"].null_count() < len(scenes.boxes)


def _list_label_kinds(labels: pl.DataFrame) -> set[str]:
    """The kinds that labels are of."""
    return set(labels["kind"].cast(pl.String).unique().to_list())


def _scores_labels(predictions: Predictions) -> bool:
    """Whether boxes have labels, and nothing names agentness."""
    return AGENTNESS not in predictions.meta.vocabularies and not predictions.labels.is_empty()


def _of_kinds(predictions: Predictions) -> bool:
    """Whether boxes belong to tubes that have a kind themselves, and no parent."""
    tubes = predictions.tubes
    if "kind" not in tubes.columns or "tube" not in predictions.boxes.columns:
        return False
    owners = tubes.filter(pl.col("kind").is_not_null() & pl.col("kind").cast(pl.String).ne(OF_FRAMES))
    if "parent" in tubes.columns:
        owners = owners.filter(pl.col("parent").is_null())
    return bool(predictions.boxes["tube"].is_in(owners["tube"].implode()).any())


def _from_linker(predictions: Predictions) -> bool:
    return _LINKED in predictions.meta.notes and "tube" in predictions.boxes.columns


def _in_order(kinds: Iterable[str], scenes: Scenes) -> tuple[str, ...]:
    """Of some kinds those that the ground truth knows, agentness first."""
    known = [kind for kind in scenes.meta.vocabularies if kind not in (AGENTNESS, OF_FRAMES)]
    return tuple(kind for kind in (AGENTNESS, *known) if kind in set(kinds))


def _one_sided(
    what: str, judged: tuple[str, ...], true: set[str], predictions: TableSet, scenes: Scenes
) -> tuple[str, ...]:
    missing = [kind for kind in _in_order(true, scenes) if kind not in judged]
    known = {*scenes.meta.vocabularies, AGENTNESS, OF_FRAMES}
    held = predictions.tube_labels if what == "tubes" else predictions.labels
    dense = set() if what == "tubes" else set(get_score_layout(predictions.meta, "boxes").kinds)
    strange = sorted((_list_label_kinds(held) | dense) - known)
    said = []
    if missing:
        said.append(f"{what} are not judged for {', '.join(missing)}: nothing is predicted of that")
    if strange:
        said.append(f"{what} are not judged for {', '.join(strange)}: the truth has no such labels")
    return tuple(said)
