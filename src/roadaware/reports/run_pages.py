"""Report pages out of what the commands found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roadaware.analysis.evaluation.runs import Run
from roadaware.reports.page import report
from roadaware.reports.runs import digest_scores
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
