"""Cuboids of proposals through files of other tools: what people moved, deleted and added comes back as it was planted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from example_counts import tried
from roadaware.cli.label import import_labels
from roadaware.cli.results import ResultFolder
from roadaware.errors import InputError, RoadawareError
from roadaware.formats.cuboid_labels import (
    CUBOID,
    CuboidForm,
    compare_cuboids,
    read_edited_cuboids,
    read_sent_cuboids,
    write_cuboids,
)
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions

FORMS: tuple[CuboidForm, ...] = ("kitti", "nuscenes", "xtreme1", "labelcloud")
PLACES = [("a/b", 0), ("a/b", 1), ("c", 0)]
TILTED = np.eye(4)
TILTED[:3, :3] = Rotation.from_euler("xyz", [2, -3, 1], degrees=True).as_matrix() @ np.array(
    [[0.0, -1, 0], [0, 0, -1], [1, 0, 0]]
)
TILTED[:3, 3] = [0.1, -0.3, -0.2]
POSE = np.eye(4)
POSE[:3, :3] = Rotation.from_euler("zyx", [130, 2, 1], degrees=True).as_matrix()
POSE[:3, 3] = [600, -40, 3]


def planted(folder: Path, count: int = 8) -> pl.DataFrame:
    """Cuboids 4 m and more apart, eight an image but for the last one, which has none; written in all forms."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(2 * count):
        video, frame = PLACES[number // count]
        spot = [6.0 + 4 * (number % count), rng.uniform(-8, 8), rng.uniform(-1, 0)]
        sizes = [rng.uniform(1, 3), rng.uniform(0.3, 1), rng.uniform(0.4, 2)]
        cuboid = [*spot, *sizes, rng.uniform(-np.pi / 2, np.pi / 2)]
        rows.append(
            {
                "box": 100 + number,
                "video": video,
                "frame": frame,
                **dict.fromkeys(CORNERS, 5.0),
                "score": rng.uniform(),
                **dict(zip(CUBOID, cuboid, strict=True)),
            }
        )
    table = pl.DataFrame(rows)
    ways, poses = dict.fromkeys(PLACES, TILTED), dict.fromkeys(PLACES, POSE)
    record = write_cuboids(Predictions(boxes=table), folder, FORMS, cameras=ways, poses=poses)
    assert record == dict.fromkeys(FORMS, len(table))
    return table


def back(folder: Path, form: str) -> Path:
    return folder / "nuscenes.json" if form == "nuscenes" else folder / form


@pytest.mark.parametrize("form", FORMS)
def test_untouched_cuboids_come_back_as_they_were(tmp_path, form):
    table = planted(tmp_path)
    sent = read_sent_cuboids(tmp_path)
    edited = read_edited_cuboids(back(tmp_path, form), sent)
    assert (edited.form, set(edited.done), dict(edited.refused)) == (form, set(PLACES), {})
    found = compare_cuboids(sent, edited)
    assert found["fate"].to_list() == ["kept"] * len(table)
    both = found.join(table, left_on="proposal", right_on="box", suffix="_sent")
    near = 0.006 if form == "kitti" else 1e-9
    for name in CUBOID:
        apart = (both[name] - both[f"{name}_sent"]).to_numpy()
        if name == "yaw_rad":
            apart = (apart + np.pi / 2) % np.pi - np.pi / 2
        # A corner of two digits in each of three axes, turned.
        assert np.abs(apart).max() < 2 * near, name


def edit(folder: Path, form: str) -> None:
    """Of the first image the best moves by 0.5 m, the second is 0.2 m longer, the third goes, one is drawn at (50, 9)."""
    name = "a/b/000000"
    if form == "kitti":
        file = folder / "kitti" / f"{name}.txt"
        lines = [line.split() for line in file.read_text().splitlines()]
        lines[0][11] = f"{float(lines[0][11]) + 0.5:.2f}"
        lines[1][10] = f"{float(lines[1][10]) + 0.2:.2f}"
        middle = TILTED @ [50.0, 9.0, -1.5, 1]
        lines[2] = ["Dog", *["-1"] * 2, *["1"] * 8, *(f"{v:.2f}" for v in middle[:3]), "0.3"]
        file.write_text(
            "".join(f"{' '.join(line)}\n" for line in lines) + "DontCare -1 -1 -10 1 1 2 2 -1 -1 -1 0 0 0 0\n"
        )
        return
    file = {
        "nuscenes": folder / "nuscenes.json",
        "xtreme1": folder / "xtreme1/a/b/result/000000.json",
        "labelcloud": folder / "labelcloud" / f"{name}.json",
    }[form]
    content = json.loads(file.read_text())
    if form == "nuscenes":
        objects = content["results"][name]
        objects[0]["translation"][0] += 0.5
        objects[1]["size"][1] += 0.2
        place = (POSE @ [50, 9, -1, 1])[:3].tolist()
        objects[2] = {**objects[2], "translation": place, "detection_name": "Dog"}
    elif form == "xtreme1":
        objects = content[0]["objects"]
        objects[0]["contour"]["center3D"]["x"] += 0.5
        objects[1]["contour"]["size3D"]["x"] += 0.2
        new = json.loads(json.dumps(objects[2]))
        new["contour"]["center3D"] = {"x": 50, "y": 9, "z": -1}
        objects[2] = {**new, "id": "033DA6D7-3F4F", "className": "Dog"}
        objects.append({**objects[0], "type": "2D_BOX"})
    else:
        objects = content["objects"]
        objects[0]["centroid"]["x"] += 0.5
        objects[1]["dimensions"]["length"] += 0.2
        objects[2] = {**objects[2], "name": "Dog", "centroid": {"x": 50, "y": 9, "z": -1}}
    file.write_text(json.dumps(content))


@pytest.mark.parametrize("form", FORMS)
def test_edits_come_back_as_they_were_planted(tmp_path, form):
    table = planted(tmp_path)
    edit(tmp_path, form)
    sent = read_sent_cuboids(tmp_path)
    found = compare_cuboids(sent, read_edited_cuboids(back(tmp_path, form), sent))
    first = table.filter(video="a/b", frame=0).sort("score", descending=True)["box"].to_list()
    assert Counter(found["fate"]) == {"kept": 13, "changed": 2, "deleted": 1, "added": 1}
    changed = {row["proposal"]: row for row in found.filter(fate="changed").iter_rows(named=True)}
    assert set(changed) == set(first[:2])
    assert changed[first[0]]["moved_m"] == pytest.approx(0.5, abs=0.01)
    assert changed[first[0]]["resized_m"] < 0.01
    assert changed[first[1]]["resized_m"] == pytest.approx(0.2, abs=0.01)
    assert found.filter(fate="deleted")["proposal"].to_list() == [first[2]]
    (new,) = found.filter(fate="added").iter_rows(named=True)
    assert (new["name"], new["proposal"]) == ("Dog", None)
    np.testing.assert_allclose([new["x_m"], new["y_m"], new["z_m"]], [50, 9, -1], atol=0.01)


def test_an_image_without_a_file_was_not_done_and_an_empty_one_has_lost_all(tmp_path):
    planted(tmp_path)
    (tmp_path / "labelcloud/a/b/000000.json").unlink()
    (tmp_path / "labelcloud/a/b/000001.json").write_text('{"objects": []}')
    sent = read_sent_cuboids(tmp_path)
    edited = read_edited_cuboids(tmp_path / "labelcloud", sent)
    assert edited.done == (("a/b", 1), ("c", 0))
    assert compare_cuboids(sent, edited)["fate"].to_list() == ["deleted"] * 8


def test_vertices_of_labelcloud_are_read(tmp_path):
    planted(tmp_path)
    sent = read_sent_cuboids(tmp_path)
    signs = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]])
    for video, frame in PLACES[:2]:
        file = tmp_path / f"labelcloud/{video}/{frame:06d}.json"
        content = json.loads(file.read_text())
        for each in content["objects"]:
            x, y, z = each.pop("centroid").values()
            length, width, height = each.pop("dimensions").values()
            turn = np.radians(each.pop("rotations")["z"])
            way = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
            flat = signs * [length / 2, width / 2] @ way.T + [x, y]
            each["vertices"] = [[*spot, z + up * height / 2] for up in (-1, 1) for spot in flat.tolist()]
        file.write_text(json.dumps(content))
    found = compare_cuboids(sent, read_edited_cuboids(tmp_path / "labelcloud", sent))
    assert set(found["fate"]) == {"kept"}
    assert found.select(pl.max_horizontal("moved_m", "resized_m", "turned_rad").max()).item() < 1e-9


