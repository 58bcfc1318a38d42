"""Confusion of actions: predicted actions of persons by their ground-truth action, as shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.action_inputs import Actions, Rows, read_actions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

OTHERS, NOTHING = "other actions", "nothing"
_SAME = 0.5
_MOST_SHOWN = 20
_PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion table: predicted actions by ground-truth action.

    Args:
        labels: (k,) the actions that are true most often.
        columns: (k + 2,) the same, then what other actions and nothing at all stand for.
        shares: (k, k + 2) of the ground-truth rows of each action; every row sums to 1.
        n: (k,) how many ground-truth rows there are.
    """

    labels: tuple[str, ...]
    columns: tuple[str, ...]
    shares: Floats
    n: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """The table, JSON-ready."""
        return {
            "labels": list(self.labels),
            "columns": list(self.columns),
            "shares": np.round(self.shares, 6).tolist(),
            "n": list(self.n),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Confusion:
        """The table that `as_dict` gave.

        Raises:
            InputError: if something is missing or of a wrong kind.
        """
        try:
            labels, columns = (tuple(map(str, data[name])) for name in ("labels", "columns"))
            shares = np.array(data["shares"], dtype=np.float64).reshape(len(labels), len(columns))
            return cls(labels, columns, shares, tuple(map(int, data["n"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a confusion of actions is incomplete: {error}") from error


def compute_action_confusion(predictions: Predictions, scenes: Scenes) -> Confusion:
    """Compute the predicted actions of the persons of each ground-truth action.

    A ground-truth box is spoken for by the predicted box of its frame that it overlaps most, by at least one half. Of
    its n ground-truth actions, those among the n best-scored predicted ones are right; the others are shared out
    equally over the wrong ones among these n. Where fewer are predicted, the rest goes to `nothing`.

    Args:
        predictions: as the metric of actions takes them.
        scenes: ground-truth boxes with labels of the kind `action`; frames that nobody annotated are left out.

    Raises:
        InputError: if there is no ground truth, or predictions and ground truth do not fit each other.
    """
    actions = read_actions(predictions, scenes)
    truth = _build_table(actions.truth, actions)
    predicted = _build_table(actions.claims, actions)
    pairs = _spoken_for(truth, predicted)
    truth = truth.select("name", true_box="box")
    of_box = truth.group_by("true_box").agg(pl.len().alias("asked"))
    claimed = (
        pairs.join(predicted.select("box", "score", "name"), on="box", maintain_order="left_right")
        .sort("true_box", "score", descending=[False, True], maintain_order=True)
        .join(of_box, on="true_box", maintain_order="left")
        .filter(pl.int_range(pl.len()).over("true_box") < pl.col("asked"))
        .select("true_box", claimed="name")
    )
    right = truth.join(claimed, left_on=["true_box", "name"], right_on=["true_box", "claimed"])
    rest = truth.join(right, on=["true_box", "name"], how="anti")
    wrong = claimed.join(right, left_on=["true_box", "claimed"], right_on=["true_box", "name"], how="anti")
    waiting = rest.group_by("true_box").agg(pl.len().alias("waiting"))
    shared = (
        rest.join(wrong, on="true_box")
        .join(waiting, on="true_box")
        .select("name", "claimed", share=1.0 / pl.col("waiting"))
    )
    cells = pl.concat([right.select("name", claimed="name", share=pl.lit(1.0)), shared])
    # Shares of cells as a table of the most frequent actions
    # By name where counts are equal, since a group-by comes in no order.
    counts = truth["name"].value_counts().sort(["count", "name"], descending=[True, False])
    shown = counts.head(_MOST_SHOWN)
    labels = tuple(shown["name"].to_list())
    place = {label: k for k, label in enumerate(labels)}
    totals = np.array(shown["count"].to_list(), dtype=np.float64)
    shares = np.zeros((len(labels), len(labels) + 2))
    sums = cells.group_by("name", "claimed", maintain_order=True).agg(pl.col("share").sum())
    for name, predicted, share in sums.sort("name", "claimed").iter_rows():
        if name in place:
            shares[place[name], place.get(predicted, len(labels))] += share
    shares[:, :-1] /= np.maximum(totals, 1.0)[:, None]
    # A sum of shares may exceed 1 by its rounding.
    shares[:, -1] = np.clip(1.0 - shares[:, :-1].sum(axis=1), 0.0, 1.0)
    return Confusion(labels, (*labels, OTHERS, NOTHING), shares, tuple(int(n) for n in totals))


def _build_table(rows: Rows, actions: Actions) -> pl.DataFrame:
    """Rows of annotated frames: `box`, `frame`, corners, `name` of the action and `score`, in their order."""
    rows = rows.take(~actions.frames.excluded[rows.frame])
    columns = {name: rows.corners[:, k] for k, name in enumerate(CORNERS)}
    named = pl.Series(actions.classes, dtype=pl.String).gather(rows.cls)
    return pl.DataFrame({"box": rows.box, "frame": rows.frame, **columns, "name": named, "score": rows.score})


def _spoken_for(truth: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """`true_box` and the predicted `box` that it overlaps most, by at least one half; the first of equals."""
    parts = []
    truth, predictions = (
        rows.unique("box", keep="first", maintain_order=True) for rows in (truth, predictions)
    )
    per_frame = max(1.0, len(predictions) / max(1, predictions["frame"].n_unique()))
    step = max(1, int(_PAIRS_AT_ONCE / per_frame))
    for start in range(0, len(truth), step):
        both = truth[start : start + step].join(
            predictions, on="frame", suffix="_c", maintain_order="left_right"
        )
        sides = {
            axis: (
                pl.min_horizontal(f"{axis}2_px", f"{axis}2_px_c")
                - pl.max_horizontal(f"{axis}1_px", f"{axis}1_px_c")
            ).clip(0)
            for axis in "xy"
        }
        inter = sides["x"] * sides["y"]
        union = _area("") + _area("_c") - inter
        near = both.select(true_box="box", box="box_c", overlap=inter / union).filter(
            pl.col("overlap") >= _SAME
        )
        near = near.sort("overlap", descending=True, maintain_order=True)
        parts.append(near.unique("true_box", keep="first", maintain_order=True))
    empty = pl.DataFrame(schema={"true_box": pl.Int64, "box": pl.Int64})
    return pl.concat([part.select("true_box", "box") for part in parts]) if parts else empty


def _area(suffix: str) -> pl.Expr:
    return (pl.col(f"x2_px{suffix}") - pl.col(f"x1_px{suffix}")) * (
        pl.col(f"y2_px{suffix}") - pl.col(f"y1_px{suffix}")
    )
