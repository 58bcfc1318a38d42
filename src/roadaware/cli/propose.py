"""`roadaware propose`: boxes around what nobody labelled, from LiDAR sweeps and images."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.networks import VideoSource
from roadaware.cli.options import (
    LOCAL,
    USUAL,
    Common,
    DatasetKind,
    Outcome,
    Output,
    Overwrite,
    Several,
    Spread,
    Switch,
    validate_range,
)
from roadaware.cli.predict import predict
from roadaware.config import digest, to_dict
from roadaware.corner_cases.config import PRESETS, CopgConfig
from roadaware.corner_cases.runner import PROPOSALS, build_order, propose_set
from roadaware.corner_cases.tracking import CUBOIDS, TRACKS, require_poses, save_cuboids, save_tracks
from roadaware.errors import UsageError
from roadaware.formats.cuboid_labels import CuboidForm
from roadaware.io.folders import remove_folder
from roadaware.reports.copg import write_steps
from roadaware.reports.scene_text import format_proposals
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
_CONFIG = (
    "What is changed by --set: default (several ways to cluster, a learnt score), angle (one way, as up to 0.9), "
    "reference (the steps as the paper has them)."
)
_MOST = "Boxes of an image that are kept, the best first; 0 for all. [default: the configuration's, 25]"
_TRACK = "Also follow proposals over the sweeps of each video; needs poses of the vehicle (nuScenes, synthetic scenes)."
_FORMS = "Also write cuboids for other tools: kitti (labels of each image), nuscenes (one JSON, boxes in the world)."
_STAGE = "After which step: initial (geometry alone), intermediate (background removed), final."
_SPLIT = "Only the videos of this split."
_PROCESSES = "Parts of 64 images at a time; 0 for as many as there are cores. [default: 1; of a cluster all]"
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
    config: Annotated[Literal["default", "angle", "reference"], Parameter(help=_CONFIG)] = "default",
    knob: Annotated[tuple[str, ...], Parameter(name="--set", help=_KNOB), Several] = (),
    most: Annotated[int | None, Parameter(help=_MOST, validator=validate_range(0, 100_000))] = None,
    track: Annotated[bool, Parameter(help=_TRACK), Switch] = False,
    forms: Annotated[tuple[CuboidForm, ...], Parameter(name="--as", help=_FORMS), Several] = (),
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    processes: Annotated[
        int | None, Parameter(help=_PROCESSES, validator=validate_range(0, 10_000), show_default=False)
    ] = None,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Propose corner cases: boxes around what stands on the road and no detector knows.

    Ground is removed from a sweep, its returns are clustered in several ways, clusters become boxes in the
    image and cuboids in space, and the best of each image are kept, ranked by their shape, and by masks and
    detections where these are given. Interrupted, the same command goes on where it was. An image with a
    broken sweep or calibration is counted and left out; once its file is corrected, the same command adds it.

    For example:

        roadaware propose runs/synthetic --semantics truth --detections truth --output proposals

        roadaware propose KITTI --output proposals --draw 4 --most 10 --as kitti

        roadaware propose NUSCENES --output proposals --track --as nuscenes

        roadaware propose KITTI --output proposals --config angle --set theta_deg=10 max_distance_m=30

        roadaware propose KITTI --objects street-small --output proposals
    """
    workers = spread.gather(processes, usual=1)
    if objects is not None:
        if detections is not None:
            raise UsageError("common objects come of --detections or of --objects, not of both")
        folder = out.with_name(f"{out.name}-objects")
        outputs.PREDICTIONS.check(folder)
        predict((objects,), videos=[dataset], source=VideoSource(reader=reader, split=split), out=folder)
        detections = str(folder / TABLES)
    chosen = configure_copg(knob, config)
    if most is not None:
        chosen = dataclasses.replace(chosen, most=most or None)
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
        require_poses(order)
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
    tracked: dict[str, int] = {}
    if track:
        with console.log_step("tracking"):
            found, tracked = save_tracks(order, found, out / TRACKS)
        console.print_note(f"wrote {out / TRACKS}")
    written: dict[str, int] = {}
    if forms:
        with console.log_step("writing cuboids"):
            written = save_cuboids(order, found, out / CUBOIDS, forms)
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
        "tracks": tracked,
        "cuboids": written,
        "drawn": drawn,
    }
    failed = describe_lost(tally.skipped, tally.refused) if strict else None
    text = format_proposals(order, target, tally, drawn)
    if tracked:
        text += (
            f"\n{tracked['things']:,} things in {tracked['boxes']:,} boxes: {tracked['moving']:,} move, "
            f"{tracked['seen_again']:,} were seen in more than one sweep; {tracked['carried']:,} boxes carried to others"
        )
    if written:
        text += f"\ncuboids: {', '.join(f'{count:,} {name}' for name, count in written.items())} in {out / CUBOIDS}"
    return Outcome(text, data, failed)


def describe_lost(skipped: Mapping[str, int], refused: int) -> str | None:
    """What `--strict` turns into exit code 1, in words.

    Args:
        skipped: images that were left out, by reason.
        refused: rows and files of the set that its reader did not take.
    """
    lines = [f"{sum(skipped.values()):,} images were left out"] if skipped else []
    lines += [f"{refused:,} rows or files of the set were refused"] if refused else []
    return f"--strict: {' and '.join(lines)}" if lines else None


def configure_copg(knobs: tuple[str, ...], base: str = "default") -> CopgConfig:
    """A configuration with some parameters changed.

    Args:
        knobs: NAME=VALUE each.
        base: a name of `corner_cases.config.PRESETS`.

    Raises:
        UsageError: if there is no such parameter, or its value is none.
    """
    names = {each.name for each in dataclasses.fields(CopgConfig)}
    changes: dict[str, Any] = {}
    for each in knobs:
        name, given, value = each.partition("=")
        if not given or name not in names:
            raise UsageError(f"--set is NAME=VALUE with one of {', '.join(sorted(names))}; not {each!r}")
        if name in changes:
            raise UsageError(f"--set gives {name} twice; say it once")
        # A number, nothing (`null`), a word, or names or lengths with commas between them.
        text = f"[{value}]" if name == "reach_m" and not value.startswith("[") else value
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = value.split(",") if name == "background" else value
        changes[name] = tuple(read) if isinstance(read, list) else read
    return dataclasses.replace(PRESETS[base](), **changes)
