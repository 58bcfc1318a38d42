"""The page of `roadaware crossing`: the most urgent people as strips of images with their probability over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.reports.page import Facts, Note, Pictures, Section, Table
from roadaware.reports.picture import (
    BLUE,
    DOTTED,
    FULL,
    GREY,
    INK,
    PALE,
    VERMILLION,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import clip_label

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
