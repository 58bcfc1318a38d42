"""Opens mutants in processes that watch themselves, so that a crash, a hang or a leak is an answer.

`python watched_mutants.py TARGET FOLDER SEED`: takes numbers of mutants from its input, one a line, and
answers each with a line of JSON: how it ended, and what it did that no reader has any business to do.
"""

from __future__ import annotations

import json
import resource
import select
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

MEDIA = ("media", "stills", "exif")
"""Targets of `media_mutants`; the others are those of `model_mutants`."""
MOST_LETTERS = 1500
_READY = "ready"


@dataclass(frozen=True)
class Limits:
    """Of one input: of the clock, which a busy machine delays, of the processor, and of memory."""

    seconds: float
    cpu_s: float
    grown_mb: float
    space_bytes: int
    lines: int


LIMITS = {True: Limits(120.0, 30.0, 1000.0, 8 << 30, 500), False: Limits(240.0, 60.0, 1500.0, 16 << 30, 2000)}
"""For media, and for models; a process has so much space, and ends after so many lines."""


class _Family(NamedTuple):
    """What differs between media and models.

    Args:
        make: a mutant of a number and a seed in a folder.
        ask: open it; how that ended.
        libraries: what may be read while it does so.
    """

    make: Callable[[Path, int, int], Path]
    ask: Callable[[Path], str]
    libraries: str


def run(target: str, folder: Path, numbers: Iterable[int], seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How mutants ended, and what each one was that must not have ended so.

    Args:
        target: of `MEDIA`, or of `model_mutants.TARGETS`.
        folder: an empty one, for the files.
        numbers: of the mutants.
        seed: of all.
    """
    ended: Counter[str] = Counter()
    faults: list[str] = []
    child = _Child(target, folder / "0", seed)
    try:
        for done, number in enumerate(numbers, 1):
            if done % child.limits.lines == 0 or child.process.poll() is not None:
                child.end()
                child = _Child(target, folder / str(done), seed)
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
        self.limits = LIMITS[target in MEDIA]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{_READY}\n", "the originals cannot be opened"

    def ask(self, number: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        if not select.select([self.process.stdout], [], [], self.limits.seconds)[0]:
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
    from watched import Watch

    target, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    limits = LIMITS[target in MEDIA]
    resource.setrlimit(resource.RLIMIT_AS, (limits.space_bytes, limits.space_bytes))
    family = (_media if target in MEDIA else _models)(target, folder)
    watch, watching = Watch(), False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # Libraries import what a type of model needs, and look for the lines of their tracebacks; the
        # interpreter looks for the text of what is no Python, such as a header of numpy's.
        inside = event == "open" and str(arguments[0]).startswith(family.libraries)
        reads = (inside and arguments[1] in ("r", "rb", None)) or arguments[:1] == ("<unknown>",)
        if watching and not reads and event != "code.__new__":
            watch(event, arguments)

    sys.addaudithook(hook)
    print(_READY, flush=True)
    for line in sys.stdin:
        place = folder / "mutant"
        place.mkdir()
        path = family.make(place, int(line), seed)
        watch.place, watch.seen = str(place), []
        grown, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        watching, error = True, None
        try:
            ended, text = family.ask(path), ""
        except BaseException as caught:
            error = caught
        watching = False
        if error is not None:
            ended, text = _ended(error)
        spent = time.process_time() - spent
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) / 1024
        if watch.seen and not ended.startswith("FAULT"):
            ended, text = "FAULT forbidden", watch.seen[0]
        elif spent > limits.cpu_s or grown_mb > limits.grown_mb:
            ended, text = "FAULT costs", f"{spent:.1f} s, {grown_mb:.0f} MB; {ended} {text}"
        shutil.rmtree(place)
        print(json.dumps({"ended": ended, "text": text[:2000]}), flush=True)


def _media(target: str, folder: Path) -> _Family:
    """Videos, images and EXIF; one of each is read first, so that what its reader imports is there."""
    import media_mutants
    import PIL
    from media_readers import READERS

    for name, data in (media_mutants._films()[0], media_mutants._stills()[0], media_mutants._stills()[4]):
        warm = folder / "warm" / name
        warm.mkdir(parents=True, exist_ok=True)
        path = warm / ("a.mp4" if name == "mp4" else "a.jpg")
        path.write_bytes(data)
        READERS["media" if name == "mp4" else "stills"](path)

    def make(place: Path, number: int, seed: int) -> Path:
        name, data = media_mutants.TARGETS[target](number, seed)
        (place / name).write_bytes(data)
        return place / name

    return _Family(make, READERS[target], str(Path(PIL.__file__).resolve().parents[1]))


def _models(target: str, folder: Path) -> _Family:
    """Recipes, weights, predictors and model folders; the originals are opened first."""
    import torch
    from model_mutants import make_mutant
    from model_originals import open_and_ask, write_originals

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    write_originals(target, folder / "originals" / target)
    for path in sorted((folder / "originals" / target).iterdir()):
        open_and_ask(path)

    def make(place: Path, number: int, seed: int) -> Path:
        return make_mutant(target, folder / "originals", place, number, seed)

    return _Family(make, open_and_ask, str(Path(torch.__file__).resolve().parents[1]))


def _ended(error: BaseException) -> tuple[str, str]:
    """How an input ended that was not opened."""
    from roadaware.errors import RoadawareError

    told = str(error)
    if not isinstance(error, RoadawareError):
        return "FAULT foreign", "".join(traceback.format_exception(error))[-1500:]
    return ("FAULT long message", told) if len(told) > MOST_LETTERS else ("refused", told)


if __name__ == "__main__":
    main()
