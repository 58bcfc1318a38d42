"""Road video (and LiDAR, and sound) to road events, and how far to trust them.

`import roadaware as ra` loads nothing else; names of the public face come when they are first used.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roadaware import datasets
    from roadaware.api import (
        AdaptivePredictor,
        Model,
        Predictions,
        Result,
        Scenes,
        compare,
        enforce,
        evaluate,
        link,
        load_model,
        predict_crossing,
        propose,
        read,
        sample,
        show,
        simulate,
        watch,
    )

__version__ = _version("roadaware")
__all__ = [
    "AdaptivePredictor",
    "Model",
    "Predictions",
    "Result",
    "Scenes",
    "compare",
    "datasets",
    "enforce",
    "evaluate",
    "link",
    "load_model",
    "predict_crossing",
    "propose",
    "read",
    "sample",
    "show",
    "simulate",
    "watch",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'roadaware' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(_import_module("roadaware.api"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
