"""The forms of published sets: a set comes back whole from files of its own form, of others all but what is listed."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sets import SETS, maker
from test_box_forms import random_predictions, random_scenes, read_files

from roadaware.cli.app import main
from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.comparison import count_differences
from roadaware.formats.boxes.flat import HELD
from roadaware.formats.boxes.forms import FORMS, REST, write_boxes
from roadaware.geometry.poses import from_quaternion, to_quaternion
from roadaware.scenes.schema import TABLES
from roadaware.scenes.store import open_scenes
from roadaware.scenes.tables import Meta, Scenes

RELEASED = [form for form, each in FORMS.items() if each.compared]
REAL = os.environ.get("ROADAWARE_DATA_DIR", "")
PUBLISHED = {"jaad": "jaad/JAAD-JAAD_2.0.zip", "pie": "pie", "ucf24": "ucf24"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scenes]:
    """Form to a small set that was read from files of that form; each is made once."""

    @cache
    def make(form: str) -> Scenes:
        folder = tmp_path_factory.mktemp(form) / "set"
        if form == "nuscenes":
            return read("nuscenes", maker("nuscenes").tables(folder), cache=False)
        return SETS[form].read(SETS[form].make(folder))

    return make


def check_equal(back: Scenes, given: Scenes) -> None:
    """The same tables cell by cell, in any order of rows where their numbers are those of sensors."""
    assert back.rejected.is_empty()
    assert back.meta.vocabularies == given.meta.vocabularies
    for name in TABLES:
        if name != "rejected":
            found, due = getattr(back, name), getattr(given, name)
            assert found.columns == due.columns
            if name in ("sensors", "sweeps"):
                found, due = (table.sort("scene", "sensor") for table in (found, due))
            if given.meta.dataset == "nuScenes":
                for column in due.columns:
                    assert as_numbers(found[column]) == pytest.approx(as_numbers(due[column]), abs=1e-4), (
                        column
                    )
            else:
                assert found.equals(due), name


def as_numbers(column: pl.Series) -> Any:
    """Floats, flat, or the values as they are."""
    if isinstance(column.dtype, pl.List) and column.dtype.inner.is_float():
        return [0.0 if value is None else value for value in column.explode()]
    return column.to_list() if column.dtype.is_float() else tuple(map(str, column.to_list()))


@pytest.mark.parametrize("form", RELEASED)
def test_a_published_set_comes_back_whole(
    form: str, published: Callable[[str], Scenes], tmp_path: Path
) -> None:
    given = published(form)
    written = write_boxes(given, form, tmp_path / "first")
    assert not written.lost
    options = {"appearance": True} if form == "jaad" else {}
    back = read(FORMS[form].reader, tmp_path / "first", cache=False, **options)
    check_equal(back, given)
    assert written.rows["boxes"] == len(given.boxes) > 0


@pytest.mark.parametrize(
    "form", ["road", "ucf24", *(pytest.param(form, marks=pytest.mark.slow) for form in ("jaad", "pie"))]
)
def test_what_came_back_is_written_byte_for_byte(
    form: str, published: Callable[[str], Scenes], tmp_path: Path
) -> None:
    write_boxes(published(form), form, tmp_path / "first")
    options = {"appearance": True} if form == "jaad" else {}
    back = read(form, tmp_path / "first", cache=False, **options)
    write_boxes(back, form, tmp_path / "second")
    assert read_files(tmp_path / "second") == read_files(tmp_path / "first")


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="needs the published annotations, ROADAWARE_DATA_DIR")
@pytest.mark.parametrize("form", PUBLISHED)
def test_the_published_annotations_come_back_whole(form: str, tmp_path: Path) -> None:
    given = read(form, Path(REAL) / PUBLISHED[form], cache=False)
    assert not write_boxes(given, form, tmp_path / "out").lost
    check_equal(read(form, tmp_path / "out", cache=False), given)


def test_corners_that_are_no_outline_of_a_box_in_space_are_listed(
    published: Callable[[str], Scenes], tmp_path: Path
) -> None:
    """Boxes in images come back as the outlines of boxes in space; other corners are lost."""
    given = published("nuscenes")
    moved = given.boxes.with_columns(pl.col("x1_px") - 2)
    given = given.with_tables(boxes=moved)
    with pytest.raises(UsageError, match=f"{len(moved)} values of `boxes.x1_px`"):
        write_boxes(given, "nuscenes", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert write_boxes(given, "nuscenes", tmp_path / "out", lossy=True).lost == {
        "values of `boxes.x1_px`": len(moved)
    }
    assert open_scenes(tmp_path / "out" / REST) == given


def plain_boxes(scenes: Scenes) -> dict[tuple[str, int], list[tuple[float, ...]]]:
    """Video and frame to the sorted corners of its boxes."""
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for video, frame, *corners in scenes.boxes.select(
        pl.col("video").cast(pl.String), "frame", "x1_px", "y1_px", "x2_px", "y2_px"
    ).iter_rows():
        found.setdefault((video, frame), []).append(tuple(corners))
    return {key: sorted(boxes) for key, boxes in found.items()}


def given_boxes(scenes: Scenes, form: str) -> dict[tuple[str, int], list[tuple[float, ...]]]:
    """What of 640 x 480 pixels the form holds, from its definition, box by box."""
    words = scenes.meta.vocabularies["agent"]
    label = {box: words[n] for box, _, n in scenes.labels.select("box", "kind", "label").iter_rows()}
    people = {
        row["tube"] for row in scenes.boxes.iter_rows(named=True)
        if row["tube"] is not None and label.get(row["box"]) == "person"
    }  # fmt: skip
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for row in scenes.boxes.iter_rows(named=True):
        x1, y1, x2, y2 = (row[f"{c}_px"] for c in ("x1", "y1", "x2", "y2"))
        if form in ("jaad", "pie"):
            if row["tube"] not in people:
                continue
        else:
            x1, x2, y1, y2 = max(x1, 0.0), min(x2, 640.0), max(y1, 0.0), min(y2, 480.0)
            if not (x1 < x2 and y1 < y2) or (
                form == "ucf24" and (row["tube"] is None or row["box"] not in label)
            ):
                continue
        half = 0.5 if form == "ucf24" else 1.0
        corners = tuple(half * value for value in (x1, y1, x2, y2))
        found.setdefault((str(row["video"]), row["frame"]), []).append(corners)
    return {key: sorted(boxes) for key, boxes in found.items()}


@pytest.mark.parametrize("form", ["road", "jaad", "pie", "ucf24"])
@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_boxes_of_other_sets_come_back_as_far_as_the_form_holds_them(
    form: str, seed: int, tmp_path: Path
) -> None:
    scenes = random_scenes(seed, frozenset(HELD))
    with pytest.raises(UsageError, match="cannot hold all of this"):
        write_boxes(scenes, form, tmp_path / "out")
    written = write_boxes(scenes, form, tmp_path / "out", lossy=True)
    back = read(form, tmp_path / "out", cache=False)
    assert back.rejected.is_empty(), "what the reader refuses is not written"
    due = given_boxes(scenes, form)
    if form in ("jaad", "pie"):
        # Videos are numbered anew where a name is none of the form, in their order.
        anew = dict(zip(scenes.videos["video"].cast(pl.String), back.videos["video"].sort(), strict=True))
        if form == "pie":
            anew = {
                name: next(v for v in back.videos["video"] if v.endswith(f"video_{n:04d}"))
                for n, name in enumerate(scenes.videos["video"].cast(pl.String), 1)
            }
            sets = {"train": "set01", "val": "set05"}
            for name, splits in scenes.videos.select(pl.col("video").cast(pl.String), "splits").iter_rows():
                assert anew[name].startswith(sets[splits[0].rpartition("/")[2]])
        due = {(anew[video], frame): boxes for (video, frame), boxes in due.items()}
    found = plain_boxes(back)
    assert found.keys() == due.keys()
    for key, boxes in due.items():
        assert np.allclose(found[key], boxes, atol=1e-3), key
    kept = sum(map(len, due.values()))
    assert written.rows["boxes"] == kept
    assert written.lost.get("rows of `boxes`", 0) == len(scenes.boxes) - kept
    assert open_scenes(tmp_path / "out" / REST) == scenes


def test_a_track_with_a_hole_becomes_two_tubes_of_ucf24(
    published: Callable[[str], Scenes], tmp_path: Path
) -> None:
    scenes = published("ucf24")
    first = scenes.boxes.filter(tube=0)["box"].to_list()
    assert len(first) > 4
    boxes = scenes.boxes.filter(pl.col("box") != first[2])
    held = scenes.with_tables(boxes=boxes, labels=scenes.labels.filter(pl.col("box") != first[2]))
    written = write_boxes(held, "ucf24", tmp_path / "out", lossy=True)
    key = "further stretches of tracks with holes or several actions, written as tubes of their own"
    assert written.lost[key] == 1
    back = read("ucf24", tmp_path / "out", cache=False)
    assert plain_boxes(back) == plain_boxes(held)
    tracks = [scene.tubes.filter(pl.col("kind").is_null()).height for scene in (back, held)]
    assert tracks[0] == tracks[1] + 1


def test_a_thing_that_two_cameras_see_is_one_instance(
    published: Callable[[str], Scenes], tmp_path: Path
) -> None:
    """A second camera at the place of the first, whose boxes are the same: one annotation, seen by both."""
    given = published("nuscenes")
    front = "CAM_FRONT"
    renamed = [pl.col("video").cast(pl.String).str.replace(front, "CAM_BACK")]
    both: dict[str, pl.DataFrame] = {}
    for name in ("videos", "frames", "boxes", "tubes"):
        table = getattr(given, name)
        more = table.with_columns(renamed)
        if "sensor" in table.columns:
            more = more.with_columns(sensor=pl.lit("CAM_BACK"))
        if name == "boxes":
            more = more.with_columns(
                box=pl.col("box") + len(given.boxes), tube=pl.col("tube") + len(given.tubes)
            )
        if name == "tubes":
            more = more.with_columns(tube=pl.col("tube") + len(given.tubes))
        both[name] = pl.concat(
            [table.with_columns(pl.col("video").cast(pl.String)), more.select(table.columns)]
        )
    sensors = given.sensors.filter(sensor=front).with_columns(sensor=pl.lit("CAM_BACK"))
    both["sensors"] = pl.concat([given.sensors, sensors])
    both["labels"] = pl.concat([given.labels, given.labels.with_columns(pl.col("box") + len(given.boxes))])
    twice = given.with_tables(**both)
    assert not write_boxes(twice, "nuscenes", tmp_path / "out").lost
    rows = json.loads(next((tmp_path / "out").glob("v1.0-*/sample_annotation.json")).read_text())
    assert len(rows) == len(given.boxes)
    assert count_differences(twice, read("nuscenes", tmp_path / "out", cache=False)) == Counter()


@pytest.mark.parametrize("form", RELEASED)
def test_scores_have_no_place_in_a_published_form(form: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no place for scores"):
        write_boxes(random_predictions(1, frozenset(HELD)), form, tmp_path / "out", lossy=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", RELEASED)
def test_what_cannot_be_written_is_said(form: str, tmp_path: Path) -> None:
    scenes = random_scenes(5, frozenset(HELD))
    bare = scenes.with_tables(videos=scenes.videos.drop("width_px"))
    with pytest.raises(InputError, match="the size of video drive_0"):
        write_boxes(bare, form, tmp_path / "out", lossy=True)
    with pytest.raises(InputError, match="there is no video in it"):
        write_boxes(Scenes(), form, tmp_path / "out", lossy=True)
    if form in ("jaad", "pie"):
        cars = scenes.with_tables(meta=Meta("random", vocabularies={"agent": ("a", "b", "c", "d")}))
        with pytest.raises(InputError, match="can hold none of the boxes"):
            write_boxes(cars, form, tmp_path / "out", lossy=True)
    if form == "nuscenes":
        with pytest.raises(InputError, match="boxes in space"):
            write_boxes(scenes, form, tmp_path / "out", lossy=True)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".roadaware*"))


def test_what_differs_is_counted_cell_by_cell(published: Callable[[str], Scenes]) -> None:
    given = published("pie")
    assert count_differences(given, given) == Counter()
    rng = random.Random(3)  # noqa: S311
    due: Counter[str] = Counter()
    changed = {}
    for name, column in (
        ("boxes", "x2_px"),
        ("boxes", "look"),
        ("tubes", "age"),
        ("frames", "ego_speed_kmh"),
    ):
        table = changed.get(name, getattr(given, name))
        values, dtype = table[column].to_list(), table[column].dtype
        for row in rng.sample([n for n, value in enumerate(values) if value is not None], 3):
            due[f"values of `{name}.{column}`"] += 1
            values[row] = None if column != "x2_px" else values[row] + 0.5
        changed[name] = table.with_columns(pl.Series(column, values, dtype=dtype))
    assert count_differences(given, given.with_tables(**changed)) == due
    # What was not said and comes back is nothing lost; but that boxes are there which were not is said.
    assert count_differences(given.with_tables(**changed), given) == {"values of `boxes.x2_px`": 3}
    fewer = given.with_tables(boxes=given.boxes.head(-4))
    assert count_differences(given, fewer) == {"rows of `boxes`": 4}
    assert count_differences(fewer, given) == {"boxes that come back and were not there": 4}


def test_quaternions_are_those_of_their_rotations() -> None:
    rng = np.random.default_rng(2)
    turns = rng.normal(size=(50, 4))
    turns[:4] = np.eye(4)
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    poses = [from_quaternion(turn, [0, 0, 0]) for turn in turns]
    found = to_quaternion(np.stack([pose[:3, :3] for pose in poses if pose is not None]))
    due = turns * np.where(turns[:, :1] < 0, -1, 1)
    assert (found[:, 0] >= 0).all()
    # Of turns by half a circle both signs are right.
    assert np.abs(np.abs((found * due).sum(axis=1)) - 1).max() < 1e-12


def test_the_command_says_what_a_published_form_cannot_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = SETS["road"].make(tmp_path / "set")
    assert main(["convert", str(given), "--to", "road", "-o", str(tmp_path / "out")]) == 0
    assert "taken for ROAD" in capsys.readouterr().err
    check_equal(SETS["road"].read(tmp_path / "out"), SETS["road"].read(given))
    assert main(["convert", str(given), "--from", "road", "--to", "jaad", "-o", str(tmp_path / "jaad")]) == 2
    assert "cannot hold all of this" in capsys.readouterr().err
    assert not (tmp_path / "jaad").exists()


def test_a_file_of_road_without_kinds_of_labels_is_read(tmp_path: Path) -> None:
    frames = {
        "1": {
            "annotated": 1,
            "width": 100,
            "height": 50,
            "av_action_ids": [],
            "annos": {"a": {"box": [0.1, 0.2, 0.5, 0.6]}},
        }
    }
    content = {
        "label_types": [],
        "all_av_action_labels": [],
        "av_action_labels": [],
        "db": {"v": {"numf": 1, "frames": frames}},
    }
    (tmp_path / "road.json").write_text(json.dumps(content))
    scenes = read("road", tmp_path, cache=False)
    assert (len(scenes.boxes), len(scenes.labels)) == (1, 0)


def test_scenes_called_as_their_videos_come_to_nuscenes(tmp_path: Path) -> None:
    boxes = SETS["nuscenes"].maker  # the tiny tables have two scenes of one camera each
    given = read("nuscenes", boxes.tables(tmp_path / "set"), cache=False)
    names = dict(
        given.videos.select(pl.col("video").cast(pl.String), pl.col("scene").cast(pl.String)).iter_rows()
    )
    plain = {
        name: table.with_columns(pl.col("video").cast(pl.String).replace(names))
        for name, table in given.tables().items()
        if "video" in table.columns and len(table)
    }
    scenes = given.with_tables(**plain)
    assert scenes.videos["video"].to_list() == scenes.videos["scene"].cast(pl.String).to_list()
    write_boxes(scenes, "nuscenes", tmp_path / "out", lossy=True)
    assert len(read("nuscenes", tmp_path / "out", cache=False).boxes) == len(given.boxes) > 0
