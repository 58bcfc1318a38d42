"""`roadaware demo`: every step once, on synthetic scenes or real annotations, or some on short videos."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from cyclopts import Parameter

from roadaware import api
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
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.demo import scenes as synthetic
from roadaware.demo import watching
from roadaware.demo.scenes import BOX_OVERLAP, get_means, judge_tubes
from roadaware.demo_data import VIDEOS_FILE, write_demo
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.errors import InputError, UsageError
from roadaware.formats.score_tables import format_samples, format_scores
from roadaware.io.files import build_disk_error
from roadaware.io.folders import encode_json, is_vacant, read_marker, write_result_folder, write_text
from roadaware.io.processes import stop_with_parent
from roadaware.metrics.pedestrians import evaluate_samples
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.reports import terminal
from roadaware.reports.event_pages import build_event_run_files, build_event_run_section
from roadaware.reports.event_text import format_event_runs
from roadaware.reports.page import Note, Section, report
from roadaware.reports.run_pages import format_headline, format_reproduction, format_runs, run_section
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions

if TYPE_CHECKING:
    from roadaware.analysis.evaluation.runs import EventRun, Run
    from roadaware.demo_data import DemoFacts
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes
    from roadaware.tasks.pedestrians import Baseline


FORMAT = "roadaware-demo"
MARKER = "demo.json"


class Demo:
    """Prints the steps as they are made, so that nobody waits in front of an empty screen.

    Args:
        folder: of the demo.
        resamples: resamples of each interval.
        seed: of the demo.
        aloud: whether to print; not where JSON alone is asked for.
    """

    def __init__(self, folder: Path, resamples: int, seed: int, *, aloud: bool = True) -> None:
        self.folder, self.resamples, self.seed = folder, resamples, seed
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

    def write_marker(self, names: Sequence[str]) -> None:
        """Say in a marker what is about to be written, before anything of it is written.

        However the demo ends, the next one finds the marker and knows that these names are its own.

        Args:
            names: the files and folders right in the folder that will be written.

        Raises:
            DiskError: if it cannot be written there.
            UsageError: if something stands there that is not a demo's.
        """
        found = read_marker(self.folder / MARKER, FORMAT)
        if found is None and self.folder.is_dir() and not is_vacant(self.folder):
            raise UsageError(
                f"{self.folder} holds other things (no {MARKER} of a demo); name a new or empty folder with -o"
            )
        listed = found.get("files") if found else None
        ours = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        for name in names:
            if name not in ours and (self.folder / name).exists():
                raise UsageError(
                    f"{self.folder / name} was not written by a demo; move it, or name another folder with -o"
                )
        write_text(self.folder / MARKER, encode_json({"format": FORMAT, "files": sorted({*ours, *names})}))

    def remove_folders(self, names: Sequence[str]) -> None:
        """Remove folders of an earlier demo, which `write_marker` has found to be its own.

        Raises:
            DiskError: if the disk refuses.
        """
        for name in names:
            try:
                if (self.folder / name).exists():
                    shutil.rmtree(self.folder / name)
            except OSError as error:
                raise build_disk_error(self.folder / name, 1, error) from error


VIDEOS, WATCHED, JUDGED, PAGE = "videos", watching.FOLDER, "judged", "report.html"
FOLDERS = (VIDEOS, WATCHED, JUDGED)
TUBE_OVERLAP = "0.2"
_KIND = "agent"
VIDEOS_SEED = 3
"""See demo_data/videos.md."""
_RESAMPLES = 20


def run_short(demo: Demo) -> dict[str, Any]:
    """Watch, judge, show; JSON-ready facts.

    Raises:
        DiskError: if something cannot be written.
    """
    demo.remove_folders(FOLDERS)
    truth, root = demo.folder / VIDEOS, demo.folder / WATCHED
    unpack_videos(truth)
    with _compile_beside(truth):
        scenes = open_dataset(SYNTHETIC, truth)
        name, watched, why = _predict(demo, truth, scenes)
    tables = root / watching.TABLES
    demo.step(
        "Judge what was found",
        f"evaluate road --truth {truth} --predictions {tables} --frame-thresholds {BOX_OVERLAP} "
        f"--video-thresholds {TUBE_OVERLAP} --resamples {demo.resamples} -o {demo.folder / JUDGED}",
    )
    with console.log_step("evaluation"):
        run = judge_tubes(demo, truth, tables, name, WATCHED, (TUBE_OVERLAP,), details=True)
    demo.say(format_event_runs([run]))
    with console.log_step("report"):
        section = _build_section(demo, run, truth, scenes, watched, why)
        write_text(demo.folder / PAGE, report([section], title="roadaware: Demo"))
        # The run as `evaluate -o` writes it; its page is the demo's
        folder = demo.folder / JUDGED
        words = "The page of this run is report.html in the folder above; roadaware report makes one of the run alone."
        page = report([Section(run.name, (), (Note(words),))], title=run.name)
        write_result_folder(folder, build_event_run_files(run, page), overwrite=False)
    demo.step("Look at videos, boxes and errors", f"view {demo.folder / JUDGED} {root} {truth}")
    data = {"watched": watched, "values": get_means(run)}
    return {**data, **({"left_out": why} if why else {})}


def unpack_videos(folder: Path) -> None:
    """Write the videos that came with roadaware, and what is true of them.

    Args:
        folder: new.

    Raises:
        DiskError: if it cannot be written.
    """
    try:
        with zipfile.ZipFile(VIDEOS_FILE) as packed:
            packed.extractall(folder)
    except OSError as error:
        raise build_disk_error(folder, 1, error) from error


def _predict(demo: Demo, truth: Path, scenes: Scenes) -> tuple[str, dict[str, dict[str, Any]], str]:
    """Watch every video; where nothing can watch, simulate a detector that errs, and say why."""
    root, videos = demo.folder / WATCHED, watching.find_films(scenes, truth)
    first, *others = videos
    command = f"watch {videos[first]} --name {first} --output {root / first}"
    try:
        weights = watching.find_detector()
        demo.step(f"Watch {len(videos)} videos that the bundled detector has not seen", command)
        demo.say(f"   and {others[0]} to {others[-1]} in the same way")
        watched = watching.watch_videos(root, videos, weights)
    except (InputError, UsageError) as error:
        demo.step("Simulate what a detector finds: none can watch the videos here", "doctor")
        demo.say(f"   {error}")
        found = simulate_detections(scenes, seed=demo.seed, detector=Detector(size=None))
        save(api.link(found), root / watching.TABLES, overwrite=True)
        return "simulated detector", {}, str(error)
    demo.say(watching.format_watched(watched))
    return weights.stem, watched, ""


def _build_section(
    demo: Demo, run: EventRun, truth: Path, scenes: Scenes, watched: dict[str, dict[str, Any]], why: str
) -> Section:
    if watched:
        videos = watching.find_films(scenes, truth)
        return watching.build_watched_section(run, demo, videos, scenes, watched, VIDEOS_SEED)
    section = build_event_run_section(run, (_KIND,))
    words = f"Nothing could watch the videos here: {why}. The detections are simulated, and err."
    return replace(section, blocks=(Note(words, "doubt"), *section.blocks))


# Kernels are compiled once for each installation, which takes longer than everything else here: a second core
# takes those of the evaluation while the first compiles the linker and watches.


@contextmanager
def _compile_beside(truth: Path) -> Iterator[None]:
    """Compile what judges in a process of its own, where a second core is free for it."""
    if len(os.sched_getaffinity(0)) < 2:
        yield
        return
    with TemporaryDirectory() as folder:
        process = multiprocessing.get_context("spawn").Process(
            target=_compile_kernels, args=(truth, Path(folder)), daemon=True
        )
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()


def _compile_kernels(truth: Path, folder: Path) -> None:
    """Ask the predictors of nobody, and judge the truth as if it was predicted, so that the kernels lie in the cache."""
    stop_with_parent()
    logging.getLogger("roadaware").setLevel(logging.ERROR)
    with suppress(ImportError, InputError, UsageError):
        from roadaware.online.crossing_forecaster import open_foresight

        open_foresight([WEIGHTS / name for name in PREDICTORS]).warm_up()
    scenes = open_dataset(SYNTHETIC, truth)
    certain = {
        name: getattr(scenes, name).with_columns(score=pl.lit(0.5, pl.Float64))
        for name in ("boxes", "labels", "tubes", "tube_labels")
    }
    meta = replace(scenes.meta, rows_read={}, source_digest="", notes={})
    predicted = Predictions(**certain, videos=scenes.videos, frames=scenes.frames, meta=meta)
    save(predicted, folder / "tables")
    silent = Demo(folder, _RESAMPLES, 0, aloud=False)
    judge_tubes(silent, truth, folder / "tables", "truth", "truth", (TUBE_OVERLAP,), details=True)


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
    resamples: Resamples = 200,
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
    shown = Demo(folder, resamples, seed, aloud=str(common.json) != "-")
    whole = (_DATA, *_SYNTHETIC, _SCORES, _SAMPLES, _PAGE)
    shown.write_marker((_PAGE,) if data else whole if all_steps else (*FOLDERS, _PAGE))
    if data is not None:
        found = _run_real(shown, data)
    else:
        found = _run_synthetic(shown) if all_steps else run_short(shown)
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
    tables = reproduce_folder(data, resamples=0, baselines=trained)
    demo.step(
        "Compare the baselines with the released scores",
        f"reproduce iv2024 --data {data} --resamples {demo.resamples}",
    )
    with console.log_step("comparing with the released scores"):
        pairs = compare_released(tables, resamples=max(demo.resamples, 1), seed=demo.seed)
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
        trained[protocol] = train_baselines(cut, task, config, resamples=demo.resamples, seed=demo.seed)
        runs = _build_runs(demo, {protocol: trained[protocol]}, config)
        demo.say(format_runs(runs, _HEADLINES))
        pairs = compare_baselines(runs, resamples=demo.resamples, seed=demo.seed)
        demo.say("\n".join(map(format_headline, pairs)))
    return trained


def _build_runs(demo: Demo, trained: _Trained, config: ConfigName = "reference") -> list[Run]:
    return [
        build_baseline_run(item, protocol, demo.resamples, demo.seed, config)
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
        sections += map(
            build_comparison_section, compare_baselines(runs, resamples=demo.resamples, seed=demo.seed)
        )
    return sections


def _write_report(demo: Demo, sections: Sequence[Section], title: str) -> None:
    with console.log_step("report"):
        write_text(demo.folder / _PAGE, report(sections, title=f"roadaware: {title}"))


def _list_values(found: Sequence[Run]) -> dict[str, dict[str, float | None]]:
    return {f"{run.config.task} {run.name}": run.result.values() for run in found}
