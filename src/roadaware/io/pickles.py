"""Pickles read and written as data: plain containers and numpy arrays; whatever else a pickle asks for is refused."""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError

# Stand-ins for the four names by which numpy writes arrays into pickles; they check, and run nothing.

_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
NAMES = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    **{(module, name): name for module in _MULTIARRAY for name in ("_reconstruct", "scalar")},
}
# No objects (O), fields (V) or times (M, m): numbers, truth values and text alone.
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
        # Python 2 wrote bytes as text; latin-1 gives each its byte back.
        raw = raw.encode("latin-1") if type(raw) is str else raw
        if type(kind) is not Type or type(shape) is not tuple or type(raw) is not bytes:
            raise RefusalError("an array whose type, shape or content is no such thing")
        dtype = kind.dtype
        if len(shape) > _MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
            raise RefusalError(f"an array of {len(shape)} dimensions, or of one that is no whole number")
        # (0, 10**18) holds the bytes that it promises, none, and breaks whatever loops over it.
        if any(n > max(len(raw), _FREE_LENGTH) for n in shape) or dtype.itemsize == 0:
            raise RefusalError("an array that is larger than its content")
        if prod(shape) * dtype.itemsize != len(raw):
            raise RefusalError(
                f"an array of {'x'.join(map(str, shape))} {kind.code} with {len(raw)} bytes of content"
            )
        flat = validate_array(np.frombuffer(raw, dtype))
        self.value = flat.reshape(shape, order="F" if by_columns else "C")
        return self.value


def call(name: str, arguments: Any) -> Any:
    """Call one of the four names with its arguments; returns a `Type`, an `Array` or a plain number or text.

    Raises:
        RefusalError: if it is not called as numpy does.
    """
    if type(arguments) is tuple:
        if name == "dtype" and len(arguments) == 3 and arguments[1:] in ((False, True), (0, 1)):
            # A type's code, if it is one of the plain ones
            code = arguments[0]
            if type(code) is bytes:
                code = code.decode("latin-1")
            if type(code) is str and code.startswith("O"):
                raise RefusalError("an array of objects; only numbers, truth values and text are read")
            if (
                type(code) is not str
                or not _TYPE.fullmatch(code)
                or (code[0] in "biuf" and code not in _NUMBERS)
            ):
                raise RefusalError("an array that is not of plain numbers, truth values or text")
            return Type(code)
        if name == "scalar" and len(arguments) == 2:
            return _scalar(*arguments)
        if name == "_reconstruct" and len(arguments) == 3:
            kind, rest = arguments[0], arguments[1:]
            if type(kind) is Named and kind.name == "ndarray" and rest in (((0,), b"b"), ((0,), "b")):
                return Array()
    raise RefusalError(f"'{name}' of numpy called in an unknown way")


