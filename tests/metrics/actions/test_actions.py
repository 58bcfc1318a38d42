"""Frame mAP of actions: equal to the published evaluators restated row by row, and the laws of a metric."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from plain_actions import IDS, Row, mmaction2, official, predictions_of, recommended, scenes_of
from quirk_cases import FAR, STREET, TALK, WALK, A, B, at

from roadaware.errors import InputError, UsageError
from roadaware.metrics.action_kernels import assign_heap_slots
from roadaware.metrics.actions import CONFIGS, ActionConfig, JudgedActions, evaluate, evaluate_confusion
from roadaware.metrics.metric_state import SceneResult, as_json
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Predictions, Scenes

Key = tuple[str, int]
WHOLE = (0.0, 0.0, 0.5, 0.5)
HALVES = [(0.0, 0.0, 0.5, 0.25), (0.0, 0.25, 0.5, 0.5)]
"""WHOLE overlaps both halves by exactly one half: which it meets is a matter of their order."""


def random_set(
    seed: int, *, tied: bool, crowd: int = 12, persons: bool = True
) -> tuple[list[Row], list[Row], list[Key], list[Key]]:
    """Truth, predictions, excluded frames, and annotated frames without truth, on a coarse grid of corners."""
    rng = np.random.default_rng(seed)
    keys = [(video, frame) for video in ("a", "b", "c") for frame in (900, 901, 902, 903)]
    predicted = [label for label in IDS if label != IDS[1] or seed % 4]
    truth, predictions = [], []
    for place, (video, frame) in enumerate(keys):
        people = [_corners(rng) for _ in range(rng.integers(1, 5))] if place % 4 != 3 else []
        people += HALVES if place % 4 == 0 else []
        for person, corners in zip(rng.permutation(len(people)), people, strict=True):
            labels = rng.choice(IDS[:3], rng.integers(1, 4))
            score = float(person) if persons else None
            truth += [Row(video, frame, *corners, int(label), score) for label in labels]
        for _ in range(rng.integers(0, crowd)):
            near = people[rng.integers(len(people))] if people and rng.random() < 0.6 else _corners(rng)
            corners = (near, _moved(near, rng), WHOLE)[rng.choice(3, p=(0.45, 0.45, 0.1))]
            for label in rng.choice(predicted, rng.integers(1, 8)):
                score = rng.integers(0, 6) / 5 if tied else rng.random()
                predictions.append(Row(video, frame, *corners, int(label), float(score)))
    predictions += [Row("b", 990, *_corners(rng), IDS[0], 0.55), Row("zz", 900, *_corners(rng), IDS[0], 0.45)]
    order = rng.permutation(len(predictions)) if seed % 2 else range(len(predictions))
    truth = [truth[i] for i in rng.permutation(len(truth))] if seed % 3 == 1 else truth
    return truth, [predictions[i] for i in order], [keys[1], keys[3], ("a", 999)], [keys[7]]


def _corners(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Corners on tenths; one box in eight has no area."""
    x1, y1 = rng.integers(0, 6, 2) / 10
    width, height = rng.integers(1, 5, 2) / 10
    if rng.random() < 0.125:
        width = 0.0
    return float(x1), float(y1), float(x1 + width), float(y1 + height)


def _moved(corners: tuple[float, ...], rng: np.random.Generator) -> tuple[float, ...]:
    x1, y1, x2, y2 = corners
    dx, dy = rng.integers(-1, 2, 2) / 10
    return x1 + dx, y1 + dy, x2 + dx, y2 + dy


def result(name: str, truth: list[Row], predictions: list[Row], *frames: list[Key]) -> SceneResult:
    return evaluate(predictions_of(predictions), scenes_of(truth, *frames), CONFIGS[name]())


def state(name: str, truth: list[Row], predictions: list[Row], *frames: list[Key]) -> JudgedActions:
    judged = result(name, truth, predictions, *frames).state
    assert isinstance(judged, JudgedActions)
    return judged


