"""Folders of tables that are damaged, forged or lie: each is reported with file, expected and found."""

import io
import os
import re

import numpy as np
import polars as pl
import pytest
from saved_sets import digest, forged, parquet
from table_sets import small_scenes

from roadaware.errors import DamagedError, InputError
from roadaware.scenes import store
from roadaware.scenes.store import open_scenes, save, scan_tables

TABLES = ("videos", "tubes", "boxes")
HOSTILE = (
    "../boxes.parquet",
    "../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "..",
    ".",
    "",
    "boxes-0123456789abcdef.parquet/..",
    "./boxes-{}.parquet",
    "x/../boxes-{}.parquet",
    "boxes-{}.parquet\n",
    "boxes-{}.parquet\0",
    "%2e%2e/boxes-{}.parquet",
    "..\\boxes-{}.parquet",
    "C:\\boxes-{}.parquet",
    "\\\\host\\share\\boxes-{}.parquet",
    "~/boxes-{}.parquet",
    "file:///etc/passwd",
    "https://example.org/boxes-{}.parquet",
    "tubes-{}.parquet",
    "BOXES-{}.parquet",
    "*",
)


@pytest.fixture
def saved(tmp_path):
    save(small_scenes(), tmp_path / "set")
    return tmp_path / "set"


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_300_of_300_flipped_bits_are_reported(saved, name):
    rng = np.random.default_rng(TABLES.index(name))
    path = next(saved.glob(f"{name}-*"))
    whole = path.read_bytes()
    reported = 0
    for bit in rng.integers(0, len(whole) * 8, 300).tolist():
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(
            DamagedError, match=re.escape(f"{path}: expected blake2b {digest(whole)}, found ")
        ):
            open_scenes(saved)
        reported += 1
    assert reported == 300
    path.write_bytes(whole)
    assert open_scenes(saved) == small_scenes()


def test_a_flipped_bit_in_meta_is_reported_or_changes_nothing(saved):
    rng = np.random.default_rng(0)
    path = saved / "meta.json"
    whole = path.read_bytes()
    reported = 0
    for bit in rng.integers(0, len(whole) * 8, 300).tolist():
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            assert open_scenes(saved) == small_scenes()
        except InputError:
            reported += 1
    assert reported > 200


@pytest.mark.parametrize("name", [*TABLES, "meta"])
@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_truncated_file_is_reported(saved, name, tenths):
    path = next(saved.glob(f"{name}*"))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * tenths // 10])
    with pytest.raises(DamagedError) as caught:
        open_scenes(saved)
    assert str(path) in str(caught.value)
    if name != "meta":
        assert f"expected {len(whole):,} bytes, found {len(whole) * tenths // 10:,}" in str(caught.value)


@pytest.mark.parametrize("name", [*TABLES, "meta"])
def test_an_empty_or_longer_file_is_reported(saved, name):
    path = next(saved.glob(f"{name}*"))
    whole = path.read_bytes()
    for data in (b"", whole + b"\0", whole * 2):
        path.write_bytes(data)
        with pytest.raises(DamagedError, match=re.escape(str(path))):
            open_scenes(saved)


@pytest.mark.parametrize("name", TABLES)
def test_a_missing_file_is_named(saved, name):
    path = next(saved.glob(f"{name}-*"))
    path.unlink()
    with pytest.raises(
        DamagedError, match=f"expected the file {path.name}, which meta.json lists, and found none"
    ):
        open_scenes(saved)


@pytest.mark.parametrize("name", [*TABLES, "meta"])
@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/etc/hostname")]
)
def test_what_is_no_regular_file_is_refused_without_waiting(saved, name, make):
    path = next(saved.glob(f"{name}*"))
    path.unlink()
    make(path)
    with pytest.raises(InputError, match="regular file"):
        open_scenes(saved)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format": "other"}',
        "[" * 100_000,
        '{"format": ' + "9" * 5000 + "}",
        '{"format": "roadaware-tables", "version": 1}',
        '{"format": "roadaware-tables", "version": 1, "blake2b": null, "tables": 3}',
    ],
    ids=lambda text: text[:40],
)
def test_a_meta_that_is_none_is_reported(saved, text):
    (saved / "meta.json").write_text(text)
    with pytest.raises(DamagedError, match=re.escape(str(saved / "meta.json"))):
        open_scenes(saved)


