"""What a result of Label Studio draws: a box over time, a box on a picture, a span of frames, a sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import kind_of, quoted, whole
from roadaware.scenes.readers.relation_instances import frame_of

MOST_FRAMES = 200_000
MOST_PIXELS = 65_535
_LARGEST = 1e7
_FASTEST = 1e5
_EDGES = ("x", "y", "width", "height")
_DRAWS = ("rectanglelabels", "rectangle", "labels")
_NEEDED = {
    "videorectangle": ("tubes", ("sequence",)),
    "timelinelabels": ("tubes", ("ranges",)),
    "timeserieslabels": ("tubes", ("start", "end")),
    "audio": ("sounds", ("start", "end")),
    "audioplus": ("sounds", ("start", "end")),
    "rectanglelabels": ("boxes", _EDGES),
    "rectangle": ("boxes", _EDGES),
}
"""Types that draw one thing alone: the table that it goes to, and what its value must hold."""


@dataclass(frozen=True)
class Reading:
    """The place in an export, and where refused rows go."""

    file: str
    video: str
    findings: Findings

    def refuse(self, table: str, item: str, reason: str) -> None:
        """Count a refused row and say why."""
        self.findings.reject(table, self.file, f"{self.video}, {item}", reason)


@dataclass(frozen=True)
class Drawn:
    """Where and when a region is; what does not belong to its kind is None or empty.

    Args:
        kind: track (keyframes in a video), box (on a picture), span (of frames), time (a span in seconds)
            or sound.
        size: width and height of the picture, where the region says so.
        frames: (k,) of the keyframes, from 0, ascending.
        enabled: (k,) whether the box goes on behind them.
        values: (k, 5) left, top, width and height in hundredths of the picture, rotation in degrees.
        n_frames: of the video, where said.
        rate: frames per second, where said.
        ranges: spans of frames, half open.
        seconds: start and end.
    """

    kind: str
    size: tuple[int, int] | None = None
    frames: Ints | None = None
    enabled: Bools | None = None
    values: Floats | None = None
    n_frames: int | None = None
    rate: float | None = None
    ranges: tuple[tuple[int, int], ...] = ()
    seconds: tuple[float, float] | None = None


def drawn_of(result: Mapping[str, Any], item: str, reading: Reading) -> Drawn | str | None:
    """What a result draws, why it cannot be taken, or None where it draws nothing that is read.

    What cannot be taken is refused here; the reason is given for the caller to know.
    """
    value = result.get("value")
    if not isinstance(value, dict):
        return None
    kind = result.get("type")
    if kind == "videorectangle":
        return _track(result, value, item, reading)
    if "ranges" in value and kind == "timelinelabels":
        return _span(value, item, reading)
    if all(name in value for name in ("start", "end")) and "text" not in value and "startOffset" not in value:
        if kind == "timeserieslabels":
            return _seconds(value, "time", "tubes", item, reading)
        if kind in ("labels", "audio", "audioplus"):
            return _seconds(value, "sound", "sounds", item, reading)
    if kind in _DRAWS and all(name in value for name in _EDGES):
        return _box(result, value, item, reading)
    return None


def draws(result: Mapping[str, Any]) -> bool:
    """Whether a result is of a type that draws, rather than says something of what is drawn."""
    kind = result.get("type")
    return isinstance(kind, str) and kind in (*_NEEDED, "labels")


def lacking_of(result: Mapping[str, Any]) -> tuple[str, str] | None:
    """The table that a result should fill and why it cannot; None where it need not draw anything.

    Labels alone can be of a text or a polygon: they are only known for a box by its height.

    Args:
        result: of which `drawn_of` gave None.
    """
    kind, value = result.get("type"), result.get("value")
    table: str
    needed: tuple[str, ...]
    if kind == "labels":
        table, needed = "boxes", _EDGES
        if isinstance(value, dict) and "height" not in value:
            return None
    elif isinstance(kind, str) and kind in _NEEDED:
        table, needed = _NEEDED[kind]
    else:
        return None
    if not isinstance(value, dict):
        return table, f"'value' should be an object and is {kind_of(value)}"
    lost = [f"'{name}'" for name in needed if name not in value]
    return (table, f"its value has no {', '.join(lost)}") if lost else None


def number_of(value: Any) -> float | None:
    """The value as a float if it is a number of reasonable size."""
    known = type(value) in (int, float) and -_LARGEST < value < _LARGEST
    return float(value) if known else None


def corners_of(values: Floats, size: tuple[int, int]) -> Floats:
    """(n, 4) corners in pixels; of a turned box those of the upright one around it.

    Args:
        values: (n, 5) left, top, width and height in hundredths, degrees clockwise about the corner.
        size: width and height of the picture in pixels.
    """
    scale = np.array([*size, *size]) / 100
    left, top, width, height = (values[:, :4] * scale).T
    plain = np.stack([left, top, left + width, top + height], axis=1)
    turned = values[:, 4] % 360 != 0
    if turned.any():
        angle = np.radians(values[turned, 4])
        cosine, sine = np.cos(angle), np.sin(angle)
        across = np.stack([0 * sine, width[turned] * cosine, -height[turned] * sine])
        down = np.stack([0 * sine, width[turned] * sine, height[turned] * cosine])
        ends = [np.stack([*side, side[1] + side[2]]) for side in (across, down)]
        x, y = left[turned] + ends[0], top[turned] + ends[1]
        plain[turned] = np.stack([x.min(axis=0), y.min(axis=0), x.max(axis=0), y.max(axis=0)], axis=1)
    return plain


def _track(result: Mapping[str, Any], value: Mapping[str, Any], item: str, reading: Reading) -> Drawn | str:
    """A box over time."""
    sequence = value.get("sequence")
    if not isinstance(sequence, list) or not sequence:
        return _refused(
            reading, "tubes", item, f"'sequence' should be a list of keyframes: {quoted(sequence)}"
        )
    count = frame_of(value.get("framesCount"))
    count = count if count is not None and 1 <= count <= MOST_FRAMES else None
    if count is None and value.get("framesCount") is not None:
        what = f"numbers of frames that are none from 1 to {MOST_FRAMES}, left aside"
        reading.findings.warn(what, f"{reading.video}: {quoted(value['framesCount'])}")
    rows: dict[int, tuple[bool, list[float]]] = {}
    times: list[tuple[int, float]] = []
    for place, keyframe in enumerate(sequence):
        found = _keyframe(keyframe, count, rows)
        if isinstance(found, str):
            told = keyframe.get("frame") if isinstance(keyframe, dict) else None
            reading.refuse("boxes", f"{item}, keyframe {place}, frame {quoted(told)}", found)
            continue
        frame, row = found
        rows[frame] = row
        time = number_of(keyframe.get("time"))
        if time is not None:
            times.append((frame, time))
    if not rows:
        return _refused(reading, "tubes", item, "has no keyframe that can be taken")
    frames = sorted(rows)
    if list(rows) != frames:
        reading.findings.warn("sequences that are not in the order of frames, put in it", reading.video)
    return Drawn(
        "track",
        _size(result),
        np.array(frames, dtype=np.int64) - 1,
        np.array([rows[frame][0] for frame in frames]),
        np.array([rows[frame][1] for frame in frames]),
        count,
        _rate(times, count, number_of(value.get("duration"))),
    )


def _keyframe(
    value: Any, count: int | None, rows: Mapping[int, Any]
) -> tuple[int, tuple[bool, list[float]]] | str:
    """The frame of a keyframe with what it holds, or why it cannot be taken."""
    if not isinstance(value, dict):
        return f"should be an object and is {kind_of(value)}"
    frame = frame_of(value.get("frame"))
    if frame is None or not 1 <= frame <= MOST_FRAMES:
        return f"'frame' should be a number from 1 to {MOST_FRAMES} and is {quoted(value.get('frame'))}"
    if frame in rows:
        return f"a second keyframe in frame {frame}"
    if count is not None and frame > count:
        return f"frame {frame} lies behind the end of the video, which has {count}"
    enabled = value.get("enabled", True)
    if not isinstance(enabled, bool):
        return f"'enabled' should be true or false and is {quoted(enabled)}"
    numbers = _numbers(value)
    return numbers if isinstance(numbers, str) else (frame, (enabled, numbers))


def _numbers(value: Mapping[str, Any]) -> list[float] | str:
    """Left, top, width, height and rotation, or what is wrong with them."""
    written = [*(value.get(name) for name in _EDGES), value.get("rotation", 0)]
    numbers = [number_of(each) for each in written]
    found = [each for each in numbers if each is not None]
    if len(found) < len(written):
        return f"a corner is no finite number: {', '.join(quoted(each) for each in written)}"
    if found[2] < 0 or found[3] < 0:
        return f"the box is upside down: width {found[2]:g}, height {found[3]:g}"
    return found


def _box(result: Mapping[str, Any], value: Mapping[str, Any], item: str, reading: Reading) -> Drawn | str:
    """A box on a picture."""
    numbers = _numbers(value)
    if isinstance(numbers, str):
        return _refused(reading, "boxes", f"{item}, frame 0", numbers)
    one = np.zeros(1, dtype=np.int64)
    return Drawn("box", _size(result), one, one.astype(np.bool_), np.array([numbers]))


def _span(value: Mapping[str, Any], item: str, reading: Reading) -> Drawn | str:
    """Spans of frames, which count from 1 and have their last frame inside."""
    listed = value["ranges"]
    ranges: list[tuple[int, int]] = []
    for each in listed if isinstance(listed, list) else []:
        held = each if isinstance(each, dict) else {}
        start, end = frame_of(held.get("start")), frame_of(held.get("end"))
        if start is None or end is None or not 1 <= start <= end <= MOST_FRAMES:
            told = f"{quoted(held.get('start'))} to {quoted(held.get('end'))}"
            return _refused(reading, "tubes", item, f"a range should run from frame 1 on, forward: {told}")
        ranges.append((start - 1, end))
    if not ranges:
        return _refused(reading, "tubes", item, "has no range")
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return Drawn("span", ranges=tuple(joined))


def _seconds(value: Mapping[str, Any], kind: str, table: str, item: str, reading: Reading) -> Drawn | str:
    """A span in seconds."""
    start, end = number_of(value["start"]), number_of(value["end"])
    if start is None or end is None or not 0 <= start <= end:
        told = f"{quoted(value['start'])} to {quoted(value['end'])}"
        return _refused(reading, table, item, f"should run from second 0 on, forward: {told}")
    return Drawn(kind, seconds=(start, end))


def _refused(reading: Reading, table: str, item: str, reason: str) -> str:
    reading.refuse(table, item, reason)
    return reason


def _size(result: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = (whole(result.get(f"original_{side}"), 1, MOST_PIXELS) for side in ("width", "height"))
    return None if width is None or height is None else (width, height)


def _rate(times: list[tuple[int, float]], count: int | None, duration: float | None) -> float | None:
    """Frames per second: what frames and times of keyframes agree on, else the length over the duration.

    Label Studio writes a frame's number over the rate as its time, later versions that of its beginning.
    """
    for shift in (0, 1):
        rates = [(frame - shift) / time for frame, time in times if time > 0 and frame > shift]
        if rates and max(rates) - min(rates) < 1e-3 * max(rates) and (len(rates) > 1 or shift == 0):
            return _within(float(np.round(np.median(rates), 6)))
    return _within(count / duration) if count and duration and duration > 0 else None


def _within(rate: float) -> float | None:
    return rate if 0 < rate < _FASTEST else None