def validate_array(flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
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
    return validate_array(np.frombuffer(raw, kind.dtype))[0].item()


@lru_cache(maxsize=1024)
def _dtype(code: str) -> np.dtype[Any]:
    return np.dtype(code)


# The words of the pickle language that make data, each as a small function on a stack.

# An empty list is one byte of a pickle and 56 of memory: containers are counted.
_FREE_OBJECTS = 1 << 18
_LATEST = 5
# 128 bits: turning long numbers into digits takes time that grows with the square of their length.
_LONGEST_LINE, _LONGEST_NUMBER = 1 << 20, 16
# Plain keys, and of whole numbers small ones: large ones can be chosen to have the same hash.
_KEYS = frozenset({str, bytes, int, bool, type(None)})


class Machine:
    """A reader of the pickle language without the words that call, import or look outside.

    Args:
        data: the whole pickle.
    """

    __slots__ = ("at", "data", "fence", "framed", "made", "marks", "memo", "most", "place", "room", "stack")

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.place, self.framed, self.fence = data, 0, 0, 0, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.made = 0
        self.most = _FREE_OBJECTS + len(data) // 12
        self.room = _FREE_OBJECTS + len(data) // 4

    def run(self) -> Any:
        """The one value that the pickle holds.

        Raises:
            RefusalError: if it asks for what is not allowed.
            IndexError, ValueError, TypeError, struct.error: if it is damaged.
        """
        data, words = self.data, _WORDS
        while True:
            self.place = at = self.at
            word = data[at]
            self.at = at + 1
            if word == _STOP:
                break
            does = words[word]
            if does is None:
                raise RefusalError(_describe_opcode(word))
            does(self)
        if self.at != len(data):
            raise RefusalError(f"{len(data) - self.at} bytes behind its end")
        if len(self.stack) != 1 or self.marks:
            raise ValueError("more or less than one value")
        return self.stack[0]

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise ValueError("the end comes too soon")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, size: int, *, signed: bool = False) -> int:
        """The next bytes as one whole number."""
        return int.from_bytes(self.take(size), "little", signed=signed)

    def byte(self) -> int:
        """The next byte."""
        value = self.data[self.at]
        self.at += 1
        return value

    def line(self) -> bytes:
        """The bytes to the end of the line."""
        # Bounded, or else a file without line ends is searched anew by every word.
        end = self.data.index(b"\n", self.at, self.at + _LONGEST_LINE)
        taken = self.data[self.at : end]
        self.at = end + 1
        return taken

    def top(self) -> Any:
        """The last value above the last mark."""
        if len(self.stack) == self.fence:
            raise ValueError("a mark where a value is due")
        return self.stack[-1]

    def pop(self) -> Any:
        """The last value above the last mark, taken off."""
        if len(self.stack) == self.fence:
            raise ValueError("a mark where a value is due")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """Pop the items above the last mark, and the mark."""
        at = self.marks.pop()
        self.fence = self.marks[-1] if self.marks else 0
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def count(self) -> None:
        """One more container; honest pickles have few for their size."""
        self.made += 1
        if self.made > self.most:
            raise RefusalError(f"more than {self.most} containers in {len(self.data)} bytes")


def _describe_opcode(word: int) -> str:
    """Name of an opcode that is not read."""
    record = {
        ord("P"): "a persistent id, which points outside the file",
        ord("Q"): "a persistent id, which points outside the file",
        0x97: "a buffer that lies outside the file",
        0x98: "a buffer that lies outside the file",
        0x96: "a byte array",
        ord("2"): "a value put twice",
    }
    if word in record:
        return record[word]
    if word in (0x82, 0x83, 0x84):
        return "an extension code, which stands for any Python object"
    if word in b"iob\x81\x92":
        return "an object of a Python class"
    return f"the word {word:#04x}, which is not read"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8")


def _put(machine: Machine, index: int) -> None:
    memo = machine.memo
    if index < len(memo):
        memo[index] = machine.top()
        return
    # Honest picklers number places one after the other; a jump would allocate what lies between.
    if index > len(memo) + 1 or index >= machine.room:
        raise RefusalError(f"a memo that jumps to place {index}")
    memo.extend([_MISSING] * (index - len(memo)))
    memo.append(machine.top())


def _get(machine: Machine, index: int) -> None:
    value = machine.memo[index]
    if type(value) is Array:
        value = value.value
    if value is _MISSING or (value is None and machine.memo[index] is not None):
        raise RefusalError("an array that is used before it is there, or an empty place of the memo")
    machine.stack.append(value)


def _memoize(machine: Machine) -> None:
    memo = machine.memo
    if len(memo) == machine.room:
        raise RefusalError(f"a memo of more than {machine.room} places")
    memo.append(machine.top())


def _mark(machine: Machine) -> None:
    machine.fence = len(machine.stack)
    machine.marks.append(machine.fence)


def _proto(machine: Machine) -> None:
    if machine.byte() > _LATEST:
        raise ValueError("a later protocol")


def _frame(machine: Machine) -> None:
    size = machine.number(8)
    if size > len(machine.data) - machine.at or machine.at <= machine.framed:
        raise ValueError("a frame longer than the file, or in another")
    machine.framed = machine.at + size


