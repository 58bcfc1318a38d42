"""Folders as transformers keeps them: weights, preparation of pictures and words, from the disk alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from tokenizers import Tokenizer
from torch import nn

from roadaware.errors import DamagedError, InputError
from roadaware.models.detector import Picture
from roadaware.scenes.disk import read_regular

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
_PREPARATIONS = ("preprocessor_config.json", "processor_config.json")
_VOCABULARIES = ("vocab.json", "vocab.txt")
_LIMIT = 1 << 28
Preparer = Callable[[Sequence[Picture]], dict[str, torch.Tensor]]
"""Pictures of one size to what a model takes: `pixel_values` (B, 3, h, w), perhaps `pixel_mask` (B, h, w)."""


def family_of(folder: Path) -> str:
    """The type of model that a folder says it holds.

    Args:
        folder: with config.json.

    Raises:
        InputError: if it is no folder of transformers.
    """
    return str(parsed(folder / CONFIG).get("model_type"))


def model_in(folder: Path, families: Sequence[str], maker: Any) -> Any:
    """The model of a folder with its weights; nothing is downloaded, and no code of the folder is run.

    Args:
        folder: with config.json and safetensors.
        families: types of models that are understood.
        maker: class of transformers, such as AutoModelForObjectDetection.

    Raises:
        InputError: if it is no such folder, of another kind of model, or has no safetensors.
        DamagedError: if the weights do not fit.
    """
    where, kind = str(folder), family_of(folder)
    if kind not in families:
        raise InputError(f"a model of type {kind!r}; known are {', '.join(families)}", where=where)
    if not any(folder.glob("*.safetensors")):
        hint = "save it with `save_pretrained`, which writes safetensors; pickles are not read"
        raise InputError("there is no model.safetensors", where=where, hint=hint)
    with quiet():
        try:
            model, report = maker.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except Exception as error:  # the library raises whatever its parts do
            raise DamagedError(f"the model cannot be made: {_first_line(error)}", where=where) from error
    lacking = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if lacking:
        raise DamagedError(f"weights are missing or do not fit: {', '.join(lacking[:4])}", where=where)
    return model


def preparer_in(folder: Path) -> Preparer:
    """The preparation of pictures that a folder describes, as transformers does it without torchvision.

    Args:
        folder: with preprocessor_config.json, or processor_config.json.

    Raises:
        InputError: if there is none, or it is not understood.
    """
    if not any((folder / name).is_file() for name in _PREPARATIONS):
        hint = "copy it from where the model was published"
        raise InputError(f"there is no {_PREPARATIONS[0]}", where=str(folder), hint=hint)
    maker: Any = transformers.AutoImageProcessor
    with quiet():
        try:
            prepare = maker.from_pretrained(
                folder, backend="pil", local_files_only=True, trust_remote_code=False
            )
            _prepared(prepare, [np.zeros((48, 64, 3), np.uint8)])
        except Exception as error:  # the library raises whatever its parts do
            message = f"not understood how pictures are prepared: {_first_line(error)}"
            raise InputError(message, where=str(folder / _PREPARATIONS[0])) from error
    return lambda pictures: _prepared(prepare, pictures)


def tokenizer_in(folder: Path) -> Tokenizer:
    """What makes tokens of words, without padding and without cutting off.

    Args:
        folder: with tokenizer.json; or with vocab.txt, or vocab.json and merges.txt, as older ones have it.

    Raises:
        InputError: if it is not there or is none.
    """
    path = folder / TOKENIZER
    older = [name for name in _VOCABULARIES if (folder / name).is_file()]
    if not path.is_file() and not older:
        hint = "copy it from where the model was published"
        raise InputError(f"there is no {TOKENIZER}, so texts cannot be read", where=str(folder), hint=hint)
    try:
        said = _content(path).decode() if path.is_file() else _older_words(folder)
        found = Tokenizer.from_str(said)
    except InputError:
        raise
    except Exception as error:  # the libraries raise plain exceptions
        where = str(path if path.is_file() else folder / older[0])
        raise InputError(f"no tokenizer: {_first_line(error)}", where=where) from error
    found.no_padding()
    found.no_truncation()
    return found


def _older_words(folder: Path) -> str:
    """What tokenizer.json would say of a vocabulary in other files."""
    with quiet():
        made = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    return str(made.backend_tokenizer.to_str())


def placed(given: dict[str, torch.Tensor], model: nn.Module) -> dict[str, torch.Tensor]:
    """What a model takes, where the model is; pictures in the numbers that it computes with.

    Args:
        given: what a `Preparer` made.
        model: with its weights.
    """
    place = next(model.parameters())
    return {
        name: each.to(device=place.device, dtype=place.dtype if each.is_floating_point() else None)
        for name, each in given.items()
    }


@contextmanager
def quiet() -> Iterator[None]:
    """Within: transformers warns of nothing and draws no bars."""
    log: Any = transformers.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.ERROR)
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def parsed(path: Path) -> dict[str, Any]:
    """A file of a folder of transformers that holds an object in JSON.

    Args:
        path: the file.

    Raises:
        InputError: if it cannot be read or is none.
    """
    try:
        found = json.loads(_content(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"expected a folder of transformers with {path.name}: {error}", where=str(path)
        ) from error
    if not isinstance(found, dict):
        raise InputError("expected an object in JSON", where=str(path))
    return found


def _content(path: Path) -> bytes:
    """What a file holds, or the one that it links to: the hub's cache is made of links."""
    return read_regular(path.resolve(), limit=_LIMIT)


def _prepared(prepare: Any, pictures: Sequence[npt.NDArray[np.uint8]]) -> dict[str, torch.Tensor]:
    told = prepare(images=list(pictures), return_tensors="pt", input_data_format="channels_last")
    return {name: told[name] for name in ("pixel_values", "pixel_mask") if name in told}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