def same(found: dict[str, float | None], per_class: dict[int, float]) -> bool:
    """Whether the values are those of the classes, and their mean over the defined ones."""
    known = [v for v in per_class.values() if not math.isnan(v)]
    wanted = {f"ap@0.5:action{label}": per_class.get(label, math.nan) for label in IDS}
    wanted["map@0.5"] = sum(known) / len(known) if known else math.nan
    numbers = {name: math.nan if value is None else value for name, value in found.items()}
    return numbers == pytest.approx(wanted, abs=1e-12, nan_ok=True)


def plain(
    name: str, truth: list[Row], predictions: list[Row], excluded: list[Key], bare: list[Key]
) -> dict[int, float]:
    """The evaluator of a configuration, row by row."""
    named = {(row.video, row.frame) for row in truth} | set(excluded) | set(bare)
    evaluators: dict[str, Callable[[], dict[int, float]]] = {
        "ava-official": lambda: official(truth, predictions, excluded),
        "mmaction2": lambda: mmaction2(truth, predictions, excluded),
        "paper": lambda: official(truth, predictions, excluded, cap=0, ap="raw"),
        "default": lambda: recommended(truth, predictions, excluded, named),
    }
    return evaluators[name]()


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_every_config_is_its_evaluator_to_the_digit(seed: int, tied: bool) -> None:
    made = random_set(seed, tied=tied, persons=seed % 3 > 0)
    for name in CONFIGS:
        assert same(result(name, *made).values(), plain(name, *made)), name


@pytest.mark.parametrize("tied", [False, True])
def test_frames_beyond_the_capacity_keep_the_rows_that_the_heap_keeps(tied: bool) -> None:
    made = random_set(5, tied=tied, crowd=60)
    judged = result("ava-official", *made)
    assert judged.facts["predictions_over_capacity"] > 100
    assert same(judged.values(), plain("ava-official", *made))
    assert not same(judged.values(), official(*made[:3], cap=0))
    assert (
        judged.left_out["predictions beyond the capacity of their frame"]
        == judged.facts["predictions_over_capacity"]
    )


