"""The laws of the whole house: what it imports, what it never calls, how long its rooms are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# To whoever looks, these packages are absent: found nowhere, rather than broken.
BLOCK_TORCH = """
import importlib.machinery
plain = importlib.machinery.PathFinder.find_spec
absent = {'torch', 'torchvision', 'transformers', 'lightning'}
importlib.machinery.PathFinder.find_spec = lambda name, *rest: (
    None if name.split('.')[0] in absent else plain(name, *rest)
)
"""


def _run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, "-c", BLOCK_TORCH + code, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env=environment,
    )


def _needs_torch(path: Path) -> bool:
    """Whether a module imports a network library as soon as it is imported; those are leaves of the house."""
    heavy = {"torch", "transformers", "lightning", "safetensors"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    return any(name.split(".")[0] in heavy for name in named)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def test_networks_live_in_their_folders() -> None:
    homes = ("roadaware.models.", "roadaware.training.", "roadaware.online.")
    assert [
        name for path in SOURCES if _needs_torch(path) and not (name := _module(path)).startswith(homes)
    ] == []


def test_every_other_module_imports_without_torch() -> None:
    """A module above a network imports it inside the function that needs it."""
    heavy = {_module(path) for path in SOURCES if _needs_torch(path)}
    through = {
        _module(path)
        for path in SOURCES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module in heavy
    }
    homes = ("roadaware.models.", "roadaware.training.", "roadaware.online.")
    assert all(name.startswith(homes) for name in through)
    names = [
        _module(path)
        for path in SOURCES
        if path.name != "__main__.py" and _module(path) not in heavy | through
    ]
    done = _run("import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)", *names)
    assert done.returncode == 0, done.stderr


def test_the_whole_demo_runs_without_torch(tmp_path: Path) -> None:
    done = _run(
        "import sys; from roadaware.cli import main; sys.exit(main(sys.argv[1:]))",
        "demo",
        "-o",
        str(tmp_path / "demo"),
    )
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_modules_are_small_and_say_what_they_are_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    tree = ast.parse(text)
    if text.strip():
        assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"{node.name} is longer than 60 lines"


def _loads_weights_only(call: ast.Call) -> bool:
    """torch refuses to run anything where it is told, in so many words, to load weights alone."""
    told = [word.value for word in call.keywords if word.arg == "weights_only"]
    return ast.unparse(call.func) == "torch.load" and len(told) == 1 and ast.unparse(told[0]) == "True"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_nothing_runs_code_from_data(path: Path) -> None:
    calls = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and not _loads_weights_only(node)
    }
    forbidden = {
        "eval",
        "exec",
        "pickle.load",
        "pickle.loads",
        "torch.load",
        "yaml.load",
        "os.system",
        "marshal.loads",
    }
    assert not calls & forbidden


def test_the_project_names_no_path_of_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    wrong = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if not path.is_file() or path.stat().st_size > 500_000:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if any(f"/{top}/" in text and f" /{top}/" in text for top in ("work", "root", "farm")):
            wrong.append(name)
    assert not wrong
