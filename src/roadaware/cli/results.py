"""What commands with results share: bars that results have to reach, and where results are written."""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import Html, Output, Overwrite
from roadaware.errors import UsageError
from roadaware.io import folders
from roadaware.metrics.pedestrians import METRIC_NAMES, is_lower_better
from roadaware.scenes.store import is_saved

# `--fail-under METRIC=VALUE`: bars on the scale on which results are printed.


@dataclass(frozen=True)
class Scale:
    """How a command prints its metrics, and so how their bars are written.

    Args:
        top: what a metric of 1 is printed as: 1, or 100 for per cent.
        unit: printed behind a value.
        example: a bar as it is written.
        known: the metrics, where they are known before anything is judged; some of them may leave [0, 1].
    """

    top: float
    unit: str
    example: str
    known: tuple[str, ...] = ()


FRACTIONS = Scale(1.0, "", "map@0.5=0.25")
SCALES = {
    "road events": Scale(100.0, " %", "frame_map@0.5:agent=40"),
    "scenes": FRACTIONS,
    "pedestrians": Scale(1.0, "", "auc=0.85", METRIC_NAMES),
}
"""By the kind of run."""


def parse_bars(texts: Sequence[str], scale: Scale) -> dict[str, float]:
    """Metric to the lowest value that passes, on the scale.

    Raises:
        UsageError: if something is not METRIC=VALUE, a value is not on the scale, or a metric is not among those
            that are known or better when lower.
    """
    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as {scale.example}; got {text!r}")
        if scale.known:
            check_bars([name], scale.known, scale)
            if is_lower_better(name):
                raise UsageError(f"--fail-under: lower is better for {name}, so it cannot fall under a bar")
        try:
            bars[name] = float(number)
        except ValueError:
            bars[name] = math.nan
        if not math.isfinite(bars[name]) or not (scale.known or 0 <= bars[name] <= 100):
            due = "a finite number" if scale.known else f"a number from 0 to {scale.top:g}"
            raise UsageError(f"--fail-under {text}: {number!r} is not {due}")
        if scale.top > 1 and 0 < bars[name] < 1:
            raise UsageError(f"--fail-under {text}: bars are in per cent; write {100 * bars[name]:g}")
        if scale.top == 1 and bars[name] > 1 and not scale.known:
            raise UsageError(f"--fail-under {text}: bars are fractions; write {bars[name] / 100:g}")
    return bars


def check_bars(bars: Iterable[str], metrics: Iterable[str], scale: Scale) -> None:
    """Know every metric that has a bar.

    Raises:
        UsageError: if there is no such metric; names the nearest.
    """
    known = list(metrics)
    # Names that say level, threshold and kind are near to many others.
    most, cutoff = (1, 0.6) if scale.known else (3, 0.4)
    for name in bars:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=most, cutoff=cutoff)
            listed = ", ".join(known if scale.known else known[:8])
            guess = f"Did you mean {' or '.join(near)}?" if near else f"There are {listed}."
            raise UsageError(f"--fail-under: no metric {name!r}. {guess}")


def describe_failure(
    metrics: Mapping[str, float | None], bars: Mapping[str, float], scale: Scale = FRACTIONS
) -> str | None:
    """What missed its bar, in words; None if nothing did. An undefined metric misses its bar.

    Args:
        metrics: name to value in [0, 1].
        bars: name to the lowest value that passes, on the scale.
        scale: how values and bars are written.
    """
    missed = []
    for name, bar in bars.items():
        value = metrics.get(name)
        if value is None:
            missed.append(f"{name} is undefined, {bar:g}{scale.unit} was asked for")
        elif scale.top * value < bar:
            missed.append(f"{name} is {scale.top * value:.6g}{scale.unit}, {bar:g}{scale.unit} was asked for")
    return f"below --fail-under: {'; '.join(missed)}" if missed else None


# How files of predictions of road events are opened.

_IMAGES = "For COCO results: the COCO annotations that list their images and categories."
_SIZE = "Width and height of the images that boxes of detection files are in."
Images = Annotated[Path | None, Parameter(help=_IMAGES)]
ImageSize = Annotated[str, Parameter(help=_SIZE)]

# Where results go: a folder, a page.


def write_page(path: Path, page: str) -> None:
    """Write a page, and say where it is."""
    folders.write_text(path, page)
    console.print_note(f"wrote {path}")


@Parameter(name="*")
@dataclass(frozen=True)
class ResultFolder:
    """The folder that a result is kept in."""

    folder: Annotated[
        Path | None,
        Parameter(help="Write the result into this folder: settings, tables, a page."),
        Output,
        outputs.RESULT,
    ] = None
    overwrite: Overwrite = False

    def write(self, files: Mapping[str, bytes], also: str = "") -> None:
        """Write the files of a result and their report at once, and say where they are; nothing without a folder.

        Args:
            files: name to content, `report.html` among them.
            also: a file to name besides the report, as `list: list.csv`.
        """
        if self.folder is None:
            return
        folders.write_result_folder(self.folder, files, overwrite=self.overwrite)
        what, _, name = also.partition(": ")
        named = f"{what}: {self.folder / name}, " if name else ""
        console.print_note(f"wrote {self.folder} ({named}report: {self.folder / 'report.html'})")


@Parameter(name="*")
@dataclass(frozen=True)
class Kept(ResultFolder):
    """Where a result is kept: a folder, a page, both or neither."""

    html: Html = None

    @property
    def wanted(self) -> bool:
        """Whether the result is kept at all, and so needs a page."""
        return self.html is not None or self.folder is not None

    def write_both(self, page: str, make_files: Callable[[], Mapping[str, bytes]]) -> None:
        """Write the page and the folder, those of them that were asked for."""
        if self.folder is not None:
            self.write(make_files())
        if self.html is not None:
            write_page(self.html, page)


UNKEPT, NOWHERE = ResultFolder(), Kept()

# What a command that wrote something says last: how to look at it.


def format_view_command(folder: Path, truth: Path | None = None, *predictions: Path, reader: str = "") -> str:
    """The line that opens a run in the viewer.

    Args:
        folder: of the run.
        truth: of an evaluation.
        predictions: that it judged; those in files of others cannot be opened, and stay out.
        reader: of ground truth as it was released.
    """
    tables = [path for path in predictions if any(map(is_saved, (path, path / "predictions")))]
    words = [
        (f"./{path}" if str(path).startswith("-") else str(path))
        for path in (folder, *([] if truth is None else [truth]), *tables)
    ]
    more = ["--reader", reader] if truth is not None and not is_saved(truth) else []
    return shlex.join(["roadaware", "view", *words, *more])
