"""Folders as transformers keeps them, from the disk alone: checked configs, weights, preparation of inputs."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from tokenizers import Tokenizer
from torch import nn
from transformers.models.auto import modeling_auto

from roadaware.arrays import Pixels
from roadaware.config import is_number
from roadaware.errors import DamagedError, InputError, raise_interrupt
from roadaware.io.json import decode, parse
from roadaware.io.sources import read_file, resolve_inside, to_printable
from roadaware.models.offline import block_network
from roadaware.models.tensor_files import ARITHMETIC, limit_network_size, read_safetensors, refuse_many

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

Anchors are those of the image that is looked at; those of a size that a file names may fill all memory.
"""
_DTYPES = ("float32", "float16", "bfloat16", "float64")
_PART = re.compile(r"_config(_dict)?$")
_WHOLE = "save the whole model with `save_pretrained` into one folder; nothing is fetched and no code is run"


def list_image_types() -> tuple[str, ...]:
    """Types of models of transformers that look at images, alone or with texts."""
    named = [name for name in modeling_auto.MODEL_FOR_IMAGE_MAPPING_NAMES if "timm" not in name]
    return (*named, *_PAIRS)


def parse_folder_json(path: Path) -> dict[str, Any]:
    """A file of a folder of transformers that holds an object in JSON.

    Raises:
        InputError: if it cannot be read, is none, or reaches out of its folder.
    """
    where = to_printable(str(path))
    try:
        found = parse(decode(read_file(resolve_model_file(path), where, _MOST_BYTES), where), where)
    except InputError as error:
        message = f"expected a folder of transformers with {path.name}: {error.message}"
        raise InputError(message, where=error.where, hint=error.hint) from error
    if not isinstance(found, dict):
        raise InputError("expected an object in JSON", where=where)
    return found


def resolve_model_file(path: Path) -> Path:
    """The real path of a file of a model's folder, which must lie in it or in the hub's cache beside it.

    A snapshot of that cache (`snapshots/REVISION/`) is made of links to `../../blobs/`.

    Raises:
        InputError: if there is no such file, or a link leads elsewhere.
    """
    folder = path.parent.resolve()
    try:
        return resolve_inside(folder, path.name)
    except InputError as error:
        real = path.resolve() if "a link leads out" in error.message else folder
        if folder.parent.name == "snapshots" and real.parent == folder.parent.parent / "blobs":
            return real
        raise InputError(error.message, where=to_printable(str(path)), hint=error.hint) from error


def build_transformers_config(said: Mapping[str, Any], where: str) -> Any:
    """Build the config of transformers from a description, without unknown fields.

    Args:
        said: what config.json says.
        where: names the file in errors.

    Raises:
        InputError: if it names what does not lie in the folder, or a number is out of its limits.
        Exception: whatever the library raises where values are of the wrong kind.
    """
    check_config(said, where)
    kind: Any = transformers.CONFIG_MAPPING[str(said.get("model_type"))]
    config = kind.from_dict(_select_known_fields(said, kind, where))
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
        path = to_printable(".".join(map(str, names)), 100)
        if (
            name in _ELSEWHERE
            and value
            and not any(name in (*_LABELS, "decoder_config") for name in names[:-1])
        ):
            raise InputError(
                f"{path} asks for {_ELSEWHERE[name]} ({to_printable(repr(value), 60)})",
                where=where,
                hint=_WHOLE,
            )
        if not (isinstance(value, bool) or value is None or isinstance(value, Mapping | list | tuple)):
            if isinstance(value, str):
                if len(value) > MOST_LETTERS:
                    raise InputError(f"{path} holds {len(value):,} letters", where=where)
            elif isinstance(value, int):
                low = 0 if _COUNTS.search(name) else -LARGEST
                high = DEEPEST if _LAYERS.search(name) else LARGEST
                if not low <= value <= high:
                    text = f"{value:,}" if abs(value) < 1 << 64 else "an integer beyond 64 bits"
                    raise InputError(f"{path} is {text}; it lies in {low:,} to {high:,}", where=where)
            elif not (isinstance(value, float) and math.isfinite(value)):
                raise InputError(f"{path} is {value!r}, which is no finite number", where=where)


