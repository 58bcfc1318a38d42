"""Error analysis: each wrong prediction and each missed object has one error type, and dAP is what it costs in mAP."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.kernels import (
    ABSORBED,
    assign_error_types,
    count_shared_frames,
    match_corrected,
)
from roadaware.metrics.detection.matches import (
    JudgedFrames,
    JudgedTubes,
    Matches,
    compute_average_precisions,
    prepare_frames,
    prepare_tubes,
)
from roadaware.scenes.tables import Predictions, Scenes

FLOOR = 0.1
"""Smallest overlap of a prediction that is meant for an object, as in TIDE."""
FAULTS: dict[str, str] = {
    "right": "meets truth that no better prediction has met",
    "duplicate": "meets truth that a better prediction has met already",
    "space": "right class and time, boxes too far off",
    "time": "right class and boxes, begins or ends too early or too late",
    "space_time": "right class, too far off in space and time",
    "class": "well placed on something of another class",
    "class_and_place": "too far off from something of another class",
    "background": "on nothing that is asked for",
    "broken": "a piece of a tube whose pieces together would be right",
    "switched": "goes on with another object after the one it would be right for",
}
MISSED = "missed"
_RIGHT, _DUPLICATE, _SPACE, _TIME, _SPACE_TIME, _CLASS, _CLASS_AND_PLACE, _BACKGROUND = range(8)
_BROKEN, _SWITCHED = 8, 9
_MEANT_RIGHT = (_SPACE, _TIME, _SPACE_TIME, _CLASS, _BROKEN, _SWITCHED)
_PLACED = (_SPACE, _TIME, _SPACE_TIME, _BROKEN, _SWITCHED)


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """The predictions of one kind, their overlaps, and the ground truth.

    Args:
        kind: of the labels.
        labels: (C,) names of the classes.
        videos: (V,) their names.
        cls: (n,) class of each prediction; predictions by class and falling score.
        score: (n,) its score.
        video: (n,) its video.
        thing: (n,) the box or tube it is made for.
        thing_frames: (things,) frames of each thing; ones for boxes.
        pair_offsets: (things + 1,) where the pairs of each thing begin.
        pair_object: (p,) the ground-truth object that the thing overlaps.
        overlap: (p,) how much.
        parts: (p, 2) temporal and spatial part; (1, overlap) for boxes.
        shared: (p, 3) first and last frame that thing and object share, and how many; (0, 0, 1) for boxes.
        object_frames: (objects,) frames of each object; ones for boxes.
        object_video: (objects,) the video of each.
        object_track: (objects,) who it is: the parts of one track are one.
        instance_offsets: (objects + 1,) where the labels of each object begin.
        instance_cls: (i,) class of each label; an object with two labels is to be found twice.
    """

    kind: str
    labels: tuple[str, ...]
    videos: tuple[str, ...]
    cls: Ints
    score: Floats
    video: Ints
    thing: Ints
    thing_frames: Ints
    pair_offsets: Ints
    pair_object: Ints
    overlap: Floats
    parts: Floats
    shared: Ints
    object_frames: Ints
    object_video: Ints
    object_track: Ints
    instance_offsets: Ints
    instance_cls: Ints

    @property
    def instance_object(self) -> Ints:
        """(i,) the object of each label."""
        return np.repeat(np.arange(len(self.object_video)), np.diff(self.instance_offsets))


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """The error type of each prediction, and the ground truth that was missed.

    Args:
        evidence: predictions, ground truth and their overlaps.
        threshold: smallest overlap of a hit.
        fault: (n,) place in FAULTS.
        meant: (n,) the instance that a prediction met or was meant for, -1 if none.
        missed: (i,) instances that no prediction met or was meant for.
    """

    evidence: Evidence
    threshold: float
    fault: Ints
    meant: Ints
    missed: Bools

    @property
    def meant_class(self) -> Ints:
        """(n,) class of the ground truth that each prediction met or was meant for, -1 if none."""
        found = np.full(len(self.meant), -1, dtype=np.int64)
        some = self.meant >= 0
        found[some] = self.evidence.instance_cls[self.meant[some]]
        return found

    def predictions(self) -> pl.DataFrame:
        """One row per prediction: video, label, score, thing, fault, and the label it was meant for."""
        found, labels = self.evidence, pl.Series(self.evidence.labels, dtype=pl.String)
        return pl.DataFrame(
            {
                "video": pl.Series(found.videos, dtype=pl.String).gather(found.video),
                "label": labels.gather(found.cls),
                "score": found.score,
                "thing": found.thing,
                "fault": pl.Series(list(FAULTS), dtype=pl.String).gather(self.fault),
                "meant_for": labels.gather(pl.Series(self.meant_class).replace(-1, None)),
            }
        )


def find_errors(evidence: Evidence, threshold: float, floor: float = FLOOR) -> Diagnosis:
    """Name the fault of every prediction that is not right, and the ground truth that was missed.

    A prediction is matched as for average precision. One that matches nothing is, in this order: a
    `duplicate`; badly placed on something of its own class (for tubes in `space`, in `time`, or both); of
    the wrong `class`; both; or on the `background`. A tube that is wrong in time alone is `broken` where
    the pieces of its class on the same object, joined to one tube, would be right, and `switched` where
    it covers enough of the object and lies as well on another track, most of that time before or after.
    A prediction of the wrong class is meant for a label of the object that nobody met, if there is one. Ground truth
    is `missed` where no prediction met it or was meant for it.

    Args:
        evidence: predictions and ground truth of one kind.
        threshold: smallest overlap of a hit.
        floor: smallest overlap of a prediction that is meant for an object.

    Source: Bolya et al., TIDE, ECCV 2020, for boxes; the faults of time and identity are ours.
    """
    e = evidence
    fault, meant, pair = assign_error_types(
        e.cls,
        e.thing,
        e.pair_offsets,
        e.pair_object,
        e.overlap,
        e.parts,
        e.instance_offsets,
        e.instance_cls,
        float(threshold),
        float(floor),
    )
    _retarget(e, fault, meant, pair)
    # Before broken tubes are looked for: a prediction that goes on with another object is no piece of one.
    timed = np.flatnonzero(fault == _TIME)
    if len(timed):
        fault[timed[_find_switched(e, timed, pair[timed], threshold)]] = _SWITCHED
        timed = np.flatnonzero(fault == _TIME)
        fault[timed[_broken(e, timed, meant[timed], pair[timed], threshold)]] = _BROKEN
    reached = np.zeros(len(e.instance_cls), dtype=np.bool_)
    reached[meant[np.isin(fault, (_RIGHT, *_MEANT_RIGHT))]] = True
    return Diagnosis(e, threshold, fault, meant, ~reached)


def compute_error_gains(diagnosis: Diagnosis, config: DetectionConfig) -> pl.DataFrame:
    """dAP: the gain in mean average precision if each error type were corrected by itself.

    Predictions that are badly placed or of the wrong class are moved to what they were meant for, or taken
    away where that is met already; duplicates and predictions on the background are taken away; missed ground truth
    is no longer asked for.

    Returns:
        one row per fault: `fault`, `meaning`, `predictions` (or missed ground-truth items), `map` before and after
        (`mended_map`), and `gain`; null where mAP is undefined.

    Source: Bolya et al., TIDE, ECCV 2020, section 2.3 (the gain of an oracle for each fault).
    """
    # The predictions as they are, for average precision.
    e = diagnosis.evidence
    n_truth = np.zeros((len(e.videos), len(e.labels)), dtype=np.int64)
    np.add.at(n_truth, (e.object_video[e.instance_object], e.instance_cls), 1)
    base = Matches(
        (diagnosis.threshold,),
        tuple((e.kind, label) for label in e.labels),
        e.videos,
        e.cls.astype(np.int32),
        e.score,
        e.video.astype(np.int32),
        np.arange(len(e.cls)),
        (diagnosis.fault == _RIGHT)[:, None],
        n_truth,
        _ranked=True,
    )
    before = _mean(base, config)
    rows: list[dict[str, Any]] = []
    for place, (name, meaning) in enumerate(FAULTS.items()):
        if place == _RIGHT:
            continue
        count = int((diagnosis.fault == place).sum())
        after = _mean(_without(diagnosis, base, place), config) if count else before
        rows.append(_row(name, meaning, count, before, after))
    count = int(diagnosis.missed.sum())
    after = _mean(_all_found(diagnosis, base), config) if count else before
    rows.append(_row(MISSED, "met by no prediction", count, before, after))
    return pl.DataFrame(rows, schema=_SCHEMA)


_SCHEMA = {
    "fault": pl.String,
    "meaning": pl.String,
    "predictions": pl.Int64,
    "map": pl.Float64,
    "mended_map": pl.Float64,
    "gain": pl.Float64,
}


def _row(name: str, meaning: str, count: int, before: float | None, after: float | None) -> dict[str, Any]:
    gain = None if before is None or after is None else after - before
    return {
        "fault": name,
        "meaning": meaning,
        "predictions": count,
        "map": before,
        "mended_map": after,
        "gain": gain,
    }


def _mean(matches: Matches, config: DetectionConfig) -> float | None:
    values = compute_average_precisions(matches, config)[:, 0]
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _without(diagnosis: Diagnosis, base: Matches, place: int) -> Matches:
    """The predictions with one error type corrected."""
    faulty = diagnosis.fault == place
    if place not in (*_PLACED, _CLASS):
        return base.take(~faulty)

    e = diagnosis.evidence
    taken = np.zeros(len(e.instance_cls), dtype=np.bool_)
    taken[diagnosis.meant[diagnosis.fault == _RIGHT]] = True
    # One ranking over all classes: corrected predictions of several classes may mean the same object.
    order = np.argsort(-e.score, kind="stable")
    hit = match_corrected(order, faulty, diagnosis.meant, taken)
    kept = ~faulty | hit
    changed = replace(base, hit=base.hit | hit[:, None])
    if place == _CLASS:
        cls = np.where(hit, diagnosis.meant_class, e.cls).astype(np.int32)
        changed = replace(changed, cls=cls, _ranked=False)
    return changed.take(kept)


def _all_found(diagnosis: Diagnosis, base: Matches) -> Matches:
    """The predictions, with what was missed no longer asked for."""
    e = diagnosis.evidence
    n_truth = base.n_truth.copy()
    gone = np.flatnonzero(diagnosis.missed)
    np.subtract.at(n_truth, (e.object_video[e.instance_object[gone]], e.instance_cls[gone]), 1)
    return replace(base, n_truth=n_truth)


def _retarget(e: Evidence, fault: Ints, meant: Ints, pair: Ints) -> None:
    """Let predictions of the wrong class be meant for a label of their object that no prediction met."""
    met = np.zeros(len(e.instance_cls), dtype=np.bool_)
    met[meant[fault == _RIGHT]] = True
    wrong = np.flatnonzero((fault == _CLASS) | (fault == _CLASS_AND_PLACE))
    if not len(wrong):
        return
    free = np.full(len(e.object_video), -1, dtype=np.int64)
    places = np.flatnonzero(~met)[::-1]
    free[e.instance_object[places]] = places  # the first of an object is written last
    target = free[e.pair_object[pair[wrong]]]
    meant[wrong] = np.where(target >= 0, target, meant[wrong])


def _find_switched(e: Evidence, predictions: Ints, pair: Ints, threshold: float) -> Bools:
    """Which predictions cover enough of their object, and lie as well on another track, mostly at other times."""
    thing, own = e.thing[predictions], e.pair_object[pair]
    covered = e.shared[pair, 2] / np.maximum(1, e.object_frames[own])
    begin, end = e.pair_offsets[thing], e.pair_offsets[thing + 1]
    counts = end - begin
    prediction = np.repeat(np.arange(len(predictions)), counts)
    other = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + begin[prediction]
    middle = e.shared[other, :2].sum(axis=1) / 2
    away = (middle < e.shared[pair[prediction], 0]) | (middle > e.shared[pair[prediction], 1])
    elsewhere = e.object_track[e.pair_object[other]] != e.object_track[own[prediction]]
    follows = away & elsewhere & (e.parts[other, 1] >= threshold) & (e.shared[other, 2] > 0)
    return np.asarray(
        (covered >= threshold) & (np.bincount(prediction[follows], minlength=len(predictions)) > 0)
    )


def _broken(e: Evidence, predictions: Ints, meant: Ints, pair: Ints, threshold: float) -> Bools:
    """Which predictions are pieces of ground truth that the pieces, joined, would meet."""
    broken = np.zeros(len(predictions), dtype=np.bool_)
    order = np.lexsort((e.shared[pair, 0], meant))
    starts = np.flatnonzero(np.diff(meant[order], prepend=-1, append=-1))
    for begin, stop in itertools.pairwise(starts.tolist()):
        members = order[begin:stop]
        if len(members) > 1:
            frames = int(e.object_frames[e.instance_object[meant[members[0]]]])
            used = _select_pieces(e, predictions[members], pair[members], frames, threshold)
            broken[members[used]] = True
    return broken


def _select_pieces(e: Evidence, predictions: Ints, pair: Ints, frames: int, threshold: float) -> list[int]:
    """Which of the pieces add frames of an object to those before, if joined they would meet it."""
    used: list[int] = []
    until, covered, beside, agreed = -1, 0.0, 0.0, 0.0
    for place, (prediction, at) in enumerate(zip(predictions, pair, strict=True)):
        first, last, count = e.shared[at].tolist()
        new = count * max(0, last - max(first - 1, until)) / max(1, last - first + 1)
        if new > 0:
            used.append(place)
            covered += new
            agreed += new * float(e.parts[at, 1])
            beside += float(e.thing_frames[e.thing[prediction]] - count)
            until = max(until, last)
    joined = agreed / max(frames + beside, 1)
    return used if len(used) > 1 and joined >= threshold else []


# What errors are derived from: predictions of boxes or tubes, what they overlap, and the ground truth.


def build_error_table(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    level: str,
    threshold: float = 0.5,
    floor: float = FLOOR,
    kinds: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Count of each error type by kind of label, and its dAP: the gain in mAP if it were corrected.

    Args:
        predictions: what is predicted.
        scenes: the ground truth.
        config: how both are judged.
        level: `frame` for boxes, `video` for tubes.
        threshold: smallest overlap of a hit (IoU of boxes, spatio-temporal overlap of tubes).
        floor: smallest overlap of a prediction that is meant for an object.
        kinds: which kinds of labels (default: all that both know).

    Returns:
        the columns of `errors.compute_error_gains`, after `level` and `kind`.

    Raises:
        UsageError: if the level or a kind is unknown.
        InputError: if ground truth and predictions do not fit each other.
    """
    tables = []
    for found in find_errors_by_kind(
        predictions, scenes, config, level=level, threshold=threshold, floor=floor, kinds=kinds
    ):
        kind = pl.lit(found.evidence.kind).alias("kind")
        table = compute_error_gains(found, config)
        tables.append(table.select(pl.lit(level).alias("level"), kind, pl.all()))
    return pl.concat(tables) if tables else pl.DataFrame()