def test_a_meta_that_is_no_text_is_reported(saved):
    (saved / "meta.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(DamagedError, match="expected JSON"):
        open_scenes(saved)


@pytest.mark.parametrize(
    "content",
    [
        {"tables": 3},
        {"tables": {"boxes": 3}},
        {"tables": {"boxes": {}}},
        {"tables": {"rubbish": {"file": "rubbish", "rows": 1, "bytes": 1, "blake2b": "0" * 64}}},
        {"tables": {"boxes": {"file": "x", "rows": 1, "bytes": 1, "blake2b": "0" * 64, "more": 1}}},
        {"meta": None},
        {"meta": {"dataset": 3}},
        {"meta": {"unknown": "x"}},
        {"meta": {"vocabularies": {"k": [1]}}},
    ],
    ids=str,
)
def test_a_meta_with_fields_of_another_kind_is_reported(tmp_path, content):
    with pytest.raises(DamagedError):
        open_scenes(forged(tmp_path / "set", {}, **content))


@pytest.mark.parametrize(
    "entry",
    [{"rows": -1}, {"rows": "6"}, {"rows": True}, {"bytes": 2**63}, {"blake2b": 5}, {"blake2b": "XY"}],
    ids=str,
)
def test_sizes_and_digests_that_are_none_are_reported(tmp_path, entry):
    with pytest.raises(DamagedError, match="boxes"):
        open_scenes(forged(tmp_path / "set", small_scenes().filled(), entries={"boxes": entry}))


@pytest.mark.parametrize("entry", [{"rows": 5}, {"rows": 0}, {"bytes": 5}, {"bytes": 2**40}], ids=str)
def test_sizes_that_are_not_those_of_the_file_are_reported(tmp_path, entry):
    with pytest.raises(DamagedError, match=r"boxes-\w+\.parquet: expected .*, found"):
        open_scenes(forged(tmp_path / "set", small_scenes().filled(), entries={"boxes": entry}))


@pytest.mark.parametrize("data", [b"rubbish", b"PAR1" + bytes(100) + b"PAR1", b"PAR1PAR1" * 4, bytes(64)])
def test_a_file_that_is_no_parquet_is_reported_even_if_its_digest_is_right(tmp_path, data):
    folder = forged(tmp_path / "set", {"boxes": data})
    for opened in (open_scenes, scan_tables):
        with pytest.raises(DamagedError, match="expected a Parquet table, found"):
            opened(folder)


def test_a_table_without_a_column_that_it_needs_is_not_scanned(tmp_path):
    videos = io.BytesIO()
    pl.DataFrame({"fps": [10.0]}).write_parquet(videos)
    with pytest.raises(DamagedError, match=r"table videos needs the columns \['video'\]"):
        scan_tables(forged(tmp_path / "set", {"videos": videos.getvalue()}))


@pytest.mark.parametrize("file", HOSTILE)
def test_no_name_in_meta_leads_out_of_the_folder(tmp_path, file, monkeypatch):
    tables = small_scenes().filled()
    part = digest(parquet(tables["boxes"]))[:16]
    opened = []
    folder = forged(tmp_path / "set", tables, entries={"boxes": {"file": file.format(part)}})
    real = store.read_regular
    monkeypatch.setattr(
        store, "read_regular", lambda path, limit: opened.append(path) or real(path, limit=limit)
    )
    with pytest.raises(DamagedError, match="table boxes cannot be the file"):
        open_scenes(folder)
    assert opened == [folder / "meta.json"]


def lies():
    good = small_scenes().filled()
    boxes = good["boxes"]
    yield "a key twice", boxes.with_columns(box=pl.lit(3)), "the key box is repeated in 6 rows, first"
    yield (
        "an absent video",
        boxes.with_columns(video=pl.lit("v9")),
        "video points to 1 rows absent from videos: ['v9']",
    )
    yield "a null key", boxes.with_columns(box=pl.lit(None, pl.Int64)), "box is null in 6 rows, first"
    yield "another type", boxes.with_columns(frame=pl.lit("one")), "frame should be int (Int64), not String"
    yield "a missing column", boxes.drop("y2_px"), "needs the columns ['y2_px']"
    yield "a prediction", boxes.with_columns(score=pl.lit(0.5)), "score is a prediction"
    yield "a box upside down", boxes.with_columns(y1_px=pl.lit(1e6)), "y1_px > y2_px in 6 rows, first"


@pytest.mark.parametrize(("what", "boxes", "told"), list(lies()), ids=[what for what, _, _ in lies()])
def test_a_table_that_lies_is_named_with_its_first_rows(tmp_path, what, boxes, told):
    folder = forged(tmp_path / "set", {**small_scenes().filled(), "boxes": boxes})
    with pytest.raises(
        InputError, match=re.escape(f"{folder}: table boxes") + ":? " + re.escape(told)
    ) as caught:
        open_scenes(folder)
    assert str(caught.value).count("'row'") == (5 if "first" in told else 0), what