@pytest.mark.parametrize("capacity", [1, 2, 3, 6, 7])
def test_a_full_heap_lets_its_least_row_go(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    # Few scores, so that many are equal and the other columns decide.
    rows = np.column_stack([rng.integers(1, 9, 40) / 8, rng.integers(0, 3, 40), rng.random((40, 4))])
    place = assign_heap_slots(np.array([0, 25, 40]), rows, capacity)
    for begin, end in ((0, 25), (25, 40)):
        heap: list[tuple[float, ...]] = []
        for row in map(tuple, rows[begin:end].tolist()):
            if len(heap) < capacity:
                heapq.heappush(heap, row)
            elif row[0] > heap[0][0]:
                heapq.heapreplace(heap, row)
        kept = {
            slot: tuple(row)
            for slot, row in zip(place[begin:end], rows[begin:end].tolist(), strict=True)
            if slot >= 0
        }
        assert [kept[slot] for slot in sorted(kept)] == heap
        assert sorted(kept) == list(range(capacity))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_true_rows_decides_between_equal_overlaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predictions = [], []
    for frame in range(60):
        people = [
            (HALVES[i], float(p)) for i, p in zip(rng.permutation(2), rng.permutation(9)[:2], strict=True)
        ]
        rows = [at(frame, box, person, label) for box, person in people for label in IDS]
        truth += [rows[i] for i in rng.permutation(len(rows))]
        for label in IDS:
            half = HALVES[rng.integers(2)]
            predictions += [
                at(frame, WHOLE, 0.5 + rng.random() / 2, label),
                at(frame, half, rng.random() / 2, label),
            ]
    nameless = [row._replace(score=None) for row in truth]
    for name in CONFIGS:
        for rows in (truth, nameless):
            assert same(result(name, rows, predictions).values(), plain(name, rows, predictions, [], [])), (
                name
            )
    swapped = replace(CONFIGS["ava-official"](), truth_by_person=False)
    tables = predictions_of(predictions), scenes_of(truth)
    assert not same(evaluate(*tables, swapped).values(), official(truth, predictions, []))


@pytest.mark.parametrize("name", CONFIGS)
def test_truth_against_itself_is_perfect_and_nothing_predicted_finds_nothing(name: str) -> None:
    truth = [at(f, box, 0.0, label) for f in (1, 2) for box in (A, B) for label in (WALK, TALK)]
    predictions = [row._replace(score=1.0) for row in truth]
    assert result(name, truth, predictions).values() == {
        "map@0.5": 1.0,
        "ap@0.5:action3": 1.0,
        "ap@0.5:action1": 1.0,
        "ap@0.5:action7": None,
        "ap@0.5:action12": None,
    }
    empty = result(name, truth, [])
    assert empty.value("map@0.5") == (None if name == "mmaction2" else 0.0)
    if name == "mmaction2":
        reasons = [empty.row(metric)["reason"] for metric in ("map@0.5", "ap@0.5:action1", "ap@0.5:action7")]
        unpredicted = "nothing is predicted of it on a judged frame"
        assert reasons == [unpredicted, unpredicted, "there is no truth"]
    assert "nothing is predicted" in empty.notes


@pytest.mark.parametrize("name", CONFIGS)
def test_the_order_of_rows_without_ties_does_not_matter(name: str) -> None:
    truth, predictions, *frames = random_set(2, tied=False)
    turned = result(name, truth, predictions[::-1], *frames).values()
    assert turned == pytest.approx(result(name, truth, predictions, *frames).values(), abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_parts_of_a_whole_merge_to_it_and_can_be_cut_out_of_it(name: str) -> None:
    truth, predictions, excluded, bare = random_set(4, tied=True)
    predictions = [row for row in predictions if row.video != "zz"]
    for rows in (truth, predictions):
        rows.sort(key=lambda row: row.video)
    whole = state(name, truth, predictions, excluded, bare)
    parts = []
    for video in ("a", "b", "c"):
        of = [[row for row in rows if row.video == video] for rows in (truth, predictions)]
        lists = [[key for key in keys if key[0] == video] for keys in (excluded, bare)]
        parts.append(state(name, of[0], of[1], *lists))
        alone = whole.only((whole.items["video"] == video).to_numpy())
        assert _numbers(alone) == pytest.approx(_numbers(parts[-1]), abs=1e-15, nan_ok=True)
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert _numbers(merged) == pytest.approx(_numbers(whole), abs=1e-15, nan_ok=True)
    assert merged.items.equals(whole.items)
    weights = np.array([[1, 2, 0], [0, 0, 3]], dtype=np.int32)  # videos that count differently
    for found, wanted in zip(merged.measured(weights), whole.measured(weights), strict=True):
        assert np.allclose(found.values, wanted.values, atol=1e-15, equal_nan=True), found.metric
    assert _numbers(JudgedActions.unpacked(*whole.packed())) == pytest.approx(_numbers(whole), nan_ok=True)
    with pytest.raises(InputError, match="both parts hold"):
        whole.merge(parts[0])
    other = replace(parts[1], config=replace(parts[1].config, min_iou=0.3))
    with pytest.raises(InputError, match="configurations"):
        parts[0].merge(other)


def test_some_of_the_frames_keep_their_predictions_and_truth() -> None:
    whole = state("default", *random_set(4, tied=False))
    kept = whole.items["video"].is_in(["b", "c"]).to_numpy() & (np.arange(len(whole.items)) % 3 > 0)
    part = whole.only(kept)
    assert part.items.equals(whole.items.filter(pl.Series(kept)))

    def rows(of: JudgedActions) -> list[tuple[object, ...]]:
        keys = of.items.select("video", "frame").rows()
        predictions = zip(of.item.tolist(), of.cls.tolist(), of.score.tolist(), of.hit.tolist(), strict=True)
        truth = zip(of.truth_item.tolist(), of.truth_cls.tolist(), strict=True)
        return [(*keys[item], *rest) for item, *rest in (*predictions, *truth)]

    inside = set(part.items.select("video", "frame").rows())
    assert rows(part) == [row for row in rows(whole) if row[:2] in inside]
    assert len(part.score) > 0 < len(part.truth_cls)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_video_that_is_drawn_twice_counts_as_two(name: str) -> None:
    truth, predictions, excluded, bare = random_set(6, tied=False)
    judged = state(name, truth, predictions, excluded, bare)
    weights = np.array([[{"a": 2, "b": 0}.get(video, 1) for video in judged.videos]], dtype=np.int32)
    drawn = [each.values[0] for each in judged.measured(weights)]
    kept = [[row for row in rows if row.video != "b"] for rows in (truth, predictions)]
    rows = [of + [row._replace(video="aa") for row in of if row.video == "a"] for of in kept]
    keys = [[k for k in of if k[0] != "b"] for of in (excluded, bare)]
    twice = [of + [("aa", frame) for video, frame in of if video == "a"] for of in keys]
    # Copies tie with each other, and equal rows side by side rank like the copies of a draw only if no
    # other prediction has their score; hits and misses of one score are the same in both.
    assert drawn == pytest.approx(_numbers(state(name, *rows, *twice)), abs=1e-12, nan_ok=True)


def _numbers(judged: JudgedActions) -> list[float]:
    once = np.ones((1, len(judged.videos)), dtype=np.int32)
    return [float(each.values[0]) for each in judged.measured(once)]


def test_slices_intervals_and_facts() -> None:
    truth, predictions, excluded, bare = random_set(8, tied=False)
    scenes = scenes_of(truth, excluded, bare)
    videos = scenes.videos.with_columns(category=pl.Series(["flood", "fight", "fight"]))
    scenes = scenes.with_tables(videos=videos)
    judged = evaluate(
        predictions_of(predictions),
        scenes,
        CONFIGS["ava-official"](),
        by=("category", "density"),
        resamples=100,
    )
    assert set(judged.groups) >= {"category: fight", "category: flood", "density: 0", "density: 2-4"}
    alone = [row for row in predictions if row.video == "a"], [row for row in truth if row.video == "a"]
    flood = result("ava-official", alone[1], alone[0], excluded, [])
    assert judged.value("map@0.5", "category: flood") == pytest.approx(flood.value("map@0.5"))
    assert judged.row("map@0.5")["low_video"] <= judged.row("map@0.5")["high_video"]
    told = as_json(judged)
    assert set(told["facts"]) == {
        "per_frame_capacity",
        "frames_judged",
        "frames_without_truth",
        "frames_excluded",
        "predictions_judged",
        "predictions_over_capacity",
        "person_recall",
    }
    # Twelve frames, two of them and ("a", 999) excluded; two predicted frames that the truth lacks.
    assert (told["facts"]["frames_judged"], told["facts"]["frames_excluded"]) == (12, 3)
    assert told["per_class"]["action1"]["ap@0.5"] == judged.value("ap@0.5:action1")


def test_the_rows_behind_the_metric() -> None:
    judged = evaluate(
        predictions_of(STREET.predictions), scenes_of(STREET.truth, STREET.excluded), CONFIGS["default"]()
    )
    predictions = judged.instances("prediction").filter(
        (pl.col("label") == "action1") & (pl.col("frame") == 1)
    )
    assert predictions.select("score", "truth", "hit").rows() == [(0.9, 0, True), (0.8, 1, True)]
    assert predictions["iou"].to_list() == pytest.approx([1.0, 0.36 / 0.44])
    truth = judged.instances("truth")
    assert truth.filter("found").height == 5
    assert truth.filter(~pl.col("found")).select("frame", "label", "score", "prediction").rows() == [
        (4, "action12", None, None)
    ]
    assert judged.instances("confusion").is_empty()


def test_confused_labels_are_those_of_the_person_in_the_box() -> None:
    truth = [at(1, A), at(1, A, label=TALK), at(1, FAR, label=TALK)]
    predictions = [
        at(1, A, 0.9, IDS[2]),
        at(1, A, 0.8, TALK),
        at(1, FAR, 0.3, WALK),
        at(1, (0, 0, 0.1, 0.1), 0.9, IDS[2]),
    ]
    tables = predictions_of(predictions), scenes_of(truth), CONFIGS["default"]()
    # Talks and walks where action7 is predicted; talks where walking is; the last box meets nobody.
    assert evaluate_confusion(*tables).rows() == [
        ("action3", "action1", 1, 0.3),
        ("action3", "action7", 1, 0.9),
        ("action1", "action7", 1, 0.9),
    ]
    assert evaluate_confusion(*tables, min_score=0.5)["predicted"].to_list() == ["action7", "action7"]


def test_a_prediction_at_exactly_the_least_score_or_overlap_is_compared() -> None:
    truth = [at(1, HALVES[0], label=TALK), at(1, HALVES[1], label=WALK)]
    predictions = [at(1, WHOLE, 0.5, IDS[2]), at(1, HALVES[1], 0.25, IDS[2])]
    tables = predictions_of(predictions), scenes_of(truth), CONFIGS["default"]()
    # WHOLE overlaps both halves by one half: the first of them is compared.
    assert evaluate_confusion(*tables).select("truth", "predictions").rows() == [
        ("action3", 1),
        ("action1", 1),
    ]
    assert evaluate_confusion(*tables, min_score=0.25).height == 2
    assert evaluate_confusion(*tables, min_score=0.2501).rows() == [("action3", "action7", 1, 0.5)]
    more = replace(tables[2], min_iou=0.51)
    assert evaluate_confusion(*tables[:2], more).rows() == [("action1", "action7", 1, 0.25)]


def test_corners_in_single_precision_decide_who_is_confused() -> None:
    """In double precision the box overlaps by a hair less than a half, rounded to single precision by as much."""
    truth = [at(1, (1645.2, 0.0, 1671.2, 10.0), label=TALK)]
    predictions = [at(1, (1645.2, 0.0, 1658.19997, 10.0), 0.9, IDS[2])]
    config = CONFIGS["default"]()
    for numbers, rows in (("double", 0), ("single", 1)):
        tables = predictions_of(predictions), scenes_of(truth), replace(config, numbers=numbers)
        assert evaluate_confusion(*tables).height == rows


def test_the_most_confused_come_first_with_their_mean_score() -> None:
    truth = [at(1, A, label=TALK), at(1, FAR, label=WALK), at(2, A, label=TALK), at(2, FAR, label=WALK)]
    predictions = [at(1, A, 0.9, IDS[2]), at(2, A, 0.3, IDS[2]), at(2, FAR, 0.8, IDS[3])]
    tables = predictions_of(predictions), scenes_of(truth), CONFIGS["default"]()
    judged, found = evaluate(*tables), evaluate_confusion(*tables)
    assert judged.instances("confusion").equals(found)
    # No frame has a true box of what is predicted.
    assert judged.instances("prediction").select("iou", "nearest", "truth", "hit").unique().rows() == [
        (0.0, None, None, False)
    ]
    assert found.rows() == [("action3", "action7", 2, pytest.approx(0.6)), ("action1", "action12", 1, 0.8)]


def test_what_is_left_out_is_counted_by_reason() -> None:
    """Frame 1 is judged, 2 excluded, 3 annotated without truth, 4 not named; each has as many predictions."""
    truth = [at(1, A), at(2, A), at(2, FAR)]
    predictions = [at(frame, FAR, 0.5 + n / 100) for frame in (1, 2, 3, 4) for n in range(frame)]
    judged = result("default", truth, predictions, [("v", 2)], [("v", 3)])
    named = {
        "predictions on excluded frames": 2,
        "predictions on frames that the truth does not name": 4,
        "true labels on excluded frames": 2,
    }
    assert judged.left_out == named
    ignoring = replace(CONFIGS["default"](), empty_frames="ignore", unknown_frames="count")
    tables = predictions_of(predictions), scenes_of(truth, [("v", 2)], [("v", 3)])
    assert evaluate(*tables, ignoring).left_out == {
        "predictions on excluded frames": 2,
        "predictions on frames without truth": 3,
        "true labels on excluded frames": 2,
    }
    counting = replace(ignoring, excluded_truth="counted")
    assert evaluate(*tables, counting).left_out == {
        "predictions on excluded frames": 2,
        "predictions on frames without truth": 3,
    }


def test_ties_that_move_the_mean_are_told_with_its_ends() -> None:
    truth = [at(1, A), at(1, B, label=TALK)]
    predictions = [at(1, A, 0.5), at(1, FAR, 0.5), at(1, B, 0.4, TALK)]
    tied = state("ava-official", truth, predictions).tied()
    assert tied == {"predictions": 2, "span": {"map@0.5": [0.75, 1.0], "ap@0.5:action1": [0.5, 1.0]}}
    assert state("default", truth, predictions).tied() is None
    assert state("ava-official", truth, [predictions[0], predictions[2]]).tied() is None


def test_dense_scores_are_the_same_predictions() -> None:
    rng = np.random.default_rng(0)
    predictions = [
        at(f, box, float(rng.random()), label) for f in (1, 2) for box in (A, B, FAR) for label in IDS
    ]
    rows = predictions_of(predictions)
    scores = rows.labels["score"].to_numpy().reshape(-1, len(IDS))
    dense = Predictions(
        boxes=rows.boxes.with_columns(pl.Series("scores", scores, dtype=pl.Array(pl.Float64, len(IDS)))),
        meta=set_score_layout(rows.meta, "boxes", ["action"]),
    )
    scenes = scenes_of([at(1, A), at(1, B, label=TALK), at(2, FAR)])
    for name in CONFIGS:
        assert (
            evaluate(dense, scenes, CONFIGS[name]()).values()
            == evaluate(rows, scenes, CONFIGS[name]()).values()
        )


def test_predictions_on_truth_to_ignore_count_neither_way() -> None:
    scenes = scenes_of([at(1, A), at(1, FAR)])
    scenes = scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=pl.Series([False, True])))
    predictions = predictions_of([at(1, FAR, 0.9), at(1, A, 0.8)])
    for name in CONFIGS:
        judged = evaluate(predictions, scenes, CONFIGS[name]())
        assert judged.value("map@0.5") == 1.0
        assert judged.left_out["predictions on truth to ignore"] == 1
        assert judged.instances("prediction")["hit"].to_list() == [None, True]


