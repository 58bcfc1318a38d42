"""`roadaware evaluate pedestrians`: how good are these scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import bars, console, folders, outputs, runs, thresholds
from roadaware.cli.options import (
    USUAL,
    Common,
    ConfigName,
    Draws,
    MetricConfig,
    Outcome,
    OutputFolder,
    Overwrite,
    Seed,
    Several,
    TaskName,
)
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.cli.pedestrian_inputs import Judged
    from roadaware.metrics.pedestrians import Task

SplitName = Literal["train", "val", "test"]
_BY = "Also by scenario: scale, state, speed, ego_action, signal, road, lanes ...; several make a product."
_BARS = "METRIC=VALUE, several if need be: exit with 1 if a metric is lower, or undefined."
_FOLDER = "Write the run here: settings, results, rows per sample and pedestrian, report."


def pedestrians(
    *,
    scores: Annotated[Path, Parameter(help="The model's output, in [0, 1].")],
    samples: Annotated[Path | None, Parameter(help="The samples, in the same order.")] = None,
    task: Annotated[TaskName | None, Parameter(help="What was asked; a protocol says so itself.")] = None,
    protocol: Annotated[str | None, Parameter(help="Instead of --samples: its name, with --data.")] = None,
    data: Annotated[Path | None, Parameter(help="The protocol's dataset: folder or zip.")] = None,
    split: Annotated[SplitName, Parameter(help="Which samples of the protocol.")] = "test",
    by: Annotated[list[str] | None, Parameter(help=_BY), Several] = None,
    config: MetricConfig = "default",
    draws: Draws = 0,
    seed: Seed = 0,
    fail_under: Annotated[list[str] | None, Parameter(help=_BARS), Several] = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Score any model's output on pedestrians: base, weighted, soft, hard and ranking metrics.

    Needs SCORES, a csv file without header with one row per sample (1 number for action, 3 for
    intention, 12 for risk), and the samples: either a csv file with a header and the columns truth,
    pedestrian and tte_frames (and video, for intervals over videos), or the samples of a protocol on a
    dataset. Rows are matched by their order, so a single bad row is an error and nothing is scored.
    Either file may be Parquet with the same columns.

    For example:

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action --draws 1000

        roadaware evaluate pedestrians --scores pf_action_jaad.csv \\
            --protocol jaad-action@iv2024 --data JAAD-JAAD_2.0.zip \\
            --config reference --json result.json -o runs/pedformer

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action --fail-under auc=0.85 f1=0.6
    """
    from roadaware.cli.pedestrian_inputs import judged

    lowest = thresholds.parsed(fail_under or [])
    held, asked = judged(scores, samples, task, protocol, data, split, config)
    if asked is None:
        raise UsageError("name what was asked: --task action, intention or risk")
    run = _run(held, asked, config, by or [], scores.stem, draws, seed, protocol or "")
    facts = runs.summary(run)
    if folder is not None:
        _save(run, folder, overwrite=overwrite)
    from roadaware.cli.tables import run_text

    return Outcome(run_text(run), facts, bars.failure(facts["metrics"], lowest))


def _run(
    judged: Judged,
    task: Task,
    config: ConfigName,
    by: list[str],
    name: str,
    draws: int,
    seed: int,
    protocol: str,
) -> runs.Run:
    from roadaware.cli.pedestrian_inputs import scenarios
    from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples

    chosen = PedestrianConfig.reference(task) if config == "reference" else PedestrianConfig.default(task)
    groups = None
    if by:
        if judged.scenes is None:
            raise UsageError("--by needs the dataset itself: --protocol NAME and --data PATH, not --samples")
        groups = scenarios(judged.scenes, by, config)
    with console.working("resampling" if draws else "scoring"):
        result = evaluate_samples(
            judged.state, chosen, draws=draws, seed=seed, groups=groups, n_clipped=judged.clipped
        )
    facts: dict[str, Any] = {"config_name": config, "clipped": judged.clipped}
    if judged.scenes is not None:
        facts["sampling"] = judged.scenes.meta.notes["protocol"]
    return runs.Run(name, judged.state, chosen, result, draws, seed, protocol, facts, groups)


def _save(run: runs.Run, folder: Path, *, overwrite: bool) -> None:
    from roadaware.cli.pages import run_page

    folders.put_folder(folder, runs.files_of(run, run_page([run])), overwrite=overwrite)
    console.note(f"wrote {folder} (report: {folder / 'report.html'})")
