"""A small run with a film whose frames show their numbers, and a viewer over it."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from numbered import Client, Open, make_predictions, make_truth, write_numbered_film

from roadaware.cli import main
from roadaware.scenes.store import save
from roadaware.viewer.opening import open_paths
from roadaware.viewer.serve import Viewer


@pytest.fixture(scope="session")
def numbered_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("films") / "one.mp4"
    write_numbered_film(path)
    return path


@pytest.fixture
def sets(tmp_path: Path, numbered_film: Path) -> Path:
    """A folder with `truth`, `found`, `other` and the film of one of two videos."""
    return write_sets(tmp_path / "sets", numbered_film)


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory, numbered_film: Path) -> Path:
    """The same with `run`, an evaluation of `found`; for tests that judge nothing."""
    root = write_sets(tmp_path_factory.mktemp("judged") / "sets", numbered_film)
    words = f"evaluate road --truth {root}/truth --predictions {root}/found --resamples 0 -o {root}/run -q"
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words.split()) == 0
    return root


def write_sets(root: Path, numbered_film: Path) -> Path:
    (root / "films").mkdir(parents=True)
    (root / "films" / "one.mp4").write_bytes(numbered_film.read_bytes())
    save(make_truth(), root / "truth")
    save(make_predictions(), root / "found")
    save(make_predictions(shift=12.0), root / "other")
    return root


@pytest.fixture
def viewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Start a viewer over paths; it ends with the test."""
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))
    running: list[tuple[Viewer, threading.Thread]] = []

    def start(*paths: Path, media: Sequence[Path] = (), annotator: str = "ann") -> Client:
        viewer, ready = Viewer(open_paths(paths, media), annotator=annotator), threading.Event()
        thread = threading.Thread(target=viewer.serve, args=(ready.set,), daemon=True)
        thread.start()
        assert ready.wait(30)
        running.append((viewer, thread))
        return Client(viewer)

    yield start
    for viewer, thread in running:
        viewer.stop()
        thread.join(20)
        assert not thread.is_alive()
