"""What the page asks for, JSON-ready: videos, boxes of a window, tubes, events, metrics, and errors by what they cost."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.evaluation.runs import EventRun, SceneRun
from roadaware.analysis.worst_tubes import list_box_errors, list_tube_errors
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import to_printable
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import compute_pr_curve
from roadaware.metrics.detection.rows import AGENTNESS, OF_FRAMES
from roadaware.online.events import read_events
from roadaware.scenes.advice import get_advice
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet
from roadaware.tasks.road_events import AGENTS, describe_event
from roadaware.viewer.box_index import (
    HUNDREDTHS,
    BoxIndex,
    describe_counts,
    name_boxes,
    name_labels,
    name_tubes,
    open_box_index,
    scan_labels,
)
from roadaware.viewer.filters import (
    BoxMasks,
    Condition,
    filter_boxes,
    find_differences,
    list_columns,
    summarize_differences,
)
from roadaware.viewer.items import find_owners, list_items, list_metrics
from roadaware.viewer.opening import Opened, TableSource, find_place, load_tables

MOST_FRAMES = 1024
"""Frames of a window of boxes, at most."""
MOST_BOXES = 200_000
"""Boxes of a window, at most; what is more is said."""
_MOST_EVENTS = 20_000
_MOST_ERRORS = 2_000
_MOST_LISTS = 32
_AT_ONCE_S = 1.0
_CURVE_POINTS = 200
_TABLES = ("videos", "frames", "boxes", "labels", "tubes", "tube_labels", "frame_labels")
_USUAL_SCORE = 0.3


class Index:
    """Answers of the page about what was opened.

    Args:
        opened: the sets and evaluations.
    """

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self._sets = {side: _Side(source) for side, source in opened.sides.items()}
        self._errors: dict[tuple[str, str, float, str], list[dict[str, Any]]] = {}
        self._items: dict[tuple[int, str], pl.DataFrame] = {}
        self._lock = threading.Lock()

    @cached_property
    def videos(self) -> list[str]:
        """Names of all videos, those of the ground truth first; their places are their numbers."""
        return list(dict.fromkeys(name for each in self._sets.values() for name in each.videos))

    def video(self, number: int) -> str:
        """The name of a video.

        Raises:
            UsageError: if there is none of that number.
        """
        if not 0 <= number < len(self.videos):
            raise UsageError(f"there are videos 0 to {len(self.videos) - 1}")
        return self.videos[number]

    def describe(self) -> dict[str, Any]:
        """The sides, the videos as columns, the evaluations and the kinds whose errors can be listed."""
        columns: dict[str, list[Any]] = {"name": self.videos}
        for key in ("n_frames", "fps", "width_px", "height_px", "splits"):
            columns[key] = [self._fact(name, key) for name in self.videos]
        sides = {}
        for side, held in self._sets.items():
            columns[f"tubes_{side}"] = [held.tube_counts.get(name, 0) for name in self.videos]
            sides[side] = {
                "name": held.source.name,
                "predicted": held.source.predicted,
                "dataset": held.source.meta.dataset,
                "tubes": held.has_tubes,
                "min_score": held.min_score,
                "notice": str(held.source.summary.get("notice", "")),
            }
        return {
            "sides": sides,
            "videos": columns,
            "evaluations": [_describe_evaluation(folder, run) for folder, run in self.opened.evaluations],
            "error_kinds": self._error_kinds(),
            "box_kinds": self._box_kinds(),
        }

    def _fact(self, video: str, key: str) -> Any:
        for held in self._sets.values():
            value = held.videos.get(video, {}).get(key)
            if value is not None:
                return value
        return None

    def describe_video(self, video: str) -> dict[str, Any]:
        """Tubes, the own vehicle's actions, events, forecasts and gaps of a video, by side."""
        return {side: held.describe(video) for side, held in self._sets.items() if video in held.videos}

    def boxes(self, video: str, first: int, end: int, conditions: Sequence[Condition] = ()) -> dict[str, Any]:
        """The boxes of some frames by side, as columns.

        Args:
            video: its name.
            first, end: the frames, the end not included.
            conditions: that boxes meet; a set without one of the columns shows all of its boxes.

        Raises:
            UsageError: if these are no frames, or too many.
        """
        if not 0 <= first < end <= first + MOST_FRAMES:
            raise UsageError(f"a window has 1 to {MOST_FRAMES} frames from 0 on")
        return {
            side: held.boxes(video, first, end, conditions)
            for side, held in self._sets.items()
            if video in held.videos
        }

    @property
    def sets(self) -> dict[str, _Side]:
        """The sides, for what stands beside their boxes."""
        return self._sets

    def fps(self, video: str) -> float | None:
        """Frames per second of a video, as far as a set says so."""
        fps = self._fact(video, "fps")
        return float(fps) if fps is not None and 0 < float(fps) < 1e6 else None

    def sizes(self, video: str) -> dict[str, tuple[int | None, int | None]]:
        """Side to width and height of the images that its boxes are in, of sides that have the video."""
        held = {side: each.videos[video] for side, each in self._sets.items() if video in each.videos}
        return {side: (facts.get("width_px"), facts.get("height_px")) for side, facts in held.items()}

    def names(self, side: str, video: str) -> dict[int, tuple[str, float | None]]:
        """Path to what it is called, and its score."""
        return self._sets[side].names(video)

    def counts(self, hundredth: int, hidden: set[str]) -> dict[str, Any]:
        """How many boxes of each side pass the filters, by video and class.

        Args:
            hundredth: lowest score of a box that has one, in hundredths.
            hidden: classes that are not counted.

        Raises:
            UsageError: if no score is that high.
        """
        if not 0 <= hundredth < HUNDREDTHS:
            raise UsageError("a score is 0 to 100 hundredths")
        return {
            side: describe_counts(held.box_index, self.videos, hundredth, hidden)
            for side, held in self._sets.items()
        }

    def name_boxes(self, side: str, boxes: pl.DataFrame) -> list[str | None]:
        """What each box of a side is: by the path that it belongs to, else by its own labels and scores.

        Args:
            side: of the boxes.
            boxes: rows with `box`, and `tube` and `scores` where the table has them.
        """
        return self._sets[side].name_boxes(boxes)

    def _error_kinds(self) -> list[str]:
        """Kinds of tubes that truth and predictions both know."""
        truth = self._sets.get("truth")
        linked = [held for side, held in self._sets.items() if side != "truth" and held.has_tubes]
        if truth is None or not truth.has_tubes or not linked:
            return []
        known = set().union(*(held.tube_kinds for held in linked)) - {AGENTNESS}
        shared = [kind for kind in truth.source.meta.vocabularies if kind in known & truth.tube_kinds]
        return [AGENTNESS, *shared]

    def _box_kinds(self) -> list[str]:
        """Kinds that boxes are judged by: those that truth and boxes with scores both know, agentness first."""
        truth = self._sets.get("truth")
        predicted = [held for side, held in self._sets.items() if side != "truth"]
        if truth is None:
            return []
        known = set().union(*(held.box_kinds for held in predicted if held.has_scored_boxes)) - {AGENTNESS}
        shared = [kind for kind in truth.source.meta.vocabularies if kind in known & truth.box_kinds]
        asked = truth.says_what_is_annotated and any(held.scores_agentness for held in predicted)
        return [AGENTNESS, *shared] if asked else shared

    def errors(self, side: str, kind: str, threshold: float, level: str = "video") -> list[dict[str, Any]]:
        """The errors of tubes or boxes of a kind by what they cost, each with the frame that shows it.

        Args:
            side: of the predictions.
            kind: of the labels.
            threshold: smallest overlap of a hit.
            level: `video` for tubes, `frame` for boxes.

        Raises:
            UsageError: if there is no such side or kind, or no ground truth.
            InputError: if ground truth and predictions do not fit each other.
        """
        truth, held = self._sets.get("truth"), self._sets.get(side)
        kinds = self._error_kinds() if level == "video" else self._box_kinds()
        if truth is None or held is None or side == "truth" or kind not in kinds:
            raise UsageError(
                "errors are told of tubes and boxes of a kind that ground truth and predictions know"
            )
        if not 0 < threshold <= 1 or level not in ("video", "frame"):
            raise UsageError("an overlap lies above 0 and up to 1, a level is video or frame")
        key = (side, kind, threshold, level)
        with self._lock:  # the same numbers twice at a time would cost twice the memory
            if key not in self._errors:
                while len(self._errors) >= _MOST_LISTS:
                    self._errors.pop(next(iter(self._errors)))
                find = self._list_errors if level == "video" else self._list_box_errors
                self._errors[key] = find(truth, held, kind, threshold)
            return self._errors[key]

    @property
    def _detection(self) -> DetectionConfig:
        """How tubes and boxes are judged: as by the first evaluation of road events."""
        judged = (run.config for _, run in self.opened.evaluations if isinstance(run, EventRun))
        return next(judged, DetectionConfig.default())

    def _list_box_errors(
        self, truth: _Side, held: _Side, kind: str, threshold: float
    ) -> list[dict[str, Any]]:
        table = list_box_errors(
            held.judged_boxes(Predictions), truth.judged_boxes(Scenes), self._detection, kind, threshold
        )
        return self._place(table.head(_MOST_ERRORS), held)

    def _list_errors(self, truth: _Side, held: _Side, kind: str, threshold: float) -> list[dict[str, Any]]:
        config = self._detection
        table = list_tube_errors(held.predictions, truth.scenes, config, kind, threshold)
        numbers = {name: place for place, name in enumerate(self.videos)}
        rows = []
        for row in table.head(_MOST_ERRORS).iter_rows(named=True):
            seen = held.span(row["tube"]) if row["tube"] is not None else None
            true = truth.span(row["truth"]) if row["truth"] is not None else None
            row["path"] = None if seen is None else seen[0]
            row["truth_path"] = None if true is None else true[0]
            row["frame"], row["span"] = _best_frame(seen, true)
            row["video"] = numbers.get(row["video"], -1)
            rows.append(row)
        return rows

    def metrics(self, number: int) -> list[dict[str, Any]]:
        """The rows of an evaluation: level, overlap, threshold, kind, label, value, interval, n and reason.

        Raises:
            UsageError: if there is no such evaluation.
        """
        run = self._evaluation(number)
        if not isinstance(run, EventRun):
            return list_metrics(run)
        names = ("metric", "level", "overlap", "threshold", "kind", "label", "value", "n", "reason")
        rows = run.summary.filter(pl.col("group").is_null())
        return [
            {**{name: row[name] for name in names}, "low": row["low_video"], "high": row["high_video"]}
            for row in rows.iter_rows(named=True)
        ]

    def curve(self, number: int, level: str, kind: str, label: str, threshold: float) -> dict[str, Any]:
        """Precision over recall of a class, thinned to 200 points.

        Args:
            number: of the evaluation.
            level: `frame`, or `video:` and the overlap.
            kind, label: the class.
            threshold: smallest overlap of a hit.

        Raises:
            UsageError: if there is none.
        """
        run = self._evaluation(number)
        matches = run.matches.get(level) if isinstance(run, EventRun) else None
        if matches is None or (kind, label) not in matches.classes or threshold not in matches.thresholds:
            raise UsageError("this evaluation has no such curve")
        found = compute_pr_curve(matches, kind, label, threshold)
        at = np.unique(np.linspace(0, max(0, len(found.score) - 1), _CURVE_POINTS).astype(np.int64))
        at = at[: len(found.score)]
        columns = {"recall": found.recall, "precision": found.precision, "score": found.score}
        return {name: values[at].round(4).tolist() for name, values in columns.items()} | {
            "n_truth": int(found.n_truth)
        }

    def items(self, number: int, metric: str, label: str) -> dict[str, Any]:
        """What stands behind a number of an evaluation of something else than road events, the dearest first.

        Args:
            number: of the evaluation.
            metric: of the whole, by name.
            label: of one class; all where empty.

        Returns:
            `labels`, those that items have; `rows`, up to 2,000, in the form of those of `errors`; `more`, how many
            were left out; `strange`, how many name a box that is not there in the tables that were named.

        Raises:
            UsageError: if there is no such evaluation or number.
            InputError: if it keeps no rows of single items.
        """
        run = self._evaluation(number)
        if isinstance(run, EventRun):
            raise UsageError("errors of road events are listed by kind, side and overlap")
        with self._lock:
            key = (number, metric)
            if key not in self._items:
                while len(self._items) >= _MOST_LISTS:
                    self._items.pop(next(iter(self._items)))
                self._items[key] = list_items(run, metric, self.opened)
            table = self._items[key]
        labels = table["label"].drop_nulls().unique().sort().to_list()
        table = table.filter(pl.col("label") == label) if label else table
        predictions = run.facts.get("predictions") or []
        named = [side for side, held in self.opened.predicted.items() if held.name in predictions]
        side = next(iter([*named, *self.opened.predicted]), None)
        rows = self._place(table.head(_MOST_ERRORS), None if side is None else self._sets[side])
        strange = sum(bool(row.pop("strange", False)) for row in rows)
        more = max(0, len(table) - _MOST_ERRORS)
        return {"labels": labels, "side": side, "rows": rows, "more": more, "strange": strange}

    def _place(self, table: pl.DataFrame, held: _Side | None) -> list[dict[str, Any]]:
        """Items or errors with the number of their video, their frame and span, and the paths that they are of."""
        numbers = {name: place for place, name in enumerate(self.videos)}
        truth = self._sets.get("truth")
        owners = [
            {} if side is None else find_owners(side.source, table[name].drop_nulls().unique().to_list())
            for side, name in ((held, "box"), (truth, "truth_box"))
        ]
        rows = []
        for row in table.iter_rows(named=True):
            spans = []
            for side, tube, box, known in (
                (held, "tube", "box", owners[0]),
                (truth, "truth", "truth_box", owners[1]),
            ):
                video, frame, owner = known.get(row[box], (None, None, None))
                # A box of another place, or none: these are not the tables that were judged.
                if row[box] is not None and (video != row["video"] or row["frame"] not in (None, frame)):
                    row[box], row[tube], frame, owner, row["strange"] = None, None, None, None, True
                found = row[tube] if row[tube] is not None else owner
                span = side.span(found) if side is not None and found is not None else None
                row[f"{tube}_path"] = None if span is None else span[0]
                spans.append((span, frame))
            row["path"] = row.pop("tube_path")
            (seen, at), (true, true_at) = spans
            frames = [each for each in (row.pop("frame"), at, true_at) if each is not None]
            first, end = row.pop("first"), row.pop("end")
            if first is None or end is None:
                first, end = (frames[0], frames[0] + 1) if frames else (None, None)
            if first is None:
                row["frame"], row["span"] = _best_frame(seen, true)
            else:
                row["frame"], row["span"] = (
                    frames[0] if frames else (first + max(first, end - 1)) // 2,
                    [first, end],
                )
            row["video"] = numbers.get(row["video"], -1)
            rows.append(row)
        return rows

    def findings(self) -> list[dict[str, Any]]:
        """Findings of audits, doctors, checks, evaluations and readers: `from`, `title`, `rank`, `words`, and where."""
        numbers = {name: place for place, name in enumerate(self.videos)}
        found = []
        for folder, listed in self.opened.findings:
            for row in listed:
                video = numbers.get(str(row.get("video"))) if row.get("video") is not None else None
                found.append({"from": folder.name, **row, "video": video, "named": row.get("video")})
        for folder, run in self.opened.evaluations:
            notes = [(text, "note") for text in getattr(run, "notes", ()) or ()]
            notes += [(text, "note") for text in getattr(getattr(run, "result", None), "notes", ())]
            notes += [
                (f"{count} × {what}", "finding") for what, count in (run.facts.get("findings") or {}).items()
            ]
            found += [
                {"from": folder.name, "title": "evaluation", "rank": rank, "words": text}
                for text, rank in notes
            ]
        for held in self._sets.values():
            for file, item, reason in held.rejected:
                words = f"{file}: {item or ''} {reason}"
                found.append(
                    {"from": held.source.name, "title": "refused", "rank": "refused", "words": words}
                )
        truth = self._sets.get("truth") or next(iter(self._sets.values()))
        for row in found:
            if row.get("video") is None and row.get("named") is None:
                row["video"], frame = find_place(row["words"], numbers)
                row.setdefault("frame", frame)
            track = row.get("track")
            if row["video"] is not None and track is None:
                track = next(iter(re.findall(r"track '([^']{1,100})'", row["words"])), None)
            path = truth.find_path(self.videos[row["video"]], track) if row["video"] is not None else None
            row["truth_path"] = None if path is None else path[0]
            if row.get("frame") is None and path is not None:
                row["frame"] = path[1]
        return found

    def columns(self, side: str) -> list[dict[str, Any]]:
        """What boxes of a side can be filtered by; see `filters.list_columns`."""
        if side not in self._sets:
            raise UsageError("there is no such side")
        return list_columns(self._sets[side].source)

    def count(self, conditions: Sequence[Condition]) -> dict[str, Any]:
        """How many boxes of each side meet the conditions, of how many, and in which videos (as numbers)."""
        numbers = {name: place for place, name in enumerate(self.videos)}
        found: dict[str, dict[str, Any]] = {}
        for side, held in self._sets.items():
            total = held.box_count
            try:
                counts = held.masks.count(conditions)
            except UsageError as error:  # a column of another side's tables narrows nothing here
                found[side] = {"boxes": total, "of": total, "videos": None, "without": str(error)}
                continue
            videos = sorted((numbers[name], count) for name, count in counts.items() if name in numbers)
            found[side] = {"boxes": sum(counts.values()), "of": total, "videos": videos, "without": None}
        if all(each["without"] for each in found.values()):
            raise UsageError(next(iter(found.values()))["without"])
        return found

    def differences(self, one: str, other: str, overlap: float, first: int) -> dict[str, Any]:
        """Boxes that one side of predictions has and the other lacks, by video, from a video on for about a second.

        Args:
            one, other: the sides.
            overlap: smallest intersection over union of boxes that are the same.
            first: number of the video to begin with.

        Returns:
            `videos`: number, boxes of the one alone, of the other alone, and of both sides in all; `next`, the video
            to go on with, None at the end.

        Raises:
            UsageError: if there is no such side.
        """
        sides = self._pair(one, other, overlap)
        found: list[list[int]] = []
        begun, number = time.monotonic(), first
        while number < len(self.videos) and (number == first or time.monotonic() - begun < _AT_ONCE_S):
            boxes = self._compared(self.videos[number], sides)
            alone = find_differences(*boxes, overlap)
            found.append([number, len(alone[0]), len(alone[1]), len(boxes[0]) + len(boxes[1])])
            number += 1
        return {"videos": found, "next": number if number < len(self.videos) else None}

    def list_differences(self, video: str, one: str, other: str, overlap: float) -> list[dict[str, Any]]:
        """Where two sides differ in a video: tubes, or frames of boxes without tubes, with the most boxes first."""
        sides = self._pair(one, other, overlap)
        alone = find_differences(*self._compared(video, sides), overlap)
        rows = [
            row
            for side, boxes in zip((one, other), alone, strict=True)
            for row in summarize_differences(boxes, side)
        ]
        return sorted(rows, key=lambda row: -row["boxes"])[:_MOST_ERRORS]

    def _compared(self, video: str, sides: tuple[_Side, _Side]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The boxes of both, those of the second in the pixels of the first."""
        one, other = (side.loose_boxes(video) for side in sides)
        sizes = [
            [side.videos.get(video, {}).get(name) for name in ("width_px", "height_px")] for side in sides
        ]
        if sizes[0] != sizes[1] and all(size for both in sizes for size in both):
            grow = [mine / own for mine, own in zip(*sizes, strict=True)] * 2
            other = other.with_columns(pl.col(name) * each for name, each in zip(CORNERS, grow, strict=True))
        return one, other

    def _pair(self, one: str, other: str, overlap: float) -> tuple[_Side, _Side]:
        predicted = self.opened.predicted
        if one == other or not {one, other} <= predicted.keys() or not 0 < overlap <= 1:
            raise UsageError("two sides of predictions are compared, at an overlap above 0 and up to 1")
        return self._sets[one], self._sets[other]

    def _evaluation(self, number: int) -> Any:
        if not 0 <= number < len(self.opened.evaluations):
            raise UsageError("there is no such evaluation")
        return self.opened.evaluations[number][1]


class _Side:
    """One set of tables, video by video."""

    def __init__(self, source: TableSource) -> None:
        self.source = source
        self._lock, self._box_index = threading.Lock(), None  # type: tuple[threading.Lock, BoxIndex | None]
        self._columns = {name: source.scan(name).collect_schema().names() for name in _TABLES}
        try:
            rows = source.scan("videos").collect().with_columns(pl.col("video").cast(pl.String))
        except pl.exceptions.PolarsError as error:
            raise DamagedError(
                f"the table videos is not as roadaware writes it: {str(error).splitlines()[0]}",
                where=to_printable(source.name),
            ) from error
        self.videos: dict[str, dict[str, Any]] = {row["video"]: row for row in rows.iter_rows(named=True)}
        if not self.videos:  # predictions need not list the videos that they are of
            self.videos = {name: {} for name in self.box_index.videos}

    @property
    def has_tubes(self) -> bool:
        """Whether boxes belong to tubes."""
        return "tubes" in self.source.tables and not self._tubes.is_empty()

    @cached_property
    def _bare_tubes(self) -> pl.DataFrame:
        """All tubes with the columns that are looked at."""
        wanted: dict[str, Any] = {
            "name": pl.String,
            "start_frame": pl.Int64,
            "end_frame": pl.Int64,
            "score": pl.Float64,
            "parent": pl.Int64,
            "kind": pl.String,
            "spans": pl.List(pl.List(pl.Int64)),
        }
        held = self._columns["tubes"]
        given = [
            (pl.col(name).cast(kind) if name in held else pl.lit(None, kind)).alias(name)
            for name, kind in wanted.items()
        ]
        return self.source.scan("tubes").select("tube", pl.col("video").cast(pl.String), *given).collect()

    @cached_property
    def _tubes(self) -> pl.DataFrame:
        """All tubes, with the frames of their boxes where they tell none."""
        tubes = self._bare_tubes
        lacks = tubes.filter(pl.col("parent").is_null() & pl.col("start_frame").is_null())
        if len(lacks) and "tube" in self._columns["boxes"]:
            ends = self.box_index.spans
            tubes = tubes.join(ends, on="tube", how="left", maintain_order="left").with_columns(
                pl.coalesce("start_frame", "first").alias("start_frame"),
                pl.coalesce("end_frame", "last").alias("end_frame"),
            )
        return tubes

    @cached_property
    def _labels(self) -> pl.DataFrame:
        """Labels of tubes: tube, kind, label by name, score."""
        found = self.source.scan("tube_labels").collect()
        if "score" not in found.columns:
            found = found.with_columns(score=pl.lit(None, pl.Float64))
        return self._name(found).select("tube", "kind", "word", pl.col("score").cast(pl.Float64))

    def _name(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with `word`, what their `label` of `kind` is called."""
        return name_labels(self.source, rows)

    @cached_property
    def tube_counts(self) -> dict[str, int]:
        """Video to how many paths it has that reach the usual score."""
        paths = self._tubes.filter(pl.col("parent").is_null() & pl.col("kind").ne_missing(OF_FRAMES))
        if self.source.predicted:
            paths = paths.filter(pl.col("score").fill_null(1.0) >= self.min_score)
        return dict(paths.group_by("video").len().rows())

    @cached_property
    def tube_kinds(self) -> set[str]:
        """Kinds of labels that tubes have."""
        return {str(kind) for kind in self._labels["kind"].unique().to_list()}

    @property
    def min_score(self) -> float:
        """Score from which on tubes are shown at first: what the watch reported, else what the detector advises.

        Boxes without tubes are all shown: scores of proposals are no confidences.
        """
        if not self.source.predicted or not self.has_tubes:
            return 0.0
        threshold = self.source.summary.get("config", {}).get("begin_score")
        if isinstance(threshold, int | float) and 0 <= threshold <= 1:
            return float(threshold)
        advised = get_advice(self.source.meta).min_score
        return _USUAL_SCORE if advised is None else float(advised)

    @cached_property
    def rejected(self) -> list[list[Any]]:
        """Rows that a reader refused: file, item and reason; the first 200."""
        table = self.source.scan("rejected")
        item = pl.col("item") if "item" in table.collect_schema() else pl.lit(None, pl.String).alias("item")
        rows = table.select("file", item, "reason").head(200).collect()
        return [list(row) for row in rows.rows()]

    @cached_property
    def box_index(self) -> BoxIndex:
        """Where the boxes of each video lie, and how many there are by class and score."""
        with self._lock:  # two pages that begin at once: one pass over the boxes serves both
            if self._box_index is None:
                self._box_index = open_box_index(self.source, self._bare_tubes, self._labels)
            return self._box_index

    def scan_boxes(self, video: str) -> pl.LazyFrame:
        """The boxes of a video with all of their columns."""
        return self._rows(video)

    @property
    def tubes(self) -> pl.DataFrame:
        """All tubes: `tube`, `video`, `name`, `parent` and more."""
        return self._tubes

    def _rows(self, video: str) -> pl.LazyFrame:
        """The boxes of a video."""
        table, runs = self.source.scan("boxes"), self.box_index.rows
        mine = pl.col("video").cast(pl.String) == video
        if runs is None:
            return table.filter(mine)
        # An index that was forged can hide boxes, and never shows those of another video.
        parts = [table.slice(*run).filter(mine) for run in runs.get(video, [])]
        return pl.concat(parts) if parts else table.clear()

    @property
    def has_scored_boxes(self) -> bool:
        """Whether boxes say what they are, each with a score."""
        held = self._columns["boxes"]
        return "scores" in held or (
            "score" in held and bool({"labels", "tube_labels"} & self.source.tables.keys())
        )

    @cached_property
    def box_kinds(self) -> set[str]:
        """Kinds of labels that boxes have of their own: by dense scores, or one by one."""
        dense = "scores" in self._columns["boxes"]
        found = set(get_score_layout(self.source.meta, "boxes").kinds) if dense else set()
        if "labels" in self.source.tables:
            kinds = self.source.scan("labels").select(pl.col("kind").cast(pl.String).unique()).collect()
            found |= set(kinds["kind"].to_list())
        return found

    @property
    def says_what_is_annotated(self) -> bool:
        """Whether there are boxes, and frames that say which were annotated: of others no prediction is wrong."""
        return "boxes" in self.source.tables and "annotated" in self._columns["frames"]

    @cached_property
    def scores_agentness(self) -> bool:
        """Whether the score of a box is agentness, by the rule of `metrics.detection.config.is_agentness_scored`.

        Told without reading the boxes, of which there may be millions.
        """
        held, tables = self._columns["boxes"], self.source.tables
        if "score" not in held or "boxes" not in tables:
            return False
        if "labels" in tables and AGENTNESS not in self.source.meta.vocabularies:
            return False
        if "tube" not in held or "kind" not in self._columns["tubes"]:
            return True
        own = pl.col("parent").is_null() & pl.col("kind").is_not_null() & (pl.col("kind") != OF_FRAMES)
        owners = self._bare_tubes.filter(own)["tube"]
        if owners.is_empty():
            return True
        owned = self.source.scan("boxes").filter(pl.col("tube").is_in(owners.implode()))
        return owned.select("tube").head(1).collect().is_empty()

    @cached_property
    def masks(self) -> BoxMasks:
        """Which boxes meet conditions."""
        return BoxMasks(self.source, self.box_index.rows)

    @cached_property
    def box_count(self) -> int:
        """How many boxes there are."""
        return int(self.source.scan("boxes").select(pl.len()).collect().item())

    def find_path(self, video: str, name: str | None) -> tuple[int, int] | None:
        """The path of a name in a video, and its first frame; None where there is none, or several."""
        if name is None:
            return None
        rows = self._tubes.filter(
            (pl.col("video") == video) & (pl.col("name") == name) & pl.col("parent").is_null()
        )
        return (rows["tube"][0], int(rows["start_frame"][0] or 0)) if len(rows) == 1 else None

    def loose_boxes(self, video: str) -> pl.DataFrame:
        """The boxes of a video that are shown at first: `box`, `video`, `frame`, corners and `tube`."""
        held = self._columns["boxes"]
        names = [
            "box",
            pl.col("video").cast(pl.String),
            "frame",
            *CORNERS,
            *(["tube"] if "tube" in held else []),
        ]
        rows = self._rows(video)
        if "score" in held and self.min_score > 0:
            rows = rows.filter(pl.col("score").fill_null(1.0) >= self.min_score)
        return rows.select(names).collect()

    def judged_boxes(self, kind: type[TableSet]) -> Any:
        """What boxes are judged by, dense scores with it."""
        return load_tables(self.source, (*_TABLES, "relations"), kind, dense=True)

    def boxes(self, video: str, first: int, end: int, conditions: Sequence[Condition] = ()) -> dict[str, Any]:
        """Columns of the boxes of some frames; `word` is what a box without a tube is."""
        held = self._columns["boxes"]
        wanted = [
            "box",
            "frame",
            *CORNERS,
            *(name for name in ("tube", "score", "interpolated") if name in held),
        ]
        loose = "scores" in held and "tube" not in held
        rows = self._rows(video).filter(pl.col("frame").is_between(first, end, closed="left"))
        if conditions:
            with contextlib.suppress(UsageError):  # a column of another side's tables narrows nothing here
                rows = filter_boxes(self.source, rows, conditions)
        found = rows.select([*wanted, *(["scores"] if loose else [])]).sort("frame").collect()
        more = max(0, len(found) - MOST_BOXES)
        found = found.head(MOST_BOXES)
        words = self._words_of_boxes(found, loose=loose)
        columns: dict[str, Any] = {
            "box": found["box"].to_list(),
            "frame": found["frame"].to_list(),
            **{name[:2]: round_finite(found[name], 1) for name in CORNERS},
            "more": more,
        }
        if "tube" in held:
            columns["tube"] = found["tube"].fill_null(-1).to_list()
        if "score" in held:
            columns["score"] = round_finite(found["score"], 3)
        if "interpolated" in held:
            columns["guessed"] = found["interpolated"].fill_null(value=False).cast(pl.Int8).to_list()
        if words is not None:
            columns["word"] = words
        return columns

    @cached_property
    def _path_words(self) -> dict[int, str]:
        """Path to what it is: the label that weighs most of the first kind that it has, as the page names it."""
        rows = self._labels.join(
            self._tubes.select("tube", "parent", "score", "start_frame", "end_frame"), on="tube"
        )
        first = {kind: place for place, kind in enumerate(("agent", "action", "location", "duplex", "event"))}
        length = (pl.col("end_frame") - pl.col("start_frame")).fill_null(1).clip(1)
        weighed = rows.select(
            pl.coalesce("parent", "tube").alias("path"),
            "word",
            place=pl.col("kind").replace_strict(first, default=9, return_dtype=pl.Int64),
            weight=pl.coalesce("score", "score_right").fill_null(1.0) * length,
        )
        summed = weighed.group_by("path", "place", "word", maintain_order=True).agg(pl.col("weight").sum())
        ranked = summed.sort("path", "place", -pl.col("weight"), maintain_order=True)
        return dict(ranked.unique("path", keep="first", maintain_order=True).select("path", "word").rows())

    def name_boxes(self, boxes: pl.DataFrame) -> list[str | None]:
        """What each box is; None where nothing tells it."""
        own = self._words_of_boxes(boxes, loose="scores" in boxes.columns) or [None] * len(boxes)
        tubes = boxes["tube"].to_list() if "tube" in boxes.columns else [None] * len(boxes)
        return [self._path_words.get(tube, word) for tube, word in zip(tubes, own, strict=True)]

    def _words_of_boxes(self, found: pl.DataFrame, *, loose: bool) -> list[str | None] | None:
        """What each box is by its own labels, else by the best of its dense scores; None where boxes say nothing."""
        return name_boxes(self.source, found, loose=loose)

    def names(self, video: str) -> dict[int, tuple[str, float | None]]:
        """Path to what it is called, and its score."""
        tubes = self._tubes.filter(pl.col("video") == video)
        labels = self._labels.join(tubes.select("tube"), on="tube", how="semi")
        known = set(labels.select("tube", "kind").rows())
        rows = [(*row, None) for row in self._labels_of_boxes(video) if row[:2] not in known]
        more = pl.DataFrame(rows, schema=labels.schema, orient="row")
        named = name_tubes(tubes, pl.concat([labels, more]))
        table = tubes.filter(pl.col("parent").is_null()).join(named, on="tube", how="left")
        scores = table["score"].round(3).to_list() if self.source.predicted else [None] * len(table)
        words = table["word"].fill_null("object").to_list()
        return dict(zip(table["tube"].to_list(), zip(words, scores, strict=True), strict=True))

    def describe(self, video: str) -> dict[str, Any]:
        """Tubes and what else there is of a video."""
        tubes = self._tubes.filter(pl.col("video") == video)
        labels = self._labels.join(tubes.select("tube"), on="tube", how="semi")
        words: dict[int, list[list[Any]]] = {}
        for tube, kind, word, score in labels.iter_rows():
            words.setdefault(tube, []).append([kind, word, None if score is None else round(score, 3)])
        for tube, kind, word in self._labels_of_boxes(video):
            if all(known != kind for known, _, _ in words.get(tube, ())):
                words.setdefault(tube, []).append([kind, word, None])
        paths, parts = [], []
        for row in tubes.iter_rows(named=True):
            score = None if row["score"] is None else round(row["score"], 3)
            if row["parent"] is None:
                if row["kind"] == OF_FRAMES:  # of the own vehicle, which has no box
                    continue
                paths.append(
                    [
                        row["tube"],
                        row["name"],
                        row["start_frame"],
                        row["end_frame"],
                        score,
                        words.get(row["tube"], []),
                    ]
                )
            else:
                parts.append([row["tube"], row["parent"], row["spans"], score, words.get(row["tube"], [])])
        facts = self.videos[video]
        return {
            "size": [facts.get("width_px"), facts.get("height_px")],
            "paths": paths,
            "parts": parts,
            "says": build_sentences(paths, parts, facts.get("fps")),
            "av": self._av_actions(video),
            "gaps": self._gaps(video),
            "events": self._events(video),
            "crossing": self._crossing(video),
        }

    def _labels_of_boxes(self, video: str) -> list[tuple[int, str, str]]:
        """Tube, kind and the label that most of its boxes have, where boxes carry labels of their own."""
        if "labels" not in self.source.tables or "tube" not in self._columns["boxes"]:
            return []
        boxes = self._rows(video).select("box", "tube").drop_nulls().collect()
        labels = scan_labels(self.source, boxes["box"])
        counts = labels.join(boxes, on="box").group_by("tube", "kind", "word").len()
        best = counts.sort("len", "word", descending=[True, False]).unique(["tube", "kind"], keep="first")
        return best.sort("tube", "kind").select("tube", "kind", "word").rows()

    def span(self, tube: int) -> tuple[int, int, int] | None:
        """The path that owns the boxes of a tube, and the frames from its first to behind its last."""
        rows = self._tubes.filter(pl.col("tube") == tube)
        if rows.is_empty():
            return None
        row = rows.row(0, named=True)
        if row["parent"] is None:
            return tube, int(row["start_frame"] or 0), int(row["end_frame"] or 1)
        owner = self.span(row["parent"]) if row["parent"] != tube else None
        spans = row["spans"]
        if spans:
            return row["parent"], int(spans[0][0]), int(spans[-1][1])
        return owner

    def _av_actions(self, video: str) -> list[list[Any]]:
        """What the own vehicle does, as [first, end, word]."""
        vocabulary = self.source.meta.vocabularies.get(OF_FRAMES, ())
        layout = get_score_layout(self.source.meta, "frames")
        if "scores" in self._columns["frames"] and OF_FRAMES in layout.kinds:
            rows = self.source.scan("frames").filter(pl.col("video").cast(pl.String) == video)
            table = rows.select("frame", "scores").drop_nulls().sort("frame").collect()
            if table.is_empty():
                return []
            best = convert_to_matrix(table["scores"], layout.width)[:, layout.columns(OF_FRAMES)].argmax(
                axis=1
            )
            found = list(zip(table["frame"].to_list(), best.tolist(), strict=True))
        else:
            rows = self.source.scan("frame_labels").filter(
                (pl.col("video").cast(pl.String) == video) & (pl.col("kind").cast(pl.String) == OF_FRAMES)
            )
            found = rows.select("frame", "label").sort("frame").collect().rows()
        runs: list[list[Any]] = []
        for frame, label in found:
            if runs and runs[-1][2] == label and runs[-1][1] == frame:
                runs[-1][1] = frame + 1
            else:
                runs.append([frame, frame + 1, label])
        named = dict(enumerate(vocabulary))
        return [[first, end, named.get(label, str(label))] for first, end, label in runs]

    def _gaps(self, video: str) -> list[list[int]]:
        """Frames between the first and the last that a stream lacks, as [first, end)."""
        if not self.source.predicted:
            return []
        rows = self.source.scan("frames").filter(pl.col("video").cast(pl.String) == video)
        frames = rows.select("frame").collect().to_series().sort().to_list()
        return [[a + 1, b] for a, b in itertools.pairwise(frames) if b > a + 1]

    def _events(self, video: str) -> list[dict[str, Any]]:
        """What was reported, when: frame, what, the name of the path, words."""
        path = self.source.events
        if path is None or self.source.summary.get("video") != video:
            return []
        found: list[dict[str, Any]] = []
        for event in read_events(path):
            if len(found) >= _MOST_EVENTS:
                break
            if event.get("event") != "update":
                labels = event.get("labels") or {}
                best = {
                    kind: max(held, key=held.__getitem__)
                    for kind, held in labels.items()
                    if isinstance(held, dict) and held
                }
                words = " · ".join(
                    str(best[kind]) for kind in ("agent", "action", "location", OF_FRAMES) if kind in best
                )
                crossing = event.get("crossing") or {}
                if isinstance(crossing.get("probability"), int | float) and "crossing" in str(
                    event.get("event")
                ):
                    words = f"{words} {crossing['probability']:.2f}".strip()
                found.append(
                    {
                        "frame": int(event.get("frame") or 0),
                        "event": str(event.get("event", "")),
                        "tube": None if event.get("tube") is None else str(event["tube"]),
                        "words": words or str(event.get("message") or ""),
                    }
                )
        return found

    def _crossing(self, video: str) -> dict[str, Any]:
        """Forecasts by name of the path: frames, probabilities and their intervals."""
        path = self.source.crossing
        if path is None or self.source.summary.get("video") != video:
            return {}
        try:
            table = read_parquet(path)
            if "crossing" not in table.columns:
                return {}
            rows = (
                table.select("tube", "frame", "crossing", "low", "high").drop_nulls("crossing").sort("frame")
            )
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"expected forecasts, found: {error}", where=str(path)) from error
        return {
            str(tube): {
                "frame": held["frame"].to_list(),
                "p": round_finite(held["crossing"], 3),
                "low": round_finite(held["low"], 3),
                "high": round_finite(held["high"], 3),
            }
            for (tube,), held in rows.group_by("tube", maintain_order=True)
        }

    @cached_property
    def predictions(self) -> Predictions:
        """The tables of tubes as Predictions."""
        found: Predictions = load_tables(
            self.source, ("videos", "boxes", "tubes", "tube_labels"), Predictions
        )
        return found

    @cached_property
    def scenes(self) -> Scenes:
        """The tables of tubes as Scenes."""
        names = ("videos", "frames", "boxes", "labels", "tubes", "tube_labels")
        found: Scenes = load_tables(self.source, names, Scenes)
        return found


