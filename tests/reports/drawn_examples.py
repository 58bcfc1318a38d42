"""Every image of reports, drawn with one name wherever a name can stand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from event_examples import beside, counts, faults, held, panel, strip

from roadaware.reports.audit import count_bars
from roadaware.reports.bars import (
    STATUSES,
    Difference,
    Estimate,
    Share,
    compute_curve,
    plot_class_curves,
    plot_coverage,
    plot_estimates,
    plot_forest,
    plot_precision_recall,
    plot_reliability,
    plot_scenarios,
    plot_shares,
    score_over_time,
)
from roadaware.reports.cross_dataset_figures import plot_critical_difference
from roadaware.reports.drawing import plot_strips
from roadaware.reports.evaluation import Story, plot_pedestrian, plot_risk_regions
from roadaware.reports.events import plot_error_gains
from roadaware.reports.page import Picture
from roadaware.statistics.comparison import compare

SCORES = np.array([0.9, 0.8, 0.7, 0.2, 0.4, 0.1])
TRUTH = np.array([1, 1, 0, 0, 1, 0])
TTE = np.array([30, 60, 90, 30, 60, 90])


def _story(name: str) -> Story:
    starts = np.array([0, 10, 20])
    scores = np.array([0.1, 0.7, 0.9])
    frames = np.arange(80)
    heights = 50 + frames.astype(float)
    return Story(name, name, name, starts, starts + 15, scores, 70, name, frames, heights, [(name, 60, 80)])


DRAWN: dict[str, Callable[[str], Picture]] = {
    "precision_recall": lambda name: plot_precision_recall([compute_curve(name, SCORES, TRUTH == 1)]),
    "reliability": lambda name: plot_reliability(
        np.array([0.55, 0.75, 0.95]), np.array([0.5, 0.7, 0.9]), np.array([10, 20, 400]), error=0.05
    ),
    "score_over_time": lambda name: score_over_time(
        TTE, SCORES, TRUTH, {1: name, 0: "other " + name}, bins=3
    ),
    "scenario_bars": lambda name: plot_scenarios(
        [Estimate(name, 0.5, 0.4, 0.6, 12, name), Estimate("b", None, n=0, family=name, reason=name)],
        name,
        overall=0.55,
    ),
    "forest": lambda name: plot_forest(
        [
            Difference(name, 0.1, 0.05, 0.15, 0.01, 0.2, "better"),
            Difference("b", None, None, None, None, None, "undefined"),
        ],
        name,
        "other " + name,
    ),
    "shares": lambda name: plot_shares([Share(name, 3, 10), Share("b", 4)], title=name),
    "coverage": lambda name: plot_coverage([(name, name, status) for status in STATUSES]),
    "risk_regions": lambda name: plot_risk_regions([0.8, None, 0.1, 0.4], [5, 0, 7, 9]),
    "pedestrian_over_time": lambda name: plot_pedestrian(_story(name)),
    "estimates": lambda name: plot_estimates(
        [Estimate(name, 0.5, 0.4, 0.6, 12, name), Estimate("b", None, family=name)], name, title=name
    ),
    "class_curves": lambda name: plot_class_curves([panel(name), panel("b")], kind=name),
    "film": lambda name: plot_strips([strip(name), strip("b")], title=name),
    "fault_grid": lambda name: plot_error_gains(faults(name)),
    "critical_difference": lambda name: plot_critical_difference(
        compare(np.arange(24.0).reshape(8, 3), [name, "b", "c"]), name
    ),
    "count_bars": lambda name: count_bars(counts(name), held(name), beside(counts(name))),
}
