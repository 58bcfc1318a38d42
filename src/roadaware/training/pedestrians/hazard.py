"""Networks that say when somebody begins to cross, learnt from tracks that may end before; imports torch."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roadaware import __version__
from roadaware.arrays import Bools
from roadaware.errors import InputError
from roadaware.models import create, get_crossing_entry
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.networks.stills import CrossingNet
from roadaware.models.crossing.predictor import Predictor
from roadaware.tasks.crossing_time import EDGES_S, TimedTracks, mark_spans, name_spans
from roadaware.tasks.crossing_tracks import TIME
from roadaware.training.pedestrians.heads import flip_inputs, measure_sequences
from roadaware.training.recipe_files import replace_fields

_log = logging.getLogger("roadaware")


@dataclass(frozen=True)
class HazardRecipe:
    """How a network learns when.

    Args:
        network: of the registry, such as `steady`.
        inputs: that it reads.
        fields: of its config that differ from the usual ones.
        edges_s: ends of the spans that are told apart.
        epochs, batch, lr, weight_decay: of AdamW with a cosine; the epoch with the best likelihood on validation is kept.
        every: of the training moments one in so many is seen, another part in each epoch: neighbours are alike.
        flip: chance that a moment is seen mirrored.
    """

    network: str = "steady"
    inputs: tuple[str, ...] = ("centre", "motion")
    fields: tuple[tuple[str, Any], ...] = (("dropout", 0.3),)
    edges_s: tuple[float, ...] = EDGES_S
    epochs: int = 12
    batch: int = 256
    lr: float = 1e-3
    weight_decay: float = 0.1
    every: int = 5
    flip: float = 0.5


def censored_loss(logits: Tensor, spans: Tensor) -> Tensor:
    """(n,) the negative logarithm of the probability of all spans that may hold the event.

    Of an event that is seen it is that of its span; of a track that ends before, that of the span of its end and of all later
    ones: the likelihood of a discrete hazard with censoring.

    Args:
        logits: (n, k) of the spans.
        spans: (n, k) bool, as `tasks.crossing_time.mark_spans` gives them.

    Source: Singer and Willett, Journal of Educational Statistics 1993; Kvamme and Borgan, Lifetime Data Analysis 2021.
    """
    chance = logits.log_softmax(dim=1)
    return -chance.masked_fill(~spans, -torch.inf).logsumexp(dim=1)


def fit_hazard(
    train: TimedTracks,
    validation: TimedTracks,
    recipe: HazardRecipe,
    seed: int = 0,
    *,
    facts: dict[str, Any] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Predictor:
    """A network that was fitted, as it was in its best epoch.

    Args:
        train: what it learns from.
        validation: chooses the epoch.
        recipe: how.
        seed: of weights, order, dropout and mirroring.
        facts: further facts for its file.
        progress: called with epochs done, their number, and the likelihood so far.

    Raises:
        InputError: if no event is among what it learns from.
        UsageError: if there is no such network, or it cannot read these inputs.
    """
    if not train.event.any() or not validation.event.any():
        raise InputError(
            "nobody begins to cross in the moments of train or validation: there is nothing to learn"
        )
    train, validation = (
        replace(of, inputs=InputSet({name: of.inputs.columns[name] for name in recipe.inputs}, len(of)))
        for of in (train, validation)
    )
    torch.manual_seed(seed)
    entry = get_crossing_entry(recipe.network)
    config = replace_fields(entry.config_class.small(), dict(recipe.fields), "fields")
    labels = name_spans(recipe.edges_s)
    network: CrossingNet = create(
        recipe.network, config=config, shapes=train.inputs.shapes, labels=len(labels), tasks={}
    )
    sequences = {
        n: torch.from_numpy(np.asarray(v)) for n, v in train.inputs.take(np.arange(len(train))).items()
    }
    for name, (mean, spread) in measure_sequences(sequences).items():
        network.standardise(name, mean, spread)
    rng = np.random.default_rng(seed)
    spans = {
        name: mark_spans(of.time_s, of.event, recipe.edges_s)
        for name, of in (("train", train), ("val", validation))
    }
    wanted = torch.from_numpy(spans["train"])
    steps = recipe.epochs * max(1, len(train) // recipe.every // recipe.batch)
    optimizer = torch.optim.AdamW(network.parameters(), recipe.lr, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    best, kept, curve = np.inf, copy.deepcopy(network.state_dict()), []
    for epoch in range(recipe.epochs):
        network.train()
        order = rng.permutation(np.arange(epoch % recipe.every, len(train), recipe.every))
        losses = []
        for start in range(0, len(order) - recipe.batch + 1, recipe.batch):
            rows = order[start : start + recipe.batch]
            x = {
                name: torch.from_numpy(np.asarray(values)) for name, values in train.inputs.take(rows).items()
            }
            x = flip_inputs(x, torch.from_numpy(rng.random(len(rows)) < recipe.flip))
            loss = censored_loss(network(x)["label"], wanted[rows]).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            if schedule.last_epoch < steps:
                schedule.step()
            losses.append(float(loss.detach()))
        worth = measure_likelihood(network, validation, spans["val"])
        curve.append(
            {"epoch": epoch + 1, "loss": float(np.mean(losses)) if losses else None, "validation": worth}
        )
        if worth < best:
            best, kept = worth, copy.deepcopy(network.state_dict())
        if progress is not None:
            progress(epoch + 1, recipe.epochs, f"epochs, negative log-likelihood {worth:.4f}")
    network.load_state_dict(kept)
    network.eval()
    record = {
        "edges_s": list(recipe.edges_s), "seed": seed, "criterion": "likelihood", "validation": best, "curve": curve,
        "version": __version__, **(facts or {}),
    }  # fmt: skip
    return Predictor(network, recipe.network, TIME, labels, record)


def measure_likelihood(network: CrossingNet, of: TimedTracks, spans: Bools, batch: int = 4096) -> float:
    """The mean negative log-likelihood of moments."""
    network.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(of), batch):
            rows = np.arange(start, min(len(of), start + batch))
            x = {name: torch.from_numpy(np.asarray(values)) for name, values in of.inputs.take(rows).items()}
            total += float(censored_loss(network(x)["label"], torch.from_numpy(spans[rows])).sum())
    return total / len(of)
