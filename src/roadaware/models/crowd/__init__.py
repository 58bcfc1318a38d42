"""Networks of crowds: who does what to whom, where a sentence happens, and where a sound comes from."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`logmel`, which lies in `sound`; here its import costs nothing until it is asked for."""
    if name != "logmel":
        raise AttributeError(f"module 'roadaware.models.crowd' has no attribute {name!r}")
    from roadaware.models.crowd.sound import logmel

    return logmel
