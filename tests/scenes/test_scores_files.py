"""Scores and samples from csv files: the named bad inputs 61 to 68, and the files that are fine."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.errors import InputError
from roadaware.formats.score_tables import (
    check_same_length,
    format_samples,
    format_scores,
    read_numbers,
    read_raw_samples,
    read_samples,
    read_scores,
)
from roadaware.io import text_rows
from roadaware.io.text_rows import MAX_LINE

HEAD = "truth,pedestrian,tte_frames\n"


def file(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "file.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(("limit", "size"), [("MAX_ROWS", 10), ("MAX_CHARACTERS", 40)])
def test_files_without_end_are_refused_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, size: int
) -> None:
    monkeypatch.setattr(text_rows, limit, size)
    assert len(read_numbers(file(tmp_path, "0.5\n" * 10))[0]) == 10
    with pytest.raises(InputError, match=r"file\.csv:11: .*found more"):
        read_numbers(file(tmp_path, "0.5\n" * 11))
    with pytest.raises(InputError, match="found more"):
        read_raw_samples(file(tmp_path, HEAD + "1,a,3\n" * 10))


def test_numbers_are_held_in_little_more_memory_than_they_are(tmp_path: Path) -> None:
    path = file(tmp_path, (",".join(["0.125"] * 12) + "\n") * 4000)
    read_numbers(path)
    tracemalloc.start()
    values, _ = read_numbers(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values.shape == (4000, 12)
    assert peak < 2.5 * values.nbytes


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path: Path, end: str, mark: bytes) -> None:
    path = file(tmp_path, mark + end.join(["0.25", "1e-3", " .5 ", "1", ""]).encode())
    assert read_scores(path, 1).values.tolist() == [[0.25], [0.001], [0.5], [1.0]]


def test_rows_of_several_numbers_keep_their_order(tmp_path: Path) -> None:
    path = file(tmp_path, '0.1,0.2,0.7\n"0.3",0.3,0.4\n')
    assert read_scores(path, 3).values.tolist() == [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]


def test_rounding_outside_the_unit_interval_is_clipped_and_counted(tmp_path: Path) -> None:
    found = read_scores(file(tmp_path, "1.0000005\n-0.0000005\n0.5\n1\n"), 1)
    assert found.values[:, 0].tolist() == [1.0, 0.0, 0.5, 1.0]
    assert found.clipped == 2


@pytest.mark.parametrize(
    ("content", "line", "says", "remedy"),
    [
        ("0.5\nabc\n", 2, "'abc'", "finite numbers"),
        ("0.5\nnan\n", 2, "'nan'", "finite numbers"),
        ("0.5\ninf\n", 2, "'inf'", "finite numbers"),
        ("0.5\n1e400\n", 2, "'1e400'", "finite numbers"),
        ("0.5\n1_0\n", 2, "'1_0'", "finite numbers"),
        ("0.5\n\u0661\n", 2, "finite number", "finite numbers"),
        ("0.5\n1.000002\n", 2, "1", "1e-6"),
        ("0.5\n-0.1\n", 2, "-0.1", "logits"),
        ("50\n7\n", 1, "50", "percent"),
        ("score\n0.5\n", 1, "'score'", "no header"),
        ("0.5\n0.1,0.9\n", 2, "found 2", "1 number for action"),
        ("0.5;0.5\n", 1, "finite number", "numbers"),
        ("0.5\n\n0.5\n", 2, "empty line", "order"),
        ("0.5\n,\n", 2, "found 2", "action"),
        ('0.5\n"0.5\n0.5\n', 2, "quotes", "closed"),
        ("0.5\n0.\x005\n", 2, "NUL", "UTF-8"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_read(
    tmp_path: Path, content: str, line: int, says: str, remedy: str
) -> None:
    path = file(tmp_path, content)
    with pytest.raises(InputError) as error:
        read_scores(path, 1)
    assert error.value.where == f"{path}:{line}"
    assert says in error.value.message
    assert remedy in (error.value.hint or "")


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs"), (" ", "spaces")])
def test_other_separators_are_named(tmp_path: Path, separator: str, name: str) -> None:
    with pytest.raises(InputError) as error:
        read_scores(file(tmp_path, separator.join(["0.2", "0.3", "0.5"]) + "\n"), 3)
    assert name in (error.value.hint or "")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match="empty"):
        read_scores(file(tmp_path, content), 1)


def test_utf16_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="UTF-16"):
        read_scores(file(tmp_path, "0.5\n".encode("utf-16")), 1)


@pytest.mark.slow
@pytest.mark.parametrize("where", [0, 5, 3_000_000])
def test_invalid_utf8_is_named_with_its_byte(tmp_path: Path, where: int) -> None:
    text = b"0.500\n" * 600_000
    with pytest.raises(InputError, match=rf"byte number {where}\n"):
        read_scores(file(tmp_path, text[:where] + b"\xff" + text[where:]), 1)


def test_a_line_of_100_megabytes_is_refused_at_once_and_in_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "long.csv"
    with path.open("wb") as stream:
        for _ in range(100):
            stream.write(b"0" * 1_000_000)
    tracemalloc.start()
    started = time.monotonic()
    with pytest.raises(InputError, match=f"more than {MAX_LINE}"):
        read_scores(path, 1)
    assert time.monotonic() - started < 1
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _loop(path: Path) -> Path:
    path.symlink_to(path)
    return path


def _pipe(path: Path) -> Path:
    import os

    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path, "No such file"),
        (_folder, "a folder"),
        (_loop, "symbolic links"),
        (_pipe, "a device or pipe"),
        (lambda path: Path("/dev/zero"), "a device or pipe"),
    ],
)
def test_what_is_no_file_is_refused_without_waiting(
    tmp_path: Path, make: Callable[[Path], Path], says: str
) -> None:
    (tmp_path / "neighbour.csv").write_text("0.5\n")
    with pytest.raises(InputError, match=says) as error:
        read_scores(make(tmp_path / "asked"), 1)
    if says == "No such file":
        assert "neighbour.csv" in (error.value.hint or "")


def test_columns_of_samples_are_found_by_name(tmp_path: Path) -> None:
    text = "extra,tte_frames,video,pedestrian,truth\nx,90,video_0001,0_1_3b,1\ny,80,video_0001,0_1_3b,1.0\n"
    found = read_samples(file(tmp_path, text), 2)
    assert found.truth.tolist() == [1, 1]
    assert found.tte_frames.tolist() == [90, 80]
    assert found.pedestrian == ("0_1_3b", "0_1_3b")
    assert found.video == ("video_0001", "video_0001")
    assert found.columns == ("extra", "tte_frames", "video", "pedestrian", "truth")


def test_a_formula_stays_text(tmp_path: Path) -> None:
    found = read_samples(file(tmp_path, HEAD + '0,"=HYPERLINK(""x"",1)",90\n'), 2)
    assert found.pedestrian == ('=HYPERLINK("x",1)',)
    written = format_samples(found.truth, np.array(found.pedestrian), found.tte_frames, np.array(["v"]))
    assert '"\'=HYPERLINK(""x"",1)"' in written


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ("truth,pedestrian\n0,a\n", 1, "tte_frames missing"),
        ("truth,pedestrian,tte\n0,a,9\n", 1, "tte_frames missing"),
        ("truth,truth,pedestrian,tte_frames\n0,0,a,9\n", 1, "more than once"),
        (HEAD + "0,a\n", 2, "expected 3 cells"),
        (HEAD + "0,a,9,9\n", 2, "expected 3 cells"),
        (HEAD + "0,a,90\n0,,90\n", 3, "empty cell"),
        (HEAD + ",a,90\n", 2, "empty cell"),
        (HEAD + "0,a,90\nyes,a,80\n", 3, "'yes'"),
        (HEAD + "0,a,90\n2,a,80\n", 3, "class 0..1"),
        (HEAD + "-1,a,90\n", 2, "class 0..1"),
        (HEAD + "0.5,a,90\n", 2, "class 0..1"),
        (HEAD + "0,a,-1.5\n", 2, "whole number of frames"),
        (HEAD + "0,a,2.5\n", 2, "whole number of frames"),
        (HEAD + '0,"a,90\n', 2, "quotes"),
        (HEAD + "0,a\x00,90\n", 2, "NUL"),
    ],
)
def test_a_bad_sample_is_named(tmp_path: Path, content: str, line: int, says: str) -> None:
    path = file(tmp_path, content)
    with pytest.raises(InputError) as error:
        read_samples(path, 2)
    assert error.value.where == f"{path}:{line}"
    assert says in error.value.message
    assert error.value.hint


def test_a_near_name_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean 'tte_frame'"):
        read_samples(file(tmp_path, "truth,pedestrian,tte_frame\n0,a,9\n"), 2)


@pytest.mark.parametrize("content", ["", HEAD])
def test_samples_without_rows_are_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match=r"empty file|found none"):
        read_samples(file(tmp_path, content), 2)


def test_raw_samples_are_not_judged(tmp_path: Path) -> None:
    found = read_raw_samples(file(tmp_path, HEAD + "2,a,0.5\n-1,a,-3\n"))
    assert found.truth.tolist() == [2, -1]
    assert found.tte_frames.tolist() == [0.5, -3]
    assert found.lines == (2, 3)


def test_different_numbers_of_rows_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected 7 rows, one for each sample of s\.csv, found 6"):
        check_same_length(6, 7, Path("scores.csv"), "s.csv")


@tried(60)
@given(
    st.lists(
        st.tuples(*[st.floats(0, 1, allow_subnormal=True)] * 3),
        min_size=1,
        max_size=8,
    )
)
def test_scores_are_read_as_they_were_written(rows: list[tuple[float, ...]]) -> None:
    import tempfile

    values = np.array(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        path.write_text(format_scores(values))
        assert np.array_equal(read_scores(path, 3).values, values)


@tried(300)
@given(st.integers(0, 2**32 - 1))
def test_damaged_files_give_numbers_or_a_typed_error(seed: int) -> None:
    import tempfile

    rng = np.random.default_rng(seed)
    data = bytearray(b"0.1,0.2,0.7\n0.3,0.3,0.4\n0.25,0.25,0.5\n" * 3)
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, len(data)))
        match rng.integers(0, 3):
            case 0:
                data[place] = int(rng.integers(0, 256))
            case 1:
                del data[place : place + int(rng.integers(1, 20))]
            case _:
                data[place:place] = data[: int(rng.integers(0, 20))]
        if not data:
            break
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        path.write_bytes(bytes(data))
        try:
            values, lines = read_numbers(path, 3)
        except InputError as error:
            said = str(error)
        else:
            said = str(path)
            assert values.shape == (len(lines), 3)
            assert np.isfinite(values).all()
    assert str(path) in said
