"""The demo on watching: synthetic videos that the detector has not seen, watched as `watch` does, and judged."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.cli.watch import build_annotator, watch_source
from roadaware.demo.scenes import BOX_OVERLAP, LEARNT_SEEDS, get_means, judge_tubes, select_seed
from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.online.config import WatchConfig
from roadaware.online.crowd import open_crowd_questions
from roadaware.online.frames import SystemClock
from roadaware.online.run_folder import FILM, prepare
from roadaware.online.setup import apply_detector_advice, find_bundled_weights, load_detector
from roadaware.online.sources import open_source
from roadaware.reports import terminal
from roadaware.reports.clips import read_poster
from roadaware.reports.copg import plot_sheet
from roadaware.reports.drawing import collect_marks, draw_marks, iterate_titles
from roadaware.reports.event_pages import build_event_run_section
from roadaware.reports.event_text import format_event_runs
from roadaware.reports.live_drawing import LiveDrawing
from roadaware.reports.page import Clips, Films, Note, Pictures, Table
from roadaware.scenes.concatenation import concat
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.store import open_predictions, save
from roadaware.tasks.road_events import AV_ACTION

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from roadaware.analysis.evaluation.runs import EventRun
    from roadaware.demo.command import Demo
    from roadaware.online.crowd import CrowdQuestions
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Predictions, Scenes

FOLDER, TABLES, CROWD_FOLDER = "watched", "predictions", "watched-crowd"
_TUBE_OVERLAP = "0.2"
_CURVES = ("agent",)
_SHOWN, _SHOWN_FROM = 3, 0.4
_MOST_BYTES = 2 << 20
"""Of a video that is put into the page."""


def watch_scenes(demo: Demo, truth: Path, scenes: Scenes) -> tuple[dict[str, Any], list[Section]]:
    """Watch videos with the bundled detector, and score what was seen.

    Returns:
        What was found, JSON-ready, and its sections of the report; where nothing can watch, why.
    """
    root = demo.folder / FOLDER
    films = find_films(scenes, truth)
    commands = [f"watch {film} --name {name} --output {root / name}" for name, film in films.items()]
    demo.step("Watch videos that the detector has not seen", commands[0])
    try:
        weights = find_detector()
        watched = watch_videos(root, films, weights)
    except (InputError, UsageError) as error:
        demo.say(f"   left out: {error}")
        return {"left_out": str(error)}, []
    demo.say("\n".join(f"   $ roadaware {command}" for command in commands[1:]))
    demo.say(f"   with {weights.name}\n{format_watched(watched)}")
    tables, resamples = root / TABLES, demo.resamples
    demo.step(
        "Score what was watched",
        f"evaluate road --truth {truth} --predictions {tables} --frame-thresholds {BOX_OVERLAP} "
        f"--video-thresholds {_TUBE_OVERLAP} --resamples {resamples}",
    )
    run = judge_tubes(demo, truth, tables, weights.stem, FOLDER, (_TUBE_OVERLAP,), details=True)
    demo.say(format_event_runs([run]))
    data = {"weights": weights.name, "films": watched, "values": get_means(run)}
    return data, [build_watched_section(run, demo, films, scenes, watched, select_seed(demo.seed))]


def watch_crowd_film(demo: Demo, truth: Path, scenes: Scenes) -> dict[str, Any]:
    """Watch the first video of a crowd, and ask the bundled network of crowds what happens in it.

    Args:
        demo: under way.
        truth: where the videos lie.
        scenes: what is true of them; a sentence and a sound of the video are asked for.

    Returns:
        What was found, JSON-ready; where nothing can watch, why.
    """
    name, film = next(iter(find_films(scenes, truth).items()))
    here = pl.col("video").cast(pl.String) == name
    find = tuple(scenes.queries.filter(here)["text"].head(1).to_list())
    names = scenes.meta.vocabularies.get("sound", ())
    heard = scenes.sounds.filter(here, pl.col("label").is_not_null())["label"].head(1).to_list()
    listen = tuple(names[label] for label in heard if label < len(names))
    words = [f"--find {shlex.quote(text)}" for text in find] + [
        f"--listen {shlex.quote(text)}" for text in listen
    ]
    root = demo.folder / CROWD_FOLDER
    command = " ".join(["watch", str(film), "--crowd", *words, "--output", str(root / name)])
    demo.step(
        "Watch a crowd: who does what to whom, when a sentence happens, where a sound comes from", command
    )
    try:
        weights = find_detector(crowd=True)
        questions = open_crowd_questions(None, find, listen)
        watched = watch_videos(root, {name: film}, weights, questions)[name]
    except (InputError, UsageError) as error:
        demo.say(f"   left out: {error}")
        return {"left_out": str(error)}
    demo.say("\n".join(f"   {line}" for line in watched["crowd"]["says"]))
    return {"film": name, "find": list(find), "listen": list(listen), **watched["crowd"]}


def find_films(scenes: Scenes, truth: Path) -> dict[str, Path]:
    """Video to its file, below `truth` as that was named.

    Raises:
        InputError: if a file is missing.
    """
    found = {
        str(name): find_video_path(scenes, truth, str(name)) for name in scenes.videos["video"].to_list()
    }
    return {name: truth / path.relative_to(truth.resolve()) for name, path in found.items()}


def find_detector(*, crowd: bool = False) -> Path:
    """The bundled detector, where this installation can use it.

    Args:
        crowd: whether a network of crowds is asked about what it finds.

    Raises:
        UsageError: if a library is missing, or no detector was bundled.
    """
    for library in ("torch", "safetensors"):
        if find_spec(library) is None:
            raise UsageError(f"{library} is not installed: pip install 'roadaware[models]'")
    return find_bundled_weights(crowd=crowd)


def format_watched(watched: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each video that was watched, for a terminal.

    Args:
        watched: video to the summary of its watch.
    """
    rows = [
        (
            name,
            each["frames"],
            f"{each['fps'] or 0.0:.1f}",
            f"{each['latency_ms']['p50'] or 0.0:.0f}",
            each["tubes"],
            each["events"],
        )
        for name, each in watched.items()
    ]
    columns = ["video", "frames", "frames per s", "latency p50, ms", "tubes", "events"]
    return terminal.format_table(columns, rows, left=1)


