"""What is drawn beside boxes and tubes: relations, joints, sounds and their maps, forecasts of risk, and latency.

The page draws them itself (`static/overlays.js`); `LayerPainter` draws the same on the frames of saved spans.
"""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image, ImageDraw

from roadaware.arrays import Bools, Floats
from roadaware.errors import InputError, UsageError
from roadaware.formats.sound_maps import MOST_CELLS, reshape_map
from roadaware.io.parquet import scan_parquet
from roadaware.io.sources import to_printable
from roadaware.online.times import TIMES, read_times
from roadaware.reports.lettering import Letters
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
        """
        record: dict[str, Any] = {}
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
            record[side] = {
                "layers": [name for name in LAYERS if layers[name]],
                "sounds": sounds[:_MOST_SOUNDS],
                "latency": here and source.watch is not None and (source.watch / TIMES).is_file(),
            }
        if any(_any(_of_video(_scan_poses(path), video)) for path in self._opened.poses):
            record[POSES] = {"layers": ["joints"], "sounds": [], "latency": False}
        return record

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
        record: dict[str, Any] = {}
        for side in self._opened.sides:
            for layer in dict.fromkeys(layers):
                found = readers[layer](side, video, first, end)
                if found is not None:
                    record.setdefault(side, {})[layer] = found
        if "joints" in layers and self._opened.poses:
            record[POSES] = {"joints": self._poses(video, first, end)}
        return record

    def sound_map(self, video: str, side: str, sound: int) -> dict[str, Any]:
        """The localisation map of a sound, row by row, from 0 to 255, as its metrics scale it.

        Of a map of more than 64 cells in a row or column, the largest value of each part is given.

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
                # Frames in order, and of each the milliseconds until its results were known
                shown = (
                    _of_video(source.scan("frames"), video)
                    .select("frame", pl.col("t_s").cast(pl.Float64))
                    .collect()
                )
                both = read_times(source.watch).join(shown, on="frame").drop_nulls().sort("frame")
                late_ms = 1e3 * (both["ready_s"] - both["t_s"]).to_numpy().astype(np.float64)
                kept = np.isfinite(late_ms)
                self._latencies[side] = both["frame"].to_numpy()[kept], late_ms[kept]
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
        bodies = _describe_bodies(found, "joints", source.name)
        return {**bodies, "box": found["box"].head(MOST_ROWS).to_list()}

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
        table = scan_parquet(path)
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
        rows = scan_parquet(path)
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


# The layers on the frames of a saved span, in the shapes and colours of `static/overlays.js`.

Colour = tuple[int, int, int]
Corners = tuple[float, float, float, float]
# Pairs of the 18 joints of OpenPose; the person's right, left, and what is between.
_BONES = (
    (1, 2), (2, 3), (3, 4), (1, 5), (5, 6), (6, 7), (1, 8), (8, 9), (9, 10), (1, 11), (11, 12), (12, 13), (0, 1),
    (0, 14), (14, 16), (0, 15), (15, 17),
)  # fmt: skip
_RIGHT, _LEFT = {2, 3, 4, 8, 9, 10, 14, 16}, {5, 6, 7, 11, 12, 13, 15, 17}
_GREEN, _YELLOW, _RED, _PALE, _BLUE = (
    (43, 196, 138),
    (240, 228, 66),
    (255, 143, 128),
    (244, 244, 244),
    (86, 180, 233),
)
_PALETTE = (
    _BLUE,
    (230, 159, 0),
    _GREEN,
    _YELLOW,
    (213, 94, 0),
    (204, 121, 167),
    (142, 166, 255),
    _RED,
    (154, 217, 92),
)
_SHADE, _GROUND, _GROUND_SHARE = (0, 0, 0, 170), (13, 17, 22), 0.85
_CURVE = 40
_MOST_WORDS = 120


