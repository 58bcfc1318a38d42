"""Tracks are read from every place that has some; columns are guessed, named or asked for, and nothing is made up."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from roadaware.errors import FindingsError, InputError, UsageError
from roadaware.formats.track_tables import TrackSource, open_tracks, read_track_file
from roadaware.scenes.store import save
from roadaware.scenes.tables import Scenes

SOURCE = TrackSource(30.0, (1920, 1080))
CORNERS = ["x1_px", "y1_px", "x2_px", "y2_px"]


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("frame,track_id,x,y,w,h", "3,9,10,20,30,40"),
        ("Frame,ID,bb_left,bb_top,bb_width,bb_height,conf", "3,9,10,20,30,40,0.5"),
        ("frame_number,tracker_id,xmin,ymin,xmax,ymax", "3,9,10,20,40,60"),
        ("id,x1,y1,x2,y2,frame_id,class", "9,10,20,40,60,3,Person"),
        ("time,pid,left,top,width,height", "0.1,9,10,20,30,40"),
    ],
)
def test_columns_of_trackers_are_known(tmp_path: Path, header: str, row: str) -> None:
    scenes = read_track_file(write(tmp_path / "t.csv", header, row), SOURCE)
    assert scenes.boxes.select("frame", *CORNERS).rows() == [(3, 10.0, 20.0, 40.0, 60.0)]
    assert scenes.tubes["name"].to_list() == ["9"]
    assert scenes.videos.select("width_px", "height_px", "fps").rows() == [(1920, 1080, 30.0)]
    assert "id is" in scenes.meta.notes["columns"]


def test_other_columns_are_named_or_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "bild,wer,x,y,w,h", "3,9,10,20,30,40")
    with pytest.raises(InputError, match=r"(?s)no column is known for frame or t; id.*--columns"):
        read_track_file(path, SOURCE)
    named = TrackSource(30.0, (1920, 1080), {"frame": "Bild", "id": "wer"})
    assert len(read_track_file(path, named).boxes) == 1
    with pytest.raises(InputError, match="has no column nobody"):
        read_track_file(path, TrackSource(columns={"id": "nobody"}))
    with pytest.raises(UsageError, match="columns are named for"):
        TrackSource(columns={"size": "x"})


def test_a_table_that_is_several_videos_keeps_its_ids_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", "video,frame,id,x,y,w,h", "a,0,1,0,0,9,9", "b,0,1,0,0,9,9", "a,1,1,0,0,9,9"
    )
    scenes = read_track_file(path, SOURCE)
    assert scenes.tubes.select("video", "name").rows() == [("a", "1"), ("b", "1")]
    assert scenes.boxes["tube"].to_list() == [0, 1, 0]


def test_rows_that_cannot_be_taken_are_named(tmp_path: Path) -> None:
    rows = [
        "0,1,0,0,9,9",
        "x,1,0,0,9,9",
        "1,,0,0,9,9",
        "2,1,nan,0,9,9",
        "3,1,0,0,-9,9",
        "0,1,5,5,9,9",
        "1.5,1,0,0,9,9",
    ]
    path = write(tmp_path / "t.csv", "frame,id,x,y,w,h", *rows)
    scenes = read_track_file(path, SOURCE)
    assert len(scenes.boxes) == 1
    assert scenes.rejected["line"].to_list() == [3, 4, 5, 6, 7, 8]
    reasons = " ".join(scenes.rejected["reason"].to_list())
    for told in ("and is 'x'", "no id", "no finite number", "upside down", "a second box", "and is '1.5'"):
        assert told in reasons
    with pytest.raises(FindingsError, match="line 3"):
        read_track_file(path, SOURCE, strict=True)


def test_shares_of_the_image_become_pixels(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "frame,id,x,y,w,h", "0,1,0.5,0.5,0.1,0.2")
    with pytest.raises(UsageError, match="in parts of the image"):
        read_track_file(path, TrackSource(30.0))
    boxes = read_track_file(path, TrackSource(30.0, (1000, 500))).boxes
    assert boxes.select(CORNERS).row(0) == pytest.approx((500, 250, 600, 350))


def test_other_classes_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "frame,id,x,y,w,h,class", "0,1,0,0,9,9,car", "0,2,0,0,9,9,Pedestrian")
    assert read_track_file(path, SOURCE).tubes["name"].to_list() == ["2"]
    every = write(tmp_path / "u.csv", "frame,id,x,y,w,h,class", "0,1,0,0,9,9,0", "0,2,0,0,9,9,1")
    assert len(read_track_file(every, SOURCE).tubes) == 2


def test_what_a_file_does_not_say_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "frame,id,x,y,w,h", "0,1,0,0,9,9")
    with pytest.raises(UsageError, match="--size"):
        read_track_file(path, TrackSource(30.0))
    with pytest.raises(UsageError, match="--fps"):
        read_track_file(path, TrackSource(None, (9, 9)))
    with pytest.raises(UsageError, match="--fps"):
        read_track_file(write(tmp_path / "s.csv", "t,id,x,y,w,h", "0,1,0,0,9,9"), TrackSource(None, (9, 9)))
    with pytest.raises(InputError, match=r"found nothing|empty"):
        read_track_file(write(tmp_path / "e.csv", ""), SOURCE)
    with pytest.raises(UsageError, match="no table of tracks"):
        read_track_file(write(tmp_path / "t.docx", "x"), SOURCE)
    for wrong in ({"fps": 0.0}, {"fps": float("nan")}, {"size_px": (0, 5)}):
        with pytest.raises(UsageError):
            TrackSource(**wrong)  # type: ignore[arg-type]


def test_mot_text_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "street.txt", "1,4,11,21,30,40,1,-1,-1,-1", "2,4,12,21,30,40,-1,-1,-1,-1")
    scenes = read_track_file(path, SOURCE)
    assert scenes.boxes["frame"].to_list() == [0, 1]
    assert scenes.boxes.select(CORNERS).row(0) == (10.0, 20.0, 40.0, 60.0)
    assert scenes.videos["video"].cast(pl.String).to_list() == ["street"]


def coco(tracks: list[object]) -> dict[str, object]:
    """A person in as many images as there are tracks."""
    return {
        "images": [
            {"id": n, "file_name": f"drive/{n:04d}.jpg", "width": 100, "height": 80}
            for n in range(1, len(tracks) + 1)
        ],
        "categories": [{"id": 1, "name": "pedestrian"}],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 1, "bbox": [n, 2, 3, 4], "track_id": track}
            for n, track in enumerate(tracks, 1)
        ],
    }


def test_coco_annotations_with_tracks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(coco([5, 5, "x", None])))
    scenes = read_track_file(path, TrackSource(10.0))
    assert scenes.boxes["tube"].to_list() == [0, 0, None, None]
    assert scenes.tubes["name"].cast(pl.String).to_list() == ["5"]
    assert "track_id that is no whole number" in str(scenes.meta.notes)
    path.write_text(json.dumps(coco([None, None])))
    with pytest.raises(InputError, match="no tracks"):
        read_track_file(path, TrackSource(10.0))
    document = coco([5])
    annotations = document["annotations"]
    assert isinstance(annotations, list)
    annotations.append({**annotations[0], "id": 9})
    path.write_text(json.dumps(document))
    twice = read_track_file(path, TrackSource(10.0))
    assert twice.boxes["tube"].to_list() == [0, None]


def test_saved_tables_and_watches_are_opened(tmp_path: Path) -> None:
    scenes = read_track_file(write(tmp_path / "t.csv", "frame,id,x,y,w,h", "0,1,0,0,9,9"), SOURCE)
    save(scenes, tmp_path / "saved")
    assert isinstance(open_tracks(tmp_path / "saved"), Scenes)
    save(scenes, tmp_path / "run" / "predictions")
    assert len(open_tracks(tmp_path / "run").boxes) == 1
