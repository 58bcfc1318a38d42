"""What the tests of the command line share: the command in this process, and small files."""

from __future__ import annotations

from pathlib import Path

import pytest
from event_files import Events, write_events
from small_demo import Demo
from small_files import Command, Done, Files, write_files

import torchless
from roadaware.cli import main
from roadaware.demo_data import DemoFacts, write_demo
from roadaware.demo_data.chaos import write_chaos


@pytest.fixture
def roadaware(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def run(*words: object) -> Done:
        capsys.readouterr()
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Done(code, said.out, said.err)

    return run


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written outside the tests' folders, nothing is taken from the user's environment."""
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="session")
def demo_set(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DemoFacts]:
    """The demo's dataset, and what was planted into it."""
    root = tmp_path_factory.mktemp("demo") / "data"
    return root, write_demo(root)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Scores and samples of the action task."""
    return write_files(tmp_path)


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Events:
    """Synthetic road events in all the forms that commands take; nobody writes into them."""
    return write_events(tmp_path_factory.mktemp("events"))


@pytest.fixture(scope="session")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Truth and predictions of the four tasks on a synthetic crowd, in native files; nobody writes into them."""
    root = tmp_path_factory.mktemp("chaos")
    write_chaos(root, videos=4)
    return root


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo in a process that has no torch; nobody writes into its folder."""
    place = tmp_path_factory.mktemp("demo-run")
    words = ("demo", "--all", "-o", "runs/demo", "--resamples", "50")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); import small_demo; small_demo.run()"
    home = {"ROADAWARE_HOME": str(place / "cache"), "NO_COLOR": "1"}
    done = torchless.run(code, str(Path(__file__).parent), *words, folder=place, **home)
    return Demo(place, words, Done(done.returncode, done.stdout, done.stderr))


@pytest.fixture(scope="session")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with synthetic scenes in `road` and `chaos`; nobody writes into them."""
    root = tmp_path_factory.mktemp("synthetic")
    for preset, more in (("road", ["--size", "160x120"]), ("chaos", ["--size", "160x90"])):
        words = ["--preset", preset, "--scenes", "2", "--seconds", "1.5", "--fps", "6", "--seed", "3", *more]
        assert main(["simulate", *words, "--processes", "1", "--out", str(root / preset), "-q"]) == 0
    return root