def refuse_adapter(folder: Path) -> None:
    """Refuse an adapter, which needs another model.

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
                f"{to_printable('.'.join(map(str, names)), 100)} holds {len(value):,} values", where=where
            )
        pairs: Any = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, each in pairs:
            yield from _walk(each, (*names, name), where)


def _select_known_fields(said: Mapping[str, Any], kind: Any, where: str) -> dict[str, Any]:
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
        raise InputError(f"{name} is the config of a part, not {to_printable(repr(value), 60)}", where=where)
    usual = getattr(getattr(kind, "sub_configs", {}).get(name.removesuffix("_dict")), "model_type", "")
    asked = str(value.get("model_type", usual))
    backbones = modeling_auto.MODEL_FOR_BACKBONE_MAPPING_NAMES
    if name == "decoder_config":
        plain = {key: each for key, each in value.items() if "backbone" not in key}
        return {
            **_select_known_fields(plain, transformers.CONFIG_MAPPING["detr"], where),
            "model_type": "detr",
        }
    known = asked == usual or asked in _TEXTS or (asked in backbones and "timm" not in asked)
    if asked and not known:
        raise InputError(
            f"{name}.model_type is {to_printable(repr(asked), 60)}, which is not known here", where=where
        )
    try:
        part = transformers.CONFIG_MAPPING[asked]
    except KeyError:
        message = f"{name} should say its model_type, such as resnet or bert"
        raise InputError(message, where=where) from None
    return {**_select_known_fields(value, part, where), "model_type": asked}


def _parts(config: Any) -> Iterator[Any]:
    """A config and those of its parts."""
    yield config
    for value in list(vars(config).values()):
        if isinstance(value, transformers.PreTrainedConfig):
            yield from _parts(value)


# How a folder of transformers prepares images, taken only as far as it is known and within limits.

MOST_PX = 4096
"""The longest side that images are brought to; the largest of a supported model is 1,333."""
# The numbers of Pillow's six resampling filters.
_FILTERS = range(6)
_FLAGS = (
    "do_resize", "do_rescale", "do_normalize", "do_center_crop", "do_pad", "do_convert_rgb",
    "do_reduce_labels", "reduce_labels", "do_flip_channel_order", "default_to_square", "rescale",
)  # fmt: skip
_SIZES = ("size", "crop_size", "pad_size", "max_size", "size_divisor", "size_divisibility")
_SIDES = ("height", "width", "shortest_edge", "longest_edge", "max_height", "max_width")
_PICTURES_LABELS = ("ignore_index", "num_labels")
_MOST_LABELS = 1 << 16
_USUAL = {
    "segformer": "Segformer", "upernet": "Segformer", "mask2former": "Mask2Former",
    "maskformer": "MaskFormer",
    "grounding-dino": "GroundingDino", "mm-grounding-dino": "GroundingDino", "owlv2": "Owlv2",
    "owlvit": "OwlViT", "clip": "CLIP",
}  # fmt: skip
_ENDS = ("ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor")


def build_image_processor(said: Mapping[str, Any], family: str, where: str) -> Any:
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
    return kind(**check_processor_fields(said, where))


def check_processor_fields(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a description that are known, each of which holds what it can hold.

    Args:
        said: what preprocessor_config.json says.
        where: names the file in errors.

    Raises:
        InputError: naming the field and what it holds.
    """
    return {name: _value(name, value, where) for name, value in said.items() if _is_known_picture_key(name)}


def _class(named: str, where: str) -> Any:
    """The processor of transformers of that name that needs no torchvision."""
    base = next((named.removesuffix(end) for end in _ENDS if named.endswith(end)), "")
    for end in ("ImageProcessorPil", "ImageProcessor"):
        found = getattr(transformers, base + end, None) if base.isidentifier() else None
        if isinstance(found, type) and hasattr(found, "preprocess") and found.__module__.startswith("transf"):
            return found
    raise InputError(
        f"image_processor_type is {to_printable(repr(named), 60)}, which is not known", where=where
    )


