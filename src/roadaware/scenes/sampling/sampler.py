"""Scenes with samples: every split's pedestrians cut by a protocol, in the published order of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.scenes.positions import Positions, positions
from roadaware.scenes.sampling.configs import EventProtocol, Iv2024
from roadaware.scenes.sampling.cutting import Cuts, before_critical_point, before_event
from roadaware.scenes.sampling.labels import crossing_observed, labels, vocabulary
from roadaware.scenes.sampling.tracks import SOURCES, Tracks, assumed_boxes, event_positions, tracks
from roadaware.scenes.tables import Scenes


def sample(scenes: Scenes, protocol: EventProtocol) -> Scenes:
    """The same scenes with their `samples` cut by the protocol.

    Labels of a kind that is called like the task are left out: a kind has one vocabulary.

    Splits follow each other as the protocol lists them; inside a split, pedestrians come by video and
    name, each with its samples from early to late. `meta.vocabularies` gains the task's answers,
    `meta.notes` the protocol and, under `sampling`, per split what was used and what was left out.

    Args:
        scenes: videos with splits, tubes with names, and boxes; intention also works without boxes, on
            the assumption that tracks have no gaps.
        protocol: how to cut.

    Raises:
        UsageError: if the scenes are of another dataset.
        InputError: if what the task needs is absent from the tables, a split of the protocol holds no video,
            or nothing can be sampled. Where some splits will do, ask for these alone:
            `dataclasses.replace(protocol, splits=("test",))`.

    Source: the protocol's class.
    """
    _check(scenes, protocol)
    scenes = _freed(scenes, protocol)
    index, assumed = _boxes(scenes, protocol)
    parts, notes = [], {}
    for split in protocol.splits:
        part = _split(scenes, protocol, split, index)
        parts.append(part.rows)
        notes[split] = part.notes
    rows = pl.concat(parts)
    if rows.is_empty():
        told = "; ".join(f"{split}: {left_out(lost)}" for split, lost in notes.items())
        raise InputError(f"no pedestrian can be sampled by {type(protocol).__name__}: {told}")
    rows = rows.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("sample"), pl.all())
    extra: dict[str, Any] = {"protocol": to_dict(protocol), "sampling": notes}
    if assumed:
        extra["assumption"] = "tracks have no gaps: there are no boxes to tell"
    if _drops_crossing(protocol) and "cross" not in scenes.boxes.columns:
        extra["unchecked"] = "boxes have no crossing tags: samples that show a crossing cannot be told"
    meta = replace(
        scenes.meta,
        vocabularies={**scenes.meta.vocabularies, protocol.task: vocabulary(protocol)},
        notes={**scenes.meta.notes, **extra},
    )
    return scenes.with_tables(samples=rows, meta=meta)


def left_out(notes: Mapping[str, int]) -> str:
    """What became of a split's pedestrians, in words; `notes` as under `meta.notes["sampling"]`."""
    lost = [f"{count} {reason.replace('_', ' ')}" for reason, count in notes.items() if count]
    return ", ".join(lost) or "no pedestrians"


@dataclass(frozen=True)
class _Part:
    """One split's rows, and what was used and left out."""

    rows: pl.DataFrame
    notes: dict[str, Any]


def _check(scenes: Scenes, protocol: EventProtocol) -> None:
    named = scenes.meta.dataset
    # Made-up scenes are not of any of the published datasets, and say whose rules they are fit for.
    if named and protocol.dataset not in (named.lower(), *scenes.meta.notes.get("sampled_as", ())):
        raise UsageError(f"the protocol is for {protocol.dataset} alone, and these scenes are '{named}'")
    needed = {"action": ["crossing"], "risk": ["crossing"]}.get(protocol.task, ["crossing", "intention_prob"])
    missing = [c for c in needed if c not in scenes.tubes.columns]
    if missing:
        raise InputError(f"{protocol.task} needs the tubes' {missing}; they have {scenes.tubes.columns}")


def _freed(scenes: Scenes, protocol: EventProtocol) -> Scenes:
    """The scenes without labels and derived tubes of the kind that the task's answers take."""
    task = protocol.task
    if scenes.meta.vocabularies.get(task, vocabulary(protocol)) == vocabulary(protocol):
        return scenes
    other = pl.col("kind").cast(pl.String).ne_missing(task)
    tubes = scenes.tubes.filter(other) if "kind" in scenes.tubes.columns else scenes.tubes
    kept = {kind: words for kind, words in scenes.meta.vocabularies.items() if kind != task}
    return scenes.with_tables(
        labels=scenes.labels.filter(other),
        tubes=tubes,
        tube_labels=scenes.tube_labels.filter(other),
        frame_labels=scenes.frame_labels.filter(other),
        meta=replace(scenes.meta, vocabularies=kept),
    )


