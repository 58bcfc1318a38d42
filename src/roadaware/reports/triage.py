"""The page and the files of a triage: the moments worth a look, as bars, clips, a timeline, and lists for other commands."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.analysis.drives import FILMS, Examined, list_outlines, open_videos
from roadaware.analysis.excerpts import Clip, Excerpt, find_film
from roadaware.analysis.triage import REASONS
from roadaware.errors import RoadawareError
from roadaware.io.csv import format_csv
from roadaware.io.folders import encode_json
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader
from roadaware.reports import terminal
from roadaware.reports.clips import draw_clips
from roadaware.reports.page import (
    DASHES,
    FULL,
    GREY,
    PALE,
    SERIES,
    Block,
    Clips,
    Facts,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    create_canvas,
    report,
    set_style,
)
from roadaware.reports.runs import encode_parquet
from roadaware.reports.text import sanitize_text
from roadaware.reports.watch_page import format_clock, is_watch, read_summary
from roadaware.tasks.videos import Film

MOST_BARS, MOST_VIDEOS, MOST_SHOWN = 25, 30, 2
_ROW_IN, _MARGIN_IN = 0.2, 0.8
_NO_MOMENT = "No moment stands out: no reason reached its least value in any video."


def build_triage_files(
    moments: pl.DataFrame, top: int, summary: Mapping[str, Any], clips: Sequence[Clip]
) -> dict[str, bytes]:
    """The files of a triage, by name: `moments.csv`, `.parquet`, `.json`, `list.csv`, `findings.json`, `report.html`.

    `moments.csv` has the first moments and a column `verdict` to fill in; `moments.parquet` has all. `list.csv` is what
    `label export --list` takes, `findings.json` what `view` takes.

    Args:
        moments: as of `analysis.triage.rank_moments`.
        top: how many are listed.
        summary: what else is known of the run, JSON-ready.
        clips: of the first moments, each with its sentence.
    """
    listed = moments.head(top)
    rounded = listed.with_columns(
        pl.col("t_s", "start_s", "end_s").round(3), pl.col("worth", *REASONS).round(4)
    )
    images = listed.select("video", "frame", "rank", "worth", reason="sentence").unique(
        ["video", "frame"], keep="first", maintain_order=True
    )
    return {
        "moments.csv": format_csv(rounded.with_columns(verdict=pl.lit(""))).encode(),
        "moments.parquet": encode_parquet(moments),
        "moments.json": encode_json({**summary, "moments": rounded.to_dicts()}).encode(),
        "list.csv": format_csv(images).encode(),
        "findings.json": encode_json(build_findings(listed)).encode(),
        "report.html": render_triage_page(listed, summary, clips).encode("utf-8", errors="backslashreplace"),
    }


def build_findings(listed: pl.DataFrame) -> dict[str, Any]:
    """The moments as findings that `view` lists and leads to, in the form of `audit --json`.

    Args:
        listed: the moments, the first one first.
    """
    findings = []
    for row in listed.iter_rows(named=True):
        where = f"{row['video']} at {format_clock(row['t_s'])}"
        findings.append(
            {
                "name": f"{row['rank']}. {row['reason']}",
                "severity": f"worth {row['worth']:.2f}",
                "sentence": f"{row['sentence']}: {where}",
                "advice": "",
                "examples": [
                    {
                        "video": row["video"],
                        "pedestrian": None,
                        "frame": row["frame"],
                        "note": row["sentence"],
                    }
                ],
            }
        )
    return {"protocol": "triage", "findings": findings}


def render_triage_page(listed: pl.DataFrame, summary: Mapping[str, Any], clips: Sequence[Clip]) -> str:
    """The page as HTML, in one file without network: equal moments give an equal page.

    Args:
        listed: the moments that are shown, the first one first.
        summary: as of `build_triage_files`: `videos`, `hours`, `moments_found`, `weights`, `learnt`, `failed`, `notices`.
        clips: of the first moments.
    """
    blocks: list[Block] = []
    if len(listed):
        blocks.append(Pictures((plot_reasons(listed.head(MOST_BARS), summary["weights"]),)))
        blocks.append(Pictures((plot_moments(listed),)))
    else:
        blocks.append(Note(_NO_MOMENT, "doubt"))
    for notice in summary["notices"]:
        blocks.insert(0, Note(f"{sanitize_text(notice).capitalize()}.", "bad"))
    for where, why in list(summary["failed"].items())[:20]:
        blocks.insert(0, Note(f"{sanitize_text(where)} could not be taken: {sanitize_text(why)}", "bad"))
    # As many as a screen shows are not folded.
    parts = ((clips[:MOST_SHOWN], "The first moments"), (clips[MOST_SHOWN:], "Those that follow"))
    looks: list[Block] = [Clips(tuple(items), title) for items, title in parts if items]
    if len(listed):
        rows = tuple(
            (
                f"{row['rank']}",
                sanitize_text(row["video"]),
                format_clock(row["t_s"]),
                f"{row['worth']:.2f}",
                sanitize_text(row["sentence"]),
            )
            for row in listed.iter_rows(named=True)
        )
        looks.append(Table(("rank", "video", "time", "worth", "why"), rows, "rlrrl", "All that are listed"))
    sections = [Section("Worth a look", tuple(_say(listed, summary)), tuple(blocks))]
    if looks:
        sections.append(Section("The moments", (), tuple(looks)))
    sections.append(Section("How they were ranked", (), tuple(_explain(summary))))
    subtitle = f"{summary['videos']:,} videos, {format_hours(summary['hours'])}"
    return report(sections, title="Moments worth a look", subtitle=subtitle)


def format_hours(hours: float) -> str:
    """A length of time in the unit that suits it.

    >>> format_hours(0.0035), format_hours(0.5), format_hours(9.25)
    ('13 s', '30 min', '9.2 h')
    """
    if hours < 1 / 30:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 1 else f"{hours:.1f} h"


def _say(listed: pl.DataFrame, summary: Mapping[str, Any]) -> list[str]:
    said = [
        f"{len(listed):,} of {summary['moments_found']:,} moments are listed, from {format_hours(summary['hours'])} of "
        f"{summary['videos']:,} videos."
    ]
    if len(listed):
        first = listed.row(0, named=True)
        said.append(
            sanitize_text(f"First: {first['sentence']} ({first['video']}, {format_clock(first['t_s'])}).")
        )
    learnt = summary.get("learnt")
    if learnt:
        said.append(f"The order is learnt from {learnt['yes']} verdicts of yes and {learnt['no']} of no.")
    if summary["failed"]:
        said.append(f"{len(summary['failed']):,} inputs could not be taken, and are named below.")
    return said


def plot_reasons(listed: pl.DataFrame, weights: Mapping[str, float]) -> Picture:
    """A bar for each moment, of its reasons by what each adds: its value times its weight.

    Args:
        listed: the moments, the first one on top.
        weights: of each reason.
    """
    rows = listed.to_dicts()
    order = list(REASONS)  # a reason has the same colour in every picture
    used = [name for name in order if any(row[name] > 0 for row in rows) and weights[name] > 0]
    with set_style():
        figure, axes = create_canvas(FULL, _MARGIN_IN + _ROW_IN * len(rows))
        for place, row in enumerate(rows):
            left = 0.0
            for name in used:
                k, wide = order.index(name), weights[name] * row[name]
                # More reasons than colours: the second round is hatched.
                hatch = "////" if k >= len(SERIES) else None
                axes.barh(
                    place,
                    wide,
                    left=left,
                    color=SERIES[k % len(SERIES)],
                    height=0.75,
                    hatch=hatch,
                    edgecolor="white",
                )
                left += wide
        labels = [
            f"{row['rank']}  {sanitize_text(row['video'])[:28]} {format_clock(row['t_s'])}" for row in rows
        ]
        axes.set_yticks(range(len(rows)), labels)
        axes.tick_params(axis="y", labelsize=6.5, length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("value of each reason times its weight")
        axes.grid(axis="x", color=PALE)
        for name in used:
            k = order.index(name)
            hatch = "////" if k >= len(SERIES) else None
            axes.barh(
                [-9],
                [0.0],
                color=SERIES[k % len(SERIES)],
                hatch=hatch,
                edgecolor="white",
                label=name.replace("_", " "),
            )
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, 1.0 + 0.55 / figure.get_figheight()),
            ncols=min(6, len(used) or 1),
        )
    caption = (
        "A row is a moment, by rank; its bar is made of its reasons, of which frequent ones count for less. "
        + "; ".join(f"{name.replace('_', ' ')}: {REASONS[name]}" for name in used)
    )
    return Picture("Why each moment is worth a look", f"{caption}.", figure)


def plot_moments(listed: pl.DataFrame) -> Picture:
    """When the moments are: a row for each video, a stroke for each moment, the higher the more it is worth.

    Args:
        listed: the moments.
    """
    videos = list(dict.fromkeys(listed["video"].to_list()))
    shown = videos[:MOST_VIDEOS]
    rows = listed.filter(pl.col("video").is_in(shown)).to_dicts()
    most = max(row["worth"] for row in rows) or 1.0
    with set_style():
        figure, axes = create_canvas(FULL, _MARGIN_IN + 0.24 * len(shown))
        for place in range(len(shown)):
            axes.plot([0, max(row["end_s"] for row in rows)], [place + 0.4] * 2, color=PALE, linewidth=0.8)
        for row in rows:
            place = shown.index(row["video"])
            k = list(REASONS).index(row["reason"])
            axes.plot(
                [row["t_s"]] * 2,
                [place + 0.4, place + 0.4 - 0.8 * max(0.15, row["worth"] / most)],
                color=SERIES[k % len(SERIES)],
                linestyle=DASHES[k // len(SERIES)],
                linewidth=1.6,
            )
        axes.set_yticks(range(len(shown)), [sanitize_text(video)[:32] for video in shown])
        axes.tick_params(axis="y", labelsize=6.5, length=0)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("seconds of the video")
        axes.spines["left"].set_color(GREY)
    more = len(videos) - len(shown)
    left = f" {more:,} more videos are not shown." if more else ""
    caption = f"A row is a video, a stroke a moment, the longer the more it is worth; colours are first reasons.{left}"
    return Picture("When", caption, figure)


def _explain(summary: Mapping[str, Any]) -> list[Block]:
    weights, learnt = summary["weights"], summary.get("learnt")
    columns = ("reason", "weight", *(("learnt",) if learnt else ()), "what it is")
    rows = tuple(
        (
            name.replace("_", " "),
            f"{weights[name]:.2f}",
            *((f"{learnt['weights'][name]:+.2f}",) if learnt else ()),
            meaning,
        )
        for name, meaning in REASONS.items()
    )
    align = "lrrl" if learnt else "lrl"
    blocks: list[Block] = [Table(columns, rows, align, "Reasons", _CAPTION)]
    if learnt:
        blocks.append(
            Note(
                f"Verdicts of people: {learnt['yes']} yes, {learnt['no']} no. The log odds that one is worth a look are "
                f"{learnt['offset']:+.2f} plus each value times what was learnt for it; weights alone join peaks to moments."
            )
        )
    facts = tuple((str(name), str(value)) for name, value in summary["facts"].items())
    blocks.append(Facts(facts, "The run"))
    return blocks


_CAPTION = (
    "Every value lies in 0 to 1 and rests on frames until then. A moment is worth "
    "1 - prod(1 - weight * sqrt(value * rarity)), where values that many moments of these drives reach are not rare, and "
    "less for each higher one that is like it."
)


def list_notices(sources: Sequence[Path]) -> list[str]:
    """What the summaries of watches say that their readers should know, each once.

    Args:
        sources: runs and tables.
    """
    found = [str(read_summary(path).get("notice") or "") for path in sources if is_watch(path)]
    return [notice for notice in dict.fromkeys(found) if notice]


def draw_moments(
    moments: pl.DataFrame, examined: Examined, films: Mapping[str, Path], media: Sequence[Path]
) -> tuple[Clip, ...]:
    """Clips of moments, each with its sentence; of those whose film is not found the reason.

    Args:
        moments: those that are shown, the first one first.
        examined: the drives that they are of.
        films: those that were watched, by the name of their video.
        media: films, or folders of films, of the others.
    """
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
    if film.is_pictures:
        return None
    with contextlib.suppress(RoadawareError), VideoReader(Path(film.path)) as reader:
        return float(reader.fps) if reader.fps else None
    return None


def _find_film(video: str, source: Path, films: Mapping[str, Path], media: Sequence[Path]) -> Film | str:
    """The film of a video, or why there is none."""
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


def format_triage(listed: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> str:
    """The first moments as text, and what could not be taken.

    Args:
        listed: rank, moment, t_s, worth and sentence of each.
        data: as `summary` of `build_triage_files`, with `top`.
    """
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
