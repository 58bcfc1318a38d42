"""Every command of the page on calibration runs, and its tables hold our metrics, fields and values."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from small_files import Command

from roadaware.datasets import read
from roadaware.demo_data import DemoFacts
from roadaware.formats.score_tables import format_samples, format_scores
from roadaware.metrics.calibration import METRIC_NAMES, CalibrationConfig
from roadaware.scenes.sampling import get_protocol, sample, split_samples

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "calibration.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, demo_set: tuple[Path, DemoFacts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the demo's dataset, with files as the demo writes them."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "runs" / "demo"
    place.mkdir(parents=True)
    (place / "data").symlink_to(demo_set[0])
    held = split_samples(sample(read("jaad", demo_set[0]), get_protocol("jaad-action@iv2024")), "test")
    columns = {name: held.samples[name].to_numpy() for name in ("label", "tube", "tte_frames", "video")}
    scores = np.random.default_rng(0).random((len(held.samples), 1))
    (place / "scores.csv").write_text(format_scores(scores))
    truth, tube, tte, video = columns.values()
    (place / "samples.csv").write_text(format_samples(truth, tube.astype(str), tte, video.astype(str)))
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 6
    for line in lines:
        program, *words = shlex.split(line)[1:]
        assert program == "roadaware"
        done = roadaware(*words)
        assert done.code == 0, done.err
        assert done.out
    assert {"ece", "mce", "bins"} <= set(json.loads((tmp_path / "calibration.json").read_text()))
    assert "scale=" in done.out
    assert (tmp_path / "runs" / "calibration" / "report.html").is_file()


def test_every_metric_is_named() -> None:
    assert [name for name in METRIC_NAMES if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("field", [field.name for field in fields(CalibrationConfig)])
def test_every_field_stands_with_its_two_values(field: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{field}` |")]
    cells = [cell.strip().strip("`") for cell in row.split("|")][2:4]
    assert cells == [
        str(getattr(make(), field)) for make in (CalibrationConfig.reference, CalibrationConfig.default)
    ]
