"""Recipe files: YAML whose every key must be known, and whose every value must be of its kind."""

from __future__ import annotations

import copy
import difflib
import math
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from roadaware import config as configs
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import to_printable
from roadaware.io.yaml import parse, read_yaml
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.recipe import Recipe

T = TypeVar("T")
_KINDS = tuple(kind.__name__ for kind in (Recipe, PedestrianRecipe, CrowdRecipe))
Given = Mapping[str, Any]
RECIPES = Path(__file__).with_name("recipes")
"""The bundled recipes: `configs/` of the repository."""


def find_recipe(given: Path) -> Path:
    """The file of a recipe: a path, or the name of a bundled recipe, such as `objects-road`.

    What exists under the path is meant first. A name is that of a file without its ending.

    Raises:
        UsageError: if it is neither, and looks like a name; names the nearest.
    """
    name = str(given)
    if given.suffix or given.is_absolute() or given.exists():
        return given
    folders = ("*.yaml", "pedestrians/*.yaml", "crowd/*.yaml")
    names = {path.stem: path for where in folders for path in RECIPES.glob(where)}
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        meant = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(names))}"
        raise UsageError(f"there is no file {to_printable(name, 60)}, and no recipe of that name; {meant}")
    return names[name]


def read_recipe(
    path: Path, changes: Sequence[str] = (), *, on: Path | None = None, weights: str | None = None
) -> Recipe | PedestrianRecipe | CrowdRecipe:
    """The recipe in a YAML file: of a predictor of pedestrians if it has a `task`, of a network of crowds if it has
    `tasks`, else of a detector.

    Args:
        path: the file.
        changes: such as `schedule.lr=0.01`, which replace what the file says; values are YAML.
        on: a file of samples for a recipe of a predictor to learn from instead of its own, before anything is
            changed; the name of what comes out ends with that of the file.
        weights: that a detector or a network of crowds begins with instead of those of the recipe, before anything
            is changed.

    Raises:
        InputError: if a file cannot be read.
        UsageError: if a key is unknown or a value is of the wrong kind; each names where.
    """
    found = _yaml(path)
    # The `recipe.json` of a run says what kind of recipe it is, which its fields say, too.
    if found.get("type") in _KINDS:
        del found["type"]
    if on is not None:
        # What a recipe says, with the samples of another file, and its task if it names one.
        if "task" not in found:
            raise UsageError(f"--on is for recipes of predictors, with a task; {path} is one of a detector")
        held = _yaml(on)
        others = [str(key) for key in held if key not in ("samples", "task")]
        if others or not isinstance(held.get("samples"), Mapping):
            text = f", and not {', '.join(others)}" if others else ""
            raise UsageError(
                f"--on takes a file with samples, and a task if it asks for another{text}, such as those in "
                f"configs/pedestrians/on; {on} is none"
            )
        name = f"{found.get('name', PedestrianRecipe.name)}-on-{on.stem}"
        found = {**found, **copy.deepcopy(held), "name": name}
    if weights is not None:
        if "task" in found:
            raise UsageError(f"--weights is for recipes of detectors; {path} is one of a predictor")
        _put(found, ["model", "weights"], weights)
    _change(found, changes)
    if "task" in found:
        return build_dataclass(PedestrianRecipe, found)
    return build_dataclass(CrowdRecipe, found) if "tasks" in found else parse_recipe(found)


def read_fields(path: Path | None, changes: Sequence[str] = ()) -> dict[str, Any]:
    """The keys and values of a YAML file.

    Args:
        path: the file; None for no keys but those of the changes.
        changes: such as `schedule.lr=0.01`, which replace what the file says; values are YAML.

    Raises:
        InputError: if the file cannot be read.
        UsageError: if a change is none.
    """
    found = {} if path is None else _yaml(path)
    _change(found, changes)
    return found


