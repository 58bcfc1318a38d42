"""Sound maps from folders, archives and JSON: any size, no pickle, nothing larger than it says."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from roadaware.errors import FindingsError, InputError, UsageError
from roadaware.formats.sound_maps import read_sound_maps, reshape_map, write_sound_maps
from roadaware.scenes.tables import Predictions, Scenes

NAMES = ["a_000010", "b/1", "c"]


@pytest.fixture
def scenes() -> Scenes:
    """Three sounds, each in its own image."""
    videos = pl.DataFrame({"video": NAMES})
    return Scenes(
        videos=videos,
        sounds=pl.DataFrame({"sound": [5, 6, 7], "video": NAMES, "name": NAMES}),
    )


def maps() -> dict[str, np.ndarray]:
    """A square map, a wide one, and a constant one."""
    rng = np.random.default_rng(0)
    return {
        NAMES[0]: rng.random((4, 4), dtype=np.float32),
        NAMES[1]: rng.random((2, 5), dtype=np.float32),
        NAMES[2]: np.full((3, 3), 0.25, np.float32),
    }


def in_folder(root: Path, held: dict[str, np.ndarray]) -> Path:
    for name, values in held.items():
        path = root / "maps" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values)
    return root / "maps"


def in_archive(root: Path, held: dict[str, np.ndarray]) -> Path:
    np.savez(root / "maps.npz", **held)
    return root / "maps.npz"


def packed(root: Path, held: dict[str, np.ndarray]) -> Path:
    np.savez_compressed(root / "packed.npz", **held)
    return root / "packed.npz"


def in_json(root: Path, held: dict[str, np.ndarray]) -> Path:
    (root / "maps.json").write_text(json.dumps({name: values.tolist() for name, values in held.items()}))
    return root / "maps.json"


PLACES = [in_folder, in_archive, packed, in_json]


def names_in(predictions: Predictions) -> dict[str, np.ndarray]:
    return {
        name: reshape_map(values.to_numpy(), width)
        for name, values, width in zip(
            predictions.sounds["name"],
            predictions.sounds["map"],
            predictions.sounds["map_width"],
            strict=True,
        )
    }


def warnings(predictions: Predictions) -> dict[str, int]:
    return {warning["what"]: warning["count"] for warning in predictions.meta.notes["warnings"]}


@pytest.mark.parametrize("place", PLACES)
def test_maps_read_as_they_are(tmp_path: Path, scenes: Scenes, place: Callable[..., Path]) -> None:
    predictions = read_sound_maps(place(tmp_path, maps()), scenes, strict=True)
    assert predictions.sounds.select("sound", "video", "map_width").rows() == [
        (5, NAMES[0], 4),
        (6, NAMES[1], 5),
        (7, NAMES[2], 3),
    ]
    for name, values in maps().items():
        assert np.array_equal(names_in(predictions)[name], values)
    assert predictions.sounds["map"].dtype == pl.List(pl.Float64 if place is in_json else pl.Float32)
    assert warnings(predictions) == {"constant maps, taken as they are": 1}


@pytest.mark.parametrize("name", ["maps.npz", "maps.json", "folder"])
def test_what_is_written_reads_as_it_was(tmp_path: Path, scenes: Scenes, name: str) -> None:
    predictions = read_sound_maps(in_archive(tmp_path, maps()), scenes)
    (tmp_path / "out").mkdir()
    assert write_sound_maps(predictions, scenes, tmp_path / "out" / name) == 3
    again = names_in(read_sound_maps(tmp_path / "out" / name, scenes))
    assert all(np.array_equal(again[each], values) for each, values in maps().items())


def test_types_of_numbers(tmp_path: Path, scenes: Scenes) -> None:
    plain = np.arange(12).reshape(3, 4)
    for dtype in ("f2", "f4", ">f4", "u1", "i2", "?"):
        predictions = read_sound_maps(in_archive(tmp_path, {"c": plain.astype(dtype)}), scenes)
        assert predictions.sounds["map"].dtype == pl.List(pl.Float32), dtype
        assert np.array_equal(names_in(predictions)["c"], plain.astype(dtype).astype("f4"))
    mixed = {"c": plain.astype("f4"), NAMES[0]: plain / 7}
    predictions = read_sound_maps(in_archive(tmp_path, mixed), scenes)
    assert predictions.sounds["map"].dtype == pl.List(pl.Float64)
    assert np.array_equal(names_in(predictions)[NAMES[0]], plain / 7)
    by_columns = {"c": np.asfortranarray(plain.astype("f4")), "b/1": plain.astype("f4")[None, None]}
    held = names_in(read_sound_maps(in_archive(tmp_path, by_columns), scenes))
    assert np.array_equal(held["c"], plain)
    assert np.array_equal(held["b/1"], plain)


def test_maps_of_many_sizes_keep_their_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    held = {f"s{n:03d}": rng.random(tuple(rng.integers(1, 9, 2)), dtype=np.float32) for n in range(200)}
    names = sorted(held, key=lambda name: name[::-1])
    scenes = Scenes(
        videos=pl.DataFrame({"video": names}),
        sounds=pl.DataFrame({"sound": range(200), "video": names, "name": names}),
    )
    again = names_in(read_sound_maps(in_archive(tmp_path, held), scenes))
    assert list(again) == names
    assert all(np.array_equal(again[name], values) for name, values in held.items())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_maps_that_are_not_finite_are_refused_and_counted(tmp_path: Path, scenes: Scenes, bad: float) -> None:
    held = maps()
    held["b/1"][1, 2] = bad
    path = in_folder(tmp_path, held)
    predictions = read_sound_maps(path, scenes)
    (row,) = predictions.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("sounds", "b/1")
    assert "1 of 10 cells hold NaN" in row["reason"]
    assert predictions.sounds["sound"].to_list() == [5, 7]
    with pytest.raises(FindingsError, match="NaN"):
        read_sound_maps(path, scenes, strict=True)


def test_sounds_without_a_map_and_maps_without_a_sound_are_counted(tmp_path: Path, scenes: Scenes) -> None:
    predictions = read_sound_maps(in_folder(tmp_path, {"c": maps()["c"], "x": maps()["c"]}), scenes)
    assert warnings(predictions) == {
        "constant maps, taken as they are": 1,
        "maps of sounds that the truth does not have, left out": 1,
        "sounds without a map": 2,
    }
    with pytest.raises(InputError, match=r"(?s)the file names \['x'\], the truth \['a_000010'"):
        read_sound_maps(in_archive(tmp_path, {"x": maps()["c"]}), scenes)
    with pytest.raises(InputError, match="has no sounds"):
        read_sound_maps(tmp_path, Scenes())


def npy(values: Any, **changes: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, **changes)
    return stream.getvalue()


def header(text: str, content: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + content


HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }\n"
BAD: dict[str, tuple[bytes, str]] = {
    "a pickle": (npy(np.array([[{}]], dtype=object), allow_pickle=True), "plain numbers"),
    "fields": (npy(np.zeros((2, 2), [("a", "f4")])), "plain numbers"),
    "text": (npy(np.array([["a"]])), "plain numbers"),
    "complex numbers": (npy(np.zeros((2, 2), np.complex64)), "plain numbers"),
    "three dimensions": (npy(np.zeros((2, 2, 2))), "two dimensions"),
    "a row": (npy(np.zeros(4)), "two dimensions"),
    "nothing": (npy(np.zeros((0, 4))), "two dimensions"),
    "a bomb": (header(HUGE % (1 << 20, 1 << 20)), "at most"),
    "too little": (header(HUGE % (100, 100), b"\0" * 9), "9 bytes of content"),
    "too much": (npy(np.zeros((2, 2), "f4")) + b"\0", "17 bytes of content"),
    "cut off": (npy(np.zeros((2, 2), "f4"))[:20], "no .npy file"),
    "a long header": (header(" " * 60_000), "no .npy file"),
    "code": (header("__import__('os').system('true')"), "no .npy file"),
    "negative": (header(HUGE % (-2, -2), b"\0" * 16), "two dimensions"),
    "empty": (b"", "no .npy file"),
    "another file": (b"\x89PNG" + b"\0" * 100, "no .npy file"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("archived", [False, True])
def test_bad_maps_are_refused_one_by_one(tmp_path: Path, scenes: Scenes, name: str, archived: bool) -> None:
    data, reason = BAD[name]
    if archived:
        path = in_archive(tmp_path, {"c": maps()["c"]})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("a_000010.npy", data)
    else:
        path = in_folder(tmp_path, {"c": maps()["c"]})
        (path / "a_000010.npy").write_bytes(data)
    predictions = read_sound_maps(path, scenes)
    (row,) = predictions.rejected.to_dicts()
    assert row["item"] == "a_000010"
    assert reason in row["reason"]
    assert predictions.sounds["sound"].to_list() == [7]


def test_links_and_folders_in_the_place_of_maps(tmp_path: Path, scenes: Scenes) -> None:
    path = in_folder(tmp_path, {"c": maps()["c"]})
    (tmp_path / "outside.npy").write_bytes(npy(maps()["c"]))
    (path / "a_000010.npy").symlink_to(tmp_path / "outside.npy")
    (path / "b").mkdir()
    (path / "b" / "1.npy").symlink_to("1.npy")
    predictions = read_sound_maps(path, scenes)
    assert [("leads out" in each, "circle" in each) for each in predictions.rejected["reason"]] == [
        (True, False),
        (False, True),
    ]


ARCHIVES: dict[str, tuple[str, str]] = {
    "../evil.npy": ("leads out", "not to be trusted"),
    "/c2.npy": ("leads out", "not to be trusted"),
    "c.npy": ("twice", "not to be trusted"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_an_honest_tool_would_not_write(tmp_path: Path, scenes: Scenes, name: str) -> None:
    path = in_archive(tmp_path, {"c": maps()["c"]})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, npy(maps()["c"]))
    with pytest.raises(InputError, match=ARCHIVES[name][1]):
        read_sound_maps(path, scenes)


def test_a_zip_bomb_costs_its_map_alone(tmp_path: Path, scenes: Scenes) -> None:
    path = in_archive(tmp_path, {"c": maps()["c"]})
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a_000010.npy", "w") as member,
    ):
        for _ in range(160):
            member.write(b"\0" * (1 << 20))
    predictions = read_sound_maps(path, scenes)
    assert "a map has at most" in predictions.rejected["reason"][0]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"no whole \.npz"):
        read_sound_maps(path, scenes)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("x", "list of rows"),
        ([], "list of rows"),
        ([1, 2], "list of rows"),
        ([[1, 2], [3]], "of one length"),
        ([[1, True]], "hold numbers"),
        ([[1, None]], "hold numbers"),
        ([[10**30]], "usual size"),
    ],
)
def test_bad_maps_in_json_are_refused_one_by_one(
    tmp_path: Path, scenes: Scenes, value: Any, reason: str
) -> None:
    (tmp_path / "maps.json").write_text(json.dumps({"c": [[1, 2.5]], "a_000010": value}))
    predictions = read_sound_maps(tmp_path / "maps.json", scenes)
    assert reason in predictions.rejected["reason"][0]
    assert names_in(predictions)["c"].tolist() == [[1, 2.5]]


def test_json_that_is_no_object_is_an_error(tmp_path: Path, scenes: Scenes) -> None:
    (tmp_path / "maps.json").write_text("[[1, 2]]")
    with pytest.raises(InputError, match="an object of maps by name"):
        read_sound_maps(tmp_path / "maps.json", scenes)
    (tmp_path / "maps.json").write_text('{"c": [[NaN]]}')
    with pytest.raises(InputError, match="NaN is no number of JSON"):
        read_sound_maps(tmp_path / "maps.json", scenes)


def test_what_cannot_be_written(tmp_path: Path, scenes: Scenes) -> None:
    sounds = pl.DataFrame({"sound": [5], "video": ["a_000010"], "map": [[1.0, 2, 3]]})
    with pytest.raises(UsageError, match="no rows of 2"):
        write_sound_maps(Predictions(sounds=sounds), scenes, tmp_path / "m.npz")
    with pytest.raises(UsageError, match="have no maps"):
        write_sound_maps(Predictions(sounds=sounds.drop("map")), scenes, tmp_path / "m.npz")
    with pytest.raises(UsageError, match="sounds that the scenes do not have"):
        write_sound_maps(Predictions(sounds=sounds.with_columns(sound=pl.lit(9))), scenes, tmp_path / "m.npz")


@pytest.mark.parametrize("name", ["maps.json", "maps.npz", "maps"])
def test_sounds_without_a_name_are_called_as_their_video_is_once(tmp_path: Path, name: str) -> None:
    heard = pl.DataFrame({"sound": [0, 1], "video": ["a", "b"]})
    nameless = Scenes(videos=pl.DataFrame({"video": ["a", "b"]}), sounds=heard)
    held = pl.Series("map", [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    written = Predictions(videos=nameless.videos, sounds=heard.with_columns(held))
    assert write_sound_maps(written, nameless, tmp_path / name) == 2
    assert read_sound_maps(tmp_path / name, nameless).sounds["name"].to_list() == ["a", "b"]
    both = Scenes(videos=nameless.videos, sounds=heard.with_columns(video=pl.lit("a")))
    twice = Predictions(videos=nameless.videos, sounds=both.sounds.with_columns(held))
    with pytest.raises(UsageError, match="2 sounds are called 'a'"):
        write_sound_maps(twice, both, tmp_path / f"twice-{name}")
