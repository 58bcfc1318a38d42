"""Examples and baselines: what models are given, what they are never given, and what comes out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from street import ACTIONS, street

from roadaware.datasets import jaad
from roadaware.errors import InputError, UsageError
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate
from roadaware.models.crossing.features import TRAFFIC_FEATURES, VEHICLE_ACTIONS
from roadaware.scenes.sampling import Iv2024, sample, split_samples
from roadaware.scenes.tables import Scenes, sample_scores
from roadaware.tasks.crossing_inputs import facts
from roadaware.tasks.pedestrians import build_examples, evaluate_baselines, fit, predict

SMALL = {
    "logistic": {},
    "boosting": {"rounds": 20, "step": 10, "leaves": (4,)},
    "constant-velocity": {},
}


def sampled(task: str = "action", **changes: object) -> Scenes:
    return sample(street(**changes), Iv2024.reference(task))


def tried(task: str) -> dict[str, dict[str, object]]:
    return {
        name: SMALL[name]
        for name in (("logistic", "boosting") if task == "action" else ("constant-velocity", "boosting"))
    }


def test_examples_hold_the_observed_boxes_and_nothing_later() -> None:
    scenes = sampled()
    for split in ("train", "val", "test"):
        found = build_examples(scenes, split)
        rows = scenes.samples.filter(pl.col("split") == split)
        assert found.boxes.shape == (len(rows), 15, 4)
        assert found.sample.tolist() == rows["sample"].to_list()
        assert found.truth.tolist() == rows["label"].to_list()
        for k in (0, len(rows) // 2, len(rows) - 1):
            row = rows.row(k, named=True)
            track = scenes.boxes.filter(
                (pl.col("tube") == row["tube"])
                & pl.col("frame").is_between(row["start_frame"], row["end_frame"] - 1)
            )
            np.testing.assert_array_equal(
                found.boxes[k], track.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
            )


def test_the_vehicle_action_is_that_of_the_observed_frames() -> None:
    scenes = sampled()
    found = build_examples(scenes, "val")
    row = scenes.samples.filter(pl.col("split") == "val").row(3, named=True)
    seen = scenes.frames.filter(
        (pl.col("video") == "video_0002")
        & pl.col("frame").is_between(row["start_frame"], row["end_frame"] - 1)
    )
    expected = [ACTIONS.categories.to_list().index(name) for name in seen["vehicle_action"].to_list()]
    assert found.vehicle_action[3].tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pl.Enum(ACTIONS.categories.sort()), pl.String, pl.Categorical], ids=str)
def test_vehicle_actions_are_known_by_name_however_a_dataset_numbers_them(dtype: pl.DataType) -> None:
    scenes = sampled()
    action = pl.col("vehicle_action").cast(pl.String)
    other = scenes.with_tables(frames=scenes.frames.with_columns(action.cast(dtype)))
    first, second = (build_examples(s, "val").vehicle_action for s in (scenes, other))
    np.testing.assert_array_equal(first, second)
    reverse = action.replace("stopped", "reversing")
    unknown = build_examples(
        scenes.with_tables(frames=scenes.frames.with_columns(reverse)), "val"
    ).vehicle_action
    np.testing.assert_array_equal(unknown, np.where(first == 0, np.nan, first))


def test_models_number_vehicle_actions_as_jaad_does() -> None:
    assert VEHICLE_ACTIONS == jaad.VEHICLE_ACTION


def test_models_number_the_traffic_as_the_inputs_do_and_take_it_where_asked() -> None:
    assert TRAFFIC_FEATURES == facts.TRAFFIC_COLUMNS
    scenes = street()
    cut = sample(with_traffic(scenes), Iv2024.reference("action"))
    seen = build_examples(cut, "train", traffic=True)
    assert seen.traffic is not None
    assert seen.traffic.shape == (len(seen), 15, len(TRAFFIC_FEATURES))
    assert build_examples(cut, "train").traffic is None
    model = fit(cut, "action", "logistic", traffic=True)
    assert model.fitted.arrays["weights"].shape == (1, 31)
    assert len(predict(model, cut).samples) == len(split_samples(cut, "test").samples)


def with_traffic(scenes: Scenes) -> Scenes:
    crossing = pl.col("frame") > 40
    light = pl.lit("red", pl.Enum(["n/a", "red", "yellow", "green"]))
    frames = scenes.frames.with_columns(ped_crossing=crossing, ped_sign=crossing, stop_sign=~crossing)
    road = pl.lit("street", pl.Enum(["street", "parking_lot", "garage"]))
    videos = scenes.videos.with_columns(road_type=road)
    return scenes.with_tables(frames=frames.with_columns(traffic_light=light), videos=videos)


@pytest.mark.slow
def test_features_of_what_nobody_tells_are_refused_and_baselines_do_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scenes = sampled(vehicle=False)
    assert np.isnan(build_examples(scenes, "train").vehicle_action).all()
    with pytest.raises(InputError, match=r"split 'train' tells anything of ego:action .*vehicle_action"):
        fit(scenes, "action", "logistic")
    alone = fit(scenes, "action", "logistic", vehicle=False)
    assert predict(alone, scenes).samples.height > 0
    done = evaluate_baselines(scenes, "action", {"logistic": {}})["logistic"]
    assert done.model.config.vehicle is False
    assert "baselines go by boxes alone" in caplog.text
    with pytest.raises(InputError, match="ego:action"):
        evaluate_baselines(scenes, "action", {"logistic": {"vehicle": True}})


def test_a_fitted_model_is_not_asked_without_what_it_learnt_from() -> None:
    model = fit(sampled(), "action", "logistic")
    with pytest.raises(InputError, match="split 'test' tells anything of ego:action"):
        predict(model, sampled(vehicle=False))


def test_every_column_of_the_traffic_is_told_by_somebody() -> None:
    whole = with_traffic(street())
    signs = pl.when(pl.col("video") != "video_0002").then("stop_sign")
    cut = sample(
        whole.with_tables(frames=whole.frames.with_columns(stop_sign=signs)), Iv2024.reference("action")
    )
    with pytest.raises(InputError, match=r"split 'val' tells anything of traffic \(stop_sign\);"):
        fit(cut, "action", "logistic", traffic=True)


def test_what_is_unknown_here_and_there_is_told_once_a_split(caplog: pytest.LogCaptureFixture) -> None:
    scenes = street()
    frames = scenes.frames.with_columns(pl.when(pl.col("frame") % 4 > 0).then("vehicle_action"))
    fit(sample(scenes.with_tables(frames=frames), Iv2024.reference("action")), "action", "logistic")
    assert [record.getMessage().split("% of")[1] for record in caplog.records] == [
        " ego:action (frames.vehicle_action) unknown; a mean or zero stands in for it"
    ] * 2


def test_pedestrians_are_named_with_their_video_and_images_have_their_size() -> None:
    found = build_examples(sampled(), "test")
    assert set(found.video) == {"video_0003"}
    assert found.pedestrian[0] == "video_0003 0_3_00"
    assert set(found.width_px) == {960.0}
    assert set(found.height_px) == {540.0}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["action", "risk"])
def test_baselines_beat_chance_on_a_street_that_can_be_learned(task: str) -> None:
    for name, done in evaluate_baselines(sampled(task), task, tried(task)).items():
        assert done.metrics.value("balanced_accuracy") > (0.8 if task == "action" else 0.3), name
        assert done.predictions.meta.notes["model"] == name


def test_baselines_are_scored_on_test_as_evaluate_scores_them() -> None:
    scenes = sampled()
    done = evaluate_baselines(
        scenes, "action", {"logistic": {}}, config=PedestrianConfig.reference("action"), resamples=20
    )
    held = split_samples(scenes, "test")
    again = evaluate(done["logistic"].predictions, held, PedestrianConfig.reference("action"), resamples=20)
    assert again.summary.equals(done["logistic"].metrics.summary)
    assert done["logistic"].scenes == held


@pytest.mark.slow
@pytest.mark.parametrize("task", ["action", "risk"])
def test_test_answers_do_not_change_the_predictions(task: str) -> None:
    scenes = sampled(task)
    swapped = scenes.samples.with_columns(
        pl.when(pl.col("split") == "test")
        .then(1 - pl.col("label").clip(0, 1))
        .otherwise(pl.col("label"))
        .alias("label")
    )
    other = scenes.with_tables(samples=swapped)
    for name, config in tried(task).items():
        first, second = (predict(fit(s, task, name, **config), s) for s in (scenes, other))
        assert first.samples.equals(second.samples)


@pytest.mark.slow
def test_behaviour_tags_identifiers_and_attributes_are_not_features() -> None:
    scenes = sampled()
    tags = pl.Series(np.random.default_rng(0).choice(["walking", "standing"], len(scenes.boxes)))
    dressed = scenes.with_tables(
        boxes=scenes.boxes.with_columns(tags.alias("action"), tags.alias("cross")),
        tubes=scenes.tubes.with_columns((pl.col("name") + "b").alias("name"), pl.lit("adult").alias("age")),
    )
    for name, config in tried("action").items():
        plain, told = (predict(fit(s, "action", name, **config), s) for s in (scenes, dressed))
        assert plain.samples.equals(told.samples)


def test_the_validation_split_decides_and_train_alone_does_not() -> None:
    scenes = sampled()
    flipped = scenes.with_tables(
        samples=scenes.samples.with_columns(
            pl.when(pl.col("split") == "val")
            .then(1 - pl.col("label"))
            .otherwise(pl.col("label"))
            .alias("label")
        )
    )
    right, wrong = (fit(s, "action", "logistic").fitted for s in (scenes, flipped))
    assert max(t.score for t in right.trials) > 0.75 > 0.5 > max(t.score for t in wrong.trials)


def test_the_same_seed_gives_the_same_scores() -> None:
    scenes = sampled()
    runs = [evaluate_baselines(scenes, "action", tried("action"), resamples=10) for _ in range(2)]
    for name in runs[0]:
        assert runs[0][name].predictions == runs[1][name].predictions
        assert runs[0][name].metrics.summary.equals(runs[1][name].metrics.summary)


def test_scores_are_those_of_the_model() -> None:
    scenes = sampled()
    model = fit(scenes, "action", "logistic")
    held = split_samples(scenes, "test")
    given = sample_scores(predict(model, scenes), held)
    np.testing.assert_allclose(given, model.predict(build_examples(scenes, "test")), atol=1e-7)


def test_requests_that_cannot_be_met_say_what_can() -> None:
    scenes = sampled()
    with pytest.raises(UsageError, match="no sample is in split 'dev'; there are samples in"):
        build_examples(scenes, "dev")
    lacking = scenes.with_tables(samples=scenes.samples.filter(pl.col("split") != "val"))
    with pytest.raises(InputError, match="no pedestrian of split 'val' can be sampled: 24 pedestrians"):
        evaluate_baselines(lacking, "action", ["logistic"])
    one = scenes.samples.filter((pl.col("split") != "train") | (pl.col("label") == 0))
    with pytest.raises(InputError, match="train samples have the label 0; nothing can be learned"):
        evaluate_baselines(scenes.with_tables(samples=one), "action", ["logistic"])
    with pytest.raises(UsageError, match="constant-velocity does not answer action; logistic, boosting do"):
        fit(scenes, "action", "constant-velocity")
    with pytest.raises(UsageError, match="no model is called 'forest'"):
        fit(scenes, "action", "forest")
    with pytest.raises(UsageError, match="not for risk"):
        fit(scenes, "risk", "boosting")
    with pytest.raises(UsageError, match="have no samples"):
        build_examples(scenes.with_tables(samples=scenes.samples.drop("split")), "train")
    unlabelled = scenes.samples.with_columns(pl.lit(None, dtype=pl.Int64).alias("label"))
    with pytest.raises(InputError, match="have no answer"):
        build_examples(scenes.with_tables(samples=unlabelled), "train")
    sizeless = scenes.videos.with_columns(pl.lit(None, dtype=pl.Int64).alias("width_px"))
    with pytest.raises(InputError, match="image size of"):
        build_examples(scenes.with_tables(videos=sizeless), "train")
    with pytest.raises(InputError, match="no vocabulary"):
        fit(scenes.with_tables(meta=replace(scenes.meta, vocabularies={})), "action", "logistic")
