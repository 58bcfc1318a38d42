"""What commands with results share: bars that results have to reach, and where results are written."""

# No postponed annotations here: cyclopts looks up those of inherited fields in the module of the subclass.
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.options import Html, Output, Overwrite, Resamples, Seed, Several, Switch
from roadaware.errors import UsageError
from roadaware.io import folders

_BY = "Also by slice: split, or what the documentation of the subject lists (weather, density, category ...)."
_BARS = "METRIC=VALUE on the scale that is printed: exit with 1 if a metric is lower, or undefined."
_STRICT = "Exit with 1 if ground truth or predictions were refused, or they do not fit each other."
_CONFIG = "Named configuration of the metric: `default`, or a published evaluator; see above."
_SET = "FIELD=VALUE: change single fields of the config, such as setting=predcls."

# `--fail-under METRIC=VALUE`: bars on the scale on which results are printed.


@dataclass(frozen=True)
class Scale:
    """How a command prints its metrics, and so how their bars are written.

    Args:
        top: what a metric of 1 is printed as: 1, or 100 for per cent.
        unit: printed behind a value.
        example: a bar as it is written.
    """

    top: float
    unit: str
    example: str

    def slip(self, value: float) -> str | None:
        """What is said of a value that was meant on the other scale; None if it need not be."""
        if self.top > 1:
            return f"bars are in per cent; write {100 * value:g}" if 0 < value < 1 else None
        return f"bars are fractions; write {value / 100:g}" if value > 1 else None


PER_CENT = Scale(100.0, " %", "frame_map@0.5:agent=40")
FRACTIONS = Scale(1.0, "", "map@0.5=0.25")


def parse_bars(texts: Sequence[str], scale: Scale) -> dict[str, float]:
    """Metric to the lowest value that passes, on the scale.

    Raises:
        UsageError: if something is not METRIC=VALUE, or a value is not on the scale.
    """
    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as {scale.example}; got {text!r}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not 0 <= value <= 100:
            raise UsageError(f"--fail-under {text}: {number!r} is not a number from 0 to {scale.top:g}")
        if slip := scale.slip(value):
            raise UsageError(f"--fail-under {text}: {slip}")
        bars[name] = value
    return bars


def check(bars: Mapping[str, float], metrics: Mapping[str, float | None]) -> None:
    """Know every metric that has a bar.

    Raises:
        UsageError: if there is no such metric; names the nearest.
    """
    for name in bars:
        if name not in metrics:
            near = difflib.get_close_matches(name, metrics, n=3, cutoff=0.4)
            guess = (
                f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(list(metrics)[:8])}."
            )
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


@Parameter(name="*")
@dataclass(frozen=True)
class Scoring:
    """What all evaluations of tasks on scenes and of road events are asked."""

    by: Annotated[tuple[str, ...], Parameter(help=_BY), Several] = ()
    draws: Resamples = 0
    seed: Seed = 0
    fail_under: Annotated[tuple[str, ...], Parameter(help=_BARS), Several] = ()
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False


@Parameter(name="*")
@dataclass(frozen=True)
class FieldScoring(Scoring):
    """The same, where a config is named and single fields of it may be changed."""

    config: Annotated[str, Parameter(help=_CONFIG)] = "default"
    fields: Annotated[tuple[str, ...], Parameter(name="--set", help=_SET), Several] = ()


AS_USUAL = FieldScoring()


# Where results go: a folder, a page.


def write_result(folder: Path, files: Mapping[str, bytes], *, overwrite: bool, also: str = "") -> None:
    """Write the files of a result and their report at once, and say where they are.

    Args:
        folder: of the result.
        files: name to content, `report.html` among them.
        overwrite: replace an earlier result there.
        also: a file to name besides the report, as `list: list.csv`.
    """
    folders.write_result_folder(folder, files, overwrite=overwrite)
    what, _, name = also.partition(": ")
    named = f"{what}: {folder / name}, " if name else ""
    console.print_note(f"wrote {folder} ({named}report: {folder / 'report.html'})")


def write_page(path: Path, page: str) -> None:
    """Write a page, and say where it is."""
    folders.write_text(path, page)
    console.print_note(f"wrote {path}")


@Parameter(name="*")
@dataclass(frozen=True)
class Kept:
    """Where a result is kept."""

    html: Html = None
    folder: Annotated[
        Path | None,
        Parameter(help="Write the run here: settings, results, state, instances, report."),
        Output,
        outputs.RESULT,
    ] = None
    overwrite: Overwrite = False

    @property
    def wanted(self) -> bool:
        """Whether the result is kept at all, and so needs a page."""
        return self.html is not None or self.folder is not None

    def write(self, make_files: Callable[[], Mapping[str, bytes]], page: str) -> None:
        """Write the folder and the page, those of them that were asked for."""
        if self.folder is not None:
            write_result(self.folder, make_files(), overwrite=self.overwrite)
        if self.html is not None:
            write_page(self.html, page)


NOWHERE = Kept()