def _describe_evaluation(folder: Path, run: Any) -> dict[str, Any]:
    events = isinstance(run, EventRun)
    return {
        "name": run.name,
        "folder": folder.name,
        "config": run.facts.get("config_name", ""),
        "resamples": run.resamples,
        "subject": "events" if events else run.task.title if isinstance(run, SceneRun) else "pedestrians",
        "events": events,
        "levels": {level: list(held.thresholds) for level, held in run.matches.items()} if events else {},
    }


def _best_frame(
    seen: tuple[int, int, int] | None, true: tuple[int, int, int] | None
) -> tuple[int, list[int]]:
    """The frame that shows an error, and the frames it is about: where both are there, else the middle of the one."""
    spans = [span[1:] for span in (seen, true) if span is not None]
    if not spans:
        return 0, [0, 1]
    both = (max(span[0] for span in spans), min(span[1] for span in spans))
    first, end = both if both[0] < both[1] else spans[0]
    whole = [min(span[0] for span in spans), max(span[1] for span in spans)]
    return (first + max(first, end - 1)) // 2, whole


def round_finite(values: pl.Series, digits: int) -> list[float | None]:
    """Rounded numbers; what JSON cannot say is None."""
    numbers = values.cast(pl.Float64)
    rounded: list[float | None] = numbers.set(~numbers.is_finite(), None).round(digits).to_list()
    return rounded


