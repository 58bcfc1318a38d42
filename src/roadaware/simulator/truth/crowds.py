"""Ground truth of crowds: actions in the official words, relations, sentences and sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, find_canonical_name, list_label_names
from roadaware.errors import InputError
from roadaware.simulator.actors import Pose
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.truth import terms
from roadaware.simulator.truth.boxes import Held
from roadaware.simulator.truth.labels import concat_labels, label_rows

_PREFIX = "action:"


@dataclass(frozen=True)
class Heard:
    """The `sounds` table, and the vocabulary of its labels."""

    table: pl.DataFrame
    words: tuple[str, ...]


def build_crowd_labels(held: list[Held]) -> pl.DataFrame:
    """(box, kind, label) of what people do: what their pose shows, and what their behaviour names.

    Facts that are called like an official action, such as `holding flag`, are labels too; those that say
    so, such as `action:holding flag`, stand for all that somebody does, whatever else the pose may show.

    Args:
        held: what the actors are.
    """
    parts = []
    shown = np.full(len(Pose), -1, dtype=np.int64)
    for pose, name in terms.CROWD_ACTIONS.items():
        shown[pose] = ACTIONS_OFFICIAL.index(name)
    for each in (one for one in held if one.actor.kind == "Ped"):
        if not any(fact.startswith(_PREFIX) for fact in each.actor.facts):
            label = shown[each.actor.pose[each.at]]
            parts.append(label_rows(each.rows[label >= 0], "action", label[label >= 0]))
        for fact, values in sorted(each.actor.facts.items()):
            word = find_canonical_name(fact.removeprefix(_PREFIX), "action")
            if word in ACTIONS_OFFICIAL:
                on = values[each.at] != 0
                parts.append(label_rows(each.rows[on], "action", ACTIONS_OFFICIAL.index(word)))
    return concat_labels(parts).unique(maintain_order=True)


def build_relations_table(episode: Episode, tubes: pl.DataFrame, number: dict[int, int]) -> pl.DataFrame:
    """The `relations` table: bonds as far as both tracks last.

    Args:
        episode: the scene.
        tubes: its tracks.
        number: of an actor to that of its tube.

    Raises:
        InputError: if a bond is called as no interaction of the vocabulary is.
    """
    words = list_label_names("interaction")
    spans = _spans(tubes)
    rows: list[tuple[Any, ...]] = []
    for bond in episode.bonds:
        predicate = find_canonical_name(bond.predicate, "interaction")
        if predicate is None:
            raise InputError(f"no interaction is called '{bond.predicate}'; there are {', '.join(words)}")
        subject, other = number.get(bond.subject), number.get(bond.object)
        if subject is None or other is None:
            continue
        start = max(bond.start, spans[subject][0], spans[other][0])
        end = min(bond.end, spans[subject][1], spans[other][1])
        if start < end:
            rows.append((len(rows), episode.name, subject, other, words.index(predicate), start, end))
    names = ("relation", "video", "subject", "object", "predicate", "start_frame", "end_frame")
    schema: dict[str, Any] = {name: pl.String if name == "video" else pl.Int64 for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def build_queries_table(episode: Episode, tubes: pl.DataFrame, number: dict[int, int]) -> pl.DataFrame:
    """The `queries` table: sentences about people who are seen, as far as their track lasts.

    Args:
        episode: the scene.
        tubes: its tracks.
        number: of an actor to that of its tube.
    """
    spans = _spans(tubes)
    rows: list[tuple[Any, ...]] = []
    for each in episode.sentences:
        tube = number.get(each.actor)
        if tube is None:
            continue
        start, end = max(each.start, spans[tube][0]), min(each.end, spans[tube][1])
        if start < end:
            name = f"{episode.name}-{len(rows):03d}"
            whole = (0, episode.n_frames)
            rows.append((len(rows), episode.name, name, each.text, each.kind, *whole, tube, start, end))
    schema: dict[str, Any] = {
        "query": pl.Int64,
        "video": pl.String,
        "name": pl.String,
        "text": pl.String,
        "sentence_kind": pl.String,
        "segment_start_frame": pl.Int64,
        "segment_end_frame": pl.Int64,
        "tube": pl.Int64,
        "start_frame": pl.Int64,
        "end_frame": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def build_sounds_table(episode: Episode, boxes: pl.DataFrame, number: dict[int, int]) -> Heard:
    """The `sounds` table: every noise, with the first frame that shows who makes it.

    Args:
        episode: the scene.
        boxes: of it.
        number: of an actor to that of its tube.
    """
    if not episode.noises:
        return Heard(pl.DataFrame(schema=_SOUNDS), ())
    named = [_map_sound_label(noise.label) for noise in episode.noises]
    words = (*list_label_names("sound"), *sorted(set(named) - set(list_label_names("sound"))))
    rows = []
    for k, (noise, name) in enumerate(zip(episode.noises, named, strict=True)):
        shown = _heard(episode, noise, boxes, number)["frame"].min()
        rows.append(
            (k, episode.name, name, shown, noise.start_s, noise.end_s, noise.level, words.index(name))
        )
    return Heard(pl.DataFrame(rows, schema=_SOUNDS, orient="row"), words)


_SOUNDS: dict[str, Any] = {
    "sound": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "frame": pl.Int64,
    "t_s": pl.Float32,
    "end_s": pl.Float32,
    "level": pl.Float32,
    "label": pl.Int64,
}


def match_box_sounds(episode: Episode, boxes: pl.DataFrame, number: dict[int, int]) -> pl.Series:
    """(m,) the sound that each box makes, null for none; of several the first.

    Args:
        episode: the scene.
        boxes: of it.
        number: of an actor to that of its tube.
    """
    found: list[int | None] = [None] * len(boxes)
    for k, noise in enumerate(episode.noises):
        for row in _heard(episode, noise, boxes, number)["box"].to_list():
            found[row] = k if found[row] is None else found[row]
    return pl.Series("sound", found, dtype=pl.Int64)


def _heard(episode: Episode, noise: Noise, boxes: pl.DataFrame, number: dict[int, int]) -> pl.DataFrame:
    """The boxes of whoever makes a noise, while it lasts."""
    fps = episode.config.camera.fps
    tube = None if noise.actor is None else number.get(noise.actor)
    if tube is None:
        return boxes.clear()
    first, last = int(np.floor(noise.start_s * fps)), int(np.ceil(noise.end_s * fps))
    return boxes.filter(pl.col("tube") == tube, pl.col("frame").is_between(first, last, closed="left"))


def _map_sound_label(label: str) -> str:
    """The official word for a sound; its own where there is none."""
    return find_canonical_name(label, "sound") or terms.SOUND_WORDS.get(label, label)


def _spans(tubes: pl.DataFrame) -> dict[int, tuple[int, int]]:
    return {
        tube: (start, end) for tube, start, end in tubes.select("tube", "start_frame", "end_frame").rows()
    }
