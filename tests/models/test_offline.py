"""What runs models reports nothing to anybody, and keeps no identifier of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

TESTS = Path(__file__).resolve().parents[1]
RUN = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from tiny_poses import tiny_pose_graph
from roadaware.models.graphs.runner import Runner
Runner(tiny_pose_graph(), backend="onnx").run(np.zeros((1, 3, 64, 64), np.float32))
"""
DOCTOR = "from roadaware.cli import main; raise SystemExit(main(['doctor', '--json']))"


@pytest.mark.slow
@pytest.mark.parametrize("code", [RUN, DOCTOR], ids=["run", "doctor"])
def test_onnx_runtime_leaves_no_session_and_no_identifier(code: str, tmp_path: Path) -> None:
    home, scratch = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    scratch.mkdir()
    places = {"HOME": home, "XDG_CACHE_HOME": home / "cache", "TMPDIR": scratch, "MPLCONFIGDIR": home}
    env = {**os.environ, **{name: str(place) for name, place in places.items()}}
    env.pop("ORT_DISABLE_TELEMETRY", None)
    code = code.format(tests=str(TESTS)) if code is RUN else code
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    left = [path for place in (home, scratch) for path in place.rglob("*") if path.is_file()]
    assert [path.name for path in left if "roadaware" not in path.parts] == []
    assert not list(home.rglob("*icrosoft*"))