def test_labels_meet_by_name() -> None:
    truth, predictions, *frames = random_set(3, tied=False)
    rows, scenes = predictions_of(predictions), scenes_of(truth, *frames)
    turned = rows.with_tables(
        labels=rows.labels.with_columns(label=3 - pl.col("label")),
        meta=replace(rows.meta, vocabularies={"action": rows.meta.vocabularies["action"][::-1]}),
    )
    config = ActionConfig()
    assert evaluate(turned, scenes, config).values() == evaluate(rows, scenes, config).values()
    foreign = rows.with_tables(meta=replace(rows.meta, vocabularies={"action": ("a", "b", "c", "d")}))
    with pytest.raises(InputError, match="the truth does not know"):
        evaluate(foreign, scenes, config)


def test_what_cannot_be_judged_is_refused_and_says_why() -> None:
    scenes, predictions = scenes_of([at(1, A)]), predictions_of([at(1, A, 0.9)])
    with pytest.raises(InputError, match="there is no truth"):
        evaluate(predictions, Scenes(videos=scenes.videos, meta=scenes.meta), ActionConfig())
    with pytest.raises(InputError, match="are excluded"):
        evaluate(predictions, scenes_of([at(1, A)], [("v", 1)]), ActionConfig())
    with pytest.raises(InputError, match="have no score"):
        evaluate(predictions.with_tables(labels=predictions.labels.drop("score")), scenes, ActionConfig())
    stranger = predictions_of([at(1, A, 0.9)._replace(video="w")])
    assert "compare the names of videos" in evaluate(stranger, scenes, ActionConfig()).notes[-1]
    for wrong in ({"ap": "trapezoid"}, {"min_iou": 0.0}, {"per_frame_capacity": 0}, {"truth_by_person": 1}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            ActionConfig(**wrong)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_subset_is_what_the_rows_of_its_actions_alone_give(name: str) -> None:
    truth, predictions, excluded, bare = random_set(5, tied=True)
    kept = {"action1", "action3"}
    numbers = [label for place, label in enumerate(IDS) if f"action{label}" in kept]
    scenes, found = scenes_of(truth, excluded, bare), predictions_of(predictions)
    both = [
        evaluate(found, scenes, replace(CONFIGS[name](), subset=subset))
        for subset in (tuple(sorted(kept)), tuple(str(n) for n in sorted(numbers)))
    ]
    assert [list(each.classes()) for each in both] == [["action1", "action3"]] * 2
    # Rows of others are as if they were not there: the frames that they alone named are still annotated.
    named = [("seen", row) for row in truth]
    alone = [row for row in truth if row.label in numbers]
    seen = {(row.video, row.frame) for _, row in named} - {(row.video, row.frame) for row in alone}
    fewer = scenes_of(alone, excluded, [*bare, *sorted(seen)])
    expected = evaluate(
        predictions_of([row for row in predictions if row.label in numbers]), fewer, CONFIGS[name]()
    )
    for each in both:
        for label in kept:
            assert each.value(f"ap@0.5:{label}") == pytest.approx(
                expected.value(f"ap@0.5:{label}"), abs=1e-12
            )
    with pytest.raises(UsageError, match="subset: no action 'flying'"):
        evaluate(found, scenes, replace(CONFIGS[name](), subset=("flying",)))


def test_the_recall_of_persons_counts_boxes_whatever_they_are_called() -> None:
    truth, predictions, excluded, bare = random_set(11, tied=False)
    judged = evaluate(predictions_of(predictions), scenes_of(truth, excluded, bare), CONFIGS["default"]())
    out = set(excluded)
    people = {(row.video, row.frame, row[2:6]) for row in truth if (row.video, row.frame) not in out}
    boxes = {(row.video, row.frame, row[2:6]) for row in predictions}
    met = 0
    for video, frame, (x1, y1, x2, y2) in people:
        for other, moment, (u1, v1, u2, v2) in boxes:
            inter = max(0.0, min(x2, u2) - max(x1, u1)) * max(0.0, min(y2, v2) - max(y1, v1))
            union = (x2 - x1) * (y2 - y1) + (u2 - u1) * (v2 - v1) - inter
            if (video, frame) == (other, moment) and union > 0 and inter / union >= 0.5:
                met += 1
                break
    assert judged.facts["person_recall"] == pytest.approx(met / len(people), abs=0.02)
    assert 0 < met < len(people) or met == len(people)


def test_a_class_of_two_videos_has_the_interval_of_two_whatever_its_boxes() -> None:
    rows = [Row(f"v{n:02d}", 900, *WHOLE, IDS[0], None) for n in range(30)]
    rows += [Row(f"v{n:02d}", 901 + k, *WHOLE, IDS[1], None) for n in (3, 7) for k in range(40)]
    predictions = [row._replace(score=0.9) for row in rows]
    judged = evaluate(predictions_of(predictions), scenes_of(rows), CONFIGS["default"](), resamples=100)
    lows = [judged.row(f"ap@0.5:action{label}")["low_video"] for label in IDS[:2]]
    assert lows == pytest.approx([0.025 ** (1 / 30), 0.025 ** (1 / 2)])
