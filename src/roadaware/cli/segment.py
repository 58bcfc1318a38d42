"""`roadaware segment`: what each pixel of images shows, as masks that `propose` reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.devices import Device, Precision, select_device
from roadaware.cli.options import USUAL, Common, Outcome, Output, Overwrite, Several, Switch, validate_range
from roadaware.cli.predict_videos import ALL_VIDEOS, VideoSource
from roadaware.corner_cases.config import BACKGROUND
from roadaware.errors import Terminated
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.reports import terminal
from roadaware.tasks.resumable_runs import MaskRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from roadaware.cli.predict_videos import Asked
    from roadaware.models.segmenters import Segmenter
    from roadaware.training.footage import Film, Shot

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


@dataclass
class _Seen:
    """What was done now.

    Args:
        pixels: of each class, of the masks that were written.
        written: masks.
        before: masks that were there.
        gone: images that cannot be read, each with the reason.
    """

    pixels: npt.NDArray[np.int64]
    written: int = 0
    before: int = 0
    gone: list[str] = field(default_factory=list)


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
    from roadaware.models.segmenters import open_segmenter

    place, folder = select_device(device, precision), resolve_weights(folder, ("segmentation",))
    with console.log_step("opening the segmenter"):
        segmenter = open_segmenter(folder, device=place[0], dtype=place[1])
    with console.log_step("opening the videos"):
        asked = source.collect(videos)
    settings = {"weights": digest_model_files(folder), "precision": precision}
    run = MaskRun(out, settings, segmenter.labels, overwrite=overwrite)
    seen = _write_masks(run, segmenter, asked, batch)
    data = _data(out, run, seen, asked)
    gone = len(seen.gone) + len(asked.refused)
    failed = f"--strict: {gone} images or videos cannot be read" if strict and gone else None
    return Outcome(_text(data, run), data, failed)


def _write_masks(run: MaskRun, segmenter: Segmenter, asked: Asked, batch: int) -> _Seen:
    """Write the masks that are not there.

    Raises:
        KeyboardInterrupt, Terminated: if it was stopped; what is written is kept.
    """

    seen = _Seen(pixels=np.zeros(len(segmenter.labels), dtype=np.int64))
    for video, reason in asked.refused.items():
        console.print_error(f"{terminal.format_cell(video)} is left out: {reason}")
    total = sum(len(film.frames) for film in asked.films)
    try:
        with console.show_progress("segmenting") as progress:
            for film in asked.films:
                _one(run, segmenter, film, batch, seen, lambda: progress(_done(seen), total, "pictures"))
    except (KeyboardInterrupt, Terminated):
        console.print_note(
            f"{seen.written + seen.before} of {total} masks are kept; the same command goes on"
        )
        raise
    return seen


def _done(seen: _Seen) -> int:
    return seen.written + seen.before + len(seen.gone)


def _one(
    run: MaskRun, segmenter: Segmenter, film: Film, batch: int, seen: _Seen, moved: Callable[[], None]
) -> None:
    from roadaware.training.footage import iterate_shots

    def lies_in(frame: int) -> Path:
        return film.picture(frame) if film.is_pictures else Path(film.path)

    due = [frame for frame in film.frames if not run.stands(film.video, frame, lies_in(frame))]
    seen.before += len(film.frames) - len(due)
    for shots in _alike(iterate_shots(film, due), batch, seen):
        masks = segmenter.segment([shot.picture for shot in shots if shot.picture is not None])
        for shot, mask in zip(shots, masks, strict=True):
            run.keep(film.video, shot.frame, mask)
            seen.pixels += _counts(mask, len(segmenter.labels))
            seen.written += 1
        moved()


def _counts(mask: Any, classes: int) -> npt.NDArray[np.int64]:

    return np.bincount(mask.ravel(), minlength=classes).astype(np.int64)


def _alike(shots: Iterator[Shot], batch: int, seen: _Seen) -> Iterator[list[Shot]]:
    """Images of one size in groups; those that cannot be read are noted."""
    held: list[Shot] = []
    for shot in shots:
        if shot.picture is None:
            seen.gone.append(shot.fault)
            continue
        if held and held[0].picture is not None and held[0].picture.shape != shot.picture.shape:
            yield held
            held = []
        held.append(shot)
        if len(held) == batch:
            yield held
            held = []
    if held:
        yield held


def _data(out: Path, run: MaskRun, seen: _Seen, asked: Asked) -> dict[str, Any]:
    whole = int(seen.pixels.sum())
    share = {label: n / whole for label, n in zip(run.labels, seen.pixels.tolist(), strict=True) if n}
    return {
        "folder": str(out),
        "labels": list(run.labels),
        "bits": run.bits,
        "written": seen.written,
        "there_already": seen.before,
        "gone": len(seen.gone),
        "gone_first": seen.gone[:_SHOWN],
        "refused": dict(asked.refused),
        "share_of_pixels": dict(sorted(share.items(), key=lambda item: -item[1])),
    }


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
