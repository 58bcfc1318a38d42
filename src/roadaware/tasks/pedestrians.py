"""Pedestrian task: examples and targets from sampled scenes; baselines fitted, selected and evaluated."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import PedestrianConfig, Task, evaluate
from roadaware.models import MODELS, list_model_cards, load_model_class
from roadaware.models.crossing.features import VEHICLE_ACTIONS
from roadaware.models.crossing.tabular import TabularModel
from roadaware.scenes.factors import (
    build_position_index,
    extract_windows,
    find_observed_rows,
    get_frame_values,
)
from roadaware.scenes.sampling import split_samples
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes, build_sample_predictions
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.boxes import assign_grid_number
from roadaware.tasks.crossing_inputs.facts import mask_unknown_traffic, refuse_unknown
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
    """Evaluate the constant-velocity baseline, which every network has to beat."""
    paths = predict_constant_velocity(truth.observed_px, truth.horizon)
    known = truth.cell != UNKNOWN
    right = assign_grid_number(paths[:, -1], truth.size_px) == truth.cell
    return {**compute_path_errors(paths, truth), "grid_accuracy": _mean(right[known])}


def _mean(values: Floats | Bools) -> float | None:
    return float(np.mean(values)) if values.size else None


def _root(value: float | None) -> float | None:
    return None if value is None else float(np.sqrt(value))


_log = logging.getLogger("roadaware")


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and targets of n samples; frames are positions in the track.

    Args:
        boxes: (n, t, 4) observed boxes in pixels.
        vehicle_action: (n, t) place of the ego vehicle's action at these frames in VEHICLE_ACTIONS, NaN where
            unknown.
        width_px: (n,) width of the image.
        height_px: (n,) height of the image.
        truth: (n,) index of the right label.
        pedestrian: (n,) `<video> <name>`, unique in a dataset.
        video: (n,) names.
        sample: (n,) keys of the samples table.
        tte_frames: (n,) time to event, -1 where there is none.
        traffic: (n, t, 10) state of the traffic as `crossing_inputs.facts` gives it (default: None).
    """

    boxes: Floats
    vehicle_action: Floats
    width_px: Floats
    height_px: Floats
    truth: Ints
    pedestrian: npt.NDArray[np.str_]
    video: npt.NDArray[np.str_]
    sample: Ints
    tte_frames: Ints
    traffic: Floats | None = None

    def __len__(self) -> int:
        return len(self.sample)


def build_examples(scenes: Scenes, split: str, *, traffic: bool = False) -> Examples:
    """The samples of one split as arrays, in their order.

    Args:
        scenes: with `samples` cut by a protocol, and boxes.
        split: train, val or test.
        traffic: give the state of the traffic too.

    Raises:
        UsageError: if the samples were not cut for such a split.
        InputError: if the split has no samples, a sample has no answer, or the size of its image is unknown.
    """
    samples = split_samples(scenes, split).samples
    if samples["label"].null_count():
        raise InputError(f"{samples['label'].null_count()} samples of split '{split}' have no answer")
    observed = extract_windows(scenes, samples, (*CORNERS, "frame"))
    # One row per sample with its pedestrian and the size of its image
    video = pl.col("video").cast(pl.String)
    sizes = scenes.videos.select(video, "width_px", "height_px")
    names = scenes.tubes.select("tube", video.alias("owner"), pl.col("name").cast(pl.String))
    facts = (
        samples.select("sample", "tube", "label", "tte_frames")
        .join(names, on="tube", how="left", maintain_order="left")
        .rename({"owner": "video"})
        .join(sizes, on="video", how="left", maintain_order="left")
        .with_columns(pl.concat_str("video", "name", separator=" ").alias("pedestrian"))
    )
    unknown = facts.filter(pl.any_horizontal(pl.col("width_px", "height_px").is_null()))
    if len(unknown):
        raise InputError(f"the image size of {unknown['video'].unique().sort().to_list()[:5]} is unknown")
    return Examples(
        boxes=np.ascontiguousarray(observed[..., :4]),
        vehicle_action=get_frame_values(
            scenes, "vehicle_action", facts["video"], observed[..., 4], VEHICLE_ACTIONS
        ),
        width_px=facts["width_px"].cast(pl.Float64).to_numpy(),
        height_px=facts["height_px"].cast(pl.Float64).to_numpy(),
        truth=facts["label"].cast(pl.Int64).to_numpy(),
        pedestrian=np.asarray(facts["pedestrian"].to_list(), dtype=np.str_),
        video=np.asarray(facts["video"].to_list(), dtype=np.str_),
        sample=facts["sample"].cast(pl.Int64).to_numpy(),
        tte_frames=facts["tte_frames"].cast(pl.Int64).fill_null(-1).to_numpy(),
        traffic=_traffic(scenes, split) if traffic else None,
    )


def _traffic(scenes: Scenes, split: str) -> Floats:
    """(n, t, 10) the state of the traffic."""
    column = build_inputs(scenes, split, ["traffic"]).columns["traffic"]
    return np.asarray(column.take(np.arange(len(column))), dtype=np.float64)


TRIED: dict[Task, dict[str, dict[str, Any]]] = {
    "action": {"logistic": {}, "boosting": {}},
    "intention": {"logistic": {}, "boosting": {"learning_rate": 0.1, "leaves": (4, 7), "rounds": 80}},
    "risk": {
        "constant-velocity": {},
        "boosting": {"learning_rate": 0.1, "leaves": (4, 7), "rounds": 80},
    },
}


