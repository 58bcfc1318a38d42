"""The whole command line: options with hostile values, and commands on changed inputs and run folders."""

from __future__ import annotations

import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fuzzing import Target

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from benchmarks.fuzzing import _hostile as hostile
from command_cases import CASES, words_for, write_inputs

BOUND_S = 90.0
"""After which a command is asked to stop, on a machine that others use as well."""
ENDLESS_S = 30.0
"""The same where an input has no end, which is to be seen without waiting for it."""
GRACE_S = 20.0
_QUIET = {"NO_COLOR": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ENDINGS = {0: "done", 1: "findings", 2: "usage", 3: "input", 4: "disk", 130: "stopped, as asked"}
LONGEST = 2200
ROOM_MB = 4000
KEPT = "ROADAWARE_FUZZING_KEPT"
"""The variable that names a folder for the inputs that failed."""
_NOT_MINE = (".mp4", ".png", ".jpg", ".wav", ".bin", ".safetensors", ".yaml")
"""Files that other targets change."""
_TAME = (
    "--processes",
    "--jobs",
    "--threads",
    "--device",
    "--weights",
    "--scenes",
    "--seconds",
    "--resamples",
)
"""Options whose valid values may cost any time, processes or networks; they get only what is refused."""
_WRITTEN = ("--json", "--html", "--out", "--output", "-o")
_REFUSED = ("-1", "nan", "", "x", "9" * 30, "1e400")


@dataclass
class Attempt:
    """A command with something wrong.

    Args:
        words: behind `roadaware`.
        folder: in which it runs; removed afterwards.
        changed: what was done, in words.
    """

    words: list[str]
    folder: Path
    changed: list[str] = field(default_factory=list)


class Runner:
    """A process that runs commands; one that hangs or dies is replaced."""

    def __init__(self, home: Path) -> None:
        self._home, self._process, self._runs = home, None, 0
        self._replies: queue.Queue[str] = queue.Queue()

    def run(self, attempt: Attempt) -> tuple[str, str]:
        """How a command ended, in a word, and what it said."""
        process = self._alive()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"words": attempt.words, "folder": str(attempt.folder)}) + "\n")
        process.stdin.flush()
        endless = any(word.startswith("/dev/zero") or "/odd/fifo" in word for word in attempt.words)
        reply, stopped = self._reply(ENDLESS_S if endless else BOUND_S), False
        if reply is None:
            stopped = True
            process.send_signal(signal.SIGINT)
            reply = self._reply(GRACE_S)
        if reply is None:
            self.close()
            return "FAULT hangs", f"no end within {BOUND_S:.0f} s, and none {GRACE_S:.0f} s after SIGINT"
        if reply == "":
            code = process.wait()
            self._process = None
            return ("stopped, as asked", "") if stopped else ("FAULT dies", f"the process ended with {code}")
        self._runs += 1
        told = json.loads(reply)
        if stopped and endless:
            return "FAULT waits", told["err"]
        if told["memory_mb"] > ROOM_MB or self._runs >= 1500:
            self.close()
        return _word(told, attempt.words)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None

    def _alive(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._runs, self._replies = 0, queue.Queue()
        environment = {**os.environ, "ROADAWARE_HOME": str(self._home)} | _QUIET
        environment.pop("ROADAWARE_DATA_DIR", None)
        command = [sys.executable, "-m", "benchmarks.fuzzing._command_worker"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            cwd=Path(__file__).resolve().parents[2],
            start_new_session=True,
        )
        threading.Thread(target=_pass_on, args=(self._process, self._replies), daemon=True).start()
        return self._process

    def _reply(self, bound_s: float) -> str | None:
        with suppress(queue.Empty):
            return self._replies.get(timeout=bound_s)
        return None


def _pass_on(process: subprocess.Popen[str], replies: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        replies.put(line)
    replies.put("")


def _word(told: dict[str, Any], words: list[str]) -> tuple[str, str]:
    asked = any(word.startswith(("-v", "--verbose")) for word in words)
    if told["raised"]:
        return "FAULT raises", told["raised"]
    if told["code"] not in ENDINGS:
        return f"FAULT {told['code']}", told["where"] + told["err"]
    for wrong, word in (
        ("Traceback" in told["err"] and not asked, "FAULT traceback"),
        (told["longest"] > LONGEST and not asked, "FAULT long message"),
        (told["escapes"], "FAULT escapes"),
        (told["memory_mb"] > ROOM_MB, "FAULT memory"),
    ):
        if wrong:
            return word, told["err"]
    return ENDINGS[told["code"]], told["err"]


def options(name: tuple[str, ...]) -> dict[str, Any]:
    """The options of a command and the annotations of their values, out of the app."""
    from roadaware.cli.app import build_app

    command = build_app("*")
    for word in name:
        command = command[word]
    found = {}
    for argument in command.assemble_argument_collection():
        for option in argument.names:
            if option.startswith("--"):
                found[option] = argument.hint
    return found


def with_options(name: tuple[str, ...], attempt: Attempt, rng: random.Random, places: hostile.Places) -> None:
    """Give a command one to three words that are wrong, missing, doubled or in the wrong place."""
    known = options(name)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        words, how = attempt.words, rng.random()
        begin = len(name)
        if how < 0.55:
            option = rng.choice(list(known))
            tame = option in _TAME or name == ("demo",)
            given = rng.choice(_REFUSED) if tame else hostile.value(known[option], rng, places)
            if option in _WRITTEN and not _harmless(given):
                continue
            if option in words and rng.random() < 0.7:
                words[words.index(option) + 1 : words.index(option) + 2] = [given]
            else:
                words += [option, given] if rng.random() < 0.8 else [f"{option}={given}"]
            attempt.changed.append(f"{option} {given[:80]!r}")
        elif how < 0.75 and len(words) > begin:
            place = rng.randrange(begin, len(words))
            word = places.path(rng) if rng.random() < 0.7 else rng.choice(hostile.TEXTS)
            if (words[place - 1] in _WRITTEN or name[-1] == "example") and not _harmless(word):
                continue
            words[place] = word
            attempt.changed.append(f"word {place} {words[place][:80]!r}")
        elif how < 0.85 and len(words) > begin:
            attempt.changed.append(f"without {words.pop(rng.randrange(begin, len(words)))!r}")
        elif how < 0.93:
            word = rng.choice((*hostile.TEXTS, "--no-such", "-x"))
            words.insert(rng.randrange(begin, len(words) + 1), word)
        elif words[begin:]:
            words.append(rng.choice(words[begin:]))


def _harmless(place: str) -> bool:
    """Whether an output may be tried: no valid input of others, no pipe, which waits for who reads it."""
    return "fifo" not in place and (not Path(place).is_absolute() or "/odd/" in place or "/dev/" in place)


def with_inputs(name: tuple[str, ...], attempt: Attempt, rng: random.Random, places: hostile.Places) -> None:
    """Give a command a copy of one of its inputs with a file of it changed; half of the copies are signed."""
    found = [(k, Path(word)) for k, word in enumerate(attempt.words) if k >= len(name)]
    found = [(k, path) for k, path in found if path.is_absolute() and path.exists()]
    rng.shuffle(found)
    for place, source in found:
        files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
        files = [path for path in files if path.suffix not in _NOT_MINE]
        if not files:
            continue
        copy = hostile.copy_tree(source, attempt.folder / "changed" / source.name)
        small = sorted(files, key=lambda path: path.stat().st_size)[:200]
        for file in rng.choices(small, k=rng.choice((1, 1, 2))):
            target = copy / file.relative_to(source) if source.is_dir() else copy
            hostile.change_file(target, rng)
            attempt.changed.append(str(target.relative_to(attempt.folder)))
        if source.is_dir() and rng.random() < 0.6:
            hostile.sign_again(copy)
            attempt.changed.append("signed")
        attempt.words[place] = str(copy)
        return


_ON_FOLDERS = """
report IN/runs/ped -o OUT
report IN/runs/road -o OUT
report IN/runs/grounding -o OUT
report IN/runs/ped IN/runs/ped2 -o OUT
compare IN/runs/ped IN/runs/ped2 --resamples 2
compare IN/runs/road IN/runs/road --resamples 2
compare IN/runs/grounding IN/runs/grounding --resamples 2
link IN/events/predictions --out OUT
read road IN/home/tables
read saved IN/rounds/original
label agree IN/label/labels --resamples 2
label select IN/label/streets/proposals --resamples 2 -o OUT
label import IN/label/tasks IN/label/streets/corrected.json -o OUT
rescore apply IN/away/proposals --fit IN/energy.npz --detections IN/away/found --out OUT
rescore fit-energy --truth IN/home/tables --detections IN/home/found --out OUT
check annotations IN/rounds/original IN/rounds/round1 -o OUT
evaluate road --truth IN/events/road.json --predictions IN/events/predictions --resamples 0
evaluate corner-cases --truth IN/away/tables --predictions IN/away/proposals --agnostic
evaluate pedestrians --scores IN/ped/action.csv --samples IN/ped/action_samples.csv --task action --resamples 2
calibration IN/ped/action.csv --samples IN/ped/action_samples.csv --task action --resamples 2
"""


def command_line(rng: random.Random, inputs: Path, places: hostile.Places, folder: Path) -> Attempt:
    """A command out of all; those that load networks or take long seldom."""
    weights = {name: 0.1 if case.needs_torch or case.workers else 1.0 for name, case in CASES.items()}
    weights |= {("demo",): 0.02, ("simulate",): 0.3, ("label", "example"): 0.2}
    name = rng.choices(list(weights), list(weights.values()))[0]
    attempt = Attempt(words_for(name, inputs, folder / "out"), folder)
    if name != ("demo",) and rng.random() < 0.3:
        with_inputs(name, attempt, rng, places)
    if not attempt.changed:
        with_options(name, attempt, rng, places)
    return attempt


def run_folders(rng: random.Random, inputs: Path, places: hostile.Places, folder: Path) -> Attempt:
    """A command on run folders, saved tables and files of scores, one of them changed."""
    words = tuple(rng.choice(_ON_FOLDERS.strip().splitlines()).split())
    here = [each.replace("IN/", f"{inputs}/").replace("OUT", str(folder / "out")) for each in words]
    attempt = Attempt(here, folder)
    with_inputs(words[:1], attempt, rng, places)
    return attempt


Make = Callable[[random.Random, Path, hostile.Places, Path], Attempt]


def fates(make: Make, count: int, seed: int = 0) -> Counter[str]:
    """How commands end, `count` of them; what fails is printed, and kept where the variable `KEPT` says."""
    ended: Counter[str] = Counter()
    with _places() as (scratch, inputs, places), _runner(inputs / ".home") as runner:
        before = _digest(inputs)
        for number in range(count):
            rng = random.Random(f"{seed}/{number}")  # noqa: S311 - mutants, not secrets
            folder = scratch / "run" / str(number)
            folder.mkdir(parents=True)
            attempt = make(rng, inputs, places, folder)
            word, said = runner.run(attempt)
            if word.startswith("FAULT"):
                _report(attempt, number, word, said)
            ended[word] += 1
            if number % 100 == 99:
                print(f"{number + 1} of {count}: {dict(ended)}", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
        if _digest(inputs) != before:
            ended["FAULT inputs were written to"] += 1
    return ended


@contextmanager
def _places() -> Iterator[tuple[Path, Path, hostile.Places]]:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        inputs = os.environ.get("ROADAWARE_FUZZING_INPUTS")
        root = write_inputs(Path(inputs) if inputs else scratch / "inputs")
        yield scratch, root, hostile.Places(scratch / "odd", root)


@contextmanager
def _runner(home: Path) -> Iterator[Runner]:
    runner = Runner(home)
    try:
        yield runner
    finally:
        runner.close()


def _report(attempt: Attempt, number: int, word: str, said: str) -> None:
    last = " / ".join(said.strip().splitlines()[-10:])[-1200:]
    print(f"{number}: {word}: {attempt.words} {attempt.changed}: {last}", file=sys.stderr, flush=True)
    if kept := os.environ.get(KEPT):
        target = Path(kept) / f"{attempt.words[0]}-{number}"
        shutil.rmtree(target, ignore_errors=True)
        with suppress(OSError, shutil.Error):
            shutil.copytree(attempt.folder, target, symlinks=True)
        target.mkdir(parents=True, exist_ok=True)
        (target / "words.json").write_text(json.dumps([attempt.words, attempt.changed, word, said]))


def _digest(folder: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and times of all files but the cache, and what `draw` puts into a simulation by itself."""
    found = [(str(path), path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [
        (name, held.st_size, held.st_mtime_ns)
        for name, held in found
        if "/drawn/" not in name and "/.home/" not in name
    ]


TARGETS = (
    Target("command-line", partial(fates, command_line), 10_000, "no exit 70, traceback, hang or signal"),
    Target("run-folders", partial(fates, run_folders), 10_000, "no exit 70, traceback, hang or signal"),
)
