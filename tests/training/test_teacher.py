"""A teacher: what it finds is learnt where nobody looked, is kept, and is not looked for twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from made_films import FRAMES, made_folder, made_recipe, made_scenes

from roadaware.errors import InputError, UsageError
from roadaware.models.retinanet3d.loss import focal_loss, sum_focal_loss
from roadaware.scenes.store import open_predictions
from roadaware.tasks.road_events import Classes, build_video_truth
from roadaware.training import teacher as module
from roadaware.training.batches import build_mirror
from roadaware.training.checkpoints import LAST, read_log
from roadaware.training.data import Material, load_training_data
from roadaware.training.loop import train
from roadaware.training.recipe import Recipe
from roadaware.training.teacher import films_at, with_teacher

LABELLED = FRAMES - 2


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Videos, and a network that has learnt a little of them."""
    folder = made_folder(tmp_path_factory.mktemp("made"))
    train(made_recipe(folder, schedule={"steps": 1}), folder / "run")
    return folder


def _recipe(made: Path, **changes: dict[str, Any]) -> Recipe:
    weights = str(made / "run" / "model.safetensors")
    asked = {"weights": weights, "min_score": 0.0, **changes.pop("teacher", {})}
    data = {"kinds": ["agent"], "av_action": False, **changes.pop("data", {})}
    return made_recipe(made, teacher=asked, data=data, **changes)


def _taught(recipe: Recipe, out: Path) -> Material:
    return with_teacher(load_training_data(recipe), recipe, out, "cpu")


def test_labelled_frames_keep_their_labels_and_others_get_the_teachers(made: Path, tmp_path: Path) -> None:
    material = _taught(_recipe(made), tmp_path)
    truth = build_video_truth(material.scenes, material.classes)
    told = open_predictions(tmp_path / "teacher" / "predictions").boxes
    assert set(material.taught) == {"film-0", "film-1"}
    for video, lesson in material.taught.items():
        assert lesson.labelled.all()
        for frame in range(FRAMES):
            boxes, classes = lesson.frame(frame)
            if frame < LABELLED:
                wanted = truth[video].frame(frame)
                np.testing.assert_array_equal(boxes, wanted[0])
                np.testing.assert_array_equal(classes, wanted[1])
            else:
                said = told.filter((pl.col("video") == video) & (pl.col("frame") == frame))
                assert len(boxes) == len(said) > 0
                np.testing.assert_allclose(classes[:, 0], said["score"], atol=1e-3)
                agents = np.stack(said["scores"].to_numpy())[:, :2]
                np.testing.assert_allclose(classes[:, 1:], agents, atol=1e-3)


@pytest.mark.slow
def test_films_without_labels_join_the_clips(made: Path, tmp_path: Path) -> None:
    recipe = _recipe(made, teacher={"films": [str(made / "films")], "soft": False})
    material = _taught(recipe, tmp_path)
    assert [film.video for film in material.films][2:] == ["teacher/film-0", "teacher/film-1"]
    lesson = material.taught["teacher/film-0"]
    assert len(lesson) == FRAMES
    hot = lesson.hot(slice(None))
    assert set(np.unique(hot)) <= {0.0, 1.0}
    assert (hot[:, 0] == 1).all()
    assert (lesson.av == -1).all()
    bare, more = (len(each.clips(recipe, _Fit())) for each in (load_training_data(recipe), material))
    assert more == 2 * bare


class _Fit:
    def size(self, height: int, width: int) -> tuple[int, int]:
        return height, width


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights_and_asks_nobody_twice(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = _recipe(made, schedule={"steps": 4}, machine={"checkpoint_minutes": 0})

    def killed(done: int, total: int, unit: str) -> None:
        if done == 2:
            raise _KilledError

    train(recipe, tmp_path / "whole")
    with pytest.raises(_KilledError):
        train(recipe, tmp_path / "parts", progress=killed)
    monkeypatch.setattr(module, "detect_video", lambda *given: pytest.fail("looked at again"))
    train(recipe, tmp_path / "parts", resume=True)
    assert read_log(tmp_path / "whole") == read_log(tmp_path / "parts")
    one, other = (torch.load(tmp_path / n / LAST, weights_only=True)["network"] for n in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert "boxes in 2 videos without labels" in (tmp_path / "whole" / "model.md").read_text()


class _KilledError(BaseException):
    pass


def test_what_a_teacher_cannot_teach_is_refused(made: Path, tmp_path: Path) -> None:
    agents = made / "agents.safetensors"
    if not agents.exists():
        train(made_recipe(made, schedule={"steps": 1}, data={"kinds": ["agent"]}), tmp_path / "agents")
        agents.write_bytes((tmp_path / "agents" / "model.safetensors").read_bytes())
    with pytest.raises(UsageError, match=r"tells agent, .* is action, too: set data.kinds=\[agent\]"):
        _taught(
            _recipe(made, teacher={"weights": str(agents)}, data={"kinds": ["agent", "action"]}), tmp_path
        )
    with pytest.raises(InputError, match="no such file or folder"):
        _taught(_recipe(made, teacher={"films": [str(tmp_path / "none")]}), tmp_path / "b")
    with pytest.raises(UsageError, match=r"teacher\.weights, which names nothing"):
        made_recipe(made, teacher={"films": ["films"]})
    with pytest.raises(UsageError, match="asked by one process"):
        _recipe(made, machine={"devices": 2})
    scenes = made_scenes()
    whole = scenes.with_tables(frames=scenes.frames.with_columns(annotated=pl.lit(True)))
    folder = made_folder(tmp_path / "whole", whole) if (tmp_path / "whole").mkdir() is None else tmp_path
    recipe = _recipe(made, data={"roots": [str(folder / "tables")], "media": str(folder / "films")})
    with pytest.raises(UsageError, match=r"name teacher\.films"):
        _taught(recipe, tmp_path / "c")


def test_films_of_one_name_are_refused(made: Path) -> None:
    with pytest.raises(UsageError, match="the same name"):
        films_at([str(made / "films"), str(made / "films" / "film-0.mp4")])


def test_a_truth_between_costs_least_where_the_answer_equals_it() -> None:
    for truth in (0.1, 0.35, 0.8):
        logits = torch.linspace(-5, 5, 2001, dtype=torch.float64)
        best = focal_loss(logits, torch.full_like(logits, truth), 0.25, 2.0).argmin()
        assert logits[best].sigmoid().item() == pytest.approx(truth, abs=2e-3)


def test_the_sum_of_mixed_truths_and_its_gradient_are_those_of_each() -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    truth = torch.tensor([[0.3, 1, 0], [0.9, 0.5, 1]], dtype=torch.float64)
    whole = torch.cat([truth, torch.zeros(4, 3, dtype=torch.float64)])
    wanted = focal_loss(logits, whole, 0.25, 2.0).sum()
    found = sum_focal_loss(logits, torch.ones(6, dtype=torch.bool), torch.arange(2), truth, 0.25, 2.0)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(*(torch.autograd.grad(each, logits)[0] for each in (found, wanted)))


def test_scores_are_mirrored_as_labels_are() -> None:
    classes = Classes({"action": ("TurLft", "TurRht", "Stop"), "duplex": ("Car-TurLft",)})
    mirror = build_mirror(classes, (), {})
    soft = np.array([[0.9, 0.7, 0.1, 0.2, 0.0]], np.float32)
    np.testing.assert_allclose(mirror.classes(soft), [[0.9, 0.1, 0.7, 0.2, 0.0]], rtol=1e-6)
