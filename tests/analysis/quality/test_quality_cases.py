"""Hand-worked cases of the limits, the two rounds and the matching of items; laws of the check."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roadaware.analysis.quality import Dictionary, ForbiddenWords, Quality, QualityConfig, check
from roadaware.demo_data.annotations import generate_annotation_rounds
from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Meta, Scenes

Corners = tuple[float, float, float, float]
HERE: Corners = (100.0, 50.0, 140.0, 120.0)


def one_box(corners: Corners, *, size: tuple[int, int] = (320, 180), **meta: Any) -> Scenes:
    """One person with one box."""
    return boxes([("P", 0, corners)], size=size, **meta)


def boxes(
    rows: list[tuple[str | None, int, Corners]],
    *,
    size: tuple[int, int] = (320, 180),
    fps: float | None = 25.0,
) -> Scenes:
    """Persons by name with boxes; nobody's where the name is None."""
    names = sorted({name for name, *_ in rows if name is not None})
    held = [
        (k, "clip", frame, names.index(name) if name is not None else None, *corners)
        for k, (name, frame, corners) in enumerate(rows)
    ]
    schema = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64, "tube": pl.Int64}
    corners = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float64)
    videos = {"video": ["clip"], "width_px": [size[0]], "height_px": [size[1]], "fps": [fps]}
    tubes = {"tube": range(len(names)), "video": ["clip"] * len(names), "name": names}
    return Scenes(
        videos=pl.DataFrame(videos),
        boxes=pl.DataFrame(held, schema={**schema, **corners}, orient="row"),
        tubes=pl.DataFrame(tubes, schema={"tube": pl.Int64, "video": pl.String, "name": pl.String}),
    )


def tracked(frames: Any) -> Scenes:
    """One person who stands still in these frames."""
    return boxes([("P", frame, HERE) for frame in frames])


def spans(start: int, end: int, *, fps: float | None = 25.0) -> Scenes:
    """One sentence."""
    query = {"query": [0], "video": ["clip"], "name": ["S"], "text": ["a man runs"]}
    return Scenes(
        videos=pl.DataFrame({"video": ["clip"], "width_px": [320], "height_px": [180], "fps": [fps]}),
        queries=pl.DataFrame({**query, "start_frame": [start], "end_frame": [end]}),
    )


def moved(corners: Corners, *by: float) -> Corners:
    a, b, c, d = (edge + step for edge, step in zip(corners, by, strict=True))
    return a, b, c, d


def only(quality: Quality, what: str) -> dict[str, Any]:
    """The one item of a kind."""
    (row,) = quality.items.filter(pl.col("what") == what).to_dicts()
    return row


@pytest.mark.parametrize(
    ("size", "step", "status"),
    [
        ((1280, 720), 8.0, "pass"),
        ((1280, 720), 8.01, "fail"),
        ((320, 180), 2.0, "pass"),
        ((320, 180), 2.01, "fail"),
        ((640, 720), 4.0, "pass"),
        ((640, 720), 4.01, "fail"),
    ],
)
def test_eight_pixels_at_1280x720_in_the_resolution_of_the_file(
    size: tuple[int, int], step: float, status: str
) -> None:
    quality = check(one_box(HERE, size=size), one_box(moved(HERE, 0, 0, step, 0), size=size))
    row = only(quality, "box")
    assert row["status"] == status
    assert row["max_edge_diff_px"] == pytest.approx(step)
    assert row["max_edge_diff_ref_px"] == pytest.approx(step * 1280 / size[0])
    assert row["rules"] == ([] if status == "pass" else ["box moved"])


def test_shares_of_a_picture_of_unknown_size_are_measured_as_if_it_had_that_of_the_limit() -> None:
    share: Corners = (0.1, 0.2, 0.3, 0.7)
    at_limit = (0.1 + 8 / 1280, 0.2 - 8 / 720, 0.3 + 8 / 1280, 0.7 + 8 / 720)
    assert only(check(one_box(share, size=(1, 1)), one_box(at_limit, size=(1, 1))), "box")["status"] == "pass"
    beyond = check(one_box(share, size=(1, 1)), one_box(moved(at_limit, 1e-5, 0, 0, 0), size=(1, 1)))
    assert only(beyond, "box")["reasons"] == [
        "box moved: x1 differs by 0.00626 of the image, at most 0.00625 pass "
        "(8.013 px against 8 at 1280x720) (original to round 1)"
    ]


