"""Chaotic World: columns by name or from both ends, frames from 0, pixels, sounds with literals, splits."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from sets import SETS, edit, rows_add_up

from roadaware.datasets import read
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, list_label_names
from roadaware.datasets.chaotic_world import find_columns, parse_sound_boxes
from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Scenes

NATIVE = SETS["chaotic_world"]
HEAD = "video_uid,frame_id,x1,y1,x2,y2,action_id,person_id,a,b,frame_start,frame_end,time_current,c,d"
ROW = "ADCCAWWD,26,0.25,0.5,0.5,1,{action},3,_,_,14,38,1.0,_,_"


def one(folder: Path, *lines: str, name: str = "x.csv", **options: int) -> Scenes:
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    scenes = read("chaotic_world", folder / name, cache=False, **options)
    rows_add_up(scenes)
    return scenes


def test_numbers_of_actions_are_places_among_the_official_fifty(tmp_path: Path) -> None:
    scenes = one(tmp_path, HEAD, ROW.format(action=0), ROW.format(action=49), ROW.format(action=50))
    assert scenes.meta.vocabularies["action"] == ACTIONS_OFFICIAL
    assert scenes.labels["label"].to_list() == [0, 49]
    assert scenes.rejected["reason"].to_list() == ["the action 50 is not in the label map"]
    assert scenes.boxes.select("frame", "x1_px", "y1_px", "x2_px", "y2_px").rows() == [(25, 80, 90, 160, 180)]
    assert scenes.frames.rows() == [("ADCCAWWD", 25, 1.0, True, 13, 37)]
    assert scenes.tubes.rows() == [(0, "ADCCAWWD", "3", 25, 26)]
    assert scenes.videos.rows() == [("ADCCAWWD", [], 320, 180, 25.0)]
    assert (scenes.meta.notes["first_frame"], scenes.meta.notes["label_ids"]["action"][0]) == (1, 0)


def test_a_frame_0_makes_frames_count_from_0(tmp_path: Path) -> None:
    zero = ROW.format(action=1).replace(",26,", ",0,")
    assert one(tmp_path, HEAD, zero, ROW.format(action=1)).frames["frame"].to_list() == [0, 26]
    early = one(tmp_path, HEAD, zero, ROW.format(action=1), first_frame=1)
    assert early.frames["frame"].to_list() == [25]
    assert early.rejected["reason"].to_list() == ["a frame before the first, which is number 1"]
    with pytest.raises(UsageError, match="first_frame"):
        one(tmp_path, HEAD, zero, first_frame=2)


def test_columns_are_found_by_name_wherever_they_stand(tmp_path: Path) -> None:
    plain = one(tmp_path, HEAD, ROW.format(action=7))
    order = [7, 12, 0, 3, 2, 5, 4, 6, 1, 11, 10]
    shuffled = [",".join(line.split(",")[n] for n in order) for line in (HEAD, ROW.format(action=7))]
    found = one(tmp_path, *shuffled)
    for name, table in plain.tables().items():
        assert table.equals(found.tables()[name]), name


COLUMNS = {
    "unknown names": ("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o", {"video": 0, "person": 7, "start": 10, "time": 12}),
    "few columns": ("uid,frame,x1,y1,x2,y2,act,track", {"action": 6, "person": 7}),
    "zero-based corners": ("uid,fid,x0,y0,x1,y1,label,pid", {"x1": 2, "x2": 4}),
    "min and max": ("uid,fid,xmin,xmax,ymin,ymax,label,pid", {"x1": 2, "x2": 3, "y1": 4}),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_places_of_columns(case: str) -> None:
    header, expected = COLUMNS[case]
    found = find_columns(header.split(","), "here").at
    assert {what: found[what] for what in expected} == expected
    assert "start" in found or len(header.split(",")) < 13


@pytest.mark.parametrize("lost", ["video_uid", "frame_id", "x2", "action_id", "person_id"])
def test_case_61_a_missing_column_is_named(lost: str) -> None:
    names = [name for name in HEAD.split(",") if name != lost]
    with pytest.raises(InputError, match=f"no '{lost}'|no 'x1'"):
        find_columns(names, "here")


def test_a_file_without_header_says_who_reads_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"(?s)expected a header.*reader `ava`"):
        one(tmp_path, "ADCCAWWD,0902,0.1,0.2,0.3,0.4,5,1", "ADCCAWWD,0902,0.1,0.2,0.3,0.4,5,2")


def test_a_file_with_a_header_alone_is_empty_and_told(tmp_path: Path) -> None:
    scenes = one(tmp_path, HEAD)
    assert scenes.boxes.is_empty()
    assert [w["what"] for w in scenes.meta.notes["warnings"]] == ["files of actions without a row"]


def test_sounds_have_all_their_boxes_and_the_video_of_their_file(tmp_path: Path) -> None:
    scenes = one(
        tmp_path,
        "start_fid,start_time,bbox,ssl,more",
        '76,3.0,"[[0.25, 0, 0.5, 1], [0, 0, 1, 0.5]]",Crying,1',
        '101,?,"[0.5, 0.5, 1, 1]",someone sneezing,2',
        name="ZZZZAAAA.csv",
    )
    words = list_label_names("sound")
    assert scenes.sounds.rows() == [
        (0, "ZZZZAAAA", "ZZZZAAAA_000076", 75, 3.0, words.index("crying")),
        (1, "ZZZZAAAA", "ZZZZAAAA_000101", 100, None, len(words)),
    ]
    assert scenes.meta.vocabularies["sound"] == (*words, "someone sneezing")
    assert scenes.boxes.select("frame", "sound", "x1_px", "y1_px", "x2_px", "y2_px").rows() == [
        (75, 0, 80, 0, 160, 180),
        (75, 0, 0, 0, 320, 90),
        (100, 1, 160, 90, 320, 180),
    ]
    assert len(scenes.meta.notes["warnings"]) == 2
    assert scenes.frames.is_empty()


SOUND_ROWS = {
    "a call": ("76,3.0,\"__import__('os').system('true')\",crying", "no list of numbers"),
    "a power": ('76,3.0,"9**9**9",crying', "no list of numbers"),
    "deep": ('76,3.0,"' + "[" * 900 + "]" * 900 + '",crying', "no list of numbers"),
    "deep besides": ('76,3.0,"' + "[[]," * 900 + "[]" + "]" * 900 + '",crying', "no list of numbers"),
    "long": ('76,3.0,"[' + "0," * 12_000 + ']",crying', "at most 20,000"),
    "three numbers": ('76,3.0,"[[0.1, 0.2, 0.3]]",crying', "a box of 3 numbers"),
    "no box": ('76,3.0,"[]",crying', "no box"),
    "upside down": ('76,3.0,"[0.5, 0.5, 0.1, 0.9]",crying', "upside down"),
    "pixels": ('76,3.0,"[50, 50, 100, 90]",crying', "pixels"),
    "too large": ('76,3.0,"[1e400, 0, 1, 1]",crying', "far outside"),
    "no class": ('76,3.0,"[0, 0, 1, 1]",', "class of sound"),
    "no frame": ('x,3.0,"[0, 0, 1, 1]",crying', "start_fid"),
    "no quotes": ("76,3.0,[0, 0, 1, 1],crying", "7 cells where the header names 4"),
}


@pytest.mark.parametrize("case", SOUND_ROWS)
def test_rows_of_sounds_that_are_none_are_refused(tmp_path: Path, case: str) -> None:
    row, reason = SOUND_ROWS[case]
    good = '26,1.0,"[0, 0, 1, 1]",crying'
    scenes = one(tmp_path, "start_fid,start_time,bbox,ssl", good, row)
    assert scenes.rejected.select("table", "line").rows() == [("sounds", 3)]
    assert reason in scenes.rejected["reason"][0]
    with pytest.raises(InputError, match="no row can be read"):
        one(tmp_path, "start_fid,start_time,bbox,ssl", row)


def test_a_column_of_sounds_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="start_time, bbox"):
        one(tmp_path, "start_fid,ssl", "3,crying")


def test_literals_of_any_depth() -> None:
    assert parse_sound_boxes("[[[0, 0, 1, 1]], (0.5, 0, 1, 1)]") == ((0, 0, 1, 1), (0.5, 0, 1, 1))
    for text in ("0.5", "[[0, 0, 1, 1], 3]", "[", "", "[0 0 1 1]", "1e", "[1_0, 0, 1, 1]", "[True, 0, 1, 1]"):
        with pytest.raises(ValueError, match=r"no list|numbers"):
            parse_sound_boxes(text)


def test_splits_exclusions_and_folders(tmp_path: Path) -> None:
    root = NATIVE.make(tmp_path / "set")
    scenes = NATIVE.read(root)
    assert dict(scenes.videos.select("video", "splits").rows()) == {
        "ADCCAWWD": [],
        "video_0002": [],
        "XKCHAOSA": ["sound/train"],
        "YKCHAOSB": ["sound/test"],
    }
    assert scenes.frames.filter(~pl.col("annotated")).select("video", "frame").rows() == [("ADCCAWWD", 50)]
    inner = NATIVE.read(root / "AR_ava_format")
    assert inner.sounds.is_empty()
    assert inner.frames.equals(scenes.frames)


def test_picked_pictures_come_before_those_of_single_videos(tmp_path: Path) -> None:
    root = NATIVE.make(tmp_path / "set")
    every = NATIVE.read(root)
    text = (root / NATIVE.main).read_text().splitlines(keepends=True)
    (root / "AR_ava_format" / "chaos_test_1fps.csv").write_text("".join(text[:4]))
    (root / "AR_ava_format" / "chaos_test_1fps_without.csv").write_text("".join(text[:3]))
    picked = NATIVE.read(root)
    assert len(picked.labels) == 3
    assert picked.split_videos("action/test") == ["video_0002"]
    assert picked.rejected["file"].to_list() == ["AR_ava_format/chaos_test_1fps_without.csv"]
    (root / "AR_ava_format" / "chaos_test_1fps_without.csv").unlink()
    whole = NATIVE.read(root, pictures="all")
    assert whole.labels.equals(every.labels)
    assert whole.split_videos("action/test") == ["video_0002"]
    with pytest.raises(UsageError, match="pictures"):
        NATIVE.read(root, pictures="some")


def test_damaged_side_files_are_counted(tmp_path: Path) -> None:
    root = NATIVE.make(tmp_path / "set")
    clean = NATIVE.read(root)
    sides = (
        "AR_ava_format/list_action.pbtxt",
        "AR_ava_format/chaos_test_exclude.csv",
        "SSL_ssl_format/test_ssl.txt",
    )
    for name in sides:
        edit(root / name, lambda data: b"\xff" + data)
    scenes = NATIVE.read(root)
    assert sorted(scenes.rejected["file"]) == sorted(sides)
    assert scenes.boxes.equals(clean.boxes)
    rows_add_up(scenes)


def test_a_label_map_of_other_names_is_told(tmp_path: Path) -> None:
    root = NATIVE.make(tmp_path / "set")
    edit(root / "AR_ava_format" / "list_action.pbtxt", lambda data: data.replace(b"arguing", b"dozing"))
    (warning,) = NATIVE.read(root).meta.notes["warnings"]
    assert "label map" in warning["what"]
    assert warning["example"] == "dozing"


def test_what_is_refused_is_named_by_the_numbers_of_the_file(tmp_path: Path) -> None:
    row = "ADCCAWWD,26,0.1,0.2,0.5,0.9,{},3,1,50,1.0"
    head = "video_uid,frame_id,x1,y1,x2,y2,action_id,person_id,frame_start,frame_end,time_current"
    (tmp_path / "x.csv").write_text("\n".join([head, row.format(3), row.format(77)]) + "\n")
    found = read("chaotic_world", tmp_path / "x.csv", cache=False)
    assert found.rejected["item"].to_list() == ["ADCCAWWD, 26"]


def test_a_split_that_names_a_missing_video_is_told(tmp_path: Path) -> None:
    NATIVE.make(tmp_path)
    (tmp_path / "SSL_ssl_format" / "test_ssl.txt").write_text("YKCHAOSB\nZGONE\n")
    warned = read("chaotic_world", tmp_path, cache=False).meta.notes["warnings"]
    assert [(each["what"], each["example"]) for each in warned] == [
        ("videos that a list names and no file has", "ZGONE")
    ]
