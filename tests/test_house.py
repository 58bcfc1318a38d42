"""The laws of the whole house: what it imports, what it never calls, how long its rooms are."""

from __future__ import annotations

import ast
import functools
import graphlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import torchless

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _walk(*words: str) -> Iterator[tuple[Path, ast.AST]]:
    """The nodes of the modules whose text holds one of some words: to parse them all takes ten seconds."""
    for path in SOURCES:
        if any(word in _read(path) for word in words):
            yield from ((path, node) for node in ast.walk(ast.parse(_read(path))))


_TORCH = re.compile(r"^(?:import|from) (?:torch|transformers|lightning|safetensors)\b", re.M)


def _needs_torch(path: Path) -> bool:
    """Whether a module imports a network library as soon as it is imported; those are leaves of the house."""
    return _TORCH.search(_read(path)) is not None


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
        _module(path) for path in SOURCES if heavy & set(re.findall(r"^from (\S+) import", _read(path), re.M))
    }
    homes = ("roadaware.models.", "roadaware.training.", "roadaware.online.")
    assert all(name.startswith(homes) for name in through)
    names = [
        _module(path)
        for path in SOURCES
        if path.name != "__main__.py" and _module(path) not in heavy | through
    ]
    done = torchless.run(
        "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)", *names
    )
    assert done.returncode == 0, done.stderr


def test_every_command_explains_itself_without_optional_packages() -> None:
    """What `pip install roadaware` alone brings is enough for the help of every command."""
    code = """
import sys
from roadaware.cli import main
from roadaware.cli.app import NAMES
sys.exit(max(main([name, "--help"]) for name in NAMES))
"""
    done = torchless.run(
        code, absent="safetensors yaml huggingface_hub tokenizers onnx onnxruntime tensorboard"
    )
    assert done.returncode == 0, done.stderr


def test_commands_of_networks_say_which_extra_they_need(tmp_path: Path) -> None:
    (tmp_path / "tracks.csv").write_text("frame,id,x1,y1,x2,y2\n0,1,0,0,10,20\n1,1,1,0,11,20\n")
    (tmp_path / "data").mkdir()
    code = """
import sys
from roadaware.cli import main
asked = (
    ["train", "simulator", "--set", "data.roots=data", "-o", "out"],
    ["crossing", "tracks.csv", "--fps", "30", "--size", "100x100"],
    ["models", "get", "street-small"],
    ["cross-dataset", "simulator=data", "-o", "out"],
)
print([main(words) for words in asked])
"""
    done = torchless.run(code, folder=tmp_path, absent="safetensors yaml huggingface_hub")
    assert done.stdout == "[2, 2, 2, 2]\n", done.stderr
    lines = done.stderr.splitlines()
    assert [line.split()[1] for line in lines] == ["PyYAML", "torch", "torch", "PyYAML"]
    assert all(line.endswith(" is not installed: pip install 'roadaware[models]'") for line in lines)


def test_weights_of_triage_and_onnx_runtime_need_no_library_of_networks() -> None:
    code = """
from roadaware.analysis.triage import read_weights
from roadaware.models.offline import import_onnxruntime
read_weights(None)
import_onnxruntime()
"""
    done = torchless.run(code, absent="yaml huggingface_hub")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_whole_demo_runs_without_torch(tmp_path: Path) -> None:
    done = torchless.run(
        "import sys; from roadaware.cli import main; sys.exit(main(sys.argv[1:]))",
        "demo",
        "--all",
        "-o",
        str(tmp_path / "demo"),
    )
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout


def test_modules_say_what_they_are_for() -> None:
    doubtful = [path for path in SOURCES if _read(path).strip() and not _read(path).startswith('"""')]
    assert [path for path in doubtful if not ast.get_docstring(ast.parse(_read(path)))] == []


