"""Road events in words: a sentence from who somebody is, where they are, what they do, and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# ROAD's labels and ROAD-Waymo's, which are some of them (Singh et al., TPAMI 2022, tables 11 to 14). An agent is a noun,
# an action a verb in the third person, a place what stands behind the noun: any of each make a sentence.

AGENTS = {
    "Ped": "pedestrian",
    "Car": "car",
    "Cyc": "cyclist",
    "Mobike": "motorbike",
    "SmalVeh": "small vehicle",
    "MedVeh": "van",
    "LarVeh": "lorry",
    "Bus": "bus",
    "EmVeh": "emergency vehicle",
    "TL": "traffic light",
    "OthTL": "traffic light for others",
}
ACTIONS = {
    "Red": "shows red",
    "Amber": "shows amber",
    "Green": "shows green",
    "Black": "shows no light",
    "MovAway": "moves away",
    "MovTow": "comes closer",
    "Mov": "moves across",
    "Rev": "reverses",
    "Brake": "brakes",
    "Stop": "stands still",
    "IncatLft": "indicates left",
    "IncatRht": "indicates right",
    "HazLit": "flashes its hazard lights",
    "TurLft": "turns left",
    "TurRht": "turns right",
    "MovRht": "moves to the right",
    "MovLft": "moves to the left",
    "Ovtak": "overtakes",
    "Wait2X": "waits to cross",
    "XingFmLft": "crosses from the left",
    "XingFmRht": "crosses from the right",
    "Xing": "crosses",
    "PushObj": "pushes an object",
}
_ON_FOOT = {
    "MovAway": "walks away",
    "MovTow": "walks closer",
    "Mov": "walks across",
    "HazLit": "flashes lights",
}
"""What is said of pedestrians instead."""
LOCATIONS = {
    "VehLane": "in our lane",
    "OutgoLane": "in the outgoing lane",
    "OutgoCycLane": "in the outgoing cycle lane",
    "OutgoBusLane": "in the outgoing bus lane",
    "IncomLane": "in the oncoming lane",
    "IncomCycLane": "in the oncoming cycle lane",
    "IncomBusLane": "in the oncoming bus lane",
    "Pav": "on the pavement",
    "LftPav": "on the left pavement",
    "RhtPav": "on the right pavement",
    "Jun": "at the junction",
    "xing": "at the crossing",
    "BusStop": "at the bus stop",
    "parking": "in a parking space",
    "RhtParking": "in a parking space on the right",
}
AV_ACTIONS = {
    "AV-Stop": "stands still",
    "AV-Mov": "moves",
    "AV-TurRht": "turns right",
    "AV-TurLft": "turns left",
    "AV-MovRht": "moves to the right",
    "AV-MovLft": "moves to the left",
    "AV-Ovtak": "overtakes",
}
_ALTERNATIVES = (
    frozenset({"Red", "Amber", "Green", "Black"}),
    frozenset({"MovAway", "MovTow", "Mov", "Rev", "Stop"}),
    frozenset({"TurLft", "TurRht"}),
    frozenset({"XingFmLft", "XingFmRht", "Xing", "Wait2X"}),
    frozenset({"LftPav", "RhtPav", "Pav"}),
    frozenset({label for label in LOCATIONS if label.endswith("Lane")}),
    frozenset(AV_ACTIONS),
)
"""Labels of which a thing has one at a time: several of them are what it may be, not all of what it is."""
_VEHICLE, _SOMEBODY, _THERE = "our vehicle", "road user", "is there"
_AN, _A = re.compile(r"[aeiou]", re.IGNORECASE), re.compile(r"(?:uni|use|eu|one\b)", re.IGNORECASE)
_MOST_WORD = 60

Labels = Mapping[str, Iterable[str]]
"""Kind to the labels of it, best first; scores beside them do no harm."""


def describe_event(labels: Labels, begin_s: float | None = None, end_s: float | None = None) -> str:
    """A sentence on what has these labels, with its time where that is known.

    Labels of other vocabularies are taken as they are: an agent as a noun, an action as what is seen of it.

    Args:
        labels: kinds `agent`, `action` and `location`, or `av_action` for the own vehicle; all other kinds are passed over.
        begin_s: when it begins; None where that is not known.
        end_s: when it ends; None for a moment.

    >>> describe_event({"agent": ["Ped"], "location": ["LftPav"], "action": ["MovAway"]}, 3.2, 5.0)
    'A pedestrian on the left pavement walks away, 3.2 to 5.0 s.'
    >>> describe_event({"agent": ["EmVeh"], "action": ["Brake", "IncatLft"]}, 0.25)
    'An emergency vehicle brakes and indicates left, at 0.2 s.'
    """
    own = list(labels.get("av_action", ()))
    if own:
        said = f"{_VEHICLE} {_join_labels({label: _phrase(AV_ACTIONS, label, 'is seen to do') for label in own})}"
        return f"{said[0].upper()}{said[1:]}{_format_time(begin_s, end_s)}."
    agents = list(labels.get("agent", ()))
    nouns = [AGENTS.get(label, _plain(label)) for label in agents] or [_SOMEBODY]
    who = _join([f"{_choose_article(noun)} {noun}" for noun in nouns], "or")
    where = _join_labels({label: _phrase(LOCATIONS, label, "at") for label in labels.get("location", ())})
    on_foot = agents == ["Ped"]
    does = {
        label: _ON_FOOT[label] if on_foot and label in _ON_FOOT else _phrase(ACTIONS, label, "is seen to do")
        for label in labels.get("action", ())
    }
    said = " ".join(part for part in (who, where, _join_labels(does) or _THERE) if part)
    return f"{said[0].upper()}{said[1:]}{_format_time(begin_s, end_s)}."


def _join_labels(phrases: Mapping[str, str]) -> str:
    """The phrases of labels joined by `and`, those that exclude each other by `or`."""
    groups: dict[object, list[str]] = {}
    for label, phrase in phrases.items():
        group = next((k for k, names in enumerate(_ALTERNATIVES) if label in names), label)
        groups.setdefault(group, []).append(phrase)
    return _join([_join(held, "or") for held in groups.values()], "and")


def _phrase(words: Mapping[str, str], label: str, before: str) -> str:
    """The words for a label; for one of another vocabulary its own, in quotes."""
    return words.get(label, f'{before} "{_plain(label)}"')


def _plain(label: str) -> str:
    """A label of another vocabulary as words on one line."""
    text = " ".join(re.sub(r"[^\w\s/().'-]+", " ", label.replace("_", " ")).split())
    return text[:_MOST_WORD].strip() or "unnamed thing"


def _choose_article(noun: str) -> str:
    """`a` or `an`, by the sound that a noun begins with."""
    return "an" if _AN.match(noun) and not _A.match(noun) else "a"


def _join(parts: Sequence[str], last: str) -> str:
    return "" if not parts else parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def _format_time(begin_s: float | None, end_s: float | None) -> str:
    if begin_s is None:
        return ""
    begin = f"{max(0.0, begin_s):.1f}"
    end = begin if end_s is None else f"{max(0.0, end_s):.1f}"
    return f", at {begin} s" if end == begin else f", {begin} to {end} s"


# A stream of events as sentences: a tube has one for each stretch over which its labels stay.


@dataclass(frozen=True)
class Stretch:
    """Labels that something had for a while.

    Args:
        tube: its number; None for the own vehicle.
        begin_s: when they were first reported.
        end_s: when they were last reported.
        labels: kind to labels, best first.
    """

    tube: int | None
    begin_s: float
    end_s: float
    labels: Mapping[str, tuple[str, ...]]

    @property
    def text(self) -> str:
        """The sentence."""
        return describe_event(self.labels, self.begin_s, self.end_s)


def collect_stretches(events: Iterable[Mapping[str, Any]]) -> list[Stretch]:
    """The stretches over which the sentence of a tube, or of the own vehicle, stays the same; by their beginning.

    Args:
        events: in their order, as `online.events.read_events` gives them.
    """
    open_ones: dict[int | None, tuple[float, dict[str, tuple[str, ...]]]] = {}
    found: list[Stretch] = []
    t_s = 0.0
    for event in events:
        t_s = float(event["t_s"])
        if event["event"] == "source":
            continue
        tube = None if event["tube"] is None else int(event["tube"])
        labels = order_labels(event["labels"])
        begun = open_ones.pop(tube, None)
        ended = event["event"] == "end"
        if begun is not None and (ended or describe_event(begun[1]) != describe_event(labels)):
            found.append(Stretch(tube, begun[0], t_s, begun[1]))
            begun = None
        if not ended:
            open_ones[tube] = begun or (t_s, labels)
    found += [Stretch(tube, begin_s, t_s, labels) for tube, (begin_s, labels) in open_ones.items()]
    return sorted(found, key=lambda each: (each.begin_s, -1 if each.tube is None else each.tube))


def order_labels(labels: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[str, ...]]:
    """Kind to labels, best first, of kind to label to score.

    >>> order_labels({"agent": {"Car": 0.4, "Bus": 0.5}})
    {'agent': ('Bus', 'Car')}
    """
    return {
        kind: tuple(sorted(held, key=lambda name: (-held[name], name)))
        for kind, held in labels.items()
        if held
    }
