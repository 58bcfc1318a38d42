"""The protocols by the names that the command line uses: `<dataset>-<task>@<publication>`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal

from roadaware.errors import UsageError
from roadaware.scenes.sampling.configs import EventProtocol, Iv2022, Iv2024, Wacv2021


@dataclass(frozen=True)
class NamedProtocol:
    """A protocol and what it is asked for.

    Args:
        kind: the class of its config.
        arguments: what `reference` and `default` are called with.
    """

    kind: type[Iv2024] | type[Wacv2021]
    arguments: dict[str, Any]

    def reference(self) -> EventProtocol:
        """The config that reproduces the publication."""
        return self.kind.reference(**self.arguments)

    def default(self) -> EventProtocol:
        """The config that we recommend."""
        return self.kind.default(**self.arguments)


def _older(kind: type[Wacv2021], year: str) -> dict[str, NamedProtocol]:
    return {
        f"jaad-action@{year}": NamedProtocol(kind, {"dataset": "jaad"}),
        f"jaad-behaviour-action@{year}": NamedProtocol(kind, {"dataset": "jaad", "pedestrians": "behaviour"}),
        f"pie-action@{year}": NamedProtocol(kind, {"dataset": "pie"}),
    }


PROTOCOLS: dict[str, NamedProtocol] = {
    "jaad-action@iv2024": NamedProtocol(Iv2024, {"task": "action", "dataset": "jaad"}),
    "jaad-risk@iv2024": NamedProtocol(Iv2024, {"task": "risk", "dataset": "jaad"}),
    "pie-action@iv2024": NamedProtocol(Iv2024, {"task": "action", "dataset": "pie"}),
    "pie-intention@iv2024": NamedProtocol(Iv2024, {"task": "intention", "dataset": "pie"}),
    "pie-risk@iv2024": NamedProtocol(Iv2024, {"task": "risk", "dataset": "pie"}),
    **_older(Wacv2021, "wacv2021"),
    **_older(Iv2022, "iv2022"),
}


def protocol_named(name: str, config: Literal["reference", "default"] = "reference") -> EventProtocol:
    """The protocol of that name.

    Args:
        name: a key of `PROTOCOLS`.
        config: the published config or the one we recommend.

    Raises:
        UsageError: if there is no such protocol or config, with the nearest name.
    """
    if name not in PROTOCOLS:
        near = difflib.get_close_matches(name, PROTOCOLS, n=1)
        guess = f"; did you mean '{near[0]}'?" if near else "."
        raise UsageError(f"no protocol '{name}'{guess} There are {', '.join(sorted(PROTOCOLS))}")
    if config not in ("reference", "default"):
        raise UsageError(f"a protocol's config is 'reference' or 'default', not '{config}'")
    return PROTOCOLS[name].reference() if config == "reference" else PROTOCOLS[name].default()
