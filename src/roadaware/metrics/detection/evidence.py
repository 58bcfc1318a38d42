"""What errors are told from: claims of boxes or tubes, what they overlap, and the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import FLOOR, Diagnosis, Evidence, diagnose, mended
from roadaware.metrics.detection.frame import JudgedFrames, judge_frames
from roadaware.metrics.detection.video import JudgedTubes, judge_tubes
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes


def error_table(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    level: str,
    threshold: float = 0.5,
    floor: float = FLOOR,
    kinds: Sequence[str] | None = None,
) -> pl.DataFrame:
    """How often each fault occurs, kind by kind, and what mending it would gain in mAP.

    Args:
        predictions: what is claimed.
        scenes: what is true.
        config: how both are judged.
        level: `frame` for boxes, `video` for tubes.
        threshold: smallest overlap of a hit (IoU of boxes, spatio-temporal overlap of tubes).
        floor: smallest overlap of a claim that is meant for an object.
        kinds: which kinds of labels; all that both know unless told.

    Returns:
        the columns of `errors.mended`, after `level` and `kind`.

    Raises:
        UsageError: if the level or a kind is unknown.
        InputError: if truth and claims do not fit each other.
    """
    tables = []
    for found in diagnoses(
        predictions, scenes, config, level=level, threshold=threshold, floor=floor, kinds=kinds
    ):
        kind = pl.lit(found.evidence.kind).alias("kind")
        table = mended(found, config)
        tables.append(table.select(pl.lit(level).alias("level"), kind, pl.all()))
    return pl.concat(tables) if tables else pl.DataFrame()


def diagnoses(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    level: str,
    threshold: float = 0.5,
    floor: float = FLOOR,
    kinds: Sequence[str] | None = None,
) -> list[Diagnosis]:
    """What is wrong with every claim, one diagnosis per kind; arguments as `error_table`."""
    from roadaware.errors import UsageError

    if level == "frame":
        frames = judge_frames(predictions, scenes, config, kinds)
        ranked = [_counted(*met) for met in frames.met((threshold,))]
        of_kinds = [frame_evidence(frames, ranked, kind) for kind in _kinds(frames.classes)]
    elif level == "video":
        tubes = judge_tubes(predictions, scenes, config, "stiou", kinds)
        ignored = tubes.matches((threshold,)).ignored
        counted = np.ones(len(tubes.claims), dtype=np.bool_) if ignored is None else ~ignored[:, 0]
        of_kinds = [video_evidence(tubes, counted, scenes, kind) for kind in _kinds(tubes.classes)]
    else:
        raise UsageError(f"errors are told of the level frame or video; got {level!r}")
    return [diagnose(evidence, threshold, floor) for evidence in of_kinds]


def frame_evidence(judged: JudgedFrames, ranked: Sequence[tuple[Ints, Floats]], kind: str) -> Evidence:
    """The claims of one kind on the boxes of frames.

    Args:
        judged: truth and claims.
        ranked: for each class its claims by falling score, and their scores.
        kind: of the labels.
    """
    classes, labels = _classes(judged.classes, kind)
    sizes = [len(ranked[place][0]) for place in classes]
    thing = np.concatenate([np.zeros(0, dtype=np.int64), *(ranked[place][0] for place in classes)])
    truth, counts = judged.truth, np.diff(judged.pair_start)
    first = truth.start[judged.claims.frame]
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
        video=video[judged.claims.frame[thing]],
        thing=thing,
        thing_frames=np.ones(len(judged.claims.row), dtype=np.int64),
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


def video_evidence(
    judged: JudgedTubes, counted: npt.NDArray[np.bool_], scenes: Scenes, kind: str
) -> Evidence:
    """The claims of one kind as tubes.

    Args:
        judged: truth and claims.
        counted: (n,) whether each claim counts; those on truth to ignore do not.
        scenes: the truth.
        kind: of the labels.
    """
    classes, labels = _classes(judged.classes, kind)
    new = np.full(len(judged.classes), -1, dtype=np.int64)
    new[list(classes)] = np.arange(len(classes))
    claims, truth = judged.claims, judged.truth
    wanted = (new[claims.cls] >= 0) & counted
    chosen = judged.ranked[wanted[judged.ranked]]
    chosen = chosen[np.argsort(new[claims.cls[chosen]], kind="stable")]
    asked = np.flatnonzero(new[truth.cls] >= 0)
    offsets, instances = _instances(truth.extent[asked], new[truth.cls[asked]], len(truth.tubes))
    return Evidence(
        kind=kind,
        labels=labels,
        videos=judged.videos,
        cls=new[claims.cls[chosen]],
        score=claims.score[chosen],
        video=claims.video[chosen],
        thing=claims.extent[chosen],
        thing_frames=claims.tubes.lengths,
        pair_offsets=judged.pairs.offsets,
        pair_object=judged.pairs.second,
        overlap=judged.overlap,
        parts=np.column_stack([judged.pairs.temporal, judged.pairs.spatial]),
        shared=_shared(judged),
        object_frames=truth.tubes.lengths,
        object_video=truth.tubes.video,
        object_track=_tracks(judged, scenes),
        instance_offsets=offsets,
        instance_cls=instances,
    )


def _counted(claims: Ints, scores: Floats, met: npt.NDArray[np.int32]) -> tuple[Ints, Floats]:
    """The claims that are not on truth to ignore, and their scores."""
    from roadaware.metrics.detection.frame_kernels import ABSORBED

    kept = met[:, 0] != ABSORBED
    return claims[kept], scores[kept]


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


def _shared(judged: JudgedTubes) -> Ints:
    """(p, 3) first and last frame that the tubes of each pair share, and how many."""
    from roadaware.metrics.detection.error_kernels import shared_frames

    pairs, a, b = judged.pairs, judged.claims.tubes, judged.truth.tubes
    found: Ints = shared_frames(pairs.first, pairs.second, a.frames, a.offsets, b.frames, b.offsets)
    return found


def _tracks(judged: JudgedTubes, scenes: Scenes) -> Ints:
    """(extents,) the track that owns the boxes of each extent."""
    parent = pl.col("parent") if "parent" in scenes.tubes.columns else pl.lit(None, dtype=pl.Int64)
    owners = scenes.tubes.select("tube", owner=pl.coalesce(parent, "tube"))
    found = pl.DataFrame({"tube": judged.truth.tube}).join(owners, on="tube", maintain_order="left")
    tracks = np.full(len(judged.truth.tubes), -1, dtype=np.int64)
    tracks[judged.truth.extent] = found["owner"].to_numpy()
    return tracks
