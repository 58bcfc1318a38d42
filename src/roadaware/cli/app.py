"""The commands, and the one place where an outcome or an error becomes output and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cyclopts import App, CycloptsError

from roadaware import __version__
from roadaware.addresses import is_address_like, keep_secret, reset_secrets
from roadaware.cli import console, folders
from roadaware.cli.ablate import ablate
from roadaware.cli.audit import audit
from roadaware.cli.baseline import baseline
from roadaware.cli.calibration import calibration
from roadaware.cli.check import check
from roadaware.cli.compare import compare
from roadaware.cli.cross import cross
from roadaware.cli.demo import demo
from roadaware.cli.doctor import doctor
from roadaware.cli.draw import draw
from roadaware.cli.evaluate import evaluate
from roadaware.cli.export import export
from roadaware.cli.interrupts import Terminated, handle_interrupts, stop_children
from roadaware.cli.label import label
from roadaware.cli.link import link
from roadaware.cli.models import models
from roadaware.cli.options import USUAL, Common, Outcome
from roadaware.cli.outputs import check_paths
from roadaware.cli.poses import poses
from roadaware.cli.predict import predict
from roadaware.cli.prelabel import prelabel
from roadaware.cli.propose import propose
from roadaware.cli.read import read
from roadaware.cli.report import report
from roadaware.cli.reproduce import reproduce
from roadaware.cli.rescore import rescore
from roadaware.cli.segment import segment
from roadaware.cli.simulate import simulate
from roadaware.cli.stats import stats
from roadaware.cli.text import format_paragraphs
from roadaware.cli.train import train
from roadaware.cli.watch import watch
from roadaware.errors import RoadawareError, UsageError

USAGE, DISK, INTERNAL, PIPE, INTERRUPTED, TERMINATED = 2, 4, 70, 141, 130, 143
_DISK_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}

app = App(
    name="roadaware",
    version=__version__,
    help=format_paragraphs("""
        Turn road video into road events, and know how far to trust them.

        First time here? `roadaware demo` makes a small data set and runs every step on it.
        `roadaware COMMAND --help` explains a command, with an example.

        Exit codes: 0 fine, 1 findings under --strict or --fail-under, 2 wrong request, 3 unreadable
        input, 4 output could not be written, 70 a fault of roadaware, 130 interrupted, 141 closed pipe,
        143 terminated.
        """),
    help_format="plaintext",
)
_COMMANDS: tuple[Callable[..., Any] | App, ...] = (
    demo,
    simulate,
    draw,
    read,
    stats,
    audit,
    check,
    doctor,
    models,
    baseline,
    train,
    predict,
    watch,
    poses,
    segment,
    propose,
    prelabel,
    rescore,
    ablate,
    label,
    export,
    link,
    evaluate,
    calibration,
    compare,
    cross,
    reproduce,
    report,
)
for _place, _command in enumerate(_COMMANDS):
    if isinstance(_command, App):
        _command.sort_key = _place
        app.command(_command)
    else:
        app.command(_command, help=format_paragraphs(_command.__doc__ or ""), sort_key=_place)
COMMANDS = tuple(_c.name[0] if isinstance(_c, App) else _c.__name__ for _c in _COMMANDS)
"""The names of all commands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the words after `roadaware`; those of the process where None.
    """
    words = normalize_json_option(list(sys.argv[1:] if arguments is None else arguments))
    console.configure_streams()
    _keep_secrets(words)
    try:
        with handle_interrupts():
            code = _run_guarded(words)
    except (KeyboardInterrupt, Terminated) as error:  # a signal as we begin or stop to listen for them
        code = _report_interrupt(error)
    if code in (INTERRUPTED, TERMINATED):
        stop_children()
        if arguments is None:
            # Workers' queues would be joined on the way out; after an interruption nobody waits for them.
            os._exit(code)
    if arguments is None:
        with contextlib.suppress(ValueError):  # not the main thread, where no signal arrives
            # Only callbacks of libraries are left, which would end in a traceback of theirs.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _keep_secrets(words: Sequence[str]) -> None:
    """Let no output show what is secret in addresses among the words, whatever comes of the command."""
    reset_secrets()
    for word in words:
        for given in {word, word.partition("=")[2] if word.startswith("-") else word}:
            if is_address_like(given) and not os.path.lexists(given.replace("\0", "")):
                keep_secret(given)


def normalize_json_option(words: Sequence[str]) -> list[str]:
    """Write a bare `--json`, and `--json -`, as `--json=-`: standard output.

    >>> normalize_json_option(["doctor", "--json", "-", "-v"]), normalize_json_option(["doctor", "--json"])
    (['doctor', '--json=-', '-v'], ['doctor', '--json=-'])
    """
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--json" and (not rest or rest[0].startswith("-")):
            word = "--json=-"
            if rest and rest[0] == "-":
                rest.pop(0)
        found.append(word)
    return found


def _run_guarded(words: list[str]) -> int:
    """Run, and turn whatever is raised into a message and an exit code."""
    try:
        code = _run(words)
        sys.stdout.flush()
    except CycloptsError as error:
        return _complain(str(error), USAGE, hint="`roadaware --help` lists the commands and their options.")
    except RoadawareError as error:
        # Our own line breaks are followed by two spaces; any other stands in a name.
        return _complain(re.sub("\n(?!  )", r"\\n", str(error)), error.exit_code)
    except (KeyboardInterrupt, Terminated) as error:
        return _report_interrupt(error)
    except BrokenPipeError:
        return _closed_pipe()
    except SystemExit as error:  # rich, which prints the help, ends the process over a closed pipe
        if isinstance(error.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    except OSError as error:
        if error.errno in _DISK_ERRNOS:
            _drop_output()
            return _complain(f"the output could not be written: {error}", DISK)
        return _internal(error)
    except Exception as error:  # the last line of defence: a fault of ours is one line, not a traceback
        return _internal(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of libraries in Rust, which is no Exception
            raise
        return _internal(error)
    return code


def _report_interrupt(error: KeyboardInterrupt | Terminated) -> int:
    told, code = ("terminated", TERMINATED) if isinstance(error, Terminated) else ("interrupted", INTERRUPTED)
    return _complain(f"{told}; nothing half-written remains", code)


def _run(words: list[str]) -> int:
    if any("\0" in word for word in words):
        raise UsageError("a word of the command holds a NUL character, which no path or address can")
    command, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    ours = command.__module__.startswith("roadaware.")  # not so --help and --version
    if ours:
        _require_values(bound.arguments)
    bound.apply_defaults()
    common: Common = bound.arguments.get("common", USUAL)
    console.configure(quiet=common.quiet, verbosity=common.verbose)
    if ours:
        check_paths(command, bound.arguments)
    outcome: Any = command(*bound.args, **bound.kwargs)
    return _deliver(outcome, common) if isinstance(outcome, Outcome) else 0


def _require_values(given: Mapping[str, Any]) -> None:
    """Refuse an option that takes several values and is given none.

    Raises:
        UsageError: naming its parameter.
    """
    for name, value in given.items():
        if isinstance(value, tuple | list) and not value:
            raise UsageError(f"--{name.strip('_').replace('_', '-')} takes one value or several; it has none")


def _deliver(outcome: Outcome, common: Common) -> int:
    if common.json is None and outcome.text:
        console.print_result(outcome.text)
    elif str(common.json) in ("-", "/dev/stdout"):
        console.print_result(folders.encode_json(outcome.data), concealed=True)
    elif common.json is not None:
        folders.write_text(common.json, folders.encode_json(outcome.data))
        console.print_result(outcome.text)
    if outcome.failed is None:
        return 0
    console.print_error(f"roadaware: {outcome.failed}")
    return 1


def _complain(message: str, code: int, hint: str | None = None) -> int:
    if console.get_verbosity() >= 2:
        console.print_trace(traceback.format_exc())
    console.print_error(f"roadaware: {message}")
    if hint is not None:
        console.print_error(f"  {hint}")
    return code


def _internal(error: BaseException) -> int:
    name = type(error).__name__
    hint = "This is a fault of roadaware, not of your data; run it again with -vv and report what it prints."
    if isinstance(error, MemoryError):
        hint = "There was not enough memory; use fewer draws or a smaller part of the data."
    if isinstance(error, ImportError):
        hint = "A library could not be loaded: too little memory, or a broken installation (see `pip check`)."
    lines = str(error).splitlines()
    return _complain(f"internal error: {name}: {lines[0] if lines else ''}", INTERNAL, hint=hint)


def _closed_pipe() -> int:
    """Whoever read our output has gone: end quietly."""
    _drop_output()
    return PIPE


def _drop_output() -> None:
    """Point standard output to nowhere, so that the interpreter's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
