"""`roadaware predict`: the detections of videos, as tables that are linked and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.devices import Device, Precision, select_device, set_threads
from roadaware.cli.options import (
    USUAL,
    Common,
    ConfigName,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
    validate_range,
)
from roadaware.cli.predict_videos import ALL_VIDEOS, VideoSource, detect_stills, iterate_video_images
from roadaware.cli.street_choice import (
    AS_IT_SUITS,
    EventsOption,
    Looks,
    add_event_head,
    select_detector,
)
from roadaware.config import digest, to_dict
from roadaware.errors import InputError, Terminated, UsageError
from roadaware.linking.linker_choice import select_linker
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.models.detector import read_advice
from roadaware.models.event_head.head import read_installed_digest
from roadaware.models.open_vocabulary.crops import validate_texts
from roadaware.models.retinanet3d.detection_config import DetectRule
from roadaware.reports import terminal
from roadaware.scenes.advice import Advice
from roadaware.tasks.prediction_runs import PredictionRun
from roadaware.tasks.road_events import Classes

if TYPE_CHECKING:
    import torch

    from roadaware.cli.predict_videos import Asked
    from roadaware.models.detector import FrameDetections
    from roadaware.models.videos import VideoDetector
    from roadaware.online.setup import Choice
    from roadaware.tasks.prediction_runs import VideoFacts
    from roadaware.training.footage import Film

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
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if a video was refused."), Switch] = False,
    common: Common = USUAL,
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
    rule = _rule(config, threshold, nms, top)
    named = [resolve_weights(path, _TASKS) for path in weights]
    with console.log_step("opening the videos"):
        asked = source.collect(videos)
    choice = select_detector(named, synthetic=asked.synthetic, live=False, looks=looks)
    folder = out or Path("runs") / f"predict-{_stem(choice.files[0])}"
    outputs.PREDICTIONS.check(folder, overwrite=overwrite)
    with console.log_step("opening the detector"):
        boxes = None if objects is None else resolve_weights(objects, ("objects",))
        more: dict[str, Any] = {"objects": boxes, "views": choice.views}
        more |= {"mean": mean, "batch": batch, "texts": split_texts(texts)}
        detector = _open_detector(choice.files, rule, clip, select_device(device, precision), more)
    settings = _settings(choice, rule, more, detector, precision)
    detector = _with_events(events, detector, asked, settings, _advice(choice.files, boxes))
    run = _begun(folder, settings, _classes(detector, choice.files, boxes), asked, overwrite=overwrite)
    data = _data(folder, run, _process_videos(run, detector, asked), asked)
    failed = f"--strict: {len(run.failed)} videos were refused" if strict and run.failed else None
    return Outcome(_text(data, detector), data, failed)


def _rule(config: ConfigName, threshold: float, nms: float, top: int) -> DetectRule:

    for name, value in (("--threshold", threshold), ("--nms", nms)):
        if not 0 <= value <= 1:
            raise UsageError(f"{name} lies from 0 to 1, not {value:g}")
    base = DetectRule.reference() if config == "reference" else DetectRule()
    return replace(base, min_agentness=threshold, nms_iou=None if nms == 1 else nms, top=top)


def split_texts(given: Sequence[str]) -> tuple[str, ...]:
    """Texts parted by commas.

    Args:
        given: words of the command line.

    Raises:
        UsageError: if one is empty, or two are the same.
    """

    return validate_texts([text for each in given for text in each.split(",")]) if given else ()


def _open_detector(
    weights: Sequence[Path],
    rule: DetectRule,
    clip: int | None,
    place: tuple[torch.device, torch.dtype],
    more: dict[str, Any],
) -> VideoDetector:
    from roadaware.models.loading import open_videos

    if clip is not None and not 1 <= clip <= 1024:
        raise UsageError(f"--clip is a number of frames, 8 or 32 as published, not {clip}")
    found = open_videos(weights, rule, window=clip or 8, device=place[0], dtype=place[1], **more)
    if clip is not None and found.causal:
        raise UsageError("--clip is for networks that look ahead; this detector answers frame by frame")
    if more["batch"] == 1 and more["objects"] is None:
        set_threads(weights)
    return found


def _settings(
    choice: Choice, rule: DetectRule, more: dict[str, Any], detector: VideoDetector, precision: str
) -> dict[str, Any]:
    """What the detections depend on; where and how many at a time they are made is not among it."""
    from roadaware.models.loading import digest_model_files

    weights, objects, mean = choice.files, more["objects"], more["mean"]
    found: dict[str, Any] = {"weights": [digest_model_files(path) for path in weights], "rule": to_dict(rule)}
    if objects is not None:
        found["objects"] = digest_model_files(objects)
    if isinstance(texts := getattr(detector, "texts", None), tuple):
        found["texts"] = list(texts)
    if choice.views is not None:
        found["views"] = to_dict(choice.views)
    if len(weights) > 1:
        found["mean"] = mean
    if not detector.causal:
        found["clip"] = detector.window
    if precision != "fp32":
        found["precision"] = precision
    return found


def _classes(detector: VideoDetector, weights: Sequence[Path], objects: Path | None) -> Classes:
    """What the detector tells apart, with the advice of its networks."""

    return Classes(dict(detector.kinds), detector.av_labels, _advice(weights, objects))


def _advice(weights: Sequence[Path], objects: Path | None) -> Advice:

    # Boxes of another detector have scores of their own: a network's advice is not on them.
    return read_advice(weights) if objects is None else Advice()


def _with_events(
    events: bool | None, detector: VideoDetector, asked: Asked, settings: dict[str, Any], advice: Advice
) -> Any:
    """The detector with the event head where that is wanted, which the settings then say."""

    if any(film.stills for film in asked.films):
        if events:
            raise UsageError("--events needs videos: still images do not show how anybody moves")
        return detector
    linker = select_linker("default", "road", advice)[0]
    wrapped = add_event_head(events, detector, linker)
    if wrapped is not detector:
        settings["events"] = [read_installed_digest(), digest(linker)]
    return wrapped


def _begun(
    folder: Path, settings: dict[str, Any], classes: Classes, asked: Asked, *, overwrite: bool
) -> PredictionRun:

    meta = asked.scenes.meta if asked.scenes else None
    return PredictionRun(folder, settings, classes, meta, overwrite=overwrite)


def _process_videos(run: PredictionRun, detector: VideoDetector, asked: Asked) -> int:
    """Look at the videos that are still to be looked at, and finish the run; how many were kept.

    Raises:
        KeyboardInterrupt, Terminated: if it was stopped; what is whole is kept.
    """
    films = {film.video: film for film in asked.films}
    if any(film.stills for film in asked.films) and not detector.single:
        raise UsageError(
            "these are still images: name the folder of an object detector of transformers, which looks at "
            "each by itself; a network of ours needs videos"
        )
    wanted = run.wanted(asked.facts)
    for video, reason in asked.refused.items():
        _refuse(run, video, reason)
    if len(wanted) < len(asked.facts):
        console.print_note(f"{len(asked.facts) - len(wanted)} of {len(asked.facts)} videos are there already")
    total, before, kept = sum(films[each.video].n_frames for each in wanted), 0, 0
    try:
        with console.show_progress("detecting") as progress:
            for facts in wanted:
                film = films[facts.video]
                kept += _one(run, detector, film, facts, partial(_report_progress, progress, before, total))
                before += film.n_frames
    except (KeyboardInterrupt, Terminated):
        run.flush()
        console.print_note(f"{len(run.done)} of {len(asked.order)} videos are kept; the same command goes on")
        raise
    run.finish(asked.order)
    return kept


def _report_progress(progress: console.Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total, "frames")


def _one(
    run: PredictionRun, detector: VideoDetector, film: Film, facts: VideoFacts, moved: Callable[[int], None]
) -> bool:
    """Look at a video; whether it was kept."""

    found: list[FrameDetections] = []
    if film.stills:
        found, faults = detect_stills(film, detector, moved)
        if not found:
            _refuse(run, film.video, faults[0])
            return False
        run.keep(facts, found, len(faults))
        return True
    if hasattr(detector, "set_rate"):
        detector.set_rate(facts.row.get("fps"))
    try:
        with iterate_video_images(film) as pictures:
            for each in detector.detections(pictures, film.n_frames):
                found.append(each)
                moved(len(found))
    except InputError as error:
        _refuse(run, film.video, str(error))
        return False
    run.keep(facts, found)
    return True


def _refuse(run: PredictionRun, video: str, reason: str) -> None:
    console.print_error(f"{terminal.format_cell(video)} is left out: {reason}")
    run.refuse(video, reason)


def _stem(weights: Path) -> str:
    """A name for the run: that of the weights, or of their folder where they have the usual one."""
    whole = weights.absolute()
    name = whole.parent.name if whole.name in _USUAL else whole.stem
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return kept.strip("-.")[:60] or "detector"


def _data(folder: Path, run: PredictionRun, looked: int, asked: Asked) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "predictions": str(folder / "predictions"),
        "videos": len(run.done),
        "looked_at_now": looked,
        "frames": sum(part["frames"] for part in run.done.values()),
        "boxes": sum(part["boxes"] for part in run.done.values()),
        "missing": sum(part.get("missing", 0) for part in run.done.values()),
        "refused": dict(run.failed),
        "still_pictures": any(film.stills for film in asked.films),
    }


def _text(data: dict[str, Any], detector: VideoDetector) -> str:
    names = ("videos", "frames", "boxes")
    rows = [(name, f"{data[name]:,}") for name in names]
    if data["missing"]:
        rows.append(("images that cannot be read", f"{data['missing']:,}"))
    if data["refused"]:
        rows.append(("videos refused", f"{len(data['refused']):,}"))
    kinds = ", ".join(f"{len(labels)} of {kind}" for kind, labels in detector.kinds.items())
    lines = [f"labels: {kinds}", "", terminal.format_table(["", "found"], rows)]
    if data["refused"]:
        lines += ["", "refused, and tried again by the same command:"]
        lines.append(
            terminal.format_bullets(
                f"{video}: {terminal.format_one_line(why)}" for video, why in data["refused"].items()
            )
        )
    shown = terminal.format_cell(data["predictions"])
    after = f"link {shown} --output TUBES"
    if "agent" not in detector.kinds:
        after = f"evaluate corner-cases --truth TRUTH --predictions {shown} --agnostic"
    elif data["still_pictures"]:
        after = f"propose DATASET --detections {shown} --output PROPOSALS"
    return "\n".join([*lines, "", f"wrote {shown}", f"  roadaware {after}"])
