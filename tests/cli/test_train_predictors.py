"""`roadaware train` with predictors of pedestrians: what it tells, and what it refuses by name."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from small_files import Command

from roadaware.config import digest
from roadaware.scenes.store import save
from roadaware.training.pedestrians import fit, run
from roadaware.training.recipe_files import read_recipe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))

from street import street

RECIPE = {
    "name": "tiny",
    "task": "action",
    "seeds": [0, 1],
    "network": {
        "name": "biped",
        "fields": {"width": 6, "embed": 4, "decode": 6, "filters": [2]},
        "inputs": ["boxes:last", "boxes"],
    },
    "samples": {"reader": "saved", "config": "reference"},
    "schedule": {"epochs": 2, "optimizer": "adamw", "lr": 0.01},
    "threads": 1,
    "batch": 32,
}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Streets, whole and otherwise; nobody writes into them."""
    root = tmp_path_factory.mktemp("streets")
    whole = street(people=6)
    save(whole, root / "whole")
    save(street(people=6, vehicle=False), root / "no-vehicle")
    save(whole.with_tables(boxes=whole.boxes.filter(pl.col("frame") < 14)), root / "short")
    nobody = pl.when(pl.col("video") == "video_0001").then(pl.lit("not-crossing")).otherwise("crossing")
    save(whole.with_tables(tubes=whole.tubes.with_columns(crossing=nobody)), root / "one-label")
    save(whole.with_tables(boxes=whole.boxes.clear()), root / "no-boxes")
    never = pl.when(pl.col("video") == "video_0003").then(pl.lit("not-crossing")).otherwise("crossing")
    mixed = pl.when(pl.col("video") == "video_0003").then(never).otherwise(pl.col("crossing"))
    save(whole.with_tables(tubes=whole.tubes.with_columns(crossing=mixed)), root / "nobody-crosses")
    words = pl.Series(["irrelevant", "crossing", "region_3"] * 6)
    save(whole.with_tables(tubes=whole.tubes.with_columns(crossing=words)), root / "words")
    poses = {"video": np.array(["video_0001"]), "name": np.array(["0_1_00"]), "frame": np.array([0])}
    np.savez(root / "body-25.npz", **poses, joints=np.zeros((1, 75)))
    return root


