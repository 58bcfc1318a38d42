"""Options that several commands share, and what a command hands back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter, Token

from roadaware.cli.outputs import FILE
from roadaware.config import ConfigName as ConfigName
from roadaware.errors import UsageError
from roadaware.io.parallel import Workers
from roadaware.reports.terminal import format_paragraphs

Command = Callable[..., Any] | App


def create_app(name: str, about: str, **how: Any) -> App:
    """A command that holds others; `about` is its help as it stands in a docstring."""
    return App(name=name, help=format_paragraphs(about), help_format="plaintext", **how)


def add_command(app: App, command: Command, name: str, group: Group | None = None, place: int = 0) -> None:
    """Make a function, whose docstring becomes its help, or another app a command of an app.

    A function need not name the options that every command understands: it gets them here, and the app reads them.

    Args:
        app: that gets it.
        command: what is added.
        name: the word that starts it; an app has its own.
        group: heading in the app's help.
        place: where it stands under that heading.
    """
    if isinstance(command, App):
        command.sort_key = place
        command.group = (group,) if group else ()
        app.command(command)
        return
    about = format_paragraphs(command.__doc__ or "")
    whole = _with_common(command)
    app.command(whole, name=name, help=about, help_format="plaintext", group=group, sort_key=place)


def _with_common(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with `common` behind its parameters, where it does not take it itself."""
    signature = inspect.signature(command)
    if "common" in signature.parameters:
        return command

    @functools.wraps(command)
    def run(*words: Any, common: Common = USUAL, **options: Any) -> Any:
        return command(*words, **options)

    common = inspect.Parameter("common", inspect.Parameter.KEYWORD_ONLY, default=USUAL, annotation=Common)
    # Whoever asks for the signature or the types, as the parser and the checks of paths do, sees all of them.
    run.__annotations__ = {**command.__annotations__, "common": Common}
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), common])  # type: ignore[attr-defined]
    return run


def add_commands(app: App, commands: Iterable[Callable[..., Any]], **names: str) -> None:
    """Make functions commands of an app, in this order.

    Args:
        app: that gets them.
        commands: functions, whose docstrings become their help.
        names: of functions that are not called as the command is: function=command.
    """
    for place, command in enumerate(commands):
        name = names.get(command.__name__, command.__name__.replace("_", "-"))
        add_command(app, command, name, place=place)


_SHARED = Group("Shared options", sort_key=100)

TaskName = Literal["action", "intention", "risk"]
DatasetKind = Literal["kitti", "nuscenes", "once", "simulator"]
OPTION = "OPTION=VALUE: an option of the reader, such as first_frame=0 or fps=25."
COLUMNS = (
    "Which column of a csv is what, in pairs such as frame=image id=who left=bx top=by width=bw height=bh; also video, t, "
    "label, x1, y1, x2, y2, cx, cy, ignore. [default: common names]"
)
Dataset = Annotated[str, Parameter(help="Which dataset it is, such as jaad or pie.")]
DatasetPath = Annotated[Path, Parameter(help="Its folder or zip, or tables that `read -o` saved.")]


def validate_range(low: int, high: int) -> Callable[[Any, int | None], None]:
    """A check that a whole number lies between two others, both included; None is nothing to check."""

    def check(_: Any, value: int | None) -> None:
        if value is not None and not low <= value <= high:
            raise ValueError(f"It is {low} or more, and at most {high:,}.")

    return check


MOST_RESAMPLES = 100_000
"""The ends of an interval have settled long before; more is taken for a slip."""
WHOLE_SEED = validate_range(0, 2**32 - 1)
Seed = Annotated[int, Parameter(help="Seed of the resamples.", validator=WHOLE_SEED)]


def parse_resamples(_: Any, tokens: Sequence[Token]) -> int:
    """A number of resamples, with the name of the method before it where it is not the default.

    Raises:
        ValueError: if it is neither `N` nor `percentile:N`.
    """
    from roadaware.statistics.intervals import encode_resample_count  # numpy, which no help needs

    name, _colon, number = tokens[0].value.rpartition(":")
    if name not in ("", "jackknife", "percentile") or not number.isascii() or not number.isdigit():
        raise ValueError("Give a whole number of 0 or more, such as 1000, or percentile:1000.")
    return encode_resample_count(int(number), "percentile" if name == "percentile" else "jackknife")