@pytest.mark.parametrize("any_below_zero", [True, False])
def test_turns_of_labelcloud_in_radians_are_read_as_such(tmp_path, any_below_zero):
    """`centroid_rel`, as labelCloud 1.1.1 writes it: turns from -pi to pi, all else as in `centroid_abs`."""
    table = planted(tmp_path)
    for video, frame in PLACES[:2]:
        file = tmp_path / f"labelcloud/{video}/{frame:06d}.json"
        content = json.loads(file.read_text())
        for each in content["objects"]:
            turn = np.radians(each["rotations"]["z"])
            # The same cuboid half a turn round has none below zero: either form would do by its range.
            each["rotations"]["z"] = turn - 2 * np.pi * (turn > np.pi) if any_below_zero else turn % np.pi
        file.write_text(json.dumps(content))
    sent = read_sent_cuboids(tmp_path)
    found = compare_cuboids(sent, read_edited_cuboids(tmp_path / "labelcloud", sent))
    assert found["fate"].to_list() == ["kept"] * len(table)


def test_turns_of_a_few_degrees_are_no_radians(tmp_path):
    rows = {"box": [1, 2], "video": "a", "frame": 0, **dict.fromkeys(CORNERS, 5.0), "score": 0.5}
    table = pl.DataFrame({**rows, **dict.fromkeys(CUBOID, 1.0), "x_m": [0.0, 9.0], "yaw_rad": [0.0, 0.035]})
    write_cuboids(Predictions(boxes=table), tmp_path, ("labelcloud",), cameras={("a", 0): TILTED}, poses={})
    sent = read_sent_cuboids(tmp_path)
    read = read_edited_cuboids(tmp_path / "labelcloud", sent)
    assert set(compare_cuboids(sent, read)["fate"]) == {"kept"}


