"""The notebooks of the documentation run from top to bottom, and show what they were stored with."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST_BYTES = 250_000


def _load_tool() -> ModuleType:
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason=f"{name} is in roadaware[dev]")
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _collect_texts(cells: list[dict[str, object]]) -> list[str]:
    """What cells print, without numbers, which differ in the last digit from machine to machine."""
    found = []
    for cell in cells:
        for output in cell.get("outputs", ()):  # type: ignore[attr-defined]
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            words = "".join(text) if isinstance(text, list) else text
            if not words.startswith("<Figure"):
                found.append(re.sub(r"[\d.e+-]+", "0", words))
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_notebooks_were_run_whole_and_are_small(path: Path) -> None:
    assert path.stat().st_size < LARGEST_BYTES
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    shown = [output for cell in cells for output in cell["outputs"]]
    assert not [
        output for output in shown if output["output_type"] == "error" or output.get("name") == "stderr"
    ]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert "/tmp" not in path.read_text()


def test_there_is_one_for_each_subject() -> None:
    assert {path.stem for path in NOTEBOOKS} == {
        "evaluate_my_detector",
        "find_corner_cases",
        "predict_crossings",
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_show_what_is_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem == "predict_crossings":
        pytest.importorskip("torch")
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROADAWARE_JAAD", raising=False)
    done = _load_tool().execute(path)
    stored = json.loads(path.read_text())["cells"]
    assert _collect_texts(done["cells"]) == _collect_texts(stored)