Resamples = Annotated[
    int,
    Parameter(
        name="--resamples",
        help="95 % intervals, each from at most so many evaluations; 0 for none, at most 100,000. "
        "percentile:1000 gives percentiles of resamples instead of the jackknife.",
        validator=validate_range(0, MOST_RESAMPLES),
        converter=parse_resamples,
    ),
]
Several = Parameter(
    negative="", consume_multiple=True, show_default=lambda value: " ".join(map(str, value or ())) or "none"
)
Stated = Parameter(show_default=False)
"""Behind `Several`, where the help says itself what holds by default."""
Switch = Parameter(negative="", show_default=False)
MAY_STAND_ALONE = "may stand alone"
"""Beside the parameter of an option that takes several values, and means something without any."""
Html = Annotated[
    Path | None, Parameter(help="Write the result as a page: one file, offline, printable."), FILE
]
CONTINUED = "Where the result goes: a new or empty folder, or one of the same command, which is continued."
"""Help of `--output` of work that goes on."""
Overwrite = Annotated[bool, Parameter(help="Replace an earlier result there."), Switch]
Output = Parameter(name=["--output", "-o", "--out"])
MetricConfig = Annotated[
    ConfigName,
    Parameter(help="`reference` judges as the published evaluator does, `default` as we recommend."),
]
SampleConfig = Annotated[
    ConfigName,
    Parameter(help="Samples and metrics as published (`reference`), or as we recommend (`default`)."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """What every command understands."""

    json: Annotated[Path | None, Parameter(group=_SHARED), FILE] = None
    """Write the result as JSON to this file; `--json` alone or `--json -` prints it instead of the text."""
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=_SHARED), Switch] = False
    """Say nothing but the result and errors."""
    verbose: Annotated[int, Parameter(name=["--verbose", "-v"], count=True, group=_SHARED), Switch] = 0
    """Say more; -vv also shows where in the program an error arose."""


def describe_strict(strict: bool, count: int, what: str) -> str | None:
    """Why `--strict` makes exit code 1 of so many things; None where it was not given, or there are none."""
    return f"--strict: {count:,} {what}" if strict and count else None


USUAL = Common()
_PROCESSES = "Parts of the work at a time, such as scenes or videos; 0 for all processors. [default: 1; of a cluster all]"
_WIDE = "Parts of the work at a time, such as scenes or videos. [default: as many as there are processors]"
_AT_A_TIME = Parameter(validator=validate_range(0, 10_000), show_default=False)
_ON = (
    "Where the work is done: local, by processes of this machine; ray, by the cluster that RAY_ADDRESS names or that runs "
    "here, else by one that is started; ray://HOST:PORT, by one elsewhere. Ray comes with roadaware[scale]."
)
_PART_SECONDS = (
    "Seconds that a part of the work may take, such as a scene or a video; then it has failed, and the others go on. "
    "[default: no limit]"
)


@Parameter(name="*")
@dataclass(frozen=True)
class Spread:
    """How many parts of long work are done at a time, and where."""

    processes: Annotated[int | None, Parameter(help=_PROCESSES), _AT_A_TIME] = None
    on: Annotated[str, Parameter(help=_ON)] = "local"
    part_seconds: Annotated[float | None, Parameter(help=_PART_SECONDS)] = None

    def gather(self, usual: int = 1, least: int = 0) -> Workers:
        """The workers that are asked for.

        Args:
            usual: how many by default on this machine, 0 for all processors; of a cluster it is all of them.
            least: that may be asked for; 0 for all processors.

        Raises:
            UsageError: if there is no such place to work, Ray is not installed, or a number is out of range.
        """
        if self.processes is not None and self.processes < least:
            raise UsageError(f"--processes is {least} or more, not {self.processes}")
        wanted = (usual if self.on == "local" else 0) if self.processes is None else self.processes
        return Workers(self.on, wanted, self.part_seconds)


@Parameter(name="*")
@dataclass(frozen=True)
class WideSpread(Spread):
    """The same, of work that takes all processors by default."""

    processes: Annotated[int | None, Parameter(help=_WIDE), _AT_A_TIME] = None


LOCAL, ALL_LOCAL = Spread(), WideSpread()


@dataclass(frozen=True)
class Outcome:
    """What a command found out.

    Args:
        text: for people.
        data: for machines; JSON-ready, undefined values as None.
        failed: why `--strict` or `--fail-under` turns it into exit code 1, or None.
        look: a command that shows it, said last of all to people.
    """

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    failed: str | None = None
    look: str = ""
