"""The table of all forms of boxes, and tables written in one of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.activitynet import list_segments, write_activitynet
from roadaware.formats.boxes.bdd100k import write_bdd100k
from roadaware.formats.boxes.coco import write_coco
from roadaware.formats.boxes.comparison import count_differences
from roadaware.formats.boxes.csv import write_csv
from roadaware.formats.boxes.cvat import write_cvat
from roadaware.formats.boxes.cvat_images import write_cvat_images
from roadaware.formats.boxes.fiftyone import write_fiftyone
from roadaware.formats.boxes.flat import Files, Form, flatten
from roadaware.formats.boxes.kitti import (
    OBJECT_COLUMNS,
    TRACKING_COLUMNS,
    adapt_drives,
    adapt_shots,
    write_kitti,
    write_kitti_tracking,
)
from roadaware.formats.boxes.mot import adapt_results, write_mot, write_mot_results
from roadaware.formats.boxes.nuscenes import adapt_nuscenes, write_nuscenes
from roadaware.formats.boxes.openlabel import adapt_objects, write_openlabel
from roadaware.formats.boxes.pedestrians import adapt_jaad, adapt_pie, write_jaad, write_pie
from roadaware.formats.boxes.road import adapt_road, write_road
from roadaware.formats.boxes.ucf24 import adapt_ucf24, write_ucf24
from roadaware.formats.boxes.via import write_via, write_via_csv
from roadaware.formats.boxes.voc import write_voc
from roadaware.formats.boxes.vott import adapt_regions, write_vott
from roadaware.formats.boxes.yolo import write_yolo
from roadaware.formats.coco import CocoIndex
from roadaware.formats.road_detections import write_folder
from roadaware.io.folders import encode_json, is_vacant, list_other_names, make_folder, read_marker
from roadaware.io.sources import to_printable
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions, Scenes

_ANY = frozenset({"any class", "any video"})
_VIA = _ANY | {"track", "zero", "name", "untracked", "class", "unclassed", "ignore", "rate", "size", "length"}
FORMS: Mapping[str, Form] = {
    "coco": Form(
        "COCO JSON",
        "coco",
        _ANY | {"track", "zero", "untracked", "class", "ignore", "rate", "size", "length"},
        write_coco,
        "annotations/instances_all.json",
    ),
    "yolo": Form(
        "YOLO text",
        "yolo",
        _ANY | {"track", "zero", "untracked", "class", "split", "rate", "size", "length"},
        write_yolo,
        "data.yaml, dataset.toml, labels/SPLIT/VIDEO_NUMBER.txt",
        needs=("width_px", "height_px"),
    ),
    "mot": Form(
        "MOT text",
        "mot",
        _ANY | {"track", "untracked", "class", "unclassed", "ignore", "rate", "size", "length", "split"},
        write_mot,
        "SPLIT/VIDEO/gt/gt.txt, gt/labels.txt, seqinfo.ini",
        needs=("n_frames",),
        whole=True,
    ),
    "cvat": Form(
        "CVAT for video 1.1",
        "cvat",
        _ANY | {"track", "zero", "class", "occluded", "rate", "size", "length"},
        write_cvat,
        "VIDEO.xml",
        needs=("n_frames", "width_px", "height_px"),
        whole=True,
    ),
    "voc": Form(
        "Pascal VOC XML",
        "voc",
        _ANY | {"untracked", "class", "ignore", "rate", "size", "length", "split"},
        write_voc,
        "Annotations/VIDEO_NUMBER.xml, ImageSets/Main/SPLIT.txt, labelmap.txt",
        needs=("width_px", "height_px"),
    ),
    "csv": Form(
        "csv of boxes",
        "csv",
        _ANY
        | {"track", "zero", "name", "untracked", "class", "unclassed", "ignore", "rate", "size", "length"},
        write_csv,
        "boxes.csv, dataset.toml",
    ),
    "kitti": Form(
        "KITTI object labels",
        "kitti",
        frozenset({"untracked", "class", "ignore", "hidden", "length", "split"}),
        write_kitti,
        "training/label_2/000000.txt",
        own=OBJECT_COLUMNS,
        camera="image_2",
        adapt=adapt_shots,
    ),
    "kitti_tracking": Form(
        "KITTI tracking labels",
        "kitti_tracking",
        frozenset({"track", "zero", "untracked", "class", "ignore", "hidden", "rate", "length", "split"}),
        write_kitti_tracking,
        "training/label_02/0000.txt",
        whole=True,
        own=TRACKING_COLUMNS,
        camera="image_02",
        adapt=adapt_drives,
    ),
    "cvat_images": Form(
        "CVAT for images 1.1",
        "cvat",
        _ANY | {"untracked", "class", "occluded", "rate", "size", "length"},
        write_cvat_images,
        "VIDEO.xml",
        needs=("n_frames", "width_px", "height_px"),
        whole=True,
    ),
    "bdd100k": Form(
        "BDD100K JSON",
        "bdd100k",
        _ANY
        | {
            "track",
            "zero",
            "name",
            "untracked",
            "class",
            "unclassed",
            "ignore",
            "occluded",
            "rate",
            "size",
            "length",
            "split",
        },
        write_bdd100k,
        "SPLIT/VIDEO.json",
    ),
    "openlabel": Form(
        "ASAM OpenLABEL",
        "openlabel",
        _ANY | {"track", "zero", "name", "untracked", "class", "ignore", "hidden", "rate", "size", "length"},
        write_openlabel,
        "VIDEO.json",
        adapt=adapt_objects,
    ),
    "via": Form("VIA 2 project", "via", _VIA, write_via, "via.json, dataset.toml"),
    "via_csv": Form("VIA 2 csv", "via", _VIA, write_via_csv, "via.csv, dataset.toml"),
    "vott": Form(
        "VoTT 1 JSON",
        "vott",
        frozenset({"any video", "track", "zero", "name", "untracked", "class", "unclassed", "rate", "size"}),
        write_vott,
        "VIDEO.json",
        adapt=adapt_regions,
    ),
    "fiftyone": Form(
        "FiftyOneDataset in JSON",
        "fiftyone",
        _ANY
        | {"track", "zero", "untracked", "class", "unclassed", "ignore", "rate", "size", "length", "split"},
        write_fiftyone,
        "metadata.json, samples.json, frames/VIDEO.json",
        needs=("width_px", "height_px"),
    ),
    "activitynet": Form(
        "ActivityNet JSON",
        "activitynet",
        frozenset({"size", "length", "split", "rate", "any video"}),
        write_activitynet,
        "activitynet.json, dataset.toml",
        extract=list_segments,
    ),
    "road": Form(
        "ROAD JSON", "road", frozenset(), write_road, "road.json", extract=adapt_road, compared=True
    ),
    "jaad": Form(
        "JAAD's XML",
        "jaad",
        frozenset(),
        write_jaad,
        "annotations/VIDEO.xml, annotations_attributes/VIDEO_attributes.xml, split_ids/SUBSET/SPLIT.txt",
        extract=adapt_jaad,
        compared=True,
    ),
    "pie": Form(
        "PIE's XML",
        "pie",
        frozenset(),
        write_pie,
        "annotations/SET/VIDEO_annt.xml, annotations_attributes/SET/VIDEO_attributes.xml",
        extract=adapt_pie,
        compared=True,
    ),
    "ucf24": Form(
        "UCF101-24's pickle",
        "ucf24",
        frozenset(),
        write_ucf24,
        "pyannot_with_class_names.pkl",
        extract=adapt_ucf24,
        compared=True,
    ),
    "nuscenes": Form(
        "nuScenes' tables",
        "nuscenes",
        frozenset(),
        write_nuscenes,
        "v1.0-SPLIT/sample_annotation.json",
        extract=adapt_nuscenes,
        compared=True,
    ),
}
"""The forms, by the name that `convert --to` takes; the laws of tests run over them."""
PREDICTED: Mapping[str, Form] = {
    **{
        form: replace(FORMS[form], holds=FORMS[form].holds - {"ignore", "occluded"} | {"score"})
        for form in (
            "coco",
            "yolo",
            "csv",
            "kitti",
            "kitti_tracking",
            "bdd100k",
            "via",
            "via_csv",
            "fiftyone",
        )
    },
    "mot": Form(
        "MOT results",
        "mot",
        frozenset({"any video", "track", "untracked", "unclassed", "score"}),
        write_mot_results,
        "VIDEO.txt",
        adapt=adapt_results,
    ),
    "activitynet": FORMS["activitynet"],
}
"""The forms that hold scores of predictions; in the others predictions are written as if they were annotations."""
REST = "not-held"
"""The folder beside what was written, in which the whole tables lie where the form could not hold them."""


MARKER = ".roadaware-boxes"
"""The file in a written folder that says so, without which nothing is replaced; tools pass over names with a dot in front."""
MARKER_FORMAT = "roadaware-boxes"


@dataclass
class WrittenBoxes:
    """What was written.

    Args:
        files: how many.
        rows: what they hold to how many: videos, images, boxes.
        lost: what the form cannot hold, to how often.
    """

    files: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Fail early where boxes cannot be written: into a folder with other things, or with earlier boxes unless `overwrite`.

    Raises:
        UsageError: if something stands there that may not be replaced; says what to do.
        DiskError: if the folder cannot be looked into.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; boxes go into a folder")
    if not folder.is_dir() or is_vacant(folder):
        return
    held = read_marker(folder / MARKER, MARKER_FORMAT)
    if held is None:
        raise UsageError(
            f"{folder} holds other things ({list_other_names(folder)}); boxes go into a new or empty folder, and "
            "--overwrite replaces only what convert wrote"
        )
    more = sum(len(files) for _, _, files in os.walk(folder)) - 1 - held.get("files", 0)
    if more > 0:
        raise UsageError(
            f"{folder} holds {more:,} files more than convert wrote there; move them, or name a new or empty folder"
        )
    if not overwrite:
        raise UsageError(
            f"{folder} holds boxes that convert wrote; say --overwrite to replace them, or name a new or empty folder"
        )


def write_boxes(
    scenes: Scenes | Predictions,
    form: str,
    folder: Path,
    *,
    kind: str | None = None,
    lossy: bool = False,
    overwrite: bool = False,
    add: Callable[[Path], int] | None = None,
    index: CocoIndex | None = None,
) -> WrittenBoxes:
    """Write boxes of scenes, or predictions with scores, in the form of a tool; the folder appears whole or not at all.

    Args:
        scenes: with boxes.
        form: one of `FORMS`.
        folder: must not exist or be empty, or hold boxes that were written before, which `overwrite` replaces.
        kind: of label that becomes the class (default: agent, object, category or action, else the first).
        lossy: write although the form cannot hold everything; the whole tables are then saved in `not-held` beside.
        overwrite: replace boxes that were written there before.
        add: puts more files into the folder before it appears, such as the videos, and returns how many.
        index: images and categories of the COCO annotations that predictions are about, whose numbers results then have.

    Raises:
        UsageError: if there is no such form or kind; the form is that of a published set and given predictions; it cannot
            hold everything, which is listed; or something stands in the folder that may not be replaced.
        InputError: if the form needs to know what the scenes do not say, can hold none of their boxes, or two videos would be
            one file.
        DiskError: if the disk refuses; what stood there still stands.
    """
    if form not in FORMS:
        raise UsageError(f"no form {form!r}; there are {', '.join(FORMS)}")
    check_folder(folder, overwrite=overwrite)
    chosen = PREDICTED.get(form, FORMS[form]) if isinstance(scenes, Predictions) else FORMS[form]
    if chosen.compared and isinstance(scenes, Predictions):
        raise UsageError(
            f"{chosen.title} has no place for scores; predictions are written as {', '.join(PREDICTED)}"
        )
    held: Any
    held, lost = flatten(scenes, chosen, kind) if chosen.extract is None else chosen.extract(scenes, kind)
    lost = +lost
    write: Callable[[Any], Files] = (
        partial(write_coco, index=index) if form == "coco" and index is not None else chosen.write
    )
    written = WrittenBoxes(lost=lost)
    if not chosen.compared:
        _agree(chosen, lost, lossy=lossy)
        written.rows = held.rows

    seen: set[str] = set()

    def count_files() -> Files:
        for name, data in write(held):
            # In any case: so are files told apart by some disks.
            if name.lower() in seen:
                raise InputError(
                    f"{to_printable(name, 80)} would be written twice", hint="rename one of the videos"
                )
            seen.add(name.lower())
            written.files += 1
            yield name, data

    def finish(building: Path) -> None:
        if chosen.compared:
            back = _read_back(chosen, building, held.options)
            lost.update(count_differences(held.scenes, back))
            if len(scenes.boxes) and back.boxes.is_empty():
                listed = "\n  ".join(f"{count:,} {what}" for what, count in lost.items())
                raise InputError(f"{chosen.title} can hold none of the boxes of this set:\n  {listed}")
            _agree(chosen, lost, lossy=lossy)
            written.rows = {name: len(getattr(back, name)) for name in ("videos", "frames", "boxes")}
        added = add(building) if add is not None else 0
        if lost:
            save(scenes, building / REST)
            added += sum(1 for path in (building / REST).rglob("*") if path.is_file())
        facts = {"format": MARKER_FORMAT, "form": form, "files": written.files + added}
        (building / MARKER).write_text(encode_json(facts))

    make_folder(folder.absolute().parent)
    write_folder(folder, count_files(), finish=finish, replace=overwrite)
    return written


def _agree(form: Form, lost: Counter[str], *, lossy: bool) -> None:
    """Fail where something is lost and nobody agreed to it.

    Raises:
        UsageError: that lists what.
    """
    if lost and not lossy:
        listed = "\n  ".join(f"{count:,} {what}" for what, count in lost.items())
        raise UsageError(
            f"{form.title} cannot hold all of this:\n  {listed}\n  Nothing was written; --lossy writes the "
            f"rest, and keeps the whole tables beside it, in {REST}"
        )


def _read_back(form: Form, folder: Path, options: Mapping[str, Any]) -> Scenes:
    """The set that files of a form hold, by its reader.

    Raises:
        InputError: if the reader takes nothing of them.
    """
    try:
        return read(form.reader, folder, cache=False, **options)
    except InputError as error:
        raise InputError(
            f"nothing of this set can be written as {form.title}: its reader takes none of the files: {error.message}"
        ) from error
