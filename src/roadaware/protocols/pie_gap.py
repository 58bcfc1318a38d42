"""The assumption behind PIE intention without boxes: which pedestrian has three samples fewer.

Attributes say where each track begins and ends, and nothing of gaps in it. Without gaps the test split
has 6475 samples, and the released scores have 6472 rows. Table I prints three fewer samples of unsure
intention, so one such pedestrian has a gap and three samples fewer. Which one does not follow from the
attributes. Every choice that leaves the pedestrian a sample is admissible, and each is evaluated; the
one that is declared is the one under which scores jump least from sample to sample of a pedestrian.
That rule looks at the scores alone, and not at any printed metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.pedestrians import PedestrianConfig, build_core
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.printed_iv2024 import TABLE_I

UNSURE = 1


@dataclass(frozen=True)
class Gap:
    """The pedestrians who may lack samples.

    Args:
        missing: how many samples the scores lack.
        tubes: (m,) the admissible pedestrians, the declared one first.
        jumps: (m,) sum over pedestrians and classes of absolute differences between the scores of
            consecutive samples, if that pedestrian lacks them; ascending.
    """

    missing: int
    tubes: Ints
    jumps: Floats

    @property
    def declared(self) -> int:
        """The pedestrian whose choice makes the scores jump least."""
        return int(self.tubes[0])


def count_missing(samples: pl.DataFrame) -> int:
    """How many samples of unsure intention there are beyond those of Table I; 0 where others differ too.

    Args:
        samples: (n rows) the test samples of tracks without gaps.

    Source: Rasouli and Kotseruba, IV 2024, Table I.
    """
    printed = TABLE_I["pie", "intention"]["test"]
    counts = np.bincount(samples["label"].to_numpy(), minlength=len(printed))
    beyond = counts - np.asarray(printed)
    return int(beyond[UNSURE]) if not np.delete(beyond, UNSURE).any() else 0


def find_gap(samples: pl.DataFrame, scores: Floats) -> Gap:
    """The admissible pedestrians of unsure intention, by how much the scores jump.

    Args:
        samples: (n rows) the test samples of tracks without gaps, in order.
        scores: (n - missing, k) the released scores.

    Raises:
        InputError: if there are more scores than samples, or no pedestrian can lack that many.
    """
    missing = len(samples) - len(scores)
    runs = samples.group_by("tube", maintain_order=True).agg(pl.len().alias("n"), pl.col("label").first())
    size = runs["n"].cast(pl.Int64).to_numpy()
    admissible = np.flatnonzero((runs["label"].to_numpy() == UNSURE) & (size > missing))
    if missing < 1 or not len(admissible):
        raise InputError(
            f"{len(scores)} rows of scores for {len(samples)} samples",
            hint="the released pf_intention_pie.csv has 6472 rows for PIE's test split",
        )
    jump = np.concatenate((np.abs(np.diff(scores, axis=0)).sum(axis=1), [0.0]))
    # Whoever lacks samples shifts the ends of all later pedestrians: two prefix sums give every choice.
    ends = np.cumsum(size) - 1
    inside = ends - missing
    early = np.concatenate(([0.0], np.cumsum(jump[np.minimum(ends, len(jump) - 1)])))
    late = np.cumsum(jump[np.maximum(inside, 0)][::-1])[::-1]
    cost = jump.sum() - early[admissible] - late[admissible]
    order = np.lexsort((admissible, cost))
    tubes = runs["tube"].cast(pl.Int64).to_numpy()[admissible]
    return Gap(missing, tubes[order], cost[order])


def drop_last(samples: pl.DataFrame, tube: int, missing: int) -> pl.DataFrame:
    """The samples without the last `missing` of one pedestrian.

    Which of a pedestrian's samples are lost does not matter: all have the same label.
    """
    rows = np.flatnonzero(samples["tube"].to_numpy() == tube)
    kept = np.ones(len(samples), dtype=np.bool_)
    kept[rows[len(rows) - missing :]] = False
    return samples.filter(pl.Series(kept))


def compute_ranges(
    samples: pl.DataFrame, scores: Floats, gap: Gap, config: PedestrianConfig, groups: npt.NDArray[np.object_]
) -> dict[tuple[str | None, str], tuple[float, float]]:
    """Least and largest value of every metric over the admissible choices.

    Args:
        samples: (n rows) the test samples of tracks without gaps.
        scores: (n - missing, k) the released scores.
        gap: the admissible choices.
        config: of the metrics.
        groups: (n,) scenario of each sample.

    Returns:
        (group, metric) to (low, high); a metric undefined under some choice is left out.
    """
    rows = samples.with_row_index("place")
    scopes = [None, *sorted({label for label in groups if label is not None})]
    low: dict[tuple[str | None, str], float] = {}
    high: dict[tuple[str | None, str], float] = {}
    for tube in gap.tubes:
        held = drop_last(rows, int(tube), gap.missing)
        state = SampleScores(scores, held["label"].to_numpy(), held["tube"].cast(pl.String).to_numpy())
        labels = groups[held["place"].to_numpy()]
        for scope in scopes:
            core = build_core(state if scope is None else state.take(labels == scope), config)
            for metric, (value,) in core.values(core.once()).items():
                key = scope, metric
                # The minimum and maximum of numpy keep NaN: a metric undefined once has no range.
                low[key] = np.minimum(low.get(key, value), value)
                high[key] = np.maximum(high.get(key, value), value)
    return {key: (float(low[key]), float(high[key])) for key in low if not np.isnan(low[key])}
