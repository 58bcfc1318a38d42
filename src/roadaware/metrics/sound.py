"""How well sounds are localised, as a whole, by class of sound and by slice, beside trivial answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Floats32, Ints, Ints32
from roadaware.config import check_words
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import ItemScores, Measured, SceneResult, build_result, compute_values
from roadaware.metrics.sound_kernels import count_cells_by_votes, count_votes, resize_maps
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.classification import Ranking

_STEPS = 20


@dataclass(frozen=True)
class SoundConfig:
    """How localisation maps are judged; the defaults are what `default` gives.

    Args:
        size: width and height, in cells, that maps and boxes are brought to.
        consensus: what a cell of the ground truth is worth: 1 where any box lies (`union`), boxes over it by
            `consensus_count`, at most 1 (`capped`), or annotators with a box over it by the annotators of
            the item (`mean`, the paper's).
        unnamed_boxes: boxes that name no annotator are all of one (`one`), or each of an annotator of its own
            (`each`, as the paper's formula has one box for each); for `mean`.
        consensus_count: boxes that make a cell certain, for `capped`.
        threshold: of the map, scaled to [0, 1], from which on a cell is predicted; None takes the median of
            the map, so that half of the image is predicted.
        comparison: cells at the threshold are predicted (`at_least`) or not (`greater`, the paper's).
        constant_map: a map of one value predicts no cell (`empty`) or every cell (`whole`).
        negative_corners: corners left of or above the image are moved to its edge (`clip`), or counted
            from the other edge as numpy's slices do (`wrap`, as published for Flickr-SoundNet).
        empty_truth: items whose boxes cover no cell are left out (`left_out`), or judged (`judged`): then
            their cIoU is 0, or undefined and a failure at every threshold where the map predicts no cell.
        success_steps: thresholds of the success curve are i / 20 (`exact`) or 0.05 * i as a computer
            multiplies (`rounded`, as published), where 0.05 * 3 is larger than 0.15.
        missing_prediction: a sound without a map scores 0 and succeeds at no threshold (`zero`), or is an error
            (`error`).
    """

    size: int = 224
    consensus: Literal["union", "capped", "mean"] = "mean"
    unnamed_boxes: Literal["one", "each"] = "one"
    consensus_count: int = 2
    threshold: float | None = 0.5
    comparison: Literal["at_least", "greater"] = "at_least"
    constant_map: Literal["empty", "whole"] = "empty"
    negative_corners: Literal["clip", "wrap"] = "clip"
    empty_truth: Literal["left_out", "judged"] = "left_out"
    success_steps: Literal["exact", "rounded"] = "exact"
    missing_prediction: Literal["zero", "error"] = "zero"

    def __post_init__(self) -> None:
        check_words(self)
        for name, most in (("size", 4096), ("consensus_count", 1000)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise UsageError(f"{name} should be a whole number from 1 to {most}; got {value!r}")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise UsageError(f"threshold should be a number, or None for the median; got {self.threshold!r}")

    @property
    def success_thresholds(self) -> tuple[float, ...]:
        """The 21 thresholds of the success curve, from 0 to 1.

        Source: Song et al., CVPR 2022 (SSPL), whose code has 0.05 i.
        """
        if self.success_steps == "rounded":
            return tuple(0.05 * step for step in range(_STEPS + 1))
        return tuple(step / _STEPS for step in range(_STEPS + 1))

    @classmethod
    def default(cls) -> SoundConfig:
        """The choices we recommend: a consensus of annotators, and no item without ground truth.

        Source: supplement of Chaotic World, ICCV 2023, section 3.4 (the mean over annotators).
        """
        return cls()

    @classmethod
    def vggss(cls) -> SoundConfig:
        """The published evaluator on VGG-SS.

        Source: Song et al., CVPR 2022 (SSPL), `test.py`, `utils.py`; after Chen et al., CVPR 2021.
        """
        return cls(consensus="union", empty_truth="judged", success_steps="rounded")

    @classmethod
    def flickr(cls) -> SoundConfig:
        """The published evaluator on Flickr-SoundNet: two boxes make a cell certain.

        Source: Song et al., CVPR 2022 (SSPL), `test.py`, `utils.py`; after Senocak et al., CVPR 2018.
        """
        return cls(
            consensus="capped",
            negative_corners="wrap",
            empty_truth="judged",
            success_steps="rounded",
        )

    @classmethod
    def paper(cls) -> SoundConfig:
        """The published evaluator with the formula in print: mean over annotators, cells above the threshold.

        Source: supplement of Chaotic World, ICCV 2023, section 3.4, equations 1 and 2. Its area under the
        curve of true and false positive rates is defined nowhere; the success curve stands in.
        """
        return cls(
            consensus="mean",
            unnamed_boxes="each",
            comparison="greater",
            empty_truth="judged",
            success_steps="rounded",
        )


CONFIGS: dict[str, Callable[[], SoundConfig]] = {
    "default": SoundConfig.default,
    "vggss": SoundConfig.vggss,
    "flickr": SoundConfig.flickr,
    "paper": SoundConfig.paper,
}


# The cells of the image that each sound comes from, and their weights.


@dataclass(frozen=True, eq=False)
class SoundTruth:
    """The ground-truth boxes of n sounds, in cells.

    Args:
        table: one row per sound: video, sound, name, sound_class, category.
        first: (n + 1,) where each sound's boxes start.
        edges: (boxes, 4) x1, y1, x2, y2 in cells, half open, within the image.
        owner: (boxes,) whose vote a box is: boxes of one owner count once for a cell.
        annotators: (n,) how many drew boxes of the sound; at least 1.
    """

    table: pl.DataFrame
    first: Ints
    edges: Ints
    owner: Ints
    annotators: Ints

    @property
    def most(self) -> int:
        """The largest number of boxes of a sound."""
        return int(np.diff(self.first).max())

    def part(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """`first`, `edges` and `owner` of some sounds.

        Args:
            rows: (m,) which ones.
        """
        counts = self.first[rows + 1] - self.first[rows]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        boxes = np.repeat(self.first[rows] - first[:-1], counts) + np.arange(first[-1])
        return first, self.edges[boxes], self.owner[boxes]

    def worth(self, config: SoundConfig) -> Floats:
        """(n, most + 1) weight of a cell with 0, 1, ... votes."""
        votes = np.arange(self.most + 1, dtype=np.float64)
        if config.consensus == "mean":
            found: Floats = votes[None] / self.annotators[:, None]
            return found
        counted = (
            votes > 0 if config.consensus == "union" else np.minimum(votes / config.consensus_count, 1.0)
        )
        return np.broadcast_to(np.asarray(counted, dtype=np.float64), (len(self.annotators), len(votes)))


def build_sound_truth(scenes: Scenes, config: SoundConfig) -> SoundTruth:
    """The ground-truth boxes of every sound, in the order of the table of sounds.

    Raises:
        InputError: if there are no sounds, none of them has a box, or the size of an image is unknown.

    Source: Song et al., CVPR 2022, `utils.py`: a corner is the whole part of size * coordinate / side.
    """
    sounds = scenes.sounds
    if sounds.is_empty():
        raise InputError("the truth has no sounds", hint="its table `sounds` is empty")
    names = dict(enumerate(scenes.meta.vocabularies.get("sound", ())))
    columns: dict[str, Any] = {"video": pl.String, "sound": pl.Int64, "name": pl.String, "label": pl.Int64}
    table = sounds.select(_get_column(sounds, c).cast(dtype) for c, dtype in columns.items())
    label = pl.col("label")
    named = label.replace_strict(names, default=label.cast(pl.String), return_dtype=pl.String)
    videos = scenes.videos.select(
        pl.col("video").cast(pl.String), category=_get_column(scenes.videos, "category").cast(pl.String)
    )
    table = table.select("video", "sound", "name", named.alias("sound_class")).join(
        videos, on="video", how="left", maintain_order="left"
    )
    boxes = _boxes(scenes, table, each=config.unnamed_boxes == "each")
    if boxes.is_empty():
        raise InputError(
            f"none of the {len(table)} sounds of the truth has a box", hint="boxes name theirs in `sound`"
        )
    sides = np.tile(boxes.select("width_px", "height_px").to_numpy().astype(np.float64), 2)
    # Cut towards 0, as int() does in the published code.
    cells = np.trunc(config.size * boxes.select(CORNERS).to_numpy() / sides).astype(np.int64)
    lowest = 0 if config.negative_corners == "clip" else cells + config.size
    cells = np.clip(np.where(cells < 0, lowest, cells), 0, config.size)
    rows = boxes["row"].to_numpy()
    owners = boxes["annotator"].rle_id() if config.consensus == "mean" else boxes["place"]
    # An annotator who drew the last box of one sound and the first of the next has two numbers.
    new = np.concatenate([[False], (rows[1:] != rows[:-1]) | (np.diff(owners.to_numpy()) != 0)])
    voters = boxes.group_by("row").agg(pl.col("annotator").n_unique())
    annotators = np.ones(len(table), dtype=np.int64)
    annotators[voters["row"].to_numpy()] = voters["annotator"].to_numpy()
    first = np.searchsorted(rows, np.arange(len(table) + 1))
    return SoundTruth(table, first.astype(np.int64), cells, np.cumsum(new).astype(np.int64), annotators)


def _boxes(scenes: Scenes, table: pl.DataFrame, *, each: bool) -> pl.DataFrame:
    """The boxes of sounds by sound, annotator and corners, with the sides of their images.

    Args:
        scenes: the ground truth.
        table: of the sounds.
        each: whether boxes that name no annotator are each of one of their own.
    """
    if "sound" not in scenes.boxes.columns:
        return scenes.boxes.clear()
    sides = scenes.videos.select(
        pl.col("video").cast(pl.String),
        _get_column(scenes.videos, "width_px"),
        _get_column(scenes.videos, "height_px"),
    )
    # No annotator's name begins so.
    nobody = pl.format("\0{}", pl.int_range(pl.len())) if each else pl.lit("")
    annotator = pl.coalesce(_get_column(scenes.boxes, "annotator").cast(pl.String), nobody).alias("annotator")
    boxes = (
        _select_shown(scenes)
        .select("sound", pl.col("video").cast(pl.String), pl.col(CORNERS).cast(pl.Float64), annotator)
        .join(table.with_row_index("row").select("row", "sound"), on="sound")
        .join(sides, on="video", how="left")
        .sort("row", "annotator", *CORNERS)
        .with_row_index("place")
    )
    unknown = boxes.filter(~((pl.col("width_px") > 0) & (pl.col("height_px") > 0)).fill_null(False))[
        "video"
    ].unique(maintain_order=True)
    if len(unknown):
        raise InputError(
            f"the images of {len(unknown)} videos have no size, first {unknown.head(5).to_list()}",
            hint="give videos.width_px and videos.height_px; images with boxes in shares are 1 x 1",
        )
    return boxes


def _select_shown(scenes: Scenes) -> pl.DataFrame:
    """The boxes of sounds in the frame that shows where each comes from; all of them where that is not said."""
    boxes = scenes.boxes.filter(pl.col("sound").is_not_null())
    if "frame" not in scenes.sounds.columns:
        return boxes
    frames = scenes.sounds.select("sound", shown=pl.col("frame"))
    held = boxes.join(frames, on="sound", how="left", maintain_order="left")
    there = (pl.col("frame") == pl.col("shown")).fill_null(False)
    return held.filter(there | ~there.any().over("sound")).drop("shown")


def _get_column(frame: pl.DataFrame, column: str) -> pl.Expr:
    """The column, null where the table lacks it."""
    return pl.col(column) if column in frame.columns else pl.lit(None).alias(column)


# Predicted localisation maps at the size of the ground truth, and the cells that they predict.


# 16 MiB in single precision.
_CELLS_AT_ONCE = 1 << 22


def resize_weights(cells: int, size: int) -> tuple[Ints, Ints, Floats32]:
    """For each of `size` new cells: (size,) the old cell before its centre, the one after it, and how far on.

    Centres lie in the middle of cells; beyond the first and last centre the edge goes on.

    Source: bilinear interpolation as OpenCV's `INTER_LINEAR`.

    >>> resize_weights(2, 4)[2]
    array([0.75, 0.25, 0.75, 0.25], dtype=float32)
    """
    # As OpenCV's bilinear resize, which the published code calls.
    centres = (np.arange(size) + 0.5) * (cells / size) - 0.5
    before = np.floor(centres)
    part = (centres - before).astype(np.float32)
    place = before.astype(np.int64)
    return np.maximum(place, 0), np.minimum(place + 1, cells - 1), part


def normalize_maps(maps: npt.ArrayLike, size: int) -> Floats32:
    """(n, size, size) maps resized to `size` and scaled to [0, 1], in single precision; NaN where constant.

    Args:
        maps: (n, h, w) of any size.
        size: cells in a row of what comes out.

    Source: Song et al., CVPR 2022, `test.py`, `utils.py`.
    """
    cells = np.ascontiguousarray(maps, dtype=np.float32)
    found: Floats32 = resize_maps(
        cells, *resize_weights(cells.shape[1], size), *resize_weights(cells.shape[2], size)
    )
    return found


def select_predicted_cells(maps: Floats32, config: SoundConfig) -> Bools:
    """(n, size, size) the cells that scaled maps predict.

    Args:
        maps: (n, size, size) in [0, 1], NaN where constant; see `normalize_maps`.
        config: `threshold`, `comparison` and `constant_map`.

    Source: Song et al., CVPR 2022, `test.py`.
    """
    if config.threshold is None:
        # The upper of the two middle cells, as published.
        n, cells = len(maps), maps[0].size
        middle = np.partition(maps.reshape(n, cells), cells // 2, axis=1)[:, cells // 2]
        threshold: Floats32 | np.float32 = middle.reshape(n, 1, 1)
    else:
        threshold = np.float32(config.threshold)
    predicted: Bools = maps > threshold if config.comparison == "greater" else maps >= threshold
    if config.constant_map == "whole":
        predicted |= np.isnan(maps)
    return predicted


def map_chunks(
    predictions: pl.DataFrame, matched: pl.DataFrame, size: int
) -> Iterator[tuple[Ints, Floats32]]:
    """Rows of the ground truth and (n, h, w) their predicted maps, maps of one shape at a time, as many as fit.

    Args:
        predictions: with `sound`, `map`, and `map_width` where maps are not square.
        matched: `prediction` and `row`: which row of the predictions is about which of the ground truth.
        size: what maps are resized to, which tells how many fit.

    Raises:
        InputError: if there are no maps, or one has no cell, a gap, or a length that its width does not divide.
    """
    if "map" not in predictions.columns:
        if predictions.is_empty():
            return
        raise InputError(
            f"expected a map of each predicted sound, found {len(predictions)} sounds with {', '.join(predictions.columns)}",
            hint="their column `map` holds height x width cells row by row",
        )
    width = pl.col("map_width") if "map_width" in predictions.columns else pl.lit(None, dtype=pl.Int64)
    lengths = (
        predictions["map"].arr.len()
        if isinstance(predictions.schema["map"], pl.Array)
        else predictions["map"].list.len()
    )
    known = (
        predictions.select("sound", width.alias("width"))
        .with_columns(lengths.cast(pl.Int64).alias("cells"))
        .with_row_index("prediction")
        .join(matched, on="prediction")
        .sort("prediction")
        .filter(pl.col("cells").is_not_null())
        .with_columns(square=pl.col("width").is_null())
        .with_columns(pl.col("width").fill_null(pl.col("cells").sqrt().round().cast(pl.Int64)))
    )
    _check_shapes(known)
    for (cells, wide), part in known.group_by("cells", "width", maintain_order=True):
        high = int(cells) // int(wide)
        step = max(1, _CELLS_AT_ONCE // max(size * size, int(cells)))
        for start in range(0, len(part), step):
            some = part.slice(start, step)
            values = predictions["map"].gather(some["prediction"]).explode()
            if values.null_count():
                first = some["sound"][(values.is_null().arg_max() or 0) // int(cells)]
                raise InputError(f"{values.null_count()} cells of maps are null, the first of sound {first}")
            yield some["row"].to_numpy().astype(np.int64), values.to_numpy().reshape(len(some), high, -1)


def _check_shapes(known: pl.DataFrame) -> None:
    wide, cells = pl.col("width"), pl.col("cells")
    even = (cells > 0) & (wide > 0) & (cells % wide == 0) & (~pl.col("square") | (wide * wide == cells))
    wrong = known.filter(~even.fill_null(False))
    if len(wrong):
        raise InputError(
            f"the maps of {len(wrong)} sounds have no rows of equal length, first "
            f"{wrong.select('sound', 'cells', 'width').head(3).rows(named=True)}",
            hint="a map holds height x width cells row by row; give `map_width` where it is not square",
        )


# The consensus IoU of each predicted map, and of the answers that anybody could give.

_SOUNDS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class SoundOverlaps:
    """The overlaps of n sounds.

    Args:
        ciou: (n,) consensus IoU; 0 without a prediction, NaN where ground truth and prediction are both empty.
        predicted: (n,) whether there is a map.
        constant: (n,) whether it has one value only.
        cells: (n,) how many cells it predicts.
        true_cells: (n,) what the ground truth's cells are worth together.
        whole: (n,) the consensus IoU of the whole image.
        centre: (n,) that of the middle half of both sides.
        peak: (n,) the largest value of each map as it was given; -inf without one.
        sizes: `height x width` of maps to how many there are.
    """

    ciou: Floats
    predicted: Bools
    constant: Bools
    cells: Ints
    true_cells: Floats
    whole: Floats
    centre: Floats
    peak: Floats
    sizes: dict[str, int]


def compute_sound_overlaps(
    truth: SoundTruth, predictions: pl.DataFrame, matched: pl.DataFrame, config: SoundConfig
) -> SoundOverlaps:
    """The overlaps of all sounds with their maps, and of the trivial answers.

    Args:
        truth: of n sounds.
        predictions: with `sound` and `map`.
        matched: which of their rows are about which sound; see `map_chunks`.
        config: how maps are read.

    Raises:
        InputError: if a map is no rectangle.

    Source: supplement of Chaotic World, ICCV 2023, section 3.4, eq. 1.
    """
    worth, n = truth.worth(config), len(truth.table)
    all_cells, whole, centre = _trivial(truth, worth, config)
    ciou, cells = np.zeros(n), np.zeros(n, dtype=np.int64)
    predicted, constant = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    peak, sizes = np.full(n, -np.inf), dict[str, int]()

    for rows, maps in map_chunks(predictions, matched, config.size):
        scaled = normalize_maps(maps, config.size)
        held = select_predicted_cells(scaled, config)
        votes = count_votes(*truth.part(rows), config.size)
        ciou[rows] = consensus_iou(
            all_cells[rows], count_cells_by_votes(votes, held, truth.most), worth[rows]
        )
        predicted[rows], constant[rows] = True, np.isnan(scaled[:, 0, 0])
        cells[rows] = held.sum(axis=(1, 2))
        peak[rows] = maps.max(axis=(1, 2))
        size = f"{maps.shape[1]} x {maps.shape[2]}"
        sizes[size] = sizes.get(size, 0) + len(rows)
    true_cells = (all_cells * worth).sum(axis=1)
    return SoundOverlaps(ciou, predicted, constant, cells, true_cells, whole, centre, peak, sizes)


def consensus_iou(cells: Ints, held: Ints, worth: Floats) -> Floats:
    """(n,) worth of predicted cells by that of true cells and the predicted ones without worth; NaN for 0 by 0.

    Args:
        cells: (n, k) cells with 0, 1, ... votes.
        held: (n, k) those of them that are predicted.
        worth: (n, k) what each is worth; nothing without a vote.

    Source: Senocak et al., CVPR 2018; Song et al., CVPR 2022, `test.py`.

    >>> consensus_iou(np.array([[90, 6, 4]]), np.array([[5, 2, 3]]), np.array([[0.0, 0.5, 1.0]])).round(4)
    array([0.3333])
    """
    shared, true = (held * worth).sum(axis=1), (cells * worth).sum(axis=1)
    with np.errstate(invalid="ignore"):  # 0 by 0
        found: Floats = shared / (true + held[:, 0])
    return found


def _trivial(truth: SoundTruth, worth: Floats, config: SoundConfig) -> tuple[Ints, Floats, Floats]:
    """(n, k) cells with 0, 1, ... votes; (n,) the consensus IoU of the whole image, and of its middle."""
    n, edge = len(truth.table), config.size // 4
    cells, middle = np.empty((2, n, truth.most + 1), dtype=np.int64)
    for start in range(0, n, _SOUNDS_AT_ONCE):
        rows = np.arange(start, min(start + _SOUNDS_AT_ONCE, n))
        votes = count_votes(*truth.part(rows), config.size)
        inner = np.ascontiguousarray(votes[:, edge : config.size - edge, edge : config.size - edge])
        cells[rows] = count_cells_by_votes(votes, np.ones(votes.shape, dtype=bool), truth.most)
        middle[rows] = count_cells_by_votes(inner, np.ones(inner.shape, dtype=bool), truth.most)
    return cells, consensus_iou(cells, cells, worth), consensus_iou(cells, middle, worth)


_SUCCESS = 0.5


REJECTION = ("on_screen_auc", "on_screen_ap", "localisation_ap@0.5", "localisation_f1@0.5")


def rank_rejection(
    peak: Floats, on_screen: Bools, hit: Bools, cluster: Ints, weights: Ints32
) -> tuple[Floats, Floats, Floats, Floats]:
    """How well the peak of a map tells sounds that are on screen from those that are not, in each resample.

    Args:
        peak: (n,) largest value of each map as it was given.
        on_screen: (n,) whether the image shows where the sound comes from; the others are silence, or come from
            elsewhere.
        hit: (n,) whether the map is right, of those that are on screen.
        cluster: (n,) the video of each.
        weights: (resamples, videos) how often each video counts.

    Returns:
        Four times (resamples,) in [0, 1], NaN where undefined. Area under the ROC curve and average precision of "on
        screen" by falling peak; equal peaks share a threshold. The average precision of right maps among all, by
        falling peak, whose recall is that of sounds on screen; and the largest F1 of it over all thresholds.

    Source: Mo and Morgado, NeurIPS 2022 (SLAVC), section 5: AP and max-F1 with sounds that no image shows; the peak
    of the map is the confidence.

    >>> peak, shown, hit = np.array([0.9, 0.8, 0.7, 0.1]), np.array([1, 0, 1, 0]) > 0, np.array([1, 0, 0, 0]) > 0
    >>> once = np.ones((1, 4), dtype=np.int32)
    >>> [float(value[0].round(4)) for value in rank_rejection(peak, shown, hit, np.arange(4), once)]
    [0.75, 0.8333, 0.5, 0.6667]
    """
    score = np.maximum(peak, np.finfo(np.float64).min)
    ap, auc = Ranking.of(on_screen, score).areas(weights, cluster)
    counted = weights[:, cluster].astype(np.float64)
    shown, right = counted @ on_screen, counted @ (on_screen & hit)
    localised, _ = Ranking.of(on_screen & hit, score).areas(weights, cluster)
    # The ranking divides by what is right; recall is of all that are on screen.
    share = np.divide(right, shown, out=np.full(len(right), np.nan), where=shown > 0)
    localised = np.where(right > 0, localised * share, np.where(shown > 0, 0.0, np.nan))
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.r_[score[order][1:] != score[order][:-1], True]) if len(order) else order
    seen = np.cumsum(counted[:, order], axis=1)[:, ends]
    found = np.cumsum(counted[:, order] * (on_screen & hit)[order], axis=1)[:, ends]
    f1 = np.divide(2 * found, seen + shown[:, None], out=np.zeros_like(found), where=shown[:, None] > 0)
    best = np.where(shown > 0, f1.max(axis=1, initial=0.0), np.nan)
    return auc, ap, localised, best


@dataclass(frozen=True, eq=False)
class LocalisedSounds(ItemScores):
    """The state of the sound metrics: sounds and the scores of their maps.

    Of its items `peak` is the largest value of a map, `on_screen` whether a box shows where a sound comes from; null
    where boxes cover no cell.
    """

    config_type: ClassVar[type] = SoundConfig
    class_column: ClassVar[str] = "sound_class"

    config: SoundConfig

    @property
    def metrics(self) -> tuple[str, ...]:
        """Mean consensus IoU, share of successes, area under the success curve.

        Source: Song et al., CVPR 2022 (SSPL), where the share of successes is called cIoU.
        """
        return ("ciou", "success@0.5", "success_auc")

    @property
    def reason(self) -> str:
        """Why a metric may be undefined."""
        return "no sound has a box that covers a cell"

    def measured(self, weights: Ints32) -> Iterator[Measured]:
        """The means over sounds; and where some are on screen and some are not, how these are told apart."""
        yield from super().measured(weights)
        if "on_screen" not in self.items.columns:
            return
        known = self.items["on_screen"].is_not_null().to_numpy()
        shown = self.items["on_screen"].fill_null(False).to_numpy()[known]
        if not shown.any() or shown.all():
            return
        hit = np.nan_to_num(self.values[known, 1]) > 0
        peak, videos = self.items["peak"].to_numpy()[known], self._video_numbers()[known]
        for metric, values in zip(REJECTION, rank_rejection(peak, shown, hit, videos, weights), strict=True):
            yield Measured(metric, values, len(shown), reason="all sounds are on screen, or none is")


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: SoundConfig | None = None,
    *,
    by: Sequence[str] = (),
    resamples: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Overlaps of predicted localisation maps with the ground-truth regions, as means over sounds.

    `ciou` is the mean consensus IoU; `success@0.5` the share of sounds whose consensus IoU is at least 0.5,
    published under the name cIoU; `success_auc` the area under that share over the thresholds from 0 to 1,
    published as AUC. All lie in [0, 1], higher is better. `baselines` holds the same of two answers without a
    model: the `whole image`, and the `centre`, the middle half of both sides.

    Where some sounds of the ground truth have no box, being silent or off screen, `on_screen_auc` and `on_screen_ap`
    say how well the largest value of a map tells that a sound is on screen, and `localisation_ap@0.5` and
    `localisation_f1@0.5` count a map as right only where it also lies well; see `rank_rejection`.

    Args:
        predictions: `sounds` with the ground truth's numbers and a `map` each, of any size.
        scenes: `sounds`, the boxes that point to them, and the size of each image.
        config: how they are judged (default: `SoundConfig.default()`).
        by: columns to slice by: `sound_class`, `category`.
        resamples: resamples of videos for the intervals.
        seed: of the resamples.

    Returns:
        whole and classes of sound; instances of `sound`.

    Raises:
        InputError: if there are no true sounds or boxes, no prediction is about one, a map is no rectangle, or a
            sound has no map where that is an error.
        UsageError: if `resamples` is negative or there is no such column.

    Source: Song et al., CVPR 2022 (SSPL), and the supplement of Chaotic World, ICCV 2023, section 3.4.
    """
    config = config or SoundConfig.default()
    truth = build_sound_truth(scenes, config)
    # `prediction` and `row`: which row of the predictions is about which of the ground truth. Maps are not copied.
    predicted = predictions.sounds.select("sound", pl.col("video").cast(pl.String)).with_row_index(
        "prediction"
    )
    true = truth.table.select("sound", "video").with_row_index("row")
    matched = predicted.join(true, on=["sound", "video"]).select("prediction", "row")
    if len(predicted) and matched.is_empty():
        raise InputError(
            f"none of {len(predicted)} predictions is about one of the {len(true)} true sounds",
            hint=f"sounds and videos, of predictions: {predicted.select('sound', 'video').head(3).rows()}, "
            f"of the truth: {true.select('sound', 'video').head(3).rows()}",
        )
    found = compute_sound_overlaps(truth, predictions.sounds, matched, config)
    missing = truth.table.filter(~found.predicted)
    if config.missing_prediction == "error" and len(missing):
        names = missing["name"].fill_null(missing["sound"].cast(pl.String)).head(5).to_list()
        raise InputError(
            f"{len(missing)} of {len(truth.table)} sounds have no map, first {names}",
            hint="predict a map of every sound, or let them score 0: missing_prediction='zero'",
        )
    boxed = np.diff(truth.first) > 0
    seen = pl.Series("on_screen", boxed).set(pl.Series(boxed & (found.true_cells == 0)), None)
    items = truth.table.with_columns(seen, pl.Series("peak", found.peak))
    state = LocalisedSounds(items, _values(found.ciou, found, ~found.predicted, config), config)
    nobody = np.zeros(len(truth.table), dtype=bool)
    answers = {"whole image": found.whole, "centre": found.centre}
    # What is missing or says nothing, and what that did, in words.
    notes = []
    silent, constant = int((~found.predicted).sum()), int(found.constant.sum())
    if silent:
        notes.append(f"{silent:,} of {len(found.predicted):,} sounds have no map and score 0")
    if constant:
        cells = "no cell" if config.constant_map == "empty" else "every cell"
        notes.append(f"{constant:,} maps have one value only and predict {cells}")
    return build_result(
        state,
        config,
        by=by,
        resamples=resamples,
        seed=seed,
        notes=tuple(notes),
        makers={"sound": partial(_by_sound, truth, found)},
        left_out=_left_out(len(predictions.sounds) - len(matched), found, config),
        baselines={
            name: compute_values(
                replace(state, items=truth.table, values=_values(ciou, found, nobody, config))
            )
            for name, ciou in answers.items()
        },
        facts=_facts(found, config),
    )


def _values(ciou: Floats, found: SoundOverlaps, silent: Bools, config: SoundConfig) -> Floats:
    """(sounds, metrics) in the order of `LocalisedSounds.metrics`.

    A success curve is linear in the successes of each sound, so that the area under the mean curve is the
    mean of the areas.

    Args:
        ciou: (sounds,) NaN where ground truth and prediction are empty, which fails at every threshold.
        found: tells where the ground truth is empty.
        silent: (sounds,) nothing is predicted, which fails at every threshold too.
        config: the thresholds.
    """
    steps = np.array(config.success_thresholds)
    passed = (ciou[:, None] >= steps) & ~silent[:, None]
    area = ((passed[:, 1:] + passed[:, :-1].astype(np.float64)) / 2 * np.diff(steps)).sum(axis=1)
    values = np.column_stack([ciou, (ciou >= _SUCCESS) & ~silent, area])
    if config.empty_truth == "left_out":
        values[found.true_cells == 0] = np.nan
    return values


def _left_out(foreign: int, found: SoundOverlaps, config: SoundConfig) -> dict[str, int]:
    empty = int((found.true_cells == 0).sum()) if config.empty_truth == "left_out" else 0
    return {
        "sounds whose boxes cover no cell": empty,
        "predictions on sounds that the truth lacks": foreign,
    }


def _facts(found: SoundOverlaps, config: SoundConfig) -> dict[str, Any]:
    """What belongs beside every number."""
    cells = found.cells[found.predicted]
    return {
        "sounds": len(found.ciou),
        "predicted": int(found.predicted.sum()),
        "map_sizes": found.sizes,
        "judged_at": f"{config.size} x {config.size}",
        "consensus": config.consensus,
        "threshold": "median" if config.threshold is None else config.threshold,
        "constant_maps": int(found.constant.sum()),
        "sounds_without_truth": int((found.true_cells == 0).sum()),
        "predicted_share": float(cells.mean() / config.size**2) if len(cells) else None,
        "average": "over sounds",
    }


def _by_sound(truth: SoundTruth, found: SoundOverlaps) -> pl.DataFrame:
    """One row per sound: its consensus IoU beside those of trivial answers; null where undefined."""
    table = truth.table.with_columns(
        pl.Series("boxes", np.diff(truth.first)),
        pl.Series("annotators", truth.annotators),
        pl.Series("predicted", found.predicted),
        pl.Series("constant", found.constant),
        pl.Series("predicted_cells", found.cells),
        pl.Series("true_cells", found.true_cells),
        pl.Series("ciou", found.ciou),
        pl.Series("whole_image", found.whole),
        pl.Series("centre", found.centre),
    )
    return table.with_columns(pl.col("ciou", "whole_image", "centre").fill_nan(None))
