"""Report pages out of what the commands found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis.agreement import OUTCOMES, Agreement
from roadaware.analysis.evaluation.runs import Run
from roadaware.io.folders import add_marker
from roadaware.reports import terminal
from roadaware.reports.page import Table, report
from roadaware.reports.runs import (
    SCHEMA,
    build_comparison_json,
    build_run_files,
    digest_scores,
    summarize_run,
)
from roadaware.reports.text import capitalize_text

if TYPE_CHECKING:
    from roadaware.analysis.compare import Comparison
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes


def run_page(runs: Sequence[Run], comparisons: Sequence[Comparison] = (), title: str = "") -> str:
    """One page for one or several runs, and how they compare.

    Args:
        runs: in reading order.
        comparisons: pairs of them.
        title: heading; the names of the runs where empty.
    """
    from roadaware.reports.evaluation import build_comparison_section

    sections = [run_section(run) for run in runs]
    sections += [build_comparison_section(comparison) for comparison in comparisons]
    heading = title or ", ".join(run.name for run in runs)
    tasks = sorted({run.config.task for run in runs})
    protocols = sorted({run.protocol for run in runs if run.protocol})
    return report(sections, title=heading, subtitle=", ".join(["pedestrians", *tasks, *protocols]))


def run_section(run: Run, *, scenes: Scenes | None = None) -> Section:
    """One run as a section.

    Args:
        run: what to show.
        scenes: with the samples of the run in its order, for the image of one pedestrian.
    """
    from roadaware.reports.evaluation import build_evaluation_section
    from roadaware.reports.gallery import plot_evaluation, plot_story

    images = plot_evaluation(run.state, run.result, name=run.name)
    if scenes is not None:
        images.append(plot_story(scenes, run.state))
    about = {"data digest": digest_scores(run.state), "resamples": str(run.draws), "seed": str(run.seed)}
    if run.protocol:
        about = {"protocol name": run.protocol, **about}
    named = run.facts.get("config_name")
    title = capitalize_text(
        f"{run.name}: {run.config.task}" + (f", config {named}" if named == "default" else "")
    )
    return build_evaluation_section(
        run.result,
        title=title,
        model=run.name,
        about=about,
        protocol=run.facts.get("sampling"),
        pictures=images,
        clips=run.clips,
    )


def render_comparison(comparison: Comparison) -> str:
    """A page for two models.

    Args:
        comparison: what `compare` gave.
    """
    from roadaware.reports.evaluation import build_comparison_section

    return report([build_comparison_section(comparison)], title=" against ".join(comparison.names))


def summarize_baselines(found: Sequence[Run], pairs: Sequence[Comparison]) -> dict[str, Any]:
    """Baselines and what differs between them, JSON-ready.

    Args:
        found: a run for each model.
        pairs: every two of them, compared.
    """
    return {
        "models": {run.name: summarize_run(run) for run in found},
        "comparisons": [build_comparison_json(pair) for pair in pairs],
    }


def build_baseline_files(found: Sequence[Run], pairs: Sequence[Comparison], title: str) -> dict[str, bytes]:
    """The files of a folder with a run folder for each model and a page of all, by name.

    Args:
        found, pairs: as of `summarize_baselines`.
        title: of the page.
    """
    files = {
        f"{run.name}/{name}": data
        for run in found
        for name, data in build_run_files(run, run_page([run])).items()
    }
    files["report.html"] = run_page(found, pairs, title).encode("utf-8", errors="backslashreplace")
    return add_marker(files, {"schema": SCHEMA, **summarize_baselines(found, pairs)})


def list_agreement_rows(found: Agreement, unit: str) -> list[list[str]]:
    """A row for each combination of classes that has samples, as the paper prints it; its intervals over a kind of unit."""
    rows = []
    for key, part in found.table.group_by("first", "second", maintain_order=True):
        n = int(part["n"][0])
        if not n:
            continue
        names = ["all", ""] if key[0] is None else [str(name) for name in key]
        shown = {row["outcome"]: row for row in part.iter_rows(named=True)}
        cells = [
            f"{shown[outcome]['percent']:.1f} {terminal.format_row_interval(shown[outcome], unit, 1)}".strip()
            for outcome in OUTCOMES
        ]
        rows.append([*names, f"{n:,}", *cells])
    return rows


def list_agreement_columns(tasks: Sequence[str]) -> list[str]:
    """The heads of the columns of an agreement of two tasks."""
    return [*tasks, "samples", "both right", f"only {tasks[0]}", f"only {tasks[1]}", "neither"]


def build_agreement_section(found: Agreement, tasks: Sequence[str]) -> Section:
    """The section of a page of two tasks that are decided together, with intervals over pedestrians and over videos."""
    whole = found.percent("both")
    says = () if whole is None else (f"Both are decided rightly in {whole:.1f} % of the samples.",)
    tables = tuple(
        Table(
            tuple(list_agreement_columns(tasks)), tuple(map(tuple, list_agreement_rows(found, unit))), "llrrrrr",
            title=f"Intervals over {unit}s",
            caption="Per cent of the samples of each combination of true classes, with 95 % intervals.",
        )
        for unit in ("pedestrian", "video")
    )  # fmt: skip
    return Section("Agreement", says, tables)
