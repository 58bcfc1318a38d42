"""Cut pictures on disk: a file for each film and configuration, written whole, and mapped to memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from roadaware.arrays import Bytes, Ints
from roadaware.errors import DamagedError
from roadaware.scenes.disk import disk_error
from roadaware.scenes.unfinished import Unfinished
from roadaware.tasks.crossing_inputs.cutting import Cutter

Blocks = dict[str, Bytes]
Wanted = tuple[Cutter, bytes, Ints, Ints]
"""A cutter, what the film hashes to, (m,) frames and (m, 8) regions."""


class CuttingFiles:
    """A folder of files that are called after all that decides what is in them.

    Args:
        folder: made if it is not there.

    Raises:
        DiskError: if it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(self._folder / "cut", 1, error) from error

    def opened(self, wanted: dict[str, Wanted], cut: Callable[[list[str]], Iterator[Blocks]]) -> Blocks:
        """(m, ...) bytes of one film by input, mapped; what has no file yet is cut and written.

        Args:
            wanted: by input.
            cut: gives pieces of the inputs that it is asked for, in order.

        Raises:
            DamagedError: if a file is not what it should be.
            DiskError: if one cannot be written.
        """
        paths = {name: self._folder / _name(*each) for name, each in wanted.items()}
        missing = [name for name, path in paths.items() if not path.exists()]
        if missing:
            shapes = {name: (len(wanted[name][2]), *wanted[name][0].shape) for name in missing}
            self._write({name: paths[name] for name in missing}, shapes, cut(missing))
        return {
            name: _mapped(paths[name], (len(frames), *cutter.shape))
            for name, (cutter, _, frames, _) in wanted.items()
        }

    def _write(
        self, paths: dict[str, Path], shapes: dict[str, tuple[int, ...]], pieces: Iterator[Blocks]
    ) -> None:
        with ExitStack() as undo:
            growing = {name: Unfinished(path) for name, path in paths.items()}
            for each in growing.values():
                undo.callback(each.abandon)
            for name, each in growing.items():
                header = {"descr": "|u1", "fortran_order": False, "shape": shapes[name]}
                np.lib.format.write_array_header_1_0(each.file, header)
            for blocks in pieces:
                for name, block in blocks.items():
                    try:
                        growing[name].file.write(block.data)
                    except OSError as error:
                        raise growing[name].failure(error) from error
            for each in growing.values():
                each.finish()


def _name(cutter: Cutter, film: bytes, frames: Ints, regions: Ints) -> str:
    found = hashlib.blake2b(digest_size=16)
    parts = [json.dumps(cutter.key, sort_keys=True).encode(), film, frames.tobytes(), regions.tobytes()]
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return f"cut-{found.hexdigest()}.npy"


def _mapped(path: Path, shape: tuple[int, ...]) -> Bytes:
    hint = "remove it, and it is made again"
    try:
        held = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedError("no whole file of cut pictures", where=str(path), hint=hint) from error
    if held.shape != shape or held.dtype != np.uint8:
        message = f"expected uint8 {shape}, found {held.dtype} {held.shape}"
        raise DamagedError(message, where=str(path), hint=hint)
    mapped: Bytes = held
    return mapped
