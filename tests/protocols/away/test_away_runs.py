"""A whole small study: what is learnt, kept, gone on with, and said of what fails."""

import json
import logging
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from street import street

from roadaware.errors import InputError, Terminated, UsageError
from roadaware.io.parallel import Workers
from roadaware.metrics.calibration import CalibrationConfig
from roadaware.metrics.calibration import evaluate as calibration
from roadaware.models import load_model_class
from roadaware.models.crossing.predictor import Predictor
from roadaware.protocols.cross_dataset import fits
from roadaware.protocols.cross_dataset.cells import run
from roadaware.protocols.cross_dataset.config import (
    COVERED,
    SETS,
    AwayStudy,
    Cell,
    CrossResults,
    Fit,
    Learning,
)
from roadaware.protocols.cross_dataset.fits import describe_error, load_material
from roadaware.scenes.store import save
from roadaware.statistics.classification import roc_auc
from roadaware.tasks.pedestrians import build_examples
from roadaware.training.pedestrians.fit import Fitted, Fitter, Score

pytestmark = pytest.mark.slow


TINY = {"steady": {"width": 8, "dilations": (1, 2)}}
FAST = Learning(updates=8, batch=32, passes=3)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streets")
    for name, seed in (("one", 0), ("two", 1)):
        save(street(people=6, seed=seed), folder / name)
    (folder / "none").mkdir()
    return AwayStudy(
        models=("steady", "logistic"),
        domains=(f"jaad-all={folder / 'one'}", f"crossing@1={folder / 'two'}", f"pie={folder / 'none'}"),
        seeds=2,
        fields=TINY,
        learning=FAST,
        doubted=("steady",),
        pretrained=("steady",),
        pretraining=("crossing@1>jaad-all",),
        resamples=8,
    )


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    return run(study, tmp_path_factory.mktemp("away") / "study")


def test_every_planned_cell_has_every_metric_and_nothing_failed(results):
    assert (results.study["failed"], results.study["unfinished"]) == ({}, 0)
    rows = results.table.group_by("model", "trained_on", "tested_on", "seed", "doubt").len()
    joined = (pl.col("trained_on") == "jaad-all+crossing@1") | (pl.col("seed") == -1)
    assert rows.filter(~joined)["len"].unique().to_list() == [11 + len(SETS)]
    assert rows.filter(joined)["len"].unique().to_list() == [11]
    assert set(results.table["trained_on"]) == {
        *("jaad-all", "crossing@1", "jaad-all+crossing@1", "crossing@1>jaad-all")
    }


def test_a_domain_that_cannot_be_read_is_skipped_with_its_reason(results):
    assert list(results.study["skipped"]) == ["pie"]
    assert results.domains == ("jaad-all", "crossing@1")


def test_paths_that_do_not_exist_are_refused_together_before_anything_is_made(study, tmp_path):
    absent = (study.domains[0], f"crossing@1={tmp_path / 'gone'}", f"pie={tmp_path / 'lost'}")
    with pytest.raises(InputError) as told:
        run(replace(study, domains=absent), tmp_path / "new")
    assert all(part in str(told.value) for part in ("gone", "lost", "--domains jaad-all"))
    assert not (tmp_path / "new").exists()


def test_samples_that_were_cut_need_their_path_no_more(results, study, tmp_path):
    folder, moved = tmp_path / "copy", tmp_path / "moved"
    shutil.copytree(results.folder, folder)
    shutil.copytree(study.roots["crossing@1"], moved)
    facts = folder / "domains" / "crossing@1" / "facts.json"
    facts.write_text(facts.read_text().replace(study.roots["crossing@1"], str(moved)))
    shutil.rmtree(moved)
    again = run(replace(study, domains=(study.domains[0], f"crossing@1={moved}")), folder)
    assert again.domains == ("jaad-all", "crossing@1")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            InputError("samples have none", where="pie", hint="read the boxes"),
            "pie: samples have none; read the boxes",
        ),
        (InputError("two are missing:\n  one\n  other"), "two are missing: one; other"),
        (ValueError("a\n b"), "ValueError: a; b"),
        (ValueError(), "ValueError:"),
    ],
)
def test_a_reason_in_one_line_parts_what_was_found_from_what_to_do(error, told):
    assert describe_error(error) == told


def test_metrics_are_those_of_the_scores_that_are_kept(results):
    cell = Cell("steady", "crossing@1", "jaad-all", 1, "mc-dropout")
    state = results.scores(cell)
    key = {name: getattr(cell, name) for name in ("model", "trained_on", "tested_on", "seed", "doubt")}
    held = results.table.filter(**key)
    value = {(row["metric"], row["config"]): row["value"] for row in held.iter_rows(named=True)}
    assert value["auc", ""] == pytest.approx(roc_auc(state.truth == 1, state.scores[:, 0]))
    bins = calibration(state, CalibrationConfig.reference())
    assert value["ece", "reference"] == pytest.approx(bins.value("ece"))
    assert value["brier", ""] == pytest.approx(float(((state.scores[:, 0] - state.truth) ** 2).mean()))
    assert held["samples"].unique().to_list() == [len(state)]


