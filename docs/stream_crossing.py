"""Measure what streams make of the crossing predictor that comes along, and write the table in docs/watch.md.

    python docs/stream_crossing.py data/jaad

Takes two CPU minutes on one core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from roadaware.metrics.metric_state import MetricResult
    from roadaware.scenes.tables import Scenes

PAGE = Path(__file__).with_name("watch.md")
WEIGHTS = Path(__file__).parents[1] / "src/roadaware/weights/crossing-jaad.safetensors"
BEGIN, END = "<!-- of the stream: begin -->", "<!-- of the stream: end -->"
HOME_FPS = 30
"""JAAD's frames a second."""
RESAMPLES = 2000


@dataclass(frozen=True)
class Case:
    """A way of looking.

    Args:
        fps: of the video.
        noise_px: standard deviation of each side of a box, independent from frame to frame.
        steady: whether boxes are read off a line, as the rule has it; else they are taken as they come.
    """

    fps: int
    noise_px: int = 0
    steady: bool = True


CASES = [Case(fps, noise, steady) for steady in (True, False) for fps in (30, 12) for noise in (0, 1, 3)]


def main(arguments: list[str]) -> None:
    """Measure every case on JAAD's test split and write the table into the page."""
    import torch

    from roadaware.datasets import read
    from roadaware.scenes.sampling import Iv2024, sample
    from roadaware.tasks.pedestrians import split_samples

    torch.set_num_threads(1)
    held = split_samples(sample(read("jaad", Path(arguments[0])), Iv2024.default("action")), "test")
    told: dict[str, pl.DataFrame] = {"windows as in training": windows(held)}
    told |= {words(case): streamed(held, case) for case in CASES}
    page = PAGE.read_text("utf-8")
    PAGE.write_text(whole(page, "\n".join(table(held, told))), "utf-8")


def whole(page: str, text: str) -> str:
    """The page with a text between its marks.

    Args:
        page: with the marks.
        text: that takes the place of what stands there.
    """
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def words(case: Case) -> str:
    """A case as the table names it.

    >>> words(Case(12, 3, steady=False))
    '12 frames/s, 3 px of noise, boxes as they come'
    """
    noise = f"{case.noise_px} px of noise" if case.noise_px else "true boxes"
    return f"{case.fps} frames/s, {noise}" + ("" if case.steady else ", boxes as they come")


def windows(held: Scenes) -> pl.DataFrame:
    """`sample` and `crossing`, of windows that are cut out of the tracks."""
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.tasks.crossing_inputs import build_inputs

    predictor = Predictor.open(WEIGHTS)
    said = predictor.probabilities(build_inputs(held, "test", predictor.inputs))
    return held.samples.select("sample").with_columns(crossing=said.reshape(len(said), -1)[:, -1])


def streamed(held: Scenes, case: Case) -> pl.DataFrame:
    """`sample` and `crossing`, the answer that stands as an observation ends; null where there is none."""
    import polars as pl

    from roadaware.online.crossing_forecaster import open_foresight
    from roadaware.online.forecast_event import OutlookRule
    from roadaware.online.run_folder import build_forecast_table

    rule = OutlookRule() if case.steady else OutlookRule(steady_s=0.0)
    tubes = held.samples["tube"].unique().to_list()
    told = build_forecast_table(seen(held, case), open_foresight([WEIGHTS]), rule, tubes=tubes)
    asked = held.samples.select("sample", "tube", frame=pl.col("end_frame").cast(pl.Int64) - 1)
    back = -(-HOME_FPS // case.fps)  # frames from one image of the video to the next
    recent = pl.concat(
        told.select("tube", frame=pl.col("frame") + late, late=pl.lit(late), crossing=pl.col("crossing"))
        for late in range(back)
    ).sort("late")
    newest = recent.unique(["tube", "frame"], keep="first", maintain_order=True)
    return asked.join(newest, on=["tube", "frame"], how="left").select("sample", "crossing")


def seen(held: Scenes, case: Case) -> Scenes:
    """The boxes of the frames that a video of this rate shows; a box trembles alike in every video."""
    import numpy as np
    import polars as pl

    from roadaware.scenes.schema import CORNERS

    noise = case.noise_px * np.random.default_rng(0).standard_normal((len(held.boxes), len(CORNERS)))
    noisy = held.boxes.select(CORNERS).cast(pl.Float64).to_numpy() + noise
    first, last = noisy[:, :2], noisy[:, 2:]  # sides of boxes of few pixels may change places
    corners = np.concatenate([np.minimum(first, last), np.maximum(first, last)], axis=1)
    boxes = held.boxes.with_columns(
        pl.Series(name, corners[:, place], pl.Float32) for place, name in enumerate(CORNERS)
    )
    end = max(boxes["frame"].to_list())
    shown = [n * HOME_FPS // case.fps for n in range(end * case.fps // HOME_FPS + 1)]
    return held.with_tables(boxes=boxes.filter(pl.col("frame").is_in(shown)))


def table(held: Scenes, told: dict[str, pl.DataFrame]) -> Iterator[str]:
    """The lines of the table, over the samples that are answered in every case."""
    import numpy as np

    from roadaware.metrics import calibration, pedestrians
    from roadaware.metrics.calibration import CalibrationConfig
    from roadaware.tasks.pedestrians import build_examples

    answered = [set(frame.drop_nulls("crossing")["sample"].to_list()) for frame in told.values()]
    common = reduce(set.__and__, answered)
    facts = build_examples(held, "test")
    rows = np.flatnonzero(np.isin(facts.sample, list(common)))
    people = len(set(facts.pedestrian[rows].tolist()))
    yield f"{len(rows):,} samples of {people:,} pedestrians, those that are answered in every row:"
    yield ""
    yield "| boxes | answered | AUC | average precision | ECE |"
    yield "|---|---|---|---|---|"
    for (name, frame), those in zip(told.items(), answered, strict=True):
        of = dict(frame.select("sample", "crossing").iter_rows())
        state = pedestrians.SampleScores(
            np.array([of[key] for key in facts.sample[rows].tolist()]),
            facts.truth[rows],
            facts.pedestrian[rows],
            facts.video[rows],
            facts.tte_frames[rows],
        )
        ranks = pedestrians.evaluate_samples(
            state, pedestrians.PedestrianConfig.default("action"), resamples=RESAMPLES
        )
        bins = calibration.evaluate(state, CalibrationConfig.default(), resamples=RESAMPLES)
        cells = (cell(ranks, "auc"), cell(ranks, "average_precision"), cell(bins, "ece"))
        yield f"| {name} | {len(those):,} | {' | '.join(cells)} |"


def cell(found: MetricResult, metric: str) -> str:
    """A value with the ends of its interval over pedestrians."""
    row = next(row for row in found.of_group(None).iter_rows(named=True) if row["metric"] == metric)
    return f"{row['value']:.3f} [{row['low_pedestrian']:.3f}, {row['high_pedestrian']:.3f}]"


if __name__ == "__main__":
    main(sys.argv[1:])
