"""One process that holds a group's tests, and forks a child for each fault, ended by its first failure."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib
import json
import os
import pickle
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Kernels run as Python, so that their code can be replaced; threads would be lost in a fork.
os.environ |= {"NUMBA_DISABLE_JIT": "1", "POLARS_MAX_THREADS": "1"} | {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")
}

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.mutation.changes import Change, changed, changes

SLOWEST_TEST = 4.0
"""Seconds of processor time; a test that takes longer without compiled kernels guards nothing here."""
MEMORY = 8 << 30
KILLED, SURVIVED, UNREACHED, HUNG = "killed", "survived", "unreached", "hung"
_FAILED = 3


class _TooSlowError(BaseException):
    """A test took longer than `SLOWEST_TEST`."""


class Worker:
    """A pytest plugin that puts faults in instead of running the session's tests once.

    Args:
        request: `modules`, `sample` (0: every change), `seed`, `budget` (seconds of tests for each change,
            a tenth for those that are excused), `excused` (key of each excused change by module).
    """

    def __init__(self, request: dict[str, Any], out: Any, scratch: Path) -> None:
        self.request, self.out, self.scratch = request, out, scratch
        self.seconds: dict[int, float] = {}
        self.reached: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        self.kills: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def pytest_configure(self) -> None:
        """Properties try the same examples each time, and shrink none."""
        # Hypothesis has pytest rewrite its modules, which must not be imported before.
        from hypothesis import HealthCheck, Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutation",
            max_examples=100,
            derandomize=True,
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Time the tests on the code as it stands, then try every change."""
        if any(name.startswith("polars-0") for name in _threads()):
            raise RuntimeError("tests that query tables while they are collected start threads a fork loses")
        # `put_in` finds functions among all objects, of which the tests' conftest froze those of collecting.
        gc.unfreeze()
        self.items = session.items
        self.modules = {str(importlib.import_module(name).__file__): name for name in self.request["modules"]}
        # What is read now is what was imported, whoever edits the files meanwhile.
        sources = {path: Path(path).read_text() for path in self.modules}
        self._time_tests()
        for path, name in self.modules.items():
            self._try_module(path, name, sources[path])
        return True

    def _say(self, **words: object) -> None:
        print(json.dumps(words), file=self.out, flush=True)

    def _time_tests(self) -> None:
        """How long each test takes and which functions it enters; in a child, since tests start threads."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            with _exit_always(), os.fdopen(write, "wb") as pipe:
                found = [self._time_test(at) for at in range(len(self.items))]
                pickle.dump((found, sorted(sys.modules)), pipe)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            found, imported = pickle.load(pipe)  # noqa: S301, our own child wrote it
        os.waitpid(child, 0)
        left_out = []
        for at, (seconds, entered, good) in enumerate(found):
            if not good:
                left_out.append(self.items[at].nodeid)
                continue
            self.seconds[at] = seconds
            for function in entered:
                self.reached[function].append(at)
        for name in imported:
            # Children import nothing again.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        self._say(tests=len(self.seconds), left_out=left_out)

    def _time_test(self, at: int) -> tuple[float, set[tuple[str, str, int]], bool]:
        entered: set[tuple[str, str, int]] = set()

        def note(frame: types.FrameType, event: str, arg: object) -> None:
            code = frame.f_code
            if code.co_filename in self.modules:
                entered.add((code.co_filename, code.co_qualname, code.co_firstlineno))

        def stop(*_: object) -> None:
            raise _TooSlowError

        start = time.process_time()
        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOWEST_TEST)
        sys.settrace(note)
        try:
            good = _passes(self.items[at], None)
        except _TooSlowError:
            good = False
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return time.process_time() - start, entered, good

    def _try_module(self, path: str, name: str, source: str) -> None:
        every = changes(ast.parse(source))
        excused = self.request["excused"].get(name, [])
        keys = {change.key for change in every}
        self._say(module=name, changes=len(every), missing=[key for key in excused if key not in keys])
        self._control(path, name, source)
        places = list(range(len(every)))
        sample = self.request["sample"]
        if sample and len(places) > sample:
            chosen = random.Random(f"{self.request['seed']} {name}").sample(places, sample)  # noqa: S311
            places = sorted({*chosen, *(p for p in places if every[p].key in excused)})
        for place in places:
            change, budget = every[place], self.request["budget"]
            known = change.key in excused
            # What nothing should find runs all its tests each time, of which the quick ones say enough.
            fate, by = self._fate(path, name, source, place, change, budget / 10 if known else budget)
            self._say(module=name, key=change.key, line=change.line, fate=fate, by=by, excused=known)

    def _control(self, path: str, name: str, source: str) -> None:
        """Leave out tests that fail when the module is put in as it stands, which would find any change."""
        entered = {at for (file, *_), tests in self.reached.items() if file == path for at in tests}
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            with _exit_always(), os.fdopen(write, "wb") as pipe:
                put_in(name, path, ast.parse(source))
                pickle.dump([at for at in sorted(entered) if not _passes(self.items[at], None)], pipe)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            wrong = set(pickle.load(pipe))  # noqa: S301, our own child wrote it
        os.waitpid(child, 0)
        for function, tests in self.reached.items():
            if function[0] == path:
                tests[:] = [at for at in tests if at not in wrong]
        if wrong:
            self._say(control=name, left_out=[self.items[at].nodeid for at in sorted(wrong)])

    def _guards(self, path: str, name: str, change: Change, budget: float) -> list[int]:
        """The tests that enter the function, those that found its other faults first, then the quick ones."""
        if change.function is None:
            entered = {at for (file, *_), tests in self.reached.items() if file == path for at in tests}
            entered = entered or set(self.seconds)
        else:
            entered = set(self.reached[path, *change.function])
        kills = self.kills[name, change.where]
        ranked = sorted(entered, key=lambda at: (-kills[at], self.seconds[at]))
        total, kept = 0.0, []
        for at in ranked:
            total += self.seconds[at]
            if total > budget:
                break
            kept.append(at)
        return kept

    def _fate(
        self, path: str, name: str, source: str, place: int, change: Change, budget: float
    ) -> tuple[str, str]:
        guards = self._guards(path, name, change, budget)
        if not guards:
            return UNREACHED, ""
        allowed = sum(self.seconds[at] for at in guards)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            with _exit_always():
                os.close(read)
                cpu = int(8 + 3 * allowed)
                resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 2))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                try:
                    put_in(name, path, changed(source, place))
                except Exception:
                    os._exit(_FAILED)
                for at in guards:
                    os.write(write, at.to_bytes(4, "little"))
                    if not _passes(self.items[at], None):
                        os._exit(_FAILED)
                os._exit(0)
        os.close(write)
        status = _wait(child, 60 + 20 * allowed)
        told = b""
        while part := os.read(read, 1 << 16):
            told += part
        os.close(read)
        for left in self.scratch.glob("*"):
            shutil.rmtree(left, ignore_errors=True)
        if status is None:
            return HUNG, ""
        if status == 0:
            return SURVIVED, ""
        last = int.from_bytes(told[-4:], "little") if told else None
        if last is not None:
            self.kills[name, change.where][last] += 1
        return KILLED, self.items[last].nodeid if last is not None else "import"


def _threads() -> Iterator[str]:
    """The names of this process's threads."""
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            yield path.read_text()