def test_sets_have_the_threshold_of_the_validation_split_of_the_training_set(results):
    cell, fit = Cell("logistic", "crossing@1", "jaad-all", 1), Fit("logistic", "crossing@1", 0)
    known = build_examples(load_material(results.folder, "crossing@1").cut, "val")
    said = load_model_class("logistic").open(fits.get_model_path(fit, results.folder)).predict(known)[:, 0]
    own = np.sort(np.where(known.truth == 1, 1 - said, said))
    place = int(np.ceil((len(own) + 1) * 0.9))
    threshold = own[place - 1] if place <= len(own) else np.inf
    state = results.scores(cell)
    p = state.scores[:, 0]
    holds = np.where(state.truth == 1, 1 - p, p) <= threshold
    size = (p <= threshold).astype(int) + (1 - p <= threshold)
    key = {name: getattr(cell, name) for name in ("model", "trained_on", "tested_on", "seed", "doubt")}
    value = dict(results.table.filter(**key).select("metric", "value").iter_rows())
    assert [value[name] for name in SETS] == pytest.approx([holds.mean(), size.mean(), (size == 0).mean()])


def test_a_folder_without_sets_opens_and_gets_them_from_the_models_that_stand(results, study, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(results.folder, folder)
    for path in folder.rglob(COVERED):
        path.unlink()
    lost = Fit("steady", "jaad-all", 1)
    fits.get_model_path(lost, folder).unlink()
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("metrics.json")}
    again = run(study, folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("metrics.json")} == kept
    assert not fits.get_model_path(lost, folder).exists()
    alone = pl.col("metric").is_in(SETS) & ~(
        (pl.col("model") == "steady") & (pl.col("trained_on") == "jaad-all") & (pl.col("seed") == 1)
        & pl.col("doubt").is_in(["deterministic", "temperature", "mc-dropout"])
    )  # fmt: skip
    assert again.table.equals(results.table.filter(~pl.col("metric").is_in(SETS) | alone))


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        (
            Cell("steady", "jaad-all+crossing@1", "jaad-all", 1, "temperature"),
            [Cell("steady", name, "jaad-all", 1, "temperature") for name in ("jaad-all", "crossing@1")],
        ),
        (
            Cell("steady", "crossing@1", "jaad-all", -1, "ensemble"),
            [Cell("steady", "crossing@1", "jaad-all", seed) for seed in (0, 1)],
        ),
    ],
)
def test_what_is_put_together_is_the_mean_of_its_parts(results, cell, parts):
    mean = np.mean([results.scores(part).scores for part in parts], axis=0)
    assert np.allclose(results.scores(cell).scores, mean, atol=1e-15)


def test_a_temperature_leaves_the_ranking_and_moves_the_calibration(results):
    plain, heated = (
        results.scores(Cell("steady", "jaad-all", "crossing@1", 0, doubt)).scores[:, 0]
        for doubt in ("deterministic", "temperature")
    )
    assert np.array_equal(np.argsort(plain, kind="stable"), np.argsort(heated, kind="stable"))
    assert not np.allclose(plain, heated)


def test_what_goes_on_begins_where_the_first_domain_left_it(results, study, tmp_path, monkeypatch):
    folder, onward = tmp_path / "copy", Fit("steady", "crossing@1>jaad-all", 1)
    shutil.copytree(results.folder, folder)
    shutil.rmtree(folder / onward.place)
    monkeypatch.setattr(Fitter, "fit", lambda _: Fitted((Score(1, 0.0, 0.5),), 1))
    fits.make(onward, study, folder)
    before, after = (
        Predictor.open(fits.get_model_path(fit, folder)) for fit in (Fit("steady", "crossing@1", 1), onward)
    )
    for name, value in dict(before.network.named_parameters()).items():
        assert torch.equal(value, dict(after.network.named_parameters())[name])
    assert after.facts["domain"] == "crossing@1>jaad-all"


def test_a_study_that_is_run_again_does_nothing_and_a_lost_cell_alone_is_made_again(
    results, study, monkeypatch
):
    kept = {path: path.stat().st_mtime_ns for path in results.folder.rglob("model.*")}
    lost = results.folder / Cell("steady", "jaad-all", "crossing@1", 0).place
    before = results.scores(Cell("steady", "jaad-all", "crossing@1", 0)).scores
    shutil.rmtree(lost)
    again = run(study, results.folder)
    assert {path: path.stat().st_mtime_ns for path in results.folder.rglob("model.*")} == kept
    assert np.array_equal(again.scores(Cell("steady", "jaad-all", "crossing@1", 0)).scores, before)
    assert again.table.equals(results.table)


