"""Whether predicted boxes are written as the ground-truth ones: corners, size of the image, number of the frame."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, report_error, report_note, report_suspicion
from roadaware.geometry.boxes import paired_iou
from roadaware.scenes.schema import CORNERS

_MOST = 4000
"""Predicted boxes that are considered: enough to find a mistake that is made in every row."""
_CLEARLY, _TIMES, _WELL = 0.12, 1.3, 0.75
"""Another reading is reported if it fits so much better, and so many times; predictions that fit well are left."""
_SHIFTS = (-25, -5, -2, -1, 1, 2, 5, 25)


@dataclass(frozen=True, eq=False)
class Beside:
    """Ground-truth boxes and predicted ones of the same videos.

    Args:
        truth: `video`, `frame` and corners.
        claims: the same, at most some thousands of rows.
    """

    truth: pl.DataFrame
    claims: pl.DataFrame


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


def join_boxes(truth: pl.DataFrame, claims: pl.DataFrame) -> Beside:
    """The boxes of both, as text and numbers, the predictions thinned evenly.

    Args:
        truth: table of boxes.
        claims: table of boxes.
    """
    kept = [
        boxes.select(pl.col("video").cast(pl.String), "frame", *(pl.col(c).cast(pl.Float64) for c in CORNERS))
        for boxes in (truth, claims)
    ]
    known = kept[1].join(kept[0].select("video").unique(), on="video", how="semi", maintain_order="left")
    return Beside(kept[0], known.gather_every(max(1, len(known) // _MOST)))


def fit(both: Beside) -> float:
    """Mean over predicted boxes of the best IoU with a ground-truth one of the same frame; NaN without predictions.

    Predictions in frames that the ground truth does not have count as 0.
    """
    if both.claims.is_empty():
        return float("nan")
    numbered = both.claims.with_row_index("row")
    pairs = numbered.join(both.truth, on=["video", "frame"], how="inner", suffix="_true")
    best = np.zeros(len(both.claims))
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
            f"Add {n} to every frame.",
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
        (fit(Beside(both.truth, each.change(both.claims))), each) for each in list_readings(both, size_px)
    ]
    if not tried:
        return []
    best, reading = max(tried, key=lambda pair: pair[0])
    if best < least_fit or best - as_is < _CLEARLY or best < _TIMES * as_is:
        return []
    evidence = (
        f"predictions meet true boxes with a mean IoU of {as_is:.2f} as written and {best:.2f} if read so"
    )
    return report_error("boxes", reading.says, evidence, reading.remedy)


def _scales(both: Beside, width: float, height: float) -> list[tuple[str, tuple[float, float], str]]:
    """Sizes of image that the predictions may be in, from how far they reach."""
    if both.claims.is_empty() or both.truth.is_empty():
        return []
    reach = [both.claims[c].quantile(0.95) or 0.0 for c in ("x2_px", "y2_px")]
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
    says = f"Predicted boxes are of images of another size: about {1 / ratio[0]:.3g} times as wide."
    return [(says, ratio, f"Multiply x by about {ratio[0]:.4g} and y by about {ratio[1]:.4g}.")]


def _later(n: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda boxes: boxes.with_columns(pl.col("frame") + n)


def _build_scaling(factors: tuple[float, float]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda boxes: boxes.with_columns(pl.col(c) * factors[k % 2] for k, c in enumerate(CORNERS))


# Whether predictions speak of the things that the ground truth names.


def check_names(what: str, claimed: Sequence[str], true: Sequence[str]) -> list[Diagnosis]:
    """Names that only one side knows.

    Args:
        what: the things, in the plural: videos, sentences, sounds.
        claimed: their names in the predictions.
        true: their names in the ground truth.
    """
    if not true:
        return report_error(
            "empty_truth", "The truth is empty.", f"it names no {what}", "Check the path of the truth."
        )
    if not claimed:
        return report_error(
            "empty_claims",
            "Nothing is predicted.",
            f"no {what} in the predictions",
            "Check the predictions' path.",
        )
    foreign = sorted(set(claimed) - set(true))
    missing = sorted(set(true) - set(claimed))
    if len(foreign) == len(set(claimed)):
        near = difflib.get_close_matches(foreign[0], list(true), n=1, cutoff=0.5)
        evidence = f"predictions name {_format_items(foreign)}, the truth {_format_items(sorted(set(true)))}"
        remedy = f"Name them alike: {foreign[0]!r} may be {near[0]!r}." if near else "Name them alike."
        return report_error("names", f"Predictions and truth share no {what}.", evidence, remedy)
    found: list[Diagnosis] = []
    if foreign:
        says = f"{len(foreign)} of {len(set(claimed))} predicted {what} are not in the truth."
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
