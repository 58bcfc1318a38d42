"""Studio: many scenes into one folder, resumable, each whole or not there, by several processes."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from roadaware.config import to_dict
from roadaware.errors import DiskError, UsageError
from roadaware.scenes.disk import atomic_write, disk_error, names_in, sync_folder
from roadaware.scenes.holding import held
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.crew import side_by_side
from roadaware.scenes.simulator.film import Kept, shoot
from roadaware.scenes.simulator.make import make_episode, scene_name

FORMAT, FORMAT_VERSION, MAIN, SCENES = "roadaware-simulation", 1, "simulation.json", "scenes"
_TOLD = {
    "version": "another version of the format",
    "config": "another config",
    "kept": "other files",
    "seed": "another seed",
}
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
        UsageError: if the folder holds other things, or scenes of another order, another process is at work
            in it, or one of ours died.
        DiskError: if the disk refuses; finished scenes stay.
    """
    with held(folder):
        return _produce(order, folder, processes, progress)


def _produce(order: Order, folder: Path, processes: int, progress: Callable[[int, int], None] | None) -> int:
    _claim(order, folder)
    room = folder / SCENES
    _sweep(room)
    due = [n for n, name in enumerate(order.names) if not (room / name).is_dir()]
    done = order.scenes - len(due)
    if progress is not None:
        progress(done, order.scenes)
    try:
        with closing(_made(order, folder, due, processes)) as made:
            for _ in made:
                done += 1
                if progress is not None:
                    progress(done, order.scenes)
    except DiskError as error:
        stay = f"{done:,} of {order.scenes:,} scenes are finished and stay; the same command makes the rest"
        raise DiskError(f"{error}\n  {stay}.") from error
    finally:
        _sweep(room)
    return len(due)


def _made(order: Order, folder: Path, due: list[int], processes: int) -> Generator[int]:
    """The numbers of scenes as they get finished."""
    if processes > 1 and len(due) > 1:
        yield from side_by_side(partial(_make, order, folder), due, processes)
        return
    for number in due:
        _make(order, folder, number)
        yield number


def _make(order: Order, folder: Path, number: int) -> None:
    name = scene_name(order.config, number)
    target = folder / SCENES / name
    room = target.with_name(f".{name}.unfinished-{os.getpid()}")
    try:
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        shoot(make_episode(order.config, order.seed, number), room, kept=order.kept)
        _name(room, target)
        sync_folder(target.parent)
    except OSError as error:
        shutil.rmtree(room, ignore_errors=True)
        raise disk_error(target, 1, error) from error
    except BaseException:
        shutil.rmtree(room, ignore_errors=True)
        raise


def _name(room: Path, target: Path) -> None:
    """Give a finished scene its name; where another run of the same order was faster, its scene stays.

    Raises:
        OSError: whatever the system says.
    """
    try:
        room.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(room, ignore_errors=True)


def _claim(order: Order, folder: Path) -> None:
    """Write what is made into the folder, or see that it says the same already.

    Raises:
        UsageError: if it holds something else.
    """
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "config": _settings(order.config),
        "kept": _told(order.kept),
        "seed": order.seed,
        "scenes": order.scenes,
    }
    try:
        found = names_in(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    if found:
        _refuse_others(folder, head, found)
    atomic_write(folder / MAIN, (json.dumps(head, indent=2, sort_keys=True) + "\n").encode())
    try:
        (folder / SCENES).mkdir(exist_ok=True)
    except OSError as error:
        raise disk_error(folder, 0, error) from error


def _settings(config: SceneConfig) -> dict[str, object]:
    """A config as folders say it; those that are older than looks say nothing of them."""
    told = to_dict(config)
    return told if config.looks else {key: value for key, value in told.items() if key != "looks"}


def _told(kept: Kept) -> dict[str, object]:
    """What is kept, as folders say it; those that are older than a field lack it and have its default."""
    told = to_dict(kept)
    return told if not told["pictures"] else {key: value for key, value in told.items() if key != "pictures"}


def _refuse_others(folder: Path, head: dict[str, object], found: list[str]) -> None:
    known: object = None
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads((folder / MAIN).read_bytes()[: 1 << 20])
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        names = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise UsageError(f"{folder} holds other things ({names}); name a new or empty folder with --out")
    for key, what in _TOLD.items():
        if known.get(key) != head[key]:
            raise UsageError(
                f"{folder} holds scenes of {what}{_differing(known.get(key), head[key])}; the same command "
                "goes on with them, another one needs another folder"
            )


def _differing(there: object, asked: object, path: str = "") -> str:
    """The first setting in which two differ, as it is there and as it is asked for."""
    if isinstance(there, dict) and isinstance(asked, dict):
        for key in sorted({*there, *asked}):
            if there.get(key) != asked.get(key):
                return _differing(there.get(key), asked.get(key), f"{path}.{key}".lstrip("."))
    told = f"{path} is " if path else ""
    return f" ({told}{str(there)[:60]} there, {str(asked)[:60]} here)"


def _sweep(folder: Path) -> None:
    """Remove what processes that are over, or this one between two scenes, left unfinished."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            match = _UNFINISHED.fullmatch(path.name)
            if match and not _at_work(int(match["process"])):
                shutil.rmtree(path, ignore_errors=True)


def _at_work(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
