"""A synthetic detector: the ground truth of any set, seen badly, as detections with dense scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

_NOT_OF_BOXES = ("agentness", "av_action", "predicate", "sound")
_LEAST_AGENTNESS, _MOST_PER_FRAME = 0.025, 100


@dataclass(frozen=True)
class Detector:
    """How badly the synthetic detector sees.

    Args:
        missed: share of boxes that are not found.
        missed_tracks: share of tracks that are seldom found (half of their boxes are lost).
        missed_frames: share of frames in which nothing is found.
        false_positives: boxes per frame where nothing is.
        doubles: share of boxes found twice.
        jitter: how far each side of a box is off, as a share of the box's size (standard deviation).
        confused: share of (track, kind) whose label is taken for another one.
        sharpness: how far scores of true labels stand above the others.
        own_evidence: how much the score of a composite label says beyond its parts: 0 makes it their
            product, larger values make joint scores and products of marginals differ.
        size: width and height of the image that the boxes are pixels of; None for the ground truth's own.
        decimals: scores are rounded so, which makes ties; None keeps them.
    """

    missed: float = 0.1
    missed_tracks: float = 0.1
    missed_frames: float = 0.01
    false_positives: float = 1.0
    doubles: float = 0.05
    jitter: float = 0.06
    confused: float = 0.1
    sharpness: float = 1.0
    own_evidence: float = 0.3
    size: tuple[int, int] | None = (682, 512)
    decimals: int | None = None

    @classmethod
    def ucf24(cls) -> Detector:
        """About 258,000 detections for the 170,580 boxes of UCF101-24's test videos."""
        return cls(missed=0.07, missed_tracks=0.02, missed_frames=0.01, false_positives=0.6, doubles=0.05)


@dataclass(frozen=True)
class _Found:
    """What is found where, before it is scored; -1 in `of` marks what is nothing.

    Args:
        video: (n,) index of the video.
        frame: (n,) its frame.
        of: (n,) row of the ground-truth box, or -1.
        track: (n,) its track, or -1.
        corners: (n, 4) pixels of the ground truth's images.
        quality: (n,) how well it was seen; larger is better.
    """

    video: Ints
    frame: Ints
    of: Ints
    track: Ints
    corners: Floats
    quality: Floats


def simulate_detections(scenes: Scenes, *, seed: int = 0, detector: Detector | None = None) -> Predictions:
    """Detections of every frame as a trained network might give them; the same seed makes the same ones.

    `boxes.score` is agentness, `boxes.scores` holds the scores of every kind of box labels, `frames.scores`
    those of the vehicle's action. Rows lie in order of video, frame and falling agentness. Videos whose
    column `weather` says night are seen worse.

    Args:
        scenes: with `videos` (sizes, n_frames), `boxes`, and their labels in `labels`.
        seed: where chance comes from.
        detector: how badly it sees.

    Raises:
        InputError: if a video has no size or number of frames.
    """
    detector = detector or Detector()
    _check(scenes)
    rng = np.random.default_rng([seed, 24])
    found = _seen(rng, scenes, detector)
    kinds = [kind for kind in scenes.meta.vocabularies if kind not in _NOT_OF_BOXES]
    truth = {kind: _truth(scenes, kind) for kind in kinds}
    agentness = _sigmoid(found.quality)
    # (n, labels) scores of each kind, in the order of the vocabularies; composites know their parts.
    children = scenes.meta.notes.get("children", {})
    scores: dict[str, npt.NDArray[np.float32]] = {}
    # Parts before composites, whose scores begin with the product of theirs.
    for kind in sorted(truth, key=lambda kind: kind in children):
        rare = 0.5 if kind in children else 1.0  # composites are seldom in training, and learnt worse
        evidence = _evidence(rng, replace(detector, sharpness=rare * detector.sharpness), found, truth[kind])
        if kind in children and all(part in scores for part in scenes.meta.composites[kind]):
            columns = np.array(children[kind], dtype=np.int64).T
            parts = scenes.meta.composites[kind]
            product = np.prod([scores[p][:, c] for p, c in zip(parts, columns, strict=True)], axis=0)
            # The logarithm of odds needs a number between 0 and 1.
            own, bounded = detector.own_evidence, np.clip(product, 1e-7, 1 - 1e-7)
            evidence = np.log(bounded / (1 - bounded)) * (1 - own / 2) + own * evidence
        scores[kind] = _sigmoid(evidence)
    dense = np.concatenate([scores[kind] for kind in truth], axis=1)
    if detector.decimals is not None:
        agentness, dense = agentness.round(detector.decimals), dense.round(detector.decimals)
    # The rows above the least agentness, at most 100 a frame, by video, frame and falling agentness.
    # The last key counts first; equal scores keep their order, since the sort is stable.
    order = np.lexsort((-agentness, found.frame, found.video))
    order = order[agentness[order] > _LEAST_AGENTNESS]
    video, frame = found.video[order], found.frame[order]
    begins = np.flatnonzero(np.diff(video, prepend=-1).astype(bool) | np.diff(frame, prepend=-1).astype(bool))
    length = np.diff(begins, append=len(order))
    rank = np.arange(len(order)) - np.repeat(begins, length)
    kept: Ints = order[rank < _MOST_PER_FRAME]
    order = kept
    meta = replace(scenes.meta, rows_read={}, source_digest="")
    meta = set_score_layout(meta, "boxes", kinds)
    if "av_action" in meta.vocabularies:
        meta = set_score_layout(meta, "frames", ["av_action"])
    return Predictions(
        videos=_videos(scenes, detector),
        frames=_frames(rng, scenes, detector),
        boxes=_table(scenes, detector, found, order, agentness, dense),
        meta=meta,
    )


