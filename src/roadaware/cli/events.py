"""`roadaware evaluate road` and `ucf24`: how good are predicted boxes, tubes and actions of the vehicle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, event_inputs, outputs, results
from roadaware.cli.event_inputs import IMAGES, NETWORK_SIZE, EventSet
from roadaware.cli.event_scoring import OFFLINE, Asked, Clock, Scored, build_event_run, evaluate_streaming
from roadaware.cli.event_scoring import evaluate_split as scored_claims
from roadaware.cli.options import (
    USUAL,
    Common,
    MetricConfig,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
)
from roadaware.errors import UsageError
from roadaware.reports import event_runs
from roadaware.reports.event_pages import build_json_facts, group_calibration, render_event_runs
from roadaware.reports.event_runs import build_groups_json, build_metrics_json
from roadaware.reports.event_text import (
    format_dropped,
    format_event_result,
    format_streaming,
    format_tracking,
)
from roadaware.reports.terminal import format_cell

if TYPE_CHECKING:
    from roadaware.reports.event_runs import EventRun

OverlapName = Literal["stiou", "siou", "tiou"]
_TRUTH = "The annotations: a release's file, an export of VoTT, or tables that `read -o` saved of either."
_PREDICTIONS = (
    "The predictions: tables that `link` wrote, a folder of per-frame detections, a tube file (.pkl), COCO "
    "results (.json) or MOT text (.txt); detections and tubes may be two of them."
)
_SPLIT = "The split that is evaluated; `all` for every video. [default: all of ROAD, `test` of UCF101-24]"
_KINDS = (
    "Only these kinds of labels: agentness agent action location duplex event, or as the files name them."
)
_AT = "Overlaps that count as a hit, as 0.5 or 0.5:0.95 (the mean over ten)."
_OVERLAP = "How tubes are compared: in space and time, in space, in time."
_COMPOSITES = (
    "Scores of duplexes and events: as predicted (joint), or products of those of their parts (product)."
)
_ONLY = "Judge only boxes and the vehicle's action (frame), or only tubes (video)."
_SIZE = "Width and height of the images that boxes of detection files are in."
_TRACKING = "Also HOTA, identity and CLEAR metrics of the paths, whatever their labels."
_MIN_SCORE = "Lowest score of a box in the paths that --tracking judges. [default: the detector's threshold]"
_FOLDER = "Write the run here: settings, results, classes, matches, report."
_TENTH = ("0.2", "0.5", "0.75", "0.5:0.95")

Truth = Annotated[Path, Parameter(help=_TRUTH)]
Predicted = Annotated[list[Path], Parameter(help=_PREDICTIONS), Several]
Split = Annotated[str | None, Parameter(help=_SPLIT)]
Images = Annotated[Path | None, Parameter(help=IMAGES)]
RunFolder = Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT]


@Parameter(name="*")
@dataclass(frozen=True)
class Judging(results.Scoring):
    """How road events are judged."""

    config: MetricConfig = "default"
    kinds: Annotated[tuple[str, ...], Parameter(help=_KINDS), Several] = ()
    frame_thresholds: Annotated[tuple[str, ...], Parameter(help=_AT), Several] = _TENTH
    video_thresholds: Annotated[tuple[str, ...], Parameter(help=_AT), Several] = _TENTH
    overlap: Annotated[tuple[OverlapName, ...], Parameter(help=_OVERLAP), Several] = ("stiou",)
    composites: Annotated[Literal["joint", "product"] | None, Parameter(help=_COMPOSITES)] = None
    only: Annotated[Literal["frame", "video"] | None, Parameter(help=_ONLY)] = None
    tracking: Annotated[bool, Parameter(help=_TRACKING), Switch] = False
    min_score: Annotated[float | None, Parameter(help=_MIN_SCORE)] = None
    clock: Clock = OFFLINE
    size: Annotated[str, Parameter(help=_SIZE)] = NETWORK_SIZE


AS_USUAL = Judging()


def road(
    *,
    truth: Truth,
    predictions: Predicted,
    split: Split = None,
    images: Images = None,
    judging: Judging = AS_USUAL,
    folder: RunFolder = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Score road events: frame-mAP, video-mAP and the vehicle's action, as on ROAD and ROAD-Waymo.

    Needs the annotations and the predictions. Tubes are built by `link` under the same --config where
    only detections are given. Values are in per cent; the JSON holds them by threshold, kind and class. --by
    groups by split, height, or a column of the videos (weather ...) or one of its values (night).

    For example:

        roadaware evaluate road --truth road_trainval_v1.0.json --split val_3 \\
            --predictions detections-30-08-50 --config reference --json result.json

        roadaware evaluate road --truth road_trainval_v1.0.json --split val_3 \\
            --predictions linked --resamples 1000 --by weather -o runs/mine
    """
    return _evaluate_events("road", (truth, predictions, images), split, judging, folder, overwrite=overwrite)


