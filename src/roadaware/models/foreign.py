"""Tensors of checkpoints that others wrote, read without running anything in the file; imports torch."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from roadaware.errors import DamagedError, InputError

_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net")
_DAMAGE = (RuntimeError, EOFError, OSError, ValueError, KeyError, zipfile.BadZipFile, SafetensorError)
_CODE = "the file holds more than tensors, which is not loaded since it could run code"


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file or of one that torch saved, on the CPU, by their names.

    One of the usual wrappers around the state dict is taken off, and `module.` before every name, which
    training on several GPUs leaves.

    Raises:
        InputError: if there is no such file, it holds no tensors, or more than tensors.
        DamagedError: if it is not whole.
    """
    if not path.is_file():
        raise InputError("expected a checkpoint and found no file", where=str(path))
    try:
        held = _read(path)
    except pickle.UnpicklingError as error:
        raise _refused(path, error) from error
    except _DAMAGE as error:
        hint = "copy or download it again"
        raise DamagedError(f"not a whole checkpoint: {_first(error)}", where=str(path), hint=hint) from error
    tensors = _state(held)
    if not tensors:
        raise InputError("the checkpoint holds no tensors by name", where=str(path))
    bad = sorted(name for name, tensor in tensors.items() if not _finite(tensor))
    if bad:
        raise InputError(f"not finite in the checkpoint: {_some(bad)}", where=str(path))
    return _stripped(tensors)


def _read(path: Path) -> object:
    if path.suffix == ".safetensors":
        return load_file(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of old protocols before it refuses or reads them
        return torch.load(path, map_location="cpu", weights_only=True)


def _refused(path: Path, error: pickle.UnpicklingError) -> InputError:
    """What is wrong with a file that the unpickler for tensors refuses: code, or no checkpoint at all."""
    text = str(error)
    if "Unsupported global" in text or "WeightsUnpickler" in text or "Weights only" in text:
        hint = "ask for a plain state dict or a safetensors file"
        return InputError(_CODE, where=str(path), hint=hint)
    return DamagedError(f"not a checkpoint: {_first(error)}", where=str(path), hint="copy it again")


def _state(held: object) -> dict[str, Tensor]:
    """The first mapping of names to tensors, under the usual wrappers."""
    while isinstance(held, Mapping):
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


def _finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
