"""Tracking metrics against TrackEval, hand-worked cases and laws."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_tracks import tables, track_set

from example_counts import tried
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.metrics.tracking import (
    STEPS,
    TrackCounts,
    evaluate_tracks,
    list_values,
    score_floors,
    select_best_threshold,
    track_counts,
    track_rates,
)
from roadaware.metrics.tracking_pairs import TrackingConfig, assign_pairs
from roadaware.scenes.tables import Predictions, Scenes

REFERENCE, DEFAULT = TrackingConfig.reference(), TrackingConfig.default()
EDGES = ("x1_px", "y1_px", "x2_px", "y2_px")
NAMES = {
    "hota": "HOTA",
    "det_a": "DetA",
    "ass_a": "AssA",
    "det_re": "DetRe",
    "det_pr": "DetPr",
    "ass_re": "AssRe",
    "ass_pr": "AssPr",
    "owta": "OWTA",
    "loc_a": "LocA",
    "idf1": "IDF1",
    "id_re": "IDR",
    "id_pr": "IDP",
    "mota": "MOTA",
    "moda": "MODA",
    "motp": "MOTP",
    "recall": "CLR_Re",
    "precision": "CLR_Pr",
    "f1": "CLR_F1",
    "mostly_tracked": "MTR",
    "partly_tracked": "PTR",
    "mostly_lost": "MLR",
    "switches": "IDSW",
    "fragmentations": "Frag",
}


@pytest.fixture(scope="module")
def published() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = pytest.importorskip("trackeval.metrics", reason="TrackEval is the oracle; not installed")
        quiet = {"PRINT_CONFIG": False}
        return [metrics.HOTA(), metrics.CLEAR(quiet), metrics.Identity(quiet)]


def sequence(scenes: Scenes, predictions: Predictions, video: str) -> dict[str, Any]:
    """One video as TrackEval wants it: dense identities and a matrix of overlaps for each frame."""
    sides = [tables.boxes.filter(pl.col("video") == video) for tables in (scenes, predictions)]
    ids = [{tube: k for k, tube in enumerate(sorted(set(side["tube"].to_list())))} for side in sides]
    data: dict[str, Any] = {"gt_ids": [], "tracker_ids": [], "similarity_scores": []}
    for frame in scenes.frames.filter(pl.col("video") == video)["frame"].sort().to_list():
        held = [side.filter(pl.col("frame") == frame).sort("tube") for side in sides]
        for name, side, of in zip(("gt_ids", "tracker_ids"), held, ids, strict=True):
            data[name].append(np.array([of[tube] for tube in side["tube"]], dtype=int))
        data["similarity_scores"].append(iou(*(side.select(EDGES).to_numpy() for side in held)))
    return {
        **data,
        "num_timesteps": len(data["gt_ids"]),
        "num_gt_ids": len(ids[0]),
        "num_tracker_ids": len(ids[1]),
        "num_gt_dets": len(sides[0]),
        "num_tracker_dets": len(sides[1]),
    }


def assert_same(found: dict[str, Any], wanted: dict[str, Any], metric: Any) -> None:
    for name, theirs in NAMES.items():
        if theirs in metric.fields:
            assert found[name] == pytest.approx(np.mean(wanted[theirs]), abs=1e-12), name


@tried(25)
@given(
    seed=st.integers(0, 10_000),
    crowd=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    tracks=st.sampled_from([0.5, 3.0, 6.0]),
)
def test_every_metric_is_what_trackeval_finds(
    published: list[Any], seed: int, crowd: float, tracks: float
) -> None:
    scenes, predictions = track_set(seed, crowd=crowd, tracks=tracks)
    counts = track_counts(predictions, scenes, REFERENCE)
    each = track_rates(counts, np.eye(len(counts.videos), dtype=int))
    parts = [sequence(scenes, predictions, video) for video in counts.videos]
    for metric in published:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {
                video: metric.eval_sequence(part) for video, part in zip(counts.videos, parts, strict=True)
            }
            whole = metric.combine_sequences(found)
        assert_same(track_rates(counts), whole, metric)
        for at, video in enumerate(counts.videos):
            if parts[at]["num_gt_dets"] and parts[at]["num_tracker_dets"]:
                assert_same({name: values[at] for name, values in each.items()}, found[video], metric)


def test_every_metric_has_a_reference_and_a_row_in_the_page() -> None:
    scenes, predictions = track_set(1)
    made = list(track_rates(track_counts(predictions, scenes)))
    assert set(made) == set(NAMES), "what TrackEval has not needs a plain reference in this file"
    page = Path(__file__).parents[3] / "docs" / "metrics.md"
    table = page.read_text(encoding="utf-8").partition("\n## Tracks\n")[2].partition("\n## ")[0]
    first = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert [name for name in made if f"`{name}`" not in first] == [], "docs/metrics.md should name them"


def one_video(
    truth: dict[int, Any], predictions: dict[int, Any], frames: int = 10
) -> tuple[Scenes, Predictions]:
    """Tubes as number to {frame: box} in the video `v`."""
    sides = [
        [("v", frame, tube, box) for tube, held in side.items() for frame, box in held.items()]
        for side in (truth, predictions)
    ]
    (boxes, tubes), (predicted, paths) = (tables(side) for side in sides)
    every = pl.DataFrame({"video": ["v"] * frames, "frame": range(frames), "annotated": [True] * frames})
    scenes = Scenes(videos=pl.DataFrame({"video": ["v"]}), frames=every, boxes=boxes, tubes=tubes)
    return scenes, Predictions(boxes=predicted, tubes=paths)


def stay(frames: Any, box: tuple[float, ...]) -> dict[int, tuple[float, ...]]:
    """The same box in every frame."""
    return dict.fromkeys(frames, box)


HERE, THERE = (0.0, 0.0, 10.0, 10.0), (100.0, 0.0, 110.0, 10.0)


def test_a_track_handed_from_one_path_to_another() -> None:
    scenes, predictions = one_video(
        {1: stay(range(10), HERE)},
        {5: stay(range(6), HERE), 6: stay(range(6, 10), HERE)},
    )
    found = evaluate_tracks(predictions, scenes).values()
    # Everything is found, so DetA is 1; AssA is the mean of 6 boxes at 6/10 and 4 boxes at 4/10.
    assert found["det_a"] == 1.0
    assert found["ass_a"] == pytest.approx(0.6 * 0.6 + 0.4 * 0.4)
    assert found["hota"] == pytest.approx(np.sqrt(0.52))
    # One path can be the track's: 6 of 10 boxes.
    assert found["idf1"] == pytest.approx(0.6)
    assert found["mota"] == pytest.approx(1 - 1 / 10)
    assert found["moda"] == found["loc_a"] == found["ass_pr"] == 1.0
    assert found["ass_re"] == pytest.approx(0.52)
    assert found["owta"] == pytest.approx(np.sqrt(0.52))
    assert (found["switches"], found["fragmentations"], found["mostly_tracked"]) == (1.0, 0.0, 1.0)


def test_values_of_the_whole_set_have_their_interval_and_what_it_counts() -> None:
    scenes, predictions = track_set(1)
    found = evaluate_tracks(predictions, scenes)
    listed = list_values(found)
    assert {name: each["value"] for name, each in listed.items()} == found.values()
    hota = found.of_group().row(by_predicate=pl.col("metric") == "hota", named=True)
    assert listed["hota"] == {
        "value": hota["value"],
        **{name: hota[f"{name}_video"] for name in ("low", "high", "units", "caution")},
    }


def test_a_track_that_is_lost_and_found_again() -> None:
    scenes, predictions = one_video(
        {1: stay(range(10), HERE), 2: stay(range(10), THERE)},
        {5: stay((0, 1, 2, 7, 8, 9), HERE), 6: stay(range(10), THERE)},
    )
    found = evaluate_tracks(predictions, scenes).values()
    assert (found["switches"], found["fragmentations"]) == (0.0, 1.0)
    assert found["recall"] == pytest.approx(16 / 20)
    assert found["precision"] == 1.0
    assert found["ass_a"] == pytest.approx((10 * 1.0 + 6 * 0.6) / 16)


def test_frames_without_any_prediction_break_no_track() -> None:
    scenes, predictions = one_video({1: stay(range(10), HERE)}, {5: stay((0, 1, 2, 7, 8, 9), HERE)})
    assert evaluate_tracks(predictions, scenes).value("fragmentations") == 0.0


def test_frames_without_any_truth_break_no_track() -> None:
    seen = stay((0, 1, 2, 7, 8, 9), HERE)
    scenes, predictions = one_video({1: seen}, {5: seen, 6: stay(range(10), THERE)})
    assert evaluate_tracks(predictions, scenes).value("fragmentations") == 0.0


def test_a_single_box_is_a_track() -> None:
    found = evaluate_tracks(*reversed(one_video({1: {0: HERE}}, {5: {0: HERE}}))).values()
    ones = ("hota", "det_a", "ass_a", "det_re", "det_pr", "ass_re", "ass_pr", "owta", "loc_a", "idf1", "mota")
    assert {name: found[name] for name in ones} == dict.fromkeys(ones, 1.0)
    table = track_counts(*reversed(one_video({1: {0: HERE}, 2: {}}, {5: {0: HERE}, 6: {1: HERE}}))).table
    assert [table[name].tolist() for name in ("tracks", "paths", "truth", "predictions")] == [
        [1],
        [2],
        [1],
        [2],
    ]


def test_a_pair_that_goes_on_is_kept_although_another_overlaps_more() -> None:
    better = (0.0, 0.0, 10.0, 9.0)
    worse = (0.0, 0.0, 10.0, 8.0)
    scenes, predictions = one_video({1: {0: HERE, 1: HERE}}, {5: {0: HERE, 1: worse}, 6: {1: better}})
    found = evaluate_tracks(predictions, scenes).values()
    assert found["switches"] == 0.0
    assert found["motp"] == pytest.approx((1.0 + 0.8) / 2)


def test_a_false_path_costs_precision_and_accuracy() -> None:
    scenes, predictions = one_video(
        {1: stay(range(4), HERE)},
        {5: stay(range(4), HERE), 6: stay(range(12), THERE)},
    )
    # Two of the predictions lie behind the last annotated frame and do not count.
    found = evaluate_tracks(predictions, scenes).values()
    assert found["mota"] == pytest.approx(1 - 10 / 4)
    assert found["det_a"] == pytest.approx(4 / 14)
    assert found["idf1"] == pytest.approx(4 / (4 + 5))


def test_truth_against_itself_is_all_right() -> None:
    scenes, _ = track_set(2, tracks=5.0, crowd=0.9)
    predictions = Predictions(boxes=scenes.boxes, tubes=scenes.tubes)
    found = evaluate_tracks(predictions, scenes).values()
    for name in NAMES:
        zero = name in ("switches", "partly_tracked", "mostly_lost", "fragmentations")
        assert name == "fragmentations" or found[name] == pytest.approx(0.0 if zero else 1.0), name
    assert found["hota"] == pytest.approx(1.0)


def test_nothing_predicted_and_nothing_true() -> None:
    scenes, predictions = track_set(3, tracks=4.0)
    silent = evaluate_tracks(Predictions(), scenes).values()
    assert (silent["hota"], silent["idf1"], silent["recall"], silent["mota"]) == (0.0, 0.0, 0.0, 0.0)
    assert silent["precision"] is None
    assert silent["loc_a"] is None
    nothing = Scenes(videos=scenes.videos, frames=scenes.frames)
    empty = evaluate_tracks(predictions, nothing).values()
    assert (empty["hota"], empty["idf1"], empty["precision"]) == (0.0, 0.0, 0.0)
    assert empty["mota"] is None
    both = evaluate_tracks(Predictions(), nothing)
    assert all(both.value(name) is None for name in NAMES if name not in ("switches", "fragmentations"))
    published = evaluate_tracks(Predictions(), nothing, REFERENCE)
    assert (published.value("hota"), published.value("loc_a")) == (0.0, 1.0)


def assert_equal(a: TrackCounts, b: TrackCounts) -> None:
    assert a.videos == b.videos
    for name, values in a.table.items():
        assert values == pytest.approx(b.table[name]), name


def test_parts_merge_to_the_whole_and_a_video_comes_once() -> None:
    scenes, predictions = track_set(4, videos=4)
    names = scenes.videos["video"].to_list()
    parts = [track_counts(predictions, scenes.only(some)) for some in (names[:1], names[1:])]
    assert_equal(parts[0].merge(parts[1]), track_counts(predictions, scenes))
    with pytest.raises(UsageError, match=r"1 videos lie in both parts, first \['v0'\]"):
        parts[0].merge(parts[0])
    with pytest.raises(UsageError, match="counts of different configs"):
        parts[0].merge(track_counts(predictions, scenes.only(names[1:]), REFERENCE))


def test_the_order_of_rows_changes_nothing() -> None:
    scenes, predictions = track_set(5, crowd=0.9)
    mixed = predictions.with_tables(
        boxes=predictions.boxes.sample(fraction=1.0, shuffle=True, seed=1), tubes=predictions.tubes.reverse()
    )
    turned = scenes.with_tables(boxes=scenes.boxes.reverse(), tubes=scenes.tubes.reverse())
    assert_equal(track_counts(mixed, turned), track_counts(predictions, scenes))


def test_predictions_in_other_pixels_are_brought_to_those_of_the_truth() -> None:
    scenes, predictions = track_set(6)
    sized = scenes.with_tables(videos=scenes.videos.with_columns(width_px=pl.lit(640), height_px=pl.lit(480)))
    halves = [pl.col(edge) / 2 for edge in EDGES]
    videos = sized.videos.with_columns(width_px=pl.lit(320), height_px=pl.lit(240))
    small = predictions.with_tables(videos=videos, boxes=predictions.boxes.with_columns(halves))
    there, here = track_counts(small, sized), track_counts(predictions, scenes)
    for name, values in here.table.items():
        assert there.table[name] == pytest.approx(values, rel=1e-4), name


def test_boxes_between_detections_count_only_where_asked() -> None:
    scenes, predictions = one_video({1: stay(range(4), HERE)}, {5: stay(range(4), HERE)})
    boxes = predictions.boxes.with_columns(interpolated=pl.col("frame") == 2)
    predictions = predictions.with_tables(boxes=boxes)
    assert evaluate_tracks(predictions, scenes).value("recall") == 1.0
    seen = TrackingConfig(interpolated_boxes=False)
    assert evaluate_tracks(predictions, scenes, seen).value("recall") == 0.75


def test_frames_that_nobody_looked_at_do_not_count() -> None:
    scenes, predictions = one_video({1: stay(range(4), HERE)}, {5: stay(range(4), HERE), 6: {9: THERE}})
    looked = scenes.frames.with_columns(annotated=pl.col("frame") < 4)
    assert evaluate_tracks(predictions, scenes).value("precision") == pytest.approx(4 / 5)
    assert evaluate_tracks(predictions, scenes.with_tables(frames=looked)).value("precision") == 1.0
    told = scenes.frames.with_columns(annotated=pl.when(pl.col("frame") < 4).then(True))
    assert evaluate_tracks(predictions, scenes.with_tables(frames=told)).value("precision") == 1.0
    unsaid = scenes.with_tables(frames=scenes.frames.drop("annotated"))
    assert evaluate_tracks(predictions, unsaid).value("precision") == pytest.approx(4 / 5)


def test_intervals_hold_the_value_and_groups_are_sets_of_their_own() -> None:
    scenes, predictions = track_set(7, videos=8)
    names = scenes.videos["video"].to_list()
    groups = {video: "night" if at % 2 else "day" for at, video in enumerate(names)}
    result = evaluate_tracks(predictions, scenes, resamples=200, groups=groups)
    assert result.groups == ("day", "night")
    row = result.row("hota")
    assert row["low_video"] < row["value"] < row["high_video"]
    assert (row["valid_draws_video"], row["caution_video"]) == (8, "few units")
    switches = result.row("switches")
    each = result.instances("video")["switches"].to_numpy()
    error = each.std(ddof=1) * np.sqrt(len(each))
    assert switches["value"] == each.sum()
    assert 1.9 * error < switches["high_video"] - switches["value"] < 9 * error
    mota = result.row("mota")
    assert mota["low_video"] < mota["value"] < mota["high_video"] <= 1
    again = evaluate_tracks(predictions, scenes, resamples=200, groups=groups)
    assert result.summary.equals(again.summary)
    alone = evaluate_tracks(predictions, scenes.only(names[::2]))
    assert result.values("day") == pytest.approx(alone.values(), nan_ok=True)
    assert result.counts.filter(pl.col("group").is_null())["truth"].item() == len(scenes.boxes)
    with pytest.raises(UsageError, match="resamples should be 0 or more"):
        evaluate_tracks(predictions, scenes, resamples=-1)


def test_rows_of_videos_and_tracks_add_up() -> None:
    scenes, predictions = track_set(11, crowd=0.9, tracks=5.0)
    result = evaluate_tracks(predictions, scenes)
    videos, tracks = result.instances("video"), result.instances("track")
    assert videos["truth"].sum() == tracks["boxes"].sum() == len(scenes.boxes)
    assert tracks["switches"].sum() == videos["switches"].sum() == result.value("switches") > 0
    assert tracks["fragmentations"].sum() == result.value("fragmentations") > 0
    assert tracks["found"].sum() == pytest.approx(result.value("recall") * len(scenes.boxes))
    overlap = (tracks["overlap"] * tracks["found"]).sum() / tracks["found"].sum()
    assert overlap == pytest.approx(result.value("motp"))
    assert (tracks["paths"] <= tracks["found"]).all()


def test_tracks_are_mostly_tracked_above_four_fifths_and_mostly_lost_below_one_fifth() -> None:
    found = {1: 9, 2: 8, 3: 2, 4: 1, 5: 0}  # of ten boxes each
    row = {n: (100.0 * n, 0.0, 100.0 * n + 10, 10.0) for n in found}
    scenes, predictions = one_video(
        {n: stay(range(10), row[n]) for n in found},
        {n: stay(range(k), row[n]) for n, k in found.items() if k},
    )
    rates = evaluate_tracks(predictions, scenes).values()
    groups = [rates[name] for name in ("mostly_tracked", "partly_tracked", "mostly_lost")]
    assert groups == pytest.approx([1 / 5, 2 / 5, 2 / 5])
    assert rates["recall"] == pytest.approx(20 / 50)
    assert rates["f1"] == pytest.approx(40 / 70)


def test_an_overlap_of_exactly_the_threshold_is_enough() -> None:
    half, less = (0.0, 0.0, 10.0, 5.0), (0.0, 0.0, 10.0, 4.99)
    for box, right in ((half, 1.0), (less, 0.0)):
        found = evaluate_tracks(*reversed(one_video({1: stay(range(4), HERE)}, {5: stay(range(4), box)})))
        assert (found.value("recall"), found.value("idf1")) == (right, right)
        alphas = track_counts(*reversed(one_video({1: {0: HERE}}, {5: {0: box}}))).table["hota_tp"][0]
        assert alphas.tolist() == [1.0] * (9 + int(right)) + [0.0] * (10 - int(right))


def test_a_switch_costs_one_and_is_told_from_being_found_again() -> None:
    """The track is lost in frames 3 and 4 while another is seen, and goes on with another path."""
    scenes, predictions = one_video(
        {1: stay(range(8), HERE), 2: stay(range(8), THERE)},
        {5: stay(range(3), HERE), 6: stay(range(5, 8), HERE), 7: stay(range(8), THERE)},
    )
    found = evaluate_tracks(predictions, scenes).values()
    assert (found["switches"], found["fragmentations"]) == (1.0, 1.0)
    assert found["mota"] == pytest.approx(1 - (2 + 1) / 16)
    assert found["moda"] == pytest.approx(1 - 2 / 16)
    # One of the two paths is the track's: 8 + 3 of 16 true and 14 predicted boxes.
    assert (found["id_re"], found["id_pr"]) == pytest.approx((11 / 16, 11 / 14))
    assert found["idf1"] == pytest.approx(11 / 15)


def test_counts_are_of_the_videos_asked_for_and_may_be_weighted() -> None:
    scenes, predictions = track_set(4, videos=3)
    counts = track_counts(predictions, scenes)
    truth = counts.table["truth"]
    assert repr(counts) == f"TrackCounts(3 videos, {int(truth.sum()):,} true boxes)"
    assert counts.totals()["truth"] == truth.sum()
    assert counts.totals(np.array([2, 0, 1]))["truth"] == 2 * truth[0] + truth[2]
    assert counts.totals(np.eye(3))["truth"].tolist() == truth.tolist()
    assert counts.table["frames"].tolist() == [12.0] * 3


def test_the_floor_with_the_greatest_f1_is_the_best() -> None:
    """Three right boxes score 0.3, 0.5 and 0.7, a wrong one 0.4."""
    scenes, predictions = one_video({1: stay(range(3), HERE)}, {5: stay(range(3), HERE), 6: {0: THERE}})
    score = pl.Series("score", [0.3, 0.5, 0.7, 0.4])
    predictions = predictions.with_tables(boxes=predictions.boxes.with_columns(score))
    table = score_floors(predictions, scenes, floors=(0.6, 0.1, 0.4, 0.7, 0.45, 0.71))
    assert table.columns == ["min_score", "precision", "recall", "f1", "mota", "hota"]
    assert table["min_score"].to_list() == [0.1, 0.4, 0.45, 0.6, 0.7, 0.71]
    expected = [6 / 7, 4 / 6, 4 / 5, 2 / 4, 2 / 4, 0.0]
    assert table["f1"].fill_null(0.0).to_list() == pytest.approx(expected)
    assert table["mota"].to_list()[:3] == pytest.approx([1 - 1 / 3, 1 - 2 / 3, 1 - 1 / 3])
    assert select_best_threshold(table) == 0.1
    assert select_best_threshold(table.filter(pl.col("min_score") > 0.1)) == 0.45
    assert select_best_threshold(table.with_columns(f1=pl.lit(0.5))) == 0.1
    with pytest.raises(InputError, match="no floor tells boxes"):
        select_best_threshold(table.filter(pl.col("min_score") > 0.7))
    assert (STEPS[0], STEPS[1], STEPS[-1], len(STEPS)) == (0.05, 0.06, 0.8, 76)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"threshold": 0.0}, "threshold should lie in"),
        ({"alphas": (0.5, 1.2)}, "alphas should lie in"),
        ({"alphas": ()}, "alphas should lie in"),
        ({"pixel_offset": -1.0}, "pixel_offset should be 0 or more"),
        ({"interpolated_boxes": 1}, "interpolated_boxes should be true or false"),
        ({"undefined": "zero"}, "undefined should be one of null, published"),
    ],
)
def test_a_config_says_what_is_wrong_with_it(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        TrackingConfig(**wrong)


def test_pairs_that_score_nothing_are_not_assigned() -> None:
    """One frame with one box of each side, or with two: a pair of score 0 is none."""
    for side in (1, 2):
        boxes = np.arange(side)
        rows = np.array([(a, b) for a in boxes for b in boxes])
        seen = SimpleNamespace(frame=np.zeros(side, np.int64))
        pairs = SimpleNamespace(
            truth=seen,
            predictions=seen,
            true_box=rows[:, 0],
            predicted_box=rows[:, 1],
            frame=np.zeros(len(rows), np.int64),
            frame_video=np.zeros(1, np.int64),
            similarity=np.full(len(rows), 0.5),
        )
        assert assign_pairs(pairs, np.zeros(len(rows))).tolist() == []  # type: ignore[arg-type]
