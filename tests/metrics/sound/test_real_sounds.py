"""Maps against OpenCV; the real truth of VGG-SS with seeded maps, and native files of maps, against the plain arithmetic."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_sound import means, overlap, truth_map
from sound_sets import Heard

from roadaware.datasets import read
from roadaware.formats.sound_maps import read_sound_maps
from roadaware.metrics.sound import CONFIGS, evaluate, normalize_maps
from roadaware.scenes.tables import Predictions

DATA = os.environ.get("ROADAWARE_DATA_DIR")
ITEMS = 60


@pytest.mark.parametrize("shape", [(14, 14), (7, 7), (28, 28), (13, 20), (448, 448), (300, 250), (56, 40)])
def test_maps_are_resized_as_by_opencv(shape: tuple[int, int]) -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    values = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    cells = cv2.resize(values, (224, 224), interpolation=cv2.INTER_LINEAR)
    expected = (cells - cells.min()) / np.ptp(cells)
    np.testing.assert_allclose(normalize_maps(values[None], 224)[0], expected, atol=4e-7)


@pytest.fixture(scope="module")
def truth() -> Path:
    if DATA is None or not (Path(DATA) / "vggss" / "vggss.json").is_file():
        pytest.skip("set ROADAWARE_DATA_DIR to the folder that holds vggss/vggss.json")
    return Path(DATA) / "vggss" / "vggss.json"


def seeded_maps(items: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """A bump of 14 x 14 cells near each item's first box, told apart from the next by noise."""
    rng = np.random.default_rng(0)
    ys, xs = (np.mgrid[0:14, 0:14] + 0.5) / 14
    found = {}
    for item in items:
        x1, y1, x2, y2 = (float(v) for v in (item["bbox"] or [[0, 0, 1, 1]])[0])
        x, y = (x1 + x2) / 2 + rng.normal(0, 0.1), (y1 + y2) / 2 + rng.normal(0, 0.1)
        wide = ((xs - x) / max(x2 - x1, 0.1)) ** 2 + ((ys - y) / max(y2 - y1, 0.1)) ** 2
        found[item["file"]] = (np.exp(-2 * wide) + rng.random((14, 14)) * 0.2).astype(np.float32)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CONFIGS))
def test_the_real_truth_with_seeded_maps(truth: Path, tmp_path: Path, name: str) -> None:
    items = json.loads(truth.read_text(encoding="utf-8"))[:ITEMS]
    maps = seeded_maps(items)
    (tmp_path / "vggss.json").write_text(json.dumps(items), encoding="utf-8")
    np.savez(tmp_path / "maps.npz", **maps)
    scenes = read("vggss", tmp_path / "vggss.json")
    result = evaluate(read_sound_maps(tmp_path / "maps.npz", scenes), scenes, CONFIGS[name]())
    heard = [Heard([tuple(box) for box in each["bbox"]], maps[each["file"]]) for each in items]
    expected = means(heard, CONFIGS[name]())
    assert {metric: result.value(metric) for metric in expected} == pytest.approx(expected, abs=1e-9)
    whole = [overlap(np.ones((224, 224), bool), truth_map(each, CONFIGS[name]())) for each in heard]
    assert result.baselines["whole image"]["success@0.5"] == np.mean(np.array(whole) >= 0.5)


@pytest.mark.slow
def test_a_few_items_by_hand(truth: Path) -> None:
    scenes = read("vggss", truth)
    result = evaluate(Predictions(), scenes, CONFIGS["vggss"]())
    assert result.facts["sounds"] == 5158
    # What docs/sound.md says of answers without a model.
    trivial = {name: round(values["success@0.5"], 3) for name, values in result.baselines.items()}
    assert trivial == {"whole image": 0.219, "centre": 0.135}
    rows = {row["name"]: row for row in result.instances("sound").iter_rows(named=True)}
    single = [each for each in json.loads(truth.read_text(encoding="utf-8")) if len(each["bbox"]) == 1]
    for item in single[:50]:
        x1, y1, x2, y2 = (int(224 * max(v, 0)) for v in item["bbox"][0])
        cells = max(min(x2, 224) - x1, 0) * max(min(y2, 224) - y1, 0)
        assert rows[item["file"]]["true_cells"] == cells
        assert rows[item["file"]]["whole_image"] == pytest.approx(cells / 224**2)
