"""A process that runs commands as lines of JSON say, one after the other, and tells how each ended."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import resource
import sys
import time
import traceback
import warnings
from typing import Any

_ROOM = 6 << 30


class _Said(io.StringIO):
    """Text that was written, and the longest piece of it."""

    longest = 0

    def write(self, text: str) -> int:
        """Keep the text."""
        self.longest = max(self.longest, len(text))
        return super().write(text)


def answer(words: list[str], folder: str) -> dict[str, Any]:
    """Run one command in a folder: its exit code, what it said, how long it took."""
    from roadaware.cli import app, main

    _Where.text = ""
    app._internal = _noted
    os.chdir(folder)
    out, err, raised = _Said(), _Said(), ""
    started_s, code = time.monotonic(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except BaseException:  # nothing may come out of main, so everything is told
            raised = traceback.format_exc()
    os.chdir("/")
    _forget()
    return {
        "code": code,
        "out": out.getvalue()[-4000:],
        "err": err.getvalue()[-4000:],
        "longest": err.longest,
        "escapes": "\N{ESCAPE}" in out.getvalue() + err.getvalue(),
        "raised": raised,
        "where": _Where.text,
        "seconds": time.monotonic() - started_s,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


class _Where:
    """Where the last internal error arose."""

    text = ""


def _noted(error: Exception) -> int:
    _Where.text = "".join(traceback.format_exception(error)[-6:])
    return 70


def _forget() -> None:
    """Drop what a command leaves in the process: images, and handlers of its log."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    logging.getLogger("roadaware").handlers.clear()


def main() -> None:
    """Answer each line of standard input by one of standard output."""
    warnings.simplefilter("ignore")
    soft = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 2 * _ROOM
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft))
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(answer(asked["words"], asked["folder"])), file=replies, flush=True)


if __name__ == "__main__":
    main()
