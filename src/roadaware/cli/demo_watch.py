"""The demo on watching: synthetic videos that the detector has not seen, watched as `watch` does, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.analysis.evaluation import event_inputs
from roadaware.analysis.evaluation.events import EventRequest, evaluate_events
from roadaware.cli.demo_scenes import LEARNT_SEEDS, Shows, get_means, select_seed
from roadaware.cli.watch import apply_detector_advice, build_drawing, load_detector, watch_source
from roadaware.cli.watch_crossing import build_annotator
from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.online.config import WatchConfig
from roadaware.online.frame_queue import SystemClock
from roadaware.online.run_folder import FILM, prepare
from roadaware.online.setup import find_bundled_weights
from roadaware.online.sources import open_source
from roadaware.reports import terminal
from roadaware.reports.copg import plot_sheet
from roadaware.reports.drawing import collect_marks, draw_marks, iterate_titles
from roadaware.reports.event_pages import build_event_run_section
from roadaware.reports.event_text import format_event_runs
from roadaware.reports.page import Films, Note, Pictures
from roadaware.scenes.concatenation import concat
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.store import open_predictions, save
from roadaware.tasks.road_events import AV_ACTION

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from roadaware.analysis.evaluation.runs import EventRun
    from roadaware.reports.page import Section
    from roadaware.reports.picture import Picture
    from roadaware.scenes.tables import Predictions, Scenes

FOLDER, TABLES = "watched", "predictions"
_THRESHOLDS: dict[str, Any] = {"frame_thresholds": ("0.5",), "video_thresholds": ("0.2",)}
_CURVES = ("agent",)
_SHOWN, _SHOWN_FROM = 3, 0.4
_MOST_BYTES = 2 << 20
"""Of a video that is put into the page."""
_SIZE = (682, 512)
"""Of images in detection files; tables have pixels of the videos."""


def watch_scenes(
    output: Path, truth: Path, scenes: Scenes, show: Shows, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """Watch videos with the bundled detector, and score what was seen.

    Args:
        output: the demo's folder.
        truth: where the videos lie.
        scenes: what is true of them.
        show: prints the steps.
        draws: resamples of videos.
        seed: of the demo.

    Returns:
        What was found, JSON-ready, and its sections of the report; where nothing can watch, why.
    """

    root = output / FOLDER
    names = [str(name) for name in scenes.videos["video"].to_list()]
    commands = [_command(root, truth, scenes, name) for name in names]
    show.step("Watch videos that the detector has not seen", commands[0])
    try:
        weights = _find_weights()
        told = _watch_videos(root, truth, scenes, weights, names)
    except (InputError, UsageError) as error:
        show.say(f"   left out: {error}")
        return {"left_out": str(error)}, []
    show.say("\n".join(f"   $ roadaware {command}" for command in commands[1:]))
    show.say(_told_text(told, weights))
    options = " ".join(f"--{name.replace('_', '-')} {each[0]}" for name, each in _THRESHOLDS.items())
    command = f"evaluate road --truth {truth} --predictions {root / TABLES} {options} --resamples {draws}"
    show.step("Score what was watched", command)
    run = _evaluate_videos(root, truth, weights, draws, seed)
    show.say(format_event_runs([run]))

    data = {"weights": weights.name, "films": told, "values": get_means(run)}
    return data, [_section(run, output, truth, scenes, told, seed)]


def _find_weights() -> Path:
    """The detector that came with roadaware.

    Raises:
        UsageError: if there is none, or nothing that runs it.
    """

    for name in ("torch", "safetensors"):
        if find_spec(name) is None:
            raise UsageError(f"{name} is not installed: pip install 'roadaware[models]'")
    return find_bundled_weights()


def _watch_videos(
    root: Path, truth: Path, scenes: Scenes, weights: Path, names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Video to the summary of its watch; the tables of all of them are saved as one set."""

    detector, clock = load_detector([weights]), SystemClock()
    config, _ = apply_detector_advice(WatchConfig(), [weights])
    found: dict[str, dict[str, Any]] = {}
    tables: list[Predictions] = []
    for name in names:
        with closing(open_source(find_video_path(scenes, truth, name), clock=clock)) as source:
            prepare(root / name)
            draw = build_drawing(detector)
            crossing = build_annotator((), detector, clock)
            found[name] = watch_source(source, detector, config, root / name, clock, draw, name, crossing)
        tables.append(open_predictions(root / name / TABLES))
    save(concat(tables), root / TABLES, overwrite=True)
    return found


def _evaluate_videos(root: Path, truth: Path, weights: Path, draws: int, seed: int) -> EventRun:
    """The videos of all watches together, judged as we recommend."""

    scenes = event_inputs.open_truth(truth, "road")
    opened = [event_inputs.open_predictions(root / TABLES, scenes, _SIZE)]
    request = EventRequest("road", draws=draws, seed=seed, details=True, **_THRESHOLDS)
    run = evaluate_events(scenes, event_inputs.select_split(scenes, None), opened, request, name=weights.stem)
    return replace(run, facts={**run.facts, "claims": [FOLDER]})


