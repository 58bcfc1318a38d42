"""Worlds of the other tasks: items, relations, corner cases and tracks, as states of their metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from benchmarks.coverage.world import Floats, Ints, Pair, Told, Verdict, World, rows, sigmoid, verdicts
from roadaware.analysis.compare import compare_scenes
from roadaware.metrics.corner_cases.evaluate import JudgedCorners
from roadaware.metrics.corner_cases.matching import AREAS, NONE, CornerConfig
from roadaware.metrics.grounding import GroundedSentences, GroundingConfig
from roadaware.metrics.metric_state import Judged, build_result
from roadaware.metrics.relation_rows import JudgedRelations
from roadaware.metrics.relations import RelationConfig
from roadaware.metrics.sound import LocalisedSounds, SoundConfig
from roadaware.metrics.tracking import TrackCounts, get_tracking_scale, resample_rates, track_rates
from roadaware.metrics.tracking_pairs import TrackingConfig
from roadaware.statistics.intervals import Units

GROUNDED = ("m_tiou", "m_viou", "viou@0.3", "viou@0.5", "gt_viou", "gt_viou@0.5")
"""Metrics of sentences that are simulated."""


@dataclass(frozen=True, eq=False)
class Scenes(World):
    """Any state that can be cut by video."""

    state: Judged
    metrics: tuple[str, ...]

    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """As `evaluate` prints it."""
        part: Any = self.part(chosen)
        return rows(build_result(part, part.config, resamples=resamples).summary, "video", self.metrics)

    def part(self, chosen: Ints) -> Judged:
        """The state of some videos."""
        kept = np.isin(self.state.items["number"].to_numpy(), chosen)
        return self.state.only(kept)


@dataclass(frozen=True, eq=False)
class ScenesPair(Pair):
    """Two states of the same videos."""

    one: Scenes
    two: Scenes

    def compared(self, chosen: Ints, resamples: int) -> dict[str, Verdict]:
        """As `compare_scenes` says it."""
        found = compare_scenes(self.one.part(chosen), self.two.part(chosen), {}, resamples=max(1, resamples))
        return verdicts(found.table, "video", self.one.metrics)


@dataclass(frozen=True, eq=False)
class Tracks(World):
    """Sums of tracking."""

    table: dict[str, Floats]

    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """As `evaluate --tracking` prints it."""
        part = {name: held[chosen] for name, held in self.table.items()}
        counts = TrackCounts(TrackingConfig.default(), tuple(map(str, chosen)), part)
        values, found = track_rates(counts), {}
        units = Units(len(chosen), resamples, 0)
        drawn = resample_rates(counts, np.ones(units.n), units) if resamples else {}
        for name in ("hota", "mota", "idf1", "recall", "switches"):
            ends = (
                units.interval(float(values[name]), drawn[name], get_tracking_scale(name))
                if resamples
                else None
            )
            per = len(chosen) if name == "switches" else 1  # a count grows with the videos: judged per video
            told = (float(values[name]), ends.low if ends else None, ends.high if ends else None)
            found[name] = Told(*(None if each is None else each / per for each in told))
        return found


def _items(video: Ints) -> pl.DataFrame:
    names = pl.Series("video", np.char.mod("%05d", video), dtype=pl.String)
    return pl.DataFrame([names, pl.Series("number", video)])


def sounds(seed: int, units: int, better: float = 0.0, noise: int = 0) -> LocalisedSounds:
    """Sounds with an overlap each; means over items and the share of successes."""
    rng = np.random.default_rng(seed)
    video = np.repeat(np.arange(units), 1 + rng.poisson(3 * rng.gamma(1, 1, units)))
    shared = rng.normal(0, 1, units)[video] - 0.3
    iou = sigmoid(shared + better + np.random.default_rng(seed + 1000 + noise).normal(0, 1, len(video)))
    items = _items(video).with_columns(sound_class=pl.lit("horn"))
    return LocalisedSounds(items, np.column_stack([iou, iou >= 0.5, iou]), SoundConfig.default())


def sentences(seed: int, units: int) -> GroundedSentences:
    """Sentences of two kinds with the overlaps of span and boxes; a tenth has no prediction and scores 0."""
    rng = np.random.default_rng(seed)
    video = np.repeat(np.arange(units), 1 + rng.poisson(3 * rng.gamma(1, 1, units)))
    ease = rng.normal(0, 0.8, units)[video]
    predicted = rng.random(len(video)) < 0.9
    tiou = predicted * sigmoid(0.2 + ease + rng.normal(0, 1, len(video)))
    boxes = predicted * sigmoid(0.6 + ease + rng.normal(0, 0.7, len(video)))
    config = GroundingConfig.default()
    columns = [tiou]
    for overlap in (tiou * boxes, boxes):
        columns += [overlap, *(overlap >= tau for tau in config.thresholds)]
    kinds = np.where(rng.random(len(video)) < 0.7, "declarative", "interrogative")
    items = _items(video).with_columns(sentence_kind=pl.Series(kinds))
    return GroundedSentences(items, np.column_stack(columns), config)


def relations(seed: int, units: int) -> JudgedRelations:
    """Relations of twelve long-tailed predicates, and how many the best predictions of a video find."""
    rng = np.random.default_rng(seed)
    config = RelationConfig()
    k, p, shares = len(config.recall_at), len(config.precision_at), 0.9 / np.arange(1, 13)
    truth = rng.poisson(3.0, (units, 12)) * (rng.random((units, 12)) < shares)
    chance = sigmoid(rng.normal(-0.5, 1, units)[:, None] + rng.normal(0, 0.7, 12))
    hits = np.stack([rng.binomial(truth, np.minimum(1, chance * (0.7 + 0.3 * n))) for n in range(k)], axis=2)
    some = truth.sum(axis=1) > 0
    ap = np.where(some, hits[:, :, 0].sum(axis=1) / np.maximum(1, truth.sum(axis=1)), np.nan)
    tagged = np.where(some[:, None], rng.beta(1 + 4 * chance.mean(axis=1)[:, None], 3, (units, p)), np.nan)
    names = tuple(f"{c:02d}" for c in range(12))
    parts = (_items(np.arange(units)), config, names, truth, hits, ap, tagged)
    return JudgedRelations(*parts, *_frames(np.random.default_rng(seed + 1000), truth, chance, k))


def _frames(rng: np.random.Generator, truth: Ints, chance: Floats, k: int) -> tuple[Any, ...]:
    """What is found in the frames of each video: sums over frames that are alike within a video.

    Args:
        rng: draws it.
        truth: (V, C) relations of each video.
        chance: (V, C) how easily they are found.
        k: numbers of predictions that recall looks at.
    """
    units, classes = truth.shape
    frames = 1 + rng.poisson(12 * rng.gamma(1, 1, units))
    sums, images, found = np.zeros((units, k)), np.zeros((units, 2)), np.zeros((units, classes, 2))
    hits, shares = np.zeros((units, classes, k)), np.zeros((units, classes, k))
    for at in range(int(frames.max())):
        own = rng.binomial(truth, 0.6) * (at < frames)[:, None]
        whole, some = own.sum(axis=1), own > 0
        images += np.column_stack([at < frames, whole > 0])
        found += np.stack([some, own], axis=2)
        hit = np.zeros_like(own)
        for n in range(k):
            hit = hit + rng.binomial(own - hit, np.minimum(1, chance * 0.7 if n == 0 else chance * 0.3))
            sums[:, n] += np.where(whole > 0, hit.sum(axis=1) / np.maximum(whole, 1), 0.0)
            hits[:, :, n] += hit
            shares[:, :, n] += np.where(some, hit / np.maximum(own, 1), 0.0)
    return images, sums, found, hits, shares


def corners(
    seed: int, units: int, ease: float = 0.8, others: float = 3.0, told: float = 3.0
) -> JudgedCorners:
    """Corner cases in the images of scenes, proposals that meet them more or less closely, and others.

    Args:
        seed: of numpy's default generator.
        units: scenes.
        ease: how closely they are met, in log odds of the overlap.
        others: mean number of proposals on nothing, an image.
        told: how far scores tell one from the other.
    """
    rng = np.random.default_rng(seed)
    config = CornerConfig(groups=("corner",), precision="always")
    steps = np.array(config.thresholds)
    video = np.repeat(np.arange(units), 1 + rng.poisson(2.0, units))
    hard = rng.normal(0, 0.8, units)[video]
    item = np.repeat(np.arange(len(video)), rng.poisson(1.5 * rng.gamma(1, 1, len(video))))
    overlap = sigmoid(ease + hard[item] + rng.normal(0, 1.2, len(item)))
    size = rng.integers(1, len(AREAS), len(item))
    asked = np.column_stack([np.ones(len(item), bool), *(size == a for a in range(1, len(AREAS)))])
    met = overlap[:, None] >= steps
    place = rng.geometric(0.08, len(item)).clip(1, 100) - 1
    rank = np.where(met[:, None] & asked[:, :, None], place[:, None, None], -1).astype(np.int16)
    bits = (met * (1 << np.arange(len(steps)))).sum(axis=1)
    false = np.repeat(np.arange(len(video)), rng.poisson(others, len(video)))
    prediction = np.r_[item, false]
    score = np.r_[sigmoid(overlap * told - 1 + rng.normal(0, 1, len(item))), rng.beta(2, 3, len(false))]
    hit = np.zeros((len(prediction), len(AREAS)), dtype=np.uint16)
    hit[: len(item)] = bits[:, None] * asked
    passed = np.zeros_like(hit)
    passed[: len(item)] = (~asked) * ((1 << len(steps)) - 1)
    order = np.lexsort((-score, prediction))
    none = np.zeros(len(item), dtype=np.int64)
    own = np.zeros(len(prediction), dtype=np.int64)
    return JudgedCorners(
        *(_items(video), item, none, none, np.full(len(item), NONE), asked, rank),
        *(prediction[order], own, own, score[order], hit[order], passed[order]),
        *((("corner", "corner"),), (), (), (True,), config),
    )


def tracks(seed: int, units: int) -> dict[str, Floats]:
    """Counts of each video, as tracking sums them."""
    rng = np.random.default_rng(seed)
    n_tracks = 1 + rng.poisson(6 * rng.gamma(1, 1, units))
    truth = n_tracks * (20 + rng.poisson(30, units))
    ease = rng.normal(0.8, 0.9, units)
    found = rng.binomial(truth, sigmoid(ease))
    false = rng.poisson(0.3 * truth * rng.gamma(1, 1, units))
    alphas = len(TrackingConfig.default().alphas)
    fall = np.linspace(1.0, 0.3, alphas)
    tp = found[:, None] * fall
    ass = tp * sigmoid(ease - 0.3)[:, None]
    zeros = np.zeros(units)
    held: dict[str, Any] = {
        **{"frames": np.full(units, 100), "truth": truth, "predictions": found + false},
        **{"tracks": n_tracks, "paths": n_tracks, "hota_tp": tp, "ass_a": ass, "ass_re": ass, "ass_pr": ass},
        **{"loc": tp * 0.8, "clear_tp": found, "overlap": found * 0.8},
        **{"switches": rng.poisson(0.3 * n_tracks * sigmoid(-ease)), "fragmentations": zeros},
        **{"mostly_tracked": zeros, "partly_tracked": zeros, "mostly_lost": zeros},
        **{"id_tp": np.minimum(found, found * sigmoid(ease + 0.5))},
    }
    return {name: np.asarray(values, dtype=np.float64) for name, values in held.items()}


def worlds() -> list[World]:
    """One world of each task, and a pair of each kind."""
    means = ("ciou", "success@0.5")
    one, same, better = (
        Scenes("", 4000, sounds(1, 4000, gain, noise), means) for gain, noise in ((0, 0), (0, 1), (0.4, 1))
    )
    n = len(RelationConfig().recall_at)
    asked = tuple(f"recall@{at}" for at in RelationConfig().recall_at[:: max(1, n - 1)])
    in_frames = tuple(f"frame_{name}{end}" for end in ("", "_pooled") for name in asked)
    return [
        Scenes("means over items", 4000, one.state, means),
        Scenes("relations", 4000, relations(2, 4000), (*asked, "map", *in_frames)),
        Scenes("sentences", 4000, sentences(5, 4000), GROUNDED),
        Scenes("corner cases", 4000, corners(3, 4000), ("corner_ar", "corner_ar50", "corner_ap")),
        Scenes(
            "weak proposals",
            4000,
            corners(6, 4000, -0.8, 6.0, 1.0),
            ("corner_ar", "corner_ar50", "corner_ap"),
        ),
        Tracks("tracks", 4000, tracks(4, 4000)),
        ScenesPair("means over items, two equal models", 4000, one, same),
        ScenesPair("means over items, the first better", 4000, better, one),
    ]
