"""Answers without a network for the four tasks of crowds: from boxes, from counts, by chance, and from two channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.io.video import NoSoundError, iterate_sound
from roadaware.models.crowd.config import Task
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.crowd import (
    CrowdSet,
    CrowdVideo,
    GroundedQuery,
    RelationRule,
    build_action_predictions,
    build_grounding_predictions,
    build_relation_predictions,
    build_sound_predictions,
    decode_relations,
    mark_relations,
    spread,
)

MOST_ROWS = 20_000
"""Of a fit; of more, some by chance: boosting on all boxes of 200 scenes gains nothing that its interval would show."""
_MIN_POSITIVES = 2
_HEIGHTS = 3.0
"""Pairs further apart than so many mean heights are not asked, as by the networks (`CrowdConfig.pair_heights`)."""
_MOST_FRAMES = 100
_CELL_PX = 8
_RATE, _WINDOW_S = 16_000, 1.5
_QUIET = 1e-6
"""Added to the energy of each channel: the logarithm of silence is not finite."""


@dataclass(frozen=True, eq=False)
class Answered:
    """Videos that a baseline learns from or answers about.

    Args:
        scenes: their ground truth.
        of: the same as questions.
    """

    scenes: Scenes
    of: CrowdSet


# Actions: boosting on the shape and motion of boxes.


def compute_box_features(video: CrowdVideo) -> Floats:
    """(n, 9) shape, place and motion of each box of a video.

    Columns: logarithm of height over width, logarithms of width and height in parts of the image, centre x and y in
    parts of the image, motion of the centre in x and y in heights a second, change of the logarithm of the height a
    second, whether the motion is known.
    """
    x1, y1, x2, y2 = video.corners.astype(np.float64).T
    width, height = np.maximum(x2 - x1, 1e-3), np.maximum(y2 - y1, 1e-3)
    centre = np.stack([(x1 + x2) / 2, (y1 + y2) / 2], axis=1)
    motion = np.zeros((len(centre), 4))
    times = (video.origin + video.ratio * video.frame) / video.fps
    for tube in np.unique(video.tube[video.tube >= 0]).tolist():
        rows = np.flatnonzero(video.tube == tube)
        if len(rows) < 2:
            continue
        place = np.arange(len(rows))
        before, after = rows[np.maximum(place - 1, 0)], rows[np.minimum(place + 1, len(rows) - 1)]
        seconds = np.maximum(times[after] - times[before], 1e-3)
        motion[rows, :2] = (centre[after] - centre[before]) / height[rows, None] / seconds[:, None]
        motion[rows, 2] = np.log(height[after] / height[before]) / seconds
        motion[rows, 3] = 1
    film = video.film
    shape = [np.log(height / width), np.log(width / film.width), np.log(height / film.height)]
    found: Floats = np.column_stack([*shape, centre / [film.width, film.height], motion])
    return found


def predict_actions(train: Answered, test: Answered, seed: int = 0) -> Predictions:
    """Actions by boosted trees on `compute_box_features`, one classifier for each action.

    Args:
        train: to learn from, boxes of the frames that are looked at.
        test: whose boxes of people are answered, all of them.
        seed: of the trees and of the rows that are taken of too many.
    """
    features, labels = [], []
    for video in train.of.videos:
        rows = np.flatnonzero(video.key & video.person & video.actions.any(axis=1))
        features.append(compute_box_features(video)[rows])
        labels.append(video.actions[rows])
    score = fit_scores(np.concatenate(features), np.concatenate(labels), seed, boosted=True)
    answers = []
    for video in test.of.videos:
        rows = np.flatnonzero(video.person)
        answers.append((video.box[rows], score(compute_box_features(video)[rows])))
    return build_action_predictions(test.scenes, test.of, answers)


def fit_scores(features: Floats, labels: Bools, seed: int, *, boosted: bool) -> Callable[[Floats], Floats32]:
    """One classifier for each column of labels, as a function from (m, d) features to (m, columns) probabilities.

    A label with fewer than two examples, or that always holds, is scored by its share.

    Args:
        features: (n, d).
        labels: (n, columns).
        seed: of the classifiers and of the rows that are taken of more than `MOST_ROWS`.
        boosted: histogram gradient boosting; else logistic regression on standardised features.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(seed)
    rows = np.arange(len(features))
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    shares = labels.mean(axis=0) if len(labels) else np.zeros(labels.shape[1])
    fitted = {}
    for column in range(labels.shape[1]):
        held = labels[rows, column]
        if min(held.sum(), (~held).sum()) < _MIN_POSITIVES:
            continue
        if boosted:
            # Early stopping would hold out examples of labels that have few.
            model = HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=seed)
        else:
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        fitted[column] = model.fit(features[rows], held)

    def score(given: Floats) -> Floats32:
        found = np.tile(shares.astype(np.float32), (len(given), 1))
        for column, model in fitted.items():
            if len(given):
                found[:, column] = model.predict_proba(given)[:, 1]
        return found

    return score


