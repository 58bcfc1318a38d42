"""Processor seconds of Datumaro or supervision for files of boxes, in their venv.

`PYTHON box_form_peers.py LIBRARY FORM FOLDER [write]`
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def read_datumaro(form: str, folder: Path) -> tuple[int, Callable[[Path], object]]:
    """Boxes that Datumaro reads, 0 where it has no such form, and what writes them again without images."""
    from datumaro.components.dataset import Dataset

    places: dict[str, tuple[str, str, list[Path]]] = {
        "coco": ("coco_instances", "coco_instances", [folder / "annotations/instances_all.json"]),
        "mot": ("mot_seq", "mot_seq_gt", sorted(each.parents[1] for each in folder.rglob("gt/gt.txt"))),
        "cvat": ("cvat", "cvat", sorted(folder.glob("*.xml"))),
        "cvat_images": ("cvat", "cvat", sorted(folder.glob("*.xml"))),
        "voc": ("voc_detection", "voc_detection", [folder]),
        "kitti": ("kitti_detection", "kitti_detection", [folder / "training"]),
    }
    name, written, paths = places.get(form, ("", "", []))
    found = [Dataset.import_from(str(path), name) for path in paths]
    count = sum(len(item.annotations) for each in found for item in each)

    def write(out: Path) -> None:
        for number, each in enumerate(found):
            each.export(str(out / str(number)), written, save_media=False)

    return count, write


def read_supervision(form: str, folder: Path) -> tuple[int, Callable[[Path], object]]:
    """Boxes that supervision reads, 0 where it has no such form, and what writes them again without images."""
    import supervision

    if form == "coco":
        found = supervision.DetectionDataset.from_coco(
            str(folder / "images/all"), str(folder / "annotations/instances_all.json")
        )
        write = lambda out: found.as_coco(annotations_path=str(out / "all.json"))  # noqa: E731
    elif form == "voc":
        found = supervision.DetectionDataset.from_pascal_voc(
            str(folder / "JPEGImages"), str(folder / "Annotations")
        )
        write = lambda out: found.as_pascal_voc(annotations_directory_path=str(out))  # noqa: E731
    elif form == "yolo":
        found = supervision.DetectionDataset.from_yolo(
            str(folder / "images/train"), str(folder / "labels/train"), str(folder / "data.yaml")
        )
        write = lambda out: found.as_yolo(annotations_directory_path=str(out))  # noqa: E731
    else:
        return 0, lambda _: None
    return sum(len(each) for each in found.annotations.values()), write


def run(library: str, form: str, folder: Path, *, writes: bool) -> str:
    """A line: boxes, and processor seconds to read and, if `writes`, to write them."""
    started = time.process_time()
    count, write = {"Datumaro": read_datumaro, "supervision": read_supervision}[library](form, folder)
    if not count:
        return f"{library}: has no such form"
    line = f"{library}: {count:,} boxes read in {time.process_time() - started:.1f} s of processor time"
    if not writes:
        return line
    with tempfile.TemporaryDirectory() as out:
        started = time.process_time()
        try:
            write(Path(out))
        except Exception as error:
            written = f"not written: {describe_cause(error)}"
        else:
            written = f"written in {time.process_time() - started:.1f} s"
    return f"{line}, {written}"


def describe_cause(error: BaseException) -> str:
    """What an error came from first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error)[:120]}"


def main() -> None:
    """Print a line for the library."""
    logging.disable()  # a line for each annotation would be measured
    library, form, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    try:
        print(run(library, form, folder, writes="write" in sys.argv[4:]), flush=True)
    except Exception as error:
        print(f"{library}: {describe_cause(error)}", flush=True)


if __name__ == "__main__":
    main()
