"""Hand features of an observation: place, size and motion, action of the vehicle, state of the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.statistics import classification

Slope = Literal["least-squares", "ends"]

VEHICLE_ACTIONS = ("stopped", "moving_slow", "moving_fast", "decelerating", "accelerating")
"""What the vehicle does, in the order of the codes that models are given."""
# With 30 frames a second: now, and 1, 2 and 3 seconds ahead.
HORIZONS_FRAMES = (0, 30, 60, 90)
BOX_FEATURES = (
    "centre_x",
    "centre_y",
    "distance_to_middle",
    "width",
    "height",
    "displacement_x",
    "displacement_y",
    "growth",
    "motion_to_middle",
    "aspect_mean",
    "aspect_std",
)
VEHICLE_FEATURES = tuple(
    f"vehicle_{k}_{when}" for when in ("last", "share") for k in range(len(VEHICLE_ACTIONS))
)
TRAFFIC_FEATURES = (
    "ped_crossing",
    "ped_sign",
    "stop_sign",
    *(f"light_{light}" for light in ("n/a", "red", "yellow", "green")),
    *(f"road_{road}" for road in ("street", "parking_lot", "garage")),
)
EXTRAPOLATED_FEATURES = tuple(f"centre_x_in_{h}" for h in HORIZONS_FRAMES)


class Observed(Protocol):
    """Observations of n samples of t frames, the input of a model.

    `boxes` is (n, t, 4) in pixels as x1, y1, x2, y2; `vehicle_action` (n, t) holds places in
    VEHICLE_ACTIONS, NaN where unknown; `width_px` and `height_px` (n,) are the sizes of the images;
    `traffic` (n, t, 10) holds TRAFFIC_FEATURES, NaN where unknown, or is None where nobody asked for it.
    """

    @property
    def boxes(self) -> Floats: ...  # noqa: D102
    @property
    def vehicle_action(self) -> Floats: ...  # noqa: D102
    @property
    def width_px(self) -> Floats: ...  # noqa: D102
    @property
    def height_px(self) -> Floats: ...  # noqa: D102
    @property
    def traffic(self) -> Floats | None: ...  # noqa: D102


class Labelled(Observed, Protocol):
    """Observations with their answers, (n,) indices of labels."""

    @property
    def truth(self) -> npt.NDArray[np.int64]: ...  # noqa: D102


def list_feature_names(*, vehicle: bool, extrapolated: bool, traffic: bool = False) -> tuple[str, ...]:
    """The columns of `extract_hand_features`, in order."""
    return (
        BOX_FEATURES
        + VEHICLE_FEATURES * vehicle
        + EXTRAPOLATED_FEATURES * extrapolated
        + TRAFFIC_FEATURES * traffic
    )


def extract_hand_features(
    observed: Observed, *, vehicle: bool, extrapolated: bool, traffic: bool = False
) -> Floats:
    """(n, f) features, lengths as shares of the image, columns as `list_feature_names` lists them.

    Args:
        observed: n observations.
        vehicle: add the action of the vehicle, at the last frame and as shares of the observation;
            all zero where it is unknown.
        extrapolated: add where the centre will be if it keeps its velocity.
        traffic: add the state of the traffic at the last frame; zero where it is unknown.

    Raises:
        InputError: if the traffic is wanted and not there.
    """
    # One (n,) column for each of BOX_FEATURES; boxes thinner than a pixel count as one pixel.
    x1, y1, x2, y2 = np.moveaxis(observed.boxes, -1, 0)
    image_width, image_height = observed.width_px[:, None], observed.height_px[:, None]
    x, y = (x1 + x2) / 2 / image_width, (y1 + y2) / 2 / image_height
    width_px, height_px = np.maximum(x2 - x1, 1.0), np.maximum(y2 - y1, 1.0)
    aspect = width_px / height_px
    move_x = x[:, -1] - x[:, 0]
    columns = [
        x[:, -1],
        y[:, -1],
        np.abs(x[:, -1] - 0.5),
        width_px[:, -1] / observed.width_px,
        height_px[:, -1] / observed.height_px,
        move_x,
        y[:, -1] - y[:, 0],
        np.log(height_px[:, -1] / height_px[:, 0]),
        np.sign(0.5 - x[:, -1]) * move_x,
        aspect.mean(axis=1),
        aspect.std(axis=1),
    ]
    if vehicle:
        # One (n,) column for each of VEHICLE_FEATURES.
        is_action = observed.vehicle_action[..., None] == np.arange(len(VEHICLE_ACTIONS))
        last, share = is_action[:, -1].astype(np.float64), is_action.mean(axis=1)
        columns += [*last.T, *share.T]
    if extrapolated:
        columns += [extrapolate_centre_px(observed, h) / observed.width_px for h in HORIZONS_FRAMES]
    if traffic:
        # One (n,) column for each of TRAFFIC_FEATURES.
        found, expected = observed.traffic, (*observed.boxes.shape[:2], len(TRAFFIC_FEATURES))
        if found is None or found.shape != expected:
            raise InputError(
                f"the traffic should be {expected}, not {None if found is None else found.shape}"
            )
        # Only the last frame counts; what is unknown counts as absent.
        columns += list(np.nan_to_num(found[:, -1]).T)
    return np.asarray(np.stack(columns, axis=1), dtype=np.float64)


def extrapolate_centre_px(observed: Observed, frames: int, slope: Slope = "least-squares") -> Floats:
    """(n,) horizontal centre of the box, in pixels, if it keeps the velocity of the observation.

    Args:
        observed: n observations of at least one frame; with one frame the velocity is 0.
        frames: how far behind the last observed frame.
        slope: velocity by a least-squares line through all centres, or by the first and the last.
    """
    centre: Floats = observed.boxes[..., [0, 2]].mean(axis=-1)
    steps = centre.shape[1] - 1
    if steps == 0:
        return centre[:, 0]
    if slope == "ends":
        return np.asarray(centre[:, -1] + (centre[:, -1] - centre[:, 0]) * (frames / steps))
    # Times around their middle have a sum of 0, so that the slope is one quotient.
    time = np.arange(steps + 1) - steps / 2
    velocity = centre @ time / (time @ time)
    return np.asarray(centre.mean(axis=1) + velocity * (steps / 2 + frames))


# From raw scores to probabilities: the sigmoid for two labels, the softmax for more.


def convert_to_probabilities(raw: Floats, n_scores: int) -> Floats:
    """(n, n_scores) probabilities: the sigmoid of the one raw score, or the softmax over all of them."""
    if n_scores == 1:
        return np.asarray(expit(raw), dtype=np.float64)
    # Less the largest of each row: nothing overflows.
    grown = np.exp(np.asarray(raw, dtype=np.float64) - raw.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


# How one candidate is chosen among several: the best score on validation, the first of equals.

Criterion = Literal["balanced_accuracy", "log_loss"]


@dataclass(frozen=True)
class Trial:
    """One candidate: its settings and its score on validation, where more is better."""

    settings: dict[str, Any]
    score: float


def score(criterion: Criterion, probability: Floats, truth: npt.NDArray[np.int64]) -> float:
    """Score of probabilities against labels; higher is better, so the log loss is negated.

    Args:
        criterion: balanced_accuracy (mean recall of the labels that occur) or log_loss.
        probability: (n, k) one column per label, or (n, 1) that of label 1.
        truth: (n,) labels.
    """
    full = np.hstack([1 - probability, probability]) if probability.shape[1] == 1 else probability
    if criterion == "log_loss":
        # A probability of 0 would cost without end.
        return float(np.log(np.maximum(full[np.arange(len(truth)), truth], 1e-15)).mean())
    counts = classification.confusion_matrix(truth, full.argmax(axis=1), full.shape[1])
    return float(np.max(classification.balanced_accuracy(counts)))


def select_best_trial(trials: Sequence[Trial]) -> int:
    """The index of the best trial, the first of equals."""
    return int(np.argmax([trial.score for trial in trials]))