def find_errors_by_kind(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    level: str,
    threshold: float = 0.5,
    floor: float = FLOOR,
    kinds: Sequence[str] | None = None,
) -> list[Diagnosis]:
    """The error type of every prediction, one diagnosis per kind; arguments as `build_error_table`."""
    if level == "frame":
        frames = prepare_frames(predictions, scenes, config, kinds)
        ranked = [_drop_ignored(*met) for met in frames.met((threshold,))]
        of_kinds = [collect_frame_evidence(frames, ranked, kind) for kind in _kinds(frames.classes)]
    elif level == "video":
        tubes = prepare_tubes(predictions, scenes, config, "stiou", kinds)
        ignored = tubes.matches((threshold,)).ignored
        counted = np.ones(len(tubes.predictions), dtype=np.bool_) if ignored is None else ~ignored[:, 0]
        of_kinds = [collect_video_evidence(tubes, counted, scenes, kind) for kind in _kinds(tubes.classes)]
    else:
        raise UsageError(f"errors are told of the level frame or video; got {level!r}")
    return [find_errors(evidence, threshold, floor) for evidence in of_kinds]


def find_errors_of_boxes(
    predictions: Predictions, scenes: Scenes, config: DetectionConfig, kind: str, threshold: float
) -> tuple[Diagnosis, JudgedFrames]:
    """The error type of every box of a kind, and the frames in which `thing` and object of the evidence stand.

    Args:
        predictions: with scored boxes.
        scenes: the ground truth.
        config: how both are judged.
        kind: of the labels.
        threshold: smallest overlap of a hit.

    Raises:
        UsageError: if the kind is unknown.
        InputError: if ground truth and predictions do not fit each other.
    """
    frames = prepare_frames(predictions, scenes, config, (kind,))
    ranked = [_drop_ignored(*met) for met in frames.met((threshold,))]
    return find_errors(collect_frame_evidence(frames, ranked, kind), threshold), frames