@pytest.fixture
def recipe(roots: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    samples = {**RECIPE["samples"], "root": str(roots / "whole")}
    path.write_text(yaml.safe_dump({**RECIPE, "samples": samples}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        (["network.inputs=[boxes,'ego:speed']"], 3, "tell no ego_speed_kmh"),
        (["network.inputs=['ego:action']", "samples.root={}/no-vehicle"], 3, "no vehicle_action"),
        (["network.inputs=['crop:box@64']", "network.name=c3d"], 3, "does not say where they lie"),
        (["network.inputs=[pose]"], 3, "samples.poses"),
        (["network.inputs=[pose]", "samples.poses={}/body-25.npz"], 3, "found 75 numbers, 25 joints of 3"),
        (["network.inputs=[behaviour]"], 3, "behaviour"),
        (["samples.protocol=jaad-risk@iv2024"], 2, "asks for risk, and the recipe for action"),
        (["samples.root={}/words"], 3, "tubes.crossing says 'region_3'"),
        (["samples.root={}/short"], 3, "pedestrians too short"),
        (["samples.root={}/one-label"], 3, "samples of split 'train' have one label"),
        (["network.name=steady", "network.fields={{}}", "tasks.grid=1"], 2, "steady has no head for it"),
        (["network.fields={{wdth: 3}}"], 2, "no field wdth"),
        (["network.fields={{width: abc}}"], 2, "network.fields.width is a whole number, not 'abc'"),
        (["network.fields={{width: -4}}"], 2, "biped cannot be made with network.fields {'width': -4}: "),
        (["samples.fields={{tte_frames: abc}}"], 2, "samples.fields.tte_frames holds 2 values, not 'abc'"),
        (["schedule.epochs=abc"], 2, "schedule.epochs is a number, not 'abc'"),
        (["network.name=bipped"], 2, "'bipped'; did you mean 'biped'? There are single-rnn"),
        (["network.name=bosting"], 2, "did you mean 'boosting'?"),
        (["loss.every_frame=0.3"], 2, "loss.every_frame: biped does not answer at every frame"),
        (["loss.consistency=1"], 2, "; steady does. "),
        (["samples.root={}/no-boxes"], 3, "action is learnt from boxes, and these scenes have none"),
        (
            [
                "network.inputs=['crop:box@64']",
                "network.name=c3d",
                "network.fields={{}}",
                "samples.media={}/no",
                "samples.films=clips/{{video}}.mp4",
            ],
            3,
            "3 of 3 videos of the samples are missing: clips/video_0001.mp4, clips/video_0002.mp4, "
            "clips/video_0003.mp4; there is no such folder",
        ),
    ],
)
def test_what_cannot_be_learnt_is_named_before_anything_is(
    roadaware: Command, roots: Path, recipe: Path, changes: list[str], code: int, says: str
) -> None:
    words = [change.format(roots) for change in changes]
    done = roadaware("train", recipe, "--out", recipe.parent / "run", "--set", *words)
    assert done.code == code
    assert says in done.err
    assert not list((recipe.parent / "run").glob("seed-*/*"))


@pytest.mark.slow
def test_a_run_is_named_by_its_recipe_and_tells_paths_and_cells(
    roadaware: Command, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe.parent)
    done = roadaware("train", recipe, "--json")
    assert done.code == 0
    said = json.loads(done.out)
    assert said["folder"] == f"runs/tiny-{digest(read_recipe(recipe))[:8]}"
    assert json.loads(Path(said["folder"], "results.json").read_text()) == said
    assert set(said["test"]) == {"seed 0", "seed 1", "mean"}
    assert set(said["ahead"]) == {"seed 0", "seed 1", "mean", "constant velocity"}
    assert said["ahead"]["mean"]["ade_px"] > 0
    test = Path(said["folder"], "test")
    rows = pl.read_parquet(test / "per_sample.parquet")
    assert len(rows) == len(set(zip(rows["pedestrian"], rows["tte_frames"], strict=True)))
    assert json.loads((test / "results.json").read_text())["metrics"]["auc"] == said["test"]["mean"]["auc"]
    assert roadaware("compare", test, test, "--resamples", "5").code == 0
    assert f"tiny: action, {len(rows)} samples" in roadaware("calibration", test, "--resamples", "0").out
    again = roadaware("train", recipe)
    shown = next(line for line in again.out.splitlines() if line.startswith("constant velocity"))
    assert f"{said['ahead']['constant velocity']['fde_px']:.1f}" in shown


@pytest.mark.slow
def test_labels_that_no_sample_of_test_has_are_named(
    roadaware: Command, roots: Path, recipe: Path, tmp_path: Path
) -> None:
    trees = tmp_path / "trees.yaml"
    held = {**yaml.safe_load(recipe.read_text()), "name": "trees"}
    trees.write_text(yaml.safe_dump({**held, "network": {"name": "boosting", "fields": {"rounds": 5}}}))
    told = "no sample of split 'test' is labelled 'crossing': AUC and average precision are not defined there"
    changes = ("--set", f"samples.root={roots}/nobody-crosses", "seeds=[0]")
    done = roadaware("train", recipe, "--out", tmp_path / "one", *changes)
    assert done.code == 0
    assert told in done.out
    assert told in done.err
    said = json.loads((tmp_path / "one" / "results.json").read_text())
    assert [note.startswith(told) for note in said["notes"]] == [True]
    for _ in range(2):  # what is done tells it again
        done = roadaware("train", trees, "--out", tmp_path / "more", *changes)
        assert f"trees: {told}" in done.out
        said = json.loads((tmp_path / "more" / "results.json").read_text())
        assert [note.startswith(told) for note in said["notes"]["trees"]] == [True]


def test_what_fails_alike_for_every_seed_is_told_once(
    roadaware: Command, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> float:
        raise ZeroDivisionError("of a step")

    monkeypatch.setattr(fit.Fitter, "_step", broken)
    done = roadaware("train", recipe, "--out", recipe.parent / "run")
    assert done.code == 1
    last = done.err.splitlines()[-1]
    assert last.endswith("every seed failed, and all for one reason: ZeroDivisionError: of a step")


def test_a_seed_that_diverges_leaves_the_others_and_the_command_fails(
    roadaware: Command, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = fit.Fitter._step

    def bad(self: fit.Fitter, *given: object) -> float:
        if self.seed == 1:
            next(self.network.parameters()).data.fill_(float("nan"))
        return step(self, *given)

    monkeypatch.setattr(fit.Fitter, "_step", bad)
    out = recipe.parent / "run"
    done = roadaware("train", recipe, "--out", out)
    assert done.code == 1
    assert "the loss of seed 1 is nan in epoch 1" in done.out
    assert "1 of 2 seeds failed" in done.err
    assert any(line.startswith("seed 0 ") for line in done.out.splitlines())
    said = json.loads((out / "results.json").read_text())
    assert set(said["test"]) == {"seed 0"}
    assert set(said["failed"]) == {"1"}
    done = roadaware("train", recipe, "--out", out, "--set", "seeds=[1]")
    assert done.code == 2  # another recipe
    done = roadaware("train", recipe, "--out", recipe.parent / "none", "--set", "seeds=[1]")
    assert done.code == 1
    assert "every seed failed. seed 1: the loss of seed 1 is nan" in done.err


def test_rates_that_are_too_high_are_named(roadaware: Command, recipe: Path) -> None:
    done = roadaware("train", recipe, "--out", recipe.parent / "run", "--set", "schedule.lr=1e30")
    assert done.code == 1
    assert "lower schedule.lr" in done.err


def test_ctrl_c_saves_and_the_same_command_goes_on(
    roadaware: Command, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, out = run._Epochs.__call__, recipe.parent / "run"

    def interrupt(self: run._Epochs, score: fit.Score) -> None:
        told(self, score)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run._Epochs, "__call__", interrupt)
    done = roadaware("train", recipe, "--out", out)
    assert done.code == 130
    assert "goes on from there" in done.err
    assert not (out / "results.json").exists()
    assert (out / "seed-0" / run.LAST).exists()
    monkeypatch.setattr(run._Epochs, "__call__", told)
    assert roadaware("train", recipe, "--out", out).code == 0
    assert set(json.loads((out / "results.json").read_text())["test"]) == {"seed 0", "seed 1", "mean"}
