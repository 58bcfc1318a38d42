"""Writes constraints.txt: one exact version of every package, for each Python that pyproject.toml allows.

`make lock` runs it. Versions alone, for `pip install -c`: pip takes no hashes together with an editable
install, and a build of torch for the CPU, where one is offered, has the version of PyPI's and other hashes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "constraints.txt"
_HEAD = """\
# One version of every package that `pip install -e '.[dev]'` takes, for each Python from 3.11 on. Written by
# `make lock`, used by `make setup LOCKED=1`. What a platform or Python does not need is not installed.
"""
_LINE = re.compile(r"[a-z0-9][a-z0-9._-]*==[^\s;]+( ; [^;]+)?")


def main() -> int:
    """Resolve, refuse lines that name anything but a version, and write."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--upgrade"]
    command += ["--python-version", "3.11", "--extra", "dev", "--no-header", "--no-annotate"]
    command += ["--no-emit-index-url", "--no-emit-find-links", str(ROOT / "pyproject.toml")]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if found.returncode:
        return found.returncode
    lines = [line for line in found.stdout.splitlines() if line and not line.startswith("#")]
    if odd := [line for line in lines if not _LINE.fullmatch(line)]:
        print(f"expected NAME==VERSION, found: {odd[0]}; nothing is written", file=sys.stderr)
        return 1
    LOCK.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{LOCK.name}: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
