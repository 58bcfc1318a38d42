"""Archives that would write elsewhere, fill memory or lie: nothing is written, no byte too many is read."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
import pytest
from sets import NativeSet, tree

from roadaware.errors import InputError
from roadaware.io.sources import open_source, resolve_inside

NAMES = [
    "../evil.xml",
    "../../../../../../../../tmp/evil.xml",
    "annotations/../../evil.xml",
    "/evil.xml",
    "//evil.xml",
    "\\evil.xml",
    "..\\evil.xml",
    "annotations\\..\\..\\evil.xml",
    "C:/evil.xml",
    "c:evil.xml",
    "C:\\evil.xml",
    "\\\\server\\share\\evil.xml",
    "annotations/..",
]
PATHS = [
    *NAMES,
    "..",
    "../",
    "a/../../b",
    "annotations/../..",
    "/etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
    "nul\0byte",
    "a/b\0/../../c",
    "link-out",
    "link-out/passwd",
    "link-up/evil.xml",
    "circle",
    "circle/a",
    "absent",
]


@pytest.fixture
def confined(tmp_path: Path) -> Path:
    """A folder with a file, a good link, links out of it and a link in a circle."""
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.xml").write_text("<a/>")
    (folder / "link-in").symlink_to("inner/a.xml")
    (folder / "link-out").symlink_to("/etc")
    (folder / "link-up").symlink_to("..")
    (folder / "circle").symlink_to("circle")
    (tmp_path / "evil.xml").write_text("evil")
    return folder.resolve()


@pytest.mark.parametrize("name", PATHS, ids=repr)
def test_paths_in_data_stay_inside(confined: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_inside(confined, name)
    assert "\0" not in str(caught.value)


@pytest.mark.parametrize("name", ["inner/a.xml", "link-in", "inner/./a.xml", "inner//a.xml"])
def test_honest_paths_are_found(confined: Path, name: str) -> None:
    assert resolve_inside(confined, name) == confined / "inner" / "a.xml"


@pytest.mark.parametrize("name", NAMES)
def test_a_member_that_climbs_condemns_the_archive(native: NativeSet, root: Path, name: str) -> None:
    archive = damage.with_member(damage.packed(root, root.parent / "set.zip"), name, b"<a/>")
    before, here = tree(root.parent), sorted(Path.cwd().iterdir())
    with pytest.raises(InputError, match="leads out"):
        native.read(archive)
    assert tree(root.parent) == before
    assert sorted(Path.cwd().iterdir()) == here


def test_a_link_condemns_the_archive(native: NativeSet, root: Path) -> None:
    archive = damage.packed(root, root.parent / "set.zip")
    damage.with_link(archive, "annotations/video_9999.xml", "/etc/passwd")
    before = tree(root.parent)
    with pytest.raises(InputError, match="link"):
        native.read(archive)
    assert tree(root.parent) == before


def test_reading_an_archive_writes_nothing(native: NativeSet, root: Path) -> None:
    archive = damage.packed(root, root.parent / "set.zip")
    before, here = tree(root.parent), sorted(Path.cwd().iterdir())
    native.read(archive)
    assert tree(root.parent) == before
    assert sorted(Path.cwd().iterdir()) == here


@pytest.mark.slow
def test_bombs_cost_no_memory(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]]
) -> None:
    archive = damage.packed(root, root.parent / "bomb.zip")
    (answer,) = watched(native, [damage.with_bomb(archive, f"{native.main}9.xml")])
    assert answer["ended"] == "InputError"
    assert "would unpack to" in answer["text"]
    assert answer["cpu_s"] < 1
    assert answer["grown_mb"] < 32
    assert answer["seen"] == []


def test_a_member_that_holds_more_than_it_says_is_cut_off(tmp_path: Path) -> None:
    archive = tmp_path / "liar.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as held:
        held.writestr("a.xml", b"<a>" + b" " * (32 * damage.MEBIBYTE) + b"</a>")
    damage.with_false_size(archive, "a.xml", 100)
    with open_source(archive) as source, pytest.raises(InputError, match=r"damaged|promises"):
        source.read("a.xml")


def test_an_archive_of_many_archives_is_not_entered(native: NativeSet, root: Path) -> None:
    inner = damage.packed(root, root.parent / "level0.zip").read_bytes()
    for level in range(1, 6):
        outer = root.parent / f"level{level}.zip"
        for copy in range(4):
            damage.with_member(outer, f"{copy}.zip", inner)
        inner = outer.read_bytes()
    before = tree(root.parent)
    with pytest.raises(InputError, match="annotations"):
        native.read(root.parent / "level5.zip")
    assert tree(root.parent) == before


def test_a_link_for_the_archive_is_followed_but_not_out_of_a_folder(native: NativeSet, root: Path) -> None:
    archive = damage.packed(root, root.parent / "set.zip")
    named = root.parent / "named.zip"
    named.symlink_to(archive)
    assert native.read(named) == native.read(archive)
    holder = root.parent / "holder"
    holder.mkdir()
    (holder / "set.zip").symlink_to(archive)
    with pytest.raises(InputError):
        native.read(holder)
