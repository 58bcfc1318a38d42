"""Sets of tables as folders: what is saved comes back, and nothing that stands there is lost."""

import errno
import json

import polars as pl
import pytest
from hypothesis import given
from saved_sets import files_of, forged, names
from table_sets import scenes_sets, small_predictions, small_scenes

from example_counts import tried
from roadaware.errors import DamagedError, DatasetNotFoundError, InputError, UsageError
from roadaware.scenes.store import encode, open_predictions, open_scenes, save
from roadaware.scenes.tables import Meta, Predictions, Scenes


@pytest.fixture
def saved(tmp_path):
    save(small_scenes(), tmp_path / "set")
    return tmp_path / "set"


@tried(20)
@given(scenes=scenes_sets())
def test_what_is_saved_comes_back_equal(tmp_path_factory, scenes):
    folder = tmp_path_factory.mktemp("sets") / "set"
    save(scenes, folder)
    assert open_scenes(folder) == scenes
    assert names(folder) == files_of(scenes)


def test_predictions_come_back_with_their_arrays(tmp_path):
    predictions = small_predictions()
    save(predictions, tmp_path / "set")
    opened = open_predictions(tmp_path / "set")
    assert opened == predictions
    assert opened.samples.schema["scores"] == pl.Array(pl.Float32, 2)


@pytest.mark.parametrize(
    "own",
    [
        pl.Series(["a", None, "b"] * 2, dtype=pl.Enum(["b", "a", "never"])),
        pl.Series(["a", None, "b"] * 2, dtype=pl.Categorical),
        pl.Series([[1.0, 2.0], None, [3.0, 4.0]] * 2, dtype=pl.Array(pl.Float64, 2)),
        pl.Series([[[1, 2], []], None, []] * 2, dtype=pl.List(pl.List(pl.Int8))),
        pl.Series([{"x": 1, "y": "z"}, None, {"x": None, "y": "\N{PEDESTRIAN}\0"}] * 2),
        pl.Series([b"\0\xff", None, b""] * 2),
        pl.Series([None] * 6),
        pl.Series([float("nan"), float("inf"), -0.0] * 2),
        pl.Series([2**63 + 1, None, 0] * 2, dtype=pl.UInt64),
    ],
    ids=lambda series: str(series.dtype),
)
def test_columns_of_the_datasets_own_come_back_as_they_were(tmp_path, own):
    scenes = small_scenes(boxes=small_scenes().boxes.with_columns(own.alias("own")))
    save(scenes, tmp_path / "set")
    held = open_scenes(tmp_path / "set").boxes["own"]
    assert held.dtype == own.dtype
    assert held.equals(own, null_equal=True)


def test_a_table_without_rows_keeps_its_columns(tmp_path):
    scenes = small_scenes(boxes=small_scenes().boxes.clear())
    save(scenes, tmp_path / "set")
    assert open_scenes(tmp_path / "set").boxes.schema == scenes.boxes.schema


def test_an_empty_set_is_a_set(tmp_path):
    save(Scenes(), tmp_path / "set")
    assert names(tmp_path / "set") == ["meta.json"]
    assert open_scenes(tmp_path / "set") == Scenes()
    save(small_scenes(), tmp_path / "set", overwrite=True)
    assert open_scenes(tmp_path / "set") == small_scenes()


