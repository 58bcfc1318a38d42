"""Object detectors of transformers are trained by recipes like networks, into folders that all open."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from made_films import FRAMES, made_folder, made_recipe, made_scenes

from roadaware.cli import main
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models.loading import open_videos
from roadaware.models.object_detectors import create_model, save_objects
from roadaware.scenes.store import open_predictions, save
from roadaware.tasks.road_events import Classes
from roadaware.training.batches import Batch, Sample
from roadaware.training.build import ObjectLearner
from roadaware.training.checkpoints import LAST, read_log
from roadaware.training.loop import DivergedError, Run, TrainedDetector, build_optimizer, set_rate, train
from roadaware.training.recipe import Recipe
from tiny_objects import FIELDS, tiny_model

STILL = {"flip": 0.0, "colour": 0.0, "zoom": [1.0, 1.0], "shift": 0.0}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_folder(tmp_path_factory.mktemp("made"))


def recipe_for(made: Path, kind: str = "rt_detr", **changes: dict[str, Any]) -> Recipe:
    """A tiny detector that learns from two images at a time for 4 steps."""
    fields = {"type": kind, "size_px": [64, 64], **FIELDS[kind]}
    model = {"name": "objects", "base": "default", "fields": fields, **changes.pop("model", {})}
    clips = {"frames": 1, "stride": 1, "batch": 2, **changes.pop("clips", {})}
    schedule = {"steps": 4, "bias_lr": 1, **changes.pop("schedule", {})}
    return made_recipe(made, model=model, clips=clips, schedule=schedule, **changes)


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Path, TrainedDetector]:
    """A run that nothing interrupted, judged on a video that it learnt from."""
    recipe = recipe_for(
        made,
        data={"validation_roots": [str(made / "tables")]},
        validation={"videos": 1},
        schedule={"part_lr": {"model.backbone": 0.1}},
    )
    out = tmp_path_factory.mktemp("whole")
    return recipe, out, train(recipe, out)


def lines(out: Path) -> list[dict[str, Any]]:
    return read_log(out)


def losses(out: Path) -> list[float]:
    return [line["loss"] for line in read_log(out) if "loss" in line]


class Killed(BaseException):
    """What ends a run at once."""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_losses_and_weights(
    whole: tuple[Recipe, Path, TrainedDetector], tmp_path: Path
) -> None:
    recipe, out, _ = whole
    often = replace(recipe, machine=replace(recipe.machine, checkpoint_minutes=0))

    def progress(done: int, total: int, unit: str) -> None:
        if done == 3:
            raise Killed

    with pytest.raises(Killed):
        train(often, tmp_path, progress=progress)
    train(often, tmp_path, resume=True)
    assert lines(tmp_path) == lines(out)
    first, second = (torch.load(each / LAST, weights_only=True) for each in (out, tmp_path))
    assert all(torch.equal(first["network"][name], second["network"][name]) for name in first["network"])
    assert first["config"]["model_type"] == "rt_detr"


def test_what_comes_out_is_a_folder_that_says_what_it_is(whole: tuple[Recipe, Path, TrainedDetector]) -> None:
    _, out, trained = whole
    assert trained.model == out / "model"
    assert set(trained.metrics) == {
        "frame_map@0.5/agent",
        "frame_map@0.5/agentness",
        "video_map@0.2/agentness",
    }
    said = json.loads((out / "model" / "roadaware.json").read_text())
    assert (said["kind"], said["labels"]) == ("agent", ["Ped", "Car"])
    assert said["notes"]["recipe"]["clips"]["frames"] == 1
    assert said["notes"]["step"] == 4
    assert json.loads((out / "model" / "config.json").read_text())["id2label"] == {"0": "Ped", "1": "Car"}
    assert "2 of agent" in (out / "model.md").read_text()
    detector = open_videos([out / "model"])
    assert detector.kinds == {"agent": ("Ped", "Car")}


def test_the_folder_holds_the_running_mean_that_was_judged(
    whole: tuple[Recipe, Path, TrainedDetector],
) -> None:
    _, out, _ = whole
    average = torch.load(out / LAST, weights_only=True)["average"]
    held: Any = open_videos([out / "model"])
    assert all(torch.equal(value, average[name]) for name, value in held.model.state_dict().items())


@pytest.mark.slow
def test_predict_and_union_open_the_folder(
    whole: tuple[Recipe, Path, TrainedDetector], made: Path, tmp_path: Path
) -> None:
    film = str(made / "films" / "film-0.mp4")
    command = [
        "predict",
        str(whole[1] / "model"),
        "--videos",
        film,
        "--out",
        str(tmp_path),
        "--threshold",
        "0",
    ]
    assert main(command) == 0
    predictions = open_predictions(tmp_path / "predictions")
    assert predictions.meta.vocabularies["agent"] == ("Ped", "Car")
    assert sorted(predictions.boxes["frame"].unique()) == list(range(FRAMES))
    network = tmp_path / "network"
    train(made_recipe(made, schedule={"steps": 1}), network)
    union = open_videos([network / "model.safetensors"], objects=whole[1] / "model")
    picture = np.zeros((64, 64, 3), np.uint8)
    assert list(union.kinds) == ["agent", "action", "duplex"]
    assert len(union.step(picture)) == 1


@pytest.mark.slow
def test_a_recipe_and_a_model_by_name_go_on_and_end_in_a_folder_that_opens(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    tables, films, run = made / "tables", made / "films", str(tmp_path / "run")
    fields = [f"data.{name}={tables}" for name in ("roots", "validation_roots")]
    fields += [
        "data.reader=saved",
        f"data.media={films}",
        "schedule.steps=2",
        "clips.batch=2",
        "clips.stride=1",
    ]
    fields += ["validation.videos=1", "machine.threads=1", "machine.tensorboard=false"]
    asked = ["train", "objects-simulator", "--weights", "rtdetr-r18", "--out", run, "--set", *fields]
    assert main(asked) == 2
    assert "roadaware models get rtdetr-r18" in capsys.readouterr().err
    assert main(["train", "objects-simulato", "--weights", "rtdetr-r18"]) == 2
    assert "did you mean 'objects-simulator'?" in capsys.readouterr().err
    save_objects(
        tmp_path / "coco", tiny_model("rt_detr", ["car", "person"]), ((64, 64), [0.0] * 3, [1.0] * 3), "any"
    )
    (tmp_path / "coco" / "roadaware.json").unlink()  # as folders of others are
    assert main(["models", "get", "rtdetr-r18", "--from", str(tmp_path / "coco")]) == 0
    assert main(asked) == 0
    assert main(asked) == 2
    assert main([*asked, "--resume"]) == 0
    assert open_videos([tmp_path / "run" / "model"]).kinds == {"agent": ("Ped", "Car")}
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["model"]["weights"] == "rtdetr-r18"


def test_what_is_no_folder_of_transformers_is_not_trained_further(made: Path, tmp_path: Path) -> None:
    (tmp_path / "graph.safetensors").write_bytes(b"none")
    with pytest.raises(UsageError, match="is a file; trained further are RT-DETR"):
        train(recipe_for(made, model={"weights": str(tmp_path / "graph.safetensors")}), tmp_path / "run")
    with pytest.raises(UsageError, match="there is no file or folder"):
        train(recipe_for(made, model={"weights": str(tmp_path / "nothing")}), tmp_path / "run")


@pytest.mark.slow
def test_a_tiny_model_learns_one_clip_by_heart(made: Path, tmp_path: Path) -> None:
    scenes = made_scenes(1)
    annotated = scenes.frames.with_columns(annotated=pl.col("frame") < 2)
    save(scenes.with_tables(frames=annotated), tmp_path / "tables")
    recipe = recipe_for(
        made,
        model={"fields": {"type": "rt_detr", "size_px": [64, 64], **FIELDS["rt_detr"], "num_denoising": 0}},
        data={"roots": [str(tmp_path / "tables")]},
        clips={"frames": 2, "stride": 12, "batch": 1, "shift": False},
        schedule={"steps": 32, "lr": 5e-3, "ema": 0, "clip_norm": 1.0},
        augment=STILL,
    )
    train(recipe, tmp_path / "run")
    told = losses(tmp_path / "run")
    assert max(told[-5:]) < told[0] / 1.6


@pytest.mark.slow
def test_it_goes_on_from_a_folder_of_coco(made: Path, tmp_path: Path) -> None:
    save_objects(
        tmp_path / "coco",
        tiny_model("d_fine", ["car", "person", "kite"]),
        ((64, 64), [0.5] * 3, [0.2] * 3),
        "any",
    )
    model = {"weights": str(tmp_path / "coco"), "fields": {"num_denoising": 0}}
    recipe = recipe_for(made, model=model, schedule={"steps": 1, "lr": 1e-12, "ema": 0})
    train(recipe, tmp_path / "run")
    old, new = open_videos([tmp_path / "coco"]), open_videos([tmp_path / "run" / "model"])
    one, other = (each.model.state_dict() for each in (old, new))  # type: ignore[attr-defined]
    name = "model.decoder.class_embed.0.weight"
    assert torch.allclose(other[name], one[name][[1, 0]], atol=1e-6)
    assert new.mean.flatten().tolist() == [0.5] * 3  # type: ignore[attr-defined]
    other_type = {**model, "fields": {"type": "rt_detr"}}
    with pytest.raises(UsageError, match="holds a d_fine"):
        train(recipe_for(made, model=other_type), tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": {"fields": {}}}, r"model\.weights, a folder, or model\.fields\.type"),
        ({"model": {"base": "compact"}}, r"model\.base and model\.likeliest are not"),
        ({"data": {"kinds": ["agent", "action"]}}, r"tells one of data\.kinds"),
        ({"data": {"kinds": ["colour"]}}, "no labels of colour"),
        ({"model": {"fields": {"type": "yolo"}}}, "not 'yolo'"),
        ({"model": {"fields": {"type": "rt_detr", "size_px": [60, 64]}}}, "multiples of 32"),
        (
            {"schedule": {"part_lr": {"backbone": 0.1}}},
            "no parameter begins with 'backbone'; there are model",
        ),
        ({"schedule": {"part_lr": {"model": "slow"}}}, "factors of 0 or more"),
        ({"model": {"freeze": ["trunk"]}}, "no parameter begins with 'trunk'"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    made: Path, tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        train(recipe_for(made, **changes), tmp_path)


def test_folders_to_begin_with_that_are_none_are_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        train(recipe_for(made, model={"weights": str(tmp_path)}), tmp_path / "run")
    (tmp_path / "config.json").write_text('{"model_type": "rt_detr"}')
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with pytest.raises(DamagedError, match="cannot be made"):
        train(recipe_for(made, model={"weights": str(tmp_path)}), tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": {"kinds": ["action"]}}, "its kinds of labels are agent, not action"),
        ({"model": {"fields": {"type": "rt_detr", **FIELDS["rt_detr"], "num_queries": 5}}}, "num_queries=12"),
        ({"model": {"fields": {"type": "d_fine", **FIELDS["d_fine"]}}}, "its network has"),
    ],
)
def test_a_checkpoint_of_another_detector_is_refused(
    whole: tuple[Recipe, Path, TrainedDetector], made: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        train(recipe_for(made, **changes), whole[1], resume=True)
    assert says in str(caught.value)


def test_frames_that_nobody_looked_at_and_boxes_without_label_are_not_learnt(made: Path) -> None:
    learner = ObjectLearner(recipe_for(made), Classes({"agent": ("Ped", "Car")}))
    seen: list[tuple[Any, ...]] = []

    def model(*given: Any) -> dict[str, torch.Tensor]:
        seen.append(given)
        return {"boxes": torch.tensor(2.0), "classes": torch.tensor(3.0)}

    boxes = torch.tensor([[-16.0, 16, 32, 48], [0, 0, 9, 9]])
    hot = torch.tensor([[True, False, True], [True, False, False]])
    samples = [
        Sample(
            torch.zeros(2, 64, 64, 3, dtype=torch.uint8),
            [boxes, boxes],
            [hot, hot],
            torch.tensor([-1, -1]),
            torch.tensor([False, labelled]),
            None,
            "film",
        )
        for labelled in (True, False)
    ]
    place = torch.device("cpu")
    found = learner.losses(model, Batch(samples), place, channels_last=True)  # type: ignore[arg-type]
    pictures, centred, labels = seen[0]
    assert pictures.shape == (1, 3, 64, 64)
    torch.testing.assert_close(centred[0], torch.tensor([[0.25, 0.5, 0.5, 0.5]]))
    assert labels[0].tolist() == [1]
    assert {name: (float(part.mean), int(part.count)) for name, part in found.items()} == {
        "boxes": (2.0, 1),
        "classes": (3.0, 1),
    }
    none = learner.losses(model, Batch(samples[1:]), place, channels_last=True)  # type: ignore[arg-type]
    assert {float(part.mean) for part in none.values()} == {0.0}
    assert len(seen[1][0]) == 2


def test_the_loss_is_that_of_transformers(made: Path) -> None:
    learner = ObjectLearner(recipe_for(made), Classes({"agent": ("Ped", "Car")}))
    pictures = torch.rand(1, 3, 64, 64)
    boxes, labels = torch.tensor([[0.5, 0.5, 0.25, 0.5]]), torch.tensor([1])
    torch.manual_seed(3)
    wanted = learner.network(pixel_values=pictures, labels=[{"class_labels": labels, "boxes": boxes}]).loss
    torch.manual_seed(3)
    found = learner.trainee(pictures, [boxes], [labels])
    assert (found["boxes"] + found["classes"]).item() == pytest.approx(wanted.item(), rel=1e-5)
    assert min(found["boxes"].item(), found["classes"].item()) > 0


def test_weights_that_are_no_numbers_end_the_run(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Run._one

    def broken(run: Run, *given: Any) -> None:
        if run.step == 1:
            with torch.no_grad():
                for weight in run.network.parameters():
                    weight.fill_(math.nan)
        one(run, *given)

    monkeypatch.setattr(Run, "_one", broken)
    with pytest.raises(DivergedError, match="nan at step 2"):
        train(recipe_for(made), tmp_path)


def test_parts_learn_at_their_own_rates(made: Path) -> None:
    network = create_model("rt_detr", FIELDS["rt_detr"], ["Ped"])
    recipe = recipe_for(made, schedule={"part_lr": {"model": 0.5, "model.backbone": 0.1}, "weight_decay": 0})
    optimizer = build_optimizer(network, recipe.schedule)
    set_rate(optimizer, 1.0)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert {rates[id(p)] for p in network.model.backbone.parameters()} == {0.1}
    assert {rates[id(p)] for p in network.model.decoder.parameters()} == {0.5}


@pytest.mark.slow
def test_mixed_precision_and_accumulation_learn_too(made: Path, tmp_path: Path) -> None:
    recipe = recipe_for(
        made,
        machine={"precision": "bf16-mixed"},
        clips={"batch": 1, "accumulate": 2},
        schedule={"steps": 1},
    )
    train(recipe, tmp_path)
    assert all(math.isfinite(loss) for loss in losses(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rt_detr", "d_fine"])
def test_what_is_seen_often_enough_is_found(made: Path, tmp_path: Path, kind: str) -> None:
    recipe = recipe_for(
        made,
        kind,
        data={"validation_roots": [str(made / "tables")]},
        clips={"batch": 4, "shift": True},
        schedule={"steps": 400, "lr": 2e-3, "warmup_steps": 20, "clip_norm": 1.0, "ema": 0.99},
        augment=STILL,
        validation={"nms_iou": 1},
    )
    assert train(recipe, tmp_path).metrics["frame_map@0.5/agent"] > 0.85
