"""Pickles read as data give what Python's own reader gives, and whatever else they ask for is refused."""

from __future__ import annotations

import io
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from roadaware.errors import InputError
from roadaware.io.pickles import load

_QUIET = settings(deadline=None, max_examples=80, derandomize=True, database=None)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | _TEXT
    | st.text("é\n'\\\"\x00", max_size=5)
)
_PLAIN = st.recursive(
    _LEAVES | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(_TEXT | st.integers(-99, 99), inner, max_size=4)
    ),
    max_leaves=12,
)
_NO_BYTES = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner), max_leaves=8)
_DTYPES = (
    arrays.boolean_dtypes()
    | arrays.integer_dtypes()
    | arrays.unsigned_integer_dtypes()
    | arrays.floating_dtypes(sizes=(16, 32, 64))
)
NUMPY_PROTOCOLS = (3, 4)


def same(a: Any, b: Any) -> bool:
    """Equal, of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b)


@_QUIET
@given(_PLAIN, st.sampled_from([3, 4, 5]))
def test_plain_containers_are_those_that_were_written(value: Any, protocol: int) -> None:
    assert same(load(pickle.dumps(value, protocol=protocol), "a.pkl"), value)


@_QUIET
@given(_NO_BYTES, st.sampled_from([0, 1, 2]))
def test_old_protocols_are_read_too(value: Any, protocol: int) -> None:
    assert same(load(pickle.dumps(value, protocol=protocol), "a.pkl"), value)


@_QUIET
@given(
    arrays.arrays(_DTYPES, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)),
    st.sampled_from(NUMPY_PROTOCOLS),
)
def test_arrays_are_those_that_were_written(array: np.ndarray, protocol: int) -> None:
    found = load(pickle.dumps({"a": array, "b": [array.T]}, protocol=protocol), "a.pkl")
    native = array.astype(array.dtype.newbyteorder("="))
    assert same(found["a"], native)
    assert same(found["b"][0], native.T)


@pytest.mark.parametrize("protocol", NUMPY_PROTOCOLS)
@pytest.mark.parametrize(
    ("scalar", "plain"),
    [
        (np.uint8(250), 250),
        (np.int64(-5), -5),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.bool_(True), True),
        (np.str_("Skijet/v_é"), "Skijet/v_é"),
        (np.str_(""), ""),
        (np.bytes_(b"abc"), b"abc"),
        (np.array(3, dtype=">u2")[()], 3),
    ],
    ids=repr,
)
def test_numbers_of_numpy_become_plain(scalar: Any, plain: Any, protocol: int) -> None:
    assert same(load(pickle.dumps([scalar], protocol=protocol), "a.pkl"), [plain])


@pytest.mark.parametrize("protocol", NUMPY_PROTOCOLS)
def test_arrays_of_text_and_empty_ones(protocol: int) -> None:
    held = {
        "texts": np.array(["a", "bcd"]),
        "bytes": np.array([b"a", b"bcd"]),
        "empty": np.zeros((0, 200)),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    }
    found = load(pickle.dumps(held, protocol=protocol), "a.pkl")
    assert same(found, held)
    assert not found["columns"].flags.writeable


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_both_names_of_the_module_are_known(module: str) -> None:
    data = pickle.dumps(np.arange(3), protocol=3)
    assert load(data.replace(b"numpy._core.multiarray", module.encode()), "a.pkl").tolist() == [0, 1, 2]


def test_case_55_python_2_text_is_latin_1() -> None:
    data = b"}q\x01(U\x04caf\xe9q\x02K\x01T\x02\x00\x00\x00ab]q\x03(I01\nL12L\nS'it\\'s\\n\\xe9'\nF1.5\neu."
    assert load(data, "a.pkl") == {"café": 1, "ab": [True, 12, "it's\né", 1.5]}


def test_case_55_python_2_arrays() -> None:
    """As numpy 1 under Python 2 writes np.array([[1, 2]], np.uint8): its content is text of latin-1."""
    data = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03("
        b"K\x01K\x01K\x02\x86cnumpy\ndtype\nq\x04U\x02u1K\x00K\x01\x87Rq\x05(K\x03U\x01|NNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x02\x01\xfftb."
    )
    assert same(load(data, "a.pkl"), np.array([[1, 255]], np.uint8))


def test_values_that_stand_in_it_twice_are_the_same_value() -> None:
    array, text = np.arange(5), "label"
    found = load(pickle.dumps([{text: array}, {text: array}]), "a.pkl")
    assert found[0][text] is found[1][text]


def test_special_numbers_are_kept() -> None:
    found = load(pickle.dumps([math.nan, -math.inf, np.array([np.nan, np.inf])]), "a.pkl")
    assert math.isnan(found[0])
    assert found[1] == -math.inf
    assert np.isnan(found[2][0])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1, 2}, "set"),
        (frozenset({1}), "frozenset"),
        (complex(1, 2), "complex"),
        (bytearray(b"a"), "bytearray"),
        (range(3), "range"),
        (len, "len"),
        (np.array([1j]), "plain numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "plain numbers"),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), "plain numbers"),
        (np.zeros(2, dtype=np.longdouble), "plain numbers"),
        ({(1, 2): 3}, "key"),
        ({1.5: 3}, "key"),
        ({1 << 40: 3}, "key"),
    ],
    ids=repr,
)
def test_other_things_are_refused_by_name(value: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load(pickle.dumps(value, protocol=3), "a.pkl")
    assert caught.value.where is not None
    assert caught.value.where.startswith("a.pkl, byte ")


def test_bytes_of_old_protocols_need_another_name_and_are_refused() -> None:
    with pytest.raises(InputError, match=r"_codecs\.encode(.|\n)*protocol 3 or 4"):
        load(pickle.dumps(np.arange(3), protocol=2), "a.pkl")


@pytest.mark.parametrize("cut", range(0, 160, 7))
def test_a_pickle_that_breaks_off_is_an_error(cut: int) -> None:
    data = pickle.dumps({"a": np.arange(3), "b": ["text", 1.5]}, protocol=4)
    assert len(data) > 160
    with pytest.raises(InputError, match="pickle"):
        load(data[:cut], "a.pkl")


@pytest.mark.parametrize("data", [b"N.N.", b"N. ", b"NN.", b"(N.", b".", b"0.", b"\x80\x06N."])
def test_one_whole_value_is_expected(data: bytes) -> None:
    with pytest.raises(InputError):
        load(data, "a.pkl")


class Four(pickle.Unpickler):
    """Python's own reader with the four names of numpy."""

    def find_class(self, module: str, name: str) -> Any:
        from numpy._core import multiarray

        allowed = {
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("numpy._core.multiarray", "_reconstruct"): multiarray._reconstruct,
            ("numpy._core.multiarray", "scalar"): multiarray.scalar,
        }
        return allowed[module, name]


