"""The last layers of the bundled detector's heads learn from two rendered towns, and the file is watched with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_files import Command

from roadaware.models.detector import read_advice
from roadaware.models.loading import open_stream
from roadaware.protocols import continual, event_domains
from roadaware.protocols.continual import DISTILLED, JOINT


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two towns of two and three scenes of a second."""
    for module in (continual, event_domains):
        monkeypatch.setattr(module, "DETECTOR_TRAIN_S", 1.0)
    monkeypatch.setattr(event_domains, "DETECTOR_TEST_S", 1.0)
    monkeypatch.setattr(continual, "TOWNS", (continual.TOWNS[0], continual.TOWNS[-1]))
    monkeypatch.setattr(continual, "_TIMED_ROUNDS", 1)
    plan = replace(continual.PLANS["detector"], train_scenes=2, test_scenes=3)
    monkeypatch.setitem(continual.PLANS, "detector", plan)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_detector_learns_and_is_watched_with(roadaware: Command, tmp_path: Path) -> None:
    out = tmp_path / "study"
    words = (
        "reproduce", "continual", "--learns", "detector", "--seeds", "1", "--resamples", "9", "--set", "memory=8",
        "--output", out,
    )  # fmt: skip
    done = roadaware(*words)
    assert done.code == 0, done.err
    assert "the time of detector and linker" in done.out
    results = (out / "results.json").read_bytes()
    held = json.loads(results)
    assert (held["learns"], held["memory_tubes"]) == ("detector", 8)
    first, second = held["experiences"]
    assert not {"action/TurLft", "location/Jun"} & {*first["judged"], *first["passed"]}
    assert {"action/TurLft", "location/Jun"} <= set(second["new"])
    assert any(name.startswith("duplex/") and name.endswith("TurLft") for name in second["new"])
    # At the beginning all ways are the same detector, and it knows something.
    matrices = [np.array(each["matrix"]) for each in held["methods"] if each["name"] != JOINT]
    assert all(np.array_equal(each[0], matrices[0][0]) for each in matrices)
    assert matrices[0][0].min() > 0.05
    distilled = next(np.array(each["matrix"]) for each in held["methods"] if each["name"] == DISTILLED)
    assert not np.array_equal(distilled[1], distilled[0])
    assert "all before it, boxes and agentness stay as they are" in (out / "report.html").read_text()
    # Broken off and given again: what is there is taken, and the end is the same.
    detector = (out / continual.DETECTOR).read_bytes()
    for name in ("results.json", "states/replay-0.npz", continual.DETECTOR, "scenes/left-day/test-0001.npz"):
        (out / name).unlink()
    assert roadaware(*words).code == 0
    assert (out / "results.json").read_bytes() == results
    assert (out / continual.DETECTOR).read_bytes() == detector
    refused = roadaware(*words[:4], "--seeds", "2", "--output", out)
    assert (refused.code, "name another folder" in refused.err) == (2, True)
    refused = roadaware(*words[:4], "--domains", f"x={tmp_path}", "--output", tmp_path / "other")
    assert refused.code != 0

    # The file is a detector as any other.
    learnt, own = open_stream([out / continual.DETECTOR]), open_stream([event_domains.DetectorHeads().path])
    assert learnt.kinds == own.kinds
    image = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
    one, other = learnt.step(image)[0], own.step(image)[0]
    assert np.array_equal(one.boxes, other.boxes)
    assert np.array_equal(one.agentness, other.agentness)
    assert not np.array_equal(one.scores, other.scores)
    assert read_advice([out / continual.DETECTOR]).min_score == 0.32
    films = tmp_path / "films"
    done = roadaware(
        "simulate", "--preset", "road", "--scenes", "1", "--seconds", "0.5", "--size", "320x240", "--no-masks",
        "--no-sound", "--output", films,
    )  # fmt: skip
    assert done.code == 0, done.err
    video = films / "scenes" / "road-0000" / "video.mp4"
    done = roadaware("watch", video, "--weights", out / continual.DETECTOR, "--output", tmp_path / "watched")
    assert done.code == 0, done.err
    done = roadaware(
        "predict", out / continual.DETECTOR, "--videos", films, "--reader", "simulator", "--output", tmp_path / "found"
    )  # fmt: skip
    assert done.code == 0, done.err
