"""Fitting on one thread, so that the sums do not depend on how many cores the machine has."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any


def limit_to_one_thread() -> AbstractContextManager[Any]:
    """A context in which the numerical libraries use one thread."""
    limits: AbstractContextManager[Any] = import_module("threadpoolctl").threadpool_limits(limits=1)
    return limits
