"""Tracks cut into observations: which positions begin one, and how far it is from the event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Bools, Ints
from roadaware.scenes.sampling.configs import EventProtocol, Iv2024, Wacv2021
from roadaware.scenes.sampling.tracks import Tracks


@dataclass(frozen=True)
class Cuts:
    """Observations in the order of extraction.

    Args:
        track: (n,) which pedestrian, an index into the tracks.
        start: (n,) position of the first observed box in its track.
        tte: (n,) frames to the event.
        event: (n,) position of the event.
        lost: why pedestrians or samples were left out, and how many.
    """

    track: Ints
    start: Ints
    tte: Ints
    event: Ints
    lost: dict[str, int]

    def only(self, kept: Bools, reason: str) -> Cuts:
        """The cuts that are kept; the others are counted under `reason`."""
        lost = {**self.lost, reason: int((~kept).sum())}
        return Cuts(self.track[kept], self.start[kept], self.tte[kept], self.event[kept], lost)


def before_event(tracks: Tracks, event: Ints, protocol: EventProtocol) -> Cuts:
    """Observations that end between the lowest and the highest time to event before the event.

    A track of L boxes up to its event is sampled from L - (observation + highest time), or from its first
    box where it is shorter, to L - (observation + lowest time), every stride.

    Args:
        tracks: the pedestrians.
        event: (n,) position of each event, -1 for none.
        protocol: lengths and stride.
    """
    observed, (low, high) = protocol.observation_frames, protocol.tte_frames
    length = event + 1
    shortest = observed + (high if protocol.exclude_short else low)
    if isinstance(protocol, Wacv2021):
        shortest = max(shortest, protocol.min_track_frames)
    usable = (event >= 0) & (length >= shortest)
    first = np.maximum(length - observed - high, 0)
    last = length - observed - low
    count = np.where(usable, (last - first) // protocol.stride_frames + 1, 0)
    track, start = _runs(first, count, protocol.stride_frames)
    named = tracks.length > 0
    lost = {
        "pedestrians_without_boxes": int((~named).sum()),
        "pedestrians_without_event": int((named & (event < 0)).sum()),
        "pedestrians_too_short": int(((event >= 0) & (length < shortest)).sum()),
    }
    return Cuts(track, start, length[track] - (start + observed), event[track], lost)


def before_critical_point(tracks: Tracks, event: Ints, protocol: Iv2024) -> Cuts:
    """Observations of the clip that annotators saw, from the start of the experiment to the critical point.

    Args:
        tracks: the pedestrians.
        event: (n,) position of each event, -1 for none.
        protocol: lengths, stride and what to do with observations that run past the critical point.
    """
    begin = tracks.position(tracks.column("exp_start_point"))
    end = tracks.position(tracks.column("critical_point"))
    asked = (begin >= 0) & (end >= 0) & tracks.frame["intention_prob"].is_not_null().to_numpy()
    usable = asked & (end - begin >= protocol.observation_frames)
    count = np.where(usable, (end - begin) // protocol.stride_frames + 1, 0)
    track, start = _runs(begin, count, protocol.stride_frames)
    offset = protocol.observation_frames - 1 if protocol.intention_tte == "end" else 0
    lost = {
        "pedestrians_without_experiment": int((~asked).sum()),
        "pedestrians_too_short": int((asked & ~usable).sum()),
    }
    cuts = Cuts(track, start, event[track] - start - offset, event[track], lost)
    if protocol.intention_past_critical == "drop":
        last = cuts.start + protocol.observation_frames - 1
        cuts = cuts.only(last <= end[cuts.track], "samples_past_critical_point")
        last = cuts.start + protocol.observation_frames - 1
        cuts = cuts.only((cuts.event < 0) | (last < cuts.event), "samples_past_event")
    return cuts


def _runs(first: Ints, count: Ints, stride: int) -> tuple[Ints, Ints]:
    """Every run's index repeated, and its starts first, first + stride, ..."""
    run = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    return run, first[run] + step * stride
