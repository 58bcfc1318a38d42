"""What options write, said beside them: every output is checked before a command does anything."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from roadaware.cli.folders import check_result, listed, marked, vacant
from roadaware.errors import DiskError, UsageError

Rule = Callable[[Path, bool], None]
"""Raises a UsageError where something in a folder may not be replaced, or only by `--overwrite`."""


@dataclass(frozen=True)
class Output:
    """Marks an option as a path that its command writes.

    Args:
        folder: whether it is a folder; else a file, or a device or pipe.
        rule: of a folder that holds something already; None where a command only adds to it.
        replaced: whether a file that stands there is replaced without `--overwrite`.
        stream: whether a device, a pipe or an open descriptor does as well as a file.
    """

    folder: bool = False
    rule: Rule | None = None
    replaced: bool = True
    stream: bool = False

    def check(self, path: Path, *, overwrite: bool = False) -> None:
        """Fail early where the output cannot be written.

        Args:
            path: as it was given.
            overwrite: whether `--overwrite` was.

        Raises:
            UsageError: if a file stands where a folder is due or the other way round, or if something stands
                there that may not be replaced.
            DiskError: if the disk does not take it.
        """
        from roadaware.scenes.disk import check_room, is_stream

        if is_stream(path):
            if self.stream:
                return
            wanted = "a folder to write into" if self.folder else "a file to write"
            raise UsageError(f"{path} is a device, a pipe or an open descriptor; name {wanted}")
        if self.folder and path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file; name a folder to write into")
        if not self.folder and path.is_dir():
            raise UsageError(f"{path} is a folder; name the file to write in it")
        if not self.folder and path.exists() and not (self.replaced or overwrite):
            raise UsageError(f"{path} is there already; say --overwrite to replace it, or name another file")
        check_room(path, is_folder=self.folder)
        if self.rule is not None and path.is_dir() and not vacant(path):
            self.rule(path, overwrite)


def _record(name: str, form: str) -> Rule:
    """A folder of work that goes on: it holds a file that says so, whose settings are compared later."""

    def rule(folder: Path, overwrite: bool) -> None:
        if marked(folder / name, form) is None:
            raise UsageError(f"{folder} holds other things ({_some(folder)}); name a new or empty folder")

    return rule


def _names(what: str, names: Iterable[str], *, whole: str = "", again: bool = False) -> Rule:
    """A folder that holds nothing but what these names stand for.

    Args:
        what: it holds then, in messages.
        names: of its files and folders.
        whole: the one without which it is only begun, and goes on; any of them where empty.
        again: whether it is replaced without `--overwrite`.
    """
    ours = frozenset(names)

    def rule(folder: Path, overwrite: bool) -> None:
        if others := _some(folder, but=ours):
            raise UsageError(f"{folder} holds other things ({others}); name a new or empty folder")
        if not (again or overwrite) and (not whole or (folder / whole).exists()):
            raise UsageError(f"{folder} holds {what}; say --overwrite to replace it, or name another folder")

    return rule


def _some(folder: Path, but: frozenset[str] = frozenset()) -> str:
    """The first few names in a folder."""
    from roadaware.scenes.disk import is_temporary

    try:
        held = sorted(path.name for path in folder.iterdir() if path.name not in but)
    except OSError as error:
        raise DiskError(f"{folder} cannot be looked into: {error.strerror}; name another folder") from error
    return ", ".join(name for name in held if is_temporary(name) is None and not name.endswith(".lock"))[:200]


def _tables(folder: Path, overwrite: bool) -> None:
    store = importlib.import_module("roadaware.scenes.store")  # which takes a while, and only here
    store.check_target(folder, overwrite=overwrite)


def _other_results(folder: Path, overwrite: bool) -> None:
    """A folder that files are added to: none of theirs may be those of another command."""
    if listed(folder) is not None or marked(folder / "meta.json", "roadaware-tables") is not None:
        raise UsageError(f"{folder} holds a result of another command; name another folder")


FILE = Output(stream=True)
NEW_FILE = Output(replaced=False)
MODEL = Output()
FOLDER = Output(folder=True, rule=_other_results)
RESULT = Output(folder=True, rule=lambda folder, overwrite: check_result(folder, overwrite=overwrite))
TABLES = Output(folder=True, rule=_tables)
DEMO = Output(folder=True, rule=_record("demo.json", "roadaware-demo"))
SIMULATION = Output(folder=True, rule=_record("simulation.json", "roadaware-simulation"))
PROPOSALS = Output(folder=True, rule=_record("proposals.json", "roadaware-proposals"))
ABLATION = Output(folder=True, rule=_record("ablation.json", "roadaware-ablation"))
MASKS = Output(folder=True, rule=_record("masks.json", "roadaware-masks"))
POSES = Output(folder=True, rule=_record("poses.json", "roadaware-poses"))
PRELABELS = Output(folder=True, rule=_record("prelabels.json", "roadaware-prelabels"))
PREDICTIONS = Output(folder=True, rule=_record("run.json", "roadaware-predictions"))
WATCH = Output(
    folder=True,
    rule=_names(
        "an earlier watch",
        (
            "watch.json",
            "events.jsonl",
            "predictions",
            "predictions.parts",
            "timing.parquet",
            "crossing.parquet",
            "crossing.parts",
            "video.mp4",
            "timing.json",
            "summary.json",
            "report.html",
        ),
        whole="summary.json",  # which is written when all else is there
    ),
)
TASKS = Output(
    folder=True,
    rule=_names(
        "an earlier export",
        ("sent", "pictures", "tasks.json", "labelling.xml", "tasks.coco.json", "tasks.parquet"),
        whole="sent/meta.json",  # which is written last
    ),
)
ROUNDS = Output(
    folder=True,
    rule=_names("an example", ("original", "round1", "round2", "words.txt", "planted.json"), again=True),
)
STREETS = Output(
    folder=True,
    rule=_names(
        "an example", ("pictures", "scenes", "proposals", "corrected.json", "planted.json"), again=True
    ),
)
