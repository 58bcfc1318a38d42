"""The inputs by name: which there are, what they read, and all of a split put together."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.inputs import Column, Held, InputSet, named
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs import boxes, ego
from roadaware.tasks.crossing_inputs.observations import Array, Observations, observe

_HELD = {**boxes.FORMS, **ego.FORMS}


def known_inputs() -> tuple[str, ...]:
    """The names that `inputs` knows; `@224` stands for any side in pixels."""
    return tuple(_HELD)


def needs(name: str) -> str:
    """In words, which tables and files an input reads.

    Raises:
        UsageError: if there is no such input.
    """
    return _HELD[_known(name)][1]


def inputs(scenes: Scenes, split: str, names: Sequence[str]) -> InputSet:
    """What the samples of one split look like, in the order of `tasks.pedestrians.examples`.

    Args:
        scenes: with `samples` cut by a protocol.
        split: train, val or test.
        names: of inputs, in the order in which a network is to be given them.

    Raises:
        UsageError: if a name is unknown or given twice, or the samples were not cut for such a split.
        InputError: if the split has no samples, or the scenes lack what an input reads.
    """
    for name in names:
        _known(name)
    if len(set(names)) < len(names) or not names:
        raise UsageError(f"inputs are named once each, and at least one; got {list(names)}")
    seen = observe(scenes, split)
    return InputSet({name: _column(seen, name) for name in names}, len(seen))


def _column(seen: Observations, name: str) -> Column:
    return _held(_HELD[_known(name)][0](seen), name)


def _held(values: Array, name: str) -> Held:
    """In single precision; a number that is not finite but known is refused."""
    if np.isinf(values).any():
        raise InputError(f"the input {name} holds numbers that are not finite")
    return Held(np.ascontiguousarray(values, dtype=np.float32))


def _known(name: str) -> str:
    parts = named(name)
    plain = f"{parts.kind}:{parts.form}" if parts.form else parts.kind
    if plain not in _HELD:
        near = difflib.get_close_matches(plain, _HELD, n=1)
        guess = f"; did you mean '{near[0]}'?" if near else "."
        raise UsageError(f"no input '{name}'{guess} There are {', '.join(known_inputs())}")
    if parts.pixels:
        raise UsageError(f"'{name}' is no picture; write '{plain}'")
    return plain
