"""A small run with a film whose frames show their numbers, and whoever asks a viewer about it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.viewer.serve import Viewer

FRAMES, WIDTH, HEIGHT, BITS, BLOCK = 90, 320, 180, 8, 20
AGENTS = ("Ped", "Car")


def numbered_image(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An image that shows a number in black and white squares, the lowest bit at the left."""
    image = np.full((HEIGHT, WIDTH, 3), 90, dtype=np.uint8)
    for bit in range(BITS):
        image[:BLOCK, bit * BLOCK : (bit + 1) * BLOCK] = 255 * (number >> bit & 1)
    return image


def variable_times() -> list[int]:
    """Milliseconds at which the frames of a film of variable rate begin."""
    return np.cumsum([0] + [20 + 30 * (number % 3) for number in range(FRAMES - 1)]).tolist()


def write_numbered_film(path: Path, codec: str = "libx264", count: int = FRAMES, b_frames: int = 0) -> None:
    """A film of variable rate with a key frame every second or so."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=1000)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = 30, b_frames
        for number, time in zip(range(count), variable_times(), strict=False):
            frame = av.VideoFrame.from_ndarray(numbered_image(number), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def _boxes(video: str, tube: int, frames: Sequence[int], top: float, shift: float = 0.0) -> pl.DataFrame:
    """A box that moves by two pixels a frame."""
    left = [10.0 + shift + 2 * frame for frame in frames]
    return pl.DataFrame(
        {
            "video": video,
            "frame": list(frames),
            "tube": tube,
            "x1_px": left,
            "y1_px": top,
            "x2_px": [x + 30 for x in left],
            "y2_px": top + 40,
        },
        schema_overrides={"tube": pl.Int64},
    )


def _tables(rows: list[tuple[str, str, range, float, float]], scores: list[float] | None) -> dict[str, Any]:
    parts = [
        _boxes(video, tube, frames, top, shift) for tube, (video, _, frames, top, shift) in enumerate(rows)
    ]
    boxes = pl.concat(parts).sort("video", "frame", "tube").with_row_index("box").cast({"box": pl.Int64})
    tubes = pl.DataFrame(
        {
            "tube": range(len(rows)),
            "video": [row[0] for row in rows],
            "name": [f"t{tube}" for tube in range(len(rows))],
            "start_frame": [row[2].start for row in rows],
            "end_frame": [row[2].stop for row in rows],
        }
    )
    labels = pl.DataFrame(
        {"tube": range(len(rows)), "kind": "agent", "label": [AGENTS.index(row[1]) for row in rows]}
    )
    if scores is not None:
        own = pl.DataFrame({"tube": range(len(rows)), "score": scores})
        tubes, labels = tubes.join(own, on="tube"), labels.join(own, on="tube")
        boxes = boxes.join(own, on="tube", maintain_order="left")
    videos = pl.DataFrame(
        {
            "video": ["one", "two"],
            "width_px": WIDTH,
            "height_px": HEIGHT,
            "fps": 20.0,
            "n_frames": FRAMES,
            "path": ["films/one.mp4", "films/two.mp4"],
        }
    )
    return {"videos": videos, "boxes": boxes, "tubes": tubes, "tube_labels": labels}


def make_truth(**meta: Any) -> Scenes:
    """Two people and a car in one video, a person in the other."""
    rows = [
        ("one", "Ped", range(0, 60), 60.0, 0.0),
        ("one", "Car", range(10, 90), 110.0, 0.0),
        ("one", "Ped", range(70, 90), 60.0, 0.0),
        ("two", "Ped", range(0, 30), 60.0, 0.0),
    ]
    return Scenes(**_tables(rows, None), meta=Meta(vocabularies={"agent": AGENTS}, **meta))


def make_predictions(*, shift: float = 4.0) -> Predictions:
    """The first person and the car found, the third taken for a car, something on the background."""
    rows = [
        ("one", "Ped", range(0, 60), 60.0, shift),
        ("one", "Car", range(10, 90), 110.0, shift),
        ("one", "Car", range(70, 90), 60.0, 0.0),
        ("one", "Ped", range(20, 40), 130.0, 100.0),
    ]
    scores = [0.9, 0.8, 0.7, 0.6]
    return Predictions(**_tables(rows, scores), meta=Meta(vocabularies={"agent": AGENTS}))


@dataclass
class Client:
    """Asks a viewer as its page would, or otherwise."""

    viewer: Viewer

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        *,
        known: bool = True,
        **headers: str | None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; a header that is None is left out, underscores stand for dashes."""
        port = self.viewer.port
        given: dict[str, str | None] = {"Host": f"127.0.0.1:{port}"}
        if known:
            given["Cookie"] = f"roadaware-{port}={self.viewer.token}"
        if body is not None:
            given |= {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"}
            given["Content-Length"] = str(len(body))
        given |= {name.replace("_", "-").title(): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return (
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, data: Any) -> tuple[int, Any]:
        status, _, body = self.ask(path, "POST", json.dumps(data).encode())
        return status, json.loads(body)


Open = Callable[..., Client]
