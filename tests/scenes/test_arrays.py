"""Files of arrays: what was written comes back, and nothing in a file is run or trusted."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from roadaware.errors import DamagedError, InputError
from roadaware.io.npz import open_arrays, save_arrays


class _Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


def _archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _npy(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.array(7, np.int32),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([np.inf, -np.inf, 5e-324]),
    ],
)
def test_arrays_come_back_with_type_and_shape(array: np.ndarray, tmp_path: Path) -> None:
    save_arrays(tmp_path / "m", {"a": array}, {"b": [1, "x"]})
    arrays, facts = open_arrays(tmp_path / "m")
    assert facts == {"b": [1, "x"]}
    assert arrays["a"].dtype == array.dtype
    assert arrays["a"].shape == array.shape
    assert np.array_equal(arrays["a"], array)


def test_objects_are_refused_and_never_unpickled(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    objects = _npy(np.array([_Canary(canary)], dtype=object), allow_pickle=True)
    for member in (objects, pickle.dumps(_Canary(canary))):
        path = _archive(tmp_path / "m", {"facts.json": b"{}", "a.npy": member})
        with pytest.raises(DamagedError, match="not a fitted model"):
            open_arrays(path)
    assert not canary.exists()


def test_a_header_that_promises_a_terabyte_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    np.lib.format.write_array_header_1_0(stream, header)
    path = _archive(tmp_path / "m", {"facts.json": b"{}", "a.npy": stream.getvalue() + b"\0" * 8})
    with pytest.raises(DamagedError, match="promises 1099511627776 numbers"):
        open_arrays(path)


@pytest.mark.slow
def test_an_archive_that_unpacks_to_far_more_than_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for _ in range(257):
            member.write(bytes(1 << 20))
    with pytest.raises(DamagedError, match="more than a fitted model can be"):
        open_arrays(path)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"facts.json": b"[1]"},
        {"facts.json": b"{"},
        {"facts.json": b"\xff"},
        {"facts.json": b"{}", "a.npy": b""},
        {"facts.json": b"{}", "a.npy": _npy(np.arange(4))[:-1]},
        {"facts.json": b"{}", "a.npy": _npy(np.arange(4)) + b"x"},
        {"facts.json": b"{}", "a.npy": b"\x93NUMPY\x09\x00" + _npy(np.arange(4))[8:]},
    ],
)
def test_what_is_not_ours_is_named_as_damaged(members: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(DamagedError):
        open_arrays(_archive(tmp_path / "m", members))


def test_no_file_and_no_archive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found none"):
        open_arrays(tmp_path / "absent")
    with pytest.raises(InputError, match="found none"):
        open_arrays(tmp_path)
    (tmp_path / "text").write_text(json.dumps({}))
    with pytest.raises(DamagedError):
        open_arrays(tmp_path / "text")
