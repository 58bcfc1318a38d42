"""Pages on when pedestrians begin to cross: of a study, and of `roadaware crossing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.drives import FILMS
from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.io.csv import format_csv
from roadaware.io.sources import to_printable
from roadaware.io.video import VideoReader
from roadaware.metrics.time_to_event import calibration_error, read_warning_time
from roadaware.protocols.crossing_time import (
    CLASSIFIER,
    FAR_S,
    METRICS,
    NEAR_S,
    PRIOR,
    RATES,
    TREES,
    Number,
    TimeStudy,
)
from roadaware.reports import terminal
from roadaware.reports.page import (
    BLUE,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    VERMILLION,
    Facts,
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
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_table
from roadaware.reports.text import clip_label
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.crossing_time import EDGES_S
from roadaware.tasks.videos import Film, find_videos, iterate_shots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TONES = (BLUE, PALE, ORANGE, VERMILLION, GREEN, GREY)
"""Of the ways, in their order."""
_STRIPS = 5
_NAMES = {
    "concordance": "concordance",
    "integrated_brier": "integrated Brier score",
    "near_far_auc": "near from far crossers, AUC",
    "calibration_error": "calibration error in time",
}


def _format(number: Number, unit: str = "video") -> str:
    if number.value is None:
        return "-"
    ends = number.video if unit == "video" else number.pedestrian
    return f"{number.value:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")


def list_rows(study: TimeStudy) -> list[list[str]]:
    """A row of cells for each way of predicting, under `list_columns`."""
    rows = []
    for name, each in study.judged.items():
        cells = [_format(each.numbers[metric]) for metric in METRICS]
        for rate in RATES[:3]:
            _, _, warned, mean = read_warning_time(each.warnings, rate)
            cells.append(f"{mean:.2f} s, {100 * warned:.0f} %")
        rows.append([name, *cells])
    return rows


def list_columns() -> list[str]:
    """The heads of `list_rows`."""
    warned = [f"warning at {rate:g} false alarms/h" for rate in RATES[:3]]
    return ["", *(_NAMES[metric] for metric in METRICS), *warned]


def list_differences(study: TimeStudy) -> list[list[str]]:
    """Rows of a table, its head first: what, metric, and the paired difference by pedestrian and by video."""
    rows = [["paired difference", "metric", "over pedestrians", "over videos"]]
    for (pair, metric), number in study.differences.items():
        rows.append([pair, _NAMES[metric], _format(number, "pedestrian"), _format(number)])
    return rows


def format_time_study(study: TimeStudy) -> str:
    """The study as tables of text, for a terminal."""
    test = study.counts["test"]
    lines = [
        f"when pedestrians begin to cross: {test['people']:,} people, {test['crossers']:,} of whom cross, at "
        f"{test['moments']:,} moments",
        "",
        format_table(list_columns(), list_rows(study)),
        "",
        format_table(list_differences(study)[0], list_differences(study)[1:]),
        "",
        "95 % intervals over videos. Warning: the mean over all who cross of the seconds between the alarm and the event (0 "
        "without one), and how many are warned of.",
    ]
    return "\n".join(lines)


def plot_warnings(study: TimeStudy) -> Picture:
    """Mean warning time, and the share of crossers who are warned of, against false alarms an hour."""
    with set_style():
        figure, axes = create_canvas(FULL, 3.4)
        figure.delaxes(axes)
        left, right = figure.subplots(1, 2)
        for (name, each), tone in zip(study.judged.items(), _TONES, strict=False):
            curve = each.warnings
            if name == PRIOR or not len(curve.threshold):
                continue
            order = np.argsort(curve.false_per_hour, kind="stable")
            rate = np.maximum(curve.false_per_hour[order], 1.0)
            left.plot(rate, np.maximum.accumulate(curve.mean_s[order]), color=tone, label=name)
            right.plot(rate, 100 * np.maximum.accumulate(curve.warned[order]), color=tone, label=name)
        for panel, label in ((left, "mean warning, s"), (right, "crossers warned of, %")):
            panel.set(xscale="log", xlabel="false alarms an hour", ylabel=label)
            # Powers of ten would be drawn as formulas, which an SVG without fonts spells out.
            panel.set_xticks([1, 10, 100, 1000], labels=["1", "10", "100", "1,000"])
            panel.grid(visible=True)
        left.legend(loc="upper left", fontsize=8)
    hours = study.counts["test"]["hours"]
    caption = (
        "An alarm that lasts until the event warns from its beginning; one without an event in 6 s is false. Test has "
        f"{hours:.2f} hours of video, so that one false alarm in it is {1 / max(hours, 1e-9):.1f} an hour: less cannot be "
        "told."
    )
    return Picture("Warning time against false alarms", caption, figure)


def plot_calibration(study: TimeStudy) -> Picture:
    """Predicted against found probability at four horizons, of the trees and the classifier."""
    horizons = [EDGES_S.index(horizon) for horizon in (1.0, 2.0, 3.0, 5.0)]
    with set_style():
        figure, axes = create_canvas(FULL, 2.6)
        figure.delaxes(axes)
        panels: Sequence[Axes] = figure.subplots(1, len(horizons), sharey=False)
        for panel, place in zip(panels, horizons, strict=True):
            top = 0.02
            for name, tone in ((TREES, BLUE), (CLASSIFIER, ORANGE)):
                curve = study.judged[name].calibration[place]
                panel.plot(
                    curve[:, 0], curve[:, 1], color=tone, marker="o", markersize=3, linewidth=1, label=name
                )
                top = max(top, float(np.nanmax(curve[:, :2])))
            panel.plot([0, top], [0, top], color=GREY, linestyle=DOTTED, linewidth=0.8)
            panel.set_title(f"within {EDGES_S[place]:g} s", fontsize=9)
            panel.set_xlabel("predicted", fontsize=8)
        panels[0].set_ylabel("found")
        panels[0].legend(fontsize=7)
    gaps = ", ".join(
        f"{name} {calibration_error(study.judged[name].calibration).mean():.3f}"
        for name in (TREES, CLASSIFIER)
    )
    caption = (
        f"Tenths of the moments by prediction; found by Kaplan and Meier. Mean gap over horizons: {gaps}."
    )
    return Picture("Calibration in time", caption, figure)


def plot_strips(study: TimeStudy, count: int = _STRIPS) -> Picture:
    """The probability over time of some who cross, those with the longest tracks, up to the event."""
    test = study.test
    crossers = np.flatnonzero(np.isfinite(test.event_s))
    lengths = np.bincount(test.person, minlength=len(test.people))[crossers]
    chosen = crossers[np.argsort(-lengths, kind="stable")[:count]]
    survival = study.judged[TREES].survival
    t_s = test.table["t_s"].to_numpy()
    with set_style():
        figure, axes = create_canvas(FULL, 1.15 * len(chosen) + 0.4)
        figure.delaxes(axes)
        panels = np.atleast_1d(figure.subplots(len(chosen), 1))
        for panel, person in zip(panels, chosen.tolist(), strict=True):
            rows = np.flatnonzero(test.person == person)
            left = t_s[rows] - test.event_s[person]
            for horizon, tone in ((1.0, VERMILLION), (2.0, BLUE), (4.0, PALE)):
                place = EDGES_S.index(horizon)
                panel.plot(
                    left, 1 - survival[rows, place], color=tone, linewidth=1.4, label=f"within {horizon:g} s"
                )
            panel.set(xlim=(-8, 0.2), ylim=(-0.03, 1.03))
            panel.axvline(0, color=VERMILLION, linewidth=1.2)
            panel.set_ylabel(test.people[person][1][:14], fontsize=7)
            panel.grid(visible=True)
        panels[0].legend(loc="upper left", fontsize=7, ncols=3)
        panels[-1].set_xlabel("seconds to the event")
    caption = (
        "The probability that somebody begins to cross within one, two and four seconds, at each moment up to the "
        "event."
    )
    return Picture("People who cross, up to the event", caption, figure)


def build_time_section(study: TimeStudy) -> Section:
    """The section of the page."""
    says = []
    for metric, better in (("concordance", "higher"), ("integrated_brier", "lower")):
        number = study.differences.get((f"{TREES} - {CLASSIFIER}", metric))
        if number is None or number.value is None:
            continue
        ends = number.video
        clear = ends is not None and (ends[0] > 0 or ends[1] < 0)
        good = (number.value > 0) == (better == "higher")
        verdict = ("better" if good else "worse") if clear else "not different"
        says.append(
            f"In {_NAMES[metric]} the hazard trees are {verdict} than today's classifier: {_format(number)} "
            f"({better} is better)."
        )
    near = study.judged[TREES].numbers["near_far_auc"]
    says.append(
        f"They tell crossers {NEAR_S[0]:g} to {NEAR_S[1]:g} s before the event from those more than {FAR_S:g} s before with "
        f"an AUC of {_format(near)}."
    )
    facts = tuple(
        (
            split,
            f"{held['people']:,} people, {held['crossers']:,} cross, {held['moments']:,} moments, {held['hours']:.2f} hours",
        )
        for split, held in study.counts.items()
    )
    columns = tuple(list_columns())
    table = Table(
        columns,
        tuple(map(tuple, list_rows(study))),
        "l" + "r" * (len(columns) - 1),
        title="Every moment of every track",
        caption="In brackets 95 % intervals over videos. Lower is better for Brier score and calibration error.",
    )
    pairs = list_differences(study)
    left = tuple(f"{count:,} {why}" for why, count in study.counts["test"]["left_out"].items())
    return Section(
        "When they begin to cross",
        tuple(says),
        (
            Facts(facts),
            table,
            Pictures((plot_warnings(study), plot_calibration(study), plot_strips(study))),
            Table(
                tuple(pairs[0]),
                tuple(map(tuple, pairs[1:])),
                "llrr",
                title="Paired differences",
                caption="95 % intervals.",
            ),
            Points(left, title="Left out of test"),
            Note(
                "Constant velocity asks when a box enters the middle third of the image, since no kerb is annotated. A score "
                "that is no time (of the classifier, of constant velocity) is read as the Kaplan-Meier curve of "
                "validation's moments with such scores."
            ),
        ),
    )


CROPS = 8
"""Images of a strip."""
_ASPECT = 0.6
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class Person:
    """What is drawn of somebody.

    Args:
        video, name: who.
        t_s: (n,) moments.
        probability: (n,) of each.
        low, high: (n,) the middle of passes; NaN where all are equal.
        height_px: (n,) of the box.
        event_s: when the person begins to cross, where it is known.
        truth: what the person really does, where it is known.
        crops: images with their moments.
    """

    video: str
    name: str
    t_s: Floats
    probability: Floats
    low: Floats
    high: Floats
    height_px: Floats
    event_s: float | None = None
    truth: str = ""
    crops: Sequence[tuple[float, npt.NDArray[np.uint8]]] = ()


def collect_person(table: pl.DataFrame, video: str, name: str) -> Person:
    """The moments of somebody as arrays.

    Args:
        table: of `tasks.crossing_tracks.predict_tracks`, with the truth where there is one.
        video, name: who.
    """
    rows = table.filter((pl.col("video") == video) & (pl.col("name") == name)).sort("t_s")

    def column(which: str) -> Floats:
        if which not in rows.columns:
            return np.full(len(rows), np.nan)
        return rows[which].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    event_s, truth = None, ""
    if "crossing" in rows.columns and len(rows):
        truth = str(rows["crossing"][0] or "")
        away = column("seconds_to_event")
        if np.isfinite(away).any():
            event_s = float(np.nanmedian(column("t_s") + away))
    return Person(
        video, name, column("t_s"), column("probability"), column("low"), column("high"),
        column("y2_px") - column("y1_px"), event_s, truth,
    )  # fmt: skip


def choose_crops(table: pl.DataFrame, video: str, name: str, count: int = CROPS) -> pl.DataFrame:
    """The moments of somebody whose images are shown, evenly spread from the first to the last one."""
    rows = table.filter((pl.col("video") == video) & (pl.col("name") == name)).sort("t_s")
    places = np.unique(np.linspace(0, max(0, len(rows) - 1), min(count, len(rows))).round().astype(int))
    chosen: pl.DataFrame = rows[places.tolist()]
    return chosen


def cut_crop(image: npt.NDArray[np.uint8], box: Sequence[float]) -> npt.NDArray[np.uint8]:
    """The image around a box, as high as 1.4 of its heights, in the shape of all crops of a strip."""
    x1, y1, x2, y2 = box
    high = max(1.4 * (y2 - y1), 16.0)
    wide = max(_ASPECT * high, 1.2 * (x2 - x1))
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    left, right = (round(middle_x + sign * wide / 2) for sign in (-1, 1))
    top, low = (round(middle_y + sign * high / 2) for sign in (-1, 1))
    height, width = image.shape[:2]
    inside = image[max(0, top) : max(0, min(height, low)), max(0, left) : max(0, min(width, right))]
    before = (max(0, -top), max(0, -left))
    canvas = np.full((max(1, low - top), max(1, right - left), 3), 235, dtype=np.uint8)
    canvas[before[0] : before[0] + inside.shape[0], before[1] : before[1] + inside.shape[1]] = inside
    return canvas


def plot_person(person: Person, positive: str) -> Picture:
    """Images of somebody over time, and below them the probability at each moment.

    Args:
        person: who.
        positive: what the probability is of.
    """
    with set_style():
        figure, axes = create_canvas(FULL, 3.4 if person.crops else 2.2)
        figure.delaxes(axes)
        if person.crops:
            grid = figure.add_gridspec(2, len(person.crops), height_ratios=[1.35, 1])
            for place, (t_s, crop) in enumerate(person.crops):
                panel = figure.add_subplot(grid[0, place])
                panel.imshow(crop, aspect="equal", interpolation="bilinear")
                panel.set(xticks=[], yticks=[])
                panel.set_xlabel(f"{t_s:.1f} s", fontsize=7.5, color=GREY)
            line = figure.add_subplot(grid[1, :])
        else:
            line = figure.add_subplot()
        if np.isfinite(person.low).any():
            line.fill_between(person.t_s, person.low, person.high, color=BLUE, alpha=0.2, linewidth=0)
        line.plot(person.t_s, person.probability, color=BLUE, linewidth=1.6)
        line.axhline(_HALF, color=GREY, linewidth=0.8, linestyle=DOTTED)
        for t_s, _ in person.crops:
            line.axvline(t_s, color=PALE, linewidth=0.8)
        if person.event_s is not None:
            line.axvline(person.event_s, color=VERMILLION, linewidth=1.4)
            line.annotate(
                "event",
                (person.event_s, 1.0),
                (2, -8),
                textcoords="offset points",
                color=VERMILLION,
                fontsize=8,
            )
        line.set(ylim=(-0.04, 1.04), ylabel=clip_label(positive, 16), xlabel="seconds of the video")
        line.grid(visible=True)
        if person.truth:
            line.annotate(
                f"truth: {person.truth}", (0.005, 0.9), xycoords="axes fraction", color=INK, fontsize=8
            )
    peak = int(np.nanargmax(person.probability))
    caption = (
        f"The probability of {positive} at each moment, from the boxes up to it. It is largest at "
        f"{person.t_s[peak]:.1f} s: {person.probability[peak]:.2f}, where the box is {person.height_px[peak]:.0f} pixels "
        "high." + (" The band is the middle 90 % of passes." if np.isfinite(person.low).any() else "")
    )
    return Picture(f"{person.video}, {person.name}", caption, figure)


def build_section(
    people: pl.DataFrame,
    drawn: Sequence[Person],
    facts: Mapping[str, Any],
    *,
    positive: str,
    worst: Sequence[Person] = (),
    notes: Sequence[str] = (),
) -> Section:
    """The section of the page.

    Args:
        people: of `rank_people`.
        drawn: the most urgent ones.
        facts: name to value, of the predictor and the tracks.
        positive: what the probability is of.
        worst: those about whom it is most wrong, where that is known.
        notes: what is to be kept in mind.
    """
    rows = tuple(
        (
            row["video"], row["name"], f"{row['peak']:.2f}", f"{row['t_s']:.1f}", f"{row['height_px']:.0f}",
            f"{row['last']:.2f}", f"{row['moments']:,}",
        )
        for row in people.head(50).iter_rows(named=True)
    )  # fmt: skip
    table = Table(
        ("video", "person", f"highest probability of {positive}", "at, s", "box there, px", "at the last moment", "moments"),
        rows, "llrrrrr", title="People by their most urgent moment",
        caption=f"The first {len(rows)} of {len(people):,} people; scores.csv and scores.parquet hold every moment.",
    )  # fmt: skip
    reach = int((people["peak"] >= _HALF).sum())
    says = (f"{len(people):,} people were asked about; {reach:,} of them reach a probability of .5.",)
    blocks: list[Any] = [Facts(tuple((name, str(value)) for name, value in facts.items()))]
    blocks += [Note(note) for note in notes]
    if drawn:
        blocks.append(
            Pictures(tuple(plot_person(person, positive) for person in drawn), title="The most urgent")
        )
    if worst:
        blocks.append(
            Pictures(tuple(plot_person(person, positive) for person in worst), title="Where it is most wrong")
        )
    blocks.append(table)
    return Section("Who will cross", says, tuple(blocks))


def render_tracks_page(
    table: pl.DataFrame,
    people: pl.DataFrame,
    data: dict[str, Any],
    predictor: Any,
    media: Path | None,
    tables: Scenes | Predictions,
    top: int,
) -> str:
    """The page of a crossing: the most urgent people, and where it is known those about whom it is most wrong.

    Args:
        table: a row for each moment, as of `tasks.crossing_tracks.predict_tracks`.
        people: as of `tasks.crossing_tracks.rank_people`.
        data: what is known of the run: `predictor`, `tracks`, `people`, `videos`, `moments` and others.
        predictor: that was asked.
        media: the video, or the folder of the videos; None for no images.
        tables: with the tracks.
        top: people that are drawn.
    """
    from roadaware.tasks.crossing_tracks import TIME  # with SciPy, which a help need not wait for

    facts = {
        "predictor": data["predictor"],
        "tracks": f"{data['people']:,} people in {data['videos']:,} videos",
        "moments": f"{data['moments']:,}, each from {data['frames']} boxes at {data['rate_fps']:g} a second",
        "too short to ask": f"{data['too_short']:,} people",
        "boxes smaller than learnt": f"{data['too_small_moments']:,} moments, which count for no one's highest",
    }
    notes = [_LIMITS]
    if predictor.task == "risk":
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
    return report([section], title="Who will cross", subtitle=to_printable(str(data["tracks"]), 200))


_LIMITS = (
    "A probability from boxes alone: it says who will cross one to three seconds ahead, hardly when, and decides nothing "
    "in a vehicle. Detected boxes tremble, annotated ones, which it learnt from, do not."
)


def _find_worst(table: pl.DataFrame, count: int) -> list[tuple[str, str]]:
    """People about whom the predictor is most wrong one to three seconds before the event, where it is known."""
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
        places = [media / f"{video}{kind}" for kind in FILMS] if media.is_dir() else [media]
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


def build_tracks_files(table: pl.DataFrame, people: pl.DataFrame, page: str) -> dict[str, bytes]:
    """The files of a crossing, by name: `scores.csv`, `scores.parquet`, `people.parquet`, `report.html`.

    Args:
        table, people: as of `render_tracks_page`.
        page: what that gave.
    """
    return {
        "scores.csv": format_csv(table).encode(),
        "scores.parquet": encode_parquet(table),
        "people.parquet": encode_parquet(people),
        "report.html": page.encode("utf-8", errors="backslashreplace"),
    }


def format_tracks(data: Mapping[str, Any]) -> str:
    """What was asked, what was left out and who is most urgent, as text.

    Args:
        data: as of `render_tracks_page`.
    """
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
