"""Checks of videos: what they are, and what of them makes boxes and times go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.analysis.doctor.diagnosis import Diagnosis, report_error, report_note, report_suspicion
from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.io.decoders import BROKEN
from roadaware.io.sources import to_printable
from roadaware.io.video import (
    count_promised_frames,
    get_time_base,
    open_container,
    open_video_stream,
    read_frame_times,
)

SUFFIXES = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".ts")
_MOST_VIDEOS = 10_000
# A whole minute at 25 frames a second is decoded; of longer videos as many frames, from places evenly spread.
_MOST_DECODED, _PLACES = 1500, 30
_SMALL = (64, 36)
"""Width and height in which brightness and motion are measured: finer ones say the same of a whole image."""
# Of 255. Nothing but noise is left of an image below; a clear night street has a mean of 25 and more, and lamps.
_DARK_MEAN, _DARK_BRIGHTEST = 16.0, 60.0
_BRIGHT_MEAN = 240.0
# Compression noise of a still image stays below; one walker in 64 x 36 pixels moves the mean by more.
_STILL = 0.05
_ODD_STEP, _ODD_SHARE, _GAP = 0.1, 0.02, 3.0
_RATE_OFF = 0.01
_SHORT_S = 1.0
_PLAYED = ("h264", "vp8", "vp9", "av1")
"""Codecs that browsers play everywhere."""


@dataclass
class VideoFacts:
    """What a video is.

    Args:
        path: as it was given.
        container: FFmpeg's name of it.
        codec: FFmpeg's name of it.
        width_px: of its images as they are stored.
        height_px: of its images as they are stored.
        frames: how many.
        fps: on average, by the times of the frames; None of a single frame.
        stated_fps: what the file says.
        rotation_deg: by which players turn it, counter-clockwise.
        seconds: from the first frame to the end of the last.
        decoded: frames that were decoded for the checks.
    """

    path: str
    container: str = ""
    codec: str = ""
    width_px: int = 0
    height_px: int = 0
    frames: int = 0
    fps: float | None = None
    stated_fps: float | None = None
    rotation_deg: int = 0
    seconds: float = 0.0
    decoded: int = 0


@dataclass
class _Seen:
    """What decoded frames look like: mean and brightest of each, mean change to the one before, and what is damaged."""

    means: list[float] = field(default_factory=list)
    brightest: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    damaged: list[float] = field(default_factory=list)
    rotation_deg: int = 0


def list_videos(path: Path) -> list[Path]:
    """The video at a path, or those in a folder and below.

    Raises:
        InputError: if there is none.
    """
    if not path.exists():
        raise InputError(
            "there is no such file or folder", where=to_printable(str(path)), hint="Check the path."
        )
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
    if not found:
        raise InputError(
            f"expected videos ({', '.join(SUFFIXES)}), found none",
            where=to_printable(str(path)),
            hint="Name a video or its folder.",
        )
    return found[:_MOST_VIDEOS]


def check_video(path: Path) -> tuple[VideoFacts, list[Diagnosis]]:
    """What a video is, and what is the matter with it."""
    facts = VideoFacts(str(path))
    try:
        file = open_container(path)
    except InputError as error:
        return facts, _report_unread(error)
    with file:
        try:
            stream = open_video_stream(file, facts.path)
            scale = get_time_base(stream, facts.path)
            times, counted, broken = read_frame_times(file, stream, facts.path)
        except InputError as error:
            return facts, _report_unread(error)
        facts.container, facts.codec = str(file.format.name), str(stream.codec_context.name)
        facts.width_px, facts.height_px = int(stream.width), int(stream.height)
        facts.frames, rate = len(times), stream.average_rate
        facts.stated_fps = float(rate) if rate else None
        shown_s = times.astype(np.float64) * scale
        step = float(np.median(np.diff(shown_s))) if len(shown_s) > 1 else 0.0
        if len(shown_s) > 1 and shown_s[-1] > shown_s[0]:
            facts.fps = float((len(shown_s) - 1) / (shown_s[-1] - shown_s[0]))
            facts.seconds = float(shown_s[-1] - shown_s[0] + step)
        promised = count_promised_frames(file, stream, times)
        if not facts.frames:
            return facts, report_error("empty", "There is no frame in it.", "no packet has a time", _AGAIN)
        found = _check_whole(facts, counted, promised, broken)
        found += check_times(shown_s, facts.stated_fps)
        seen = _look(file, stream, times, scale)
        facts.decoded, facts.rotation_deg = len(seen.means), seen.rotation_deg
    found += _check_images(facts, seen)
    if facts.codec not in _PLAYED:
        says = f"Its codec, {facts.codec}, is not played by every browser."
        remedy = (
            "Nothing for reading; for `view` write it as H.264: ffmpeg -i IN -c:v libx264 -crf 18 OUT.mp4"
        )
        found += report_note("codec", says, f"browsers play {', '.join(_PLAYED)}", remedy)
    if 0 < facts.seconds < _SHORT_S:
        says = "It is shorter than a second."
        found += report_note(
            "short",
            says,
            f"{facts.frames} frames, {facts.seconds:.2f} s",
            "Check that it is the whole video.",
        )
    return facts, found


_AGAIN = (
    "Copy or fetch the file again; if it was recorded so, ffmpeg -i IN -c copy OUT.mp4 keeps what is whole."
)


def _report_unread(error: InputError) -> list[Diagnosis]:
    return report_error("unread", "It cannot be read as a video.", error.message, error.hint or _AGAIN)


def _check_whole(facts: VideoFacts, counted: int, promised: int, broken: str) -> list[Diagnosis]:
    if broken:
        return report_error(
            "cut_off", "The file breaks off or is damaged.", f"after {facts.frames} frames: {broken}", _AGAIN
        )
    if counted < promised:
        evidence = f"{counted:,} frames of the {promised:,} that it promises"
        return report_error("cut_off", "The end of the video is missing.", evidence, _AGAIN)
    if counted > facts.frames:
        says = "Several frames have one time, so that numbers of frames differ between tools."
        evidence = f"{counted:,} frames with {facts.frames:,} different times"
        return report_suspicion("same_times", says, evidence, _constant(facts.stated_fps))
    return []


def check_times(shown_s: Floats, stated_fps: float | None) -> list[Diagnosis]:
    """Whether frames come at one rate, and at that which the file states.

    Args:
        shown_s: (n,) when each frame is shown, rising.
        stated_fps: frames a second as the file says; None where it does not.
    """
    if len(shown_s) < 3:
        return []
    steps = np.diff(shown_s)
    usual = float(np.median(steps))
    gaps = np.flatnonzero(steps > _GAP * usual)
    odd = float((np.abs(steps - usual) > _ODD_STEP * usual).mean())
    found: list[Diagnosis] = []
    if len(gaps):
        longest = int(gaps[np.argmax(steps[gaps])])
        says = "Frames are missing: time goes on and the numbers of frames do not."
        evidence = f"{len(gaps)} gaps; the longest, {steps[longest]:.2f} s, behind frame {longest}"
        found += report_suspicion(
            "gaps", says, evidence, "Count in times and not in frames, or cut the video at the gaps."
        )
    if odd > _ODD_SHARE and odd > len(gaps) / len(steps):
        says = "Its rate varies: a frame's number does not tell its time."
        evidence = f"{odd:.0%} of steps differ from {usual * 1000:.1f} ms by more than {_ODD_STEP:.0%}"
        found += report_suspicion("variable_rate", says, evidence, _constant(stated_fps))
    measured = (len(steps)) / float(shown_s[-1] - shown_s[0])
    if stated_fps and not found and abs(stated_fps - measured) > _RATE_OFF * measured:
        says = "The rate that the file states is not that of its frames."
        evidence = f"stated {stated_fps:g}, frames come at {measured:g} a second"
        found += report_suspicion(
            "stated_rate", says, evidence, f"Say the rate of the frames: --option fps={measured:g}"
        )
    if not stated_fps and not found:
        says = "The file does not say its rate."
        found += report_note(
            "no_rate", says, f"frames come at {measured:g} a second", f"Say it: --option fps={measured:g}"
        )
    return found


def _constant(fps: float | None) -> str:
    return (
        "Before anything is annotated (frames get new numbers), make a copy of one rate: "
        f"ffmpeg -i IN -fps_mode cfr -r {fps or 25:g} OUT.mp4"
    )


def _look(file: Any, stream: Any, times: npt.NDArray[np.int64], scale: float) -> _Seen:
    """Decode a video, or some of it at places evenly spread, and measure its frames."""
    seen = _Seen()
    whole = len(times) <= _MOST_DECODED
    starts = [0] if whole else np.linspace(0, len(times) - 1, _PLACES, endpoint=False).astype(int).tolist()
    most = len(times) if whole else _MOST_DECODED // _PLACES
    for start in starts:
        before: Floats | None = None
        for frame in islice(_decode(file, stream, int(times[start])), most):
            if frame is None or frame.is_corrupt:
                place = float(times[start] if frame is None or frame.pts is None else frame.pts)
                seen.damaged.append(place * scale)
                if frame is None:
                    break
            seen.rotation_deg = seen.rotation_deg or int(frame.rotation)
            small: Floats = frame.reformat(*_SMALL, format="gray").to_ndarray().astype(np.float64)
            seen.means.append(float(small.mean()))
            seen.brightest.append(float(small.max()))
            if before is not None:
                seen.changes.append(float(np.abs(small - before).mean()))
            before = small
    return seen


def _decode(file: Any, stream: Any, place: int) -> Iterator[Any]:
    """Frames from the key frame before a place on; None where one cannot be decoded."""
    try:
        file.seek(place, stream=stream, backward=True, any_frame=False)
        yield from file.decode(stream)
    except BROKEN:
        yield None


def _check_images(facts: VideoFacts, seen: _Seen) -> list[Diagnosis]:
    """Whether images are damaged, turned, dark, blinding or still."""
    found: list[Diagnosis] = []
    looked = f"of {facts.decoded:,} decoded frames" + (
        "" if facts.decoded >= facts.frames else f" ({facts.frames:,} are there)"
    )
    if facts.frames <= _MOST_DECODED and not seen.damaged and facts.decoded < facts.frames:
        evidence = f"{facts.decoded:,} of {facts.frames:,} frames can be decoded"
        found += report_error(
            "damaged_frames", "Frames cannot be decoded, or only in part.", evidence, _AGAIN
        )
    if seen.damaged:
        places = ", ".join(f"{place:.2f} s" for place in seen.damaged[:3])
        evidence = f"{len(seen.damaged):,} {looked}, the first at {places}"
        found += report_error(
            "damaged_frames", "Frames cannot be decoded, or only in part.", evidence, _AGAIN
        )
    if facts.rotation_deg % 360:
        says = f"Players turn it by {facts.rotation_deg % 360} degrees, and so it is read here; it is stored unturned."
        remedy = "Boxes that were drawn on its stored images do not fit: turn the images themselves, ffmpeg -i IN OUT.mp4"
        found += report_suspicion("rotation", says, f"stored as {facts.width_px} x {facts.height_px}", remedy)
    if not seen.means:
        return found or report_error(
            "damaged_frames", "Not one frame can be decoded.", f"{facts.frames:,} are listed", _AGAIN
        )
    means, brightest = np.array(seen.means), np.array(seen.brightest)
    dark = (means < _DARK_MEAN) & (brightest < _DARK_BRIGHTEST)
    share = f"{dark.mean():.0%} {looked}; their mean is {means.mean():.0f} of 255"
    if dark.mean() > 0.5:
        says = "It is too dark: hardly anything can be seen."
        found += report_suspicion(
            "dark", says, share, "Check the lens cap and exposure; leave the dark parts out."
        )
    elif dark.mean() > 0.05:
        found += report_note(
            "dark", "Parts of it are dark.", share, "Leave them out, or expect nothing to be found there."
        )
    if (bright := (means > _BRIGHT_MEAN).mean()) > 0.5:
        says = "It is overexposed: almost everything is white."
        found += report_suspicion(
            "bright", says, f"{bright:.0%} {looked}", "Check the exposure; leave these parts out."
        )
    changes = np.array(seen.changes)
    if len(changes) >= 10 and (still := (changes < _STILL).mean()) > 0.95:
        says = "Nothing moves in it: it may be a still image, or a frozen stream."
        evidence = f"{still:.0%} of {len(changes):,} steps change nothing"
        found += report_suspicion(
            "static", says, evidence, "Check the recording; frames that repeat count as evidence twice."
        )
    return found
