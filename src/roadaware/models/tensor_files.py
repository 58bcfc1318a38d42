"""Files of tensors and how large networks may be: looked at before they are read; imports torch."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import re
import struct
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save
from torch import Tensor
from torch.nn.modules import module as parts
from torch.overrides import TorchFunctionMode

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.json import parse
from roadaware.io.sources import open_file, read_file, to_printable

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


_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
}  # fmt: skip
_MOST_HEADER, _METADATA = 1 << 25, "__metadata__"
_LENGTH = struct.Struct("<Q")
_WIDEST = 8
_CHUNK = 1 << 22
_AGAIN = "copy or download it again"
ARITHMETIC = (
    RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, MemoryError,
    AssertionError,
)  # fmt: skip
"""What Python and torch raise where numbers or their kinds do not go together."""
_DAMAGE = (*ARITHMETIC, EOFError, OSError, zipfile.BadZipFile)
_CODE = "the file holds more than tensors, which is not loaded since it could run code"


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, on the CPU, and its metadata.

    Raises:
        InputError: if it is no regular file, has more numbers than `get_parameter_limit`, or some are not finite.
        DamagedError: if it is not whole.
    """
    where = to_printable(str(path))
    with open_file(path, where, get_file_size_limit()) as stream:
        said = _header(stream, where)
    try:
        tensors: dict[str, Tensor] = tensors_of(read_file(path, where, get_file_size_limit()))
    except (SafetensorError, *_DAMAGE) as error:
        raise _broken(where, _first(error)) from error
    check_finite(tensors, where)
    return tensors, said


def digest_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and bytes of all tensors."""
    whole = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        whole.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def check_digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any], where: str) -> None:
    """Refuse tensors that are not those that were saved; files of earlier versions do not say which were.

    Args:
        tensors: of the file.
        facts: that it says; under `digest` as `digest_tensors` gave it.
        where: names the file in errors.

    Raises:
        DamagedError: if they are others.
    """
    if facts.get("digest", "") not in ("", digest_tensors(tensors)):
        raise DamagedError("the weights are not those that were saved", where=where, hint=_AGAIN)


def read_about(path: Path) -> dict[str, str]:
    """Metadata of a file of safetensors; tensors are not read.

    Raises:
        InputError: as `read_safetensors`.
    """
    with open_file(path, to_printable(str(path)), get_file_size_limit()) as stream:
        return _header(stream, to_printable(str(path)))


def parse_facts(about: Mapping[str, str], name: str, where: str) -> dict[str, Any]:
    """Parse a JSON object in the metadata of a file.

    Args:
        about: as `read_about` answers it.
        name: under which it stands; where it does not, there are no facts.
        where: names the file in errors.

    Raises:
        DamagedError: if it is none.
    """
    try:
        found = parse(about.get(name, "{}"), where)
    except InputError as error:
        message = f"what the file says cannot be read: {error.message}"
        raise DamagedError(message, where=error.where) from error
    if not isinstance(found, dict):
        raise DamagedError("what the file says is no object in JSON", where=where)
    return found


def read_pickled(path: Path) -> Any:
    """Read a file of `torch.save`: tensors and plain containers alone; no other object is created.

    Raises:
        InputError: if it is no regular file, holds more than tensors, or more numbers than `get_parameter_limit`.
        DamagedError: if it is not whole.
    """
    where = to_printable(str(path))
    with BufferedReader(open_file(path, where, get_file_size_limit())) as stream:
        try:
            _check_members(stream, where)
            stream.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # torch warns of old protocols before it refuses or reads them
                held = torch.load(stream, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise _build_unpickling_error(where, error) from error
        except (*_DAMAGE, RecursionError) as error:
            raise DamagedError(
                f"not a whole checkpoint: {_first(error)}", where=where, hint=_AGAIN
            ) from error
    return held


def check_finite(tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse weights that are no numbers, and tensors that are larger than what is stored of them.

    Raises:
        InputError: naming some.
    """
    odd = [name for name, each in tensors.items() if not _is_contiguously_stored(each)]
    if odd:
        raise InputError(f"no plain tensors: {_some(odd)}", where=where)
    refuse_many(sum(each.numel() for each in tensors.values()), where)
    bad = sorted(
        name
        for name, each in tensors.items()
        if (each.is_floating_point() or each.is_complex()) and not _is_finite(each)
    )
    if bad:
        raise InputError(f"not finite in the checkpoint: {_some(bad)}", where=where)


def _is_finite(tensor: Tensor) -> bool:
    # torch has no `isfinite` for most numbers of 8 bits.
    return bool(torch.isfinite(tensor.float() if tensor.element_size() == 1 else tensor).all())