def send_turned(folder: Path, degrees: list[float], back: list[object]) -> list[str]:
    """Fates of cuboids 9 m apart that were sent at some turns and came back, as labelCloud's, at others."""
    rows = {"box": range(len(degrees)), "video": "a", "frame": 0, **dict.fromkeys(CORNERS, 5.0), "score": 0.5}
    spots = [9.0 * k for k in range(len(degrees))]
    table = pl.DataFrame(
        {**rows, **dict.fromkeys(CUBOID, 1.0), "x_m": spots, "yaw_rad": np.radians(degrees)}, strict=False
    )
    write_cuboids(Predictions(boxes=table), folder, ("labelcloud",), cameras={("a", 0): TILTED}, poses={})
    file = folder / "labelcloud/a/000000.json"
    content = json.loads(file.read_text())
    for each, turn in zip(content["objects"], back, strict=True):
        each["rotations"]["z"] = turn
    file.write_text(json.dumps(content))
    sent = read_sent_cuboids(folder)
    found = compare_cuboids(sent, read_edited_cuboids(folder / "labelcloud", sent))
    return found.sort("proposal")["fate"].to_list()


@pytest.mark.parametrize(
    ("degrees", "back", "fates"),
    [
        ([-2, 3], [-2.0, 3.0], ["kept", "kept"]),
        ([-2], [-2.0], ["kept"]),
        ([30, -60, 80], [*np.radians([30, -60]), "?"], ["kept", "kept", "deleted"]),
        ([30, -60, 80], [*np.radians([30, -60]), 1e300], ["kept", "kept", "deleted"]),
        ([30, -60, 80], [*np.radians([30, -60]), 200.0], ["kept", "kept", "changed"]),
        ([0, 0, 0, 60], [0.0, 0.0, 0.0, np.radians(60)], ["kept"] * 4),
    ],
    ids=["below zero", "alone below zero", "unreadable", "absurd", "odd", "nearly all at 0"],
)
def test_what_was_sent_says_what_turns_of_labelcloud_are(tmp_path, degrees, back, fates):
    assert send_turned(tmp_path, degrees, back) == fates


