"""Targets after an observation: future boxes, their final cell, and the errors of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.scenes.tracks import build_position_index, find_observed_rows
from roadaware.tasks.crossing_inputs.boxes import assign_grid_number
from roadaware.tasks.crossing_inputs.observations import collect_observations

UNKNOWN = -1
"""Number of the cell where the track ends before."""


@dataclass(frozen=True, eq=False)
class Futures:
    """n samples of t observed boxes and h boxes ahead; positions count the boxes of a tube, gaps ignored.

    Args:
        observed_px: (n, t, 4) x1, y1, x2, y2 in pixels of the original image.
        ahead_px: (n, h, 4) the boxes behind the observation, NaN where the track has ended.
        size_px: (n, 2) width and height of each sample's image.
    """

    observed_px: Floats
    ahead_px: Floats
    size_px: Floats

    def __len__(self) -> int:
        return len(self.ahead_px)

    @property
    def horizon(self) -> int:
        """Boxes ahead."""
        return int(self.ahead_px.shape[1])

    @cached_property
    def known(self) -> Bools:
        """(n, h) whether there is a box."""
        return np.asarray(np.isfinite(self.ahead_px).all(axis=-1))

    @cached_property
    def moved(self) -> Floats:
        """(n, h, 4) shares of the image less those of the last observed box; NaN where the track has ended.

        Source: Rasouli and Kotseruba, IV 2024 (`norm_bbox`).
        """
        return np.asarray((self.ahead_px - self.observed_px[:, -1:]) / self._sides_px)

    @cached_property
    def cell(self) -> Ints:
        """(n) number of the cell of 60 pixels that holds the last box ahead, -1 where the track ends before.

        Source: Rasouli et al., ICCV 2021 (BiPed): the final location.
        """
        ends = self.known[:, -1]
        last = np.where(ends[:, None], self.ahead_px[:, -1], 0.0)
        return np.where(ends, assign_grid_number(last, self.size_px), UNKNOWN).astype(np.int64)

    def pixels(self, moved: Floats) -> Floats:
        """(n, h, 4) boxes in pixels of the original image.

        Args:
            moved: (n, h, 4) as `moved` has them.
        """
        return np.asarray(self.observed_px[:, -1:] + moved * self._sides_px)

    @property
    def _sides_px(self) -> Floats:
        return np.tile(self.size_px, 2)[:, None, :]


def build_targets(scenes: Scenes, split: str, horizon: int) -> Futures:
    """The boxes behind the observations of one split, in the order of `tasks.pedestrians.build_examples`.

    Args:
        scenes: with `samples` cut by a protocol, and boxes.
        split: train, val or test.
        horizon: boxes ahead.

    Raises:
        UsageError: if the horizon is none, or the samples were not cut for such a split.
        InputError: if the split has no samples, or the size of an image is unknown.
    """
    if horizon < 1:
        raise UsageError(f"a trajectory has at least one box ahead, not {horizon}")
    seen = collect_observations(scenes, split)
    rows = find_observed_rows(build_position_index(scenes.boxes), seen.samples, after=horizon)
    # Behind the end of a track its last row comes again.
    ended = (rows[:, 1:] == rows[:, :-1])[:, -horizon:]
    columns = [scenes.boxes[name].to_numpy().astype(np.float64) for name in CORNERS]
    corners = np.stack([column[rows] for column in columns], axis=-1)
    ahead = np.where(ended[..., None], np.nan, corners[:, -horizon:])
    return Futures(corners[:, :-horizon], ahead, seen.size_px)


def predict_constant_velocity(observed_px: Floats, horizon: int, steps: int = 5) -> Floats:
    """(n, horizon, 4) boxes that go on from the last one with the velocity of the last few.

    Args:
        observed_px: (n, t, 4); with one frame the velocity is 0.
        horizon: boxes ahead.
        steps: from which box to the last the velocity is taken, at most t - 1; of 5, 14 and a line through
            all boxes, 5 comes nearest on the validation split of JAAD.
    """
    steps = min(steps, observed_px.shape[1] - 1)
    last = observed_px[:, -1:]
    velocity = (last - observed_px[:, -1 - steps, None]) / max(steps, 1)
    return np.asarray(last + velocity * np.arange(1, horizon + 1)[:, None])


def compute_path_errors(paths_px: Floats, truth: Futures) -> dict[str, float | None]:
    """Errors of future boxes in pixels of the original image; None where nothing is known.

    ade_px is the distance of centres, the mean over the known frames of a sample and then over samples;
    fde_px that of the last frame, over samples whose track reaches it. arb_px and frb_px are roots of the
    mean squared errors of the sides of boxes, over the same frames. [recalled]

    Args:
        paths_px: (n, h, 4) boxes.
        truth: of the same samples.

    Source: the metrics of Rasouli et al., ICCV 2021, and Rasouli and Kotseruba, ICRA 2023.
    """
    off = paths_px - truth.ahead_px
    centre = np.hypot(*np.moveaxis((off[..., :2] + off[..., 2:]) / 2, -1, 0))
    known, whole = truth.known, truth.known[:, -1]
    frames = known.sum(axis=1)
    each = np.where(known, centre, 0.0).sum(axis=1)[frames > 0] / frames[frames > 0]
    return {
        "ade_px": _mean(each),
        "fde_px": _mean(centre[whole, -1]),
        "arb_px": _root(_mean(off[known] ** 2)),
        "frb_px": _root(_mean(off[whole, -1] ** 2)),
    }


def cell_accuracy(said: Floats, truth: Futures) -> float | None:
    """Share of samples whose likeliest cell is the ground-truth one; None where none is known.

    Args:
        said: (n, cells) probabilities or other scores.
        truth: of the same samples.
    """
    known = truth.cell != UNKNOWN
    return _mean((said.argmax(axis=1) == truth.cell)[known])


def evaluate_future(said: Mapping[str, Floats], truth: Futures) -> dict[str, float | None]:
    """Evaluate predicted futures: errors of boxes, accuracy of cells.

    Args:
        said: `trajectory` (n, h, 4) as `Futures.moved` has it, `grid` (n, cells); either may be missing.
        truth: of the same samples.
    """
    found: dict[str, float | None] = {}
    if "trajectory" in said:
        found |= compute_path_errors(truth.pixels(said["trajectory"]), truth)
    if "grid" in said:
        found["grid_accuracy"] = cell_accuracy(said["grid"], truth)
    return found


def evaluate_constant_velocity(truth: Futures) -> dict[str, float | None]:
    """Evaluate the constant-velocity baseline, which every network has to beat.

    Args:
        truth: of the samples.
    """
    paths = predict_constant_velocity(truth.observed_px, truth.horizon)
    known = truth.cell != UNKNOWN
    right = assign_grid_number(paths[:, -1], truth.size_px) == truth.cell
    return {**compute_path_errors(paths, truth), "grid_accuracy": _mean(right[known])}


def _mean(values: Floats | Bools) -> float | None:
    return float(np.mean(values)) if values.size else None


def _root(value: float | None) -> float | None:
    return None if value is None else float(np.sqrt(value))
