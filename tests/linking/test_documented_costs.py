"""What the page of road events says that each mended quirk of the builder is worth, measured again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import ROAD_SHAPED, generate_road_scenes
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import compute_average_precisions, match_tubes
from roadaware.scenes.composites import product_of_marginals
from roadaware.scenes.tables import Predictions, Scenes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "road.md"
KINDS = ("agent", "action", "location", "duplex", "event")
SEVEN = (
    *("clamped_iou", "gaps", "drop_weak", "class_score"),
    *("motion", "edge_rule", "age_empty_frames"),
)
NUMBERS = r"((?: \d+\.\d \|){5})"


def documented() -> dict[str, list[float]]:
    rows = re.findall(
        rf"^\| `(\w+)(?:\(\))?` \|[^|]*\|[^|]*\|{NUMBERS}$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    rows += re.findall(rf"^\| (these seven) \| \| \|{NUMBERS}$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: [float(cell) for cell in cells.split("|")[:-1]] for name, cells in rows}


def mended(*names: str) -> LinkerConfig:
    """The published linker with some fields as recommended."""
    default = LinkerConfig.default("road")
    return replace(LinkerConfig.reference("road"), **{name: getattr(default, name) for name in names})


@pytest.fixture(scope="module")
def made_up() -> tuple[Scenes, Predictions]:
    scenes = generate_road_scenes(**ROAD_SHAPED)
    return scenes, simulate_detections(scenes)


def video_map(scenes: Scenes, predictions: Predictions, config: LinkerConfig) -> list[float]:
    judging = DetectionConfig.reference()
    matches = match_tubes(link(predictions, config), scenes, judging, (0.2,), kinds=KINDS)
    values = 100 * compute_average_precisions(matches, judging)[:, 0]
    of = np.array([kind for kind, _ in matches.classes])
    return [round(float(values[of == kind].mean()), 1) for kind in KINDS]


@pytest.mark.slow
@pytest.mark.parametrize("name", documented())
def test_a_row_of_the_table_is_what_comes_out(name: str, made_up: tuple[Scenes, Predictions]) -> None:
    whole = {"reference": mended(), "default": LinkerConfig.default("road"), "these seven": mended(*SEVEN)}
    config = whole.get(name) or mended(name)
    assert video_map(*made_up, config) == pytest.approx(documented()[name], abs=0.051)


@pytest.mark.slow
def test_products_of_marginals_give_what_the_page_says(made_up: tuple[Scenes, Predictions]) -> None:
    scenes, predictions = made_up
    found = video_map(scenes, product_of_marginals(predictions), LinkerConfig.default("road"))
    said = re.search(r"products (\d+\.\d) and (\d+\.\d)\.", PAGE.read_text("utf-8"))
    assert said is not None
    assert found[3:] == pytest.approx([float(said[1]), float(said[2])], abs=0.051)


@pytest.mark.slow
def test_what_the_page_says_of_motion(made_up: tuple[Scenes, Predictions]) -> None:
    said = re.search(
        r"other six give (\d+\.\d), (\d+\.\d), (\d+\.\d), (\d+\.\d) and (\d+\.\d)", PAGE.read_text("utf-8")
    )
    assert said is not None
    found = video_map(*made_up, mended(*(name for name in SEVEN if name != "motion")))
    assert found == pytest.approx([float(each) for each in said.groups()], abs=0.051)


def test_the_table_is_found() -> None:
    assert list(documented()) == ["reference", *SEVEN, "default", "these seven"]


def test_the_page_names_what_motion_is_mended_to() -> None:
    row = re.search(r"^\| `motion` \|[^|]*\|([^|]*)\|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert row is not None
    assert LinkerConfig.default("road").motion in row[1].lower()
