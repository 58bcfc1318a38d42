"""Bad places by their numbers, for every reader: files, folders, links and names."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import damage
import polars as pl
import pytest
from named_cases import costs_the_video
from sets import NativeSet, copied, rows_add_up

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io import sources as source_module
from roadaware.scenes.tables import Scenes


def test_case_01_missing_path(native: NativeSet, root: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=re.escape(root.name)) as caught:
        native.read(root / "absent")
    assert "nothing" in str(caught.value)


def test_case_01_missing_parts(native: NativeSet, tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    with pytest.raises(DatasetNotFoundError, match=r"annotations(.|\n)*clips/"):
        native.read(tmp_path)


def test_case_01_empty_folder(native: NativeSet, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DatasetNotFoundError, match="saw: nothing"):
        native.read(empty)


@pytest.mark.slow
def test_case_02_folder_for_a_file(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_folder(root / native.main)
    assert "folder" in native.refusal(root)
    lost = 0 if native.sole or native.frame is not None else 1
    assert native.sole or len(native.read(root).videos) == len(clean.videos) - lost


@pytest.mark.parametrize("content", [b"", b"PK", b"<annotations/>", b"\0" * 100])
def test_case_02_file_for_a_folder(native: NativeSet, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "set"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"expected a folder|neither a folder"):
        native.read(path)


@pytest.fixture
def as_stranger() -> Iterator[Path]:
    """A folder open to all, while this process has lost its rights over files of others."""
    if os.geteuid() != 0:
        pytest.skip("only a privileged process can give rights up and take them back")
    folder = Path(tempfile.mkdtemp(prefix="stranger-"))
    folder.chmod(0o755)
    yield folder
    os.seteuid(0)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_case_04_no_permission(native: NativeSet, root: Path, as_stranger: Path) -> None:
    moved = copied(root, as_stranger / "set")
    (moved / native.main).chmod(0o000)
    native.read(root)
    os.seteuid(65534)
    assert "permission" in native.refusal(moved)


@pytest.mark.slow
def test_case_05_pipe_for_a_file(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_pipe(root / native.main)
    costs_the_video(native, root, clean, "not a regular file")


def test_case_05_device_for_the_set(native: NativeSet) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        native.read(Path("/dev/zero"))


@pytest.mark.slow
def test_case_06_link_in_a_circle(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_loop(root / native.main)
    costs_the_video(native, root, clean, "circle")


@pytest.mark.slow
def test_case_07_link_out_of_the_root(native: NativeSet, root: Path, tmp_path: Path, clean: Scenes) -> None:
    damage.as_link_out(root / native.main, tmp_path / "outside")
    costs_the_video(native, root, clean, "leads out")


@pytest.mark.slow
def test_case_07_link_inside_the_root(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_link_out(root / native.main, root / "kept")
    assert native.read(root) == clean


@pytest.mark.slow
def test_case_08_file_shrinks_while_read(
    native: NativeSet, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fstat

    def shrinking(handle: int) -> os.stat_result:
        status = real(handle)
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if path.startswith(str(root)) and path.endswith(native.main):
            os.truncate(path, status.st_size // 2)
        return status

    monkeypatch.setattr(source_module.os, "fstat", shrinking)
    assert "changed while" in native.refusal(root)


NAMES = {
    "newline": "video_\n9",
    "semicolon": "video_;rm -rf ~;9",
    "emoji": "video_😀",
    "escape": "video_\x1b[2J9",
    "right_to_left": "video_\u202egpj",
    "script": "video_<script>alert(1)</script>".replace("/", ""),
    "template": "video_{{7*7}}",
    "255_bytes": "v" * 300,
}


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_case_11_hostile_name(native: NativeSet, root: Path, clean: Scenes, name: str) -> None:
    if hasattr(native.maker, "with_video"):
        native.maker.with_video(root, name)
    else:
        main = Path(native.main)
        stem = native.maker.VIDEO.rpartition("/")[2]
        suffix = main.name.removeprefix(stem)
        other = main.with_name(name.encode()[: 255 - len(suffix)].decode() + suffix)
        shutil.copy(root / main, root / other)
    scenes = native.read(root)
    assert native.read(root) == scenes
    added = set(scenes.videos["video"]) - set(clean.videos["video"])
    assert added or not scenes.rejected.is_empty()
    _is_printable(scenes.tables())
    rows_add_up(scenes)


@pytest.mark.slow
def test_case_11_name_that_is_no_text(native: NativeSet, root: Path) -> None:
    main = root / native.main
    suffix = main.name.removeprefix(native.maker.VIDEO.rpartition("/")[2]).encode()
    shutil.copy(os.fsencode(main), os.fsencode(main.parent) + b"/video_\xff\xfe" + suffix)
    scenes = native.read(root)
    _is_printable(scenes.tables())
    rows_add_up(scenes)


def _is_printable(tables: dict[str, pl.DataFrame]) -> None:
    for name in ("videos", "rejected"):
        for column in tables[name].select(pl.col(pl.String)):
            for text in column.drop_nulls().to_list():
                assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e]", text), text
