"""`kernel`, and the pieces of kernels: functions on arrays compiled by numba, kept in the cache folder; imports numba."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event, types

from roadaware import __version__
from roadaware.errors import NOTE
from roadaware.places import get_cache_folder

F = TypeVar("F", bound=Callable[..., Any])
_LOG = logging.getLogger("roadaware")


class _Announcer(event.Listener):
    """Says once in a process that something is compiled, which happens only where the cache has nothing."""

    said = False

    def on_start(self, event: Any) -> None:
        """Print a message at the first compilation."""
        if not self.said:
            self.said = True
            kept = " and is kept for the next time" if _KEPT else ""
            _LOG.log(NOTE, "compiling kernels, which takes some seconds%s", kept)

    def on_end(self, event: Any) -> None:
        """Does nothing."""


def _set_cache_folder() -> bool:
    """Point numba at the cache folder; False where nothing can be written there."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return True
    try:
        # What another version kept may name types that this one has moved, and would not load.
        folder = get_cache_folder() / "kernels" / __version__
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return False
    # Read by numba when a function is decorated; its stubs do not list it.
    setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010
    return os.access(folder, os.W_OK)


_KEPT = _set_cache_folder()
_PLAIN = bool(getattr(numba.config, "DISABLE_JIT", False))
"""Whether numba was told to compile nothing, as where faults are planted."""
_register: Callable[[str, event.Listener], None] = event.register
_register("numba:compile", _Announcer())


def kernel(function: F) -> F:
    """Compile a function on numpy arrays when it is first called with new types.

    Divisions by zero give inf or NaN as numpy's do; nothing runs in parallel, and the interpreter's lock
    is let go. Modules with kernels are imported inside the functions that call them, so that commands
    that need none do not load numba.
    """
    # Without the entry for callers in C, of which there are none.
    options: Any = {"no_cfunc_wrapper": True}
    compiled: Any = numba.njit(cache=_KEPT, nogil=True, error_model="numpy", **options)(function)
    return cast(F, _ignore_literals(compiled))


def inner_kernel(function: F) -> F:
    """A piece of several kernels that is compiled once for all of them, and that nobody else calls.

    It has no entry for callers in Python, which takes longer to compile than many a piece itself: called
    there it is a TypeError.
    """
    if _PLAIN:
        return function
    options: Any = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    compiled: Any = numba.njit(cache=_KEPT, error_model="numpy", **options)(function)

    def keep(found: Any) -> None:
        compiled.overloads[tuple(found.signature.args)] = found

    def refuse(*given: object) -> None:
        raise TypeError(f"{function.__name__} is a piece of kernels and is called by them alone")

    # numba would enter the missing address into the table of what Python may call.
    compiled.add_overload, compiled._compile_for_args = keep, refuse
    return cast(F, _ignore_literals(compiled))


def inline_kernel(function: F) -> F:
    """A piece of kernels in the same file, written into each of them instead of compiled by itself.

    Nested kernels are compiled again for each level that calls them; a piece that is called from one
    place only costs its compilation once.
    """
    piece: Any = numba.njit(inline="always", error_model="numpy")(function)
    return cast(F, piece)


def _ignore_literals(compiled: Any) -> Any:
    """Let kernels call each other by types alone: numba would compile one again for each constant it is given."""
    if _PLAIN:
        return compiled
    resolve = compiled.get_call_template
    strip: Any = types.unliteral

    def resolve_plain(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(strip, args)), {name: strip(each) for name, each in kws.items()})

    compiled.get_call_template = resolve_plain
    return compiled
