"""Commands in processes that watch themselves, and their workers: what they opened, ran or connected to."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HOOK = Path(__file__).resolve().parent / "audit_site"
SOURCE = Path(__file__).resolve().parent.parent / "src"
SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/lib64")
"""What the interpreter and the libraries look up of the machine; nothing of it belongs to somebody."""
DEVICES = ("/dev/null", "/dev/shm", "/dev/urandom")
SET_HERE = ("ROADAWARE", "TORCHINDUCTOR", "TRITON")
"""Variables that are not passed on: caches of the test itself, which torch notes there."""


@dataclass(frozen=True)
class Watched:
    """How a command ended, and what it did that nothing allows."""

    code: int
    out: str
    err: str
    breaches: list[str]


def run(
    words: list[str],
    *,
    scratch: Path,
    reads: tuple[Path, ...] = (),
    writes: tuple[Path, ...] = (),
    libraries: tuple[str, ...] = (),
    programs: tuple[str, ...] = (),
    timeout_s: float = 600,
) -> Watched:
    """Run a command under the hook.

    Args:
        words: behind `roadaware`.
        scratch: holds cache, temporary files and notes; the command may write there.
        reads: what it may read, besides what it may write and what is installed.
        writes: what it may write.
        libraries: beginnings of the names of libraries that it may load by name.
        programs: that it may start.
    """
    for name in ("home", "tmp", "work"):
        (scratch / name).mkdir(parents=True, exist_ok=True)
    notes = scratch / "breaches.txt"
    notes.unlink(missing_ok=True)
    installed = {sys.prefix, sys.base_prefix, *site.getsitepackages(), *sysconfig.get_paths().values()}
    paths = [str(path) for path in sys.path if "site-packages" in path]
    asked = {
        "notes": str(notes),
        "reads": [*SYSTEM, *installed, *paths, str(SOURCE), str(HOOK), *map(str, reads)],
        "writes": [
            str(scratch),
            *DEVICES,
            *map(str, writes),
            os.environ.get("NUMBA_CACHE_DIR", str(scratch)),
        ],
        "libraries": list(libraries),
        "programs": list(programs),
    }
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(SET_HERE)},
        "ROADAWARE_AUDIT": json.dumps(asked),
        "PYTHONPATH": str(HOOK),
        "PYTHONDONTWRITEBYTECODE": "1",
        "ROADAWARE_HOME": str(scratch / "home" / "roadaware"),
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "roadaware", *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=scratch / "work",
        timeout=timeout_s,
        check=False,
    )
    found = notes.read_text().splitlines() if notes.exists() else ["the hook was not loaded"]
    return Watched(done.returncode, done.stdout, done.stderr, found)
