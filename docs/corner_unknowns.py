"""Judge re-scored proposals on synthetic scenes of two towns and print the tables of docs/corner_unknowns.md.

    python docs/corner_unknowns.py unknowns

The page holds the commands that make the folder. A part and a block may follow, such as `final city-b` or
`initial apart`, to print one table alone.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.corner_cases.known_objects import find_best_overlap, group_rows_by_image
from roadaware.datasets import read
from roadaware.metrics.corner_cases.evaluate import evaluate
from roadaware.metrics.corner_cases.matching import CornerConfig
from roadaware.metrics.metric_state import compute_values, resample_metrics
from roadaware.protocols.coda import drop_classes, label_truth
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.statistics.classification import Ranking
from roadaware.statistics.intervals import Scale, Units

Floats = npt.NDArray[np.float64]
Drawn = Mapping[tuple[str, str | None], Floats]
TOWNS = ("city-a", "city-b")
PARTS = {"final": "all steps, erring masks and detections", "initial": "geometry alone"}
METRICS = {"corner_ap": "AP", "corner_ar1": "AR1", "corner_ar10": "AR10"}
PLAIN, MEMORY, BOTH = "plain score", "memory alone", "energy x memory"
RESAMPLES, MET = 1000, 0.5
_CONFIG = CornerConfig(groups=("corner",), precision="always")


def variants(boxes: pl.DataFrame) -> dict[str, Floats]:
    """Name of a ranking to its (n,) scores.

    Args:
        boxes: re-scored by energy and by memory.
    """
    score, energy, memory = (
        boxes[name].to_numpy().astype(np.float64)
        for name in ("score_before", "unknown_energy", "unknown_memory")
    )
    return {
        PLAIN: score,
        "plain x energy": score * energy,
        "plain x memory": score * memory,
        "plain x energy x memory": score * energy * memory,
        "energy alone": energy,
        MEMORY: memory,
        BOTH: energy * memory,
    }


def judged(predictions: Mapping[str, Predictions], truth: Mapping[str, Scenes], place: str) -> Any:
    """The state of all towns together, ranked one way."""
    whole: Any = None
    for town, found in predictions.items():
        scores = pl.Series(variants(found.boxes)[place])
        ranked = drop_classes(found.with_tables(boxes=found.boxes.with_columns(score=scores)))
        state = evaluate(ranked, truth[town], _CONFIG).state
        named = state.items.with_columns(video=pl.lit(f"{town}/") + pl.col("video").cast(pl.String))
        state = dataclasses.replace(state, items=named)
        whole = state if whole is None else whole.merge(state)
    return whole


def table(predictions: Mapping[str, Predictions], truth: Mapping[str, Scenes]) -> list[str]:
    """Rows of how well each ranking does, with what it gains over the plain one under the same weightings.

    Below them: what the product of both gains over the memory alone.
    """
    heads = ["ranked by", *METRICS.values(), *(f"gain in {name}" for name in METRICS.values())]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    known: dict[str, tuple[dict[str, float | None], Drawn]] = {}

    def gain(name: str, than: str, metric: str, units: Units) -> str:
        (values, resamples), (other, others) = known[name], known[than]
        value = (values[metric] or 0) - (other[metric] or 0)
        return told(value, resamples[metric, None] - others[metric, None], units, "difference")

    for name in variants(next(iter(predictions.values())).boxes):
        state = judged(predictions, truth, name)
        units = Units(len(state.videos), RESAMPLES, 0)
        values, resamples = known[name] = compute_values(state), resample_metrics(state, RESAMPLES, 0)
        cells = [told(values[metric], resamples[metric, None], units) for metric in METRICS]
        cells += [gain(name, PLAIN, metric, units) for metric in METRICS if name != PLAIN]
        cells += [""] * (2 * len(METRICS) - len(cells))
        lines.append(f"| {' | '.join([name, *cells])} |")
    over = [f"{gain(BOTH, MEMORY, metric, units)} {called}" for metric, called in METRICS.items()]
    return [*lines, "", f"{BOTH} over {MEMORY}: {', '.join(over)}"]


def told(value: float | None, resamples: Floats, units: Units, scale: Scale = "share") -> str:
    """A value and its 95 % interval over scenes, as per cent; differences with their sign."""
    sign = "+" if scale == "difference" else ""
    found = units.interval(value or 0.0, resamples, scale)
    ends = ", ".join("–" if end is None else f"{100 * end:{sign}.1f}" for end in (found.low, found.high))
    return f"{100 * (value or 0):{sign}.1f} [{ends}]"


def kinds_of(predictions: Predictions, scenes: Scenes) -> npt.NDArray[np.str_]:
    """(n,) what each proposal lies on with an overlap of 0.5: a corner case, a common object, or nothing."""
    true, corner = scenes.boxes.select(CORNERS).to_numpy(), scenes.boxes["corner_case"].to_numpy()
    boxes, places = predictions.boxes.select(CORNERS).to_numpy(), group_rows_by_image(scenes.boxes)
    found = np.full(len(boxes), "nothing", dtype="<U12")
    for key, rows in group_rows_by_image(predictions.boxes).items():
        if key in places:
            which, overlap = find_best_overlap(boxes[rows], true[places[key]])
            told_of = np.where(corner[places[key]][which], "corner case", "common")
            found[rows] = np.where(overlap >= MET, told_of, "nothing")
    return found


def apart(predictions: Mapping[str, Predictions], truth: Mapping[str, Scenes]) -> list[str]:
    """Rows of the AUC of each score by itself: proposals on corner cases against the others."""
    kinds = np.concatenate([kinds_of(found, truth[town]) for town, found in predictions.items()])
    scene = np.concatenate(
        [town + "/" + found.boxes["video"].cast(pl.String).to_numpy() for town, found in predictions.items()]
    )
    _, cluster = np.unique(scene.astype(str), return_inverse=True)
    units = Units(int(cluster.max()) + 1, RESAMPLES, 0)
    weights = np.concatenate(list(units.weights()))
    counts = ", ".join(f"{int((kinds == kind).sum()):,} on {kind}" for kind in np.unique(kinds))
    lines = [
        f"Proposals: {counts}.",
        "",
        "| score | from those on nothing | from those on common objects |",
        "|---|---|---|",
    ]
    parts = {town: variants(found.boxes) for town, found in predictions.items()}
    for name in (PLAIN, "energy alone", MEMORY):
        values = np.concatenate([parts[town][name] for town in predictions])
        cells = []
        for other in ("nothing", "common"):
            rows = np.isin(kinds, ["corner case", other])
            ranking = Ranking.of(kinds[rows] == "corner case", values[rows])
            _, resamples = ranking.areas(weights, cluster[rows])
            _, whole = ranking.areas(np.ones((1, weights.shape[1]), dtype=np.int32), cluster[rows])
            cells.append(told(float(whole[0]), resamples, units))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main(folder: Path, asked: Sequence[str]) -> None:
    """Print all tables, or those of a part and a block."""
    truth = {town: label_truth(read("simulator", folder / "test" / town, cache=False)) for town in TOWNS}
    for part, words in PARTS.items():
        if set(asked) & set(PARTS) and part not in asked:
            continue
        predictions = {town: open_predictions(folder / "rescored" / part / town) for town in TOWNS}
        blocks = {
            "both": predictions,
            **{town: {town: predictions[town]} for town in TOWNS},
            "apart": predictions,
        }
        for name, chosen in blocks.items():
            if set(asked) <= {part, name}:
                lines = apart(chosen, truth) if name == "apart" else table(chosen, truth)
                print("\n".join([f"\n### {words}: {name}\n", *lines]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