def test_a_fit_that_fails_leaves_the_others_and_is_named(results, study, tmp_path, monkeypatch, caplog):
    folder = tmp_path / "copy"
    shutil.copytree(results.folder, folder)
    broken = Fit("steady", "crossing@1", 0)
    shutil.rmtree(folder / broken.place)
    shutil.rmtree(folder / "cells")
    whole = fits.make

    def make(fit, study, out):
        if fit == broken:
            raise InputError("the disk smells of smoke")
        whole(fit, study, out)

    monkeypatch.setattr(fits, "make", make)
    with caplog.at_level(logging.ERROR, "roadaware"):
        found = run(replace(study, doubted=(), pretrained=(), pretraining=()), folder)
    failed = found.study["failed"]
    assert all("seed 0" in name or "seed -1" in name for name in failed)
    assert "the disk smells of smoke" in set(failed.values())
    assert Cell("steady", "jaad-all", "crossing@1", 0) in found.cells
    assert Cell("steady", "crossing@1", "crossing@1", 1) in found.cells
    assert Cell("steady", "crossing@1", "crossing@1", 0) not in found.cells


def test_a_signal_that_a_library_takes_for_an_error_of_its_own_ends_the_study(
    results, study, tmp_path, monkeypatch
):
    folder = tmp_path / "copy"
    shutil.copytree(results.folder, folder)
    shutil.rmtree(folder / Fit("steady", "crossing@1", 0).place)
    shutil.rmtree(folder / "cells")

    def make(fit, study, out):
        raise ValueError("'T{}' is not a valid PEP 3118 buffer format string") from Terminated()

    monkeypatch.setattr(fits, "make", make)
    with pytest.raises(Terminated):
        run(replace(study, doubted=(), pretrained=(), pretraining=()), folder)


def test_a_folder_of_a_study_that_learns_otherwise_is_refused(results, study):
    other = replace(study, learning=replace(FAST, updates=13))
    with pytest.raises(UsageError, match="another learning"):
        run(other, results.folder)


def test_settings_that_were_written_over_make_no_other_study_of_what_is_done(results, study, tmp_path):
    folder, other = tmp_path / "copy", replace(study, learning=replace(FAST, updates=13))
    shutil.copytree(results.folder, folder)
    known = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**known, "config": {**known["config"], **other.fixed}}))
    with pytest.raises(UsageError, match="holds a fit of another recipe"):
        run(other, folder)


def test_a_folder_grows_by_models(results, study, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(results.folder, folder)
    grown = run(replace(study, models=("steady", "logistic", "boosting"),
                        fields={**TINY, "boosting": {"rounds": 20, "leaves": (4,)}}), folder)  # fmt: skip
    assert len(grown.cells) > len(results.cells)
    assert set(grown.models) == {"steady", "logistic", "boosting"}


def test_a_folder_without_a_study_is_named(tmp_path):
    with pytest.raises(InputError, match=r"results\.parquet"):
        CrossResults.open(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"no")
    (tmp_path / "study.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match="not a whole study"):
        CrossResults.open(tmp_path)


def test_unknown_domains_are_refused_before_anything_is_read(study, tmp_path):
    for name, told in (("jad-all=x", "no domain jad-all"), ("road@1", "frames a second"), ("pie", "--data")):
        with pytest.raises(UsageError, match=told):
            run(replace(study, domains=(name,), pretraining=(), pretrained=()), tmp_path / "new")


@pytest.mark.slow
def test_processes_side_by_side_find_what_one_finds(results, study, tmp_path):
    found = run(
        replace(study, doubted=(), pretrained=(), pretraining=()),
        tmp_path / "two",
        workers=Workers(processes=2),
    )
    for cell in found.cells:
        assert np.allclose(found.scores(cell).scores, results.scores(cell).scores, atol=1e-6)


@pytest.mark.slow
def test_a_cluster_finds_the_bytes_that_processes_find(study, tmp_path):
    pytest.importorskip("ray")
    small = replace(study, models=("logistic", "steady"), doubted=(), pretrained=(), pretraining=())
    found = [run(small, tmp_path / on[:3], workers=Workers(on, 2)) for on in ("local", "ray://local")]
    assert len(found[0].cells) > 3
    assert found[0].cells == found[1].cells
    for cell in found[0].cells:
        assert found[0].scores(cell).scores.tobytes() == found[1].scores(cell).scores.tobytes()
    tables = [(tmp_path / name / "results.parquet").read_bytes() for name in ("loc", "ray")]
    assert tables[0] == tables[1]