def collect_frame_evidence(
    judged: JudgedFrames, ranked: Sequence[tuple[Ints, Floats]], kind: str
) -> Evidence:
    """The predictions of one kind on the boxes of frames.

    Args:
        judged: ground truth and predictions.
        ranked: for each class its predictions by falling score, and their scores.
        kind: of the labels.
    """
    classes, labels = _classes(judged.classes, kind)
    sizes = [len(ranked[place][0]) for place in classes]
    thing = np.concatenate([np.zeros(0, dtype=np.int64), *(ranked[place][0] for place in classes)])
    truth, counts = judged.truth, np.diff(judged.pair_start)
    first = truth.start[judged.predictions.frame]
    at = np.arange(len(judged.overlap)) - np.repeat(judged.pair_start[:-1], counts) + np.repeat(first, counts)
    objects = np.concatenate([np.zeros(0, dtype=np.int64), *(truth.members[c] for c in classes)])
    of_class = np.repeat(np.arange(len(classes)), [len(truth.members[c]) for c in classes])
    asked = ~truth.ignore[objects]
    offsets, instances = _instances(objects[asked], of_class[asked], len(truth.box))
    video = judged.frames.judged_video.astype(np.int64)
    return Evidence(
        kind=kind,
        labels=labels,
        videos=judged.frames.videos,
        cls=np.repeat(np.arange(len(classes)), sizes),
        score=np.concatenate([np.zeros(0), *(ranked[place][1] for place in classes)]),
        video=video[judged.predictions.frame[thing]],
        thing=thing,
        thing_frames=np.ones(len(judged.predictions.row), dtype=np.int64),
        pair_offsets=judged.pair_start,
        pair_object=at,
        overlap=judged.overlap,
        parts=np.column_stack([np.ones(len(judged.overlap)), judged.overlap]),
        shared=np.broadcast_to(np.array([0, 0, 1]), (len(judged.overlap), 3)),
        object_frames=np.ones(len(truth.box), dtype=np.int64),
        object_video=np.repeat(video, np.diff(truth.start)),
        object_track=np.arange(len(truth.box)),
        instance_offsets=offsets,
        instance_cls=instances,
    )


