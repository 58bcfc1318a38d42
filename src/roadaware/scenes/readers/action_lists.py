"""Lists of actions that choose and name those of a set: numbers brought to those of its files, rows kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.ava_labels import LabelMap
from roadaware.scenes.readers.ava_tables import KIND
from roadaware.scenes.tables import Scenes
from roadaware.scenes.vocabularies import ACTIONS_OFFICIAL, canonical

LEFT_ASIDE = "labels of actions that the list of labels does not have, left aside"


def numbered_as_files(listed: LabelMap) -> LabelMap:
    """A list of Chaotic World's actions with the numbers of its csv files, which run from 0 to 49.

    Its own list runs from 1 to 50. A list of some of them alone is taken to run from 0 if 0 is in it, from 1
    if 50 is, and else from where its names fit better, from 1 where that tells nothing.

    Args:
        listed: as its file has it.
    """
    ids = listed.ids
    if 0 in ids:
        return listed
    fits = [_fitting(listed, start) for start in (0, 1)]
    if len(ACTIONS_OFFICIAL) not in ids and fits[0] > fits[1]:
        return listed
    return LabelMap(tuple(number - 1 for number in ids), listed.names)


def chosen(scenes: Scenes, listed: LabelMap) -> Scenes:
    """Scenes with the actions of a list alone, called and ordered as there.

    An action is the listed one of its name or, where no name of the set is listed, of its number. Boxes that
    carry nothing but other actions are left out, as the readers of files do.

    Args:
        scenes: with the vocabulary `action`, and the numbers of its words in `meta.notes["label_ids"]` where
            they are not their places.
        listed: the list; of Chaotic World's actions with its numbers or those of the csv files.

    Raises:
        InputError: if the scenes have no actions, or none that is listed.
    """
    names = scenes.meta.vocabularies.get(KIND)
    if names is None:
        raise InputError("the truth has no actions that a list of labels could name", hint="leave it away")
    own = scenes.meta.notes.get("label_ids", {}).get(KIND, range(len(names)))
    if scenes.meta.dataset == "Chaotic World":
        listed = numbered_as_files(listed)
    places = _places(names, own, listed)
    if not places:
        raise InputError(
            f"no action of the list of labels is one of the truth's {len(names)}",
            hint="compare names and numbers of the list with `roadaware read`",
        )
    meta = replace(
        scenes.meta,
        vocabularies={**scenes.meta.vocabularies, KIND: listed.names},
        notes={**scenes.meta.notes, "label_ids": {KIND: list(listed.ids)}},
    )
    labels = scenes.labels.with_columns(action=pl.col("kind").cast(pl.String) == KIND)
    moved = pl.col("label").replace_strict(places, default=None, return_dtype=pl.Int64)
    labels = labels.with_columns(label=pl.when("action").then(moved).otherwise(pl.col("label")))
    kept = labels.filter(pl.col("label").is_not_null()).drop("action")
    bare = labels.filter(pl.col("label").is_null()).select("box").unique().join(kept, on="box", how="anti")
    lost = len(labels) - len(kept)
    if lost:
        warnings = [*meta.notes.get("warnings", []), {"what": LEFT_ASIDE, "count": lost, "example": ""}]
        meta = replace(meta, notes={**meta.notes, "warnings": warnings})
    boxes = scenes.boxes.join(bare, on="box", how="anti", maintain_order="left")
    return scenes.with_tables(labels=kept, boxes=boxes, meta=meta)


def _fitting(listed: LabelMap, start: int) -> int:
    """How many names are those of their numbers, counted from `start`."""
    official = dict(enumerate(ACTIONS_OFFICIAL, start))
    pairs = zip(listed.ids, listed.names, strict=True)
    return sum(canonical(name, "action") == official.get(number) for number, name in pairs)


def _places(names: Sequence[str], own: Sequence[int], listed: LabelMap) -> dict[int, int]:
    """The place of each of the set's actions in the list, by name if any name is listed, else by number."""
    spelled = {name: place for place, name in enumerate(listed.names)}
    spelled |= {known: p for name, p in spelled.items() if (known := canonical(name, "action")) is not None}
    named = {place: spelled[name] for place, name in enumerate(names) if name in spelled}
    numbers = {number: place for place, number in enumerate(listed.ids)}
    return named or {place: numbers[number] for place, number in enumerate(own) if number in numbers}
