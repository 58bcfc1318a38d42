"""`roadaware reproduce`: a published experiment again, obtained beside printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.analysis.compare import compare_released
from roadaware.cli import console, outputs
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
from roadaware.cli.outputs import check_paths
from roadaware.cli.results import write_page
from roadaware.config import change_fields, check_range, to_dict
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.protocols.continual import Learns, run_continual_study
from roadaware.protocols.countries import run_countries_study
from roadaware.protocols.crowd_ablation import ROWS, CrowdStudy, run_study
from roadaware.protocols.event_domains import build_table_domain
from roadaware.reports import runs
from roadaware.reports.continual import build_continual_section, format_continual_study
from roadaware.reports.countries import build_countries_section, format_countries_study
from roadaware.reports.crowd_ablation import format_crowd_ablation, render_crowd_ablation
from roadaware.reports.page import Section, report
from roadaware.reports.run_pages import format_headline, format_reproduction

if TYPE_CHECKING:
    from roadaware.protocols.event_domains import EventDomain
    from roadaware.protocols.iv2024 import Reproduction
    from roadaware.tasks.pedestrians import Baseline

_DATA = (
    "Folder that holds jaad/ and pie/; when, contest, minds: JAAD itself; trajectories: folder of jaad/ and kitti_tracking/, "
    "or JAAD itself; abroad: the folder of a `cross-dataset`. [default: ROADAWARE_DATA_DIR]"
)
_SCENES = (
    "crowd, trajectories, when: a simulated folder with the splits default/train and default/val. decisions, minds: where "
    "their scenes lie, or are simulated to; one folder serves both. [default: scenes/ in the folder of the study]"
)
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
_LEARNS = (
    "continual: what learns: the event head (events), or the last layers of the bundled detector's heads (detector), for "
    "which simulated towns are rendered."
)
_ROWS = (
    "crowd: rows with commas: alone,shared,blocks-2,blocks-4,random-paths,shuffled. contest: predictors with commas, such as "
    "'logistic,boosting,hazard trees,steady'. [default: all]"
)
_SET = (
    "FIELD=VALUE. iv2024: baselines=false trains no models without pixels to show beside. crowd: steps (800) of each task, "
    "and fields of the recipe configs/crowd/intellicare.yaml, such as model.weights=trunk.safetensors. contest: budget (8), "
    "configurations that each predictor tries on validation. continual: memory (400; of the detector 50), tubes that the "
    "reservoir of replay holds. decisions, minds: towns (120) to learn from; twice as many judge."
)


@dataclass(frozen=True)
class StudySettings:
    """What `--set` changes of an experiment itself."""

    baselines: bool = True
    steps: int = 800
    budget: int = 8
    memory: int | None = None
    towns: int = 120

    def __post_init__(self) -> None:
        check_range("steps", self.steps, 1, 10_000_000)
        check_range("budget", self.budget, 1, 10)
        check_range("memory", 1 if self.memory is None else self.memory, 1, 100_000)
        check_range("towns", self.towns, 4, 100_000)


@Parameter(name="*")
@dataclass(frozen=True)
class StudyOptions:
    """What an experiment is given; which of it counts hangs on the experiment."""

    data: Annotated[Path | None, Parameter(help=_DATA)] = None
    html: Html = None
    resamples: Resamples = 1000
    scenes: Annotated[Path | None, Parameter(help=_SCENES)] = None
    unseen: Annotated[Path | None, Parameter(help=_UNSEEN)] = None
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.STUDY] = None
    seeds: Annotated[int, Parameter(help=_SEEDS, validator=validate_range(1, 1000))] = 3
    rows: Annotated[str | None, Parameter(help=_ROWS)] = None
    spread: Spread = LOCAL
    domains: Annotated[str | None, Parameter(help=_DOMAINS)] = None
    learns: Annotated[Learns, Parameter(help=_LEARNS)] = "events"
    settings: Annotated[StudySettings, Parameter(parse=False)] = StudySettings()
    changes: Annotated[tuple[str, ...], Parameter(parse=False)] = ()
    common: Annotated[Common, Parameter(parse=False)] = USUAL

    @property
    def folder(self) -> Path:
        """Where the study goes on; known once `out` is filled in."""
        return self.out or Path("runs")

    @property
    def names(self) -> list[str] | None:
        """The rows that are wanted, None for all."""
        return (
            None if self.rows is None else [each for name in self.rows.split(",") if (each := name.strip())]
        )

    def check(self, **inputs: Path | str | None) -> None:
        """Fail before the work where an output would damage an input that was looked up, see `check_paths`."""
        check_paths(StudyOptions, {**inputs, "out": self.out, "html": self.html, "common": self.common})

    def check_towns(self) -> None:
        """Refuse one simulated town where two are needed.

        Raises:
            UsageError: if only one of `--scenes` and `--unseen` is given.
        """
        if (self.scenes is None) != (self.unseen is None):
            raise UsageError(
                "simulated streets need two towns: --scenes DIR to learn from and --unseen DIR to judge"
            )


ALL_USUAL = StudyOptions()


@dataclass(frozen=True)
class Shown:
    """What came of a study: its text, the page with its title, facts for machines, and why it failed."""

    text: str
    page: Section | str
    data: dict[str, Any]
    title: str = ""
    subtitle: str = ""
    failed: str | None = None


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
    changes: Annotated[list[str] | None, Parameter(name="--set", help=_SET), Several] = None,
    asked: StudyOptions = ALL_USUAL,
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
    With --learns detector the last layers of the bundled detector's heads learn, from rendered images.

    `countries` lets it learn where traffic keeps to one side and tests it where it keeps to the other, both ways: source
    alone, mirrored, a mean teacher without labels of the target, joint. With --domains for ROAD and ROAD-Waymo.

    `decisions` asks what the own vehicle does, now and in a second, on simulated towns that were not learnt from: a set
    transformer over tubes, a network of pixels, own motion, rules and prior; then those are taken away for whom the
    simulator's driver stands.

    `minds` predicts what simulated road users have in mind (goal, gap, whether they saw the vehicle) from what they do, and
    asks whether that helps to foresee them; with JAAD (--data), what its tags of looking and nodding add. Both simulate
    their scenes (two seconds of a core each) and fit small networks.

    For example:

        roadaware reproduce iv2024 --data DATA --html tables.html

        ROADAWARE_DATA_DIR=DATA roadaware reproduce iv2024 --json cells.json

        roadaware reproduce crowd --scenes crowds --output runs/crowd-ablation

        roadaware reproduce when --data JAAD-JAAD_2.0.zip --output runs/when

        roadaware reproduce contest --data JAAD-JAAD_2.0.zip --set budget=4 --rows 'logistic,boosting,hazard trees,steady'

        roadaware reproduce trajectories --data DATA --scenes town --unseen other-town --output runs/trajectories

        roadaware reproduce abroad --data runs/away --output runs/abroad

        roadaware reproduce continual --output runs/continual

        roadaware reproduce continual --learns detector --output runs/continual-detector

        roadaware reproduce countries --domains road=road-tables,waymo=waymo-tables --output runs/countries

        roadaware reproduce decisions --output runs/decisions

        roadaware reproduce minds --scenes runs/decisions/scenes --output runs/minds
    """
    named = [each.name for each in fields(StudySettings)]
    own = [each for each in changes or () if each.partition("=")[0] in named]
    others = tuple(each for each in changes or () if each not in own)
    if others and experiment != "crowd":
        raise UsageError(f"--set: {experiment} has no {others[0]!r}; fields are {', '.join(named)}")
    settings = change_fields(StudySettings(), own, experiment)
    asked = replace(asked, settings=settings, changes=others, common=common)
    if experiment == "iv2024":
        return _repeat_iv2024(asked)
    name, form, run = _STUDIES[experiment]
    asked = replace(asked, out=asked.out or Path("runs") / name)
    outputs.mark_study(form).check(asked.folder)
    shown = run(asked)
    page = shown.page
    if not isinstance(page, str):
        page = report([page], title=shown.title, subtitle=shown.subtitle)
    for path in filter(None, (asked.folder / "report.html", asked.html)):
        folders.write_text(path, page)
    text = f"{shown.text}\n\nwrote {asked.folder} (report: {asked.folder / 'report.html'})"
    return Outcome(text, {"folder": str(asked.folder), **shown.data}, shown.failed)


