"""Long work as parts: a function called with each of many, by processes of this machine or by a Ray cluster."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import multiprocessing
import os
import re
import signal
import threading
import time
import traceback
import weakref
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_connections
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from roadaware.addresses import mask_secrets
from roadaware.errors import (
    NOTE,
    DiskError,
    FindingsError,
    InputError,
    RoadawareError,
    UsageError,
    raise_interrupt,
)
from roadaware.io.files import collect_written, flush_folder, write_atomically
from roadaware.io.folders import encode_json
from roadaware.io.interrupts import postpone_interrupts
from roadaware.io.processes import stop_with_parent
from roadaware.io.storage import send_written

Item = TypeVar("Item")
Value = TypeVar("Value")

# What is asked for.

_ENGINE = re.compile(r"local|ray(?:://(?:auto|local|[A-Za-z0-9_.\[\]:-]+:[0-9]{1,5}))?")
_LOG = logging.getLogger("roadaware")
_EXTRA = "--on ray needs Ray, which is an extra: pip install 'roadaware[scale]'"
_AHEAD = 16
"""Where values are wanted in order, parts so many times the workers ahead of the oldest one are not begun: what
waits for it is held in memory."""
_LONGEST_WAIT_S = 1.0


@dataclass(frozen=True)
class Workers:
    """Where parts are worked on, and by how many at a time.

    Args:
        on: `local` for processes of this machine; `ray` for the cluster that RAY_ADDRESS names or that runs on this
            machine, else one that is started here and ends with this process; `ray://auto` for one that runs already,
            `ray://local` for one of its own, `ray://HOST:PORT` for one elsewhere (Ray Client).
        processes: how many at a time; 0 for as many as there are processors, of this machine or of the cluster.
        limit_s: seconds that a part may take, then its worker is ended and the part has failed; None for no limit.
        tries: how often a part is begun whose worker dies.

    Raises:
        UsageError: if there is no such place to work, Ray is not installed, or a number is out of range.
    """

    on: str = "local"
    processes: int = 1
    limit_s: float | None = None
    tries: int = 3

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if _ENGINE.fullmatch(self.on) is None:
            shown = mask_secrets(self.on)
            raise UsageError(
                f"--on is local, ray, ray://auto, ray://local or ray://HOST:PORT, not {shown[:80]!r}"
            )
        if self.on != "local" and importlib.util.find_spec("ray") is None:
            raise UsageError(_EXTRA)
        if self.processes < 0 or self.tries < 1:
            raise UsageError("processes are 0 or more, tries 1 or more")
        if self.limit_s is not None and not 0 < self.limit_s < float("inf"):
            raise UsageError(f"the time limit of a part is a number of seconds above 0, not {self.limit_s:g}")

    def is_inline(self, count: int) -> bool:
        """Whether so many parts are done by this process itself, one after the other."""
        if self.on != "local" or self.limit_s is not None:
            return False
        return min(count, _count_processes(self.processes)) < 2


HERE = Workers()
"""This process alone."""


@dataclass(frozen=True)
class PartResult(Generic[Value]):
    """What came of one part.

    Args:
        place: of the part among all.
        value: what the function returned; None where it failed.
        failure: why it failed, in words; None where it did not.
        unforeseen: whether that is a fault of roadaware.
        cpu_s: seconds of processors that it took, of all threads.
    """

    place: int
    value: Value | None = None
    failure: str | None = None
    unforeseen: bool = False
    cpu_s: float = 0.0

    def require(self, name: str) -> Value:
        """What the function returned, where nothing can be made of the other parts alone.

        Args:
            name: of the part, for the message.

        Raises:
            InputError: if the part failed.
            RuntimeError: if it was a fault of roadaware that it met.
        """
        if self.failure is not None:
            raise (RuntimeError if self.unforeseen else InputError)(f"{name}: {self.failure}")
        return cast("Value", self.value)


def map_parts(
    work: Callable[[Item], Value], parts: Sequence[Item], workers: Workers, *, in_order: bool = False
) -> Generator[PartResult[Value]]:
    """Call a function with each of many parts, several at a time; yields what came of each as it is done.

    A part that fails leaves the others. One whose worker dies is begun again on another. Whoever stops taking results
    ends the workers where they are. One part at a time, on this machine and without a time limit, is done in this process.

    Args:
        work: importable by other processes, such as a function of a module, or a `partial` of one.
        parts: can be pickled, small; begun in this order.
        workers: where, and how many at a time.
        in_order: yield in the order of the parts instead of that in which they are done.

    Raises:
        UsageError, DiskError: if a part raised it, for then all would; or workers cannot be started.
    """
    pool = WorkerPool(workers)
    with closing(pool):
        yield from pool.map(work, parts, in_order=in_order)


def run_parts(
    work: Callable[[Item], object],
    parts: Sequence[Item],
    workers: Workers,
    *,
    what: str,
    name: Callable[[Item], str],
    done: Callable[[Item, Any], None],
    folder: Path | None = None,
    before: int = 0,
) -> float:
    """Call a function with each of many parts, each of which keeps what it makes; seconds of processors that it took.

    Args:
        work, parts, workers: as of `map_parts`.
        what: the parts are, in messages, such as `scenes`.
        name: how a part is called in messages.
        done: called with each part that was done, as it is, and what the function returned.
        folder: where a `Ledger` says how far they are.
        before: parts that were done by earlier runs.

    Raises:
        FindingsError: if parts failed, once the others are done; names them.
        RuntimeError: if it was a fault of roadaware that one of them met.
        UsageError, DiskError: as `map_parts`.
    """
    failed: dict[str, str] = {}
    seconds, unforeseen = 0.0, False
    # Closed whatever happens, which ends the workers at once instead of when garbage is collected.
    ledger = Ledger(folder, what, before + len(parts), before)
    with ledger, closing(map_parts(work, parts, workers)) as results:
        for each in results:
            seconds += each.cpu_s
            ledger.note(name(parts[each.place]), each.failure)
            if each.failure is None:
                done(parts[each.place], each.value)
            else:
                failed[name(parts[each.place])] = each.failure
                unforeseen |= each.unforeseen
                _LOG.warning("%s failed: %s", name(parts[each.place]), " ".join(each.failure.split()))
    if failed:
        few = [f"\n  {each}: {' '.join(why.split())[:300]}" for each, why in list(failed.items())[:10]]
        more = f"\n  and {len(failed) - 10:,} more" if len(failed) > 10 else ""
        message = (
            f"{len(failed):,} of {len(parts):,} {what} failed; the others are done and stay, and the same command "
            f"tries these again{''.join(few)}{more}"
        )
        raise RuntimeError(message) if unforeseen else FindingsError(message)
    return seconds


class OpenedPerWorker(Generic[Item, Value]):
    """A function of a part that needs what takes a while to open, such as a network: each worker opens its own, once.

    Args:
        act: called with what was opened, and a part; can be pickled.
        open_: opens it; can be pickled.
        opened: what this process has opened already.
    """

    def __init__(
        self, act: Callable[[Any, Item], Value], open_: Callable[[], Any], opened: Any = None
    ) -> None:
        self._act, self._open, self._opened = act, open_, opened

    def __getstate__(self) -> dict[str, Any]:
        """Without what was opened here."""
        return {**vars(self), "_opened": None}

    def __call__(self, part: Item) -> Value:
        """What the function returns of a part."""
        if self._opened is None:
            self._opened = self._open()
        return self._act(self._opened, part)


class Ledger:
    """How far the parts of a run are: a file in its folder until all are done, which `roadaware status` reads.

    Whatever ends the work leaves it, with what failed and why; a run of which every part is done has none, so that its
    bytes are those of any other.

    Args:
        folder: of the run; None to keep nothing.
        what: the parts are, such as `scenes`.
        total: of all parts.
        before: parts that were done by earlier runs.
    """

    NAME, FORMAT = "progress.json", "roadaware-progress"
    _EVERY_S, _MOST_NAMED = 1.0, 1000

    def __init__(self, folder: Path | None, what: str, total: int, before: int = 0) -> None:
        self._path = None if folder is None else folder / self.NAME
        self._written_s = self._cost_s = 0.0
        self._said: dict[str, Any] = {
            "format": self.FORMAT,
            "what": what,
            "total": total,
            "before": before,
            "done": 0,
            "failed": 0,
            "reasons": {},
            "began_s": time.time(),
            "process": os.getpid(),
            "host": os.uname().nodename,
        }

    def __enter__(self) -> Self:
        """Say that nothing is done yet."""
        self._write()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file where every part is done, else write how far they are."""
        said = self._said
        if self._path is not None and said["before"] + said["done"] >= said["total"]:
            self._path.unlink(missing_ok=True)
            flush_folder(self._path.parent)
        else:
            with suppress(DiskError):  # what ended the work is more important
                self._write()

    def note(self, name: str, failure: str | None = None) -> None:
        """Take note of a part that is done, or has failed; the file follows a little later.

        Raises:
            DiskError: if the disk refuses.
        """
        self._said["done" if failure is None else "failed"] += 1
        if failure is not None and len(self._said["reasons"]) < self._MOST_NAMED:
            self._said["reasons"][name] = " ".join(failure.split())[:500]
        if time.monotonic() - self._written_s > max(self._EVERY_S, 20 * self._cost_s):
            self._write()

    def _write(self) -> None:
        began_s = time.monotonic()
        if self._path is not None:
            write_atomically(self._path, encode_json({**self._said, "updated_s": time.time()}).encode())
        self._written_s = time.monotonic()
        self._cost_s = self._written_s - began_s


