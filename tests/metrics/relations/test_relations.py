"""Relations against plain loops, hand-worked cases and laws."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from plain_relations import Plain, plain_metrics
from random_relations import (
    Box,
    Fact,
    Tube,
    Video,
    copied,
    predictions_of,
    random_videos,
    scenes_of,
    still,
)
from worked_relations import CASES, FAR, NEAR, moved, person

from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.formats.relations import read_relation_predictions
from roadaware.metrics.metric_state import as_json, compute_values, resample_metrics
from roadaware.metrics.relation_rows import JudgedRelations
from roadaware.metrics.relations import CONFIGS, RelationConfig, evaluate
from roadaware.scenes.tables import Meta, Predictions

SMALL = {"recall_at": (1, 3, 8), "precision_at": (1, 3), "top_returns": 12, "frame_top": 6}
DEFAULT, VIDVRD = CONFIGS["default"](), CONFIGS["vidvrd"]()
PUBLISHED = [make() for make in CONFIGS.values()]
ODD = replace(DEFAULT, repeated_truth="each", averaging="pooled", predicates_per_pair=2)


def summary(videos: list[Video], config: RelationConfig) -> dict[str, float | None]:
    return as_json(evaluate(predictions_of(videos), scenes_of(videos), config))["summary"]


def state_of(videos: list[Video], config: RelationConfig) -> JudgedRelations:
    state = evaluate(predictions_of(videos), scenes_of(videos), config).state
    assert isinstance(state, JudgedRelations)
    return state


CARRIED = [replace(CONFIGS[f"frame-sg-{name}"](), silent_frames="carried") for name in ("with", "no")]
OTHERS = [ODD, replace(ODD, several_truths=True, empty_frames="zero")]
TINY = {"recall_at": (1, 2), "precision_at": (1, 2), "top_returns": 5, "frame_top": 3}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_every_config_equals_the_plain_loops(seed: int) -> None:
    videos = random_videos(seed)
    small = [replace(config, **SMALL) for config in [*PUBLISHED, CARRIED[0]]]
    equals_the_plain_loops(videos, [*PUBLISHED, *small, *CARRIED, *OTHERS])


@pytest.mark.parametrize("seed", range(8))
def test_every_config_equals_the_plain_loops_on_short_sets(seed: int) -> None:
    configs = [*PUBLISHED, *CARRIED, *OTHERS]
    videos = [*random_videos(100 + seed, 2, 12), Video("empty")]
    equals_the_plain_loops(videos, [replace(config, **TINY) for config in configs])


def test_what_silent_images_may_change_is_said() -> None:
    (silent,) = CASES["silent_frames"].videos
    config = CONFIGS["frame-sg-no"]()
    for videos in ([silent], [silent, *random_videos(200, 2, 12)], random_videos(201, 2, 12)):
        equals_the_plain_loops(videos, [config, replace(config, silent_frames="carried")])
    result = evaluate(predictions_of([silent]), scenes_of([silent]), config)
    assert result.facts["carried_frames"]["frame_recall@20"] == [0.5, 1.0]
    assert any("--set silent_frames=carried" in note for note in result.notes)
    found = evaluate(predictions_of([silent]), scenes_of([silent]), replace(config, silent_frames="carried"))
    assert "carried_frames" not in found.facts


def equals_the_plain_loops(videos: list[Video], configs: list[RelationConfig]) -> None:
    scenes, predictions = scenes_of(videos), predictions_of(videos)
    facts = {
        "relations": sum(len(video.truth) for video in videos),
        "predictions": sum(len(video.predictions) for video in videos),
        "videos_without_truth": sum(not video.truth for video in videos),
    }
    for config in configs:
        plain = plain_metrics(videos, config)
        result = evaluate(predictions, scenes, config)
        found = as_json(result)
        assert set(found["summary"]) == set(plain.values)
        for name, value in plain.values.items():
            assert found["summary"][name] == pytest.approx(value, abs=1e-12), name
        # A predicate whose relations stand in no image has no recall in images.
        told = {
            predicate: {metric: value for metric, value in values.items() if value is not None}
            for predicate, values in found["per_class"].items()
        }
        expected = {k: pytest.approx(v, abs=1e-12) for k, v in plain.by_class.items()}
        assert {predicate: values for predicate, values in told.items() if values} == expected
        assert result.facts.items() >= facts.items()
        if config.tubelets:
            detections, truth = _numbered(videos, plain)
            columns = ("relation", "hit", "truth", "subject_viou", "object_viou", "rank")
            assert result.instances("prediction").select(columns).rows() == detections
            assert result.instances("truth").select("relation", "prediction", "rank").rows() == truth
            best = config.top_returns or max(len(video.predictions) for video in videos)
            left_out = {
                "predictions beyond the best of their video": facts["predictions"] - len(detections),
                "predictions in videos without a true relation": sum(
                    min(best, len(video.predictions)) for video in videos if not video.truth
                ),
            }
            assert result.left_out == {reason: n for reason, n in left_out.items() if n}
        if config.frames:
            assert result.instances("frame").rows() == plain.frames
            assert result.facts["predicates_per_pair"] == (config.predicates_per_pair or "all")
            assert result.facts["predictions_per_frame"] == (config.frame_top or "all")
            assert result.facts["frames_judged"] == len(plain.frames)
            assert result.facts["frames_without_truth"] == sum(not row[2] for row in plain.frames)
            # What the published code may print instead, since it judges silent images by those before.
            moved = {}
            if config.several_truths and config.silent_frames == "empty":
                there = plain_metrics(videos, replace(config, silent_frames="carried")).values
                moved = {
                    name: [pytest.approx(value, abs=1e-12), pytest.approx(there[name], abs=1e-12)]
                    for name, value in plain.values.items()
                    if value != pytest.approx(there[name], abs=1e-12, nan_ok=True)
                }
            assert result.facts.get("carried_frames", {}) == moved


def _numbered(videos: list[Video], plain: Plain) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Rows of predictions and of the truth by their numbers in the tables, which go on from video to video."""
    detections: list[tuple[object, ...]] = []
    truth: list[tuple[object, ...]] = []
    first_prediction = first_truth = 0
    for video, rows in zip(videos, plain.predictions, strict=True):
        found: dict[int, tuple[int, int]] = {}
        for rank, (place, hit, near, *overlaps) in enumerate(rows, 1):
            number = None if near is None else first_truth + near
            detections.append((first_prediction + place, hit, number, *map(_near, overlaps), rank))
            if hit and near is not None:
                found[near] = (first_prediction + place, rank)
        truth += [(first_truth + t, *found.get(t, (None, None))) for t in range(len(video.truth))]
        first_prediction, first_truth = (
            first_prediction + len(video.predictions),
            first_truth + len(video.truth),
        )
    return detections, truth