def test_files_of_two_resolutions_are_compared_at_that_of_the_limit() -> None:
    large = tuple(4 * edge for edge in moved(HERE, 1.5, 0, 0, 0))
    row = only(check(one_box(HERE), one_box((*large[:2], *large[2:]), size=(1280, 720))), "box")
    assert (row["status"], row["max_edge_diff_px"], row["round1_x1"]) == ("pass", 1.5, 101.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "fps", "step", "status"),
    [
        (5.0, 25.0, 10, "pass"),
        (5.0, 25.0, 11, "fail"),
        (5.0, 5.0, 2, "pass"),
        (5.0, 5.0, 3, "fail"),
        (None, 25.0, 2, "pass"),
        (None, 25.0, 3, "fail"),
        (25.0, 25.0, 2, "pass"),
        (25.0, 25.0, 3, "fail"),
        (5.0, None, 2, "pass"),
        (5.0, None, 3, "fail"),
    ],
)
def test_two_frames_at_the_rate_that_is_asked(
    rate: float | None, fps: float | None, step: int, status: str
) -> None:
    config = QualityConfig(frame_rate=rate)
    for start, end in ((step, 0), (0, -step), (-step, step)):
        row = only(
            check(spans(50, 150, fps=fps), spans(50 + start, 150 + end, fps=fps), config=config), "sentence"
        )
        assert (row["status"], row["frame_diff"]) == (status, step)


@pytest.mark.parametrize(("late", "lost"), [(0, 0), (2, 0), (3, 3)])
def test_boxes_of_a_person_who_starts_within_the_limit_are_not_missed(late: int, lost: int) -> None:
    rounds = [tracked(range(20)), tracked(range(late, 20))]
    found = check(*rounds, config=QualityConfig(frame_rate=None))
    person = only(found, "person")
    assert person["status"] == ("fail" if lost else "pass")
    boxes = found.items.filter(pl.col("what") == "box")
    assert (boxes["status"] == "fail").sum() == lost
    back = check(*rounds[::-1], config=QualityConfig(frame_rate=None)).items
    assert (back.filter(pl.col("what") == "box")["status"] == "fail").sum() == lost


def test_a_box_that_is_gone_amid_a_track_is_missed() -> None:
    found = check(tracked(range(20)), tracked([f for f in range(20) if f != 7])).items
    (row,) = found.filter((pl.col("what") == "box") & (pl.col("status") == "fail")).to_dicts()
    assert row["frame"] == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "statuses"),
    [
        (0.0, 0.0, ("pass", "pass", "pass")),
        (2.0, 0.0, ("pass", "pass", "pass")),
        (3.0, 3.0, ("fail", "pass", "fail")),
        (3.0, 4.0, ("fail", "pass", "fail")),
        (0.0, 3.0, ("pass", "disputed", "disputed")),
        (3.0, 0.0, ("fail", "disputed", "disputed")),
        (2.0, 4.0, ("pass", "pass", "pass")),
    ],
)
def test_round_1_checks_the_original_and_round_2_judges_round_1(
    first: float, second: float, statuses: tuple[str, str, str]
) -> None:
    rounds = [one_box(moved(HERE, 0, step, 0, step)) for step in (0.0, first, second)]
    row = only(check(*rounds), "box")
    assert (row["round1"], row["round2"], row["status"]) == statuses
    alone = only(check(*rounds[:2]), "box")
    assert (alone["round1"], alone["round2"], alone["status"]) == (statuses[0], None, statuses[0])


def test_boxes_without_a_name_are_matched_by_where_they_are() -> None:
    left, right = (10.0, 10.0, 50.0, 90.0), (200.0, 10.0, 240.0, 90.0)
    far = (100.0, 100.0, 120.0, 150.0)
    original = boxes([(None, 5, left), (None, 5, right)])
    turned = boxes([(None, 5, moved(right, 1, 1, 1, 1)), (None, 5, far), (None, 5, left)])
    quality = check(original, turned)
    told = {
        (row["original_x1"], row["round1_x1"]): row["rules"]
        for row in quality.items.filter(pl.col("what") == "box").iter_rows(named=True)
    }
    assert told == {(10.0, 10.0): [], (200.0, 201.0): [], (None, 100.0): ["added"]}


