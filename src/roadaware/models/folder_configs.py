"""What a folder of transformers says of its model, taken only as far as it is known and within limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import transformers
from transformers.models.auto import modeling_auto

from roadaware.errors import InputError
from roadaware.scenes.readers.json import decode, parse
from roadaware.scenes.readers.source import confine, read_file, shown

CONFIG = "config.json"
LARGEST = 1 << 20
"""No size, number of layers or token of a supported model is larger."""
DEEPEST = 1_000
"""Layers or blocks of one part."""
MOST_DEPTH, MOST_ITEMS, MOST_LETTERS = 6, 50_000, 2_000
_MOST_BYTES = 1 << 23
_TEXTS = ("bert", "roberta", "xlm-roberta", "distilbert")
_PAIRS = ("clip", "siglip", "siglip2", "metaclip_2", "altclip", "chinese_clip", "owlvit", "owlv2")
_COUNTS = re.compile(
    r"(^|_)(num|n|layers?|depths?|blocks?|heads?|hidden|channels?|queries|levels?|sizes?|dims?|widths?|points?|"
    r"vocab|positions?|strides?|sides?)(_|$)"
)
_LAYERS = re.compile(r"(^|_)(layers|depths?|blocks)$")
_ELSEWHERE = {
    "backbone": "a backbone by its name",
    "use_timm_backbone": "a backbone of timm",
    "use_pretrained_backbone": "a backbone with weights of its own",
    "backbone_kwargs": "a backbone by its arguments",
    "auto_map": "code of its own",
    "trust_remote_code": "code of its own",
    "custom_pipelines": "code of its own",
    "quantization_config": "weights in another coding",
    "base_model_name_or_path": "another model that it is added to",
    "peft_config": "another model that it is added to",
}
"""What names things that do not lie in the folder, or code."""
_ADAPTER = "adapter_config.json"
_LABELS = ("id2label", "label2id")
_ALSO = (
    "model_type", "num_labels", "text_config_dict", "vision_config_dict", "torch_dtype",
    "out_features", "out_indices", *_LABELS,
)  # fmt: skip
"""Names that are understood beside the fields of a class."""
_NEVER = (
    "transformers_version", "architectures", "return_dict", "output_hidden_states", "output_attentions",
    "chunk_size_feed_forward", "disable_custom_kernels", "problem_type", "anchor_image_size",
)  # fmt: skip
"""Fields that change nothing about what a model computes, or that it is asked with otherwise than planned.

Anchors are those of the picture that is looked at; those of a size that a file names may fill all memory.
"""
_DTYPES = ("float32", "float16", "bfloat16", "float64")
_PART = re.compile(r"_config(_dict)?$")
_WHOLE = "save the whole model with `save_pretrained` into one folder; nothing is fetched and no code is run"


def image_types() -> tuple[str, ...]:
    """Types of models of transformers that look at pictures, alone or with texts."""
    named = [name for name in modeling_auto.MODEL_FOR_IMAGE_MAPPING_NAMES if "timm" not in name]
    return (*named, *_PAIRS)


def parsed(path: Path) -> dict[str, Any]:
    """A file of a folder of transformers that holds an object in JSON.

    Args:
        path: the file.

    Raises:
        InputError: if it cannot be read, is none, or reaches out of its folder.
    """
    where = shown(str(path))
    try:
        found = parse(decode(read_file(inside(path), where, _MOST_BYTES), where), where)
    except InputError as error:
        message = f"expected a folder of transformers with {path.name}: {error.message}"
        raise InputError(message, where=error.where, hint=error.hint) from error
    if not isinstance(found, dict):
        raise InputError("expected an object in JSON", where=where)
    return found


def inside(path: Path) -> Path:
    """The real path of a file of a model's folder, which must lie in it or in the hub's cache beside it.

    A snapshot of that cache (`snapshots/REVISION/`) is made of links to `../../blobs/`.

    Raises:
        InputError: if there is no such file, or a link leads elsewhere.
    """
    folder = path.parent.resolve()
    try:
        return confine(folder, path.name)
    except InputError as error:
        real = path.resolve() if "a link leads out" in error.message else folder
        if folder.parent.name == "snapshots" and real.parent == folder.parent.parent / "blobs":
            return real
        raise InputError(error.message, where=shown(str(path)), hint=error.hint) from error


def config_of(said: Mapping[str, Any], where: str) -> Any:
    """The config of transformers that a description makes, without what nobody here knows.

    Args:
        said: what config.json says.
        where: names the file in errors.

    Raises:
        InputError: if it names what does not lie in the folder, or a number is out of its limits.
        Exception: whatever the library raises where values are of the wrong kind.
    """
    check_config(said, where)
    kind: Any = transformers.CONFIG_MAPPING[str(said.get("model_type"))]
    config = kind.from_dict(_known(said, kind, where))
    for part in _parts(config):
        if hasattr(part, "disable_custom_kernels"):
            part.disable_custom_kernels = True
    return config


def check_config(said: Mapping[str, Any], where: str) -> None:
    """Refuse a description that names what does not lie in its folder, or numbers that are no model's.

    Args:
        said: what config.json, or a recipe, says.
        where: names it in errors.

    Raises:
        InputError: naming the field, what it may hold and what it holds.
    """
    for names, value in _walk(said, (), where):
        name = next(each for each in reversed(names) if isinstance(each, str))
        path = shown(".".join(map(str, names)), 100)
        if name in _ELSEWHERE and value and not _plain(names):
            raise InputError(
                f"{path} asks for {_ELSEWHERE[name]} ({shown(repr(value), 60)})", where=where, hint=_WHOLE
            )
        _check_value(name, value, path, where)


def refuse_adapter(folder: Path) -> None:
    """Refuse a folder of what is added to another model.

    Raises:
        InputError: if it is one.
    """
    if (folder / _ADAPTER).exists():
        hint = "add it to that model (`merge_and_unload`) and save the whole with `save_pretrained`"
        message = f"{_ADAPTER} says that it is added to another model, which is not fetched"
        raise InputError(message, where=str(folder), hint=hint)


def _walk(value: Any, names: tuple[Any, ...], where: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value with the names that lead to it; of lists and objects themselves too."""
    if len(names) > MOST_DEPTH:
        raise InputError(f"nested more than {MOST_DEPTH} deep", where=where)
    if names:
        yield names, value
    if isinstance(value, Mapping | list | tuple):
        if len(value) > MOST_ITEMS:
            raise InputError(
                f"{shown('.'.join(map(str, names)), 100)} holds {len(value):,} values", where=where
            )
        pairs: Any = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, each in pairs:
            yield from _walk(each, (*names, name), where)


