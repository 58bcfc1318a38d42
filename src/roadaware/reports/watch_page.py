"""The page of a watch, made of what stands in its folder: spans of tubes, highlights; and the same in words for terminals."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image

from roadaware.analysis.excerpts import LONGEST_S, MOST_CLIPS, Clip, Excerpt
from roadaware.errors import DamagedError, InputError
from roadaware.io.files import read_regular
from roadaware.io.video import VideoReader
from roadaware.online.events import read_events
from roadaware.online.film import find_first_shown
from roadaware.online.run_folder import EVENTS, FILM, SUMMARY
from roadaware.online.times import TABLES
from roadaware.reports import terminal
from roadaware.reports.clips import draw_clips, read_poster
from roadaware.reports.drawing import COLOURS
from roadaware.reports.page import (
    FULL,
    GREY,
    HALF,
    INK,
    PALE,
    VERMILLION,
    Block,
    Clips,
    Facts,
    Films,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    create_canvas,
    report,
    set_style,
)
from roadaware.reports.text import sanitize_text
from roadaware.scenes.store import open_predictions
from roadaware.tasks.road_events import Stretch, collect_stretches
from roadaware.tasks.videos import Film

if TYPE_CHECKING:
    from roadaware.online.watch import Progress


Event = Mapping[str, Any]
MOST_MOMENTS = 8
UNLABELLED = "?"
_APART_S = 1.0
_ROUNDED_S = 1e-3
_NEAR = 0.5
_KINDS = ("agent", "action", "location", "event")
_RARE = frozenset({"EmVeh", "Mobike", "Cyc", "Xing", "XingFmLft", "XingFmRht", "Ovtak", "HazLit", "Wait2X"})
"""Labels, as ROAD has them, that somebody who drives would look up at."""


@dataclass(eq=False)
class Span:
    """One tube over time.

    Args:
        tube: its number.
        begin_s: when it was first found.
        end_s: when it was last found.
        score: mean agentness, as last reported.
        agents: label to the best score that was reported for it.
        height: of its box at the largest, in pixels.
        probable: (time, smoothed probability) of each time that crossing was reported.
    """

    tube: int
    begin_s: float
    end_s: float
    score: float = 0.0
    agents: dict[str, float] = field(default_factory=dict)
    height: float = 0.0
    probable: list[tuple[float, float]] = field(default_factory=list)

    @property
    def agent(self) -> str:
        """The label that was reported best; `UNLABELLED` where none was."""
        return max(self.agents, key=lambda name: (self.agents[name], name), default=UNLABELLED)


@dataclass(frozen=True)
class Moment:
    """A time at which to look.

    Args:
        t_s: when.
        why: in words.
        worth: the larger, the sooner it is shown.
        tube: of which; None for none.
    """

    t_s: float
    why: str
    worth: float
    tube: int | None = None


@dataclass(frozen=True, eq=False)
class Watched:
    """The events of a watch.

    Args:
        spans: by number.
        driving: (time, label) of each change of what the own vehicle does.
        source: (time, message) of what happened to the source.
        moments: best first.
    """

    spans: tuple[Span, ...]
    driving: tuple[tuple[float, str], ...]
    source: tuple[tuple[float, str], ...]
    moments: tuple[Moment, ...]


def summarise_events(events: Iterable[Event], height_px: float | None = None) -> Watched:
    """The tubes, the own vehicle and the moments of a stream of events.

    Args:
        events: as `online.events.read_events` gives them.
        height_px: of the image; without it nobody is near.
    """
    spans: dict[int, Span] = {}
    driving: list[tuple[float, str]] = []
    source: list[tuple[float, str]] = []
    moments: list[Moment] = []
    times: list[tuple[int, float]] = [(0, 0.0)]
    frames: dict[int, tuple[int, int]] = {}
    known: set[str] = set()
    for event in events:
        t_s, what, tube = float(event["t_s"]), str(event["event"]), event["tube"]
        times.append((int(event["frame"]), t_s))
        if what == "source":
            source.append((t_s, str(event.get("message", ""))))
            moments.append(Moment(t_s, f"the source: {event.get('message', '')}", 1.5))
        elif tube is None:
            text = ", ".join(name for held in event["labels"].values() for name in held)
            if what != "end" and text and (not driving or driving[-1][1] != text):
                moments += (
                    [Moment(t_s, f"own vehicle: {driving[-1][1]}, then {text}", 0.8)] if driving else []
                )
                driving.append((t_s, text))
        else:
            span = spans.setdefault(int(tube), Span(int(tube), t_s, t_s))
            frames[span.tube] = (int(event["first_frame"]), int(event["last_frame"]))
            # Add an event of a tube, and its highlight
            span.score = float(event["score"])
            for name, score in event["labels"].get("agent", {}).items():
                span.agents[name] = max(span.agents.get(name, 0.0), float(score))
            found, called = [], f"#{span.tube} {span.agent}"
            if what == "crossing_probable":
                likely = float(event.get("crossing", {}).get("smoothed") or 0.0)
                span.probable.append((t_s, likely))
                found.append(
                    Moment(t_s, f"{called} will probably cross ({100 * likely:.0f} %)", 3 + likely, span.tube)
                )
            labels = {name for kind in _KINDS for name in event["labels"].get(kind, {})}
            # Sorted, or the order of a set would decide which of two firsts is shown.
            for name in sorted((labels & _RARE) - known):
                known.add(name)
                found.append(Moment(t_s, f"{called}: the first {name}", 1.0 + span.score, span.tube))
            box = event.get("box")
            height = float(box[3] - box[1]) if box else 0.0
            if height_px and height >= _NEAR * height_px > span.height:
                share = 100 * height / height_px
                found.append(
                    Moment(t_s, f"{called} is near: {share:.0f} % of the image's height", 1.2, span.tube)
                )
            span.height = max(span.height, height)
            moments += found
    _place(spans.values(), frames, times)
    return Watched(tuple(spans[n] for n in sorted(spans)), tuple(driving), tuple(source), _best(moments))


def _place(
    spans: Iterable[Span], frames: Mapping[int, tuple[int, int]], times: list[tuple[int, float]]
) -> None:
    """Times of first and last frames, between those of events."""
    at = np.array(sorted(set(times)), np.float64)
    for span in spans:
        ends = np.interp(frames[span.tube], at[:, 0], at[:, 1])
        span.begin_s, span.end_s = float(ends[0]), float(max(ends))


def _best(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """The best highlights, without the same tube or second twice while there are others."""
    kept: list[Moment] = []
    # Of moments that are worth the same, the earlier one.
    for moment in sorted(moments, key=lambda each: (-each.worth, each.t_s)):
        near = any(abs(moment.t_s - other.t_s) < _APART_S for other in kept)
        again = moment.tube is not None and any(moment.tube == other.tube for other in kept)
        if not (near or again):
            kept.append(moment)
        if len(kept) == MOST_MOMENTS:
            break
    return tuple(kept)


# The page of a watch: timeline, highlights, and what is uncertain.


MOST_ROWS = 40
_ROW_IN = 0.16
_MARGIN_IN = 0.75


def plot_timeline(watched: Watched, end_s: float, agents: Sequence[str] = ()) -> Picture:
    """A row for each tube over time, where crossing was reported, and what the own vehicle did above them.

    Args:
        watched: what was reported.
        end_s: of the stream.
        agents: in the order of their colours.
    """
    shown = select_longest(watched.spans)
    names = list(dict.fromkeys([*agents, *sorted({span.agent for span in shown})]))
    used = [name for name in names if any(span.agent == name for span in shown)]
    colours = {name: "#{:02x}{:02x}{:02x}".format(*COLOURS[k % len(COLOURS)]) for k, name in enumerate(names)}
    # An axis needs a length, and an empty stream has none.
    end_s = max(end_s, 1e-3)
    colours[UNLABELLED] = GREY
    with set_style():
        figure, axes = create_canvas(FULL, _MARGIN_IN + _ROW_IN * (len(shown) + 1))
        for row, span in enumerate(shown):
            wide = max(span.end_s - span.begin_s, 0.004 * end_s)
            axes.broken_barh([(span.begin_s, wide)], (row - 0.4, 0.8), facecolors=colours[span.agent])
            for t_s, _ in span.probable:
                axes.plot(t_s, row, marker="v", color=VERMILLION, markeredgecolor=INK, markersize=6)
        for t_s, _ in watched.driving:
            axes.plot([t_s, t_s], [-1.5, -0.6], color=INK, linewidth=1.2)
        for t_s, _ in watched.source:
            axes.plot(t_s, -1.05, marker="x", color=VERMILLION)
        axes.set_yticks(
            [-1.05, *range(len(shown))],
            [
                "own vehicle" if watched.driving else "source" if watched.source else "",
                *(sanitize_text(f"#{span.tube} {span.agent}") for span in shown),
            ],
        )
        axes.tick_params(axis="y", labelsize=6.5, length=0)
        axes.set_ylim(len(shown) - 0.3, -1.7)
        axes.set_xlim(0.0, end_s)
        axes.set_xlabel("seconds of the stream")
        axes.grid(axis="x", color=PALE)
        for name in used:
            axes.plot(
                [],
                [],
                color=colours[name],
                linewidth=5,
                label="no label" if name == UNLABELLED else sanitize_text(name),
            )
        if used:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.4 / figure.get_figheight()), ncols=8)
    more = len(watched.spans) - len(shown)
    left = f" The {len(shown)} longest of {len(watched.spans):,} tubes are shown." if more else ""
    caption = (
        "A row is a tube, coloured by its likeliest agent. Triangles: a crossing was predicted. Strokes "
        f"above: what the own vehicle does changed; crosses: something happened to the source.{left}"
    )
    return Picture("What was there, and when", caption, figure)


def select_longest(spans: Sequence[Span], most: int = MOST_ROWS) -> list[Span]:
    """The longest spans, in the order in which they begin.

    Args:
        spans: of tubes.
        most: how many.
    """
    kept = sorted(spans, key=lambda span: (span.begin_s - span.end_s, span.tube))[:most]
    return sorted(kept, key=lambda span: (span.begin_s, span.tube))


def plot_thumbnail(moment: Moment, frame: npt.NDArray[np.uint8]) -> Picture:
    """A frame of the video, small.

    Args:
        moment: when it is, and why it is shown.
        frame: (H, W, 3) uint8.
    """
    height, width = frame.shape[:2]
    high = min(HALF * height / width, 1.4 * HALF)
    with set_style():
        figure, axes = create_canvas(HALF, high)
        axes.set_position((0, 0, 1, 1))
        axes.imshow(frame, interpolation="lanczos")
        axes.set_axis_off()
        figure.patch.set_facecolor(GREY if high * width < HALF * height else "white")
    return Picture(f"{format_clock(moment.t_s)}: {moment.why}", "", figure)


def format_clock(seconds: float) -> str:
    """Minutes and seconds of a stream.

    >>> format_clock(75.25)
    '1:15.2'
    """
    # Rounded first, so that 59.96 s is a minute, not 60.0 s
    minutes, rest = divmod(round(max(0.0, seconds), 1), 60)
    return f"{minutes:.0f}:{rest:04.1f}"


_MOST_BYTES = 6 << 20
"""A video up to this size is in the page, and can be played there."""
_THUMB_PX, _USUAL_FPS = 480, 25.0
# 64 MiB, before it is parsed.
_LIMIT = 1 << 26
_WEAK = 1.25
NOTHING = (
    "Nothing was found. Try --threshold 0.1 for weaker boxes, another --weights that was trained on such "
    "images, and look at the video: is it the right way up, sharp, and are road users larger than 20 pixels?"
)


def is_watch(folder: Path) -> bool:
    """Whether a folder holds a watch that ended."""
    return (folder / EVENTS).is_file() and (folder / SUMMARY).is_file()


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a watch.

    Raises:
        InputError: if there is none, or it is of something else.
        DamagedError: if it is no JSON.
    """
    path = folder / SUMMARY
    try:
        found = json.loads(read_regular(path, limit=_LIMIT))
    except OSError as error:
        raise InputError("expected the summary of a watch, found nothing", where=str(path)) from error
    except ValueError as error:
        raise DamagedError(f"expected JSON, found: {error}", where=str(path)) from error
    if not isinstance(found, dict) or found.get("format") != "roadaware-watch":
        raise InputError("expected the summary of a watch", where=str(path), hint="watch the video again")
    return found