def _loads_weights_only(call: ast.Call) -> bool:
    """torch refuses to run anything where it is told, in so many words, to load weights alone."""
    told = [word.value for word in call.keywords if word.arg == "weights_only"]
    return ast.unparse(call.func) == "torch.load" and len(told) == 1 and ast.unparse(told[0]) == "True"


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside functions counted, those for type checkers alone not."""
    graph = grimp.build_graph("roadaware", exclude_type_checking_imports=True, cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in sorted(graph.modules)}
    graphlib.TopologicalSorter(imported).prepare()


def test_nothing_runs_code_from_data() -> None:
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
    assert [
        f"{path}: {called}"
        for path, node in _walk(*(f"{name}(" for name in forbidden))
        if isinstance(node, ast.Call) and not _loads_weights_only(node)
        if (called := ast.unparse(node.func)) in forbidden
    ] == []


_ALONE = {
    "yaml": "roadaware.io.yaml",
    "safetensors": "roadaware.models.tensor_files",
    "torch.load": "roadaware.models.tensor_files",
    "from_pretrained": "roadaware.models.pretrained",
}
"""What reads files of others, and the one module that may, since it looks at them first."""


def test_files_of_others_are_read_in_one_module_alone() -> None:
    """Writing is free: `safetensors.torch.save` stands where weights are saved."""
    wrong = []
    for path, node in _walk(
        "import yaml", "from yaml", "import safetensors", "from safetensors", "torch.load", "from_pretrained"
    ):
        used = []
        if isinstance(node, ast.Import):
            used = [alias.name for alias in node.names if alias.name in ("yaml", "safetensors")]
        elif isinstance(node, ast.ImportFrom) and node.module in ("yaml", "safetensors", "safetensors.torch"):
            reads = [alias.name for alias in node.names if alias.name not in ("save", "save_file")]
            used = [node.module.split(".")[0]] if reads else []
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            used = [name for name in ("torch.load", "from_pretrained") if called.endswith(name)]
        wrong += [f"{path}: {name}" for name in used if _module(path) != _ALONE[name]]
    assert wrong == []


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


_GUESSING = """
import PIL.Image as images
import av
from av import open as film_of
from PIL import Image, ImageFile


def look(path: str) -> None:
    Image.open(path)
    images.open(path)
    opener = Image.open
    ImageFile.Parser()
    av.open(path)
    av.container.open(path)
    film_of(path)
"""


def test_decoders_are_opened_in_one_module_alone() -> None:
    """The lint of the sources finds every way to open an image or a video that guesses what it is."""

    def found(name: str, text: str) -> set[int]:
        command = ["ruff", "check", "--select", "TID251", "--output-format", "json", "--stdin-filename", name]
        done = subprocess.run(
            [sys.executable, "-m", *command, "-"],
            cwd=ROOT,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return {each["location"]["row"] for each in json.loads(done.stdout)}

    lines = [n for n, line in enumerate(_GUESSING.splitlines(), 1) if "open" in line or "Parser" in line]
    for folder in ("src/roadaware/scenes", "src/roadaware/online", "benchmarks"):
        assert found(f"{folder}/anything.py", _GUESSING) >= set(lines[1:-1]) | {lines[0]}
    opener = ROOT / "src" / "roadaware" / "io" / "decoders.py"
    text = opener.read_text(encoding="utf-8")
    assert not found("src/roadaware/io/decoders.py", text)
    assert found("src/roadaware/scenes/elsewhere.py", text)


@pytest.mark.slow
def test_weights_of_ours_are_opened_without_transformers() -> None:
    code = (
        "import sys; from roadaware.models.loading import open_stream; "
        "from roadaware.online.setup import find_bundled_weights; open_stream([find_bundled_weights()]); "
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_who_catches_anything_lets_interruptions_through() -> None:
    """A library may wrap them in an error of its own, and then no file or model is to be blamed."""
    lost = []
    for path, node in _walk("except Exception"):
        if not isinstance(node, ast.ExceptHandler) or ast.unparse(node.type or ast.Name("")) != "Exception":
            continue
        first, last = ast.unparse(node.body[0]), ast.unparse(node.body[-1])
        if first != f"raise_interrupt({node.name})" and last != "raise":
            lost.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert lost == []