def build_sentences(
    paths: Sequence[Sequence[Any]], parts: Sequence[Sequence[Any]], fps: float | None
) -> dict[str, str]:
    """Path, as text, to a sentence on it: the agent, action and place that it has longest, and from when to when.

    Args:
        paths: tube, name, first frame, end, score and labels (kind, label, score) of each.
        parts: tube, path, spans of frames, score and labels of each.
        fps: frames per second; without them no times are said.
    """
    weights: dict[int, dict[tuple[str, str], float]] = {}

    def add(path: int, labels: Sequence[Sequence[Any]], frames: int, score: float | None) -> None:
        held = weights.setdefault(path, {})
        for kind, label, own in labels:
            value = next((each for each in (own, score) if each is not None), 1.0)
            held[kind, label] = held.get((kind, label), 0.0) + value * frames

    for tube, _, first, end, score, labels in paths:
        add(tube, labels, max(1, (end or 0) - (first or 0)), score)
    for _, path, spans, score, labels in parts:
        add(path, labels, sum(end - start for start, end in spans or []) or 1, score)
    found: dict[str, str] = {}
    for tube, _, first, end, *_ in paths:
        best: dict[str, str] = {}
        for (kind, label), _ in sorted(weights[tube].items(), key=lambda item: -item[1]):
            best.setdefault(kind, label)
        if best.get("agent") not in AGENTS:
            continue
        labels = {kind: [best[kind]] for kind in ("agent", "action", "location") if kind in best}
        known = bool(fps) and first is not None and end is not None
        times = (first / fps, end / fps) if known and fps else (None, None)
        found[str(tube)] = describe_event(labels, *times)
    return found