ORIGINALS = [
    pickle.dumps({"ego": np.ones(3, np.float32), "main": np.eye(2, dtype=np.float32)}, protocol=4),
    pickle.dumps({"a": [np.uint8(3), np.str_("x")], "b": ("c", 1.5, None, -7)}, protocol=3),
    pickle.dumps({"a": [1, 2, (3, [])], "b": True, "c": "text"}, protocol=0),
]


def _mutants(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(ORIGINALS))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        what = chance.randrange(4)
        if what == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at] = chance.choice(b"().NKMJGXC]}aeusdtlb0Rhqr\x80\x85\x86\x87\x88\x93\x94\x95")
        elif what == 2:
            del data[at : at + chance.randint(1, 6)]
        else:
            end = at + chance.randint(1, 20)
            data[end:end] = data[at:end]
    return bytes(data)


def judge(data: bytes) -> bool:
    """Whether a mutant is read; then Python's own reader, allowed the same names, reads the same."""
    try:
        found = load(data, "a.pkl")
    except InputError:
        return False
    plain = Four(io.BytesIO(data), encoding="latin-1").load()
    assert repr(found) == repr(_unboxed(plain))
    return True


def _unboxed(value: Any) -> Any:
    """Numbers of numpy as plain ones."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {_unboxed(key): _unboxed(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unboxed, value))
    return value


@settings(_QUIET, max_examples=400)
@given(st.randoms(use_true_random=False))
def test_mutants_are_refused_or_read_as_python_reads_them(chance: random.Random) -> None:
    judge(_mutants(chance))


@pytest.mark.slow
def test_many_mutants_are_refused_or_read_as_python_reads_them() -> None:
    chance = random.Random(0)  # noqa: S311 - chance here keeps no secret
    read = [judge(_mutants(chance)) for _ in range(20_000)]
    assert 500 < sum(read) < 19_500
