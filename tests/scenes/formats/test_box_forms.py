"""Laws of every form of boxes: tables come back as far as the form holds them, and files come back byte for byte."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from roadaware.cli.app import main
from roadaware.datasets import READERS, read
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.flat import HELD
from roadaware.formats.boxes.forms import FORMS, REST, write_boxes
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Meta, Scenes

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
            called = f"{rng.choice(['p ä_', 'x,y', 'id-'])}{mark}" if "name" in holds and v == 1 else str(mark)
            tubes.append((number, name, called))
        owned: set[int] = set()
        for frame in range(length):
            wanted = [*tracks, *([None] * rng.randint(0, 2) if "untracked" in holds else [])]
            for mark in rng.sample(wanted, rng.randint(0, len(wanted))):
                x1, y1 = rng.choice([0.0, rng.uniform(0, 500), -3.5]), rng.uniform(0, 400)
                box = (len(boxes), name, frame, None if mark is None else tracks[mark][0], x1, y1,
                       x1 + rng.choice([0.0, rng.uniform(0.1, 200)]), y1 + rng.uniform(0, 90),
                       "ignore" in holds and rng.random() < 0.3,
                       rng.choice(["none", "part"]) if "occluded" in holds else None)  # fmt: skip
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


@pytest.mark.parametrize("form", FORMS)
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


@pytest.mark.parametrize("form", FORMS)
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


@pytest.mark.parametrize("form", FORMS)
def test_the_command_converts_there_and_back(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(random_scenes(3, FORMS[form].holds), tmp_path / "tables")
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["convert", str(tmp_path / "tables"), "--to", form, "-o", str(first), "-q"]) == 0
    assert "wrote" in capsys.readouterr().out
    assert main(["convert", str(first), "--from", form, "--to", form, "-o", str(second), "-q"]) == 0
    assert read_files(second) == read_files(first)
    assert main(["convert", str(first), "--to", form, "-o", str(tmp_path / "third"), "-q"]) == 0, (
        "known by its content"
    )
    assert main(["convert", str(first), "--to", form, "-o", str(second), "-q"]) == 2, "it is there already"


def test_the_command_lists_what_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(random_scenes(3, frozenset(HELD)), tmp_path / "tables")
    command = ["convert", str(tmp_path / "tables"), "--to", "voc", "-o", str(tmp_path / "out"), "-q"]
    assert main(command) == 2
    assert "tracks of boxes" in capsys.readouterr().err
    assert main([*command, "--lossy"]) == 0
    assert "tracks of boxes" in capsys.readouterr().out


@pytest.mark.parametrize("form", FORMS)
def test_names_that_are_no_utf8_are_read_and_escaped(form: str, tmp_path: Path) -> None:
    text, name = {
        "yolo": ("0 .5 .5 .2 .2\n", b"labels/d\xff_000001.txt"),
        "mot": ("1,1,1,1,10,10,1,1,1\n", b"s\xff/gt/gt.txt"),
        "cvat": (
            '<annotations><version>1.1</version><meta><task><size>3</size></task></meta><track id="0" label="car">'
            '<box frame="0" xtl="1" ytl="1" xbr="9" ybr="9" outside="0"/></track></annotations>',
            b"v\xff.xml",
        ),
        "voc": (
            "<annotation><object><name>car</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
            "</bndbox></object></annotation>",
            b"Annotations/d\xff_000001.xml",
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
