"""Every command under an audit hook, with its workers: no process, no connection, no foreign file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import audited
from command_cases import CASES, words_for, write_inputs

LIBRARIES = ("libc.so", "libm.so", sys.prefix, os.path.realpath(sys.prefix))
"""What torch, Numba and threadpoolctl load by name: the C library, and what is installed with them."""
PROGRAMS = ("fc-list",)
"""What matplotlib asks for fonts, once for each cache."""
WITHOUT_INPUTS = {("check", "example"), ("label", "example")}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the cases read; no command writes into it."""
    return write_inputs(tmp_path_factory.mktemp("inputs") / "in")


def check(name: tuple[str, ...], inputs: Path, scratch: Path) -> None:
    """Run a command and expect that it works and does nothing but its work."""
    installed = tuple({path for path in sys.path if "site-packages" in path})
    done = audited.run(
        words_for(name, inputs, scratch / "work" / "made" / "too" / "out"),
        scratch=scratch,
        reads=(inputs,),
        libraries=(*LIBRARIES, *installed),
        programs=PROGRAMS,
    )
    assert done.breaches == []
    assert done.code == 0, done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITHOUT_INPUTS), ids="-".join)
def test_commands_that_need_nothing_do_nothing_else(name: tuple[str, ...], tmp_path: Path) -> None:
    check(name, tmp_path / "nothing", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CASES) - WITHOUT_INPUTS), ids="-".join)
def test_no_command_does_anything_but_its_work(name: tuple[str, ...], inputs: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in inputs.rglob("*")}
    check(name, inputs, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in inputs.rglob("*")} == before


BREACHES = {
    "open": "open({outside!r}).read()",
    "open to write": "open({outside!r}, 'a').close()",
    "os.remove": "os.remove({outside!r})",
    "os.system": "os.system('true')",
    "subprocess.Popen": "import subprocess; subprocess.run(['true'])",
    "os.posix_spawn": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {{}}), 0)",
    "os.fork": "os.fork() or os._exit(0)",
    "socket.connect": "import socket; socket.socket().connect_ex(('127.0.0.1', 9))",
    "socket.getaddrinfo": "import socket; socket.getaddrinfo('localhost', 9)",
    "ctypes.dlopen": "import ctypes; ctypes.CDLL('libz.so.1')",
    "shutil.rmtree": "import shutil; shutil.rmtree({outside!r} + '-folder')",
    "in a worker": "import multiprocessing as m, outside; "
    "p = m.get_context('spawn').Process(target=outside.read); p.start(); p.join()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BREACHES)
def test_the_hook_notes_what_it_is_there_for(name: str, tmp_path: Path) -> None:
    outside, scratch = tmp_path / "outside", tmp_path / "scratch"
    outside.write_text("x")
    (tmp_path / "outside-folder").mkdir()
    scratch.mkdir()
    (scratch / "outside.py").write_text(f"def read():\n    open({str(outside)!r}).read()\n")
    code = BREACHES[name].format(outside=str(outside))
    (scratch / "main.py").write_text(f"import os\nif __name__ == '__main__':\n    {code}\n")
    reads = [str(scratch), *audited.SYSTEM, sys.prefix, sys.base_prefix]
    asked = {"notes": str(scratch / "notes"), "reads": reads}
    asked |= {"writes": [str(scratch), *audited.DEVICES], "libraries": [], "programs": []}
    environment = {**os.environ, "ROADAWARE_AUDIT": json.dumps(asked), "PYTHONPATH": str(audited.HOOK)}
    subprocess.run([sys.executable, "main.py"], cwd=scratch, env=environment, check=True, timeout=120)
    event = "open" if name.startswith(("open", "in a")) else name
    assert event in {line.split(" ")[0] for line in (scratch / "notes").read_text().splitlines()}
