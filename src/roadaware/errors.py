"""Errors with their exit codes, and warnings; every message says what to do."""

from __future__ import annotations

NOTE = 25
"""Level of the library's log, above INFO, for what somebody who waits wants to know."""
_MESSAGE = 1000


class RoadawareError(Exception):
    """Base of all errors a user can meet; `exit_code` is what the command line ends with."""

    exit_code = 70


class UsageError(RoadawareError):
    """The request itself is off: an unknown name, a wrong option, an empty selection."""

    exit_code = 2


class InputError(RoadawareError):
    """Data that cannot be read or that contradicts itself.

    Args:
        message: what was expected and what was found; of one of over 1,000 characters the middle is left out, as
            libraries repeat whole values of a file in theirs.
        where: file, and line or row where known.
        hint: what to do about it.
    """

    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message, self.where, self.hint = clip_text(message, _MESSAGE), where, hint
        shown = where.replace("\n", "\\n") if where else None
        parts = [f"{shown}: {self.message}" if shown else self.message]
        super().__init__("\n  ".join([*parts, *([hint] if hint else [])]))

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore_input_error, (type(self), self.message, self.where, self.hint))


class DamagedError(InputError):
    """A file of ours whose bytes are not those that were written."""


class DatasetNotFoundError(InputError):
    """The folder or archive is not the dataset that was named."""


class DiskError(RoadawareError):
    """The output could not be written; what stood there before still stands."""

    exit_code = 4


class FindingsError(RoadawareError):
    """The work was done, and `--strict` or `--fail-under` turns what was found into a failure."""

    exit_code = 1


def clip_text(text: str, most: int) -> str:
    """A text of at most `most` characters, which are 50 or more: of a longer one, how it begins and how it ends.

    >>> clip_text("a" * 60 + "b" * 60, most=60)
    'aaaaaaaaaaaaaaaaaaaa ... 94 characters left out ... bbbbbb'
    """
    if len(text) <= most:
        return text
    # A message begins with what is wrong and ends with what to do.
    room = most - len(f" ... {len(text):,} characters left out ... ")
    head, tail = room * 3 // 4, room // 4
    return f"{text[:head]} ... {len(text) - head - tail:,} characters left out ... {text[-tail:]}"


class Terminated(BaseException):
    """SIGTERM arrived; a BaseException, so that no handler of ordinary errors swallows it."""


def find_interrupt(error: BaseException | None) -> KeyboardInterrupt | Terminated | None:
    """The interruption that a library has wrapped in an error of its own; None if there is none.

    A signal may arrive while a library calls Python. What its handler raises there comes back from one in Rust
    as a PanicException, which holds it as text alone; from the import of one in C++ as the cause of an ImportError,
    and from numpy's reading of a buffer as the cause of a ValueError.
    """
    while error is not None:
        if isinstance(error, (KeyboardInterrupt, Terminated)):
            return error
        if type(error).__name__ == "PanicException":
            for kind in (Terminated, KeyboardInterrupt):
                name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
                if f"type: <class '{name}'>" in str(error):
                    return kind()
        error = error.__cause__
    return None


def raise_interrupt(error: BaseException) -> None:
    """Raise the interruption that a library's error holds, so that no file is blamed for a signal.

    Raises:
        KeyboardInterrupt, Terminated: if there is one.
    """
    interrupt = find_interrupt(error)
    if interrupt is not None:
        raise interrupt from error


def _restore_input_error(
    kind: type[InputError], message: str, where: str | None, hint: str | None
) -> InputError:
    return kind(message, where=where, hint=hint)