def _is_known_picture_key(name: str) -> bool:
    return name in (
        *_FLAGS,
        *_SIZES,
        *_PICTURES_LABELS,
        "resample",
        "rescale_factor",
        "image_mean",
        "image_std",
    )


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
        # Whether it is a side, a pair of them, or sides by name, of up to `MOST_PX` pixels.
        if isinstance(value, Mapping):
            fits = (
                bool(value) and set(value) <= set(_SIDES) and all(_is_side(each) for each in value.values())
            )
        elif isinstance(value, list):
            fits = len(value) == 2 and all(map(_is_side, value))
        else:
            fits = _is_side(value)
    elif name in _PICTURES_LABELS:
        fits = type(value) is int and -_MOST_LABELS <= value <= _MOST_LABELS
    elif name == "resample":
        fits = type(value) is int and value in _FILTERS
    elif name == "rescale_factor":
        fits = is_number(value) and 0 < value <= 1
    else:
        # Whether it is a number, or one for each channel; of images in [0, 1] or in [0, 255].
        least = 0.0 if name == "image_mean" else 1e-6
        values = value if isinstance(value, list) else [value]
        whole = all(is_number(each) and math.isfinite(each) and least <= each <= 255 for each in values)
        fits = whole and len(values) in (1, 3)
    if not fits:
        raise InputError(f"{name} cannot be {to_printable(repr(value), 60)}", where=where)
    return value


def _is_side(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MOST_PX


# The words of a folder of transformers: what makes tokens of texts, of parts that always come to an end.

TOKENIZER, VOCABULARY, WORDS, MERGES = "tokenizer.json", "vocab.json", "vocab.txt", "merges.txt"
_WORDS_MOST_BYTES = 1 << 26
_COPY = "copy it from where the model was published"
_MOST_PATTERN = 400
_MOST_GROWTH = 10_000
"""Letters that a tokenizer may make of one; one of XLM-RoBERTa comes to 800, one of CLIP to 16."""
_MOST_CHARSMAP = 1 << 20
_AHEAD = re.compile(r"\(\?[!=]\\[sS]\)|\(\?i:[^()*+{}|]*\)")
_ATOM = re.compile(r"\\.|\[(?:\\.|\[:\w+:\]|[^\\\]])*\]")


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load a tokenizer, without padding and truncation.

    Args:
        folder: with tokenizer.json; or with vocab.txt, or vocab.json and merges.txt, as older ones have it.

    Raises:
        InputError: if it is not there, is none, or looks for patterns that could take forever.
    """
    path = next((folder / name for name in (TOKENIZER, WORDS, VOCABULARY) if (folder / name).exists()), None)
    if path is None:
        raise InputError(f"there is no {TOKENIZER}, so texts cannot be read", where=str(folder), hint=_COPY)
    where = to_printable(str(path))
    with _wrap_library_errors("no tokenizer", where):
        found = _read(path, where) if path.name == TOKENIZER else _older(path, where)
        found.no_padding()
        found.no_truncation()
    return found


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Any]:
    """Tokens of texts with their places.

    Args:
        tokenizer: as `load_tokenizer` makes it.
        texts: any.

    Raises:
        InputError: if it cannot make tokens of them, such as one that lacks its mark for unknown words.
    """
    with _wrap_library_errors("the tokenizer of the model cannot read these texts", None):
        return list(tokenizer.encode_batch(list(texts)))


@contextmanager
def _wrap_library_errors(what: str, where: str | None) -> Iterator[None]:
    """Within: whatever the library raises is an error of its file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error.message}", where=error.where, hint=error.hint) from error
    except BaseException as error:  # plain exceptions, and panics, which are none
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise_interrupt(error)
        text = to_printable(" ".join(str(error).split()) or type(error).__name__)
        raise InputError(f"{what}: {text}", where=where) from error


def _read(path: Path, where: str) -> Tokenizer:
    """The tokenizer that a file describes."""
    text = decode(read_file(resolve_model_file(path), where, _WORDS_MOST_BYTES), where)
    growth = 1
    for part in _list_tokenizer_parts(parse(text, where)):
        if "Regex" in part and not is_safe_pattern(part["Regex"]):
            raise InputError(
                f"a pattern that could take forever: {to_printable(str(part['Regex']), 80)}", where=where
            )
        # Parts work on what the one before made: 40 that double a letter fill all memory.
        growth *= _measure_growth(part, where)
        if growth > _MOST_GROWTH:
            raise InputError(f"its parts make more than {_MOST_GROWTH:,} letters of one", where=where)
    return Tokenizer.from_str(text)