def _repeat_iv2024(asked: StudyOptions) -> Outcome:
    source, resamples = _find_data_folder(asked.data), asked.resamples
    asked.check(data=source)
    found = reproduce_folder(source, resamples=resamples, baselines=asked.settings.baselines)
    pairs = []
    if resamples:
        with console.log_step("comparing with the released scores"):
            pairs = compare_released(found, resamples=resamples)
    if asked.html is not None:
        from roadaware.reports.reproduction import build_reproduction_report

        write_page(asked.html, report(build_reproduction_report(found), title="IV 2024 repeated"))
    shown = [format_reproduction(found), *(f"{name}\n{format_headline(pair)}" for name, pair in pairs)]
    compared = [{"protocol": name, **runs.build_comparison_json(pair)} for name, pair in pairs]
    return Outcome("\n\n".join(shown), {**found.as_dict(), "comparisons": compared})


def reproduce_folder(
    folder: Path, *, resamples: int, baselines: bool | dict[str, dict[str, Baseline]]
) -> Reproduction:
    """The experiment of IV 2024 on the files of a folder.

    Args:
        folder: holds jaad/ and pie/.
        resamples: bootstrap resamples.
        baselines: whether to train the models without pixels, or those already trained by protocol.
    """
    from roadaware.protocols.iv2024 import reproduce as repeat

    with console.show_progress("repeating iv2024") as progress, console.log_step("repeating iv2024"):
        return repeat(folder, resamples=resamples, baselines=baselines, progress=progress)


