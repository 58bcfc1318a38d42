"""Tracks: the tubes that own boxes, with what PIE and JAAD tell of pedestrians."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Ints
from roadaware.scenes.simulator.actors import OBJECTS, VEHICLES, Actor, Mind
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.truth import terms
from roadaware.scenes.simulator.truth.places import Way

_SCHEMA: dict[str, Any] = {
    "tube": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "instance": pl.Int64,
    "track_label": pl.Enum(terms.TRACK_LABEL),
    "model": pl.String,
    "crossing": pl.Enum(terms.CROSSING),
    "event_frame": pl.Int64,
    "event_source": pl.Enum(terms.EVENT_SOURCE),
    "crossing_point": pl.Int64,
    "exp_start_point": pl.Int64,
    "critical_point": pl.Int64,
    "intention_prob": pl.Float32,
    "wants": pl.Boolean,
    "age": pl.Enum(terms.AGES),
    "signalized": pl.Enum(terms.SIGNALIZED),
    "num_lanes": pl.Int64,
    "traffic_direction": pl.Enum(("OW", "TW")),
}
_SIGNALIZED = {"no signal": "n/a", "none": "n/a", "n/a": "n/a", "zebra crossing": "C", "zebra": "C", "C": "C"}
_SIGNALIZED |= {"signal": "CS", "signalled": "CS", "S": "S", "CS": "CS"}


def tracks(episode: Episode, instance: Ints, frame: Ints, way: Way) -> pl.DataFrame:
    """One tube for everybody who has a box, in the order of their numbers.

    Args:
        episode: the scene.
        instance: (n,) whose boxes there are; signals follow the actors.
        frame: (n,) when, ascending for each instance.
        way: the own vehicle's lanes.
    """
    rows = []
    for tube, number in enumerate(np.unique(instance).tolist()):
        held = frame[instance == number]
        row = {
            "tube": tube,
            "video": episode.name,
            "start_frame": int(held[0]),
            "end_frame": int(held[-1]) + 1,
            "instance": number + 1,
        }
        if number < len(episode.actors):
            row |= _of_actor(episode, episode.actors[number], held, way)
        else:
            signal = episode.signals[number - len(episode.actors)]
            row |= {"name": f"light-{signal.number:03d}", "track_label": "traffic_light"}
        rows.append(row)
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _of_actor(episode: Episode, actor: Actor, held: Ints, way: Way) -> dict[str, Any]:
    kind = actor.kind.lower()
    row: dict[str, Any] = {"name": f"{kind}-{actor.number:04d}", "model": actor.model}
    if actor.kind in OBJECTS:
        return row | {"track_label": "object"}
    if actor.kind in VEHICLES:
        return row | {"track_label": "vehicle"}
    row["track_label"] = "pedestrian"
    if actor.mind is None:
        return row
    # As in JAAD, those whose behaviour is known have names that end with b.
    row["name"] += "b"
    lane = int(way.lane[held[0]])
    road = episode.layout.roads[episode.layout.lanes[lane].road] if lane >= 0 else None
    kinds = [episode.layout.lanes[k] for k in road.lanes] if road is not None else []
    driven = [each for each in kinds if each.kind in ("vehicle", "bus")]
    ways = {each.forward for each in driven}
    known = {
        "num_lanes": len(driven) or None,
        "traffic_direction": None if not ways else "TW" if len(ways) == 2 else "OW",
    }
    return row | known | _told(actor.mind, held)


def _told(mind: Mind, held: Ints) -> dict[str, Any]:
    """What is known of a pedestrian with boxes in some frames.

    The event is the frame of the first step on the road. A crosser whose first step has no box gets the third
    box from the end, as the published readers do, and `event_source` says that it is made up.
    """
    stepped = mind.crossing is not None and bool((held == mind.crossing).any())
    late = int(held[-3] if len(held) > 3 else held[-1])
    event = (mind.crossing if stepped else late) if mind.crosses else None
    # Whoever crosses where the own vehicle does not come by.
    other = "not-crossing" if mind.crossing is None else "irrelevant"
    asked = held[(held >= mind.start) & (held <= mind.critical)]
    return {
        "crossing": "crossing" if mind.crosses else other,
        "event_frame": event,
        "event_source": "annotated" if mind.crosses and stepped else "fallback" if mind.crosses else "none",
        "crossing_point": mind.crossing if mind.crosses else None,
        "exp_start_point": int(asked[0]) if len(asked) else None,
        "critical_point": int(asked[-1]) if len(asked) else None,
        "intention_prob": mind.intention_prob,
        "wants": mind.wants,
        "age": mind.age,
        "signalized": _SIGNALIZED.get(mind.signalized, "n/a"),
    }
