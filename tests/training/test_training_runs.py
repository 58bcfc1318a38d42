"""Runs: a killed run goes on as if nothing had happened, and every fault says what to do."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from made_films import FRAMES, made_folder, made_recipe, made_scenes
from torch import nn

from roadaware.cli import main
from roadaware.errors import DamagedError, DiskError, InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.models.detector import read_advice
from roadaware.models.weights import open_detector, open_network
from roadaware.tasks.road_events import Classes
from roadaware.training import checkpoints, loop
from roadaware.training.checkpoints import LAST, LOG, open_checkpoint, read_log
from roadaware.training.loop import DivergedError, TrainedDetector, freeze, train
from roadaware.training.recipe import Recipe


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_folder(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Path, TrainedDetector]:
    """A run that nothing interrupted, judged twice on the videos that it learnt from."""
    recipe = made_recipe(
        made,
        data={"validation_roots": [str(made / "tables")]},
        validation={"every_steps": 4, "videos": 1, "link_iou": 0.1, "linking": {"cost": "score"}},
    )
    out = tmp_path_factory.mktemp("whole")
    return recipe, out, train(recipe, out)


def lines(out: Path) -> list[dict[str, Any]]:
    return read_log(out)


def weights(path: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(path, weights_only=True)["network"]
    return found


class Killed(BaseException):
    """What ends a run at once."""


def killed_at(step: int) -> Callable[[int, int, str], None]:
    def progress(done: int, total: int, unit: str) -> None:
        if done == step:
            raise Killed

    return progress


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_losses_and_weights(
    whole: tuple[Recipe, Path, TrainedDetector], tmp_path: Path, made: Path
) -> None:
    out = whole[1]
    often = made_recipe(
        made,
        data={"validation_roots": [str(made / "tables")]},
        validation={"every_steps": 4, "videos": 1, "link_iou": 0.1, "linking": {"cost": "score"}},
        machine={"checkpoint_minutes": 0},
    )
    for step in (3, 5):
        with pytest.raises(Killed):
            train(often, tmp_path, resume=True, progress=killed_at(step))
        assert torch.load(tmp_path / LAST, weights_only=True)["step"] == step - 1
    train(often, tmp_path, resume=True)
    assert lines(tmp_path) == lines(out)
    first, second = weights(out / LAST), weights(tmp_path / LAST)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (out / "model.safetensors").stat().st_size == (tmp_path / "model.safetensors").stat().st_size


def test_a_run_says_every_step_and_every_judgement(whole: tuple[Recipe, Path, TrainedDetector]) -> None:
    _, out, trained = whole
    told = lines(out)
    assert [line["step"] for line in told] == [1, 2, 3, 4, 4, 5, 6, 6]
    steps = [line for line in told if "loss" in line]
    assert all(math.isfinite(line["loss"]) and line["lr"] > 0 for line in steps)
    assert steps[-1]["epoch"] == pytest.approx(6 * 2 / 6)
    assert {"frame_map@0.5/agent", "video_map@0.2/agentness", "av_action"} <= set(told[-1]["validation"])
    assert trained.metrics == told[-1]["validation"]
    assert (trained.step, trained.steps, trained.stopped) == (6, 6, None)


def test_what_comes_out_is_a_detector_with_a_card(
    whole: tuple[Recipe, Path, TrainedDetector], made: Path
) -> None:
    _, out, trained = whole
    assert trained.model == out / "model.safetensors"
    detector = open_detector(out / "model.safetensors")
    assert detector.kinds["duplex"] == ("Car-TurLft", "Ped-Stop")
    assert read_advice([out / "model.safetensors"]).linking == {"min_iou": 0.1, "cost": "score"}
    with VideoReader(made / "films" / "film-0.mp4") as film:
        found = [each for picture in film for each in detector.step(picture)]
    assert [each.frame for each in found] == list(range(FRAMES))
    card = (out / "model.md").read_text()
    assert "2 of agent, 3 of action, 2 of duplex; 3 actions of the own vehicle" in card
    assert "frame_map@0.5/agent" in card
    assert json.loads((out / "recipe.json").read_text())["clips"]["batch"] == 2


def test_a_folder_with_a_run_is_not_begun_anew(whole: tuple[Recipe, Path, TrainedDetector]) -> None:
    recipe, out, _ = whole
    with pytest.raises(UsageError, match="--resume"):
        train(recipe, out)


def test_ctrl_c_saves_and_the_command_goes_on(
    made: Path, tmp_path: Path, whole: tuple[Recipe, Path, TrainedDetector], monkeypatch: pytest.MonkeyPatch
) -> None:
    import yaml

    from roadaware.config import to_dict

    plain = {k: v for k, v in to_dict(whole[0]).items() if k != "type"}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(plain))
    command = ["train", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "run"), "--set", "name=other"]
    one = loop.Run._one

    def interrupted(run: loop.Run, *given: Any) -> None:
        if run.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        one(run, *given)

    monkeypatch.setattr(loop.Run, "_one", interrupted)
    assert main(command) == 130
    monkeypatch.undo()
    assert torch.load(tmp_path / "run" / LAST, weights_only=True)["step"] == 3
    assert main(command) == 2
    assert main([*command, "--resume"]) == 0
    assert lines(tmp_path / "run") == lines(whole[1])


@pytest.mark.slow
def test_a_loss_that_is_no_number_stops_the_run_and_keeps_what_was_good(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = made_recipe(made, machine={"checkpoint_minutes": 0})
    losses = loop.Run._losses

    def broken(run: loop.Run, batch: Any) -> dict[str, torch.Tensor]:
        found = losses(run, batch)
        return {**found, "loss": found["loss"] * math.nan} if run.step == 3 else found

    monkeypatch.setattr(loop.Run, "_losses", broken)
    with pytest.raises(DivergedError) as caught:
        train(recipe, tmp_path)
    for said in ("nan at step 4", "film-", "from frame", f"{LAST} holds step 3", "schedule.lr", "--resume"):
        assert said in str(caught.value)
    kept = weights(tmp_path / LAST)
    assert all(torch.isfinite(value).all() for value in kept.values())
    monkeypatch.undo()
    assert train(recipe, tmp_path, resume=True).step == 6


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_run_goes_on(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = made_recipe(made, machine={"checkpoint_minutes": 0})
    tries = 0

    def full(path: Path, data: bytes) -> None:
        nonlocal tries
        tries += path.suffix != ".jsonl"  # the log is written by the same module
        if tries < 6 and path.suffix != ".jsonl":
            raise DiskError(f"cannot write {path}: no space left")
        path.write_bytes(data)

    monkeypatch.setattr(checkpoints, "write_atomically", full)
    assert train(recipe, tmp_path / "late").step == 6
    assert caplog.text.count("no checkpoint at step") == 5
    tries = -10
    with pytest.raises(DiskError):
        train(recipe, tmp_path / "never")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": {"fields": {"width": 16}}}, "its network has"),
        ({"data": {"kinds": ["agent"]}}, "its kinds of labels are agent, action, duplex, not agent"),
        ({"data": {"av_action": False}}, "actions of the own vehicle"),
    ],
)
def test_a_checkpoint_of_another_detector_is_refused(
    whole: tuple[Recipe, Path, TrainedDetector], made: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        train(made_recipe(made, **changes), whole[1], resume=True)
    assert says in str(caught.value)
    assert "--out" in str(caught.value)


def test_a_run_can_go_on_with_another_schedule_and_says_so(
    whole: tuple[Recipe, Path, TrainedDetector], made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / LAST).write_bytes((whole[1] / LAST).read_bytes())
    assert train(made_recipe(made, schedule={"steps": 7}), tmp_path, resume=True).step == 7
    assert "another recipe than it began with: data.validation_roots, schedule.steps" in caplog.text
    said, machine = torch.load(whole[1] / LAST, weights_only=True), replace(whole[0].machine, threads=3)
    classes = Classes({kind: tuple(words) for kind, words in said["kinds"].items()}, tuple(said["av_labels"]))
    for devices in (1, 2):  # the same clips, shared
        other = replace(whole[0], machine=replace(machine, devices=devices))
        assert open_checkpoint(whole[1] / LAST, other, said["config"], classes)[1] == []


def test_files_that_are_no_checkpoint_are_refused(
    whole: tuple[Recipe, Path, TrainedDetector], tmp_path: Path, made: Path
) -> None:
    recipe, out, _ = whole
    content = (out / LAST).read_bytes()
    for name, data, kind in (
        ("cut", content[: len(content) // 2], DamagedError),
        ("empty", b"", DamagedError),
        ("text", b"no checkpoint", DamagedError),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / LAST).write_bytes(data)
        with pytest.raises(kind):
            train(recipe, tmp_path / name, resume=True)
    held = torch.load(out / LAST, weights_only=True)
    weight = next(each for each in held["network"].values() if each.numel() > 100).numpy().tobytes()
    flipped = bytearray(content)
    flipped[content.index(weight) + 50] ^= 1
    (tmp_path / "cut" / LAST).write_bytes(flipped)
    with pytest.raises(DamagedError, match="Bad CRC-32"):
        train(recipe, tmp_path / "cut", resume=True)
    for change in (
        {"step": -5},
        {"step": "x"},
        {"chance": torch.zeros(3, dtype=torch.uint8)},
        {"optimizer": {}},
        {"network": None},
        {"network": {}},
        {"network": {name: each.new_zeros(2) for name, each in held["network"].items()}},
    ):
        torch.save({**held, **change}, tmp_path / "cut" / LAST)
        with pytest.raises(DamagedError, match="is no whole checkpoint"):
            train(recipe, tmp_path / "cut", resume=True)
    torch.save({"weight": torch.zeros(1)}, tmp_path / "other")
    with pytest.raises(InputError, match=r"model\.weights"):
        open_checkpoint(tmp_path / "other", recipe, None, None)  # type: ignore[arg-type]


def test_a_run_begins_with_the_weights_of_another(
    whole: tuple[Recipe, Path, TrainedDetector], made: Path, tmp_path: Path
) -> None:
    model = whole[1] / "model.safetensors"
    recipe = made_recipe(made, model={"weights": str(model)}, schedule={"steps": 1, "lr": 1e-12, "ema": 0})
    train(recipe, tmp_path)
    began, ended = (open_network(path)[0] for path in (model, tmp_path / "model.safetensors"))
    ours, theirs = dict(began.named_parameters()), dict(ended.named_parameters())
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)


def test_lines_that_were_cut_off_are_left_out(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text('{"step": 1}\n{"step": 2, "lo')
    assert read_log(tmp_path) == [{"step": 1}]


def test_batch_norms_and_parts_can_stay_as_they_are(made: Path) -> None:
    network = nn.ModuleDict(
        {"stem": nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)), "norm": nn.BatchNorm2d(2)}
    )
    still = freeze(network, made_recipe(made, model={"freeze": ["stem"]}))
    assert still == [network["stem"][1]]  # type: ignore[index]
    assert [p.requires_grad for p in network.parameters()] == [False] * 4 + [True] * 2
    assert len(freeze(network, made_recipe(made, model={"freeze_batch_norm": True}))) == 2
    with pytest.raises(UsageError, match="begins with 'trunk'; there are norm"):
        freeze(network, made_recipe(made, model={"freeze": ["trunk"]}))


@pytest.mark.slow
def test_mixed_precision_and_accumulation_learn_too(made: Path, tmp_path: Path) -> None:
    recipe = made_recipe(
        made,
        machine={"precision": "bf16-mixed"},
        clips={"batch": 1, "accumulate": 2},
        schedule={"steps": 2},
    )
    for likeliest in (0, 8):
        out = tmp_path / str(likeliest)
        train(replace(recipe, model=replace(recipe.model, likeliest=likeliest)), out)
        assert all(math.isfinite(line["loss"]) for line in lines(out))


@pytest.mark.slow
@pytest.mark.parametrize("likeliest", [0, 16])
def test_what_is_seen_often_enough_is_found(made: Path, tmp_path: Path, likeliest: int) -> None:
    recipe = made_recipe(
        made,
        model={
            "likeliest": likeliest,
            "fields": {
                "stage_widths": [16, 16, 24, 24],
                "stage_blocks": [1, 1, 1, 1],
                "width": 16,
                "head_layers": 1,
                "anchor_sizes_px": [16, 32],
                "short_side_px": 64,
            },
        },
        data={"validation_roots": [str(made / "tables")]},
        clips={"batch": 4},
        schedule={"steps": 300, "lr": 4e-3, "warmup_steps": 20, "clip_norm": 5},
        augment={"flip": 0, "colour": 0.3, "zoom": [0.9, 1.1], "shift": 0.05},
    )
    found = train(recipe, tmp_path).metrics
    assert len(found) == 6
    assert min(found.values()) > 0.95


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_with_twice_the_batch(made: Path, tmp_path: Path) -> None:
    fields = {**made_recipe(made).model.fields, "dead_weights": True}
    common: dict[str, Any] = {
        "model": {"freeze_batch_norm": True, "fields": fields},
        "schedule": {"optimizer": "sgd", "lr": 0.01, "clip_norm": 1.0, "ema": 0.0},
    }
    one = made_recipe(made, **common, clips={"batch": 4})
    two = made_recipe(made, **common, clips={"batch": 4}, machine={"devices": 2})
    train(one, tmp_path / "one")
    train(two, tmp_path / "two")
    for a, b in zip(lines(tmp_path / "one"), lines(tmp_path / "two"), strict=True):
        assert a["norm"] == pytest.approx(b["norm"], rel=1e-4)
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
    first, second = weights(tmp_path / "one" / LAST), weights(tmp_path / "two" / LAST)
    assert all(torch.allclose(first[name], second[name], atol=1e-6) for name in first)


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on(made: Path, tmp_path: Path) -> None:
    import subprocess
    import sys
    import time

    import yaml

    from roadaware.config import to_dict

    recipe = made_recipe(made, schedule={"steps": 60}, machine={"checkpoint_minutes": 0, "workers": 1})
    plain = {k: v for k, v in to_dict(recipe).items() if k != "type"}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(plain))
    program = str(Path(sys.executable).with_name("roadaware"))
    command = [program, "train", str(tmp_path / "recipe.yaml"), "--resume", "-o"]
    assert subprocess.run([*command, str(tmp_path / "whole")], check=False).returncode == 0
    for length in (15, 40):
        process = subprocess.Popen([*command, str(tmp_path / "cut")])
        while len(read_log(tmp_path / "cut")) < length:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait()
    assert subprocess.run([*command, str(tmp_path / "cut")], check=False).returncode == 0
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")


def test_scenes_without_own_vehicle_are_learnt_too(made: Path, tmp_path: Path) -> None:
    from roadaware.scenes.store import save

    scenes = made_scenes()
    save(scenes.with_tables(frame_labels=scenes.frame_labels.clear()), tmp_path / "tables")
    recipe = made_recipe(made, data={"roots": [str(tmp_path / "tables")]}, schedule={"steps": 2})
    assert train(recipe, tmp_path / "run").step == 2
    assert open_detector(tmp_path / "run" / "model.safetensors").av_labels == ()
