"""A process that starts writers and lets them be killed; it only moves bytes, so that starting one is cheap.

`trials KIND TARGET CONTENTS` starts an endless writer for each line `loop`, or one that dies by itself at the
k-th step for each line `step K`, and prints its process number, then its exit status.
`rounds KIND TARGET CONTENTS N` writes N times and ends.
"""

import importlib
import itertools
import os
import sys
from pathlib import Path

STEPS = ("open", "write", "fsync", "replace", "unlink", "mkdir")


def contents(folder):
    """The encoded sets (or plain files) that are written in turn."""
    found = []
    for each in sorted(Path(folder).iterdir()):
        files = {path.name: path.read_bytes() for path in sorted(each.iterdir())}
        found.append((files, files.pop("meta.json", b"")))
    return found


def write(kind, target, content):
    from roadaware.io.files import write_atomically
    from roadaware.scenes.store import write_table_set

    files, meta = content
    if kind == "set":
        write_table_set(Path(target), files, meta, overwrite=True)
    else:
        write_atomically(Path(target), next(iter(files.values())))


def die_at(step):
    """Let the process end at its k-th step at the file system, before it is done."""
    count = itertools.count(1)

    def counted(call):
        def wrapped(*arguments, **named):
            if next(count) == step:
                os._exit(9)
            return call(*arguments, **named)

        return wrapped

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def child(kind, target, held, order):
    if order[0] == "step":
        die_at(int(order[1]))
        write(kind, target, held[-1])
        os._exit(0)
    for content in itertools.cycle(held[::-1]):
        write(kind, target, content)


def trials(kind, target, held):
    print("ready", flush=True)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            child(kind, target, held, line.split())
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    mode, kind, target, folder, *rest = sys.argv[1:]
    importlib.import_module("roadaware.scenes.store")  # before the fork: a child does not import it again

    held = contents(folder)
    if mode == "trials":
        trials(kind, target, held)
    else:
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(int(rest[0])):
            write(kind, target, held[n % len(held)])
