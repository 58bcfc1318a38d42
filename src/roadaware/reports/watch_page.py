"""The page of a watch, made of what stands in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from roadaware.analysis.excerpts import LONGEST_S, MOST_CLIPS, Clip, Excerpt
from roadaware.analysis.watched import UNLABELLED, Moment, Span, Watched, summarise_events
from roadaware.errors import DamagedError, InputError
from roadaware.io.files import read_regular
from roadaware.io.video import VideoReader
from roadaware.online.events import read_events
from roadaware.online.run_folder import EVENTS, FILM, SUMMARY
from roadaware.reports.clips import draw_clips, read_poster
from roadaware.reports.drawing import COLOURS
from roadaware.reports.page import Block, Clips, Facts, Films, Note, Pictures, Points, Section, Table, report
from roadaware.reports.picture import (
    FULL,
    GREY,
    HALF,
    INK,
    PALE,
    VERMILLION,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import sanitize_text
from roadaware.tasks.event_sentences import Stretch, collect_stretches
from roadaware.tasks.videos import Film

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
    minutes, rest = divmod(max(0.0, seconds), 60)
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
    blocks += _film(folder, beside, watched.moments)
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
    clips = _clips(folder, watched.moments, summary)
    thumbs = _thumbnails(folder, watched.moments[len(clips) :], summary)
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


def _film(folder: Path, beside: Path, moments: Sequence[Moment]) -> list[Any]:
    """The video: in the page where it is small, and linked where it lies beside or below it."""
    path = folder / FILM
    if not path.is_file():
        return []
    content = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
    words = "The video with everything drawn on it, which browsers play."
    place = Path(os.path.relpath(path.resolve(), beside.resolve()))
    links = () if ".." in place.parts else (place.as_posix(),)
    poster = read_poster(path, moments[0].t_s if moments else None) if content else b""
    return [Films(words if links else f"{words} It lies at {path}.", links, content, poster=poster)]


def _clips(folder: Path, moments: Sequence[Moment], summary: Mapping[str, Any]) -> tuple[Clip, ...]:
    """The best moments as clips of the video, on which everything is drawn; none where there is no video."""
    path = folder / FILM
    if not moments or not path.is_file():
        return ()
    try:
        with VideoReader(path) as reader:
            film = Film(path.stem, str(path), len(reader), reader.height_px, reader.width_px)
    except InputError:
        return ()
    fps = float(summary["source_fps"] or _USUAL_FPS)
    excerpts = []
    for each in moments[:MOST_CLIPS]:
        shown = min(film.n_frames - 1, round(each.t_s * fps))
        first = max(0, shown - round(fps))
        end = min(film.n_frames, first + round(LONGEST_S * fps))
        says = f"{format_clock(each.t_s)}: {each.why}."
        excerpts.append(Excerpt(says, film.video, film, "", first, end, shown, fps))
    return draw_clips(excerpts)


def _thumbnails(folder: Path, moments: Sequence[Moment], summary: Mapping[str, Any]) -> tuple[Any, ...]:
    """A frame of the video for each moment; none where there is no video."""
    path = folder / FILM
    if not moments or not path.is_file():
        return ()
    try:
        with VideoReader(path) as film:
            fps = float(summary["source_fps"] or _USUAL_FPS)
            at = [min(len(film) - 1, round(each.t_s * fps)) for each in moments]
            # Each once, and in the order of the video: going back would decode from a key frame again.
            frames = {number: _small(film.frame(number)) for number in sorted(set(at))}
    except InputError:
        return ()
    return tuple(plot_thumbnail(each, frames[number]) for each, number in zip(moments, at, strict=True))


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
