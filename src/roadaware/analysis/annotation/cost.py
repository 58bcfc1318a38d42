"""Annotation cost: seconds of looking, judging, correcting and drawing for a list of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.annotation.matching import LEAST_IOU, match_annotators
from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

_FEWEST, _DAY_S, _LEAST_LOOK_S = 20, 86_400, 1e-3


@dataclass(frozen=True)
class Labour:
    """Seconds of one person's work; assumptions, but for drawing, to be replaced by what one measures.

    Args:
        look_s: to look an image over for corner cases.
        judge_s: to keep or delete a proposal.
        correct_s: to bring a proposal's edges to the object.
        draw_s: to draw a box and name it: 35 s is what one box of ILSVRC took.

    Source: of `draw_s`, Papadopoulos et al., ICCV 2017 (abstract), after Su et al., 2012.
    """

    look_s: float = 10.0
    judge_s: float = 2.0
    correct_s: float = 10.0
    draw_s: float = 35.0

    def __post_init__(self) -> None:
        every = (self.look_s, self.judge_s, self.correct_s, self.draw_s)
        if not all(0 <= value <= _DAY_S for value in every) or self.look_s < _LEAST_LOOK_S:
            raise UsageError("seconds of work lie from 0 to a day, those of a look from a thousandth on")


@dataclass(frozen=True, eq=False)
class Worth:
    """Objects and proposals of each image, in the order of a list.

    Args:
        video: (n,) of each image.
        proposals: (n,) how many it has.
        hits: (n,) how many of them meet a corner case, one to one.
        cases: (n,) corner cases in view.
        objects: (n,) lists of the objects in view, numbered over all; a track is one object.
    """

    video: npt.NDArray[np.str_]
    proposals: Ints
    hits: Ints
    cases: Ints
    objects: list[list[int]]

    def __len__(self) -> int:
        return len(self.video)


def fit_cost(table: pl.DataFrame, looked: pl.DataFrame) -> tuple[Labour, int] | None:
    """The seconds that explain the times of annotators best, and how many images they rest on.

    Non-negative least squares on images with a time: a look each, and so much for every proposal, every one
    that was moved, and every box that was added. A time is what the tool says, breaks included.

    Args:
        table: what `fates.fates` gave.
        looked: who looked at what, with `seconds`.

    Returns:
        None with fewer than 20 such images, or where work of a kind never happened or is never apart.
    """
    from scipy.optimize import nnls

    key = ["video", "frame", "annotator"]
    timed = looked.filter(~pl.col("skipped") & pl.col("seconds").is_not_null())
    done = table.group_by(key).agg(
        proposals=pl.col("proposal").is_not_null().sum(),
        moved=(pl.col("fate") == "moved").sum(),
        added=(pl.col("fate") == "added").sum(),
    )
    rows = timed.join(done, on=key, how="left").with_columns(
        pl.col("proposals", "moved", "added").fill_null(0)
    )
    work = rows.select(pl.lit(1.0), "proposals", "moved", "added").to_numpy().astype(np.float64)
    # Below full rank no seconds can be told from each other: any split of them would fit as well.
    if len(work) < _FEWEST or np.linalg.matrix_rank(work) < work.shape[1]:
        return None
    # Without negative coefficients: no work takes less than no time, as plain least squares may find.
    look, judge, correct, draw = nnls(work, rows["seconds"].to_numpy().astype(np.float64))[0].tolist()
    return (Labour(look, judge, correct, draw), len(work)) if 0 < look < _DAY_S else None


def estimate_cost(listed: pl.DataFrame, labour: Labour, most: int | None = None) -> dict[str, float]:
    """Expected cost of a list where there is no ground truth: seconds of looking and judging alone.

    Args:
        listed: what `ranked` gave.
        labour: the seconds.
        most: how many images are considered (default: those with a proposal).
    """
    with_one = int((listed["proposals"] > 0).sum())
    count = min(len(listed), with_one if most is None else most)
    chosen = listed.head(count)
    seconds = count * labour.look_s + float(chosen["proposals"].sum()) * labour.judge_s
    everything = len(listed) * labour.look_s
    return {
        "pictures": len(listed),
        "listed": count,
        "proposals": int(chosen["proposals"].sum()),
        "seconds": seconds,
        "seconds_of_all": everything,
        "saved": 1.0 - seconds / everything,
    }


def measure_worth(listed: pl.DataFrame, claims: Predictions, truth: Scenes) -> Worth:
    """Count objects and proposals of the images of a list.

    Args:
        listed: video and frame of each image, in the order of the list.
        claims: proposals.
        truth: with `boxes.corner_case`; a box without a track is an object of its own.

    Raises:
        InputError: if the ground truth does not say what is a corner case, or has none in these images.
    """
    if "corner_case" not in truth.boxes.columns:
        raise InputError("the truth does not say which boxes are corner cases")
    true = truth.boxes.filter(pl.col("corner_case").fill_null(value=False))
    true = true.with_columns(pl.col("video").cast(pl.String))
    if "tube" not in true.columns:
        true = true.with_columns(tube=pl.lit(None, pl.Int64))
    true = true.with_columns(object=pl.coalesce(pl.col("tube"), -1 - pl.col("box")))
    held = true.partition_by("video", "frame", as_dict=True)
    proposed = claims.boxes.with_columns(pl.col("video").cast(pl.String)).partition_by(
        "video", "frame", as_dict=True
    )
    numbers: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []
    objects: list[list[int]] = []
    for place in listed.select("video", "frame").iter_rows():
        here, claimed = held.get(place), proposed.get(place)
        hits = len(match_annotators(_corners(here), _corners(claimed), LEAST_IOU))
        rows.append(
            (0 if claimed is None else len(claimed), hits, 0 if here is None else len(here)),
        )
        seen = [] if here is None else here["object"].to_list()
        objects.append([numbers.setdefault(each, len(numbers)) for each in seen])
    if not numbers:
        raise InputError("no image of the list holds a corner case: nothing can be found in them")
    proposals, hits_of, cases = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Worth(listed["video"].to_numpy().astype(np.str_), proposals, hits_of, cases, objects)


def _corners(rows: pl.DataFrame | None) -> Floats:
    if rows is None:
        return np.zeros((0, 4))
    return rows.select(CORNERS).to_numpy().astype(np.float64)
