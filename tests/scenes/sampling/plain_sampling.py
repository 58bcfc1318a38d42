"""The samplers as plain loops over pedestrians and boxes: slow, and easy to compare with the papers."""

from __future__ import annotations

from dataclasses import dataclass

from made import Pedestrian

from roadaware.scenes.sampling import EventProtocol, Iv2024, Wacv2021


@dataclass(frozen=True)
class Row:
    """One sample."""

    name: str
    start: int
    end: int
    event: int | None
    tte: int | None
    label: int


def plain(pedestrians: list[Pedestrian], protocol: EventProtocol, width: int = 1920) -> list[Row]:
    """The samples of pedestrians of one split and video, in order of their names."""
    rows = []
    for pedestrian in sorted(pedestrians, key=lambda p: p.name):
        if pedestrian.name.endswith("p") or not pedestrian.frames:
            continue
        if protocol.pedestrians == "behaviour" and not pedestrian.name.endswith("b"):
            continue
        if pedestrian.crossing is None and labelled(pedestrian, protocol):
            continue
        rows += _of(pedestrian, protocol, width)
    return rows


def labelled(pedestrian: Pedestrian, protocol: EventProtocol) -> bool:
    """Whether somebody should have said if this pedestrian crosses."""
    return protocol.task != "intention" and (protocol.dataset == "pie" or pedestrian.name.endswith("b"))


def _of(p: Pedestrian, protocol: EventProtocol, width: int) -> list[Row]:
    event = _event(p, protocol)
    rows = []
    for start, tte in _starts(p, protocol, event):
        last = min(start + protocol.observation_frames, len(p.frames)) - 1
        observed = range(start, last + 1)
        seen = protocol.task != "intention" and any(p.cross and p.cross[i] == "crossing" for i in observed)
        if seen and protocol.crossing_observed == "drop":
            continue
        frame = None if event is None else p.frames[event]
        rows.append(
            Row(p.name, p.frames[start], p.frames[last] + 1, frame, tte, _label(p, protocol, start, width))
        )
    return rows


def _event(p: Pedestrian, protocol: EventProtocol) -> int | None:
    if p.event is not None:
        return list(p.frames).index(p.event) if p.event in p.frames else None
    crosses = p.crossing == "crossing"
    rule = protocol.crosser_without_event if crosses else protocol.other_event
    if rule == "drop":
        return None
    if rule == "last" or len(p.frames) <= 3:
        return len(p.frames) - 1
    return len(p.frames) - 3


def _starts(p: Pedestrian, protocol: EventProtocol, event: int | None) -> list[tuple[int, int | None]]:
    observed = protocol.observation_frames
    if protocol.task == "intention":
        assert isinstance(protocol, Iv2024)
        return _intention_starts(p, protocol, event)
    low, high = protocol.tte_frames
    if event is None or event + 1 < observed + (high if protocol.exclude_short else low):
        return []
    length = event + 1
    if isinstance(protocol, Wacv2021) and length < protocol.min_track_frames:
        return []
    first = max(0, length - observed - high)
    starts = range(first, length - observed - low + 1, protocol.stride_frames)
    return [(i, length - (i + observed)) for i in starts]


def _intention_starts(p: Pedestrian, protocol: Iv2024, event: int | None) -> list[tuple[int, int | None]]:
    frames, observed = list(p.frames), protocol.observation_frames
    if p.start not in frames or p.critical not in frames or p.probability is None:
        return []
    begin, end = frames.index(p.start), frames.index(p.critical)
    if end - begin < observed:
        return []
    kept = []
    for i in range(begin, end + 1, protocol.stride_frames):
        last = i + observed - 1
        past = last > end or (event is not None and last >= event)
        if past and protocol.intention_past_critical == "drop":
            continue
        offset = observed - 1 if protocol.intention_tte == "end" else 0
        kept.append((i, None if event is None else event - i - offset))
    return kept


def _label(p: Pedestrian, protocol: EventProtocol, start: int, width: int) -> int:
    if protocol.task == "action" or not isinstance(protocol, Iv2024):
        return int(p.crossing == "crossing")
    if protocol.task == "intention":
        assert p.probability is not None
        return min(2, int(p.probability * 3))
    last = min(start + protocol.observation_frames + protocol.risk_horizon_frames, len(p.frames)) - 1
    centre = p.left[last] + 20
    cell = width // protocol.risk_regions
    for region in range(protocol.risk_regions - 1):
        if region * cell <= centre < (region + 1) * cell:
            return region
    left = centre < 0 and protocol.risk_off_left == "first_region"
    return 0 if left else protocol.risk_regions - 1
