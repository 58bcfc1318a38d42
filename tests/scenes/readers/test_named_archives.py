"""Bad archives by their numbers, for every reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
import pytest
from sets import NativeSet

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.tables import Scenes

ZIPS: dict[str, tuple[Callable[[Path, NativeSet], Any], str]] = {
    "case_69_climbing_name": (lambda z, n: damage.with_member(z, "../evil.xml", b"<a/>"), "leads out"),
    "case_69_absolute_name": (lambda z, n: damage.with_member(z, "/etc/evil.xml", b"<a/>"), "leads out"),
    "case_69_drive_name": (lambda z, n: damage.with_member(z, "C:\\evil.xml", b"<a/>"), "leads out"),
    "case_69_backslashes": (lambda z, n: damage.with_member(z, "a\\..\\..\\evil", b"<a/>"), "leads out"),
    "case_70_link": (lambda z, n: damage.with_link(z, "annotations/link.xml", "/etc/passwd"), "link"),
    "case_71_ratio": (lambda z, n: damage.with_bomb(z, "annotations/bomb.xml"), "unpack to"),
    "case_71_total": (lambda z, n: damage.with_false_size(z, n.main, (1 << 32) - 2), "unpack to"),
    "case_73_encrypted": (lambda z, n: damage.encrypted(z), "encrypted"),
    "case_74_no_directory": (lambda z, n: damage.without_directory(z), "whole zip archive"),
    "case_75_twice": (lambda z, n: damage.with_member(z, n.main, b"<annotations/>"), "twice"),
    "case_76_overlap": (lambda z, n: damage.overlapping(z, n.main, (*n.others, "other.bin")[0]), "overlaps"),
}


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", ZIPS)
def test_bad_zip(native: NativeSet, root: Path, tmp_path: Path, case: str) -> None:
    (root / "other.bin").write_bytes(b"other")
    archive = damage.packed(root, tmp_path / "set.zip")
    change, reason = ZIPS[case]
    change(archive, native)
    with pytest.raises(InputError, match=reason) as caught:
        native.read(archive)
    assert str(archive) in str(caught.value)


def test_case_72_nested_zip_is_not_entered(native: NativeSet, root: Path, tmp_path: Path) -> None:
    inner = damage.packed(root, tmp_path / "inner.zip")
    outer = damage.with_member(
        damage.packed(tmp_path / "none", tmp_path / "o.zip"), "i.zip", inner.read_bytes()
    )
    with pytest.raises(DatasetNotFoundError, match="annotations"):
        native.read(outer)


@pytest.mark.slow
def test_case_72_nested_zip_beside_the_data_is_left_alone(
    native: NativeSet, root: Path, tmp_path: Path, clean: Scenes
) -> None:
    inner = damage.packed(root, tmp_path / "inner.zip")
    archive = damage.with_member(damage.packed(root, tmp_path / "set.zip"), "inner.zip", inner.read_bytes())
    assert native.read(archive) == clean


@pytest.mark.slow
def test_case_74_bad_checksum_costs_the_file(native: NativeSet, root: Path, tmp_path: Path) -> None:
    archive = damage.flipped_in_member(damage.packed(root, tmp_path / "set.zip"), native.main)
    assert "damaged" in native.refusal(archive)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 10_000_000])
def test_case_76_false_size_costs_the_file(native: NativeSet, root: Path, tmp_path: Path, size: int) -> None:
    archive = damage.with_false_size(damage.packed(root, tmp_path / "set.zip"), native.main, size)
    assert re.search("damaged|promises", native.refusal(archive))
