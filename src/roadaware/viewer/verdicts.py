"""What people say of boxes and tubes: appended to a file of the run at once, never lost to another tab, undone, exported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import DamagedError, UsageError
from roadaware.formats.corrections import DRAWN
from roadaware.io.files import build_disk_error, lock_folder, read_regular
from roadaware.scenes.schema import CORNERS
from roadaware.viewer.opening import TableSource

FILE = "verdicts.jsonl"
VERDICTS = ("right", "wrong", "unsure")
_LIMIT = 1 << 28
_MOST_TEXT = 2_000


@dataclass(frozen=True)
class Verdict:
    """What somebody says of a tube, or of a box.

    Args:
        annotator: who.
        video: where.
        tube: the path; None for a box without one.
        box: the box; None for a whole tube.
        frame: at which it was looked.
        verdict: right, wrong or unsure; empty to take it back.
        note: in words.
    """

    annotator: str
    video: str
    tube: int | None
    box: int | None
    frame: int
    verdict: str
    note: str = ""

    def __post_init__(self) -> None:
        numbers = [each for each in (self.tube, self.box) if each is not None]
        whole = all(type(each) is int and 0 <= each < 1 << 62 for each in (*numbers, self.frame))
        if len(numbers) != 1 or not whole:
            raise UsageError("a verdict is of one tube or of one box, at a frame from 0 on")
        if self.verdict not in (*VERDICTS, ""):
            raise UsageError(f"a verdict is {', '.join(VERDICTS)} or empty")
        for text in (self.annotator, self.note, self.video):
            if not isinstance(text, str) or len(text) > _MOST_TEXT:
                raise UsageError(f"names and notes are texts of up to {_MOST_TEXT:,} characters")

    @property
    def target(self) -> tuple[str, int | None, int | None]:
        """What it is of."""
        return self.video, self.tube, self.box


class VerdictFile:
    """The verdicts beside a run: one line for each, the last of a person on a thing counts.

    Lines are only ever appended, in one write under a lock, so that neither two tabs nor two viewers lose any.

    Args:
        folder: of the run.
        digest: of the set that is judged; verdicts on a set that stood there before do not count.
    """

    def __init__(self, folder: Path, digest: str = "") -> None:
        self.path, self._digest = folder / FILE, digest

    def add(self, verdict: Verdict) -> None:
        """Write a verdict down; it is on the disk when this returns.

        Raises:
            DiskError: if the disk refuses.
        """
        line = json.dumps({"set": self._digest, **vars(verdict)}, ensure_ascii=True).encode() + b"\n"
        try:
            with lock_folder(self.path.parent):
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                handle = os.open(self.path, flags, 0o666)
                try:
                    size = os.fstat(handle).st_size
                    # A line that a full disk or a kill cut off is ended first, or it would spoil this one.
                    if size and os.pread(handle, 1, size - 1) != b"\n":
                        line = b"\n" + line
                    if os.write(handle, line) != len(line):
                        os.ftruncate(handle, size)
                        raise OSError("the disk took a part of a line")
                    os.fsync(handle)
                finally:
                    os.close(handle)
        except OSError as error:
            raise build_disk_error(self.path, len(line), error) from error

    def read(self) -> list[Verdict]:
        """The verdicts that count, in the order in which things were first judged; lines that are none are passed over.

        Raises:
            DamagedError: if the file cannot be read.
        """
        try:
            data = read_regular(self.path, limit=_LIMIT)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DamagedError(f"expected verdicts, found: {error}", where=str(self.path)) from error
        found: dict[tuple[Any, ...], Verdict] = {}
        for line in data.splitlines():
            try:
                record = json.loads(line)
                if record.pop("set", "") != self._digest:
                    continue
                verdict = Verdict(**record)
            except (AttributeError, ValueError, TypeError, RecursionError, UsageError):
                continue
            found[(verdict.annotator, *verdict.target)] = verdict
        return [verdict for verdict in found.values() if verdict.verdict or verdict.note]


def build_corrections(
    source: TableSource, verdicts: Iterable[Verdict]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Verdicts as corrected proposals, as `label import` reads them, and what was left out, by reason.

    An image is corrected where an annotator has judged all of its boxes: what is right stays with its number, what is wrong
    is gone. Images with a box that is not judged, or of which somebody is unsure, are left out. A verdict on a tube
    is one on each of its boxes.

    Args:
        source: the predictions.
        verdicts: on them.

    Returns:
        a table with the columns of `corrections.DRAWN`; an image in which nothing stayed is a row without corners.
    """
    held = list(verdicts)
    columns = source.scan("boxes").collect_schema().names()
    tube = pl.col("tube") if "tube" in columns else pl.lit(None, pl.Int64).alias("tube")
    videos = sorted({verdict.video for verdict in held})
    boxes = source.scan("boxes").select("box", pl.col("video").cast(pl.String), "frame", *CORNERS, tube)
    table = boxes.filter(pl.col("video").is_in(videos)).collect()
    parts, left = [pl.DataFrame(schema=DRAWN)], {"images with boxes that are not judged": 0}
    for annotator in sorted({verdict.annotator for verdict in held}):
        mine = [verdict for verdict in held if verdict.annotator == annotator]
        of_tube = {v.tube: v.verdict for v in mine if v.tube is not None}
        of_box = {v.box: v.verdict for v in mine if v.box is not None}
        said = [
            of_box.get(box) or of_tube.get(owner) or ""
            for box, owner in table.select("box", "tube").iter_rows()
        ]
        judged = table.with_columns(said=pl.Series(said, dtype=pl.String))
        sure = pl.col("said").is_in(["right", "wrong"])
        image = ["video", "frame"]
        looked = judged.filter(pl.col("said") != "").select(image).unique()
        images = judged.join(looked, on=image, how="semi").group_by(image).agg(done=sure.all())
        left["images with boxes that are not judged"] += int((~images["done"]).sum())
        done = images.filter("done").sort(image)
        kept = judged.filter(pl.col("said") == "right").join(done, on=image, how="semi")
        empty = done.join(kept, on=image, how="anti").select(image)
        rows = pl.concat([kept.rename({"box": "proposal"}), empty], how="diagonal")
        rows = rows.with_columns(pl.lit(annotator).alias("annotator"), pl.lit(None, pl.String).alias("label"))
        parts.append(rows.select(pl.col(name).cast(dtype) for name, dtype in DRAWN.items()))
    return pl.concat(parts).sort("video", "frame", "annotator", maintain_order=True), {
        what: count for what, count in left.items() if count
    }
