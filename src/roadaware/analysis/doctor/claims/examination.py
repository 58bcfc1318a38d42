"""All checks of one task's claims together, in the order in which causes hide each other."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from roadaware.analysis.doctor.claims import actions, grounding, relations, sound
from roadaware.analysis.doctor.claims.boxes import beside, examine_boxes
from roadaware.analysis.doctor.claims.names import names
from roadaware.analysis.doctor.diagnosis import Diagnosis, note, wrong
from roadaware.errors import UsageError
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes, TableSet

_Check = Callable[[Predictions, Scenes], list[Diagnosis]]
TASKS = ("actions", "relations", "grounding", "sound")
_NAMED = {"actions": "boxes", "relations": "relations", "grounding": "queries", "sound": "sounds"}
_CALLED = {"boxes": "videos", "relations": "videos", "queries": "sentences", "sounds": "sounds"}
_KEYS = {"queries": "query", "sounds": "sound"}


def examine_claims(
    task: str, predictions: Predictions, scenes: Scenes, *, least_fit: float = 0.0
) -> list[Diagnosis]:
    """Why the numbers of somebody's claims about scenes may be meaningless.

    Args:
        task: one of `TASKS`.
        predictions: as read for the task.
        scenes: the truth.
        least_fit: mean IoU that another reading of the boxes has to reach.

    Raises:
        UsageError: if there is no such task.
    """
    if task not in TASKS:
        raise UsageError(f"no task '{task}'; there are {', '.join(TASKS)}")
    table = _NAMED[task]
    claimed, true = (things_named(table, held, scenes) for held in (predictions, scenes))
    found = names(_CALLED[table], claimed, true)
    found += _refused("truth", scenes) + _refused("claims", predictions) + _odd("claims", predictions)
    found += _odd("truth", scenes)
    if {item.code for item in found} & {"empty_truth", "empty_claims", "names"}:
        return found
    boxed = beside(scenes.boxes, predictions.boxes)
    size = picture_size(scenes)
    fits = examine_boxes(boxed, size, least_fit=least_fit) if task != "sound" else []
    checks: dict[str, tuple[_Check, ...]] = {
        "actions": (lambda claims, _: actions.score_values(claims), actions.label_shift),
        "relations": (
            relations.words,
            relations.own_objects,
            relations.directions,
            relations.durations,
            relations.places_in_time,
        ),
        "grounding": (grounding.spans,),
        "sound": (sound.maps,),
    }
    return found + fits + [item for check in checks[task] for item in check(predictions, scenes)]


def things_named(table: str, held: TableSet, scenes: Scenes) -> list[str]:
    """What the rows of a table speak of: videos, or things that the truth numbers."""
    rows: pl.DataFrame = getattr(held, table)
    if table in _KEYS:
        key = _KEYS[table]
        known = getattr(scenes, table)
        if rows.is_empty() or "name" not in known.columns:
            return [str(n) for n in rows[key].to_list()] if len(rows) else []
        named = dict(known.select(key, "name").iter_rows())
        return [str(named.get(number) or number) for number in rows[key].to_list()]
    return rows["video"].cast(pl.String).unique(maintain_order=True).to_list() if len(rows) else []


def _refused(what: str, held: TableSet) -> list[Diagnosis]:
    """The reasons for which rows were refused, most frequent first."""
    if held.rejected.is_empty():
        return []
    reasons = held.rejected.group_by("reason").len().sort("len", "reason", descending=[True, False])
    total, read = len(held.rejected), sum(held.meta.rows_read.values())
    evidence = "; ".join(f"{n}: {reason}" for reason, n in reasons.head(3).iter_rows())
    says = f"{total:,} rows or files of the {what} were refused."
    kind = wrong if total > 0.2 * max(read, 1) else note
    return kind(f"refused_{what}", says, evidence, "Mend the rows; `--json` lists the reasons.")


def _odd(what: str, held: TableSet) -> list[Diagnosis]:
    """Oddities that were read, but not as they stand."""
    found: list[Diagnosis] = []
    for case in held.meta.notes.get("warnings", []):
        says = f"{case['count']:,} of the {what}: {case['what']}"
        found += note(f"odd_{what}", says, str(case["example"]), "It was read as well as it could be.")
    return found


def picture_size(scenes: Scenes) -> tuple[float, float]:
    """Width and height of the truth's pictures; 1 x 1 where they are not known."""
    if not {"width_px", "height_px"} <= set(scenes.videos.columns) or scenes.videos.is_empty():
        return 1.0, 1.0
    width, height = (scenes.videos[c].drop_nulls().median() for c in ("width_px", "height_px"))
    return (
        float(width) if isinstance(width, int | float) else 1.0,
        float(height) if isinstance(height, int | float) else 1.0,
    )
