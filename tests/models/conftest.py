"""Folders of tiny models, as published ones lie on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One folder of each kind."""
    from open_folders import WRITERS

    root = tmp_path_factory.mktemp("hub")
    for name, write in WRITERS.items():
        write(root / name)
    return {name: root / name for name in WRITERS}


@pytest.fixture
def copied(folders: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a folder, to be damaged."""
    return lambda name: Path(shutil.copytree(folders[name], tmp_path / name))
