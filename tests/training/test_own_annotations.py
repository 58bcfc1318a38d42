"""Heads of crowds learn by their recipes from AVA's csv, VidVRD, HC-STVG or VGG-SS alone, and name films that are missing."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
import torch
from test_crowd_training import made_scenes, write_films

from roadaware.cli import main
from roadaware.errors import UsageError
from roadaware.scenes.store import save
from roadaware.training.checkpoints import read_log
from roadaware.training.crowd.run import train_crowd
from roadaware.training.recipe_files import find_recipe, read_recipe

SMALL = (
    "model.base=tiny", "model.trunk=random", "clips.motion_steps=2", "clips.size_px=[64, 96]", "clips.most_frames=6",
    "schedule.steps=2", "validation.every_steps=0", "machine.threads=1", "machine.tensorboard=false", "machine.log_steps=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, of a third the annotations alone, in four forms; of each HC-STVG's has one sentence."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("own")
    scenes = made_scenes(3)
    save(scenes, folder / "tables")
    write_films(folder / "films", made_scenes(2))
    for form in ("ava", "vidvrd", "hcstvg", "vggss"):
        assert main(["convert", str(folder / "tables"), "--to", form, "-o", str(folder / form), "-q"]) == 0
    sentences = folder / "hcstvg" / "annotations_proc.json"
    sentences.write_text(json.dumps(json.loads(sentences.read_text())[::2]))
    for item in ("film-0-0", "film-1-0"):  # an item of VGG-SS is a film by itself
        shutil.copy(folder / "films" / f"{item[:6]}.mp4", folder / "films" / f"{item}.mp4")
    return folder


def read_small(name: str, own: Path, *changes: str) -> object:
    return read_recipe(find_recipe(Path(name)), [*SMALL, f"data.media={own / 'films'}", *changes])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reader", "changes", "missing"),
    [
        ("actions", "ava", ["data.split=", "data.validation_split="], "film-2"),
        ("relations", "vidvrd", ["data.split=", "data.validation_split="], "film-2"),
        ("grounding-cells", "hcstvg", ["data.validation_roots="], "film-2"),
        ("sound", "vggss", ["data.split=", "data.validation_split="], "film-0-1"),
    ],
)
def test_each_head_learns_from_its_own_form(
    own: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    reader: str,
    changes: list[str],
    missing: str,
) -> None:
    recipe = read_small(name, own, f"data.reader={reader}", f"data.roots={own / reader}", *changes)
    with caplog.at_level(logging.WARNING, "roadaware"):
        made = train_crowd(recipe, tmp_path / "run")  # type: ignore[arg-type]
    assert made.step == 2
    assert (tmp_path / "run" / "model.safetensors").is_file()
    assert len([line for line in read_log(tmp_path / "run") if "loss" in line]) == 2
    assert f"videos cannot be opened ({missing}" in caplog.text


def test_sentences_about_nobody_else_name_the_recipe_that_learns_them(
    own: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = [f"data.roots={own / 'hcstvg'}", "data.reader=hcstvg", "data.validation_split="]
    with pytest.raises(
        UsageError, match=r"no video is in split 'default/train'; there are .*`--set data.split= "
    ):
        train_crowd(read_small("grounding", own, *given), tmp_path / "run")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the recipe grounding-cells"):
        train_crowd(read_small("grounding", own, *given, "data.split="), tmp_path / "run")  # type: ignore[arg-type]
    assert "the data label nothing of actions and relations: there will be no such heads" in caplog.text
