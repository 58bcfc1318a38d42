"""Description of the configuration of a number: its name, its digest, and every field beside the named ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from roadaware.config import digest, from_dict, to_dict
from roadaware.linking.config import LinkerConfig
from roadaware.metrics.actions import CONFIGS as ACTIONS
from roadaware.metrics.calibration import CalibrationConfig
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.grounding import CONFIGS as GROUNDING
from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.metrics.relations import CONFIGS as RELATIONS
from roadaware.metrics.sound import CONFIGS as SOUND
from roadaware.reports.page import Mark, Table, TableCell
from roadaware.reports.text import format_name
from roadaware.scenes.sampling import PROTOCOLS, Iv2022, Iv2024, Wacv2021

_LINKED: tuple[Literal["road", "ucf24"], ...] = ("road", "ucf24")
_CONFIGS = (PedestrianConfig, CalibrationConfig, DetectionConfig, LinkerConfig, Iv2024, Wacv2021, Iv2022)
_SCENES: dict[type, Mapping[str, Callable[[], Any]]] = {
    type(named["default"]()): named for named in (ACTIONS, RELATIONS, GROUNDING, SOUND)
}
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*_CONFIGS, *_SCENES)}


def format_config_name(config: Mapping[str, Any]) -> str:
    """The name of a configuration, names joined where they are equal, `own` for any other choice of fields.

    Args:
        config: what `to_dict` gave.
    """
    equal = [name for name, fields in _variants(config) if fields == dict(config)]
    return " = ".join(dict.fromkeys(equal)) or "own"


def digest_config(config: Mapping[str, Any]) -> str:
    """The twelve digits that name a configuration; none for one of an unknown type."""
    kind = _KINDS.get(str(config.get("type")))
    return digest(from_dict(kind, dict(config))) if kind else ""


def format_config(config: Mapping[str, Any]) -> str:
    """Type, name and digest in one line, as in `Iv2024, reference (1a2b3c4d5e6f)`."""
    known = digest_config(config)
    return f"{config.get('type', 'config')}, {format_config_name(config)}" + (f" ({known})" if known else "")


def build_config_table(config: Mapping[str, Any], title: str) -> Table:
    """Every field as it was used, beside the named configurations where these differ.

    Args:
        config: what `to_dict` gave.
        title: what the configuration is of.
    """
    named = dict(_variants(config))
    rows: list[tuple[TableCell, ...]] = []
    alike = []
    for field, value in config.items():
        others = [fields.get(field) for fields in named.values()]
        if all(other == value for other in others) and named:
            alike += [] if field == "type" else [f"{format_name(field)} {_value(value)}"]
            continue
        used = Mark(_value(value), "doubt" if named and value not in others else "")
        rows.append((format_name(field), used, *(_value(other) for other in others)))
    same = f" The same in all: {'; '.join(alike)}." if alike else ""
    caption = f"{format_config(config)}.{same}"
    return Table(("field", "used here", *named), tuple(rows), "ll" + "l" * len(named), title, caption)


def _variants(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The named configurations of the same type for the same question."""
    if config.get("type") == "PedestrianConfig":
        task = config["task"]
        yield "reference", to_dict(PedestrianConfig.reference(task))
        yield "default", to_dict(PedestrianConfig.default(task))
        return
    for plain in (DetectionConfig, CalibrationConfig):
        if config.get("type") == plain.__name__:
            yield "reference", to_dict(plain.reference())
            yield "default", to_dict(plain.default())
            return
    for kind, makers in _SCENES.items():
        if config.get("type") == kind.__name__:
            yield from ((name, to_dict(make())) for name, make in makers.items())
            return
    if config.get("type") == "LinkerConfig":
        # The named linkers for the dataset whose parameters a configuration has, else those for ROAD.
        road, ucf24 = (
            {
                "reference": to_dict(LinkerConfig.reference(dataset)),
                "default": to_dict(LinkerConfig.default(dataset)),
            }
            for dataset in _LINKED
        )
        yield from (ucf24 if dict(config) in ucf24.values() else road).items()
        return
    for named in PROTOCOLS.values():
        same = all(config.get(key) == value for key, value in named.arguments.items())
        asks_more = config.get("pedestrians") == "behaviour" and "pedestrians" not in named.arguments
        if named.kind.__name__ == config.get("type") and same and not asks_more:
            yield "reference", to_dict(named.reference())
            yield "default", to_dict(named.default())
            return


def _value(value: Any) -> str:
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return format_name(str(value)) if isinstance(value, str) else str(value)
