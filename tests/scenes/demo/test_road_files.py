"""The synthetic road on disk: what the readers of ROAD and of its detections find there is what was made."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from roadaware.datasets import read
from roadaware.demo_data import road as terms
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import (
    ANNOTATIONS,
    DETECTIONS,
    build_road_json,
    generate_road_scenes,
    write_road_demo,
)
from roadaware.errors import UsageError
from roadaware.formats.road_detections import read_detections
from roadaware.scenes.tables import Scenes


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "road"
    write_road_demo(folder, videos=4, frames=60, seed=5)
    return folder


@pytest.fixture(scope="module")
def found(root: Path) -> Scenes:
    return read("road", root, cache=False)


def test_the_reader_finds_the_scenes_that_were_made(found: Scenes) -> None:
    made = generate_road_scenes(videos=4, frames=60, seed=5)
    assert found.rejected.is_empty()
    assert found.meta.vocabularies == made.meta.vocabularies
    assert found.meta.composites == made.meta.composites
    assert found.meta.notes["children"] == made.meta.notes["children"]
    owned = [
        scenes.boxes.join(scenes.tubes.select("tube", owner="name"), on="tube", maintain_order="left").drop(
            "tube"
        )
        for scenes in (found, made)
    ]
    assert owned[0].equals(owned[1].select(owned[0].columns))
    assert found.frame_labels.equals(made.frame_labels)
    key = ["box", "kind", "label"]
    assert found.labels.sort(key).equals(made.labels.sort(key))
    both = ("video", "width_px", "height_px", "n_frames", "splits", "weather")
    assert found.videos.select(both).equals(made.videos.select(both))
    assert found.frames.select("frame", "annotated").equals(made.frames.select("frame", "annotated"))


def test_the_reader_finds_the_tubes_that_were_made(found: Scenes) -> None:
    """By name; a track whose boxes no label names has another one in the reader's order."""
    made = generate_road_scenes(videos=4, frames=60, seed=5)
    tables = []
    for scenes in (found, made):
        owners = scenes.tubes.select(parent="tube", owner="name")
        rows = scenes.tubes.join(owners, on="parent", how="left").join(
            scenes.tube_labels.drop("kind"), on="tube", how="left"
        )
        columns = ("video", "name", "owner", "kind", "label", "start_frame", "end_frame", "spans")
        tables.append(rows.select(columns).sort("video", "name"))
    assert tables[0].equals(tables[1])


def test_the_detections_are_read_back_as_they_were_found(root: Path, found: Scenes) -> None:
    predictions = simulate_detections(generate_road_scenes(videos=4, frames=60, seed=5), seed=5)
    back = read_detections(root / DETECTIONS, found)
    columns = ["box", "video", "frame", "x1_px", "y1_px", "x2_px", "y2_px", "score", "scores"]
    assert back.boxes.select(columns).equals(predictions.boxes.select(columns))
    assert back.frames["scores"].equals(predictions.frames["scores"])
    assert back.meta.notes["dense_scores"] == predictions.meta.notes["dense_scores"]


def test_the_facts_are_what_is_there(root: Path, found: Scenes) -> None:
    facts = json.loads((root / "facts.json").read_text())
    assert facts == {
        "videos": 4,
        "frames": 240,
        "boxes": len(found.boxes),
        "tracks": found.boxes["tube"].n_unique(),
        "detections": len(read_detections(root / DETECTIONS, found).boxes),
    }


def test_ids_count_unused_labels_and_frames_without_boxes_have_no_annos(root: Path) -> None:
    content = json.loads((root / ANNOTATIONS).read_text())
    for kind, unused in terms.NEVER_SEEN.items():
        native = terms.NATIVE_KINDS[kind]
        every, used = content[f"all_{native}_labels"], content[f"{native}_labels"]
        assert set(every) == {*used, *unused}
        assert [name for name in every if name in used] == used
        assert every[: len(used)] != used
    frames = [frame for video in content["db"].values() for frame in video["frames"].values()]
    assert any("annos" not in frame for frame in frames)
    assert {frame["annotated"] for frame in frames} == {0, 1}


def test_a_box_without_used_label_is_of_an_agent_that_is_not_used() -> None:
    scenes = generate_road_scenes(videos=1, frames=60, unused=1.0)
    assert scenes.labels.is_empty()
    content = build_road_json(scenes)
    annos = [
        anno
        for frame in content["db"]["drive-00-001"]["frames"].values()
        for anno in frame.get("annos", {}).values()
    ]
    assert {content["all_agent_labels"][anno["agent_ids"][0]] for anno in annos} == {"SmalVeh"}


def test_the_same_seed_writes_the_same_bytes_over_an_earlier_demo(tmp_path: Path) -> None:
    def written(seed: int) -> dict[str, bytes]:
        write_road_demo(tmp_path / "road", videos=2, frames=24, seed=seed)
        files = sorted(path for path in (tmp_path / "road").rglob("*") if path.is_file())
        return {str(path.relative_to(tmp_path)): path.read_bytes() for path in files}

    first, other, again = written(0), written(1), written(0)
    assert first == again
    assert first != other
    assert len(first) == 2 + 2 * 24


def test_detections_that_no_demo_wrote_are_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "road" / DETECTIONS / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(UsageError, match="no empty folder"):
        write_road_demo(tmp_path / "road", videos=1, frames=24)
    assert mine.read_text() == "mine"


def test_every_frame_has_a_file_of_detections(root: Path, found: Scenes) -> None:
    files = pl.Series([str(p.relative_to(root / DETECTIONS)) for p in (root / DETECTIONS).rglob("*.pkl")])
    named = found.frames.select(
        pl.format("{}/{}.pkl", "video", (pl.col("frame") + 1).cast(pl.String).str.zfill(5))
    )
    assert set(files) == set(named.to_series())
