"""Tensors of checkpoints that others wrote, read without running anything in the file; imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from roadaware.errors import InputError
from roadaware.models.tensor_files import check_finite, read_pickled, read_safetensors
from roadaware.scenes.disk import atomic_write

_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net")
_MOST_WRAPPERS = 8


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file or of one that torch saved, on the CPU, by their names.

    One of the usual wrappers around the state dict is taken off, and `module.` before every name, which
    training on several GPUs leaves.

    Raises:
        InputError: if there is no such file, it holds no tensors, or more than tensors.
        DamagedError: if it is not whole.
    """
    if not path.exists():
        raise InputError("expected a checkpoint and found no file", where=str(path))
    held = read_safetensors(path)[0] if path.suffix == ".safetensors" else read_pickled(path)
    tensors = _state(held)
    if not tensors:
        raise InputError("the checkpoint holds no tensors by name", where=str(path))
    check_finite(tensors, str(path))
    return _stripped(tensors)


def _state(held: object) -> dict[str, Tensor]:
    """The first mapping of names to tensors, under the usual wrappers."""
    for _ in range(_MOST_WRAPPERS):
        if not isinstance(held, Mapping):
            break
        tensors = {str(name): value for name, value in held.items() if isinstance(value, Tensor)}
        if tensors:
            return tensors
        held = next((held[name] for name in _WRAPPERS if isinstance(held.get(name), Mapping)), None)
    return {}


def _stripped(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = "module."
    if all(name.startswith(prefix) for name in tensors):
        return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as one file of safetensors, each with memory of its own.

    Args:
        path: of the file.
        tensors: by name.

    Raises:
        DiskError: if it cannot be written.
    """
    atomic_write(path, save({name: each.detach().clone().contiguous() for name, each in tensors.items()}))
