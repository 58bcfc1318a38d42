"""Readers of datasets on mutants of their native sets."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from mutants import KINDS, mutated
from sets import SETS, NativeSet, rows_add_up

from benchmarks.fuzzing import Target
from roadaware.errors import InputError

COUNT = 2000


def fates(each: NativeSet, count: int, seed: int = 0) -> Counter[str]:
    """How a set of one video is read with one of its files mutated, `count` times.

    Any other exception than a typed error, and any row that is neither taken nor rejected, ends the run.
    """
    rng = random.Random(seed)  # noqa: S311 - mutants, not secrets
    ended: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        root = each.alone(each.make(Path(scratch) / "set", frames=4))
        originals = {name: (root / name).read_bytes() for name in (each.main, *each.others)}
        usual = each.read(root).meta.notes["warnings"]
        for _ in range(count):
            name = rng.choice(list(originals))
            kinds = rng.choices(sorted(KINDS), k=rng.randint(1, 3))
            changes = [(kind, rng.random(), rng.random()) for kind in kinds]
            (root / name).write_bytes(mutated(originals[name], changes))
            ended[_fate(each, root, usual)] += 1
            (root / name).write_bytes(originals[name])
    return ended


def _fate(each: NativeSet, root: Path, usual: list[object]) -> str:
    try:
        scenes = each.read(root)
    except InputError:
        return "typed error"
    rows_add_up(scenes)
    if len(scenes.rejected):
        return "rows or files rejected"
    return "read" if scenes.meta.notes["warnings"] == usual else "read with warnings"


TARGETS = tuple(
    Target(name, partial(fates, each), COUNT, "0 other exceptions, 0 rows lost")
    for name, each in SETS.items()
)
