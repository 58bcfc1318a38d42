"""Pages of the tasks on scenes out of what a run holds, and what their pictures show out of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.cli import console

if TYPE_CHECKING:
    from roadaware.cli.scene_inputs import Given
    from roadaware.cli.scene_runs import SceneRun
    from roadaware.cli.scene_tasks import SceneTask
    from roadaware.metrics.judged import SceneResult
    from roadaware.reports.page import Section
    from roadaware.reports.picture import Picture


def pictures_of(task: SceneTask, given: Given, result: SceneResult) -> dict[str, Any]:
    """What the pictures of a task show, JSON-ready, so that a page can be made again without the data."""
    from roadaware.analysis import scene_cases

    makers = {
        "actions": scene_cases.confused,
        "relations": scene_cases.graphs,
        "grounding": scene_cases.sentences,
        "sound": scene_cases.heard,
    }
    if task.name not in makers:
        return {}
    return makers[task.name](given.predictions, given.scenes, result)


def run_page(runs: Sequence[SceneRun], comparisons: Sequence[Any] = (), title: str = "") -> str:
    """One page for one or several runs, and how they compare.

    Args:
        runs: in reading order.
        comparisons: pairs of them.
        title: heading; the names of the runs where empty.
    """
    from roadaware.reports.page import report
    from roadaware.reports.scene_section import scene_comparison_section

    with console.working("report"):
        sections = [run_section(run) for run in runs]
        sections += [scene_comparison_section(found) for found in comparisons]
        heading = title or ", ".join(dict.fromkeys(run.name for run in runs))
        about = dict.fromkeys(run.task.title for run in runs)
        return report(sections, title=heading, subtitle=", ".join(about))


def run_section(run: SceneRun) -> Section:
    """One run as a section."""
    from roadaware.cli.scene_tasks import CORNER_CASES
    from roadaware.reports.corner_section import corner_section
    from roadaware.reports.scene_section import scene_section
    from roadaware.reports.text import sentence

    if run.task is CORNER_CASES:
        title = sentence(f"{run.name}: corner cases, config {run.config_name}")
        about = {**_about(run), **run.facts.get("routing", {})}
        printed = run.facts.get("printed", [])
        return corner_section(run.result, title=title, model=run.name, about=about, printed=printed)
    return scene_section(
        run.result,
        title=sentence(f"{run.name}: {run.task.name}, config {run.config_name}"),
        model=run.name,
        items=run.task.items,
        labelled=run.task.labelled,
        about=_about(run),
        pictures=list(_pictures(run.pictures, run.name)),
    )


def comparison_page(found: Any) -> str:
    """A page for two runs of one task."""
    from roadaware.reports.page import report
    from roadaware.reports.scene_section import scene_comparison_section

    return report([scene_comparison_section(found)], title=" against ".join(found.names))


def _pictures(held: Mapping[str, Any], name: str) -> Iterator[Picture]:
    """The pictures of a run, whichever of them its task has."""
    from roadaware.analysis.action_confusion import Confusion
    from roadaware.analysis.behaviour_graphs import BehaviourGraph
    from roadaware.analysis.heard_maps import HeardMap
    from roadaware.analysis.worst_tubes import Strip
    from roadaware.reports.behaviour_graph import behaviour_picture
    from roadaware.reports.confusion import confusion_picture
    from roadaware.reports.film import film
    from roadaware.reports.sound_maps import map_gallery, success_curve

    if held.get("confusion", {}).get("labels"):
        yield confusion_picture(Confusion.from_dict(held["confusion"]))
    for graph in held.get("graphs", []):
        yield behaviour_picture(BehaviourGraph.from_dict(graph))
    strips = [Strip.from_dict(strip) for strip in held.get("strips", [])]
    if strips:
        yield film(strips, title="Sentences, the worst and the best")
    if held.get("success"):
        curves = dict(held["success"])
        yield success_curve(curves.pop("thresholds"), {name: curves.pop("claims"), **curves}, name)
    for kind in ("worst", "best"):
        maps = [HeardMap.from_dict(each) for each in held.get(f"{kind}_maps", [])]
        if maps:
            title = f"Sounds that were localised {kind}"
            yield map_gallery(maps, title=title, threshold=held.get("threshold"))


def _about(run: SceneRun) -> dict[str, str]:
    row = run.result.counts.row(0, named=True)
    truth = run.facts.get("truth", {})
    about = {
        "claims": ", ".join(run.facts.get("claims", [])),
        "truth": f"{truth.get('dataset') or 'unnamed'} ({truth.get('digest', '')})",
        "judged": f"{row['videos']:,} videos, {row['items']:,} {run.task.items}",
        "draws": f"{run.draws:,}, seed {run.seed}",
    }
    found = {**run.facts.get("findings", {}), **{f"truth: {note}": 0 for note in truth.get("notes", [])}}
    found |= dict.fromkeys(run.facts.get("lacking", []), 0)
    if found:
        about["findings"] = "; ".join(f"{n:,} {what}" if n else what for what, n in found.items())
    return about