# What a worker does.


@dataclass(frozen=True)
class _Reply:
    """What a worker sends back of a part; errors as text, since not every exception survives the way."""

    value: Any = None
    failure: str | None = None
    unforeseen: bool = False
    stops_all: type[RoadawareError] | None = None
    trace: str = ""
    cpu_s: float = 0.0


def _work_on(work: Callable[[Any], Any], part: Any) -> _Reply:
    """Call the function; whatever goes wrong is told."""
    began_s = time.process_time()
    try:
        value = work(part)
    except Exception as error:
        raise_interrupt(error)
        return _describe_failure(error, time.process_time() - began_s)
    return _Reply(value, cpu_s=time.process_time() - began_s)


def _work_and_store(work: Callable[[Any], Any], part: Any) -> _Reply:
    """As `_work_on`, and puts what the part has written into the store, where its folder stands for one."""
    with collect_written() as written:
        reply = _work_on(work, part)
    began_s = time.process_time()
    send_written(written)
    return replace(reply, cpu_s=reply.cpu_s + time.process_time() - began_s)


def _describe_failure(error: Exception, cpu_s: float = 0.0) -> _Reply:
    # A full disk or a wrong request would meet every other part as well.
    stops_all = next((kind for kind in (DiskError, UsageError) if isinstance(error, kind)), None)
    why = str(error)
    unforeseen = not isinstance(error, RoadawareError)
    if unforeseen:
        why = f"a fault of roadaware, {type(error).__name__}: {why.splitlines()[0] if why else ''}"
    return _Reply(None, why, unforeseen, stops_all, "".join(traceback.format_exception(error)), cpu_s)