def _near(overlap: float | None) -> object:
    return None if overlap is None else pytest.approx(overlap, abs=1e-12)


def test_the_very_first_box_counts_like_every_other() -> None:
    tubes = [person(NEAR, end=2), person(FAR, end=2)]
    facts = [Fact(0, "follow", 1, 0, 2, 0.9), Fact(1, "watch", 0, 0, 2, 0.8)]
    perfect = copied([Video("first", tubes, facts)])
    equals_the_plain_loops(perfect, [*PUBLISHED, *CARRIED, *OTHERS])
    for config in PUBLISHED:
        assert set(summary(perfect, config).values()) == {1.0}


@pytest.mark.parametrize("ends", [(0, 2), (2, 0)])
def test_the_very_first_box_of_a_faint_prediction_lets_nothing_be_carried(ends: tuple[int, int]) -> None:
    predicted = [Tube("person", {1: NEAR}), Tube("person", {0: NEAR}), person(FAR, end=2)]
    detections = [Fact(1, "follow", 2, 0, 1, 0.9), Fact(ends[0], "watch", ends[1], 1, 2, 1e-6)]
    truth = [Fact(0, "follow", 1, 0, 2)]
    video = Video("faint", [person(NEAR, end=2), person(FAR, end=2)], truth, predicted, detections)
    equals_the_plain_loops([video], CARRIED)
    assert [summary([video], config)["frame_recall@20"] for config in CARRIED] == [0.5, 0.5]


