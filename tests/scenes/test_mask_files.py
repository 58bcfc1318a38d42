"""Masks: what is written is read again, damaged files say what is wrong, and nothing reads without bounds."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from roadaware.errors import DiskError, InputError, UsageError
from roadaware.io import images
from roadaware.io.images import MaskReader, MaskWriter, decode_mask, encode_png

RNG = np.random.default_rng(0)
MASKS = [RNG.integers(0, 60_000, (48, 65)) // 997 * (k + 1) % 60_000 for k in range(5)]


def archive(path: Path, masks=MASKS, bits=16) -> Path:
    with MaskWriter(path, bits) as writer:
        for mask in masks:
            writer.write(mask)
    return path


@pytest.mark.parametrize(("bits", "kind"), [(8, np.uint8), (16, np.uint16)])
def test_masks_come_back_bit_for_bit(tmp_path, bits, kind) -> None:
    masks = [mask % 256 if bits == 8 else mask for mask in MASKS]
    with MaskReader(archive(tmp_path / "a.zip", masks, bits)) as reader:
        assert len(reader) == 5
        for number in (4, 0, 2, 2):
            found = reader.frame(number)
            assert found.dtype == kind
            np.testing.assert_array_equal(found, masks[number])
        with pytest.raises(UsageError, match="0 to 4"):
            reader.frame(5)


def test_other_programs_read_them_too(tmp_path) -> None:
    from PIL import Image

    with zipfile.ZipFile(archive(tmp_path / "a.zip")) as found:
        assert found.testzip() is None
        assert found.namelist() == [f"{k:06d}.png" for k in range(5)]
        with Image.open(io.BytesIO(found.read("000003.png"))) as picture:
            picture.verify()
            assert (picture.size, picture.mode) == ((65, 48), "I;16")


def test_depth_comes_back_to_half_a_centimetre_and_nothing_stays_nothing(tmp_path) -> None:
    depth = RNG.uniform(0, 300, (30, 40)).astype(np.float32)
    depth[:5], depth[5] = np.inf, 1e6
    with MaskWriter(tmp_path / "d.zip") as writer:
        writer.write_depth(depth)
    with MaskReader(tmp_path / "d.zip") as reader:
        found = reader.depth_m(0)
    assert found.dtype == np.float32
    assert np.isinf(found[:6]).all()
    assert np.abs(found[6:] - depth[6:]).max() < 0.0051


def test_the_same_masks_make_the_same_file(tmp_path) -> None:
    assert archive(tmp_path / "a.zip").read_bytes() == archive(tmp_path / "b.zip").read_bytes()


def test_an_archive_is_there_whole_or_not_at_all(tmp_path) -> None:
    old = archive(tmp_path / "a.zip").read_bytes()
    writer = MaskWriter(tmp_path / "a.zip")
    writer.write(MASKS[0])
    with pytest.raises(KeyError), writer:
        raise KeyError
    assert (tmp_path / "a.zip").read_bytes() == old
    with pytest.raises(DiskError, match="cannot write"):
        MaskWriter(tmp_path / "nowhere" / "a.zip")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize(
    "mask",
    [
        np.zeros((3, 3)),
        np.zeros((3, 3, 3), int),
        np.full((3, 3), 256),
        np.full((3, 3), -1),
        np.zeros((0, 3), int),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, mask) -> None:
    writer = MaskWriter(tmp_path / "a.zip", 8)
    with pytest.raises(UsageError):
        writer.write(mask)
    writer.abandon()


def test_memory_does_not_grow_with_the_archive(tmp_path) -> None:
    masks = [np.tile(mask, (4, 4)) for mask in MASKS]

    def peak(frames: int) -> int:
        tracemalloc.start()
        archive(tmp_path / "a.zip", (masks[k % 5] for k in range(frames)))
        with MaskReader(tmp_path / "a.zip") as reader:
            for k in range(frames):
                reader.frame(k)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)
    assert peak(150) < peak(5) + 150_000


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused(tmp_path, share) -> None:
    data = archive(tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError, match="empty" if share == 0 else "no whole zip"):
        MaskReader(tmp_path / "a.zip")


def test_flipped_bits_give_a_mask_or_an_error_of_ours(tmp_path) -> None:
    data, rng = archive(tmp_path / "a.zip").read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(60):
        broken = bytearray(data)
        for place in rng.integers(0, len(data), 10):
            broken[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "b.zip").write_bytes(broken)
        try:
            with MaskReader(tmp_path / "b.zip") as reader:
                for k in range(len(reader)):
                    assert reader.frame(k).ndim == 2
        except InputError:
            refused += 1
    assert refused > 30


def zipped(path: Path, data: bytes, name: str = "000000.png") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, data)
    return path


def test_a_zip_bomb_is_refused_in_little_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(images, "MAX_MASK_PIXELS", 1 << 16)
    bombs = [zipped(tmp_path / "zeros.zip", bytes(20_000_000))]
    rows = zlib.compress(bytes(5_000 * 5_001))
    bombs.append(zipped(tmp_path / "wide.zip", _png(5_000, 5_000, rows)))
    bombs.append(zipped(tmp_path / "lying.zip", _png(200, 200, rows)))
    for bomb in bombs[:2]:
        tracemalloc.start()
        with MaskReader(bomb) as reader, pytest.raises(InputError):
            reader.frame(0)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
        tracemalloc.stop()
    with MaskReader(bombs[2]) as reader:  # more rows than the header says: those there are no use
        assert reader.frame(0).shape == (200, 200)


def _png(width: int, height: int, rows: bytes) -> bytes:
    small = encode_png(np.zeros((1, 1), int), 8)
    head = small[16:29].replace(b"\0\0\0\1\0\0\0\1", width.to_bytes(4, "big") + height.to_bytes(4, "big"), 1)
    parts = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    return small[:8] + b"".join(
        len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
        for kind, body in parts
    )


def test_other_members_and_other_pictures_are_refused(tmp_path) -> None:
    from PIL import Image

    for name in ("../000000.png", "/000000.png", "000001.png", "a.txt"):
        with pytest.raises(InputError, match=r"expected 000000\.png|leads out of it"):
            MaskReader(zipped(tmp_path / "a.zip", encode_png(MASKS[0], 16), name))
    colour = io.BytesIO()
    Image.new("RGB", (8, 8)).save(colour, "png")
    for data, words in ((colour.getvalue(), "grey"), (b"no picture", "no whole PNG"), (b"", "no whole PNG")):
        with MaskReader(zipped(tmp_path / "a.zip", data)) as reader, pytest.raises(InputError, match=words):
            reader.frame(0)
    grey = zipped(tmp_path / "a.zip", encode_png(MASKS[0] % 256, 8))
    with MaskReader(grey) as reader, pytest.raises(InputError, match="depth"):
        reader.depth_m(0)
    os.mkfifo(tmp_path / "pipe.zip")
    for name, words in (("pipe.zip", "pipe"), ("nothing.zip", "no such file")):
        with pytest.raises(InputError, match=words):
            MaskReader(tmp_path / name)


def test_a_mask_of_one_pixel_is_a_mask() -> None:
    assert decode_mask(encode_png(np.array([[65_535]]), 16), "here").tolist() == [[65_535]]