def _change(found: dict[str, Any], changes: Sequence[str]) -> None:
    """Put other values into keys.

    Raises:
        UsageError: if a change is none.
    """
    for change in changes:
        key, sign, value = change.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"--set takes FIELD=VALUE, such as schedule.lr=0.01, not {change!r}")
        try:
            said = parse(value)
        except ValueError as error:
            raise UsageError(f"--set {key}: {to_printable(value, 60)!r} is no YAML value: {error}") from error
        # Where a file has a remark, a path has a folder of such a name.
        if isinstance(said, str) and " #" in value and value.strip()[0] not in "'\"|>":
            said = value.strip()
        _put(found, key.strip().split("."), said)


def _yaml(path: Path) -> dict[str, Any]:
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise InputError("a recipe is a list of keys with values", where=str(path))
    return found


def replace_fields(base: T, given: Given, where: str) -> T:
    """A config some of whose fields are others, every value of which must fit its field.

    Args:
        base: a dataclass.
        given: fields with values.
        where: names them in messages, such as `network.fields`.

    Raises:
        UsageError: if a field is unknown, or the config cannot be made of such values; each names where.
    """
    hints = get_type_hints(type(base))
    values = {
        name: _value(hints[name], value, f"{where}.{name}") if name in hints else value
        for name, value in given.items()
    }
    try:
        return configs.from_dict(type(base), {**configs.to_dict(base), **values})
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where} {dict(given)} cannot be: {error}") from error


def parse_recipe(given: Given) -> Recipe:
    """Build the recipe of a detector from plain data, as `build_dataclass` does."""
    return build_dataclass(Recipe, given)


def _put(found: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        found = found.setdefault(key, {})
        if not isinstance(found, dict):
            raise UsageError(f"--set {'.'.join(keys)}: {key} holds no fields")
    found[keys[-1]] = value


def build_dataclass(kind: type[T], given: Any, where: str = "") -> T:
    """A dataclass from plain data, every key and value of which must fit its fields.

    Args:
        kind: the dataclass.
        given: keys with values.
        where: names it in messages, such as `schedule` (default: it is the whole).

    Raises:
        UsageError: if a key is unknown or a value is of the wrong kind; each names where.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{where or 'the recipe'} holds fields, not {to_printable(repr(given), 60)}")
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key)[:80], known, n=1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            there = to_printable(f"{where}.{key}" if where else str(key), 80)
            raise UsageError(f"a recipe has no field '{there}'{meant or '.'} There are {', '.join(known)}")
    hints = get_type_hints(kind)
    values = {
        str(key): _value(hints[str(key)], value, f"{where}.{key}" if where else str(key))
        for key, value in given.items()
    }
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    """A value of the type that a field has; nothing is an empty text or list, as in `data.split=`.

    Raises:
        UsageError: if it is of another.
    """
    if is_dataclass(hint):
        return build_dataclass(hint, {} if value is None else value, where)  # type: ignore[arg-type]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        if value not in inner:
            raise UsageError(
                f"{where} is one of {', '.join(map(str, inner))}, not {to_printable(repr(value), 60)}"
            )
        return value
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in inner if kind is not type(None)]
        return None if value is None else _value(kinds[0], value, where)
    if origin is tuple:
        # A list of values, or one by itself
        items = list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
        if inner[-1] is Ellipsis:
            return tuple(_value(inner[0], item, where) for item in items)
        if len(items) != len(inner):
            raise UsageError(f"{where} holds {len(inner)} values, not {to_printable(repr(value), 60)}")
        return tuple(_value(kind, item, where) for kind, item in zip(inner, items, strict=True))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise UsageError(f"{where} holds fields, not {to_printable(repr(value), 60)}")
        return dict(value)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if hint is str and value is None:
        return ""
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if hint is float and isinstance(value, str | int) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            value = float(value)  # of a change on the command line that is in quotes
    odd = (isinstance(value, float) and not math.isfinite(value)) or (
        hint is int and (isinstance(value, int) and abs(value) >= 1 << 63)
    )
    if type(value) is not hint or odd:
        raise UsageError(f"{where} is {words[hint]}, not {to_printable(repr(value), 60)}")
    return value