def collect_video_evidence(
    judged: JudgedTubes, counted: npt.NDArray[np.bool_], scenes: Scenes, kind: str
) -> Evidence:
    """The predictions of one kind as tubes.

    Args:
        judged: ground truth and predictions.
        counted: (n,) whether each prediction counts; those on ground truth to ignore do not.
        scenes: the ground truth.
        kind: of the labels.
    """
    classes, labels = _classes(judged.classes, kind)
    new = np.full(len(judged.classes), -1, dtype=np.int64)
    new[list(classes)] = np.arange(len(classes))
    predictions, truth = judged.predictions, judged.truth
    wanted = (new[predictions.cls] >= 0) & counted
    chosen = judged.ranked[wanted[judged.ranked]]
    chosen = chosen[np.argsort(new[predictions.cls[chosen]], kind="stable")]
    asked = np.flatnonzero(new[truth.cls] >= 0)
    offsets, instances = _instances(truth.extent[asked], new[truth.cls[asked]], len(truth.tubes))
    return Evidence(
        kind=kind,
        labels=labels,
        videos=judged.videos,
        cls=new[predictions.cls[chosen]],
        score=predictions.score[chosen],
        video=predictions.video[chosen],
        thing=predictions.extent[chosen],
        thing_frames=predictions.tubes.lengths,
        pair_offsets=judged.pairs.offsets,
        pair_object=judged.pairs.second,
        overlap=judged.overlap,
        parts=np.column_stack([judged.pairs.temporal, judged.pairs.spatial]),
        shared=_count_shared_frames(judged),
        object_frames=truth.tubes.lengths,
        object_video=truth.tubes.video,
        object_track=_tracks(judged, scenes),
        instance_offsets=offsets,
        instance_cls=instances,
    )


