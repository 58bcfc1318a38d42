"""How well sentences are grounded in time and space, as a whole, by kind of sentence and by slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import check_limits, check_words
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import paired_iou
from roadaware.metrics.metric_state import (
    ItemScores,
    SceneResult,
    build_result,
    crowd_density,
    refuse_other_units,
)
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes


@dataclass(frozen=True)
class GroundingConfig:
    """How predicted spans and boxes of sentences are judged; the defaults are what `default` gives.

    Args:
        frames: which frames are considered: every one (`dense`), or one of each tick of `sample_fps`
            (`sampled`).
        sample_fps: ticks per second; a frame is taken when it is the first of its tick.
        clip_seconds: how long every video is taken to last, so that its rate is its number of frames by
            this; None takes the rate that the video has.
        last_frame: whether the last frame of the video can be sampled (`kept`) or not (`dropped`).
        most_frames: of more sampled frames than this, n, the (j * n // most_frames)-th are kept; None keeps
            all.
        ends: whether the frame at the end of a span belongs to it (`inclusive`) or not (`half_open`, which is
            how the tables hold it).
        hull_end: the frames over which vIoU is taken end with the later of both ends (`max`), or with the
            earlier one (`min`, as published until 5/2022).
        common_frames: the frames of the intersection are those in both spans (`spans`), or those where both
            sides have a box (`boxes`).
        boxless_frames: frames of the ground-truth span without a ground-truth box are asked for by nobody and do not count
            (`left_out`), or count as frames of the span (`counted`).
        boxes_beyond: ground-truth boxes outside the ground-truth span are left aside (`left_out`), or looked at as those
            within (`counted`, as published for HC-STVG); what a sentence scores may then be above 1.
        threshold: vIoU@tau is the share of sentences at or above tau (`at_least`), or above it (`greater`).
        thresholds: the values of tau.
        numbering: the ground truth's frames count from 0 as the predictions' do (`zero`), or from where its file counts
            (`file`): the published off-by-one of HC-STVG, whose files count from 1.
        temporal: the span is what is predicted (`predicted`), or it is given and only boxes are judged, on all
            its frames (`given`) or on the first alone (`given_first`, as published for VidSTG).
        missing_prediction: a sentence without a prediction scores 0 (`zero`) or is an error (`error`).
        missing_box: a ground-truth frame without a predicted box has an overlap of 0 (`zero`) or is an error (`error`).
    """

    frames: Literal["dense", "sampled"] = "dense"
    sample_fps: float = 5.0
    clip_seconds: float | None = None
    last_frame: Literal["kept", "dropped"] = "kept"
    most_frames: int | None = None
    ends: Literal["half_open", "inclusive"] = "half_open"
    hull_end: Literal["max", "min"] = "max"
    common_frames: Literal["spans", "boxes"] = "spans"
    boxless_frames: Literal["left_out", "counted"] = "left_out"
    boxes_beyond: Literal["left_out", "counted"] = "left_out"
    threshold: Literal["at_least", "greater"] = "at_least"
    thresholds: tuple[float, ...] = (0.3, 0.5)
    numbering: Literal["zero", "file"] = "zero"
    temporal: Literal["predicted", "given", "given_first"] = "predicted"
    missing_prediction: Literal["zero", "error"] = "zero"
    missing_box: Literal["zero", "error"] = "zero"

    def __post_init__(self) -> None:
        check_words(self)
        for name in ("sample_fps", "clip_seconds"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} should be above 0; got {value!r}")
        check_limits(self, "most_frames")
        if not all(0 <= tau <= 1 for tau in self.thresholds):
            raise UsageError(f"thresholds lie in [0, 1]; got {self.thresholds!r}")

    @classmethod
    def default(cls) -> GroundingConfig:
        """The choices we recommend: every frame that has a ground-truth box, and the paper's `at least`.

        Source: supplement of Chaotic World, ICCV 2023, section 3.3.
        """
        return cls()

    @classmethod
    def tubedetr_hcstvg(cls) -> GroundingConfig:
        """The evaluator of HC-STVG released with TubeDETR, in its last state (hull ends at the later end).

        Source: Yang et al., CVPR 2022, `hcstvg_eval.py`. It stops where a prediction or a box is missing;
        here both score 0 and are counted.
        """
        return cls(
            frames="sampled",
            clip_seconds=20.0,  # its sampling ends a frame early
            last_frame="dropped",
            most_frames=200,
            boxless_frames="counted",
            threshold="greater",
            numbering="file",
        )

    @classmethod
    def tubedetr_vidstg(cls) -> GroundingConfig:
        """The evaluator of VidSTG released with TubeDETR, in its last state.

        Source: Yang et al., CVPR 2022, `vidstg_eval.py`. It gives each kind of sentence by itself and no
        whole.
        """
        return cls(
            frames="sampled",
            most_frames=200,
            boxless_frames="counted",
            threshold="greater",
            numbering="file",
        )

    @classmethod
    def hcstvg_official(cls) -> GroundingConfig:
        """The script of the HC-STVG challenge: every ground-truth box, and time counted by frames with both boxes.

        Its files name the last frame of a span; read into tables, that is the frame before `end_frame`, so
        that spans are half open here as everywhere.

        Source: Tang et al., 2020, `eval_hcvg.py`.
        """
        return cls(
            common_frames="boxes", boxless_frames="counted", boxes_beyond="counted", threshold="greater"
        )


CONFIGS: dict[str, Callable[[], GroundingConfig]] = {
    "default": GroundingConfig.default,
    "tubedetr-hcstvg": GroundingConfig.tubedetr_hcstvg,
    "tubedetr-vidstg": GroundingConfig.tubedetr_vidstg,
    "hcstvg-official": GroundingConfig.hcstvg_official,
}


_TRUTH: dict[str, Any] = {
    "query": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "sentence_kind": pl.String,
    "tube": pl.Int64,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "segment_start_frame": pl.Int64,
    "segment_end_frame": pl.Int64,
}
_PREDICTION = ("query", "video", "tube", "start_frame", "end_frame")


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences with a ground-truth span, their predictions, and their ground-truth boxes with the predicted ones beside.

    Args:
        table: one row per sentence: `_TRUTH`'s columns, `category`, `density`, `fps`, `n_frames`, and
            `predicted_start`, `predicted_end`, null where nothing is predicted. Numbers of frames are those that
            the configuration compares, ends half open.
        predicted: (sentences,) whether there is a prediction.
        owner: (boxes,) the sentence of each ground-truth box that is looked at, rising.
        frame: (boxes,) its frame, rising within a sentence.
        overlap: (boxes,) with the predicted box of that frame; 0 where there is none.
        paired: (boxes,) whether there is one.
        left_out: what was not judged, in words, to how often.
    """

    table: pl.DataFrame
    predicted: Bools
    owner: Ints
    frame: Ints
    overlap: Floats
    paired: Bools
    left_out: dict[str, int]


def join_sentences(predictions: Predictions, scenes: Scenes, config: GroundingConfig) -> Sentences:
    """Ground truth and predictions of every sentence.

    Raises:
        InputError: if no sentence has a ground-truth span, no prediction is about one of them, `first_frame` of the
            ground truth's notes is no number, or boxes of the two are in different units.
    """
    refuse_other_units(predictions, scenes)
    queries = _with_columns(scenes.queries, _TRUTH)
    spans = queries.filter(pl.col("start_frame").is_not_null() & pl.col("end_frame").is_not_null())
    if spans.is_empty():
        raise InputError(
            f"the truth has {len(queries)} sentences and none with a span",
            hint="`queries` needs start_frame and end_frame",
        )
    predicted = _with_columns(predictions.queries, {name: _TRUTH[name] for name in _PREDICTION})
    table = spans.with_row_index("row").join(
        predicted.rename(
            {"tube": "predicted_tube", "start_frame": "predicted_start", "end_frame": "predicted_end"}
        ),
        on=["query", "video"],
        how="left",
        maintain_order="left",
        coalesce=True,
    )
    known = predicted.join(spans, on=["query", "video"], how="semi")
    if len(predicted) and known.is_empty():
        raise InputError(
            f"none of {len(predicted)} predictions is about one of the {len(spans)} true sentences",
            hint=f"queries and videos, of predictions: {predicted.select('query', 'video').head(3).rows()}, "
            f"of sentences: {spans.select('query', 'video').head(3).rows()}",
        )
    within = ("start_frame", "end_frame") if config.boxes_beyond == "left_out" else ()
    true = _boxes(table.select("row", "tube", *within), scenes.boxes)
    prediction = _boxes(table.select("row", pl.col("predicted_tube").alias("tube")), predictions.boxes)
    shift = _first_frame(scenes.meta.notes) if config.numbering == "file" else 0
    overlap, paired = _overlaps(true, prediction, shift)
    # The table with what is known of each sentence's video, and how many are in its frames.
    videos = _with_columns(
        scenes.videos,
        {"video": pl.String, "category": pl.String, "fps": pl.Float64, "n_frames": pl.Int64},
    )
    table = table.join(videos, on="video", how="left", maintain_order="left")
    crowd = scenes.boxes.group_by(pl.col("video").cast(pl.String), "frame").len("others")
    seen = (
        true.select("row", "frame")
        .join(table.select("row", "video"), on="row")
        .join(crowd, on=["video", "frame"])
        .group_by("row")
        .agg(pl.col("others").mean())
    )
    joined = table.join(seen, on="row", how="left", maintain_order="left")
    table = joined.with_columns(density=crowd_density(pl.col("others"))).drop("others")
    # Ground-truth spans moved by `shift`; all spans longer at their end by `longer`.
    longer = int(config.ends == "inclusive")
    return Sentences(
        table=table.with_columns(
            pl.col("start_frame") + shift,
            pl.col("end_frame") + shift + longer,
            pl.col("predicted_end") + longer,
        ),
        predicted=table["query"].is_in(known["query"].implode()).to_numpy(),
        owner=true["row"].to_numpy().astype(np.int64),
        frame=true["frame"].to_numpy().astype(np.int64) + shift,
        overlap=overlap,
        paired=paired,
        left_out={
            "sentences without a true span": len(queries) - len(spans),
            "predictions on sentences that the truth lacks": len(predicted) - len(known),
        },
    )


def _with_columns(frame: pl.DataFrame, columns: Mapping[str, Any]) -> pl.DataFrame:
    """The columns by name, null where the table lacks them."""
    return frame.select(
        (pl.col(c) if c in frame.columns else pl.lit(None)).cast(dtype).alias(c)
        for c, dtype in columns.items()
    )


def _first_frame(notes: Mapping[str, Any]) -> int:
    first = notes.get("first_frame", 0)
    if type(first) is not int:
        raise InputError(f"the truth's note `first_frame` should be a whole number, not {first!r}")
    return first


def _boxes(owners: pl.DataFrame, boxes: pl.DataFrame) -> pl.DataFrame:
    """(row, frame, corners) of the boxes of each row's tube, in order; the first of a frame, within the span.

    Args:
        owners: `row`, `tube`, and `start_frame` and `end_frame` where only boxes between them are asked for.
        boxes: the table.
    """
    columns = ["row", "frame", *CORNERS]
    if "tube" not in boxes.columns or boxes.is_empty():
        return pl.DataFrame(
            schema={"row": pl.UInt32, "frame": pl.Int64, **dict.fromkeys(CORNERS, pl.Float64)}
        )
    owners = owners.filter(pl.col("tube").is_not_null())
    held = boxes.select("tube", "frame", *CORNERS).filter(pl.col("tube").is_in(owners["tube"].implode()))
    found = owners.join(held, on="tube", maintain_order="left_right")
    if "start_frame" in owners.columns:
        found = found.filter(
            (pl.col("frame") >= pl.col("start_frame")) & (pl.col("frame") < pl.col("end_frame"))
        )
    found = found.select(columns).sort("row", "frame", maintain_order=True)
    repeated = (pl.col("row") == pl.col("row").shift(1)) & (pl.col("frame") == pl.col("frame").shift(1))
    return found.filter(~repeated.fill_null(False)).cast(dict.fromkeys(CORNERS, pl.Float64))


def _overlaps(true: pl.DataFrame, prediction: pl.DataFrame, shift: int) -> tuple[Floats, Bools]:
    """(boxes,) overlap with the predicted box of the same frame, and whether there is one.

    Args:
        true: boxes in order of row and frame.
        prediction: the same.
        shift: added to the ground truth's frames before they meet the predictions'.
    """
    frames = np.concatenate([part["frame"].to_numpy() for part in (true, prediction)])
    first, last = int(frames.min(initial=0)), int(frames.max(initial=0)) + shift + 1
    wanted, held = (
        part["row"].to_numpy().astype(np.int64) * (last - first) + part["frame"].to_numpy() - first + added
        for part, added in ((true, shift), (prediction, 0))
    )
    place = np.searchsorted(held, wanted)
    paired: Bools = np.zeros(len(wanted), dtype=bool)
    inside = place < len(held)
    paired[inside] = held[place[inside]] == wanted[inside]
    one, other = true.select(CORNERS).to_numpy()[paired], prediction.select(CORNERS).to_numpy()[place[paired]]
    overlap = np.zeros(len(wanted))
    overlap[paired] = paired_iou(other, one)
    return overlap, paired


# How well each sentence is grounded: overlaps in time, in both, and of boxes on the ground-truth frames.


# Which frames of a video an evaluator of grounded sentences looks at.


def sample_frames(start: int, end: int, fps: float, config: GroundingConfig) -> Ints:
    """(n,) the frames of [start, end) that are considered, rising; `start` always is one of them.

    A frame is taken when the whole part of frame * (sample_fps / fps) is larger than that of the frame taken
    before it. A rate below `sample_fps` takes every frame.

    Args:
        start: first frame.
        end: the frame after the last that may be taken.
        fps: frames per second of the video.
        config: `sample_fps` and `most_frames`.

    Source: Yang et al., CVPR 2022, `hcstvg_eval.py`, `vidstg_eval.py`.

    >>> sample_frames(0, 20, 25.0, GroundingConfig())
    array([ 0,  5, 10, 15])
    """
    frames = np.arange(start, max(end, start + 1), dtype=np.int64)
    # The quotient first, as published: another order may round to the other side of a whole number.
    ticks = (frames * (config.sample_fps / fps)).astype(np.int64)
    taken: Ints = frames[np.concatenate([[True], ticks[1:] > ticks[:-1]])]
    most = config.most_frames
    if most is not None and len(taken) > most:
        # As published: evenly spread, in whole numbers.
        taken = taken[(np.arange(most) * len(taken)) // most]
    return taken


def convert_frame_rate(fps: float) -> float:
    """The rate in double precision that a table's single precision stands for: 30000 / 1001, 25, 29.97, ...

    Frames are taken by whole parts of products with it, so that the last digits decide.

    >>> convert_frame_rate(float(np.float32(30000 / 1001))) == 30000 / 1001
    True
    """
    single = np.float32(fps)
    ratio = Fraction(round(float(single) * 1001 / 1000) * 1000, 1001)
    if np.float32(float(ratio)) == single:
        return float(ratio)
    # The shortest decimal that 32 bits hold as this number.
    return float(str(single))


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Scores of n sentences, NaN where undefined, and the counts behind them.

    Args:
        tiou: (n,) overlap in time.
        viou: (n,) overlap in time and space.
        gt_viou: (n,) mean overlap of boxes over the ground-truth frames, whatever span is predicted.
        true_frames: (n,) frames with a ground-truth box that were looked at.
        hull_frames: (n,) frames that vIoU was divided by.
        unanswered: (n,) of the ground-truth frames, those without a predicted box.
    """

    tiou: Floats
    viou: Floats
    gt_viou: Floats
    true_frames: Ints
    hull_frames: Ints
    unanswered: Ints


@dataclass(frozen=True, eq=False)
class _Spans:
    """(n,) first frame and frame after the last, ground-truth and predicted, and whether a span is predicted."""

    start: Ints
    end: Ints
    predicted_start: Ints
    predicted_end: Ints
    known: Bools


def compute_grounding_overlaps(given: Sentences, config: GroundingConfig) -> Overlaps:
    """The overlaps of all sentences.

    Raises:
        InputError: if frames are to be sampled and a video's rate or length is unknown, or a prediction or box is
            missing where that is an error.

    Source: supplement of Chaotic World, ICCV 2023, section 3.3 (tIoU, vIoU); Yang et al.,
    CVPR 2022, `hcstvg_eval.py`.
    """
    n = len(given.table)
    spans = _spans(given, config)
    looked, owner, frame = _looked_at(given, spans, config)
    true_frames = np.bincount(given.owner[looked], minlength=n)
    unanswered = np.bincount(given.owner[looked & ~given.paired], minlength=n)
    # Stop where a prediction or a box is missing and that is an error.
    names = given.table["name"].fill_null(given.table["query"].cast(pl.String))
    if config.missing_prediction == "error" and not given.predicted.all():
        missing = names.filter(~given.predicted)
        raise InputError(
            f"{len(missing)} of {len(names)} sentences have no prediction, first {missing.head(5).to_list()}",
            hint="predict something of every sentence, or let them score 0: missing_prediction='zero'",
        )
    if config.missing_box == "error" and unanswered.any():
        missing = names.filter(unanswered > 0)
        raise InputError(
            f"{int(unanswered.sum())} true frames of {len(missing)} sentences have no predicted box, first of "
            f"{missing.head(5).to_list()}",
            hint="predict a box in every frame that is looked at, or let them score 0: missing_box='zero'",
        )
    hull = _hull(given, spans, looked, (owner, frame), config)
    if config.common_frames == "boxes":
        common = given.paired & spans.known[given.owner]
    else:
        first, last = (
            np.maximum(spans.start, spans.predicted_start),
            np.minimum(spans.end, spans.predicted_end),
        )
        common = (given.frame >= first[given.owner]) & (given.frame < last[given.owner])
    common &= looked
    divisor = np.maximum(hull, 1)
    viou = np.bincount(given.owner[common], given.overlap[common], minlength=n) / divisor
    gt_viou = np.bincount(given.owner[looked], given.overlap[looked], minlength=n) / np.maximum(
        true_frames, 1
    )
    if config.common_frames == "boxes":
        tiou = np.bincount(given.owner[common], minlength=n) / divisor
    else:
        # (n,) frames in both spans by frames in either; 0 where they share none.
        shared = np.minimum(spans.end, spans.predicted_end) - np.maximum(spans.start, spans.predicted_start)
        either = (spans.end - spans.start) + (spans.predicted_end - spans.predicted_start) - shared
        tiou = np.divide(shared, either, out=np.zeros(len(shared)), where=shared > 0)
    if config.temporal != "predicted":
        tiou, viou = np.full(n, np.nan), np.full(n, np.nan)
    if config.boxless_frames == "left_out":
        unseen = true_frames == 0
        viou, gt_viou = np.where(unseen, np.nan, viou), np.where(unseen, np.nan, gt_viou)
        tiou = np.where(unseen & (config.common_frames == "boxes"), np.nan, tiou)
    return Overlaps(tiou, viou, gt_viou, true_frames, hull, unanswered)


def _spans(given: Sentences, config: GroundingConfig) -> _Spans:
    """The spans; without a predicted one, an empty one at the true start, which shares no frame."""
    start, end = (given.table[c].to_numpy().astype(np.int64) for c in ("start_frame", "end_frame"))
    if config.temporal != "predicted":
        return _Spans(start, end, start, end, given.predicted)
    known = pl.col("predicted_start").is_not_null() & pl.col("predicted_end").is_not_null()
    predicted = given.table.select(
        *(
            pl.when(known).then(c).otherwise("start_frame").alias(c)
            for c in ("predicted_start", "predicted_end")
        ),
        known=known,
    )
    first, last = (predicted[c].to_numpy().astype(np.int64) for c in ("predicted_start", "predicted_end"))
    return _Spans(start, end, first, last, predicted["known"].to_numpy())


def _looked_at(given: Sentences, spans: _Spans, config: GroundingConfig) -> tuple[Bools, Ints, Ints]:
    """Which ground-truth boxes are considered, and, where frames are sampled, owner and number of all that are."""
    nothing = np.zeros(0, dtype=np.int64)
    if config.frames == "dense":
        looked = np.ones(len(given.frame), dtype=bool)
        if config.temporal == "given_first":
            looked = given.frame == spans.start[given.owner]
        return looked, nothing, nothing
    # The frames of each sentence's video, or of the part that is searched, that are considered
    columns = ("video", "fps", "n_frames", "segment_start_frame", "segment_end_frame")
    made: dict[tuple[int, int, float], Ints] = {}
    taken = []
    for place, (video, fps, n_frames, first, last) in enumerate(given.table.select(columns).iter_rows()):
        if config.temporal == "predicted":
            start, end = first or 0, n_frames if last is None else last
            end = end - 1 if end is not None and config.last_frame == "dropped" else end
        else:
            start, end = int(spans.start[place]), int(spans.end[place])
            end = start if config.temporal == "given_first" else end
        if config.clip_seconds is not None:
            rate = n_frames / config.clip_seconds if n_frames else None
        else:
            rate = convert_frame_rate(fps) if fps else None
        if end is None or rate is None:
            raise InputError(
                f"video {video}: frames cannot be sampled, its {'rate' if rate is None else 'length'} is "
                "unknown",
                hint="give videos.fps and videos.n_frames, or look at every frame: frames='dense'",
            )
        key = (start, end, rate)
        if key not in made:
            made[key] = sample_frames(*key, config)
        taken.append(made[key])
    owner = np.repeat(np.arange(len(taken)), [len(each) for each in taken])
    frame = np.concatenate(taken)
    boxes = pl.DataFrame({"owner": given.owner, "frame": given.frame}).with_row_index("box")
    considered = pl.DataFrame({"owner": owner, "frame": frame})
    looked = np.zeros(len(boxes), dtype=bool)
    looked[boxes.join(considered, on=["owner", "frame"], how="semi")["box"].to_numpy()] = True
    return looked, owner, frame


def _hull(
    given: Sentences, spans: _Spans, looked: Bools, samples: tuple[Ints, Ints], config: GroundingConfig
) -> Ints:
    """(n,) frames from the earlier start to the end of the hull, as far as they are considered and count."""
    n, (owner, frame) = len(spans.start), samples
    low = np.minimum(spans.start, spans.predicted_start)
    high = (np.maximum if config.hull_end == "max" else np.minimum)(spans.end, spans.predicted_end)
    true_high = np.minimum(high, spans.end)
    if config.frames == "dense":
        count: Ints = np.maximum(high - low, 0)
        asked = np.maximum(true_high - spans.start, 0)
    else:
        count = np.bincount(owner[(frame >= low[owner]) & (frame < high[owner])], minlength=n)
        asked = np.bincount(owner[(frame >= spans.start[owner]) & (frame < true_high[owner])], minlength=n)
    if config.boxless_frames == "counted":
        return count
    boxed = looked & (given.frame >= spans.start[given.owner]) & (given.frame < true_high[given.owner])
    boxes: Ints = np.bincount(given.owner[boxed], minlength=n)
    left: Ints = count - asked + boxes
    return left


# The span that scores of first and last frames speak for.

_AT_ONCE = 1 << 22
"""Pairs that are scored at once."""


def decode_span(
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    mask: npt.ArrayLike,
    *,
    frame_ids: npt.ArrayLike | None = None,
    padding: Literal["masked", "reference"] = "masked",
) -> npt.NDArray[np.int64]:
    """(n, 2) the most likely span [start, end) of each sentence, in numbers of frames.

    The probability of a pair is the product of those of its start and of its last frame, which lies behind
    the start; of equal ones the first last frame wins, and for it the first start. Where there is one frame
    only, the span is that frame.

    Args:
        starts: (n, t) logits that a place is the start.
        ends: (n, t) logits that a place is the last frame.
        mask: (n, t) whether a place holds a frame; the others are padding.
        frame_ids: (n, t) the number of each place's frame; default: 0..t-1.
        padding: `masked`, padding is never chosen; `reference`, as published: it takes part, and where it
            wins it stands for frame 0.

    Raises:
        InputError: if shapes differ, a logit is not finite, or a sentence has no frame.
        UsageError: if `padding` is another word.

    Source: Yang et al., CVPR 2022, `PostProcessSTVG`, which masks padding only where a video comes twice.

    >>> decode_span([[3.0, 0.0, 0.0, 9.0]], [[0.0, 1.0, 2.0, 9.0]], [[True, True, True, False]])
    array([[0, 3]])
    >>> decode_span([[3.0, 0.0, 0, 0]], [[0.0, 1.0, 2.0, 9.0]], [[1, 1, 1, 0]], padding="reference")
    array([[0, 1]])
    """
    if padding not in ("masked", "reference"):
        raise UsageError(f"padding should be masked or reference; got {padding!r}")
    first, last = _logits(starts, "starts"), _logits(ends, "ends")
    held = np.asarray(mask, dtype=bool)
    numbers = np.arange(first.shape[1]) if frame_ids is None else np.asarray(frame_ids)
    if first.shape != last.shape or first.shape != held.shape:
        raise InputError(
            f"starts {first.shape}, ends {last.shape} and mask {held.shape} should be of one shape"
        )
    try:
        numbers = np.broadcast_to(numbers, first.shape)
    except ValueError as error:
        raise InputError(f"frame_ids {numbers.shape} should be of the shape {first.shape}") from error
    if not held.any(axis=1).all():
        raise InputError(f"sentence {int(np.argmin(held.any(axis=1)))} has no frame: its mask is empty")
    if padding == "masked":
        first, last = np.where(held, first, -np.inf), np.where(held, last, -np.inf)
    else:
        numbers = np.where(held, numbers, 0)
    start, end = _best(_log_softmax(first), _log_softmax(last))
    if padding == "masked":
        alone = held.sum(axis=1) == 1
        start[alone] = end[alone] = held[alone].argmax(axis=1)
    rows = np.arange(len(first))
    return np.column_stack([numbers[rows, start], numbers[rows, end] + 1]).astype(np.int64)


def _logits(values: npt.ArrayLike, name: str) -> npt.NDArray[np.floating[Any]]:
    logits = np.asarray(values)
    logits = logits if np.issubdtype(logits.dtype, np.floating) else logits.astype(np.float64)
    if logits.ndim != 2 or not logits.shape[1]:
        raise InputError(f"{name} should be (sentences, places) with at least one place, not {logits.shape}")
    if not np.isfinite(logits).all():
        raise InputError(f"{name} holds a number that is not finite")
    return logits


def _log_softmax(logits: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """(n, t) logarithms of probabilities, in the precision that the logits come in."""
    # Less the largest, so that nothing overflows.
    shifted = logits - logits.max(axis=1, keepdims=True)
    shares: npt.NDArray[np.floating[Any]] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shares


def _best(
    starts: npt.NDArray[np.floating[Any]], ends: npt.NDArray[np.floating[Any]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(n,) places of start and last frame; every pair is scored, since rounded sums decide what is equal."""
    n, places = starts.shape
    # On the diagonal and below it the last frame is not behind the start.
    order = np.tri(places, dtype=bool)
    chosen = np.empty((2, n), dtype=np.int64)
    step = max(1, _AT_ONCE // places**2)
    for at in range(0, n, step):
        part = slice(at, at + step)
        scores = starts[part, :, None] + ends[part, None, :]
        scores[:, order] = -np.inf
        # For each last frame the first of the best starts, then the first of the best last frames.
        first = scores.argmax(axis=1)
        best = np.take_along_axis(scores, first[:, None, :], axis=1)[:, 0]
        chosen[1, part] = best.argmax(axis=1)
        chosen[0, part] = first[np.arange(len(best)), chosen[1, part]]
    return chosen[0], chosen[1]


_ITEMS = ("video", "query", "name", "sentence_kind", "category", "density")


@dataclass(frozen=True, eq=False)
class GroundedSentences(ItemScores):
    """Sentences and their overlaps; the state of the grounding metrics."""

    config_type: ClassVar[type] = GroundingConfig
    class_column: ClassVar[str] = "sentence_kind"

    config: GroundingConfig

    @property
    def metrics(self) -> tuple[str, ...]:
        """m_tiou, m_viou, viou@tau, gt_viou, gt_viou@tau.

        Source: supplement of Chaotic World, ICCV 2023, section 3.3; `gt_viou`: Yang et al., CVPR 2022.
        """
        taus = [f"{tau:g}" for tau in self.config.thresholds]
        at = [[f"{name}@{tau}" for tau in taus] for name in ("viou", "gt_viou")]
        return ("m_tiou", "m_viou", *at[0], "gt_viou", *at[1])

    @property
    def reason(self) -> str:
        """Why a metric may be undefined."""
        if self.config.temporal != "predicted":
            return "the span is given, or no sentence has a true box in the frames that are looked at"
        return "no sentence has a true box in the frames that are looked at"


def evaluate(
    predictions: Predictions,
    scenes: Scenes,
    config: GroundingConfig | None = None,
    *,
    by: Sequence[str] = (),
    resamples: int = 0,
    seed: int = 0,
) -> SceneResult:
    """Overlaps of predicted and ground-truth spans and boxes of sentences, as means over sentences.

    `m_tiou` is the mean of tIoU, frames in both spans by frames in either; `m_viou` that of vIoU, the sum of
    the overlaps of boxes in the frames of both spans by the frames of either; `viou@tau` the share of
    sentences whose vIoU reaches tau; `gt_viou` and `gt_viou@tau` the same of the mean overlap of boxes over
    all ground-truth frames, whatever span is predicted. All lie in [0, 1], higher is better.

    Args:
        predictions: `queries` with the ground truth's numbers, a span and a tube that owns the predicted boxes.
        scenes: `queries` with a span and a tube that owns the ground-truth boxes.
        config: how they are judged (default: `GroundingConfig.default()`).
        by: columns to slice by: `category`, `density` (boxes in a ground-truth frame, on the mean), `sentence_kind`.
        resamples: resamples of videos for the intervals.
        seed: of the resamples.

    Returns:
        whole and kinds of sentences; instances of `sentence`.

    Raises:
        InputError: if no sentence has a ground-truth span, no prediction is about one, frames cannot be sampled, or
            something is missing where that is an error.
        UsageError: if `resamples` is negative or there is no such column.

    Source: Yang et al., CVPR 2022 (TubeDETR), and the supplement of Chaotic World, ICCV 2023, section 3.3.
    """
    config = config or GroundingConfig.default()
    given = join_sentences(predictions, scenes, config)
    found = compute_grounding_overlaps(given, config)
    state = GroundedSentences(given.table.select(_ITEMS), _values(found, config), config)
    # What is missing, and what that did, in words.
    notes = []
    silent = int((~given.predicted).sum())
    if silent:
        notes.append(f"{silent:,} of {len(given.predicted):,} sentences have no prediction and score 0")
    missing = int(found.unanswered[given.predicted].sum())
    asked = int(found.true_frames[given.predicted].sum())
    if missing:
        notes.append(f"{missing:,} of {asked:,} true frames have no predicted box and an overlap of 0")
    if config.frames == "dense" and 2 * missing > asked:
        notes.append(
            "most true frames have no predicted box: where boxes are predicted for sampled frames alone, look at "
            "those (frames='sampled', or a configuration of tubedetr)"
        )
    return build_result(
        state,
        config,
        by=by,
        resamples=resamples,
        seed=seed,
        notes=tuple(notes),
        makers={"sentence": partial(_by_sentence, given, found)},
        left_out=given.left_out,
        facts=_facts(given, found, scenes, config),
    )


def _values(found: Overlaps, config: GroundingConfig) -> Floats:
    """(sentences, metrics) in the order of `GroundedSentences.metrics`."""
    reaches = np.greater if config.threshold == "greater" else np.greater_equal
    columns = [found.tiou]
    for overlap in (found.viou, found.gt_viou):
        passed = (np.where(np.isnan(overlap), np.nan, reaches(overlap, tau)) for tau in config.thresholds)
        columns += [overlap, *passed]
    return np.column_stack(columns)


def _facts(given: Sentences, found: Overlaps, scenes: Scenes, config: GroundingConfig) -> dict[str, Any]:
    """What belongs beside every number."""
    looked = "every frame"
    if config.frames == "sampled":
        looked = f"{config.sample_fps:g} frames per second"
        looked += f", at most {config.most_frames}" if config.most_frames is not None else ""
    return {
        "sentences": len(given.table),
        "predicted": int(given.predicted.sum()),
        "frames": looked,
        "true_frames": int(found.true_frames.sum()),
        "hull_frames": int(found.hull_frames.sum()),
        "true_frames_without_predicted_box": int(found.unanswered.sum()),
        "first_frame": scenes.meta.notes.get("first_frame", 0),
        "average": "over sentences",
    }


def _by_sentence(given: Sentences, found: Overlaps) -> pl.DataFrame:
    """One row per sentence: spans, overlaps, and the frames they were made from; null where undefined."""
    spans = ("start_frame", "end_frame", "predicted_start", "predicted_end")
    table = given.table.select(*_ITEMS, *spans).with_columns(
        pl.Series("predicted", given.predicted),
        pl.Series("tiou", found.tiou),
        pl.Series("viou", found.viou),
        pl.Series("gt_viou", found.gt_viou),
        pl.Series("true_frames", found.true_frames, dtype=pl.Int64),
        pl.Series("hull_frames", found.hull_frames, dtype=pl.Int64),
        pl.Series("true_frames_without_predicted_box", found.unanswered, dtype=pl.Int64),
    )
    return table.with_columns(pl.col("tiou", "viou", "gt_viou").fill_nan(None))
