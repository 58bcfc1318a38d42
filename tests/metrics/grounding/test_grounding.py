from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from grounded_sets import Told, predictions, random_told, same, steady, tables
from plain_grounding import Row, every_frame, means, official, tubedetr

from roadaware.config import from_dict, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.grounding import (
    CONFIGS,
    GroundedSentences,
    GroundingConfig,
    convert_frame_rate,
    evaluate,
    sample_frames,
)
from roadaware.metrics.metric_state import SceneResult, as_json
from roadaware.scenes.tables import Meta, Predictions, Scenes

PLAIN: dict[str, Callable[[Told], Row]] = {
    "default": every_frame,
    "tubedetr-hcstvg": lambda told: tubedetr(told, 1, hcstvg=True),
    "tubedetr-vidstg": lambda told: tubedetr(told, 0, hcstvg=False),
    "hcstvg-official": official,
}
FIRST = {"tubedetr-hcstvg": 1}
NAMES = ("m_tiou", "m_viou", "viou@0.3", "viou@0.5", "gt_viou", "gt_viou@0.3", "gt_viou@0.5")


def judged(told: list[Told], name: str = "default", first: int = 0, **fields: object) -> SceneResult:
    return evaluate(*tables(told, first), replace(CONFIGS[name](), **fields))


def summary(result: SceneResult) -> dict[str, float | None]:
    return {name: result.value(name) for name in NAMES}


def state_of(result: SceneResult) -> GroundedSentences:
    assert isinstance(result.state, GroundedSentences)
    return result.state


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CONFIGS))
@pytest.mark.parametrize("seed", range(4))
def test_every_config_is_the_plain_loop(name: str, seed: int) -> None:
    is_the_plain_loop(random_told(seed, short_clips=name == "tubedetr-hcstvg"), name)


@pytest.mark.parametrize("name", list(CONFIGS))
def test_every_config_is_the_plain_loop_on_few_sentences(name: str) -> None:
    is_the_plain_loop(random_told(12, 8, short_clips=name == "tubedetr-hcstvg"), name)


def is_the_plain_loop(told: list[Told], name: str) -> None:
    result = judged(told, name, FIRST.get(name, 0))
    strict = name != "default"
    assert summary(result) == pytest.approx(means(map(PLAIN[name], told), strict=strict), abs=1e-12)
    for kind in ("declarative", "interrogative"):
        of_kind = means((PLAIN[name](each) for each in told if each.kind == kind), strict=strict)
        assert as_json(result)["per_class"][kind] == pytest.approx(of_kind, abs=1e-12)
    rows = result.instances("sentence").select("tiou", "viou", "gt_viou").rows()
    assert rows == [pytest.approx(PLAIN[name](each), abs=1e-12) for each in told]


@pytest.mark.parametrize("seed", range(3))
def test_the_earlier_hull_inflates(seed: int) -> None:
    told = random_told(seed, short_clips=True)
    old = judged(told, "tubedetr-hcstvg", 1, hull_end="min")
    plain = means((tubedetr(each, 1, hcstvg=True, hull="min") for each in told), strict=True)
    assert summary(old) == pytest.approx(plain, abs=1e-12)
    new = judged(told, "tubedetr-hcstvg", 1).value("m_viou")
    assert (old.value("m_viou") or 0) > (new or 0)


@pytest.mark.parametrize("name", list(CONFIGS))
def test_truth_against_itself_is_perfect(name: str) -> None:
    told = random_told(1, short_clips=name == "tubedetr-hcstvg", shortest=10)
    assert set(summary(judged(same(told), name)).values()) == {1.0}


@pytest.mark.parametrize("name", list(CONFIGS))
def test_empty_predictions_score_0_and_are_counted(name: str) -> None:
    _, scenes = tables(random_told(2, 10))
    result = evaluate(Predictions(), scenes, CONFIGS[name]())
    assert set(summary(result).values()) == {0.0}
    assert "10 of 10 sentences have no prediction and score 0" in result.notes


