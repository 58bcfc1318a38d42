"""`roadaware label`: corner cases by people: what to look at, tasks out, corrections in, agreement."""

from __future__ import annotations

import io
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from cyclopts import Parameter
from PIL import Image

from roadaware.analysis.annotation.agreement import build_consensus, measure_box_agreement
from roadaware.analysis.annotation.cost import Labour, estimate_cost, fit_cost, measure_worth
from roadaware.analysis.annotation.discovery_curve import compute_discovery_curve
from roadaware.analysis.annotation.object_groups import group_objects
from roadaware.analysis.annotation.proposal_outcomes import (
    build_labelled_scenes,
    compute_outcomes,
    summarize_annotators,
    summarize_outcomes,
)
from roadaware.analysis.annotation.selection import SelectionConfig, rank_images
from roadaware.analysis.event_findings import count_refusals, list_warnings
from roadaware.cli import console, datasets, outputs
from roadaware.cli.options import (
    USUAL,
    WHOLE_SEED,
    Common,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    Seed,
    Several,
    Switch,
    add_commands,
    create_app,
    validate_range,
)
from roadaware.cli.results import write_result
from roadaware.datasets import read
from roadaware.datasets.detect_format import detect_reader, find_root
from roadaware.demo_data.labelling import EXPORT, PROPOSALS, SCENES, write_labelling_demo
from roadaware.errors import InputError, UsageError
from roadaware.formats import proposal_tasks as tasks
from roadaware.formats.corrections import merge_answers, read_corrections
from roadaware.formats.proposal_tasks import PICTURES, select_task_proposals
from roadaware.formats.task_images import prepare_task_images
from roadaware.io import folders
from roadaware.io.csv import format_csv, from_sheets
from roadaware.io.files import read_regular, write_atomically
from roadaware.io.folders import encode_json, make_folder
from roadaware.io.json import decode, parse
from roadaware.protocols.coda import load_object_classes
from roadaware.reports import terminal
from roadaware.reports.annotation import (
    build_agreement_section,
    build_corrections_section,
    build_selection_section,
    draw_dispute,
    list_disputes,
    plot_discovery,
)
from roadaware.reports.page import report
from roadaware.reports.runs import encode_parquet
from roadaware.scenes.sensors import open_frame
from roadaware.scenes.store import encode, open_predictions, open_scenes, save

if TYPE_CHECKING:
    from roadaware.analysis.annotation.agreement import BoxAgreement, Consensus
    from roadaware.analysis.annotation.discovery_curve import Curve
    from roadaware.scenes.tables import Predictions, Scenes

# What the commands of `label` take: proposals, the images they are on, lists, labels of several people.

SENT, LABELS = "sent", "labels"
"""Folders inside results: what was sent out, and what came back."""
_LIMIT = 1 << 28


@Parameter(name="*")
@dataclass(frozen=True)
class Seconds:
    """What work costs: one person's seconds, assumptions to be replaced by what you measure."""

    look: Annotated[float, Parameter(name="--look-s")] = 10.0
    """Seconds to look an image over."""
    judge: Annotated[float, Parameter(name="--judge-s")] = 2.0
    """Seconds to keep or delete a proposal."""
    correct: Annotated[float, Parameter(name="--correct-s")] = 10.0
    """Seconds to bring a proposal's edges to the object."""
    draw: Annotated[float, Parameter(name="--draw-s")] = 35.0
    """Seconds to draw and name a box; 35 is what a box of ILSVRC took."""

    def labour(self) -> Labour:
        """The model of labour.

        Raises:
            UsageError: if a number makes no sense.
        """

        return Labour(self.look, self.judge, self.correct, self.draw)


USUAL_SECONDS = Seconds()


def open_proposals(path: Path) -> Predictions:
    """Saved proposals: the folder that `propose` wrote, or the one in it.

    Raises:
        InputError: if there are none.
    """

    inner = path / "proposals"
    with console.log_step(f"opening {path}"):
        return open_predictions(inner if datasets.is_saved(inner) and not datasets.is_saved(path) else path)


