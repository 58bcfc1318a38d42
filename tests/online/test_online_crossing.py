"""Crossing in the stream: the answers are those of the predictors, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import torch
from online_stubs import FakeClock, Listed, Scripted, StillCamera, answer
from small_predictors import REGIONS, predictor

from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.ensemble import EnsemblePredictor
from roadaware.models.crossing.streaming_inference import Stepper
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.models.detector import FrameDetections
from roadaware.online.config import WatchConfig
from roadaware.online.crossing import CrossingAnnotator, Follower
from roadaware.online.crossing_forecaster import Foresight, build_window_inputs, open_foresight
from roadaware.online.events import read_events
from roadaware.online.forecast_event import Outlook, OutlookRule
from roadaware.online.run_folder import RunFolder, build_forecast_table, prepare
from roadaware.online.setup import PREDICTORS, WEIGHTS, WHEN
from roadaware.online.tubes import LabelRule
from roadaware.online.watch import watch
from roadaware.online.watcher import warm_up_linker
from roadaware.scenes.dense_scores import Layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes
from roadaware.tasks.crossing_tracks import Moments, cut_moments, predict_tracks

SIZE = (640, 480)
QUICK = OutlookRule(smooth_s=0.0, steady_s=0.0)
DROPPED = DoubtConfig("last-dropout", rate=0.5, passes=20)


def walk(frames: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """(frames, 4) boxes of somebody who walks and wavers."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(100, 400, 2) + np.cumsum(rng.normal(2, 3, (frames, 2)), axis=0)
    return np.concatenate([at, at + rng.uniform([20, 50], [40, 120])], axis=1)


def followed(foresight: Foresight, boxes: npt.NDArray[np.float64], fps: float = 30.0) -> list[Outlook | None]:
    """What is told of somebody, frame by frame."""
    follower = Follower(foresight, QUICK)
    return [follower.look([5], each[None], n / fps, SIZE)[0] for n, each in enumerate(boxes)]


def test_networks_step_side_by_side_as_they_do_alone() -> None:
    members = [predictor(seed).network for seed in range(3)]
    x = torch.rand(4, 20, 12)
    x[:, 0, 4:] = float("nan")
    expected = []
    with torch.inference_mode():
        for network in members:
            state = network.start(4)
            for frame in x.unbind(1):
                state, seen = network.follow(state, {"boxes": frame[:, :4], "centre": frame[:, 4:]})
            expected.append(seen.numpy())
    steps = Stepper(members)
    past, rows, at = steps.start(6), np.array([3, 5, 0, 1]), 0
    for k in (1, 2, 5, 1, 11):  # many frames at once are one after the other
        steps.follow(past, rows, x[:, at : at + k].numpy())
        at += k
    assert np.stack(steps.embeddings(past, rows)) == pytest.approx(np.stack(expected), abs=1e-5)


