"""Every test of this folder gets its own cache, and the native set of each reader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import sets
from sets import SETS, NativeSet

Jobs = list[Path]
Watched = Callable[[NativeSet, Jobs], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture(params=[name for name, each in SETS.items() if each.maker.FORMAT == "xml"])
def native(request: pytest.FixtureRequest) -> NativeSet:
    """Each set of XML files."""
    return SETS[request.param]


@pytest.fixture
def root(native: NativeSet, tmp_path: Path) -> Path:
    """A set that the test may damage."""
    return native.make(tmp_path / "set", frames=6)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """Reads sets in another process that watches itself, see `watched.py`."""

    def run(each: NativeSet, places: Jobs) -> list[dict[str, Any]]:
        warm = each.make(tmp_path / "warm", frames=6)
        first, *jobs = [[each.name, str(place), each.options] for place in (warm, *places)]
        script = str(Path(sets.__file__).with_name("watched.py"))
        done = subprocess.run(
            [sys.executable, script, json.dumps({"warm": [first], "watched": jobs})],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers

    return run