def _find_data_folder(given: Path | None) -> Path:
    """The folder that holds the datasets: the one given, else that of ROADAWARE_DATA_DIR.

    Raises:
        UsageError: if neither is there.
    """
    stated = os.environ.get("ROADAWARE_DATA_DIR")
    if given is None and not stated:
        raise UsageError(
            "no data: say --data DIR, or set ROADAWARE_DATA_DIR to the folder that holds jaad/ and pie/"
        )
    return Path(stated or "") if given is None else given


def _find_jaad(data: Path | None) -> Path:
    """JAAD: what is named, or jaad/ in a folder of data."""
    source = _find_data_folder(data)
    return source / "jaad" if (source / "jaad").exists() else source


# The studies, each with a folder of its own, in which its page, networks and results lie.


def _study_time(asked: StudyOptions) -> Shown:
    from roadaware.models.crossing.ensemble import EnsemblePredictor
    from roadaware.protocols.crossing_time import run_time_study
    from roadaware.reports.crossing_time import build_time_section, format_time_study

    asked.check_towns()
    source = asked.scenes or _find_jaad(asked.data)
    asked.check(data=source, unseen=asked.unseen)
    scenes = open_dataset("jaad" if asked.unseen is None else SYNTHETIC, source)
    judged = None if asked.unseen is None else open_dataset(SYNTHETIC, asked.unseen)
    classifier, seeds = EnsemblePredictor.open([WEIGHTS / PREDICTORS[0]]), tuple(range(asked.seeds))
    with console.show_progress("networks of the time") as progress:
        found = run_time_study(
            scenes,
            asked.folder,
            classifier,
            seeds=seeds,
            resamples=asked.resamples,
            unseen=judged,
            progress=progress,
        )
    where = "JAAD, test split" if judged is None else "simulated streets of another town"
    section, text = build_time_section(found), format_time_study(found)
    return Shown(text, section, found.as_dict(), "When pedestrians begin to cross", where)


def _hold_contest(asked: StudyOptions) -> Shown:
    from roadaware.protocols.contest import run_contest
    from roadaware.reports.contest import build_contest_section, format_contest
    from roadaware.training.pedestrians.results import group_results

    source, seeds = _find_jaad(asked.data), tuple(range(asked.seeds))
    asked.check(data=source)
    how: dict[str, Any] = {
        "names": asked.names,
        "budget": asked.settings.budget,
        "resamples": asked.resamples,
    }
    with console.show_progress("contest") as progress:
        found = run_contest("jaad", source, asked.folder, seeds=seeds, progress=progress, **how)
    with console.log_step("comparing in pairs"):
        section, text = build_contest_section(found, asked.resamples), format_contest(found, asked.resamples)
    data = {
        "budget": found.budget,
        "chosen": found.chosen,
        "order_on_validation": found.order,
        "trials": {name: [to_dict(trial) for trial in tried] for name, tried in found.trials.items()},
        "results": group_results(found.rows),
    }
    return Shown(text, section, data, "Fair contest of crossing predictors", "JAAD, test split")


