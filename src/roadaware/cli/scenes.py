"""`roadaware evaluate actions`, `relations`, `grounding` and `sound`: truth, predictions and the
evaluation.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.analysis.scene_cases import collect_figure_data
from roadaware.analysis.scene_tasks import (
    TASKS,
    SceneTask,
    check_claims,
    check_truth,
    evaluate_claims,
    get_config,
    read_claims,
    set_fields,
)
from roadaware.cli import console, datasets, results
from roadaware.cli.datasets import OPTION
from roadaware.cli.options import USUAL, Common, Outcome, Several
from roadaware.cli.results import NOWHERE, FieldScoring, Kept
from roadaware.datasets import get_reader, read
from roadaware.datasets.ava import parse_excluded_frames, read_labels
from roadaware.datasets.chaotic_world import select_actions
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.issues import Findings
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import read_file
from roadaware.io.text_rows import read_csv_rows
from roadaware.metrics.metric_state import as_json
from roadaware.reports import scene_runs
from roadaware.reports.scene_text import run_text

if TYPE_CHECKING:
    from roadaware.reports.scene_runs import SceneRun
    from roadaware.scenes.tables import Predictions, Scenes

# Truth and predictions of the tasks on scenes as the commands take them: native files, or saved tables.


@dataclass(frozen=True)
class Reading:
    """How the truth is read.

    Args:
        reader: its name; found from the content where None.
        options: of the reader, OPTION=VALUE each.
        labels: the list of labels that numbers stand for.
        excluded: the moments that are not judged.
    """

    reader: str | None = None
    options: tuple[str, ...] = ()
    labels: Path | None = None
    excluded: Path | None = None


@dataclass(frozen=True, eq=False)
class Given:
    """Truth and predictions of a task.

    Args:
        scenes: the truth.
        predictions: the predictions.
        findings: what ought not to be, in words, to how often: rows refused, predictions on what the truth lacks.
        notes: what the reader of the truth wondered at, in words.
        lacking: what predictions or truth have alone, in words.
    """

    scenes: Scenes
    predictions: Predictions
    findings: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def open_task_inputs(task: SceneTask, truth: Path, predictions: Path, how: Reading) -> Given:
    """Truth and predictions, from whatever form they come in.

    Args:
        task: what is asked.
        truth: a native file or folder, or tables that `read -o` saved.
        predictions: native predictions, or a saved set of Predictions.
        how: the truth is read.

    Raises:
        UsageError: if the reader is unknown, not one of the task's, or lacks an option.
        InputError: if truth or predictions cannot be read, or there is no truth to judge against.
    """
    for path in (truth, predictions):
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    scenes = open_truth(task, truth, how)
    claims = open_claims(task, predictions, scenes)
    findings = {
        **count_refusals(scenes, "the truth"),
        **count_refusals(claims, predictions.name),
        **count_warnings(claims),
    }
    lacking = check_claims(task, claims, scenes, str(predictions))
    return Given(scenes, claims, findings, list_warnings(scenes), lacking)


def open_truth(task: SceneTask, path: Path, how: Reading) -> Scenes:
    """The truth of a task.

    Raises:
        UsageError: if the reader is unknown, not one of the task's, or lacks an option.
        InputError: if it cannot be read, or holds nothing that the task asks about.
    """
    if datasets.is_saved(path):
        given = {"--reader": how.reader, "--option": how.options or None}
        named = [option for option, value in given.items() if value is not None]
        if named:
            raise UsageError(f"{', '.join(named)}: {path} holds tables that were read already; leave it away")
        from roadaware.scenes.store import open_scenes

        with console.log_step(f"opening {path}"):
            scenes = open_scenes(path)
        scenes = scenes if how.labels is None else keep_labels(scenes, how.labels)
        scenes = scenes if how.excluded is None else mask_moments(scenes, how.excluded)
    else:
        scenes = _read(_reader(task, path, how.reader), path, how)
    check_truth(task, scenes, str(path))
    return scenes


def keep_labels(scenes: Scenes, path: Path) -> Scenes:
    """The same with the actions of a list alone, by name or number.

    Args:
        scenes: the truth.
        path: the list (pbtxt, txt or csv).

    Raises:
        InputError: if the file cannot be read, or has no action of the truth.
    """

    return select_actions(scenes, read_labels(read_file(path), str(path), Findings()))


def mask_moments(scenes: Scenes, path: Path) -> Scenes:
    """The same, with the moments that a file names marked as not annotated.

    Args:
        scenes: the truth.
        path: csv with video and time, or number of the frame as the set's own files count them.

    Raises:
        InputError: if the file cannot be read.
    """

    found = parse_excluded_frames(read_file(path), path.name, str(path), Findings(), header=True)
    first = int(scenes.meta.notes.get("first_frame", 0))
    aside = found.select("video", frame=pl.col("frame").cast(pl.Int64) - first, aside=pl.lit(value=True))
    known = scenes.videos.select(pl.col("video").cast(pl.String))
    aside = aside.join(known, on="video", how="semi")
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" not in frames.columns:
        frames = frames.with_columns(annotated=pl.lit(value=True))
    frames = frames.join(aside, on=["video", "frame"], how="full", coalesce=True, maintain_order="left_right")
    seen = pl.when(pl.col("aside")).then(statement=False).otherwise(pl.col("annotated"))
    return scenes.with_tables(frames=frames.with_columns(annotated=seen).drop("aside"))


def open_claims(task: SceneTask, path: Path, scenes: Scenes) -> Predictions:
    """The predictions of a task.

    Args:
        task: what is asked.
        path: native predictions, or a saved set of Predictions.
        scenes: what they are about.

    Raises:
        InputError: if they cannot be read, or are about something else.
    """
    with console.log_step(f"reading {path}"):
        if datasets.is_saved(path):
            from roadaware.scenes.store import open_predictions

            return open_predictions(path)
        try:
            return read_claims(task, path, scenes)
        except InputError as error:
            if error.hint:
                raise
            hint = f"{task.name} takes {task.forms}, or tables of Predictions that were saved"
            raise type(error)(error.message, where=error.where, hint=hint) from error


def _reader(task: SceneTask, path: Path, named: str | None) -> str:
    """The reader of the truth: the one that is named, or the one that its content tells.

    Raises:
        UsageError: if it is unknown, or is not one of the task's.
        InputError: if the content tells none, or one of another task.
    """
    if named is not None:
        if named not in task.readers:
            near = difflib.get_close_matches(named.lower(), task.readers, n=1)
            guess = f"; did you mean {near[0]}?" if near else ""
            listed = ", ".join(task.readers)
            raise UsageError(f"--reader of {task.name} is one of {listed}, not {named!r}{guess}")
        return named

    found = detect_dataset_format(path)
    if found not in task.readers:
        others = [other.name for other in TASKS.values() if found in other.readers]
        raise InputError(
            f"expected the truth of {task.name} ({', '.join(task.readers)}), found what looks like {found}",
            where=str(path),
            hint=f"that is for `evaluate {' or '.join(others)}`" if others else None,
        )
    return found


def _read(name: str, path: Path, how: Reading) -> Scenes:
    """A native file or folder. What options name lies outside the source, so with them nothing is cached."""

    held = datasets.parse_reader_options(name, how.options)
    has = get_reader(name).options
    if how.labels is not None:
        if "labels" not in has:
            raise UsageError(f"--labels: annotations of {name} take no list of labels; leave it away")
        held["labels"] = how.labels
    if how.excluded is not None and "excluded" in has:
        held["excluded"] = how.excluded
    with console.show_progress(f"reading {name}") as progress, console.log_step(f"reading {path}"):
        scenes = read(name, path, cache=not held, progress=progress, **held)
    return (
        mask_moments(scenes, how.excluded) if how.excluded is not None and "excluded" not in has else scenes
    )


def count_warnings(claims: Predictions) -> dict[str, int]:
    """What the reader of the predictions wondered at: in words, to how often."""
    found: dict[str, int] = {}
    for item in claims.meta.notes.get("warnings", []):
        first = f", first {item['example']}" if item.get("example") else ""
        found[f"{item['what']}{first}"] = int(item["count"])
    return found


# What happens in each video as a whole, from a file: so that results can be sliced by it.

_HEADER = ["video", "category"]
_HINT = "one row for each video: its name, and one word such as flood or fight"


def add_categories(scenes: Scenes, path: Path) -> Scenes:
    """The truth with the categories of its videos.

    Args:
        scenes: the truth.
        path: csv with video and category; a first row that names the columns may be there.

    Raises:
        InputError: if a row has another form, a video stands there twice, or none of them is in the truth.
    """

    said: dict[str, str] = {}
    for line, cells in read_csv_rows(path):
        if cells == _HEADER and not said:
            continue
        where = f"{path}:{line}"
        if len(cells) != len(_HEADER) or not all(cells):
            raise InputError(f"expected a video and a category, found {cells[:4]}", where=where, hint=_HINT)
        if cells[0] in said:
            raise InputError(f"the video {cells[0][:60]!r} stands there twice", where=where, hint=_HINT)
        said[cells[0]] = cells[1]
    known = scenes.videos["video"].cast(pl.String)
    if not set(said) & set(known):
        first = ", ".join(map(repr, list(said)[:3])) or "nothing"
        there = ", ".join(map(repr, known.head(3).to_list()))
        raise InputError(
            f"no video of the truth is named; the file has {first}, the truth {there}",
            where=str(path),
            hint=_HINT,
        )
    categories = pl.Series("category", [said.get(name) for name in known], dtype=pl.String)
    return scenes.with_tables(videos=scenes.videos.with_columns(categories))


_TRUTH = "The annotations: a native file or folder, or tables that `read -o` saved."
_PREDICTIONS = "The predictions: a native file or folder, or saved Predictions."
_READER = "Name of the annotations' reader. [default: detected from their content]"
_CATEGORIES = "What happens in each video, to slice by: csv with video and category."
_LABELS = "The list of labels that numbers in the csv files stand for (.pbtxt, .txt or .csv)."
_EXCLUDE = "The timestamps that are not judged: csv with video and time."

Truth = Annotated[Path, Parameter(help=_TRUTH)]
Predicted = Annotated[Path, Parameter(help=_PREDICTIONS)]


@Parameter(name="*")
@dataclass(frozen=True)
class Judging(FieldScoring):
    """How a task on scenes is evaluated, and how its truth is read."""

    reader: Annotated[str | None, Parameter(help=_READER)] = None
    option: Annotated[tuple[str, ...], Parameter(help=OPTION), Several] = ()
    categories: Annotated[Path | None, Parameter(help=_CATEGORIES)] = None


AS_USUAL = Judging()


def actions(
    *,
    truth: Truth,
    predictions: Predicted,
    labels: Annotated[Path | None, Parameter(help=_LABELS)] = None,
    exclude: Annotated[Path | None, Parameter(help=_EXCLUDE)] = None,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score who does what: frame-mAP of actions, as on AVA and Chaotic World.

    Needs the annotations (AVA csv, or Chaotic World's with a header) and predictions with a score in the last
    column. --config is `default`, `ava-official` (the code of the ActivityNet challenge), `mmaction2` or
    `paper` (average precision without interpolation). Numbers of two configs are not comparable.

    For example:

        roadaware evaluate actions --truth ava_val_v2.2.csv --predictions predictions.csv \\
            --labels action_list.pbtxt --exclude excluded.csv --config ava-official --json result.json

        roadaware evaluate actions --truth AR_ava_format/annotation --predictions predictions.csv \\
            --resamples 1000 --by category density -o runs/mine
    """
    how = Reading(judging.reader, judging.option, labels, exclude)
    return _run_command(TASKS["actions"], (truth, predictions, how), judging, kept)


