"""`roadaware poses`: the joints of people in boxes, as tables that predictors of pedestrians read."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.networks import ALL_VIDEOS, VideoSource, open_saved, show_resumable
from roadaware.cli.options import (
    AT_A_TIME_OR_ALL,
    LOCAL,
    Outcome,
    Output,
    Overwrite,
    Several,
    Spread,
    Switch,
    validate_range,
)
from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.reports import terminal
from roadaware.reports.drawing import draw_joints
from roadaware.scenes.schema import CORNERS
from roadaware.tasks.poses import TABLE, PoseRun, people_in
from roadaware.tasks.videos import VideoSet, iterate_shots

_VIDEOS = "Where people are seen: a dataset, or videos and folders of videos with --boxes."
_BOXES = "Whose joints: saved predictions, best the tubes of `link`. [default: the people of the dataset]"
_WEIGHTS = "A name of `models list`, or the file of such a model."
_OUT = "Where joints go: a new or empty folder, or one of the same command, which is continued."
_THRESHOLD = "Joints of a lower score count as not seen."
_DRAW = "Draw the joints into the first so many images with people, as PNG in the folder."
_PROCESSES = "Videos that are looked at at the same time. [default: 1; on Ray all processors]"
_SHOWN = 10


def poses(
    weights: Annotated[Path, Parameter(help=_WEIGHTS)] = Path("pose-small"),
    /,
    *,
    videos: Annotated[list[Path], Parameter(help=_VIDEOS), Several],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.POSES],
    boxes: Annotated[Path | None, Parameter(help=_BOXES)] = None,
    source: VideoSource = ALL_VIDEOS,
    threshold: Annotated[float, Parameter(help=_THRESHOLD)] = 0.2,
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    processes: Annotated[int | None, Parameter(help=_PROCESSES), AT_A_TIME_OR_ALL] = None,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if an image cannot be read."), Switch] = False,
) -> Outcome:
    """Find the 17 joints of each person in a box: a table that predictors of pedestrians read.

    A square around each box is processed by itself. Joints are in pixels of the image, in COCO's order,
    each with a score; one that is hardly seen stands at 0. A video is kept as soon as it is whole; after
    Ctrl-C or a crash the same command goes on with the next one.

    For example:

        roadaware poses --videos JAAD-JAAD_2.0.zip --reader jaad --media JAAD \\
            --films "JAAD_clips/{video}.mp4" --output poses

        roadaware train trouspi-net-jaad-poses --set samples.root=JAAD-JAAD_2.0.zip \\
            samples.poses=poses/poses.parquet

        roadaware poses --videos drive.mp4 --boxes runs/street/tubes --output poses --draw 8
    """
    from roadaware.models.graphs.movenet import open_poses
    from roadaware.models.loading import digest_model_files

    workers = spread.gather(processes, usual=1)
    path = resolve_weights(weights, ("pose",))
    with console.log_step("opening the model"):
        looker = open_poses(path)
    asked = source.collect(videos)
    if boxes is not None:
        people = people_in(open_saved(boxes, "predictions"))
    elif asked.scenes is not None:
        people = people_in(asked.scenes)
    else:
        raise UsageError(
            "videos do not say where people are: --boxes names tables that do, such as those of "
            "`roadaware predict --videos VIDEO --output RUN` and `roadaware link RUN/predictions --output TUBES`"
        )
    run = PoseRun(out, {"weights": digest_model_files(path)}, people, threshold, overwrite=overwrite)
    run.gone += [f"{video}: {reason}" for video, reason in asked.refused.items()]
    films = run.select_films(asked.films)
    with show_resumable("joints", lambda: f"{len(run.kept)} of {len(films)} videos are kept") as shown:
        table = run.read(
            looker, films, open_reader=partial(open_poses, path), workers=workers, progress=shown
        )
    data = {
        "file": str(run.folder / TABLE),
        "videos": table["video"].n_unique(),
        "people": table.select("video", "name").n_unique(),
        "boxes": len(table),
        "joints_seen": float(table["seen"].mean()) if len(table) else 0.0,  # type: ignore[arg-type]
        "without": int((table["seen"] == 0).sum()),
        "drawn": _draw(table, asked, out, draw) if draw else 0,
        "gone": run.gone,
    }
    failed = f"--strict: {len(run.gone)} images or videos cannot be read" if strict and run.gone else None
    return Outcome(_text(data), data, failed)


def _draw(table: pl.DataFrame, asked: VideoSet, out: Path, count: int) -> int:
    """Draw the first images; how many there were."""
    films, done = {film.video: film for film in asked.films}, 0
    for (video, frame), rows in table.group_by("video", "frame", maintain_order=True):
        if done == count:
            break
        for shot in iterate_shots(films[str(video)], [int(str(frame))]):
            if shot.picture is None:
                continue
            joints = np.array(rows["joints_px"].to_list(), np.float32).reshape(len(rows), -1, 3)
            held = io.BytesIO()
            draw_joints(shot.picture, list(joints), list(rows.select(CORNERS).to_numpy())).save(held, "PNG")
            name = f"{done:04d}-{str(video).replace('/', '-')}-{int(str(frame)):06d}.png"
            write_atomically(out / name, held.getvalue())
            done += 1
    return done


def _text(data: dict[str, Any]) -> str:
    lines = [
        f"{data['boxes']:,} boxes around {data['people']:,} people in {data['videos']:,} videos; "
        f"{data['joints_seen']:.1f} of 17 joints seen on average, none of {data['without']:,}",
        f"joints: {terminal.format_cell(data['file'])}",
    ]
    if data["gone"]:
        lines.append(f"{len(data['gone']):,} images or videos cannot be read:")
        lines.append(
            terminal.format_bullets([terminal.format_cell(reason) for reason in data["gone"][:_SHOWN]])
        )
    lines.append(f"next: roadaware train RECIPE --set samples.poses={terminal.format_cell(data['file'])}")
    return "\n".join(lines)