def open_with_images(path: Path, root: Path | None) -> tuple[Scenes, Path]:
    """A set with its images: a dataset, or saved tables beside them; and the folder its paths start at.

    Args:
        path: of the set.
        root: the folder that paths start at; by default the dataset's own, or that above saved tables.

    Raises:
        DatasetNotFoundError: if it is no dataset that is known.
        UsageError: if it is an archive.
    """

    if datasets.is_saved(path):
        with console.log_step(f"opening {path}"):
            return open_scenes(path), root or path.absolute().parent
    name = detect_reader(path)
    base = find_root(name, path)
    with console.show_progress(f"reading {name}") as shown:
        return read(name, base, progress=shown), root or base


def list_images(scenes: Scenes) -> pl.DataFrame:
    """video and frame of all images of a set.

    Raises:
        InputError: if its tables do not say.
    """

    frames = scenes.frames.select(pl.col("video").cast(pl.String), "frame")
    rest = scenes.videos.with_columns(pl.col("video").cast(pl.String)).join(frames, on="video", how="anti")
    if "n_frames" in rest.columns and len(rest):
        counted = rest.drop_nulls("n_frames").select(
            "video", frame=pl.int_ranges(pl.col("n_frames"), dtype=pl.Int64)
        )
        frames = pl.concat([frames, counted.explode("frame").drop_nulls()])
    if frames.is_empty():
        raise InputError("the tables name no images", where=scenes.meta.dataset or None)
    return frames


def read_image_list(path: Path) -> list[tuple[str, int]]:
    """The images of a list that `label select` wrote, in its order: csv or JSON, or the folder with both.

    Raises:
        InputError: if it cannot be read, or is none.
    """

    where = path / "list.csv" if path.is_dir() else path
    try:
        data = read_regular(where, limit=_LIMIT)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("there is no such list", where=str(where), hint="Check the path.") from error
    try:
        if where.suffix == ".json":
            content = parse(decode(data, str(where)), str(where))
            table = pl.DataFrame(content["pictures"] if isinstance(content, dict) else content)
        else:
            table = pl.read_csv(
                data, infer_schema_length=None, schema_overrides={"video": pl.String}
            ).with_columns(from_sheets(pl.col("video")))
        rows = table.select(pl.col("video").cast(pl.String), pl.col("frame").cast(pl.Int64)).rows()
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        message = f"expected a list with the columns video and frame: {str(error).splitlines()[0]}"
        raise InputError(message, where=str(where), hint="`roadaware label select` writes one.") from error
    if not rows:
        raise InputError("the list is empty", where=str(where))
    return rows


def open_labels(path: Path) -> Scenes:
    """What several annotators left: a folder that `label import` wrote, or saved tables.

    Raises:
        InputError: if there is none.
    """

    inner = path / LABELS
    with console.log_step(f"opening {path}"):
        return open_scenes(inner if datasets.is_saved(inner) else path)


def open_sent_proposals(path: Path) -> Predictions:
    """What an export sent out.

    Raises:
        UsageError: if the folder is no export.
    """

    if not datasets.is_saved(path / SENT):
        raise UsageError(
            f"{path} is no folder that `roadaware label export` wrote: there is no "
            f"{SENT} in it; give an export that was interrupted again"
        )
    sent = open_predictions(path / SENT)
    missing = [name for name in ("task", *PICTURES) if name not in sent.frames.columns]
    if missing:
        raise InputError(
            f"expected images with the columns of an export, which lacks {', '.join(missing)}",
            where=str(path / SENT),
            hint="Export again, into a new folder.",
        )
    return sent


def pack_tables(tables: Any, folder: str) -> dict[str, bytes]:
    """A saved set as files of a result folder.

    Args:
        tables: Scenes or Predictions.
        folder: inside the result.
    """

    files, meta = encode(tables)
    return {f"{folder}/{name}": data for name, data in {**files, "meta.json": meta}.items()}


# `roadaware label agree`: how far annotators agree on boxes, what most drew, and what is disputed.

CONSENSUS, DISPUTES = "consensus", "disputed"
_LABELS = "What `label import` wrote, or saved tables with `boxes.annotator`."
_IOU = "Boxes of two annotators that overlap less are of different things."
_KIND = "The kind of label that is compared."
_VIDEOS = "The dataset, for --draw: one of `propose`, or saved tables beside their images."
_DRAW = "Also draw the first so many disputed images, with the boxes of every annotator."
_FOLDER = "Write the consensus as tables, the disputes, the agreement and a page into this folder."
_STRICT = "Exit with 1 if anything is disputed."
_PAGE = "report.html"


