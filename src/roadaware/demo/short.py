"""The short demo: videos that came with roadaware are watched and judged, and one page shows both."""

from __future__ import annotations

import logging
import multiprocessing
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware import api
from roadaware.cli import console
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.demo import watching
from roadaware.demo.scenes import BOX_OVERLAP, get_means, judge_tubes
from roadaware.demo.steps import Demo
from roadaware.demo_data import VIDEOS_FILE
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.errors import InputError, UsageError
from roadaware.io.files import build_disk_error
from roadaware.io.folders import write_result_folder, write_text
from roadaware.io.processes import stop_with_parent
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.reports.event_pages import build_event_run_section
from roadaware.reports.event_runs import build_event_run_files
from roadaware.reports.event_text import format_event_runs
from roadaware.reports.page import Note, Section, report
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions

if TYPE_CHECKING:
    from roadaware.analysis.evaluation.runs import EventRun
    from roadaware.scenes.tables import Scenes

VIDEOS, WATCHED, JUDGED, PAGE = "videos", watching.FOLDER, "judged", "report.html"
FOLDERS = (VIDEOS, WATCHED, JUDGED)
TUBE_OVERLAP = "0.2"
_KIND = "agent"
VIDEOS_SEED = 3
"""See demo_data/videos.md."""
_RESAMPLES = 20


def run_short(demo: Demo) -> dict[str, Any]:
    """Watch, judge, show; JSON-ready facts.

    Raises:
        DiskError: if something cannot be written.
    """
    demo.remove_folders(FOLDERS)
    truth, root = demo.folder / VIDEOS, demo.folder / WATCHED
    unpack_videos(truth)
    with _compile_beside(truth):
        scenes = open_dataset(SYNTHETIC, truth)
        name, watched, why = _predict(demo, truth, scenes)
    tables = root / watching.TABLES
    demo.step(
        "Judge what was found",
        f"evaluate road --truth {truth} --predictions {tables} --frame-thresholds {BOX_OVERLAP} "
        f"--video-thresholds {TUBE_OVERLAP} --resamples {demo.draws} -o {demo.folder / JUDGED}",
    )
    with console.log_step("evaluation"):
        run = judge_tubes(demo, truth, tables, name, WATCHED, (TUBE_OVERLAP,), details=True)
    demo.say(format_event_runs([run]))
    with console.log_step("report"):
        section = _build_section(demo, run, truth, scenes, watched, why)
        write_text(demo.folder / PAGE, report([section], title="roadaware: Demo"))
        # The run as `evaluate -o` writes it; its page is the demo's
        folder = demo.folder / JUDGED
        words = "The page of this run is report.html in the folder above; roadaware report makes one of the run alone."
        page = report([Section(run.name, (), (Note(words),))], title=run.name)
        write_result_folder(folder, build_event_run_files(run, page), overwrite=False)
    demo.step("Look at videos, boxes and errors", f"view {demo.folder / JUDGED} {root} {truth}")
    data = {"watched": watched, "values": get_means(run)}
    return {**data, **({"left_out": why} if why else {})}


def unpack_videos(folder: Path) -> None:
    """Write the videos that came with roadaware, and what is true of them.

    Args:
        folder: new.

    Raises:
        DiskError: if it cannot be written.
    """
    try:
        with zipfile.ZipFile(VIDEOS_FILE) as packed:
            packed.extractall(folder)
    except OSError as error:
        raise build_disk_error(folder, 1, error) from error


def _predict(demo: Demo, truth: Path, scenes: Scenes) -> tuple[str, dict[str, dict[str, Any]], str]:
    """Watch every video; where nothing can watch, simulate a detector that errs, and say why."""
    root, videos = demo.folder / WATCHED, watching.find_films(scenes, truth)
    first, *others = videos
    command = f"watch {videos[first]} --name {first} --output {root / first}"
    try:
        weights = watching.find_detector()
        demo.step(f"Watch {len(videos)} videos that the bundled detector has not seen", command)
        demo.say(f"   and {others[0]} to {others[-1]} in the same way")
        watched = watching.watch_videos(root, videos, weights)
    except (InputError, UsageError) as error:
        demo.step("Simulate what a detector finds: none can watch the videos here", "doctor")
        demo.say(f"   {error}")
        found = simulate_detections(scenes, seed=demo.seed, detector=Detector(size=None))
        save(api.link(found), root / watching.TABLES, overwrite=True)
        return "simulated detector", {}, str(error)
    demo.say(watching.format_watched(watched))
    return weights.stem, watched, ""


def _build_section(
    demo: Demo, run: EventRun, truth: Path, scenes: Scenes, watched: dict[str, dict[str, Any]], why: str
) -> Section:
    if watched:
        videos = watching.find_films(scenes, truth)
        return watching.build_watched_section(run, demo, videos, scenes, watched, VIDEOS_SEED)
    section = build_event_run_section(run, (_KIND,))
    words = f"Nothing could watch the videos here: {why}. The detections are simulated, and err."
    return replace(section, blocks=(Note(words, "doubt"), *section.blocks))


# Kernels are compiled once for each installation, which takes longer than everything else here: a second core
# takes those of the evaluation while the first compiles the linker and watches.


@contextmanager
def _compile_beside(truth: Path) -> Iterator[None]:
    """Compile what judges in a process of its own, where a second core is free for it."""
    if len(os.sched_getaffinity(0)) < 2:
        yield
        return
    with TemporaryDirectory() as folder:
        process = multiprocessing.get_context("spawn").Process(
            target=_compile_kernels, args=(truth, Path(folder)), daemon=True
        )
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()


def _compile_kernels(truth: Path, folder: Path) -> None:
    """Ask the predictors of nobody, and judge the truth as if it was predicted, so that the kernels lie in the cache.

    Args:
        truth: the videos.
        folder: for what nobody keeps.
    """
    stop_with_parent()
    logging.getLogger("roadaware").setLevel(logging.ERROR)
    with suppress(ImportError, InputError, UsageError):
        from roadaware.online.crossing_forecaster import open_foresight

        open_foresight([WEIGHTS / name for name in PREDICTORS]).warm_up()
    scenes = open_dataset(SYNTHETIC, truth)
    certain = {
        name: getattr(scenes, name).with_columns(score=pl.lit(0.5, pl.Float64))
        for name in ("boxes", "labels", "tubes", "tube_labels")
    }
    meta = replace(scenes.meta, rows_read={}, source_digest="", notes={})
    predicted = Predictions(**certain, videos=scenes.videos, frames=scenes.frames, meta=meta)
    save(predicted, folder / "tables")
    silent = Demo(folder, _RESAMPLES, 0, aloud=False)
    judge_tubes(silent, truth, folder / "tables", "truth", "truth", (TUBE_OVERLAP,), details=True)