@dataclass(frozen=True)
class _Surroundings:
    """What a worker needs to understand paths and settings as the process that started the work does."""

    folder: str
    settings: Mapping[str, str]

    @classmethod
    def here(cls) -> Self:
        """Those of this process."""
        ours = {name: value for name, value in os.environ.items() if name.startswith("ROADAWARE_")}
        return cls(str(Path.cwd()), ours)

    def enter(self) -> None:
        """Make them those of this process.

        Raises:
            UsageError: if the folder is not there, as on a node without the shared file system.
        """
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise UsageError(
                f"a worker on {os.uname().nodename} cannot enter {self.folder} ({error.strerror}): every node of the "
                "cluster needs the same folders"
            ) from error
        os.environ.update(self.settings)


# The pool: who does which part, whatever the workers are.


class _Worker(Protocol):
    """Someone who takes one part after the other; made by an engine, which says what came of it."""

    def send(self, work: Any, part: Any) -> None:
        """Begin a part; `work` is None where it is that of the part before."""

    def kill(self) -> None:
        """End it where it is."""


class _Engine(Protocol):
    """Starts workers, and hears of them."""

    size: int

    def share(self, work: Any) -> Any:
        """The function in the form in which it is sent."""

    def start(self) -> _Worker:
        """A new worker."""

    def wait(self, timeout_s: float) -> Sequence[tuple[_Worker, _Reply | str | None]]:
        """Who was heard of: None of one that is ready for its first part, a reply, or how one died."""


