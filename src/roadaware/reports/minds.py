"""The page of a study of minds: what road users have in mind, and whether knowing it helps to foresee them."""

from __future__ import annotations

from roadaware.protocols.minds import BEHAVIOUR, GAP, JOINT, LOOKS, MIND, NETWORK, TRUE_MIND, MindStudy
from roadaware.reports.decisions import format_difference
from roadaware.reports.page import Note, Section, Table
from roadaware.reports.terminal import format_table

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


def list_findings(study: MindStudy) -> list[str]:
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
    return "\n\n".join([*parts, "\n".join(list_findings(study))])


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
        tuple(list_findings(study)),
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
