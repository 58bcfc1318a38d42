"""Images worth a look: their order, what a list costs, and what it finds beside chance and the best."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.annotation.cost import (
    SHARES,
    Labour,
    Worth,
    compute_discovery_curve,
    estimate_cost,
    measure_worth,
)
from roadaware.analysis.annotation.selection import SelectionConfig, list_images, rank_images
from roadaware.demo_data.labelling import generate_labelling_sets
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

TRUTH, PREDICTIONS = generate_labelling_sets(seed=1, videos=12)
PICTURES = TRUTH.frames.select("video", "frame")


def _predictions(*rows: tuple[str, int, float]) -> Predictions:
    held = [(n, video, frame, 0.0, 0.0, 9.0, 9.0, score) for n, (video, frame, score) in enumerate(rows)]
    return Predictions(
        boxes=pl.DataFrame(held, schema=["box", "video", "frame", *CORNERS, "score"], orient="row")
    )


def _order(predictions: Predictions, pictures: list[tuple[str, int]], **config) -> list[tuple[str, int]]:
    table = pl.DataFrame(pictures, schema=["video", "frame"], orient="row")
    return rank_images(predictions, table, SelectionConfig(**config)).select("video", "frame").rows()


def test_a_fresh_video_comes_before_more_of_the_same():
    predictions = _predictions(("a", 0, 0.9), ("a", 1, 0.8), ("b", 0, 0.5), ("b", 0, 0.2))
    pictures = [("a", 0), ("a", 1), ("b", 0), ("c", 0)]
    assert _order(predictions, pictures, by="best", repeat=1.0) == [("a", 0), ("a", 1), ("b", 0), ("c", 0)]
    assert _order(predictions, pictures, by="best", repeat=0.5) == [("a", 0), ("b", 0), ("a", 1), ("c", 0)]
    assert _order(predictions, pictures, by="count")[0] == ("b", 0)
    assert _order(predictions, pictures, by="sum", repeat=1.0)[:3] == [("a", 0), ("a", 1), ("b", 0)]
    assert sorted(_order(predictions, pictures, by="count", least_score=0.3, repeat=1.0)[:3]) == pictures[:3]


def test_images_of_equal_worth_come_by_chance():
    """In the order of the table, the first videos of a set would always be ahead, whatever they show."""
    pictures = pl.DataFrame({"video": [f"v{n:02d}" for n in range(40)], "frame": [0] * 40})
    predictions = _predictions(*((video, 0, 0.5) for video in pictures["video"]))
    orders = [rank_images(predictions, pictures, seed=seed)["video"].to_list() for seed in (0, 1, 1)]
    assert orders[1] == orders[2] != orders[0] != pictures["video"].to_list()


def test_a_thing_is_asked_for_once():
    """By hand: things that no image above shows, times 0.4 for each image of the same video above."""
    rows = (
        ("a", 0, 0.8),
        ("a", 0, 0.6),
        ("a", 1, 0.9),
        ("a", 2, 0.5),
        ("a", 2, 0.5),
        ("b", 0, 0.6),
        ("b", 1, 0.9),
    )
    predictions = _predictions(*rows)
    predictions = predictions.with_tables(
        boxes=predictions.boxes.with_columns(tube=pl.Series([7, 8, 7, 9, None, 1, 1]))
    )
    pictures = [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 0), ("b", 1)]
    known = pl.DataFrame(pictures, schema=["video", "frame"], orient="row")
    for seed in range(8):
        table = rank_images(predictions, known, SelectionConfig(by="new", repeat=0.4), seed=seed)
        first, second, third = table.select("video", "frame").rows()[:3]
        # Two new things each: 7 and 8, or 9 and a box of no thing. Then one of b, then what is left of a.
        assert {first, third} == {("a", 0), ("a", 2)}
        assert second[0] == "b"
        assert table["priority"].to_list()[:3] == pytest.approx([2.0, 1.0, 0.8])
        assert table["novelty"].to_list()[:3] == pytest.approx([1.0, 1.0, 0.4])
        # Nothing new is left: each video in turn, b first, of which fewer stand above.
        rest = table.tail(3)
        assert rest["priority"].to_list() == [0.0, 0.0, 0.0]
        assert rest["video"].to_list() == ["b", "a", "a"]
        assert sorted(table.select("video", "frame").rows()) == sorted(pictures)
    # A thing of one video is none of another.
    apart = predictions.with_tables(boxes=predictions.boxes.with_columns(tube=pl.lit(1)))
    assert (rank_images(apart, known, SelectionConfig(by="new"))["priority"] > 0).sum() == 2
    with pytest.raises(UsageError, match="no column 'tube'"):
        rank_images(_predictions(*rows), PICTURES, SelectionConfig(by="new"))


def test_chances_of_new_things_and_new_views_are_what_an_image_is_worth():
    """By hand: chances that no image above shows, and 0.4 for what is seven frames away, times 0.5 for each above."""
    rows = (("a", 0, 0.9), ("a", 0, 0.9), ("a", 0, 0.9), ("a", 1, 0.9), ("a", 7, 0.9), ("b", 0, 0.1))
    predictions = _predictions(*rows)
    added = {
        "tube": pl.Series([7, 7, 8, 7, 9, 1]),
        "chance": pl.Series([0.5, 0.5, 0.25, 0.5, 0.1, 0.6], dtype=pl.Float32),
    }
    predictions = predictions.with_tables(boxes=predictions.boxes.with_columns(**added))
    pictures = [("a", 0), ("a", 1), ("a", 7), ("b", 0), ("c", 0)]
    known = pl.DataFrame(pictures, schema=["video", "frame"], orient="row")
    for seed in range(4):
        table = rank_images(predictions, known, SelectionConfig(by="chance"), seed=seed)
        wanted = [("a", 0), ("b", 0), ("c", 0), ("a", 7), ("a", 1)]
        assert table.select("video", "frame").rows() == wanted
        assert table["worth"].to_list() == pytest.approx([1.15, 1.0, 0.4, 0.5, 0.9])
        # Of the last one all is known and its neighbour stands above.
        assert table["priority"].to_list() == pytest.approx([1.15, 1.0, 0.4, 0.25, 0.4 / 7 / 4])
    with pytest.raises(UsageError, match=r"no column 'chance'.*--track"):
        rank_images(_predictions(*rows), PICTURES, SelectionConfig(by="chance"))


def test_worth_novelty_and_reasons():
    predictions = _predictions(("a", 0, 0.5), ("a", 0, 0.5), ("a", 1, 0.6))
    table = rank_images(
        predictions, pl.DataFrame({"video": ["a", "a", "b"], "frame": [0, 1, 0]}), SelectionConfig(by="any")
    )
    assert table.select("rank", "frame", "worth", "novelty", "priority").rows() == [
        (1, 0, 0.75, 1.0, 0.75),
        (2, 1, pytest.approx(0.6), 0.5, pytest.approx(0.3)),
        (3, 0, 0.0, 1.0, 0.0),
    ]
    assert table["reason"].to_list() == [
        "2 proposals, best score 0.5",
        "1 proposal, best score 0.6; 1 of the same video stand higher",
        "no proposal",
    ]


def test_every_picture_is_listed_once_and_priorities_fall():
    for by in ("count", "any", "best", "sum"):
        table = rank_images(PREDICTIONS, PICTURES, SelectionConfig(by=by))
        assert sorted(table.select("video", "frame").rows()) == sorted(PICTURES.rows())
        assert (np.diff(table["priority"].to_numpy()) <= 1e-12).all()
        assert table["rank"].to_list() == list(range(1, len(PICTURES) + 1))


@pytest.mark.parametrize(
    ("config", "pictures", "told"),
    [
        ({"column": "none"}, PICTURES, "no column 'none'; numbers are"),
        ({"column": "x1_px"}, PICTURES, "does not lie from 0 to 1"),
        ({}, PICTURES.head(1), "proposals are on images that are not among"),
        ({}, PICTURES.clear(), "no images to rank"),
    ],
)
def test_lists_that_cannot_be_made(config, pictures, told):
    with pytest.raises(UsageError, match=told):
        rank_images(PREDICTIONS, pictures, SelectionConfig(**config))


def test_settings_that_make_no_sense():
    for wrong in ({"repeat": 0.0}, {"repeat": 1.5}, {"least_score": 2.0}):
        with pytest.raises(UsageError):
            SelectionConfig(**wrong)
    for seconds in ({"look_s": 0.0}, {"draw_s": -1.0}, {"judge_s": float("nan")}):
        with pytest.raises(UsageError):
            Labour(**seconds)


def test_what_a_list_costs_without_truth():
    table = rank_images(
        _predictions(("a", 0, 0.5), ("a", 0, 0.5)), pl.DataFrame({"video": ["a", "b"], "frame": [0, 0]})
    )
    found = estimate_cost(table, Labour(look_s=10, judge_s=2))
    assert (found["listed"], found["seconds"], found["seconds_of_all"]) == (1, 14, 20)
    assert found["saved"] == pytest.approx(0.3)
    assert estimate_cost(table, Labour(), most=9)["listed"] == 2


def test_hits_are_one_to_one_and_objects_are_tracks():
    table = rank_images(PREDICTIONS, PICTURES)
    worth = measure_worth(table, PREDICTIONS, TRUTH)
    assert worth.cases.sum() == len(TRUTH.boxes)
    assert worth.proposals.sum() == len(PREDICTIONS.boxes)
    assert (worth.hits <= np.minimum(worth.cases, worth.proposals)).all()
    assert len({each for held in worth.objects for each in held}) == TRUTH.boxes["tube"].n_unique()


def test_truth_without_corner_cases_is_told():
    table = rank_images(PREDICTIONS, PICTURES)
    with pytest.raises(InputError, match="does not say which boxes"):
        measure_worth(table, PREDICTIONS, TRUTH.with_tables(boxes=TRUTH.boxes.drop("corner_case")))
    with pytest.raises(InputError, match="nothing can be found"):
        measure_worth(
            table, PREDICTIONS, TRUTH.with_tables(boxes=TRUTH.boxes.with_columns(corner_case=pl.lit(False)))
        )


def _four() -> Worth:
    """Four images: the second shows object 0, the last both objects, by two proposals."""
    video = np.array(["a", "a", "b", "b"])
    counts = (np.array([1, 0, 0, 2]), np.array([0, 0, 0, 2]), np.array([0, 1, 0, 2]))
    return Worth(video, *counts, [[], [0], [], [0, 1]])


def test_the_curve_worked_by_hand():
    labour = Labour(look_s=10, judge_s=1, correct_s=5, draw_s=30)
    found = compute_discovery_curve(_four(), labour, points=5)
    assert found.found["list"].tolist() == [0.0, 0.0, 0.5, 0.5, 1.0]
    assert found.found["oracle"].tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    rows = {(row["found"], row["order"]): row for row in found.table.to_dicts()}
    half, whole = rows[0.5, "list"], rows[1.0, "list"]
    # images 1 and 2: a look each, one proposal to judge, one box to draw
    assert (half["looked_share"], half["seconds"]) == (0.5, 10 + 1 + 10 + 30)
    assert (whole["looked_share"], whole["seconds"]) == (1.0, 40 + 3 + 2 * 5 + 30)
    assert rows[1.0, "oracle"]["seconds"] == 10 + 2 + 10
    assert found.totals["seconds_of_all"] == 40 + 3 * 30
    assert whole["saved"] == pytest.approx(1 - 83 / 130)
    assert set(found.table["found"]) == set(SHARES)


def test_no_order_beats_the_oracle_and_chance_is_a_line_in_pictures():
    table = rank_images(PREDICTIONS, PICTURES)
    worth = measure_worth(table, PREDICTIONS, TRUTH)
    for unit in ("objects", "pictures"):
        found = compute_discovery_curve(worth, unit=unit, resamples=50)
        for order in ("list", "random", "spread"):
            assert (found.found["oracle"] >= found.found[order] - 1e-9).all()
            assert (np.diff(found.found[order]) >= -1e-12).all()
        assert (found.low["list"] <= found.found["list"] + 0.2).all()
    assert np.abs(found.found["random"] - found.looked).max() < 0.08


def test_intervals_do_not_hang_on_how_many_resamples_come_at_once():
    worth = measure_worth(rank_images(PREDICTIONS, PICTURES), PREDICTIONS, TRUTH)
    first, second = (compute_discovery_curve(worth, resamples=40, seed=3).table for _ in range(2))
    assert first.equals(second)
    own = first.filter(pl.col("order") == "list")
    assert (own["looked_low"] <= own["looked_share"]).all()
    assert (own["looked_share"] <= own["looked_high"]).all()


def test_images_that_no_table_lists_are_counted_and_never_a_million_million() -> None:
    videos = pl.DataFrame({"video": ["one", "two"], "n_frames": [2, 1]})
    assert list_images(Scenes(videos=videos)).rows() == [("one", 0), ("one", 1), ("two", 0)]
    with pytest.raises(InputError, match="1,000,000,000,002 frames are said of 2 videos"):
        list_images(Scenes(videos=videos.with_columns(n_frames=pl.Series([2, 10**12]))))
    with pytest.raises(InputError, match="9,223,372,036,854,775,808 frames are said"):
        list_images(Scenes(videos=videos.with_columns(n_frames=pl.Series([1 << 62, 1 << 62]))))
