"""The page of a study of continual event detection: heat maps of accuracy, forgetting, memory and time."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.protocols.continual import (
    FINE_TUNING,
    JOINT,
    PLANS,
    REPLAY_AVERAGED,
    TRAIN_EVERY,
    ContinualStudy,
    Learns,
    MethodResult,
)
from roadaware.protocols.event_domains import FEWEST_SCENES, TEST_EVERY, Measured
from roadaware.reports.page import (
    FULL,
    Facts,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    create_canvas,
    set_style,
)
from roadaware.reports.terminal import format_bytes, format_interval, format_table

COLUMNS = (
    "", "average mAP", "forgetting", "backward transfer", "forward transfer", "memory", "CPU s a minute",
    "of inference",
)  # fmt: skip
_KEPT = {JOINT: "all boxes"}
_TIMES = 6
"""First of the columns of time, which are of both networks together."""


def format_measured(measured: Measured | None, *, sign: str = "") -> str:
    """A number with its interval; a dash where it is not defined."""
    if measured is None or measured.value is None:
        return "-"
    ends = format_interval(measured.low, measured.high, 3, measured.caution, sign=sign)
    return f"{measured.value:{sign}.3f}" + ("" if ends == "-" else f" {ends}")


def list_rows(study: ContinualStudy) -> list[list[str]]:
    """A row for each way of learning."""
    rows = []
    for method in study.methods:
        timing = study.timing.get(method.name)
        rows.append(
            [
                method.name, format_measured(method.average), format_measured(method.forgetting, sign="+"),
                format_measured(method.backward, sign="+"), format_measured(method.forward, sign="+"),
                _KEPT.get(method.name, "-") if method.memory_bytes is None else format_bytes(method.memory_bytes),
                "-" if timing is None else f"{timing['inference']:.2f} to {timing['with learning']:.2f}",
                "-" if timing is None else f"{timing['ratio']:.2f} x",
            ]
        )  # fmt: skip
    return rows


def list_differences(study: ContinualStudy) -> list[list[str]]:
    """Each way of learning less fine-tuning, paired, forgetting less half of its, and average less that of no learning."""
    return [
        [
            name, format_measured(held.get("average"), sign="+"), format_measured(held.get("forgetting"), sign="+"),
            format_measured(study.half.get(name), sign="+"),
            *([format_measured(study.gains[name], sign="+")] if study.gains else []),
        ]
        for name in study.gains or study.differences
        for held in [study.differences.get(name, {})]
    ]  # fmt: skip


def list_experiences(study: ContinualStudy) -> list[list[str]]:
    """A row for each experience."""
    return [
        [
            each.name, each.about, f"{each.train_scenes}", f"{each.seconds / 60:.1f}", f"{each.tubes:,}",
            f"{each.boxes:,}", f"{each.test_scenes}", f"{each.test_boxes:,}", f"{len(each.judged)}",
            f"all {len(each.new)}"
            if each is study.experiences[0]
            else ", ".join(name.partition("/")[2] for name in each.new),
        ]
        for each in study.experiences
    ]  # fmt: skip


def describe_aim(study: ContinualStudy, what: str = "tubes") -> str:
    """Whether rows with replay forget at most half of what fine-tuning forgets, in words with their numbers.

    Args:
        study: of tubes, or of the own vehicle.
        what: what replay keeps.
    """
    base = study.get_method(FINE_TUNING).forgetting
    if base is None or base.value is None:
        return "Forgetting is not defined here."
    if base.value <= 0:
        return f"Fine-tuning forgets nothing here ({base.value:+.3f}), so that there is nothing to halve."
    says = []
    for name, half in study.half.items():
        own = study.get_method(name).forgetting
        if own is None or own.value is None or half.value is None:
            continue
        reached = (
            "reached"
            if half.is_below_zero
            else "reached in the mean alone"
            if half.value <= 0
            else f"missed by {half.value:.3f}"
        )
        says.append(
            f"{name} {own.value:+.3f} ({reached}: less half of fine-tuning's {format_measured(half, sign='+')})"
        )
    return (
        f"Forgetting, with the aim of at most half of fine-tuning's {base.value:.3f}, with {study.memory_tubes:,} of "
        f"{study.tubes:,} {what} kept: {'; '.join(says)}."
    )


def list_findings(study: ContinualStudy) -> list[str]:
    """What the study says, in sentences with its numbers."""
    joint = study.get_method(JOINT).average
    learnt = [method for method in study.methods if method.forgetting is not None]
    best = max(learnt, key=lambda method: method.average.value or 0.0)
    says = [
        describe_aim(study),
        f"Average mAP after the last experience: {'; '.join(f'{m.name} {_format(m.average)}' for m in learnt)}; "
        f"joint training, which keeps everything, {_format(joint)}. The best of those that learn online is {best.name}.",
    ]
    if study.gains:
        says.append(
            "Average mAP less that of the detector as it was: "
            + "; ".join(f"{name} {format_measured(gain, sign='+')}" for name, gain in study.gains.items())
            + "."
        )
    if study.vehicle is not None:
        says.append(f"The own vehicle's actions. {describe_aim(study.vehicle, 'seconds')}")
    if study.timing:
        worst = max(study.timing.items(), key=lambda item: item[1]["ratio"])
        kept = "kept" if worst[1]["ratio"] <= 2 else "not kept"
        says.append(
            f"With learning a minute of stream takes at most {worst[1]['ratio']:.2f} times the time of "
            f"{_TIMED[study.learns]} ({worst[0]}); twice was allowed: {kept}."
        )
    return says


_TIMED: dict[Learns, str] = {
    "events": "linker, features and head, without the detector", "detector": "detector and linker",
}  # fmt: skip
_NOTES: dict[Learns, str] = {
    "events": (
        f"Simulated scenes are driven through {PLANS['events'].rounds} times, each time with other errors of the "
        "detector. They have no images: weather and night are what they do to the camera, to "
        "traffic, to the errors of the detector and to the estimate of the own motion. Those errors at night are the "
        "worst of the training set's, by assumption."
    ),
    "detector": (
        "Scenes are rendered, and the bundled detector sees every frame once. What learns is a linear layer over its "
        "features, which begins as its own; trunk, pyramid, boxes and agentness stay. Each box that it keeps has the labels "
        "of the ground-truth box that it overlaps most, from an overlap of 0.5 on; objects that it does not find count "
        "nowhere. Its trunk learnt from the labels that are called new here; the layer did not. No learning is the detector "
        "as it was, which scores 0 for them."
    ),
}


def _format(measured: Measured) -> str:
    return "-" if measured.value is None else f"{measured.value:.3f}"


def format_continual_study(study: ContinualStudy) -> str:
    """The study as tables of text, for a terminal."""
    return "\n".join(
        [
            format_table(COLUMNS, list_rows(study)), "",
            format_table(
                (
                    "less fine-tuning", "average mAP", "forgetting", "forgetting less half of its",
                    *(("average less no learning",) if study.gains else ()),
                ),
                list_differences(study),
            ),
            *(
                ()
                if study.vehicle is None
                else (
                    "", "the own vehicle's actions",
                    format_table(COLUMNS[:_TIMES], [row[:_TIMES] for row in list_rows(study.vehicle)]),
                )
            ),
            "", *list_findings(study),
        ]
    )  # fmt: skip


def plot_matrix(study: ContinualStudy, methods: tuple[MethodResult, ...]) -> Picture:
    """Mean average precision as heat maps: rows are moments, columns the tests, a panel for each way of learning."""
    names = [each.name for each in study.experiences]
    values = np.concatenate([np.ravel(method.matrix) for method in methods])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    across = min(3, len(methods))
    down = -(-len(methods) // across)
    moments = ["before", *(f"after {name}" for name in names)]
    with set_style():
        figure, axes = create_canvas(FULL, down * (0.32 * len(moments) + 1.15))
        figure.delaxes(axes)
        panels: Any = np.ravel(figure.subplots(down, across, squeeze=False))
        for panel, method in zip(panels, methods, strict=False):
            grid = np.full((len(moments), len(names)), np.nan)
            first = method.find_first_moment(len(names))
            grid[first : first + len(method.matrix)] = method.matrix
            panel.imshow(grid, cmap="viridis", vmin=low, vmax=high, aspect="auto")
            for (y, x), value in np.ndenumerate(grid):
                if not np.isnan(value):
                    panel.text(
                        x, y, f"{value:.2f}", ha="center", va="center", fontsize=6.5,
                        color="black" if value > (low + high) / 2 else "white",
                    )  # fmt: skip
            panel.set_title(method.name, fontsize=8)
            panel.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=6.5)
            leftmost = panel in panels[::across]
            panel.set_yticks(range(len(moments)), moments if leftmost else [""] * len(moments), fontsize=6.5)
        for panel in panels[len(methods) :]:
            figure.delaxes(panel)
    return Picture(
        "Accuracy after each experience",
        "Mean average precision of labels (mean over seeds) on the test of each experience (columns), before anything was "
        "learnt and after each experience (rows). Forgetting is a column that grows darker downwards; what stands right of "
        "the diagonal is transfer to what was not learnt yet.",
        figure,
    )


def plot_forgetting(study: ContinualStudy) -> Picture:
    """Average accuracy and forgetting of each way of learning with intervals."""
    learnt = [method for method in study.methods if method.forgetting is not None]
    with set_style():
        figure, axes = create_canvas(FULL, 0.3 * len(learnt) + 1.1)
        figure.delaxes(axes)
        panels: Any = figure.subplots(1, 2)
        base = study.get_method(FINE_TUNING).forgetting
        for panel, metric, words in zip(
            panels,
            ("average", "forgetting"),
            ("average mAP after the last experience", "forgetting"),
            strict=True,
        ):
            for place, method in enumerate(learnt):
                measured: Measured = getattr(method, metric)
                if measured.value is None:
                    continue
                if measured.low is not None and measured.high is not None:
                    panel.plot([measured.low, measured.high], [place, place], color="#0072b2", linewidth=1.4)
                panel.plot(measured.value, place, "o", color="#0072b2", markersize=4)
                panel.plot(measured.seeds, [place] * len(measured.seeds), "|", color="#6b7482", markersize=6)
            panel.set_yticks(
                range(len(learnt)), [m.name for m in learnt] if panel is panels[0] else [""] * len(learnt)
            )
            panel.invert_yaxis()
            panel.set_xlabel(words)
            panel.grid(visible=True, axis="x")
        if base is not None and base.value is not None:
            panels[1].axvline(base.value / 2, color="#6b7482", linestyle=(0, (2, 3)), linewidth=1)
    return Picture(
        "Average accuracy and forgetting",
        "Dots are means over seeds, lines 95 % intervals over test scenes, ticks single seeds; dotted: half the forgetting "
        "of fine-tuning.",
        figure,
    )


def _build_differences(study: ContinualStudy, over: str, title: str = "Less fine-tuning, paired") -> Table:
    more = ("average less no learning's",) if study.gains else ()
    return Table(
        ("", "average mAP", "forgetting", "forgetting less half of fine-tuning's", *more),
        tuple(map(tuple, list_differences(study))), "lrrr" + "r" * len(more), title=title,
        caption=f"In brackets {over}; the last column is below 0 where less than half is forgotten.",
    )  # fmt: skip


def build_continual_section(study: ContinualStudy) -> Section:
    """The section of the page."""
    vehicle = study.vehicle
    names = [each.name for each in study.experiences]
    per_label = tuple(
        f"{each.name}: judged are {', '.join(label.partition('/')[2] for label in each.judged)}"
        + (
            f"; annotated and true in fewer than {FEWEST_SCENES} test scenes: "
            f"{', '.join(label.partition('/')[2] for label in each.passed)}"
            if each.passed
            else ""
        )
        + (f"; left out of its tables: {'; '.join(each.left_out)}" if each.left_out else "")
        for each in study.experiences
    )
    matrices = tuple(
        (method.name, "before" if t == 0 else f"after {names[t - 1]}", *(f"{value:.3f}" for value in row))
        for method in study.methods
        for t, row in enumerate(method.matrix, start=method.find_first_moment(len(names)))
    )
    over = f"95 % intervals over {study.scenes} test scenes, by the jackknife; means over {study.seeds} seeds"
    of_vehicle: tuple[Table, ...] = ()
    if vehicle is not None:
        of_vehicle = (
            Table(
                COLUMNS[:_TIMES], tuple(tuple(row[:_TIMES]) for row in list_rows(vehicle)), "l" + "r" * (_TIMES - 1),
                title="The own vehicle's actions",
                caption=f"In brackets {over}. Replay keeps {vehicle.memory_tubes:,} of {vehicle.tubes:,} seconds of the "
                f"stream; judged are actions that are true in {FEWEST_SCENES} test scenes of an experience.",
            ),
            _build_differences(vehicle, over, "The own vehicle's, less fine-tuning, paired"),
        )  # fmt: skip
    of_boxes, stays = {
        "events": ("actions and locations of tubes", "the detector stays as it is"),
        "detector": (
            "the last layer of the labels of boxes",
            "all before it, boxes and agentness stay as they are",
        ),
    }[study.learns]
    learnt = of_boxes + ("" if vehicle is None else ", and the own vehicle's actions")
    return Section(
        "Continual event detection",
        tuple(list_findings(study)),
        (
            Facts(
                (
                    ("stream", f"{sum(e.seconds for e in study.experiences) / 60:.1f} minutes, {study.tubes:,} tubes, "
                     f"{len(study.experiences)} experiences, each box once"),
                    ("memory of replay", f"{study.memory_tubes:,} tubes, or as many boxes of more, drawn uniformly"),
                    ("learnt", f"{learnt}; {stays}"),
                )
            ),
            Pictures((plot_matrix(study, study.methods), plot_forgetting(study))),
            Table(
                COLUMNS, tuple(map(tuple, list_rows(study))), "l" + "r" * (len(COLUMNS) - 1), title="Ways of learning",
                caption=f"In brackets {over}. Time is that of {_TIMED[study.learns]}, alone and with learning, by the "
                "processor's clock when the study was first run.",
            ),
            _build_differences(study, over),
            *of_vehicle,
            Table(
                ("experience", "what it is", "scenes", "minutes", "tubes", "boxes learnt", "test scenes", "test boxes",
                 "labels judged", "new labels"),
                tuple(map(tuple, list_experiences(study))), "llrrrrrrrl", title="The stream",
                caption=f"Every {TRAIN_EVERY}nd frame is learnt from and every {TEST_EVERY}th judged, false detections "
                "included.",
            ),
            Table(
                ("", "when", *names), matrices, "ll" + "r" * len(names), title="Accuracy after each experience",
                caption="Mean average precision over the labels that are judged, mean over seeds.",
            ),
            Points(per_label, title="Labels"),
            Note(_NOTES[study.learns]),
            Note(
                f"{REPLAY_AVERAGED.capitalize()}: the network that answers is the fading mean of the one that learns. "
                "Forgetting is the mean fall from the best after any earlier experience (Chaudhry et al., 2018); forward "
                "transfer the gain on an experience before it came (Lopez-Paz and Ranzato, 2017)."
            ),
        ),
    )  # fmt: skip