def _tuple(machine: Machine, size: int) -> None:
    machine.count()
    stack = machine.stack
    if len(stack) - machine.fence < size:
        raise ValueError("too few values")
    items = tuple(stack[len(stack) - size :])
    del stack[len(stack) - size :]
    stack.append(items)


def _marked_tuple(machine: Machine) -> None:
    machine.count()
    items = tuple(machine.marked())
    machine.stack.append(items)


def _new(machine: Machine, container: Any) -> None:
    machine.count()
    machine.stack.append(container)


def _marked_list(machine: Machine) -> None:
    _new(machine, machine.marked())


def _marked_dict(machine: Machine) -> None:
    items = machine.marked()
    held: dict[Any, Any] = {}
    _fill(held, items)
    _new(machine, held)


def _append(machine: Machine) -> None:
    item = machine.pop()
    target = machine.top()
    if type(target) is not list:
        raise RefusalError("something appended to what is no list")
    target.append(item)


def _appends(machine: Machine) -> None:
    items = machine.marked()
    target = machine.top()
    if type(target) is not list:
        raise RefusalError("something appended to what is no list")
    target.extend(items)


def _set_item(machine: Machine) -> None:
    value = machine.pop()
    key = machine.pop()
    _fill(machine.top(), [key, value])


def _set_items(machine: Machine) -> None:
    items = machine.marked()
    _fill(machine.top(), items)


def _fill(target: Any, items: list[Any]) -> None:
    """Put keys and values, one after the other, into a dict."""
    if type(target) is not dict:
        raise RefusalError("an item set in what is no dict")
    keys = items[::2]
    for key in keys:
        if type(key) not in _KEYS or (type(key) is int and not -(1 << 31) <= key < 1 << 31):
            raise RefusalError("a key that is neither text nor a small whole number")
    before = len(target)
    target.update(zip(keys, items[1::2], strict=True))
    if len(target) != before + len(keys):
        raise RefusalError("a dict with the same key twice")


def _find(machine: Machine, module: Any, name: Any) -> None:
    found = NAMES.get((module, name)) if type(module) is str and type(name) is str else None
    if found is None:
        text = f"{module}.{name}" if type(module) is str and type(name) is str else "no name"
        raise RefusalError(f"the name '{_escape_text(text)}', which is not one of the four of numpy's arrays")
    machine.stack.append(Named(found))


def _escape_text(text: str) -> str:
    return text[:120].encode("unicode_escape").decode("ascii")


def _global(machine: Machine) -> None:
    _find(machine, _text(machine.line()), _text(machine.line()))


def _stack_global(machine: Machine) -> None:
    name = machine.pop()
    _find(machine, machine.pop(), name)


def _reduce(machine: Machine) -> None:
    arguments = machine.pop()
    called = machine.top()
    if type(called) is not Named:
        raise RefusalError("a call of something that is no name")
    machine.stack[-1] = call(called.name, arguments)


def _build(machine: Machine) -> None:
    state = machine.pop()
    target = machine.top()
    if type(target) is Array:
        machine.stack[-1] = target.build(state)
    elif type(target) is Type:
        target.build(state)
    else:
        raise RefusalError("an object of a Python class")


def _int_line(machine: Machine) -> None:
    line = machine.line()
    if line in (b"00", b"01"):
        machine.stack.append(line == b"01")
        return
    if len(line) > 2 * _LONGEST_NUMBER:
        raise RefusalError(f"a whole number of {len(line)} digits")
    machine.stack.append(int(line.removesuffix(b"L"), 0))


def _long(machine: Machine, size: int) -> None:
    count = machine.number(size, signed=size > 1)
    if count > _LONGEST_NUMBER:
        raise RefusalError(f"a whole number of {count} bytes")
    machine.stack.append(machine.number(count, signed=True))


def _float_line(machine: Machine) -> None:
    machine.stack.append(float(machine.line()))


def _string_line(machine: Machine) -> None:
    line = machine.line()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise ValueError("text without quotes")
    raw = codecs.escape_decode(line[1:-1])[0]
    machine.stack.append(raw.decode("latin-1") if isinstance(raw, bytes) else raw)


