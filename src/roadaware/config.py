"""Frozen dataclasses as plain data, a digest that names a configuration, and checks on their fields."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import hashlib
import json
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

from roadaware.errors import UsageError

T = TypeVar("T")
ConfigName = Literal["reference", "default"]
"""As published, or as we recommend."""


def to_dict(config: Any) -> dict[str, Any]:
    """The config's fields as JSON-ready data, with its class under `type`."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"a config is a dataclass instance, not {type(config).__name__}")
    # By way of JSON, so that a config and the file that holds it have the same digest.
    fields = json.loads(json.dumps(dataclasses.asdict(config)))
    return {"type": type(config).__name__, **fields}


def from_dict(kind: type[T], fields: dict[str, Any]) -> T:
    """Build the config `kind` from what `to_dict` gave.

    Raises:
        UsageError: if a field is unknown or missing, or the data names another type.
    """
    if not isinstance(fields, Mapping):
        raise UsageError(f"a {kind.__name__} config has fields, not {_cut(repr(fields))}")
    fields = dict(fields)
    named = fields.pop("type", kind.__name__)
    if named != kind.__name__:
        raise UsageError(f"expected a {kind.__name__} config, got {_cut(str(named))}")
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(str(name) for name in set(fields) - known)
    if unknown:
        raise UsageError(
            f"{kind.__name__} has no field {_cut(', '.join(unknown))}; it has {', '.join(sorted(known))}"
        )
    values = {name: to_tuples(value) for name, value in fields.items()}
    check_types(kind, values)
    try:
        return kind(**values)
    except TypeError as error:
        raise UsageError(
            f"{kind.__name__} cannot be made of {_cut(str(sorted(fields)))}: {_cut(str(error))}"
        ) from error


