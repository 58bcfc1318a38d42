"""A csv of boxes: columns guessed and named, units and frames told, and what is unclear refused with how to say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roadaware.cli.app import main
from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


def read_lines(folder: Path, *lines: str, facts: str = "", **options: Any) -> Scenes:
    """What the reader makes of the lines of a file `drive.csv`."""
    (folder / "drive.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if facts:
        (folder / "dataset.toml").write_text(facts)
    return read("csv", folder, cache=False, **options)


def corners(scenes: Scenes) -> list[tuple[float, ...]]:
    return scenes.boxes.select(pl.col(*CORNERS).cast(pl.Float64).round(6)).rows()


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("frame,id,x1,y1,x2,y2", "0,7,10,20,40,60"),
        ("frame_id,tracker_id,bb_left,bb_top,bb_width,bb_height,conf", "0,7,10,20,30,40,0.9"),
        ("FRAME;".rstrip(";") + ",Track_ID,x_center,y_center,w,h", "0,7,25,40,30,40"),
        ("frame_index,object_id,x1,y1,width,height", "0,7,10,20,30,40"),
        ("frame,track_id,xmin,ymin,xmax,ymax,width,height", "0,7,10,20,40,60,1920,1080"),
        ('"frame","id","x","y","w","h"', '"0","7.0","10","20","30","40"'),
    ],
)
def test_common_names_are_known(tmp_path: Path, header: str, row: str) -> None:
    scenes = read_lines(tmp_path, header, row)
    assert corners(scenes) == [(10, 20, 40, 60)]
    assert scenes.tubes["name"].to_list() == ["7"]
    assert scenes.videos["video"].to_list() == ["drive"]
    assert "frame is" in scenes.meta.notes["columns"]
    assert scenes.meta.notes["units"] == "pixels"


def test_columns_are_named_by_option_file_and_number(tmp_path: Path) -> None:
    lines = ("bild,wer,bx,by,bw,bh,was", "0,a,10,20,30,40,car")
    with pytest.raises(InputError, match=r"no column is known for frame or t; x1.*missing") as caught:
        read_lines(tmp_path, *lines)
    assert "--columns" in str(caught.value)
    named = "frame=bild,id=wer,left=bx,top=by,width=bw,height=bh,label=was"
    told = read_lines(tmp_path, *lines, columns=named)
    assert corners(told) == [(10, 20, 40, 60)]
    assert told.meta.vocabularies == {"agent": ("car",)}
    toml = "columns = {frame = 'bild', id = 'wer', left = 'bx', top = 'by', width = 'bw', height = 'bh', label = 'was'}"
    assert read_lines(tmp_path, *lines, facts=toml).boxes.equals(told.boxes)
    (tmp_path / "dataset.toml").unlink()
    with pytest.raises(InputError, match="names of columns are missing"):
        read_lines(tmp_path, "0,7,10,20,30,40")
    numbers = {"frame": "1", "id": "2", "left": "3", "top": "4", "width": "5", "height": "6"}
    assert corners(read_lines(tmp_path, "0,7,10,20,30,40", columns=numbers)) == [(10, 20, 40, 60)]
    with pytest.raises(InputError, match="has no column nobody"):
        read_lines(tmp_path, *lines, columns="id=nobody")
    with pytest.raises(UsageError, match="pairs such as frame=image"):
        read_lines(tmp_path, *lines, columns="id")
    with pytest.raises(UsageError, match="not for colour"):
        read_lines(tmp_path, *lines, columns="colour=was")


@pytest.mark.parametrize(
    ("lines", "message", "option"),
    [
        (("frame,id,track_id,x,y,w,h", "0,1,7,10,20,30,40"), "may both be the track", {"columns": "id=track_id"}),
        (("frame,image_id,id,x,y,w,h", "0,3,7,10,20,30,40"), "may both be the frame", {"columns": "frame=frame"}),
        (("frame,id,x,y,w,h", "1,7,10,20,30,40"), "from 0 or from 1", {"first_frame": 1}),
        (("frame,id,x1,y1,x2,y2", "0,7,0,0,1,1"), "unclear whether they are pixels", {"units": "pixels"}),
        (("t,id,x,y,w,h", "0,7,10,20,30,40"), "times and no frames", {"fps": 10}),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused_until_it_is_said(
    tmp_path: Path, lines: tuple[str, ...], message: str, option: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=message):
        read_lines(tmp_path, *lines)
    scenes = read_lines(tmp_path, *lines, **option)
    assert scenes.boxes["frame"].to_list() == [0]
    assert scenes.tubes["name"].to_list() == ["7"]


def test_x_and_y_that_can_only_be_the_middle_are_refused(tmp_path: Path) -> None:
    lines = ("frame,id,x,y,w,h", "0,1,0.9,0.5,0.2,0.4", "1,1,0.1,0.5,0.2,0.4")
    with pytest.raises(InputError, match="unclear what x and y are"):
        read_lines(tmp_path, *lines)
    middle = read_lines(tmp_path, *lines, columns="cx=x,cy=y", size="100x100")
    assert corners(middle) == [(80, 30, 100, 70), (0, 30, 20, 70)]
    assert middle.meta.notes["units"] == "shares"
    edge = read_lines(tmp_path, *lines, columns="left=x,top=y", size="100x100")
    assert corners(edge) == [(90, 50, 110, 90), (10, 50, 30, 90)]


def test_shares_without_a_size_stay_shares(tmp_path: Path) -> None:
    scenes = read_lines(tmp_path, "frame,id,x1,y1,x2,y2", "0,1,0.1,0.2,0.5,0.75")
    assert corners(scenes) == [(0.1, 0.2, 0.5, 0.75)]
    assert scenes.meta.notes["unit_boxes"]
    assert scenes.videos.select("width_px", "height_px").rows() == [(1, 1)]


def test_frames_without_a_row_are_not_looked_at_unless_said(tmp_path: Path) -> None:
    lines = ("video,frame,id,x,y,w,h", "a,0,1,10,20,30,40", "a,4,1,10,20,30,40", "a,2,,,,,")
    listed = read_lines(tmp_path, *lines)
    assert listed.frames["frame"].to_list() == [0, 2, 4]
    assert len(listed.boxes) == 2
    assert listed.meta.rows_read["boxes"] == 2
    assert read_lines(tmp_path, *lines, frames="all").frames["frame"].to_list() == [0, 1, 2, 3, 4]


def test_numbers_of_classes_get_their_names(tmp_path: Path) -> None:
    lines = ("frame,id,x,y,w,h,class", "0,1,10,20,30,40,1", "0,2,10,20,30,40,9", "0,,10,20,30,40,person")
    scenes = read_lines(tmp_path, *lines, classes="person,car")
    words = scenes.meta.vocabularies["agent"]
    assert [words[n] for n in scenes.labels["label"]] == ["car", "person"]
    assert scenes.rejected["reason"].to_list() == ["class '9' is none of the 2 classes"]
    assert scenes.boxes["tube"].to_list() == [0, None]


def test_other_separators_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected commas between cells, found 'frame;id"):
        read_lines(tmp_path, "frame;id;x;y;w;h", "0;1;10;20;30;40")


def test_the_commands_name_columns_and_say_what_was_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("frame,id,track_id,x,y,w,h,conf\n0,1,7,10,20,30,40,0.5\n")
    assert main(["read", str(tmp_path / "t.csv"), "--no-cache"]) == 3
    assert "--columns id=track_id" in capsys.readouterr().err
    named = ["--columns", "id=track_id", "frame=frame"]
    assert main(["read", str(tmp_path / "t.csv"), *named, "--no-cache"]) == 0
    told = capsys.readouterr().err
    assert "taken for csv of anybody" in told
    assert "id is 'track_id'" in told
    assert "boxes in pixels; not read: id, conf" in told
    out = tmp_path / "mot"
    assert main(["convert", str(tmp_path / "t.csv"), *named, "--to", "mot", "-o", str(out)]) == 0
    assert (out / "t/gt/gt.txt").read_text() == "1,7,11,21,30,40,1,-1,1\n"
    assert main(["convert", str(out), *named, "--to", "csv", "-o", str(tmp_path / "csv")]) == 2
    assert "mot has columns of its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("frame=f,frame=g", "columns name frame twice"),
        ("frame=f,left=l,top=t,width=w,height=h,x1=l", "columns name left, top, width, height, and x1"),
        ("frame=f,cx=l,cy=t,width=w,height=h,left=l", "columns name cx, cy, width, height, and left"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(tmp_path: Path, columns: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_lines(tmp_path, "f,g,l,t,w,h", "0,0,1,1,5,5", columns=columns)


def test_a_column_stands_for_one_thing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the column 'f' is named for frame and for id"):
        read_lines(tmp_path, "f,l,t,w,h", "0,1,1,5,5", columns="frame=f,id=f,left=l,top=t,width=w,height=h")
    with pytest.raises(InputError, match="2 columns are called 'x1'"):
        read_lines(tmp_path, "frame,id,x1,y1,x2,y2,x1", "0,1,1,1,5,5,2")
    # One that stands twice and is not read is in nobody's way.
    assert corners(read_lines(tmp_path, "frame,id,x1,y1,x2,y2,b,b", "0,1,1,1,5,5,2,3")) == [(1, 1, 5, 5)]


def test_a_row_of_empty_cells_is_refused_and_counted(tmp_path: Path) -> None:
    scenes = read_lines(tmp_path, "frame,id,x1,y1,x2,y2", "0,1,1,1,5,5", ",,,,,", "", "1,,,,,")
    assert len(scenes.boxes) == 1
    assert scenes.rejected.select("file", "line").rows() == [("drive.csv", 3)]
    assert scenes.frames["frame"].to_list() == [0, 1]
    assert scenes.meta.rows_read["boxes"] == 2


def test_a_broken_box_in_frame_0_says_that_frames_count_from_0(tmp_path: Path) -> None:
    scenes = read_lines(tmp_path, "frame,id,x1,y1,x2,y2", "0,1,nan,1,5,5", "1,1,1,1,5,5")
    assert scenes.boxes["frame"].to_list() == [1]
    assert len(scenes.rejected) == 1


def test_a_cached_file_is_read_anew_when_what_stands_beside_it_changes(tmp_path: Path) -> None:
    file, facts = tmp_path / "drive.csv", tmp_path / "dataset.toml"
    file.write_text("frame,id,x1,y1,x2,y2\n0,7,10,20,40,60\n")
    facts.write_text("fps = 10\n")
    assert read("csv", file).videos["fps"].to_list() == [10]
    facts.write_text("fps = 25.0\n")
    assert read("csv", file).videos["fps"].to_list() == [25]
    facts.unlink()
    assert read("csv", file).videos["fps"].to_list() == [None]
