"""`roadaware demo`: every step once, on scenes made up on the spot or on real annotations."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.evaluation.pedestrians import match_file
from roadaware.cli import console, datasets, outputs
from roadaware.cli.audit import run_audit
from roadaware.cli.baseline import as_run, compare_baselines, train
from roadaware.cli.demo_scenes import FOLDER, build_scenes_section, make_up, run_chaos, run_events
from roadaware.cli.demo_watch import watch_scenes
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
from roadaware.cli.reproduce import compare_released, reproduce_folder
from roadaware.demo_data import write_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats.score_tables import format_samples, format_scores
from roadaware.io.files import build_disk_error
from roadaware.io.folders import encode_json, is_vacant, read_marker, write_text
from roadaware.metrics.pedestrians import evaluate_samples
from roadaware.reports import terminal
from roadaware.reports.page import report
from roadaware.reports.reproduction_text import format_reproduction
from roadaware.reports.run_pages import run_section
from roadaware.reports.run_text import format_headline, format_runs
from roadaware.scenes.sampling import get_protocol, sample

if TYPE_CHECKING:
    from roadaware.analysis.audit import Audit
    from roadaware.analysis.evaluation.runs import Run
    from roadaware.demo_data import DemoFacts
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes
    from roadaware.tasks.pedestrians import Baseline

_Trained = dict[str, dict[str, "Baseline"]]

_HEADLINES = ("accuracy", "balanced_accuracy", "f1", "average_precision", "auc", "soft_f1", "hard_f1")
_WHERE: dict[ConfigName, str] = {"reference": "", "default": " where the labels are honest"}
_DATA, _EVENTS, _CHAOS, _WATCHED = "data", "events", "chaos", "watched"
_MADE_UP, _PAGE = "made-up", "report.html"
_SCORES, _SAMPLES = "scores.csv", "samples.csv"
_FOLDER = "Where dataset, runs and report go; an earlier demo there, finished or not, is replaced."
_SEED = "Seed of the synthetic scenes and of the resamples."
_OVERWRITE = "Not needed: an earlier demo is replaced anyway, and nothing else ever."


def demo(
    *,
    data: Annotated[Path | None, Parameter(help="A folder with jaad/ and pie/ as released.")] = None,
    folder: Annotated[Path, Parameter(help=_FOLDER), Output, outputs.DEMO] = Path("runs/demo"),
    draws: Resamples = 200,
    seed: Annotated[int, Parameter(help=_SEED, validator=WHOLE_SEED)] = 0,
    overwrite: Annotated[bool, Parameter(help=_OVERWRITE), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Run every step once: watch, read, audit, train, link, evaluate, report. Takes a minute or two.

    Without --data it first simulates short scenes: traffic, people at crossings and a crowd. The bundled
    detector watches the traffic, which it has not seen before, and is scored. On the scenes the
    demo audits and trains, links detections to tubes and scores them, and scores actions, relations, sentences
    and sounds in every published way. Then it writes a small dataset in the format of JAAD, with known
    defects, and shows that the audit finds them. With --data it takes the real annotations in DIR/jaad (and
    DIR/pie), and ends with the published tables, obtained beside printed.

    For example:

        roadaware demo

        roadaware demo --data DATA -o runs/real
    """

    made = (_DATA, _EVENTS, _CHAOS, _MADE_UP, _WATCHED, _SCORES, _SAMPLES)
    write_marker(folder, (*made, _PAGE) if data is None else (_PAGE,))
    show = _Show(aloud=str(common.json) != "-")
    found = _made_up(folder, show, draws, seed) if data is None else _real(data, folder, show, draws, seed)
    page = folder / _PAGE
    show.say(
        f"\nThe report: {page}\nAll of it took {terminal.format_duration(time.monotonic() - show.started_s)}."
    )
    return Outcome("", {**found, "report": str(page)})


