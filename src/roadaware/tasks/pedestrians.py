"""Pedestrian task: examples from sampled scenes; baselines fitted, selected and evaluated."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import PedestrianConfig, Task, evaluate
from roadaware.models import MODELS, list_model_cards, load_model_class
from roadaware.models.crossing.features import VEHICLE_ACTIONS
from roadaware.models.crossing.tabular import TabularModel
from roadaware.scenes.sampling import split_samples
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes, build_sample_predictions
from roadaware.scenes.tracks import extract_windows, get_frame_values
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.facts import mask_unknown_traffic, refuse_unknown

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
    draws: int = 0,
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
        draws: bootstrap draws for the intervals, 0 for none.
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
        metrics = evaluate(predicted, held, config or PedestrianConfig.default(task), draws=draws, seed=seed)
        results[name] = Baseline(name, model, held, predicted, metrics)
    return results
