"""The ablation of crowds: its cells, its resumption to the same bytes, paired differences, and baselines on planted data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.io.parallel import HERE, Workers
from roadaware.protocols import crowd_ablation
from roadaware.protocols.crowd_ablation import (
    PRINTED_PATHS,
    RESULTS,
    Cell,
    CrowdAblation,
    CrowdStudy,
    Value,
    build_recipe,
    count_shared_blocks,
    draw_paths,
    is_done,
    list_cells,
    run_study,
)
from roadaware.protocols.crowd_baselines import (
    compute_box_features,
    draw_peak,
    fit_column,
    fit_scores,
)
from roadaware.tasks.crowd import CrowdVideo
from roadaware.tasks.videos import Film

TINY = (
    "model.base=tiny", "model.trunk=random", "model.fields={map_size: 8, cycles: 1}", "clips.size_px=[64, 96]",
    "clips.frames=4", "clips.batch=2", "machine.threads=1", "machine.tensorboard=false",
)  # fmt: skip


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from roadaware.cli import main

    folder = tmp_path_factory.mktemp("crowds") / "made"
    given = ["--preset", "chaos@1", "--scenes", "4", "--seconds", "3", "--size", "96x64", "--fps", "5"]
    assert main(["simulate", *given, "--no-masks", "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def study(scenes: Path) -> CrowdStudy:
    return CrowdStudy(scenes, rows=("shared", "blocks-2"), seeds=1, steps=1, resamples=10, changes=TINY)


def test_cells_learn_equal_steps_of_each_task(tmp_path: Path) -> None:
    study = CrowdStudy(tmp_path, seeds=2, steps=5, changes=TINY)
    cells = list_cells(study)
    assert len(cells) == 2 * (4 + 5)
    steps = {cell.place: build_recipe(study, cell).schedule.steps for cell in cells}
    assert steps["cells/alone-sound/seed-1"] == 5
    assert steps["cells/shared/seed-0"] == 20
    blocks = {cell.row: build_recipe(study, cell).build_config().blocks for cell in cells}
    assert blocks == {
        "alone": 0, "shared": 0, "blocks-2": 2, "blocks-4": 4, "random-paths": 2, "shuffled": 2,
    }  # fmt: skip
    fixed = next(cell for cell in cells if cell.row == "random-paths")
    recipe = build_recipe(study, fixed)
    assert recipe.model.paths == draw_paths(fixed.tasks, 5, 2, fixed.seed)
    assert build_recipe(study, replace(fixed, row="shuffled")).shuffle_tasks
    assert not recipe.shuffle_tasks


@pytest.mark.parametrize(
    ("changed", "says"), [({"rows": ("none",)}, "rows are some"), ({"seeds": 0}, "at least 1")]
)
def test_impossible_studies_are_refused(tmp_path: Path, changed: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        CrowdStudy(tmp_path, **changed)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_study_that_was_killed_goes_on_to_the_same_bytes(
    study: CrowdStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run_study(study, tmp_path / "whole")
    assert found.rows == ["shared", "blocks-2"]
    # Sentences are compared with people: they take no path.
    facts = found.cells[Cell("blocks-2", 0, ("actions", "relations", "grounding", "sound"))]
    assert list(facts["paths"]) == list(facts["entropy"]) == ["actions", "relations", "sound"]

    ran = crowd_ablation.run_cell

    def stop_at_second(study: CrowdStudy, cell: Cell, out: Path, progress: object = None) -> None:
        if cell.row == "blocks-2":
            raise KeyboardInterrupt
        ran(study, cell, out)

    monkeypatch.setattr(crowd_ablation, "run_cell", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "again")
    monkeypatch.setattr(crowd_ablation, "run_cell", ran)
    assert [is_done(cell, tmp_path / "again") for cell in list_cells(study)] == [True, False]
    run_study(study, tmp_path / "again")
    first, second = ((tmp_path / name / RESULTS).read_bytes() for name in ("whole", "again"))
    assert first == second
    assert {row["row"] for row in json.loads(first)["values"]} == {"shared", "blocks-2"}
    with pytest.raises(UsageError, match="another steps"):
        run_study(replace(study, steps=2), tmp_path / "again")


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_make_the_bytes_of_one(
    study: CrowdStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    if on != "local":
        pytest.importorskip("ray")
    found = []
    for name, workers in (("one", HERE), ("two", Workers(on, 2))):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)  # recipes hold the path of the study
        run_study(study, Path("study"), workers=workers)
        files = [path for path in Path("study").rglob("*") if path.is_file() and path.stem != "timing"]
        found.append({str(path): path.read_bytes() for path in files})
    assert found[0] == found[1]
    assert {"results.json", "cell.json", "model.safetensors"} <= {Path(path).name for path in found[0]}


def test_the_page_says_when_nothing_is_gained(tmp_path: Path) -> None:
    key = ("in-domain", "blocks-2 - shared", "actions", "map@0.5")
    found = CrowdAblation(
        CrowdStudy(tmp_path), {"in-domain": 20}, {}, {}, {key: Value(0.01, -0.02, 0.04)}, {}, {}
    )
    assert "no gain is shown" in found.describe_gain()[0]
    better = replace(found, differences={key: Value(0.03, 0.02, 0.04)})
    assert "better in actions mAP (in-domain)" in better.describe_gain()[0]
    unknown = replace(found, differences={key: Value(0.03)})
    assert "no difference can be shown" in unknown.describe_gain()[0]


def test_printed_paths_share_what_the_figure_shows() -> None:
    shared = count_shared_blocks({each.task: each.blocks for each in PRINTED_PATHS})
    assert shared["relations", "grounding"] == 4  # all but layer 5, as the supplement says
    assert shared["actions", "sound"] == 3


def build_walker(width: float, speed: float) -> CrowdVideo:
    """A person of 40 px height who moves to the right, 10 frames at 5 a second."""
    frames = np.arange(10)
    left = 5 + speed * frames
    corners = np.stack([left, left * 0 + 10, left + width, left * 0 + 50], axis=1).astype(np.float32)
    nothing = np.full(10, -1)
    yes = np.ones(10, dtype=np.bool_)
    return CrowdVideo(
        Film("walker", "walker.mp4", 10, 100, 200), 5.0, frames, 1.0, 0.0, frames, frames, frames, yes, corners,
        nothing * 0, yes, np.zeros((10, 0), np.bool_), nothing, np.zeros((0, 5), np.int64), [], [],
    )  # fmt: skip


def test_box_features_are_shape_place_and_motion() -> None:
    found = compute_box_features(build_walker(20, 4))
    assert found[5, 0] == pytest.approx(np.log(2))
    assert found[5, 3:5].tolist() == pytest.approx([(5 + 20 + 10) / 200, 0.3])
    assert found[5, 5:].tolist() == pytest.approx([4 * 5 / 40, 0, 0, 1])


def test_an_action_that_the_aspect_ratio_decides_is_learnt() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 9))
    labels = np.stack([features[:, 0] > 0, np.zeros(400, np.bool_)], axis=1)
    score = fit_scores(features, labels, 0, boosted=True)
    other = rng.normal(size=(200, 9))
    found = score(other)
    assert ((found[:, 0] > 0.5) == (other[:, 0] > 0)).mean() > 0.95
    assert (found[:, 1] == 0).all()  # never seen
    assert score(other[:0]).shape == (0, 2)


def test_a_level_difference_becomes_a_column() -> None:
    column = np.linspace(0.1, 0.9, 20)
    slope, base = fit_column(10 - 20 * column, column)
    assert base + slope * 0 == pytest.approx(0.5)
    assert fit_column(np.zeros(0), np.zeros(0)) == (0.0, 0.5)
    peak = draw_peak((10, 20), (0.775, 0.45), np.array([0.2, 0.4]))
    assert np.unravel_index(peak.argmax(), peak.shape) == (4, 15)
    assert peak.max() == pytest.approx(1)
