"""Frozen dataclasses as plain data: to a dictionary and back, and a digest that names a configuration."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, TypeVar

from roadaware.errors import UsageError

T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:
    """The config's fields as JSON-ready data, with its class under `type`."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"a config is a dataclass instance, not {type(config).__name__}")
    fields = json.loads(json.dumps(dataclasses.asdict(config)))
    return {"type": type(config).__name__, **fields}


def from_dict(kind: type[T], fields: dict[str, Any]) -> T:
    """Build the config `kind` from what `to_dict` gave.

    Raises:
        UsageError: if a field is unknown or missing, or the data names another type.
    """
    fields = dict(fields)
    named = fields.pop("type", kind.__name__)
    if named != kind.__name__:
        raise UsageError(f"expected a {kind.__name__} config, got {named}")
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(fields) - known)
    if unknown:
        raise UsageError(
            f"{kind.__name__} has no field {', '.join(unknown)}; it has {', '.join(sorted(known))}"
        )
    try:
        return kind(**{name: _tuples(value) for name, value in fields.items()})
    except TypeError as error:
        raise UsageError(f"{kind.__name__} cannot be made of {sorted(fields)}: {error}") from error


def digest(config: Any) -> str:
    """Twelve hexadecimal digits that change when any field does."""
    text = json.dumps(to_dict(config), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _tuples(value: Any) -> Any:
    """Lists as tuples, which is what a frozen config holds."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
