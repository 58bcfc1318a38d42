"""What holds for every test: kernels compile once on a machine, and of a `spread` cross a part is fast."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections import defaultdict

import hypothesis
import pytest

# What is imported and collected stays until the end: the collector of garbage need not look through it a thousand times,
# which is a third of the time of collecting.
gc.disable()

# One of several processes that share the machine is quicker with one thread than with all that wait for each
# other; read by the libraries when they are imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numba

import example_counts
from roadaware.geometry.compiled import prepare_numba

# How long an example takes says something of the machine, not of the code.
hypothesis.settings.register_profile(
    "roadaware", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("roadaware")

prepare_numba()
# Processes that tests start find the kernels and the modules that others have compiled.
os.environ.setdefault("NUMBA_CACHE_DIR", numba.config.CACHE_DIR)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Try properties on fewer examples where the slow tests are left out, in the workers too."""
    if config.option.markexpr == "not slow":
        os.environ[example_counts.VARIABLE] = "yes"
        hypothesis.settings.register_profile("fast", hypothesis.settings(), max_examples=33)
        hypothesis.settings.load_profile("fast")


def pytest_collection_finish() -> None:
    """From here on garbage is collected, of what tests leave alone."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cross of parameters of a test marked `spread(n)`, leave about every n-th cell in the fast suite.

    These are every n-th diagonal, which of two parameters meets each value where the other has n values or
    more, and the first cell of each value that they miss. Tests marked `spread(n, among="readers")` are one cross
    with all others that say so, where the test is a parameter, too.
    """
    crosses: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and (mark := item.get_closest_marker("spread")):
            crosses[mark.kwargs.get("among") or item.nodeid.split("[")[0]].append(item)
    for cross in crosses.values():
        _spread(cross)


def _spread(cross: list[pytest.Function]) -> None:
    mark = cross[0].get_closest_marker("spread")
    assert mark is not None
    orders: dict[str, dict[object, int]] = defaultdict(dict)
    places = [
        {
            name: orders[name].setdefault(key, len(orders[name]))
            for name, key in (
                ("", i.nodeid.split("[")[0]),
                *((name, id(value)) for name, value in i.callspec.params.items()),
            )
        }
        for i in cross
    ]
    diagonal = [sum(place.values()) % mark.args[0] == 0 for place in places]
    met = {each for place, fast in zip(places, diagonal, strict=True) if fast for each in place.items()}
    for item, place, fast in zip(cross, places, diagonal, strict=True):
        if not fast and met >= place.items():
            item.add_marker("slow")
        met |= place.items()


@pytest.fixture(autouse=True)
def _reset_logger() -> None:
    """No test hears what the command of another has set: its loudness, its handler."""
    logger = logging.getLogger("roadaware")
    logger.setLevel(logging.NOTSET)
    logger.propagate = True
    logger.handlers.clear()
