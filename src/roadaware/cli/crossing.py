"""`roadaware crossing`: who will cross, of the tracks of anything that follows people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import (
    USUAL,
    Common,
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
    validate_range,
)
from roadaware.cli.results import write_result
from roadaware.datasets.loading import require_path
from roadaware.errors import InputError, UsageError
from roadaware.formats.track_tables import FILES_OF_TRACKERS, TrackSource, open_tracks
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader
from roadaware.online.run_folder import is_watch_of
from roadaware.online.setup import PREDICTORS, WEIGHTS, open_when
from roadaware.reports import terminal
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Scenes
from roadaware.tasks.videos import Film, find_videos, iterate_shots

if TYPE_CHECKING:
    import polars as pl

    from roadaware.reports.crossing_time import Person
    from roadaware.scenes.tables import Predictions, Scenes
    from roadaware.tasks.videos import Film

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
_BRIDGE = "Seconds without a box over which a track goes on."
_STEADY = (
    "Seconds over which trembling boxes are smoothed, looking back only; 0 for none. [default: 0.5 for what was detected, "
    "0 for ground truth]"
)
_MEDIA = "The video, or the folder of the videos: the page then shows images."
_OUT = "Folder of the result: scores.csv, scores.parquet, people.parquet and report.html. [default: runs/crossing-NAME]"
_TOP = "People on the page."
_FILMS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".gif")


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
    bridge: Annotated[float, Parameter(help=_BRIDGE)] = 0.5,
    steady: Annotated[float | None, Parameter(help=_STEADY)] = None,
    when: Annotated[bool, Parameter(help=_WHEN, negative="--no-when")] = True,
    media: Annotated[Path | None, Parameter(help=_MEDIA)] = None,
    top: Annotated[int, Parameter(help=_TOP, validator=validate_range(0, 100))] = 6,
    threads: Annotated[
        int, Parameter(help="Threads of the predictor.", validator=validate_range(1, 1024))
    ] = 1,
    overwrite: Overwrite = False,
    strict: Annotated[
        bool, Parameter(help="Exit with 1 if a row of the tracks was refused."), Switch
    ] = False,
    common: Common = USUAL,
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
    size_px = _parse_size(size)
    if every is not None and not 0 < every <= 3600:
        raise UsageError(f"--every is a number of seconds above 0, not {every:g}")
    import torch

    from roadaware.models.crossing.ensemble import EnsemblePredictor
    from roadaware.tasks.crossing_tracks import (
        DETECTED_STEADY_S,
        add_times,
        add_truth,
        count_contradictions,
        cut_moments,
        predict_tracks,
        rank_people,
        read_moments,
    )

    torch.set_num_threads(threads)
    with console.log_step("opening the predictor"):
        predictor = EnsemblePredictor.open([_find_predictor(path) for path in weights])
    read_moments(
        predictor, every, bridge, steady or 0.0
    )  # refuses what has no meaning, before anything is read
    tables, media = _open_tracks(
        tracks, folder, reader, _parse_columns(columns), fps, size_px, media, strict=strict
    )
    # Annotated tracks are smooth already, and a file of tracks is a tracker's.
    smooth = steady if steady is not None else 0.0 if _is_truth(tables) else DETECTED_STEADY_S
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
        "refused": _count_reasons(tables.rejected),
        "left_out_boxes": asked.left_out,
        "begun_anew": asked.anew,
        "contradicting_labels": contradictions,
        "columns": str(tables.meta.notes.get("columns", "")),
        "columns_not_read": str(tables.meta.notes.get("columns_not_read", "")),
        "contradicting_classes": str(tables.meta.notes.get("contradicting_classes", "")),
        "most_urgent": people.head(10).to_dicts() if predictor.task != "risk" else [],
    }
    with console.log_step("drawing the page"):
        page = _draw(table, people, data, predictor, media, tables, top)
    write_result(
        folder, folders.add_marker({**_encode(table, people), "report.html": page}, data), overwrite=overwrite
    )
    failed = (
        f"--strict: {len(tables.rejected):,} rows were refused" if strict and len(tables.rejected) else None
    )
    return Outcome(_text(data), {"folder": str(folder), **data}, failed)


def _is_truth(tables: Scenes | Predictions) -> bool:
    """Whether tracks are those of annotators: a dataset, and no file of a tracker."""
    return isinstance(tables, Scenes) and tables.meta.dataset not in FILES_OF_TRACKERS


def _find_predictor(given: Path) -> Path:
    """A file or folder, or a predictor that comes along by its name."""
    if given.exists():
        return given
    bundled = {Path(name).stem: WEIGHTS / name for name in PREDICTORS}
    if str(given) in bundled:
        return bundled[str(given)]
    raise UsageError(
        f"there is no predictor {to_printable(str(given), 100)}; those that come along are {', '.join(bundled)}"
    )


def _parse_size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    width, _, height = text.lower().replace("×", "x").partition("x")
    if not (
        width.isascii()
        and width.isdigit()
        and height.isascii()
        and height.isdigit()
        and int(width)
        and int(height)
    ):
        raise UsageError(f"--size is WIDTHxHEIGHT in pixels, such as 1920x1080, not {to_printable(text, 40)}")
    return int(width), int(height)


def _parse_columns(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        what, equals, column = pair.partition("=")
        if not (equals and what and column):
            raise UsageError(f"--columns takes pairs such as frame=image, not {to_printable(pair, 60)}")
        found[what.strip()] = column.strip()
    return found


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
    if reader is None and path.is_file() and path.suffix.lower() in _FILMS:
        return _watch(path, folder), media or path
    with console.log_step(f"opening {path}"):
        return open_tracks(path, TrackSource(fps, size_px, columns), reader=reader, strict=strict), media


def _watch(film: Path, folder: Path) -> Predictions:
    """The tubes of a video, beside the result; a watch of the same video that is there already is taken as it is."""
    from roadaware.cli.watch import watch

    watched = folder.with_name(f"{folder.name}-watch")
    if (watched / "summary.json").is_file():
        if not is_watch_of(watched, film):
            raise UsageError(f"{watched} holds the watch of another video; name another --output")
        console.print_note(f"{watched} holds a watch already, whose tubes are taken")
    else:
        watch(str(film), out=watched, crossing=("none",), no_video=True)
    return open_predictions(watched / "predictions")


def _draw(
    table: pl.DataFrame,
    people: pl.DataFrame,
    data: dict[str, Any],
    predictor: Any,
    media: Path | None,
    tables: Scenes | Predictions,
    top: int,
) -> bytes:
    """The page as bytes."""
    from roadaware.reports.crossing_time import build_section, collect_person
    from roadaware.reports.page import report
    from roadaware.tasks.crossing_tracks import TIME

    facts = {
        "predictor": data["predictor"],
        "tracks": f"{data['people']:,} people in {data['videos']:,} videos",
        "moments": f"{data['moments']:,}, each from {data['frames']} boxes at {data['rate_fps']:g} a second",
        "too short to ask": f"{data['too_short']:,} people",
        "boxes smaller than learnt": f"{data['too_small_moments']:,} moments, which count for no one's highest",
    }
    notes = [_LIMITS]
    if predictor.task == "risk":
        from roadaware.reports.page import Facts, Note, Section

        note = Note("scores.csv and scores.parquet hold the region of every moment.")
        said = (f"{data['people']:,} people were asked about.",)
        section = Section("Where people will be", said, (Facts(tuple(facts.items())), note))
    else:
        # The last label of a predictor of the time is that nothing happens.
        positive = "crossing soon" if predictor.task == TIME else predictor.labels[-1]
        chosen = [(row["video"], row["name"]) for row in people.head(top).iter_rows(named=True)]
        wrong = _find_worst(table, top // 2)
        drawn = [collect_person(table, *who) for who in (*chosen, *wrong)]
        drawn, fault = _add_crops(drawn, table, media, tables)
        notes += [fault] if fault else []
        section = build_section(
            people, drawn[: len(chosen)], facts, positive=positive, worst=drawn[len(chosen) :], notes=notes
        )
    page = report([section], title="Who will cross", subtitle=to_printable(str(data["tracks"]), 200))
    return page.encode("utf-8", errors="backslashreplace")


_LIMITS = (
    "A probability from boxes alone: it says who will cross one to three seconds ahead, hardly when, and decides nothing "
    "in a vehicle. Detected boxes tremble, annotated ones, which it learnt from, do not."
)


def _find_worst(table: pl.DataFrame, count: int) -> list[tuple[str, str]]:
    """People about whom the predictor is most wrong one to three seconds before the event, where it is known."""
    import polars as pl

    if "crossing" not in table.columns or not count:
        return []
    crosses = pl.col("crossing").cast(pl.String) == "crossing"
    near = pl.col("within_limits") & pl.col("seconds_to_event").is_between(1, 3)
    held = table.filter(near, pl.col("crossing").cast(pl.String).is_in(["crossing", "not-crossing"]))
    wrong = pl.when(crosses).then(1 - pl.col("probability")).otherwise(pl.col("probability"))
    ranked = held.with_columns(wrong=wrong).group_by("video", "name").agg(pl.col("wrong").mean())
    ranked = ranked.sort("wrong", "video", "name", descending=[True, False, False]).head(count)
    return [(row[0], row[1]) for row in ranked.iter_rows()]


def _add_crops(
    people: list[Person], table: pl.DataFrame, media: Path | None, tables: Scenes | Predictions
) -> tuple[list[Person], str]:
    """People with their images, and why there are none."""
    if media is None:
        return people, "There are no images on this page: --media names the videos."
    from dataclasses import replace

    from roadaware.reports.crossing_time import choose_crops, cut_crop

    films, refused = _find_films(tables, media, list(dict.fromkeys(person.video for person in people)))
    found = []
    for person in people:
        chosen = choose_crops(table, person.video, person.name)
        crops = []
        if person.video in films:
            for row, shot in zip(
                chosen.iter_rows(named=True),
                iterate_shots(films[person.video], chosen["frame"].to_list()),
                strict=True,
            ):
                if shot.picture is not None:
                    box = [row[name] for name in ("x1_px", "y1_px", "x2_px", "y2_px")]
                    crops.append((row["t_s"], cut_crop(shot.picture, box)))
        found.append(replace(person, crops=tuple(crops)))
    return found, "; ".join(f"{video}: {why}" for video, why in list(refused.items())[:3])


def _find_films(
    tables: Scenes | Predictions, media: Path, videos: Sequence[str]
) -> tuple[dict[str, Film], dict[str, str]]:
    """The files of videos: the one that is named, or of their names in a folder; and why others cannot be opened."""
    found: dict[str, Film] = {}
    refused: dict[str, str] = {}
    for video in videos:
        places = [media / f"{video}{kind}" for kind in _FILMS] if media.is_dir() else [media]
        path = next((place for place in places if place.is_file()), None)
        try:
            if media.is_file() and len(tables.videos) > 1:
                raise InputError("one video is named, and there are several: name their folder")
            if path is not None:
                with VideoReader(path) as reader:
                    found[video] = Film(video, str(path), len(reader), reader.height_px, reader.width_px)
            elif isinstance(tables, Scenes):
                films, why = find_videos(tables.only([video]), media)
                found |= {film.video: film for film in films}
                refused |= why
            else:
                raise InputError("there is no such video", where=str(media / video))
        except InputError as error:
            refused[video] = error.message
    return found, refused


def _encode(table: pl.DataFrame, people: pl.DataFrame) -> dict[str, bytes]:
    from roadaware.reports.runs import encode_parquet

    return {
        "scores.csv": format_csv(table).encode(),
        "scores.parquet": encode_parquet(table),
        "people.parquet": encode_parquet(people),
    }


def _count_reasons(rejected: pl.DataFrame) -> dict[str, int]:
    """Why rows were refused, without what differs from row to row, to how many; the most frequent first."""
    import polars as pl

    if rejected.is_empty():
        return {}
    # Messages end with what stands in the row, behind a colon or in quotes.
    short = pl.col("reason").cast(pl.String).str.replace(r"(: | and is )['\d\-].*$", "")
    found = (
        rejected.group_by(short.alias("why"), maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    return dict(found.iter_rows())


def _text(data: dict[str, Any]) -> str:
    lines = [f"columns: {data['columns']}"] if data["columns"] else []
    if data["columns_not_read"]:
        lines.append(f"not read: {data['columns_not_read']}")
    lines += [
        f"{data['people']:,} people in {data['videos']:,} videos asked about at {data['moments']:,} moments by "
        f"{data['predictor']}"
    ]
    if data["too_short"]:
        lines.append(
            f"{data['too_short']:,} people have fewer than {data['frames']} boxes in a row, and are not asked about"
        )
    lines += [f"{count:,} people {why}: their tracks begin anew" for why, count in data["begun_anew"].items()]
    lines += [f"{count:,} boxes {why} are not asked about" for why, count in data["left_out_boxes"].items()]
    if data["too_small_moments"]:
        lines.append(
            f"{data['too_small_moments']:,} moments have a box smaller than any that it learnt from (within_limits)"
        )
    if data["refused_rows"]:
        reasons = "; ".join(f"{why} ({count:,})" for why, count in list(data["refused"].items())[:5])
        lines.append(f"{data['refused_rows']:,} rows of the tracks were refused: {reasons}")
    if data["contradicting_classes"]:
        lines.append(data["contradicting_classes"])
    lines += [f"labels: {count:,} people {why}" for why, count in data["contradicting_labels"].items()]
    if data["most_urgent"]:
        lines.append("most urgent:")
        for row in data["most_urgent"][:5]:
            who = f"{terminal.format_cell(row['video'])}, {terminal.format_cell(row['name'])}"
            soon = row.get("seconds")
            lines.append(
                f"  {who}: {row['peak']:.2f} at {row['t_s']:.1f} s"
                + (f", in {soon:.1f} s" if soon is not None else "")
            )
    return "\n".join(lines)
