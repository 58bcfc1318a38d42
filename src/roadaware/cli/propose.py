"""`roadaware propose`: boxes around what nobody labelled, from LiDAR sweeps and images."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.networks import VideoSource
from roadaware.cli.options import (
    USUAL,
    Common,
    DatasetKind,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
    validate_range,
)
from roadaware.cli.predict import predict
from roadaware.config import digest, to_dict
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.runner import PROPOSALS, build_order, propose_set
from roadaware.errors import UsageError
from roadaware.reports.copg import write_steps
from roadaware.reports.corner_text import format_proposals
from roadaware.tasks.prediction_runs import TABLES

_DIR = "A dataset with sweeps and calibration: KITTI, nuScenes, ONCE, or synthetic scenes."
_OUT = "Where proposals go: a new or empty folder, or one of the same command, which is continued."
_READER = "Name of the dataset's reader. [default: detected from its files]"
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
_STAGE = "After which step: initial (geometry alone), intermediate (background removed), final."
_SPLIT = "Only the videos of this split."
_PROCESSES = "Images at a time; 0 for as many as there are cores."
STRICT = "Exit with 1 if images were left out, or rows or files of the set refused."
_DRAW = "Also draw every step for the first so many images that have a proposal."


def propose(
    dataset: Annotated[Path, Parameter(help=_DIR)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.PROPOSALS],
    reader: Annotated[DatasetKind | None, Parameter(help=_READER)] = None,
    split: Annotated[str | None, Parameter(help=_SPLIT)] = None,
    semantics: Annotated[str | None, Parameter(help=_SEMANTICS)] = None,
    detections: Annotated[str | None, Parameter(help=_DETECTIONS)] = None,
    objects: Annotated[Path | None, Parameter(help=_OBJECTS)] = None,
    stage: Annotated[Literal["initial", "intermediate", "final"], Parameter(help=_STAGE)] = "final",
    knob: Annotated[tuple[str, ...], Parameter(name="--set", help=_KNOB), Several] = (),
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    processes: Annotated[int, Parameter(help=_PROCESSES, validator=validate_range(0, 256))] = 1,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Propose corner cases: boxes around what stands on the road and no detector knows.

    Ground is removed from a sweep, its returns are clustered, clusters become boxes in the image, and what
    is background or a common object is dropped; a step whose input is not given is left out. Interrupted,
    the same command goes on where it was. An image with a broken sweep or calibration is counted and left
    out; once its file is corrected, the same command adds it.

    For example:

        roadaware propose runs/synthetic --semantics truth --detections truth --output proposals

        roadaware propose KITTI --output proposals --draw 4 --set theta_deg=10 max_distance_m=30

        roadaware propose KITTI --objects street-small --output proposals
    """
    if objects is not None:
        if detections is not None:
            raise UsageError("common objects come of --detections or of --objects, not of both")
        folder = out.with_name(f"{out.name}-objects")
        outputs.PREDICTIONS.check(folder)
        predict((objects,), videos=[dataset], source=VideoSource(reader=reader, split=split), out=folder)
        detections = str(folder / TABLES)
    order = build_order(
        dataset,
        reader=reader,
        split=split,
        semantics=semantics,
        detections=detections,
        stage=stage,
        config=configure_copg(knob),
    )
    target = out / PROPOSALS
    try:
        with console.show_progress("proposing") as shown:
            cores = processes or len(os.sched_getaffinity(0))
            tally = propose_set(order, out, processes=cores, progress=shown, overwrite=overwrite)[1]
    except KeyboardInterrupt:
        without = " without --overwrite" if overwrite else ""
        console.print_note(f"what is done stays in {out}; the same command{without} goes on with it")
        raise
    console.print_note(f"wrote {target}")
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
        "drawn": drawn,
    }
    failed = describe_lost(tally.skipped, tally.refused) if strict else None
    return Outcome(format_proposals(order, target, tally, drawn), data, failed)


def describe_lost(skipped: Mapping[str, int], refused: int) -> str | None:
    """What `--strict` turns into exit code 1, in words.

    Args:
        skipped: images that were left out, by reason.
        refused: rows and files of the set that its reader did not take.
    """
    told = [f"{sum(skipped.values()):,} images were left out"] if skipped else []
    told += [f"{refused:,} rows or files of the set were refused"] if refused else []
    return f"--strict: {' and '.join(told)}" if told else None


def configure_copg(knobs: tuple[str, ...]) -> CopgConfig:
    """The default configuration with some parameters changed.

    Raises:
        UsageError: if there is no such parameter, or its value is none.
    """
    names = {each.name for each in dataclasses.fields(CopgConfig)}
    changes: dict[str, Any] = {}
    for each in knobs:
        name, given, value = each.partition("=")
        if not given or name not in names:
            raise UsageError(f"--set is NAME=VALUE with one of {', '.join(sorted(names))}; not {each!r}")
        try:  # a number, nothing (`null`), a word, or names of classes with commas between them
            read = json.loads(value)
        except (ValueError, RecursionError):
            read = value.split(",") if name == "background" else value
        changes[name] = tuple(read) if isinstance(read, list) else read
    return dataclasses.replace(CopgConfig(), **changes)
