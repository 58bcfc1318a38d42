"""Parts of long work: each is done once, failures are named and leave the others, workers that die are replaced and end
with whoever started them; the same by processes and on Ray."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_ray import FakeRay
from parallel_parts import (
    die_at_first,
    fail_at,
    fill_disk,
    hang_at,
    refuse,
    return_late,
    return_unsendable,
    sleep_but_first,
    square,
    tell_place,
)

from roadaware.addresses import keep_secret, mask_secrets, reset_secrets
from roadaware.errors import DiskError, FindingsError, Terminated, UsageError
from roadaware.io import parallel
from roadaware.io.parallel import HERE, PartResult, WorkerPool, Workers, map_parts, run_parts

TWO = Workers(processes=2)
SLEEPERS = """
from pathlib import Path
from functools import partial
from roadaware.io.parallel import Workers, map_parts
from parallel_parts import sleep
if __name__ == "__main__":
    list(map_parts(partial(sleep, Path({folder!r})), [0, 1], Workers({on!r}, 2)))
"""
WITHOUT_GUARD = """
from roadaware.io.parallel import Workers, map_parts
from parallel_parts import square
list(map_parts(square, [0, 1], Workers(processes=2)))
"""


def values(results: object) -> dict[int, object]:
    return {each.place: each.value for each in results}  # type: ignore[attr-defined]


def is_over(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# In this process.


def test_one_at_a_time_is_done_here_in_order() -> None:
    places = [each.value for each in map_parts(tell_place, [0, 1, 2], HERE)]
    assert places == [(os.getpid(), str(Path.cwd()), os.environ.get("ROADAWARE_DATA_DIR"))] * 3
    assert [each.value for each in map_parts(lambda number: number + 1, range(3), HERE)] == [1, 2, 3]
    assert [each.value for each in map_parts(square, [5], TWO)] == [25]  # one part needs nobody else
    assert list(map_parts(square, [], TWO)) == []


def test_a_part_that_fails_leaves_the_others() -> None:
    found = list(map_parts(fail_at, range(4), HERE))
    assert [(each.place, each.value) for each in found] == [(0, 0), (1, None), (2, None), (3, 3)]
    assert found[1].failure == "drive.mp4: no such pixel\n  look at it"
    assert found[2].failure == "a fault of roadaware, ZeroDivisionError: first line"
    assert found[0].failure is None
    assert found[3].failure is None


def test_what_all_parts_would_meet_ends_the_work() -> None:
    seen: list[int] = []
    with pytest.raises(DiskError, match="full"):
        seen.extend(each.place for each in map_parts(fill_disk, range(4), HERE))
    with pytest.raises(UsageError, match="no such knob"):
        list(map_parts(refuse, range(4), HERE))


def test_an_interruption_is_no_failure_of_a_part() -> None:
    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(map_parts(interrupt, [0, 1], HERE))


def test_failures_are_named_once_the_rest_is_done() -> None:
    done: list[int] = []
    # Beside one that the input is to blame for there is one that roadaware is: that decides.
    with pytest.raises(RuntimeError) as caught:
        run_parts(
            fail_at,
            range(4),
            HERE,
            what="scenes",
            name="scene {}".format,
            done=lambda number, value: done.append(number),
        )
    assert done == [0, 3]
    assert str(caught.value).splitlines() == [
        "2 of 4 scenes failed; the others are done and stay, and the same command tries these again",
        "  scene 1: drive.mp4: no such pixel look at it",
        "  scene 2: a fault of roadaware, ZeroDivisionError: first line",
    ]
    with pytest.raises(FindingsError, match=r"^1 of 2 scenes") as blamed:
        run_parts(
            fail_at, range(2), HERE, what="scenes", name=str, done=lambda number, value: done.append(number)
        )
    assert blamed.value.exit_code == 1
    with pytest.raises(FindingsError, match=r"30 of 30 scenes[\s\S]*and 20 more$"):
        run_parts(
            lambda number: fail_at(1),
            range(30),
            HERE,
            what="scenes",
            name=str,
            done=lambda number, value: done.append(number),
        )


def test_the_seconds_are_those_of_all_parts() -> None:
    def burn(number: int) -> None:
        ends_s = time.process_time() + 0.02
        while time.process_time() < ends_s:
            pass

    seconds = run_parts(burn, range(3), HERE, what="parts", name=str, done=lambda number, value: None)
    assert 0.06 <= seconds < 0.6


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"on": "slurm"}, "not 'slurm'"),
        ({"on": "ray://"}, "not 'ray://'"),
        ({"on": "ray://head"}, "not 'ray://head'"),
        ({"on": ""}, "not ''"),
        ({"processes": -1}, "processes are 0 or more"),
        ({"tries": 0}, "tries 1 or more"),
        ({"limit_s": 0.0}, "above 0, not 0"),
        ({"limit_s": float("nan")}, "above 0, not nan"),
        ({"limit_s": float("inf")}, "above 0, not inf"),
    ],
)
def test_wrong_requests_are_refused_before_any_work(words: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)):
        Workers(**words)  # type: ignore[arg-type]


def test_without_ray_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'roadaware\[scale\]'"):
        Workers("ray")
    assert Workers("local").on == "local"


# On Ray, of which the fast tests have a stand-in.


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay()
    modules = {"ray": found, "ray._private.worker": SimpleNamespace()}
    monkeypatch.setattr(
        "roadaware.io.parallel.importlib",
        SimpleNamespace(import_module=modules.__getitem__, util=importlib.util),
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return found


def test_actors_do_what_this_process_does_and_are_ended(ray: FakeRay) -> None:
    here = [PartResult(each.place, each.value, each.failure) for each in map_parts(fail_at, range(40), HERE)]
    there = list(map_parts(fail_at, range(40), Workers("ray", 0), in_order=True))
    assert [PartResult(each.place, each.value, each.failure) for each in there] == here
    assert ray.killed == [1, 0]  # as many as the cluster has processors
    assert ray.options["num_cpus"] == 1
    assert ray.addresses == [None]
    list(map_parts(square, range(9), Workers("ray://head:10001", 5)))
    assert len(ray.killed) == 2 + 5
    assert ray.addresses[1:] == ["ray://head:10001"]
    with pytest.raises(DiskError, match="full"):
        list(map_parts(fill_disk, range(4), Workers("ray", 1)))


def test_actors_that_are_lost_are_replaced(ray: FakeRay) -> None:
    ray.dies = lambda actor, method: method == "work_on" and actor < 2
    assert [each.value for each in map_parts(square, range(6), Workers("ray"), in_order=True)] == [
        0,
        1,
        4,
        9,
        16,
        25,
    ]
    ray.dies = lambda actor, method: method == "work_on"
    (only,) = map_parts(square, [7], Workers("ray", tries=2))
    assert only.failure is not None
    assert only.failure.startswith("its worker died 2 times: it crashed, was ended")
    assert only.failure.endswith("(ActorDiedError)")


def test_a_cluster_whose_workers_do_not_start_is_an_error(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray.dies = lambda actor, method: method == "enter"
    with pytest.raises(UsageError, match="workers do not start: it crashed"):
        list(map_parts(square, range(4), Workers("ray")))
    ray.dies = lambda actor, method: False
    monkeypatch.setattr("roadaware.io.parallel.Path.cwd", lambda: Path("/not/there"))
    with pytest.raises(UsageError, match=r"workers do not start: a worker on .* cannot enter /not/there"):
        list(map_parts(square, range(4), Workers("ray")))


def test_a_cluster_that_is_slow_to_start_is_tried_again_and_one_that_is_not_there_named(ray: FakeRay) -> None:
    ray.failures = ["The current node timed out during startup."] * 2
    assert len(list(map_parts(square, range(4), Workers("ray")))) == 4
    assert ray.addresses == [None] * 3
    ray.failures = ["The current node timed out during startup."] * 3
    with pytest.raises(UsageError, match="no Ray cluster can be used at ray: The current node timed out"):
        list(map_parts(square, range(4), Workers("ray")))
    ray.failures = ["nobody listens"]
    with pytest.raises(UsageError, match="no Ray cluster can be used at ray://auto: nobody listens"):
        list(map_parts(square, range(4), Workers("ray://auto")))
    assert ray.addresses[6:] == ["auto"]


def test_messages_show_which_cluster_and_no_password() -> None:
    reset_secrets()
    for word in ("ray://auto", "ray://head:10001", "--on=ray://me:long-word@head:10001"):
        keep_secret(word)
    said = "no Ray cluster can be used at {}"
    for shown in ("ray://auto", "ray://head:10001"):
        assert mask_secrets(said.format(shown)) == said.format(shown)
    assert "long-word" not in mask_secrets(said.format("ray://me:long-word@head:10001"))
    reset_secrets()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, Terminated])
def test_a_signal_that_ray_wraps_into_an_error_of_its_own_is_raised_as_itself(
    ray: FakeRay, interrupt: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(refs: Any, **how: Any) -> Any:
        raise SystemError("returned a result with an exception set") from interrupt()

    monkeypatch.setattr(ray, "wait", wait, raising=False)
    with pytest.raises(interrupt):
        list(map_parts(square, range(4), Workers("ray")))


# By processes: one fast test that starts some, the others are slow.


@pytest.mark.slow
def test_two_processes_give_what_one_gives_and_live_through_the_loss_of_one(tmp_path: Path) -> None:
    with closing(WorkerPool(Workers(processes=2, tries=2))) as pool:
        assert values(pool.map(square, range(20))) == {number: number * number for number in range(20)}
        found = sorted(pool.map(partial(die_at_first, tmp_path), range(4)), key=lambda each: each.place)
        assert [each.value for each in found] == [0, 1, None, 3]
        assert "its worker died 2 times" in str(found[2].failure)
        assert "exit code 9" in str(found[2].failure)
        assert [len(list(tmp_path.glob(f"{number}-*"))) for number in range(4)] == [1, 2, 2, 1]
        with pytest.raises(DiskError, match="full"):
            list(pool.map(fill_disk, range(4)))
        ordered = [each.place for each in pool.map(return_late, range(3), in_order=True)]
        assert ordered == [0, 1, 2]


class PromptEngine:
    """Workers that have done each part as soon as they have it; notes which parts were begun."""

    size = 2

    def __init__(self) -> None:
        self.answers: list[tuple[Any, Any]] = []
        self.begun: list[int] = []

    def share(self, work: Any) -> Any:
        return work

    def start(self) -> Any:
        engine = self

        class Prompt:
            def send(self, work: Any, part: int) -> None:
                engine.begun.append(part)
                engine.answers.append((self, parallel._Reply(part)))

            def kill(self) -> None:
                engine.answers[:] = [each for each in engine.answers if each[0] is not self]

        worker = Prompt()
        self.answers.append((worker, None))
        return worker

    def wait(self, timeout_s: float) -> list[tuple[Any, Any]]:
        said, self.answers = self.answers, []
        return said


def test_who_takes_results_slowly_makes_no_worker_late_and_none_wait() -> None:
    pool = WorkerPool(Workers(processes=2, limit_s=0.05))
    engine = PromptEngine()
    pool._engine = engine
    with closing(pool):
        ahead = []
        for result in pool.map(square, range(6)):
            assert result.failure is None
            ahead.append(len(engine.begun))
            time.sleep(0.1)  # longer than a part may take
    # Two are at work, or waiting to be heard, while the first results are taken.
    assert ahead == [3, 4, 5, 6, 6, 6]


ENGINES = [
    "local",
    pytest.param(
        "ray://local",
        marks=pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an extra"),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("on", ENGINES)
def test_every_part_is_done_once_whatever_the_workers_are(on: str, tmp_path: Path) -> None:
    here = [PartResult(each.place, each.value, each.failure) for each in map_parts(fail_at, range(6), HERE)]
    there = list(map_parts(fail_at, range(6), Workers(on, 2), in_order=True))
    assert [PartResult(each.place, each.value, each.failure) for each in there] == here
    for error, work in ((DiskError, fill_disk), (UsageError, refuse)):
        with pytest.raises(error):
            list(map_parts(work, range(4), Workers(on, 2)))
    found = list(map_parts(return_unsendable, range(3), Workers(on, 2), in_order=True))
    assert [each.value for each in found] == [0, None, 2]
    assert "a fault of roadaware" in str(found[1].failure)


@pytest.mark.slow
@pytest.mark.parametrize("on", ENGINES)
def test_a_worker_that_dies_is_replaced_and_its_part_begun_again(on: str, tmp_path: Path) -> None:
    found = list(map_parts(partial(die_at_first, tmp_path), range(4), Workers(on, 2), in_order=True))
    assert [each.value for each in found] == [0, 1, None, 3]
    assert "its worker died 3 times" in str(found[2].failure)
    assert [len(list(tmp_path.glob(f"{number}-*"))) for number in range(4)] == [1, 2, 3, 1]


@pytest.mark.slow
@pytest.mark.parametrize("on", ENGINES)
def test_a_part_that_hangs_is_ended_and_the_rest_is_done(on: str, tmp_path: Path) -> None:
    began_s = time.monotonic()
    found = list(map_parts(partial(hang_at, tmp_path), range(4), Workers(on, 2, limit_s=5), in_order=True))
    assert [each.value for each in found] == [0, None, 2, 3]
    assert found[1].failure == "it took longer than 5 s"
    assert time.monotonic() - began_s < 55
    (hung,) = tmp_path.glob("1-*")
    wait_until(lambda: is_over(int(hung.name.partition("-")[2])))


@pytest.mark.slow
@pytest.mark.parametrize("on", ENGINES)
def test_workers_stand_where_the_work_was_begun(
    on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROADAWARE_DATA_DIR", "here")
    found = [each.value for each in map_parts(tell_place, range(4), Workers(on, 2))]
    assert {each[1:] for each in found if each is not None} == {(str(tmp_path), "here")}
    assert os.getpid() not in {each[0] for each in found if each is not None}


@pytest.mark.slow
@pytest.mark.parametrize("on", ENGINES)
def test_whoever_stops_taking_ends_the_others(on: str, tmp_path: Path) -> None:
    with closing(map_parts(partial(sleep_but_first, tmp_path), [0, 1], Workers(on, 2))) as results:
        assert next(results).place == 0
        wait_until(lambda: any(tmp_path.iterdir()))
    wait_until(lambda: all(is_over(int(path.name)) for path in tmp_path.iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("on", ENGINES)
def test_a_killed_process_leaves_no_workers_behind(on: str, tmp_path: Path) -> None:
    script = tmp_path / "sleepers.py"
    folder = tmp_path / "workers"
    folder.mkdir()
    script.write_text(SLEEPERS.format(folder=str(folder), on=on))
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path})
    wait_until(lambda: len(list(folder.iterdir())) == 2, 200)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: all(is_over(int(each.name)) for each in folder.iterdir()))


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_of_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_GUARD)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "workers do not start" in done.stderr
    assert "if __name__ == '__main__':" in done.stderr


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_named() -> None:
    pytest.importorskip("ray")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from roadaware.io.parallel import *; list(map_parts(abs, [1], Workers('ray://auto')))",
        ],
        env={**os.environ, "RAY_ADDRESS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "no Ray cluster can be used at ray://auto" in done.stderr
