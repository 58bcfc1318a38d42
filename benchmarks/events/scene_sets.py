"""Sets of simulated scenes: made once into a folder, read as rows."""

from __future__ import annotations

from pathlib import Path

from roadaware.training.events.rows import Rows, flip_scene, join_rows, make_rows
from roadaware.training.events.scenes import Cameras, load_truth, make_truth, save_truth

SETS: dict[str, tuple[int, int, Cameras]] = {
    "train": (101, 660, "usual"),
    "val": (102, 40, "usual"),
    "test": (103, 40, "usual"),
    "unusual": (104, 20, "unusual"),
    "road": (105, 16, "road"),
}
"""Name to seed, scenes and cameras. Nothing of `test`, `unusual` and `road` is seen in training."""


def make_sets(folder: Path, shrink: int = 1) -> None:
    """Simulate what the folder does not hold yet.

    Args:
        folder: of the sets.
        shrink: make only one of so many scenes.
    """
    for name, (seed, scenes, cameras) in SETS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(max(4, scenes // shrink)):
            path = folder / name / f"{number:04d}.npz"
            if not path.exists():
                save_truth(make_truth(seed, number, cameras), path)


def read_rows(
    folder: Path, name: str, *, seed: int, every: int, rounds: int = 1, pixels: bool | None = None
) -> Rows:
    """The rows of a set.

    Args:
        folder: of the sets.
        name: of the set.
        seed: of the errors of detectors.
        every: only every so many-th frame.
        rounds: how often each scene comes, each time with other errors; every second time mirrored.
        pixels: as of `make_rows`.
    """
    parts = []
    for number, path in enumerate(sorted((folder / name).glob("*.npz"))):
        truth = load_truth(path)
        for each in range(rounds):
            shown = flip_scene(truth) if each % 2 else truth
            parts.append(make_rows(shown, number, seed + each, every=every, pixels=pixels))
    return join_rows(parts)
