"""What became of proposals, on a case worked by hand, and what the tables then say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.annotation.cost import (
    FATE,
    build_labelled_scenes,
    compute_outcomes,
    fit_cost,
    summarize_annotators,
    summarize_outcomes,
)
from roadaware.datasets.issues import Findings
from roadaware.formats.corrections import DRAWN, LOOKED, Answers
from roadaware.formats.proposal_tasks import KIND, PICTURES, UNNAMED, select_task_proposals
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions

_PLACES = [(0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 10.0), (40.0, 0.0, 50.0, 10.0), (60.0, 0.0, 70.0, 10.0)]
_ROWS = [(n, "v", 0, *edges, 0.5) for n, edges in enumerate(_PLACES)]
SENT, _ = select_task_proposals(
    Predictions(
        boxes=pl.DataFrame(_ROWS, schema=["box", "video", "frame", *CORNERS, "score"], orient="row"),
        labels=pl.DataFrame({"box": [0, 1, 2], "kind": [KIND] * 3, "label": [0, 0, 1]}),
        meta=Meta(vocabularies={KIND: ("dog", "cart")}),
    ),
    pl.DataFrame([("v", 0, "a.png", 100, 100), ("v", 1, "b.png", 100, 100)], schema=PICTURES, orient="row"),
    ["dog", "cart"],
)
_LEFT = [
    (0, (0.0, 0.0, 10.0, 10.0), "dog"),  # kept
    (1, (21.0, 0.0, 31.0, 10.0), "cart"),  # moved by a pixel, renamed
    (3, (60.3, 0.0, 70.3, 10.0), "dog"),  # kept within the limit, named
    (None, (80.0, 80.0, 90.0, 90.0), "whale"),  # added
]


def _answers(*, linked: bool) -> Answers:
    drawn = [("v", 0, "ann", link if linked else None, *edges, word) for link, edges, word in _LEFT]
    looked = [("v", 0, "ann", False, 12.0, linked), ("v", 0, "ben", True, None, linked)]
    return Answers(
        pl.DataFrame(drawn, schema=DRAWN, orient="row"),
        pl.DataFrame([*looked, ("v", 1, "ann", False, 4.0, linked)], schema=LOOKED, orient="row"),
        Findings(),
    )


@pytest.mark.parametrize("linked", [True, False])
def test_each_proposal_has_one_fate_for_each_annotator_of_its_picture(linked):
    table = compute_outcomes(SENT, _answers(linked=linked))
    assert table.select("annotator", "proposal", "fate", "relabelled", "was", "became").rows() == [
        ("ann", 0, "kept", False, "dog", "dog"),
        ("ann", 1, "moved", True, "dog", "cart"),
        ("ann", 2, "deleted", False, "cart", None),
        ("ann", 3, "kept", True, None, "dog"),
        ("ann", None, "added", False, None, "whale"),
    ]
    assert table["iou"].to_list()[1] == pytest.approx(90 / 110)
    assert table["max_edge_px"].to_list()[3] == pytest.approx(0.3)


def test_a_stricter_limit_calls_more_moved():
    table = compute_outcomes(SENT, _answers(linked=True), still_px=0.0)
    assert table["fate"].to_list() == ["kept", "moved", "deleted", "moved", "added"]


def test_sums_by_class_and_annotator():
    answers = _answers(linked=True)
    table = compute_outcomes(SENT, answers)
    found = {row["class"]: row for row in summarize_outcomes(table).to_dicts()}
    assert list(found) == ["cart", "dog", UNNAMED, "whale", "all"]
    counts = ("proposals", "kept", "moved", "deleted", "relabelled", "added")
    assert [found["dog"][name] for name in counts] == [2, 1, 1, 0, 1, 0]
    assert [found["all"][name] for name in counts] == [4, 2, 1, 1, 2, 1]
    assert (found["all"]["precision"], found["whale"]["precision"]) == (0.75, None)
    people = summarize_annotators(table, answers.looked).to_dicts()
    assert [(row["annotator"], row["pictures"], row["skipped"]) for row in people] == [
        ("ann", 2, 0),
        ("ben", 0, 1),
    ]
    assert (people[0]["seconds"], people[0]["median_s"], people[1]["seconds"]) == (16.0, 8.0, None)


def test_labels_keep_annotator_link_and_who_saw_what():
    answers = _answers(linked=True)
    scenes = build_labelled_scenes(SENT, answers, compute_outcomes(SENT, answers))
    assert scenes.boxes["corner_case"].all()
    assert scenes.boxes["proposal"].to_list() == [0, 1, 3, None]
    assert scenes.boxes["fate"].to_list() == ["kept", "moved", "kept", "added"]
    assert scenes.meta.vocabularies[KIND] == ("dog", "cart", "whale")
    assert scenes.frames.select("frame", "annotated", "annotators", "proposals").rows() == [
        (0, True, ["ann"], [0, 1, 2, 3]),
        (1, True, ["ann"], []),
    ]


def test_nothing_sent_and_nothing_drawn():
    empty = Answers(pl.DataFrame(schema=DRAWN), pl.DataFrame(schema=LOOKED), Findings())
    table = compute_outcomes(SENT, empty)
    assert table.is_empty()
    assert summarize_outcomes(table)["proposals"].to_list() == [0]
    assert summarize_annotators(table, empty.looked).is_empty()


def test_the_seconds_of_work_are_found_again_in_the_times():
    rng = np.random.default_rng(0)
    looked, rows = [], []
    for frame in range(60):
        counts = {"kept": rng.integers(0, 4), "moved": rng.integers(0, 3), "added": rng.integers(0, 3)}
        work = (
            9.0 + 2.0 * (counts["kept"] + counts["moved"]) + 11.0 * counts["moved"] + 30.0 * counts["added"]
        )
        looked.append(("v", frame, "ann", False, work, True))
        rows += [
            {"video": "v", "frame": frame, "annotator": "ann", "fate": fate, "proposal": None if new else 1}
            for fate, count in counts.items()
            for new in [fate == "added"] * count
        ]
    times = pl.DataFrame(looked, schema=LOOKED, orient="row")
    found = fit_cost(pl.DataFrame(rows, schema=FATE), times)
    assert found is not None
    assert found[1] == 60
    assert (found[0].look_s, found[0].judge_s) == (pytest.approx(9), pytest.approx(2))
    assert (found[0].correct_s, found[0].draw_s) == (pytest.approx(11), pytest.approx(30))
    assert fit_cost(pl.DataFrame(rows, schema=FATE), times.head(10)) is None
    never = pl.DataFrame(rows, schema=FATE).filter(pl.col("fate") != "moved")
    assert fit_cost(never, times) is None