def _check(scenes: Scenes) -> None:
    needed = [c for c in ("width_px", "height_px", "n_frames") if c not in scenes.videos.columns]
    unknown = needed or [c for c in ("width_px", "height_px", "n_frames") if scenes.videos[c].null_count()]
    if unknown or "agentness" not in scenes.meta.vocabularies:
        raise InputError(
            f"a synthetic detector needs {', '.join(unknown) or 'a vocabulary of agentness'} of every video",
            hint="read the set with a reader of road events, such as road or ucf24",
        )


def _seen(rng: np.random.Generator, scenes: Scenes, detector: Detector) -> _Found:
    """Ground-truth boxes, some twice, some not, and boxes where nothing is."""
    videos = pl.DataFrame({"video": scenes.videos["video"].cast(pl.String)}).with_row_index("index")
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String)).join(
        videos, on="video", maintain_order="left"
    )
    video, frame = boxes["index"].to_numpy().astype(np.int64), boxes["frame"].to_numpy()
    track = boxes["tube"].fill_null(-1).to_numpy() if "tube" in boxes.columns else np.full(len(boxes), -1)
    counts = scenes.videos["n_frames"].to_numpy()
    first = np.cumsum(counts) - counts
    blind = rng.random(counts.sum()) < detector.missed_frames
    # (n,) whether a box belongs to one of a share of the tracks.
    chosen = rng.random(max(int(track.max(initial=-1)) + 2, 1)) < detector.missed_tracks
    chosen[-1] = False
    seldom: Bools = chosen[track]
    dark = _dark(scenes)[video]
    lost = detector.missed * np.where(dark, 1.6, 1.0) + 0.5 * seldom
    one = np.flatnonzero(rng.random(len(boxes)) >= lost)
    two = np.flatnonzero(rng.random(len(boxes)) < detector.doubles)
    of = np.concatenate([one, two])
    of = of[~blind[first[video[of]] + frame[of]]]
    true = boxes.select(CORNERS).to_numpy().astype(np.float64)[of]
    quality = rng.normal(2.0 * detector.sharpness, 1.2, len(of)) - 1.5 * seldom[of] - 0.8 * dark[of]
    # Every side off by a share of the box's size; never upside down.
    jitter = detector.jitter * np.where(dark[of], 1.4, 1.0)
    extent = np.tile(true[:, 2:] - true[:, :2], 2)
    off = true + extent * rng.normal(0, 1, true.shape) * jitter[:, None]
    corners = np.hstack([np.minimum(off[:, :2], off[:, 2:]), np.maximum(off[:, :2], off[:, 2:])])
    wrong = _nothing(rng, scenes, detector, np.flatnonzero(~blind), first)
    return _Found(
        np.concatenate([video[of], wrong.video]),
        np.concatenate([frame[of], wrong.frame]),
        np.concatenate([of, wrong.of]),
        np.concatenate([track[of], wrong.track]),
        np.concatenate([corners, wrong.corners]),
        np.concatenate([quality, wrong.quality]),
    )


def _nothing(
    rng: np.random.Generator, scenes: Scenes, detector: Detector, places: Ints, first: Ints
) -> _Found:
    """Boxes where nothing is, spread over the frames `places` counts through all videos."""
    count = rng.poisson(detector.false_positives * len(places)) if len(places) else 0
    at = rng.choice(places, count) if count else np.zeros(0, dtype=np.int64)
    video = np.searchsorted(first, at, side="right") - 1
    size = scenes.videos.select("width_px", "height_px").to_numpy().astype(np.float64)[video]
    extent = size * rng.uniform(0.03, 0.25, (count, 2))
    corner = rng.random((count, 2)) * (size - extent)
    quality = rng.normal(-1.5, 1.0, count)
    nobody = np.full(count, -1)
    return _Found(video, at - first[video], nobody, nobody, np.hstack([corner, corner + extent]), quality)


def _dark(scenes: Scenes) -> Bools:
    """(videos,) whether it is night."""
    if "weather" not in scenes.videos.columns:
        return np.zeros(len(scenes.videos), dtype=bool)
    return (scenes.videos["weather"] == "night").fill_null(False).to_numpy()


def _truth(scenes: Scenes, kind: str) -> Bools:
    """(boxes, labels) which labels of a kind each ground-truth box has."""
    rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind)
    hot = np.zeros((len(scenes.boxes), len(scenes.meta.vocabularies[kind])), dtype=bool)
    places = scenes.boxes.select("box").with_row_index("row")
    rows = rows.join(places, on="box", how="left")
    hot[rows["row"].to_numpy(), rows["label"].to_numpy()] = True
    return hot


def _evidence(
    rng: np.random.Generator, detector: Detector, found: _Found, hot: Bools
) -> npt.NDArray[np.float32]:
    """(n, labels) log-odds: high for what the detector takes for true, with noise of box and of track."""
    width = hot.shape[1]
    seen = np.zeros((len(found.of), width), dtype=bool)
    something = found.of >= 0
    seen[something] = hot[found.of[something]]
    tracks = int(found.track.max(initial=-1)) + 2
    confused, turn = rng.random(tracks) < detector.confused, rng.integers(1, max(width, 2), tracks)
    # The last number, -1 as an index, stands for boxes that belong to no track: they are no one's to confuse.
    confused[-1] = False
    swapped = np.flatnonzero(confused[found.track])
    columns = (np.arange(width) - turn[found.track[swapped]][:, None]) % width
    seen[swapped] = np.take_along_axis(seen[swapped], columns, axis=1)
    # Half of the noise stays with a track: a detector that is wrong about somebody is so in every frame.
    persistent = rng.standard_normal((tracks, width), dtype=np.float32)[found.track]
    noise = rng.standard_normal(seen.shape, dtype=np.float32)
    sharp = np.float32(detector.sharpness)
    clear = (found.quality / 4).astype(np.float32)[:, None]
    level = np.where(seen, 1.2 * sharp + clear, -3.2 * sharp).astype(np.float32)
    evidence: npt.NDArray[np.float32] = level + np.float32(0.7) * (persistent + noise)
    return evidence


def _sigmoid(logit: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    odds: npt.NDArray[np.float32] = (1 / (1 + np.exp(-logit.astype(np.float32)))).astype(np.float32)
    return odds


def _table(
    scenes: Scenes,
    detector: Detector,
    found: _Found,
    order: Ints,
    agentness: npt.NDArray[np.float32],
    dense: npt.NDArray[np.float32],
) -> pl.DataFrame:
    """The boxes in their order, in the pixels that the detector saw."""
    size = scenes.videos.select("width_px", "height_px").to_numpy().astype(np.float64)
    scale = np.ones_like(size) if detector.size is None else np.array(detector.size) / size
    scale, limit = np.tile(scale, 2)[found.video[order]], np.tile(size, 2)[found.video[order]]
    corners = (np.clip(found.corners[order], 0, limit) * scale).astype(np.float32)
    names = scenes.videos["video"].cast(pl.String)
    return pl.DataFrame(
        {
            "box": np.arange(len(order)),
            "video": names.gather(found.video[order]),
            "frame": found.frame[order],
            "tube": pl.Series([None] * len(order), dtype=pl.Int64),
            **{name: corners[:, k] for k, name in enumerate(CORNERS)},
            "score": agentness[order],
            "scores": pl.Series(dense[order], dtype=pl.Array(pl.Float32, dense.shape[1])),
        }
    )


def _videos(scenes: Scenes, detector: Detector) -> pl.DataFrame:
    if detector.size is None:
        return scenes.videos
    width, height = detector.size
    sizes = (pl.lit(width, pl.Int64).alias("width_px"), pl.lit(height, pl.Int64).alias("height_px"))
    return scenes.videos.with_columns(sizes)


def _frames(rng: np.random.Generator, scenes: Scenes, detector: Detector) -> pl.DataFrame:
    """Every frame of every video; where frames have labels also their scores, right most of the time."""
    names, counts = scenes.videos["video"].cast(pl.String), scenes.videos["n_frames"].to_numpy()
    first = np.cumsum(counts) - counts
    frame = np.arange(counts.sum()) - np.repeat(first, counts)
    rows = pl.DataFrame({"video": names.gather(np.repeat(np.arange(len(counts)), counts)), "frame": frame})
    if "av_action" not in scenes.meta.vocabularies:
        return rows
    width = len(scenes.meta.vocabularies["av_action"])
    labels = scenes.frame_labels.filter(pl.col("kind").cast(pl.String) == "av_action")
    labels = labels.with_columns(pl.col("video").cast(pl.String)).join(
        pl.DataFrame({"video": names, "first": first}), on="video"
    )
    seen = np.zeros((len(rows), width), dtype=bool)
    seen[(labels["first"] + labels["frame"]).to_numpy(), labels["label"].to_numpy()] = True
    late = np.roll(seen, 5, axis=0)  # what the vehicle does is noticed late
    noise = rng.standard_normal(seen.shape, dtype=np.float32)
    slow = np.repeat(rng.standard_normal((len(rows) // 12 + 1, width), dtype=np.float32), 12, axis=0)
    level = np.where(late, 1.0, -2.2).astype(np.float32) * np.float32(detector.sharpness)
    scores = _sigmoid(level + np.float32(0.5) * noise + slow[: len(rows)])
    if detector.decimals is not None:
        scores = scores.round(detector.decimals)
    return rows.with_columns(pl.Series("scores", scores, dtype=pl.Array(pl.Float32, width)))
