"""What the machine offers, and what of it does not work."""

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
from roadaware.errors import raise_interrupt
from roadaware.models.catalogue.entries import find_installed_folder, read_catalogue
from roadaware.places import get_cache_folder

_PACKAGES = ("polars", "numpy", "scipy", "scikit-learn", "lxml", "matplotlib", "jinja2", "cyclopts", "rich")
_LIBRARIES = ("torch", "transformers", "onnxruntime", "onnx", "av", "huggingface_hub")
"""What models need; they are imported, since an installed library may still not work."""
_EXTRAS = ("starlette", "uvicorn", "rerun-sdk")
"""What `view` and `convert` need; they are looked up alone: importing Rerun takes seconds."""
_VARIABLES = ("ROADAWARE_HOME", "ROADAWARE_DATA_DIR", "XDG_CACHE_HOME", "NO_COLOR", "CI", "SOURCE_DATE_EPOCH")
LOW_BYTES = 500_000_000
LARGE_CACHE_BYTES = 20_000_000_000
EXTRA_BY_LIBRARY = {
    "torch": ("models", "every network"),
    "transformers": ("models", "the catalogue of models"),
    "onnxruntime": ("export", "a network in ONNX"),
    "rerun-sdk": ("rerun", "`convert --to rrd`"),
    "starlette": ("viewer", "`view`"),
}
"""Library to the extra that installs it, and to what needs it."""
_DRIVER = Path("/proc/driver/nvidia/version")


def describe_environment() -> dict[str, Any]:
    """Versions, folders, disk and the environment variables that count, JSON-ready; no remarks on them yet."""
    cache: Path | None = None
    with suppress(OSError, RuntimeError):
        cache = get_cache_folder()
    packages, extras = ({name: _find_version(name) for name in names} for names in (_PACKAGES, _EXTRAS))
    libraries = {name: _try_import(name) for name in _LIBRARIES} | extras
    try:
        torch = import_module("torch")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        cuda = ", ".join(torch.cuda.get_device_name(n) for n in range(count)) or "none"
    except ModuleNotFoundError:
        cuda = "none"
    except Exception as error:  # a broken library raises whatever it does
        raise_interrupt(error)
        cuda = f"{type(error).__name__}: {error}"[:100]
    models: list[str] = []
    with suppress(OSError, RuntimeError):
        models = [each.name for each in read_catalogue().values() if find_installed_folder(each) is not None]
    data = os.environ.get("ROADAWARE_DATA_DIR")
    datasets: list[str] = []
    with suppress(OSError):
        datasets = sorted(entry.name for entry in Path(data).iterdir() if entry.is_dir()) if data else []
    return {
        "roadaware": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": packages,
        "libraries": libraries,
        "cuda": cuda,
        "gpu_driver": _find_driver(),
        "models": models,
        "cache_folder": str(cache) if cache else None,
        "cache_bytes": _count_bytes(cache) if cache else 0,
        "data_folder": data,
        "data_found": datasets,
        "free_bytes_here": shutil.disk_usage(Path.cwd()).free,
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def _find_driver() -> str | None:
    """The first line of what the driver of NVIDIA says of itself; None where there is none."""
    with suppress(OSError, UnicodeDecodeError):
        return _DRIVER.read_text().split("\n", 1)[0].strip()[:80] or None
    return None


def is_writable(folder: Path) -> bool:
    """Whether something could be written into a folder, or the folder be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _find_version(name: str) -> str:
    """The version of an installed package, or `missing`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


def _try_import(name: str) -> str:
    """The version of a library that could be imported, `missing`, or the error that it raised."""
    try:
        if name == "onnxruntime":
            from roadaware.models.offline import import_onnxruntime

            found = import_onnxruntime()
        else:
            found = import_module(name)
    except ModuleNotFoundError as error:
        return "missing" if error.name == name else f"ModuleNotFoundError: {error}"
    except Exception as error:  # as above
        raise_interrupt(error)
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"
    return str(getattr(found, "__version__", "?"))


def _count_bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total
