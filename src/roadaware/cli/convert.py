"""`roadaware convert`: runs and datasets in the file of another tool."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import USUAL, Common, Outcome, Output, Overwrite, Several, Switch
from roadaware.errors import UsageError
from roadaware.io.folders import make_folder
from roadaware.reports import terminal

if TYPE_CHECKING:
    from roadaware.viewer.rerun_file import Written

_PATHS = (
    "Runs, saved tables or datasets, as `view` takes them: one set of ground truth, up to five predictions."
)
_TO = "What is written: `rrd`, a recording of Rerun."
_OUT = "The file, such as run.rrd."
_MEDIA = "Videos, or folders in which videos and images lie, where tables do not say."
_READER = "The reader of a dataset as it was released, such as kitti. [default: told by its content]"
_VIDEOS = "Names of the videos that are wanted. [default: all]"
_EMBED = "Copy videos and images into the file; else it holds their paths and the times of their frames."


def convert(
    *paths: Annotated[Path, Parameter(help=_PATHS)],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.NEW_FILE],
    to: Annotated[Literal["rrd"], Parameter(help=_TO)] = "rrd",
    media: Annotated[tuple[Path, ...], Parameter(help=_MEDIA), Several] = (),
    reader: Annotated[str | None, Parameter(help=_READER)] = None,
    videos: Annotated[tuple[str, ...], Parameter(help=_VIDEOS), Several] = (),
    embed: Annotated[bool, Parameter(help=_EMBED), Switch] = False,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Write runs and datasets as the file of another tool: a recording of Rerun with its views.

    It holds boxes with their classes, an entity for each tube, scores, events, forecasts of crossing, LiDAR
    points and boxes in space, of ground truth and predictions. Nothing is sent anywhere, and no viewer is started:
    `rerun run.rrd` opens the file.

    For example:

        roadaware convert runs/drive --to rrd -o drive.rrd --media drive.mp4 --embed

        roadaware convert KITTI runs/proposals --to rrd -o kitti.rrd --videos training/000002
    """
    if importlib.util.find_spec("rerun") is None:
        raise UsageError("rerun-sdk is not installed: pip install 'roadaware[rerun]'")
    from roadaware.viewer.opening import open_paths
    from roadaware.viewer.rerun_file import write_rerun_file

    opened = open_paths(paths, media, reader)
    make_folder(out.absolute().parent)
    with console.show_progress("converting") as shown:
        written = write_rerun_file(opened, out, videos=videos, embed=embed, progress=shown)
    data = {"file": str(out), "bytes": out.stat().st_size, **vars(written)}
    return Outcome(_format_written(written, out), data)


def _format_written(written: Written, out: Path) -> str:
    """What is in the file, and what is not."""
    sides = sorted({*written.boxes, *written.tubes, *written.boxes_3d})
    rows = [
        (side, *(f"{held.get(side, 0):,}" for held in (written.boxes, written.tubes, written.boxes_3d)))
        for side in sides
    ]
    lines = [terminal.format_table(["side", "boxes", "tubes", "3D boxes"], rows, left=1), ""]
    if written.points:
        more = f", {written.left_points:,} more left out evenly" if written.left_points else ""
        lines.append(f"{written.points:,} LiDAR points{more}")
    kept = sum(embedded for _, embedded in written.films.values())
    apart = len(written.films) - kept
    if apart:
        lines.append(
            f"{apart} videos by their paths: Rerun shows them where --embed copies them into the file"
        )
    if kept:
        lines.append(f"{kept} videos copied into the file")
    lines += [terminal.format_cell(note) for note in written.notes[:5]]
    size = terminal.format_bytes(out.stat().st_size)
    return "\n".join(
        [
            *lines,
            f"wrote {terminal.format_cell(str(out))}, {size}; rerun {terminal.format_cell(str(out))} shows it",
        ]
    )
