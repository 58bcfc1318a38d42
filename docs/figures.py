"""Draw the images of README and docs again: `python docs/figures.py DATA` (real annotations)."""

from __future__ import annotations

import sys
from pathlib import Path

from roadaware.analysis.compare import compare
from roadaware.io.files import write_atomically
from roadaware.metrics.calibration import CalibrationConfig, evaluate
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, collect_sample_scores
from roadaware.protocols.iv2024 import reproduce
from roadaware.reports.bars import Difference, plot_forest
from roadaware.reports.calibration import plot_calibration
from roadaware.reports.evaluation import plot_evaluation, plot_story
from roadaware.reports.page import Picture
from roadaware.reports.text import format_name
from roadaware.tasks.pedestrians import split_samples

SHOWN = ("auc", "average_precision", "balanced_accuracy", "accuracy", "f1", "soft_f1", "hard_f1")


def main(data: Path) -> None:
    """Reproduce, compare, draw."""
    done = reproduce(data, baselines=True)
    action, risk = done.questions["jaad-action@iv2024"], done.questions["jaad-risk@iv2024"]
    released, _ = collect_sample_scores(action.predictions, split_samples(action.scenes, "test"), "action")
    ours = action.baselines["boosting"]
    boosting, _ = collect_sample_scores(ours.predictions, ours.scenes, "action")
    names = ("boxes + boosting", "PedFormer")
    compared = compare(boosting, released, PedestrianConfig.reference("action"), resamples=1000, names=names)
    columns = ("difference", "low_pedestrian", "high_pedestrian", "low_video", "high_video", "verdict")
    by_name = {row["metric"]: row for row in compared.table.iter_rows(named=True)}
    rows = [Difference(format_name(name), *(by_name[name][c] for c in columns)) for name in SHOWN]
    regions, _ = collect_sample_scores(risk.predictions, split_samples(risk.scenes, "test"), "risk")
    pictures = {
        "differences": plot_forest(rows, *names),
        "reliability": reliability(released),
        "pedestrian": plot_story(split_samples(action.scenes, "test"), released),
        "regions": next(p for p in plot_evaluation(regions, risk.metrics) if "image plane" in p.title),
    }
    for name, picture in pictures.items():
        path = Path(__file__).parent / "images" / f"{name}.svg"
        write_atomically(path, picture.svg(name).encode())
        print(f"{path.name}: {picture.caption}")


def reliability(state: SampleScores) -> Picture:
    """The reliability diagram of scores, in adaptive bins with intervals over pedestrians."""
    found = evaluate(state, CalibrationConfig.default(), resamples=1000)
    return plot_calibration(found, found.instances("bin"), {})[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
