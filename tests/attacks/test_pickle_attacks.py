"""Pickles that would run code, fill memory or never end: refused by name, nothing run, little spent."""

from __future__ import annotations

import pickle
import pickletools
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sets import SETS, NativeSet

from roadaware.errors import InputError
from roadaware.io.pickles import load

NUMPY = b"cnumpy.core.multiarray\n"
UINT8 = (
    b"cnumpy\ndtype\n(X\x02\x00\x00\x00u1K\x00K\x01tR"
    b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
)
EMPTY = NUMPY + b"_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def array(shape: bytes, dtype: bytes = UINT8, raw: bytes = b"C\x03abc") -> bytes:
    """An array's pickle from its parts."""
    return b"\x80\x03" + EMPTY + b"(K\x01" + shape + dtype + b"\x89" + raw + b"tb."


class Runs:
    """Pickles as a call of something."""

    def __init__(self, called: Any, *arguments: Any) -> None:
        self.called, self.arguments = called, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.called, self.arguments


def _doubled(times: int, word: bytes) -> bytes:
    """A list that holds the one before twice, `times` deep."""
    levels = b"".join(b"](h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1]) for n in range(times))
    return b"\x80\x03(]q\x00" + levels + word


def _by_name(module: str, name: str, *arguments: str) -> bytes:
    held = b"(" + b"".join(map(text, arguments)) + b"t"
    return b"\x80\x04" + text(module) + text(name) + b"\x93" + held + b"R."


ATTACKS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "case_49_os_system": (lambda do: pickle.dumps(Runs(__import__("os").system, do)), "system"),
    "case_49_posix_by_hand": (lambda do: b"cposix\nsystem\n(" + text(do) + b"tR.", r"posix\.system"),
    "case_49_subprocess": (
        lambda do: pickle.dumps(Runs(subprocess.check_output, ["sh", "-c", do])),
        "subprocess",
    ),
    "case_49_inst": (
        lambda do: b"(S'" + do.encode().replace(b"'", b'"') + b"'\nios\nsystem\n.",
        "Python class",
    ),
    "case_49_obj": (lambda do: b"(cos\nsystem\n" + text(do) + b"o.", r"os\.system"),
    "case_49_newobj": (lambda do: b"\x80\x02cos\nsystem\n(" + text(do) + b"t\x81.", r"os\.system"),
    "case_49_newobj_of_an_allowed_name": (
        lambda do: b"\x80\x02cnumpy\nndarray\n(K\x01t\x81.",
        "Python class",
    ),
    "case_49_build_of_a_dict": (lambda do: b"\x80\x02}(" + text("a") + b"K\x01u}b.", "Python class"),
    "case_50_eval": (lambda do: pickle.dumps(Runs(eval, f"__import__('os').system({do!r})")), r"\.eval"),
    "case_50_getattr": (lambda do: pickle.dumps(Runs(getattr, "", "join")), r"\.getattr"),
    "case_50_getattr_chain": (
        lambda do: b"c__builtin__\ngetattr\n(cnumpy\nndarray\n" + text("__class__") + b"tR.",
        r"__builtin__\.getattr",
    ),
    "case_51_f2py": (lambda do: _by_name("numpy.f2py.crackfortran", "myeval", f"os.system({do!r})"), "f2py"),
    "case_51_numpy_load": (lambda do: b"cnumpy\nload\n(" + text("/etc/passwd") + b"tR.", r"numpy\.load"),
    "case_51_numpy_memmap": (lambda do: b"cnumpy\nmemmap\n(" + text("x") + b"tR.", r"numpy\.memmap"),
    "case_51_numpy_runstring": (
        lambda do: b"cnumpy.testing._private.utils\nrunstring\n(" + text(do) + b"}tR.",
        "runstring",
    ),
    "case_51_other_name_of_the_module": (lambda do: NUMPY + b"fromfile\n(" + text("x") + b"tR.", "fromfile"),
    "case_51_dotted_name": (lambda do: _by_name("numpy", "ndarray.tofile", "canary"), r"ndarray\.tofile"),
    "case_51_dotted_module": (lambda do: _by_name("numpy.core", "multiarray._reconstruct"), "_reconstruct"),
    "case_51_lookalike": (lambda do: _by_name("numpy.core.multiarray\u200b", "scalar"), "scalar"),
    "case_52_name_from_the_stack": (lambda do: _by_name("os", "system", do), r"os\.system"),
    "case_52_name_from_the_memo": (
        lambda do: (
            b"\x80\x04" + text("os") + b"\x94" + text("system") + b"\x94h\x00h\x01\x93" + text(do) + b"\x85R."
        ),
        r"os\.system",
    ),
    "case_52_name_that_is_no_text": (lambda do: b"\x80\x04K\x01K\x02\x93.", "no name"),
    "case_53_out_of_band": (
        lambda do: pickle.dumps(np.arange(9), protocol=5, buffer_callback=[].append),
        r"_frombuffer|outside the file",
    ),
    "case_53_next_buffer": (lambda do: b"\x80\x05\x97.", "outside the file"),
    "case_53_readonly_buffer": (lambda do: b"\x80\x05C\x01a\x98.", "outside the file"),
    "case_53_byte_array": (lambda do: b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".", "byte array"),
    "case_54_far_memo": (lambda do: b"\x80\x03Nr" + struct.pack("<I", (1 << 31) - 1) + b".", "memo"),
    "case_54_far_memo_in_text": (lambda do: b"Np" + b"9" * 18 + b"\n.", "memo"),
    "case_54_memo_that_is_empty": (lambda do: b"\x80\x03Nq\x01h\x00.", "memo"),
    "case_54_doubled_lists": (lambda do: _doubled(30, b"t."), "many times over"),
    "case_54_doubled_lists_as_key": (lambda do: _doubled(29, b"t}h\x1dK\x01s."), "key"),
    "case_54_doubled_tuples_as_key": (
        lambda do: (
            b"\x80\x03)q\x00"
            + b"".join(b"h" + bytes([n]) + b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(60))
            + b"}h\x3cK\x01s."
        ),
        "key",
    ),
    "case_54_dup": (lambda do: b"\x80\x03]22222a.", "put twice"),
    "case_54_list_in_itself": (lambda do: b"\x80\x03]q\x00h\x00a.", "within itself"),
    "case_54_dict_in_itself": (lambda do: b"\x80\x03}q\x00X\x01\x00\x00\x00ah\x00s.", "within itself"),
    "case_54_tuple_in_its_list": (lambda do: b"\x80\x03]q\x00h\x00\x85a.", "within itself"),
    "case_54_depth_100k": (lambda do: b"]" * 100_000 + b"a" * 99_999 + b".", "deep"),
    "case_54_marks_100k": (lambda do: b"(" * 100_000 + b"t" * 100_000 + b".", "deep"),
    "case_54_array_many_times_over": (
        lambda do: (
            b"\x80\x03]"
            + array(b"J\x00\x00\x01\x00\x85", raw=b"B" + struct.pack("<I", 65536) + bytes(65536))[2:-1]
            + b"q\x01a("
            + b"h\x01" * 2000
            + b"e."
        ),
        "many times over",
    ),
    "case_54_text_many_times_over": (
        lambda do: b"\x80\x03](" + text("x" * 65536) + b"q\x01" + b"h\x01" * 6000 + b"e.",
        "many times over",
    ),
    "case_54_a_million_lists": (lambda do: b"(" + b"]" * 1_000_000 + b"t.", "containers"),
    "case_54_a_million_memos": (lambda do: b"\x80\x04N" + b"\x94" * 1_000_000 + b".", "memo"),
    "case_54_long_promise_of_text": (
        lambda do: b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"a.",
        "whole pickle",
    ),
    "case_54_long_promise_of_bytes": (
        lambda do: b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"a.",
        "whole pickle",
    ),
    "case_54_negative_length": (lambda do: b"T\xff\xff\xff\xffabc.", "whole pickle"),
    "case_54_huge_frame": (lambda do: b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.", "whole pickle"),
    "case_54_long_number": (
        lambda do: b"\x8b" + struct.pack("<i", 100_000) + b"\x7f" * 100_000 + b".",
        "bytes",
    ),
    "case_54_number_of_5000_digits": (lambda do: b"I" + b"9" * 5000 + b"\n.", "digits"),
    "case_54_line_without_end": (lambda do: b"S'" + b"a" * (2 << 20), "whole pickle"),
    "case_54_negative_long": (lambda do: b"\x8b\xff\xff\xff\xff.", "whole pickle"),
    "case_56_object_array": (
        lambda do: pickle.dumps(np.array([{}, "a"], dtype=object), protocol=3),
        "objects",
    ),
    "case_56_object_scalar": (
        lambda do: NUMPY + b"scalar\n(cnumpy\ndtype\n(X\x02\x00\x00\x00O8K\x00K\x01tRC\x08aaaaaaaatR.",
        "objects",
    ),
    "case_56_fields": (
        lambda do: pickle.dumps(np.zeros(1, dtype=[("a", object)]), protocol=3),
        "plain numbers",
    ),
    "case_57_array_larger_than_its_content": (
        lambda do: array(b"\x8a\x06" + b"\0" * 5 + b"\1\x85"),
        "larger",
    ),
    "case_57_shape_overflow": (lambda do: array(b"\x8a\x05\0\0\0\0\1\x8a\x05\0\0\0\0\1\x86"), "larger"),
    "case_57_negative_shape": (lambda do: array(b"J\xff\xff\xff\xff\x85"), "whole number"),
    "case_57_empty_but_endless": (lambda do: array(b"J\xff\xff\xff\x7fK\x00\x86", raw=b"C\x00"), "larger"),
    "case_57_content_too_short": (lambda do: array(b"K\x04\x85"), "3 bytes of content"),
    "case_57_many_dimensions": (
        lambda do: array(b"(" + b"K\x01" * 64 + b"t", raw=b"C\x01a"),
        "64 dimensions",
    ),
    "case_57_array_without_content": (lambda do: b"\x80\x03" + EMPTY + b".", "where a value is due"),
    "case_57_array_used_too_soon": (
        lambda do: b"\x80\x03" + EMPTY + b"q\x00](h\x00h\x00e.",
        "before it is there",
    ),
    "case_57_type_as_value": (lambda do: b"\x80\x03" + UINT8 + b".", "where a value is due"),
    "case_57_name_as_value": (lambda do: b"cnumpy\nndarray\n.", "where a value is due"),
    "case_57_type_of_another_size": (
        lambda do: array(b"K\x03\x85", dtype=UINT8.replace(b"|NNNJ\xff\xff\xff\xff", b"|NNNK\x08")),
        "size",
    ),
    "case_57_truth_that_is_7": (
        lambda do: array(b"K\x03\x85", dtype=UINT8.replace(b"u1", b"b1")),
        "truth values",
    ),
    "case_57_text_that_is_none": (
        lambda do: array(b"K\x01\x85", dtype=UINT8.replace(b"u1", b"U1"), raw=b"C\x04\xff\xff\xff\xff"),
        "character",
    ),
    "case_57_reconstruct_of_a_dtype": (
        lambda do: NUMPY + b"_reconstruct\n(cnumpy\ndtype\n(K\x00tC\x01btR.",
        "unknown way",
    ),
    "case_57_call_of_a_class": (lambda do: b"cnumpy\nndarray\n(J\xff\xff\xff\x7f\x85tR.", "unknown way"),
    "persistent_id": (lambda do: b"Pfile:///etc/passwd\n.", "persistent"),
    "persistent_id_from_the_stack": (lambda do: b"K\x01Q.", "persistent"),
    "extension_code": (lambda do: b"\x82\x01.", "extension"),
    "extension_code_of_four_bytes": (lambda do: b"\x84\x01\x00\x00\x00.", "extension"),
    "later_protocol": (lambda do: b"\x80\x63N.", "whole pickle"),
    "second_pickle_behind": (lambda do: b"N.cos\nsystem\n.", "behind its end"),
    "text_of_half_characters": (lambda do: b"X\x03\x00\x00\x00\xed\xa0\x80.", "whole pickle"),
}


@pytest.fixture(params=ATTACKS)
def attack(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bytes, str, Path]:
    """The bytes, why they are refused, and a file that appears if anything of them is run."""
    make, reason = ATTACKS[request.param]
    canary = tmp_path / "canary"
    return make(f"touch {canary}"), reason, canary


@pytest.mark.slow
def test_the_attack_is_refused_and_nothing_is_run(attack: tuple[bytes, str, Path]) -> None:
    data, reason, canary = attack
    with pytest.raises(InputError, match=reason) as caught:
        load(data, "evil.pkl")
    assert not canary.exists()
    assert str(caught.value).startswith("evil.pkl, byte ")
    assert "\x1b" not in str(caught.value)


def test_the_attacks_are_pickles_in_their_own_right(tmp_path: Path) -> None:
    """Python's own reader would run the first of them."""
    canary = tmp_path / "canary"
    for name in ("case_49_os_system", "case_49_inst", "case_52_name_from_the_stack"):
        pickle.loads(ATTACKS[name][0](f"touch {canary}"))  # noqa: S301 - that it runs is what is shown
        assert canary.exists(), name
        canary.unlink()


def test_the_published_file_uses_four_names_only(tmp_path: Path) -> None:
    root = SETS["ucf24"].make(tmp_path / "set")
    data = (root / SETS["ucf24"].main).read_bytes()
    names = {argument for word, argument, _ in pickletools.genops(data) if word.name == "GLOBAL"}
    assert names == {
        "numpy ndarray",
        "numpy dtype",
        "numpy.core.multiarray _reconstruct",
        "numpy.core.multiarray scalar",
    }
    assert SETS["ucf24"].read(root).rejected.is_empty()


@pytest.mark.slow
def test_all_attacks_on_a_reader_cost_little_and_are_seen_by_nobody(
    tmp_path: Path, watched: Callable[[NativeSet, list[Path]], list[dict[str, Any]]]
) -> None:
    """In a process that watches itself: nothing run, opened or connected to, in bounded time and memory."""
    each = SETS["ucf24"]
    canary = tmp_path / "canary"
    places = []
    for name, (make, _) in ATTACKS.items():
        places.append(each.make(tmp_path / name))
        (places[-1] / each.main).write_bytes(make(f"touch {canary}"))
    answers = watched(each, places)
    assert len(answers) == len(ATTACKS)
    for name, answer in zip(ATTACKS, answers, strict=True):
        assert answer["ended"] == "InputError", name
        assert answer["seen"] == [], name
        assert answer["cpu_s"] < 5, name
        assert answer["grown_mb"] < 128, name
    assert not canary.exists()
