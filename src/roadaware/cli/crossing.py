"""`roadaware crossing`: who will cross, of the tracks of anything that follows people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.drives import FILMS
from roadaware.analysis.evaluation.event_inputs import parse_size
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
    describe_strict,
    validate_range,
)
from roadaware.cli.results import ResultFolder
from roadaware.cli.watch import watch
from roadaware.datasets.loading import require_path
from roadaware.datasets.tracker_csv import parse_columns
from roadaware.errors import InputError, UsageError
from roadaware.formats.track_tables import TrackSource, is_annotated, open_tracks
from roadaware.io import folders
from roadaware.io.sources import to_printable
from roadaware.online.run_folder import is_watch_of
from roadaware.online.setup import find_predictor, open_when
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Predictions, Scenes

_TRACKS = (
    "Whose tracks: a csv or Parquet table of a tracker, MOT text or a folder of MOT sequences, COCO annotations with "
    "track_id, the folder of a `watch`, tables that `link` or `read -o` saved, a dataset with --reader, or a video, which "
    "is watched first."
)
_WEIGHTS = (
    "The predictor: crossing-jaad, risk-jaad or crossing-time-jaad, which come along, a model.safetensors or model.npz of "
    "`train`, or the folder of a run, whose seeds are averaged. Several are averaged."
)
_WHEN = "Also say when: seconds until somebody begins to cross, by crossing-time-jaad, beside a predictor of who crosses."
_READER = "What the dataset is: jaad, pie, or another reader of `read`."
_COLUMNS = (
    "Columns of a table whose names are not guessed: video, frame, t, id, label, x1, y1, x2, y2 or left, top, width, height, "
    "such as frame=image id=who."
)
_FPS = (
    "Frames a second of the video, where the tracks do not say it. [default: as they say; JAAD and PIE: 30]"
)
_SIZE = "Size of the image, WIDTHxHEIGHT in pixels, where the tracks do not say it."
_EVERY = "Seconds from one question about somebody to the next. [default: every frame of the predictor]"
_STEADY = (
    "Seconds over which trembling boxes are smoothed, looking back only; 0 for none. [default: 0.5 for what was detected, "
    "0 for ground truth]"
)
_MEDIA = "The video, or the folder of the videos: the page then shows images."
_OUT = "Folder of the result: scores.csv, scores.parquet, people.parquet and report.html. [default: runs/crossing-NAME]"


def crossing(
    tracks: Annotated[Path, Parameter(help=_TRACKS)],
    /,
    *,
    weights: Annotated[tuple[Path, ...], Parameter(help=_WEIGHTS), Several] = (Path("crossing-jaad"),),
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.RESULT] = None,
    reader: Annotated[str | None, Parameter(help=_READER)] = None,
    columns: Annotated[tuple[str, ...], Parameter(help=_COLUMNS), Several, Stated] = (),
    fps: Annotated[float | None, Parameter(help=_FPS)] = None,
    size: Annotated[str | None, Parameter(help=_SIZE)] = None,
    every: Annotated[float | None, Parameter(help=_EVERY)] = None,
    bridge: Annotated[float, Parameter(help="Seconds without a box over which a track goes on.")] = 0.5,
    steady: Annotated[float | None, Parameter(help=_STEADY)] = None,
    when: Annotated[bool, Parameter(help=_WHEN, negative="--no-when")] = True,
    media: Annotated[Path | None, Parameter(help=_MEDIA)] = None,
    top: Annotated[int, Parameter(help="People on the page.", validator=validate_range(0, 100))] = 6,
    threads: Annotated[
        int, Parameter(help="Threads of the predictor.", validator=validate_range(1, 1024))
    ] = 1,
    overwrite: Overwrite = False,
    strict: Annotated[
        bool, Parameter(help="Exit with 1 if a row of the tracks was refused."), Switch
    ] = False,
) -> Outcome:
    """Say of each person at each moment how likely it is to cross, from tracks of any source.

    Tracks are brought to the rate of the predictor, 30 frames a second for those that come along; a person is asked about
    as soon as enough boxes are there. Boxes smaller than any that a predictor learnt from are marked. Where the source says
    who crosses, the page shows those about whom the predictor is most wrong.

    For example:

        roadaware crossing tracks.csv --fps 25 --size 1920x1080

        roadaware crossing JAAD-JAAD_2.0.zip --reader jaad --every 0.5 --output runs/jaad-crossing

        roadaware crossing runs/drive --media drive.mp4

        roadaware crossing drive.mp4 --output runs/who-crosses
    """
    folder = out or Path("runs") / f"crossing-{to_printable(tracks.stem, 60)}"
    outputs.RESULT.check(folder, overwrite=overwrite)
    size_px = None if size is None else parse_size(size)
    if every is not None and not 0 < every <= 3600:
        raise UsageError(f"--every is a number of seconds above 0, not {every:g}")
    import torch

    from roadaware.models.crossing.ensemble import EnsemblePredictor
    from roadaware.reports.crossing_time import build_tracks_files, format_tracks, render_tracks_page
    from roadaware.tasks.crossing_tracks import (
        DETECTED_STEADY_S,
        add_times,
        add_truth,
        count_contradictions,
        count_reasons,
        cut_moments,
        predict_tracks,
        rank_people,
        read_moments,
    )

    torch.set_num_threads(threads)
    with console.log_step("opening the predictor"):
        predictor = EnsemblePredictor.open([find_predictor(path) for path in weights])
    read_moments(
        predictor, every, bridge, steady or 0.0
    )  # refuses what has no meaning, before anything is read
    tables, media = _open_tracks(
        tracks, folder, reader, parse_columns(columns), fps, size_px, media, strict=strict
    )
    # Annotated tracks are smooth already, and a file of tracks is a tracker's.
    smooth = steady if steady is not None else 0.0 if is_annotated(tables) else DETECTED_STEADY_S
    moments = read_moments(predictor, every, bridge, smooth)
    with console.log_step("bringing tracks to the rate of the predictor"):
        asked = cut_moments(tables, moments, fps)
    with console.log_step(f"asking about {len(asked.scenes.samples):,} moments"):
        table = predict_tracks(predictor, asked)
        if when and len(table) and (trees := open_when(predictor.task, moments.rate_fps)):
            table = add_times(table, trees, asked)
        table = add_truth(table, tables, fps)
    if not len(table):
        refused = len(tables.rejected)
        why = f"; {refused:,} rows were refused, the first: {tables.rejected['reason'][0]}" if refused else ""
        raise InputError(
            f"nobody is followed for {moments.frames} boxes at {moments.rate_fps:g} frames a second, which the predictor "
            f"looks back at ({len(asked.short):,} people are shorter{why})",
            hint="a tracker that loses people less often, or --bridge with more seconds: boxes that are further apart than "
            f"{moments.bridge_s:g} s begin anew",
        )
    contradictions = count_contradictions(tables)
    people = rank_people(table)
    data: dict[str, Any] = {
        "predictor": ", ".join(path.stem for path in weights),
        "task": predictor.task,
        "labels": list(predictor.labels),
        "tracks": str(tracks),
        "people": table.select("video", "name").n_unique(),
        "videos": table["video"].n_unique(),
        "moments": len(table),
        "rate_fps": moments.rate_fps,
        "steady_s": moments.steady_s,
        "frames": moments.frames,
        "too_short": len(asked.short),
        "too_small_moments": int((~table["within_limits"]).sum()),
        "refused_rows": len(tables.rejected),
        "refused": count_reasons(tables.rejected),
        "left_out_boxes": asked.left_out,
        "begun_anew": asked.anew,
        "contradicting_labels": contradictions,
        "columns": str(tables.meta.notes.get("columns", "")),
        "columns_not_read": str(tables.meta.notes.get("columns_not_read", "")),
        "contradicting_classes": str(tables.meta.notes.get("contradicting_classes", "")),
        "most_urgent": people.head(10).to_dicts() if predictor.task != "risk" else [],
    }
    with console.log_step("drawing the page"):
        page = render_tracks_page(table, people, data, predictor, media, tables, top)
    files = build_tracks_files(table, people, page)
    ResultFolder(folder, overwrite).write(folders.add_marker(files, data))
    failed = describe_strict(strict, len(tables.rejected), "rows were refused")
    return Outcome(format_tracks(data), {"folder": str(folder), **data}, failed)


def _open_tracks(
    path: Path,
    folder: Path,
    reader: str | None,
    columns: dict[str, str],
    fps: float | None,
    size_px: tuple[int, int] | None,
    media: Path | None,
    *,
    strict: bool,
) -> tuple[Scenes | Predictions, Path | None]:
    """The tables with tracks, and where images are."""
    require_path(path)
    if reader is None and path.is_file() and path.suffix.lower() in FILMS:
        # The tubes of a video, beside the result; a watch of the same video that is there already is taken as it is.
        watched = folder.with_name(f"{folder.name}-watch")
        if (watched / "summary.json").is_file():
            if not is_watch_of(watched, path):
                raise UsageError(f"{watched} holds the watch of another video; name another --output")
            console.print_note(f"{watched} holds a watch already, whose tubes are taken")
        else:
            watch(str(path), out=watched, crossing=("none",), no_video=True)
        return open_predictions(watched / "predictions"), media or path
    with console.log_step(f"opening {path}"):
        return open_tracks(path, TrackSource(fps, size_px, columns), reader=reader, strict=strict), media
