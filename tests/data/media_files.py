"""Small valid videos, sounds and images of every format that is read, and of some that must not be."""

from __future__ import annotations

import io
import struct
from fractions import Fraction
from typing import Any

import av
import numpy as np
from PIL import Image

W, H, FRAMES = 64, 48, 8
FILMS = {
    "mp4": ("mp4", "libx264", "aac"),
    "mov": ("mov", "mpeg4", "pcm_s16le"),
    "fragmented": ("mp4", "libx264", None),
    "mkv": ("matroska", "libx264", "aac"),
    "webm": ("webm", "libvpx", "libopus"),
    "avi": ("avi", "mpeg4", "pcm_s16le"),
    "ts": ("mpegts", "mpeg2video", "mp2"),
    "mpg": ("mpeg", "mpeg1video", "mp2"),
    "flv": ("flv", "flv", None),
    "wmv": ("asf", "wmv2", None),
    "mjpeg": ("mov", "mjpeg", None),
}
"""Container, codec of the images and codec of the sound."""


def picture(number: int = 0) -> np.ndarray[Any, Any]:
    """(H, W, 3) that moves with its number, and has no symmetry."""
    y, x = np.mgrid[:H, :W]
    waves = [128 + 90 * np.sin((x + 3 * number) / 9), 128 + 90 * np.cos(y / 7 + number), 2 * x + y]
    return np.stack(waves, axis=-1).clip(0, 255).astype(np.uint8)


def film(kind: str, frames: int = FRAMES) -> bytes:
    """A video of one of `FILMS`, or a `gif`."""
    if kind == "gif":
        pictures = [Image.fromarray(picture(n)).quantize(32) for n in range(frames)]
        held = io.BytesIO()
        pictures[0].save(held, "GIF", save_all=True, append_images=pictures[1:], duration=120)
        return held.getvalue()
    form, codec, heard = FILMS[kind]
    sink = io.BytesIO()
    options = {"movflags": "frag_keyframe+empty_moov"} if kind == "fragmented" else {}
    with av.open(sink, "w", format=form, options=options) as file:
        seen = file.add_stream(codec, rate=25, options={"g": "4"})
        seen.width, seen.height = W, H
        seen.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        sound = file.add_stream(heard, rate=48000, layout="stereo") if heard else None
        for number in range(frames):
            shot = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
            shot.pts, shot.time_base = number, Fraction(1, 25)
            file.mux(seen.encode(shot))
        file.mux(seen.encode(None))
        if sound is not None:
            _hear(file, sound, frames * 1920)
    return sink.getvalue()


def _hear(file: Any, sound: Any, count: int) -> None:
    tone = (8000 * np.sin(np.arange(count) / 17)).astype(np.int16)
    piece = av.AudioFrame.from_ndarray(np.repeat(tone, 2)[None], format="s16", layout="stereo")
    piece.sample_rate, piece.pts = 48000, 0
    for packet in (*sound.encode(piece), *sound.encode(None)):
        file.mux(packet)


def wav() -> bytes:
    """A sound file, which is no video."""
    tone = (8000 * np.sin(np.arange(4000) / 17)).astype("<i2").tobytes()
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", 36 + len(tone), b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16
    )
    return head + struct.pack("<4sI", b"data", len(tone)) + tone


def all_films() -> dict[str, bytes]:
    """Every video and sound file, by its kind."""
    return {**{kind: film(kind) for kind in (*FILMS, "gif")}, "wav": wav()}


