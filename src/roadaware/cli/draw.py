"""`roadaware draw`: videos and contact sheets with what the tables say drawn on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Several, Stated, Switch, validate_range
from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.io.folders import make_folder
from roadaware.reports import terminal
from roadaware.reports.drawing import draw_video

_FOLDER = "A folder that `simulate` wrote."
_OUT = "Folder for the videos and contact sheets. [default: draw_marks inside SCENES]"


def draw(
    folder: Annotated[Path, Parameter(help=_FOLDER)],
    /,
    *,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.FOLDER] = None,
    videos: Annotated[
        tuple[str, ...], Parameter(help="Names of videos. [default: all]"), Several, Stated
    ] = (),
    frames: Annotated[int, Parameter(help="Images on a sheet.", validator=validate_range(1, 400))] = 12,
    sheet_only: Annotated[bool, Parameter(help="Write no video."), Switch] = False,
) -> Outcome:
    """Draw boxes, agents, actions and places on synthetic videos, and a contact sheet of each scene.

    Of crowds also who does what to whom, as arrows, what is heard of whom or from out of sight, and below the image the
    sentences that hold.

    For example:

        roadaware draw synthetic

        roadaware draw synthetic --videos road-0000 --frames 24 --sheet-only --output images
    """
    target = out or folder / "drawn"
    outputs.FOLDER.check(target)

    with console.log_step("reading"):
        scenes = read("simulator", folder)
    names = [str(name) for name in scenes.videos["video"].to_list()]
    unknown = [name for name in videos if name not in names]
    if unknown:
        raise UsageError(f"no video {unknown[:3]} in {folder}; there are {', '.join(names[:5])}, ...")
    make_folder(target)
    written: list[str] = []
    with console.show_progress("drawing") as shown:
        for place, name in enumerate(videos or names):
            written += draw_video(scenes, folder, name, target, frames, film=not sheet_only)
            shown(place + 1, len(videos or names))
    lines = [
        f"wrote {len(written)} files to {terminal.format_cell(str(target))}",
        *(f"  {name}" for name in written),
    ]
    return Outcome("\n".join(lines), {"folder": str(target), "files": written})