def agree(
    path: Annotated[Path, Parameter(help=_LABELS)],
    /,
    *,
    iou: Annotated[float, Parameter(help=_IOU)] = 0.5,
    kind: Annotated[str, Parameter(help=_KIND)] = "corner",
    draws: Resamples = 1000,
    seed: Seed = 0,
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    videos: Annotated[Path | None, Parameter(help=_VIDEOS)] = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
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
    if draw and (videos is None or folder is None):
        raise UsageError("--draw needs --videos, where the images are, and --output, where they go")
    scenes = open_labels(path)
    with console.log_step("comparing"):
        things = group_objects(scenes, kind=kind, least=iou)
        found, agreed = measure_box_agreement(things, draws=draws, seed=seed), build_consensus(things, scenes)
    data = {
        "annotators": list(things.annotators),
        "pictures": len(things.pictures),
        "pictures_one_alone_saw": len(things.alone),
        "agreement": found.table.to_dicts(),
        "found_by": found.counts.to_dicts(),
        "boxes_agreed": len(agreed.scenes.boxes),
        "disputes": len(agreed.disputes),
    }
    if folder is not None:
        pictures = _draw_disputes(scenes, agreed, videos, draw) if draw and videos is not None else {}
        _save(folder, found, agreed, data, pictures, overwrite=overwrite)
    failed = f"--strict: {len(agreed.disputes)} disputes" if strict and len(agreed.disputes) else None
    return Outcome(_text(found, agreed, data), data, failed)


def _draw_disputes(scenes: Scenes, agreed: Consensus, videos: Path, most: int) -> dict[str, bytes]:
    """Disputed images as PNG files."""

    source, root = open_with_images(videos, None)
    found: dict[str, bytes] = {}
    with console.log_step("drawing"):
        for number, (video, frame, reasons) in enumerate(list_disputes(agreed.disputes, most)):
            picture = open_frame(source, root, video, frame)
            title = f"{video}  {frame}  {reasons}"
            stream = io.BytesIO()
            Image.fromarray(draw_dispute(scenes, picture, video, frame, title=title)).save(stream, "PNG")
            name = f"{DISPUTES}/{number:04d}-{video.replace('/', '-')}-{frame:06d}.png"
            found[name] = stream.getvalue()
    return found


def _save(
    folder: Path,
    found: BoxAgreement,
    agreed: Consensus,
    data: dict[str, Any],
    pictures: dict[str, bytes],
    *,
    overwrite: bool,
) -> None:

    page = report([build_agreement_section(found, agreed.disputes)], title="Agreement of annotators")
    files = {
        **pack_tables(agreed.scenes, CONSENSUS),
        "agreement.csv": format_csv(found.table).encode(),
        "found_by.csv": format_csv(found.counts).encode(),
        "disputes.csv": format_csv(agreed.disputes).encode(),
        **pictures,
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    write_result(folder, folders.add_marker(files, data), overwrite=overwrite, also=f"truth: {CONSENSUS}")


def _text(found: BoxAgreement, agreed: Consensus, data: dict[str, Any]) -> str:
    rows = [
        (
            row["group"] or "all",
            row["measure"].replace("_", " "),
            terminal.format_number(row["value"]),
            terminal.format_row_interval(row, "picture", 2),
            terminal.format_row_interval(row, "video", 2),
            f"{row['n']:,}",
        )
        for row in found.table.iter_rows(named=True)
    ]
    counts = [f"{row['things']:,} by {row['n_found']} of {row['n_saw']}" for row in data["found_by"]]
    lines = [
        f"{data['pictures']:,} images that two or more of {len(data['annotators'])} annotators saw; "
        f"{data['pictures_one_alone_saw']:,} that one alone saw",
        f"things drawn: {'; '.join(counts) or 'none'}",
        terminal.format_table(
            ["of", "measure", "value", "over images", "over videos", "rests on"], rows, left=2
        ),
        "",
        f"{data['boxes_agreed']:,} boxes that most drew; {data['disputes']:,} disputes for a further look:",
    ]
    reasons = agreed.disputes["reason"].value_counts().sort("count", descending=True)
    lines += [f"  {count:,} {terminal.format_cell(reason)}" for reason, count in reasons.iter_rows()]
    return "\n".join(lines)


# `roadaware label export`: proposals as tasks of Label Studio, COCO or Parquet, with their images.

Form = Literal["labelstudio", "coco", "parquet"]
TASKS, CONFIG, COCO, PARQUET = "tasks.json", "labelling.xml", "tasks.coco.json", "tasks.parquet"
_PROPOSALS = "What `propose` wrote, or saved predictions with boxes."
_EXPORT_VIDEOS = "The dataset that they are of: one of `propose`, or saved tables beside their images."
_ROOT = "The folder that paths in saved tables start at. [default: the one above them]"
_OUT = "A new or empty folder; it is what `label import` asks for later."
_AS = "Formats of the tasks; several may follow."
_LIST = "Only the images of this list, in its order: list.csv of `label select`, or its folder."
_MOST = "The first so many images."
_ALL = "Also images without a proposal, where something may have been missed."
_SERVED = (
    "The folder that Label Studio serves (LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT); paths start there. "
    "[default: that of the dataset, or --output where images are written there]"
)
_COPY = "Copy stills into --output, so that it holds all that is needed."
_CLASSES = "Classes that annotators choose from; those of pre-labels are added. [default: those of CODA]"
_EXPORT_KIND = "The kind of label that pre-labels are."


def export(
    path: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    videos: Annotated[Path, Parameter(help=_EXPORT_VIDEOS)],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.TASKS],
    as_: Annotated[tuple[Form, ...], Parameter(name="--as", help=_AS), Several] = ("labelstudio",),
    pictures: Annotated[Path | None, Parameter(name="--list", help=_LIST)] = None,
    most: Annotated[int | None, Parameter(help=_MOST)] = None,
    all_pictures: Annotated[bool, Parameter(name="--all", help=_ALL), Switch] = False,
    root: Annotated[Path | None, Parameter(name="--media", help=_ROOT)] = None,
    served: Annotated[Path | None, Parameter(help=_SERVED)] = None,
    copy: Annotated[bool, Parameter(help=_COPY), Switch] = False,
    classes: Annotated[tuple[str, ...], Parameter(help=_CLASSES), Several] = (),
    kind: Annotated[str, Parameter(help=_EXPORT_KIND)] = "corner",
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Write proposals as tasks for annotators who keep, correct, delete and add boxes.

    Images with a proposal are written, those with the best proposal first, each proposal with its score and
    its pre-label as class. Frames of videos become images in --output; interrupted, the same command goes on
    with them. --output keeps what was sent, so that `label import` can say what became of each proposal.

    For example:

        roadaware label export runs/streets/proposals --videos runs/streets/scenes --output runs/tasks \\
            --as labelstudio coco parquet --classes traffic_cone dog debris barrier

        roadaware label export proposals --videos KITTI --list runs/list --most 500 --served KITTI --output tasks
    """

    if not as_:
        raise UsageError("--as names at least one of labelstudio, coco and parquet")
    if most is not None and most < 1:
        raise UsageError(f"--most is a number of images from 1 on, not {most}")
    claims = open_proposals(path)
    scenes, base = open_with_images(videos, root)
    places = _places(claims, scenes, pictures, all_pictures=all_pictures)[:most]
    frames, bad = _collect_image_files(scenes, base, places, out, served, copy=copy)
    sent, left_out = select_task_proposals(claims, frames, classes or _coda(), kind=kind)
    left_out |= bad
    written = _write(sent, out, as_)
    console.print_note(f"wrote {out}")
    return Outcome(_format_export(sent, out, written, left_out), _data(sent, out, written, left_out))


def _places(
    claims: Predictions, scenes: Scenes, listing: Path | None, *, all_pictures: bool
) -> list[tuple[str, int]]:
    """The images that are sent out, in the order of the work.

    Raises:
        UsageError: if a listed image is not of the set, or no image is left.
    """

    known = set(list_images(scenes).rows())
    score = pl.col("score").max() if "score" in claims.boxes.columns else pl.len()
    ranked = claims.boxes.group_by(pl.col("video").cast(pl.String), "frame").agg(best=score)
    ranked = ranked.sort(["best", "video", "frame"], descending=[True, False, False])
    own = ranked.select("video", "frame").rows()
    held = set(own)
    if listing is not None:
        wanted = list(dict.fromkeys(read_image_list(listing)))
    else:
        wanted = own + (sorted(known - held) if all_pictures else [])
    lost = [place for place in wanted if place not in known]
    chosen = [place for place in wanted if all_pictures or place in held]
    if lost:
        video, frame = lost[0]
        raise UsageError(
            f"{len(lost)} images are not of the set that --videos names, first {video}, frame {frame}"
        )
    if not chosen:
        raise UsageError("no image has a proposal; --all sends images without one, too")
    return chosen


def _collect_image_files(
    scenes: Scenes, base: Path, places: list[tuple[str, int]], out: Path, served: Path | None, *, copy: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The files of the images, and how many have none, by reason.

    Raises:
        InputError: if none can be read.
    """

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
    return frames, bad


def _coda() -> tuple[str, ...]:

    return tuple(each.label for each in load_object_classes())


def _write(sent: Predictions, out: Path, forms: tuple[Form, ...]) -> list[str]:
    """Write the tasks, then what was sent, with which an export is whole; the names of the tasks' files.

    An earlier export goes first, so that no task ever stands beside what was not sent with it; one that was
    interrupted holds nothing that was sent, so that the same command goes on.
    """

    files: dict[str, bytes] = {}
    if "labelstudio" in forms:
        files |= {TASKS: tasks.label_studio_tasks(sent), CONFIG: tasks.label_studio_config(sent)}
    if "coco" in forms:
        files[COCO] = tasks.encode_coco_annotations(sent)
    if "parquet" in forms:
        files[PARQUET] = tasks.encode_proposal_parquet(sent)
    make_folder(out)
    shutil.rmtree(out / SENT, ignore_errors=True)
    for name in (TASKS, CONFIG, COCO, PARQUET):
        (out / name).unlink(missing_ok=True)
    for name, data in files.items():
        write_atomically(out / name, data)
    save(sent, out / SENT, overwrite=True)
    return list(files)


def _format_export(sent: Predictions, out: Path, written: list[str], left_out: dict[str, int]) -> str:
    words = sent.meta.vocabularies["corner"]
    shown = terminal.format_cell(str(out))
    lines = [
        f"{len(sent.frames):,} images with {len(sent.boxes):,} proposals, {len(sent.labels):,} of them "
        f"with a class, {len(words)} classes to choose from",
        *(f"left out: {count:,} {terminal.format_cell(what)}" for what, count in left_out.items()),
        *(f"  {shown}/{name}" for name in written),
    ]
    if TASKS in written:
        lines += [
            f"Label Studio: paste {CONFIG} into the labelling interface, import {TASKS}, and serve the "
            "images with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true; export as JSON"
        ]
    lines.append(f"next: roadaware label import {shown} CORRECTED.json -o LABELS")
    return "\n".join(lines)


def _data(sent: Predictions, out: Path, written: list[str], left_out: dict[str, int]) -> dict[str, Any]:
    return {
        "folder": str(out),
        "pictures": len(sent.frames),
        "proposals": len(sent.boxes),
        "classes": list(sent.meta.vocabularies["corner"]),
        "files": written,
        "left_out": left_out,
    }


# `roadaware label import`: what people made of proposals, read back as tables.

_TASKS = "The folder that `label export` wrote."
_CORRECTED = "What annotators made: a Label Studio export (JSON), or COCO or Parquet, a file per annotator."
_STILL = "An edge that moved by no more counts as kept, in pixels."
_IMPORT_FOLDER = "Write the labels, what became of each proposal, and a page into this folder."
_IMPORT_STRICT = "Exit with 1 if anything was refused."


def import_labels(
    tasks: Annotated[Path, Parameter(help=_TASKS)],
    corrected: Annotated[tuple[Path, ...], Parameter(help=_CORRECTED)],
    /,
    *,
    still_px: Annotated[float, Parameter(help=_STILL)] = 0.5,
    folder: Annotated[Path | None, Parameter(help=_IMPORT_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_IMPORT_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Read corrected proposals back, and say which were kept, moved, renamed or deleted, and what was added.

    Boxes that keep the number of their proposal are compared with it; where a file has lost all numbers,
    with the proposal that they overlap most. Several annotators stand side by side, told apart by name.
    Turned boxes, boxes outside their image, and images that were not sent out are refused and counted.

    For example:

        roadaware label import runs/tasks runs/streets/corrected.json -o runs/labels

        roadaware label import tasks ann.coco.json ben.coco.json -o labels --strict
    """

    if not corrected:
        raise UsageError("name at least one file that annotators corrected, behind the folder of the tasks")
    if not 0 <= still_px <= 1000:
        raise UsageError(f"--still-px is a number of pixels from 0 to 1000, not {still_px}")
    sent = open_sent_proposals(tasks)
    with console.log_step("reading"):
        answers = merge_answers([read_corrections(path, sent) for path in corrected])
    table = compute_outcomes(sent, answers, still_px=still_px)
    classes, people = summarize_outcomes(table), summarize_annotators(table, answers.looked)
    scenes = build_labelled_scenes(sent, answers, table)
    found = count_refusals(scenes, "the corrections")
    data = {
        "classes": classes.to_dicts(),
        "annotators": people.to_dicts(),
        "labour": _labour(table, answers.looked),
        "pictures": {"sent": len(sent.frames), "done": int(scenes.frames["annotated"].sum())},
        "refused": found,
        "notes": list(list_warnings(scenes)),
    }
    if folder is not None:
        _save_import(folder, scenes, table, classes, people, data, overwrite=overwrite)
    failed = f"--strict: {sum(found.values())} items were refused" if strict and found else None
    return Outcome(_format_import(scenes, classes, people, data, folder), data, failed)


def _labour(table: pl.DataFrame, looked: pl.DataFrame) -> dict[str, float] | None:
    """What work took, where times tell."""

    found = fit_cost(table, looked)
    return None if found is None else {**asdict(found[0]), "pictures": found[1]}


def _save_import(
    folder: Path,
    scenes: Scenes,
    table: pl.DataFrame,
    classes: pl.DataFrame,
    people: pl.DataFrame,
    data: dict[str, Any],
    *,
    overwrite: bool,
) -> None:

    page = report([build_corrections_section(classes, people)], title="Corrected proposals")
    files = {
        **pack_tables(scenes, LABELS),
        "fates.parquet": encode_parquet(table),
        "fates.csv": format_csv(table).encode(),
        "classes.csv": format_csv(classes).encode(),
        "annotators.csv": format_csv(people).encode(),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    write_result(folder, folders.add_marker(files, data), overwrite=overwrite, also=f"labels: {LABELS}")


def _format_import(
    scenes: Scenes, classes: pl.DataFrame, people: pl.DataFrame, data: dict[str, Any], folder: Path | None
) -> str:
    pictures = data["pictures"]
    lines = [
        f"{pictures['done']:,} of {pictures['sent']:,} images done, {len(scenes.boxes):,} boxes by "
        f"{len(people)} annotators",
        _table(classes, digits=2),
        "",
        _table(people, digits=1),
    ]
    labour = data["labour"]
    if labour is not None:
        names = {"look_s": "look", "judge_s": "judge", "correct_s": "correct", "draw_s": "draw"}
        told = " ".join(f"--{name}-s {labour[key]:.1f}" for key, name in names.items())
        lines += ["", f"fitted to the times of {labour['pictures']:,} images, for `label select`: {told}"]
    lines += [f"refused: {count:,} {terminal.format_cell(what)}" for what, count in data["refused"].items()]
    lines += [f"note: {terminal.format_cell(note)}" for note in data["notes"]]
    if folder is not None and len(people) > 1:
        lines.append(f"next: roadaware label agree {terminal.format_cell(str(folder))} -o CONSENSUS")
    return "\n".join(lines)


def _table(held: pl.DataFrame, digits: int) -> str:
    rows = [
        [
            terminal.format_number(value, digits) if isinstance(value, float) or value is None else value
            for value in row
        ]
        for row in held.iter_rows()
    ]
    return terminal.format_table([name.replace("_", " ") for name in held.columns], rows)


# `roadaware label select`: which images are worth a look, and what that saves.

_SELECT_VIDEOS = (
    "The dataset that they are of, for images without a proposal; else only those with one are ranked."
)
_TRUTH = "The same with `boxes.corner_case`, such as synthetic scenes: measures what the list finds."
_BY = (
    "What makes an image worth a look: the count of proposals, the chance of any (as if scores were "
    "chances), the best score, or the sum of scores."
)
_REPEAT = "Each higher image of the same video multiplies the worth by this; 1 for no heed."
_SCORE = "The column of the boxes that ranks them, from 0 to 1, such as one that `rescore` wrote."
_LEAST = "Proposals with a lower score do not count."
_UNIT = "What is to be found: objects, each once, or images with a corner case."
_SELECT_FOLDER = "Write list.csv, list.json and a page with the curve into this folder."
_MOST_SHOWN = 10


def select(
    path: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    videos: Annotated[Path | None, Parameter(help=_SELECT_VIDEOS)] = None,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    by: Annotated[Literal["count", "any", "best", "sum"], Parameter(help=_BY)] = "count",
    repeat: Annotated[float, Parameter(help=_REPEAT)] = 0.5,
    score: Annotated[str, Parameter(help=_SCORE)] = "score",
    least_score: Annotated[float, Parameter(name="--min-score", help=_LEAST)] = 0.0,
    unit: Annotated[Literal["objects", "pictures"], Parameter(help=_UNIT)] = "objects",
    seconds: Seconds = USUAL_SECONDS,
    draws: Resamples = 1000,
    seed: Seed = 0,
    folder: Annotated[Path | None, Parameter(help=_SELECT_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Rank images by their proposals, and say what looking at the list costs against looking at all.

    Images of scenes that stand higher already are worth less. With truth, the share of corner cases found
    is measured over the share of images looked at, beside chance, chance that takes each video in turn,
    and the best order there could be, with intervals over videos.

    For example:

        roadaware label select runs/streets/proposals --videos runs/streets/scenes -o runs/list

        roadaware label select proposals --truth runs/synthetic --by any -o runs/list
    """

    labour, config = seconds.labour(), SelectionConfig(by, repeat, least_score, score)
    claims = open_proposals(path)
    set_path = truth or videos
    scenes = None if set_path is None else open_with_images(set_path, None)[0]
    pictures = _with_one(claims) if scenes is None else list_images(scenes)
    with console.log_step("ranking"):
        table = rank_images(claims, pictures, config, seed=seed)
    found = None
    if truth is not None and scenes is not None:
        with console.log_step("measuring"):
            found = compute_discovery_curve(
                measure_worth(table, claims, scenes), labour, unit=unit, draws=draws, seed=seed
            )
    costs = estimate_cost(table, labour)
    data = _build_selection_json(table, costs, found, config, labour, all_known=scenes is not None)
    if folder is not None:
        _save_selection(folder, table, data, costs, found, overwrite=overwrite)
    return Outcome(_format_selection(table, costs, found, all_known=scenes is not None), data)


def _with_one(claims: Predictions) -> pl.DataFrame:
    """The images that have a proposal."""

    return claims.boxes.select(pl.col("video").cast(pl.String), "frame").unique().sort("video", "frame")


def _build_selection_json(
    table: pl.DataFrame,
    costs: dict[str, float],
    found: Curve | None,
    config: Any,
    labour: Any,
    *,
    all_known: bool,
) -> dict[str, Any]:

    measured = None
    if found is not None:
        measured = {"unit": found.unit, "totals": found.totals, "table": found.table.to_dicts()}
    return {
        "config": asdict(config),
        "labour": asdict(labour),
        "all_pictures_known": all_known,
        "planned": costs,
        "measured": measured,
        "pictures": table.to_dicts(),
    }


def _save_selection(
    folder: Path,
    table: pl.DataFrame,
    data: dict[str, Any],
    costs: dict[str, float],
    found: Curve | None,
    *,
    overwrite: bool,
) -> None:

    with console.log_step("report"):
        page = report([build_selection_section(costs, found)], title="Images worth a look")
    files = {
        "list.csv": format_csv(table).encode(),
        "list.json": encode_json({"pictures": data["pictures"]}).encode(),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    if found is not None:
        files["curve.csv"] = _points(found).encode()
        files["curve.png"] = plot_discovery(found).png()
    facts = {name: value for name, value in data.items() if name != "pictures"}
    write_result(folder, folders.add_marker(files, facts), overwrite=overwrite, also="list: list.csv")


def _points(found: Curve) -> str:

    columns = {"looked": found.looked, **found.found}
    columns |= {f"{order}_low": values for order, values in found.low.items()}
    columns |= {f"{order}_high": values for order, values in found.high.items()}
    return format_csv(pl.DataFrame(columns))


def _format_selection(
    table: pl.DataFrame, costs: dict[str, float], found: Curve | None, *, all_known: bool
) -> str:
    rows = [
        (row["rank"], row["video"], row["frame"], f"{row['priority']:.3f}", row["reason"])
        for row in table.head(_MOST_SHOWN).iter_rows(named=True)
    ]
    saved = f", {100 * costs['saved']:.0f} % less" if all_known else ""
    lines = [
        terminal.format_table(["rank", "video", "frame", "priority", "why"], rows, left=2),
        "",
        f"{costs['listed']:,} of {costs['pictures']:,} images have a proposal: looking at them and judging "
        f"{costs['proposals']:,} proposals takes {terminal.format_duration(costs['seconds'])}, looking at all "
        f"{terminal.format_duration(costs['seconds_of_all'])}{saved}",
    ]
    if not all_known:
        lines.append("images without a proposal are not known: say --videos")
    if found is None:
        return "\n".join([*lines, "what the list misses is not known without --truth"])
    return "\n".join([*lines, "", *_format_curve(found)])


def _format_curve(found: Curve) -> list[str]:
    rows = [
        (
            f"{100 * row['found']:.0f} %",
            row["order"],
            f"{100 * row['looked_share']:.1f} %",
            terminal.format_interval(row["looked_low"], row["looked_high"], 3, row["caution"]),
            terminal.format_duration(row["seconds"]),
            f"{100 * row['saved']:.0f} %",
            terminal.format_interval(row["saved_low"], row["saved_high"], 2, row["caution"]),
        )
        for row in found.table.iter_rows(named=True)
    ]
    header = ["found", "order", "looked at", "interval", "time", "saved", "interval"]
    totals = found.totals
    return [
        f"measured on {totals['objects']:,.0f} objects in {totals['with_a_case']:,.0f} of "
        f"{totals['pictures']:,.0f} images; {totals['hits']:,.0f} of {totals['proposals']:,.0f} proposals "
        "meet one",
        terminal.format_table(header, rows, left=2),
        "saved: against looking at all images without proposals and drawing every box; intervals are over "
        "videos",
    ]


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
    common: Common = USUAL,
) -> Outcome:
    """Write synthetic images with truth, proposals and what three annotators made of them, to try `label` on.

    It has images, scenes (the truth, as tables), proposals, corrected.json (a Label Studio export of
    three annotators with stated errors) and planted.json (what was planted).

    For example:

        roadaware label example runs/streets
    """

    facts = write_labelling_demo(folder, seed=seed)
    shown = terminal.format_cell(str(folder))
    said = (
        f"wrote {shown}: {facts.pictures} images, {facts.with_a_case} with {facts.cases} corner cases, "
        f"{facts.proposals} proposals, and what {len(facts.annotators)} annotators left\n"
        f"$ roadaware label select {shown}/{PROPOSALS} --truth {shown}/{SCENES}\n"
        f"$ roadaware label export {shown}/{PROPOSALS} --videos {shown}/{SCENES} --all --output TASKS\n"
        f"$ roadaware label import TASKS {shown}/{EXPORT} -o LABELS\n"
        f"$ roadaware label agree LABELS -o CONSENSUS"
    )
    return Outcome(said, {"folder": str(folder), "seed": seed, **asdict(facts)})


add_commands(label, (example, select, export, import_labels, agree), import_labels="import")
