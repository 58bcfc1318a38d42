"""Training under torchrun: two processes learn what one learns, from each other's checkpoints, and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import yaml
from made_films import FRAMES, HEIGHT, made_folder, made_recipe, made_scenes

from roadaware.cli import main
from roadaware.config import to_dict
from roadaware.io.video import VideoWriter
from roadaware.training.checkpoints import LAST, read_log
from roadaware.training.loop import train
from roadaware.training.recipe import Recipe

LIMIT_S = 240
STEPS = 16


class Killed(BaseException):
    """What ends a run at once."""


def kill_at_five(done: int, total: int, unit: str) -> None:
    if done == 5:
        raise Killed


def a_recipe(folder: Path) -> Recipe:
    """Batches of three clips, of videos of two shapes, learnt with what the released code does over a batch."""
    wide = 96
    if not (folder / "tables").exists():
        scenes = made_scenes()
        widths = pl.when(pl.col("video") == "film-1").then(wide).otherwise(pl.col("width_px"))
        made_folder(folder, scenes.with_tables(videos=scenes.videos.with_columns(width_px=widths)))
        rng = np.random.default_rng(1)
        with VideoWriter(folder / "films" / "film-1.mp4", wide, HEIGHT, 12) as film:
            for _ in range(FRAMES):
                film.write(rng.integers(0, 255, (HEIGHT, wide, 3), dtype=np.uint8))
    fields: dict[str, Any] = {**made_recipe(folder).model.fields, "dead_weights": True, "av_targets": "batch"}
    return made_recipe(
        folder,
        model={"freeze_batch_norm": True, "fields": fields},
        clips={"batch": 3},
        schedule={"steps": STEPS, "optimizer": "sgd", "lr": 0.01, "clip_norm": 1.0},
        machine={"checkpoint_minutes": 0},
    )


def begin(recipe: Path, out: Path) -> subprocess.Popen[str]:
    """Two processes that torchrun starts, and waits for."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = [*torchrun, "-m", "roadaware", "train", str(recipe), "--resume", "--output", str(out)]
    here = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=here)


def finish(process: subprocess.Popen[str]) -> str:
    """What was said until the end; a run that does not end fails the test, and is ended with its processes."""
    try:
        return process.communicate(timeout=LIMIT_S)[1]
    except subprocess.TimeoutExpired:
        process.terminate()
        raise


def wait_for(out: Path, step: int, process: subprocess.Popen[str]) -> None:
    """Until the checkpoint behind a step is written, which is before the next line of the log."""
    until = time.monotonic() + LIMIT_S
    while not [line for line in read_log(out) if line["step"] > step]:
        if process.poll() is not None or time.monotonic() > until:
            pytest.fail(finish(process))
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_two_processes_learn_what_one_learns_and_go_on_from_each_other(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    made = tmp_path / "made"
    made.mkdir()
    recipe, file = a_recipe(made), tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump({k: v for k, v in to_dict(recipe).items() if k != "type"}))
    train(recipe, tmp_path / "one")
    # Begun by two, stopped as a scheduler does it, ended by one.
    out = tmp_path / "stopped"
    process = begin(file, out)
    wait_for(out, 3, process)
    process.send_signal(signal.SIGTERM)
    said = finish(process)
    stopped = torch.load(out / LAST, weights_only=True)["step"]
    assert said.count(f"saved step {stopped} of {STEPS}; the same command with --resume goes on") == 1
    assert 3 < stopped < STEPS
    train(recipe, out, resume=True)
    # Begun by one, killed; gone on by two, of whom one is killed, which ends the other; ended by two.
    out = tmp_path / "killed"
    with pytest.raises(Killed):
        train(recipe, out, progress=kill_at_five)
    process = begin(file, out)
    wait_for(out, 7, process)
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[1]), signal.SIGKILL)
    said = finish(process)
    assert process.returncode == 1
    assert said.count("roadaware: another process of this run has ended or cannot be reached") == 1
    assert 7 <= torch.load(out / LAST, weights_only=True)["step"] < STEPS
    process = begin(file, out)
    finish(process)
    assert process.returncode == 0
    first = torch.load(tmp_path / "one" / LAST, weights_only=True)
    for name in ("stopped", "killed"):
        for a, b in zip(read_log(tmp_path / "one"), read_log(tmp_path / name), strict=True):
            assert a["step"] == b["step"]
            assert a["loss"] == pytest.approx(b["loss"], rel=1e-6)
        second = torch.load(tmp_path / name / LAST, weights_only=True)
        for part in ("network", "average"):
            for key, value in first[part].items():
                assert torch.allclose(value, second[part][key], rtol=0, atol=1e-5)
        assert (tmp_path / name / "model.safetensors").is_file()


def test_predictors_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "any")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["train", "steady-jaad"]) == 2
    assert "torchrun spreads the training of detectors alone" in capsys.readouterr().err
