"""The table of all forms of boxes, and tables written in one of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from roadaware.errors import UsageError
from roadaware.formats.boxes.activitynet import list_segments, write_activitynet
from roadaware.formats.boxes.bdd100k import write_bdd100k
from roadaware.formats.boxes.coco import write_coco
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
from roadaware.formats.boxes.openlabel import adapt_objects, write_openlabel
from roadaware.formats.boxes.via import write_via, write_via_csv
from roadaware.formats.boxes.voc import write_voc
from roadaware.formats.boxes.vott import adapt_regions, write_vott
from roadaware.formats.boxes.yolo import write_yolo
from roadaware.formats.coco import CocoIndex
from roadaware.formats.road_detections import write_folder
from roadaware.io.folders import encode_json, is_vacant, list_other_names, make_folder, read_marker
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
        UsageError: if there is no such form or kind; the form cannot hold everything, which is listed; or something stands in
            the folder that may not be replaced.
        InputError: if the form needs to know what the scenes do not say.
        DiskError: if the disk refuses; what stood there still stands.
    """
    if form not in FORMS:
        raise UsageError(f"no form {form!r}; there are {', '.join(FORMS)}")
    check_folder(folder, overwrite=overwrite)
    chosen = PREDICTED.get(form, FORMS[form]) if isinstance(scenes, Predictions) else FORMS[form]
    held, lost = flatten(scenes, chosen, kind) if chosen.extract is None else chosen.extract(scenes, kind)
    write: Callable[[Any], Files] = (
        partial(write_coco, index=index) if form == "coco" and index is not None else chosen.write
    )
    if lost and not lossy:
        listed = "\n  ".join(f"{count:,} {what}" for what, count in lost.items())
        raise UsageError(
            f"{chosen.title} cannot hold all of this:\n  {listed}\n  Nothing was written; --lossy writes the "
            f"rest, and keeps the whole tables beside it, in {REST}"
        )
    written = WrittenBoxes(lost=lost)

    def counted() -> Files:
        for name, data in write(held):
            written.files += 1
            yield name, data

    def finish(building: Path) -> None:
        added = add(building) if add is not None else 0
        if lost:
            save(scenes, building / REST)
            added += sum(1 for path in (building / REST).rglob("*") if path.is_file())
        facts = {"format": MARKER_FORMAT, "form": form, "files": written.files + added}
        (building / MARKER).write_text(encode_json(facts))

    make_folder(folder.absolute().parent)
    write_folder(folder, counted(), finish=finish, replace=overwrite)
    written.rows = held.rows
    return written
