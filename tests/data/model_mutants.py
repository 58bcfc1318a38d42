"""Mutants of what is opened as a model or recipe: files of tiny models, each with one thing that is hostile.

A mutant is told by its target, a seed and its number alone.
"""

from __future__ import annotations

import copy
import io
import json
import random
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants import KINDS, mutated

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 1000, 10**6, 2**31, 2**63, 10**30, -(10**9), 0.0, -0.5, 1e-300,
    1e300, float("nan"), float("inf"), "", "a", "some/repo", "../../x", "/etc/passwd", "\x00", "ü" * 50,
    "x" * 5000,
    [], [0], [1, 2, 3], [-1] * 4, [10**6] * 4, [[[[[[]]]]]], ["a", None], {}, {"a": 1},
    {"model_type": "timm_backbone"},
    {"model_type": "bert"}, {"backbone": "some/repo"},
)  # fmt: skip
"""What is put in the place of values."""
FIELDS = (
    "backbone", "use_timm_backbone", "auto_map", "quantization_config", "_attn_implementation", "model_type",
    "fusion_config", "dtype", "return_dict", "out_features", "image_processor_type", "size", "torch_dtype",
)  # fmt: skip
"""What is added to objects."""
PLAIN = (
    "!!bool maybe", "!!timestamp foo", "!!int ''", "!!binary x", "!!python/object/apply:os.system [x]",
    "&a [1]",
    "*a", "yes", "1:30", "2001-01-01", ".nan", ".inf", "1e400", "0o17", "0755", "~", "[" * 80,
    "{a: {b: [1]}}",
    "9" * 5000, "'", '"\\0"', "<<", "- x", "? y", "|\n  text",
    "% x", "@", "`", "\u202e", "\x07", "-1", "1e308", "1_0",
)  # fmt: skip
"""What is put into recipes."""
Make = Callable[[Path], None]


def change_value(value: Any, rng: random.Random) -> Any:
    """Plain data of which one value, somewhere, is another, is gone, or has a neighbour."""
    places: list[tuple[Any, Any]] = []

    def walk(held: Any) -> None:
        pairs = held.items() if isinstance(held, dict) else enumerate(held)
        for key, each in list(pairs):
            places.append((held, key))
            if isinstance(each, dict | list):
                walk(each)

    root = {"": value}
    walk(root)
    held, key = rng.choice(places)
    way = rng.random()
    if way < 0.08 and key != "":
        del held[key]
    elif way < 0.2 and isinstance(held[key], dict):
        held[key][rng.choice(FIELDS)] = copy.deepcopy(rng.choice(VALUES))
    elif way < 0.3 and isinstance(held[key], int | float) and not isinstance(held[key], bool):
        held[key] = held[key] * rng.choice((-1, 0, 2, 10, 1000, 0.5))
    else:
        held[key] = copy.deepcopy(rng.choice(VALUES))
    return root[""]


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes with some changes that know nothing of their meaning."""
    kinds = rng.choices(sorted(KINDS), k=rng.randint(1, 3))
    return mutated(data, [(kind, rng.random(), rng.random()) for kind in kinds])


def change_json(data: bytes, rng: random.Random) -> bytes:
    """A document of JSON with one to three values changed, or its bytes."""
    if rng.random() < 0.15:
        return change_bytes(data, rng)
    held = json.loads(data)
    for _ in range(rng.randint(1, 3)):
        held = change_value(held, rng)
    return json.dumps(held).encode("utf-8", "surrogatepass")


def change_safetensors(data: bytes, rng: random.Random) -> bytes:
    """A file of tensors whose facts, header or bytes are changed."""
    (size,) = struct.unpack_from("<Q", data)
    if rng.random() < 0.15:
        return change_bytes(data, rng)
    header, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    if rng.random() < 0.75 and "roadaware" in header.get("__metadata__", {}):
        about = header["__metadata__"]
        about["roadaware"] = change_json(about["roadaware"].encode(), rng).decode("utf-8", "replace")
    else:
        header = change_value(header, rng)
    text = json.dumps(header).encode()
    length = len(text) if rng.random() < 0.95 else rng.choice((0, 2**63, 2**40, len(data), 1))
    return struct.pack("<Q", length) + text + rest


def change_arrays(data: bytes, rng: random.Random) -> bytes:
    """An archive of arrays with its facts, an array or its packing changed."""
    if rng.random() < 0.15:
        return change_bytes(data, rng)
    whole = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = "facts.json" if rng.random() < 0.6 else rng.choice(sorted(members))
    way = zipfile.ZIP_DEFLATED if rng.random() < 0.9 else rng.choice((zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2))
    change = change_json if name == "facts.json" else change_bytes
    members[name] = change(members[name], rng)
    with zipfile.ZipFile(whole, "w", way) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return whole.getvalue()


def change_recipe(data: bytes, rng: random.Random) -> bytes:
    """A recipe with the value of a line, or a line, that is hostile."""
    if rng.random() < 0.2:
        return change_bytes(data, rng)
    lines = data.decode().splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        name, colon, _value = lines[at].partition(":")
        plain = rng.choice(PLAIN) if rng.random() < 0.6 else json.dumps(rng.choice(VALUES))
        lines[at] = f"{name}: {plain}" if colon and rng.random() < 0.8 else f"{lines[at]}\n{plain}: {plain}"
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def make_mutant(target: str, originals: Path, place: Path, number: int, seed: int) -> Path:
    """Write a mutant; where it is.

    Args:
        target: of `CHANGES`.
        originals: folder that `model_originals` filled.
        place: an empty folder.
        number, seed: of the mutant.
    """
    rng = random.Random(f"{target} {seed} {number}")  # noqa: S311 - mutants, not secrets
    source = rng.choice(sorted((originals / target).iterdir()))
    there = place / source.name
    if source.is_dir():
        shutil.copytree(source, there)
        wanted = [p for p in sorted(there.iterdir()) if p.suffix == ".json"]
        path = rng.choice([*wanted, *(p for p in there.iterdir() if p.name == "config.json"), *wanted[:1]])
        change = change_json
        if rng.random() < 0.03:
            path, change = rng.choice(sorted(there.glob("*.safetensors"))), change_safetensors
        path.write_bytes(change(path.read_bytes(), rng))
    else:
        there.write_bytes(CHANGES[source.suffix](source.read_bytes(), rng))
    return there


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".yaml": change_recipe,
    ".safetensors": change_safetensors,
    ".npz": change_arrays,
}
TARGETS = ("recipes", "facts", "predictors", "model-folders")
