"""Video-level matches: which predicted tubes overlap ground-truth ones of their class enough, in space and time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import UsageError
from roadaware.geometry.boxes import Pairs, compute_tube_overlaps
from roadaware.metrics.detection.config import DetectionConfig, list_tube_kinds
from roadaware.metrics.detection.matches import Matches
from roadaware.metrics.detection.sizes import scale_to_common_size
from roadaware.metrics.detection.tube_rows import (
    AGENTNESS,
    Class,
    LabelledTubes,
    extract_labelled_tubes,
    list_tube_classes,
)
from roadaware.scenes.tables import Predictions, Scenes

Overlap = Literal["stiou", "siou", "tiou"]

_LOG = logging.getLogger("roadaware")


@dataclass(frozen=True, eq=False)
class JudgedTubes:
    """Predictions and ground truth of the same classes and videos, and how much their extents overlap.

    Args:
        classes: (C,) kind and label, by name.
        videos: (V,) the videos of the ground truth.
        claims: n labels of predicted tubes.
        truth: labels of ground-truth tubes that have boxes, and not only such as are to ignore.
        pairs: the pairs of predicted and ground-truth extents that meet in time.
        overlap: (p,) how much the two of each pair overlap.
        absorbed: (predicted extents,) how much each overlaps the ground-truth tube to ignore that it overlaps most.
        boxless: ground-truth tubes that were left out because they have no box.
    """

    classes: tuple[Class, ...]
    videos: tuple[str, ...]
    claims: LabelledTubes
    truth: LabelledTubes
    pairs: Pairs
    overlap: Floats
    absorbed: Floats
    boxless: int

    def matches(self, thresholds: Sequence[float]) -> Matches:
        """Which predictions are hits at each threshold."""
        taken = _taken(self, thresholds)
        n_truth = np.zeros((len(self.videos), len(self.classes)), dtype=np.int64)
        np.add.at(n_truth, (self.truth.video, self.truth.cls), 1)
        ignored = None
        if self.absorbed.any():
            ignored = self.on_ignored(thresholds) & (taken < 0)
        return Matches(
            tuple(float(threshold) for threshold in thresholds),
            self.classes,
            self.videos,
            self.claims.cls.astype(np.int32),
            self.claims.score,
            self.claims.video.astype(np.int32),
            np.arange(len(self.claims), dtype=np.int64),
            taken >= 0,
            n_truth,
            ignored,
        )

    def on_ignored(self, thresholds: Sequence[float]) -> Bools:
        """(n, T) whether each prediction overlaps an ignored tube by at least each threshold."""
        enough: Bools = self.absorbed[self.claims.extent][:, None] >= np.array(thresholds, dtype=np.float64)
        return enough

    @property
    def left_out(self) -> dict[str, int]:
        """What was not judged to how often."""
        found = {
            "labels of predicted tubes in videos that the truth does not have": self.claims.left_out,
            "labels of true tubes without a box": self.boxless,
        }
        return {what: n for what, n in found.items() if n}

    @property
    def ranked(self) -> Ints:
        """The predictions by falling score; equal scores by video, then by place in the table."""
        return np.lexsort((np.arange(len(self.claims)), self.claims.video, -self.claims.score))

    @property
    def held(self) -> tuple[Ints, Ints]:
        """Where the ground-truth tubes of each extent begin, and the ground-truth tubes by extent."""
        by_extent = np.argsort(self.truth.extent, kind="stable")
        edges = np.arange(len(self.truth.tubes) + 1)
        return np.searchsorted(self.truth.extent[by_extent], edges), by_extent

    def arrays(self) -> tuple[Ints, Ints, Floats, Ints, Ints]:
        """Pairs and ground truth as arrays for the kernels."""
        return self.pairs.offsets, self.pairs.second, self.overlap, *self.held


def match_tubes(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    thresholds: Sequence[float],
    overlap: Overlap = "stiou",
    kinds: Sequence[str] | None = None,
) -> Matches:
    """Match the predicted tubes of each class with the ground-truth ones, best score first.

    A prediction takes, of the ground-truth tubes of its class and video that no better prediction took, the one it
    overlaps most; it is a hit where that overlap is at least the threshold. The overlap is `tiou`, that
    of the times; `siou`, the mean of the boxes' over the frames where both tubes have one; or `stiou`,
    the product of the two. Where `config.tube_time` is `endpoints`, times are intervals from first to
    last frame as long as the published code finds the boxes it looks for, which it does unless a tube
    has a hole in the common interval; there the sets of frames are compared, as `frames` always does. A ground-truth
    tube whose boxes are all marked `ignore` is not asked for, and a prediction of whatever class that overlaps
    it by the threshold and is no hit counts neither as right nor as wrong.

    Args:
        predictions: labelled tubes with scores; tubes without parent and kind are the predictions of agentness.
            Predictions in videos that `scenes` lacks are left out and counted in the log.
        scenes: with tubes of each kind. Ground-truth tubes without a box are left out and counted in the log.
        config: `tube_time`, `video_pixel_offset`, `frame_size_px` and `min_tube_score` hold here.
        thresholds: (T,) each in (0, 1].
        overlap: what is compared with the thresholds.
        kinds: which kinds of labels (default: those that both sides know), see `kinds.list_tube_kinds`.

    Raises:
        UsageError: if the overlap, a threshold or a kind is not known.
        InputError: if tubes contradict themselves; see `extract_labelled_tubes`.

    Source: the code released with Singh et al., TPAMI 2022; section 5.2 there.
    """
    wrong = [threshold for threshold in thresholds if not 0 < threshold <= 1]
    if wrong or not len(thresholds):
        raise UsageError(f"thresholds of overlap lie in (0, 1]; got {wrong or 'none'}")
    return prepare_tubes(predictions, scenes, config, overlap, kinds).matches(thresholds)


def build_tube_table(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    overlap: Overlap = "stiou",
    kinds: Sequence[str] | None = None,
    *,
    threshold: float = 0.5,
) -> pl.DataFrame:
    """One row per predicted tube and label: the ground-truth tube that it overlaps most, and its match.

    Args:
        predictions: as in `match_tubes`, like the next four.
        scenes: ground truth.
        config: what the metric leaves open.
        overlap: what counts as overlap.
        kinds: which kinds of labels.
        threshold: of `matched`.

    Returns:
        `tube`, `video`, `kind`, `label`, `score`; `truth`, the ground-truth tube of the same label with the
        greatest overlap, taken or not, with `overlap`, `temporal` and `spatial`; `matched`, the ground-truth tube
        that the prediction took at the threshold; `ignored`, whether it counts neither as right nor as wrong
        there; and `near_truth`, `near_label`, `near_overlap`,
        `near_temporal`, `near_spatial`, the same as `truth` whatever the label of that kind is. Null where
        there is none.

    Raises:
        UsageError: as `match_tubes` does.
        InputError: as `match_tubes` does.
    """
    judged = prepare_tubes(predictions, scenes, config, overlap, kinds)
    claims, names = judged.claims, np.array(judged.videos, dtype=object)
    kind, label = (np.array([named[i] for named in judged.classes], dtype=object) for i in (0, 1))
    table = pl.DataFrame(
        {
            "tube": claims.tube,
            "video": pl.Series(names[claims.video].tolist(), dtype=pl.String),
            "kind": pl.Series(kind[claims.cls].tolist(), dtype=pl.String),
            "label": pl.Series(label[claims.cls].tolist(), dtype=pl.String),
            "score": claims.score,
        }
    )
    taken = _taken(judged, (threshold,))[:, 0]
    ignored = (taken < 0) & judged.on_ignored((threshold,))[:, 0]
    nearest = _nearest(judged, np.arange(len(judged.classes)))
    _, kind_of = np.unique(kind.astype(str), return_inverse=True)
    near = _nearest(judged, kind_of).rename(lambda c: f"near_{c}")
    near_label = pl.Series(label[judged.truth.cls].tolist(), dtype=pl.String)
    at = near["near_at"].cast(pl.UInt32)
    return pl.concat(
        [
            table,
            nearest.drop("at"),
            pl.DataFrame({"matched": _looked_up(judged.truth.tube, taken), "ignored": ignored}),
            near.drop("near_at").insert_column(1, near_label.gather(at).alias("near_label")),
        ],
        how="horizontal",
    )


def prepare_tubes(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    overlap: Overlap,
    kinds: Sequence[str] | None,
) -> JudgedTubes:
    """Bring ground truth and predictions to the same classes, videos and pixels, and compare their extents."""
    if overlap not in get_args(Overlap):
        raise UsageError(f"overlap should be one of {', '.join(get_args(Overlap))}; got {overlap!r}")
    classes = list_tube_classes(scenes, list_tube_kinds(predictions, scenes) if kinds is None else kinds)
    videos = tuple(scenes.videos["video"].cast(pl.String).to_list())
    predictions, scenes, scale = scale_to_common_size(predictions, scenes, videos, config)
    truth, ignored, boxless = _select_true_tubes(scenes, classes, videos, scale.truth)
    claims = extract_labelled_tubes(predictions, classes, videos, scale.claims)
    if config.min_tube_score is not None:
        claims = claims.only(claims.score > config.min_tube_score)
    time = config.tube_time
    pairs = compute_tube_overlaps(
        claims.tubes,
        truth.tubes,
        # As published: the overlap in time alone looks at no box, so that holes make no difference to it.
        time="endpoints_always" if (time, overlap) == ("endpoints", "tiou") else time,
        pixel_offset=config.video_pixel_offset,
        single=config.numbers == "single",
    )
    values = {"tiou": pairs.temporal, "siou": pairs.spatial, "stiou": pairs.spatial * pairs.temporal}
    absorbed = np.zeros(len(claims.tubes))
    of_ignored = ignored[pairs.second]
    np.maximum.at(absorbed, pairs.first[of_ignored], values[overlap][of_ignored])
    return JudgedTubes(classes, videos, claims, truth, pairs, values[overlap], absorbed, boxless)


def _select_true_tubes(
    scenes: Scenes, classes: tuple[Class, ...], videos: tuple[str, ...], scale: Floats
) -> tuple[LabelledTubes, Bools, int]:
    """The ground-truth tubes that are asked for, which extents are to ignore, and how many tubes have no box."""
    whole = (AGENTNESS, AGENTNESS)
    # Who is to be ignored is so for every kind, also for those that say nothing of him.
    besides = "ignore" in scenes.boxes.columns and whole[0] not in {kind for kind, _ in classes}
    truth = extract_labelled_tubes(scenes, (*classes, whole) if besides else classes, videos, scale)
    ignored = truth.ignored
    of_classes = truth.cls < len(classes)
    held = truth.tubes.lengths[truth.extent] > 0
    boxless = int((of_classes & ~held).sum())
    if boxless:
        _LOG.info("%d labels of true tubes without a box are left out", boxless)
    asked = of_classes & held & ~ignored[truth.extent]
    return truth if asked.all() else truth.only(asked), ignored, boxless


def _taken(judged: JudgedTubes, thresholds: Sequence[float]) -> Ints:
    """(n, T) the ground-truth tube that each prediction takes at each threshold, as a row; -1 for none."""
    from roadaware.metrics.detection.video_kernels import assign_tubes

    claims = judged.claims
    levels = np.array(thresholds, dtype=np.float64)
    return assign_tubes(judged.ranked, claims.extent, claims.cls, *judged.arrays(), judged.truth.cls, levels)


def _nearest(judged: JudgedTubes, group: npt.NDArray[Any]) -> pl.DataFrame:
    """The ground-truth tube of each prediction's group with the greatest overlap, and its row `at`; null where none is.

    Args:
        judged: predictions and ground truth.
        group: (C,) the group of each class.
    """
    from roadaware.metrics.detection.video_kernels import find_nearest_tubes

    group = group.astype(np.int64)
    claims, truth = judged.claims, judged.truth
    pair, at = find_nearest_tubes(claims.extent, group[claims.cls], *judged.arrays(), group[truth.cls])
    columns = {"overlap": judged.overlap, "temporal": judged.pairs.temporal, "spatial": judged.pairs.spatial}
    return pl.DataFrame(
        {
            "truth": _looked_up(truth.tube, at),
            **{name: _looked_up(values, pair) for name, values in columns.items()},
            "at": _looked_up(np.arange(len(truth)), at),
        }
    )


def _looked_up(values: npt.NDArray[Any], at: Ints) -> pl.Series:
    """The values at some places, null where a place is -1."""
    return pl.Series(values).gather(pl.Series(at, dtype=pl.Int64).replace(-1, None).cast(pl.UInt32))
