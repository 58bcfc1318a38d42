"""Limits of networks: how many parameters one may have, and a look at each part while one is being made."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.modules import module as parts
from torch.overrides import TorchFunctionMode

from roadaware.errors import InputError, UsageError

VARIABLE = "ROADAWARE_MAX_PARAMETERS"
MOST_PARAMETERS = 2_000_000_000
"""Eight gigabytes in float32; the largest model that is tested by name has a fifth of that."""
MOST_PARTS = 10_000
"""Modules of a network; the largest supported ones have some thousands."""
_SPARE = 1_000_000
_DRAWN = frozenset(
    getattr(torch.nn.init, name) for name in dir(torch.nn.init) if re.match(r"(kaiming|xavier)_", name)
) | {torch.nn.init.normal_, torch.nn.init.uniform_, torch.Tensor.normal_, torch.Tensor.uniform_}


def get_parameter_limit() -> int:
    """How many numbers the weights of one network may be: `MOST_PARAMETERS`, or what the variable says.

    Raises:
        UsageError: if `ROADAWARE_MAX_PARAMETERS` holds no whole number above 0.
    """
    said = os.environ.get(VARIABLE, "").strip()
    if not said:
        return MOST_PARAMETERS
    if not (said.isascii() and said.isdigit() and len(said) <= 18 and int(said)):
        raise UsageError(f"{VARIABLE} holds a whole number above 0, not {said[:40]!r}")
    return int(said)


def refuse_many(count: int, where: str) -> None:
    """Refuse more parameters than `get_parameter_limit`.

    Raises:
        InputError: says both numbers and how to raise the limit.
    """
    most = get_parameter_limit()
    if count > most:
        raise InputError(
            f"{count:,} parameters; networks of at most {most:,} are opened",
            where=where,
            hint=f"if you trust it and have the memory, raise the limit: {VARIABLE}={count}",
        )


@contextmanager
def limit_network_size(where: str, held: int | None = None) -> Iterator[None]:
    """Within: a network that this thread makes has few parts, and up to twice the numbers of its file.

    Each part is checked as it is added, so that what a file says cannot keep anybody busy. Parts that
    share their weights are counted once for each, hence the factor.

    Args:
        where: names the file in errors.
        held: how many numbers the file holds; None where there is none, so that `get_parameter_limit` counts.

    Raises:
        InputError: as soon as there are more.
    """
    thread, most = threading.get_ident(), get_parameter_limit() if held is None else 2 * held + _SPARE
    numbers: dict[tuple[int, str], int] = {}
    named: set[tuple[int, str]] = set()
    total = 0

    def add_numbers(module: Any, name: str, values: Any) -> None:
        nonlocal total
        # Other threads may make networks of their own at the same time.
        if threading.get_ident() != thread or values is None:
            return
        total += values.numel() - numbers.get((id(module), name), 0)  # weights are put where none were yet
        numbers[id(module), name] = values.numel()
        if total > most:
            hint = f"take smaller numbers, or raise the limit: {VARIABLE}"
            message = f"the network that it describes has more than {most:,} parameters"
            if held is not None:
                hint = "description and weights are of two networks: take both from one place"
                message += f", and its weights are {held:,}"
            raise InputError(message, where=where, hint=hint)

    def add_part(module: Any, name: str, part: Any) -> None:
        if threading.get_ident() != thread:
            return
        named.add((id(module), name))
        if len(named) > MOST_PARTS:
            message = f"the network that it describes has more than {MOST_PARTS:,} parts"
            raise InputError(message, where=where, hint="its numbers of layers or blocks are no network's")

    with ExitStack() as hooks:
        for handle in (
            parts.register_module_parameter_registration_hook(add_numbers),
            parts.register_module_buffer_registration_hook(add_numbers),
            parts.register_module_module_registration_hook(add_part),
        ):
            hooks.callback(handle.remove)
        yield


class undrawn_weights(TorchFunctionMode):  # noqa: N801 - a context manager, as torch.inference_mode is
    """Within: weights of a new network are not drawn at random, for a file brings them.

    On the device `meta` drawing them is no work in itself, but torch does it by way of its compiler, whose
    import takes longer than all else before the first frame of a stream.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The tensor as it is where it would be drawn; everything else as ever."""
        given = kwargs or {}
        if func in _DRAWN:
            return args[0] if args else given["tensor"]
        return func(*args, **given)
