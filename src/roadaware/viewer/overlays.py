"""What is drawn beside boxes and tubes: relations, joints, sounds and their maps, forecasts of risk, and latency."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.formats.sound_maps import MOST_CELLS, reshape_map
from roadaware.online.times import TIMES, read_times
from roadaware.tasks.crossing_inputs.pose import convert_to_openpose
from roadaware.viewer.index import MOST_FRAMES, Index, round_finite
from roadaware.viewer.opening import TRUTH, Opened, TableSource

LAYERS = ("relations", "joints", "sounds", "risk")
"""What can be asked for of a window."""
POSES = "poses"
"""The side of joints that a file of `poses` holds."""
MOST_ROWS = 4_000
"""Relations, bodies or forecasts of a window of one side, at most; what is more is said."""
_MOST_SOUNDS = 5_000
_MOST_CELLS_SHOWN = 64
_MOST_REGIONS = 64
_LATE = 1 << 40


class Overlays:
    """Answers of the page about what stands beside boxes and tubes.

    Args:
        opened: the sets, and files of joints.
        index: of the sets.
    """

    def __init__(self, opened: Opened, index: Index) -> None:
        self._opened, self._sets = opened, index.sets
        self._latencies: dict[str, tuple[Any, Any]] = {}
        self._lock = threading.Lock()

    def describe(self, video: str) -> dict[str, Any]:
        """Of each side the layers that a video has, its sounds, and whether the latency of its frames is known.

        A sound is [number, what, start_s, end_s, frame, whether it may have a map]; what is not known is None.

        Args:
            video: its name.
        """
        told: dict[str, Any] = {}
        for side, source in self._opened.sides.items():
            sounds = self._sounds(source, video)
            held = self._columns(source, "boxes")
            here = video in self._sets[side].videos
            layers = {
                "relations": _any(_of_video(source.scan("relations"), video)),
                "joints": here and "joints" in held,
                "sounds": bool(sounds),
                "risk": _has_forecasts(source, video) or self._has_samples(source, video),
            }
            told[side] = {
                "layers": [name for name in LAYERS if layers[name]],
                "sounds": sounds[:_MOST_SOUNDS],
                "latency": here and source.watch is not None and (source.watch / TIMES).is_file(),
            }
        if any(_any(_of_video(_scan_poses(path), video)) for path in self._opened.poses):
            told[POSES] = {"layers": ["joints"], "sounds": [], "latency": False}
        return told

    def window(self, video: str, first: int, end: int, layers: Collection[str]) -> dict[str, Any]:
        """What stands in some frames, by side and layer, as columns.

        Args:
            video: its name.
            first, end: the frames, the end not included.
            layers: of `LAYERS`.

        Raises:
            UsageError: if these are no frames, too many, or no layers.
            InputError: if a table does not hold what it should.
        """
        if not 0 <= first < end <= first + MOST_FRAMES:
            raise UsageError(f"a window has 1 to {MOST_FRAMES} frames from 0 on")
        if not layers or not set(layers) <= set(LAYERS):
            raise UsageError(f"layers are {', '.join(LAYERS)}")
        readers: dict[str, Callable[[str, str, int, int], dict[str, Any] | None]] = {
            "relations": self._relations,
            "joints": self._joints,
            "sounds": self._sounding,
            "risk": self._risk,
        }
        told: dict[str, Any] = {}
        for side in self._opened.sides:
            for layer in dict.fromkeys(layers):
                found = readers[layer](side, video, first, end)
                if found is not None:
                    told.setdefault(side, {})[layer] = found
        if "joints" in layers and self._opened.poses:
            told[POSES] = {"joints": self._poses(video, first, end)}
        return told

    def sound_map(self, video: str, side: str, sound: int) -> dict[str, Any]:
        """The localisation map of a sound, row by row, from 0 to 255, as its metrics scale it.

        Of a map of more than 64 cells in a row or column, the largest value of each part is given.

        Args:
            video: its name.
            side: whose map.
            sound: its number.

        Raises:
            UsageError: if there is no such map.
            InputError: if it is no map.
        """
        source = self._opened.sides.get(side)
        held = [] if source is None else self._columns(source, "sounds")
        if source is None or "map" not in held:
            raise UsageError("there is no such map")
        width = pl.col("map_width") if "map_width" in held else pl.lit(None, pl.Int64)
        rows = _of_video(source.scan("sounds"), video).filter(pl.col("sound") == sound)
        found = rows.select("map", width=width).head(1).collect()
        if found.is_empty():
            raise UsageError("there is no such map")
        values = found["map"][0]
        if values is None:
            return {"width": 0, "height": 0, "cells": [], "message": ""}
        if len(values) > MOST_CELLS:
            raise InputError(f"a map of {len(values):,} cells; up to {MOST_CELLS:,} are drawn")
        return _shrink_map(reshape_map(values.cast(pl.Float64).to_numpy(), found["width"][0]))

    def latency(self, video: str, side: str, first: int, end: int, bars: int) -> dict[str, Any]:
        """How long after each frame its results were known, in ms: the mean and the longest of each of `bars` pieces.

        Args:
            video: its name.
            side: whose watch.
            first, end: the frames, the end not included.
            bars: how many pieces, 1 to 4096.

        Raises:
            UsageError: if there is no watch with times, or these are no pieces.
            InputError: if its times cannot be read.
        """
        source = self._opened.sides.get(side)
        if source is None or source.watch is None or video not in self._sets[side].videos:
            raise UsageError("this side has no times of frames")
        if not 0 <= first < end <= _LATE or not 1 <= bars <= 4096:
            raise UsageError("latency is asked for in 1 to 4096 pieces of a span of frames")
        with self._lock:
            if side not in self._latencies:
                self._latencies[side] = _read_latency(source, source.watch, video)
            frames, late_ms = self._latencies[side]
        ends = np.linspace(first, end, bars + 1)
        cuts = np.searchsorted(frames, ends)
        mean: list[float | None] = [None] * bars
        most: list[float | None] = [None] * bars
        for bar in np.flatnonzero(cuts[1:] > cuts[:-1]).tolist():
            part = late_ms[cuts[bar] : cuts[bar + 1]]
            mean[bar], most[bar] = round(float(part.mean()), 1), round(float(part.max()), 1)
        shown = late_ms[cuts[0] : cuts[-1]]
        longest = round(float(shown.max()), 1) if len(shown) else None
        return {"mean": mean, "most": most, "longest": longest}

    def _columns(self, source: TableSource, table: str) -> list[str]:
        return source.scan(table).collect_schema().names()

    def _relations(self, side: str, video: str, first: int, end: int) -> dict[str, Any] | None:
        source, held = self._opened.sides[side], self._sets[side]
        if "relations" not in source.tables:
            return None
        names = self._columns(source, "relations")
        start = pl.col("start_frame").fill_null(0) if "start_frame" in names else pl.lit(0, pl.Int64)
        stop = pl.col("end_frame").fill_null(_LATE) if "end_frame" in names else pl.lit(_LATE, pl.Int64)
        score = pl.col("score").cast(pl.Float64) if "score" in names else pl.lit(None, pl.Float64)
        rows = _of_video(source.scan("relations"), video).select(
            "relation", "subject", "object", "predicate", start=start, end=stop, score=score
        )
        rows = rows.filter((pl.col("start") < end) & (pl.col("end") > first))
        best = rows.sort("score", "relation", descending=[True, False], nulls_last=True, maintain_order=True)
        found = best.collect()
        more = max(0, len(found) - MOST_ROWS)
        found = found.head(MOST_ROWS).sort("start", "relation")
        # A relation may name a part of a tube; boxes belong to the whole.
        owners = held.tubes.select("tube", owner=pl.coalesce("parent", "tube"))
        for who in ("subject", "object"):
            found = found.join(
                owners.rename({"tube": who, "owner": f"{who}_path"}),
                on=who,
                how="left",
                maintain_order="left",
            ).with_columns(pl.coalesce(f"{who}_path", who).alias(who))
        words = source.meta.vocabularies.get("predicate", ())
        return {
            "relation": found["relation"].to_list(),
            "subject": found["subject"].to_list(),
            "object": found["object"].to_list(),
            "word": [words[k] if 0 <= k < len(words) else str(k) for k in found["predicate"].to_list()],
            "start": found["start"].to_list(),
            "end": found["end"].to_list(),
            "score": round_finite(found["score"], 3),
            "more": more,
        }

    def _joints(self, side: str, video: str, first: int, end: int) -> dict[str, Any] | None:
        source = self._opened.sides[side]
        if "joints" not in self._columns(source, "boxes") or video not in self._sets[side].videos:
            return None
        rows = self._sets[side].scan_boxes(video)
        window = pl.col("frame").is_between(first, end, closed="left") & pl.col("joints").is_not_null()
        found = rows.filter(window).select("box", "frame", "joints").sort("frame").collect()
        told = _describe_bodies(found, "joints", source.name)
        return {**told, "box": found["box"].head(MOST_ROWS).to_list()}

    def _poses(self, video: str, first: int, end: int) -> dict[str, Any]:
        parts = []
        for path in self._opened.poses:
            rows = _of_video(_scan_poses(path), video)
            window = pl.col("frame").is_between(first, end, closed="left")
            parts.append(rows.filter(window).collect())
        found = pl.concat(parts).sort("frame") if parts else pl.DataFrame()
        return _describe_bodies(found, "joints_px", POSES)

    def _sounding(self, side: str, video: str, first: int, end: int) -> dict[str, Any] | None:
        """The boxes that sound."""
        source = self._opened.sides[side]
        if "sound" not in self._columns(source, "boxes") or video not in self._sets[side].videos:
            return None
        window = pl.col("frame").is_between(first, end, closed="left") & pl.col("sound").is_not_null()
        rows = self._sets[side].scan_boxes(video).filter(window).select("box", "frame", "sound")
        found = rows.sort("frame").collect()
        return {**found.head(MOST_ROWS).to_dict(as_series=False), "more": max(0, len(found) - MOST_ROWS)}

    def _sounds(self, source: TableSource, video: str) -> list[list[Any]]:
        """The sounds of a video in order; a prediction that does not say when is heard when the true one is."""
        table = self._timed_sounds(source, video)
        if table is None:
            return []
        truth = self._opened.truth
        if source.predicted and truth is not None:
            true = self._timed_sounds(truth, video)
            if true is not None:
                again = {name: f"{name}_true" for name in ("frame", "start", "end", "word")}
                known = true.select("sound", *again).rename(again)
                table = table.join(known, on="sound", how="left", maintain_order="left").with_columns(
                    pl.coalesce(name, other).alias(name) for name, other in again.items()
                )
        table = table.sort("start", "frame", "sound", nulls_last=True).head(_MOST_SOUNDS)
        return [
            [sound, word or f"sound {sound}", start, stop, frame, held]
            for sound, word, start, stop, frame, held in zip(
                table["sound"].to_list(),
                table["word"].to_list(),
                round_finite(table["start"], 3),
                round_finite(table["end"], 3),
                table["frame"].to_list(),
                table["map"].to_list(),
                strict=True,
            )
        ]

    def _timed_sounds(self, source: TableSource, video: str) -> pl.DataFrame | None:
        if "sounds" not in source.tables:
            return None
        held = self._columns(source, "sounds")

        def given(name: str, kind: Any) -> pl.Expr:
            return pl.col(name).cast(kind) if name in held else pl.lit(None, kind)

        words = source.meta.vocabularies.get("sound", ())
        rows = _of_video(source.scan("sounds"), video).select(
            "sound",
            frame=given("frame", pl.Int64),
            start=given("t_s", pl.Float64),
            end=given("end_s", pl.Float64),
            label=given("label", pl.Int64),
            name=given("name", pl.String),
            # Maps are large: whether this one is there is found out when it is drawn.
            map=pl.lit("map" in held),
        )
        found = rows.collect()
        named = [
            words[label] if label is not None and 0 <= label < len(words) else name
            for label, name in zip(found["label"].to_list(), found["name"].to_list(), strict=True)
        ]
        return found.with_columns(word=pl.Series(named, dtype=pl.String))

    def _has_samples(self, source: TableSource, video: str) -> bool:
        truth = self._opened.truth
        if not source.predicted or truth is None or "scores" not in self._columns(source, "samples"):
            return False
        return "tube" in self._columns(truth, "samples") and _any(_of_video(truth.scan("samples"), video))

    def _risk(self, side: str, video: str, first: int, end: int) -> dict[str, Any] | None:
        """Forecasts for pedestrians: of a watch in each frame, of samples from the end of their observation on."""
        source, truth = self._opened.sides[side], self._opened.truth
        if source.crossing is not None and _has_forecasts(source, video):
            return self._forecasts(side, source.crossing, first, end)
        if truth is not None and self._has_samples(source, video):
            return self._sample_forecasts(source, truth, video, first, end)
        return None

    def _forecasts(self, side: str, path: Path, first: int, end: int) -> dict[str, Any]:
        table = pl.scan_parquet(path)
        held = table.collect_schema().names()

        def given(name: str, kind: Any = pl.Float64) -> pl.Expr:
            return pl.col(name).cast(kind) if name in held else pl.lit(None, kind)

        rows = table.filter(pl.col("frame").is_between(first, end, closed="left"))
        found = rows.select(
            pl.col("tube").cast(pl.String).alias("name"),
            first=pl.col("frame"),
            end=pl.col("frame") + 1,
            crossing=given("crossing"),
            low=given("low"),
            high=given("high"),
            regions=given("regions", pl.List(pl.Float64)),
        ).collect()
        video = str(self._opened.sides[side].summary.get("video"))
        numbers = self._sets[side].tubes.filter((pl.col("video") == video) & pl.col("parent").is_null())
        known = numbers.select("tube", "name").unique("name", keep="first")
        return _describe_forecasts(found.join(known, on="name", maintain_order="left"), side)

    def _sample_forecasts(
        self, source: TableSource, truth: TableSource, video: str, first: int, end: int
    ) -> dict[str, Any]:
        asked = _of_video(truth.scan("samples"), video)
        scores = source.scan("samples").select("sample", pl.col("scores").cast(pl.List(pl.Float64)))
        kind = (
            pl.col("kind").cast(pl.String) if "kind" in self._columns(truth, "samples") else pl.lit("action")
        )
        rows = asked.select("sample", "tube", "start_frame", "end_frame", kind=kind).join(scores, on="sample")
        known, lasts = pl.col("end_frame") - 1, pl.col("end_frame") - pl.col("start_frame")
        after = known.shift(-1).over("tube", "kind", order_by="end_frame")
        rows = rows.with_columns(first=known, end=pl.min_horizontal(after, known + lasts))
        found = rows.filter((pl.col("first") < end) & (pl.col("end") > first)).collect()
        one = pl.col("scores").list.len() == 1
        found = found.with_columns(
            crossing=pl.when(pl.col("kind") == "action").then(
                pl.when(one).then(pl.col("scores").list.first()).otherwise(pl.col("scores").list.get(1))
            ),
            regions=pl.when(pl.col("kind") == "risk").then(pl.col("scores")),
            low=pl.lit(None, pl.Float64),
            high=pl.lit(None, pl.Float64),
        )
        return _describe_forecasts(found, TRUTH)


def _any(rows: pl.LazyFrame) -> bool:
    return not rows.select(pl.col("video")).head(1).collect().is_empty()


def _of_video(rows: pl.LazyFrame, video: str) -> pl.LazyFrame:
    if "video" not in rows.collect_schema().names():
        return rows.clear()
    return rows.filter(pl.col("video").cast(pl.String) == video)


def _scan_poses(path: Path) -> pl.LazyFrame:
    """The joints of a file of `poses`: `video`, `frame`, `joints_px`.

    Raises:
        InputError: if it is no such file.
    """
    try:
        rows = pl.scan_parquet(path)
        held = rows.collect_schema().names()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"expected a table of joints, found: {error}", where=str(path)) from error
    lost = [name for name in ("video", "frame", "joints_px") if name not in held]
    if lost:
        raise InputError(f"expected a table of joints; it has no {', '.join(lost)}", where=str(path))
    return rows.select("video", "frame", pl.col("joints_px").cast(pl.List(pl.Float64)))


def _describe_bodies(found: pl.DataFrame, column: str, where: str) -> dict[str, Any]:
    """Frame and 18 joints of OpenPose of each body, in pixels; None for what is not seen."""
    more, found = max(0, len(found) - MOST_ROWS), found.head(MOST_ROWS)
    if found.is_empty():
        return {"frame": [], "joints": [], "more": 0}
    joints = found[column].cast(pl.List(pl.Float64))
    widths = joints.list.len().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise InputError(
            f"joints have rows of {sorted(widths)} numbers; expected as many in each", where=where
        )
    values = joints.explode().to_numpy().reshape(len(found), -1)
    placed = convert_to_openpose(values, where).reshape(len(found), -1).round(1)
    bodies = [[number if math.isfinite(number) else None for number in body] for body in placed.tolist()]
    return {
        "frame": found["frame"].to_list(),
        "joints": bodies,
        "more": more,
    }


def _has_forecasts(source: TableSource, video: str) -> bool:
    return source.crossing is not None and source.summary.get("video") == video


def _describe_forecasts(found: pl.DataFrame, on: str) -> dict[str, Any]:
    """Columns of forecasts; `on` is the side whose tubes they are about."""
    found = found.filter(pl.col("crossing").is_not_null() | pl.col("regions").is_not_null()).sort(
        "first", "tube"
    )
    more, found = max(0, len(found) - MOST_ROWS), found.head(MOST_ROWS)
    regions = [_describe_regions(values) for values in found["regions"].to_list()]
    return {
        "on": on,
        "tube": found["tube"].to_list(),
        "first": found["first"].to_list(),
        "end": found["end"].to_list(),
        "crossing": round_finite(found["crossing"], 3),
        "low": round_finite(found["low"], 3),
        "high": round_finite(found["high"], 3),
        "regions": regions,
        "more": more,
    }


def _describe_regions(values: Sequence[float] | None) -> list[float | None] | None:
    if values is None or not 0 < len(values) <= _MOST_REGIONS:
        return None
    shares = round_finite(pl.Series(values, dtype=pl.Float64), 2)
    return None if None in shares else shares


def _shrink_map(values: Any) -> dict[str, Any]:
    finite = np.isfinite(values)
    low = float(values[finite].min()) if finite.any() else 0.0
    high = float(values[finite].max()) if finite.any() else 0.0
    values = np.where(finite, values, low)
    for axis in (0, 1):
        size = values.shape[axis]
        if size > _MOST_CELLS_SHOWN:
            starts = np.linspace(0, size, _MOST_CELLS_SHOWN + 1)[:-1].astype(np.int64)
            values = np.maximum.reduceat(values, starts, axis=axis)
    height, width = values.shape
    if not high > low:
        return {"width": width, "height": height, "cells": [], "message": "a map of one value says nothing"}
    # Halved first: the difference of two large numbers may be none.
    shares = (values / 2 - low / 2) / (high / 2 - low / 2)
    cells: Sequence[int] = (255 * shares).round().astype(np.int64).reshape(-1).tolist()
    return {"width": width, "height": height, "cells": cells, "message": ""}


def _read_latency(source: TableSource, watch: Path, video: str) -> tuple[Any, Floats]:
    """Frames in order, and of each the milliseconds until its results were known."""
    shown = _of_video(source.scan("frames"), video).select("frame", pl.col("t_s").cast(pl.Float64)).collect()
    both = read_times(watch).join(shown, on="frame").drop_nulls().sort("frame")
    late_ms = 1e3 * (both["ready_s"] - both["t_s"]).to_numpy().astype(np.float64)
    kept = np.isfinite(late_ms)
    return both["frame"].to_numpy()[kept], late_ms[kept]
