"""Opens mutants of models in processes that watch themselves: a crash, a hang and a leak are answers.

`python watched_models.py TARGET FOLDER SEED`: takes numbers of mutants from its input, one a line, and
answers each with a line of JSON: how it ended, and what it did that opening a model has no business to do.
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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_S, MOST_CPU_S, MOST_MB = 240.0, 60.0, 1500.0
"""Limits of one input: of the clock, which a busy machine delays, of the processor, and of memory."""
MOST_LETTERS = 1500
_LINES, _READY = 2000, "ready"
_SPACE = 16 << 30


def run(target: str, folder: Path, numbers: Iterable[int], seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How mutants ended, and what each one was that must not have ended so.

    Args:
        target: of `model_mutants.TARGETS`.
        folder: an empty one, for the files.
        numbers: of the mutants.
        seed: of all.
    """
    ended: Counter[str] = Counter()
    faults: list[str] = []
    child = _Child(target, folder / "0", seed)
    try:
        for done, number in enumerate(numbers, 1):
            if done % _LINES == 0 or child.process.poll() is not None:
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
    import torch
    from model_mutants import make_mutant
    from model_originals import open_and_ask, write_originals
    from watched import Watch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (_SPACE, _SPACE))
    target, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    write_originals(target, folder / "originals" / target)
    for path in sorted((folder / "originals" / target).iterdir()):
        open_and_ask(path)  # so that what it imports is there
    watch, watching = Watch(), False
    libraries = str(Path(torch.__file__).resolve().parents[1])

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        reads = (
            event == "open" and arguments[1] in ("r", "rb", None) and str(arguments[0]).startswith(libraries)
        )
        # The interpreter looks for the text of what is no Python, such as a header of numpy's.
        reads = reads or arguments[:1] == ("<unknown>",)
        if watching and not reads and event != "code.__new__":  # libraries import what a type of model needs
            watch(event, arguments)

    sys.addaudithook(hook)
    print(_READY, flush=True)
    for line in sys.stdin:
        place = folder / "mutant"
        place.mkdir()
        path = make_mutant(target, folder / "originals", place, int(line), seed)
        watch.place, watch.seen = str(place), []
        grown, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        watching, error = True, None
        try:
            ended, text = open_and_ask(path), ""
        except BaseException as caught:
            error = caught
        watching = False
        if error is not None:
            ended, text = _ended(error)
        spent = time.process_time() - spent
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown) / 1024
        if watch.seen and not ended.startswith("FAULT"):
            ended, text = "FAULT forbidden", watch.seen[0]
        elif spent > MOST_CPU_S or grown_mb > MOST_MB:
            ended, text = "FAULT costs", f"{spent:.1f} s, {grown_mb:.0f} MB; {ended} {text}"
        shutil.rmtree(place)
        print(json.dumps({"ended": ended, "text": text[:2000]}), flush=True)


def _ended(error: BaseException) -> tuple[str, str]:
    """How an input ended that was not opened."""
    from roadaware.errors import RoadawareError

    told = str(error)
    if not isinstance(error, RoadawareError):
        return "FAULT foreign", "".join(traceback.format_exception(error))[-1500:]
    return ("FAULT long message", told) if len(told) > MOST_LETTERS else ("refused", told)


if __name__ == "__main__":
    main()
