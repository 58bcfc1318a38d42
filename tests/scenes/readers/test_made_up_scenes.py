"""The reader of simulations joins what is finished and refuses what is damaged or strange."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from sets import SETS

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.store import open_scenes, save
from roadaware.simulator.truth import count_labels

SET = SETS["simulator"]
HEAD = "simulation.json"


@pytest.fixture
def folder(clean_roots: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(clean_roots["simulator"], tmp_path / "made"))


def change(folder: Path, **changes: object) -> None:
    head = json.loads((folder / HEAD).read_text()) | changes
    (folder / HEAD).write_text(json.dumps(head))


def test_paths_start_at_the_folder_of_the_simulation(folder: Path) -> None:
    scenes = SET.read(folder)
    names = ["road-0000", "road-0001"]
    assert scenes.videos["path"].to_list() == [f"scenes/{name}/video.mp4" for name in names]
    assert scenes.sweeps["path"].to_list()[-1] == "scenes/road-0001/lidar/000001.npz"
    assert scenes.videos["splits"].to_list() == [["default/train"], ["default/test"]]
    assert scenes.meta.notes["simulation"]["seed"] == 3
    assert scenes.meta.notes["unfinished"] == 0


def test_an_unfinished_simulation_gives_what_is_finished(folder: Path) -> None:
    change(folder, scenes=5)
    shutil.copytree(folder / "scenes" / "road-0000", folder / "scenes" / ".road-0002.unfinished-7")
    (folder / "scenes" / "road-0003").mkdir()
    scenes = SET.read(folder)
    assert len(scenes.videos) == 2
    assert scenes.meta.notes["unfinished"] == 3
    assert scenes.rejected.is_empty()


def test_nothing_finished_says_to_go_on(folder: Path) -> None:
    shutil.rmtree(folder / "scenes")
    (folder / "scenes").mkdir()
    with pytest.raises(DatasetNotFoundError, match="no scene is finished"):
        SET.read(folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"format": "other"}, "expected the format"), ({"version": 2}, "expected version 1")],
)
def test_other_formats_and_later_versions_are_refused(
    folder: Path, changes: dict[str, object], reason: str
) -> None:
    change(folder, **changes)
    with pytest.raises(InputError, match=reason):
        SET.read(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [("road-0002", "found those of road-0001"), ("a b\n", "is no name of a synthetic scene")],
)
def test_scenes_of_another_name_are_refused(folder: Path, name: str, reason: str) -> None:
    shutil.copytree(folder / "scenes" / "road-0001", folder / "scenes" / name)
    scenes = SET.read(folder)
    assert len(scenes.videos) == 2
    assert len(scenes.rejected) == 1
    assert re.search(reason, scenes.rejected["reason"][0])


def test_a_path_that_leads_out_is_refused(folder: Path) -> None:
    tables = folder / "scenes" / "road-0001" / "tables"
    held = open_scenes(tables)
    path = held.videos.with_columns(path=held.videos["path"].replace("video.mp4", "../../secret"))
    save(held.with_tables(videos=path), tables, overwrite=True)
    scenes = SET.read(folder)
    assert scenes.rejected["reason"].str.contains("leads out").to_list() == [True]
    assert scenes.videos["video"].to_list() == ["road-0000"]


def test_statistics_count_boxes_tubes_and_frames_by_class(folder: Path) -> None:
    counts = count_labels(SET.read(folder))
    held = {(kind, label): rest for kind, label, *rest in counts.rows()}
    assert held["agent", "Car"] == [24, 2, 24]
    assert held["av_action", "AV-Mov"] == [0, 2, 24]
    assert held["agent", "Bus"] == [0, 0, 0]