def watch_videos(
    root: Path, films: Mapping[str, Path], weights: Path, questions: CrowdQuestions | None = None
) -> dict[str, dict[str, Any]]:
    """Video to the summary of its watch; the tables of all of them are saved as one set.

    Args:
        root: gets a folder for each video, and the tables.
        films: video to its file.
        weights: of the detector.
        questions: what a network of crowds is asked of each; None for nothing.

    Raises:
        UsageError, InputError: if the detector cannot be used.
    """
    detector, clock = load_detector([weights]), SystemClock()
    config, _ = apply_detector_advice(WatchConfig(), [weights])
    found: dict[str, dict[str, Any]] = {}
    tables: list[Predictions] = []
    for name, film in films.items():
        with closing(open_source(film, clock=clock)) as source:
            prepare(root / name)
            draw = LiveDrawing(detector.kinds.get("agent", ()), "")
            asked = () if questions is None else ("none",)
            crossing = build_annotator(asked, detector, clock)
            found[name] = watch_source(
                source, detector, config, root / name, clock, draw, name, crossing, questions=questions
            )
        tables.append(open_predictions(root / name / TABLES))
    save(concat(tables), root / TABLES, overwrite=True)
    return found


def build_watched_section(
    run: EventRun,
    demo: Demo,
    films: Mapping[str, Path],
    scenes: Scenes,
    watches: dict[str, dict[str, Any]],
    seed: int,
) -> Section:
    """Images, videos and honest words before the numbers.

    Args:
        run: what was watched, judged.
        demo: whose folder holds the runs.
        films: video to its file.
        scenes: what is true of them.
        watches: video to the summary of its watch.
        seed: of the scenes.
    """
    section = build_event_run_section(run, _CURVES)
    root = demo.folder / FOLDER
    shown = [
        frame for name in list(films)[:_SHOWN] for frame in _pair(root / name, films[name], scenes, name)
    ]
    caption = (
        "Of each video the moment with the most to see. On the left what was predicted by then: number, agent and "
        "score, actions and places, and along the lower edge what the own vehicle does. On the right what is "
        "true."
    )
    images = Pictures((plot_sheet(shown, 2, title="Predicted, and ground truth", caption=caption),))
    frames, tubes = (sum(each[what] for each in watches.values()) for what in ("frames", "tubes"))
    spent_s = sum(each["watched_s"] for each in watches.values())
    rate = f", {frames / spent_s:.0f} frames per second on one core, drawing included" if spent_s else ""
    watched = f"It watched {len(watches)} videos, {frames:,} frames{rate}, and reported {tubes:,} tubes."
    # What the numbers do not say
    seeds = ", ".join(map(str, LEARNT_SEEDS))
    labels = scenes.frame_labels
    driven = labels.filter(labels["kind"].cast(str) == AV_ACTION)["label"].n_unique()
    alone = " The own vehicle does one thing in all of them, so its action is no test." if driven < 2 else ""
    uncertainties = (
        f"The detector learnt from synthetic scenes with the seeds {seeds}; these have the seed "
        f"{seed}, so it has seen none of them. But one program made both: the numbers say how well "
        f"it does in that world, and nothing of real roads. The intervals are over {len(scenes.videos)} "
        f"videos, which is few.{alone}"
    )
    means = [block for block in section.blocks if isinstance(block, Table)][:1]
    clips = [block for block in section.blocks if isinstance(block, Clips)]
    others = [block for block in section.blocks if block not in (*means, *clips)]
    # Links to all videos; the first is in the page, where it is small enough
    names = list(watches)
    paths = tuple(f"{FOLDER}/{name}/{FILM}" for name in names)
    first = demo.folder / paths[0]
    content = first.read_bytes() if first.stat().st_size <= _MOST_BYTES else b""
    played = (
        f"The first, {names[0]}, can be played here" if content else "None is small enough to be played here"
    )
    text = f"{played}; all of them lie beside this page, with the predictions in events.jsonl:"
    return replace(
        section,
        title=f"Watched: {run.name} on videos that it has not seen",
        says=(watched, *section.says, uncertainties),
        blocks=(
            images,
            *means,
            *clips,
            Films(text, paths, content, "The videos", read_poster(first) if content else b""),
            Note(uncertainties, "doubt"),
            *others,
        ),
    )


def _pair(folder: Path, video: Path, scenes: Scenes, name: str) -> list[npt.NDArray[np.uint8]]:
    """The same frame of the video that was drawn, and of the video with the truth on it."""
    with VideoReader(folder / FILM) as ours, VideoReader(video) as film:
        marks, frames = collect_marks(scenes, name), min(len(ours), len(film))
        at = max(range(int(_SHOWN_FROM * frames), frames), key=lambda frame: len(marks.get(frame, [])))
        image, scale = ours.frame(at), max(1, ours.height_px // film.height_px)
        title = list(iterate_titles(scenes, name))[at]
        true = draw_marks(film.frame(at), marks.get(at, []), title=title, scale=scale)
    height, width = (min(a, b) for a, b in zip(image.shape[:2], true.shape[:2], strict=True))
    return [image[:height, :width], true[:height, :width]]
