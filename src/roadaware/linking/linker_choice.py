"""The linker that is used: as asked for, else as the detector advises, else by its name; in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from roadaware.config import ConfigName
from roadaware.linking.config import Dataset, LinkerConfig, build_linker

if TYPE_CHECKING:
    from roadaware.scenes.advice import Advice

_WORDS = {
    "min_iou": ("linking overlap", "--iou"),
    "jump_gap": ("frames that a path may miss", "--jump-gap"),
    "cost": ("edges by", "--edge"),
    "assignment": ("assignment", "--assignment"),
    "trim": ("trimming", "--trim"),
}
_LINKING = "linking."
_MOST = 4
"""Disputed values that are printed."""


def select_linker(
    config: ConfigName,
    dataset: Dataset,
    advice: Advice,
    given: Mapping[str, Any] | None = None,
    *,
    command: str = "",
) -> tuple[LinkerConfig, list[str]]:
    """The linker's configuration, and what to say of the detector's advice on it.

    The published configuration is left as published.

    Args:
        config: by name.
        dataset: whose published parameters.
        advice: of the detector.
        given: fields that were asked for; None for those that were not.
        command: whose options change it, such as "link"; the one that runs where empty.

    Raises:
        UsageError: if a field that was asked for has no meaning.
        DamagedError: if one that is advised has none.
    """

    asked = {name: value for name, value in (given or {}).items() if value is not None}
    named, chosen = build_linker(config, dataset), build_linker(config, dataset, advice, **asked)
    said = []
    for name, value in _select_known(advice.linking):
        words, option = _describe_field(name, command)
        used = getattr(chosen, name)
        if name in asked:
            said.append(f"{words} {_plain(used)}, as asked for; the detector advises {_plain(value)}")
        elif config == "reference":
            said.append(f"{words} {_plain(used)}, as published; the detector advises {_plain(value)}")
        elif used != getattr(named, name):
            said.append(f"{words} {_plain(used)}, as the detector advises{option}")
    apart = {n.removeprefix(_LINKING): v for n, v in advice.disputed.items() if n.startswith(_LINKING)}
    for field, values in _select_known(apart):
        if field not in asked:
            words, option = _describe_field(field, command)
            listed = " and ".join("none" if value is None else _plain(value) for value in values[:_MOST])
            kept = f"{words} {_plain(getattr(chosen, field))}"
            said.append(f"{kept}, since the detectors advise different ones ({listed}){option}")
    return chosen, said


def compare_with_advice(linker: object, advice: Advice) -> list[str]:
    """Where tubes were linked otherwise than their detector advises, in words.

    Args:
        linker: the configuration that tables say they were linked with; None where they do not.
        advice: of the detector.
    """
    if not isinstance(linker, Mapping):
        return []
    return [
        f"{_describe_field(name, '')[0]} of these tubes: {_plain(linker[name])}; the detector advises {_plain(value)}"
        for name, value in _select_known(advice.linking)
        if name in linker and linker[name] != value
    ]


def _select_known(named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What is named like a field of the linker; tables may hold any names."""

    return [(field.name, named[field.name]) for field in fields(LinkerConfig) if field.name in named]


def _describe_field(field: str, command: str) -> tuple[str, str]:
    """What a field is called, and how it is changed where an option does."""
    words, option = _WORDS.get(field, (field.replace("_", " "), ""))
    return words, f"; {f'{command} {option}'.strip()} to change" if option else ""


def _plain(value: Any) -> str:
    """A value in words; of a detector's file, which may hold anything, on one line and without control characters."""
    counted = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if counted else str(value)[:40].encode("unicode_escape").decode()
