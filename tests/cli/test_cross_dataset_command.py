"""The command `roadaware cross`: options over a file, a folder with a page, and an exit code for failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_files import Command

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tasks"))

from street import street

from roadaware.protocols.cross_dataset.config import CrossResults
from roadaware.scenes.store import save


@pytest.fixture(scope="module")
def domains(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two streets as domains, by path."""
    folder = tmp_path_factory.mktemp("streets")
    for name, seed in (("one", 0), ("two", 1)):
        save(street(people=6, seed=seed), folder / name)
    return f"jaad-all={folder / 'one'},crossing@1={folder / 'two'}"


@pytest.mark.slow
def test_a_study_with_a_failure_keeps_the_rest_names_it_and_ends_with_one(
    roadaware: Command, domains: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "roadaware.reports.cross_dataset.render_cross_dataset",
        lambda found: f"<p>{len(found.cells)} cells</p>",
    )
    file = tmp_path / "study.yaml"
    file.write_text("models: [logistic, steady]\nfields: {steady: {widht: 8}}\nseeds: 4\n")
    out, told = tmp_path / "out", tmp_path / "told.json"
    words = (
        "cross",
        file,
        "--domains",
        domains,
        "--seeds",
        1,
        "--resamples",
        0,
        "--out",
        out,
        "--json",
        told,
    )
    done = roadaware(*words)
    assert done.code == 1
    assert "cells failed; the others stand" in done.err
    assert "steady trained on jaad-all, tested on crossing@1, seed 0" in done.out
    assert (out / "report.html").read_text() == "<p>6 cells</p>"
    found = CrossResults.open(out)
    assert found.models == ("logistic",)
    assert set(found.table["seed"]) == {0}


@pytest.mark.slow
def test_a_domain_that_cannot_be_used_ends_with_one_and_a_path_that_is_not_there_with_three(
    roadaware: Command, domains: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.reports.cross_dataset.render_cross_dataset", lambda found: "<p></p>")
    (tmp_path / "empty").mkdir()
    words = ("cross", "--models", "logistic", "--seeds", 1, "--resamples", 0, "--out", tmp_path / "out")
    done = roadaware(*words, "--domains", f"{domains},pie={tmp_path / 'empty'}")
    assert done.code == 1
    assert "pie could not be used; the others stand" in done.err
    assert CrossResults.open(tmp_path / "out").domains == ("jaad-all", "crossing@1")
    (tmp_path / "empty").rmdir()
    done = roadaware(*words, "--domains", f"{domains},pie={tmp_path / 'empty'}")
    assert done.code == 3
    assert "pie should lie in" in done.err
    assert "--domains jaad-all,crossing@1" in done.err


def test_fields_of_a_study_are_checked_before_anything_is_read(roadaware: Command, tmp_path: Path) -> None:
    for words, says in (
        (("--models", "stedy"), "models are of"),
        (("--set", "learning.update=3"), "did you mean 'updates'"),
        (("--set", "seeds=many"), "seeds is a whole number"),
        (("--resamples", "1000000000"), "at most 100,000"),
        (("--set", "resamples=1000000000"), "resamples is 0 or more, 100,000 at most"),
        (("--pretrained", "steady"), "pretraining from which domain"),
        (("--models", "logistic", "--doubted", "logistic"), "doubts=[temperature]"),
        ((tmp_path / "none.yaml",), "none.yaml"),
    ):
        done = roadaware("cross", *words, "--out", tmp_path / "out")
        assert done.code in (2, 3)
        assert says in done.err
    assert not (tmp_path / "out").exists()
