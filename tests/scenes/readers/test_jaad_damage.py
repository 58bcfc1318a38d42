"""JAAD: whatever bytes are damaged, tables are valid or the error is ours."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from jaad_folders import scenes_of
from sets import maker

from roadaware.errors import InputError


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("small") / "jaad"
    maker("jaad").make(root, frames=2)
    for path in root.rglob("video_000[345]*"):
        path.unlink()
    return root


def _damage_a_file(small: Path, data: st.DataObject) -> None:
    """Cut, overwrite, delete and double bytes of any file."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(small, Path(folder) / "jaad"))
        names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        for _ in range(data.draw(st.integers(1, 3))):
            path = root / data.draw(st.sampled_from(names))
            content = path.read_bytes()
            at = data.draw(st.integers(0, len(content)))
            end = at + data.draw(st.integers(0, 200))
            known = st.sampled_from([b"", b'"', b"<", b"-1", b"1e400", b"\0", b"<!--", b"</track>", b"\xe9"])
            new = data.draw(st.one_of(st.binary(max_size=8), known))
            kinds = {
                "cut": content[:at],
                "replace": content[:at] + new + content[end:],
                "double": content[:end] + content[at:],
            }
            path.write_bytes(kinds[data.draw(st.sampled_from(sorted(kinds)))])
        try:
            scenes_of(root, appearance=True)
        except InputError:
            event("nothing could be read")


def _damage_an_archive(small: Path, data: st.DataObject) -> None:
    """Overwrite bytes of an archive anywhere, its directory and its end above all, and cut it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in small.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(small.parent).as_posix())
    content = bytearray(packed.getvalue())
    for _ in range(data.draw(st.integers(1, 6))):
        low = data.draw(st.sampled_from([0, -2000, -22]))
        place = data.draw(st.integers(low, (len(content) if low == 0 else 0) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([None, None, None, -5, -90, 4000]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.zip"
        path.write_bytes(bytes(content)[:cut])
        try:
            scenes_of(path)
        except InputError:
            event("nothing could be read")


LIMITS = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True}


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "count"), [(_damage_a_file, 25), (_damage_an_archive, 80)])
def test_whatever_the_bytes_tables_are_valid_or_the_error_is_ours(
    small: Path, damage: Any, count: int
) -> None:
    @settings(max_examples=count, **LIMITS)
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        damage(small, data)

    law()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_damage_a_file, _damage_an_archive])
def test_the_same_two_thousand_times(small: Path, damage: Any) -> None:
    @settings(max_examples=2_000, **{**LIMITS, "derandomize": False})
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        damage(small, data)

    law()