@pytest.mark.parametrize(
    ("degrees", "back", "unclear"),
    [
        ([5], [1.57], ["a/000000.json: turns taken for degrees"]),  # turned to 90 degrees, in radians
        ([86], [2.0], ["a/000000.json: turns taken for radians"]),  # turned to 2 degrees
        ([0], [0.5], ["a/000000.json: turns taken for degrees"]),
        ([5], [90.0], []),
        ([5, 40], [1.57, np.radians(40)], []),
        ([5], [5.0], []),
        ([5], [0.0], []),
    ],
    ids=[
        "radians",
        "degrees",
        "from straight ahead",
        "too large",
        "the other one is as it was",
        "as it was",
        "none",
    ],
)
def test_turns_that_may_be_degrees_or_radians_are_named(tmp_path, degrees, back, unclear):
    send_turned(tmp_path, degrees, back)
    edited = read_edited_cuboids(tmp_path / "labelcloud", read_sent_cuboids(tmp_path))
    assert list(edited.unclear) == unclear
    found = import_labels(tmp_path, (tmp_path / "labelcloud",), strict=True)
    assert found.data["cuboids"][0]["unclear"] == unclear
    assert (found.failed is not None) == bool(unclear)
    assert all(each in found.text for each in unclear)


@pytest.mark.parametrize(
    ("turns", "first"),
    [([-1.0, 0.5, 50.0], -1.0), ([-1.0, 90.0, 200.0], np.radians(-1)), ([1.0, 2.0], np.radians(1))],
    ids=["radians but for one", "degrees but for one", "either"],
)
def test_where_nothing_was_sent_most_turns_of_labelcloud_decide(tmp_path, turns, first):
    table = planted(tmp_path)
    file = tmp_path / "labelcloud/c/000000.json"
    sample = json.loads((tmp_path / "labelcloud/a/b/000000.json").read_text())["objects"][0]
    objects = [{**sample, "rotations": {"x": 0, "y": 0, "z": turn}} for turn in turns]
    file.write_text(json.dumps({"objects": [*objects, 7, {"name": "x"}]}))
    edited = read_edited_cuboids(tmp_path / "labelcloud", read_sent_cuboids(tmp_path))
    assert edited.cuboids.filter(video="c")["yaw_rad"][0] == pytest.approx(first)
    assert (len(edited.cuboids), sum(edited.refused.values())) == (len(table) + len(turns), 2)


def test_of_two_cuboids_with_one_number_the_second_is_refused_by_name(tmp_path):
    table = planted(tmp_path)
    file = tmp_path / "xtreme1/a/b/result/000000.json"
    content = json.loads(file.read_text())
    objects = content[0]["objects"]
    objects.append({**objects[0], "className": "Dog"})
    file.write_text(json.dumps(content))
    sent = read_sent_cuboids(tmp_path)
    edited = read_edited_cuboids(tmp_path / "xtreme1", sent)
    (reason,) = edited.refused
    assert reason == f"a/b/result/000000.json: {objects[0]['id']} stands again; the first counts"
    assert compare_cuboids(sent, edited)["fate"].to_list() == ["kept"] * len(table)


