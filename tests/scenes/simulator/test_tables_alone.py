"""Tables without images: the same life, told from blocks, with nothing but tables written."""

import json
from dataclasses import replace

import pytest

from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    config = build_scene_config("crossing", "city-a")
    small = replace(config.camera, width_px=96, height_px=64, fps=10.0)
    config = replace(config, seconds=2.0, camera=small, lidar=None, sound=False)
    folders = {}
    for name, kept in (("tables", Kept.tables_alone()), ("drawn", Kept(video=False, masks=False))):
        folders[name] = tmp_path_factory.mktemp(name) / "set"
        generate_scenes(Order(config, 3, 1, kept), folders[name])
    return folders


@pytest.mark.slow
def test_a_folder_of_tables_alone_holds_no_picture(made):
    files = {file.suffix for file in made["tables"].rglob("*") if file.is_file()}
    assert files == {".json", ".parquet"}


def test_people_and_what_they_do_are_the_same_as_where_pictures_are_drawn(made):
    told, drawn = (read("simulator", folder, cache=False) for folder in made.values())
    columns = ["name", "crossing", "crossing_point", "intention_prob"]
    near = [frame.tubes.filter(frame.tubes["track_label"] == "pedestrian") for frame in (told, drawn)]
    both = near[0].join(near[1], on="name", how="inner")
    assert len(both) >= 0.7 * len(near[1]) > 0
    for name in columns[1:]:
        assert both[name].equals(both[f"{name}_right"])
    assert told.boxes["joints"].null_count() == len(told.boxes)


def test_folders_written_before_there_was_the_choice_are_continued(made):
    assert "pictures" not in json.loads((made["drawn"] / "simulation.json").read_text())["kept"]
    assert json.loads((made["tables"] / "simulation.json").read_text())["kept"]["pictures"] is False


def test_films_without_pictures_are_refused():
    with pytest.raises(UsageError, match="without images"):
        Kept(pictures=False)
