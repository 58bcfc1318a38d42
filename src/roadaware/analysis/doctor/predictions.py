"""Why predictions about scenes score 0: names, frames, images, labels and maps that do not fit the ground truth; first
of boxes, then of each task in the order in which causes hide each other: actions, relations, sentences, sounds.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, report_error, report_note, report_suspicion
from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import paired_iou
from roadaware.metrics.metric_state import refuse_other_units
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

_MOST_BOXES = 4000
"""Predicted boxes that are considered: enough to find a mistake that is made in every row."""
_BOXES_CLEARLY, _TIMES, _WELL = 0.12, 1.3, 0.75
"""Another reading is reported if it fits so much better, and so many times; predictions that fit well are left."""
_SAME_SIZE = 0.1
"""Boxes that reach as far as true ones, within this share of it, are of images of the same size."""
_SHIFTS = (-25, -5, -2, -1, 1, 2, 5, 25)


@dataclass(frozen=True, eq=False)
class Beside:
    """Ground-truth boxes and predicted ones of the same videos.

    Args:
        truth: `video`, `frame` and corners.
        predictions: the same, at most some thousands of rows.
    """

    truth: pl.DataFrame
    predictions: pl.DataFrame


@dataclass(frozen=True)
class Reading:
    """Another way to read the predictions.

    Args:
        says: what would then be the matter.
        remedy: what to do.
        change: the predicted boxes as they would then be.
    """

    says: str
    remedy: str
    change: Callable[[pl.DataFrame], pl.DataFrame]


def join_boxes(truth: pl.DataFrame, predictions: pl.DataFrame) -> Beside:
    """The boxes of both, as text and numbers, the predictions thinned evenly."""
    kept = [
        boxes.select(pl.col("video").cast(pl.String), "frame", *(pl.col(c).cast(pl.Float64) for c in CORNERS))
        for boxes in (truth, predictions)
    ]
    known = kept[1].join(kept[0].select("video").unique(), on="video", how="semi", maintain_order="left")
    return Beside(kept[0], known.gather_every(max(1, len(known) // _MOST_BOXES)))


def fit(both: Beside) -> float:
    """Mean over predicted boxes of the best IoU with a ground-truth one of the same frame; NaN without predictions.

    Predictions in frames that the ground truth does not have count as 0.
    """
    if both.predictions.is_empty():
        return float("nan")
    numbered = both.predictions.with_row_index("row")
    pairs = numbered.join(both.truth, on=["video", "frame"], how="inner", suffix="_true")
    best = np.zeros(len(both.predictions))
    if len(pairs):
        one = pairs.select(CORNERS).to_numpy()
        other = pairs.select([f"{c}_true" for c in CORNERS]).to_numpy()
        np.maximum.at(best, pairs["row"].to_numpy(), paired_iou(one, other))
    return float(best.mean())


def list_readings(both: Beside, size_px: tuple[float, float]) -> list[Reading]:
    """The usual mistakes, each as a way to read the predictions that would correct it.

    Args:
        both: ground truth and predictions.
        size_px: width and height of the ground truth's images.
    """
    width, height = size_px
    found = [
        Reading(
            f"Predictions are {abs(n)} frames {'late' if n < 0 else 'early'}.",
            f"Add {n} to every frame{', or the detector lags: then leave them' if n < 0 else ''}.",
            _later(n),
        )
        for n in _SHIFTS
    ]
    found += [
        Reading(
            "Predicted boxes are x, y, width, height where corners are due.",
            "Write x1, y1, x1 + width, y1 + height.",
            lambda boxes: boxes.with_columns(
                x2_px=pl.col("x1_px") + pl.col("x2_px"), y2_px=pl.col("y1_px") + pl.col("y2_px")
            ),
        ),
        Reading(
            "Predicted boxes were corners already where x, y, width, height were read.",
            "Write x1, y1, x2 - x1, y2 - y1.",
            lambda boxes: boxes.with_columns(
                x2_px=pl.max_horizontal(pl.col("x2_px") - pl.col("x1_px"), "x1_px"),
                y2_px=pl.max_horizontal(pl.col("y2_px") - pl.col("y1_px"), "y1_px"),
            ),
        ),
        Reading(
            "Predicted boxes have x and y exchanged.",
            "Write x1, y1, x2, y2.",
            lambda boxes: boxes.select(
                "video", "frame", x1_px="y1_px", y1_px="x1_px", x2_px="y2_px", y2_px="x2_px"
            ),
        ),
    ]
    for says, factors, remedy in _scales(both, width, height):
        found.append(Reading(says, remedy, _build_scaling(factors)))
    return found


def check_box_format(
    both: Beside, size_px: tuple[float, float], *, least_fit: float = 0.0
) -> list[Diagnosis]:
    """The box format that fits the ground truth far better than the given one, if there is one.

    Args:
        both: ground truth and predictions.
        size_px: width and height of the ground truth's images.
        least_fit: mean IoU that the other reading has to reach.
    """
    as_is = fit(both)
    if np.isnan(as_is) or as_is > _WELL:
        return []
    tried = [
        (fit(Beside(both.truth, each.change(both.predictions))), each)
        for each in list_readings(both, size_px)
    ]
    if not tried:
        return []
    best, reading = max(tried, key=lambda pair: pair[0])
    if best < least_fit or best - as_is < _BOXES_CLEARLY or best < _TIMES * as_is:
        return []
    evidence = (
        f"predictions meet true boxes with a mean IoU of {as_is:.2f} as written and {best:.2f} if read so"
    )
    return report_error("boxes", reading.says, evidence, reading.remedy)


def _scales(both: Beside, width: float, height: float) -> list[tuple[str, tuple[float, float], str]]:
    """Sizes of image that the predictions may be in, from how far they reach."""
    if both.predictions.is_empty() or both.truth.is_empty():
        return []
    reach = [both.predictions[c].quantile(0.95) or 0.0 for c in ("x2_px", "y2_px")]
    due = [both.truth[c].quantile(0.95) or 0.0 for c in ("x2_px", "y2_px")]
    if min(reach) <= 0 or min(due) <= 0:
        return []
    if max(reach) <= 1.5 and width > 1:
        says = "Predicted boxes are shares of the image where pixels are due."
        return [(says, (width, height), f"Multiply x by {width:g} and y by {height:g}.")]
    ratio = (due[0] / reach[0], due[1] / reach[1])
    if width == height == 1 and max(reach) > 2:
        says = "Predicted boxes are in pixels where shares of the image are due."
        return [(says, ratio, "Divide x by the width and y by the height of the image.")]
    # Boxes that are merely bad reach about as far as true ones.
    if max(abs(each - 1) for each in ratio) <= _SAME_SIZE:
        return []
    says = f"Predicted boxes are of images of another size: about {1 / ratio[0]:.3g} times as wide."
    return [(says, ratio, f"Multiply x by about {ratio[0]:.4g} and y by about {ratio[1]:.4g}.")]


def _later(n: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda boxes: boxes.with_columns(pl.col("frame") + n)


def _build_scaling(factors: tuple[float, float]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda boxes: boxes.with_columns(pl.col(c) * factors[k % 2] for k, c in enumerate(CORNERS))


# Whether predictions speak of the things that the ground truth names.


def check_names(what: str, predicted: Sequence[str], true: Sequence[str]) -> list[Diagnosis]:
    """Names that only one side knows.

    Args:
        what: the things, in the plural: videos, sentences, sounds.
        predicted: their names in the predictions.
        true: their names in the ground truth.
    """
    if not true:
        return report_error(
            "empty_truth", "The truth is empty.", f"it names no {what}", "Check the path of the truth."
        )
    if not predicted:
        return report_error(
            "empty_predictions",
            "Nothing is predicted.",
            f"no {what} in the predictions",
            "Check the predictions' path.",
        )
    foreign = sorted(set(predicted) - set(true))
    missing = sorted(set(true) - set(predicted))
    if len(foreign) == len(set(predicted)):
        near = difflib.get_close_matches(foreign[0], list(true), n=1, cutoff=0.5)
        evidence = f"predictions name {_format_items(foreign)}, the truth {_format_items(sorted(set(true)))}"
        remedy = f"Name them alike: {foreign[0]!r} may be {near[0]!r}." if near else "Name them alike."
        return report_error("names", f"Predictions and truth share no {what}.", evidence, remedy)
    found: list[Diagnosis] = []
    if foreign:
        says = f"{len(foreign)} of {len(set(predicted))} predicted {what} are not in the truth."
        found += report_note(
            "foreign", says, _format_items(foreign), "They are left out; a split may be judged alone."
        )
    if missing:
        says = f"{len(missing)} of {len(set(true))} true {what} have no prediction."
        kind = report_suspicion if len(missing) > 0.5 * len(set(true)) else report_note
        found += kind(
            "missing", says, _format_items(missing), "Each counts as missed; predict something for all."
        )
    return found


def _format_items(items: Sequence[str]) -> str:
    return ", ".join(repr(item[:40]) for item in items[:3]) + (", ..." if len(items) > 3 else "")


_MET, _ACTIONS_CLEARLY = 0.5, 1.5
"""Predictions are considered that meet a ground-truth box by half; another reading must explain half as many again."""


def label_shift(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether labels predicted one higher or lower would be right far more often.

    Args:
        predictions: with `boxes` and `labels` of the kind action.
        scenes: the same.
    """
    pairs = _met(predictions, scenes)
    if len(pairs) < 10:
        return []
    # Index in the vocabulary to the number that the file had
    native = scenes.meta.notes.get("label_ids", {}).get("action")
    names = scenes.meta.vocabularies.get("action", ())
    ids = dict(enumerate(native)) if native else {n: n for n in range(len(names))}
    predicted = [ids.get(label, -10) for label in pairs["label"]]
    true = [{ids.get(label, -99) for label in labels} for labels in pairs["labels"]]
    right = {
        n: float(np.mean([c + n in of for c, of in zip(predicted, true, strict=True)])) for n in (-1, 0, 1)
    }
    best = max((-1, 1), key=lambda n: right[n])
    if right[best] < 0.2 or right[best] < _ACTIONS_CLEARLY * right[0]:
        return []
    says = f"Predicted labels are {'higher' if best < 0 else 'lower'} by one than the true ones."
    evidence = (
        f"{right[0]:.0%} of predictions on true boxes are right as written, {right[best]:.0%} if {best:+d}"
    )
    return report_error("label_shift", says, evidence, f"Add {best:+d} to every predicted id.")


