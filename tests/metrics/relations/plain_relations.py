"""Relations judged in plain loops, from facts: what the fast way is held against."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from random_relations import PREDICATES, Box, Fact, Tube, Video

from roadaware.metrics.relations import RelationConfig

Triplet = tuple[str | None, str, str | None]


@dataclass
class Plain:
    """Metric to value, and by predicate, and what stands behind them.

    Args:
        values: by metric.
        by_class: by predicate.
        predictions: for each video its predictions by rank: place, whether it is a hit, place of the true relation
            that it takes or else overlaps most, and the overlaps with that.
        frames: video, frame, true triplets, and those that the predictions find at each rank.
    """

    values: dict[str, float] = field(default_factory=dict)
    by_class: dict[str, dict[str, float]] = field(default_factory=dict)
    predictions: list[list[tuple[int, bool, int | None, float | None, float | None]]] = field(
        default_factory=list
    )
    frames: list[tuple[str | int, ...]] = field(default_factory=list)


def plain_metrics(videos: list[Video], config: RelationConfig) -> Plain:
    found = Plain()
    if config.tubelets:
        _tubelets(videos, config, found)
    if config.frames:
        _frames(videos, config, found)
    return found


def _triplet(fact: Fact, tubes: list[Tube]) -> Triplet:
    return (tubes[fact.subject].category, fact.predicate, tubes[fact.object].category)


def _cut(fact: Fact, tube: Tube) -> dict[int, Box]:
    return {f: box for f, box in tube.boxes.items() if fact.start <= f < fact.end}


def _area(box: Box, offset: float) -> float:
    return (box[2] - box[0] + offset) * (box[3] - box[1] + offset)


def viou(a: dict[int, Box], b: dict[int, Box], offset: float) -> float:
    common = 0.0
    for frame in sorted(a.keys() & b.keys()):
        p, q = a[frame], b[frame]
        width = min(p[2], q[2]) - max(p[0], q[0]) + offset
        height = min(p[3], q[3]) - max(p[1], q[1]) + offset
        common += max(0.0, width) * max(0.0, height)
    volumes = [sum(_area(box[f], offset) for f in sorted(box)) for box in (a, b)]
    union = volumes[0] + volumes[1] - common
    return common / union if union > 0 else 0.0


def _tubelets(videos: list[Video], config: RelationConfig, found: Plain) -> None:
    kind = np.float32 if config.precision == "float32" else np.float64
    aps, tags, asked = [], [], 0
    hits = dict.fromkeys(config.recall_at, 0)
    of_class = {p: {"n": 0, **dict.fromkeys(config.recall_at, 0)} for p in PREDICATES}
    for video in videos:
        ranked = sorted(video.predictions, key=lambda prediction: prediction.score, reverse=True)[
            : config.top_returns
        ]
        taken = _taken(video, ranked, config)
        places = sorted(range(len(video.predictions)), key=lambda c, video=video: -video.predictions[c].score)
        found.predictions.append(
            [_row(video, ranked[c], places[c], taken.get(c), config) for c in range(len(ranked))]
        )
        if not video.truth:
            continue
        asked += len(video.truth)
        for fact in video.truth:
            of_class[fact.predicate]["n"] += 1
        for k in config.recall_at:
            for c in taken:
                hits[k] += c < k
                of_class[ranked[c].predicate][k] += c < k
        aps.append(_area_under(ranked, taken, len(video.truth), kind))
        tags.append(_tags(video, ranked, config, kind))
    for k in config.recall_at:
        found.values[f"recall@{k}"] = float(kind(hits[k]) / kind(asked))
    found.values["map"] = float(np.mean(aps))
    for i, n in enumerate(config.precision_at):
        found.values[f"precision@{n}"] = float(np.mean([row[i] for row in tags]))
    for predicate, counts in of_class.items():
        if counts["n"]:
            values = {f"recall@{k}": float(kind(counts[k]) / kind(counts["n"])) for k in config.recall_at}
            found.by_class[predicate] = values


def _taken(video: Video, ranked: list[Fact], config: RelationConfig) -> dict[int, int]:
    free, taken = set(range(len(video.truth))), {}
    for c, prediction in enumerate(ranked):
        best, chosen = 0.0, None
        for t in sorted(free):
            fact = video.truth[t]
            if _triplet(prediction, video.predicted_tubes) != _triplet(fact, video.tubes):
                continue
            least = min(_viou_of_ends(video, prediction, t, config))
            if least >= config.viou_threshold and least > best:
                best, chosen = least, t
        if chosen is not None:
            taken[c] = chosen
            free.remove(chosen)
    return taken


def _row(
    video: Video, prediction: Fact, place: int, taken: int | None, config: RelationConfig
) -> tuple[int, bool, int | None, float | None, float | None]:
    alike = [
        t
        for t, fact in enumerate(video.truth)
        if _triplet(prediction, video.predicted_tubes) == _triplet(fact, video.tubes)
    ]
    near = max(alike, key=lambda t: min(_viou_of_ends(video, prediction, t, config)), default=None)
    near = near if taken is None else taken
    if near is None:
        return place, False, None, None, None
    return place, taken is not None, near, *_viou_of_ends(video, prediction, near, config)


def _viou_of_ends(video: Video, prediction: Fact, t: int, config: RelationConfig) -> tuple[float, float]:
    subject, object_ = (
        viou(
            _cut(prediction, video.predicted_tubes[getattr(prediction, side)]),
            _cut(video.truth[t], video.tubes[getattr(video.truth[t], side)]),
            config.pixel_offset,
        )
        for side in ("subject", "object")
    )
    return subject, object_


def _area_under(ranked: list[Fact], taken: dict[int, int], n_truth: int, kind: type) -> float:
    recalls, precisions, hits = [0.0], [0.0], 0
    for c in range(len(ranked)):
        hits += c in taken
        recalls.append(float(kind(hits) / kind(n_truth)))
        precisions.append(float(kind(hits) / kind(c + 1)))
    steps = range(1, len(recalls))
    return sum((recalls[i] - recalls[i - 1]) * max(precisions[i:]) for i in steps)


def _tags(video: Video, ranked: list[Fact], config: RelationConfig, kind: type) -> list[float]:
    said = list(dict.fromkeys(_triplet(prediction, video.predicted_tubes) for prediction in ranked))
    true = {_triplet(fact, video.tubes) for fact in video.truth}
    shares = []
    for n in config.precision_at:
        best = said[:n]
        shares.append(float(kind(sum(t in true for t in best)) / kind(len(best))) if best else 0.0)
    return shares


def _images(video: Video) -> list[int]:
    if video.annotated is not None:
        return video.annotated
    return sorted({frame for tube in video.tubes for frame in tube.boxes})


def _alive(facts: list[Fact], tubes: list[Tube], frame: int) -> list[int]:
    return [
        i
        for i, fact in enumerate(facts)
        if fact.start <= frame < fact.end
        and frame in tubes[fact.subject].boxes
        and frame in tubes[fact.object].boxes
    ]


def _frames(videos: list[Video], config: RelationConfig, found: Plain) -> None:
    ks = config.recall_at
    shares: dict[int, list[float]] = {k: [] for k in ks}
    pooled = dict.fromkeys(ks, 0)
    asked = 0
    of_class: dict[str, dict[int, list[float]]] = {}
    counts: dict[str, dict[int, list[int]]] = {}
    before: tuple[Video, int] | None = None
    for video in videos:
        for frame in _images(video):
            truth = _true_triplets(video, frame, config)
            if _alive(video.predictions, video.predicted_tubes, frame) or config.silent_frames == "empty":
                before = video, frame
            ranks = _ranks(video, frame, truth, config, before)
            asked += len(truth)
            found.frames.append(
                (video.name, frame, len(truth), *(sum(r is not None and r <= k for r in ranks) for k in ks))
            )
            for k in ks:
                right = [rank is not None and rank <= k for rank in ranks]
                pooled[k] += sum(right)
                if truth:
                    shares[k].append(sum(right) / len(truth))
                elif config.empty_frames == "zero":
                    shares[k].append(0.0)
                for predicate in {video.truth[t].predicate for t in truth}:
                    own = [
                        r for r, t in zip(right, truth, strict=True) if video.truth[t].predicate == predicate
                    ]
                    of_class.setdefault(predicate, {}).setdefault(k, []).append(sum(own) / len(own))
                    counts.setdefault(predicate, {}).setdefault(k, []).extend(int(r) for r in own)
    for k in ks:
        per_image = float(np.mean(shares[k])) if shares[k] else float("nan")
        over_all = pooled[k] / asked if asked else float("nan")
        found.values[f"frame_recall@{k}_per_image"] = per_image
        found.values[f"frame_recall@{k}_pooled"] = over_all
        found.values[f"frame_recall@{k}"] = per_image if config.averaging == "per_image" else over_all
        for predicate in of_class:
            rows = of_class[predicate][k] if config.averaging == "per_image" else counts[predicate][k]
            found.by_class.setdefault(predicate, {})[f"frame_recall@{k}"] = float(np.mean(rows))


def _true_triplets(video: Video, frame: int, config: RelationConfig) -> list[int]:
    alive = _alive(video.truth, video.tubes, frame)
    if config.repeated_truth == "each":
        return alive
    once: dict[tuple[int, str, int], int] = {}
    for t in alive:
        fact = video.truth[t]
        once.setdefault((fact.subject, fact.predicate, fact.object), t)
    return sorted(once.values())


def _ranks(
    video: Video, frame: int, truth: list[int], config: RelationConfig, predicted: tuple[Video, int] | None
) -> list[int | None]:
    """The rank that finds each true triplet of a frame; `predicted` is where the predictions are taken from."""
    by, then = predicted or (video, frame)
    ranked = _ranked(by, then, config)
    ranks: list[int | None] = [None] * len(truth)
    for rank, prediction in enumerate(ranked, 1):
        enough = []
        for e, t in enumerate(truth):
            fact = video.truth[t]
            if _triplet(prediction, by.predicted_tubes) == _triplet(fact, video.tubes):
                least = min(
                    _iou(
                        by.predicted_tubes[getattr(prediction, side)].boxes[then],
                        video.tubes[getattr(fact, side)].boxes[frame],
                        config,
                    )
                    for side in ("subject", "object")
                )
                if least >= config.iou_threshold and ranks[e] is None:
                    enough.append((least, e))
        if not config.several_truths and enough:
            enough = [max(enough, key=lambda pair: (pair[0], -pair[1]))]
        for _, e in enough:
            ranks[e] = rank
    return ranks


def _ranked(video: Video, frame: int, config: RelationConfig) -> list[Fact]:
    """The predictions of a frame, best first: a matrix of pairs and predicates, flattened and sorted."""
    pairs: dict[tuple[int, int], int] = {}
    matrix: dict[tuple[int, int], dict[str, Fact]] = {}
    for c in _alive(video.predictions, video.predicted_tubes, frame):
        prediction = video.predictions[c]
        pairs.setdefault((prediction.subject, prediction.object), len(pairs))
        row = matrix.setdefault((prediction.subject, prediction.object), {})
        if prediction.predicate not in row or prediction.score > row[prediction.predicate].score:
            row[prediction.predicate] = prediction
    flat: list[tuple[float, Fact]] = []
    for pair in sorted(matrix, key=lambda pair: pairs[pair]):
        weight = 1.0
        for tube in pair:
            score = video.predicted_tubes[tube].score
            weight *= 1.0 if score is None else score
        row = [matrix[pair][p] for p in PREDICATES if p in matrix[pair]]
        row.sort(key=lambda prediction: -prediction.score)
        flat += [(prediction.score * weight, prediction) for prediction in row[: config.predicates_per_pair]]
    order = np.argsort([-score for score, _ in flat], kind="stable")
    best = [flat[i] for i in order][: config.frame_top]
    least = config.frame_min_score
    return [prediction for score, prediction in best if least is None or score > least]


def _iou(a: Box, b: Box, config: RelationConfig) -> float:
    kind = np.float32 if config.frame_precision == "float32" else np.float64
    p, q, one = [kind(v) for v in a], [kind(v) for v in b], kind(config.frame_pixel_offset)
    width = min(p[2], q[2]) - max(p[0], q[0]) + one
    height = min(p[3], q[3]) - max(p[1], q[1]) + one
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(v[2] - v[0] + one) * (v[3] - v[1] + one) for v in (p, q)]
    return float(width * height / (areas[0] + areas[1] - width * height))
