"""What can be wrong with a folder of annotations: frame base, box scale, splits, empty tables."""

from __future__ import annotations

from collections.abc import Mapping

from roadaware.analysis.doctor.diagnosis import Diagnosis, note, suspicious, wrong
from roadaware.arrays import Floats, Ints


def frame_base(first: Ints, last: Ints, n_frames: Ints) -> list[Diagnosis]:
    """Whether frames count from 0.

    Args:
        first: (videos,) lowest frame that has a box.
        last: (videos,) highest frame that has a box.
        n_frames: (videos,) number of frames.
    """
    if not len(first):
        return []
    beyond = last >= n_frames
    if first.min() >= 1 and beyond.any():
        evidence = f"no video has boxes in frame 0, {int(beyond.sum())} have some in frame n_frames"
        return wrong("frame_base", "Frames count from 1.", evidence, "Subtract 1 from every frame.")
    if first.min() == 1 and len(first) >= 5 and (first == 1).mean() > 0.3:
        evidence = f"{int((first == 1).sum())} of {len(first)} videos begin in frame 1, none in frame 0"
        return suspicious("frame_base", "Frames seem to count from 1.", evidence, "Subtract 1 if so.")
    return []


def box_scale(x2_px: Floats, y2_px: Floats, width_px: int, height_px: int) -> list[Diagnosis]:
    """Whether boxes are in pixels of the original image.

    Args:
        x2_px: (n,) right edges.
        y2_px: (n,) lower edges.
        width_px: width of the images.
        height_px: height of the images.
    """
    if not len(x2_px):
        return []
    right, low = float(x2_px.max()), float(y2_px.max())
    if width_px == height_px == 1:
        return _unit_scale(right, low)
    evidence = f"boxes reach x {right:g}, y {low:g} in images of {width_px} x {height_px}"
    if right <= 1.5 and low <= 1.5:
        remedy = f"Multiply x by {width_px} and y by {height_px}."
        return wrong("box_scale", "Boxes are shares of the image, not pixels.", evidence, remedy)
    if right <= 100 and low <= 100 and width_px > 400:
        remedy = "Multiply by the image size and divide by 100."
        return suspicious("box_percent", "Boxes look like percent of the image.", evidence, remedy)
    if right > width_px * 1.05 or low > height_px * 1.05:
        says = "Boxes reach well beyond the image: its size or the scale is wrong."
        return suspicious("image_size", says, evidence, "Check original_size in the annotations.")
    if len(x2_px) >= 1000 and right < width_px * 0.55 and low < height_px * 0.55:
        says = "Boxes fill less than a quarter of the image: they may be of a smaller copy of it."
        return suspicious("image_size", says, evidence, "Check original_size in the annotations.")
    return []


def _unit_scale(right: float, low: float) -> list[Diagnosis]:
    """Boxes that are shares of pictures whose size is not known."""
    if max(right, low) <= 1.5:
        return []
    evidence = f"boxes reach x {right:g}, y {low:g} where shares in [0, 1] are due"
    remedy = "Divide x by the width and y by the height of the picture."
    return wrong("box_scale", "Boxes are in pixels, not shares of the picture.", evidence, remedy)


def split_sizes(sizes: Mapping[str, int], missing: Mapping[str, int]) -> list[Diagnosis]:
    """Whether every split has videos, and those it names are there.

    Args:
        sizes: split to the number of its videos that were read.
        missing: split to the number of videos it names that were not read.
    """
    empty = [name for name, count in sizes.items() if count == 0]
    found: list[Diagnosis] = []
    if not sizes:
        remedy = "Put the split_ids folder of the release beside the annotations."
        found += suspicious("no_splits", "No split lists were found.", "no video is in a split", remedy)
    if empty:
        says = f"Splits without a single video: {', '.join(empty)}."
        found += wrong("empty_split", says, f"{len(empty)} of {len(sizes)} splits", "Check the split lists.")
    absent = {name: count for name, count in missing.items() if count}
    if absent:
        evidence = ", ".join(f"{name} {count}" for name, count in absent.items())
        says = "Splits name videos whose annotations were not read."
        found += suspicious("split_incomplete", says, evidence, "Complete the annotations.")
    return found


def table_sizes(rows: Mapping[str, int], rejected: int, read: int) -> list[Diagnosis]:
    """Whether there is something to work with.

    Args:
        rows: table to its number of rows.
        rejected: rows and files that were refused.
        read: rows found in the source.
    """
    found: list[Diagnosis] = []
    if not rows.get("boxes"):
        says = "There are no boxes: every metric on pedestrians will be empty."
        evidence = ", ".join(f"{name} {count}" for name, count in rows.items()) or "all tables are empty"
        found += wrong("no_boxes", says, evidence, "Point at the folder that holds annotations/.")
    if rejected:
        share = rejected / max(read, rejected)
        says = f"{rejected} rows or files were refused."
        kind = wrong if share > 0.01 else note
        found += kind(
            "rejected", says, f"{share:.2%} of what was found", "`roadaware read` lists the reasons."
        )
    return found
