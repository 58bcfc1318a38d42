"""Commands that take a dataset take synthetic scenes; truth as predictions is perfect, and bad predictions are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_files import Command

from roadaware.datasets import read
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.errors import UsageError
from roadaware.scenes.store import save
from simulated_answers import simulate_predictions

PERFECT = Detector(0, 0, 0, 0, 0, 0, 0, sharpness=12.0, size=None)
HEADLINES = {"actions": "map@0.5", "relations": "recall@100", "grounding": "m_viou", "sound": "success@0.5"}


@pytest.mark.slow
def test_truth_as_detections_is_perfect_and_a_bad_detector_is_not(
    roadaware: Command, made_up: Path, tmp_path: Path
) -> None:
    truth = made_up / "road"
    scenes = read("simulator", truth, cache=False)
    means = []
    for name, detector in (("perfect", PERFECT), ("bad", Detector(size=None))):
        save(simulate_detections(scenes, detector=detector), tmp_path / name)
        linked = tmp_path / f"{name}-linked"
        assert roadaware("link", tmp_path / name, "--truth", truth, "-o", linked).code == 0
        words = ["evaluate", "road", "--truth", truth, "--predictions", linked, "--only", "frame", "--json"]
        frame = roadaware(*words).data["frame"]["0.5"]
        means.append({kind: frame[kind]["mean"] for kind in ("agentness", "agent", "action", "location")})
    assert means[0] == pytest.approx(dict.fromkeys(means[0], 100.0))
    assert all(0 < bad < 100 for bad in means[1].values())


@pytest.mark.slow
@pytest.mark.parametrize("task", list(HEADLINES))
def test_truth_as_predictions_on_a_crowd_is_perfect_and_blurred_predictions_are_not(
    roadaware: Command, made_up: Path, tmp_path: Path, task: str
) -> None:
    scenes = read("simulator", made_up / "chaos", cache=False)
    values = []
    for blur in (0.0, 1.0):
        predictions = tmp_path / str(blur)
        save(simulate_predictions(scenes, task, blur=blur), predictions)
        words = ["evaluate", task, "--truth", made_up / "chaos", "--predictions", predictions, "--json"]
        values.append(roadaware(*words).data["summary"][HEADLINES[task]])
    assert values[0] == pytest.approx(1.0, abs=0.1 if task == "sound" else 1e-6)
    assert 0 <= values[1] < values[0]


@pytest.mark.slow
def test_saved_and_simulated_scenes_are_taken_for_any_data_set(
    roadaware: Command, made_up: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    assert roadaware("read", "simulator", made_up / "road", "-o", saved).code == 0
    counted = [roadaware("stats", "road", path, "--kinds", "agent").out for path in (made_up / "road", saved)]
    assert counted[0] == counted[1]
    assert "Car" in counted[0]
    for path in (made_up / "road", saved):
        done = roadaware("audit", "pie", path)
        assert done.code in (0, 3)
        assert "expected tables of" not in done.err
    same = roadaware("check", "annotations", made_up / "chaos", made_up / "chaos")
    assert same.code == 0, same.err


def test_other_tasks_and_blurs_are_refused(made_up: Path) -> None:
    scenes = read("simulator", made_up / "chaos", cache=False)
    for task, blur in (("driving", 0.5), ("sound", 1.5)):
        with pytest.raises(UsageError, match="tasks are actions, relations, grounding, sound"):
            simulate_predictions(scenes, task, blur=blur)
