"""Stand-ins for the four names by which numpy writes arrays into pickles; they check, and run nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
NAMES = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    **{(module, name): name for module in _MULTIARRAY for name in ("_reconstruct", "scalar")},
}
_TYPE = re.compile(r"[biuf][1248]|[SU]\d{1,6}", re.ASCII)
_NUMBERS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
_ORDERS = {"|": "<", "=": "<", "<": "<", ">": ">"}
_MOST_DIMENSIONS, _FREE_LENGTH = 8, 4096
_VERSION, _FLAGS = 3, (0, 8)  # of a type's state; 8 is set for text alone
_LAST_CHARACTER, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)


class RefusalError(Exception):
    """Why a pickle is not read."""


class Named:
    """One of the four names, as it lies on the stack: it can be called, by `call`, and nothing else."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Type:
    """A numpy dtype that is being read: its code, such as `f4`, and its byte order."""

    __slots__ = ("built", "code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order, self.built = code, "<", False

    def build(self, state: Any) -> None:
        """Take the byte order from a state (version, order, None, None, None, size, alignment, flags).

        Raises:
            RefusalError: if it describes anything but a plain type of that size.
        """
        if type(state) is not tuple or len(state) != 8 or self.built:
            raise RefusalError("a type of numpy in an unknown form")
        order, size = state[1], state[5]
        if state[0] != _VERSION or type(state[6]) is not int or state[7] not in _FLAGS:
            raise RefusalError("a type of numpy in a form that plain types do not have")
        if any(part is not None for part in state[2:5]):
            raise RefusalError("an array with fields; only arrays of numbers, truth values and text are read")
        if type(order) is not str or order not in _ORDERS or size not in (-1, self.dtype.itemsize):
            raise RefusalError(f"a type {self.code} of an unknown order or size")
        self.order, self.built = _ORDERS[order], True

    @property
    def dtype(self) -> np.dtype[Any]:
        """As numpy calls it."""
        return _dtype(self.order + self.code)


class Array:
    """An array that is being read: first empty, then, by `build`, with its content in `value`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: npt.NDArray[Any] | None = None

    def build(self, state: Any) -> npt.NDArray[Any]:
        """The array of a state (version, shape, type, whether by columns, raw bytes).

        Raises:
            RefusalError: if shape, type and bytes do not fit together, or it holds objects.
        """
        if type(state) is not tuple or len(state) != 5 or self.value is not None:
            raise RefusalError("an array in an unknown form")
        version, shape, kind, by_columns, raw = state
        if version != 1 or type(by_columns) is not bool:
            raise RefusalError("an array in an unknown form")
        raw = raw.encode("latin-1") if type(raw) is str else raw
        if type(kind) is not Type or type(shape) is not tuple or type(raw) is not bytes:
            raise RefusalError("an array whose type, shape or content is no such thing")
        dtype = kind.dtype
        if len(shape) > _MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
            raise RefusalError(f"an array of {len(shape)} dimensions, or of one that is no whole number")
        if any(n > max(len(raw), _FREE_LENGTH) for n in shape) or dtype.itemsize == 0:
            raise RefusalError("an array that is larger than its content")
        if prod(shape) * dtype.itemsize != len(raw):
            raise RefusalError(
                f"an array of {'x'.join(map(str, shape))} {kind.code} with {len(raw)} bytes of content"
            )
        flat = sound(np.frombuffer(raw, dtype))
        self.value = flat.reshape(shape, order="F" if by_columns else "C")
        return self.value


def call(name: str, arguments: Any) -> Any:
    """What one of the four names makes of its arguments: a `Type`, an `Array` or a plain number or text.

    Raises:
        RefusalError: if it is not called as numpy does.
    """
    if type(arguments) is tuple:
        if name == "dtype" and len(arguments) == 3 and arguments[1:] in ((False, True), (0, 1)):
            return Type(_code(arguments[0]))
        if name == "scalar" and len(arguments) == 2:
            return _scalar(*arguments)
        if name == "_reconstruct" and len(arguments) == 3:
            kind, rest = arguments[0], arguments[1:]
            if type(kind) is Named and kind.name == "ndarray" and rest in (((0,), b"b"), ((0,), "b")):
                return Array()
    raise RefusalError(f"'{name}' of numpy called in an unknown way")


def sound(flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers in this machine's byte order; texts and truth values only where they are such.

    Args:
        flat: (n,) as it was written.

    Raises:
        RefusalError: if a truth value is neither 0 nor 1, or a text holds what is no character.
    """
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise RefusalError("truth values other than 0 and 1")
    if flat.dtype.kind == "U" and flat.size:
        points = flat.view(f"{flat.dtype.str[0]}u4")
        low, high = _SURROGATES
        if points.max() > _LAST_CHARACTER or ((points >= low) & (points <= high)).any():
            raise RefusalError("text with something in it that is no character")
    return flat if flat.dtype.isnative else flat.astype(flat.dtype.newbyteorder("="))


def _scalar(kind: Any, raw: Any) -> Any:
    raw = raw.encode("latin-1") if type(raw) is str else raw
    if type(kind) is not Type or type(raw) is not bytes or len(raw) != kind.dtype.itemsize:
        raise RefusalError("a number of numpy whose type and content do not fit together")
    if not raw:
        return "" if kind.code[0] == "U" else b""
    return sound(np.frombuffer(raw, kind.dtype))[0].item()


def _code(code: Any) -> str:
    """A type's code, if it is one of the plain ones."""
    if type(code) is bytes:
        code = code.decode("latin-1")
    if type(code) is str and code.startswith("O"):
        raise RefusalError("an array of objects; only numbers, truth values and text are read")
    if type(code) is not str or not _TYPE.fullmatch(code) or (code[0] in "biuf" and code not in _NUMBERS):
        raise RefusalError("an array that is not of plain numbers, truth values or text")
    return code


@lru_cache(maxsize=1024)
def _dtype(code: str) -> np.dtype[Any]:
    return np.dtype(code)