def _unicode_line(machine: Machine) -> None:
    text = machine.line().decode("raw-unicode-escape")
    machine.stack.append(_text(text.encode("utf-8")))


def _unicode(machine: Machine, size: int) -> None:
    machine.stack.append(machine.take(machine.number(size)).decode("utf-8"))


def _short_unicode(machine: Machine) -> None:
    machine.stack.append(machine.take(machine.byte()).decode("utf-8"))


def _bytes(machine: Machine, size: int) -> None:
    machine.stack.append(machine.take(machine.number(size)))


def _latin(machine: Machine, size: int) -> None:
    machine.stack.append(machine.take(machine.number(size, signed=size > 1)).decode("latin-1"))


def _make_push(value: Any) -> Callable[[Machine], None]:
    return lambda machine: machine.stack.append(value)


_MISSING = object()
_STOP = ord(".")
_MEANING: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": _proto,
    b"\x95": _frame,
    b"(": _mark,
    b"N": _make_push(None),
    b"\x88": _make_push(True),
    b"\x89": _make_push(False),
    b"K": lambda machine: machine.stack.append(machine.byte()),
    b"M": lambda machine: machine.stack.append(machine.number(2)),
    b"J": lambda machine: machine.stack.append(machine.number(4, signed=True)),
    b"\x8a": lambda machine: _long(machine, 1),
    b"\x8b": lambda machine: _long(machine, 4),
    b"G": lambda machine: machine.stack.append(struct.unpack(">d", machine.take(8))[0]),
    b"I": _int_line,
    b"L": _int_line,
    b"F": _float_line,
    b"S": _string_line,
    b"V": _unicode_line,
    b"T": lambda machine: _latin(machine, 4),
    b"U": lambda machine: _latin(machine, 1),
    b"X": lambda machine: _unicode(machine, 4),
    b"\x8c": _short_unicode,
    b"\x8d": lambda machine: _unicode(machine, 8),
    b"B": lambda machine: _bytes(machine, 4),
    b"C": lambda machine: _bytes(machine, 1),
    b"\x8e": lambda machine: _bytes(machine, 8),
    b")": lambda machine: _tuple(machine, 0),
    b"\x85": lambda machine: _tuple(machine, 1),
    b"\x86": lambda machine: _tuple(machine, 2),
    b"\x87": lambda machine: _tuple(machine, 3),
    b"t": _marked_tuple,
    b"]": lambda machine: _new(machine, []),
    b"l": _marked_list,
    b"}": lambda machine: _new(machine, {}),
    b"d": _marked_dict,
    b"a": _append,
    b"e": _appends,
    b"s": _set_item,
    b"u": _set_items,
    b"q": lambda machine: _put(machine, machine.byte()),
    b"r": lambda machine: _put(machine, machine.number(4)),
    b"p": lambda machine: _put(machine, int(machine.line())),
    b"\x94": _memoize,
    b"h": lambda machine: _get(machine, machine.byte()),
    b"j": lambda machine: _get(machine, machine.number(4)),
    b"g": lambda machine: _get(machine, int(machine.line())),
    b"c": _global,
    b"\x93": _stack_global,
    b"R": _reduce,
    b"b": _build,
}
_WORDS: list[Callable[[Machine], None] | None] = [_MEANING.get(bytes([word])) for word in range(256)]

# `_weigh` calls itself; result files are a few containers deep.
_DEEPEST = 32
# A list of ten lists of ten lists ... is short as a pickle and endless for who walks through it.
_FREE_WEIGHT = 1 << 22
_LEAVES = frozenset({int, float, bool, type(None)})
_HINT = (
    "only plain containers, numbers, text and numpy arrays are read, and nothing in the file is run; write "
    "it again with pickle protocol 3 or 4"
)