class _Show:
    """Prints the steps as they are made, so that nobody waits in front of an empty screen.

    Args:
        aloud: whether to print; not where JSON alone is asked for.
    """

    def __init__(self, *, aloud: bool) -> None:
        self.started_s = time.monotonic()
        self._aloud = aloud
        self._step = 0

    def step(self, title: str, command: str) -> None:
        """A new step, and the command that would do it alone."""
        self._step += 1
        heading = terminal.apply_style(f"{self._step}. {title}", "title")
        self.say(f"{chr(10) * (self._step > 1)}{heading}\n   $ roadaware {terminal.format_cell(command)}")

    def say(self, words: str) -> None:
        """A part of the result."""
        if self._aloud:
            console.print_result(words)


def _made_up(output: Path, show: _Show, draws: int, seed: int) -> dict[str, Any]:
    """The demo on scenes and a dataset of our own."""
    from roadaware.reports.audit import build_data_section

    remove_folders(output, (_MADE_UP, _EVENTS, _CHAOS, _WATCHED))
    made = make_up(output, show, seed)
    where = {preset: output / FOLDER / preset for preset in made}
    on_films, of_films = watch_scenes(output, where["road"], made["road"], show, draws, seed)
    wanted, of_wishes = _wishes(made["crossing"], where["crossing"], show, draws, seed)
    on_road, of_road = run_events(output, where["road"], made["road"], show, draws, seed)
    on_crowd, of_crowd = run_chaos(output, where["chaos"], made["chaos"], show, draws, seed)
    planted, of_planted = _run_planted_defects(output, show, draws, seed)
    shown = [build_scenes_section(output, made), *of_films]
    shown += [build_data_section(scenes) for scenes in made.values()]
    _write_report(output, [*shown, *of_wishes, *of_road, *of_crowd, *of_planted], "Demo")
    sizes = {
        preset: {name: len(rows) for name, rows in each.filled().items()} for preset, each in made.items()
    }
    found = {"watched": on_films, "intention": wanted, "events": on_road, "chaos": on_crowd}
    return {"made_up": sizes, **found, **planted}


