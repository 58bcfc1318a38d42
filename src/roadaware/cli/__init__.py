"""The command line: one thin file per verb, and `main`, which turns outcomes and errors into exit codes."""

from roadaware.cli.app import main

__all__ = ["main"]
