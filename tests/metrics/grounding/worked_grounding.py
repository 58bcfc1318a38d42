"""One small case per field of GroundingConfig in which it alone changes the number, and one set for all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from grounded_sets import Told, steady, tables

from roadaware.errors import InputError
from roadaware.metrics.grounding import GroundingConfig, evaluate

BOX = (0.0, 0.0, 10.0, 10.0)
HALF = (0.0, 0.0, 10.0, 5.0)
TEN = (0, 10)


@dataclass(frozen=True)
class Case:
    """A sentence, the metric that is looked at, and what else is set."""

    told: Told
    metric: str = "m_viou"
    base: dict[str, Any] = field(default_factory=dict)
    first_frame: int = 0


def told(
    span: tuple[int, int] = TEN,
    prediction: tuple[int, int] | None = None,
    first: int | None = None,
    **more: Any,
) -> Told:
    """A sentence with BOX on all frames; predicted HALF on all frames, or BOX on `first` and HALF elsewhere."""
    boxes = {**steady((0, 100), HALF), **({} if first is None else {first: BOX})}
    given = {"boxes": steady(span, BOX), "prediction": prediction or span, "predicted_boxes": boxes}
    return Told("v", span, **{**given, **more})


WELL = steady((0, 100), BOX)
SAMPLED = {"frames": "sampled"}
CASES: dict[str, Case] = {
    "frames": Case(told(predicted_boxes=dict.fromkeys((0, 5), BOX))),
    "sample_fps": Case(told(first=0), base=SAMPLED),
    "clip_seconds": Case(told(first=0), base=SAMPLED),
    "last_frame": Case(told((8, 10), predicted_boxes={8: BOX}, fps=5.0, n_frames=10), base=SAMPLED),
    "most_frames": Case(
        told(
            predicted_boxes={frame: HALF if frame % 2 else BOX for frame in range(10)}, fps=5.0, n_frames=10
        ),
        base=SAMPLED,
    ),
    "ends": Case(told((2, 6), (4, 8)), "m_tiou"),
    "hull_end": Case(told(prediction=(0, 20), predicted_boxes=WELL)),
    "common_frames": Case(told(predicted_boxes=steady((0, 5), BOX)), "m_tiou"),
    "boxless_frames": Case(told(boxes=dict.fromkeys((0, 5), BOX), predicted_boxes=WELL)),
    "boxes_beyond": Case(
        told(prediction=(0, 20), boxes=steady((0, 15), BOX), predicted_boxes=WELL),
        base={"common_frames": "boxes"},
    ),
    "threshold": Case(told(), "viou@0.5"),
    "thresholds": Case(told(), "viou"),
    "numbering": Case(told(), "m_tiou", first_frame=1),
    "temporal": Case(told((3, 13), first=3), "gt_viou", SAMPLED),
    "missing_prediction": Case(replace(told(), prediction=None)),
    "missing_box": Case(told(predicted_boxes=steady((0, 5), BOX))),
}


def worked(name: str, value: Any) -> str:
    """The number of a field's case under one of its values, or `stops` where that is an error."""
    case = CASES[name]
    config = GroundingConfig(**{**case.base, name: value})
    metric = f"viou@{config.thresholds[-1]:g}" if case.metric == "viou" else case.metric
    try:
        found = evaluate(*tables([case.told], case.first_frame), config).value(metric)
    except InputError:
        return "stops"
    return f"{found:.3f}"


SET = [
    Told("a", (40, 80), steady((40, 80), BOX), (40, 80), steady((0, 200), BOX)),
    Told("b", (40, 80), steady((40, 80), BOX), (60, 100), steady((0, 200), BOX)),
    Told("c", (40, 80), steady((40, 80), BOX), (40, 80), steady((0, 200), HALF)),
    Told("d", (40, 80), steady((40, 80), BOX), (40, 80), dict.fromkeys(range(0, 200, 2), BOX)),
    Told("e", (40, 80), steady((40, 80), BOX), None, kind="interrogative"),
]
SET = [replace(each, n_frames=200, fps=25.0) for each in SET]
