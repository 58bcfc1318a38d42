"""Studio: many scenes into one folder, resumable, each whole or not there, by several processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from roadaware.config import to_dict
from roadaware.errors import RoadawareError, UsageError
from roadaware.scenes.disk import atomic_write, disk_error, sync_folder
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.film import Kept, shoot
from roadaware.scenes.simulator.make import make_episode, scene_name

FORMAT, FORMAT_VERSION, MAIN, SCENES = "roadaware-simulation", 1, "simulation.json", "scenes"
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.unfinished-(?P<process>\d{1,10})")


@dataclass(frozen=True)
class Order:
    """What is to be made.

    Args:
        config: of all scenes.
        seed: of the set, at least 0.
        scenes: how many, at least 1.
        kept: what is written of each besides its tables.
    """

    config: SceneConfig
    seed: int = 0
    scenes: int = 1
    kept: Kept = field(default_factory=Kept)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"the seed is at least 0, not {self.seed}")
        if not 1 <= self.scenes <= 100_000:
            raise UsageError(f"1 to 100,000 scenes can be made, not {self.scenes:,}")

    @property
    def names(self) -> list[str]:
        """Of the scenes."""
        return [scene_name(self.config, number) for number in range(self.scenes)]


def produce(
    order: Order,
    folder: Path,
    *,
    processes: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Make the scenes that a folder does not have yet; those that it has are left as they are.

    A scene is made in a folder of its own that gets its name when it is finished. What an earlier run left
    unfinished is removed, if that run is over.

    Args:
        order: what is to be made.
        folder: where to: new, empty, or that of the same order; more scenes may be asked for.
        processes: how many scenes at a time.
        progress: told how many scenes are done, of how many.

    Returns:
        The number of scenes made now.

    Raises:
        UsageError: if the folder holds other things, or scenes of another order.
        DiskError: if the disk refuses; finished scenes stay.
    """
    _claim(order, folder)
    _sweep(folder / SCENES)
    due = [n for n, name in enumerate(order.names) if not (folder / SCENES / name).is_dir()]
    done = order.scenes - len(due)
    if progress is not None:
        progress(done, order.scenes)
    for _ in _made(order, folder, due, processes):
        done += 1
        if progress is not None:
            progress(done, order.scenes)
    return len(due)


def _made(order: Order, folder: Path, due: list[int], processes: int) -> Iterator[int]:
    """The numbers of scenes as they get finished."""
    if processes <= 1 or len(due) <= 1:
        for number in due:
            _make(order, folder, number)
            yield number
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(due)), mp_context=context) as pool:
        waiting: dict[Future[None], int] = {pool.submit(_make, order, folder, n): n for n in due}
        try:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    future.result()
                    yield waiting.pop(future)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _make(order: Order, folder: Path, number: int) -> None:
    name = scene_name(order.config, number)
    target = folder / SCENES / name
    room = target.with_name(f".{name}.unfinished-{os.getpid()}")
    try:
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        shoot(make_episode(order.config, order.seed, number), room, kept=order.kept)
        room.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        shutil.rmtree(room, ignore_errors=True)
        raise disk_error(target, 0, error) from error
    except RoadawareError:
        shutil.rmtree(room, ignore_errors=True)
        raise


def _claim(order: Order, folder: Path) -> None:
    """Write what is made into the folder, or see that it says the same already.

    Raises:
        UsageError: if it holds something else.
    """
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "config": to_dict(order.config),
        "seed": order.seed,
        "scenes": order.scenes,
    }
    try:
        found = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    if found:
        _refuse_others(folder, head, found)
    try:
        (folder / SCENES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    atomic_write(folder / MAIN, (json.dumps(head, indent=2, sort_keys=True) + "\n").encode())


def _refuse_others(folder: Path, head: dict[str, object], found: list[str]) -> None:
    known: object = None
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads((folder / MAIN).read_bytes()[: 1 << 20])
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        held = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise UsageError(f"{folder} holds other things ({held}); name a new or empty folder with --out")
    for key in ("version", "config", "seed"):
        if known.get(key) != head[key]:
            raise UsageError(
                f"{folder} holds scenes of another {key}; the same command goes on with them, "
                "another one needs another folder"
            )


def _sweep(folder: Path) -> None:
    """Remove what processes that are over left unfinished."""
    for path in folder.iterdir():
        match = _UNFINISHED.fullmatch(path.name)
        if match and not _alive(int(match["process"])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
