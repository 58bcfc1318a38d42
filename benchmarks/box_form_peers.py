"""Processor seconds of Datumaro and supervision for files of boxes: `PYTHON box_form_peers.py FORM FOLDER`, in their venv."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def read_datumaro(form: str, folder: Path) -> int:
    """Boxes that Datumaro reads; 0 where it has no such form."""
    from datumaro.components.dataset import Dataset

    places: dict[str, tuple[str, list[Path]]] = {
        "coco": ("coco_instances", [folder / "annotations/instances_all.json"]),
        "mot": ("mot_seq", sorted(each.parents[1] for each in folder.rglob("gt/gt.txt"))),
        "cvat": ("cvat", sorted(folder.glob("*.xml"))),
        "cvat_images": ("cvat", sorted(folder.glob("*.xml"))),
        "voc": ("voc_detection", [folder]),
        "kitti": ("kitti_detection", [folder / "training"]),
    }
    name, paths = places.get(form, ("", []))
    return sum(len(item.annotations) for path in paths for item in Dataset.import_from(str(path), name))


def read_supervision(form: str, folder: Path) -> int:
    """Boxes that supervision reads; 0 where it has no such form."""
    import supervision

    if form == "coco":
        found = supervision.DetectionDataset.from_coco(
            str(folder / "images/all"), str(folder / "annotations/instances_all.json")
        )
    elif form == "voc":
        found = supervision.DetectionDataset.from_pascal_voc(
            str(folder / "JPEGImages"), str(folder / "Annotations")
        )
    elif form == "yolo":
        found = supervision.DetectionDataset.from_yolo(
            str(folder / "images/train"), str(folder / "labels/train"), str(folder / "data.yaml")
        )
    else:
        return 0
    return sum(len(each) for each in found.annotations.values())


def main() -> None:
    """Print a line for each library that reads the form."""
    logging.disable()  # a line for each annotation would be measured
    form, folder = sys.argv[1], Path(sys.argv[2])
    readers: dict[str, Callable[[str, Path], int]] = {
        "Datumaro": read_datumaro,
        "supervision": read_supervision,
    }
    for library, read in readers.items():
        started = time.process_time()
        try:
            count = read(form, folder)
        except Exception as error:
            causes = list(iterate_causes(error))
            print(f"{library}: {type(causes[-1]).__name__}: {str(causes[-1])[:120]}", flush=True)
            continue
        if count:
            used = time.process_time() - started
            print(f"{library}: {count:,} boxes read in {used:.1f} s of processor time", flush=True)


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__


if __name__ == "__main__":
    main()
