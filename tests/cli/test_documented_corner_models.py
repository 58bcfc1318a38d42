"""Every command that the page on models for corner cases shows runs, on tiny models and a planted set."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from small_files import Command

import tiny_hub
import tiny_objects

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_kitti import planted_kitti

from roadaware.models import FOLDERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "corner_models.md"


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = tmp_path / "models"
    tiny_hub.write_segformer(models / "segformer", ("sky", "person"))
    tiny_hub.write_owl(models / "owlv2")
    tiny_hub.write_clip(models / "clip")
    tiny_objects.tiny_model("rt_detr", ["person", "car"], num_denoising=0).save_pretrained(models / "rt-detr")
    planted_kitti(tmp_path / "kitti", 3)
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]
    assert {words[1] for words in commands} == {"segment", "propose", "predict", "prelabel"}
    for program, *words in commands:
        assert program == "roadaware"
        done = roadaware(*words)
        assert done.code == 0, f"roadaware {' '.join(words)}: {done.err}"
        assert done.out


def test_the_page_names_every_type_of_folder() -> None:
    said = PAGE.read_text(encoding="utf-8")
    assert [name for name in FOLDERS if f"`{name}`" not in said] == []