def _wishes(
    scenes: Scenes, root: Path, show: _Show, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """Do they want to cross? An audit and baselines, where the synthetic crossings have samples enough."""
    show.step("Audit the synthetic crossings", f"audit pie {root}")
    sections: list[Section] = []
    try:
        sections.append(_audit(scenes, show, "pie-intention@iv2024")[1])
        trained = _baselines(scenes, show, root, draws, seed, dataset="pie", tasks=("intention",))
    except (InputError, UsageError) as error:
        show.say(f"   too little was simulated for that: {error}")
        return {}, sections
    return _values(_runs(trained, draws, seed)), [*sections, *_sections(trained, draws, seed)]


def _run_planted_defects(
    output: Path, show: _Show, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """A dataset in the form of JAAD with known defects: are they found, and what do baselines make of it?"""

    from roadaware.reports.audit import build_data_section

    root = output / _DATA
    with console.show_progress("writing a dataset") as progress:
        facts = write_demo(root, seed=seed, progress=progress)
    show.step("Read annotations with planted defects", f"read jaad {root}")
    scenes = _read(root, show)
    show.step("Audit: does it find what was planted?", f"audit jaad {root}")
    audit, audited = _audit(scenes, None)
    checks = compare_planted_defects(facts, audit, scenes)
    show.say(format_checks(checks))
    trained = _baselines(scenes, show, root, draws, seed, tasks=("action",))
    found = _runs(trained, draws, seed)
    _own_scores(output, found[0], show)
    sections = [build_data_section(scenes), audited, *_sections(trained, draws, seed)]
    told = {"pedestrians": facts.pedestrians, "boxes": facts.boxes, "models": _values(found)}
    return {"planted": [check.as_dict() for check in checks], **told}, sections


def _real(data: Path, output: Path, show: _Show, draws: int, seed: int) -> dict[str, Any]:
    """The demo on real annotations, up to the published tables."""
    from roadaware.reports.audit import build_data_section
    from roadaware.reports.reproduction import build_reproduction_report

    root = data / "jaad"
    show.step("Read", f"read jaad {root}")
    scenes = _read(root, show)
    show.step("Audit", f"audit jaad {root}")
    audit, audited = _audit(scenes, show)
    trained = _baselines(scenes, show, root, draws, seed)
    honest = _baselines(scenes, show, root, draws, seed, "default")
    tables = reproduce_folder(data, draws=0, baselines=trained)
    show.step(
        "Compare the baselines with the released scores",
        f"reproduce iv2024 --data {data} --resamples {draws}",
    )
    pairs = compare_released(tables, draws=max(draws, 1), seed=seed)
    show.say("\n".join(f"{name}\n{format_headline(pair)}" for name, pair in pairs))
    sections = [
        build_data_section(scenes),
        audited,
        *_sections(trained, draws, seed),
        *build_reproduction_report(tables),
        *_sections(honest, draws, seed, "default"),
    ]
    _write_report(output, sections, "Demo on real annotations")
    show.step("Reproduce the published tables", f"reproduce iv2024 --data {data}")
    show.say(format_reproduction(tables))
    counts = {severity: len(audit.of_severity(severity)) for severity in ("serious", "warning", "note")}
    return {
        "audit": counts,
        "models": _values(_runs(trained, draws, seed)),
        "models_where_labels_are_honest": _values(_runs(honest, draws, seed, "default")),
        "reproduced": tables.counts,
    }


def _read(root: Path, show: _Show) -> Scenes:
    scenes = datasets.open_dataset("jaad", root)
    sizes = ", ".join(f"{len(frame):,} {name}" for name, frame in scenes.filled().items())
    show.say(f"   {sizes}")
    return scenes


def _audit(scenes: Scenes, show: _Show | None, protocol: str = "jaad-action@iv2024") -> tuple[Any, Section]:
    from roadaware.reports.audit import audit_section

    found = run_audit(scenes, protocol, "reference")
    rows = [(item.severity, item.name, item.count, item.out_of) for item in found.findings]
    if show is not None:
        show.say(terminal.format_table(["severity", "finding", "count", "of"], rows, left=2))
    return found, audit_section(found)


def _baselines(
    scenes: Scenes,
    show: _Show,
    root: Path,
    draws: int,
    seed: int,
    config: ConfigName = "reference",
    *,
    dataset: str = "jaad",
    tasks: tuple[TaskName, ...] = ("action", "risk"),
) -> _Trained:
    """The baselines of some tasks, trained and judged, by protocol."""

    trained: _Trained = {}
    for task in tasks:
        protocol = f"{dataset}-{task}@iv2024"
        command = f"baseline {dataset} {root} --task {task} --config {config}"
        show.step(f"Baselines without pixels{_WHERE[config]}: {task}", command)
        cut = sample(scenes, get_protocol(protocol, config))
        trained[protocol] = train(cut, task, config, draws=draws, seed=seed)
        runs = _runs({protocol: trained[protocol]}, draws, seed, config)
        show.say(format_runs(runs, _HEADLINES))
        show.say("\n".join(format_headline(pair) for pair in compare_baselines(runs, draws=draws, seed=seed)))
    return trained


def _runs(trained: _Trained, draws: int, seed: int, config: ConfigName = "reference") -> list[Run]:

    return [
        as_run(item, protocol, draws, seed, config)
        for protocol, items in trained.items()
        for item in items.values()
    ]


def _own_scores(output: Path, run: Run, show: _Show) -> None:
    """A model's scores as csv files, and the command that judges them."""

    scores, samples = output / _SCORES, output / _SAMPLES
    state = run.state
    if state.tte_frames is None or state.video is None:
        raise TypeError("samples of a protocol have times to event and videos")
    write_text(scores, format_scores(state.scores))
    write_text(samples, format_samples(state.truth, state.pedestrian, state.tte_frames, state.video))
    command = f"evaluate pedestrians --scores {scores} --samples {samples} --task action --config reference"
    show.step("Evaluate scores of your own", command)
    judged = match_file(scores, samples, "action").state
    again = evaluate_samples(judged, run.config)
    names = ("auc", "average_precision", "balanced_accuracy", "f1")
    values = ", ".join(f"{name} {terminal.format_number(again.value(name))}" for name in names)
    show.say(f"   {run.name} from its csv file: {values}")


def _sections(trained: _Trained, draws: int, seed: int, config: ConfigName = "reference") -> list[Section]:
    """A section per run and per pair of runs; the first also shows one pedestrian over time."""
    from roadaware.reports.evaluation import build_comparison_section

    sections: list[Section] = []
    for protocol, items in trained.items():
        runs = _runs({protocol: items}, draws, seed, config)
        scenes = None if sections else next(iter(items.values())).scenes
        sections += [run_section(run, scenes=None if k else scenes) for k, run in enumerate(runs)]
        sections += [
            build_comparison_section(pair) for pair in compare_baselines(runs, draws=draws, seed=seed)
        ]
    return sections


def _write_report(output: Path, sections: list[Section], title: str) -> None:

    with console.log_step("report"):
        write_text(output / _PAGE, report(sections, title=f"roadaware: {title}"))


def _values(found: list[Run]) -> dict[str, dict[str, float | None]]:
    return {f"{run.config.task} {run.name}": run.result.values() for run in found}


# What was planted into the demo's dataset, beside what reader and audit found.

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


@dataclass(frozen=True)
class Check:
    """One kind of defect.

    Args:
        defect: what was planted.
        planted: how often.
        found: how often it was found.
        by: the audit's check, or the reader.
    """

    defect: str
    planted: int
    found: int
    by: str

    def as_dict(self) -> dict[str, Any]:
        """The check, JSON-ready."""
        return asdict(self)


def compare_planted_defects(facts: DemoFacts, audit: Audit, scenes: Scenes) -> list[Check]:
    """Each kind of defect with both counts.

    Args:
        facts: what was planted.
        audit: of the same dataset.
        scenes: as read, with what was refused.
    """
    planted = facts.counts()
    checks = []
    for defect, name in _FOUND_BY.items():
        finding = audit.finding(name)
        checks.append(Check(defect, planted[defect], finding.count if finding else 0, f"audit: {name}"))
    reasons = scenes.rejected["reason"].to_list()
    for defect, words in _REFUSED_FOR.items():
        found = sum(words in reason for reason in reasons)
        checks.append(Check(defect, planted[defect], found, "reader: refused, with the reason"))
    return checks


def format_checks(checks: Sequence[Check]) -> str:
    """The checks as a table."""
    rows = [
        (item.defect, item.by, item.planted, item.found, "ok" if item.planted == item.found else "MISSED")
        for item in checks
    ]
    header = ["planted defect", "found by", "planted", "found", ""]
    return terminal.format_table(
        header, rows, left=2, colour=lambda row: "bad" if row[-1].strip() == "MISSED" else None
    )


# The demo's folder: what in it is the demo's, so that the next one may start over.

FORMAT = "roadaware-demo"
MARKER = "demo.json"


def write_marker(folder: Path, names: Sequence[str]) -> None:
    """Say in a marker what the demo is about to write, before anything of it is written.

    However the demo ends, the next one finds the marker and knows that these names are its own.

    Args:
        folder: where the demo goes: new, empty, or that of an earlier demo.
        names: the files and folders right in it that will be written.

    Raises:
        DiskError: if it cannot be written there.
        UsageError: if something stands there that is not a demo's.
    """
    found = read_marker(folder / MARKER, FORMAT)
    if found is None and folder.is_dir() and not is_vacant(folder):
        raise UsageError(
            f"{folder} holds other things (no {MARKER} of a demo); name a new or empty folder with -o"
        )
    listed = found.get("files") if found else None
    ours = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    for name in names:
        if name not in ours and (folder / name).exists():
            raise UsageError(
                f"{folder / name} was not written by a demo; move it, or name another folder with -o"
            )
    write_text(folder / MARKER, encode_json({"format": FORMAT, "files": sorted({*ours, *names})}))


def remove_folders(folder: Path, names: Sequence[str]) -> None:
    """Remove folders of an earlier demo, which `write_marker` has found to be its own.

    Args:
        folder: of the demo.
        names: folders right in it.

    Raises:
        DiskError: if the disk refuses.
    """
    for name in names:
        try:
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        except OSError as error:
            raise build_disk_error(folder / name, 1, error) from error
