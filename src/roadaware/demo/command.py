"""`roadaware demo`: every step once, on synthetic scenes or on real annotations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.audit import Audit, audit
from roadaware.analysis.baselines import build_baseline_run, compare_baselines, train_baselines
from roadaware.analysis.compare import compare_released
from roadaware.analysis.evaluation.pedestrians import match_file
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    USUAL,
    WHOLE_SEED,
    Common,
    ConfigName,
    Outcome,
    Output,
    Resamples,
    Switch,
    TaskName,
)
from roadaware.cli.reproduce import reproduce_folder
from roadaware.datasets.loading import open_dataset
from roadaware.demo import scenes as synthetic
from roadaware.demo import short, watching
from roadaware.demo.steps import Demo
from roadaware.demo_data import write_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats.score_tables import format_samples, format_scores
from roadaware.io.folders import write_text
from roadaware.metrics.pedestrians import evaluate_samples
from roadaware.reports import terminal
from roadaware.reports.page import report
from roadaware.reports.reproduction_text import format_reproduction
from roadaware.reports.run_pages import run_section
from roadaware.reports.run_text import format_headline, format_runs
from roadaware.scenes.sampling import get_protocol, sample

if TYPE_CHECKING:
    from roadaware.analysis.evaluation.runs import Run
    from roadaware.demo_data import DemoFacts
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes
    from roadaware.tasks.pedestrians import Baseline

_Trained = dict[str, dict[str, "Baseline"]]

_HEADLINES = ("accuracy", "balanced_accuracy", "f1", "average_precision", "auc", "soft_f1", "hard_f1")
_WHERE: dict[ConfigName, str] = {"reference": "", "default": " where the labels are honest"}
_DATA, _PAGE, _SCORES, _SAMPLES = "data", "report.html", "scores.csv", "samples.csv"
_SYNTHETIC = (
    synthetic.FOLDER,
    synthetic.EVENTS_FOLDER,
    synthetic.CHAOS_FOLDER,
    watching.FOLDER,
    watching.CROWD_FOLDER,
)
_FOLDER = "Where dataset, runs and report go; an earlier demo there, finished or not, is replaced."
_ALL = "Every step, not these alone: also read, audit, train, link, and score a crowd; takes some minutes."
_SEED = "Seed of the synthetic scenes and of the resamples."
_OVERWRITE = "Not needed: an earlier demo is replaced anyway, and nothing else ever."


def demo(
    *,
    all_steps: Annotated[bool, Parameter(name="--all", help=_ALL), Switch] = False,
    data: Annotated[
        Path | None, Parameter(help="A folder with jaad/ and pie/ as released: every step on these.")
    ] = None,
    folder: Annotated[Path, Parameter(help=_FOLDER), Output, outputs.DEMO] = Path("runs/demo"),
    draws: Resamples = 200,
    seed: Annotated[int, Parameter(help=_SEED, validator=WHOLE_SEED)] = 0,
    overwrite: Annotated[bool, Parameter(help=_OVERWRITE), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Watch videos, judge what was found, and show it on a page, in a minute or two; with --all, take every step.

    The bundled detector watches synthetic videos that it has not seen before, and what it finds is scored
    with intervals. The last line opens the viewer on it.

    With --all it simulates short scenes instead: traffic, people at crossings and a crowd. The detector
    watches the traffic and is scored. On the scenes the demo audits and trains, links detections to tubes
    and scores them, and scores actions, relations, sentences and sounds in every published way. Then it
    writes a small dataset in the format of JAAD, with known defects, and shows that the audit finds them.
    With --data it takes the real annotations in DIR/jaad (and DIR/pie), and ends with the published tables,
    obtained beside printed.

    For example:

        roadaware demo

        roadaware demo --all

        roadaware demo --data DATA -o runs/real
    """
    shown = Demo(folder, draws, seed, aloud=str(common.json) != "-")
    whole = (_DATA, *_SYNTHETIC, _SCORES, _SAMPLES, _PAGE)
    shown.write_marker((_PAGE,) if data else whole if all_steps else (*short.FOLDERS, _PAGE))
    if data is not None:
        found = _run_real(shown, data)
    else:
        found = _run_synthetic(shown) if all_steps else short.run_short(shown)
    page = folder / _PAGE
    spent = terminal.format_duration(time.monotonic() - shown.started_s)
    more = "" if all_steps or data else " Every other step: roadaware demo --all"
    shown.say(f"\nThe report: {page}\nAll of it took {spent}.{more}")
    return Outcome("", {**found, "report": str(page)})


