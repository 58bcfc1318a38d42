"""`roadaware triage`: a night of drives in, the moments that are most worth a look out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.drives import examine_sources, find_drives
from roadaware.analysis.triage import count_hours, learn_verdicts, rank_moments, read_verdicts, read_weights
from roadaware.cli import console, outputs
from roadaware.cli.networks import AS_IT_SUITS, select_detector
from roadaware.cli.options import (
    ALL_LOCAL,
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    WideSpread,
    validate_range,
)
from roadaware.cli.results import ResultFolder
from roadaware.cli.watch import watch
from roadaware.errors import DiskError, InputError, RoadawareError, UsageError
from roadaware.io import folders
from roadaware.io.files import write_atomically
from roadaware.io.parallel import Ledger, Workers, map_parts
from roadaware.io.sources import to_printable
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.online.camera_motion import measure_own_motion
from roadaware.online.crowd import hear_film, open_crowd_questions
from roadaware.online.events import HEARD, OBSTACLES, SPEED, STANDING
from roadaware.online.obstacles import ObstacleFinder
from roadaware.online.run_folder import RECORD as WATCH_RECORD
from roadaware.online.run_folder import is_watch_of
from roadaware.reports.runs import encode_parquet
from roadaware.reports.triage import build_triage_files, draw_moments, format_triage, list_notices
from roadaware.reports.watch_page import is_watch, read_summary

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
_DETECTOR = "The detector of the watches, as `watch --weights` takes it. [default: as of `watch`]"
_FPS = "Process no more frames a second of a video than this."
_LISTEN = (
    "A sound that is listened for, as `watch --listen` takes it, such as siren; again for another one. It counts wherever it "
    "comes from."
)
_SECOND = (
    "Runs or tables of another model on the same videos: somebody whom it does not see is a reason, too."
)
_MEDIA = "Videos, or folders of videos, of runs and tables: the page then shows clips."
_CLIPS = "Moments that the page shows as clips."
RECORD, FORMAT = "watches.json", "roadaware-watches"


def triage(
    *drives: Annotated[Path, Parameter(help=_DRIVES)],
    top: Annotated[int, Parameter(help=_TOP, validator=validate_range(1, 100_000))] = 100,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.RESULT] = None,
    watches: Annotated[Path | None, Parameter(help=_WATCHES), outputs.WATCHES] = None,
    weights: Annotated[Path | None, Parameter(help=_WEIGHTS)] = None,
    verdicts: Annotated[Path | None, Parameter(help=_VERDICTS)] = None,
    detector: Annotated[tuple[Path, ...], Parameter(help=_DETECTOR), Several, Stated] = (),
    fps: Annotated[float | None, Parameter(help=_FPS)] = None,
    listen: Annotated[tuple[str, ...], Parameter(help=_LISTEN, negative="", show_default=False)] = (),
    second: Annotated[tuple[Path, ...], Parameter(help=_SECOND), Several] = (),
    media: Annotated[tuple[Path, ...], Parameter(help=_MEDIA), Several] = (),
    spread: WideSpread = ALL_LOCAL,
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
    workers = spread.gather(usual=0, least=1)

    for place in (*media, *second, *(resolve_weights(path) for path in detector)):
        if not place.exists():
            raise InputError("there is no such file or folder", where=str(place), hint="Check the path.")
    if listen:
        # A sound that is not known would fail every watch, after all the others were looked for.
        open_crowd_questions(None, sounds=listen)

    config = read_weights(weights)
    judged = None if verdicts is None else read_verdicts(verdicts)
    films, sources = find_drives(drives, without=(kept, folder))
    given, faults, failed = len(films) + len(sources), list[str](), dict[str, str]()
    if films:
        from roadaware.models.loading import digest_model_files

        outputs.WATCHES.check(kept, overwrite=overwrite)
        chosen = select_detector(detector, synthetic=False, live=False, looks=AS_IT_SUITS).files
        settings = {
            "detector": [str(path) for path in detector],
            "fps": fps,
            "listen": list(listen),
            # One that was installed or changed in between would rank half of the night by other eyes.
            "models": [[to_printable(path.name), digest_model_files(path)] for path in chosen],
        }
        lost, faults = watch_films(films, kept, settings, workers)
        failed |= lost
        sources += [kept / name for name in films if str(films[name]) not in failed]
    examined = examine_sources(sources, second, failed)
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
        found = draw_moments(moments.head(clips), examined, films, media)
        files = build_triage_files(moments, top, data, found)
    ResultFolder(folder, overwrite).write(folders.add_marker(files, data), also="list: list.csv")
    if faults:
        raise RuntimeError(f"{text}; the others are ranked in {folder}")
    why = f"{len(failed)} of {given} inputs could not be taken" if failed else None
    listed = (
        moments.head(min(top, 10)).select("rank", "moment", "t_s", "worth", "reason", "sentence").to_dicts()
    )
    return Outcome(format_triage(listed, data), {"folder": str(folder), **data, "first": listed}, why)


def watch_films(
    films: Mapping[str, Path], folder: Path, settings: Mapping[str, Any], workers: Workers
) -> tuple[dict[str, str], list[str]]:
    """Watch each film that was not watched yet into a folder of its name; what fails, by path, with the reason, and those
    of them that met a fault of roadaware.

    Args:
        films: by name.
        folder: of the watches; made where it is not there.
        settings: `detector`, `fps` and `listen` of all watches, and the name and digest of each of their `models`.
        workers: where they are watched, and how many at a time.

    Raises:
        UsageError: if the folder holds watches with other settings, or another process is at work in it.
        DiskError: if the disk does not take them.
    """
    # As it is kept: of what comes from a store by its address.
    record = json.loads(folders.encode_json({"format": FORMAT, "settings": dict(settings)}))
    before = folders.read_marker(folder / RECORD, FORMAT)
    if before is not None:
        held = before.get("settings")
        held = held if isinstance(held, dict) else {}
        # Earlier versions wrote down fewer of them.
        differ = [
            f"{name} {held[name]}, now {now}"
            for name, now in record["settings"].items()
            if name in held and held[name] != now
        ]
        if held and "models" not in held:
            # Then the watches say by whom they were made; where one does not, nor does the record from now on.
            now = [digest for _, digest in record["settings"]["models"]]
            looked = [_read_detectors(each) for each in folder.iterdir() if is_watch(each)]
            differ += [f"models {each}, now {now}" for each in looked if each is not None and each != now][:1]
            if None in looked:
                del record["settings"]["models"]
        if differ or not held:
            raise UsageError(
                f"{folder} holds watches with other settings ({'; '.join(differ) or 'none'}); name another --watches"
            )
    folders.make_folder(folder)
    with folders.hold_folder(folder):
        write_atomically(folder / RECORD, folders.encode_json(record).encode())
        listed = tuple(films.items())
        files = (STANDING, SPEED, OBSTACLES, *((HEARD,) if settings["listen"] else ()))
        open_ = [k for k, (name, film) in enumerate(listed) if not is_watched(folder / name, film, files)]
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
                    poor = each.failure is None and not is_watched(folder / name, film, files)
                    ledger.note(name, _read_fault(folder, name) if poor else each.failure)
                    progress(number, len(listed))
    failed = {}
    for name, film in films.items():
        if not is_watched(folder / name, film, files):
            failed[str(film)] = lost.get(name) or _read_fault(folder, name)
    return failed, faults


def _read_detectors(folder: Path) -> list[str] | None:
    """Digests of the files of the detectors that a watch was made by; None where it does not say."""
    try:
        models = json.loads((folder / WATCH_RECORD).read_bytes())["models"]
        found = [str(each["digest"]) for each in models if each["task"] == "agents"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # Of a detector in a folder there is none.
    return found if found and all(found) else None


_FAULT = ".fault.txt"


def _read_fault(folder: Path, name: str) -> str:
    """Why a watch has failed, as it wrote down itself."""
    fault = folder / f"{name}{_FAULT}"
    return fault.read_text(encoding="utf-8") if fault.is_file() else "its watch did not end"


def is_watched(folder: Path, film: Path, files: Sequence[str] = ()) -> bool:
    """Whether a folder holds the watch of a film that went on to its end.

    Args:
        folder: of the watch.
        film: its file.
        files: that are to be there besides those of every watch.
    """
    if not (
        is_watch(folder) and is_watch_of(folder, film) and all((folder / each).is_file() for each in files)
    ):
        return False
    with contextlib.suppress(RoadawareError, KeyError, TypeError):
        return bool(read_summary(folder)["ended"]["reason"] == "end")
    return False


def _watch_film(folder: Path, settings: Mapping[str, Any], quiet: bool, named: tuple[str, Path]) -> None:
    """Watch one film: the part of the work that knows of no other. What is wrong with the film is written down."""
    name, film = named
    fault = folder / f"{name}{_FAULT}"
    if quiet and not console.is_quiet():
        console.configure(quiet=True, verbosity=0)
    from roadaware.models.devices import set_threads

    how: dict[str, Any] = {
        "weights": tuple(Path(path) for path in settings["detector"]),
        "fps": settings["fps"],
    }
    try:
        # Of a GIF, which nothing else here opens, the video of the watch is what the page shows.
        still = film.suffix.lower() != ".gif"
        if not is_watched(folder / name, film):
            # One that was broken off, by whatever version, or is of another film of that name, gives way.
            watch(str(film), out=folder / name, name=name, no_video=still, threads=1, overwrite=True, **how)
        # As in the watch: sums of several threads differ in their last bits, also where the watch was there before
        set_threads((), 1)
        finder = ObstacleFinder()
        motion = measure_own_motion(film, finder.add)
        for file, columns in ((STANDING, ("standing",)), (SPEED, ("speed_mps", "yaw_rate_radps"))):
            write_atomically(folder / name / file, encode_parquet(motion.select("t_s", *columns)))
        write_atomically(folder / name / OBSTACLES, encode_parquet(finder.build_table()))
        if settings["listen"]:
            heard = hear_film(open_crowd_questions(None, sounds=settings["listen"]), film)
            write_atomically(folder / name / HEARD, encode_parquet(heard))
        fault.unlink(missing_ok=True)
    except DiskError:
        raise
    except RoadawareError as error:
        write_atomically(fault, str(error).splitlines()[0].encode("utf-8", errors="backslashreplace"))
