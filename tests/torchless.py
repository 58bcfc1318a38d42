"""Python in a process that has no network libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# To whoever looks, these packages are absent: found nowhere, rather than broken.
_BLOCK = """
import importlib.machinery
plain = importlib.machinery.PathFinder.find_spec
absent = {'torch', 'torchvision', 'transformers', 'lightning', *ABSENT.split()}
importlib.machinery.PathFinder.find_spec = lambda name, *rest: (
    None if name.split('.')[0] in absent else plain(name, *rest)
)
"""


def run(
    code: str, *arguments: str, folder: Path | None = None, absent: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python's `code` in a folder and with some variables of the environment; warnings are errors.

    Args:
        code: what runs.
        arguments: `sys.argv` of it.
        folder: where it runs.
        absent: further packages that are not there.
        environment: variables.
    """
    return subprocess.run(
        [sys.executable, "-c", f"ABSENT = {absent!r}{_BLOCK}{code}", *arguments],
        capture_output=True,
        text=True,
        timeout=900,  # against hanging alone: a loaded machine needs minutes for a whole demo
        env={**os.environ, **environment, "PYTHONWARNINGS": "error"},
        cwd=folder,
        check=False,
    )