def test_a_stream_tells_what_the_network_says_of_the_whole_past() -> None:
    """And so of the newest 7 frames with the box before them, however long somebody has been followed."""
    one, boxes = predictor(), walk(40)
    told = [outlook.crossing for outlook in followed(Foresight(one), boxes) if outlook is not None]
    assert len(told) == 40 - 6

    def said(some: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        columns = build_window_inputs(some[None], np.array(SIZE, float), one.inputs).take(np.array([0]))
        with torch.inference_mode():
            logits = one.network.every_frame({name: torch.tensor(x) for name, x in columns.items()})
        return torch.sigmoid(logits[0, :, 0] / one.temperature).double().numpy()

    assert told == pytest.approx(said(boxes)[6:], abs=1e-5)
    assert told[-1] == pytest.approx(said(boxes[-8:])[-1], abs=1e-5)
    # The first answer is that of a window as in training; later ones also know how the first box changed.
    window = build_window_inputs(boxes[None, :7], np.array(SIZE, float), one.inputs)
    assert told[0] == pytest.approx(one.probabilities(window)[0, 0], abs=1e-5)


@pytest.mark.parametrize("doubt", [DoubtConfig(), DROPPED, DoubtConfig("last-flipout", passes=20)])
def test_windows_are_what_the_predictor_says_of_them(doubt: DoubtConfig) -> None:
    one, boxes = predictor(doubt=doubt), walk(12)
    shown = followed(Foresight(one, window=True), boxes)
    windows = np.stack([boxes[end - 7 : end] for end in range(7, 13)])
    given = build_window_inputs(windows, np.array(SIZE, float), one.inputs)
    assert [each.crossing for each in shown[6:] if each] == pytest.approx(one.probabilities(given)[:, 0])
    stepped = followed(Foresight(one), boxes)[6]
    assert stepped is not None
    assert shown[6] is not None
    for name in ("crossing", "low", "high"):
        assert getattr(stepped, name) == pytest.approx(getattr(shown[6], name), abs=1e-6)


def test_regions_told_by_a_mixture_are_those_of_windows_beside_another_network() -> None:
    boxes = walk(9)
    risk = predictor(1, task="risk", places=3)
    stepped, shown = (
        followed(Foresight(predictor(), risk, window=window), boxes)[6] for window in (False, True)
    )
    assert stepped is not None
    assert shown is not None
    assert stepped.regions == pytest.approx(shown.regions, abs=1e-6)
    assert stepped.crossing == pytest.approx(shown.crossing, abs=1e-6)


def test_networks_without_memory_are_shown_windows() -> None:
    one, boxes = predictor(name="multi-rnn", inputs=("boxes:last",)), walk(9)
    found = followed(Foresight(one), boxes)
    assert found[:6] == [None] * 6
    given = build_window_inputs(
        np.stack([boxes[n : n + 7] for n in range(3)]), np.array(SIZE, float), one.inputs
    )
    assert [each.crossing for each in found[6:] if each] == pytest.approx(one.probabilities(given)[:, 0])


def test_many_are_followed_as_each_alone() -> None:
    """They come and go, rows are used again, and what is known of one says nothing of another."""
    both = Foresight(predictor(doubt=DROPPED), predictor(1, task="risk"))
    rng, follower = np.random.default_rng(3), Follower(both, QUICK)
    walks = {
        number: (int(rng.integers(0, 300)), walk(int(rng.integers(3, 60)), number)) for number in range(50)
    }
    told: dict[int, list[Outlook | None]] = {number: [] for number in walks}
    for n in range(360):
        here = [number for number, (begin, boxes) in walks.items() if begin <= n < begin + len(boxes)]
        boxes = np.array([walks[number][1][n - walks[number][0]] for number in here]).reshape(-1, 4)
        for number, outlook in zip(here, follower.look(here, boxes, n / 30, SIZE), strict=True):
            told[number].append(outlook)
    assert len(both) == 16
    for number in (0, 7, 31):
        alone = followed(Foresight(predictor(doubt=DROPPED), predictor(1, task="risk")), walks[number][1])
        assert len(alone) == len(told[number])
        for one, other in zip(alone, told[number], strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert one.crossing == pytest.approx(other.crossing, abs=1e-5)
                assert one.regions == pytest.approx(other.regions, abs=1e-5)


def test_intervals_hold_the_probability_and_one_answer_has_none() -> None:
    alone = followed(Foresight(predictor()), walk(10))[-1]
    assert alone is not None
    assert (alone.low, alone.high) == (None, None)
    members = [predictor(seed) for seed in range(4)]
    several = followed(Foresight(EnsemblePredictor(tuple(members))), walk(10))[-1]
    assert several is not None
    said = [followed(Foresight(each), walk(10))[-1] for each in members]
    each = [outlook.crossing for outlook in said if outlook is not None]
    assert several.crossing == pytest.approx(np.mean(each), abs=1e-6)
    assert (several.low, several.high) == pytest.approx((min(each), max(each)), abs=1e-6)
    for outlook in followed(Foresight(predictor(doubt=DROPPED)), walk(60))[6:]:
        assert outlook is not None
        assert outlook.low <= outlook.crossing <= outlook.high


def test_a_stream_says_when_as_tracks_do() -> None:
    """Trees of the time, of two seconds of boxes and of others in the image, one of whom comes later."""
    trees = EnsemblePredictor.open([WEIGHTS / WHEN])
    people = {"0": walk(100), "1": walk(100, 1) + 60, "2": walk(50, 2)}
    begins = {"0": 0, "1": 0, "2": 50}
    rows = [
        (int(name), "v", begins[name] + n, *box.tolist())
        for name, boxes in people.items() for n, box in enumerate(boxes)
    ]  # fmt: skip
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "fps": [30.0], "width_px": [1920], "height_px": [1080]}),
        boxes=pl.DataFrame(rows, schema=["tube", "video", "frame", *CORNERS], orient="row").with_row_index(
            "box"
        ),
        tubes=pl.DataFrame({"tube": [0, 1, 2], "video": ["v"] * 3, "name": list(people)}),
    )
    tracks = predict_tracks(trees, cut_moments(scenes, Moments()))
    wanted = {(row["name"], row["frame"]): row for row in tracks.iter_rows(named=True)}
    follower, found = Follower(open_foresight([WEIGHTS / name for name in PREDICTORS]), QUICK), {}
    for frame in range(100):
        here = [name for name in people if frame >= begins[name]]
        boxes = np.stack([people[name][frame - begins[name]] for name in here])
        for name, outlook in zip(
            here, follower.look([*map(int, here)], boxes, frame / 30, (1920, 1080)), strict=True
        ):
            if outlook is not None:
                found[name, frame] = outlook
    assert found.keys() == wanted.keys()
    for key, outlook in found.items():
        assert outlook.within_2s == pytest.approx(wanted[key]["within_2s"], abs=1e-4), key
        assert outlook.seconds == (
            None if wanted[key]["seconds"] is None else pytest.approx(wanted[key]["seconds"])
        )
    said = next(iter(found.values())).fields()
    assert set(said) == {"crossing", "risk", "when"}
    for files in ([WHEN], [WHEN, WHEN, PREDICTORS[0]]):
        with pytest.raises(UsageError, match=r"nobody is asked|asks one predictor of when"):
            open_foresight([WEIGHTS / name for name in files])


