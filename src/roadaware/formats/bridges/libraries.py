"""The seam: every library that a bridge leads to is imported here, when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from roadaware.errors import UsageError

_INSTALL = {
    "pandas": "roadaware[bridges]",
    "pyarrow": "roadaware[bridges]",
    "supervision": "roadaware[bridges]",
}


def import_library(name: str, who: str) -> Any:
    """A library that a bridge needs.

    Raises:
        UsageError: if it is not installed, or cannot be imported; says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise UsageError(f"{who} needs {name}: pip install '{_INSTALL[name]}'") from error
        raise UsageError(f"{who} needs {name}, which does not work here: {error}") from error
    except ImportError as error:
        raise UsageError(f"{who} needs {name}, which does not work here: {error}") from error
