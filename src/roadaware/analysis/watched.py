"""The events of a watch, as its page shows them: spans of tubes, and highlights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Event = Mapping[str, Any]
MOST_MOMENTS = 8
UNLABELLED = "?"
_APART_S = 1.0
_NEAR = 0.5
_KINDS = ("agent", "action", "location", "event")
_RARE = frozenset({"EmVeh", "Mobike", "Cyc", "Xing", "XingFmLft", "XingFmRht", "Ovtak", "HazLit", "Wait2X"})
"""Labels, as ROAD has them, that somebody who drives would look up at."""


@dataclass(eq=False)
class Span:
    """One tube over time.

    Args:
        tube: its number.
        begin_s: when it was first found.
        end_s: when it was last found.
        score: mean agentness, as last reported.
        agents: label to the best score that was reported for it.
        height: of its box at the largest, in pixels.
        probable: (time, smoothed probability) of each time that crossing was reported.
    """

    tube: int
    begin_s: float
    end_s: float
    score: float = 0.0
    agents: dict[str, float] = field(default_factory=dict)
    height: float = 0.0
    probable: list[tuple[float, float]] = field(default_factory=list)

    @property
    def agent(self) -> str:
        """The label that was reported best; `UNLABELLED` where none was."""
        return max(self.agents, key=lambda name: (self.agents[name], name), default=UNLABELLED)


@dataclass(frozen=True)
class Moment:
    """A time at which to look.

    Args:
        t_s: when.
        why: in words.
        worth: the larger, the sooner it is shown.
        tube: of which; None for none.
    """

    t_s: float
    why: str
    worth: float
    tube: int | None = None


@dataclass(frozen=True, eq=False)
class Watched:
    """The events of a watch.

    Args:
        spans: by number.
        driving: (time, label) of each change of what the own vehicle does.
        source: (time, message) of what happened to the source.
        moments: best first.
    """

    spans: tuple[Span, ...]
    driving: tuple[tuple[float, str], ...]
    source: tuple[tuple[float, str], ...]
    moments: tuple[Moment, ...]


def summarise_events(events: Iterable[Event], height_px: float | None = None) -> Watched:
    """The tubes, the own vehicle and the moments of a stream of events.

    Args:
        events: as `online.events.read_events` gives them.
        height_px: of the image; without it nobody is near.
    """
    spans: dict[int, Span] = {}
    driving: list[tuple[float, str]] = []
    source: list[tuple[float, str]] = []
    moments: list[Moment] = []
    times: list[tuple[int, float]] = [(0, 0.0)]
    frames: dict[int, tuple[int, int]] = {}
    known: set[str] = set()
    for event in events:
        t_s, what, tube = float(event["t_s"]), str(event["event"]), event["tube"]
        times.append((int(event["frame"]), t_s))
        if what == "source":
            source.append((t_s, str(event.get("message", ""))))
            moments.append(Moment(t_s, f"the source: {event.get('message', '')}", 1.5))
        elif tube is None:
            text = ", ".join(name for held in event["labels"].values() for name in held)
            if what != "end" and text and (not driving or driving[-1][1] != text):
                moments += (
                    [Moment(t_s, f"own vehicle: {driving[-1][1]}, then {text}", 0.8)] if driving else []
                )
                driving.append((t_s, text))
        else:
            span = spans.setdefault(int(tube), Span(int(tube), t_s, t_s))
            frames[span.tube] = (int(event["first_frame"]), int(event["last_frame"]))
            # Add an event of a tube, and its highlight
            span.score = float(event["score"])
            for name, score in event["labels"].get("agent", {}).items():
                span.agents[name] = max(span.agents.get(name, 0.0), float(score))
            found, called = [], f"#{span.tube} {span.agent}"
            if what == "crossing_probable":
                likely = float(event.get("crossing", {}).get("smoothed") or 0.0)
                span.probable.append((t_s, likely))
                found.append(
                    Moment(t_s, f"{called} will probably cross ({100 * likely:.0f} %)", 3 + likely, span.tube)
                )
            labels = {name for kind in _KINDS for name in event["labels"].get(kind, {})}
            # Sorted, or the order of a set would decide which of two firsts is shown.
            for name in sorted((labels & _RARE) - known):
                known.add(name)
                found.append(Moment(t_s, f"{called}: the first {name}", 1.0 + span.score, span.tube))
            box = event.get("box")
            height = float(box[3] - box[1]) if box else 0.0
            if height_px and height >= _NEAR * height_px > span.height:
                share = 100 * height / height_px
                found.append(
                    Moment(t_s, f"{called} is near: {share:.0f} % of the image's height", 1.2, span.tube)
                )
            span.height = max(span.height, height)
            moments += found
    _place(spans.values(), frames, times)
    return Watched(tuple(spans[n] for n in sorted(spans)), tuple(driving), tuple(source), _best(moments))


def _place(
    spans: Iterable[Span], frames: Mapping[int, tuple[int, int]], times: list[tuple[int, float]]
) -> None:
    """Times of first and last frames, between those of events."""
    at = np.array(sorted(set(times)), np.float64)
    for span in spans:
        ends = np.interp(frames[span.tube], at[:, 0], at[:, 1])
        span.begin_s, span.end_s = float(ends[0]), float(max(ends))


def _best(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """The best highlights, without the same tube or second twice while there are others."""
    kept: list[Moment] = []
    # Of moments that are worth the same, the earlier one.
    for moment in sorted(moments, key=lambda each: (-each.worth, each.t_s)):
        near = any(abs(moment.t_s - other.t_s) < _APART_S for other in kept)
        again = moment.tube is not None and any(moment.tube == other.tube for other in kept)
        if not (near or again):
            kept.append(moment)
        if len(kept) == MOST_MOMENTS:
            break
    return tuple(kept)
