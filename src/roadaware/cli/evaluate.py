"""`roadaware evaluate`: how good are these predictions, one way for all; `calibration`: what scores mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from roadaware.analysis.compare import compute_agreement
from roadaware.analysis.evaluation import events
from roadaware.analysis.evaluation.corner_cases import Classes, Routing, evaluate_corner_files
from roadaware.analysis.evaluation.event_inputs import NETWORK_SIZE, EventSet, parse_size
from roadaware.analysis.evaluation.pedestrians import (
    COLUMNS,
    MatchedScores,
    SampleSource,
    evaluate_score_file,
    group_by_scenario,
    group_by_time,
    match_file,
)
from roadaware.analysis.evaluation.runs import Run
from roadaware.analysis.evaluation.scenes import Reading, SceneRequest, evaluate_scene_files
from roadaware.analysis.excerpts import MOST_CLIPS, check_clips, list_film_places
from roadaware.analysis.scene_tasks import TASKS
from roadaware.cli import console
from roadaware.cli.options import (
    LOCAL,
    OPTION,
    ConfigName,
    MetricConfig,
    Outcome,
    Resamples,
    Seed,
    Several,
    Spread,
    Stated,
    Switch,
    TaskName,
    add_commands,
    create_app,
    validate_range,
)
from roadaware.cli.results import (
    NOWHERE,
    SCALES,
    UNKEPT,
    Images,
    ImageSize,
    Kept,
    ResultFolder,
    check_bars,
    describe_failure,
    format_view_command,
    parse_bars,
)
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.reports import runs
from roadaware.reports.page import report
from roadaware.reports.run_kinds import KINDS
from roadaware.reports.run_pages import build_agreement_section, list_agreement_columns, list_agreement_rows
from roadaware.reports.runs import encode_parquet
from roadaware.reports.terminal import format_table
from roadaware.scenes.sampling import Iv2024, list_task_answers

# The one way of every subject: judge, hold against bars, write, tell.


def _evaluate(
    subject: str,
    judge: Callable[[], Any],
    fail_under: Sequence[str],
    kept: Kept,
    *,
    strict: bool = False,
    judged: Sequence[Path] = (),
    reader: str = "",
) -> Outcome:
    """Judge, write what is kept, and tell of it.

    Args:
        subject: the kind of the run, see `KINDS`.
        judge: opens ground truth and predictions, and judges them.
        fail_under: METRIC=VALUE each.
        kept: where the run is written.
        strict: whether what was refused is a failure.
        judged: ground truth and predictions of a run that `view` opens.
        reader: of that ground truth, where it is as it was released.

    Raises:
        UsageError: if a bar is none.
        DiskError: if a file cannot be written.
    """
    kind, scale = KINDS[subject], SCALES[subject]
    bars = parse_bars(fail_under, scale)
    run = judge()
    metrics = kind.metrics(run)
    if not scale.known:  # those were checked before anything was judged
        check_bars(bars, metrics, scale)
    if kept.wanted:
        with console.log_step("clips"):
            run = kind.draw(run)
        with console.log_step("report"):
            page = kind.render([run], [])
        kept.write_both(page, lambda: kind.build_files(run, page))
    failed = describe_failure(metrics, bars, scale)
    if failed is None and strict and (found := kind.list_findings(run)):
        failed = f"--strict: {'; '.join(found)}"
    look = ""
    if kept.folder is not None and judged:
        look = format_view_command(kept.folder, *judged, reader=reader)
    return Outcome(kind.format_run(run), kind.build_json(run), failed, look)


_BY = "Also by slice: split, or what the documentation of the subject lists (weather, density, category ...)."
_BARS = "METRIC=VALUE on the scale that is printed: exit with 1 if a metric is lower, or undefined."
_STRICT = "Exit with 1 if ground truth or predictions were refused, or they do not fit each other."

_CLIPS = "Moments of the report that are shown as clips of the videos, the worst first; 0 for none."
_MEDIA = "Where the videos lie: the folder that paths in the annotations start from, or a video. [default: with the data]"

Clips = Annotated[int, Parameter(help=_CLIPS)]
Media = Annotated[Path | None, Parameter(help=_MEDIA)]
Bars = Annotated[tuple[str, ...], Parameter(name="--fail-under", help=_BARS), Several]
By = Annotated[tuple[str, ...], Parameter(help=_BY), Several]
Strict = Annotated[bool, Parameter(help=_STRICT), Switch]

# Road events: predicted boxes, tubes and actions of the vehicle.

_TRUTH = "The annotations: a release's file, an export of VoTT, or tables that `read -o` saved of either."
_PREDICTIONS = (
    "The predictions: tables that `link` wrote, a folder of per-frame detections, a tube file (.pkl), COCO "
    "results (.json) or MOT text (.txt); detections and tubes may be two of them."
)
_SPLIT = "The split that is evaluated; `all` for every video. [default: all of ROAD, `test` of UCF101-24]"
_KINDS = (
    "Only these kinds of labels: agentness agent action location duplex event, or as the files name them. "
    "[default: all that both sides know]"
)
_AT = "Overlaps that count as a hit, as 0.5 or 0.5:0.95 (the mean over ten)."
_OVERLAP = "How tubes are compared: in space and time, in space, in time."
_COMPOSITES = (
    "Scores of duplexes and events: as predicted (joint), or products of those of their parts (product)."
)
_ONLY = "Judge only boxes and the vehicle's action (frame), or only tubes (video)."
_TRACKING = "Also HOTA, identity and CLEAR metrics of the paths, whatever their labels."
_MIN_SCORE = "Lowest score of a box in the paths that --tracking judges. [default: the detector's threshold]"
_REQUIREMENTS = (
    "Also how often boxes and tubes violate these logical requirements, by threshold: ROAD-R's in either form, or "
    "your own; two files have to say the same."
)
_CLOCK = Group("Streaming accuracy", sort_key=50)
_LATENCY = (
    "Seconds from the start of work on a frame to its output: judge also what was known at each frame on a "
    "simulated clock. Detections are linked again, in the frames that were worked on."
)
_SCHEDULER = (
    "One worker takes the newest frame when it is free (latest, the default), or all frames one after the "
    "other (queue); or each frame has a worker of its own (every)."
)
_FPS = "Frames per second, for videos of which the truth tells neither rate nor times."

EventTruth = Annotated[Path, Parameter(help=_TRUTH)]
EventPredictions = Annotated[list[Path], Parameter(help=_PREDICTIONS), Several]
Split = Annotated[str | None, Parameter(help=_SPLIT), Stated]


@Parameter(name="*")
@dataclass(frozen=True)
class EventOptions:
    """How road events are judged; fields are called as those of `EventRequest`."""

    by: By = ()
    resamples: Resamples = 1000
    seed: Seed = 0
    fail_under: Bars = ()
    strict: Strict = False
    config: MetricConfig = "default"
    kinds: Annotated[tuple[str, ...], Parameter(help=_KINDS), Several, Stated] = ()
    frame_thresholds: Annotated[tuple[str, ...], Parameter(help=_AT), Several] = events.TENTH
    video_thresholds: Annotated[tuple[str, ...], Parameter(help=_AT), Several] = events.TENTH
    overlap: Annotated[tuple[events.Overlap, ...], Parameter(help=_OVERLAP), Several] = ("stiou",)
    composites: Annotated[Literal["joint", "product"] | None, Parameter(help=_COMPOSITES)] = None
    only: Annotated[events.Level | None, Parameter(help=_ONLY)] = None
    tracking: Annotated[bool, Parameter(help=_TRACKING), Switch] = False
    min_score: Annotated[float | None, Parameter(help=_MIN_SCORE)] = None
    requirements: Annotated[tuple[Path, ...], Parameter(help=_REQUIREMENTS), Several] = ()
    latency: Annotated[float | None, Parameter(help=_LATENCY, group=_CLOCK)] = None
    scheduler: Annotated[events.Scheduler | None, Parameter(help=_SCHEDULER, group=_CLOCK)] = None
    fps: Annotated[float | None, Parameter(help=_FPS, group=_CLOCK)] = None
    size: ImageSize = NETWORK_SIZE
    clips: Clips = MOST_CLIPS
    media: Media = None


EVENTS = EventOptions()


def road(
    *,
    truth: EventTruth,
    predictions: EventPredictions,
    split: Split = None,
    images: Images = None,
    judging: EventOptions = EVENTS,
    spread: Spread = LOCAL,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score road events: frame-mAP, video-mAP and the vehicle's action, as on ROAD and ROAD-Waymo.

    Needs the annotations and the predictions. Tubes are built by `link` under the same --config where
    only detections are given. Values are in per cent; the JSON holds them by threshold, kind and class. --by
    groups by split, height, or a column of the videos (weather ...) or one of its values (night).

    For example:

        roadaware evaluate road --truth road_trainval_v1.0.json --split val_3 \\
            --predictions detections-30-08-50 --config reference --json result.json

        roadaware evaluate road --truth road_trainval_v1.0.json --split val_3 \\
            --predictions linked --by weather -o runs/mine
    """
    return _evaluate_events("road", truth, predictions, split, images, judging, spread, kept)