def stills() -> dict[str, bytes]:
    """Images by their kind; the first word is the format of Pillow."""
    colours = Image.fromarray(picture())
    grey = colours.convert("L")
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) << 8)
    made: dict[str, tuple[Image.Image, dict[str, Any]]] = {
        "JPEG": (colours, {"quality": 90}),
        "JPEG progressive": (colours, {"progressive": True}),
        "JPEG grey": (grey, {}),
        "JPEG cmyk": (colours.convert("CMYK"), {}),
        "PNG": (colours, {}),
        "PNG palette": (colours.quantize(16), {}),
        "PNG grey": (grey, {}),
        "PNG 16": (deep, {}),
        "PNG alpha": (colours.convert("RGBA"), {}),
        "PNG animated": (colours, {"save_all": True, "append_images": [grey.convert("RGB")]}),
        "BMP": (colours, {}),
        "WEBP": (colours, {"lossless": True}),
        "WEBP animated": (colours, {"save_all": True, "append_images": [grey.convert("RGB")]}),
        "PPM": (colours, {}),
        "TIFF": (colours, {}),
        "TIFF lzw": (colours, {"compression": "tiff_lzw"}),
        "TIFF jpeg": (colours, {"compression": "jpeg"}),
    }
    found = {name: _saved(image, name.split()[0], **more) for name, (image, more) in made.items()}
    turned = {f"{kind} exif": with_metadata(kind, exif(6), xmp(3)) for kind in ("JPEG", "PNG", "WEBP")}
    return {**found, **turned}


def _saved(image: Image.Image, form: str, **more: Any) -> bytes:
    held = io.BytesIO()
    image.save(held, form, **more)
    return held.getvalue()


def exif(orientation: int = 6, order: str = "<") -> bytes:
    """EXIF as a camera writes it: orientation, a text, and a folder of its own within."""
    model = b"camera\0"
    entries = [
        (0x010F, 2, len(model), 8 + 2 + 4 * 12 + 4),
        (0x0112, 3, 1, orientation if order == "<" else orientation << 16),
        (0x0128, 3, 1, 2 if order == "<" else 2 << 16),
        (0x8769, 4, 1, 8 + 2 + 4 * 12 + 4 + 8),
    ]
    body = struct.pack(f"{order}H", len(entries))
    body += b"".join(struct.pack(f"{order}HHII", *entry) for entry in entries) + bytes(4)
    inner = struct.pack(f"{order}HHHIII", 1, 0x9000, 7, 4, 0x30323330, 0)
    return (
        (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 8) + body + model + b"\0" + inner
    )


def xmp(orientation: int = 6) -> bytes:
    """XMP with an orientation."""
    return f'<x:xmpmeta><rdf:Description tiff:Orientation="{orientation}"/></x:xmpmeta>'.encode()


def with_metadata(kind: str, exif_bytes: bytes | None, xmp_bytes: bytes | None = None) -> bytes:
    """The plain image as a JPEG, PNG or WEBP with EXIF and XMP of any bytes; lengths and sums are right."""
    colours = Image.fromarray(picture())
    if kind == "JPEG":
        plain = _saved(colours, "JPEG", quality=95)
        parts = [] if exif_bytes is None else [b"Exif\0\0" + exif_bytes]
        parts += [] if xmp_bytes is None else [b"http://ns.adobe.com/xap/1.0/\0" + xmp_bytes]
        pieces = [part[n : n + 65533] for part in parts for n in range(0, len(part), 65533)]
        made = b"".join(b"\xff\xe1" + struct.pack(">H", len(piece) + 2) + piece for piece in pieces)
        # Before JFIF, whose resolution would save the decoder the look at EXIF.
        return plain[:2] + made + plain[2 + 2 + struct.unpack(">H", plain[4:6])[0] :]
    if kind == "PNG":
        plain = _saved(colours, "PNG")
        made = b"" if exif_bytes is None else png_chunk(b"eXIf", exif_bytes)
        if xmp_bytes is not None:
            made += png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp_bytes)
        return plain[:33] + made + plain[33:]
    more = {
        **({} if exif_bytes is None else {"exif": exif_bytes}),
        **({} if xmp_bytes is None else {"xmp": xmp_bytes}),
    }
    return _saved(colours, "WEBP", lossless=True, **more)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    """One chunk of a PNG, with its sum."""
    import zlib

    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