def _check_value(name: str, value: Any, path: str, where: str) -> None:
    if isinstance(value, bool) or value is None or isinstance(value, Mapping | list | tuple):
        return
    if isinstance(value, str):
        if len(value) > MOST_LETTERS:
            raise InputError(f"{path} holds {len(value):,} letters", where=where)
    elif isinstance(value, int):
        low = 0 if _COUNTS.search(name) else -LARGEST
        high = DEEPEST if _LAYERS.search(name) else LARGEST
        if not low <= value <= high:
            told = f"{value:,}" if abs(value) < 1 << 64 else "an integer beyond 64 bits"
            raise InputError(f"{path} is {told}; it lies in {low:,} to {high:,}", where=where)
    elif not (isinstance(value, float) and math.isfinite(value)):
        raise InputError(f"{path} is {value!r}, which is no finite number", where=where)


def _plain(names: Sequence[Any]) -> bool:
    """Whether a name is that of a label, or of a DETR of which MaskFormer builds the decoder alone."""
    return any(name in (*_LABELS, "decoder_config") for name in names[:-1])


def _known(said: Mapping[str, Any], kind: Any, where: str) -> dict[str, Any]:
    """The values whose names a class of configs has, those of its parts alike."""
    named = {each.name for each in fields(kind)} | set(kind.attribute_map) | set(_ALSO)
    found: dict[str, Any] = {}
    for name, value in said.items():
        if name in named and name not in _NEVER:
            found[name] = _part(name, value, kind, where) if _PART.search(name) and value else value
    for name in ("dtype", "torch_dtype"):
        if str(found.get(name, _DTYPES[0])).removeprefix("torch.") not in _DTYPES:
            del found[name]
    return found


def _part(name: str, value: Any, kind: Any, where: str) -> dict[str, Any]:
    """The config of a part with the names that it knows.

    Raises:
        InputError: if it is none, or of a type that is not known here.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is the config of a part, not {shown(repr(value), 60)}", where=where)
    usual = getattr(getattr(kind, "sub_configs", {}).get(name.removesuffix("_dict")), "model_type", "")
    asked = str(value.get("model_type", usual))
    backbones = modeling_auto.MODEL_FOR_BACKBONE_MAPPING_NAMES
    if name == "decoder_config":
        plain = {key: each for key, each in value.items() if "backbone" not in key}
        return {**_known(plain, transformers.CONFIG_MAPPING["detr"], where), "model_type": "detr"}
    known = asked == usual or asked in _TEXTS or (asked in backbones and "timm" not in asked)
    if asked and not known:
        raise InputError(
            f"{name}.model_type is {shown(repr(asked), 60)}, which is not known here", where=where
        )
    try:
        part = transformers.CONFIG_MAPPING[asked]
    except KeyError:
        message = f"{name} should say its model_type, such as resnet or bert"
        raise InputError(message, where=where) from None
    return {**_known(value, part, where), "model_type": asked}


def _parts(config: Any) -> Iterator[Any]:
    """A config and those of its parts."""
    yield config
    for value in list(vars(config).values()):
        if isinstance(value, transformers.PreTrainedConfig):
            yield from _parts(value)
