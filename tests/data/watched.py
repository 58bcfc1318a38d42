"""Reads sets in a process that watches itself: what it opened, ran or connected to, its time and its memory.

`python watched.py JOBS`: JOBS is a JSON object of two lists of [reader, path, options]. Those of `warm` are
read before the watch begins, so that what the readers import is there; for each of `watched` the printed JSON
list has one answer.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from roadaware.datasets import read
from roadaware.errors import RoadawareError

FORBIDDEN = ("subprocess", "socket", "ctypes", "shutil", "urllib", "ftplib", "http", "webbrowser")
ALSO = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.forkpty",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.truncate",
    "pickle.find_class",
    "code.__new__",
)


class Watch:
    """Notes what a read has no business to do; it may open what lies in `place` or with Python, to read."""

    def __init__(self) -> None:
        self.place = ""
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The hook."""
        if event.split(".")[0] in FORBIDDEN or event in ALSO:
            self.seen.append(f"{event} {arguments}")
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
            writes = isinstance(arguments[1], str) and bool(set(arguments[1]) & set("wax+"))
            if writes or not path.startswith((self.place, sys.prefix, sys.base_prefix)):
                self.seen.append(f"{event} {arguments}")


def answer(watch: Watch, name: str, path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Read one set: how it ended, in how much time and memory, and what was seen."""
    watch.place, watch.seen = path, []
    grown, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        scenes = read(name, Path(path), cache=False, processes=1, **options)
    except RoadawareError as error:
        ended, text = type(error).__name__, str(error)
    else:
        ended = "read"
        text = "".join(f"{frame.rows()}" for frame in scenes.tables().values()) + repr(scenes.meta)
    return {
        "ended": ended,
        "text": text,
        "cpu_s": time.process_time() - spent,
        "grown_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) / 1024,
        "seen": watch.seen,
    }


def main() -> None:
    """Read all jobs, print the answers."""
    jobs = json.loads(sys.argv[1])
    for name, path, options in jobs["warm"]:
        read(name, Path(path), cache=False, processes=1, **options)
    watch = Watch()
    sys.addaudithook(watch)
    print(json.dumps([answer(watch, *job) for job in jobs["watched"]]))


if __name__ == "__main__":
    main()
