"""The page of a study of minds: what road users have in mind, and whether knowing it helps to foresee them."""

from __future__ import annotations

from roadaware.protocols.minds import BEHAVIOUR, GAP, MIND, NETWORK, TRUE_MIND, MindStudy
from roadaware.reports.decisions import format_difference
from roadaware.reports.page import Note, Section, Table
from roadaware.reports.terminal import format_table

ASKED = ("question", "answered by", "average precision", "less base rate", "boxes", "true of")
FORESEEN = (
    "foreseen by",
    "steps out in 2 s: AP",
    "mind less this",
    "place in 2 s: error, m",
    "mind less this",
)


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
            row.way, str(row.steps_out), "-" if row.way == MIND else format_difference(row.less_steps_out), str(row.error_m),
            "-" if row.way == MIND else format_difference(row.less_error_m),
        ]
        for row in study.forecasts
    ]  # fmt: skip


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
    for one, words in (
        (known[BEHAVIOUR], "behaviour alone"),
        (known[TRUE_MIND], "the true mind, which nobody sees"),
    ):
        risk, place = one.less_steps_out, one.less_error_m
        better = "better" if (risk.value or 0) > 0 else "worse"
        risk_says = better if risk.excludes_zero else "not told apart"
        nearer = "nearer" if (place.value or 0) < 0 else "farther"
        place_says = nearer if place.excludes_zero else "not told apart"
        said.append(
            f"The forecast with the predicted mind less that with {words}: stepping out {format_difference(risk)} "
            f"({risk_says}), place in two seconds {format_difference(place)} m ({place_says})."
        )
    return said


def format_mind_study(study: MindStudy) -> str:
    """The study as tables of text, for a terminal."""
    parts = [
        format_table(list(ASKED), list_minds(study)),
        format_table(list(FORESEEN), list_forecasts(study)),
    ]
    return "\n\n".join([*parts, "\n".join(list_findings(study))])


def build_mind_section(study: MindStudy) -> Section:
    """The section of the page."""
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
                "column, and below 0 in the last, the forecast with the predicted mind is the better one. Predicted minds "
                "that a forecast learns from are those of networks that saw the other half of the towns.",
            ),
        ),
    )  # fmt: skip
