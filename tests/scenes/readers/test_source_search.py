"""A dataset is found around and inside of what is named, and only one."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_folders import as_zip, packed, small_folder

from roadaware.errors import DatasetNotFoundError
from roadaware.io import sources as locating
from roadaware.io.sources import Source, find_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_folder(tmp_path / "root")


def fits(source: Source) -> bool:
    return bool(source.files("a", ".xml"))


@pytest.mark.parametrize("depth", [0, 1, 2, 6])
def test_a_dataset_is_found_up_to_six_folders_down(folder: Path, tmp_path: Path, depth: int) -> None:
    outer = tmp_path / "outer"
    outer.joinpath(*["x"] * depth).parent.mkdir(parents=True, exist_ok=True)
    folder.rename(outer.joinpath(*["x"] * depth))
    assert find_source(outer, fits, "needs 'a/'", "").read("a/one.xml") == b"<one/>"


def test_seven_folders_down_is_too_deep(folder: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.joinpath(*["x"] * 6).mkdir(parents=True)
    folder.rename(outer.joinpath(*["x"] * 7))
    with pytest.raises(DatasetNotFoundError, match=r"found none.*saw: x/"):
        find_source(outer, fits, "needs 'a/'", "")


@pytest.mark.parametrize("prefix", ["", "Set/", "some/deep/xyz/", "1/2/3/4/5/6/"])
def test_an_archive_may_have_any_prefix(folder: Path, tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "set.zip"
    path.write_bytes(as_zip(folder, prefix).read_bytes())
    with find_source(path, fits, "needs 'a/'", "") as found:
        assert found.prefix == prefix
        assert found.read("a/one.xml") == b"<one/>"
    with find_source(tmp_path, lambda s: s.path == path.resolve() and fits(s), "needs 'a/'", "") as found:
        assert found.prefix == prefix


def test_two_in_an_archive_are_named(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "two.zip", {"x/one/a/1.xml": b"", "x/two/a/1.xml": b"", "x/y/deeper/a/1.xml": b""}
    )
    with pytest.raises(DatasetNotFoundError, match=r"have it: \S*two.zip/x/one/, \S*two.zip/x/two/\. Point"):
        find_source(path, fits, "needs 'a/'", "")


def test_the_walk_through_folders_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locating, "_MOST_FOLDERS", 20)
    for outer in range(10):
        for inner in range(10):
            (tmp_path / f"{outer}" / f"{inner}" / "deep").mkdir(parents=True)
    seen: list[Source] = []
    with pytest.raises(DatasetNotFoundError):
        find_source(tmp_path, lambda source: bool(seen.append(source)), "needs 'a/'", "")
    assert len(seen) == 21


def test_an_archive_lying_in_the_folder_is_found(folder: Path, tmp_path: Path) -> None:
    holder = tmp_path / "holder" / "deeper"
    holder.mkdir(parents=True)
    (holder / "broken.zip").write_bytes(b"PK")
    (holder / "foreign.zip").write_bytes(packed(tmp_path / "f.zip", {"x": b""}).read_bytes())
    (holder / "set.zip").write_bytes(as_zip(folder, "Set/").read_bytes())
    with find_source(tmp_path / "holder", fits, "needs 'a/'", "") as found:
        assert (found.path.name, found.prefix) == ("set.zip", "Set/")


def test_two_that_fit_are_one_too_many(folder: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    for name in ("one", "two"):
        (outer / name / "a").mkdir(parents=True)
        (outer / name / "a" / "x.xml").write_bytes(b"")
    with pytest.raises(DatasetNotFoundError, match=r"several folders have it: .*one.*two.*Point at one"):
        find_source(outer, fits, "needs 'a/'", "")


def test_none_that_fits_says_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    with pytest.raises(DatasetNotFoundError) as caught:
        find_source(tmp_path, fits, "X needs 'a/'", "Point at the unpacked repository or its zip.")
    assert str(caught.value) == (
        f"X needs 'a/' and found none in {tmp_path} (saw: clips/). "
        "Point at the unpacked repository or its zip."
    )
    for n in range(12):
        (tmp_path / f"{n:02d}.txt").touch()
    with pytest.raises(DatasetNotFoundError, match=r"saw: clips/, 00.txt, .*, 06.txt, …"):
        find_source(tmp_path, fits, "X", "")