@dataclass(eq=False)
class _Task:
    """A worker as the pool knows it: for which call of `map` it works, on which part, and until when it may."""

    worker: _Worker
    ready: bool = False
    call: int = 0
    place: int | None = None
    ends_s: float = float("inf")


class _Queue:
    """Places of parts that are to be begun, in order; those whose workers died come again.

    Args:
        count: of the parts.
        ahead: so far ahead of the oldest one that is not settled none is begun; None for no limit.
    """

    def __init__(self, count: int, ahead: int | None) -> None:
        self.left = count
        self.begun: Counter[int] = Counter()
        self._count, self._ahead, self._next, self._oldest = count, ahead, 0, 0
        self._again, self._settled = deque[int](), set[int]()

    def take(self) -> int | None:
        """The next place; None where none is to be begun now."""
        if self._again:
            place = self._again.popleft()
        elif self._next < self._count and (self._ahead is None or self._next < self._oldest + self._ahead):
            place = self._next
            self._next += 1
        else:
            return None
        self.begun[place] += 1
        return place

    def put_back(self, place: int) -> None:
        """Let a part be begun again."""
        self._again.append(place)

    def settle(self, place: int) -> None:
        """Take note that a part is done or has failed."""
        self.left -= 1
        del self.begun[place]
        self._settled.add(place)
        while self._oldest in self._settled:
            self._settled.remove(self._oldest)
            self._oldest += 1


