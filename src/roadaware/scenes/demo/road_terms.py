"""The labels of the demo's road events: the names of ROAD, and which parts a composite label is made of."""

from __future__ import annotations

from collections.abc import Sequence

KINDS = ("agent", "action", "location", "duplex", "event")
NATIVE_KINDS = {
    "agentness": "agent_ness",
    "agent": "agent",
    "action": "action",
    "location": "loc",
    "duplex": "duplex",
    "event": "triplet",
    "av_action": "av_action",
}
COMPOSITES = {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}
NEVER_SEEN = {
    "agent": ("SmalVeh",),
    "action": ("Rev", "MovRht", "MovLft", "Black"),
    "location": ("OutgoBusLane", "IncomBusLane", "RhtParking"),
}
"""Labels that annotators could choose and that are not used: a box of one of them has no used label."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


AGENTNESS = ("agent_ness",)
AGENTS = ("Ped", "Car", "Cyc", "Mobike", "MedVeh", "LarVeh", "Bus", "EmVeh", "TL", "OthTL")
ACTIONS = _words(
    "Red Amber Green MovAway MovTow Mov Brake Stop IncatLft IncatRht HazLit TurLft TurRht Ovtak Wait2X "
    "XingFmLft XingFmRht Xing PushObj"
)
LOCATIONS = _words(
    "VehLane OutgoLane OutgoCycLane IncomLane IncomCycLane Pav LftPav RhtPav Jun xing BusStop parking"
)
DUPLEXES = _words(
    "Bus-MovAway Bus-MovTow Bus-Stop Bus-XingFmLft Car-Brake Car-IncatLft Car-IncatRht Car-MovAway "
    "Car-MovTow Car-Stop Car-TurLft Car-TurRht Car-XingFmLft Car-XingFmRht Cyc-MovAway Cyc-MovTow "
    "Cyc-Stop Cyc-TurLft Cyc-XingFmLft Cyc-XingFmRht LarVeh-Stop MedVeh-IncatLft MedVeh-MovTow "
    "MedVeh-Stop MedVeh-TurRht OthTL-Green OthTL-Red Ped-Mov Ped-MovAway Ped-MovTow Ped-PushObj "
    "Ped-Stop Ped-Wait2X Ped-Xing Ped-XingFmLft Ped-XingFmRht TL-Amber TL-Green TL-Red"
)
EVENTS = _words(
    "Bus-MovTow-IncomLane Bus-MovTow-Jun Bus-Stop-IncomLane Bus-Stop-VehLane Bus-XingFmLft-Jun Car-Brake-Jun "
    "Car-Brake-VehLane Car-IncatLft-Jun Car-IncatLft-VehLane Car-IncatRht-IncomLane Car-IncatRht-Jun "
    "Car-MovAway-Jun Car-MovAway-OutgoLane Car-MovAway-VehLane Car-MovTow-IncomLane Car-MovTow-Jun "
    "Car-Stop-IncomLane Car-Stop-Jun Car-Stop-VehLane Car-TurLft-Jun Car-TurLft-VehLane Car-TurRht-IncomLane "
    "Car-TurRht-Jun Car-XingFmLft-Jun Cyc-MovAway-Jun Cyc-MovAway-LftPav Cyc-MovAway-OutgoCycLane "
    "Cyc-MovAway-OutgoLane Cyc-MovAway-VehLane Cyc-MovTow-IncomCycLane Cyc-MovTow-IncomLane Cyc-MovTow-Jun "
    "Cyc-MovTow-LftPav Cyc-Stop-IncomCycLane Cyc-Stop-IncomLane Cyc-Stop-Jun Cyc-TurLft-Jun "
    "Cyc-XingFmLft-Jun MedVeh-MovTow-IncomLane MedVeh-MovTow-Jun MedVeh-Stop-IncomLane MedVeh-Stop-Jun "
    "MedVeh-TurRht-Jun Ped-Mov-Pav Ped-MovAway-LftPav Ped-MovAway-Pav Ped-MovAway-RhtPav "
    "Ped-MovTow-IncomLane Ped-MovTow-LftPav Ped-MovTow-RhtPav Ped-MovTow-VehLane Ped-PushObj-LftPav "
    "Ped-PushObj-RhtPav Ped-Stop-BusStop Ped-Stop-LftPav Ped-Stop-Pav Ped-Stop-RhtPav Ped-Stop-VehLane "
    "Ped-Wait2X-LftPav Ped-Wait2X-RhtPav Ped-XingFmLft-IncomLane Ped-XingFmLft-Jun Ped-XingFmLft-VehLane "
    "Ped-XingFmLft-xing Ped-XingFmRht-IncomLane Ped-XingFmRht-Jun Ped-XingFmRht-RhtPav "
    "Ped-XingFmRht-VehLane"
)
AV_ACTIONS = _words("AV-Stop AV-Mov AV-TurRht AV-TurLft AV-MovRht AV-MovLft AV-Ovtak")

VOCABULARIES = {
    "agentness": AGENTNESS,
    "agent": AGENTS,
    "action": ACTIONS,
    "location": LOCATIONS,
    "duplex": DUPLEXES,
    "event": EVENTS,
    "av_action": AV_ACTIONS,
}


def children(kind: str) -> list[list[int]]:
    """For each label of a composite kind, in order, the indices of its parts in their vocabularies.

    >>> children("event")[0]  # Bus-MovTow-IncomLane
    [6, 4, 3]
    """
    parts = [VOCABULARIES[part] for part in COMPOSITES[kind]]
    return [_indices(name, parts) for name in VOCABULARIES[kind]]


def _indices(name: str, parts: Sequence[Sequence[str]]) -> list[int]:
    return [part.index(word) for part, word in zip(parts, name.split("-"), strict=True)]