def _run_synthetic(demo: Demo) -> dict[str, Any]:
    """The demo on scenes and a dataset of our own."""
    from roadaware.reports.audit import build_data_section

    demo.remove_folders(_SYNTHETIC)
    made = synthetic.make_up(demo)
    where = {preset: demo.folder / synthetic.FOLDER / preset for preset in made}
    watched, of_films = watching.watch_scenes(demo, where["road"], made["road"])
    wanted, of_wishes = _run_intention(demo, where["crossing"], made["crossing"])
    events, of_road = synthetic.run_events(demo, where["road"], made["road"])
    seen = watching.watch_crowd_film(demo, where["chaos"], made["chaos"])
    chaos, of_crowd = synthetic.run_chaos(demo, where["chaos"], made["chaos"])
    planted, of_planted = _run_planted_defects(demo)
    shown = [synthetic.build_scenes_section(demo, made), *of_films]
    shown += [build_data_section(scenes) for scenes in made.values()]
    _write_report(demo, [*shown, *of_wishes, *of_road, *of_crowd, *of_planted], "Demo")
    sizes = {
        preset: {name: len(rows) for name, rows in each.filled().items()} for preset, each in made.items()
    }
    found = {"watched": watched, "intention": wanted, "events": events, "chaos": {**chaos, "watched": seen}}
    return {"made_up": sizes, **found, **planted}


def _run_intention(demo: Demo, root: Path, scenes: Scenes) -> tuple[dict[str, Any], list[Section]]:
    """Do they want to cross? An audit and baselines, where the synthetic crossings have samples enough."""
    demo.step("Audit the synthetic crossings", f"audit pie {root}")
    sections: list[Section] = []
    try:
        sections.append(_audit(demo, scenes, "pie-intention@iv2024")[1])
        trained = _train_baselines(demo, scenes, root, dataset="pie", tasks=("intention",))
    except (InputError, UsageError) as error:
        demo.say(f"   too little was simulated for that: {error}")
        return {}, sections
    return _list_values(_build_runs(demo, trained)), [*sections, *_build_sections(demo, trained)]


def _run_planted_defects(demo: Demo) -> tuple[dict[str, Any], list[Section]]:
    """A dataset in the form of JAAD with known defects: are they found, and what do baselines make of it?"""
    from roadaware.reports.audit import build_data_section

    root = demo.folder / _DATA
    with console.show_progress("writing a dataset") as progress:
        facts = write_demo(root, seed=demo.seed, progress=progress)
    demo.step("Read annotations with planted defects", f"read jaad {root}")
    scenes = _read(demo, root)
    demo.step("Audit: does it find what was planted?", f"audit jaad {root}")
    found, audited = _audit(None, scenes)
    checks = compare_planted_defects(facts, found, scenes)
    rows = [
        (
            each["defect"],
            each["by"],
            each["planted"],
            each["found"],
            _VERDICT[each["planted"] == each["found"]],
        )
        for each in checks
    ]
    demo.say(
        terminal.format_table(
            ["planted defect", "found by", "planted", "found", ""],
            rows,
            left=2,
            colour=lambda row: "bad" if row[-1].strip() == _VERDICT[False] else None,
        )
    )
    trained = _train_baselines(demo, scenes, root, tasks=("action",))
    runs = _build_runs(demo, trained)
    # A model's scores as csv files, and the command that judges them
    run = runs[0]
    scores, samples = demo.folder / _SCORES, demo.folder / _SAMPLES
    state = run.state
    if state.tte_frames is None or state.video is None:
        raise TypeError("samples of a protocol have times to event and videos")
    write_text(scores, format_scores(state.scores))
    write_text(samples, format_samples(state.truth, state.pedestrian, state.tte_frames, state.video))
    command = f"evaluate pedestrians --scores {scores} --samples {samples} --task action --config reference"
    demo.step("Evaluate scores of your own", command)
    again = evaluate_samples(match_file(scores, samples, "action").state, run.config)
    names = ("auc", "average_precision", "balanced_accuracy", "f1")
    values = ", ".join(f"{name} {terminal.format_number(again.value(name))}" for name in names)
    demo.say(f"   {run.name} from its csv file: {values}")
    sections = [build_data_section(scenes), audited, *_build_sections(demo, trained)]
    record = {"pedestrians": facts.pedestrians, "boxes": facts.boxes, "models": _list_values(runs)}
    return {"planted": checks, **record}, sections


_VERDICT = {True: "ok", False: "MISSED"}
_FOUND_BY = {
    "crossing_without_event": "crosser-without-event",
    "late_event": "event-far-from-tags",
    "attribute_contradiction": "tags-against-attribute",
    "track_gap": "track-gaps",
}
_REFUSED_FOR = {
    "duplicated_box": "second box",
    "inverted_box": "upside down",
    "truncated_file": "not well-formed",
}


def compare_planted_defects(facts: DemoFacts, audited: Audit, scenes: Scenes) -> list[dict[str, Any]]:
    """For each kind of defect how often it was `planted` and `found`, and `by` what; JSON-ready.

    Args:
        facts: what was planted.
        audited: the same dataset.
        scenes: as read, with what was refused.
    """
    found: dict[str, tuple[int, str]] = {}
    for defect, name in _FOUND_BY.items():
        finding = audited.finding(name)
        found[defect] = (finding.count if finding else 0, f"audit: {name}")
    reasons = scenes.rejected["reason"].to_list()
    for defect, words in _REFUSED_FOR.items():
        found[defect] = (sum(words in reason for reason in reasons), "reader: refused, with the reason")
    planted = facts.counts()
    return [
        {"defect": defect, "planted": planted[defect], "found": count, "by": by}
        for defect, (count, by) in found.items()
    ]