def digest(config: Any) -> str:
    """Twelve hexadecimal digits that change when any field does."""
    text = json.dumps(to_dict(config), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def check_types(kind: type, values: Mapping[str, Any]) -> None:
    """Check that values are of the kinds that the fields of a dataclass declare, and that numbers are finite.

    Args:
        kind: the dataclass.
        values: of some of its fields; a whole number may stand for a float, lists for tuples.

    Raises:
        UsageError: naming the field, what it holds and what it was given.
    """
    hints = get_type_hints(kind)
    for name, value in values.items():
        if name in hints and not _fits(value, hints[name]):
            wanted = getattr(hints[name], "__name__", None) or str(hints[name])
            if get_origin(hints[name]) is not None:
                wanted = str(hints[name]).replace("typing.", "")
            raise UsageError(f"{kind.__name__}.{name} should be {wanted}; got {_cut(repr(value))}")


def check_words(config: Any) -> None:
    """Check that each field that is declared as one of several words holds one of them.

    Raises:
        UsageError: naming the field, what it may be and what it is.
    """
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        allowed, value = get_args(hints[field.name]), getattr(config, field.name)
        if allowed and isinstance(allowed[0], str) and value not in allowed:
            raise UsageError(f"{field.name} should be one of {', '.join(allowed)}; got {value!r}")


def check_config_name(name: Any) -> ConfigName:
    """The name of a configuration of which there are two.

    Raises:
        UsageError: if it is neither.
    """
    if name not in ("default", "reference"):
        raise UsageError(f"config is 'default', 'reference' or a config of your own, not {name!r}")
    return "reference" if name == "reference" else "default"


def check_options(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse an option that there is not.

    Raises:
        UsageError: naming the nearest.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            guess = f"did you mean {near[0]}? There" if near else "there"
            raise UsageError(f"there is no option {name!r}; {guess} are {', '.join(sorted(known)) or 'none'}")


def parse_assignments(
    texts: Iterable[str],
    known: Sequence[str],
    *,
    flag: str,
    kind: str,
    example: str,
    owner: str,
    listing: str,
) -> Iterator[tuple[str, str]]:
    """Name and text of each NAME=VALUE that follows an option of the command line.

    Args:
        texts: what follows it.
        known: the names that there are.
        flag: the option, such as `--set`.
        kind: what a name stands for, such as `field`.
        example: one that is right.
        owner: what has the names.
        listing: what their list begins with where none is near.

    Raises:
        UsageError: if something is not NAME=VALUE, or there is no such name; naming the nearest.

    >>> list(parse_assignments(["k=3"], ["k"], flag="--set", kind="field", example="k=1", owner="it", listing="has"))
    [('k', '3')]
    """
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"{flag} needs {kind.upper()}=VALUE, such as {example}; got {text!r}")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            guess = f"did you mean {near[0]}?" if near else f"{listing} {', '.join(known) or 'none'}"
            raise UsageError(f"{flag}: {owner} has no {kind} {name!r}; {guess}")
        yield name, value


def parse_fields(kind: type, texts: Iterable[str], owner: str) -> dict[str, Any]:
    """Name and value of the fields of a config that `--set FIELD=VALUE` gives.

    Args:
        kind: of the config, a dataclass.
        texts: FIELD=VALUE each; values are JSON, the bare words that a field takes, or WIDTHxHEIGHT for two numbers.
        owner: what the config is of, in messages.

    Raises:
        UsageError: if something is not FIELD=VALUE, or a field is unknown or of another type.
    """
    hints = get_type_hints(kind)
    known = [each.name for each in dataclasses.fields(kind)]
    words = {"flag": "--set", "kind": "field", "example": f"{known[0]}=VALUE", "listing": "there are"}
    found: dict[str, Any] = {}
    for name, text in parse_assignments(texts, known, owner=owner, **words):
        value: Any = text
        with contextlib.suppress(ValueError, RecursionError):  # else it is a bare word
            plain = text.replace("None", "null").replace("True", "true").replace("False", "false")
            value = to_tuples(json.loads(plain))
        hint = hints[name]
        allowed = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        kinds: set[Any] = {type(word) for h in allowed if get_origin(h) is Literal for word in get_args(h)}
        kinds |= {get_origin(h) or h for h in allowed if get_origin(h) is not Literal}
        if float in kinds and type(value) is int:
            value = float(value) if abs(value) < 10**300 else math.inf if value > 0 else -math.inf
        size = re.fullmatch("([0-9]{1,6})[xX]([0-9]{1,6})", text.strip())
        if tuple in kinds and size:
            value = (int(size[1]), int(size[2]))
        # Which words a field takes, the config itself says.
        if type(value) not in kinds or (isinstance(value, tuple) and not _fits(value, hint)):
            expected = ", ".join(sorted(_KINDS.get(each, each.__name__) for each in kinds))
            raise UsageError(f"--set {name}: expected {expected}; got {_cut(repr(value))}")
        found[name] = value
    return found


def change_fields(config: T, texts: Iterable[str], owner: str) -> T:
    """A copy of a config with other values in some fields, see `parse_fields`."""
    return dataclasses.replace(config, **parse_fields(type(config), texts, owner))  # type: ignore[type-var]


_KINDS = {
    types.NoneType: "null",
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a word",
    tuple: "a list such as [1, 2]",
}


def check_flags(config: Any) -> None:
    """Check that each field that is declared as a bool holds one.

    Raises:
        UsageError: naming the field and what it is.
    """
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        if hints[field.name] is bool and not isinstance(value := getattr(config, field.name), bool):
            raise UsageError(f"{field.name} should be true or false; got {value!r}")


def check_limits(config: Any, *names: str) -> None:
    """Check that fields which limit how many are taken hold a whole number above 0, or None.

    Raises:
        UsageError: naming the field and what it is.
    """
    for name in names:
        value = getattr(config, name)
        if value is not None and not is_count(value):
            raise UsageError(f"{name} should be at least 1, or None for all; got {value!r}")


def check_not_negative(config: Any, *names: str) -> None:
    """Check that fields hold finite numbers that are not below 0.

    Raises:
        UsageError: naming the field and what it is.
    """
    for name in names:
        value = getattr(config, name)
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"{name} should be 0 or more; got {value!r}")


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Check that a field holds a number from `low` to `high`, both included.

    Raises:
        UsageError: naming the field, its range and what it is.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UsageError(f"{name} should lie in {low:g} to {high:g}, not {value!r}")


def is_count(value: object) -> bool:
    """Whether it is a whole number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that a hint declares; of hints that are not known here, all are."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        # The type too: True equals 1.
        return any(value == each and type(value) is type(each) for each in inner)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        if inner[-1:] == (Ellipsis,):
            return all(_fits(each, inner[0]) for each in value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if origin in (dict, Mapping):
        return isinstance(value, Mapping)
    if dataclasses.is_dataclass(hint):
        return isinstance(value, hint | dict)
    if hint is float:
        return is_number(value) and math.isfinite(value)
    if hint is int:
        return is_number(value) and isinstance(value, int) and abs(value) < 1 << 63
    return isinstance(value, hint) if hint in (bool, str, types.NoneType) else True


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"


def to_tuples(value: Any) -> Any:
    """The value with tuples for its lists, at any depth: what a frozen config holds."""
    return tuple(to_tuples(item) for item in value) if isinstance(value, list) else value
