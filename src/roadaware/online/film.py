"""The video of a watch: drawn frames at the pace of the stream, with the sound of the file that is watched."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.io.video import NoSoundError, VideoWriter, read_sound

if TYPE_CHECKING:
    from roadaware.arrays import Pixels

# Each block of sound is a search in its file.
_BLOCK_S = 2.0
_STILL_S = 10.0
_FPS, _LEAST_FPS = 25.0, 0.1
# Frames that may wait for the encoder.
_AHEAD = 2


class Film:
    """Writes frames of uneven times at a constant rate: each is repeated until the next, but not longer than 10 s.

    They are encoded in a thread of its own, in their order, while the next frame is looked at; what goes wrong there is
    raised by one of the next calls, `close` at the latest.

    Args:
        path: of the mp4.
        fps: of the video; 25 where the source's is not known.
        sound: file with the sound, None for a silent video; a file without sound gives a silent video too.
        start_s: time of frame 0 on that file's clock.
        silent: called once with the reason why sound that is there cannot be heard.

    Raises:
        DiskError: if it cannot be written.
    """

    def __init__(
        self,
        path: Path,
        fps: float | None,
        sound: Path | None = None,
        start_s: float = 0.0,
        silent: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._silent, self._warned = silent, False
        self.path, self._fps = path, min(max(fps or _FPS, _LEAST_FPS), 120.0)
        self._sound, self._start_s = sound, start_s
        self._rate = self._rate_of(sound)
        self._writer: VideoWriter | None = None
        self._encoder = ThreadPoolExecutor(1, "video")
        self._waiting: deque[Future[Any]] = deque()
        self._last: Pixels | None = None
        self._t_s = 0.0
        self._owed = 0.0
        self._heard_s = 0.0

    def write(self, image: Pixels, t_s: float) -> None:
        """Add a frame.

        Args:
            image: (H, W, 3), of one size.
            t_s: when it is shown; later than before.

        Raises:
            DiskError: if the disk refuses.
        """
        image = pad_to_even(image)
        if self._writer is None:
            size = image.shape[1], image.shape[0]
            self._writer = VideoWriter(self.path, *size, self._fps, sound_rate=self._rate)
            self._t_s = t_s
            self._heard_s = t_s
        self._hold(t_s)
        self._last, self._t_s = image, t_s

    def close(self) -> bool:
        """Complete the video; whether there is one.

        Raises:
            DiskError: if the disk refuses; there is no video then.
        """
        if self._writer is None or self._last is None:
            return False
        self._hold(self._t_s + 1 / self._fps)
        self._hear(self._t_s + 1 / self._fps)
        while self._waiting:
            self._waiting.popleft().result()
        self._encoder.shutdown()
        self._writer.close()
        return True

    def abandon(self) -> None:
        """Remove the file."""
        self._encoder.shutdown(cancel_futures=True)
        if self._writer is not None:
            self._writer.abandon()

    def _hold(self, t_s: float) -> None:
        """Show the last frame until a time."""
        if self._writer is None or self._last is None:
            return
        still_s = t_s - self._t_s
        if still_s > _STILL_S:  # the sound of what is left out is left out too
            self._hear(self._t_s + _STILL_S)
            self._heard_s, still_s = t_s, _STILL_S
        self._owed += still_s * self._fps
        # What is rounded off is carried over, so that the video stays in step with the stream.
        while self._owed >= 0.5:
            self._encode(self._writer.write, self._last)
            self._owed -= 1.0
        if t_s - self._heard_s >= _BLOCK_S:
            self._hear(t_s)

    def _hear(self, t_s: float) -> None:
        """Write the sound up to a time."""
        if self._writer is None or self._sound is None or self._rate is None or t_s <= self._heard_s:
            return
        begin_s, self._heard_s = self._heard_s, t_s
        # A difference of rounded totals: lengths that are rounded one by one would drift.
        wanted = round(t_s * self._rate) - round(begin_s * self._rate)
        self._encode(
            self._writer.write_sound, self._heard(self._sound, self._start_s + begin_s, wanted, self._rate)
        )

    def _encode(self, write: Callable[[Any], None], what: Any) -> None:
        """Have something written after all that waits, and raise what went wrong with that."""
        while len(self._waiting) >= _AHEAD:
            self._waiting.popleft().result()
        self._waiting.append(self._encoder.submit(write, what))

    def _rate_of(self, sound: Path | None) -> int | None:
        """Samples per second; None where there is no sound that can be read."""
        if sound is None or not sound.is_file():
            return None
        try:
            rate = read_sound(sound, 0.0, 0.05)[1]
        except NoSoundError:
            return None
        except InputError as error:
            self._tell(error.message)
            return None
        if 8000 <= rate <= 96000:
            return rate
        self._tell(f"it has {rate:,} samples a second; videos have 8,000 to 96,000")
        return None

    def _heard(self, sound: Path, start_s: float, wanted: int, rate: int) -> npt.NDArray[np.float32]:
        """(wanted, 2) samples from a time on; silence where there are none."""
        block = np.zeros((wanted, 2), np.float32)
        begin_s = max(0.0, start_s)
        skipped = round((begin_s - start_s) * rate)
        if wanted <= skipped:
            return block
        try:
            found = read_sound(sound, begin_s, begin_s + (wanted - skipped) / rate)[0][: wanted - skipped]
        except InputError as error:
            self._tell(f"from {begin_s:.1f} s on: {error.message}")
            return block
        block[skipped : skipped + len(found)] = found
        return block

    def _tell(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._silent(f"the video is silent, its sound cannot be read: {why}")


def find_first_shown(t_s: Floats, fps: float) -> Ints:
    """At which frame of the video of a watch each of its frames begins to be shown.

    Args:
        t_s: (n,) times of the frames, rising.
        fps: of the video.
    """
    held_s = np.minimum(np.diff(t_s, prepend=t_s[:1]), _STILL_S)
    return np.floor(np.cumsum(held_s) * fps + 0.5).astype(np.int64)


def pad_to_even(image: Pixels) -> Pixels:
    """The image with its last row and column doubled where its sides are odd, as videos want it.

    >>> pad_to_even(np.zeros((3, 4, 3), np.uint8)).shape
    (4, 4, 3)
    """
    rows, columns = (side % 2 for side in image.shape[:2])
    if not rows and not columns:
        return image
    return np.pad(image, ((0, rows), (0, columns), (0, 0)), mode="edge")
