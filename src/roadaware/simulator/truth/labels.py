"""What each box is and does by the definitions of ROAD, PIE, JAAD and CODA, the words of these, and counts
of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import AGENTS, OBJECTS, Light, Signal
from roadaware.simulator.episode import Episode
from roadaware.simulator.truth import terms
from roadaware.simulator.truth.boxes import Held
from roadaware.simulator.truth.deeds import label_actions
from roadaware.simulator.truth.places import NOWHERE, Places, filter_short_runs
from roadaware.simulator.truth.seen import Seen

_STEADY_S = 0.25


def build_agent_labels(episode: Episode, seen: Seen, held: list[Held]) -> pl.DataFrame:
    """(box, kind, label) of the class of every actor.

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
        parts.append(
            label_rows(rows, "agent", AGENTS.index("TL" if is_relevant_signal(episode, signal) else "OthTL"))
        )
    return concat_labels(parts)


def is_relevant_signal(episode: Episode, signal: Signal) -> bool:
    """Whether a light is for the own vehicle's lane, or one that it will take.

    Args:
        episode: the scene.
        signal: of it.
    """
    route = {*episode.layout.route, *np.unique(episode.ego.lane).tolist()}
    return not signal.for_walkers and bool(route & set(signal.lanes))


def build_road_labels(episode: Episode, seen: Seen, held: list[Held], places: Places) -> pl.DataFrame:
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
        done = label_actions(each.actor, each.view, ground.where, flow, fps)[each.at]
        at, label = np.nonzero(done)
        parts.append(label_rows(each.rows[at], "action", label))
        found = filter_short_runs(places.locations(each.actor, each.view, ground), least)[each.at]
        known = found != NOWHERE
        parts.append(label_rows(each.rows[known], "location", found[known]))
    for signal in episode.signals:
        rows = np.flatnonzero(seen.instance == len(episode.actors) + signal.number)
        shown = [terms.ACTIONS.index(terms.LIGHTS[Light(int(k))]) for k in signal.state[seen.frame[rows]]]
        parts.append(label_rows(rows, "action", np.array(shown, dtype=np.int64)))
    return concat_labels(parts)


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


def concat_labels(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of labels below each other.

    Args:
        parts: any number.
    """
    schema = {"box": pl.Int64, "kind": pl.String, "label": pl.Int64}
    return pl.concat([pl.DataFrame(schema=schema), *parts])


# Counts: how many boxes, tubes and frames each class of a set has.


def count_labels(scenes: Scenes) -> pl.DataFrame:
    """For each label of each kind, in the order of the vocabularies: kind, label, boxes, tubes, frames.

    Boxes have the label themselves; tubes are tracks with such a box, of kinds of whole frames the
    stretches; frames are those that show it.

    Args:
        scenes: any.
    """
    owned = scenes.boxes.select("box", "video", "frame", *_column(scenes, "tube"))
    text = pl.col("kind").cast(pl.String)
    held = scenes.labels.with_columns(text).join(owned, on="box", how="left")
    of_boxes = held.group_by("kind", "label").agg(
        boxes=pl.col("box").n_unique(),
        tubes=pl.col("tube").drop_nulls().n_unique(),
        frames=pl.struct("video", "frame").n_unique(),
    )
    of_frames = scenes.frame_labels.with_columns(text).group_by("kind", "label").agg(frames=pl.len())
    of_tubes = scenes.tube_labels.with_columns(text).group_by("kind", "label").agg(tubes=pl.len())
    of_frames = of_frames.join(of_tubes, on=["kind", "label"], how="left").with_columns(boxes=pl.lit(0))
    counted = pl.concat([of_boxes, of_frames.select(of_boxes.columns)], how="vertical_relaxed")
    words = pl.DataFrame(
        [
            (kind, place, name)
            for kind, labels in scenes.meta.vocabularies.items()
            for place, name in enumerate(labels)
        ],
        schema={"kind": pl.String, "label": pl.Int64, "name": pl.String},
        orient="row",
    )
    present = pl.col("kind").is_in(counted["kind"].unique().implode())
    rows = words.filter(present).join(counted, on=["kind", "label"], how="left", maintain_order="left")
    filled = [pl.col(name).fill_null(0).cast(pl.Int64) for name in ("boxes", "tubes", "frames")]
    return rows.select("kind", pl.col("name").alias("label"), *filled)


def _column(scenes: Scenes, name: str) -> list[pl.Expr]:
    return [pl.col(name) if name in scenes.boxes.columns else pl.lit(None, pl.Int64).alias(name)]
