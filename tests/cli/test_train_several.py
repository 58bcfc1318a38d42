"""`roadaware train` with several recipes: one table of all, and one that fails leaves the others."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import yaml
from small_files import Command, Done

from roadaware.cli import main
from roadaware.config import digest
from roadaware.protocols.printed_iv2024 import iterate_printed
from roadaware.scenes.store import save
from roadaware.training.pedestrians import several
from roadaware.training.pedestrians.recipe import SamplesRecipe
from roadaware.training.pedestrians.results import RESULTS, SECONDS, open_results
from roadaware.training.pedestrians.run import MODEL
from roadaware.training.recipe_files import read_recipe

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))

from street import street

TINY = {
    "task": "action",
    "seeds": [0, 1],
    "schedule": {"epochs": 2, "optimizer": "adamw", "lr": 0.01},
    "threads": 1,
    "batch": 32,
}
NETWORKS = {
    "steady": {"name": "steady", "fields": {"width": 8, "dilations": [1, 2]}, "inputs": ["boxes", "centre"]},
    "lost": {"name": "c3d", "inputs": ["crop:box@64"]},
    "rule": {"name": "constant-velocity"},
    "trees": {"name": "boosting", "fields": {"rounds": 20, "leaves": [4], "vehicle": False}},
}


@pytest.fixture(autouse=True, scope="module")
def _few_resamples() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadaware.cli.train._RESAMPLES", 40)
        yield


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("recipes")
    save(street(people=8), root / "street")
    samples = {"reader": "saved", "root": str(root / "street"), "config": "reference"}
    found = {}
    for name, network in NETWORKS.items():
        found[name] = root / f"{name}.yaml"
        found[name].write_text(yaml.safe_dump({**TINY, "name": name, "network": network, "samples": samples}))
    return found


@pytest.fixture(scope="module")
def ran(
    _few_resamples: None, recipes: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Done]:
    """All of them by one command."""
    out, said, told = tmp_path_factory.mktemp("runs"), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = main(["train", *map(str, recipes.values()), "--out", str(out)])
    return out, Done(code, said.getvalue(), told.getvalue())


@pytest.mark.slow
def test_each_has_a_folder_and_rows_and_those_that_fail_leave_the_others(
    ran: tuple[Path, Done], recipes: dict[str, Path]
) -> None:
    out, done = ran
    assert done.code == 1
    assert "2 of 4 recipes failed" in done.err
    assert "lost: " in done.out
    assert "constant-velocity does not answer action" in done.out
    shown = {line.split("  ")[0]: line for line in done.out.splitlines()}
    assert "43," not in shown["steady"]
    assert "(printed)" not in done.out
    idle = "seeds beyond the first, schedule.epochs, schedule.lr, batch"
    assert f"trees: boosting reads none of {idle}\n" in done.err
    assert "steady reads" not in done.err
    folders = {path.name.rsplit("-", 1)[0]: path for path in out.iterdir() if path.is_dir()}
    assert folders["steady"].name == f"steady-{digest(read_recipe(recipes['steady']))[:8]}"
    rows = pl.read_parquet(out / "results.parquet")
    assert rows.schema == pl.Schema(RESULTS)
    assert open_results(out).drop("cpu_s").equals(rows)
    by_recipe = {name: set(part["run"]) for (name,), part in rows.group_by("recipe")}
    assert by_recipe == {
        "steady": {"seed 0", "seed 1", "mean", "ensemble"},
        "trees": {"seed 0", "mean"},
    }
    auc = rows.filter((pl.col("recipe") == "steady") & (pl.col("metric") == "auc"))
    of = dict(auc.select("run", "value").iter_rows())
    assert of["mean"] == pytest.approx((of["seed 0"] + of["seed 1"]) / 2)
    fit = auc.row(0, named=True)
    assert (fit["inputs"], fit["task"], fit["config"]) == ("boxes centre", "action", "reference")
    assert fit["parameters"] > 100
    seconds = pl.read_parquet(out / "timing.parquet")
    assert seconds.schema == pl.Schema(SECONDS)
    assert len(seconds) == len(rows.unique(["recipe", "digest", "run"]))
    assert seconds["cpu_s"].min() >= 0
    assert "cpu_s" not in (out / "results.json").read_text() + (out / "results.csv").read_text()
    assert fit["epoch"] in (1, 2)
    assert len(pl.read_csv(out / "results.csv", infer_schema_length=None)) == len(rows)
    said = json.loads((out / "results.json").read_text())
    assert set(said["failed"]) == {"lost", "rule"}
    assert "\n" not in "".join(line for lines in said["failed"].values() for line in lines)
    assert "lie; say how the files are called" in said["failed"]["lost"][0]
    assert said["notes"] == {}
    assert said["models"][0]["runs"]["mean"]["metrics"]["auc"]["value"] == of["mean"]


JAAD = SamplesRecipe(root="jaad", config="reference")


@pytest.mark.parametrize(
    ("samples", "judged", "shown"),
    [
        (JAAD, 4317, True),
        (replace(JAAD, protocol="jaad-risk@iv2024"), 4317, True),
        (replace(JAAD, reader="pie", protocol="pie-risk@iv2024"), 4458, True),
        (replace(JAAD, reader="pie", protocol="pie-intention@iv2024"), 6475, True),
        (JAAD, 4316, False),
        (replace(JAAD, config="default"), 4317, False),
        (replace(JAAD, reader="simulator"), 5000, False),
        (replace(JAAD, fields={"overlap": 0.9}), 9000, False),
        (replace(JAAD, options={"appearance": True}), 4317, False),
        (replace(JAAD, protocol="jaad-action@wacv2021"), 6732, False),
        (replace(JAAD, protocol="pie-action@iv2024"), 4458, False),
    ],
)
def test_printed_rows_stand_beside_the_published_samples_alone(
    samples: SamplesRecipe, judged: int, shown: bool
) -> None:
    rows = dict(iterate_printed(samples, judged))
    assert set(rows) == ({"SFGRU", "PCPA", "BiPed", "PedFormer"} if shown else set())


@pytest.mark.slow
def test_recipes_on_other_samples_stand_in_another_table(
    roadaware: Command, recipes: dict[str, Path], tmp_path: Path
) -> None:
    held = yaml.safe_load(recipes["trees"].read_text())
    held["samples"]["fields"] = {"overlap": 0.0}
    (tmp_path / "others.yaml").write_text(yaml.safe_dump({**held, "name": "others"}))
    done = roadaware("train", recipes["trees"], tmp_path / "others.yaml", "--out", tmp_path / "runs")
    heads = [line for line in done.out.splitlines() if line.startswith("jaad-action@iv2024 (reference) on ")]
    assert len(heads) == 2
    assert heads[0].partition("samples of")[0] != heads[1].partition("samples of")[0]


@pytest.mark.slow
def test_two_of_them_can_be_compared(roadaware: Command, ran: tuple[Path, Done]) -> None:
    out, _ = ran
    tests = [next(out.glob(f"{name}-*/test")) for name in ("steady", "trees")]
    done = roadaware("compare", *tests, "--resamples", "20")
    assert done.code == 0
    assert f"difference = {tests[0].parent.name}/test - {tests[1].parent.name}/test" in done.out
    rows = pl.read_parquet(out / "results.parquet").filter(pl.col("metric") == "auc")
    of = {(recipe, run): value for recipe, run, value in rows.select("recipe", "run", "value").iter_rows()}
    (auc,) = (line.split() for line in done.out.splitlines() if line.startswith("auc "))
    assert auc[1:3] == [f"{of['steady', 'ensemble']:.3f}", f"{of['trees', 'mean']:.3f}"]


def test_what_is_done_is_not_done_again(
    roadaware: Command, ran: tuple[Path, Done], recipes: dict[str, Path]
) -> None:
    out, first = ran
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("*/*/*") if path.is_file()}
    assert any(path.name == MODEL for path in stamps)
    again = roadaware("train", *recipes.values(), "--out", out)
    assert again.out == first.out
    assert {path: path.stat().st_mtime_ns for path in out.glob("*/*/*") if path.is_file()} == stamps


@pytest.mark.slow
def test_models_on_hand_features_have_recipes_too(
    roadaware: Command, recipes: dict[str, Path], tmp_path: Path
) -> None:
    done = roadaware("train", recipes["trees"], "--out", tmp_path, "--json")
    assert done.code == 0
    (model,) = done.data["models"]
    assert model["inputs"] == "boxes"
    assert set(model["runs"]) == {"seed 0", "mean"}
    took, before = open_results(tmp_path)["cpu_s"], (tmp_path / "results.parquet").read_bytes()
    for path in tmp_path.rglob("results.parquet"):
        path.unlink()
    assert roadaware("train", recipes["trees"], "--out", tmp_path).code == 0
    assert took.null_count() == 0
    assert open_results(tmp_path)["cpu_s"].equals(took)
    assert (tmp_path / "results.parquet").read_bytes() == before
    (tmp_path / "timing.parquet").unlink()
    assert open_results(tmp_path)["cpu_s"].null_count() == len(took)
    pl.read_parquet(tmp_path / "results.parquet").with_columns(cpu_s=1.5).write_parquet(
        tmp_path / "results.parquet"
    )
    assert open_results(tmp_path)["cpu_s"].unique().to_list() == [1.5]  # as earlier versions wrote it
    done = roadaware("train", recipes["trees"], "--out", tmp_path, "--set", "network.inputs=[boxes]")
    assert done.code == 2
    assert "its features are its own" in done.err
    assert "nothing came" not in done.err


def test_nothing_comes_of_recipes_that_all_fail(
    roadaware: Command, recipes: dict[str, Path], tmp_path: Path
) -> None:
    wrong = ("--set", "network.inputs=[boxes]", "network.fields={}")
    done = roadaware("train", recipes["trees"], recipes["rule"], "--out", tmp_path, *wrong)
    assert done.code == 1
    assert "nothing came of any recipe. trees: " in done.err


def test_a_reason_that_recipes_share_is_told_once(
    roadaware: Command, recipes: dict[str, Path], tmp_path: Path
) -> None:
    wrong = ("--set", "samples.root=nowhere")
    done = roadaware("train", recipes["trees"], recipes["steady"], "--out", tmp_path, *wrong)
    assert done.code == 1
    last = done.err.splitlines()[-1]
    assert "nothing came of any recipe. trees, steady: " in last
    assert last.count("nowhere") == 1


@pytest.mark.slow
def test_a_recipe_that_fails_as_nobody_foresaw_leaves_the_others(
    roadaware: Command, recipes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError("of a fit")

    monkeypatch.setattr(several, "train_predictors", broken)
    done = roadaware("train", recipes["steady"], recipes["trees"], "--out", tmp_path, "--json")
    assert done.code == 1
    assert done.data["failed"] == {"steady": ["ZeroDivisionError: of a fit"]}
    assert [model["recipe"] for model in done.data["models"]] == ["trees"]
    done = roadaware(
        "train", recipes["trees"], "--out", tmp_path / "b", "--set", "network.fields.leaves=four"
    )
    assert "network.fields.leaves is a whole number, not 'four'" in done.err


def test_recipes_that_are_the_same_or_of_detectors_are_refused(
    roadaware: Command, recipes: dict[str, Path], tmp_path: Path
) -> None:
    done = roadaware("train", recipes["trees"], recipes["trees"], "--out", tmp_path)
    assert done.code == 2
    assert "given twice: trees-" in done.err
    detector = Path(__file__).parents[2] / "configs/simulator.yaml"
    done = roadaware("train", recipes["trees"], detector, "--out", tmp_path)
    assert done.code == 2
    assert "by one command" in done.err
    assert roadaware("train", detector, detector, "--out", tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []
