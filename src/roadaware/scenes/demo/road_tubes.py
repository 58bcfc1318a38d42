"""From what each box of the made-up road is to the tables of labels and of tubes derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.scenes.demo import road_terms as terms

_TUBES: dict[str, Any] = {
    "tube": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "parent": pl.Int64,
    "kind": pl.String,
    "spans": pl.List(pl.List(pl.Int64)),
}
_LABELS: dict[str, Any] = {"tube": pl.Int64, "kind": pl.String, "label": pl.Int64}


@dataclass(frozen=True)
class Tracks:
    """All boxes of all tracks, flat, in the order of tracks and frames.

    Args:
        track: (n,) the track of each box.
        video: (n,) index of its video.
        frame: (n,) its frame.
        share: (n,) how much of the track's life is over, in [0, 1).
        agents: (tracks,) index of each track's agent; -1 for one whose label is not used.
    """

    track: Ints
    video: Ints
    frame: Ints
    share: Floats
    agents: Ints


def labels_table(hot: Mapping[str, Bools]) -> pl.DataFrame:
    """The `labels` of boxes, ordered by their key.

    Args:
        hot: kind to (n, labels) which labels each box has.
    """
    kinds = sorted(hot)
    box, column = np.nonzero(np.concatenate([hot[kind] for kind in kinds], axis=1))
    widths = [hot[kind].shape[1] for kind in kinds]
    kind = np.repeat(kinds, widths)[column]
    label = np.concatenate([np.arange(width) for width in widths])[column]
    return pl.DataFrame({"box": box, "kind": kind, "label": label})


def tube_tables(
    tracks: Tracks, hot: Mapping[str, Bools], names: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`tubes` and `tube_labels`: the tracks, and for each kind the stretches in which a label holds.

    A stretch goes on over a hole of its track, which its spans leave out.

    Args:
        tracks: (n boxes) in the order of tracks and frames.
        hot: kind to (n, labels) which labels each box has.
        names: of the videos.
    """
    bases = (
        _spans(tracks.track, tracks.frame)
        .sort("run")
        .with_columns(
            parent=pl.lit(None, pl.Int64),
            kind=pl.lit(None, pl.String),
            label=pl.lit(None, pl.Int64),
            spans=pl.lit(None, _TUBES["spans"]),
        )
    )
    bases = bases.with_columns(track=pl.col("run"))
    parts = [bases, *(_derived(tracks, kind, hot[kind]) for kind in terms.KINDS)]
    video = np.zeros(len(tracks.agents), dtype=np.int64)
    video[tracks.track] = tracks.video
    rows = pl.concat([part.select(parts[0].columns) for part in parts])
    rows = rows.with_columns(
        tube=pl.int_range(pl.len()),
        video=pl.Series(np.asarray(names)[video[rows["track"].to_numpy()]]),
        name=pl.format("{}-{}", pl.col("kind").fill_null("track"), pl.int_range(pl.len())),
    )
    labels = rows.filter(pl.col("parent").is_not_null()).select("tube", "kind", "label")
    return rows.select(pl.col(c).cast(dtype) for c, dtype in _TUBES.items()), labels


def _derived(tracks: Tracks, kind: str, hot: Bools) -> pl.DataFrame:
    """The tubes of one kind, by track, label and time."""
    new_track = np.diff(tracks.track, prepend=-1) != 0
    before = np.zeros_like(hot)
    before[1:] = hot[:-1]
    begins = hot & (~before | new_track[:, None])
    label, box = np.nonzero(hot.T)
    run = np.cumsum(begins.T[label, box]) - 1
    tubes = _spans(run, tracks.frame[box])
    first = np.flatnonzero(np.diff(run, prepend=-1))
    of = pl.DataFrame({"run": run[first], "track": tracks.track[box[first]], "label": label[first]})
    return (
        tubes.join(of, on="run")
        .sort("track", "label", "run")
        .with_columns(parent=pl.col("track"), kind=pl.lit(kind))
    )


def _spans(run: Ints, frame: Ints) -> pl.DataFrame:
    """Per run its first frame, the one after its last, and its stretches without hole; runs lie in order."""
    broken = (np.diff(run, prepend=-1) != 0) | (np.diff(frame, prepend=-2) != 1)
    first = np.flatnonzero(broken)
    last = np.append(first[1:], len(run))[: len(first)] - 1
    pieces = pl.DataFrame({"run": run[first], "low": frame[first], "high": frame[last] + 1})
    return pieces.group_by("run").agg(
        start_frame=pl.col("low").min(),
        end_frame=pl.col("high").max(),
        spans=pl.concat_list("low", "high"),
    )


def av_tables(
    rng: np.random.Generator, seen: Ints, names: Sequence[str], *, first: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What the vehicle does: `frame_labels`, and its `tubes` (without boxes) with their `tube_labels`.

    Now and then a frame has two labels; the first row is the one that was meant first.

    Args:
        rng: where chance comes from.
        seen: (videos,) annotated frames.
        names: of the videos.
        first: number of the first tube.
    """
    stretches = [
        (names[index], *each) for index, count in enumerate(seen) for each in _stretches(rng, int(count))
    ]
    video, low, high, label = (list(column) for column in zip(*stretches, strict=True))
    length = np.subtract(high, low)
    frame = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + np.repeat(low, length)
    rows = pl.DataFrame(
        {"video": np.repeat(video, length), "frame": frame, "label": np.repeat(label, length)}
    ).with_columns(kind=pl.lit("av_action"))
    rows = rows.sort("video", "frame", maintain_order=True)
    tube = np.arange(first, first + len(low))
    tubes = pl.DataFrame(
        {
            "tube": tube,
            "video": video,
            "name": [f"av_action-{number}" for number in tube],
            "start_frame": low,
            "end_frame": high,
            "parent": [None] * len(low),
            "kind": ["av_action"] * len(low),
            "spans": [[[a, b]] for a, b in zip(low, high, strict=True)],
        },
        schema=_TUBES,
    )
    labels = pl.DataFrame({"tube": tube, "kind": ["av_action"] * len(low), "label": label}, schema=_LABELS)
    return rows.select("video", "frame", "kind", "label"), tubes, labels


def _stretches(rng: np.random.Generator, count: int) -> list[tuple[int, int, int]]:
    """(start, end, label) of what the vehicle does one after the other, and of a second thing at times."""
    chances = np.array([0.28, 0.45, 0.08, 0.08, 0.03, 0.04, 0.04])
    found: list[tuple[int, int, int]] = []
    start, before = 0, -1
    while start < count:
        left = np.where(np.arange(len(chances)) == before, 0, chances)
        label = int(rng.choice(len(chances), p=left / left.sum()))
        end = min(count, start + int(rng.integers(15, 90)))
        found.append((start, end, label))
        if label > 1 and rng.random() < 0.3:
            found.append((start, min(end, start + 10), 1))
        start, before = end, label
    return found
