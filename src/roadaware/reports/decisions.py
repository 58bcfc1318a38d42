"""The page of a study of decisions: ways of deciding, and what becomes of stops whose culprit is taken away."""

from __future__ import annotations

from roadaware.protocols.decisions import (
    AIM,
    BOTH,
    MOTION,
    NOW_GOES_ON,
    PIXELS,
    PRIOR,
    RULES,
    TAUGHT,
    TUBES,
    DecisionRow,
    DecisionStudy,
)
from roadaware.reports.page import Note, Pictures, Points, Section, Table
from roadaware.reports.picture import BLUE, FULL, GREY, Picture, create_canvas, set_style
from roadaware.reports.terminal import format_table
from roadaware.statistics.comparison import Estimate

COLUMNS = ("decides by", "now: mAP", "in 1 s: mAP", "tubes less this, now", "in 1 s", "AV-Stop now", "in 1 s")
REMOVED = (
    "network", "cause", "stops", "not decided", "changed", "changed, others removed", "most attention", "chance",
    "largest fall",
)  # fmt: skip
WAYS = {
    PRIOR: "how often each action is in the towns that are learnt from",
    RULES: "red light ahead, somebody on foot on the road and near, a vehicle that stands in the own lane and near: stop; "
    "else drive on",
    NOW_GOES_ON: "what the bundled event head says of the own motion now, also for one second later: what is goes on",
    MOTION: "a network of the own motion at four moments of the last second: the temporal segmentation of what the flow of "
    "the image tells",
    PIXELS: "a small network of the rendered images, 112 by 64 pixels, at four moments of the last second: the direct "
    "temporal segmentation of the video",
    TUBES: "the set transformer: labels, boxes and motion of tubes, without the own motion",
    TAUGHT: "the same, taught with twins of stops: without the culprits, where the driver would go on, and with them put "
    "into frames in which it drove; half of the frames do not say how tubes move in the image",
    BOTH: "the set transformer that reads the own motion as well",
}  # fmt: skip


def format_difference(each: Estimate) -> str:
    """A difference with its sign and interval."""
    if each.value is None:
        return "-"
    ends = "" if each.low is None or each.high is None else f" [{each.low:+.3f}, {each.high:+.3f}]"
    return f"{each.value:+.3f}{ends}"


def list_rows(study: DecisionStudy) -> list[list[str]]:
    """A row of the first table for each way of deciding."""
    return [
        [
            row.name, str(row.now), str(row.ahead),
            *(("-", "-") if row.name == TUBES else (format_difference(row.less_now), format_difference(row.less_ahead))),
            str(row.stop_now), str(row.stop_ahead),
        ]
        for row in study.rows
    ]  # fmt: skip


def list_removals(study: DecisionStudy) -> list[list[str]]:
    """A row of the second table for each network and cause."""
    return [
        [
            row.name, row.kind, f"{row.stops}", f"{row.missed}", str(row.flipped), str(row.others), str(row.attention),
            "-" if row.chance is None else f"{row.chance:.3f}", str(row.fall),
        ]
        for row in study.removals
    ]  # fmt: skip


def _compare(tubes: DecisionRow, row: DecisionRow, when: str) -> str:
    """Whether the tubes are better, and by how much."""
    less = row.less_now if when == "now" else row.less_ahead
    if less.value is None:
        return f"{when}: not comparable"
    verdict = "better" if less.value > 0 else "worse"
    if not less.excludes_zero:
        verdict = "no different as far as these scenes tell"
    return f"{when} {format_difference(less)} ({verdict})"