@pytest.mark.parametrize("form", ["kitti", "xtreme1", "labelcloud"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_links_lead_out_of_no_folder_of_edits(tmp_path, form, what):
    planted(tmp_path / "ours")
    sent = read_sent_cuboids(tmp_path / "ours")
    moved = Path("c") if what == "folder" else next((tmp_path / "ours" / form / "c").rglob("000000.*"))
    moved = (tmp_path / "ours" / form / moved).rename(tmp_path / "elsewhere")
    place = {"xtreme1": "c/result/000000.json", "kitti": "c/000000.txt", "labelcloud": "c/000000.json"}[form]
    (tmp_path / "ours" / form / ("c" if what == "folder" else place)).symlink_to(moved)
    with pytest.raises(InputError, match="link leads out"):
        read_edited_cuboids(tmp_path / "ours" / form, sent)


@pytest.mark.parametrize("video", ["../../up", "ABSOLUTE", "a/../../b", "a\0b", "C:\\x"])
@pytest.mark.parametrize("form", FORMS)
def test_names_of_videos_lead_out_of_no_folder(tmp_path, form, video):
    # Names come from the dataset: a scene of nuScenes may be called anything.
    video = video.replace("ABSOLUTE", str(tmp_path / "elsewhere"))
    boxes = pl.DataFrame(
        {
            "box": [0],
            "video": [video],
            "frame": [0],
            "score": [0.5],
            **{name: [1.0] for name in (*CORNERS, *CUBOID)},
        }
    )
    places = {("good", 0): TILTED, (video, 0): TILTED}
    with pytest.raises(InputError, match="name of the video leads out of the folder"):
        write_cuboids(Predictions(boxes=boxes), tmp_path / "a/b", (form,), cameras=places, poses=places)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["nuscenes", "xtreme1", "labelcloud"])
def test_half_a_character_in_a_class_is_escaped(tmp_path, form):
    planted(tmp_path)
    files = [back(tmp_path, form)] if form == "nuscenes" else sorted(back(tmp_path, form).rglob("*.json"))
    for file in files:
        file.write_text(file.read_text().replace('"unknown"', r'"un\ud800known"'))
    edited = read_edited_cuboids(back(tmp_path, form), read_sent_cuboids(tmp_path))
    assert set(edited.cuboids["name"]) == {r"un\ud800known"}


def test_things_side_by_side_without_numbers_are_told_apart(tmp_path):
    rows = pl.DataFrame(
        {
            "box": [1, 2, 3],
            "video": "a",
            "frame": 0,
            **dict.fromkeys(CORNERS, 5.0),
            "score": 0.5,
            **dict.fromkeys(CUBOID, 1.0),
        }
    ).with_columns(y_m=pl.Series([0.0, 1.0, 2.0]))
    write_cuboids(Predictions(boxes=rows), tmp_path, ("labelcloud",), cameras={("a", 0): TILTED}, poses={})
    file = tmp_path / "labelcloud/a/000000.json"
    content = json.loads(file.read_text())
    # The first is deleted, and the second moves towards where it was: the least change of all is told.
    content["objects"] = content["objects"][1:]
    content["objects"][0]["centroid"]["y"] = 0.8
    file.write_text(json.dumps(content))
    sent = read_sent_cuboids(tmp_path)
    found = compare_cuboids(sent, read_edited_cuboids(tmp_path / "labelcloud", sent))
    assert dict(found.select("proposal", "fate").iter_rows()) == {1: "deleted", 2: "changed", 3: "kept"}


def test_what_is_no_cuboid_is_refused_and_counted(tmp_path):
    planted(tmp_path)
    file = tmp_path / "xtreme1/a/b/result/000000.json"
    content = json.loads(file.read_text())
    objects = content[0]["objects"]
    objects[0]["contour"]["size3D"]["z"] = 0
    objects[1]["contour"]["center3D"]["x"] = 1e300
    objects[2] = {"type": "3D_BOX"}
    objects[3] = 7
    file.write_text(json.dumps(content))
    sent = read_sent_cuboids(tmp_path)
    edited = read_edited_cuboids(tmp_path / "xtreme1", sent)
    assert sum(edited.refused.values()) == 4
    assert Counter(compare_cuboids(sent, edited)["fate"]) == {"kept": 12, "deleted": 4}
    detections = json.loads((tmp_path / "nuscenes.json").read_text())
    detections["results"]["other"] = []
    (tmp_path / "nuscenes.json").write_text(json.dumps(detections))
    edited = read_edited_cuboids(tmp_path / "nuscenes.json", sent)
    assert dict(edited.refused) == {"an image that was not written": 1}
    for text in ("[]", "{", '{"results": 3}'):
        (tmp_path / "nuscenes.json").write_text(text)
        with pytest.raises(RoadawareError):
            read_edited_cuboids(tmp_path / "nuscenes.json", sent)
    (tmp_path / "empty").mkdir()
    for bad in ("empty", "nowhere.json"):
        with pytest.raises(RoadawareError):
            read_edited_cuboids(tmp_path / bad, sent)
    for text in ("{}", '{"images": [{}], "cuboids": []}', '{"images": [], "cuboids": [{}]}', "[1]"):
        (tmp_path / "sent.json").write_text(text)
        with pytest.raises(RoadawareError):
            read_sent_cuboids(tmp_path)


def damaged(place: tuple[str | int, ...], value: object) -> object:
    return pytest.param(place, value, id=f"{place[-1]}={str(value)[:24]}")


SINGULAR = np.diag([1.0, 1.0, 0.0, 1.0]).tolist()
HUGE = np.diag([1e308, 1e308, 1e308, 1.0]).tolist()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        damaged(("cuboids", 3, "x_m"), None),
        damaged(("cuboids", 3, "length_m"), 1e308),
        damaged(("cuboids", 0, "proposal"), None),
        damaged(("images", 1, "camera_SE3_lidar"), SINGULAR),
        damaged(("images", 1, "camera_SE3_lidar"), HUGE),
        damaged(("images", 1, "camera_SE3_lidar"), [[0.0, None]]),
        damaged(("images", 1, "camera_SE3_lidar"), list(range(16))),
        damaged(("images", 1, "world_SE3_lidar"), SINGULAR),
        damaged(("images", 1, "video"), "../labelcloud/a/b"),
        damaged(("images", 1, "video"), "/etc"),
        damaged(("images", 1, "video"), ""),
    ],
)
def test_a_damaged_number_or_name_is_refused_where_it_stands(tmp_path, place, value):
    planted(tmp_path)
    content = json.loads((tmp_path / "sent.json").read_text())
    part, number, name = place
    content[part][number][name] = value
    (tmp_path / "sent.json").write_text(json.dumps(content))
    with pytest.raises(InputError) as refused:
        read_sent_cuboids(tmp_path)
    assert f"{tmp_path / 'sent.json'}: {part}[{number}].{name}" in str(refused.value)