def ucf24(
    *,
    truth: Truth,
    predictions: Predicted,
    split: Split = "test",
    images: Images = None,
    judging: Judging = AS_USUAL,
    folder: RunFolder = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
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
    return _evaluate_events(
        "ucf24", (truth, predictions, images), split, judging, folder, overwrite=overwrite
    )


def _evaluate_events(
    dataset: EventSet,
    given: tuple[Path, list[Path], Path | None],
    split: str | None,
    judging: Judging,
    folder: Path | None,
    *,
    overwrite: bool,
) -> Outcome:

    judging.clock.check()
    _check_floor(judging)
    lowest = results.parse_bars(judging.fail_under, results.PER_CENT)
    size_px = event_inputs.parse_size(judging.size)
    asked = _build_request(dataset, judging, details=folder is not None)
    scored, facts = _score_inputs(asked, judging.clock, *given, split, size_px)
    predictions = given[1]
    names = [path.name for path in predictions]
    name = predictions[0].stem or str(predictions[0])
    run = build_event_run(scored, asked, name=name, split=split, claims=names)
    run = replace(run, facts={**run.facts, **facts})
    metrics = event_runs.collect_metrics(run.summary)
    results.check(lowest, metrics)
    native = event_inputs.map_native_kinds(scored.scenes)
    numbers = build_metrics_json(run, native)
    if folder is not None:
        with console.log_step("report"):
            files = event_runs.build_event_run_files(run, render_event_runs([run]), numbers)
        results.write_result(folder, files, overwrite=overwrite)
    lines = [_heading(run, scored), format_dropped(scored.left.everything), *map(format_cell, run.notes)]
    lines.append(format_event_result(run.summary, intervals=bool(judging.draws)))
    tracked = run.facts.get("tracked", "")
    lines.append(format_tracking(run.facts.get("tracking"), tracked, intervals=bool(judging.draws)))
    lines.append(format_streaming(run.summary, run.facts.get("streaming")))
    failed = results.describe_failure(metrics, lowest, results.PER_CENT)
    if failed is None and judging.strict and scored.left.findings:
        failed = f"--strict: {format_dropped(scored.left.findings).replace(chr(10), '; ')}"
    beside, facts = build_json_facts(event_runs.build_event_run_facts(run))
    data = {**numbers, **beside, "run": {**facts, "groups": build_groups_json(run, native)}}
    return Outcome("\n\n".join(line for line in lines if line), data, failed)


def _check_floor(judging: Judging) -> None:
    """Refuse a floor that has no meaning, or nothing to be a floor of."""
    if judging.min_score is None:
        return
    if not judging.tracking:
        raise UsageError("--min-score leaves boxes out of tracking metrics: say --tracking too")
    if not 0 <= judging.min_score <= 1:
        raise UsageError(f"--min-score is a score from 0 to 1, not {judging.min_score:g}")


def _build_request(dataset: EventSet, judging: Judging, *, details: bool) -> Asked:
    return Asked(
        dataset,
        judging.config,
        judging.frame_thresholds,
        judging.video_thresholds,
        judging.overlap,
        judging.kinds,
        judging.composites,
        judging.only,
        judging.by,
        judging.draws,
        judging.seed,
        details,
        judging.tracking,
        judging.min_score,
    )


def _score_inputs(
    asked: Asked,
    clock: Clock,
    truth: Path,
    predictions: list[Path],
    images: Path | None,
    split: str | None,
    size_px: tuple[int, int],
) -> tuple[Scored, dict[str, Any]]:
    """Truth and predictions opened, brought together, and judged: offline, and what stands beside that."""

    whole = event_inputs.open_truth(truth, asked.dataset)
    scenes = event_inputs.select_split(whole, split, asked.kinds)
    videos = [str(video) for video in scenes.videos["video"].to_list()]
    claims = [event_inputs.open_claims(path, whole, size_px, videos, images) for path in predictions]
    came = scored_claims(whole, scenes, claims, asked)
    beside = {
        "streaming": evaluate_streaming(whole, scenes, claims, asked, came, clock),
        "calibration": group_calibration(came.scenes, came.matches, asked.by),
    }
    return came, {name: found for name, found in beside.items() if found is not None}


def _heading(run: EventRun, scored: Scored) -> str:
    truth = run.facts["truth"]
    where = f"split {run.facts['split']}" if run.facts["split"] else "all videos"
    return format_cell(
        f"{', '.join(run.facts['claims'])} on {truth['dataset']}, {where}: {truth['videos']:,} videos, "
        f"{truth['boxes']:,} true boxes; config {run.facts['config_name']}"
    )
