"""`roadaware label`: corner cases by people: what to look at, tasks out, corrections in, agreement."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.annotation.agreement import build_consensus, group_objects, measure_box_agreement
from roadaware.analysis.annotation.cost import (
    Labour,
    build_labelled_scenes,
    compute_discovery_curve,
    compute_outcomes,
    estimate_cost,
    fit_cost,
    measure_worth,
    summarize_annotators,
    summarize_outcomes,
)
from roadaware.analysis.annotation.selection import (
    SelectionConfig,
    choose_images,
    list_images,
    rank_images,
    read_image_list,
)
from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    WHOLE_SEED,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    Stated,
    Switch,
    add_commands,
    create_app,
    describe_strict,
    validate_range,
)
from roadaware.cli.results import UNKEPT, ResultFolder
from roadaware.config import change_fields, parse_assignments
from roadaware.datasets import read
from roadaware.datasets.detect_format import detect_reader, find_root
from roadaware.demo_data.labelling import EXPORT, PROPOSALS, SCENES, write_labelling_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats.corrections import merge_answers, read_corrections
from roadaware.formats.cuboid_labels import (
    EDIT_FATES,
    SENT,
    compare_cuboids,
    read_edited_cuboids,
    read_sent_cuboids,
)
from roadaware.formats.proposal_tasks import Form, open_sent_proposals, select_task_proposals, write_tasks
from roadaware.formats.task_images import prepare_task_images
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.protocols.coda import load_object_classes
from roadaware.reports import terminal
from roadaware.reports.annotation import (
    CONSENSUS,
    LABELS,
    build_agreement_files,
    build_correction_files,
    build_selection_files,
    draw_disputes,
    format_agreement,
    format_corrections,
    format_export,
    format_selection,
)
from roadaware.scenes.store import is_saved, open_predictions, open_scenes

if TYPE_CHECKING:
    from roadaware.scenes.tables import Predictions, Scenes

# What the commands of `label` take: proposals, and the images they are on.


def _open_proposals(path: Path) -> Predictions:
    """Saved proposals: the folder that `propose` wrote, or the one in it."""
    inner = path / "proposals"
    with console.log_step(f"opening {path}"):
        return open_predictions(inner if is_saved(inner) and not is_saved(path) else path)


def _open_with_images(path: Path, root: Path | None = None) -> tuple[Scenes, Path]:
    """A set with its images: a dataset, or saved tables beside them; and the folder its paths start at."""
    if is_saved(path):
        with console.log_step(f"opening {path}"):
            return open_scenes(path), root or path.absolute().parent
    name = detect_reader(path)
    base = find_root(name, path)
    with console.show_progress(f"reading {name}") as shown:
        return read(name, base, progress=shown), root or base


# `roadaware label agree`: how far annotators agree on boxes, what most drew, and what is disputed.

_LABELS = "What `label import` wrote, or saved tables with `boxes.annotator`."
_IOU = "Boxes of two annotators that overlap less are of different things."
_VIDEOS = "The dataset, for --draw: one of `propose`, or saved tables beside their images."
_DRAW = "Also draw the first so many disputed images, with the boxes of every annotator."


def agree(
    path: Annotated[Path, Parameter(help=_LABELS)],
    /,
    *,
    iou: Annotated[float, Parameter(help=_IOU)] = 0.5,
    kind: Annotated[str, Parameter(help="The kind of label that is compared.")] = "corner",
    resamples: Resamples = 1000,
    seed: Seed = 0,
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    videos: Annotated[Path | None, Parameter(help=_VIDEOS)] = None,
    result: ResultFolder = UNKEPT,
    strict: Annotated[bool, Parameter(help="Exit with 1 if anything is disputed."), Switch] = False,
) -> Outcome:
    """Compare the boxes of several annotators, and make truth of what most of them drew.

    Boxes are paired one to one by overlap. Agreement is told on what is there (drawn by all, by one), where
    it is (overlap) and what it is (Krippendorff's alpha), for all, for every two annotators and by class,
    with intervals over images and over videos. What half or fewer drew, classes without a majority, and
    images that one alone saw are disputes, for a further look.

    For example:

        roadaware label agree runs/labels -o runs/consensus

        roadaware label agree runs/labels -o runs/consensus --draw 20 --videos runs/streets/scenes
    """
    if not 0 < iou <= 1:
        raise UsageError(f"--iou lies above 0 and up to 1, not {iou}")
    if draw and (videos is None or result.folder is None):
        raise UsageError("--draw needs --videos, where the images are, and --output, where they go")
    inner = path / LABELS
    with console.log_step(f"opening {path}"):
        scenes = open_scenes(inner if is_saved(inner) else path)
    with console.log_step("comparing"):
        things = group_objects(scenes, kind=kind, least=iou)
        found, agreed = (
            measure_box_agreement(things, resamples=resamples, seed=seed),
            build_consensus(things, scenes),
        )
    data = {
        "annotators": list(things.annotators),
        "pictures": len(things.pictures),
        "pictures_one_alone_saw": len(things.alone),
        "agreement": found.table.to_dicts(),
        "found_by": found.counts.to_dicts(),
        "boxes_agreed": len(agreed.scenes.boxes),
        "disputes": len(agreed.disputes),
    }
    if result.folder is not None:
        drawn: dict[str, bytes] = {}
        if draw and videos is not None:
            source, root = _open_with_images(videos)
            with console.log_step("drawing"):
                drawn = draw_disputes(scenes, agreed.disputes, source, root, draw)
        files = folders.add_marker(build_agreement_files(found, agreed, drawn), data)
        result.write(files, also=f"truth: {CONSENSUS}")
    failed = describe_strict(strict, len(agreed.disputes), "disputes")
    return Outcome(format_agreement(found, agreed.disputes, data), data, failed)


# `roadaware label export`: proposals as tasks of Label Studio, COCO or Parquet, with their images.

_PROPOSALS = "What `propose` wrote, or saved predictions with boxes."
_EXPORT_VIDEOS = "The dataset that they are of: one of `propose`, or saved tables beside their images."
_ROOT = "The folder that paths in saved tables start at. [default: the one above them]"
_OUT = "A new or empty folder; it is what `label import` asks for later."
_AS = "Formats of the tasks; several may follow."
_LIST = "Only the images of this list, in its order: list.csv of `label select`, or its folder."
_ALL = "Also images without a proposal, where something may have been missed."
_SERVED = (
    "The folder that Label Studio serves (LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT); paths start there. "
    "[default: that of the dataset, or --output where images are written there]"
)
_COPY = "Copy stills into --output, so that it holds all that is needed."
_CLASSES = "Classes that annotators choose from; those of pre-labels are added. [default: those of CODA]"


def export(
    path: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    videos: Annotated[Path, Parameter(help=_EXPORT_VIDEOS)],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.TASKS],
    as_: Annotated[tuple[Form, ...], Parameter(name="--as", help=_AS), Several] = ("labelstudio",),
    images: Annotated[Path | None, Parameter(name="--list", help=_LIST)] = None,
    top: Annotated[int | None, Parameter(help="The first so many images.")] = None,
    all_pictures: Annotated[bool, Parameter(name="--all", help=_ALL), Switch] = False,
    root: Annotated[Path | None, Parameter(name="--media", help=_ROOT)] = None,
    served: Annotated[Path | None, Parameter(help=_SERVED)] = None,
    copy: Annotated[bool, Parameter(help=_COPY), Switch] = False,
    classes: Annotated[tuple[str, ...], Parameter(help=_CLASSES), Several, Stated] = (),
    kind: Annotated[str, Parameter(help="The kind of label that pre-labels are.")] = "corner",
    overwrite: Overwrite = False,
) -> Outcome:
    """Write proposals as tasks for annotators who keep, correct, delete and add boxes.

    Images with a proposal are written, those with the best proposal first, each proposal with its score and
    its pre-label as class. Frames of videos become images in --output; interrupted, the same command goes on
    with them. --output keeps what was sent, so that `label import` can say what became of each proposal.

    For example:

        roadaware label export runs/streets/proposals --videos runs/streets/scenes --output runs/tasks \\
            --as labelstudio coco parquet --classes traffic_cone dog debris barrier

        roadaware label export proposals --videos KITTI --list runs/list --top 500 --served KITTI --output tasks
    """
    if not as_:
        raise UsageError("--as names at least one of labelstudio, coco and parquet")
    if top is not None and top < 1:
        raise UsageError(f"--top is a number of images from 1 on, not {top}")
    predictions = _open_proposals(path)
    scenes, base = _open_with_images(videos, root)
    listed = None if images is None else read_image_list(images)
    places = choose_images(predictions, scenes, listed, all_pictures=all_pictures)[:top]
    bad: dict[str, int] = {}

    def refused(_: tuple[str, int], error: InputError) -> None:
        what = f"images: {error.message}"
        bad[what] = bad.get(what, 0) + 1

    with console.show_progress("pictures") as shown:
        frames = prepare_task_images(
            scenes, base, places, out, served=served, copy=copy, refused=refused, progress=shown
        )
    if frames.is_empty():
        raise InputError(f"none of {len(places)} images can be read; {next(iter(bad))}", where=str(base))
    words = classes or tuple(each.label for each in load_object_classes())
    sent, left_out = select_task_proposals(predictions, frames, words, kind=kind)
    left_out |= bad
    written = write_tasks(sent, out, as_)
    console.print_note(f"wrote {out}")
    data = {
        "folder": str(out),
        "pictures": len(sent.frames),
        "proposals": len(sent.boxes),
        "classes": list(sent.meta.vocabularies["corner"]),
        "files": written,
        "left_out": left_out,
    }
    return Outcome(format_export(sent, out, written, left_out), data)


# `roadaware label import`: what people made of proposals, read back as tables.

_TASKS = "The folder that `label export` wrote, or `cuboids` of `propose --as`."
_CORRECTED = (
    "What annotators made: a Label Studio export (JSON), or COCO or Parquet, a file per annotator; of cuboids "
    "nuScenes' JSON, or the folder of another form."
)
_STILL_PX = 0.5
_STILL = "An edge that moved by no more counts as kept, in pixels."


def import_labels(
    tasks: Annotated[Path, Parameter(help=_TASKS)],
    corrected: Annotated[tuple[Path, ...], Parameter(help=_CORRECTED)],
    /,
    *,
    still_px: Annotated[float, Parameter(help=_STILL)] = _STILL_PX,
    result: ResultFolder = UNKEPT,
    strict: Annotated[bool, Parameter(help="Exit with 1 if anything was refused."), Switch] = False,
) -> Outcome:
    """Read corrected proposals back, and say which were kept, moved, renamed or deleted, and what was added.

    Boxes that keep the number of their proposal are compared with it; where a file has lost all numbers,
    with the proposal that they overlap most. Several annotators stand side by side, told apart by name.
    Turned boxes, boxes outside their image, and images that were not sent out are refused and counted.
    Of cuboids, cuboids.csv says what became of each and where it stands now, in the LiDAR's frame.

    For example:

        roadaware label import runs/tasks runs/streets/corrected.json -o runs/labels

        roadaware label import runs/tracked/cuboids edited/labelcloud -o labels

        roadaware label import tasks ann.coco.json ben.coco.json -o labels --strict
    """
    if not corrected:
        raise UsageError("name at least one file that annotators corrected, behind the folder of the tasks")
    if not 0 <= still_px <= 1000:
        raise UsageError(f"--still-px is a number of pixels from 0 to 1000, not {still_px}")
    if (tasks / SENT).is_file():
        if still_px != _STILL_PX:
            raise UsageError(
                "--still-px is for boxes in images; cuboids count as kept where they have not moved at all"
            )
        return _import_cuboids(tasks, corrected, result, strict=strict)
    sent = open_sent_proposals(tasks)
    with console.log_step("reading"):
        answers = merge_answers([read_corrections(path, sent) for path in corrected])
    table = compute_outcomes(sent, answers, still_px=still_px)
    classes, people = summarize_outcomes(table), summarize_annotators(table, answers.looked)
    scenes = build_labelled_scenes(sent, answers, table)
    found = count_refusals(scenes, "the corrections")
    cost = fit_cost(table, answers.looked)
    data = {
        "classes": classes.to_dicts(),
        "annotators": people.to_dicts(),
        "labour": None if cost is None else {**asdict(cost[0]), "pictures": cost[1]},
        "pictures": {"sent": len(sent.frames), "done": int(scenes.frames["annotated"].sum())},
        "refused": found,
        "notes": list(list_warnings(scenes)),
    }
    if result.folder is not None:
        files = folders.add_marker(build_correction_files(scenes, table, classes, people), data)
        result.write(files, also=f"labels: {LABELS}")
    failed = describe_strict(strict, sum(found.values()), "items were refused")
    return Outcome(format_corrections(len(scenes.boxes), classes, people, data, result.folder), data, failed)


def _import_cuboids(
    tasks: Path, corrected: tuple[Path, ...], result: ResultFolder, *, strict: bool
) -> Outcome:
    """What became of cuboids, file by file."""
    sent = read_sent_cuboids(tasks)
    tables: list[pl.DataFrame] = []
    told: list[dict[str, Any]] = []
    lines: list[str] = []
    for path in corrected:
        with console.log_step(f"reading {path}"):
            edited = read_edited_cuboids(path, sent)
        table = compare_cuboids(sent, edited)
        counts = {fate: int((table["fate"] == fate).sum()) for fate in EDIT_FATES}
        refused = dict(edited.refused)
        told.append(
            {
                "file": str(path),
                "form": edited.form,
                "pictures": len(edited.done),
                **counts,
                "refused": refused,
                "unclear": list(edited.unclear),
            }
        )
        tables.append(table.insert_column(0, pl.lit(str(path)).alias("file")))
        shown = ", ".join(f"{count:,} {fate}" for fate, count in counts.items())
        lines.append(
            f"{terminal.format_cell(str(path))}, {edited.form}: {len(edited.done):,} images done; {shown}"
        )
        lines += [f"refused: {count:,} {what}" for what, count in refused.items()]
        lines += [
            f"unclear: {terminal.format_cell(what)}; labelCloud's `vertices` cannot be misread"
            for what in edited.unclear
        ]
    data = {"cuboids": told}
    if result.folder is not None:
        files = folders.add_marker({"cuboids.csv": format_csv(pl.concat(tables)).encode()}, data)
        result.write(files, also="cuboids: cuboids.csv")
    lost = sum(sum(each["refused"].values()) + len(each["unclear"]) for each in told)
    failed = describe_strict(strict, lost, "items were refused, or are unclear")
    return Outcome("\n".join(lines), data, failed)


# `roadaware label select`: which images are worth a look, and what that saves.

_SELECT_VIDEOS = (
    "The dataset that they are of, for images without a proposal; else only those with one are ranked."
)
_TRUTH = "The same with `boxes.corner_case`, such as synthetic scenes: measures what the list finds."
_BY = (
    "What makes an image worth a look: the count of proposals, the chance of any (as if scores were "
    "chances), the best score, the sum of scores, or what is new: each thing that `propose --track` followed counts "
    "in one image alone, as one (new) or as the chance that it is a corner case (chance)."
)
_ASSUMED = (
    "FIELD=VALUE: repeat (0.5), which each higher image of the same video multiplies the worth by, 1 for no heed; and what "
    "work costs, one person's seconds to be replaced by what you measure: look_s (10) to look an image over, judge_s (2) to "
    "keep or delete a proposal, correct_s (10) to bring its edges to the object, draw_s (35) to draw and name a box, as one "
    "of ILSVRC took."
)
_SCORE = "The column of the boxes that ranks them, from 0 to 1, such as one that `rescore` wrote."
_LEAST = "Proposals with a lower score do not count."
_UNIT = "What is to be found: objects, each once, or images with a corner case."


def select(
    path: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    videos: Annotated[Path | None, Parameter(help=_SELECT_VIDEOS)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    by: Annotated[Literal["count", "any", "best", "sum", "new", "chance"], Parameter(help=_BY)] = "count",
    score: Annotated[str, Parameter(help=_SCORE)] = "score",
    least_score: Annotated[float, Parameter(name="--min-score", help=_LEAST)] = 0.0,
    unit: Annotated[Literal["objects", "pictures"], Parameter(help=_UNIT)] = "objects",
    assumed: Annotated[tuple[str, ...], Parameter(name="--set", help=_ASSUMED), Several, Stated] = (),
    resamples: Resamples = 1000,
    seed: Seed = 0,
    result: ResultFolder = UNKEPT,
) -> Outcome:
    """Rank images by their proposals, and say what looking at the list costs against looking at all.

    Images of scenes that stand higher already are worth less. With truth, the share of corner cases found
    is measured over the share of images looked at, beside chance, chance that takes each video in turn,
    and the best order there could be, with intervals over videos.

    For example:

        roadaware label select runs/streets/proposals --videos runs/streets/scenes -o runs/list

        roadaware label select proposals --truth runs/synthetic --by any -o runs/list
    """
    known = ["repeat", *(each.name for each in fields(Labour))]
    how = {"kind": "field", "example": "repeat=1", "owner": "the list", "listing": "there are"}
    named = [name for name, _ in parse_assignments(assumed, known, flag="--set", **how)]
    ranking = [each for each, name in zip(assumed, named, strict=True) if name == "repeat"]
    config = change_fields(SelectionConfig(by, least_score=least_score, column=score), ranking, "the list")
    labour = change_fields(Labour(), [each for each in assumed if each not in ranking], "the list")
    predictions = _open_proposals(path)
    set_path = truth or videos
    scenes = None if set_path is None else _open_with_images(set_path)[0]
    images = (
        predictions.boxes.select(pl.col("video").cast(pl.String), "frame").unique().sort("video", "frame")
    )
    images = images if scenes is None else list_images(scenes)
    with console.log_step("ranking"):
        table = rank_images(predictions, images, config, seed=seed)
    found = None
    if truth is not None and scenes is not None:
        with console.log_step("measuring"):
            worth = measure_worth(table, predictions, scenes)
            found = compute_discovery_curve(worth, labour, unit=unit, resamples=resamples, seed=seed)
    costs = estimate_cost(table, labour)
    measured: dict[str, Any] | None = None
    if found is not None:
        measured = {"unit": found.unit, "totals": found.totals, "table": found.table.to_dicts()}
    data = {
        "config": asdict(config),
        "labour": asdict(labour),
        "all_pictures_known": scenes is not None,
        "planned": costs,
        "measured": measured,
    }
    if result.folder is not None:
        with console.log_step("report"):
            files = folders.add_marker(build_selection_files(table, costs, found), data)
        result.write(files, also="list: list.csv")
    text = format_selection(table, costs, found, all_known=scenes is not None)
    return Outcome(text, {**data, "pictures": table.to_dicts()})


label = create_app(
    "label",
    """
    Bring proposals of corner cases to annotators, and back: select, export, import, agree.

    For example:

        roadaware label example runs/streets

        roadaware label select runs/streets/proposals --truth runs/streets/scenes -o runs/list

        roadaware label export runs/streets/proposals --videos runs/streets/scenes --all --output runs/tasks

        roadaware label import runs/tasks runs/streets/corrected.json -o runs/labels

        roadaware label agree runs/labels -o runs/consensus
    """,
)


_EXAMPLE = "A new or empty folder; an earlier example is replaced."


def example(
    folder: Annotated[Path, Parameter(help=_EXAMPLE), outputs.STREETS],
    /,
    *,
    seed: Annotated[int, Parameter(help="Where chance comes from.", validator=WHOLE_SEED)] = 0,
) -> Outcome:
    """Write synthetic images with truth, proposals and what three annotators made of them, to try `label` on.

    It has images, scenes (the truth, as tables), proposals, corrected.json (a Label Studio export of
    three annotators with stated errors) and planted.json (what was planted).

    For example:

        roadaware label example runs/streets
    """
    facts = write_labelling_demo(folder, seed=seed)
    proposals, truth, corrected = (
        terminal.format_word(folder / name) for name in (PROPOSALS, SCENES, EXPORT)
    )
    said = (
        f"wrote {terminal.format_cell(folder)}: {facts.pictures} images, {facts.with_a_case} with {facts.cases} corner "
        "cases, "
        f"{facts.proposals} proposals, and what {len(facts.annotators)} annotators left\n"
        f"$ roadaware label select {proposals} --truth {truth}\n"
        f"$ roadaware label export {proposals} --videos {truth} --all --output TASKS\n"
        f"$ roadaware label import TASKS {corrected} -o LABELS\n"
        f"$ roadaware label agree LABELS -o CONSENSUS"
    )
    return Outcome(said, {"folder": str(folder), "seed": seed, **asdict(facts)})


add_commands(label, (example, select, export, import_labels, agree), import_labels="import")