def list_findings(study: DecisionStudy) -> list[str]:
    """What the study says, in sentences with its numbers."""
    rows = {row.name: row for row in study.rows}
    tubes = rows[TUBES]
    said = [
        f"From the set of tubes alone the action of the own vehicle has a mean average precision of {tubes.now} now and "
        f"{tubes.ahead} one second ahead."
    ]
    for name in (TUBES, TAUGHT):
        row = next(each for each in study.removals if each.name == name and each.kind == "all")
        if row.flipped.value is None:
            said.append(f"{name}: no stop could be judged.")
            continue
        reached = "reached" if row.flipped.value >= AIM else "not reached"
        said.append(
            f"{name}: the decision to stand changes in {row.flipped} of {row.stops} stops once those are taken away for whom "
            f"the driver stands (aim {AIM:g}: {reached}), and in {row.others} where as many others are taken away; at "
            f"{row.missed} more such stops it did not decide to stand at all."
        )
    said += [
        f"Tubes less {name}: {_compare(tubes, rows[name], 'now')}; {_compare(tubes, rows[name], 'in 1 s')}."
        for name in (RULES, PIXELS, NOW_GOES_ON, MOTION, BOTH)
    ]
    return said


def format_decision_study(study: DecisionStudy) -> str:
    """The study as tables of text, for a terminal."""
    parts = [format_table(list(COLUMNS), list_rows(study)), format_table(list(REMOVED), list_removals(study))]
    return "\n\n".join([*parts, "\n".join(list_findings(study))])


def plot_decisions(study: DecisionStudy) -> Picture:
    """Mean average precision of every way, now and in a second, with intervals."""
    with set_style():
        figure, axes = create_canvas(FULL, 0.42 * len(study.rows) + 1.0)
        for place, row in enumerate(reversed(study.rows)):
            for each, colour, off in ((row.now, BLUE, 0.16), (row.ahead, GREY, -0.16)):
                if each.value is None:
                    continue
                if each.low is not None and each.high is not None:
                    axes.plot([each.low, each.high], [place + off] * 2, color=colour, linewidth=1.4)
                axes.plot([each.value], [place + off], "o", color=colour, markersize=4)
        axes.set_yticks(range(len(study.rows)), [row.name for row in reversed(study.rows)], fontsize=7)
        axes.set_xlabel("mean average precision of the actions that are judged")
        axes.plot([], [], "o-", color=BLUE, label="now")
        axes.plot([], [], "o-", color=GREY, label="in 1 s")
        axes.legend(loc="lower right", fontsize=7)
    caption = f"95 % intervals over {study.scenes['test']} towns that were not learnt from."
    return Picture("Ways of deciding", caption, figure)


def build_decision_section(study: DecisionStudy) -> Section:
    """The section of the page."""
    judged = ", ".join(f"{name} ({100 * share:.1f} %)" for name, share in study.judged.items())
    causes = ", ".join(f"{name} {n:,}" for name, n in study.causes.items() if n)
    stops = ", ".join(f"{name} {n}" for name, n in study.stops.items() if name != "all")
    left = f" Too rare to be judged: {', '.join(study.left_out)}." if study.left_out else ""
    return Section(
        "What the own vehicle does, and for whom",
        tuple(list_findings(study)),
        (
            Note(
                "All of this is simulated: towns, drivers, detectors with drawn errors, and an own motion with the errors "
                "of its estimate. The network of pixels is small and sees small images: a large one, taught with real video, "
                "may do better. Nothing here says what a real driver does."
            ),
            Pictures((plot_decisions(study),)),
            Table(
                COLUMNS, tuple(map(tuple, list_rows(study))), "lrrrrrr", title="Decisions",
                caption=f"{study.frames['test']:,} frames of {study.scenes['test']} unseen towns, {study.frames['train']:,} "
                f"of {study.scenes['train']} to learn from; networks are the mean of {study.seeds}. Mean average precision "
                f"over {judged}.{left} In brackets 95 % intervals over towns; differences are paired.",
            ),
            Points(tuple(f"{name}: {words}." for name, words in WAYS.items()), title="Ways of deciding"),
            Table(
                REMOVED, tuple(map(tuple, list_removals(study))), "llrrrrrrr", title="Stops whose culprit is taken away",
                caption="The simulator's driver says for whom it stands, and that it would go on without them. Stops are "
                "runs of frames in which the vehicle stands; one has changed where at least half of its frames have. "
                "Attention and fall are of frames: whether a culprit has the most attention, and whether the probability to "
                f"stand falls most without one. Frames that stand, by what binds most: {causes}. Of "
                f"{study.stops['all']} stops: {stops}.",
            ),
        ),
    )  # fmt: skip