def test_a_pause_begins_the_past_anew_and_a_short_one_is_bridged() -> None:
    boxes = walk(30)
    times = [n / 30 for n in range(10)] + [10 / 30 + 0.3, 10 / 30 + 0.3 + 0.6]
    follower = Follower(Foresight(predictor()), QUICK)
    found = [follower.look([0], boxes[n][None], t, SIZE)[0] for n, t in enumerate(times)]
    assert [outlook is not None for outlook in found] == [False] * 6 + [True] * 5 + [False]
    assert len(follower) == 1
    assert follower.look([], np.zeros((0, 4)), 9.0, SIZE) == []
    assert len(follower) == 0


def test_predictors_that_a_stream_cannot_ask_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ego:speed: a video does not tell how the own vehicle moves"):
        Foresight(predictor(inputs=("boxes", "ego:speed")))
    with pytest.raises(UsageError, match="nobody is asked"):
        Foresight()
    with pytest.raises(UsageError, match="this one tells risk"):
        Foresight(predictor(task="risk"))
    with pytest.raises(UsageError, match="different rates"):
        Foresight(predictor(), predictor(task="risk", facts={"fps": 12.0}))
    assert Foresight(predictor(facts={"fps": 12.0})).rate_fps == 12.0
    with pytest.raises(InputError, match="found none"):
        open_foresight([tmp_path / "absent.safetensors"])
    path = tmp_path / "wants.safetensors"
    wants = predictor()
    wants.task = "intention"
    wants.save(path)
    with pytest.raises(UsageError, match="intention does not tell who crosses"):
        open_foresight([path])


def _person(frame: int) -> FrameDetections:
    """A pedestrian who walks, beside a parked car."""
    x = 100.0 + 3 * frame
    scores = [[0.9, 0.05, 0.0, 0.5, 0.0], [0.1, 0.9, 0.5, 0.0, 0.0]]
    return answer(frame, [[x, 100, x + 30, 180], [300, 100, 380, 150]], scores)


def _watched(
    folder: Path, detector: Scripted, numbers: Sequence[int], fps: float = 30.0
) -> tuple[dict[str, object], CrossingAnnotator]:
    clock, config = FakeClock(), WatchConfig()
    annotator = CrossingAnnotator(
        Foresight(predictor(doubt=DROPPED), predictor(1, task="risk")),
        OutlookRule(on=0.0, off=0.0),
        clock,
        StillCamera(),
    )
    source = Listed(numbers, clock, fps=fps)
    prepare(folder)
    kept = RunFolder(folder, source, detector, config, clock, crossing=annotator)
    done = watch(source, detector, config, kept, clock=clock, annotators=[annotator])
    return kept.summarise(done), annotator