def _drop_ignored(predictions: Ints, scores: Floats, met: npt.NDArray[np.int32]) -> tuple[Ints, Floats]:
    """The predictions that are not on ground truth to ignore, and their scores."""
    kept = met[:, 0] != ABSORBED
    return predictions[kept], scores[kept]


def _kinds(classes: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for kind, _ in classes))


def _classes(classes: Sequence[tuple[str, str]], kind: str) -> tuple[list[int], tuple[str, ...]]:
    """The places and the labels of the classes of a kind."""
    places = [place for place, (of, _) in enumerate(classes) if of == kind]
    return places, tuple(classes[place][1] for place in places)


def _instances(objects: Ints, cls: Ints, n_objects: int) -> tuple[Ints, Ints]:
    """Where the labels of each object begin, and the labels by object; an object has each label once."""
    pairs = np.unique(np.column_stack([objects, cls]), axis=0)
    return np.searchsorted(pairs[:, 0], np.arange(n_objects + 1)), np.ascontiguousarray(pairs[:, 1])


def _count_shared_frames(judged: JudgedTubes) -> Ints:
    """(p, 3) first and last frame that the tubes of each pair share, and how many."""
    pairs, a, b = judged.pairs, judged.predictions.tubes, judged.truth.tubes
    found: Ints = count_shared_frames(pairs.first, pairs.second, a.frames, a.offsets, b.frames, b.offsets)
    return found


def _tracks(judged: JudgedTubes, scenes: Scenes) -> Ints:
    """(extents,) the track that owns the boxes of each extent."""
    parent = pl.col("parent") if "parent" in scenes.tubes.columns else pl.lit(None, dtype=pl.Int64)
    owners = scenes.tubes.select("tube", owner=pl.coalesce(parent, "tube"))
    found = pl.DataFrame({"tube": judged.truth.tube}).join(owners, on="tube", maintain_order="left")
    tracks = np.full(len(judged.truth.tubes), -1, dtype=np.int64)
    tracks[judged.truth.extent] = found["owner"].to_numpy()
    return tracks
