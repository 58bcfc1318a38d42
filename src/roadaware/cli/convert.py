"""`roadaware convert`: runs and datasets in the file of another tool."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.evaluation.event_inputs import open_box_predictions
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    COLUMNS,
    OPTION,
    USUAL,
    Common,
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
)
from roadaware.datasets import READERS
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.loading import (
    add_columns,
    open_saved_scenes,
    parse_reader_options,
    read_release,
    require_path,
)
from roadaware.errors import UsageError
from roadaware.formats.actions import write_action_claims
from roadaware.formats.boxes.forms import FORMS, PREDICTED, check_folder, write_boxes
from roadaware.formats.coco import read_index
from roadaware.formats.label_studio import write_label_studio
from roadaware.formats.truth_files import WrittenTruth, put_films, write_proposals, write_truth
from roadaware.io.folders import make_folder
from roadaware.reports import terminal
from roadaware.scenes.store import is_saved, scan_tables
from roadaware.scenes.tables import Scenes, filter_videos
from roadaware.viewer.opening import open_paths

if TYPE_CHECKING:
    from roadaware.formats.coco import CocoIndex
    from roadaware.scenes.tables import Predictions, Scenes
    from roadaware.viewer.rerun_file import Written

_PATHS = (
    "Runs, saved tables or datasets, as `view` takes them: one set of ground truth, up to five predictions."
)
_TO = (
    f"What is written: `rrd`, a recording of Rerun; boxes and tracks as {', '.join(f'`{form}`' for form in FORMS)}; or the "
    "annotations in the form of `ava` (csv), `mmaction2` (AVA's csv with a pickle of proposals), `vidvrd`, `hcstvg` (as "
    "TubeDETR prepares it), `vggss` (JSON) or `label_studio` (tasks with their labelling config)."
)
_OUT = "The file, such as run.rrd; for annotations a folder."
_MEDIA = "Videos, or folders in which videos and images lie, where tables do not say."
_READER = "The reader of a dataset as it was released, such as kitti. [default: told by its content]"
_VIDEOS = "Names of the videos that are wanted. [default: all]"
_EMBED = (
    "Copy videos and images into the file; else it holds their paths and the times of their frames. Beside "
    "annotations: put the videos into a folder `videos`."
)
_KIND = "Kind of label that becomes the class of a box (forms of boxes). [default: agent, or what there is]"
_LOSSY = (
    "Write although the form cannot hold everything (forms of boxes): what is lost is listed, and the whole "
    "tables are saved in a folder `not-held` beside."
)
_PREDICTIONS = (
    "PATH holds predictions with scores. [default: only where saved tables are some, or --truth is given]"
)
_TRUTH = (
    "The annotations that predictions are about, as `read` takes them, which names the frames and classes of COCO results, "
    "detections, tubes and AVA's csv."
)
_Form = Literal[
    "rrd", "coco", "yolo", "mot", "cvat", "voc", "cvat_images", "csv", "kitti", "kitti_tracking", "bdd100k", "openlabel",
    "via", "via_csv", "vott", "fiftyone", "activitynet", "ava", "mmaction2",
    "vidvrd", "hcstvg", "vggss", "label_studio"
]  # fmt: skip


def convert(
    *paths: Annotated[Path, Parameter(help=_PATHS)],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.CONVERTED],
    to: Annotated[_Form, Parameter(help=_TO)] = "rrd",
    media: Annotated[tuple[Path, ...], Parameter(help=_MEDIA), Several] = (),
    reader: Annotated[str | None, Parameter(name=("--reader", "--from"), help=_READER)] = None,
    kind: Annotated[str | None, Parameter(help=_KIND)] = None,
    lossy: Annotated[bool, Parameter(help=_LOSSY), Switch] = False,
    option: Annotated[tuple[str, ...], Parameter(help=OPTION, show_default=False), Several] = (),
    columns: Annotated[tuple[str, ...], Parameter(help=COLUMNS), Several, Stated] = (),
    videos: Annotated[tuple[str, ...], Parameter(help=_VIDEOS), Several, Stated] = (),
    embed: Annotated[bool, Parameter(help=_EMBED), Switch] = False,
    predictions: Annotated[bool, Parameter(help=_PREDICTIONS), Switch] = False,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Write runs and datasets as files of other tools: a recording of Rerun, or annotations of other toolboxes.

    Boxes and tracks of any dataset are written as one of the forms of boxes that --to lists has them; what the form
    cannot hold is listed before anything is written, and `--lossy` agrees to it.

    With --predictions or --truth the boxes are predictions with scores: saved ones, COCO results, MOT text, detections and
    tubes of ROAD, AVA's csv, or YOLO, csv, KITTI, BDD100K, VIA, FiftyOne and ActivityNet with scores. Of what --to has no
    place for scores they are written as if they were annotations, with --lossy.

    Annotations of any dataset or of synthetic scenes are written as AVA, VidVRD, HC-STVG, VGG-SS or Label Studio have them,
    so that what learns from those can learn from these; what the form cannot hold is counted.

    A recording holds boxes with their classes, an entity for each tube, scores, events, forecasts of crossing, LiDAR
    points and boxes in space, of ground truth and predictions. Nothing is sent anywhere, and no viewer is started:
    `rerun run.rrd` opens the file.

    For example:

        roadaware convert runs/drive --to rrd -o drive.rrd --media drive.mp4 --embed

        roadaware convert KITTI runs/proposals --to rrd -o kitti.rrd --videos training/000002

        roadaware convert synthetic --to ava --embed -o synthetic-ava

        roadaware convert labels --from yolo --to coco -o labels-coco

        roadaware convert results.json --truth instances_val.json --to csv -o results-csv

        roadaware convert tracks.csv --columns frame=f id=who left=x top=y width=w height=h --to mot -o tracks-mot
    """
    if to != "rrd":
        if to not in FORMS and (lossy or kind is not None):
            raise UsageError(f"--lossy and --kind are of {', '.join(FORMS)}; {to} counts what does not fit")
        if len(paths) != 1:
            raise UsageError(f"annotations of one set are written as {to}; {len(paths)} were named")
        if to in FORMS:
            check_folder(out, overwrite=overwrite)
        elif out.is_file() and not predictions and truth is None:
            raise UsageError(f"{out} is a file; annotations go into a folder")
        predicted = predictions or truth is not None or _holds_predictions(paths[0])
        if predicted:
            if embed or media or (videos and to not in FORMS):
                raise UsageError(
                    "--embed, --media and, of `ava`, `mmaction2` and `label_studio`, --videos are not of predictions"
                )
            return _convert_predictions(
                paths[0],
                out,
                to,
                videos,
                reader,
                truth,
                option,
                columns,
                kind=kind,
                lossy=lossy,
                overwrite=overwrite,
            )
        scenes = _open(paths[0], reader, option, columns)
        media = media or (paths[0] if paths[0].is_dir() else paths[0].parent,)
        root = media[0] if embed else None
        if to in FORMS:
            return _write_boxes(scenes, out, to, videos, root, kind=kind, lossy=lossy, overwrite=overwrite)
        return _write_annotations(scenes, out, to, videos, root)
    if predictions or truth is not None:
        raise UsageError(
            "--predictions and --truth are of boxes; recordings (rrd) take saved predictions as they are"
        )
    if option or columns:
        raise UsageError(
            "--option and --columns are of annotations; recordings (rrd) take saved tables and datasets"
        )
    if importlib.util.find_spec("rerun") is None:
        raise UsageError("rerun-sdk is not installed: pip install 'roadaware[rerun]'")
    from roadaware.viewer.rerun_file import write_rerun_file

    opened = open_paths(paths, media, reader)
    make_folder(out.absolute().parent)
    with console.show_progress("converting") as shown:
        written = write_rerun_file(opened, out, videos=videos, embed=embed, progress=shown)
    data = {"file": str(out), "bytes": out.stat().st_size, **vars(written)}
    return Outcome(_format_written(written, out), data)


