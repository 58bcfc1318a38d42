"""Folders of object detectors as transformers keeps them: opened from the disk alone, and written."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import transformers

from roadaware import __version__
from roadaware.errors import InputError
from roadaware.io.files import build_disk_error, write_atomically
from roadaware.models.folder_configs import check_processor_fields, parse_folder_json
from roadaware.models.pretrained import load_pretrained_model, silence_transformers

FAMILIES = ("rt_detr", "rt_detr_v2", "d_fine")
"""Types of models that are known to end in boxes and one sigmoid for each class."""
SIZE_PX = (640, 640)
FACTS = "roadaware.json"
"""What a folder of ours says beside what transformers writes."""
_CONFIG, _PREPARATION, _WEIGHTS = "config.json", "preprocessor_config.json", "model.safetensors"
_FORMAT = 1

Preparation = tuple[tuple[int, int], list[float], list[float]]


def load_detector_model(folder: Path) -> Any:
    """The model with its weights; nothing is downloaded, and no code of the folder is run.

    Args:
        folder: with config.json and model.safetensors.

    Raises:
        InputError: if it is no such folder, of another kind of model, or has no safetensors.
        DamagedError: if the weights do not fit.
    """
    return load_pretrained_model(folder, FAMILIES, transformers.AutoModelForObjectDetection)


def get_class_labels(model: Any) -> list[str]:
    """The classes of a model, in the order of its scores."""
    labels = model.config.id2label
    return [str(labels[n]) for n in sorted(labels)]


def load_preparation(folder: Path) -> Preparation:
    """Height and width of images, mean and deviation, as the folder says, else as published.

    Args:
        folder: of a model.

    Raises:
        InputError: if what it says is not understood.
    """
    none, one = [0.0] * 3, [1.0] * 3
    if not os.path.lexists(folder / _PREPARATION):
        return SIZE_PX, none, one
    where = str(folder / _PREPARATION)
    try:
        said = check_processor_fields(parse_folder_json(folder / _PREPARATION), where)
        size = said.get("size") or {}
        size_px = (int(size.get("height", SIZE_PX[0])), int(size.get("width", SIZE_PX[1])))
        if not said.get("do_normalize", False):
            return size_px, none, one
        mean, std = ([float(n) for n in said[name]] for name in ("image_mean", "image_std"))
        if len(mean) != len(none) or len(std) != len(one):
            raise ValueError("image_mean and image_std have a number for each of three channels")
        return size_px, mean, std
    except (KeyError, TypeError, ValueError, AttributeError, InputError) as error:
        told = error.message if isinstance(error, InputError) else str(error)
        raise InputError(f"not understood how images are prepared: {told}", where=where) from error


def read_folder_facts(folder: Path, labels: Sequence[str]) -> dict[str, Any] | None:
    """Facts of a folder of ours: `kind` and `labels`, `version` and `notes`; None of a folder of others.

    Args:
        folder: of a model.
        labels: that the model distinguishes.

    Raises:
        InputError: if these are not the labels it says, or it is of another format.
    """
    path = folder / FACTS
    if not os.path.lexists(path):
        return None
    said = parse_folder_json(path)
    if said.get("format") != _FORMAT or not isinstance(said.get("kind"), str) or not said["kind"]:
        hint = f"open it with roadaware {str(said.get('version', 'of its time'))[:60]}"
        raise InputError(
            f"format {repr(said.get('format'))[:60]} is not {_FORMAT}", where=str(path), hint=hint
        )
    if said.get("labels") != list(labels):
        hint = f"take both from one run; without {FACTS} the names in {_CONFIG} alone count"
        raise InputError(
            f"it names the labels {str(said.get('labels'))[:200]}, and {_CONFIG} beside it {list(labels)}",
            where=str(path),
            hint=hint,
        )
    return said


def save_objects(
    folder: Path,
    model: Any,
    preparation: Preparation,
    kind: str,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model as `save_pretrained` does, with all that opening it needs beside it.

    Every file is replaced whole, the weights last.

    Args:
        folder: is made where it is not there.
        model: with its weights; its config names its labels.
        preparation: of images.
        kind: of the labels.
        notes: JSON-ready, such as how it was trained.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands, file by file.
    """
    (height, width), mean, std = preparation
    said = {
        "do_resize": True,
        "size": {"height": height, "width": width},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": mean != [0.0] * 3 or std != [1.0] * 3,
        "image_mean": mean,
        "image_std": std,
    }
    facts = {
        "format": _FORMAT,
        "version": __version__,
        "kind": kind,
        "labels": get_class_labels(model),
        "notes": dict(notes or {}),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as place, silence_transformers():
            model.save_pretrained(place, max_shard_size="1TB")
            config, weights = ((Path(place) / name).read_bytes() for name in (_CONFIG, _WEIGHTS))
    except OSError as error:
        raise build_disk_error(
            folder / _WEIGHTS, 4 * sum(p.numel() for p in model.parameters()), error
        ) from error
    write_atomically(folder / _CONFIG, config)
    write_atomically(folder / _PREPARATION, _text(said))
    write_atomically(folder / FACTS, _text(facts))
    write_atomically(folder / _WEIGHTS, weights)


def _text(said: Mapping[str, Any]) -> bytes:
    return (json.dumps(said, indent=2) + "\n").encode()
