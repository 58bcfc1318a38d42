"""Grey images of 16 bits keep their greys; of 32 bits nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from roadaware.errors import InputError
from roadaware.io.decoders import PICTURES
from roadaware.io.images import read_upright

GREYS = np.arange(0, 65536, 1024, dtype=np.uint16).reshape(8, 8)


@pytest.mark.parametrize("ending", ["png", "tiff", "pgm"])
def test_grey_of_16_bits_is_not_cut_at_255(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"deep.{ending}"
    if ending == "pgm":
        path.write_bytes(b"P5 8 8 65535\n" + GREYS.astype(">u2").tobytes())
    else:
        Image.fromarray(GREYS).save(path)
    image, _ = read_upright(path, PICTURES)
    assert np.array_equal(image, np.repeat((GREYS >> 8).astype(np.uint8)[..., None], 3, axis=2))


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_pixels_of_32_bits_are_refused(tmp_path: Path, kind: type) -> None:
    Image.fromarray(GREYS.astype(kind)).save(tmp_path / "deep.tiff")
    with pytest.raises(InputError, match="32 bits"):
        read_upright(tmp_path / "deep.tiff", PICTURES)