def _run_real(demo: Demo, data: Path) -> dict[str, Any]:
    """The demo on real annotations, up to the published tables."""
    from roadaware.reports.audit import build_data_section
    from roadaware.reports.reproduction import build_reproduction_report

    root = data / "jaad"
    demo.step("Read", f"read jaad {root}")
    scenes = _read(demo, root)
    demo.step("Audit", f"audit jaad {root}")
    found, audited = _audit(demo, scenes)
    trained = _train_baselines(demo, scenes, root)
    honest = _train_baselines(demo, scenes, root, "default")
    tables = reproduce_folder(data, draws=0, baselines=trained)
    demo.step(
        "Compare the baselines with the released scores",
        f"reproduce iv2024 --data {data} --resamples {demo.draws}",
    )
    with console.log_step("comparing with the released scores"):
        pairs = compare_released(tables, draws=max(demo.draws, 1), seed=demo.seed)
    demo.say("\n".join(f"{name}\n{format_headline(pair)}" for name, pair in pairs))
    sections = [
        build_data_section(scenes),
        audited,
        *_build_sections(demo, trained),
        *build_reproduction_report(tables),
        *_build_sections(demo, honest, "default"),
    ]
    _write_report(demo, sections, "Demo on real annotations")
    demo.step("Reproduce the published tables", f"reproduce iv2024 --data {data}")
    demo.say(format_reproduction(tables))
    return {
        "audit": {name: len(found.of_severity(name)) for name in ("serious", "warning", "note")},
        "models": _list_values(_build_runs(demo, trained)),
        "models_where_labels_are_honest": _list_values(_build_runs(demo, honest, "default")),
        "reproduced": tables.counts,
    }


# The steps that both take.


def _read(demo: Demo, root: Path) -> Scenes:
    scenes = open_dataset("jaad", root)
    sizes = ", ".join(f"{len(frame):,} {name}" for name, frame in scenes.filled().items())
    demo.say(f"   {sizes}")
    return scenes


def _audit(demo: Demo | None, scenes: Scenes, protocol: str = "jaad-action@iv2024") -> tuple[Audit, Section]:
    """The audit and its section of the report; its findings are printed where a demo is given."""
    from roadaware.reports.audit import audit_section

    with console.log_step("audit"):
        found = audit(scenes, get_protocol(protocol, "reference"))
    rows = [(item.severity, item.name, item.count, item.out_of) for item in found.findings]
    if demo is not None:
        demo.say(terminal.format_table(["severity", "finding", "count", "of"], rows, left=2))
    return found, audit_section(found)


def _train_baselines(
    demo: Demo,
    scenes: Scenes,
    root: Path,
    config: ConfigName = "reference",
    *,
    dataset: str = "jaad",
    tasks: Sequence[TaskName] = ("action", "risk"),
) -> _Trained:
    """The baselines of some tasks, trained and judged, by protocol."""
    trained: _Trained = {}
    for task in tasks:
        protocol = f"{dataset}-{task}@iv2024"
        command = f"baseline {dataset} {root} --task {task} --config {config}"
        demo.step(f"Baselines without pixels{_WHERE[config]}: {task}", command)
        cut = sample(scenes, get_protocol(protocol, config))
        trained[protocol] = train_baselines(cut, task, config, draws=demo.draws, seed=demo.seed)
        runs = _build_runs(demo, {protocol: trained[protocol]}, config)
        demo.say(format_runs(runs, _HEADLINES))
        pairs = compare_baselines(runs, draws=demo.draws, seed=demo.seed)
        demo.say("\n".join(map(format_headline, pairs)))
    return trained


def _build_runs(demo: Demo, trained: _Trained, config: ConfigName = "reference") -> list[Run]:
    return [
        build_baseline_run(item, protocol, demo.draws, demo.seed, config)
        for protocol, items in trained.items()
        for item in items.values()
    ]


def _build_sections(demo: Demo, trained: _Trained, config: ConfigName = "reference") -> list[Section]:
    """A section per run and per pair of runs; the first also shows one pedestrian over time."""
    from roadaware.reports.evaluation import build_comparison_section

    sections: list[Section] = []
    for protocol, items in trained.items():
        runs = _build_runs(demo, {protocol: items}, config)
        scenes = None if sections else next(iter(items.values())).scenes
        sections += [run_section(run, scenes=None if k else scenes) for k, run in enumerate(runs)]
        sections += map(build_comparison_section, compare_baselines(runs, draws=demo.draws, seed=demo.seed))
    return sections


def _write_report(demo: Demo, sections: Sequence[Section], title: str) -> None:
    with console.log_step("report"):
        write_text(demo.folder / _PAGE, report(sections, title=f"roadaware: {title}"))


def _list_values(found: Sequence[Run]) -> dict[str, dict[str, float | None]]:
    return {f"{run.config.task} {run.name}": run.result.values() for run in found}
