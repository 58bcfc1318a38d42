"""`roadaware label select`: which pictures are worth a look, and what that saves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, folders, outputs, text
from roadaware.cli.label_inputs import USUAL_SECONDS, Seconds, dataset, pictures_of, proposals
from roadaware.cli.options import USUAL, Common, Draws, Outcome, OutputFolder, Overwrite, Seed

if TYPE_CHECKING:
    import polars as pl

    from roadaware.analysis.labelling.finding import Curve
    from roadaware.scenes.predictions import Predictions

_PROPOSALS = "What `propose` wrote, or saved predictions with boxes."
_VIDEOS = (
    "The dataset that they are of, for pictures without a proposal; else only those with one are ranked."
)
_TRUTH = "The same with `boxes.corner_case`, such as made-up scenes: measures what the list finds."
_BY = (
    "What makes a picture worth a look: the count of proposals, the chance of any (as if scores were "
    "chances), the best score, or the sum of scores."
)
_REPEAT = "Each higher picture of the same video multiplies the worth by this; 1 for no heed."
_SCORE = "The column of the boxes that ranks them, from 0 to 1, such as one that `rescore` wrote."
_LEAST = "Proposals with a lower score do not count."
_UNIT = "What is to be found: objects, each once, or pictures with a corner case."
_FOLDER = "Write list.csv, list.json and a page with the curve into this folder."
_MOST_SHOWN = 10
_PAGE = "report.html"


def select(
    path: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    videos: Annotated[Path | None, Parameter(help=_VIDEOS)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    by: Annotated[Literal["count", "any", "best", "sum"], Parameter(help=_BY)] = "count",
    repeat: Annotated[float, Parameter(help=_REPEAT)] = 0.5,
    score: Annotated[str, Parameter(help=_SCORE)] = "score",
    least_score: Annotated[float, Parameter(help=_LEAST)] = 0.0,
    unit: Annotated[Literal["objects", "pictures"], Parameter(help=_UNIT)] = "objects",
    seconds: Seconds = USUAL_SECONDS,
    draws: Draws = 1000,
    seed: Seed = 0,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Rank pictures by their proposals, and say what looking at the list costs against looking at all.

    Pictures of scenes that stand higher already are worth less. With truth, the share of corner cases found
    is measured over the share of pictures looked at, beside chance, chance that takes each video in turn,
    and the best order there could be, with intervals over videos.

    For example:

        roadaware label select runs/streets/proposals --videos runs/streets/scenes -o runs/list

        roadaware label select proposals --truth runs/made-up --by any -o runs/list
    """
    from roadaware.analysis.labelling.finding import curve
    from roadaware.analysis.labelling.labour import planned, worth_of
    from roadaware.analysis.labelling.selection import SelectionConfig, ranked

    labour, config = seconds.labour(), SelectionConfig(by, repeat, least_score, score)
    claims = proposals(path)
    set_path = truth or videos
    scenes = None if set_path is None else dataset(set_path, None)[0]
    pictures = _with_one(claims) if scenes is None else pictures_of(scenes)
    with console.working("ranking"):
        table = ranked(claims, pictures, config, seed=seed)
    found = None
    if truth is not None and scenes is not None:
        with console.working("measuring"):
            found = curve(worth_of(table, claims, scenes), labour, unit=unit, draws=draws, seed=seed)
    costs = planned(table, labour)
    data = _data(table, costs, found, config, labour, all_known=scenes is not None)
    if folder is not None:
        _save(folder, table, data, costs, found, overwrite=overwrite)
    return Outcome(_text(table, costs, found, all_known=scenes is not None), data)


def _with_one(claims: Predictions) -> pl.DataFrame:
    """The pictures that have a proposal."""
    import polars as pl

    return claims.boxes.select(pl.col("video").cast(pl.String), "frame").unique().sort("video", "frame")


