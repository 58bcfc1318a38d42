"""The tiny native sets of all registered readers, and what tests do with them."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import csv_rows
import damage
import polars as pl
import pytest

from roadaware.datasets import READERS, read
from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class NativeSet:
    """One reader with its maker, the module `tests/data/<name>/make.py`.

    A maker has `make(root, *, frames)`, `FORMAT` (csv, json, xml, ..., which chooses the cases that it meets),
    `MAIN` (the file whose damage costs a video) and `VIDEO` (that video); one of csv also `COLUMNS` and `HEADER`,
    see `csv_rows`. It may have `OTHERS` (its further files), `others_in(root)` (the further files of
    a set, where their names depend on it), `OPTIONS` (of the reader, where they
    are not the usual ones), `SOLE` (the main file holds every video, so that its damage is an error),
    `DAMAGE` (changes of the main file by the names in `damage.CHANGES`, where those of csv and XML do not fit),
    `BAD_ROW` (pattern in the reason for what `bad_row` does), `MEMBER` (a name in a JSON file, which stands
    for another after a change of it), `with_name(data, name)` (the JSON with a track called so),
    `hostile(content, text)` (puts the text where other things are due), `numbers()` (changes of the content
    to numbers that a careless reader would make room for), `with_video(root, name)` (adds a video of
    that name), `NAMES_VIDEOS` (whether each frame or row names its video, as those of csv do),
    `WARNS` (false where the reader hardly warns: what is odd is refused) and `EXCUSED`: name of a law or case to
    the reason why this reader breaks it.
    """

    name: str
    maker: ModuleType

    def make(self, root: Path, **options: int) -> Path:
        self.maker.make(root, **options)
        return root

    def read(self, root: Path, **options: Any) -> Scenes:
        return read(self.name, root, **{"cache": False, "processes": 1, **self.options, **options})

    @property
    def main(self) -> str:
        return str(self.maker.MAIN)

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(getattr(self.maker, "OTHERS", ()))

    def others_in(self, root: Path) -> tuple[str, ...]:
        """The further files, some of which may be named by their content."""
        found = getattr(self.maker, "others_in", None)
        return tuple(found(root)) if found else self.others

    @property
    def options(self) -> dict[str, Any]:
        return dict(getattr(self.maker, "OPTIONS", {}))

    @property
    def excused(self) -> dict[str, str]:
        return dict(getattr(self.maker, "EXCUSED", {}))

    @property
    def sole(self) -> bool:
        return bool(getattr(self.maker, "SOLE", False))

    @property
    def frame(self) -> int | None:
        """The frame that the main file holds, where each file holds one; None where it holds a whole video."""
        found: int | None = getattr(self.maker, "FRAME", None)
        return found

    @property
    def warns(self) -> bool:
        return bool(getattr(self.maker, "WARNS", True))

    @property
    def names_videos(self) -> bool:
        return bool(getattr(self.maker, "NAMES_VIDEOS", self.is_csv))

    @property
    def bad_row(self) -> str:
        return str(getattr(self.maker, "BAD_ROW", "upside down" if self.is_csv else "second box"))

    @property
    def is_csv(self) -> bool:
        return bool(self.maker.FORMAT == "csv")

    @property
    def member(self) -> str:
        return str(getattr(self.maker, "MEMBER", "frames"))

    def change(self, name: str) -> Callable[[bytes], bytes]:
        """One of `damage.CHANGES` in the set's own format."""
        own: dict[str, Callable[[bytes], bytes]] = getattr(self.maker, "DAMAGE", {})
        if name not in own and self.is_csv:
            return functools.partial(csv_rows.CHANGES[name], self)
        return own.get(name, damage.CHANGES[name])

    def refusal(self, root: Path) -> str:
        """Why the main file, and nothing else, is refused: as counted among many, as an error if alone."""
        if self.sole:
            with pytest.raises(InputError, match=re.escape(self.main)) as caught:
                self.read(root)
            return str(caught.value)
        scenes = self.read(root)
        assert scenes.rejected.select("table", "file").rows() == [("files", self.main)]
        rows_add_up(scenes)
        return str(scenes.rejected["reason"][0])

    def alone(self, root: Path) -> Path:
        """Leave only the files of the main video."""
        kept = {root / name for name in (self.main, *self.others_in(root))}
        for path in [p for p in root.rglob("*") if not p.is_dir() or p.is_symlink()]:
            if path not in kept:
                path.unlink()
        return root


@functools.cache
def maker(name: str) -> ModuleType:
    """The module that makes the set `name`.

    Raises:
        FileNotFoundError: if the reader has none; says what to write.
    """
    path = _HERE / name / "make.py"
    if not path.is_file():
        raise FileNotFoundError(f"the reader {name} has no tiny set: write {path}, see `sets.NativeSet`")
    spec = importlib.util.spec_from_file_location(f"make_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SETS = {name: NativeSet(name, maker(name)) for name in READERS}
CSV = [name for name, each in SETS.items() if each.is_csv]
"""The readers of csv."""


def rows_add_up(scenes: Scenes) -> None:
    """Every row read is in its table or among the rejected."""
    refused = dict(scenes.rejected.group_by("table").len().iter_rows())
    for table, count in scenes.meta.rows_read.items():
        taken = len(scenes.tables()[table]) if table in scenes.tables() else None
        if taken is not None:
            assert taken + refused.get(table, 0) == count, table
    assert set(refused) <= set(scenes.meta.rows_read)


def same_rows(scenes: Scenes, other: Scenes, *, but: tuple[str, ...] = ("rejected",)) -> None:
    """All tables but the named ones hold the same."""
    for name, frame in scenes.tables().items():
        if name not in but:
            assert frame.equals(other.tables()[name]), name


def without(scenes: Scenes, video: str) -> Scenes:
    """The set without one video."""
    return scenes.only([v for v in scenes.videos["video"].to_list() if v != video])


def unnumbered(scenes: Scenes) -> dict[str, pl.DataFrame]:
    """Boxes and tubes with their track's name for its number: sets with other tubes can be compared."""
    if scenes.tubes.is_empty():
        return {
            "videos": scenes.videos,
            "frames": scenes.frames,
            "boxes": scenes.boxes.drop("box", "tube", "sound", strict=False),
        }
    if "name" not in scenes.tubes.columns:  # segments, which nobody names and which have no boxes
        return {"videos": scenes.videos, "frames": scenes.frames, "tubes": scenes.tubes.drop("tube")}
    named = scenes.tubes.select("tube", "name")
    boxes = scenes.boxes.join(named, on="tube", how="left", maintain_order="left").drop(
        "tube", "box", "sound", strict=False
    )
    tubes = scenes.tubes.drop("tube")
    if "parent" in tubes.columns:
        parents = named.rename({"tube": "parent", "name": "parent_name"})
        tubes = tubes.join(parents, on="parent", how="left", maintain_order="left").drop("parent")
    return {
        "videos": scenes.videos,
        "frames": scenes.frames,
        "tubes": tubes,
        "boxes": boxes,
    }


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file's bytes; the change must change something."""
    before = path.read_bytes()
    after = change(before)
    assert after != before
    path.write_bytes(after)


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, symlinks=True)
    return target


def tree(root: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Every path with its mode, time and content."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(root.rglob("*"))
    }
