"""Reading by lxml in spawned processes, for sets of which many files need it."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl
from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.processes import end_with_parent
from roadaware.scenes.readers.locate import open_source
from roadaware.scenes.readers.records import Document, Record, Walked, walk, walk_all
from roadaware.scenes.readers.source import Source
from roadaware.scenes.readers.xml import decode, parse

_WORTH_BYTES = 16 << 20


def cores(most: int = 4) -> int:
    """How many processors this process may use, at most `most`."""
    return min(most, len(os.sched_getaffinity(0)))


class Walkers:
    """Reads by lxml: here at first, from 16 MiB on in spawned workers that open the source themselves.

    Args:
        source: where the documents lie.
        processes: how many workers; 1 never starts any.
        worth_bytes: how much text is read here before workers start.
    """

    def __init__(self, source: Source, processes: int | None = None, worth_bytes: int = _WORTH_BYTES) -> None:
        self.source = source
        self.processes = cores() if processes is None else processes
        self.worth_bytes = worth_bytes
        self._files = self._size = 0
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def __call__(self, documents: Sequence[Document], record: Record, root: str) -> list[Walked]:
        """For each document its tree or why there is none, and its rows, in their order.

        Raises:
            InputError: if a worker died.
        """
        pool = self._started(documents)
        if pool is None:
            return walk_all(documents, record, root)
        path, prefix = str(self.source.path), self.source.prefix
        try:
            waiting: list[Future[_Sent]] = [
                pool.submit(_walk_there, path, prefix, document.name, record, root) for document in documents
            ]
            return [_received(d.where, future.result()) for d, future in zip(documents, waiting, strict=True)]
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process died while it read annotations",
                where=str(self.source.path),
                hint="free some memory, or read with processes=1 (a script that reads needs "
                "`if __name__ == '__main__':` for more than one process)",
            ) from error

    def _started(self, documents: Sequence[Document]) -> ProcessPoolExecutor | None:
        """The workers, once there is enough to read for more than one of them."""
        with self._lock:
            self._files += len(documents)
            self._size += sum(len(document.text) for document in documents)
            worth = self._files > 1 and self._size > self.worth_bytes
            if self._pool is None and self.processes > 1 and worth:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(
                    self.processes, mp_context=context, initializer=end_with_parent
                )
            return self._pool


_Sent = tuple[bytes | InputError, pl.DataFrame]


def _walk_there(path: str, prefix: str, name: str, record: Record, root: str) -> _Sent:
    """In a worker: one document's tree without its records, as text, and its rows."""
    source = _opened(path, prefix)
    where = source.where(name)
    try:
        text = decode(source.read(name), where)
    except InputError as error:
        return error, pl.DataFrame(schema=record.schema)
    tree, rows = walk(Document(name, where, text), record, root=root)
    if isinstance(tree, InputError):
        return tree, rows
    return etree.tostring(tree, encoding="utf-8"), rows


@lru_cache(maxsize=1)
def _opened(path: str, prefix: str) -> Source:
    source = open_source(Path(path))
    return source.at(prefix.rstrip("/")) if prefix else source


def _received(where: str, sent: _Sent) -> Walked:
    tree, rows = sent
    return Walked(tree if isinstance(tree, InputError) else parse(tree, where), rows)
