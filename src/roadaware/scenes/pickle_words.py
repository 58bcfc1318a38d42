"""The words of the pickle language that make data, each as a small function on a stack."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from typing import Any

from roadaware.scenes.pickled_numpy import NAMES, Array, Named, RefusalError, Type, call

_FREE_OBJECTS = 1 << 18
_LATEST = 5
_LONGEST_LINE, _LONGEST_NUMBER = 1 << 20, 16
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
                raise RefusalError(_named(word))
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
        """What lies above the last mark, taken off with it."""
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


def _named(word: int) -> str:
    """What the language calls a word that is not read."""
    told = {
        ord("P"): "a persistent id, which points outside the file",
        ord("Q"): "a persistent id, which points outside the file",
        0x97: "a buffer that lies outside the file",
        0x98: "a buffer that lies outside the file",
        0x96: "a byte array",
        ord("2"): "a value put twice",
    }
    if word in told:
        return told[word]
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
        told = f"{module}.{name}" if type(module) is str and type(name) is str else "no name"
        raise RefusalError(f"the name '{_escaped(told)}', which is not one of the four of numpy's arrays")
    machine.stack.append(Named(found))


def _escaped(text: str) -> str:
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


def _pushed(value: Any) -> Callable[[Machine], None]:
    return lambda machine: machine.stack.append(value)


_MISSING = object()
_STOP = ord(".")
_MEANING: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": _proto,
    b"\x95": _frame,
    b"(": _mark,
    b"N": _pushed(None),
    b"\x88": _pushed(True),
    b"\x89": _pushed(False),
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