def test_what_is_carried_keeps_its_rank() -> None:
    predicted = [Tube("person", {0: NEAR}), Tube("person", {0: FAR})]
    detections = [Fact(1, "watch", 0, 0, 1, 0.9), Fact(0, "follow", 1, 0, 1, 0.8)]
    tubes = [person(NEAR, end=2), person(FAR, end=2)]
    video = Video("silent", tubes, [Fact(0, "follow", 1, 0, 2)], predicted, detections)
    configs = [replace(config, recall_at=(1, 2, 3)) for config in CARRIED]
    equals_the_plain_loops([video], configs)
    for config in configs:
        assert [summary([video], config)[f"frame_recall@{n}"] for n in (1, 2, 3)] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("box", [(0.1, 0.1, 0.2, 0.3), (1.0, 1.0, 1.0, 3.0), (1.0, 1.0, 3.0, 1.0)])
def test_boxes_may_be_shares_of_an_image_or_have_no_area(box: Box) -> None:
    tubes = [person(box, end=3), person(FAR, end=3)]
    perfect = copied([Video("small", tubes, [Fact(0, "follow", 1, 0, 3), Fact(1, "watch", 0, 0, 3)])])
    single = replace(DEFAULT, precision="float32", frame_precision="float32")
    equals_the_plain_loops(perfect, [*PUBLISHED, single])
    seen = box[2] > box[0] and box[3] > box[1]
    for config in (DEFAULT, single):
        assert summary(perfect, config)["recall@20"] == summary(perfect, config)["frame_recall@20"] == seen


@pytest.mark.parametrize("turned", [False, True])
def test_of_equal_scores_the_pair_that_stands_first_in_the_image_is_the_best(turned: bool) -> None:
    tubes = [Tube("person", {1: NEAR}), person(FAR, end=2), person(moved(FAR, 50.0), end=2)]
    one, other = ((2, 0), (2, 1)) if turned else ((0, 2), (1, 2))
    # The other pair stands before, but in another image.
    detections = [
        Fact(other[0], "watch", other[1], 0, 1, 0.9),
        Fact(one[0], "follow", one[1], 1, 2, 0.5),
        Fact(other[0], "follow", other[1], 1, 2, 0.5),
    ]
    for right in (0, 1):
        video = Video("ties", tubes, [detections[1 + right]], tubes, detections, annotated=[1])
        config = replace(CONFIGS["frame-sg-no"](), recall_at=(1,))
        equals_the_plain_loops([video], [config])
        assert summary([video], config)["frame_recall@1"] == 1 - right


