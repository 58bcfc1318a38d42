"""`roadaware propose`: boxes around what nobody labelled, from sweeps and images; `ablate`: what each parameter does."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from roadaware.analysis.corner_tables import build_ablation_table
from roadaware.analysis.evaluation.corner_cases import open_truth
from roadaware.cli import console, outputs
from roadaware.cli.networks import VideoSource
from roadaware.cli.options import (
    CONTINUED,
    LOCAL,
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
from roadaware.cli.predict import predict
from roadaware.config import digest, to_dict
from roadaware.corner_cases.config import configure_copg
from roadaware.corner_cases.runner import PROPOSALS, build_order, load_run_inputs, propose_set
from roadaware.corner_cases.tracking import (
    CUBOIDS,
    TRACKS,
    estimate_set_poses,
    require_poses,
    save_cuboids,
    save_tracks,
)
from roadaware.errors import UsageError
from roadaware.formats.cuboid_labels import CuboidForm
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.io.files import write_atomically
from roadaware.io.folders import remove_folder
from roadaware.protocols.copg_ablation import (
    GRID,
    GridOrder,
    build_cells,
    collect_variants,
    compute_scores,
    parse_grid,
    run_grid,
)
from roadaware.reports.copg import format_ablation, plot_ablation, write_steps
from roadaware.reports.scene_text import describe_lost, format_proposals
from roadaware.scenes.tables import Scenes
from roadaware.tasks.prediction_runs import TABLES

_DIR = "A dataset with sweeps and calibration: KITTI, nuScenes, ONCE, or synthetic scenes."
_READER = "Name of the dataset's reader. [default: detected from its files]"
_SPLIT = "Only the videos of this split."
_SEMANTICS = (
    "What pixels show, to remove background: `truth` of synthetic scenes, `erring` for it with the faults "
    "of a segmenter, or a folder of grey PNGs, "
    "VIDEO/000000.png, with classes.json (names by number; those of Cityscapes unless it is there)."
)
_DETECTIONS = "Common objects to suppress: `truth` or `erring` of synthetic scenes, or saved predictions."
_OBJECTS = (
    "Instead of --detections: an object detector that looks for common objects first, a name of "
    "`models list` or what `predict` takes; what it finds is kept in OUT-objects."
)
_KNOB = "A parameter of the configuration, NAME=VALUE, such as theta_deg=4; several may follow."
_CONFIG = (
    "What is changed by --set: default (several ways to cluster, a learnt score), angle (one way, as up to 0.9), "
    "reference (the steps as the paper has them)."
)
_TOP = "Boxes of an image that are kept, the best first; 0 for all. [default: the configuration's, 25]"
_TRACK = (
    "Also follow proposals over the sweeps of each video; needs poses of the vehicle (nuScenes, synthetic scenes), "
    "or --odometry."
)
_ODOMETRY = (
    "For --track and --as nuscenes, estimate the poses of drives that lack one from their sweeps, by kiss-icp "
    "(roadaware[odometry])."
)
_FORMS = (
    "Also write cuboids for other tools: kitti (labels of each image), nuscenes (one JSON, boxes in the world), xtreme1, "
    "labelcloud (a JSON for each image)."
)
_STAGE = "After which step: initial (geometry alone), intermediate (background removed), final."
STRICT = "Exit with 1 if images were left out, or rows or files of the set refused."
_DRAW = "Also draw every step for the first so many images that have a proposal."


def propose(
    dataset: Annotated[Path, Parameter(help=_DIR)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help=CONTINUED), outputs.PROPOSALS],
    reader: Annotated[DatasetKind | None, Parameter(help=_READER)] = None,
    split: Annotated[str | None, Parameter(help=_SPLIT)] = None,
    semantics: Annotated[str | None, Parameter(help=_SEMANTICS)] = None,
    detections: Annotated[str | None, Parameter(help=_DETECTIONS)] = None,
    objects: Annotated[Path | None, Parameter(help=_OBJECTS)] = None,
    stage: Annotated[Literal["initial", "intermediate", "final"], Parameter(help=_STAGE)] = "final",
    config: Annotated[Literal["default", "angle", "reference"], Parameter(help=_CONFIG)] = "default",
    knob: Annotated[tuple[str, ...], Parameter(name="--set", help=_KNOB), Several] = (),
    top: Annotated[int | None, Parameter(help=_TOP, validator=validate_range(0, 100_000))] = None,
    track: Annotated[bool, Parameter(help=_TRACK), Switch] = False,
    odometry: Annotated[bool, Parameter(help=_ODOMETRY), Switch] = False,
    forms: Annotated[tuple[CuboidForm, ...], Parameter(name="--as", help=_FORMS), Several] = (),
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=STRICT), Switch] = False,
) -> Outcome:
    """Propose corner cases: boxes around what stands on the road and no detector knows.

    Ground is removed from a sweep, its returns are clustered in several ways, clusters become boxes in the
    image and cuboids in space, and the best of each image are kept, ranked by their shape, and by masks and
    detections where these are given. Interrupted, the same command goes on where it was. An image with a
    broken sweep or calibration is counted and left out; once its file is corrected, the same command adds it.

    For example:

        roadaware propose runs/synthetic --semantics truth --detections truth --output proposals

        roadaware propose KITTI --output proposals --draw 4 --top 10 --as kitti

        roadaware propose NUSCENES --output proposals --track --as nuscenes

        roadaware propose KITTI --output proposals --config angle --set theta_deg=10 max_distance_m=30

        roadaware propose KITTI --objects street-small --output proposals
    """
    workers = spread.gather()
    if objects is not None:
        if detections is not None:
            raise UsageError("common objects come of --detections or of --objects, not of both")
        folder = out.with_name(f"{out.name}-objects")
        outputs.PREDICTIONS.check(folder)
        predict((objects,), videos=[dataset], source=VideoSource(reader=reader, split=split), out=folder)
        detections = str(folder / TABLES)
    chosen = configure_copg(knob, config)
    if top is not None:
        chosen = dataclasses.replace(chosen, most=top or None)
    order = build_order(
        dataset,
        reader=reader,
        split=split,
        semantics=semantics,
        detections=detections,
        stage=stage,
        config=chosen,
    )
    if track or "nuscenes" in forms:
        require_poses(order, odometry=odometry)
    elif odometry:
        raise UsageError("--odometry estimates poses for --track and --as nuscenes, and neither is given")
    target = out / PROPOSALS
    try:
        with console.show_progress("proposing") as shown:
            found, tally = propose_set(order, out, workers=workers, progress=shown, overwrite=overwrite)
        if overwrite:
            # Those of the earlier proposals; what is asked for again is written below.
            for name in (TRACKS, CUBOIDS):
                remove_folder(out / name)
    except KeyboardInterrupt:
        without = " without --overwrite" if overwrite else ""
        console.print_note(f"what is done stays in {out}; the same command{without} goes on with it")
        raise
    console.print_note(f"wrote {target}")
    poses = {}
    if odometry:
        with console.show_progress("estimating poses") as shown:
            poses = estimate_set_poses(order, progress=shown)
    tracked: dict[str, int] = {}
    if track:
        with console.log_step("tracking"):
            found, tracked = save_tracks(order, found, out / TRACKS, poses)
        console.print_note(f"wrote {out / TRACKS}")
    written: dict[str, int] = {}
    if forms:
        with console.log_step("writing cuboids"):
            written = save_cuboids(order, found, out / CUBOIDS, forms, poses)
        console.print_note(f"wrote {out / CUBOIDS}")
    drawn = 0
    if draw:
        with console.log_step("drawing"):
            drawn = write_steps(
                order, out / "steps", draw, lambda why: console.print_note(f"not drawn: {why}")
            )
        console.print_note(f"drew {drawn} images in {out / 'steps'}")
    data = {
        "folder": str(target),
        "reader": order.reader,
        "config": to_dict(order.config),
        "config_digest": digest(order.config),
        **asdict(tally),
        "poses_estimated": len(poses),
        "tracks": tracked,
        "cuboids": written,
        "drawn": drawn,
    }
    failed = describe_lost(tally.skipped, tally.refused) if strict else None
    text = format_proposals(order, target, tally, drawn)
    if poses:
        text += f"\nposes of the vehicle at {len(poses):,} images were estimated from sweeps"
    if tracked:
        text += (
            f"\n{tracked['things']:,} things in {tracked['boxes']:,} boxes: {tracked['moving']:,} move, "
            f"{tracked['seen_again']:,} were seen in more than one sweep; {tracked['carried']:,} boxes carried to others"
        )
    if written:
        text += f"\ncuboids: {', '.join(f'{count:,} {name}' for name, count in written.items())} in {out / CUBOIDS}"
    return Outcome(text, data, failed)


# `roadaware ablate`: what each parameter of the proposals does, beside what is printed.

_GRID = (
    "NAME=V1,V2: parameters and values instead of those of the paper's Tables 5 to 7, such as theta_deg=4,8; "
    "several may follow, and background=road+sky,sky. A configuration's own value is always among them."
)
_ABLATE_CONFIG = "Whose parameters are varied: default, reference or both."
_TRUTH = "What proposals are judged against; the set's own boxes, where they say which are corner cases."
CSV, JSON, SVG, PNG = "knobs.csv", "knobs.json", "knobs.svg", "knobs.png"
TIMING = "timing.json"


def ablate(
    dataset: Annotated[Path, Parameter(help=_DIR)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help=CONTINUED), outputs.ABLATION],
    grid: Annotated[tuple[str, ...], Parameter(help=_GRID, show_default=False), Several] = (),
    config: Annotated[
        tuple[Literal["default", "angle", "reference"], ...], Parameter(help=_ABLATE_CONFIG), Several
    ] = (
        "angle",
        "reference",
    ),
    reader: Annotated[DatasetKind | None, Parameter(help=_READER)] = None,
    split: Annotated[str | None, Parameter(help=_SPLIT)] = None,
    semantics: Annotated[str | None, Parameter(help=_SEMANTICS)] = None,
    detections: Annotated[str | None, Parameter(help=_DETECTIONS)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=STRICT), Switch] = False,
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
    workers = spread.gather()
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
            scores = compute_scores(found.proposals, judged, resamples, seed, progress=shown)
    table = build_ablation_table(rows, places, found, scores)
    data = {
        "rows": table.to_dicts(),
        "pictures": found.pictures,
        "judged": judged is not None,
        "resamples": resamples,
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
