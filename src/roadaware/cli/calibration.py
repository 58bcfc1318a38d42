"""`roadaware calibration`: do scores mean what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.evaluation.pedestrians import COLUMNS, group_by_scenario, group_by_time
from roadaware.cli import console, outputs
from roadaware.cli.evaluate import NO_SAMPLES, SampleOptions
from roadaware.cli.options import (
    ConfigName,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    validate_range,
)
from roadaware.cli.results import write_result
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.reports import runs

if TYPE_CHECKING:
    from roadaware.analysis.evaluation.pedestrians import MatchedScores

_BY = "Also by these: columns of SAMPLES, or scenarios of the protocol (scale, state, speed, signal ...)."
_CONFIG = "Adaptive bins as published (`reference`), or corrected (`default`)."
_FOLDER = "Write results, bins as a table and a report with the diagrams here."
_WIDTHS = "How many bins of equal width stand beside the adaptive ones."
_SETS = (
    "Also sets of labels that promise to hold the true one this often, such as 0.9, and how often they do."
)


def calibration(
    scores: Annotated[Path, Parameter(help="The model's output: probabilities, one row per sample.")],
    /,
    *,
    source: SampleOptions = NO_SAMPLES,
    config: Annotated[ConfigName, Parameter(help=_CONFIG)] = "default",
    by: Annotated[list[str] | None, Parameter(help=_BY), Several] = None,
    uniform_bins: Annotated[int, Parameter(help=_WIDTHS, validator=validate_range(1, 1000))] = 10,
    conformal: Annotated[float | None, Parameter(help=_SETS)] = None,
    draws: Resamples = 1000,
    seed: Seed = 0,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
) -> Outcome:
    """Ask whether a pedestrian model's probabilities mean what they say: is 0.9 right nine times of ten?

    Needs SCORES, a csv file without header with one row of probabilities per sample (1 number, the
    probability of crossing; or one per class, which sum to 1), and the samples: a csv file with a header
    and the columns truth, pedestrian and tte_frames (and video, for intervals over videos), or a protocol
    on a dataset. Rows are matched by their order. Either may be a Parquet file with the same columns.
    Without --task, 1 score a sample is action, 3 are intention, 12 are risk.

    A sample's confidence is its largest probability. Samples are put into bins by confidence, and in each
    bin the mean confidence is held against the share of right answers. ECE is the mean gap, weighted by
    the samples of a bin; MCE is the largest gap; both are best at 0. Adaptive bins hold more samples where
    confidences are dense. `ece_if_calibrated` is what a perfectly calibrated model would show on so few
    pedestrians: an ECE near it is no evidence of a fault. NLL and the Brier score need no bins and punish
    wrong answers too. Everything is given for all samples, by time to event, and --by more.

    For example:

        roadaware calibration model.csv --samples samples.csv --json out.json

        roadaware calibration model.csv --samples samples.csv \\
            --by weather --conformal 0.9 -o runs/calibration

        roadaware calibration pf_action_jaad.csv --protocol jaad-action@iv2024 \\
            --data JAAD-JAAD_2.0.zip --config reference --by scale state
    """
    from roadaware.metrics.calibration import CalibrationConfig, evaluate
    from roadaware.reports.calibration import (
        build_calibration_files,
        build_calibration_json,
        format_calibration,
    )

    held, asked = source.match(scores, config, any_task=True)
    groupings = group_by_scenario(held, source.samples, by or [], config)
    likely = {columns: task for task, columns in COLUMNS.items()}
    facts = {
        "name": scores.stem,
        "task": asked or likely.get(held.state.scores.shape[1]),
        "protocol": source.protocol,
        "config_name": config,
        "clipped": held.clipped,
        **{"draws": draws, "interval": runs.get_interval_method(draws), "seed": seed},
        "conformal": None if conformal is None else _sets(held, conformal, seed),
    }
    named = CalibrationConfig.reference() if config == "reference" else CalibrationConfig.default()
    chosen = replace(named, uniform_bins=uniform_bins)
    times, seconds = group_by_time(held)
    try:
        with console.log_step("resampling" if draws else "binning"):
            result = evaluate(held.state, chosen, draws=draws, seed=seed, groupings=[*times, *groupings])
    except InputError as error:
        raise InputError(error.message, where=error.where or str(scores), hint=error.hint) from error
    found = build_calibration_json(held.state, result, chosen, facts)
    if folder is not None:
        write_result(folder, build_calibration_files(found, result, seconds), overwrite=overwrite)
    return Outcome(format_calibration(found), found)


def _sets(held: MatchedScores, level: float, seed: int) -> dict[str, Any]:
    """How sets of both rules did, JSON-ready."""
    from roadaware.metrics.calibration import HALVINGS, evaluate_coverage

    found = evaluate_coverage(held.state, level, seed=seed)
    return {
        "level": level,
        "halvings": HALVINGS,
        "rules": {name: to_dict(one) for name, one in found.items()},
    }
