"""`roadaware segment`: what each pixel of images shows, as masks that `propose` reads."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.networks import (
    ALL_VIDEOS,
    Device,
    Precision,
    VideoSource,
    select_device,
    show_resumable,
)
from roadaware.cli.options import USUAL, Common, Outcome, Output, Overwrite, Several, Switch, validate_range
from roadaware.corner_cases.config import BACKGROUND
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.reports import terminal
from roadaware.tasks.prediction_runs import MaskRun

_FOLDER = (
    "A name of `models list`, or the folder of a segmenter of transformers: SegFormer, UperNet, Mask2Former "
    "or MaskFormer."
)
_VIDEOS = (
    "The images: KITTI, nuScenes, ONCE, synthetic scenes, saved tables, another set with --reader, or videos "
    "and folders of videos."
)
_OUT = "Where masks go: a new or empty folder, or one of the same command, which is continued."
_SHOWN = 10


def segment(
    folder: Annotated[Path, Parameter(help=_FOLDER)],
    /,
    *,
    videos: Annotated[list[Path], Parameter(help=_VIDEOS), Several],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.MASKS],
    source: VideoSource = ALL_VIDEOS,
    batch: Annotated[int, Parameter(help="Images at a time.", validator=validate_range(1, 4096))] = 1,
    device: Device = "auto",
    precision: Precision = "fp32",
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if an image cannot be read."), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Segment images: a grey PNG of classes for each, as `propose --semantics` reads them.

    The folder is one of transformers, on the disk: config.json, model.safetensors and
    preprocessor_config.json. Nothing is downloaded. A mask is kept as soon as it is whole; after Ctrl-C or a
    crash the same command goes on with the next image. An image that cannot be read is counted and left
    out, and tried again the next time.

    For example:

        roadaware segment SEGFORMER-CITYSCAPES --videos KITTI --output masks

        roadaware propose KITTI --semantics masks --output proposals
    """
    from roadaware.models.loading import digest_model_files
    from roadaware.models.object_detectors import open_segmenter

    place, folder = select_device(device, precision), resolve_weights(folder, ("segmentation",))
    with console.log_step("opening the segmenter"):
        segmenter = open_segmenter(folder, device=place[0], dtype=place[1])
    asked = source.collect(videos)
    settings = {"weights": digest_model_files(folder), "precision": precision}
    run = MaskRun(out, settings, segmenter.labels, overwrite=overwrite)
    for video, reason in asked.refused.items():
        console.print_error(f"{terminal.format_cell(video)} is left out: {reason}")
    total = sum(len(film.frames) for film in asked.films)
    with show_resumable(
        "segmenting", lambda: f"{run.written + run.before} of {total} masks are kept"
    ) as shown:
        run.segment(segmenter, asked.films, batch=batch, progress=shown)
    whole = int(run.pixels.sum())
    share = {label: n / whole for label, n in zip(run.labels, run.pixels.tolist(), strict=True) if n}
    data = {
        "folder": str(out),
        "labels": list(run.labels),
        "bits": run.bits,
        "written": run.written,
        "there_already": run.before,
        "gone": len(run.gone),
        "gone_first": run.gone[:_SHOWN],
        "refused": dict(asked.refused),
        "share_of_pixels": dict(sorted(share.items(), key=lambda item: -item[1])),
    }
    gone = len(run.gone) + len(asked.refused)
    failed = f"--strict: {gone} images or videos cannot be read" if strict and gone else None
    return Outcome(_text(data, run), data, failed)


def _text(data: dict[str, Any], run: MaskRun) -> str:
    lines = [f"{data['written']:,} masks written, {data['there_already']:,} were there already"]
    rows = [
        (terminal.format_cell(label), f"{share:.1%}")
        for label, share in islice(data["share_of_pixels"].items(), _SHOWN)
    ]
    if rows:
        lines.append(terminal.format_table(["class", "pixels"], rows))
    if data["gone"]:
        lines += [f"{data['gone']:,} images cannot be read, and are tried again by the same command:"]
        lines.append(terminal.format_bullets([terminal.format_cell(reason) for reason in data["gone_first"]]))
    if not set(BACKGROUND) & set(run.labels):
        lines.append(
            "none of the classes is called as background is (road, building, sky, ...): name those that are "
            "with `propose --set background=NAME,NAME`"
        )
    lines.append(
        f"next: roadaware propose DATASET --semantics {terminal.format_cell(data['folder'])} --output PROPOSALS"
    )
    return "\n".join(lines)
