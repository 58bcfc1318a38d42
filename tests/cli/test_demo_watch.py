"""The demo's watching: a detector that knows the truth is judged perfect, and what is lacking is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.demo import watching
from roadaware.demo.command import Demo
from roadaware.demo.scenes import LEARNT_SEEDS, select_seed
from roadaware.demo.watching import watch_scenes
from roadaware.models.detector import FrameDetections
from roadaware.online import setup
from roadaware.online.events import read_events
from roadaware.reports.page import Films, Note, Section, report
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Scenes


class Said(Demo):
    """Keeps what it says."""

    words = ""

    def say(self, words: str) -> None:
        self.words += f"{words}\n"


class Knowing:
    """Finds every agent where it is; each reset is the next video."""

    av_labels: tuple[str, ...] = ()
    delay = 0

    def __init__(self, scenes: Scenes) -> None:
        self.kinds = {"agent": scenes.meta.vocabularies["agent"]}
        labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == "agent").select("box", "label")
        self.boxes = scenes.boxes.join(labels, on="box").with_columns(pl.col("video").cast(pl.String))
        self.names = [str(name) for name in scenes.videos["video"].to_list()]
        self.film, self.frame = -1, -1

    def reset(self) -> None:
        self.film, self.frame = self.film + 1, -1

    def step(self, picture: object) -> list[FrameDetections]:
        self.frame += 1
        held = self.boxes.filter(video=self.names[self.film], frame=self.frame)
        scores = np.zeros((len(held), len(self.kinds["agent"])), np.float32)
        scores[np.arange(len(held)), held["label"].to_numpy()] = 0.9
        corners = held.select(CORNERS).to_numpy().astype(np.float32)
        certain = np.full(len(held), 0.9, np.float32)
        return [FrameDetections(self.frame, corners, certain, scores, np.zeros(0, np.float32))]

    def finish(self) -> list[FrameDetections]:
        return []


@pytest.fixture(scope="module")
def scenes(made_up: Path) -> Scenes:
    return open_dataset(SYNTHETIC, made_up / "road")


@pytest.mark.slow
def test_who_knows_the_truth_is_judged_perfect(
    made_up: Path, scenes: Scenes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    for module in (setup, watching):
        monkeypatch.setattr(module, "find_bundled_weights", lambda **_: tmp_path / "oracle.safetensors")
    monkeypatch.setattr(watching, "load_detector", lambda files: Knowing(scenes))
    said = Said(tmp_path, 20, 0)
    data, (section,) = watch_scenes(said, made_up / "road", scenes)
    names = [str(name) for name in scenes.videos["video"].to_list()]
    assert list(data["films"]) == names
    assert data["values"]["agent, boxes at 0.5"] == pytest.approx(100)
    assert data["values"]["agent, tubes at 0.2"] > 50
    tables = open_predictions(tmp_path / "watched" / "predictions")
    assert tables.videos["video"].to_list() == names
    assert len(tables.tubes)
    for name in names:
        folder = tmp_path / "watched" / name
        assert f"watch {made_up}/road/scenes/{name}/video.mp4 --name {name} --output {folder}" in said.words
        assert list(read_events(folder / "events.jsonl"))[-1]["event"] == "end"
    assert "evaluate road --truth" in said.words
    _check_section(section, tmp_path)


def _check_section(section: Section, place: Path) -> None:
    (films,) = (block for block in section.blocks if isinstance(block, Films))
    assert films.mp4 == (place / films.paths[0]).read_bytes()
    assert all((place / path).stat().st_size for path in films.paths)
    (doubt,) = (block for block in section.blocks if isinstance(block, Note) and "seeds" in block.text)
    assert "seeds 101, 102, 103; these have the seed 3" in doubt.text
    assert "nothing of real roads" in doubt.text
    assert "events.jsonl" in report([section])


def test_where_nothing_can_watch_the_demo_says_why_and_goes_on(
    made_up: Path, scenes: Scenes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "find_spec", lambda name: object())
    (tmp_path / "weights").mkdir()
    monkeypatch.setattr(setup, "WEIGHTS", tmp_path / "weights")
    said = Said(tmp_path, 20, 0)
    data, sections = watch_scenes(said, made_up / "road", scenes)
    assert sections == []
    assert "no detector came with this installation" in data["left_out"]
    assert f"left out: {data['left_out']}" in said.words
    (tmp_path / "weights" / "broken.safetensors").write_bytes(b"torn")
    data, sections = watch_scenes(said, made_up / "road", scenes)
    assert (sections, "not a whole safetensors file" in data["left_out"]) == ([], True)


def test_no_demo_makes_up_what_the_detector_learnt_from() -> None:
    seeds = [select_seed(seed) for seed in range(300)]
    assert len(set(seeds)) == 300
    assert not set(seeds) & set(LEARNT_SEEDS)
    assert seeds == sorted(seeds)
