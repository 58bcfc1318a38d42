"""A mistake planted in a whole file of predictions is named and undone, and the corrected file scores as the clean one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.analysis.corrected_scores import CorrectedTask, Source, correct_file
from roadaware.analysis.corrected_scores import _open as open_raw
from roadaware.demo_data.chaos import write_chaos
from roadaware.demo_data.corner_files import write_corner_demo
from roadaware.demo_data.detector import Detector
from roadaware.demo_data.road import write_road_demo
from roadaware.formats.raw_predictions import RawPredictions

Change = Callable[[RawPredictions], RawPredictions]


def _unit(raw):
    return np.tile(raw.image_px / raw.unit_px, 2)


def _sides(raw):
    c = raw.corners
    return raw.with_changes(corners=np.hstack([c[:, :2], c[:, 2:] - c[:, :2]]))


def _centre(raw):
    c = raw.corners
    return raw.with_changes(corners=np.hstack([(c[:, :2] + c[:, 2:]) / 2, c[:, 2:] - c[:, :2]]))


def _logits(raw):
    p = np.clip(raw.scores, 1e-6, 1 - 1e-6)
    return raw.with_changes(scores=np.log(p / (1 - p)))


BOXES: dict[str, tuple[str, Change]] = {
    "late": ("1 late", lambda raw: raw.with_changes(frame=raw.frame + 1)),
    "sides": ("width and height where the second corner", _sides),
    "centre": ("centre, width and height", _centre),
    "exchanged": ("x and y exchanged", lambda raw: raw.with_changes(corners=raw.corners[:, [1, 0, 3, 2]])),
    "shares": ("are shares of the image", lambda raw: raw.with_changes(corners=raw.corners / _unit(raw))),
    "per cent": (
        "are per cent of the image",
        lambda raw: raw.with_changes(corners=raw.corners / _unit(raw) * 100),
    ),
    "640": (
        "pixels of images of 640x360",
        lambda raw: raw.with_changes(corners=raw.corners / _unit(raw) * np.array([640, 360] * 2)),
    ),
    "logits": ("Scores are logits", _logits),
    "percent": ("Scores are per cent", lambda raw: raw.with_changes(scores=raw.scores * 100)),
    "inverted": ("Scores are low", lambda raw: raw.with_changes(scores=1 - raw.scores)),
}
NAMES: dict[str, tuple[str, Change]] = {
    "names": ("Videos have other names", lambda raw: raw.with_changes(video="clips/" + raw.video + ".mp4")),
}
COLUMNS: dict[str, tuple[str, Change]] = {
    "moved columns": (
        "Columns of agent scores are moved by one to the right",
        lambda raw: raw.with_changes(
            scores=np.hstack([raw.scores[:, :1], np.roll(raw.scores[:, 1:11], 1, axis=1), raw.scores[:, 11:]])
        ),
    ),
    "shares, sides and late": (
        "width and height",
        lambda raw: _sides(raw.with_changes(corners=raw.corners / _unit(raw), frame=raw.frame + 1)),
    ),
}
LABELS: dict[str, tuple[str, Change]] = {
    "from 0": ("low by one", lambda raw: raw.with_changes(label=raw.label - 1)),
    "numbered otherwise": (
        "numbered otherwise",
        lambda raw: raw.with_changes(
            label=np.array([dict(zip(*_shuffled(raw.label), strict=True))[n] for n in raw.label.tolist()])
        ),
    ),
}


def _shuffled(label):
    known = sorted(set(label.tolist()))
    return known, np.random.default_rng(0).permutation(known).tolist()


CASES = [
    *(("corner-cases", name) for name in BOXES),
    *(("actions", name) for name in (*BOXES, *NAMES, *LABELS) if name != "shares"),  # which its form is
    *(("road", name) for name in (*BOXES, *NAMES, *COLUMNS)),
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    root = tmp_path_factory.mktemp("sets")
    write_road_demo(root / "road", videos=6, frames=60)
    write_chaos(root / "chaos")
    write_corner_demo(root / "corner")
    actions, corner = root / "chaos" / "actions", root / "corner"
    return {
        "road": Source("road", root / "road", root / "road" / "detections"),
        "actions": Source(
            "actions", actions / "gt.csv", actions / "pred.csv", labels=actions / "action_list.pbtxt"
        ),
        "corner-cases": Source("corner-cases", corner / "corner_case.json", corner / "proposals.json"),
    }


@pytest.fixture(scope="module")
def clean(sources: dict[str, Source]) -> dict[str, float]:
    found = {task: correct_file(source) for task, source in sources.items()}
    assert {task: each.findings for task, each in found.items()} == dict.fromkeys(sources, ())
    return {task: each.before or 0.0 for task, each in found.items()}


@pytest.mark.spread(10)
@pytest.mark.parametrize(("task", "name"), CASES)
def test_a_planted_mistake_is_named_and_undone(
    sources: dict[str, Source], clean: dict[str, float], task: CorrectedTask, name: str, tmp_path: Path
) -> None:
    says, change = {**BOXES, **NAMES, **COLUMNS, **LABELS}[name]
    source = sources[task]
    raw, _ = open_raw(source)
    planted, output = tmp_path / source.predictions.name, tmp_path / "corrected" / source.predictions.name
    output.parent.mkdir()
    changed = change(raw)
    changed.write(changed, planted)
    found = correct_file(replace(source, predictions=planted), output)
    assert says in " ".join(each.says for each in found.findings)
    assert len(found.findings) == (2 if name.startswith("shares,") else 1)
    assert found.after == pytest.approx(clean[task], abs=2e-3)
    if name != "inverted":  # which recall does not see
        assert found.before is None or found.before < clean[task]
    again = correct_file(replace(source, predictions=output))
    assert again.findings == ()
    assert again.before == found.after


@pytest.mark.parametrize("seed", range(3))
def test_a_poor_detector_is_no_mistake(tmp_path: Path, seed: int) -> None:
    write_road_demo(tmp_path, seed=seed, videos=2, frames=40, detector=Detector(jitter=0.15, missed=0.5))
    assert correct_file(Source("road", tmp_path, tmp_path / "detections")).findings == ()


def test_boxes_of_nothing_are_not_read_otherwise(sources: dict[str, Source], tmp_path: Path) -> None:
    raw, _ = open_raw(sources["road"])
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 500, (len(raw.frame), 2))
    corners = np.hstack([start, start + rng.uniform(5, 150, start.shape)])
    noise = raw.with_changes(corners=corners)
    noise.write(noise, tmp_path / "detections")
    found = correct_file(replace(sources["road"], predictions=tmp_path / "detections"))
    assert found.findings == ()
    assert (found.before or 0) < 0.05