def test_no_frame_compiles_anything_after_the_warm_up(tmp_path: Path) -> None:
    """Types of kernels that were compiled, or loaded, before the first frame are all that frames ask for."""
    from roadaware.geometry import kernels as tube_kernels
    from roadaware.linking import kernels
    from roadaware.models.crossing import kernels as crossing_kernels

    def known() -> dict[str, int]:
        modules = (crossing_kernels, kernels, tube_kernels)
        held = {f"{each.__name__}.{name}": value for each in modules for name, value in vars(each).items()}
        return {name: len(value.signatures) for name, value in held.items() if hasattr(value, "signatures")}

    clock, config = FakeClock(), WatchConfig()
    source, detector = Listed([*range(12), *range(100, 112)], clock, fps=30.0), Scripted(_person)
    foresight = Foresight(predictor(doubt=DROPPED), predictor(1, task="risk", places=3))
    foresight.warm_up()
    annotator = CrossingAnnotator(foresight, motion=StillCamera())
    warm_up_linker(config.linker_at(30.0), Layout(dict(detector.kinds)))
    before = known()
    assert before["roadaware.models.crossing.kernels.update_recurrent_state"] > 0
    prepare(tmp_path / "run")
    kept = RunFolder(tmp_path / "run", source, detector, config, clock, crossing=annotator)
    watch(source, detector, config, kept, clock=clock, annotators=[annotator])
    assert annotator.summary()["answers"] == 12
    assert known() == before


def test_nobody_is_followed_after_a_warm_up() -> None:
    cold, warm = Foresight(predictor(doubt=DROPPED)), Foresight(predictor(doubt=DROPPED))
    warm.warm_up()
    warm.warm_up()
    boxes = walk(12)
    for one, other in zip(followed(cold, boxes), followed(warm, boxes), strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.crossing, one.low, one.high) == (other.crossing, other.low, other.high)


def test_a_watch_keeps_what_is_expected_of_pedestrians(tmp_path: Path) -> None:
    summary, _ = _watched(tmp_path / "run", Scripted(_person), range(20))
    assert summary["files"] == [
        "events.jsonl",
        "predictions",
        "timing.parquet",
        "crossing.parquet",
        "timing.json",
        "summary.json",
    ]
    table = pl.read_parquet(tmp_path / "run" / "crossing.parquet")
    assert table["frame"].to_list() == list(range(6, 20))
    assert table["tube"].unique().to_list() == [0]
    assert (table["low"] <= table["crossing"]).all()
    assert (table["crossing"] <= table["high"]).all()
    regions = table["regions"].to_numpy()
    assert regions.shape == (14, len(REGIONS))
    assert regions.sum(axis=1) == pytest.approx(np.ones(14), abs=1e-5)
    events = [e for e in read_events(tmp_path / "run" / "events.jsonl") if e["tube"] == 0]
    assert [e["event"] for e in events if e["frame"] == 6] == ["crossing_probable", "risk_region"]
    assert events[1]["crossing"]["probable"]
    assert events[1]["risk"]["region"] in REGIONS
    assert "crossing" not in events[0]
    cars = [e for e in read_events(tmp_path / "run" / "events.jsonl") if e["tube"] == 1]
    assert not any("crossing" in e or "risk" in e for e in cars)
    said = summary["crossing"]
    assert isinstance(said, dict)
    assert (said["pedestrian_frames"], said["answers"]) == (20, 14)
    assert said["ms_per_pedestrian_frame"] is not None
    assert {why: each["count"] for why, each in said["unknown"].items()} == {
        "short": 6,
        "small": 0,
        "shaking": 0,
        "turning": 0,
    }
    assert table["unknown"].is_null().all()
    assert said["predictors"]["crossing"]["passes"] == 20
    json.dumps(summary, allow_nan=False)


def test_twelve_frames_a_second_tell_as_much_of_the_same_walk() -> None:
    """Somebody who walks evenly: interpolated boxes are the true ones, known as soon as half a second is."""
    boxes = np.array([[100 + 1.5 * n, 100, 130 + 1.5 * n, 180] for n in range(60)])
    fast = followed(Foresight(predictor()), boxes)
    step = np.array([3.75, 0, 3.75, 0])
    slow = followed(Foresight(predictor()), np.array([boxes[0] + n * step for n in range(24)]), 12.0)
    assert [outlook is not None for outlook in slow] == [False] * 3 + [True] * 21
    for n in (4, 10, 20):  # frames that lie where an even one does
        one, other = slow[n], fast[round(n * 2.5)]
        assert one is not None
        assert other is not None
        assert one.crossing == pytest.approx(other.crossing, abs=1e-4)


def test_without_pedestrians_nothing_is_said(tmp_path: Path) -> None:
    detector = Scripted(lambda n: answer(n, [[8, 8, 40, 30]], [[0.1, 0.9, 0, 0, 0]]))
    summary, _ = _watched(tmp_path / "cars", detector, range(12))
    assert len(pl.read_parquet(tmp_path / "cars" / "crossing.parquet")) == 0
    assert isinstance(summary["crossing"], dict)
    assert summary["crossing"]["ms_per_frame"] == {"p50": None, "p99": None}
    _watched(tmp_path / "empty", Scripted(_person), [])
    table = pl.read_parquet(tmp_path / "empty" / "crossing.parquet")
    assert table.columns[:4] == ["tube", "frame", "t_s", "crossing"]
    assert not len(table)