def _open(path: Path, reader: str | None, option: tuple[str, ...], columns: tuple[str, ...]) -> Scenes:
    """The tables of one set: saved ones, or a dataset as it was released, which is known by its content.

    Raises:
        UsageError: if options were given that the reader does not have.
    """
    require_path(path)
    if is_saved(path):
        if option or columns:
            raise UsageError(
                f"{path} holds saved tables; --option and --columns are of datasets as they were released"
            )
        return open_saved_scenes(path)
    if reader is None:
        reader = detect_dataset_format(path)
        console.print_note(f"taken for {READERS[reader].title}; --from says otherwise")
    options = parse_reader_options(reader, option) if option else {}
    options = add_columns(reader, options, columns)
    return read_release(reader, path, **({"cache": False, **options} if options else {}))


def _holds_predictions(path: Path) -> bool:
    """Whether saved predictions lie at a path, which say themselves what they are."""
    return is_saved(path) and scan_tables(path)[0] == "Predictions"


def _convert_predictions(
    path: Path,
    out: Path,
    to: str,
    videos: tuple[str, ...],
    reader: str | None,
    truth: Path | None,
    option: tuple[str, ...],
    columns: tuple[str, ...],
    *,
    kind: str | None,
    lossy: bool,
    overwrite: bool,
) -> Outcome:
    """Predictions in the form of a tool, or as AVA's csv.

    Raises:
        UsageError: if the form is not for predictions, or they cannot be read without the annotations.
    """
    if to not in FORMS and to not in ("ava", "mmaction2", "label_studio"):
        listed = ", ".join((*PREDICTED, "ava", "mmaction2", "label_studio"))
        raise UsageError(f"predictions are not written as {to}; they are as {listed}")
    known = None if truth is None else _open(truth, None, (), ())
    index = (
        read_index(truth)
        if truth is not None and known is not None and known.meta.dataset == "COCO" and truth.is_file()
        else None
    )
    found, title = open_box_predictions(path, reader, known, index, option, columns)
    if reader is None and title:
        console.print_note(f"taken for {title}, with scores; --from says otherwise")
    if to in FORMS:
        return _write_boxes(
            found, out, to, videos, None, kind=kind, lossy=lossy, overwrite=overwrite, index=index
        )
    if known is None and to == "ava":
        raise UsageError("AVA's csv counts in seconds and shares: say --truth TRUTH, the annotations")
    if out.exists():
        raise UsageError(f"{out} is there already; as {to} predictions are one new file")
    make_folder(out.absolute().parent)
    if known is not None and to == "ava":
        write_action_claims(found, known, out)
        rows = {"labels": int((found.labels["kind"].cast(pl.String) == "action").sum())}
        left = {"labels of other kinds than actions": len(found.labels) - rows["labels"]}
    elif to == "label_studio":
        rows = {"tasks": write_label_studio(found, out, videos=None if known is None else known.videos).tasks}
        left = {}
    else:
        rows = {"proposals": write_proposals(found, known, out)}
        left = {"boxes at other times than whole seconds": len(found.boxes) - rows["proposals"]}
    left = {what: n for what, n in left.items() if n}
    lines = [f"{n:,} {what}" for what, n in rows.items()] + [
        f"  not held: {n:,} {what}" for what, n in left.items()
    ]
    lines += [*_format_refused(found), f"wrote {terminal.format_cell(str(out))}"]
    data = {"file": str(out), "form": to, "rows": rows, "left_out": left, "refused": len(found.rejected)}
    return Outcome("\n".join(lines), data)


