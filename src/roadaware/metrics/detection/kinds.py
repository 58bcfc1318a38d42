"""Which kinds of labels are judged: all that truth and claims both know, whether of boxes or of tubes."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from roadaware.metrics.detection.tube_rows import AGENTNESS, OF_FRAMES, paths
from roadaware.scenes.dense import layout
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes, TableSet

_LINKED = "linker"


def box_kinds(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """The kinds of boxes that both know, agentness first, then in the order of the truth's vocabularies.

    Claims know the kinds of their dense scores and of their labels, and agentness where `boxes.score` is
    one (see `agentness_is_scored`); where there is no box, those that they have vocabularies of. Where
    nothing tells what would be claimed, all kinds of the truth are judged, which were missed.
    """
    claimed = _claimed_of_boxes(predictions)
    return _in_order(_true_of_boxes(scenes) if claimed is None else claimed, scenes)


def tube_kinds(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """The kinds of tubes that both know, in the same order.

    Claims know the kinds of their tubes' labels, those of the dense scores that they were linked from, and
    agentness where there are paths: tubes without parent and kind. Truth knows agentness where its boxes
    belong to tubes. Where there is no tube, what holds of boxes holds of tubes.
    """
    claimed = _claimed_of_tubes(predictions)
    if claimed is None:
        claimed = _true_of_tubes(scenes)
    return _in_order(claimed if _tracked(scenes) else claimed - {AGENTNESS}, scenes)


def agentness_is_scored(predictions: Predictions) -> bool:
    """Whether `boxes.score` says how sure it is that there is something, whatever it is.

    It is the score of a label where boxes have labels and no vocabulary names agentness, as in COCO results,
    and where boxes belong to tubes that have a kind themselves, as in files of tubes.
    """
    return not (_scores_labels(predictions) or _of_kinds(predictions))


def is_linked(predictions: Predictions) -> bool:
    """Whether there are tubes, or the linker found none."""
    return not predictions.tubes.is_empty() or _from_linker(predictions)


def is_silent(predictions: Predictions) -> bool:
    """Whether nothing is claimed at all, which is wrong everywhere."""
    return predictions.boxes.is_empty() and predictions.tubes.is_empty() and predictions.frames.is_empty()


def box_notes(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """Which kinds of boxes only one side knows, in words."""
    return _one_sided("boxes", box_kinds(predictions, scenes), _true_of_boxes(scenes), predictions, scenes)


def tube_notes(predictions: Predictions, scenes: Scenes) -> tuple[str, ...]:
    """Which kinds of tubes only one side knows, in words."""
    return _one_sided("tubes", tube_kinds(predictions, scenes), _true_of_tubes(scenes), predictions, scenes)


def _claimed_of_boxes(predictions: Predictions) -> set[str] | None:
    """The kinds that boxes are claimed for; None where nothing tells."""
    boxes, vocabularies = predictions.boxes, set(predictions.meta.vocabularies)
    dense = set(layout(predictions.meta, "boxes").kinds)
    if boxes.is_empty():
        found = dense | vocabularies | ({AGENTNESS} if dense else set())
        return found or None
    found = (dense if "scores" in boxes.columns else set()) | _labelled(predictions.labels)
    if "score" in boxes.columns and agentness_is_scored(predictions):
        found.add(AGENTNESS)
    return found


def _claimed_of_tubes(predictions: Predictions) -> set[str] | None:
    """The kinds that tubes are claimed for; None where nothing tells."""
    if not is_linked(predictions):
        return _claimed_of_boxes(predictions)
    found = _labelled(predictions.tube_labels)
    if _from_linker(predictions):
        found |= {AGENTNESS, *layout(predictions.meta, "boxes").kinds}
    if not paths(predictions).is_empty():
        found.add(AGENTNESS)
    return found - {AGENTNESS} if _scores_labels(predictions) else found


def _true_of_boxes(scenes: Scenes) -> set[str]:
    return _labelled(scenes.labels) | (set() if scenes.boxes.is_empty() else {AGENTNESS})


def _true_of_tubes(scenes: Scenes) -> set[str]:
    return _labelled(scenes.tube_labels) | ({AGENTNESS} if _tracked(scenes) else set())


def _tracked(scenes: Scenes) -> bool:
    """Whether any true box belongs to a tube."""
    return "tube" in scenes.boxes.columns and scenes.boxes["tube"].null_count() < len(scenes.boxes)


def _labelled(labels: pl.DataFrame) -> set[str]:
    """The kinds that labels are of."""
    return set(labels["kind"].cast(pl.String).unique().to_list())


def _scores_labels(predictions: Predictions) -> bool:
    """Whether boxes have labels, and nothing names agentness."""
    return AGENTNESS not in predictions.meta.vocabularies and not predictions.labels.is_empty()


def _of_kinds(predictions: Predictions) -> bool:
    """Whether boxes belong to tubes that have a kind themselves, and no parent."""
    tubes = predictions.tubes
    if "kind" not in tubes.columns or "tube" not in predictions.boxes.columns:
        return False
    owners = tubes.filter(pl.col("kind").is_not_null() & pl.col("kind").cast(pl.String).ne(OF_FRAMES))
    if "parent" in tubes.columns:
        owners = owners.filter(pl.col("parent").is_null())
    return bool(predictions.boxes["tube"].is_in(owners["tube"].implode()).any())


def _from_linker(predictions: Predictions) -> bool:
    return _LINKED in predictions.meta.notes and "tube" in predictions.boxes.columns


def _in_order(kinds: Iterable[str], scenes: Scenes) -> tuple[str, ...]:
    """Of some kinds those that the truth knows, agentness first."""
    known = [kind for kind in scenes.meta.vocabularies if kind not in (AGENTNESS, OF_FRAMES)]
    return tuple(kind for kind in (AGENTNESS, *known) if kind in set(kinds))


def _one_sided(
    what: str, judged: tuple[str, ...], true: set[str], claims: TableSet, scenes: Scenes
) -> tuple[str, ...]:
    missing = [kind for kind in _in_order(true, scenes) if kind not in judged]
    known = {*scenes.meta.vocabularies, AGENTNESS, OF_FRAMES}
    held = claims.tube_labels if what == "tubes" else claims.labels
    dense = set() if what == "tubes" else set(layout(claims.meta, "boxes").kinds)
    strange = sorted((_labelled(held) | dense) - known)
    said = []
    if missing:
        said.append(f"{what} are not judged for {', '.join(missing)}: nothing is claimed of that")
    if strange:
        said.append(f"{what} are not judged for {', '.join(strange)}: the truth has no such labels")
    return tuple(said)
