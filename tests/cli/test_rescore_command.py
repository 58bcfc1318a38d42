"""`roadaware rescore`: fitted on some images, applied to others, refused on its own."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_unknowns import CORNERS, film_of, planted_detections, planted_pictures, planted_proposals

from roadaware.cli.app import main
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Predictions


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    root = tmp_path_factory.mktemp("sets")
    for seed, (name, count) in enumerate((("home", 12), ("away", 5))):
        scenes = planted_pictures(root / name / "pictures", count, seed=seed)
        save(scenes, root / name / "tables")
        save(planted_detections(scenes, seed), root / name / "found")
        save(planted_proposals(scenes), root / name / "proposals")
    return root


@pytest.fixture(scope="module")
def fits(sets):
    home, energy, memory = sets / "home", sets / "energy.npz", sets / "memory.npz"
    words = ["rescore", "fit-energy", "--truth", home / "tables", "--detections", home / "found"]
    assert main([str(word) for word in (*words, "--out", energy, "-q")]) == 0
    words = ["rescore", "fit-memory", home / "tables", "--pictures", home / "pictures", "--out", memory]
    assert main([str(word) for word in (*words, "-q")]) == 0
    return energy, memory


def applied(sets: Path, where: str, fits: tuple[Path, ...], out: Path, *more: object) -> int:
    place = sets / where
    words = ["rescore", "apply", place / "proposals", "--fit", *fits, "--out", out, "-q"]
    words += ["--detections", place / "found", "--dataset", place / "tables"]
    return main([str(word) for word in (*words, "--pictures", place / "pictures", *more)])


def test_both_are_applied_one_after_the_other_and_judged(sets, fits, tmp_path, capsys):
    assert applied(sets, "away", fits, tmp_path / "out") == 0
    told = capsys.readouterr().out
    assert "energy (fit " in told
    assert "10 of 15 proposals have a detection" in told
    assert "the other 5 keep the neutral 0.5" in told
    found = open_predictions(tmp_path / "out").boxes
    strange, rest = found[1::3], found[0::3]
    assert strange["score"].min() > rest["score"].max(), "before, those on common things came first"
    assert (
        found["score_before"] * found["unknown_energy"] * found["unknown_memory"] - found["score"]
    ).abs().max() < 1e-9
    words = [
        "evaluate",
        "corner-cases",
        "--truth",
        sets / "away" / "tables",
        "--agnostic",
        "-q",
        "--json",
        "-",
    ]
    words += ["--predictions", tmp_path / "out", "--set", "precision=always"]
    assert main([str(word) for word in words]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary["corner_ap"] == pytest.approx(1)


def test_what_was_fitted_on_is_refused_and_told_when_asked_for(sets, fits, tmp_path, capsys):
    for fit in fits:
        assert applied(sets, "home", (fit,), tmp_path / "out") == 2
        assert "--allow-leak" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert applied(sets, "home", fits, tmp_path / "out", "--allow-leak") == 0
    assert capsys.readouterr().out.count("LEAK: it was fitted on 12 of these 12 images") == 2
    noted = open_predictions(tmp_path / "out").meta.notes["rescored"]
    assert [each["leaked"] for each in noted] == [12, 12]


@pytest.mark.slow
def test_other_frames_of_one_film_are_refused(tmp_path, capsys):
    scenes = film_of(planted_pictures(tmp_path / "pictures", 12))
    first, last = (scenes.boxes["frame"] < 6), (scenes.boxes["frame"] >= 6)
    save(scenes, tmp_path / "whole")
    early = {"boxes": scenes.boxes.filter(first), "labels": scenes.labels.filter(scenes.labels["box"] < 12)}
    save(scenes.with_tables(**early), tmp_path / "tables")
    detections = planted_detections(scenes)
    for name, kept in (("found", first), ("later", last)):
        save(detections.with_tables(boxes=detections.boxes.filter(kept)), tmp_path / name)
    proposals = detections.boxes.filter(last).select("box", "video", "frame", *CORNERS, "score")
    save(Predictions(boxes=proposals), tmp_path / "proposals")
    fit = ["rescore", "fit-energy", "--truth", tmp_path / "tables", "--detections", tmp_path / "found"]
    assert main([str(word) for word in (*fit, "--out", tmp_path / "fit.npz", "-q")]) == 0
    apply = ["rescore", "apply", tmp_path / "proposals", "--fit", tmp_path / "fit.npz", "-q"]
    apply = [str(word) for word in (*apply, "--detections", tmp_path / "later", "--out")]
    told = ["--dataset", str(tmp_path / "whole")]
    capsys.readouterr()
    assert main([*apply, str(tmp_path / "refused"), *told]) == 2
    assert "images of 1 of these 1 videos" in capsys.readouterr().err.replace("\n", " ")
    assert main([*apply, str(tmp_path / "leaky"), *told, "--allow-leak"]) == 0
    assert "LEAK: it was fitted on images of 1 of these videos" in capsys.readouterr().out
    assert main([*apply, str(tmp_path / "unknown")]) == 0
    assert "is not known" in capsys.readouterr().out


def test_strict_fails_where_a_picture_cannot_be_opened(sets, fits, tmp_path, capsys):
    assert applied(sets, "away", fits, tmp_path / "whole", "--strict") == 0
    shutil.copytree(sets / "away", tmp_path / "sets" / "away")
    lost = next((tmp_path / "sets" / "away" / "pictures").rglob("*.png"))
    lost.write_bytes(b"")
    assert applied(tmp_path / "sets", "away", fits, tmp_path / "out", "--strict") == 1
    assert "--strict: 1 images could not be opened" in capsys.readouterr().err


def test_results_for_machines(sets, fits, tmp_path, capsys):
    assert applied(sets, "away", fits[:1], tmp_path / "out", "--combine", "alone", "--json", "-") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["proposals"], told["combine"], told["rescored"][0]["neutral"]) == (15, "alone", 5)
    words = ["rescore", "fit-energy", "--truth", sets / "home" / "tables", sets / "away" / "tables"]
    words += ["--detections", sets / "home" / "found", sets / "away" / "found", "--form", "logsumexp"]
    assert main([str(w) for w in (*words, "--out", tmp_path / "both.npz", "-q", "--json", "-")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["by"], told["config"]["form"], told["fitted_on"]["known"]) == ("energy", "logsumexp", 17)


def test_wrong_requests_say_what_is_wrong(sets, fits, tmp_path, capsys):
    home, out = sets / "home", tmp_path / "out"
    apply = ["rescore", "apply", home / "proposals", "--out", out, "--fit"]
    fit = ["rescore", "fit-energy", "--truth", home / "tables", "--out", tmp_path / "fit.npz", "--detections"]
    memory = ["rescore", "fit-memory", home / "tables", "--out", tmp_path / "fit.npz"]
    for words, code, told in (
        ([*apply, fits[0]], 2, "give --detections"),
        ([*apply, fits[1]], 2, "give --dataset"),
        ([*apply, fits[1], "--dataset", home / "tables"], 2, "say where their images are"),
        ([*apply, home / "tables" / "meta.json"], 3, "not a fitted re-scorer"),
        ([*fit, home / "found", home / "found"], 2, "1 of --truth and 2 of --detections"),
        ([*fit, home / "found", "--temperature", "0"], 2, "a temperature lies in"),
        ([*fit, home / "proposals"], 3, "one score a box"),
        ([*memory, "--pictures", home / "none"], 3, "no such folder of images"),
        ([*memory, "--pictures", home / "pictures", "--features", "magic"], 2, "features are plain"),
        ([*memory, "--pictures", home / "pictures", "--features", "a" * 5000], 2, "file name too long: aaa"),
    ):
        assert main([str(word) for word in words]) == code, words
        assert told in capsys.readouterr().err


def test_help_teaches_with_examples(capsys):
    for words in (["rescore"], ["rescore", "fit-energy"], ["rescore", "fit-memory"], ["rescore", "apply"]):
        assert main([*words, "--help"]) == 0
        assert "For example:" in capsys.readouterr().out
