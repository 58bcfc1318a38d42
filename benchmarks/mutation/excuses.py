"""Changes that no test can find, because they change nothing that is promised, each with the reason."""

from __future__ import annotations

EXCUSES: dict[str, dict[str, str]] = {}
"""By module below `roadaware.`: key of the change, and why it is equivalent. One that is found is stale."""