def test_a_turn_that_a_camera_cannot_tell_is_refused(tmp_path):
    planted(tmp_path)
    content = json.loads((tmp_path / "sent.json").read_text())
    for image in content["images"]:
        image["camera_SE3_lidar"] = np.eye(4).tolist()
    (tmp_path / "sent.json").write_text(json.dumps(content))
    edited = read_edited_cuboids(tmp_path / "kitti", read_sent_cuboids(tmp_path))
    assert edited.refused == {"a turn of a camera that looks along no ground": 16}


FIELDS = (
    *("name", "type", "contour", "center3D", "size3D", "rotation3D", "x", "y", "z", "vertices", "centroid"),
    *("dimensions", "rotations", "translation", "size", "rotation", "detection_name"),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
        )
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def one_cuboid(tmp_path_factory):
    """A folder with one cuboid in all forms."""
    folder = tmp_path_factory.mktemp("one")
    rows = {"box": [1], "video": "a", "frame": 0, **dict.fromkeys(CORNERS, 5.0), "score": 0.5}
    table = pl.DataFrame({**rows, **dict.fromkeys(CUBOID, 1.0)})
    place = {("a", 0): POSE}
    write_cuboids(Predictions(boxes=table), folder, FORMS, cameras=place, poses=place)
    return folder, read_sent_cuboids(folder)


@given(JSON)
@tried(60)
def test_any_object_is_taken_or_refused(one_cuboid, value):
    folder, sent = one_cuboid
    (folder / "nuscenes.json").write_text(json.dumps({"results": {"a/000000": [value]}}))
    (folder / "xtreme1/a/result/000000.json").write_text(json.dumps({"objects": [value]}))
    (folder / "labelcloud/a/000000.json").write_text(json.dumps({"objects": [value]}))
    (folder / "kitti/a/000000.txt").write_text(json.dumps(value))
    for form in FORMS:
        edited = read_edited_cuboids(back(folder, form), sent)
        assert len(edited.cuboids) + sum(edited.refused.values()) <= 1
        assert set(compare_cuboids(sent, edited)["fate"]) <= {"kept", "changed", "deleted", "added"}


def test_the_command_says_what_became_of_cuboids(tmp_path):
    planted(tmp_path / "cuboids")
    edit(tmp_path / "cuboids", "labelcloud")
    outcome = import_labels(
        tmp_path / "cuboids",
        (tmp_path / "cuboids/labelcloud", tmp_path / "cuboids/kitti"),
        result=ResultFolder(tmp_path / "out"),
    )
    first, second = outcome.data["cuboids"]
    assert (first["kept"], first["changed"], first["deleted"], first["added"]) == (13, 2, 1, 1)
    assert (second["form"], second["kept"], second["pictures"]) == ("kitti", 16, 3)
    assert "labelcloud: 3 images done; 13 kept, 2 changed, 1 deleted, 1 added" in outcome.text
    assert len(pl.read_csv(tmp_path / "out/cuboids.csv")) == 17 + 16
    assert outcome.failed is None
