"""One's own annotations, from a folder that nobody names to tables: what it is taken for, and what is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from roadaware.cli.app import main
from roadaware.datasets import READERS
from roadaware.scenes.store import open_scenes

LINES = "0 0.5 0.5 0.25 0.5 1\n1 0.25 0.25 0.125 0.25 2\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    labels = tmp_path / "mine" / "labels"
    labels.mkdir(parents=True)
    for frame in (1, 2, 4):
        (labels / f"drive_{frame:06d}.txt").write_text(LINES)
    return tmp_path / "mine"


def test_a_folder_is_known_and_what_is_missing_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["read", str(folder)]) == 0
    told = capsys.readouterr().err
    assert f"taken for {READERS['yolo'].title}" in told
    assert "frames a second are not known" in told
    assert "sizes of images are not known" in told
    assert "names of classes are not known" in told


def test_options_and_the_file_beside_say_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dataset.toml").write_text('fps = 25\nsize = [640, 480]\nclasses = ["person", "car"]\n')
    assert main(["read", str(folder), "-o", str(tmp_path / "a")]) == 0
    assert "not known" not in capsys.readouterr().err
    scenes = open_scenes(tmp_path / "a")
    assert scenes.videos.select("video", "width_px", "height_px", "fps", "n_frames").rows() == [
        ("drive", 640, 480, 25.0, 4)
    ]
    assert scenes.meta.vocabularies == {"agent": ("person", "car")}
    assert scenes.frames["frame"].to_list() == [0, 1, 3], (
        "frame 3 of the names is 2 here, and nobody looked at it"
    )
    assert scenes.boxes.select("x1_px", "y1_px", "x2_px", "y2_px").row(0) == (240.0, 120.0, 400.0, 360.0)
    (folder / "dataset.toml").unlink()
    options = ["--option", "fps=25", "size=640x480", "classes=person,car"]
    assert main(["read", str(folder), "-o", str(tmp_path / "b"), *options]) == 0
    other = open_scenes(tmp_path / "b")
    assert other.boxes.equals(scenes.boxes)
    assert other.videos.equals(scenes.videos)


def test_images_beside_say_their_size(folder: Path, tmp_path: Path) -> None:
    for label in (folder / "labels").iterdir():
        image = folder / "images" / f"{label.stem}.png"
        image.parent.mkdir(exist_ok=True)
        Image.new("RGB", (320, 240)).save(image)
    assert main(["read", str(folder), "-o", str(tmp_path / "a"), "-q"]) == 0
    scenes = open_scenes(tmp_path / "a")
    assert scenes.videos.select("width_px", "height_px").rows() == [(320, 240)]
    assert scenes.frames["path"][0] == "images/drive_000001.png"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fps = 0\n", "fps is more than 0"),
        ("size = [0, 4]\n", "size is such as"),
        ('classes = ["a", "a"]\n', "stands twice"),
        ("rate = 3\n", "no key 'rate'"),
        ("fps = \n", "expected TOML"),
        (f"fps = {'9' * 5000}\n", "expected TOML"),
        (f"fps = {'9' * 4000}\n", "fps is more than 0"),
        (f"fps = 0x{'f' * 5000}\n", "fps is more than 0"),
        (f"size = [0x{'f' * 5000}, 480]\n", "size is such as"),
        (f"first_frame = 0x{'f' * 5000}\n", "first_frame is 0 or 1"),
        ("fps = nan\n", "fps is more than 0"),
        ("first_frame = 2\n", "first_frame is 0 or 1"),
    ],
)
def test_a_wrong_file_beside_is_refused(
    folder: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dataset.toml").write_text(text)
    assert main(["read", str(folder)]) not in (0, 1, 70)
    assert told in capsys.readouterr().err


def test_a_class_that_no_list_has_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "classes.txt").write_text("person\n")
    assert main(["read", str(folder)]) == 0
    assert "no class '1': there are 1 classes, from 0" in capsys.readouterr().out


def test_a_name_without_a_path_and_a_path_without_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["read", "yolo"]) == 2
    assert "say where it lies too" in capsys.readouterr().err
    assert main(["read", str(tmp_path / "nowhere")]) not in (0, 70)
    (tmp_path / "empty").mkdir()
    assert main(["read", str(tmp_path / "empty")]) not in (0, 70)
    assert "COCO, YOLO, MOT, CVAT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("inside", "told"),
    [("drive_000001.txt", "the folder that holds 'labels/'"), ("drive.mp4", "roadaware predict --videos")],
)
def test_a_folder_of_something_else_says_what_it_is_for(
    inside: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / inside).write_text(LINES)
    assert main(["read", str(tmp_path / "train")]) == 3
    assert f"such as {inside}: " in (err := capsys.readouterr().err)
    assert told in err


def test_saved_tables_need_no_name(folder: Path, tmp_path: Path) -> None:
    assert main(["read", str(folder), "-o", str(tmp_path / "a"), "-q"]) == 0
    shutil.rmtree(folder)
    assert main(["read", str(tmp_path / "a"), "-q"]) == 0


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "<annotations><version>1.1</version><meta><task><name>v</name><size>2</size></task></meta>"
        '<track id="0" label="car"><polygon frame="0" outside="0" points="1,2;3,4;5,6"/></track></annotations>'
    )
    (tmp_path / "v.xml").write_text(text)
    assert main(["read", str(tmp_path)]) == 0
    assert "left out:\n  - shapes that are no box (polygon): 1" in capsys.readouterr().out