def _format_refused(tables: Scenes | Predictions) -> list[str]:
    """A line of the rows that were refused when the tables were read; none where all were taken."""
    if not (refused := len(tables.rejected)):
        return []
    row = tables.rejected.row(0, named=True)
    place = f"{row['file']}{':' + str(row['line']) if row['line'] else ''}: {row['reason']}"
    return [f"  refused when it was read: {refused:,} rows or files, the first {terminal.format_cell(place)}"]


def _write_annotations(
    scenes: Scenes, out: Path, form: str, videos: tuple[str, ...], media: Path | None
) -> Outcome:
    """Annotations in the form of another toolbox, and beside them the videos below `media`."""
    with console.log_step("writing"):
        written = write_truth(form, scenes, out, media=media, videos=videos)
    rows = {name: n for name, n in written.rows.items() if n}
    left = {what: n for what, n in written.left_out.items() if n}
    lines = [", ".join(f"{n:,} {name}" for name, n in rows.items())]
    lines += [f"  {n:,} {what}" for what, n in left.items()]
    lines.append(f"wrote {len(written.files):,} files into {terminal.format_cell(str(out))}")
    data = {"folder": str(out), "form": form, "files": written.files, "rows": rows, "left_out": left}
    return Outcome("\n".join(lines), data)