@pytest.mark.parametrize("name", list(CONFIGS))
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    predictions, scenes = tables(random_told(3))
    shuffled = [
        part.with_tables(
            **{
                table: getattr(part, table).sample(fraction=1, shuffle=True, seed=7)
                for table in ("queries", "boxes", "tubes")
            }
        )
        for part in (predictions, scenes)
    ]
    turned, straight = evaluate(*shuffled, CONFIGS[name]()), evaluate(predictions, scenes, CONFIGS[name]())
    assert summary(turned) == pytest.approx(summary(straight), abs=1e-12)


def test_parts_merge_to_the_whole_and_a_part_is_what_is_left() -> None:
    told = random_told(4)
    cut = next(n for n in range(14, 30) if told[n].video != told[n - 1].video)
    whole = state_of(judged(told, "tubedetr-vidstg"))
    parts = [state_of(judged(part, "tubedetr-vidstg")) for part in (told[:cut], told[cut:])]
    parts[1] = replace(parts[1], items=parts[1].items.with_columns(pl.col("query") + cut))
    merged = parts[0].merge(parts[1])
    np.testing.assert_array_equal(merged.values, whole.values)
    assert merged.videos == whole.videos
    kept = np.arange(len(told)) < cut
    assert [m.values[0] for m in whole.only(kept).measured(np.ones((1, cut // 2), np.int32))] == [
        m.values[0] for m in parts[0].measured(np.ones((1, cut // 2), np.int32))
    ]
    with pytest.raises(InputError, match="both parts hold"):
        parts[0].merge(parts[0])
    with pytest.raises(InputError, match="different configurations"):
        parts[0].merge(state_of(judged(told[cut:])))


def test_a_state_goes_through_a_file() -> None:
    state = state_of(judged(random_told(5)))
    again = GroundedSentences.unpacked(*state.packed())
    assert again.config == state.config
    assert again.items.equals(state.items)
    np.testing.assert_array_equal(again.values, state.values)


def test_a_draw_is_the_set_with_videos_repeated() -> None:
    told = random_told(6)
    state = state_of(judged(told))
    weights = np.random.default_rng(0).integers(0, 3, size=(3, len(state.videos))).astype(np.int32)
    drawn = {(m.metric, m.label): m.values for m in state.measured(weights)}
    for draw, counts in enumerate(weights):
        often = dict(zip(state.videos, counts, strict=True))
        rows = [every_frame(each) for each in told for _ in range(often[each.video])]
        for metric, value in means(rows, strict=False).items():
            assert drawn[metric, None][draw] == pytest.approx(value, abs=1e-12)


def test_slices_and_intervals() -> None:
    told = [
        replace(each, category="flood" if n % 4 < 2 else "fight") for n, each in enumerate(random_told(7))
    ]
    result = evaluate(*tables(told), by=("category", "density", "sentence_kind"), resamples=50)
    fights = means((every_frame(each) for each in told if each.category == "fight"), strict=False)
    assert result.value("m_viou", "category: fight") == pytest.approx(fights["m_viou"])
    row = result.row("m_viou")
    assert row["low_video"] < row["value"] < row["high_video"]
    assert {group.split(":")[0] for group in result.groups} == {"category", "density", "sentence_kind"}


def test_density_counts_who_is_in_the_true_frames() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    told = [Told("v", (10, 20), steady((10, 20), box), None) for _ in range(3)]
    told += [Told("w", (10, 20), steady((10, 20), box), None), Told("x", (3, 4), {}, None)]
    items = state_of(judged(told)).items
    assert items["density"].to_list() == ["2-4"] * 3 + ["1", None]


def test_frames_without_a_true_box_are_asked_for_by_nobody() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    told = Told("v", (0, 10), dict.fromkeys(range(0, 10, 5), box), (0, 10), steady((0, 10), box))
    assert judged([told]).value("m_viou") == 1.0
    assert judged([told], boxless_frames="counted").value("m_viou") == 0.2
    nowhere = judged([replace(told, boxes={})])
    assert nowhere.value("m_viou") is None
    assert nowhere.value("gt_viou") is None
    assert nowhere.value("m_tiou") == 1.0
    assert nowhere.row("m_viou")["reason"] == "no sentence has a true box in the frames that are looked at"


def test_a_span_of_one_frame_is_judged_like_a_long_one() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    told = Told("v", (5, 6), {5: box}, (5, 6), {5: box})
    assert set(summary(judged([told])).values()) == {1.0}
    assert judged([replace(told, prediction=(5, 9))]).value("m_tiou") == 0.25
    assert judged([replace(told, prediction=(5, 9))]).value("m_viou") == 0.25
    assert judged([Told("v", (5, 5), {}, (5, 5))]).value("m_tiou") == 0.0


def test_frames_that_count_are_those_of_the_hull_that_have_a_true_box() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    told = Told("v", (10, 20), steady((10, 20), box), (0, 5), steady((0, 30), box))
    hulls = {
        ("max", (0, 5)): 20,
        ("max", (15, 30)): 20,
        ("min", (0, 5)): 5,
        ("min", (15, 30)): 10,
        ("min", (0, 0)): 0,
    }
    for (end, prediction), frames in hulls.items():
        rows = judged([replace(told, prediction=prediction)], hull_end=end).instances("sentence")
        assert rows["hull_frames"].to_list() == [frames]


def test_what_is_missing_can_be_an_error() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    told = Told("v", (0, 10), steady((0, 10), box), (0, 10), steady((0, 9), box))
    whole = replace(told, predicted_boxes=steady((0, 10), box))
    assert judged([told]).value("gt_viou") == 0.9
    with pytest.raises(
        InputError, match=r"1 true frames of 1 sentences have no predicted box, first of \['q1'\]"
    ):
        judged([whole, told], missing_box="error")
    with pytest.raises(InputError, match=r"1 of 2 sentences have no prediction, first \['q1'\]"):
        judged([told, replace(told, prediction=None)], missing_prediction="error")
    assert judged([whole], missing_box="error", missing_prediction="error").value("gt_viou") == 1.0


def test_given_spans_judge_boxes_alone() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    half = (2.0, 0.0, 4.0, 4.0)
    told = Told("v", (50, 60), steady((50, 60), box), (0, 1), {**steady((50, 60), half), 50: box})
    given = judged([told], "tubedetr-vidstg", temporal="given")
    assert given.value("gt_viou") == 0.75  # frames 50 and 55
    assert given.value("m_viou") is None
    assert "given" in given.row("m_viou")["reason"]
    assert judged([told], "tubedetr-vidstg", temporal="given_first").value("gt_viou") == 1.0
    assert judged([told], temporal="given").value("gt_viou") == pytest.approx(0.55)
    assert judged([told], temporal="given_first").value("gt_viou") == 1.0


def test_predictions_and_sentences_that_do_not_meet() -> None:
    told = random_told(8, 6)
    predictions, scenes = tables(told)
    foreign = predictions.queries.with_columns(pl.col("query") + 100)
    with pytest.raises(InputError, match="is about one of the 6 true sentences"):
        evaluate(predictions.with_tables(queries=foreign), scenes)
    some = pl.concat([predictions.queries, foreign.head(2)])
    assert evaluate(predictions.with_tables(queries=some), scenes).left_out == {
        "predictions on sentences that the truth lacks": 2
    }
    spanless = scenes.queries.with_columns(
        pl.when(pl.col("query") > 3).then(None).otherwise(pl.col("start_frame")).alias("start_frame")
    )
    partly = evaluate(predictions, scenes.with_tables(queries=spanless))
    assert partly.left_out["sentences without a true span"] == 2
    assert partly.facts["sentences"] == 4
    with pytest.raises(InputError, match="0 sentences and none with a span"):
        evaluate(predictions, Scenes())


def test_boxes_and_spans_that_were_not_predicted() -> None:
    told = same(random_told(9, 4))
    predictions, scenes = tables(told)
    pointless = predictions.with_tables(queries=predictions.queries.drop("tube"))
    assert summary(evaluate(pointless, scenes)) == dict(zip(NAMES, [1.0] + [0.0] * 6, strict=True))
    spanless = predictions.with_tables(queries=predictions.queries.drop("start_frame", "end_frame"))
    assert summary(evaluate(spanless, scenes)) == dict(zip(NAMES, [0.0] * 4 + [1.0] * 3, strict=True))
    endless = predictions.with_tables(queries=predictions.queries.drop("end_frame"))
    assert summary(evaluate(endless, scenes)) == summary(evaluate(spanless, scenes))


def test_facts_stand_beside_the_numbers_and_thin_predictions_are_told() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    told = Told("v", (0, 50), steady((0, 50), box), (0, 50), dict.fromkeys(range(0, 50, 5), box))
    result = judged([told])
    assert result.facts == {
        "sentences": 1,
        "predicted": 1,
        "frames": "every frame",
        "true_frames": 50,
        "hull_frames": 50,
        "true_frames_without_predicted_box": 40,
        "first_frame": 0,
        "average": "over sentences",
    }
    assert result.notes[0] == "40 of 50 true frames have no predicted box and an overlap of 0"
    assert "most true frames have no predicted box" in result.notes[1]
    half = judged([replace(told, predicted_boxes=dict.fromkeys(range(0, 50, 2), box))])
    assert half.notes == ("25 of 50 true frames have no predicted box and an overlap of 0",)
    assert judged(same([told])).notes == ()
    sampled = judged([told], "tubedetr-vidstg")
    assert sampled.value("m_viou") == 1.0
    assert sampled.facts["frames"] == "5 frames per second, at most 200"
    assert sampled.facts["true_frames_without_predicted_box"] == 0
    thin = judged([replace(told, predicted_boxes={0: box})], "tubedetr-vidstg", most_frames=None)
    assert thin.facts["frames"] == "5 frames per second"
    assert thin.notes == ("9 of 10 true frames have no predicted box and an overlap of 0",)
    predictions, scenes = tables([told])
    assert evaluate(predictions, scenes.with_tables(meta=Meta())).facts["first_frame"] == 0
    assert evaluate(predictions, scenes).row("m_viou")["low_video"] is None


def test_sampling_needs_a_rate_and_a_length() -> None:
    told = replace(random_told(10, 1)[0], fps=None)
    with pytest.raises(InputError, match="its rate is unknown"):
        judged([told], "tubedetr-vidstg")
    predictions, scenes = tables([replace(told, segment=None)])
    lengthless = scenes.with_tables(videos=scenes.videos.drop("n_frames"))
    with pytest.raises(InputError, match="is unknown"):
        evaluate(predictions, lengthless, CONFIGS["tubedetr-hcstvg"]())


def test_frames_are_sampled_from_the_first_on() -> None:
    config = GroundingConfig(most_frames=4)
    assert sample_frames(7, 7, 25.0, config).tolist() == [7]
    assert sample_frames(7, 8, 25.0, config).tolist() == [7]
    assert sample_frames(7, 10, 5.0, config).tolist() == [7, 8, 9]
    assert sample_frames(7, 11, 2.0, config).tolist() == [7, 8, 9, 10]
    assert sample_frames(7, 13, 5.0, config).tolist() == [7, 8, 10, 11]
    assert sample_frames(0, 100, 25.0, config).tolist() == [0, 25, 50, 75]
    assert sample_frames(0, 30, 25.0, GroundingConfig(most_frames=None)).tolist() == [0, 5, 10, 15, 20, 25]


def test_rates_come_back_in_double_precision() -> None:
    for rate in (
        24.0,
        25.0,
        29.97,
        23.976,
        30000 / 1001,
        24000 / 1001,
        60000 / 1001,
        12.5,
        10.0,
        1000 / 1001,
        1000.0,
    ):
        assert convert_frame_rate(float(np.float32(rate))) == rate


def test_configs_are_plain_data_and_refuse_other_words() -> None:
    for make in CONFIGS.values():
        assert from_dict(GroundingConfig, to_dict(make())) == make()
    for wrong in (
        {"frames": "some"},
        {"hull_end": "mid"},
        {"sample_fps": 0.0},
        {"clip_seconds": float("nan")},
        {"most_frames": 0},
        {"thresholds": (2.0,)},
    ):
        with pytest.raises(UsageError):
            GroundingConfig(**wrong)  # type: ignore[arg-type]


def test_a_note_that_is_no_number_is_refused() -> None:
    found, scenes = tables(random_told(11, 2))
    odd = scenes.with_tables(meta=replace(scenes.meta, notes={"first_frame": "one"}))
    with pytest.raises(InputError, match="first_frame"):
        evaluate(found, odd, CONFIGS["tubedetr-hcstvg"]())
    assert predictions(random_told(11, 2)) == found
