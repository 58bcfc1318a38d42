"""Labels: what each box is, what it does and where it is, by the definitions of ROAD and CODA."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.scenes.simulator.actors import AGENTS, OBJECTS, Light, Signal
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.truth import terms
from roadaware.scenes.simulator.truth.boxes import Held
from roadaware.scenes.simulator.truth.deeds import deeds
from roadaware.scenes.simulator.truth.places import NOWHERE, Places
from roadaware.scenes.simulator.truth.seen import Seen
from roadaware.scenes.simulator.truth.views import steady

_STEADY_S = 0.25


def agent_labels(episode: Episode, seen: Seen, held: list[Held]) -> pl.DataFrame:
    """(box, kind, label) of what everybody is.

    Args:
        episode: the scene.
        seen: rows with a box.
        held: what the actors are.
    """
    parts = [
        label_rows(each.rows, "agent", AGENTS.index(each.actor.kind))
        for each in held
        if each.actor.kind in AGENTS
    ]
    for each in held:
        if each.actor.kind in OBJECTS:
            above = terms.CORNER_SUPER.index(OBJECTS[each.actor.kind])
            parts.append(label_rows(each.rows, "corner", terms.CORNER.index(each.actor.kind)))
            parts.append(label_rows(each.rows, "corner_super", above))
    for signal in episode.signals:
        rows = np.flatnonzero(seen.instance == len(episode.actors) + signal.number)
        parts.append(label_rows(rows, "agent", AGENTS.index("TL" if governs(episode, signal) else "OthTL")))
    return together(parts)


def governs(episode: Episode, signal: Signal) -> bool:
    """Whether a light is for the own vehicle's lane, or one that it will take.

    Args:
        episode: the scene.
        signal: of it.
    """
    route = {*episode.layout.route, *np.unique(episode.ego.lane).tolist()}
    return not signal.for_walkers and bool(route & set(signal.lanes))


def road_labels(episode: Episode, seen: Seen, held: list[Held], places: Places) -> pl.DataFrame:
    """(box, kind, label) of ROAD's actions and locations.

    Args:
        episode: the scene.
        seen: rows with a box.
        held: what the actors are.
        places: of the scene.
    """
    fps = episode.config.camera.fps
    least = max(1, round(_STEADY_S * fps))
    parts = []
    for each in held:
        if each.actor.kind not in AGENTS:
            continue
        ground = places.ground(each.actor)
        flow = places.flow(each.view, ground)
        done = deeds(each.actor, each.view, ground.where, flow, fps)[each.at]
        at, label = np.nonzero(done)
        parts.append(label_rows(each.rows[at], "action", label))
        found = steady(places.locations(each.actor, each.view, ground), least)[each.at]
        known = found != NOWHERE
        parts.append(label_rows(each.rows[known], "location", found[known]))
    for signal in episode.signals:
        rows = np.flatnonzero(seen.instance == len(episode.actors) + signal.number)
        shown = [terms.ACTIONS.index(terms.LIGHTS[Light(int(k))]) for k in signal.state[seen.frame[rows]]]
        parts.append(label_rows(rows, "action", np.array(shown, dtype=np.int64)))
    return together(parts)


def label_rows(box: Ints, kind: str, label: npt.ArrayLike) -> pl.DataFrame:
    """(box, kind, label) of boxes with a label of one kind.

    Args:
        box: (n,) numbers.
        kind: of the labels.
        label: (n,) index in the vocabulary, or one for all.
    """
    labels = np.broadcast_to(np.asarray(label, dtype=np.int64), box.shape)
    kinds = pl.Series([kind], dtype=pl.String).new_from_index(0, len(box))
    return pl.DataFrame({"box": box.astype(np.int64), "kind": kinds, "label": labels})


def together(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of labels below each other.

    Args:
        parts: any number.
    """
    schema = {"box": pl.Int64, "kind": pl.String, "label": pl.Int64}
    return pl.concat([pl.DataFrame(schema=schema), *parts])
