"""Write what tells near from far crossers of JAAD into docs/who_crosses.md: `docs/near_far.py JAAD-JAAD_2.0.zip`.

22 s of one core. Nearest neighbours are asked what a moment's numbers could say at most: the best of four counts is shown,
which no predictor may choose.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from roadaware.arrays import Bools, Floats
from roadaware.datasets.loading import open_dataset
from roadaware.io.files import write_atomically
from roadaware.metrics.time_to_event import TimedMoments
from roadaware.models.crossing.hazard_trees import HazardTrees
from roadaware.models.crossing.inputs import Held, InputSet
from roadaware.online.setup import WEIGHTS, WHEN
from roadaware.protocols.crossing_time import FAR_S, FRAMES, NEAR_S, PROTOCOL, RATE_FPS
from roadaware.scenes.sampling import get_protocol
from roadaware.scenes.tables import Scenes
from roadaware.statistics.classification import roc_auc
from roadaware.tasks.crossing_time import EDGES_S, collect_times
from roadaware.tasks.crossing_tracks import Moments, survive

PAGE = Path(__file__).parent / "who_crosses.md"
BEGIN, END = "<!-- near and far: begin -->", "<!-- near and far: end -->"
NEIGHBOURS = (5, 25, 100, 400)
EVERY = 3
"""Moments of a track are alike: every third is asked."""
PLACE = 7
"""So many columns of `history` are place and size."""
TAGS = {
    "action": "walking",
    "look": "looking",
    "occlusion": "none",
    "designated": "D",
    "signalized": "n/a",
    "intersection": "yes",
}


def collect(scenes: Scenes) -> tuple[pl.DataFrame, dict[str, Floats]]:
    """Moments of crossers near and far (`video`, `person`, `time_s`, `near`, `test`), and by source (n, numbers) of them."""
    tubes = scenes.tubes.select(
        "tube", pl.col("video", "name", "designated", "signalized", "intersection").cast(pl.String),
        "group_size", "num_lanes", "decision_point",
    )  # fmt: skip
    tags = scenes.boxes.select("tube", "frame", pl.col("action", "look", "occlusion").cast(pl.String)).join(
        tubes, on="tube"
    )
    names = ("history", "ego:action", "traffic")
    tables, numbers = [], []
    for split in ("train", "val", "test"):
        of = collect_times(scenes, get_protocol(PROTOCOL, "default"), split, Moments(RATE_FPS, FRAMES), names)
        near = (of.time_s >= NEAR_S[0]) & (of.time_s <= NEAR_S[1])
        rows = np.flatnonzero(of.event & (near | (of.time_s > FAR_S)))
        held = of.inputs.take(rows)
        numbers.append([np.asarray(held[name], dtype=np.float64)[:, -1] for name in names])
        whose = of.table[rows.tolist()].select("video", "name", "frame")
        tables.append(
            whose.with_columns(
                near=pl.Series(near[rows]), time_s=pl.Series(of.time_s[rows]), test=pl.lit(split == "test")
            )
        )
    table = pl.concat(tables).join(tags, on=["video", "name", "frame"], how="left", maintain_order="left")
    history, ego, traffic = (np.concatenate(parts) for parts in zip(*numbers, strict=True))
    said = [
        (table[column] == word).cast(pl.Float64).fill_null(np.nan).to_numpy() for column, word in TAGS.items()
    ]
    said += [
        table[column].cast(pl.Float64).fill_null(np.nan).to_numpy() for column in ("group_size", "num_lanes")
    ]
    decision = (table["decision_point"] - table["frame"]).cast(pl.Float64).fill_null(
        np.nan
    ).to_numpy() / RATE_FPS
    return table.with_columns(person=pl.format("{} {}", "video", "name")), {
        "place and size": history[:, :PLACE],
        "two seconds of boxes": history,
        "boxes, vehicle's action, traffic": np.column_stack([history, ego, traffic]),
        "annotators' tags alone": np.column_stack(said),
        "boxes, vehicle, traffic, tags": np.column_stack([history, ego, traffic, *said]),
        "how far off the annotated decision is": decision[:, None],
    }


def ask_neighbours(numbers: Floats, near: Bools, video: np.ndarray, count: int) -> Floats:
    """(n,) share of near ones among the nearest of other videos, each number by its deviation; unknown is the mean."""
    scaled = (numbers - np.nanmean(numbers, axis=0)) / (np.nanstd(numbers, axis=0) + 1e-9)
    scaled, found = np.nan_to_num(scaled), np.empty(len(numbers))
    for name in np.unique(video):
        asked = video == name
        others = scaled[~asked]
        apart = (others**2).sum(axis=1) - 2 * scaled[asked] @ others.T
        nearest = np.argpartition(apart, count, axis=1)[:, :count]
        found[asked] = near[~asked][nearest].mean(axis=1)
    return found


def rank_people(score: Floats, near: Bools, person: np.ndarray) -> tuple[float, float]:
    """The share of pairs in the right order, of different people and of one; each pair of people counts the same."""
    pairs: dict[bool, list[float]] = {False: [], True: []}
    for far in np.unique(person[~near]):
        low = score[(person == far) & ~near]
        for other in np.unique(person[near]):
            high = score[(person == other) & near][:, None]
            pairs[far == other].append(float((high > low).mean() + (high == low).mean() / 2))
    return float(np.mean(pairs[False])), float(np.mean(pairs[True]))


def build_table(scenes: Scenes) -> str:
    """What the page says, as Markdown."""
    table, sources = collect(scenes)
    near, test, person = (table[name].to_numpy() for name in ("near", "test", "person"))
    some = np.arange(0, len(table), EVERY)
    video = table["video"].to_numpy()[some]
    lines = ["| | AUC over moments | over pairs of people | of the same person |", "|---|---|---|---|"]
    for name, numbers in sources.items():
        said = [ask_neighbours(numbers[some], near[some], video, count) for count in NEIGHBOURS]
        ranked = [
            (roc_auc(near[some], each) or 0.0, *rank_people(each, near[some], person[some])) for each in said
        ]
        cells = " | ".join(f"{max(column):.3f}" for column in zip(*ranked, strict=True))
        lines.append(f"| neighbours, {name} | {cells} |")
    trees = HazardTrees.open(WEIGHTS / WHEN)
    history = sources["two seconds of boxes"][test]
    survival = survive(trees.probabilities(InputSet({"history": Held(history[:, None])}, len(history))))
    time_s = table["time_s"].to_numpy()[test]
    everybody = np.ones(len(time_s), dtype=bool)
    risk = TimedMoments(time_s, everybody, survival, np.asarray(EDGES_S), person[test]).risk
    of_trees = (roc_auc(near[test], risk) or 0.0, *rank_people(risk, near[test], person[test]))
    cells = " | ".join(f"{each:.3f}" for each in of_trees)
    lines.append(f"| hazard trees, test | {cells} |")
    numbers = sources["boxes, vehicle, traffic, tags"]
    alone = np.array([
        [roc_auc(near[part & np.isfinite(each)], each[part & np.isfinite(each)]) or 0.5 for part in (~test, test)]
        for each in numbers.T
    ])  # fmt: skip
    agree = spearmanr(*alone.T)
    best = alone[np.argmax(np.abs(alone[:, 0] - 0.5))]
    counts = [len(np.unique(person[~near & part])) for part in (~test, test)]
    lines += [
        "",
        f"Far are {counts[0]} people of train and validation and {counts[1]} of test. Of the {len(alone)} numbers of boxes, "
        "vehicle, traffic and tags, the AUC of each by itself on train and validation goes with that on test by "
        f"{agree.statistic:.2f} (Spearman, p {agree.pvalue:.2f}); the best of train and validation has {best[0]:.3f} there "
        f"and {best[1]:.3f} on test.",
    ]
    return "\n".join(lines)


def main(data: Path) -> None:
    """Put the table between the marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    write_atomically(PAGE, f"{head}{BEGIN}\n{build_table(open_dataset('jaad', data))}\n{END}{tail}".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
