"""Damaged sets through `convert`: what was read is written, or the error is typed; never a fault of the program."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from mutants import CSV_KINDS, JSON_KINDS, KINDS, PLAIN_XML_KINDS, mutated
from sets import SETS
from test_box_forms import random_predictions
from value_mutants import mutant

from roadaware.analysis.evaluation.event_inputs import open_box_predictions
from roadaware.cli.app import main
from roadaware.datasets import READERS
from roadaware.formats.boxes.forms import FORMS, PREDICTED, write_boxes
from roadaware.formats.road_detections import encode_pickle
from roadaware.formats.truth_files import PREDICTION_FILES, write_prediction_file
from roadaware.io.pickles import encode_arrays, load

KINDS_OF = {
    "csv": CSV_KINDS,
    "json": JSON_KINDS,
    "sensor json": JSON_KINDS,
    "plain xml": PLAIN_XML_KINDS,
    "xml": PLAIN_XML_KINDS,
}
SOURCES = sorted({form.reader for form in FORMS.values()})
"""The readers of all forms that are written."""


def convert_mutants(name: str, count: int, seed: int, folder: Path) -> Counter[str]:
    """How `convert` of a set with one damaged file ended, `count` times, to its own form and others in turn.

    Args:
        name: of the reader.
        count: how many mutants.
        seed: of the changes.
        folder: to work in.
    """
    rng, each = random.Random(seed), SETS[name]  # noqa: S311
    whole = each.make(folder / "whole")
    files = [path for path in sorted(whole.rglob("*")) if path.is_file()]
    kinds = sorted(KINDS_OF.get(str(each.maker.FORMAT), KINDS))
    own = [form for form in FORMS if FORMS[form].reader == name]
    ends: Counter[str] = Counter()
    for n in range(count):
        shutil.copytree(whole, folder / "set")
        hit = folder / "set" / rng.choice(files).relative_to(whole)
        changes = [(rng.choice(kinds), rng.random(), rng.random()) for _ in range(rng.randint(1, 3))]
        hit.write_bytes(mutated(hit.read_bytes(), changes))
        # Known by its content where it is, else by its name.
        told = ["--from", name] if n % 4 else []
        to = [*own, "csv", "road", "coco"][n % (len(own) + 3)]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(
                [
                    "convert",
                    str(folder / "set"),
                    *told,
                    "--to",
                    to,
                    "--lossy",
                    "-o",
                    str(folder / "out"),
                    "-q",
                ]
            )
        assert code in (0, 2, 3), (
            f"{name} to {to}: {code} after {changes} of {hit.name}: {said.getvalue()[-2000:]}"
        )
        assert code != 0 or "wrote" in said.getvalue()
        assert (code == 0) == (folder / "out").exists()
        assert not list(folder.glob(".roadaware*")), "nothing is left beside"
        refused = "refused when it was read" in said.getvalue()
        ends["written, with refused rows" if refused else "written" if code == 0 else "typed error"] += 1
        for path in (folder / "set", folder / "out"):
            shutil.rmtree(path, ignore_errors=True)
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_convert_of_damaged_sets_ends_in_files_or_a_typed_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    ends = convert_mutants(name, 2000, 1, tmp_path)
    assert ends["written"] > 0
    assert ends["typed error"] + ends["written, with refused rows"] > 10, "damage is seen"


# Predictions.

_RESULTS, _IMAGES = "results.json", "annotations/image_info_all.json"
_TEXT_KINDS = {"json": JSON_KINDS, "csv": CSV_KINDS, "txt": CSV_KINDS, "xml": PLAIN_XML_KINDS}
PREDICTION_FORMS = sorted({*PREDICTED, "mmaction2", "label_studio"})


def damage(path: Path, chance: random.Random) -> object:
    """Change a file in one to three places, and say which; a pickle also in what it holds."""
    data = path.read_bytes()
    if path.suffix == ".pkl" and chance.random() < 0.7:
        path.write_bytes(encode_pickle(mutant(load(data, "p.pkl"), chance)))
        return "a value in a pickle"
    names = sorted(_TEXT_KINDS.get(path.suffix[1:], CSV_KINDS))
    if path.suffix == ".pkl":
        names = ["cut", "delete", "duplicate", "flip"]
    changes = [(chance.choice(names), chance.random(), chance.random()) for _ in range(chance.randint(1, 3))]
    path.write_bytes(mutated(data, changes))
    return changes


def convert_predictions(form: str, count: int, seed: int, folder: Path) -> Counter[str]:
    """How `convert` of predictions in a form ended with one damaged file, `count` times; every row is accounted for.

    Args:
        form: of `PREDICTION_FORMS`.
        count: how many mutants.
        seed: of the changes.
        folder: to work in.
    """
    chance = random.Random(seed)  # noqa: S311
    whole, ends = folder / "whole", Counter[str]()
    given = random_predictions(3, PREDICTED.get(form, PREDICTED["coco"]).holds | {"track", "rate", "size"})
    if form == "mmaction2":
        whole.mkdir()
        rows = np.array([[0.1, 0.2, 0.3, 0.4, 0.9], [0.5, 0.5, 0.75, 1, 0.25]], np.float32)
        arrays = {f"{video},{second:04d}": rows for video in "vw" for second in (2, 7)}
        (whole / "p.pkl").write_bytes(encode_arrays(arrays))
    elif form in PREDICTION_FILES:
        whole.mkdir()
        write_prediction_file(form, given, None, whole / "p.json")
    else:
        write_boxes(given, form, whole, lossy=True)
        shutil.rmtree(whole / "not-held", ignore_errors=True)
    files = [path for path in sorted(whole.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    reader = FORMS[form].reader if form in FORMS else form
    for n in range(count):
        shutil.copytree(whole, folder / "set")
        hit = folder / "set" / chance.choice(files).relative_to(whole)
        changed = damage(hit, chance)
        source, more = folder / "set", ["--predictions"]
        if form == "coco":
            source, more = folder / "set" / _RESULTS, ["--truth", str(folder / "set" / _IMAGES)]
        elif form in PREDICTION_FILES:
            source = hit
        # Known by its content where it is, else by its name.
        more += ["--from", reader] if n % 4 or form == "mmaction2" else []
        to = [form, "csv", "label_studio", "bdd100k"][n % 4]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            lossy = ["--lossy"] if to in FORMS else []
            code = main(["convert", str(source), *more, "--to", to, *lossy, "-o", str(folder / "out"), "-q"])
        told = f"{form} to {to}: {code} after {changed} of {hit.name}: {said.getvalue()[-2000:]}"
        assert code in (0, 2, 3), told
        assert (code == 0) == (folder / "out").exists(), told
        assert not list(folder.glob(".roadaware*")), "nothing is left beside"
        refused = "refused when it was read" in said.getvalue()
        if code == 0 and form != "coco" and (reader not in READERS or READERS[reader].predicted or n % 4):
            found, _ = open_box_predictions(source, reader)
            counts = dict(found.rejected.group_by("table").len().iter_rows())
            for table, rows in found.meta.rows_read.items():
                if table in found.tables():
                    assert len(found.tables()[table]) + counts.get(table, 0) == rows, (table, told)
            assert refused == bool(len(found.rejected)), told
        ends["written, with refused rows" if refused else "written" if code == 0 else "typed error"] += 1
        shutil.rmtree(folder / "set")
        for path in (folder / "out",):
            path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("form", PREDICTION_FORMS)
def test_convert_of_damaged_predictions_ends_in_files_or_a_typed_error(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    ends = convert_predictions(form, 2000, 1, tmp_path)
    assert ends["written"] > 0
    assert ends["typed error"] + ends["written, with refused rows"] > 10, "damage is seen"