def test_agreement_of_a_case_worked_by_hand() -> None:
    # A box of 10 x 10 moves by 2 px along x: intersection 80, union 120. One is equal, one is missing.
    square: Corners = (0.0, 0.0, 10.0, 10.0)
    original = boxes([("A", 0, square), ("B", 0, square), ("C", 0, square)])
    first = boxes([("A", 0, moved(square, 2, 0, 2, 0)), ("B", 0, square)])
    table = check(original, first, config=QualityConfig(edge_px=4)).agreement
    row = table.row(by_predicate=(pl.col("level") == "kind") & (pl.col("group") == "box"), named=True)
    assert (row["items"], row["both"], row["only_first"], row["only_second"]) == (3, 2, 1, 0)
    assert row["mean_iou"] == pytest.approx((80 / 120 + 1) / 2)
    assert row["share_edges"] == 0.5
    assert row["mean_edge_px"] == pytest.approx(4.0)


def test_what_is_checked_against_itself_agrees_and_keeps_its_own_faults() -> None:
    rounds = generate_annotation_rounds()
    config = QualityConfig(reviewers_differ=False)
    quality = check(rounds.round1, rounds.round1, rounds.round1, config=config)
    between = quality.findings.filter(pl.col("stage").str.contains(" to "))
    assert between.is_empty()
    assert quality.agreement["mean_iou"].drop_nulls().unique().to_list() == [1.0]
    assert quality.agreement["mean_start"].drop_nulls().unique().to_list() == [0.0]
    assert set(quality.labels["kappa"].drop_nulls()) == {1.0}


def test_the_order_of_rows_changes_nothing() -> None:
    rounds = generate_annotation_rounds()
    turned = rounds.round1.with_tables(
        boxes=rounds.round1.boxes.reverse(), queries=rounds.round1.queries.reverse()
    )
    plain, other = (check(rounds.original, each, rounds.round2) for each in (rounds.round1, turned))
    assert plain.items.drop("item").equals(other.items.drop("item"))
    assert plain.agreement.equals(other.agreement)
    assert plain.labels.equals(other.labels)


def test_synonyms_and_spelling_are_no_difference() -> None:
    def acting(word: str) -> Scenes:
        return one_box(HERE).with_tables(
            labels=pl.DataFrame({"box": [0], "kind": ["action"], "label": [0]}),
            meta=Meta(vocabularies={"action": (word,)}),
        )

    assert only(check(acting("cheering/chanting"), acting("Chanting/Cheering")), "box")["status"] == "pass"
    unknown = only(check(acting("hitting"), acting("smiting")), "box")
    assert unknown["rules"] == ["label unknown", "label changed"]
    own = Dictionary({"interaction": ["smiting"]})
    assert only(check(acting("smiting"), acting("smiting"), dictionary=own), "box")["status"] == "pass"


def test_descriptions_are_searched_only_with_a_list() -> None:
    words = ForbiddenWords(["man"])
    assert only(check(spans(0, 9), spans(0, 9)), "sentence")["status"] == "pass"
    found = only(check(spans(0, 9), spans(0, 9), words=words), "sentence")
    assert found["reasons"] == ["forbidden word: the description says 'man' (original, round 1)"]


def test_names_that_never_meet_and_a_foreign_dictionary_are_pointed_out() -> None:
    quality = check(boxes([("P", 0, HERE)]), boxes([("p", 0, HERE)]))
    hints = quality.facts["hints"]
    assert [hint.split(" (")[0] for hint in hints] == [
        "no person of the original is in round 1",
        "no box of the original is in round 1",
    ]
    assert "'P' against 'p'" in hints[0]
    rounds = generate_annotation_rounds()
    own = Dictionary({"action": ["juggling"]})
    foreign = check(rounds.original, rounds.round1, dictionary=own).facts["hints"]
    assert foreign == ["most labels are not in the dictionary of given: name your own, or none at all"]
    assert check(rounds.original, rounds.round1).facts["hints"] == []


def test_files_about_other_things_are_refused() -> None:
    other = one_box(HERE).videos.with_columns(video=pl.lit("film"))
    elsewhere = Scenes(
        videos=other, boxes=one_box(HERE).boxes.with_columns(pl.lit("film").alias("video"), tube=None)
    )
    with pytest.raises(InputError, match=r"no video in common: \['clip'\] against \['film'\]"):
        check(one_box(HERE), elsewhere)
    with pytest.raises(InputError, match="the original holds no box"):
        check(Scenes(videos=other), elsewhere)


@pytest.mark.parametrize(
    "wrong",
    [{"edge_px": -1}, {"frames": float("nan")}, {"frame_rate": 0}, {"resolution": (0, 720)}],
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="should be"):
        QualityConfig(**wrong)
