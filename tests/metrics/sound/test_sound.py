from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from plain_sound import ciou, means, overlap, predicted, resized, truth_map
from sound_sets import Heard, random_heard, tables

from roadaware.config import from_dict, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics import sound as evaluation
from roadaware.metrics.metric_state import SceneResult, as_json
from roadaware.metrics.sound import CONFIGS, LocalisedSounds, SoundConfig, evaluate, normalize_maps
from roadaware.scenes.tables import Predictions, Scenes

NAMES = ("ciou", "success@0.5", "success_auc")
MORE = {
    "median": SoundConfig(threshold=None),
    "wrap": SoundConfig(negative_corners="wrap", consensus="capped", consensus_count=3, empty_truth="judged"),
    "small": SoundConfig(size=37, threshold=0.3, comparison="greater"),
}
ALL = {**{name: make() for name, make in CONFIGS.items()}, **MORE}
# What holds of any size of maps is tried on few cells.
SMALL = SoundConfig(size=16)
PUBLISHED = {name: replace(make(), size=16) for name, make in CONFIGS.items()}


def judged(heard: list[Heard], config: SoundConfig = SMALL) -> SceneResult:
    return evaluate(*tables(heard), config)


def summary(result: SceneResult) -> dict[str, float | None]:
    return {name: result.value(name) for name in NAMES}


def state_of(result: SceneResult) -> LocalisedSounds:
    assert isinstance(result.state, LocalisedSounds)
    return result.state


def exact_map(heard: Heard, config: SoundConfig) -> Heard:
    """The sound with its true cells as its map."""
    return replace(heard, map=truth_map(heard, replace(config, consensus="union")))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("seed", range(2))
def test_every_config_is_the_plain_arithmetic(name: str, seed: int) -> None:
    is_the_plain_arithmetic(random_heard(seed), ALL[name])


@pytest.mark.parametrize("name", list(ALL))
def test_every_config_is_the_plain_arithmetic_on_few_cells(name: str) -> None:
    is_the_plain_arithmetic(random_heard(12), replace(ALL[name], size=13))


def is_the_plain_arithmetic(heard: list[Heard], config: SoundConfig) -> None:
    result = judged(heard, config)
    assert summary(result) == pytest.approx(means(heard, config), abs=1e-12)
    for label in ("siren", "shouting", "trumpet"):
        of_label = means([each for each in heard if each.label == label], config)
        assert as_json(result)["per_class"][label] == pytest.approx(of_label, abs=1e-12)
    whole = np.ones((config.size, config.size), dtype=bool)
    centre = np.zeros_like(whole)
    edge = config.size // 4
    centre[edge : config.size - edge, edge : config.size - edge] = True
    truth = [truth_map(each, config) for each in heard]
    rows = result.instances("sound")
    assert rows["ciou"].to_list() == pytest.approx([ciou(each, config) for each in heard], abs=1e-12)
    assert rows["true_cells"].to_list() == pytest.approx([cells.sum() for cells in truth])
    cells = [0 if each.map is None else predicted(each.map, config).sum() for each in heard]
    assert rows["predicted_cells"].to_list() == cells
    for baseline, mask in (("whole image", whole), ("centre", centre)):
        overlaps = [overlap(mask, cells) for cells in truth]
        assert rows[baseline.replace(" ", "_")].to_list() == pytest.approx(overlaps, abs=1e-12)
        assert result.baselines[baseline]["ciou"] == pytest.approx(np.mean(overlaps), abs=1e-12)