@pytest.mark.parametrize(
    ("scores", "people", "answers"),
    [
        ([0.25] * 12, 0, 0),  # the strongest label, and too little to be told: a tree
        ([0.4] * 12, 1, 6),
        ([0.4] + [0.25] * 11, 1, 6),  # told once, and not below two thirds of what that needs
        ([0.4] + [0.05] * 11, 0, 0),  # told once, and no longer when the tube is proven
    ],
)
def test_only_tubes_that_are_told_to_be_pedestrians_are_asked_about(
    tmp_path: Path, scores: list[float], people: int, answers: int
) -> None:
    def found(frame: int) -> FrameDetections:
        return answer(frame, [[100, 100, 130, 180]], [[scores[frame], 0.05, 0.0, 0.5, 0.0]])

    clock, config = FakeClock(), replace(WatchConfig(), labels=LabelRule(smooth_s=0.05))
    annotator = CrossingAnnotator(Foresight(predictor()), OutlookRule(), clock, StillCamera())
    source, folder = Listed(range(12), clock, fps=30.0), tmp_path / "run"
    prepare(folder)
    kept = RunFolder(folder, source, Scripted(found), config, clock, crossing=annotator)
    watch(source, Scripted(found), config, kept, clock=clock, annotators=[annotator])
    said = annotator.summary()
    assert (said["pedestrians"], said["answered"], said["answers"]) == (people, people, answers)


def test_people_are_counted_and_not_their_frames(tmp_path: Path) -> None:
    def found(frame: int) -> FrameDetections:  # one who stays, one who comes later, one seen in two frames
        boxes = [[100, 100, 130, 180], [300, 100, 330, 180], [500, 100, 530, 180]]
        there = [True, frame >= 10, frame in (3, 4)]
        shown = [box for box, seen in zip(boxes, there, strict=True) if seen]
        return answer(frame, shown, [[0.8, 0.1, 0.0, 0.5, 0.0]] * len(shown))

    summary, _ = _watched(tmp_path / "run", Scripted(found), range(14))
    said = summary["crossing"]
    assert isinstance(said, dict)
    assert (said["pedestrians"], said["answered"]) == (2, 1)
    assert said["pedestrian_frames"] == 14 + 4 + 2


def _tables() -> Scenes:
    people = ((0, "a", "ped"), (1, "a", "car"), (2, "b", "ped"))
    rows = [
        {"video": video, "frame": n, "tube": tube, **dict(zip(CORNERS, each, strict=True))}
        for tube, video, _ in people
        for n, each in enumerate(walk(10, tube).tolist())
    ]
    return Scenes(
        videos=pl.DataFrame({"video": ["a", "b"], "width_px": [640, 320], "height_px": [480, 240]}),
        tubes=pl.DataFrame(people, schema=["tube", "video", "track_label"], orient="row"),
        boxes=pl.DataFrame(rows).with_row_index("box").with_columns(pl.col("box").cast(pl.Int64)),
        meta=Meta(dataset="JAAD"),
    )


def test_tables_are_told_of_as_streams_are() -> None:
    foresight = Foresight(predictor(doubt=DROPPED), predictor(1, task="risk"))
    found = build_forecast_table(_tables(), foresight, QUICK)
    assert found.select("video", "tube", "frame").rows() == [
        (video, tube, frame) for video, tube in (("a", 0), ("b", 2)) for frame in range(6, 10)
    ]
    stream = followed(Foresight(predictor(doubt=DROPPED), predictor(1, task="risk")), walk(10))
    told = [outlook.crossing for outlook in stream if outlook]
    assert found.filter(pl.col("video") == "a")["crossing"].to_list() == pytest.approx(told, abs=1e-5)
    assert build_forecast_table(_tables(), foresight, tubes=[1])["tube"].unique().to_list() == [1]
    nobody = build_forecast_table(_tables(), foresight, tubes=[])
    assert nobody.schema == found.schema
    assert not len(nobody)
    unknown = _tables()
    with pytest.raises(InputError, match="image size"):
        build_forecast_table(
            unknown.with_tables(videos=unknown.videos.with_columns(width_px=None)), foresight
        )