class WorkerPool:
    """Workers that stay between several calls of `map`; one call at a time, others wait.

    Args:
        workers: where, and how many at a time.
    """

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._engine: _Engine | None = None
        self._crew: list[_Task] = []
        self._calls = 0
        self._turn = threading.Lock()
        # For whoever forgets to close: multiprocessing would wait at exit for workers that wait for work.
        self._end = weakref.finalize(self, _kill_all, self._crew)

    def close(self) -> None:
        """End the workers where they are; the pool is of no use afterwards."""
        self._end()

    def map(
        self, work: Callable[[Item], Value], parts: Sequence[Item], *, in_order: bool = False
    ) -> Generator[PartResult[Value]]:
        """As `map_parts`."""
        with self._turn:
            if not self._crew and self.workers.is_inline(len(parts)):
                for place, part in enumerate(parts):
                    yield _build_result(place, _work_on(work, part))
                return
            try:
                found = self._spread(work, parts, in_order=in_order)
                yield from _sort_results(found) if in_order else found
            except BaseException:
                # Who is in the midst of a part would answer to the next call.
                _kill_all(self._crew)
                raise

    def _spread(
        self, work: Callable[[Item], Value], parts: Sequence[Item], *, in_order: bool
    ) -> Iterator[PartResult[Value]]:
        engine = self._engine = self._engine or _open_engine(self.workers)
        self._calls += 1
        shared, stillborn = engine.share(work), 0
        queue = _Queue(len(parts), _AHEAD * engine.size if in_order else None)
        while queue.left:
            # Those that are not ready yet count: a cluster may take minutes to find room for them.
            while len(self._crew) < min(engine.size, queue.left):
                # One that is stopped between its start and its first data would say so on standard error.
                with postpone_interrupts():
                    self._crew.append(_Task(engine.start()))
            for task in self._crew:
                if task.ready and task.place is None and (place := queue.take()) is not None:
                    self._begin(task, shared, place, parts[place])
            said = self._hear(engine)
            # Who replies while results are taken below is heard next time, and was not late for that.
            heard_s = time.monotonic()
            for task, heard in said:
                place = task.place
                if heard is None:
                    task.ready, stillborn = True, 0
                elif isinstance(heard, str):
                    self._crew.remove(task)
                    stillborn += not task.ready
                    # Here, what ends one at its start ends every one; of a cluster it may be one node.
                    if stillborn >= (1 if self.workers.on == "local" else self.workers.tries):
                        raise UsageError(f"workers do not start: {heard}")
                    if place is not None and queue.begun[place] < self.workers.tries:
                        _LOG.log(NOTE, "a worker died; its part is begun again: %s", heard)
                        queue.put_back(place)
                    elif place is not None:
                        failure = f"its worker died {queue.begun[place]} times: {heard}"
                        queue.settle(place)
                        yield PartResult(place, failure=failure)
                elif place is None:  # it cannot work where it is
                    raise UsageError(f"workers do not start: {heard.failure}")
                else:
                    task.place, task.ends_s = None, float("inf")
                    queue.settle(place)
                    result = _build_result(place, heard)
                    # Before the result is taken: what is done with it may take as long as a part.
                    if (following := queue.take()) is not None:
                        self._begin(task, shared, following, parts[following])
                    yield result
            for task in [each for each in self._crew if each.ends_s <= heard_s]:
                # What hangs once would hang again: such a part is left to the next run.
                self._crew.remove(task)
                task.worker.kill()
                if task.place is not None:
                    queue.settle(task.place)
                    yield PartResult(task.place, failure=f"it took longer than {self.workers.limit_s:g} s")

    def _begin(self, task: _Task, shared: Any, place: int, part: Any) -> None:
        task.place = place
        if self.workers.limit_s is not None:
            task.ends_s = time.monotonic() + self.workers.limit_s
        # The function may be large: a worker keeps it from part to part.
        task.worker.send(None if task.call == self._calls else shared, part)
        task.call = self._calls

    def _hear(self, engine: _Engine) -> list[tuple[_Task, _Reply | str | None]]:
        ends_s = min((task.ends_s for task in self._crew), default=float("inf"))
        timeout_s = min(_LONGEST_WAIT_S, max(0.0, ends_s - time.monotonic()))
        tasks = {id(task.worker): task for task in self._crew}
        return [(tasks[id(worker)], heard) for worker, heard in engine.wait(timeout_s) if id(worker) in tasks]


def _kill_all(crew: list[_Task]) -> None:
    while crew:
        crew.pop().worker.kill()


def _build_result(place: int, reply: _Reply) -> PartResult[Any]:
    """What came of a part.

    Raises:
        UsageError, DiskError: if the part met what all parts would.
    """
    if reply.trace:
        _LOG.debug("part %d\n%s", place, reply.trace)
    if reply.stops_all is not None:
        raise reply.stops_all(reply.failure)
    return PartResult(place, reply.value, reply.failure, reply.unforeseen, reply.cpu_s)


def _sort_results(found: Iterator[PartResult[Value]]) -> Iterator[PartResult[Value]]:
    """The same in the order of the parts."""
    held: dict[int, PartResult[Value]] = {}
    due = 0
    for each in found:
        held[each.place] = each
        while due in held:
            yield held.pop(due)
            due += 1


