"""Addresses of stores on the command line: the same bytes as on the disk, the same rules on outputs, and messages that say
the address instead of the folder that stands for it."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from roadaware.cli import main
from roadaware.cli.outputs import _normalize_address
from roadaware.io import storage

MEMORY: Any = fsspec.filesystem("memory")
TINY = [
    "--scenes",
    "2",
    "--seconds",
    "0.5",
    "--fps",
    "4",
    "--size",
    "64x48",
    "--tables-only",
    "--processes",
    "1",
]


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROADAWARE_MIRRORS", "{}")
    monkeypatch.setattr(storage, "_BEAT_S", 0.05)
    MEMORY.store.clear()
    yield
    MEMORY.store.clear()


def in_store(folder: str) -> dict[str, bytes]:
    found = {name.removeprefix(f"{folder}/"): MEMORY.cat_file(name) for name in MEMORY.find(folder)}
    return {name: data for name, data in found.items() if not name.startswith("_roadaware/")}


def on_disk(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_dataset_whose_name_is_left_out_may_lie_on_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = {"id": 1, "file_name": "a.jpg", "width": 100, "height": 100}
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40]}
    content = {"images": [image], "annotations": [box], "categories": [{"id": 1, "name": "car"}]}
    (tmp_path / "coco.json").write_text(json.dumps(content))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert main(["read", f"http://127.0.0.1:{server.server_port}/coco.json"]) == 0
        finally:
            server.shutdown()
            thread.join()
    out = capsys.readouterr().out
    assert out.startswith("COCO")
    assert re.search(r"boxes +1\n", out)


def test_the_bytes_are_those_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = tmp_path / "made"
    assert main(["simulate", "-o", str(here), *TINY, "-q"]) == 0
    assert main(["simulate", "--out=memory://b/made", *TINY]) == 0
    shown = capsys.readouterr()
    assert in_store("/b/made") == on_disk(here)
    assert "wrote memory://b/made" in shown.err
    assert "roadaware read simulator memory://b/made" in shown.out
    assert str(tmp_path / "home") not in shown.out + shown.err
    # The same command goes on with what is there, on a machine that has never seen it, too.
    assert main(["simulate", "-o", "memory://b/made", *TINY, "--json=-", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == 0
    assert main(["read", "simulator", "memory://b/made", "-o", "memory://b/tables", "-q"]) == 0
    assert main(["read", "simulator", str(here), "-o", str(tmp_path / "tables"), "-q"]) == 0
    assert sorted(in_store("/b/tables")) == sorted(on_disk(tmp_path / "tables"))
    capsys.readouterr()


def test_files_and_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "-o", "memory://b/made", *TINY, "-q"]) == 0
    assert main(["read", "simulator", "memory://b/made", "--json", "memory://b/said.json"]) == 0
    said = MEMORY.cat_file("/b/said.json").decode()
    assert json.loads(said)
    assert str(tmp_path) not in said
    capsys.readouterr()


def test_rules_on_outputs_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    MEMORY.pipe_file("/b/mine/notes.txt", b"mine")
    assert main(["simulate", "-o", "memory://b/mine", *TINY]) == 2
    assert "memory://b/mine holds other things (notes.txt)" in capsys.readouterr().err
    assert in_store("/b") == {"mine/notes.txt": b"mine"}
    assert main(["simulate", "-o", "memory://b/made", *TINY, "-q"]) == 0
    assert main(["read", "simulator", "memory://b/made", "-o", "memory://b/made/"]) == 2
    # Which of the spellings is named is open: as paths they are one.
    assert re.search(r"is, or holds, the input memory:/+b/+(x/\.\./)?made", capsys.readouterr().err)
    assert main(["read", "simulator", "memory://b/none"]) == 3
    assert "memory://b/none: there is nothing of that name" in capsys.readouterr().err
    assert main(["simulate", "-o", "s3://me:geheim-1@b/made", *TINY]) == 2
    shown = capsys.readouterr().err
    assert "neither user nor password" in shown
    assert "geheim" not in shown
    assert main(["simulate", "-o", "https://host/made", *TINY]) == 2
    assert "https:// is read alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("memory://b/made", "memory:///b/made"),
        ("memory://b/made/", "memory://b/made"),
        ("memory://b/made", "MEMORY://B/x/../made//"),
        ("memory://b/made/.", "memory://b/made"),
        ("zip://in::memory://b/made", "memory://b/made"),
        ("http://HOST:80/made?key=geheim-1", "memory://host/made"),
    ],
)
def test_spellings_of_one_address(source: str, target: str) -> None:
    one, other = (_normalize_address(url).partition("://")[2] for url in (source, target))
    assert one == other


@pytest.mark.parametrize("target", ["memory:///b/made", "memory://b/x/../made", "memory://b//made/"])
def test_an_output_that_is_an_input_in_other_letters_is_refused(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "-o", "memory://b/made", *TINY, "-q"]) == 0
    before = in_store("/b/made")
    assert main(["read", "simulator", "memory://b/made", "-o", target]) == 2
    # Which of the spellings is named is open: as paths they are one.
    assert re.search(r"is, or holds, the input memory:/+b/+(x/\.\./)?made", capsys.readouterr().err)
    assert in_store("/b/made") == before


def test_files_by_address_and_by_path_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made"
    assert main(["simulate", "-o", str(made), *TINY, "-q"]) == 0
    (tmp_path / "link").symlink_to(made)
    before = on_disk(made)
    for source, target in (
        (f"file://{made}", str(made)),
        (str(made), f"file://{tmp_path}/x/../made/"),
        (f"file://{tmp_path}/link", str(made)),
    ):
        assert main(["read", "simulator", source, "-o", target, "--overwrite"]) == 2
        assert "would be written over the input" in capsys.readouterr().err
    assert on_disk(made) == before


@pytest.mark.slow
def test_one_output_lies_in_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "-o", "memory://b/made", *TINY, "-q"]) == 0
    arguments = ["read", "simulator", "memory://b/made", "-o", "memory://b/tables"]
    assert main([*arguments, "--json", "memory://b/x/../tables/said.json"]) == 2
    assert "is, or lies in, --output memory://b/tables" in capsys.readouterr().err
    assert in_store("/b/tables") == {}


def test_an_address_of_no_store_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["--output", "az://night/x?key=pa55"], ["--output=s4://me:pa55@night/x"]):
        assert main(["simulate", *TINY, *words]) == 2
        said = capsys.readouterr().err
        assert "which is none of the stores: s3://, gs://" in said
        assert "pa55" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_store_that_takes_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Access Denied")

    monkeypatch.setattr(MEMORY, "put_file", refuse)
    assert main(["simulate", "-o", "memory://b/made", *TINY]) == 4
    shown = capsys.readouterr().err
    assert "memory://b/made: could not be written: PermissionError: Access Denied" in shown
    assert "Credentials are found as the client does" in shown
    assert in_store("/b/made") == {}
    # What was made is not made again.
    monkeypatch.undo()
    monkeypatch.setattr(storage, "_BEAT_S", 0.05)


def test_addresses_of_cameras_stay_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "http://127.0.0.1:9/stream", "--seconds", "0.1"]) == 3
    assert "fetch" not in capsys.readouterr().err