@dataclass(frozen=True, eq=False)
class Baseline:
    """One baseline: fitted on train, selected on validation, evaluated on test.

    Args:
        name: of the model.
        model: as fitted; `model.fitted.chosen` and `.trials` say what was tried and what won.
        scenes: the scenes with the test samples alone.
        predictions: scores of the test samples.
        metrics: what they are worth.
    """

    name: str
    model: TabularModel
    scenes: Scenes
    predictions: Predictions
    metrics: MetricResult


def fit(scenes: Scenes, task: Task, name: str, **config: Any) -> TabularModel:
    """A model fitted on the train samples and chosen on the validation samples; test is not read.

    Args:
        scenes: with samples of `task`.
        task: action, intention or risk.
        name: of the model, see `roadaware.models.MODELS`.
        config: fields of its config; what is not given is as in `TRIED`.

    Raises:
        UsageError: if the model does not answer the task.
        InputError: if train or validation has no samples, train has one class only, or the features are made
            of columns that are unknown in a split.
    """
    known = list_model_cards()
    if name in known and task not in known[name].tasks:
        fitting = [other for other in MODELS if task in known[other].tasks]
        raise UsageError(f"{name} does not answer {task}; {', '.join(fitting)} do")
    kinds = scenes.samples["kind"].cast(pl.String).unique().to_list()
    if kinds != [task]:
        raise UsageError(f"the samples ask for {sorted(kinds)}, not for {task}")
    labels = scenes.meta.vocabularies.get(task)
    if not labels:
        raise InputError(f"the scenes have no vocabulary for {task}; sample them by a protocol")
    fields = {"labels": len(labels), **TRIED[task].get(name, {}), **config}
    model = load_model_class(name).create(**fields)
    return model.fit(*(_collect_model_inputs(model, scenes, split) for split in ("train", "val")))


def predict(model: TabularModel, scenes: Scenes, split: str = "test") -> Predictions:
    """The model's scores of one split's samples; their answers are not given to it.

    Args:
        model: as fitted.
        scenes: with samples of its task.
        split: train, val or test.

    Raises:
        InputError: if there are no samples, or the features are made of columns that are unknown in the split.
    """
    asked = _collect_model_inputs(model, scenes, split)
    # The answers are taken out, so that no model can read them by mistake.
    blind = replace(asked, truth=np.full(len(asked), -1))
    meta = Meta(dataset=scenes.meta.dataset, notes={"model": model.card.name, "chosen": model.fitted.chosen})
    return build_sample_predictions(split_samples(scenes, split).samples, model.predict(blind), meta)


def _collect_model_inputs(model: TabularModel, scenes: Scenes, split: str) -> Examples:
    """The samples of a split with all that the features of a model are made of."""
    vehicle, traffic = (getattr(model.config, name, False) for name in ("vehicle", "traffic"))
    found = build_examples(scenes, split, traffic=traffic)
    shares = {"ego:action (frames.vehicle_action)": _unknown_actions(found)} if vehicle else {}
    if found.traffic is not None:
        last = mask_unknown_traffic(found.traffic[:, -1])
        shares |= {f"traffic ({column})": float(lost.mean()) for column, lost in last.items()}
    refuse_unknown(shares, split)
    return found


def _unknown_actions(found: Examples) -> float:
    return float(np.isnan(found.vehicle_action).mean())


def evaluate_baselines(
    scenes: Scenes,
    task: Task,
    models: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    config: PedestrianConfig | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> dict[str, Baseline]:
    """Each baseline trained, chosen and scored on test.

    Models that would read the action of the vehicle do without where nobody tells it of a split and their
    fields do not ask for it.

    Args:
        scenes: with samples of `task` in the splits train, val and test.
        task: action, intention or risk.
        models: names, or names with fields of their configs; all that answer the task if not given.
        config: of the metrics; `PedestrianConfig.default(task)` if not given.
        resamples: for the intervals; 0 for none.
        seed: of the bootstrap.

    Raises:
        UsageError: if a model does not answer the task.
        InputError: if a split has no samples, or train has one class only.
    """
    chosen = TRIED[task] if models is None else models
    fields = chosen if isinstance(chosen, Mapping) else {name: {} for name in chosen}
    held = split_samples(scenes, "test")
    # Fields by model: those that read the action of the vehicle do without where a split lacks it
    lost = [
        split for split in ("train", "val", "test") if _unknown_actions(build_examples(scenes, split)) == 1
    ]
    if not lost:
        usual = {}
    else:
        _log.warning(
            "no action of the vehicle is told of split %s: baselines go by boxes alone", ", ".join(lost)
        )
        usual = {
            name: {"vehicle": False}
            for name in MODELS
            if hasattr(load_model_class(name).config_class, "vehicle")
        }
    results = {}
    for name, extra in fields.items():
        model = fit(scenes, task, name, **{**usual.get(name, {}), **extra})
        predicted = predict(model, scenes)
        metrics = evaluate(
            predicted, held, config or PedestrianConfig.default(task), resamples=resamples, seed=seed
        )
        results[name] = Baseline(name, model, held, predicted, metrics)
    return results
