"""The pages of the studies of decisions and of minds: ways of deciding, and what road users have in mind."""

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
from roadaware.protocols.minds import BEHAVIOUR, GAP, JOINT, LOOKS, MIND, NETWORK, TRUE_MIND, MindStudy
from roadaware.reports.page import (
    BLUE,
    FULL,
    GREY,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    create_canvas,
    set_style,
)
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


def _compare(row: DecisionRow, when: str) -> str:
    """Whether the tubes are better, and by how much."""
    less = row.less_now if when == "now" else row.less_ahead
    if less.value is None:
        return f"{when}: not comparable"
    verdict = "better" if less.value > 0 else "worse"
    if not less.excludes_zero:
        verdict = "no different as far as these scenes tell"
    return f"{when} {format_difference(less)} ({verdict})"


def list_decision_findings(study: DecisionStudy) -> list[str]:
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
        f"Tubes less {name}: {_compare(rows[name], 'now')}; {_compare(rows[name], 'in 1 s')}."
        for name in (RULES, PIXELS, NOW_GOES_ON, MOTION, BOTH)
    ]
    return said


def format_decision_study(study: DecisionStudy) -> str:
    """The study as tables of text, for a terminal."""
    parts = [format_table(list(COLUMNS), list_rows(study)), format_table(list(REMOVED), list_removals(study))]
    return "\n\n".join([*parts, "\n".join(list_decision_findings(study))])


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
        tuple(list_decision_findings(study)),
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


ASKED = ("question", "answered by", "average precision", "less base rate", "boxes", "true of")
FORESEEN = (
    "foreseen by",
    "steps out in 2 s: AP",
    "less behaviour",
    "place in 2 s: error, m",
    "less behaviour",
)
SEEN = ("foreseen by", "begins to cross within 2 s: AP", "less behaviour")


def list_minds(study: MindStudy) -> list[list[str]]:
    """A row for each question and way of answering."""
    return [
        [
            row.question, row.way, str(row.value),
            "-" if row.gain.value == 0 and row.gain.low == row.gain.high else format_difference(row.gain), f"{row.boxes:,}",
            f"{row.share:.3f}",
        ]
        for row in study.minds
    ]  # fmt: skip


def list_forecasts(study: MindStudy) -> list[list[str]]:
    """A row for each way of foreseeing."""
    return [
        [
            row.way, str(row.steps_out), "-" if row.way == BEHAVIOUR else format_difference(row.gain_steps_out),
            str(row.error_m), "-" if row.way == BEHAVIOUR else format_difference(row.gain_error_m),
        ]
        for row in study.forecasts
    ]  # fmt: skip


def list_looks(study: MindStudy) -> list[list[str]]:
    """A row for each way of foreseeing pedestrians of JAAD; none without it."""
    return [
        [row.way, str(row.value), "-" if row.way == BEHAVIOUR else format_difference(row.gain)]
        for row in (study.looks.rows if study.looks is not None else ())
    ]


def list_mind_findings(study: MindStudy) -> list[str]:
    """What the study says, in sentences with its numbers."""
    said = []
    for row in study.minds:
        if row.way != NETWORK:
            continue
        verdict = "above" if row.gain.excludes_zero and (row.gain.value or 0) > 0 else "not told apart from"
        said.append(f"{row.question}: {row.value}, {verdict} the base rate ({format_difference(row.gain)}).")
    said.append(
        f"The gap that somebody wants is predicted with a mean error of {study.gap_error_s} s, that of the median for all "
        f"being {study.gap_error_base_s} s."
    )
    known = {row.way: row for row in study.forecasts}
    for way, words in (
        (MIND, "the predicted mind"),
        (JOINT, "the mind learnt beside the future"),
        (TRUE_MIND, "the true mind, which nobody sees"),
    ):
        risk, place = known[way].gain_steps_out, known[way].gain_error_m
        better = "better" if (risk.value or 0) > 0 else "worse"
        risk_says = better if risk.excludes_zero else "not told apart"
        nearer = "nearer" if (place.value or 0) < 0 else "farther"
        place_says = nearer if place.excludes_zero else "not told apart"
        said.append(
            f"The forecast with {words} less that with behaviour alone: stepping out {format_difference(risk)} "
            f"({risk_says}), place in two seconds {format_difference(place)} m ({place_says})."
        )
    if study.looks is not None:
        gain = next(row.gain for row in study.looks.rows if row.way == LOOKS)
        verdict = (
            "not told apart" if not gain.excludes_zero else "better" if (gain.value or 0) > 0 else "worse"
        )
        said.append(
            "JAAD, real video: with the tags of looking and nodding, the average precision of who begins to cross within two "
            f"seconds is that of boxes alone {format_difference(gain)} ({verdict})."
        )
    return said


def format_mind_study(study: MindStudy) -> str:
    """The study as tables of text, for a terminal."""
    parts = [
        format_table(list(ASKED), list_minds(study)),
        format_table(list(FORESEEN), list_forecasts(study)),
    ]
    parts += [format_table(list(SEEN), list_looks(study))] if study.looks is not None else []
    return "\n\n".join([*parts, "\n".join(list_mind_findings(study))])


def build_mind_section(study: MindStudy) -> Section:
    """The section of the page."""
    seen = study.looks
    looked: tuple[Table, ...] = ()
    if seen is not None:
        looked = (
            Table(
                SEEN, tuple(map(tuple, list_looks(study))), "lrr", title="The part of a mind that shows: JAAD",
                caption=f"{seen.moments:,} moments of {seen.people} pedestrians in {seen.videos} videos of JAAD's test split "
                f"before they begin to cross, {100 * seen.share:.1f} % of them within two seconds of it; {seen.taught:,} "
                "moments of other videos to learn from. Behaviour is half a second of boxes. At "
                f"{100 * seen.looked:.1f} % the pedestrian has looked at the traffic so far, at {100 * seen.nodded:.1f} % "
                "nodded or waved, as annotators tagged it who saw the whole video. In brackets 95 % intervals over videos; "
                "differences are paired.",
            ),
        )  # fmt: skip
    return Section(
        "What road users have in mind",
        tuple(list_mind_findings(study)),
        (
            Note(
                "These minds are the simulator's: a goal, the seconds to spare that somebody wants before the next vehicle, "
                "and whether the head was ever turned to the own vehicle. Nobody knows those of real people so. Boxes, with "
                "errors of detectors, show neither gaze nor posture: noticing can only be guessed from place and motion."
            ),
            Table(
                ASKED, tuple(map(tuple, list_minds(study))), "llrrrr", title="Minds",
                caption=f"{study.boxes['test']:,} boxes of {study.scenes['test']} unseen towns, {study.boxes['train']:,} of "
                f"{study.scenes['train']} (and {study.scenes['val']}) to learn from; networks are the mean of {study.seeds}. "
                f"Goal and noticing are asked of people beside the road; a gap is short below {study.gap_s:.2f} s "
                f"(`{GAP}`); of drivers the mean over right, straight on and left. In brackets 95 % intervals over towns.",
            ),
            Table(
                FORESEEN, tuple(map(tuple, list_forecasts(study))), "lrrrr", title="The mind as a help to foresee",
                caption=f"People beside the road, of whom {100 * study.steps_out:.1f} % of boxes step on it within two "
                "seconds, and where people are then, in metres. Differences are paired over towns: above 0 in the third "
                "column, and below 0 in the last, the forecast is better than from behaviour alone. Predicted minds "
                "that a forecast learns from are those of networks that saw the other half of the towns.",
            ),
            *looked,
        ),
    )  # fmt: skip
