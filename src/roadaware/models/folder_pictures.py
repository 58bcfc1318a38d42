"""How a folder of transformers prepares pictures, taken only as far as it is known and within limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import transformers

from roadaware.config import is_number
from roadaware.errors import InputError
from roadaware.scenes.readers.source import shown

MOST_PX = 4096
"""The longest side that pictures are brought to; the largest of a supported model is 1,333."""
_FILTERS = range(6)
_FLAGS = (
    "do_resize", "do_rescale", "do_normalize", "do_center_crop", "do_pad", "do_convert_rgb",
    "do_reduce_labels", "reduce_labels", "do_flip_channel_order", "default_to_square", "rescale",
)  # fmt: skip
_SIZES = ("size", "crop_size", "pad_size", "max_size", "size_divisor", "size_divisibility")
_SIDES = ("height", "width", "shortest_edge", "longest_edge", "max_height", "max_width")
_LABELS = ("ignore_index", "num_labels")
_MOST_LABELS = 1 << 16
_USUAL = {
    "segformer": "Segformer", "upernet": "Segformer", "mask2former": "Mask2Former",
    "maskformer": "MaskFormer",
    "grounding-dino": "GroundingDino", "mm-grounding-dino": "GroundingDino", "owlv2": "Owlv2",
    "owlvit": "OwlViT", "clip": "CLIP",
}  # fmt: skip
_ENDS = ("ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor")


def preparation_of_pictures(said: Mapping[str, Any], family: str, where: str) -> Any:
    """The image processor of transformers that a description makes, without torchvision.

    Args:
        said: what preprocessor_config.json says.
        family: type of the model, for descriptions that do not name their processor.
        where: names the file in errors.

    Raises:
        InputError: if it names code of its own, a processor that is not known, or a number out of its limits.
        Exception: whatever the library raises where values are of the wrong kind.
    """
    inner = said.get("image_processor")
    said = inner if isinstance(inner, Mapping) else said
    if said.get("auto_map") or said.get("trust_remote_code"):
        raise InputError("it asks for code of its own, which is not run", where=where)
    named = said.get("image_processor_type") or said.get("feature_extractor_type")
    kind = _class(f"{_USUAL[family]}ImageProcessor" if not named and family in _USUAL else str(named), where)
    return kind(**checked_fields(said, where))


def checked_fields(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a description that are known, each of which holds what it can hold.

    Args:
        said: what preprocessor_config.json says.
        where: names the file in errors.

    Raises:
        InputError: naming the field and what it holds.
    """
    return {name: _value(name, value, where) for name, value in said.items() if _known(name)}


def _class(named: str, where: str) -> Any:
    """The processor of transformers of that name that needs no torchvision."""
    base = next((named.removesuffix(end) for end in _ENDS if named.endswith(end)), "")
    for end in ("ImageProcessorPil", "ImageProcessor"):
        found = getattr(transformers, base + end, None) if base.isidentifier() else None
        if isinstance(found, type) and hasattr(found, "preprocess") and found.__module__.startswith("transf"):
            return found
    raise InputError(f"image_processor_type is {shown(repr(named), 60)}, which is not known", where=where)


def _known(name: str) -> bool:
    return name in (*_FLAGS, *_SIZES, *_LABELS, "resample", "rescale_factor", "image_mean", "image_std")


def _value(name: str, value: Any, where: str) -> Any:
    """The value of a field, which must be one that it can have.

    Raises:
        InputError: if it is not.
    """
    if value is None:
        return None
    if name in _FLAGS:
        fits = isinstance(value, bool)
    elif name in _SIZES:
        fits = _is_size(value)
    elif name in _LABELS:
        fits = type(value) is int and -_MOST_LABELS <= value <= _MOST_LABELS
    elif name == "resample":
        fits = type(value) is int and value in _FILTERS
    elif name == "rescale_factor":
        fits = is_number(value) and 0 < value <= 1
    else:
        fits = _is_colour(value, least=0.0 if name == "image_mean" else 1e-6)
    if not fits:
        raise InputError(f"{name} cannot be {shown(repr(value), 60)}", where=where)
    return value


def _is_size(value: Any) -> bool:
    """Whether it is a side, a pair of them, or sides by name, of up to `MOST_PX` pixels."""
    if isinstance(value, Mapping):
        return bool(value) and set(value) <= set(_SIDES) and all(_is_side(each) for each in value.values())
    if isinstance(value, list):
        return len(value) == 2 and all(map(_is_side, value))
    return _is_side(value)


def _is_side(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MOST_PX


def _is_colour(value: Any, least: float) -> bool:
    """Whether it is a number, or one for each channel; of pictures in [0, 1] or in [0, 255]."""
    values = value if isinstance(value, list) else [value]
    whole = all(is_number(each) and math.isfinite(each) and least <= each <= 255 for each in values)
    return whole and len(values) in (1, 3)
