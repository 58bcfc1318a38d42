"""The command line: verbs, what they share, and `main`, which turns outcomes and errors into exit codes."""

from __future__ import annotations

from collections.abc import Sequence

# 128 and the number of SIGINT.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the words after `roadaware`; those of the process where None.
    """
    try:
        # Inside, so that Ctrl-C while this loads ends as quietly as later.
        from roadaware.cli.app import main as run
    except KeyboardInterrupt:
        return _INTERRUPTED
    return run(arguments)
