"""Folders and archives that lie beside each other, seen as the folders of one source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from roadaware.errors import InputError
from roadaware.scenes.readers.source import Source, digest, shown


class JoinedSource(Source):
    """Several sources, each under the name of one folder at the top.

    Args:
        path: what the user pointed at, for messages.
        parts: folder at the top to the source that stands for it.
    """

    def __init__(self, path: Path, parts: dict[str, Source]) -> None:
        super().__init__(path)
        self.parts = dict(parts)

    def close(self) -> None:
        """Close every part."""
        for part in self.parts.values():
            part.close()

    def where(self, name: str) -> str:
        """The name for messages, as its part tells it."""
        part, _, rest = name.partition("/")
        return self.parts[part].where(rest) if part in self.parts and rest else super().where(name)

    def at(self, folder: str) -> Source:
        """A part, or a folder inside one."""
        part, _, rest = folder.partition("/")
        if part not in self.parts:
            raise InputError("there is no such folder", where=f"{shown(str(self.path))}: {shown(folder)}")
        return self.parts[part].at(rest) if rest else self.parts[part]

    def entries(self, folder: str = "") -> tuple[list[str], list[str]]:
        """The parts at the top; below, what the part says."""
        if not folder:
            return [], sorted(self.parts)
        part, _, rest = folder.partition("/")
        return self.parts[part].entries(rest) if part in self.parts else ([], [])

    def stamp(self, names: Iterable[str]) -> str:
        """What changes when a file of a part does, or a part lies elsewhere."""
        held: dict[str, list[str]] = {part: [] for part in self.parts}
        for name in names:
            part, _, rest = name.partition("/")
            held[part].append(rest)
        stamps = [(part, str(self.parts[part].path), self.parts[part].stamp(held[part])) for part in held]
        return digest(repr(sorted(stamps)).encode())

    def holds(self, name: str) -> bool:
        """Whether a part has something of that name."""
        part, _, rest = name.partition("/")
        return part in self.parts and (not rest or self.parts[part].holds(rest))

    def _read(self, name: str) -> bytes:
        part, _, rest = name.partition("/")
        if part not in self.parts:
            raise InputError("there is no such file", where=self.where(name))
        return self.parts[part].read(rest)
