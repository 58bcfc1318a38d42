"""Folders as transformers keeps them: weights, preparation of images and words, from the disk alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from torch import nn

from roadaware.arrays import Pixels
from roadaware.errors import DamagedError, InputError, raise_interrupt
from roadaware.io.sources import to_printable
from roadaware.models.folder_configs import (
    CONFIG,
    build_image_processor,
    build_transformers_config,
    check_config,
    parse_folder_json,
    refuse_adapter,
    resolve_model_file,
)
from roadaware.models.limits import limit_network_size, refuse_many
from roadaware.models.offline import block_network
from roadaware.models.tensor_files import ARITHMETIC, read_safetensors

_PREPARATIONS = ("preprocessor_config.json", "processor_config.json")
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_FILES, _MOST_NAMED = 256, 20
Preparer = Callable[[Sequence[Pixels]], dict[str, torch.Tensor]]
"""Images of one size to what a model takes: `pixel_values` (B, 3, h, w), perhaps `pixel_mask` (B, h, w)."""


def read_model_type(folder: Path) -> str:
    """The type of model that a folder says it holds.

    Args:
        folder: with config.json.

    Raises:
        InputError: if it is no folder of transformers.
    """
    return to_printable(str(parse_folder_json(folder / CONFIG).get("model_type")), 60)


def load_pretrained_model(folder: Path, families: Sequence[str], maker: Any) -> Any:
    """The model of a folder with its weights; nothing is downloaded, and no code of the folder is run.

    Files are read here: the library is given values and tensors, and no folder to look into.

    Args:
        folder: with config.json and safetensors.
        families: types of models that are understood.
        maker: class of transformers, such as AutoModelForObjectDetection.

    Raises:
        InputError: if it is no such folder, of another kind of model, has no safetensors, names what lies
            elsewhere, or is larger than `limits.most_parameters`.
        DamagedError: if the weights do not fit.
    """
    where, said = str(folder), parse_folder_json(folder / CONFIG)
    kind = said.get("model_type")
    if kind not in families:
        known = ", ".join(families) if len(families) < _MOST_NAMED else "models of images"
        raise InputError(f"a model of type {to_printable(repr(kind), 60)}; known are {known}", where=where)
    refuse_adapter(folder)
    check_config(said, str(folder / CONFIG))
    weights = _weights(folder)
    held = sum(each.numel() for each in weights.values())
    with silence_transformers(), block_network(where):
        try:
            config = build_transformers_config(said, str(folder / CONFIG))
            with limit_network_size(where, held):
                # The class that a maker of transformers makes of a config; a class itself is the one.
                found = getattr(maker, "_model_mapping", None)
                made = maker if found is None else found[type(config)]
                model, report = (made[0] if isinstance(made, tuple) else made).from_pretrained(
                    None, config=config, state_dict=weights, local_files_only=True, output_loading_info=True
                )
        except InputError:
            raise
        except Exception as error:  # the library raises whatever its parts do
            raise_interrupt(error)
            raise DamagedError(f"the model cannot be made: {_first_line(error)}", where=where) from error
    lacking = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if lacking:
        raise DamagedError(
            f"weights are missing or do not fit: {to_printable(', '.join(lacking[:4]))}", where=where
        )
    return model


@contextmanager
def wrap_inference(model: nn.Module) -> Iterator[None]:
    """Within: a model is asked, without gradients, and what its numbers do to it is an error of its folder.

    Args:
        model: of transformers, with its weights.

    Raises:
        InputError: if it cannot say anything: a description may fit its weights and still be none.
    """
    try:
        with torch.inference_mode():
            yield
    except (*ARITHMETIC, UnboundLocalError) as error:  # the last where no branch knows a word of the config
        kind = getattr(getattr(model, "config", None), "model_type", "unknown")
        hint = "config.json or preprocessor_config.json is not that of its weights: take all from one place"
        raise InputError(
            f"a model of type {kind} cannot look at it: {_first_line(error)}", hint=hint
        ) from error


def refuse_odd(*answers: torch.Tensor) -> None:
    """Refuse answers that are no numbers; called within `wrap_inference`.

    Raises:
        ValueError: if there are such.
    """
    if not all(bool(torch.isfinite(each).all()) for each in answers):
        raise ValueError("its answers are not finite")


def load_image_preparer(folder: Path) -> Preparer:
    """The preparation of images that a folder describes, as transformers does it without torchvision.

    Args:
        folder: with preprocessor_config.json, or processor_config.json.

    Raises:
        InputError: if there is none, or it is not understood.
    """
    name = next((name for name in _PREPARATIONS if (folder / name).exists()), None)
    if name is None:
        hint = "copy it from where the model was published"
        raise InputError(f"there is no {_PREPARATIONS[0]}", where=str(folder), hint=hint)
    where = str(folder / name)
    with silence_transformers(), block_network(str(folder)):
        try:
            prepare = build_image_processor(parse_folder_json(folder / name), read_model_type(folder), where)
            # Tried at once, so that a bad description is refused on opening and not in the middle of a video.
            _prepare_images(prepare, [np.zeros((48, 64, 3), np.uint8)])
        except Exception as error:  # the library raises whatever its parts do
            raise_interrupt(error)
            text = error.message if isinstance(error, InputError) else _first_line(error)
            raise InputError(f"not understood how images are prepared: {text}", where=where) from error
    return lambda images: _prepare_images(prepare, images)


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a folder: of its one file, or of those that its index names.

    Raises:
        InputError: if there are none, or a name leads out of the folder.
        DamagedError: if a file is not whole.
    """
    where = str(folder)
    if (folder / _WEIGHTS).exists() or (folder / _WEIGHTS).is_symlink():
        names = [_WEIGHTS]
    elif (folder / _INDEX).exists():
        listed = parse_folder_json(folder / _INDEX).get("weight_map")
        names = sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []
        # A name with separators would lead out of the folder.
        odd = [name for name in names if "/" in name or "\\" in name or not name.endswith(".safetensors")]
        if odd or not 0 < len(names) <= _MOST_FILES:
            text = f"it names {to_printable(repr(odd[0]), 60)}" if odd else f"it names {len(names)} files"
            message = f"expected an index of safetensors that lie beside it; {text}"
            raise InputError(message, where=str(folder / _INDEX))
    else:
        hint = "save it with `save_pretrained`, which writes safetensors; pickles are not read"
        raise InputError(f"there is no {_WEIGHTS}", where=where, hint=hint)
    found: dict[str, torch.Tensor] = {}
    for name in names:
        try:
            found |= read_safetensors(resolve_model_file(folder / name))[0]
        except DamagedError as error:
            raise DamagedError(f"the model cannot be made: {error.message}", where=error.where) from error
        # Counted after each file, so that many files cannot fill the memory.
        refuse_many(sum(each.numel() for each in found.values()), where)
    return found


def move_to_model(given: dict[str, torch.Tensor], model: nn.Module) -> dict[str, torch.Tensor]:
    """Move a model's inputs to its device; images in its dtype.

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
def silence_transformers() -> Iterator[None]:
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


def _prepare_images(prepare: Any, images: Sequence[npt.NDArray[np.uint8]]) -> dict[str, torch.Tensor]:
    prepared = prepare(images=list(images), return_tensors="pt", input_data_format="channels_last")
    return {name: prepared[name] for name in ("pixel_values", "pixel_mask") if name in prepared}


def _first_line(error: Exception) -> str:
    return to_printable(" ".join(str(error).split()) or type(error).__name__)