def _study_trajectories(asked: StudyOptions) -> Shown:
    from roadaware.protocols.trajectories import run_trajectory_study
    from roadaware.reports.trajectories import build_trajectory_section, format_trajectory_study

    asked.check_towns()
    # Streets alone need no data.
    stated = asked.data or os.environ.get("ROADAWARE_DATA_DIR")
    source = None if asked.scenes and not stated else _find_data_folder(asked.data)
    known = ("jaad", "kitti_tracking")
    places = {} if source is None else {name: source / name for name in known if (source / name).exists()}
    if source is not None and not places:  # a folder or zip that holds neither is JAAD itself
        places = {"jaad": source}
    asked.check(data=source, scenes=asked.scenes, unseen=asked.unseen)
    opened = {name: open_dataset(name, place) for name, place in places.items()}
    streets = None
    if asked.scenes and asked.unseen:
        streets = (open_dataset(SYNTHETIC, asked.scenes), open_dataset(SYNTHETIC, asked.unseen))
    how: dict[str, Any] = {
        "jaad": opened.get("jaad"),
        "kitti": opened.get("kitti_tracking"),
        "streets": streets,
    }
    how |= {"seeds": tuple(range(asked.seeds)), "resamples": asked.resamples}
    with console.show_progress("networks of paths") as progress:
        found = run_trajectory_study(asked.folder, progress=progress, **how)
    absent = [name for name in known if name not in opened]
    lines = [format_trajectory_study(found)]
    lines += [f"left out, not there: {', '.join(absent)}"] if absent else []
    lines += ["left out: simulated streets (--scenes and --unseen)"] if streets is None else []
    section, sets = build_trajectory_section(found), ", ".join(each.name for each in found.sets)
    data = {"left_out": absent, **found.as_dict()}
    return Shown("\n".join(lines), section, data, "Where pedestrians will be", sets)


def _study_abroad(asked: StudyOptions) -> Shown:
    from roadaware.protocols.abroad import run_abroad_study
    from roadaware.reports.abroad import build_abroad_section, format_abroad_study

    if asked.data is None:
        raise UsageError("no study: say --data DIR, the folder of a `roadaware cross-dataset`")
    asked.check(data=asked.data)
    with console.show_progress("streams") as progress:
        found = run_abroad_study(asked.data, asked.folder, resamples=asked.resamples, progress=progress)
    section, text = build_abroad_section(found), format_abroad_study(found)
    return Shown(text, section, found.as_dict(), "Safe abroad", ", ".join(found.domains))


def _open_domains(asked: StudyOptions) -> list[EventDomain] | None:
    """The domains that are named by their tables; None where none are.

    Raises:
        UsageError: if it is not NAME=FOLDER with commas between.
    """
    asked.check(domains=asked.domains)
    if asked.domains is None:
        return None
    named = [each.partition("=") for each in asked.domains.split(",") if each]
    if any(not (name and sign and place) for name, sign, place in named):
        raise UsageError(f"domains are NAME=FOLDER with commas between, not '{asked.domains}'")
    return [build_table_domain(name, open_dataset("road", Path(place))) for name, _, place in named]


def _study_continual(asked: StudyOptions) -> Shown:
    how: dict[str, Any] = {
        "domains": _open_domains(asked),
        "seeds": asked.seeds,
        "resamples": asked.resamples,
    }
    with console.show_progress("continual learning") as progress:
        found = run_continual_study(
            asked.folder, learns=asked.learns, memory_tubes=asked.settings.memory, progress=progress, **how
        )
    names = ", ".join(each.name for each in found.experiences)
    section, text = build_continual_section(found), format_continual_study(found)
    return Shown(text, section, found.as_dict(), "Continual event detection", names)


