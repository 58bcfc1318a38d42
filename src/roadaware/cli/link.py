"""Tubes: `roadaware link` makes them of detections, `enforce` corrects scores before that, `submit` hands them in."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from cyclopts import Group, Parameter

from roadaware.analysis.evaluation import event_inputs
from roadaware.analysis.evaluation.event_inputs import NETWORK_SIZE, EventSet
from roadaware.analysis.evaluation.events import (
    compare_submission,
    list_media_videos,
    score_submission,
    select_split,
)
from roadaware.analysis.event_findings import list_warnings
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    LOCAL,
    ConfigName,
    Outcome,
    Output,
    Overwrite,
    Several,
    Spread,
    Stated,
    Switch,
    describe_strict,
)
from roadaware.cli.results import Images, ImageSize
from roadaware.config import digest, parse_fields, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.formats.submission import (
    Challenge,
    Remark,
    Submission,
    build_submission,
    merge_submissions,
    write_submission,
)
from roadaware.io.folders import make_folder
from roadaware.linking.config import LinkerConfig, select_linker
from roadaware.linking.enforcement import EnforcementConfig, Method, enforce_requirements
from roadaware.linking.link import count_linked
from roadaware.linking.link import link as linked
from roadaware.linking.postprocessing import (
    FusionConfig,
    InterpolationConfig,
    NmsConfig,
    fuse_detections,
    interpolate_tubes,
    list_steps,
    suppress_overlaps,
)
from roadaware.models.event_head.head import open_head
from roadaware.online.setup import has_event_head
from roadaware.reports import terminal
from roadaware.reports.tracking_text import describe_step, format_enforcement, format_submission, format_tubes
from roadaware.scenes.advice import get_advice
from roadaware.scenes.composites import product_of_marginals
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.store import save
from roadaware.tasks.events import add_events

# Steps of `roadaware link` on either side of the linker: suppress, fuse, and leave out short paths.

_STEPS = Group("Before and after linking", sort_key=50)
_FUSE = "Boxes of several sets that overlap by more than this become one. [default: 0.55]"
_WEIGHTS = "Weight of each set's scores, in the order of the sets. [default: 1 each]"
_NMS = (
    "Suppress first, in each set by itself: boxes that overlap a box of more agentness, as the published "
    "detector does, or the class scores that an overlapping box has more of."
)
_NMS_IOU = "The greatest overlap that --nms allows. [default: 0.5]"
_SHORT = "Boxes that a path needs, and frames that a labelled tube needs; shorter ones are left out."


@Parameter(name="*", group=_STEPS)
@dataclass(frozen=True)
class Steps:
    """What is done to detections before they are linked, and to paths afterwards."""

    nms: Annotated[Literal["agentness", "class"] | None, Parameter(help=_NMS)] = None
    nms_iou: Annotated[float | None, Parameter(help=_NMS_IOU)] = None
    fuse_iou: Annotated[float | None, Parameter(help=_FUSE)] = None
    weights: Annotated[tuple[float, ...], Parameter(help=_WEIGHTS), Several, Stated] = ()
    min_length: Annotated[int, Parameter(help=_SHORT)] = 1

    def check(self, count: int) -> None:
        """Refuse options that would change nothing.

        Args:
            count: sets of detections.

        Raises:
            UsageError: if an option is given without what it belongs to.
        """
        if self.nms_iou is not None and self.nms is None:
            raise UsageError("--nms-iou says how --nms suppresses; give --nms agentness or --nms class too")
        if count == 1 and (self.fuse_iou is not None or self.weights):
            raise UsageError("--fuse-iou and --weights fuse several sets of detections; there is one")
        if self.weights and len(self.weights) != count:
            raise UsageError(
                f"--weights needs a number for each of the {count} sets of detections, in their order; got "
                f"{len(self.weights)}"
            )
        if self.min_length < 1:
            raise UsageError(f"--min-length is a number of boxes from 1 on; got {self.min_length}")


AS_THEY_ARE = Steps()

_DETECTIONS = (
    "Folder of per-frame pickles, saved tables, or COCO results; several are fused. A folder holds "
    "VIDEO/00001.pkl, ..., each {'ego': ..., 'main': x1, y1, x2, y2, agentness, class scores}."
)
_TRUTH = "Annotations that name labels, videos and their sizes: a release's file, or saved tables."
_DATASET = "Whose published parameters; guessed from the number of classes: 24 are UCF101-24."
_CONFIG = "`reference` builds tubes box for box as the published code, `default` as we recommend."
_OUT = "Where the tables go, with the tubes in them."
_IOU = "Smallest overlap of a link. [default: as the detector advises, else that of the configuration]"
_SET = (
    "FIELD=VALUE: other fields of the configuration, such as jump_gap=8 (frames that a path may miss, whatever time they "
    "take), cost (what chooses between candidates: score, iou, scoreiou, ioul2, affinity), assignment (paths choose in turn: "
    "greedy; all at once: hungarian; so and those left once more: cascade), trim (labels are cut out of a path not at all: "
    "none; each by itself: indiv; against each other: dpscores, dpscorestopn), or any other of LinkerConfig."
)
_COMPOSITES = (
    "Scores of duplexes and events: as predicted (joint), or products of those of their parts (product)."
)
_EVENTS = (
    "Give detections of agents actions, locations, duplexes and events by the event head, from how boxes "
    "move. The own motion is then only what boxes tell of it: `predict --events` looks at the images."
)


def link(
    detections: Annotated[list[Path], Parameter(help=_DETECTIONS)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.TABLES],
    config: Annotated[ConfigName, Parameter(help=_CONFIG)] = "default",
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    dataset: Annotated[EventSet | None, Parameter(help=_DATASET)] = None,
    images: Images = None,
    size: ImageSize = NETWORK_SIZE,
    iou: Annotated[float | None, Parameter(help=_IOU)] = None,
    changes: Annotated[tuple[str, ...], Parameter(name="--set", help=_SET), Several] = (),
    composites: Annotated[Literal["joint", "product"], Parameter(help=_COMPOSITES)] = "joint",
    events: Annotated[bool, Parameter(help=_EVENTS), Switch] = False,
    steps: Steps = AS_THEY_ARE,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
) -> Outcome:
    """Link detections to tubes and label them, as published or as we recommend.

    Needs the detections of a model, frame by frame, or those of several, which weighted boxes fusion makes
    one. Writes tables that `evaluate` takes: every detection, the paths (tubes without parent, in the order
    in which they closed) and the labelled tubes cut from them.

    For example:

        roadaware link detections-30-08-50 --config reference --output linked

        roadaware link detections-30-08-50 --truth road_trainval_v1.0.json \\
            --iou 0.25 --set trim=indiv --output linked

        roadaware link detections-a detections-b --weights 2 1 --nms agentness \\
            --min-length 6 --output fused
    """
    steps.check(len(detections))
    workers = spread.gather()
    if iou is not None and not 0 <= iou <= 1:
        raise UsageError(f"--iou is an overlap from 0 to 1, not {iou:g}")
    given: dict[str, Any] = {} if iou is None else {"min_iou": iou}
    given |= parse_fields(LinkerConfig, changes, "the linker")
    replace(LinkerConfig.default(), **given)  # what a field does not take is said before anything is opened
    if "jump_gap" in given:  # whatever time they take
        given.setdefault("jump_gap_s", 0.0)
    size_px = event_inputs.parse_size(size)
    scenes = None if truth is None else event_inputs.open_truth(truth)
    predictions = [event_inputs.open_predictions(path, scenes, size_px, images=images) for path in detections]
    for warning in () if scenes is None else list_warnings(scenes):
        console.print_note(warning)
    for each in predictions:
        if each.has_tubes:
            hint = "They can be judged as they are."
            raise InputError("expected detections, found tubes", where=str(each.path), hint=hint)
    sets = [event_inputs.add_dense_scores(each.tables) for each in predictions]
    if composites == "product":
        sets = [product_of_marginals(each) for each in sets]
    if steps.nms is not None:
        rule = NmsConfig(by=steps.nms)
        rule = rule if steps.nms_iou is None else replace(rule, iou=steps.nms_iou)
        with console.log_step("suppressing"):
            sets = [suppress_overlaps(each, rule) for each in sets]
    found = sets[0]
    if len(sets) > 1:
        fusion = FusionConfig(weights=steps.weights or None)
        fusion = fusion if steps.fuse_iou is None else replace(fusion, iou=steps.fuse_iou)
        with console.log_step("fusing"):
            found = fuse_detections(sets, fusion)
    published = dataset or event_inputs.infer_dataset(found)
    chosen, said = select_linker(config, published, get_advice(found.meta), given)
    chosen = replace(chosen, **given)  # None too, which was not asked for above
    if events:
        has_event_head(True, get_score_layout(found.meta, "boxes").kinds)
        # The truth says sizes and rates where the detections do not.
        known = found.videos
        if scenes is not None and not scenes.videos.is_empty():
            named = found.boxes["video"].cast(pl.String).unique()
            known = scenes.videos.filter(pl.col("video").cast(pl.String).is_in(named.implode()))
        with console.log_step("labelling"):
            found = add_events(found.with_tables(videos=known), open_head(), chosen)
    started_s = time.monotonic()
    with console.show_progress("linking") as progress, console.log_step("linking"):
        tubes = linked(found, chosen, progress=progress, workers=workers)
    elapsed_s = time.monotonic() - started_s
    if steps.min_length > 1:
        if "consecutive" in tubes.tubes.columns and tubes.tubes["consecutive"].any():
            raise UsageError(
                "--min-length counts the frames of a path, and the published builder reports others than it "
                "found; use --config default"
            )
        shortest = InterpolationConfig(max_gap=0, min_length=steps.min_length)
        tubes = interpolate_tubes(tubes, shortest)
    save(tubes, out, overwrite=overwrite)
    console.print_note(f"wrote {out}")
    dropped: dict[str, int] = {}
    for what, count in (item for each in predictions for item in each.dropped.items()):
        dropped[what] = dropped.get(what, 0) + count
    counts = count_linked(tubes)
    data = {
        **counts,
        "config": to_dict(chosen),
        "config_digest": digest(chosen),
        "steps": list_steps(tubes),
        "dropped": dropped,
        "seconds": round(elapsed_s, 3),
        "notes": said,
    }
    names = " and ".join(terminal.format_cell(each.path.name) for each in predictions)
    lines = [
        f"linked {names} in {terminal.format_duration(elapsed_s)}",
        *(line for step in list_steps(tubes) if (line := describe_step(step))),
        *said,
        "",
        format_tubes(counts),
        *(f"{count:,} {terminal.format_cell(what)}" for what, count in dropped.items()),
        "",
    ]
    name = "ucf24" if event_inputs.infer_dataset(tubes) == "ucf24" else "road"
    next_one = f"next: roadaware evaluate {name} --truth TRUTH --predictions {terminal.format_word(out)}"
    return Outcome("\n".join([*lines, next_one]), data)


# `roadaware enforce`: scores of detections corrected so that their labels satisfy logical requirements.

_ENFORCE_DETECTIONS = (
    "The detections: tables as `predict` saves them, a folder of per-frame pickles, or COCO results. Not linked: "
    "tubes are made of what comes out."
)
_REQUIREMENTS = "The requirements, ROAD-R's in either form or your own; two files have to say the same."
_ENFORCE_TRUTH = "Annotations that name labels, videos and their sizes, where the detections do not."
_THRESHOLD = "A label is predicted where its score is at least this; requirements hold there, and only there."
_METHOD = (
    "`nearest` changes least; `propagation` goes over the labels once, is faster and changes more; `maxsat` is the "
    "solver of python-sat (pip install 'roadaware[logic]'), which finds what `nearest` finds."
)
_BOXES = "Which boxes have to satisfy them: those whose own score reaches the threshold, or all."
_MARGIN = "Scores that change come to lie within so much of the threshold, in their order."


def enforce(
    detections: Annotated[Path, Parameter(help=_ENFORCE_DETECTIONS)],
    /,
    *,
    requirements: Annotated[tuple[Path, ...], Parameter(help=_REQUIREMENTS), Several],
    out: Annotated[Path, Output, Parameter(help="Where the tables go."), outputs.TABLES],
    threshold: Annotated[float, Parameter(help=_THRESHOLD)] = 0.5,
    method: Annotated[Method, Parameter(help=_METHOD)] = "nearest",
    boxes: Annotated[Literal["predicted", "all"], Parameter(help=_BOXES)] = "predicted",
    margin: Annotated[float, Parameter(help=_MARGIN)] = 1e-3,
    truth: Annotated[Path | None, Parameter(help=_ENFORCE_TRUTH)] = None,
    images: Images = None,
    size: ImageSize = NETWORK_SIZE,
    overwrite: Overwrite = False,
) -> Outcome:
    """Correct the scores of detections so that the labels of each box satisfy logical requirements.

    The requirements of ROAD-R say, for example, that who pushes an object is a pedestrian and that a traffic light is
    not on the pavement. A box that violates one gets the nearest scores that violate none: as little as can be moves
    across the threshold, and everything else stays. `link` makes tubes of the result, `evaluate road` judges it.

    For example:

        roadaware enforce runs/found/predictions --requirements requirements_dimacs.txt -o runs/found/consistent

        roadaware enforce detections-30-08-50 --truth road_trainval_v1.0.json \\
            --requirements requirements_readable.txt --threshold 0.3 -o consistent
    """
    config = EnforcementConfig(threshold, method, boxes, margin)
    size_px = event_inputs.parse_size(size)
    rules = open_requirements(requirements)
    scenes = None if truth is None else event_inputs.open_truth(truth)
    predictions = event_inputs.open_predictions(detections, scenes, size_px, images=images)
    with console.log_step("requirements"):
        found, counts = enforce_requirements(event_inputs.add_dense_scores(predictions.tables), rules, config)
    save(found, out, overwrite=overwrite)
    console.print_note(f"wrote {out}")
    data = {
        **asdict(counts),
        "requirements": len(rules),
        "file": rules.name,
        "config": to_dict(config),
        "dropped": predictions.dropped,
    }
    dropped = [f"{count:,} {terminal.format_cell(what)}" for what, count in predictions.dropped.items()]
    next_one = f"next: roadaware link {terminal.format_word(out)} --output TUBES"
    return Outcome("\n".join([format_enforcement(counts, config), *dropped, "", next_one]), data)


# `roadaware submit`: the file for the server of a ROAD challenge, checked; nothing is uploaded.

_RUNS = "Tubes: tables that `link` wrote, or a tube file (.pkl). Of roadpp two, in the order of --truth."
_SUBMIT_TRUTH = (
    "The annotation file of the release, which names videos and labels; of roadpp that of each data set."
)
_SUBMIT_MEDIA = (
    "The videos of the split (or a folder of images for each) where the annotations that are public do not have it; of "
    "roadpp a folder of each data set."
)
_KINDS = "What is handed in: agent, action, location, duplex, event. [default: agent action event]"
_SUBMIT_OUT = "The zip. [default: CHALLENGE.zip]"
_PARTS: dict[Challenge, tuple[str, ...]] = {
    "road": ("",),
    "road-waymo": ("",),
    "roadpp": ("ROAD", "ROAD-Waymo"),
}
"""What the data sets of a challenge are called beside their scores."""


def submit(
    challenge: Annotated[Challenge, Parameter(help="road, road-waymo or roadpp.")],
    runs: Annotated[list[Path], Parameter(help=_RUNS)],
    /,
    *,
    truth: Annotated[list[Path], Parameter(help=_SUBMIT_TRUTH), Several],
    split: Annotated[str, Parameter(help="The split that the challenge judges.")] = "test",
    media: Annotated[tuple[Path, ...], Parameter(help=_SUBMIT_MEDIA), Several] = (),
    kinds: Annotated[tuple[str, ...], Parameter(help=_KINDS), Several, Stated] = (),
    size: ImageSize = NETWORK_SIZE,
    out: Annotated[Path | None, Output, Parameter(help=_SUBMIT_OUT), outputs.NEW_FILE] = None,
    strict: Annotated[bool, Parameter(help="Exit with 1 if anything costs score."), Switch] = False,
    overwrite: Overwrite = False,
) -> Outcome:
    """Check tubes and write the zip that a server of the ROAD challenges takes; nothing is uploaded.

    The zip holds one pickle of tubes, with kinds, labels and videos as the release names them, frames from 1 without
    holes, and boxes in the 682x512 pixels that the published evaluator compares. What costs score is
    said, with the reason. Where the release annotates the split (val_1 ...), the file is also judged as the
    published evaluator does. Of a test split whose annotations are kept back, --media names the videos.

    For example:

        roadaware submit road linked --truth road_trainval_v1.0.json --split val_1 -o road.zip

        roadaware submit road-waymo linked --truth road_waymo_trainval_v1.0.json --media test-videos

        roadaware submit roadpp linked-road linked-waymo --media road/test waymo/test \\
            --truth road_trainval_v1.0.json road_waymo_trainval_v1.0.json
    """
    expected = len(_PARTS[challenge])
    if len(runs) != expected or len(truth) != expected:
        raise UsageError(
            f"{challenge} takes {expected} of RUNS and of --truth, in the same order; got {len(runs)} and {len(truth)}"
        )
    if media and len(media) != expected:
        raise UsageError(
            f"{challenge} takes {expected} of --media, in the order of --truth; got {len(media)}"
        )
    path = out or Path(f"{challenge}.zip")
    if out is None and path.exists() and not overwrite:
        raise UsageError(f"{path} is there already; say --overwrite to replace it, or -o FILE")
    size_px = event_inputs.parse_size(size)
    parts: list[Submission] = []
    scores: dict[str, dict[str, float]] = {}
    for place, (part_name, run, release) in enumerate(zip(_PARTS[challenge], runs, truth, strict=True)):
        whole = event_inputs.open_truth(release)
        scenes = (
            list_media_videos(media[place], whole, split) if media else select_split(whole, split, release)
        )
        opened = event_inputs.open_predictions(run, scenes if media else whole, size_px)
        if not opened.has_tubes:
            raise InputError(
                "expected tubes, found detections", where=str(run), hint="Link them first: roadaware link."
            )
        tables = event_inputs.assign_labels(opened.tables, whole)
        with console.log_step(f"checking {run}"):
            part = build_submission(tables, scenes, event_inputs.convert_kinds(kinds, whole))
        refused = [Remark(True, f"Left out: {count:,} {what}.") for what, count in opened.dropped.items()]
        met = compare_submission(part, scenes) if len(scenes.boxes) else []
        parts.append(Submission(part.lists, (*refused, *part.remarks, *met)))
        if len(scenes.tubes):
            try:
                scores |= score_submission(part, release, split, part_name)
            except InputError as error:
                console.print_note(f"not judged: {error.message}")
    whole_file = merge_submissions(parts)
    make_folder(path.parent)
    remarks = [*whole_file.remarks, *write_submission(whole_file, path)]
    console.print_note(f"wrote {path}")
    costly = sum(remark.costs for remark in remarks)
    data: dict[str, Any] = {
        "challenge": challenge,
        "split": split,
        "file": str(path),
        "bytes": path.stat().st_size,
        "tubes": whole_file.n_tubes,
        "videos": len(next(iter(whole_file.lists.values()))),
        "remarks": [{"costs_score": remark.costs, "says": remark.says} for remark in remarks],
        "video_map": scores,
    }
    failed = describe_strict(strict, costly, "things cost score")
    return Outcome(format_submission(data, remarks), data, failed)
