"""Reads mutants of media in processes that watch themselves, so that a crash, a hang or a leak is an answer.

`python watched_media.py TARGET FOLDER SEED`: takes numbers of mutants from its input, one a line, and answers
each with a line of JSON: how it ended, its seconds, how far memory grew, and what it did that no reader may.
"""

from __future__ import annotations

import json
import resource
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_S, MOST_CPU_S, MOST_MB = 120.0, 30.0, 1000.0
"""Limits of one input: of the clock, which a busy machine delays, of the processor, and of memory."""
_LINES = 500


def run(target: str, folder: Path, numbers: Iterable[int], seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How mutants ended, and what each one was that must not have ended so.

    Args:
        target: `media`, `stills` or `exif`.
        folder: an empty one, for the files.
        numbers: of the mutants.
        seed: of all.
    """
    ended: Counter[str] = Counter()
    faults: list[str] = []
    child = _Child(target, folder, seed)
    try:
        for done, number in enumerate(numbers):
            if done % _LINES == 0 or child.process.poll() is not None:
                child.end()
                child = _Child(target, folder, seed)
            answer = child.ask(number)
            ended[answer["ended"]] += 1
            if answer["ended"].startswith("FAULT"):
                faults.append(f"{target} {seed} {number}: {answer['ended']} {answer.get('text', '')}")
    finally:
        child.end()
    return ended, faults


class _Child:
    def __init__(self, target: str, folder: Path, seed: int) -> None:
        command = [sys.executable, __file__, target, str(folder), str(seed)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, number: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        if not select.select([self.process.stdout], [], [], MOST_S)[0]:
            self.process.kill()
            return {"ended": "FAULT hang"}
        line = self.process.stdout.readline()
        if not line:
            return {"ended": f"FAULT crash: the process ended with {self.process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        if self.process.stdin is not None and self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def main() -> None:
    """Answer numbers until there are no more."""
    import media_mutants
    import PIL
    from media_readers import READERS
    from watched import Watch

    target, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    warm = folder / f"warm-{target}"
    for name, data in (media_mutants._films()[0], media_mutants._stills()[0], media_mutants._stills()[4]):
        (warm / name).mkdir(parents=True, exist_ok=True)
        path = warm / name / ("a.mp4" if name == "mp4" else "a.jpg")
        path.write_bytes(data)
        READERS["media" if name == "mp4" else "stills"](path)
    watch = Watch()
    watching = False
    libraries = str(Path(PIL.__file__).resolve().parents[1])

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # Compiled modules make code objects for the lines of their tracebacks.
        ours = event == "open" and str(arguments[0]).startswith(libraries) and arguments[1] == "r"
        if watching and not ours and event != "code.__new__":
            watch(event, arguments)

    sys.addaudithook(hook)
    for line in sys.stdin:
        name, data = media_mutants.TARGETS[target](int(line), seed)
        place = folder / target
        place.mkdir(exist_ok=True)
        path = place / name
        path.write_bytes(data)
        watch.place, watch.seen = str(place), []
        grown, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        watching = True
        ended, text = _ended(READERS[target], path)
        watching = False
        spent = time.process_time() - spent
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) / 1024
        if watch.seen:
            ended, text = "FAULT forbidden", watch.seen[0]
        elif spent > MOST_CPU_S or grown_mb > MOST_MB:
            ended, text = "FAULT costs", f"{spent:.1f} s, {grown_mb:.0f} MB"
        path.unlink()
        print(
            json.dumps({"ended": ended, "text": text[:2000], "cpu_s": spent, "grown_mb": grown_mb}),
            flush=True,
        )


def _ended(read: Any, path: Path) -> tuple[str, str]:
    import traceback

    from roadaware.errors import RoadawareError

    try:
        return read(path), ""
    except RoadawareError as error:
        told = str(error)
        if len(told) > 1500:
            return "FAULT long message", told
        return "refused", told
    except BaseException:
        return "FAULT foreign", traceback.format_exc()[-1500:]


if __name__ == "__main__":
    main()
