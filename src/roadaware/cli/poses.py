"""`roadaware poses`: the joints of people in boxes, as tables that predictors of pedestrians read."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from cyclopts import Parameter

from roadaware.cli import console, datasets, outputs
from roadaware.cli.options import USUAL, Common, Outcome, Output, Overwrite, Several, Switch, validate_range
from roadaware.cli.predict_videos import ALL_VIDEOS, VideoSource
from roadaware.errors import InputError, Terminated, UsageError
from roadaware.io.files import write_atomically
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.reports import terminal
from roadaware.reports.pose_pictures import draw_joints
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_predictions
from roadaware.tasks.poses import TABLE, PoseRun, people_in

if TYPE_CHECKING:
    import numpy.typing as npt

    from roadaware.cli.predict_videos import Asked
    from roadaware.models.graphs.movenet import PoseReader
    from roadaware.training.footage import Film

_VIDEOS = "Where people are seen: a dataset, or videos and folders of videos with --boxes."
_BOXES = "Whose joints: saved predictions, best the tubes of `link`. [default: the people of the dataset]"
_WEIGHTS = "A name of `models list`, or the file of such a model."
_OUT = "Where joints go: a new or empty folder, or one of the same command, which is continued."
_THRESHOLD = "Joints of a lower score count as not seen."
_DRAW = "Draw the joints into the first so many images with people, as PNG in the folder."
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
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if an image cannot be read."), Switch] = False,
    common: Common = USUAL,
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

    path = resolve_weights(weights, ("pose",))
    with console.log_step("opening the model"):
        looker = open_poses(path)
    with console.log_step("opening the videos"):
        asked = source.collect(videos)
        people = people_in(_tables(boxes, asked))
    settings = {"weights": digest_model_files(path), "people": _digest(people)}
    run = PoseRun(out, settings, threshold, overwrite=overwrite)
    table, gone = _looked(run, looker, asked, people)
    drawn = _drawn(table, asked, out, draw) if draw else 0
    data = _data(run, table, gone, drawn)
    failed = f"--strict: {len(gone)} images or videos cannot be read" if strict and gone else None
    return Outcome(_text(data), data, failed)


def _tables(boxes: Path | None, asked: Asked) -> Any:
    """The tables that say where people are.

    Raises:
        UsageError: if nothing says so.
        InputError: if they cannot be read.
    """

    if boxes is None:
        if asked.scenes is None:
            raise UsageError(
                "videos do not say where people are: --boxes names tables that do, such as those of "
                "`roadaware predict --videos VIDEO --output RUN` and `roadaware link RUN/predictions --output TUBES`"
            )
        return asked.scenes
    if not datasets.is_saved(boxes):
        hint = "name the folder `predictions` inside it" if (boxes / "predictions").is_dir() else None
        raise InputError("expected saved predictions with meta.json", where=str(boxes), hint=hint)
    return open_predictions(boxes)


def _digest(people: pl.DataFrame) -> str:

    held = io.BytesIO()
    people.write_ipc(held)
    return hashlib.blake2b(held.getvalue(), digest_size=12).hexdigest()


def _looked(
    run: PoseRun, looker: PoseReader, asked: Asked, people: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
    """All joints, and what could not be read.

    Raises:
        InputError: if none of the videos has people.
        KeyboardInterrupt, Terminated: if it was stopped; what is written is kept.
    """
    gone = [f"{video}: {reason}" for video, reason in asked.refused.items()]
    of_video = {str(key[0]): part for key, part in people.group_by("video", maintain_order=True)}
    films = [film for film in asked.films if film.video in of_video]
    if not films:
        first = terminal.format_cell(asked.films[0].video) if asked.films else "not there"
        raise InputError(
            f"the boxes are of {terminal.format_cell(str(next(iter(of_video))))}, and none of {len(asked.films)} videos "
            f"is: the first is {first}"
        )
    total, done = sum(len(of_video[film.video]) for film in films), 0
    kept = []
    try:
        with console.show_progress("joints") as progress:
            for film in films:
                rows = of_video[film.video]
                lies_in = film.picture(film.frames[0]) if film.is_pictures else Path(film.path)
                if not run.stands(film.video, lies_in):
                    seen, joints = _of_film(looker, film, rows, gone)
                    if not len(seen):
                        continue
                    run.keep(seen, joints)
                kept.append(film.video)
                done += len(rows)
                progress(done, total, "people")
    except (KeyboardInterrupt, Terminated):
        console.print_note(f"{len(kept)} of {len(films)} videos are kept; the same command goes on")
        raise
    return run.finish(kept), gone


def _of_film(
    looker: PoseReader, film: Film, people: pl.DataFrame, gone: list[str]
) -> tuple[pl.DataFrame, npt.NDArray[np.float32]]:
    """The people in images that can be read, and their joints."""

    from roadaware.training.footage import iterate_shots

    of_frame = {int(str(key[0])): part for key, part in people.group_by("frame", maintain_order=True)}
    seen, joints = [people.clear()], [np.zeros((0, len(looker.joints), 3), np.float32)]
    for shot in iterate_shots(film, sorted(of_frame)):
        if shot.picture is None:
            gone.append(shot.fault)
            continue
        rows = of_frame[shot.frame]
        seen.append(rows)
        joints.append(looker.read(shot.picture, rows.select(CORNERS).to_numpy().astype(np.float64)))
    return pl.concat(seen), np.concatenate(joints)


def _drawn(table: pl.DataFrame, asked: Asked, out: Path, count: int) -> int:
    """Draw the first images; how many there were."""

    from roadaware.training.footage import iterate_shots

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


def _data(run: PoseRun, table: pl.DataFrame, gone: list[str], drawn: int) -> dict[str, Any]:

    n = len(table)
    return {
        "file": str(run.folder / TABLE),
        "videos": table["video"].n_unique(),
        "people": table.select("video", "name").n_unique(),
        "boxes": n,
        "joints_seen": float(table["seen"].mean()) if n else 0.0,  # type: ignore[arg-type]
        "without": int((table["seen"] == 0).sum()),
        "drawn": drawn,
        "gone": gone,
    }


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