def _write_boxes(
    scenes: Scenes | Predictions,
    out: Path,
    form: str,
    videos: tuple[str, ...],
    media: Path | None,
    *,
    kind: str | None,
    lossy: bool,
    overwrite: bool,
    index: CocoIndex | None = None,
) -> Outcome:
    """Boxes in the form of an annotation tool, and beside them the videos below `media`.

    Raises:
        UsageError: if there is no video of a name.
    """
    if videos:
        known = scenes.videos["video"].cast(pl.String).to_list()
        if unknown := [name for name in videos if name not in known]:
            raise UsageError(f"no video {unknown[0]!r}; there are {', '.join(known[:5])}")
        scenes = filter_videos(scenes, videos)
    films = WrittenTruth()

    def add_films(folder: Path) -> int:
        if media is not None and isinstance(scenes, Scenes):
            put_films(scenes, media, folder, films)
        return len(films.files)

    with console.log_step("writing"):
        written = write_boxes(
            scenes, form, out, kind=kind, lossy=lossy, overwrite=overwrite, add=add_films, index=index
        )
    rows = {**written.rows, **films.rows}
    lines = [", ".join(f"{n:,} {name}" for name, n in rows.items())]
    lines += [f"  not held: {n:,} {what}" for what, n in written.lost.items()]
    lines += _format_refused(scenes)
    files = written.files + len(films.files)
    lines.append(f"wrote {files:,} files into {terminal.format_cell(str(out))}")
    data = {"folder": str(out), "form": form, "files": files, "rows": rows, "left_out": dict(written.lost)}
    return Outcome("\n".join(lines), {**data, "refused": len(scenes.rejected)})


def _format_written(written: Written, out: Path) -> str:
    """What is in the file, and what is not."""
    sides = sorted({*written.boxes, *written.tubes, *written.boxes_3d})
    rows = [
        (side, *(f"{held.get(side, 0):,}" for held in (written.boxes, written.tubes, written.boxes_3d)))
        for side in sides
    ]
    lines = [terminal.format_table(["side", "boxes", "tubes", "3D boxes"], rows, left=1), ""]
    if written.points:
        more = f", {written.left_points:,} more left out evenly" if written.left_points else ""
        lines.append(f"{written.points:,} LiDAR points{more}")
    kept = sum(embedded for _, embedded in written.films.values())
    apart = len(written.films) - kept
    if apart:
        lines.append(
            f"{apart} videos by their paths: Rerun shows them where --embed copies them into the file"
        )
    if kept:
        lines.append(f"{kept} videos copied into the file")
    lines += [terminal.format_cell(note) for note in written.notes[:5]]
    size = terminal.format_bytes(out.stat().st_size)
    return "\n".join(
        [
            *lines,
            f"wrote {terminal.format_cell(str(out))}, {size}; rerun {terminal.format_cell(str(out))} shows it",
        ]
    )