@dataclass(frozen=True)
class Look:
    """What decides what is drawn.

    Args:
        sides: that are drawn.
        score: from which on predictions are drawn.
        hidden: classes that are not drawn.
        layers: of `LAYERS`, those that are on.
        colours: class or word to its colour, as on the page.
    """

    sides: tuple[str, ...]
    score: float
    hidden: frozenset[str]
    layers: tuple[str, ...] = ()
    colours: dict[str, Colour] = field(default_factory=dict, repr=False)

    def passes(self, side: str, word: str, score: float | None) -> bool:
        """Whether something of a class and score is drawn."""
        return word not in self.hidden and (side == TRUTH or score is None or score >= self.score)


@dataclass(frozen=True)
class Places:
    """Where the boxes of a side stand in a frame, in pixels of the image.

    Args:
        tubes: tube to its corners.
        boxes: box to its corners.
    """

    tubes: dict[int, Corners] = field(default_factory=dict)
    boxes: dict[int, Corners] = field(default_factory=dict)


class LayerPainter:
    """Draws the layers of the frames of a video, window by window.

    Args:
        overlays: that tell what there is.
        index: of the sets.
        video: its name.
        look: what is drawn.
        times_s: when each frame of the video is shown.
        size: of the image in pixels, in which places are.
    """

    def __init__(
        self,
        overlays: Overlays,
        index: Index,
        video: str,
        look: Look,
        times_s: Sequence[float],
        size: tuple[int, int],
    ) -> None:
        self._overlays, self._video, self._look = overlays, video, look
        self._times_s, self._size = np.asarray(times_s, dtype=np.float64), size
        self._described = {
            side: layers
            for side, layers in overlays.describe(video).items()
            if side == POSES or side in look.sides
        }
        self._named = {side: index.names(side, video) for side in index.sizes(video)}
        self._grow = {
            side: tuple(scale_of_set(shown, own) for shown, own in zip(size, owns, strict=True))
            for side, owns in index.sizes(video).items()
        }
        self._window: dict[str, Any] = {}
        self._maps: dict[tuple[str, int], Image.Image | None] = {}

    def load(self, first: int, end: int) -> int:
        """Read what stands in some frames, the end not included; how many rows of it are too many to be drawn."""
        self._window = self._overlays.window(self._video, first, end, self._look.layers)
        for layers in self._window.values():
            for rows in layers.values():
                if "frame" in rows:
                    rows["frame"] = np.array(rows["frame"], dtype=np.int64)
        return sum(rows["more"] for layers in self._window.values() for rows in layers.values())

    def paint_below(self, image: Image.Image, frame: int) -> None:
        """What boxes are drawn upon: the maps of what is heard.

        Args:
            image: of the frame, of any size; it is changed.
            frame: one that was loaded.
        """
        if "sounds" not in self._look.layers:
            return
        for side in self._described:
            for sound, *_, mapped in self._heard(side, frame):
                tint = self._map(side, sound) if mapped else None
                if tint is not None:
                    large = tint.resize(image.size, Image.Resampling.BILINEAR)
                    image.paste(large, (0, 0), large)

    def paint_above(self, image: Image.Image, frame: int, places: dict[str, Places]) -> None:
        """What stands on the boxes: sounds, joints, risk and relations.

        Args:
            image: of the frame with its boxes, of any size; it is changed.
            frame: one that was loaded.
            places: side to where its boxes stand, whether they are drawn or not.
        """
        pen = _Pen(image, self._size)
        painters: dict[str, Callable[[_Pen, str, Any, int, dict[str, Places]], None]] = {
            "sounds": self._paint_sounds,
            "joints": self._paint_joints,
            "risk": self._paint_risk,
            "relations": self._paint_relations,
        }
        for layer, paint in painters.items():
            for side in self._described if layer in self._look.layers else ():
                rows = self._window.get(side, {}).get(layer)
                if rows is not None or layer == "sounds":
                    paint(pen, side, rows, frame, places)

    def _colour(self, word: str) -> Colour:
        """As on the page; of a word that has not been drawn there one that is always the same."""
        return self._look.colours.get(word) or _PALETTE[zlib.crc32(word.encode()) % len(_PALETTE)]

    def _passes(self, side: str, tube: int) -> bool:
        named = self._named.get(side, {}).get(tube)
        return named is None or self._look.passes(side, *named)

    def _heard(self, side: str, frame: int) -> Iterator[list[Any]]:
        """The sounds that are heard in a frame: of a span, or of the one frame that shows where they come from."""
        time_s = self._times_s[frame]
        for sound in self._described[side]["sounds"]:
            start, end, shown = sound[2:5]
            if start is not None and end is not None:
                heard = start - 1e-3 <= time_s < end
            elif shown is not None:
                heard = shown == frame
            else:
                heard = start is None or self._frame_at(start) == frame
            if heard:
                yield sound

    def _frame_at(self, time_s: float) -> int:
        return max(0, int(np.searchsorted(self._times_s, time_s + 1e-4, side="right")) - 1)

    def _map(self, side: str, sound: int) -> Image.Image | None:
        """The tint of a map; none where there is no map, or one that says nothing."""
        key = (side, sound)
        if key not in self._maps:
            self._maps[key] = None
            with suppress(InputError, UsageError):
                sound_map = self._overlays.sound_map(self._video, side, sound)
                if sound_map["cells"]:
                    share = (
                        np.array(sound_map["cells"]).reshape(sound_map["height"], sound_map["width"]) / 255
                    )
                    parts = (
                        np.full_like(share, 255), 40 + 200 * share, np.full_like(share, 40),
                        np.where(share >= 0.5, 110 + 90 * share, 120 * share),
                    )  # fmt: skip
                    self._maps[key] = Image.fromarray(np.stack(parts, axis=2).round().astype(np.uint8))
        return self._maps[key]

    def _paint_sounds(self, pen: _Pen, side: str, rows: Any, frame: int, places: dict[str, Places]) -> None:
        heard = list(self._heard(side, frame))
        named = {sound: word for sound, word, *_ in heard}
        seen, dashed = set(), side == TRUTH
        for row in _rows_of(rows, frame):
            place = places.get(side, Places()).boxes.get(rows["box"][row])
            if place is None:
                continue
            sound = rows["sound"][row]
            word = named.get(sound, f"sound {sound}")
            seen.add(sound)
            pen.frame(place, self._colour(word), 3.0, beyond=4.0, dash=(6.0, 4.0) if dashed else None)
            pen.tag((place[0], place[1]), f"heard: {word}", self._colour(word), up=8.0)
        # What is heard from nowhere in the image stands in the corner.
        for sound, word, *_, mapped in heard:
            if sound in seen and not mapped:
                continue
            more = ("" if sound in seen else ", without a box") if dashed else f", {side.upper()}"
            pen.tag_corner(f"heard: {word}{more}", self._colour(word))

    def _paint_joints(self, pen: _Pen, side: str, rows: Any, frame: int, places: dict[str, Places]) -> None:
        grow = self._grow.get(side, (1.0, 1.0))
        for row in _rows_of(rows, frame):
            flat = rows["joints"][row]
            points = [
                None if x is None or y is None else (x * grow[0], y * grow[1])
                for x, y in zip(flat[::2], flat[1::2], strict=True)
            ]
            for one, other in _BONES:
                a, b = points[one], points[other]
                if a is not None and b is not None:
                    dash = (5.0, 2.5) if side == TRUTH else None
                    pen.path([a, b], _colour_joint(other), 1.7, shade=3.4, dash=dash)
            for joint, point in enumerate(points):
                if point is not None:
                    pen.dot(point, _colour_joint(joint), 1.9)

    def _paint_risk(self, pen: _Pen, side: str, rows: Any, frame: int, places: dict[str, Places]) -> None:
        on = rows["on"]
        for row in range(len(rows["first"])):
            crossing, regions = rows["crossing"][row], rows["regions"][row]
            place = places.get(on, Places()).tubes.get(rows["tube"][row])
            here = rows["first"][row] <= frame < rows["end"][row]
            if (
                not here
                or place is None
                or (crossing is None and not regions)
                or not self._passes(on, rows["tube"][row])
            ):
                continue
            if crossing is None:
                best = int(np.argmax(regions))
                words, colour = f"region {best + 1} of {len(regions)} {regions[best]:.2f}", _BLUE
            else:
                words = f"crossing {crossing:.2f}"
                colour = _GREEN if crossing < 0.25 else _YELLOW if crossing < 0.5 else _RED
            pen.frame(place, colour, 2.4, beyond=3.0)
            offset = 0 if side == on else "abcde".find(side)
            pen.tag((place[2], place[1]), words, colour, right=5.0, up=-12.0 - 17.0 * offset)

    def _paint_relations(
        self, pen: _Pen, side: str, rows: Any, frame: int, places: dict[str, Places]
    ) -> None:
        tubes = places.get(side, Places()).tubes
        pairs: dict[tuple[int, int], list[str]] = {}  # what is said of one pair stands on one arrow
        for row in range(len(rows["relation"])):
            score, pair = rows["score"][row], (rows["subject"][row], rows["object"][row])
            if not rows["start"][row] <= frame < rows["end"][row] or not tubes.keys() >= set(pair):
                continue
            low = side != TRUTH and score is not None and score < self._look.score
            if low or not all(self._passes(side, tube) for tube in pair):
                continue
            more = "" if side == TRUTH or score is None else f" {score:.2f}"
            pairs.setdefault(pair, []).append(f"{rows['word'][row]}{more}")
            if len(pairs[pair]) == 1:
                pairs[pair].insert(0, rows["word"][row])
        for (subject, other), (first, *words) in pairs.items():
            pen.arrow(
                tubes[subject],
                tubes[other],
                self._colour(first),
                " \u00b7 ".join(words),
                dashed=side == TRUTH,
            )