# Relations: logistic regression on the geometry of pairs, and how often each predicate holds.


def list_near_pairs(video: CrowdVideo, slot: int) -> tuple[Ints, Ints, Floats]:
    """Ordered pairs of people who are near each other in a frame that is looked at.

    Returns:
        (m,) tubes of subjects, (m,) of objects, and (m, 9) features: offset of the object's centre in x and y and its
        distance in mean heights, logarithms of the ratios of heights and widths, overlap (IoU), relative motion in x
        and y and its length in mean heights a second.
    """
    rows = video.people(slot)
    rows = rows[video.tube[rows] >= 0]
    tubes, first = np.unique(video.tube[rows], return_index=True)
    rows = rows[first]
    subject, other = (~np.eye(len(rows), dtype=np.bool_)).nonzero()
    corners = video.corners[rows].astype(np.float64)
    size = np.maximum(corners[:, 2:] - corners[:, :2], 1e-3)
    centre = (corners[:, :2] + corners[:, 2:]) / 2
    near_slots = np.clip([slot - 1, slot + 1], 0, len(video) - 1)
    tracks = [video.track(int(tube), near_slots).astype(np.float64) for tube in tubes]
    moved = np.array([(t[1, :2] + t[1, 2:] - t[0, :2] - t[0, 2:]) / 2 for t in tracks]).reshape(-1, 2)
    seconds = max(1e-3, float(video.seconds(int(near_slots[1])) - video.seconds(int(near_slots[0]))))
    mean = (size[subject, 1] + size[other, 1]) / 2
    offset = (centre[other] - centre[subject]) / mean[:, None]
    distance = np.linalg.norm(offset, axis=1)
    low = np.maximum(corners[subject, :2], corners[other, :2])
    high = np.minimum(corners[subject, 2:], corners[other, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    iou = shared / (size[subject].prod(axis=1) + size[other].prod(axis=1) - shared)
    apart = (moved[other] - moved[subject]) / mean[:, None] / seconds
    features = np.column_stack(
        [offset, distance, np.log(size[other] / size[subject]), iou, apart, np.linalg.norm(apart, axis=1)]
    )
    kept = distance <= _HEIGHTS
    return tubes[subject[kept]], tubes[other[kept]], features[kept]


def predict_relations(train: Answered, test: Answered, seed: int = 0) -> dict[str, Predictions]:
    """Relations by two baselines: `geometry` (logistic regression on near pairs) and `frequency` (shares of predicates).

    Args:
        train: to learn from, at the moments that the networks are asked about.
        test: whose near pairs are answered.
        seed: of the rows that are taken of too many.
    """
    count = len(train.of.vocabulary.predicates)
    features, labels = [np.zeros((0, 9))], [np.zeros((0, count), dtype=np.bool_)]
    for number, slot in train.of.asks["relations"].tolist():
        video = train.of.videos[number]
        subject, other, given = list_near_pairs(video, slot)
        tubes = np.unique(np.concatenate([subject, other]))
        held = mark_relations(video, tubes, video.to_table(slot), count)
        features.append(given)
        labels.append(held[np.searchsorted(tubes, subject), np.searchsorted(tubes, other)])
    known, truth = np.concatenate(features), np.concatenate(labels)
    shares = truth.mean(axis=0) if len(truth) else np.zeros(count)
    fitted = fit_scores(known, truth, seed, boosted=False)
    scorers = {
        "geometry": fitted,
        "frequency": lambda given: np.tile(shares.astype(np.float32), (len(given), 1)),
    }
    return {name: _answer_relations(test, score, count) for name, score in scorers.items()}


def _answer_relations(test: Answered, score: Callable[[Floats], Floats32], count: int) -> Predictions:
    answers = []
    for video in test.of.videos:
        series: dict[tuple[int, int], Floats32] = {}
        for slot in range(len(video)):
            subject, other, given = list_near_pairs(video, slot)
            scores = score(given) if len(given) else np.zeros((0, count), np.float32)
            for a, b, row in zip(subject.tolist(), other.tolist(), scores, strict=True):
                series.setdefault((a, b), np.zeros((len(video), count), np.float32))[slot] = row
        answers.append(decode_relations(video, series, RelationRule()))
    return build_relation_predictions(test.scenes, test.of, answers)


# Sentences: a tube by chance with the usual span or the whole clip, and answers to other sentences.


def predict_sentences(train: Answered, test: Answered, seed: int = 0) -> dict[str, Predictions]:
    """Sentences by two baselines: the tube of a person by chance, with the `median span` of training or the `whole clip`.

    Args:
        train: whose spans are measured, as parts of their clips.
        test: whose sentences are answered.
        seed: of the choice of tubes.
    """
    parts = []
    for number, row in train.of.asks["grounding"].tolist():
        video, query = train.of.videos[number], train.of.videos[number].queries[row]
        whole = video.find_slots(query.get("segment_start_frame"), query.get("segment_end_frame"))
        held = np.isin(whole, video.find_slots(query["start_frame"], query["end_frame"])).nonzero()[0]
        if len(held):
            parts.append((held[0] / len(whole), (held[-1] + 1) / len(whole)))
    start, end = np.median(np.array(parts), axis=0).tolist() if parts else (0.0, 1.0)
    spans = {"median span": (start, end), "whole clip": (0.0, 1.0)}
    return {name: _answer_sentences(test, span, seed) for name, span in spans.items()}


def _answer_sentences(test: Answered, span: tuple[float, float], seed: int) -> Predictions:
    found = []
    # Anew for each baseline, so that both choose the same tubes.
    rng = np.random.default_rng(seed)
    for number, video in enumerate(test.of.videos):
        tubes = np.unique(video.tube[video.person & (video.tube >= 0)])
        for query in video.queries:
            slots = spread(
                video.find_slots(query.get("segment_start_frame"), query.get("segment_end_frame")),
                _MOST_FRAMES,
            )
            if len(tubes):
                boxes = video.track(int(rng.choice(tubes)), slots)
            else:
                boxes = np.tile(
                    np.array([0, 0, video.film.width, video.film.height], dtype=np.float32), (len(slots), 1)
                )
            first = min(len(slots) - 1, round(span[0] * len(slots)))
            last = max(first + 1, min(len(slots), round(span[1] * len(slots))))
            found.append(GroundedQuery(int(query["query"]), number, slots, boxes, (first, last), 0.5))
    return build_grounding_predictions(test.scenes, test.of, found)


def shuffle_sentences(predictions: Predictions) -> Predictions:
    """The same answers, each given to the next sentence of its video: what a network scores that does not read.

    Args:
        predictions: of sentences; a video with one sentence keeps its answer.
    """
    import polars as pl

    rows = predictions.queries
    moved = rows.with_columns(query=pl.col("query").shift(1).fill_null(pl.col("query").last()).over("video"))
    return predictions.with_tables(queries=moved)


# Sounds: the level difference of two channels as a column, and the centre of the image.


def measure_level_difference(video: CrowdVideo, at_s: float) -> float | None:
    """Level of the left channel over that of the right around a moment, in decibels; None where there is no sound.

    Args:
        video: whose film.
        at_s: the moment, on the clock of the film; 1.5 s before and behind it are heard.
    """
    if video.film.is_pictures:
        return None
    low, high = (round((at_s + sign * _WINDOW_S) * _RATE) for sign in (-1, 1))
    energy, count = np.zeros(2), 0
    try:
        for at, block in iterate_sound(Path(video.film.path), _RATE, at_s + _WINDOW_S):
            part = block[max(0, low - at) : max(0, high - at)].astype(np.float64)
            energy += (part**2).sum(axis=0)
            count += len(part)
    except NoSoundError:
        return None
    if not count:
        return None
    left, right = energy / count + _QUIET
    return float(10 * np.log10(left / right))


def predict_sounds(train: Answered, test: Answered) -> dict[str, Predictions]:
    """Sounds by two baselines: a peak at the `stereo column`, and one at the `image centre`.

    The column is a straight line of the level difference, fitted on sounds whose source is seen; row and size of the
    peak are the median of the sources, for both.

    Args:
        train: whose sources are measured.
        test: whose sounds are answered.
    """
    differences, centres, sizes = [], [], []
    for video in train.of.videos:
        scale = np.array([video.film.width, video.film.height])
        for sound in video.sounds:
            rows = np.flatnonzero((video.slot == sound["slot"]) & video.key & (video.sound == sound["sound"]))
            heard = measure_level_difference(video, video.seconds(sound["slot"])) if len(rows) else None
            if heard is not None:
                corners = video.corners[rows[0]].reshape(2, 2)
                differences.append(heard)
                centres.append(corners.mean(axis=0) / scale)
                sizes.append((corners[1] - corners[0]) / scale)
    centre = np.array(centres).reshape(-1, 2)
    row = float(np.median(centre[:, 1])) if len(centre) else 0.5
    size = np.median(np.array(sizes), axis=0) if sizes else np.array([0.25, 0.25])
    slope, base = fit_column(np.array(differences), centre[:, 0])
    found: dict[str, list[tuple[int, Floats32]]] = {"stereo column": [], "image centre": []}
    for video in test.of.videos:
        shape = (max(1, round(video.film.height / _CELL_PX)), max(1, round(video.film.width / _CELL_PX)))
        for sound in video.sounds:
            heard = measure_level_difference(video, video.seconds(sound["slot"]))
            column = float(np.clip(base + slope * (heard or 0.0), 0, 1))
            found["stereo column"].append((sound["sound"], draw_peak(shape, (column, row), size)))
            found["image centre"].append((sound["sound"], draw_peak(shape, (0.5, 0.5), size)))
    return {name: build_sound_predictions(test.scenes, test.of, maps) for name, maps in found.items()}


def fit_column(difference: Floats, column: Floats) -> tuple[float, float]:
    """Slope and base of the line from level differences in decibels to columns in parts of the image.

    Args:
        difference: (n,).
        column: (n,) of the centres of the sources; of fewer than two different points the line is their mean.
    """
    if len(difference) < 2 or np.ptp(difference) < 1e-9:
        return 0.0, float(column.mean()) if len(column) else 0.5
    slope, base = np.polyfit(difference, column, 1)
    return float(slope), float(base)


def draw_peak(shape: tuple[int, int], centre: tuple[float, float], size: Floats) -> Floats32:
    """(h, w) a bell that is 1 at a point and one half at the border of the ellipse of a size around it.

    Args:
        shape: h and w in cells.
        centre: x and y in parts of the image.
        size: (2,) width and height in parts of the image.
    """
    y, x = ((np.arange(n) + 0.5) / n for n in shape)
    away = ((x[None] - centre[0]) / (size[0] / 2)) ** 2 + ((y[:, None] - centre[1]) / (size[1] / 2)) ** 2
    found: Floats32 = np.exp(-np.log(2) * away).astype(np.float32)
    return found


def predict_all(
    train: Answered, test: Answered, tasks: Sequence[Task], seed: int = 0
) -> dict[tuple[Task, str], Predictions]:
    """Task and name of a baseline to its answers; shuffled sentences, which need a network's answers, are apart.

    Args:
        train: to learn from.
        test: what is answered.
        tasks: which.
        seed: of all that is drawn by chance.
    """
    found: dict[tuple[Task, str], Predictions] = {}
    if "actions" in tasks:
        found["actions", "boosting on boxes"] = predict_actions(train, test, seed)
    if "relations" in tasks:
        for name, answers in predict_relations(train, test, seed).items():
            found["relations", name] = answers
    if "grounding" in tasks:
        for name, answers in predict_sentences(train, test, seed).items():
            found["grounding", f"random tube, {name}"] = answers
    if "sound" in tasks:
        for name, answers in predict_sounds(train, test).items():
            found["sound", name] = answers
    return found
