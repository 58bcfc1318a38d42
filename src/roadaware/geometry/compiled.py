"""`kernel`, and the pieces of kernels: functions on arrays compiled by numba when one is first called, kept in the cache
folder.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeVar, cast

from roadaware import __version__
from roadaware.errors import NOTE
from roadaware.places import get_cache_folder

F = TypeVar("F", bound=Callable[..., Any])
_LOG = logging.getLogger("roadaware")
_TURN = threading.RLock()
"""Held while a kernel is made: numba replaces the names that a kernel calls, which two threads must not do at once."""


class _Announcer:
    """Says once in a process that something is compiled, which happens only where the cache has nothing."""

    said = False

    def on_start(self, event: Any) -> None:
        """Print a message at the first compilation."""
        if not self.said:
            self.said = True
            kept = " and is kept for the next time" if prepare_numba() else ""
            _LOG.log(NOTE, "compiling kernels, which takes some seconds%s", kept)

    def on_end(self, event: Any) -> None:
        """Does nothing."""


@functools.cache
def prepare_numba() -> bool:
    """Import numba, point it at the cache folder and announce compilations.

    Returns:
        Whether what is compiled can be kept: False where nothing can be written to the cache folder.
    """
    import numba
    from numba.core import event

    class Listener(_Announcer, event.Listener):
        """The announcer as numba wants it."""

    register: Callable[[str, event.Listener], None] = event.register
    register("numba:compile", Listener())
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


def _is_plain() -> bool:
    """Whether numba was told to compile nothing, as where faults are planted."""
    import numba

    return bool(getattr(numba.config, "DISABLE_JIT", False))


class _Kernel:
    """A function that numba gets when it is first called, so that a module with kernels is imported without numba."""

    def __init__(self, function: Callable[..., Any], make: Callable[[Callable[..., Any]], Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._make, self._made = function, make, None

    def __call__(self, *given: Any) -> Any:
        return (self._made or self.build())(*given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.build(), name)

    def __reduce__(self) -> str:
        return self._function.__qualname__

    def build(self) -> Any:
        """What numba makes of the function, after what it makes of the kernels that the function calls."""
        with _TURN:
            if self._made is None:
                known = self._function.__globals__
                for name in set(_list_names(self._function.__code__)):
                    if isinstance(known.get(name), _Kernel) and known[name] is not self:
                        known[name] = known[name].build()
                self._made = self._make(self._function)
                if known.get(self._function.__name__) is self:
                    known[self._function.__name__] = self._made
        return self._made


def _list_names(code: CodeType) -> Iterator[str]:
    """Names that a function looks up outside of itself, and those of the functions in it."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _list_names(one)


def kernel(function: F) -> F:
    """Compile a function on numpy arrays when it is first called with new types.

    Divisions by zero give inf or NaN as numpy's do; nothing runs in parallel, and the interpreter's lock
    is let go. numba is loaded by the first call, so that commands that need no kernel do without it.
    """

    def make(function: Callable[..., Any]) -> Any:
        kept = prepare_numba()
        import numba

        # Without the entry for callers in C, of which there are none.
        options: Any = {"no_cfunc_wrapper": True}
        return _ignore_literals(numba.njit(cache=kept, nogil=True, error_model="numpy", **options)(function))

    return cast(F, _Kernel(function, make))


def inner_kernel(function: F) -> F:
    """A piece of several kernels that is compiled once for all of them, and that nobody else calls.

    It has no entry for callers in Python, which takes longer to compile than many a piece itself: called
    there it is a TypeError.
    """

    def make(function: Callable[..., Any]) -> Any:
        kept = prepare_numba()
        if _is_plain():
            return function
        import numba

        options: Any = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
        compiled: Any = numba.njit(cache=kept, error_model="numpy", **options)(function)

        def keep(found: Any) -> None:
            compiled.overloads[tuple(found.signature.args)] = found

        def refuse(*given: object) -> None:
            raise TypeError(f"{function.__name__} is a piece of kernels and is called by them alone")

        # numba would enter the missing address into the table of what Python may call.
        compiled.add_overload, compiled._compile_for_args = keep, refuse
        return _ignore_literals(compiled)

    return cast(F, _Kernel(function, make))


def inline_kernel(function: F) -> F:
    """A piece of kernels in the same file, written into each of them instead of compiled by itself.

    Nested kernels are compiled again for each level that calls them; a piece that is called from one
    place only costs its compilation once.
    """

    def make(function: Callable[..., Any]) -> Any:
        import numba

        piece: Any = numba.njit(inline="always", error_model="numpy")(function)
        return piece

    return cast(F, _Kernel(function, make))


def _ignore_literals(compiled: Any) -> Any:
    """Let kernels call each other by types alone: numba would compile one again for each constant it is given."""
    if _is_plain():
        return compiled
    from numba.core import types

    resolve = compiled.get_call_template
    strip: Any = types.unliteral

    def resolve_plain(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(strip, args)), {name: strip(each) for name, each in kws.items()})

    compiled.get_call_template = resolve_plain
    return compiled
