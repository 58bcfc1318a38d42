"""Damaged sets through `convert`: what was read is written, or the error is typed; never a fault of the program."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from mutants import CSV_KINDS, JSON_KINDS, KINDS, PLAIN_XML_KINDS, mutated
from sets import SETS

from roadaware.cli.app import main
from roadaware.formats.boxes.forms import FORMS

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
    ends = convert_mutants(name, 100, 1, tmp_path)
    assert ends["written"] > 0
    assert ends["typed error"] + ends["written, with refused rows"] > 10, "damage is seen"