def score_values(predictions: Predictions) -> list[Diagnosis]:
    """Whether the scores of labels can rank anything.

    Args:
        predictions: with `labels`.
    """
    if predictions.labels.is_empty() or "score" not in predictions.labels.columns:
        return []
    scores = predictions.labels["score"].drop_nulls()
    if len(scores) < 10:
        return []
    if scores.n_unique() == 1:
        says = "Every prediction has the same score: they cannot be ranked."
        return report_error(
            "constant", says, f"all are {scores[0]:g}", "Write the model's probabilities in column 8."
        )
    if set(scores.unique().to_list()) <= {0.0, 1.0}:
        says = "Scores are 0 and 1 only: decisions, or the number of a person, instead of probabilities."
        evidence = f"{int((scores == 1).sum())} ones among {len(scores)}"
        return report_suspicion("decisions", says, evidence, "Write the model's probabilities in column 8.")
    return []


_LOW_RECALL = 0.7


def check_person_recall(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """How many of the true boxes, in frames with predictions, some predicted box meets by half.

    Args:
        predictions: with `boxes`.
        scenes: the same.
    """
    columns = [
        pl.col("video").cast(pl.String),
        pl.col("frame"),
        *(pl.col(c).cast(pl.Float64) for c in CORNERS),
    ]
    labelled = scenes.boxes.join(scenes.labels.select("box").unique(), on="box", how="semi")
    truth, predicted = (boxes.select(columns) for boxes in (labelled, predictions.boxes))
    moments = predicted.select("video", "frame").unique()
    truth = truth.join(moments, on=["video", "frame"], how="semi", maintain_order="left")
    truth = truth.gather_every(max(1, len(truth) // _MOST_BOXES)).with_row_index("row")
    if truth.is_empty():
        return []
    pairs = truth.join(predicted, on=["video", "frame"], suffix="_prediction")
    one, other = (pairs.select([f"{c}{end}" for c in CORNERS]).to_numpy() for end in ("", "_prediction"))
    met = pairs.filter(pl.Series(paired_iou(one, other) >= _MET))["row"].n_unique()
    share = met / len(truth)
    says = f"Predicted boxes meet {share:.0%} of the true persons by half or more: actions of the others are lost."
    evidence = f"{met:,} of {len(truth):,} boxes in frames that have predictions"
    remedy = "Lower the threshold of the person detector, or judge on true boxes to see what the actions are worth."
    if share >= _LOW_RECALL:
        return report_note("person_recall", says, evidence, remedy)
    return report_suspicion("person_recall", says, evidence, remedy)


def _met(predictions: Predictions, scenes: Scenes) -> pl.DataFrame:
    """`label` of each prediction and `labels` of the ground-truth box that it meets best, by at least half."""
    tables = []
    for held in (scenes, predictions):
        boxes = held.boxes.select("box", pl.col("video").cast(pl.String), "frame", *CORNERS)
        tables.append(boxes)
    named = scenes.labels.group_by("box").agg(pl.col("label").alias("labels"))
    pairs = tables[1].join(tables[0].join(named, on="box"), on=["video", "frame"], suffix="_true")
    one = pairs.select(CORNERS).cast(pl.Float64).to_numpy()
    other = pairs.select([f"{c}_true" for c in CORNERS]).cast(pl.Float64).to_numpy()
    pairs = pairs.with_columns(iou=paired_iou(one, other)).filter(pl.col("iou") >= _MET)
    best = pairs.sort("iou", descending=True).unique("box", keep="first", maintain_order=True)
    return best.select("box", "labels").join(predictions.labels.select("box", "label"), on="box")


# Whether predicted relations run from whom to whom, and for as long, as the ground-truth ones do.

_RELATIONS_CLEARLY, _FEW = 1.5, 10


def check_directions(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether subjects and objects are exchanged.

    Args:
        predictions: with `relations`, `tubes` and `tube_labels` of the kind category.
        scenes: the same.
    """
    predicted, true = _triplets(predictions), _triplets(scenes)
    if len(predicted) < _FEW:
        return []
    kept = predicted.join(true.unique(), on=["video", "s", "p", "o"], how="semi")
    turned = predicted.rename({"s": "o", "o": "s"}).join(
        true.unique(), on=["video", "s", "p", "o"], how="semi"
    )
    if len(turned) < 0.2 * len(predicted) or len(turned) <= _RELATIONS_CLEARLY * len(kept):
        return []
    evidence = (
        f"{len(kept)} of {len(predicted)} predicted triplets exist as written, {len(turned)} if exchanged"
    )
    return report_error(
        "exchanged",
        "Subject and object seem to be exchanged.",
        evidence,
        "Write [subject, predicate, object].",
    )


def check_self_relations(predictions: Predictions, _: Scenes) -> list[Diagnosis]:
    """Check for relations whose subject and object have the same boxes.

    Args:
        predictions: with `relations`.
    """
    same = int((predictions.relations["subject"] == predictions.relations["object"]).sum())
    if not same:
        return []
    evidence = f"{same} of {len(predictions.relations)} predictions have one track for both"
    kind = report_error if same > 0.2 * len(predictions.relations) else report_suspicion
    return kind(
        "own_object", "Subjects are their own objects.", evidence, "Write obj_traj of the other person."
    )


def check_vocabulary(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether predicates and categories are written as in the ground truth.

    Args:
        predictions: with `relations`, `tubes` and `tube_labels` of the kind category.
        scenes: the same.
    """
    predicted, true = _triplets(predictions), _triplets(scenes)
    known = {word for c in ("s", "p", "o") for word in true[c].drop_nulls()}
    unknown = sorted({word for c in ("s", "p", "o") for word in predicted[c].drop_nulls()} - known)
    strange = predicted.filter(pl.any_horizontal(pl.col("s", "p", "o").is_in(unknown)))
    if not len(strange):
        return []
    alike = {normalize_word(word): word for word in sorted(known)}
    pairs = [
        f"{word!r} for {alike[normalize_word(word)]!r}" for word in unknown if normalize_word(word) in alike
    ]
    evidence = f"{len(strange)} of {len(predicted)} predictions say {', '.join(map(repr, unknown[:4]))}"
    remedy = f"Write {', '.join(pairs[:3])} the other way round." if pairs else "Use the truth's words."
    kind = report_error if len(strange) > 0.5 * len(predicted) else report_suspicion
    return kind("words", "Predictions use words that the truth does not know.", evidence, remedy)


def normalize_word(word: str) -> str:
    """A word without what spellings differ in."""
    return "".join(c for c in word.casefold() if c.isalnum())


def check_frame_range(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether predictions lie in the video, and are shifted by a constant.

    Args:
        predictions: with `relations`.
        scenes: with `relations` and `videos`.
    """
    ends = predictions.relations.select(pl.col("video").cast(pl.String), "end_frame").drop_nulls()
    if "n_frames" in scenes.videos.columns:
        lengths = scenes.videos.select(pl.col("video").cast(pl.String), "n_frames").drop_nulls()
        beyond = ends.join(lengths, on="video").filter(pl.col("end_frame") > pl.col("n_frames"))
        if len(beyond):
            says = "Predictions reach beyond the end of their video."
            evidence = f"{len(beyond)} of {len(ends)} do, as far as frame {beyond['end_frame'].max()!r}"
            return report_suspicion(
                "beyond_video", says, evidence, "Durations are frames of the video, from 0."
            )
    # A shift that most predictions share with the nearest ground-truth relation of their words
    predicted = _triplets(predictions)
    true = _triplets(scenes)
    key = ["video", "s", "p", "o"]
    pairs = predicted.with_row_index("row").join(true, on=key, suffix="_true").drop_nulls()
    if pairs["row"].n_unique() < _FEW:
        return []
    late = (pl.col("start_frame") - pl.col("start_frame_true")).alias("late")
    nearest = (
        pairs.with_columns(late).sort(pl.col("late").abs(), maintain_order=True).unique("row", keep="first")
    )
    same = nearest["late"].mode().sort()[0]
    share = float((nearest["late"] == same).mean() or 0.0)
    if same == 0 or share < 0.5:
        return []
    says = f"Predictions are {abs(same)} frames {'late' if same > 0 else 'early'}."
    evidence = f"{share:.0%} of them start so much from the nearest true relation of the same words"
    return report_suspicion(
        "shift", says, evidence, "Durations count from 0, the end is the frame after the last."
    )


def check_durations(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether predicted spans are of another unit than the ground-truth ones.

    Args:
        predictions: with `relations`.
        scenes: the same.
    """
    lengths = [
        held.relations.select((pl.col("end_frame") - pl.col("start_frame")).median()).item()
        if len(held.relations)
        else None
        for held in (predictions, scenes)
    ]
    if not lengths[0] or not lengths[1] or len(predictions.relations) < _FEW:
        return []
    ratio = lengths[0] / lengths[1]
    if 0.1 < ratio < 10:
        return []
    says = f"Predicted relations last {ratio:.2g} times as long as true ones: seconds, or another frame rate?"
    evidence = f"half of them last {lengths[0]:g} frames or more, of the true ones {lengths[1]:g}"
    return report_suspicion("durations", says, evidence, "Durations are [first frame, frame after the last).")


def _triplets(tables: TableSet) -> pl.DataFrame:
    """`video`, names of subject's category `s`, predicate `p` and object's category `o`, and the span."""
    spans = {"start_frame": pl.Int64, "end_frame": pl.Int64}
    schema = {"video": pl.String, "s": pl.String, "p": pl.String, "o": pl.String, **spans}
    if tables.relations.is_empty():
        return pl.DataFrame(schema=schema)
    words = tables.meta.vocabularies
    named = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == "category").select("tube", "label")
    rows = tables.relations.join(named.rename({"label": "s"}), left_on="subject", right_on="tube", how="left")
    rows = rows.join(named.rename({"label": "o"}), left_on="object", right_on="tube", how="left")
    kinds = {"s": "category", "p": "predicate", "o": "category"}
    return rows.rename({"predicate": "p"}).select(
        pl.col("video").cast(pl.String),
        *(
            pl.col(c).replace_strict(
                dict(enumerate(words.get(kind, ()))), default=None, return_dtype=pl.String
            )
            for c, kind in kinds.items()
        ),
        *spans,
    )


# Whether predicted spans of sentences are counted as the ground-truth ones are.

_GROUNDING_FEW = 5


def check_spans(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Whether predicted spans are shifted by a constant, or of another unit.

    Args:
        predictions: with `queries`.
        scenes: with `queries`.
    """
    columns = ["query", "start_frame", "end_frame"]
    if not set(columns) <= set(predictions.queries.columns) & set(scenes.queries.columns):
        return []
    both = predictions.queries.select(columns).join(
        scenes.queries.select(columns), on="query", suffix="_true"
    )
    both = both.drop_nulls()
    # `query` and `n_frames` of its video, null where that is not known
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    if "n_frames" not in videos.columns:
        videos = videos.with_columns(n_frames=pl.lit(None, pl.Int64))
    queries = scenes.queries.select("query", pl.col("video").cast(pl.String))
    # Spans without frames, and spans that leave their video
    lengths = queries.join(videos.select("video", "n_frames"), on="video", how="left").select(
        "query", "n_frames"
    )
    found: list[Diagnosis] = []
    empty = both.filter(pl.col("end_frame") <= pl.col("start_frame"))
    if len(empty):
        evidence = f"{len(empty)} of {len(both)} end where they start, or before"
        remedy = "An end is the frame after the last."
        found += report_suspicion("empty_span", "Predicted spans hold no frame.", evidence, remedy)
    placed = both.join(lengths, on="query")
    outside = placed.filter((pl.col("end_frame") > pl.col("n_frames") + 1) | (pl.col("start_frame") < 0))
    if len(outside):
        evidence = f"{len(outside)} of {len(both)}, as far as frame {outside['end_frame'].max()!r}"
        found += report_suspicion(
            "beyond_video", "Predicted spans leave their video.", evidence, "Frames count from 0."
        )
    odd = found
    if len(both) < _GROUNDING_FEW:
        return odd
    return odd + (_unit(both) or _shift(both, int(scenes.meta.notes.get("first_frame", 0))))


def _unit(both: pl.DataFrame) -> list[Diagnosis]:
    ratio = both.select((pl.col("end_frame") / pl.col("end_frame_true").clip(1)).median()).item()
    if 0.4 < ratio < 2.5:
        return []
    says = f"Predicted spans end at {ratio:.2g} times the true frame: seconds, or indices of sampled frames?"
    evidence = f"half of {len(both)} sentences end at less than that"
    return report_error("span_unit", says, evidence, "Give frames of the original video.")


def _shift(both: pl.DataFrame, first_frame: int) -> list[Diagnosis]:
    """A shift that nearly all spans share; the published evaluator takes numbers as the file has them."""
    late = np.concatenate([(both[c] - both[f"{c}_true"]).to_numpy() for c in ("start_frame", "end_frame")])
    middle = float(np.median(late))
    if middle == 0 or np.mean(np.abs(late - middle) <= 0.5) < 0.8:
        return []
    if middle == first_frame:
        says = f"Predicted spans are in the truth file's numbers, which count from {first_frame}."
        remedy = "TubeDETR's evaluator takes them so (--config tubedetr-hcstvg); ours counts from 0."
        return report_note("file_numbers", says, f"nearly all differ by {middle:g}", remedy)
    says = f"Predicted spans are {abs(middle):g} frames {'late' if middle > 0 else 'early'}."
    evidence = f"{np.mean(late == middle):.0%} of starts and ends differ from the true ones by exactly that"
    return report_suspicion(
        "span_shift", says, evidence, "Frames count from 0; an end is the frame after the last."
    )


# Whether maps of sound are the right way up, and say anything.

_MOST_MAPS, _SOUND_CLEARLY = 500, 0.1
_TURNS: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "transposed": ("Write maps row by row: y first, then x.", lambda m: m.T),
    "upside down": ("Row 0 is the top of the image.", lambda m: m[::-1]),
    "mirrored": ("Column 0 is the left of the image.", lambda m: m[:, ::-1]),
    "inverted": ("High values are where the sound comes from.", lambda m: -m),
}


def check_maps(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Maps that hold one value everywhere, or lie another way than the images.

    Args:
        predictions: with `sounds` and their `map`.
        scenes: with `sounds`, `boxes` and `videos`.
    """
    if predictions.sounds.is_empty() or "map" not in predictions.sounds.columns:
        return []
    held = dict(_maps(predictions))
    constant = [sound for sound, values in held.items() if np.ptp(values) == 0]
    found: list[Diagnosis] = []
    if constant:
        says = f"{len(constant)} of {len(held)} maps hold one value everywhere: they score 0."
        kind = report_error if len(constant) == len(held) else report_suspicion
        evidence = f"sounds {constant[:3]}"
        found += kind("constant_map", says, evidence, "Write the model's map before it is thresholded.")
    truth = collect_sound_boxes(scenes)
    pairs = [(values, truth[s]) for s, values in held.items() if s in truth and np.ptp(values) > 0]
    turned = check_orientation(pairs)
    return found + ([turned[0]] if turned is not None else [])


def check_orientation(
    pairs: Sequence[tuple[Floats, Floats]],
) -> tuple[Diagnosis, Callable[[Floats], Floats]] | None:
    """How maps have to be turned so that true boxes are higher than the rest of the image; None where they are.

    Args:
        pairs: (rows, columns) map, and (4,) corners as shares of the image.
    """
    if len(pairs) < 5:
        return None
    as_is = float(np.mean([_inside(values, box) for values, box in pairs]))
    turned = {
        name: float(np.mean([_inside(turn(v), box) for v, box in pairs]))
        for name, (_, turn) in _TURNS.items()
    }
    best = max(turned, key=lambda name: turned[name])
    if turned[best] - as_is < _SOUND_CLEARLY:
        return None
    evidence = (
        f"true boxes are {as_is:+.2f} above the rest of the map as written, {turned[best]:+.2f} otherwise"
    )
    (finding,) = report_error("map_turned", f"Maps seem to be {best}.", evidence, _TURNS[best][0])
    return finding, _TURNS[best][1]


def _inside(values: Floats, box: Floats) -> float:
    """How much the map is higher inside the box than outside, as a share of its range."""
    rows, columns = values.shape
    y, x = (np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns
    inside = np.outer((y >= box[1]) & (y < box[3]), (x >= box[0]) & (x < box[2]))
    if inside.all() or not inside.any():
        return 0.0
    return float((values[inside].mean() - values[~inside].mean()) / np.ptp(values))


def _maps(predictions: Predictions) -> list[tuple[int, Floats]]:
    """Number of a sound and its map, of the first some hundreds."""
    table = predictions.sounds.filter(pl.col("map").is_not_null()).head(_MOST_MAPS)
    widths = table["map_width"].to_list() if "map_width" in table.columns else [None] * len(table)
    found = []
    for sound, row, width in zip(table["sound"], table["map"], widths, strict=True):
        values = np.asarray(row, dtype=np.float64)
        columns = width or round(len(values) ** 0.5)
        if columns and len(values) and len(values) % columns == 0:
            found.append((int(sound), values.reshape(-1, columns)))
    return found


def collect_sound_boxes(scenes: Scenes) -> dict[int, Floats]:
    """Number of a sound to its first box as shares of the image."""
    if "sound" not in scenes.boxes.columns:
        return {}
    sizes = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String)).drop_nulls("sound")
    boxes = boxes.unique("sound", keep="first", maintain_order=True).join(sizes, on="video")
    corners = boxes.select(CORNERS).cast(pl.Float64).to_numpy()
    whole = np.tile(boxes.select("width_px", "height_px").cast(pl.Float64).to_numpy(), 2)
    shares = corners / whole if len(boxes) else corners
    return dict(zip(boxes["sound"].to_list(), shares, strict=True))


# All checks of one task's predictions together, in the order in which causes hide each other.

_Check = Callable[[Predictions, Scenes], list[Diagnosis]]
TASKS = ("actions", "relations", "grounding", "sound")
_NAMED = {"actions": "boxes", "relations": "relations", "grounding": "queries", "sound": "sounds"}
_CALLED = {"boxes": "videos", "relations": "videos", "queries": "sentences", "sounds": "sounds"}
_KEYS = {"queries": "query", "sounds": "sound"}


def check_predictions(
    task: str, predictions: Predictions, scenes: Scenes, *, least_fit: float = 0.0
) -> list[Diagnosis]:
    """Check predictions on scenes for mistakes that make their metrics meaningless.

    Args:
        task: one of `TASKS`.
        predictions: as read for the task.
        scenes: the ground truth.
        least_fit: mean IoU that another reading of the boxes has to reach.

    Raises:
        UsageError: if there is no such task.
    """
    if task not in TASKS:
        raise UsageError(f"no task '{task}'; there are {', '.join(TASKS)}")
    table = _NAMED[task]
    predicted, true = (list_row_names(table, held, scenes) for held in (predictions, scenes))
    found = check_names(_CALLED[table], predicted, true)
    found += (
        _report_refused("truth", scenes)
        + _report_refused("predictions", predictions)
        + _diagnose_oddities("predictions", predictions)
    )
    found += _diagnose_oddities("truth", scenes)
    if {item.code for item in found} & {"empty_truth", "empty_predictions", "names"}:
        return found
    boxed = join_boxes(scenes.boxes, predictions.boxes)
    size = get_image_size(scenes)
    fits = check_box_format(boxed, size, least_fit=least_fit) if task != "sound" else []
    if not fits and task != "sound":
        try:
            refuse_other_units(predictions, scenes)
        except InputError as error:
            says = "Predicted boxes and true ones are in different units."
            fits = report_error("units", says, error.message, error.hint or "")
    # Boxes that are written otherwise meet nobody, which says nothing of the detector.
    persons: tuple[_Check, ...] = () if fits else (check_person_recall,)
    checks: dict[str, tuple[_Check, ...]] = {
        "actions": (lambda predicted, _: score_values(predicted), label_shift, *persons),
        "relations": (
            check_vocabulary,
            check_self_relations,
            check_directions,
            check_durations,
            check_frame_range,
        ),
        "grounding": (check_spans,),
        "sound": (check_maps,),
    }
    return found + fits + [item for check in checks[task] for item in check(predictions, scenes)]


def list_row_names(table: str, held: TableSet, scenes: Scenes) -> list[str]:
    """Names in the rows of a table: videos, or items that the ground truth numbers."""
    rows: pl.DataFrame = getattr(held, table)
    if table in _KEYS:
        key = _KEYS[table]
        known = getattr(scenes, table)
        if rows.is_empty() or "name" not in known.columns:
            return [str(n) for n in rows[key].to_list()] if len(rows) else []
        named = dict(known.select(key, "name").iter_rows())
        return [str(named.get(number) or number) for number in rows[key].to_list()]
    return rows["video"].cast(pl.String).unique(maintain_order=True).to_list() if len(rows) else []


def _report_refused(what: str, held: TableSet) -> list[Diagnosis]:
    """The reasons for which rows were refused, most frequent first."""
    if held.rejected.is_empty():
        return []
    reasons = held.rejected.group_by("reason").len().sort("len", "reason", descending=[True, False])
    total, read = len(held.rejected), sum(held.meta.rows_read.values())
    evidence = "; ".join(f"{n}: {reason}" for reason, n in reasons.head(3).iter_rows())
    says = f"{total:,} rows or files of the {what} were refused."
    kind = report_error if total > 0.2 * max(read, 1) else report_note
    return kind(f"refused_{what}", says, evidence, "Mend the rows; `--json` lists the reasons.")


def _diagnose_oddities(what: str, held: TableSet) -> list[Diagnosis]:
    """Oddities that were read, but not as they stand."""
    found: list[Diagnosis] = []
    for case in held.meta.notes.get("warnings", []):
        says = f"{case['count']:,} of the {what}: {case['what']}"
        found += report_note(f"odd_{what}", says, str(case["example"]), "It was read as well as it could be.")
    return found


def get_image_size(scenes: Scenes) -> tuple[float, float]:
    """Width and height of the ground truth's images; 1 x 1 where they are not known."""
    if not {"width_px", "height_px"} <= set(scenes.videos.columns) or scenes.videos.is_empty():
        return 1.0, 1.0
    width, height = (scenes.videos[c].drop_nulls().median() for c in ("width_px", "height_px"))
    return (
        float(width) if isinstance(width, int | float) else 1.0,
        float(height) if isinstance(height, int | float) else 1.0,
    )
