"""Every test of this folder gets its own cache, and the native set of each reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from sets import SETS, NativeSet, copied

from roadaware.scenes.tables import Scenes


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def clean_roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: each.make(tmp_path_factory.mktemp(name) / "set") for name, each in SETS.items()}


@pytest.fixture(scope="session")
def clean_scenes(clean_roots: dict[str, Path]) -> dict[str, Scenes]:
    return {name: SETS[name].read(root) for name, root in clean_roots.items()}


@pytest.fixture(scope="session")
def lone_roots(clean_roots: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sets with the main video only."""
    return {
        name: SETS[name].alone(copied(root, tmp_path_factory.mktemp(f"lone-{name}") / "set"))
        for name, root in clean_roots.items()
    }


@pytest.fixture(scope="session")
def lone_scenes(lone_roots: dict[str, Path]) -> dict[str, Scenes]:
    return {name: SETS[name].read(root) for name, root in lone_roots.items()}


@pytest.fixture(params=list(SETS))
def native(request: pytest.FixtureRequest) -> NativeSet:
    """Each reader's set; a test it is excused from must fail."""
    each = SETS[request.param]
    reason = each.excused.get(request.node.originalname)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    return each


@pytest.fixture
def clean(native: NativeSet, clean_scenes: dict[str, Scenes]) -> Scenes:
    """What the undamaged set holds."""
    return clean_scenes[native.name]


@pytest.fixture
def root(native: NativeSet, clean_roots: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the set that the test may damage."""
    return copied(clean_roots[native.name], tmp_path / "set")