def _drops_crossing(protocol: EventProtocol) -> bool:
    """Whether samples that show a crossing are left out; intention does not ask about it."""
    return protocol.crossing_observed == "drop" and protocol.task != "intention"


def _boxes(scenes: Scenes, protocol: EventProtocol) -> tuple[Positions, bool]:
    """Positions of the boxes, and whether they are assumed."""
    if not scenes.boxes.is_empty():
        return positions(scenes.boxes), False
    if protocol.task != "intention":
        raise InputError(
            f"{protocol.task} needs boxes, and these scenes have none",
            hint="attributes alone carry intention only; read the box annotations too",
        )
    return assumed_boxes(scenes.tubes), True


def _split(scenes: Scenes, protocol: EventProtocol, split: str, index: Positions) -> _Part:
    held = tracks(scenes, protocol, split, index)
    event = event_positions(held, protocol)
    if protocol.task == "intention" and isinstance(protocol, Iv2024):
        cuts = before_critical_point(held, event, protocol)
    else:
        cuts = before_event(held, event, protocol)
    if _drops_crossing(protocol):
        seen = crossing_observed(scenes, held, cuts, protocol.observation_frames)
        cuts = cuts.only(~seen, "samples_crossing_observed")
    rows = _rows(held, cuts, protocol, labels(scenes, held, cuts, protocol), split)
    used = len(np.unique(cuts.track))
    counts = {"pedestrians": len(held) + held.unlabelled, "sampled": used, "samples": len(rows)}
    return _Part(rows, {**counts, "pedestrians_without_label": held.unlabelled, **cuts.lost})


def _rows(
    held: Tracks, cuts: Cuts, protocol: EventProtocol, answers: np.ndarray[Any, Any], split: str
) -> pl.DataFrame:
    """The samples table of one split, without its key."""
    begin, length = held.begin[cuts.track], held.length[cuts.track]
    last = np.minimum(cuts.start + protocol.observation_frames, length) - 1
    known = cuts.event >= 0
    event = held.index.frame[begin + np.maximum(cuts.event, 0)] if len(begin) else begin
    owner = held.frame[cuts.track]
    source = owner["event_source"] if "event_source" in owner.columns else pl.Series(["none"] * len(owner))
    return pl.DataFrame(
        {
            "video": owner["video"],
            "tube": owner["tube"],
            "start_frame": held.index.frame[begin + cuts.start] if len(begin) else begin,
            "end_frame": held.index.frame[begin + last] + 1 if len(begin) else begin,
            "event_frame": pl.Series(event, dtype=pl.Int64).set(pl.Series(~known), None),
            "event_source": source.cast(pl.String).cast(pl.Enum(SOURCES)),
            "tte_frames": pl.Series(cuts.tte, dtype=pl.Int64).set(pl.Series(~known), None),
            "kind": pl.repeat(protocol.task, len(owner), dtype=pl.String, eager=True),
            "label": pl.Series(answers, dtype=pl.Int64),
            "split": pl.repeat(split, len(owner), dtype=pl.String, eager=True),
        }
    )


def split_samples(scenes: Scenes, split: str) -> Scenes:
    """The scenes with the samples of one split only.

    Raises:
        UsageError: if the samples were not cut for such a split.
        InputError: if none could be cut from it.
    """
    if "split" not in scenes.samples.columns:
        raise UsageError("these scenes have no samples; cut them by a protocol first (scenes.sampling)")
    held = scenes.samples.filter(pl.col("split").cast(pl.String) == split)
    if held.is_empty():
        lost = scenes.meta.notes.get("sampling", {}).get(split)
        if lost is not None:
            raise InputError(
                f"no pedestrian of split '{split}' can be sampled: {left_out(lost)}",
                hint="`roadaware audit` shows every split; the annotations of its videos may be incomplete",
            )
        known = scenes.samples["split"].cast(pl.String).unique().sort().to_list()
        raise UsageError(f"no sample is in split '{split}'; there are samples in {known}")
    return scenes.with_tables(samples=held)