def _study_countries(asked: StudyOptions) -> Shown:
    how: dict[str, Any] = {
        "domains": _open_domains(asked),
        "seeds": asked.seeds,
        "resamples": asked.resamples,
    }
    with console.show_progress("two countries") as progress:
        found = run_countries_study(asked.folder, progress=progress, **how)
    section, text = build_countries_section(found), format_countries_study(found)
    return Shown(text, section, found.as_dict(), "Two countries", " and ".join(found.names))


def _study_decisions(asked: StudyOptions) -> Shown:
    from roadaware.protocols.decisions import run_decision_study
    from roadaware.reports.decisions import build_decision_section, format_decision_study

    asked.check()
    how: dict[str, Any] = {"scenes": asked.scenes, "towns": asked.settings.towns, "seeds": asked.seeds}
    with console.show_progress("decisions") as progress:
        found = run_decision_study(asked.folder, resamples=asked.resamples, progress=progress, **how)
    towns = f"{found.scenes['test']} unseen simulated towns"
    section, text = build_decision_section(found), format_decision_study(found)
    return Shown(text, section, found.as_dict(), "What the own vehicle does", towns)


def _study_minds(asked: StudyOptions) -> Shown:
    from roadaware.protocols.minds import run_mind_study
    from roadaware.reports.decisions import build_mind_section, format_mind_study

    # Towns alone need no JAAD: it is taken where it was named, or lies in the folder of all data.
    stated = os.environ.get("ROADAWARE_DATA_DIR")
    usual = Path(stated) / "jaad" if stated else None
    source = _find_jaad(asked.data) if asked.data else usual if usual and usual.exists() else None
    asked.check(data=source)
    how: dict[str, Any] = {"scenes": asked.scenes, "towns": asked.settings.towns, "seeds": asked.seeds}
    with console.show_progress("minds") as progress:
        jaad = None if source is None else open_dataset("jaad", source)
        found = run_mind_study(asked.folder, jaad=jaad, resamples=asked.resamples, progress=progress, **how)
    towns = f"{found.scenes['test']} unseen simulated towns"
    section, text = build_mind_section(found), format_mind_study(found)
    return Shown(text, section, found.as_dict(), "What road users have in mind", towns)


def _ablate_crowds(asked: StudyOptions) -> Shown:
    if asked.scenes is None:
        raise UsageError(
            "no scenes: say --scenes DIR, a folder that `roadaware simulate --preset chaos` made"
        )
    workers = asked.spread.gather(least=1)
    asked.check(scenes=asked.scenes, unseen=asked.unseen)
    rows: Any = tuple(ROWS) if asked.names is None else tuple(asked.names)
    how: dict[str, Any] = {"seeds": asked.seeds, "steps": asked.settings.steps, "resamples": asked.resamples}
    study = CrowdStudy(scenes=asked.scenes, unseen=asked.unseen, rows=rows, changes=asked.changes, **how)
    with console.show_progress("crowds") as progress:
        found = run_study(study, asked.folder, workers=workers, progress=progress)
    failed = f"{len(found.failed)} runs failed; the others stand" if found.failed else None
    return Shown(format_crowd_ablation(found), render_crowd_ablation(found), found.as_dict(), failed=failed)


_STUDIES: dict[str, tuple[str, str, Callable[[StudyOptions], Shown]]] = {
    "crowd": ("crowd-ablation", "roadaware-crowd-ablation", _ablate_crowds),
    "when": ("when", "roadaware-crossing-time", _study_time),
    "contest": ("contest", "roadaware-contest", _hold_contest),
    "trajectories": ("trajectories", "roadaware-trajectory-study", _study_trajectories),
    "abroad": ("abroad", "roadaware-abroad", _study_abroad),
    "continual": ("continual", "roadaware-continual", _study_continual),
    "countries": ("countries", "roadaware-countries", _study_countries),
    "decisions": ("decisions", "roadaware-decision-study", _study_decisions),
    "minds": ("minds", "roadaware-mind-study", _study_minds),
}
"""By name: the folder of its own, what its study.json says it is, and the study."""
