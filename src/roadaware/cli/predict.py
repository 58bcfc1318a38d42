"""`roadaware predict`: the detections of videos, as tables that are linked and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.networks import (
    ALL_VIDEOS,
    AS_IT_SUITS,
    Device,
    EventsOption,
    Looks,
    Precision,
    VideoSource,
    add_event_head,
    build_run_name,
    select_detector,
    show_resumable,
)
from roadaware.cli.options import (
    LOCAL,
    ConfigName,
    Outcome,
    Output,
    Overwrite,
    Several,
    Spread,
    Switch,
    describe_strict,
    validate_range,
)
from roadaware.config import digest, to_dict
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig, build_linker
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.models.crops import validate_texts
from roadaware.models.detector import read_advice
from roadaware.models.event_head.head import read_installed_digest
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.online import setup
from roadaware.reports import terminal
from roadaware.reports.prediction_text import format_predictions
from roadaware.scenes.advice import Advice
from roadaware.tasks.prediction_runs import PredictionRun
from roadaware.tasks.road_events import Classes

if TYPE_CHECKING:
    from roadaware.models.detector import VideoDetector

_WEIGHTS = (
    "The detector: a name of `models list`, or a file as `train` writes it (model.safetensors); several with "
    "the same anchors are averaged. Or the folder of an object detector of transformers, or of a zero-shot "
    "one with --texts. [default: of real videos the one of `models list` that is installed, else the bundled one]"
)
_VIDEOS = (
    "Videos, folders of videos, or one dataset: its release with --reader, saved tables, synthetic scenes. "
    "KITTI, nuScenes and ONCE need no --reader."
)
_TEXTS = (
    "What a zero-shot detector (Grounding DINO, OWLv2) looks for, such as tyre,dog; they become the labels."
)
_OUT = "Folder of the run. [default: runs/predict-WEIGHTS]"
_CONFIG = "Clips as released (`reference`: from the end, the last two frames left to the next), or `default`."
_CLIP = "Frames of a clip, 8 or 32 as published; a causal network needs none. [default: 8]"
_BATCH = "Clips, or frames of a causal network, that are looked at together."
_OBJECTS = "Folder of an object detector of transformers: its boxes, scored by the network."
_MEAN = "What is averaged of several networks."
_TASKS = ("objects", "zero-shot")
_USUAL = ("model.safetensors", "model")
"""Names of weights that say nothing: then that of their folder does."""


def predict(
    weights: Annotated[tuple[Path, ...], Parameter(help=_WEIGHTS, show_default=False)] = (),
    /,
    *,
    videos: Annotated[list[Path], Parameter(help=_VIDEOS), Several],
    source: VideoSource = ALL_VIDEOS,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.PREDICTIONS] = None,
    threshold: Annotated[float, Parameter(help="Agentness that a box needs.")] = 0.025,
    nms: Annotated[float, Parameter(help="Overlap above which the weaker box goes; 1 keeps all.")] = 0.5,
    top: Annotated[
        int, Parameter(help="Boxes that a frame keeps.", validator=validate_range(1, 10_000))
    ] = 100,
    clip: Annotated[int | None, Parameter(help=_CLIP)] = None,
    config: Annotated[ConfigName, Parameter(help=_CONFIG)] = "default",
    batch: Annotated[int, Parameter(help=_BATCH, validator=validate_range(1, 4096))] = 1,
    objects: Annotated[Path | None, Parameter(help=_OBJECTS)] = None,
    texts: Annotated[tuple[str, ...], Parameter(help=_TEXTS, show_default=False), Several] = (),
    mean: Annotated[Literal["logits", "probabilities"], Parameter(help=_MEAN)] = "logits",
    looks: Looks = AS_IT_SUITS,
    events: EventsOption = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if a video was refused."), Switch] = False,
) -> Outcome:
    """Detect road events in every frame of videos; `link` makes tubes of them, `evaluate road` judges them.

    A video is kept as soon as it is whole. After Ctrl-C, a full disk or a crash the same command goes on with
    the next one. A damaged video is named and left out, and looked at again the next time.

    For example:

        roadaware predict model.safetensors --videos synthetic --output runs/found

        roadaware predict model.safetensors --videos road_trainval_v1.0.json --reader road \\
            --films "videos/{video}.mp4" --split val_1 --clip 8 --batch 4 --output runs/road

        roadaware link runs/found/predictions --output runs/found/tubes

        roadaware predict GROUNDING-DINO --texts "tyre,traffic cone" --videos KITTI --output runs/novel
    """
    for name, value in (("--threshold", threshold), ("--nms", nms)):
        if not 0 <= value <= 1:
            raise UsageError(f"{name} lies from 0 to 1, not {value:g}")
    workers = spread.gather()
    rule = DetectRule.reference() if config == "reference" else DetectRule()
    rule = replace(rule, min_agentness=threshold, nms_iou=None if nms == 1 else nms, top=top)
    named = [resolve_weights(path, _TASKS) for path in weights]
    asked = source.collect(videos)
    choice = select_detector(named, synthetic=asked.synthetic, live=False, looks=looks)
    files = choice.files
    whole = files[0].absolute()
    stem = whole.parent.name if whole.name in _USUAL else whole.stem
    folder = out or Path("runs") / f"predict-{build_run_name(stem, 'detector')}"
    outputs.PREDICTIONS.check(folder, overwrite=overwrite)
    with console.log_step("opening the detector"):
        boxes = None if objects is None else resolve_weights(objects, ("objects",))
        more: dict[str, Any] = {"objects": boxes, "views": choice.views}
        more |= {"mean": mean, "batch": batch, "texts": split_texts(texts)}
        open_detector = partial(_open_detector, files, rule, clip, device, precision, more)
        detector = open_detector()
    from roadaware.models.loading import digest_model_files  # torch, which the detector has loaded by now

    # What the detections depend on; where and how many at a time they are made is not among it.
    digests = [digest_model_files(path) for path in files]
    settings: dict[str, Any] = {"weights": digests, "rule": to_dict(rule)}
    if boxes is not None:
        settings["objects"] = digest_model_files(boxes)
    if isinstance(words := getattr(detector, "texts", None), tuple):
        settings["texts"] = list(words)
    if choice.views is not None:
        settings["views"] = to_dict(choice.views)
    if len(files) > 1:
        settings["mean"] = mean
    if not detector.causal:
        settings["clip"] = detector.window
    if precision != "fp32":
        settings["precision"] = precision
    # Boxes of another detector have scores of their own: a network's advice is not on them.
    advice = read_advice(files) if boxes is None else Advice()
    if not asked.still:
        linker = build_linker("default", advice=advice)
        plain, detector = detector, add_event_head(events, detector, linker)
        if detector is not plain:
            settings["events"] = [read_installed_digest(), digest(linker)]
            open_detector = partial(_open_with_events, open_detector, events, linker)
    elif events:
        raise UsageError("--events needs videos: still images do not show how anybody moves")
    classes = Classes(dict(detector.kinds), detector.av_labels, advice)
    meta = asked.scenes.meta if asked.scenes else None
    run = PredictionRun(folder, settings, classes, meta, overwrite=overwrite)
    with show_resumable(
        "detecting", lambda: f"{len(run.done)} of {len(asked.order)} videos are kept"
    ) as shown:
        now = run.detect(
            detector,
            asked,
            open_detector=open_detector,
            workers=workers,
            refused=_tell_refused,
            progress=shown,
        )
    data = {
        "folder": str(folder),
        "predictions": str(folder / "predictions"),
        "videos": len(run.done),
        "looked_at_now": now,
        "frames": sum(part["frames"] for part in run.done.values()),
        "boxes": sum(part["boxes"] for part in run.done.values()),
        "missing": sum(part.get("missing", 0) for part in run.done.values()),
        "refused": dict(run.failed),
        "still_pictures": asked.still,
    }
    failed = describe_strict(strict, len(run.failed), "videos were refused")
    return Outcome(format_predictions(data, detector), data, failed)


def _tell_refused(video: str, reason: str) -> None:
    console.print_error(f"{terminal.format_cell(video)} is left out: {reason}")


def split_texts(given: Sequence[str]) -> tuple[str, ...]:
    """Texts parted by commas.

    Args:
        given: words of the command line.

    Raises:
        UsageError: if one is empty, or two are the same.
    """
    return validate_texts([text for each in given for text in each.split(",")]) if given else ()


def _open_detector(
    files: Sequence[Path],
    rule: DetectRule,
    clip: int | None,
    device: str,
    precision: str,
    more: dict[str, Any],
) -> VideoDetector:
    from roadaware.models.devices import select_device, set_threads
    from roadaware.models.loading import open_videos

    place, dtype = select_device(device, precision)
    if clip is not None and not 1 <= clip <= 1024:
        raise UsageError(f"--clip is a number of frames, 8 or 32 as published, not {clip}")
    found = open_videos(files, rule, window=clip or 8, device=place, dtype=dtype, **more)
    if clip is not None and found.causal:
        raise UsageError("--clip is for networks that look ahead; this detector answers frame by frame")
    if more["batch"] == 1 and more["objects"] is None:
        set_threads(files)
    return found


def _open_with_events(
    open_detector: Callable[[], VideoDetector], events: bool | None, linker: LinkerConfig
) -> VideoDetector:
    """In a worker: the detector with the event head, of which a word was said already."""
    found: VideoDetector = setup.add_event_head(events, open_detector(), linker)
    return found