@pytest.mark.parametrize("shape", [(14, 14), (7, 9), (13, 20), (24, 24), (48, 48), (30, 25), (1, 1)])
def test_maps_are_resized_as_by_hand(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(3).random(shape).astype(np.float32)
    cells = resized(values, 24)
    with np.errstate(invalid="ignore"):
        expected = (cells - cells.min()) / np.ptp(cells)
    np.testing.assert_array_equal(normalize_maps(values[None], 24)[0], expected)


@pytest.mark.parametrize("name", list(CONFIGS))
def test_truth_against_itself_is_perfect(name: str) -> None:
    config = PUBLISHED[name]
    heard = [exact_map(each, config) for each in random_heard(5)]
    seen = [each for each in heard if each.map is not None and each.map.any()]
    assert len(seen) > 15
    assert summary(judged(seen, config)) == pytest.approx(dict.fromkeys(NAMES, 1.0))


@pytest.mark.parametrize("name", list(CONFIGS))
def test_empty_predictions_score_0_and_are_counted(name: str) -> None:
    _, scenes = tables(random_heard(6))
    result = evaluate(Predictions(), scenes, PUBLISHED[name])
    assert set(summary(result).values()) == {0.0}
    assert "24 of 24 sounds have no map and score 0" in result.notes
    assert (result.facts["predicted"], result.facts["predicted_share"]) == (0, None)
    assert result.baselines["whole image"]["success_auc"] > 0


def test_the_order_of_rows_changes_nothing_but_the_order_of_sounds() -> None:
    predictions, scenes = tables(random_heard(7))
    turned = [
        predictions.with_tables(sounds=predictions.sounds.reverse()),
        scenes.with_tables(boxes=scenes.boxes.reverse(), sounds=scenes.sounds.reverse()),
    ]
    found, straight = evaluate(*turned, SMALL), evaluate(predictions, scenes, SMALL)
    assert summary(found) == pytest.approx(summary(straight), abs=1e-12)
    assert straight.instances("sound")["sound"].to_list() == list(range(24))
    assert found.instances("sound").equals(straight.instances("sound").reverse())


def test_videos_without_a_sound_are_not_judged() -> None:
    predictions, scenes = tables(random_heard(7, 6))
    silent = pl.DataFrame({"video": ["silent"], "width_px": [9], "height_px": [9]})
    more = evaluate(predictions, scenes.with_tables(videos=pl.concat([silent, scenes.videos])), SMALL)
    assert more.instances("sound").equals(evaluate(predictions, scenes, SMALL).instances("sound"))


def test_parts_merge_to_the_whole_and_states_go_through_files() -> None:
    heard = random_heard(8)
    whole = state_of(judged(heard))
    parts = [
        state_of(evaluate(*tables(part, first), SMALL)) for part, first in ((heard[:10], 0), (heard[10:], 10))
    ]
    merged = parts[0].merge(parts[1])
    np.testing.assert_array_equal(merged.values, whole.values)
    again = LocalisedSounds.unpacked(*merged.packed())
    assert again.items.equals(merged.items)
    assert again.config == SMALL
    np.testing.assert_array_equal(whole.only(np.arange(24) < 10).values, parts[0].values)


def test_a_draw_is_the_set_with_videos_repeated() -> None:
    heard = random_heard(9)
    state = state_of(judged(heard))
    weights = np.random.default_rng(0).integers(0, 3, size=(2, len(state.videos))).astype(np.int32)
    drawn = {(m.metric, m.label): m.values for m in state.measured(weights)}
    for draw, counts in enumerate(weights):
        often = dict(zip(state.videos, counts, strict=True))
        rows = [each for each in heard for _ in range(often[each.video])]
        for metric, value in means(rows, SMALL).items():
            assert drawn[metric, None][draw] == pytest.approx(value, abs=1e-12)
    with_intervals = evaluate(*tables(heard), SMALL, resamples=50, by=("sound_class",))
    row = with_intervals.row("ciou")
    assert row["low_video"] < row["value"] < row["high_video"]
    assert with_intervals.groups == ("sound_class: shouting", "sound_class: siren", "sound_class: trumpet")


def test_maps_may_be_lists_or_arrays_single_or_double_square_unless_told() -> None:
    values = np.random.default_rng(10).random((3, 196)).astype(np.float32)
    heard = [Heard([(0.25, 0.25, 0.75, 0.75)], each.reshape(14, 14)) for each in values]
    predictions, scenes = tables(heard)
    expected = summary(evaluate(predictions, scenes, SMALL))
    for inner in (pl.Float32, pl.Float64):
        array = pl.Series("map", values, dtype=pl.Array(pl.Float32, 196)).cast(pl.Array(inner, 196))
        for column in (array, array.arr.to_list()):
            sounds = predictions.sounds.drop("map", "map_width").with_columns(column)
            assert summary(evaluate(predictions.with_tables(sounds=sounds), scenes, SMALL)) == expected


def test_one_map_may_have_more_cells_than_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = random_heard(13, 6)
    expected = judged(heard).instances("sound")
    monkeypatch.setattr(evaluation, "_CELLS_AT_ONCE", 100)
    assert judged(heard).instances("sound").equals(expected)


def test_constant_maps_predict_nothing_and_are_counted() -> None:
    heard = [Heard([(0.0, 0.0, 0.5, 1.0)], np.full((14, 14), 0.3)), Heard([(0.0, 0.0, 1.0, 1.0)], None)]
    result = judged(heard[:1])
    assert summary(result) == {"ciou": 0.0, "success@0.5": 0.0, "success_auc": 0.025}
    assert result.notes == ("1 maps have one value only and predict no cell",)
    assert result.facts["constant_maps"] == 1
    whole = judged(heard[:1], replace(SMALL, constant_map="whole"))
    # 0.5 is as much as is asked for.
    assert summary(whole) == {"ciou": 0.5, "success@0.5": 1.0, "success_auc": pytest.approx(0.525)}
    assert whole.notes == ("1 maps have one value only and predict every cell",)
    assert whole.facts["predicted_share"] == 1.0
    assert judged(heard, PUBLISHED["vggss"]).value("success_auc") == 0.0125  # no map, no success at 0


def test_a_map_of_one_cell_or_at_one_cell_has_one_value_only() -> None:
    whole = Heard([(0.0, 0.0, 1.0, 1.0)], np.array([[0.4]]))
    assert judged([whole]).facts["constant_maps"] == 1
    one = judged([replace(whole, map=np.eye(2))], replace(SMALL, size=1))
    assert (one.facts["constant_maps"], one.value("ciou")) == (1, 0.0)
    column = judged([replace(whole, map=np.array([[0.0], [1.0]]))])
    assert (column.facts["map_sizes"], column.value("ciou")) == ({"2 x 1": 1}, 0.5)


def test_sounds_without_truth_are_left_out_or_fail() -> None:
    heard = [
        Heard([(0.0, 0.0, 0.5, 1.0)], np.eye(2)),
        Heard([(0.2, 0.2, 0.2, 0.9)], np.eye(2)),
        Heard([], np.ones((2, 2))),
    ]
    result = judged(heard)
    assert result.left_out == {"sounds whose boxes cover no cell": 2}
    assert result.row("ciou")["n"] == 1
    assert result.facts["sounds_without_truth"] == 2
    published = judged(heard, PUBLISHED["vggss"])
    # The second is 0, which succeeds at 0; the third is undefined, and fails everywhere.
    alone = judged(heard[:1], PUBLISHED["vggss"])
    assert published.left_out == {}
    assert published.row("ciou")["n"] == 2
    assert published.value("success@0.5") == pytest.approx(alone.value("success@0.5") / 3)
    assert published.value("success_auc") == pytest.approx((alone.value("success_auc") + 0.025) / 3)
    assert math.isnan(ciou(heard[2], PUBLISHED["vggss"]))
    assert judged(heard).instances("sound")["ciou"].null_count() == 1
    nowhere = judged(heard[1:2]).row("ciou")
    assert (nowhere["value"], nowhere["reason"]) == (None, "no sound has a box that covers a cell")
    with pytest.raises(InputError, match="none of the 1 sounds of the truth has a box"):
        judged(heard[2:])
    predictions, scenes = tables(heard)
    with pytest.raises(InputError, match="none of the 3 sounds of the truth has a box"):
        evaluate(predictions, scenes.with_tables(boxes=scenes.boxes.drop("sound")), SMALL)


def test_what_cannot_be_judged_is_named() -> None:
    heard = [Heard([(0.0, 0.0, 0.5, 1.0)], np.eye(4)), Heard([(0.0, 0.0, 0.5, 1.0)], None)]
    predictions, scenes = tables(heard)
    strict = replace(SMALL, missing_prediction="error")
    with pytest.raises(InputError, match=r"1 of 2 sounds have no map, first \['s1'\]"):
        evaluate(predictions, scenes, strict)
    _, many = tables([replace(heard[1], video=f"v{place}") for place in range(7)])
    with pytest.raises(
        InputError, match=r"7 of 7 sounds have no map, first \['s0', 's1', 's2', 's3', 's4'\]"
    ):
        evaluate(Predictions(), many, strict)
    for width, cells in ((3, 16), (0, 16), (-4, 16), (4, 0), (None, 15), (None, 12), (None, 0)):
        odd = predictions.sounds.with_columns(
            pl.Series("map", [[float(n) for n in range(cells)]], dtype=pl.List(pl.Float64)),
            pl.Series("map_width", [width], dtype=pl.Int64),
        )
        with pytest.raises(InputError, match="no rows of equal length"):
            evaluate(predictions.with_tables(sounds=odd), scenes, SMALL)
    gap = predictions.sounds.with_columns(pl.Series("map", [[0.0, None, 1.0, 2.0]]), map_width=pl.lit(2))
    with pytest.raises(InputError, match="1 cells of maps are null, the first of sound 0"):
        evaluate(predictions.with_tables(sounds=gap), scenes, SMALL)
    with pytest.raises(InputError, match="expected a map of each predicted sound, found 1 sounds with"):
        evaluate(predictions.with_tables(sounds=predictions.sounds.drop("map")), scenes, SMALL)
    foreign = predictions.sounds.with_columns(pl.col("sound") + 9)
    with pytest.raises(InputError, match="none of 1 predictions is about one of the 2 true sounds"):
        evaluate(predictions.with_tables(sounds=foreign), scenes)
    both = evaluate(predictions.with_tables(sounds=pl.concat([predictions.sounds, foreign])), scenes, SMALL)
    assert both.left_out == {"predictions on sounds that the truth lacks": 1}
    for side in ("width_px", "height_px"):
        for videos in (scenes.videos.drop(side), scenes.videos.with_columns(pl.lit(0).alias(side))):
            with pytest.raises(
                InputError, match=r"the images of 2 videos have no size, first \['v0', 'v1'\]"
            ):
                evaluate(predictions, scenes.with_tables(videos=videos))
    with pytest.raises(InputError, match="the truth has no sounds"):
        evaluate(predictions, Scenes())


def test_facts_stand_beside_the_numbers() -> None:
    heard = random_heard(11)
    facts = judged(heard).facts
    silent = sum(each.map is None for each in heard)
    assert facts["sounds"] == 24
    assert facts["predicted"] == 24 - silent
    shapes = [each.map.shape for each in heard if each.map is not None]
    sizes = {f"{high} x {wide}": shapes.count((high, wide)) for high, wide in dict.fromkeys(shapes)}
    assert list(facts["map_sizes"].items()) == list(sizes.items())
    assert facts["threshold"] == 0.5
    assert judged(heard[:1], ALL["median"]).facts["threshold"] == "median"
    assert facts["judged_at"] == "16 x 16"
    assert facts["consensus"] == "mean"
    means = [predicted(each.map, SMALL).mean() for each in heard if each.map is not None]
    assert facts["predicted_share"] == pytest.approx(np.mean(means))
    assert judged(heard[:1]).row("ciou")["low_video"] is None


def test_configs_are_plain_data_and_refuse_other_words() -> None:
    for config in ALL.values():
        assert from_dict(SoundConfig, to_dict(config)) == config
    for wrong in ({"consensus": "most"}, {"size": 0}, {"consensus_count": 0}, {"threshold": math.nan}):
        with pytest.raises(UsageError):
            SoundConfig(**wrong)  # type: ignore[arg-type]


def test_silent_and_distant_sounds_are_told_by_the_peak_of_their_map() -> None:
    rng = np.random.default_rng(4)
    heard = []
    for n in range(40):
        shown = n % 3 != 0
        boxes = [(0.0, 0.0, 0.5, 1.0)] if shown else []
        values = np.round(rng.random((6, 6)) * (1.5 if shown else 1.0), 1)
        values[:, :3] += 1.0 * (n % 4 == 1)
        heard.append(Heard(boxes, None if n == 7 else values, video=f"v{n % 8}"))
    result = judged(heard)
    peak = np.array([-np.inf if each.map is None else each.map.max() for each in heard])
    shown = np.array([bool(each.boxes) for each in heard])
    hit = np.array([bool(each.boxes) and ciou(each, SMALL) >= 0.5 for each in heard])
    assert 3 < hit.sum() < shown.sum()
    pairs = [(p > q) + 0.5 * (p == q) for p in peak[shown] for q in peak[~shown]]
    assert result.value("on_screen_auc") == pytest.approx(np.mean(pairs), abs=1e-12)
    for name, positive, total in (
        ("on_screen_ap", shown, shown.sum()),
        ("localisation_ap@0.5", hit, shown.sum()),
    ):
        # At each threshold: precision times what recall has gained since the last one.
        steps = sorted(set(peak), reverse=True)
        found = [int((positive & (peak >= t)).sum()) for t in steps]
        area = sum(
            (f - b) / total * f / (peak >= t).sum()
            for f, b, t in zip(found, [0, *found], steps, strict=False)
        )
        assert result.value(name) == pytest.approx(area, abs=1e-12)
    f1 = max(2 * (hit & (peak >= t)).sum() / ((peak >= t).sum() + shown.sum()) for t in set(peak))
    assert result.value("localisation_f1@0.5") == pytest.approx(f1, abs=1e-12)
    weights = rng.integers(0, 3, (1, 8)).astype(np.int32)
    state = state_of(result)
    drawn = {m.metric: m.values[0] for m in state.measured(weights) if m.label is None}
    often = dict(zip(state.videos, weights[0], strict=True))
    again = [replace(each, video=f"{each.video}-{k}") for each in heard for k in range(often[each.video])]
    for name in ("on_screen_auc", "on_screen_ap", "localisation_ap@0.5", "localisation_f1@0.5"):
        assert drawn[name] == pytest.approx(judged(again).value(name), abs=1e-12)
    first = np.array([each.video < "v4" for each in heard])
    merged = state.only(first).merge(state.only(~first))
    once = np.ones((1, 8), dtype=np.int32)
    assert {m.metric: m.values[0] for m in merged.measured(once) if m.label is None}[
        "on_screen_auc"
    ] == pytest.approx(result.value("on_screen_auc"), abs=1e-12)
    assert (
        judged([each for each in heard if each.boxes]).of_group()["metric"].str.contains("on_screen").sum()
        == 0
    )


def test_of_a_sound_that_lasts_the_frame_that_shows_it_counts() -> None:
    predictions, scenes = tables(
        [Heard([(0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)], np.array([[1.0, 0.0]]))]
    )
    boxes = scenes.boxes.with_columns(frame=pl.Series([3, 4], dtype=pl.Int64))
    moved = scenes.with_tables(boxes=boxes, sounds=scenes.sounds.with_columns(frame=pl.lit(3, pl.Int64)))
    assert evaluate(predictions, moved, SMALL).value("ciou") == 1.0
    elsewhere = moved.with_tables(sounds=moved.sounds.with_columns(frame=pl.lit(9, pl.Int64)))
    assert evaluate(predictions, elsewhere, SMALL).value("ciou") == 0.5