def put_in(name: str, path: str, tree: ast.Module) -> None:
    """Let a changed module act everywhere: in functions that others hold, in defaults, in constants.

    Args:
        name: of the module, which is imported.
        path: its file.
        tree: the changed module.
    """
    module = sys.modules[name]
    compiled = compile(tree, path, "exec", dont_inherit=True)
    scratch = types.ModuleType(name)
    scratch.__file__ = path
    exec(compiled, scratch.__dict__)  # noqa: S102, it is this project's own module
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(compiled)}
    # By type: isinstance would ask every object for its class, and some objects of torch warn when they are asked.
    held = [thing for thing in gc.get_objects() if type(thing) is types.FunctionType]
    for function in held:
        if function.__module__ != name or function.__globals__ is scratch.__dict__:
            continue
        code = function.__code__
        new = codes.get((code.co_qualname, code.co_firstlineno)) if code.co_filename == path else None
        if new is not None and new.co_freevars == code.co_freevars:
            function.__code__ = new
    _put_defaults(module, scratch, name)
    _put_constants(module, scratch)
    for thing in gc.get_objects():
        if type(thing) is functools._lru_cache_wrapper:
            thing.cache_clear()


def _put_defaults(module: types.ModuleType, scratch: types.ModuleType, name: str) -> None:
    for here, there in _pairs(vars(module), vars(scratch), name):
        here.__defaults__, here.__kwdefaults__ = there.__defaults__, there.__kwdefaults__


def _pairs(old: Any, new: Any, name: str) -> Iterator[tuple[types.FunctionType, types.FunctionType]]:
    """The functions of a module or class and those of its changed copy."""
    for key, value in list(old.items()):
        there = new.get(key)
        value, there = (_inner(thing) for thing in (value, there))
        if getattr(value, "__module__", None) != name or there is None:
            continue
        if isinstance(value, types.FunctionType) and isinstance(there, types.FunctionType):
            yield value, there
        elif isinstance(value, type) and isinstance(there, type):
            yield from _pairs(vars(value), vars(there), name)


def _inner(thing: Any) -> Any:
    if isinstance(thing, classmethod | staticmethod):
        return thing.__func__
    if isinstance(thing, property):
        return thing.fget
    return getattr(thing, "__wrapped__", thing)


_PLAIN = (int, float, str, tuple, list, dict, set, frozenset, type(None))


def _put_constants(module: types.ModuleType, scratch: types.ModuleType) -> None:
    """Constants of the module and of its classes, in every module that has imported them by name."""
    for key, value in list(vars(scratch).items()):
        old = vars(module).get(key)
        if key.startswith("__") or key not in vars(module):
            continue
        if isinstance(value, type) and isinstance(old, type) and old.__module__ == module.__name__:
            for field, default in vars(value).items():
                if isinstance(default, _PLAIN) and not field.startswith("__"):
                    setattr(old, field, default)
        elif not isinstance(value, type | types.FunctionType | types.ModuleType) and not callable(value):
            if isinstance(old, _PLAIN) and old == value and type(old) is type(value):
                continue
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(key) is old:
                    setattr(other, key, value)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


@contextlib.contextmanager
def _exit_always() -> Iterator[None]:
    """Let no child return into the parent's code."""
    try:
        yield
    except BaseException:
        # The parent says what it printed where it misses the answer.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(_FAILED)
    os._exit(0)


def _wait(child: int, seconds: float) -> int | None:
    """The exit status of a child; None where it did not end, as a stuck lock would not, and was killed."""
    handle = os.pidfd_open(child)
    try:
        ended = bool(select.select([handle], [], [], seconds)[0])
        if not ended:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        return status if ended else None
    finally:
        os.close(handle)


def main() -> int:
    """Read a request as JSON from standard input, write a line of JSON for each change."""
    request = json.load(sys.stdin)
    os.environ["ROADAWARE_TESTS_FAST"] = "yes"
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "base"
        return int(
            pytest.main(
                [*request["tests"], "-m", "not slow", "-s", "--basetemp", str(scratch), "-n", "0"],
                plugins=[Worker(request, out, scratch)],
            )
        )


if __name__ == "__main__":
    sys.exit(main())
