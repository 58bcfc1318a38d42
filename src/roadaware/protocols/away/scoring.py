"""Scoring: the rows of the results that one cell's scores come to."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.metrics.calibration_config import CalibrationConfig
from roadaware.metrics.calibration_core import SCALES, CalibrationCore
from roadaware.metrics.pedestrian_config import PedestrianConfig
from roadaware.metrics.pedestrian_core import PedestrianCore
from roadaware.metrics.scores import SampleScores
from roadaware.protocols.away.results import HIGHER
from roadaware.statistics.intervals import Scale, Units

Row = dict[str, Any]
"""`metric`, `config`, `value`, `low`, `high` and `caution`."""


def rows_of(state: SampleScores, draws: int) -> list[Row]:
    """Every metric of the scores, with the 95 % interval over pedestrians.

    Args:
        state: scores beside their truth.
        draws: most weightings of pedestrians; 0 for no intervals.
    """
    ranked = PedestrianCore.of(state, PedestrianConfig.default("action"))
    once = {name: float(values[0]) for name, values in ranked.values(ranked.once()).items()}
    drawn = ranked.drawn("pedestrian", draws, 0) if draws else None
    units = ranked.units("pedestrian", draws, 0) if draws else None
    rows = [_row(name, "", once[name], (drawn or {}).get(name), units, "share") for name in HIGHER]
    for config in ("reference", "default"):
        named = CalibrationConfig.reference() if config == "reference" else CalibrationConfig.default()
        binned = CalibrationCore.of(state, named)
        point = binned.once()
        again = (binned.drawn("pedestrian", draws, 0) if draws else None) or {}
        wanted = [("ece", config), ("mce", config)]
        wanted += [("nll", ""), ("brier", "")] if config == "default" else []
        rows += [_row(n, of, point[n], again.get(n), units, SCALES[n]) for n, of in wanted]
    return rows


def _row(metric: str, config: str, value: float, drawn: Floats | None, units: Units | None, on: Scale) -> Row:
    known = bool(np.isfinite(value))
    ends = units.interval(value, drawn, on) if drawn is not None and units is not None and known else None
    return {
        "metric": metric,
        "config": config,
        "value": value if known else None,
        "low": None if ends is None else ends.low,
        "high": None if ends is None else ends.high,
        "caution": None if ends is None else ends.caution,
    }