def scale_of_set(shown: int, own: int | None) -> float:
    """How much boxes of a set grow that was made on images of another size; one pixel is the evening up of a copy."""
    return shown / own if own and abs(shown - own) > 1 else 1.0


def _rows_of(rows: Any, frame: int) -> range:
    """The rows of a frame, of columns in the order of frames."""
    if rows is None:
        return range(0)
    first, end = np.searchsorted(rows["frame"], [frame, frame + 1]).tolist()
    return range(first, end)


def _colour_joint(joint: int) -> Colour:
    return _RED if joint in _RIGHT else _GREEN if joint in _LEFT else _PALE


class _Pen:
    """Draws on an image in places of the video and in sizes of the page.

    Args:
        image: it is changed.
        size: of the images in which places are.
    """

    def __init__(self, image: Image.Image, size: tuple[int, int]) -> None:
        self._image, self._pen = image, ImageDraw.Draw(image, "RGBA")
        self._scale = image.width / size[0], image.height / size[1]
        # A frame of a box is 1.7 wide on the page, and two pixels or more here.
        self._ratio = max(2, round(image.height / 360)) / 1.7
        self._font = Letters(max(10, image.height // 48))
        self._in_corner = 0

    def frame(
        self,
        place: Corners,
        colour: Colour,
        wide: float,
        *,
        beyond: float,
        dash: tuple[float, float] | None = None,
    ) -> None:
        """A frame around a box, at a distance."""
        x1, y1, x2, y2 = self._put_corners(place)
        off = beyond * self._ratio
        ends = [(x1 - off, y1 - off), (x2 + off, y1 - off), (x2 + off, y2 + off), (x1 - off, y2 + off)]
        self._stroke(np.array([*ends, ends[0]]), (*colour, 255), wide, dash)

    def path(
        self, points: Sequence[tuple[float, float]], colour: Colour, wide: float, *, shade: float,
        dash: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """A line on a darker and wider one."""
        line = np.array(points) * self._scale
        self._stroke(line, _SHADE, shade, dash)
        self._stroke(line, (*colour, 255), wide, dash)

    def dot(self, point: tuple[float, float], colour: Colour, radius: float) -> None:
        """A round point."""
        x, y, r = point[0] * self._scale[0], point[1] * self._scale[1], radius * self._ratio
        self._pen.ellipse([x - r, y - r, x + r, y + r], fill=colour)

    def tag(
        self, at: tuple[float, float], words: str, colour: Colour, *, right: float = 0.0, up: float = 0.0
    ) -> None:
        """Words on a dark ground, moved so far that they lie within the image."""
        self._write(
            at[0] * self._scale[0] + right * self._ratio,
            at[1] * self._scale[1] - up * self._ratio,
            words,
            colour,
        )

    def tag_corner(self, words: str, colour: Colour) -> None:
        """Words in the corner, below those that stand there."""
        self._write(8 * self._ratio, (44 + 18 * self._in_corner) * self._ratio, words, colour)
        self._in_corner += 1

    def arrow(self, subject: Corners, other: Corners, colour: Colour, words: str, *, dashed: bool) -> None:
        """A bent line from box to box with words; two that go opposite ways bend away from each other."""
        one, two = self._put_corners(subject), self._put_corners(other)
        a, b = (np.array([(x1 + x2) / 2, (y1 + y2) / 2]) for x1, y1, x2, y2 in (one, two))
        ratio = self._ratio
        away = b - a
        long = max(1.0, float(np.hypot(*away)))
        bend = min(60 * ratio, 0.18 * long) + 6 * ratio
        top = (a + b) / 2 + np.array([away[1], -away[0]]) / long * bend * 2
        t = np.linspace(0, 1, _CURVE + 1)[:, None]
        points = (1 - t) ** 2 * a + 2 * t * (1 - t) * top + t * t * b
        clear = points[~_is_inside(points, one) & ~_is_inside(points, two)]
        if len(clear) > 4:  # where boxes overlap, the line goes from middle to middle
            points = clear
        end, before = points[-1], points[-4]
        angle = math.atan2(*(end - before)[::-1])
        for wide, ink in ((4.2, _SHADE), (2.0, (*colour, 255))):
            self._stroke(points, ink, wide, (6.0, 4.0) if dashed else None)
            size = (wide + 5) * ratio
            tip = end + 2 * ratio * np.array([math.cos(angle), math.sin(angle)])
            sides = [
                end + size * np.array([math.cos(angle + turn), math.sin(angle + turn)])
                for turn in (2.6, -2.6)
            ]
            self._pen.polygon([tuple(corner) for corner in (tip, *sides)], fill=ink)
        middle = points[len(points) // 2]
        self._write(middle[0] - 14 * ratio, middle[1] + 4 * ratio, words, colour)

    def _put_corners(self, place: Corners) -> Corners:
        across, down = self._scale
        return place[0] * across, place[1] * down, place[2] * across, place[3] * down

    def _stroke(
        self, points: Floats, ink: tuple[int, ...], wide: float, dash: tuple[float, float] | None
    ) -> None:
        width = max(1, round(wide * self._ratio))
        lines = [points] if dash is None else _cut_dashes(points, *(each * self._ratio for each in dash))
        for line in lines:
            self._pen.line([tuple(point) for point in line.tolist()], fill=ink, width=width, joint="curve")

    def _write(self, x: float, y: float, words: str, colour: Colour) -> None:
        """Words whose lower left corner is at a place."""
        words = to_printable(words, _MOST_WORDS)
        left, top, right, bottom = self._font.measure(words)
        wide, tall = right - left + 8, bottom - top + 6
        x = max(2.0, min(x, self._image.width - wide - 2.0))
        y = max(2.0, min(y - tall, self._image.height - tall - 2.0))
        self._pen.rectangle([x, y, x + wide, y + tall], fill=(*_GROUND, round(255 * _GROUND_SHARE)))
        self._font.write(self._pen, (x + 4 - left, y + 3 - top), words, colour)


def _is_inside(points: Floats, corners: Corners) -> Bools:
    low, high = np.array(corners[:2]), np.array(corners[2:])
    return np.asarray(((points > low) & (points < high)).all(axis=1))


def _cut_dashes(points: Floats, dash: float, gap: float) -> list[Floats]:
    """The pieces of a line that are drawn where it is dashed."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    ends = np.concatenate([[0.0], np.cumsum(steps)])
    found = []
    for begin in np.arange(0.0, ends[-1], max(1.0, dash + gap)).tolist():
        end = min(begin + dash, float(ends[-1]))
        within = ends[(ends > begin) & (ends < end)]
        at = np.concatenate([[begin], within, [end]])
        found.append(np.column_stack([np.interp(at, ends, points[:, axis]) for axis in (0, 1)]))
    return found
