"""Options of readers as commands take them, OPTION=VALUE each."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadaware.errors import UsageError

OPTION = "OPTION=VALUE: an option of the reader, such as first_frame=0 or fps=25."
_PATHS = ("labels", "excluded")


def parsed(reader: str, texts: Sequence[str]) -> dict[str, Any]:
    """Option to its value, as a reader takes it: JSON, or the bare word.

    Args:
        reader: its name.
        texts: as they were given.

    Raises:
        UsageError: if something is not OPTION=VALUE, or the reader has no such option.
    """
    from roadaware.scenes.readers import reader_named

    known = reader_named(reader).options
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--option needs OPTION=VALUE, such as first_frame=0; got {text!r}")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            guess = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'none'}"
            raise UsageError(f"--option: the reader of {reader} has no option {name!r}; {guess}")
        found[name] = Path(value) if name in _PATHS else _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
