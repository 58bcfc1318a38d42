"""From the tables of claimed tubes to the lists of dicts of a published tube file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Numbers
from roadaware.errors import InputError
from roadaware.scenes.dense import Layout, layout, matrix
from roadaware.scenes.formats.kinds import AGENTNESS
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS

Lists = dict[str, dict[str, list[dict[str, Any]]]]
_OPTIONAL = {
    "start_frame": pl.Int64(),
    "end_frame": pl.Int64(),
    "parent": pl.Int64(),
    "kind": pl.String(),
    "spans": pl.List(pl.List(pl.Int64)),
    "consecutive": pl.Boolean(),
    "score": pl.Float64(),
}


def tube_lists(predictions: Predictions, *, native: bool, agentness: bool, first_frame: int) -> Lists:
    """Kind to video to tubes, each a dict with label_id, scores, boxes, score and frames.

    Args:
        predictions: tubes with labels, and boxes.
        native: name kinds as the data set does, where `meta` tells.
        agentness: also take the tubes without label and parent.
        first_frame: number of the first frame of a video.

    Raises:
        InputError: if there is nothing to write, or a tube has no boxes or no score.
    """
    rows = _rows(predictions, agentness=agentness)
    if rows.is_empty():
        raise InputError(
            "there are no tubes with a label to write", hint="link and label the detections first"
        )
    held = _Boxes(predictions)
    names = predictions.meta.notes.get("native_kinds", {}) if native else {}
    videos = predictions.videos["video"].cast(pl.String).to_list()
    videos = list(dict.fromkeys([*videos, *rows["video"]]))
    lists: Lists = {
        names.get(kind, kind): {video: [] for video in videos} for kind in dict.fromkeys(rows["kind"])
    }
    for row in rows.iter_rows(named=True):
        lists[names.get(row["kind"], row["kind"])][row["video"]].append(held.tube(row, first_frame))
    return lists


def _rows(predictions: Predictions, *, agentness: bool) -> pl.DataFrame:
    """One row for each label of a tube: tube, video, its extent, kind, label and score."""
    tubes = predictions.tubes.with_columns(pl.col("video").cast(pl.String))
    missing = [pl.lit(None, dtype=d).alias(c) for c, d in _OPTIONAL.items() if c not in tubes.columns]
    tubes = tubes.with_columns(missing).with_columns(pl.col("kind").cast(pl.String))
    tubes = tubes.select("tube", "video", *_OPTIONAL).with_row_index("order")
    labels = predictions.tube_labels.with_columns(pl.col("kind").cast(pl.String))
    score = pl.col("score") if "score" in labels.columns else pl.lit(None, dtype=pl.Float64)
    labels = labels.select("tube", pl.col("kind").alias("of"), "label", score.alias("label_score"))
    if agentness:
        paths = tubes.filter(pl.col("parent").is_null() & pl.col("kind").is_null())
        own = pl.lit(None, dtype=labels.schema["label_score"]).alias("label_score")
        zero = pl.lit(0, dtype=pl.Int64).alias("label")
        labels = pl.concat([labels, paths.select("tube", pl.lit(AGENTNESS).alias("of"), zero, own)])
    rows = tubes.drop("kind").join(labels, on="tube", maintain_order="left")
    return rows.sort("order", maintain_order=True).select(
        "tube",
        "video",
        pl.col("of").alias("kind"),
        "label",
        "start_frame",
        "end_frame",
        "parent",
        "spans",
        "consecutive",
        score=pl.coalesce("label_score", "score"),
    )


class _Boxes:
    """The boxes of all tubes, by tube and frame.

    Args:
        predictions: with boxes that name their tubes.
    """

    def __init__(self, predictions: Predictions) -> None:
        boxes = predictions.boxes
        if "tube" not in boxes.columns:
            raise InputError("the boxes name no tubes", hint="link the detections first")
        boxes = boxes.filter(pl.col("tube").is_not_null()).sort("tube", "frame", maintain_order=True)
        self.frames = boxes["frame"].to_numpy()
        self.corners = boxes.select(*CORNERS).to_numpy().astype(np.float32)
        score = (
            boxes["score"] if "score" in boxes.columns else pl.Series([None] * len(boxes), dtype=pl.Float32)
        )
        self.score = score.fill_null(float("nan")).to_numpy()
        self.layout, self.scores = _dense(predictions, boxes)
        owners, first = np.unique(boxes["tube"].to_numpy(), return_index=True)
        ends = np.append(first[1:], len(boxes))
        self.place = dict(zip(owners.tolist(), zip(first.tolist(), ends.tolist(), strict=True), strict=True))

    def tube(self, row: dict[str, Any], first_frame: int) -> dict[str, Any]:
        """One tube in the form of the file."""
        start, end = self.place.get(row["tube"] if row["parent"] is None else row["parent"], (0, 0))
        at = np.arange(start, end)[_covered(self.frames[start:end], row)]
        if not len(at) or row["score"] is None:
            lacks = "score" if len(at) else "boxes"
            raise InputError(f"tube {row['tube']} of {row['video']} has no {lacks} and cannot be written")
        frames = self.frames[at]
        if row["consecutive"]:
            frames = np.arange(len(at)) + (frames[0] if row["start_frame"] is None else row["start_frame"])
        return {
            "label_id": int(row["label"]),
            "scores": self._scores(at, row),
            "boxes": self.corners[at],
            "score": float(row["score"]),
            "frames": frames.astype(np.int64) + first_frame,
        }

    def _scores(self, at: Numbers, row: dict[str, Any]) -> Numbers:
        """The scores of a tube's frames: of its label, else agentness, else its own."""
        if self.scores is not None and row["kind"] in self.layout.kinds:
            column = self.layout.columns(row["kind"]).start + int(row["label"])
            return np.ascontiguousarray(self.scores[at, column])
        scores = self.score[at]
        return np.where(np.isnan(scores), row["score"], scores).astype(scores.dtype)


def _covered(frames: Numbers, row: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """(n,) which boxes of the owner belong to the tube."""
    spans = row["spans"]
    if spans is None and row["parent"] is not None and not row["consecutive"]:
        spans = [[row["start_frame"] or 0, np.inf if row["end_frame"] is None else row["end_frame"]]]
    if spans is None:
        return np.ones(len(frames), dtype=np.bool_)
    covered = np.zeros(len(frames), dtype=np.bool_)
    for low, high in spans:
        covered |= (frames >= low) & (frames < high)
    return covered


def _dense(predictions: Predictions, boxes: pl.DataFrame) -> tuple[Layout, Numbers | None]:
    """What dense scores stand for, and (n, classes) the scores, where every box has them."""
    found = layout(predictions.meta, "boxes")
    if not found.width or "scores" not in boxes.columns or boxes["scores"].null_count():
        return found, None
    return found, matrix(boxes["scores"], found.width)
