"""`roadaware propose`: boxes around what nobody labelled, from LiDAR sweeps and images."""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from PIL import Image

from roadaware.cli import console, outputs
from roadaware.cli.datasets import DatasetKind
from roadaware.cli.options import USUAL, Common, Outcome, Output, Overwrite, Several, Switch, validate_range
from roadaware.cli.predict import predict
from roadaware.cli.predict_videos import VideoSource
from roadaware.config import digest, to_dict
from roadaware.corner_cases import runner
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.runner import PROPOSALS, iterate_proposals, require_opened, run
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.reports import terminal
from roadaware.reports.copg import draw_sheet, draw_steps
from roadaware.scenes.sensors import open_frame
from roadaware.scenes.store import save
from roadaware.tasks.prediction_runs import TABLES

if TYPE_CHECKING:
    from roadaware.corner_cases.run_stats import Tally
    from roadaware.corner_cases.runner import Order

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
_SHOWN = 10
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
        detections = _found(objects, dataset, reader, split, out)
    order = build_order(dataset, reader, split, semantics, detections, stage, knob)
    try:
        with console.show_progress("proposing") as shown:
            cores = processes or len(os.sched_getaffinity(0))
            found, tally = run(order, out, processes=cores, progress=shown, overwrite=overwrite)
    except KeyboardInterrupt:
        without = " without --overwrite" if overwrite else ""
        console.print_note(f"what is done stays in {out}; the same command{without} goes on with it")
        raise
    require_opened(order, tally)
    target = out / PROPOSALS
    save(found, target, overwrite=True)
    console.print_note(f"wrote {target}")
    drawn = _draw(order, out, draw) if draw else 0
    failed = describe_lost(tally.skipped, tally.refused) if strict else None
    return Outcome(_text(order, target, tally, drawn), _data(order, target, tally, drawn), failed)


def _found(weights: Path, dataset: Path, reader: str | None, split: str | None, out: Path) -> str:
    """Where the detections of the images lie, once all are made; the same command goes on with them."""

    folder = out.with_name(f"{out.name}-objects")
    outputs.PREDICTIONS.check(folder)
    predict((weights,), videos=[dataset], source=VideoSource(reader=reader, split=split), out=folder)
    return str(folder / TABLES)


def describe_lost(skipped: Mapping[str, int], refused: int) -> str | None:
    """What `--strict` turns into exit code 1, in words.

    Args:
        skipped: images that were left out, by reason.
        refused: rows and files of the set that its reader did not take.
    """
    told = [f"{sum(skipped.values()):,} images were left out"] if skipped else []
    told += [f"{refused:,} rows or files of the set were refused"] if refused else []
    return f"--strict: {' and '.join(told)}" if told else None


def build_order(
    dataset: Path,
    reader: str | None,
    split: str | None,
    semantics: str | None,
    detections: str | None,
    stage: Any = "final",
    knob: tuple[str, ...] = (),
) -> Order:
    """What is proposed, as the options say it.

    Args:
        dataset: its folder.
        reader: its kind; seen from its files where None.
        split: only its videos; all where None.
        semantics: as the option.
        detections: as the option.
        stage: after which step proposals are kept.
        knob: as the option.

    Raises:
        UsageError: if an option does not fit.
        InputError: if the set cannot be read.
    """

    return runner.build_order(
        dataset,
        reader=reader,
        split=split,
        semantics=semantics,
        detections=detections,
        stage=stage,
        config=configure_copg(knob),
    )


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
        changes[name] = _knob(name, value)
    return dataclasses.replace(CopgConfig(), **changes)


def _knob(name: str, value: str) -> Any:
    """A number, nothing (`null`), a word, or names of classes with commas between them."""

    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return tuple(value.split(",")) if name == "background" else value
    return tuple(read) if isinstance(read, list) else read


def _draw(order: Order, out: Path, count: int) -> int:
    """Draw the steps of the first images with a proposal; how many there were."""

    folder, done = out / "steps", 0
    folder.mkdir(exist_ok=True)
    for earlier in folder.glob("[0-9][0-9][0-9][0-9]-*.png"):
        earlier.unlink()
    with console.log_step("drawing"):
        for moment, capture, found, scenes in iterate_proposals(order):
            if done == count:
                break
            if not len(found):
                continue
            try:
                picture = open_frame(scenes, Path(order.root), moment.video, moment.frame)
            except InputError as error:
                console.print_note(f"not drawn: {error.message}")
                continue
            held = io.BytesIO()
            Image.fromarray(draw_sheet(draw_steps(found, capture, picture), columns=2)).save(held, "PNG")
            name = f"{done:04d}-{moment.video.replace('/', '-')}-{moment.frame:06d}.png"
            write_atomically(folder / name, held.getvalue())
            done += 1
    console.print_note(f"drew {done} images in {folder}")
    return done


def _text(order: Order, target: Path, tally: Tally, drawn: int) -> str:
    left_out = [
        name
        for name, given in (("background removal", order.semantics), ("common classes", order.detections))
        if given is None
    ]
    rows = [(step, f"{count:,}") for step, count in tally.proposals.items()]
    lines = [
        f"{tally.pictures:,} images with a sweep, {tally.with_one:,} of them with a proposal",
        terminal.format_table(["proposals", "count"], rows),
    ]
    if left_out:
        lines.append(f"left out, since nothing was given for it: {' and '.join(left_out)}")
    if tally.skipped:
        total = sum(tally.skipped.values())
        lines += [f"{total:,} images without proposals because of this:", _format_reasons(tally.skipped)]
    if tally.odd:
        lines += ["odd about images with proposals:", _format_reasons(tally.odd)]
    if tally.wondered:
        lines += ["odd about the set itself:", _format_reasons(tally.wondered)]
    if tally.refused:
        again = f"roadaware read {order.reader} {terminal.format_cell(order.root)}"
        lines.append(f"{tally.refused:,} rows or files of the set were refused; {again} says which and why")
    if tally.made and tally.seconds:
        lines.append(f"{tally.made / tally.seconds:,.1f} images per CPU second")
    lines += [f"{drawn} images drawn"] if drawn else []
    lines.append(
        f"next: roadaware evaluate corner-cases --truth TRUTH --predictions {terminal.format_cell(target)} --agnostic"
    )
    return "\n".join(lines)


def _format_reasons(reasons: dict[str, int]) -> str:
    """The commonest reasons with their numbers, and how many more there are."""
    told = [f"{count:,}: {terminal.format_cell(reason)}" for reason, count in list(reasons.items())[:_SHOWN]]
    more = len(reasons) - _SHOWN
    return terminal.format_bullets(
        [*told, f"and {more:,} further reasons (--json lists all)"] if more > 0 else told
    )


def _data(order: Order, target: Path, tally: Tally, drawn: int) -> dict[str, Any]:

    return {
        "folder": str(target),
        "reader": order.reader,
        "config": to_dict(order.config),
        "config_digest": digest(order.config),
        **asdict(tally),
        "drawn": drawn,
    }