def _data(
    table: pl.DataFrame,
    costs: dict[str, float],
    found: Curve | None,
    config: Any,
    labour: Any,
    *,
    all_known: bool,
) -> dict[str, Any]:
    from dataclasses import asdict

    measured = None
    if found is not None:
        measured = {"unit": found.unit, "totals": found.totals, "table": found.table.to_dicts()}
    return {
        "config": asdict(config),
        "labour": asdict(labour),
        "all_pictures_known": all_known,
        "planned": costs,
        "measured": measured,
        "pictures": table.to_dicts(),
    }


def _save(
    folder: Path,
    table: pl.DataFrame,
    data: dict[str, Any],
    costs: dict[str, float],
    found: Curve | None,
    *,
    overwrite: bool,
) -> None:
    from roadaware.cli.output import json_text
    from roadaware.reports.labelling import finding_picture, selection_section
    from roadaware.reports.page import report
    from roadaware.scenes.csv_text import csv_text

    with console.working("report"):
        page = report([selection_section(costs, found)], title="Pictures worth a look")
    files = {
        "list.csv": csv_text(table).encode(),
        "list.json": json_text({"pictures": data["pictures"]}).encode(),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    if found is not None:
        files["curve.csv"] = _points(found).encode()
        files["curve.png"] = finding_picture(found).png()
    facts = {name: value for name, value in data.items() if name != "pictures"}
    folders.put_folder(folder, folders.with_marker(files, facts), overwrite=overwrite)
    console.note(f"wrote {folder} (list: {folder / 'list.csv'}, report: {folder / _PAGE})")


def _points(found: Curve) -> str:
    import polars as pl

    from roadaware.scenes.csv_text import csv_text

    columns = {"looked": found.looked, **found.found}
    columns |= {f"{order}_low": values for order, values in found.low.items()}
    columns |= {f"{order}_high": values for order, values in found.high.items()}
    return csv_text(pl.DataFrame(columns))


def _text(table: pl.DataFrame, costs: dict[str, float], found: Curve | None, *, all_known: bool) -> str:
    rows = [
        (row["rank"], row["video"], row["frame"], f"{row['priority']:.3f}", row["reason"])
        for row in table.head(_MOST_SHOWN).iter_rows(named=True)
    ]
    saved = f", {100 * costs['saved']:.0f} % less" if all_known else ""
    lines = [
        text.table(["rank", "video", "frame", "priority", "why"], rows, left=2),
        "",
        f"{costs['listed']:,} of {costs['pictures']:,} pictures have a proposal: looking at them and judging "
        f"{costs['proposals']:,} proposals takes {text.seconds(costs['seconds'])}, looking at all "
        f"{text.seconds(costs['seconds_of_all'])}{saved}",
    ]
    if not all_known:
        lines.append("pictures without a proposal are not known: say --videos")
    if found is None:
        return "\n".join([*lines, "what the list misses is not known without --truth"])
    return "\n".join([*lines, "", *_measured(found)])


def _measured(found: Curve) -> list[str]:
    rows = [
        (
            f"{100 * row['found']:.0f} %",
            row["order"],
            f"{100 * row['looked_share']:.1f} %",
            text.interval(row["looked_low"], row["looked_high"], 3, row["caution"]),
            text.seconds(row["seconds"]),
            f"{100 * row['saved']:.0f} %",
            text.interval(row["saved_low"], row["saved_high"], 2, row["caution"]),
        )
        for row in found.table.iter_rows(named=True)
    ]
    header = ["found", "order", "looked at", "interval", "time", "saved", "interval"]
    totals = found.totals
    return [
        f"measured on {totals['objects']:,.0f} objects in {totals['with_a_case']:,.0f} of "
        f"{totals['pictures']:,.0f} pictures; {totals['hits']:,.0f} of {totals['proposals']:,.0f} proposals "
        "meet one",
        text.table(header, rows, left=2),
        "saved: against looking at all pictures without proposals and drawing every box; intervals are over "
        "videos",
    ]
