"""`roadaware poses`: the joints of people in boxes, as tables that predictors of pedestrians read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

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
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.reports.drawing import draw_poses
from roadaware.reports.prediction_text import format_poses
from roadaware.tasks.poses import TABLE, PoseRun, people_in

_VIDEOS = "Where people are seen: a dataset, or videos and folders of videos with --boxes."
_BOXES = "Whose joints: saved predictions, best the tubes of `link`. [default: the people of the dataset]"
_WEIGHTS = "A name of `models list`, or the file of such a model."
_OUT = "Where joints go: a new or empty folder, or one of the same command, which is continued."
_THRESHOLD = "Joints of a lower score count as not seen."
_DRAW = "Draw the joints into the first so many images with people, as PNG in the folder."
_PROCESSES = "Videos that are looked at at the same time. [default: 1; on Ray all processors]"


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
        "drawn": draw_poses(table, asked, out, draw) if draw else 0,
        "gone": run.gone,
    }
    failed = f"--strict: {len(run.gone)} images or videos cannot be read" if strict and run.gone else None
    return Outcome(format_poses(data), data, failed)
