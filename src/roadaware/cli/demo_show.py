"""What the parts of the demo tell of their steps to."""

from __future__ import annotations

from typing import Protocol


class Shows(Protocol):
    """What prints the steps of the demo."""

    def step(self, title: str, command: str) -> None:
        """A new step, and the command that would do it alone."""

    def say(self, words: str) -> None:
        """A part of the result."""
