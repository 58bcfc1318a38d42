"""One small set of rows for each field of ActionConfig, in which that field alone changes the number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plain_actions import IDS, Row

WALK, TALK, WAVE = IDS[1], IDS[0], IDS[3]
A, B, FAR = (0.1, 0.1, 0.5, 0.5), (0.1, 0.2, 0.5, 0.6), (0.6, 0.6, 0.9, 0.9)
"""A and B overlap by 0.6, FAR lies elsewhere."""


@dataclass(frozen=True)
class Case:
    """What is true and predicted, and which frames are excluded, or annotated without truth.

    Args:
        truth: the true rows.
        predictions: the predicted rows.
        excluded: frames.
        bare: frames.
    """

    truth: Sequence[Row]
    predictions: Sequence[Row]
    excluded: Sequence[tuple[str, int]] = ()
    bare: Sequence[tuple[str, int]] = ()


def at(frame: int, box: tuple[float, ...], score: float | None = None, label: int = WALK) -> Row:
    return Row("v", frame, *box, label, score)


CASES: dict[str, Case] = {
    "min_iou": Case([at(1, (0.0, 0.0, 1.0, 1.0))], [at(1, (0.0, 0.0, 1.0, 0.5), 0.9)]),
    "ap": Case([at(1, A), at(2, A)], [at(1, FAR, 0.9), at(1, A, 0.8), at(2, A, 0.7)]),
    "match": Case([at(1, A), at(1, B)], [at(1, A, 0.9), at(1, (0.1, 0.14, 0.5, 0.54), 0.8)]),
    "per_frame_capacity": Case([at(1, A)], [at(1, FAR, 0.9), at(1, A, 0.8), at(1, A, 0.7, TALK)]),
    "row_order": Case([at(1, A)], [at(1, FAR, 0.9), at(1, A, 0.9)]),
    "truth_by_person": Case(
        [at(1, (0.0, 0.0, 1.0, 0.5), 0.0), at(1, (0.0, 0.5, 1.0, 1.0), 1.0)],
        [at(1, (0.0, 0.0, 1.0, 1.0), 0.9), at(1, (0.0, 0.0, 1.0, 0.5), 0.8)],
    ),
    "frame_order": Case([at(1, A), at(2, A)], [at(2, FAR, 0.9), at(1, A, 0.9)]),
    "tied_ranks": Case([at(1, A), at(2, A)], [at(1, A, 0.9), at(2, FAR, 0.9)]),
    "numbers": Case([at(1, (0.4, 0.4, 1.0, 0.8))], [at(1, (0.2, 0.4, 0.8, 0.8), 0.9)]),
    "zero_area_predictions": Case([at(1, A)], [at(1, (0.2, 0.2, 0.2, 0.4), 0.9), at(1, A, 0.8)]),
    "empty_frames": Case([at(1, A)], [at(2, A, 0.9), at(1, A, 0.8)], bare=[("v", 2)]),
    "unknown_frames": Case([at(1, A)], [at(7, A, 0.9), at(1, A, 0.8)]),
    "excluded_truth": Case([at(1, A), at(2, A)], [at(1, A, 0.9), at(2, A, 0.8)], excluded=[("v", 2)]),
    "classes": Case([at(1, A), at(1, A, label=TALK)], [at(1, A, 0.9)]),
    "subset": Case([at(1, A), at(1, A, label=TALK)], [at(1, A, 0.9)]),
}
"""Field to the case that shows it."""

OTHER: dict[str, object] = {
    "min_iou": 0.6,
    "ap": "raw",
    "match": "argmax",
    "per_frame_capacity": 1,
    "row_order": "heap",
    "truth_by_person": True,
    "frame_order": "predictions",
    "tied_ranks": "reversed",
    "numbers": "single",
    "zero_area_predictions": "dropped",
    "empty_frames": "ignore",
    "unknown_frames": "count",
    "excluded_truth": "counted",
    "classes": "with_truth_and_predictions",
    "subset": ("action1",),
}
"""Field to the value beside that of `default`."""

STREET = Case(
    truth=[
        at(1, A, 0.0),
        at(1, A, 0.0, TALK),
        at(1, B, 1.0),
        at(2, A, 0.0),
        at(3, A, 0.0),
        at(4, A, 0.0),
        at(4, A, 0.0, WAVE),
    ],
    predictions=[
        at(9, A, 0.95),
        at(1, A, 0.9),
        at(1, (0.1, 0.14, 0.5, 0.54), 0.8),
        at(2, FAR, 0.7),
        at(2, A, 0.7),
        at(4, A, 0.65),
        at(1, FAR, 0.6, TALK),
        at(1, A, 0.5, TALK),
        at(3, A, 0.4),
    ],
    excluded=[("v", 3)],
)
"""One street, on which the four configurations differ: see docs/actions.md."""
