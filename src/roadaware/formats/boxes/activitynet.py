"""ActivityNet's JSON written: `activitynet.json` of videos with labelled segments, as `datasets.activitynet` reads it.

A segment is a tube with a label of the kind; its seconds are `start_s` and `end_s` where tables have them, else its frames by
the rate. Of predictions it is `results`, with a score for each.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl

from roadaware.datasets.activitynet import DATABASE, KIND, RESULTS, SUBSETS
from roadaware.datasets.facts import FACTS
from roadaware.formats.boxes.flat import (
    SPLITS,
    Files,
    choose_kind,
    complete_videos,
    count_other_tables,
    format_facts,
)
from roadaware.scenes.tables import Predictions, Scenes

MAIN = "activitynet.json"
OWN = {
    "videos": {
        "video",
        "scene",
        "width_px",
        "height_px",
        "splits",
        "path",
        "duration_s",
        "url",
        "n_frames",
        "fps",
    },
    "frames": {"video", "frame", "annotated", "path"},
    "tubes": {"tube", "video", "kind", "start_frame", "end_frame", "start_s", "end_s", "score"},
}
_SUBSET = {word: subset for subset, word in SUBSETS.items()}


@dataclass(frozen=True)
class Segments:
    """What ActivityNet's files hold.

    Args:
        videos: video, width_px, height_px, seconds (of the video, null where unknown), url, split.
        segments: video, start, end (seconds), label (a name), score (null of ground truth).
        predicted: whether they are predictions.
    """

    videos: pl.DataFrame
    segments: pl.DataFrame
    predicted: bool

    @property
    def rows(self) -> dict[str, int]:
        """What they hold to how many."""
        return {"videos": len(self.videos), "segments": len(self.segments)}


def list_segments(tables: Scenes | Predictions, kind: str | None) -> tuple[Segments, Counter[str]]:
    """The labelled tubes of a set as segments, and what is lost by that: why, to how often.

    Args:
        tables: with tubes.
        kind: of label that becomes that of a segment (default: action, else as of boxes).

    Raises:
        UsageError: if there is no such kind of label.
    """
    lost = count_other_tables(tables, OWN)
    if kind is None and KIND in tables.meta.vocabularies:
        kind = KIND
    kind = choose_kind(tables, kind)
    lost["boxes"] += len(tables.boxes)
    lost["labels of boxes"] += len(tables.labels)
    rates: dict[str, Any] = {
        "fps": pl.Float64, "n_frames": pl.Int64, "width_px": pl.Int64, "height_px": pl.Int64, "duration_s": pl.Float64,
        "url": pl.String, "splits": pl.List(pl.String),
    }  # fmt: skip
    videos = complete_videos(tables.videos, rates)
    held = [[each.rpartition("/")[2] for each in splits or ()] for splits in videos["splits"].to_list()]
    lost["further splits of videos"] += sum(max(0, len(words) - 1) for words in held)
    lost["splits of videos other than train, val and test"] += sum(
        words[0] not in SPLITS for words in held if words
    )
    split = [words[0] if words and words[0] in SPLITS else None for words in held]
    length = pl.coalesce(pl.col("duration_s").cast(pl.Float64), pl.col("n_frames") / pl.col("fps"))
    if videos["fps"].drop_nulls().n_unique() > 1 or videos["fps"].null_count() not in (0, len(videos)):
        lost["rates of videos, which differ"] += len(videos) - videos["fps"].null_count()
    videos = videos.select(
        "video",
        "width_px",
        "height_px",
        "fps",
        "url",
        seconds=length,
        split=pl.Series(split, dtype=pl.String),
    )
    labels = tables.tube_labels.filter(pl.col("kind").cast(pl.String) == (kind or ""))
    lost["labels of tubes of other kinds"] += len(tables.tube_labels) - len(labels)
    score = pl.col("score").cast(pl.Float64) if "score" in labels.columns else pl.lit(None, pl.Float64)
    words = tables.meta.vocabularies.get(kind or "", ())
    named = (
        pl.col("label").replace_strict(dict(enumerate(words)), return_dtype=pl.String)
        if words
        else pl.col("label").cast(pl.String)
    )
    labels = labels.select("tube", word=named, worth=score)
    tubes = tables.tubes.with_columns(pl.col("video").cast(pl.String))
    times: dict[str, Any] = {
        "start_s": pl.Float64,
        "end_s": pl.Float64,
        "start_frame": pl.Int64,
        "end_frame": pl.Int64,
        "score": pl.Float64,
    }
    tubes = tubes.with_columns(
        pl.lit(None, dtype).alias(n) for n, dtype in times.items() if n not in tubes.columns
    )
    found = tubes.join(labels, on="tube", how="inner", maintain_order="left").join(
        videos.select("video", "fps"), on="video", how="left", maintain_order="left"
    )
    lost["tubes without a label of the kind"] += len(tubes) - found["tube"].n_unique()
    segments = found.select(
        "video",
        start=pl.coalesce("start_s", pl.col("start_frame") / pl.col("fps")),
        end=pl.coalesce("end_s", pl.col("end_frame") / pl.col("fps")),
        label="word",
        score=pl.coalesce("worth", "score").cast(pl.Float64),
    )
    timed = segments.drop_nulls(["start", "end"])
    lost["segments of which no time is known: the rate of the video is missing"] += len(segments) - len(timed)
    predicted = isinstance(tables, Predictions)
    if predicted:
        scored = timed.drop_nulls("score")
        lost["segments without a score"] += len(timed) - len(scored)
        timed = scored
        lost["sizes of videos"] += len(videos) - videos["width_px"].null_count()
    return Segments(videos, timed, predicted), Counter({what: n for what, n in lost.items() if n})


def write_activitynet(held: Segments) -> Files:
    """Name and content of the file."""
    listed: dict[str, list[str]] = {}
    for video, start, end, label, score in held.segments.select(
        "video", "start", "end", "label", "score"
    ).iter_rows():
        worth = f', "score": {score!r}' if held.predicted else ""
        listed.setdefault(video, []).append(
            f'{{"segment": [{start!r}, {end!r}], "label": {json.dumps(label)}{worth}}}'
        )
    shown = []
    for row in held.videos.iter_rows(named=True):
        text = ", ".join(listed.get(row["video"], ()))
        if held.predicted:
            shown.append(f"{json.dumps(row['video'])}: [{text}]")
            continue
        about = {"duration": row["seconds"], "subset": _SUBSET.get(row["split"]), "url": row["url"]}
        if row["width_px"] is not None and row["height_px"] is not None:
            about["resolution"] = f"{row['width_px']}x{row['height_px']}"
        head = json.dumps({key: value for key, value in about.items() if value is not None})[1:-1]
        shown.append(f'{json.dumps(row["video"])}: {{{head}{", " if head else ""}"annotations": [{text}]}}')
    head = '{"version": "VERSION 1.3", ' + ('"external_data": {}, ' if held.predicted else '"taxonomy": [], ')
    if (facts := format_facts(held, "fps")) is not None:
        yield FACTS, facts
    top, text = RESULTS if held.predicted else DATABASE, ",\n".join(shown)
    yield MAIN, f'{head}"{top}": {{\n{text}\n}}}}\n'.encode()
