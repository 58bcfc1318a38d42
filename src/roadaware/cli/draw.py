"""`roadaware draw`: videos and contact sheets with what the tables say drawn on them."""

from __future__ import annotations

import io
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from cyclopts import Parameter
from PIL import Image

from roadaware.cli import console, outputs
from roadaware.cli.options import USUAL, Common, Outcome, Output, Several, Switch, validate_range
from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.reports import terminal
from roadaware.reports.drawing import build_contact_sheet, collect_marks, draw_marks, iterate_titles
from roadaware.scenes.sensors import find_video_path

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes

_FOLDER = "A folder that `simulate` wrote."
_OUT = "Folder for the videos and contact sheets. [default: draw_marks inside SCENES]"
_SMALL, _SHEET_COLUMNS = 400, 4


def draw(
    folder: Annotated[Path, Parameter(help=_FOLDER)],
    /,
    *,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.FOLDER] = None,
    videos: Annotated[tuple[str, ...], Parameter(help="Names of videos. [default: all]"), Several] = (),
    frames: Annotated[int, Parameter(help="Images on a sheet.", validator=validate_range(1, 400))] = 12,
    sheet_only: Annotated[bool, Parameter(help="Write no video."), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Draw boxes, agents, actions and places on synthetic videos, and a contact sheet of each scene.

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
            written += _draw_video(scenes, folder, name, target, frames, film=not sheet_only)
            shown(place + 1, len(videos or names))
    lines = [
        f"wrote {len(written)} files to {terminal.format_cell(str(target))}",
        *(f"  {name}" for name in written),
    ]
    return Outcome("\n".join(lines), {"folder": str(target), "files": written})


def _draw_video(
    scenes: Scenes, root: Path, video: str, target: Path, frames: int, *, film: bool
) -> list[str]:

    marks, titles = collect_marks(scenes, video), list(iterate_titles(scenes, video))
    written, sheet = [], []
    with ExitStack() as stack:
        reader = stack.enter_context(VideoReader(find_video_path(scenes, root, video)))
        chosen = set(np.linspace(0, len(titles) - 1, min(frames, len(titles))).astype(int).tolist())
        writer = None
        for frame, picture in enumerate(reader):
            if not film and frame not in chosen:
                continue
            scale = 2 if picture.shape[0] < _SMALL else 1
            shown = draw_marks(picture, marks.get(frame, []), title=titles[frame], scale=scale)
            if film and writer is None:
                size = (shown.shape[1], shown.shape[0])
                writer = stack.enter_context(VideoWriter(target / f"{video}.mp4", *size, reader.fps or 12.0))
            if writer is not None:
                writer.write(shown)
            if frame in chosen:
                sheet.append(shown)
    if film:
        written.append(f"{video}.mp4")
    stream = io.BytesIO()
    Image.fromarray(build_contact_sheet(sheet, min(_SHEET_COLUMNS, len(sheet)))).save(stream, format="png")
    write_atomically(target / f"{video}.png", stream.getvalue())
    return [*written, f"{video}.png"]