def test_the_same_tables_give_the_same_bytes(tmp_path):
    for place in ("a", "b"):
        save(small_scenes(n_boxes=5000), tmp_path / place)
    assert names(tmp_path / "a") == names(tmp_path / "b")
    for name in names(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_folder_in_the_documented_format_is_opened(tmp_path):
    scenes = small_scenes(meta=Meta())
    assert open_scenes(forged(tmp_path / "set", scenes.filled())) == scenes


def test_a_column_that_parquet_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    boxes = small_scenes().boxes.with_columns(pl.Series("own", [object()] * 6, dtype=pl.Object))
    with pytest.raises(InputError, match="table boxes cannot be written as Parquet"):
        save(small_scenes(boxes=boxes), tmp_path / "set")
    assert names(tmp_path) == []


def test_a_set_is_overwritten_only_when_asked(saved):
    other = small_scenes("other", n_boxes=8)
    with pytest.raises(UsageError, match="holds a saved set already"):
        save(other, saved)
    assert open_scenes(saved) == small_scenes()
    save(other, saved, overwrite=True)
    assert open_scenes(saved) == other
    assert names(saved) == files_of(other)


def test_a_set_may_take_the_place_of_one_of_the_other_kind(saved):
    save(small_predictions(), saved, overwrite=True)
    assert open_predictions(saved) == small_predictions()
    assert names(saved) == files_of(small_predictions())


def test_saving_the_same_again_repairs_what_was_damaged(saved):
    for path in saved.iterdir():
        path.write_bytes(b"rubbish")
    with pytest.raises(UsageError, match="already"):
        save(small_scenes(), saved)
    save(small_scenes(), saved, overwrite=True)
    assert open_scenes(saved) == small_scenes()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["notes.txt", "boxes.parquet", "meta.json", "boxes-0123.parquet", ".git"])
def test_a_folder_of_other_files_is_never_written_to(tmp_path, name, overwrite):
    (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError, match=r"name an empty or new folder|holds a saved set already"):
        save(small_scenes(), tmp_path, overwrite=overwrite)
    assert names(tmp_path) == [name]


def test_a_file_beside_a_set_stays_when_the_set_is_overwritten(saved):
    (saved / "notes.txt").write_text("mine")
    save(small_scenes("other"), saved, overwrite=True)
    assert (saved / "notes.txt").read_text() == "mine"
    assert open_scenes(saved) == small_scenes("other")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "set").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        save(small_scenes(), tmp_path / "set", overwrite=True)
    assert (tmp_path / "set").read_text() == "mine"


def test_an_incomplete_write_is_named_and_taken_over(saved):
    (saved / "meta.json").unlink()
    with pytest.raises(DamagedError, match="an incomplete write"):
        open_scenes(saved)
    save(small_scenes("other"), saved)
    assert open_scenes(saved) == small_scenes("other")
    assert names(saved) == files_of(small_scenes("other"))


def test_without_locks_nothing_is_removed(saved, monkeypatch):
    def unlocked(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unlocked)
    save(small_scenes("other"), saved, overwrite=True)
    assert open_scenes(saved) == small_scenes("other")
    assert set(names(saved)) == set(files_of(small_scenes("other"))) | set(files_of(small_scenes()))


def test_what_is_no_set_says_what_was_found(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "clip.mp4").write_text("x")
    (tmp_path / "empty").mkdir()
    told = {
        "gone": "found: nothing",
        "file": "found: a file",
        "loop": "found: nothing",
        "foreign": "found clip.mp4",
        "empty": "found an empty folder",
        "nul\0": "found: nothing",
        "x" * 300: "found: File name too long",
    }
    for name, found in told.items():
        for opened in (open_scenes, open_predictions):
            with pytest.raises(DatasetNotFoundError, match=found):
                opened(tmp_path / name)


def test_scenes_are_not_predictions(tmp_path, saved):
    with pytest.raises(InputError, match="expected Predictions, found Scenes"):
        open_predictions(saved)
    save(small_predictions(), tmp_path / "predicted")
    with pytest.raises(InputError, match="expected Scenes, found Predictions"):
        open_scenes(tmp_path / "predicted")


@pytest.mark.parametrize("version", [2, 0, -1, "1", None, True, 1.0, 10**30])
def test_another_version_of_the_format_is_refused(tmp_path, version):
    with pytest.raises(InputError, match="expected version 1 of the format"):
        open_scenes(forged(tmp_path / "set", {}, version=version))


def test_predictions_and_scenes_share_no_kind():
    assert json.loads(encode(Scenes())[1])["kind"] == "Scenes"
    assert json.loads(encode(Predictions())[1])["kind"] == "Predictions"