def test_of_a_pair_whose_tubes_score_nothing_the_likelier_predicate_is_the_first() -> None:
    truth = [person(NEAR), person(FAR)]
    predicted = [Tube("person", still(NEAR, 0, 10), None, 0.0), Tube("person", still(FAR, 0, 10), None, 0.5)]
    detections = [Fact(0, "follow", 1, 0, 10, 0.2), Fact(0, "watch", 1, 0, 10, 0.9)]
    config = replace(CONFIGS["frame-sg-no"](), recall_at=(1, 2), frame_min_score=None)
    found = []
    for predicate in ("watch", "follow"):
        video = Video("nothing", truth, [Fact(0, predicate, 1, 0, 10)], predicted, detections)
        equals_the_plain_loops([video], [config])
        found.append([summary([video], config)[f"frame_recall@{n}"] for n in (1, 2)])
    assert found == [[1.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize("field", CASES)
def test_each_choice_alone_changes_its_number(field: str) -> None:
    case = CASES[field]
    for config, value in zip(case.configs(field), case.values, strict=True):
        assert summary(list(case.videos), config)[case.metric] == pytest.approx(value, abs=1e-10)


def test_what_is_carried_crosses_videos_and_stops_where_predictions_are_too_faint() -> None:
    carried = replace(CONFIGS["frame-sg-no"](), silent_frames="carried")
    first, second = (
        CASES["silent_frames"].videos[0],
        replace(CASES["silent_frames"].videos[0], name="later", predictions=[]),
    )
    assert summary([first, second], carried)["frame_recall@20"] == 1
    assert summary([second, first], carried)["frame_recall@20"] == 0.5
    faint = replace(second, predictions=[replace(first.predictions[0], start=0, end=10, score=1e-6)])
    assert summary([first, faint], carried)["frame_recall@20"] == 0.5


def test_truth_against_itself_is_perfect_and_no_predictions_find_nothing() -> None:
    for seed in range(4):
        videos = [v for v in random_videos(seed) if v.truth]
        for video in videos:  # a relation that nobody has a box in cannot be found
            video.tubes = [Tube(t.category, still(NEAR, 0, 40), t.name) for t in video.tubes]
            video.tubes = [
                Tube(t.category, still(moved(NEAR, 20.0 * i), 0, 40), t.name)
                for i, t in enumerate(video.tubes)
            ]
        perfect = summary(copied(videos), DEFAULT)
        assert perfect == dict.fromkeys(perfect, 1.0)
        for config in PUBLISHED:
            nothing = summary([replace_predictions(video, []) for video in videos], config)
            assert nothing == dict.fromkeys(nothing, 0.0)


def replace_predictions(video: Video, detections: list[Fact]) -> Video:
    return Video(video.name, video.tubes, video.truth, video.predicted_tubes, detections, video.annotated)


def test_the_order_of_videos_and_of_untied_predictions_does_not_matter() -> None:
    videos = random_videos(3)
    draw = np.random.default_rng(0)
    for video in videos:
        scores = 0.1 + 0.9 * draw.permutation(len(video.predictions)) / 100
        video.predictions = [
            replace(c, score=float(s)) for c, s in zip(video.predictions, scores, strict=True)
        ]
    for config in PUBLISHED:
        expected = summary(videos, config)
        scenes, detections = scenes_of(videos[::-1]), predictions_of(videos)
        mixed = detections.with_tables(
            **{
                name: getattr(detections, name).sample(fraction=1, shuffle=True, seed=1)
                for name in detections.filled()
            }
        )
        found = as_json(evaluate(mixed, scenes, config))["summary"]
        assert found == {name: pytest.approx(value, abs=1e-12) for name, value in expected.items()}


@pytest.mark.parametrize("config", [DEFAULT, VIDVRD, CONFIGS["frame-sg-with"]()])
def test_parts_merge_to_the_whole_and_resample_like_it(config: RelationConfig) -> None:
    videos = random_videos(5)
    whole = state_of(videos, config)
    parts = state_of(videos[:2], config).merge(state_of(videos[2:], config))
    assert compute_values(parts) == pytest.approx(compute_values(whole), nan_ok=True)
    assert compute_values(whole.only(np.arange(6) < 2)) == pytest.approx(
        compute_values(state_of(videos[:2], config)), nan_ok=True
    )
    arrays, facts = whole.packed()
    assert compute_values(JudgedRelations.unpacked(arrays, json.loads(json.dumps(facts)))) == compute_values(
        whole
    )
    weights = np.array([2, 0, 1, 3, 0, 1], dtype=np.int32)
    again = [
        Video(f"{i}/{v.name}", *(getattr(v, name) for name in v.__dataclass_fields__ if name != "name"))
        for v, weight in zip(videos, weights, strict=True)
        for i in range(weight)
    ]
    many = {(m.metric, m.label): m.values[0] for m in whole.measured(weights[None])}
    one = state_of(again, config)
    for each in one.measured(np.ones((1, 7), dtype=np.int32)):
        assert many[each.metric, each.label] == pytest.approx(each.values[0], abs=1e-6)
    with pytest.raises(InputError, match="in both parts"):
        whole.merge(whole)
    with pytest.raises(InputError, match="configurations"):
        whole.merge(replace(whole, config=replace(config, recall_at=(1,))))
    assert set(resample_metrics(whole, 3, 0)) == set(many)


def test_parts_with_other_predicates_merge_by_name() -> None:
    first, second = (random_videos(seed) for seed in (1, 2))
    other = [replace_name(video) for video in second]
    scenes = scenes_of(other)
    turned = scenes.meta.vocabularies["predicate"][::-1]
    meta = replace(scenes.meta, vocabularies={**scenes.meta.vocabularies, "predicate": turned})
    told = scenes.relations.with_columns(predicate=len(turned) - 1 - pl.col("predicate"))
    part = evaluate(predictions_of(other), scenes.with_tables(relations=told, meta=meta), DEFAULT)
    assert part.state is not None
    merged = state_of(first, DEFAULT).merge(part.state)
    ones = np.ones((1, 12), dtype=np.int32)
    whole = state_of([*first, *other], DEFAULT)
    assert {(m.metric, m.label): m.values[0] for m in merged.measured(ones)} == pytest.approx(
        {(m.metric, m.label): m.values[0] for m in whole.measured(ones)}
    )


def replace_name(video: Video) -> Video:
    return replace(video, name=f"other {video.name}")


def test_instances_say_what_found_what() -> None:
    videos = list(CASES["several_truths"].videos)
    result = evaluate(predictions_of(videos), scenes_of(videos), DEFAULT)
    prediction = result.instances("prediction").row(0, named=True)
    assert (prediction["hit"], prediction["truth"], prediction["rank"]) == (True, 0, 1)
    assert (prediction["subject_viou"], prediction["object_viou"]) == (1.0, 1.0)
    truth = result.instances("truth")
    assert truth.select("relation", "prediction", "rank").rows() == [(0, 0, 1), (1, None, None)]
    frames = result.instances("frame")
    assert frames.select("frame", "truth", "found@20").row(3) == (3, 2, 1)
    assert result.levels == ("prediction", "truth", "frame")
    near = evaluate(
        *(predictions_of(list(CASES["pixel_offset"].videos)), scenes_of(list(CASES["pixel_offset"].videos))),
        DEFAULT,
    )
    missed = near.instances("prediction").row(0, named=True)
    assert (missed["hit"], missed["truth"]) == (False, 0)
    assert missed["subject_viou"] == pytest.approx(36 / 81)


def test_a_taken_relation_leaves_the_next_best_free_one() -> None:
    tubes = [person(NEAR), person(moved(NEAR, 2.0)), person(FAR)]
    truth = [Fact(0, "follow", 2, 0, 10), Fact(1, "follow", 2, 0, 10)]
    detections = [Fact(0, "follow", 1, 0, 10, s) for s in (0.9, 0.8, 0.7)]
    video = Video("crowd", tubes, truth, [person(NEAR), person(FAR)], detections)
    result = evaluate(predictions_of([video]), scenes_of([video]), VIDVRD)
    rows = result.instances("prediction").select("hit", "truth", pl.col("subject_viou").round(4))
    assert rows.rows() == [(True, 0, 1.0), (True, 1, 0.6667), (False, 0, 1.0)]
    assert result.value("map") == 1.0


def test_slices_and_facts_go_with_the_numbers() -> None:
    videos = random_videos(4)
    result = evaluate(
        predictions_of(videos), scenes_of(videos), DEFAULT, by=("category", "density"), resamples=20
    )
    fights = [video for video in videos if video.category == "fight"]
    assert result.values("category: fight")["map"] == pytest.approx(summary(fights, DEFAULT)["map"])
    assert result.row("map")["low_video"] is not None
    assert result.row("map", "category: fight")["low_video"] is not None
    assert {"setting", "averaging", "frames_judged", "frames_without_truth"} <= set(result.facts)
    assert "other names" not in " ".join(result.notes)
    assert evaluate(predictions_of(videos), scenes_of(videos), DEFAULT).row("map")["low_video"] is None
    scenes = scenes_of(videos)
    split = pl.Series("splits", [["train", "all"] if i % 2 else ["test"] for i in range(len(videos))])
    parted = scenes.with_tables(videos=scenes.videos.with_columns(split).drop("category"))
    by_split = evaluate(predictions_of(videos), parted, DEFAULT, by=("split",))
    assert by_split.values("split: train, all")["map"] == result.values("category: fight")["map"]
    with pytest.raises(UsageError, match="slice"):
        evaluate(predictions_of(videos), scenes_of(videos), DEFAULT, by=("weather",))


def test_words_are_matched_by_name_and_unknown_videos_are_counted() -> None:
    video = CASES["averaging"].videos[0]
    scenes, detections = scenes_of([video]), predictions_of([video])
    words = {"category": ("cat", "person"), "predicate": ("jump", "follow")}
    mapped = detections.with_tables(
        meta=Meta(vocabularies=words),
        tube_labels=detections.tube_labels.with_columns(label=pl.lit(1)),
        relations=detections.relations.with_columns(predicate=pl.lit(1)),
    )
    assert as_json(evaluate(mapped, scenes, DEFAULT))["summary"] == summary([video], DEFAULT)
    foreign = predictions_of([replace_name(video)])
    result = evaluate(foreign, scenes, DEFAULT)
    assert result.left_out == {"predictions in videos that the truth does not have": 1}
    assert "no prediction is judged" in " ".join(result.notes)
    known = detections.meta.vocabularies
    strange = {**known, "predicate": tuple(f"not {word}" for word in known["predicate"])}
    others = detections.with_tables(meta=Meta(vocabularies=strange))
    assert "other names" in " ".join(evaluate(others, scenes, DEFAULT).notes)
    for setting in ("sgdet", "predcls"):
        config = replace(DEFAULT, setting=setting)
        for nameless in (
            (detections.with_tables(tube_labels=detections.tube_labels.clear()), scenes),
            (detections, scenes.with_tables(tube_labels=scenes.tube_labels.clear())),
        ):
            result = evaluate(*nameless, config)
            assert as_json(result)["summary"] == as_json(evaluate(detections, scenes, config))["summary"]
            assert "no category" in " ".join(result.notes)


def test_what_cannot_be_judged_is_refused() -> None:
    video = CASES["averaging"].videos[0]
    scenes, detections = scenes_of([video]), predictions_of([video])
    with pytest.raises(InputError, match="no true relation"):
        evaluate(detections, scenes.with_tables(relations=scenes.relations.clear()), DEFAULT)
    with pytest.raises(InputError, match="score"):
        evaluate(detections.with_tables(relations=detections.relations.drop("score")), scenes, DEFAULT)
    with pytest.raises(InputError, match="end_frame"):
        evaluate(detections, scenes.with_tables(relations=scenes.relations.drop("end_frame")), DEFAULT)
    for boxless in (detections.boxes.clear(), detections.boxes.drop("tube")):
        with pytest.raises(InputError, match="no boxes"):
            evaluate(detections.with_tables(boxes=boxless), scenes, DEFAULT)
    twice = pl.concat([detections.boxes, detections.boxes.head(1).with_columns(box=pl.col("box") + 999)])
    with pytest.raises(InputError, match="two boxes in frame 0"):
        evaluate(detections.with_tables(boxes=twice), scenes, DEFAULT)
    labels = pl.concat(
        [detections.tube_labels, detections.tube_labels.head(1).with_columns(label=pl.col("label") - 1)]
    )
    with pytest.raises(InputError, match="several labels"):
        evaluate(detections.with_tables(tube_labels=labels), scenes, DEFAULT)


@pytest.mark.parametrize(
    "change",
    [
        {"judges": "boxes"},
        {"setting": "sgcls"},
        {"recall_at": ()},
        {"recall_at": (20, 20)},
        {"precision_at": (0,)},
        {"top_returns": 0},
        {"viou_threshold": 0.0},
        {"iou_threshold": 1.5},
        {"pixel_offset": -1.0},
        {"several_truths": 1},
        {"frame_min_score": float("nan")},
    ],
)
def test_a_config_holds_what_its_fields_can_be(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        replace(DEFAULT, **change)


def test_predictions_on_true_tubes_are_found_by_name_by_boxes_or_by_number() -> None:
    named = CASES["setting"].videos[0]
    config = replace(DEFAULT, setting="predcls")
    assert summary([named], config)["recall@20"] == 1.0
    same = [Tube("dog", tube.boxes) for tube in named.tubes]
    boxed = Video("boxed", named.tubes, named.truth, same, named.predictions)
    assert summary([boxed], config)["recall@20"] == 1.0
    bare = Predictions(relations=predictions_of([named]).relations, meta=predictions_of([named]).meta)
    assert evaluate(bare, scenes_of([named]), config).value("recall@20") == 1.0
    astray = Video("astray", named.tubes, named.truth, [person(moved(NEAR, 1.0)), same[1]], named.predictions)
    result = evaluate(predictions_of([astray]), scenes_of([astray]), config)
    assert "no prediction is on true tubes" in " ".join(result.notes)
    assert (result.value("recall@20"), result.left_out) == (
        0.0,
        {"predictions that are not on true tubes": 1},
    )


@pytest.mark.parametrize("category", ["person", None])
def test_true_tubes_with_the_same_boxes_are_told_apart_by_category(category: str | None) -> None:
    twin = Tube(category, still(NEAR, 0, 10), "1")
    tubes = [twin, Tube("dog", still(NEAR, 0, 10), "2"), person(FAR, name="3")]
    truth = [Fact(1, "follow", 2, 0, 10)]
    predicted = [Tube("dog", still(NEAR, 2, 8)), person(FAR)]
    video = Video("twins", tubes, truth, predicted, [Fact(0, "follow", 1, 0, 10, 0.9)])
    assert summary([video], replace(DEFAULT, setting="predcls"))["recall@20"] == 1.0


def test_names_are_asked_for_on_both_sides() -> None:
    named = CASES["setting"].videos[0]
    same = [Tube(tube.category, tube.boxes, str(n)) for n, tube in enumerate(named.tubes, 1)]
    video = Video("boxed", named.tubes, named.truth, same, named.predictions)
    predictions, scenes = predictions_of([video]), scenes_of([video])
    config = replace(DEFAULT, setting="predcls")
    nameless = [part.with_tables(tubes=part.tubes.drop("name")) for part in (predictions, scenes)]
    for pair in ((nameless[0], scenes), (predictions, nameless[1])):
        assert evaluate(*pair, config).value("recall@20") == 1.0
        for part in (0, 1):
            boxless = [
                each.with_tables(boxes=each.boxes.drop("tube")) if n == part else each
                for n, each in enumerate(pair)
            ]
            assert evaluate(*boxless, config).left_out == {"predictions that are not on true tubes": 1}


def test_two_predicted_tubes_on_one_true_tube_have_no_relation() -> None:
    named = CASES["setting"].videos[0]
    twice = [Tube("person", still(NEAR, 0, 10), "1"), Tube("person", still(NEAR, 0, 10), "1"), named.tubes[1]]
    detections = [
        Fact(0, "follow", 1, 0, 10, 0.9),
        Fact(1, "follow", 2, 0, 10, 0.5),
        Fact(1, "watch", 1, 0, 10, 0.4),
    ]
    video = Video("twice", named.tubes, named.truth, twice, detections)
    result = evaluate(predictions_of([video]), scenes_of([video]), replace(DEFAULT, setting="predcls"))
    assert result.left_out == {"predictions that are not on true tubes": 1}
    assert result.instances("prediction").select("relation", "hit").rows() == [(1, True), (2, False)]
    # Of equal scores the first in the table is the best, whatever the order of tubes.
    even = [Fact(1, "follow", 2, 0, 10, 0.5), Fact(0, "watch", 2, 0, 10, 0.5)]
    ranked = evaluate(
        *(predictions_of([replace(video, predictions=even)]), scenes_of([video])),
        replace(DEFAULT, setting="predcls", top_returns=1),
    )
    assert ranked.value("recall@20") == 1.0


def test_relations_of_tubes_of_other_videos_are_refused() -> None:
    named = CASES["setting"].videos[0]
    videos = [named, replace(named, name="other")]
    given = predictions_of([named, replace(named, name="other", predictions=named.predictions * 6)])
    bare = Predictions(relations=given.relations.with_columns(video=pl.lit(named.name)), meta=given.meta)
    with pytest.raises(InputError, match=r"tubes of other videos as subject, first \[1, 2, 3, 4, 5\]$"):
        evaluate(bare, scenes_of(videos), replace(DEFAULT, setting="predcls"))


@pytest.mark.parametrize("seed", range(3))
def test_native_files_score_like_the_facts_they_are_made_of(seed: int, tmp_path: Path) -> None:
    videos = [_whole(video) for video in random_videos(seed)]
    truth, detections = tmp_path / "truth", tmp_path / "predictions.json"
    truth.mkdir()
    for video in videos:
        (truth / f"{video.name}.json").write_text(json.dumps(_annotation(video)), encoding="utf-8")
    listed = {video.name: [_prediction(fact, video) for fact in video.predictions] for video in videos}
    detections.write_text(json.dumps({"results": listed}), encoding="utf-8")
    scenes = read("vidvrd", truth)
    predictions = read_relation_predictions(detections, scenes)
    for config in PUBLISHED:
        plain = plain_metrics(videos, config).values
        assert as_json(evaluate(predictions, scenes, config))["summary"] == pytest.approx(plain, abs=1e-9)


def _whole(video: Video) -> Video:
    """The same with a box in every frame, whole relations, and predictions that each have tubes of their own."""

    def filled(tube: Tube) -> Tube:
        found, box = {}, next(iter(tube.boxes.values()), NEAR)
        for frame in range(25):
            found[frame] = box = tube.boxes.get(frame, box)
        return Tube(tube.category, found, tube.name)

    truth = [fact for fact in video.truth if fact.end <= 25]
    predicted: list[Tube] = []
    detections = []
    for fact in video.predictions:
        for place in (fact.subject, fact.object):
            tube = filled(video.predicted_tubes[place])
            boxes = {
                f: moved(b, 1e-3 * len(predicted))
                for f, b in tube.boxes.items()
                if fact.start <= f < fact.end
            }
            predicted.append(Tube(tube.category, boxes))
        ends = (len(predicted) - 2, len(predicted) - 1)
        detections.append(Fact(ends[0], fact.predicate, ends[1], fact.start, fact.end, fact.score))
    return Video(video.name, [filled(t) for t in video.tubes], truth, predicted, detections, list(range(25)))


def _annotation(video: Video) -> dict[str, object]:
    edges = ("xmin", "ymin", "xmax", "ymax")
    trajectories = [
        [
            {"tid": i, "bbox": dict(zip(edges, tube.boxes[frame], strict=True)), "generated": 0}
            for i, tube in enumerate(video.tubes)
        ]
        for frame in range(25)
    ]
    return {
        "video_id": video.name,
        "frame_count": 25,
        "fps": 25,
        "width": 640,
        "height": 360,
        "subject/objects": [{"tid": i, "category": t.category} for i, t in enumerate(video.tubes)],
        "trajectories": trajectories,
        "relation_instances": [
            {
                "subject_tid": fact.subject,
                "predicate": fact.predicate,
                "object_tid": fact.object,
                "begin_fid": fact.start,
                "end_fid": fact.end,
            }
            for fact in video.truth
        ],
    }


def _prediction(fact: Fact, video: Video) -> dict[str, object]:
    subject, object_ = video.predicted_tubes[fact.subject], video.predicted_tubes[fact.object]
    return {
        "triplet": [subject.category, fact.predicate, object_.category],
        "score": fact.score,
        "duration": [fact.start, fact.end],
        "sub_traj": [subject.boxes[f] for f in range(fact.start, fact.end)],
        "obj_traj": [object_.boxes[f] for f in range(fact.start, fact.end)],
    }


def test_a_predicate_of_two_videos_has_the_interval_of_two_whatever_its_relations() -> None:
    tubes = [person(NEAR, 20), person(FAR, 20)]
    facts = [Fact(0, "watch", 1, start, start + 2) for start in range(0, 20, 4)]
    videos = [
        Video(f"v{n:02d}", tubes, [Fact(0, "hold", 1, 0, 9), *(facts if n in (3, 7) else ())])
        for n in range(30)
    ]
    videos = copied(videos)
    found = evaluate(predictions_of(videos), scenes_of(videos), DEFAULT, resamples=100)
    at = max(DEFAULT.recall_at)
    lows = [found.row(f"recall@{at}:{name}")["low_video"] for name in ("hold", "watch")]
    assert lows == pytest.approx([0.025 ** (1 / 30), 0.025 ** (1 / 2)])