def _count_processes(processes: int) -> int:
    return processes or len(os.sched_getaffinity(0))


def _open_engine(workers: Workers) -> _Engine:
    return _Processes(workers) if workers.on == "local" else _RayActors(workers)


# Workers that are processes of this machine.

_DIED = (
    "it was ended from outside or crashed, as where memory is short: free some, or ask for fewer processes (a script "
    "that uses several needs `if __name__ == '__main__':`)"
)


class _Process:
    """A process, with the line to it."""

    def __init__(self, lines: dict[Connection, _Process]) -> None:
        # A fork would copy locks that threads of this process hold, and wait for them for ever.
        context = multiprocessing.get_context("spawn")
        self._line, there = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(there,))
        self._process.start()
        # With this copy open, the death of the process would never show as the end of the line.
        there.close()
        self._lines = lines
        self._lines[self._line] = self

    def send(self, work: Any, part: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it died, as will be heard
            self._line.send((work, part))

    def hear(self) -> _Reply | str | None:
        """What it says; how it died where it did."""
        try:
            reply: _Reply | None = self._line.recv()
        except (EOFError, ConnectionResetError):
            self.kill()
            return f"{_DIED}; exit code {self._process.exitcode}"
        except Exception as error:  # of a value that cannot be opened here
            raise_interrupt(error)
            return _describe_failure(error)
        return reply

    def kill(self) -> None:
        self._lines.pop(self._line, None)
        self._process.kill()
        self._process.join()
        self._line.close()


class _Processes:
    """The engine of processes."""

    def __init__(self, workers: Workers) -> None:
        self.size = _count_processes(workers.processes)
        self._lines: dict[Connection, _Process] = {}

    def share(self, work: Any) -> Any:
        return work

    def start(self) -> _Process:
        return _Process(self._lines)

    def wait(self, timeout_s: float) -> Sequence[tuple[_Process, _Reply | str | None]]:
        heard = wait_connections(list(self._lines), timeout_s)
        speaking = [worker for line, worker in self._lines.items() if line in heard]
        return [(worker, worker.hear()) for worker in speaking]


def _serve(line: Connection) -> None:
    """In a process: says that it is ready, then does part after part until the line is cut."""
    stop_with_parent()
    with suppress(BrokenPipeError):  # nobody listens any more: who began it was killed
        line.send(None)
        work: Any = None
        while True:
            try:
                new, part = line.recv()
                work = work if new is None else new
                reply = _work_and_store(work, part)
            except EOFError:
                return
            except Exception as error:  # of a part or a function that cannot be opened here
                raise_interrupt(error)
                reply = _describe_failure(error)
            try:
                line.send(reply)
            except Exception as error:  # of a value that cannot be sent
                raise_interrupt(error)
                line.send(_describe_failure(error))


# Workers that are actors of a Ray cluster.

_LOST = "it crashed, was ended, as where memory is short, or its node is gone"


@contextmanager
def _unwrap_signals() -> Iterator[None]:
    """Within, an interruption that Ray's compiled code turned into a SystemError is raised as itself."""
    try:
        yield
    except SystemError as error:
        raise_interrupt(error)
        raise


class _RayActors:
    """The engine of a Ray cluster: each actor has one processor and does one part at a time.

    Actors instead of tasks: the time of a part counts from its beginning and not while it waits for room, workers keep
    what they have opened, and a cluster that grows sees how many are wanted.
    """

    def __init__(self, workers: Workers) -> None:
        self._ray = _connect_ray(workers)
        self._kind = self._ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(_Bench)
        self._here = _Surroundings.here()
        self.size = workers.processes or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._pending: dict[Any, _Actor] = {}

    @_unwrap_signals()
    def share(self, work: Any) -> Any:
        # Once into the store, from which every node takes it once.
        return self._ray.put(work)

    @_unwrap_signals()
    def start(self) -> _Actor:
        worker = _Actor(self._ray, self._kind.remote(), self._pending)
        worker.enter(self._here)
        return worker

    @_unwrap_signals()
    def wait(self, timeout_s: float) -> Sequence[tuple[_Actor, _Reply | str | None]]:
        pending = list(self._pending)
        if not pending:
            time.sleep(timeout_s)
            return []
        ready, _ = self._ray.wait(pending, num_returns=1, timeout=timeout_s)
        if ready:
            ready, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        return [(self._pending.pop(ref), self._fetch(ref)) for ref in ready]

    def _fetch(self, ref: Any) -> _Reply | str | None:
        try:
            reply: _Reply | None = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:  # of what cannot be opened there, or sent back
            return _describe_failure(error)
        except self._ray.exceptions.RayError as error:
            _LOG.debug("%s", error)
            return f"{_LOST} ({type(error).__name__})"
        return reply


class _Actor:
    """An actor of Ray, seen from here."""

    def __init__(self, ray: Any, actor: Any, pending: dict[Any, _Actor]) -> None:
        self._ray, self._actor, self._pending = ray, actor, pending

    def enter(self, surroundings: _Surroundings) -> None:
        self._pending[self._actor.enter.remote(surroundings)] = self

    def send(self, work: Any, part: Any) -> None:
        self._pending[self._actor.work_on.remote(work, part)] = self

    def kill(self) -> None:
        for ref in [ref for ref, worker in self._pending.items() if worker is self]:
            del self._pending[ref]
        # Of a cluster that is gone nothing is left to be ended.
        with suppress(Exception):
            self._ray.kill(self._actor)


class _Bench:
    """What an actor runs."""

    def __init__(self) -> None:
        self._work: Any = None

    def enter(self, surroundings: _Surroundings) -> _Reply | None:
        """Be ready: None, or why it cannot be."""
        try:
            surroundings.enter()
        except UsageError as error:
            return _describe_failure(error)
        return None

    def work_on(self, work: Any, part: Any) -> _Reply:
        """Do a part."""
        self._work = self._work if work is None else work
        return _work_and_store(self._work, part)


def _connect_ray(workers: Workers) -> Any:
    """Ray, joined to a cluster.

    Raises:
        UsageError: if none answers.
    """
    # Ray reports its use over the network unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = importlib.import_module("ray")
    if ray.is_initialized():
        return ray
    name = workers.on.removeprefix("ray").removeprefix("://")
    address = None if not name else name if name in ("auto", "local") else workers.on
    how: dict[str, Any] = {} if address and "://" in address else {"logging_level": logging.ERROR}
    if address in (None, "local"):
        # Of a cluster that ends with this process nobody would look at the pages, which take a dozen processes.
        how["include_dashboard"] = False
    # Ray gives a cluster that it starts 30 s, which is too little on a machine that has much else to do.
    for left in range(2, -1, -1) if address in (None, "local") else (0,):
        try:
            with _keep_signals():
                ray.init(address, log_to_driver=False, **how)
            break
        except Exception as error:
            raise_interrupt(error)
            ray.shutdown()
            if left and "timed out" in str(error):
                continue
            why = " ".join(mask_secrets(str(error)).split())[:300]
            raise UsageError(f"no Ray cluster can be used at {mask_secrets(workers.on)}: {why}") from error
    # Ray prints how workers died to standard output, which is for results; we hear of it and say so ourselves.
    worker: Any = importlib.import_module("ray._private.worker")
    worker.print_to_stdstream = _drop
    return ray


def _drop(*_: Any, **__: Any) -> None:
    """Nothing is printed."""


@contextmanager
def _keep_signals() -> Iterator[None]:
    """Within, whatever is done with signals is undone in the end: Ray puts a handler of its own in the place of ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
