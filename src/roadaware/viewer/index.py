"""What the page asks for, JSON-ready: videos, boxes of a window, tubes, events, metrics, and errors by what they cost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.tube_errors import list_tube_errors
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import compute_pr_curve
from roadaware.online.events import read_events
from roadaware.scenes.advice import get_advice
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
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
from roadaware.viewer.opening import Opened, TableSource, load_tables

MOST_FRAMES = 1024
"""Frames of a window of boxes, at most."""
MOST_BOXES = 200_000
"""Boxes of a window, at most; what is more is said."""
_MOST_EVENTS = 20_000
_MOST_ERRORS = 2_000
_MOST_LISTS = 32
_CURVE_POINTS = 200
_TABLES = ("videos", "frames", "boxes", "labels", "tubes", "tube_labels", "frame_labels")
_AV = "av_action"
_USUAL_SCORE = 0.3


class Index:
    """Answers of the page about what was opened.

    Args:
        opened: the sets and evaluations.
    """

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self._sets = {side: _Side(source) for side, source in opened.sides.items()}
        self._errors: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
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
                "rejected": held.rejected,
            }
        return {
            "sides": sides,
            "videos": columns,
            "evaluations": [_describe_evaluation(folder, run) for folder, run in self.opened.evaluations],
            "error_kinds": self._error_kinds(),
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

    def boxes(self, video: str, first: int, end: int) -> dict[str, Any]:
        """The boxes of some frames by side, as columns.

        Args:
            video: its name.
            first, end: the frames, the end not included.

        Raises:
            UsageError: if these are no frames, or too many.
        """
        if not 0 <= first < end <= first + MOST_FRAMES:
            raise UsageError(f"a window has 1 to {MOST_FRAMES} frames from 0 on")
        return {
            side: held.boxes(video, first, end) for side, held in self._sets.items() if video in held.videos
        }

    @property
    def sets(self) -> dict[str, _Side]:
        """The sides, for what stands beside their boxes."""
        return self._sets

    def fps(self, video: str) -> float | None:
        """Frames per second of a video, as far as a set says so."""
        told = self._fact(video, "fps")
        return float(told) if told is not None and 0 < float(told) < 1e6 else None

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

    def _error_kinds(self) -> list[str]:
        """Kinds of tubes that truth and predictions both know."""
        truth = self._sets.get("truth")
        linked = [held for side, held in self._sets.items() if side != "truth" and held.has_tubes]
        if truth is None or not truth.has_tubes or not linked:
            return []
        known = set.union(*(held.tube_kinds for held in linked))
        shared = [kind for kind in truth.source.meta.vocabularies if kind in known & truth.tube_kinds]
        return ["agentness", *shared]

    def errors(self, side: str, kind: str, threshold: float) -> list[dict[str, Any]]:
        """The errors of tubes of a kind by what they cost, each with the frame that shows it.

        Args:
            side: of the predictions.
            kind: of the labels.
            threshold: smallest overlap of a hit.

        Raises:
            UsageError: if there is no such side or kind, or no ground truth.
            InputError: if ground truth and predictions do not fit each other.
        """
        truth, held = self._sets.get("truth"), self._sets.get(side)
        if truth is None or held is None or side == "truth" or kind not in self._error_kinds():
            raise UsageError("errors are told of tubes of a kind that ground truth and predictions know")
        if not 0 < threshold <= 1:
            raise UsageError("an overlap lies above 0 and up to 1")
        key = (side, kind, threshold)
        with self._lock:  # the same numbers twice at a time would cost twice the memory
            if key not in self._errors:
                while len(self._errors) >= _MOST_LISTS:
                    self._errors.pop(next(iter(self._errors)))
                self._errors[key] = self._list_errors(truth, held, kind, threshold)
            return self._errors[key]

    def _list_errors(self, truth: _Side, held: _Side, kind: str, threshold: float) -> list[dict[str, Any]]:
        config = next((run.config for _, run in self.opened.evaluations), DetectionConfig.default())
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
        matches = self._evaluation(number).matches.get(level)
        if matches is None or (kind, label) not in matches.classes or threshold not in matches.thresholds:
            raise UsageError("this evaluation has no such curve")
        found = compute_pr_curve(matches, kind, label, threshold)
        at = np.unique(np.linspace(0, max(0, len(found.score) - 1), _CURVE_POINTS).astype(np.int64))
        at = at[: len(found.score)]
        columns = {"recall": found.recall, "precision": found.precision, "score": found.score}
        return {name: values[at].round(4).tolist() for name, values in columns.items()} | {
            "n_truth": int(found.n_truth)
        }

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
        rows = source.scan("videos").collect().with_columns(pl.col("video").cast(pl.String))
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
        paths = self._tubes.filter(pl.col("parent").is_null() & pl.col("kind").ne_missing(_AV))
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
        told = self.source.summary.get("config", {}).get("begin_score")
        if isinstance(told, int | float) and 0 <= told <= 1:
            return float(told)
        advised = get_advice(self.source.meta).min_score
        return _USUAL_SCORE if advised is None else float(advised)

    @cached_property
    def rejected(self) -> list[list[Any]]:
        """Rows that a reader refused: file and reason; the first 200."""
        rows = self.source.scan("rejected").select("file", "reason").head(200).collect()
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

    def boxes(self, video: str, first: int, end: int) -> dict[str, Any]:
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
        found = rows.select([*wanted, *(["scores"] if loose else [])]).sort("frame").collect()
        more = max(0, len(found) - MOST_BOXES)
        found = found.head(MOST_BOXES)
        words = self._words_of_boxes(found, loose=loose)
        columns: dict[str, Any] = {
            "box": found["box"].to_list(),
            "frame": found["frame"].to_list(),
            **{name[:2]: _finite(found[name], 1) for name in CORNERS},
            "more": more,
        }
        if "tube" in held:
            columns["tube"] = found["tube"].fill_null(-1).to_list()
        if "score" in held:
            columns["score"] = _finite(found["score"], 3)
        if "interpolated" in held:
            columns["guessed"] = found["interpolated"].fill_null(value=False).cast(pl.Int8).to_list()
        if words is not None:
            columns["word"] = words
        return columns

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
        told = tubes.filter(pl.col("parent").is_null()).join(named, on="tube", how="left")
        scores = told["score"].round(3).to_list() if self.source.predicted else [None] * len(told)
        words = told["word"].fill_null("object").to_list()
        return dict(zip(told["tube"].to_list(), zip(words, scores, strict=True), strict=True))

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
                if row["kind"] == _AV:  # of the own vehicle, which has no box
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
        vocabulary = self.source.meta.vocabularies.get(_AV, ())
        layout = get_score_layout(self.source.meta, "frames")
        if "scores" in self._columns["frames"] and _AV in layout.kinds:
            rows = self.source.scan("frames").filter(pl.col("video").cast(pl.String) == video)
            table = rows.select("frame", "scores").drop_nulls().sort("frame").collect()
            if table.is_empty():
                return []
            best = convert_to_matrix(table["scores"], layout.width)[:, layout.columns(_AV)].argmax(axis=1)
            found = list(zip(table["frame"].to_list(), best.tolist(), strict=True))
        else:
            rows = self.source.scan("frame_labels").filter(
                (pl.col("video").cast(pl.String) == video) & (pl.col("kind").cast(pl.String) == _AV)
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
                found.append(_describe_event(event))
        return found

    def _crossing(self, video: str) -> dict[str, Any]:
        """Forecasts by name of the path: frames, probabilities and their intervals."""
        path = self.source.crossing
        if path is None or self.source.summary.get("video") != video:
            return {}
        return _read_crossing(path)

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
    findings = {str(what): count for what, count in (run.facts.get("findings") or {}).items()}
    return {
        "name": run.name,
        "folder": folder.name,
        "config": run.facts.get("config_name", ""),
        "resamples": run.draws,
        "notes": list(run.notes),
        "findings": findings,
        "levels": {level: list(held.thresholds) for level, held in run.matches.items()},
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


def _describe_event(event: dict[str, Any]) -> dict[str, Any]:
    labels = event.get("labels") or {}
    best = {
        kind: max(held, key=held.__getitem__)
        for kind, held in labels.items()
        if isinstance(held, dict) and held
    }
    words = " · ".join(str(best[kind]) for kind in ("agent", "action", "location", _AV) if kind in best)
    crossing = event.get("crossing") or {}
    if isinstance(crossing.get("probability"), int | float) and "crossing" in str(event.get("event")):
        words = f"{words} {crossing['probability']:.2f}".strip()
    return {
        "frame": int(event.get("frame") or 0),
        "event": str(event.get("event", "")),
        "tube": None if event.get("tube") is None else str(event["tube"]),
        "words": words or str(event.get("message") or ""),
    }


def _read_crossing(path: Path) -> dict[str, Any]:
    try:
        table = pl.read_parquet(path)
        if "crossing" not in table.columns:
            return {}
        rows = table.select("tube", "frame", "crossing", "low", "high").drop_nulls("crossing").sort("frame")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"expected forecasts, found: {error}", where=str(path)) from error
    return {
        str(tube): {
            "frame": held["frame"].to_list(),
            "p": _finite(held["crossing"], 3),
            "low": _finite(held["low"], 3),
            "high": _finite(held["high"], 3),
        }
        for (tube,), held in rows.group_by("tube", maintain_order=True)
    }


def _finite(values: pl.Series, digits: int) -> Sequence[float | None]:
    """Rounded numbers; what JSON cannot say is None."""
    numbers = values.cast(pl.Float64)
    rounded: list[float | None] = numbers.set(~numbers.is_finite(), None).round(digits).to_list()
    return rounded
