"""`roadaware ablate`: what each parameter of the proposals does, beside what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.analysis.corner_tables import build_ablation_table
from roadaware.analysis.evaluation.corner_cases import open_truth
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    LOCAL,
    USUAL,
    Common,
    DatasetKind,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    Spread,
    Switch,
    validate_range,
)
from roadaware.cli.propose import STRICT, describe_lost
from roadaware.corner_cases.runner import build_order, load_run_inputs
from roadaware.datasets.loading import parse_json_or_word
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.io.files import write_atomically
from roadaware.protocols.copg_ablation import (
    GRID,
    GridOrder,
    build_cells,
    collect_variants,
    compute_scores,
    run_grid,
)
from roadaware.reports.copg import format_ablation, plot_ablation

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes

_DIR = "A dataset with sweeps and calibration: synthetic scenes, or KITTI, nuScenes, ONCE."
_OUT = "Where results go: a new or empty folder, or one of the same command, which is continued."
_READER = "Name of the dataset's reader. [default: detected from its files]"
_GRID = (
    "NAME=V1,V2: parameters and values instead of those of the paper's Tables 5 to 7, such as theta_deg=4,8; "
    "several may follow, and background=road+sky,sky. A configuration's own value is always among them."
)
_CONFIG = "Whose parameters are varied: default, reference or both."
_SEMANTICS = (
    "What pixels show: `truth` or `erring` of synthetic scenes, or a folder of masks, as for `propose`."
)
_DETECTIONS = (
    "Common objects: `truth` or `erring` of synthetic scenes, or saved predictions, as for `propose`."
)
_TRUTH = "What proposals are judged against; the set's own boxes, where they say which are corner cases."
_SPLIT = "Only the videos of this split."
_PROCESSES = "Parts at a time; 0 for as many as there are cores. [default: 1; of a cluster all]"
CSV, JSON, SVG, PNG = "knobs.csv", "knobs.json", "knobs.svg", "knobs.png"
TIMING = "timing.json"


def ablate(
    dataset: Annotated[Path, Parameter(help=_DIR)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.ABLATION],
    grid: Annotated[tuple[str, ...], Parameter(help=_GRID, show_default=False), Several] = (),
    config: Annotated[
        tuple[Literal["default", "angle", "reference"], ...], Parameter(help=_CONFIG), Several
    ] = (
        "angle",
        "reference",
    ),
    reader: Annotated[DatasetKind | None, Parameter(help=_READER)] = None,
    split: Annotated[str | None, Parameter(help=_SPLIT)] = None,
    semantics: Annotated[str | None, Parameter(help=_SEMANTICS)] = None,
    detections: Annotated[str | None, Parameter(help=_DETECTIONS)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    draws: Resamples = 1000,
    seed: Seed = 0,
    processes: Annotated[
        int | None, Parameter(help=_PROCESSES, validator=validate_range(0, 10_000), show_default=False)
    ] = None,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Ablate the proposals, one parameter at a time: AP, AR, proposals and images with one, with intervals.

    The tables of the paper's appendix B, on your set, beside the printed rows. What a parameter does not
    change is not computed again: a step runs once for each image and each value of its parameters.
    Interrupted, the same command goes on where it was. An image with a broken sweep is counted and left out.

    For example:

        roadaware ablate synthetic --semantics erring --detections erring --output ablation

        roadaware ablate synthetic --config angle --grid theta_deg=4,8 standing_m=0,1 \\
            --output few
    """
    workers = spread.gather(processes, usual=1)
    rows, left_out = build_cells(
        tuple(dict.fromkeys(config)),
        parse_grid(grid) if grid else GRID,
        semantics=semantics is not None,
        detections=detections is not None,
    )
    variants, places = collect_variants(rows)
    order = build_order(dataset, reader=reader, split=split, semantics=semantics, detections=detections)
    source = load_run_inputs(order).scenes
    judged: Scenes | None = source
    if truth is not None:
        judged = open_truth(truth, None)
    elif "corner_case" not in source.boxes.columns or not source.boxes["corner_case"].any():
        judged = None  # nothing says which objects are corner cases
    with console.show_progress("proposing") as shown:
        found = run_grid(
            GridOrder(order, variants),
            out,
            workers=workers,
            progress=shown,
            overwrite=overwrite,
        )
    scores = None
    if judged is not None:
        with console.show_progress("judging") as shown:
            scores = compute_scores(found.proposals, judged, draws, seed, progress=shown)
    table = build_ablation_table(rows, places, found, scores)
    data = {
        "rows": table.to_dicts(),
        "pictures": found.pictures,
        "judged": judged is not None,
        "draws": draws,
        "seed": seed,
        "knobs_left_out": left_out,
        "skipped": found.skipped,
        "runs_of_steps": found.runs,
        "made": found.made,
    }
    image = plot_ablation(table)
    folders.write_text(out / CSV, format_csv(table))
    folders.write_text(out / JSON, folders.encode_json(data))
    seconds = {"seconds": found.seconds}  # apart, so that equal input gives equal bytes
    folders.write_text(out / TIMING, folders.encode_json(seconds))
    folders.write_text(out / SVG, image.svg() + "\n")
    write_atomically(out / PNG, image.png())
    console.print_note(f"wrote {out / CSV}, {JSON}, {SVG} and {PNG}")
    failed = describe_lost(found.skipped, len(source.rejected)) if strict else None
    return Outcome(
        format_ablation(table, found, left_out, rows=len(rows), judged=judged is not None),
        data | seconds,
        failed,
    )


def parse_grid(grid: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    """Knob to values, of what stands behind `--grid`.

    Args:
        grid: such as `theta_deg=4,8`.

    Raises:
        UsageError: if it is no such list, or names a parameter twice.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for each in grid:
        name, given, values = each.partition("=")
        if not given or not values:
            raise UsageError(f"--grid is NAME=V1,V2, such as theta_deg=4,8; not {each!r}")
        if name in found:
            raise UsageError(f"--grid names {name} twice; list all its values once")
        found[name] = tuple(
            tuple(value.split("+")) if name == "background" else parse_json_or_word(value)
            for value in values.split(",")
        )
    return found