def _section(
    run: EventRun, output: Path, truth: Path, scenes: Scenes, told: dict[str, dict[str, Any]], seed: int
) -> Section:
    """Images, videos and honest words before the numbers."""

    section = build_event_run_section(run, _CURVES)
    pictures = Pictures((_picture(output, truth, scenes, list(told)[:_SHOWN]),))
    doubts = _doubts(scenes, seed)
    return replace(
        section,
        title=f"Watched: {run.name} on videos that it has not seen",
        says=(_sentence(told), *section.says, doubts),
        blocks=(pictures, _films(output, list(told)), Note(doubts, "doubt"), *section.blocks),
    )


def _doubts(scenes: Scenes, seed: int) -> str:
    """What the numbers do not say."""

    seeds = ", ".join(map(str, LEARNT_SEEDS))
    labels = scenes.frame_labels
    driven = labels.filter(labels["kind"].cast(str) == AV_ACTION)["label"].n_unique()
    alone = " The own vehicle does one thing in all of them, so its action is no test." if driven < 2 else ""
    return (
        f"The detector learnt from synthetic scenes with the seeds {seeds}; these have the seed "
        f"{select_seed(seed)}, so it has seen none of them. But one program made both: the numbers say how well "
        f"it does in that world, and nothing of real roads. The intervals are over {len(scenes.videos)} "
        f"videos, which is few.{alone}"
    )


def _picture(output: Path, truth: Path, scenes: Scenes, names: Sequence[str]) -> Picture:
    """A moment of each video: what was told on the left, what is true on the right."""

    frames = [frame for name in names for frame in _pair(output / FOLDER / name, truth, scenes, name)]
    told = (
        "Of each video the moment with the most to see. On the left what was predicted by then: number, agent and "
        "score, actions and places, and along the lower edge what the own vehicle does. On the right what is "
        "true."
    )
    return plot_sheet(frames, 2, title="Predicted, and ground truth", caption=told)


def _pair(folder: Path, truth: Path, scenes: Scenes, name: str) -> list[npt.NDArray[np.uint8]]:
    """The same frame of the video that was drawn, and of the video with the truth on it."""

    with VideoReader(folder / FILM) as ours, VideoReader(find_video_path(scenes, truth, name)) as film:
        marks, frames = collect_marks(scenes, name), min(len(ours), len(film))
        at = max(range(int(_SHOWN_FROM * frames), frames), key=lambda frame: len(marks.get(frame, [])))
        told, scale = ours.frame(at), max(1, ours.height_px // film.height_px)
        title = list(iterate_titles(scenes, name))[at]
        true = draw_marks(film.frame(at), marks.get(at, []), title=title, scale=scale)
    height, width = (min(a, b) for a, b in zip(told.shape[:2], true.shape[:2], strict=True))
    return [told[:height, :width], true[:height, :width]]


def _films(output: Path, names: Sequence[str]) -> Films:
    """Links to all videos; the first is in the page, where it is small enough."""

    paths = tuple(f"{FOLDER}/{name}/{FILM}" for name in names)
    first = output / paths[0]
    content = first.read_bytes() if first.stat().st_size <= _MOST_BYTES else b""
    played = (
        f"The first, {names[0]}, can be played here" if content else "None is small enough to be played here"
    )
    told = f"{played}; all of them lie beside this page, with the predictions in events.jsonl:"
    return Films(told, paths, content, "The videos")


def _sentence(told: dict[str, dict[str, Any]]) -> str:
    """How much was watched, and how fast."""
    frames, tubes = (sum(each[what] for each in told.values()) for what in ("frames", "tubes"))
    spent_s = sum(each["watched_s"] for each in told.values())
    rate = f", {frames / spent_s:.0f} frames per second on one core, drawing included" if spent_s else ""
    return f"It watched {len(told)} videos, {frames:,} frames{rate}, and reported {tubes:,} tubes."


def _told_text(told: dict[str, dict[str, Any]], weights: Path) -> str:
    rows = [
        (
            name,
            each["frames"],
            each["fps"] or 0.0,
            each["latency_ms"]["p50"] or 0.0,
            each["tubes"],
            each["events"],
        )
        for name, each in told.items()
    ]
    shown = [
        (name, n, f"{fps:.1f}", f"{late:.0f}", tubes, events) for name, n, fps, late, tubes, events in rows
    ]
    columns = ["film", "frames", "frames per s", "latency p50, ms", "tubes", "events"]
    return f"   with {weights.name}\n{terminal.format_table(columns, shown, left=1)}"


def _command(root: Path, truth: Path, scenes: Scenes, name: str) -> str:

    return f"watch {find_video_path(scenes, truth, name)} --name {name} --output {root / name}"
