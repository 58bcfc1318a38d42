"""Entry: one trained model of others, as the table says it."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roadaware.errors import UsageError

Task = Literal["objects", "zero-shot", "segmentation", "image-text", "pose", "training"]
TABLE = Path(__file__).with_name("models.toml")


@dataclass(frozen=True)
class NpmSource:
    """An archive of the npm registry.

    Args:
        package, version: of the archive.
        integrity: of all its bytes, as the registry writes it: `sha512-` and the digest in base 64.
        bytes: its size.
    """

    package: str
    version: str
    integrity: str
    bytes: int


@dataclass(frozen=True)
class HubSource:
    """A repository of the hub of huggingface.co.

    Args:
        repository: OWNER/NAME.
        revision: a commit, or a branch where none is pinned.
    """

    repository: str
    revision: str = "main"


@dataclass(frozen=True)
class FileSource:
    """A file or folder that the user has.

    Args:
        form: what it is, in words.
    """

    form: str


@dataclass(frozen=True)
class GraphFacts:
    """Which part of a graph model is wanted.

    Args:
        model, weights: its files in the archive.
        picture: the node that takes pictures.
        outputs: nodes that are wanted, by what they mean.
        decoder: what makes sense of the outputs.
        labels: which list of names its channels have.
        sha256: of each file.
        advice: how its predictions are used.
    """

    model: str
    weights: tuple[str, ...]
    picture: str
    outputs: Mapping[str, str]
    decoder: str
    labels: str
    sha256: Mapping[str, str]
    advice: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One model of the catalogue.

    Args:
        name: by which commands take it.
        task: what it is for.
        about: what it is, in a line.
        classes: what it tells apart, in words.
        size_mb: megabytes that it takes once it is installed, about.
        licence: of the weights, in words; `licence_from` says where that stands.
        published: what its authors report; empty where nothing fits.
        measured: what was measured here.
        cost: of a picture, relative to others.
        source: where it comes from.
        graph: of a graph model alone.
    """

    name: str
    task: Task
    about: str
    classes: str
    size_mb: float
    licence: str
    licence_from: str
    source: NpmSource | HubSource | FileSource
    published: str = ""
    measured: str = ""
    cost: int = 0
    graph: GraphFacts | None = None


_SOURCES: Mapping[str, Any] = {"npm": NpmSource, "hub": HubSource, "file": FileSource}


@functools.cache
def read_catalogue() -> dict[str, Entry]:
    """Every entry by its name, in the order of the table."""
    said = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _entry(name, dict(fields)) for name, fields in said.items()}


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    source = dict(fields.pop("source"))
    graph = fields.pop("graph", None)
    if graph is not None:
        graph = GraphFacts(**{**graph, "weights": tuple(graph["weights"])})
    return Entry(name=name, source=_SOURCES[source.pop("kind")](**source), graph=graph, **fields)


def find_entry(name: str) -> Entry:
    """The entry of a name.

    Raises:
        UsageError: if there is none; names the nearest.
    """
    entries = read_catalogue()
    if name not in entries:
        near = difflib.get_close_matches(name, entries, n=1)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        raise UsageError(
            f"no model of the catalogue is called {name[:60]!r}{meant} `roadaware models list` shows all"
        )
    return entries[name]