def is_safe_pattern(pattern: Any) -> bool:
    """Whether a regular expression has no group and at most one repetition in each of its alternatives.

    So the time that it takes grows with the text and no faster than its square.

    Args:
        pattern: as tokenizer.json holds it.
    """
    if not isinstance(pattern, str) or len(pattern) > _MOST_PATTERN:
        return False
    plain = _ATOM.sub("x", _AHEAD.sub("x", pattern))
    return "(" not in plain and all(len(re.findall(r"[*+{]", part)) <= 1 for part in plain.split("|"))


def _list_tokenizer_parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of a description, wherever it stands but in its vocabulary and what turns tokens into text."""
    if isinstance(value, dict):
        yield value
        for name, each in value.items():
            if name not in ("vocab", "merges", "added_tokens", "decoder"):
                yield from _list_tokenizer_parts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _list_tokenizer_parts(each)


def _measure_growth(part: Mapping[str, Any], where: str) -> int:
    """At most how many letters or tokens a part of a tokenizer makes of one.

    Raises:
        InputError: if a text of it is longer than any tokenizer's.
    """
    for name, each in part.items():
        most = _MOST_CHARSMAP if name == "precompiled_charsmap" else MOST_LETTERS
        if isinstance(each, str) and len(each) > most:
            raise InputError(f"{to_printable(name, 60)} holds {len(each):,} letters", where=where)
    match part.get("type"):
        case "Replace" | "Prepend":
            # A pattern may match between two letters, which stay beside what is put there.
            return 1 + len(str(part.get("content") or part.get("prepend") or ""))
        case "ByteLevel" | "Metaspace":
            return 2
        case "Precompiled":
            return 100
        case "TemplateProcessing":
            ids = [each.get("ids") for each in _list_tokenizer_parts(part.get("special_tokens"))]
            longest = max((len(each) for each in ids if isinstance(each, list)), default=1)
            return (1 + len(part.get("single") or ())) * max(1, longest)
        case _:
            return 1


def _older(path: Path, where: str) -> Tokenizer:
    """The tokenizer of a vocabulary as older versions kept it: of BERT, or of CLIP."""
    folder = path.parent
    if path.name == WORDS:
        words = _lines(path)
        low = _settings(folder).get("do_lower_case", True) is not False
        held = {word: n for n, word in enumerate(words)}
        made: Any = transformers.BertTokenizer(vocab=held, do_lower_case=low)
    else:
        found = parse(decode(read_file(resolve_model_file(path), where, _WORDS_MOST_BYTES), where), where)
        if not isinstance(found, dict) or not all(type(n) is int and n >= 0 for n in found.values()):
            raise InputError("expected words with their numbers", where=where)
        pairs: Any = [tuple(line.split(" ")) for line in _lines(folder / MERGES) if line and line[0] != "#"]
        if any(len(pair) != 2 for pair in pairs):
            raise InputError("expected two parts of words in each line", where=str(folder / MERGES))
        made = transformers.CLIPTokenizer(vocab=found, merges=pairs)
    return Tokenizer.from_str(made.backend_tokenizer.to_str())


def _lines(path: Path) -> list[str]:
    where = to_printable(str(path))
    text = decode(read_file(resolve_model_file(path), where, _WORDS_MOST_BYTES), where)
    return re.split(r"\r\n|\r|\n", text.rstrip("\r\n"))  # words of vocabularies hold other breaks of lines


def _settings(folder: Path) -> dict[str, Any]:
    """Content of tokenizer_config.json; empty where there is none."""
    path = folder / "tokenizer_config.json"
    return parse_folder_json(path) if path.exists() else {}


_PREPARATIONS = ("preprocessor_config.json", "processor_config.json")
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_FILES, _MOST_NAMED = 256, 20
Preparer = Callable[[Sequence[Pixels]], dict[str, torch.Tensor]]
"""Images of one size to what a model takes: `pixel_values` (B, 3, h, w), perhaps `pixel_mask` (B, h, w)."""


def read_model_type(folder: Path) -> str:
    """The type of model that a folder says it holds.

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
            raise DamagedError(
                f"the model cannot be made: {error.message}", where=error.where, hint=error.hint
            ) from error
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
