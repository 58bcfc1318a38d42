"""Truth meets the newest output that was ready, on a clock that is exact, for boxes, tubes and frames."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream_sets import SIDES, moving, plain_holding, plain_schedule

from example_counts import tried
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import InputError, UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.metrics.streaming import (
    StreamingConfig,
    apply_latency,
    build_timetable,
    select_processed_frames,
)

EVERY = StreamingConfig("every")
LATEST = StreamingConfig("latest")


def held(predictions, truth, config, latency=None, video="v"):
    """The frame whose output holds at each frame of a video."""
    table = build_timetable(predictions, truth, config, latency)
    return table.filter(pl.col("video") == video)["from_frame"].to_list()


def judged(predictions, truth, **asked):
    return evaluate(
        predictions, truth, DetectionConfig.default(), video_thresholds=(0.2, 0.5), **asked
    ).values()


# The clock


def test_a_worker_that_takes_two_and_a_half_frames_by_hand() -> None:
    truth, predictions = moving(12, fps=10.0)
    # Frames 0, 2, 5, 7, 10 are taken up at 0, .25, .5, .75, 1.0 s and answered .25 s later.
    assert held(predictions, truth, LATEST, 0.25) == [None, None, None, 0, 0, 2, 2, 2, 5, 5, 7, 7]
    assert held(predictions, truth, EVERY, 0.25) == [None, None, None, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    queue = StreamingConfig("queue")
    assert held(predictions, truth, queue, 0.25) == [None, None, None, 0, 0, 1, 1, 1, 2, 2, 3, 3]


def test_a_faster_worker_than_the_stream_is_always_one_step_behind_at_most() -> None:
    truth, predictions = moving(6, fps=10.0)
    for config in (EVERY, LATEST, StreamingConfig("queue")):
        assert held(predictions, truth, config, 0.05) == [None, 0, 1, 2, 3, 4]
        assert held(predictions, truth, config, 0.0) == [0, 1, 2, 3, 4, 5]


def test_eta_takes_answers_that_come_early_enough() -> None:
    truth, predictions = moving(6, fps=10.0)
    assert held(predictions, truth, StreamingConfig("every", eta_s=0.1), 0.1) == [None, None, 0, 1, 2, 3]


@pytest.mark.parametrize("fps", [10, 12, 15, 24, 25, 29.97, 30000 / 1001, 30, 50, 59.94, 60, 1 / 3])
@pytest.mark.parametrize("frames", [1, 2, 7])
def test_an_answer_after_just_so_many_frames_is_just_in_time(fps, frames) -> None:
    truth, predictions = moving(400, fps=fps, speeds=())
    exact = Fraction(fps).limit_denominator(1001)
    for config in (EVERY, StreamingConfig("every", eta_s=float(frames / exact))):
        latency = float(frames / exact) if config is EVERY else 0.0
        assert held(predictions, truth, config, latency) == [None] * frames + list(range(400 - frames))
    late = float(frames / exact) + 2e-9
    assert held(predictions, truth, EVERY, late)[frames] is None


@tried(120)
@given(
    st.sampled_from([Fraction(10), Fraction(12), Fraction(30000, 1001)]),
    st.lists(st.integers(0, 700), min_size=25, max_size=25),
    st.sampled_from(["every", "latest", "queue"]),
    st.sampled_from(["finished", "taken"]),
    st.sampled_from([0, 40, 100]),
)
def test_schedulers_equal_a_loop_over_fractions(fps, work, scheduler, newest, eta) -> None:
    truth, predictions = moving(25, fps=float(fps), speeds=())
    config = StreamingConfig(scheduler, newest, eta_s=eta / 1000)
    outputs = plain_schedule(25, fps, [Fraction(w, 1000) for w in work], scheduler)
    expected = plain_holding(25, fps, outputs, Fraction(eta, 1000), newest)
    assert held(predictions, truth, config, {"v": [w / 1000 for w in work]}) == expected


def test_recorded_times_of_frames_and_of_boxes() -> None:
    truth, predictions = moving(5, fps=10.0)
    ready = [0.05, 0.35, 0.30, None, 0.4]
    said = predictions.with_tables(frames=predictions.frames.with_columns(ready_s=pl.Series(ready)))
    assert held(said, truth, StreamingConfig()) == [None, 0, 0, 2, 4]
    slow = [0.05, 0.4, 0.3, None, 9.0]
    said = predictions.with_tables(frames=predictions.frames.with_columns(ready_s=pl.Series(slow)))
    assert held(said, truth, StreamingConfig()) == [None, 0, 0, 2, 1]
    assert held(said, truth, StreamingConfig(newest="taken")) == [None, 0, 0, 2, 2]
    boxes = predictions.boxes.with_columns(ready_s=pl.col("frame") / 10 + 0.1)
    bare = predictions.with_tables(boxes=boxes, frames=predictions.frames.clear())
    assert held(bare, truth, StreamingConfig()) == [None, 0, 1, 2, 3]


def test_times_as_the_frames_tell_them() -> None:
    truth, predictions = moving(4, fps=10.0)
    times = truth.with_tables(frames=truth.frames.with_columns(t_s=pl.Series([0.0, 1.0, 1.25, 4.0])))
    assert held(predictions, times, StreamingConfig("every", times="t_s"), 0.5) == [None, 0, 0, 2]


@pytest.mark.parametrize("how", ["recorded", "recorded boxes", "latest", "t_s"])
def test_a_set_is_timed_as_its_videos_one_by_one(how) -> None:
    names = ("v", "w", "a", "left out")
    truth, predictions = moving(9, names=names)
    r = np.random.default_rng(3)
    truth = truth.with_tables(
        videos=truth.videos.with_columns(fps=pl.Series([10.0, 25.0, None, 12.0])),
        frames=truth.frames.with_columns(t_s=pl.col("frame") / 9 + pl.col("video").rank("dense") / 50),
    )
    ready = pl.col("frame") / 10 + pl.Series(r.random(9 * len(names)))
    frames = predictions.frames.with_columns(ready_s=ready).filter(pl.Series(r.random(9 * len(names)) < 0.7))
    boxes = predictions.boxes.join(
        frames.select("video", "frame", "ready_s"), on=["video", "frame"], how="left"
    )
    predictions = predictions.with_tables(frames=frames.filter(pl.col("video") != "left out"))
    if how == "recorded boxes":
        predictions = predictions.with_tables(frames=predictions.frames.clear(), boxes=boxes)
    asked = {
        "latest": (StreamingConfig("latest", fps=30.0), 0.17),
        "t_s": (StreamingConfig("every", times="t_s"), {name: r.random(9).tolist() for name in names}),
    }
    config, latency = asked.get(how, (StreamingConfig(fps=30.0), None))
    parts = [build_timetable(predictions, truth.only([name]), config, latency) for name in names]
    whole = build_timetable(predictions, truth, config, latency)
    assert whole.equals(pl.concat(parts))
    assert whole["from_frame"].null_count() < len(whole)


# What is judged


def test_boxes_tubes_and_frame_scores_one_frame_late_by_hand() -> None:
    truth, predictions = moving(4, speeds=(10.0,))
    late = apply_latency(predictions, truth, EVERY, 0.1)
    assert late.boxes.select("frame", "from_frame", "x1_px", "tube").rows() == [
        (1, 0, 10.0, 0),
        (2, 1, 20.0, 0),
        (3, 2, 30.0, 0),
    ]
    assert late.boxes["ready_s"].to_list() == [0.1, 0.2, 0.3]
    assert late.frames.select("frame", "from_frame").rows() == [(1, 0), (2, 1), (3, 2)]
    assert late.frames["scores"].to_list() == [[1, 0]] * 3
    assert late.tubes.select("tube", "start_frame", "end_frame", "parent", "spans").rows() == [
        (0, 1, 4, None, None),
        (1, 1, 4, 0, [[1, 4]]),
    ]
    assert late.meta.notes["streaming"]["latency"] == "0.1 s"


def test_an_output_holds_until_the_next_and_an_empty_one_replaces_it() -> None:
    truth, predictions = moving(8, speeds=(1.0,))
    none_at_2 = predictions.with_tables(boxes=predictions.boxes.filter(pl.col("frame") != 2))
    late = apply_latency(none_at_2, truth, LATEST, 0.25)  # frames 0, 2 and 5 are looked at, as above
    assert late.boxes.select("frame", "from_frame").rows() == [(3, 0), (4, 0)]
    assert late.tubes["spans"].to_list() == [None, [[3, 8]]]
    assert late.tubes["end_frame"].to_list() == [5, 8]


def test_spans_with_holes_are_cut_where_their_frames_held() -> None:
    truth, predictions = moving(10, speeds=(1.0,))
    spans = pl.Series([None, [[0, 2], [5, 6]]], dtype=pl.List(pl.List(pl.Int64)))
    cut = predictions.with_tables(tubes=predictions.tubes.with_columns(spans=spans))
    assert apply_latency(cut, truth, EVERY, 0.2).tubes["spans"].to_list() == [None, [[2, 4], [7, 8]]]
    # The worker looks at 0, 2, 5, 7; only 0 and 5 lie within.
    assert apply_latency(cut, truth, LATEST, 0.25).tubes["spans"].to_list() == [None, [[3, 5], [8, 10]]]


def test_labels_of_boxes_go_with_them() -> None:
    truth, predictions = moving(4)
    labels = truth.labels.with_columns(score=pl.lit(0.5))
    late = apply_latency(predictions.with_tables(labels=labels), truth, EVERY, 0.1)
    found = late.labels.join(late.boxes, on="box")
    assert found.select("frame", "label").rows() == [(f, lane) for f in (1, 2, 3) for lane in (0, 1)]


def test_made_up_boxes_were_not_known_in_time() -> None:
    truth, predictions = moving(4, speeds=(1.0,))
    boxes = predictions.boxes.with_columns(interpolated=pl.col("frame") == 1)
    late = apply_latency(predictions.with_tables(boxes=boxes), truth, EVERY, 0.0)
    assert late.boxes["frame"].to_list() == [0, 2, 3]


# Laws


@pytest.fixture(scope="module")
def road():
    world = generate_road_scenes(videos=2, frames=60, seed=1)
    return world, link(simulate_detections(world, seed=1), LinkerConfig.default())


def test_without_latency_and_look_ahead_it_is_the_offline_metric(road) -> None:
    world, linked = road
    online = linked.with_tables(boxes=linked.boxes.filter(~pl.col("interpolated")))
    assert judged(apply_latency(online, world, EVERY, 0.0), world) == judged(online, world)


@pytest.mark.parametrize("how", ["eta", "latency"])
def test_one_frame_late_is_the_offline_metric_on_truth_shifted_by_one(road, how) -> None:
    world, linked = road
    online = linked.with_tables(boxes=linked.boxes.filter(~pl.col("interpolated")))
    later = pl.col("frame") > 0
    asked = world.frames.with_columns(annotated=pl.col("annotated") & later)
    cut = pl.col("spans").list.eval(
        pl.concat_list(pl.element().list.get(0).clip(1, None), pl.element().list.get(1)).filter(
            pl.element().list.get(1) > 1
        )
    )
    truth = world.with_tables(
        frames=asked,
        boxes=world.boxes.filter(later),
        labels=world.labels.filter(pl.col("box").is_in(world.boxes.filter(later)["box"].implode())),
        tubes=world.tubes.with_columns(cut, pl.col("start_frame").clip(1, None)).filter(
            pl.col("end_frame") > 1
        ),
    )
    truth = truth.with_tables(
        tube_labels=truth.tube_labels.filter(pl.col("tube").is_in(truth.tubes["tube"].implode()))
    )
    back = pl.col("frame") - 1
    shifted = truth.with_tables(
        frames=truth.frames.filter(later).with_columns(back),
        boxes=truth.boxes.with_columns(back),
        frame_labels=truth.frame_labels.filter(later).with_columns(back),
        tubes=truth.tubes.with_columns(
            pl.col("start_frame") - 1,
            pl.col("end_frame") - 1,
            spans=pl.col("spans").list.eval(pl.element().list.eval(pl.element() - 1)),
        ),
    )
    config = StreamingConfig("every", eta_s=1 / 12 if how == "eta" else 0.0)
    late = apply_latency(online, truth, config, 0.0 if how == "eta" else 1 / 12)
    last = 59  # nothing is judged against the output of the last frame
    within = online.with_tables(
        boxes=online.boxes.filter(pl.col("frame") < last),
        frames=online.frames.filter(pl.col("frame") < last),
        tubes=online.tubes.with_columns(
            spans=pl.col("spans").list.eval(
                pl.concat_list(pl.element().list.get(0), pl.element().list.get(1).clip(None, last))
            )
        ),
    )
    assert judged(late, truth) == pytest.approx(judged(within, shifted), abs=1e-12)


@pytest.mark.parametrize("scheduler", ["every", "latest", "queue"])
def test_with_endless_latency_nothing_is_ever_predicted(road, scheduler) -> None:
    world, linked = road
    for latency in (1e7, float("inf")):
        never = apply_latency(linked, world, StreamingConfig(scheduler), latency)
        assert never.boxes.is_empty()
        assert never.tubes.is_empty()
        assert never.tube_labels.is_empty()
        assert never.frames.is_empty()
        values = judged(never, world)
        assert {v for name, v in values.items() if "map" in name and v is not None} == {0.0}


@pytest.mark.parametrize("scheduler", ["every", "latest"])
def test_more_latency_is_never_better_where_all_moves_steadily(scheduler) -> None:
    truth, predictions = moving(60, speeds=(0.5, 1.0))
    latencies = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
    found = [
        judged(apply_latency(predictions, truth, StreamingConfig(scheduler), s), truth) for s in latencies
    ]
    for name in ("frame_map@0.5:agentness", "frame_map@0.5:agent", "video_map@0.5:agent"):
        values = [each[name] for each in found]
        assert values == sorted(values, reverse=True), name
        assert values[0] == pytest.approx(1.0)
        assert values[-1] < values[0]


def test_the_order_of_rows_and_a_second_run_change_no_digit(road) -> None:
    world, linked = road
    config, latency = LATEST, {name: [0.11] * 60 for name in world.videos["video"]}
    once = apply_latency(linked, world, config, latency)
    again = apply_latency(linked, world, config, latency)
    assert once == again
    turned = linked.with_tables(frames=linked.frames.reverse())
    assert apply_latency(turned, world, config, latency).boxes.equals(once.boxes)


def test_every_box_at_an_instant_is_one_of_the_output_that_holds(road) -> None:
    world, linked = road
    late = apply_latency(linked, world, LATEST, 0.3)
    plan = build_timetable(linked, world, LATEST, 0.3).filter(pl.col("from_frame").is_not_null())
    seen = linked.boxes.filter(~pl.col("interpolated"))
    for row in plan.rows(named=True)[::7]:
        at = (pl.col("video") == row["video"]) & (pl.col("frame") == row["frame"])
        old = (pl.col("video") == row["video"]) & (pl.col("frame") == row["from_frame"])
        assert late.boxes.filter(at).select(SIDES).equals(seen.filter(old).select(SIDES))
    assert (plan["ready_s"] <= plan["instant_s"]).all()


# A tracker behind a worker


def test_answers_are_what_a_tracker_behind_the_worker_gets(road) -> None:
    world, _ = road
    found = simulate_detections(world, seed=1)
    seen = select_processed_frames(found, world, LATEST, 0.2)
    plan = build_timetable(found, world, LATEST, 0.2)
    shown = plan["from_frame"].drop_nulls().unique()
    assert set(shown) <= set(seen.frames["frame"])
    assert set(seen.boxes["frame"]) <= set(seen.frames["frame"])
    assert len(seen.frames) < len(world.frames) / 2
    late = apply_latency(link(seen, LinkerConfig.default()), world)
    assert late.boxes.select("video", "frame", *SIDES).equals(
        apply_latency(found, world, LATEST, 0.2).boxes.select("video", "frame", *SIDES)
    )
    assert np.isfinite(judged(late, world)["video_map@0.2:agent"])


# What is refused


def test_what_cannot_be_timed_is_refused() -> None:
    truth, predictions = moving(4)
    with pytest.raises(InputError, match="do not say when they were ready"):
        apply_latency(predictions, truth)
    with pytest.raises(UsageError, match="needs a latency"):
        apply_latency(predictions, truth, EVERY)
    with pytest.raises(UsageError, match="beside recorded times"):
        apply_latency(predictions, truth, None, 0.1)
    with pytest.raises(UsageError, match="2 latencies for video v, which has a frame 3"):
        apply_latency(predictions, truth, EVERY, {"v": [0.1, 0.1]})
    for wrong in (-0.1, float("nan")):
        with pytest.raises(InputError, match="seconds from 0 on"):
            apply_latency(predictions, truth, EVERY, wrong)
    early = predictions.with_tables(frames=predictions.frames.with_columns(ready_s=pl.lit(0.15)))
    with pytest.raises(InputError, match=r"frame 2 was ready at 0\.15 s, before"):
        apply_latency(early, truth)
    no_rate = truth.with_tables(videos=truth.videos.drop("fps"))
    with pytest.raises(InputError, match="how many frames a second"):
        apply_latency(predictions, no_rate, EVERY, 0.1)
    assert held(predictions, no_rate, StreamingConfig("every", fps=10.0), 0.1) == [None, 0, 1, 2]
    with pytest.raises(InputError, match="no times t_s"):
        apply_latency(predictions, truth, StreamingConfig("every", times="t_s"), 0.1)
    squeezed = predictions.with_tables(tubes=predictions.tubes.with_columns(consecutive=pl.lit(value=True)))
    with pytest.raises(InputError, match="consecutive frames"):
        apply_latency(squeezed, truth, EVERY, 0.1)
    with pytest.raises(UsageError, match="linked already"):
        select_processed_frames(predictions, truth, EVERY, 0.1)
    for wrong_config in ({"scheduler": "luck"}, {"newest": "best"}, {"eta_s": -1.0}, {"fps": 0.0}):
        with pytest.raises(UsageError):
            StreamingConfig(**wrong_config)


def test_predictions_of_unknown_videos_and_an_empty_set_are_nothing() -> None:
    truth, predictions = moving(4, names=("v", "w"))
    other = truth.with_tables(
        **{
            name: table.filter(pl.col("video") == "v")
            for name, table in truth.filled().items()
            if "video" in table.columns
        },
        labels=truth.labels.clear(),
        tube_labels=truth.tube_labels.clear(),
    )
    late = apply_latency(predictions, other, EVERY, 0.1)
    assert set(late.boxes["video"]) == set(late.tubes["video"]) == set(late.frames["video"]) == {"v"}
    empty = predictions.with_tables(
        boxes=predictions.boxes.clear(),
        tubes=predictions.tubes.clear(),
        tube_labels=predictions.tube_labels.clear(),
    )
    assert apply_latency(empty, truth, EVERY, 0.1).boxes.is_empty()
