"""Map from classes of object detectors to agents, and detection of riders; torch-free."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roadaware.arrays import Floats32

COCO_AGENTS: Mapping[str, str] = {
    "person": "Ped",
    "bicycle": "Cyc",
    "motorcycle": "Mobike",
    "motorbike": "Mobike",
    "car": "Car",
    "bus": "Bus",
    "truck": "LarVeh",
    "traffic light": "TL",
}
"""Names of COCO to agents of ROAD; both spellings that its files have. What is not here is no agent.

A truck is a large vehicle. COCO does not know medium and emergency vehicles,
nor whose traffic light it is.
"""
RIDDEN = ("Cyc", "Mobike")
ROAD_AGENTS = ("Ped", "Car", "Cyc", "Mobike", "MedVeh", "LarVeh", "Bus", "EmVeh", "TL", "OthTL")
_RIDES = 0.3
_INSIDE = 0.2


def merge_riders(boxes: Floats32, scores: Floats32, agents: tuple[str, ...]) -> tuple[Floats32, Floats32]:
    """People on a bicycle or motorbike become one agent with it, as ROAD annotates them.

    A person rides what more than a fifth of the person's box lies in, and the middle of whose lower edge is
    within its width, the one whose centre is nearest. The rider has a box around both and the scores of the
    ridden, its own as a pedestrian at 0. Both original boxes go.

    Args:
        boxes: (n, 4).
        scores: (n, c) of the agents.
        agents: of the columns.

    Returns:
        (m, 4) and (m, c): those that are left in their order, riders in the place of their vehicle. Whoever
        is not ridden stays.
    """
    if "Ped" not in agents or not len(boxes):
        return boxes, scores
    best = scores.argmax(axis=1)
    ped = agents.index("Ped")
    ridden = [agents.index(name) for name in RIDDEN if name in agents]
    people = np.flatnonzero((best == ped) & (scores[:, ped] > _RIDES))
    vehicles = np.flatnonzero(np.isin(best, ridden) & (scores.max(axis=1) > _RIDES))
    boxes, scores, gone = boxes.copy(), scores.copy(), set()
    for person in people[np.argsort(-scores[people, ped], kind="stable")].tolist():
        vehicle = _ridden(boxes, person, [v for v in vehicles.tolist() if v not in gone])
        if vehicle is None:
            continue
        one, other = boxes[person], boxes[vehicle]
        boxes[vehicle] = [*np.minimum(one[:2], other[:2]), *np.maximum(one[2:], other[2:])]
        scores[vehicle, ped] = 0
        gone.add(person)
        vehicles = vehicles[vehicles != vehicle]
    kept = np.array([n for n in range(len(boxes)) if n not in gone], dtype=np.int64)
    return boxes[kept], scores[kept]


def _ridden(boxes: Floats32, person: int, vehicles: list[int]) -> int | None:
    """What somebody rides."""
    x1, y1, x2, y2 = boxes[person].tolist()
    area = max((x2 - x1) * (y2 - y1), 1e-9)
    found = []
    for vehicle in vehicles:
        left, top, right, bottom = boxes[vehicle].tolist()
        shared = max(min(x2, right) - max(x1, left), 0) * max(min(y2, bottom) - max(y1, top), 0)
        if shared / area > _INSIDE and left <= (x1 + x2) / 2 <= right:
            far = abs((x1 + x2) - (left + right)) + abs((y1 + y2) - (top + bottom))
            found.append((far, vehicle))
    return min(found)[1] if found else None
