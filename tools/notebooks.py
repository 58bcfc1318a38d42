"""Runs the notebooks of docs/ and stores what they show; `python tools/notebooks.py [NAME ...]`.

Outputs are kept as they are, without the times and counters that differ from run to run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
TIMEOUT_S = 600


def execute(path: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs of a run in a folder of its own.

    Args:
        path: of the notebook, which stays as it is.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    # A hint of tqdm's to whoever has no widgets, with a path of the machine in it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as place:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": place}},
            record_timing=False,
        )
        return client.execute()


def main(names: list[str]) -> int:
    """Run and store all notebooks, or those that are named."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            done = execute(path)
            done.metadata["language_info"] = {"name": "python"}
            nbformat.write(done, path)
            print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
