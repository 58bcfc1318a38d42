"""The tubes that went most wrong: missed ground truth and confident false predictions, at a few of their frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import build_tube_table
from roadaware.scenes.concatenation import get_image_sizes, rescale_predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

Spans = tuple[tuple[int, int], ...]

WORST_AT = 0.5
"""The overlap that a tube must miss to be called wrong."""
_FIRST_CHOICES = ("agent", "action", "event")


@dataclass(frozen=True, eq=False)
class Strip:
    """A tube that went wrong, at some of its frames.

    Args:
        says: what went wrong, in words.
        size_px: (width, height) of the image.
        frames: (k,) the frames that are shown, rising, at least one.
        truth_px: (k, 4) the ground-truth box in each (x1, y1, x2, y2), NaN where there is none.
        claim_px: (k, 4) the predicted box in each, NaN where there is none.
        truth_spans: [start, end) frames of the whole ground-truth tube; empty where there is none.
        claim_spans: those of the predicted tube.
    """

    says: str
    size_px: tuple[float, float]
    frames: Ints
    truth_px: Floats
    claim_px: Floats
    truth_spans: Spans = ()
    claim_spans: Spans = ()

    def __post_init__(self) -> None:
        shape = (len(self.frames), 4)
        if self.truth_px.shape != shape or self.claim_px.shape != shape or not len(self.frames):
            raise ValueError(
                f"{len(self.frames)} frames need as many boxes of truth and prediction, at least 1"
            )

    def as_dict(self) -> dict[str, Any]:
        """The strip, JSON-ready."""
        return {
            "says": self.says,
            "size_px": list(self.size_px),
            "frames": self.frames.tolist(),
            "truth_px": _list_boxes(self.truth_px),
            "claim_px": _list_boxes(self.claim_px),
            "truth_spans": [list(span) for span in self.truth_spans],
            "claim_spans": [list(span) for span in self.claim_spans],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Strip:
        """The strip that `as_dict` gave.

        Raises:
            InputError: if something is missing or of a wrong kind.
        """
        try:
            spans = [
                tuple((int(a), int(b)) for a, b in data[name]) for name in ("truth_spans", "claim_spans")
            ]
            boxes = [_boxes(data[name]) for name in ("truth_px", "claim_px")]
            wide, high = (float(side) for side in data["size_px"])
            frames = np.array(data["frames"], dtype=np.int64)
            return cls(str(data["says"]), (wide, high), frames, boxes[0], boxes[1], spans[0], spans[1])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a strip of a tube is incomplete: {error}") from error


def select_worst_tubes(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    *,
    kind: str | None = None,
    threshold: float = WORST_AT,
    most: int = 6,
    shown: int = 8,
) -> list[Strip]:
    """Half of them ground-truth tubes that nothing matched, the longest first; half the most confident false predictions.

    Args:
        predictions: with labelled tubes.
        scenes: ground truth.
        config: how tubes are compared.
        kind: of the labels (default: the first of agent, action, event that tubes are predicted for).
        threshold: overlap of a match.
        most: how many tubes.
        shown: frames of each.

    Returns:
        Nothing where no tubes are predicted or asked for.
    """
    chosen = kind or select_kind(predictions, scenes)
    if chosen is None:
        return []
    table = build_tube_table(predictions, scenes, config, kinds=(chosen,), threshold=threshold)
    pairs = [*_iterate_missed(table, scenes, chosen, most // 2), *_false(table, most - most // 2)]
    predicted, truth = TubeBoxes(rescale_predictions(predictions, scenes)), TubeBoxes(scenes)
    return [_strip(pair, predicted, truth, shown) for pair in pairs]


@dataclass(frozen=True)
class _Pair:
    """A true and a predicted tube, one of them null where there is none, and the heading."""

    says: str
    video: str
    truth: int | None
    claim: int | None


def select_kind(predictions: Predictions, scenes: Scenes, among: Sequence[str] = ()) -> str | None:
    """The kind of labels whose errors are shown: agent, action or event, else the first that tubes of both have.

    Args:
        predictions: with labelled tubes.
        scenes: ground truth.
        among: the kinds that are asked for; all where empty.
    """
    held = [set(tables.tube_labels["kind"].cast(pl.String).to_list()) for tables in (predictions, scenes)]
    both = held[0] & held[1] & set(among or held[0])
    usual = [kind for kind in _FIRST_CHOICES if kind in both]
    return next(iter([*usual, *sorted(both - {"av_action"})]), None)


def _iterate_missed(table: pl.DataFrame, scenes: Scenes, kind: str, most: int) -> Iterator[_Pair]:
    """The longest ground-truth tubes that no prediction was matched with, beside what lies on them best."""
    names = scenes.meta.vocabularies[kind]
    labels = scenes.tube_labels.filter(pl.col("kind").cast(pl.String) == kind).select("tube", "label")
    asked = scenes.tubes.join(labels, on="tube").with_columns(pl.col("video").cast(pl.String))
    asked = asked.filter(
        ~(pl.coalesce("parent", "tube") if "parent" in scenes.tubes.columns else pl.col("tube")).is_in(
            _resting(scenes).implode()
        )
    )
    missed = asked.filter(~pl.col("tube").is_in(table["matched"].drop_nulls().implode()))
    length = pl.col("end_frame") - pl.col("start_frame")
    for row in missed.sort(length, "tube", descending=[True, False]).head(most).iter_rows(named=True):
        near = table.filter(pl.col("near_truth") == row["tube"])
        near = near.sort("near_overlap", "score", "tube", descending=[True, True, False])
        says = f"missed: {names[row['label']]} in {row['video']}, frames {_span(row)}"
        claim = None
        if len(near) and near["near_overlap"][0] > 0:
            claim = near["tube"][0]
            says += f"; nearest is {near['label'][0]}, score {near['score'][0]:.2f}, overlap "
            says += f"{near['near_overlap'][0]:.2f}"
        yield _Pair(says, row["video"], row["tube"], claim)


def _resting(scenes: Scenes) -> pl.Series:
    """The tubes whose boxes are all to ignore."""
    boxes = scenes.boxes
    if "ignore" not in boxes.columns:
        return pl.Series("tube", [], dtype=pl.Int64)
    owned = boxes.drop_nulls("tube").group_by("tube").agg(pl.col("ignore").fill_null(value=False).all())
    return owned.filter("ignore")["tube"]


def _false(table: pl.DataFrame, most: int) -> Iterator[_Pair]:
    """The most confident predictions that were matched with nothing, one per place, beside what they lie on."""
    wrong = table.filter(pl.col("matched").is_null() & ~pl.col("ignored")).sort(
        "score", "tube", descending=[True, False]
    )
    for row in wrong.head(most).iter_rows(named=True):
        says = f"false: {row['label']} in {row['video']}, score {row['score']:.2f}"
        near = row["near_truth"] if row["near_overlap"] else None
        if near is not None:
            says += f"; nearest is {row['near_label']}, overlap {row['near_overlap']:.2f}"
        yield _Pair(says, row["video"], near, row["tube"])


class TubeBoxes:
    """Looks up the frames and boxes of tubes, and the sizes of images.

    Args:
        tables: with tubes.
    """

    def __init__(self, tables: TableSet) -> None:
        self._tables = tables
        self._sizes = get_image_sizes(tables)
        self._rows = {row["tube"]: row for row in tables.tubes.iter_rows(named=True)}

    def size(self, video: str) -> tuple[float, float] | None:
        """Width and height of the images, null where unknown."""
        return self._sizes.get(video)

    def of(self, tube: int | None) -> tuple[Ints, Floats]:
        """(n,) frames and (n, 4) boxes of a tube; none where there is no tube."""
        if tube is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 4))
        row = self._rows[tube]
        owner = row.get("parent") if row.get("parent") is not None else tube
        boxes = self._tables.boxes.filter(pl.col("tube") == owner).sort("frame", maintain_order=True)
        frames = boxes["frame"].to_numpy().astype(np.int64)
        spans = row.get("spans")
        if spans:
            held = np.zeros(len(frames), dtype=np.bool_)
            for start, end in spans:
                held |= (frames >= start) & (frames < end)
            boxes, frames = boxes.filter(pl.Series(held)), frames[held]
        if row.get("consecutive"):
            frames = row["start_frame"] + np.arange(len(frames))
        return frames, boxes.select(CORNERS).cast(pl.Float64).to_numpy()


def _strip(pair: _Pair, predictions: TubeBoxes, truth: TubeBoxes, shown: int) -> Strip:
    """The frames of both tubes, some of which are shown."""
    of_truth, of_claim = truth.of(pair.truth), predictions.of(pair.claim)
    every = np.union1d(of_truth[0], of_claim[0])
    if not len(every):
        every = np.zeros(1, dtype=np.int64)
    frames = every[np.unique(np.linspace(0, len(every) - 1, min(shown, len(every))).round().astype(int))]
    boxes = [_at(frames, *held) for held in (of_truth, of_claim)]
    reach = np.concatenate([of_truth[1], of_claim[1]]).reshape(-1, 4)[:, 2:].max(axis=0, initial=1.0)
    size = truth.size(pair.video) or (float(reach[0]), float(reach[1]))
    return Strip(pair.says, size, frames, boxes[0], boxes[1], _runs(of_truth[0]), _runs(of_claim[0]))


def _at(frames: Ints, held: Ints, boxes: Floats) -> Floats:
    found = np.full((len(frames), 4), np.nan)
    place = {int(frame): at for at, frame in enumerate(held)}
    for at, frame in enumerate(frames):
        if int(frame) in place:
            found[at] = boxes[place[int(frame)]]
    return found


def _runs(frames: Ints) -> Spans:
    """Frames as [start, end) stretches without hole."""
    if not len(frames):
        return ()
    breaks = np.flatnonzero(np.diff(frames) != 1) + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(frames, breaks))


def _span(row: dict[str, Any]) -> str:
    return f"{row['start_frame']} to {row['end_frame'] - 1}"


def _list_boxes(boxes: Floats) -> list[list[float] | None]:
    # JSON has no NaN.
    return [box.tolist() if np.isfinite(box).all() else None for box in boxes]


def _boxes(rows: Sequence[Sequence[float] | None]) -> Floats:
    return np.array([[np.nan] * 4 if row is None else row for row in rows], dtype=np.float64).reshape(-1, 4)