def render_watch_page(
    folder: Path, found: Mapping[str, Any] | None = None, beside: Path | None = None
) -> str:
    """The page of a watch as HTML: equal folders give equal pages.

    Args:
        folder: of the watch.
        found: its summary, where it is at hand.
        beside: the folder of the page, where that is another: the video is linked from there.

    Raises:
        InputError: if it is none.
        DamagedError: if a file of it is damaged.
    """
    summary = read_summary(folder) if found is None else found
    try:
        sections = _sections(folder, summary, beside or folder)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedError(
            f"a field is missing or of a wrong kind: {error}", where=str(folder), hint="watch the video again"
        ) from error
    return report(
        sections,
        title=f"Watched: {summary['source']}",
        subtitle=f"{summary['frames']:,} frames, {summary['stream_s']:.1f} s, {summary['tubes']:,} tubes",
    )


def _sections(folder: Path, summary: Mapping[str, Any], beside: Path) -> list[Section]:
    watched = summarise_events(read_events(folder / EVENTS), summary.get("height_px"))
    stretches = collect_stretches(read_events(folder / EVENTS))
    blocks: list[Block] = []
    if summary.get("notice"):
        blocks.append(Note(f"{str(summary['notice']).capitalize()}.", "bad"))
    if not watched.spans:
        blocks.append(Note(NOTHING, "doubt"))
    shown = _find_shown(folder, watched.moments)
    blocks += _film(folder, beside, shown)
    if watched.spans or watched.driving:
        blocks.append(
            Pictures(
                (
                    plot_timeline(
                        watched, float(summary["stream_s"]), [str(name) for name in summary.get("agents", ())]
                    ),
                )
            )
        )
    if stretches:
        blocks.append(_build_sentences(stretches))
    looks: list[Block] = []
    clips = _clips(folder, watched.moments, shown)
    thumbs = _thumbnails(folder, watched.moments[len(clips) :], shown[len(clips) :])
    if watched.moments:
        rows = tuple((format_clock(each.t_s), each.why) for each in watched.moments)
        looks.append(Table(("time", "why"), rows, "ll", "In the order of how much they are worth"))
    looks += [Clips(clips, "The most urgent moments")] if clips else []
    looks += [Pictures(thumbs, "Other moments" if clips else "")] if thumbs else []
    looks = looks or [Note("No moment stands out.")]
    crowd = _crowd(summary)
    uncertainties = list_uncertainties(summary, watched)
    models: list[Block] = [_models(summary)] if summary.get("models") else []
    # What a reader needs to make the run again; nothing that a clock says, so that pages are equal.
    size = summary.get("width_px"), summary.get("height_px")
    models.append(
        Facts(
            (
                ("source", str(summary["source"])),
                ("size", f"{size[0]}x{size[1]}" if all(size) else "unknown"),
                ("frames per second", str(summary["source_fps"] or "unknown")),
                ("frames", f"{summary['frames']:,} of {summary['frames_of_source'] or '?'}"),
                ("events", f"{summary['events']:,}"),
                ("files", ", ".join(summary["files"])),
                ("settings", f"digest {summary['config_digest']}"),
                ("version", str(summary["version"])),
            ),
            "The watch",
        )
    )
    # What was found, in sentences.
    counts: dict[str, int] = {}
    for span in watched.spans:
        name = "without a label" if span.agent == UNLABELLED else span.agent
        counts[name] = counts.get(name, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    tubes = ", ".join(f"{count:,} {name}" for name, count in ranked)
    said = [f"{len(watched.spans):,} tubes: {tubes}." if watched.spans else NOTHING]
    if "crossing" in summary:
        asked, answered = summary["crossing"]["pedestrians"], summary["crossing"]["answered"]
        crossing = sum(bool(span.probable) for span in watched.spans)
        known = f"; {crossing:,} will probably cross, as far as the predictor knows" if answered else ""
        said.append(f"Crossing was asked of {asked:,} pedestrians and answered of {answered:,}{known}.")
    return [
        Section("What was seen", tuple(said), tuple(blocks)),
        *([Section("The crowd", (), crowd)] if crowd else []),
        Section("Worth a look", (), tuple(looks)),
        *_build_expected(summary),
        Section("What is uncertain", (), (Points(uncertainties or ("Nothing in particular.",)),)),
        Section("How it was made", (), tuple(models)),
    ]


def _build_sentences(stretches: Sequence[Stretch]) -> Table:
    """What happened in words: the longest stretches over which nothing changed, in their order."""
    longest = sorted(stretches, key=lambda each: each.begin_s - each.end_s)[:MOST_ROWS]
    shown = sorted(longest, key=lambda each: (each.begin_s, -1 if each.tube is None else each.tube))
    rows = tuple(
        (
            format_clock(each.begin_s),
            "own vehicle" if each.tube is None else f"#{each.tube}",
            sanitize_text(each.text),
        )
        for each in shown
    )
    left = f" The {len(shown)} longest of {len(stretches):,}." if len(shown) < len(stretches) else ""
    caption = f"A line for each stretch over which the labels that were reported stay the same.{left}"
    return Table(("from", "who", "what happened"), rows, "lll", "In words", caption)


def _build_expected(summary: Mapping[str, Any]) -> list[Section]:
    """What came of what was expected of tubes; nothing where nobody asked."""
    found = summary.get("expected")
    if not found:
        return []
    ahead = f"{float(found['ahead_s']):g} s"
    if not found["boxes"]:
        return [Section("What was expected", (), (Note(f"No tube was seen again after {ahead}."),))]
    rows = tuple(
        (words, f"{float(found[name]):.3f}")
        for words, name in (
            ("the anticipation head", "iou"),
            ("constant velocity", "iou_constant_velocity"),
            ("where it is", "iou_standing_still"),
        )
    )
    title = f"Overlap with the box that was found {ahead} later"
    caption = (
        f"Mean intersection over union of {int(found['boxes']):,} boxes of tubes that were found then: no ground truth, but "
        "what this watch saw."
    )
    return [
        Section(
            "What was expected", (EXPECTED_LABELS,), (Table(("from", "IoU"), rows, "lr", title, caption),)
        )
    ]


EXPECTED_LABELS = (
    "On the video dotted boxes show where tubes are expected in a second. Actions and locations expected so are no better "
    "than saying that those of now go on: on simulated streets average precision was 0.552 against 0.568 (actions) and 0.675 "
    "against 0.673 (locations), which cannot be told apart."
)


def _crowd(summary: Mapping[str, Any]) -> tuple[Block, ...]:
    """What a network of crowds found, and where it found nothing; empty where none was asked."""
    found = summary.get("crowd")
    if not found:
        return ()
    blocks: list[Block] = [Points(tuple(sanitize_text(str(says)) for says in found["says"]))]
    if found.get("relations"):
        rows = tuple(
            (
                f"#{row['subject']}",
                str(row["predicate"]),
                f"#{row['object']}",
                f"{format_clock(float(row['begin_s']))} to {format_clock(float(row['end_s']))}",
                f"{float(row['score']):.2f}",
            )
            for row in found["relations"][:MOST_ROWS]
        )
        blocks.append(Table(("who", "does what", "to whom", "time", "score"), rows, "llllr", "Relations"))
    if found.get("actions"):
        done = tuple(
            (str(row["action"]), f"{int(row['people']):,}", f"{float(row['best']):.2f}")
            for row in found["actions"][:MOST_ROWS]
        )
        blocks.append(Table(("action", "people", "best score"), done, "lrr", "Actions"))
    return tuple(blocks)


def list_uncertainties(summary: Mapping[str, Any], watched: Watched) -> tuple[str, ...]:
    """What to be careful with, in sentences.

    Args:
        summary: of the watch.
        watched: by it.
    """
    said = []
    if summary.get("notice"):
        said.append(f"{str(summary['notice']).capitalize()}: take labels and tubes for a demonstration.")
    least = float(summary.get("config", {}).get("begin_score") or 0.0)
    weak = sum(span.score < _WEAK * least for span in watched.spans)
    if weak:
        said.append(f"{weak:,} of {len(watched.spans):,} tubes have a mean score below {_WEAK * least:.2f}.")
    crossing = summary.get("crossing", {})
    for each in crossing.get("unknown", {}).values():
        if each["count"]:
            of = crossing["pedestrian_frames"]
            said.append(f"Crossing is unknown in {each['count']:,} of {of:,} boxes: {each['meaning']}.")
    if crossing.get("answers"):
        said.append(
            "Probabilities of crossing are those of roads such as the predictor learnt from; elsewhere they "
            "were measured to be off by 0.26 on average, and 0.13 at home."
        )
    said += [f"{each['count']:,} {each['meaning']}." for each in summary.get("outcomes", {}).values()]
    if summary["ended"]["reason"] not in ("end", "time"):
        said.append(f"The watch ended early: {summary['ended']['message'] or summary['ended']['reason']}.")
    return tuple(said)


def _find_shown(folder: Path, moments: Sequence[Moment]) -> list[int]:
    """The frame of the video that shows each moment; nothing where there is no video.

    Its pace is its own: that of a camera is learnt later, and fast films are thinned. Without tables that hold times it is
    taken to be constant.
    """
    path = folder / FILM
    if not moments or not path.is_file():
        return []
    try:
        with VideoReader(path) as film:
            fps, n_frames = film.fps or _USUAL_FPS, len(film)
    except InputError:
        return []
    try:
        frames = open_predictions(folder / TABLES).frames
    except InputError:
        frames = pl.DataFrame()
    shown = [round(each.t_s * fps) for each in moments]
    if len(frames) and "t_s" in frames.columns:
        t_s = frames.sort("frame")["t_s"].to_numpy().astype(np.float64)
        first = find_first_shown(t_s, fps)
        # Tables hold single precision.
        places = np.searchsorted(t_s, [each.t_s + _ROUNDED_S for each in moments], side="right") - 1
        shown = [int(first[max(place, 0)]) for place in places]
    return [min(each, n_frames - 1) for each in shown]


def _film(folder: Path, beside: Path, shown: Sequence[int]) -> list[Any]:
    """The video: in the page where it is small, and linked where it lies beside or below it."""
    path = folder / FILM
    if not path.is_file():
        return []
    content = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
    words = "The video with everything drawn on it, which browsers play."
    place = Path(os.path.relpath(path.resolve(), beside.resolve()))
    links = () if ".." in place.parts else (place.as_posix(),)
    poster = read_poster(path, shown[0] if shown else None) if content else b""
    return [Films(words if links else f"{words} It lies at {path}.", links, content, poster=poster)]


def _clips(folder: Path, moments: Sequence[Moment], shown: Sequence[int]) -> tuple[Clip, ...]:
    """The best moments as clips of the video, on which everything is drawn; none where there is no video."""
    path = folder / FILM
    if not shown:
        return ()
    try:
        with VideoReader(path) as reader:
            film = Film(path.stem, str(path), len(reader), reader.height_px, reader.width_px)
            fps = reader.fps or _USUAL_FPS
    except InputError:
        return ()
    excerpts = []
    for each, number in zip(moments[:MOST_CLIPS], shown, strict=False):
        first = max(0, number - round(fps))
        end = min(film.n_frames, first + round(LONGEST_S * fps))
        says = f"{format_clock(each.t_s)}: {each.why}."
        excerpts.append(Excerpt(says, film.video, film, "", first, end, number, fps))
    return draw_clips(excerpts)


def _thumbnails(folder: Path, moments: Sequence[Moment], shown: Sequence[int]) -> tuple[Any, ...]:
    """A frame of the video for each moment; none where there is no video."""
    if not shown:
        return ()
    try:
        with VideoReader(folder / FILM) as film:
            # Each once, and in the order of the video: going back would decode from a key frame again.
            frames = {number: _small(film.frame(number)) for number in sorted(set(shown))}
    except InputError:
        return ()
    return tuple(plot_thumbnail(each, frames[number]) for each, number in zip(moments, shown, strict=True))


def _small(frame: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    image = Image.fromarray(frame)
    image.thumbnail((_THUMB_PX, _THUMB_PX))
    return np.asarray(image)


def _models(summary: Mapping[str, Any]) -> Any:
    rows = tuple(
        (
            str(each["task"]),
            str(each["name"]),
            str(each["trained_on"]),
            str(each["licence"]),
            str(each["digest"]),
        )
        for each in summary["models"]
    )
    return Table(
        ("tells", "model", "what it is, or was trained on", "licence", "digest"), rows, "lllll", "Models"
    )


_CELLS = 16


def format_progress(
    progress: Progress, fps: float, dropped: int, n_frames: int | None, pace: float | None = None
) -> str:
    """How a watch goes, in a line: how much of it is done, and the tubes that its summary will count.

    Args:
        progress: of the watch.
        fps: frames per second lately.
        dropped: frames passed over.
        n_frames: to go through; None where nobody knows.
        pace: numbers of frames per second, counting those that are not looked at; as `fps` where None.
    """
    minutes, seconds = divmod(progress.t_s, 60)
    of, done = (f" of {n_frames:,}" if n_frames else ""), progress.last_number + 1
    pace = fps if pace is None else pace
    parts = [
        *([_bar(done / n_frames)] if n_frames else []),
        f"frame {progress.last_number + 1:,}{of}",
        f"{minutes:02.0f}:{seconds:04.1f}",
        f"{fps:.1f} fps",
        *([f"{_clock((n_frames - done) / pace)} left"] if n_frames and pace > 0 else []),
        f"latency {1e3 * (progress.latency.percentile_s(50) or 0):.0f} ms "
        f"(p99 {1e3 * (progress.latency.percentile_s(99) or 0):.0f})",
        f"{progress.begun:,} tubes ({progress.tubes} in the image)",
        *([f"{progress.probable} probably crossing"] if progress.probable else []),
    ]
    return "  ".join([*parts, *([f"{dropped:,} dropped"] if dropped else [])])


def _bar(share: float) -> str:
    """How much is done, as a bar and in per cent."""
    share = min(max(share, 0.0), 1.0)
    full = int(share * _CELLS)
    return f"[{'#' * full}{'.' * (_CELLS - full)}] {100 * share:3.0f} %"


def _clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(math.ceil(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_watch(found: dict[str, Any], folder: Path) -> str:
    """What came of a watch.

    Args:
        found: its summary.
        folder: where it lies.
    """
    latency = found["latency_ms"]
    rows = [
        ("frames", f"{found['frames']:,}"),
        ("seconds of the stream", f"{found['stream_s']:.1f}"),
        ("frames per second", "–" if found["fps"] is None else f"{found['fps']:.1f}"),
        ("latency p50 and p99, ms", f"{latency['p50'] or 0:.0f}, {latency['p99'] or 0:.0f}"),
        ("tubes", f"{found['tubes']:,}"),
        ("events", f"{found['events']:,}"),
    ]
    if "crossing" in found:
        each = found["crossing"]["ms_per_pedestrian_frame"]
        rows += [
            ("pedestrians", f"{found['crossing']['pedestrians']:,}"),
            ("of those, answered for", f"{found['crossing']['answered']:,}"),
            ("ms for each pedestrian in a frame", "–" if each is None else f"{each:.2f}"),
        ]
    rows += [(each["meaning"], f"{each['count']:,}") for each in found["outcomes"].values()]
    lines = [
        f"watched {terminal.format_cell(found['source'])}",
        "",
        terminal.format_table(["", "found"], rows),
        "",
    ]
    if not found["tubes"] and found["frames"]:
        lines += [NOTHING, ""]
    if "crowd" in found:
        lines += ["crowd", *(f"  {terminal.format_cell(says)}" for says in found["crowd"]["says"]), ""]
    return "\n".join([*lines, f"wrote {terminal.format_cell(str(folder))}: {', '.join(found['files'])}"])
