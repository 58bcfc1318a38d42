"""`roadaware triage`: a night of drives in, the moments that are most worth a look out."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.triage import (
    TriageConfig,
    count_hours,
    get_weight_names,
    learn_verdicts,
    rank_moments,
)
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    AT_A_TIME,
    LOCAL,
    Outcome,
    Output,
    Overwrite,
    Several,
    Spread,
    validate_range,
)
from roadaware.cli.results import write_result
from roadaware.errors import DiskError, InputError, RoadawareError, UsageError
from roadaware.io import folders
from roadaware.io.csv import from_sheets, read_cells
from roadaware.io.files import write_atomically
from roadaware.io.parallel import Ledger, Workers, map_parts
from roadaware.io.sources import to_printable
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.reports import terminal

if TYPE_CHECKING:
    import polars as pl

    from roadaware.analysis.excerpts import Clip, Excerpt
    from roadaware.analysis.triage import TriageConfig
    from roadaware.tasks.videos import Film

_DRIVES = (
    "Videos, folders of videos, runs of `watch`, saved tables (ground truth or predictions with tubes), simulated scenes, or "
    "folders that hold such. Videos are watched first."
)
_TOP = "How many moments are listed."
_OUT = (
    "Folder of the result: moments.csv, moments.parquet, moments.json, list.csv, findings.json, report.html. "
    "[default: runs/triage-NAME]"
)
_WATCHES = "Folder of the watches of videos, which goes on where it was. [default: OUTPUT-watches]"
_WEIGHTS = (
    "A YAML file of weights of reasons, 0 to 1, such as `crossing: 0.9`; with repeat, repeat_s, join_s. What it does not "
    "name keeps its default."
)
_VERDICTS = (
    "A csv with the columns moment and verdict (yes or no), such as a moments.csv of this command that people filled in: the "
    "order is then learnt from it, from 10 of each at least."
)
_DETECTOR = "The detector of the watches, as `watch --weights` takes it."
_FPS = "Process no more frames a second of a video than this."
_LISTEN = (
    "A sound that the watches listen for, as `watch --listen` takes it, such as siren; again for another one."
)
_SECOND = (
    "Runs or tables of another model on the same videos: somebody whom it does not see is a reason, too."
)
_MEDIA = "Videos, or folders of videos, of runs and tables: the page then shows clips."
_PROCESSES = "Videos that are watched at a time. [default: as many as there are cores]"
_CLIPS = "Moments that the page shows as clips."
FILMS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".ts", ".gif")
RECORD, FORMAT = "watches.json", "roadaware-watches"
_DEEPEST = 3


def triage(
    *drives: Annotated[Path, Parameter(help=_DRIVES)],
    top: Annotated[int, Parameter(help=_TOP, validator=validate_range(1, 100_000))] = 100,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.RESULT] = None,
    watches: Annotated[Path | None, Parameter(help=_WATCHES)] = None,
    weights: Annotated[Path | None, Parameter(help=_WEIGHTS)] = None,
    verdicts: Annotated[Path | None, Parameter(help=_VERDICTS)] = None,
    detector: Annotated[tuple[Path, ...], Parameter(help=_DETECTOR), Several] = (),
    fps: Annotated[float | None, Parameter(help=_FPS)] = None,
    listen: Annotated[tuple[str, ...], Parameter(help=_LISTEN, negative="", show_default=False)] = (),
    second: Annotated[tuple[Path, ...], Parameter(help=_SECOND), Several] = (),
    media: Annotated[tuple[Path, ...], Parameter(help=_MEDIA), Several] = (),
    processes: Annotated[int | None, Parameter(help=_PROCESSES), AT_A_TIME] = None,
    spread: Spread = LOCAL,
    clips: Annotated[int, Parameter(help=_CLIPS, validator=validate_range(0, 100))] = 12,
    overwrite: Overwrite = False,
) -> Outcome:
    """Rank the moments of many drives by how much somebody should look at them.

    Each moment is a few seconds of a video with its reasons: time to collision, people about to cross in front of the
    vehicle, cut-ins, unknown things on the way, red lights, hard braking, sounds of alarm, rare labels, models that are
    unsure or disagree. Each is a number from 0 to 1 with a sentence; the weights that join them stand in --weights.

    Given again, a run that was killed goes on with the videos that were not watched yet. A video or folder that cannot be
    taken is named, the others are taken, and the exit code is 1.

    For example:

        roadaware triage night/ --top 100 --output runs/night

        roadaware triage runs/drive1 runs/drive2 --media videos --output runs/two

        roadaware triage night/ --verdicts runs/night/moments.csv --output runs/night-2 --watches runs/night-watches
    """
    if not drives:
        raise UsageError(
            "name at least one video, folder of videos, run of `watch`, or folder of saved tables"
        )
    folder = out or Path("runs") / f"triage-{to_printable(drives[0].stem or 'drives', 60)}"
    outputs.RESULT.check(folder, overwrite=overwrite)
    kept = watches or folder.with_name(f"{folder.name}-watches")
    if fps is not None and not 0 < fps <= 1000:
        raise UsageError(f"--fps is a number of frames a second above 0, not {fps:g}")
    workers = spread.gather(processes)

    for place in (*media, *second, *(resolve_weights(path) for path in detector)):
        if not place.exists():
            raise InputError("there is no such file or folder", where=str(place), hint="Check the path.")
    if listen:
        from roadaware.online.crowd import open_crowd_questions

        # A sound that is not known would fail every watch, after all the others were looked for.
        open_crowd_questions(None, sounds=listen)

    config = read_weights(weights)
    judged = None if verdicts is None else read_verdicts(verdicts)
    films, sources, failed = find_drives(drives)
    given, faults = len(films) + len(sources), list[str]()
    settings = {"detector": [str(path) for path in detector], "fps": fps, "listen": list(listen)}
    if films:
        outputs.WATCHES.check(kept, overwrite=overwrite)
        lost, faults = watch_films(films, kept, settings, workers)
        failed |= lost
        sources += [kept / name for name in films if str(films[name]) not in failed]
    examined = _examine(sources, second, failed)
    text = f"{len(faults)} of {given} inputs met a fault of roadaware, the first {''.join(faults[:1])}"
    if examined is None and faults:
        raise RuntimeError(text)
    if examined is None:
        first = next(iter(failed.items()))
        raise InputError(
            f"none of the {len(failed)} inputs can be taken; the first: {first[1]}", where=first[0]
        )
    with console.log_step("ranking"):
        hours = count_hours(examined.lengths)
        moments = rank_moments(examined.peaks, examined.counts, hours, config)
        learnt = None if judged is None else learn_verdicts(moments, judged)
        if learnt is not None:
            moments = rank_moments(examined.peaks, examined.counts, hours, config, learnt)
    data: dict[str, Any] = {
        "videos": len(examined.lengths),
        "hours": round(hours, 5),
        "moments_found": len(moments),
        "top": min(top, len(moments)),
        "weights": config.weights,
        "config": asdict(config),
        "learnt": None if learnt is None else asdict(learnt),
        "failed": failed,
        "notices": list_notices(list(dict.fromkeys(examined.source.values()))),
        "facts": {
            "inputs": ", ".join(to_printable(str(path), 120) for path in sorted(drives))[:500],
            "videos watched": f"{sum(str(film) not in failed for film in films.values()):,}",
            "near duplicates": f"count {config.repeat:g} within {config.repeat_s:g} s of a higher one with the same reason",
            "verdicts": "none" if verdicts is None else to_printable(str(verdicts), 200),
        },
    }
    with console.log_step("drawing the page"):
        found = _draw_clips(moments.head(clips), examined, films, media)
        from roadaware.reports.triage import build_triage_files

        files = build_triage_files(moments, top, data, found)
    write_result(folder, folders.add_marker(files, data), overwrite=overwrite, also="list: list.csv")
    if faults:
        raise RuntimeError(f"{text}; the others are ranked in {folder}")
    why = f"{len(failed)} of {given} inputs could not be taken" if failed else None
    listed = (
        moments.head(min(top, 10)).select("rank", "moment", "t_s", "worth", "reason", "sentence").to_dicts()
    )
    return Outcome(_format(listed, data), {"folder": str(folder), **data, "first": listed}, why)


def list_notices(sources: Sequence[Path]) -> list[str]:
    """What the summaries of watches say that their readers should know, each once.

    Args:
        sources: runs and tables.
    """
    from roadaware.reports.watch_page import is_watch, read_summary

    found = [str(read_summary(path).get("notice") or "") for path in sources if is_watch(path)]
    return [notice for notice in dict.fromkeys(found) if notice]


# What is ranked: films, runs and tables behind the paths that were named.


def find_drives(paths: Sequence[Path]) -> tuple[dict[str, Path], list[Path], dict[str, str]]:
    """The films by the names of their watches, the runs and tables, and what cannot be taken, by path, with the reason.

    Args:
        paths: as they were given; folders are looked into three deep.

    Raises:
        UsageError: if two films would have one name.
        InputError: if a path is not there, or holds no drive.
    """
    from roadaware.analysis.drives import holds_drives

    films: dict[str, Path] = {}
    sources: list[Path] = []
    taken: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
        held = False
        for found in _walk(path, holds_drives):
            held, real = True, Path(os.path.realpath(found))
            if real in taken:
                continue
            taken.add(real)
            if found.is_dir():
                sources.append(found)
                continue
            below = found.relative_to(path) if path.is_dir() else Path(found.name)
            name = to_printable("-".join(below.with_suffix("").parts), 120)
            if name in films and films[name] != found:
                raise UsageError(f"{films[name]} and {found} would have one name, {name}; rename one of them")
            films[name] = found
        if not held:
            raise InputError(
                "no video, run of `watch`, saved tables or simulated scenes are there",
                where=str(path),
                hint=f"videos end with {', '.join(FILMS)}",
            )
    # In whatever order they are named, the result is one.
    return dict(sorted(films.items())), sorted(sources), {}


def _walk(path: Path, holds: Any, depth: int = 0) -> Iterator[Path]:
    """The films and folders of drives below a path, in the order of their names."""
    if path.is_file():
        if depth == 0 or path.suffix.lower() in FILMS:
            yield path
    elif holds(path):
        yield path
    elif depth < _DEEPEST and path.is_dir():
        for inner in sorted(path.iterdir()):
            if not inner.name.startswith("."):
                yield from _walk(inner, holds, depth + 1)


def watch_films(
    films: Mapping[str, Path], folder: Path, settings: Mapping[str, Any], workers: Workers
) -> tuple[dict[str, str], list[str]]:
    """Watch each film that was not watched yet into a folder of its name; what fails, by path, with the reason, and those
    of them that met a fault of roadaware.

    Args:
        films: by name.
        folder: of the watches; made where it is not there.
        settings: `detector`, `fps` and `listen` of all watches.
        workers: where they are watched, and how many at a time.

    Raises:
        UsageError: if the folder holds watches with other settings, or another process is at work in it.
        DiskError: if the disk does not take them.
    """
    # As it is kept: of what comes from a store by its address.
    record = json.loads(folders.encode_json({"format": FORMAT, "settings": dict(settings)}))
    before = folders.read_marker(folder / RECORD, FORMAT)
    if before is not None and before != record:
        raise UsageError(
            f"{folder} holds watches with other settings ({before.get('settings')}); name another --watches"
        )
    folders.make_folder(folder)
    with folders.hold_folder(folder):
        write_atomically(folder / RECORD, folders.encode_json(record).encode())
        listed = tuple(films.items())
        open_ = [k for k, (name, film) in enumerate(listed) if not is_watched(folder / name, film)]
        work = partial(_watch_film, folder, dict(settings), not workers.is_inline(len(open_)))
        lost: dict[str, str] = {}
        faults: list[str] = []
        ledger = Ledger(folder, "videos", len(listed), len(listed) - len(open_))
        with ledger, console.show_progress("videos watched") as progress:
            progress(len(listed) - len(open_), len(listed))
            with contextlib.closing(map_parts(work, [listed[k] for k in open_], workers)) as results:
                for number, each in enumerate(results, len(listed) - len(open_) + 1):
                    name, film = listed[open_[each.place]]
                    if each.failure is not None:
                        lost[name] = each.failure
                    if each.unforeseen:
                        faults.append(str(film))
                    poor = each.failure is None and not is_watched(folder / name, film)
                    ledger.note(name, _read_fault(folder, name) if poor else each.failure)
                    progress(number, len(listed))
    failed = {}
    for name, film in films.items():
        if not is_watched(folder / name, film):
            failed[str(film)] = lost.get(name) or _read_fault(folder, name)
    return failed, faults


_FAULT = ".fault.txt"


def _read_fault(folder: Path, name: str) -> str:
    """Why a watch has failed, as it wrote down itself."""
    fault = folder / f"{name}{_FAULT}"
    return fault.read_text(encoding="utf-8") if fault.is_file() else "its watch did not end"


def is_watched(folder: Path, film: Path) -> bool:
    """Whether a folder holds the watch of a film that went on to its end.

    Args:
        folder: of the watch.
        film: its file.
    """
    from roadaware.online.run_folder import is_watch_of
    from roadaware.reports.watch_page import is_watch, read_summary

    if not (is_watch(folder) and is_watch_of(folder, film)):
        return False
    with contextlib.suppress(RoadawareError, KeyError, TypeError):
        return bool(read_summary(folder)["ended"]["reason"] == "end")
    return False


def _watch_film(folder: Path, settings: Mapping[str, Any], quiet: bool, named: tuple[str, Path]) -> None:
    """Watch one film: the part of the work that knows of no other. What is wrong with the film is written down."""
    from roadaware.cli.watch import watch

    name, film = named
    fault = folder / f"{name}{_FAULT}"
    if quiet:
        console.configure(quiet=True, verbosity=0)
    how: dict[str, Any] = {
        "weights": tuple(Path(path) for path in settings["detector"]),
        "fps": settings["fps"],
    }
    how |= {"listen": tuple(settings["listen"])} if settings["listen"] else {}
    # One that was broken off, or is of another film of that name, gives way.
    stale = (folder / name / "summary.json").is_file()
    try:
        # Of a GIF, which nothing else here opens, the video of the watch is what the page shows.
        still = film.suffix.lower() != ".gif"
        watch(str(film), out=folder / name, name=name, no_video=still, threads=1, overwrite=stale, **how)
        fault.unlink(missing_ok=True)
    except DiskError:
        raise
    except RoadawareError as error:
        write_atomically(fault, str(error).splitlines()[0].encode("utf-8", errors="backslashreplace"))


# From runs and tables to peaks, one path after the other; what cannot be taken is named.


@dataclass(frozen=True, eq=False)
class Examined:
    """What was found in all drives.

    Args:
        peaks, counts, lengths: see `analysis.drives.examine_drives`.
        source: video to the run or tables that hold it.
    """

    peaks: pl.DataFrame
    counts: pl.DataFrame
    lengths: pl.DataFrame
    source: Mapping[str, Path]


def _examine(sources: Sequence[Path], second: Sequence[Path], failed: dict[str, str]) -> Examined | None:
    """All drives; None where none can be taken. What fails is added to `failed`."""
    import polars as pl

    from roadaware.analysis.drives import collect_boxes, examine_drives

    others: dict[str, pl.DataFrame] = {}
    for path in second:
        others |= collect_boxes(path)
    parts: list[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]] = []
    source: dict[str, Path] = {}
    with console.show_progress("drives examined") as progress:
        for number, path in enumerate(sources):
            progress(number, len(sources))
            try:
                part = examine_drives(path, others)
            except InputError as error:
                failed[str(path)] = error.message
                continue
            videos = part[2]["video"].to_list()
            twice = next((video for video in videos if video in source), None)
            if twice is not None:
                raise UsageError(
                    f"{source[twice]} and {path} both hold the video {to_printable(twice)}; name one of them with "
                    "--second if it is of another model"
                )
            source |= dict.fromkeys(videos, path)
            parts.append(part)
        progress(len(sources), len(sources))
    if not parts:
        return None
    peaks, counts, lengths = (pl.concat(each) for each in zip(*parts, strict=True))
    return Examined(peaks, counts, lengths, source)


# Weights and verdicts: small files of people.


def read_weights(path: Path | None) -> TriageConfig:
    """The weights in a YAML file; those that come along where it is None.

    Raises:
        InputError: if the file cannot be read, or is no YAML.
        UsageError: if it names something unknown, or a value is out of range.
    """
    from roadaware.io.yaml import read_yaml

    if path is None:
        return TriageConfig()

    given = read_yaml(path)
    if not isinstance(given, dict):
        raise InputError(
            "expected names of reasons with their weights, such as `crossing: 0.9`", where=str(path)
        )
    known = get_weight_names()
    for name, value in given.items():
        if name not in known:
            raise UsageError(
                f"{path}: there is no {to_printable(str(name), 40)!r}; there are {', '.join(known)}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{path}: {name} is a number, not {to_printable(str(value), 40)!r}")
    return replace(TriageConfig(), **{name: float(value) for name, value in given.items()})


_YES, _NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


def read_verdicts(path: Path) -> dict[str, bool]:
    """Moment to whether somebody found it worth the look; rows without a verdict are passed over.

    Raises:
        InputError: if the file cannot be read, lacks the columns moment and verdict, or says something else than yes or no.
    """
    import polars as pl

    rows = read_cells(path, header=True)
    _, head = next(rows, (1, []))
    if not {"moment", "verdict"} <= set(head):
        raise InputError(
            f"expected the columns moment and verdict, found {', '.join(map(repr, head))[:200] or 'none'}",
            where=str(path),
            hint="fill in the column verdict of a moments.csv",
        )
    places = head.index("moment"), head.index("verdict")
    held: list[tuple[int, str, str]] = []
    for line, cells in rows:
        padded = [*cells, *[""] * (len(head) - len(cells))]
        held.append((line, padded[places[0]].strip(), padded[places[1]].strip().lower()))
    names = pl.DataFrame({"moment": [name for _, name, _ in held]}, schema={"moment": pl.String})
    plain = names.select(from_sheets(pl.col("moment")))["moment"].to_list()
    found: dict[str, bool] = {}
    for (line, _, said), name in zip(held, plain, strict=True):
        if not said:
            continue
        if said not in (*_YES, *_NO):
            raise InputError(
                f"a verdict is yes or no, not {to_printable(said, 40)!r}", where=f"{path}, line {line}"
            )
        if name in found and found[name] != (said in _YES):
            raise InputError(f"{to_printable(name, 80)} has both verdicts", where=f"{path}, line {line}")
        found[name] = said in _YES
    return found


# The page: clips of the first moments, where their films are found.


def _draw_clips(
    moments: pl.DataFrame, examined: Examined, films: Mapping[str, Path], media: Sequence[Path]
) -> tuple[Clip, ...]:
    """Clips of the first moments, each with its sentence; of what is not found the reason."""
    from roadaware.analysis.drives import list_outlines
    from roadaware.analysis.excerpts import Excerpt
    from roadaware.reports.clips import draw_clips
    from roadaware.reports.watch_page import format_clock

    lengths = {row["video"]: row for row in examined.lengths.iter_rows(named=True)}
    found: dict[str, Film | str] = {}
    excerpts: list[Excerpt] = []
    for row in moments.iter_rows(named=True):
        video = row["video"]
        if video not in found:
            found[video] = _find_film(video, examined.source[video], films, media)
        film, facts = found[video], lengths[video]
        rate = facts["fps"] if isinstance(film, str) else _read_rate(film) or facts["fps"]
        shown = int(row["frame"])
        first = max(0, shown - round(1.5 * rate))
        end = shown + max(1, round(1.5 * rate))
        says = f"{row['rank']}. {to_printable(video, 60)}, {format_clock(row['t_s'])}: {row['sentence']}."
        if isinstance(film, str):
            excerpts.append(Excerpt(says, video, None, film, first, end, shown, rate))
            continue
        shown = min(shown, film.n_frames - 1)
        outlines = list_outlines(examined.source[video], video, row["tube"], (first, end))
        size = (float(facts["width_px"]), float(facts["height_px"]))
        excerpts.append(
            Excerpt(says, video, film, "", first, min(end, film.n_frames), shown, rate, size, outlines)
        )
    return draw_clips(excerpts)


def _read_rate(film: Film) -> float | None:
    from roadaware.io.video import VideoReader

    if film.is_pictures:
        return None
    with contextlib.suppress(RoadawareError), VideoReader(Path(film.path)) as reader:
        return float(reader.fps) if reader.fps else None
    return None


def _find_film(video: str, source: Path, films: Mapping[str, Path], media: Sequence[Path]) -> Film | str:
    """The film of a video, or why there is none."""
    from roadaware.analysis.drives import open_videos
    from roadaware.analysis.excerpts import find_film
    from roadaware.io.video import VideoReader
    from roadaware.tasks.videos import Film

    path = films.get(video)
    if path is not None and path.suffix.lower() == ".gif":
        path = source / "video.mp4"
    if path is None:
        named = [place for place in media if place.is_file() and place.stem == video]
        named += [place / f"{video}{kind}" for place in media if place.is_dir() for kind in FILMS]
        path = next((place for place in named if place.is_file()), None)
    try:
        if path is not None:
            with VideoReader(path) as reader:
                return Film(video, str(path), len(reader), reader.height_px, reader.width_px)
        return find_film(open_videos(source), video, (*media, source))
    except RoadawareError as error:
        return str(error).splitlines()[0]


def _format(listed: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> str:
    from roadaware.reports.triage import format_hours

    length = format_hours(data["hours"])
    lines = [
        f"{data['moments_found']:,} moments in {length} of {data['videos']:,} videos; {data['top']:,} listed"
    ]
    if data["learnt"]:
        lines.append(f"ordered by {data['learnt']['yes']} verdicts of yes and {data['learnt']['no']} of no")
    for row in listed:
        where = f"{terminal.format_cell(row['moment'].rpartition(':')[0])} {row['t_s']:.1f} s"
        lines.append(f"{row['rank']:4}. {row['worth']:.2f}  {where}: {terminal.format_cell(row['sentence'])}")
    for where, why in data["failed"].items():
        lines.append(f"not taken: {terminal.format_cell(where)}: {terminal.format_cell(why)}")
    return "\n".join(lines)
