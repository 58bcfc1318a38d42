"""From shots with regions to tables: frames get their numbers, boxes their tracks and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.vott_files import Sheet, Shot
from roadaware.scenes.schema import CORNERS

TAG = "tag"
_SCHEMAS: dict[str, dict[str, Any]] = {
    "videos": {
        "video": pl.String,
        "scene": pl.String,
        "width_px": pl.Int64,
        "height_px": pl.Int64,
        "fps": pl.Float32,
        "n_frames": pl.Int64,
    },
    "frames": {
        "video": pl.String,
        "frame": pl.Int64,
        "t_s": pl.Float32,
        "annotated": pl.Boolean,
        "image": pl.String,
    },
    "boxes": {
        "box": pl.Int64,
        "video": pl.String,
        "frame": pl.Int64,
        "tube": pl.Int64,
        **dict.fromkeys(CORNERS, pl.Float32),
    },
    "labels": {"box": pl.Int64, "kind": pl.String, "label": pl.Int64},
    "tubes": {
        "tube": pl.Int64,
        "video": pl.String,
        "name": pl.String,
        "start_frame": pl.Int64,
        "end_frame": pl.Int64,
    },
}


@dataclass(frozen=True)
class _Video:
    """All shots of one video in the order of frames, with the frame rate they are counted by."""

    name: str
    file: str
    shots: list[tuple[int, Shot]]
    fps: float | None


def tables_of(
    sheets: Sequence[Sheet], kinds: Mapping[str, list[str]], findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables of all files, and the vocabularies.

    Args:
        sheets: what the files hold.
        kinds: kind to its tags; the tags of none of them make the kind `tag`.
        findings: takes oddities and what is refused.
    """
    vocabularies = _vocabularies(sheets, kinds, findings)
    place = {tag: (kind, n) for kind, tags in vocabularies.items() for n, tag in enumerate(tags)}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _SCHEMAS}
    for video in _videos(sheets, findings):
        _enter(video, place, rows, findings)
    for name in ("videos", "labels", "tubes"):
        findings.read[name] += len(rows[name])
    return {name: pl.DataFrame(rows[name], schema=schema) for name, schema in _SCHEMAS.items()}, vocabularies


def _vocabularies(
    sheets: Sequence[Sheet], kinds: Mapping[str, list[str]], findings: Findings
) -> dict[str, tuple[str, ...]]:
    """The asked kinds, then `tag`: the tags that the files offer, then those only found on boxes."""
    offered = [tag for sheet in sheets for tag in sheet.tags]
    used = [tag for sheet in sheets for shot in sheet.shots for region in shot.regions for tag in region.tags]
    known = {tag for tags in kinds.values() for tag in tags}
    for tag in dict.fromkeys(used):
        if offered and tag not in offered:
            findings.warn("tags of boxes that their files do not offer", tag)
    left = [tag for tag in dict.fromkeys([*offered, *used]) if tag not in known]
    found = {kind: tuple(tags) for kind, tags in kinds.items()}
    return found | {TAG: (*found.get(TAG, ()), *left)} if left or not found else found


def _videos(sheets: Sequence[Sheet], findings: Findings) -> list[_Video]:
    """The shots by video, each frame once; shots without a number are counted in their order."""
    held: dict[str, list[tuple[Sheet, Shot]]] = {}
    for sheet in sheets:
        for shot in sheet.shots:
            held.setdefault(shot.video, []).append((sheet, shot))
    videos = []
    for name, shots in held.items():
        if any(shot.number is None for _, shot in shots):
            times = sorted({shot.t_s for _, shot in shots if shot.t_s is not None})
            order = {time: n for n, time in enumerate(times)}
            findings.warn(
                "videos whose frames are counted in the order of their times, for want of a rate",
                name,
                int(bool(times)),
            )
            numbers = [n if shot.t_s is None else order[shot.t_s] for n, (_, shot) in enumerate(shots)]
        else:
            numbers = [shot.number or 0 for _, shot in shots]
        first: dict[int, tuple[int, Shot]] = {}
        for number, (sheet, shot) in zip(numbers, shots, strict=True):
            if number not in first:
                first[number] = (number, shot)
                continue
            reason = f"the frame stands in the set twice, with {len(shot.regions)} boxes left out"
            findings.reject("frames", sheet.file, f"{name}, frame {number}", reason, rows=0)
            findings.read["boxes"] -= len(shot.regions)
        rates = {sheet.fps for sheet, _ in shots}
        fps = rates.pop() if len(rates) == 1 else None
        videos.append(_Video(name, shots[0][0].file, [first[n] for n in sorted(first)], fps))
    return videos


def _enter(
    video: _Video,
    place: Mapping[str, tuple[str, int]],
    rows: dict[str, list[dict[str, Any]]],
    findings: Findings,
) -> None:
    """Add the rows of one video."""
    images = any(shot.image is not None for _, shot in video.shots)
    sizes = Counter(shot.size for _, shot in video.shots if shot.size is not None)
    size = sizes.most_common(1)[0][0] if sizes and (len(sizes) == 1 or not images) else None
    head = {"video": video.name, "scene": video.name, "fps": None if images else video.fps}
    rows["videos"].append(head | dict(zip(("width_px", "height_px"), size or (None, None), strict=True)))
    tubes = _tracks(video, len(rows["tubes"]), findings) if not images else {}
    for name, (tube, frames) in tubes.items():
        ends = {"start_frame": min(frames), "end_frame": max(frames) + 1}
        rows["tubes"].append({"tube": tube, "video": video.name, "name": name, **ends})
    for frame, shot in video.shots:
        said = {"t_s": shot.t_s, "annotated": shot.annotated, "image": shot.image}
        rows["frames"].append({"video": video.name, "frame": frame, **said})
        for region in shot.regions:
            box = len(rows["boxes"])
            track = tubes.get(region.track) if region.track is not None else None
            corners = _scaled(region.corners, region.size or shot.size, size)
            limit = size or shot.size
            if limit and not (min(corners) >= 0 and corners[2] <= limit[0] and corners[3] <= limit[1]):
                findings.warn("boxes that reach out of their image, kept as they are", region.item)
            named = dict(zip(CORNERS, corners, strict=True))
            rows["boxes"].append(
                {
                    "box": box,
                    "video": video.name,
                    "frame": frame,
                    "tube": None if track is None else track[0],
                    **named,
                }
            )
            for kind, label in sorted(place[tag] for tag in region.tags):
                rows["labels"].append({"box": box, "kind": kind, "label": label})


def _tracks(video: _Video, start: int, findings: Findings) -> dict[str, tuple[int, list[int]]]:
    """Names that several frames have, to their tube and frames; one that a frame has twice is none."""
    seen: dict[str, list[int]] = {}
    for frame, shot in video.shots:
        for region in shot.regions:
            if region.track is not None:
                seen.setdefault(region.track, []).append(frame)
    twice = [name for name, frames in seen.items() if len(set(frames)) < len(frames)]
    findings.warn(
        "names of tracks that a frame has twice, so that their boxes are in no track", video.name, len(twice)
    )
    found = [name for name, frames in seen.items() if len(frames) > 1 and name not in twice]
    return {name: (n, seen[name]) for n, name in enumerate(found, start)}


def _scaled(
    corners: tuple[float, float, float, float], drawn: tuple[int, int] | None, size: tuple[int, int] | None
) -> tuple[float, float, float, float]:
    """Corners in pixels of the video's own size."""
    if drawn is None or size is None or drawn == size:
        return corners
    across, down = size[0] / drawn[0], size[1] / drawn[1]
    return corners[0] * across, corners[1] * down, corners[2] * across, corners[3] * down
