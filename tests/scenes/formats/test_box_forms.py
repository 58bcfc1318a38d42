"""Laws of every form of boxes: tables come back as far as the form holds them, and files come back byte for byte."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from roadaware.cli.app import main
from roadaware.datasets import READERS, read, read_predictions
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.flat import HELD
from roadaware.formats.boxes.forms import FORMS, PREDICTED, REST, write_boxes
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Meta, Predictions, Scenes

GENERAL = [form for form, each in FORMS.items() if {"any class", "any video"} <= each.holds]
"""The forms in which classes and videos may have any name; the others have laws of their own below."""
BOXED = [form for form, each in FORMS.items() if each.extract is None]
"""The forms that hold boxes with a class and a track each."""
CLASSES = ("person", "car & <van>", "größe", "no")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


def random_scenes(seed: int, holds: frozenset[str]) -> Scenes:
    """Random tables of which a form that holds these things loses nothing."""
    rng = random.Random(seed)  # noqa: S311
    videos, frames, boxes, labels, tubes = [], [], [], [], []
    for v in range(rng.randint(1, 3)):
        name = f"drive_{v}{rng.choice(['', '-é', ' b'])}" if "any video" in holds else f"{v:04d}"
        length = rng.randint(1, 6)
        split = rng.choice(["default/train", "default/val"]) if "split" in holds else None
        videos.append(
            (name, 640, 480, 29.97 if "rate" in holds else None, length, [split] if split else None)
        )
        frames += [(name, frame, True) for frame in range(length)]
        tracks: dict[int, tuple[int, int]] = {}
        first = 0 if "zero" in holds else 1
        for mark in rng.sample(range(first, 50), 3) if "track" in holds else []:
            number = 50 * v + mark
            tracks[mark] = (number, rng.randrange(len(CLASSES)))
            called = (
                f"{rng.choice(['p ä_', 'x,y', 'id-'])}{mark}" if "name" in holds and v == 1 else str(mark)
            )
            tubes.append((number, name, called))
        owned: set[int] = set()
        for frame in range(length):
            wanted = [*tracks, *([None] * rng.randint(0, 2) if "untracked" in holds else [])]
            for mark in rng.sample(wanted, rng.randint(0, len(wanted))):
                x1, y1 = rng.choice([0.0, rng.uniform(0, 500), -3.5]), rng.uniform(0, 400)
                box = (len(boxes), name, frame, None if mark is None else tracks[mark][0], x1, y1,
                       x1 + rng.choice([0.0, rng.uniform(0.1, 200)]), y1 + rng.uniform(0, 90),
                       "ignore" in holds and rng.random() < 0.3,
                       rng.choice(["none", "part"]) if "occluded" in holds else
                       rng.choice([None, "none", "part", "full"]) if "hidden" in holds else None)  # fmt: skip
                if mark is not None:
                    owned.add(tracks[mark][0])
                if "unclassed" not in holds or rng.random() < 0.8:
                    place = rng.randrange(len(CLASSES)) if mark is None else tracks[mark][1]
                    labels.append((len(boxes), "agent", place))
                boxes.append(box)
        tubes = [tube for tube in tubes if tube[1] != name or tube[0] in owned]
    corners = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float32)
    return Scenes(
        videos=pl.DataFrame(videos, orient="row", schema={
            "video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32, "n_frames": pl.Int64,
            "splits": pl.List(pl.String)}),
        frames=pl.DataFrame(frames, orient="row", schema={"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean}),
        boxes=pl.DataFrame(boxes, orient="row", schema={
            "box": pl.Int64, "video": pl.String, "frame": pl.Int64, "tube": pl.Int64, **corners, "ignore": pl.Boolean,
            "occlusion": pl.String}),
        labels=pl.DataFrame(labels, orient="row", schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64}),
        tubes=pl.DataFrame(tubes, orient="row", schema={"tube": pl.Int64, "video": pl.String, "name": pl.String}),
        meta=Meta("random", vocabularies={"agent": CLASSES}),
    )  # fmt: skip


def summarize(scenes: Scenes) -> dict[str, list[Any]]:
    """What annotation tools hold, as plain sorted rows, with names in place of numbers."""
    words = scenes.meta.vocabularies["agent"]
    names = dict(scenes.tubes.select("tube", "name").iter_rows())
    label = {box: words[place] for box, _, place in scenes.labels.select("box", "kind", "label").iter_rows()}
    rows = []
    for row in scenes.boxes.iter_rows(named=True):
        corners = [
            float(pl.Series([row[c]], dtype=pl.Float32)[0]) for c in ("x1_px", "y1_px", "x2_px", "y2_px")
        ]
        rows.append((row["video"], row["frame"], names.get(row.get("tube")) or "", label.get(row["box"]) or "",
                     bool(row.get("ignore")), (row.get("occlusion") or "none"), *corners))  # fmt: skip
    videos = [(row["video"], row["width_px"], row["height_px"], round(row["fps"] or 0, 4), row["n_frames"],
               (row.get("splits") or [None])[0]) for row in scenes.videos.iter_rows(named=True)]  # fmt: skip
    seen = scenes.frames.filter(pl.col("annotated"))
    return {
        "boxes": sorted(rows),
        "videos": sorted(videos, key=str),
        "frames": sorted(seen.select("video", "frame").rows()),
    }


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_by_a_reader_and_holds_known_things(form: str) -> None:
    assert FORMS[form].reader in READERS
    assert FORMS[form].holds <= set(HELD)


@pytest.mark.slow
@pytest.mark.spread(3)
@pytest.mark.parametrize("form", GENERAL)
@pytest.mark.parametrize("seed", range(8))
def test_tables_come_back_and_so_do_files(form: str, seed: int, tmp_path: Path) -> None:
    scenes = random_scenes(seed, FORMS[form].holds)
    written = write_boxes(scenes, form, tmp_path / "first")
    assert not written.lost
    back = read(FORMS[form].reader, tmp_path / "first", cache=False)
    assert back.rejected.is_empty()
    found, due = summarize(back), summarize(scenes)
    assert found["videos"] == due["videos"]
    assert found["frames"] == due["frames"]
    assert [row[:6] for row in found["boxes"]] == [row[:6] for row in due["boxes"]]
    # YOLO has shares of ten decimals, of which a corner in single precision may lose its last bit.
    assert [row[6:] for row in found["boxes"]] == [pytest.approx(row[6:], abs=1e-4) for row in due["boxes"]]
    write_boxes(back, form, tmp_path / "second")
    assert read_files(tmp_path / "second") == read_files(tmp_path / "first")


@pytest.mark.parametrize("form", BOXED)
def test_what_is_lost_is_listed_and_kept(form: str, tmp_path: Path) -> None:
    full = random_scenes(5, frozenset(HELD))
    ego = pl.Series("ego_speed_kmh", [3.5] * len(full.frames), dtype=pl.Float32)
    scenes = full.with_tables(frames=full.frames.with_columns(ego))
    with pytest.raises(UsageError, match="cannot hold all of this") as caught:
        write_boxes(scenes, form, tmp_path / "out")
    assert f"{len(scenes.frames):,} values of `frames.ego_speed_kmh`" in str(caught.value)
    assert not (tmp_path / "out").exists()
    written = write_boxes(scenes, form, tmp_path / "out", lossy=True)
    assert written.lost["values of `frames.ego_speed_kmh`"] == len(scenes.frames)
    assert open_scenes(tmp_path / "out" / REST) == scenes
    back = read(FORMS[form].reader, tmp_path / "out", cache=False)
    left = sum(n for what, n in written.lost.items() if what.startswith("boxes"))
    # Reasons may meet in one box, which is left out once.
    assert len(scenes.boxes) - left <= len(back.boxes) == written.rows["boxes"] <= len(scenes.boxes)
    assert back.rejected.is_empty()


def test_a_form_says_what_it_needs(tmp_path: Path) -> None:
    scenes = random_scenes(1, FORMS["yolo"].holds)
    bare = scenes.with_tables(videos=scenes.videos.drop("width_px", "height_px"))
    with pytest.raises(InputError, match="the size of video drive_0"):
        write_boxes(bare, "yolo", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("form", GENERAL)
def test_the_command_converts_there_and_back(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(random_scenes(3, FORMS[form].holds), tmp_path / "tables")
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["convert", str(tmp_path / "tables"), "--to", form, "-o", str(first), "-q"]) == 0
    assert "wrote" in capsys.readouterr().out
    assert (
        main(["convert", str(first), "--from", FORMS[form].reader, "--to", form, "-o", str(second), "-q"])
        == 0
    )
    assert read_files(second) == read_files(first)
    assert main(["convert", str(first), "--to", form, "-o", str(tmp_path / "third"), "-q"]) == 0, (
        "known by its content"
    )
    again = ["convert", str(first), "--to", form, "-o", str(second), "-q"]
    assert main(again) == 2, "it is there already"
    assert "--overwrite" in capsys.readouterr().err
    (second / "mine.txt").write_text("mine")
    assert main([*again, "--overwrite"]) == 2, "a file that convert did not write"
    assert "1 files more than convert wrote" in capsys.readouterr().err
    (second / "mine.txt").unlink()
    save(random_scenes(4, FORMS[form].holds), tmp_path / "others")
    other = ["convert", str(tmp_path / "others"), "--to", form, "-q", "-o"]
    assert main([*other, str(second), "--overwrite"]) == 0
    assert main([*other, str(tmp_path / "fresh")]) == 0
    assert read_files(second) == read_files(tmp_path / "fresh") != read_files(first)
    assert not list(tmp_path.glob(".roadaware*")), "nothing is left beside"


def test_the_command_lists_what_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(random_scenes(3, frozenset(HELD)), tmp_path / "tables")
    command = ["convert", str(tmp_path / "tables"), "--to", "voc", "-o", str(tmp_path / "out"), "-q"]
    assert main(command) == 2
    assert "tracks of boxes" in capsys.readouterr().err
    assert main([*command, "--lossy"]) == 0
    assert "tracks of boxes" in capsys.readouterr().out


def test_what_convert_did_not_write_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(random_scenes(3, FORMS["coco"].holds), tmp_path / "tables")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    command = [
        "convert",
        str(tmp_path / "tables"),
        "--to",
        "coco",
        "-o",
        str(tmp_path / "out"),
        "--overwrite",
    ]
    assert main([*command, "-q"]) == 2
    assert "thesis.txt" in capsys.readouterr().err
    assert read_files(tmp_path / "out") == {"thesis.txt": b"mine"}


def test_a_write_that_fails_leaves_what_stood_there(tmp_path: Path) -> None:
    scenes = random_scenes(3, FORMS["coco"].holds)
    write_boxes(scenes, "coco", tmp_path / "out")
    before = read_files(tmp_path / "out")

    def fail(folder: Path) -> int:
        raise InputError("no such video")

    with pytest.raises(InputError, match="no such video"):
        write_boxes(random_scenes(4, FORMS["coco"].holds), "coco", tmp_path / "out", overwrite=True, add=fail)
    assert read_files(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("form", [form for form in GENERAL if form not in ("coco", "csv", "via", "via_csv")])
def test_two_videos_that_would_be_one_file_are_refused(form: str, tmp_path: Path) -> None:
    names = ["a b", "A B"] if form in ("yolo", "fiftyone") else ["a/b", "a_b"]
    box = {"x1_px": [1.0], "y1_px": [1.0], "x2_px": [9.0], "y2_px": [9.0]}
    scenes = Scenes(
        videos=pl.DataFrame({"video": names, "width_px": 640, "height_px": 480, "n_frames": 1}),
        frames=pl.DataFrame({"video": names, "frame": 0}),
        boxes=pl.DataFrame({"box": [0], "video": names[:1], "frame": 0, **box}),
        labels=pl.DataFrame({"box": [0], "kind": "agent", "label": 0}),
        meta=Meta("two", vocabularies={"agent": CLASSES}),
    )
    with pytest.raises(InputError, match="would be written twice"):
        write_boxes(scenes, form, tmp_path / "out", lossy=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flagged", [True, False])
@pytest.mark.parametrize("form", [form for form in BOXED if FORMS[form].whole])
def test_frames_that_nobody_looked_at_are_counted(form: str, flagged: bool, tmp_path: Path) -> None:
    """Whether tables list them as such or not at all."""
    frames = pl.DataFrame({"video": "0000", "frame": range(9), "annotated": [k in (2, 3) for k in range(9)]})
    box = {
        "box": [0],
        "video": "0000",
        "frame": 2,
        "tube": 0,
        "x1_px": 1.0,
        "y1_px": 1.0,
        "x2_px": 9.0,
        "y2_px": 9.0,
    }
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["0000"], "width_px": 640, "height_px": 480, "n_frames": 9}),
        frames=frames if flagged else frames.filter("annotated").drop("annotated"),
        boxes=pl.DataFrame(box),
        labels=pl.DataFrame({"box": [0], "kind": "agent", "label": 0}),
        tubes=pl.DataFrame({"tube": [0], "video": "0000", "name": "1"}),
        meta=Meta("part", vocabularies={"agent": CLASSES}),
    )
    with pytest.raises(UsageError, match="7 frames that nobody looked at"):
        write_boxes(scenes, form, tmp_path / "out")


@pytest.mark.parametrize("name", ["", "two\nlines", "bell\a"])
@pytest.mark.parametrize("form", BOXED)
def test_a_class_whose_name_text_does_not_hold_is_refused(form: str, name: str, tmp_path: Path) -> None:
    scenes = random_scenes(1, FORMS[form].holds)
    renamed = replace(scenes, meta=replace(scenes.meta, vocabularies={"agent": (name, *CLASSES[1:])}))
    with pytest.raises(InputError, match="the name of class"):
        write_boxes(renamed, form, tmp_path / "out", lossy=True)


@pytest.mark.parametrize("form", GENERAL)
def test_names_that_are_no_utf8_are_read_and_escaped(form: str, tmp_path: Path) -> None:
    text, name = {
        "yolo": ("0 .5 .5 .2 .2\n", b"labels/d\xff_000001.txt"),
        "mot": ("1,1,1,1,10,10,1,1,1\n", b"s\xff/gt/gt.txt"),
        "cvat": (
            '<annotations><version>1.1</version><meta><task><size>3</size></task></meta><track id="0" label="car">'
            '<box frame="0" xtl="1" ytl="1" xbr="9" ybr="9" outside="0"/></track></annotations>',
            b"v\xff.xml",
        ),
        "cvat_images": (
            '<annotations><version>1.1</version><image id="0" name="a.jpg" width="50" height="50">'
            '<box label="car" xtl="1" ytl="1" xbr="9" ybr="9"/></image></annotations>',
            b"v\xff.xml",
        ),
        "voc": (
            "<annotation><object><name>car</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
            "</bndbox></object></annotation>",
            b"Annotations/d\xff_000001.xml",
        ),
        "bdd100k": (
            '[{"name": "a\\udcff.jpg", "labels": [{"category": "car", "box2d": {"x1": 1, "y1": 1, "x2": 9, "y2": 9}}]}]',
            b"d\xff.json",
        ),
        "openlabel": (
            '{"openlabel": {"objects": {"0": {"name": "a", "type": "car"}}, "frames": {"0": {"objects": {"0": '
            '{"object_data": {"bbox": [{"name": "shape", "val": [5, 5, 8, 8]}]}}}}}}}',
            b"d\xff.json",
        ),
        "via": (
            '{"a": {"filename": "a\\udcff_1.jpg", "regions": [{"shape_attributes": {"name": "rect", "x": 1, "y": 1, '
            '"width": 5, "height": 5}, "region_attributes": {"class": "car"}}]}}',
            b"d\xff.json",
        ),
        "fiftyone": (
            '{"samples": [{"filepath": "data/a\\udcff_1.jpg", "metadata": {"width": 50, "height": 50}, "ground_truth": '
            '{"detections": [{"bounding_box": [0.1, 0.1, 0.5, 0.5], "label": "car"}]}}]}',
            b"samples.json",
        ),
        "via_csv": (
            "filename,region_shape_attributes,region_attributes\n"
            '"a\u202e_1.jpg","{""name"":""rect"",""x"":1,""y"":1,""width"":5,""height"":5}","{""class"":""car""}"\n',
            b"d\xff.csv",
        ),
        "csv": ("frame,class,x1,y1,x2,y2\n0,car,1,1,9,9\n", b"d\xff.csv"),
        "coco": (
            '{"images": [{"id": 1, "file_name": "a\\udcff_000001.jpg", "width": 50, "height": 50}], "categories": '
            '[{"id": 1, "name": "car"}], "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]}]}',
            b"d\xff.json",
        ),
    }[form]
    path = Path(os.fsdecode(bytes(tmp_path) + b"/set/" + name))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    if form == "yolo":
        (tmp_path / "set/classes.txt").write_text("car\n")
    if form == "fiftyone":
        (tmp_path / "set/metadata.json").write_text('{"media_type": "image"}')
    scenes = read(FORMS[form].reader, tmp_path / "set", cache=False)
    assert len(scenes.boxes) == 1
    assert scenes.videos["video"].cast(pl.String)[0].isascii()
    # A row that is refused names its file.
    if form == "yolo":
        path.write_text("7 .5 .5 .2 .2\n")
        assert "udcff" in read("yolo", tmp_path / "set", cache=False).rejected["file"][0]


def test_mot_without_seqinfo_says_what_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "set/s/gt").mkdir(parents=True)
    (tmp_path / "set/s/gt/gt.txt").write_text("1,1,1,1,10,10,1,1,1\n")
    assert main(["read", "mot", str(tmp_path / "set"), "--no-cache"]) == 0
    assert "frames a second and sizes of images are not known" in capsys.readouterr().err
    (tmp_path / "set/dataset.toml").write_text("fps = 25\nsize = [1920, 1080]\n")
    assert main(["read", "mot", str(tmp_path / "set"), "--no-cache"]) == 0
    assert "not known" not in capsys.readouterr().err


LINES = """0 -1 DontCare -1 -1 -10 50.5 6.25 59.75 10.5 -1000 -1000 -1000 -10 -1 -1 -1
0 0 Pedestrian 0 0 -1.82 8.79 7.34 19.43 17.94 1.63 0.48 0.77 3.23 1.59 8.55 -1.47
0 4 Car 1 2 -1.67 27.39 8.13 30.07 13.39 1.41 1.58 4.36 3.18 2.27 34.38 -1.58
2 4 Car 0 3 -1.67 27.39 8.13 30.07 13.39 -1 -1 -1 -1000 -1000 -1000 -10
"""


def read_numbers(text: str) -> list[list[str | float]]:
    return [[word if word.isalpha() else float(word) for word in line.split()] for line in text.splitlines()]


def test_labels_of_kitti_tracking_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "set" / "training" / "label_02"
    folder.mkdir(parents=True)
    (folder / "0003.txt").write_text(LINES)
    command = ["convert", str(tmp_path / "set"), "--to", "kitti_tracking", "-o", str(tmp_path / "out")]
    assert main(command) == 0
    assert "taken for KITTI: multi-object tracking" in capsys.readouterr().err
    written = (tmp_path / "out" / "training" / "label_02" / "0003.txt").read_text()
    assert read_numbers(written) == read_numbers(LINES)


def test_labels_of_kitti_objects_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "set" / "training" / "label_2"
    folder.mkdir(parents=True)
    for number, line in enumerate(LINES.splitlines()):
        (folder / f"{7 * number:06d}.txt").write_text(line.split(" ", 2)[2] + "\n")
    command = ["convert", str(tmp_path / "set"), "--to", "kitti", "-o", str(tmp_path / "out")]
    assert main(command) == 0
    assert "taken for KITTI: object detection" in capsys.readouterr().err
    written = read_files(tmp_path / "out" / "training" / "label_2")
    assert [read_numbers(text.decode()) for text in written.values()] == [
        read_numbers(text.decode()) for text in read_files(folder).values()
    ]
    assert list(written) == list(read_files(folder))


@pytest.mark.parametrize("seed", range(4))
def test_boxes_of_vott_come_back_but_for_what_is_listed(seed: int, tmp_path: Path) -> None:
    scenes = random_scenes(seed, FORMS["vott"].holds)
    words = {"agent": tuple(name.replace(",", "") for name in CLASSES)}
    scenes = scenes.with_tables(meta=Meta("random", vocabularies=words))
    written = write_boxes(scenes, "vott", tmp_path / "out", lossy=True)
    back = read("vott", tmp_path / "out", cache=False)
    assert back.rejected.is_empty()
    # Beside lengths, which the files do not say, only boxes without an area and tracks of one box are lost.
    assert written.lost["lengths of videos"] == len(scenes.videos)
    boxed = scenes.boxes.filter((pl.col("x2_px") > pl.col("x1_px")) & (pl.col("y2_px") > pl.col("y1_px")))
    assert written.lost["boxes without an area, left out"] == len(scenes.boxes) - len(boxed)
    counts = boxed.drop_nulls("tube").group_by("tube").len()
    single = set(counts.filter(pl.col("len") == 1)["tube"])
    assert written.lost["tracks of one box: VoTT takes a name for a track where two frames have it"] == len(
        single
    )
    lone = pl.when(~pl.col("tube").is_in(list(single))).then("tube")
    labels = scenes.labels.join(boxed, on="box", how="semi")
    due = summarize(scenes.with_tables(boxes=boxed.with_columns(tube=lone), labels=labels))
    agent = {"agent": back.meta.vocabularies["tag"]}
    named = back.with_tables(
        labels=back.labels.with_columns(kind=pl.lit("agent")), meta=Meta("VoTT", vocabularies=agent)
    )
    found = summarize(named)
    assert [row[:6] for row in found["boxes"]] == [row[:6] for row in due["boxes"]]
    assert [row[6:] for row in found["boxes"]] == [pytest.approx(row[6:], abs=1e-4) for row in due["boxes"]]
    assert found["frames"] == due["frames"]
    assert {row[0]: row[3] for row in found["videos"]} == {row[0]: row[3] for row in due["videos"]}


@pytest.mark.parametrize("predicted", [False, True])
def test_segments_of_activitynet_come_back(
    predicted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(4)  # noqa: S311
    segments = {
        f"v {n} ü": [
            {"segment": [rng.uniform(0, 9), 9 + rng.random()], "label": rng.choice(["fall", "a, b"]),
             **({"score": rng.random()} if predicted else {})}
            for _ in range(n)
        ]
        for n in range(4)
    }  # fmt: skip
    if predicted:
        given: dict[str, Any] = {"version": "VERSION 1.3", "external_data": {}, "results": segments}
    else:
        about = {"duration": 20.5, "subset": "validation", "url": "u", "resolution": "320x240"}
        database = {video: {**about, "annotations": listed} for video, listed in segments.items()}
        given = {"version": "VERSION 1.3", "taxonomy": [], "database": database}
    (tmp_path / "given.json").write_text(json.dumps(given))
    command = ["convert", str(tmp_path / "given.json"), "--to", "activitynet", "-o", str(tmp_path / "out")]
    assert main([*command, *(["--predictions"] if predicted else [])]) == 0, capsys.readouterr().err
    assert "taken for ActivityNet" in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "activitynet.json").read_text()) == given
    scenes = read("activitynet", tmp_path / "out", cache=False, fps=25) if not predicted else None
    if scenes is not None:
        first = scenes.tubes.row(0, named=True)
        assert (first["start_frame"], first["end_frame"]) == (
            int(first["start_s"] * 25),
            -int(-first["end_s"] * 25 // 1),
        )
        assert scenes.videos["n_frames"].to_list() == [512] * 4


def test_a_refused_segment_costs_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segments = [{"segment": [0, 1], "label": "fall", "score": score} for score in (0.5, 7.5, 0.25)]
    file = tmp_path / "given.json"
    command = [
        "convert",
        str(file),
        "--from",
        "activitynet",
        "--to",
        "activitynet",
        "--predictions",
        "--lossy",
    ]
    file.write_text(json.dumps({"results": {"v": segments}}))
    assert main([*command, "-o", str(tmp_path / "out")]) == 0, capsys.readouterr().err
    held = json.loads((tmp_path / "out" / "activitynet.json").read_text())["results"]["v"]
    assert sorted(each["score"] for each in held) == [0.25, 0.5]
    file.write_text(json.dumps({"results": {"v": segments[1:2]}}))
    assert main([*command, "-o", str(tmp_path / "none")]) == 3
    assert "all 1 rows or files were refused" in capsys.readouterr().err


def test_voc_files_whose_names_show_alike_are_refused(tmp_path: Path) -> None:
    box = "<bndbox><xmin>{0}</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    text = f"<annotation><object><name>car</name>{box}</object></annotation>"
    for place, name in enumerate((b"a\xff.xml", b"a\\udcff.xml", b"b.xml", b"zz.xml")):
        (tmp_path / os.fsdecode(name)).write_text(text.format(place))
    scenes = read("voc", tmp_path, cache=False)
    assert len(scenes.rejected) == 1
    assert "shows as that of another file" in scenes.rejected["reason"][0]
    assert sorted(scenes.boxes["x1_px"].to_list()) in ([0, 2, 3], [1, 2, 3])


def test_tubes_of_frames_are_segments_of_activitynet(tmp_path: Path) -> None:
    scenes = random_scenes(3, FORMS["csv"].holds)
    labels = pl.DataFrame({"tube": scenes.tubes["tube"], "kind": "agent", "label": 1})
    ended = scenes.tubes.with_columns(start_frame=pl.lit(1, pl.Int64), end_frame=pl.lit(3, pl.Int64))
    scenes = scenes.with_tables(tubes=ended, tube_labels=labels)
    with pytest.raises(UsageError, match=f"{len(scenes.boxes):,} boxes"):
        write_boxes(scenes, "activitynet", tmp_path / "out")
    written = write_boxes(scenes, "activitynet", tmp_path / "out", lossy=True)
    assert written.rows == {"videos": len(scenes.videos), "segments": len(scenes.tubes)}
    back = read("activitynet", tmp_path / "out", cache=False)
    assert back.meta.vocabularies == {"action": (CLASSES[1],)}
    assert back.tubes.select("start_frame", "end_frame").unique().rows() == [(1, 3)]
    assert back.tubes["start_s"].to_list() == pytest.approx([1 / 29.97] * len(back.tubes))


def random_predictions(seed: int, holds: frozenset[str]) -> Predictions:
    """Random tables with scores of which a form that holds these things loses nothing."""
    return add_scores(random_scenes(seed, holds - {"ignore", "occluded", "hidden"}), seed)


def add_scores(scenes: Scenes, seed: int) -> Predictions:
    """The boxes as predictions, each with a score."""
    rng = np.random.default_rng(seed)
    boxes = scenes.boxes.drop("ignore", "occlusion")
    score = pl.Series("score", rng.choice([0.0, 1.0, 0.25, *rng.random(50)], len(boxes)), dtype=pl.Float64)
    boxes = boxes.with_columns(score)
    means = boxes.drop_nulls("tube").group_by("tube").agg(pl.col("score").mean())
    return Predictions(
        videos=scenes.videos,
        frames=scenes.frames.drop("annotated"),
        boxes=boxes,
        labels=scenes.labels.join(boxes.select("box", "score"), on="box", how="left"),
        tubes=scenes.tubes.join(means, on="tube", how="left", maintain_order="left"),
        meta=scenes.meta,
    )


def summarize_predictions(found: Predictions) -> list[Any]:
    """Video, frame, track, class and (score, corners) of every box, sorted."""
    words = found.meta.vocabularies.get("agent", ())
    names = dict(found.tubes.select("tube", "name").iter_rows())
    label = {
        box: (words[place], score)
        for box, place, score in found.labels.select("box", "label", "score").iter_rows()
    }
    rows = []
    for row in found.boxes.iter_rows(named=True):
        word, score = label.get(row["box"], ("", row["score"]))
        assert score == row["score"]
        corners = [row[c] for c in ("x1_px", "y1_px", "x2_px", "y2_px")]
        rows.append((row["video"], row["frame"], names.get(row["tube"]) or "", word, (score, *corners)))
    return sorted(rows)


@pytest.mark.parametrize(
    "form", [form for form in PREDICTED if form in GENERAL and form not in ("coco", "mot")]
)
@pytest.mark.parametrize("seed", range(3))
def test_predictions_come_back_and_so_do_files(form: str, seed: int, tmp_path: Path) -> None:
    given = random_predictions(seed, PREDICTED[form].holds)
    assert not write_boxes(given, form, tmp_path / "first").lost
    back = read_predictions(FORMS[form].reader, tmp_path / "first")
    assert back.rejected.is_empty()
    found, due = summarize_predictions(back), summarize_predictions(given)
    assert [row[:4] for row in found] == [row[:4] for row in due]
    assert [row[4] for row in found] == [pytest.approx(row[4], abs=1e-4) for row in due]
    assert [row[4][0] for row in found] == [row[4][0] for row in due], "scores come back to the last digit"
    assert sorted(back.frames.select("video", "frame").rows()) == sorted(
        given.frames.select("video", "frame").rows()
    )
    write_boxes(back, form, tmp_path / "second")
    assert read_files(tmp_path / "second") == read_files(tmp_path / "first")


def test_predictions_come_back_from_coco(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = random_predictions(3, PREDICTED["coco"].holds - {"track"})
    save(given, tmp_path / "given")
    first = tmp_path / "first"
    assert main(["convert", str(tmp_path / "given"), "--to", "coco", "-o", str(first), "-q"]) == 0
    listed = json.loads((first / "results.json").read_text())
    info = json.loads((first / "annotations" / "image_info_all.json").read_text())
    assert len(listed) == len(given.boxes)
    assert set(listed[0]) == {"image_id", "category_id", "bbox", "score"}
    assert [each["name"] for each in info["categories"]] == list(CLASSES)
    # By other numbers of images and classes, as the annotations have them that predictions are about.
    for image in info["images"]:
        image["id"] += 1000
    for category in info["categories"]:
        category["id"] = 90 - category["id"]
    (tmp_path / "truth.json").write_text(json.dumps({**info, "annotations": []}))
    again = ["--truth", str(tmp_path / "truth.json"), "--to", "coco", "-o", str(tmp_path / "again"), "-q"]
    assert main(["convert", str(tmp_path / "given"), *again]) == 0, capsys.readouterr().err
    for each in listed:
        each["image_id"] += 1000
        each["category_id"] = 90 - each["category_id"]
    assert json.loads((tmp_path / "again" / "results.json").read_text()) == listed
    to = ["--truth", str(tmp_path / "truth.json"), "--to", "csv", "-o", str(tmp_path / "csv"), "-q"]
    assert main(["convert", str(tmp_path / "again" / "results.json"), *to]) == 0, capsys.readouterr().err
    back = summarize_predictions(read_predictions("csv", tmp_path / "csv"))
    due = summarize_predictions(given)
    assert [row[:4] for row in back] == [row[:4] for row in due]
    assert [row[4] for row in back] == [pytest.approx(row[4], abs=1e-4) for row in due]
    others = [image for image in info["images"] if image["id"] != listed[0]["image_id"]]
    (tmp_path / "truth.json").write_text(json.dumps({**info, "images": others, "annotations": []}))
    assert main(["convert", str(tmp_path / "given"), *again, "--overwrite"]) == 3
    assert "is no image of these annotations" in capsys.readouterr().err


def test_results_of_mot_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = random_predictions(3, PREDICTED["mot"].holds)
    save(given.with_tables(labels=given.labels.clear()), tmp_path / "given")
    for folder in ("first", "second"):
        source = tmp_path / ("given" if folder == "first" else "first")
        command = ["convert", str(source), "--to", "mot", "--lossy", "-o", str(tmp_path / folder), "-q"]
        assert main([*command, *(["--predictions"] if folder == "second" else [])]) == 0, (
            capsys.readouterr().err
        )
    texts = [
        {name: text for name, text in read_files(tmp_path / folder).items() if name.endswith(".txt")}
        for folder in ("first", "second")
    ]
    assert texts[0] == texts[1]
    assert sum(text.count(b"\n") for text in texts[0].values()) == len(given.boxes)


def test_predictions_of_kitti_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "set" / "training" / "label_02"
    folder.mkdir(parents=True)
    lines = [line for line in LINES.splitlines() if "DontCare" not in line]
    text = "".join(f"{line} {score}\n" for line, score in zip(lines, (0.5, 0.125, 1.0), strict=True))
    (folder / "0003.txt").write_text(text)
    command = [
        "convert",
        str(tmp_path / "set"),
        "--predictions",
        "--to",
        "kitti_tracking",
        "-o",
        str(tmp_path / "out"),
    ]
    assert main(command) == 0, capsys.readouterr().err
    written = (tmp_path / "out" / "training" / "label_02" / "0003.txt").read_text()
    assert read_numbers(written) == read_numbers(text)
    (folder / "0003.txt").write_text(text.replace("0.125", "7.5") + lines[0] + "\n")
    back = read_predictions("kitti_tracking", tmp_path / "set")
    assert back.rejected["reason"].to_list() == [
        "the score should be a number from 0 to 1 and is '7.5'",
        "a prediction has 18 fields, the last one its score, and this line 17",
    ]


def test_rows_that_were_refused_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = ("1.5", "", "nan", "0.5")
    lines = ["frame,class,score,x1,y1,x2,y2", *(f"0,car,{score},1,1,2,2" for score in scores)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    command = [
        "convert",
        str(tmp_path / "a.csv"),
        "--predictions",
        "--to",
        "bdd100k",
        "-o",
        str(tmp_path / "out"),
        "-q",
    ]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "1 boxes" in said
    assert (
        "refused when it was read: 3 rows or files, the first a.csv:2: the score should be a number from 0 to 1"
        in said
    )


def test_annotations_that_are_called_predictions_are_refused_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_boxes(random_scenes(3, FORMS["bdd100k"].holds), "bdd100k", tmp_path / "given")
    words = [
        "convert",
        str(tmp_path / "given"),
        "--predictions",
        "--to",
        "csv",
        "-o",
        str(tmp_path / "out"),
        "-q",
    ]
    assert main(words) == 3
    said = capsys.readouterr().err
    assert "rows or files were refused; the first" in said
    assert "a prediction without a score" in said
    assert "without --predictions" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--to", "vidvrd"], "predictions are not written as vidvrd"),
        (["--to", "cvat"], "scores of boxes"),
        (["--to", "rrd"], "--predictions and --truth are of boxes"),
        (["--to", "ava"], "say --truth"),
        (["--to", "csv", "--embed"], "not of predictions"),
        (["--to", "mmaction2", "--videos", "a"], "not of predictions"),
    ],
)
def test_predictions_that_do_not_fit_a_form_are_refused(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_boxes(random_predictions(3, PREDICTED["csv"].holds), "csv", tmp_path / "given")
    assert (
        main(["convert", str(tmp_path / "given"), "--predictions", *words, "-o", str(tmp_path / "out"), "-q"])
        == 2
    )
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_vott_has_no_class_with_a_comma(tmp_path: Path) -> None:
    scenes = random_scenes(1, FORMS["vott"].holds)
    scenes = scenes.with_tables(meta=Meta("random", vocabularies={"agent": ("a", "b, c", "d", "e")}))
    with pytest.raises(InputError, match="'b, c' has a comma"):
        write_boxes(scenes, "vott", tmp_path / "out", lossy=True)


def test_other_sets_lose_names_on_the_way_to_kitti_and_are_told(tmp_path: Path) -> None:
    scenes = random_scenes(6, FORMS["csv"].holds)
    written = write_boxes(scenes, "kitti_tracking", tmp_path / "out", lossy=True)
    back = read("kitti_tracking", tmp_path / "out", cache=False)
    assert written.lost["names of videos, numbered anew"] == len(scenes.videos)
    classed = scenes.boxes.join(scenes.labels.select("box"), on="box", how="semi")
    kept = classed.filter(pl.col("ignore") | pl.col("tube").is_not_null())
    assert len(back.boxes) == len(kept) == written.rows["boxes"]
    words = back.meta.vocabularies["object"]
    named = back.labels.select(pl.col("label").replace_strict(dict(enumerate(words)), return_dtype=pl.String))
    assert set(named["label"]) <= {"Pedestrian", "Misc", "DontCare"}


def test_kitti_says_fully_visible_where_a_set_says_nothing_of_occlusion(tmp_path: Path) -> None:
    scenes = random_scenes(6, FORMS["csv"].holds)
    written = write_boxes(scenes, "kitti", tmp_path / "out", lossy=True)
    lines = [
        line.split()
        for text in read_files(tmp_path / "out" / "training").values()
        for line in text.decode().splitlines()
    ]
    assert {(line[0] == "DontCare", line[2]) for line in lines} == {(True, "-1"), (False, "0")}
    seen = written.lost["boxes of which nothing is said of occlusion, written as fully visible"]
    assert seen == sum(line[0] != "DontCare" for line in lines) > 0
