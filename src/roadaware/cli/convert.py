"""`roadaware convert` and `view`: runs and datasets in the file of another tool, and on a local page."""

from __future__ import annotations

import getpass
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.evaluation.event_inputs import open_box_predictions
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    COLUMNS,
    OPTION,
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
    validate_range,
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
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.forms import FORMS, PREDICTED, check_folder, write_boxes
from roadaware.formats.coco import read_index
from roadaware.formats.truth_files import (
    PREDICTION_FILES,
    WrittenTruth,
    put_films,
    write_prediction_file,
    write_truth,
)
from roadaware.io.folders import make_folder
from roadaware.reports import terminal
from roadaware.reports.dataset_text import format_conversion
from roadaware.scenes.store import is_saved, scan_tables
from roadaware.scenes.tables import Scenes, filter_videos
from roadaware.viewer.opening import open_paths

if TYPE_CHECKING:
    from roadaware.formats.coco import CocoIndex
    from roadaware.scenes.tables import Predictions, Scenes

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
    "via", "via_csv", "vott", "fiftyone", "activitynet", "road", "jaad", "pie", "ucf24", "nuscenes", "ava", "mmaction2",
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
) -> Outcome:
    """Write runs and datasets as files of other tools: a recording of Rerun, or annotations of other toolboxes.

    Boxes and tracks of any dataset are written as one of the forms of boxes that --to lists has them; what the form
    cannot hold is listed before anything is written, and `--lossy` agrees to it.

    With --predictions or --truth the boxes are predictions with scores: saved ones, COCO results, MOT text, detections and
    tubes of ROAD, AVA's csv, or YOLO, csv, KITTI, BDD100K, VIA, FiftyOne and ActivityNet with scores. Of what --to has no
    place for scores they are written as if they were annotations, with --lossy. Of these COCO results, MOT text, ROAD and
    AVA take no --option: where their classes are called otherwise, `rename` those of the annotations.

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
        how: dict[str, Any] = {"kind": kind, "lossy": lossy, "overwrite": overwrite}
        if len(paths) != 1:
            raise UsageError(f"annotations of one set are written as {to}; {len(paths)} were named")
        if to in FORMS:
            check_folder(out, overwrite=overwrite)
        elif out.is_file() and not predictions and truth is None:
            raise UsageError(f"{out} is a file; annotations go into a folder")
        # Saved tables say themselves what they are.
        saved = is_saved(paths[0]) and scan_tables(paths[0])[0] == "Predictions"
        if predictions or truth is not None or saved:
            if embed or media or (videos and to not in FORMS):
                raise UsageError(
                    "--embed, --media and, of `ava`, `mmaction2` and `label_studio`, --videos are not of predictions"
                )
            return _convert_predictions(paths[0], out, to, videos, reader, truth, option, columns, how)
        scenes = _open(paths[0], reader, option, columns)
        media = media or (paths[0] if paths[0].is_dir() else paths[0].parent,)
        root = media[0] if embed else None
        if to in FORMS:
            return _write_boxes(scenes, out, to, videos, root, how)
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
    from roadaware.viewer.rerun_file import format_recording, write_rerun_file

    opened = open_paths(paths, media, reader)
    make_folder(out.absolute().parent)
    with console.show_progress("converting") as shown:
        written = write_rerun_file(opened, out, videos=videos, embed=embed, progress=shown)
    data = {"file": str(out), "bytes": out.stat().st_size, **vars(written)}
    return Outcome(format_recording(written, out), data)


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


def _convert_predictions(
    path: Path,
    out: Path,
    to: str,
    videos: tuple[str, ...],
    reader: str | None,
    truth: Path | None,
    option: tuple[str, ...],
    columns: tuple[str, ...],
    how: Mapping[str, Any],
) -> Outcome:
    """Predictions in the form of a tool, or as AVA's csv.

    Raises:
        UsageError: if the form is not for predictions, or they cannot be read without the annotations.
        InputError: if none of them can be taken.
    """
    if to not in FORMS and to not in PREDICTION_FILES:
        listed = ", ".join((*PREDICTED, *PREDICTION_FILES))
        raise UsageError(f"predictions are not written as {to}; they are as {listed}")
    known = None if truth is None else _open(truth, None, (), ())
    whole = truth is not None and known is not None and known.meta.dataset == "COCO" and truth.is_file()
    index = read_index(truth) if truth is not None and whole else None
    found, title = open_box_predictions(path, reader, known, index, option, columns)
    if reader is None and title:
        console.print_note(f"taken for {title}, with scores; --from says otherwise")
    # Segments of ActivityNet are tubes without boxes.
    if found.boxes.is_empty() and found.tubes.is_empty() and len(found.rejected):
        row = found.rejected.row(0, named=True)
        raise InputError(
            f"all {len(found.rejected):,} rows or files were refused; the first, of {row['file']}: {row['reason']}",
            where=str(path),
            hint="annotations, which have no scores, are converted without --predictions",
        )
    if to in FORMS:
        return _write_boxes(found, out, to, videos, None, how, index)
    if known is None and to == "ava":
        raise UsageError("AVA's csv counts in seconds and shares: say --truth TRUTH, the annotations")
    if out.exists():
        raise UsageError(f"{out} is there already; as {to} predictions are one new file")
    make_folder(out.absolute().parent)
    rows, left = write_prediction_file(to, found, known, out)
    data = {"file": str(out), "form": to, "rows": rows, "left_out": left, "refused": len(found.rejected)}
    lines = [f"{n:,} {what}" for what, n in rows.items()]
    return Outcome(format_conversion(lines, left, f"wrote {terminal.format_cell(str(out))}", found), data)


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
    where = f"wrote {len(written.files):,} files into {terminal.format_cell(str(out))}"
    data = {"folder": str(out), "form": form, "files": written.files, "rows": rows, "left_out": left}
    return Outcome(format_conversion(lines, {}, where), data)


def _write_boxes(
    scenes: Scenes | Predictions,
    out: Path,
    form: str,
    videos: tuple[str, ...],
    media: Path | None,
    how: Mapping[str, Any],
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
        written = write_boxes(scenes, form, out, add=add_films, index=index, **how)
    rows, files = {**written.rows, **films.rows}, written.files + len(films.files)
    lines = [", ".join(f"{n:,} {name}" for name, n in rows.items())]
    where = f"wrote {files:,} files into {terminal.format_cell(str(out))}"
    data = {"folder": str(out), "form": form, "files": files, "rows": rows, "left_out": dict(written.lost)}
    text = format_conversion(lines, written.lost, where, scenes)
    return Outcome(text, {**data, "refused": len(scenes.rejected)})


# `roadaware view`: runs and datasets on a local page, from the number to the frame.

_VIEW_PATHS = (
    "Runs, saved tables or datasets, joints of `poses`, or a folder of such; what an evaluation judged stands beside "
    "it."
)
_VIEW_READER = "The reader of a dataset as it was released, such as jaad. [default: told by its content]"
_PORT = "The port to listen at. [default: a free one]"
_ANNOTATOR = "Whose verdicts these are. [default: your name on this machine]"


def view(
    *paths: Annotated[Path, Parameter(help=_VIEW_PATHS)],
    media: Annotated[tuple[Path, ...], Parameter(help=_MEDIA), Several] = (),
    reader: Annotated[str | None, Parameter(help=_VIEW_READER)] = None,
    port: Annotated[int, Parameter(help=_PORT, validator=validate_range(0, 65535), show_default=False)] = 0,
    no_browser: Annotated[bool, Parameter(help="Only print the address, open no browser."), Switch] = False,
    annotator: Annotated[str | None, Parameter(help=_ANNOTATOR)] = None,
) -> Outcome:
    """Look at runs and datasets on a local page: video, tubes, time line, and the errors behind each number.

    Takes what `watch`, `predict`, `link`, `propose`, `label export`, `simulate` and `read -o` wrote, datasets,
    runs of `evaluate` with their ground truth and predictions, and what `audit --json`, `doctor --json` and
    `check -o` found; of a folder of such all that it holds. Several predictions stand beside each other. The page is
    served to this machine alone, until Ctrl-C; the address holds the key to it.

    For example:

        roadaware view runs/drive --media drive.mp4

        roadaware view runs/mine TRUTH runs/detections/predictions

        roadaware view JAAD --reader jaad audit.json
    """
    for library in ("starlette", "uvicorn"):
        if importlib.util.find_spec(library) is None:
            raise UsageError(f"{library} is not installed: pip install 'roadaware[viewer]'")
    from roadaware.viewer.opening import open_paths
    from roadaware.viewer.serve import Viewer, open_browser

    name = annotator or _user()
    if not 0 < len(name) <= 100:
        raise UsageError("--annotator is a name of up to 100 characters")
    opened = open_paths(paths, media, reader)
    viewer = Viewer(opened, port, name)

    def started() -> None:
        console.print_result(viewer.address, concealed=True)
        console.print_note("serving to this machine until Ctrl-C")
        if not no_browser:
            open_browser(viewer.address)

    viewer.serve(started)
    return Outcome("", {"address": viewer.address})


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name: a container without a list of users
        return "somebody"