def load(data: bytes, where: str) -> Any:
    """Load a pickle: dicts, lists, tuples, text, bytes, numbers and numpy arrays (read-only).

    Nothing of it is run or imported: the only names it may use are numpy's ndarray, dtype, _reconstruct and
    scalar, and stand-ins that check their arguments answer for them. Numbers of numpy become those of
    Python. Text of Python 2 is taken as latin-1. Memory stays below 64 MB and 16 times the pickle.

    Raises:
        InputError: if it is damaged, or asks for anything else: other names, objects, persistent ids,
            extension codes, buffers outside it, containers within themselves or many times over.
    """
    machine = Machine(data)
    try:
        value = machine.run()
        _weigh(value, {}, 0, _FREE_WEIGHT + 64 * len(data))
    except RefusalError as error:
        place = f"{where}, byte {machine.place}"
        raise InputError(f"the pickle holds {error}", where=place, hint=_HINT) from error
    except (IndexError, ValueError, TypeError, KeyError, struct.error, OverflowError) as error:
        message = "not a whole pickle" if data else "the file is empty; expected a pickle"
        hint = "fetch or write the file again"
        raise InputError(message, where=f"{where}, byte {machine.place}", hint=hint) from error
    return value


def _weigh(value: Any, known: dict[int, int], depth: int, most: int) -> int:
    """How many plain values a value comes to, those that stand in it twice counted twice.

    Args:
        value: anything.
        known: container to its weight; below 0 while it is being weighed.
        depth: how deep it lies.
        most: what it may weigh.

    Raises:
        RefusalError: if it weighs more, lies too deep, lies in itself, or is no plain value.
    """
    kind = type(value)
    if kind in _LEAVES:
        return 1
    if kind is str or kind is bytes:
        return 1 + len(value) // 8
    if kind is np.ndarray:
        return 1 + int(value.nbytes) // 8
    # Keyed by id: all containers live as long as the value that holds them.
    weight = known.get(id(value))
    if weight is None:
        if kind is dict:
            parts: Any = value.values()
        elif kind is list or kind is tuple:
            parts = value
        else:
            raise RefusalError("a name or a type of numpy where a value is due")
        if depth == _DEEPEST:
            raise RefusalError(f"containers more than {_DEEPEST} deep in each other")
        # Marks what is being weighed: meeting it again means that it holds itself.
        known[id(value)] = -1
        weight = 1 + sum(_weigh(part, known, depth + 1, most) for part in parts)
        weight += sum(len(key) // 8 for key in value if type(key) is str) if kind is dict else 0
        known[id(value)] = weight
    if weight < 0:
        raise RefusalError("a container within itself")
    if weight > most:
        raise RefusalError("values that stand in it many times over")
    return weight


# Arrays by name, written with the names of numpy 1, which numpy 2 knows too: the other way round does not hold.

_LARGEST_ARRAY = (1 << 31) - 1
_ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
_DTYPE = (
    b"cnumpy\ndtype\nX\x02\x00\x00\x00%s\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNN"
    b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
)


def encode_arrays(arrays: Mapping[str, npt.NDArray[np.floating[Any]]]) -> bytes:
    """A dictionary of arrays as a pickle of protocol 3, opcode by opcode, so that nothing but arrays can stand in it.

    Args:
        arrays: name to an array of Float32 or Float64, of any shape.

    Raises:
        InputError: if an array has another type, or 2 GiB and more.

    >>> load(encode_arrays({"a": np.ones((1, 2), np.float32)}), "a.pkl")["a"].tolist()
    [[1.0, 1.0]]
    """
    parts = [b"\x80\x03}("]
    for name, array in arrays.items():
        code = f"{array.dtype.kind}{array.dtype.itemsize}"
        if code not in ("f4", "f8") or array.nbytes > _LARGEST_ARRAY:
            raise InputError(
                f"an array of {array.dtype} and {array.nbytes:,} bytes cannot be written into a pickle"
            )
        raw, word = np.ascontiguousarray(array, f"<{code}").tobytes(), name.encode("utf-8", "surrogatepass")
        parts += [b"X", struct.pack("<I", len(word)), word, _ARRAY, b"("]
        parts += [b"J" + struct.pack("<i", side) for side in array.shape]
        parts += [b"t", _DTYPE % code.encode(), b"\x89B", struct.pack("<I", len(raw)), raw, b"tb"]
    return b"".join([*parts, b"u."])
