"""The table of all forms of boxes, and tables written in one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from roadaware.errors import UsageError
from roadaware.formats.boxes.coco import write_coco
from roadaware.formats.boxes.csv import write_csv
from roadaware.formats.boxes.cvat import write_cvat
from roadaware.formats.boxes.flat import Files, Form, flatten
from roadaware.formats.boxes.mot import write_mot
from roadaware.formats.boxes.voc import write_voc
from roadaware.formats.boxes.yolo import write_yolo
from roadaware.formats.road_detections import write_folder
from roadaware.io.folders import make_folder
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes

_ANY = frozenset({"any class", "any video"})
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
        _ANY | {"track", "zero", "name", "untracked", "class", "unclassed", "ignore", "rate", "size", "length"},
        write_csv,
        "boxes.csv, dataset.toml",
    ),
}
"""The forms, by the name that `convert --to` takes; the laws of tests run over them."""
REST = "not-held"
"""The folder beside what was written, in which the whole tables lie where the form could not hold them."""


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


def write_boxes(
    scenes: Scenes, form: str, folder: Path, *, kind: str | None = None, lossy: bool = False
) -> WrittenBoxes:
    """Write the boxes of scenes in the form of an annotation tool; the folder appears whole or not at all.

    Args:
        scenes: with boxes.
        form: one of `FORMS`.
        folder: must not exist, or be empty.
        kind: of label that becomes the class (default: agent, object, category or action, else the first).
        lossy: write although the form cannot hold everything; the whole tables are then saved in `not-held` beside.

    Raises:
        UsageError: if there is no such form or kind; or the form cannot hold everything, which is listed.
        InputError: if the form needs to know what the scenes do not say.
        DiskError: if the disk refuses.
    """
    if form not in FORMS:
        raise UsageError(f"no form {form!r}; there are {', '.join(FORMS)}")
    held, lost = flatten(scenes, FORMS[form], kind)
    if lost and not lossy:
        listed = "\n  ".join(f"{count:,} {what}" for what, count in lost.items())
        raise UsageError(
            f"{FORMS[form].title} cannot hold all of this:\n  {listed}\n  Nothing was written; --lossy writes the "
            f"rest, and keeps the whole tables beside it, in {REST}"
        )
    written = WrittenBoxes(lost=lost)

    def counted() -> Files:
        for name, data in FORMS[form].write(held):
            written.files += 1
            yield name, data

    make_folder(folder.absolute().parent)
    write_folder(folder, counted())
    written.rows = {"videos": len(held.videos), "images": len(held.frames), "boxes": len(held.boxes)}
    if lost:
        save(scenes, folder / REST)
    return written