def relations(
    *,
    truth: Truth,
    predictions: Predicted,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score who does what to whom: relations between tubes, as on VidVRD, and frame by frame.

    Needs the annotations (VidVRD or VidOR JSON, one file a video) and predictions in the form of the VidVRD
    challenge. --config is `default`, `vidvrd` (tubelets), or `frame-sg-with`, `frame-sg-semi`,
    `frame-sg-no` (frame by frame, with one, some or all predicates per pair). Predictions are judged with their
    own boxes; `--set setting=predcls` judges predicates on the true tubes.

    For example:

        roadaware evaluate relations --truth VidVRD/test --predictions predictions.json \\
            --config vidvrd --json result.json

        roadaware evaluate relations --truth truth --predictions predictions.json \\
            --set setting=predcls --resamples 1000 -o runs/mine
    """
    return _run_command(TASKS["relations"], (truth, predictions, None), judging, kept)


def grounding(
    *,
    truth: Truth,
    predictions: Predicted,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score when and where a sentence happens: overlap in time, and of boxes in space and time.

    Needs the annotations (HC-STVG or VidSTG, raw or as TubeDETR prepares them) and predictions in the form of
    TubeDETR's results or of the HC-STVG challenge. --config is `default`, `tubedetr-hcstvg`,
    `tubedetr-vidstg` or `hcstvg-official`.

    For example:

        roadaware evaluate grounding --truth test_proc.json --predictions predictions.json \\
            --config tubedetr-hcstvg --json result.json

        roadaware evaluate grounding --truth val_annotations.json --predictions predictions.json \\
            --resamples 1000 --by sentence_kind -o runs/mine
    """
    return _run_command(TASKS["grounding"], (truth, predictions, None), judging, kept)


def sound(
    *,
    truth: Truth,
    predictions: Predicted,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score where a sound comes from: consensus IoU of localisation maps, beside the whole image.

    Needs the annotations (VGG-SS JSON, Flickr-SoundNet XML, or Chaotic World's csv of sounds) and a map for
    each image: a folder of .npy files, an .npz archive, or JSON. --config is `default`, `vggss`,
    `flickr` or `paper`. What the whole image and a box in its centre would score stands beside.

    For example:

        roadaware evaluate sound --truth vggss.json --predictions maps.npz \\
            --config vggss --json result.json

        roadaware evaluate sound --truth flickr_test_xml --predictions maps --config flickr \\
            --resamples 1000 --by sound_class -o runs/mine
    """
    return _run_command(TASKS["sound"], (truth, predictions, None), judging, kept)


def _run_command(
    task: SceneTask, given: tuple[Path, Path, Reading | None], judging: Judging, kept: Kept
) -> Outcome:

    lowest = results.parse_bars(judging.fail_under, results.FRACTIONS)
    config = set_fields(task, get_config(task, judging.config), judging.fields)
    truth, predictions, how = given
    both = open_task_inputs(task, truth, predictions, how or Reading(judging.reader, judging.option))
    if judging.categories is not None:
        both = replace(both, scenes=add_categories(both.scenes, judging.categories))
    run = run_scene_task(task, both, config, judging, predictions, details=kept.wanted)
    return write_scene_run(run, kept, lowest, strict=judging.strict, text=run_text)


def run_scene_task(
    task: SceneTask, given: Given, config: object, judging: FieldScoring, predictions: Path, *, details: bool
) -> SceneRun:
    """Truth and predictions judged.

    Args:
        task: what is asked.
        given: truth and predictions.
        config: how they are judged.
        judging: what else is asked for.
        predictions: where the predictions lie, for their name.
        details: whether images are wanted.
    """

    with console.log_step("scoring"):
        result = evaluate_claims(
            task,
            given.predictions,
            given.scenes,
            config,
            where=str(predictions),
            by=judging.by,
            draws=judging.draws,
            seed=judging.seed,
        )
    pictures = {}
    if details:
        with console.log_step("pictures"):
            pictures = collect_figure_data(task.name, given.predictions, given.scenes, result)
    return scene_runs.SceneRun(
        predictions.stem or str(predictions),
        task,
        ", ".join([judging.config, *judging.fields]),
        result,
        judging.draws,
        judging.seed,
        {
            "lacking": list(given.lacking),
            "truth": {
                "dataset": given.scenes.meta.dataset,
                "digest": scene_runs.digest_truth(given.scenes),
                "notes": list(given.notes),
            },
            "claims": [predictions.name],
            "by": list(judging.by),
            "findings": given.findings,
        },
        pictures,
    )


def write_scene_run(
    run: SceneRun,
    kept: Kept,
    lowest: Mapping[str, float],
    *,
    strict: bool,
    text: Callable[[SceneRun], str],
    odd: Sequence[str] = (),
) -> Outcome:
    """Write a run where it is kept, and tell of it.

    Args:
        run: what was judged.
        kept: where it is written.
        lowest: metric to the lowest value that passes.
        strict: whether what was refused is a failure.
        text: the run for people.
        odd: what else is a failure then, in words.

    Raises:
        UsageError: if a metric with a bar is unknown.
        DiskError: if a file cannot be written.
    """

    metrics = run.result.values()
    results.check(lowest, metrics)
    if kept.wanted:
        with console.log_step("report"):
            page = scene_runs.render_scene_runs([run])
        kept.write(lambda: scene_runs.build_scene_run_files(run, page), page)
    failed = results.describe_failure(metrics, lowest)
    if failed is None and strict:
        failed = _findings(run.facts["findings"], odd)
    return Outcome(text(run), {**as_json(run.result), "run": scene_runs.build_scene_run_facts(run)}, failed)


def _findings(found: Mapping[str, int], odd: Sequence[str]) -> str | None:
    """What `--strict` turns into exit code 1, in words."""
    told = [*(f"{count:,} {what}" for what, count in found.items()), *odd]
    return f"--strict: {'; '.join(told)}" if told else None
