"""How many examples a property is tried on: all in the whole suite, a third of them in the fast one."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

VARIABLE = "ROADAWARE_TESTS_FAST"
_SHARE, _LEAST = 3, 4


def tried(examples: int, **more: Any) -> settings:
    """Settings of a property that should hold on so many examples, however long each takes."""
    fast = max(examples // _SHARE, min(_LEAST, examples))
    return settings(max_examples=fast if os.environ.get(VARIABLE) else examples, deadline=None, **more)
