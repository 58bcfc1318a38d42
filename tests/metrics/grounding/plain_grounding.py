"""Grounded sentences judged frame by frame in loops, as the published evaluators do, one function each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grounded_sets import Box, Told

Row = tuple[float, float, float]
"""tIoU, vIoU and mean overlap on the true frames."""


def means(rows: Iterable[Row], *, strict: bool) -> dict[str, float]:
    rows = list(rows)
    count = len(rows)
    reaches: Callable[[float, float], bool] = (lambda a, b: a > b) if strict else (lambda a, b: a >= b)
    found = {"m_tiou": sum(row[0] for row in rows) / count}
    for place, name, mean in ((1, "viou", "m_viou"), (2, "gt_viou", "gt_viou")):
        found[mean] = sum(row[place] for row in rows) / count
        for tau in (0.3, 0.5):
            found[f"{name}@{tau:g}"] = sum(reaches(row[place], tau) for row in rows) / count
    return found


def tubedetr(told: Told, first_frame: int, *, hcstvg: bool, hull: str = "max") -> Row:
    """One sentence as TubeDETR's evaluators judge it; without a prediction all is 0."""
    if hcstvg:
        rate = 5 / (told.n_frames / 20)
        start, end = 0, told.n_frames - 1
    else:
        assert told.fps is not None
        rate = 5 / told.fps
        start, end = told.segment or (0, told.n_frames)
    taken = [start]
    for frame in range(start, end):
        if int(frame * rate) > int(taken[-1] * rate):
            taken.append(frame)
    if len(taken) > 200:
        taken = [taken[j * len(taken) // 200] for j in range(200)]
    if told.prediction is None:
        return 0.0, 0.0, 0.0
    true = (told.span[0] + first_frame, told.span[1] + first_frame)
    prediction = told.prediction
    low, high = max(true[0], prediction[0]), min(true[1], prediction[1])
    shared = high - low
    tiou = shared / (true[1] - true[0] + prediction[1] - prediction[0] - shared) if shared > 0 else 0.0
    last = max(true[1], prediction[1]) if hull == "max" else high
    over = sum(1 for frame in taken if min(true[0], prediction[0]) <= frame < last)
    both = everywhere = 0.0
    asked = [frame for frame in taken if true[0] <= frame < true[1]]
    for frame in asked:
        held = told.predicted_boxes.get(frame)
        value = iou(held, told.boxes[frame - first_frame]) if held else 0.0
        everywhere += value
        both += value if low <= frame < high else 0.0
    return tiou, both / max(over, 1), everywhere / max(len(asked), 1)


def official(told: Told) -> Row:
    """One sentence as the script of the HC-STVG challenge judges it, with inclusive ends."""
    if told.prediction is None:
        return 0.0, 0.0, 0.0
    values = [
        iou(told.predicted_boxes[frame], box)
        for frame, box in told.boxes.items()
        if frame in told.predicted_boxes
    ]
    frames = max(told.span[1] - 1, told.prediction[1] - 1) - min(told.span[0], told.prediction[0]) + 1
    return len(values) / frames, sum(values) / frames, sum(values) / len(told.boxes)


def every_frame(told: Told) -> Row:
    """One sentence over all frames by sets, as the formulas in print say."""
    if told.prediction is None:
        return 0.0, 0.0, 0.0
    true, prediction = set(range(*told.span)), set(range(*told.prediction))
    values = {
        frame: iou(told.predicted_boxes[frame], told.boxes[frame]) if frame in told.predicted_boxes else 0.0
        for frame in true
    }
    either = len(true | prediction)
    return (
        len(true & prediction) / either,
        sum(values[frame] for frame in sorted(true & prediction)) / either,
        sum(values.values()) / len(true),
    )


def iou(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    common = width * height
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)
