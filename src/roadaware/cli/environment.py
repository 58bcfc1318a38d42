"""What `roadaware doctor` says of the machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware.cli import text
from roadaware.cli.options import Outcome

_PACKAGES = ("polars", "numpy", "scipy", "scikit-learn", "lxml", "matplotlib", "jinja2", "cyclopts", "rich")
_LIBRARIES = ("torch", "transformers", "onnxruntime", "onnx", "av", "huggingface_hub")
"""What models need; they are imported, since an installed library may still not work."""
_VARIABLES = ("ROADAWARE_HOME", "ROADAWARE_DATA_DIR", "XDG_CACHE_HOME", "NO_COLOR", "CI", "SOURCE_DATE_EPOCH")
_LOW_BYTES = 500_000_000


def environment_outcome() -> Outcome:
    """Versions, folders, disk and the environment variables that count."""
    facts = _facts()
    rows = [(name.replace("_", " "), value) for name, value in _shown(facts)]
    lines = [text.table(["what", "found"], rows, left=2)]
    if facts["remarks"]:
        lines += ["", text.bullets(facts["remarks"])]
    return Outcome("\n".join(lines), facts)


def _facts() -> dict[str, Any]:
    folder = _cache_folder()
    remarks = []
    if folder is None:
        remarks.append("no place for a cache: set ROADAWARE_HOME to a folder you can write to")
    elif not _writable(folder):
        remarks.append(f"the cache folder {folder} cannot be written: every reading starts anew")
    data = os.environ.get("ROADAWARE_DATA_DIR")
    if data and not Path(data).is_dir():
        remarks.append(f"ROADAWARE_DATA_DIR is {data}, and there is no such folder")
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    if free < _LOW_BYTES:
        remarks.append(f"only {text.size(free)} are free in {here}")
    libraries = {name: _state(name) for name in _LIBRARIES}
    remarks += [f"{name} does not work: {state}" for name, state in libraries.items() if "Error" in state]
    return {
        "roadaware": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "libraries": libraries,
        "cuda": _cuda(),
        "models": _models(),
        "cache_folder": str(folder) if folder else None,
        "cache_bytes": _bytes_in(folder) if folder else 0,
        "data_folder": data,
        "data_found": _datasets(Path(data)) if data else [],
        "free_bytes_here": free,
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "remarks": remarks,
    }


def _shown(facts: dict[str, Any]) -> list[tuple[str, str]]:
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    variables = ", ".join(f"{name}={value}" for name, value in facts["variables"].items())
    return [
        ("roadaware", facts["roadaware"]),
        ("python", facts["python"]),
        ("platform", facts["platform"]),
        ("processors", str(facts["processors"])),
        ("packages", packages),
        ("libraries", ", ".join(f"{name} {state}" for name, state in facts["libraries"].items())),
        ("CUDA", facts["cuda"]),
        ("models", ", ".join(facts["models"]) or "none is installed (`roadaware models list`)"),
        ("cache folder", f"{facts['cache_folder'] or 'none'} ({text.size(facts['cache_bytes'])})"),
        ("data folder", facts["data_folder"] or "not set (ROADAWARE_DATA_DIR)"),
        ("data found", ", ".join(facts["data_found"]) or "nothing"),
        ("free disk here", text.size(facts["free_bytes_here"])),
        ("variables", variables or "none that count"),
    ]


def _cache_folder() -> Path | None:
    from roadaware.places import cache_folder

    try:
        return cache_folder()
    except (OSError, RuntimeError):
        return None


def _writable(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total


def _datasets(folder: Path) -> list[str]:
    with suppress(OSError):
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    return []


def _state(name: str) -> str:
    """The version of a library that could be imported, `missing`, or the error that it raised."""
    try:
        found = import_module(name)
    except ModuleNotFoundError as error:
        return "missing" if error.name == name else f"ModuleNotFoundError: {error}"
    except Exception as error:  # a broken library raises whatever it does
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"
    return str(getattr(found, "__version__", "?"))


def _cuda() -> str:
    """The devices of CUDA that torch can use, in words."""
    try:
        torch = import_module("torch")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return ", ".join(torch.cuda.get_device_name(n) for n in range(count)) or "none"
    except Exception as error:  # as above
        return "none" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {error}"[:100]


def _models() -> list[str]:
    """The names of the models of the catalogue that are installed."""
    from roadaware.models.catalogue.entries import read_catalogue
    from roadaware.models.catalogue.installed import installed_folder

    with suppress(OSError, RuntimeError):
        return [entry.name for entry in read_catalogue().values() if installed_folder(entry) is not None]
    return []


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