def ucf24(
    *,
    truth: EventTruth,
    predictions: EventPredictions,
    split: Split = "test",
    images: Images = None,
    judging: EventOptions = EVENTS,
    spread: Spread = LOCAL,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score action tubes: frame-mAP, video-mAP and actions of frames, as on UCF101-24.

    Needs the corrected annotations (pyannot_with_class_names.pkl) and the predictions. Tubes are built
    by `link` under the same --config where only detections are given. Values are in per cent.

    For example:

        roadaware evaluate ucf24 --truth pyannot_with_class_names.pkl \\
            --predictions detections-10-20-80 --config reference --json result.json

        roadaware evaluate ucf24 --truth pyannot_with_class_names.pkl \\
            --predictions linked --kinds action --fail-under video_map@0.5:action=55
    """
    return _evaluate_events("ucf24", truth, predictions, split, images, judging, spread, kept)


def _evaluate_events(
    dataset: EventSet,
    truth: Path,
    predictions: list[Path],
    split: str | None,
    images: Path | None,
    judging: EventOptions,
    spread: Spread,
    kept: Kept,
) -> Outcome:
    named = {each.name for each in fields(events.EventRequest)} - {"clips", "media"}
    check_clips(judging.clips)
    request = events.EventRequest(
        dataset,
        split=split,
        images=images,
        size_px=parse_size(judging.size),
        details=kept.wanted,
        clips=judging.clips if kept.wanted else 0,
        media=() if judging.media is None else list_film_places(judging.media, truth),
        workers=spread.gather(),
        **{name: value for name, value in vars(judging).items() if name in named},
    )
    return _evaluate(
        "road events",
        lambda: events.evaluate_event_files(truth, predictions, request),
        judging.fail_under,
        kept,
        strict=judging.strict,
        judged=(truth, *predictions),
        reader=dataset,
    )


# Tasks on scenes: actions, relations, sentences, sounds, corner cases.

_CONFIG = "Named configuration of the metric: `default`, or a published evaluator; see above."
_SET = "FIELD=VALUE: change single fields of the config, such as setting=predcls of relations."
_SCENES = "The annotations: a native file or folder, or tables that `read -o` saved."
_FOUND = "The predictions: a native file or folder, or saved Predictions."
_READER = "Name of the annotations' reader. [default: detected from their content]"
_CATEGORIES = "What happens in each video, to slice by: csv with video and category."
_LABELS = "The list of labels that numbers in the csv files stand for (.pbtxt, .txt or .csv)."
_EXCLUDE = "The timestamps that are not judged: csv with video and time."

SceneTruth = Annotated[Path, Parameter(help=_SCENES)]
ScenePredictions = Annotated[Path, Parameter(help=_FOUND)]


@Parameter(name="*")
@dataclass(frozen=True)
class SceneOptions:
    """How a task on scenes is judged."""

    by: By = ()
    resamples: Resamples = 1000
    seed: Seed = 0
    fail_under: Bars = ()
    strict: Strict = False
    config: Annotated[str, Parameter(help=_CONFIG)] = "default"
    fields: Annotated[tuple[str, ...], Parameter(name="--set", help=_SET), Several] = ()


@Parameter(name="*")
@dataclass(frozen=True)
class TruthOptions:
    """How the ground truth of a task on scenes is read."""

    reader: Annotated[str | None, Parameter(help=_READER)] = None
    option: Annotated[tuple[str, ...], Parameter(help=OPTION), Several] = ()
    categories: Annotated[Path | None, Parameter(help=_CATEGORIES)] = None


SCENES, AS_IT_LIES = SceneOptions(), TruthOptions()


def actions(
    *,
    truth: SceneTruth,
    predictions: ScenePredictions,
    labels: Annotated[Path | None, Parameter(help=_LABELS)] = None,
    exclude: Annotated[Path | None, Parameter(help=_EXCLUDE)] = None,
    judging: SceneOptions = SCENES,
    reading: TruthOptions = AS_IT_LIES,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score who does what: frame-mAP of actions, as on AVA and Chaotic World.

    Needs the annotations (AVA csv, or Chaotic World's with a header) and predictions with a score in the last
    column. --config is `default`, `ava-official` (the code of the ActivityNet challenge), `mmaction2` or
    `paper` (average precision without interpolation). Numbers of two configs are not comparable.

    For example:

        roadaware evaluate actions --truth ava_val_v2.2.csv --predictions predictions.csv \\
            --labels action_list.pbtxt --exclude excluded.csv --config ava-official --json result.json

        roadaware evaluate actions --truth AR_ava_format/annotation --predictions predictions.csv \\
            --by category density -o runs/mine
    """
    return _evaluate_scenes("actions", truth, predictions, reading, judging, kept, labels, exclude)


def relations(
    *,
    truth: SceneTruth,
    predictions: ScenePredictions,
    judging: SceneOptions = SCENES,
    reading: TruthOptions = AS_IT_LIES,
    kept: Kept = NOWHERE,
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
            --set setting=predcls -o runs/mine
    """
    return _evaluate_scenes("relations", truth, predictions, reading, judging, kept)


def grounding(
    *,
    truth: SceneTruth,
    predictions: ScenePredictions,
    judging: SceneOptions = SCENES,
    reading: TruthOptions = AS_IT_LIES,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score when and where a sentence happens: overlap in time, and of boxes in space and time.

    Needs the annotations (HC-STVG or VidSTG, raw or as TubeDETR prepares them) and predictions in the form of
    TubeDETR's results or of the HC-STVG challenge. --config is `default`, `tubedetr-hcstvg`,
    `tubedetr-vidstg` or `hcstvg-official`.

    For example:

        roadaware evaluate grounding --truth test_proc.json --predictions predictions.json \\
            --config tubedetr-hcstvg --json result.json

        roadaware evaluate grounding --truth val_annotations.json --predictions predictions.json \\
            --by sentence_kind -o runs/mine
    """
    return _evaluate_scenes("grounding", truth, predictions, reading, judging, kept)


def sound(
    *,
    truth: SceneTruth,
    predictions: ScenePredictions,
    judging: SceneOptions = SCENES,
    reading: TruthOptions = AS_IT_LIES,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score where a sound comes from: consensus IoU of localisation maps, beside the whole image.

    Needs the annotations (VGG-SS JSON, Flickr-SoundNet XML, or Chaotic World's csv of sounds) and a map for
    each image: a folder of .npy files, an .npz archive, or JSON. --config is `default`, `vggss`,
    `flickr` or `paper`. What the whole image and a box in its centre would score stands beside.

    For example:

        roadaware evaluate sound --truth vggss.json --predictions maps.npz \\
            --config vggss --json result.json

        roadaware evaluate sound --truth flickr_test_xml --predictions maps --config flickr \\
            --by sound_class -o runs/mine
    """
    return _evaluate_scenes("sound", truth, predictions, reading, judging, kept)


def _evaluate_scenes(
    task: str,
    truth: Path,
    predictions: Path,
    reading: TruthOptions,
    judging: SceneOptions,
    kept: Kept,
    labels: Path | None = None,
    exclude: Path | None = None,
) -> Outcome:
    how = Reading(reading.reader, reading.option, labels, exclude)
    request = _build_request(judging, details=kept.wanted)
    return _evaluate(
        "scenes",
        lambda: evaluate_scene_files(TASKS[task], truth, predictions, request, how, reading.categories),
        judging.fail_under,
        kept,
        strict=judging.strict,
    )


def _build_request(judging: SceneOptions, *, details: bool) -> SceneRequest:
    return SceneRequest(judging.config, judging.fields, judging.by, judging.resamples, judging.seed, details)


_CORNER_TRUTH = "The annotations: a COCO file, tables that `read -o` saved, or synthetic scenes."
_CORNER = "COCO annotations of the corner cases, where they are in a file of their own (CODA 2022)."
_CORNER_FOUND = "The predictions: COCO results (.json), or saved Predictions."
_TRAINED_ON = (
    "What the detector learnt on, which tells what its classes answer: soda10m, bdd100k, waymo, coda (the "
    "classes of the truth), or a csv with id, label, common and novel."
)
_AGNOSTIC = "The predictions are proposals without classes."
_COCO_CATEGORIES = "A COCO file whose categories tell what the numbers in the results stand for."
_CLASSES = (
    "Which classes are common: base (buses are novel) or 2022 (buses are common). [default: by the ground "
    "truth]"
)


@Parameter(name="*")
@dataclass(frozen=True)
class ClassOptions(Routing):
    """What the predictions' classes mean."""

    trained_on: Annotated[str | None, Parameter(help=_TRAINED_ON)] = None
    agnostic: Annotated[bool, Parameter(help=_AGNOSTIC), Switch] = False
    categories: Annotated[Path | None, Parameter(help=_COCO_CATEGORIES)] = None
    classes: Annotated[Classes | None, Parameter(help=_CLASSES)] = None


UNSAID = ClassOptions()


def corner_cases(
    *,
    truth: Annotated[Path, Parameter(help=_CORNER_TRUTH)],
    corner: Annotated[Path | None, Parameter(help=_CORNER)] = None,
    predictions: Annotated[Path, Parameter(help=_CORNER_FOUND)],
    routing: ClassOptions = UNSAID,
    judging: SceneOptions = SCENES,
    spread: Spread = LOCAL,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score detectors on corner cases, as on CODA: average recall of corner, common and novel objects.

    Needs COCO annotations and COCO results. --trained-on says what the detector's classes answer, --agnostic
    that it has none, as a region proposal network. --config is `default`, `reference` (crowds alone are
    ignored, as pycocotools does), `coda2022` (the four numbers of the challenge) or `coco` (all classes, AP
    too). What the whole image and random boxes would score stands beside every number. --by slices by period,
    weather, domain, density, or another column of the images.

    For example:

        roadaware evaluate corner-cases --truth corner_case.json --predictions results.json \\
            --trained-on soda10m --by weather domain -o runs/mine

        roadaware evaluate corner-cases --truth instance_val_common.json \\
            --corner instance_val_agnostic_corner.json --predictions results.json \\
            --trained-on coda --config coda2022 --json result.json
    """
    request = replace(_build_request(judging, details=False), workers=spread.gather())
    return _evaluate(
        "scenes",
        lambda: evaluate_corner_files(truth, corner, predictions, routing, request),
        judging.fail_under,
        kept,
        strict=judging.strict,
    )


# Pedestrians: scores of samples.

_SCENARIOS = (
    "Also by scenario: scale, state, speed, ego_action, signal, road, lanes ...; several make a product."
)


_SAMPLING = (
    "Samples of the protocol as published (`reference`) or as we recommend, whatever --config says of the metrics. "
    "[default: as --config]"
)


@Parameter(name="*")
@dataclass(frozen=True)
class SampleOptions(SampleSource):
    """The samples that scores are of: a file, or a protocol on a dataset."""

    samples: Annotated[Path | None, Parameter(help="The samples, in the same order.")] = None
    task: Annotated[TaskName | None, Parameter(help="The task; --protocol implies it.")] = None
    protocol: Annotated[str | None, Parameter(help="Instead of --samples: its name, with --data.")] = None
    data: Annotated[Path | None, Parameter(help="The protocol's dataset: folder or zip.")] = None
    split: Annotated[Literal["train", "val", "test"], Parameter(help="Which samples of the protocol.")] = (
        "test"
    )
    sampling: Annotated[ConfigName | None, Parameter(help=_SAMPLING)] = None


NO_SAMPLES = SampleOptions()


def pedestrians(
    *,
    scores: Annotated[Path, Parameter(help="The model's output, in [0, 1].")],
    source: SampleOptions = NO_SAMPLES,
    by: Annotated[list[str] | None, Parameter(help=_SCENARIOS), Several] = None,
    config: MetricConfig = "default",
    resamples: Resamples = 1000,
    seed: Seed = 0,
    fail_under: Bars = (),
    clips: Clips = MOST_CLIPS,
    media: Media = None,
    kept: Kept = NOWHERE,
) -> Outcome:
    """Score any model's output on pedestrians: base, weighted, soft, hard and ranking metrics.

    Needs SCORES, a csv file without header with one row per sample (1 number for action, 3 for
    intention, 12 for risk), and the samples: either a csv file with a header and the columns truth,
    pedestrian and tte_frames (and video, for intervals over videos), or the samples of a protocol on a
    dataset. Rows are matched by their order, so a single bad row is an error and nothing is scored.
    Either file may be Parquet with the same columns.

    For example:

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action

        roadaware evaluate pedestrians --scores pf_action_jaad.csv \\
            --protocol jaad-action@iv2024 --data JAAD-JAAD_2.0.zip \\
            --config reference --json result.json -o runs/pedformer

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action --fail-under auc=0.85 f1=0.6
    """
    return _evaluate(
        "pedestrians",
        lambda: evaluate_score_file(
            scores, source, config, by or (), resamples, seed, clips=clips if kept.wanted else 0, media=media
        ),
        fail_under,
        kept,
    )


# `roadaware evaluate agreement`: is a model right about two questions at once?

_SCORES = "The scores of both tasks, as `evaluate pedestrians` takes them."
_SAMPLES = "The samples of both tasks, in the same order: the ground truth of each."


def agreement(
    *,
    scores: Annotated[list[Path], Parameter(help=_SCORES), Several],
    samples: Annotated[list[Path], Parameter(help=_SAMPLES), Several],
    task: Annotated[list[TaskName], Parameter(help="What each asks: action, intention or risk."), Several],
    resamples: Resamples = 1000,
    seed: Seed = 0,
    result: ResultFolder = UNKEPT,
) -> Outcome:
    """Count how often two tasks are decided rightly together, one of them alone, or neither: Table V of IV 2024.

    For each combination of true classes, and over all samples: counts, percentages, and 95 % intervals over
    pedestrians and over videos.

    For example:

        roadaware evaluate agreement --scores intention.csv action.csv \\
            --samples intention_samples.csv action_samples.csv --task intention action
    """
    for option, given in (("--scores", scores), ("--samples", samples), ("--task", task)):
        if len(given) != 2:
            raise UsageError(f"{option} takes two, one of each task, not {len(given)}")
    states = [match_file(*each).state for each in zip(scores, samples, task, strict=True)]
    first, second = (list_task_answers(Iv2024.reference(each)) for each in task)
    with console.log_step("counting"):
        found = compute_agreement(
            states[0], states[1], labels=(first, second), resamples=resamples, seed=seed
        )
    data = {
        "tasks": list(task),
        "scores": [str(path) for path in scores],
        "resamples": resamples,
        "seed": seed,
    }
    if result.folder is not None:
        page = report([build_agreement_section(found, task)], title=f"Agreement of {task[0]} and {task[1]}")
        files = {
            "agreement.csv": format_csv(found.table).encode(),
            "agreement.parquet": encode_parquet(found.table),
            "report.html": page.encode("utf-8", errors="backslashreplace"),
        }
        result.write(folders.add_marker(files, data))
    table = format_table(list_agreement_columns(task), list_agreement_rows(found, "pedestrian"), left=2)
    return Outcome(
        f"{table}\nPer cent of the samples of each combination of true classes; 95 % intervals over pedestrians.",
        {**data, "agreement": found.table.to_dicts()},
    )


# `roadaware calibration`: do scores mean what they say.

_CALIBRATION_BY = (
    "Also by these: columns of SAMPLES, or scenarios of the protocol (scale, state, speed, signal ...)."
)
_CALIBRATION_CONFIG = "Adaptive bins as published (`reference`), or corrected (`default`)."
_WIDTHS = "How many bins of equal width stand beside the adaptive ones."
_SETS = (
    "Also sets of labels that promise to hold the true one this often, such as 0.9, and how often they do."
)


def calibration(
    scores: Annotated[
        Path, Parameter(help="The model's output: probabilities, one row per sample; or a run folder.")
    ],
    /,
    *,
    source: SampleOptions = NO_SAMPLES,
    config: Annotated[ConfigName, Parameter(help=_CALIBRATION_CONFIG)] = "default",
    by: Annotated[list[str] | None, Parameter(help=_CALIBRATION_BY), Several] = None,
    uniform_bins: Annotated[int, Parameter(help=_WIDTHS, validator=validate_range(1, 1000))] = 10,
    conformal: Annotated[float | None, Parameter(help=_SETS)] = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    result: ResultFolder = UNKEPT,
) -> Outcome:
    """Ask whether a pedestrian model's probabilities mean what they say: is 0.9 right nine times of ten?

    Needs SCORES, a csv file without header with one row of probabilities per sample (1 number, the
    probability of crossing; or one per class, which sum to 1), and the samples: a csv file with a header
    and the columns truth, pedestrian and tte_frames (and video, for intervals over videos), or a protocol
    on a dataset. Rows are matched by their order. Either may be a Parquet file with the same columns.
    Without --task, 1 score a sample is action, 3 are intention, 12 are risk. A run folder of pedestrians, as
    `evaluate pedestrians -o` and `train` write it, holds both and needs neither.

    A sample's confidence is its largest probability. Samples are put into bins by confidence, and in each
    bin the mean confidence is held against the share of right answers. ECE is the mean gap, weighted by
    the samples of a bin; MCE is the largest gap; both are best at 0. Adaptive bins hold more samples where
    confidences are dense. `ece_if_calibrated` is what a perfectly calibrated model would show on so few
    pedestrians: an ECE near it is no evidence of a fault. NLL and the Brier score need no bins and punish
    wrong answers too. Everything is given for all samples, by time to event, and --by more.

    For example:

        roadaware calibration model.csv --samples samples.csv --json out.json

        roadaware calibration model.csv --samples samples.csv \\
            --by weather --conformal 0.9 -o runs/calibration

        roadaware calibration pf_action_jaad.csv --protocol jaad-action@iv2024 \\
            --data JAAD-JAAD_2.0.zip --config reference --by scale state

        roadaware calibration runs/steady/test
    """
    from roadaware.metrics.calibration import HALVINGS, CalibrationConfig, evaluate, evaluate_coverage
    from roadaware.reports.calibration import (
        build_calibration_files,
        build_calibration_json,
        format_calibration,
    )

    name, protocol = scores.stem, source.protocol
    asked: TaskName | None
    if runs.is_run(scores):
        run = _load_pedestrian_run(scores, source, by)
        name, protocol, asked = run.name, run.protocol or None, run.config.task
        held = MatchedScores(run.state, int(run.facts.get("clipped", 0)))
    else:
        held, asked = source.match(scores, config, any_task=True)
    groupings = group_by_scenario(held, source.samples, by or [], config)
    likely = {columns: task for task, columns in COLUMNS.items()}
    facts: dict[str, Any] = {
        "name": name,
        "task": asked or likely.get(held.state.scores.shape[1]),
        "protocol": protocol,
        "config_name": config,
        "clipped": held.clipped,
        **{"resamples": resamples, "interval": runs.get_interval_method(resamples), "seed": seed},
        "conformal": None,
    }
    if conformal is not None:
        sets = evaluate_coverage(held.state, conformal, seed=seed)
        rules = {name: to_dict(one) for name, one in sets.items()}
        facts["conformal"] = {"level": conformal, "halvings": HALVINGS, "rules": rules}
    named = CalibrationConfig.reference() if config == "reference" else CalibrationConfig.default()
    chosen = replace(named, uniform_bins=uniform_bins)
    times, seconds = group_by_time(held)
    try:
        with console.log_step("resampling" if resamples else "binning"):
            measured = evaluate(
                held.state, chosen, resamples=resamples, seed=seed, groupings=[*times, *groupings]
            )
    except InputError as error:
        raise InputError(error.message, where=error.where or str(scores), hint=error.hint) from error
    found = build_calibration_json(held.state, measured, chosen, facts)
    if result.folder is not None:
        result.write(build_calibration_files(found, measured, seconds))
    return Outcome(format_calibration(found), found)


def _load_pedestrian_run(folder: Path, source: SampleOptions, by: Sequence[str] | None) -> Run:
    """The run in a folder, which brings its samples along.

    Raises:
        UsageError: if it is no run of pedestrians, or other samples or slices are asked for.
    """
    if (kind := runs.describe_kind(folder)) != "pedestrians":
        raise UsageError(f"{folder} is a run of {kind}; calibration is asked of scores of pedestrians")
    if source != NO_SAMPLES or by:
        raise UsageError(
            f"{folder} is a run folder, which brings its samples: leave away what says of them, --by included"
        )
    run: Run = runs.load_runs(runs.load, folder)[0]
    return run


evaluate = create_app(
    "evaluate",
    """
    Score predictions against ground truth, as published (--config reference) or as we recommend.

    `roadaware evaluate SUBJECT --help` explains a subject. All of them give 95 % intervals
    (--resamples 0 for none) and take --config, --fail-under for pipelines, -o for a run folder with a report, and --json.

    For example:

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action

        roadaware evaluate road --truth road_trainval_v1.0.json --split val_3 \\
            --predictions detections --config reference --json result.json

        roadaware evaluate ucf24 --truth pyannot_with_class_names.pkl \\
            --predictions linked --config reference -o runs/mine
    """,
)
add_commands(
    evaluate, (pedestrians, agreement, road, ucf24, actions, relations, grounding, sound, corner_cases)
)
