"""`roadaware reproduce`: a published experiment again, obtained beside printed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.analysis.compare import compare_released
from roadaware.cli import console
from roadaware.cli.compare import build_comparison_json
from roadaware.cli.options import (
    LOCAL,
    USUAL,
    Common,
    Html,
    Outcome,
    Output,
    Resamples,
    Several,
    Spread,
    validate_range,
)
from roadaware.cli.outputs import (
    ABLATED_CROWDS,
    ABROAD,
    CONTEST,
    CONTINUAL,
    COUNTRIES,
    DECISIONS,
    MINDS,
    PATHS,
    STUDY,
    TIMES,
    check_paths,
)
from roadaware.cli.results import write_page
from roadaware.config import to_dict
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.io.parallel import Workers
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.protocols.continual import run_continual_study
from roadaware.protocols.countries import run_countries_study
from roadaware.protocols.crowd_ablation import ROWS, CrowdStudy, run_study
from roadaware.protocols.event_domains import build_table_domain
from roadaware.reports.continual import build_continual_section, format_continual_study
from roadaware.reports.countries import build_countries_section, format_countries_study
from roadaware.reports.crowd_ablation import format_crowd_ablation, render_crowd_ablation
from roadaware.reports.page import report
from roadaware.reports.run_pages import format_headline, format_reproduction

if TYPE_CHECKING:
    from roadaware.protocols.event_domains import EventDomain
    from roadaware.protocols.iv2024 import Reproduction
    from roadaware.tasks.pedestrians import Baseline

_DATA = (
    "Folder that holds jaad/ and pie/; when, contest, minds: JAAD itself; trajectories: folder of jaad/ and kitti_tracking/, "
    "or JAAD itself; abroad: the folder of a `cross-dataset`. [default: ROADAWARE_DATA_DIR]"
)
_BASELINES = "Train the models without pixels and show them beside."
_SCENES = (
    "crowd, trajectories, when: a simulated folder with the splits default/train and default/val. decisions, minds: where "
    "their scenes lie, or are simulated to; one folder serves both. [default: scenes/ in the folder of the study]"
)
_TOWNS = "decisions, minds: simulated towns to learn from; twice as many judge."
_UNSEEN = "crowd, trajectories, when: a simulated folder of a town that is not learnt from; all of its scenes are judged."
_OUT = (
    "All but iv2024: folder of the study; the same command goes on there. [default: "
    "runs/crowd-ablation, else runs/ and the name of the experiment]"
)
_SEEDS = "crowd, when, contest, trajectories, continual, countries, decisions, minds: trainings of each row."
_DOMAINS = (
    "continual, countries: tables in place of simulated towns, NAME=FOLDER with commas between: what `roadaware read` saved, "
    "or `roadaware simulate` made. The stream of continual takes them in this order; countries takes two."
)
_MEMORY = "continual: tubes that the reservoir of replay holds."
_STEPS = "crowd: steps of each task."
_ROWS = (
    "crowd: rows with commas: alone,shared,blocks-2,blocks-4,random-paths,shuffled. contest: predictors with commas, such as "
    "'logistic,boosting,hazard trees,steady'. [default: all]"
)
_BUDGET = "contest: configurations that each predictor tries on validation."
_PROCESSES = "crowd: trainings side by side. [default: 1; of a cluster as many as it has processors]"
_SET = "crowd: fields of the recipe configs/crowd/intellicare.yaml, such as model.weights=trunk.safetensors."


def reproduce(
    experiment: Annotated[
        Literal[
            "iv2024",
            "crowd",
            "when",
            "contest",
            "trajectories",
            "abroad",
            "continual",
            "countries",
            "decisions",
            "minds",
        ],
        Parameter(help="Which experiment."),
    ],
    /,
    *,
    data: Annotated[Path | None, Parameter(help=_DATA)] = None,
    html: Html = None,
    draws: Resamples = 1000,
    baselines: Annotated[bool, Parameter(help=_BASELINES, negative="--no-baselines")] = True,
    scenes: Annotated[Path | None, Parameter(help=_SCENES)] = None,
    unseen: Annotated[Path | None, Parameter(help=_UNSEEN)] = None,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), STUDY] = None,
    seeds: Annotated[int, Parameter(help=_SEEDS, validator=validate_range(1, 1000))] = 3,
    towns: Annotated[int, Parameter(help=_TOWNS, validator=validate_range(4, 100_000))] = 120,
    steps: Annotated[int, Parameter(help=_STEPS, validator=validate_range(1, 10_000_000))] = 800,
    rows: Annotated[str | None, Parameter(help=_ROWS)] = None,
    processes: Annotated[
        int | None, Parameter(help=_PROCESSES, validator=validate_range(1, 10_000), show_default=False)
    ] = None,
    spread: Spread = LOCAL,
    changes: Annotated[list[str] | None, Parameter(name="--set", help=_SET), Several] = None,
    budget: Annotated[int, Parameter(help=_BUDGET, validator=validate_range(1, 10))] = 8,
    domains: Annotated[str | None, Parameter(help=_DOMAINS)] = None,
    memory: Annotated[int, Parameter(help=_MEMORY, validator=validate_range(1, 100_000))] = 400,
    common: Common = USUAL,
) -> Outcome:
    """Repeat a published experiment on the released files and set every printed cell beside what comes out.

    `iv2024` is Rasouli and Kotseruba, IV 2024: Tables II to VI. Needs a folder with jaad/ (the
    repository or its zip) and pie/ (annotations, or the attributes alone, and the released pf_*.csv).
    A cell that cannot be obtained says why; one that rests on an assumption shows its range.

    `crowd` is the ablation of IntelliCare (Chaotic World, ICCV 2023) on simulated crowds: each head alone, a shared
    trunk, learnt paths through 2 and 4 blocks, fixed random paths and shuffled tasks, with equal steps of each task.
    Interrupted, the same command goes on.

    `when` asks at every moment of every track of JAAD, or of streets of a town that was not learnt from, when somebody begins
    to cross: trees and networks of the time (fitted here in some minutes), the bundled classifier, one of the trees' own
    features, constant velocity and the prior, with intervals and warning times.

    `contest` lets predictors of crossing choose among equally many configurations each on JAAD's validation split, asks the
    best of each on test, once, and shows them with intervals and paired differences: constant velocity, logistic regression,
    boosting, trees of two seconds of boxes that learn who or when, and small networks. Interrupted, the same command goes on.

    `trajectories` predicts where pedestrians of JAAD, KITTI tracking and simulated streets will be in the next one and a half
    seconds, from half a second of their boxes: a mixture network (fitted here in some minutes), constant velocity, a linear
    fit and a Kalman filter, with intervals and paired differences. Sets that are not there are named and left out.

    `abroad` takes the folder of a `roadaware cross-dataset`, and asks its models and the bundled predictor on streams of
    every domain: does an alarm without labels hear that they are away, and what do calibration and conformal sets hold that
    learn from outcomes one to two seconds later.

    `continual` lets the event head learn online from towns, weather, night and new classes one after another, each box once:
    fine-tuning, means of weights, replay by a reservoir, and joint training; average, forgetting, transfer, memory and time.

    `countries` lets it learn where traffic keeps to one side and tests it where it keeps to the other, both ways: source
    alone, mirrored, a mean teacher without labels of the target, joint. With --domains for ROAD and ROAD-Waymo.

    `decisions` asks what the own vehicle does, now and in a second, on simulated towns that were not learnt from: a set
    transformer over tubes, a network of pixels, own motion, rules and prior; then those are taken away for whom the
    simulator's driver stands.

    `minds` predicts what simulated road users have in mind (goal, gap, whether they saw the vehicle) from what they do, and
    asks whether that helps to foresee them; with JAAD (--data), what its tags of looking and nodding add. Both simulate
    their scenes (three seconds of a core each) and fit small networks.

    For example:

        roadaware reproduce iv2024 --data DATA --html tables.html

        ROADAWARE_DATA_DIR=DATA roadaware reproduce iv2024 --json cells.json

        roadaware reproduce crowd --scenes crowds --output runs/crowd-ablation

        roadaware reproduce when --data JAAD-JAAD_2.0.zip --output runs/when

        roadaware reproduce contest --data JAAD-JAAD_2.0.zip --budget 4 --rows 'logistic,boosting,hazard trees,steady'

        roadaware reproduce trajectories --data DATA --scenes town --unseen other-town --output runs/trajectories

        roadaware reproduce abroad --data runs/away --output runs/abroad

        roadaware reproduce continual --output runs/continual

        roadaware reproduce countries --domains road=road-tables,waymo=waymo-tables --output runs/countries

        roadaware reproduce decisions --output runs/decisions

        roadaware reproduce minds --scenes runs/decisions/scenes --output runs/minds
    """
    if experiment in ("continual", "countries"):
        folder = out or Path("runs") / experiment
        (CONTINUAL if experiment == "continual" else COUNTRIES).check(folder)
        check_paths(reproduce, {"domains": domains, "out": folder, "html": html, "common": common})
        study = _study_continual if experiment == "continual" else _study_countries
        return study(domains, folder, seeds, memory, draws, html)
    if experiment in ("decisions", "minds"):
        folder = out or Path("runs") / experiment
        (DECISIONS if experiment == "decisions" else MINDS).check(folder)
        # JAAD is only looked for where somebody said where data lies: towns alone need none.
        asked = experiment == "minds" and (data is not None or os.environ.get("ROADAWARE_DATA_DIR"))
        source = _find_jaad(data) if asked else None
        check_paths(reproduce, {"data": source, "out": folder, "html": html, "common": common})
        if experiment == "decisions":
            return _study_decisions(scenes, folder, towns, seeds, draws, html)
        return _study_minds(scenes, source, folder, towns, seeds, draws, html)
    if experiment == "abroad":
        folder = out or Path("runs/abroad")
        ABROAD.check(folder)
        if data is None:
            raise UsageError("no study: say --data DIR, the folder of a `roadaware cross-dataset`")
        check_paths(reproduce, {"data": data, "out": folder, "html": html, "common": common})
        return _study_abroad(data, folder, draws, html)
    if experiment == "contest":
        folder = out or Path("runs/contest")
        CONTEST.check(folder)
        source = _find_jaad(data)
        check_paths(reproduce, {"data": source, "out": folder, "html": html, "common": common})
        names = [name.strip() for name in rows.split(",") if name.strip()] if rows is not None else None
        return _hold_contest(source, names, folder, budget, seeds, draws, html)
    if experiment == "trajectories":
        folder = out or Path("runs/trajectories")
        PATHS.check(folder)
        return _study_trajectories(data, scenes, unseen, folder, seeds, draws, html, common)
    if experiment == "when":
        folder = out or Path("runs/when")
        TIMES.check(folder)
        if (scenes is None) != (unseen is None):
            raise UsageError(
                "simulated streets need two towns: --scenes DIR to learn from and --unseen DIR to judge"
            )
        source = _find_jaad(data) if scenes is None else scenes
        check_paths(
            reproduce, {"data": source, "unseen": unseen, "out": folder, "html": html, "common": common}
        )
        return _study_time(source, unseen, folder, seeds, draws, html)
    if experiment == "crowd":
        if scenes is None:
            raise UsageError(
                "no scenes: say --scenes DIR, a folder that `roadaware simulate --preset chaos` made"
            )
        workers = spread.gather(processes, usual=1)
        folder = out or Path("runs/crowd-ablation")
        ABLATED_CROWDS.check(folder)
        check_paths(
            reproduce, {"scenes": scenes, "unseen": unseen, "out": folder, "html": html, "common": common}
        )
        chosen = [name for name in rows.split(",") if name] if rows is not None else None
        return _ablate_crowds(
            {"scenes": scenes, "unseen": unseen, "seeds": seeds, "steps": steps, "draws": draws},
            chosen, tuple(changes or ()), folder, workers, html,
        )  # fmt: skip
    source = _find_data_folder(data)
    check_paths(reproduce, {"data": source, "html": html, "common": common})
    found = reproduce_folder(source, draws=draws, baselines=baselines)
    pairs = []
    if draws:
        with console.log_step("comparing with the released scores"):
            pairs = compare_released(found, draws=draws)
    if html is not None:
        from roadaware.reports.reproduction import build_reproduction_report

        write_page(html, report(build_reproduction_report(found), title="IV 2024 repeated"))

    shown = [format_reproduction(found), *(f"{name}\n{format_headline(pair)}" for name, pair in pairs)]
    compared = [{"protocol": name, **build_comparison_json(pair)} for name, pair in pairs]
    return Outcome("\n\n".join(shown), {**found.as_dict(), "comparisons": compared})


def _find_jaad(data: Path | None) -> Path:
    """JAAD: what is named, or jaad/ in a folder of data."""
    source = _find_data_folder(data) if data is None else data
    return source / "jaad" if (source / "jaad").exists() else source


def _study_time(
    source: Path, unseen: Path | None, out: Path, seeds: int, draws: int, html: Path | None
) -> Outcome:
    """The study of when pedestrians begin to cross; its page, networks and results lie in its folder."""
    from roadaware.models.crossing.ensemble import EnsemblePredictor
    from roadaware.protocols.crossing_time import run_time_study
    from roadaware.reports.crossing_time import build_time_section, format_time_study

    scenes = open_dataset("jaad" if unseen is None else SYNTHETIC, source)
    judged = None if unseen is None else open_dataset(SYNTHETIC, unseen)
    classifier = EnsemblePredictor.open([WEIGHTS / PREDICTORS[0]])
    with console.show_progress("networks of the time") as progress:
        found = run_time_study(
            scenes, out, classifier, seeds=tuple(range(seeds)), draws=draws, unseen=judged, progress=progress
        )
    subtitle = "JAAD, test split" if unseen is None else "simulated streets of another town"
    page = report([build_time_section(found)], title="When pedestrians begin to cross", subtitle=subtitle)
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_time_study(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    return Outcome(text, {"folder": str(out), **found.as_dict()})


def _hold_contest(
    source: Path, names: list[str] | None, out: Path, budget: int, seeds: int, draws: int, html: Path | None
) -> Outcome:
    """The contest of predictors; its page, trials and answers of test lie in its folder."""
    from roadaware.protocols.contest import run_contest
    from roadaware.reports.contest import build_contest_section, format_contest
    from roadaware.training.pedestrians.results import group_results

    with console.show_progress("contest") as progress:
        found = run_contest(
            "jaad",
            source,
            out,
            names=names,
            budget=budget,
            seeds=tuple(range(seeds)),
            draws=draws,
            progress=progress,
        )
    with console.log_step("comparing in pairs"):
        page = report(
            [build_contest_section(found, draws)],
            title="Fair contest of crossing predictors",
            subtitle="JAAD, test split",
        )
        text = format_contest(found, draws)
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    told = {
        "folder": str(out), "budget": found.budget, "chosen": found.chosen, "order_on_validation": found.order,
        "trials": {name: [to_dict(trial) for trial in tried] for name, tried in found.trials.items()},
        "results": group_results(found.rows),
    }  # fmt: skip
    return Outcome(f"{text}\n\nwrote {out} (report: {out / 'report.html'})", told)


def _study_trajectories(
    data: Path | None,
    scenes: Path | None,
    unseen: Path | None,
    out: Path,
    seeds: int,
    draws: int,
    html: Path | None,
    common: Common,
) -> Outcome:
    """The study of where pedestrians will be; its page, networks and the numbers of every window lie in its folder."""
    from roadaware.protocols.trajectories import run_trajectory_study
    from roadaware.reports.trajectories import build_trajectory_section, format_trajectory_study

    if (scenes is None) != (unseen is None):
        raise UsageError(
            "simulated streets need two towns: --scenes DIR to learn from and --unseen DIR to judge"
        )
    # Streets alone need no data.
    stated = os.environ.get("ROADAWARE_DATA_DIR")
    source = None if scenes is not None and data is None and not stated else _find_data_folder(data)
    places: dict[str, Path] = {}
    if source is not None:
        places = {name: source / name for name in ("jaad", "kitti_tracking") if (source / name).exists()}
        # A folder or zip that holds neither is JAAD itself.
        places = places or {"jaad": source}
    check_paths(
        reproduce,
        {"data": source, "scenes": scenes, "unseen": unseen, "out": out, "html": html, "common": common},
    )
    opened = {name: open_dataset(name, place) for name, place in places.items()}
    streets = (
        (open_dataset(SYNTHETIC, scenes), open_dataset(SYNTHETIC, unseen)) if scenes and unseen else None
    )
    with console.show_progress("networks of paths") as progress:
        found = run_trajectory_study(
            out, jaad=opened.get("jaad"), kitti=opened.get("kitti_tracking"), streets=streets, seeds=tuple(range(seeds)),
            draws=draws, progress=progress,
        )  # fmt: skip
    page = report(
        [build_trajectory_section(found)],
        title="Where pedestrians will be",
        subtitle=", ".join(each.name for each in found.sets),
    )
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    absent = [name for name in ("jaad", "kitti_tracking") if name not in opened]
    lost = [f"left out, not there: {', '.join(absent)}"] if absent else []
    if streets is None:
        lost.append("left out: simulated streets (--scenes and --unseen)")
    text = "\n".join(
        [format_trajectory_study(found), *lost, "", f"wrote {out} (report: {out / 'report.html'})"]
    )
    return Outcome(text, {"folder": str(out), "left_out": absent, **found.as_dict()})


def _study_abroad(source: Path, out: Path, draws: int, html: Path | None) -> Outcome:
    """The study of predictors abroad; its page and the numbers of every cell lie in its folder."""
    from roadaware.protocols.abroad import run_abroad_study
    from roadaware.reports.abroad import build_abroad_section, format_abroad_study

    with console.show_progress("streams") as progress:
        found = run_abroad_study(source, out, draws=draws, progress=progress)
    page = report([build_abroad_section(found)], title="Safe abroad", subtitle=", ".join(found.domains))
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_abroad_study(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    return Outcome(text, {"folder": str(out), **found.as_dict()})


def _open_domains(domains: str | None) -> list[EventDomain] | None:
    """The domains that are named by their tables; None where none are.

    Raises:
        UsageError: if it is not NAME=FOLDER with commas between.
    """
    if domains is None:
        return None

    named = [each.partition("=") for each in domains.split(",") if each]
    if any(not (name and sign and place) for name, sign, place in named):
        raise UsageError(f"domains are NAME=FOLDER with commas between, not '{domains}'")
    return [build_table_domain(name, open_dataset("road", Path(place))) for name, _, place in named]


def _study_continual(
    domains: str | None, out: Path, seeds: int, memory: int, draws: int, html: Path | None
) -> Outcome:
    """The study of continual event detection; its page, states and results lie in its folder."""
    given = _open_domains(domains)
    with console.show_progress("continual learning") as progress:
        found = run_continual_study(
            out, domains=given, seeds=seeds, memory_tubes=memory, draws=draws, progress=progress
        )
    names = ", ".join(each.name for each in found.experiences)
    page = report([build_continual_section(found)], title="Continual event detection", subtitle=names)
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_continual_study(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    return Outcome(text, {"folder": str(out), **found.as_dict()})


def _study_countries(
    domains: str | None, out: Path, seeds: int, memory: int, draws: int, html: Path | None
) -> Outcome:
    """The study of two countries, which has no memory; its page and results lie in its folder."""
    given = _open_domains(domains)
    with console.show_progress("two countries") as progress:
        found = run_countries_study(out, domains=given, seeds=seeds, draws=draws, progress=progress)
    page = report([build_countries_section(found)], title="Two countries", subtitle=" and ".join(found.names))
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_countries_study(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    return Outcome(text, {"folder": str(out), **found.as_dict()})


def _study_decisions(
    scenes: Path | None, out: Path, towns: int, seeds: int, draws: int, html: Path | None
) -> Outcome:
    """The study of decisions; its page, scenes, networks and results lie in its folder."""
    from roadaware.protocols.decisions import run_decision_study
    from roadaware.reports.decisions import build_decision_section, format_decision_study

    with console.show_progress("decisions") as progress:
        found = run_decision_study(
            out, scenes=scenes, towns=towns, seeds=seeds, draws=draws, progress=progress
        )
    page = report(
        [build_decision_section(found)],
        title="What the own vehicle does",
        subtitle=f"{found.scenes['test']} unseen simulated towns",
    )
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_decision_study(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    return Outcome(text, {"folder": str(out), **found.as_dict()})


def _study_minds(
    scenes: Path | None, jaad: Path | None, out: Path, towns: int, seeds: int, draws: int, html: Path | None
) -> Outcome:
    """The study of minds; its page, scenes and results lie in its folder."""
    from roadaware.protocols.minds import run_mind_study
    from roadaware.reports.decisions import build_mind_section, format_mind_study

    with console.show_progress("minds") as progress:
        found = run_mind_study(
            out, scenes=scenes, jaad=None if jaad is None else open_dataset("jaad", jaad), towns=towns, seeds=seeds,
            draws=draws, progress=progress,
        )  # fmt: skip
    page = report(
        [build_mind_section(found)],
        title="What road users have in mind",
        subtitle=f"{found.scenes['test']} unseen simulated towns",
    )
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_mind_study(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    return Outcome(text, {"folder": str(out), **found.as_dict()})


def _ablate_crowds(
    given: dict[str, Any],
    rows: list[str] | None,
    changes: tuple[str, ...],
    out: Path,
    workers: Workers,
    html: Path | None,
) -> Outcome:
    """The ablation of the networks of crowds; its page and results lie in its folder."""
    chosen: Any = tuple(ROWS) if rows is None else tuple(rows)
    study = CrowdStudy(**given, rows=chosen, changes=changes)
    with console.show_progress("crowds") as progress:
        found = run_study(study, out, workers=workers, progress=progress)
    page = render_crowd_ablation(found)
    for path in filter(None, (out / "report.html", html)):
        folders.write_text(path, page)
    text = f"{format_crowd_ablation(found)}\n\nwrote {out} (report: {out / 'report.html'})"
    lost = f"{len(found.failed)} runs failed; the others stand" if found.failed else None
    return Outcome(text, {"folder": str(out), **found.as_dict()}, lost)


def reproduce_folder(
    folder: Path, *, draws: int, baselines: bool | dict[str, dict[str, Baseline]]
) -> Reproduction:
    """The experiment on the files of a folder.

    Args:
        folder: holds jaad/ and pie/.
        draws: bootstrap resamples.
        baselines: whether to train the models without pixels, or those already trained by protocol.
    """
    from roadaware.protocols.iv2024 import reproduce as repeat

    with console.show_progress("repeating iv2024") as progress, console.log_step("repeating iv2024"):
        return repeat(folder, draws=draws, baselines=baselines, progress=progress)


def _find_data_folder(given: Path | None) -> Path:
    """The folder that holds the datasets: the one given, else that of ROADAWARE_DATA_DIR.

    Raises:
        UsageError: if neither is there.
    """
    if given is not None:
        return given
    stated = os.environ.get("ROADAWARE_DATA_DIR")
    if not stated:
        raise UsageError(
            "no data: say --data DIR, or set ROADAWARE_DATA_DIR to the folder that holds jaad/ and pie/"
        )
    return Path(stated)
