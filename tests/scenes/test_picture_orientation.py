"""Which way up images are: as EXIF and XMP say, whatever else stands in them."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import media_files

from roadaware.io.decoders import PICTURES, parse_image_parts
from roadaware.io.images import apply_orientation, parse_image_size, read_still, read_upright
from roadaware.online.frames import SystemClock
from roadaware.online.sources import PictureFiles


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pictures_are_turned_as_pillow_turns_them(tmp_path: Path, kind: str, order: str) -> None:
    path = tmp_path / f"a.{kind.lower()}"
    for orientation in range(1, 9):
        for data in (
            media_files.with_metadata(kind, media_files.exif(orientation, order)),
            media_files.with_metadata(kind, None, media_files.xmp(orientation)),
        ):
            path.write_bytes(data)
            with Image.open(path) as image:
                expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
            pixels, known = read_upright(path, PICTURES)
            assert known
            np.testing.assert_array_equal(pixels, expected)


def test_a_tiff_is_turned_as_pillow_turns_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    for compression in (None, "tiff_lzw"):
        for orientation in range(1, 9):
            found = Image.Exif()
            found[0x0112] = orientation
            Image.fromarray(media_files.picture()).save(path, exif=found, compression=compression)
            with Image.open(path) as image:
                expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
            pixels, known = read_upright(path, PICTURES)
            assert known
            np.testing.assert_array_equal(pixels, expected)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    "wrong", [0, 9, 65535, "text", "rational", "cut", "empty", "xmp 0", "xmp 9", "xmp text"]
)
def test_an_orientation_that_makes_no_sense_is_unknown_and_no_more(
    tmp_path: Path, kind: str, wrong: int | str
) -> None:
    plain, said = media_files.exif(6), None
    if isinstance(wrong, int):
        data: bytes | None = media_files.exif(wrong)
    elif wrong.startswith("xmp"):
        data, said = None, media_files.xmp(6).replace(b"6", wrong[4:].encode())
    else:
        place = plain.find(struct.pack("<HHI", 0x0112, 3, 1))
        kinds = {"text": 2, "rational": 5}
        data = plain[:20] if wrong == "cut" else b"garbage" if wrong == "empty" else plain
        if wrong in kinds:
            data = plain[: place + 2] + struct.pack("<H", kinds[str(wrong)]) + plain[place + 4 :]
    path = tmp_path / f"a.{kind.lower()}"
    path.write_bytes(media_files.with_metadata(kind, data, said))
    source = PictureFiles(str(tmp_path / "*"), SystemClock())
    frame = source.next(0.0, 0.0)
    assert frame is not None
    lies = np.asarray(Image.open(io.BytesIO(media_files.with_metadata(kind, None))).convert("RGB"))
    np.testing.assert_array_equal(frame.picture, lies)
    expected = {} if wrong == "xmp text" else {"orientation": 1}
    assert source.outcomes.counts() == expected
    assert len(source.outcomes.news()) == len(expected)


def test_pictures_of_sets_are_never_turned(tmp_path: Path) -> None:
    """Their boxes are of the pixels as they lie; what tells sizes and what tells pixels agree."""
    for kind in ("JPEG", "PNG"):
        data = media_files.with_metadata(kind, media_files.exif(6))
        (tmp_path / "a").write_bytes(data)
        assert read_still(tmp_path / "a").shape == (media_files.H, media_files.W, 3)
        assert parse_image_size(data) == (media_files.W, media_files.H)


@pytest.mark.parametrize("kind", sorted(kind for kind in media_files.stills() if "exif" not in kind))
def test_nothing_that_pixels_need_is_left_out(tmp_path: Path, kind: str) -> None:
    data = media_files.stills()[kind]
    with Image.open(io.BytesIO(data)) as image:
        expected = np.asarray(image.convert("RGB"))
        if kind == "PNG 16":  # Pillow would cut it at 255
            expected = np.repeat((np.asarray(image) >> 8).astype(np.uint8)[..., None], 3, axis=2)
    (tmp_path / "a").write_bytes(data)
    np.testing.assert_array_equal(read_upright(tmp_path / "a", PICTURES)[0], expected)
    assert parse_image_parts(data, 1 << 26).orientation == 1
    assert apply_orientation(expected, 1) is expected


def test_a_film_or_picture_behind_a_jpeg_is_none_of_its_business(tmp_path: Path) -> None:
    """Telephones put them there; their bytes look like many scans."""
    plain = media_files.stills()["JPEG"]
    with Image.open(io.BytesIO(plain)) as image:
        expected = np.asarray(image)
    for behind in (plain * 300, b"\0\xff\xda\0\x08" * 5000, b"\xff\xda" * 200):
        (tmp_path / "a.jpg").write_bytes(plain + behind)
        np.testing.assert_array_equal(read_upright(tmp_path / "a.jpg", PICTURES)[0], expected)
        assert parse_image_parts(plain + behind, 1 << 26).plain == plain