def _header(stream: Any, where: str) -> dict[str, str]:
    """What a file of safetensors says of itself, once every tensor was found to be where it says."""
    length = stream.seek(0, 2)
    stream.seek(0)
    first = stream.read(_LENGTH.size)
    if len(first) < _LENGTH.size:
        raise _broken(where, f"{length} bytes are too few")
    (size,) = _LENGTH.unpack(first)
    # Checked before it is read: a damaged length would ask for all memory.
    if not 2 <= size <= min(_MOST_HEADER, length - _LENGTH.size):
        if first[:4] == b"PK\x03\x04" or (first[0] == 0x80 and first[1] <= pickle.HIGHEST_PROTOCOL):
            # As torch.save and pickle write them: another copy of it would be no better
            message = "not a whole safetensors file: a pickle, which could run code and is not opened"
            raise DamagedError(message, where=where, hint="save its weights as safetensors")
        raise _broken(where, f"its header says that it has {size:,} bytes")
    text = stream.read(size)
    try:
        said = parse(text.decode("utf-8").rstrip(" "), where)
    except UnicodeDecodeError as error:
        raise _broken(where, "its header is no text") from error
    except InputError as error:
        raise _broken(where, f"its header is {error.message}") from error
    if not isinstance(said, dict):
        raise _broken(where, "its header is no object")
    about = said.pop(_METADATA, {})
    if not isinstance(about, dict) or not all(isinstance(each, str) for each in about.values()):
        raise _broken(where, f"its {_METADATA} holds more than texts")
    places = sorted(_place(name, each, where) for name, each in said.items())
    at = 0
    for begin, end, _ in places:
        # The format has no gaps between tensors, and no overlaps.
        if begin != at:
            raise _broken(where, f"nothing stands at byte {min(begin, at):,} of its data, or two tensors do")
        at = end
    if at != length - _LENGTH.size - size:
        raise _broken(where, f"its tensors have {at:,} bytes and it has {length - _LENGTH.size - size:,}")
    refuse_many(sum(count for _, _, count in places), where)
    return about


def _place(name: str, said: Any, where: str) -> tuple[int, int, int]:
    """Where a tensor begins and ends, and how many numbers it has."""
    try:
        shape, (begin, end), bits = said["shape"], said["data_offsets"], _BITS[said["dtype"]]
        whole = all(type(n) is int and 0 <= n < 1 << 48 for n in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole or len(shape) > 16 or math.prod(shape) * bits != 8 * (end - begin):
        raise _broken(where, f"what it says of {to_printable(name, 60)} does not fit")
    return begin, end, math.prod(shape)


def _check_members(stream: Any, where: str) -> None:
    """Refuse an archive with packed members, which torch never writes, or with other bytes than were written.

    Packed members could unpack to anything, and torch itself compares no check sums: of flipped bits most would
    come through as other weights.
    """
    if not zipfile.is_zipfile(stream):
        return
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        for member in members:
            # Packed members may unpack to far more than the file holds.
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise InputError("its members are packed, which no checkpoint's are", where=where)
        # Thousands of members that share the same bytes would take hours to read.
        if sum(member.file_size for member in members) > stream.seek(0, 2):
            raise DamagedError("not a whole checkpoint: its members overlap", where=where, hint=_AGAIN)
        for member in members:
            if member.CRC:  # torch may be asked to leave check sums out
                with archive.open(member) as held:
                    while held.read(_CHUNK):
                        pass


def _build_unpickling_error(where: str, error: pickle.UnpicklingError) -> InputError:
    """What is wrong with a file that the unpickler for tensors refuses: code, or no checkpoint at all."""
    text = str(error)
    if "Unsupported global" in text or "WeightsUnpickler" in text or "Weights only" in text:
        hint = "ask for a plain state dict or a safetensors file"
        return InputError(_CODE, where=where, hint=hint)
    return DamagedError(f"not a checkpoint: {_first(error)}", where=where, hint="copy it again")


def get_file_size_limit() -> int:
    """How large a file of weights may be: eight bytes for each of the most parameters, and its header."""
    return _WIDEST * get_parameter_limit() + _MOST_HEADER


def _is_contiguously_stored(tensor: Tensor) -> bool:
    """Whether a tensor is dense and each of its numbers is stored: one that is repeated has no end."""
    plain = tensor.layout == torch.strided and not tensor.is_quantized and tensor.device.type == "cpu"
    # Of an expanded tensor, a few stored numbers stand for any count of them.
    return plain and tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()


def _broken(where: str, what: str) -> DamagedError:
    return DamagedError(f"not a whole safetensors file: {what}", where=where, hint=_AGAIN)


def _first(error: BaseException) -> str:
    return to_printable((str(error).splitlines() or [type(error).__name__])[0])


def _some(names: list[str]) -> str:
    text = ", ".join(to_printable(name, 60) for name in names[:4])
    return text + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# Tensors of checkpoints that others wrote, read without running anything in the file; imports torch.

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
    prefix = "module."
    if all(name.startswith(prefix) for name in tensors):
        return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors


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


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as one file of safetensors, each with memory of its own.

    Raises:
        DiskError: if it cannot be written.
    """
    write_atomically(path, save({name: each.detach().clone().contiguous() for name, each in tensors.items()}))
