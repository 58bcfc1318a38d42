"""Runs and their samples: a digest that knows what was annotated, and folders that keep to it."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from street import street

from roadaware.errors import InputError, UsageError
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs import Media
from roadaware.training.pedestrians import several
from roadaware.training.pedestrians.recipe import NetworkRecipe, PedestrianRecipe, SamplesRecipe
from roadaware.training.pedestrians.results import DATA, RECIPE, TABLE, digest_samples, refuse_missing
from roadaware.training.pedestrians.run import train_predictors
from roadaware.training.pedestrians.samples import Material
from roadaware.training.recipe import ScheduleRecipe


def digest(scenes: Scenes, poses: Path | str = "") -> str:
    cut = sample(scenes, Iv2024.reference("action"))
    return digest_samples(Material(cut, cut, Iv2024.reference("action"), ()), str(poses))


def test_the_digest_is_that_of_the_values_however_they_are_held() -> None:
    scenes = street(people=3)
    text = scenes.frames.with_columns(pl.col("vehicle_action").cast(pl.String))
    wide = scenes.boxes.with_columns(pl.col("x1_px").cast(pl.Float64))
    assert digest(scenes) == digest(scenes.with_tables(frames=text, boxes=wide))
    assert digest(street(people=3)) == digest(scenes)
    joints = [[1.0, 2.0], None, [], *[[0.5]] * (len(wide) - 3)]
    told = [
        digest(scenes.with_tables(boxes=wide.with_columns(joints=pl.Series(joints[::k])))) for k in (1, -1)
    ]
    assert len({*told, digest(scenes)}) == 3


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("boxes", pl.when(pl.col("box") == 0).then(pl.col("x2_px") + 0.5).otherwise("x2_px").alias("x2_px")),
        ("frames", pl.lit(None, pl.String).alias("vehicle_action")),
        ("videos", (pl.col("width_px") + 1).alias("width_px")),
        ("tubes", (pl.col("event_frame") - 9).alias("event_frame")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_digest_changes_with_what_the_samples_are_made_of(table: str, change: pl.Expr) -> None:
    scenes = street(people=3)
    other = scenes.with_tables(**{table: getattr(scenes, table).with_columns(change)})
    assert digest(other) != digest(scenes)


def test_the_digest_reads_poses_and_says_where_there_are_none(tmp_path: Path) -> None:
    scenes = street(people=3)
    (tmp_path / "poses").mkdir()
    (tmp_path / "poses" / "a.pkl").write_bytes(b"1")
    first = digest(scenes, tmp_path / "poses")
    (tmp_path / "poses" / "a.pkl").write_bytes(b"2")
    assert len({digest(scenes), first, digest(scenes, tmp_path / "poses")}) == 3
    with pytest.raises(InputError, match="No such file"):
        digest(scenes, tmp_path / "none.npz")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    save(street(people=6), tmp_path / "street")
    return tmp_path / "street"


def recipe_on(root: Path, network: NetworkRecipe) -> PedestrianRecipe:
    return PedestrianRecipe(
        seeds=(0,),
        network=network,
        samples=SamplesRecipe("saved", str(root), config="reference"),
        schedule=ScheduleRecipe(epochs=1, optimizer="adamw", lr=0.01, decay="none"),
        batch=32,
        threads=1,
    )


STEADY = NetworkRecipe("steady", fields={"width": 8, "dilations": (1, 2)}, inputs=("boxes", "ego:action"))

TREES = NetworkRecipe("boosting", fields={"rounds": 20, "leaves": (4,)})


@pytest.mark.slow
@pytest.mark.parametrize("network", [STEADY, TREES], ids=["network", "hand features"])
def test_results_on_samples_that_changed_since_are_refused_and_older_ones_taken_with_a_note(
    root: Path, tmp_path: Path, network: NetworkRecipe, caplog: pytest.LogCaptureFixture
) -> None:
    recipe, out = recipe_on(root, network), tmp_path / "run"
    first = several.run_one(recipe, out, resamples=0)
    assert several.run_one(recipe, out, resamples=0).said is None  # kept
    save(street(people=6, seed=1), root, overwrite=True)
    caplog.set_level(logging.WARNING)
    for done in (True, False):
        with pytest.raises(UsageError, match=r"on other samples than .*street gives now.*--out"):
            several.run_one(recipe, out, resamples=0)
        if done:
            (out / TABLE).rename(out / "kept")
    (out / "kept").rename(out / TABLE)
    (out / DATA).unlink()
    assert first.rows is not None
    assert first.rows.equals(several.run_one(recipe, out, resamples=0).rows)
    assert "does not say which samples it was run on" in caplog.text
    root.rename(tmp_path / "gone")
    assert first.rows.equals(several.run_one(recipe, out, resamples=0).rows)
    assert "cannot be told" in caplog.text


def test_a_recipe_that_is_refused_leaves_the_folder_to_the_next(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    good = recipe_on(root, STEADY)
    with pytest.raises(InputError, match="ego_speed_kmh"):
        train_predictors(replace(good, network=replace(STEADY, inputs=("ego:speed",))), out)
    assert not (out / RECIPE).exists()
    with pytest.raises(UsageError, match="cannot be made with"):
        train_predictors(replace(good, network=replace(STEADY, fields={"width": -8})), out)
    assert set(train_predictors(good, out).predictors) == {0}
    with pytest.raises(UsageError, match="another recipe"):
        train_predictors(replace(good, batch=16), out)


def test_films_and_masks_that_are_not_there_are_counted_and_named_without_being_opened(
    tmp_path: Path,
) -> None:
    cut = sample(street(people=3), Iv2024.reference("action"))
    paths = pl.format("{}/video.mp4", pl.col("video"))
    cut, media = cut.with_tables(videos=cut.videos.with_columns(path=paths)), Media(tmp_path)
    for video in ("video_0001", "video_0002"):
        (tmp_path / video).mkdir()
        (tmp_path / video / "video.mp4").touch()
    refuse_missing(cut, ["boxes", "pose:box"], media)
    refuse_missing(cut, ["crop:box@8"], Media())
    with pytest.raises(
        InputError, match=r"1 of 3 videos of the samples are missing: video_0003/video\.mp4\n"
    ):
        refuse_missing(cut, ["boxes", "crop:box@8"], media)
    with pytest.raises(InputError, match=r"3 of 3 masks .*video_0001/semantics\.zip, .*no such folder"):
        refuse_missing(cut, ["maps@8"], Media(tmp_path / "none"))
    refuse_missing(cut, ["maps@8"], Media(tmp_path, maps="{video}/{frame}.png"))
    (tmp_path / "video_0003").mkdir()
    (tmp_path / "video_0003" / "video.mp4").touch()
    refuse_missing(cut, ["crop:box@8"], media)
