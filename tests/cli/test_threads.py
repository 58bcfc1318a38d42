"""How many threads a command lets torch use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
set_threads = pytest.importorskip("roadaware.models.devices").set_threads


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("megabytes", "n_files", "threads", "used"),
    [(1, 1, 0, 1), (1, 1, 2, 2), (1, 2, 0, 3), (21, 1, 0, 3), (21, 1, 2, 2)],
)
def test_one_small_network_runs_on_one_thread_unless_told(
    tmp_path: Path, megabytes: int, n_files: int, threads: int, used: int
) -> None:
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.truncate(megabytes << 20)
    set_threads([path] * n_files, threads)
    assert torch.get_num_threads() == used


def test_a_folder_keeps_what_torch_takes(tmp_path: Path) -> None:
    set_threads([tmp_path])
    assert torch.get_num_threads() == 3
